"""A plan laid out: one macro step from left to right in the order of its instructions, a lane per simulator.

In:  a PlanTree with its plans
Out: a Schedule: lanes, marks, bars, frames and arrows with their places, in pixels
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, TypeAlias

from hocket.coupling.wiring import OWN
from hocket.model.clock import format_duration
from hocket.plan import (
    Adapt,
    Admit,
    Body,
    Feed,
    Instruction,
    Next,
    Read,
    Record,
    Repeat,
    Restore,
    Save,
    Solve,
    Step,
    Times,
    Together,
    Try,
)
from hocket.plan.instructions import named_simulators, walk
from hocket.plan.plan import describe_instruction
from hocket.planning.tree import PlanTree
from hocket.report.level_boxes import stepping_order

LANE, HEAD, LABEL = 30, 46, 13
"""Heights: of a simulator's lane, of the lane of a level itself, of a line of words below."""

MarkKind: TypeAlias = Literal["feed", "read", "solve", "save", "restore", "admit", "record"]
FrameKind: TypeAlias = Literal["together", "repeat", "sweep", "times", "try", "substep", "gap"]


@dataclass(frozen=True)
class Lane:
    """One line of the picture: a simulator, or a level, whose children follow below it."""

    path: str
    name: str
    depth: int
    level: bool
    top: int
    floor: int
    """Where the lanes of a level end; below are the labels of what is around them."""
    bottom: int

    @property
    def middle(self) -> float:
        """Where its steps are, and its marks."""
        return self.top + (14 if self.level else LANE / 2)

    @property
    def inner(self) -> float:
        """Where the marks are of what a level does itself."""
        return self.top + 34 if self.level else self.middle


@dataclass(frozen=True)
class TimelineMark:
    """An instruction that takes no time."""

    kind: MarkKind
    x: float
    lane: Lane
    words: str

    @property
    def y(self) -> float:
        """How far down it is."""
        return self.lane.inner if self.kind in ("admit", "record") else self.lane.middle


@dataclass(frozen=True)
class Bar:
    """A step."""

    x: float
    width: float
    lane: Lane
    label: str
    words: str


@dataclass(frozen=True)
class Frame:
    """Something around instructions: what runs side by side, is repeated, or was left out."""

    kind: FrameKind
    x: float
    width: float
    top: float
    bottom: float
    label: str
    words: str
    row: int = 0
    """Of its label, below the lanes."""


@dataclass(frozen=True)
class Arrow:
    """A sample on its way from where it was read to where it is fed."""

    source: Lane
    x0: float
    target: Lane
    x1: float
    past: bool
    """The source has not made this step: the input is extrapolated."""
    inside: bool = False
    """The source is the level itself, its own inputs."""


@dataclass
class Schedule:
    """A picture of one macro step, not drawn yet."""

    lanes: list[Lane] = field(default_factory=list)
    marks: list[TimelineMark] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0
    left_out: int = 0
    """Simulators without a lane."""


def turn_order(bodies: tuple[Body, ...], most: int) -> tuple[list[Body], int]:
    """Return the bodies of a Next in the order in which they go, at most so many, and how many more go."""
    parts = [sum((i.fraction for _, i in walk(body) if isinstance(i, Step)), Fraction(0)) for body in bodies]
    moving = [number for number, part in enumerate(parts) if part]
    total = sum(int(1 / parts[number]) for number in moving)
    done = dict.fromkeys(moving, Fraction(0))
    order: list[Body] = []
    for _ in range(total if total <= most else most - 1):
        behind = min(moving, key=lambda number: done[number])
        done[behind] += parts[behind]
        order.append(bodies[behind])
    return order, total - len(order)


def feed_fractions(body: Body) -> Iterator[tuple[int, Fraction]]:
    """Yield for each Feed, by its id, the part of the step that is made under it; 0 if it is only read."""
    steps: dict[str, Fraction] = {}
    for _, instruction in reversed(list(walk(body))):
        match instruction:
            case Step(sim, fraction):
                steps[sim] = fraction
            case Read(sim):
                steps[sim] = Fraction(0)
            case Feed(sim):
                yield id(instruction), steps.get(sim, Fraction(0))


MARK, PAD, GAP, EDGE = 22, 12, 64, 16
"""Widths: of a mark, around what is inside, of what is left out, at both ends."""
STEPS = (220, 160, 120, 90, 66)
"""Widths of a step, the widest that fits."""
FITS = 1040
"""Pixels that most screens have for the lanes."""
MOST_LANES = 120
TURNS = 3
"""Turns of an asynchronous step that are drawn, for each sub-step that is."""
SWEPT = 4
"""Sub-steps that must have room before a second sweep of an iteration is drawn."""
WIDE = 3200
"""Pixels beyond which fewer sub-steps are drawn."""


def lay_out_step(root: PlanTree, name: str) -> Schedule:
    """Return the layout; where it would be too wide, fewer of the sub-steps are drawn."""
    layout = _Layout(root, name, 1, STEPS[-1])
    tries = [(4, step, FITS) for step in STEPS] + [(shown, STEPS[-1], WIDE) for shown in (4, 3, 2)]
    for shown, step, room in tries:
        tried = _Layout(root, name, shown, step)
        if tried.needed <= room:
            layout = tried
            break
    layout.fill()
    return layout.made


@dataclass
class _LevelWalk:
    """What is known of a level on the way through its plan."""

    level: PlanTree
    start: Fraction
    begin: float
    """Where its step begins: in seconds of the macro step, and in pixels."""
    admitted: float
    read: dict[int, float] = field(default_factory=dict)
    swept: set[int] = field(default_factory=set)
    """Those whose end of the step is known from a sweep before."""
    part: dict[int, Fraction] = field(default_factory=dict)
    """How much of the step each child has made."""
    saved: dict[int, Fraction] = field(default_factory=dict)


class _Layout:
    def __init__(self, root: PlanTree, name: str, shown: int, step: int):
        self.root, self.shown, self.step = root, shown, step
        self.made = Schedule()
        self.lane: dict[str, Lane] = {}
        self.rows: dict[str, list[FrameKind]] = {}
        self.numbers = {level.path: level.wiring.numbers() for level in root.levels()}
        self.ahead = {key: part for level in root.levels() for key, part in feed_fractions(level.plan.step)}
        self._add_lanes(root, name, 0, 4, False)
        self.made.lanes.sort(key=lambda lane: lane.top)
        self.needed = self._body_width(root, root.plan.step) + 2 * EDGE

    def fill(self) -> None:
        """Place everything."""
        root, lane = self.root, self.lane[""]
        length = format_duration(root.composite.step)
        across = self.needed - 2 * EDGE
        label = f"one macro step, {length}"
        self.made.bars.append(Bar(EDGE, across, lane, label, f"{label}: from t to t + {length}"))
        self._place_body(_LevelWalk(root, Fraction(0), EDGE, EDGE), root.plan.step, EDGE, across)
        self.made.width = self.needed
        self.made.height = lane.bottom + 6

    def _add_lanes(self, level: PlanTree, name: str, depth: int, top: int, often: bool) -> int:
        """Give a level and all in it their lanes; return where they end. `often`: it makes many steps."""
        at = top + HEAD
        for child in stepping_order(level):
            path, inner = level.name(child), level.inner.get(child)
            if len(self.lane) >= MOST_LANES:
                self.made.left_out += 1
            elif inner is not None:
                many = inner.composite.step < level.composite.step
                at = self._add_lanes(inner, level.wiring.names[child], depth + 1, at + 3, many)
            else:
                lane = Lane(path, level.wiring.names[child], depth + 1, False, at, at + LANE, at + LANE)
                self.lane[path] = lane
                self.made.lanes.append(lane)
                at += LANE
        rows: list[FrameKind] = ["substep"] if often else []
        inside = [instruction for _, instruction in walk(level.plan.step)]
        rows += ["sweep"] if any(self._sweep_count(i) > 1 for i in inside if isinstance(i, Repeat)) else []
        rows += [kind for kind, cls in _AROUND if any(isinstance(i, cls) for i in inside)]
        self.rows[level.path] = rows
        bottom = at + 5 + LABEL * len(rows)
        self.lane[level.path] = Lane(level.path, name, depth, True, top, at, bottom)
        self.made.lanes.append(self.lane[level.path])
        return bottom + 3

    def _split_repeats(self, count: Fraction | int) -> tuple[int, int]:
        """Return how many of so many repetitions are drawn, and how many are left out."""
        whole = max(1, int(count))
        drawn = whole if whole <= self.shown else max(1, self.shown - 1)
        return drawn, whole - drawn

    def _sweep_count(self, repeat: Repeat) -> int:
        """Return how many sweeps of an iteration are drawn: one that extrapolates, one that knows better."""
        return min(repeat.at_most, 2) if self.shown >= SWEPT else 1

    def _substep_count(self, level: PlanTree, step: Step) -> Fraction:
        inner = level.inner[self.numbers[level.path][step.sim]]
        return level.composite.step * step.fraction / inner.composite.step

    def _body_width(self, level: PlanTree, body: Body) -> float:
        return sum(self._instruction_width(level, instruction) for instruction in body)

    def _instruction_width(self, level: PlanTree, instruction: Instruction) -> float:
        sims = named_simulators(instruction)
        if sims and not any(level.name(self.numbers[level.path][sim]) in self.lane for sim in sims):
            return 0.0
        match instruction:
            case Step(sim):
                child = self.numbers[level.path][sim]
                if child not in level.inner:
                    return self.step
                inner = level.inner[child]
                drawn, rest = self._split_repeats(self._substep_count(level, instruction))
                return drawn * (self._body_width(inner, inner.plan.step) + PAD) + (GAP if rest else 0) + PAD
            case Together(bodies):
                return max((self._body_width(level, body) for body in bodies), default=0.0)
            case Next(bodies):
                order, rest = turn_order(bodies, TURNS * self.shown)
                return sum(self._body_width(level, body) for body in order) + (GAP if rest else 0) + PAD
            case Times(n, body):
                drawn, rest = self._split_repeats(n)
                return drawn * self._body_width(level, body) + (GAP if rest else 0) + PAD
            case Repeat(body):
                return self._sweep_count(instruction) * (self._body_width(level, body) + PAD) + PAD
            case Try(body) | Adapt(body):
                return self._body_width(level, body) + PAD
        return MARK

    def _place_body(self, way: _LevelWalk, body: Body, x: float, room: float) -> None:
        """Place instructions one after the other; one alone has all the room."""
        for instruction in body:
            wide = room if len(body) == 1 else self._instruction_width(way.level, instruction)
            self._place_instruction(way, instruction, x, wide)
            x += wide

    def _place_instruction(self, way: _LevelWalk, instruction: Instruction, x: float, room: float) -> None:
        match instruction:
            case Step():
                self._place_step(way, instruction, x, room)
            case Together(bodies):
                self._place_together(way, bodies, x, room)
            case Times(n, body):
                self._place_times(way, n, body, x, room)
            case Next():
                self._place_next(way, instruction, x)
            case Repeat():
                self._place_repeat(way, instruction, x, room)
            case Try(body) | Adapt(body):
                label = "may end early" if isinstance(instruction, Try) else "steps as long as errors allow"
                self._add_frame("try", way.level, x, room, label, describe_instruction(instruction))
                self._place_body(way, body, x + PAD / 2, room - PAD)
            case _:
                self._place_marks(way, instruction, x + min(room, MARK) / 2)

    def _place_marks(self, way: _LevelWalk, instruction: Instruction, x: float) -> None:
        level, said = way.level, describe_instruction(instruction)
        number = self.numbers[level.path]
        match instruction:
            case Admit():
                way.admitted = x
                self._add_mark("admit", x, level.path, said)
            case Record():
                self._add_mark("record", x, level.path, said)
            case Feed(sim):
                self._add_arrows(way, number[sim], self.ahead.get(id(instruction), Fraction(0)), x)
                self._add_mark("feed", x, level.name(number[sim]), said)
            case Read(sim):
                way.read[number[sim]] = x
                self._add_mark("read", x, level.name(number[sim]), said)
            case Solve(sims) | Save(sims) | Restore(sims):
                kinds: dict[type, MarkKind] = {Solve: "solve", Save: "save", Restore: "restore"}
                for sim in sims:
                    self._add_mark(kinds[type(instruction)], x, level.name(number[sim]), said)
                    self._track_motion(way, instruction, number[sim], x)

    def _track_motion(self, way: _LevelWalk, instruction: Instruction, child: int, x: float) -> None:
        if isinstance(instruction, Solve):
            way.read[child] = x
        elif isinstance(instruction, Save):
            way.saved[child] = way.part.get(child, Fraction(0))
        else:
            way.part[child] = way.saved.get(child, Fraction(0))

    def _add_mark(self, kind: MarkKind, x: float, path: str, said: str) -> None:
        if path in self.lane:
            self.made.marks.append(TimelineMark(kind, x, self.lane[path], said))

    def _add_arrows(self, way: _LevelWalk, child: int, further: Fraction, x: float) -> None:
        """Draw what is fed to a child; it is the past of whoever has not come as far as the child will go."""
        level = way.level
        end = way.part.get(child, Fraction(0)) + further
        target = self.lane.get(level.name(child))
        for source in dict.fromkeys(drive.child for drive in level.wiring.drives[child] if drive is not None):
            lane = self.lane.get(level.path if source == OWN else level.name(source))
            if lane is None or target is None:
                continue
            from_x = way.admitted if source == OWN else way.read.get(source, way.begin)
            known = Fraction(1) if source in way.swept else way.part.get(source, Fraction(0))
            past = known < end and source >= 0
            self.made.arrows.append(Arrow(lane, min(from_x, x), target, x, past, source == OWN))

    def _place_step(self, way: _LevelWalk, step: Step, x: float, room: float) -> None:
        level = way.level
        child = self.numbers[level.path][step.sim]
        done = way.part.get(child, Fraction(0))
        begin = way.start + done * level.composite.step
        length = step.fraction * level.composite.step
        way.part[child] = done + step.fraction
        path = level.name(child)
        inner = level.inner.get(child)
        if path not in self.lane:
            return
        slow = inner is not None and inner.composite.step > level.composite.step
        label = format_duration(length)
        if slow and inner is not None:
            times = inner.composite.step / level.composite.step
            label = f"{format_duration(inner.composite.step)}, in one of {times} steps"
        said = f"{describe_instruction(step)}: {_format_moment(begin)} to {_format_moment(begin + length)}"
        self.made.bars.append(Bar(x + 2, room - 4, self.lane[path], label, said))
        if inner is not None:
            self._place_substeps(inner, begin, self._substep_count(level, step), x, room)

    def _place_substeps(
        self, inner: PlanTree, begin: Fraction, count: Fraction, x: float, room: float
    ) -> None:
        """Place the sub-steps of a level inside the step that is theirs."""
        drawn, rest = self._split_repeats(count)
        wide = (room - PAD - (GAP if rest else 0)) / drawn
        way = _LevelWalk(inner, begin, x, x)
        x += PAD / 2
        for number in range(drawn):
            way.start = begin + number * inner.composite.step
            way.begin = way.admitted = x
            way.swept, way.part = set(), {}
            if drawn + rest > 1:
                moment = _format_moment(way.start)
                self._add_frame("substep", inner, x, wide - 2, moment, f"from {moment}")
            self._place_body(way, inner.plan.step, x + PAD / 2, wide - PAD)
            x += wide
        if rest:
            self._add_frame("gap", inner, x, GAP - 6, f"{rest} more", f"{rest} more of the same")

    def _place_repeat(self, way: _LevelWalk, repeat: Repeat, x: float, room: float) -> None:
        self._add_frame("repeat", way.level, x, room, _repeat_label(repeat), describe_instruction(repeat))
        drawn = self._sweep_count(repeat)
        wide = (room - PAD) / drawn
        for number in range(drawn):
            at = x + PAD / 2 + number * wide
            if drawn > 1:
                label = _SWEEPS[number] if number == 0 or repeat.at_most > drawn else "second sweep"
                self._add_frame("sweep", way.level, at + 2, wide - 4, label, label)
            self._place_body(way, repeat.body, at + PAD / 2, wide - PAD)
            way.swept |= {child for child, part in way.part.items() if part == 1}

    def _place_together(self, way: _LevelWalk, bodies: tuple[Body, ...], x: float, room: float) -> None:
        tops = [self.lane[path] for path in self._lane_paths(way.level, bodies) if path in self.lane]
        if len(tops) > 1:
            top, bottom = min(lane.top for lane in tops), max(lane.bottom for lane in tops)
            self.made.frames.append(Frame("together", x + 1, room - 2, top, bottom, "", "side by side"))
        for body in bodies:
            self._place_body(way, body, x, room)

    def _lane_paths(self, level: PlanTree, bodies: tuple[Body, ...]) -> Iterator[str]:
        number = self.numbers[level.path]
        for body in bodies:
            for _, instruction in walk(body):
                yield from (level.name(number[sim]) for sim in named_simulators(instruction))

    def _place_times(self, way: _LevelWalk, n: int, body: Body, x: float, room: float) -> None:
        self._add_frame("times", way.level, x, room, f"{n} times", f"{n} times")
        drawn, rest = self._split_repeats(n)
        wide = (room - PAD - (GAP if rest else 0)) / drawn
        for number in range(drawn):
            self._place_body(way, body, x + PAD / 2 + number * wide, wide)
        if rest:
            at = x + PAD / 2 + drawn * wide
            self._add_frame("gap", way.level, at, GAP - 6, f"{rest} more", f"{rest} more of the same")

    def _place_next(self, way: _LevelWalk, following: Next, x: float) -> None:
        order, rest = turn_order(following.bodies, TURNS * self.shown)
        room = self._instruction_width(way.level, following)
        self._add_frame(
            "times",
            way.level,
            x,
            room,
            "↻ the one furthest behind goes next",
            describe_instruction(following),
        )
        at = x + PAD / 2
        for body in order:
            wide = self._body_width(way.level, body)
            self._place_body(way, body, at, wide)
            at += wide
        if rest:
            self._add_frame("gap", way.level, at, GAP - 6, f"{rest} more", f"{rest} more turns")

    def _add_frame(
        self, kind: FrameKind, level: PlanTree, x: float, width: float, label: str, said: str
    ) -> None:
        if level.path in self.lane:
            lane, rows = self.lane[level.path], self.rows[level.path]
            row = rows.index(kind) if kind in rows else 0
            top = lane.top + HEAD - 22
            self.made.frames.append(Frame(kind, x, width, top, lane.floor, label, said, row))


_AROUND: tuple[tuple[FrameKind, type | tuple[type, ...]], ...] = (
    ("times", (Times, Next)),
    ("repeat", Repeat),
    ("try", (Try, Adapt)),
)


_SWEEPS = ("first sweep", "each further sweep")


def _repeat_label(repeat: Repeat) -> str:
    until = "" if repeat.until is None else f"until {repeat.until:g}, "
    return f"↻ {until}at most {repeat.at_most}" if until else f"↻ {repeat.at_most} times"


def _format_moment(at: Fraction) -> str:
    return f"t + {format_duration(at)}" if at else "t"
