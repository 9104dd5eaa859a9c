"""Equations in 100 random scenes of bodies and circuits: second order against the eliminated system."""

import numpy as np
import pytest

import hocket as hk
from hocket.planning.compiler.compiler import compile_level
from hocket.planning.compiler.contract import insertions, triviality_faults
from hocket.planning.compiler.modularity import Modularity
from planning.compiler.random_links import links
from planning.compiler.random_scenes import error, values
from systems import SEED_BLOCKS

STOP = 0.5
ALGORITHMS = ["jacobi", "gauss-seidel"]


def compiled(level):
    """The level without equations; what the pass promises holds."""
    made = compile_level(level, [Modularity()])
    assert Modularity().check_postconditions(level)
    assert Modularity().check_postconditions(made.level) == []
    assert triviality_faults(level)
    assert triviality_faults(made.level) == []
    assert all(note.by == "modularity" and note.reason for note in insertions(made.level).values())
    assert {"bond", "inner.bond", "bond_level.bond"} & set(insertions(made.level))
    return made.level


def gap(run):
    """What the equations between outputs are short of, at the most."""
    return float(np.abs(values(run, [port for port in run.ports if ".gap" in port])).max())


@pytest.mark.parametrize("seeds", SEED_BLOCKS, ids=str)
def test_bodies_and_circuits_move_as_one_system(seeds):
    """Errors fall as H^2, gaps between places as H^3; gaps of speeds and voltages are closed in each step."""
    for seed in seeds:
        drawn = links(seed)
        wrong, gaps = [], []
        for steps in (10, 20):
            level = drawn.level(f"1/{2 * steps}", ALGORITHMS[seed % 2])
            run = hk.run(compiled(level), stop=STOP)
            wrong.append(error(run, drawn, steps, STOP))
            gaps.append(gap(run))
        assert 3.2 < wrong[0] / wrong[1] < 4.8, (seed, wrong)
        assert wrong[1] < 1e-3, (seed, wrong)
        moving = any(path.partition(".")[2][0] == "x" for row in drawn.rows for path in row)
        assert gaps[1] < (gaps[0] / 5.5 if moving else 1e-12), (seed, gaps)


def test_the_eliminated_system_keeps_the_equations():
    """What is compared with: on its way from a start where they hold, equations go on to hold."""
    for seed in range(100):
        drawn = links(seed)
        seen = drawn.exact(np.linspace(0.0, STOP, 11))
        for row in drawn.rows:
            if all(path in drawn.outputs for path in row):
                held = sum(value * seen[:, drawn.outputs.index(path)] for path, value in row.items())
                assert np.abs(held).max() < 1e-12


def test_the_scenes_are_not_all_alike():
    drawn = [links(seed) for seed in range(100)]
    assert sum(each.deep for each in drawn) > 8
    assert sum(bool(each.rates) for each in drawn) > 20
    assert sum(bool(each.wires) for each in drawn) > 20
    assert {len(each.rows) for each in drawn} >= {2, 3, 4, 5, 6}
