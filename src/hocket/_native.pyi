"""What compiled code exports; `native/binding/` is where it is bound.

In:  numbers, arrays and the objects below, mostly by keyword
Out: the native engine, FMUs, and simulators in processes of their own
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

_Floats: TypeAlias = NDArray[np.float64]
_Integers: TypeAlias = NDArray[np.int64]

class MissingFunctionError(RuntimeError):
    """The binary of an FMU lacks a function that FMI demands."""

class Simulator:
    """What a native level steps without Python."""

# operations (native/engine/operations.hpp)

class Fraction:
    """The part of its level's step that a child's step is."""

    def __init__(self, *, numerator: int, denominator: int) -> None: ...
    @property
    def numerator(self) -> int: ...
    @property
    def denominator(self) -> int: ...

class AdmitOperation:
    def __init__(self) -> None: ...

class RecordOperation:
    def __init__(self) -> None: ...

class FeedOperation:
    def __init__(self, *, children: Sequence[int]) -> None: ...
    @property
    def children(self) -> list[int]: ...

class ReadOperation:
    def __init__(self, *, children: Sequence[int]) -> None: ...
    @property
    def children(self) -> list[int]: ...

class FeedPortsOperation:
    def __init__(self, *, child: int, ports: Sequence[int]) -> None: ...
    @property
    def child(self) -> int: ...
    @property
    def ports(self) -> list[int]: ...

class ReadPortsOperation:
    def __init__(self, *, child: int, ports: Sequence[int]) -> None: ...
    @property
    def child(self) -> int: ...
    @property
    def ports(self) -> list[int]: ...

class SaveOperation:
    def __init__(self, *, children: Sequence[int]) -> None: ...
    @property
    def children(self) -> list[int]: ...

class RestoreOperation:
    def __init__(self, *, children: Sequence[int]) -> None: ...
    @property
    def children(self) -> list[int]: ...

class ReactOperation:
    def __init__(self, *, children: Sequence[int]) -> None: ...
    @property
    def children(self) -> list[int]: ...

class CommitOperation:
    def __init__(self, *, children: Sequence[int]) -> None: ...
    @property
    def children(self) -> list[int]: ...

class TryOperation:
    def __init__(
        self,
        *,
        body: Sequence[Operation],
        rest: Sequence[Operation] | None,
        found: bool,
        announced: bool,
        scaled: int,
        last: int,
    ) -> None: ...

class InstantOperation:
    def __init__(
        self,
        *,
        body: Sequence[Operation],
        reacts: Sequence[Operation],
        commits: Sequence[Operation],
        at_most: int,
        continues: bool,
    ) -> None: ...

class StepOperation:
    def __init__(
        self, *, children: Sequence[int], ticks: int, fraction: Fraction, parallel: bool = False
    ) -> None: ...
    @property
    def children(self) -> list[int]: ...
    @property
    def ticks(self) -> int: ...
    @property
    def fraction(self) -> Fraction: ...
    @property
    def parallel(self) -> bool: ...

class StepReadOperation:
    def __init__(
        self, *, children: Sequence[int], ticks: int, fraction: Fraction, parallel: bool = False
    ) -> None: ...
    @property
    def children(self) -> list[int]: ...
    @property
    def ticks(self) -> int: ...
    @property
    def fraction(self) -> Fraction: ...
    @property
    def parallel(self) -> bool: ...

class SolveOperation:
    def __init__(self, *, children: Sequence[int], number: int, values: Sequence[int]) -> None: ...

class Accelerator:
    """What leads an iteration to its next guess."""

class FixedPoint(Accelerator):
    def __init__(self) -> None: ...

class Relaxation(Accelerator):
    def __init__(self, *, factor: float) -> None: ...

class Aitken(Accelerator):
    def __init__(self, *, first: float) -> None: ...

class IqnIls(Accelerator):
    def __init__(self, *, reuse: int, filter: float) -> None: ...

class Newton(Accelerator):
    def __init__(self, *, falls: float, jacobian: Sequence[Sequence[float]]) -> None: ...

class RepeatOperation:
    def __init__(
        self,
        *,
        body: Sequence[Operation],
        number: int,
        at_most: int,
        until: float | None,
        values: Sequence[int],
        slopes: Sequence[int],
        samples: Sequence[int],
        accelerator: Accelerator,
    ) -> None: ...

class Estimate(Enum):
    defect = ...
    orders = ...
    richardson = ...
    energy = ...

class StepSizeController:
    def __init__(
        self,
        *,
        tolerance: float,
        estimate: Estimate,
        per_unit: bool,
        gains: Sequence[float],
        quantum: int,
        largest: int,
        wanted: int,
        rejects: bool,
        passes: int,
        safety: float,
        most: float,
        least: float,
        power: float,
        first: int,
    ) -> None: ...

class AdaptOperation:
    def __init__(
        self,
        *,
        body: Sequence[Operation],
        number: int,
        signals: Sequence[int],
        degrees: Sequence[int],
        controller: StepSizeController,
    ) -> None: ...

class NextOperation:
    def __init__(self, *, bodies: Sequence[Sequence[Operation]]) -> None: ...

class TimesOperation:
    def __init__(self, *, body: Sequence[Operation], count: int) -> None: ...

class TogetherOperation:
    def __init__(self, *, bodies: Sequence[Sequence[Operation]]) -> None: ...

class OpenAccountsOperation:
    def __init__(self, *, held: Sequence[int], moving: Sequence[int]) -> None: ...

class CloseAccountsOperation:
    def __init__(
        self,
        *,
        held: Sequence[int],
        moving: Sequence[int],
        ticks: int,
        fraction: Fraction,
        reopens: bool,
        fed: bool,
    ) -> None: ...

Operation: TypeAlias = (
    AdmitOperation
    | FeedOperation
    | StepOperation
    | ReadOperation
    | StepReadOperation
    | SolveOperation
    | RecordOperation
    | SaveOperation
    | RestoreOperation
    | RepeatOperation
    | AdaptOperation
    | NextOperation
    | TimesOperation
    | TogetherOperation
    | OpenAccountsOperation
    | CloseAccountsOperation
    | TryOperation
    | ReactOperation
    | CommitOperation
    | InstantOperation
    | FeedPortsOperation
    | ReadPortsOperation
)

# linear models

class StepMaps:
    """A step of a length: its micro steps, the matrices of one, and the work of bonds."""

    def __init__(
        self,
        *,
        ticks: int,
        h: float,
        count: int,
        micro_h: float,
        Phi: _Floats,
        Gamma: _Floats,
        first_Phi: _Floats | None = None,
        first_Gamma: _Floats | None = None,
        works: _Floats | None = None,
    ) -> None: ...

class LinearModel:
    """What all simulators of one linear model share."""

    def __init__(
        self,
        *,
        rows: int,
        multistep: bool,
        size: int,
        inputs: int,
        outputs: int,
        A: _Floats,
        B: _Floats,
        C: _Floats,
        D: _Floats,
    ) -> None: ...
    def add(self, maps: StepMaps) -> None: ...
    def ask(self, maps: Callable[[int], StepMaps]) -> None:
        """Ask for the maps of a length that was not added when a step of it is made."""

class View:
    """Another bond of a partner, by the numbers of the inputs that tell of it."""

    def __init__(self, *, output: int, input: int, share: int, sign: float, bonds: int) -> None: ...

class Seat:
    """A side of a balanced bond, by the numbers of its ports."""

    def __init__(
        self,
        *,
        output: int,
        input: int,
        told: int,
        share: int,
        booked: int | None,
        sign: float,
        beyond: Sequence[View],
    ) -> None: ...

class Balance:
    """What all simulators of one balanced model share."""

    def __init__(
        self,
        *,
        linear: LinearModel,
        inputs: int,
        seats: Sequence[Seat],
        Q: _Floats,
        held: _Floats | None,
        whole: float,
        straight: bool,
    ) -> None: ...

class Agreed:
    """What was agreed for a step of which a simulator makes several."""

    def __init__(
        self, *, t: float, parts: Sequence[float], paid: Sequence[float], work: Sequence[float]
    ) -> None: ...

# levels

class Clock:
    def __init__(
        self, *, tick: int, start: int, denominator: int, quantum: int = 1, coarse: int = 0
    ) -> None: ...
    def event_tick(self, seconds: float, *, nearest: bool) -> int: ...

class InputKind(Enum):
    hold = ...
    polynomial = ...
    hermite = ...
    nepce = ...
    passed = ...
    passed_hold = ...
    latch = ...
    correction = ...

class FittedInput:
    """A driven input of a child; `seen`, `before` and `after` are the memory of NEPCE."""

    def __init__(
        self,
        *,
        kind: InputKind,
        child: int,
        input: int,
        source: int,
        samples: int,
        alpha: float,
        gain: float,
        offset: float,
        seen: int = 0,
        before: float = 0.0,
        after: float = 0.0,
    ) -> None: ...

class OwnInputs:
    """Polynomials of a level's own inputs, from a tick on."""

    def __init__(self, *, coefficients: _Floats, base: int) -> None: ...

class Account:
    """One side of a power bond, with where it stands after the start."""

    def __init__(
        self,
        *,
        child: int,
        input: int,
        signal: int,
        factor: float,
        asked: bool,
        anew: bool,
        inside: int,
        state_shares: Sequence[float],
        input_shares: Sequence[float],
        feedthrough: Sequence[float],
        power: float,
        energy: float,
        from_y: float,
        from_rest: float,
        since: int,
    ) -> None: ...

class LinkedInput:
    """The input of a number; `link` and `place`: where its source comes from another host, else -1."""

    def __init__(self, *, signal: int, port: int, link: int = -1, place: int = -1) -> None: ...

class LinkedOutput:
    """An output of a child, and the inputs of that child it reacts to at once."""

    def __init__(self, *, signal: int, reacts: Sequence[int]) -> None: ...

class Member:
    """A child on a host."""

    def __init__(self, *, inputs: Sequence[LinkedInput], outputs: Sequence[LinkedOutput]) -> None: ...

class RowBuffer:
    """Rows that wait for the recorder."""

    def __init__(self, *, width: int, interval: int) -> None: ...
    def __len__(self) -> int: ...
    def append(self, row: Sequence[float], /) -> None: ...
    @property
    def size(self) -> int:
        """Rows, those taken included."""

    def truncate(self, count: int, /) -> None:
        """Let the first so many rows stay, those taken included."""

    def dump(self) -> tuple[int, int, int, bytes]:
        """Return the values taken, the tick and the instant of the newest row, and the rows that wait."""

    def load(self, taken: int, newest: int, newest_n: int, data: bytes) -> None: ...
    def settle(self, count: int, /) -> None:
        """Take the first so many rows as final, those taken included; until then all are."""

    def take(self) -> _Floats:
        """Return the rows that are final, and forget them."""

def guard_process(*, quiet: bool) -> None:
    """Keep the rows of runs should this process crash; `quiet`: without a word on standard error."""

class RunGuard:
    """A run under way: what is written of it should the process crash, or end inside an FMU."""

    def __init__(self, *, folder: str, facts: str) -> None: ...
    def set_facts(self, before: str, after: str) -> None:
        """Set the text of run.json but for the words that say how it ended."""
    def set_tables(self, tables: Sequence[tuple[str, Sequence[RowBuffer]]]) -> None:
        """Set the files that the rows go to, and where they wait, the oldest first."""
    def close(self) -> None: ...

class ColumnKind(Enum):
    input = ...
    output = ...
    ledger = ...

class Column:
    def __init__(self, *, kind: ColumnKind, child: int, port: int, event: int = -1) -> None: ...

class Level:
    """A level under construction; `Engine` and `add_level` take it over."""

    def __init__(
        self, *, number: int, clock: Clock, length: int, degree: int, inputs: int, keeps: bool = False
    ) -> None: ...
    def add_state_space(
        self, *, model: LinearModel, z: _Floats, last_h: float, micro: RowBuffer | None, ports: Sequence[int]
    ) -> None: ...
    def add_sampled(
        self,
        *,
        model: LinearModel,
        z: _Floats,
        last_h: float,
        number: int,
        length: int,
        follows: bool,
        around: bool,
        taken: Sequence[tuple[int, float, float]],
        given: Sequence[tuple[int, float, float]],
        offered: _Floats,
        used: _Floats,
        values: _Floats,
    ) -> None: ...
    def add_projected(
        self,
        *,
        balance: Balance,
        z: _Floats,
        last_h: float,
        work: _Floats,
        brought: float,
        agreed: Agreed | None,
    ) -> None: ...
    def add_python(
        self,
        *,
        simulator: Any,
        micro: Any,
        event_tick: Any,
        observes: bool,
        places: bool,
        rows: int,
        inputs: int,
        outputs: int,
    ) -> None: ...
    def add_native(self, *, simulator: Simulator, rows: int, inputs: int, outputs: int) -> None: ...
    def add_level(self, *, level: Level, rows: int, inputs: int, outputs: int) -> None: ...
    def add_input(self, input: FittedInput) -> None: ...
    def add_text(self, *, child: int, output: int, target: int, input: int) -> None: ...
    def add_text_ports(
        self, *, inputs: Sequence[tuple[int, int]], outputs: Sequence[tuple[int, int]]
    ) -> None: ...
    def add_output(self, *, source: int, gain: float, offset: float) -> None: ...
    def add_samples(
        self,
        *,
        signal: int,
        depth: int,
        sloped: bool,
        ticks: _Integers,
        values: _Floats,
        slopes: _Floats,
    ) -> None: ...
    def set_memory(
        self, *, u: _Floats, y: _Floats, bases: _Integers, used: OwnInputs, offered: OwnInputs
    ) -> None: ...
    def set_accounts(self, *, bonds: int, accounts: Sequence[Account]) -> None: ...
    def add_member(
        self,
        *,
        sources: Sequence[int],
        event_inputs: Sequence[bool],
        followed: Sequence[bool],
        event_outputs: Sequence[bool],
        takes_part: bool,
        level: bool,
    ) -> None: ...
    def set_instants(
        self, *, outputs: Sequence[int], around: bool, longest: int, ends_outside: bool
    ) -> None: ...
    def set_messages(
        self,
        *,
        signals: int,
        links: Sequence[Sequence[int]],
        members: Sequence[Member],
        depths: Sequence[int],
    ) -> None: ...
    def set_programs(self, *, step: Sequence[Operation], output: Sequence[Operation]) -> None: ...
    def record(self, *, rows: RowBuffer, columns: Sequence[Column]) -> None: ...

# the engine

class FailureKind(Enum):
    none = ...
    raised = ...
    stopped_early = ...
    not_finite = ...
    internal = ...
    loop_singular = ...
    loop_not_converged = ...
    reported = ...
    not_converged = ...
    tolerance_not_met = ...
    no_energy = ...
    endless_instants = ...
    past_event = ...
    zeno = ...
    chattering = ...
    never_whole = ...
    ended = ...
    not_settled = ...

class Call(Enum):
    step = ...
    output = ...
    slope = ...
    save = ...
    restore = ...
    due = ...
    react = ...
    commit = ...
    space_events = ...
    start = ...

class Failure:
    """Why a run ended; `port` may also say which loop, iteration or step control of the plan it was."""

    @property
    def kind(self) -> FailureKind: ...
    @property
    def level(self) -> int: ...
    @property
    def child(self) -> int: ...
    @property
    def port(self) -> int: ...
    @property
    def call(self) -> Call: ...
    @property
    def tick(self) -> int: ...
    @property
    def ticks(self) -> int: ...
    @property
    def value(self) -> float: ...

# the start

class DriveKind(Enum):
    none = ...
    constant = ...
    own = ...
    output = ...

class StartProgram:
    """What the start of a tree needs to know beside its levels, see native/engine/start_program.hpp."""

    def __init__(self) -> None: ...
    def add_leaf(
        self,
        *,
        level: int,
        child: int,
        inputs: int,
        outputs: int,
        highest: int,
        once: bool,
        settles: bool,
        waits: bool,
        frozen: bool,
    ) -> None: ...
    def add_drive(
        self, *, kind: DriveKind, leaf: int, port: int, gain: float, offset: float, start: float | None
    ) -> None: ...
    def set_order(
        self,
        *,
        by_name: Sequence[int],
        first_reads: Sequence[int],
        drives_others: Sequence[bool],
        starts: Sequence[float],
    ) -> None: ...
    def add_round(self, *, leaves: Sequence[int], loop: Sequence[int]) -> None: ...
    def add_window(self, *, ticks: int, degree: int, models: Sequence[int]) -> None: ...
    def add_level(self, *, window: int, back: int, feeds: int) -> None: ...
    def add_model(self, model: LinearModel) -> int:
        """Return the number that a window has for it."""

class LateInput:
    """An input of a leaf that is initialised once: what it was then, and what it is."""

    @property
    def leaf(self) -> int: ...
    @property
    def input(self) -> int: ...
    @property
    def used(self) -> float: ...
    @property
    def now(self) -> float: ...

class StartReport:
    """What a start has to say; `unsettled` are places among all outputs."""

    @property
    def failure(self) -> Failure: ...
    @property
    def unsettled(self) -> list[int]: ...
    @property
    def late(self) -> list[LateInput]: ...
    @property
    def failed(self) -> bool: ...

class IterationCounts:
    @property
    def repeats(self) -> int: ...
    @property
    def total(self) -> int: ...
    @property
    def most(self) -> int: ...

class StepCounts:
    @property
    def accepted(self) -> int: ...
    @property
    def rejected(self) -> int: ...
    @property
    def shortest(self) -> int: ...
    @property
    def longest(self) -> int: ...
    @property
    def passed(self) -> int: ...
    @property
    def passed_at(self) -> int: ...
    @property
    def worst(self) -> float: ...
    @property
    def seen(self) -> float: ...

class BondFlow:
    @property
    def energy(self) -> float: ...
    @property
    def moved(self) -> float: ...

class LinkLoad:
    @property
    def messages(self) -> int: ...
    @property
    def values(self) -> int: ...

class LevelReport:
    """What a level counted; the residuals are those of its newest iteration."""

    @property
    def iterations(self) -> IterationCounts: ...
    @property
    def steps(self) -> StepCounts: ...
    @property
    def residuals(self) -> list[float]: ...
    @property
    def bonds(self) -> list[BondFlow]: ...
    @property
    def links(self) -> list[LinkLoad]: ...

class SavedState:
    """The state of a whole tree between two steps."""

class VariableKind(Enum):
    time = ...
    input = ...
    output = ...
    seen = ...
    initial = ...
    parameter = ...

class VariableType(Enum):
    real = ...
    integer = ...
    boolean = ...

class PlanVariable:
    def __init__(
        self,
        *,
        kind: VariableKind,
        type: VariableType,
        level: int,
        child: int,
        port: int,
        start: float,
        code: int,
    ) -> None: ...

def write_plan(
    *,
    level: Level,
    program: StartProgram,
    name: str,
    token: str,
    variables: Sequence[PlanVariable],
    names: Sequence[tuple[Sequence[str], Sequence[Sequence[str]]]],
    step: int,
    adaptive: bool,
) -> bytes:
    """Raises ValueError for what cannot be written down."""

class Engine:
    def __init__(self, *, level: Level, rows: Sequence[RowBuffer], threads: int, always: bool) -> None: ...
    def run(self, steps: int, seconds: float, most_values: int, attend: Callable[[bool], bool] | None) -> int:
        """Return how many steps were made; below zero: the next one failed."""

    def advance(self, steps: int) -> int:
        """Return how many steps were made; -1 minus that number: it failed, was stopped, or was ended."""

    def start(self, program: StartProgram, t: float, stop: float | None, started: bool) -> StartReport:
        """Start the tree anew; `started`: its simulators were."""

    def take_first_instants(self) -> bool: ...
    def value(self, level: int, child: int, port: int, is_input: bool) -> float: ...
    def set_own_input(self, port: int, value: float) -> None: ...
    def set_input(self, level: int, child: int, port: int, value: float) -> None: ...
    def release_input(self, level: int, child: int, port: int) -> None: ...
    def set_output(self, level: int, child: int, port: int, value: float) -> None: ...
    def release_output(self, level: int, child: int, port: int, evaluate: bool) -> bool: ...
    def save(self) -> SavedState | None:
        """Return the state of the whole tree; None: `failure` says why."""

    def restore(self, state: SavedState) -> bool: ...
    def dump(self) -> tuple[bytes, list[Any]] | None:
        """Return the state for a file: numbers, and what simulators in Python save; None: it failed."""

    def load(self, numbers: bytes, states: list[Any]) -> bool | None:
        """Go on from what was dumped; None: `failure` says why; False: it is not of this tree."""

    def forget_failures(self) -> None: ...
    def settle_rows(self) -> None:
        """Find out which rows are final: a RowBuffer hands out no others."""

    @property
    def stopped(self) -> bool:
        """Whether `attend` has said that the run does not go on."""

    @property
    def within_step(self) -> bool:
        """Whether it was stopped, or failed, within a step."""

    def failure(self) -> Failure | None: ...
    def take_error(self) -> BaseException | None: ...
    def report(self, level: int) -> LevelReport: ...
    def state(self, level: int, child: int) -> list[float]: ...
    def add_last_rows(self) -> None: ...
    @property
    def now(self) -> int: ...

# FMUs

class FmuState:
    """The state of an FMU, to be restored."""

    def dump(self) -> bytes | None:
        """Return it for another process; None: it failed."""

class Exchange:
    """Model exchange; None, -1 and False: a call failed."""

    def enter(self, t: float, u: _Floats, /) -> bool: ...
    def rates(self, s: float, x: _Floats, /) -> _Floats | None: ...
    def watch(self, s: float, ds: float, /) -> bool: ...
    def crossed(self, s: float, x: _Floats, /) -> int: ...
    def accept(self, s: float, x: _Floats, /) -> int: ...
    def event(self) -> bool: ...
    def postpone(self, s: float, h: float, /) -> int:
        """Return 0: an event here is to be handled, 1: the step ends here, 2: that is its end."""

    @property
    def lag(self) -> float: ...
    def leave(self) -> None: ...
    def due(self, end: float, /) -> float: ...
    def probe(self, x: _Floats, u: _Floats, outputs: int, /) -> tuple[_Floats, _Floats] | None: ...
    def nominals(self) -> _Floats | None: ...
    @property
    def x(self) -> _Floats: ...
    @property
    def inputs(self) -> _Floats: ...
    @property
    def indicators(self) -> int: ...
    @property
    def discarded(self) -> bool: ...

class Fmu(Simulator):
    def set_origin(
        self,
        *,
        version: int,
        folder: str,
        library: str,
        prefix: str,
        settings: Sequence[FmuSetting],
        tells_stop: bool,
        tolerance: float | None,
    ) -> None: ...
    """An FMU; None and False: a call failed, and `problem` says why."""

    early: bool
    grid: float
    def instantiate(self) -> bool: ...
    def put(self, type: int, references: Sequence[int], values: Sequence[float], /) -> bool: ...
    def put_whole(self, type: int, references: Sequence[int], values: Sequence[int], /) -> bool: ...
    def put_texts(self, references: Sequence[int], values: Sequence[bytes], binary: bool, /) -> bool: ...
    def configure(self, enter: bool, /) -> bool: ...
    def prepare(self, t: float, stop: float | None, tolerance: float | None) -> bool: ...
    def begin(self) -> bool: ...
    def take(self, type: int, references: Sequence[int], count: int) -> list[float] | None: ...
    def directional(
        self, unknowns: Sequence[int], knowns: Sequence[int], seed: Sequence[float], count: int, /
    ) -> list[float] | None:
        """Return how the unknowns change along the seed of the knowns, where it stands."""

    @property
    def gives_directional(self) -> bool:
        """Whether its binary has the function for that."""

    def ready(self) -> bool: ...
    def close(self) -> None: ...
    def step(self, t: float, h: float, u: _Floats, /) -> int:
        """Return 0: done, 1: it ended early, 2: it failed."""

    def output(self, u: _Floats, /) -> _Floats | None: ...
    def slope(self, u: _Floats, /) -> _Floats | None: ...
    def due(self) -> float | None: ...
    def react(self, t: float, n: int, u: _Floats, present: Sequence[bool], /) -> list[bool] | None:
        """Return which outputs are present."""

    def commit(self) -> int:
        """Return 1: another instant must follow, 0: none, -1: it failed."""

    def save(self) -> FmuState | None: ...
    def restore(self, state: FmuState, /) -> bool: ...
    def load(self, state: bytes, /) -> bool: ...
    def doubts_saving(self) -> tuple[list[float], float, bool] | None:
        """Return the last inputs and step of an FMU that may stand still because its state was saved.

        And whether only behind a state that may still be restored.
        """
    def trust_saving(self) -> None: ...
    @property
    def first_rows(self) -> tuple[float, float, list[list[float]], list[list[float]]] | None:
        """Time and length of its first step; outputs and inputs before it, and after each of the first."""
    def begins_smoothly(self, ratio: float, /) -> bool:
        """Return whether no output moves so much more in its first step than in the next; not before both."""
    def refuse_saving(self, why: str, /) -> None: ...
    def text(self, port: int, /) -> bytes | None: ...
    def set_text(self, port: int, value: bytes, /) -> bool: ...
    @property
    def can_save(self) -> bool: ...
    @property
    def problem(self) -> str: ...
    @property
    def remedy(self) -> str:
        """What helps against the problem, where that is known."""
    @property
    def reached(self) -> float: ...
    @property
    def ended(self) -> bool: ...
    @property
    def failed_by_end(self) -> bool: ...
    @property
    def complaint(self) -> str: ...
    @property
    def exchange(self) -> Exchange: ...
    @property
    def notes(self) -> list[str]: ...
    name: str

class VariableGroup:
    """Variables of one type that are set or read in one call; `places`: per value the number of its port."""

    def __init__(
        self, *, type: int, references: Sequence[int], places: Sequence[int], negated: bool = False
    ) -> None: ...
    @property
    def type(self) -> int: ...
    @property
    def references(self) -> list[int]: ...
    @property
    def places(self) -> list[int]: ...

class TextVariable:
    """A string or binary variable."""

    def __init__(self, *, reference: int, binary: bool) -> None: ...
    @property
    def reference(self) -> int: ...
    @property
    def binary(self) -> bool: ...

class ExchangeSetup:
    """How hocket integrates an FMU for model exchange: its states, and the tableau a, b, c, a row by row."""

    def __init__(
        self,
        *,
        states: int,
        indicators: int,
        completed_step: bool,
        all_move: bool,
        moving: Sequence[VariableGroup],
        doubted: Sequence[tuple[int, Sequence[int]]],
        a: Sequence[float],
        b: Sequence[float],
        c: Sequence[float],
        multistep: bool,
        longest: float,
        atol: float,
    ) -> None: ...

class ClockSetup:
    """A clock of FMI 3; kinds: 0 triggered, 1 output, 2 periodic, 3 changing, 4 countdown."""

    def __init__(
        self,
        *,
        reference: int,
        kind: int,
        place: int,
        priority: int,
        told: bool,
        tunable: bool,
        fractions: bool,
        interval: tuple[int, int],
        shift: tuple[int, int],
        name: str,
    ) -> None: ...

class FmuSetting:
    def __init__(
        self,
        *,
        structural: bool,
        type: int,
        references: Sequence[int],
        values: Sequence[float] = (),
        whole: Sequence[int] = (),
        texts: Sequence[bytes] = (),
    ) -> None: ...

class FmuSetup:
    """What the model description of an FMU says, as numbers."""

    def __init__(
        self,
        *,
        name: str,
        token: str,
        resources: str,
        logging: bool,
        events: bool,
        feeds_through: bool,
        variable: bool,
        interpolates: bool,
        inputs: int,
        outputs: int,
        set: Sequence[VariableGroup],
        get: Sequence[VariableGroup],
        sloped: Sequence[VariableGroup],
        continuous: Sequence[int],
        discrete: Sequence[int],
        time: Sequence[int],
        texts_in: Sequence[TextVariable],
        texts_out: Sequence[TextVariable],
        exchange: ExchangeSetup | None,
        clocks: Sequence[ClockSetup] = ...,
        clocked_in: Sequence[Sequence[int]] = ...,
        clocked_out: Sequence[Sequence[int]] = ...,
        scheduled: bool = ...,
        clocked_texts_in: Sequence[Sequence[int]] = ...,
        clocked_texts_out: Sequence[Sequence[int]] = ...,
    ) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def token(self) -> str: ...
    @property
    def resources(self) -> str: ...
    @property
    def logging(self) -> bool: ...
    @property
    def events(self) -> bool: ...
    @property
    def early(self) -> bool: ...
    @property
    def feeds_through(self) -> bool: ...
    @property
    def variable(self) -> bool: ...
    @property
    def interpolates(self) -> bool: ...
    @property
    def inputs(self) -> int: ...
    @property
    def outputs(self) -> int: ...
    @property
    def set(self) -> list[VariableGroup]: ...
    @property
    def get(self) -> list[VariableGroup]: ...
    @property
    def continuous(self) -> list[int]: ...
    @property
    def discrete(self) -> list[int]: ...
    @property
    def time(self) -> list[int]:
        """The independent variable, where there is one."""
    @property
    def texts_in(self) -> list[TextVariable]: ...
    @property
    def texts_out(self) -> list[TextVariable]: ...

def fmu(*, version: int, library: str, prefix: str, setup: FmuSetup, file: str, crash_file: str) -> Fmu: ...
def count_end_requests() -> int:
    """Return how many simulators of this process have asked to end their simulation so far."""

def changes_arithmetic() -> bool:
    """Return whether an FMU has changed how this thread rounds, takes small numbers, or traps."""

def take_log() -> list[tuple[str, int, str, str]]:
    """Return what FMUs said since: instance, status, category, text."""

# formulas (simulators/formulas.py, simulators/block.py)

class Program:
    """Operations on registers, as a tape has written them down."""

    def __init__(
        self,
        *,
        given: int,
        constants: Sequence[float],
        operations: Sequence[tuple[int, ...]],
        results: Sequence[int],
    ) -> None: ...
    def evaluate(self, given: Sequence[float], /) -> list[float]: ...

class Block(Simulator):
    """A simulator that is formulas: how it moves, what it shows, when something happens and what."""

    def __init__(
        self,
        *,
        inputs: int,
        outputs: int,
        degree: int,
        longest: float,
        instants: bool,
        takes_part: bool,
        advance: Program | None,
        show: Program,
        next: Program | None,
        react: Program | None,
        state: Sequence[float],
    ) -> None: ...

# simulators in processes of their own

class Isolated(Simulator):
    """The side that asks; None and False: the process is gone, or what it says is in the payload."""

    quiet: bool
    def __init__(self, fd: int, inputs: int, outputs: int, limit: float, /) -> None: ...
    @staticmethod
    def needed(inputs: int, outputs: int, payload: int, /) -> int: ...
    def put(self, payload: bytes, /) -> bool: ...
    def attach(self, process: int, /) -> None: ...
    def detach(self) -> None: ...
    def wait_opened(self, limit: float, /) -> bool: ...
    def call(self, name: str, question: bytes, limit: float, /) -> bool: ...
    def step(self, t: float, h: float, u: _Floats, /) -> float | None: ...
    def output(self, t: float, u: _Floats, /) -> _Floats | None: ...
    def slope(self, t: float, u: _Floats, /) -> _Floats | None: ...
    def reject(self) -> None:
        """End its process: what it has answered is not well formed."""

    @property
    def payload(self) -> bytes: ...
    @property
    def payload_at(self) -> int: ...
    @property
    def worded(self) -> bool: ...
    @property
    def ended(self) -> bool: ...
    @property
    def failed_by_end(self) -> bool: ...
    @property
    def end(self) -> str: ...
    @property
    def code(self) -> int: ...
    @property
    def took(self) -> float: ...
    @property
    def starved(self) -> float: ...
    @property
    def function(self) -> bytes: ...
    @property
    def asked(self) -> str: ...
    @property
    def said(self) -> bytes: ...
    @property
    def problem(self) -> str: ...

class LookWhileWaiting:
    """Within `with`, `look` is called while this thread waits for an isolated simulator.

    Where it raises, the simulator is given up, its process ended, and take_raised returns what was raised.
    """

    def __init__(self, look: Callable[[], object], /) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *how: object) -> None: ...

def give_up_waiting() -> None:
    """Interrupt all that wait for isolated simulators, on whichever thread."""

class Server:
    """The side that answers."""

    def __init__(self, fd: int, parent: int, /) -> None: ...
    def serve(self, simulator: Simulator | None) -> str:
        """Answer what a level asks; return "call", "step", "output" or "slope", to be answered in Python."""

    def answer_number(self, value: float, /) -> None: ...
    def answer_numbers(self, values: _Floats, /) -> None: ...
    def answer(self, value: bytes, /) -> None: ...
    def refuse(self, words: bytes, /) -> None: ...
    @property
    def question(self) -> bytes: ...
    @property
    def t(self) -> float: ...
    @property
    def h(self) -> float: ...
    @property
    def u(self) -> _Floats: ...

def take_raised() -> BaseException | None:
    """Return what the handler of a signal, or a look, raised while an answer was waited for."""
