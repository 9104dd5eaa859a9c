"""What models, simulators and extrapolators must be able to do, and what they may be able to do.

In:  ports; any object that may be a model, a simulator or an extrapolator
Out: protocols, those of simulators handed on from `simulator_protocols`; `provides`, which asks an object for
     one; functions that ask for a value and know what holds where it is missing

A capability that is optional is a protocol of its own here, with its contract. No other module looks for an
attribute by name. `docs/capabilities.md` lists all of them,
and `hocket.testing` tries those that a model has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeGuard, TypeVar

from hocket.model.ports import Port
from hocket.model.simulator_protocols import (
    Array,
    Capabilities,
    EarlyReturnSimulator,
    EndingSimulator,
    EventSimulator,
    ImplicitInitialisationSimulator,
    InitialisationSimulator,
    InstantSettingSimulator,
    LinearSimulator,
    MicroStepSimulator,
    NamedSimulator,
    NativeSimulator,
    NotingSimulator,
    OutputDerivativeSimulator,
    PreferredStepSimulator,
    RollbackSimulator,
    RunEndSimulator,
    Simulator,
    SpacedEventSimulator,
    StoredEnergySimulator,
    TextSimulator,
    last_micro_step,
    linear_state,
    native_twin,
    settles_at_start,
)

# fmt: off
__all__ = [  # noqa: RUF022 - in the order of the story
    # simulators
    "Array", "Capabilities", "EarlyReturnSimulator", "EndingSimulator", "EventSimulator",
    "ImplicitInitialisationSimulator",
    "InitialisationSimulator", "InstantSettingSimulator", "LinearSimulator", "MicroStepSimulator",
    "NamedSimulator", "NativeSimulator",
    "NotingSimulator", "OutputDerivativeSimulator", "PreferredStepSimulator", "RollbackSimulator",
    "RunEndSimulator", "Simulator", "SpacedEventSimulator", "StoredEnergySimulator", "TextSimulator",
    "last_micro_step",
    "linear_state", "native_twin", "settles_at_start",
    # models
    "BookkeepingModel", "CheckableModel", "ClassModel", "ClosableObject", "DeclaringClass", "DescribedModel",
    "FileModel", "IntegratedModel", "IsolatedModel", "Model", "ParameterModel", "ProbedModel",
    "Recipe", "RemadeModel", "RepeatingModel", "SampledModel", "SteppedModel", "StoredEnergyModel",
    "TextModel", "Variable", "VariableTable", "WrapperModel",
    "bookkeeping_ports", "class_declarations", "declared_energy", "described_variables", "has_parameters",
    "innermost", "is_isolated", "is_model", "method_of", "origin_of", "period_of", "recipe_of",
    "state_count", "step_of",
    "text_ports", "intervals_of", "wrapped_model",
    # signals
    "Extrapolator", "Sample", "Value", "is_extrapolator",
    # queries
    "declarations", "hand_on", "members_of", "provides",
]
# fmt: on

Asked = TypeVar("Asked")
Value: TypeAlias = Any
"""A number in the exchange memory: a float in a run, a row of floats in the linear reading."""


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


class RepeatingModel(Model, Protocol):
    """A model in which something repeats at intervals: samples, ticks of clocks.

    The planner refuses intervals that have no common tick with the others. Where it is missing nothing does.
    """

    @property
    def intervals(self) -> Mapping[str, Fraction]:
        """What repeats, or is counted from the start of it, by name, in seconds, above zero."""


def intervals_of(model: object) -> Mapping[str, Fraction]:
    """Return the intervals at which something in a model repeats, in seconds, by name."""
    intervals: Mapping[str, Fraction] = getattr(model, "intervals", {})
    return intervals


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

    @property
    def minimum(self) -> float | None:
        """The smallest value it may have, in its unit; None: there is none."""

    @property
    def maximum(self) -> float | None:
        """The largest value it may have, in its unit; None: there is none."""


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
    description: VariableTable | None = getattr(innermost(model), "description", None)
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


def innermost(model: object) -> object:
    """Return the model inside all wrappers."""
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
    bare = innermost(model)
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
    return bool(getattr(innermost(model), "is_isolated", False))


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


class RemadeModel(Model, Protocol):
    """A model that is made anew when a parameter changes, as a block is: its parameters are what made it.

    Where it is missing the model has no such parameters; a linear model has those of the block it stands for.
    """

    @property
    def arguments(self) -> dict[str, Any]:
        """What it was made with, by name."""

    def remake(self, arguments: Mapping[str, Any]) -> Model:
        """Return a model made with these arguments; raises ScenarioError as making it does."""


class Recipe(NamedTuple):
    """What a model was made by that says less of itself: a linear model that stands for a block."""

    name: str
    """What that is called in files."""
    make: Callable[..., Model]
    arguments: Mapping[str, Any]


def recipe_of(model: object) -> Recipe | None:
    """Return what a linear model was made by; None: it is made of its matrices, or is no linear model."""
    return getattr(model, "recipe", None)


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
    for name in members_of(wanted):  # every simulator of a run is asked several times: no generator
        if not hasattr(given, name):
            break
    else:
        return True
    return False


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
