"""A model description becomes plain facts; it is compared with the schema of FMI, which FMPy brings.

In:  the folder of an unpacked FMU
Out: a Description
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

from hocket.errors import Fault, FileError, Place
from hocket.model.clock import seconds
from hocket.simulators.fmu.description_rules import find_broken_rules, is_usable_factor
from hocket.simulators.fmu.description_xml import (
    DescriptionXml,
    VariableRow,
    parse_reference,
    read_essentials,
)
from hocket.simulators.fmu.variables import (
    APERIODIC,
    BASES,
    FLOATS,
    PERIODIC,
    PORT_TYPES,
    SIZED,
    VALUE_PARSERS,
    ClockInterval,
    Description,
    FmuInterface,
    FmuVariable,
    NamedUnit,
)

_BOUNDED = PORT_TYPES.keys() - {"boolean"}
"""The types with a smallest and a largest value."""
_LIMITS = frozenset({"min", "max", "nominal"})
_TYPES = {
    tag: {"Real": "real", "Float64": "real"}.get(tag, tag.lower())
    for tag in ("Real", "Integer", "Boolean", "String", "Enumeration", "Binary", "Clock", *SIZED)
}
_DERIVATIVE = "ContinuousStateDerivative"
_DECLARED = ("unit", "min", "max", "nominal", "relativeQuantity")
"""What a variable takes from its declared type."""
_read: dict[str, tuple[tuple[int, int], Description]] = {}


class _Declared(NamedTuple):
    """What the variables of a declared type have in common."""

    attributes: Mapping[str, str]
    items: Mapping[str, int]


def read_description(folder: Path, where: str = "") -> Description:
    """Return what `modelDescription.xml` says; read once per file. `where` names the FMU in messages."""
    file = folder / "modelDescription.xml"
    try:
        status = file.stat()
    except OSError:
        raise FileError("there is no `modelDescription.xml`", where or str(folder)) from None
    key = status.st_mtime_ns, status.st_size
    kept = _read.get(str(file))
    if kept is None or kept[0] != key:
        kept = _read[str(file)] = key, _parse_description(file, where or str(folder))
    return kept[1]


def _parse_description(file: Path, where: str) -> Description:
    with _paused_collection():
        xml = read_essentials(file, where)
        broken = find_broken_rules(xml)
        if broken.faults:
            place = Place(file=f"{where}, {file.name}")
            raise FileError([replace(fault, place=place) for fault in broken.faults[:12]])
        notes = list(dict.fromkeys([*_compare_with_schema(file, xml), *broken.notes]))
        return _DescriptionReader(xml, notes, f"{where}, {file.name}").description(file.parent)


@contextlib.contextmanager
def _paused_collection() -> Iterator[None]:
    """Let the garbage collector rest: of a million new objects it would look at each again and again."""
    active = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if active:
            gc.enable()


VALIDATED = 20_000
"""With more variables a model description is not compared with the schema of FMI, which takes its time."""


def _shorten(time: Fraction) -> Fraction:
    """Return a decimal time as a shorter fraction, where multiples of it would soon exceed 64 bits.

    The shorter one reads back as the same float, which is what the attribute of an FMU is.
    """
    if time.denominator > 10**15 and float(near := time.limit_denominator(10**12)) == float(time):
        return near
    return time


def _compare_with_schema(file: Path, xml: DescriptionXml) -> list[str]:
    """Return what the schema of FMI says against a file; nothing that is told does harm."""
    if len(xml.rows) > VALIDATED:
        return [f"it has {len(xml.rows):,} variables, and is not compared with the schema of FMI"]
    schema = _load_schema(xml.version)
    if schema is None:
        return [f"it is not compared with the schema of FMI, which {_SCHEMAS} brings: {_INSTALL}"]
    etree = importlib.import_module("lxml.etree")
    try:
        valid = schema.validate(etree.parse(str(file)))
    except etree.LxmlError as error:
        return [f"it cannot be compared with the schema of FMI: {error}"]
    if valid:
        return []
    return [f"{e.level_name} (line {e.line}, column {e.column}): {e.message}" for e in schema.error_log]


_SCHEMAS, _INSTALL = "FMPy", 'pip install "hocket[fmi]"'


@cache
def _load_schema(version: str) -> Any:
    """Return the schema of a version of FMI, as FMPy brings it; None: FMPy is not installed."""
    found = importlib.util.find_spec("fmpy")
    if found is None or found.origin is None:
        return None
    major = version[0]
    name = f"fmi{major if major != '1' else ''}ModelDescription.xsd"
    etree = importlib.import_module("lxml.etree")
    return etree.XMLSchema(file=str(Path(found.origin).parent / "schema" / f"fmi{major}" / name))


@dataclass
class _DescriptionReader:
    """One reading: what is written becomes what is meant."""

    xml: DescriptionXml
    problems: list[str]
    where: str
    faults: list[Fault] = field(default_factory=list)
    declared: dict[tuple[str, str], _Declared] = field(default_factory=dict)

    @property
    def version(self) -> str:
        return self.xml.version

    @property
    def root(self) -> Element:
        return self.xml.root

    @property
    def exchange_only(self) -> bool:
        """Whether it is for model exchange in FMI 1, which has an archive of its own."""
        return self.version == "1.0" and self.root.find("Implementation") is None

    @cached_property
    def named_rows(self) -> Mapping[int, VariableRow]:
        """The variables that something in the description names, by number."""
        numbers = {parse_reference(number) for _, u in self.xml.unknowns for number in self.numbers_of(u)}
        for row in self.xml.rows:
            if "clocks" in row.given:
                numbers |= {parse_reference(number) for number in row.given["clocks"].split()}
            if row.inside:
                sizes = (dimension.get("valueReference") for dimension in row.children("Dimension"))
                numbers |= {parse_reference(number) for number in sizes}
        known = self.xml.by_number(numbers)
        derivatives = (row.given.get("derivative") for row in known.values())
        return {**known, **self.xml.by_number({parse_reference(number) for number in derivatives})}

    def numbers_of(self, unknown: Element) -> list[str]:
        """Return the number of an unknown and those of what it depends on."""
        own = unknown.get("valueReference" if self.version == "3.0" else "index", "")
        return [own, *unknown.get("dependencies", "").split()]

    def description(self, folder: Path) -> Description:
        root, old = self.root, self.version == "1.0"
        cs, me = (self.interface(name) for name in ("CoSimulation", "ModelExchange"))
        se = self.interface("ScheduledExecution") if self.version == "3.0" else None
        states = self.states(me is not None)
        dependencies = self.direct_dependencies() if old else self.unknowns(("Output", _DERIVATIVE))
        initial_unknowns = {} if old else self.unknowns(("InitialUnknown",))
        indicators = self.event_indicators()
        units = self.units()
        variables = self.variables()
        if self.faults:
            raise FileError(self.faults[:12])
        if len(states) < sum(group == _DERIVATIVE for group, _ in self.xml.unknowns):
            me = None
            if cs is None:
                what = "a state derivative does not say of which state: model exchange is not possible"
                raise FileError(what, self.where, "the attribute `derivative`")
        experiment = root.find("DefaultExperiment")
        times = {} if experiment is None else experiment.attrib
        return Description(
            version=self.version,
            name=root.get("modelName", ""),
            token=root.get("instantiationToken" if self.version == "3.0" else "guid", ""),
            variables=variables,
            cs=cs,
            me=me,
            se=se,
            about=root.get("description", ""),
            tool=root.get("generationTool", ""),
            date=root.get("generationDateAndTime", ""),
            dependencies=dependencies,
            initial_unknowns=initial_unknowns,
            states=states,
            unnamed_states=int(root.get("numberOfContinuousStates", 0)) if self.exchange_only else 0,
            event_indicators=indicators,
            start=self.experiment(times, "startTime"),
            stop=self.experiment(times, "stopTime"),
            tolerance=self.experiment(times, "tolerance"),
            step=self.experiment(times, "stepSize"),
            units=units,
            platforms=tuple(sorted(place.name for place in (folder / "binaries").glob("*/"))),
            problems=tuple(self.problems),
        )

    def experiment(self, told: Mapping[str, str], name: str) -> float | None:
        text = told.get(name)
        if text is None:
            return None
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        wrong = not math.isfinite(value) or (name in ("tolerance", "stepSize") and value <= 0.0)
        if wrong:
            self.problems.append(f"the {name} of the default experiment is {text}")
        return None if wrong else value

    def interface(self, kind: str) -> FmuInterface | None:
        exchange = kind == "ModelExchange"
        if self.version == "1.0":
            if exchange != self.exchange_only:
                return None
            # FMI 1 keeps the capabilities in an element of its own, and the identifier at the top
            element, holder = self.root.find("Implementation/*/Capabilities"), self.root
        else:
            element = self.root.find(kind)
            if element is None:
                return None
            holder = element
        told: Mapping[str, str] = {} if element is None else element.attrib
        order = told.get("maxOutputDerivativeOrder", "0")

        def says(name: str) -> bool:
            return told.get(name) in ("true", "1")

        outside = self.root.find("Implementation/CoSimulation_Tool") is not None
        modern = self.version == "3.0"
        completed = says("needsCompletedIntegratorStep") if modern else True
        return FmuInterface(
            identifier=holder.get("modelIdentifier", ""),
            needs_execution_tool=outside or says("needsExecutionTool"),
            only_once=says("canBeInstantiatedOnlyOncePerProcess"),
            can_save=says("canGetAndSetFMUState" if modern else "canGetAndSetFMUstate"),
            can_serialise=says("canSerializeFMUState" if modern else "canSerializeFMUstate"),
            # FMI 3 has an s more
            directional=says("providesDirectionalDerivative") or says("providesDirectionalDerivatives"),
            adjoint=says("providesAdjointDerivatives"),
            variable_step=says("canHandleVariableCommunicationStepSize") or exchange,
            fixed_step=self.value(kind, "fixedInternalStepSize", told.get("fixedInternalStepSize"), "real"),
            interpolates_inputs=says("canInterpolateInputs"),
            output_derivatives=self.value(kind, "maxOutputDerivativeOrder", order, "integer"),
            event_mode=says("hasEventMode"),
            early_return=says("mightReturnEarlyFromDoStep"),
            intermediate_update=says("providesIntermediateUpdate"),
            asynchronous=says("canRunAsynchronuously"),
            completed_step=exchange and completed and not says("completedIntegratorStepNotNeeded"),
        )

    # the structure

    def rows_of(self, *groups: str) -> Iterator[tuple[VariableRow, Element]]:
        """Yield what `ModelStructure` lists in groups, one after the other."""
        for wanted in groups:
            for group, unknown in self.xml.unknowns:
                if group == wanted:
                    yield self.named_rows[parse_reference(self.numbers_of(unknown)[0])], unknown

    def states(self, wanted: bool) -> tuple[tuple[str, str], ...]:
        pairs = []
        for row, _ in self.rows_of(_DERIVATIVE):
            state = self.named_rows.get(parse_reference(row.given.get("derivative")))
            if state is not None:
                pairs.append((state.name, row.name))
            elif wanted:
                self.problems.append(f"`{row.name}` does not say of which state it is the derivative")
        return tuple(pairs)

    def unknowns(self, groups: tuple[str, ...]) -> dict[str, tuple[str, ...] | None]:
        """Return on what the unknowns of groups depend."""
        return {
            row.name: tuple(
                self.named_rows[parse_reference(number)].name for number in self.numbers_of(unknown)[1:]
            )
            if "dependencies" in unknown.attrib
            else None
            for row, unknown in self.rows_of(*groups)
        }

    def direct_dependencies(self) -> dict[str, tuple[str, ...] | None]:
        """Return on what the outputs depend, as FMI 1 tells it."""
        declared: dict[str, tuple[str, ...] | None] = {}
        for row in self.xml.rows:
            if row.kind.causality == "output":
                told = None
                for element in row.children("DirectDependency"):
                    told = tuple((child.text or "").strip() for child in element.iter("Name"))
                declared[row.name] = told
        return declared

    def event_indicators(self) -> int:
        if self.version == "3.0":
            return sum(math.prod(self.shape(row)) for row, _ in self.rows_of("EventIndicator"))
        told = self.root.get("numberOfEventIndicators", "0")
        return self.value("the model", "numberOfEventIndicators", told, "integer") or 0

    def units(self) -> dict[str, NamedUnit]:
        if self.version == "1.0":  # they are known by their names alone
            found = (unit.get("unit", "") for unit in self.root.iterfind("UnitDefinitions/BaseUnit"))
            return {name: NamedUnit(name) for name in found}
        named = ((unit.get("name", ""), unit) for unit in self.root.iterfind("UnitDefinitions/Unit"))
        return {name: self.unit(name, unit.find("BaseUnit")) for name, unit in named}

    def unit(self, name: str, base: Element | None) -> NamedUnit:
        if base is None:
            return NamedUnit(name)
        exponents = [self.value(f"unit {name}", each, base.get(each, "0"), "integer") for each in BASES]
        factor, offset = (base.get(each, usual) for each, usual in (("factor", "1"), ("offset", "0")))
        shift = self.value(f"unit {name}", "offset", offset, "real")
        if not is_usable_factor(factor) or shift is None or None in exponents:
            return NamedUnit(name)
        return NamedUnit(name, tuple(exponents), float(factor), shift)

    # the variables

    def variables(self) -> tuple[FmuVariable, ...]:
        """Return the variables, aliases behind them; of several of one name the first. Uses up the rows."""
        _ = self.named_rows
        rows, found = self.xml.rows, []
        aliases: list[FmuVariable] = []
        rows.reverse()
        while rows:  # from the first on: a million rows and a million variables take much memory
            row = rows.pop()
            variable = self.variable(row)
            found.append(variable)
            for alias in row.children("Alias"):
                about = alias.get("description") or variable.about
                name = alias.get("name", "")
                aliases.append(variable._replace(name=name, about=about, alias_of=variable.name))
        found += aliases
        firsts: dict[str, FmuVariable] = {}
        for variable in found:
            firsts.setdefault(variable.name, variable)
        return tuple(found) if len(firsts) == len(found) else tuple(firsts.values())

    def variable(self, row: VariableRow) -> FmuVariable:
        given, name, kind = row.given, row.name, row.kind
        value_type = _TYPES[row.tag]
        rest: dict[str, Any] = {}
        """What few variables have."""
        if "declaredType" in given and given["declaredType"] in self.xml.types:
            declared = self.declared_type(given["declaredType"], value_type)
            given = {**declared.attributes, **given}
            if declared.items:
                rest["items"] = declared.items
        start = self.start(row, value_type) if "start" in given or row.inside else None
        real = value_type in FLOATS
        if not _LIMITS.isdisjoint(given) and value_type in _BOUNDED:
            rest["minimum"] = self.value(name, "min", given.get("min"), value_type)
            rest["maximum"] = self.value(name, "max", given.get("max"), value_type)
            if real:
                rest["nominal"] = self.value(name, "nominal", given.get("nominal"), value_type)
        initial = kind.initial
        if self.version == "1.0":
            guessed = given.get("fixed") in ("false", "0")
            initial = "calculated" if start is None else "approx" if guessed else "exact"
            rest["negated"] = given.get("alias") == "negatedAlias"
        elif self.version == "3.0":
            if row.inside:
                rest["dimensions"] = self.dimensions(row)
            if "clocks" in given:
                rest["clocks"] = self.clocks(given["clocks"])
            if given.get("intermediateUpdate") in ("true", "1"):
                rest["intermediate_update"] = True
            if value_type == "clock":
                rest["ticks"] = self.ticks(name, given)
        if "description" in given:
            rest["about"] = sys.intern(given["description"])
        if real:
            if "unit" in given:
                rest["unit"] = sys.intern(given["unit"])
            if given.get("relativeQuantity") in ("true", "1"):
                rest["relative"] = True
        return FmuVariable(
            name, row.reference, value_type, kind.causality, kind.variability, initial, start, **rest
        )

    def declared_type(self, name: str, value_type: str) -> _Declared:
        """Return what a declared type says of all its variables; made once for each."""
        known = self.declared.get((name, value_type))
        if known is None:
            told = self.xml.types[name]
            items = told.items if value_type == "enumeration" else ()
            known = self.declared[name, value_type] = _Declared(
                {each: told.attributes[each] for each in _DECLARED if each in told.attributes},
                {
                    item: self.value(name, f"item {item}", value, "integer")
                    for item, value in items
                    if value is not None
                },
            )
        return known

    def clocks(self, told: str) -> tuple[str, ...]:
        return tuple(self.named_rows[parse_reference(number)].name for number in told.split())

    def ticks(self, name: str, given: Mapping[str, str]) -> ClockInterval:
        """Return when a clock ticks; counters are parts of a second, as `resolution` says."""

        def duration(role: str) -> Fraction | None:
            decimal, counter = given.get(f"{role}Decimal"), given.get(f"{role}Counter")
            text = decimal if counter is None else f"{counter}/{given.get('resolution', '1')}"
            if text is None:
                return None
            try:
                return _shorten(seconds(text)) if counter is None else Fraction(text)
            except (ValueError, ZeroDivisionError):
                self.faults.append(Fault(f"the {role} of the clock `{name}` is `{text}`", self.where))
                return None

        kind = given.get("intervalVariability", "triggered")
        if kind not in (*PERIODIC, *APERIODIC):
            what = f"the interval variability of the clock `{name}` is `{kind}`"
            self.faults.append(Fault(what, self.where, ", ".join((*PERIODIC, *APERIODIC))))
        interval, shift = duration("interval"), duration("shift") or Fraction(0)
        if interval is not None and (interval < 0 or (interval == 0 and kind in PERIODIC)):
            what = f"the interval of the clock `{name}` is {interval} s"
            self.faults.append(Fault(what, self.where, "a time above zero"))
        for role, time in (("interval", interval), ("shift", shift)):
            if time is not None and max(abs(time.numerator), time.denominator) >= 2**63:
                what = f"the {role} of the clock `{name}` is {time} s"
                self.faults.append(Fault(what, self.where, "a fraction of whole numbers in 64 bits"))
        if shift < 0:
            what = f"the shift of the clock `{name}` is {shift} s"
            self.faults.append(Fault(what, self.where, "a time that is not below zero"))
        priority = self.value(name, "priority", given.get("priority", "0"), "integer") or 0
        fractions = given.get("supportsFraction") in ("true", "1")
        return ClockInterval(kind, interval, shift, priority, fractions)

    def dimensions(self, row: VariableRow) -> tuple[int | str, ...]:
        """Return the sizes of an array, or the names of the parameters that hold them."""
        sizes = self._sizes(row)
        return tuple(size if isinstance(size, int) else size.name for size in sizes)

    def shape(self, row: VariableRow) -> tuple[int, ...]:
        """Return the sizes of an array at the start."""
        return tuple(size if isinstance(size, int) else int(size.given["start"]) for size in self._sizes(row))

    def _sizes(self, row: VariableRow) -> list[int | VariableRow]:
        return [
            int(fixed)
            if (fixed := dimension.get("start")) is not None
            else self.named_rows[parse_reference(dimension.get("valueReference"))]
            for dimension in (row.children("Dimension") if self.version == "3.0" else ())
        ]

    def start(self, row: VariableRow, value_type: str) -> Any:
        """Return the start value; of an array a flat tuple, one value for all elements or one for each."""
        text = row.given.get("start")
        shape = self.shape(row) if row.inside else ()
        texts = None if text is None else text.split() if shape else [text]
        if self.version == "3.0" and value_type in ("string", "binary"):
            texts = [element.get("value", "") for element in row.children("Start")] or None
        if texts is None or value_type == "clock":
            return None
        values = tuple([self.value(row.name, "start", text, value_type) for text in texts])
        if not shape:
            return values[0] if values else None
        if len(values) not in (1, math.prod(shape)):
            what = f"`{row.name}` has {len(values)} start values, not 1 or {math.prod(shape)}"
            self.problems.append(f"{what}: they are left out")
            return None
        return values

    def value(self, name: str, role: str, text: str | None, value_type: str) -> Any:
        if text is None:
            return None
        parse, expected = VALUE_PARSERS[value_type]
        try:
            return parse(text)
        except (ValueError, OverflowError):
            self.faults.append(Fault(f"`{role}` of `{name}` is `{text}`", self.where, expected))
            return None
