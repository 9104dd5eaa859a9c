"""Everything a file can describe: a level, its parts and its run, each a kind with fields.

In:  the data of the model, and what the registry knows by name
Out: the kinds from which reading, writing and the JSON Schema follow

Models, orchestrators, extrapolators and accelerators come by name from the registry: a new one is a line
there, and its keys are the arguments of its class.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, get_args

from hocket.errors import ScenarioError
from hocket.files.toml.forms import DURATION, NUMBER, TEXT, TEXTS, TRUTH, ChoiceForm, WordOrForm
from hocket.files.toml.level_forms import ConnectionsForm, IncludedFileForm, InnerModelForm, ModelsForm
from hocket.files.toml.named_tables import BONDS, CHOICES, CONSTRAINTS, HOSTS, INSERTIONS
from hocket.files.toml.registered_kinds import (
    ACCELERATIONS,
    EXTRAPOLATIONS,
    FORMS_BY_TYPE,
    ORCHESTRATORS,
    RegisteredFamily,
)
from hocket.files.toml.table_kinds import OUTPUTS, PORTS, Field, TableKind, table_kind
from hocket.model.bonds import Bond
from hocket.model.composite import Composite, Orchestrator, StartMode
from hocket.model.constraints import Constraint
from hocket.model.experiment import Experiment, Tuning
from hocket.model.hosts import Hosts
from hocket.model.ports import Port
from hocket.model.protocols import Extrapolator, Model
from hocket.model.scenario import Connection, Insertion, Scenario


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
    step: Fraction,
    models: Mapping[str, Model],
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
) -> Composite:
    scenario = Scenario(models, connections, inputs, outputs, record, bonds, constraints, hosts, inserted)
    return Composite(scenario, step, orchestrator or "jacobi", extrapolation, start, sampled)


LEVEL = table_kind(
    "composite",
    _build_level,
    Field("step", DURATION, 'the macro step, such as "10 ms"', stand_in=Fraction(1)),
    Field("orchestrator", ORCHESTRATORS, "the algorithm", stand_in=None),
    Field("extrapolation", EXTRAPOLATIONS, "of every connection that has none of its own", stand_in="hold"),
    Field("start", ChoiceForm(get_args(StartMode)), "whether extrapolators get a past", stand_in="window"),
    Field("sampled", TRUTH, "whether it sees and shows values at its own steps only", stand_in=False),
    Field("record", TEXTS, "the ports to keep: * is all", get=attrgetter("scenario.record"), stand_in=()),
    Field("inputs", PORTS, "of the level itself", get=attrgetter("scenario.inputs")),
    Field("outputs", PORTS, "of the level itself", get=attrgetter("scenario.outputs")),
    Field("models", ModelsForm(lambda: MODELS), "by name: [models.left]", get=attrgetter("scenario.models")),
    Field("connections", CONNECTIONS, "input = output", get=attrgetter("scenario.connections"), stand_in=()),
    Field("bonds", BONDS, "by name: [bonds.joint]", get=attrgetter("scenario.bonds"), stand_in=None),
    Field(
        "constraints",
        CONSTRAINTS,
        "equations between ports, by name: [constraints.link]",
        get=attrgetter("scenario.constraints"),
        stand_in=None,
    ),
    Field(
        "hosts", HOSTS, 'who runs where: plant = ["left"]', get=attrgetter("scenario.hosts"), stand_in=None
    ),
    Field(
        "inserted",
        INSERTIONS,
        "what a pass of the compiler made, and why",
        get=attrgetter("scenario.inserted"),
        stand_in=None,
    ),
    cls=Composite,
)


def _included_composite(file: Composite) -> Composite:
    """Another scenario file, as a level of this one."""
    return file


def _model_kinds() -> Mapping[str, Callable[[], TableKind]]:
    from hocket.files.toml.model_kinds import MODEL_KINDS

    return MODEL_KINDS


MODELS: RegisteredFamily = RegisteredFamily(
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
FORMS_BY_TYPE[Model] = InnerModelForm(lambda: MODELS)


def _run_defaults(
    start: Fraction = Fraction(0),
    stop: Fraction | None = None,
    every: Fraction | Literal["micro"] | None = None,
) -> dict[str, Any]:
    """The defaults of hocket run."""
    if stop is not None and stop <= start:
        raise ScenarioError(
            "the run stops before it starts", "stop", "`stop` after `start`, which is 0 if left out"
        )
    if isinstance(every, Fraction) and every <= 0:
        raise ScenarioError("`every` is not positive", "every", 'an interval above zero, or "micro"')
    return {"start": start, "stop": stop, "every": every}


def _build_study(
    name: str = "",
    run: Mapping[str, Any] | None = None,
    tune: Tuning = Tuning(),  # noqa: B008 - it is frozen
    original: str = "",
    **level: Any,
) -> Experiment:
    """A co-simulation, to be run by hocket run."""
    return Experiment(_build_level(**level), name=name, tune=tune, original=original, **(run or {}))


def _composite_getter(entry: Field) -> Callable[[Experiment], Any]:
    return lambda study: entry.of(study.composite)


_RUN = table_kind(
    "[run]",
    _run_defaults,
    Field("start", DURATION),
    Field("stop", DURATION),
    Field("every", WordOrForm("micro", DURATION), 'the output interval, or "micro"'),
    tagged=False,
    section=True,
)
FILE: TableKind = TableKind(
    "a scenario",
    _build_study,
    (
        Field("name", TEXT, "what to call it; left out: the name of the file", stand_in="", default=""),
        Field("run", _RUN, "the defaults of hocket run", get=lambda study: study, stand_in=None),
        *(replace(entry, get=_composite_getter(entry)) for entry in LEVEL.fields),
        Field("tune", CHOICES, "what hocket tune may choose, by name, and what counts", default=Tuning()),
        Field("original", TEXT, "of a compiled scenario: the text it was made from", default=""),
    ),
    tagged=False,
    about="A scenario of hocket: models, connections, and how they are run.",
)
"""A whole file."""


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a scenario file, with all that is known by name."""
    from hocket.files.toml.model_kinds import SHOWN

    defined = (
        *(MODELS, ORCHESTRATORS, ACCELERATIONS, EXTRAPOLATIONS, CONNECTIONS),
        *(BONDS, CONSTRAINTS, HOSTS, INSERTIONS, SHOWN, PORTS, OUTPUTS),
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


def publish(path: Path | str = "docs/hocket.schema.json") -> None:
    """Write the schema to a file."""
    Path(path).write_text(schema_text(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    publish()
