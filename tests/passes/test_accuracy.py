"""Accuracy as a pass: steps as long as their error allows, by one more simulator."""

import numpy as np
import pytest
from scipy.linalg import expm

import hocket as hk
from fmus.build import build
from hocket.constraints import Constraint
from hocket.errors import ScenarioError
from hocket.files.study import Study
from hocket.files.toml import dumps, loads
from hocket.passes.accepted import accepted
from hocket.passes.accuracy import Accuracy
from hocket.passes.compiler import compile
from hocket.passes.loops import Loops
from hocket.passes.modularity import Modularity
from hocket.simulators.replay import Replay
from hocket.simulators.step_controller import StepController
from hocket.simulators.substepped import Substepped
from hocket.simulators.timed import Timed

# The double oscillator of requirements.md 1.2: m = 1, c1 = c2 = cc = 1, d = 0.5 each, x1(0) = 1, T = 10.
WHOLE = np.array([[0, 1, 0, 0], [-2, -1, 1, 0.5], [0, 0, 0, 1], [1, 0.5, -2, -1.0]])
SEEN = ("left.x", "left.v", "right.x", "right.v")
LEFT = hk.StateSpace(
    [[0, 1], [-1, -0.5]], [[0], [1]], np.eye(2), x0=[1, 0], inputs=["force [N]"], outputs=["x [m]", "v [m/s]"]
)
RIGHT = hk.StateSpace(
    [[0, 1], [-2, -1]],
    [[0, 0], [1, 0.5]],
    [[1, 0], [0, 1], [1, 0.5]],
    [[0, 0], [0, 0], [-1, -0.5]],
    inputs=["x1 [m]", "v1 [m/s]"],
    outputs=["x [m]", "v [m/s]", "force [N]"],
)
WIRES = {"left.force": "right.force", "right.x1": "left.x", "right.v1": "left.v"}


class Mass:
    """The left one as a black box: exact for a held force, and it cannot go back."""

    inputs = ("force [N]",)
    outputs = ("x [m]", "v [m/s]")
    input_degree = 0

    def start(self, t):
        self.z, self.t = np.array([1.0, 0.0]), t

    def output(self, t):
        return self.z

    def step(self, t, h, u):
        assert t == pytest.approx(self.t, abs=1e-12)
        phi = expm(np.array([[0, 1, 0], [-1, -0.5, 1], [0, 0, 0.0]]) * h)
        self.z, self.t = phi[:2, :2] @ self.z + phi[:2, 2] * u[0, 0], t + h


def oscillator(left=LEFT, right=RIGHT, **level):
    return hk.Composite(hk.Scenario({"left": left, "right": right}, WIRES), 1, **level)


def compiled(level=None, tolerance=1e-3, **options):
    options = {"first": 0.01, "watch": ("*.x", "*.v")} | options
    return Accuracy(10, tolerance, **options).apply(level or oscillator())


def run(level, steps, **how):
    found = accepted(hk.run(level, stop=steps, **how))
    assert found.finished
    assert found.t[-1] == 10.0
    return found


def error(found, ports=SEEN):
    exact = np.array([expm(WHOLE * t)[:, 0] for t in found.t])
    return float(np.max(np.abs(np.array([found[port] for port in ports]).T - exact)))


@pytest.mark.parametrize(
    ("tolerance", "steps", "taken_back", "wrong"),
    [(1e-2, 51, 0, 1.41e-2), (1e-3, 134, 0, 5.11e-3), (1e-4, 403, 1, 1.67e-3), (1e-5, 1264, 1, 5.29e-4)],
)
def test_the_worked_example(tolerance, steps, taken_back, wrong):
    """requirements.md 1.2, computed there apart from hocket."""
    found = run(compiled(tolerance=tolerance), 4 * steps + 20)
    assert found.steps == pytest.approx(steps, rel=0.02)
    assert found.rejected <= taken_back
    assert error(found) == pytest.approx(wrong, rel=0.02)
    assert found.faults() == []


@pytest.mark.parametrize(("h", "wrong"), [(0.1, 2.90e-2), (0.05, 1.41e-2), (0.025, 6.95e-3)])
def test_told_steps_of_one_length_are_the_fixed_ones(h, wrong):
    level = compiled(tolerance=1e9, estimate="defect", first=h, smallest=h, largest=h)
    assert error(run(level, round(10 / h) + 1)) == pytest.approx(wrong, rel=2e-3)


@pytest.mark.parametrize(
    ("estimate", "extrapolation", "per", "tolerances", "power"),
    [
        ("richardson", "hold", "step", (1e-2, 1e-3, 1e-4), 1 / 2),
        ("copy", "hold", "step", (1e-2, 1e-3), 1 / 2),
        ("defect", "hold", "step", (1e-2, 1e-3, 1e-4), 1 / 2),
        ("richardson", "hold", "unit", (0.02, 0.005), 1),
        ("richardson", "linear", "unit", (1e-2, 1e-3, 1e-4), 1),
        ("richardson", "linear", "step", (1e-3, 1e-4, 1e-5), 2 / 3),
        ("copy", "linear", "step", (1e-3, 1e-4), 2 / 3),
        ("defect", "linear", "step", (1e-3, 1e-4, 1e-5), 2 / 3),
    ],
)
def test_the_error_follows_the_tolerance(estimate, extrapolation, per, tolerances, power):
    """Local errors of order p + 1 and global ones of order p: tol^(p/(p+1)) per step, tol per unit."""
    level = oscillator(extrapolation=extrapolation)
    found = [compiled(level, each, estimate=estimate, per=per, first=1e-3) for each in tolerances]
    steps = 1700 if estimate == "richardson" else 800
    wrong = [error(run(each, steps)) for each in found]
    assert np.polyfit(np.log(tolerances), np.log(wrong), 1)[0] == pytest.approx(power, abs=0.12)


def test_lines_need_far_fewer_steps():
    held, led = (run(compiled(oscillator(extrapolation=how), 1e-4), 1700) for how in ("hold", "linear"))
    assert 3 * led.steps < held.steps
    assert 5 * error(led) < error(held)


def test_it_is_as_good_as_the_adaptive_algorithm():
    """Of first order, error times steps is what a choice of steps is worth."""
    found = run(compiled(tolerance=1e-3), 600)
    control = hk.Adaptive(
        tolerance=1e-3, estimate="richardson", per="step", first="1/100", quantum="1/1000000"
    )
    other = hk.run(oscillator(orchestrator=control), stop=10)
    exact = np.array([expm(WHOLE * t)[:, 0] for t in other["left.x"].t])
    wrong = float(np.max(np.abs(np.array([other[port].values for port in SEEN]).T - exact)))
    steps = other.info["counts"]["adapted"][""]["accepted"]
    assert error(found) * found.steps < 1.15 * wrong * steps


@pytest.mark.parametrize("estimate", ["richardson", "copy", "defect"])
def test_black_boxes_do_the_same(estimate):
    boxed = Replay(hk.Python(Mass)) if estimate == "richardson" else hk.Python(Mass)
    made = run(compiled(oscillator(boxed), 1e-2, estimate=estimate, rejects=False), 250)
    open_one = run(compiled(None, 1e-2, estimate=estimate, rejects=False), 250)
    assert made.steps == open_one.steps
    for port in SEEN:
        assert made[port] == pytest.approx(open_one[port], abs=1e-12)


def test_black_boxes_that_hold_their_inputs_are_of_second_order_under_lines():
    level = oscillator(hk.Python(Mass), extrapolation="linear")
    tolerances = (1e-3, 1e-4, 1e-5)
    made = [compiled(level, each, estimate="copy", first=1e-3) for each in tolerances]
    wrong = [error(run(each, 900)) for each in made]
    assert np.polyfit(np.log(tolerances), np.log(wrong), 1)[0] == pytest.approx(2 / 3, abs=0.1)


def test_fmus_are_told_the_time(tmp_path):
    """The two masses of Glumac and Kovacic (2023), with the FMUs' own state saved and restored."""
    models = {name: hk.Fmu(build(name, 2, folder=tmp_path)) for name in ("first", "second")}
    wires = {"first.x": "second.x", "first.v": "second.v", "second.force": "first.force"}
    level = hk.Composite(hk.Scenario(models, wires), 2, extrapolation="linear")
    made = Accuracy(20, 1e-4, first=0.05).apply(level)
    found, plain = (accepted(hk.run(made, stop=240, engine=each)) for each in ("native", "interpreter"))
    A = np.array([[0, 1, 0, 0], [-0.2, -0.3, 0.1, 0.2], [0, 0, 0, 1], [0.1, 0.2, -0.2, -0.4]])
    exact = np.array([expm(A * t) @ [0.1, 0.1, 0.2, 0.1] for t in found.t])
    assert found.faults() == []
    assert np.max(np.abs(found["second.x"] - exact[:, 2])) < 5e-4
    assert np.max(np.abs(found["second.v"] - exact[:, 3])) < 2e-4
    assert all(np.array_equal(found[port], plain[port]) for port in found.values)


class Stubborn(Mass):
    """It goes back, and accepts one step."""

    variable_step = False

    def save(self):
        return self.z, self.t

    def restore(self, state):
        self.z, self.t = state

    def step(self, t, h, u):
        assert h == pytest.approx(0.01)
        super().step(t, h, u)


def test_a_simulator_with_a_step_of_its_own_is_sub_stepped():
    level = oscillator(Substepped(hk.Python(Stubborn), "10 ms"))
    found = run(compiled(level, 1e-2, smallest="5 ms", largest=0.5), 320)
    assert error(found) < 1.41e-2 + 0.01  # a sub-step of lag, at speeds below one


LAGGED = hk.StateSpace([[-1]], [[1]], [[1]], x0=[1], inputs=["u"], outputs=["y"])


def test_sources_are_asked_at_the_told_time():
    """y' = cos(t) - y: the exact solution is (cos t + sin t + e^-t) / 2."""
    scenario = hk.Scenario({"wave": hk.Function(np.cos, ["y"]), "lag": LAGGED}, {"lag.u": "wave.y"})
    level = Accuracy(6, 1e-4, begin=1, first=0.01, per="unit").apply(
        hk.Composite(scenario, 1, extrapolation="linear")
    )
    found = accepted(hk.run(level, stop=1200))
    t = found.t
    exact = (np.cos(t) + np.sin(t)) / 2 + (1 - (np.cos(1) + np.sin(1)) / 2) * np.exp(1 - t)
    assert found.finished
    assert found.faults() == []
    assert (t[0], t[-1]) == (1.0, 6.0)
    assert np.max(np.abs(found["lag.y"] - exact)) < 1e-4
    assert np.array_equal(found["wave.y"], np.cos(t))


@pytest.mark.parametrize("seed", range(15))
def test_random_networks_stay_within_the_tolerance(seed):
    """A contracts in the largest norm: errors of `tolerance` a second add up to tolerance * T."""
    rng = np.random.default_rng(seed)
    size, stop, tolerance = int(rng.integers(2, 5)), 4.0, 2e-3
    A = rng.uniform(-1, 1, (size, size))
    np.fill_diagonal(A, 0.0)
    np.fill_diagonal(A, -np.abs(A).sum(axis=1) - rng.uniform(0.1, 1, size))
    x0 = rng.uniform(-1, 1, size)
    others = [[j for j in range(size) if j != i] for i in range(size)]
    models = {
        f"m{i}": hk.StateSpace(
            [[A[i, i]]],
            [A[i, others[i]]],
            [[1]],
            x0=[x0[i]],
            inputs=[f"u{j}" for j in others[i]],
            outputs=["x"],
        )
        for i in range(size)
    }
    wires = {f"m{i}.u{j}": f"m{j}.x" for i in range(size) for j in others[i]}
    estimate = ("richardson", "copy", "defect")[seed % 3]
    how = Accuracy(stop, tolerance, per="unit", estimate=estimate, first=1e-4)
    level = hk.Composite(hk.Scenario(models, wires), "0.5 s", extrapolation="linear")
    assert how.unmet(level) == []
    made = how.apply(level)
    assert how.broken(made) == []
    found = accepted(hk.run(made, stop=1000))
    exact = np.array([expm(A * t) @ x0 for t in found.t])
    assert found.t[-1] == stop
    assert np.max(np.abs(np.array([found[f"m{i}.x"] for i in range(size)]).T - exact)) < tolerance * stop


@pytest.mark.parametrize("estimate", ["richardson", "copy", "defect"])
@pytest.mark.parametrize("extrapolation", ["hold", "linear"])
def test_both_engines_and_files_agree_to_the_bit(estimate, extrapolation):
    level = compiled(oscillator(extrapolation=extrapolation), 1e-2, estimate=estimate, relative=1e-3)
    text = dumps(Study(level))
    again = loads(text).composite
    assert dumps(Study(again)) == text
    assert _bare(again) == _bare(level)
    native = hk.run(level, stop=60)
    plain = hk.run(again, stop=60, engine="interpreter")
    assert native.info["engine"] == "native"
    for port in native.ports:
        assert np.array_equal(native[port].values, plain[port].values), port


def _bare(level):
    """Return a level without the reasons of what was inserted."""
    models = {
        name: _bare(model) if isinstance(model, hk.Composite) else model
        for name, model in level.scenario.models.items()
    }
    return level.changed(scenario=level.scenario.changed(models=models, inserted={}))


@pytest.mark.parametrize("estimate", ["richardson", "copy", "defect"])
def test_levels_of_the_same_step_are_told_the_time_too(estimate):
    wires = {"right.x1": "x1", "right.v1": "v1", "force": "right.force"}
    box = hk.Composite(hk.Scenario({"right": RIGHT}, wires, ["x1 [m]", "v1 [m/s]"], ["force [N]"]), 1)
    around = hk.Scenario(
        {"left": LEFT, "box": box}, {"left.force": "box.force", "box.x1": "left.x", "box.v1": "left.v"}
    )
    made = compiled(hk.Composite(around, 1), 1e-2, estimate=estimate)
    assert Accuracy(10).broken(made) == []
    nested, flat = run(made, 260), run(compiled(None, 1e-2, estimate=estimate), 260)
    assert np.array_equal(nested.t, flat.t)
    assert np.array_equal(nested["box.right.x"], flat["right.x"])


@pytest.mark.parametrize("estimate", ["richardson", "copy", "defect"])
@pytest.mark.parametrize(
    ("step", "orchestrator", "extrapolation"),
    [("1/3 s", "gauss-seidel", "linear"), (1, hk.Iterate(), "hold"), ("0.5 s", hk.Adaptive(), "linear")],
    ids=["in turn", "iterated", "adaptive"],
)
def test_other_levels_are_stepped_as_a_whole(step, orchestrator, extrapolation, estimate):
    """One exact simulator inside: whatever its level does, it does the same as without, on a fine grid."""
    wires = {"right.x1": "x1", "right.v1": "v1", "force": "right.force"}
    inside = hk.Scenario({"right": RIGHT}, wires, ["x1 [m]", "v1 [m/s]"], ["force [N]"])
    wires = {"left.force": "box.force", "box.x1": "left.x", "box.v1": "left.v"}
    box = hk.Composite(inside, step, orchestrator)
    level = hk.Composite(hk.Scenario({"left": LEFT, "box": box}, wires), 1, extrapolation=extrapolation)
    made = compiled(level, 1e-2, estimate=estimate, watch=("left.*", "box.right.[xv]"))
    assert Accuracy(10).broken(made) == []
    assert _bare(loads(dumps(Study(made))).composite) == _bare(made)
    found = run(made, 260)
    flat = run(compiled(oscillator(extrapolation=extrapolation), 1e-2, estimate=estimate), 260)
    assert found.steps == flat.steps
    assert error(found, ("left.x", "left.v", "box.right.x", "box.right.v")) == pytest.approx(
        error(flat), rel=1e-3
    )


@pytest.mark.parametrize("orchestrator", ["gauss-seidel", hk.Iterate()], ids=["in turn", "iterated"])
def test_other_algorithms_are_stepped_as_a_whole(orchestrator):
    """Of order two under lines, whoever steps first: errors follow tol^(2/3)."""
    level = oscillator(orchestrator=orchestrator, extrapolation="linear")
    tolerances = (1e-3, 1e-4)
    made = [compiled(level, each, watch=("left.[xv]", "right.[xv]")) for each in tolerances]
    assert made[0].scenario.models["clock"].order == 2
    assert set(made[0].scenario.models) == {"clock", "whole"}
    wrong = [error(run(each, 450), [f"whole.{port}" for port in SEEN]) for each in made]
    assert np.polyfit(np.log(tolerances), np.log(wrong), 1)[0] == pytest.approx(2 / 3, abs=0.1)


def test_constraints_are_compiled_first():
    """Two masses joined by a massless link are one: m = 2, c = 3, d = 0.8 (requirements.md 1.5)."""
    forces = {
        "inputs": ["F [N]"],
        "outputs": ["x [m]", "v [m/s]"],
        "x0": [1, 0],
        "C": np.eye(2),
        "B": [[0], [1]],
    }
    models = {
        "left": hk.StateSpace([[0, 1], [-1, -0.5]], **forces),
        "right": hk.StateSpace([[0, 1], [-2, -0.3]], **forces),
    }
    link = Constraint(
        ("left.x = right.x", "left.F + right.F = 0"), {"left.x": "left.v", "right.x": "right.v"}
    )
    level = hk.Composite(hk.Scenario(models, constraints={"link": link}), "0.2 s")
    how = Accuracy(10, 1e-3, first=0.01, estimate="copy", watch=("left.*", "right.*"))
    found = accepted(hk.run(compile(level, [how, Modularity()]).level, stop=160))
    exact = np.array([expm(np.array([[0, 1], [-1.5, -0.4]]) * t)[0, 0] for t in found.t])
    assert found.finished
    assert np.max(np.abs(found["whole.left.x"] - exact)) < 1e-3
    assert np.max(np.abs(found["whole.left.x"] - found["whole.right.x"])) < 1e-3


def test_loops_that_are_solved_are_told_the_time():
    """y1 = x1 + 0.6 y2 and y2 = x2 - 0.7 y1: lifted or not, the estimate holds, and says what it rests on."""
    one = hk.StateSpace([[-1]], [[1]], [[1]], [[0.6]], [1], ["u"], ["y"])
    two = hk.StateSpace([[-2]], [[-3]], [[1]], [[-0.7]], [0.5], ["u"], ["y"])
    lag = hk.StateSpace([[-1]], [[1]], [[1]], x0=[0], inputs=["u"], outputs=["y"])
    wires = {"one.u": "two.y", "two.u": "one.y"}
    inverse = np.linalg.inv([[1, -0.6], [0.7, 1]])
    A = np.zeros((3, 3))
    A[:2, :2] = np.diag([-1, -2]) + np.array([[0, 1], [-3, 0]]) @ inverse
    A[2] = [*inverse[0], -1]
    for models, wired in (
        ({"one": one, "two": two}, wires),
        ({"one": one, "two": two, "lag": lag}, wires | {"lag.u": "one.y"}),
    ):
        level = hk.Composite(hk.Scenario(models, wired), 1, extrapolation="hold")
        made = compile(level, [Accuracy(5, 1e-3, per="unit", first=1e-3, estimate="defect"), Loops()]).level
        found = accepted(hk.run(made, stop=2500))
        x = np.array([expm(A * t) @ [1, 0.5, 0] for t in found.t])
        inside = "" if len(models) == 2 else "one_two."
        assert found.finished
        assert np.max(np.abs(found[f"{inside}one.y"] - x[:, :2] @ inverse[0])) < 1e-3
        if inside:
            assert np.max(np.abs(found["lag.y"] - x[:, 2])) < 1e-3
    flat = hk.Composite(hk.Scenario({"one": one, "two": two}, wires), 1)
    made = compile(flat, [Accuracy(5, 1e-3), Loops()]).level
    assert "`one` and `two` react at once" in made.scenario.inserted["clock"].reason


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
    assert Accuracy(1).wanted(oscillator()) == ["its step of 1 s is fixed, whatever the error is"]
    assert Accuracy(1).wanted(oscillator(orchestrator=hk.Adaptive())) == []
    assert Accuracy(1).wanted(compiled()) == []


class Early(Mass):
    stops_early = True


class Fixed(Mass):
    variable_step = False


BOX = hk.Composite(hk.Scenario({"a": LAGGED}, {"a.u": "u", "y": "a.y"}, ["u"], ["y"]), "0.5 s")
LEVELS = {
    "cannot go back": (lambda: oscillator(hk.Python(Mass)), r"`left` cannot go back(.|\n)*Replay"),
    "no step but its own": (
        lambda: oscillator(Replay(hk.Python(Fixed))),
        r"`left` accepts no step but its own(.|\n)*Subst",
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
                {"a": LAGGED, "box": BOX.changed(orchestrator=hk.Jacobi(outputs="stale"))},
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
        lambda: oscillator().changed(
            scenario=oscillator().scenario.changed(bonds={"joint": hk.Bond("left.force", "right.v1")})
        ),
        "power bond `joint`",
    ),
    "a constraint": (
        lambda: oscillator().changed(
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
    assert Accuracy(10).unmet(level)
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
    cut = scenario.changed(connections=[c for c in scenario.connections if c.target != "left.clock_t"])
    none = scenario.with_models({**scenario.models, "clock": Timed(LEFT)})
    for changed, what in (
        (level.changed(step="10 ms"), "the step is 10 ms"),
        (level.changed(orchestrator="gauss-seidel"), "GaussSeidel"),
        (level.with_scenario(bare), "`left` is not told the time"),
        (level.with_scenario(cut), "`clock` does not tell `left` the time"),
        (level.with_scenario(none), "no step controller"),
    ):
        assert any(what in str(fault) for fault in how.broken(changed)), what
    assert how.broken(level) == []


def test_a_run_says_where_it_did_not_keep_its_promise():
    """A first step of 1 s is too long, and the copy cannot take it back; then s ends before t does."""
    made = compiled(tolerance=1e-3, estimate="copy", first=1)
    found = accepted(hk.run(made, stop=50))
    assert not found.finished
    first, second = map(str, found.faults())
    assert "times the tolerance" in first
    assert "step to t = 1 s" in first
    assert "before its time was up" in second
    assert found.rows()[0] == {
        "t": 0.0, "left.x": 1.0, "left.v": 0.0, "right.x": 0.0, "right.v": 0.0, "right.force": -1.0,
    }  # fmt: skip
    with pytest.raises(ScenarioError, match=r"`clock\.t` was not recorded"):
        accepted(hk.run(oscillator(), stop=2))
    narrow = oscillator().changed(scenario=oscillator().scenario.changed(record=["left.x"]))
    assert list(accepted(hk.run(compiled(narrow, 1e-2), stop=20)).values) == ["left.x"]


def test_names_that_are_taken_are_left_alone():
    scenario = hk.Scenario({"clock": LEFT, "copy": RIGHT}, {
        "clock.force": "copy.force", "copy.x1": "clock.x", "copy.v1": "clock.v",
    })  # fmt: skip
    made = Accuracy(10, 1e-2, estimate="copy", first=0.01, watch="*.[xv]").apply(hk.Composite(scenario, 1))
    assert set(made.scenario.models) == {"clock", "copy", "clock_2", "copy_2"}
    found = accepted(hk.run(made, stop=260), "clock_2")
    assert error(found, ("clock.x", "clock.v", "copy.x", "copy.v")) == pytest.approx(1.42e-2, rel=0.05)
