"""What an FMU declares: variables, interfaces, units; the types of values, the names of array elements.

In:  what a model description says
Out: frozen data
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from hocket.model.ports import INDICES, PortType


def split_element(name: str) -> tuple[str, tuple[int, ...]]:
    """Return the array whose element a name would be, and its indices; () if it ends in none.

    Elements are `x[1]`, `A[1,2]`; some tools write `A[1, 2]`.
    """
    array, bracket, rest = name.rpartition("[")
    if not array or not INDICES.fullmatch(bracket + rest):
        return name, ()
    return array, tuple(int(number) for number in rest.rstrip("]").split(","))


def element_name(name: str, index: tuple[int, ...]) -> str:
    """Return the name of an element: `x[1]`, `A[1,2]`."""
    return f"{name}[{','.join(map(str, index))}]" if index else name


def array_of(name: str) -> str:
    """Return the array whose element a name would be; empty if it ends in no indices."""
    array, indices = split_element(name)
    return array if indices else ""


SIZED = ("Float64", "Float32", "Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64")
"""The types of numbers of FMI 3 and SSP 2, as they are written."""
WHOLE = ("integer", *(tag.lower() for tag in SIZED if "Int" in tag))
"""The types of whole numbers; "integer" is that of FMI 1 and 2."""
FLOATS = ("real", "float32")
"""The types of reals; "real" is 64 bits wide, in FMI 3 too."""
PORT_TYPES: dict[str, PortType] = {
    **dict.fromkeys(FLOATS, "real"),
    **dict.fromkeys(WHOLE, "integer"),
    "boolean": "boolean",
    "enumeration": "enumeration",
}
"""What ports of numeric types are called."""


def parse_boolean(text: str) -> bool:
    """Return a truth as FMI and SSP write it; raises ValueError."""
    words = ("false", "0", "true", "1")
    return words.index(text.strip().lower()) > 1


def parse_whole(text: str) -> int:
    """Return a whole number, which some tools write as `3.0`; raises ValueError."""
    try:
        return int(text)
    except ValueError:
        if not float(text).is_integer():
            raise
        return int(float(text))


VALUE_PARSERS: dict[str, tuple[Callable[[str], Any], str]] = {
    **dict.fromkeys(FLOATS, (float, "a number")),
    **dict.fromkeys((*WHOLE, "enumeration"), (parse_whole, "a whole number")),
    "boolean": (parse_boolean, "true or false"),
    "string": (str, "a text"),
    "binary": (bytes.fromhex, "hexadecimal digits"),
}
"""By type: what reads a value, and what it expects."""


@dataclass(frozen=True, slots=True)
class ClockInterval:
    """When a clock of FMI 3 ticks."""

    variability: str
    """constant, fixed, calculated, tunable (these are periodic), changing, countdown or triggered."""
    interval: Fraction | None = None
    """In seconds; None: the FMU tells it."""
    shift: Fraction = Fraction(0)
    """Of the first tick behind the start."""
    priority: int = 0
    """Of clocks that tick together the one with the smallest number is first."""
    fractions: bool = False
    """The FMU tells intervals as fractions."""

    @property
    def periodic(self) -> bool:
        return self.variability in PERIODIC

    @property
    def timed(self) -> bool:
        """Whether hocket ticks it, at times that follow from intervals; else another clock triggers it."""
        return self.variability != "triggered"


PERIODIC = ("constant", "fixed", "calculated", "tunable")
APERIODIC = ("changing", "countdown", "triggered")


_NO_ITEMS: Mapping[str, int] = {}


class FmuVariable(NamedTuple):
    """One variable, as its FMU declares it; a tuple, since some FMUs have a million."""

    name: str
    reference: int
    """The value reference: its number at the FMU's door."""
    type: str
    """real, float32, integer, int8 ... uint64, boolean, enumeration, string, binary or clock."""
    causality: str = "local"
    """parameter, calculatedParameter, structuralParameter, input, output, local or independent."""
    variability: str = "continuous"
    """constant, fixed, tunable, discrete or continuous."""
    initial: str | None = None
    """exact, approx or calculated; None: an independent variable."""
    start: Any = None
    """A value of its type, for an array a flat tuple of them; None: not given."""
    unit: str = ""
    minimum: float | int | None = None
    maximum: float | int | None = None
    nominal: float | None = None
    items: Mapping[str, int] = _NO_ITEMS
    """Of an enumeration: the value of each item."""
    dimensions: tuple[int | str, ...] = ()
    """Of an array: its sizes, or the structural parameters that hold them."""
    about: str = ""
    intermediate_update: bool = False
    """FMI 3: may be set or got in the middle of a step."""
    clocks: tuple[str, ...] = ()
    ticks: ClockInterval | None = None
    """Of a clock: when it ticks."""
    alias_of: str | None = None
    """FMI 3: the variable it is another name of."""
    relative: bool = False
    """It is a difference: an offset between units does not count."""
    negated: bool = False
    """FMI 1: the value is minus the one behind the reference."""

    @property
    def numeric(self) -> bool:
        """Whether its values travel as floats."""
        return self.type not in ("string", "binary", "clock")

    @property
    def moves(self) -> bool:
        """Whether it may change between events."""
        return self.type in FLOATS and self.variability == "continuous"

    @property
    def port_type(self) -> PortType:
        """What a port of it is called; numeric variables only."""
        return PORT_TYPES[self.type]

    @property
    def keeps_its_start(self) -> bool:
        """Whether the value that was set is the one after initialisation: not a guess, not driven."""
        if self.causality in ("parameter", "structuralParameter"):
            return True
        return self.initial == "exact" and self.variability == "continuous" and self.causality != "input"

    @property
    def settable(self) -> bool:
        """Whether FMI lets it be set before initialisation."""
        if self.variability == "constant" or self.causality == "independent":
            return False
        own = ("input", "parameter", "structuralParameter")
        return self.initial in ("exact", "approx") or self.causality in own


@dataclass(frozen=True, slots=True)
class FmuInterface:
    """What a co-simulation or model-exchange interface says it can do."""

    identifier: str
    """The name of the binary, without its ending."""
    needs_execution_tool: bool = False
    only_once: bool = False
    """One instance per process."""
    can_save: bool = False
    can_serialise: bool = False
    directional: bool = False
    """Directional derivatives."""
    adjoint: bool = False
    variable_step: bool = False
    fixed_step: float | None = None
    """FMI 3: its internal step, in seconds."""
    interpolates_inputs: bool = False
    """FMI 1 and 2: takes derivatives of real inputs."""
    output_derivatives: int = 0
    """The highest derivative of an output it tells."""
    event_mode: bool = False
    early_return: bool = False
    """A step may end before the time asked for."""
    intermediate_update: bool = False
    asynchronous: bool = False
    completed_step: bool = False
    """Model exchange: wants to be told of every completed step."""


BASES = ("kg", "m", "s", "A", "K", "mol", "cd", "rad")


@dataclass(frozen=True)
class NamedUnit:
    """A unit by name; base value = factor * value + offset, where it is defined."""

    name: str
    exponents: tuple[int, ...] = ()
    """Of BASES; empty: known by its name alone."""
    factor: float = 1.0
    offset: float = 0.0

    @property
    def base(self) -> str:
        """The product of base units, as hocket writes it; `1` for none."""
        powers = [f"{b}**{e}" if e != 1 else b for b, e in zip(BASES, self.exponents, strict=True) if e]
        return " * ".join(powers) or "1"


@dataclass(frozen=True, eq=False)
class Description:
    """A model description. Equal only to itself, so that what is derived of it can be kept by it."""

    version: str
    """1.0, 2.0 or 3.0."""
    name: str
    token: str
    """The GUID, or instantiation token, to be shown to the binary."""
    variables: tuple[FmuVariable, ...]
    """In file order; FMI 3 aliases behind them."""
    cs: FmuInterface | None = None
    me: FmuInterface | None = None
    se: FmuInterface | None = None
    """FMI 3: scheduled execution."""
    about: str = ""
    tool: str = ""
    date: str = ""
    dependencies: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    """Per output and derivative the variables with direct feedthrough to it, states too; None: not told."""
    initial_unknowns: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    states: tuple[tuple[str, str], ...] = ()
    """The continuous states, each with its derivative."""
    unnamed_states: int = 0
    """FMI 1: how many continuous states there are; which variables they are only the binary knows."""
    event_indicators: int = 0
    start: float | None = None
    stop: float | None = None
    tolerance: float | None = None
    step: float | None = None
    units: Mapping[str, NamedUnit] = field(default_factory=dict)
    platforms: tuple[str, ...] = ()
    """The folders in `binaries`."""
    problems: tuple[str, ...] = ()
    """What breaks the standard and does no harm here."""

    @property
    def major(self) -> int:
        return int(self.version[0])

    @cached_property
    def by_name(self) -> dict[str, FmuVariable]:
        return {variable.name: variable for variable in self.variables}

    @cached_property
    def element_variables(self) -> dict[str, dict[tuple[int, ...], FmuVariable]]:
        """The arrays that are written as variables `x[1]`, `x[2]` ...: their elements by index."""
        found: dict[str, dict[tuple[int, ...], FmuVariable]] = {}
        for variable in self.variables:
            array, index = split_element(variable.name)
            if index:
                found.setdefault(array, {})[index] = variable
        return found

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The structural parameters that hold sizes of arrays, at their start values."""
        names = {size for variable in self.variables for size in variable.dimensions if isinstance(size, str)}
        return {name: int(self.by_name[name].start) for name in sorted(names)}

    @cached_property
    def clocks(self) -> tuple[FmuVariable, ...]:
        """The clocks that tick it, and those by which it ticks others."""
        return tuple(
            v
            for v in self.variables
            if v.type == "clock" and v.causality in ("input", "output") and v.alias_of is None
        )

    @cached_property
    def clocked_names(self) -> tuple[str, ...]:
        """The input clocks, and the inputs and outputs that only exist when a clock ticks."""
        return tuple(
            variable.name
            for variable in self.variables
            if (variable.type == "clock" and variable.causality == "input")
            or (variable.clocks and variable.type != "clock" and variable.causality in ("input", "output"))
        )

    def has_instants_only(self, variable: FmuVariable) -> bool:
        """Return whether a variable is there at ticks of clocks that others trigger, or that it triggers.

        What ticks at times of its own is sampled or held between them, as a sampled controller does.
        """
        clocks = [self.by_name[name] for name in variable.clocks]
        return bool(clocks) and not all(
            clock.causality == "input" and clock.ticks is not None and clock.ticks.timed for clock in clocks
        )

    def call_type(self, variable: FmuVariable) -> str:
        """Return the type whose set and get functions are called: FMI 1 and 2 take items for integers."""
        return "integer" if variable.type == "enumeration" and self.major < 3 else variable.type
