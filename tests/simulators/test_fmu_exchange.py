"""Model exchange FMUs: hocket's methods on them, events, rewinding, Jacobians, the order of the calls."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import hocket as hk
from fmus.build import build
from hocket.model.protocols import native_twin
from hocket.simulators.methods import ORDERS
from hocket.simulators.ode import METHODS
from hocket.simulators.wrappers.replay import Replay
from hocket.testing import check_simulator
from systems import ENGINES

VERSIONS = (1, 2, 3)
MODERN = (2, 3)
"""With states that can be saved, and both interfaces in one archive."""
ELSEWHERE = ("adaptive", "cvode")
FIXED = tuple(method for method in METHODS if method not in ELSEWHERE)
NONE = np.zeros((1, 0))
CURVE = np.array([[1.0], [0.5], [-2.0], [3.0]])
TIGHT = {"rtol": 1e-11, "atol": 1e-13}
G, E = 9.81, 0.7


@pytest.fixture(scope="session")
def fmu(tmp_path_factory):
    """Return a function that builds an FMU once, and makes a model of it."""
    folder, built = tmp_path_factory.mktemp("fmus"), {}

    def model(name, version=2, parameters=None, overrides=None, interface="model-exchange", **options):
        key = name, version, repr(overrides), version == 1 and interface
        if key not in built:
            one = {"interfaces": ["cs" if interface == "co-simulation" else "me"]} if version == 1 else {}
            made = {**one, **(overrides or {})}
            built[key] = build(name, version, folder=folder / str(len(built)), **made)
        return hk.Fmu(built[key], parameters, interface=interface, **options)

    return model


def steps(model, h, count, u=NONE):
    """Return the outputs after each step; u are coefficients about the start of each."""
    simulator = model.open()
    try:
        simulator.start(0.0)
        simulator.output(0.0, u)
        rows = []
        for k in range(count):
            assert simulator.step(k * h, h, u) == k * h + h
            rows.append(np.array(simulator.output((k + 1) * h, u)))
        return np.array(rows)
    finally:
        simulator.close()


# methods


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("version", VERSIONS)
def test_it_is_integrated_as_an_ode_is(version, method, fmu):
    how = {"method": method, "step": "30 ms", **TIGHT}
    lag = fmu("lag", version, T=0.5, y0=0.3, **how)
    ode = hk.Ode(lambda t, x, u: (u - x) / 0.5, x0=[0.3], inputs=["u"], **how)
    for u in (CURVE[:1], CURVE):
        assert steps(lag, 0.1, 10, u) == pytest.approx(steps(ode, 0.1, 10, u), rel=0, abs=1e-12)


@pytest.mark.parametrize("method", ["euler", "rk4"])
def test_it_is_integrated_as_a_linear_system_is(method, fmu):
    how = {"method": method, "step": "30 ms"}
    linear = hk.StateSpace([[-2.0]], [[2.0]], [[1.0]], x0=[0.3], inputs=["u"], outputs=["y"], **how)
    lag = fmu("lag", 2, T=0.5, y0=0.3, **how)
    assert steps(lag, 0.1, 10, CURVE) == pytest.approx(steps(linear, 0.1, 10, CURVE), rel=0, abs=1e-12)


@pytest.mark.parametrize("method", ELSEWHERE)
@pytest.mark.parametrize("version", VERSIONS)
def test_van_der_pol(version, method, fmu):
    y = steps(fmu("vanderpol", version, mu=2.0, method=method, rtol=1e-13, atol=1e-15), 0.5, 20)
    grid = 0.5 * np.arange(1, 21)
    true = solve_ivp(
        lambda t, x: [x[1], 2.0 * (1.0 - x[0] ** 2) * x[1] - x[0]],
        (0.0, 10.0),
        [2.0, 0.0],
        "DOP853",
        grid,
        rtol=1e-13,
        atol=1e-14,
    )
    assert np.abs(y - true.y.T).max() < 1e-9


@pytest.mark.parametrize("method", FIXED)
def test_observed_order(method, fmu):
    true = steps(fmu("vanderpol", method="adaptive", rtol=1e-13, atol=1e-14), 0.5, 2)[-1]

    def error(h):
        return np.abs(steps(fmu("vanderpol", method=method), h, round(1.0 / h))[-1] - true).max()

    assert math.log2(error(0.02) / error(0.01)) == pytest.approx(ORDERS[method], abs=0.15)


@pytest.mark.parametrize("method", METHODS)
def test_the_versions_of_fmi_agree_bit_for_bit(method, fmu):
    for name, u in (("lag", CURVE), ("ball", NONE), ("vanderpol", NONE), ("first", CURVE @ [[1.0, -0.5]])):
        one, two, three = (steps(fmu(name, version, method=method), 0.15, 10, u) for version in VERSIONS)
        assert np.array_equal(two, three), name
        # FMI 1 has no directional derivatives
        exact = method != "cvode" or not fmu(name, 2).interface_used.directional
        assert np.array_equal(one, two) if exact else one == pytest.approx(two, abs=1e-5), name


@pytest.mark.parametrize("method", ["rk4", "adaptive", "cvode"])
@pytest.mark.parametrize("version", VERSIONS)
def test_without_states(version, method, fmu):
    y = steps(fmu("gain", version, method=method, k=3.0), 0.1, 3, np.array([[1.5]]))
    assert y.tolist() == [[4.5]] * 3


# events


def bounces():
    """Return the times of the bounces of a ball that falls from 1 m."""
    now, speed = 0.0, math.sqrt(2.0 * G)
    times = [speed / G]
    while True:
        speed *= E
        if speed < 1e-3:
            return times
        now = times[-1]
        times.append(now + 2.0 * speed / G)


def height(t):
    times = bounces()
    number = sum(time <= t for time in times)
    if number == 0:
        return 1.0 - 0.5 * G * t * t
    if number == len(times):
        return 0.0
    s = t - times[number - 1]
    return s * (math.sqrt(2.0 * G) * E**number - 0.5 * G * s)


@pytest.mark.parametrize("h", [0.02, 0.25])
@pytest.mark.parametrize("method", ["heun", "rk4", "ab2", "trapezoid", "adaptive", "cvode"])
@pytest.mark.parametrize("version", VERSIONS)
def test_heights_of_a_bouncing_ball(version, method, h, fmu):
    """Gravity is integrated exactly by these methods: what is left is how well the bounces are located."""
    y = steps(fmu("ball", version, method=method, **TIGHT), h, round(3.0 / h))
    true = [height((k + 1) * h) for k in range(len(y))]
    assert np.abs(y[:, 0] - true).max() < 1e-8
    assert y[-1].tolist() == [0.0, 0.0, len(bounces())]


@pytest.mark.parametrize("method", ["rk4", "adaptive", "cvode"])
@pytest.mark.parametrize("version", VERSIONS)
def test_times_of_the_bounces(version, method, fmu):
    simulator = fmu("ball", version, method=method, **TIGHT).open()
    simulator.start(0.0)
    t = 0.0
    for number, time in enumerate(bounces()[:12]):
        for until, seen in ((time - 1e-8, number), (time + 1e-8, number + 1)):
            simulator.step(t, until - t, NONE)
            t = until
            assert simulator.output(t, NONE)[2] == seen
    simulator.close()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("version", VERSIONS)
def test_time_events_are_hit(version, method, fmu):
    """Sampled at 0, 0.1, 0.2 ... within and at the end of steps, while the input moves."""
    simulator = fmu("sampler", version, method=method).open()
    simulator.start(0.0)
    for k in range(12):
        t = 0.25 * k
        u = np.array([[1.0 + t, 2.0], [1.0, 0.0]])
        simulator.output(t, u)
        simulator.step(t, 0.25, u)
        end = t + 0.25
        ticks = math.floor(10.0 * end + 1e-9) + 1
        samples = 1.0 + 0.1 * np.arange(ticks)
        x = 2.0 * (0.1 * samples[:-1].sum() + (end - 0.1 * (ticks - 1)) * samples[-1])
        assert simulator.output(end, u) == pytest.approx([x, samples[-1], ticks], abs=1e-9)
    simulator.close()


@pytest.mark.parametrize("method", ["rk4", "cvode"])
@pytest.mark.parametrize("version", VERSIONS)
def test_step_events(version, method, fmu):
    """The FMU asks for event mode after a completed step, if it wants to be told of those."""
    told = {"needsCompletedIntegratorStep": True} if version == 3 else {}
    silent = {} if version == 3 else {"completedIntegratorStepNotNeeded": True}
    u = np.array([[1.0, 1.0]])
    for overrides, end in ((told, 0.1), (silent, 1.0)) if version > 1 else ((told, 0.1),):
        model = fmu(
            "sampler", version, {"limit": 0.45, "period": 10.0}, overrides, method=method, step="10 ms"
        )
        x = steps(model, 0.1, 10, u)[:, 0]
        assert x[-1] == pytest.approx(end, abs=1e-9)
        assert x.max() < (0.5 if end < 0.5 else 1.1)


def test_discrete_inputs_take_effect_at_once(fmu):
    for version, method in itertools.product(VERSIONS, ("rk4", "adaptive")):
        simulator = fmu("sampler", version, method=method, period=10.0).open()
        simulator.start(0.0)
        simulator.output(0.0, np.array([[1.0, 1.0]]))
        x = 0.0
        for k, n in enumerate((1.0, 3.0, -2.0)):
            simulator.step(0.05 * k, 0.05, np.array([[1.0, n]]))
            x += 0.05 * n
            assert simulator.output(0.0, np.array([[1.0, n]]))[0] == pytest.approx(x, abs=1e-12)
        simulator.close()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("version", MODERN)
def test_rewinding_over_events(version, method, fmu):
    for name, u in (("ball", NONE), ("sampler", np.array([[1.0, 2.0], [0.5, 0.0]]))):
        simulator = fmu(name, version, method=method).open()
        simulator.start(0.0)

        def run(simulator, first, count, u=u):
            rows = []
            for k in range(first, first + count):
                simulator.step(0.3 * k, 0.3, u)
                rows.append(simulator.output(0.0, u).tolist())
            return rows

        early = simulator.save()
        begun = run(simulator, 0, 2)
        state = simulator.save()
        seen = run(simulator, 2, 4)
        for _ in range(2):
            simulator.restore(state)
            assert run(simulator, 2, 4) == seen
        simulator.restore(early)
        assert run(simulator, 0, 6) == begun + seen
        simulator.close()


CASCADES = ((1, {}), (1, {"defines": ["ALWAYS_INTERMEDIATE"]}), (2, {}), (3, {}))


@pytest.mark.parametrize("method", ["euler", "rk4", "adaptive", "cvode"])
@pytest.mark.parametrize(("version", "how"), CASCADES)
def test_events_of_several_rounds(version, how, method, fmu):
    """Only the first of five rounds says that a state has jumped; x is the time, and 1 more after it."""
    model = fmu("cascade", version, {"at": 0.25}, how, method=method)
    x, n = steps(model, 0.1, 5).T
    assert x == pytest.approx([0.1, 0.2, 1.3, 1.4, 1.5], abs=1e-12)
    assert n.tolist() == [0, 0, 5, 5, 5]
    # initialisation may want more rounds too
    x, n = steps(fmu("cascade", version, {"at": 0.0}, how, method=method), 0.1, 2).T
    assert x == pytest.approx([1.1, 1.2], abs=1e-12)
    assert n.tolist() == [5, 5]


@pytest.mark.parametrize("version", VERSIONS)
def test_events_that_never_settle(version, fmu):
    how = {"defines": ["ALWAYS_INTERMEDIATE"]} if version == 1 else {}
    model = fmu("cascade", version, {"rounds": 10**6}, how, method="rk4")
    with pytest.raises(hk.SimulatorError, match=r"its events do not settle: .* asked for 1000 rounds"):
        steps(model, 0.1, 5)


@pytest.mark.parametrize("method", ["rk4", "adaptive"])
@pytest.mark.parametrize("version", VERSIONS)
def test_it_ends_the_simulation_itself(version, method, fmu):
    simulator = fmu("cascade", version, {"end": 0.35}, method=method).open()
    simulator.start(0.0)
    for k in range(3):
        simulator.step(0.1 * k, 0.1, NONE)
    with pytest.raises(hk.SimulatorError, match="it asks to end the simulation"):
        simulator.step(0.3, 0.1, NONE)
    simulator.close()


@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize("method", ["adaptive", "cvode"])
def test_states_that_are_too_small_for_the_tolerance_are_noted(method, isolate, fmu):
    """x'' = u - w^2 x from rest: x = u (1 - cos 2 t) / 4, and no nominal values.

    Below 1e-9 any step is good enough for the solver. With a tolerance that fits it is as accurate as ever.
    """

    def end(u, **options):
        model = fmu(
            "oscillator", 2, {"u": u}, {"variables": {"x": {"output": 0.0}}}, method=method, **options
        )
        run = hk.run(model, stop=4, step=1)
        return run.final("oscillator.x") / u, run.info["notes"]

    (note,) = end(1e-12, isolate=isolate)[1]
    assert "its states stay below" in note
    assert "e-13, and its solver lets errors of 1e-09 (atol) pass: it does not control them" in note
    exact = (1.0 - math.cos(8.0)) / 4.0
    for x, notes in (end(1e-12, isolate=isolate, atol=1e-21), end(1.0)):
        assert notes == []
        assert x == pytest.approx(exact, rel=1e-4)


@pytest.mark.parametrize("method", ["rk4", "adaptive", "cvode"])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_linear_oscillator(version, method, fmu):
    """x'' = u - 4 x from x = 1 under u = 1: x = 1/4 + 3/4 cos 2t."""
    model = fmu("oscillator", version, method=method, step="10 ms", **TIGHT)
    x, v = steps(model, 0.1, 30, np.array([[1.0]])).T
    t = 0.1 * np.arange(1, 31)
    assert x == pytest.approx(0.25 + 0.75 * np.cos(2 * t), abs=2e-8)
    assert v == pytest.approx(-1.5 * np.sin(2 * t), abs=4e-8)


# as one simulator among others


def two_masses(fmu, version, **how):
    models = {name: fmu(name, version, **how) for name in ("first", "second")}
    connections = {"first.x": "second.x", "first.v": "second.v", "second.force": "first.force"}
    return hk.Composite(hk.Scenario(models, connections), "10 ms")


def recorded(composite, stop, engine):
    run = hk.run(composite, stop, engine=engine)
    return np.array([run[port].values for port in run])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("version", VERSIONS)
def test_coupled_as_co_simulation_fmus_are(version, engine, fmu):
    """The co-simulation FMUs make a Runge-Kutta step of their own."""
    mine = recorded(two_masses(fmu, version, method="rk4"), 2, engine)
    theirs = recorded(two_masses(fmu, version, interface="co-simulation"), 2, engine)
    assert np.abs(mine).max() > 0.1
    assert mine == pytest.approx(theirs, rel=0, abs=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("version", MODERN)
def test_both_interfaces_of_one_fmu_in_one_process(version, engine, fmu):
    """Instances share one library: one for model exchange may not take the functions of the others away."""
    how = {"one": {}, "other": {}, "exchange": {"interface": "model-exchange", "method": "euler"}}
    models = {
        name: fmu("lag", version, y0=1.0, **{"interface": "co-simulation", **own})
        for name, own in how.items()
    }
    run = hk.run(hk.Composite(hk.Scenario(models), "10 ms"), 1, engine=engine)
    values = {name: run[f"{name}.y"].values for name in models}
    assert np.ptp(values["one"]) > 0.1
    assert np.array_equal(values["one"], values["other"])
    assert values["exchange"] == pytest.approx(values["one"], abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("version", VERSIONS)
def test_both_engines_agree_bit_for_bit(version, method, fmu):
    how = {"method": method, "step": "5 ms"}
    models = {
        "first": fmu("first", version, **how),
        "second": fmu("second", version, **how),
        "ball": fmu("ball", version, **how),
        "lag": fmu("lag", version, **how),
        "sampler": fmu("sampler", version, **how),
    }
    connections = [
        ("second.x", "first.x", hk.Polynomial(2)),
        ("second.v", "first.v"),
        ("first.force", "second.force"),
        ("ball.h", "lag.u", hk.Polynomial(1)),
        ("ball.bounces", "sampler.n"),
        ("lag.y", "sampler.u"),
    ]
    composite = hk.Composite(hk.Scenario(models, connections), "25 ms")
    native, interpreted = (recorded(composite, "1.5 s", engine) for engine in ENGINES)
    assert np.array_equal(native, interpreted)


def test_fixed_step_methods_run_without_python(fmu):
    assert native_twin(fmu("lag", method="rk4").open()) is not None
    for method in ELSEWHERE:
        assert native_twin(fmu("lag", method=method).open()) is None


@pytest.mark.parametrize("method", ["euler", "rk4", "ab2", "trapezoid", "adaptive", "cvode"])
@pytest.mark.parametrize("name", ["lag", "first", "second", "vanderpol", "ball", "gain"])
@pytest.mark.parametrize("version", VERSIONS)
def test_laws(version, name, method, fmu):
    model = fmu(name, version, method=method)
    assert model.capabilities.rollback == (version > 1)
    assert model.capabilities.order == ORDERS.get(method)
    check_simulator(model, h=0.03)


def test_laws_with_micro_steps(fmu):
    check_simulator(fmu("second", method="rk4", step="10 ms"), h=0.1)


def test_no_rewind_without_the_functions(fmu):
    assert not fmu("lag", overrides={"canGetAndSetFMUstate": None}).capabilities.rollback


@pytest.mark.parametrize("version", [1, 3])
def test_a_process_of_its_own(version, fmu):
    for method in ("rk4", "cvode"):
        alone, here = (steps(fmu("ball", version, method=method, isolate=i), 0.25, 4) for i in (True, False))
        assert np.array_equal(alone, here)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("method", ["rk4", "adaptive"])
def test_fmi_1_is_replayed_where_that_is_asked_for(method, engine, fmu):
    """FMI 1 cannot save a state: iterated, it gives what FMI 2 gives with one."""

    def iterated(version, wrap):
        models = {name: wrap(fmu(name, version, method=method)) for name in ("first", "second")}
        wires = {"first.x": "second.x", "first.v": "second.v", "second.force": "first.force"}
        how = hk.Iterate(hk.Jacobi(), 1e-12)
        return recorded(hk.Composite(hk.Scenario(models, wires), "50 ms", how), 0.5, engine)

    with pytest.raises(hk.ScenarioError, match="cannot roll back"):
        iterated(1, lambda model: model)
    assert np.array_equal(iterated(1, Replay), iterated(2, lambda model: model))


def test_tolerance_is_told_to_fmi_1(fmu, tmp_path, monkeypatch):
    file = tmp_path / "trace.txt"
    monkeypatch.setenv("HOCKET_TEST_TRACE", str(file))
    steps(fmu("lag", 1, overrides={"trace": True}, tolerance=1e-7), 0.1, 1, np.array([[1.0]]))
    (line,) = [line for line in file.read_text().splitlines() if "fmiInitialize" in line]
    assert float(line.rpartition("tolerance=")[2]) == 1e-7


# the Jacobian


def near(found, true, within=1e-8):
    return np.abs(found - np.array(true)).max() <= within


@pytest.mark.parametrize("method", ["rk4", "cvode"])
@pytest.mark.parametrize("version", MODERN)
def test_jacobian_from_directional_derivatives(version, method, fmu):
    simulator = fmu("vanderpol", version, mu=3.0, method=method).open()
    simulator.start(0.0)
    for k in range(3):
        x, v = simulator.output(0.1 * k, NONE)
        A, B, C, D = simulator.jacobian(0.1 * k, NONE)
        assert near(A, [[0.0, 1.0], [-6.0 * x * v - 1.0, 3.0 * (1.0 - x * x)]], 1e-12)
        assert C.tolist() == [[1.0, 0.0], [0.0, 1.0]]
        assert B.shape == D.shape == (2, 0)
        simulator.step(0.1 * k, 0.1, NONE)
    simulator.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_jacobian_from_differences(version, fmu):
    u = np.array([[0.7]])
    simulator = fmu("lag", version, T=0.4, y0=2.0, method="rk4").open()
    simulator.start(0.0)
    simulator.step(0.0, 0.1, u)
    before = simulator.output(0.1, u)
    for found, true in zip(simulator.jacobian(0.1, u), (-2.5, 2.5, 1.0, 0.0), strict=True):
        assert near(found, [[true]])
    assert np.array_equal(simulator.output(0.1, u), before)
    simulator.close()

    simulator = fmu("first", version, observe=["der_speed"]).open()
    simulator.start(0.0)
    A, B, C, D = simulator.jacobian(0.0, np.array([[0.3, -0.1]]))
    assert near(A, [[0.0, 1.0], [-0.2, -0.3]])
    assert near(B, [[0.0, 0.0], [0.1, 0.2]])
    assert near(C, [[1.0, 2.0], [-0.2, -0.3]])
    assert near(D, [[-1.0, -2.0], [0.1, 0.2]])
    simulator.close()


def test_observed_variables_are_differenced_where_outputs_are_told(fmu):
    simulator = fmu("vanderpol", observe=["der_v"], method="rk4").open()
    simulator.start(0.0)
    simulator.step(0.0, 0.5, NONE)
    A, _, C, _ = simulator.jacobian(0.5, NONE)
    assert C[:2].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert near(C[2], A[1])
    simulator.close()


def test_jacobian_with_arrays(fmu):
    model = fmu("arrays", 3, {"n": 2, "A": [[1.0, 2.0], [3.0, 4.0]]}, {"interfaces": ["me"]}, method="rk4")
    assert steps(model, 0.1, 2, np.array([[1.0, 10.0]])).tolist() == [[21.0, 43.0]] * 2
    simulator = model.open()
    simulator.start(0.0)
    assert near(simulator.jacobian(0.0, np.zeros((1, 2)))[3], [[1.0, 2.0], [3.0, 4.0]])
    simulator.close()


def test_inputs_that_change_at_events_have_no_slope(fmu):
    simulator = fmu("sampler", method="rk4").open()
    simulator.start(0.0)
    A, B, C, D = simulator.jacobian(0.0, np.array([[1.0, 1.0]]))
    assert not A.any()
    assert not B.any()
    assert C.tolist() == [[1.0], [0.0], [0.0]]
    assert not D.any()
    simulator.close()


# the order of the calls

PHASES = {
    "EnterInitializationMode": ("instantiated", "initialising"),
    "ExitInitializationMode": ("initialising", "event"),
    "EnterEventMode": ("continuous", "event"),
    "EnterContinuousTimeMode": ("settled", "continuous"),
}
ALLOWED = {
    "SetupExperiment": {"instantiated"},
    "SetReal": {"instantiated", "initialising", "event", "continuous"},
    "SetInteger": {"instantiated", "initialising", "event"},
    "GetReal": {"initialising", "event", "settled", "continuous"},
    "GetInteger": {"initialising", "event", "settled", "continuous"},
    "SetTime": {"continuous"},
    "SetContinuousStates": {"continuous"},
    "GetDerivatives": {"continuous"},
    "GetEventIndicators": {"continuous"},
    "CompletedIntegratorStep": {"continuous"},
    "GetContinuousStates": {"event", "settled", "continuous"},
    "GetNominalsOfContinuousStates": {"event", "settled", "continuous"},
    "GetNumberOfContinuousStates": {"event"},
    "GetNumberOfEventIndicators": {"event"},
    "Terminate": {"event", "settled", "continuous"},
}
SAME = {
    "SetFloat64": "SetReal",
    "GetFloat64": "GetReal",
    "SetInt32": "SetInteger",
    "GetInt32": "GetInteger",
    "GetContinuousStateDerivatives": "GetDerivatives",
    "UpdateDiscreteStates": "NewDiscreteStates",
}


def obeyed(lines):
    """Check the calls of one instance against the state machine of FMI; return their names."""
    phase, now, event, names = "instantiated", -math.inf, -math.inf, []
    for line in lines:
        function, *rest = line.split()[1:]
        name = function.removeprefix("fmi").lstrip("23")
        name = SAME.get(name, name)
        names.append(name)
        if name in PHASES:
            assert phase == PHASES[name][0], (line, phase)
            phase = PHASES[name][1]
        elif name == "NewDiscreteStates":
            assert phase in ("event", "settled"), (line, phase)
            phase = "settled"
        elif name in ALLOWED:
            assert phase in ALLOWED[name], (line, phase)
        if name == "SetTime":
            now = float(rest[0].removeprefix("t="))
            assert now >= event, line
        if name == "EnterEventMode":
            event = now
    return names


def obeyed_1(lines):
    """Check the calls of one instance against FMI 1, which has no modes; return their names."""
    names = [line.split()[1].removeprefix("fmi") for line in lines]
    start = names.index("Initialize")
    assert names.index("SetTime") < start
    assert not {"SetContinuousStates", "GetDerivatives", "EventUpdate"}.intersection(names[:start])
    assert not any(name.startswith("Get") for name in names[:start])
    now = event = -math.inf
    discrete = False  # an input was set that takes effect at an event only
    for line, name in list(zip(lines, names, strict=True))[start:]:
        if name == "SetTime":
            now = float(line.rpartition("t=")[2])
            assert now >= event, line
        if name in ("GetDerivatives", "GetContinuousStates", "GetEventIndicators"):
            assert not discrete, line
        if name == "EventUpdate":
            event = now
        discrete = (discrete or name in ("SetInteger", "SetString")) and name != "EventUpdate"
    return names


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["lag", "ball", "sampler"])
@pytest.mark.parametrize("version", VERSIONS)
def test_calls_come_in_the_order_of_the_standard(version, name, method, fmu, tmp_path, monkeypatch):
    file = tmp_path / "trace.txt"
    monkeypatch.setenv("HOCKET_TEST_TRACE", str(file))
    model = fmu(name, version, overrides={"trace": True}, method=method)
    u = np.ones((1, len(model.inputs)))
    simulator = model.open()
    simulator.start(0.0)
    for k in range(5):
        u = u * np.where([port.type == "real" for port in model.inputs], 1.1, 2.0)
        simulator.output(0.15 * k, u)
        simulator.step(0.15 * k, 0.15, u)
    simulator.close()
    names = (obeyed_1 if version == 1 else obeyed)(file.read_text().splitlines())
    assert names[0] == {1: "InstantiateModel", 2: "Instantiate", 3: "InstantiateModelExchange"}[version]
    assert names[-2:] == ["Terminate", "FreeModelInstance" if version == 1 else "FreeInstance"]
    assert "CompletedIntegratorStep" in names or version == 3
    events = names.count("EventUpdate" if version == 1 else "EnterEventMode")
    assert events >= (5 if name == "sampler" else 1 if name == "ball" else 4)


def test_nothing_is_set_that_is_known(fmu, tmp_path, monkeypatch):
    """A step of Euler's method: one evaluation where it begins, nothing for inputs that stay."""
    file = tmp_path / "trace.txt"
    monkeypatch.setenv("HOCKET_TEST_TRACE", str(file))
    u = np.array([[1.0]])
    simulator = fmu("lag", overrides={"trace": True}, method="euler").open()
    simulator.start(0.0)
    simulator.output(0.0, u)
    simulator.step(0.0, 0.1, u)
    file.write_text("")
    simulator.step(0.1, 0.1, u)
    calls = [line.split()[1].removeprefix("fmi2") for line in file.read_text().splitlines()]
    simulator.close()
    assert calls == ["GetDerivatives", "SetTime", "SetContinuousStates", "CompletedIntegratorStep"]


@pytest.mark.parametrize("version", VERSIONS)
def test_texts_are_set_in_event_mode(version, fmu, tmp_path, monkeypatch):
    file = tmp_path / "trace.txt"
    monkeypatch.setenv("HOCKET_TEST_TRACE", str(file))
    simulator = fmu("types", version, overrides={"interfaces": ["me"], "trace": True}).open()
    u = np.array([[port.start for port in simulator.model.inputs]])
    simulator.start(0.0)
    for k in range(3):
        simulator.step(0.1 * k, 0.1, u)
        simulator.set_text(0, b"hello" if k < 2 else b"bye")
    simulator.close()
    names = (obeyed_1 if version == 1 else obeyed)(file.read_text().splitlines())
    assert names.count("SetString") == 2  # not when it stays as it is
    expected = ["EnterEventMode", "SetString", "NewDiscreteStates"]
    expected = ["SetString", "EventUpdate"] if version == 1 else expected
    for place in (place for place, name in enumerate(names) if name == "SetString"):
        first = place - expected.index("SetString")
        assert names[first : first + len(expected)] == expected


# what goes wrong


@pytest.mark.parametrize("method", ["rk4", "adaptive"])
def test_errors_name_the_function(method, fmu):
    model = fmu("ball", overrides={"numberOfEventIndicators": 3}, method=method)
    with pytest.raises(hk.SimulatorError, match="fmi2GetEventIndicators returned Error"):
        steps(model, 0.1, 1)
    for engine in ENGINES:
        with pytest.raises(hk.SimulatorError, match="fmi2GetEventIndicators returned Error") as raised:
            hk.run(hk.Composite(hk.Scenario({"ball": model}), "0.1 s"), 1, engine=engine)
        assert "ball" in str(raised.value)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_initialisation_that_fails(version, fmu):
    model = fmu("badinit", version, overrides={"interfaces": ["me"]}, method="rk4")
    with pytest.raises(hk.SimulatorError, match=r"Initiali.* returned Error: .*residual 0.25"):
        steps(model, 0.1, 1, np.zeros((1, 1)))


def test_binaries_without_the_functions(fmu):
    with pytest.raises(hk.SimulatorError, match="has no function fmi2SetTime"):
        fmu("lag", overrides={"lacks": ["fmi2SetTime"]}).open()
    # co-simulation's are not needed
    assert steps(fmu("gutless", overrides={"interfaces": ["me"]}), 0.5, 1, np.zeros((1, 1))).tolist() == [
        [0.5]
    ]


@pytest.mark.parametrize("method", ["rk4", "adaptive"])
def test_events_without_end(method, fmu):
    """With so short a period its clock stands still."""
    simulator = fmu("sampler", method=method, period=1e-30).open()
    simulator.start(1.0)
    with pytest.raises(hk.SimulatorError, match="events do not settle"):
        simulator.step(1.0, 0.1, np.ones((1, 2)))
    simulator.close()


def test_options(fmu):
    with pytest.raises(hk.ScenarioError, match="not a method"):
        fmu("lag", method="rk5")
    assert fmu("lag", interface="auto", overrides={"interfaces": ["me"]}).exchange
    assert fmu("lag", step="1 ms").step == Fraction(1, 1000)


# outputs that are computed at completed steps only


def driven_plant(fmu, version, defines, method, engine, **options):
    """Return a run of a plant with s = x + 0.6 u, driven by a sine that is exchanged every 50 ms."""
    plant = fmu(
        "plant",
        version,
        {"p": 0.6},
        {"defines": defines, **options},
        method=method,
        observe=["x"],
    )
    sine = hk.Function(lambda t: math.sin(5 * t), outputs=["y"])
    level = hk.Composite(hk.Scenario({"plant": plant, "sine": sine}, {"plant.u": "sine.y"}), "50 ms")
    return hk.run(level, stop=1, engine=engine)


AT_STEPS = (
    "`plant`: its outputs follow its inputs only when a step is completed: hocket completes one wherever "
    "they are evaluated again"
)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("method", ["rk4", "adaptive"])
@pytest.mark.parametrize("version", MODERN)
def test_outputs_that_are_computed_at_completed_steps_follow_their_inputs(fmu, version, method, engine):
    """s = x + 0.6 u in every row; before, u was that of the step before, and s off by 0.15.

    FMI 3: it says that it need not be told of completed steps, and computes its outputs there all the same.
    """
    run = driven_plant(fmu, version, ("OUTPUTS_AT_STEPS",), method, engine)
    s, x, u = (np.array(run[name]) for name in ("plant.s", "plant.x", "sine.y"))
    assert s == pytest.approx(x + 0.6 * u, abs=1e-15)
    assert run.info["notes"] == [AT_STEPS]
    plain = driven_plant(fmu, version, (), method, engine)
    assert np.array_equal(s, np.array(plain["plant.s"]))
    assert plain.info["notes"] == []


@pytest.mark.parametrize("at_rest", [False, True])
def test_a_step_is_completed_for_outputs_that_stood_still_until_an_input_moves(fmu, at_rest):
    """At rest nothing tells how outputs are computed; s = x + 0.6 u right after the first jump of u."""
    model = fmu(
        "plant",
        2,
        {"p": 0.6, "x0": 0.0 if at_rest else 1.0},
        {"defines": ("OUTPUTS_AT_STEPS",)},
        method="rk4",
    )
    simulator = model.open()
    try:
        simulator.start(0.0)
        zero, jump = np.zeros((1, 2)), np.array([[1.0, 0.0]])
        simulator.output(0.0, zero)
        for k in range(3):
            simulator.step(0.1 * k, 0.1, zero)
        names = [port.name for port in model.outputs]
        before = simulator.output(0.3, zero)[names.index("s")]
        assert simulator.output(0.3, jump)[names.index("s")] == pytest.approx(before + 0.6, abs=1e-15)
        assert simulator.output(0.3, zero)[names.index("s")] == before
    finally:
        simulator.close()


def test_a_step_completed_between_steps_is_no_end(fmu, tmp_path, monkeypatch):
    """FMUs whose outputs move by themselves are told of completed steps at the end of steps only."""
    file = tmp_path / "trace.txt"
    monkeypatch.setenv("HOCKET_TEST_TRACE", str(file))
    driven_plant(fmu, 2, (), "euler", "native", trace=True)
    assert file.read_text().count("fmi2CompletedIntegratorStep") == 20
