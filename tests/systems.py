"""What the tests share: engines, places, small simulators, systems of the papers, random linear scenarios."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hocket import Composite, GaussSeidel, Hold, Jacobi, Nepce, Scenario, StateSpace
from native.random_scenarios import Pen

ENGINES = ("native", "interpreter")
ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"


def slow_after(count: int, values: Iterable[Any]) -> list[Any]:
    """Return the values of a parameter; all but the first so many say the same again, and are slow."""
    return [
        pytest.param(value, marks=[pytest.mark.slow] * (number >= count))
        for number, value in enumerate(values)
    ]


SEED_BLOCKS = slow_after(1, [range(first, first + 20) for first in range(0, 100, 20)])
"""A hundred seeds in five tests, so that a failure names twenty of them."""


@cache
def golden(name: str) -> Any:
    """Return reference numbers that were computed independently of hocket."""
    return json.loads((ROOT / "tests" / "golden" / f"{name}.json").read_text())


def lag(
    rate: float = 1.0,
    gain: float = 1.0,
    x0: float = 1.0,
    inputs: Sequence[str] = ("u",),
    outputs: Sequence[str] = ("y",),
) -> StateSpace:
    """Return x' = -rate x + gain u, y = x."""
    return StateSpace([[-rate]], [[gain]], [[1.0]], x0=[x0], inputs=inputs, outputs=outputs)


LAG = lag()
LAG_AT_REST = lag(x0=0.0)
FREE_LAG = lag(inputs=("u = 0",))
"""A lag whose input may be left open."""
FALLING = lag(gain=-2.0)
INTEGRATOR = lag(rate=0.0, x0=0.7)

SPRING_MASS = {"mass.f": "spring.f", "spring.v": "mass.v"}
"""How the spring and the mass below are wired."""


def spring(s: float = 1.0, c: float = 1.0, energy: float | None = None) -> StateSpace:
    """Return s' = v, f = -c s, which declares that it stores energy s^2 / 2."""
    stored = None if energy is None else [[energy]]
    return StateSpace([[0.0]], [[1.0]], [[-c]], x0=[s], inputs=["v [m/s]"], outputs=["f [N]"], energy=stored)


def mass(v: float = 0.5, m: float = 1.0, energy: float | None = None) -> StateSpace:
    """Return m v' = f, which declares that it stores energy v^2 / 2."""
    stored = None if energy is None else [[energy]]
    return StateSpace(
        [[0.0]], [[1.0 / m]], [[1.0]], x0=[v], inputs=["f [N]"], outputs=["v [m/s]"], energy=stored
    )


def spectral_radius(matrix: Any) -> float:
    """Return the largest size of an eigenvalue."""
    return float(np.abs(np.linalg.eigvals(matrix)).max(initial=0.0))


TWO = golden("two_mass")
THREE = golden("three_mass")
TWO_MASS_WIRES = {"first.x": "second.x", "first.v": "second.v", "second.force": "first.force"}
FILTERS = {
    "Seidel12": (0.0, 0.0, 0.0),
    "Seidel21": (0.0, 0.0, 0.0),
    "Control12": (0.59, 0.36, 0.0),
    "Control21": (0.0, 0.0, 0.6),
}
"""alpha of x2, v2 and F (Glumac & Kovacic)."""


def two_masses(
    coupling: str, h: float, alphas: tuple[float, ...] | None = None, **parameters: float
) -> Composite:
    """Return a coupling of Glumac and Kovacic, such as `Control21`, at a step."""
    p = {**TWO["parameters"], **parameters}
    x0 = TWO["conventions"]["x0 two mass"]
    one = StateSpace(
        A=[[0, 1], [-(p["c1"] + p["ck"]) / p["m1"], -(p["d1"] + p["dk"]) / p["m1"]]],
        B=[[0, 0], [p["ck"] / p["m1"], p["dk"] / p["m1"]]],
        C=[[p["ck"], p["dk"]]],
        D=[[-p["ck"], -p["dk"]]],
        x0=x0[:2],
        inputs=["x2", "v2"],
        outputs=["F"],
    )
    two = StateSpace(
        A=[[0, 1], [-p["c2"] / p["m2"], -p["d2"] / p["m2"]]],
        B=[[0], [1 / p["m2"]]],
        C=np.eye(2),
        x0=x0[2:],
        inputs=["F"],
        outputs=["x", "v"],
    )
    links = (("two.x", "one.x2"), ("two.v", "one.v2"), ("one.F", "two.F"))
    connections = [
        (source, target, Nepce(alpha) if alpha else Hold())
        for (source, target), alpha in zip(links, alphas or FILTERS[coupling], strict=True)
    ]
    order = ["one", "two"] if coupling.endswith("12") else ["two", "one"]
    scenario = Scenario({"one": one, "two": two}, connections)
    return Composite(scenario, Fraction(h), GaussSeidel(order, outputs="stale"))


def three_masses(scenario: int, *steps: str, outputs: str = "stale") -> Composite:
    """Return the three masses of Hafner's thesis, flat with one step, nested with two."""
    c1, c12, c23, c3 = THREE["parameters"]["c1_c12_c23_c3"][str(scenario)]
    d1, d12, d23, d3 = THREE["parameters"]["d1_d12_d23_d3"]
    m = 10.0
    first = StateSpace(
        A=[[0, 1], [-c1 / m, -d1 / m]],
        B=[[0], [1 / m]],
        C=np.eye(2),
        x0=[1, 0],
        inputs=["force"],
        outputs=["x", "v"],
        method="euler",
        step="5 ms",
    )
    second = StateSpace(
        A=[[0, 1], [-c12 / m, -d12 / m]],
        B=[[0, 0, 0], [c12 / m, d12 / m, 1 / m]],
        C=[[1, 0], [0, 1], [c12, d12]],
        D=[[0, 0, 0], [0, 0, 0], [-c12, -d12, 0]],
        x0=[2, 0],
        inputs=["x1", "v1", "force"],
        outputs=["x", "v", "pull"],
        method="euler",
        step="2.5 ms",
    )
    third = StateSpace(
        A=[[0, 1], [-(c23 + c3) / m, -(d23 + d3) / m]],
        B=[[0, 0], [c23 / m, d23 / m]],
        C=[[1, 0], [0, 1], [c23, d23]],
        D=[[0, 0], [0, 0], [-c23, -d23]],
        x0=[3, 0],
        inputs=["x2", "v2"],
        outputs=["x", "v", "pull"],
        method="euler",
        step="1.25 ms",
    )
    inner = {"second.force": "third.pull", "third.x2": "second.x", "third.v2": "second.v"}
    how = {"outputs": outputs, "inputs": "delayed" if outputs == "stale" else "clean"}
    if len(steps) == 1:
        outer = {"first.force": "second.pull", "second.x1": "first.x", "second.v1": "first.v"}
        models = {"first": first, "second": second, "third": third}
        return Composite(Scenario(models, outer | inner), steps[0], Jacobi(outputs=outputs))
    pair = Composite(Scenario({"second": second, "third": third}, inner), steps[1], Jacobi(**how))
    outer = {"first.force": "pair.second.pull", "pair.second.x1": "first.x", "pair.second.v1": "first.v"}
    return Composite(Scenario({"first": first, "pair": pair}, outer), steps[0], Jacobi(**how))


class LinearPen(Pen):
    """Draws linear simulators only."""

    def leaf(self, step: Fraction) -> StateSpace:
        return self.linear(step)


def random_linear(seed: int, iterates: float = 0.0, at_most: int | None = None) -> Composite:
    """Return a random scenario of linear simulators, one to three levels deep, `at_most` so many in all."""
    return drawn_linear(seed, iterates, at_most)[0]


@cache
def drawn_linear(
    seed: int, iterates: float = 0.0, at_most: int | None = None
) -> tuple[Composite, int, set[str]]:
    """Return a random linear scenario, how deep it is, and what is in it."""
    rng = np.random.default_rng(seed)
    step = Fraction(1, int(rng.choice([7, 10, 32])))
    depth = None
    while True:
        pen = LinearPen(rng, iterates)
        depth = depth or int(rng.integers(1, 4))
        composite = pen.level(step, depth, outermost=True)[0]
        if at_most is None or simulators(composite) <= at_most:
            return composite, depth, pen.features


def simulators(composite: Composite) -> int:
    """Return how many simulators there are, at all levels."""
    models = composite.scenario.models.values()
    return sum(simulators(model) if isinstance(model, Composite) else 1 for model in models)


def rewrite_run(folder, **facts):
    """Change what run.json says, as if hocket had written it so: checksums fit what lies in the folder.

    None removes an entry.
    """
    import json
    from pathlib import Path

    from hocket.files.run_facts import checksum, seal

    file = Path(folder) / "run.json"
    known = {**json.loads(file.read_text()), **facts}
    known = {key: value for key, value in known.items() if value is not None}
    texts = [Path(folder) / name for name in known.get("files", ())]
    if texts:
        known["files"] = {text.name: checksum(text.read_text()) for text in texts if text.exists()}
    file.write_text(seal(known))
