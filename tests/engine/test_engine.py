"""Both engines at the end of a run: what they tell beside the rows."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import hocket as hk
from hocket import _native
from hocket.engine.native import program
from hocket.engine.native.handover import _event_signal
from hocket.engine.opening import open_level
from hocket.plan import Read, walk
from hocket.planning.clocks import clock_of
from hocket.planning.cost import plan_cost
from hocket.planning.planner import plan_tree
from systems import ENGINES, lag

FREE = hk.StateSpace([[-1.0]], C=[[1.0]], x0=[1.0], outputs=["y"])


@pytest.mark.parametrize("engine", ENGINES)
def test_stored_energy_is_that_of_the_last_state(engine):
    """x' = -x and E = 2 x^2 / 2: E falls from 9 as exp(-2 t). What has no energy is not listed."""
    decay = hk.StateSpace([[-1.0]], C=[[1.0]], x0=[3.0], outputs=["y"], energy=[[2.0]])
    level = hk.Composite(hk.Scenario({"decay": decay}), "0.1 s")
    run = hk.run(hk.Composite(hk.Scenario({"in": level, "b": FREE}), "0.1 s"), stop=1, engine=engine)
    assert run.info["stored"] == {
        "in.decay": {"start": 9.0, "end": pytest.approx(9.0 * np.exp(-2.0), rel=1e-12)}
    }


@pytest.mark.parametrize(
    "hosts", [{"one": ["a", "b", "c"], "two": ["gain"]}, {"one": ["a", "gain"], "two": ["b", "c"]}]
)
@pytest.mark.parametrize("algorithm", [hk.Jacobi(), hk.GaussSeidel(["b", "gain", "c", "a"])])
def test_messages_are_as_many_as_the_plan_says_on_both_engines(algorithm, hosts):
    """A gain is evaluated again where its input has changed: then it has news for those it was sent to."""
    gain = hk.StateSpace(D=[[2.0]], inputs=["u"], outputs=["y"])
    models = {"a": FREE, "gain": gain, "b": lag(2.0, 1.0, 0.0), "c": lag(3.0, 1.0, 0.0)}
    wires = {"gain.u": "a.y", "b.u": "gain.y", "c.u": "gain.y"}
    composite = hk.Composite(hk.Scenario(models, wires, hosts=hosts), "0.1 s", algorithm)
    one, other = (hk.run(composite, stop=1, engine=engine).info["counts"]["messages"] for engine in ENGINES)
    assert one == other
    assert sum(link["messages"] for link in one.values()) == plan_cost(plan_tree(composite)).messages(10)


def test_steps_and_reads_of_the_same_children_are_one_operation():
    """Of a step of both, a read of both, of one, and in another order."""
    level = open_level(*_design(hk.Scenario({"a": FREE, "b": FREE}, {})))
    try:
        step = SimpleNamespace(children=[0, 1])
        for children, merged in (([0, 1], True), ([0], False), ([1, 0], False)):
            assert program._reads(step, program._Many(_native.ReadOperation, children), level) is merged
        assert not program._reads(step, program._Many(_native.FeedOperation, [0, 1]), level)
        assert not program._reads_twice(level)
    finally:
        level.close()


def test_outputs_are_read_twice_where_they_are_evaluated_again():
    gain = hk.StateSpace(D=[[2.0]], inputs=["u"], outputs=["y"])
    scenario = hk.Scenario({"a": FREE, "gain": gain}, {"gain.u": "a.y"})
    for algorithm, count in ((hk.GaussSeidel(["gain", "a"]), 3), (hk.Jacobi(outputs="stale"), 2)):
        level = open_level(*_design(scenario, algorithm))
        reads = [each.sim for _, each in walk(level.plan.step) if isinstance(each, Read)]
        try:
            assert len(reads) == count
            assert program._reads_twice(level) == (count > 2)
        finally:
            level.close()


def _design(scenario, algorithm=None):
    design = plan_tree(hk.Composite(scenario, 1, algorithm or hk.Jacobi()))
    return design, clock_of(design)


def test_a_level_answers_at_its_ticks_only():
    """To 1e-9 of the time; a tick is one second here."""
    level = open_level(*_design(hk.Scenario({"a": FREE}, {})))
    try:
        step = level.clock.span(1)
        for t, tick in ((0.0, 0), (3.0 * step, 3), (1e6 * step * (1.0 + 5e-10), 10**6)):
            assert level.tick_at(t) == tick
        for t in (step * 1e-6, 3.0 * step * (1.0 + 1e-8), 1e6 * step * (1.0 + 2e-9), 5e-9 * step):
            with pytest.raises(hk.SimulatorError, match="was asked for t"):
                level.tick_at(t)
    finally:
        level.close()


def test_rows_of_events_depend_on_the_signal_that_drives_them():
    """-1: always there; -2: never; else the number of the output among all of the level."""
    event, value = hk.Port("e", event=True), hk.Port("v")
    models = [
        SimpleNamespace(inputs=[event], outputs=[value, event]),
        SimpleNamespace(inputs=[event, event, event, value], outputs=[event]),
    ]
    drives = [[None], [SimpleNamespace(child=0, port=1), SimpleNamespace(child=-2, port=0), None, None]]
    wiring = SimpleNamespace(models=models, first_outputs=[0, 2], drives=drives)
    level = SimpleNamespace(wiring=wiring)
    outputs = {(0, 0): -1, (0, 1): 1, (1, 0): 2, (-3, 0): -1}
    inputs = {(1, 0): 1, (1, 1): -2, (1, 2): -1, (1, 3): -1, (0, 0): -1}
    for is_input, expected in ((False, outputs), (True, inputs)):
        assert {key: _event_signal(level, *key, is_input) for key in expected} == expected
