"""Two masses, one after the other, at h = 1: the couplings of Glumac and Kovacic, number by number."""

from __future__ import annotations

import numpy as np
import pytest

import hocket
from hocket import Composite, GaussSeidel, Nepce, Scenario, StateSpace
from systems import ENGINES, FILTERS, TWO

RESPONSES = TWO["values"]["fig2_response_h1"]
OUTPUTS = ["one.F", "two.x", "two.v"]
INPUTS = ["one.x2", "one.v2", "two.F"]
ORDERS = {"12": ["one", "two"], "21": ["two", "one"]}


def masses():
    """The first one owns the spring between them and puts out its force; exact for held inputs."""
    p = TWO["parameters"]
    x0 = TWO["conventions"]["x0 two mass"]
    one = StateSpace(
        A=[[0, 1], [-(p["c1"] + p["ck"]) / p["m1"], -(p["d1"] + p["dk"]) / p["m1"]]],
        B=[[0, 0], [p["ck"] / p["m1"], p["dk"] / p["m1"]]],
        C=[[p["ck"], p["dk"]]],
        D=[[-p["ck"], -p["dk"]]],
        x0=x0[:2],
        inputs=["x2", "v2"],
        outputs=["F"],
    )
    two = StateSpace(
        A=[[0, 1], [-p["c2"] / p["m2"], -p["d2"] / p["m2"]]],
        B=[[0], [1 / p["m2"]]],
        C=np.eye(2),
        x0=x0[2:],
        inputs=["F"],
        outputs=["x", "v"],
    )
    return one, two


def coupling(name):
    one, two = masses()
    sources = ("two.x", "two.v", "one.F")
    connections = [
        (source, target, Nepce(alpha))
        for source, target, alpha in zip(sources, INPUTS, FILTERS[name], strict=True)
    ]
    scenario = Scenario({"one": one, "two": two}, connections)
    return Composite(scenario, 1, GaussSeidel(ORDERS[name[-2:]], outputs="stale"))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", RESPONSES)
def test_outputs_and_inputs_are_those_of_the_paper(name, engine):
    run = hocket.run(coupling(name), 50, record=[*OUTPUTS, *INPUTS], engine=engine)
    assert run.info["engine"] == engine
    assert set(RESPONSES[name]) == {"0", "1", "2", "5", "10", "50"}
    for step, expected in RESPONSES[name].items():
        y = [run[port].values[int(step)] for port in OUTPUTS]
        u = [run[port].values[int(step)] for port in INPUTS]
        assert y == pytest.approx(expected["y"], rel=0, abs=1e-10), f"y at step {step}"
        assert u == pytest.approx(expected["u"], rel=0, abs=1e-10), f"u at step {step}"


def test_the_four_couplings_are_all_there():
    assert sorted(RESPONSES) == sorted(FILTERS)


@pytest.mark.parametrize("name", ["Seidel12", "Seidel21"])
def test_a_filter_of_zero_is_a_hold(name):
    one, two = masses()
    connections = {"one.x2": "two.x", "one.v2": "two.v", "two.F": "one.F"}
    held = Composite(
        Scenario({"one": one, "two": two}, connections), 1, GaussSeidel(ORDERS[name[-2:]], outputs="stale")
    )
    run, filtered = (hocket.run(composite, 50) for composite in (held, coupling(name)))
    for port in OUTPUTS:
        assert np.array_equal(run[port].values, filtered[port].values)


def test_a_step_of_one_second_is_the_published_map():
    """The columns of G are the answers to unit states and unit inputs."""
    for model, name in zip(masses(), ("slave1", "slave2"), strict=True):
        published = TWO["values"]["G_h1"][name]
        whole = np.hstack([published["Gvv"], published["Gvu"]])
        for column, expected in enumerate(whole.T):
            unit = np.zeros(whole.shape[1])
            unit[column] = 1.0
            states = StateSpace(
                A=model.A,
                B=model.B,
                C=np.eye(2),
                x0=unit[:2],
                inputs=[f"u{k} = {value}" for k, value in enumerate(unit[2:])],
                outputs=["x", "v"],
            )
            run = hocket.run(Composite(Scenario({"it": states}), 1), 1)
            reached = [run.final("it.x"), run.final("it.v")]
            assert reached == pytest.approx(expected, rel=0, abs=1e-14)
