"""Plans that feed and read single ports, and inputs that declare their reactivity.

The situations are those in which Thule, Gomes et al. verify co-simulation algorithms: a master that sets and
gets port by port, an input with the value before the step of its source, an algebraic loop over steps.
"""

import numpy as np
import pytest
from scipy.linalg import expm

import hocket as hk
from hocket import Port, Scenario, StateSpace
from hocket.analysis.linear_reading import read_linear
from hocket.analysis.stability import stability
from hocket.errors import ScenarioError
from hocket.plan import Feed, Plan, Read, Record, Repeat, Restore, Save, Step, Together
from hocket.plan.verify.verifier import find_delays, verify_plan
from hocket.planning.cost import plan_cost
from hocket.planning.planner import plan_tree
from systems import ENGINES

H = 0.1


class Written:
    """An orchestrator that hands out one plan."""

    def __init__(self, *step):
        self.made = Plan(step)

    def plan(self, scenario):
        return self.made


def pair(fk="delayed", x="reactive", v="reactive", z="delayed"):
    """Return a mass on a spring, and a force that follows two of its outputs at once and one by a lag."""
    mass = StateSpace(
        [[0.0, 1.0], [-1.0, 0.0]], [[0.0], [-1.0]], [[1.0, 0.0], [0.0, 1.0], [0.5, 0.0]], x0=[1.0, 0.0],
        inputs=[Port("fk", start=0.0, reactivity=fk)], outputs=["x", "v", "z"],
    )  # fmt: skip
    force = StateSpace(
        [[-1.0]], [[0.0, 0.0, 1.0]], [[1.0]], [[0.2, 0.5, 0.0]], x0=[0.0], outputs=["fk"],
        inputs=[Port("x", reactivity=x), Port("v", reactivity=v), Port("z", reactivity=z)],
    )  # fmt: skip
    links = {"mass.fk": "force.fk", "force.x": "mass.x", "force.v": "mass.v", "force.z": "mass.z"}
    return Scenario({"mass": mass, "force": force}, links)


SOUND = (
    Feed("force", ("z",)),
    Feed("mass"), Step("mass"),
    Read("mass", ("x",)), Feed("force", ("x",)),
    Read("mass", ("v", "z")), Feed("force", ("v",)),
    Step("force"), Read("force", ("fk",)),
    Record(),
)  # fmt: skip


def faults(*step, level=None, start=()):
    return verify_plan(Plan(tuple(step), start=tuple(start)), level or pair())


def test_a_plan_by_ports_is_sound_and_is_told_in_words():
    assert faults(*SOUND) == []
    lines = list(Plan(SOUND).lines())
    assert lines[2].strip() == "feed force (z), mass"
    assert "    read mass (v, z)" in lines
    delays = find_delays(Plan(SOUND), pair())
    assert [(each.source, each.target) for each in delays] == [("force.fk", "mass.fk"), ("mass.z", "force.z")]


def test_exchanged_values_are_those_of_the_ports():
    assert plan_cost(plan_tree(hk.Composite(pair(), H, Written(*SOUND)))).values == 4


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_by_ports_is_the_recursion_that_the_plan_says(engine):
    """Each port has the sample that its feed found: z that before the mass moved, x and v those after."""
    composite = hk.Composite(pair(), H, Written(*SOUND))
    run = hk.run(composite, 2.0, engine=engine)
    whole = expm(H * np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, -1.0], [0.0, 0.0, 0.0]]))
    x, w, decay = np.array([1.0, 0.0]), 0.0, np.exp(-H)
    fk = 0.2
    rows = [(1.0, fk)]
    for _ in range(20):
        z = 0.5 * x[0]
        x = whole[:2, :2] @ x + whole[:2, 2] * fk
        w = decay * w + (1.0 - decay) * z
        fk = w + 0.2 * x[0] + 0.5 * x[1]
        rows.append((x[0], fk))
    found = np.array([run["mass.x"], run["force.fk"]]).T
    assert found == pytest.approx(np.array(rows), abs=1e-12)


def test_the_linear_reading_of_a_plan_by_ports_predicts_its_run():
    composite = hk.Composite(pair(), H, Written(*SOUND))
    whole = expm(H * np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, -1.0], [0.0, 0.0, 0.0]]))
    decay = np.exp(-H)
    step = np.zeros((4, 4))  # x, v, w, fk
    step[:2, :2], step[:2, 3] = whole[:2, :2], whole[:2, 2]
    step[2, 0], step[2, 2] = 0.5 * (1.0 - decay), decay
    step[3] = step[2] + 0.2 * step[0] + 0.5 * step[1]
    true = np.abs(np.linalg.eigvals(step)).max()
    assert stability(read_linear(composite)).rho == pytest.approx(true, rel=1e-12)


@pytest.mark.parametrize(
    ("step", "kind", "port"),
    [
        # a connection is forgotten
        ((*SOUND[:6], *SOUND[7:]), "unfed input", "force.v"),
        # an output is never got
        ((*SOUND[:5], Read("mass", ("v",)), *SOUND[6:]), "never read", "mass.z"),
        # set before it was got
        ((*SOUND[:3], SOUND[4], SOUND[3], *SOUND[5:]), "unread source", "force.x"),
        # stepped in the wrong order
        ((Feed("force"), Step("force"), Read("force"), Feed("mass"), Step("mass"), Read("mass"), Record()),
         "reactive input", "force.x"),
        # all inputs at once: z is newer than it may be
        ((Feed("mass"), Step("mass"), Read("mass"), Feed("force"), Step("force"), Read("force"), Record()),
         "delayed input", "force.z"),
        ((*SOUND[:4], Feed("force", ("y",)), *SOUND[4:]), "unknown port", "force.y"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_plan_by_ports_is_named(step, kind, port):
    assert (kind, port) in [(fault.kind, fault.port) for fault in faults(*step)]


def test_the_message_of_a_wrong_reactivity():
    wrong = (Feed("mass"), Step("mass"), Read("mass"), Feed("force"), Step("force"), Read("force"), Record())
    (fault,) = faults(*wrong)
    assert fault.what == "`force.z` is delayed, and `force` is stepped from 0 of the step with `mass.z` of 1"
    assert fault.hint == "feed `force.z` by its name, before its source steps"
    assert faults(*wrong, level=pair(z="reactive")) == []
    with pytest.raises(ScenarioError, match=r"`force\.z` is delayed"):
        plan_tree(hk.Composite(pair(), H, Written(*wrong)))


def test_reactive_inputs_around_a_loop_need_an_iteration():
    level, both = pair("reactive", "reactive", "reactive", "reactive"), ("mass", "force")
    turns = (Feed("mass"), Step("mass"), Read("mass"), Feed("force"), Step("force"), Read("force"))
    assert [(fault.kind, fault.port) for fault in faults(*turns, Record(), level=level)] == [
        ("reactive input", "mass.fk")
    ]
    loop = (Save(both), Repeat((Restore(both), *turns), 1e-9, 50), Record())
    assert faults(*loop, level=level) == []


def test_a_start_by_ports():
    first = Together(((Read("mass", ("x", "z")),), (Read("mass", ("v",)),)))
    assert faults(*SOUND, start=(first, Feed("force", ("x", "v")), Read("force", ("fk",)))) == []
    (fault,) = faults(*SOUND, start=(first, Feed("force", ("x",)), Read("force")))
    assert (fault.kind, fault.port) == ("unknown at start", "force.fk")


def test_reactivity_is_one_of_two_words():
    with pytest.raises(ScenarioError, match="reactivity"):
        Port("u", reactivity="late")
