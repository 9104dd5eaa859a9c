"""The interpreter is the specification: the native engine agrees with it in every bit."""

from __future__ import annotations

import os

import numpy as np
import pytest

import hocket
from native.random_scenarios import draw

SEED = int(os.environ.get("HOCKET_SEED", "1"))
COUNT = 200


def drawn(number):
    return draw(np.random.default_rng([SEED, number]))


@pytest.mark.parametrize("number", range(COUNT))
def test_both_engines_and_two_threads_give_the_same_bits(number):
    print(f"HOCKET_SEED={SEED}, scenario {number}")
    it = drawn(number)
    options = {"start": it.start, "every": it.every, "record": it.record}
    plain = hocket.run(it.composite, it.stop, engine="interpreter", **options)
    assert plain.info["engine"] == "interpreter"
    assert any(path in plain for path in it.record)
    for threads in (1, 2):
        native = hocket.run(it.composite, it.stop, engine="native", threads=threads, **options)
        assert native.info["engine"] == "native"
        assert native.tables == plain.tables
        for table in plain.tables:
            theirs, ours = plain.table(table.name), native.table(table.name)
            assert theirs.num_rows > 1
            for name, one, other in zip(theirs.column_names, theirs.columns, ours.columns, strict=True):
                assert np.array_equal(one.to_numpy(), other.to_numpy()), (table.name, name, threads)
