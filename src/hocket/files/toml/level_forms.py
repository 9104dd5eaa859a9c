"""The parts of a level in a file: its models, its connections, other files that it includes.

In:  tables of a file, with their places
Out: models by name, connections, composites; and back
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hocket.files.toml.model_kinds import unwrap_model
from hocket.files.toml.syntax import WRONG, FilePlace, describe_value, open_document
from hocket.files.toml.table_kinds import KindFamily, Section, TableKind
from hocket.model.composite import Composite
from hocket.model.ports import Port
from hocket.model.protocols import Capabilities, CheckableModel, Model, Simulator
from hocket.model.scenario import Connection, Scenario


class _UnreadModel:
    """Stands for a model that could not be read."""

    inputs: tuple[Port, ...] = ()
    outputs: tuple[Port, ...] = ()
    abilities = Capabilities()

    def open(self) -> Simulator:
        """Refuse: the faults of the file come first."""
        raise NotImplementedError


_UNREAD = _UnreadModel()


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
    if isinstance(model, CheckableModel):
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
