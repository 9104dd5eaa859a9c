"""What is known by name, as tables of a file: the keys follow from the class that the name stands for.

In:  the registry, and the annotations of its classes
Out: families of kinds, each kind made when a file names it

A key is an argument of the class. Its annotation says what may be written there, and with `Annotated` what
it means: `alpha: Annotated[float, "the weight of the past"] = 0.5`. A second text replaces what a message
says was expected.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from hocket.files.toml.forms import (
    DURATION,
    MATRIX,
    NUMBER,
    PART,
    TEXT,
    TEXTS,
    TRUTH,
    VECTOR,
    WHOLE,
    AnyValueForm,
    ChoiceForm,
    EitherForm,
    Form,
    ListForm,
    MappingForm,
    NoneWordForm,
    WordOrForm,
)
from hocket.files.toml.syntax import FilePlace
from hocket.files.toml.table_kinds import PORTS, Field, KindFamily, TableKind, table_kind
from hocket.model import registry
from hocket.model.clock import Duration
from hocket.model.composite import Orchestrator
from hocket.model.ports import Port
from hocket.model.protocols import Extrapolator, Model


@dataclass(frozen=True)
class RegisteredFamily(KindFamily):
    """The kinds of a registry, and `own` ones; those in `tables` have keys of their own."""

    registered: registry.Kind = "orchestrators"
    tables: Callable[[], Mapping[str, Callable[[], TableKind]]] = dict
    """By name: what makes a kind whose keys do not follow from a class."""

    @property
    def kinds(self) -> tuple[TableKind, ...]:
        """All of them; imports every class."""
        known = [name for name, found in registry.load_all(self.registered) if registry.is_builder(found)]
        return (*(self._make_kind(name) for name in known), *self.own)

    @property
    def words(self) -> Mapping[str, Any]:
        """Objects that have a name of their own."""
        every = registry.load_all(self.registered)
        return {name: found for name, found in every if not registry.is_builder(found)}

    def known_names(self) -> list[str]:
        """Return all names, without importing anything."""
        return [*registry.names(self.registered), *(kind.name for kind in self.own)]

    def read_word(self, word: str, place: FilePlace) -> Any:
        """Return what a word stands for."""
        if registry.is_known(self.registered, word):
            found = place.attempt(lambda: registry.load(self.registered, word))
            if not registry.is_builder(found):
                return found
        return super().read_word(word, place)

    def kinds_named(self, name: str) -> list[TableKind]:
        """Return the kind of a name; raises ScenarioError where its package is broken."""
        if not registry.is_known(self.registered, name):
            return super().kinds_named(name)
        found = registry.load(self.registered, name)
        return [self._make_kind(name)] if registry.is_builder(found) else []

    def _make_kind(self, name: str) -> TableKind:
        own = self.tables().get(name)
        return own() if own is not None else derive_kind(name, registry.load(self.registered, name))

    def write(self, thing: Any, place: FilePlace) -> Any:
        """Return the word or table that describes an object."""
        word = self.word_for(thing)
        if word is not None:
            return word
        name = registry.name_of(self.registered, type(thing))
        kind = None if name is None else self._make_kind(name)
        return super().write(thing, place) if kind is None else self.write_as(kind, thing, place)

    def word_for(self, thing: Any) -> str | None:
        """Return the name of an object that has one of its own."""
        module = f"{type(thing).__module__}:"
        for name, spec in registry.OWN[self.registered].items():
            if spec.startswith(module) or thing is None:
                found = registry.load(self.registered, name)
                if not registry.is_builder(found) and found == thing:
                    return name
        return None


EXTRAPOLATIONS = RegisteredFamily("extrapolation", registered="extrapolators")
ACCELERATIONS = RegisteredFamily("accelerator", registered="accelerators")
ORCHESTRATORS = RegisteredFamily("orchestrator", registered="orchestrators")


@dataclass(frozen=True)
class LocatedForm:
    """A value that names models: faults that the scenario finds in it are shown at this place."""

    form: Form

    def read(self, value: Any, place: FilePlace) -> Any:
        place.findings.places[f"{place.level}{place.keys[-1]}"] = place
        return self.form.read(value, place)

    def write(self, value: Any, place: FilePlace) -> Any:
        return self.form.write(value, place)

    def schema(self) -> dict[str, Any]:
        return self.form.schema()


FORMS_BY_TYPE: dict[Any, Form] = {
    bool: TRUTH,
    int: WHOLE,
    float: NUMBER,
    str: TEXT,
    Fraction: PART,
    Duration: DURATION,
    Port: PORTS,
    Orchestrator: ORCHESTRATORS,
    Extrapolator: EXTRAPOLATIONS,
}
"""Of types that are written in one way only; the codec adds models."""
_ACCELERATOR = "hocket.plan.accelerators", "Accelerator"
_LISTS = (list, tuple, Sequence, Iterable)


@cache
def derive_kind(name: str, build: Callable[..., Any]) -> TableKind:
    """Return the kind whose keys are the arguments of a class or function."""
    described, typed = _annotations(build)
    fields = []
    for key, argument in inspect.signature(build).parameters.items():
        if argument.kind in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD) or key.startswith("_"):
            continue
        annotation = described.get(key, Any)
        texts = [each for each in get_args(annotation)[1:] if isinstance(each, str)]
        texts = texts if get_origin(annotation) is Annotated else []
        form = form_for(typed.get(key, annotation), *texts[1:2])
        fields.append(_field(key, form, texts[0] if texts else "", argument.default))
    return table_kind(name, build, *fields)


def _field(key: str, form: Form, about: str, default: Any) -> Field:
    """Return the field of an argument; None has a word where it is not the default."""
    if isinstance(form, NoneWordForm):
        if default is None:
            return _field(key, form.form, about, default)
        word, get = form.word, attrgetter(key)
        return Field(key, form, about, get=lambda thing: word if get(thing) is None else get(thing))
    if isinstance(form, RegisteredFamily) and default is not inspect.Parameter.empty:
        return Field(key, form, about, stand_in=default)
    if isinstance(form, ListForm | MappingForm | WordOrForm):
        return Field(key, LocatedForm(form), about)
    return Field(key, form, about)


def _annotations(build: Callable[..., Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the annotations with what they say of each key, and those of a hand-written constructor."""
    try:
        described = get_type_hints(build, include_extras=True)
        written = isinstance(build, type) and not _is_generated(build)
        typed = get_type_hints(vars(build)["__init__"]) if written and "__init__" in vars(build) else {}
    except (NameError, TypeError):  # names that only a type checker sees
        return {}, {}
    return described, typed


def _is_generated(cls: type) -> bool:
    parameters = vars(cls).get("__dataclass_params__")
    return parameters is not None and bool(parameters.init)


def form_for(annotation: Any, expected: str = "") -> Form:
    """Return how values of a type are written; whatever TOML can hold where the type says nothing."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return form_for(inner[0], expected)
    if (isinstance(annotation, type) and annotation in FORMS_BY_TYPE) or annotation == Duration:
        return FORMS_BY_TYPE[annotation]
    if _is_accelerator(annotation):
        return ACCELERATIONS
    if origin is Literal:
        return ChoiceForm(inner)
    if origin in (Union, UnionType):
        return _union_form(inner, expected)
    if origin in _LISTS:
        return _list_form(form_for(inner[0]), expected)
    if origin in (dict, Mapping) and inner[0] is str:
        return MappingForm(form_for(inner[1]), expected or "a table")
    return AnyValueForm()


def _is_accelerator(annotation: Any) -> bool:
    """Return whether a type is that of accelerators, which few algorithms import."""
    return isinstance(annotation, type) and (annotation.__module__, annotation.__name__) == _ACCELERATOR


def _union_form(members: tuple[Any, ...], expected: str) -> Form:
    known = [each for each in members if each is not NoneType]
    named = [each for each in known if _is_accelerator(each) or each in (Orchestrator, Extrapolator, Model)]
    form: Form = AnyValueForm()
    if len(known) == 1:
        form = form_for(known[0], expected)
    elif named:
        form = form_for(named[0])
    elif set(known) == {int, float}:
        form = NUMBER
    elif len(known) == 2 and get_origin(known[0]) is Literal and len(get_args(known[0])) == 1:
        form = WordOrForm(get_args(known[0])[0], form_for(known[1], expected))
    elif len(known) == 2 and known[0] is str:
        form = EitherForm(str, TEXT, form_for(known[1], expected))
    if len(known) == len(members):
        return form
    word = form.word_for(None) if isinstance(form, RegisteredFamily) else None
    return NoneWordForm(word or "none", form)


def _list_form(form: Form, expected: str) -> Form:
    usual: dict[int, Form] = {id(NUMBER): VECTOR, id(TEXT): TEXTS, id(VECTOR): MATRIX, id(PORTS): PORTS}
    if not expected and id(form) in usual:
        return usual[id(form)]
    return ListForm(form, expected or "a list")
