"""What a plan costs before it is run: simulator steps, exchanged values, messages and bytes between hosts.

In:  the PlanTree of a composite: the plans and wirings of all its levels
Out: a Cost; nothing is opened

A message carries all values that one host uses of another. The reading goes through the plan as the engine
does: a value is new when it was evaluated again after something it depends on moved, and it is sent when
something on another host is fed that uses it. A run counts its own: `run.info["counts"]["messages"]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import assert_never

from hocket.errors import ScenarioError
from hocket.model.hosts import Hosts, Link
from hocket.plan.instructions import (
    Adapt,
    Admit,
    Body,
    Commit,
    Feed,
    Instant,
    Next,
    React,
    Read,
    Receive,
    Record,
    Repeat,
    Restore,
    Save,
    Send,
    Solve,
    Step,
    Times,
    Together,
    Try,
    adapts,
    feedback_drives,
    first_part,
    number_ports,
    walk,
)
from hocket.plan.messages import Load, Node, Pair, Post
from hocket.plan.verify.body_faults import steps_in, turn_order
from hocket.planning.tree import PlanTree, window_degree, window_obstacles, window_order

NUMBER = 8
"""Bytes of a value."""
LEAST = 2
"""Sweeps that an iteration to a tolerance makes at the least: the second finds that nothing changes."""


@dataclass(frozen=True)
class LinkCost:
    """What one host sends to another. `first` and `each` are of a step, `sweep` of a sweep more than that."""

    source: str
    target: str
    link: Link
    start: Load
    first: Load
    each: Load
    sweep: Load

    def load(self, steps: int, more: int = 0) -> Load:
        """Return what is sent until so many steps are done, with so many sweeps more than the least."""
        return self.start + (self.first + self.each * (steps - 1) if steps else Load()) + self.sweep * more

    def bytes(self, load: Load) -> int:
        """Return the size of so many messages."""
        return self.link.header * load.messages + NUMBER * load.values


@dataclass(frozen=True)
class Work:
    """What a coupling costs per second of simulated time.

    An exchange is one value set at a simulator or at a level: each connection counts at the rate of the
    level it belongs to, again where outputs are made consistent. A value that a level was given and hands on
    inside counts once. Micro steps are a simulator's own affair and do not count.
    """

    exchanges: float
    steps: float


@dataclass(frozen=True)
class Cost:
    """What a step of the outermost level costs, and what is sent between hosts."""

    step: Fraction
    steps: Mapping[str, Fraction]
    """Per simulator: its steps in a step of the outermost level."""
    values: Fraction
    """Values handed from output to input in it, at all levels."""
    links: tuple[LinkCost, ...] = ()
    hosts_step: Fraction = Fraction(1)
    """The step of the level whose models are on several hosts."""
    sweeps: int = 1
    """Sweeps of that level in a step, as they are counted here."""
    settles: bool = False
    """Whether that number is only the least: sweeps go on until the values agree."""

    def messages(self, steps: int, sweeps: int | None = None) -> int:
        """Return how many messages are sent in so many steps between hosts, the start included.

        `sweeps` is how many sweeps were made in all, where they go on until the values agree.
        """
        return sum(each.load(steps, self._extra_sweeps(steps, sweeps)).messages for each in self.links)

    def bytes(self, steps: int, sweeps: int | None = None) -> int:
        """Return how many bytes are sent in so many steps between hosts, the start included."""
        return sum(each.bytes(each.load(steps, self._extra_sweeps(steps, sweeps))) for each in self.links)

    def _extra_sweeps(self, steps: int, sweeps: int | None) -> int:
        return 0 if sweeps is None or not self.settles else sweeps - self.sweeps * steps

    @property
    def link_time(self) -> float:
        """Seconds on the links per simulated second, messages one after the other."""
        spent = [each.link.seconds(each.each.messages, each.bytes(each.each)) for each in self.links]
        return sum(spent) / float(self.hosts_step)

    def rows(self) -> list[dict[str, object]]:
        """Return a row per pair of hosts: what is sent at the start and in each later step."""
        return [
            {
                "from": each.source,
                "to": each.target,
                "start messages": each.start.messages,
                "start bytes": each.bytes(each.start),
                "messages": each.each.messages,
                "bytes": each.bytes(each.each),
            }
            for each in self.links
        ]


def plan_work(design: PlanTree, sweeps: Mapping[str, float | None] | None = None) -> Work:
    """Return what a composite costs per second; raises ScenarioError where steps are chosen as it runs."""
    for level in design.levels():
        if adapts(level.plan.step):
            what = "what a level costs that chooses its steps is not known before the run"
            raise ScenarioError(what, level.path or "the outermost level", "steps of one length")
    cost = plan_cost(design, sweeps)
    return Work(float(cost.values / cost.step), float(sum(cost.steps.values()) / cost.step))


def plan_cost(design: PlanTree, sweeps: Mapping[str, float | None] | None = None) -> Cost:
    """Return what a composite costs; `sweeps` tells those of levels that iterate to a tolerance, by path.

    Levels of which nothing is known make the least: two.
    """
    count = _InstructionCount(sweeps or {})
    count.add_body(design, design.plan.step, Fraction(1))
    step = design.composite.step
    found = distributed_level(design)
    if found is None:
        return Cost(step, count.steps, count.values)
    repeats = [
        each
        for _, each in walk(found.plan.step)
        if isinstance(each, Repeat) and any(feedback_drives(each.body, found.wiring))
    ]
    settles = any(each.until is not None for each in repeats)
    least = (LEAST if settles else repeats[0].at_most) if repeats else 1
    links = tuple(_link_costs(design, found, settles))
    return Cost(step, count.steps, count.values, links, found.composite.step, least, settles)


@dataclass
class _InstructionCount:
    """The steps of each simulator and the values exchanged, at all levels."""

    sweeps: Mapping[str, float | None]
    steps: dict[str, Fraction] = field(default_factory=dict)
    values: Fraction = Fraction(0)

    def add_body(self, level: PlanTree, body: Body, times: Fraction) -> None:
        """Count what a body does that is done so many times."""
        for instruction in body:
            match instruction:
                case Feed(sim, ports):
                    self._add_values(level, sim, times, ports)
                case Solve(sims):
                    for sim in sims:
                        self._add_values(level, sim, times)
                case Step(sim, fraction):
                    child = level.wiring.names.index(sim)
                    inner = level.inner.get(child)
                    if inner is None:
                        name = level.name(child)
                        self.steps[name] = self.steps.get(name, Fraction(0)) + times
                    else:
                        often = level.composite.step * fraction / inner.composite.step
                        self.add_body(inner, inner.plan.step, times * often)
                case Read(sim):
                    inner = level.inner.get(level.wiring.names.index(sim))
                    if inner is not None:
                        self.add_body(inner, inner.plan.output, times)
                case Together(bodies):
                    for each in bodies:
                        self.add_body(level, each, times)
                case Next(bodies):
                    for each in bodies:
                        self.add_body(level, each, times / steps_in(each)[0].fraction)
                case Times(n, inside):
                    self.add_body(level, inside, n * times)
                case Repeat(inside):
                    self.add_body(level, inside, times * self._sweeps(level, instruction))
                case Try(inside) | Adapt(inside):
                    self.add_body(level, inside, times)
                case Admit() | Save() | Restore() | Record():
                    pass
                case Send() | Receive():
                    pass  # messages are counted apart
                case Instant() | React() | Commit():
                    pass  # how often something happens is not known before the run
                case _:
                    assert_never(instruction)

    def _add_values(self, level: PlanTree, sim: str, times: Fraction, ports: tuple[str, ...] = ()) -> None:
        child = level.wiring.names.index(sim)
        pairs = zip(level.wiring.models[child].inputs, level.wiring.drives[child], strict=True)
        self.values += times * sum(
            drive is not None and drive.child >= 0 for port, drive in pairs if not ports or port.name in ports
        )

    def _sweeps(self, level: PlanTree, repeat: Repeat) -> Fraction:
        if not any(feedback_drives(repeat.body, level.wiring)):
            return Fraction(1)
        if repeat.until is None:
            return Fraction(repeat.at_most)
        return Fraction(self.sweeps.get(level.path) or LEAST).limit_denominator(10**6)


# messages


def distributed_level(design: PlanTree) -> PlanTree | None:
    """Return the level whose models are on several hosts; None: all run on one."""
    for level in design.levels():
        hosts = level.composite.scenario.hosts
        if hosts is not None and len(hosts.models) > 1 and not hosts.faults(level.wiring.names):
            return level
    return None


def hosts_of(level: PlanTree) -> Hosts:
    """Return the hosts of a level that has some."""
    hosts = level.composite.scenario.hosts
    assert hosts is not None
    return hosts


def start_post(design: PlanTree, level: PlanTree) -> Post:
    """Return what passes at the start, between the simulators at the ends of the tree."""
    wiring = design.leaves.wiring
    prefix = f"{level.path}." if level.path else ""
    placed = hosts_of(level).host_by_model()
    inside = [name for name in wiring.names if name.startswith(prefix)]
    homes = {name: placed.get(name.removeprefix(prefix).partition(".")[0], "") for name in inside}
    number = {place: leaf for leaf, place in enumerate(design.leaves.places)}
    predicted = [_leaf_node(level, node, number) for node in _handed_back(level, predicted=True)]
    post = Post.from_wiring(wiring, homes, predicted)
    for leaf in range(len(wiring.names)):
        post.step(leaf)  # none has been evaluated yet
    return post


def step_post(level: PlanTree) -> Post:
    """Return what passes in the steps of a level that has started."""
    post = Post.from_wiring(level.wiring, hosts_of(level).host_by_model(), _handed_back(level))
    post.count_past()
    for child in range(len(level.wiring.names)):
        post.step(child)
        post.read(child)
    post.mark_all_known()
    return post


def _leaf_node(level: PlanTree, node: Node, number: Mapping[tuple[str, int], int]) -> Node:
    """Return the output of a leaf that is behind an output of a child, by the numbers of leaves."""
    child, port = node
    if child not in level.inner:
        return number[level.path, child], port
    inner = level.inner[child]
    behind = inner.wiring.outputs[port]
    return _leaf_node(inner, (behind.child, behind.port), number)


def _handed_back(level: PlanTree, predicted: bool = False) -> Iterator[Node]:
    """Yield the outputs by which iterations find out whether they have ended.

    With `predicted` only those of iterations that begin with what was known before.
    """
    for _, each in walk(level.plan.step):
        if isinstance(each, Repeat):
            led = each.accelerate
            if predicted and (led is None or not led.predicts or each.until is not None):
                continue
            yield from ((drive.child, drive.port) for drive in feedback_drives(each.body, level.wiring))


def _link_costs(design: PlanTree, level: PlanTree, settles: bool) -> Iterator[LinkCost]:
    hosts, start = hosts_of(level), _start_loads(design, level)
    one, two = (_step_loads(level, LEAST + more) for more in ((0, 1) if settles else (0, 0)))
    for pair, (first, each) in one.items():
        yield LinkCost(*pair, hosts.between(*pair), start.get(pair, Load()), first, each, two[pair][1] - each)


def _start_loads(design: PlanTree, level: PlanTree) -> dict[Pair, Load]:
    """Return what is sent at the start between the hosts of a level."""
    post = start_post(design, level)
    _post_body(post, design.plan.start, LEAST)
    known: list[tuple[Fraction, int]] = []
    for each in sorted(design.levels(), key=lambda level: level.path):
        own = each.composite.step * first_part(each.plan.step), window_degree(each)
        if any(other == own or other[1] >= own[1] > 0 for other in known):
            continue
        known.append(own)
        if own[1] and not window_obstacles(design.leaves):
            _post_window(post, window_order(design.leaves), own[1])
    post.flush()
    return post.loads()


def _post_window(post: Post, order: list[int], degree: int) -> None:
    """Send the curves of a window: `degree` + 1 numbers for each value."""
    post.flush()
    post.mark_all_known()
    for _ in range(degree):
        for leaf in order:
            post.feed(leaf, degree + 1)
            post.step(leaf)
            post.read(leaf)
    post.flush(degree + 1)
    post.mark_all_known()


def _step_loads(level: PlanTree, sweeps: int) -> dict[Pair, tuple[Load, Load]]:
    """Return what is sent in the first step and in each later one, per pair of hosts."""
    post = step_post(level)
    loads = []
    for _ in range(3):
        before = post.loads()
        _post_body(post, level.plan.step, sweeps)
        after = post.loads()
        loads.append({pair: load - before[pair] for pair, load in after.items()})
    return {pair: (first, loads[2][pair]) for pair, first in loads[0].items()}


def _post_body(post: Post, body: Body, sweeps: int) -> None:
    """Send what a body sends; `sweeps` are those of iterations to a tolerance."""
    number = {name: child for child, name in enumerate(post.wiring.names)}
    for instruction in body:
        match instruction:
            case Feed(sim, ports):
                child = number[sim]
                post.feed(child, ports=number_ports(ports, post.wiring.models[child].inputs))
            case Step(sim):
                post.step(number[sim])
            case Read(sim, ports):
                child = number[sim]
                post.read(child, number_ports(ports, post.wiring.models[child].outputs))
            case Solve(sims, ports):
                post.solve([number[sim] for sim in sims], (post.wiring.output_places[path] for path in ports))
            case Together(bodies):
                for each in bodies:
                    _post_body(post, each, sweeps)
            case Next(bodies):
                parts = [steps_in(each)[0].fraction for each in bodies]
                for turn in turn_order([Fraction(0)] * len(parts), parts, Fraction(1)):
                    _post_body(post, bodies[turn], sweeps)
            case Times(n, inside):
                for _ in range(n):
                    _post_body(post, inside, sweeps)
            case Repeat(inside, until, at_most):
                given = any(feedback_drives(inside, post.wiring))
                for _ in range((at_most if until is None else sweeps) if given else 1):
                    _post_body(post, inside, sweeps)
                    if given:
                        post.flush()  # all hosts find out together whether it has ended
            case Save():
                post.flush()  # samples that are rolled back to are those that were sent
            case Try(inside) | Adapt(inside):
                _post_body(post, inside, sweeps)
            case Send(source, target, ports):
                post.send((source, target), ports)
            case Admit() | Restore() | Record() | Instant() | React() | Commit() | Receive():
                pass
            case _:
                assert_never(instruction)
