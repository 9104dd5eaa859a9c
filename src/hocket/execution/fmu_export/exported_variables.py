"""What an exported co-simulation shows: its inputs, its recorded ports, its initial states.

In:  a tree of plans, what is recorded, the live levels
Out: variables by their names, in the order of their value references
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hocket._native import PlanVariable, VariableKind, VariableType
from hocket.coupling.wiring import OWN, Wiring
from hocket.engine.recording import EVENT
from hocket.engine.reference.level import Level
from hocket.engine.selection import TableChoice
from hocket.model.arguments import free_name
from hocket.model.ports import Port
from hocket.planning.tree import PlanTree
from hocket.simulators.fmu.live import CODES, CoSimulation
from hocket.simulators.state_space import StateSpaceSimulator

TYPES: Mapping[str, VariableType] = {
    "real": VariableType.real,
    "integer": VariableType.integer,
    "enumeration": VariableType.integer,
    "boolean": VariableType.boolean,
}


@dataclass(frozen=True)
class ExportedVariable:
    """A variable of the FMU; its place in the list is its value reference."""

    name: str
    kind: VariableKind
    unit: str = ""
    type: VariableType = VariableType.real
    level: int = 0
    child: int = 0
    port: int = 0
    start: float = 0.0
    discrete: bool = False
    """It changes at events only."""
    depends: tuple[int, ...] | None = None
    """Of an output: the value references of the inputs that it follows at once; None: not known."""
    code: int = 0
    """Of a parameter of an FMU inside: its type there."""

    @property
    def native(self) -> PlanVariable:
        """What compiled code needs of it."""
        return PlanVariable(
            kind=self.kind,
            type=self.type,
            level=self.level,
            child=self.child,
            port=self.port,
            start=self.start,
            code=self.code,
        )


def list_variables(
    design: PlanTree, choices: Sequence[TableChoice], levels: Sequence[Level]
) -> list[ExportedVariable]:
    """Return all variables: the time, the inputs, what is recorded, the initial states that can be set."""
    inputs = [_input(number, port) for number, port in enumerate(design.composite.inputs)]
    taken = {each.name for each in inputs}
    recorded = list(_recorded(design, choices, levels, taken))
    taken |= {each.name for each in recorded}
    initial = [each for each in _initial_states(levels) if each.name not in taken]
    taken |= {each.name for each in initial}
    parameters = [each for each in _fmu_parameters(levels) if each.name not in taken]
    taken |= {each.name for each in parameters}
    time = ExportedVariable(free_name("time", taken), VariableKind.time, "s")
    return [time, *inputs, *recorded, *initial, *parameters]


def _input(number: int, port: Port) -> ExportedVariable:
    return ExportedVariable(
        port.name,
        VariableKind.input,
        port.unit,
        TYPES[port.type],
        port=number,
        start=port.start or 0.0,
        discrete=port.discrete,
    )


def _recorded(
    design: PlanTree, choices: Sequence[TableChoice], levels: Sequence[Level], taken: set[str]
) -> Iterator[ExportedVariable]:
    """Yield what is recorded and has a value at all times."""
    numbers = {level.path: number for number, level in enumerate(levels)}
    trees = {each.path: each for each in design.levels()}
    reactions = _Reactions(design)
    for choice in choices:
        if choice.child is not None:  # micro steps
            continue
        level = levels[numbers[choice.level]]
        for name, shape, (child, index, is_input) in zip(
            choice.table.columns, choice.table.kinds, choice.columns, strict=True
        ):
            if child < 0 or shape == EVENT or name in taken:
                continue
            model = level.wiring.models[child]
            port = (model.inputs if is_input else model.outputs)[index]
            value = level.memory.u[child][0][index] if is_input else level.memory.rings[child][index][-1][1]
            yield ExportedVariable(
                name,
                VariableKind.seen if is_input else VariableKind.output,
                port.unit,
                TYPES[port.type],
                numbers[choice.level],
                child,
                index,
                float(value),
                port.discrete,
                None if is_input else reactions.of(trees[choice.level], child, index),
            )


def _initial_states(levels: Sequence[Level]) -> Iterator[ExportedVariable]:
    for number, level in enumerate(levels):
        for child, simulator in enumerate(level.children):
            if not isinstance(simulator, StateSpaceSimulator):
                continue
            for place in range(simulator.size):
                yield ExportedVariable(
                    f"{level.name(child)}.x0[{place + 1}]",
                    VariableKind.initial,
                    level=number,
                    child=child,
                    port=place,
                    start=float(simulator.z[place]),
                )


_MEANINGS: Mapping[str, VariableType] = {
    "real": VariableType.real,
    "float32": VariableType.real,
    "boolean": VariableType.boolean,
    **dict.fromkeys(("integer", "int8", "uint8", "int16", "uint16", "int32"), VariableType.integer),
}


def _fmu_parameters(levels: Sequence[Level]) -> Iterator[ExportedVariable]:
    """Yield the parameters of FMUs inside: single numbers of types that both versions of FMI have."""
    for number, level in enumerate(levels):
        for child, simulator in enumerate(level.children):
            if not isinstance(simulator, CoSimulation):
                continue
            model = simulator.model
            for each in model.description.variables:
                fits = each.causality == "parameter" and each.variability in ("fixed", "tunable")
                if not fits or each.type not in _MEANINGS or each.dimensions or each.negated:
                    continue
                given = model.settings.given.get(each.name, (each.start,))
                if given[0] is None or each.alias_of:
                    continue
                yield ExportedVariable(
                    f"{level.name(child)}.{each.name}",
                    VariableKind.parameter,
                    each.unit,
                    _MEANINGS[each.type],
                    number,
                    child,
                    each.reference,
                    float(given[0]),
                    code=CODES[each.type],
                )


class _Reactions:
    """Which inputs of the outermost level an output follows at once, between two steps."""

    def __init__(self, design: PlanTree):
        self.wiring: Wiring = design.leaves.wiring
        self.leaves = {place: number for number, place in enumerate(design.leaves.places)}
        self.follows = bool(design.plan.output)
        """Whether outputs are evaluated again when inputs change: else they follow in the next step."""
        self.known: dict[tuple[int, int], frozenset[int]] = {}

    def of(self, level: PlanTree, child: int, port: int) -> tuple[int, ...]:
        """Return the value references of the inputs that an output of a child of a level follows."""
        if not self.follows:
            return ()
        while child in level.inner:
            inner = level.inner[child]
            drive = inner.wiring.outputs[port]
            level, child, port = inner, drive.child, drive.port
        found = self._inputs(self.leaves[(level.path, child)], port)
        return tuple(sorted(1 + number for number in found))

    def _inputs(self, leaf: int, port: int) -> frozenset[int]:
        node = leaf, port
        if node in self.known:
            return self.known[node]
        found: set[int] = set()
        todo = [node]
        seen = {node}
        while todo:
            at, number = todo.pop()
            model = self.wiring.models[at]
            follows = set(model.outputs[number].feedthrough)
            for index, each in enumerate(model.inputs):
                drive: Any = self.wiring.drives[at][index]
                if each.name not in follows or drive is None:
                    continue
                if drive.child == OWN:
                    found.add(drive.port)
                elif drive.child >= 0 and (source := (drive.child, drive.port)) not in seen:
                    seen.add(source)
                    todo.append(source)
        self.known[node] = frozenset(found)
        return self.known[node]
