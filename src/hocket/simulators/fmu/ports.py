"""Variables become ports: inputs, outputs and what else is observed, arrays element by element.

In:  a Description, the sizes of its arrays, the names to observe
Out: PortLayout: the ports, and the variables behind them; the calls that set and get values
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias

from hocket.errors import Fault, Place, list_names, raise_faults, suggest_nearest
from hocket.model.ports import Port, Reactivity
from hocket.model.units import define_unit, difference
from hocket.simulators.fmu.variables import Description, FmuVariable, element_name

VariableRanges: TypeAlias = tuple[tuple[FmuVariable, range], ...]
"""Variables, each with the numbers of its elements in all of them."""
AT_MOST = 1_000_000
"""Ports of one FMU."""


@dataclass(frozen=True, slots=True)
class ValueGroup:
    """One call: values of one type, set or got together."""

    type: str
    """The type whose function is called; for the items of FMI 1 and 2 that is "integer"."""
    references: tuple[int, ...]
    places: tuple[int, ...]
    """The number of the port of each value; an array has as many values as elements."""
    negated: bool = False
    """FMI 1: the ports have the opposite sign, and the opposite truth."""


@dataclass(frozen=True, slots=True)
class PortLayout:
    """What an FMU shows. Texts are strings and binaries, beside the numbers."""

    inputs: tuple[Port, ...] = ()
    outputs: tuple[Port, ...] = ()
    input_ranges: VariableRanges = ()
    """The numeric inputs, each with the numbers of its ports."""
    output_ranges: VariableRanges = ()
    text_inputs: tuple[FmuVariable, ...] = ()
    text_outputs: tuple[FmuVariable, ...] = ()
    triggers: tuple[FmuVariable, ...] = ()
    """The input clocks that others trigger; their ports are behind the numeric ones."""
    clock_outputs: tuple[FmuVariable, ...] = ()
    """The clocks that may trigger those of others: output clocks, and input clocks that hocket ticks."""

    @property
    def sloped_ranges(self) -> VariableRanges:
        """The outputs that FMI may tell derivatives of: reals, and not what else is observed."""
        return tuple(
            (variable, places)
            for variable, places in self.output_ranges
            if variable.causality == "output" and variable.port_type == "real"
        )

    @property
    def sloped_places(self) -> list[int]:
        """The numbers of their ports."""
        return [place for _, places in self.sloped_ranges for place in places]

    def with_starts(self, starts: Mapping[str, float]) -> PortLayout:
        """Return the same faces, inputs starting at other values."""
        inputs = (replace(p, start=starts[p.name]) if p.name in starts else p for p in self.inputs)
        return replace(self, inputs=tuple(inputs)) if starts else self

    def with_reactivity(self, declared: Mapping[str, Reactivity]) -> PortLayout:
        """Return the same faces, inputs with the reactivity that is declared of them."""
        inputs = (replace(p, reactivity=declared[p.name]) if p.name in declared else p for p in self.inputs)
        return replace(self, inputs=tuple(inputs)) if declared else self


def shape(variable: FmuVariable, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Return the sizes of an array; () for a scalar."""
    return tuple(sizes[size] if isinstance(size, str) else size for size in variable.dimensions)


def indices(shape: tuple[int, ...]) -> Iterable[tuple[int, ...]]:
    """Yield the indices of an array's elements, from 1, the last one running fastest."""
    return itertools.product(*(range(1, size + 1) for size in shape))


def start_values(variable: FmuVariable, shape: tuple[int, ...]) -> tuple[Any, ...] | None:
    """Return the start values, flat; None if there are none, or not for this shape."""
    if variable.start is None:
        return None
    if not variable.dimensions:
        return (variable.start,)
    values: tuple[Any, ...] = variable.start
    count = math.prod(shape)
    if len(values) == 1:
        return values * count
    return values if len(values) == count else None


def layout_ports(
    description: Description,
    sizes: Mapping[str, int],
    observe: Iterable[str] = (),
    where: str = "",
    ticks: bool = False,
) -> PortLayout:
    """Return what the FMU shows, its clocks if it is run with them; raises ScenarioError with every fault."""
    found, faults = _layout_ports(description, tuple(sorted(sizes.items())), tuple(observe), ticks)
    raise_faults(replace(fault, place=replace(fault.place, detail=where)) for fault in faults)
    return found


@lru_cache(maxsize=256)
def _layout_ports(
    description: Description, given: tuple[tuple[str, int], ...], observe: tuple[str, ...], ticks: bool
) -> tuple[PortLayout, tuple[Fault, ...]]:
    sizes = dict(given)
    shown = [variable for variable in description.variables if variable.alias_of is None]
    inputs = [variable for variable in shown if variable.causality == "input"]
    outputs = [variable for variable in shown if variable.causality == "output"]
    observed, faults = _observed_variables(description, observe, {variable.name for variable in outputs})
    outputs += observed
    count = sum(math.prod(shape(variable, sizes)) for variable in (*inputs, *outputs))
    if count > AT_MOST:
        faults.append(Fault(f"it has {count:,} ports", "", f"at most {AT_MOST:,}", "smaller arrays"))
        return PortLayout(), tuple(faults)
    for name, unit in description.units.items():
        if unit.exponents:
            define_unit(name, unit.base, unit.factor, unit.offset)
    reacts = _feedthrough(description, sizes, inputs)
    numbers_in, texts_in = _split(inputs, sizes)
    numbers_out, texts_out = _split(outputs, sizes)
    clocks = [v for v in (*inputs, *outputs) if v.type == "clock" and ticks]
    triggers = tuple(v for v in clocks if v.causality == "input" and v.ticks and not v.ticks.timed)
    shows = tuple(v for v in clocks if v not in triggers)
    faults += _clock_faults(inputs)
    at_ticks = description.has_instants_only
    found = PortLayout(
        (
            *(
                replace(port, event=at_ticks(variable))
                for variable in numbers_in
                for port in _ports(variable, sizes, with_start=True)
            ),
            *(Port(clock.name, type="clock") for clock in triggers),
        ),
        (
            *(
                replace(
                    port,
                    feedthrough=reacts(variable) if variable.causality == "output" else (),
                    event=at_ticks(variable),
                )
                for variable in numbers_out
                for port in _ports(variable, sizes)
            ),
            *(
                Port(
                    clock.name, type="clock", feedthrough=_clock_causes(description, clock, triggers, reacts)
                )
                for clock in shows
            ),
        ),
        element_ranges(numbers_in, sizes),
        element_ranges(numbers_out, sizes),
        texts_in,
        texts_out,
        triggers,
        shows,
    )
    for role, ports in (("inputs", found.inputs), ("outputs", found.outputs)):
        names = [port.name for port in ports]
        if len(set(names)) < len(names):
            twice = sorted({name for name in names if names.count(name) > 1})[:8]
            what = f"two {role} are named {list_names(twice, 8)}"
            faults.append(Fault(what, "", "", "an array and a variable named as its element"))
    return found, tuple(faults)


def _observed_variables(
    description: Description, observe: tuple[str, ...], known: set[str]
) -> tuple[list[FmuVariable], list[Fault]]:
    """Return the variables to observe beside the outputs, each once."""
    found: list[FmuVariable] = []
    faults = []
    for name in dict.fromkeys(observe):
        variable = description.by_name.get(name)
        if variable is None:
            array = description.by_name.get(name.partition("[")[0])
            hint = suggest_nearest(name, description.by_name)
            if array is not None and array.dimensions:
                hint = f"observe the whole array `{array.name}`"
            faults.append(Fault(f"there is no variable `{name}` to observe", Place(key="observe"), "", hint))
        elif name not in known and (variable.type == "clock" or variable.clocks):
            kind = "a clock" if variable.type == "clock" else "clocked"
            faults.append(Fault(f"`{name}` cannot be observed: it is {kind}", Place(key="observe")))
        elif name not in known:
            found.append(variable)
    return found, faults


def _clock_faults(inputs: list[FmuVariable]) -> Iterator[Fault]:
    """Yield the inputs of which it is not known which clock samples them."""
    for variable in inputs:
        if len(variable.clocks) > 1 and variable.type != "clock":
            what = f"the input `{variable.name}` has {len(variable.clocks)} clocks"
            yield Fault(f"{what}: {list_names(variable.clocks, 4)}", "", "one clock for each input")


def _clock_causes(
    description: Description,
    clock: FmuVariable,
    triggers: tuple[FmuVariable, ...],
    reacts: Callable[[FmuVariable], tuple[str, ...]],
) -> tuple[str, ...]:
    """Return the inputs that may let a clock tick in the same instant."""
    if clock.causality == "input":
        return ()  # hocket ticks it
    declared = description.dependencies.get(clock.name)
    causes = (v.name for v in triggers if declared is None or v.name in declared)
    return (*reacts(clock), *causes)


def _split(
    variables: list[FmuVariable], sizes: Mapping[str, int]
) -> tuple[list[FmuVariable], tuple[FmuVariable, ...]]:
    """Return the numbers and the texts; clocks are neither, and texts of many elements are not exchanged."""
    numbers = [variable for variable in variables if variable.numeric]
    texts = (v for v in variables if v.type in ("string", "binary"))
    return numbers, tuple(v for v in texts if math.prod(shape(v, sizes)) == 1)


def _ports(variable: FmuVariable, sizes: Mapping[str, int], with_start: bool = False) -> Iterable[Port]:
    values = start_values(variable, shape(variable, sizes)) if with_start else None
    kind, unit = variable.port_type, difference(variable.unit) if variable.relative else variable.unit
    held = kind == "real" and not variable.moves
    for number, name in enumerate(element_names(variable, sizes)):
        start = None if values is None else float(values[number])
        yield Port(name, unit, start, (), kind, held)


def element_names(variable: FmuVariable, sizes: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(element_name(variable.name, index) for index in indices(shape(variable, sizes)))


def element_ranges(variables: list[FmuVariable], sizes: Mapping[str, int]) -> VariableRanges:
    """Return variables, each with the numbers of its elements in all of them."""
    counts = [math.prod(shape(variable, sizes)) for variable in variables]
    ends = itertools.accumulate(counts)
    return tuple(
        (variable, range(end - count, end))
        for variable, count, end in zip(variables, counts, ends, strict=True)
    )


def group_calls(description: Description, ranges: VariableRanges) -> tuple[ValueGroup, ...]:
    """Return one group per type, and one for its negated aliases, in the order they come first."""
    calls: dict[tuple[str, bool], tuple[list[int], list[int]]] = {}
    for variable, places in ranges:
        key = description.call_type(variable), variable.negated
        references, every = calls.setdefault(key, ([], []))
        references.append(variable.reference)
        every.extend(places)
    return tuple(ValueGroup(kind, tuple(r), tuple(p), turned) for (kind, turned), (r, p) in calls.items())


def _feedthrough(
    description: Description, sizes: Mapping[str, int], inputs: list[FmuVariable]
) -> Callable[[FmuVariable], tuple[str, ...]]:
    """Return what tells the inputs with direct feedthrough to a variable; where none is declared, all."""
    elements = {v.name: element_names(v, sizes) for v in inputs if v.numeric}
    every = tuple(itertools.chain.from_iterable(elements.values()))
    known = description.by_name

    def reference_key(variable: FmuVariable) -> tuple[str, int]:
        return description.call_type(variable), variable.reference

    kept: dict[tuple[str, int], tuple[str, ...]] = {}
    for name, declared in description.dependencies.items():
        if declared is not None:
            wanted = set(declared)
            chosen = (elements[u] for u in elements if u in wanted)
            kept[reference_key(known[name])] = tuple(itertools.chain.from_iterable(chosen))
    kept |= {reference_key(known[state]): () for state, _ in description.states}
    kept |= {reference_key(known[name]): own for name, own in elements.items()}

    def reacts(variable: FmuVariable) -> tuple[str, ...]:
        if variable.variability in ("constant", "fixed", "tunable") or variable.causality == "independent":
            return ()
        return kept.get(reference_key(variable), every)

    return reacts
