"""Simulators from classes that people write in Python.

In:  a class, or text that names one ("plant.py:Tank"), its ports and parameters
Out: a Model whose simulators are objects of that class
"""

from __future__ import annotations

import copy
import importlib
import importlib.util
import inspect
import sys
import traceback
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from hocket.clock import Duration, seconds
from hocket.errors import Fault, HocketError, ScenarioError, SimulatorError, nearest
from hocket.model import Abilities, Array, Port, PortLike, Simulator, ports

Feedthrough: TypeAlias = Mapping[str, str | Iterable[str]]

_CALLS = {"start": "(t)", "output": "(t, u)", "step": "(t, h, u)"}
_OPTIONAL = {"save": "()", "restore": "(state)", "slope": "(t, u)", "close": "()"}
_files: dict[Path, tuple[int, ModuleType]] = {}


class Recipe:
    """Equality and hash for frozen dataclasses whose fields may hold lists and arrays."""

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(_same(getattr(self, field.name), getattr(other, field.name)) for field in fields(self))  # type: ignore[arg-type]

    def __hash__(self) -> int:
        return hash(tuple(_key(getattr(self, field.name)) for field in fields(self)))  # type: ignore[arg-type]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return type(one) is type(other) and np.array_equal(one, other)
    if isinstance(one, (tuple, list)) and type(one) is type(other):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    return bool(one == other)


def _key(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_key, value))
    try:
        return hash(value)
    except TypeError:
        return None


class _Known(NamedTuple):
    """What is known once the class is loaded."""

    cls: type[Any]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    abilities: Abilities
    takes_inputs: bool
    """Whether its output() wants u."""


@dataclass(frozen=True, init=False, eq=False)
class Python(Recipe):
    """A class as a model; further keywords are the parameters its objects are made with.

    The class has `start(t)`, `output(t, u)` or `output(t)`, and `step(t, h, u)`, which returns the time
    reached (None: t + h); perhaps `close()`, `save()` and `restore(state)`, `slope(t, u)`. Class attributes
    may tell the rest: `inputs`, `outputs`, `order`, `input_degree`, `variable_step`, and `feedthrough`, a
    mapping such as `{"y": ["u"]}`. Without it every output of `output(t, u)` is taken to react to every
    input at once, and those of `output(t)` to none. A text is loaded when it is first asked about; file
    paths start in `folder`.
    """

    cls: type[Any] | str
    own_inputs: tuple[Port, ...] | None
    """The ports given here; None: those of the class."""
    own_outputs: tuple[Port, ...] | None
    period: Fraction | None
    """Its own step in seconds, for the engine to wrap it with; None: the step of its level."""
    values: tuple[tuple[str, Any], ...]
    folder: str

    def __init__(
        self,
        cls: type[Any] | str,
        inputs: Iterable[PortLike] | None = None,
        outputs: Iterable[PortLike] | None = None,
        period: Duration | None = None,
        *,
        folder: str | Path = "",
        **parameters: Any,
    ):
        for name, value in (
            ("cls", cls),
            ("own_inputs", None if inputs is None else ports(inputs)),
            ("own_outputs", None if outputs is None else ports(outputs)),
            ("period", None if period is None else positive(period, "period")),
            ("values", tuple(sorted(parameters.items()))),
            ("folder", str(folder)),
        ):
            object.__setattr__(self, name, value)
        if not isinstance(cls, str):
            _ = self._known

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_known"}

    @property
    def inputs(self) -> tuple[Port, ...]:
        """The ports given, else those of the class."""
        return self._known.inputs

    @property
    def outputs(self) -> tuple[Port, ...]:
        """The ports given, else those of the class, with their feedthrough."""
        return self._known.outputs

    @property
    def abilities(self) -> Abilities:
        """What the methods and attributes of the class say."""
        return self._known.abilities

    @property
    def parameters(self) -> dict[str, Any]:
        """What the constructor is called with."""
        return dict(self.values)

    @property
    def class_name(self) -> str:
        """The class as text that `Python` reads back."""
        return named(self.cls)

    def without_period(self) -> Python:
        """Return the same model in the step of its level."""
        bare = copy.copy(self)
        object.__setattr__(bare, "period", None)
        return bare

    @cached_property
    def _known(self) -> _Known:
        cls = load(self.cls, self.folder) if isinstance(self.cls, str) else self.cls
        if not isinstance(cls, type):
            raise ScenarioError(
                f"`{named(cls)}` is not a class", expected="a class, or text such as `plant.py:Tank`"
            )
        where = self.class_name
        faults = [*_method_faults(cls, where), *_parameter_faults(cls, self.parameters, where)]
        if faults:
            raise ScenarioError(faults)
        inputs = getattr(cls, "inputs", None) if self.own_inputs is None else self.own_inputs
        outputs = getattr(cls, "outputs", None) if self.own_outputs is None else self.own_outputs
        if inputs is None and outputs is None:
            hint = 'give them here or in the class: `inputs = ["force [N]"]`, `outputs = ["x [m]"]`'
            what = f"`{cls.__name__}` has neither inputs nor outputs"
            raise ScenarioError(what, where, "named ports", hint)
        inputs = ports(inputs or ())
        outputs = reacting(ports(outputs or ()), inputs, getattr(cls, "feedthrough", None), where)
        takes_inputs = _takes(cls, "output", 2)
        if not takes_inputs:
            outputs = tuple(replace(port, feedthrough=()) for port in outputs)
        return _Known(cls, inputs, outputs, _abilities(cls, where), takes_inputs)

    def open(self) -> Simulator:
        """Make an object of the class."""
        known = self._known
        try:
            made = known.cls(**self.parameters)
        except HocketError:
            raise
        except (TypeError, ValueError) as error:
            what = f"`{known.cls.__name__}` cannot be made with these parameters: {error}"
            raise ScenarioError(what, self.class_name, f"parameters {_signature(known.cls)}") from error
        except Exception as error:
            what = f"`{known.cls.__name__}` cannot be made: {type(error).__name__}: {error}"
            raise SimulatorError(what, _place(error)) from error
        return _Live(made, known.takes_inputs)


class _Live:
    """The object's own bound methods, adapted only where they differ from the protocol."""

    def __init__(self, made: Any, takes_inputs: bool):
        output: Callable[..., Any] = made.output
        self.object = made
        self.start: Callable[[float], None] = made.start
        self.output: Callable[[float, Array], Array] = output if takes_inputs else lambda t, _: output(t)
        self.close: Callable[[], None] = getattr(made, "close", lambda: None)
        self._step: Callable[[float, float, Array], float | None] = made.step
        for name in ("save", "restore", "slope"):
            if hasattr(made, name):
                setattr(self, name, getattr(made, name))

    def step(self, t: float, h: float, u: Array) -> float:
        reached = self._step(t, h, u)
        return t + h if reached is None else reached


def _method_faults(cls: type[Any], where: str) -> Iterator[Fault]:
    own = [
        name for name in dir(cls) if name[0] != "_" and name not in _CALLS and callable(getattr(cls, name))
    ]
    for name, arguments in (_CALLS | _OPTIONAL).items():
        if not callable(getattr(cls, name, None)):
            if name in _CALLS:
                expected = f"`def {name}(self, {arguments[1:]}`"
                yield Fault(f"`{cls.__name__}` has no method `{name}`", where, expected, nearest(name, own))
            continue
        count = len(arguments.strip("()").split(", ")) if arguments != "()" else 0
        if not _takes(cls, name, count) and not (name == "output" and _takes(cls, name, 1)):
            what = f"`{cls.__name__}.{name}` cannot be called with {count} argument{'s' * (count != 1)}"
            expected = f"`{name}{arguments}`" + (" or `output(t)`" if name == "output" else "")
            yield Fault(what, where, expected)


def _parameter_faults(cls: type[Any], given: Mapping[str, Any], where: str) -> Iterator[Fault]:
    try:
        wanted = inspect.signature(cls).parameters.values()
    except (TypeError, ValueError):
        return  # a compiled class cannot be asked: opening it tells
    names = [p.name for p in wanted if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    if not any(p.kind is p.VAR_KEYWORD for p in wanted):
        for name in given:
            if name not in names:
                yield Fault(f"`{cls.__name__}` has no parameter `{name}`", where, "", nearest(name, names))
    for p in wanted:
        if p.name in names and p.default is p.empty and p.name not in given:
            hint = f"`Python({cls.__name__}, ..., {p.name}=...)`"
            yield Fault(f"`{cls.__name__}` needs the parameter `{p.name}`", where, "", hint)


def _takes(cls: type[Any], name: str, count: int) -> bool:
    """Return whether a method can be called with so many arguments."""
    if not isinstance(inspect.getattr_static(cls, name), (staticmethod, classmethod)):
        count += 1
    try:
        signature = inspect.signature(getattr(cls, name))
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def _signature(cls: type[Any]) -> str:
    try:
        return f"`{cls.__name__}{inspect.signature(cls)}`"
    except (TypeError, ValueError):
        return f"as `{cls.__name__}` takes them"


def _abilities(cls: type[Any], where: str) -> Abilities:
    found: dict[str, Any] = {
        "rewind": hasattr(cls, "save") and hasattr(cls, "restore"),
        "slopes": hasattr(cls, "slope"),
    }
    for name in ("order", "input_degree", "variable_step"):
        value = getattr(cls, name, None)
        if value is None:
            continue
        if not isinstance(value, bool if name == "variable_step" else int):
            expected = "True or False" if name == "variable_step" else "a whole number or None"
            raise ScenarioError(f"`{cls.__name__}.{name}` is `{value!r}`", where, expected)
        found[name] = value
    return Abilities(**found)


def reacting(
    outputs: tuple[Port, ...], inputs: tuple[Port, ...], feedthrough: Feedthrough | None, where: str
) -> tuple[Port, ...]:
    """Return the outputs with the inputs they react to at once.

    Without a declaration an output keeps what its port says, and if that says nothing it reacts to every
    input: too many is slower, too few is wrong.
    """
    knowns = tuple(port.name for port in inputs), tuple(port.name for port in outputs)
    faults = [
        Fault(f"two {role}s are named `{name}`", where, "names that differ")
        for role, names in zip(("input", "output"), knowns, strict=True)
        for name in sorted({name for name in names if names.count(name) > 1})
    ]
    declared = (
        {}
        if feedthrough is None
        else {y: (u,) if isinstance(u, str) else tuple(u) for y, u in feedthrough.items()}
    )
    for y in declared:
        if y not in knowns[1]:
            faults.append(
                Fault(f"feedthrough names the output `{y}`, which is none", where, "", nearest(y, knowns[1]))
            )
    for y, reacts in declared.items() if declared else ((port.name, port.feedthrough) for port in outputs):
        for u in reacts:
            if u not in knowns[0]:
                what = f"feedthrough of `{y}` names the input `{u}`, which is none"
                faults.append(Fault(what, where, "", nearest(u, knowns[0])))
    if faults:
        raise ScenarioError(faults)
    if feedthrough is None:
        return tuple(replace(port, feedthrough=port.feedthrough or knowns[0]) for port in outputs)
    return tuple(replace(port, feedthrough=declared.get(port.name, ())) for port in outputs)


def positive(duration: Duration, name: str) -> Fraction:
    """Return a duration above zero, in seconds."""
    try:
        length = seconds(duration)
    except ValueError as error:
        raise ScenarioError(str(error), where=f"`{name}`") from None
    if length <= 0:
        raise ScenarioError(f"`{name}` is {duration}", expected="a duration above zero")
    return length


def named(thing: Any) -> str:
    """Return the text that `load` reads back: "module:Name"; a text is returned as it is."""
    if isinstance(thing, str):
        return thing
    name = getattr(thing, "__qualname__", None)
    return f"{thing.__module__}:{name}" if name else repr(thing)


def load(written: str, folder: str = "") -> Any:
    """Return what "package.module:Name" or "path/to/file.py:Name" names.

    Paths start in `folder`, else in the working directory; modules are looked for there last.
    """
    place, _, name = written.rpartition(":")
    if not place or not name:
        expected = '"package.module:Name" or "path/to/file.py:Name"'
        raise ScenarioError(f"`{written}` does not say what to load and from where", expected=expected)
    found: Any = (
        _from_file(Path(folder) / place, written)
        if place.endswith(".py")
        else _from_name(place, folder, written)
    )
    for part in name.split("."):
        if not hasattr(found, part):
            known = [name for name in vars(found) if not name.startswith("_")]
            raise ScenarioError(f"`{place}` has no `{part}`", written, "", nearest(part, known))
        found = getattr(found, part)
    return found


def _from_file(path: Path, written: str) -> ModuleType:
    path = path.resolve()
    if not path.is_file():
        beside = sorted(file.name for file in path.parent.glob("*.py")) if path.parent.is_dir() else []
        raise ScenarioError(
            f"there is no file `{path}`", written, "a Python file", nearest(path.name, beside)
        )
    changed = path.stat().st_mtime_ns
    if path in _files and _files[path][0] == changed:
        return _files[path][1]
    # one name per path: files of the same name in two folders must not meet
    name = f"{path.stem}_{zlib.crc32(str(path).encode()):08x}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with _reachable(path.parent), _loading(str(path)):
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    _files[path] = changed, module
    return module


def _from_name(name: str, folder: str, written: str) -> ModuleType:
    with _reachable(Path(folder).resolve()), _loading(name):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise
            hint = "give a file: `path/to/file.py:Name`, or install the package"
            raise ScenarioError(f"there is no module `{error.name}`", written, "", hint) from None


@contextmanager
def _reachable(folder: Path) -> Iterator[None]:
    """Let imports find the modules of a folder, after all others."""
    importlib.invalidate_caches()
    added = str(folder) not in sys.path
    if added:
        sys.path.append(str(folder))
    try:
        yield
    finally:
        if added and str(folder) in sys.path:
            sys.path.remove(str(folder))


@contextmanager
def _loading(place: str) -> Iterator[None]:
    try:
        yield
    except HocketError:
        raise
    except Exception as error:
        raise ScenarioError(
            f"`{place}` cannot be loaded: {type(error).__name__}: {error}", _place(error)
        ) from error


def _place(error: Exception) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.filename}, line {frame.lineno}"
