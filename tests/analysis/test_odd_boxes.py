"""Black boxes and equations that jump, stand still, grow by themselves, fail, or are small."""

from __future__ import annotations

import math

import numpy as np
import pytest

import hocket as hk
from fmus.build import build
from hocket.analysis.coupling_check import check
from hocket.analysis.linear_reading import read_linear
from hocket.analysis.linearisation import linearise
from hocket.analysis.stability_radius import structured_radius
from hocket.files.fmus import experiment_from_fmus
from systems import LAG


def beside_a_lag(model, h="10 ms"):
    return hk.Composite(hk.Scenario({"box": model, "lag": LAG}, {"box.u": "lag.y", "lag.u": "box.y"}), h)


def leaf_of(composite, path="box"):
    return {leaf.path: leaf for leaf in linearise(composite, still=True).leaves}[path]


class Relay:
    """On until its state has fallen to zero; pushes of 0.01 do not move that by a step."""

    inputs = ("u",)
    outputs = ("y",)

    def start(self, t):
        self.x = 0.155

    def output(self, t):
        return [1.0 if self.x > 0.0 else -1.0]

    def step(self, t, h, u):
        self.x -= h * (1.0 + 0.001 * u[0, 0])


class Delay:
    """Shows what it was given five steps before: it jumps by itself too, but answers."""

    inputs = ("u",)
    outputs = ("y",)

    def start(self, t):
        self.line = [0.0] * 5

    def output(self, t):
        return [self.line[0]]

    def step(self, t, h, u):
        self.line = [*self.line[1:], -0.5 * float(u[0, 0])]


class Switch(Relay):
    """Off while what it sees is above a half."""

    def start(self, t):
        self.on = False

    def output(self, t):
        return [1.0 if self.on else 0.0]

    def step(self, t, h, u):
        self.on = bool(u[0, 0] < 0.5)


def test_a_relay_that_switches_by_itself_is_refused():
    leaf = leaf_of(beside_a_lag(hk.Python(Relay)))
    assert (leaf.how, leaf.refused) == ("refused", "`y` jumps by itself, at 0.16 s")


def test_a_delay_is_none():
    """e x + (1 - e) (-x / 2) five steps late: its characteristic polynomial is known."""
    composite = beside_a_lag(hk.Python(Delay), "0.5 s")
    made = linearise(composite)
    assert {leaf.how for leaf in made.leaves} == {"exact", "identified"}
    e = math.exp(-0.5)
    roots = np.roots([1.0, -e, 0.0, 0.0, 0.0, 0.0, 0.5 * (1.0 - e)])  # z^6 - e z^5 + (1 - e) / 2
    assert np.abs(np.linalg.eigvals(read_linear(made.composite).core)).max() == pytest.approx(
        np.abs(roots).max(), rel=1e-9
    )


def test_what_does_not_answer_is_told():
    found = check(beside_a_lag(hk.Python(Switch)), 1)
    said = "not judged: effect of `box` on the others: no response to pulses of 0.001 and 0.01 at its inputs"
    assert f"{said}; it may switch later" in found.verdict()


def test_nothing_is_asked_of_what_nothing_reacts_to():
    """A simulator whose changes reach nobody: the largest gain is zero, and every change is borne."""
    reading = read_linear(linearise(beside_a_lag(hk.Python(Switch))).composite)
    assert math.isinf(structured_radius(reading, "box").at_least)


@pytest.mark.parametrize(("version", "h"), [(1, 0.002), (2, 0.1), (3, 0.1)])
def test_a_limit_cycle_is_not_called_growth(tmp_path, version, h):
    """Van der Pol's oscillator has no inputs, swings up, and stays: a linear model of that runs away."""
    fmu = hk.Fmu(build("vanderpol", version, folder=tmp_path))
    alone = check(experiment_from_fmus({"box": fmu}), 1)
    assert not alone.good
    assert alone.verdict()[0].startswith("not judged: `box`: it grows by itself, and without inputs")
    first = fmu.outputs[0].name
    driven = hk.Composite(hk.Scenario({"box": fmu, "lag": LAG}, {"lag.u": f"box.{first}"}), h)
    found = check(driven, 100 * h)
    assert leaf_of(driven).how == "constant"
    assert found.stability.rho == pytest.approx(math.exp(-h), rel=1e-9)


def test_a_linear_box_may_grow():
    """x grows by 1 % in a step, exactly: no curve looks like that."""

    class Grows:
        outputs = ("y",)

        def start(self, t):
            self.x = 1.0

        def output(self, t):
            return [self.x]

        def step(self, t, h, u):
            self.x *= 1.01

    found = check(hk.Composite(hk.Scenario({"box": hk.Python(Grows)}), "10 ms"), 1)
    assert found.stability.rho == pytest.approx(1.01, rel=1e-9)


def test_a_box_that_counts_the_time_is_predicted_without_error(tmp_path):
    """y = t: its factor is one but for rounding, and must not be divided by."""
    fmu = hk.Fmu(build("bare", 2, folder=tmp_path))
    found = check(experiment_from_fmus({"box": fmu}), 1)
    assert found.prediction["box.y"].largest < 1e-12
    assert found.prediction["box.y"].scale == pytest.approx(1.0)
    assert "predicted global error: rounding only" in found.verdict()


@pytest.mark.parametrize("which", ["f", "g", "jacobian"])
def test_equations_that_fail_are_not_judged_and_say_why(which):
    def broken(t, x, u):
        if which == "jacobian" or u[0] > 1.0:  # not where it starts, but where it is pushed
            raise ZeroDivisionError("no such place")
        return [1.0]

    def works(t, x, u):
        return [-x[0]]

    functions = {"f": works, "g": works, which: broken}
    model = hk.Ode(x0=[0.5], inputs=["u = 1"], outputs=["y"], **functions)
    leaf = leaf_of(hk.Composite(hk.Scenario({"box": model}), "10 ms"))
    assert leaf.refused == "it failed when it was tried: ZeroDivisionError: no such place"


def test_equations_that_give_too_many_numbers_are_not_judged():
    model = hk.Ode(lambda t, x, u: [-x[0]], lambda t, x, u: [1.0], [0.5], inputs=["u = 0"], outputs=["y"])
    object.__setattr__(model, "g", lambda t, x, u: [1.0] if abs(x[0] - 0.5) < 1e-9 else [1.0, 2.0])
    leaf = leaf_of(hk.Composite(hk.Scenario({"box": model}), "10 ms"))
    assert leaf.refused.startswith("it failed when it was tried: ValueError")


@pytest.mark.parametrize("size", [1e-9, 1e-3, 1.0, 1e9])
def test_curved_equations_in_any_units(size):
    """x' = -x - (x / s)^2 x / s at x = s: the slope is -1 - 3 / s, in every unit of x."""
    cubic = hk.Ode(lambda t, x, u: [-x[0] - (x[0] / size) ** 3 * size], x0=[size], outputs=["y"])
    made = linearise(hk.Composite(hk.Scenario({"box": cubic}), "10 ms"))
    (leaf,) = made.leaves
    assert leaf.how == "jacobian"
    assert made.composite.scenario.models["box"].A[0, 0] == pytest.approx(-4.0, rel=1e-6)


def test_a_small_gap_is_not_overlooked():
    """Nothing holds a mass within half a millimetre: at rest there, its tangent tells nothing."""

    def gap(t, x, u):
        beyond = max(abs(x[0]) - 0.0005, 0.0) * math.copysign(1.0, x[0])
        return [x[1], -1e6 * beyond - x[1] + u[0]]

    model = hk.Ode(gap, x0=[0.0, 0.0], inputs=["force = 0"], outputs=["x", "v"])
    assert (
        "it is not smooth at this point" in leaf_of(hk.Composite(hk.Scenario({"box": model}), 0.01)).refused
    )
