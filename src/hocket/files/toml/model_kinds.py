"""The models a file can describe that are not levels: equations, code, tables of measurements.

In:  the classes of hocket.simulators, each imported when a file names it
Out: their keys, a part of the codec
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache, partial, wraps
from operator import attrgetter
from typing import Any

import numpy as np

from hocket.errors import ScenarioError
from hocket.files.toml.forms import (
    CODE,
    DURATION,
    FOLDER,
    MATRIX,
    NUMBER,
    RATES,
    TEXT,
    TEXTS,
    TRUTH,
    VALUES,
    VECTOR,
    WHOLE,
    ChoiceForm,
    EitherForm,
    Form,
    LaterForm,
    ListForm,
    MappingForm,
    WordOrForm,
)
from hocket.files.toml.table_kinds import (
    OUTPUTS,
    PORTS,
    REACTIVITIES,
    SHOWN,
    Field,
    TableKind,
    port_text,
    table_kind,
)
from hocket.model import registry
from hocket.model.ports import PortLike
from hocket.model.protocols import Model

BACKWARD = "backward"
"""Output derivatives from the outputs of the steps before."""


def _wrapper_key(name: str, form: Form, about: str) -> Field:
    """Return a key that puts a wrapper around a model; `unwrap_model` writes it, not the model."""
    return Field(name, form, about, get=lambda _: None)


_FEEDTHROUGH = MappingForm(EitherForm(str, TEXT, TEXTS), 'a table such as { y = ["u"] }')
PROBED = _wrapper_key("probed", TRUTH, "whether `feedthrough` was found by trying, and is an estimate")
SLOPES = _wrapper_key(
    "slopes",
    WordOrForm(BACKWARD, DURATION),
    f'output derivatives by trial steps this long, rolled back; "{BACKWARD}": from the steps before',
)
WRAPPERS = (
    _wrapper_key(
        "feedthrough",
        _FEEDTHROUGH,
        "by output: the inputs that have direct feedthrough to it; left out: as the model says",
    ),
    PROBED,
    _wrapper_key("replay", TRUTH, "rollback by making all steps again, if it has no other"),
    _wrapper_key("substep", DURATION, "takes any step by steps of this length, if it cannot otherwise"),
    SLOPES,
)


def _with_wrappers(build: Callable[..., Model], names: list[str]) -> Callable[..., Model]:
    """Return a builder that takes the keys of wrappers beside its own.

    A `feedthrough` of its own is taken from it where it is an estimate: that is the wrapper's to say.
    """

    @wraps(build)
    def build_wrapped(**arguments: Any) -> Model:
        taken = [*names, "feedthrough"] if arguments.get("probed") else names
        wrapping = {name: arguments.pop(name) for name in taken if name in arguments}
        return wrap_model(build(**arguments), **wrapping)

    return build_wrapped


def wrap_model(
    model: Model,
    feedthrough: dict[str, Any] | None = None,
    probed: bool = False,
    replay: bool = False,
    substep: Fraction | None = None,
    slopes: Fraction | str | None = None,
) -> Model:
    """Return a model in the wrappers that its keys ask for."""
    if probed and feedthrough is None:
        raise ScenarioError(
            "`probed` stands without `feedthrough`", "probed", "`feedthrough`, which was found by trying"
        )
    if feedthrough is not None:
        from hocket.simulators.wrappers.feedthrough_probe import Reacting

        model = Reacting(model, feedthrough, probed)
    if replay:
        from hocket.simulators.wrappers.replay import Replay

        model = Replay(model)
    if substep is not None:
        from hocket.simulators.wrappers.substeps import Substepped

        model = Substepped(model, substep)
    if slopes is not None:
        from hocket.simulators.recipes import positive_duration
        from hocket.simulators.wrappers.derivatives import Sloped

        model = Sloped(model, None if isinstance(slopes, str) else positive_duration(slopes, "slopes"))
    return model


def unwrap_model(model: Any) -> tuple[Model, dict[str, Any]]:
    """Return the model inside and the keys of its wrappers; what no file can say is left around it."""
    from hocket.simulators.wrappers.emulation import Emulating

    keys: dict[str, Any] = {}
    outer: float = math.inf
    while isinstance(model, Emulating) and model.rank < outer:
        outer = model.rank
        keys |= model.file_keys
        model = model.model
    return model, dict(reversed(keys.items()))


def _folder_field(*names: str) -> Field:
    """Return the field of a model whose named attributes are perhaps texts that paths are part of."""

    def get(model: Any) -> str | None:
        used = any(isinstance(getattr(model, name), str) for name in names)
        return model.folder if used else None

    about = "where its paths start, if not in the folder of this file"
    return Field("folder", FOLDER, about, get=get, absent=lambda place: place.source.folder)


def _option(name: str, form: Form, about: str) -> Field:
    """Return an option of an FMU, which is written if it is not left at its default."""
    return Field(name, form, about, get=lambda model: model.options.get(name))


def _build_sum(inputs: Iterable[PortLike], gains: list[float] | None = None, unit: str = "") -> Model:
    """A model whose output y is the sum of its inputs, each times its gain."""
    from hocket.simulators.state_space import Sum

    ports = tuple(inputs)
    if gains is not None and len(gains) != len(ports):
        raise ScenarioError(f"{len(gains)} `gains` for {len(ports)} inputs", "gains", "one for each input")
    return Sum(*ports, gains=gains, unit=unit)


def _nonzero(name: str) -> Callable[[Any], Any]:
    """Return what takes numbers from a model: nothing where all are zero."""

    def get(model: Any) -> Any:
        numbers = np.array(getattr(model, name), dtype=float)
        return getattr(model, name) if numbers.any() or np.signbit(numbers).any() else None

    return get


def _feedthrough_table(model: Any) -> dict[str, list[str]] | None:
    """Return the feedthrough of an Ode where it is not what the Ode would assume."""
    every = tuple(port.name for port in model.inputs)
    if model.g is None or all(port.feedthrough == every for port in model.outputs):
        return None
    return {port.name: list(port.feedthrough) for port in model.outputs}


def _fmu_parameters(model: Any) -> dict[str, Any] | None:
    return {name: value.hex() if isinstance(value, bytes) else value for name, value in model.values} or None


def _csv_columns(model: Any) -> list[str] | dict[str, str]:
    names = {port_text(port): text for port, text in zip(model.outputs, model.headings, strict=True)}
    return list(names) if all(name == text for name, text in names.items()) else names


_PARAMETERS = Field(
    "parameters",
    VALUES,
    "handed to the code by name",
    spread=True,
    get=lambda model: model.parameters or None,
)
_STEP = Field("step", DURATION, "the longest micro step; left out: one per macro step")
_WHOLES = ListForm(WHOLE, "a list of whole numbers")
_ODE_METHODS = ChoiceForm("hocket.simulators.ode:METHODS")
_INTERFACES = ChoiceForm("hocket.simulators.fmu.recipe:InterfaceName")
_LOOKUP = (
    Field("interpolation", ChoiceForm("hocket.simulators.sources:Interpolation"), "between the rows"),
    Field(
        "outside",
        ChoiceForm("hocket.simulators.sources:Outside"),
        "what happens before the first and after the last row",
    ),
)
_DAYS = 'a table such as { daily = { "06:00" = 21, "22:00" = 16 } }'
_PROFILE = EitherForm(dict, MappingForm(NUMBER, "values by time of day"), NUMBER)
_TYPES = Field(
    "types",
    MappingForm(ChoiceForm("hocket.model.ports:PortType"), 'a table such as { gear = "integer" }'),
    "of columns that are not reals: integer, boolean, enumeration",
    get=lambda model: {port.name: port.type for port in model.outputs if port.type != "real"} or None,
)
_JITTER = MappingForm(DURATION, 'a table: { uniform = "1 ms" }, late by 0 to 1 ms, or { normal = "1 ms" }')


def _sampling(name: str, form: Form, about: str) -> Field:
    """Return an option of a model that is sampled."""
    return Field(name, form, about, get=lambda model: model.sampling and vars(model.sampling)[name])


def _written_jitter(model: Any) -> dict[str, Fraction] | None:
    jitter = model.sampling and model.sampling.jitter
    return {jitter.distribution: jitter.width} if jitter else None


_BEGIN = Field("begin", DURATION, "the time at the start")

_KEYS: dict[str, tuple[Field, ...]] = {
    "state-space": (
        Field("A", MATRIX, "x' = A x + B u"),
        Field("B", MATRIX, get=_nonzero("B")),
        Field("C", MATRIX, "y = C x + D u", get=_nonzero("C")),
        Field("D", MATRIX, get=_nonzero("D")),
        Field("x0", VECTOR, "the initial state", get=_nonzero("x0")),
        Field("inputs", PORTS),
        Field("outputs", OUTPUTS),
        Field("method", ChoiceForm("hocket.simulators.methods:MethodName"), "how it is integrated"),
        _STEP,
        Field("energy", MATRIX, "Q of the stored energy x'Qx/2, in joules"),
    ),
    "gain": (
        Field("gain", NUMBER, "y = gain u"),
        Field("unit", TEXT),
        Field("out", TEXT),
    ),
    "sum": (
        Field("inputs", PORTS),
        Field("gains", VECTOR, "one for each input"),
        Field("unit", TEXT, "of the sum"),
    ),
    "ode": (
        Field("f", CODE, "x' = f(t, x, u), as file.py:name or module:name"),
        Field("g", CODE, "y = g(t, x, u); left out: the outputs are the states"),
        Field("x0", VECTOR, "the initial state"),
        Field("inputs", PORTS),
        Field("outputs", OUTPUTS),
        Field("method", _ODE_METHODS, "how it is integrated"),
        _STEP,
        Field(
            "feedthrough",
            _FEEDTHROUGH,
            "by output: the inputs that have direct feedthrough to it; left out: all",
            get=_feedthrough_table,
        ),
        Field("rtol", NUMBER, "relative tolerance of adaptive and cvode"),
        Field("atol", NUMBER, "absolute tolerance"),
        Field("jacobian", CODE, "df/dx, for the implicit methods"),
        Field("energy", CODE, "the stored energy of x, in joules"),
        PROBED,
        SLOPES,
        _folder_field("f", "g", "jacobian", "energy"),
        _PARAMETERS,
    ),
    "dae": (
        Field("f", CODE, "0 = f(t, x, dx, u), as file.py:name or module:name"),
        Field("x0", VECTOR, "the initial state; algebraic entries are guesses"),
        Field("algebraic", _WHOLES, "the places of x, from 0 on, whose derivatives do not occur"),
        Field("inputs", PORTS),
        Field("outputs", OUTPUTS),
        Field("rtol", NUMBER, "relative tolerance"),
        Field("atol", NUMBER, "absolute tolerance"),
        _folder_field("f"),
        _PARAMETERS,
    ),
    "python": (
        Field("class", CODE, "file.py:Name or module:Name", "cls"),
        Field("inputs", PORTS, "if the class does not say", get=attrgetter("own_inputs")),
        Field("outputs", PORTS, "if the class does not say", get=attrgetter("own_outputs")),
        Field(
            "period",
            DURATION,
            "its own step; left out: that of its level",
            get=lambda model: model.period if model.sampling is None else model.sampling.period,
        ),
        _sampling("offset", DURATION, "of the first sample from the start"),
        _sampling("delay", DURATION, "from a sample to the change of outputs that follows from it"),
        Field("jitter", _JITTER, "how far samples are from their times", get=_written_jitter),
        _sampling("seed", WHOLE, "of the jitter"),
        *WRAPPERS,
        _folder_field("cls"),
        _PARAMETERS,
    ),
    "devs": (
        Field("atomic", CODE, "a class derived from hocket.Atomic, as file.py:Name or module:Name"),
        Field("inputs", PORTS, "if the class does not say", get=attrgetter("own_inputs")),
        Field("outputs", PORTS, "if the class does not say", get=attrgetter("own_outputs")),
        _folder_field("atomic"),
        _PARAMETERS,
    ),
    "simpy": (
        Field("factory", CODE, "a function of an environment and its ports, as file.py:name or module:name"),
        Field("inputs", PORTS),
        Field("outputs", PORTS),
        _folder_field("factory"),
        _PARAMETERS,
    ),
    "helics": (
        Field("inputs", PORTS),
        Field("outputs", PORTS),
        Field("publications", TEXTS, "a name for each input"),
        Field("subscriptions", TEXTS, "a name for each output"),
        Field("broker", TEXT, "its address: tcp://10.0.0.1:23404"),
        Field("federate", TEXT, "the name of hocket in the federation"),
        Field("core", TEXT, "the kind of connection: zmq"),
        Field("initial", VECTOR, "the outputs until somebody publishes"),
        Field("patience", NUMBER, "seconds that the federation may take for a step"),
    ),
    "table": (
        Field("t", VECTOR, "times in seconds", get=attrgetter("times")),
        Field(
            "columns",
            EitherForm(dict, MappingForm(VECTOR, "a table of columns"), MATRIX),
            "by port: the values; or rows, with outputs to name their columns",
            get=attrgetter("values"),
        ),
        Field("outputs", OUTPUTS),
        *_LOOKUP,
        _TYPES,
    ),
    "schedule": (
        Field(
            "profiles", MappingForm(MappingForm(_PROFILE, _DAYS), _DAYS), "by output: its days, with values"
        ),
        Field("origin", TEXT, 'the date that is time 0: "2024-01-01", or with a time zone'),
        Field("holidays", TEXTS, "dates that are holidays"),
        Field("days", WHOLE, "after how many days it ends"),
    ),
    "csv": (
        Field("path", TEXT, "of the file"),
        Field("time", TEXT, "the column of times"),
        Field(
            "columns",
            EitherForm(
                list, TEXTS, MappingForm(TEXT, 'a list of columns, or a table: { "v [m/s]" = "speed" }')
            ),
            "the columns to put out, or a table of ports and columns; left out: all",
            get=_csv_columns,
        ),
        *_LOOKUP,
        _TYPES,
        Field("origin", TEXT, "which date is time 0"),
        Field("time_zone", TEXT, "of dates that name none: Europe/Berlin"),
        Field("time_format", TEXT, "how dates are written: %d.%m.%Y %H:%M; left out: 2024-01-31T08:00"),
        Field("decimal", TEXT, "the sign before decimals"),
        _folder_field("path"),
    ),
    "fmu": (
        Field("path", TEXT, "of the .fmu file"),
        Field("parameters", VALUES, "parameters and start values, by variable", get=_fmu_parameters),
        Field("interface", _INTERFACES, "co-simulation is taken where there is one"),
        _option("observe", TEXTS, "variables to put out beside the outputs"),
        _option("isolate", TRUTH, "a process of its own"),
        Field("time_limit", DURATION, "of a call, when isolated"),
        Field("reevaluate", TRUTH, "whether outputs follow inputs between steps"),
        _option("early_return", TRUTH, "whether a step may end at an event"),
        Field("tolerance", NUMBER, "told to the FMU"),
        Field("stop_time", TRUTH, "whether the FMU is told when the run ends"),
        Field("build", TRUTH, "compile its sources where it has no binary for this platform"),
        Field("logging", TRUTH, "whether it shall log all it can"),
        _option("method", _ODE_METHODS, "of model exchange"),
        Field("step", DURATION, "of model exchange: the longest micro step"),
        _option("rtol", NUMBER, "of model exchange"),
        _option("atol", NUMBER, "of model exchange"),
        Field(
            "reactivity",
            MappingForm(REACTIVITIES, 'a table such as { force = "delayed" }'),
            "by input: whether it takes a step with the value at its end, or with that at its start",
            get=lambda model: dict(model.reactivity) or None,
        ),
        *WRAPPERS,
        _folder_field("path"),
    ),
    "function": (
        Field("f", CODE, "of t"),
        Field("outputs", OUTPUTS),
        SLOPES,
        _folder_field("f"),
    ),
    "coupler": (
        Field("equations", TEXTS, "between the ports that it reads and determines"),
        Field("reads", OUTPUTS, "outputs of others, by their paths"),
        Field("determines", OUTPUTS, "inputs of others, by their paths"),
        Field("W", MATRIX, "how inputs follow from what equations are short of: a row per input"),
        Field("degrees", _WHOLES, "2 where inputs act on accelerations"),
        Field("mu", VECTOR, "how fast gaps are closed, per equation, in 1/s"),
        Field("laws", MATRIX, "weights of the residual and its two time derivatives, per equation"),
        Field("start_rates", VECTOR, "the time derivatives of the residuals at the start"),
        Field("once", TRUTH, "whether it corrects once a step, for the next one"),
        Field("rates", RATES, "what it reads that is the time derivative of other things it reads"),
        Field("middle", TEXTS, "what is read in the middle of the step, beside inputs that are held"),
        Field("start", VECTOR, "the inputs before the first step"),
        Field("over", NUMBER, "the step that W is for, in seconds; left out: any"),
    ),
    "stand-in": (
        Field("shows", SHOWN, "its outputs; each has an input: force_sent of force"),
        Field("of", TEXT, "the simulator on another host that it stands for"),
    ),
    "step-controller": (
        Field("watched", PORTS, "the signals whose error matters"),
        Field("stop", DURATION, "the time at which it stands still"),
        Field("tolerance", VECTOR, "the error that is allowed, one for each signal"),
        Field("relative", NUMBER, "this part of the value is allowed beside"),
        Field("estimate", ChoiceForm("hocket.simulators.step_controller:SOURCES"), "how the error is found"),
        Field(
            "per",
            ChoiceForm("hocket.orchestrators.adaptive:PER"),
            "whether the error counts per step or per second",
        ),
        Field("rejects", TRUTH, "whether steps are rolled back"),
        _BEGIN,
        Field("first", DURATION, "the first step"),
        Field("smallest", DURATION, "the smallest step"),
        Field("largest", DURATION, "the largest step"),
        Field("gains", VECTOR, "of the errors now, before, and before that"),
        Field("order", WHOLE, "of the coupling: 1 where inputs are held"),
        Field("safety", NUMBER, "the next step is this much shorter than it might be"),
        Field("most", NUMBER, "how much longer the next step may be"),
        Field("least", NUMBER, "how much shorter"),
        Field("quantum", DURATION, "half steps are multiples of it; left out: any will do"),
    ),
    "timed": (
        _BEGIN,
        Field("degrees", _WHOLES, "of the extrapolation of each input; left out: all are held"),
        Field("model", LaterForm("hocket.files.toml.codec:INNER_MODEL"), "the model that is told the time"),
    ),
}
"""The keys of the types of models that are not just the arguments of a class."""


@cache  # a thousand models are written with one
def _model_kind(name: str) -> TableKind:
    build = _build_sum if name == "sum" else registry.load("simulators", name)
    keys, written = _KEYS.get(name), build
    if keys is None:
        from hocket.files.toml.block_kinds import BLOCK_KEYS, BUILDERS

        keys = BLOCK_KEYS[name]
        build = registry.load_place(BUILDERS[name]) if name in BUILDERS else build
    wrapping = [entry.name for entry in keys if entry in WRAPPERS]
    built = _with_wrappers(build, wrapping) if wrapping else build
    return table_kind(name, built, *keys, cls=written if isinstance(written, type) else None)


_BLOCKS = [name for name, place in registry.OWN["simulators"].items() if ".blocks." in place]
MODEL_KINDS: dict[str, Callable[[], TableKind]] = {
    name: partial(_model_kind, name) for name in (*_KEYS, *_BLOCKS)
}
"""Each kind is made when a file names it."""
