"""Searches find what is there: genetic ones with few tries, and those of every kind of objective."""

import math
import signal
import threading
from fractions import Fraction

import numpy as np
import pytest

import hocket
from hocket import Composite, Function, GaussSeidel, Ode, Scenario, StateSpace
from hocket.errors import ScenarioError
from hocket.search.case import Case
from hocket.search.tune.evaluation_pool import Workers
from hocket.search.tune.objectives import evaluate_objectives, objectives, step_seconds
from hocket.search.tune.point_judge import PointJudge
from hocket.search.tune.space import apply_choices, parse_space
from hocket.search.tune.tune import tune
from hocket.search.tune.tuning_result import check_prediction
from search.nest.systems import chain
from systems import three_masses, two_masses

TWO = two_masses("Control21", 0.1, (0.0, 0.0, 0.5))
FULL = {"two.F.alpha": "0:1.1:100", "step": "1e-3:10:100:log"}
"""Figure 6 of Glumac and Kovacic."""
VOLUME = 0.945723
"""Of the front of all 10,000 points up to (1, 2): benchmarks/tune.py judges them one by one."""
GRID = {"two.F.alpha": "0:1.1:12", "step": "1e-3:10:20:log"}


def test_a_tenth_of_the_points_is_enough():
    found = tune(TWO, FULL, ["rho", "delta"], search="genetic", budget=1000, workers=1)
    assert len(found.points) <= 1000
    assert 0.99 * VOLUME <= found.volume([1.0, 2.0]) <= VOLUME + 1e-6


def test_the_seed_decides():
    first, same, other = (
        tune(TWO, GRID, ["rho", "delta"], search="genetic", budget=60, seed=seed, workers=1)
        for seed in (1, 1, 2)
    )
    assert same.points == first.points
    assert same.numbers == first.numbers
    assert other.points != first.points


def test_three_objectives():
    """The step is one that shall be large."""
    grid = {"two.F.alpha": "0:1.1:12", "step": "1e-3:10:40:log"}
    made = tune(TWO, grid, ["rho", "delta", "step"], search="genetic", budget=240, workers=1)
    whole = tune(TWO, grid, ["rho", "delta", "step"], workers=1)
    assert made.wanted[2].larger
    assert max(made.numbers[k][2] for k in made.front) == pytest.approx(10.0)
    worst = [1.0, 2.0, 0.0]
    assert 0.9 * whole.volume(worst) < made.volume(worst) <= whole.volume(worst)


def test_four_objectives_by_reference_points():
    made = tune(TWO, GRID, ["rho", "delta", "step", "steps"], search="genetic", budget=60, workers=1)
    kept = made.costs[list(made.front)]
    assert len(kept) > 2
    assert not any((a <= b).all() and (a < b).any() for a in kept for b in kept)


def test_limits_are_kept_by_the_genetic_search():
    made = tune(TWO, GRID, ["delta", "step"], limits={"rho": 0.9}, search="genetic", budget=120, workers=1)
    assert made.front
    assert all(made.numbers[k][2] <= 0.9 for k in made.front)


def test_a_reading_under_another_step_is_that_of_the_step():
    """Points that differ in the step alone are read once: the same numbers as one by one."""
    for composite, over in (
        (TWO, {"two.F.alpha": "-0.5, 0.6", "step": "1 ms, 0.3, 9.1"}),
        (three_masses(2, "100 ms", "25 ms"), {"step": "40 ms, 0.2", "extrapolation": "hold, linear"}),
    ):
        wanted = objectives(["rho", "delta"])
        chosen = parse_space(composite, over)
        points = list(chosen.points())
        found = PointJudge(composite, chosen, wanted, None)(points)
        alone = [
            evaluate_objectives(Case(apply_choices(composite, chosen.values(p)), None), wanted)
            for p in points
        ]
        np.testing.assert_allclose(found, alone, rtol=1e-12)


def test_processes_find_the_same():
    over = {"two.F.alpha": "0:1:8", "step": "0.1:9:8:log"}
    told = []
    alone = tune(TWO, over, ["rho", "delta"], workers=1)
    shared = tune(TWO, over, ["rho", "delta"], workers=2, progress=lambda *each: told.append(each))
    assert shared.points == alone.points
    assert shared.numbers == alone.numbers
    assert told[-1] == (64, 64)


def test_what_cannot_be_sent_is_judged_here():
    """Functions inside functions have no name in another process."""
    composite = pendulum_and_cart()
    chosen = parse_space(composite, {"step": "50 ms, 0.1"})
    judging = PointJudge(composite, chosen, objectives(["steps"]), None)
    with Workers(judging, None, None, 1000) as crew:
        assert crew.count == 1
    with pytest.raises(ScenarioError, match="cannot be sent to other processes"):
        tune(composite, {"step": "50 ms, 0.1"}, ["steps"], workers=2)


def test_all_orders_extrapolations_and_nestings_of_a_chain():
    """The best of all combinations is found, and no combination is left out."""
    five = chain({(1, 2), (3, 4)}, count=3, stiff=20.0, step="50 ms")
    over = {
        "algorithm": "gauss-seidel",
        "order": "all",
        "extrapolation": "hold, linear, quadratic",
        "nesting": "flat, {{m01, m02}, m03}",
    }
    made = tune(five, over, ["error", "exchanges"], stop=2, search="all", workers=1)
    assert len(made.points) == 6 * 3 * 2
    errors = [numbers[0] for numbers in made.numbers if math.isfinite(numbers[0])]
    assert made.numbers[made.front[0]][0] == min(errors)


# objectives


def test_the_error_is_that_of_what_is_recorded_or_named():
    case = Case(three_masses(2, "100 ms", "25 ms"), Fraction(5))
    ports = {port.port: port.largest for port in case.prediction.ports}
    two = math.hypot(ports["first.x"], ports["pair.third.x"])
    whole = math.sqrt(sum(each**2 for each in ports.values()))
    assert evaluate_objectives(case, objectives(["error"]))[0] == pytest.approx(whole)
    assert evaluate_objectives(case, objectives(["error:first.x,third.x"]))[0] == pytest.approx(two)
    made = case.composite
    recorded = made.with_scenario(made.scenario.with_changes(record=["first.x", "pair.third.x"]))
    assert evaluate_objectives(Case(recorded, Fraction(5)), objectives(["error"]))[0] == pytest.approx(two)


def test_time_weighs_steps_by_what_they_take():
    """Twice the steps of one simulator cost twice its seconds."""
    composite = three_masses(2, "100 ms", "25 ms")
    times = {"first": 1.0, "pair.second": 10.0, "pair.third": 100.0}
    case = Case(composite, None, times=times)
    assert evaluate_objectives(case, objectives(["time"]))[0] == pytest.approx(10 * 1.0 + 40 * 110.0)
    measured = step_seconds(composite)
    assert set(measured) == set(times)
    assert min(measured.values()) > 0.0


def test_messages_are_those_between_hosts():
    flat = three_masses(2, "100 ms")
    with pytest.raises(ScenarioError, match="no messages"):
        tune(flat, {"step": "0.1, 0.2"}, ["messages"])
    from hocket.model.hosts import Hosts, Link

    hosts = Hosts({"here": ["first"], "there": ["second", "third"]})
    spread = flat.with_scenario(flat.scenario.with_changes(hosts=hosts))
    made = tune(spread, {"step": "0.1, 0.2"}, ["messages", "step"])
    assert dict(zip(made.points, made.numbers, strict=True))[0,][0] == pytest.approx(20.0), "one each way"
    link = Link("2 ms", bandwidth=1e4, header=40)
    hosts = Hosts({"here": ["first"], "there": ["second", "third"]}, link)
    spread = flat.with_scenario(flat.scenario.with_changes(hosts=hosts))
    made = tune(spread, {"step": "0.1, 0.2"}, ["bytes", "latency"], limits={"messages": 15.0})
    found = dict(zip(made.points, made.numbers, strict=True))
    # ten exchanges a second: a force one way, place and speed the other, 8 bytes each behind 40
    rate = 10 * (40 + 8 + 40 + 16)
    assert found[0,][:2] == pytest.approx((rate, 20 * 2e-3 + rate / 1e4))
    assert found[1,][:2] == pytest.approx((rate / 2, 10 * 2e-3 + rate / 2e4))
    assert [made.points[index] for index in made.front] == [(1,)], "20 messages a second are over the limit"


def test_functions_of_ones_own(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "def far(composite):\n    return abs(float(composite.step) - 0.3)\n"
        "def broken(composite):\n    return 1 / 0\n"
        "def some(composite):\n    return float(composite.step) if composite.step < 1 else 1 / 0\n"
    )
    over = {"step": "0.1, 0.3, 2"}
    made = tune(TWO, over, [f"{file}:far"])
    assert made.composite_of(0).step == Fraction(3, 10)
    partly = tune(TWO, over, [f"{file}:some"])
    assert [math.isnan(numbers[0]) for numbers in partly.numbers] == [False, False, True]
    with pytest.raises(ScenarioError, match="ZeroDivisionError"):
        tune(TWO, over, [f"{file}:broken"])
    with pytest.raises(ScenarioError, match="has no `fra`"):
        tune(TWO, over, [f"{file}:fra"])


def pendulum_and_cart(macro="100 ms", micro="10 ms"):
    """Two parts that are not linear; the spring between them stiffens with its length."""
    bob = Ode(
        lambda t, x, u: [x[1], -np.sin(x[0]) - 0.1 * x[1] + u[0]],
        g=lambda t, x, u: [x[0], x[1]],
        x0=[1.5, 0.0],
        inputs=["push"],
        outputs=["angle", "speed"],
        method="rk4",
        step=micro,
    )
    spring = Ode(
        lambda t, x, u: [5.0 * (u[0] - x[0])],
        g=lambda t, x, u: [-0.5 * x[0] - 0.2 * x[0] ** 3],
        x0=[0.0],
        inputs=["angle"],
        outputs=["force"],
        method="rk4",
        step=micro,
    )
    wires = {"bob.push": "spring.force", "spring.angle": "bob.angle"}
    return Composite(Scenario({"bob": bob, "spring": spring}, wires), macro, GaussSeidel())


def test_what_is_not_linear_is_measured_by_runs():
    composite = pendulum_and_cart()
    over = {"step": "50 ms, 0.1, 0.2", "extrapolation": "hold, linear"}
    made = tune(composite, over, ["measured", "steps"], stop=2, workers=1)
    measured = {point: numbers[0] for point, numbers in zip(made.points, made.numbers, strict=True)}
    assert measured[0, 0] < measured[1, 0] < measured[2, 0]
    assert all(measured[k, 1] < measured[k, 0] for k in range(3)), "lines beat holds"
    fine = hocket.run(composite.with_changes(step="10 ms", extrapolation="linear"), 2)["bob.angle"]
    for point in ((0, 0), (2, 0)):
        run = hocket.run(apply_choices(composite, made.space.values(point)), 2)["bob.angle"]
        off = np.abs(run.values - np.interp(run.t, fine.t, fine.values)).max() / np.abs(fine.values).max()
        assert 0.3 * off < measured[point] < 3.0 * off


def test_a_search_of_what_is_not_linear_has_its_defaults():
    made = tune(pendulum_and_cart(), {"step": "50 ms, 0.1"}, stop=1, workers=1)
    assert [each.name for each in made.wanted][:2] == ["error", "work"]
    assert made.front


def test_sampled_controllers_keep_their_period():
    plant = StateSpace(A=[[-1.0]], B=[[1.0]], C=[[1.0]], x0=[1.0], inputs=["u"], outputs=["y"])
    control = StateSpace(A=[[0.0]], B=[[0.0]], C=[[0.0]], D=[[-0.5]], inputs=["y"], outputs=["u"])
    level = Composite(
        Scenario({"law": control}, {"law.y": "y", "u": "law.u"}, inputs=["y"], outputs=["u"]),
        "0.2",
        sampled=True,
    )
    both = Composite(
        Scenario({"plant": plant, "control": level}, {"plant.u": "control.u", "control.y": "plant.y"}), "0.1"
    )
    made = tune(both, stop=4, workers=1, budget=60, search="genetic")
    assert made.front
    kept = [made.composite_of(row).scenario.models["control"] for row in range(len(made.front))]
    assert all(level.step == Fraction(1, 5) for level in kept)


# what is refused


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"goals": ["roh"]}, "did you mean `rho`"),
        ({"goals": ["rho:one"]}, "`rho:one` says nothing"),
        ({"goals": ["error:"], "stop": 1}, "says nothing"),
        ({"goals": ["radius:three"]}, "`three` is not a simulator"),
        ({"goals": ["error:one.G"], "stop": 1}, "no output is `one.G`"),
        ({"goals": ["error"]}, "nothing says how long"),
        ({"goals": ["nothing.py:here"]}, "no file"),
        ({"goals": ["rho"], "limits": {"dleta": 1.0}}, "did you mean `delta`"),
        ({"goals": ["rho"], "limits": {"rho": math.nan}}, "limit of `rho` is nan"),
        ({"search": "clever"}, "no search `clever`"),
        ({"budget": 0}, "`budget` cannot be 0"),
        ({"workers": 0}, "`workers` cannot be 0"),
    ],
)
def test_bad_wishes_are_refused(how, message):
    goals = how.pop("goals", ["rho"])
    with pytest.raises(ScenarioError, match=message):
        tune(TWO, {"step": "0.1, 0.2"}, goals, **how)


def test_names_that_no_value_suits_are_refused():
    with pytest.raises(ScenarioError, match="nothing drives"):
        tune(TWO, {"two.x.extrapolation": "linear"}, ["rho"])


def test_an_objective_without_a_number_says_why():
    what = r"(?s)`messages` has no number for any of 2 couplings; the first: .*on one host"
    with pytest.raises(ScenarioError, match=what):
        tune(TWO, {"step": "0.1, 0.2"}, ["messages"])


def test_faults_of_the_scenario_come_first():
    alone = Composite(Scenario({"one": TWO.scenario.models["one"]}, {}), "0.1")
    with pytest.raises(ScenarioError, match=r"nothing drives `one\.x2`"):
        tune(alone, {"step": "0.1, 0.2"}, ["rho"])


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_keeps_what_was_judged(tmp_path):
    over = {"two.F.alpha": "0:1:10", "step": "0.1:9:30:log"}
    count = 0

    def stop(*_):
        nonlocal count
        count += 1
        if count == 3:
            signal.raise_signal(signal.SIGINT)

    assert threading.current_thread() is threading.main_thread()
    with pytest.raises(KeyboardInterrupt):
        tune(TWO, over, ["rho"], workers=1, folder=tmp_path, progress=stop)
    kept = (tmp_path / "judged.jsonl").read_text().count("\n") - 1
    assert 50 <= kept < 300
    told = []
    made = tune(TWO, over, ["rho"], workers=1, folder=tmp_path, progress=lambda *each: told.append(each))
    assert told[0][0] > kept
    assert made.numbers == tune(TWO, over, ["rho"], workers=1).numbers


# what counts when nobody says so


def pair(wall, damping):
    """Two masses with a spring between them; the first one hangs at a wall, or is pushed away from it."""
    first = StateSpace(
        A=[[0, 1], [-wall, -damping]], B=[[0], [1]], C=np.eye(2), x0=[1, 0], inputs=["F"], outputs=["x", "v"]
    )
    second = StateSpace(
        A=[[0, 1], [-1, -0.1]],
        B=[[0, 0], [1, 0.1]],
        C=[[1, 0.1]],
        D=[[-1, -0.1]],
        x0=[0, 0],
        inputs=["x", "v"],
        outputs=["F"],
    )
    wires = {"first.F": "second.F", "second.x": "first.x", "second.v": "first.v"}
    return Composite(Scenario({"first": first, "second": second}, wires), "100 ms")


@pytest.mark.parametrize(
    ("wall", "damping", "limited"), [(1.0, 0.1, True), (0.0, 0.0, True), (-4.0, 0.0, False)]
)
def test_what_grows_by_the_coupling_alone_is_out(wall, damping, limited):
    """A free pair drifts without growing; what is pushed away grows by itself, and any coupling with it."""
    made = tune(pair(wall, damping), {"step": "50 ms, 0.1, 1, 3", "extrapolation": "hold, cubic"}, stop=3)
    names = [each.name for each in made.wanted]
    assert names == (["error", "work", "rho"] if limited else ["error", "work"])
    assert made.front
    if limited:
        kept = {made.space.values(made.points[k])["step"] for k in made.front}
        assert 0.05 in kept
        assert all(made.numbers[k][2] <= 1.0 + 1e-6 for k in made.front)
        assert any(numbers[2] > 1.1 for numbers in made.numbers), "some grow, and are not in the front"


def test_what_should_be_zero_is_not_measured_by_itself():
    """An output of nothing but rounding must not decide."""
    noise = StateSpace(
        A=[[-1.0]], B=[[1.0]], C=[[1.0], [1e-12]], x0=[1.0], inputs=["u"], outputs=["y", "tiny"]
    )
    other = StateSpace(A=[[-2.0]], B=[[-1.0]], C=[[1.0]], x0=[0.0], inputs=["y"], outputs=["u"])
    both = Composite(Scenario({"a": noise, "b": other}, {"a.u": "b.u", "b.y": "a.y"}), "100 ms")
    whole = tune(both, {"step": "0.1"}, ["measured"], stop=2).numbers[0][0]
    seen = both.with_scenario(both.scenario.with_changes(record=["a.y", "b.u"]))
    assert tune(seen, {"step": "0.1"}, ["measured"], stop=2).numbers[0][0] == pytest.approx(whole)


# what a run shows


def test_a_run_of_what_is_not_linear_is_compared_with_shorter_steps():
    composite = pendulum_and_cart()
    told = check_prediction(composite, Fraction(2))
    assert told.against == "16 times shorter steps"
    fine = hocket.run(pendulum_and_cart("6.25 ms", "6.25 ms"), 2)  # 10 ms do not divide the macro step
    run = hocket.run(composite, 2)
    gaps = [np.abs(run[name].values - fine[name].values[::16]).max() for name in run.ports]
    assert told.found == pytest.approx(np.linalg.norm(gaps), rel=1e-9)


def test_of_a_run_that_blows_up_there_is_the_reason():
    """x' = u, u = -1000 x held over 0.1 s: x is multiplied by -99 in each step, infinite at 16 s."""
    plant = StateSpace(A=[[0.0]], B=[[-1000.0]], C=[[1.0]], x0=[1.0], inputs=["u"], outputs=["x"])
    told = check_prediction(Composite(Scenario({"it": plant}, {"it.u": "it.x"}), "100 ms"), Fraction(40))
    assert told.found == np.inf
    assert told.against.startswith("the run failed: `it.x` is ")


def test_a_run_with_a_source_is_compared_with_the_exact_solution():
    """x' = -x + u, u = sin t held over 0.1 s: x(t) is known."""
    wave = Function(np.sin, ["u"])
    lag = StateSpace(A=[[-1.0]], B=[[1.0]], C=[[1.0]], x0=[0.0], inputs=["u"], outputs=["x"])
    both = Composite(Scenario({"wave": wave, "lag": lag}, {"lag.u": "wave.u"}), "100 ms")
    both = both.with_scenario(both.scenario.with_changes(record=["lag.x"]))
    told = check_prediction(both, Fraction(4))
    run = hocket.run(both, 4)["lag.x"]
    exact = 0.5 * (np.sin(run.t) - np.cos(run.t) + np.exp(-run.t))
    assert told.against == "the exact solution"
    assert told.found == pytest.approx(np.abs(run.values - exact).max(), rel=1e-6)
    assert told.predicted == pytest.approx(told.found, rel=1e-6)
