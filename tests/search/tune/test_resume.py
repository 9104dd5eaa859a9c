"""A search that was killed goes on where it was, and ends as if nothing had happened."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hocket.errors import FileError
from hocket.search.tune.evaluation_pool import Journal
from hocket.search.tune.tune import tune
from systems import ROOT, two_masses

OVER = {"two.F.alpha": "0:1:8", "step": "0.1:9:40:log"}
TWO = two_masses("Control21", 0.1, (0.0, 0.0, 0.5))
SEARCH = """
import sys
from systems import two_masses
from hocket.search.tune.tune import tune

if __name__ == "__main__":
    two = two_masses("Control21", 0.1, (0.0, 0.0, 0.5))
    over = {"two.F.alpha": "0:1:8", "step": "0.1:9:40:log"}
    tune(two, over, ["rho", "delta"], folder=sys.argv[1], workers=int(sys.argv[2]))
"""


def lines(folder):
    file = folder / "judged.jsonl"
    return file.read_text().count("\n") - 1 if file.exists() else 0


@pytest.fixture(scope="module")
def uninterrupted():
    return tune(TWO, OVER, ["rho", "delta"], workers=1)


@pytest.mark.parametrize("workers", [1, 2])
def test_killed_in_the_middle_it_goes_on(tmp_path, uninterrupted, workers):
    script = tmp_path / "search.py"
    script.write_text(SEARCH)
    command = [sys.executable, str(script), str(tmp_path / "kept"), str(workers)]
    process = subprocess.Popen(command, env=environment())
    deadline = time.monotonic() + 60.0
    while lines(tmp_path / "kept") < 60 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    helpers = children(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(helpers) >= (workers if workers > 1 and Path("/proc").exists() else 0)
    while any(map(alive, helpers)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(map(alive, helpers)), "processes end with the search that started them"
    kept = lines(tmp_path / "kept")
    assert 60 <= kept < 320, "it was in the middle"
    judged = []
    made = tune(
        TWO,
        OVER,
        ["rho", "delta"],
        workers=1,
        folder=tmp_path / "kept",
        progress=lambda done, _: judged.append(done),
    )
    assert judged[0] > kept, "what was judged is not judged again"
    assert lines(tmp_path / "kept") == 320
    assert made.points == uninterrupted.points
    assert made.numbers == uninterrupted.numbers
    assert made.rows() == uninterrupted.rows()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the system does not tell who started whom")
def test_a_process_that_is_killed_loses_nothing(uninterrupted):
    killed = []

    def kill(done, total):
        helpers = [pid for pid in children(os.getpid()) if b"spawn_main" in command_of(pid)]
        if not killed and helpers and done < total:
            killed.append(helpers[0])
            os.kill(helpers[0], signal.SIGKILL)

    made = tune(TWO, OVER, ["rho", "delta"], workers=2, progress=kill)
    assert killed
    assert made.points == uninterrupted.points
    assert made.numbers == uninterrupted.numbers


SCRIPT = """
import hocket
from systems import two_masses

two = two_masses("Control21", 0.1, (0.0, 0.0, 0.5))
made = hocket.tune(two, {"two.F.alpha": "0:1:8", "step": "0.1:9:40:log"}, ["rho", "delta"], workers=2)
print(len(made.points), len(made.front))
"""


def test_a_plain_script_may_search(tmp_path, uninterrupted):
    """Processes do not run the script again, which has no guard against that."""
    (tmp_path / "plain.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "plain.py")],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout == f"320 {len(uninterrupted.front)}\n"


def command_of(pid):
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def children(pid):
    """The processes that a process started, where the system tells."""
    file = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(each) for each in file.read_text().split()] if file.exists() else []


def alive(pid):
    file = Path(f"/proc/{pid}/stat")
    return file.exists() and file.read_text().rpartition(")")[2].split()[0] != "Z"


def environment():
    paths = os.pathsep.join([str(ROOT / "tests"), *sys.path])
    return {**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"}


def test_a_genetic_search_goes_on_the_same_way(tmp_path):
    how = {"search": "genetic", "budget": 120, "seed": 3, "workers": 1}

    class Stopped(Exception):
        pass

    def stop(done, _):
        if done > 60:
            raise Stopped

    with pytest.raises(Stopped):
        tune(TWO, OVER, ["rho", "delta"], folder=tmp_path, progress=stop, **how)
    kept = lines(tmp_path)
    made = tune(TWO, OVER, ["rho", "delta"], folder=tmp_path, **how)
    whole = tune(TWO, OVER, ["rho", "delta"], **how)
    assert 0 < kept < lines(tmp_path) == len(made.points)
    assert made.points == whole.points
    assert made.numbers == whole.numbers


def test_a_line_that_was_cut_off_is_judged_again(tmp_path):
    over = {"step": "0.1, 0.2, 0.4"}
    whole = tune(TWO, over, ["rho"], folder=tmp_path)
    file = tmp_path / "judged.jsonl"
    text = file.read_text()
    for cut in (5, len(text.split("\n")[-2]) + 1, len(text) - 20, len(text)):
        file.write_text(text[:-cut])
        assert tune(TWO, over, ["rho"], folder=tmp_path).numbers == whole.numbers
        assert file.read_text() == text


def test_what_was_measured_before_stays(tmp_path):
    """Seconds per step are found out once: all points are judged by the same."""
    over = {"step": "0.1, 0.2, 0.4"}
    first = tune(TWO, over, ["time"], folder=tmp_path)
    head, *rest = (tmp_path / "judged.jsonl").read_text().splitlines(keepends=True)
    assert set(json.loads(head)["facts"]) == {"one", "two"}
    (tmp_path / "judged.jsonl").write_text(head + rest[0])
    assert tune(TWO, over, ["time"], folder=tmp_path).numbers == first.numbers


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"over": {"step": "0.1, 0.3"}}, "another search"),
        ({"goals": ["delta"]}, "another search"),
        ({"stop": 3}, "another search"),
    ],
)
def test_the_folder_of_another_search_is_refused(tmp_path, other, message):
    tune(TWO, {"step": "0.1, 0.2"}, ["rho"], folder=tmp_path)
    asked = {"over": {"step": "0.1, 0.2"}, "goals": ["rho"], **other}
    with pytest.raises(FileError, match=message):
        tune(TWO, folder=tmp_path, **asked)


def test_what_is_no_journal_is_refused(tmp_path):
    file = tmp_path / "judged.jsonl"
    for text in ("hello\n", '{"a": 1}\n', "[]\n"):
        file.write_text(text)
        with pytest.raises(FileError, match="cannot be read"):
            Journal(file, "this")


def test_a_journal_in_which_a_byte_changed_is_refused(tmp_path):
    """Each byte in turn, by one bit: what is read is what was written, or it is refused."""
    file, points = tmp_path / "judged.jsonl", [(0, 1), (2, 3)]
    with Journal(file, "this", lambda: {"one": 1e-6}) as journal:
        journal.add(points, [(0.25, 1.5), (0.125, float("inf"))])
    known, raw, refused = dict(journal.known), file.read_bytes(), 0
    last = raw[:-1].rfind(b"\n") + 1
    for place in range(len(raw) - 1):  # the last line break apart: a line without it was cut off
        for bit in (1, 4, 128):
            file.write_bytes(raw[:place] + bytes([raw[place] ^ bit]) + raw[place + 1 :])
            try:
                with Journal(file, "this") as read:
                    assert (read.known, read.facts) == (known, {"one": 1e-6}), (place, bit)
            except FileError:
                refused += 1
    assert refused > 2 * last
