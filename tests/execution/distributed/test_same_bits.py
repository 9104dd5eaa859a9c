"""A scenario on its hosts gives the bits of one process, with the messages and bytes that were predicted."""

from __future__ import annotations

import numpy as np
import pytest

import hocket as hk
from hocket.execution.run import experiment_to_run
from hocket.files.experiments import as_experiment
from hocket.planning.compiler.distribution import Distribution
from hocket.planning.cost import plan_cost
from hocket.planning.planner import plan_tree
from native.random_scenarios import draw
from systems import EXAMPLES, lag, slow_after


def two_hosts(extrapolation="cubic", **options):
    read = as_experiment(EXAMPLES / "two_hosts.toml")
    level = Distribution("20 ms", extrapolation, **options).apply(
        read.composite.with_changes(extrapolation=extrapolation)
    )
    return experiment_to_run(level, stop=10)


def assert_same(one, other):
    assert one.ports == other.ports
    for port in one.ports:
        assert np.array_equal(one[port].t, other[port].t), port
        assert np.array_equal(one[port].values, other[port].values, equal_nan=True), port


def sent(run):
    counts = run.info["counts"].get("messages", {})
    return {pair: each for pair, each in counts.items() if each["messages"]}


def exact_error(run):
    """The coupled masses as one linear system, solved by the exponential of its matrix."""
    from scipy.linalg import expm

    a = np.array([[0, 1, 0, 0], [-2, -1.0, 1, 0.5], [0, 0, 0, 1], [1, 0.5, -2, -1]])
    times = run["plant.left.x"].t
    exact = np.array([expm(a * t) @ [1, 0, 0, 0] for t in times]).T
    names = ("plant.left.x", "plant.left.v", "lab.right.x", "lab.right.v")
    return max(np.abs(run[name].values - each).max() for name, each in zip(names, exact, strict=True))


@pytest.mark.parametrize("means", ["threads", "processes"])
def test_two_hosts_exchange_108_messages_and_the_error_is_that_of_one_process(means):
    """Gomes 2016, section 3.3: the figures of docs/distribution.md."""
    scene = two_hosts()
    alone, apart = hk.run(scene), hk.run_distributed(scene, means=means)
    assert_same(alone, apart)
    assert sum(each["messages"] for each in sent(apart).values()) == 108
    assert sent(apart) == sent(alone)
    assert exact_error(apart) == pytest.approx(1.22e-3, rel=5e-3)
    cost = plan_cost(plan_tree(scene.composite))
    assert cost.messages(50) == 108
    assert cost.bytes(50) == sum(each["bytes"] for each in sent(apart).values())
    assert {name: each["status"] for name, each in apart.info["hosts"].items()} == {
        "plant": "finished",
        "lab": "finished",
    }


@pytest.mark.parametrize("iterate", [3, 1e-6])
def test_iterations_over_hosts_end_on_all_of_them_at_once(iterate):
    scene = two_hosts("quadratic", iterate=iterate)
    alone, apart = hk.run(scene), hk.run_distributed(scene, means="threads")
    assert_same(alone, apart)
    assert sent(apart) == sent(alone)
    assert apart.info["counts"]["sweeps"] == alone.info["counts"]["sweeps"]


def on_random_hosts(seed):
    """A random scenario, its models on two to four hosts."""
    rng = np.random.default_rng(seed)
    drawn = draw(rng)
    scenario = drawn.composite.scenario
    names = [str(name) for name in rng.permutation(list(scenario.models))]
    if len(names) < 2:
        return None
    hosts = [f"host{number}" for number in range(int(rng.integers(2, min(4, len(names)) + 1)))]
    where = {host: [name] for host, name in zip(hosts, names, strict=False)}
    for name in names[len(hosts) :]:
        where[hosts[int(rng.integers(len(hosts)))]].append(name)
    level = drawn.composite.with_scenario(scenario.with_changes(hosts=where))
    return experiment_to_run(level, start=drawn.start, stop=drawn.stop)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seeds", slow_after(1, [range(at, at + 8) for at in range(0, 80, 8)]))
def test_random_scenarios_on_two_to_four_hosts(seeds):
    done = 0
    for seed in seeds:
        try:
            scene = on_random_hosts(seed)
            if scene is None:
                continue
            apart = hk.run_distributed(scene, means="threads", patience=20)
        except hk.ScenarioError:
            continue  # refused: steps that are chosen, slopes over hosts, loops over hosts
        alone = hk.run(scene)
        assert_same(alone, apart)
        assert sent(apart) == sent(alone), seed
        done += 1
    assert done >= len(seeds) // 2


def test_a_value_that_is_evaluated_again_after_it_was_sent_is_sent_again():
    """The second to newest sample was replaced at its time: the messages carry it once more."""
    reacting = hk.StateSpace([[-1.0]], [[1.0]], [[1.0]], [[0.5]], x0=[1.0], inputs=["u"], outputs=["y"])
    models = {"one": lag(), "two": reacting, "three": lag()}
    wires = {"one.u": "three.y", "two.u": "one.y", "three.u": "two.y"}
    hosts = {"here": ["one", "three"], "there": ["two"]}
    level = hk.Composite(
        hk.Scenario(models, wires, hosts=hosts),
        "0.1 s",
        hk.GaussSeidel(["two", "one", "three"]),
        extrapolation="quadratic",
    )
    scene = experiment_to_run(level, stop=2)
    alone, apart = hk.run(scene), hk.run_distributed(scene, means="threads")
    assert_same(alone, apart)
    assert sent(alone) == sent(apart)
    assert plan_cost(plan_tree(level)).bytes(20) == sum(each["bytes"] for each in sent(apart).values())


@pytest.mark.parametrize("iterate", slow_after(1, [None, 1e-6]))
def test_helics_gives_the_same_bits(iterate):
    pytest.importorskip("helics")
    scene = two_hosts("cubic" if iterate is None else "quadratic", iterate=iterate)
    alone, apart = hk.run(scene), hk.run_distributed(scene, means="helics")
    assert_same(alone, apart)
    assert sent(apart) == sent(alone)


def three_hosts():
    models = {"one": lag(), "two": lag(-0.5, 0.3), "three": lag(2.0)}
    wires = {"one.u": "three.y", "two.u": "one.y", "three.u": "two.y"}
    hosts = {"here": ["one"], "there": ["two"], "away": ["three"]}
    level = hk.Composite(hk.Scenario(models, wires, hosts=hosts), "0.1 s", extrapolation="quadratic")
    return experiment_to_run(level, stop=3)


@pytest.mark.parametrize("means", slow_after(1, ["processes", "helics"]))
def test_three_hosts(means):
    if means == "helics":
        pytest.importorskip("helics")
    scene = three_hosts()
    alone, apart = hk.run(scene), hk.run_distributed(scene, means=means)
    assert_same(alone, apart)
    assert sent(apart) == sent(alone)


def test_what_cannot_be_divided_is_refused_with_the_reason():
    scene = three_hosts()
    adaptive = scene.composite.with_changes(orchestrator=hk.Adaptive())
    with pytest.raises(hk.ScenarioError, match="no host knows alone"):
        hk.run_distributed(adaptive, 3, means="threads")
    one = scene.composite.scenario.with_changes(hosts=None)
    with pytest.raises(hk.ScenarioError, match="on one host"):
        hk.run_distributed(hk.Composite(one, "0.1 s"), 3, means="threads")
    with pytest.raises(hk.ScenarioError, match='"threads", "processes" or "helics"'):
        hk.run_distributed(scene, means="pigeons")
