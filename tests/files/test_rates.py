"""Ports of all rates on one axis, over spans of time, and in other formats: nothing is lost on the way."""

from __future__ import annotations

import io
import sys
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

import hocket as hk
from hocket.engine.recording import EVENT, HELD, MOVING, ArrowRecorder, SampleTable
from hocket.errors import ScenarioError
from hocket.files.rates import Rate, Rows, bin_column, grid_times, union_rows, values_at
from hocket.files.run_folder import RunFolder, open_run
from systems import EXAMPLES

NAN = np.nan


def recorded(folder: Path, *tables: tuple[SampleTable, list[list[float]]], **facts: str) -> hk.Run:
    made = RunFolder.create(folder, "tables")
    made.add(facts)
    recorder = ArrowRecorder(made.path)
    recorder.open([table for table, _ in tables])
    for number, (_, rows) in enumerate(tables):
        recorder.write(number, np.array(rows, dtype=float))
    recorder.close()
    return made.end("finished", reached=4)


@pytest.fixture
def run(tmp_path: Path) -> hk.Run:
    """x moves by 1 per second at 1 s, y is held at 2 s and jumps at an instant, e is an event at 2 s."""
    outer = SampleTable("", ("x", "e"), ("m", ""), (MOVING, EVENT))
    slow = SampleTable("slow", ("slow.y",), ("K",), (HELD,))
    return recorded(
        tmp_path / "run",
        (outer, [[0, 0, NAN], [1, 1, NAN], [2, 2, NAN], [2, 2, 7], [3, 3, NAN], [4, 4, NAN]]),
        (slow, [[0, 10], [2, 10], [2, 20], [4, 20]]),
    )


def test_all_ports_of_all_levels_are_in_the_frame() -> None:
    car = hk.run(EXAMPLES / "car.toml")
    frame = car.to_pandas()
    assert tuple(frame.columns) == car.ports
    assert len(frame.columns) == 7
    for port in car.ports:  # each at its own rate, to the bit
        own = frame[port].dropna()
        np.testing.assert_array_equal(own.index, car[port].t)
        np.testing.assert_array_equal(own, car[port].values)
    assert frame.attrs["units"]["chassis.axle.wheel.x"] == "mm"
    outer = car.to_pandas(rate="outermost")
    assert outer.shape == (401, 7)
    assert not outer.isna().any().any()
    np.testing.assert_array_equal(
        outer["chassis.axle.strut.force"], car["chassis.axle.strut.force"].values[::20]
    )
    assert car.to_pandas(rate="2 ms").shape == (2001, 7)
    np.testing.assert_array_equal(car.to_pandas(rate="2 ms")["chassis.body.x"], car["chassis.body.x"].values)
    kinds = dict(zip(car.ports, (kind for table in car.tables for kind in table.kinds), strict=True))
    assert {port for port, kind in kinds.items() if kind == HELD} == {"skyhook.force"}


def test_the_union_has_a_row_for_each_instant_of_any_rate(run: hk.Run) -> None:
    frame = run.to_pandas()
    assert frame.index.tolist() == [0, 1, 2, 2, 3, 4]
    np.testing.assert_array_equal(frame["x"], [0, 1, 2, 2, 3, 4])
    np.testing.assert_array_equal(frame["slow.y"], [10, NAN, 10, 20, NAN, 20])
    np.testing.assert_array_equal(frame["e"], [NAN, NAN, NAN, 7, NAN, NAN])
    filled = run.to_pandas(interpolate=True)
    np.testing.assert_array_equal(filled["slow.y"], [10, 10, 10, 20, 20, 20])
    np.testing.assert_array_equal(filled["e"], frame["e"])  # an event is never carried on
    assert list(run.to_pandas(ports=["slow.y", "x"]).columns) == ["slow.y", "x"]


def test_other_rates_show_what_is_after_events_and_fill_by_kind(run: hk.Run) -> None:
    frame = run.to_pandas(rate="500 ms")
    assert frame.index.tolist() == [0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4]
    np.testing.assert_array_equal(frame["x"], frame.index)
    np.testing.assert_array_equal(frame["slow.y"], [10] * 4 + [20] * 5)
    np.testing.assert_array_equal(frame["e"], [NAN] * 4 + [7] + [NAN] * 4)
    bare = run.to_pandas(rate="500 ms", interpolate=False)
    assert bare["x"].notna().tolist() == [True, False] * 4 + [True]


def test_nothing_is_known_outside_of_what_was_recorded() -> None:
    rate = Rate(np.array([1.0, 2.0]), np.array([[5.0], [6.0]]), (MOVING,))
    t = np.array([0.5, 1.0, 1.25, 2.0, 2.5])
    np.testing.assert_array_equal(values_at(rate, Rows.after(t), True)[:, 0], [NAN, 5, 5.25, 6, NAN])
    none = Rate(np.empty(0), np.empty((0, 1)), (MOVING,))
    assert np.isnan(values_at(none, Rows.after(t), True)).all()


def test_a_grid_meets_the_rows_of_its_times() -> None:
    """Sums of 0.1 miss 0.8 by a rounding: what is held there would be that of before."""
    t = grid_times(Fraction(0), Fraction(1, 10), Fraction(3))
    assert t.tolist() == [float(Fraction(k, 10)) for k in range(31)]
    odd = grid_times(Fraction(1, 3), Fraction(1, 10**9 + 7), Fraction(1, 3) + Fraction(5, 10**9 + 7))
    assert odd.tolist() == [float(Fraction(1, 3) + Fraction(k, 10**9 + 7)) for k in range(6)]
    fine = grid_times(Fraction(1, 3), Fraction(1, 10**17 + 3), Fraction(1, 3) + Fraction(2, 10**17 + 3))
    assert len(fine) == 3  # beyond 2^53: one by one


def test_a_mean_is_over_time_not_over_rows(tmp_path: Path) -> None:
    """Steps of a controlled run crowd where it is fast: the mean of x = t over 10 s is 5 all the same."""
    t = [0, *np.linspace(9, 10, 50), 10]
    made = recorded(tmp_path / "run", (SampleTable("", ("x",), ("W",), (MOVING,)), [[s, s] for s in t]))
    whole = made.resample("10 s")
    assert whole["x"].tolist() == [pytest.approx(5.0, abs=1e-12)]
    halves = made.resample("5 s", "integral")
    np.testing.assert_allclose(halves["x"], [12.5, 37.5], rtol=1e-13)
    assert halves.attrs["units"] == {"x": "W*s"}
    thirds = made.resample("3 s", "max")  # the last one is filled in part
    assert thirds.index.tolist() == [0, 3, 6, 9]
    np.testing.assert_allclose(thirds["x"], [3, 6, 9, 10])
    np.testing.assert_allclose(made.resample("3 s")["x"], [1.5, 4.5, 7.5, 9.5])


@pytest.mark.parametrize(
    ("how", "x", "y", "e"),
    [
        ("mean", [1.0, 3.0], [10.0, 20.0], [NAN, NAN]),
        ("integral", [2.0, 6.0], [20.0, 40.0], [NAN, NAN]),
        ("min", [0.0, 2.0], [10.0, 20.0], [NAN, 7.0]),
        ("max", [2.0, 4.0], [10.0, 20.0], [NAN, 7.0]),
        ("first", [0.0, 2.0], [10.0, 20.0], [NAN, 7.0]),
        ("last", [2.0, 4.0], [10.0, 20.0], [NAN, 7.0]),
        ("count", [2.0, 4.0], [1.0, 3.0], [0.0, 1.0]),
    ],
)
def test_spans_by_kind(run: hk.Run, how: str, x: list[float], y: list[float], e: list[float]) -> None:
    frame = run.resample("2 s", how)
    np.testing.assert_array_equal(frame["x"], x)
    np.testing.assert_array_equal(frame["slow.y"], y)
    np.testing.assert_array_equal(frame["e"], e)


def test_spans_that_cut_pieces(run: hk.Run) -> None:
    np.testing.assert_allclose(run.resample("1.5 s")["x"], [0.75, 2.25, 3.5])
    np.testing.assert_allclose(run.resample("1.5 s")["slow.y"], [10.0, 10 + 10 * 2 / 3, 20.0])
    np.testing.assert_allclose(run.resample("1.5 s", "last")["slow.y"], [10, 20, 20])


def test_a_value_that_blew_up_is_not_left_out_of_a_span(tmp_path: Path) -> None:
    """An event is absent between instants; NaN in a port that moves is a number that is lost."""
    rows = [[0, 1], [1, 1], [2, NAN], [3, 1], [4, 1]]
    made = recorded(tmp_path / "run", (SampleTable("", ("x",), ("",), (MOVING,)), rows))
    assert np.isnan(made.resample("4 s").to_numpy()).all()
    assert np.isnan(made.resample("4 s", "max").to_numpy()).all()
    np.testing.assert_array_equal(made.resample("1 s")["x"], [1, NAN, NAN, 1])


def test_aggregates(run: hk.Run) -> None:
    frame = run.aggregate(above=2.5)
    assert list(frame.index) == list(run.ports)
    assert frame.loc["x"].tolist() == ["m", 2.0, 8.0, 0.0, 4.0, 4.0, 1.5]
    assert frame.loc["slow.y"].tolist() == ["K", 15.0, 60.0, 10.0, 20.0, 20.0, 4.0]
    assert frame.loc["e", ["min", "max", "last"]].tolist() == [7.0, 7.0, 7.0]
    assert np.isnan(frame.loc["e", ["mean", "integral", "time above 2.5"]].astype(float)).all()


def test_one_row_is_its_own_mean(tmp_path: Path) -> None:
    made = recorded(tmp_path / "run", (SampleTable("", ("x",), ("",), (MOVING,)), [[0, 3.0]]))
    assert made.aggregate().loc["x", ["mean", "integral", "max"]].tolist() == [3.0, 0.0, 3.0]
    assert made.resample("1 s")["x"].tolist() == [3.0]


def test_dates_count_from_the_origin(run: hk.Run) -> None:
    frame = run.to_pandas(origin="2024-01-01")
    assert frame.index[-1] == pd.Timestamp("2024-01-01 00:00:04")
    assert frame.index.name == "time"
    zone = run.to_pandas(origin=datetime(2024, 3, 31, 0, 59, 58, tzinfo=UTC))
    assert zone.index[2] == pd.Timestamp("2024-03-31 01:00:00+00:00")
    berlin = run.to_pandas(origin="2024-03-31 01:59:58 Europe/Berlin").index
    assert [str(stamp) for stamp in berlin[:3]] == [
        "2024-03-31 01:59:58+01:00",
        "2024-03-31 01:59:59+01:00",
        "2024-03-31 03:00:00+02:00",  # the hour that there is not
    ]
    assert run.resample("2 s", origin="2024-01-01").index[1] == pd.Timestamp("2024-01-01 00:00:02")


def test_the_origin_of_the_scenario_is_taken(tmp_path: Path) -> None:
    table = SampleTable("", ("x",), ("",), (MOVING,))
    made = recorded(tmp_path / "run", (table, [[0, 1], [1, 2]]), origin="2024-05-01")
    assert made.to_pandas().index[1] == pd.Timestamp("2024-05-01 00:00:01")
    assert made.to_pandas(origin="2025-05-01").index[1] == pd.Timestamp("2025-05-01 00:00:01")


def test_a_year_of_twenty_zones_in_months(tmp_path: Path) -> None:
    """A temperature that is the number of its month, in a leap year: so is the mean of each month."""
    t = np.arange(366 * 96 + 1) * 900.0
    month = pd.date_range("2024-01-01", periods=len(t), freq="15min").month.to_numpy(float)
    names = tuple(f"zone{k}.T" for k in range(20))
    table = SampleTable("", names, ("degC",) * 20, (HELD,) * 20)
    made = RunFolder.create(tmp_path / "year", "house")
    recorder = ArrowRecorder(made.path)
    recorder.open([table])
    recorder.write(0, np.column_stack([t, *(month + k for k in range(20))]))
    done = made.end("finished", reached=t[-1])
    monthly = done.resample("month", origin="2024-01-01")
    assert monthly.shape == (12, 20)
    np.testing.assert_allclose(monthly["zone0.T"], np.arange(1, 13), rtol=1e-12)
    np.testing.assert_allclose(monthly["zone19.T"], np.arange(20, 32), rtol=1e-12)
    days = done.resample("month", "count", ["zone3.T"], origin="2024-01-01")["zone3.T"] / 96
    assert days.tolist()[:-1] == [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30]


def test_days_of_a_zone_with_summer_time(tmp_path: Path) -> None:
    t = np.arange(73) * 3600.0
    made = recorded(
        tmp_path / "run",
        (SampleTable("", ("x",), ("",), (HELD,)), np.column_stack([t, np.ones(73)]).tolist()),
    )
    days = made.resample("day", "integral", origin="2024-03-30 00:00 Europe/Berlin")["x"] / 3600
    assert days.tolist() == [24, 23, 24, 1]  # 72 h from midnight of the 30th: one hour into the fourth day
    assert [str(day) for day in days.index] == [
        "2024-03-30 00:00:00+01:00",
        "2024-03-31 00:00:00+01:00",
        "2024-04-01 00:00:00+02:00",
        "2024-04-02 00:00:00+02:00",
    ]
    weeks = made.resample("week", "integral", origin="2024-03-30")["x"] / 3600  # a Saturday
    assert (weeks.tolist(), str(weeks.index[0])) == ([48, 24], "2024-03-25 00:00:00")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda run: run.to_pandas(rate="all"), "`all` is not a duration(.|\n)*outermost"),
        (lambda run: run.to_pandas(rate=0), "not above zero"),
        (lambda run: run.to_pandas(rate="1e-12 s"), "would make 4e\\+12 rows"),
        (lambda run: run.to_pandas("slow", ports=["x"]), "`x` is not in the table `slow`"),
        (lambda run: run.to_pandas(interpolate="yes"), "`interpolate` cannot be 'yes'"),
        (lambda run: run.resample("1 s", "average"), "`how` cannot be 'average'"),
        (lambda run: run.resample("month"), "which date time 0 is(.|\n)*origin="),
        (lambda run: run.resample("fortnight"), 'is not a duration(.|\n)*"month"'),
        (lambda run: run.to_pandas(origin="1.1.2024"), "is not a moment"),
        (lambda run: run.to_pandas(origin="2024-01-01 Europe/Berln"), "no time zone `Europe/Berln`"),
        (lambda run: run.to_pandas(origin="2024-01-01 00:00+01:00 UTC"), "two time zones"),
        (lambda run: run.to_pandas(origin=3), "`origin` cannot be 3"),
        (lambda run: run.aggregate(above="hot"), "`above` cannot be 'hot'"),
    ],
)
def test_what_makes_no_sense_is_refused(run: hk.Run, call, words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        call(run)


def test_nothing_of_the_outermost_level(tmp_path: Path) -> None:
    made = recorded(tmp_path / "run", (SampleTable("a", ("a.x",)), [[0, 1], [1, 2]]))
    with pytest.raises(ScenarioError, match="nothing of the outermost level"):
        made.to_pandas(rate="outermost")
    assert made.to_pandas().shape == (2, 1)


def test_xarray_has_the_same(run: hk.Run) -> None:
    found = run.to_xarray(rate="500 ms")
    frame = run.to_pandas(rate="500 ms")
    assert set(found.data_vars) == set(frame.columns)
    np.testing.assert_array_equal(found["slow.y"], frame["slow.y"])
    assert found["x"].attrs == {"units": "m"}
    dated = run.to_xarray(origin="2024-01-01 00:00 Europe/Berlin")
    assert dated["time"].values[0] == np.datetime64("2023-12-31T23:00")
    assert dated["time"].attrs["time_zone"] == "UTC"


def test_hdf5_and_matlab_read_back_every_bit(run: hk.Run, tmp_path: Path) -> None:
    import h5py
    from scipy.io import loadmat

    run.to_hdf5(tmp_path / "x.h5")
    run.to_mat(tmp_path / "x.mat")
    with h5py.File(tmp_path / "x.h5") as file:
        assert file.attrs["name"] == "tables"
        kept = {
            data.attrs["port"]: (group["time"][:], data[:], data.attrs["unit"], data.attrs["kind"])
            for group in file["rates"].values()
            for data in group["ports"].values()
        }
    cells = loadmat(tmp_path / "x.mat", squeeze_me=True)["run"]["rates"].item()
    for port in run.ports:
        series = run[port]
        np.testing.assert_array_equal(kept[port][0], series.t)
        np.testing.assert_array_equal(kept[port][1], series.values)
        assert kept[port][2] == series.unit
        (cell,) = [each for each in cells if port in np.atleast_1d(each["names"].item())]
        column = np.atleast_1d(cell["names"].item()).tolist().index(port)
        np.testing.assert_array_equal(cell["time"].item(), series.t)
        values = cell["values"].item()
        np.testing.assert_array_equal(values if values.ndim == 1 else values[:, column], series.values)
    assert kept["e"][3] == EVENT


def test_csv_of_another_rate_with_dates(run: hk.Run, tmp_path: Path) -> None:
    buffer = io.BytesIO()
    run.to_csv(buffer, ["slow.y"], rate="2 s", origin="2024-01-01")
    head, first, *_ = buffer.getvalue().decode().splitlines()
    assert (head, first) == ('"time","slow.y [K]"', "2024-01-01 00:00:00.000000000,10")
    run.to_parquet(tmp_path / "x.parquet", rate="1 s", origin="2024-01-01 00:00 UTC")
    frame = pd.read_parquet(tmp_path / "x.parquet")
    assert frame["time"].iloc[-1] == pd.Timestamp("2024-01-01 00:00:04", tz="UTC")


@pytest.mark.parametrize(
    ("module", "call"),
    [
        ("xarray", lambda run: run.to_xarray()),
        ("h5py", lambda run: run.to_hdf5("x.h5")),
        ("pandas", lambda run: run.resample("1 s")),
        ("pandas", lambda run: run.aggregate()),
    ],
)
def test_what_is_not_installed_is_named_with_its_extra(run, monkeypatch, module, call) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    extra = {"h5py": "hdf5"}.get(module, module)
    with pytest.raises(ScenarioError, match=rf"pip install hocket\[{extra}\]"):
        call(run)


def test_runs_of_older_versions_do_not_say_what_a_port_is(tmp_path: Path) -> None:
    made = recorded(tmp_path / "run", (SampleTable("", ("x", "e")), [[0, 0, NAN], [1, 1, 2], [2, 2, NAN]]))
    again = open_run(made.path)
    frame = again.to_pandas(rate="500 ms")
    np.testing.assert_array_equal(frame["x"], [0, 0.5, 1, 1.5, 2])
    np.testing.assert_array_equal(frame["e"], [NAN, NAN, 2, NAN, NAN])


def test_rows_of_one_time_stay_in_order() -> None:
    rates = [
        Rate(np.array([0.0, 1, 1, 2]), np.zeros((4, 0)), ()),
        Rate(np.array([1.0, 1, 1]), np.zeros((3, 0)), ()),
    ]
    rows = union_rows(rates)
    assert list(zip(rows.t.tolist(), rows.n.tolist(), strict=True)) == [
        (0, 0),
        (1, 0),
        (1, 1),
        (1, 2),
        (2, 0),
    ]


def test_extremes_of_instants_count() -> None:
    t, x = np.array([0.0, 1, 1, 1, 2]), np.array([0.0, 0, 9, 0, 0])
    assert bin_column(t, x, MOVING, np.array([0.0, 2.0]), "max").tolist() == [9.0]


def test_zones_are_objects_too(run: hk.Run) -> None:
    origin = datetime(2024, 7, 1, tzinfo=ZoneInfo("America/New_York"))
    assert str(run.to_pandas(origin=origin).index[0]) == "2024-07-01 00:00:00-04:00"
