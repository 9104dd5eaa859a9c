"""Moments of the calendar: what time zero of a run stands for, and what timestamps and schedules count from.

In:  texts such as "2024-01-01", "2024-01-01T06:00+01:00" or "2024-01-01 06:00 Europe/Berlin", or datetimes
Out: datetimes, with a time zone where one was named
"""

from __future__ import annotations

from datetime import date, datetime, time
from typing import TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from hocket.errors import ScenarioError

Moment: TypeAlias = str | datetime | date
_EXPECTED = 'a date, perhaps with a time and a zone: "2024-01-01", "2024-01-01 06:00 Europe/Berlin"'


def parse_moment(written: object, where: str) -> datetime:
    """Return the moment that a text, a date or a datetime means; raises ScenarioError for anything else.

    A moment without a time zone is read off a clock that is never changed: there is no summer time.
    """
    if isinstance(written, datetime):
        return written
    if isinstance(written, date):
        return datetime.combine(written, time())
    if not isinstance(written, str):
        raise ScenarioError(f"`{where}` cannot be {written!r:.60}", where, _EXPECTED)
    text, _, last = written.strip().rpartition(" ")
    named = bool(text) and last[:1].isalpha()
    try:
        moment = datetime.fromisoformat(text if named else written.strip())
    except ValueError:
        raise ScenarioError(f"`{written}` is not a moment", where, _EXPECTED) from None
    if not named:
        return moment
    if moment.tzinfo is not None:
        raise ScenarioError(f"`{written}` has two time zones", where, _EXPECTED)
    return moment.replace(tzinfo=time_zone(last, where))


def time_zone(name: str, where: str) -> ZoneInfo:
    """Return a time zone by its name, such as Europe/Berlin; raises ScenarioError if it is not known."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        hint = "pip install tzdata, if the system has no time zones"
        what = f"there is no time zone `{name}`"
        raise ScenarioError(what, where, "a name such as Europe/Berlin or UTC", hint) from None


def format_moment(moment: datetime) -> str:
    """Return a moment as text that `parse_moment` reads back."""
    zone = moment.tzinfo
    if isinstance(zone, ZoneInfo) and zone.key:
        return f"{moment.replace(tzinfo=None).isoformat(' ')} {zone.key}"
    return moment.isoformat(" ")
