"""A plan laid out: one macro step from left to right in the order of its instructions, a lane per simulator.

In:  a Blueprint with its plans
Out: a Schedule: lanes, marks, bars, frames and arrows with their places, in pixels
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from hocket.clock import written
from hocket.engine.blueprint import Blueprint
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
from hocket.plan.walking import named, walk
from hocket.plan.words import words
from hocket.report.nets import stacked
from hocket.report.pieces import (
    HEAD,
    LABEL,
    LANE,
    Arrow,
    Bar,
    Frame,
    FrameKind,
    Lane,
    Mark,
    MarkKind,
    Schedule,
)
from hocket.report.turns import ahead, turns
from hocket.wiring import OWN

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


def schedule(root: Blueprint, name: str) -> Schedule:
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
class _Walk:
    """What is known of a level on the way through its plan."""

    level: Blueprint
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
    def __init__(self, root: Blueprint, name: str, shown: int, step: int):
        self.root, self.shown, self.step = root, shown, step
        self.made = Schedule()
        self.lane: dict[str, Lane] = {}
        self.rows: dict[str, list[FrameKind]] = {}
        self.numbers = {level.path: level.wiring.numbers() for level in root.levels()}
        self.ahead = {key: part for level in root.levels() for key, part in ahead(level.plan.step)}
        self._lanes(root, name, 0, 4, False)
        self.made.lanes.sort(key=lambda lane: lane.top)
        self.needed = self._width(root, root.plan.step) + 2 * EDGE

    def fill(self) -> None:
        """Place everything."""
        root, lane = self.root, self.lane[""]
        length = written(root.composite.step)
        across = self.needed - 2 * EDGE
        label = f"one macro step, {length}"
        self.made.bars.append(Bar(EDGE, across, lane, label, f"{label}: from t to t + {length}"))
        self._body(_Walk(root, Fraction(0), EDGE, EDGE), root.plan.step, EDGE, across)
        self.made.width = self.needed
        self.made.height = lane.bottom + 6

    def _lanes(self, level: Blueprint, name: str, depth: int, top: int, often: bool) -> int:
        """Give a level and all in it their lanes; return where they end. `often`: it makes many steps."""
        at = top + HEAD
        for child in stacked(level):
            path, inner = level.name(child), level.inner.get(child)
            if len(self.lane) >= MOST_LANES:
                self.made.left_out += 1
            elif inner is not None:
                many = inner.composite.step < level.composite.step
                at = self._lanes(inner, level.wiring.names[child], depth + 1, at + 3, many)
            else:
                lane = Lane(path, level.wiring.names[child], depth + 1, False, at, at + LANE, at + LANE)
                self.lane[path] = lane
                self.made.lanes.append(lane)
                at += LANE
        rows: list[FrameKind] = ["substep"] if often else []
        inside = [instruction for _, instruction in walk(level.plan.step)]
        rows += ["sweep"] if any(self._sweeps(i) > 1 for i in inside if isinstance(i, Repeat)) else []
        rows += [kind for kind, cls in _AROUND if any(isinstance(i, cls) for i in inside)]
        self.rows[level.path] = rows
        bottom = at + 5 + LABEL * len(rows)
        self.lane[level.path] = Lane(level.path, name, depth, True, top, at, bottom)
        self.made.lanes.append(self.lane[level.path])
        return bottom + 3

    def _repeats(self, count: Fraction | int) -> tuple[int, int]:
        """Return how many of so many repetitions are drawn, and how many are left out."""
        whole = max(1, int(count))
        drawn = whole if whole <= self.shown else max(1, self.shown - 1)
        return drawn, whole - drawn

    def _sweeps(self, repeat: Repeat) -> int:
        """Return how many sweeps of an iteration are drawn: one that extrapolates, one that knows better."""
        return min(repeat.at_most, 2) if self.shown >= SWEPT else 1

    def _substeps(self, level: Blueprint, step: Step) -> Fraction:
        inner = level.inner[self.numbers[level.path][step.sim]]
        return level.composite.step * step.fraction / inner.composite.step

    def _width(self, level: Blueprint, body: Body) -> float:
        return sum(self._wide(level, instruction) for instruction in body)

    def _wide(self, level: Blueprint, instruction: Instruction) -> float:
        sims = named(instruction)
        if sims and not any(level.name(self.numbers[level.path][sim]) in self.lane for sim in sims):
            return 0.0
        match instruction:
            case Step(sim):
                child = self.numbers[level.path][sim]
                if child not in level.inner:
                    return self.step
                inner = level.inner[child]
                drawn, rest = self._repeats(self._substeps(level, instruction))
                return drawn * (self._width(inner, inner.plan.step) + PAD) + (GAP if rest else 0) + PAD
            case Together(bodies):
                return max((self._width(level, body) for body in bodies), default=0.0)
            case Next(bodies):
                order, rest = turns(bodies, TURNS * self.shown)
                return sum(self._width(level, body) for body in order) + (GAP if rest else 0) + PAD
            case Times(n, body):
                drawn, rest = self._repeats(n)
                return drawn * self._width(level, body) + (GAP if rest else 0) + PAD
            case Repeat(body):
                return self._sweeps(instruction) * (self._width(level, body) + PAD) + PAD
            case Try(body) | Adapt(body):
                return self._width(level, body) + PAD
        return MARK

    def _body(self, way: _Walk, body: Body, x: float, room: float) -> None:
        """Place instructions one after the other; one alone has all the room."""
        for instruction in body:
            wide = room if len(body) == 1 else self._wide(way.level, instruction)
            self._place(way, instruction, x, wide)
            x += wide

    def _place(self, way: _Walk, instruction: Instruction, x: float, room: float) -> None:
        match instruction:
            case Step():
                self._step(way, instruction, x, room)
            case Together(bodies):
                self._together(way, bodies, x, room)
            case Times(n, body):
                self._times(way, n, body, x, room)
            case Next():
                self._next(way, instruction, x)
            case Repeat():
                self._repeat(way, instruction, x, room)
            case Try(body) | Adapt(body):
                label = "may end early" if isinstance(instruction, Try) else "steps as long as errors allow"
                self._frame("try", way.level, x, room, label, words(instruction))
                self._body(way, body, x + PAD / 2, room - PAD)
            case _:
                self._mark(way, instruction, x + min(room, MARK) / 2)

    def _mark(self, way: _Walk, instruction: Instruction, x: float) -> None:
        level, said = way.level, words(instruction)
        number = self.numbers[level.path]
        match instruction:
            case Admit():
                way.admitted = x
                self._put("admit", x, level.path, said)
            case Record():
                self._put("record", x, level.path, said)
            case Feed(sim):
                self._arrows(way, number[sim], self.ahead.get(id(instruction), Fraction(0)), x)
                self._put("feed", x, level.name(number[sim]), said)
            case Read(sim):
                way.read[number[sim]] = x
                self._put("read", x, level.name(number[sim]), said)
            case Solve(sims) | Save(sims) | Restore(sims):
                kinds: dict[type, MarkKind] = {Solve: "solve", Save: "save", Restore: "restore"}
                for sim in sims:
                    self._put(kinds[type(instruction)], x, level.name(number[sim]), said)
                    self._moved(way, instruction, number[sim], x)

    def _moved(self, way: _Walk, instruction: Instruction, child: int, x: float) -> None:
        if isinstance(instruction, Solve):
            way.read[child] = x
        elif isinstance(instruction, Save):
            way.saved[child] = way.part.get(child, Fraction(0))
        else:
            way.part[child] = way.saved.get(child, Fraction(0))

    def _put(self, kind: MarkKind, x: float, path: str, said: str) -> None:
        if path in self.lane:
            self.made.marks.append(Mark(kind, x, self.lane[path], said))

    def _arrows(self, way: _Walk, child: int, further: Fraction, x: float) -> None:
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

    def _step(self, way: _Walk, step: Step, x: float, room: float) -> None:
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
        label = written(length)
        if slow and inner is not None:
            times = inner.composite.step / level.composite.step
            label = f"{written(inner.composite.step)}, in one of {times} steps"
        said = f"{words(step)}: {_moment(begin)} to {_moment(begin + length)}"
        self.made.bars.append(Bar(x + 2, room - 4, self.lane[path], label, said))
        if inner is not None:
            self._inside(inner, begin, self._substeps(level, step), x, room)

    def _inside(self, inner: Blueprint, begin: Fraction, count: Fraction, x: float, room: float) -> None:
        """Place the sub-steps of a level inside the step that is theirs."""
        drawn, rest = self._repeats(count)
        wide = (room - PAD - (GAP if rest else 0)) / drawn
        way = _Walk(inner, begin, x, x)
        x += PAD / 2
        for number in range(drawn):
            way.start = begin + number * inner.composite.step
            way.begin = way.admitted = x
            way.swept, way.part = set(), {}
            if drawn + rest > 1:
                moment = _moment(way.start)
                self._frame("substep", inner, x, wide - 2, moment, f"from {moment}")
            self._body(way, inner.plan.step, x + PAD / 2, wide - PAD)
            x += wide
        if rest:
            self._frame("gap", inner, x, GAP - 6, f"{rest} more", f"{rest} more of the same")

    def _repeat(self, way: _Walk, repeat: Repeat, x: float, room: float) -> None:
        self._frame("repeat", way.level, x, room, _short(repeat), words(repeat))
        drawn = self._sweeps(repeat)
        wide = (room - PAD) / drawn
        for number in range(drawn):
            at = x + PAD / 2 + number * wide
            if drawn > 1:
                label = _SWEEPS[number] if number == 0 or repeat.at_most > drawn else "second sweep"
                self._frame("sweep", way.level, at + 2, wide - 4, label, label)
            self._body(way, repeat.body, at + PAD / 2, wide - PAD)
            way.swept |= {child for child, part in way.part.items() if part == 1}

    def _together(self, way: _Walk, bodies: tuple[Body, ...], x: float, room: float) -> None:
        tops = [self.lane[path] for path in self._touched(way.level, bodies) if path in self.lane]
        if len(tops) > 1:
            top, bottom = min(lane.top for lane in tops), max(lane.bottom for lane in tops)
            self.made.frames.append(Frame("together", x + 1, room - 2, top, bottom, "", "side by side"))
        for body in bodies:
            self._body(way, body, x, room)

    def _touched(self, level: Blueprint, bodies: tuple[Body, ...]) -> Iterator[str]:
        number = self.numbers[level.path]
        for body in bodies:
            for _, instruction in walk(body):
                yield from (level.name(number[sim]) for sim in named(instruction))

    def _times(self, way: _Walk, n: int, body: Body, x: float, room: float) -> None:
        self._frame("times", way.level, x, room, f"{n} times", f"{n} times")
        drawn, rest = self._repeats(n)
        wide = (room - PAD - (GAP if rest else 0)) / drawn
        for number in range(drawn):
            self._body(way, body, x + PAD / 2 + number * wide, wide)
        if rest:
            at = x + PAD / 2 + drawn * wide
            self._frame("gap", way.level, at, GAP - 6, f"{rest} more", f"{rest} more of the same")

    def _next(self, way: _Walk, following: Next, x: float) -> None:
        order, rest = turns(following.bodies, TURNS * self.shown)
        room = self._wide(way.level, following)
        self._frame("times", way.level, x, room, "↻ the one furthest behind goes next", words(following))
        at = x + PAD / 2
        for body in order:
            wide = self._width(way.level, body)
            self._body(way, body, at, wide)
            at += wide
        if rest:
            self._frame("gap", way.level, at, GAP - 6, f"{rest} more", f"{rest} more turns")

    def _frame(
        self, kind: FrameKind, level: Blueprint, x: float, width: float, label: str, said: str
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


def _short(repeat: Repeat) -> str:
    until = "" if repeat.until is None else f"until {repeat.until:g}, "
    return f"↻ {until}at most {repeat.at_most}" if until else f"↻ {repeat.at_most} times"


def _moment(at: Fraction) -> str:
    return f"t + {written(at)}" if at else "t"
