"""Values by the clock and the day of the week: occupancy, set points, tariffs.

In:  profiles of days, a date that is time 0, holidays
Out: a Table of held values, with a jump at each change
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TypeAlias

import numpy as np

from hocket.errors import Fault, ScenarioError, collect_faults, raise_faults, suggest_nearest
from hocket.model.arguments import as_texts, expect, is_number, is_whole, set_fields
from hocket.model.calendar import Moment, format_moment, parse_moment
from hocket.model.protocols import Array
from hocket.simulators.column_files import split_heading
from hocket.simulators.sources import Table

Profile: TypeAlias = Mapping[str, float]
"""Values by the time of day from which on they hold."""

WEEK = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_GROUPS = {"weekdays": WEEK[:5], "weekend": WEEK[5:], "daily": WEEK}
HOLIDAYS = "holidays"
DAYS = (*WEEK, *_GROUPS, HOLIDAYS)
"""What a profile may be for; what is more specific counts."""
_LONGEST = 36_525


@dataclass(frozen=True, init=False, eq=False)
class Schedule(Table):
    """Values that change by the clock: `Schedule({"T [degC]": {"weekdays": {"06:00": 21, "22:00": 16}}})`.

    `profiles` has for each output its days: monday to sunday, weekdays, weekend, daily, holidays; what is
    more specific counts. A day has values by the time from which on they hold, until the next one, also
    beyond midnight; a number alone holds all day. `origin` is the date that is time 0. With a time zone in
    it ("2024-01-01 00:00 Europe/Berlin") clocks are put forward and back; without one they are not.
    `holidays` are dates. After `days` days the schedule ends, and a run that goes on is an error.
    """

    profiles: Mapping[str, Mapping[str, float | Profile]]
    origin: str
    holidays: tuple[str, ...]
    days: int

    def __init__(
        self,
        profiles: Mapping[str, Mapping[str, float | Profile]],
        origin: Moment,
        holidays: Iterable[str] = (),
        days: int = 3653,
    ):
        fits = isinstance(profiles, Mapping) and bool(profiles) and all(isinstance(n, str) for n in profiles)
        expect(fits, "profiles", profiles, 'days by output: {"T [degC]": {"daily": {"06:00": 21}}}')
        expect(is_whole(days, 1) and days <= _LONGEST, "days", days, f"a whole number from 1 to {_LONGEST}")
        start, free = parse_moment(origin, "origin"), _parse_dates(as_texts(holidays, "holidays"))
        columns: dict[str, list[tuple[float, float]]] = {}
        faults: list[Fault] = []
        for name, given in profiles.items():
            with collect_faults(faults):
                week = _read_week(given, name, bool(free))
                columns[name] = list(_changes(week, start, free, int(days)))
        raise_faults(faults)
        every = sorted({moment for column in columns.values() for moment, _ in column})
        after = np.searchsorted(every, 0.0, side="right")  # what holds at time 0 began before
        times = np.array([0.0, *every[after:]])
        values = np.column_stack([_held(column, times) for column in columns.values()])
        ports = [split_heading(name).as_port() for name in columns]
        super().__init__(times, values, "hold", ports, "error")
        kept = {name: dict(given) for name, given in profiles.items()}
        set_fields(self, profiles=kept, origin=format_moment(start), days=int(days))
        set_fields(self, holidays=tuple(sorted(day.isoformat() for day in free)))


def _parse_dates(written: Iterable[str]) -> set[date]:
    found, faults = set(), []
    for text in written:
        try:
            found.add(date.fromisoformat(text))
        except ValueError:
            faults.append(Fault(f"`{text}` is not a date", "holidays", 'dates such as "2024-12-25"'))
    raise_faults(faults)
    return found


def _read_week(given: object, name: str, has_holidays: bool) -> list[dict[time, float]]:
    """Return the profiles of Monday to Sunday, and of holidays last if there are any."""
    if not isinstance(given, Mapping):
        raise ScenarioError(f"`{name}` has no days", "profiles", 'days: {"daily": {"06:00": 21}}')
    faults = [
        Fault(f"`{day}` is not a day of `{name}`", "profiles", "", suggest_nearest(str(day), DAYS))
        for day in given
        if day not in DAYS
    ]
    read: dict[str, dict[time, float]] = {}
    for day, profile in given.items():
        with collect_faults(faults):
            read[day] = _read_profile(profile, f"{day} of `{name}`")
    week, misread = [], bool(faults)
    for day in WEEK:
        groups = [group for group, members in _GROUPS.items() if day in members]
        known = next((each for each in (day, *groups) if each in read), None)
        if known is None and not misread:
            faults.append(
                Fault(f"`{name}` has no values for {day}", "profiles", f"{day}, {' or '.join(groups)}")
            )
        week.append(read.get(known or "", {}))
    if has_holidays and HOLIDAYS not in read:
        faults.append(Fault(f"`{name}` has no values for holidays", "profiles", '"holidays" among its days'))
    if HOLIDAYS in read and not has_holidays:
        faults.append(Fault(f"`{name}` has values for holidays, and there are none", "holidays", "dates"))
    raise_faults(faults)
    return [*week, read.get(HOLIDAYS, {})]


def _read_profile(profile: object, whose: str) -> dict[time, float]:
    if is_number(profile):
        return {time(): float(profile)}  # type: ignore[arg-type]
    if not isinstance(profile, Mapping) or not profile:
        raise ScenarioError(f"{whose} cannot be {profile!r:.60}", "profiles", '21, or {"06:00": 21}')
    found: dict[time, float] = {}
    for written, value in profile.items():
        try:
            clock = time.fromisoformat(written)
        except (TypeError, ValueError):
            what = f"`{written}` of {whose} is not a time of day"
            raise ScenarioError(what, "profiles", "00:00 to 23:59, perhaps with seconds") from None
        if clock.tzinfo is not None or clock in found or not is_number(value):
            odd = "has a time zone" if clock.tzinfo else "stands twice" if clock in found else "has no number"
            raise ScenarioError(f"`{written}` of {whose} {odd}", "profiles", 'as in {"06:00": 21}')
        found[clock] = float(value)
    return dict(sorted(found.items()))


def _changes(
    week: list[dict[time, float]], start: datetime, free: set[date], days: int
) -> Iterator[tuple[float, float]]:
    """Yield when a value begins to hold, in seconds from the start, and the value; from the day before on."""
    zone = start.tzinfo
    begin = start.astimezone(UTC) if zone else start
    found: list[tuple[float, float]] = []
    for number in range(-1, days):
        day = start.date() + timedelta(days=number)
        profile = week[7 if day in free else day.weekday()]
        for clock, value in profile.items():
            moment = datetime.combine(day, clock, zone)
            apart = (moment.astimezone(UTC) if zone else moment) - begin
            found.append((apart.total_seconds(), value))
    # what should begin in an hour that is skipped begins at its end: with what stands after it
    earliest = np.minimum.accumulate(np.array([moment for moment, _ in found])[::-1])[::-1]
    for moment, (_, value) in zip(earliest.tolist(), found, strict=True):
        yield moment, value
    end = datetime.combine(start.date() + timedelta(days=days), time(), zone)
    yield ((end.astimezone(UTC) if zone else end) - begin).total_seconds(), found[-1][1]


def _held(column: list[tuple[float, float]], times: Array) -> Array:
    """Return the values that hold at times."""
    moments = np.array([moment for moment, _ in column])
    values: Array = np.array([value for _, value in column])
    return values[np.searchsorted(moments, times, side="right") - 1]
