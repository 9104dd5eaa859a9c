"""Checkpoints and resume: run to T equals run to T/2, then resume; files that are torn; what is refused."""

from __future__ import annotations

import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hocket as hk
from fmus.build import build
from hocket.analysis.linear_reading import list_places, scatter_state
from hocket.engine.native.engine import NativeEngine
from hocket.engine.portable_state import dump_state
from hocket.execution import session
from hocket.execution.run import experiment_to_run, run_experiment
from hocket.files.checkpoint import checkpoints_of, read_checkpoint, write_checkpoint
from hocket.files.experiments import as_experiment
from hocket.planning.parameters import leaves
from hocket.simulators.wrappers.replay import Replay
from native.random_scenarios import draw
from scenarios.random_hybrids import draw_hybrid
from systems import ENGINES, EXAMPLES, lag, slow_after

BLOCKS = slow_after(2, [range(first, first + 5) for first in range(0, 100, 5)])
HYBRIDS = slow_after(2, [range(first, first + 3) for first in range(0, 60, 3)])


def rows(run: hk.Run) -> dict[str, bytes]:
    """Return every table, bit for bit."""
    return {
        table.name: b"".join(column.to_numpy().tobytes() for column in run.table(table.name).columns)
        for table in run.tables
    }


FACTS = ("counts", "bonds", "stored", "reached", "ended_by", "gaps", "findings", "status")


def facts(run: hk.Run) -> dict[str, Any]:
    """Return what run.json says of how it went."""
    return {key: run.info.get(key) for key in FACTS}


def run_half(
    what: Any, folder: Path, part: float, monkeypatch: pytest.MonkeyPatch, engine: str = "native", **more: Any
) -> hk.Run:
    """Run to a part of the way, as if Ctrl-C had come there."""
    experiment = experiment_to_run(as_experiment(what), **more)
    assert experiment.stop is not None
    until = float(experiment.start + (experiment.stop - experiment.start) * int(part * 1024) / 1024)
    stopping = threading.Event()

    def watch(t: float, _stop: float) -> None:
        if t >= until:
            stopping.set()

    with monkeypatch.context() as patch:
        patch.setattr(session, "LOOK_INTERVAL", 0.0)
        return run_experiment(
            experiment, {}, folder=folder, engine=engine, checkpoint_every="1 h", progress=watch,
            interrupted=stopping,
        )  # fmt: skip


def compare(
    what: Any, tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch, part: float = 0.5, **more: Any
) -> None:
    """Run in one piece and in two; all rows and facts are the same."""
    if any(not model.capabilities.rollback for _, model in leaves(as_experiment(what).composite)):
        return  # it is named before the run, as tests below show
    whole = hk.run(what, engine=engine, **more)
    folder = tmp_path / f"half-{engine}"
    half = run_half(what, folder, part, monkeypatch, engine, **more)
    if half.status in ("finished", "ended"):  # it has too few steps
        return
    resumed = hk.resume(folder, what)
    statuses = {whole.status, resumed.status}  # "stopped": a signal came from outside, and rows are missing
    assert "stopped" not in statuses, "the process was told to stop (SIGTERM) while a run lasted"
    assert resumed.info["resumed"][0] > 0 or half.info.get("within_step")
    assert rows(resumed) == rows(whole)
    assert facts(resumed) == facts(whole)
    assert len(resumed.info["resumed"]) == 1


@pytest.mark.parametrize("block", BLOCKS)
def test_random_scenarios_resumed_have_the_bits_of_one_run(
    block: range, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in block:
        it = draw(np.random.default_rng([1, number]))
        for engine in ENGINES:
            part = 0.2 + 0.6 * (number % 7) / 7
            compare(
                it.composite, tmp_path / str(number), engine, monkeypatch, part, start=it.start, stop=it.stop
            )


@pytest.mark.parametrize("block", HYBRIDS)
def test_random_hybrids_resumed_have_the_bits_of_one_run(
    block: range, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in block:
        composite, _ = draw_hybrid(seed)
        stop = (14 if composite.step < 0.09 else 7) * composite.step
        for engine in ENGINES:
            try:
                hk.run(composite, stop=stop, engine=engine)
            except hk.HocketError:
                continue
            compare(composite, tmp_path / str(seed), engine, monkeypatch, stop=stop)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.toml")))
def test_examples_resumed_have_the_bits_of_one_run(
    name: str, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = hk.read(EXAMPLES / name)
    stop = experiment.start + 30 * experiment.composite.step
    compare(experiment, tmp_path, engine, monkeypatch, stop=stop)


def two_lags(**options: Any) -> hk.Composite:
    """Return two lags, each driven by the other; x' = -x + u from 1."""
    scenario = hk.Scenario({"a": lag(), "b": lag()}, {"a.u": "b.y", "b.u": "a.y"})
    step = options.pop("step", "1/10")
    return hk.Composite(scenario, step, options.pop("orchestrator", "jacobi"), **options)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], Path]:
    folder = tmp_path_factory.mktemp("fmus")
    return cache(lambda name, version: build(name, version, folder=folder / str(version)))


FMUS = (("tank", 2, "cs"), ("tank", 3, "cs"), ("vanderpol", 2, "me"), ("ramp", 3, "cs"), ("ball", 3, "cs"))


@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize(("name", "version", "interface"), FMUS)
def test_fmus_resumed_have_the_bits_of_one_run(
    name: str,
    version: int,
    interface: str,
    isolate: bool,
    built: Callable[[str, int], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used = "co-simulation" if interface == "cs" else "model-exchange"
    model = hk.Fmu(built(name, version), interface=used, isolate=isolate)
    composite = hk.Composite(hk.Scenario({"fmu": model, "lag": lag(inputs=("u = 0",))}, {}), "1/100")
    for engine in ENGINES:
        compare(composite, tmp_path, engine, monkeypatch, stop="1/2")


def test_an_fmu_that_cannot_be_serialised_is_named_before_the_run(
    built: Callable[[str, int], Path], tmp_path: Path
) -> None:
    model = hk.Fmu(built("first", 1))
    composite = hk.Composite(hk.Scenario({"m": model}, {}), "1/10")
    with pytest.raises(hk.SimulatorError, match="`m` cannot"):
        hk.run(composite, stop=1, folder=tmp_path / "r", checkpoint_every="1 h")
    replayed = hk.Composite(hk.Scenario({"m": Replay(model)}, {}), "1/10")
    hk.run(replayed, stop=1, folder=tmp_path / "q", checkpoint_every="1 h")
    resumed = hk.resume(tmp_path / "q", replayed, stop=2)
    assert rows(resumed) == rows(hk.run(replayed, stop=2))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_finished_run_goes_on_to_a_later_stop(engine: str, tmp_path: Path) -> None:
    composite = two_lags(extrapolation="linear")
    hk.run(composite, stop=1, engine=engine, folder=tmp_path / "r", checkpoint_every="1 h", every="3/10")
    resumed = hk.resume(tmp_path / "r", stop=2)  # the folder says what was run
    assert rows(resumed) == rows(hk.run(composite, stop=2, engine=engine, every="3/10"))
    again = hk.resume(tmp_path / "r", stop=3)
    assert rows(again) == rows(hk.run(composite, stop=3, engine=engine, every="3/10"))
    assert again.info["resumed"] == [1.0, 2.0]


def test_a_torn_checkpoint_is_left_out_and_the_one_before_it_used(tmp_path: Path) -> None:
    composite = two_lags()
    folder = tmp_path / "r"
    hk.run(composite, stop=1, folder=folder, checkpoint_every="1 h")
    hk.resume(folder, stop=2)
    newest, before = folder / "checkpoint", folder / "checkpoint.previous"
    assert read_checkpoint(newest).time == 2
    assert read_checkpoint(before).time == 1
    whole = newest.read_bytes()
    expected = rows(hk.run(composite, stop=3))
    for size in range(0, len(whole), max(1, len(whole) // 40)):
        newest.write_bytes(whole[:size])
        with pytest.raises(hk.HocketError, match=r"damaged|not a checkpoint"):
            read_checkpoint(newest)
    resumed = hk.resume(folder, stop=3)
    assert resumed.info["resumed"][-1] == 1.0
    assert any("the one before it" in note for note in resumed.info["notes"])
    assert rows(resumed) == expected
    newest.write_bytes(b"")
    before.write_bytes(whole[:100])
    with pytest.raises(hk.HocketError, match="checkpoint"):
        hk.resume(folder, stop=4)
    newest.unlink()
    before.unlink()
    with pytest.raises(hk.HocketError, match="has no checkpoint"):
        hk.resume(folder, stop=4)


def test_any_changed_byte_of_a_checkpoint_is_noticed(tmp_path: Path) -> None:
    with hk.open(two_lags()) as live:
        live.step(3)
        live.checkpoint(tmp_path / "c")
    whole = (tmp_path / "c").read_bytes()
    for place in range(0, len(whole), 7):
        changed = bytearray(whole)
        changed[place] ^= 0x10
        (tmp_path / "c").write_bytes(bytes(changed))
        with pytest.raises(hk.HocketError):
            read_checkpoint(tmp_path / "c")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_forged_state_is_refused_or_changes_numbers_only(engine: str, tmp_path: Path) -> None:
    """The checksum guards against accidents; who forges it may change numbers, and nothing else."""
    composite = two_lags(
        extrapolation="linear", orchestrator=hk.Iterate(tolerance=1e-9, accelerate="quasi-newton")
    )
    with hk.open(composite, engine=engine) as live:
        live.step(3)
        live.checkpoint(tmp_path / "c")
    good = read_checkpoint(tmp_path / "c")
    random = np.random.default_rng(22)
    refused = 0
    for number in range(150):
        state = bytearray(good.state)
        for _ in range(1 + number % 3):
            state[random.integers(len(state))] = random.integers(256)
        kept = bytes(state if number % 5 else state[: random.integers(len(state))])
        write_checkpoint(tmp_path / "d", good.header, kept, good.rows, sync=False)
        try:
            with hk.open(composite, checkpoint=tmp_path / "d") as live:
                live.step(5)
        except hk.HocketError:
            refused += 1
    assert 0 < refused < 150


@pytest.mark.parametrize("engine", ENGINES)
def test_overrides_are_part_of_a_checkpoint(engine: str, tmp_path: Path) -> None:
    composite = two_lags(extrapolation="linear")
    with hk.open(composite, engine=engine) as live:
        live.step(3)
        live.set("a.u", 2.0)
        live.set("b.y", 0.25)
        live.step(2)
        live.checkpoint(tmp_path / "c")
        live.step(4)
        live.release()
        live.step(4)
        expected = [live[port] for port in live.ports]
    with hk.open(composite, checkpoint=tmp_path / "c") as live:
        assert live.engine == engine
        assert live.steps == 5
        assert live.overrides == {"a.u": 2.0, "b.y": 0.25}
        live.step(4)
        live.release()
        live.step(4)
        assert [live[port] for port in live.ports] == expected
    with pytest.raises(hk.HocketError, match="overridden"):
        hk.resume(tmp_path / "c", composite, stop=2)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_warm_start_changes_a_parameter_at_the_checkpoint(engine: str, tmp_path: Path) -> None:
    composite = hk.Composite(hk.Scenario({"a": lag(inputs=("u = 0",))}, {}), "1/10")
    folder = tmp_path / "r"
    run = hk.run(composite, stop=1, engine=engine, folder=folder, checkpoint_every="1 h")
    warm = hk.resume(folder, stop=2, parameters={"a.A[1,1]": -3.0}, folder=tmp_path / "w")
    t, y = np.asarray(warm["a.y"].t), np.asarray(warm["a.y"].values)
    assert t[0] == 1.0
    assert y == pytest.approx(run.final("a.y") * np.exp(-3.0 * (t - 1.0)), rel=1e-12)
    assert warm.info["parameters"] == {"a.A[1,1]": -3.0}
    with pytest.raises(hk.HocketError, match=r"cannot change at a checkpoint|no parameter"):
        hk.resume(folder, stop=2, parameters={"a.x0": 3.0}, folder=tmp_path / "v")


def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path) -> None:
    composite = two_lags()
    folder = tmp_path / "r"
    hk.run(composite, stop=1, folder=folder, checkpoint_every="1 h")
    with pytest.raises(hk.HocketError, match="another co-simulation"):
        hk.resume(folder, two_lags(orchestrator="gauss-seidel"), stop=2)
    other = hk.Scenario({"a": lag(), "b": lag(x0=5.0)}, {"a.u": "b.y", "b.u": "a.y"})
    with pytest.raises(hk.HocketError, match="other values"):
        hk.resume(folder, hk.Composite(other, "1/10", "jacobi"), stop=2)
    with pytest.raises(hk.HocketError, match="before its checkpoint"):
        hk.resume(folder, stop="1/2")
    checkpoint = read_checkpoint(folder / "checkpoint")
    header = {**checkpoint.header, "hocket": "0.0.9"}
    for name in ("checkpoint", "checkpoint.previous"):
        write_checkpoint(folder / name, header, checkpoint.state, checkpoint.rows)
    with pytest.raises(hk.HocketError, match=r"0\.0\.9"):
        hk.resume(folder, stop=2)


class Odd:
    """A class whose state is not plain data."""

    inputs: tuple[str, ...] = ()
    outputs = ("y",)

    def start(self, t: float) -> None:
        self.x = 0.0

    def step(self, t: float, h: float, u: Any) -> None:
        self.x += h

    def output(self, t: float, u: Any) -> float:
        return self.x

    def save(self) -> Any:
        return Path("of", str(self.x))

    def restore(self, state: Any) -> None:
        self.x = float(state.name)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_class_whose_state_is_not_plain_is_named_before_the_run(engine: str, tmp_path: Path) -> None:
    composite = hk.Composite(hk.Scenario({"odd": hk.Python(Odd)}, {}), "1/10")
    with pytest.raises(hk.SimulatorError, match=r"`odd` saves what cannot be written down: .*Path"):
        hk.run(composite, stop=1, engine=engine, folder=tmp_path / "r", checkpoint_every="1 h")


@pytest.mark.slow
def test_a_run_that_was_killed_is_resumed_with_the_bits_of_one_run(tmp_path: Path) -> None:
    code = (
        "import sys, hocket as hk; from pathlib import Path\n"
        "hk.run('car.toml', stop=2000, folder='r', overwrite=True, checkpoint_every='1/20')\n"
    )
    hk.write(two_lags(extrapolation="linear", step="1/1000"), tmp_path / "car.toml")
    expected = rows(hk.run(tmp_path / "car.toml", stop=2000))
    random = np.random.default_rng(9)
    resumed = 0
    for _ in range(6):
        process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path)
        until = time.monotonic() + 60
        while not (tmp_path / "r" / "checkpoint").exists() and time.monotonic() < until:
            time.sleep(0.02)
        time.sleep(float(random.uniform(0.0, 0.5)))
        process.kill()
        process.wait()
        if not list(checkpoints_of(tmp_path / "r")):  # killed before it wrote one
            continue
        run = hk.resume(tmp_path / "r", stop=2000)
        assert rows(run) == expected
        resumed += 1
    assert resumed >= 3


def test_a_checkpoint_has_every_number_of_z_of_the_linear_reading(tmp_path: Path) -> None:
    """z is all that lasts of a linear co-simulation; each of its numbers is marked and looked for."""
    for extrapolation in (hk.Hold(), hk.Polynomial(2), hk.Hermite(1), hk.Nepce(0.5)):
        inside = hk.Scenario({"p": lag(2.0), "q": lag(3.0)}, {"p.u": "q.y"})
        inner = hk.Composite(inside, "1/20", "jacobi", extrapolation)
        outer = hk.Scenario({"inner": inner, "m": lag()}, {"inner.q.u": "m.y", "m.u": "inner.p.y"})
        composite = hk.Composite(outer, "1/10", "jacobi", extrapolation)
        with hk.open(composite, engine="interpreter") as live:
            live.step(4)
            places = list_places(live._level)
            kinds = {place.kind for place in places}
            assert {"state", "sample", "input", "outside"} <= kinds
            marks = [1e6 + number + 1.0 / 3.0 for number in range(len(places))]
            scatter_state(live._level, np.array(marks), places)
            live.checkpoint(tmp_path / "c")
            with hk.open(composite, checkpoint=tmp_path / "c") as other:
                found = [place.read() for place in list_places(other._level)]
                names = [place.cell for place in list_places(other._level)]
            assert names == [place.cell for place in places]
            assert found == marks
            # compiled code takes the tree over as it stands: what it writes has the same numbers
            numbers = dump_state(NativeEngine(live._level, [], 1, condense=False))
            marked = zip(places, marks, strict=True)
            lost = [place.cell for place, mark in marked if struct.pack("<d", mark) not in numbers]
        assert lost == []
