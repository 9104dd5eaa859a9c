"""Ports that are fed and read one by one: both engines agree in every bit, also with plans by simulators.

Splitting a feed or a read into its ports moves no value to another time, so a plan that is split everywhere
gives the numbers of the whole one, whatever the plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import hocket
from hocket import Port, Scenario, StateSpace
from hocket.model.composite import Composite, as_level
from hocket.model.hosts import Hosts
from hocket.plan import (
    Adapt,
    Feed,
    Next,
    Plan,
    Read,
    Record,
    Repeat,
    Restore,
    Save,
    Step,
    Times,
    Together,
    Try,
    walk,
)
from hocket.plan.accelerators import Aitken
from hocket.planning.cost import plan_cost
from hocket.planning.planner import plan_tree
from native.random_scenarios import draw
from native.test_bits import SEED, drawn
from systems import ENGINES, slow_after


@dataclass(frozen=True)
class Split:
    """An algorithm like the one inside, whose plan feeds and reads port by port."""

    whole: Any

    def __getattr__(self, name):
        return getattr(object.__getattribute__(self, "whole"), name)

    def plan(self, scenario):
        made = self.whole.plan(scenario)
        return replace(
            made, step=split_body(made.step, scenario.models), output=split_body(made.output, scenario.models)
        )


def split_body(body, models):
    return tuple(piece for each in body for piece in split_instruction(each, models))


def split_instruction(each, models):
    match each:
        case Feed(sim) | Read(sim):
            ports = models[sim].inputs if isinstance(each, Feed) else models[sim].outputs
            return [type(each)(sim, (port.name,)) for port in ports] if len(ports) > 1 else [each]
        case Times() | Try() | Adapt() | Repeat():
            return [replace(each, body=split_body(each.body, models))]
        case Together(bodies) | Next(bodies):
            return [replace(each, bodies=tuple(split_body(body, models) for body in bodies))]
        case _:
            return [each]


def split(composite: Composite) -> Composite:
    """Return a composite whose plans are split, at all levels."""
    models = {name: split(level) if (level := as_level(model)) else model
              for name, model in composite.scenario.models.items()}  # fmt: skip
    scenario = composite.scenario.with_models(models)
    return composite.with_changes(scenario=scenario, orchestrator=Split(composite.orchestrator))


def tables_of(run):
    return {
        table.name: np.array([column.to_numpy() for column in run.table(table.name).columns])
        for table in run.tables
    }


def assert_same_bits(one, other):
    first, second = tables_of(one), tables_of(other)
    assert first.keys() == second.keys()
    for name in first:
        assert np.array_equal(first[name], second[name]), name
    assert one.info.get("bonds") == other.info.get("bonds")


@pytest.mark.parametrize("number", slow_after(15, range(100)))
def test_a_split_plan_gives_the_bits_of_the_whole_one_on_both_engines(number):
    print(f"HOCKET_SEED={SEED}, scenario {number}")
    it = drawn(number)
    options = {"start": it.start, "every": it.every, "record": it.record, "ledger": True}
    apart = split(it.composite)
    whole = hocket.run(it.composite, it.stop, engine="interpreter", **options)
    for engine, threads in (("interpreter", None), ("native", 1), ("native", 2)):
        run = hocket.run(apart, it.stop, engine=engine, threads=threads, **options)
        assert run.info["engine"] == engine
        assert_same_bits(run, whole)


def test_the_random_plans_are_split():
    """At least a third of the scenarios above have simulators with several inputs and several outputs."""
    found = 0
    for number in range(40):
        tree = plan_tree(split(draw(np.random.default_rng([SEED, number])).composite))
        every = [each for level in tree.levels() for _, each in walk(level.plan.step)]
        found += any(isinstance(each, Feed) and each.ports for each in every) and any(
            isinstance(each, Read) and each.ports for each in every
        )
    assert found > 13


class Written:
    """An orchestrator that hands out one plan."""

    def __init__(self, *step):
        self.made = Plan(step)

    def plan(self, scenario):
        return self.made


def pair(extrapolation=None, hosts=None):
    """Return a mass on a spring and a force that follows it, one input of which may be late."""
    mass = StateSpace(
        [[0.0, 1.0], [-1.0, 0.0]], [[0.0], [-1.0]], [[1.0, 0.0], [0.0, 1.0], [0.5, 0.0]], x0=[1.0, 0.0],
        inputs=[Port("fk", start=0.0)], outputs=["x", "v", "z"],
    )  # fmt: skip
    force = StateSpace(
        [[-1.0]], [[0.1, 0.2, 1.0]], [[1.0]], [[0.2, 0.5, 0.0]], x0=[0.0], outputs=["fk"],
        inputs=["x", "v", "z"],
    )  # fmt: skip
    links = {"mass.fk": "force.fk", "force.x": "mass.x", "force.v": "mass.v", "force.z": "mass.z"}
    bonds = {"joint": hocket.Bond("mass.fk", "force.v")}
    return Scenario({"mass": mass, "force": force}, links, bonds=bonds, hosts=hosts)


BOTH = ("mass", "force")
MIXED = (
    Feed("force", ("z",)), Feed("mass"), Step("mass"), Read("mass", ("x",)), Feed("force", ("x",)),
    Read("mass", ("v", "z")), Feed("force", ("v",)), Step("force"), Read("force"), Record(),
)  # fmt: skip
LATE_READ = (
    Feed("mass"), Feed("force"), Step("mass"), Step("force"), Read("force"), Read("mass", ("z",)),
    Read("mass", ("v",)), Feed("force", ("v",)), Read("mass", ("x",)), Read("force"), Record(),
)  # fmt: skip
"""The samples of the mass are stored late; the force is read again under one new input, seen from the end."""
ITERATED = (
    Feed("force", ("z",)), Save(BOTH),
    Repeat((Restore(BOTH), Feed("force", ("x", "v")), Step("force"), Read("force"),
            Feed("mass"), Step("mass"), Read("mass", ("x", "v"))), 1e-9, 60, Aitken(0.5)),
    Read("mass", ("z",)), Record(),
)  # fmt: skip
"""One input is fed before the iteration: it keeps the value from the start of the step."""
PLANS = {"mixed": MIXED, "late read": LATE_READ, "iterated": ITERATED}


@pytest.mark.parametrize(
    "extrapolation", ["hold", "linear", "quadratic", hocket.Hermite(1), hocket.Nepce(0.6)]
)
@pytest.mark.parametrize("name", PLANS)
def test_plans_by_ports_give_the_same_bits(name, extrapolation):
    made = hocket.Composite(pair(), "0.1 s", Written(*PLANS[name]), extrapolation)
    native, plain = (hocket.run(made, 2.0, engine=engine, ledger=True) for engine in ENGINES)
    assert native.info["engine"] == "native"
    assert "bonds" in native.info
    assert_same_bits(native, plain)
    assert native.info["counts"].get("sweeps") == plain.info["counts"].get("sweeps")


@pytest.mark.parametrize("name", PLANS)
def test_messages_by_ports_are_counted_as_predicted(name):
    """Mixed, by hand: x needs one message, v and z another as they are read later; fk goes back once."""
    on = Hosts({"plant": ["mass"], "lab": ["force"]})
    made = hocket.Composite(pair(hosts=on), "0.1 s", Written(*PLANS[name]))
    runs = [hocket.run(made, 1.0, engine=engine) for engine in ENGINES]
    one, other = (run.info["counts"]["messages"] for run in runs)
    assert one == other
    if name == "mixed":
        each = {(link.source, link.target): link.each.messages for link in plan_cost(plan_tree(made)).links}
        assert each == {("plant", "lab"): 2, ("lab", "plant"): 1}
        assert one["plant to lab"]["messages"] - one["plant to lab"]["start"] == 2 * 10
