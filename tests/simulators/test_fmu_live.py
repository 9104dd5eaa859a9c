"""Co-simulation FMUs at work: which functions are called when, what they are given, and what they answer.

The FMUs are built with a trace, a line for each call, so that the order of the calls can be looked at. Who
reads the reports of sanitizers wants `tests/native/test_fmu_driver.py`.
"""

import itertools
import logging
import re
import subprocess
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pytest

import hocket as hk
from fmus.build import build, versions
from hocket.simulators.fmu.recipe import Fmu
from systems import ENGINES, LAG

VERSIONS = (1, 2, 3)


H = Fraction(1, 10)

# The functions by what they are for, in each version.
PREFIX = {1: "fmi", 2: "fmi2", 3: "fmi3"}
SET = {1: "fmiSetReal", 2: "fmi2SetReal", 3: "fmi3SetFloat64"}
GET = {1: "fmiGetReal", 2: "fmi2GetReal", 3: "fmi3GetFloat64"}
STEP = {1: "fmiDoStep", 2: "fmi2DoStep", 3: "fmi3DoStep"}
INSTANTIATE = {1: "fmiInstantiateSlave", 2: "fmi2Instantiate", 3: "fmi3InstantiateCoSimulation"}
TERMINATE = {1: "fmiTerminateSlave", 2: "fmi2Terminate", 3: "fmi3Terminate"}
FREE = {1: "fmiFreeSlaveInstance", 2: "fmi2FreeInstance", 3: "fmi3FreeInstance"}
EXIT = {1: "fmiInitializeSlave", 2: "fmi2ExitInitializationMode", 3: "fmi3ExitInitializationMode"}
SAVE = {2: "fmi2GetFMUstate", 3: "fmi3GetFMUState"}
RESTORE = {2: "fmi2SetFMUstate", 3: "fmi3SetFMUState"}


@dataclass(frozen=True)
class Call:
    """A line of the trace."""

    instance: str
    function: str
    values: dict = field(default_factory=dict)

    @staticmethod
    def of(line):
        instance, function, *rest = line.split()
        pairs = [text.split("=", 1) for text in rest if "=" in text]
        return Call(instance, function, {k: _value(v) for k, v in pairs})


def _value(text):
    try:
        return float(text)
    except ValueError:
        return text


@pytest.fixture(scope="session")
def fmu(tmp_path_factory):
    """Return a function that builds an FMU with a trace, once, and makes a model of it."""
    folder, built = tmp_path_factory.mktemp("fmus"), {}

    def model(name, version=2, parameters=None, overrides=None, **options):
        key = name, version, repr(overrides)
        if key not in built:
            place = folder / f"{len(built)}-fmi{version}"
            built[key] = build(name, version, folder=place, trace=True, **(overrides or {}))
        return Fmu(built[key], parameters, **options)

    return model


@pytest.fixture
def trace(tmp_path, monkeypatch):
    """Return a function that does something and returns the calls that FMUs got meanwhile."""
    file = tmp_path / "trace.txt"
    monkeypatch.setenv("HOCKET_TEST_TRACE", str(file))

    def calls(do):
        file.write_text("")
        do()
        found = [Call.of(line) for line in file.read_text().splitlines()]
        assert not [call for call in found if call.function == "!"]  # complaints of `strict`
        return found

    return calls


def run(models, connections=(), stop=3 * H, step=H, engine="native", fails=None, begin=None, **how):
    """Run, or expect to fail with these words."""
    composite = hk.Composite(hk.Scenario(models, connections), step, **how)
    if fails is None:
        return hk.run(composite, stop, engine=engine, start=begin)
    with pytest.raises(hk.SimulatorError, match=fails):
        hk.run(composite, stop, engine=engine, start=begin)
    return None


def of(calls, instance):
    return [call for call in calls if call.instance == instance]


def functions(calls):
    return [call.function for call in calls]


def around(calls, function):
    """Return the calls before and after the first call of a function."""
    place = functions(calls).index(function)
    return calls[:place], calls[place + 1 :]


def two_masses(fmu, version, **how):
    models = {name: fmu(name, version, **how) for name in ("first", "second")}
    return models, {"first.x": "second.x", "first.v": "second.v", "second.force": "first.force"}


# the order of the calls


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_life_of_an_fmu(version, engine, fmu, trace):
    model = fmu("lag", version, {"T": 2.0, "u": 3.0}, tolerance=1e-5)
    calls = trace(lambda: run({"lag": model}, begin=1, stop=1 + 3 * H, engine=engine))
    before, after = around(calls, EXIT[version])

    # start values once, before anything is initialised; in FMI 2 after the set-up, where some FMUs reset them
    begin = [INSTANTIATE[version], *(["fmi2SetupExperiment"] if version == 2 else []), SET[version]]
    assert functions(before)[: len(begin)] == begin
    assert before[len(begin) - 1].values == {"1": 3.0, "3": 2.0}
    told = {"start": 1.0, "stop": 1.3}
    if version == 1:
        assert functions(before)[2:] == [SET[1]]
        assert calls[len(before)].values == told
    else:
        assert functions(before)[len(begin)] == f"{PREFIX[version]}EnterInitializationMode"
        assert before[1 if version == 2 else 2].values == {"tolerance": 1e-5, **told}
        # in initialisation mode: inputs, outputs, perhaps several times
        pairs = functions(before)[len(begin) + 1 :]
        assert pairs == [SET[version], GET[version]] * (len(pairs) // 2)
        assert pairs
    # what it shows after initialisation may differ; in FMI 1 nothing is shown before
    gets = list(itertools.takewhile(lambda call: call.function == GET[version], after))
    assert gets or version > 1
    after = after[len(gets) :]

    # exactly one of each per step, and nothing else
    assert functions(after) == [SET[version], STEP[version], GET[version]] * 3 + [
        TERMINATE[version],
        FREE[version],
    ]
    steps = [call.values for call in after if call.function == STEP[version]]
    assert [step["t"] for step in steps] == [1.0, 1.1, 1.2]
    assert [step["h"] for step in steps] == [0.1] * 3
    assert all(call.values == {"1": 3.0} for call in after if call.function == SET[version])


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_not_asked_for_is_not_set(version, fmu, trace):
    calls = trace(lambda: run({"second": fmu("second", version)}, stop=H))
    before, _ = around(calls, EXIT[version])
    assert [call.values for call in before if call.function == SET[version]] == [{"1": 0.0}] * (
        functions(before).count(SET[version])
    )
    if version > 1:
        name = {2: "fmi2SetupExperiment", 3: "fmi3EnterInitializationMode"}[version]
        assert next(call for call in calls if call.function == name).values["tolerance"] == 0.0  # undefined


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("version", VERSIONS)
def test_between_steps_nothing_is_set_and_got_without_feedthrough(version, engine, fmu, trace):
    models, connections = two_masses(fmu, version)
    calls = trace(lambda: run(models, connections, stop=5 * H, engine=engine))
    _, after = around(of(calls, "second"), EXIT[version])
    while after[0].function == GET[version]:  # FMI 1 gets its first outputs now
        after = after[1:]
    assert functions(after)[:-2] == [SET[version], STEP[version], GET[version]] * 5
    # `first` reacts at once: its outputs are evaluated again when the inputs of the new time are known
    _, after = around(of(calls, "first"), EXIT[version])
    while after[0].function == GET[version]:
        after = after[1:]
    again = [SET[version], STEP[version], GET[version], SET[version], GET[version]]
    assert functions(after)[:-2] == again * 5


@pytest.mark.parametrize("version", VERSIONS)
def test_without_reevaluation_outputs_are_got_once(version, fmu, trace):
    models, connections = two_masses(fmu, version, reevaluate=False)
    for engine in ENGINES:
        calls = of(trace(lambda e=engine: run(models, connections, engine=e)), "first")
        _, after = around(calls, EXIT[version])
        found = functions(after)
        for k, name in enumerate(found[1:], 1):
            assert (found[k - 1], name) != (SET[version], GET[version])


@pytest.mark.parametrize("version", VERSIONS)
def test_initialisation_follows_feedthrough(version, fmu, trace):
    """The start runs down the chain lag -> gain -> second, whatever the order they are written in."""
    models = {"second": fmu("second", version), "gain": fmu("gain", version, k=5.0)}
    models["lag"] = fmu("lag", version, y0=3.0)
    connections = {"gain.u": "lag.y", "second.force": "gain.y"}
    calls = trace(lambda: run(models, connections, stop=H))
    before, _ = around(calls, STEP[version])

    def places(instance, function):
        return [k for k, c in enumerate(before) if (c.instance, c.function) == (instance, function)]

    # `gain` gets its inputs after `lag` has told its outputs, never anything else
    start = 1  # its parameter comes first
    assert [before[k].values for k in places("gain", SET[version])][start:] == [{"1": 3.0}] * (
        len(places("gain", SET[version])) - start
    )
    assert places("lag", GET[version])[0] < places("gain", SET[version])[start]
    assert before[places("gain", GET[version])[-1]].values == {"3": 15.0}
    if version > 1:  # FMI 1 initialises at the first look, with the inputs known then
        assert before[places("second", SET[version])[-1]].values == {"1": 15.0}


@pytest.mark.parametrize("version", [2, 3])
def test_all_have_left_initialisation_with_their_final_inputs(version, fmu, trace):
    models, connections = two_masses(fmu, version)
    calls = trace(lambda: run(models, connections, stop=H))
    for instance, values in (("first", {"1": 0.2, "2": 0.1}), ("second", {"1": -0.3 + 0.2})):
        before, _ = around(of(calls, instance), EXIT[version])
        last = [call for call in before if call.function == SET[version]][-1]
        assert last.values == pytest.approx(values)


HOW = {
    "jacobi": {},
    "gauss-seidel": {"orchestrator": "gauss-seidel"},
    "stale": {"orchestrator": hk.Jacobi(outputs="stale")},
    "linear": {"extrapolation": "linear"},
    "quadratic, cold": {"extrapolation": hk.Polynomial(2), "start": "cold"},
}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("version", VERSIONS)
def test_both_engines_call_alike(version, how, fmu, trace):
    models, connections = two_masses(fmu, version)
    models |= {"ramp": fmu("ramp", version), "gain": fmu("gain", version)}
    connections |= {"gain.u": "second.x", "ramp.u": "gain.y"}
    native, plain = (
        trace(lambda e=engine: run(models, connections, stop=5 * H, engine=e, **HOW[how]))
        for engine in ENGINES
    )
    for name in models:
        assert of(native, name) == of(plain, name)


@pytest.mark.parametrize("name", ["ball", "types", "arrays", "vanderpol", "chatty", "bare", "lag"])
def test_both_engines_call_each_kind_alike(name, fmu, trace):
    for version in versions(name):
        model = fmu(name, version)
        native, plain = (trace(lambda m=model, e=e: run({"it": m}, stop=10 * H, engine=e)) for e in ENGINES)
        assert native == plain
        assert functions(native).count(STEP[version]) >= 10


def test_fmi_3_goes_through_event_mode(fmu, trace):
    # a ball dropped from 1 m is down after 0.4515 s
    calls = trace(lambda: run({"ball": fmu("ball", 3, early_return=False)}, stop=6 * H))
    assert calls[0].values == {"events": 1.0, "early": 1.0, "intermediate": 0.0}
    events = ["fmi3EnterEventMode", "fmi3UpdateDiscreteStates", "fmi3EnterStepMode"]
    _, after = around(calls, EXIT[3])
    assert functions(after)[:2] == events[1:]  # initialisation ends in event mode
    found = functions(after)[2:-2]
    gets = found[:2]  # reals, then integers
    # outputs are read once more where initialisation was left: some FMUs compute them there
    assert found == gets + [STEP[3], *gets] * 4 + [STEP[3], *events, STEP[3], *gets] + [STEP[3], *gets]
    steps = [call.values for call in after if call.function == STEP[3]]
    assert steps[5]["t"] == pytest.approx(np.sqrt(2.0 / 9.81), abs=1e-15)
    assert steps[5]["t"] + steps[5]["h"] == pytest.approx(0.5, abs=1e-15)


@pytest.mark.parametrize("version", [2, 3])
def test_a_step_is_as_long_as_it_is_said_to_be(version, fmu, trace):
    calls = trace(lambda: run({"lag": fmu("lag", version)}, stop=100 * H))
    assert {call.values["h"] for call in calls if call.function == STEP[version]} == {0.1}


STRICT = {
    "alone": ({"a": 1.0}, {}, {}),
    "with start values": ({"a": {"k": 2.0, "y0": 1.0, "u": 3.0, "count": 4}}, {}, {}),
    "in a loop": ({"a": 1.0, "b": -1.0}, {"a.u": "b.y", "b.u": "a.y"}, {}),
    "in turn": ({"a": 1.0, "b": -1.0}, {"a.u": "b.y", "b.u": "a.y"}, {"orchestrator": "gauss-seidel"}),
    "with a past": ({"a": 1.0, "b": -1.0}, {"a.u": "b.y", "b.u": "a.y"}, {"extrapolation": "cubic"}),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", STRICT)
def test_a_strict_fmu_has_nothing_to_complain_of(case, engine, fmu, trace, caplog):
    given, connections, how = STRICT[case]
    models = {
        name: fmu("strict", 2, parameters if isinstance(parameters, dict) else {"k": parameters, "y0": 1.0})
        for name, parameters in given.items()
    }
    with caplog.at_level(logging.INFO, "hocket.fmu"):
        assert trace(lambda: run(models, connections, stop=20 * H, engine=engine, **how))
    assert not caplog.records


def test_a_strict_fmu_inside_a_level_with_another_step(fmu, trace):
    inner = hk.Scenario({"a": fmu("strict", 2)}, {"a.u": "u", "y": "a.y"}, ["u"], ["y"])
    outer = hk.Scenario(
        {"level": hk.Composite(inner, H / 4), "b": fmu("strict", 2)}, {"level.u": "b.y", "b.u": "level.y"}
    )
    calls = trace(lambda: hk.run(hk.Composite(outer, H), stop=3 * H))
    assert functions(calls).count("fmi2DoStep") == 3 + 12


def test_a_strict_fmu_in_a_run_of_no_step(fmu, trace):
    calls = trace(lambda: run({"a": fmu("strict", 2)}, stop=0))
    assert functions(calls)[-1] == FREE[2]


def test_what_fmi_does_not_let_be_set_is_refused(fmu):
    for name in ("pi", "der_y", "y"):
        with pytest.raises(hk.ScenarioError, match=f"`{name}` cannot be set"):
            fmu("strict", 2, {name: 1.0})


# the end, when something fails


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["fails", "fatal"])
def test_after_a_step_that_failed(name, version, engine, fmu, trace):
    models = {"bad": fmu(name, version, at=0.2), "good": fmu("lag", version)}
    status = {"fails": "Error", "fatal": "Fatal"}[name]
    said = f"{STEP[version]} returned {status}: step 3 at 0.2 s: the valve is "
    calls = trace(lambda: run(models, stop=10 * H, engine=engine, fails=said))
    bad = functions(of(calls, "bad"))
    last = len(bad) - bad[::-1].index(STEP[version])
    # never terminated; after an error freed, after a fatal one not even that
    assert bad[last:] == ([FREE[version]] if name == "fails" else [])
    assert bad.count(STEP[version]) == 3
    assert functions(of(calls, "good"))[-2:] == [TERMINATE[version], FREE[version]]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_message_says_who_and_when(version, fmu):
    with pytest.raises(hk.SimulatorError) as caught:
        hk.run(hk.Composite(hk.Scenario({"valve": fmu("fails", version)}), H), stop=1)
    where = "`valve`, step() at t = 0.5 s"
    assert caught.value.faults[0].where == where
    assert (
        caught.value.faults[0].what == f"{STEP[version]} returned Error: step 6 at 0.5 s: the valve is stuck"
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_step_that_ends_early_is_said_to(version, engine, fmu, trace):
    models = {"it": fmu("discards", version, at=0.25, early_return=False)}
    reached = "0.2" if version == 3 else "0.25"  # FMI 3: a step that may not end early has not begun
    calls = trace(lambda: run(models, stop=1, engine=engine, fails=rf"{reached} s"))
    assert functions(calls)[-2:] == [TERMINATE[version], FREE[version]]
    assert functions(calls).count(STEP[version]) == 3


@pytest.mark.parametrize("version", VERSIONS)
def test_after_an_fmu_that_cannot_be_instantiated(version, fmu, trace):
    models = {"before": fmu("lag", version), "it": fmu("refuses", version), "later": fmu("gain", version)}
    said = re.escape("it cannot be instantiated: no licence for it")
    calls = trace(lambda: run(models, fails=said))
    assert not of(calls, "it")  # there is no instance to call
    assert functions(of(calls, "-")) == [INSTANTIATE[version]]
    assert not of(calls, "later")
    assert functions(of(calls, "before"))[-1] == FREE[version]


@pytest.mark.parametrize("version", VERSIONS)
def test_nobody_is_terminated_who_was_not_initialised(version, fmu, trace):
    models = {"before": fmu("lag", version), "it": fmu("refuses", version)}
    calls = trace(lambda: run(models, fails="cannot be instantiated"))
    assert functions(of(calls, "before"))[-1] == FREE[version]
    assert TERMINATE[version] not in functions(calls)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("version", VERSIONS)
def test_after_an_initialisation_that_failed(version, engine, fmu, trace):
    models = {"good": fmu("lag", version), "bad": fmu("badinit", version)}
    said = f"{EXIT[version]} returned Error: no steady state found after 50 iterations: residual 0.25"
    calls = trace(lambda: run(models, fails=said, engine=engine))
    assert functions(of(calls, "bad"))[-2:] == [EXIT[version], FREE[version]]
    assert functions(of(calls, "good"))[-1] == FREE[version]


@pytest.mark.parametrize("version", [2, 3])
def test_nobody_steps_before_all_are_initialised(version, fmu, trace):
    models = {"good": fmu("lag", version), "bad": fmu("badinit", version)}
    calls = trace(lambda: run(models, fails="no steady state"))
    assert STEP[version] not in functions(calls)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_instance_is_made_anew_by_another_start(version, fmu, trace):
    def twice():
        simulator = fmu("lag", version, u=2.0).open()
        simulator.start(0.0)
        first = simulator.output(0.0, np.array([[2.0]]))
        simulator.step(0.0, 0.1, np.array([[2.0]]))
        assert simulator.output(0.1, np.array([[2.0]])) != first
        simulator.start(0.0)
        assert simulator.output(0.0, np.array([[2.0]])) == first
        simulator.close()
        simulator.close()

    found = functions(trace(twice))
    assert found.count(INSTANTIATE[version]) == found.count(FREE[version]) == 2


@pytest.mark.parametrize("version", VERSIONS)
def test_a_simulator_that_is_let_go_is_freed(version, fmu, trace):
    def forgotten():
        simulator = fmu("lag", version).open()
        simulator.start(0.0)
        simulator.step(0.0, 0.1, np.array([[2.0]]))
        del simulator

    assert functions(trace(forgotten))[-2:] == [TERMINATE[version], FREE[version]]


# inputs that move during a step


def after_the_start(calls, version):
    """Return the calls between the start, whose steps are rewound, and the end."""
    last = len(calls) - functions(calls)[::-1].index(RESTORE[version])
    return [call for call in calls[last:-2] if "FreeFMU" not in call.function]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("version", VERSIONS)
def test_held_inputs_come_without_derivatives(version, engine, fmu, trace):
    models = {"source": hk.Function(lambda t: 1.0 + 2.0 * t, ["u"]), "ramp": fmu("ramp", version)}
    calls = trace(lambda: run(models, {"ramp.u": "source.u"}, stop=5 * H, engine=engine))
    assert not [call for call in calls if "Derivatives" in call.function]
    found = functions(calls)
    assert found.count(SET[version]) <= found.count(STEP[version]) + 4  # none inside a step
    # the sum of the values at the left ends
    y = run(models, {"ramp.u": "source.u"}, stop=5 * H, engine=engine)["ramp.y"]
    assert y.values[-1] == pytest.approx(0.1 * sum(1.0 + 0.2 * k for k in range(5)), abs=1e-14)


CURVES = {
    "linear": ("linear", lambda t: 1.0 + 2.0 * t, lambda t: t + t**2),
    "quadratic": (hk.Polynomial(2), lambda t: 1.0 - 2.0 * t + 3.0 * t**2, lambda t: t - t**2 + t**3),
    "cubic": ("cubic", lambda t: 4.0 * t**3 - 1.0, lambda t: t**4 - t),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("version", [2, 3])
def test_polynomials_are_integrated_exactly(version, curve, engine, fmu):
    extrapolation, u, integral = CURVES[curve]
    models = {"source": hk.Function(u, ["u"]), "ramp": fmu("ramp", version)}
    found = run(models, {"ramp.u": "source.u"}, stop=2, engine=engine, extrapolation=extrapolation)["ramp.y"]
    assert np.abs(found.values - integral(found.t)).max() < 1e-12


def test_fmi_1_takes_derivatives_too(fmu, trace):
    # it cannot roll back, so that there is no past: interpolated from the first step on
    models = {"source": hk.Function(lambda t: 1.0 + 2.0 * t, ["u"]), "ramp": fmu("ramp", 1)}
    how = {"orchestrator": hk.GaussSeidel(["source", "ramp"]), "extrapolation": "linear"}
    found = run(models, {"ramp.u": "source.u"}, stop=2, **how)["ramp.y"]
    assert np.abs(found.values - (found.t + found.t**2)).max() < 1e-12
    calls = trace(lambda: run(models, {"ramp.u": "source.u"}, **how))
    slopes = [call.values for call in calls if call.function == "fmiSetRealInputDerivatives"]
    assert slopes == [pytest.approx({"1": 2.0})] * 3


@pytest.mark.parametrize("version", VERSIONS)
def test_a_chain_of_integrators(version, fmu):
    models = {
        "a": fmu("ramp", version, u=2.0),
        "b": fmu("ramp", version),
        "c": fmu("ramp", version, y0=1.0),
    }
    how = {"orchestrator": hk.GaussSeidel(["a", "b", "c"]), "extrapolation": "linear"}
    found = run(models, {"b.u": "a.y", "c.u": "b.y"}, stop=2, **how)
    t = found["b.y"].t
    assert np.abs(found["a.y"].values - 2.0 * t).max() < 1e-13
    assert np.abs(found["b.y"].values - t**2).max() < 1e-13
    # a line through samples of t^2 is h^2/6 too much in the mean, and that for every step
    trapezoids = 1.0 + t**3 / 3.0 + float(H) ** 2 * t / 6.0
    assert np.abs(found["c.y"].values - trapezoids).max() < 1e-12


@pytest.mark.parametrize("engine", ENGINES)
def test_the_derivatives_that_fmi_2_is_given(engine, fmu, trace):
    models = {"source": hk.Function(lambda t: 1.0 - 2.0 * t + 3.0 * t**2, ["u"]), "ramp": fmu("ramp", 2)}
    calls = trace(
        lambda: run(models, {"ramp.u": "source.u"}, stop=3 * H, engine=engine, extrapolation=hk.Polynomial(2))
    )
    found = after_the_start(calls, 2)
    assert functions(found) == [SET[2], "fmi2SetRealInputDerivatives", STEP[2], GET[2]] * 3
    for k, call in enumerate(call for call in found if call.function == SET[2]):
        t = k * 0.1
        assert call.values == pytest.approx({"1": 1.0 - 2.0 * t + 3.0 * t**2})
    # the reference comes twice in one call, for the first and the second derivative
    assert "fmi2SetRealInputDerivatives" in functions(found)


def test_the_derivatives_are_in_physical_units(fmu, tmp_path, monkeypatch):
    """The second derivative of 3 t^2 is 6, not 3."""
    file = tmp_path / "trace"
    monkeypatch.setenv("HOCKET_TEST_TRACE", str(file))
    models = {"source": hk.Function(lambda t: 3.0 * t**2, ["u"]), "ramp": fmu("ramp", 2)}
    run(models, {"ramp.u": "source.u"}, extrapolation=hk.Polynomial(2))
    line = [line for line in file.read_text().splitlines() if "SetRealInputDerivatives" in line][-1]
    first, second = (float(text.split("=")[1]) for text in line.split()[2:])
    assert (first, second) == pytest.approx((6.0 * 0.2, 6.0))


@pytest.mark.parametrize("engine", ENGINES)
def test_fmi_3_asks_for_its_inputs_inside_the_step(engine, fmu, trace):
    models = {"source": hk.Function(lambda t: 1.0 + 2.0 * t, ["u"]), "ramp": fmu("ramp", 3)}
    calls = trace(lambda: run(models, {"ramp.u": "source.u"}, engine=engine, extrapolation="linear"))
    assert calls[0].values["intermediate"] == 1.0
    found = after_the_start(calls, 3)
    assert functions(found) == [SET[3], STEP[3], SET[3], SET[3], SET[3], GET[3]] * 3
    # Gauss' two points, then the end of the step
    offsets = (0.05 - 0.1 * np.sqrt(3.0) / 6.0, 0.05 + 0.1 * np.sqrt(3.0) / 6.0, 0.1)
    for k in range(3):
        seen = [call.values["1"] for call in found[6 * k + 2 : 6 * k + 5]]
        assert seen == pytest.approx([1.0 + 2.0 * (0.1 * k + s) for s in offsets], abs=1e-14)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_slopes_of_outputs(version, fmu):
    model = fmu("ramp", version)
    assert model.capabilities.slopes
    simulator = model.open()
    simulator.start(0.0)
    simulator.step(0.0, 0.1, np.array([[3.0]]))
    assert simulator.output(0.1, np.array([[3.0]])) == pytest.approx([0.3])
    assert simulator.slope(0.1, np.array([[3.0]])) == pytest.approx([3.0])
    simulator.close()


# values


WHOLE = {
    "int8": (-101, -100), "uint8": (200, 201), "int16": (-30000, -29999), "uint16": (65000, 65001),
    "uint32": (4_000_000_000, 4_000_000_001), "int64": (-(2**53), -(2**53) + 1), "uint64": (2**53 - 1, 2**53),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("version", VERSIONS)
def test_values_of_every_type_travel(version, engine, fmu):
    given = {"u_real": 1.5, "u_int": -7, "u_bool": True, "u_enum": "high"}
    expected = {"y_real": 3.0, "y_int": -6.0, "y_bool": 0.0, "y_enum": 3.0}
    if version == 3:
        given |= {f"u_{kind}": u for kind, (u, _) in WHOLE.items()} | {"u_float32": 0.1}
        expected |= {f"y_{kind}": float(y) for kind, (_, y) in WHOLE.items()}
        expected["y_float32"] = float(np.float32(0.1) * np.float32(0.5))
    found = run({"it": fmu("types", version, given)}, stop=H, engine=engine)
    assert {name: found.final(f"it.{name}") for name in expected} == expected


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("version", VERSIONS)
def test_values_of_every_type_pass_from_fmu_to_fmu(version, engine, fmu):
    one, other = fmu("types", version, {"u_real": 1.0, "p_int": 3}), fmu("types", version, p_bool=False)
    names = [port.name.removeprefix("u_") for port in one.inputs]
    connections = {f"b.u_{name}": f"a.y_{name}" for name in names}
    order = hk.GaussSeidel(["a", "b"])
    found = run({"a": one, "b": other}, connections, stop=2 * H, engine=engine, orchestrator=order)
    assert found.final("b.y_real") == 4.0
    assert found.final("b.y_int") == 4.0
    assert found.final("b.y_bool") == 1.0
    assert found.final("b.y_enum") == 2.0
    if version == 3:
        assert [found.final(f"b.y_{kind}") for kind in WHOLE] == [2.0] * len(WHOLE)


@pytest.mark.parametrize("version", VERSIONS)
def test_start_values_that_do_not_fit_are_refused(version, fmu):
    for name, value, words in (
        ("u_int", 2.5, "a whole number"),
        ("u_int", 2**31, "-2147483648 to 2147483647"),
        ("u_bool", 2, "true or false"),
        ("u_enum", "medium", "has no item `medium`"),
        ("p_real", "two", "a number"),
        ("p_string", 3, "a text"),
    ):
        with pytest.raises(hk.ScenarioError, match=words):
            fmu("types", version, {name: value})


@pytest.mark.parametrize("version", VERSIONS)
def test_a_real_cannot_drive_an_integer(version, fmu):
    models = {"it": fmu("types", version), "source": fmu("lag", version)}
    for name, kind in (("u_int", "an integer"), ("u_bool", "a boolean"), ("u_enum", "an enumeration")):
        with pytest.raises(hk.ScenarioError) as caught:
            run(models, {f"it.{name}": "source.y"})
        fault = caught.value.faults[0]
        assert fault.what == f"`source.y` is a real, and {kind} cannot hold all its values"
        assert fault.where == f"connections.it.{name}"
    run(models, {"source.u": "it.y_int"})  # the other way nothing is lost


class Counter:
    """Says that it counts, but puts out halves."""

    outputs = (hk.Port("n", type="integer"),)

    def start(self, t):
        self.n = 0.0

    def output(self, t):
        return self.n

    def step(self, t, h, u):
        self.n += 0.5
        return t + h


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_number_that_does_not_fit_is_found_in_the_run(version, engine, fmu):
    models = {"count": hk.Python(Counter), "it": fmu("types", version)}
    run(models, {"it.u_int": "count.n"}, engine=engine, fails=r"0\.5 does not fit the type of input")


def test_whole_numbers_that_floats_cannot_hold_are_not_rounded(fmu):
    run({"it": fmu("types", 3, p_int64=2**60)}, fails=r"1152921504606846976, beyond 2\^53")
    run({"it": fmu("types", 3, p_uint64=2**64 - 1)}, fails=r"18446744073709551615, beyond 2\^53")
    with pytest.raises(hk.ScenarioError, match=r"`u_int64` is 9007199254740993, beyond 2\^53: inputs travel"):
        fmu("types", 3, u_int64=2**53 + 1)


@pytest.mark.parametrize("version", VERSIONS)
def test_strings_as_parameters_and_ports(version, fmu):
    simulator = fmu("types", version, p_string="grüß ", u_string="Gott").open()
    model = simulator.model
    assert model.texts[0][0] == "u_string"
    simulator.start(0.0)
    u = np.array([[port.start for port in model.inputs]])
    simulator.step(0.0, 0.1, u)
    assert simulator.text(0).decode() == "grüß Gott"
    simulator.set_text(0, b"dich")
    simulator.step(0.1, 0.1, u)
    assert simulator.text(0).decode() == "grüß dich"
    simulator.close()


def test_binaries_as_parameters_and_ports(fmu):
    model = fmu("types", 3, p_binary=b"\x00\x01\xff")
    simulator = model.open()
    simulator.start(0.0)
    u = np.array([[port.start for port in model.inputs]])
    number = model.texts[0].index("u_binary")
    simulator.set_text(number, b"\x00\xfe")
    simulator.step(0.0, 0.1, u)
    assert simulator.text(model.texts[1].index("y_binary")) == b"\x00\x01\xff\x00\xfe"
    simulator.close()


def test_a_text_that_the_fmu_refuses(fmu):
    simulator = fmu("types", 2, p_string="x" * 1000).open()
    with pytest.raises(
        hk.SimulatorError, match="fmi2SetString returned Error: fmi2SetString: no such variable"
    ):
        simulator.start(0.0)
    simulator.close()


REFUSING = r"""
static int calls;
void *fmi2Instantiate(const char *n, int k, const char *g, const char *r, const void *c, int v, int l)
    { (void)n; (void)k; (void)g; (void)r; (void)c; (void)v; (void)l; calls = 0; return &calls; }
void fmi2FreeInstance(void *m) { (void)m; }
#define DO(name) int name(void *m) { (void)m; return 0; }
DO(fmi2SetupExperiment) DO(fmi2EnterInitializationMode) DO(fmi2ExitInitializationMode) DO(fmi2Terminate)
DO(fmi2DoStep) DO(fmi2SetInteger) DO(fmi2SetBoolean) DO(fmi2SetString)
static int refuses(int own) { return own && ++calls > 20 ? 3 : 0; }
int fmi2SetReal(void *m, const unsigned *r, unsigned long n, const double *v)
    { (void)m; (void)r; (void)n; (void)v; return refuses(SETTING); }
int fmi2GetReal(void *m, const unsigned *r, unsigned long n, double *v)
    { (void)m; (void)r; while (n--) v[n] = 1.0; return refuses(!SETTING); }
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("setting", "name"), [(1, "fmi2SetReal"), (0, "fmi2GetReal")])
def test_the_function_that_failed_is_named_also_amid_a_run(engine, setting, name, tmp_path):
    """Where steps are quick, three functions are called in a row without looking at anything else."""
    (tmp_path / "odd.c").write_text(REFUSING)
    library = tmp_path / "odd.so"
    words = ["gcc", "-shared", "-fPIC", f"-DSETTING={setting}", tmp_path / "odd.c", "-o", library]
    subprocess.run(words, check=True)
    model = hk.Fmu(build("lag", 2, folder=tmp_path, binary=library.read_bytes()))
    with pytest.raises(hk.SimulatorError) as caught:
        run({"it": model, "lag": LAG}, {"it.u": "lag.y", "lag.u": "it.y"}, stop=1000 * H, engine=engine)
    assert caught.value.faults[0].what == f"{name} returned Error"


@pytest.mark.parametrize("engine", ENGINES)
def test_arrays(engine, fmu, trace):
    A = [[1.0, 2.0, 0.0, 0.0], [0.0, 1.0, 0.0, 3.0], [0.0, 0.0, 1.0, 0.0], [4.0, 0.0, 0.0, 1.0]]
    u = [1.0, 10.0, 100.0, 1000.0]
    model = fmu("arrays", 3, n=4, A=A, u=u)
    assert [port.name for port in model.inputs] == [f"u[{k}]" for k in range(1, 5)]
    models = {"it": model, "source": hk.Function(lambda t: 1000.0 + t, ["u"])}
    found = run(models, {"it.u[4]": "source.u"}, stop=H, engine=engine)
    u[3] += 0.1
    assert [found.final(f"it.y[{k}]") for k in range(1, 5)] == pytest.approx(np.array(A) @ u)
    calls = functions(trace(lambda: run({"it": model}, stop=H, engine=engine)))
    assert calls[1:5] == [
        "fmi3EnterConfigurationMode", "fmi3SetUInt64", "fmi3ExitConfigurationMode", "fmi3SetFloat64"
    ]  # fmt: skip


def test_one_element_of_an_array(fmu):
    found = run({"it": fmu("arrays", 3, {"A[1,2]": 5.0, "u[2]": 3.0})}, stop=H)
    assert [found.final(f"it.y[{k}]") for k in (1, 2, 3)] == [15.0, 6.0, 0.0]


# what an FMU lacks or says wrongly


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("version", VERSIONS)
def test_functions_that_are_not_needed_may_be_missing(version, engine, fmu):
    model = fmu("bare", version)
    assert model.interface_used.can_save == (version > 1)
    assert not model.capabilities.rollback
    found = run({"it": model}, stop=1, engine=engine, extrapolation="linear")
    assert found.final("it.y") == pytest.approx(1.0)
    if version > 1:
        simulator = model.open()
        simulator.start(0.0)
        with pytest.raises(hk.SimulatorError, match="it cannot save its state"):
            simulator.save()
        simulator.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_function_that_is_needed_may_not(version, fmu):
    name = f"gutless_{STEP[1]}" if version == 1 else STEP[version]
    with pytest.raises(hk.SimulatorError, match=rf"cannot be loaded.*has no function {name}"):
        run({"it": fmu("gutless", version)})


@pytest.mark.parametrize("version", [2, 3])
def test_saving_and_restoring(version, fmu):
    model = fmu("lag", version)
    assert model.capabilities.rollback
    simulator = model.open()
    simulator.start(0.0)
    u = np.array([[1.0]])
    states, outputs = [], []
    for k in range(5):
        outputs.append(simulator.output(0.1 * k, u)[0])
        states.append(simulator.save())
        simulator.step(0.1 * k, 0.1, u)
    for k in (4, 0, 3, 3, 1):
        simulator.restore(states[k])
        assert simulator.output(0.1 * k, u)[0] == outputs[k]
        simulator.step(0.1 * k, 0.1, u)
    simulator.close()


@pytest.mark.parametrize("version", [2, 3])
def test_an_fmu_that_will_be_rewound_is_not_told_otherwise(version, fmu, trace):
    """noSetFMUStatePriorToCurrentPoint: a promise never to go back before this step."""

    def back_and_forth():
        simulator = fmu("lag", version).open()
        simulator.start(0.0)
        u = np.array([[1.0]])
        saved = simulator.save()
        simulator.step(0.0, 0.1, u)
        simulator.step(0.1, 0.1, u)
        simulator.restore(saved)
        simulator.close()

    steps = [call for call in trace(back_and_forth) if call.function == STEP[version]]
    assert steps[1].values["final"] == 0.0


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("version", [2, 3])
def test_a_state_that_was_not_all_is_found_out_in_the_first_rewind(version, engine, fmu):
    words = r"can save and restore its state, but the same step from t = 0 s ended at 0 before and at 0\.\d"
    models = {"it": fmu("liar", version), "lag": fmu("lag", version)}
    run(models, {"lag.u": "it.y"}, engine=engine, extrapolation="linear", fails=words)
    # nobody rewinds: nothing is wrong
    run(models, {"lag.u": "it.y"}, engine=engine)


@pytest.mark.parametrize("version", [2, 3])
def test_who_cannot_go_back_is_named(version, fmu):
    scenario = hk.Scenario({"it": fmu("liar", version), "lag": fmu("lag", version)}, {"lag.u": "it.y"})
    with pytest.raises(hk.SimulatorError) as caught:
        hk.run(hk.Composite(scenario, H, extrapolation="linear"), stop=1)
    assert "`it`" in caught.value.faults[0].where


@pytest.mark.parametrize("version", [2, 3])
def test_a_simulator_that_lies_is_found_out(version, fmu):
    simulator = fmu("liar", version).open()
    simulator.start(0.0)
    u = np.array([[1.0]])
    simulator.step(0.0, 0.1, u)
    saved = simulator.save()
    simulator.step(0.1, 0.1, u)
    with pytest.raises(hk.SimulatorError, match="output number 1"):
        simulator.restore(saved)
    simulator.close()


@pytest.mark.parametrize("version", [2, 3])
def test_a_simulator_that_lies_is_found_out_whichever_state_it_goes_back_to(version, fmu):
    simulator = fmu("liar", version).open()
    simulator.start(0.0)
    u = np.array([[1.0]])
    states = []
    for k in range(3):
        states.append(simulator.save())
        simulator.step(0.1 * k, 0.1, u)
    with pytest.raises(hk.SimulatorError, match=r"the same step from t = 0\.2 s"):
        simulator.restore(states[2])
    simulator.close()


@pytest.mark.parametrize("version", [2, 3])
def test_a_state_of_an_earlier_start_is_refused(version, fmu):
    simulator = fmu("lag", version).open()
    simulator.start(0.0)
    old = simulator.save()
    simulator.start(0.0)
    with pytest.raises(hk.SimulatorError):
        simulator.restore(old)
    # a new state may lie where the old one was: it is another all the same
    u = np.array([[1.0]])
    new = simulator.save()
    with pytest.raises(hk.SimulatorError):
        simulator.restore(old)
    del old
    simulator.step(0.0, 0.1, u)
    other = simulator.save()
    simulator.restore(new)
    assert simulator.output(0.0, u) == [0.0]
    del other
    simulator.close()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("version", VERSIONS)
def test_an_output_that_is_no_number(version, engine, fmu, tmp_path):
    composite = hk.Composite(hk.Scenario({"it": fmu("nan", version)}), H)
    with pytest.raises(hk.SimulatorError, match=r"`it\.y`.*nan") as caught:
        hk.run(composite, stop=1, engine=engine, folder=tmp_path / "run")
    assert "t = 0.5 s" in str(caught.value)
    kept = hk.open_run(tmp_path / "run")
    assert kept.status == "failed"
    assert kept["it.y"].values == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4])


# what they say


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("version", VERSIONS)
def test_messages_arrive_with_their_arguments_filled_in(version, engine, fmu, caplog):
    with caplog.at_level(logging.INFO, "hocket.fmu"):
        run({"it": fmu("chatty", version, u=0.25)}, stop=3 * H, engine=engine)
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 3
    assert {record.name for record in caplog.records} == {"hocket.fmu"}
    texts = [record.getMessage() for record in caplog.records]
    for number, (text, t) in enumerate(zip(texts, ("0", "0.1", "0.2"), strict=True), 1):
        assert re.fullmatch(rf"it: step {number} at {t} s: u = 0\.250, all is well", text)
    assert caplog.records[0].category == "logStatusWarning"


@pytest.mark.parametrize("version", VERSIONS)
def test_what_it_said_before_it_failed_arrives_too(version, fmu, caplog):
    run({"it": fmu("fails", version)}, stop=1, fails="the valve is stuck")
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert record.getMessage().endswith(": step 6 at 0.5 s: the valve is stuck")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_fatal_word_is_critical(version, fmu, caplog):
    run({"it": fmu("fatal", version)}, stop=1, fails="the valve is gone")
    assert [record.levelname for record in caplog.records] == ["CRITICAL"]


# numbers


def states(fmu, version, **how):
    models, connections = two_masses(fmu, version)
    found = run(models, connections, stop=10, **how)
    return {name: found[name].values for name in ("first.force", "second.x", "second.v")}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("how", [{}, {"orchestrator": "gauss-seidel"}], ids=["jacobi", "gauss-seidel"])
def test_all_versions_give_the_same_bits(how, engine, fmu):
    one, two, three = (states(fmu, version, engine=engine, **how) for version in VERSIONS)
    for name in one:
        assert np.array_equal(one[name], two[name])
        assert np.array_equal(two[name], three[name])


@pytest.mark.parametrize("how", [{}, {"orchestrator": "gauss-seidel"}], ids=["jacobi", "gauss-seidel"])
@pytest.mark.parametrize("version", VERSIONS)
def test_fmus_equal_the_matrices_of_the_example(version, how, fmu):
    models = {
        "first": hk.StateSpace(
            [[0, 1], [-0.2, -0.3]], [[0, 0], [0.1, 0.2]], [[1, 2]], [[-1, -2]], x0=[0.1, 0.1],
            inputs=["x [m]", "v [m/s]"], outputs=["force [N]"], method="rk4",
        ),
        "second": hk.StateSpace(
            [[0, 1], [-0.1, -0.2]], [[0], [0.1]], [[1, 0], [0, 1]], x0=[0.2, 0.1],
            inputs=["force [N]"], outputs=["x [m]", "v [m/s]"], method="rk4",
        ),
    }  # fmt: skip
    connections = {"first.x": "second.x", "first.v": "second.v", "second.force": "first.force"}
    expected = run(models, connections, stop=10, **how)
    for name, values in states(fmu, version, **how).items():
        assert np.abs(values - expected[name].values).max() < 1e-12


def test_threads_change_nothing(fmu):
    models, connections = two_masses(fmu, 2)
    composite = hk.Composite(hk.Scenario(models, connections), H)
    one, two = (hk.run(composite, stop=10, threads=threads).table() for threads in (1, 2))
    assert one.equals(two)


# values that stick


def final_value(model, engine="native"):
    """Return what is left of y0 after a second: exp(-1 / T) of it, for a lag without input."""
    run = hk.run(hk.Composite(hk.Scenario({"lag": model}), "1 ms"), 1, engine=engine)
    return run["lag.y"].values[-1]


@pytest.mark.parametrize("interface", ["co-simulation", "model-exchange"])
@pytest.mark.parametrize("isolate", [False, True])
def test_what_is_set_outlasts_a_reset_at_setup(fmu, interface, isolate):
    """Some tools reset all variables in fmi2SetupExperiment: values are set after it."""
    resets = {"defines": ["RESETS_AT_SETUP"]}
    model = fmu("lag", 2, {"T": 0.5, "y0": 0.3}, resets, interface=interface, isolate=isolate)
    assert final_value(model) == pytest.approx(0.3 * np.exp(-2.0), rel=3e-3)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("isolate", [False, True])
def test_what_an_fmu_does_not_keep_is_an_error(fmu, version, engine, isolate):
    forgets = {"defines": ["RESETS_AT_INITIALISATION"]}
    model = fmu("lag", version, {"T": 0.5, "y0": 0.3}, forgets, isolate=isolate)
    with pytest.raises(hk.SimulatorError) as caught:
        final_value(model, engine)
    assert "`T` was set to 0.5 and is 1" in str(caught.value)
    assert "`lag`" in caught.value.faults[0].where
    kept = fmu("lag", version, {"T": 1.0}, forgets, isolate=isolate)
    assert final_value(kept, engine) == 0.0


@pytest.mark.parametrize("isolate", [False, True])
def test_an_fmu_need_not_be_told_the_stop_time(fmu, isolate):
    """FMUs of one tool run to the stop time in their first step, if they are told one."""
    runs = {"defines": ["RUNS_TO_STOP"]}
    told, untold = (
        fmu("lag", 2, {"y0": 0.3}, runs, stop_time=each, isolate=isolate) for each in (True, False)
    )
    assert final_value(untold) == pytest.approx(0.3 * np.exp(-1.0), rel=3e-3)
    with pytest.raises(hk.SimulatorError, match="it goes to the stop time in its first step"):
        final_value(told)


@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize("engine", ENGINES)
def test_an_fmu_that_tells_another_time_than_the_end_of_its_step_is_noted(fmu, engine, isolate):
    """It returns OK, and not that it returned early: nobody but the FMU knows what it has done."""
    half = fmu("lag", 3, {"y0": 0.3}, {"defines": ["TELLS_HALF"]}, isolate=isolate)
    result = hk.run(half, 0.5, step=0.1, engine=engine)
    assert result.info["notes"] == [
        "`lag`: it tells 0.05 s as its time after a step to t = 0.1 s (lastSuccessfulTime), and not that it "
        "returned early: the step is taken for whole, and its outputs for those at its end"
    ]
    assert hk.run(fmu("lag", 3, isolate=isolate), 0.5, step=0.1, engine=engine).info["notes"] == []


def last_step_cases():
    """Return steps and stops at which t + h is not the stop time: 0.2 + 0.1 is 0.30000000000000004."""
    return [(0.1, 0.3), (1e-6, 0.03), (0.1, 0.8)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_last_step_ends_at_the_stop_time(version, engine, fmu):
    """An FMU that may not pass the stop time by a bit is not asked to; steps before keep their length."""
    model = fmu("lag", version, None, {"defines": ["ENDS_AT_STOP"], "file": "ends.fmu"})
    for step, stop in last_step_cases()[: None if engine == "native" else 1]:
        found = run({"it": model}, step=step, stop=stop, engine=engine)
        assert found.status == "finished"
        assert found.info["reached"] == stop


@pytest.mark.parametrize("version", VERSIONS)
def test_only_the_last_step_is_shortened_by_rounding(version, fmu, trace):
    calls = trace(lambda: run({"it": fmu("lag", version)}, step=0.1, stop=0.3))
    lengths = [call.values["h"] for call in calls if call.function == STEP[version]]
    assert lengths == [0.1, 0.1, 0.3 - 0.2]
    assert 0.2 + lengths[-1] == 0.3


@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize("version", [2, 3])
def test_the_tolerance_of_the_default_experiment_is_told(version, isolate, fmu, trace):
    tells = {"tolerance": "1e-7"}
    asked = {2: "fmi2SetupExperiment", 3: "fmi3EnterInitializationMode"}[version]
    for given, expected in ((None, 1e-7), (1e-3, 1e-3)):
        model = fmu("lag", version, None, tells, tolerance=given, isolate=isolate)
        calls = trace(lambda model=model: run({"it": model}))
        assert [call.values["tolerance"] for call in calls if call.function == asked] == [expected]


@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("version", [1, 2])
def test_refused_input_derivatives_are_noted_and_inputs_are_held(version, engine, isolate, fmu):
    """y' = u with u = t: held inputs give the left Riemann sum, h (0 + h + 2 h) = 0.03, not 0.045."""
    ramp = fmu("ramp", version, None, {"defines": ["REFUSES_DERIVATIVES"]}, isolate=isolate)
    models = {"source": hk.Function(lambda t: [t], ["y"]), "ramp": ramp}
    found = run(models, {"ramp.u": "source.y"}, engine=engine, extrapolation="linear", start="cold")
    assert found["ramp.y"].values[-1] == pytest.approx(0.03, abs=1e-15)
    (note,) = [note for note in found.info["notes"] if "input derivatives" in note]
    assert note.startswith("`ramp`: it declares that it takes input derivatives, and fmi")
    assert note.endswith("refuses them: its inputs are held during each step")


def test_what_forty_fmus_have_to_say_is_one_note(fmu):
    ramp = fmu("ramp", 2, None, {"defines": ["REFUSES_DERIVATIVES"]})
    models = {"source": hk.Function(lambda t: [t], ["y"]), **{f"r{n}": ramp for n in range(40)}}
    found = run(models, {f"r{n}.u": "source.y" for n in range(40)}, extrapolation="linear", start="cold")
    (note,) = [note for note in found.info["notes"] if "input derivatives" in note]
    assert note.endswith("(the same of 39 more: `r1`, `r2`, `r3` and 36 more)")


@pytest.mark.parametrize("isolate", [False, True])
def test_an_fmu_that_refuses_its_event_mode_is_run_without(isolate, fmu):
    model = fmu("ball", 3, None, {"defines": ["REFUSES_EVENT_MODE"]}, isolate=isolate, early_return=False)
    found = run({"ball": model}, stop=3 * H)
    assert [
        note
        for note in found.info["notes"]
        if note.startswith("`ball`: it declares event mode and cannot be")
    ]


@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
def test_instances_are_named_by_the_paths_of_their_models(version, isolate, fmu, trace):
    inner = hk.Composite(hk.Scenario({"left": fmu("lag", version, isolate=isolate)}), H)
    models = {"car": inner, "right": fmu("lag", version, isolate=isolate)}
    for _ in range(2):  # however often it is run in one process
        calls = trace(lambda: run(models))
        assert {call.instance for call in calls} == {"car.left", "right"}
