"""What simulators, models and extrapolators must be able to do, and what they may be able to do.

In:  ports; any object that may be a model, a simulator or an extrapolator
Out: protocols; `provides`, which asks an object for one; functions that ask for a value and know what holds
     where it is missing

A capability that is optional is a protocol of its own here, with its contract. No other module looks for an
attribute by name. `docs/capabilities.md` lists all of them,
and `hocket.testing` tries those that a model has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, Literal, Protocol, TypeAlias, TypeGuard, TypeVar

import numpy as np
from numpy.typing import NDArray

from hocket.model.ports import Port

Array: TypeAlias = NDArray[np.float64]
Asked = TypeVar("Asked")
Value: TypeAlias = Any
"""A number in the exchange memory: a float in a run, a row of floats in the linear reading."""


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

    The engine asks after a run; the notes stand with those of the plan, each with the path of the model.
    Where it is missing there are none.
    """

    def notes(self) -> Sequence[str]:
        """Return sentences of which the simulator is the subject, `it`."""


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


class Model(Protocol):
    """What can be coupled: a frozen recipe of a simulator. It may be opened many times, in parallel."""

    @property
    def inputs(self) -> tuple[Port, ...]:
        """The input ports, known before anything is loaded."""

    @property
    def outputs(self) -> tuple[Port, ...]:
        """The output ports, each with the inputs it directly depends on."""

    @property
    def capabilities(self) -> Capabilities:
        """What its simulators can do."""

    def open(self) -> Simulator:
        """Make a live simulator."""


def is_model(given: object) -> TypeGuard[Model]:
    """Return whether an object, not a class, can be opened."""
    return not isinstance(given, type) and hasattr(given, "open")


class CheckableModel(Model, Protocol):
    """A model that can look at its own code before it is opened.

    Readers of files call it once the whole scenario is known, so that all faults come together. Where it is
    missing faults of the code show when the model is opened.
    """

    def check(self) -> None:
        """Raise ScenarioError with what is wrong."""


class SampledModel(Model, Protocol):
    """A model with a rhythm of its own, as a digital controller has.

    The planner makes it a sampled level: inputs are sampled and held, outputs change at the samples. None, or
    where it is missing: it steps with its level.
    """

    @property
    def period(self) -> Fraction | None:
        """The time between samples in seconds, above zero."""

    def without_period(self) -> Model:
        """Return the same model in the step of its level."""


def period_of(model: object) -> Fraction | None:
    """Return the period of a sampled model in seconds; None: it has none."""
    period: Fraction | None = getattr(model, "period", None)
    return period


class SteppedModel(Model, Protocol):
    """A model with a step of its own: the micro step of a solver, or the macro step of a level.

    The step around it must be a multiple of it (of a level also the other way around), which the planner
    checks. None, or where it is missing: its solver adapts to the step that is asked for.
    """

    @property
    def step(self) -> Fraction | None:
        """The longest step that it makes, in seconds, above zero."""


def step_of(model: object) -> Fraction | None:
    """Return the step of a model of its own, in seconds; None: it has none."""
    step = getattr(model, "step", None)
    return step if step is not None and isinstance(step, Fraction) else None


class TextModel(Model, Protocol):
    """A model whose simulators exchange strings and binaries, see `TextSimulator`.

    They are connected like other ports, and never extrapolated. Where it is missing there are none.
    """

    @property
    def texts(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of the inputs and of the outputs that are texts."""


def text_ports(model: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the inputs and outputs of a model that are strings or binaries."""
    texts: tuple[tuple[str, ...], tuple[str, ...]] = getattr(model, "texts", ((), ()))
    return texts


class Variable(Protocol):
    """What a description says about a variable."""

    @property
    def type(self) -> str:
        """Such as "real", "string", "binary"."""

    @property
    def nominal(self) -> float | None:
        """Its order of magnitude, in its unit; None: not known."""


class VariableTable(Protocol):
    """The description of a model's variables."""

    @property
    def by_name(self) -> Mapping[str, Any]:
        """Every `Variable` by its name."""


class DescribedModel(Model, Protocol):
    """A model with a description of its variables, as FMUs have.

    Wiring takes the types of texts from it, identification the size of its pulses. Where it is missing texts
    are not told apart, and pulses have the size of start values.
    """

    @property
    def description(self) -> VariableTable:
        """What is known of its variables before it is opened."""


def described_variables(model: object) -> Mapping[str, Variable]:
    """Return the variables that a model describes, by their names."""
    description: VariableTable | None = getattr(_innermost(model), "description", None)
    return {} if description is None else description.by_name


class StoredEnergyModel(Model, Protocol):
    """A model that declares the energy it stores: as a matrix, or as a function of its state.

    Balanced bonds move states by it, and its simulators tell its value: each is a `StoredEnergySimulator`.
    (Of a class in Python they may be that without it.) None, or where it is missing: nothing is declared.
    """

    @property
    def energy(self) -> Any:
        """A symmetric matrix Q, for x^T Q x / 2 joules, or a function of the state."""


def declared_energy(model: object) -> Any:
    """Return the stored energy that a model declares; None: nothing."""
    return getattr(model, "energy", None)


class BookkeepingModel(Model, Protocol):
    """A model with ports that only its power bonds want.

    They are connected by the pass that adds them; results and pictures leave them out. Where it is missing
    all ports are the user's.
    """

    @property
    def bookkeeping(self) -> frozenset[str]:
        """The names of those inputs and outputs."""


def bookkeeping_ports(model: object) -> frozenset[str]:
    """Return the ports of a model that only its power bonds want."""
    ports: frozenset[str] = getattr(model, "bookkeeping", _NO_PORTS)
    return ports


_NO_PORTS: frozenset[str] = frozenset()


class WrapperModel(Model, Protocol):
    """A model around another one: it is made from the same code or file, and has the same description.

    Passes look into it, and put it around a changed model with `dataclasses.replace(wrapper, model=changed)`.
    """

    @property
    def model(self) -> Model:
        """The model inside."""


def wrapped_model(model: object) -> Model | None:
    """Return the model inside a wrapper; None: it is not one."""
    inside: Model | None = getattr(model, "model", None)
    return inside


def _innermost(model: object) -> object:
    while (inside := wrapped_model(model)) is not None:
        model = inside
    return model


class ClassModel(Model, Protocol):
    """A model that is made from code, which show and report name. Where it is missing its type is all."""

    @property
    def class_name(self) -> str:
        """The class or function as a file names it, such as `plant.py:Tank`."""


class FileModel(Model, Protocol):
    """A model that is made from a file, which show and report name. Where it is missing its type is all."""

    @property
    def path(self) -> str:
        """Where the file is."""


def origin_of(model: object) -> str:
    """Return the code or file that a model is made from; empty: neither."""
    bare = _innermost(model)
    return str(getattr(bare, "class_name", "") or getattr(bare, "path", ""))


class ProbedModel(Model, Protocol):
    """A model that was put to the test.

    What declares a capability and lacks it is not used for it, and refused with the finding. Where it is
    missing, or empty: nothing is known against what `capabilities` say.
    """

    @property
    def refuted(self) -> Mapping[str, str]:
        """Capabilities that it declares and a probe found untrue, by name, each with the finding."""


class IsolatedModel(Model, Protocol):
    """A model whose simulators may live in processes of their own. Where it is missing they live here."""

    @property
    def is_isolated(self) -> bool:
        """Whether they do."""


def is_isolated(model: object) -> bool:
    """Return whether simulators of a model live in processes of their own."""
    return bool(getattr(_innermost(model), "is_isolated", False))


class IntegratedModel(Model, Protocol):
    """A model that hocket integrates: states with their initial values, and a method.

    Show and report print it. Where it is missing nothing is known of its solver but `capabilities.order`.
    """

    @property
    def x0(self) -> Sequence[float]:
        """The initial state."""

    @property
    def method(self) -> str:
        """The integration method, such as "rk4"."""


def state_count(model: object) -> int | None:
    """Return the number of states of a model that hocket integrates; None: it has its own solver."""
    x0: Sequence[float] | None = getattr(model, "x0", None)
    return None if x0 is None else len(x0)


def method_of(model: object) -> str | None:
    """Return the integration method of a model; None: it has its own solver, or none."""
    method = getattr(model, "method", None)
    return method if isinstance(method, str) else None


class ParameterModel(Model, Protocol):
    """A model with named parameters that sweeps and searches change in a copy.

    Where it is missing the fields of its dataclass are its parameters.
    """

    @property
    def parameters(self) -> dict[str, Any]:
        """Its parameters by name."""

    @property
    def values(self) -> tuple[tuple[str, Any], ...]:
        """The same as sorted pairs: the field that is replaced."""


def has_parameters(model: object) -> TypeGuard[ParameterModel]:
    """Return whether a model has named parameters."""
    return hasattr(model, "values") and isinstance(getattr(model, "parameters", None), dict)


class ClosableObject(Protocol):
    """An object of a class of one's own that holds something, such as a file.

    Its simulator calls it last, also after a failure. Where it is missing there is nothing to let go of.
    """

    def close(self) -> None:
        """Let go of everything held."""


class DeclaringClass(Protocol):
    """A class of one's own that `Python` makes a model of: its attributes say what its methods cannot.

    They are read once, when the class is loaded. None, or where one is missing: no ports, direct feedthrough
    from every input that output() is given, and for the rest the default of the field of `Capabilities`.
    """

    inputs: Any
    """Its input ports, such as ["force [N] = 0"]."""
    outputs: Any
    """Its output ports, such as ["x [m]"]."""
    feedthrough: Mapping[str, Sequence[str]] | None
    """The inputs that each output directly depends on; an output that is left out depends on none."""
    order: int | None
    input_degree: int | None
    variable_step: bool
    stops_early: bool


def class_declarations(cls: type) -> dict[str, Any]:
    """Return what a class says by its attributes, without those that are None."""
    found = declarations(cls, DeclaringClass)
    return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Sample:
    """A value with its time, in seconds from the start of the step that is fed; perhaps with its slope."""

    s: float
    value: Value
    slope: Value = None


class Extrapolator(Protocol):
    """Turns the newest samples of a signal into a polynomial over the coming step."""

    @property
    def samples(self) -> int:
        """How many samples it looks back."""

    @property
    def degree(self) -> int:
        """The degree of its polynomials."""

    @property
    def slopes(self) -> bool:
        """Whether the samples must carry slopes."""

    def start(self, y0: Value) -> Value:
        """Return the memory w that belongs to a first sample y0; None if it keeps none."""

    def fit(self, samples: Sequence[Sample], w: Value) -> tuple[list[Value], Value]:
        """Return the coefficients in powers of time, and the new memory.

        The samples come oldest first, at most `samples` of them, fewer at a cold start. `w` is the memory
        before the newest sample: the engine advances it once per sample, however often it is fed.
        """


def is_extrapolator(given: object) -> TypeGuard[Extrapolator]:
    """Return whether an object, not a class, fits polynomials to samples."""
    return not isinstance(given, type) and hasattr(given, "fit")


@cache
def members_of(protocol: type) -> tuple[str, ...]:
    """Return the names of the methods and attributes that a protocol asks for, without those it inherits."""
    own = {**vars(protocol).get("__annotations__", {}), **vars(protocol)}
    return tuple(name for name in own if not name.startswith("_"))


def declarations(given: object, protocol: type) -> dict[str, Any]:
    """Return those members of a protocol that an object or a class has, by their names."""
    return {name: getattr(given, name) for name in members_of(protocol) if hasattr(given, name)}


def provides(given: object, protocol: type[Asked]) -> TypeGuard[Asked]:
    """Return whether an object or a class has all that a protocol asks for beyond what it inherits."""
    wanted: type = protocol
    return all(hasattr(given, name) for name in members_of(wanted))


def hand_on(source: object, target: object, protocols: tuple[type, ...]) -> None:
    """Give an object those capabilities of another one that are named here, where that one has them."""
    for names in _member_lists(protocols):
        for name in names:
            if not hasattr(source, name):
                break
        else:
            for name in names:
                setattr(target, name, getattr(source, name))


@cache
def _member_lists(protocols: tuple[type, ...]) -> list[tuple[str, ...]]:
    return [members_of(protocol) for protocol in protocols]
