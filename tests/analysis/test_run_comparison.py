"""Two runs beside each other: differences of known size, tubes, jumps; what is missing counts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import hocket as hk
from command_line import good, refused
from hocket.analysis.measure import Outcome
from hocket.engine.recording import MOVING, ArrowRecorder, SampleTable
from hocket.errors import HocketError, ScenarioError
from hocket.files.run_folder import RunFolder


def table_run(folder: Path, columns, t=(0.0, 1.0, 2.0, 3.0, 4.0), step="1 s", stop=4, name="s") -> hk.Run:
    source = hk.Table(list(t), columns)
    return hk.run(hk.Composite(hk.Scenario({name: source}), step), stop, folder=folder)


X = [0.0, 1.0, 2.0, 1.0, 0.0]


def test_the_same_is_equal(tmp_path):
    a, b = (table_run(tmp_path / name, {"x [m]": X}) for name in "ab")
    found = hk.compare(a, b)
    assert (found.good, found.outcome) == (True, Outcome.GOOD)
    assert found.verdict() == ["equal: 1 port has the same values"]
    assert found.rows()[0]["largest"] == 0.0


def test_how_far_where_and_when(tmp_path):
    """The other is above by 0.1 at 2 s, a triangle from 1 s to 3 s: mean square 0.01 * 2/3 / 4."""
    a = table_run(tmp_path / "a", {"x [m]": X})
    b = table_run(tmp_path / "b", {"x [m]": [0, 1, 2.1, 1, 0]})
    found = hk.compare(a, b)
    (row,) = found.rows()
    assert (row["port"], row["unit"], row["at"], row["leaves at"], row["within"]) == (
        "s.x",
        "m",
        2.0,
        2.0,
        False,
    )
    assert row["largest"] == pytest.approx(0.1, abs=1e-12)
    assert row["of peak"] == pytest.approx(0.05, abs=1e-12)
    assert row["rms"] == pytest.approx(np.sqrt(0.01 / 6), rel=1e-9)
    assert not found.good
    assert hk.compare(a, b, relative=0.0501).good
    assert not hk.compare(a, b, relative=0.0499).good
    assert hk.compare(a, b, relative=0, absolute=0.1001).good


def test_lines_between_rows_are_compared(tmp_path):
    """The same line with twice the rows is the same; a bend between the rows of the reference is not."""
    a = table_run(tmp_path / "a", {"x": X})
    fine = table_run(tmp_path / "b", {"x": X}, step="0.5 s")
    assert hk.compare(a, fine).good
    bend = table_run(tmp_path / "c", {"x": [0, 0.6, 1, 2, 1, 0]}, t=[0, 0.5, 1, 2, 3, 4], step="0.5 s")
    assert hk.compare(a, bend).rows()[0]["largest"] == pytest.approx(0.1, abs=1e-12)
    assert hk.compare(bend, a).rows()[0]["largest"] == pytest.approx(0.1, abs=1e-12)


def test_a_jump_that_is_late(tmp_path):
    a = table_run(tmp_path / "a", {"x": [0, 0, 1, 1]}, t=[0, 2, 2, 4], step="0.5 s")
    b = table_run(tmp_path / "b", {"x": [0, 0, 1, 1]}, t=[0, 2.1, 2.1, 4], step="0.5 s")
    late = hk.compare(a, b)
    assert (late.good, late.rows()[0]["largest"]) == (False, 1.0)
    assert hk.compare(a, b, time_tolerance="101 ms").good
    assert not hk.compare(a, b, time_tolerance="99 ms").good
    assert hk.compare(a, a).good


def test_ports_that_are_missing_or_new(tmp_path):
    a = table_run(tmp_path / "a", {"x": X, "y": X})
    b = table_run(tmp_path / "b", {"x": X, "z": X})
    found = hk.compare(a, b)
    assert (found.good, found.missing, found.extra) == (False, ("s.y",), ("s.z",))
    assert "has no `s.y`" in "\n".join(found.verdict())
    assert hk.compare(a, b, ["s.x"]).good
    with pytest.raises(HocketError, match=r"no port `s.w`"):
        hk.compare(a, b, ["s.w"])
    other = table_run(tmp_path / "c", {"x": X}, name="other")
    assert hk.compare(a, other).outcome is Outcome.NOT_JUDGED


def test_a_run_that_ended_early_is_different(tmp_path):
    a = table_run(tmp_path / "a", {"x": X})
    b = table_run(tmp_path / "b", {"x": X}, stop=3)
    found = hk.compare(a, b)
    assert (found.good, found.rows()[0]["within"]) == (False, True)
    assert "`b` 0 to 3 s" in "\n".join(found.verdict())


def test_units_are_converted_or_refused(tmp_path):
    a = table_run(tmp_path / "a", {"x [m]": X})
    assert hk.compare(a, table_run(tmp_path / "b", {"x [mm]": [1000 * x for x in X]})).good
    found = hk.compare(a, table_run(tmp_path / "c", {"x [kg]": X}))
    assert not found.good
    assert "cannot be converted" in "\n".join(found.verdict())


def test_what_is_not_a_number_is_different(tmp_path):
    (tmp_path / "ref.csv").write_text("time [s],s.x\n0,0\n4,0\n")
    made = RunFolder.create(tmp_path / "run", "run")
    recorder = ArrowRecorder(made.path)
    recorder.open([SampleTable("", ("s.x",), ("",), (MOVING,))])
    recorder.write(0, np.array([[0, 0], [1, 0], [2, np.nan], [3, 0], [4, 0.0]]))
    recorder.close()
    run = made.end("finished", reached=4)
    found = hk.compare(tmp_path / "ref.csv", run, absolute=1e9)
    assert (found.good, found.rows()[0]["largest"]) == (False, float("inf"))
    assert 1.0 < found.rows()[0]["leaves at"] <= 2.0


def test_the_command_has_exit_codes_and_json(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table_run(tmp_path / "a", {"x [m]": X})
    table_run(tmp_path / "b", {"x [m]": [0, 1, 2.1, 1, 0]})
    table_run(tmp_path / "c", {"x": X}, name="other")
    hk.open_run("a").to_csv("ref.csv")
    assert "equal" in good("compare", "ref.csv", "a")
    text = good("compare", "a", "b", "--relative", "0.1", "--plot", "diff.png", "--json", "diff.json")
    assert "s.x" in text
    assert Path("diff.png").read_bytes()[:4] == b"\x89PNG"
    facts = json.loads(Path("diff.json").read_text())
    assert facts["good"] is True
    assert facts["differences"][0]["largest"] == pytest.approx(0.1)
    from command_line import invoked

    assert invoked("compare", "a", "b").exit_code == 1
    assert invoked("compare", "a", "c").exit_code == 3
    refused("compare", "a", "nowhere")
    refused("compare", "a", "b", "--time-tolerance", "soon")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"relative": -1}, "`relative` cannot be -1"),
        ({"absolute": "x"}, "`absolute` cannot be 'x'"),
        ({"time_tolerance": "soon"}, "not a duration"),
        ({"ports": 3}, "`ports` cannot be 3"),
    ],
)
def test_tolerances_that_make_no_sense(tmp_path, options, words):
    a = table_run(tmp_path / "a", {"x": X})
    with pytest.raises(ScenarioError, match=words):
        hk.compare(a, a, **options)
