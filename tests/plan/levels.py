"""Small levels and short ways to write plans for them."""

from dataclasses import dataclass
from fractions import Fraction as F

from hocket import Composite, Hold, Python, Scenario, StateSpace
from hocket.model.protocols import Capabilities
from hocket.plan import Feed, Plan, Read, Record, Solve, Step
from hocket.plan.verify.verifier import verify_plan
from systems import LAG_AT_REST

GAIN = StateSpace(D=[[0.5]], inputs=["u"], outputs=["y"])
CLOCK = StateSpace(A=[[0]], C=[[1]], outputs=["t"])


class Plain:
    """Cannot roll back; steps as its level does."""

    inputs = ("u",)
    outputs = ("y",)
    variable_step = False

    def start(self, t): ...

    def output(self, t):
        return 0.0

    def step(self, t, h, u): ...


class Stopping(Plain):
    """May stop inside a step, and can roll back."""

    variable_step = stops_early = True

    def save(self): ...

    def restore(self, state): ...


@dataclass(frozen=True)
class Texting:
    """A model with nothing but texts."""

    inputs = outputs = ()
    capabilities = Capabilities()
    texts = ("heard",), ("said",)

    def open(self): ...


CROSSED = {"a.u": "b.y", "b.u": "a.y"}
RING = Scenario({"a": LAG_AT_REST, "b": LAG_AT_REST}, CROSSED)
LOOP = Scenario({"a": GAIN, "b": GAIN}, CROSSED)
CHAIN = Scenario({"a": LAG_AT_REST, "b": GAIN}, CROSSED)
"""b reacts at once, a does not."""
APART = Scenario({"a": CLOCK, "b": CLOCK})
FIXED = Scenario({"a": Python(Plain), "b": LAG_AT_REST}, CROSSED)
STOPS = Scenario({"a": Python(Stopping), "b": LAG_AT_REST}, CROSSED)
STUCK = Scenario({"a": Python(Stopping), "b": Python(Plain)}, CROSSED)
LEVEL = Scenario({"a": LAG_AT_REST, "b": GAIN}, {"a.u": "u", "b.u": "a.y", "y": "b.y"}, ["u"], ["y"])
NESTED = Scenario({"a": Composite(LEVEL, F(2, 5)), "b": LAG_AT_REST}, {"a.u": "b.y", "b.u": "a.y"})
THROUGH = Scenario({"b": GAIN}, {"b.u": "u", "y": "b.y"}, ["u"], ["y"])
HELD = Scenario({"b": GAIN}, {"b.u": ("u", Hold()), "y": "b.y"}, ["u"], ["y"])
"""Its input is taken as it is when it is fed."""


def turn(name, fraction=F(1)):
    """Feed, step, read."""
    return Feed(name), Step(name, fraction), Read(name)


A, B = turn("a"), turn("b")
EVALUATED = (*A, *B, Solve(("a", "b"), ("a.y", "b.y")), Record())
BOTH = ("a", "b")


def plan(*step, outputs="stale", output=(), start=(), notes=()):
    return Plan(step, tuple(output), outputs, tuple(notes), tuple(start))


def found(made, scenario, step=F(1)):
    return verify_plan(made, scenario, step)
