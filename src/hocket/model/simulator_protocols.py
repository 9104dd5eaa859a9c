"""What simulators must be able to do, and what they may be able to do.

In:  any object that may be a simulator
Out: `Capabilities`, `Simulator`, and one protocol with its contract for each of their optional capabilities;
     functions that ask a simulator for a value and know what holds where it is missing
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a simulator can do beyond stepping; `hocket.testing` checks that it is true."""

    rollback: bool = False
    """save() and restore()."""
    variable_step: bool = True
    """Any step is accepted, not only the one of its level."""
    input_degree: int | None = None
    """The highest power of time in an input that is honoured; None: any."""
    slopes: bool = False
    """slope(t, u) gives the time derivatives of the outputs."""
    slopeless: tuple[str, ...] = ()
    """With `slopes`: outputs it gives none of, such as what is merely observed or not a real; 0 there."""
    micro: bool = False
    """It reports its micro steps to `micro(t, y)`, where that attribute is set."""
    order: int | None = None
    """The order of its solver; None: exact, or not known."""
    reevaluates: bool = True
    """output() between steps follows new inputs; False: only at the start and after a step."""
    stops_early: bool = False
    """A step may end before its time, where an event is; steps are then rolled back and shortened."""
    initial_inputs: Literal["unused", "settle", "once"] = "unused"
    """Whether its initial state may depend on its inputs, whatever feedthrough it declares: no; while they
    settle, until `ready()`; on those of the first `output()`, once."""
    resumes: bool = False
    """After a step that ended early it stands there and goes on: without a partner nothing is rolled back."""
    events: bool = False
    """due(), react() and commit(): it takes part in instants; steps end where it announces an event."""
    catches_up: bool = False
    """With `events`: where nobody lets it react, as in a sampled level, it meets its events in its steps."""
    observes: bool = False
    """It watches outputs and drives nothing but events: in every algorithm it steps behind what it watches,
    and may ask for another end of the step, shorter or longer, to the last rounding."""

    @property
    def all_slopes(self) -> bool:
        """Whether the derivatives of all outputs are given."""
        return self.slopes and not self.slopeless


class Simulator(Protocol):
    """The live thing. The caller owns the clock.

    `u` has one column per input and one row per power of (time - t): `u[0]` are the values at t, `u[1]`
    the slopes. It belongs to the caller: copy what must outlast the call. In the linear reading every
    number is a row, so `u` has a third axis.
    """

    def start(self, t: float) -> None:
        """Go to the initial state, at time t."""

    def output(self, t: float, u: Array) -> Array:
        """Return the outputs at t. No time passes; may be called repeatedly."""

    def step(self, t: float, h: float, u: Array) -> float:
        """Advance from t by h seconds; return the time reached."""

    def close(self) -> None:
        """Let go of everything held."""


class RollbackSimulator(Simulator, Protocol):
    """A simulator that can roll back.

    It has both methods or none, and its model says so with `capabilities.rollback`. The engine saves before
    a step that may be made again (iterations, rejected steps, the start window) and restores afterwards.
    Where it is missing no step of its level is ever repeated.
    """

    def save(self) -> Any:
        """Return the state, to be kept by the caller: what happens later does not change it."""

    def restore(self, state: Any) -> None:
        """Roll back to a saved state, bit for bit; it may be restored many times."""


class OutputDerivativeSimulator(Simulator, Protocol):
    """A simulator that knows the time derivatives of its outputs; `capabilities.slopes` says so.

    The engine asks after each evaluation of the outputs whose connections extrapolate with slopes (Hermite).
    Where it is missing such an extrapolation is refused.
    """

    def slope(self, t: float, u: Array) -> Array:
        """Return the time derivatives of the outputs at t, one for each, in their units per second."""


class PreferredStepSimulator(Simulator, Protocol):
    """A simulator that prefers steps below some length.

    Step control asks before each step; the shortest of all preferences limits the step. Where it is missing
    any step is as good as another.
    """

    def prefers(self, t: float) -> float:
        """Return the longest step from t that it prefers, in seconds, above zero; nothing changes."""


class StoredEnergySimulator(Simulator, Protocol):
    """A simulator that knows the energy it stores.

    The energy ledger asks at the start and at the end of a run, and at every step where bonds are balanced.
    Where it is missing the ledger knows only what crosses the bonds.
    """

    def energy(self) -> float:
        """Return the energy that is stored in its state, in joules, a finite number; nothing changes."""


class InitialisationSimulator(Simulator, Protocol):
    """A simulator that leaves its initialisation on request, as FMUs do.

    Between start() and ready() no time passes, and new inputs may change the initial state. The engine
    evaluates the outputs of all simulators until they agree, calls ready() once on each, and evaluates again.
    Where it is missing the initialisation ends with start().
    """

    def ready(self) -> None:
        """Leave the initialisation: the inputs are those of the last output()."""


class ImplicitInitialisationSimulator(Simulator, Protocol):
    """A simulator whose initial state may depend on its inputs, whatever feedthrough it declares.

    The engine gives it the final inputs of the start once more, and starts over where that changes outputs.
    Where it is missing or False, outputs at the start follow from the declared direct feedthrough alone.
    """

    settles: bool


def settles_at_start(simulator: object) -> bool:
    """Return whether the initial state of a simulator may depend on its inputs."""
    return bool(getattr(simulator, "settles", False))


class RunEndSimulator(Simulator, Protocol):
    """A simulator that wants to know when the run ends.

    The engine sets it before start(): seconds, or None where the end is not known. FMUs are told; where it is
    missing nothing is set.
    """

    stop_time: float | None


class NamedSimulator(Simulator, Protocol):
    """A simulator that wants to know which model it is of.

    The engine sets it after opening, before start(): the path of the model, such as `car.left`. FMUs are
    instantiated under this name; where it is missing nothing is set.
    """

    instance_name: str


class NotingSimulator(Simulator, Protocol):
    """A simulator that may find out, while it runs, what its user should know.

    The engine asks between steps, now and then, and after a run; the notes stand with those of the plan, each
    with the path of the model. What makes its numbers worthless is raised as a SimulatorError, which ends the
    run. Where it is missing there are no notes.
    """

    def notes(self) -> Sequence[str]:
        """Return sentences of which the simulator is the subject, `it`: all so far."""


class EarlyReturnSimulator(Simulator, Protocol):
    """A simulator that ends steps at events only where its level can handle that.

    The engine sets it to True after opening, in levels that roll back and shorten their steps. False, and
    where it is missing: step() goes on behind an event, unless `capabilities.stops_early` is declared.
    """

    early: bool


class EventSimulator(Simulator, Protocol):
    """A simulator in which something happens at single instants: `capabilities.events` is declared.

    Time is (t, n). A step ends at the earliest time that any simulator of the level announces. At that time
    output() still gives the values before the event (left limits). Then the instants n = 1, 2 ... of that
    time follow, and no time passes: in each of them those react that are due, that asked for another
    instant, or that have an input which is present, in feedthrough order, and then all of these commit.
    output() gives the values after the event once commit() has returned. The last instant is the one after
    which nothing is present or due. What is saved and restored includes all of it.
    """

    def due(self) -> Fraction | float | None:
        """Return the time of its next event, in seconds; None: it announces none.

        A time that is not after the time reached means now. It may change in step(), commit() and restore().
        Where no step was made, after start() and commit(), a time before the one reached is refused.
        """

    def react(self, t: float, n: int, u: Array, present: Sequence[bool]) -> Sequence[bool] | None:
        """Evaluate what happens at the instant (t, n); return which of its outputs are present.

        `u` has the values of all inputs, those of absent events as they were last present. `present` says
        which inputs are events that are present or values that have jumped. The answer counts for outputs
        that are events or clocks, one flag per output; None: none of them is present. It may be called more
        than once per instant and must not change what due() and commit() do later.
        """

    def commit(self) -> bool:
        """End the instant: change states as react() has found; return whether another instant must follow."""


class SpacedEventSimulator(EventSimulator, Protocol):
    """A simulator that can go on where its events pile up (Zeno) or chatter.

    The engine asks for it once, at such an event, in levels with `on_zeno = "continue"`. Where it is missing
    such a level goes on with the events as they come.
    """

    def space_events(self, interval: float) -> None:
        """From now on, let events be at least so many seconds apart: what happens earlier is met then."""


class InstantSettingSimulator(EventSimulator, Protocol):
    """A simulator that handles its events inside its steps, unless its level takes instants.

    The engine sets it after opening, in levels that take them: the seconds between two places of the clock
    at which events may happen. An event that is so near to the end of a step is at its end, and is left to
    the instants that follow. 0, and where it is missing: as the simulator likes.
    """

    event_grid: float


class EndingSimulator(Simulator, Protocol):
    """A simulator that may ask to end the simulation, as FMUs do.

    The engine looks at it between the steps of the outermost level. True: the run ends there; a further step
    would raise `EndRequestError`, as one does that is not whole when it asks. False after start(), and where
    it is missing: only the stop time ends a run.
    """

    @property
    def ended(self) -> bool:
        """Whether it has asked to end the simulation, and was not rolled back since."""


class MicroStepSimulator(Simulator, Protocol):
    """A simulator that reports its micro steps; `capabilities.micro` says so.

    Whoever records micro steps sets it after opening; None: nobody does. It is then called after each micro
    step with the time in seconds and the outputs there, in order; the last call of a step is at its end.
    Where it is missing nothing is known between the steps.
    """

    micro: Callable[[float, Array], None] | None


class TextSimulator(Simulator, Protocol):
    """A simulator that exchanges strings and binaries; its model names them, see `TextModel`.

    The engine hands a text over when it sets the inputs of the target. Ports are counted as in `texts`,
    inputs and outputs apart. Where it is missing only numbers are exchanged.
    """

    def text(self, port: int) -> bytes:
        """Return an output as it is now."""

    def set_text(self, port: int, value: bytes) -> None:
        """Set an input."""


class NativeSimulator(Simulator, Protocol):
    """A simulator that compiled code steps without Python.

    `native` is an object of the native module with the same state; the native engine takes it in place of
    the simulator, with equal results bit for bit. None, or where it is missing: the engine calls the Python
    methods.
    """

    @property
    def native(self) -> Any:
        """The object of the native module."""


def native_twin(simulator: object) -> Any:
    """Return what compiled code steps in place of a simulator; None: nothing."""
    return getattr(simulator, "native", None)


class LinearSimulator(Simulator, Protocol):
    """A simulator whose state is a column, so that it can be read as a matrix.

    The linear reading sets `z` to a matrix and steps all its columns at once. The first `size` of its numbers
    are states, those behind them the history of a multistep method. `last_h` is the length of the
    last micro step in seconds, where a multistep method has a history, and None at the start. Where it is
    missing the simulator is identified or linearised first.
    """

    z: Array
    size: int
    last_h: float | None


def linear_state(simulator: object) -> Array:
    """Return the state of a linear simulator; empty for any other."""
    state: Array = getattr(simulator, "z", np.zeros(0))
    return state


def last_micro_step(simulator: object) -> float | None:
    """Return the length of the last micro step of a linear simulator in seconds; None: not known."""
    length: float | None = getattr(simulator, "last_h", None)
    return length
