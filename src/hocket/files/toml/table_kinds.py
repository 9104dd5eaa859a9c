"""Tables in a file and the objects they describe: a kind is a name, what builds it, and its fields.

In:  a table of a file, with its place
Out: the object, and back; and the JSON Schema of the table

What is required and what may be left out follows from the signature of what builds the object.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any, TypeAlias, get_args

from hocket.errors import ScenarioError, suggest_nearest
from hocket.files.toml.forms import NUMBER, TEXT, TEXTS, TRUTH, ChoiceForm, DefinedForm, Form
from hocket.files.toml.syntax import WRONG, FilePlace
from hocket.model.ports import Port, PortType, Reactivity

Build: TypeAlias = Callable[..., Any]
_NOTHING = object()


class Section(dict[str, Any]):
    """A table that is written with a header; all others stand between braces."""


@dataclass(frozen=True)
class Field:
    """A key of a table."""

    name: str
    form: Form
    about: str = ""
    """For the reader of the JSON Schema, in an editor."""
    argument: str = ""
    """What the builder calls it; empty: the same."""
    get: Callable[[Any], Any] | None = None
    """Takes the value from an object to be written; None: its attribute of the argument's name."""
    absent: Callable[[FilePlace], Any] | None = None
    """Gives the value where the key is left out; None: the builder's own default."""
    stand_in: Any = _NOTHING
    """Takes the place of a wrong value so that the rest of the scenario can still be checked."""
    spread: bool = False
    """The value is a mapping of further arguments."""
    located: bool = False
    """It may name models: faults that the scenario finds in it are shown at its place."""
    required: bool = False
    default: Any = _NOTHING

    @property
    def key(self) -> str:
        """The argument's name."""
        return self.argument or self.name

    def of(self, thing: Any) -> Any:
        """Return the value that an object has."""
        return (self.get or attrgetter(self.key))(thing)


@dataclass(frozen=True)
class TableKind:
    """A form of table; use `table_kind` to make one."""

    name: str
    build: Build
    fields: tuple[Field, ...]
    cls: type | None = None
    """What can be written as this kind; None: nothing, it is only read."""
    when: str = ""
    """The key whose presence selects this kind among several of one name."""
    tagged: bool = True
    """Whether the table says `type = "name"`."""
    section: bool = False
    """Whether it is written with a header of its own, not between braces."""
    about: str = ""

    def read(self, value: Any, place: FilePlace) -> Any:
        """Return what the table describes."""
        if not isinstance(value, dict):
            return place.report_unexpected(value, f"a table, as in {self.example()}")
        unknown = self._unknown_keys(value, place)
        arguments: dict[str, Any] = {}
        good = True
        for entry in self.fields:
            if entry.name in value:
                here = place / entry.name
                if entry.located:
                    place.findings.places[f"{place.level}{entry.name}"] = here
                read = entry.form.read(value[entry.name], here)
            elif entry.required:
                read = WRONG
                if not difflib.get_close_matches(entry.name, unknown, n=1, cutoff=0.6):
                    place.fault(f"`{entry.name}` is missing in {self._title()}", entry.about)
            elif entry.absent is not None:
                read = entry.absent(place)
            else:
                continue
            if read is WRONG:
                read = entry.stand_in
                good = good and read is not _NOTHING
            elif entry.spread:
                good = self._add_arguments(read, arguments, place / entry.name) and good
                continue
            arguments[entry.key] = read
        return place.attempt(lambda: self.build(**arguments), value) if good else WRONG

    def _unknown_keys(self, table: Mapping[str, Any], place: FilePlace) -> list[str]:
        known = [*(["type"] if self.tagged else []), *(entry.name for entry in self.fields)]
        unknown = [key for key in table if key not in known]
        for key in unknown:
            what = f"there is no key `{key}` in {self._title()}"
            (place / key).fault(what, "", suggest_nearest(key, known))
        return unknown

    def _add_arguments(self, more: Mapping[str, Any], arguments: dict[str, Any], place: FilePlace) -> bool:
        taken = [key for key in more if any(key == entry.key for entry in self.fields)]
        for key in taken:
            (place / key).fault(f"`{key}` cannot be the name of a parameter", "a name that is not taken")
        arguments.update(more)
        return not taken

    def write(self, thing: Any, place: FilePlace) -> Any:
        """Return the table that describes an object; keys at their default are left out."""
        table: dict[str, Any] = {"type": self.name} if self.tagged else {}
        for entry in self.fields:
            value = entry.of(thing)
            if value is None or repr(value) == repr(entry.default):
                continue
            written = entry.form.write(value, place / entry.name)
            if written is not None:
                table[entry.name] = written
        if self.section:
            return Section(table) if table else None
        return table

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the table."""
        properties: dict[str, Any] = {"type": {"const": self.name}} if self.tagged else {}
        for entry in self.fields:
            described = {"description": entry.about} if entry.about else {}
            properties[entry.name] = entry.form.schema() | described
        required = [entry.name for entry in self.fields if entry.required]
        return {
            "type": "object",
            **({"description": self.about} if self.about else {}),
            "properties": properties,
            "required": ["type", *required] if self.tagged else required,
            "additionalProperties": False,
        }

    def example(self) -> str:
        """Return what a table of this kind must have at the least."""
        pairs = [f'type = "{self.name}"'] if self.tagged else []
        pairs += [f"{entry.name} = ..." for entry in self.fields if entry.required]
        return "{ " + ", ".join(pairs) + " }"

    def _title(self) -> str:
        return f"`{self.name}`" if self.tagged else self.name


def table_kind(name: str, build: Build, *fields: Field, cls: type | None = None, **options: Any) -> TableKind:
    """Return a kind whose fields know from the builder's signature what they may leave out."""
    arguments = inspect.signature(build).parameters
    known = []
    for entry in fields:
        argument = arguments.get(entry.key)
        if argument is None or argument.kind is argument.VAR_KEYWORD:
            known.append(entry)
            continue
        required = argument.default is argument.empty
        known.append(replace(entry, required=required, default=_NOTHING if required else argument.default))
    made = cls or (build if isinstance(build, type) else None)
    about = (inspect.getdoc(cls or build) or "").split("\n")[0].replace("`", "")
    return TableKind(name, build, tuple(known), made, about=about, **options)


@dataclass(frozen=True)
class NamedTablesForm(DefinedForm):
    """A table of tables; `what` is one of them in words, with its article."""

    name: str
    kind: TableKind
    what: str
    example: str
    inline: bool = False
    """Whether each is written in one line."""
    check: Callable[[dict[str, Any], Collection[str]], object] = lambda *_: None
    """Raises ScenarioError for things by name that cannot have it, or not beside these models."""
    stand_in: Any = WRONG
    """Takes the place of a wrong thing, so that its name can still be checked."""

    def read(self, value: Any, place: FilePlace) -> Any:
        """Return the things by name."""
        expected = f"a table for each {self.what.partition(' ')[2]}: {self.example}"
        if not isinstance(value, dict):
            return place.report_unexpected(value, expected)
        keys = [entry.name for entry in self.kind.fields]
        bare = [key for key, inner in value.items() if key in keys and not isinstance(inner, dict)]
        if bare:
            return (place / bare[0]).fault(f"{self.what} has no name", expected)
        models = place.sibling_value("models")
        taken = models if isinstance(models, dict) else ()
        found: dict[str, Any] = {}
        for name, table in value.items():
            here = place / name
            given = [key for key in keys if isinstance(table, dict) and key in table]
            for key in ("", *given):
                spot = here / key if key else here
                place.findings.places[f"{place.level}{self.name}.{name}{'.' if key else ''}{key}"] = spot
            thing = self.kind.read(table, here)
            named = {name: self.stand_in if thing is WRONG else thing}
            good = WRONG in named.values() or here.attempt(partial(self.check, named, taken)) is not WRONG
            if good and thing is not WRONG:
                found[name] = thing
        return found

    def write(self, value: Mapping[str, Any], place: FilePlace) -> Any:
        """Return the tables; None where there are none."""
        tables = {name: self.kind.write(each, place / name) for name, each in value.items()}
        if not self.inline:
            tables = {name: Section(each) for name, each in tables.items()}
        return Section(tables) or None

    def definition(self) -> dict[str, Any]:
        """Return the JSON Schema."""
        return {"type": "object", "additionalProperties": self.kind.schema()}


def port_text(port: Port) -> str:
    """Return a port as text; `Port.of` reads it back unless its name or unit is odd."""
    unit = f" [{port.unit}]" if port.unit else ""
    start = "" if port.start is None else f" = {float(port.start)!r}"
    return f"{port.name}{unit}{start}"


@dataclass(frozen=True)
class PortsForm(DefinedForm):
    """A list of ports, each a text (`force [N] = 0.5`) or a table."""

    name: str
    kind: TableKind

    def read(self, value: Any, place: FilePlace) -> Any:
        if not isinstance(value, list):
            return place.report_unexpected(value, 'a list of ports: ["force [N]", "x [m] = 0.5"]')
        ports = [self._read_port(port, place / number) for number, port in enumerate(value)]
        return WRONG if any(port is WRONG for port in ports) else tuple(ports)

    def _read_port(self, port: Any, place: FilePlace) -> Any:
        if isinstance(port, str):
            return place.attempt(lambda: Port.of(port))
        if isinstance(port, dict):
            return self.kind.read(port, place)
        expected = f'text such as "force [N]", or a table: {self.kind.example()}'
        return place.report_unexpected(port, expected)

    def write(self, value: Iterable[Port], place: FilePlace) -> Any:
        return [self._write_port(port, place / number) for number, port in enumerate(value)]

    def _write_port(self, port: Port, place: FilePlace) -> Any:
        table, text = self.kind.write(port, place), port_text(port)
        try:
            read = self.kind.write(Port.of(text), place)
        except ScenarioError:
            return table
        return text if repr(read) == repr(table) else table

    def definition(self) -> dict[str, Any]:
        """Return the JSON Schema."""
        return {"type": "array", "items": {"anyOf": [{"type": "string"}, self.kind.schema()]}}


_NAME = Field("name", TEXT), Field("unit", TEXT, "a physical unit: m/s"), Field("start", NUMBER)
_FEEDTHROUGH = Field("feedthrough", TEXTS, "the inputs that have direct feedthrough to an output")
REACTIVITIES = ChoiceForm(get_args(Reactivity))
REACTIVITY = Field(
    "reactivity",
    REACTIVITIES,
    "of an input: whether it takes a step with the value at its end, or with that at its start",
)
PORTS = PortsForm("ports", table_kind("a port", Port, *_NAME, _FEEDTHROUGH, REACTIVITY, tagged=False))
OUTPUTS = PortsForm("outputs", table_kind("an output", Port, *_NAME, tagged=False))
"""Of models that know themselves which inputs have direct feedthrough."""
_TYPE = Field("type", ChoiceForm(get_args(PortType)), "what its numbers mean")
_HELD = Field("held", TRUTH, "whether it changes at events only")
SHOWN = PortsForm("shown", table_kind("a port", Port, *_NAME, _TYPE, _HELD, tagged=False))
"""Of stand-ins for other simulators."""
