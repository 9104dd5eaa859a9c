"""The start in compiled code: the same numbers, bit for bit, as the start in Python leaves them."""

from __future__ import annotations

import pytest

import hocket._native as _native
from hocket import ConvergenceError, Gain, StateSpace, blocks
from hocket._native import FailureKind
from hocket.engine.initialise import initialise, levels_of
from hocket.engine.native.handover import Handover
from hocket.engine.native.start_program import start_obstacle, start_program
from hocket.engine.opening import open_level
from hocket.model.composite import Composite
from hocket.model.scenario import Scenario
from hocket.planning.clocks import clock_of
from hocket.planning.planner import plan_tree
from systems import lag, random_linear, slow_after

LOOP = {"one.u": "two.y", "two.u": "one.y"}


def engine_of(root):
    handover = Handover([], condense=False)
    built = handover.build(root)
    return handover, _native.Engine(level=built, rows=[], threads=1, always=False)


def scribble(root):
    """Spoil all that a start finds out: samples, their slopes, and fitted inputs."""
    for level in levels_of(root):
        for rings in level.memory.rings:
            for ring in rings:
                for place, (tick, value, slope) in enumerate(ring):
                    ring[place] = (tick, value + 1.5, None if slope is None else slope + 0.5)
        for child, drives in enumerate(level.wiring.drives):
            for index, drive in enumerate(drives):
                if drive is not None:
                    level.memory.u[child][0, index] += 3.0


def restarted(composite):
    """Return the state after a start in Python, the spoilt one, and that after a start in compiled code."""
    design = plan_tree(composite)
    root = open_level(design, clock_of(design))
    initialise(root, root.clock.time(0))
    _, clean = engine_of(root)
    scribble(root)
    handover, spoilt = engine_of(root)
    assert handover.in_python == []
    assert start_obstacle(root, handover.levels) == ""
    program = start_program(root, handover.levels, handover.matrices)
    before = spoilt.dump()[0]
    report = spoilt.start(program, root.clock.time(0), None, True)
    assert not report.failed
    return clean.dump()[0], before, spoilt.dump()[0], program


@pytest.mark.parametrize("seed", slow_after(25, range(120)))
def test_the_start_in_compiled_code_leaves_the_same_bits(seed):
    clean, spoilt, again, _ = restarted(random_linear(seed))
    assert spoilt != clean
    assert again == clean


def test_blocks_and_what_they_drive_start_alike():
    models = {
        "sine": blocks.Sine(amplitude=2.0, frequency=0.5),
        "pid": blocks.PID(2.0, Ti=0.5, high=0.1),
        "plant": lag(),
    }
    scenario = Scenario(
        models, {"pid.reference": "sine.y", "pid.measured": "plant.y", "plant.u": "pid.control"}
    )
    composite = Composite(scenario, "1/10", "gauss-seidel", "quadratic")
    clean, spoilt, again, _ = restarted(composite)
    assert spoilt != clean
    assert again == clean


def loop(gain):
    """Return y = 1 + gain u with u = y: without a solution if the gain is 1."""
    one = StateSpace([[0.0]], [[0.0]], [[1.0]], [[gain]], x0=[1.0], inputs=["u"], outputs=["y"])
    design = plan_tree(Composite(Scenario({"one": one, "two": Gain(1.0)}, LOOP), "1/10"))
    return open_level(design, clock_of(design))


def test_a_loop_without_a_solution_fails_as_in_python():
    sound, singular = loop(0.5), loop(1.0)
    initialise(sound, 0.0)
    handover, engine = engine_of(sound)
    assert not engine.start(start_program(sound, handover.levels, handover.matrices), 0.0, None, True).failed
    with pytest.raises(ConvergenceError):
        initialise(singular, 0.0)
    # compiled code is handed what a start has left, so that of the sound one serves
    singular.memory.rings, singular.memory.u = sound.memory.rings, sound.memory.u
    handover, engine = engine_of(singular)
    report = engine.start(start_program(singular, handover.levels, handover.matrices), 0.0, None, True)
    assert report.failed
    assert report.failure.kind is FailureKind.loop_singular
