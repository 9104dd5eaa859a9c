"""What a level may have beside models and connections: bonds, constraints, hosts, insertions, choices.

In:  a table, with its place
Out: what it describes, by name, and back; everything is kept with its place
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_args

from hocket.errors import ScenarioError, suggest_nearest
from hocket.files.toml.forms import (
    DURATION,
    NUMBER,
    RATES,
    TEXT,
    TEXTS,
    TRUTH,
    VECTOR,
    WHOLE,
    ChoiceForm,
    DefinedForm,
    MappingForm,
)
from hocket.files.toml.syntax import WRONG, FilePlace
from hocket.files.toml.table_kinds import Field, NamedTablesForm, Section, table_kind
from hocket.model.bonds import AgreedPower, Balance, Bond, named_bonds
from hocket.model.constraints import Constraint, LawName, named_constraints
from hocket.model.crossings import Crossing, Direction, named_crossings
from hocket.model.distributions import Distribution
from hocket.model.execution_time import ExecutionTime
from hocket.model.experiment import Tuning
from hocket.model.hosts import RESERVED, Hosts, Link
from hocket.model.scenario import Insertion
from hocket.model.validity import ValidRange

BOND = table_kind(
    "a bond",
    Bond,
    Field("effort", TEXT, "the input that the effort drives: mass.force"),
    Field("flow", TEXT, "the input that the flow drives, the other way: spring.speed"),
    Field("unit", TEXT, "of their product, if that is not a power in W"),
    Field("reverse", TRUTH, "whether their product counts from the side that gives the flow to the other"),
    Field(
        "balance", ChoiceForm(get_args(Balance)), "how both sides agree on the power; left out: they do not"
    ),
    Field("eps", NUMBER, "of the inversion: outputs below this part of the largest are not divided by"),
    Field("power", ChoiceForm(get_args(AgreedPower)), "what both agree on; left out: the product"),
    tagged=False,
)


BONDS = NamedTablesForm("bonds", BOND, "a bond", "[bonds.joint]", check=named_bonds, stand_in=Bond("", ""))


CONSTRAINT = table_kind(
    "a constraint",
    Constraint,
    Field("equations", TEXTS, 'such as ["left.x = right.x", "left.F + right.F = 0"]'),
    Field(
        "rates",
        RATES,
        "the outputs that are time derivatives of others",
        get=lambda each: each.rates or None,
    ),
    Field("mu", NUMBER, "how fast gaps are closed, in 1/s; left out: in about a step"),
    Field("determines", TEXTS, "inputs that are to be found though they stand in no equation"),
    Field("law", ChoiceForm(get_args(LawName)), "what is asked for where inputs act on accelerations"),
    Field("alpha", NUMBER, "of the law `baumgarte`, in 1/s; left out: 1/step"),
    Field("beta", NUMBER, "of the law `baumgarte`, in 1/s; left out: 1/step"),
    Field("weights", VECTOR, "of the law `weighted`: of the residual and its two time derivatives"),
    Field("closes", TRUTH, "whether the equations need not hold at the start: gaps are closed"),
    Field("once", TRUTH, "whether inputs are corrected once a step, without rollback"),
    tagged=False,
)


CONSTRAINTS = NamedTablesForm(
    "constraints", CONSTRAINT, "a constraint", "[constraints.link]", check=named_constraints
)


CROSSING = table_kind(
    "a crossing",
    Crossing,
    Field("output", TEXT, "the output that crosses: ball.h"),
    Field("direction", ChoiceForm(get_args(Direction)), "in which it counts"),
    Field("at", NUMBER, "the value that is crossed, in the unit of the output"),
    Field("hysteresis", NUMBER, "the width of the band around it that the output must pass"),
    Field("tolerance", DURATION, "how late it may be met; left out: not at all"),
    tagged=False,
)


CROSSINGS = NamedTablesForm(
    "crossings",
    CROSSING,
    "a crossing",
    "[crossings.bounce]",
    check=named_crossings,
    stand_in=Crossing("a.b"),
)


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
_LINKS = MappingForm(LINK, 'a table of links: "plant to lab" = { latency = "1 ms" }')


class HostsForm(DefinedForm):
    """Which simulator runs where, and what a message costs."""

    name = "hosts"

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
        link = LINK.read(value["link"], place / "link") if "link" in value else None
        links = self._read_links(value.get("links", {}), place / "links")
        if not good or link is WRONG or links is WRONG:
            return WRONG
        made = place.attempt(lambda: Hosts(models, link, links))
        known = place.sibling_value("models")
        if made is not WRONG and isinstance(known, dict):
            self._check_models(made, known, place)
        return made

    def _read_links(self, value: Any, place: FilePlace) -> Any:
        for pair in value if isinstance(value, dict) else ():
            if pair.count(_TO) != 1:
                return (place / pair).fault(f"`{pair}` is not a link", 'two hosts: "plant to lab"')
        links = _LINKS.read(value, place)
        return WRONG if links is WRONG else {tuple(pair.split(_TO)): link for pair, link in links.items()}

    def _check_models(self, hosts: Hosts, models: Mapping[str, Any], place: FilePlace) -> None:
        for name, host in hosts.host_by_model().items():
            if name not in models:
                hint = suggest_nearest(name, models)
                (place / host).fault(f"there is no model `{name}`", "the models of this level", hint)

    def write(self, value: Hosts, place: FilePlace) -> Any:
        table: dict[str, Any] = {host: list(names) for host, names in value.models.items()}
        if value.link != Link():
            table["link"] = LINK.write(value.link, place / "link")
        if value.links:
            links = {_TO.join(pair): link for pair, link in value.links.items()}
            table["links"] = _LINKS.write(links, place / "links")
        return Section(table)

    def definition(self) -> dict[str, Any]:
        """Return the JSON Schema."""
        return {
            "type": "object",
            "properties": {"link": LINK.schema(), "links": _LINKS.schema()},
            "additionalProperties": TEXTS.schema(),
        }


HOSTS = HostsForm()

INSERTED = table_kind(
    "an insertion",
    Insertion,
    Field("by", TEXT, "the pass of the compiler"),
    Field("reason", TEXT, "why it is there"),
    tagged=False,
)

INSERTIONS = NamedTablesForm(
    "inserted", INSERTED, "an insertion", 'loop = { by = "loops", reason = "..." }', inline=True
)


OBJECTIVES, LIMITS = "objectives", "limits"
_LIMITS = MappingForm(NUMBER, "a table of numbers: limits = { rho = 1, work = 2 }")


class TuneForm:
    """Texts by name; `two.F.alpha` without quotes is a table in a table, and meant as a name."""

    def read(self, value: Any, place: FilePlace) -> Any:
        if not isinstance(value, dict):
            return place.report_unexpected(value, 'a table of what may be chosen: step = "1 ms:100 ms:9:log"')
        rest = {key: each for key, each in value.items() if key not in (OBJECTIVES, LIMITS)}
        over = dict(self._flatten_texts(rest, place))
        goals = TEXTS.read(value.get(OBJECTIVES, []), place / OBJECTIVES)
        limits = _LIMITS.read(value.get(LIMITS, {}), place / LIMITS)
        if WRONG in (goals, limits, *over.values()):
            return WRONG
        return Tuning(over, tuple(goals), limits)

    def _flatten_texts(
        self, table: Mapping[str, Any], place: FilePlace, before: str = ""
    ) -> Iterator[tuple[str, Any]]:
        for key, value in table.items():
            if isinstance(value, dict):
                yield from self._flatten_texts(value, place / key, f"{before}{key}.")
            else:
                yield f"{before}{key}", _join_values(value, place / key)

    def write(self, value: Tuning, place: FilePlace) -> Any:  # noqa: ARG002
        made = Section(value.over)
        if value.objectives:
            made[OBJECTIVES] = list(value.objectives)
        if value.limits:
            made[LIMITS] = dict(value.limits)
        return made or None

    def schema(self) -> dict[str, Any]:
        one = {"anyOf": [{"type": "string"}, {"type": "number"}]}
        several = {"type": "array", "items": {"anyOf": [*one["anyOf"], {"type": "array"}]}}
        return {
            "type": "object",
            "properties": {
                OBJECTIVES: TEXTS.schema() | {"description": "what counts, such as error and work"},
                LIMITS: _LIMITS.schema() | {"description": "what may not be passed"},
            },
            "additionalProperties": {"anyOf": [*one["anyOf"], several, {"type": "object"}]},
        }


def _join_values(value: Any, place: FilePlace) -> Any:
    """Return values as one text; a list is one with commas, a list in it, as an order is, one with blanks."""
    items = value if isinstance(value, list) else [value]
    texts = [" ".join(map(str, each)) if isinstance(each, list) else each for each in items]
    if texts and all(type(text) in (str, int, float) for text in texts):
        return ", ".join(map(str, texts))
    return place.report_unexpected(value, 'values: "1 ms:100 ms:9:log", "hold, linear", or a list')


CHOICES = TuneForm()


class PathTextsForm:
    """What is written as a text, by path; `spring.k` without quotes is a table in a table and a path."""

    def __init__(self, parse: Callable[[Any], Any], expected: str):
        self.parse, self.expected = parse, expected

    def read(self, value: Any, place: FilePlace) -> Any:
        if not isinstance(value, dict):
            return place.report_unexpected(value, self.expected)
        found = dict(self._parse_all(value, place))
        return WRONG if WRONG in found.values() else found

    def _parse_all(
        self, table: Mapping[str, Any], place: FilePlace, before: str = ""
    ) -> Iterator[tuple[str, Any]]:
        for key, value in table.items():
            if isinstance(value, dict):
                yield from self._parse_all(value, place / key, f"{before}{key}.")
                continue
            try:
                yield f"{before}{key}", self.parse(value)
            except ScenarioError as error:
                yield f"{before}{key}", (place / key).report_unexpected(value, error.faults[0].expected)

    def write(self, value: Mapping[str, Any], place: FilePlace) -> Any:  # noqa: ARG002
        return Section({path: str(each) for path, each in value.items()}) or None

    def schema(self) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": {"anyOf": [{"type": "string"}, {"type": "object"}]}}


UNCERTAIN = PathTextsForm(Distribution.parse, 'a table of distributions: "spring.k" = "normal(20, 2)"')
VALID = PathTextsForm(ValidRange.parse, 'a table of ranges: "pipe.p" = "0 < p < 10 bar"')
WCET = PathTextsForm(ExecutionTime.parse, 'a table of durations: plant = "2 ms"')
