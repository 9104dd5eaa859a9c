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


def series(composite, engine, paths):
    run = hocket.run(composite, STOP, record=paths, engine=engine)
    assert run.info["engine"] == engine
    assert all(len(run[path].t) > 40 for path in paths)
    return [run[path].values for path in paths]


def assert_same_bits(one, other, levels, engine):
    flat, nested = series(one, engine, PORTS), series(other, engine, [inside(p, levels) for p in PORTS])
    for port, x, y in zip(PORTS, flat, nested, strict=True):
        assert np.array_equal(x, y), port


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("extrapolation", EXTRAPOLATIONS)
@pytest.mark.parametrize("outputs", ["stale", "consistent"])
@pytest.mark.parametrize("grouped", ["bc", "ab", "ac"])
def test_jacobi_in_jacobi_with_one_step_is_flat_jacobi(grouped, outputs, extrapolation, engine):
    models, levels = masses(), {"level": grouped}
    choices = (STEP, Jacobi(outputs=outputs), extrapolation)
    own = {
        t: s for t, s in (A_TO_B | B_TO_C).items() if t[0] in grouped and s[0] in grouped
    }
    across = {t: s for t, s in (A_TO_B | B_TO_C).items() if t not in own}
    flat = Composite(Scenario(models, A_TO_B | B_TO_C), *choices)
    level = Composite(Scenario({name: models[name] for name in grouped}, own), *choices)
    rest = {name: model for name, model in models.items() if name not in grouped}
    nested = Composite(Scenario(rest | {"level": level}, between(across, levels)), *choices)
    assert_same_bits(flat, nested, levels, engine)
