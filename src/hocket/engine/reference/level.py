"""The specification: a level executes its plan, in plain Python.

In:  a Plan, live simulators, an exchange memory
Out: simulators moved on, samples stored, rows kept

The native engine does the same with the same bits. Numbers may be rows: run on the identity, the same
code yields the matrix of a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, assert_never

import numpy as np

from hocket.coupling.wiring import Wiring
from hocket.engine.algebraic_loops import AlgebraicLoop, Unknowns
from hocket.engine.ledger import Ledger
from hocket.engine.memory import ExchangeMemory
from hocket.engine.reference.acceleration import make_accelerator
from hocket.engine.reference.elsewhere import read_elsewhere, solve_elsewhere, step_elsewhere
from hocket.engine.reference.instants import (
    InstantLevel,
    InstantState,
    commit_children,
    is_level,
    next_due,
    react_child,
    run_instant,
    solve_jump,
)
from hocket.engine.reference.iteration import (
    SweepCounts,
    check_jacobian,
    feedback_unknowns,
    run_repeat,
)
from hocket.engine.reference.rollback import (
    SavedChild,
    normalise_ticks,
    restore_children,
    restore_tree,
    run_try,
    save_children,
    save_tree,
    settle_level_rows,
)
from hocket.engine.reference.step_control import (
    MacroStepController,
    StepCounts,
    lowest_degree,
    run_adapt,
    run_next,
)
from hocket.engine.rows import Rows
from hocket.engine.simulator_calls import (
    EarlyError,
    not_finite,
    output_array,
    read_only,
    simulator_error,
)
from hocket.engine.watch import Watch
from hocket.errors import SimulatorError
from hocket.model.clock import Clock
from hocket.model.extrapolators import shift_origin
from hocket.model.protocols import Array, Simulator
from hocket.plan import (
    Adapt,
    Admit,
    Body,
    Commit,
    Feed,
    Instant,
    Next,
    Plan,
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
    walk,
)
from hocket.plan.accelerators import LiveAccelerator
from hocket.plan.instructions import number_ports
from hocket.plan.messages import Load, Post

EPSILON = 2.0**-52


class Level(InstantLevel):
    """One co-simulation, live. It is a simulator; its clock counts the ticks of the whole tree.

    `length` is its step in ticks, `degree` that of the polynomials it is given, `inputs` the ones in use and
    `offered` the newest ones, each with the tick it counts from.
    """

    def __init__(
        self,
        path: str,
        wiring: Wiring,
        plan: Plan,
        children: Sequence[Simulator],
        clock: Clock,
        length: int,
        degree: int,
        starts: Sequence[float] = (),
    ):
        self.path = path
        self.wiring = wiring
        self.plan = plan
        self.children = list(children)
        self.number = wiring.numbers()
        self.clock = clock
        self.length = length
        self.degree = degree
        self.starts = tuple(starts)
        self.adaptive = adapts(plan.step)
        degrees = [self.degree_of(child, degree) for child in range(len(wiring.models))]
        self.memory = ExchangeMemory(wiring, clock, degrees, deeper=1 if self.adaptive else 0)
        self.ledger = Ledger(wiring, self.memory.degrees)
        self.ticks = [0] * len(self.children)
        self.now = self.reached = 0
        self.span = length
        """The ticks of the step under way: shorter than `length` where one ended early."""
        self.inputs: tuple[int, Array] = (0, np.zeros((degree + 1, len(starts))))
        self.offered = self.inputs
        self.rows: Rows | None = None
        self.micro_rows: dict[int, Rows] = {}
        """Per child that reports its micro steps: the rows of them."""
        self.kept: dict[int, SavedChild] = {}
        """Per child that was saved within the step: where it stood."""
        self.restorable: list[Any] = []
        """States of the whole level that it may be rolled back to within the step, the oldest first."""
        self.under_way = False
        """Whether a step is: it has not ended, or never will."""
        self.watch: Watch | None = None
        """Looked at by every instruction."""
        self.repeating = 0
        """How many Repeats are under way: in one, the newest samples stay when simulators roll back."""
        self.sweeps = SweepCounts()
        self.sweep_matrix: Array | None = None
        """In the linear reading: of an iteration to a tolerance, what a sweep makes of what it is given."""
        self.steps = StepCounts()
        self.pace: MacroStepController | None = None
        self._handed_back: dict[int, Unknowns] = {}
        self.accelerators: dict[int, LiveAccelerator] = {}
        self.tree: Any = None
        """The PlanTree it was built from."""
        self.traffic: Post | None = None
        """Counts what passes from host to host; None: all run on one."""
        self.sent_at_start: dict[tuple[str, str], Load] = {}
        self.replaced: dict[int, dict[int, float]] = {}
        """Per child with outputs that are overridden: what they show instead, by their numbers."""
        self.instants = InstantState(self)
        lasts = [each.last for _, each in walk(plan.step) if isinstance(each, Try) and each.last]
        self.last: int | None = self.number[lasts[0]] if lasts else None
        """The one that cannot roll back, and steps when the others have found where the step ends."""
        self.remote: frozenset[int] = frozenset()
        """The children that live on other hosts: they step there, and their samples come in messages."""
        self.ends_outside = False
        """Whether the level around handles steps that end early in this one."""

    def degree_of(self, child: int, own: int) -> int:
        """Return the degree of the input polynomials of a child, where the level's own inputs have one."""
        degrees = [
            own if drive.extrapolation is None and drive.child < 0
            else drive.extrapolation.degree if drive.extrapolation is not None else 0
            for drive in self.wiring.drives[child]
            if drive is not None
        ]  # fmt: skip
        honoured = self.wiring.models[child].capabilities.input_degree
        return min(max(degrees, default=0), 8 if honoured is None else honoured)

    def name(self, child: int) -> str:
        """Return the path of a child."""
        return f"{self.path}.{self.wiring.names[child]}" if self.path else self.wiring.names[child]

    # the life of a step

    def advance(self, tick: int, ticks: int, u: Array) -> None:
        """Step from tick by so many ticks under the inputs u: several own steps, or part of one."""
        if self.instants.around:
            to_any_tick = self.instants.instruction is not None
            (self._advance_freely if to_any_tick else self._advance_sampled)(tick, tick + ticks, u)
            return
        if self.adaptive:
            self.offered = (tick, u.copy())
            self._run_step(tick, ticks)
            return
        if ticks % self.length == 0:
            self.offered = (tick, u.copy())
            for start in range(tick, tick + ticks, self.length):
                self._run_step(start, self.length)
            return
        if tick == self.now:
            self.offered = (tick, u.copy())
        if tick + ticks == self.now + self.length:
            self._run_step(self.now, self.length)

    def _advance_freely(self, tick: int, end: int, u: Array) -> None:
        """Step to any tick: whole steps of its own, and a part of one where there is an event."""
        if tick == self.now:
            self.offered = (tick, u.copy())
        self.instants.asked = end
        if self.adaptive:
            self._run_step(tick, end - tick)
            return
        while self.now < end:
            whole = (self.now // self.length + 1) * self.length
            due = next_due(self)
            if whole > end and self.length > self.instants.longest and (due is None or due > end):
                return  # a level with a longer step waits for its end
            self._run_step(self.now, min(whole, end) - self.now)

    def catch_up(self, tick: int) -> None:
        """Go to an event of the level around before the step is over."""
        self.instants.asked = tick
        self._run_step(self.now, tick - self.now)

    def _advance_sampled(self, tick: int, end: int, u: Array) -> None:
        """Make the steps of its own that end here; each takes its inputs when it begins."""
        if tick <= self.now:
            self.offered = (tick, u.copy())
        while self.now + self.length <= end:
            self._run_step(self.now, self.length)
            if tick <= self.now:
                self.offered = (tick, u.copy())

    def _run_step(self, tick: int, ticks: int) -> None:
        self.kept.clear()
        self.restorable.clear()
        self.under_way = True
        self.instants.shown.clear()  # time goes on: what the level around has ended is over
        self.now, self.span = tick, ticks
        self.reached = tick + ticks
        self.run(self.plan.step)
        self.now = self.reached
        self.under_way = False

    def run(self, body: Body) -> None:
        """Execute instructions."""
        for instruction in body:
            if self.watch is not None:
                self.watch.look()
            match instruction:
                case Feed(sim, ports):
                    self.feed(self.number[sim], ports)
                case Step(sim, fraction):
                    self.step_child(self.number[sim], normalise_ticks(self.span * fraction))
                case Read(sim, ports):
                    self.read(self.number[sim], ports)
                case Together(bodies):
                    for inner in bodies:
                        self.run(inner)
                case Times(n, inner):
                    for _ in range(n):
                        self.run(inner)
                case Next():
                    run_next(self, instruction)
                case Try():
                    run_try(self, instruction)
                case Adapt():
                    run_adapt(self, instruction)
                case Admit():
                    self.inputs = self.offered
                case Record():
                    if self.rows is not None:
                        self.rows.keep(self, self.reached)
                case Solve(sims, ports) if self.number[sims[0]] in self.remote:
                    solve_elsewhere(self, [self.number[sim] for sim in sims], ports)
                case Solve(sims, ports):
                    loop = AlgebraicLoop(self, sims, ports)
                    if self.instants.n:
                        solve_jump(self, sims, loop.solve)
                    else:
                        loop.solve()
                case React(sim):
                    react_child(self, self.number[sim])
                case Commit(sims):
                    commit_children(self, sims)
                case Instant():
                    run_instant(self, instruction)
                case Send(source, target, ports):
                    if self.traffic is not None:
                        self.traffic.send((source, target), ports)
                case Receive():
                    if self.traffic is not None:
                        self.traffic.settle()
                case Save(sims):
                    if self.traffic is not None:
                        self.traffic.flush()
                    save_children(self, (self.number[sim] for sim in sims))
                case Restore(sims):
                    restore_children(self, (self.number[sim] for sim in sims))
                case Repeat():
                    run_repeat(self, instruction)
                case _:
                    assert_never(instruction)

    def feed(self, child: int, ports: tuple[str, ...] = ()) -> None:
        """Fit the inputs of a child from the samples, or some of them."""
        chosen = number_ports(ports, self.wiring.models[child].inputs)
        if self.traffic is not None:
            self.traffic.feed(child, ports=chosen)
        if child in self.remote:
            return
        base, inputs = self.inputs
        self.memory.feed(child, self.ticks[child], inputs, base, chosen)
        for drive in self.wiring.texts_of.get(child, ()):
            source, target = self.children[drive.child], self.children[child]
            t = self.clock.time(self.ticks[child])
            try:
                target.set_text(drive.target_port, source.text(drive.port))  # type: ignore[attr-defined]
            except Exception as error:
                raise simulator_error(self.name(child), "step", t, error) from error

    def text(self, port: int) -> bytes:
        """Return a text of one inside."""
        child, number = self.wiring.text_places[1][port]
        value: bytes = self.children[child].text(number)  # type: ignore[attr-defined]
        return value

    def set_text(self, port: int, value: bytes) -> None:
        """Set a text of one inside."""
        child, number = self.wiring.text_places[0][port]
        self.children[child].set_text(number, value)  # type: ignore[attr-defined]

    def step_child(self, child: int, ticks: int) -> None:
        """Advance a child under its polynomials."""
        if child in self.remote:
            step_elsewhere(self, child, ticks)
            return
        simulator, tick, u = self.children[child], self.ticks[child], self.memory.u[child]
        self.ledger.open(self, child)
        self.ticks[child] = tick + ticks
        if self.traffic is not None:
            self.traffic.step(child)
        if isinstance(simulator, Level):
            simulator.advance(tick, ticks, u)
            return
        t, h = self.clock.time(tick), self.clock.span(ticks)
        end = self.clock.time(tick + ticks)
        try:
            returned = simulator.step(t, h, read_only(u))
            reached = end if returned is None else float(returned)
        except Exception as error:
            raise simulator_error(self.name(child), "step", t, error) from error
        observes = self.wiring.models[child].capabilities.observes
        slack = 0.0 if observes else 1e-9 * h
        if abs(reached - end) <= slack + 4.0 * EPSILON * abs(end):
            return
        # between two places for events there is none: it stands at the second one, or where its part of a
        # step ends that cannot be shorter
        close = self.instants.places and not observes and child in self.instants.taking
        place = self.clock.event_tick(Fraction(reached)) if close and reached < end else -1
        if place != tick + ticks and (place < tick + ticks or ticks > self.clock.quantum):
            raise EarlyError(self.name(child), reached, t, h, end)

    def read(self, child: int, ports: tuple[str, ...] = ()) -> None:
        """Evaluate the outputs of a child under its polynomials, at its own time; store samples."""
        chosen = number_ports(ports, self.wiring.models[child].outputs)
        fresh = set() if self.traffic is None else self.traffic.read(child, chosen)
        if child in self.remote:
            read_elsewhere(self, child, chosen, fresh)
            return
        tick = self.ticks[child]
        u = self.inputs_since(child, tick)
        slopes = None
        y = self.outputs_of(child, tick, u)
        if self.memory.sloped[child]:
            slopes = self.slopes_of(child, tick, u)
        simulator = self.children[child]
        # what a level with a longer step shows is as old as its own last step
        at = min(tick, simulator.now) if isinstance(simulator, Level) else tick
        self.memory.store(child, at, y, slopes, self._stored_ports(child, chosen))
        self.ledger.close(self, child, chosen)

    def _stored_ports(self, child: int, chosen: set[int] | None) -> set[int] | None:
        """Return the outputs that a Read stores, None: all; events are absent between instants."""
        outputs = self.wiring.models[child].outputs
        if not any(port.event for port in outputs):
            return chosen
        every = range(len(outputs)) if chosen is None else chosen
        return {number for number in every if not outputs[number].event}

    def store_jumps(self, child: int, whole: bool, present: Sequence[bool] | None = None) -> None:
        """Evaluate the outputs of a child at an instant; where one jumps, what was before it is forgotten."""
        tick, outputs = self.ticks[child], self.wiring.models[child].outputs
        simulator: Any = self.children[child]
        if not outputs:
            return
        before = [ring[-1] for ring in self.memory.rings[child]]
        u = self.inputs_since(child, tick)
        # a level that has instants has just evaluated them; one that is sampled takes its sample again
        evaluated = is_level(simulator)
        y = (
            self.replace_outputs(child, simulator.newest_outputs(1, u.shape[2:]))
            if evaluated
            else self.outputs_of(child, tick, u)
        )
        slopes = self.slopes_of(child, tick, u) if self.memory.sloped[child] else None
        here = {
            number
            for number, port in enumerate(outputs)
            if not port.event or (present is not None and present[number])
        }
        self.memory.store(child, tick, y, slopes, here)
        self.note_jumps(child, before)
        for number in here:
            if outputs[number].event and (child, number) not in self.instants.shown:
                self.instants.jumps[child][number] += 1
                self.instants.shown.add((child, number))
            if whole:
                self.memory.forget_signal(child, number)

    def note_jumps(self, child: int, before: Sequence[Any]) -> None:
        """Count the jumps of the outputs of a child, from the samples it had before."""
        outputs = self.wiring.models[child].outputs
        for number, (sample, ring) in enumerate(zip(before, self.memory.rings[child], strict=True)):
            if not outputs[number].event and np.any(sample[1] != ring[-1][1]):  # of rows: in any column
                self.instants.jumps[child][number] += 1
                self.memory.forget_signal(child, number)

    @property
    def takes_any_step(self) -> bool:
        """Whether its simulators make steps that are not known before: of step control, and to events."""
        return self.adaptive or self.instants.flexible or self.instants.around

    def end_jump(self) -> None:
        """Begin anew after an event: what led here says nothing about what comes."""
        if self.pace is not None:
            self.pace.begin()

    @property
    def reads_linear(self) -> bool:
        """Whether numbers are rows: in the linear reading nothing happens at instants."""
        return any(u.ndim > 2 for u in self.memory.u)

    def inputs_since(self, child: int, tick: int) -> Array:
        """Return the polynomials of a child in powers of the time since a tick."""
        u, base = self.memory.u[child], self.memory.base[child]
        return (
            u
            if base == tick or len(u) == 1
            else np.array(shift_origin(list(u), self.clock.span(tick - base)))
        )

    def outputs_of(self, child: int, tick: int, u: Array) -> Array:
        """Return what a child puts out at a tick; anything but finite numbers is an error."""
        simulator, model = self.children[child], self.wiring.models[child]
        if isinstance(simulator, Level):
            return self.replace_outputs(child, simulator.outputs_at(tick, u))
        t = self.clock.time(tick)
        try:
            y = output_array(simulator.output(t, read_only(u)), len(model.outputs))
        except Exception as error:
            raise simulator_error(self.name(child), "output", t, error) from error
        if not np.isfinite(y).all():
            port = int(np.argmin(np.isfinite(y).reshape(len(y), -1).all(axis=1)))
            raise not_finite(self.name(child), model, port, float(y[port]), t)
        return self.replace_outputs(child, y)

    def replace_outputs(self, child: int, y: Array, slopes: bool = False) -> Array:
        """Return outputs of a child, or their slopes, with overrides in the place of those that have one."""
        overrides = self.replaced.get(child)
        if not overrides:
            return y
        y = np.array(y)
        for port, value in overrides.items():
            y[port] = 0.0 if slopes else value
        return y

    def slopes_of(self, child: int, tick: int, u: Array) -> Array:
        simulator: Any = self.children[child]
        if isinstance(simulator, Level):
            return self.replace_outputs(child, simulator.newest_outputs(2, u.shape[2:]), slopes=True)
        t = self.clock.time(tick)
        try:
            dy = output_array(simulator.slope(t, u), len(self.wiring.models[child].outputs))
            return self.replace_outputs(child, dy, slopes=True)
        except Exception as error:
            raise simulator_error(self.name(child), "slope", t, error) from error

    # the level as a simulator among others

    def outputs_at(self, tick: int, u: Array) -> Array:
        """Return the level's outputs; a consistent level evaluates again what reacts to its inputs."""
        if self.plan.output and tick == self.now:
            self.reached = tick
            self.offered = (tick, u.copy())
            self.run(self.plan.output)
        return self.newest_outputs(1, u.shape[2:])

    def newest_outputs(self, what: int, shape: tuple[int, ...] = ()) -> Array:
        """Return the newest samples behind the level's outputs: values (1) or slopes (2)."""
        y = np.zeros((len(self.wiring.outputs), *shape))
        for index, drive in enumerate(self.wiring.outputs):
            value = self.memory.rings[drive.child][drive.port][-1][what]
            offset = drive.offset if what == 1 else 0.0
            y[index] = value if drive.gain == 1.0 and offset == 0.0 else drive.gain * value + offset
        return y

    def unknowns_of(self, instruction: Repeat) -> Unknowns:
        """Return what the repetitions of a Repeat hand to each other."""
        if id(instruction) not in self._handed_back:
            places = feedback_unknowns(self, instruction.body)
            self._handed_back[id(instruction)] = check_jacobian(instruction, Unknowns(self, places))
        return self._handed_back[id(instruction)]

    def controller_of(self, instruction: Adapt) -> MacroStepController:
        """Return which step is to be tried next."""
        if self.pace is None:
            self.pace = MacroStepController(instruction.control, self.length, lowest_degree(self))
        return self.pace

    def accelerator_of(self, instruction: Repeat) -> LiveAccelerator:
        """Return what leads a Repeat to its end."""
        if id(instruction) not in self.accelerators:
            self.accelerators[id(instruction)] = make_accelerator(instruction.accelerate)
        return self.accelerators[id(instruction)]

    # rollback and end

    def tick_at(self, t: float) -> int:
        """Return the tick of a time; raises SimulatorError where there is none."""
        tick = round((t - self.clock.time(0)) / self.clock.span(1))
        if abs(self.clock.time(tick) - t) > 1e-9 * max(abs(t), self.clock.span(1)):
            step = self.clock.span(self.length)
            raise SimulatorError(
                f"a level with a step of {step!r} s was asked for t = {t!r} s", expected="whole steps"
            )
        return tick

    def save(self) -> Any:
        """Return the state of the whole tree."""
        return save_tree(self)

    def restore(self, state: Any) -> None:
        """Roll back to a saved state; rows kept since then are dropped."""
        restore_tree(self, state)

    def settle_rows(self, state: Any = None, inside: bool = False) -> None:
        """Find out which rows of the tree are final: those before a state that it may be rolled back to.

        `inside`: within a step of the level around it.
        """
        if state is None and self.restorable:
            state = self.restorable[0]
        below = settle_level_rows(self, state, inside)
        for child, simulator in enumerate(self.children):
            if isinstance(simulator, Level):
                simulator.settle_rows(below.get(child), inside or self.under_way)

    def call_child(self, call: str, child: int, *arguments: Any) -> Any:
        """Save or restore a child."""
        simulator = self.children[child]
        try:
            return getattr(simulator, call)(*arguments)
        except Exception as error:
            if isinstance(simulator, Level):
                raise
            t = self.clock.time(self.ticks[child])
            raise simulator_error(self.name(child), call, t, error) from error

    def close(self) -> None:
        """Close every simulator, the later ones even if an earlier one fails."""
        errors: list[Exception] = []
        for child, simulator in enumerate(self.children):
            try:
                simulator.close()
            except Exception as error:  # the rest must still be closed
                name, t = self.name(child), self.clock.time(self.ticks[child])
                inner = isinstance(simulator, Level)
                errors.append(error if inner else simulator_error(name, "close", t, error))
        if errors:
            raise errors[0]
