"""The models a file can describe that are no levels: equations, code, tables of measurements.

In:  the classes of hocket.simulators, each imported when a file names it
Out: their kinds, a part of the codec
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import wraps
from operator import attrgetter
from typing import Any, get_args

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
    ListForm,
    MappingForm,
    WordOrForm,
    ZerosForm,
)
from hocket.files.toml.registered_kinds import FORMS_BY_TYPE
from hocket.files.toml.table_kinds import OUTPUTS, PORTS, Field, PortsForm, TableKind, port_text, table_kind
from hocket.model.clock import format_duration
from hocket.model.ports import Port, PortLike, PortType
from hocket.model.protocols import Model

BACKWARD = "backward"
"""Slopes from the outputs of the steps before."""


def _no_value(_: Any) -> None:
    """The wrapper is written around the model, not by it."""


PROBED = Field(
    "probed", TRUTH, "whether `feedthrough` was found by trying, and is an estimate", get=_no_value
)
SLOPES = Field(
    "slopes",
    WordOrForm(BACKWARD, DURATION),
    f'slopes of outputs by trial steps this long, taken back; "{BACKWARD}": from the steps before',
    get=_no_value,
)
WRAPPERS = (
    Field(
        "feedthrough",
        MappingForm(EitherForm(str, TEXT, TEXTS), 'a table such as { y = ["u"] }'),
        "by output: the inputs it reacts to at once; left out: as the model says",
        get=_no_value,
    ),
    PROBED,
    Field("replay", TRUTH, "goes back by making all steps again, if it cannot otherwise", get=_no_value),
    Field(
        "substep", DURATION, "takes any step by steps of this length, if it cannot otherwise", get=_no_value
    ),
    SLOPES,
)


def with_wrapper_keys(build: Callable[..., Model], *fields: Field) -> Callable[..., Model]:
    """Return a builder that knows the keys of wrappers beside what it knew.

    A `feedthrough` of its own is taken from it where it is an estimate: that is the wrapper's to say.
    """
    known = inspect.signature(build)
    names = [field.name for field in fields]

    @wraps(build)
    def build_wrapped(**arguments: Any) -> Model:
        taken = [*names, "feedthrough"] if arguments.get("probed") else names
        own = {name: value for name, value in arguments.items() if name not in taken}
        return wrap_model(build(**own), **{name: arguments[name] for name in taken if name in arguments})

    more = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in names]
    rest = [each for each in known.parameters.values() if each.kind is each.VAR_KEYWORD]
    first = [each for each in known.parameters.values() if each not in rest]
    build_wrapped.__signature__ = known.replace(parameters=[*first, *more, *rest])  # type: ignore[attr-defined]
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
            "`probed` is said of nothing", "probed", "`feedthrough`, which was found by trying"
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
    from hocket.simulators.wrappers.derivatives import Sloped
    from hocket.simulators.wrappers.emulation import is_emulation
    from hocket.simulators.wrappers.feedthrough_probe import Reacting
    from hocket.simulators.wrappers.replay import Replay
    from hocket.simulators.wrappers.substeps import Substepped

    inside_out = (Reacting, Replay, Substepped, Sloped)
    keys: dict[str, Any] = {}
    outer = len(inside_out)
    while is_emulation(model) and inside_out.index(type(model)) < outer:
        outer = inside_out.index(type(model))
        match model:
            case Reacting(feedthrough=pairs, probed=probed):
                table = {output: list(inputs) for output, inputs in pairs}
                keys |= {**({"probed": True} if probed else {}), "feedthrough": table}
            case Substepped(substep=substep):
                keys["substep"] = format_duration(substep)
            case Sloped(trial=trial):
                keys["slopes"] = BACKWARD if trial is None else format_duration(trial)
            case _:
                keys["replay"] = True
        model = model.model
    return model, dict(reversed(keys.items()))


_FOLDER = "where its paths start, if not in the folder of this file"


def _folder_field(*names: str) -> Field:
    """Return the field of a model whose named attributes are perhaps texts that paths are part of."""

    def get(model: Any) -> str | None:
        used = any(isinstance(getattr(model, name), str) for name in names)
        return model.folder if used else None

    return Field("folder", FOLDER, _FOLDER, get=get, absent=lambda place: place.source.folder)


_PARAMETERS = Field(
    "parameters",
    VALUES,
    "handed to the code by name",
    spread=True,
    get=lambda model: model.parameters or None,
)
_STEP = Field("step", DURATION, "the longest micro step; left out: one per macro step")
_WHOLES = ListForm(WHOLE, "a list of whole numbers")


def _lookup_fields() -> tuple[Field, ...]:
    from hocket.simulators.sources import Interpolation, Outside

    return (
        Field("interpolation", ChoiceForm(get_args(Interpolation)), "between the rows"),
        Field(
            "outside", ChoiceForm(get_args(Outside)), "what happens before the first and after the last row"
        ),
    )


def _build_sum(inputs: Iterable[PortLike], gains: list[float] | None = None, unit: str = "") -> Model:
    """A model whose output y is the sum of its inputs, each times its gain."""
    from hocket.simulators.state_space import Sum

    ports = tuple(inputs)
    if gains is not None and len(gains) != len(ports):
        raise ScenarioError(f"{len(gains)} `gains` for {len(ports)} inputs", "gains", "one for each input")
    return Sum(*ports, gains=gains, unit=unit)


def _feedthrough_table(model: Any) -> dict[str, list[str]] | None:
    """Return the feedthrough of an Ode where it is not what the Ode would assume."""
    every = tuple(port.name for port in model.inputs)
    if model.g is None or all(port.feedthrough == every for port in model.outputs):
        return None
    return {port.name: list(port.feedthrough) for port in model.outputs}


def _option_getter(name: str) -> Callable[[Any], Any]:
    """Return what tells an option of an FMU that is not left at its default."""
    return lambda model: model.options.get(name)


def _fmu_parameters(model: Any) -> dict[str, Any] | None:
    return {name: value.hex() if isinstance(value, bytes) else value for name, value in model.values} or None


def _csv_columns(model: Any) -> list[str] | dict[str, str]:
    header = next(model._lines())[1]
    names = {port_text(port): header[number] for port, number in model.columns}
    return list(names) if all(name == text for name, text in names.items()) else names


def _state_space_kind() -> TableKind:
    from hocket.simulators.methods import MethodName
    from hocket.simulators.state_space import StateSpace

    return table_kind(
        "state-space",
        StateSpace,
        Field("A", MATRIX, "x' = A x + B u"),
        Field("B", ZerosForm(MATRIX)),
        Field("C", ZerosForm(MATRIX), "y = C x + D u"),
        Field("D", ZerosForm(MATRIX)),
        Field("x0", ZerosForm(VECTOR), "the initial state"),
        Field("inputs", PORTS),
        Field("outputs", OUTPUTS),
        Field("method", ChoiceForm(get_args(MethodName)), "how it is integrated"),
        _STEP,
        Field("energy", MATRIX, "Q of the stored energy x'Qx/2, in joules"),
    )


def _gain_kind() -> TableKind:
    from hocket.simulators.state_space import Gain

    return table_kind(
        "gain",
        Gain,
        Field("gain", NUMBER, "y = gain u"),
        Field("unit", TEXT),
        Field("out", TEXT),
    )


def _sum_kind() -> TableKind:
    return table_kind(
        "sum",
        _build_sum,
        Field("inputs", PORTS),
        Field("gains", VECTOR, "one for each input"),
        Field("unit", TEXT, "of the sum"),
    )


def _ode_kind() -> TableKind:
    from hocket.simulators.ode import METHODS, Ode

    return table_kind(
        "ode",
        with_wrapper_keys(Ode, PROBED, SLOPES),
        Field("f", CODE, "x' = f(t, x, u), as file.py:name or module:name"),
        Field("g", CODE, "y = g(t, x, u); left out: the outputs are the states"),
        Field("x0", VECTOR, "the initial state"),
        Field("inputs", PORTS),
        Field("outputs", OUTPUTS),
        Field("method", ChoiceForm(METHODS), "how it is integrated"),
        _STEP,
        Field(
            "feedthrough",
            MappingForm(EitherForm(str, TEXT, TEXTS), 'a table such as { y = ["u"] }'),
            "by output: the inputs it reacts to at once; left out: to all",
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
        cls=Ode,
    )


def _python_kind() -> TableKind:
    from hocket.simulators.python import Python

    return table_kind(
        "python",
        with_wrapper_keys(Python, *WRAPPERS),
        Field("class", CODE, "file.py:Name or module:Name", "cls"),
        Field("inputs", PORTS, "if the class does not say", get=attrgetter("own_inputs")),
        Field("outputs", PORTS, "if the class does not say", get=attrgetter("own_outputs")),
        Field("period", DURATION, "its own step; left out: that of its level"),
        *WRAPPERS,
        _folder_field("cls"),
        _PARAMETERS,
        cls=Python,
    )


def _table_kind() -> TableKind:
    from hocket.simulators.sources import Table

    return table_kind(
        "table",
        Table,
        Field("t", VECTOR, "times in seconds", get=attrgetter("times")),
        Field(
            "columns",
            EitherForm(dict, MappingForm(VECTOR, "a table of columns"), MATRIX),
            "by port: the values; or rows, with outputs to name their columns",
            get=attrgetter("values"),
        ),
        Field("outputs", OUTPUTS),
        *_lookup_fields(),
    )


def _csv_kind() -> TableKind:
    from hocket.simulators.sources import Csv

    return table_kind(
        "csv",
        Csv,
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
        *_lookup_fields(),
        _folder_field("path"),
    )


def _fmu_kind() -> TableKind:
    from hocket.simulators.fmu.recipe import Fmu, InterfaceName
    from hocket.simulators.ode import METHODS

    return table_kind(
        "fmu",
        with_wrapper_keys(Fmu, *WRAPPERS),
        Field("path", TEXT, "of the .fmu file"),
        Field("parameters", VALUES, "parameters and start values, by variable", get=_fmu_parameters),
        Field("interface", ChoiceForm(get_args(InterfaceName)), "co-simulation is taken where there is one"),
        Field("observe", TEXTS, "variables to put out beside the outputs", get=_option_getter("observe")),
        Field("isolate", TRUTH, "a process of its own", get=_option_getter("isolate")),
        Field("time_limit", DURATION, "of a call, when isolated"),
        Field("reevaluate", TRUTH, "whether outputs follow inputs between steps"),
        Field(
            "early_return", TRUTH, "whether a step may end at an event", get=_option_getter("early_return")
        ),
        Field("tolerance", NUMBER, "told to the FMU"),
        Field("logging", TRUTH, "whether it shall log all it can"),
        Field("method", ChoiceForm(METHODS), "of model exchange", get=_option_getter("method")),
        Field("step", DURATION, "of model exchange: the longest micro step"),
        Field("rtol", NUMBER, "of model exchange", get=_option_getter("rtol")),
        Field("atol", NUMBER, "of model exchange", get=_option_getter("atol")),
        *WRAPPERS,
        _folder_field("path"),
        cls=Fmu,
    )


def _function_kind() -> TableKind:
    from hocket.simulators.sources import Function

    return table_kind(
        "function",
        with_wrapper_keys(Function, SLOPES),
        Field("f", CODE, "of t"),
        Field("outputs", OUTPUTS),
        SLOPES,
        _folder_field("f"),
        cls=Function,
    )


def _coupler_kind() -> TableKind:
    from hocket.simulators.constraint import Coupler

    return table_kind(
        "coupler",
        Coupler,
        Field("equations", TEXTS, "between the ports that it reads and determines"),
        Field("reads", OUTPUTS, "outputs of others, by their paths"),
        Field("determines", OUTPUTS, "inputs of others, by their paths"),
        Field("W", MATRIX, "how inputs follow from what equations are short of: a row per input"),
        Field("degrees", _WHOLES, "2 where inputs act on accelerations"),
        Field("mu", VECTOR, "how fast gaps are closed, per equation, in 1/s"),
        Field("rates", RATES, "what it reads that is the time derivative of other things it reads"),
        Field("middle", TEXTS, "what is read in the middle of the step, beside inputs that are held"),
        Field("start", VECTOR, "the inputs before the first step"),
        Field("over", NUMBER, "the step that W is for, in seconds; left out: any"),
    )


SHOWN = PortsForm(
    "shown",
    table_kind(
        "a port",
        Port,
        Field("name", TEXT),
        Field("unit", TEXT, "a physical unit: m/s"),
        Field("start", NUMBER),
        Field("type", ChoiceForm(get_args(PortType)), "what its numbers mean"),
        Field("held", TRUTH, "whether it changes at events only"),
        tagged=False,
    ),
)


def _stand_in_kind() -> TableKind:
    from hocket.simulators.state_space import StandIn

    return table_kind(
        "stand-in",
        StandIn,
        Field("shows", SHOWN, "its outputs; each has an input: force_sent of force"),
        Field("of", TEXT, "the simulator on another host that it stands for"),
    )


STOP = Field("stop", DURATION, "the time at which it stands still")
_BEGIN = Field("begin", DURATION, "the time at the start")


def control_fields() -> tuple[Field, ...]:
    """Return what the step controller and the pass that inserts it share."""
    from hocket.orchestrators.adaptive import PER
    from hocket.simulators.step_controller import SOURCES

    return (
        Field("relative", NUMBER, "this part of the value is allowed beside"),
        Field("estimate", ChoiceForm(SOURCES), "how the error is found"),
        Field("per", ChoiceForm(PER), "whether the error counts per step or per second"),
        Field("rejects", TRUTH, "whether steps are taken back"),
        _BEGIN,
        Field("first", DURATION, "the first step"),
        Field("smallest", DURATION, "the smallest step"),
        Field("largest", DURATION, "the largest step"),
    )


def _step_controller_kind() -> TableKind:
    from hocket.simulators.step_controller import StepController

    return table_kind(
        "step-controller",
        StepController,
        Field("watched", PORTS, "the signals whose error matters"),
        STOP,
        Field("tolerance", VECTOR, "the error that is allowed, one for each signal"),
        *control_fields(),
        Field("gains", VECTOR, "of the errors now, before, and before that"),
        Field("order", WHOLE, "of the coupling: 1 where inputs are held"),
        Field("safety", NUMBER, "the next step is this much shorter than it might be"),
        Field("most", NUMBER, "how much longer the next step may be"),
        Field("least", NUMBER, "how much shorter"),
        Field("quantum", DURATION, "half steps are multiples of it; left out: any will do"),
    )


def _timed_kind() -> TableKind:
    from hocket.simulators.wrappers.timed import Timed

    return table_kind(
        "timed",
        Timed,
        _BEGIN,
        Field("degrees", _WHOLES, "of the extrapolation of each input; left out: all are held"),
        Field("model", FORMS_BY_TYPE[Model], "the model that is told the time"),
    )


MODEL_KINDS: dict[str, Callable[[], TableKind]] = {
    "state-space": _state_space_kind,
    "gain": _gain_kind,
    "sum": _sum_kind,
    "ode": _ode_kind,
    "python": _python_kind,
    "table": _table_kind,
    "csv": _csv_kind,
    "fmu": _fmu_kind,
    "function": _function_kind,
    "coupler": _coupler_kind,
    "stand-in": _stand_in_kind,
    "step-controller": _step_controller_kind,
    "timed": _timed_kind,
}
"""The kinds whose keys are not just the arguments of a class; each is imported when it is asked for."""
