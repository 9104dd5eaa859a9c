"""The models a file can describe that are no levels: equations, code, tables of measurements.

In:  the classes of hocket.simulators
Out: their kinds, a part of the codec
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, get_args

from hocket.errors import ScenarioError
from hocket.files.toml.code import CODE, FOLDER, VALUES
from hocket.files.toml.forms import (
    DURATION,
    MATRIX,
    NUMBER,
    TEXT,
    TEXTS,
    TRUTH,
    VECTOR,
    Choice,
    Either,
    Mapped,
    Zeros,
)
from hocket.files.toml.kinds import Field, kind
from hocket.files.toml.ports import OUTPUTS, PORTS, port_text
from hocket.files.toml.wrappers import PROBED, SLOPES, WRAPPERS, wrapping
from hocket.model import PortLike
from hocket.simulators.fmu import Fmu
from hocket.simulators.fmu.recipe import InterfaceName
from hocket.simulators.methods import MethodName
from hocket.simulators.ode import METHODS, Ode
from hocket.simulators.python import Python
from hocket.simulators.sources import Csv, Function, Interpolation, Outside, Table
from hocket.simulators.state_space import Gain, StateSpace, Sum

_FOLDER = "where its paths start, if not in the folder of this file"


def _folder(*names: str) -> Field:
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
_LOOKUP = (
    Field("interpolation", Choice(get_args(Interpolation)), "between the rows"),
    Field("outside", Choice(get_args(Outside)), "what happens before the first and after the last row"),
)


def _sum(inputs: Iterable[PortLike], gains: list[float] | None = None, unit: str = "") -> StateSpace:
    """A model whose output y is the sum of its inputs, each times its gain."""
    ports = tuple(inputs)
    if gains is not None and len(gains) != len(ports):
        raise ScenarioError(f"{len(gains)} `gains` for {len(ports)} inputs", "gains", "one for each input")
    return Sum(*ports, gains=gains, unit=unit)


def _reactions(model: Ode) -> dict[str, list[str]] | None:
    """Return the feedthrough of an Ode where it is not what the Ode would assume."""
    every = tuple(port.name for port in model.inputs)
    if model.g is None or all(port.feedthrough == every for port in model.outputs):
        return None
    return {port.name: list(port.feedthrough) for port in model.outputs}


def _option(name: str) -> Callable[[Fmu], Any]:
    """Return what tells an option of an FMU that is not left at its default."""
    return lambda model: model.options.get(name)


def _given(model: Fmu) -> dict[str, Any] | None:
    return {name: value.hex() if isinstance(value, bytes) else value for name, value in model.values} or None


def _columns(model: Csv) -> list[str] | dict[str, str]:
    header = next(model._lines())[1]
    names = {port_text(port): header[number] for port, number in model.columns}
    return list(names) if all(name == text for name, text in names.items()) else names


SIMULATORS = (
    kind(
        "state-space",
        StateSpace,
        Field("A", MATRIX, "x' = A x + B u"),
        Field("B", Zeros(MATRIX)),
        Field("C", Zeros(MATRIX), "y = C x + D u"),
        Field("D", Zeros(MATRIX)),
        Field("x0", Zeros(VECTOR), "the initial state"),
        Field("inputs", PORTS),
        Field("outputs", OUTPUTS),
        Field("method", Choice(get_args(MethodName)), "how it is integrated"),
        _STEP,
        Field("energy", MATRIX, "Q of the stored energy x'Qx/2, in joules"),
    ),
    kind("gain", Gain, Field("gain", NUMBER, "y = gain u"), Field("unit", TEXT), Field("out", TEXT)),
    kind(
        "sum",
        _sum,
        Field("inputs", PORTS),
        Field("gains", VECTOR, "one for each input"),
        Field("unit", TEXT, "of the sum"),
    ),
    kind(
        "ode",
        wrapping(Ode, PROBED, SLOPES),
        Field("f", CODE, "x' = f(t, x, u), as file.py:name or module:name"),
        Field("g", CODE, "y = g(t, x, u); left out: the outputs are the states"),
        Field("x0", VECTOR, "the initial state"),
        Field("inputs", PORTS),
        Field("outputs", OUTPUTS),
        Field("method", Choice(METHODS), "how it is integrated"),
        _STEP,
        Field(
            "feedthrough",
            Mapped(Either(str, TEXT, TEXTS), 'a table such as { y = ["u"] }'),
            "by output: the inputs it reacts to at once; left out: to all",
            get=_reactions,
        ),
        Field("rtol", NUMBER, "relative tolerance of adaptive and cvode"),
        Field("atol", NUMBER, "absolute tolerance"),
        Field("jacobian", CODE, "df/dx, for the implicit methods"),
        Field("energy", CODE, "the stored energy of x, in joules"),
        PROBED,
        SLOPES,
        _folder("f", "g", "jacobian", "energy"),
        _PARAMETERS,
        cls=Ode,
    ),
    kind(
        "python",
        wrapping(Python, *WRAPPERS),
        Field("class", CODE, "file.py:Name or module:Name", "cls"),
        Field("inputs", PORTS, "if the class does not say", get=attrgetter("own_inputs")),
        Field("outputs", PORTS, "if the class does not say", get=attrgetter("own_outputs")),
        Field("period", DURATION, "its own step; left out: that of its level"),
        *WRAPPERS,
        _folder("cls"),
        _PARAMETERS,
        cls=Python,
    ),
    kind(
        "table",
        Table,
        Field("t", VECTOR, "times in seconds", get=attrgetter("times")),
        Field(
            "columns",
            Either(dict, Mapped(VECTOR, "a table of columns"), MATRIX),
            "by port: the values; or rows, with outputs to name their columns",
            get=attrgetter("values"),
        ),
        Field("outputs", OUTPUTS),
        *_LOOKUP,
    ),
    kind(
        "csv",
        Csv,
        Field("path", TEXT, "of the file"),
        Field("time", TEXT, "the column of times"),
        Field(
            "columns",
            Either(list, TEXTS, Mapped(TEXT, 'a list of columns, or a table: { "v [m/s]" = "speed" }')),
            "the columns to put out, or a table of ports and columns; left out: all",
            get=_columns,
        ),
        *_LOOKUP,
        _folder("path"),
    ),
    kind(
        "fmu",
        wrapping(Fmu, *WRAPPERS),
        Field("path", TEXT, "of the .fmu file"),
        Field("parameters", VALUES, "parameters and start values, by variable", get=_given),
        Field("interface", Choice(get_args(InterfaceName)), "co-simulation is taken where there is one"),
        Field("observe", TEXTS, "variables to put out beside the outputs", get=_option("observe")),
        Field("isolate", TRUTH, "a process of its own", get=_option("isolate")),
        Field("time_limit", DURATION, "of a call, when isolated"),
        Field("reevaluate", TRUTH, "whether outputs follow inputs between steps"),
        Field("early_return", TRUTH, "whether a step may end at an event", get=_option("early_return")),
        Field("tolerance", NUMBER, "told to the FMU"),
        Field("logging", TRUTH, "whether it shall log all it can"),
        Field("method", Choice(METHODS), "of model exchange", get=_option("method")),
        Field("step", DURATION, "of model exchange: the longest micro step"),
        Field("rtol", NUMBER, "of model exchange", get=_option("rtol")),
        Field("atol", NUMBER, "of model exchange", get=_option("atol")),
        *WRAPPERS,
        _folder("path"),
        cls=Fmu,
    ),
    kind(
        "function",
        wrapping(Function, SLOPES),
        Field("f", CODE, "of t"),
        Field("outputs", OUTPUTS),
        SLOPES,
        _folder("f"),
        cls=Function,
    ),
)
