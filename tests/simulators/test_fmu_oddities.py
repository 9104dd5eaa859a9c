"""Negated aliases, derivatives beside what is observed, FMI 1 around a cycle, replay without a state."""

import re

import numpy as np
import pytest

import hocket as hk
from fmus.build import build
from hocket.simulators.fmu.recipe import Fmu
from hocket.simulators.wrappers.replay import Replay
from systems import ENGINES

# negated aliases of FMI 1


def negating(*names):
    """Return what makes variables of a model description negated aliases."""

    def change(text):
        for name in names:
            text, count = re.subn(f'(<ScalarVariable name="{name}")', r'\1 alias="negatedAlias"', text)
            assert count == 1
        return text

    return change


def constant(value):
    return hk.Function(lambda t: value, outputs=["y"])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize(("names", "y"), [((), 6.0), (["u"], -6.0), (["y"], -6.0), (["u", "y"], 6.0)])
def test_negated_aliases_turn_the_sign(tmp_path, names, y, isolate, engine):
    """y = 2 u with u = 3, each port with the sign that its alias gives it."""
    path = build("gain", 1, folder=tmp_path, xml=negating(*names))
    models = {"gain": Fmu(path, isolate=isolate), "three": constant(3.0)}
    run = hk.run(hk.Composite(hk.Scenario(models, {"gain.u": "three.y"}), "100 ms"), stop=0.5, engine=engine)
    assert list(run["gain.y"].values) == [y] * 6


def test_negated_aliases_of_whole_numbers_and_truths(tmp_path):
    """Integers u + p with p = 2; y_bool = (u != p) with p false: the opposite is told."""
    names = ["y_int", "y_bool"]
    path = build("types", 1, folder=tmp_path, xml=negating(*names))
    found = {}
    for kind, model in (("plain", Fmu(build("types", 1, folder=tmp_path / "plain"))), ("turned", Fmu(path))):
        run = hk.run(model, 0.2, step=0.1)
        found[kind] = [run[f"types.{name}"].values[-1] for name in names]
    number, truth = found["plain"]
    assert number != 0
    assert found["turned"] == [-number, 1.0 - truth]


@pytest.mark.parametrize("engine", ENGINES)
def test_negated_aliases_turn_derivatives_too(tmp_path, engine):
    """y' = -u for the alias of u, on a parabola: derivatives of inputs and outputs change their sign."""
    plain = build("ramp", 1, folder=tmp_path)
    turned = build("ramp", 1, folder=tmp_path / "turned", xml=negating("u", "y"))

    def values(path):
        models = {"a": Fmu(path, isolate=False), "b": Fmu(path, isolate=False)}
        source = hk.Function(lambda t: 1.0 + t + t * t, outputs=["y"])
        wires = {"a.u": ("s.y", hk.Polynomial(2)), "b.u": ("a.y", hk.Hermite())}
        level = hk.Composite(hk.Scenario({**models, "s": source}, wires), "100 ms")
        return hk.run(level, stop=1, engine=engine)["b.y"].values

    assert values(plain)[-1] == pytest.approx(1 / 2 + 1 / 6 + 1 / 12, rel=0.1)
    assert np.array_equal(values(turned), values(plain))


def test_a_negated_state_of_model_exchange(tmp_path):
    """T y' = -u - y for the alias of u: it goes to -1."""
    path = build("lag", 1, folder=tmp_path, interfaces=["me"], xml=negating("u"))
    model = Fmu(path, T=0.1, method="rk4", step="10 ms")
    models = {"lag": model, "one": constant(1.0)}
    run = hk.run(hk.Composite(hk.Scenario(models, {"lag.u": "one.y"}), "100 ms"), stop=1)
    assert run["lag.y"].values[-1] == pytest.approx(-(1 - np.exp(-10.0)), abs=1e-6)


# output derivatives beside what is observed


def ring(path, connection, **options):
    models = {"a": Fmu(path, isolate=False, y0=1.0, **options), "b": Fmu(path, isolate=False)}
    wires = {"a.u": ("b.y", hk.Hermite()), "b.u": (connection, hk.Hermite())}
    return hk.Composite(hk.Scenario(models, wires), step=0.05)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("version", [1, 2, 3])
def test_observing_leaves_output_derivatives_as_they_are(tmp_path, version, engine):
    path = build("ramp", version, folder=tmp_path)
    expected = hk.run(ring(path, "a.y"), stop=1, engine=engine)
    run = hk.run(ring(path, "a.y", observe=["der_y"]), stop=1, engine=engine)
    for name in ("a.y", "b.y"):
        assert np.array_equal(run[name].values, expected[name].values)
    assert run["a.der_y"].values[2:] == pytest.approx(run["b.y"].values[2:], abs=0.01), "y' = u, which is b.y"
    assert Fmu(path, observe=["der_y"]).capabilities.slopeless == ("der_y",)


def test_what_is_observed_has_no_derivative_to_follow(tmp_path):
    path = build("ramp", 2, folder=tmp_path)
    with pytest.raises(hk.ScenarioError, match=r"`b\.u` wants slopes, and `a\.der_y` does not give any"):
        hk.run(ring(path, "a.der_y", observe=["der_y"]), stop=1)


# FMI 1 around a cycle


@pytest.mark.parametrize("engine", ENGINES)
def test_an_fmu_that_is_initialised_before_what_drives_it_is_named(tmp_path, engine):
    """x(0) = u of each, around a cycle: b with u = 0.25, which gives a u = 0.5, and b that in return."""
    path = build("initial", 1, folder=tmp_path)

    def notes(a, b):
        models = {"a": Fmu(path, {"u": a}), "b": Fmu(path, {"u": b})}
        gain = hk.StateSpace(D=[[2.0]], inputs=["u"], outputs=["y"])
        wires = {"gain.u": "b.y", "a.u": "gain.y", "b.u": "a.y"}
        level = hk.Composite(hk.Scenario({**models, "gain": gain}, wires), "100 ms")
        return hk.run(level, stop=0.1, engine=engine).info["notes"]

    assert notes(0.0, 0.25) == [
        "`b` is initialised once, before what drives it around a cycle: `u` is 0.25 there, its start value, "
        "and 0.5 afterwards"
    ]
    assert notes(0.0, 0.0) == [], "the start values agree"


# replay where no state is allowed


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("version", [1, 2, 3])
def test_replay_stands_in_for_a_state_that_is_not_allowed(tmp_path, version, engine):
    """The same bits as with a state, for an FMU and a gain that agree in every step."""
    forbidden = {2: {"canGetAndSetFMUstate": None}, 3: {"canGetAndSetFMUState": None}}.get(version, {})
    gain = hk.StateSpace(D=[[-0.5]], inputs=["u"], outputs=["y"])

    def run(model):
        scenario = hk.Scenario({"lag": model, "gain": gain}, {"gain.u": "lag.y", "lag.u": "gain.y"})
        return hk.run(hk.Composite(scenario, "100 ms", "iterate"), stop=1, engine=engine)

    without = build("lag", version, folder=tmp_path, **forbidden)
    with pytest.raises(hk.ScenarioError, match="`lag` cannot roll back"):
        run(Fmu(without, y0=1.0))
    replayed = run(Replay(Fmu(without, y0=1.0)))
    # of y_(k+1) = y_k + h (u - y_k) with u = -0.5 y_(k+1), which iterations agree on
    assert replayed["lag.y"].values == pytest.approx((0.9 / 1.05) ** np.arange(11), rel=1e-6)
    assert any("replaying" in note for note in replayed.info["notes"])
    if version > 1:
        free = run(Fmu(build("lag", version, folder=tmp_path / "free"), y0=1.0))
        assert np.array_equal(replayed["lag.y"].values, free["lag.y"].values)
