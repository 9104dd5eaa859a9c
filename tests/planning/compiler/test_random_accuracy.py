"""Step control in 100 random scenes: every step within the tolerance, and so the sum of their errors."""

import numpy as np
import pytest
from scipy.linalg import expm

import hocket as hk
from hocket.planning.compiler.accuracy import Accuracy, accepted_steps
from hocket.planning.compiler.compiler import compile_level
from hocket.planning.compiler.contract import triviality_faults
from hocket.planning.compiler.loop_pass import Loops
from planning.compiler.random_scenes import scene, seen
from systems import SEED_BLOCKS

STOP = 1.0
MOST = {"richardson": 170, "copy": 120, "defect": 150}
"""Steps of s: an accepted step takes three, two or one of them."""
TOLERANCE = {
    ("hold", "step"): 2e-3,
    ("linear", "step"): 2e-4,
    ("hold", "unit"): 5e-2,
    ("linear", "unit"): 2e-3,
}


def compiled(level, *passes):
    """The level over s; what the pass promises holds."""
    made = compile_level(level, passes).level
    assert passes[-1].reasons(level)
    assert passes[-1].check_postconditions(level)
    assert passes[-1].reasons(made) == []
    assert passes[-1].check_postconditions(made) == []
    assert triviality_faults(made) == []
    return made


def run(made, most):
    done = accepted_steps(hk.run(made, stop=most))
    assert done.finished
    assert done.t[-1] == STOP
    assert np.all(np.diff(done.t) > 0.0)
    return done


def wrong(done, drawn):
    """The largest error of all outputs at all accepted times."""
    M, Y, z = drawn.whole()
    exact = np.array([Y @ expm(M * t) @ z for t in done.t])
    ends = [[path for path in done.values if f".{path}".endswith(f".{port}")] for port in drawn.outputs]
    return float(np.abs(np.column_stack([done[path] for (path,) in ends]) - exact).max())


def bound(done, drawn, tolerance, per, estimate):
    """What errors of single steps, as they were estimated, come to: each goes on as expm(M (T - t)) says.

    All states are seen, so no error escapes. Two half steps err by half as much as the step that is judged,
    or less; how far a copy is apart shrinks by itself too, so what is found there counts whole. A defect
    acts on the states through all inputs, for a step.
    """
    M, Y, _ = drawn.whole()
    steps = np.diff(done.t) if per == "unit" else np.ones(done.steps)
    grown = [np.abs(Y[:, :-1] @ expm(M * (STOP - t))[:-1, :-1]).sum(axis=1).max() for t in done.t[1:]]
    acts = max(1.0, *(np.abs(each.B).sum(axis=1).max() for each in drawn.parts.values()))
    part = {"richardson": 0.5, "copy": 1.0, "defect": acts}[estimate]
    return part * tolerance * float(np.sum(grown * steps * done.error[1:]))


@pytest.mark.parametrize("seeds", SEED_BLOCKS, ids=str)
def test_errors_stay_within_what_the_steps_are_allowed(seeds):
    for seed in seeds:
        drawn = seen(scene(seed, size=(2, 5)))
        estimate, per = ("richardson", "copy", "defect")[seed % 3], ("step", "unit")[seed // 6 % 2]
        how = "hold" if drawn.nested or seed // 3 % 2 else "linear"
        tolerance = TOLERANCE[how, per]
        control = Accuracy(STOP, tolerance, estimate=estimate, per=per, first=2e-3)
        done = run(compiled(drawn.level("0.5", extrapolation=how), control), MOST[estimate])
        if estimate != "copy":  # which goes on whatever the error was, and says so
            assert done.error.max() <= 1.0, seed
            assert done.faults() == []
        assert done.error.max() <= 2.0, seed
        assert (done.faults() == []) == (done.error.max() <= 1.0)
        assert wrong(done, drawn) < bound(done, drawn, tolerance, per, estimate), seed


def test_inputs_that_nothing_drives_do_not_lower_the_order():
    drawn = seen(scene(8, size=(3, 6), deep=0.0))
    inputs = [f"{name}.{port}" for name, part in drawn.parts.items() for port in part.inputs]
    assert any(path not in drawn.wires for path in inputs)
    for how, order in (("hold", 1), ("linear", 2), ("quadratic", 3)):
        made = compiled(drawn.level("0.5", extrapolation=how), Accuracy(STOP))
        assert made.scenario.models["clock"].order == order


def test_loops_first_and_then_steps():
    for seed in range(200, 205):
        drawn = seen(scene(seed, loops=1, size=(3, 5), deep=0.0))
        control = Accuracy(STOP, 2e-3, first=2e-3)
        done = run(compiled(drawn.level("0.5"), Loops("outputs"), control), 300)
        assert done.faults() == []
        assert wrong(done, drawn) < bound(done, drawn, 2e-3, "step", "richardson"), seed
