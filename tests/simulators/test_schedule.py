"""Schedules: the clock, the day of the week, holidays, summer time."""

from __future__ import annotations

import numpy as np
import pytest

import hocket as hk
from hocket.errors import ScenarioError, SimulatorError
from hocket.files import toml
from hocket.model.ports import Port

HOUR, DAY = 3600.0, 86400.0
OFFICE = {"weekdays": {"06:00": 21.0, "22:00": 16.0}, "weekend": 16.0}


def value(model, t):
    source = model.open()
    source.start(t)
    return float(source.output(t, np.zeros((1, 0)))[0])


def test_days_of_the_week():
    heating = hk.Schedule({"T [degC]": OFFICE}, "2024-01-01")  # a Monday
    assert heating.outputs == (Port("T", "degC"),)
    for day in range(14):
        held = 21.0 if day % 7 < 5 else 16.0
        assert value(heating, day * DAY + 6 * HOUR - 1) == 16.0
        assert value(heating, day * DAY + 6 * HOUR) == held
        assert value(heating, day * DAY + 22 * HOUR - 1) == held
        assert value(heating, day * DAY + 22 * HOUR) == 16.0


def test_a_value_holds_beyond_midnight_and_before_the_origin():
    night = hk.Schedule({"on": {"daily": {"05:00": 0, "23:00": 1}}}, "2024-01-01 02:00")
    assert [value(night, hour * HOUR) for hour in (0, 2.5, 3, 20, 21, 26)] == [1, 1, 0, 0, 1, 1]


def test_what_is_more_specific_counts():
    rules = {"daily": 1, "weekend": 2, "sunday": 3, "holidays": {"12:00": 4}}
    made = hk.Schedule({"y": rules}, "2024-12-20", ["2024-12-25"])  # a Friday
    assert [value(made, day * DAY + 13 * HOUR) for day in range(7)] == [1, 2, 3, 1, 1, 4, 1]
    assert value(made, 5 * DAY + 11 * HOUR) == 1  # until noon that of the day before


def test_summer_time():
    """On 2024-03-31 the clock of Berlin goes from 2 to 3: 06:00 is five hours after midnight."""
    berlin = hk.Schedule({"T": {"daily": {"06:00": 21, "22:00": 16}}}, "2024-03-30 00:00 Europe/Berlin")
    assert [value(berlin, t * HOUR) for t in (6, 28.9, 29, 44.9, 45)] == [21, 16, 21, 21, 16]
    autumn = hk.Schedule({"T": {"daily": {"06:00": 21, "22:00": 16}}}, "2024-10-27 00:00 Europe/Berlin")
    assert [value(autumn, t * HOUR) for t in (6.9, 7)] == [16, 21]
    plain = hk.Schedule({"T": {"daily": {"06:00": 21, "22:00": 16}}}, "2024-03-30")
    assert [value(plain, t * HOUR) for t in (29.9, 30)] == [16, 21]
    gap = hk.Schedule(
        {"T": {"daily": {"00:00": 0, "02:30": 1, "03:00": 2}}}, "2024-03-31 00:00 Europe/Berlin"
    )
    assert [value(gap, t * HOUR) for t in (1.99, 2)] == [0, 2]


def test_several_outputs_change_by_themselves():
    made = hk.Schedule(
        {"a": {"daily": {"06:00": 1, "12:00": 0}}, "b": {"daily": {"09:00": 5, "10:00": 0}}}, "2024-01-01"
    )
    source = made.open()
    source.start(0.0)
    seen = [tuple(source.output(t * HOUR, np.zeros((1, 0)))) for t in (0, 6, 9, 10, 12)]
    assert seen == [(0, 0), (1, 0), (1, 5), (1, 0), (0, 0)]


def test_a_run_meets_the_changes_and_ends_with_the_schedule(tmp_path):
    made = hk.Schedule({"T": OFFICE}, "2024-01-01", days=2)
    level = hk.Composite(hk.Scenario({"s": made}), "4 h")
    t, x = hk.run(level, "2 d")["s.T"]
    assert x[t == 6 * HOUR].tolist() == [16.0, 21.0]  # between two steps: before and after
    with pytest.raises(SimulatorError, match="no value at t"):
        hk.run(level, "3 d")


def test_files_hold_schedules(tmp_path):
    made = hk.Schedule(
        {
            "T [degC]": OFFICE | {"holidays": 15.0},
            "people present": {"daily": {"08:00": 1, "18:00": 0}, "holidays": 0},
        },
        "2024-01-01 00:00 Europe/Berlin", ["2024-12-25", "2024-01-01"], days=400,
    )  # fmt: skip
    toml.write(hk.Experiment(hk.Composite(hk.Scenario({"s": made}), "1 h"), stop="1 d"), tmp_path / "s.toml")
    (again,) = toml.read(tmp_path / "s.toml").composite.scenario.models.values()
    assert type(again) is hk.Schedule
    assert again == made
    assert again.holidays == ("2024-01-01", "2024-12-25")
    assert "[0." not in (tmp_path / "s.toml").read_text()  # the rules, not the rows


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (({"y": {"weekdays": 1}}, "2024-01-01"), "no values for saturday(.|\n)*no values for sunday"),
        (({"y": {"mondays": 1, "daily": 0}}, "2024-01-01"), "did you mean `monday`"),
        (({"y": {"daily": {"24:00": 1}}}, "2024-01-01"), "`24:00` of daily of `y` is not a time of day"),
        (({"y": {"daily": {"6:00": "warm"}}}, "2024-01-01"), "`6:00`"),
        (({"y": {"daily": {"06:00": "warm"}}}, "2024-01-01"), "has no number"),
        (({"y": {"daily": {"06:00": 1, "06:00:00": 2}}}, "2024-01-01"), "stands twice"),
        (({"y": {"daily": {}}}, "2024-01-01"), "cannot be {}"),
        (({"y": {"daily": 1}}, "2024-01-01", ["2024-12-25"]), "no values for holidays"),
        (({"y": {"daily": 1, "holidays": 0}}, "2024-01-01"), "and there are none"),
        (({"y": {"daily": 1, "holidays": 0}}, "2024-01-01", ["25.12."]), "`25.12.` is not a date"),
        (({"y": {"daily": 1}}, "soon"), "`soon` is not a moment"),
        (({}, "2024-01-01"), "`profiles` cannot be"),
    ],
)
def test_schedules_that_make_no_sense(arguments, words):
    with pytest.raises(ScenarioError, match=words):
        hk.Schedule(*arguments)
