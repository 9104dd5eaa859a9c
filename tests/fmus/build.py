"""Builds the test FMUs: one C source for each model, one frame for each version of FMI.

`python tests/fmus/build.py OUT [names...]` builds them all, or those named, into OUT/fmi1, OUT/fmi2 and OUT/fmi3.
"""

import subprocess
import sys
import tempfile
import tomllib
import uuid
import zipfile
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any
from xml.etree import ElementTree as ET

HERE = Path(__file__).resolve().parent
FLAGS = (
    "-std=gnu2x",
    "-O2",
    "-fPIC",
    "-fvisibility=hidden",
    "-ffp-contract=off",
    "-Wall",
    "-Wextra",
    f"-I{HERE}",
)
PLATFORM = {1: "linux64", 2: "linux64", 3: "x86_64-linux"}
CAUSALITIES = ("input", "output", "parameter", "local", "structuralParameter", "independent")
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
OLD_TYPES = {"Float64": "Real", "Int32": "Integer", "Boolean": "Boolean", "String": "String"}

# The attributes that tell of an ability, in FMI 1, 2 and 3.
ABILITIES: dict[str, tuple[dict[str, str], dict[str, str], dict[str, str]]] = {
    "state": ({}, {"canGetAndSetFMUstate": "true"}, {"canGetAndSetFMUState": "true"}),
    "serialize": ({}, {"canSerializeFMUstate": "true"}, {"canSerializeFMUState": "true"}),
    "variable step": ({"canHandleVariableCommunicationStepSize": "true"},) * 3,
    "directional derivatives": (
        {},
        {"providesDirectionalDerivative": "true"},
        {"providesDirectionalDerivatives": "true", "providesAdjointDerivatives": "true"},
    ),
    "interpolated inputs": (
        {"canInterpolateInputs": "true"},
        {"canInterpolateInputs": "true"},
        {"providesIntermediateUpdate": "true"},
    ),
    "output derivatives": ({"maxOutputDerivativeOrder": "1"},) * 3,
    "events": ({}, {}, {"hasEventMode": "true"}),
    "early return": ({}, {}, {"mightReturnEarlyFromDoStep": "true"}),
    "only once": ({"canBeInstantiatedOnlyOncePerProcess": "true"},) * 3,
}
COSIMULATION_ONLY = {"variable step", "interpolated inputs", "output derivatives", "events", "early return"}

# Exponents of the base units.
UNITS = {
    "s": {"s": 1},
    "m": {"m": 1},
    "m/s": {"m": 1, "s": -1},
    "m/s2": {"m": 1, "s": -2},
    "kg": {"kg": 1},
    "N": {"kg": 1, "m": 1, "s": -2},
    "N/m": {"kg": 1, "s": -2},
    "N.s/m": {"kg": 1, "s": -1},
}


@dataclass
class Variable:
    """A row of a model's table; `place` is its index in the C array of its type, `index` its row, counted from one."""

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
        return str(
            self.options.get("variability", "continuous" if self.type.startswith("Float") else "discrete")
        )

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
    """One FMU to build: the comment that opens its source, with the variables laid out for one version of FMI."""

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
    def abilities(self) -> list[str]:
        return list(self.options.get("abilities", ("state", "serialize", "variable step")))

    def __getitem__(self, name: str) -> Variable:
        return next(v for v in self.variables if v.name == name)


@cache
def _sources() -> dict[str, tuple[Path, dict[str, Any]]]:
    """The source and the options of each model."""
    found: dict[str, tuple[Path, dict[str, Any]]] = {}
    for path in sorted((HERE / "models").glob("*.c")):
        options = tomllib.loads(path.read_text().split("/*", 1)[1].split("*/", 1)[0])
        for name, more in options.pop("names", {path.stem: {}}).items():
            found[name] = path, {**options, **more}
    return found


NAMES = tuple(_sources())


def versions(name: str) -> tuple[int, ...]:
    """The versions of FMI in which a model can be built."""
    return tuple(_sources()[name][1].get("versions", (1, 2, 3)))


def build(
    name: str,
    version: int = 2,
    *,
    folder: Path,
    interfaces: Iterable[str] | None = None,
    trace: bool = False,
    **overrides: Any,
) -> Path:
    """Builds `folder/name.fmu`, with all the interfaces ("cs", "me") that the model knows unless told which.

    Overrides make variants and malformed FMUs: `platform` (the folder below binaries), `binary` (None for no binary,
    or bytes), `file` (the name of the FMU), `defines` (more macros), `variables` (options for new or known variables),
    `resources` (contents by name), `xml` (a text, or a function of the text). Any other names an attribute of the
    model description (of its root, of DefaultExperiment, or else of the interfaces); None takes the attribute away.
    """
    model = _model(name, version, overrides.pop("variables", {}))
    defines = (
        *model.options.get("defines", ()),
        *overrides.pop("defines", ()),
        *(["TRACE"] if trace else []),
    )
    platform = overrides.pop("platform", PLATFORM[version])
    binary = overrides.pop("binary", ...)
    file = overrides.pop("file", f"{name}.fmu")
    resources = overrides.pop("resources", {"about.txt": f"{name}: {model.options['description']}\n"})
    xml = overrides.pop("xml", None)
    chosen = ("cs",) if version == 1 else tuple(interfaces or model.options.get("interfaces", ("cs",)))
    text = xml if isinstance(xml, str) else _description(model, chosen, overrides)
    if isinstance(xml, Callable):  # type: ignore[arg-type]
        text = xml(text)
    if binary is ...:
        binary = _compile(model, defines)
    path = Path(folder) / file
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("modelDescription.xml", text)
        if binary is not None:
            archive.writestr(f"binaries/{platform}/{name}.{'dll' if 'win' in platform else 'so'}", binary)
        for entry, content in resources.items():
            archive.writestr(f"resources/{entry}", content)
    return path


def build_all(folder: Path, names: Iterable[str] = NAMES) -> list[Path]:
    """Builds models in every version they know, into the folders fmi1, fmi2 and fmi3."""
    jobs = [(name, version) for name in names for version in versions(name)]
    with ThreadPoolExecutor() as pool:
        return list(pool.map(lambda job: build(*job, folder=Path(folder) / f"fmi{job[1]}"), jobs))


def _model(name: str, version: int, changes: Mapping[str, Mapping[str, Any]]) -> Model:
    source, options = _sources()[name]
    if version not in versions(name):
        raise ValueError(f"{name} is not for FMI {version}")
    table: dict[str, dict[str, Any]] = dict(options["variables"])
    table |= table.pop("3", {}) if version == 3 else {}
    table.pop("3", None)
    for key, change in changes.items():
        table[key] = {**table.get(key, {}), **change}
    variables = [Variable("time", "independent", 0.0, "Float64", {"unit": "s"})]
    for key, row in table.items():
        variables.append(_variable(key, row, version, options.get("types", {})))
        if "derivative" in row:
            derivative = Variable(row["derivative"], "local", 0.0, "Float64", {}, derivative_of=key)
            variables.append(derivative)
    _lay_out(variables, version)
    return Model(name, source, version, options, variables)


def _variable(name: str, row: Mapping[str, Any], version: int, types: Mapping[str, Any]) -> Variable:
    causality = next(c for c in CAUSALITIES if c in row)
    start = row[causality]
    sample = start[0] if isinstance(start, list) else start
    guess = {bool: "Boolean", int: "Int32", float: "Float64", str: "String"}[type(sample)]
    kind = row.get("type", guess)
    if kind in types:  # an enumeration
        return Variable(
            name, causality, start, "Int64" if version == 3 else "Int32", dict(row), declared=kind
        )
    return Variable(name, causality, start, kind, dict(row))


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


def _compile(model: Model, defines: tuple[str, ...]) -> bytes:
    with _frame_lock:
        frame = _frame(model.version, defines)
    with tempfile.TemporaryDirectory() as folder:
        header, target, result = (Path(folder) / name for name in ("table.h", "frame.o", "model.so"))
        header.write_text(_table(model))
        target.write_bytes(frame)
        if model.version == 1:
            symbols = _run("nm", "--defined-only", "--extern-only", "--format=just-symbols", target).split()
            prefixes = [f"--redefine-sym={s}={model.name}_{s}" for s in symbols if s.startswith("fmi")]
            _run("objcopy", *prefixes, target)
        flags = (*FLAGS, f"-DFMI={model.version}", f"-I{folder}", "-shared")
        _run("gcc", *flags, model.source, target, "-lm", "-o", result)
        return result.read_bytes()


_frame_lock = Lock()


@cache
def _frame(version: int, defines: tuple[str, ...]) -> bytes:
    """The object code of a frame, which all models share."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "frame.o"
        macros = (f"-DFMI={version}", *(f"-D{d}" for d in defines))
        _run("gcc", *FLAGS, *macros, "-c", HERE / f"frame{version}.c", "-o", target)
        return target.read_bytes()


def _run(*command: str | Path) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def _table(model: Model) -> str:
    """The header that completes the struct Model, and tells the frame of the variables."""
    fields, kinds = [], []
    for array, c_type in ARRAYS.values():
        mine = sorted((v for v in model.variables if v.array == array), key=lambda v: v.place)
        fields += [f"    {c_type} {v.name}{_size(v)};" for v in mine if v.name != "time"]
        where = f"offsetof(Model, {mine[0].name})" if mine else "0"
        offset = _offset(array) if model.version == 3 else 0
        kinds.append(f'    .{array} = {{{where}, {len(mine)}, {offset}, "{"".join(map(_letter, mine))}"}},')
    reals = [v for v in model.variables if v.type == "Float64"]
    rates = sum(_rank(v) < 2 for v in reals) if "interpolated inputs" in model.abilities else 0
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
        f"    .state = {_numbers(x.place for x, _ in pairs)}, .derivative = {_numbers(dx.place for _, dx in pairs)},",
        f"    .indicator = {_numbers(z.place for z in indicators)},",
        f"    .stored = {sum(_rank(v) < 3 for v in reals)}, .states = {len(pairs)}, .indicators = {len(indicators)},",
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


def _text(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _description(model: Model, interfaces: tuple[str, ...], overrides: Mapping[str, Any]) -> str:
    root = {1: _description_1, 2: _description_2, 3: _description_3}[model.version](model, interfaces)
    faces = [e for e in root.iter() if e.tag in ("CoSimulation", "ModelExchange", "Capabilities")]
    experiment = root.find("DefaultExperiment")
    assert experiment is not None
    for key, value in overrides.items():
        if key in root.attrib or (key == "modelIdentifier" and model.version == 1):
            targets = [root]
        elif key in ("startTime", "stopTime", "tolerance", "stepSize"):
            targets = [experiment]
        else:
            targets = faces
        for target in targets:
            target.attrib.pop(key, None)
            if value is not None:
                target.set(key, _text(value))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _root(model: Model, **attributes: str) -> ET.Element:
    description = str(model.options["description"])
    names = {"modelName": model.name, "description": description, "generationTool": "hocket's tests"}
    return ET.Element("fmiModelDescription", {**attributes, **names, "variableNamingConvention": "flat"})


def _interfaces(root: ET.Element, model: Model, interfaces: tuple[str, ...]) -> None:
    for word, tag in (("me", "ModelExchange"), ("cs", "CoSimulation")):
        if word in interfaces:
            face = ET.SubElement(root, tag, modelIdentifier=model.name)
            for ability in model.abilities:
                if word == "cs" or ability not in COSIMULATION_ONLY:
                    face.attrib |= ABILITIES[ability][model.version - 1]


def _units(root: ET.Element, model: Model) -> None:
    used = sorted({v.options["unit"] for v in model.variables if "unit" in v.options and v.index})
    if used:
        definitions = ET.SubElement(root, "UnitDefinitions")
        for unit in used:
            if model.version == 1:
                ET.SubElement(definitions, "BaseUnit", unit=unit)
            else:
                element = ET.SubElement(definitions, "Unit", name=unit)
                if unit in UNITS:
                    ET.SubElement(element, "BaseUnit", {k: str(n) for k, n in UNITS[unit].items()})


def _types(root: ET.Element, model: Model) -> None:
    if "types" not in model.options:
        return
    definitions = ET.SubElement(root, "TypeDefinitions")
    for name, items in model.options["types"].items():
        if model.version == 3:
            holder = ET.SubElement(definitions, "EnumerationType", name=name)
        else:
            holder = ET.SubElement(definitions, "SimpleType" if model.version == 2 else "Type", name=name)
            holder = ET.SubElement(holder, "Enumeration" if model.version == 2 else "EnumerationType")
        for number, item in enumerate(items, 1):
            value = {} if model.version == 1 else {"value": str(number)}
            ET.SubElement(holder, "Item", {"name": item, **value})


def _log_categories(root: ET.Element) -> None:
    categories = ET.SubElement(root, "LogCategories")
    for kind in ("Warning", "Discard", "Error", "Fatal"):
        ET.SubElement(categories, "Category", name=f"logStatus{kind}")


def _limits(v: Variable) -> dict[str, str]:
    return {k: _text(v.options[k]) for k in ("min", "max", "unit", "quantity") if k in v.options}


def _description_1(model: Model, interfaces: tuple[str, ...]) -> ET.Element:
    root = _root(model, fmiVersion="1.0", modelIdentifier=model.name, guid=model.token)
    root.attrib |= {"numberOfContinuousStates": "0", "numberOfEventIndicators": "0"}
    _units(root, model)
    _types(root, model)
    ET.SubElement(root, "DefaultExperiment", startTime="0", stopTime="1")
    table = ET.SubElement(root, "ModelVariables")
    for v in model.variables[1:]:
        parameter = v.causality == "parameter"
        variability = "parameter" if parameter else v.variability
        causality = v.causality if v.causality in ("input", "output") else "internal"
        attributes = {"variability": variability, "causality": causality}
        row = ET.SubElement(
            table, "ScalarVariable", {"name": v.name, "valueReference": str(v.reference)} | attributes
        )
        start = {"start": _text(v.start)} if v.has_start else {}
        if start and v.causality != "input" and v.variability != "constant":
            start["fixed"] = "true"
        if v.declared:
            ET.SubElement(row, "Enumeration", {"declaredType": v.declared, **start})
        else:
            ET.SubElement(row, OLD_TYPES[v.type], {**_limits(v), **start})
        if causality == "output" and "from" in v.options:
            dependency = ET.SubElement(row, "DirectDependency")
            for name in v.options["from"]:
                if model[name].causality == "input":
                    ET.SubElement(dependency, "Name").text = name
    stand_alone = ET.SubElement(ET.SubElement(root, "Implementation"), "CoSimulation_StandAlone")
    capabilities = ET.SubElement(stand_alone, "Capabilities")
    for ability in model.abilities:
        capabilities.attrib |= ABILITIES[ability][0]
    return root


def _description_2(model: Model, interfaces: tuple[str, ...]) -> ET.Element:
    root = _root(
        model, fmiVersion="2.0", guid=model.token, numberOfEventIndicators=str(len(model.indicators))
    )
    _interfaces(root, model, interfaces)
    _units(root, model)
    _types(root, model)
    _log_categories(root)
    ET.SubElement(root, "DefaultExperiment", startTime="0", stopTime="1", stepSize="0.1")
    table = ET.SubElement(root, "ModelVariables")
    for v in model.variables[1:]:
        attributes = {"causality": v.causality, "variability": v.variability}
        attributes |= {"initial": v.initial} if v.initial else {}
        row = ET.SubElement(
            table, "ScalarVariable", {"name": v.name, "valueReference": str(v.reference)} | attributes
        )
        inner = _limits(v) | ({"start": _text(v.start)} if v.has_start else {})
        if v.derivative_of:
            inner["derivative"] = str(model[v.derivative_of].index)
        if "reinit" in v.options and "me" in interfaces:
            inner["reinit"] = "true"
        if v.declared:
            ET.SubElement(row, "Enumeration", {"declaredType": v.declared, **inner})
        else:
            ET.SubElement(row, OLD_TYPES[v.type], inner)
    structure = ET.SubElement(root, "ModelStructure")
    for tag, unknowns in _structure(model).items():
        if unknowns and tag != "EventIndicator":
            group = {"Output": "Outputs", "ContinuousStateDerivative": "Derivatives"}.get(
                tag, "InitialUnknowns"
            )
            holder = ET.SubElement(structure, group)
            for v in unknowns:
                attributes = {"index": str(v.index)}
                if tag == "Output" and "from" in v.options:
                    attributes["dependencies"] = " ".join(
                        sorted(str(model[n].index) for n in v.options["from"])
                    )
                ET.SubElement(holder, "Unknown", attributes)
    return root


def _structure(model: Model) -> dict[str, list[Variable]]:
    """The unknowns that the model structure lists, by their tags in FMI 3."""
    outputs = [v for v in model.variables if v.causality == "output"]
    continuous = [v for pair in model.states for v in pair]
    unknowns = {v.index: v for v in (*outputs, *continuous) if v.initial == "calculated"}
    return {
        "Output": outputs,
        "ContinuousStateDerivative": [dx for _, dx in model.states],
        "InitialUnknown": [unknowns[index] for index in sorted(unknowns)],
        "EventIndicator": model.indicators,
    }


def _description_3(model: Model, interfaces: tuple[str, ...]) -> ET.Element:
    root = _root(model, fmiVersion="3.0", instantiationToken=model.token)
    _interfaces(root, model, interfaces)
    _units(root, model)
    _types(root, model)
    _log_categories(root)
    ET.SubElement(root, "DefaultExperiment", startTime="0", stopTime="1", stepSize="0.1")
    table = ET.SubElement(root, "ModelVariables")
    for v in model.variables:
        attributes = {"causality": v.causality, "variability": v.variability, **_limits(v)}
        attributes |= {"initial": v.initial} if v.initial else {}
        attributes |= {"declaredType": v.declared} if v.declared else {}
        if v.type == "Clock":
            attributes["intervalVariability"] = "triggered"
        if v.options.get("intermediate"):
            attributes["intermediateUpdate"] = "true"
        if v.derivative_of:
            attributes["derivative"] = str(model[v.derivative_of].reference)
        if "reinit" in v.options and "me" in interfaces:
            attributes["reinit"] = "true"
        if v.has_start and v.type not in ("String", "Binary"):
            attributes["start"] = _text(v.start)
        tag = "Enumeration" if v.declared else v.type
        row = ET.SubElement(table, tag, {"name": v.name, "valueReference": str(v.reference)} | attributes)
        for dimension in v.options.get("dimensions", ()):
            ET.SubElement(row, "Dimension", valueReference=str(model[dimension].reference))
        if v.has_start and v.type in ("String", "Binary"):
            text = v.start if v.type == "String" else v.start.encode("latin-1").hex()
            ET.SubElement(row, "Start", value=text)
    structure = ET.SubElement(root, "ModelStructure")
    for tag, unknowns in _structure(model).items():
        for v in unknowns:
            attributes = {"valueReference": str(v.reference)}
            if tag == "Output" and "from" in v.options:
                attributes["dependencies"] = " ".join(str(model[n].reference) for n in v.options["from"])
            ET.SubElement(structure, tag, attributes)
    return root


if __name__ == "__main__":
    build_all(Path(sys.argv[1]), sys.argv[2:] or NAMES)
