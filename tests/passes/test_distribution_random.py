"""Distribution of random linear scenarios: against the one system they are, and counted as predicted."""

import numpy as np
import pytest
from scipy.linalg import block_diag, expm

import hocket as hk
from hocket.passes.distribution import Distribution
from hocket.plan.cost import cost

COUNT, STEP, STOP = 100, 0.02, 0.06
TOLERANCE = 1e-3
FAST = 10.0
"""Motions that these steps cannot follow (1/s) show nothing: a loop whose gain is close to one makes such."""


def model(rng):
    """Up to two states, some outputs that react at once; small gains, so that nothing grows fast."""
    states, inputs, outputs = int(rng.integers(0, 3)), int(rng.integers(1, 3)), int(rng.integers(1, 3))
    D = 0.4 * rng.normal(size=(outputs, inputs)) * (rng.random((outputs, inputs)) < (0.3 if states else 1.0))
    return hk.StateSpace(
        0.4 * rng.normal(size=(states, states)) - np.eye(states) if states else (),
        rng.normal(size=(states, inputs)) if states else (),
        rng.normal(size=(outputs, states)) if states else (),
        D.tolist(),
        rng.normal(size=states) if states else None,
        [f"u{k}" for k in range(inputs)],
        [f"y{k}" for k in range(outputs)],
    )


def scenario(rng):
    models = {f"m{k}": model(rng) for k in range(int(rng.integers(3, 7)))}
    names = list(models)
    sources = [f"{name}.{port.name}" for name in names for port in models[name].outputs]
    wires = {
        f"{name}.{port.name}": sources[int(rng.integers(len(sources)))]
        for name in names
        for port in models[name].inputs
    }
    count = int(rng.integers(2, 4))
    hosts = {f"h{k}": [] for k in range(count)}
    for place, number in enumerate(rng.permutation(len(names))):
        hosts[f"h{place if place < count else int(rng.integers(count))}"].append(names[number])
    return hk.Scenario(models, wires, hosts=hosts)


def exact(made, t):
    """All outputs at a time, of the models as one system: y = (I - D L)^-1 C x; and how fast it moves."""
    parts = list(made.models.values())
    shapes = [(len(m.A), len(m.inputs), len(m.outputs)) for m in parts]
    A = block_diag(*(np.reshape(m.A, (n, n)) for m, (n, _, _) in zip(parts, shapes, strict=True)))
    B = block_diag(*(np.reshape(m.B, (n, i)) for m, (n, i, _) in zip(parts, shapes, strict=True)))
    C = block_diag(*(np.reshape(m.C, (o, n)) for m, (n, _, o) in zip(parts, shapes, strict=True)))
    D = block_diag(*(np.reshape(m.D, (o, i)) for m, (_, i, o) in zip(parts, shapes, strict=True)))
    inputs = [f"{name}.{port.name}" for name, m in made.models.items() for port in m.inputs]
    outputs = [f"{name}.{port.name}" for name, m in made.models.items() for port in m.outputs]
    L = np.zeros((len(inputs), len(outputs)))
    for each in made.connections:
        L[inputs.index(each.target), outputs.index(each.source)] = 1.0
    shown = np.linalg.solve(np.eye(len(outputs)) - D @ L, C)
    whole = A + B @ L @ shown
    x = expm(whole * t) @ np.concatenate([m.x0 for m in parts])
    return dict(zip(outputs, shown @ x, strict=True)), np.abs(np.linalg.eigvals(whole)).max(initial=0.0)


@pytest.mark.parametrize("seeds", [range(start, start + 25) for start in range(0, COUNT, 25)])
def test_random_scenarios_are_distributed(seeds):
    done = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        algorithm = "jacobi" if rng.random() < 0.5 else "gauss-seidel"
        iterate = [None, None, None, 2, 1e-4][int(rng.integers(5))]
        level = hk.Composite(scenario(rng), STEP, algorithm, "quadratic")
        distribution = Distribution(STEP / 2, "quadratic", iterate)
        if distribution.unmet(level):
            # loops across hosts are the only thing that may be wrong with these
            assert all("loop" in fault.what for fault in distribution.unmet(level))
            continue
        values, fastest = exact(level.scenario, STOP)
        if fastest > FAST:
            continue
        done += 1
        made = distribution.apply(level)
        assert distribution.broken(made) == []
        assert distribution.wanted(made) == []
        run = hk.run(made, stop=STOP, engine="interpreter")
        for port, value in values.items():
            host = level.scenario.hosts.of_model()[port.partition(".")[0]]
            got = run.final(f"{host}.{port}")
            assert abs(got - value) <= TOLERANCE * max(1.0, abs(value)), (seed, port, got, value)
        told, counts = cost(made.blueprint), run.info["counts"]
        sweeps = counts.get("sweeps", {}).get("", {}).get("total")
        links = counts.get("messages", {}).values()
        assert sum(link["messages"] for link in links) == told.messages(counts["steps"], sweeps), seed
        assert sum(link["bytes"] for link in links) == told.bytes(counts["steps"], sweeps), seed
    assert done >= 10
