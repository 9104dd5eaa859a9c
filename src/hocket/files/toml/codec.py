"""The one table of everything a file can describe: kinds, their fields, and how those are written.

In:  the classes of hocket
Out: the kinds from which reading, writing and the JSON Schema follow

A new kind of model, orchestrator or extrapolator needs one entry here and nothing else.
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
from hocket.files.toml.forms import (
    DURATION,
    NUMBER,
    PART,
    TEXT,
    TEXTS,
    TRUTH,
    WHOLE,
    ChoiceForm,
    RatesForm,
    WordOrForm,
)
from hocket.files.toml.level_forms import (
    ConnectionsForm,
    IncludedFileForm,
    ModelsForm,
    OrderForm,
    accuracy_kinds,
)
from hocket.files.toml.model_kinds import SIMULATORS
from hocket.files.toml.named_tables import (
    BONDS,
    CHOICES,
    CONSTRAINTS,
    COUPLER,
    HOSTS,
    INSERTIONS,
    SHOWN,
    STAND_IN,
)
from hocket.files.toml.table_kinds import OUTPUTS, PORTS, Field, KindFamily, TableKind, table_kind
from hocket.model.bonds import Bond
from hocket.model.composite import Composite, Orchestrator, StartMode
from hocket.model.constraints import Constraint
from hocket.model.experiment import Experiment, Tuning
from hocket.model.extrapolators import (
    EXTRAPOLATORS,
    BalanceCorrection,
    Hermite,
    Hold,
    Latch,
    Nepce,
    Polynomial,
)
from hocket.model.hosts import Hosts
from hocket.model.ports import Port
from hocket.model.protocols import Extrapolator, Model
from hocket.model.scenario import Connection, Insertion, Scenario
from hocket.orchestrators import Asynchronous, GaussSeidel, Iterate, Jacobi, Multirate
from hocket.orchestrators.adaptive import GAINS, PER, Adaptive
from hocket.orchestrators.explicit import InputsMode
from hocket.orchestrators.multirate import Scheme
from hocket.plan import Accelerator, Aitken, Estimate, Newton, OutputsMode, QuasiNewton, Relax

EXTRAPOLATIONS = KindFamily(
    "extrapolation",
    (
        table_kind("hold", Hold),
        table_kind("latch", Latch),
        table_kind("polynomial", Polynomial, Field("degree", WHOLE, "0 to 8")),
        table_kind("hermite", Hermite, Field("samples", WHOLE, "1 to 4, each with its slope")),
        table_kind("nepce", Nepce, Field("alpha", NUMBER, "the weight of the past; 0 is the hold")),
        table_kind(
            "balance-correction",
            BalanceCorrection,
            Field("alpha", NUMBER, "the part that is handed on of what the last hold fell short of"),
        ),
    ),
    EXTRAPOLATORS,
)

_EXCHANGE = (
    Field(
        "outputs", ChoiceForm(get_args(OutputsMode)), "whether outputs are evaluated again after the exchange"
    ),
    Field("inputs", ChoiceForm(get_args(InputsMode)), "when a new input from outside begins to act"),
)
_RATES = Field(
    "rates",
    RatesForm(),
    "steps of each simulator per step of the level; 1 where none is given",
    get=lambda orchestrator: dict(orchestrator.rates),
)
_EXPLICIT = (
    table_kind("jacobi", Jacobi, *_EXCHANGE),
    table_kind("gauss-seidel", GaussSeidel, Field("order", OrderForm(), "who steps when"), *_EXCHANGE),
    table_kind(
        "multirate", Multirate, _RATES, Field("scheme", ChoiceForm(get_args(Scheme)), "who first"), *_EXCHANGE
    ),
    table_kind("asynchronous", Asynchronous, _RATES, *_EXCHANGE),
)


ACCELERATIONS = KindFamily(
    "accelerator",
    (
        table_kind("relax", Relax, Field("factor", NUMBER, "the part of the way that is gone")),
        table_kind("aitken", Aitken, Field("first", NUMBER, "the factor that each step begins with")),
        table_kind(
            "quasi-newton",
            QuasiNewton,
            Field("reuse", WHOLE, "steps for which what was learned is used again"),
            Field("filter", NUMBER, "what depends on newer columns up to this is dropped"),
        ),
        table_kind(
            "newton", Newton, Field("falls", NUMBER, "the fall of the residual that keeps the matrix")
        ),
    ),
    {"plain": None},
)


def _build_iterate(
    inner: Orchestrator | None = None,
    tolerance: float | Literal["none"] = 1e-8,
    at_most: int = 50,
    accelerate: Accelerator | Literal["plain"] | None = QuasiNewton(),  # noqa: B008 - it is frozen
) -> Iterate:
    """The steps of another algorithm, made again until what is exchanged agrees."""
    return Iterate(inner or Jacobi(), None if tolerance == "none" else tolerance, at_most, accelerate)


_STEPS = (
    *_EXPLICIT,
    table_kind(
        "iterate",
        _build_iterate,
        Field("inner", KindFamily("orchestrator", _EXPLICIT), "the algorithm of one sweep", stand_in=None),
        Field(
            "tolerance",
            WordOrForm("none", NUMBER),
            'the relative change that ends it; "none": always at_most sweeps',
            get=lambda iterate: iterate.tolerance or "none",
        ),
        Field("at_most", WHOLE, "sweeps in a step"),
        Field(
            "accelerate",
            WordOrForm("plain", ACCELERATIONS),
            'how sweeps are led to their end; "plain": they are not',
            get=lambda iterate: iterate.accelerate or "plain",
        ),
        cls=Iterate,
    ),
)
ORCHESTRATORS = KindFamily(
    "orchestrator",
    (
        *_STEPS,
        table_kind(
            "adaptive",
            Adaptive,
            Field(
                "inner", KindFamily("orchestrator", _STEPS), "the algorithm of one step", stand_in=Jacobi()
            ),
            Field("tolerance", NUMBER, "the error that is allowed"),
            Field("estimate", ChoiceForm(get_args(Estimate)), "how the error is found"),
            Field("controller", ChoiceForm(tuple(GAINS)), "how the next step follows from the errors"),
            Field("per", ChoiceForm(PER), "whether the error counts per second or per step"),
            Field("quantum", PART, "steps are multiples of this part of the level's step"),
            Field("first", PART, "the part of the level's step that a run begins with"),
            Field("rejects", TRUTH, "whether steps are taken back; left out: where all can"),
        ),
    ),
)


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


MODELS: KindFamily = KindFamily(
    "model",
    (
        *SIMULATORS,
        COUPLER,
        STAND_IN,
        *accuracy_kinds(lambda: MODELS),
        table_kind(
            "composite",
            _included_composite,
            Field("file", IncludedFileForm(lambda: FILE), "another scenario file"),
            when="file",
        ),
        LEVEL,
    ),
    by_word=False,
)


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

DEFINED = (
    *(MODELS, ORCHESTRATORS, ACCELERATIONS, EXTRAPOLATIONS, CONNECTIONS),
    *(BONDS, CONSTRAINTS, HOSTS, INSERTIONS, SHOWN, PORTS, OUTPUTS),
)
"""What the JSON Schema defines once and refers to."""


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a scenario file."""
    return {
        # the TOML plug-ins of editors understand draft 7
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "hocket scenario",
        **FILE.schema(),
        "$defs": {defined.name: defined.definition() for defined in DEFINED},
    }


def schema_text() -> str:
    """Return the schema as it is published."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


def publish(path: Path | str = "docs/hocket.schema.json") -> None:
    """Write the schema to a file."""
    Path(path).write_text(schema_text(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    publish()
