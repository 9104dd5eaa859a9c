"""Every law holds for honest simulators and extrapolators, and catches one that lies."""
# ruff: noqa: RUF012 - a simulator is handed more than it needs

import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count
from types import SimpleNamespace
from typing import Protocol

import numpy as np
import pytest

from hocket.model import protocols
from hocket.model.composite import CapabilityRequest, OrchestratorTraits
from hocket.model.extrapolators import Hermite, Hold, Nepce, Polynomial, interpolate_samples
from hocket.model.ports import Port
from hocket.model.protocols import Capabilities, Sample
from hocket.model.scenario import Scenario
from hocket.orchestrators.jacobi import Jacobi
from hocket.plan import Plan
from hocket.simulators.ode import METHODS, Ode
from hocket.simulators.python import Python
from hocket.simulators.sources import Function, Table
from hocket.simulators.state_space import StateSpace
from hocket.testing import (
    CAPABILITY_LAWS,
    EXTRAPOLATOR_LAWS,
    LAWS,
    ORCHESTRATOR_LAWS,
    LawBroken,
    check_extrapolator,
    check_orchestrator,
    check_simulator,
)


class Lag:
    """x' = u - x by Euler's method, with everything declared; the liars change one thing."""

    inputs = ("u",)
    outputs = ("x", "u")
    feedthrough = {"u": ["u"]}
    order = 1
    input_degree = 1

    def start(self, t):
        self.x = 1.0

    def output(self, t, u):
        return [self.x, 2.0 * u[0][0]]

    def step(self, t, h, u):
        middle = u[0][0] + (0.5 * h * u[1][0] if len(u) > 1 else 0.0)
        self.x += h * (middle - self.x)
        return t + h

    def slope(self, t, u):
        return [u[0][0] - self.x, 2.0 * u[1][0] if len(u) > 1 else 0.0]

    def save(self):
        return self.x

    def restore(self, state):
        self.x = state


class Short(Lag):
    def output(self, t, u):
        return [self.x]


class Overshoots(Lag):
    def step(self, t, h, u):
        return super().step(t, h, u) + h


class Impure(Lag):
    def output(self, t, u):
        self.x += 1e-9
        return super().output(t, u)


class Remembers(Lag):
    def start(self, t):
        super().start(t)
        self.asked = 0

    def output(self, t, u):
        self.asked += 1
        return super().output(t, u)

    def step(self, t, h, u):
        self.x += 1e-12 * self.asked
        return super().step(t, h, u)


class Scribbles(Lag):
    def output(self, t, u):
        y = super().output(t, u)
        u *= 2.0
        return y


class Shared(Lag):
    both = [1.0]

    def start(self, t):
        self.both[0] = 1.0

    @property
    def x(self):
        return self.both[0]

    @x.setter
    def x(self, value):
        self.both[0] = value


class Random(Lag):
    count = 0

    def start(self, t):
        type(self).count += 1
        self.x, self.seed = 1.0, self.count

    def step(self, t, h, u):
        self.x += 1e-6 * self.seed
        return super().step(t, h, u)


class Restless(Lag):
    ran = False

    def start(self, t):
        self.x = 2.0 if self.ran else 1.0

    def step(self, t, h, u):
        self.ran = True
        return super().step(t, h, u)


class HalfRestless(Lag):
    """start() brings the output back, not the state behind it."""

    hidden = 0.0

    def step(self, t, h, u):
        self.x += self.hidden
        self.hidden += 0.1
        return super().step(t, h, u)

    def save(self):
        return self.x, self.hidden

    def restore(self, state):
        self.x, self.hidden = state


class Forgets(HalfRestless):
    def start(self, t):
        super().start(t)
        self.hidden = 0.0

    def save(self):
        return self.x

    def restore(self, state):
        self.x = state


class Aliased(Lag):
    """save() hands out the live state: an object of a class, which nobody copies."""

    def start(self, t):
        self.state = SimpleNamespace(x=1.0)

    @property
    def x(self):
        return self.state.x

    @x.setter
    def x(self, value):
        self.state.x = value

    def save(self):
        return self.state

    def restore(self, state):
        self.state = state


class RestoresOnce(Lag):
    def save(self):
        return iter([self.x])

    def restore(self, state):
        self.x = next(state, 0.0)


class Leaks(Lag):
    feedthrough = {}


class LeaksLater(Lag):
    def start(self, t):
        super().start(t)
        self.leak = 0.0

    def output(self, t, u):
        return [self.x + self.leak * u[0][0], 2.0 * u[0][0]]

    def step(self, t, h, u):
        self.leak += 0.1
        return super().step(t, h, u)

    def save(self):
        return self.x, self.leak

    def restore(self, state):
        self.x, self.leak = state


class Stubborn(Lag):
    def step(self, t, h, u):
        if abs(h - 0.1) > 1e-9:
            raise RuntimeError("only 0.1 s")
        return super().step(t, h, u)


class Holds(Lag):
    def step(self, t, h, u):
        return super().step(t, h, u[:1])


class WrongSlope(Lag):
    def slope(self, t, u):
        return [self.x - u[0][0], 2.0 * u[1][0]]


class SlopeOfTheHold(Lag):
    def slope(self, t, u):
        return [u[0][0] - self.x, 0.0]


class Boasts(Lag):
    order = 2


class Modest(Lag):
    """The rule of the middle, second order, declared as first."""

    def step(self, t, h, u):
        rate = u[1][0] if len(u) > 1 else 0.0
        half = self.x + 0.5 * h * (u[0][0] - self.x)
        self.x += h * (u[0][0] + 0.5 * h * rate - half)
        return t + h


class WishesNothing(Lag):
    def prefers(self, t):
        return 0.0


class WishesAndMoves(Lag):
    def prefers(self, t):
        self.x += 1.0
        return 0.1


class Boundless(Lag):
    def energy(self):
        return math.inf


class Spends(Lag):
    def energy(self):
        self.x *= 0.5
        return self.x


class NeverOver(Lag):
    """Is due again and again."""

    def due(self):
        return 0.05

    def react(self, t, n, u, present): ...

    def commit(self):
        return False


LIARS = {
    NeverOver: "events are announced, and are over once they are committed",
    WishesNothing: "prefers() returns a step above zero and changes nothing",
    WishesAndMoves: "prefers() returns a step above zero and changes nothing",
    Boundless: "energy() returns a finite number and changes nothing",
    Spends: "energy() returns a finite number and changes nothing",
    Short: "there is a number for every output",
    Overshoots: "step() returns a time within the step",
    Impure: "output() is pure",
    Remembers: "output() leaves the state alone",
    Scribbles: "output() is pure",
    Shared: "simulators of one model are independent",
    Random: "simulators of one model are independent",
    Restless: "start() returns to the initial state",
    HalfRestless: "start() returns to the initial state",
    Forgets: "restore() returns to the saved state, if declared",
    Aliased: "restore() returns to the saved state, if declared",
    RestoresOnce: "restore() returns to the saved state, if declared",
    Leaks: "direct feedthrough to outputs is declared",
    LeaksLater: "direct feedthrough to outputs is declared",
    Stubborn: "any step is accepted, if declared",
    Holds: "input coefficients are honoured up to the declared degree",
    WrongSlope: "slope() is the time derivative of the outputs, if declared",
    SlopeOfTheHold: "slope() is the time derivative of the outputs, if declared",
    Boasts: "halving the step shows the declared order",
    Modest: "halving the step shows the declared order",
}


@pytest.mark.parametrize("liar", LIARS, ids=lambda liar: liar.__name__)
def test_a_law_catches_the_liar(liar):
    with pytest.raises(LawBroken, match="law broken: ") as caught:
        check_simulator(Python(liar))
    assert caught.value.law == LIARS[liar]


class Tank:
    """x' = u, with nothing declared; the liars below declare one thing."""

    def start(self, t):
        self.x = 1.0

    def output(self, t, u):
        return np.array([self.x])

    def step(self, t, h, u):
        self.x += h * u[0, 0] + (h**2 / 2 * u[1, 0] if len(u) > 1 else 0.0)
        return t + h

    def close(self):
        """Hold nothing."""


STEPS_ONLY = Capabilities(input_degree=1)
TAKES_PART = Capabilities(input_degree=1, events=True)


class Declares:
    """A model of such a simulator, with whatever attributes are given."""

    inputs = (Port("u"),)
    outputs = (Port("y"),)

    def __init__(self, simulator=Tank, capabilities=STEPS_ONLY, **attributes):
        self.simulator, self.capabilities = simulator, capabilities
        vars(self).update(attributes)

    def open(self):
        return self.simulator()


class WantsATime(Tank):
    def ready(self, t):
        """Nobody calls it like this."""


class StandsStill(Tank):
    waiting = False

    def ready(self):
        self.waiting = True

    def step(self, t, h, u):
        return t if self.waiting else super().step(t, h, u)


class Hurries(Tank):
    stop_time = None

    def step(self, t, h, u):
        return super().step(t, h, u if self.stop_time is None else 2.0 * u)


class ReturnsAtOnce(Tank):
    early = False

    def step(self, t, h, u):
        return t if self.early else super().step(t, h, u)


class ReportsTheBeginning(Tank):
    micro = None

    def step(self, t, h, u):
        if self.micro is not None:
            self.micro(t, [self.x])
        return super().step(t, h, u)


class ReportsTooMuch(Tank):
    micro = None

    def step(self, t, h, u):
        reached = super().step(t, h, u)
        if self.micro is not None:
            self.micro(reached, [self.x, self.x])
        return reached


class Writes(Tank):
    def text(self, port):
        return "no bytes"

    def set_text(self, port, value):
        """Take no notice."""


class MixesColumns(Tank):
    last_h = None

    def start(self, t):
        self.z = np.array([1.0])

    def output(self, t, u):
        return self.z

    def step(self, t, h, u):
        self.z = self.z + h * u[0].sum()
        return t + h


class Undecided(Tank):
    settles = "perhaps"


class TakesPart(Tank):
    """Is due once, long after all that is tried."""

    when = 1e6

    def due(self):
        return self.when

    def react(self, t, n, u, present):
        return None

    def commit(self):
        self.when = 2e6
        return False


class HastensItsEvents(TakesPart):
    def space_events(self, interval):
        self.when -= interval


class MovesWithTheGrid(TakesPart):
    event_grid = 0.0

    def step(self, t, h, u):
        self.x += self.event_grid
        return super().step(t, h, u)


class Mutters(Tank):
    def notes(self):
        return "loud"


class Twin(Tank):
    native = "compiled"


class Tired(Tank):
    ended = True


def refuse_itself():
    raise ValueError("its file is gone")


TEXTS = {"texts": (("in",), ("out",))}
PERIOD = "period is a time above zero, and without_period() leaves it out"
SETTINGS = "stop_time, instance_name and early are set before the start, and change no step"
READY = "ready() leaves the initialisation, and no time passes"
MICRO = "micro(t, y) is called after every micro step, if declared"
ATTRIBUTES = "attributes that are declared are what they shall be"
LYING_MODELS = [
    (Declares(energy=[[1.0]]), "energy() returns a finite number and changes nothing", "energy() is missing"),
    (
        Declares(WantsATime),
        "ready() leaves the initialisation, and no time passes",
        "ready() raised TypeError",
    ),
    (Declares(StandsStill), "ready() leaves the initialisation, and no time passes", "reaches 0.0 s"),
    (Declares(Tired), "ended is False after start()", "after start() `ended` is True"),
    (Declares(Hurries), SETTINGS, "a known end of the run changes the steps"),
    (Declares(ReturnsAtOnce), SETTINGS, "with `early` a step from 0.0 s reaches 0.0 s"),
    (Declares(capabilities=Capabilities(micro=True)), MICRO, "there is no attribute `micro`"),
    (Declares(ReportsTheBeginning, Capabilities(micro=True)), MICRO, "reported at [0.0] s"),
    (Declares(ReportsTooMuch, Capabilities(micro=True)), MICRO, "2 numbers for 1 outputs"),
    (Declares(**TEXTS), "texts are bytes, one for each text port", "text() or set_text() is missing"),
    (Declares(Writes, **TEXTS), "texts are bytes, one for each text port", "`out`, returned 'no bytes'"),
    (
        Declares(MixesColumns, Capabilities(input_degree=0)),
        "z carries columns, each moving alone",
        "as two columns to",
    ),
    (
        Declares(HastensItsEvents, TAKES_PART),
        "space_events() acts on later events only",
        "space_events() changes due() from 1000000.0",
    ),
    (
        Declares(MovesWithTheGrid, TAKES_PART),
        "event_grid changes no step in which nothing happens",
        "event_grid changes a step",
    ),
    (Declares(Mutters), "notes() returns sentences", "notes() returns 'loud', expected a list"),
    (Declares(Twin), "native is an object of the native module", "`native` is 'compiled'"),
    (Declares(check=refuse_itself), "check() finds nothing wrong", "ValueError: its file is gone"),
    (Declares(period=0.1), PERIOD, "`period` is 0.1, expected a Fraction"),
    (Declares(period=Fraction(1)), PERIOD, "without_period() is missing"),
    (Declares(period=Fraction(1), without_period=Tank), PERIOD, "expected the same ports"),
    (Declares(Undecided), ATTRIBUTES, "`settles` is 'perhaps', expected True or False"),
    (Declares(step=0.1), ATTRIBUTES, "`step` is 0.1, expected a Fraction"),
    (Declares(Writes, texts=("a", "b")), ATTRIBUTES, "expected the names of inputs and of outputs"),
    (Declares(description={}), ATTRIBUTES, "expected a table of variables"),
    (Declares(bookkeeping={"share"}), ATTRIBUTES, "expected names of ports"),
    (Declares(model="inside"), ATTRIBUTES, "expected the model inside"),
    (Declares(class_name=Tank), ATTRIBUTES, "expected a text"),
    (Declares(path=None), ATTRIBUTES, "`path` is None, expected a text"),
    (Declares(is_isolated="yes"), ATTRIBUTES, "expected True or False"),
    (Declares(x0=[math.nan], method="rk4"), ATTRIBUTES, "expected finite numbers"),
    (Declares(parameters={"a": 1}, values=()), ATTRIBUTES, "expected the same parameters"),
]


@pytest.mark.parametrize(("model", "law", "words"), LYING_MODELS)
def test_a_law_catches_the_lying_model(model, law, words):
    with pytest.raises(LawBroken, match=re.escape(words)) as caught:
        check_simulator(model)
    assert caught.value.law == law


def test_every_law_has_a_liar():
    assert {*LIARS.values(), *(law for _, law, _ in LYING_MODELS)} == set(LAWS)


def test_every_optional_capability_has_a_law():
    """What a class in Python may have is checked when it is loaded."""
    always = {"Simulator", "Model", "Extrapolator", "Variable", "VariableTable"}
    of_classes = {"ClosableObject", "DeclaringClass"}
    named = {name for name, each in vars(protocols).items() if Protocol in getattr(each, "__bases__", ())}
    assert {each.__name__ for each in CAPABILITY_LAWS} == named - always - of_classes
    assert set(CAPABILITY_LAWS.values()) <= set(LAWS.values())


@dataclass(frozen=True)
class Claims:
    """A model that declares what its simulators do not have."""

    capabilities: Capabilities
    inputs = ()
    outputs = (Port("t"),)

    def open(self):
        class Bare:
            def start(self, t):
                """Keep nothing."""

            def output(self, t, u):
                return [t]

            def step(self, t, h, u):
                return t + h

            def close(self):
                """Hold nothing."""

        return Bare()


def test_declared_methods_must_be_there():
    check_simulator(Claims(Capabilities()))
    with pytest.raises(LawBroken, match=r"save\(\) or restore\(\) is missing"):
        check_simulator(Claims(Capabilities(rollback=True)))
    with pytest.raises(LawBroken, match=r"slope\(\) is missing"):
        check_simulator(Claims(Capabilities(slopes=True)))


def test_a_step_that_ends_early_is_lawful():
    class Early(Lag):
        order = None

        def step(self, t, h, u):
            return super().step(t, min(h, 0.07), u)

    check_simulator(Python(Early))


def test_what_is_not_declared_is_not_asked():
    class Plain(Stubborn):
        variable_step = False
        order = 7

        def slope(self, t, u):
            return [0.0, 0.0]

    check_simulator(Python(Plain))


def test_honest_simulators():
    check_simulator(Python(Lag))
    check_simulator(Python(Lag), t=3.0, h=0.02, u=[0.4], seed=5)
    check_simulator(Python(Lag), u=[[0.4], [1.0]])
    check_simulator(Table([0, 1, 1, 2], {"a": [0.0, 1.0, 3.0, 4.0], "b": [1.0, 1.0, 1.0, 5.0]}), t=0.6, h=0.2)
    check_simulator(Function(math.sin, ["y"]))


def pendulum(t, x, u):
    return np.array([x[1], u[0] - math.sin(x[0]) - 0.2 * x[1]])


@pytest.mark.parametrize("method", METHODS)
def test_honest_equations(method):
    check_simulator(Ode(pendulum, x0=[1.0, 0.5], inputs=["u"], method=method))
    check_simulator(
        Ode(pendulum, lambda t, x, u: [x[0], x[1] + u[0]], [1, 0], ["u"], ["a", "b"], method, 0.05),
        h=0.2,
    )


@pytest.mark.parametrize("method", ["exact", "euler", "implicit-euler", "heun", "rk4", "trapezoid", "ab2"])
def test_honest_linear_models(method):
    check_simulator(
        StateSpace([[0, 1], [-2, -0.3]], [[0], [1]], [[1, 0]], [[0.5]], [1, 0], ["u"], ["y"], method), h=0.2
    )


@pytest.mark.parametrize(
    "extrapolator",
    [
        Hold(),
        *(Polynomial(degree) for degree in range(9)),
        *(Hermite(n) for n in (1, 2, 3, 4)),
        Nepce(-0.5),
        Nepce(0.3),
    ],
    ids=repr,
)
def test_honest_extrapolators(extrapolator):
    check_extrapolator(extrapolator)


class Line:
    """An honest line through the newest two samples; the liars change one thing."""

    samples, degree, slopes = 2, 1, False

    def start(self, y0):
        """Keep no memory."""

    def fit(self, samples, w):
        return interpolate_samples(samples), w


class LooksFurtherBack(Line):
    samples = 1

    def fit(self, samples, w):
        return interpolate_samples([samples[-2], samples[-1]]), w


class Even(Line):
    """Take the samples to be one second apart."""

    def fit(self, samples, w):
        even = [Sample(float(k), sample.value) for k, sample in enumerate(samples, 1 - len(samples))]
        return interpolate_samples(even), w


class TooLong(Line):
    def fit(self, samples, w):
        return [*interpolate_samples(samples), 0.0 * samples[-1].value, 0.0 * samples[-1].value], w


class Mixes(Line):
    def fit(self, samples, w):
        return [
            value + 0.0 * value if np.ndim(value) == 0 else value[::-1]
            for value in interpolate_samples(samples)
        ], w


class EatsMemory:
    samples, degree, slopes = 1, 0, False

    def start(self, y0):
        return np.array(y0, dtype=float)

    def fit(self, samples, w):
        w *= 0.5
        w += 0.5 * samples[-1].value
        return [w.copy()], w


EXTRAPOLATOR_LIARS = {
    LooksFurtherBack: "a cold start makes do with fewer samples",
    Even: "polynomials up to the degree are reproduced",
    TooLong: "polynomials up to the degree are reproduced",
    Mixes: "rows of values are treated entry by entry",
    EatsMemory: "fit() is pure",
}


@pytest.mark.parametrize("liar", EXTRAPOLATOR_LIARS, ids=lambda liar: liar.__name__)
def test_a_law_catches_the_lying_extrapolator(liar):
    check_extrapolator(Line())
    with pytest.raises(LawBroken) as caught:
        check_extrapolator(liar())
    assert caught.value.law == EXTRAPOLATOR_LIARS[liar]


def test_every_extrapolator_law_has_a_liar():
    assert set(EXTRAPOLATOR_LIARS.values()) == set(EXTRAPOLATOR_LAWS)


class Alike(Jacobi):
    """An honest algorithm of one's own; the liars change one thing."""

    def needs(self, scenario):
        yield CapabilityRequest("rollback", tuple(scenario.models), "steps are made again")


class Idle(Alike):
    def plan(self, scenario):
        return Plan(())


class Tosses(Alike):
    turn = count()

    def plan(self, scenario):
        mode = "stale" if next(self.turn) % 2 else "consistent"
        return replace(super().plan(scenario), outputs=mode)


class SaysStale(Alike):
    traits = OrchestratorTraits("parallel", outputs="stale")


class NamesOthers(Alike):
    traits = OrchestratorTraits("sequential", order=("a", "nobody"))


class AsksOthers(Alike):
    def needs(self, scenario):
        yield CapabilityRequest("rollback", ("nobody",), "why not")


class AsksForMore(Alike):
    def needs(self, scenario):
        yield CapabilityRequest("time travel", ("a",), "why not")


class AsksWrongly(Alike):
    def needs(self):
        return ()


PLAN, TRAITS, NEEDS = ORCHESTRATOR_LAWS
ORCHESTRATOR_LIARS = {
    Idle: (PLAN, "a body without instructions"),
    Tosses: (PLAN, "another plan"),
    SaysStale: (TRAITS, "'stale', and the plan leaves outputs consistent"),
    NamesOthers: (TRAITS, "`nobody`, which is not a model"),
    AsksOthers: (NEEDS, "`nobody`, which is not a model"),
    AsksForMore: (NEEDS, "`time travel`, expected one of"),
    AsksWrongly: (NEEDS, "needs(scenario) raised TypeError"),
}


@pytest.mark.parametrize("liar", ORCHESTRATOR_LIARS, ids=lambda liar: liar.__name__)
def test_a_law_catches_the_lying_orchestrator(liar):
    gain = StateSpace(D=[[0.5]], inputs=["u"], outputs=["y"])
    scenario = Scenario({"a": gain, "b": Function(math.sin, ["y"])}, {"a.u": "b.y"})
    check_orchestrator(Alike(), scenario)
    law, words = ORCHESTRATOR_LIARS[liar]
    with pytest.raises(LawBroken, match=re.escape(words)) as caught:
        check_orchestrator(liar(), scenario)
    assert caught.value.law == law
