"""Which model runs where: the machines of a scenario, and what a message between them costs.

In:  names of models per host; latency, bandwidth and header of the links
Out: frozen data, and what is wrong with it beside the models of a scenario
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from hocket.errors import Fault, ScenarioError, list_names, suggest_nearest
from hocket.model.arguments import expect, is_positive, is_whole, set_fields
from hocket.model.clock import Duration, format_duration, seconds

HEADER = 40
"""Bytes before the values of a message: those of IPv4 and TCP without options (RFC 791, RFC 9293)."""

RESERVED = ("link", "links")
"""What no host is called: keys beside the hosts in a file."""


@dataclass(frozen=True, init=False)
class Link:
    """What a message costs beyond its values: `Link("2 ms", bandwidth=1e6)`.

    `bandwidth` is in bytes per second, None: not limited; `header` in bytes per message.
    """

    latency: Fraction
    bandwidth: float | None
    header: int

    def __init__(self, latency: Duration = 0, bandwidth: float | None = None, header: int = HEADER):
        try:
            late = seconds(latency)
        except ValueError as error:
            raise ScenarioError(str(error), "latency") from None
        limited = bandwidth is None or is_positive(bandwidth)
        expect(late >= 0, "latency", format_duration(late), "a duration, or 0")
        expect(limited, "bandwidth", bandwidth, "bytes per second, above 0")
        expect(is_whole(header), "header", header, "bytes, a whole number")
        rate = None if bandwidth is None else float(bandwidth)
        set_fields(self, latency=late, bandwidth=rate, header=header)

    def seconds(self, messages: float, size: float) -> float:
        """Return how long so many messages take one after the other, of so many bytes in all."""
        return messages * float(self.latency) + (size / self.bandwidth if self.bandwidth else 0.0)


@dataclass(frozen=True, init=False)
class Hosts:
    """Models per host: `Hosts({"plant": ["left"], "lab": ["right"]}, Link("2 ms"))`.

    `link` is for all pairs of hosts but those in `links`, by `("plant", "lab")`: from, to.
    """

    models: Mapping[str, tuple[str, ...]]
    link: Link
    links: Mapping[tuple[str, str], Link] = field(default_factory=dict)

    def __init__(
        self,
        models: Mapping[str, Iterable[str]],
        link: Link | None = None,
        links: Mapping[tuple[str, str], Link] | None = None,
    ):
        faults: list[Fault] = []
        kept: dict[str, tuple[str, ...]] = {}
        where: dict[str, str] = {}
        for host, names in models.items():
            if host in RESERVED or not host:
                faults.append(Fault(f"`{host}` cannot name a host", f"hosts.{host}", "another name"))
            listed = isinstance(names, Iterable) and not isinstance(names, str)
            if not listed or not all(isinstance(name, str) for name in names):
                expected = f'a list of models: {{"{host}": ["left"]}}'
                faults.append(Fault(f"host `{host}` has {names!r:.40}", f"hosts.{host}", expected))
                continue
            kept[host] = tuple(names)
            if not kept[host]:
                faults.append(Fault(f"host `{host}` has no models", f"hosts.{host}", "at least one"))
            for name in kept[host]:
                if name in where:
                    both = f"`{where[name]}` and `{host}`" if where[name] != host else f"`{host}`, twice"
                    faults.append(Fault(f"`{name}` is on {both}", f"hosts.{host}", "one host for each model"))
                where[name] = host
        for pair in links or {}:
            if len(pair) != 2 or pair[0] == pair[1] or not set(pair) <= set(models):
                hint = suggest_nearest(next((end for end in pair if end not in models), ""), models)
                faults.append(Fault(f"there is no link {pair!r}", "hosts.links", "two hosts: from, to", hint))
        if faults:
            raise ScenarioError(faults)
        pairs = MappingProxyType(dict(links or {}))
        set_fields(self, models=MappingProxyType(kept), link=link or Link(), links=pairs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hosts) and self._facts() == other._facts()

    def __hash__(self) -> int:
        return hash(self._facts())

    def __reduce__(self) -> tuple[Any, ...]:
        return Hosts, (dict(self.models), self.link, dict(self.links))

    def _facts(self) -> tuple[Any, ...]:
        return tuple(self.models.items()), self.link, tuple(self.links.items())

    def __bool__(self) -> bool:
        return bool(self.models)

    def host_by_model(self) -> dict[str, str]:
        """Return the host of each model."""
        return {name: host for host, names in self.models.items() for name in names}

    def between(self, source: str, target: str) -> Link:
        """Return the link from one host to another."""
        return self.links.get((source, target), self.link)

    def faults(self, models: Iterable[str]) -> list[Fault]:
        """Return what does not fit the models of a scenario: names it has not, models on no host."""
        known, placed = list(models), self.host_by_model()
        found = [
            Fault(f"there is no model `{name}`", f"hosts.{host}", "", suggest_nearest(name, known))
            for name, host in placed.items()
            if name not in known
        ]
        nowhere = [name for name in known if name not in placed]
        if nowhere and not found:  # a misspelt name leaves its model on none
            hint = f"add it to one of {list_names(self.models, 8)}"
            what = f"{list_names(nowhere, 8)} is on no host"
            found.append(Fault(what, "hosts", "every model on a host", hint))
        return found

    @staticmethod
    def of(written: Hosts | Mapping[str, Any]) -> Hosts:
        """Return hosts from what was written: `{"plant": ["left"], "lab": ["right"]}`."""
        if isinstance(written, Hosts):
            return written
        if not isinstance(written, Mapping):
            raise ScenarioError(f"hosts cannot be {written!r:.60}", "hosts", '{"plant": ["left"]}')
        return Hosts(written)
