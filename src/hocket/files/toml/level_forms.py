"""What the pass `accuracy` inserts, in a file: a step controller, and simulators that are told the time.

In:  their classes
Out: their kinds, a part of the codec
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hocket.files.toml.forms import (
    DURATION,
    NUMBER,
    TEXT,
    TRUTH,
    VECTOR,
    WHOLE,
    ChoiceForm,
    EitherForm,
    ListForm,
    WordOrForm,
)
from hocket.files.toml.layout import Section
from hocket.files.toml.model_kinds import unwrap_model
from hocket.files.toml.syntax import WRONG, FilePlace, describe_value, open_document
from hocket.files.toml.table_kinds import PORTS, Field, KindFamily, TableKind, table_kind
from hocket.model.composite import Composite
from hocket.model.protocols import Model
from hocket.model.scenario import Connection, Scenario
from hocket.orchestrators.adaptive import PER
from hocket.simulators.ode import Ode
from hocket.simulators.state_space import StateSpace
from hocket.simulators.step_controller import SOURCES, StepController
from hocket.simulators.wrappers.timed import Timed

_UNREAD = StateSpace()
"""Stands for a model that could not be read."""


@dataclass(frozen=True)
class ModelsForm:
    """The models of a level, by name."""

    family: Callable[[], KindFamily]

    def read(self, value: Any, place: FilePlace) -> Any:
        if not isinstance(value, dict):
            return place.report_unexpected(value, "a table for each model: [models.left]")
        models: dict[str, Model] = {}
        for name, table in value.items():
            path = f"{place.level}{name}"
            here = replace(place / name, level=f"{path}.")
            places = place.findings.places
            places[path] = places[f"{path}."] = places[f"{place.level}models.{name}"] = here
            good = here.attempt(lambda name=name: Scenario({name: _UNREAD})) is not WRONG
            model = self.family().read(table, here)
            if model is not WRONG and here.findings.check and not isinstance(model, Composite):
                known = here.attempt(lambda model=model: _load_model_code(model), table)
                model = model if known is not WRONG else WRONG
            if model is WRONG or not good:
                place.findings.broken.append(path)
            if good:
                models[name] = _UNREAD if model is WRONG else model
        return models

    def write(self, value: Mapping[str, Model], place: FilePlace) -> Any:
        section = Section()
        for name, model in value.items():
            inner, keys = unwrap_model(model)
            table = self.family().write(inner, place / name)
            if keys:
                table = self._add_wrapper_keys(table, keys, model, place / name)
            section[name] = Section(table) if isinstance(table, dict) else table
        return section

    def _add_wrapper_keys(self, table: Any, keys: dict[str, Any], model: Model, place: FilePlace) -> Any:
        """Return the table of a model with the keys of its wrappers."""
        if not isinstance(table, dict):
            return table
        kinds = [kind for kind in self.family().kinds if kind.name == table["type"]]
        known = {entry.name for kind in kinds for entry in kind.fields}
        for key in keys:
            if key not in known:
                return place.report_unwritable(model, f"files know no `{key}` of `{table['type']}`")
        return {**table, **keys}

    def schema(self) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": self.family().schema()}


def _load_model_code(model: Model) -> None:
    """Let a model load its code and look at it."""
    _ = model.inputs, model.outputs
    if isinstance(model, Ode):
        model.check()


@dataclass(frozen=True)
class ConnectionsForm:
    """input = output, where an input may be written with dots: `axle.wheel.force = "body.force"`."""

    kind: TableKind
    name = "connections"

    def read(self, value: Any, place: FilePlace) -> Any:
        if not isinstance(value, dict):
            return place.report_unexpected(value, 'a table of inputs: right.force = "left.force"')
        connections: dict[str, Connection] = {}
        for target, written, here in self._flatten(
            value, place, place.sibling_value("models"), _output_names(place)
        ):
            read = self._read_connection(written, target, here)
            if read is WRONG:
                continue
            if target in connections:
                what = f"`{target}` has two sources, `{connections[target].source}` and `{read.source}`"
                here.fault(what, "one source per input", "add them in a model of type `sum` and connect that")
                continue
            connections[target] = read
            place.findings.places[f"{place.level}connections.{target}"] = here
        return tuple(connections.values())

    def _read_connection(self, written: Any, target: str, place: FilePlace) -> Any:
        if isinstance(written, str):
            return Connection(written, target)
        if not isinstance(written, dict) or not written:
            expected = f'an output such as "left.force", or a table: {self.kind.example()}'
            return place.fault(f"`{target}` is {describe_value(written)}", expected)
        read = self.kind.read(written, place)
        return read if read is WRONG else replace(read, target=target)

    def _flatten(
        self, table: Mapping[str, Any], place: FilePlace, models: Any, own: Iterable[str], path: str = ""
    ) -> Iterator[tuple[str, Any, FilePlace]]:
        """Yield every input with what it is given; a table is a part of the path, or a connection's own."""
        keys = [entry.name for entry in self.kind.fields]
        for key, item in table.items():
            target = path + key
            inner = models.get(key) if isinstance(models, dict) else None
            leads_on = isinstance(inner, dict) and target not in own
            if isinstance(item, dict) and item and (leads_on or not any(name in item for name in keys)):
                deeper = inner.get("models") if isinstance(inner, dict) else None
                yield from self._flatten(item, place / key, deeper, own, f"{target}.")
            else:
                yield target, item, place / key

    def write(self, value: Iterable[Connection], place: FilePlace) -> Any:
        section = Section()
        for connection in value:
            here = place / connection.target
            if connection.target in section:
                here.fault(f"`{connection.target}` has two sources", "one source per input")
            bare = connection == Connection(connection.source, connection.target)
            section[connection.target] = connection.source if bare else self.kind.write(connection, here)
        return section or None

    def schema(self) -> dict[str, Any]:
        return {"$ref": f"#/$defs/{self.name}"}

    def definition(self) -> dict[str, Any]:
        """Return the JSON Schema; it refers to itself."""
        return {
            "type": "object",
            "additionalProperties": {"anyOf": [{"type": "string"}, self.kind.schema(), self.schema()]},
        }


def _output_names(place: FilePlace) -> set[str]:
    """Return the names of the level's own outputs, as far as they can be read."""
    outputs = place.sibling_value("outputs")
    names = set()
    for port in outputs if isinstance(outputs, list) else ():
        name = port.get("name") if isinstance(port, dict) else str(port).split("[")[0].split("=")[0].strip()
        names.add(str(name))
    return names


class OrderForm(WordOrForm):
    """Who steps when: "auto", or names, of which those in a list of their own step together."""

    def __init__(self) -> None:
        group = ListForm(TEXT, "a model, or a list of models")
        super().__init__(
            "auto", ListForm(EitherForm(str, TEXT, group), 'a list of models: ["a", ["b", "c"]], or "auto"')
        )

    def read(self, value: Any, place: FilePlace) -> Any:
        place.findings.places[f"{place.level}order"] = place
        return super().read(value, place)


@dataclass(frozen=True)
class IncludedFileForm:
    """Another scenario file, as a level of this one."""

    kind: Callable[[], TableKind]

    def read(self, value: Any, place: FilePlace) -> Any:
        if not isinstance(value, str):
            return place.report_unexpected(value, "the path of a scenario file")
        path = Path(place.source.folder) / value
        chain = place.source.chain
        if (real := path.resolve()) in chain:
            names = [file.name for file in (*chain[chain.index(real) :], real)]
            listed = " includes ".join(f"`{name}`" for name in names)
            return place.fault(f"a cycle of composites: {listed}", "files that do not include themselves")
        inside = open_document(path, place.findings, place)
        if inside is WRONG:
            return WRONG
        place.findings.places[place.level] = inside
        study = self.kind().read(inside.source.table, inside)
        return study if study is WRONG else study.composite

    def write(self, value: Any, place: FilePlace) -> Any:
        return place.report_unwritable(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "string"}


WHOLES = ListForm(WHOLE, "a list of whole numbers")
STOP = Field("stop", DURATION, "the time at which it stands still")
BEGIN = Field("begin", DURATION, "the time at the start")
CONTROL = (
    Field("relative", NUMBER, "this part of the value is allowed beside"),
    Field("estimate", ChoiceForm(SOURCES), "how the error is found"),
    Field("per", ChoiceForm(PER), "whether the error counts per step or per second"),
    Field("rejects", TRUTH, "whether steps are taken back"),
    BEGIN,
    Field("first", DURATION, "the first step"),
    Field("smallest", DURATION, "the smallest step"),
    Field("largest", DURATION, "the largest step"),
)
"""What the step controller and the pass that inserts it share."""


@dataclass(frozen=True)
class InnerModelForm:
    """A model in a model: [models.left.model]."""

    family: Callable[[], KindFamily]

    def read(self, value: Any, place: FilePlace) -> Any:
        return self.family().read(value, place)

    def write(self, value: Any, place: FilePlace) -> Any:
        *outer, name = place.keys
        return ModelsForm(self.family).write({str(name): value}, replace(place, keys=tuple(outer)))[str(name)]

    def schema(self) -> dict[str, Any]:
        return self.family().schema()


def accuracy_kinds(family: Callable[[], KindFamily]) -> tuple[TableKind, ...]:
    """Return the kinds; `family` is that of all models."""
    return (
        table_kind(
            "step-controller",
            StepController,
            Field("watched", PORTS, "the signals whose error matters"),
            STOP,
            Field("tolerance", VECTOR, "the error that is allowed, one for each signal"),
            *CONTROL,
            Field("gains", VECTOR, "of the errors now, before, and before that"),
            Field("order", WHOLE, "of the coupling: 1 where inputs are held"),
            Field("safety", NUMBER, "the next step is this much shorter than it might be"),
            Field("most", NUMBER, "how much longer the next step may be"),
            Field("least", NUMBER, "how much shorter"),
            Field("quantum", DURATION, "half steps are multiples of it; left out: any will do"),
        ),
        table_kind(
            "timed",
            Timed,
            BEGIN,
            Field("degrees", WHOLES, "of the extrapolation of each input; left out: all are held"),
            Field("model", InnerModelForm(family), "the model that is told the time"),
        ),
    )
