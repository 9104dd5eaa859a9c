"""A hundred random scenarios with constraints: conditions hold, results are those of the joined system."""

from itertools import pairwise

import numpy as np
import pytest

import hocket as hk
from hocket.model import Connection
from hocket.passes.compiler import compile as compiled_by
from hocket.passes.modularity import Modularity
from hocket.passes.triviality import untrivial
from passes.linked import errors, mass

H = 0.05
TOLERANCE = 2e-3
"""Positions are about 1."""


def tree(rng, count):
    """Links that join so many bodies: each but the first with one before it."""
    return [(int(rng.integers(0, body)), body) for body in range(1, count)]


def linked_bodies(rng):
    """Bodies on springs of their own, joined by rods; perhaps one more that is coupled by assignments."""
    count = int(rng.integers(2, 5))
    m, c, d = rng.uniform(0.5, 2.0, count), rng.uniform(0.2, 3.0, count), rng.uniform(0.05, 0.6, count)
    links = tree(rng, count)
    forces = {body: [f"f{n} [N]" for n, ends in enumerate(links) if body in ends] for body in range(count)}
    apart = bool(rng.integers(0, 2))
    if apart:
        forces[0] = [*forces[0], "e"]
    told = bool(rng.integers(0, 2))
    ports = ["x [m]", "v [m/s]"] if told else ["x [m]"]
    models = {f"b{n}": mass(m[n], c[n], d[n], forces[n], ports) for n in range(count)}
    constraints = {}
    for number, (one, other) in enumerate(links):
        a, b = f"b{one}", f"b{other}"
        rates = {f"{a}.x": f"{a}.v", f"{b}.x": f"{b}.v"} if told else {}
        equations = [f"{a}.x = {b}.x", f"{a}.f{number} + {b}.f{number} = 0"]
        constraints[f"link{number}"] = {"equations": equations, "rates": rates}
    total = m.sum()
    joined = np.array([[0.0, 1.0], [-c.sum() / total, -d.sum() / total]])
    states = {0: tuple(f"b{n}.x" for n in range(count))}
    if not apart:
        return hk.Scenario(models, constraints=constraints), joined, [1.0, 0.0], states
    k = float(rng.uniform(0.1, 0.5))
    models["other"] = mass(1.0, 3.0, 0.4, ["u"], ["x [m]"])
    wires = [Connection("other.x", "b0.e", gain=k), Connection("b0.x", "other.u", gain=k)]
    whole = np.block([[joined, np.zeros((2, 2))], [np.zeros((2, 2)), np.array([[0.0, 1.0], [-3.0, -0.4]])]])
    whole[1, 2], whole[3, 0] = k / total, k
    return (
        hk.Scenario(models, wires, constraints=constraints),
        whole,
        [1.0, 0.0, 1.0, 0.0],
        states | {2: ("other.x",)},
    )


def junction(rng):
    """Capacitors with leaks, and coils, at one node."""
    capacitors, coils = int(rng.integers(1, 4)), int(rng.integers(0, 3))
    coils += capacitors + coils < 2
    C, R = rng.uniform(0.5, 2.0, capacitors), rng.uniform(0.5, 4.0, capacitors)
    L, S = rng.uniform(0.5, 2.0, coils), rng.uniform(0.2, 2.0, coils)
    models = {
        f"c{n}": hk.StateSpace(
            [[-1 / (R[n] * C[n])]], [[1 / C[n]]], [[1.0]], x0=[1.0], inputs=["i"], outputs=["v"]
        )
        for n in range(capacitors)
    }
    for n in range(coils):
        A, B = [[-S[n] / L[n]]], [[1 / L[n]]]
        models[f"l{n}"] = hk.StateSpace(A, B, [[1.0]], x0=[0.0], inputs=["v"], outputs=["i"])
    names = list(rng.permutation(list(models)))
    equations = [f"{a}.v = {b}.v" for a, b in pairwise(names)]
    equations.append(" + ".join(f"{name}.i" for name in names) + " = 0")
    circuit = np.zeros((1 + coils, 1 + coils))
    circuit[0, 0], circuit[0, 1:] = -np.sum(1 / R) / C.sum(), -1 / C.sum()
    for n in range(coils):
        circuit[1 + n, 0], circuit[1 + n, 1 + n] = 1 / L[n], -S[n] / L[n]
    states = {0: tuple(f"c{n}.v" for n in range(capacitors))}
    states |= {1 + n: (f"l{n}.i",) for n in range(coils)}
    return hk.Scenario(models, constraints={"node": equations}), circuit, [1.0, *[0.0] * coils], states


@pytest.mark.parametrize("seed", range(100))
def test_random_scenarios(seed):
    rng = np.random.default_rng(seed)
    scenario, A, x0, states = (linked_bodies if seed % 3 else junction)(rng)
    orchestrator = [hk.Jacobi(), hk.GaussSeidel()][int(rng.integers(0, 2))]
    level = hk.Composite(scenario, H, orchestrator, "linear")
    found = compiled_by(level)
    assert found.original == level
    assert Modularity().broken(found.level) == []
    assert untrivial(found.level) == []
    assert all(row["pass"] == "modularity" and row["reason"] for row in found.rows())
    run = hk.run(found.level, stop=2)
    seen = {state: tuple(_seen(run, port) for port in ports) for state, ports in states.items()}
    assert max(errors(run, A, x0, seen)) < TOLERANCE


def _seen(run, port):
    return next(each for each in run.ports if each == port or each.endswith(f"_level.{port}"))
