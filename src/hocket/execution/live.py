"""`hocket.open`: a co-simulation that is stepped by hand; ports are read and overridden, states saved.

In:  a Composite, an Fmu, or the path of a file
Out: a Live: the same bits as a run, and nothing is written
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any

from hocket.engine.initialise import initialise
from hocket.engine.native.engine import native_obstacle
from hocket.engine.native.handover import TICKS
from hocket.engine.native.stepper import NativeStepper
from hocket.engine.opening import open_level, simulator_notes
from hocket.engine.portable_state import dump_state
from hocket.engine.reference.instants import take_first_instants
from hocket.engine.reference.level import Level
from hocket.engine.reference.stepper import InterpreterStepper
from hocket.engine.selection import bind_tables
from hocket.errors import (
    EndRequestError,
    Fault,
    FileError,
    ScenarioError,
    SimulatorError,
    merge_notes,
    suggest_nearest,
)
from hocket.execution.checkpoint_identity import (
    Identity,
    check_identity,
    check_values,
    checkpoint_clock,
    refuse_unportable,
)
from hocket.execution.checkpoints import go_on
from hocket.execution.run import check_choices, experiment_clock, refuse_undriven, whole_steps
from hocket.execution.session import EngineName, pause_collector, take_turns
from hocket.files.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from hocket.files.experiments import ExperimentLike, as_experiment, vary_experiment
from hocket.model.arguments import as_path, expect, is_flag, is_number, is_whole
from hocket.model.clock import Clock, Duration, format_duration
from hocket.model.experiment import Experiment
from hocket.model.plain_state import encode
from hocket.model.ports import Port
from hocket.model.scenario import Connections
from hocket.planning.parameters import has_variable
from hocket.planning.planner import plan_tree
from hocket.planning.tree import PlanTree
from hocket.simulators.fmu.log_messages import deliver
from hocket.simulators.recipes import parse_seconds

LOOK = 1000
"""Steps between two looks at what FMUs log and what simulators have found out."""


def open(
    what: ExperimentLike,
    *,
    connections: Connections = (),
    start: Duration | None = None,
    stop: Duration | None = None,
    step: Duration | None = None,
    parameters: Mapping[str, Any] | None = None,
    engine: EngineName = "native",
    threads: int | None = None,
    checkpoint: Path | str | None = None,
) -> Live:
    """Open a composite, FMUs or a file (.toml, .ssp, .fmu) to be stepped by hand, and initialise it.

    Arguments are those of `hocket.run`, and so are the bits. Without a stop time it goes on for as long as it
    is stepped. Close it, or use it in a `with` statement. Nothing is recorded or written. With a
    `checkpoint` that `Live.checkpoint` or a run has written it goes on from there, in whichever process.
    """
    check_choices(engine, threads)
    experiment = as_experiment(what, connections, start=start, stop=stop, step=step)
    experiment = vary_experiment(experiment, {} if parameters is None else parameters)
    if experiment.stop is not None and experiment.stop < experiment.start:
        ends, begins = format_duration(experiment.stop), format_duration(experiment.start)
        raise ScenarioError(f"it stops at {ends}, before it starts at {begins}", "stop")
    came_from = None if checkpoint is None else read_checkpoint(as_path(checkpoint))
    with pause_collector():
        return Live(experiment, engine, threads, came_from)


@dataclass(frozen=True, eq=False)
class LiveState:
    """A state of a whole co-simulation, kept in memory; of the Live that has saved it."""

    time: Fraction
    """When it was saved, in seconds."""
    overrides: Mapping[str, float]
    """The ports that were overridden, and their values."""
    kept: Any
    owner: Live
    ended_by: str = ""
    """The simulator that had asked to end the simulation by then."""

    def __repr__(self) -> str:
        return f"<state at t = {float(self.time)!r} s>"


@dataclass(frozen=True)
class PortPlace:
    """Where a port is: a child of a level, by their numbers."""

    place: Any
    """The level, as the engine knows it; None: the port is an input of the outermost level."""
    level: Level
    child: int
    number: int
    is_input: bool
    port: Port


class Live:
    """A co-simulation that is stepped by hand: `live.step()`, `live["axle.x"]`, `live.set("axle.force", 3)`.

    Names of ports are paths, as they are recorded: outputs and inputs of simulators at any depth, and inputs
    of the scenario itself.
    """

    def __init__(
        self,
        experiment: Experiment,
        engine: EngineName,
        threads: int | None,
        begins: Checkpoint | None = None,
    ):
        refuse_undriven(experiment)
        self.experiment = experiment
        self._design = plan_tree(experiment.composite)
        self._clock: Clock = experiment_clock(experiment, self._design)
        if begins is not None:
            check_identity(begins, experiment, self._design)
            check_values(begins, experiment)
            if begins.header["condensed"]:
                what = (
                    "it is the checkpoint of a run in which levels have no program: their ports are not there"
                )
                raise FileError(what, str(begins.path), "a checkpoint of Live", "hocket.resume(path, what)")
            self._clock, engine = checkpoint_clock(begins), begins.header["engine"]
        begin, end, step = experiment.start, experiment.stop, self._design.composite.step
        length = self._clock.ticks(step)
        self._last = TICKS // length if end is None else whole_steps(begin, end, step)
        self._overrides: dict[str, float] = {}
        self._ports: dict[str, tuple[Any, tuple[Any, ...]]] = {}
        self._places: dict[str, PortPlace] = {}
        self._made = self._quota = 0
        self._closed, self._failed = False, False
        self._ended_by = ""
        self._level: Level = open_level(self._design, self._clock)
        try:
            with take_turns(self._design):
                notes = initialise(self._level, self._clock.time(0), None if end is None else float(end))
                bind_tables(self._level, [])
                take_first_instants(self._level)
                why = native_obstacle(self._level, 0 if end is None else self._last * length)
                native = engine == "native" and not why
                self._stepper: NativeStepper | InterpreterStepper = (
                    NativeStepper(self._level, threads) if native else InterpreterStepper(self._level)
                )
                if begins is not None:
                    self._go_on(begins)
        except BaseException:
            self._level.close()
            raise
        self.engine = self._stepper.name
        """What steps it: "native", or "interpreter"."""
        slow = [f"it is stepped by the interpreter: {why}"] if why and engine == "native" else []
        self.notes = tuple(merge_notes([*experiment.notes, *self._design.plan.all_notes(), *notes, *slow]))
        """What is to be known of it, as of a run."""
        self._identity = Identity(experiment, self._design, self._clock)
        self._advance = self._stepper.advance
        self._quota = min(self._last - self._made, LOOK)

    def _go_on(self, begins: Checkpoint) -> None:
        """Begin at a checkpoint, overrides included."""
        for path, value in begins.header["overrides"].items():
            self._override(self._settable(path), value)
            self._overrides[path] = value
        go_on(self._stepper.engine, begins)
        self._made = self._stepper.now // self._level.length
        if self._made > self._last:
            ends = format_duration(self._time_at(self._last))
            raise ScenarioError(f"it stops at {ends}, before its checkpoint at t = {self.t!r} s", "stop")

    # time

    def step(self, n: int = 1) -> int:
        """Make n macro steps; return how many were made: fewer if a simulator has ended the simulation."""
        if n.__class__ is not int or not 0 < n <= self._quota:
            return self._step_carefully(n)
        try:
            made = self._advance(n)
        except BaseException as error:
            return self._fail(error)
        self._quota -= made
        self._made += made
        return made

    def _step_carefully(self, n: int) -> int:
        """Make steps where something may be wrong with that, or it is time to look at simulators."""
        self._check_open()
        expect(is_whole(n), "n", n, "a number of macro steps")
        if self._failed:
            what = f"its last step failed, at t = {self.t!r} s"
            raise ScenarioError(
                what, "step", "a state between two steps", "restore() a state, or open it anew"
            )
        if self._made + n > self._last:
            ends = format_duration(self._time_at(self._last))
            what = f"{n} steps from t = {float(self.time)!r} s end after the stop time, {ends}"
            raise ScenarioError(what, "step", f"at most {self._last - self._made}", "open(..., stop=...)")
        done = 0
        while done < n and not self._ended_by:
            try:
                made = self._advance(min(n - done, LOOK))
            except BaseException as error:
                return done + self._fail(error)
            done += made
            self._made += made
            self._ended_by = self._stepper.ended_by
            deliver()
            simulator_notes(self._level, self.t)
        self._quota = 0 if self._ended_by else min(self._last - self._made, LOOK)
        return done

    def _fail(self, error: BaseException) -> int:
        """Keep that a step has failed, and where; return 0 where a simulator has ended the simulation."""
        self._made = self._stepper.now // self._level.length
        self._quota = 0
        self._failed = True
        if not isinstance(error, EndRequestError):
            raise error
        self._ended_by = error.by or "a simulator"
        return 0

    def run(self, until: Duration) -> int:
        """Step to a time; return how many steps were made. It must be a whole number of them away."""
        self._check_open()
        end = parse_seconds(until, "until")
        if end < self.time:
            what = f"t = {float(self.time)!r} s is reached, which is after {format_duration(end)}"
            raise ScenarioError(what, "until", "a time that is still to come", "restore() an earlier state")
        steps = whole_steps(self.time, end, self._design.composite.step)
        return self.step(steps) if steps else 0

    @property
    def time(self) -> Fraction:
        """The time reached, in seconds, exact."""
        return self._time_at(self._made)

    def _time_at(self, steps: int) -> Fraction:
        return self.experiment.start + steps * self._design.composite.step

    @property
    def t(self) -> float:
        """The time reached, in seconds."""
        return float(self.time)

    @property
    def steps(self) -> int:
        """The macro steps made since the start."""
        return self._made

    @property
    def ended_by(self) -> str:
        """The path of the simulator that has asked to end the simulation; empty: none has."""
        return self._ended_by or ("" if self._closed else self._stepper.ended_by)

    # ports

    def __getitem__(self, path: str) -> float:
        """Return the value of a port at the time reached; NaN: it is an event, absent between instants."""
        try:
            read, address = self._ports[path]
        except (KeyError, TypeError):
            read, address = self._find_reader(path)
        value: float = read(*address)
        return value

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self._find(path) is not None

    @property
    def ports(self) -> tuple[str, ...]:
        """The paths of all ports that can be read: of every simulator, outputs first, level by level."""
        own = [port.name for port in self._design.composite.inputs]
        return (*own, *(path for level in self._design.levels() for path in _level_ports(level)))

    @property
    def overrides(self) -> Mapping[str, float]:
        """The ports that are overridden, and their values."""
        return MappingProxyType(dict(self._overrides))

    def set(self, path: str, value: float) -> None:
        """Give a port a value that holds until it is released, from the next step on.

        An input gets it in place of what drives it; an output shows it, to all that it drives, in place of
        what its simulator computes. For extrapolators it is a jump.
        """
        place = self._settable(path)
        expect(is_number(value) or is_flag(value), "value", value, "a finite number", where=f"`{path}`")
        if place.port.type != "real" and float(value) != int(value):
            expect(False, "value", value, f"a whole number: it is {place.port.type}", where=f"`{path}`")
        self._override(place, float(value))
        self._overrides[path] = float(value)

    def release(self, path: str | None = None) -> None:
        """Let a port have its own value again, or all that are overridden."""
        self._check_open()
        if path is None:
            for each in list(self._overrides):
                self.release(each)
            return
        place = self._settable(path)
        if path not in self._overrides:
            what = f"`{path}` is not overridden"
            hint = suggest_nearest(path, list(self._overrides))
            raise ScenarioError(what, "release", "a port that was set", hint)
        self._release(place, evaluate=True)
        del self._overrides[path]

    def _override(self, place: PortPlace, value: float) -> None:
        if place.place is None:
            self._stepper.set_own_input(place.number, value)
        elif place.is_input:
            self._stepper.set_input(place.place, place.child, place.number, value)
        else:
            self._stepper.set_output(place.place, place.child, place.number, value)

    def _release(self, place: PortPlace, evaluate: bool) -> None:
        if place.place is None:
            self._stepper.set_own_input(place.number, self._level.starts[place.number])
        elif place.is_input:
            if place.level.wiring.drives[place.child][place.number] is None:  # nothing feeds it again
                self._override(place, place.port.start or 0.0)
            self._stepper.release_input(place.place, place.child, place.number)
        else:
            self._stepper.release_output(place.place, place.child, place.number, evaluate)

    def _settable(self, path: str) -> PortPlace:
        """Return where a port is; refuses one that cannot be overridden."""
        self._check_open()
        place = self._find(path) if isinstance(path, str) else None
        if place is None:
            raise self._unknown(path)
        if self._failed:
            raise ScenarioError("its last step failed", f"`{path}`", "", "restore() a state, or open it anew")
        if place.port.event:
            what = f"`{path}` is an event: it has a value at instants only, and holds none"
            raise ScenarioError(what, "set", "a port that has a value at all times")
        return place

    def _find_reader(self, path: str) -> tuple[Any, tuple[Any, ...]]:
        self._check_open()
        place = self._find(path) if isinstance(path, str) else None
        if place is None:
            raise self._unknown(path)
        if place.port.event:
            reader: tuple[Any, tuple[Any, ...]] = (float, ("nan",))
        elif place.place is None:
            reader = (self._read_own_input, (path, self._level.starts[place.number]))
        else:
            reader = (self._stepper.value, (place.place, place.child, place.number, place.is_input))
        self._ports[path] = reader
        return reader

    def _read_own_input(self, path: str, start: float) -> float:
        return self._overrides.get(path, start)

    def _find(self, path: str) -> PortPlace | None:
        """Return where a port is; None: there is none of that name."""
        if path in self._places:
            return self._places[path]
        own = self._design.composite.inputs
        found = next(
            (
                PortPlace(None, self._level, -1, n, True, port)
                for n, port in enumerate(own)
                if port.name == path
            ),
            None,
        ) or self._find_inside(self._level, path)
        if found is not None:
            self._places[path] = found
        return found

    def _find_inside(self, level: Level, path: str) -> PortPlace | None:
        """Return where a port is that a path from a level leads to; names may have dots in them."""
        for end in (at for at, sign in enumerate(path) if sign == "."):
            child, rest = level.number.get(path[:end]), path[end + 1 :]
            if child is None:
                continue
            inner = level.children[child]
            if isinstance(inner, Level) and (deeper := self._find_inside(inner, rest)) is not None:
                return deeper
            model = level.wiring.models[child]
            for is_input, ports in ((False, model.outputs), (True, model.inputs)):
                for number, port in enumerate(ports):
                    if port.name == rest:
                        place = self._stepper.place(level)
                        return PortPlace(place, level, child, number, is_input, port)
        return None

    def _unknown(self, path: object) -> ScenarioError:
        """Return the error for a name that is not that of a port."""
        name, _, last = str(path).rpartition(".")
        leaves = self._design.leaves.wiring
        models = dict(zip(leaves.names, leaves.models, strict=True))
        if name in models and has_variable(models[name], last):
            what = f"`{last}` is a parameter of `{name}`, which is fixed once it is open"
            hint = f'open(..., parameters={{"{path}": ...}}), or make it an input'
            return UnknownNameError(what, f"`{path}`", "a port", hint)
        hint = suggest_nearest(str(path), self.ports)
        return UnknownNameError(f"there is no port `{path}`", "", "an input or output by its path", hint)

    # states

    def save(self) -> LiveState:
        """Return the state of the whole co-simulation, in memory; it can be restored any number of times."""
        self._check_open()
        if self._failed:
            what = f"its last step failed, at t = {self.t!r} s: there is no state between two steps"
            raise ScenarioError(what, "save", "", "restore() a state, or open it anew")
        leaves = self._design.leaves.wiring
        faults = [
            Fault(
                f"`{name}` cannot save its state",
                "save",
                "rollback",
                "`Replay(model)`, replay = true in a file",
            )
            for name, model in zip(leaves.names, leaves.models, strict=True)
            if not model.capabilities.rollback
        ]
        if faults:
            raise SimulatorError(faults)
        kept = self._stepper.save()
        return LiveState(self.time, dict(self._overrides), kept, self, self.ended_by)

    def checkpoint(self, path: Path | str) -> None:
        """Write the state of the whole co-simulation into a file; `open(what, checkpoint=path)` goes on.

        A file that is there stays beside it, as `path.previous`.
        """
        self._check_open()
        if self._failed:
            what = f"its last step failed, at t = {self.t!r} s: there is no state between two steps"
            raise ScenarioError(what, "checkpoint", "", "restore() a state, or open it anew")
        place = as_path(path)
        expect(bool(place.name), "path", path, "the name of a file")
        refuse_unportable(self._design)
        engine = self._stepper.engine
        header = self._identity.header(engine, overrides=dict(self._overrides))
        write_checkpoint(place, header, dump_state(engine), encode([]))

    def restore(self, state: LiveState) -> None:
        """Bring the whole co-simulation back to a state that it has saved, overrides included."""
        self._check_open()
        expect(isinstance(state, LiveState), "state", state, "what save() has returned")
        if state.owner is not self:
            what = "the state was saved by another Live"
            raise ScenarioError(what, "restore", "a state of this one", "save() and restore() the same one")
        for path in self._overrides:
            if path not in state.overrides:
                self._release(self._places[path], evaluate=False)
        for path, value in state.overrides.items():
            self._override(self._places[path], value)
        self._overrides = dict(state.overrides)
        self._stepper.restore(state.kept)
        self._made = self._stepper.now // self._level.length
        self._ended_by = self._stepper.engine.ended_by = state.ended_by
        self._failed = False
        self._quota = 0 if self._ended_by else min(self._last - self._made, LOOK)

    # the end

    def close(self) -> None:
        """Close every simulator; it can be called twice."""
        if self._closed:
            return
        self._ended_by = self._stepper.ended_by
        self._closed, self._quota = True, 0
        self._ports.clear()
        deliver()
        try:
            self._level.close()
        except Exception as error:  # what was computed is there
            warnings.warn(str(error), RuntimeWarning, stacklevel=2)

    def _check_open(self) -> None:
        if self._closed:
            raise ScenarioError(
                "it is closed", repr(self), "a co-simulation that is open", "hocket.open(...)"
            )

    def __enter__(self) -> Live:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        name = self.experiment.name or "a co-simulation"
        return f"<Live {name}: {'closed' if self._closed else 'open'}, t = {self.t!r} s>"


class UnknownNameError(ScenarioError, KeyError):
    """There is no port of that name."""

    def __str__(self) -> str:
        return self.text()  # a KeyError would show it quoted, on one line


def _level_ports(level: PlanTree) -> Iterator[str]:
    """Yield the paths of the ports of those inside a level."""
    for child, model in enumerate(level.wiring.models):
        for port in (*model.outputs, *model.inputs):
            if not (child in level.inner and "." in port.name):  # made on the way of a connection
                yield f"{level.name(child)}.{port.name}"
