"""Random hybrid scenarios: the same bits however they are listed, on both engines, with one thread or two."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hocket as hk
from scenarios.random_hybrids import draw_hybrid
from scenarios.test_listing import shuffle
from systems import slow_after

SEEDS = slow_after(4, [range(first, first + 5) for first in range(0, 200, 5)])
"""Twenty of two hundred in the fast suite."""
WAYS: dict[str, dict[str, Any]] = {
    "native": {"threads": 1},
    "native, two threads": {"threads": 2},
    "interpreter": {"engine": "interpreter"},
}


def outcome(composite: hk.Composite, folder: Path, **how: Any) -> Any:
    """Return the bits of all rows, or the words of a refusal."""
    steps = 14 if composite.step < 0.09 else 7
    try:
        run = hk.run(composite, stop=steps * composite.step, folder=folder, **how)
    except hk.HocketError as error:
        # a folder is named by where it is, and several faults are listed as their models are
        return type(error), sorted(str(error).partition("\nrows up to")[0].splitlines()[:1])
    assert run.info["engine"] == how.get("engine", "native"), run.info["why_interpreted"]
    return {port: (np.asarray(run[port].t).tobytes(), np.asarray(run[port].values).tobytes()) for port in run}


@pytest.mark.parametrize("block", SEEDS)
def test_hybrid_scenarios_compute_the_same_bits(block: range, tmp_path: Path) -> None:
    for seed in block:
        composite, features = draw_hybrid(seed)
        found = {
            f"{name}, {listing}": outcome(listed, tmp_path / f"{seed} {name} {listing}", **how)
            for listing, listed in (
                ("as drawn", composite),
                ("shuffled", shuffle(composite, np.random.default_rng(seed))),
            )
            for name, how in WAYS.items()
            if listing == "as drawn" or name != "native, two threads"
        }
        first = found["native, as drawn"]
        different = [name for name, each in found.items() if each != first]
        assert not different, (seed, different, sorted(features))


def test_the_scenarios_have_everything_and_most_of_them_run(tmp_path: Path) -> None:
    """What is drawn covers all kinds of events and algorithms; a refusal is rare."""
    features: set[str] = set()
    for seed in range(200):
        features |= draw_hybrid(seed)[1]
    assert features >= {
        "table", "sampled", "sampled offset", "sampled delay", "sampled jitter", "ode", "reactor",
        "generator", "delay", "crossing", "simpy", "once", "depth 1", "depth 2", "depth 3",
        "inner step longer", "inner step shorter", "jacobi", "gauss-seidel", "ordered", "iterate",
        "multirate", "compound", "asynchronous", "adaptive",
    }  # fmt: skip
    runs = [isinstance(outcome(draw_hybrid(seed)[0], tmp_path / str(seed)), dict) for seed in range(30)]
    assert sum(runs) >= 20
