"""Blocks are on disk, whole, as soon as they are written."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hocket.engine.recording import _HEAD, ArrowRecorder, Samples, SampleTable, _read_rescued
from hocket.engine.reference.rollback import settle_level_rows
from hocket.engine.rows import Rows
from hocket.errors import HocketError, InternalError
from hocket.model.protocols import Array

OUTER = SampleTable("", ("left.x", "left.v"), ("m", "m/s"))
WHEEL = SampleTable("axle.wheel", ("axle.wheel.force",), ("N",))
MICRO = SampleTable("axle.wheel@micro", ("axle.wheel.force", "axle.wheel.n"))


def block(first: int, rows: int, columns: int) -> Array:
    """Row i has the time i / 10 and, in column j, i + j / 8."""
    i = np.arange(first, first + rows, dtype=float)
    return np.column_stack([i / 10, *(i + j / 8 for j in range(columns))])


def stored(path: Path) -> Array:
    samples = Samples.open(path)
    assert samples is not None
    return np.column_stack(samples.read(samples.table.columns))


def files(folder: Path) -> list[Path]:
    return sorted((folder / "samples").glob("*.arrow"))


def python(script: str, *arguments: object) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE)


def test_tables_of_several_rates_come_back(tmp_path: Path) -> None:
    recorder = ArrowRecorder(tmp_path)
    recorder.open([OUTER, WHEEL, MICRO])
    for first in (0, 4, 8):
        recorder.write(0, block(first, 4, 2))
        recorder.write(2, block(10 * first, 40, 2))
    recorder.write(1, block(0, 1, 1))
    recorder.write(1, block(1, 0, 1))
    recorder.close()
    assert [path.name for path in files(tmp_path)] == [
        "000-outermost.arrow",
        "001-axle.wheel.arrow",
        "002-axle.wheel@micro.arrow",
    ]
    for path, table, rows in zip(files(tmp_path), (OUTER, WHEEL, MICRO), (12, 1, 120), strict=True):
        samples = Samples.open(path)
        assert samples is not None
        assert samples.table == table
        assert samples.rows == rows
        np.testing.assert_array_equal(stored(path), block(0, rows, len(table.columns)))


def test_any_arrow_reader_reads_the_files(tmp_path: Path) -> None:
    recorder = ArrowRecorder(tmp_path)
    recorder.open([OUTER])
    recorder.write(0, block(0, 3, 2))
    with pa.ipc.open_stream(files(tmp_path)[0].read_bytes()) as stream:
        table = stream.read_all()
    assert table.column_names == ["time", "left.x", "left.v"]
    assert table.schema.field("left.v").metadata == {b"unit": b"m/s"}
    assert table["left.v"].to_pylist() == [0.125, 1.125, 2.125]


def test_a_block_is_on_disk_when_write_returns_and_may_be_used_again(tmp_path: Path) -> None:
    recorder = ArrowRecorder(tmp_path)
    recorder.open([OUTER])
    assert stored(files(tmp_path)[0]).shape == (0, 3)
    buffer = block(0, 5, 2)
    recorder.write(0, buffer)
    buffer[:] = np.nan
    np.testing.assert_array_equal(stored(files(tmp_path)[0]), block(0, 5, 2))


@pytest.mark.parametrize("layout", ["C", "F", "strided"])
def test_blocks_of_any_memory_layout_keep_every_bit(tmp_path: Path, layout: str) -> None:
    rng = np.random.default_rng(1)
    values = rng.integers(0, 2**64, size=(50, 3), dtype=np.uint64).view(float)
    values[:3, 1] = np.nan, np.inf, -0.0
    given_block = {"C": values, "F": np.asfortranarray(values), "strided": np.repeat(values, 2, 0)[::2]}[
        layout
    ]
    recorder = ArrowRecorder(tmp_path)
    recorder.open([OUTER])
    recorder.write(0, given_block)
    assert stored(files(tmp_path)[0]).tobytes() == values.tobytes()


def test_columns_are_read_in_the_order_asked_for(tmp_path: Path) -> None:
    recorder = ArrowRecorder(tmp_path)
    recorder.open([OUTER])
    recorder.write(0, block(0, 3, 2))
    samples = Samples.open(files(tmp_path)[0])
    assert samples is not None
    t, v, x, v_again = samples.read(["left.v", "left.x", "left.v"])
    np.testing.assert_array_equal(np.column_stack([t, x, v]), block(0, 3, 2))
    np.testing.assert_array_equal(v, v_again)


def test_names_that_a_file_system_confuses_stay_apart(tmp_path: Path) -> None:
    names = ["axle", "Axle", "a/b", "a_b", "deep." * 100, "größe"]
    recorder = ArrowRecorder(tmp_path)
    recorder.open([SampleTable(name, ("x",)) for name in names])
    found = [samples.table.name for path in files(tmp_path) if (samples := Samples.open(path))]
    assert found == names


def test_a_port_called_time_keeps_its_name(tmp_path: Path) -> None:
    recorder = ArrowRecorder(tmp_path)
    recorder.open([SampleTable("", ("time",))])
    recorder.write(0, block(0, 2, 1))
    samples = Samples.open(files(tmp_path)[0])
    assert samples is not None
    assert samples.table.columns == ("time",)
    np.testing.assert_array_equal(samples.read(["time"])[1], [0.0, 1.0])


def test_units_must_match_the_columns() -> None:
    with pytest.raises(InternalError, match="1 units for 2 columns"):
        SampleTable("axle", ("x", "v"), ("m",))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    recorder = ArrowRecorder(folder)
    recorder.open([OUTER])
    for first in (0, 7, 8):
        recorder.write(0, block(first, {0: 7, 7: 1, 8: 30}[first], 2))
    return files(folder)[0]


@settings(deadline=None, max_examples=150)
@given(data=st.data())
def test_a_file_cut_anywhere_reads_as_its_first_blocks(whole: Path, data: st.DataObject) -> None:
    content = whole.read_bytes()
    cut = whole.with_name("cut")
    cut.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    samples = Samples.open(cut)
    if samples is not None:
        rows = stored(cut)
        assert len(rows) in (0, 7, 8, 38)
        np.testing.assert_array_equal(rows, block(0, len(rows), 2))
    if cut.stat().st_size == len(content):
        assert samples is not None
        assert samples.rows == 38


@settings(deadline=None, max_examples=150)
@given(data=st.data())
def test_a_file_that_ends_in_zeros_keeps_the_blocks_before(whole: Path, data: st.DataObject) -> None:
    """A power cut may leave such a file."""
    content = whole.read_bytes()
    cut = whole.with_name("zeroed")
    at = data.draw(st.integers(0, len(content)))
    cut.write_bytes(content[:at])
    samples = Samples.open(cut)
    whole_rows = samples.rows if samples else 0
    cut.write_bytes(content[:at] + bytes(data.draw(st.sampled_from([1, 8, 4096]))))
    if samples is not None:
        np.testing.assert_array_equal(stored(cut)[:whole_rows], block(0, whole_rows, 2))


KILLED = """
import sys
import numpy as np
from hocket.engine.recording import ArrowRecorder, SampleTable
recorder = ArrowRecorder(sys.argv[1])
recorder.open([SampleTable("", ("x",)), SampleTable("axle", ("y",))])
for i in range(1_000_000):
    for table in (0, 1):
        recorder.write(table, np.full((64, 2), i + 0.5))
    print(i, flush=True)
"""


def test_a_killed_process_leaves_every_block_it_wrote(tmp_path: Path) -> None:
    with python(KILLED, tmp_path) as process:
        assert process.stdout is not None
        printed = [int(process.stdout.readline()) for _ in range(200)]
        process.kill()
        printed += [int(line) for line in process.stdout if line.endswith("\n")]
    for path in files(tmp_path):
        values = stored(path)
        blocks = len(values) // 64
        assert len(values) == 64 * blocks
        assert printed[-1] + 1 <= blocks <= printed[-1] + 2
        np.testing.assert_array_equal(values, np.repeat(np.arange(blocks) + 0.5, 64)[:, None].repeat(2, 1))


FULL = """
import resource, sys
import numpy as np
from hocket.engine.recording import ArrowRecorder, SampleTable
from hocket.errors import HocketError
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
recorder = ArrowRecorder(sys.argv[1])
recorder.open([SampleTable("", ("x",)), SampleTable("axle", ("y",))])
recorder.write(1, np.full((3, 2), 1.0))
written = 0
try:
    while True:
        recorder.write(0, np.full((100, 2), float(written)))
        written += 1
except HocketError as error:
    print(written, type(error).__name__)
    print(error)
recorder.write(1, np.full((3, 2), 2.0))
recorder.close()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs RLIMIT_FSIZE")
def test_a_full_disk_is_said_clearly_and_keeps_the_rows_before(tmp_path: Path) -> None:
    with python(FULL, tmp_path) as process:
        assert process.stdout is not None
        first, *message = process.stdout.read().splitlines()
    assert process.returncode == 0
    written, kind = first.split()
    outer, axle = files(tmp_path)
    assert kind == "HocketError"
    assert (
        "cannot write `000-outermost.arrow`: File too large; all rows written before are kept" in message[0]
    )
    assert str(outer) in message[1]
    assert "ulimit -f" in message[2]
    assert int(written) > 3
    np.testing.assert_array_equal(stored(outer)[:, 1], np.repeat(np.arange(float(written)), 100))
    np.testing.assert_array_equal(stored(axle)[:, 1], [1, 1, 1, 2, 2, 2])
    with pa.ipc.open_stream(outer.read_bytes()) as stream:
        assert stream.read_all().num_rows == 100 * int(written)  # no torn end for other readers


class Interrupted(io.FileIO):
    """Ctrl-C comes after the first bytes."""

    def write(self, data: Any) -> int:
        super().write(data[:10])
        raise KeyboardInterrupt


def test_an_interrupted_block_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = ArrowRecorder(tmp_path)
    recorder.open([OUTER])
    recorder.write(0, block(0, 2, 2))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", lambda path, *_, **__: Interrupted(path, "r+"))
        with pytest.raises(KeyboardInterrupt):
            recorder.write(0, block(2, 3, 2))
    recorder.write(0, block(2, 1, 2))
    np.testing.assert_array_equal(stored(files(tmp_path)[0]), block(0, 3, 2))


def test_samples_that_exist_are_not_overwritten(tmp_path: Path) -> None:
    ArrowRecorder(tmp_path).open([OUTER])
    with pytest.raises(HocketError, match="choose a new folder"):
        ArrowRecorder(tmp_path).open([OUTER])


@pytest.mark.parametrize("change", ["append", "delete"])
def test_samples_changed_behind_its_back_are_noticed(tmp_path: Path, change: str) -> None:
    recorder = ArrowRecorder(tmp_path)
    recorder.open([OUTER])
    (path,) = files(tmp_path)
    if change == "delete":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes() * 2)
    with pytest.raises(HocketError, match="moved or deleted" if change == "delete" else "another program"):
        recorder.write(0, block(0, 1, 2))


def test_a_folder_that_cannot_be_made_is_said_clearly(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HocketError, match="cannot write `samples`"):
        ArrowRecorder(tmp_path / "file").open([OUTER])


@pytest.mark.parametrize(
    ("under_way", "inside", "instants", "output", "final"),
    [
        (True, False, True, (), 2),  # an event may show the same time again
        (True, False, False, (), 3),
        (True, True, False, ("read",), 3),  # replaced are rows at the end of a step only
        (False, True, True, (), 2),
        (False, True, False, ("read",), 2),
        (False, True, False, (), 3),
        (False, False, True, ("read",), 3),
    ],
)
def test_a_row_that_may_be_replaced_is_not_final(under_way, inside, instants, output, final):
    rows = Rows([])
    for t in range(3):
        rows.waiting.append([float(t)])
    level = SimpleNamespace(
        rows=rows,
        kept={},
        micro_rows={},
        under_way=under_way,
        instants=SimpleNamespace(instruction="instant" if instants else None),
        plan=SimpleNamespace(output=output),
    )
    assert settle_level_rows(level, None, inside) == {}
    assert rows.take().ravel().tolist() == [0.0, 1.0, 2.0][:final]
    assert rows.count == 3 - final


def test_a_recorder_makes_its_folder_and_those_around_it(tmp_path):
    table = SampleTable("all", ("a.y",), ("",))
    for _ in range(2):  # and uses one that is there
        recorder = ArrowRecorder(tmp_path / "one" / "two")
        recorder.open([table])
        recorder.close()
        for file in (tmp_path / "one" / "two" / "samples").iterdir():
            file.unlink()
    assert (tmp_path / "one" / "two" / "samples").is_dir()


@pytest.mark.parametrize("torn", [0, 1, 8])
def test_rescued_rows_count_if_the_file_is_whole(torn, tmp_path):
    """A head of mark, checksum, columns and rows, then 8 bytes for each number."""
    numbers = np.arange(6.0).reshape(3, 2)
    content = numbers.tobytes()
    head = _HEAD.pack(b"hkrows1\0", zlib.crc32(content), 2, 3)
    (tmp_path / "rows").write_bytes((head + content)[: len(head + content) - torn])
    expected = [] if torn else numbers.tolist()
    assert _read_rescued(tmp_path / "rows", 2).tolist() == expected
    assert _read_rescued(tmp_path / "rows", 3).tolist() == []
    assert _read_rescued(tmp_path / "none", 2).tolist() == []
