"""Break-even: from how much work per exchange on several hosts gain."""

import math

import pytest

import hocket as hk
from command_line import good
from hocket.model.hosts import Hosts, Link
from hocket.planning.break_even import BreakEven, break_even
from hocket.planning.cost import plan_cost
from hocket.planning.planner import plan_tree
from systems import EXAMPLES, lag


def spread(how="jacobi", link=None, more=0):
    """Return lags that drive each other in a ring, one on the first host, the others on the second."""
    names = ["a", "b", *(f"c{number}" for number in range(more))]
    wires = {f"{name}.u": f"{names[place - 1]}.y" for place, name in enumerate(names)}
    hosts = Hosts({"here": ["a"], "there": names[1:]}, link or Link("2 ms", header=0))
    return hk.Composite(hk.Scenario({name: lag() for name in names}, wires, hosts=hosts), "1/10", how)


def even(composite):
    design = plan_tree(composite)
    return break_even(design, plan_cost(design))


def test_the_gain_is_that_of_the_formula():
    found = even(spread(more=1))
    assert found.shares == pytest.approx({"here": 1 / 3, "there": 2 / 3})
    assert found.exchange == pytest.approx(4e-3), "a message of 2 ms each way"
    assert found.limit == pytest.approx(1.5)
    for gain in (1.0, 1.2, 1.4):
        work = found.work_for(gain)
        assert work / (2 / 3 * work + 4e-3) == pytest.approx(gain)
    assert found.work_for(1.5) == math.inf


def test_hosts_that_wait_for_each_other_gain_nothing():
    found = even(spread("gauss-seidel"))
    assert found.limit == 1.0
    assert found.work_for(1.0) == math.inf


def test_one_host_has_none():
    assert even(hk.Composite(spread().scenario.with_changes(hosts=None), "1/10")) is None


def test_links_that_cost_nothing():
    assert even(spread(link=Link(0))).work_for(1.9) == 0.0


def test_it_is_printed():
    said = good("plan", EXAMPLES / "two_hosts.toml")
    # two messages of 2 ms, 40 + 8 and 40 + 16 bytes at 1 MB/s: 4.104 ms; twice that is where half is saved
    assert "work by simulator steps: plant 50 %, lab 50 %" in said
    assert "2 hosts gain from 0.00821 s of work per exchange on, 1.5 times from 0.0246 s on" in said


def test_three_hosts():
    assert BreakEven({"a": 0.2, "b": 0.2, "c": 0.6}, 1e-3, True).limit == pytest.approx(1 / 0.6)
