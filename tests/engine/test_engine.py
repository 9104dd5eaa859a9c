"""Both engines at the end of a run: what they tell beside the rows."""

from __future__ import annotations

import numpy as np
import pytest

import hocket as hk
from systems import ENGINES, lag


@pytest.mark.parametrize("engine", ENGINES)
def test_stored_energy_is_that_of_the_last_state(engine):
    """x' = -x and E = 2 x^2 / 2: E falls from 9 as exp(-2 t). What has no energy is not listed."""
    decay = hk.StateSpace([[-1.0]], C=[[1.0]], x0=[3.0], outputs=["y"], energy=[[2.0]])
    level = hk.Composite(hk.Scenario({"decay": decay}), "0.1 s")
    run = hk.run(hk.Composite(hk.Scenario({"in": level, "lag": lag()}), "0.1 s"), stop=1, engine=engine)
    assert run.info["stored"] == {"in.decay": {"start": 9.0, "end": pytest.approx(9.0 * np.exp(-2.0), rel=1e-12)}}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", [hk.Jacobi(), hk.GaussSeidel(["a", "gain", "b"]), hk.Jacobi(outputs="stale")])
def test_what(algorithm, engine):
    models = {"a": lag(), "gain": hk.StateSpace(D=[[2.0]], inputs=["u"], outputs=["y"]), "b": lag(2.0, 1.0, 0.0)}
    wires = {"gain.u": "a.y", "b.u": "gain.y"}
    for hosts in ({"one": ["a", "b"], "two": ["gain"]}, {"one": ["a"], "two": ["gain", "b"]}, {"one": ["a", "gain"], "two": ["b"]}):
        scenario = hk.Scenario(models, wires, hosts=hosts)
        run = hk.run(hk.Composite(scenario, "0.1 s", algorithm), stop=1, engine=engine)
        print(algorithm, hosts, engine, {k: v["messages"] for k, v in run.info["counts"]["messages"].items()})
