"""Chains of outputs with direct feedthrough, beside and behind algebraic loops, through levels.

Every row is compared with the linear solution of all algebraic equations at once, for the states of that row.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import hocket
from hocket import Composite, GaussSeidel, Hermite, Hold, Iterate, Jacobi, Polynomial, Scenario, StateSpace
from hocket.orchestrators.asynchronous import Asynchronous
from hocket.orchestrators.multirate import Multirate
from systems import ENGINES, slow_after

BLOCKS, OF = 10, 15


def draw_leaf(rng, density: float) -> StateSpace:
    """Return a simulator with sparse direct feedthrough, whose states are outputs too."""
    n, m, p = (int(k) for k in rng.integers([0, 1, 1], [3, 4, 4]))
    C = np.vstack([rng.normal(size=(p, n)), np.eye(n)])
    D = np.vstack([rng.uniform(-0.6, 0.6, (p, m)) * (rng.random((p, m)) < density), np.zeros((n, m))])
    outputs = [f"y{k}" for k in range(p)] + [f"x{k}" for k in range(n)]
    A, B, x0 = -np.diag(rng.uniform(0.3, 3.0, n)), rng.normal(size=(n, m)), rng.normal(size=n)
    return StateSpace(A, B, C, D, x0, inputs=[f"u{k}" for k in range(m)], outputs=outputs)


def draw_orchestrator(rng, names: list[str], leaves_only: bool):
    """Return an algorithm with consistent outputs; rates only where every child makes steps of any length."""
    explicit = Jacobi() if rng.random() < 0.5 else GaussSeidel(rng.permutation(names).tolist())
    kind = rng.choice(["explicit", "explicit", "iterated", "multirate", "asynchronous"])
    rates = {name: int(rng.choice([1, 2, 4])) for name in names}
    scheme = str(rng.choice(["slowest-first", "fastest-first", "compound"]))
    if kind == "iterated":
        return Iterate(explicit, 1e-13, 200)
    if kind == "multirate" and leaves_only:
        return Multirate(rates, scheme)
    return Asynchronous(rates) if kind == "asynchronous" and leaves_only else explicit


def draw_tree(number: int) -> tuple[Composite, dict[str, StateSpace], dict[str, str]]:
    """Return a tree of levels, the simulators at its ends by path, and what drives each of their inputs."""
    rng = np.random.default_rng([7, number])
    density = float(rng.choice([0.25, 0.4, 0.6]))
    leaves: dict[str, StateSpace] = {}

    def draw_level(prefix: str, depth: int) -> dict:
        models = {}
        for name in (f"m{k}" for k in range(int(rng.integers(2, 5)))):
            if depth and rng.random() < 0.3:
                models[name] = draw_level(f"{prefix}{name}.", depth - 1)
            else:
                models[name] = leaves[f"{prefix}{name}"] = draw_leaf(rng, density)
        return models

    tree = draw_level("", int(rng.integers(0, 3)))
    outputs = [f"{path}.{port.name}" for path, leaf in leaves.items() for port in leaf.outputs]
    inputs = [f"{path}.{port.name}" for path, leaf in leaves.items() for port in leaf.inputs]
    wires = {path: str(rng.choice(outputs)) for path in inputs}

    def build(models: dict, connections: dict, step: Fraction) -> Composite:
        made = {
            name: build(model, {}, step / int(rng.integers(1, 4))) if isinstance(model, dict) else model
            for name, model in models.items()
        }
        leaves_only = not any(isinstance(model, dict) for model in models.values())
        extrapolation = (Hold(), Polynomial(1), Polynomial(2), Hermite(1))[int(rng.integers(4))]
        orchestrator = draw_orchestrator(rng, list(made), leaves_only)
        return Composite(Scenario(made, connections), step, orchestrator, extrapolation)

    return build(tree, wires, Fraction(1, 20)), leaves, wires


def solve_outputs(leaves: dict[str, StateSpace], wires: dict[str, str], states: dict[str, np.ndarray]):
    """Return every output by path: y = C x + D u and u = L y, solved at once."""
    paths = [f"{path}.{port.name}" for path, leaf in leaves.items() for port in leaf.outputs]
    place = {path: number for number, path in enumerate(paths)}
    matrix, right = np.eye(len(paths)), []
    for path, leaf in leaves.items():
        first = place[f"{path}.{leaf.outputs[0].name}"]
        for k, port in enumerate(leaf.inputs):
            source = place[wires[f"{path}.{port.name}"]]
            matrix[first : first + len(leaf.outputs), source] -= np.array(leaf.D)[:, k]
        right.append(np.array(leaf.C) @ states[path])
    return dict(zip(paths, np.linalg.solve(matrix, np.vstack(right)), strict=True))


def largest_deviation(number: int, engine: str) -> float:
    """Return how far outputs of a run are off what the states of their row say, over the largest one."""
    composite, leaves, wires = draw_tree(number)
    run = hocket.run(composite, Fraction(1, 2), every=Fraction(1, 20), engine=engine)
    rows = 11
    states = {
        path: np.array([run[f"{path}.x{k}"].values for k in range(len(leaf.x0))]).reshape(-1, rows)
        for path, leaf in leaves.items()
    }
    exact = solve_outputs(leaves, wires, states)
    largest = max(1.0, *(np.abs(values).max() for values in exact.values()))
    return max(np.abs(run[path].values - values).max() for path, values in exact.items()) / largest


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("block", slow_after(1, range(BLOCKS)))
def test_every_row_solves_all_algebraic_equations(block, engine):
    numbers = range(block * OF, (block + 1) * OF)
    assert [n for n in numbers if largest_deviation(n, engine) > 1e-8] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("shown", [True, False])
def test_an_output_inside_follows_an_input_that_no_output_of_its_level_follows(engine, shown):
    """The gain 2 inside is as old as the exchange, whether or not the level has any output."""
    ramp = StateSpace([[0.0]], [[0.0]], [[1.0]], [[0.0]], [1.0], inputs=["u"], outputs=["x"])
    grow = StateSpace([[1.0]], np.zeros((1, 0)), [[1.0]], np.zeros((1, 0)), [1.0], inputs=[], outputs=["x"])
    gain = StateSpace(
        np.zeros((0, 0)), np.zeros((0, 1)), np.zeros((1, 0)), [[2.0]], [], inputs=["u"], outputs=["y"]
    )
    inside = Composite(Scenario({"gain": gain, "still": ramp}, {"still.u": "gain.y"}), "0.1 s", Jacobi())
    wires = {"level.gain.u": "grow.x"}
    models = {"level": inside, "grow": grow, "other": ramp}
    wires |= {"other.u": "level.still.x"} if shown else {"other.u": "grow.x"}
    run = hocket.run(Composite(Scenario(models, wires), "0.1 s", Jacobi()), 1, engine=engine)
    shown_gain = run["level.gain.y"]
    np.testing.assert_allclose(shown_gain.values, 2.0 * np.exp(shown_gain.t), rtol=1e-12)
