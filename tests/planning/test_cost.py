"""What a plan costs is told before the run, and is what is counted in it: messages, bytes, steps, values."""

from fractions import Fraction as F

import pytest

import hocket as hk
from hocket.model.hosts import Hosts, Link
from hocket.plan import Feed, Read, Solve
from hocket.plan.instructions import feedback_drives
from hocket.planning.compiler.distribution import Distribution
from hocket.planning.cost import Work, plan_cost, plan_work
from hocket.planning.planner import plan_tree
from planning.compiler.hosts import chain, scenario
from systems import ENGINES

STOP = 2


def counted(composite, stop=STOP):
    """Run, and return the cost with what was counted: messages, bytes, steps, sweeps."""
    run = hk.run(composite, stop=stop, engine="interpreter")
    counts = run.info["counts"]
    links = counts["messages"].values()
    sweeps = counts.get("sweeps", {}).get("", {}).get("total")
    sent = sum(link["messages"] for link in links), sum(link["bytes"] for link in links)
    return plan_cost(plan_tree(composite)), sent, counts["steps"], sweeps, counts["messages"]


ALGORITHMS = {
    "jacobi": hk.Jacobi(),
    "jacobi, stale": hk.Jacobi(outputs="stale"),
    "gauss-seidel": hk.GaussSeidel(),
    "gauss-seidel, stale": hk.GaussSeidel(outputs="stale"),
}


@pytest.mark.parametrize("made", [scenario, chain], ids=["two", "three hosts"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(("outside", "inside", "iterate"), [
    ("hold", "hold", None), ("quadratic", "hold", None), ("linear", "cubic", None), ("linear", "linear", 3),
    ("quadratic", "linear", 1e-5),
])  # fmt: skip
def test_predicted_is_counted(made, algorithm, outside, inside, iterate):
    """Messages and bytes, the start included; of an iteration to a tolerance, for its sweeps."""
    flat = hk.Composite(made(), "0.2 s", ALGORITHMS[algorithm], inside)
    distributed = Distribution("0.1 s", outside, iterate).apply(flat)
    told, sent, steps, sweeps, links = counted(distributed)
    assert (told.messages(steps, sweeps), told.bytes(steps, sweeps)) == sent
    for each in told.links:
        assert links[f"{each.source} to {each.target}"]["start"] == each.start.messages


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_flat_scenario_on_hosts_is_counted_too(algorithm):
    for extrapolation in ("hold", "quadratic"):
        flat = hk.Composite(chain(), "0.1 s", ALGORITHMS[algorithm], extrapolation)
        told, sent, steps, _, _ = counted(flat, 1)
        assert (told.messages(steps), told.bytes(steps)) == sent


@pytest.mark.parametrize("iterate", [None, 2, 1e-5])
def test_both_engines_count_the_same(iterate):
    flat = hk.Composite(chain(), "0.2 s", "jacobi", "linear")
    for made in (flat, Distribution("0.1 s", "quadratic", iterate).apply(flat)):
        one, other = (hk.run(made, stop=STOP, engine=engine).info for engine in ENGINES)
        assert one["engine"] == "native"
        assert one["counts"]["messages"] == other["counts"]["messages"]


def test_what_a_message_is_made_of():
    """A value is 8 bytes: x and v one way, a force the other. By hand, for two masses.

    At the start x and v go to the lab, whose force comes back; then the curves of a line, two numbers for
    each value, once both ways. Each step: x and v there, the force back, for what is consistent at its end.
    """
    link = Link("2 ms", 1000.0, header=10)
    on = Hosts({"plant": ["left"], "lab": ["right"]}, link, {("lab", "plant"): Link(header=0)})
    made = Distribution("20 ms", "linear").apply(hk.Composite(scenario(on), "0.2 s"))
    told = plan_cost(plan_tree(made))
    forth, back = sorted(told.links, key=lambda each: each.source == "lab")
    assert (forth.start.messages, forth.start.values, forth.each.messages, forth.each.values) == (2, 6, 1, 2)
    assert (back.start.messages, back.start.values, back.each.messages, back.each.values) == (2, 3, 1, 1)
    assert told.messages(50) == 4 + 100
    assert told.bytes(50) == (2 * 10 + 6 * 8 + 50 * (10 + 16)) + (3 * 8 + 50 * 8)
    assert told.link_time == pytest.approx((0.002 + 26 / 1000.0) / 0.2)
    assert told.rows()[0]["to"] == told.links[0].target


def test_steps_and_values_of_levels():
    """Ten small steps of two simulators on each of two hosts; by hand."""
    told = plan_cost(plan_tree(Distribution("20 ms", "linear").apply(hk.Composite(scenario(), "0.2 s"))))
    assert told.steps == {path: F(10) for path in told.steps}
    assert sorted(told.steps) == ["lab.left_at_lab", "lab.right", "plant.left", "plant.right_at_plant"]
    # outside 3 values fed and 3 again; plant: 1 value in each small step; lab: 2, 2 again when consistent,
    # and whenever its outputs are read from outside: after the step, and after the exchange
    assert told.values == 6 + 10 * 1 + 10 * 4 + 2 * 2


def test_rates_and_sweeps_multiply():
    flat = scenario().with_changes(hosts=None)
    multirate = plan_cost(plan_tree(hk.Composite(flat, "0.1 s", hk.Multirate({"right": 4}))))
    assert multirate.steps == {"left": F(1), "right": F(4)}
    turns = plan_cost(plan_tree(hk.Composite(flat, "0.1 s", hk.Asynchronous({"left": 3, "right": 8}))))
    assert turns.steps == {"left": F(3), "right": F(8)}
    swept = hk.Composite(flat, "0.1 s", hk.Iterate(tolerance=None, at_most=3))
    assert plan_cost(plan_tree(swept)).steps == {"left": F(3), "right": F(3)}
    settled = hk.Composite(flat, "0.1 s", hk.Iterate())
    assert plan_cost(plan_tree(settled), {"": 2.5}).steps == {"left": F(5, 2), "right": F(5, 2)}
    assert plan_cost(plan_tree(swept)).links == ()
    assert plan_cost(plan_tree(swept)).messages(10) == 0


def test_an_iteration_of_which_nothing_is_known_makes_two_sweeps():
    """Steps, values and work are counted by one rule: the second sweep finds that nothing changes."""
    flat = scenario().with_changes(hosts=None)
    settled = plan_tree(hk.Composite(flat, "0.1 s", hk.Iterate()))
    cost = plan_cost(settled)
    assert cost.steps == {"left": F(2), "right": F(2)}
    assert plan_work(settled) == Work(float(cost.values) / 0.1, pytest.approx(40))
    assert plan_work(settled, {"": 5}).steps == pytest.approx(100)
    assert plan_work(settled, {"": None}) == plan_work(settled)


def test_the_work_of_chosen_steps_is_not_known():
    with pytest.raises(hk.ScenarioError, match="not known before the run"):
        plan_work(plan_tree(hk.Composite(scenario(), "0.1 s", hk.Adaptive())))


def test_turns_are_counted_as_they_are_taken():
    """Asynchronous simulators send after each of their turns, not once in a step."""
    made = hk.Composite(scenario(), "0.1 s", hk.Asynchronous({"left": 3, "right": 8}))
    told, sent, steps, _, _ = counted(made, 1)
    assert (told.messages(steps), told.bytes(steps)) == sent


def test_what_a_solved_loop_takes_from_the_sweep_before_counts():
    """In a repeated body a Solve feeds its simulators and reads them, as the engine has it."""
    gain = hk.StateSpace(A=[], B=[], C=[], D=[[0.5]], inputs=["u"], outputs=["y"], x0=[])
    loop = hk.Scenario({"a": gain, "b": gain}, {"b.u": "a.y", "a.u": "b.y"})
    wiring = plan_tree(hk.Composite(loop, "0.1 s")).wiring
    solve = Solve(("a", "b"), ("a.y", "b.y"))
    assert {(drive.child, drive.port) for drive in feedback_drives((solve,), wiring)} == {(0, 0), (1, 0)}
    assert not any(feedback_drives((Read("a"), Read("b"), solve), wiring))
    assert {drive.child for drive in feedback_drives((Feed("b"), solve, Feed("a")), wiring)} == {0, 1}
    assert not any(feedback_drives((Read("a"), Read("b"), Feed("b")), wiring))
