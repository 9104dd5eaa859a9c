"""Networks of passive simulators, balanced by energy: whatever the step, none makes energy.

Each stores x'Qx/2 and moves by x' = (J - R) Q x + B u, y = B'Q x with J = -J' and R >= 0, so that only its
ports and its dampers change what it stores. What one end of a bond gives the other takes: the sum stays, less
heat.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import hocket as hk
from hocket.model.protocols import Array

STEPS = 40


def network(seed: int, inputs: hk.Polynomial | hk.Hermite) -> tuple[hk.Composite, bool]:
    """Return two to five simulators in a tree, often with a loop, and whether they have dampers."""
    rng = np.random.default_rng(seed)
    count, lossy = int(rng.integers(2, 6)), seed % 2 == 1
    pairs = [(i, int(rng.integers(0, i))) for i in range(1, count)]
    if count > 2 and rng.random() < 0.4:
        pairs.append((0, count - 1))
    used: Counter[int] = Counter()
    signs: dict[int, list[float]] = {i: [] for i in range(count)}
    connections, bonds = [], {}
    for number, (giver, taker) in enumerate(pairs):
        one, other = f"n{giver}.{{}}{used[giver]}", f"n{taker}.{{}}{used[taker]}"
        for end, sign in ((giver, -1.0), (taker, 1.0)):
            used[end] += 1
            signs[end].append(sign)
        connections.append(hk.Connection(one.format("y"), other.format("u"), inputs))
        connections.append(hk.Connection(other.format("y"), one.format("u"), inputs))
        bonds[f"b{number}"] = hk.Bond(other.format("u"), one.format("u"), "", balance="energy")
    models = {f"n{i}": passive(rng, np.array(signs[i]), lossy) for i in range(count)}
    step = Fraction(f"{10 ** rng.uniform(-2.5, 0.3):.2g}")
    return hk.Composite(hk.Scenario(models, connections, bonds=bonds), step), lossy


def passive(rng: np.random.Generator, signs: Array, lossy: bool) -> hk.StateSpace:
    m = len(signs)
    n = int(rng.integers(m, m + 3))
    first, second, third, B = *rng.normal(size=(3, n, n)), rng.normal(size=(n, m))
    Q = (first @ first.T + 0.1 * np.eye(n)) * 10 ** rng.uniform(-2, 2)
    J = (second - second.T) * 10 ** rng.uniform(-1, 1.5)
    R = third @ third.T * 10 ** rng.uniform(-2, 1) if lossy else 0.0 * third
    return hk.StateSpace(
        (J - R) @ Q,
        B * signs,
        B.T @ Q,
        x0=rng.normal(size=n),
        inputs=[f"u{i}" for i in range(m)],
        outputs=[f"y{i}" for i in range(m)],
        energy=0.5 * (Q + Q.T),
    )


def stored(run: hk.Run, when: str) -> float:
    return float(sum(each[when] for each in run.info["stored"].values()))


@pytest.mark.parametrize("seed", range(30))
def test_tangents_make_no_energy(seed: int) -> None:
    made, lossy = network(seed, hk.Hermite())
    run = hk.run(made, STEPS * made.step)
    if lossy:
        assert stored(run, "end") <= stored(run, "start") * (1 + 1e-12)
    else:
        assert stored(run, "end") == pytest.approx(stored(run, "start"), rel=1e-11)


@pytest.mark.parametrize("seed", range(12))
def test_lines_make_no_more_than_there_was(seed: int) -> None:
    """Who starts from rest takes at most what the other stores; it is paid back, and does not add up."""
    made, _ = network(seed, hk.Polynomial(1))
    for count in (STEPS, 5 * STEPS):
        run = hk.run(made, count * made.step)
        assert stored(run, "end") <= 10.0 * stored(run, "start")
