"""The situations of the Scenario-Verifier as plans: sound ones are accepted, known mistakes are refused.

The Scenario-Verifier of the INTO-CPS Association verifies co-simulation algorithms by model checking. Its
examples differ in the reactivity of inputs, in what outputs depend on, and in which simulators may reject a
step; these are systems of the same structure, written for hocket.
"""

from dataclasses import dataclass, replace
from fractions import Fraction as F

import numpy as np
import pytest

import hocket as hk
from hocket import Port, Python, Scenario, StateSpace
from hocket.errors import ScenarioError
from hocket.model.protocols import Capabilities
from hocket.plan import Feed, Plan, Read, Record, Repeat, Restore, Save, Solve, Step, Together, Try
from hocket.plan.verify.verifier import verify_plan
from hocket.planning.planner import plan_tree
from hocket.simulators.wrappers.emulation import ModelWrapper

R, D = "reactive", "delayed"


@dataclass(frozen=True)
class Differently(ModelWrapper):
    """A model like the one inside, with other capabilities."""

    model: StateSpace
    capabilities: Capabilities

    def open(self):
        return self.model.open()


def unit(inputs, outputs, **capabilities):
    """Return a simulator; `inputs` with their reactivity, `outputs` with what they depend on at once."""
    n, names = max(1, len(outputs)), list(inputs)
    A = -np.eye(n) - 0.3 * np.eye(n, k=1)
    B = np.array([[0.4 / (1 + row + column) for column in range(len(names))] for row in range(n)])
    C = np.eye(n)[: len(outputs)]
    D = np.array([[0.3 * (name in needed) for name in names] for needed in outputs.values()])
    ports = [Port(name, start=0.0, reactivity=kind) for name, kind in inputs.items()]
    blank = B.reshape(n, len(names)), C, D.reshape(len(outputs), len(names))
    made = StateSpace(A, *blank, [1.0] * n, inputs=ports, outputs=list(outputs))
    return Differently(made, replace(made.capabilities, **capabilities)) if capabilities else made


def pair(f=D, x=R, v=R, needs=("x", "v"), **capabilities):
    """Return a mover that shows where it is and how fast, and a spring that answers with a force."""
    mover = unit({"f": f}, {"x": (), "v": ()}, **capabilities)
    spring = unit({"x": x, "v": v}, {"f": needs}, **capabilities)
    links = {"mover.f": "spring.f", "spring.x": "mover.x", "spring.v": "mover.v"}
    return Scenario({"mover": mover, "spring": spring}, links)


def get(sim, *ports):
    return Read(sim, ports)


def put(sim, *ports):
    return Feed(sim, ports)


PAIR = ("mover", "spring")
SIMPLE = (
    put("mover", "f"), Step("mover"),
    get("mover", "x"), put("spring", "x"), get("mover", "v"), put("spring", "v"),
    Step("spring"), get("spring", "f"), Record(),
)  # fmt: skip
START = (
    get("mover", "x"), put("spring", "x"), get("mover", "v"), put("spring", "v"),
    get("spring", "f"), put("mover", "f"),
)  # fmt: skip


def follower():
    """Return the pair, and a third simulator that takes the force too and shows nothing."""
    more = pair()
    models = {**more.models, "third": unit({"f": D}, {})}
    return more.with_changes(
        models=models, connections=(*more.connections, hk.Connection("spring.f", "third.f"))
    )


WITH_THIRD = (
    put("third", "f"),
    *(Step("third", F(1, 3)), Feed("third")) * 2,
    Step("third", F(1, 3)),
    *SIMPLE,
)


def looped(**kinds):
    """Return a loop over the step, and one value that goes around it late."""
    mover = unit({"f": R}, {"x": (), "v": (), "z": ()})
    spring = unit({"x": R, "v": R, "z": D, **kinds}, {"f": ("x", "v")})
    links = {"mover.f": "spring.f", **{f"spring.{port}": f"mover.{port}" for port in "xvz"}}
    return Scenario({"mover": mover, "spring": spring}, links)


SEIDEL = (
    Restore(PAIR), put("spring", "x", "v"), Step("spring"), get("spring", "f"),
    put("mover", "f"), Step("mover"), get("mover", "x"), get("mover", "v"),
)  # fmt: skip
JACOBI = (
    Restore(PAIR), put("mover", "f"), put("spring", "x", "v"), Step("mover"), Step("spring"),
    get("mover", "x", "v"), get("spring", "f"),
)  # fmt: skip


LATE = (put("spring", "z"),), (get("mover", "z"),)


def iterated(body, around=LATE):
    return (*around[0], Save(PAIR), Repeat(tuple(body), 1e-10, 100), *around[1], Record())


def two_loops():
    one = looped()
    models = {**one.models, "left": unit({"a": R}, {"b": ()}), "right": unit({"a": R}, {"b": ()})}
    links = hk.Connection("right.b", "left.a"), hk.Connection("left.b", "right.a")
    return one.with_changes(models=models, connections=(*one.connections, *links))


OTHERS = ("left", "right")
OTHER_LOOP = (
    Restore(OTHERS), put("right", "a"), Step("right"), get("right", "b"),
    put("left", "a"), Step("left"), get("left", "b"),
)  # fmt: skip


def trio(**capabilities):
    """Return a loop of three that mixes reactive and delayed inputs."""
    models = {
        "mover": unit({"f": R}, {"x": (), "v": ()}, **capabilities),
        "spring": unit({"x": D, "v": R, "g": R}, {"f": ("v",), "z": ()}, **capabilities),
        "damper": unit({"z": D}, {"g": ()}, **capabilities),
    }
    links = {"mover.f": "spring.f", "spring.x": "mover.x", "spring.v": "mover.v"}
    return Scenario(models, {**links, "spring.g": "damper.g", "damper.z": "spring.z"})


TRIO = ("mover", "spring", "damper")
NESTED = (
    put("spring", "x"), put("damper", "z"), Save(TRIO),
    Repeat((
        Restore(TRIO), put("mover", "f"), put("spring", "v", "g"),
        Step("mover"), Step("spring"), Step("damper"),
        get("mover", "v"), get("spring", "f"), get("damper", "g"),
    ), 1e-10, 100),
    get("mover", "x"), get("spring", "z"), Record(),
)  # fmt: skip


def machine():
    """Return a supply, a plant, its load and a controller: inputs of both kinds at one simulator."""
    models = {
        "supply": unit({}, {"volt": (), "goal": ()}),
        "plant": unit({"v": R, "x": R, "o": D, "volt": R}, {"w": ("v",), "f": ("v", "x")}),
        "load": unit({"f": D}, {"x": (), "v": (), "end": ()}),
        "control": unit({"w": D, "goal": D, "end": D}, {"o": ()}),
    }
    links = {
        "plant.volt": "supply.volt", "control.goal": "supply.goal", "control.end": "load.end",
        "plant.o": "control.o", "control.w": "plant.w", "plant.x": "load.x", "plant.v": "load.v",
        "load.f": "plant.f",
    }  # fmt: skip
    return Scenario(models, links)


MACHINE = (
    put("plant", "o"), put("control", "goal"), put("control", "end"), put("control", "w"),
    Step("supply"), get("supply", "volt"), get("supply", "goal"),
    put("load", "f"), Step("load"), get("load", "x"), get("load", "v"), get("load", "end"),
    put("plant", "v"), put("plant", "x"), put("plant", "volt"),
    Step("control"), get("control", "o"),
    Step("plant"), get("plant", "w"), get("plant", "f"), Record(),
)  # fmt: skip


def delayed_pair():
    return pair(f=D, x=D, v=D, needs=())


SIDE_BY_SIDE = (
    put("mover", "f"), put("spring", "x", "v"), Step("mover"), Step("spring"),
    get("mover", "x", "v"), get("spring", "f"), Record(),
)  # fmt: skip
SWAPPED = (
    put("spring", "x", "v"), Step("spring"), get("spring", "f"),
    put("mover", "f"), Step("mover"), get("mover", "x", "v"), Record(),
)  # fmt: skip


def start_loop(**capabilities):
    """Return two outputs that depend on each other."""
    models = {
        "one": unit({"u": D}, {"y": ("u",)}, **capabilities),
        "two": unit({"u": D}, {"y": ("u",)}, **capabilities),
    }
    return Scenario(models, {"one.u": "two.y", "two.u": "one.y"})


LOOP_AT_START = (Solve(("one", "two"), ("one.y", "two.y")),)
APART = (
    put("one", "u"), put("two", "u"), Step("one"), Step("two"), get("one", "y"), get("two", "y"),
)  # fmt: skip

SOUND = {
    "one after the other": (pair(needs=()), Plan(SIMPLE, start=START)),
    "one after the other, outputs consistent": (pair(), Plan(SIMPLE, outputs="consistent", start=START)),
    "steps of other sizes": (follower(), Plan(WITH_THIRD)),
    "a loop over the step, one after the other": (looped(), Plan(iterated(SEIDEL))),
    "a loop over the step, side by side": (looped(), Plan(iterated(JACOBI))),
    "two loops": (
        two_loops(),
        Plan((*iterated(SEIDEL)[:-1], Save(OTHERS), Repeat(OTHER_LOOP, 1e-10, 100), Record())),
    ),
    "three in one loop, mixed inputs": (trio(), Plan(NESTED)),
    "a machine of mixed inputs": (machine(), Plan(MACHINE)),
    "all delayed": (delayed_pair(), Plan(SIDE_BY_SIDE)),
    "the other way round": (pair(f=R, x=D, v=D, needs=()), Plan(SWAPPED)),
    "a loop at the start": (start_loop(reevaluates=False), Plan((*APART, Record()), start=LOOP_AT_START)),
    "a loop at every step": (
        start_loop(),
        Plan((*APART, *LOOP_AT_START, Record()), outputs="consistent", start=LOOP_AT_START),
    ),
}
TRIED = {
    "one may reject its step": (pair(stops_early=True), Plan((Try(SIMPLE),))),
    "a loop within the search for a step": (trio(stops_early=True), Plan((Try(NESTED),))),
}


def kinds(scenario, made):
    return {(fault.kind, fault.sim, fault.port) for fault in verify_plan(made, scenario)}


class Written:
    """An orchestrator that hands out one plan."""

    def __init__(self, made):
        self.made = made

    def plan(self, scenario):
        return self.made


@pytest.mark.parametrize("name", [*SOUND, *TRIED])
def test_a_sound_algorithm_is_accepted(name):
    scenario, made = {**SOUND, **TRIED}[name]
    assert kinds(scenario, made) == set()


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_algorithm_runs_with_the_same_bits_on_both_engines(name):
    composite = hk.Composite(SOUND[name][0], "0.1 s", Written(SOUND[name][1]))
    native, plain = (hk.run(composite, 1.0, engine=engine) for engine in ("native", "interpreter"))
    assert native.info["engine"] == "native"
    assert all(np.array_equal(native[port], plain[port]) for port in plain.ports)


def without(body, gone):
    assert gone in body
    return tuple(each for each in body if each != gone)


def swap(body, one, other):
    return tuple(body[{one: other, other: one}.get(index, index)] for index in range(len(body)))


MISTAKES = {
    # a value that is never set
    "forgotten connection": (pair(), Plan(without(SIMPLE, SIMPLE[5])), ("unfed input", "spring", "spring.v")),
    # set before it was got
    "set before get": (pair(), Plan(swap(SIMPLE, 4, 5)), ("unread source", "spring", "spring.v")),
    "forgotten get": (pair(), Plan(without(SIMPLE, SIMPLE[7])), ("never read", "spring", "spring.f")),
    # the value of the end of the step, where that of its start is declared
    "wrong reactivity": (pair(x=D), Plan(SIMPLE), ("delayed input", "spring", "spring.x")),
    "wrong order": (pair(needs=()), Plan(SWAPPED), ("reactive input", "spring", "spring.x")),
    "side by side though reactive": (
        pair(needs=()), Plan(SIDE_BY_SIDE), ("reactive input", "spring", "spring.v"),
    ),
    "step of zero": (
        pair(), Plan((SIMPLE[0], Step("mover", F(0)), *SIMPLE[2:])), ("no way forward", "mover", ""),
    ),
    "no step": (machine(), Plan(without(MACHINE, Step("plant"))), ("never stepped", "plant", "")),
    "steps that end apart": (follower(), Plan(WITH_THIRD[2:]), ("too little", "third", "")),
    "late input set too late": (
        machine(), Plan((*MACHINE[:3], *MACHINE[4:-1], put("control", "w"), Record())),
        ("unfed input", "control", "control.w"),
    ),
    "late input set after its source": (
        machine(), Plan((MACHINE[0], *MACHINE[2:7], MACHINE[1], *MACHINE[7:])),
        ("delayed input", "control", "control.goal"),
    ),
    # loops
    "loop that is not iterated": (
        looped(), Plan((put("spring", "z"), *SEIDEL[1:], get("mover", "z"), Record())),
        ("reactive input", "spring", "spring.x"),
    ),
    "forgotten restore": (
        looped(), Plan(iterated((Restore(("spring",)), *SEIDEL[1:]))),
        ("repeat without restore", "mover", ""),
    ),
    "forgotten save": (
        looped(), Plan(without(iterated(SEIDEL), Save(PAIR))), ("repeat without save", "mover", ""),
    ),
    "late value inside the loop": (
        looped(),
        Plan(iterated((SEIDEL[0], put("spring", "z"), *SEIDEL[1:], get("mover", "z")), around=((), ()))),
        ("delayed input", "spring", "spring.z"),
    ),
    "forgotten connection in a loop": (
        trio(),
        Plan((*NESTED[:3], replace(NESTED[3], body=without(NESTED[3].body, get("mover", "v"))), *NESTED[4:])),
        ("never read", "mover", "mover.v"),
    ),
    "loop that is not solved": (
        start_loop(), Plan((*APART, Record()), outputs="consistent"), ("stale loop", "one", "one.y"),
    ),
    # the start
    "loop at the start that is not solved": (
        start_loop(reevaluates=False),
        Plan((*APART, Record()), start=(Feed("one"), Read("one"), Feed("two"), Read("two"))),
        ("unknown at start", "one", "one.y"),
    ),
    "output got before its inputs are set": (
        pair(), Plan(SIMPLE, start=(START[4], *START[:4])), ("unknown at start", "spring", "spring.f"),
    ),
    "output never got at the start": (
        pair(), Plan(SIMPLE, start=without(START, START[2])), ("unknown at start", "mover", "mover.v"),
    ),
    "unknown port at the start": (
        pair(), Plan(SIMPLE, start=(*START, put("mover", "fk"))), ("unknown port", "mover", "mover.fk"),
    ),
    "step at the start": (pair(), Plan(SIMPLE, start=(*START, Step("mover"))), ("not at the start", "", "")),
    # steps that may be rejected
    "rejected step": (pair(stops_early=True), Plan(SIMPLE), ("early stop", "mover", "")),
    "rejected step in a loop": (trio(stops_early=True), Plan(NESTED), ("early stop", "mover", "")),
    "rejected step that cannot be taken back": (
        pair(stops_early=True, rollback=False), Plan((Try(SIMPLE),)), ("try without rollback", "mover", ""),
    ),
    "search for a step with a forgotten connection": (
        pair(stops_early=True), Plan((Try(without(SIMPLE, SIMPLE[7])),)),
        ("never read", "spring", "spring.f"),
    ),
    # in parallel
    "race": (
        pair(needs=()), Plan((Together((SWAPPED[3:6], SWAPPED[:3])), Record())),
        ("race", "spring", "spring.x"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_refused_for_its_reason(name):
    scenario, made, reason = MISTAKES[name]
    assert reason in kinds(scenario, made)


def test_a_start_that_somebody_wrote_is_verified_before_a_run():
    plan_tree(hk.Composite(pair(), "0.1 s", Written(Plan(SIMPLE, start=START))))
    wrong = hk.Composite(pair(), "0.1 s", Written(Plan(SIMPLE, start=START[:4])))
    with pytest.raises(ScenarioError, match=r"`spring\.f` has no value when the run starts"):
        plan_tree(wrong)


class Stopping:
    """Shows the time; stops once, at 0.25 s, and takes a late force."""

    inputs = (Port("f", start=0.0, reactivity=D),)
    outputs = ("x", "v")
    variable_step = stops_early = True

    def start(self, t):
        self.t = t

    def output(self, t):
        return [self.t, 2.0 * self.t]

    def step(self, t, h, u):
        self.t = 0.25 if t < 0.25 < t + h else t + h
        return self.t

    def save(self):
        return self.t

    def restore(self, state):
        self.t = state


def test_the_search_for_a_common_step_meets_the_one_that_rejects():
    """The others are rolled back to 0.2 s, step to 0.25 s with it, and go on to 0.3 s."""
    scenario = pair(needs=())
    scenario = scenario.with_models({**scenario.models, "mover": Python(Stopping)})
    for step in ((Try(SIMPLE),), SIMPLE):  # the planner puts a Try around what has none
        run = hk.run(hk.Composite(scenario, "0.1 s", Written(Plan(step))), 0.4)
        assert run["mover.x"].t == pytest.approx(np.array([0.0, 0.1, 0.2, 0.25, 0.3, 0.4]), abs=1e-15)
        assert run["mover.x"].values == pytest.approx(run["mover.x"].t, abs=1e-15)


def test_what_a_delayed_input_gets_is_the_value_from_before_the_iteration():
    """z = exp(-t) of a lag alone; the spring's state follows z late, by hand: w' = e^-h w + (1 - e^-h) z."""
    mover = StateSpace(
        [[-1.0]], [[0.0]], [[1.0], [1.0]], x0=[1.0], inputs=[Port("f", reactivity=R)], outputs=["x", "z"]
    )
    spring = StateSpace(
        [[-1.0]], [[0.0, 1.0]], [[1.0]], x0=[0.0], outputs=["f"],
        inputs=[Port("x", reactivity=R), Port("z", reactivity=D)],
    )  # fmt: skip
    links = {"mover.f": "spring.f", "spring.x": "mover.x", "spring.z": "mover.z"}
    body = (
        Restore(PAIR), put("spring", "x"), Step("spring"), get("spring", "f"),
        put("mover", "f"), Step("mover"), get("mover", "x"),
    )  # fmt: skip
    scenario, made = Scenario({"mover": mover, "spring": spring}, links), Plan(iterated(body))
    assert kinds(scenario, made) == set()
    e, w, found = np.exp(-0.1), 0.0, [0.0]
    for k in range(10):
        w = e * w + (1.0 - e) * e**k
        found.append(w)
    for engine in ("native", "interpreter"):
        run = hk.run(hk.Composite(scenario, "0.1 s", Written(made)), 1.0, engine=engine)
        assert run["spring.f"].values == pytest.approx(np.array(found), abs=1e-14)
