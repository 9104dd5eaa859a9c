"""What a plan costs before it is run: simulator steps, exchanged values, messages and bytes between hosts.

In:  the PlanTree of a composite: the plans and wirings of all its levels
Out: a Cost; nothing is opened

A message carries all values that one host uses of another. The reading goes through the plan as the engine
does: a value is new when it was evaluated again after something it depends on moved, and it is sent when
something on another host is fed that uses it. A run counts its own: `run.info["counts"]["messages"]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from hocket.coupling.graph import strong_components
from hocket.model.hosts import Hosts, Link
from hocket.plan.instructions import (
    Adapt,
    Body,
    Feed,
    Next,
    Read,
    Repeat,
    Solve,
    Step,
    Times,
    Together,
    Try,
    adapts,
    first_part,
    walk,
)
from hocket.plan.messages import Load, Pair, Post
from hocket.planning.tree import PlanTree


def start_loads(design: PlanTree, path: str, hosts: Hosts) -> dict[Pair, Load]:
    """Return what is sent at the start between the hosts of the level at this path."""
    wiring: Any = design.leaves.wiring
    prefix, placed = f"{path}." if path else "", hosts.host_by_model()
    homes = {
        name: placed.get(name.removeprefix(prefix).partition(".")[0], "")
        for name in wiring.names
        if name.startswith(prefix)
    }
    post = Post.from_wiring(wiring, homes)
    for leaf in range(len(wiring.names)):
        post.step(leaf)  # none has been evaluated yet
    _post_start(design.plan.start, post)
    known: list[tuple[Fraction, int]] = []
    for level in design.levels():
        own = level.composite.step * first_part(level.plan.step), _window_degree(level)
        if any(other == own or other[1] >= own[1] > 0 for other in known):
            continue
        known.append(own)
        if own[1] and all(m.capabilities.rollback and m.capabilities.variable_step for m in wiring.models):
            _post_window(post, own[1])
    post.flush()
    return post.loads()


def _post_start(body: Body, post: Post) -> None:
    number = {name: leaf for leaf, name in enumerate(post.wiring.names)}
    for instruction in body:
        match instruction:
            case Feed(sim):
                post.feed(number[sim])
            case Read(sim):
                post.read(number[sim])
            case Solve(sims, ports):
                post.solve([number[sim] for sim in sims], (post.wiring.output_places[path] for path in ports))
            case Together(bodies):
                for inner in bodies:
                    _post_start(inner, post)


def _window_degree(level: PlanTree) -> int:
    """Return the degree of the window that a level needs; 0: none."""
    if level.composite.start == "cold":
        return 0
    looking = max((each.degree for each in level.wiring.extrapolators if each.samples > 1), default=0)
    return looking + 1 if adapts(level.plan.step) else looking


def _post_window(post: Post, degree: int) -> None:
    """Send the curves of a window: `degree` + 1 numbers for each value."""
    post.flush()
    edges = {
        (drive.child, leaf)
        for leaf, (model, drives) in enumerate(zip(post.wiring.models, post.wiring.drives, strict=True))
        for port, drive in zip(model.inputs, drives, strict=True)
        if drive is not None
        and drive.child >= 0
        and any(port.name in output.feedthrough for output in model.outputs)
    }
    post.mark_all_known()
    for _ in range(degree):
        for group in strong_components(len(post.wiring.names), edges):
            for leaf in group:
                post.feed(leaf, degree + 1)
                post.step(leaf)
                post.read(leaf)
    post.flush(degree + 1)
    post.mark_all_known()


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
class Cost:
    """What a step of the outermost level costs, and what is sent between hosts."""

    step: Fraction
    steps: Mapping[str, Fraction]
    """Per simulator: its steps in a step of the outermost level."""
    values: Fraction
    """Values handed from output to input in it, at all levels."""
    links: tuple[LinkCost, ...] = ()
    hosts_path: str = ""
    """The level whose models are on several hosts."""
    hosts_step: Fraction = Fraction(1)
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


def plan_cost(design: PlanTree, sweeps: Mapping[str, float] | None = None) -> Cost:
    """Return what a composite costs; `sweeps` tells those of levels that iterate to a tolerance, by path."""
    known = dict(sweeps or {})
    steps: dict[str, Fraction] = {}
    values = _count_level(design, Fraction(1), steps, known)
    found = next((level for level in design.levels() if _distributed_hosts(level)), None)
    if found is None:
        return Cost(design.composite.step, dict(steps), values)
    repeats = [
        each
        for _, each in walk(found.plan.step)
        if isinstance(each, Repeat) and _fed_back_outputs(found, each.body)
    ]
    settles = any(each.until is not None for each in repeats)
    return Cost(
        design.composite.step,
        dict(steps),
        values,
        tuple(_link_costs(design, found, settles)),
        found.path,
        found.composite.step,
        (LEAST if settles else repeats[0].at_most) if repeats else 1,
        settles,
    )


def _distributed_hosts(level: PlanTree) -> Hosts | None:
    """Return the hosts of a level whose models are on several."""
    hosts = level.composite.scenario.hosts
    good = hosts is not None and len(hosts.models) > 1 and not hosts.faults(level.wiring.names)
    return hosts if good else None


# steps and values


@dataclass
class _InstructionCount:
    """What a body does, how often."""

    level: PlanTree
    steps: dict[int, Fraction] = field(default_factory=dict)
    values: Fraction = Fraction(0)

    def count_body(self, body: Body, times: Fraction, sweeps: Fraction) -> None:
        for instruction in body:
            match instruction:
                case Step(sim, fraction):
                    child = self.level.wiring.names.index(sim)
                    self.steps[child] = self.steps.get(child, Fraction(0)) + times * fraction
                case Feed(sim):
                    self.values += times * self._input_count(sim)
                case Solve(sims):
                    self.values += times * sum(map(self._input_count, sims))
                case Together(bodies):
                    for inner in bodies:
                        self.count_body(inner, times, sweeps)
                case Times(n, inner):
                    self.count_body(inner, n * times, sweeps)
                case Next(bodies):
                    for inner in bodies:
                        part = next(each.fraction for each in inner if isinstance(each, Step))
                        self.count_body(inner, times / part, sweeps)
                case Repeat(inner, until, at_most):
                    self.count_body(inner, times * (at_most if until is None else sweeps), sweeps)
                case Try(inner) | Adapt(inner):
                    self.count_body(inner, times, sweeps)

    def _input_count(self, sim: str) -> int:
        drives = self.level.wiring.drives[self.level.wiring.names.index(sim)]
        return sum(drive is not None and drive.child >= 0 for drive in drives)


def _count_level(
    level: PlanTree, times: Fraction, steps: dict[str, Fraction], sweeps: Mapping[str, float]
) -> Fraction:
    """Count the steps of a level that is stepped so often; return the values exchanged in it and inside."""
    tally = _InstructionCount(level)
    tally.count_body(level.plan.step, times, Fraction(sweeps.get(level.path, LEAST)).limit_denominator(10**6))
    values = tally.values
    length: Fraction = level.composite.step
    for child, whole in tally.steps.items():
        # `whole` is in steps of this level: parts of a step were counted as parts
        inner = level.inner.get(child)
        if inner is None:
            steps[level.name(child)] = _step_calls(level, child, whole)
        else:
            values += _count_level(inner, whole * length / inner.composite.step, steps, sweeps)
    return values


def _step_calls(level: PlanTree, child: int, whole: Fraction) -> Fraction:
    """Return how often a simulator is asked for a step, which may be a part of the level's."""
    parts = [
        each.fraction
        for _, each in walk(level.plan.step)
        if isinstance(each, Step) and each.sim == level.wiring.names[child]
    ]
    return whole / min(parts)


# messages


def _link_costs(design: PlanTree, level: PlanTree, settles: bool) -> list[LinkCost]:
    hosts: Any = _distributed_hosts(level)
    start = start_loads(design, level.path, hosts)
    one, two = (_step_loads(level, hosts, LEAST + more) for more in ((0, 1) if settles else (0, 0)))
    return [
        LinkCost(*pair, hosts.between(*pair), start[pair], first, each, two[pair][1] - each)
        for pair, (first, each) in one.items()
    ]


def _step_loads(level: PlanTree, hosts: Hosts, sweeps: int) -> dict[tuple[str, str], tuple[Load, Load]]:
    """Return what is sent in the first step and in each later one, per pair of hosts."""
    post = Post.from_wiring(level.wiring, hosts.host_by_model())
    for child in range(len(level.wiring.names)):
        post.step(child)
        post.read(child)
    post.mark_all_known()
    loads = []
    for _ in range(3):
        before = post.loads()
        _post_body(level, level.plan.step, post, sweeps)
        after = post.loads()
        loads.append({pair: load - before[pair] for pair, load in after.items()})
    return {pair: (first, loads[2][pair]) for pair, first in loads[0].items()}


def _post_body(level: PlanTree, body: Body, post: Post, sweeps: int) -> None:
    number = {name: child for child, name in enumerate(level.wiring.names)}
    for instruction in body:
        match instruction:
            case Feed(sim):
                post.feed(number[sim])
            case Step(sim):
                post.step(number[sim])
            case Read(sim):
                post.read(number[sim])
            case Solve(sims, ports):
                post.solve([number[sim] for sim in sims], (post.wiring.output_places[path] for path in ports))
            case Together(bodies) | Next(bodies):
                for inner in bodies:
                    _post_body(level, inner, post, sweeps)
            case Times(n, inner):
                for _ in range(n):
                    _post_body(level, inner, post, sweeps)
            case Repeat(inner, until, at_most, accelerate):
                given = _fed_back_outputs(level, inner)
                for sweep in range(1, 1 + ((at_most if until is None else sweeps) if given else 1)):
                    if accelerate is not None and sweep > LEAST:
                        post.renew(given)
                    _post_body(level, inner, post, sweeps)
            case Try(inner) | Adapt(inner):
                _post_body(level, inner, post, sweeps)


def _fed_back_outputs(level: PlanTree, body: Body) -> set[tuple[int, int]]:
    """Return the outputs that a sweep is given by the one before: those fed from before they are read."""
    read: set[int] = set()
    found: set[tuple[int, int]] = set()
    number = {name: child for child, name in enumerate(level.wiring.names)}
    for _, instruction in walk(body):
        match instruction:
            case Feed(sim):
                drives = level.wiring.drives[number[sim]]
                found |= {(d.child, d.port) for d in drives if d and d.child >= 0 and d.child not in read}
            case Read(sim):
                read.add(number[sim])
    return found
