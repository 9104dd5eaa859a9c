"""A level changes nothing that it is not asked to change: nested runs equal flat ones, bit for bit."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import hocket
from hocket import Composite, GaussSeidel, Hold, Jacobi, Polynomial, Scenario, StateSpace

STEP = Fraction(1, 20)
STOP = 2
EXTRAPOLATIONS = [Hold(), Polynomial(1), Polynomial(2), Polynomial(3)]
ENGINES = ["native", "interpreter"]


def masses():
    """A row of three; b and c own the springs to their left, whose forces react at once, without a loop."""
    a = StateSpace(
        A=[[0, 1], [-1, -0.3]], B=[[0], [0.7]], C=np.eye(2), x0=[1, 0], inputs=["f"], outputs=["x", "v"]
    )
    b = StateSpace(
        A=[[0, 1], [-2, -0.2]],
        B=[[0, 0, 0], [1.9, 0.1, 0.8]],
        C=[[1, 0], [0, 1], [1.9, 0.1]],
        D=[[0, 0, 0], [0, 0, 0], [-1.9, -0.1, 0]],
        x0=[0.5, -0.4],
        inputs=["x1", "v1", "f"],
        outputs=["x", "v", "p"],
        method="rk4",
        step=STEP / 2,
    )
    c = StateSpace(
        A=[[0, 1], [-3, -0.4]],
        B=[[0], [1.3]],
        C=[[1, 0], [1.3, 0.1]],
        D=[[0], [-1.3]],
        x0=[-0.7, 0.3],
        inputs=["x2"],
        outputs=["x", "p"],
        method="heun",
    )
    return {"a": a, "b": b, "c": c}


A_TO_B = {"a.f": "b.p", "b.x1": "a.x", "b.v1": "a.v"}
B_TO_C = {"b.f": "c.p", "c.x2": "b.x"}
PORTS = ["a.x", "a.v", "a.f", "b.x", "b.v", "b.p", "b.x1", "b.v1", "b.f", "c.x", "c.p", "c.x2"]


def inside(path, levels):
    """`b.x` of the level `level` that holds b is `level.b.x`."""
    return next((f"{level}.{path}" for level, names in levels.items() if path[0] in names), path)


def between(connections, levels):
    return {inside(target, levels): inside(source, levels) for target, source in connections.items()}


def nest(grouped, choices, models=None):
    """The masses with some of them in a level of their own."""
    models, levels = models or masses(), {"level": grouped}
    own = {t: s for t, s in (A_TO_B | B_TO_C).items() if t[0] in grouped and s[0] in grouped}
    across = {t: s for t, s in (A_TO_B | B_TO_C).items() if t not in own}
    level = Composite(Scenario({name: models[name] for name in grouped}, own), *choices)
    rest = {name: model for name, model in models.items() if name not in grouped}
    return rest | {"level": level}, between(across, levels)


REFRESHED = {"bc": ("b.p", "b.x1", "b.v1"), "ab": ("b.f",), "ac": ("c.p", "c.x2")}
"""Ports that a consistent outer level evaluates again after the level inside has kept its row."""


def series(composite, engine, paths):
    run = hocket.run(composite, STOP, record=paths, engine=engine)
    assert run.info["engine"] == engine
    assert all(len(run[path].t) == STOP / STEP + 1 for path in paths)
    return [run[path].values for path in paths]


def assert_same_bits(flat, nested, grouped, engine, ports=PORTS):
    levels = {"level": grouped}
    ours, theirs = series(flat, engine, ports), series(nested, engine, [inside(p, levels) for p in ports])
    for port, x, y in zip(ports, ours, theirs, strict=True):
        assert np.array_equal(x, y), port
        assert np.ptp(x) > 0.01, port


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("extrapolation", EXTRAPOLATIONS)
@pytest.mark.parametrize("outputs", ["stale", "consistent"])
@pytest.mark.parametrize(("grouped", "start"), [("bc", "window"), ("ab", "cold"), ("ac", "cold")])
def test_jacobi_in_jacobi_with_one_step_is_flat_jacobi(grouped, start, outputs, extrapolation, engine):
    choices = (STEP, Jacobi(outputs=outputs), extrapolation, start)
    flat = Composite(Scenario(masses(), A_TO_B | B_TO_C), *choices)
    nested = Composite(Scenario(*nest(grouped, choices)), *choices)
    ports = [p for p in PORTS if outputs == "stale" or p not in REFRESHED[grouped]]
    assert_same_bits(flat, nested, grouped, engine, ports)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("extrapolation", EXTRAPOLATIONS)
@pytest.mark.parametrize("outputs", ["stale", "consistent"])
@pytest.mark.parametrize("first", ["a", "level"])
def test_a_level_in_a_sequence_is_a_group_in_it(first, outputs, extrapolation, engine):
    """GaussSeidel(["a", ["b", "c"]]) equals a level of b and c, Jacobi inside, after a."""
    group = ["a", ["b", "c"]] if first == "a" else [["b", "c"], "a"]
    sequence = ["a", "level"] if first == "a" else ["level", "a"]
    flat = Composite(
        Scenario(masses(), A_TO_B | B_TO_C), STEP, GaussSeidel(group, outputs=outputs), extrapolation
    )
    nested = Composite(
        Scenario(*nest("bc", (STEP, Jacobi(outputs=outputs), extrapolation))),
        STEP,
        GaussSeidel(sequence, outputs=outputs),
        extrapolation,
    )
    ports = [p for p in PORTS if outputs == "stale" or p not in REFRESHED["bc"]]
    assert_same_bits(flat, nested, "bc", engine, ports)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("extrapolation", EXTRAPOLATIONS)
@pytest.mark.parametrize("orchestrator", [Jacobi(outputs="stale"), GaussSeidel(outputs="stale")])
@pytest.mark.parametrize("inner_step", [STEP, STEP / 2], ids=["same step", "its own micro step"])
def test_a_level_with_one_child_is_the_child(inner_step, orchestrator, extrapolation, engine):
    models, inputs = masses(), ["x1", "v1", "f"]
    flat = Composite(Scenario(models, A_TO_B | B_TO_C), STEP, orchestrator, extrapolation, "cold")
    level = Composite(Scenario({"b": models["b"]}), inner_step, orchestrator, extrapolation, "cold")
    connections = between(A_TO_B | B_TO_C, {"level": "b"})
    around = Composite(
        Scenario({"a": models["a"], "level": level, "c": models["c"]}, connections),
        STEP,
        orchestrator if isinstance(orchestrator, Jacobi) else GaussSeidel(["a", "level", "c"], outputs="stale"),
        extrapolation,
        "cold",
    )
    if isinstance(orchestrator, GaussSeidel):
        flat = Composite(
            flat.scenario, STEP, GaussSeidel(["a", "b", "c"], outputs="stale"), extrapolation, "cold"
        )
    outside = [p for p in PORTS if p[0] != "b"]
    paths = [*outside, "b.x", "b.v", "b.p", *(f"b.{name}" for name in inputs)]
    ours = series(flat, engine, paths)
    run = hocket.run(around, STOP, record=[inside(p, {"level": "b"}) for p in paths], engine=engine)
    stride = int(STEP / inner_step)
    for path, x in zip(paths, ours, strict=True):
        y = run[inside(path, {"level": "b"})].values
        assert np.array_equal(x, y[::stride] if path[0] == "b" else y), path
