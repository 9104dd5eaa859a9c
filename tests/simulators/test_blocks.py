"""Blocks against closed forms, on both engines with the same bits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.linalg import expm

import hocket as hk
from hocket.blocks import (
    PID,
    Delay,
    Expression,
    Gain,
    Integrator,
    Noise,
    Product,
    Pulse,
    Ramp,
    RateLimiter,
    Relay,
    Saturation,
    Sine,
    Step,
    Sum,
    TransferFunction,
)
from hocket.simulators.formulas import OPERATIONS, Tape, normal, uniform
from hocket.testing import check_simulator


def run(models, wires, step="10 ms", stop="1 s", **level):
    """Return the run of the native engine, after a look whether the interpreter has the same bits."""
    level = hk.Composite(hk.Scenario(models, wires), step, **level)
    native, python = (hk.run(level, stop, engine=engine) for engine in ("native", "interpreter"))
    for port in native.ports:
        assert native[port].t.tobytes() == python[port].t.tobytes(), port
        assert native[port].values.tobytes() == python[port].values.tobytes(), port
    return native


def loop(pid, gain=1.0, lag=0.5):
    models = {"step": Step(), "pid": pid, "plant": TransferFunction([gain], [lag, 1.0])}
    wires = {"pid.reference": "step.y", "pid.measured": "plant.y", "plant.u": "pid.control"}
    return models, wires


class TestSignals:
    def test_a_step_is_met_between_the_steps(self):
        found = run({"s": Step(0.0537, 1.0, 3.0), "i": Integrator()}, {"i.u": "s.y"})
        assert found["i.y"].values[-1] == pytest.approx(0.0537 + 3.0 * (1.0 - 0.0537), rel=1e-14)

    def test_ramp_and_sine_are_the_functions(self):
        found = run({"r": Ramp(2.0, 0.25, -1.0), "s": Sine(3.0, 0.7, 0.2, 1.0)}, {})
        t, y = found["r.y"]
        assert np.abs(y - (-1.0 + 2.0 * np.maximum(t - 0.25, 0.0))).max() < 1e-15
        t, y = found["s.y"]
        assert np.abs(y - (1.0 + 3.0 * np.sin(2.0 * np.pi * 0.7 * t + 0.2))).max() < 1e-14

    def test_pulses_carry_their_area_whatever_the_step(self):
        pulse = Pulse("100 ms", "33 ms", at="51 ms", low=-1.0, high=2.0)
        found = run({"p": pulse, "i": Integrator()}, {"i.u": "p.y"}, step="40 ms")
        high = 9 * 0.033 + 0.033  # ten pulses begin before 1 s, the last at 0.951 s and ends at 0.984 s
        assert found["i.y"].values[-1] == pytest.approx(2.0 * high - (1.0 - high), rel=1e-12)

    def test_pulses_of_a_run_that_starts_late(self):
        level = hk.Composite(hk.Scenario({"p": Pulse("1 s", "1/4 s")}), "1/8 s")
        t, y = hk.run(level, "102 s", start="100 s")["p.y"]
        settled = np.flatnonzero(np.diff(t, append=np.inf))  # the last row of each time
        assert np.array_equal(y[settled], ((t[settled] % 1.0) < 0.25).astype(float))

    def test_noise_has_its_moments_and_its_seed(self):
        values = np.array([normal(5.0, float(k)) for k in range(20_000)])
        assert abs(values.mean()) < 4.0 / math.sqrt(len(values))
        assert abs(values.std() - 1.0) < 4.0 / math.sqrt(2.0 * len(values))
        flat = np.array([uniform(5.0, float(k)) for k in range(20_000)])
        assert flat.min() > 0.0
        assert flat.max() < 1.0
        assert abs(flat.mean() - 0.5) < 4.0 / math.sqrt(12.0 * len(flat))
        found = run({"a": Noise("10 ms", 2.0, 1.0, 5), "b": Noise("10 ms", 2.0, 1.0, 6)}, {}, stop="0.2 s")
        assert found["a.y"].values[0] == 1.0 + 2.0 * values[0]
        assert not np.array_equal(found["a.y"].values, found["b.y"].values)


class TestMotion:
    def test_a_transfer_function_is_the_matrix_exponential(self):
        # (2 s + 3) / (s^2 + 0.4 s + 4) under a step: y = C A^-1 (exp(A t) - 1) B
        found = run({"s": Step(), "g": TransferFunction([2.0, 3.0], [1.0, 0.4, 4.0])}, {"g.u": "s.y"})
        A, B, C = np.array([[0.0, 1.0], [-4.0, -0.4]]), np.array([0.0, 1.0]), np.array([3.0, 2.0])
        t, y = found["g.y"]
        exact = [C @ np.linalg.solve(A, (expm(A * each) - np.eye(2)) @ B) for each in t]
        assert np.abs(y - exact).max() < 1e-13

    def test_a_transfer_function_with_feedthrough(self):
        found = run({"s": Step(), "g": TransferFunction([1.0, 2.0], [1.0, 1.0])}, {"g.u": "s.y"})
        t, y = found["g.y"]
        assert np.abs(y - (2.0 - np.exp(-t))).max() < 1e-13

    @pytest.mark.parametrize("limits", [{}, {"low": -1.0, "high": 0.3}])
    def test_an_integrator(self, limits):
        found = run({"s": Step(0.0, 0.0, 1.0), "i": Integrator(2.0, -0.5, **limits)}, {"i.u": "s.y"})
        t, y = found["i.y"]
        exact = -0.5 + 2.0 * t
        assert np.abs(y - np.minimum(exact, limits.get("high", np.inf))).max() < 1e-13

    def test_a_limited_integrator_leaves_its_limit_at_once(self):
        pulse = Pulse("1 s", "0.5 s", low=-1.0, high=1.0)
        found = run({"p": pulse, "i": Integrator(high=0.3)}, {"i.u": "p.y"})
        assert found["i.y"].values[-1] == pytest.approx(0.3 - 0.5, abs=1e-12)

    def test_a_reset_is_met_where_it_is(self):
        models = {"r": Ramp(), "i": Integrator(x0=0.25, reset=True), "one": Step()}
        scenario = hk.Scenario(
            models, {"i.u": "one.y", "i.reset": "c.event"}, crossings={"c": hk.Crossing("r.y", at=0.4321)}
        )
        found = hk.run(hk.Composite(scenario, "50 ms"), "1 s")
        assert found["i.y"].values[-1] == pytest.approx(0.25 + 1.0 - 0.4321, abs=1e-9)

    def test_a_rate_limiter_under_a_step_and_a_ramp(self):
        found = run({"s": Step(0.0123), "l": RateLimiter(2.0, 1.0)}, {"l.u": "s.y"})
        t, y = found["l.y"]
        assert np.abs(y - np.clip(2.0 * (t - 0.0123), 0.0, 1.0)).max() < 1e-14
        # a falling ramp is met within a step, and is too fast to follow: up by 1 per second, then down by 0.5
        scenario = hk.Scenario({"r": Ramp(-2.0, initial=1.0), "l": RateLimiter(1.0, 0.5)}, {"l.u": "r.y"})
        found = hk.run(hk.Composite(scenario, "0.1 s", extrapolation="linear"), "1 s")
        t, y = found["l.y"]
        exact = np.where(t < 1.0 / 3.0, t, 1.0 / 3.0 - 0.5 * (t - 1.0 / 3.0))
        assert np.abs(y - exact).max() < 1e-12

    def test_a_delay_is_exact(self):
        t, y = run({"r": Ramp(2.0), "d": Delay("30 ms", -1.0)}, {"d.u": "r.y"}, stop="0.1 s")["d.y"]
        # its input is held: what went in when a step began
        assert np.allclose(y, np.where(t < 0.03 - 1e-12, -1.0, 2.0 * (t - 0.03)), atol=1e-15)
        found = run(
            {"s": Step(0.0123), "d": Delay("31.4 ms"), "i": Integrator()}, {"d.u": "s.y", "i.u": "d.y"}
        )
        assert found["i.y"].values[-1] == pytest.approx(1.0 - 0.0123 - 0.0314, rel=1e-14)

    def test_a_delayed_loop_turns_unstable_where_theory_says(self):
        """x' = -K x(t - tau) oscillates for ever at K tau = pi / 2."""
        for K, grows in ((0.9 * math.pi / 2.0, False), (1.1 * math.pi / 2.0, True)):
            models = {"i": Integrator(-K, 1.0), "d": Delay("1 s", 1.0)}
            level = hk.Composite(
                hk.Scenario(models, {"i.u": "d.y", "d.u": "i.y"}), "10 ms", extrapolation="linear"
            )
            y = np.abs(hk.run(level, "40 s")["i.y"].values)
            assert bool(y[-800:].max() > y[800:1600].max()) is grows


class TestArithmetic:
    def test_formulas(self):
        models = {
            "r": Ramp(2.0, initial=-1.0),
            "s": Sine(),
            "p": Product(["a", "b"]),
            "c": Saturation(-0.5, 0.25),
            "e": Expression(["z = max(a, b) ** 2 - exp(-t) / 3", "w = -sqrt(abs(a))"]),
        }
        wires = {"p.a": "r.y", "p.b": "s.y", "c.u": "r.y", "e.a": "r.y", "e.b": "s.y"}
        found = run(models, wires)
        t, a, b = found["r.y"].t, found["r.y"].values, found["s.y"].values
        assert np.array_equal(found["p.y"].values, a * b)
        assert np.array_equal(found["c.y"].values, np.clip(a, -0.5, 0.25))
        assert np.allclose(
            found["e.z"].values, np.maximum(a, b) ** 2 - np.exp(-t) / 3.0, rtol=1e-15, atol=1e-15
        )
        assert np.array_equal(found["e.w"].values, -np.sqrt(np.abs(a)))

    def test_what_has_no_value_ends_the_run(self):
        for text in ("y = log(u)", "y = 1 / u", "y = sqrt(u - 1)", "y = min(sqrt(u - 1), 1)"):
            models = {"r": Ramp(), "e": Expression(text)}
            for engine in ("native", "interpreter"):
                with pytest.raises(hk.SimulatorError, match="nan"):
                    hk.run(hk.Composite(hk.Scenario(models, {"e.u": "r.y"}), "0.1 s"), "1 s", engine=engine)

    def test_every_operation_has_the_same_bits_in_compiled_code(self):
        from hocket import _native

        rng = np.random.default_rng(1)
        tape = Tape(3)
        a, b, c = tape.given
        arguments = dict.fromkeys(("negative", "sin", "cos", "tan", "sqrt", "exp", "log", "abs", "floor"), 1)
        results = []
        for name in OPERATIONS:
            many = {"select": 3}.get(name, arguments.get(name, 2))
            if name in ("uniform", "normal"):
                one, two = (each.tape.note("floor", each.tape.note("abs", each)) for each in (a, b))
                results.append(tape.note(name, one, two))
            else:
                results.append(tape.note(name, *(a, b, c)[:many]))
        program = tape.program([*results, 0.1])
        twin = _native.Program(
            given=3, constants=program.constants, operations=program.operations, results=program.results
        )
        special = [0.0, -0.0, 1.0, -1.0, 0.5, 1e9, 800.0, 1e-300]
        points = [rng.normal(size=3) * 10.0 ** rng.uniform(-3, 3) for _ in range(500)]
        points += [np.array([x, y, 1.0]) for x in special for y in special]
        for point in points:
            one, other = np.array(program(point.tolist())), np.array(twin.evaluate(point.tolist()))
            assert np.array_equal(one, other, equal_nan=True), point


class TestControl:
    def test_a_pid_and_a_lag_against_the_closed_loop(self):
        """P control of 1 / (0.5 s + 1) by K = 3: y = 0.75 (1 - exp(-8 t))."""
        found = run(*loop(PID(3.0)), step="1 ms", stop="0.5 s", orchestrator="gauss-seidel")
        t, y = found["plant.y"]
        assert np.abs(y - 0.75 * (1.0 - np.exp(-8.0 * t))).max() < 4e-3  # of first order in the step
        settings = {"K": 2.0, "Ti": 0.8, "Td": 0.05, "b": 0.7, "c": 0.3, "i0": 0.1, "y0": -0.2}
        K, Ti, Td, N, b, c = 2.0, 0.8, 0.05, 10.0, 0.7, 0.3
        # states: the plant, the integral part, the filtered c r - y
        A = np.array(
            [[-2.0 - 2.0 * (K + K * N), 2.0, -2.0 * K * N], [-K / Ti, 0.0, 0.0], [-N / Td, 0.0, -N / Td]]
        )
        B = np.array([2.0 * (K * b + K * N * c), K / Ti, c * N / Td])
        x0 = np.array([0.0, 0.1, 0.2])
        errors = []
        for step in ("1 ms", "0.5 ms"):
            found = run(*loop(PID(**settings)), step=step, stop="0.2 s", orchestrator="gauss-seidel")
            t, y = found["plant.y"]
            exact = [(expm(A * s) @ x0 + np.linalg.solve(A, (expm(A * s) - np.eye(3)) @ B))[0] for s in t]
            errors.append(np.abs(y - exact).max())
        assert errors[1] < 5e-3
        assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.15)

    def test_with_far_limits_it_is_the_linear_one(self):
        settings = {"K": 2.0, "Ti": 0.8, "Td": 0.05, "b": 0.7, "c": 0.3, "i0": 0.1, "y0": -0.2}
        plain, limited = (
            run(*loop(PID(**settings, **limits)), step="1 ms", stop="0.5 s")["plant.y"].values
            for limits in ({}, {"low": -1e9, "high": 1e9})
        )
        assert np.abs(plain - limited).max() < 1e-5

    def test_back_calculation_leads_the_integral_part_back(self):
        """At a limit, I' = K e / Ti + (limit - K e - I) / Tt: an exponential."""
        pid = PID(2.0, 0.5, low=-1.0, high=1.0, Tt=0.1)
        models = {"one": Step(), "zero": Step(0.0, 0.0, 0.0), "pid": pid}
        level = hk.Composite(
            hk.Scenario(models, {"pid.reference": "one.y", "pid.measured": "zero.y"}), "10 ms"
        )
        live = pid.open()
        live.start(0.0)
        for k in range(50):
            live.step(0.01 * k, 0.01, np.array([[1.0, 0.0]]))
        final = 1.0 - 2.0 + 0.1 * 4.0
        assert live.state[0] == pytest.approx(final * (1.0 - math.exp(-5.0)), rel=1e-6)
        assert hk.run(level, "0.5 s")["pid.control"].values.max() == 1.0

    def test_a_sampled_one_is_its_difference_equation(self):
        K, Ti, Td, N, h, low, high, Tt = 2.0, 0.5, 0.1, 8.0, 0.02, -3.0, 1.5, 0.2
        pid = PID(K, Ti, Td, N, low=low, high=high, Tt=Tt, period=h)
        found = run(*loop(pid), step="10 ms", stop="1 s")
        x = integral = old = slope = 0.0
        decay, shown = math.exp(-h / 0.5), []
        for _ in range(50):
            y = x
            slope = Td / (Td + N * h) * slope - K * Td * N / (Td + N * h) * (y - old)
            wanted = K * (1.0 - y) + integral + slope
            u = min(max(wanted, low), high)
            integral, old = integral + K * h / Ti * (1.0 - y) + h / Tt * (u - wanted), y
            x = decay * x + (1.0 - decay) * u
            shown.append(x)
        t, y = found["plant.y"]
        # the plant takes what was shown when its step of 10 ms began
        assert np.abs(y[np.searchsorted(t, 0.98)] - shown[48]) < 0.02
        assert found["pid.control"].values.max() == 1.5

    def test_a_relay_oscillates_with_the_period_of_theory(self):
        """x' = -x + y, y = 1 below -a, -1 above a: half a period is ln((1 + a) / (1 - a))."""
        models = {"relay": Relay(-0.2, 0.2, off=1.0, on=-1.0), "lag": TransferFunction([1.0], [1.0, 1.0])}
        found = run(models, {"relay.u": "lag.y", "lag.u": "relay.y"}, step="30 ms", stop="3 s")
        t, y = found["relay.y"]
        switches = t[1:][np.diff(y) != 0.0]
        assert len(switches) > 5
        assert np.allclose(np.diff(switches), math.log(1.2 / 0.8), atol=1e-9)
        assert np.abs(found["lag.y"].values).max() == pytest.approx(0.2, abs=1e-9)

    def test_thresholds_of_a_relay_are_in_its_own_unit(self):
        models = {"r": Ramp(1.0, unit="m"), "relay": Relay(200.0, 450.0, unit="mm")}
        t, y = run(models, {"relay.u": "r.y"}, step="100 ms")["relay.y"]
        assert t[1:][np.diff(y) != 0.0] == pytest.approx([0.45], abs=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        Step(0.3),
        Ramp(0.5),
        Sine(2.0, 3.0),
        Pulse("0.3 s", "0.1 s"),
        Noise("50 ms"),
        Product(["a", "b"]),
        Saturation(-1.0, 0.4),
        Expression("y = a * b + t"),
        Integrator(low=-1.0, high=1.0),
        Integrator(reset=True),
        RateLimiter(1.0),
        Delay("0.13 s"),
        PID(2.0, 1.0, 0.1, low=-1.0, high=1.0),
        PID(2.0, 1.0, 0.1, period="50 ms"),
        Relay(-1.0, 1.0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_blocks_obey_the_laws(model):
    check_simulator(model)


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: TransferFunction([1.0, 0.0, 0.0], [1.0, 1.0]), "improper: degree 2 over degree 1"),
        (lambda: TransferFunction([1.0], [0.0]), "denominator of a transfer function is zero"),
        (lambda: TransferFunction("s", [1.0]), "numerator"),
        (lambda: Saturation(), "no limit"),
        (lambda: Saturation(1.0, -1.0), "`low` is 1 and `high` is -1"),
        (lambda: PID(1.0, Ti=0.0), "Ti"),
        (lambda: PID(1.0, period=-1.0), "period"),
        (lambda: PID(1.0, Tt=1.0), "no integral part"),
        (lambda: PID(1.0, low=2.0, high=1.0), "`low` is 2"),
        (lambda: Pulse(1.0, 1.0), "pulses of 1 s in periods of 1 s"),
        (lambda: Pulse(0.0, 0.1), "period"),
        (lambda: Noise("10 ms", std=0.0), "std"),
        (lambda: Noise("10 ms", seed=-1), "seed"),
        (lambda: RateLimiter(0.0), "rising"),
        (lambda: Delay(0.0), "delay"),
        (lambda: Relay(1.0, 1.0), "`low` is 1"),
        (lambda: Integrator(x0=2.0, high=1.0), "beyond the limits"),
        (lambda: Product([]), "no inputs"),
        (lambda: Product(["a", "a"]), "two ports named `a`"),
        (lambda: Expression("y = __import__('os')"), "cannot be evaluated"),
        (lambda: Expression("y = u.real"), "no place in a formula"),
        (lambda: Expression("y = y + 1"), "computed from itself"),
        (lambda: Expression(["y = u", "y = v"]), "result of two formulas"),
        (lambda: Expression(["y = u", "z = y"]), "an input of another one"),
        (lambda: Expression("u + 1"), "is not a formula"),
        (lambda: Sine(frequency=0.0), "frequency"),
        (lambda: Step(unit=3), "unit"),
    ],
)
def test_nonsense_is_refused(make, what):
    with pytest.raises(hk.ScenarioError) as caught:
        make()
    assert what in str(caught.value)


class TestChecked:
    def test_limits_are_modes_of_a_loop(self):
        models, wires = loop(PID(2.0, 1.0, low=-1.0, high=1.0))
        found = hk.check(hk.Composite(hk.Scenario(models, wires), "10 ms"), stop=2)
        assert "mode" in "\n".join(found.verdict())

    def test_a_relay_is_not_judged(self):
        models = {"relay": Relay(-0.2, 0.2), "lag": TransferFunction([1.0], [1.0, 1.0])}
        level = hk.Composite(hk.Scenario(models, {"relay.u": "lag.y", "lag.u": "relay.y"}), "30 ms")
        assert any("not judged" in line for line in hk.check(level, stop="0.99 s").verdict())

    def test_a_formula_has_its_slope(self):
        """x' = -x + u, u = 1.5 x within limits: unstable."""
        models = {"lag": TransferFunction([1.0], [1.0, 1.0]), "e": Expression("w = 1.5 * x + 0 * t")}
        level = hk.Composite(hk.Scenario(models, {"lag.u": "e.w", "e.x": "lag.y"}), "1 ms")
        found = hk.check(level, stop=1)
        assert "unstable" in found.verdict()[0]


def _loop(**changes):
    """A step, a PID controller, a limit, a tank; a PID with limits is no linear model."""
    made = {"K": 2.0, "Ti": 1.0, "gain": 1.0, "lag": 1.0, "after": 1.0, "high": 5.0, "low": None} | changes
    models = {
        "step": Step(at=0.3, after=made["after"]),
        "pid": PID(K=made["K"], Ti=made["Ti"], low=made["low"]),
        "limit": Saturation(-5.0, made["high"]),
        "tank": TransferFunction([made["gain"]], [made["lag"], 1.0]),
    }
    wires = {
        "pid.reference": "step.y",
        "pid.measured": "tank.y",
        "limit.u": "pid.control",
        "tank.u": "limit.y",
    }
    return hk.Composite(hk.Scenario(models, wires), "10 ms")


@pytest.mark.parametrize(
    ("path", "value", "change"),
    [
        ("pid.K", 0.5, {"K": 0.5}),
        ("pid.Ti", "0.5 s", {"Ti": 0.5}),
        ("pid.low", 0.1, {"low": 0.1}),
        ("limit.high", 0.7, {"high": 0.7}),
        ("step.after", 3, {"after": 3.0}),
        ("tank.numerator[1]", 2.5, {"gain": 2.5}),
        ("tank.denominator", [0.25, 1.0], {"lag": 0.25}),
        ("tank.denominator[1]", 0.25, {"lag": 0.25}),
    ],
)
def test_what_a_block_is_made_with_is_a_parameter(path, value, change):
    """The run of a block whose parameter is changed by path is that of a block made with it."""
    found = hk.run(_loop(), "2 s", parameters={path: value})["tank.y"].values
    expected = hk.run(_loop(**change), "2 s")["tank.y"].values
    assert found.tolist() == expected.tolist()
    assert found.tolist() != hk.run(_loop(), "2 s")["tank.y"].values.tolist()


def test_every_block_is_made_again_from_its_own_arguments():
    blocks = [
        Step(0.5, 1.0, 2.0, "V"),
        Ramp(2.0, 1.0, 3.0),
        Sine(1.0, 2.0, 3.0, 4.0),
        Pulse("1 s", "0.25 s", 0.5, -1.0, 2.0),
        Noise("0.1 s", 2.0, 1.0, 7, "uniform"),
        Product(["a", "b"], "W"),
        Saturation(-1.0, 2.0),
        Expression("y = 2 * u"),
        TransferFunction([1.0, 2.0], [1.0, 2.0, 3.0], "V", "A"),
        Integrator(2.0, 1.0),
        Integrator(2.0, 1.0, -1.0, 4.0, True),
        RateLimiter(1.0, 2.0, 0.5),
        Delay("0.3 s", 1.0),
        PID(1.0, 2.0),
        PID(1.0, 2.0, 3.0, low=-1.0, period="0.1 s"),
        Relay(-1.0, 1.0, 2.0, 3.0, True),
        Gain(2.0, "V", "A"),
        Sum("a", "b", gains=[1.0, -1.0]),
    ]
    for block in blocks:
        if isinstance(block, hk.StateSpace):
            again = block.recipe.make(**block.recipe.arguments)
            assert again == block
        else:
            again = block.remake(block.arguments)
            assert again.arguments == block.arguments
        assert (again.inputs, again.outputs) == (block.inputs, block.outputs)


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("pid.Kp", 1.0, "has no parameter `Kp`"),
        ("step.befor", 1.0, "did you mean `before`?"),
        ("tank.denominator[3]", 1.0, "[1] to [2], counted from one"),
        ("limit.high", -7.0, "`low` below `high`"),
        ("limit.high", float("nan"), "a finite number"),
        ("pid.Ti", -1.0, "Ti"),
    ],
)
def test_what_is_no_parameter_of_a_block_is_refused(path, value, told):
    with pytest.raises(hk.ScenarioError) as caught:
        hk.run(_loop(), "2 s", parameters={path: value})
    assert told in str(caught.value)


def test_parts_that_a_pid_lacks_do_not_put_its_loop_on_the_stability_boundary():
    """A lag of 0.5 s under a gain of 4, held over 10 ms: one number says what is left of it after a step."""
    models = {"r": Step(), "pid": PID(K=4.0), "plant": TransferFunction([1.0], [0.5, 1.0])}
    wires = {"pid.reference": "r.y", "pid.measured": "plant.y", "plant.u": "pid.control"}
    found = hk.check(
        hk.Composite(hk.Scenario(models, wires), "10 ms"), stop="1 s", advise=False, robust=False
    )
    left = math.exp(-0.02)
    assert found.stability.rho == pytest.approx(left - 4.0 * (1.0 - left), abs=1e-12)
    models["pid"] = PID(K=4.0, i0=0.5)  # an offset that stays is a state
    run = hk.run(hk.Composite(hk.Scenario(models, wires), "10 ms"), "10 s")
    assert run.final("plant.y") == pytest.approx(4.5 / 5.0, abs=1e-9)
