"""What is written into a run folder can be looked at, during the run and after, whatever became of it."""

from __future__ import annotations

import csv
import gc
import json
import os
import pickle
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from hocket.engine.opening import open_composite
from hocket.engine.recording import ArrowRecorder, SampleTable
from hocket.errors import FileError, HocketError, ScenarioError
from hocket.files.run_folder import Run, RunFolder, UnknownPortError, open_run
from hocket.model.composite import Composite
from hocket.model.ports import Port
from hocket.model.protocols import Array
from hocket.model.scenario import Scenario
from hocket.simulators.sources import Csv

TABLES = (
    SampleTable("", ("left.x", "left.v", "axle.x"), ("m", "m/s", "m")),
    SampleTable("axle", ("axle.x", "axle.on"), ("m", "")),
    SampleTable("axle.wheel@micro", ("axle.wheel.force",), ("N",)),
)
STEPS = (10, 5, 1)  # in ticks of 10 ms, so that the rates meet exactly


def rows(table: int, stop: int = 100) -> Array:
    """Damped waves, one per column."""
    t = np.arange(0, stop + 1, STEPS[table]) / 100
    count = len(TABLES[table].columns)
    return np.column_stack([t, *(np.exp(-t) * np.cos((5 + 3 * j + table) * t) for j in range(count))])


def begun(path: Path | None, **options: bool) -> tuple[RunFolder, ArrowRecorder]:
    folder = RunFolder.create(path, "car", **options)
    folder.begin(
        TABLES, scenario="[models]\n", plan="feed left\n", engine="native", start=0, stop=Fraction(1)
    )
    recorder = ArrowRecorder(folder.path)
    recorder.open(TABLES)
    return folder, recorder


def written(path: Path | None, **options: bool) -> Run:
    folder, recorder = begun(path, **options)
    for table in range(len(TABLES)):
        for part in np.array_split(rows(table), 3):
            recorder.write(table, part)
    recorder.close()
    return folder.end("finished", reached=Fraction(1), counts={"steps": np.int64(111)}, phases={"open": 0.5})


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return written(tmp_path / "out")


def test_a_run_comes_back_from_its_folder(run: Run) -> None:
    for opened in (run, open_run(run.path), open_run(str(run.path / "run.json"))):
        assert opened.ports == ("left.x", "left.v", "axle.x", "axle.on", "axle.wheel.force")
        assert opened.tables == TABLES
        t, v = opened["left.v"]
        np.testing.assert_array_equal(np.column_stack([t, v]), rows(0)[:, [0, 2]])
        assert (opened["left.v"].name, opened["left.v"].unit) == ("left.v", "m/s")
        assert opened.final("left.v") == rows(0)[-1, 2]
        assert opened.scenario_text == "[models]\n"
        assert opened.plan_text == "feed left\n"
        assert "left.v" in opened
        assert "left.w" not in opened
        assert list(opened) == list(opened.ports)


def test_a_port_of_several_rates_is_read_at_the_finest(run: Run) -> None:
    np.testing.assert_array_equal(run["axle.x"].t, rows(1)[:, 0])
    np.testing.assert_array_equal(run["axle.x"].values, rows(1)[:, 1])


def test_run_json_says_how_it_went(run: Run) -> None:
    facts = json.loads((run.path / "run.json").read_text())
    assert facts == dict(run.info)
    assert (run.status, run.name) == ("finished", "car")
    assert (facts["start"], facts["stop"], facts["reached"], facts["error"]) == (0, 1.0, 1.0, "")
    assert facts["counts"] == {"steps": 111}
    assert facts["timings"]["phases"] == {"open": 0.5}
    assert facts["timings"]["wall"] > 0
    assert facts["versions"].keys() == {"hocket", "python", "numpy", "pyarrow", "platform"}
    assert facts["tables"][1] == {"name": "axle", "file": "samples/001-axle.arrow", "columns": 2}
    assert all((run.path / table["file"]).exists() for table in facts["tables"])
    assert sorted(path.name for path in run.path.iterdir()) == [
        "plan.txt",
        "run.json",
        "samples",
        "scenario.toml",
    ]


def test_a_run_can_be_pickled(run: Run) -> None:
    back = pickle.loads(pickle.dumps(run))
    assert (back.path, back.info) == (run.path, run.info)
    assert np.array_equal(back["axle.x"].values, run["axle.x"].values)


@pytest.mark.parametrize("key", ["name", "status", "process", "versions"])
@pytest.mark.parametrize("value", [None, [3]])
def test_a_damaged_run_json_is_told(run: Run, key: str, value: object) -> None:
    facts = run.path / "run.json"
    facts.write_text(json.dumps({**json.loads(facts.read_text()), key: value}))
    with pytest.raises(FileError, match=f"the run.json of `{run.path.name}` is damaged: `{key}` is"):
        open_run(run.path)


def test_reprs_are_one_short_line(run: Run) -> None:
    assert repr(run) == "<Run car: finished, 0 to 1 s, 133 rows>"
    assert repr(run["left.v"]) == "<Series left.v [m/s]: 11 samples, 0 to 1 s>"


def test_a_run_can_be_watched_while_it_runs(tmp_path: Path) -> None:
    folder, recorder = begun(tmp_path)
    assert repr(open_run(tmp_path)) == "<Run car: running, 0 rows>"
    assert len(open_run(tmp_path)["left.x"].t) == 0
    with pytest.raises(ScenarioError, match=r"no row of `left\.x`"):
        open_run(tmp_path).final("left.x")
    recorder.write(0, rows(0)[:4])
    assert len(open_run(tmp_path)["left.x"].t) == 4
    failed = folder.end("failed", reached=0.3, error="SimulatorError: `left` gave up")
    assert (failed.status, failed.info["error"]) == ("failed", "SimulatorError: `left` gave up")
    assert failed.final("left.x") == rows(0)[3, 1]


@pytest.mark.parametrize(
    ("port", "hint"),
    [
        ("axle.wheel.forse", "did you mean `axle.wheel.force`?"),
        ("v", "one of `left.v`"),
        ("zzz", "one of `left.x`, `left.v`, `axle.x`, `axle.on`, `axle.wheel.force`"),
    ],
)
def test_an_unknown_port_offers_the_nearest(run: Run, port: str, hint: str) -> None:
    for look in (run.__getitem__, run.final, run.plot, lambda port: run.to_csv(run.path / "x.csv", [port])):
        with pytest.raises(UnknownPortError) as caught:
            look(port)
        assert isinstance(caught.value, KeyError)
        assert str(caught.value).startswith(f"`{port}` was not recorded\n")
        assert hint in str(caught.value)


def test_an_unknown_table_offers_the_nearest(run: Run) -> None:
    with pytest.raises(UnknownPortError, match=r"there is no table `axel`(.|\n)*did you mean `axle`"):
        run.table("axel")


def test_a_table_is_mapped_not_loaded(tmp_path: Path) -> None:
    wide = SampleTable("", tuple(f"m.x{i}" for i in range(100)))
    folder = RunFolder.create(tmp_path, "wide")
    recorder = ArrowRecorder(tmp_path)
    recorder.open([wide])
    for _ in range(10):
        recorder.write(0, np.ones((1000, 101)))
    run = folder.end("finished", reached=1)
    before = pa.total_allocated_bytes()
    table = run.table()
    t, x = run["m.x50"]
    assert (table.num_rows, table.num_columns, len(t), x.sum()) == (10_000, 101, 10_000, 10_000)
    assert pa.total_allocated_bytes() - before < 100_000  # the file has 8 million
    assert x.flags.owndata
    assert x.flags.writeable


def test_pandas_has_the_time_as_index(run: Run) -> None:
    frame = run.to_pandas("axle")
    assert (frame.index.name, list(frame.columns)) == ("time", ["axle.x", "axle.on"])
    assert frame.attrs["units"] == {"axle.x": "m", "axle.on": ""}
    np.testing.assert_array_equal(frame.reset_index().to_numpy(), rows(1))
    assert run.to_pandas("").shape == (11, 3)
    assert set(run.to_pandas().columns) == set(run)


def read_csv(path: Path) -> tuple[list[str], Array]:
    with path.open(newline="") as file:
        head, *body = csv.reader(file)
    return head, np.array([[float(cell) for cell in line] for line in body])


def test_csv_reads_back_every_bit(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    block = rng.integers(0, 2**64, size=(3000, 2), dtype=np.uint64).view(float)
    block = block[np.isfinite(block).all(axis=1)]
    block[:5, 1] = np.nan, np.inf, -np.inf, -0.0, 5e-324
    folder = RunFolder.create(tmp_path / "out", "bits")
    recorder = ArrowRecorder(folder.path)
    recorder.open([SampleTable("", ('body.r[1,"2"]',))])
    recorder.write(0, block)
    run = folder.end("finished", reached=1)
    run.to_csv(tmp_path / "x.csv")
    head, back = read_csv(tmp_path / "x.csv")
    assert head == ["time [s]", 'body.r[1,"2"]']
    np.testing.assert_array_equal(back.view(np.uint64), block.view(np.uint64))


def test_one_rate_exports_without_holes(run: Run, tmp_path: Path) -> None:
    run.to_csv(tmp_path / "x.csv", ["left.v", "left.x"])
    head, back = read_csv(tmp_path / "x.csv")
    assert head == ["time [s]", "left.v [m/s]", "left.x [m]"]
    np.testing.assert_array_equal(back, rows(0)[:, [0, 2, 1]])
    run.to_parquet(tmp_path / "x.parquet", ["left.*"])
    table = parquet.read_table(tmp_path / "x.parquet")
    assert table.column_names == ["time", "left.x", "left.v"]
    assert table.schema.field("left.v").metadata[b"unit"] == b"m/s"
    np.testing.assert_array_equal(np.column_stack(table.columns), rows(0)[:, :3])


def test_several_rates_export_on_the_union_of_their_times(run: Run, tmp_path: Path) -> None:
    ports = ["axle.wheel.force", "left.x", "axle.x"]
    run.to_csv(tmp_path / "x.csv", ports)
    head, merged = read_csv(tmp_path / "x.csv")
    run.to_parquet(tmp_path / "x.parquet", ports)
    table = parquet.read_table(tmp_path / "x.parquet")
    assert head == ["time [s]", "axle.wheel.force [N]", "left.x [m]", "axle.x [m]"]
    assert table.column_names == ["time", *ports]
    assert [table.schema.field(port).metadata[b"unit"] for port in ports] == [b"N", b"m", b"m"]
    np.testing.assert_array_equal(np.column_stack(table.columns), merged)
    np.testing.assert_array_equal(merged[:, 0], rows(2)[:, 0])
    for column, (table_index, value) in enumerate([(2, 1), (0, 1), (1, 1)], 1):
        here = np.arange(0, 101, STEPS[table_index])
        np.testing.assert_array_equal(merged[here, column], rows(table_index)[:, value])
        assert np.isnan(np.delete(merged[:, column], here)).all()


def test_a_csv_source_reads_back_what_was_exported(run: Run, tmp_path: Path) -> None:
    run.to_csv(tmp_path / "x.csv", ["left.*"])
    source = Csv(tmp_path / "x.csv")
    assert source.outputs == (Port("left.x", "m"), Port("left.v", "m/s"))
    player = Scenario({"played": source}, {"x": "played.left.x"}, outputs=["x [mm]"])
    level = open_composite(Composite(player, "100 ms"))
    level.start(0.0)
    assert level.output(0.0, np.zeros((1, 0)))[0] == pytest.approx(1000 * run["left.x"][0])
    run.to_csv(tmp_path / "y.csv")
    with pytest.raises(FileError, match=r"line 3(.|\n)*ports of one rate"):
        Csv(tmp_path / "y.csv").open()


def test_a_series_is_its_values_where_an_array_is_wanted(run: Run) -> None:
    series = run["left.v"]
    np.testing.assert_array_equal(np.asarray(series), series.values)
    np.testing.assert_array_equal(2 * np.array(series, dtype=np.float32), 2 * series.values.astype("f4"))
    copied = np.array(series)
    copied[0] = 99.0
    assert series.values[0] != 99.0
    assert (len(series), series[-1], series[2:4].tolist()) == (
        11,
        series.values[-1],
        series.values[2:4].tolist(),
    )
    t, values = series
    assert (t is series.t, values is series.values) == (True, True)


def test_rows_at_one_instant_stay_apart_and_in_order(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "out", "events")
    recorder = ArrowRecorder(folder.path)
    recorder.open([SampleTable("", ("a",)), SampleTable("b", ("b.x",))])
    recorder.write(0, np.array([[0, 1], [1, 2], [1, 3], [2, 4.0]]))
    recorder.write(1, np.array([[0, 5], [1, 6], [1, 7], [1, 8.0]]))
    folder.end("finished", reached=2).to_csv(tmp_path / "x.csv")
    nan = np.nan
    _, merged = read_csv(tmp_path / "x.csv")
    np.testing.assert_array_equal(merged, [[0, 1, 5], [1, 2, 6], [1, 3, 7], [1, nan, 8], [2, 4, nan]])


def test_an_export_that_cannot_be_written_is_said_clearly(run: Run, tmp_path: Path) -> None:
    for export in (run.to_csv, run.to_parquet, lambda path: run.plot("left.x", path=f"{path}.png")):
        with pytest.raises(HocketError, match="cannot write `x"):
            export(tmp_path / "missing" / "x")
    with pytest.raises(FileError, match="did you mean `png`"):
        run.plot("left.x", path=tmp_path / "x.pgn")


def test_a_plot_has_one_axes_per_unit(run: Run, tmp_path: Path) -> None:
    before = "matplotlib.pyplot" in sys.modules
    figure = run.plot("left.*", "axle.x", path=tmp_path / "x.png")
    assert [axes.get_ylabel() for axes in figure.axes] == ["x [m]", "v [m/s]"]
    legends = [[text.get_text() for text in axes.get_legend().get_texts()] for axes in figure.axes]
    assert legends == [["left.x", "axle.x"], ["left.v"]]
    assert figure.axes[-1].get_xlabel() == "time [s]"
    assert (tmp_path / "x.png").read_bytes()[:4] == b"\x89PNG"
    assert ("matplotlib.pyplot" in sys.modules) == before  # nothing global is changed
    assert len(run.plot().axes) == 4


def test_a_plot_survives_what_an_unstable_run_leaves(tmp_path: Path) -> None:
    t = np.arange(20_000) / 1000
    blown = np.exp(np.minimum(t * 60, 709))
    columns = [blown, -blown, np.where(t > 5, np.inf, t), np.full_like(t, np.nan), np.sin(900 * t)]
    table = SampleTable("", ("a", "_b$", "c", "d." * 40, "e"), ("m", "$", "K", "J", "N"))
    many = SampleTable("many", tuple(f"many.x{i}" for i in range(30)), ("W",) * 30)
    folder = RunFolder.create(tmp_path / "out", "$blown_")
    recorder = ArrowRecorder(folder.path)
    recorder.open([table, many, SampleTable("none", ("none.x",), ("A",))])
    recorder.write(0, np.column_stack([t, *columns]))
    recorder.write(1, np.zeros((1, 31)))
    figure = folder.end("failed", reached=20).plot(path=tmp_path / "x.png")
    assert all(len(line.get_xdata()) <= 4000 for axes in figure.axes for line in axes.lines)
    assert figure.axes[5].get_legend().get_texts()[-1].get_text() == "and 19 more"
    assert figure.axes[4].lines[0].get_ydata().max() > 0.999  # thinning keeps the peaks


@pytest.mark.parametrize(("module", "extra"), [("pandas", "pandas"), ("matplotlib.figure", "plot")])
def test_a_missing_library_names_the_extra(
    run: Run, monkeypatch: pytest.MonkeyPatch, module: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(HocketError, match=rf"pip install hocket\[{extra}\]"):
        run.to_pandas() if extra == "pandas" else run.plot()


def test_an_existing_run_is_replaced_only_when_asked(tmp_path: Path) -> None:
    old = written(tmp_path)
    force = old.table("axle.wheel@micro")
    for name in ("notes.txt", "samples/mine.arrow"):
        (tmp_path / name).write_text("mine")
    with pytest.raises(FileError, match=r"holds a run already(.|\n)*overwrite=True"):
        RunFolder.create(tmp_path, "car")
    folder = RunFolder.create(tmp_path, "new", overwrite=True)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert [path.name for path in (tmp_path / "samples").iterdir()] == ["mine.arrow"]
    new = folder.end("finished", reached=0)
    assert (new.name, new.ports) == ("new", ())
    np.testing.assert_array_equal(force["axle.wheel.force"], rows(2)[:, 1])  # still mapped
    with pytest.raises(FileError, match=r"cannot read `plan\.txt`"):
        print(new.plan_text)
    with pytest.raises(UnknownPortError, match="nothing was recorded"):
        new.to_csv(tmp_path / "x.csv")


@pytest.mark.parametrize("content", ["", "[]", '{"name": "package"}', '{"hocket_run": "x"}', "{"])
def test_a_folder_of_other_things_is_never_touched(tmp_path: Path, content: str) -> None:
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(FileError, match="has other files in it"):
        RunFolder.create(tmp_path, "car", overwrite=True)
    with pytest.raises(FileError, match="is not a run"):
        open_run(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]
    assert (tmp_path / "run.json").read_text() == content


def test_what_is_no_folder_is_said_clearly(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match=r"`file` is a file(.|\n)*a new folder"):
        RunFolder.create(tmp_path / "file", "car")
    with pytest.raises(HocketError, match="a part of this path is a file"):
        RunFolder.create(tmp_path / "file" / "inside", "car")
    with pytest.raises(FileError, match="there is no `nothing`"):
        open_run(tmp_path / "nothing")


def test_a_newer_format_is_refused(run: Run) -> None:
    (run.path / "run.json").write_text('{"hocket_run": 99}')
    with pytest.raises(FileError, match="newer hocket"):
        open_run(run.path)


def test_samples_that_are_gone_are_said_clearly(run: Run) -> None:
    assert run.ports
    (run.path / "samples" / "000-outermost.arrow").unlink()
    with pytest.raises(FileError, match=r"cannot read `000-outermost.arrow`"):
        run["left.x"]


def test_a_temporary_folder_goes_with_the_last_run() -> None:
    run = written(None)
    again, path = run, run.path
    del run
    gc.collect()
    assert again.final("left.x") == rows(0)[-1, 1]
    del again
    gc.collect()
    assert not path.exists()


FORKED = """
import os, sys
from hocket.files.run_folder import RunFolder
run = RunFolder.create(None, "a/b").end("finished", reached=0)
child = os.fork()
if not child:
    sys.exit()
os.waitpid(child, 0)
print(run.path.exists(), run.path)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_temporary_folder_outlives_a_forked_child_but_not_the_interpreter() -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", FORKED]
    output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    existed, path = output.split()
    assert existed == "True"
    assert not Path(path).exists()


KILLED = """
import sys
import numpy as np
from hocket.engine.recording import ArrowRecorder, SampleTable
from hocket.files.run_folder import RunFolder
table = SampleTable("", ("x", "y"))
folder = RunFolder.create(sys.argv[1], "killed")
folder.begin([table], scenario="", plan="", engine="native", start=0, stop=1)
recorder = ArrowRecorder(folder.path)
recorder.open([table])
for i in range(1_000_000):
    recorder.write(0, np.full((10_000, 3), float(i)))
    print(i, flush=True)
"""


def test_the_folder_of_a_killed_process_opens(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", KILLED, str(tmp_path / "out")]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        printed = [process.stdout.readline() for _ in range(20)]
        process.kill()
        printed += process.stdout.readlines()
    run = open_run(tmp_path / "out")
    assert run.status == "killed"
    t, y = run["y"]
    blocks = len(y) // 10_000
    assert blocks >= len(printed)
    np.testing.assert_array_equal(y, np.arange(float(blocks)).repeat(10_000))
    np.testing.assert_array_equal(t, y)
    assert run.final("x") == blocks - 1


def test_a_forked_process_has_a_start_of_its_own():
    """What is kept of this process is not handed on to a child, whose number an ancestor may have had."""
    code = (
        "import os, time\n"
        "from hocket.files.run_facts import own_start, process_start\n"
        "assert own_start() == process_start(os.getpid())\n"
        "time.sleep(0.05)\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    os._exit(0 if own_start() == process_start(os.getpid()) else 1)\n"
        "raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_temporary_run_has_all_its_files_and_goes_with_its_last_holder():
    run = RunFolder.create(None, "short")
    folder = run.path
    run.begin(TABLES[:1], scenario="# none\n", plan="\n", engine="native", start=0.0, stop=1.0)
    ended = run.end("finished", reached=1.0)
    assert {path.name for path in folder.iterdir()} >= {"run.json", "scenario.toml", "plan.txt"}
    assert ended.integrity_notes == ()
    del run, ended
    gc.collect()
    assert not folder.exists()
