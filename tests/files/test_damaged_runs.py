"""Run folders that were damaged: what is read is what was written, or an error says that it is not."""

import json
import os
import random
import shutil
import subprocess
import sys

import numpy as np
import pytest

import hocket as hk
from hocket.engine.recording import ArrowRecorder, SampleTable
from hocket.errors import FileError, HocketError
from hocket.files.error_estimate import ErrorEstimate, PortEstimate, read_estimate, write_estimate
from hocket.files.plotting import Series
from hocket.files.run_folder import RunFolder, open_run
from systems import rewrite_run

TABLES = [SampleTable("", ("left.x", "left.v"), ("m", "m/s")), SampleTable("axle", ("axle.F",), ("N",))]
DAMAGES = (
    "truncated",
    "zeroed",
    "zeroed at the end",
    "byte",
    "bit",
    "swapped",
    "removed",
    "longer",
    "doubled",
)


def blocks(table, count=6):
    numbers = np.random.default_rng(table)
    for k in range(count):
        rows = 5 + 3 * k
        yield np.column_stack(
            [k + np.arange(rows) / rows, numbers.normal(size=(rows, len(TABLES[table].columns)))]
        )


def make_run(folder, ended):
    output = RunFolder.create(folder, "damaged")
    output.begin(
        TABLES, scenario="[models]\n" * 20, plan="feed left\n" * 20, engine="native", start=0, stop=6
    )
    recorder = ArrowRecorder(folder)
    recorder.open(TABLES)
    for first, second in zip(blocks(0), blocks(1), strict=True):
        recorder.write(0, first)
        recorder.write(1, second)
    recorder.close()
    if not ended:
        rewrite_run(folder, process=2**22 + 1)
        return
    run = output.end("finished", reached=6.0, counts={"steps": 6})
    series = run["left.x"]
    errors = PortEstimate(Series(series.t, series.values, "m", "left.x"), series.values * 1e-3, 2.0, 0.0)
    write_estimate(folder, ErrorEstimate((errors,), (), 2, "Richardson", (), (), 2))


def damage(folder, kind, dice):
    """Damage one of the files of a run; return which, and how."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    file = dice.choice(files)
    data = bytearray(file.read_bytes())
    size = len(data)
    at = dice.randrange(size)
    length = min(dice.choice([1, 8, 64, 512]), size - at)
    if kind == "truncated":
        del data[at:]
    elif kind == "zeroed":
        data[at : at + length] = bytes(length)
    elif kind == "zeroed at the end":
        data[at:] = bytes(size - at)
    elif kind == "byte":
        data[at] = (data[at] + dice.randrange(1, 256)) % 256
    elif kind == "bit":
        data[at] ^= 1 << dice.randrange(8)
    elif kind == "swapped":
        span = min(length, size // 2)
        one, two = (
            dice.randrange(size // 2 - span + 1),
            size // 2 + dice.randrange(size - size // 2 - span + 1),
        )
        data[one : one + span], data[two : two + span] = data[two : two + span], data[one : one + span]
    elif kind == "longer":
        data += dice.randbytes(length)
    elif kind == "doubled":
        data[at:at] = data[at : at + length]
    if kind == "removed":
        file.unlink()
    else:
        file.write_bytes(data)
    return f"{kind} {file.name} at {at} ({length} of {size} bytes)"


def read_all(folder):
    """Return all that a run tells: facts, texts, samples of each table, estimate; errors in their place."""

    def attempt(work):
        try:
            return work()
        except HocketError as error:
            return error

    run = attempt(lambda: open_run(folder))
    if isinstance(run, HocketError):
        return {"run": run}
    told = {"facts": dict(run.info), "status": run.status}
    told["scenario"] = attempt(lambda: run.scenario_text)
    told["plan"] = attempt(lambda: run.plan_text)
    told["estimate"] = attempt(lambda: read_estimate(folder))
    for table in TABLES:
        told[f"table {table.name}"] = attempt(lambda name=table.name: run.table(name).to_pandas().to_numpy())
        for port in table.columns:
            told[port] = attempt(lambda port=port: np.column_stack([run[port].t, run[port].values]))
            told[f"last {port}"] = attempt(lambda port=port: run.final(port))
    return told


def is_told_right(key, found, true, ended):
    if isinstance(found, HocketError):
        return True
    if isinstance(found, np.ndarray):
        wanted = true[key] if ended else true[key][: len(found)]
        return np.array_equal(found, wanted)
    if key == "estimate":
        return found is None or np.array_equal(found["left.x"].error, true[key]["left.x"].error)
    if key.startswith("last"):
        rows = true[key.removeprefix("last ")][:, 1]
        return found == true[key] if ended else found in rows
    return found == true[key]


def says_else(file, raw):
    """Return whether a file is another; of JSON, whether its values are: spaces between them may change."""
    now = file.read_bytes()
    if file.suffix != ".json":
        return now != raw
    try:
        return json.loads(now, object_pairs_hook=list) != json.loads(raw, object_pairs_hook=list)
    except ValueError:
        return True


def check_damages(folder, count, ended, seed):
    whole = folder / "whole"
    make_run(whole, ended)
    true = read_all(whole)
    assert [value for value in true.values() if isinstance(value, HocketError)] == []
    noticed = 0
    for number in range(count):
        dice = random.Random(seed + number)
        copy = folder / "copy"
        shutil.copytree(whole, copy)
        before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
        how = damage(copy, DAMAGES[number % len(DAMAGES)], dice)
        told = read_all(copy)
        for key, found in told.items():
            if key != "run":
                assert is_told_right(key, found, true, ended), f"{how}: {key} is {found}"
        noticed += any(isinstance(value, HocketError) for value in told.values())
        changed = any(not path.exists() or says_else(path, raw) for path, raw in before.items())
        if ended and changed and "run" not in told and "trust" not in how:
            assert any(isinstance(value, HocketError) for value in told.values()), how
        shutil.rmtree(copy)
    assert noticed > count // 3


@pytest.mark.parametrize("ended", [True, False])
def test_damaged_runs_are_not_read_as_other_numbers(tmp_path, ended):
    check_damages(tmp_path, 36, ended, 0)


@pytest.mark.slow
@pytest.mark.parametrize("ended", [True, False])
def test_many_damaged_runs(tmp_path, ended):
    check_damages(tmp_path, 450, ended, 1000)


def test_a_run_that_was_killed_is_read_up_to_its_last_whole_block(tmp_path):
    make_run(tmp_path / "run", ended=False)
    whole = open_run(tmp_path / "run")
    assert whole.status == "killed"
    assert whole.integrity_notes == ()
    file = tmp_path / "run" / "samples" / "000-outermost.arrow"
    raw = file.read_bytes()
    file.write_bytes(raw[:-100] + bytes(100))  # as a power cut leaves it
    run = open_run(tmp_path / "run")
    expected = np.concatenate(list(blocks(0)))[: -(5 + 3 * 5)]
    assert np.array_equal(run["left.x"].t, expected[:, 0])
    assert np.array_equal(run["left.v"].values, expected[:, 2])
    (note,) = run.integrity_notes
    assert note.startswith("`000-outermost.arrow` ends in ")
    assert "not a whole block" in note


def test_a_block_in_the_middle_that_is_damaged_is_an_error_even_of_a_killed_run(tmp_path):
    make_run(tmp_path / "run", ended=False)
    file = tmp_path / "run" / "samples" / "001-axle.arrow"
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 1
    file.write_bytes(raw)
    with pytest.raises(
        FileError, match=r"`001-axle.arrow` is damaged: block \d of 6 is not as it was written"
    ):
        _ = open_run(tmp_path / "run")["axle.F"]


def test_an_old_run_without_checksums_is_read_with_a_note(tmp_path):
    make_run(tmp_path / "run", ended=True)
    file = tmp_path / "run" / "run.json"
    facts = json.loads(file.read_text())
    kept = {key: value for key, value in facts.items() if key not in ("checksum", "checksums", "files")}
    file.write_text(json.dumps({**kept, "hocket_run": 1}))
    (tmp_path / "run" / "samples" / "checksums").unlink()
    run = open_run(tmp_path / "run")
    assert np.array_equal(run["left.x"].t, np.concatenate(list(blocks(0)))[:, 0])
    assert run.integrity_notes == (
        "it has no checksums, as an older hocket wrote it: damage would not be noticed",
    )


@pytest.mark.parametrize("key", ["name", "status", "timings", "versions", "process", "reached", "counts"])
def test_what_run_json_lacks_is_told(tmp_path, key):
    make_run(tmp_path / "run", ended=True)
    rewrite_run(tmp_path / "run", **{key: None})
    with pytest.raises(FileError, match=f"the run.json of `run` is damaged: `{key}` is missing"):
        open_run(tmp_path / "run")


@pytest.mark.parametrize("key", ["status", "wall"])
def test_a_key_that_stands_twice_is_told(tmp_path, key):
    """JSON takes the last of them: a part of the file that was doubled would pass as it was written."""
    make_run(tmp_path / "run", ended=True)
    file = tmp_path / "run" / "run.json"
    text = file.read_text()
    line = next(line for line in text.splitlines(keepends=True) if line.strip().startswith(f'"{key}"'))
    file.write_text(text.replace(line, line.replace("finished", "failed") + line))
    with pytest.raises(FileError, match=f"`run.json` is damaged: `{key}` stands in it twice"):
        open_run(tmp_path / "run")


def test_a_run_whose_process_number_was_given_to_another_is_killed(tmp_path):
    make_run(tmp_path / "run", ended=False)
    rewrite_run(tmp_path / "run", process=os.getpid(), process_start="another boot:1")
    assert open_run(tmp_path / "run").status == "killed"


def test_a_run_of_a_scenario_has_checksums(tmp_path):
    decay = hk.StateSpace([[-1]], [], [[1]], outputs=["y"], x0=[1])
    run = hk.run(hk.Composite(hk.Scenario({"decay": decay}), step=0.1), stop=1, folder=tmp_path / "run")
    assert run.integrity_notes == ()
    file = tmp_path / "run" / "samples" / "000-outermost.arrow"
    raw = bytearray(file.read_bytes())
    raw[-5] ^= 4
    file.write_bytes(raw)
    with pytest.raises(FileError, match="is damaged"):
        _ = open_run(tmp_path / "run")["decay.y"]


KILLED = """
import hocket as hk, os, sys
decay = hk.StateSpace([[-1]], [], [[1]], outputs=["y"], x0=[1])
run = hk.run(hk.Composite(hk.Scenario({"decay": decay}), step=0.1), stop=1)
print(run.path, flush=True)
if len(sys.argv) > 1: os.kill(os.getpid(), 9)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="processes are known by their start there")
def test_the_temporary_folder_of_a_killed_process_is_removed_by_the_next(tmp_path):
    env = os.environ | {"TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", KILLED]
    killed = subprocess.run([*command, "kill"], env=env, capture_output=True, text=True)
    left = killed.stdout.strip()
    assert killed.returncode == -9
    assert os.path.isdir(left)
    mine = tmp_path / "hocket-theirs-1-00000000-x"  # of another machine: not ours to remove
    mine.mkdir()
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert not os.path.exists(left)
    assert not os.path.exists(done.stdout.strip())
    assert [path.name for path in tmp_path.iterdir()] == [mine.name]
