"""Files and frames as they come: dates, zones, separators, units, spaces; nothing is misread in silence."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest

import hocket as hk
from hocket.errors import FileError, ScenarioError
from hocket.files import toml
from hocket.model.ports import Port

U = np.zeros((1, 0))


@pytest.fixture
def file(tmp_path):
    def write(text, name="drive.csv"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def rows(model):
    source = model.open()
    return list(zip(source.times, source.rows, strict=True))


def test_both_readers_give_the_same_bits(tmp_path, monkeypatch):
    from hocket.simulators.text_columns import TextColumns

    rng = np.random.default_rng(5)
    table = np.column_stack(
        [
            np.sort(rng.uniform(0, 1e3, 2000)),
            rng.normal(size=(2000, 3)) * 10.0 ** rng.integers(-300, 300, (2000, 3)),
        ]
    )
    pd.DataFrame(table, columns=["time [min]", "a", "b [m]", "wheel speed [rad/s]"]).to_csv(
        tmp_path / "x.csv", index=False
    )
    fast = hk.Csv(tmp_path / "x.csv").open()
    monkeypatch.setattr(TextColumns, "_read_fast", lambda *_: None)
    slow = hk.Csv(tmp_path / "x.csv").open()
    assert (fast.times, fast.rows) == (slow.times, slow.rows)
    np.testing.assert_array_equal(np.array(fast.rows), table[:, 1:])


def test_dates_with_offsets(file):
    text = "time;T [degC]\n2024-03-31T01:00:00+01:00;1\n2024-03-31T03:00:00+02:00;2\n2024-03-31T02:00:00Z;3\n"
    model = hk.Csv(file(text), origin="2024-03-31T00:00:00Z")
    assert rows(model) == [(0.0, [1.0]), (3600.0, [2.0]), (7200.0, [3.0])]
    assert model.outputs == (Port("T", "degC"),)


def test_dates_without_a_zone_need_an_origin_without_one(file):
    path = file("time,x\n2024-01-01 06:00,1\n2024-01-01 06:00:00.25,2\n")
    assert rows(hk.Csv(path, origin="2024-01-01")) == [(21600.0, [1.0]), (21600.25, [2.0])]
    with pytest.raises(FileError, match=r'which date is time 0(.|\n)*origin="2024-01-01T06:00:00"'):
        hk.Csv(path).open()
    with pytest.raises(FileError, match=r"have no time zone, and the origin has one(.|\n)*time_zone="):
        hk.Csv(path, origin="2024-01-01 00:00 UTC").open()
    zoned = file("time,x\n2024-01-01T06:00Z,1\n", "zoned.csv")
    with pytest.raises(FileError, match="have a time zone, and the origin has none"):
        hk.Csv(zoned, origin="2024-01-01").open()


@pytest.mark.parametrize("fast", [True, False])
def test_clocks_that_are_put_back(file, monkeypatch, fast):
    """The hour from 02:00 comes twice on 2024-10-27 in Berlin: quarters of an hour go on without a gap."""
    from hocket.simulators.text_columns import TextColumns

    if not fast:
        monkeypatch.setattr(TextColumns, "_read_fast", lambda *_: None)
    hours = ["01:45", *[f"02:{m:02}" for m in (0, 15, 30, 45)] * 2, "03:00"]
    text = "time,x\n" + "".join(f"2024-10-27 {hour},{k}\n" for k, hour in enumerate(hours))
    model = hk.Csv(file(text), origin="2024-10-27 00:00", time_zone="Europe/Berlin")
    assert [t for t, _ in rows(model)] == [6300.0 + 900 * k for k in range(10)]
    hourly = "time,x\n" + "".join(f"2024-10-27 {hour}:00,0\n" for hour in ("01", "02", "02", "03"))
    model = hk.Csv(file(hourly, "h.csv"), origin="2024-10-27", time_zone="Europe/Berlin")
    assert [t for t, _ in rows(model)] == [3600.0, 7200.0, 10800.0, 14400.0]
    once = "time,x\n" + "".join(f"2024-10-27 {hour}:00,0\n" for hour in ("01", "02", "03"))
    with pytest.raises(FileError, match=r"02:00:00 comes twice in Europe/Berlin, and once in the file"):
        hk.Csv(file(once, "once.csv"), origin="2024-10-27", time_zone="Europe/Berlin").open()
    with pytest.raises(FileError, match=r"time decreases(.|\n)*line 7(.|\n)*time_zone="):
        hk.Csv(file(text, "plain.csv"), origin="2024-10-27").open()


def test_clocks_that_are_put_forward(file):
    path = file("time,x\n2024-03-31 01:30,1\n2024-03-31 03:30,2\n")
    model = hk.Csv(path, origin="2024-03-31", time_zone="Europe/Berlin")
    assert [t for t, _ in rows(model)] == [5400.0, 9000.0]
    with pytest.raises(FileError, match="does not exist in Europe/Berlin"):
        hk.Csv(
            file("time,x\n2024-03-31 02:30,1\n", "gap.csv"), origin="2024-03-31", time_zone="Europe/Berlin"
        ).open()
    with pytest.raises(ScenarioError, match="no time zone `Mars/Olympus`"):
        hk.Csv(path, time_zone="Mars/Olympus")


def test_dates_as_people_write_them(file):
    path = file("time;T\n31.01.2024 08:00;1,5\n31.01.2024 09:00;-2,25e1\n")
    model = hk.Csv(path, origin="2024-01-31", time_format="%d.%m.%Y %H:%M", decimal=",")
    assert rows(model) == [(28800.0, [1.5]), (32400.0, [-22.5])]
    with pytest.raises(FileError, match=r"`31.01.2024 08:00`(.|\n)*time_format="):
        hk.Csv(path, origin="2024-01-31").open()
    with pytest.raises(FileError, match=r'`1,5` in column `T`(.|\n)*decimal=","'):
        hk.Csv(path, origin="2024-01-31", time_format="%d.%m.%Y %H:%M").open()
    with pytest.raises(FileError, match=r"`1.234,5` in column `T`"):  # a point for thousands is not read over
        hk.Csv(file("time;T\n0;1.234,5\n", "k.csv"), decimal=",").open()


def test_dates_and_numbers_are_not_mixed(file):
    with pytest.raises(FileError, match=r"`2024-01-01` is not a time as those before it(.|\n)*line 3"):
        hk.Csv(file("time,x\n0,1\n2024-01-01,2\n"), origin="2024-01-01").open()
    text = "time,x\n2024-01-01T00:00,1\n2024-01-01T01:00Z,2\n"
    with pytest.raises(FileError, match=r"not a time as those before it(.|\n)*line 3"):
        hk.Csv(file(text, "z.csv"), origin="2024-01-01").open()


def test_a_row_of_units(file):
    path = file("time,wheel speed,force\nms,[rad/s],N\n0,1,5\n1000,2,6\n")
    model = hk.Csv(path)
    assert model.outputs == (Port("wheel speed", "rad/s"), Port("force", "N"))
    assert rows(model) == [(0.0, [1.0, 5.0]), (1.0, [2.0, 6.0])]
    with pytest.raises(FileError, match="has the unit `N` in the row below"):
        hk.Csv(file("time,force [kN]\ns,N\n0,1\n", "two.csv"))
    with pytest.raises(FileError, match=r"`hot` in column `T`(.|\n)*line 2"):  # no unit: not a row of them
        hk.Csv(file("time,T\n0,hot\n", "word.csv")).open()
    with pytest.raises(FileError, match=r"`s` in column `time`(.|\n)*line 2"):
        hk.Csv(file("time,T\ns,hotness\n0,1\n", "odd.csv")).open()


def test_names_with_spaces_are_ports(file, tmp_path):
    source = hk.Csv(file("time,wheel speed [m/s]\n0,1\n1,3\n"))
    level = hk.Composite(hk.Scenario({"log": source, "g": hk.Gain(2.0)}, {"g.u": "log.wheel speed"}), "0.5 s")
    toml.write(hk.Experiment(level, stop=1), tmp_path / "log.toml")
    again = hk.run(tmp_path / "log.toml")
    np.testing.assert_allclose(again["log.wheel speed"].values, [1, 2, 3])
    assert again.to_pandas().columns[0] == "log.wheel speed"
    again.to_csv(tmp_path / "again.csv", ["log.*"])
    assert hk.Csv(tmp_path / "again.csv").outputs == (Port("log.wheel speed", "m/s"),)


def test_underscores_and_empty_cells_are_not_numbers(file):
    for cell in ("1_000", "", "inf", "NaN", "0x10", "1,000"):
        text = f'time,x\n0,1\n1,"{cell}"\n'
        with pytest.raises(FileError, match="line 3"):
            hk.Csv(file(text)).open()


def test_parquet(tmp_path):
    frame = pd.DataFrame(
        {"time [ms]": [0, 500, 1000], "wheel speed [m/s]": [1, 2, 3], "on": [True, False, True]}
    )
    frame.to_parquet(tmp_path / "x.parquet")
    model = hk.Csv(tmp_path / "x.parquet", types={"on": "boolean"})
    assert rows(model) == [(0.0, [1.0, 1.0]), (0.5, [2.0, 0.0]), (1.0, [3.0, 1.0])]
    assert model.outputs[0] == Port("wheel speed", "m/s")


def test_parquet_of_a_run_and_of_dates(tmp_path):
    run = hk.run(hk.Composite(hk.Scenario({"s": hk.Table([0, 1], {"x [m]": [0.0, 2.0]})}), "0.5 s"), 1)
    run.to_parquet(tmp_path / "run.parquet")
    source = hk.Csv(tmp_path / "run.parquet")
    assert (source.outputs, rows(source)[1]) == ((Port("s.x", "m"),), (0.5, [1.0]))
    dates = pd.date_range("2024-10-27 01:00", periods=4, freq="h", tz="Europe/Berlin")
    pd.DataFrame({"when": dates, "x": range(4)}).to_parquet(tmp_path / "z.parquet")
    model = hk.Csv(tmp_path / "z.parquet", "when", origin="2024-10-27 00:00 Europe/Berlin")
    assert [t for t, _ in rows(model)] == [3600.0, 7200.0, 10800.0, 14400.0]
    plain = pd.DataFrame({"when": dates.tz_localize(None), "x": range(4)})
    plain.to_parquet(tmp_path / "p.parquet")
    local = hk.Csv(tmp_path / "p.parquet", "when", origin="2024-10-27", time_zone="Europe/Berlin")
    assert [t for t, _ in rows(local)] == [3600.0, 7200.0, 10800.0, 14400.0]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"time": [0.0, 1.0], "x": [1.0, None]}, "cells? without a value|has nan"),
        ({"time": [0.0, 1.0], "x": ["a", "b"]}, "holds (large_)?string"),
        ({"time": [1.0, 0.0], "x": [1.0, 2.0]}, "time decreases(.|\n)*row 1"),
        ({"time": [0.0, 1.0], "x": [1.0, np.inf]}, "has inf in row 1"),
        ({"tiem": [0.0], "x": [1.0]}, "no column `time`"),
    ],
)
def test_parquet_that_makes_no_sense(tmp_path, columns, words):
    pd.DataFrame(columns).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(FileError, match=words):
        hk.Csv(tmp_path / "x.parquet").open()


def test_files_keep_how_they_are_read(file, tmp_path):
    path = file("when;T [degC]\n31.03.2024 03:30;1,5\n")
    options = {"time_format": "%d.%m.%Y %H:%M", "decimal": ",", "time_zone": "Europe/Berlin"}
    source = hk.Csv(path.name, "when", origin="2024-03-31", folder=tmp_path, **options)
    level = hk.Composite(hk.Scenario({"log": source}), "1 s")
    toml.write(hk.Experiment(level, stop=1), tmp_path / "log.toml")
    (again,) = toml.read(tmp_path / "log.toml").composite.scenario.models.values()
    assert rows(again) == [(9000.0, [1.5])]
    assert again.origin == "2024-03-31 00:00:00 Europe/Berlin"


def test_a_frame_is_a_table():
    frame = pd.DataFrame(
        {"force [N]": [0.0, 2.0], "wheel speed": [1, 3], "on": [True, False]}, index=[0.0, 1.0]
    )
    frame.attrs["units"] = {"wheel speed": "rad/s"}
    made = hk.Table(frame)
    assert made.outputs == (Port("force", "N"), Port("wheel speed", "rad/s"), Port("on", type="boolean"))
    assert rows(made) == [(0.0, [0.0, 1.0, 1.0]), (1.0, [2.0, 3.0, 0.0])]
    dated = frame.set_axis(pd.date_range("2024-03-31 01:00", periods=2, freq="h", tz="Europe/Berlin"))
    assert [t for t, _ in rows(hk.Table(dated, origin=datetime(2024, 3, 31, tzinfo=UTC)))] == [0.0, 3600.0]


def test_a_frame_of_a_run_drives_another():
    first = hk.run(hk.Composite(hk.Scenario({"s": hk.Table([0, 1], {"x [m]": [0.0, 2.0]})}), "0.5 s"), 1)
    again = hk.Table(first.to_pandas(rate="outermost"))
    assert (again.outputs, rows(again)) == ((Port("s.x", "m"),), [(0.0, [0.0]), (0.5, [1.0]), (1.0, [2.0])])


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pd.DataFrame({"a": [1.0, np.nan]}), r"not a finite number(.|\n)*outermost"),
        (pd.DataFrame({"a": ["1", "2"]}), "holds"),
        (pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), "share a name"),
        (pd.DataFrame([[1.0, 2.0]]), "`0` cannot name a port"),
        (pd.DataFrame({"a": [1.0]}, index=pd.to_datetime(["2024-01-01"])), "which date is time 0"),
        (pd.DataFrame({"a": [1.0, 2.0]}, index=[1.0, 0.0]), "decrease"),
        (pd.DataFrame({"a": [1.0, 2.0]}, index=["x", "y"]), "is not a number"),
        ([0, 1], "has no columns"),
    ],
)
def test_frames_that_make_no_sense(frame, words):
    with pytest.raises(ScenarioError, match=words):
        hk.Table(frame)


def weather(folder, hours=8760, change=lambda line, fields: fields):
    """A made up year: the temperature is the number of the hour, the sun 500 W/m2 in the hour before noon."""
    lines = ["LOCATION,Nowhere,-,XX,made up,000000,50.0,10.0,1.0,100.0"] + [f"HEADER {k}" for k in range(7)]
    days = pd.date_range("2023-01-01", periods=hours // 24, freq="D")
    for number in range(hours):
        day, hour = days[number // 24], number % 24 + 1
        fields = [str(each) for each in (2005, day.month, day.day, hour, 60, "?9")] + ["0"] * 29
        fields[6], fields[9], fields[14] = str(number / 100), "100000", "500" if hour == 12 else "0"
        lines.append(",".join(change(number, fields)))
    (folder / "year.epw").write_text("\n".join(lines) + "\n")
    return folder / "year.epw"


def test_weather(tmp_path):
    path = weather(tmp_path)
    source = hk.Csv(path, columns=["dry_bulb", "direct_normal"])
    assert source.outputs == (Port("dry_bulb", "degC"), Port("direct_normal", "W/m^2"))
    times, values = map(np.array, (source.open().times, source.open().rows))
    assert (times[0], times[-1], len(times)) == (0.0, 8760 * 3600.0, 17521)
    at = dict(zip(times, values, strict=True))
    assert at[3600.0][0] == 0.0  # the first hour ends there
    assert at[7 * 3600.0][0] == 0.06
    assert at[0.0][0] == at[8760 * 3600.0][0] == 87.59
    assert at[11.5 * 3600.0][1] == 500.0
    # the energy of a day is that of its hours: 500 W for one hour
    day = values[:49, 1]
    assert np.trapezoid(day, dx=0.5) == pytest.approx(500.0)
    shifted = hk.Csv(path, columns=["dry_bulb"], origin="2024-07-01 06:00").open()
    assert dict(zip(shifted.times, shifted.rows, strict=True))[3600.0] == [(181 * 24 + 6) / 100]
    hot = hk.Csv(path, columns={"T [degC]": "dry_bulb"})
    assert hot.outputs == (Port("T", "degC"),)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda k, f: [*f[:6], "99.9", *f[7:]] if k == 5 else f, "`dry_bulb` is missing(.|\n)*line 14"),
        (lambda k, f: [*f[:6], "warm", *f[7:]] if k == 5 else f, "`warm` for `dry_bulb`(.|\n)*line 14"),
        (lambda k, f: [*f[:3], "7", *f[4:]] if k == 5 else f, "the hour `7` stands where hour 6 should"),
        (lambda k, f: f[:9] if k == 5 else f, "9 fields"),
    ],
)
def test_weather_that_has_holes(tmp_path, change, words):
    with pytest.raises(FileError, match=words):
        hk.Csv(weather(tmp_path, 48, change), columns=["dry_bulb"]).open()
    (tmp_path / "odd.epw").write_text("time,x\n0,1\n")
    with pytest.raises(FileError, match="does not begin as a weather file"):
        hk.Csv(tmp_path / "odd.epw").open()


@pytest.mark.slow
def test_half_a_million_rows_are_read_at_once(tmp_path):
    t = np.arange(500_000) / 100
    pd.DataFrame({"time": t, "a": np.sin(t), "b": np.cos(t)}).to_csv(tmp_path / "x.csv", index=False)
    model, spent = hk.Csv(tmp_path / "x.csv"), []
    for _ in range(3):
        begin = time.process_time()
        source = model.open()
        spent.append(time.process_time() - begin)
    assert len(source.times) == 500_000
    assert source.output(1234.565, U) == pytest.approx([np.sin(1234.565), np.cos(1234.565)], abs=2e-5)
    assert min(spent) < 0.6  # 0.3 s on a quiet machine
