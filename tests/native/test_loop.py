"""The native loop: it allocates nothing, threads change nothing, and every failure says who, when and why."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

import hocket
from hocket import (
    Composite,
    GaussSeidel,
    Hermite,
    Hold,
    Jacobi,
    Nepce,
    Polynomial,
    Python,
    Scenario,
    SimulatorError,
    StateSpace,
    open_run,
)
from systems import ENGINES

WAYS = [Hold(), Polynomial(1), Polynomial(3), Hermite(1), Hermite(2), Nepce(0.3)]
METHODS = ["exact", "euler", "exact", "ab2", "heun", "exact"]


def member(rng, size, method="exact", step=None):
    """A damped linear model with three inputs, the last of which may be left alone."""
    A = rng.uniform(-1, 1, (size, size)) - 2 * size * np.eye(size)
    B, C = rng.uniform(-1, 1, (size, 3)), rng.uniform(-1, 1, (2, size))
    x0 = rng.uniform(-1, 1, size)
    return StateSpace(A, B, C, (), x0, ["a", "b", "c = 0"], ["y", "z"], method, step)


def crowd(count=6, size=2, step=Fraction(1, 50)):
    """Three levels with a ring in each; every extrapolator, micro steps, histories, feedthrough."""
    rng = np.random.default_rng(7)

    def level(step, orchestrator, inner=None):
        models = {"gain": StateSpace(D=[[0.5]], inputs=["u"], outputs=["y"])}
        links = [("m0.y", "gain.u", Hold()), ("gain.y", "m0.c", Polynomial(1))]
        for k in range(count):
            models[f"m{k}"] = member(rng, size, METHODS[k % 6], step / (1 + k % 3))
            before = f"m{(k - 1) % count}"
            links.append((f"{before}.y", f"m{k}.a", WAYS[k % 6]))
            links.append((f"{before}.z", f"m{k}.b", WAYS[(k + 1) % 6]))
        if inner is not None:
            models["level"] = inner
            links += [("level.m0.y", "m1.c", Polynomial(2)), ("m1.y", "level.m2.c", Hermite(1))]
        return Composite(Scenario(models, links), step, orchestrator)

    deepest = level(step / 4, Jacobi(outputs="stale", inputs="delayed"))
    middle = level(step / 2, GaussSeidel(outputs="consistent"), deepest)
    return level(step, Jacobi(outputs="consistent"), middle)


def test_threads_give_the_bits_of_one_thread():
    runs = [hocket.run(crowd(8, 12), 1, threads=threads) for threads in (1, 2, 3)]
    assert len(runs[0].ports) == 3 * 17
    for run in runs[1:]:
        assert run.ports == runs[0].ports
        for port in run.ports:
            assert np.array_equal(run[port].values, runs[0][port].values), port


# allocation

COUNTER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_long count;
long allocations(void) { return count; }

void *malloc(size_t size) {
    static void *(*real)(size_t);
    if (!real) real = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    ++count;
    return real(size);
}

void *realloc(void *old, size_t size) {
    static void *(*real)(void *, size_t);
    if (!real) real = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
    ++count;
    return real(old, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    static void *(*real)(size_t, size_t);
    if (!real) real = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "aligned_alloc");
    ++count;
    return real(alignment, size);
}
"""

COUNTED = """
import ctypes, json
import hocket
from hocket.engine.native.engine import NativeEngine
from native.test_loop import crowd

library = ctypes.CDLL(None)
library.allocations.restype = ctypes.c_long
run, blocks = NativeEngine.run, (100, 1000, 2000, 4000)

def counts(record):
    found = []

    def counted(engine, steps, seconds, attend=None):
        for block in blocks:
            before = library.allocations()
            done = run(engine, block, 600.0)
            found.append(library.allocations() - before)
            assert done == block
        return steps

    NativeEngine.run = counted
    composite = crowd()
    hocket.run(composite, sum(blocks) * composite.step, record=record, threads=1)
    return found[1:]

print(json.dumps({"silent": counts([]), "recording": counts(["m0.y"])}))
"""


def environment(**more):
    return os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | more


@pytest.mark.skipif(sys.platform != "linux", reason="counts with LD_PRELOAD")
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_the_loop_allocates_nothing(tmp_path):
    source, library = tmp_path / "counter.c", tmp_path / "counter.so"
    source.write_text(COUNTER)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    answer = subprocess.run(
        [sys.executable, "-c", COUNTED],
        env=environment(LD_PRELOAD=str(library)),
        check=True,
        capture_output=True,
        text=True,
    )
    counts = json.loads(answer.stdout)
    once, twice, four_times = counts["silent"]
    assert once == twice == four_times
    assert max(counts["recording"]) > once, "rows are kept in memory that grows: the counter must see it"


# failures


class Fragile:
    """Behaves until t = 0.75."""

    inputs = ("u",)
    outputs = ("first", "second")
    feedthrough = {}  # noqa: RUF012

    def __init__(self, fault):
        self.fault = fault

    def start(self, t): ...

    def output(self, t, u):
        if t >= 0.75 and self.fault == "output":
            raise LookupError("lost the second output")
        return [1.0, float("nan") if t >= 0.75 and self.fault == "nan" else 2.0]

    def slope(self, t, u):
        if t >= 0.75 and self.fault == "slope":
            raise ArithmeticError("too steep")
        return [0.0, 0.0]

    def step(self, t, h, u):
        if t >= 0.75 and self.fault == "step":
            raise ZeroDivisionError("the tank is empty")
        return t + h / 2 if t >= 0.75 and self.fault == "early" else t + h


def with_fragile(fault):
    """The fragile one is two levels deep, beside others that behave."""
    rng = np.random.default_rng(3)
    deep = Composite(
        Scenario(
            {"good": member(rng, 2), "fragile": Python(Fragile, fault=fault)},
            {"fragile.u": "good.y", "good.a": "fragile.first", "good.b": "fragile.second"},
        ),
        0.25,
        Jacobi(),
        Hermite(1),
    )
    middle = Composite(Scenario({"deep": deep}), 0.5)
    models = {"other": member(rng, 2), "middle": middle}
    return Composite(Scenario(models, {"other.a": "other.z", "other.b": "other.y"}), 0.5)


def failure(fault, engine, folder):
    with pytest.raises(SimulatorError) as caught:
        hocket.run(with_fragile(fault), 4, engine=engine, folder=folder)
    return caught.value


@pytest.mark.parametrize(
    ("fault", "error", "words", "engine"),
    [
        ("step", ZeroDivisionError, "the tank is empty", "native"),
        ("step", ZeroDivisionError, "the tank is empty", "interpreter"),
        ("output", LookupError, "lost the second output", "native"),
        ("output", LookupError, "lost the second output", "interpreter"),
        ("slope", ArithmeticError, "too steep", "native"),
    ],
)
def test_what_a_simulator_raises_is_reported_with_its_place(fault, error, words, engine, tmp_path):
    found = failure(fault, engine, tmp_path / "run")
    assert type(found.__cause__) is error
    assert str(found.__cause__) == words
    assert found.faults[0].what == f"`middle.deep.fragile` raised {error.__name__}: {words}"
    assert found.faults[0].where.startswith(f"`middle.deep.fragile`, {fault}() at t = 0.75 s")


@pytest.mark.parametrize("engine", ENGINES)
def test_an_output_that_is_no_number_is_reported_with_its_port(engine, tmp_path):
    found = failure("nan", engine, tmp_path / "run")
    assert found.faults[0].what == "`middle.deep.fragile.second` is nan"
    assert found.faults[0].where == "output at t = 0.75 s"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_step_that_ends_too_early_is_reported(engine, tmp_path):
    found = failure("early", engine, tmp_path / "run")
    assert found.faults[0].what == "`middle.deep.fragile` stopped at 0.875 s instead of 1.0 s"
    assert found.faults[0].where == "step from t = 0.75 s by 0.25 s"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("fault", ["step", "output", "nan", "early"])
def test_a_run_that_fails_keeps_its_rows(fault, engine, tmp_path):
    found = failure(fault, engine, tmp_path / "run")
    assert any("rows up to t = 0.5 s are kept" in note for note in found.__notes__)
    run = open_run(tmp_path / "run")
    assert run.status == "failed"
    assert run["other.y"].t.tolist() == [0.0, 0.5]
    assert run["middle.deep.fragile.first"].t.tolist()[:3] == [0.0, 0.25, 0.5]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("size", [2, 5])
@pytest.mark.parametrize(("row", "shown"), [((1.0, 1.0), "inf"), ((1.0, -1.0), "nan")])
def test_a_simulator_that_explodes_is_named_when_it_does(row, shown, size, engine, tmp_path):
    """Two states grow by 1e100 each second: 1e300 after three, beyond all numbers after four."""
    A = np.zeros((size, size))
    A[0, 0] = A[1, 1] = 1e100
    C = np.zeros((1, size))
    C[0, :2] = row
    growing = StateSpace(A, C=C, x0=[1.0] * size, outputs=["y"], method="euler")
    models = {"calm": member(np.random.default_rng(0), 2), "growing": growing}
    connections = {"calm.a": "calm.y", "calm.b": "growing.y"}
    with pytest.raises(SimulatorError) as caught:
        hocket.run(Composite(Scenario(models, connections), 1), 9, engine=engine, folder=tmp_path / "run")
    assert caught.value.faults[0].what == f"`growing.y` is {shown}"
    assert caught.value.faults[0].where == "output at t = 4.0 s"
    run = open_run(tmp_path / "run")
    assert run["growing.y"].t.tolist() == [0.0, 1.0, 2.0, 3.0]
    expected = [sum(row) * 10.0 ** (100 * k) for k in range(4)]
    assert run["growing.y"].values == pytest.approx(expected, rel=1e-14)


# Ctrl-C

ENDLESS = """
import sys
import hocket
from native.test_loop import crowd

def progress(reached, stop):
    if reached > 1.0:
        print("going", flush=True)

run = hocket.run(crowd(), 10**9, folder=sys.argv[1], engine=sys.argv[2], every=0.2, progress=progress)
print(run.status, run.info["reached"], run.final("m0.y"))
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_ends_a_run_between_two_steps(engine, tmp_path):
    folder = tmp_path / "run"
    command = [sys.executable, "-c", ENDLESS, folder, engine]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment(), **pipes) as process:
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        said, complaint = process.communicate(timeout=60)
    assert (first, complaint) == ("going\n", "")
    assert process.returncode == 0
    status, reached, last = said.splitlines()[-1].split()
    run = open_run(folder)
    assert status == run.status == "stopped"
    t, values = run["m0.y"]
    assert 1.0 <= t[-1] == float(reached)  # the last row is kept though none was due
    assert np.array_equal(t[:-1], np.arange(len(t) - 1) / 5)
    assert values[-1] == float(last)
