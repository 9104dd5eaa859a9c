"""Reads the comment that opens a model's source, and writes the C header that goes with it."""

import tomllib
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CAUSALITIES = ("input", "output", "parameter", "local", "structuralParameter")
CAPACITY = 8  # of each dimension of an array

# The array of the struct Model that holds the values of an FMI 3 type, and its C type.
ARRAYS = {
    "Float64": ("float64", "double"),
    "Float32": ("float32", "float"),
    "Int8": ("int8", "int8_t"),
    "UInt8": ("uint8", "uint8_t"),
    "Int16": ("int16", "int16_t"),
    "UInt16": ("uint16", "uint16_t"),
    "Int32": ("int32", "int32_t"),
    "UInt32": ("uint32", "uint32_t"),
    "Int64": ("int64", "int64_t"),
    "UInt64": ("uint64", "uint64_t"),
    "Boolean": ("boolean", "Boolean"),
    "String": ("string", "Text"),
    "Binary": ("binary", "Bytes"),
    "Clock": ("clock", "bool"),
}


@dataclass
class Variable:
    """A row of a model's table. `place` counts the variables of its type, `index` the rows from one."""

    name: str
    causality: str
    start: Any
    type: str
    options: dict[str, Any]
    derivative_of: str | None = None
    declared: str | None = None
    place: int = 0
    index: int = 0
    reference: int = 0

    @property
    def variability(self) -> str:
        if "parameter" in self.causality.lower():
            return str(self.options.get("variability", "fixed"))
        usual = "continuous" if self.type.startswith("Float") else "discrete"
        return str(self.options.get("variability", usual))

    @property
    def initial(self) -> str | None:
        if self.causality in ("output", "local"):
            return str(self.options.get("initial", "calculated"))
        return None

    @property
    def has_start(self) -> bool:
        return self.initial != "calculated" and self.causality != "independent" and self.type != "Clock"

    @property
    def array(self) -> str:
        return ARRAYS[self.type][0]


@dataclass
class Model:
    """One FMU to build: the comment that opens its source, laid out for one version of FMI."""

    name: str
    source: Path
    version: int
    options: dict[str, Any]
    variables: list[Variable]

    @property
    def token(self) -> str:
        return "{" + str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{self.name}.fmi{self.version}.hocket")) + "}"

    @property
    def states(self) -> list[tuple[Variable, Variable]]:
        """Pairs of a state and its derivative."""
        return [(self[v.derivative_of], v) for v in self.variables if v.derivative_of]

    @property
    def indicators(self) -> list[Variable]:
        return [v for v in self.variables if v.options.get("indicator")]

    @property
    def capabilities(self) -> list[str]:
        return list(self.options.get("capabilities", ("state", "serialize", "variable step")))

    def __getitem__(self, name: str) -> Variable:
        return next(v for v in self.variables if v.name == name)


@cache
def sources() -> dict[str, tuple[Path, dict[str, Any]]]:
    """The source and the options of each model."""
    found: dict[str, tuple[Path, dict[str, Any]]] = {}
    for path in sorted((HERE / "models").glob("*.c")):
        options = tomllib.loads(path.read_text().split("/*", 1)[1].split("*/", 1)[0])
        for name, more in options.pop("names", {path.stem: {}}).items():
            found[name] = path, {**options, **more}
    return found


def versions(name: str) -> tuple[int, ...]:
    """The versions of FMI in which a model can be built."""
    return tuple(sources()[name][1].get("versions", (1, 2, 3)))


def read(name: str, version: int, changes: Mapping[str, Mapping[str, Any]]) -> Model:
    source, options = sources()[name]
    if version not in versions(name):
        raise ValueError(f"{name} is not for FMI {version}")
    table: dict[str, dict[str, Any]] = dict(options["variables"])
    only_in_3 = table.pop("3", {})
    table |= only_in_3 if version == 3 else {}
    for key, change in changes.items():
        table[key] = {**table.get(key, {}), **change}
    variables = [Variable("time", "independent", 0.0, "Float64", {"unit": "s"})]
    for key, row in table.items():
        variables.append(_variable(key, row, version, options.get("types", {})))
        if "derivative" in row:
            variables.append(Variable(row["derivative"], "local", 0.0, "Float64", {}, derivative_of=key))
    _lay_out(variables, version)
    return Model(name, source, version, options, variables)


def _variable(name: str, row: Mapping[str, Any], version: int, types: Mapping[str, Any]) -> Variable:
    causality = next(c for c in CAUSALITIES if c in row)
    start = row[causality]
    sample = start[0] if isinstance(start, list) else start
    guess = {bool: "Boolean", int: "Int32", float: "Float64", str: "String"}[type(sample)]
    kind = row.get("type", guess)
    declared = kind if kind in types else None  # an enumeration
    if declared:
        kind = "Int64" if version == 3 else "Int32"
    return Variable(name, causality, start, kind, dict(row), declared=declared)


def _lay_out(variables: list[Variable], version: int) -> None:
    """Gives places and references. The reals: time, inputs, what else is stored, what is computed."""
    places: dict[str, int] = {}
    rows = variables if version == 3 else variables[1:]  # only FMI 3 demands that time be listed
    for index, v in enumerate(rows, 1):
        v.index = index
    for v in sorted(variables, key=_rank):
        v.place = places.get(v.array, 0)
        places[v.array] = v.place + 1
        v.reference = v.place + (_offset(v.array) if version == 3 else 0)


def _rank(v: Variable) -> int:
    if v.causality in ("independent", "input"):
        return ("independent", "input").index(v.causality)
    return 2 if v.causality == "parameter" or "derivative" in v.options or v.variability == "constant" else 3


def _offset(array: str) -> int:
    """Where the references of an array begin in FMI 3, in which all types share them."""
    return 1000 * [name for name, _ in ARRAYS.values()].index(array)


def header(model: Model) -> str:
    """The header that completes the struct Model, and tells the frame of the variables."""
    fields, kinds = [], []
    for array, c_type in ARRAYS.values():
        mine = sorted((v for v in model.variables if v.array == array), key=lambda v: v.place)
        fields += [f"    {c_type} {v.name}{_size(v)};" for v in mine if v.name != "time"]
        where = f"offsetof(Model, {mine[0].name})" if mine else "0"
        offset = _offset(array) if model.version == 3 else 0
        kinds.append(f'    .{array} = {{{where}, {len(mine)}, {offset}, "{"".join(map(_letter, mine))}"}},')
    reals = [v for v in model.variables if v.type == "Float64"]
    rates = sum(_rank(v) < 2 for v in reals) if "interpolated inputs" in model.capabilities else 0
    pairs, indicators = model.states, model.indicators
    lines = [
        '#include "model.h"',
        f'#define TITLE "{model.name}"',
        *(f"#define REF_{v.name} {v.reference}u" for v in model.variables),
        "struct Model {",
        "    HEAD",
        *fields,
        f"    double rates[{max(rates, 1)}][4];",
        f"    {model.options.get('private', '')}",
        "};",
        "static const Model DEFAULTS = {",
        *(f"    .{v.name} = {_c_value(v)}," for v in model.variables),
        "};",
        "const Table TABLE = {",
        f'    .title = TITLE, .token = "{model.token}", .size = sizeof(Model), .defaults = &DEFAULTS,',
        f"    .stored = {sum(_rank(v) < 3 for v in reals)},",
        f"    .states = {len(pairs)}, .state = {_numbers(x.place for x, _ in pairs)},",
        f"    .derivative = {_numbers(dx.place for _, dx in pairs)},",
        f"    .indicators = {len(indicators)}, .indicator = {_numbers(z.place for z in indicators)},",
        f"    .rates = {rates}, .rates_at = offsetof(Model, rates),",
        f"    .arrays = {int(any('dimensions' in v.options for v in reals))},",
        *kinds,
        "};",
    ]
    return "\n".join(lines) + "\n"


def _numbers(values: Iterable[int]) -> str:
    return f"(const unsigned[]){{{', '.join(map(str, values)) or '0'}}}"


def _size(v: Variable) -> str:
    return f"[{CAPACITY ** len(v.options['dimensions'])}]" if "dimensions" in v.options else ""


def _letter(v: Variable) -> str:
    """For frame2.c: whether a variable can be set."""
    if v.causality == "input":
        return "i"
    if v.causality == "parameter":
        return "t" if v.variability == "tunable" else "p"
    return "p" if v.initial == "exact" and v.variability != "constant" else "-"


def _c_value(v: Variable) -> str:
    if v.type == "Binary":
        data = v.start.encode("latin-1")
        return f"{{{len(data)}, {{{', '.join(map(str, data or [0]))}}}}}"
    if v.type == "String":
        return '"' + v.start.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(v.start, list):
        return "{" + ", ".join(map(repr, v.start)) + "}"
    return str(int(v.start)) if isinstance(v.start, bool) else repr(v.start)
