"""Black boxes: with nothing but set, step and get their coupling is judged as if the matrices were known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import hocket as hk
from hocket.analysis.identification import HankelSpectrum
from hocket.analysis.linear_reading import read_linear
from hocket.analysis.linearisation import linearise
from hocket.analysis.pulse_responses import choose_responses
from hocket.errors import SimulatorError
from hocket.planning.parameters import leaves, with_leaves
from systems import FALLING, INTEGRATOR, random_linear, spectral_radius


def test_a_ball_without_its_counter_is_refused_too():
    class Ball:
        outputs = ("h", "v")

        def start(self, t):
            self.h, self.v = 1.0, 0.0

        def output(self, t):
            return [self.h, self.v]

        def step(self, t, h, u):
            self.h, self.v = self.h + h * self.v, self.v - 9.81 * h
            if self.h < 0.0:
                self.h, self.v = -self.h, -0.7 * self.v

    (leaf,) = linearise(hk.Composite(hk.Scenario({"ball": hk.Python(Ball)}), "10 ms")).leaves
    assert leaf.refused.startswith("its free motion is not that of a linear model")


A = np.array([[0.9, 0.2, 0.0], [-0.2, 0.7, 0.1], [0.0, 0.1, -0.5]])
B = np.array([[1.0, 0.0], [0.0, 0.3], [0.5, -1.0]])
C = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]])
D = np.array([[0.3, 0.0], [0.0, 0.0]])


class Filter:
    """A discrete filter; it cannot roll back, so that fresh ones are made."""

    inputs = ("a = 0.5", "b = 0")
    outputs = ("y1", "y2")
    feedthrough = {"y1": ["a"]}  # noqa: RUF012
    input_degree = 0

    def start(self, t):
        self.x = np.array([1.0, -1.0, 0.5])

    def output(self, t, u):
        return C @ self.x + D @ u[0]

    def step(self, t, h, u):
        self.x = A @ self.x + B @ u[0]


def alone(model, h=0.1):
    return hk.Composite(hk.Scenario({"it": model}), h)


def test_a_filter_is_identified():
    found = linearise(alone(hk.Python(Filter)))
    (leaf,) = found.leaves
    assert (leaf.how, leaf.states) == ("identified", 3)
    assert leaf.fit < 1e-12
    made = found.composite.scenario.models["it"]
    for k in range(20):
        exact = C @ np.linalg.matrix_power(A, k) @ B
        assert made.C @ np.linalg.matrix_power(made.F, k) @ made.G[0] == pytest.approx(exact, abs=1e-9)
    assert made.D[0] == pytest.approx(D, abs=1e-9)
    assert np.sort(np.linalg.eigvals(made.F)) == pytest.approx(np.sort(np.linalg.eigvals(A)), abs=1e-9)


def test_what_is_identified_does_not_depend_on_the_size_of_pulses():
    """Pulses are of the size of start values: 500 and, of an input that starts at zero, one."""

    class Loud(Filter):
        inputs = ("a = 500", "b = 0")

    found = linearise(alone(hk.Python(Loud)))
    assert found.leaves[0].fit < 1e-10  # rounding of values of 500
    made = found.composite.scenario.models["it"]
    assert made.D[0] == pytest.approx(D, abs=1e-9)
    assert made.C @ made.G[0] == pytest.approx(C @ B, abs=1e-9)


def test_the_stand_in_starts_where_the_original_does():
    """Its run under the start values of its inputs is that of the original."""
    composite = alone(hk.Python(Filter))
    run, other = (hk.run(each, 3) for each in (composite, linearise(composite).composite))
    for port in ("it.y1", "it.y2"):
        assert other[port].values == pytest.approx(run[port].values, abs=1e-9)


def test_what_falls_by_itself_is_constant_not_a_mode():
    """x'' = f - 9.81 has two modes, not three: gravity is no state."""

    class Falling:
        inputs = ("f = 0",)
        outputs = ("x", "v")
        feedthrough = {}  # noqa: RUF012
        input_degree = 0

        def start(self, t):
            self.x, self.v = 2.0, 1.0

        def output(self, t, u):
            return [self.x, self.v]

        def step(self, t, h, u):
            a = u[0, 0] - 9.81
            self.x, self.v = self.x + h * self.v + h * h / 2 * a, self.v + h * a

    composite = alone(hk.Python(Falling))
    found = linearise(composite)
    assert found.leaves[0].states == 2
    run = hk.run(found.composite, 3)
    assert run.final("it.x") == pytest.approx(2.0 + 3.0 - 9.81 * 4.5, abs=1e-8)


@dataclass(frozen=True)
class Hidden:
    """A linear model that does not show its matrices."""

    linear: Any

    def __getattr__(self, name):
        if name in ("inputs", "outputs", "capabilities", "open"):
            return getattr(self.linear, name)
        raise AttributeError(name)


@pytest.mark.parametrize("seed", [2, 8, 11, 20, 29, 36, 48])
def test_random_scenarios_are_read_as_if_they_showed_their_matrices(seed):
    """All orchestrators, extrapolators and methods, levels in levels; 36 has a multistep method."""
    composite = random_linear(seed)
    hidden = with_leaves(composite, {path: Hidden(model) for path, model in leaves(composite)})
    exact = read_linear(composite)
    found = linearise(hidden)
    assert {leaf.how for leaf in found.leaves} == {"identified"}
    assert spectral_radius(read_linear(found.composite).core) == pytest.approx(
        spectral_radius(exact.core), abs=1e-9
    )


def test_a_multistep_method_is_judged_once_it_has_a_past():
    A, B = [[0.0, 1.0], [-4.0, -0.5]], [[0.0], [1.0]]
    model = hk.StateSpace(A, B, np.eye(2), (), [1.0, 0.0], ["u = 0.3"], ["x", "v"], "ab2")
    found = linearise(alone(Hidden(model)))
    (leaf,) = found.leaves
    assert leaf.notes == ("identified after its first 3 steps, which differ from the others",)
    h, zero = 0.1, np.zeros((2, 2))
    step = np.block([[np.eye(2) + 1.5 * h * np.array(A), -0.5 * h * np.eye(2)], [np.array(A), zero]])
    assert spectral_radius(found.composite.scenario.models["it"].F) == pytest.approx(
        spectral_radius(step), abs=1e-9
    )
    run, other = hk.run(alone(model), 3), hk.run(found.composite, 3)
    assert other["it.x"].values == pytest.approx(run["it.x"].values, abs=1e-8)


class Shaped:
    """A first-order lag behind something that is not linear."""

    inputs = ("u = 0",)
    outputs = ("y",)
    feedthrough = {}  # noqa: RUF012
    input_degree = 0

    def start(self, t):
        self.y = 0.0

    def output(self, t, u):
        return [self.y]

    def step(self, t, h, u):
        self.y = 0.5 * self.y + self.shape(float(u[0, 0]))


class Relay(Shaped):
    def shape(self, u):
        return math.copysign(1.0, u)


class Limiter(Shaped):
    def shape(self, u):
        return max(-2e-3, min(2e-3, u))


class Rounded(Shaped):
    def shape(self, u):
        return round(u / 3e-3) * 3e-3


class Curved(Shaped):
    def shape(self, u):
        return math.expm1(20.0 * u)


@pytest.mark.parametrize("shape", [Relay, Limiter, Rounded])
def test_what_does_not_answer_in_proportion_is_refused(shape):
    (leaf,) = linearise(alone(hk.Python(shape))).leaves
    assert leaf.refused.startswith(
        "the pulse response of `y` to `u` is not linear: for pulses of 0.001 and 0.01"
    )


def test_what_is_smooth_is_linear_in_the_small():
    found = linearise(alone(hk.Python(Curved)))
    made = found.composite.scenario.models["it"]
    assert spectral_radius(made.F) == pytest.approx(0.5, abs=1e-9)
    assert (made.C @ made.G[0])[0, 0] == pytest.approx(20.0, rel=1e-4)
    assert found.fit < 0.01


class Pendulum:
    inputs = ("torque = 0",)
    outputs = ("angle", "speed")
    feedthrough = {}  # noqa: RUF012
    input_degree = 0

    def __init__(self, angle=0.0, rtol=1e-9):
        self.first, self.rtol = angle, rtol

    def start(self, t):
        self.x = np.array([self.first, 0.0])

    def output(self, t, u):
        return self.x

    def step(self, t, h, u):
        def rate(_, x):
            return [x[1], -9.81 * math.sin(x[0]) - 0.1 * x[1] + u[0, 0]]

        self.x = solve_ivp(rate, (0.0, h), self.x, rtol=self.rtol, atol=self.rtol * 1e-3).y[:, -1]


@pytest.mark.parametrize(("angle", "sign", "rtol"), [(0.0, 1, 1e-9), (0.0, 1, 1e-5), (math.pi, -1, 1e-9)])
def test_a_pendulum_at_rest_or_upright_has_the_textbook_eigenvalues(angle, sign, rtol):
    found = linearise(alone(hk.Python(Pendulum, angle=angle, rtol=rtol), 0.05))
    made = found.composite.scenario.models["it"]
    textbook = np.exp(0.05 * np.roots([1.0, 0.1, sign * 9.81]))
    assert np.sort(np.linalg.eigvals(made.F)) == pytest.approx(np.sort(textbook), abs=1e-5)


def test_a_pendulum_that_swings_is_refused():
    (leaf,) = linearise(alone(hk.Python(Pendulum, angle=1.5), 0.05)).leaves
    assert leaf.refused.startswith("its pulse responses are not those of a linear model")


class Integrating:
    """y' = u by the exact integral of the polynomial; it tells slopes, and rewinds."""

    inputs = ("u = 0",)
    outputs = ("y",)
    feedthrough = {}  # noqa: RUF012

    def start(self, t):
        self.y = 0.7

    def output(self, t, u):
        return [self.y]

    def slope(self, t, u):
        return [u[0, 0]]

    def step(self, t, h, u):
        self.y += sum(c[0] * h ** (k + 1) / (k + 1) for k, c in enumerate(u))

    def save(self):
        return self.y

    def restore(self, state):
        self.y = state


@pytest.mark.parametrize("extrapolation", [hk.Hold(), hk.Polynomial(1), hk.Polynomial(2), hk.Hermite()])
@pytest.mark.parametrize("orchestrator", ["jacobi", "gauss-seidel"])
def test_every_power_of_the_inputs_is_identified(extrapolation, orchestrator):
    def coupled(model):
        wires = {"it.u": "lag.y", "lag.u": "it.y"}
        return hk.Composite(
            hk.Scenario({"it": model, "lag": FALLING}, wires), 0.3, orchestrator, extrapolation
        )

    exact = read_linear(coupled(INTEGRATOR))
    found = read_linear(linearise(coupled(hk.Python(Integrating))).composite)
    spectra = [np.sort_complex(np.linalg.eigvals(reading.core)) for reading in (found, exact)]
    assert np.abs(spectra[0]) == pytest.approx(np.abs(spectra[1]), abs=1e-6)
    assert spectral_radius(found.core) == pytest.approx(spectral_radius(exact.core), abs=1e-10)
    assert found.z[found.newest["lag.y"]] == pytest.approx(exact.z[exact.newest["lag.y"]], abs=1e-9)


def test_a_delay_has_as_many_states_as_steps():
    class Delay(Shaped):
        def start(self, t):
            self.kept = [0.0] * 5

        def output(self, t, u):
            return [self.kept[0]]

        def step(self, t, h, u):
            self.kept = [*self.kept[1:], float(u[0, 0])]

    found = linearise(alone(hk.Python(Delay)))
    assert found.leaves[0].states == 5
    assert spectral_radius(found.composite.scenario.models["it"].F) < 1e-2


def test_a_stand_in_says_for_which_step_it_holds():
    made = linearise(alone(hk.Python(Filter), 0.1)).composite.scenario.models["it"]
    live = made.open()
    live.start(0.0)
    with pytest.raises(SimulatorError, match=r"for steps of 0\.1 s, and is stepped by 0\.05 s"):
        live.step(0.0, 0.05, np.zeros((1, 2)))
    with pytest.raises(SimulatorError, match="inputs of degree 0"):
        live.step(0.0, 0.1, np.ones((2, 2)))


def test_an_integer_that_moves_is_refused_and_an_input_that_jumps_is_left_out():
    class Counting:
        inputs = (hk.Port("mode", start=1.0, type="integer"), "u = 0")
        outputs = (hk.Port("count", type="integer"), "y")
        feedthrough = {}  # noqa: RUF012
        input_degree = 0

        def __init__(self, count=True):
            self.counts = count

        def start(self, t):
            self.n, self.y = 0, 0.0

        def output(self, t, u):
            return [self.n, self.y]

        def step(self, t, h, u):
            self.n += self.counts
            self.y = 0.5 * self.y + u[0, 0] * u[0, 1]

    (counting,) = linearise(alone(hk.Python(Counting))).leaves
    assert counting.refused == "`count` is not a real and jumps, which no linear model does"
    (leaf,) = linearise(alone(hk.Python(Counting, count=False))).leaves
    assert leaf.how == "identified"
    assert leaf.notes == ("inputs that are not real, no pulse response: `mode`",)


def test_one_that_fails_when_tried_is_refused_with_its_words():
    class Failing(Shaped):
        def step(self, t, h, u):
            raise ValueError("the valve is stuck")

    (leaf,) = linearise(alone(hk.Python(Failing))).leaves
    assert leaf.refused == "it failed when it was tried: ValueError: the valve is stuck"


def test_orders_are_tried_where_singular_values_fall_by_more_than_half():
    """Of 8, 5, 2, 1, 0.9, 0.4 these do after the second, the fifth; what is below the noise is no state."""
    none = np.zeros((0, 0))
    values = np.array([8.0, 5.0, 2.0, 1.0, 0.9, 0.4, 1e-9])
    spectrum = HankelSpectrum(none, values, none, none, none, none)
    assert spectrum.orders(1e-6) == [2, 5, 6]
    assert spectrum.orders(0.2) == [2, 3]  # noise of 1.6
    assert HankelSpectrum(none, 0.0 * values, none, none, none, none).orders(0.0) == [0]


@pytest.mark.parametrize(
    ("crooked", "size", "found", "noise"),
    [
        ((0.02, 0.005), 2.0, 0.51, 0.01 / 0.51),  # the larger push is no more crooked, and less noisy
        ((0.0, 0.0), 1.0, 0.5, 0.01 / 0.51 / 50.0),  # they differ by more than the smaller one is crooked
        ((0.02, 0.03), 1.0, 0.5, 0.01 / 0.51 / 50.0),
    ],
)
def test_of_two_sizes_of_pushes_the_one_that_errs_less_is_taken(crooked, size, found, noise):
    """Answers of 0.5 and 0.51 per unit of push, up and down apart by twice what is crooked."""
    answers = np.empty((2, 2, 1, 3, 1))
    for number, mean in enumerate((0.5, 0.51)):
        answers[number, 0], answers[number, 1] = mean + crooked[number], mean - crooked[number]
    chosen = choose_responses(answers, np.ones(1), (1.0, 2.0))
    assert (chosen.size, chosen.noise) == pytest.approx((size, noise), rel=1e-9)
    assert chosen.markov == pytest.approx(np.full((1, 3, 1), found))
