"""Crossings: an output passes a value, and that is an event.

In:  the path of an output, the value and the direction in which it is passed
Out: frozen data; planning makes a simulator of it that looks for the crossing
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

from hocket.errors import Fault, Place, ScenarioError
from hocket.model.arguments import check_names, choice_faults, is_number, is_text, set_fields
from hocket.model.clock import Duration, format_duration, seconds

Direction: TypeAlias = Literal["falling", "rising", "both"]
_EXAMPLE = '{"bounce": Crossing("ball.h", "falling")}'


@dataclass(frozen=True)
class Crossing:
    """An event where an output crosses the value `at`: `Crossing("ball.h", "falling")`.

    It counts where the output has gone down to `at - hysteresis / 2` from `at + hysteresis / 2` or above
    (falling), or up the same way (rising). Listed in a scenario as `bounce`, it has one output,
    `bounce.event`: present at the crossing, -1.0 falling and 1.0 rising. Steps end right behind the crossing,
    at most `tolerance` late; None: at the first place that time has for events.
    """

    output: str
    direction: Direction = "both"
    at: float = 0.0
    hysteresis: float = 0.0
    tolerance: Duration | None = None

    def __post_init__(self) -> None:
        faults = [*self._argument_faults()]
        if faults:
            raise ScenarioError(faults)
        within = None if self.tolerance is None else seconds(self.tolerance)
        set_fields(self, at=float(self.at), hysteresis=float(self.hysteresis), tolerance=within)

    def _argument_faults(self) -> Iterator[Fault]:
        where = f"crossing of `{self.output!s:.60}`"
        if not is_text(self.output) or "." not in self.output:
            what = f"`output` cannot be {self.output!r:.60}"
            yield Fault(what, Place(key="output", detail=where), "the path of an output: `ball.h`")
        yield from choice_faults("direction", self.direction, get_args(Direction), where)
        for name, value, fits, expected in (
            ("at", self.at, is_number(self.at), "a finite number"),
            (
                "hysteresis",
                self.hysteresis,
                is_number(self.hysteresis) and self.hysteresis >= 0.0,
                "a number from 0 on, in the unit of the output",
            ),
            ("tolerance", self.tolerance, _is_tolerance(self.tolerance), "a duration above 0, or None"),
        ):
            if not fits:
                shown = format_duration(value) if isinstance(value, Fraction) else f"{value!r:.60}"
                yield Fault(f"`{name}` cannot be {shown}", Place(key=name, detail=where), expected)


def _is_tolerance(given: Any) -> bool:
    try:
        return given is None or seconds(given) > 0
    except ValueError:
        return False


def named_crossings(crossings: Mapping[str, Crossing], models: Collection[str]) -> dict[str, Crossing]:
    """Return crossings by name; raises ScenarioError for what is not a crossing."""
    check_names(crossings, "crossing", _EXAMPLE, models)
    for name, each in crossings.items():
        if not isinstance(each, Crossing):
            what = f"`{name}` is not a crossing but {each!r:.60}"
            raise ScenarioError(what, "crossings", 'Crossing("ball.h", "falling")')
    return dict(crossings)
