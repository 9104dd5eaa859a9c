"""What the pass accuracy inserts, promises, keeps, and refuses."""

import pytest

import hocket as hk
from hocket.errors import ScenarioError
from hocket.planning.compiler.accuracy import Accuracy, accepted_steps
from hocket.simulators.step_controller import StepController
from hocket.simulators.wrappers.replay import Replay
from hocket.simulators.wrappers.timed import Timed
from planning.compiler.oscillators import LAGGED, LEFT, RIGHT, WIRES, Mass, compiled, error, oscillator


def test_everything_inserted_is_accounted_for():
    level = compiled(estimate="copy")
    scenario = level.scenario
    clock = scenario.models["clock"]
    assert level.step == 1
    assert isinstance(clock, StepController)
    assert scenario.models["left"] == Timed(LEFT)
    assert set(scenario.models) == {"clock", "left", "right", "copy"}
    written = {connection.target for connection in scenario.connections} - set(WIRES)
    assert set(scenario.inserted) == {*scenario.models, *written}
    assert {each.by for each in scenario.inserted.values()} == {"accuracy"}
    assert "at most 0.001" in scenario.inserted["clock"].reason


def test_signals_may_have_tolerances_of_their_own():
    made = compiled(tolerances={"right.*": 0.5, "left.v": 0.25}, relative=1e-6)
    clock = made.scenario.models["clock"]
    assert dict(zip((port.name for port in clock.watched), clock.tolerance, strict=True)) == {
        "left.x": 1e-3, "left.v": 0.25, "right.x": 0.5, "right.v": 0.5,
    }  # fmt: skip
    assert clock.relative == 1e-6


def test_it_is_wanted_where_steps_are_fixed():
    assert Accuracy(1).reasons(oscillator()) == ["its step of 1 s is fixed, whatever the error is"]
    assert Accuracy(1).reasons(oscillator(orchestrator=hk.Adaptive())) == []
    assert Accuracy(1).reasons(compiled()) == []


class Early(Mass):
    stops_early = True


class Fixed(Mass):
    variable_step = False


BOX = hk.Composite(hk.Scenario({"a": LAGGED}, {"a.u": "u", "y": "a.y"}, ["u"], ["y"]), "0.5 s")
LEVELS = {
    "cannot roll back": (lambda: oscillator(hk.Python(Mass)), r"`left` cannot roll back(.|\n)*Replay"),
    "no step but its own": (
        lambda: oscillator(Replay(hk.Python(Fixed))),
        r"`left` accepts only its own step(.|\n)*Subst",
    ),
    "events": (lambda: oscillator(Replay(hk.Python(Early))), "`left` may stop inside a step"),
    "a period": (
        lambda: oscillator(Replay(hk.Python(Mass, period="10 ms"))),
        "`left` has a period of its own",
    ),
    "controlled already": (lambda: oscillator(orchestrator=hk.Adaptive()), "controls its steps already"),
    "stale": (lambda: oscillator(orchestrator=hk.Jacobi(outputs="stale")), "not evaluated again"),
    "slopes": (lambda: oscillator(extrapolation=hk.Hermite(1)), "extrapolated by Hermite"),
    "an open input": (lambda: hk.Composite(hk.Scenario({"a": LAGGED}), 1), "nothing drives `a.u`"),
    "inputs of its own": (lambda: BOX, "input of its own, `u`"),
    "a stale level": (
        lambda: hk.Composite(
            hk.Scenario(
                {"a": LAGGED, "box": BOX.with_changes(orchestrator=hk.Jacobi(outputs="stale"))},
                {"a.u": "box.y", "box.u": "a.y"},
            ),
            1,
        ),
        "outputs of the level `box` are not evaluated again",
    ),
    "a loop": (
        lambda: hk.Composite(
            hk.Scenario({"a": hk.Gain(0.5), "b": hk.Gain(0.5)}, {"a.u": "b.y", "b.u": "a.y"}), 1
        ),
        "algebraic loop",
    ),
    "a bond": (
        lambda: oscillator().with_changes(
            scenario=oscillator().scenario.with_changes(bonds={"joint": hk.Bond("left.force", "right.v1")})
        ),
        "power bond `joint`",
    ),
    "a constraint": (
        lambda: oscillator().with_changes(
            scenario=hk.Scenario(
                {"left": LEFT, "right": RIGHT},
                {"right.x1": "left.x", "right.v1": "left.v"},
                constraints={"joint": "left.x = right.x"},
            )
        ),
        "constraint `joint`",
    ),
    "told already": (compiled, "told by a step controller already"),
}


@pytest.mark.parametrize("name", LEVELS)
def test_what_it_cannot_do_is_refused(name):
    made, what = LEVELS[name]
    level = made()
    assert Accuracy(10).check_preconditions(level)
    with pytest.raises(ScenarioError, match=what):
        Accuracy(10).apply(level)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"tolerance": 0.0}, "never met"),
        ({"tolerances": {"left.x": -1.0}}, "never met"),
        ({"estimate": "copies"}, "did you mean `copy`"),
        ({"controller": "P"}, "`controller` cannot be 'P'"),
        ({"per": "second"}, "`per` cannot be"),
        ({"estimate": "copy", "rejects": True}, "whatever the error was"),
        ({"stop": "soon"}, "soon"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, what):
    with pytest.raises(ScenarioError, match=what):
        Accuracy(**{"stop": 10, **options})


def test_a_signal_that_is_not_there_is_refused():
    with pytest.raises(ScenarioError, match=r"no output matches `left\.y`"):
        compiled(watch="left.y")


def test_later_changes_break_what_it_promised():
    level, how = compiled(), Accuracy(10)
    scenario = level.scenario
    bare = scenario.with_models({**scenario.models, "left": LEFT})
    cut = scenario.with_changes(connections=[c for c in scenario.connections if c.target != "left.clock_t"])
    none = scenario.with_models({**scenario.models, "clock": Timed(LEFT)})
    for changed, what in (
        (level.with_changes(step="10 ms"), "the step is 10 ms"),
        (level.with_changes(orchestrator="gauss-seidel"), "GaussSeidel"),
        (level.with_scenario(bare), "`left` is not told the time"),
        (level.with_scenario(cut), "`clock` does not tell `left` the time"),
        (level.with_scenario(none), "no step controller"),
    ):
        assert any(what in str(fault) for fault in how.check_postconditions(changed)), what
    assert how.check_postconditions(level) == []


def test_a_run_says_where_it_did_not_keep_its_promise():
    """A first step of 1 s is too long, and the copy cannot take it back; then s ends before t does."""
    made = compiled(tolerance=1e-3, estimate="copy", first=1)
    found = accepted_steps(hk.run(made, stop=50))
    assert not found.finished
    first, second = map(str, found.faults())
    assert "times the tolerance" in first
    assert "step to t = 1 s" in first
    assert "before its time was up" in second
    assert found.rows()[0] == {
        "t": 0.0, "left.x": 1.0, "left.v": 0.0, "right.x": 0.0, "right.v": 0.0, "right.force": -1.0,
    }  # fmt: skip
    with pytest.raises(ScenarioError, match=r"`clock\.t` was not recorded"):
        accepted_steps(hk.run(oscillator(), stop=2))
    narrow = oscillator().with_changes(scenario=oscillator().scenario.with_changes(record=["left.x"]))
    assert list(accepted_steps(hk.run(compiled(narrow, 1e-2), stop=20)).values) == ["left.x"]


def test_names_that_are_taken_are_left_alone():
    scenario = hk.Scenario({"clock": LEFT, "copy": RIGHT}, {
        "clock.force": "copy.force", "copy.x1": "clock.x", "copy.v1": "clock.v",
    })  # fmt: skip
    made = Accuracy(10, 1e-2, estimate="copy", first=0.01, watch="*.[xv]").apply(hk.Composite(scenario, 1))
    assert set(made.scenario.models) == {"clock", "copy", "clock_2", "copy_2"}
    found = accepted_steps(hk.run(made, stop=260), "clock_2")
    assert error(found, ("clock.x", "clock.v", "copy.x", "copy.v")) == pytest.approx(1.42e-2, rel=0.05)
