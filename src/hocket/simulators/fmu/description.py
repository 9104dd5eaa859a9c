"""A model description becomes plain facts: FMPy reads the XML, what it leaves out is read beside it.

In:  the folder of an unpacked FMU
Out: a Description
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import math
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, ElementTree

from hocket.errors import Fault, FileError, Place, ScenarioError
from hocket.model.clock import seconds
from hocket.simulators.fmu.description_rules import find_broken_rules, is_usable_factor
from hocket.simulators.fmu.description_xml import read_essentials, repair_description
from hocket.simulators.fmu.variables import (
    BASES,
    FLOATS,
    PERIODIC,
    PORT_TYPES,
    VALUE_PARSERS,
    ClockInterval,
    Description,
    FmuInterface,
    FmuVariable,
    NamedUnit,
)

_BOUNDED = PORT_TYPES.keys() - {"boolean"}
"""The types with a smallest and a largest value."""
_DECLARED = ("unit", "min", "max", "nominal", "relativeQuantity")
"""What a variable takes from its declared type."""
_read: dict[str, tuple[tuple[int, int], Description]] = {}


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
        version, root = read_essentials(file, where)
        found, problems, checked = _read_with_fmpy(file, root, version, where)
        broken = find_broken_rules(root, version, checked)
        if broken.faults:
            place = Place(file=f"{where}, {file.name}")
            raise FileError([replace(fault, place=place) for fault in broken.faults[:12]])
        notes = list(dict.fromkeys([*problems, *broken.notes]))
        reader = _DescriptionReader(version, root, found, notes, f"{where}, {file.name}")
        return reader.description(file.parent)


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


class _FmpyReading(NamedTuple):
    """FMPy's model description, what speaks against it, and whether FMPy has checked its variables."""

    found: Any
    problems: list[str]
    checked: bool


def _read_with_fmpy(file: Path, root: Element, version: str, where: str) -> _FmpyReading:
    """Return what FMPy reads, of a mended copy if need be; nothing that is told does harm."""
    try:
        fmpy = importlib.import_module("fmpy.model_description")
    except ImportError:
        what = "FMUs are read with FMPy, which is not installed"
        raise ScenarioError(what, where, "", 'pip install "hocket[fmi]"') from None
    variables = root.find("ModelVariables")
    if variables is not None and len(variables) > VALIDATED:
        with contextlib.suppress(Exception):
            untried = f"it has {len(variables):,} variables, and is not compared with the schema of FMI"
            return _FmpyReading(fmpy.read_model_description(str(file), validate=False), [untried], False)
    with contextlib.suppress(Exception):
        return _validate_with_fmpy(fmpy, file)
    copied, mendings = repair_description(root, version)
    with tempfile.TemporaryDirectory() as scratch:
        other = Path(scratch) / file.name
        ElementTree(copied).write(other, encoding="utf-8", xml_declaration=True)
        try:
            found, problems, _ = _validate_with_fmpy(fmpy, other)
        except Exception as error:
            faults = [f"it cannot be read: {error}", *mendings]
            raise FileError([Fault(fault, f"{where}, {file.name}") for fault in faults]) from None
    return _FmpyReading(found, [*mendings, *problems], True)


def _validate_with_fmpy(fmpy: Any, file: Path) -> _FmpyReading:
    """Return what FMPy reads, and what its validation finds; its errors are of any kind."""
    try:
        return _FmpyReading(fmpy.read_model_description(str(file), validate=True), [], True)
    except fmpy.ValidationError as error:
        problems = [str(problem) for problem in error.problems]
    except Exception as error:
        problems = [f"FMPy cannot validate it: {type(error).__name__}: {error}"]
    found, checked = fmpy.read_model_description(str(file), validate=False), False
    with contextlib.suppress(Exception):  # where the schema was broken it has not come so far
        problems += importlib.import_module("fmpy.validation").validate_model_description(found)
        checked = True
    return _FmpyReading(found, list(dict.fromkeys(problems)), checked)


@dataclass
class _DescriptionReader:
    """One reading: FMPy's objects and the XML, side by side."""

    version: str
    root: Element
    found: Any
    problems: list[str]
    where: str
    faults: list[Fault] = field(default_factory=list)
    declared: dict[int, dict[str, Any]] = field(default_factory=dict)

    @cached_property
    def elements(self) -> dict[str, Element]:
        """The variables by their names; of several with one name the first."""
        return {v.get("name", ""): v for v in reversed(self.root.findall("ModelVariables/*"))}

    @property
    def exchange_only(self) -> bool:
        """Whether it is for model exchange in FMI 1, which has an archive of its own."""
        return self.version == "1.0" and self.root.find("Implementation") is None

    def description(self, folder: Path) -> Description:
        found = self.found
        # of internal variables with one name the first stays
        firsts = {v.name: v for v in reversed(found.modelVariables)}
        variables = tuple(self.variable(v) for v in found.modelVariables if firsts[v.name] is v)
        cs, me = self.interface(found.coSimulation), self.interface(found.modelExchange)
        se = self.interface(found.scheduledExecution) if self.version == "3.0" else None
        if self.faults:
            raise FileError(self.faults[:12])
        states = self.states(me is not None)
        if len(states) < len(found.derivatives):
            me = None
            if cs is None:
                what = "a state derivative does not say of which state: model exchange is not possible"
                raise FileError(what, self.where, "the attribute `derivative`")
        experiment = found.defaultExperiment
        return Description(
            version=self.version,
            name=found.modelName or "",
            token=found.instantiationToken or "",
            variables=variables,
            cs=cs,
            me=me,
            se=se,
            about=found.description or "",
            tool=found.generationTool or "",
            date=found.generationDateAndTime or "",
            dependencies=self.dependencies(),
            initial_unknowns=_unknowns(found.initialUnknowns),
            states=states,
            unnamed_states=int(self.root.get("numberOfContinuousStates", 0)) if self.exchange_only else 0,
            event_indicators=int(found.numberOfEventIndicators),
            start=self.experiment(experiment, "startTime"),
            stop=self.experiment(experiment, "stopTime"),
            tolerance=self.experiment(experiment, "tolerance"),
            step=self.experiment(experiment, "stepSize"),
            units={unit.name: _unit(unit) for unit in found.unitDefinitions},
            platforms=tuple(sorted(place.name for place in (folder / "binaries").glob("*/"))),
            problems=tuple(self.problems),
        )

    def experiment(self, experiment: Any, name: str) -> float | None:
        text = getattr(experiment, name, None)
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

    def interface(self, found: Any) -> FmuInterface | None:
        if found is None:
            return None
        # FMI 1 keeps the capabilities in an element of its own, which FMPy does not read
        kind = "Implementation/*/Capabilities" if self.version == "1.0" else type(found).__name__
        element = self.root.find(kind)
        told: Mapping[str, str] = {} if element is None else element.attrib
        order = told.get("maxOutputDerivativeOrder", "0")

        def says(name: str) -> bool:
            return told.get(name) in ("true", "1")

        exchange = type(found).__name__ == "ModelExchange"
        outside = self.root.find("Implementation/CoSimulation_Tool") is not None
        return FmuInterface(
            identifier=found.modelIdentifier,
            needs_execution_tool=outside or says("needsExecutionTool"),
            only_once=says("canBeInstantiatedOnlyOncePerProcess"),
            can_save=found.canGetAndSetFMUstate,
            can_serialise=found.canSerializeFMUstate,
            # FMI 3 has an s more
            directional=says("providesDirectionalDerivative") or says("providesDirectionalDerivatives"),
            adjoint=found.providesAdjointDerivatives,
            variable_step=says("canHandleVariableCommunicationStepSize") or exchange,
            fixed_step=self.value(kind, "fixedInternalStepSize", told.get("fixedInternalStepSize"), "real"),
            interpolates_inputs=says("canInterpolateInputs"),
            output_derivatives=self.value(kind, "maxOutputDerivativeOrder", order, "integer"),
            event_mode=says("hasEventMode"),
            early_return=says("mightReturnEarlyFromDoStep"),
            intermediate_update=says("providesIntermediateUpdate"),
            asynchronous=says("canRunAsynchronuously"),
            completed_step=exchange and (self.exchange_only or bool(found.needsCompletedIntegratorStep)),
        )

    def states(self, wanted: bool) -> tuple[tuple[str, str], ...]:
        pairs = []
        for unknown in self.found.derivatives:
            state = unknown.variable.derivative
            if state is None or isinstance(state, str):
                if wanted:
                    name = unknown.variable.name
                    self.problems.append(f"`{name}` does not say of which state it is the derivative")
                continue
            pairs.append((state.name, unknown.variable.name))
        return tuple(pairs)

    def dependencies(self) -> dict[str, tuple[str, ...] | None]:
        if self.version != "1.0":
            return _unknowns([*self.found.outputs, *self.found.derivatives])
        declared: dict[str, tuple[str, ...] | None] = {}
        for variable in self.found.modelVariables:
            if variable.causality == "output":
                element = self.elements[variable.name].find("DirectDependency")
                names = () if element is None else element.iter("Name")
                told = tuple((child.text or "").strip() for child in names)
                declared[variable.name] = None if element is None else told
        return declared

    def variable(self, found: Any) -> FmuVariable:
        element = self.elements[found.alias.name if found.alias is not None else found.name]
        # FMI 1 and 2 keep what depends on the type in an inner element
        inner = element if self.version == "3.0" else next(c for c in element if c.tag == found.type)
        declared = found.declaredType
        kind = {"Real": "real", "Float64": "real"}.get(found.type, found.type.lower())

        told: Mapping[str, Any] = inner.attrib
        if declared is not None:
            told = {**self.declared_attributes(declared), **told}

        def number(name: str) -> Any:
            return self.value(found.name, name, told[name], kind) if name in told else None

        start = self.start(found.name, kind, inner, found.shape)
        real, bounded = kind in FLOATS, kind in _BOUNDED
        return FmuVariable(
            name=found.name,
            reference=found.valueReference,
            type=kind,
            causality="local" if found.causality == "none" else found.causality,
            variability=found.variability,
            initial=self.initial(found, inner, start),
            start=start,
            unit=told.get("unit", "") if real else "",
            minimum=number("min") if bounded else None,
            maximum=number("max") if bounded else None,
            nominal=number("nominal") if real else None,
            items={} if declared is None or kind != "enumeration" else self.items(declared),
            dimensions=tuple(d.start if d.variable is None else d.variable.name for d in found.dimensions),
            about=found.description or "",
            intermediate_update=element.get("intermediateUpdate") in ("true", "1"),
            clocks=tuple(clock.name for clock in found.clocks or ()),
            ticks=self.ticks(found.name, element) if kind == "clock" else None,
            alias_of=None if found.alias is None else found.alias.name,
            relative=told.get("relativeQuantity") in ("true", "1", True),
            negated=self.version == "1.0" and element.get("alias") == "negatedAlias",
        )

    def ticks(self, name: str, element: Element) -> ClockInterval:
        """Return when a clock ticks; counters are parts of a second, as `resolution` says."""

        def duration(role: str) -> Fraction | None:
            decimal, counter = element.get(f"{role}Decimal"), element.get(f"{role}Counter")
            text = decimal if counter is None else f"{counter}/{element.get('resolution', '1')}"
            if text is None:
                return None
            try:
                return seconds(text) if counter is None else Fraction(text)
            except (ValueError, ZeroDivisionError):
                self.faults.append(Fault(f"the {role} of the clock `{name}` is `{text}`", self.where))
                return None

        kind = element.get("intervalVariability", "triggered")
        interval, shift = duration("interval"), duration("shift") or Fraction(0)
        if interval is not None and (interval < 0 or (interval == 0 and kind in PERIODIC)):
            what = f"the interval of the clock `{name}` is {interval} s"
            self.faults.append(Fault(what, self.where, "a time above zero"))
        if shift < 0:
            what = f"the shift of the clock `{name}` is {shift} s"
            self.faults.append(Fault(what, self.where, "a time that is not below zero"))
        priority = self.value(name, "priority", element.get("priority", "0"), "integer") or 0
        fractions = element.get("supportsFraction") in ("true", "1")
        return ClockInterval(kind, interval, shift, priority, fractions)

    def declared_attributes(self, declared: Any) -> dict[str, Any]:
        """Return what a declared type says of all its variables; made once for each."""
        known = self.declared.get(id(declared))
        if known is None:
            told = {name: getattr(declared, name) for name in _DECLARED}
            known = {name: text for name, text in told.items() if text is not None}
            self.declared[id(declared)] = known
        return known

    def initial(self, found: Any, inner: Element, start: Any) -> str | None:
        if self.version != "1.0":
            return found.initial  # type: ignore[no-any-return]
        if start is None:
            return "calculated"
        return "approx" if inner.get("fixed") in ("false", "0") else "exact"

    def items(self, declared: Any) -> dict[str, int]:
        return {
            item.name: self.value(declared.name, f"item {item.name}", item.value, "integer")
            for item in declared.items
            if item.value is not None
        }

    def start(self, name: str, kind: str, inner: Element, shape: tuple[int, ...]) -> Any:
        """Return the start value; of an array a flat tuple, one value for all elements or one for each."""
        text = inner.get("start")
        texts = None if text is None else text.split() if shape else [text]
        if self.version == "3.0" and kind in ("string", "binary"):
            texts = [element.get("value", "") for element in inner.findall("Start")] or None
        if texts is None or kind == "clock":
            return None
        values = tuple(self.value(name, "start", text, kind) for text in texts)
        if not shape:
            return values[0] if values else None
        if len(values) not in (1, math.prod(shape)):
            what = f"`{name}` has {len(values)} start values, not 1 or {math.prod(shape)}"
            self.problems.append(f"{what}: they are left out")
            return None
        return values

    def value(self, name: str, role: str, text: str | None, kind: str) -> Any:
        if text is None:
            return None
        parse, expected = VALUE_PARSERS[kind]
        try:
            return parse(text)
        except ValueError:
            self.faults.append(Fault(f"`{role}` of `{name}` is `{text}`", self.where, expected))
            return None


def _unknowns(unknowns: Iterable[Any]) -> dict[str, tuple[str, ...] | None]:
    return {
        unknown.variable.name: None
        if unknown.dependencies is None
        else tuple(variable.name for variable in unknown.dependencies)
        for unknown in unknowns
    }


def _unit(unit: Any) -> NamedUnit:
    base = unit.baseUnit
    if base is None or not is_usable_factor(base.factor):
        return NamedUnit(unit.name)
    return NamedUnit(unit.name, tuple(getattr(base, name) for name in BASES), base.factor, base.offset)
