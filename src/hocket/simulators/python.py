"""Simulators from classes that people write in Python.

In:  a class, or text that names one ("plant.py:Tank"), its ports and parameters
Out: a Model whose simulators are objects of that class
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from hocket.errors import (
    Fault,
    HocketError,
    Place,
    ScenarioError,
    SimulatorError,
    count,
    raise_faults,
    suggest_nearest,
)
from hocket.model.arguments import set_fields
from hocket.model.clock import Duration
from hocket.model.ports import Port, PortLike, parse_ports
from hocket.model.protocols import (
    Array,
    Capabilities,
    ClosableObject,
    EventSimulator,
    OutputDerivativeSimulator,
    PreferredStepSimulator,
    RollbackSimulator,
    Simulator,
    StoredEnergySimulator,
    class_declarations,
    declarations,
    hand_on,
    members_of,
    provides,
)
from hocket.simulators.recipes import (
    Recipe,
    load,
    place_of,
    positive_duration,
    qualified_name,
    with_feedthrough,
)
from hocket.simulators.sampling import (
    JitterLike,
    SampledSimulator,
    Sampling,
    sampled_capabilities,
    sampled_ports,
    sampling_faults,
)

_OFFERS = (
    RollbackSimulator,
    OutputDerivativeSimulator,
    PreferredStepSimulator,
    StoredEnergySimulator,
    EventSimulator,
)
"""What objects of a class may be able to do beyond stepping."""


def _arguments(*protocols: type) -> dict[str, tuple[str, ...]]:
    """Return the arguments of the methods of protocols, such as ("t", "u"), by their names."""
    methods = [(name, vars(protocol)[name]) for protocol in protocols for name in members_of(protocol)]
    return {name: tuple(inspect.signature(method).parameters)[1:] for name, method in methods}


_OPTIONAL = _arguments(*_OFFERS, ClosableObject)
_CALLS = {name: taken for name, taken in _arguments(Simulator).items() if name not in _OPTIONAL}
_FLAGS = ("variable_step", "stops_early")


class _ClassFacts(NamedTuple):
    """What is known once the class is loaded."""

    cls: type[Any] | None
    """None: it is not loaded."""
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    capabilities: Capabilities
    takes_inputs: bool
    """Whether its output() wants u."""


@dataclass(frozen=True, init=False, eq=False)
class Python(Recipe):
    """A class as a model; further keywords are the parameters its objects are made with.

    The class has `start(t)`, `output(t, u)` or `output(t)`, and `step(t, h, u)`, which returns the time
    reached (None: t + h); perhaps `close()`, `save()` and `restore(state)`, `slope(t, u)`, and `prefers(t)`,
    the longest step in seconds that it likes from there, for step control; `energy()`, the joules that it
    stores; `due()`, `react(t, n, u, present)` and `commit()`, where something happens at single instants.
    Class attributes may tell the rest: `inputs`, `outputs`, `order`, `input_degree`, `variable_step`,
    `stops_early` (step() may return an earlier time, where an event is), and `feedthrough`, a mapping such as
    `{"y": ["u"]}`. Without it every input is taken to have direct feedthrough to every output of
    `output(t, u)`, and to none of `output(t)`. A text is loaded when it is first asked about; file paths
    start in `folder`.

    With a `period` it is sampled: its inputs are taken at `offset` + k `period` after the start, and its
    outputs change `delay` later. `jitter` moves the samples, {"uniform": "1 ms"}: late by 0 to 1 ms, or
    {"normal": "1 ms"}, the standard deviation; two with the same `seed` have the same jitter. Without a
    period these four are parameters, as is a `seed` without `jitter`.
    """

    cls: type[Any] | str
    own_inputs: tuple[Port, ...] | None
    """The ports given here; None: those of the class."""
    own_outputs: tuple[Port, ...] | None
    period: Fraction | None
    """Its own step in seconds, for the engine to wrap it with; None: the step of its level."""
    sampling: Sampling | None
    """Its period, where an offset, a delay or a jitter is given too: then it announces its samples."""
    values: tuple[tuple[str, Any], ...]
    folder: str

    def __init__(
        self,
        cls: type[Any] | str,
        inputs: Iterable[PortLike] | None = None,
        outputs: Iterable[PortLike] | None = None,
        period: Duration | None = None,
        offset: Duration | None = None,
        delay: Duration | None = None,
        jitter: JitterLike | None = None,
        seed: int | None = None,
        *,
        folder: str | Path = "",
        **parameters: Any,
    ):
        options: dict[str, Any] = {"offset": offset, "delay": delay, "jitter": jitter, "seed": seed}
        given = {name: value for name, value in options.items() if value is not None}
        if period is None or given.keys() == {"seed"}:
            parameters, given = {**parameters, **given}, {}
        elif jitter is None and seed is not None:
            parameters["seed"] = given.pop("seed")
        sampling = None if period is None or not given else Sampling.of(period, **given)
        set_fields(
            self,
            cls=cls,
            own_inputs=None if inputs is None else parse_ports(inputs),
            own_outputs=None if outputs is None else parse_ports(outputs),
            period=None if period is None or sampling else positive_duration(period, "period"),
            sampling=sampling,
            values=tuple(sorted(parameters.items())),
            folder=str(folder),
        )
        if not isinstance(cls, str):
            _ = self._class_facts

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        known = state.pop("_class_facts", None)
        return state if known is None or known.cls else {**state, "_class_facts": known}

    @property
    def inputs(self) -> tuple[Port, ...]:
        return self._class_facts.inputs

    @property
    def outputs(self) -> tuple[Port, ...]:
        own = self._class_facts.outputs
        return own if self.sampling is None else sampled_ports(own)

    @property
    def intervals(self) -> dict[str, Fraction]:
        if self.sampling is None:
            return {}
        roles = {"period": self.sampling.period, "offset": self.sampling.offset, "delay": self.sampling.delay}
        return {role: length for role, length in roles.items() if length}

    @property
    def capabilities(self) -> Capabilities:
        own = self._class_facts.capabilities
        return own if self.sampling is None else sampled_capabilities(own)

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(self.values)

    @property
    def class_name(self) -> str:
        """The class as text that `Python` reads back."""
        return qualified_name(self.cls)

    @property
    def declared(self) -> Mapping[str, Any]:
        """What its class says of itself; nothing, if it is not loaded."""
        cls = self._class_facts.cls
        return {} if cls is None else class_declarations(cls)

    @property
    def is_loaded(self) -> bool:
        """Whether its class was loaded when its ports were asked for; see `unloaded`."""
        return self._class_facts.cls is not None

    @property
    def needs_loading(self) -> bool:
        """Whether its class is to be loaded before anything is known of it but what is given here."""
        return isinstance(self.cls, str) and "_class_facts" not in self.__dict__

    def without_class(self, inputs: tuple[Port, ...], outputs: tuple[Port, ...]) -> Python:
        """Return the same model with these ports, to be looked at without loading its class."""
        bare = copy.copy(self)
        events = any(port.event for port in (*inputs, *outputs))
        bare.__dict__["_class_facts"] = _ClassFacts(None, inputs, outputs, Capabilities(events=events), True)
        return bare

    def without_period(self) -> Python:
        """Return the same model in the step of its level."""
        bare = copy.copy(self)
        set_fields(bare, period=None)
        return bare

    def without_sampling(self) -> Python:
        """Return the model of what is sampled: a step of it is what a sample does."""
        bare = copy.copy(self)
        set_fields(bare, sampling=None)
        return bare

    @cached_property
    def _class_facts(self) -> _ClassFacts:
        return self._load_class()

    def _load_class(self) -> _ClassFacts:
        where = self.class_name
        cls = load(self.cls, self.folder) if isinstance(self.cls, str) else self.cls
        if not isinstance(cls, type):
            expected = "a class, or text such as `plant.py:Tank`"
            raise ScenarioError(f"`{where}` is not a class", where, expected)
        raise_faults(
            [
                *_method_faults(cls, where),
                *parameter_faults(cls, self.parameters, where),
                *self._ambiguous_faults(cls, where),
            ]
        )
        declared = class_declarations(cls)
        inputs = declared.get("inputs") if self.own_inputs is None else self.own_inputs
        outputs = declared.get("outputs") if self.own_outputs is None else self.own_outputs
        if inputs is None and outputs is None:
            hint = 'give them here or in the class: `inputs = ["force [N]"]`, `outputs = ["x [m]"]`'
            what = f"`{cls.__name__}` has neither inputs nor outputs"
            raise ScenarioError(what, where, "named ports", hint)
        inputs = parse_ports(inputs or ())
        outputs = with_feedthrough(parse_ports(outputs or ()), inputs, declared.get("feedthrough"), where)
        takes_inputs = _takes_arguments(cls, "output", 2)
        if not takes_inputs:
            outputs = tuple(replace(port, feedthrough=()) for port in outputs)
        capabilities = _class_capabilities(cls, where)
        if self.sampling is not None:
            raise_faults(sampling_faults(inputs, outputs, capabilities, where))
        return _ClassFacts(cls, inputs, outputs, capabilities, takes_inputs)

    def _ambiguous_faults(self, cls: type[Any], where: str) -> Iterator[Fault]:
        """Yield the options of sampling that are parameters of the class too."""
        for name in () if self.sampling is None else self.sampling.written_options:
            if name in _parameter_names(cls):
                what = (
                    f"`{name}` is a parameter of `{cls.__name__}`, and of its sampling where it has a period"
                )
                yield Fault(what, Place(key=name, detail=where), "another name for the parameter")

    def open(self) -> Simulator:
        known = self._class_facts if self._class_facts.cls else self._load_class()
        cls: Any = known.cls
        try:
            made = cls(**self.parameters)
        except HocketError:
            raise
        except (TypeError, ValueError) as error:
            what = f"`{cls.__name__}` cannot be made with these parameters: {error}"
            raise ScenarioError(what, self.class_name, f"parameters {_signature_text(cls)}") from error
        except Exception as error:
            what = f"`{cls.__name__}` cannot be made: {type(error).__name__}: {error}"
            raise SimulatorError(what, place_of(error)) from error
        simulator = _ObjectSimulator(made, known.takes_inputs)
        if known.capabilities.events:
            simulator.check_events()
        if self.sampling is None:
            return simulator
        return SampledSimulator(simulator, self.sampling, known.inputs, known.outputs)


class _ObjectSimulator:
    """The object's own bound methods, adapted only where they differ from the protocol."""

    def __init__(self, made: Any, takes_inputs: bool):
        output: Callable[..., Any] = made.output
        self.object = made
        self.start: Callable[[float], None] = made.start
        self.output: Callable[[float, Array], Array] = output if takes_inputs else lambda t, _: output(t)
        self.close: Callable[[], None] = made.close if provides(made, ClosableObject) else lambda: None
        self._step: Callable[[float, float, Array], float | None] = made.step
        hand_on(made, self, _OFFERS)
        if provides(made, RollbackSimulator):
            self._keep_states(made)

    def _keep_states(self, made: RollbackSimulator) -> None:
        """Let no saved state change with the object: `save()` may return the very array that it works on."""
        own_save, own_restore = made.save, made.restore
        self.save: Callable[[], Any] = lambda: _detach(own_save())
        self.restore: Callable[[Any], None] = lambda state: own_restore(_detach(state))

    def step(self, t: float, h: float, u: Array) -> float:
        reached = self._step(t, h, u)
        return t + h if reached is None else reached

    def check_events(self) -> None:
        """Refuse what react() and commit() return if it cannot be meant: a text is not a list of flags."""
        own_react, own_commit = self.object.react, self.object.commit

        def react(t: float, n: int, u: Array, present: Sequence[bool]) -> Sequence[bool] | None:
            shown: Any = own_react(t, n, u, present)
            if shown is None or (isinstance(shown, (list, tuple, np.ndarray)) and all(map(_is_flag, shown))):
                return cast("Sequence[bool] | None", shown)
            expected = "None, or a list of True and False, one per output"
            raise ValueError(f"react() returned {shown!r:.60}, expected {expected}")

        def commit() -> bool:
            again = own_commit()
            if again is None or _is_flag(again):
                return bool(again)
            expected = "True if another instant must follow, else False"
            raise ValueError(f"commit() returned {again!r:.60}, expected {expected}")

        self.react, self.commit = react, commit


def _detach(state: Any) -> Any:
    """Return a state that nothing else changes: containers are copied, where they can be."""
    if not isinstance(state, (list, dict, set, bytearray, tuple, np.ndarray)):
        return state
    try:
        return copy.deepcopy(state)
    except Exception:  # something in it cannot be copied: then it is the class's own to keep
        return state


def _is_flag(value: Any) -> bool:
    return isinstance(value, (bool, np.bool_)) or (isinstance(value, (int, np.integer)) and value in (0, 1))


def _method_faults(cls: type[Any], where: str) -> Iterator[Fault]:
    own = [name for name, _ in inspect.getmembers(cls, callable) if name[0] != "_" and name not in _CALLS]
    for name, arguments in (_CALLS | _OPTIONAL).items():
        listed, size = ", ".join(arguments), len(arguments)
        if not callable(getattr(cls, name, None)):
            if name in _CALLS:
                what, expected = f"`{cls.__name__}` has no method `{name}`", f"`def {name}(self, {listed})`"
                yield Fault(what, where, expected, suggest_nearest(name, own))
            continue
        plain = name == "output" and _takes_arguments(cls, name, 1)
        if not plain and not _takes_arguments(cls, name, size):
            what = f"`{cls.__name__}.{name}` cannot be called with {count(size, 'argument')}"
            either = " or `output(t)`" if name == "output" else ""
            yield Fault(what, where, f"`{name}({listed})`{either}")
    half = declarations(cls, RollbackSimulator)
    if len(half) == 1:
        (there,) = half
        (missing,) = {*members_of(RollbackSimulator)} - {there}
        what, hint = (
            f"`{cls.__name__}` has `{there}` and no `{missing}`",
            suggest_nearest(missing, own, False),
        )
        yield Fault(what, where, "both, for rollback, or neither", hint)
    events = ("due", "react", "commit")
    lacking = [name for name in events if not callable(getattr(cls, name, None))]
    if len(lacking) == 1:
        kept = [name for name in events if name not in lacking]
        what = f"`{cls.__name__}` has `{kept[0]}` and `{kept[1]}`, and no `{lacking[0]}`"
        hint = suggest_nearest(lacking[0], own, False)
        yield Fault(what, where, "all three, for events, or none of them", hint)


def parameter_faults(cls: type[Any], given: Mapping[str, Any], where: str) -> Iterator[Fault]:
    """Yield why objects of a class cannot be made with these parameters."""
    wanted = _parameters(cls)
    if wanted is None:
        return  # a compiled class cannot be asked: opening it tells
    names = _parameter_names(cls)
    if not any(p.kind is p.VAR_KEYWORD for p in wanted):
        for name in given:
            if name not in names:
                what = f"`{cls.__name__}` has no parameter `{name}`"
                yield Fault(what, Place(key=name, detail=where), "", suggest_nearest(name, names))
    for p in wanted:
        if p.name in names and p.default is p.empty and p.name not in given:
            hint = f"`Python({cls.__name__}, ..., {p.name}=...)`"
            yield Fault(f"`{cls.__name__}` needs the parameter `{p.name}`", where, "", hint)


def _parameters(cls: type[Any]) -> list[inspect.Parameter] | None:
    """Return what objects of a class are made with; None: it cannot be asked."""
    try:
        return list(inspect.signature(cls).parameters.values())
    except (TypeError, ValueError):
        return None


def _parameter_names(cls: type[Any]) -> list[str]:
    wanted = _parameters(cls) or []
    return [p.name for p in wanted if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]


def _takes_arguments(cls: type[Any], name: str, size: int) -> bool:
    """Return whether a method can be called with so many arguments."""
    if not isinstance(inspect.getattr_static(cls, name), (staticmethod, classmethod)):
        size += 1
    try:
        signature = inspect.signature(getattr(cls, name))
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*range(size))
    except TypeError:
        return False
    return True


def _signature_text(cls: type[Any]) -> str:
    try:
        return f"`{cls.__name__}{inspect.signature(cls)}`"
    except (TypeError, ValueError):
        return f"as `{cls.__name__}` takes them"


def _class_capabilities(cls: type[Any], where: str) -> Capabilities:
    found: dict[str, Any] = {
        "rollback": provides(cls, RollbackSimulator),
        "slopes": provides(cls, OutputDerivativeSimulator),
        "events": provides(cls, EventSimulator),
    }
    for name, value in class_declarations(cls).items():
        if name in ("inputs", "outputs", "feedthrough"):
            continue
        if not isinstance(value, bool if name in _FLAGS else int):
            expected = "True or False" if name in _FLAGS else "a whole number or None"
            raise ScenarioError(f"`{cls.__name__}.{name}` is `{value!r}`", where, expected)
        found[name] = value
    return Capabilities(**found)
