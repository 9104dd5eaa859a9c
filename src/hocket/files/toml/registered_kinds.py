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
from types import NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from hocket.errors import suggest_nearest
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
    DefinedForm,
    EitherForm,
    Form,
    ListForm,
    MappingForm,
    NoneWordForm,
    WordOrForm,
)
from hocket.files.toml.syntax import WRONG, FilePlace
from hocket.files.toml.table_kinds import PORTS, Field, TableKind, table_kind
from hocket.model import registry
from hocket.model.clock import Duration
from hocket.model.composite import Orchestrator
from hocket.model.ports import Port
from hocket.model.protocols import Extrapolator, Model, recipe_of


@dataclass(frozen=True)
class KindFamily(DefinedForm):
    """Kinds that stand in the same place, told apart by `type`; some may be given as one word."""

    name: str
    own: tuple[TableKind, ...] = ()
    """Kinds beside those of the registry."""
    by_word: bool = True
    """Whether a word is enough for a kind that needs no fields."""
    registered: registry.Kind | None = None
    tables: Callable[[], Mapping[str, Callable[[], TableKind]]] = dict
    """By name: what makes a registered kind whose keys do not follow from a class."""

    @property
    def kinds(self) -> tuple[TableKind, ...]:
        """All kinds; imports every class."""
        found = () if self.registered is None else registry.load_all(self.registered)
        known = [name for name, each in found if registry.is_builder(each)]
        return (*map(self._make_kind, known), *self.own)

    def known_names(self) -> list[str]:
        """Return the names of all kinds and words, without importing anything."""
        registered = () if self.registered is None else registry.names(self.registered)
        return [*registered, *(kind.name for kind in self.own)]

    def _load(self, name: str) -> Any:
        """Return what the registry has under a name; None: nothing. Raises ScenarioError if it is broken."""
        if self.registered is None or not registry.is_known(self.registered, name):
            return None
        return registry.load(self.registered, name)

    def _make_kind(self, name: str) -> TableKind:
        make = self.tables().get(name)
        return derive_kind(name, self._load(name)) if make is None else make()

    def read(self, value: Any, place: FilePlace) -> Any:
        """Return what a word or a table describes."""
        if isinstance(value, str) and self.by_word:
            return self._read_word(value, place)
        if not isinstance(value, dict):
            word = "a word or a table" if self.by_word else "a table"
            first = self.known_names()[0]
            return place.report_unexpected(value, f'{word}, as in {{ type = "{first}", ... }}')
        if "type" not in value:
            what = f"`type` is missing in {place.label}"
            return place.fault(what, f"the kind of {self.name}", self._suggest_kind(""))
        name = value["type"]
        if not isinstance(name, str):
            return (place / "type").report_unexpected(name, f"the kind of {self.name}, a text in quotes")
        chosen = self._choose_kind(name, value, place / "type")
        return chosen if chosen is WRONG else chosen.read(value, place)

    def _read_word(self, word: str, place: FilePlace) -> Any:
        found = place.attempt(lambda: self._load(word))
        if found is not None and not registry.is_builder(found):
            return found
        chosen = self._choose_kind(word, {}, place)
        return chosen if chosen is WRONG else chosen.read({"type": word}, place)

    def _kinds_named(self, name: str) -> list[TableKind]:
        found = self._load(name)
        if found is None:
            return [kind for kind in self.own if kind.name == name]
        return [self._make_kind(name)] if registry.is_builder(found) else []

    def _choose_kind(self, name: str, table: Mapping[str, Any], place: FilePlace) -> Any:
        choices = place.attempt(lambda: self._kinds_named(name))
        if choices is WRONG:
            return WRONG
        if not choices:
            what = self.name if self.by_word else f"{self.name} of type"
            return place.fault(f"there is no {what} `{name}`", "", self._suggest_kind(name))
        return next((kind for kind in choices if kind.when in table), choices[-1])

    def _suggest_kind(self, name: str) -> str:
        return suggest_nearest(name, dict.fromkeys(self.known_names()))

    def write(self, thing: Any, place: FilePlace) -> Any:
        """Return the word or table that describes an object."""
        if word := self.word_for(thing):
            return word
        recipe = recipe_of(thing)
        if recipe is not None:  # a linear model that a block has made is written as that block
            return self._make_kind(recipe.name).write(SimpleNamespace(**recipe.arguments), place)
        kind = next((kind for kind in self.own if kind.cls is type(thing)), None)
        if self.registered is not None and (name := registry.name_of(self.registered, type(thing))):
            kind = self._make_kind(name)
        if kind is None:
            known = self._suggest_kind("").removeprefix("one of ")
            return place.report_unwritable(thing, f"files know {known}")
        table = kind.write(thing, place)
        return kind.name if self.by_word and list(table) == ["type"] else table

    def word_for(self, thing: Any) -> str | None:
        """Return the name of an object that has one of its own."""
        module = f"{type(thing).__module__}:"
        for name, spec in registry.OWN[self.registered].items() if self.registered else ():
            if spec.startswith(module) or thing is None:
                found = self._load(name)
                if not registry.is_builder(found) and found == thing:
                    return name
        return None

    def definition(self) -> dict[str, Any]:
        """Return the JSON Schema of all kinds."""
        words = [*registry.words(self.registered)] if self.registered and self.by_word else []
        return {"anyOf": [*([{"enum": words}] if words else []), *(kind.schema() for kind in self.kinds)]}


EXTRAPOLATIONS = KindFamily("extrapolation", registered="extrapolators")
ACCELERATIONS = KindFamily("accelerator", registered="accelerators")
ORCHESTRATORS = KindFamily("orchestrator", registered="orchestrators")


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
def derive_kind(name: str, build: Callable[..., Any], without: tuple[str, ...] = ()) -> TableKind:
    """Return the kind whose keys are the arguments of a class or function, but for those left out."""
    described, typed = _annotations(build)
    fields = []
    for key, argument in inspect.signature(build).parameters.items():
        several = argument.kind in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD)
        if several or key.startswith("_") or key in without:
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
    if isinstance(form, KindFamily) and default is not inspect.Parameter.empty:
        return Field(key, form, about, stand_in=default)
    return Field(key, form, about, located=isinstance(form, ListForm | MappingForm | WordOrForm))


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
    elif set(known) == set(get_args(Duration)):
        form = DURATION
    elif set(known) == {int, float}:
        form = NUMBER
    elif len(known) == 2 and get_origin(known[0]) is Literal and len(get_args(known[0])) == 1:
        form = WordOrForm(get_args(known[0])[0], form_for(known[1], expected))
    elif len(known) == 2 and known[0] is str:
        form = EitherForm(str, TEXT, form_for(known[1], expected))
    if len(known) == len(members):
        return form
    word = form.word_for(None) if isinstance(form, KindFamily) else None
    return NoneWordForm(word or "none", form)


def _list_form(form: Form, expected: str) -> Form:
    usual: dict[int, Form] = {id(NUMBER): VECTOR, id(TEXT): TEXTS, id(VECTOR): MATRIX, id(PORTS): PORTS}
    if not expected and id(form) in usual:
        return usual[id(form)]
    return ListForm(form, expected or "a list")
