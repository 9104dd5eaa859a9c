"""A model description becomes plain facts: FMPy reads the XML, what it leaves out is read beside it.

In:  the folder of an unpacked FMU
Out: a Description
"""

from __future__ import annotations

import contextlib
import importlib
import math
import tempfile
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ElementTree

from hocket.errors import Fault, FileError, ScenarioError
from hocket.simulators.fmu.description_xml import read_essentials, repair_description
from hocket.simulators.fmu.variables import (
    BASES,
    FLOATS,
    PORT_TYPES,
    VALUE_PARSERS,
    Description,
    FmuInterface,
    FmuVariable,
    NamedUnit,
)

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
    version, root = read_essentials(file, where)
    found, problems = _read_with_fmpy(file, root, version, where)
    reader = _DescriptionReader(version, root, found, problems, f"{where}, {file.name}")
    return reader.description(file.parent)


def _read_with_fmpy(file: Path, root: Element, version: str, where: str) -> tuple[Any, list[str]]:
    """Return FMPy's model description, and what speaks against it without doing harm."""
    try:
        fmpy = importlib.import_module("fmpy.model_description")
    except ImportError:
        what = "FMUs are read with FMPy, which is not installed"
        raise ScenarioError(what, where, "", 'pip install "hocket[fmi]"') from None
    with contextlib.suppress(Exception):
        return _validate_with_fmpy(fmpy, file)
    copied, mendings = repair_description(root, version)
    with tempfile.TemporaryDirectory() as scratch:
        other = Path(scratch) / file.name
        ElementTree(copied).write(other, encoding="utf-8", xml_declaration=True)
        try:
            found, problems = _validate_with_fmpy(fmpy, other)
        except Exception as error:
            faults = [f"it cannot be read: {error}", *mendings]
            raise FileError([Fault(fault, f"{where}, {file.name}") for fault in faults]) from None
    return found, [*mendings, *problems]


def _validate_with_fmpy(fmpy: Any, file: Path) -> tuple[Any, list[str]]:
    """Return what FMPy reads, and what its validation finds; its errors are of any kind."""
    try:
        return fmpy.read_model_description(str(file), validate=True), []
    except fmpy.ValidationError as error:
        problems = [str(problem) for problem in error.problems]
    except Exception as error:
        problems = [f"FMPy cannot validate it: {type(error).__name__}: {error}"]
    return fmpy.read_model_description(str(file), validate=False), problems


@dataclass
class _DescriptionReader:
    """One reading: FMPy's objects and the XML, side by side."""

    version: str
    root: Element
    found: Any
    problems: list[str]
    where: str
    faults: list[Fault] = field(default_factory=list)

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

        def declared_attribute(name: str) -> str | None:
            text = inner.get(name)
            return getattr(declared, name) if text is None and declared is not None else text

        def declared_number(name: str, kinds: Collection[str]) -> Any:
            text = declared_attribute(name) if kind in kinds else None
            return self.value(found.name, name, text, kind)

        start = self.start(found.name, kind, inner, found.shape)
        bounded = PORT_TYPES.keys() - {"boolean"}
        return FmuVariable(
            name=found.name,
            reference=found.valueReference,
            type=kind,
            causality="local" if found.causality == "none" else found.causality,
            variability=found.variability,
            initial=self.initial(found, inner, start),
            start=start,
            unit=(declared_attribute("unit") if kind in FLOATS else "") or "",
            minimum=declared_number("min", bounded),
            maximum=declared_number("max", bounded),
            nominal=declared_number("nominal", FLOATS),
            items={} if declared is None or kind != "enumeration" else self.items(declared),
            dimensions=tuple(d.start if d.variable is None else d.variable.name for d in found.dimensions),
            about=found.description or "",
            intermediate_update=element.get("intermediateUpdate") in ("true", "1"),
            clocks=tuple(clock.name for clock in found.clocks or ()),
            alias_of=None if found.alias is None else found.alias.name,
            relative=declared_attribute("relativeQuantity") in ("true", "1", True),
            negated=self.version == "1.0" and element.get("alias") == "negatedAlias",
        )

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
    if base is None:
        return NamedUnit(unit.name)
    return NamedUnit(unit.name, tuple(getattr(base, name) for name in BASES), base.factor, base.offset)
