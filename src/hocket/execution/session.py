"""A run under way: opened, stepped, paced and recorded, and closed whatever happens.

In:  a Job: an experiment that is planned and checked
Out: a Run; on a failure or Ctrl-C with every row so far
"""

from __future__ import annotations

import gc
import logging
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from math import isfinite
from time import perf_counter
from types import FrameType
from typing import Any, Literal, TypeAlias

from hocket._native import RunGuard
from hocket.engine.host_exchange import HostExchange
from hocket.engine.initialise import initialise
from hocket.engine.ledger import check_stored_energies, stored_energies
from hocket.engine.native.engine import NativeEngine, native_obstacle
from hocket.engine.opening import open_level, simulator_notes
from hocket.engine.portable_state import dump_state
from hocket.engine.recording import ArrowRecorder
from hocket.engine.reference.engine import InterpreterEngine
from hocket.engine.reference.instants import take_first_instants
from hocket.engine.reference.level import Level
from hocket.engine.reference.step_control import StepCounts
from hocket.engine.selection import ConstraintDrift, RecordedTable, TableChoice, bind_tables, keep_start_rows
from hocket.engine.value_watch import ValueWatch
from hocket.errors import ConvergenceError, EndRequestError, HocketError, HostError, merge_notes
from hocket.execution.checkpoint_identity import Identity
from hocket.execution.checkpoints import Checkpoints, go_on, go_on_with_rows
from hocket.execution.pacing import RealTimePacer
from hocket.files.checkpoint import Checkpoint
from hocket.files.run_facts import FACTS, Status
from hocket.files.run_folder import Run, RunFolder
from hocket.files.toml import dumps
from hocket.model.clock import Clock
from hocket.model.experiment import Experiment
from hocket.model.protocols import Array
from hocket.planning.parameters import is_fmu
from hocket.planning.source_pulses import missed_pulses
from hocket.planning.tree import PlanTree
from hocket.simulators.fmu.log_messages import deliver


@contextmanager
def pause_collector() -> Iterator[None]:
    """Pause Python's garbage collector, if it is on.

    Building a large tree makes millions of objects and no garbage: it is about a third faster without.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


LOOK_INTERVAL = 0.1
"""Seconds between two looks at the keyboard, the progress bar and the rows."""

PATIENCE = 0.3
"""Seconds that a step is given to end after a request to stop."""

Progress: TypeAlias = Callable[[float, float], None]
"""Called with the time reached and the stop time, about ten times a second."""

EngineName: TypeAlias = Literal["native", "interpreter"]


class StopRequest:
    """A request to stop, and the time since a step under way was found to have got it."""

    def __init__(self, asked: threading.Event):
        self.asked = asked
        self.since: float | None = None

    def is_overdue(self) -> bool:
        """Return whether the step under way had its time to end."""
        if self.asked.is_set() and self.since is None:
            self.since = perf_counter()
        return self.since is not None and perf_counter() - self.since >= PATIENCE


@dataclass(frozen=True)
class Job:
    """What is to be run, checked: nothing is opened yet."""

    experiment: Experiment
    design: PlanTree
    clock: Clock
    steps: int
    choices: list[TableChoice]
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What else is to be kept in run.json."""
    resumes: Checkpoint | None = None
    """What the run goes on from; None: it begins at the start."""
    appends: bool = False
    """The rows go on in the folder of the run that is resumed."""
    checkpoint_every: float | None = None
    """Seconds of real time between two checkpoints; None: none is written."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What else a checkpoint is to say: which ports were asked to be recorded."""

    @property
    def stop(self) -> float:
        """When the run stops, in seconds."""
        assert self.experiment.stop is not None
        return float(self.experiment.stop)


@dataclass
class Execution:
    """A job being done. Use it in the order start, proceed, end; or fail; and close in any case."""

    job: Job
    output: RunFolder
    level: Level | None = None
    engine: NativeEngine | InterpreterEngine | None = None
    recorded: list[RecordedTable] = field(default_factory=list)
    pace: RealTimePacer | None = None
    phases: dict[str, float] = field(default_factory=dict)
    stored: Mapping[str, float] = field(default_factory=dict)
    """The stored energy at the start, of simulators that tell it."""
    notes: list[str] = field(default_factory=list)
    drift: ConstraintDrift = field(default_factory=lambda: ConstraintDrift(()))
    watch: ValueWatch = field(default_factory=lambda: ValueWatch((), {}, 0.0, 1.0))
    written: dict[int, float] = field(default_factory=dict)
    """Per table: the time of the newest row on disk."""
    unwritten: dict[int, Array] = field(default_factory=dict)
    """Per table: rows that are not on disk yet, or find no room there."""

    checkpoints: Checkpoints | None = None
    exchange: HostExchange | None = None
    """What passes to other hosts; None: all run here."""

    def __post_init__(self) -> None:
        self.recorder = ArrowRecorder(self.output.path)
        self.guard = RunGuard(folder=str(self.output.path), facts=str(self.output.path / FACTS))

    def start(self, wanted: EngineName, threads: int | None, realtime: float | None = None) -> None:
        """Open and initialise everything; write down what will be run."""
        job = self.job
        if realtime is not None:
            self.pace = RealTimePacer(float(realtime), float(job.design.composite.step))
        self.output.add(job.facts)
        self.guard.set_facts(*self.output.crash_facts())
        with self._time_phase("start"), pause_collector(), take_turns(job.design):
            self.level = open_level(job.design, job.clock)
            start_notes = initialise(self.level, job.clock.time(0), job.stop, self.exchange)
            self.recorded = bind_tables(self.level, job.choices)
            keep_start_rows(self.recorded)
            take_first_instants(self.level)
            self.drift = ConstraintDrift(self.recorded)
            start = float(job.experiment.start)
            self.watch = ValueWatch(self.recorded, job.experiment.valid, start, float(job.stop))
            came_from = job.resumes
            self.stored = stored_energies(self.level) if came_from is None else came_from.header["stored"]
            check_stored_energies(self.stored, job.clock.time(0))
            why = native_obstacle(self.level, job.steps * self.level.length)
            if self.exchange is not None:
                why = "values pass between hosts, which the interpreter does"
            if wanted == "interpreter" or why:
                self.engine = InterpreterEngine(self.level, self.recorded)
            else:
                condense = came_from is None or bool(came_from.header["condensed"])
                self.engine = NativeEngine(self.level, self.recorded, threads, condense)
            if came_from is not None:
                go_on(self.engine, came_from)
                go_on_with_rows(self.engine, self.recorded, came_from, job.appends)
            if job.checkpoint_every is not None:
                self._prepare_checkpoints(job.checkpoint_every)
        self.next_look = 0.0
        plan_notes = job.design.plan.all_notes()
        pulses = [str(each) for each in missed_pulses(job.design, job.clock.time(0), job.stop)]
        self.notes = merge_notes(
            [*job.experiment.notes, *plan_notes, *start_notes, *_fmu_notes(job.design), *pulses]
        )
        tables = [entry.table for entry in self.recorded]
        if came_from is not None and job.appends:
            self.recorder.reopen(tables, came_from.header["position"])
            self._look_back()
        else:
            self.recorder.open(tables)
        self.output.begin(
            tables,
            scenario=_scenario_text(job.experiment),
            plan=f"{job.design.plan}\n",
            engine=self.engine.name,
            why_interpreted=why if wanted == "native" else "",
            start=float(job.experiment.start),
            stop=job.stop,
            notes=self.notes,
        )
        rescued = enumerate(self.recorder.rescue_paths)
        self.guard.set_tables([(str(path), self.engine.waiting_rows(index)) for index, path in rescued])
        self.guard.set_facts(*self.output.crash_facts())

    def proceed(self, progress: Progress | None, interrupted: threading.Event | None = None) -> Status:
        """Step to the end, or until the user asks to stop, by Ctrl-C or by the event, or a simulator does."""
        assert self.engine is not None
        left = self.job.steps - self.engine.now // self.job.clock.ticks(self.job.design.composite.step)
        if not self.job.appends:
            self._keep_checkpoint(True)
        asked = interruptible() if interrupted is None else nullcontext(interrupted)
        try:
            with self._time_phase("steps"), asked as stopping:
                attend = partial(self._attend, progress, StopRequest(stopping))
                run = partial(self.engine.run, attend=attend)
                while left and not stopping.is_set() and not self.engine.ended_by:
                    if self.pace is None:
                        left -= run(left, LOOK_INTERVAL)
                    else:
                        left -= self.pace.run(run, left, LOOK_INTERVAL, stopping)
                    self._attend(progress)
                    over = not left or stopping.is_set() or bool(self.engine.ended_by)
                    self._look_into_simulators(over)
                    self._keep_checkpoint(over)
        except EndRequestError as request:  # inside a step: what is known of its end is not consistent
            self._drain()
            return self._note_end(request.by, "inside the step that follows")
        except HostError as error:
            if error.status != "stopped":
                raise
            self._drain()
            return "stopped"
        except ConvergenceError:
            self._look_into_simulators()  # one that stands still may be why
            raise
        self.engine.keep_last_rows()
        self._drain()
        if left and self.engine.ended_by:
            return self._note_end(self.engine.ended_by, "")
        return "stopped" if left else "finished"

    def _prepare_checkpoints(self, every: float) -> None:
        """Find out before the first step whether the state of everything can be written down."""
        assert self.engine is not None
        began = perf_counter()
        dump_state(self.engine)
        identity = Identity(self.job.experiment, self.job.design, self.job.clock)
        facts = {**self.job.options, "stored": dict(self.stored)}
        self.checkpoints = Checkpoints(self.output.path, every, identity, facts)
        self.checkpoints.wait(perf_counter() - began)

    def _keep_checkpoint(self, over: bool) -> None:
        """Write a checkpoint where one is due, or the run ends between two steps: it may go on from there."""
        if self.checkpoints is None or self.engine is None or not (over or self.checkpoints.is_due):
            return
        if self.engine.ended_by:  # it would go on beyond its end
            return
        self._drain()
        self.recorder.sync()
        self.checkpoints.write(self.engine, self.recorded, self.recorder.position)

    def _look_back(self) -> None:
        """Have what looks at every row look at those of the process before."""
        for index, block in self.recorder.written_blocks():
            self.drift.observe(index, block)
            self.watch.observe(index, block)
            self.written[index] = float(block[-1, 0])

    def _note_end(self, simulator: str, where: str) -> Status:
        """Write down which simulator has asked to end the simulation."""
        when = f"at t = {self.time_reached:g} s" + (f", {where}" if where else "")
        self.notes = [*self.notes, f"`{simulator}` asked to end the simulation {when}"]
        self.output.add({"ended_by": simulator, "notes": self.notes})
        return "ended"

    def _attend(
        self, progress: Progress | None, asked: StopRequest | None = None, still: bool = True
    ) -> bool:
        """Write the final rows, where nothing moves them, and tell progress; return whether to go on.

        Within a step the time reached is that of its start.
        """
        if still:
            self._drain()
        if progress is not None:
            progress(self.time_reached, self.job.stop)
        return asked is None or not asked.is_overdue()

    def end(self, status: Status) -> Run:
        """Write down how it went, and return what can be looked at."""
        assert self.engine is not None
        assert self.level is not None
        self._keep_pace()
        counts = {
            "steps": self.engine.now // self.level.length,
            "simulators": len(self.job.design.leaves.places),
        }
        sweeps, steps = self.engine.sweeps().items(), self.engine.steps().items()
        more: dict[str, Any] = {
            "sweeps": {path: asdict(each) for path, each in sweeps if each.repeats},
            "adapted": {path: self._in_seconds(each) for path, each in steps if each.accepted},
            "messages": self.engine.messages(),
        }
        counts |= {name: each for name, each in more.items() if each}
        if told := list(self._step_control_notes()):
            self.notes = [*self.notes, *told]
            self.output.add({"notes": self.notes})
        if kept := self.drift.notes():
            self.notes = [*self.notes, *kept]
            self.output.add({"notes": self.notes, **self.drift.facts()})
        self._keep_simulator_notes()
        if found := self.watch.findings():
            self.notes = [*self.notes, *merge_notes([str(each) for each in found])]
            self.output.add({"notes": self.notes, "findings": self.watch.facts()})
        if status == "finished" and self.watch.has_diverged:
            status = "diverged"
        if self.engine.within_step:
            if status != "ended":  # who has ended it, and where, is noted
                step = f"stopped within a macro step, at t = {self.time_reached!r} s"
                lost = "rows that a rollback could have changed, and energies of power bonds, are left out"
                self.notes = [*self.notes, f"{step}: {lost}"]
            elif self.engine.energies():
                self.notes = [*self.notes, "energies of power bonds are left out: it ended inside a step"]
            self.output.add({"notes": self.notes, "within_step": True})
        else:
            self._keep_energies()
        self._sync()
        ended = self.output.end(status, reached=self.time_reached, counts=counts, phases=self.phases)
        self.guard.set_facts(*self.output.crash_facts())
        return ended

    def _look_into_simulators(self, over: bool = True) -> None:
        """Raise what a simulator has found out that makes its numbers worthless.

        Until the run is over this is done so seldom that it takes a hundredth of the time.
        """
        began = perf_counter()
        if self.level is not None and (over or began >= self.next_look):
            simulator_notes(self.level, self.time_reached)
            ended = perf_counter()
            self.next_look = ended + 100.0 * (ended - began)

    def _keep_simulator_notes(self) -> None:
        """Keep what simulators found out while they ran."""
        told = simulator_notes(self.level, self.time_reached) if self.level is not None else []
        if told:
            self.notes = [*self.notes, *merge_notes(told)]
            self.output.add({"notes": self.notes})

    def _keep_energies(self) -> None:
        assert self.engine is not None
        if bonds := self._bonds():
            self.output.add({"bonds": bonds})
        if not self.stored:
            return
        try:
            now = self.engine.stored_energy()
        except HocketError as error:
            warnings.warn(str(error), RuntimeWarning, stacklevel=3)
            return
        both = {path: {"start": start, "end": now[path]} for path, start in self.stored.items()}
        known = {path: each for path, each in both.items() if isfinite(each["end"])}
        self.output.add({"stored": known} if known else {})
        if len(known) < len(both):
            lost = [f"`{path}` says {now[path]} J" for path in both if path not in known]
            told = f"stored energy at the end, left out as not a finite number: {', '.join(lost)}"
            self.output.add({"notes": [*self.notes, told]})

    def _bonds(self) -> dict[str, dict[str, Any]]:
        """Return what flowed through every power bond, as either side saw it."""
        assert self.engine is not None
        found: dict[str, dict[str, Any]] = {}
        flowed = self.engine.energies()
        for level in self.job.design.levels():
            prefix = f"{level.path}." if level.path else ""
            for number, joint in enumerate(level.wiring.bonds):
                (given, one), (taken, other) = flowed[level.path][2 * number : 2 * number + 2]
                found[f"{prefix}{joint.name}"] = {
                    "given": given + 0.0,  # where nothing flowed, not less than nothing
                    "taken": taken + 0.0,
                    "gained": taken - given,
                    "moved": 0.5 * (one + other),
                    "unit": joint.energy_unit,
                }
        return found

    def _in_seconds(self, steps: StepCounts) -> dict[str, float]:
        """Return the steps of an adaptive level, those that are counted in ticks in seconds."""
        span = self.job.clock.span
        found = asdict(steps) | {"shortest": span(steps.shortest), "longest": span(steps.longest)}
        if not steps.passed:
            return {key: found[key] for key in ("accepted", "rejected", "shortest", "longest")}
        return found | {"passed_at": self.job.clock.time(steps.passed_at)}

    def _step_control_notes(self) -> Iterator[str]:
        """Yield where step control saw nothing, or passed what no step was short enough for."""
        assert self.engine is not None
        for path, each in self.engine.steps().items():
            where = f"`{path}`: " if path else ""
            if each.accepted > 1 and not each.seen:
                yield (
                    f"{where}the estimated error was zero in each of {each.accepted} steps: nothing moves, or"
                    " step control is blind to what does"
                )
            if each.passed:
                t = self.job.clock.time(each.passed_at)
                times = f"{each.passed} of the smallest steps" if each.passed > 1 else "a smallest step"
                yield (
                    f"{where}no step was short enough for the tolerance at t = {t!r} s: step control passed"
                    f" {times} with an error of up to {each.worst:.2g} tolerances, as at a jump;"
                    ' on_jump = "stop" ends the run there'
                )

    def fail(self, error: BaseException, named: bool) -> None:
        """Write the rows that wait and why it ended; what goes wrong here must not hide the error itself."""
        self.guard.set_facts("", "")
        with suppress(HocketError):
            self._drain()
        self._keep_pace()
        if self.engine is not None:
            with suppress(HocketError):
                self._keep_energies()
        with suppress(HocketError):
            status: Status = "stopped" if isinstance(error, KeyboardInterrupt) else "failed"
            text = str(error) or type(error).__name__
            self._sync()
            self.output.end(status, reached=self.time_reached, phases=self.phases, error=text)
        for index, block in self.unwritten.items():  # last: they take all the room that is left
            with suppress(HocketError):
                self._squeeze(index, block)
        if named and self.written and isinstance(error, HocketError):
            newest = min(self.written.values())
            error.add_note(f"rows up to t = {newest!r} s are kept in {self.output.path}")

    def close(self) -> None:
        """Close every simulator; what they say then is a warning: the run is over, and its rows are there."""
        self.recorder.close()
        if self.level is not None:
            try:
                self.level.close()
            except Exception as error:
                warnings.warn(str(error), RuntimeWarning, stacklevel=3)
        self.guard.close()

    @property
    def time_reached(self) -> float:
        """The time reached, in seconds."""
        return self.job.clock.time(0 if self.engine is None else self.engine.now)

    def _sync(self) -> None:
        if self.output.is_long:
            self.recorder.sync()

    def _keep_pace(self) -> None:
        if self.pace is not None:
            self.output.add({"realtime": self.pace.facts})

    def _drain(self) -> None:
        deliver()
        if self.engine is not None:
            self.engine.settle_rows()
        for index in range(self.recorder.count if self.engine is not None else 0):
            assert self.engine is not None
            block = self.engine.rows(index)
            if len(block):
                self.unwritten[index] = block
        for index, block in list(self.unwritten.items()):
            self._write(index, block)
            del self.unwritten[index]

    def _write(self, index: int, block: Array) -> None:
        self.recorder.write(index, block)
        self.drift.observe(index, block)
        self.watch.observe(index, block)
        self.written[index] = float(block[-1, 0])

    def _squeeze(self, index: int, block: Array) -> None:
        """Write as many rows as there is room for; raises where not all find some."""
        try:
            self._write(index, block)
        except HocketError:
            half = len(block) // 2
            if not half:
                raise
            self._squeeze(index, block[:half])
            self._squeeze(index, block[half:])

    @contextmanager
    def _time_phase(self, name: str) -> Iterator[None]:
        begin = perf_counter()
        try:
            yield
        finally:
            self.phases[name] = perf_counter() - begin
            _LOGGER.info("%s: %s took %.3f s", self.job.experiment.name or "run", name, self.phases[name])


_TURN = threading.RLock()
_LOGGER = logging.getLogger("hocket.run")


def take_turns(design: PlanTree) -> AbstractContextManager[Any]:
    """Let FMUs of this process be initialised for one run at a time: many are not made for more."""
    shared = any(is_fmu(model) and not model.isolate for model in design.leaves.wiring.models)
    return _TURN if shared else nullcontext()


def _fmu_notes(design: PlanTree) -> Iterator[str]:
    """Yield which FMUs stay isolated for what they did in their first contact, or have odd archives."""
    leaves = design.leaves.wiring
    for name, model in zip(leaves.names, leaves.models, strict=True):
        if is_fmu(model):
            yield from (f"`{name}`: {told}" for told in (model.contact_note, model.archive_note) if told)


def _scenario_text(experiment: Experiment) -> str:
    """Return the scenario as resolved; what cannot be written as text (a lambda) is said so."""
    try:
        return dumps(experiment, strict=False)
    except HocketError as error:
        return "".join(f"# {line}\n" for line in f"not written: {error}".splitlines())


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C, or a request to terminate, into an event that is looked at between steps.

    A signal that is ignored stays so: a shell ignores Ctrl-C for what it starts in the background.
    """
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        if interrupted.is_set():
            raise KeyboardInterrupt
        interrupted.set()

    numbers = [
        number
        for number in (signal.SIGINT, signal.SIGTERM)
        if signal.getsignal(number) not in (signal.SIG_IGN, None)
    ]
    before = [signal.signal(number, on_signal) for number in numbers]
    try:
        yield interrupted
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
