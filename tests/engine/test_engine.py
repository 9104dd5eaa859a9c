"""Both engines at the end of a run: what they tell beside the rows."""

from __future__ import annotations

import numpy as np
import pytest

import hocket as hk
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
