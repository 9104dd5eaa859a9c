"""Simulators that announce events, identified from event to event: classes with due(), FMUs with clocks.

In:  a simulator alone, taken from event to event with pushes at its inputs
Out: a stand-in that announces the same events and carries rows; or why there is none

Judged is what its events alone change, at times that depend on nothing but time and repeat (theory, section
10): between them outputs hold, and inputs are looked at in the instants. All of that is tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from hocket.analysis.announced_events import (
    PHASES,
    EventPattern,
    ReactorStandIn,
    describe_pattern,
    find_pattern,
    is_same_time,
)
from hocket.analysis.identification import Identification, identify_bench
from hocket.analysis.pulse_responses import BlackBoxBench, OperatingPoint, RefusedError
from hocket.engine.simulator_calls import output_array
from hocket.errors import HocketError
from hocket.model.clock import seconds
from hocket.model.ports import Port
from hocket.model.protocols import (
    Array,
    Capabilities,
    EventSimulator,
    InstantSettingSimulator,
    Model,
    described_variables,
    provides,
)

LOOKED_AT = 200
"""Events that are looked at for a pattern."""
MULTIPLES = (1, 2, 3, 4, 5, 6, 8, 10, 12)
"""So many periods of the times may be one of what happens: a sample and an output later, evenly apart."""
PERIODS = 6
"""Periods in which it is disturbed between its events."""


@dataclass(frozen=True, eq=False)
class ReactorFace:
    """What is identified of a model: outputs that are not events, and follow at its instants."""

    model: Model
    outputs: tuple[Port, ...]

    @property
    def inputs(self) -> tuple[Port, ...]:
        return self.model.inputs

    @property
    def capabilities(self) -> Capabilities:
        return replace(self.model.capabilities, reevaluates=True)

    def open(self) -> Any:
        return self.model.open()


class EventBench(BlackBoxBench):
    """Runs from event to event: a step of the bench is a period of the pattern, with a push per event."""

    def __init__(self, place: OperatingPoint, rows: Sequence[int], pattern: EventPattern | None = None):
        super().__init__(place)
        # an FMU makes the step behind a restored state again, to see whether it ends alike: no events there
        self.rollbacks = self.rollbacks and (place.started or not described_variables(place.model))
        self.rows = list(rows)
        """The numbers of the outputs that are looked at."""
        self.begin = place.t
        self.flags: tuple[tuple[bool, ...], ...] = ()
        """Per event of the pattern: which outputs are present."""
        self.at_once = np.zeros(len(self.rows), dtype=bool)
        """Per row: whether it follows when its simulator reacts, before the instant ends."""
        self.pattern = self._find_pattern() if pattern is None else pattern
        self.phases = self.pattern.phases
        self.still = np.tile(self.still, self.phases)
        self.first = np.zeros(0)

    def _end(self, simulator: Any) -> None:
        if self.rollbacks:
            simulator.restore(self.saved)
        else:
            with suppress(Exception):  # what it said before counts
                simulator.close()

    def _open(self) -> Any:
        simulator: Any = super()._open()
        if provides(simulator, InstantSettingSimulator):
            simulator.event_grid = self.place.simulator.event_grid
        return simulator

    def all_outputs(self) -> Array:
        """Return all outputs where it stands, the events among them as zeros."""
        simulator = self._start_simulator()
        try:
            ports = self.place.model.outputs
            y = output_array(simulator.output(float(self.begin), self._add_push(self.quiet)), len(ports))
            return np.array(
                [0.0 if port.event else float(value) for port, value in zip(ports, y, strict=True)]
            )
        finally:
            self._end(simulator)

    def _find_pattern(self) -> EventPattern:
        simulator, times = self._start_simulator(), []
        try:
            reached = self.begin
            for _ in range(LOOKED_AT):
                due = self._due(simulator)
                if due is None:
                    raise RefusedError(
                        "it announces no further event after some time, or reacts to others only"
                    )
                times.append(due - self.begin)
                self._advance(simulator, reached, due, self._add_push(self.quiet))
                self._react(simulator, due, self._add_push(self.quiet))
                reached = due
        finally:
            self._end(simulator)
        pattern = find_pattern(times)
        if pattern is None:
            raise RefusedError("the times of its events do not repeat")
        return pattern

    def _due(self, simulator: Any) -> Fraction | None:
        due = simulator.due()
        if due is None:
            return None
        if not isinstance(due, Fraction):
            due = seconds(float(due))
        return due

    def _advance(self, simulator: Any, start: Fraction, end: Fraction, u: Array, parts: int = 1) -> None:
        """Let time pass to an event."""
        length = end - start
        for part in range(parts if length > 0 else 0):
            t = float(start + part * length / parts)
            reached = simulator.step(t, float(length / parts), u.copy())
            stop = float(start + (part + 1) * length / parts)
            if reached is not None and not is_same_time(float(reached), stop):
                raise RefusedError(f"it stopped inside a step, at {reached:.9g} s: it finds events")

    def _react(self, simulator: Any, due: Fraction, u: Array) -> tuple[tuple[bool, ...], Array, Array]:
        """Take an instant; return which outputs were present, and the outputs within and after it."""
        t, ports = float(due), self.place.model.outputs
        shown = simulator.react(t, 1, u[0].copy(), [False] * len(self.place.u))
        flags = tuple(bool(each) for each in shown) if shown is not None else (False,) * len(ports)
        within = self._read_rows(simulator, due, u)
        if simulator.commit():
            raise RefusedError("it asks for a second instant at the time of an event")
        return flags, within, self._read_rows(simulator, due, u)

    def _read_rows(self, simulator: Any, t: Fraction, u: Array) -> Array:
        ports = self.place.model.outputs
        y = output_array(simulator.output(float(t), u.copy()), len(ports))[self.rows].copy()
        if not np.isfinite(y).all():
            port = ports[self.rows[int(np.argmin(np.isfinite(y)))]]
            raise RefusedError(f"`{port.name}` is not finite at {float(t):.9g} s")
        return np.asarray(y, dtype=float)

    def watch(self) -> None:
        """Find what happens at its events; refuse what moves between them."""
        quiet, _ = self._go(lambda _: self.quiet, None)
        moved, first = self._go(lambda _: self.quiet, np.random.default_rng(5))
        if any(
            np.any(one[0] != other[0]) or one[2] != other[2] for one, other in zip(quiet, moved, strict=True)
        ):
            raise RefusedError("it moves between its events, or looks at its inputs then")
        self.flags = tuple(each[2] for each in quiet[: self.phases])
        if any(each[2] != self.flags[k % self.phases] for k, each in enumerate(quiet)):
            raise RefusedError("what it emits at its events does not repeat")
        chance = np.random.default_rng(11)
        pushed, _ = self._go(lambda _: self._random_push(chance), None)
        self._find_when_shown(pushed, first)
        self.first = first

    def _random_push(self, chance: Any) -> Array:
        push = self.quiet.copy()
        push[0] = [
            0.01 * chance.uniform(-1.0, 1.0) * max(abs(value), 1.0) if port.type == "real" else 0.0
            for value, port in zip(self.place.u, self.place.model.inputs, strict=True)
        ]
        return push

    def _find_when_shown(self, events: Sequence[tuple[Array, Array, Any]], first: Array) -> None:
        """Find which rows follow within the instant, and which after it; refuse what does neither."""
        before = np.vstack([first, *(after for after, _, _ in events[:-1])])
        after = np.vstack([each for each, _, _ in events])
        within = np.vstack([each for _, each, _ in events])
        self.at_once = (within == after).all(axis=0) & (after != before).any(axis=0)
        if not ((within == before).all(axis=0) | self.at_once).all():
            raise RefusedError("its outputs change in part within an instant, and in part after it")

    def _go(self, push: Any, chance: Any) -> tuple[list[tuple[Array, Array, tuple[bool, ...]]], Array]:
        """Return outputs after and within each event, and what was present.

        With `chance` the inputs are disturbed between the events.
        """
        simulator = self._start_simulator()
        found: list[tuple[Array, Array, tuple[bool, ...]]] = []
        try:
            reached = self.begin
            first = last = self._read_rows(simulator, reached, self._add_push(self.quiet))
            for number in range(PERIODS * self.phases):
                due = self._check_due(simulator, number)
                u = self._add_push(self.quiet if chance is None else self._random_push(chance))
                self._advance(simulator, reached, due, u, 1 if chance is None else 3)
                if np.any(self._read_rows(simulator, due, u) != last):
                    raise RefusedError("it moves between its events, or looks at its inputs then")
                flags, within, last = self._react(simulator, due, self._add_push(push(number)))
                found.append((last, within, flags))
                reached = due
        finally:
            self._end(simulator)
        return found, first

    def _check_due(self, simulator: Any, number: int) -> Fraction:
        due = self._due(simulator)
        wanted = self.begin + self.pattern.time(number)
        if due is None or not is_same_time(float(due), float(wanted)):
            raise RefusedError("the times of its events depend on its inputs")
        return wanted

    @property
    def minds_jumps(self) -> bool:
        """Whether it does something where its inputs jump between its events."""
        simulator = self._start_simulator()
        try:
            reached = self.begin + self.pattern.time(0)
            self._advance(simulator, self.begin, reached, self._add_push(self.quiet))
            _, _, last = self._react(simulator, reached, self._add_push(self.quiet))
            due = self.begin + self.pattern.time(1)
            middle = (reached + due) / 2
            self._advance(simulator, reached, middle, self._add_push(self.quiet))
            u = self._add_push(self._random_push(np.random.default_rng(3)))
            simulator.react(float(middle), 1, u[0].copy(), [True] * len(self.place.u))
            again = simulator.commit()
            said = self._due(simulator)
            same = said is not None and is_same_time(float(said), float(due)) and not again
            return not same or bool(np.any(self._read_rows(simulator, middle, u) != last))
        except Exception:  # somebody else's code
            return True
        finally:
            self._end(simulator)

    def run(self, pushes: Sequence[Array]) -> Array:
        """Return the outputs after each event of a period, a row for each period and one more."""
        parts = [part for push in pushes for part in np.split(push, self.phases, axis=1)]
        parts += [self.quiet] * self.phases
        simulator, rows = self._start_simulator(), []
        try:
            reached = self.begin
            for number, push in enumerate(parts):
                due = self._check_due(simulator, number)
                self._advance(simulator, reached, due, self._add_push(self.quiet))
                rows.append(self._react(simulator, due, self._add_push(push))[2])
                reached = due
        finally:
            self._end(simulator)
        return np.array(rows).reshape(len(pushes) + 1, -1)


def announces_events(model: Model, simulator: Any) -> bool:
    """Return whether a class or an FMU tells at its start when its next event is."""
    if not model.capabilities.events or not provides(simulator, EventSimulator):
        return False
    try:
        return simulator.due() is not None
    except Exception:  # somebody else's code: a run says what is wrong
        return False


def identify_reactor(
    place: OperatingPoint, used: Iterable[int]
) -> tuple[Identification, ReactorStandIn | None]:
    """Return what was found of a simulator that announces events, and what stands for it; `used`: the
    numbers of the outputs that drive something.
    """
    model = place.model
    events = [port.name for port in model.inputs if port.event]
    if events:
        why = f"it reacts to events of others, at `{events[0]}`, whose times are not known before a run"
        return Identification(None, math.nan, why), None
    # a counter that drives nothing is not in the way of a linear map
    rows = tuple(
        number
        for number, port in enumerate(model.outputs)
        if not port.event and (port.type == "real" or number in used)
    )
    refused, pattern = "", None
    for multiple in MULTIPLES:
        if pattern is not None and pattern.phases * multiple > PHASES:
            break
        found, stand_in, first = _identify_period(place, rows, pattern and pattern.repeat(multiple))
        if stand_in is not None:
            return found, stand_in
        pattern, refused = pattern or first, refused or found.refused
        if pattern is None:
            break
    return Identification(None, math.nan, refused), None


def _identify_period(
    place: OperatingPoint, rows: tuple[int, ...], pattern: EventPattern | None
) -> tuple[Identification, ReactorStandIn | None, EventPattern | None]:
    """Return what was found of a period of its events; without a pattern it is looked for, and returned."""
    model, bench = place.model, None
    try:
        bench = EventBench(place, rows, pattern)
        pattern = bench.pattern
        bench.watch()
        face = ReactorFace(model, tuple(model.outputs[row] for row in rows))
        u = np.tile(place.u, bench.phases)
        lifted = replace(place, model=face, h=pattern.period, u=u, powers=1, sloped=False)
        found = identify_bench(lifted, bench)
        if found.stand_in is None:
            return found, None, pattern
        first = bench.all_outputs()
        first[list(rows)] = bench.first
        inside, jumps = found.stand_in, bench.minds_jumps
        stand_in = ReactorStandIn(model, inside, pattern, rows, first, bench.at_once, bench.flags, jumps)
        return replace(found, notes=(*found.notes, describe_pattern(pattern))), stand_in, pattern
    except RefusedError as refusal:
        return Identification(None, math.nan, str(refusal)), None, pattern
    except Exception as error:  # somebody else's code
        why = error.faults[0].what if isinstance(error, HocketError) else f"{type(error).__name__}: {error}"
        return Identification(None, math.nan, f"it failed when it was tried: {why}"), None, None
    finally:
        if bench is not None:
            bench.restore_simulator()
