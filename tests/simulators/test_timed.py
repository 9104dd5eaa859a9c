"""Time as a signal: simulators that are told it, and the controller that tells."""

import numpy as np
import pytest

import hocket as hk
from hocket.errors import ConvergenceError, ScenarioError, SimulatorError
from hocket.simulators.step_controller import StepController
from hocket.simulators.wrappers.replay import Replay
from hocket.simulators.wrappers.timed import Timed
from hocket.testing import check_simulator


class Decay:
    """x' = u - x, exactly for a held input; it cannot roll back, and counts how often it was opened."""

    inputs = ("u",)
    outputs = ("x",)
    input_degree = 0
    opened = 0

    def __init__(self):
        Decay.opened += 1

    def start(self, t):
        self.x, self.t = 2.0, t

    def output(self, t):
        return [self.x]

    def step(self, t, h, u):
        self.x = u[0, 0] + (self.x - u[0, 0]) * float(np.exp(-h))
        self.t = t + h


class Punctual(Decay):
    """It steps from where it is, and from nowhere else."""

    def step(self, t, h, u):
        assert t == pytest.approx(self.t, abs=1e-12)
        super().step(t, h, u)


class Halting(Decay):
    """It never gets further than half a step."""

    def step(self, t, h, u):
        return t + 0.5 * h


MASS = hk.StateSpace(
    [[0, 1], [-2, -0.4]], [[0], [1]], [[1, 0], [1, 1]], [[0], [0.5]], [1, 0], ["f"], ["x", "y"]
)
INTEGRATOR = hk.StateSpace([[0]], [[1]], [[1]], inputs=["u"], outputs=["x"])

MODELS = {
    "a mass": lambda: Timed(MASS),
    "a mass with lines": lambda: Timed(MASS, 0, (1,)),
    "a mass from 3 s on": lambda: Timed(MASS, 3),
    "a table": lambda: Timed(hk.Table([0, 1, 2], {"y": [0.0, 0.5, 0.25]})),
    "a class": lambda: Timed(hk.Python(Decay)),
    "a class, replayed": lambda: Timed(Replay(hk.Python(Decay))),
    "richardson": lambda: StepController(["x", "y"], 10),
    "copy": lambda: StepController(["x", "y"], 10, estimate="copy"),
    "defect": lambda: StepController(["x", "y"], 10, [1e-3, 1e-4], 1e-3, "defect", order=3),
}


@pytest.mark.parametrize("name", MODELS)
def test_they_obey_the_laws(name):
    check_simulator(MODELS[name]())


def told(model, *steps, s0=0.0):
    """Tell (t, h, back) and the inputs; return the outputs at the told time before each step."""
    simulator, seen = model.open(), []
    simulator.start(s0)
    for s, (inputs, *time) in enumerate(steps):
        u = np.array([[*inputs, *time]])
        seen.append(np.array(simulator.output(float(s), u)))
        assert simulator.step(float(s), 1.0, u) == s + 1.0
    return seen


def direct(model, *steps, t=0.0):
    simulator, seen = model.open(), []
    simulator.start(t)
    for inputs, h in steps:
        u = np.array([inputs], dtype=float)
        seen.append(np.array(simulator.output(t, u)))
        simulator.step(t, h, u)
        t += h
    return seen


def test_a_told_step_is_that_step():
    """delta_s(s, 1, x, (u, t, H)) = delta(t, H, x, u), to the last bit; a step of 0 is none."""
    over_s = told(
        Timed(MASS, 5),
        ([1.0], 5, 0.25, 5),
        ([2.0], 5.25, 0, 5.25),
        ([2.0], 5.25, 0.5, 5.25),
        ([0.0], 5.75, 0, 0),
    )
    over_t = direct(MASS, ([1.0], 0.25), ([2.0], 0.5), ([0.0], 1.0), t=5.0)
    assert np.array_equal(over_s[0], over_t[0])
    assert np.array_equal(over_s[1], over_t[1])
    assert np.array_equal(over_s[2], over_t[1])
    assert np.array_equal(over_s[3], over_t[2])


@pytest.mark.parametrize("model", [MASS, Replay(hk.Python(Punctual))], ids=["rewinds", "is replayed"])
def test_where_a_time_is_told_again_it_is_as_it_was(model):
    """Whole, and back, and in two halves; then back once more, and a shorter one."""
    seen = told(
        Timed(model),
        ([1.0], 0, 0.5, 0),
        ([3.0], 0.5, 0, 0),
        ([1.0], 0, 0.25, 0),
        ([2.0], 0.25, 0.25, 0),
        ([3.0], 0.5, 0, 0),
        ([1.0], 0, 0.125, 0),
        ([4.0], 0.125, 0, 0.125),
    )
    whole = direct(model, ([1.0], 0.5), ([3.0], 1.0))
    halves = direct(model, ([1.0], 0.25), ([2.0], 0.25), ([3.0], 1.0))
    shorter = direct(model, ([1.0], 0.125), ([4.0], 1.0))
    wanted = [*whole, *halves, *shorter]
    assert len(seen) == len(wanted)
    for one, other in zip(seen, wanted, strict=True):
        assert np.array_equal(one, other)


def test_going_back_costs_one_restore():
    """A simulator that is replayed is opened anew once per way back, though outputs are asked for often."""
    Decay.opened = 0
    told(
        Timed(Replay(hk.Python(Punctual))),
        ([1.0], 0, 0.5, 0),
        ([1.0], 0, 0.25, 0),
        ([1.0], 0.25, 0.25, 0),
        ([1.0], 0.5, 0.5, 0.5),
    )
    assert Decay.opened == 2


def test_inputs_are_led_through_the_told_times():
    """x' = u with u = t^2: from the third told time on, parabolas integrate it exactly."""
    times = [0.0, 0.1, 0.3, 0.35, 0.7, 1.0]
    steps = [([t * t], t, h, t) for t, h in zip(times, [*np.diff(times), 0.0], strict=True)]
    x = np.array(told(Timed(INTEGRATOR, 0, (2,)), *steps))[:, 0]
    exact = np.diff(np.array(times) ** 3 / 3)
    assert np.diff(x)[2:] == pytest.approx(exact[2:], abs=1e-15)
    assert np.diff(x)[0] == 0.0  # nothing is known at first but the value 0
    assert np.diff(x)[1] == pytest.approx(0.1 * 0.04 / 2 + 0.01 * 0.2, abs=1e-15)  # a line through two


def test_who_holds_inputs_gets_what_they_are_in_the_middle():
    """x' = u - x with u = t: under lines the error falls with the square of the step."""
    errors = []
    for count in (20, 40):
        times = np.linspace(0, 2, count + 1)
        steps = [([t], t, 2 / count if t < 2 else 0, t) for t in times]
        x = np.array(told(Timed(hk.Python(Decay), 0, (1,)), *steps))[:, 0]
        errors.append(abs(x[-1] - (2 - 1 + 3 * np.exp(-2))))
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1)


def test_samples_of_a_step_that_was_taken_back_are_forgotten():
    again = [([0.0], 0, 0.5, 0), ([9.0], 0.5, 0, 0), ([0.0], 0, 0.25, 0), ([1.0], 0.25, 0.25, 0.25)]
    once = [([0.0], 0, 0.25, 0), ([1.0], 0.25, 0.25, 0.25)]
    last = ([0.0], 0.5, 0, 0.5)
    model = Timed(INTEGRATOR, 0, (1,))
    assert np.array_equal(told(model, *again, last)[-1], told(model, *once, last)[-1])


@pytest.mark.parametrize(
    ("made", "what"),
    [
        (lambda: Timed(Decay), "is not a model"),
        (
            lambda: Timed(hk.Composite(hk.Scenario({"a": INTEGRATOR.__class__()}), 1)),
            "a level with a fixed step",
        ),
        (lambda: Timed(hk.StateSpace(D=[[1]], inputs=["clock_h"], outputs=["y"])), "`clock_h`"),
        (lambda: Timed(MASS, 0, (1, 1)), "degrees"),
        (lambda: StepController([], 1), "no signal"),
        (lambda: StepController(["x"], 1, 0.0), "never met"),
        (lambda: StepController(["x"], 1, relative=-1.0), "never met"),
        (lambda: StepController(["x"], 1, [1e-3, 1e-3]), "2 tolerances for 1"),
        (lambda: StepController(["x"], 1, begin=2), "before it begins"),
        (lambda: StepController(["x"], 1, first=2), "out of bounds"),
        (lambda: StepController(["x"], 1, estimate="richards"), "did you mean `richardson`"),
        (lambda: StepController(["x"], 1, gains=[1, 0]), "2 gains"),
        (lambda: StepController(["x"], "soon"), r"`soon`(.|\n)*where: +stop"),
    ],
)
def test_what_cannot_be_made_is_refused(made, what):
    with pytest.raises(ScenarioError, match=what):
        made()


def test_a_step_that_ends_early_is_an_error():
    with pytest.raises(SimulatorError, match=r"stopped at 0\.25 s instead of 0\.5 s"):
        told(Timed(hk.Python(Halting)), ([1.0], 0, 0.5, 0))


# the controller


def controlled(controller, *signals):
    """Return (t, h, back, accepted, error, ...) for what is seen from s to s."""
    simulator, rows = controller.open(), []
    simulator.start(0.0)
    for s, y in enumerate(signals):
        u = np.atleast_2d(np.array(y, dtype=float))
        rows.append(simulator.output(float(s), u).tolist())
        simulator.step(float(s), 1.0, u)
    return rows


def test_richardson_steps_looks_and_steps_twice():
    rows = controlled(StepController(["x"], 10, 1e-3, first="0.1 s"), 1.0, 1.5, 1.0, 1.2, 1.4999)
    error = 2 * 1e-4 / 1e-3  # 2^q / (2^q - 1) of the difference, q = 1
    following = 0.1 * 0.9 * error**-0.15  # Gustafsson 1991: kI = 0.3 / 2; kP sees one error only
    wanted = [
        [0.0, 0.1, 0.0, 1, 0],
        [0.1, 0.0, 0.0, 0, 0],
        [0.0, 0.05, 0.0, 0, 0],
        [0.05, 0.05, 0.0, 0, 0],
        [0.1, following, 0.1, 1, error],
    ]
    assert np.array(rows) == pytest.approx(np.array(wanted), rel=1e-9)


def test_the_next_step_knows_the_error_before():
    attempt = [1.5, 1.0, 1.2]
    one, other = 0.2, 0.5
    ends = [1.5 - 0.5e-3 * one, 1.5 + 0.5e-3 * other]
    rows = controlled(StepController(["x"], 10, 1e-3, first=0.1), 1.0, *attempt, ends[0], *attempt, ends[1])
    h = rows[4][1]
    assert rows[8][1] == pytest.approx(h * 0.9 * other**-0.15 * (one / other) ** 0.2)


def test_a_step_with_too_large_an_error_is_made_again():
    rows = controlled(StepController(["x"], 10, 1e-3, first="0.1 s"), 1.0, 1.5, 1.0, 1.2, 1.501, 1.0)
    assert rows[4] == pytest.approx([0.1, 0.0, 0.0, 0, 2.0])
    assert rows[5] == pytest.approx([0.0, 0.1 * 0.9 * 2**-0.5, 0.0, 0, 0.0])


def test_errors_count_in_parts_of_what_each_signal_is_allowed():
    signals = ["x", "y"]
    seen = [[0, 100], [0.5, 101], [0, 100], [0.2, 100], [0.5 + 1e-4, 101 + 1e-2]]
    rows = controlled(StepController(signals, 10, [1e-3, 1.0], first=0.1), *seen)
    assert rows[4][4] == pytest.approx(0.2)
    rows = controlled(StepController(signals, 10, 1e-3, 1e-3, first=0.1), *seen)
    assert rows[4][4] == pytest.approx(max(2e-4 / (1e-3 + 0.5001e-3), 2e-2 / (1e-3 + 0.10101)), rel=1e-6)
    rows = controlled(StepController(signals, 10, [1e-3, 1.0], per="unit", first=0.1), *seen)
    assert rows[4][4] == pytest.approx(2.0)


def test_a_copy_is_compared_by_what_it_gained():
    """The copy makes one step while the others make two; what was apart before does not count."""
    model = StepController(["x"], 10, 1e-3, estimate="copy", first=0.1)
    rows = controlled(model, [1.0, 1.0], [1.2, 1.5], [1.5001, 1.5], [0, 0], [1.8, 1.7999])
    assert [port.name for port in model.outputs][-2:] == ["copy_t", "copy_h"]
    assert rows[0] == pytest.approx([0, 0.05, 0, 1, 0, 0, 0.1])
    assert rows[1] == pytest.approx([0.05, 0.05, 0, 0, 0, 0.1, 0])
    assert rows[2][4] == pytest.approx(0.2)
    assert rows[2][0] == rows[2][5] == pytest.approx(0.1)
    assert rows[2][6] == pytest.approx(2 * rows[2][1])
    assert rows[4][4] == pytest.approx(0.0, abs=1e-9)


def test_a_defect_is_how_far_signals_are_from_their_prediction():
    rows = controlled(StepController(["x"], 10, 1e-2, estimate="defect", first=0.1), 1.0, 1.02)
    assert rows[1][3:] == pytest.approx([1, 0.1 * 0.02 / 1e-2])
    lines = StepController(["x"], 10, 1e-2, estimate="defect", first=0.1, largest=0.1, order=2)
    rows = controlled(lines, 1.0, 1.02, 1.05)
    assert rows[2][4] == pytest.approx(0.1 * 0.01 / 1e-2)


def test_the_time_stands_still_at_the_stop():
    model = StepController(["x"], 1, 1e-3, estimate="defect", first=0.3, largest=0.3)
    rows = np.array(controlled(model, *[1.0] * 8))
    assert rows[:, 0].tolist() == pytest.approx([0, 0.3, 0.6, 0.8, 1.0, 1.0, 1.0, 1.0])
    assert rows[4, 0] == 1.0
    assert rows[:, 3].tolist() == [1, 1, 1, 1, 1, 0, 0, 0]
    assert rows[4:, 1].tolist() == [0, 0, 0, 0]


def test_a_tolerance_that_no_step_meets_is_said():
    model = StepController(["x"], 10, 1e-3, estimate="defect", first=0.1, smallest=0.05)
    with pytest.raises(ConvergenceError, match=r"smallest step of 0\.05 s"):
        controlled(model, 0.0, 1.0, 0.0, 1.0, 0.0)
