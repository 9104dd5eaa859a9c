"""Hosts in a file: a table of models per host, what their links cost, and the stand-ins between them.

In:  `[hosts]` with a list for each host, `link` for all links and `links` for some, with its place
Out: Hosts, and back
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from hocket.errors import suggest_nearest
from hocket.files.toml.forms import DURATION, NUMBER, TEXT, TEXTS, TRUTH, WHOLE, ChoiceForm
from hocket.files.toml.kinds import Field, TableKind, table_kind
from hocket.files.toml.layout import Section
from hocket.files.toml.place import WRONG, FilePlace
from hocket.files.toml.ports import PortsForm
from hocket.hosts import RESERVED, Hosts, Link
from hocket.model import Port, PortType
from hocket.simulators.stand_in import StandIn

_EXPECTED = 'a list of models for each host: plant = ["left"]'
_TO = " to "

LINK = table_kind(
    "a link",
    Link,
    Field("latency", DURATION, "of a message"),
    Field("bandwidth", NUMBER, "bytes per second; left out: not limited"),
    Field("header", WHOLE, "bytes of a message beside its values"),
    tagged=False,
)


class HostsForm:
    """Who runs where, and what a message costs."""

    name = "hosts"
    kind: TableKind = LINK

    def read(self, value: Any, place: FilePlace) -> Any:
        if not isinstance(value, dict):
            return place.report_unexpected(value, _EXPECTED)
        place.findings.places[f"{place.level}hosts"] = place
        models: dict[str, Any] = {}
        good = True
        for host in (key for key in value if key not in RESERVED):
            here = place / host
            place.findings.places[f"{place.level}hosts.{host}"] = here
            models[host] = TEXTS.read(value[host], here)
            good = good and models[host] is not WRONG
        link = self.kind.read(value["link"], place / "link") if "link" in value else None
        links = self._read_links(value.get("links", {}), place / "links")
        if not good or link is WRONG or links is WRONG:
            return WRONG
        made = place.attempt(lambda: Hosts(models, link, links))
        known = place.sibling_value("models")
        if made is not WRONG and isinstance(known, dict):
            self._check_models(made, known, place)
        return made

    def _read_links(self, value: Any, place: FilePlace) -> Any:
        if not isinstance(value, dict):
            return place.report_unexpected(value, 'a table of links: "plant to lab" = { latency = "1 ms" }')
        links: dict[tuple[str, ...], Any] = {}
        for pair, table in value.items():
            ends = tuple(pair.split(_TO))
            if len(ends) != 2:
                return (place / pair).fault(f"`{pair}` is no link", 'two hosts: "plant to lab"')
            links[ends] = self.kind.read(table, place / pair)
        return WRONG if any(link is WRONG for link in links.values()) else links

    def _check_models(self, hosts: Hosts, models: Mapping[str, Any], place: FilePlace) -> None:
        for name, host in hosts.host_by_model().items():
            if name not in models:
                hint = suggest_nearest(name, models)
                (place / host).fault(f"there is no model `{name}`", "the models of this level", hint)

    def write(self, value: Hosts, place: FilePlace) -> Any:
        table: dict[str, Any] = {host: list(names) for host, names in value.models.items()}
        if value.link != Link():
            table["link"] = self.kind.write(value.link, place / "link")
        if value.links:
            table["links"] = {
                _TO.join(pair): self.kind.write(link, place / "links") for pair, link in value.links.items()
            }
        return Section(table)

    def schema(self) -> dict[str, Any]:
        return {"$ref": f"#/$defs/{self.name}"}

    def definition(self) -> dict[str, Any]:
        """Return the JSON Schema."""
        return {
            "type": "object",
            "properties": {
                "link": self.kind.schema(),
                "links": {"type": "object", "additionalProperties": self.kind.schema()},
            },
            "additionalProperties": TEXTS.schema(),
        }


HOSTS = HostsForm()

SHOWN = PortsForm(
    "shown",
    table_kind(
        "a port",
        Port,
        Field("name", TEXT),
        Field("unit", TEXT, "a physical unit: m/s"),
        Field("start", NUMBER),
        Field("type", ChoiceForm(get_args(PortType)), "what its numbers mean"),
        Field("held", TRUTH, "whether it changes at events only"),
        tagged=False,
    ),
)
STAND_IN = table_kind(
    "stand-in",
    StandIn,
    Field("shows", SHOWN, "its outputs; each has an input: force_sent of force"),
    Field("of", TEXT, "the simulator on another host that it stands for"),
)
