"""What simulators can, what algorithms need, and what is emulated: the table against the engine itself."""

from __future__ import annotations

import random
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest

import hocket as hk
from fmus.build import build
from hocket.files.toml import dumps, loads
from hocket.planning.compiler.accuracy import Accuracy
from hocket.planning.compiler.capabilities import CAPABILITIES, PASSES, needs, tabulate_capabilities
from hocket.planning.compiler.emulation_pass import emulate_missing, other_remedy, remedy
from hocket.planning.compiler.loop_pass import Loops
from hocket.planning.planner import plan_tree
from hocket.simulators.wrappers.derivatives import Sloped
from hocket.simulators.wrappers.feedthrough_probe import Reacting
from hocket.simulators.wrappers.replay import Replay
from hocket.simulators.wrappers.substeps import Substepped


class Bare:
    """x'' = -2 x - 0.4 x' + u by small steps: it can nothing but step by the step of its level."""

    inputs, outputs = ("u",), ("x",)
    variable_step = False
    input_degree = 0

    def start(self, t):
        self.x, self.v = 1.0, 0.0

    def output(self, t):
        return [self.x]

    def step(self, t, h, u):
        for _ in range(4):
            self.x, self.v = (
                self.x + h / 4 * self.v,
                self.v + h / 4 * (u[0, 0] - 2 * self.x - 0.4 * self.v),
            )


class Goes:
    def save(self):
        return self.x, self.v

    def restore(self, state):
        self.x, self.v = state


class Tells:
    def slope(self, t, u):
        return [self.v]


@lru_cache
def simulator(rollback, variable, slopes, early=False, period=None):
    bases = (*((Goes,) if rollback else ()), *((Tells,) if slopes else ()), Bare)
    made = type("Made", bases, {"variable_step": variable, "stops_early": early})
    return hk.Python(made, period=period)


def pair(one, other, step="0.1 s", *how):
    return hk.Composite(hk.Scenario({"a": one, "b": other}, {"a.u": "b.x", "b.u": "a.x"}), step, *how)


LAG = hk.StateSpace([[-1.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["u"], outputs=["x"])


def refused(level):
    """Return whether the engine refuses a level."""
    try:
        plan_tree(level)
    except hk.ScenarioError:
        return True
    return False


def lacking(level, *passes):
    return [(need.by, need.capability, need.unmet) for need in needs(level, passes) if need.unmet]


# what each can


def test_a_row_for_each_simulator_and_level():
    inner = hk.Scenario({"own": simulator(True, True, False)}, {"own.u": "u", "x": "own.x"}, ["u"], ["x"])
    level = pair(hk.Composite(inner, "50 ms"), LAG)
    rows = tabulate_capabilities(level).rows()
    assert [row["simulator"] for row in rows] == ["a", "a.own", "b"]
    assert [row["kind"] for row in rows] == ["level", "Python", "StateSpace"]
    assert set(rows[0]) == {"simulator", "kind", *CAPABILITIES}
    can = tabulate_capabilities(level)
    assert [can["a"][name] for name in ("rollback", "variable step", "slopes")] == ["yes", "no", "no"]
    assert [can["b"][name] for name in ("rollback", "slopes", "order")] == ["yes", "yes", ""]
    assert can["a.own"]["input degree"] == "0"


def test_emulations_are_marked():
    bare = simulator(False, False, False)
    level = pair(Sloped(Substepped(Replay(bare), "20 ms")), Reacting(bare, {}, probed=True))
    can = tabulate_capabilities(level)
    assert can["a"]["rollback"] == "emulated: replay"
    assert can["a"]["variable step"] == "emulated: sub-steps of 20 ms"
    assert can["a"]["slopes"] == "emulated: backward differences"
    assert can["a"]["input degree"] == "any"
    assert can["b"]["feedthrough"] == "emulated: probing"
    assert can["b"]["rollback"] == "no"
    inner = hk.Scenario({"own": Replay(bare)}, {"own.u": "u", "x": "own.x"}, ["u"], ["x"])
    can = tabulate_capabilities(pair(hk.Composite(inner, "0.1 s"), LAG))
    assert can["a"]["rollback"] == "emulated: replay"


def test_how_feedthrough_is_known(tmp_path):
    class Reacts(Bare):
        def output(self, t, u):
            return [self.x + u[0, 0]]

    class Says(Reacts):
        feedthrough = {"x": ["u"]}  # noqa: RUF012

    ode = hk.Ode(lambda t, x, u: -x, lambda t, x, u: x + u, [1.0], ["u"], ["x"])
    models = {
        "all": hk.Python(Reacts),
        "says": hk.Python(Says),
        "ode": ode,
        "state": hk.Ode(lambda t, x, u: u - x, x0=[1.0], inputs=["u"], outputs=["x"]),
        "table": hk.Table([0, 1], {"y": [0, 1]}),
        "fmu": hk.Fmu(build("first", 2, folder=tmp_path)),
    }
    can = tabulate_capabilities(hk.Composite(hk.Scenario(models), "0.1 s"))
    assert [can[name]["feedthrough"] for name in models] == [
        "assumed: all",
        "declared",
        "assumed: all",
        "declared",
        "none",
        "declared",
    ]


# what is needed

ORCHESTRATORS = [
    hk.Jacobi(),
    hk.GaussSeidel(),
    hk.Iterate(),
    hk.Iterate(hk.GaussSeidel()),
    hk.Adaptive(),
    hk.Adaptive(estimate="richardson"),
    hk.Adaptive(rejects=True),
    hk.Adaptive(estimate="orders"),
    hk.Adaptive(hk.Iterate()),
    hk.Multirate({"a": 4}),
    hk.Multirate({"b": 4}, "compound"),
    hk.Multirate({"a": 2, "b": 4}, "compound"),
    hk.Asynchronous({"a": 3, "b": 2}),
]
EXTRAPOLATIONS = ["hold", hk.Polynomial(2), hk.Hermite(), hk.Hermite(2)]


def drawn(chance):
    period = chance.choice(["0.1 s", "50 ms", "0.2 s"]) if chance.random() < 0.1 else None
    return simulator(*(chance.random() < 0.5 for _ in range(3)), chance.random() < 0.1, period)


def scenario(chance, shortest=Fraction(1000, 10 * 2**20)):
    """Return a level of two, of which one may be a level itself; its shortest step in milliseconds."""
    one, other = drawn(chance), drawn(chance)
    if chance.random() < 0.4:
        inner = hk.Scenario(
            {"own": one, "more": drawn(chance)},
            {"own.u": "more.x", "more.u": "u", "x": "own.x"},
            ["u"],
            ["x"],
        )
        steps = ["0.1 s", "50 ms", "25 ms", Fraction(shortest) / 1000]
        one = hk.Composite(inner, chance.choice(steps), chance.choice(ORCHESTRATORS[:3]))
    return pair(one, other, "0.1 s", chance.choice(ORCHESTRATORS), chance.choice(EXTRAPOLATIONS))


@pytest.mark.parametrize("seed", range(8))
def test_the_engine_refuses_what_is_not_met_and_nothing_else(seed):
    """Fifty levels each, of all algorithms and extrapolations, over simulators that can this and that."""
    chance = random.Random(seed)
    verdicts = set()
    for _ in range(50):
        level = scenario(chance)
        unmet = [need for need in needs(level) if need.is_required and need.unmet]
        assert refused(level) == bool(unmet), (level.orchestrator, level.extrapolation, unmet)
        verdicts.add(bool(unmet))
    assert verdicts == {True, False}


@pytest.mark.parametrize("seed", range(4))
def test_what_is_emulated_is_no_longer_refused(seed):
    chance = random.Random(100 + seed)
    for _ in range(50):
        level = scenario(chance)
        for wanted in (False, True):
            made = emulate_missing(level, wanted=wanted)
            assert refused(made.level) == bool(made.left)
            for need in made.left:
                assert need.capability == "variable step"
                assert all(map(hopeless, (at(made.level, path) for path in need.unmet)))
            assert bool(made.done) == (made.level != level)
        again = emulate_missing(made.level, wanted=True)
        assert again.done == () or made.left


@pytest.mark.parametrize("seed", range(6))
def test_what_is_emulated_runs_alike_on_both_engines(seed):
    chance = random.Random(200 + seed)
    made = []
    while len(made) < 4:
        found = emulate_missing(scenario(chance, 25), wanted=True)
        many = isinstance(found.level.orchestrator, hk.Adaptive)  # steps, each of which is replayed
        if found.done and not found.left and not many:
            made.append(found.level)
    for level in made:
        one, other = hk.run(level, 0.4, engine="interpreter"), hk.run(level, 0.4)
        for port in one.ports:
            assert np.array_equal(one[port].values, other[port].values)
            assert np.abs(one[port].values).max() < 1.5  # damped, from 1 on


def at(level, path):
    for name in path.split("."):
        level = level.scenario.models[name]
    return level


def hopeless(model):
    """Levels and sampled models have a step of their own, and events end steps where they like."""
    sampled = getattr(model, "period", None) is not None
    return isinstance(model, hk.Composite) or sampled or model.capabilities.stops_early


def test_needs_say_who_and_why():
    bare = simulator(False, False, False)
    (need,) = [each for each in needs(pair(bare, LAG, "0.1 s", "iterate")) if each.unmet]
    assert (need.by, need.capability, need.of, need.unmet) == ("iterate", "rollback", ("a", "b"), ("a",))
    assert need.is_required
    level = pair(bare, LAG, "0.1 s", hk.Adaptive(), hk.Hermite())
    assert lacking(level) == [
        ("adaptive", "variable step", ("a",)),
        ("adaptive", "rollback", ("a",)),
        ("extrapolation hermite", "slopes", ("a",)),
        ("extrapolation hermite", "input degree", ("a",)),
    ]
    words = [remedy(level, "a", each) for each in needs(level) if each.unmet]
    assert words == ['substep = "1.5625 ms"', "replay = true", 'slopes = "backward"', ""]
    degree = next(each for each in needs(level) if each.capability == "input degree")
    assert other_remedy(level, "a", degree).startswith('substep = "12.5 ms"')


def test_those_inside_levels_are_named():
    inner = hk.Scenario({"own": simulator(False, True, False)}, {"own.u": "u", "x": "own.x"}, ["u"], ["x"])
    level = pair(hk.Composite(inner, "50 ms"), LAG, "0.1 s", hk.Iterate(), hk.Hermite())
    assert lacking(level)[:2] == [
        ("iterate", "rollback", ("a.own",)),
        ("extrapolation hermite", "slopes", ("a.own",)),
    ]
    made = emulate_missing(level)
    assert not made.left
    assert [(each.path, each.how) for each in made.done] == [
        ("a.own", "rollback by replay"),
        ("a.own", "output derivatives by backward differences"),
    ]
    assert made.level.scenario.models["a"].scenario.models["own"] == Sloped(
        Replay(simulator(False, True, False))
    )


def test_a_cold_start_is_a_loss_and_no_refusal():
    level = pair(simulator(False, True, False), LAG, "0.1 s", "jacobi", hk.Polynomial(3))
    (need,) = [each for each in needs(level) if each.unmet and each.by == "the start"]
    assert not need.is_required
    assert "capped" in need.loses
    assert any("capped" in note for note in plan_tree(level).plan.notes)
    made = emulate_missing(level, wanted=True).level
    assert not any("capped" in note for note in plan_tree(made).plan.notes)
    cold = pair(simulator(False, True, False), LAG, "0.1 s", "jacobi", hk.Polynomial(3), "cold")
    assert not any(need.by == "the start" for need in needs(cold))


def test_the_sub_step_is_the_one_that_the_fmu_tells(tmp_path):
    path = build("second", 3, folder=tmp_path, canHandleVariableCommunicationStepSize=None)
    model = hk.Fmu(path)
    told = model.interface_used.fixed_step or model.description.step
    level = hk.Composite(
        hk.Scenario({"fmu": model, "lag": LAG}, {"fmu.force": "lag.x", "lag.u": "fmu.x"}),
        "0.1 s",
        hk.Multirate({"fmu": 5}),
    )
    assert refused(level)
    (done,) = emulate_missing(level).done
    expected = told if told is not None and told <= 0.1 else 0.02
    assert done.how.startswith("any step by sub-steps of ")
    assert float(emulate_missing(level).level.scenario.models["fmu"].substep) == pytest.approx(expected)


def test_real_ways_back_are_used_for_slopes():
    level = pair(simulator(True, True, False), LAG, "0.1 s", "jacobi", hk.Hermite())
    assert emulate_missing(level).level.scenario.models["a"] == Sloped(simulator(True, True, False), "0.1 ms")


def test_loops_that_are_assumed_are_probed_on_request():
    class Plant(Bare):
        def output(self, t, u):
            return [self.x]

    level = pair(hk.Python(Plant), hk.Python(Plant))
    assert ("jacobi", "feedthrough", ("a", "b")) in lacking(level)
    assert emulate_missing(level).done == ()
    made = emulate_missing(level, probe=True)
    assert {each.how for each in made.done} == {"feedthrough by probing"}
    assert made.level.scenario.models["a"] == Reacting(hk.Python(Plant), {}, probed=True)
    assert not lacking(made.level)
    runs = [hk.run(each, 1)["a.x"].values for each in (level, made.level)]
    assert np.array_equal(*runs)


def test_passes_are_asked():
    bare = simulator(False, False, False)
    level = pair(bare, LAG)
    assert lacking(level) == []
    assert lacking(level, "accuracy") == [
        ("pass accuracy", "variable step", ("a",)),
        ("pass accuracy", "rollback", ("a",)),
    ]
    with pytest.raises(hk.ScenarioError, match="did you mean `accuracy`"):
        needs(level, ["acuracy"])
    assert set(PASSES) == {"modularity", "loops", "distribution", "accuracy"}
    made = emulate_missing(level, passes=["accuracy"])
    assert [each.capability for each in made.done] == ["variable step"]


@pytest.mark.parametrize("able", [(True, True), (True, False), (False, True), (False, False)])
def test_passes_refuse_what_their_needs_say(able):
    level = pair(simulator(*able, True), LAG)
    unmet = [need for need in needs(level, ["accuracy"]) if need.is_required and need.unmet]
    assert bool(Accuracy(stop=1, estimate="copy").check_preconditions(level)) == bool(unmet)
    assert bool(Accuracy(stop=1).check_preconditions(level)) == any(
        need.unmet for need in needs(level, ["accuracy"])
    )


@pytest.mark.parametrize("rollback", [True, False])
def test_loops_by_whole_steps_ask_for_a_way_back(rollback):
    class Reacts(Bare):
        def output(self, t, u):
            return [self.x + 0.1 * u[0, 0]]

    model = hk.Python(type("Able", (Goes, Reacts), {}) if rollback else Reacts)
    level = hk.Composite(hk.Scenario({"a": model, "g": hk.Gain(0.5)}, {"a.u": "g.y", "g.u": "a.x"}), "0.1 s")
    asked = {need.capability: need for need in needs(level, ["loops"]) if need.by == "pass loops"}
    assert set(asked) == {"rollback", "feedthrough"}
    refused = Loops(how="steps").check_preconditions(level)
    assert bool(asked["rollback"].unmet) == (not rollback) == bool(refused)
    assert asked["feedthrough"].unmet == ("a",)
    assert not Loops().check_preconditions(level)


def test_constraints_ask_modularity():
    models = {"a": simulator(False, True, False), "b": LAG, "c": simulator(False, True, True)}
    level = hk.Composite(hk.Scenario(models, constraints={"link": ["a.x = b.x"]}), "0.1 s")
    assert lacking(level) == [
        ("pass modularity", "rollback", ("a",)),
        ("pass modularity", "slopes", ("a",)),
    ]


def test_an_algorithm_of_ones_own_says_what_it_needs():
    class Careful(hk.Jacobi):
        def needs(self, scenario):
            yield "rollback", scenario.models, "it looks twice"

    assert lacking(pair(simulator(False, True, True), LAG, "0.1 s", Careful())) == [
        ("careful", "rollback", ("a",))
    ]


def test_what_was_emulated_round_trips_through_a_file():
    thermostat = hk.Python("tests/sampled_thermostat.py:Thermostat")
    room = hk.StateSpace(
        [[-1.0]], [[1.0]], [[1.0]], x0=[293.0], inputs=["heat [W]"], outputs=["temperature [K]"]
    )
    wires = {"room.heat": "thermostat.heat", "thermostat.temperature": "room.temperature"}
    level = hk.Composite(
        hk.Scenario({"room": room, "thermostat": thermostat}, wires), "0.1 s", "iterate", hk.Hermite()
    )
    made = emulate_missing(level).level
    experiment = loads(dumps(made))
    assert experiment.composite == made
    assert 'slopes = "backward"' in dumps(made)
