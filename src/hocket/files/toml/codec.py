"""Everything a file can describe: a level, its parts and its run, each a kind with fields.

In:  the data of the model, and what the registry knows by name
Out: the kinds from which reading, writing and the JSON Schema follow

Models, orchestrators, extrapolators and accelerators come by name from the registry: a new one is a line
there, and its keys are the arguments of its class.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, get_args

from hocket.errors import ScenarioError
from hocket.files.toml.forms import (
    DURATION,
    NUMBER,
    TEXT,
    TEXTS,
    TRUTH,
    WHOLE,
    ChoiceForm,
    DefinedForm,
    Form,
    LaterForm,
    WordOrForm,
)
from hocket.files.toml.model_kinds import unwrap_model
from hocket.files.toml.registered_kinds import (
    ACCELERATIONS,
    EXTRAPOLATIONS,
    FORMS_BY_TYPE,
    ORCHESTRATORS,
    KindFamily,
)
from hocket.files.toml.syntax import WRONG, FilePlace, describe_value, open_document
from hocket.files.toml.table_kinds import (
    OUTPUTS,
    PORTS,
    SHOWN,
    Field,
    Section,
    TableKind,
    table_kind,
)
from hocket.model.bonds import Bond
from hocket.model.code_loading import is_code_refused
from hocket.model.composite import AT_MOST, Composite, OnZeno, Orchestrator, StartMode
from hocket.model.constraints import Constraint
from hocket.model.experiment import Experiment, Tuning
from hocket.model.hosts import Hosts
from hocket.model.ports import Port
from hocket.model.protocols import Capabilities, CheckableModel, Extrapolator, Model, Simulator, provides
from hocket.model.scenario import Connection, Insertion, Scenario

if TYPE_CHECKING:
    from hocket.model.crossings import Crossing


class _UnreadModel:
    """Stands for a model that could not be read."""

    inputs: tuple[Port, ...] = ()
    outputs: tuple[Port, ...] = ()
    capabilities = Capabilities()

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
    """Let a model load its code and look at it; without code, only what needs none."""
    if is_code_refused():
        from hocket.planning.unloaded import needs_loading

        if not needs_loading(model):
            _ = model.inputs, model.outputs
        return
    _ = model.inputs, model.outputs
    if provides(model, CheckableModel):
        model.check()


@dataclass(frozen=True)
class ConnectionsForm(DefinedForm):
    """input = output, where an input may be written with dots: `axle.wheel.force = "body.force"`."""

    kind: TableKind
    name = "connections"

    def read(self, value: Any, place: FilePlace) -> Any:
        if not isinstance(value, dict):
            return place.report_unexpected(value, 'a table of inputs: right.force = "left.force"')
        connections: dict[str, Connection] = {}
        models, outputs = place.sibling_value("models"), _output_names(place)
        for target, written, here in self._flatten(value, place, models, outputs):
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
        experiment = self.kind().read(inside.source.table, inside)
        return experiment if experiment is WRONG else experiment.composite

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


def _build_connection(
    source: str, extrapolation: Extrapolator | None = None, gain: float = 1.0, offset: float = 0.0
) -> Connection:
    """Return a connection whose target is still to be filled in."""
    return Connection(source, "", extrapolation, gain, offset)


CONNECTIONS = ConnectionsForm(
    table_kind(
        "a connection",
        _build_connection,
        Field("from", TEXT, "the output that drives it", "source"),
        Field("extrapolation", EXTRAPOLATIONS, "if not that of the level"),
        Field("gain", NUMBER, "the input is gain * output + offset, in the unit of the input"),
        Field("offset", NUMBER),
        tagged=False,
    )
)


def _build_level(
    models: Mapping[str, Model],
    step: Fraction | None = None,
    connections: Iterable[Connection] = (),
    orchestrator: Orchestrator | None = None,
    extrapolation: Extrapolator | str = "hold",
    start: StartMode = "window",
    sampled: bool = False,
    record: Iterable[str] = ("*",),
    inputs: Iterable[Port] = (),
    outputs: Iterable[Port] = (),
    bonds: Mapping[str, Bond] | None = None,
    constraints: Mapping[str, Constraint] | None = None,
    hosts: Hosts | None = None,
    inserted: Mapping[str, Insertion] | None = None,
    crossings: Mapping[str, Crossing] | None = None,
    on_zeno: OnZeno = "stop",
    at_most_instants: int = AT_MOST,
) -> Composite:
    named = bonds, constraints, hosts, inserted, crossings
    scenario = Scenario(models, connections, inputs, outputs, record, *named)
    how = orchestrator or "jacobi", extrapolation, start, sampled, step is None, on_zeno, at_most_instants
    return Composite(scenario, _ANY_STEP if step is None else step, *how)


_ANY_STEP = Fraction(1)
"""Of a level that has no step of its own, until the level around it says which it is."""


def _own_step(level: Composite) -> Fraction | None:
    return None if level.inherits_step else level.step


def _named_tables(form: str) -> LaterForm:
    return LaterForm(f"hocket.files.toml.named_tables:{form}")


def _scenario_key(name: str, form: Form, about: str, **more: Any) -> Field:
    """Return a key whose value the scenario of a level has."""
    return Field(name, form, about, get=attrgetter(f"scenario.{name}"), **more)


LEVEL = table_kind(
    "composite",
    _build_level,
    Field(
        "step",
        DURATION,
        'the macro step, such as "10 ms"; inside, left out: that of the level around',
        get=_own_step,
        stand_in=Fraction(1),
    ),
    Field("orchestrator", ORCHESTRATORS, "the algorithm", stand_in=None),
    Field("extrapolation", EXTRAPOLATIONS, "of every connection that has none of its own", stand_in="hold"),
    Field("start", ChoiceForm(get_args(StartMode)), "whether extrapolators get a past", stand_in="window"),
    Field("sampled", TRUTH, "whether it sees and shows values at its own steps only", stand_in=False),
    Field(
        "on_zeno",
        ChoiceForm(get_args(OnZeno)),
        "what becomes of a run whose events pile up, or chatter",
        stand_in="stop",
    ),
    Field("at_most_instants", WHOLE, "that may follow each other at one time", stand_in=AT_MOST),
    _scenario_key("record", TEXTS, "the ports to keep: * is all", stand_in=()),
    _scenario_key("inputs", PORTS, "of the level itself"),
    _scenario_key("outputs", PORTS, "of the level itself"),
    _scenario_key("models", ModelsForm(lambda: MODELS), "by name: [models.left]"),
    _scenario_key("connections", CONNECTIONS, "input = output", stand_in=()),
    _scenario_key("bonds", _named_tables("BONDS"), "by name: [bonds.joint]", stand_in=None),
    _scenario_key(
        "constraints",
        _named_tables("CONSTRAINTS"),
        "equations between ports, by name: [constraints.link]",
        stand_in=None,
    ),
    _scenario_key(
        "crossings",
        _named_tables("CROSSINGS"),
        "events where an output passes a value, by name: [crossings.bounce]",
        stand_in=None,
    ),
    _scenario_key(
        "hosts", _named_tables("HOSTS"), 'which simulator runs where: plant = ["left"]', stand_in=None
    ),
    _scenario_key(
        "inserted", _named_tables("INSERTIONS"), "what a pass of the compiler made, and why", stand_in=None
    ),
    cls=Composite,
)


def _included_composite(file: Composite) -> Composite:
    """Another scenario file, as a level of this one."""
    return file


def _model_kinds() -> Mapping[str, Callable[[], TableKind]]:
    from hocket.files.toml.model_kinds import MODEL_KINDS

    return MODEL_KINDS


MODELS: KindFamily = KindFamily(
    "model",
    (
        table_kind(
            "composite",
            _included_composite,
            Field("file", IncludedFileForm(lambda: FILE), "another scenario file"),
            when="file",
        ),
        LEVEL,
    ),
    by_word=False,
    registered="simulators",
    tables=_model_kinds,
)
INNER_MODEL = FORMS_BY_TYPE[Model] = InnerModelForm(lambda: MODELS)


def _run_defaults(
    start: Fraction = Fraction(0),
    stop: Fraction | None = None,
    every: Fraction | Literal["micro"] | None = None,
    origin: str = "",
) -> dict[str, Any]:
    """The defaults of hocket run."""
    if stop is not None and stop <= start:
        expected = "`stop` after `start`, which is 0 if left out"
        raise ScenarioError("the run stops before it starts", "stop", expected)
    if isinstance(every, Fraction) and every <= 0:
        raise ScenarioError("`every` is not positive", "every", 'an interval above zero, or "micro"')
    if origin:
        from hocket.model.calendar import parse_moment  # here: few files need it

        parse_moment(origin, "origin")
    return {"start": start, "stop": stop, "every": every, "origin": origin}


def _build_experiment(
    name: str = "",
    run: Mapping[str, Any] | None = None,
    tune: Tuning = Tuning(),  # noqa: B008 - it is frozen
    uncertain: Mapping[str, Any] = MappingProxyType({}),
    valid: Mapping[str, Any] = MappingProxyType({}),
    wcet: Mapping[str, Any] = MappingProxyType({}),
    original: str = "",
    **level: Any,
) -> Experiment:
    """A co-simulation, to be run by hocket run."""
    kept: dict[str, Any] = {"name": name, "tune": tune, "uncertain": uncertain, "valid": valid, "wcet": wcet}
    return Experiment(_build_level(**level), original=original, **kept, **(run or {}))


def _composite_getter(entry: Field) -> Callable[[Experiment], Any]:
    return lambda experiment: entry.of(experiment.composite)


_RUN = table_kind(
    "[run]",
    _run_defaults,
    Field("start", DURATION),
    Field("stop", DURATION),
    Field("every", WordOrForm("micro", DURATION), 'the output interval, or "micro"'),
    Field("origin", TEXT, 'the date that is time 0, for tables of results: "2024-01-01"'),
    tagged=False,
    section=True,
)
FILE: TableKind = TableKind(
    "a scenario",
    _build_experiment,
    (
        Field("name", TEXT, "what to call it; left out: the name of the file", stand_in="", default=""),
        Field("run", _RUN, "the defaults of hocket run", get=lambda experiment: experiment, stand_in=None),
        replace(
            LEVEL.fields[0],
            about='the macro step, such as "10 ms"',
            get=attrgetter("composite.step"),
            required=True,
        ),
        *(replace(entry, get=_composite_getter(entry)) for entry in LEVEL.fields[1:]),
        Field(
            "tune",
            _named_tables("CHOICES"),
            "what hocket tune may choose, by name, and what counts",
            default=Tuning(),
        ),
        Field(
            "uncertain",
            _named_tables("UNCERTAIN"),
            'what hocket study varies, by path: "spring.k" = "normal(20, 2)"',
            default={},
        ),
        Field(
            "valid",
            _named_tables("VALID"),
            'where recorded ports may be believed, by path: "pipe.p" = "0 < p < 10 bar"',
            default={},
        ),
        Field(
            "wcet",
            _named_tables("WCET"),
            'how long a step of a simulator takes at the most, by path: plant = "2 ms"',
            default={},
        ),
        Field("original", TEXT, "of a compiled scenario: the text it was made from", default=""),
    ),
    tagged=False,
    about="A scenario of hocket: models, connections, and how they are run.",
)
"""A whole file."""


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a scenario file, with all that is known by name."""
    from hocket.files.toml.named_tables import BONDS, CONSTRAINTS, CROSSINGS, HOSTS, INSERTIONS

    defined = (
        *(MODELS, ORCHESTRATORS, ACCELERATIONS, EXTRAPOLATIONS, CONNECTIONS),
        *(BONDS, CONSTRAINTS, CROSSINGS, HOSTS, INSERTIONS, SHOWN, PORTS, OUTPUTS),
    )
    return {
        # the TOML plug-ins of editors understand draft 7
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "hocket scenario",
        **FILE.schema(),
        "$defs": {each.name: each.definition() for each in defined},
    }


def schema_text() -> str:
    """Return the schema as it is published."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"
