"""Linear models of FMUs: model exchange FMUs that remember what they computed, in several ways."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.linalg import expm

import hocket as hk
from fmus.build import build
from hocket.analysis.linear_reading import read_linear
from hocket.analysis.linearisation import linearise
from hocket.analysis.measure import Outcome
from hocket.analysis.stability import stability
from hocket.model.clock import format_duration

CACHES = [
    (),
    ("RATES_ALONE",),
    ("OUTPUTS_ALONE",),
    ("OUTPUTS_WITH_RATES",),
    ("STATES_RENEW",),
    ("RATES_ALONE", "SETS_COMPARE"),
    ("OUTPUTS_ALONE", "SETS_COMPARE"),
    ("OUTPUTS_WITH_RATES", "STATES_RENEW"),
]
CURVED = {"a": 0.3, "b": 0.7, "e": 0.2, "p": 0.6, "x0": 0.8, "v0": -0.4, "z0": 0.5}
STRAIGHT = {"p": 0.0, "x0": 1.0}


@pytest.fixture(scope="module")
def fmu(tmp_path_factory):
    """Return a function that builds an FMU once, and makes a model of it."""
    folder, built = tmp_path_factory.mktemp("fmus"), {}

    def model(name, version, defines=(), overrides=None, **options):
        key = name, version, defines, repr(overrides)
        if key not in built:
            target = folder / str(len(built))
            built[key] = build(name, version, folder=target, defines=defines, **(overrides or {}))
        return hk.Fmu(built[key], interface="model-exchange", **options)

    return model


def directional(version):
    name = "providesDirectionalDerivative" + ("s" if version == 3 else "")
    return {name: True}


def tangent(model, inputs):
    """Return the linear model of an FMU that is driven by constants, and what is said of it."""
    sources = {
        f"c{n}": hk.Function(lambda t, value=value: value, outputs=["y"])
        for n, value in enumerate(inputs.values())
    }
    links = {f"plant.{name}": f"c{n}.y" for n, name in enumerate(inputs)}
    scenario = hk.Scenario({"plant": model, **sources}, links)
    found = linearise(hk.Composite(scenario, "10 ms"))
    leaf = next(leaf for leaf in found.leaves if leaf.path == "plant")
    return leaf, dict(found.made.scenario.models).get("plant")


def plant_matrices(p, u, w, a=0.0, b=0.0, c=4.0, d=0.5, e=0.0, k=1.0, T=0.5, x0=0.0, v0=0.0, z0=0.0):
    """Return A, B, C, D of the equations in plant.c, differentiated by hand."""
    slope = c + 3 * b * x0**2
    A = [[0, 1, 0], [-slope, -d, k], [0, 0, -(1 + 2 * e * z0) / T]]
    B = [[0, 0], [1, 0], [0, 1 / T]]
    C = [[slope + a * v0, d + a * x0, 0], [1, 0, 0], [0, 0, math.cos(z0) + p * w]]
    D = [[0, 0], [p, 0], [0, p * z0]]
    return [np.array(each, dtype=float) for each in (A, B, C, D)]


def assert_same(found, true, within=1e-6):
    for name, right in zip("ABCD", true, strict=True):
        assert np.abs(getattr(found, name) - right).max(initial=0.0) <= within, name


@pytest.mark.parametrize("defines", CACHES, ids="+".join)
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(
    "values",
    [pytest.param(CURVED, id="curved"), pytest.param(STRAIGHT, id="straight", marks=pytest.mark.slow)],
)
def test_no_cache_makes_the_tangent_of_an_fmu_stale(version, defines, values, fmu):
    model = fmu("plant", version, defines, **values)
    leaf, found = tangent(model, {"u": 0.3, "w": -0.2})
    assert leaf.how == "jacobian"
    assert_same(found, plant_matrices(u=0.3, w=-0.2, **values))


@pytest.mark.parametrize("defines", [(), ("RATES_ALONE",)], ids="+".join)
@pytest.mark.parametrize("version", [2, 3])
def test_the_tangent_of_a_half_with_direct_feedthrough(version, defines, fmu):
    leaf, found = tangent(fmu("first", version, defines), {"x": 0.3, "v": -0.1})
    assert leaf.how == "jacobian"
    matrices = [[0, 1], [-0.2, -0.3]], [[0, 0], [0.1, 0.2]], [[1, 2]], [[-1, -2]]
    assert_same(found, [np.array(each) for each in matrices])


def test_outputs_that_follow_at_the_end_of_steps_only_are_identified(fmu):
    """Their slopes between steps are zero, which is not the truth."""
    model = fmu("plant", 2, ("OUTPUTS_AT_STEPS",), reevaluate=False, method="rk4", **STRAIGHT)
    leaf, found = tangent(model, {"u": 0.3, "w": 0.0})
    assert leaf.how == "identified"
    A = plant_matrices(u=0.3, w=0.0, **STRAIGHT)[0]
    true = sorted(np.exp(0.01 * np.linalg.eigvals(A)), key=abs)
    eigenvalues = [value for value in np.linalg.eigvals(found.F) if abs(value) > 0.5]
    assert [min(abs(value - each) for each in eigenvalues) for value in true] == pytest.approx(
        [0.0] * 3, abs=1e-6
    )


@pytest.mark.parametrize("version", [2, 3])
def test_directional_derivatives_are_trusted_where_differences_agree(version, fmu):
    model = fmu("plant", version, overrides=directional(version), **CURVED)
    leaf, found = tangent(model, {"u": 0.3, "w": -0.2})
    assert "directional" not in "".join(leaf.notes)
    assert_same(found, plant_matrices(u=0.3, w=-0.2, **CURVED), 1e-12)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("define", ["WRONG_DIRECTIONAL", "NO_DIRECTIONAL"])
def test_directional_derivatives_that_are_wrong_give_way_to_differences(version, define, fmu):
    model = fmu("plant", version, (define,), directional(version), **CURVED)
    leaf, found = tangent(model, {"u": 0.3, "w": -0.2})
    assert_same(found, plant_matrices(u=0.3, w=-0.2, **CURVED))
    (note,) = [note for note in leaf.notes if "directional" in note.lower()]
    assert note.startswith("plant.fmu: ")
    assert note.endswith("differences are used")
    if define == "WRONG_DIRECTIONAL":
        assert "its directional derivative of `der_v` over `x` is -4.008, by differences -5.344" in note


# reals that change at events only

HELD = {"u": {"variability": "discrete"}, "y": {"variability": "discrete"}}


def loop_of(k, tmp_path, version, h, **options):
    """A lag and a gain whose reals are discrete, in a loop."""
    gain = hk.Fmu(
        build("gain", version, folder=tmp_path, variables=HELD), interface="co-simulation", k=k, **options
    )
    lag = hk.Fmu(build("lag", version, folder=tmp_path), interface="co-simulation", T=0.5, y0=1.0)
    links = {"lag.u": "gain.y", "gain.u": "lag.y"}
    return hk.Composite(hk.Scenario({"lag": lag, "gain": gain}, links), h)


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("k", [-3.0, -99.5, 0.5])
def test_reals_that_change_at_events_couple(version, k, tmp_path):
    """The gain at once: y+ = y + h / T (k y - y)."""
    composite = loop_of(k, tmp_path, version, "10 ms")
    found = stability(linearise(composite).composite)
    assert found.rho == pytest.approx(abs(1.0 + 0.02 * (k - 1.0)), rel=1e-9)
    assert found.stable == (found.rho < 1.0)


def test_a_coupling_by_discrete_reals_that_is_late_by_a_step(tmp_path):
    """y+ = (1 - h / T) y + h / T k y_before: the gain shows what it was given before its step."""
    k, part = -60.0, 0.02
    composite = loop_of(k, tmp_path, 2, "10 ms", reevaluate=False)
    companion = np.array([[1.0 - part, part * k], [1.0, 0.0]])
    found = stability(linearise(composite).composite)
    assert found.rho == pytest.approx(np.abs(np.linalg.eigvals(companion)).max(), rel=1e-6)
    assert not found.stable


# inputs that move during a step, and couplings without feedback


def test_outputs_after_a_step_are_under_the_inputs_they_are_asked_for(tmp_path):
    """The FMU leaves its input where it came to during the step, and not where the step began."""
    path = build("follower", 2, folder=tmp_path)
    simulator = hk.Fmu(path, p=0.6, observe=["x"]).open()
    simulator.start(0.0)
    simulator.output(0.0, np.array([[0.5, 0.0]]))
    simulator.step(0.0, 0.1, np.array([[0.5, 0.0], [2.0, 0.0]]))
    _, s, _, x = simulator.output(0.1, np.array([[0.5, 0.0], [0.0, 0.0]]))
    simulator.close()
    assert s == x + 0.6 * 0.5


@pytest.mark.parametrize("extrapolation", ["hold", "linear", "quadratic"])
@pytest.mark.parametrize("reevaluate", [True, False])
def test_a_linear_fmu_with_feedthrough_is_identified_under_any_extrapolation(
    extrapolation, reevaluate, tmp_path
):
    """Four steps of Runge and Kutta's method a step: their eigenvalues are known."""
    plant = hk.Fmu(build("follower", 2, folder=tmp_path), reevaluate=reevaluate, p=0.6, x0=0.1)
    lag = hk.Fmu(build("lag", 2, folder=tmp_path), T=0.05, interface="co-simulation")
    links = {"plant.u": "lag.y", "lag.u": "plant.s"}
    scenario = hk.Scenario({"plant": plant, "lag": lag}, links)
    leaf, _ = (found := linearise(hk.Composite(scenario, "10 ms", extrapolation=extrapolation))).leaves
    assert (leaf.how, leaf.fit < 1e-3) == ("identified", True)
    A = 0.0025 * plant_matrices(u=0.0, w=0.0, p=0.6)[0]
    step = sum(np.linalg.matrix_power(A, k) / math.factorial(k) for k in range(5))
    true = np.linalg.eigvals(np.linalg.matrix_power(step, 4))
    eigenvalues = np.linalg.eigvals(dict(found.made.scenario.models)["plant"].F)
    assert max(np.abs(eigenvalues - value).min() for value in true) < 1e-6


@pytest.mark.parametrize("method", ["gauss-seidel", "jacobi"])
def test_a_cascade_of_integrators_is_not_called_unstable(method, tmp_path):
    """Ramp after ramp: what they are given grows, and no coupling is to blame. A loop of them is unstable."""
    ramp = hk.Fmu(build("ramp", 2, folder=tmp_path), interface="co-simulation")
    lag = hk.Fmu(build("lag", 2, folder=tmp_path), interface="co-simulation")
    models = {"lag": lag, "first": ramp, "second": ramp}
    chain = {"first.u": "lag.y", "second.u": "first.y"}
    check = hk.check(hk.Composite(hk.Scenario(models, chain), "10 ms", method))
    assert check.outcome is Outcome.GOOD
    assert check.stability.verdict() == [
        "stable but for `second`, which drifts by itself, in no feedback loop: spectral radius 1"
    ]
    loop = hk.check(hk.Composite(hk.Scenario(models, {**chain, "lag.u": "second.y"}), "10 ms", method))
    assert loop.stability.verdict()[0].startswith("the exact system is unstable, spectral radius 1.0")


# fixed steps inside


def stepped_loop(k, inside, h, version, tmp_path, **options):
    """A lag by Euler steps of its own, T = 0.5 s, and a gain."""
    path = build("stepped", version, folder=tmp_path, **options)
    models = {
        "lag": hk.Fmu(path, T=0.5, y0=1.0, inside=inside),
        "gain": hk.Fmu(build("gain", version, folder=tmp_path), interface="co-simulation", k=k),
    }
    links = {"lag.u": "gain.y", "gain.u": "lag.y"}
    return hk.Composite(hk.Scenario(models, links), h)


def stepped_radius(k, inside, h, phases):
    """Return by how much y changes in a period: its own steps, under inputs held over macro steps."""
    y, done = 1.0, 0
    for number in range(phases):
        u = k * y
        while (done + 1) * inside <= (number + 1) * h * (1 + 1e-9):
            y += inside / 0.5 * (u - y)
            done += 1
    return abs(y)


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize(
    ("h", "inside", "phases"), [(1, 10, 10), (15, 10, 2), (10, 100, 10), (7, 10, 10), (20, 10, 1)]
)
def test_fixed_steps_inside_are_identified_over_a_period(version, h, inside, phases, tmp_path):
    k = -30.0
    composite = stepped_loop(k, inside / 1000, f"{h} ms", version, tmp_path)
    found = linearise(composite)
    leaf = found.leaves[0]
    span = format_duration(phases * Fraction(h, 1000))
    said = f"identified over {phases} steps ({span}), after which its responses repeat: "
    assert leaf.notes == ((said + "it makes fixed internal steps",) if phases > 1 else ())
    rho = stability(found.composite).rho
    assert rho == pytest.approx(stepped_radius(k, inside / 1000, h / 1000, phases), rel=1e-9)


def test_a_check_of_fixed_steps_inside_predicts_the_run(tmp_path):
    composite = stepped_loop(-12.0, 0.1, "10 ms", 2, tmp_path)
    check = hk.check(composite)
    assert not check.stability.stable
    assert check.stability.period == pytest.approx(0.1)
    y = np.array(hk.run(composite, "1 s")["lag.y"])
    assert abs(y[-1]) == pytest.approx(check.stability.rho**10, rel=1e-6)


def test_fixed_steps_that_never_meet_macro_steps_are_the_reason_of_a_refusal(tmp_path):
    composite = stepped_loop(-3.0, 0.0317, "10 ms", 3, tmp_path, fixedInternalStepSize=0.0317)
    leaf = linearise(composite).leaves[0]
    assert leaf.refused == (
        "it makes fixed internal steps of 0.0317 s, and steps of 10 ms do not meet them again soon: "
        "macro steps that are multiples of them can be judged"
    )


# a dual-mass pair


@pytest.mark.parametrize("interface", ["co-simulation", "model-exchange"])
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("extrapolation", ["hold", "linear"])
def test_the_predicted_error_of_a_dual_mass_pair(interface, version, extrapolation, tmp_path):
    """The same equations as co-simulation and as model exchange FMUs; the exact motion is that of both.

    Parameters are those of the models: m = 10 kg, c = 1 N/m, d = 1 and 2 N.s/m, coupled by 1 N/m and 2 N.s/m;
    from 0.1 m and 0.1 m/s, and from 0.2 m and 0.1 m/s.
    """
    solver = {"rtol": 1e-10} if interface == "model-exchange" else {"substeps": 20}
    models = {
        name: hk.Fmu(build(name, version, folder=tmp_path), interface=interface, **solver)
        for name in ("first", "second")
    }
    links = {"first.x": "second.x", "first.v": "second.v", "second.force": "first.force"}
    composite = hk.Composite(hk.Scenario(models, links), "0.1 s", extrapolation=extrapolation)
    check = hk.check(composite, stop="10 s")
    run = hk.run(composite, "10 s")
    start = [0.1, 0.1, 0.2, 0.1]
    A = np.array([[0, 1, 0, 0], [-0.2, -0.3, 0.1, 0.2], [0, 0, 0, 1], [0.1, 0.2, -0.2, -0.4]])
    exact = np.array([(expm(A * (0.1 * k)) @ start)[2] for k in range(101)])
    measured = np.abs(np.array(run["second.x"]) - exact).max()
    predicted = next(each.largest for each in check.prediction.ports if each.port == "second.x")
    assert predicted == pytest.approx(measured, rel=0.05)


# runs


@pytest.mark.parametrize("defines", CACHES[1:], ids="+".join)
@pytest.mark.parametrize("method", ["rk4", "adaptive"])
def test_no_cache_makes_the_outputs_of_a_run_stale(method, defines, fmu):
    """Inputs rest for two steps, and are others when outputs are read: as one without a cache does."""

    def rows(defines):
        silent = {"completedIntegratorStepNotNeeded": True}
        simulator = fmu("plant", 2, defines, silent, method=method, **CURVED).open()
        simulator.start(0.0)
        found = []
        for k in range(20):
            u, later = (np.array([[np.sin(n // 2), 0.3 * (n // 2)]]) for n in (k, k + 1))
            found.append(simulator.output(0.05 * k, u))
            simulator.step(0.05 * k, 0.05, u)
            found += [simulator.output(0.05 * (k + 1), each) for each in (u, later, u)]
        simulator.close()
        return np.array(found)

    assert np.array_equal(rows(defines), rows(()))


# co-simulation FMUs that give directional derivatives


def cosimulation_pair(folder, version, defines=(), **options):
    """Return a linear plant as a co-simulation FMU in a loop with a lag, solved by itself in small steps."""
    overrides = directional(version)
    file = build("plant", version, folder=folder, defines=defines, **overrides)
    plant = hk.Fmu(file, interface="co-simulation", isolate=False, **STRAIGHT, **options)
    lag = hk.StateSpace([[-2.0]], [[1.0]], [[0.7]], x0=[0.2], inputs=["u"], outputs=["y"])
    rest = hk.Function(lambda t: 0.0, outputs=["y"])
    links = {"plant.u": "lag.y", "plant.w": "rest.y", "lag.u": "plant.s"}
    return hk.Composite(hk.Scenario({"plant": plant, "lag": lag, "rest": rest}, links), "1 ms")


@pytest.mark.parametrize("version", [2, 3])
def test_a_cosimulation_fmu_is_read_from_its_directional_derivatives(version, tmp_path):
    """They are those of the equations, and give the same Phi as pulses."""
    found = linearise(cosimulation_pair(tmp_path / "right", version))
    leaf = next(each for each in found.leaves if each.path == "plant")
    assert leaf.how == "jacobian"
    assert leaf.notes[-1].startswith("from its directional derivatives; its answers to pulses differ by ")
    assert leaf.fit <= 1e-6
    assert_same(dict(found.made.scenario.models)["plant"], plant_matrices(u=0.14, w=0.0, **STRAIGHT), 1e-12)

    pulses = linearise(cosimulation_pair(tmp_path / "wrong", version, ("NO_DIRECTIONAL",)))
    (other,) = [each for each in pulses.leaves if each.path == "plant"]
    assert other.how == "identified"
    one, two = (
        np.sort_complex(np.linalg.eigvals(read_linear(each.composite).Phi)) for each in (found, pulses)
    )
    alive = two[np.abs(two) > 1e-3]
    assert max(np.abs(one - each).min() for each in alive) <= 1e-6


@pytest.mark.parametrize("version", [2, 3])
def test_directional_derivatives_of_a_cosimulation_fmu_that_pulses_deny_are_not_taken(version, tmp_path):
    found = linearise(cosimulation_pair(tmp_path, version, ("WRONG_DIRECTIONAL",)))
    leaf = next(each for each in found.leaves if each.path == "plant")
    assert leaf.how == "identified"
