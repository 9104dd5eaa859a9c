"""Ports: the inputs and outputs of a model, with their units and start values; patterns of their paths.

In:  texts such as `force [N] = 0.5`
Out: frozen data
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from typing import Literal, TypeAlias, get_args

from hocket.errors import ScenarioError
from hocket.model.arguments import (
    as_texts,
    expect,
    expect_flags,
    expect_texts,
    is_flag,
    is_number,
    is_one_of,
    set_fields,
)

Reactivity: TypeAlias = Literal["reactive", "delayed"]
PortType: TypeAlias = Literal["real", "integer", "boolean", "enumeration", "clock"]

_TYPES, _REACTIVITIES = get_args(PortType), get_args(Reactivity)
INDICES = re.compile(r"\[\d+(?:,\s*\d+)*\]")
"""Those of one number of an array, `x[1]`: part of a name, not a wildcard."""
_PORT = re.compile(r"\s*([^\s\[\]=]+)\s*(?:\[([^\]]*)\])?\s*(?:=\s*(\S+))?\s*")


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output: `Port("force", "N")`, or read from text: `Port.of("force [N] = 0.5")`."""

    name: str
    unit: str = ""
    start: float | None = None
    """Of an input: its value while nothing drives it."""
    feedthrough: tuple[str, ...] = ()
    """Of an output: the inputs it reacts to at once."""
    type: PortType = "real"
    """What its numbers mean; all travel as float64, whole numbers exactly up to 2^53."""
    held: bool = False
    """Of a real: it changes at events only. Like what is not a real, it is never extrapolated."""
    reactivity: Reactivity | None = None
    """Of an input: it takes a step with the value at its end (reactive) or at its start (delayed), and a
    plan that gives it another is refused; None: whichever the plan says."""
    event: bool = False
    """It has a value at single instants only, and is absent between them. A clock is an event without one."""

    def __post_init__(self) -> None:
        expect_texts(name=self.name, unit=self.unit)
        whole_or_real = self.start is None or is_flag(self.start) or is_number(self.start)
        expect(whole_or_real, "start", self.start, "a finite number, or None", where=f"port `{self.name}`")
        expect(is_one_of(self.type, _TYPES), "type", self.type, ", ".join(_TYPES))
        expect_flags(held=self.held, event=self.event)
        if self.type == "clock":
            set_fields(self, event=True)
        known = self.reactivity is None or is_one_of(self.reactivity, _REACTIVITIES)
        expect(known, "reactivity", self.reactivity, f"{', '.join(_REACTIVITIES)}, or None")
        set_fields(self, feedthrough=as_texts(self.feedthrough, "feedthrough", "names of inputs"))

    @property
    def discrete(self) -> bool:
        """Whether it jumps from value to value."""
        return self.held or self.event or self.type != "real"

    @staticmethod
    def of(written: str | Port) -> Port:
        """Return the port that a text such as `force [N]` or `x [m] = 1.0` describes."""
        if isinstance(written, Port):
            return written
        match = _PORT.fullmatch(written) if isinstance(written, str) else None
        if match is None:
            raise ScenarioError(f"`{written}` is not a port", expected='text such as "force [N]"')
        try:
            start = float(match[3]) if match[3] else None
        except ValueError:
            start = math.nan
        if start is not None and not math.isfinite(start):
            where, expected = f"port `{written}`", "a finite number, such as 0.5"
            raise ScenarioError(f"`{match[3]}` is not a start value", where, expected)
        return Port(match[1], (match[2] or "").strip(), start)


PortLike: TypeAlias = str | Port


def parse_value_ports(written: Iterable[PortLike], where: str) -> tuple[Port, ...]:
    """Return ports of a model that neither emits events nor takes them; raises ScenarioError for events."""
    ports = parse_ports(written)
    refuse_events(ports, where)
    return ports


def refuse_events(ports: Iterable[Port], where: str) -> None:
    """Raise ScenarioError if one of the ports is an event or a clock."""
    for port in ports:
        if port.event:
            kind = "a clock" if port.type == "clock" else "an event"
            what = f"`{port.name}` is {kind}, and {where} has values only"
            hint = "a class with due(), react() and commit() has events, and a `Devs` or a `SimPy`"
            raise ScenarioError(what, where, "a port that always has a value", hint)


def parse_ports(written: Iterable[PortLike]) -> tuple[Port, ...]:
    """Return ports from texts or ports."""
    if isinstance(written, str):
        raise ScenarioError(f"ports are a list, not the text `{written}`", expected=f'["{written}"]')
    if not isinstance(written, Iterable):
        raise ScenarioError(f"ports are a list, not {written!r:.60}", expected='["force [N]"]')
    return tuple(Port.of(port) for port in written)


def is_pattern(text: str) -> bool:
    """Return whether a text stands for all paths that match it; the indices of `x[1]` are not a wildcard."""
    return any(sign in INDICES.sub("", text) for sign in "*?[")


@lru_cache(256)
def compile_patterns(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Return what matches every path that one of the patterns matches."""
    plain = (INDICES.sub(lambda indices: f"[[]{indices[0][1:]}", pattern) for pattern in patterns)
    return re.compile("|".join(map(translate, plain)) or r"(?!)")


def matches(path: str, *patterns: str) -> bool:
    """Return whether one of the patterns matches a path: `*.x`, `car.?heel`, `tank.level[2]`."""
    return compile_patterns(patterns).match(path) is not None
