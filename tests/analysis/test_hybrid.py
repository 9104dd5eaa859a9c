"""Hybrid systems before the run: samples with delays unrolled over the hyperperiod, and modes that switch."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.linalg import expm

import hocket as hk
from fmus.build import build
from hocket.analysis.coupling_check import check
from hocket.analysis.linear_reading import read_linear
from hocket.analysis.linearisation import linearise
from hocket.analysis.measure import Outcome
from hocket.analysis.stability import spectral_radius
from hocket.analysis.stability_intervals import stable_intervals
from hocket.analysis.stability_map import VariedRadius
from hocket.analysis.switched_stability import common_lyapunov_matrix, dwell_time
from hocket.errors import ScenarioError
from systems import slow_after


class Proportional:
    """u = -K x, of the sample."""

    inputs = ("x = 0",)
    outputs = ("u",)

    def __init__(self, K):
        self.K = K

    def start(self, t):
        pass

    def output(self, t, u):
        return [-self.K * u[0, 0]]

    def step(self, t, h, u):
        pass


class Accumulating:
    """Shows what its step has computed: i += r x, u = -i - K x."""

    inputs = ("x = 0",)
    outputs = ("u",)
    feedthrough = {}  # noqa: RUF012

    def __init__(self, K, r):
        self.K, self.r = K, r

    def start(self, t):
        self.i, self.u = 0.0, 0.0

    def output(self, t, u):
        return [self.u]

    def step(self, t, h, u):
        self.i += self.r * u[0, 0]
        self.u = -self.i - self.K * u[0, 0]


INTEGRATOR = hk.StateSpace(A=[[0]], B=[[1]], C=[[1]], x0=[1.0], inputs=["u"], outputs=["x"])
LIMITS = {0: 2.0, Fraction(1, 4): 4.0, Fraction(1, 2): 2.0, Fraction(3, 4): 4 / 3, 1: 1.0}
"""Per delay, as a part of the period h: the largest K h for which x' = u, u = -K x is stable."""
PERIOD = Fraction(1, 5)


def sampled_loop(K, delay, step, **options):
    controller = hk.Python(Proportional, period=PERIOD, delay=delay * PERIOD, K=K, **options)
    wires = {"plant.u": "controller.u", "controller.x": "plant.x"}
    scenario = hk.Scenario({"plant": INTEGRATOR, "controller": controller}, wires)
    return hk.Composite(scenario, step)


def delayed_radius(gain, delay):
    """x_{k+1} = x_k - K (h - tau) x_k - K tau x_{k-1}, with gain = K h and delay = tau / h."""
    roots = np.roots([1.0, -1.0 + gain * (1.0 - float(delay)), gain * float(delay)])
    return float(np.abs(roots).max())


@pytest.mark.parametrize("step", ["0.2 s", "0.07 s", "1/3 s"])
@pytest.mark.parametrize("delay", LIMITS)
def test_the_largest_gain_of_a_delayed_loop(delay, step):
    """Known limits of K h: 2, 4, 2, 4/3 and 1, found before the run and seen in the run."""
    limit = LIMITS[delay]
    assert delayed_radius(limit, delay) == pytest.approx(1.0, abs=1e-12)
    for part, outcome in ((0.995, Outcome.GOOD), (1.005, Outcome.BAD)):
        composite = sampled_loop(part * limit / float(PERIOD), delay, step)
        found = check(composite, 10 * composite.step, advise=False, robust=False)
        assert found.outcome is outcome
        periods = Fraction(found.stability.period).limit_denominator(10**6) / PERIOD
        expected = delayed_radius(part * limit, delay) ** float(periods)
        assert found.stability.rho == pytest.approx(expected, rel=1e-9)
        samples = 400
        stop = composite.step * math.ceil(samples * PERIOD / composite.step)
        t, x = hk.run(composite, stop)["plant.x"]
        early, late = (np.abs(x[(a <= t) & (t <= a + 10)]).max() for a in (10, float(stop) - 10))
        assert bool(late < early) is (outcome is Outcome.GOOD)


@pytest.mark.parametrize("delay", slow_after(2, LIMITS))
def test_the_limit_is_found_by_varying_the_gain(delay):
    rho = VariedRadius(sampled_loop(1.0, delay, "0.1 s"), ["controller.K"])
    found = stable_intervals(rho, 0.5, 25.0, name="controller.K")
    assert found.intervals[-1].high * float(PERIOD) == pytest.approx(LIMITS[delay], rel=1e-6)


@pytest.mark.parametrize("offset", [0, "30 ms"])
@pytest.mark.parametrize("delay", [None, "50 ms", "0.7 s"])
def test_a_controller_with_a_state(delay, offset):
    """By hand: the plant over a period, the sum, and as many outputs as are on their way."""
    h, K, r, a = 0.2, 0.4, 0.1, -0.3
    plant = hk.StateSpace(A=[[a]], B=[[1]], C=[[1]], x0=[1.0], inputs=["u"], outputs=["x"])
    controller = hk.Python(Accumulating, period="0.2 s", delay=delay, offset=offset, K=K, r=r)
    wires = {"plant.u": "c.u", "c.x": "plant.x"}
    composite = hk.Composite(hk.Scenario({"plant": plant, "c": controller}, wires), "0.1 s")
    late = {None: 0.2, "50 ms": 0.05, "0.7 s": 0.7}[delay]  # without a delay its step is shown a period later
    whole, rest = divmod(late / h + 1e-12, 1.0)
    rest = max(rest * h, 0.0)
    before, after = (expm(np.array([[a, 1.0], [0.0, 0.0]]) * span) for span in (rest, h - rest))
    # [x, i, u_k, u_{k-1}, ...]: in a period the output of `whole` + 1 samples ago acts, then that of `whole`
    size = 3 + int(whole) + 1
    sample = np.eye(size)
    sample[3:] = np.eye(size)[2:-1]
    sample[1, 0] = r
    sample[2] = 0.0
    sample[2, :2] = -r - K, -1.0
    flow = np.eye(size)
    flow[0] = 0.0
    flow[0, 0] = before[0, 0] * after[0, 0]
    flow[0, 3 + int(whole)] += after[0, 0] * before[0, 1]
    flow[0, 2 + int(whole)] += after[0, 1]
    expected = np.abs(np.linalg.eigvals(flow @ sample)).max()
    reading = read_linear(linearise(composite).composite)
    assert float(reading.period) == pytest.approx(h)
    assert spectral_radius(reading) == pytest.approx(expected, rel=1e-9)


def test_two_controllers_of_different_periods():
    """Every 0.2 s and every 0.3 s: the product of flows and samples over 0.6 s."""
    A, B = np.array([[-0.2, 1.0], [-2.0, 0.1]]), np.array([[0.0, 0.5], [1.0, 0.0]])
    plant = hk.StateSpace(
        A=A.tolist(), B=B.tolist(), C=np.eye(2).tolist(), x0=[1, 0], inputs=["u", "v"], outputs=["x", "y"]
    )
    models = {
        "plant": plant,
        "fast": hk.Python(Proportional, period="0.2 s", delay=0, K=0.7),
        "slow": hk.Python(Proportional, period="0.3 s", delay="0.1 s", K=0.4),
    }
    wires = {"plant.u": "fast.u", "plant.v": "slow.u", "fast.x": "plant.y", "slow.x": "plant.x"}
    composite = hk.Composite(hk.Scenario(models, wires), "0.25 s")
    # states: x, y, what fast shows, what slow shows, what slow will show
    generator = np.zeros((5, 5))
    generator[:2, :2], generator[:2, 2:4] = A, B
    flow = expm(0.1 * generator)
    fast, slow, shows = np.eye(5), np.eye(5), np.eye(5)
    fast[2], slow[4], shows[3] = [0, -0.7, 0, 0, 0], [-0.4, 0, 0, 0, 0], [0, 0, 0, 0, 1]
    product = np.eye(5)
    for tenth in range(6):
        at = np.eye(5)
        if tenth % 3 == 1:
            at = shows @ at
        at = (slow if tenth % 3 == 0 else np.eye(5)) @ (fast if tenth % 2 == 0 else np.eye(5)) @ at
        product = flow @ at @ product
    reading = read_linear(linearise(composite).composite)
    periods = float(reading.period) / 0.6
    expected = np.abs(np.linalg.eigvals(product)).max() ** periods
    assert float(reading.period) == pytest.approx(3.0)  # with steps of 0.25 s
    assert spectral_radius(reading) == pytest.approx(expected, rel=1e-9)
    run = hk.run(composite, 6)
    z = np.array([1.0, 0.0, 0.0, 0.0, 0.0])
    for tenth in range(60):
        z = shows @ z if tenth % 3 == 1 else z
        z = fast @ z if tenth % 2 == 0 else z
        z = slow @ z if tenth % 3 == 0 else z
        z = flow @ z
    # the last samples and shows at 6 s do not move the plant
    assert run.final("plant.x") == pytest.approx(z[0], rel=1e-9)


@pytest.mark.parametrize("orchestrator", ["jacobi", "gauss-seidel"])
@pytest.mark.parametrize("extrapolation", ["hold", "linear", hk.Nepce(0.3)])
def test_the_matrix_of_a_hyperperiod_is_what_is_run(extrapolation, orchestrator):
    """Two plants and a controller, steps that samples cut: the orbit of Phi is the run."""
    second = hk.StateSpace(A=[[-0.3]], B=[[1]], C=[[1]], x0=[0.5], inputs=["x"], outputs=["y"])
    models = {"plant": INTEGRATOR, "c": hk.Python(Proportional, period="0.3 s", delay="0.13 s", K=2.0)}
    wires = {"plant.u": "c.u", "c.x": "second.y", "second.x": "plant.x"}
    scenario = hk.Scenario({**models, "second": second}, wires)
    composite = hk.Composite(scenario, "0.1 s", orchestrator, extrapolation)
    reading = read_linear(linearise(composite).composite)
    run, z = hk.run(composite, 9), reading.z
    (times, _), since = run["second.y"], float(reading.since)
    for number in range(int((9 - since) / 0.3)):
        at = since + 0.3 * number
        row = np.flatnonzero(np.abs(times - at) < 1e-9)[-1]
        for port in ("second.y", "plant.x"):
            assert z[reading.newest[port]] == pytest.approx(run[port].values[row], rel=1e-9, abs=1e-12)
        z = reading.Phi @ z + reading.c


def test_what_has_hardly_a_common_multiple_is_refused():
    models = {
        "plant": INTEGRATOR,
        "one": hk.Python(Proportional, period="0.2 s", delay=0, K=1.0),
        "other": hk.Python(Proportional, period="0.20011 s", delay=0, K=1.0),
    }
    wires = {"plant.u": "one.u", "one.x": "plant.x", "other.x": "plant.x"}
    composite = hk.Composite(hk.Scenario(models, wires), "0.1 s")
    with pytest.raises(ScenarioError, match=r"common multiple of all periods and steps is 4002\.2 s"):
        read_linear(linearise(composite).composite)
    with pytest.raises(ScenarioError, match="the macro step has no common tick with it"):
        read_linear(linearise(sampled_loop(1.0, 0, "0.0123457 s")).composite)


# switched systems


def thermostat():
    """x' = -x + 30 m; m = 0 above 21, m = 1 below 19."""
    off = hk.Event(lambda t, x, u: x[0] - 21, "rising", lambda t, x, u: [x[0], 0.0])
    on = hk.Event(lambda t, x, u: x[0] - 19, "falling", lambda t, x, u: [x[0], 1.0])
    return hk.Ode(
        lambda t, x, u: [-x[0] + 30 * x[1], 0.0], x0=[20, 1], outputs=["T", "m"], events=[off, on],
        method="adaptive",
    )  # fmt: skip


def test_a_thermostat_alone_is_proven():
    """Both modes decay as exp(-t): x^2 is a common Lyapunov function."""
    found = check(hk.Composite(hk.Scenario({"house": thermostat()}), "0.1 s"), 5)
    assert found.outcome is Outcome.GOOD
    assert [mode.rho for mode in found.switched.modes] == pytest.approx([math.exp(-0.1)] * 2, rel=1e-6)
    assert [mode.name for mode in found.switched.modes] == ["house: x2 = 1", "house: x2 = 0"]
    assert found.switched.common
    assert "bounded under any switching" in found.verdict()[0]


def test_what_follows_a_thermostat_and_is_not_linear_is_not_proven():
    follower = hk.Ode(
        lambda t, x, u: [-x[0] + 1e-4 * x[0] ** 3 + u[0]], x0=[0.0], inputs=["u"], outputs=["y"],
        method="adaptive",
    )  # fmt: skip
    scenario = hk.Scenario({"house": thermostat(), "it": follower}, {"it.u": "house.T"})
    found = check(hk.Composite(scenario, "0.1 s"), 5)
    assert found.outcome is Outcome.NOT_JUDGED
    assert not found.switched.alone


def test_a_coupled_thermostat_is_not_judged():
    """In a loop the steps that end at events are not those that were read."""
    off = hk.Event(lambda t, x, u: x[0] - 21, "rising", lambda t, x, u: [x[0], 0.0])
    on = hk.Event(lambda t, x, u: x[0] - 19, "falling", lambda t, x, u: [x[0], 1.0])
    house = hk.Ode(
        lambda t, x, u: [0.2 * u[0] - x[0] + 30 * x[1], 0.0], x0=[20, 1], inputs=["wall"], outputs=["T", "m"],
        events=[off, on], method="adaptive",
    )  # fmt: skip
    wall = hk.StateSpace(A=[[-1]], B=[[0.5]], C=[[1]], x0=[10.0], inputs=["T"], outputs=["wall"])
    wires = {"house.wall": "wall.wall", "wall.T": "house.T"}
    found = check(hk.Composite(hk.Scenario({"house": house, "wall": wall}, wires), "0.1 s"), 5)
    assert found.outcome is Outcome.NOT_JUDGED
    assert found.outcome.exit_code == 3
    assert found.verdict()[0].startswith("not judged: stable in each of the 2 modes found")
    assert found.switched.common
    assert found.prediction is None


def test_a_bouncing_ball_is_not_judged():
    bounce = hk.Event(lambda t, x, u: x[0], "falling", lambda t, x, u: [0.0, -0.7 * x[1]])
    ball = hk.Ode(lambda t, x, u: [x[1], -9.81], x0=[1.0, 0.0], outputs=["h", "v"], events=[bounce])
    found = check(hk.Composite(hk.Scenario({"ball": ball}), "0.1 s"), 2)
    assert found.outcome is Outcome.NOT_JUDGED
    assert found.switched.modes[0].stable is False
    with pytest.raises(ScenarioError, match="has events, and no linear model holds across them"):
        _ = linearise(hk.Composite(hk.Scenario({"ball": ball}), "0.1 s")).composite


SPIRALS = np.array([[-1.0, 10.0], [-100.0, -1.0]]), np.array([[-1.0, 100.0], [-10.0, -1.0]])
"""Branicky (1998): both decay, and the right switching between them grows."""


def spirals():
    """Switches where x1 x2 changes its sign, so that it grows."""

    def rate(t, x, u):
        return [*(SPIRALS[0 if x[2] > 0.5 else 1] @ x[:2]), 0.0]

    events = [
        hk.Event(lambda t, x, u: x[0] * x[1], "rising", lambda t, x, u: [x[0], x[1], 0.0]),
        hk.Event(lambda t, x, u: x[0] * x[1], "falling", lambda t, x, u: [x[0], x[1], 1.0]),
    ]
    return hk.Ode(
        rate, x0=[1.0, -0.5, 1.0], outputs=["x", "y", "m"], events=events, method="adaptive", rtol=1e-9
    )  # fmt: skip


def test_switching_that_grows_is_never_called_stable():
    composite = hk.Composite(hk.Scenario({"s": spirals()}), "10 ms")
    found = check(composite, 1)
    assert found.outcome is Outcome.NOT_JUDGED
    assert all(mode.stable for mode in found.switched.modes)
    assert len(found.switched.modes) == 2
    assert not found.switched.common
    assert found.verdict()[0].startswith("not judged: stable in each of the ")
    x = hk.run(composite, "0.5 s")["s.x"].values
    assert np.abs(x).max() > 100.0  # and so it grows


def test_the_dwell_time_is_long_enough():
    """Events further apart than it shrink the state; not proven is what is shorter, and some of it grows."""
    needed = dwell_time(SPIRALS, [])
    radii = {
        span: np.abs(np.linalg.eigvals(expm(SPIRALS[0] * span) @ expm(SPIRALS[1] * span))).max()
        for span in np.linspace(0.001, 4 * needed, 400)
    }
    assert all(radius < 1.0 for span, radius in radii.items() if span > needed)
    assert any(radius > 1.0 for radius in radii.values())
    assert common_lyapunov_matrix(SPIRALS) is None


@pytest.mark.parametrize(
    ("a", "exists"), [(1.5, True), (4.0, True), (5.7, True), (5.95, False), (10.0, False)]
)
def test_a_common_quadratic_function_is_found_where_there_is_one(a, exists):
    """Dayawansa and Martin (1999): for these two there is one up to a = 3 + sqrt(8) = 5.828."""
    flows = np.array([[-1.0, -1.0], [1.0, -1.0]]), np.array([[-1.0, -a], [1.0 / a, -1.0]])
    P = common_lyapunov_matrix(flows)
    assert (P is not None) is exists
    for A in flows if exists else ():
        assert np.linalg.eigvalsh(P).min() > 0.0
        assert np.linalg.eigvalsh(A.T @ P + P @ A).max() < 0.0


PLANT = hk.StateSpace(A=[[-1]], B=[[1]], C=[[1]], x0=[1.0], inputs=["u"], outputs=["x"])


def in_loop(other, plant=PLANT):
    wires = {"plant.u": "other.u", "other.x": "plant.x"}
    return hk.Composite(hk.Scenario({"plant": plant, "other": other}, wires), "0.1 s")


def test_saturation_is_read_per_mode():
    """An unstable plant whose feedback saturates: stable near zero, unstable beyond."""

    def rate(t, x, u):
        return [-5 * x[0] + 5 * max(-1.0, min(1.0, -4.0 * u[0]))]

    actuator = hk.Ode(rate, x0=[0.0], inputs=["x"], outputs=["u"], method="adaptive")
    plant = hk.StateSpace(A=[[0.5]], B=[[1]], C=[[1]], x0=[0.01], inputs=["u"], outputs=["x"])
    found = check(in_loop(actuator, plant), 5)
    # this run stays near zero: SciPy has it at 35 % of peak (`other.u`), below the limit
    assert found.judgement == "sound"
    assert found.trajectory.error.relative == pytest.approx(0.352, rel=0.1)
    assert "not stable in 2 of 3 modes, switching not judged" in found.verdict()[0]
    modes = {mode.stable for mode in found.switched.modes}
    assert modes == {True, False}
    # saturated, the plant is by itself
    assert max(mode.rho for mode in found.switched.modes) == pytest.approx(math.exp(0.05), rel=1e-6)


def test_a_relay_is_read_per_mode():
    relay = hk.Ode(lambda t, x, u: [-x[0]], lambda t, x, u: [-math.copysign(1.0, u[0])], x0=[1.0],
                   inputs=["x"], outputs=["u"])  # fmt: skip
    found = check(in_loop(relay), 5)
    assert found.outcome is Outcome.NOT_JUDGED
    assert len(found.switched.modes) == 2


class Relay:
    """As people write it."""

    inputs, outputs = ("x = 0",), ("u",)

    def start(self, t):
        pass

    def output(self, t, u):
        return [-1.0 if u[0, 0] > 0 else 1.0]

    def step(self, t, h, u):
        pass


def test_a_relay_in_a_class_is_not_called_stable():
    found = check(in_loop(hk.Python(Relay)), 5)
    assert found.outcome is Outcome.NOT_JUDGED
    assert found.verdict()[0].startswith("not judged: `other` is in a feedback loop, does not respond")
    assert found.prediction is None


def test_a_smooth_ode_has_one_mode():
    pendulum = hk.Ode(
        lambda t, x, u: [x[1], -math.sin(x[0]) - 0.8 * x[1] + 0.1 * u[0]], x0=[0.5, 0.0], inputs=["x"],
        outputs=["u", "w"],
    )  # fmt: skip
    found = check(in_loop(pendulum), 5)
    assert found.switched is None
    assert found.stability.stable


def test_a_mode_that_no_probe_explains_is_no_proof():
    """Cubic in one of its modes: the tangents tell nothing of it."""
    on = hk.Event(lambda t, x, u: x[0] - 1, "falling", lambda t, x, u: [x[0], 1.0])
    rate = hk.Ode(
        lambda t, x, u: [-x[0] + x[1] * 0.1 * x[0] ** 3, 0.0], x0=[2.0, 0.0], outputs=["x", "m"], events=[on],
        method="adaptive",
    )  # fmt: skip
    found = check(hk.Composite(hk.Scenario({"it": rate}), "0.1 s"), 5)
    assert found.outcome is Outcome.NOT_JUDGED
    assert not found.switched.whole


def test_a_crossing_is_not_judged():
    crossings = {"low": hk.Crossing("plant.x", "falling", at=0.5)}
    free = hk.StateSpace(A=[[-1]], C=[[1]], x0=[1.0], outputs=["x"])
    found = check(hk.Composite(hk.Scenario({"plant": free}, crossings=crossings), "0.1 s"), 2)
    assert found.outcome is Outcome.NOT_JUDGED
    assert "it looks for crossings" in found.verdict()[0]


# what pilot runs cannot tell: events come at the same times, however long the steps are


class DueGain:
    """Samples x every tenth of a second and holds u = -K x: x_k+1 = (1 - K / 10) x_k."""

    inputs, outputs = ("x",), (hk.Port("u", held=True),)

    def __init__(self, K):
        self.K = K

    def start(self, t):
        self.count, self.u = 0, 0.0

    def output(self, t):
        return [self.u]

    def step(self, t, h, u): ...

    def due(self):
        return Fraction(self.count, 10)

    def react(self, t, n, u, present):
        self.next = -self.K * u[0]

    def commit(self):
        self.u, self.count = self.next, self.count + 1
        return False


def start_gain(env, ports, K):
    def sample():
        while True:
            ports["u"].value = -K * ports["x"].value
            yield env.timeout(Fraction(1, 10))

    env.process(sample())


def loop_around(controller, nested=False):
    wires = {"plant.u": "controller.u", "controller.x": "plant.x"}
    if nested:
        inner = {"c": controller}
        ports = {"c.x": "x", "u": "c.u"}
        controller = hk.Composite(hk.Scenario(inner, ports, inputs=["x"], outputs=["u"]), "1/10 s")
    return hk.Composite(hk.Scenario({"plant": INTEGRATOR, "controller": controller}, wires), "1/10 s")


@pytest.mark.parametrize("gain", [0.5, 1.5, 2.05, 2.5])
@pytest.mark.parametrize("kind", ["due", "due nested", "simpy", "fmi 3 clock"])
def test_a_loop_with_events_that_grows_is_not_called_sound(kind, gain, tmp_path):
    """Its gain K h has the limit 2; the plant is sampled exactly, whatever the macro step is."""
    K = 10.0 * gain
    if kind == "fmi 3 clock":  # it holds w = 2 u, sampled each 0.1 s
        model = hk.Fmu(build("metronome", 3, folder=tmp_path))
        plant = hk.StateSpace([[0.0]], [[-K / 2.0]], [[1.0]], x0=[1.0], inputs=["u"], outputs=["x"])
        scenario = hk.Scenario({"plant": plant, "m": model}, {"plant.u": "m.w", "m.u": "plant.x"})
        composite = hk.Composite(scenario, "1/10 s")
    elif kind == "simpy":
        pytest.importorskip("simpy")
        composite = loop_around(hk.SimPy(start_gain, ["x"], ["u"], K=K))
    else:
        composite = loop_around(hk.Python(DueGain, K=K), nested=kind == "due nested")
    x = hk.run(composite, 5, folder=tmp_path / "run").final("plant.x")
    assert abs(x) == pytest.approx(abs(1.0 - gain) ** 50, rel=1e-9, abs=1e-12)
    judgement = check(composite, 5).judgement
    assert (judgement == "sound") is (gain < 2.0)
