"""A plan laid out: one macro step from left to right in the order of its instructions, a lane per simulator.

In:  a PlanTree with its plans
Out: a Schedule: lanes, marks, bars, frames and arrows with their places, in pixels
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, TypeAlias, assert_never

from hocket.coupling.wiring import OWN
from hocket.model.clock import format_duration
from hocket.plan import (
    Adapt,
    Admit,
    Body,
    Commit,
    Feed,
    Instant,
    Instruction,
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
)
from hocket.plan.instructions import describe_instruction, named_simulators, walk
from hocket.plan.verify.body_faults import steps_in, turn_order
from hocket.planning.tree import PlanTree
from hocket.report.level_boxes import stepping_order

LANE, HEAD, LABEL = 30, 46, 13
"""Heights: of a simulator's lane, of the lane of a level itself, of a line of words below."""

MarkKind: TypeAlias = Literal[
    "feed", "read", "solve", "save", "restore", "admit", "record", "react", "commit", "send", "receive"
]
Marked: TypeAlias = Admit | Feed | Read | Solve | Save | Restore | Record | React | Commit | Send | Receive
"""The instructions that take no time."""
FrameKind: TypeAlias = Literal["together", "repeat", "iteration", "times", "try", "substep", "gap"]


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
ITERATED = 4
"""Sub-steps that must have room before a second iteration is drawn."""
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
    iterated: set[int] = field(default_factory=set)
    """Those whose end of the step is known from an iteration before."""
    part: defaultdict[int, Fraction] = field(default_factory=lambda: defaultdict(Fraction))
    """How much of the step each child has made."""
    saved: defaultdict[int, Fraction] = field(default_factory=lambda: defaultdict(Fraction))


@dataclass(frozen=True)
class _Cells:
    """Bodies that are drawn one after the other: sub-steps, turns, iterations, or just one."""

    level: PlanTree
    bodies: Sequence[Body]
    rest: int = 0
    """How many more there are."""
    pad: int = 0
    """Around each."""


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
        rows += (
            ["iteration"]
            if any(self._iteration_count(i) > 1 for i in inside if isinstance(i, Repeat))
            else []
        )
        rows += [kind for kind, cls in _AROUND if any(isinstance(i, cls) for i in inside)]
        self.rows[level.path] = rows
        bottom = at + 5 + LABEL * len(rows)
        self.lane[level.path] = Lane(level.path, name, depth, True, top, at, bottom)
        self.made.lanes.append(self.lane[level.path])
        return bottom + 3

    def _iteration_count(self, repeat: Repeat) -> int:
        """Return how many iterations are drawn: one that extrapolates, one that knows better."""
        return min(repeat.at_most, 2) if self.shown >= ITERATED else 1

    def _cells(self, level: PlanTree, instruction: Instruction) -> _Cells | None:
        """Return what is drawn inside an instruction, one after the other; None: nothing, or side by side."""
        match instruction:
            case Step(sim, fraction):
                inner = level.inner.get(self.numbers[level.path][sim])
                if inner is None:
                    return None
                count = level.composite.step * fraction / inner.composite.step
                drawn, rest = _split_repeats(count, self.shown)
                return _Cells(inner, [inner.plan.step] * drawn, rest, PAD)
            case Times(n, body):
                drawn, rest = _split_repeats(n, self.shown)
                return _Cells(level, [body] * drawn, rest)
            case Next(bodies):
                parts = [steps_in(body)[0].fraction for body in bodies]
                turns = list(turn_order([Fraction(0)] * len(parts), parts, Fraction(1)))
                drawn, rest = _split_repeats(len(turns), TURNS * self.shown)
                return _Cells(level, [bodies[turn] for turn in turns[:drawn]], rest)
            case Repeat(body):
                return _Cells(level, [body] * self._iteration_count(instruction), 0, PAD)
            case Try(body) | Adapt(body) | Instant(body):
                return _Cells(level, [body])
            case (
                Together()
                | Admit()
                | Feed()
                | Read()
                | Solve()
                | Save()
                | Restore()
                | Record()
                | React()
                | Commit()
                | Send()
                | Receive()
            ):
                return None
            case _:
                assert_never(instruction)

    def _body_width(self, level: PlanTree, body: Body) -> float:
        return sum(self._instruction_width(level, instruction) for instruction in body)

    def _instruction_width(self, level: PlanTree, instruction: Instruction) -> float:
        sims = named_simulators(instruction)
        if sims and not any(level.name(self.numbers[level.path][sim]) in self.lane for sim in sims):
            return 0.0
        cells = self._cells(level, instruction)
        if cells is not None:
            inside = sum(self._body_width(cells.level, body) + cells.pad for body in cells.bodies)
            return inside + (GAP if cells.rest else 0) + PAD
        match instruction:
            case Step():
                return self.step
            case Together(bodies):
                return max((self._body_width(level, body) for body in bodies), default=0.0)
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
            case Repeat():
                self._place_repeat(way, instruction, x, room)
            case Times() | Next() | Try() | Adapt() | Instant():
                kind: FrameKind = "try" if isinstance(instruction, (Try, Adapt)) else "times"
                said = describe_instruction(instruction)
                self._add_frame(kind, way.level, x, room, _frame_label(instruction), said)
                for body, at, wide in self._place_cells(way.level, instruction, x, room):
                    self._place_body(way, body, at, wide)
            case Send() | Receive():
                self._place_marks(way, instruction, x + min(room, MARK) / 2)
            case Admit() | Feed() | Read() | Solve() | Save() | Restore() | Record() | React() | Commit():
                self._place_marks(way, instruction, x + min(room, MARK) / 2)
            case _:
                assert_never(instruction)

    def _place_cells(
        self, level: PlanTree, instruction: Instruction, x: float, room: float
    ) -> Iterator[tuple[Body, float, float]]:
        """Yield each body that is drawn inside an instruction, where it begins, and its width."""
        cells = self._cells(level, instruction)
        assert cells is not None
        natural = [self._body_width(cells.level, body) + cells.pad for body in cells.bodies]
        inside = room - PAD - (GAP if cells.rest else 0)
        x += PAD / 2
        for body, width in zip(cells.bodies, natural, strict=True):
            wide = inside * width / sum(natural) if sum(natural) else 0.0
            yield body, x, wide
            x += wide
        if cells.rest:
            more = f"{cells.rest} more"
            self._add_frame("gap", cells.level, x, GAP - 6, more, f"{more} of the same")

    def _place_marks(self, way: _LevelWalk, instruction: Marked, x: float) -> None:
        """Mark what takes no time in the lanes of the simulators it names, or in that of the level."""
        level, number = way.level, self.numbers[way.level.path]
        kind, said = _mark_kind(instruction), describe_instruction(instruction)
        children = [number[sim] for sim in _marked_simulators(instruction)]
        for path in [level.name(child) for child in children] or [level.path]:
            if path in self.lane:
                self.made.marks.append(TimelineMark(kind, x, self.lane[path], said))
        if kind == "admit":
            way.admitted = x
        for child in children:
            match kind:
                case "feed":
                    self._add_arrows(way, child, self.ahead.get(id(instruction), Fraction(0)), x)
                case "read" | "solve":
                    way.read[child] = x
                case "save":
                    way.saved[child] = way.part[child]
                case "restore":
                    way.part[child] = way.saved[child]

    def _add_arrows(self, way: _LevelWalk, child: int, further: Fraction, x: float) -> None:
        """Draw what is fed to a child: the past, if the source has not come as far as the child will go."""
        level = way.level
        end = way.part[child] + further
        target = self.lane.get(level.name(child))
        for source in dict.fromkeys(drive.child for drive in level.wiring.drives[child] if drive is not None):
            lane = self.lane.get(level.path if source == OWN else level.name(source))
            if lane is None or target is None:
                continue
            from_x = way.admitted if source == OWN else way.read.get(source, way.begin)
            known = Fraction(1) if source in way.iterated else way.part[source]
            past = known < end and source >= 0
            self.made.arrows.append(Arrow(lane, min(from_x, x), target, x, past, source == OWN))

    def _place_step(self, way: _LevelWalk, step: Step, x: float, room: float) -> None:
        level = way.level
        child = self.numbers[level.path][step.sim]
        path, inner = level.name(child), level.inner.get(child)
        begin = way.start + way.part[child] * level.composite.step
        length = step.fraction * level.composite.step
        way.part[child] += step.fraction
        if path not in self.lane:
            return
        label = format_duration(length)
        if inner is not None and inner.composite.step > level.composite.step:
            times = inner.composite.step / level.composite.step
            label = f"{format_duration(inner.composite.step)}, in one of {times} steps"
        said = f"{describe_instruction(step)}: {_format_moment(begin)} to {_format_moment(begin + length)}"
        self.made.bars.append(Bar(x + 2, room - 4, self.lane[path], label, said))
        if inner is not None:
            self._place_substeps(way.level, inner, step, begin, x, room)

    def _place_substeps(
        self, level: PlanTree, inner: PlanTree, step: Step, begin: Fraction, x: float, room: float
    ) -> None:
        """Place the sub-steps of a level inside the step that is theirs."""
        way = _LevelWalk(inner, begin, x, x)
        single = step.fraction * level.composite.step <= inner.composite.step
        for number, (body, at, wide) in enumerate(self._place_cells(level, step, x, room)):
            way.start = begin + number * inner.composite.step
            way.begin = way.admitted = at
            way.iterated.clear()
            way.part.clear()
            if not single:
                moment = _format_moment(way.start)
                self._add_frame("substep", inner, at, wide - 2, moment, f"from {moment}")
            self._place_body(way, body, at + PAD / 2, wide - PAD)

    def _place_repeat(self, way: _LevelWalk, repeat: Repeat, x: float, room: float) -> None:
        self._add_frame("repeat", way.level, x, room, _frame_label(repeat), describe_instruction(repeat))
        drawn = self._iteration_count(repeat)
        second = "each further iteration" if repeat.at_most > drawn else "second iteration"
        cells = self._place_cells(way.level, repeat, x, room)
        for label, (body, at, wide) in zip(("first iteration", second), cells, strict=False):
            if drawn > 1:
                self._add_frame("iteration", way.level, at + 2, wide - 4, label, label)
            self._place_body(way, body, at + PAD / 2, wide - PAD)
            way.iterated |= {child for child, part in way.part.items() if part == 1}

    def _place_together(self, way: _LevelWalk, bodies: tuple[Body, ...], x: float, room: float) -> None:
        number = self.numbers[way.level.path]
        sims = (sim for body in bodies for _, inside in walk(body) for sim in named_simulators(inside))
        paths = {way.level.name(number[sim]) for sim in sims}
        lanes = [self.lane[path] for path in paths if path in self.lane]
        if len(lanes) > 1:
            top, bottom = min(lane.top for lane in lanes), max(lane.bottom for lane in lanes)
            self.made.frames.append(Frame("together", x + 1, room - 2, top, bottom, "", "side by side"))
        for body in bodies:
            self._place_body(way, body, x, room)

    def _add_frame(
        self, kind: FrameKind, level: PlanTree, x: float, width: float, label: str, said: str
    ) -> None:
        if level.path in self.lane:
            lane, rows = self.lane[level.path], self.rows[level.path]
            row = rows.index(kind) if kind in rows else 0
            top = lane.top + HEAD - 22
            self.made.frames.append(Frame(kind, x, width, top, lane.floor, label, said, row))


def _marked_simulators(instruction: Marked) -> tuple[str, ...]:
    """Return the simulators in whose lanes an instruction is marked."""
    if isinstance(instruction, (Send, Receive)):
        return tuple(dict.fromkeys(port.partition(".")[0] for port in instruction.ports))
    return named_simulators(instruction)


def _mark_kind(instruction: Marked) -> MarkKind:
    match instruction:
        case Admit():
            return "admit"
        case Feed():
            return "feed"
        case Read():
            return "read"
        case Record():
            return "record"
        case Restore():
            return "restore"
        case React():
            return "react"
        case Commit():
            return "commit"
        case Save():
            return "save"
        case Solve():
            return "solve"
        case Send():
            return "send"
        case Receive():
            return "receive"


_AROUND: tuple[tuple[FrameKind, type | tuple[type, ...]], ...] = (
    ("times", (Times, Next, Instant)),
    ("repeat", Repeat),
    ("try", (Try, Adapt)),
)


def _frame_label(instruction: Times | Next | Repeat | Try | Adapt | Instant) -> str:
    match instruction:
        case Times(n):
            return f"{n} times"
        case Next():
            return "↻ the one furthest behind goes next"
        case Repeat(until=None, at_most=most):
            return f"↻ {most} times"
        case Repeat(until=until, at_most=most):
            return f"↻ until {until:g}, at most {most}"
        case Try(_, found):
            return "may end early" if found else "ends at the next event"
        case Instant():
            return "at an event"
        case Adapt():
            return "steps as long as errors allow"


def _split_repeats(count: Fraction | int, most: int) -> tuple[int, int]:
    """Return how many of so many repetitions are drawn, and how many are left out."""
    whole = max(1, int(count))
    drawn = whole if whole <= most else max(1, most - 1)
    return drawn, whole - drawn


def _format_moment(at: Fraction) -> str:
    return f"t + {format_duration(at)}" if at else "t"
