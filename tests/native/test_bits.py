"""The interpreter is the specification: the native engine agrees with it in every bit."""

from __future__ import annotations

import os

import numpy as np
import pytest

import hocket
from native.random_scenarios import METHODS, PYTHON, draw
from systems import slow_after

SEED = int(os.environ.get("HOCKET_SEED", "1"))
COUNT = 200


def drawn(number):
    return draw(np.random.default_rng([SEED, number]))


@pytest.mark.parametrize("number", slow_after(COUNT // 6, range(COUNT)))
def test_both_engines_and_two_threads_give_the_same_bits(number):
    print(f"HOCKET_SEED={SEED}, scenario {number}")
    it = drawn(number)
    options = {"start": it.start, "every": it.every, "record": it.record, "ledger": True}
    plain = hocket.run(it.composite, it.stop, engine="interpreter", **options)
    assert plain.info["engine"] == "interpreter"
    assert plain.table().num_rows > 1
    assert set(it.record[1:]) <= set(plain.ports)
    for threads in (1, 2):
        native = hocket.run(it.composite, it.stop, engine="native", threads=threads, **options)
        assert native.info["engine"] == "native"
        assert native.tables == plain.tables
        assert native.info.get("bonds") == plain.info.get("bonds")
        for table in plain.tables:
            theirs, ours = plain.table(table.name), native.table(table.name)
            for name, one, other in zip(theirs.column_names, theirs.columns, ours.columns, strict=True):
                assert np.array_equal(one.to_numpy(), other.to_numpy()), (table.name, name, threads)


# fmt: off
EVERYTHING = {
    *METHODS, "micro steps", "one step", "feedthrough", "no feedthrough", "python", "ode", "function",
    *(f"{n} states" for n in range(6)), *(f"{p} outputs" for p in range(1, 6)),
    *(cls.__name__ for cls in PYTHON), "period None", "period 3", "period 1/2",
    "Hold of degree 0", "Nepce of degree 0", "Hermite of degree 1", "Hermite of degree 3",
    *(f"Polynomial of degree {q}" for q in (1, 2, 3)), "start window", "start cold",
    "Jacobi", "sequence", "groups", "auto", "loop", "no loop", "iterated to None", "iterated to 1e-13",
    *(f"rates, {each}" for each in ("slowest-first", "fastest-first", "compound", "asynchronous")),
    *(f"steps by {each}" for each in ("defect", "orders", "richardson")),
    "bond", "bond across levels",
    *(f"led by {each}" for each in (None, "relax", "aitken", "quasi-newton", "newton")),
    "outputs stale", "outputs consistent", "inputs clean", "inputs delayed",
    "depth 2", "depth 3", *(f"step times {ratio}" for ratio in ("1", "1/2", "1/3", "2", "3")),
    "path through levels", "connection", "unit conversion", "same unit", "passed on", "passed on, held",
    "every None", "every micro", "every coarser", "start 0", "start 1/3",
}
# fmt: on


def test_the_scenarios_have_everything_in_them():
    """Every branch of the generator is taken, so that the test above means something."""
    features = set().union(*(drawn(number).features for number in range(COUNT)))
    assert EVERYTHING - features == set()
