"""Which ports are kept, in which table: every level has its rate, and so may every simulator's micro steps.

In:  a tree of levels, the patterns of the scenario, the output interval
Out: a table and its rows for each rate
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from hocket.engine.initialise import levels_of
from hocket.engine.ledger import COLUMNS, LEDGER
from hocket.engine.recording import EVENT, HELD, MOVING, SampleTable
from hocket.engine.reference.level import Level
from hocket.engine.rows import Column, Rows
from hocket.errors import Fault, ScenarioError, suggest_nearest
from hocket.model.clock import Clock, format_duration
from hocket.model.composite import Composite
from hocket.model.ports import Port, compile_patterns, is_pattern, matches
from hocket.model.protocols import Array, Model, bookkeeping_ports
from hocket.planning.tree import PlanTree
from hocket.simulators.constraint import Coupler, gap_names
from hocket.simulators.python import Python

Every = Fraction | Literal["micro"] | None


@dataclass(frozen=True)
class TableChoice:
    """A table to be kept: which columns of which level; `child` is set for the micro steps of a simulator."""

    table: SampleTable
    level: str
    columns: list[Column]
    interval: int = 1
    child: int | None = None


@dataclass
class RecordedTable:
    """A table while it is filled: its rows, and the live level they come from."""

    table: SampleTable
    level: Level
    rows: Rows
    child: int | None = None


def choose_tables(
    design: PlanTree, clock: Clock, patterns: Sequence[str], every: Every, ledger: bool = False
) -> list[TableChoice]:
    """Return the tables to keep, before anything is opened; with `ledger` also accounts of power bonds.

    A pattern with wildcards selects outputs at any depth, unless a level on the way does not record them;
    an exact path always counts, and may name an input. The indices of `x[1]` are not a wildcard. Accounts
    count where a pattern is about them, by its begin or its end: `joint.*`, `*.gained`. `ledger` keeps those
    that are chosen so, and all of them where none is.
    """
    exact = {pattern for pattern in patterns if not is_pattern(pattern)}
    known: list[str] = []
    found: set[str] = set()
    whole = ledger and not any(
        _selects_account(path, patterns) for level in design.levels() for path, *_ in _account_columns(level)
    )
    chosen: list[TableChoice] = []

    def visit(level: PlanTree, wild: list[tuple[int, re.Pattern[str]]]) -> None:
        columns: list[Column] = []
        names: list[str] = []
        units: list[str] = []
        kinds: list[str] = []
        for child, model in enumerate(level.wiring.models):
            prefix = level.name(child)
            outputs: list[Column] = []
            hidden = bookkeeping_ports(model)
            for is_input, ports in ((False, model.outputs), (True, model.inputs)):
                for index, port in enumerate(ports):
                    if child in level.inner and "." in port.name:
                        continue  # made on the way of a connection: its source has the same path
                    path = f"{prefix}.{port.name}"
                    if exact:
                        known.append(path)
                    shown = not is_input and port.name not in hidden
                    if path in exact or (shown and all(p.match(path, skip) for skip, p in wild)):
                        found.add(path)
                        names.append(path)
                        units.append(port.unit)
                        kinds.append(_column_kind(model, port))
                        columns.append((child, index, is_input))
                        if not is_input:
                            outputs.append(columns[-1])
            if every == "micro" and outputs and model.capabilities.micro:
                kept = [model.outputs[index] for _, index, _ in outputs]
                paths = tuple(f"{prefix}.{port.name}" for port in kept)
                shapes = tuple(_column_kind(model, port) for port in kept)
                table = SampleTable(f"{prefix}@micro", paths, tuple(port.unit for port in kept), shapes)
                chosen.append(TableChoice(table, level.path, outputs, child=child))
        for path, unit, number in _account_columns(level):
            if exact:
                known.append(path)
            if whole or _selects_account(path, patterns):
                found.add(path)
                names.append(path)
                units.append(unit)
                kinds.append(MOVING)
                columns.append((LEDGER, number, False))
        if columns:
            table = SampleTable(level.path, tuple(names), tuple(units), tuple(kinds))
            chosen.append(TableChoice(table, level.path, columns, _row_interval(level, clock, every)))
        for deeper in level.inner.values():
            own = deeper.composite.scenario.record
            narrower = [] if own == ("*",) else [(len(deeper.path) + 1, compile_patterns(own))]
            visit(deeper, [*wild, *narrower])

    visit(design, [(0, compile_patterns(tuple(pattern for pattern in patterns if pattern not in exact)))])
    missing = [
        Fault(f"there is no port `{path}` to record", "record", "", suggest_nearest(path, known))
        for path in sorted(exact - found)
    ]
    missing += [
        Fault(f"no output matches `{pattern}`", "record", "", _pattern_advice(pattern, design))
        for pattern in patterns
        if pattern not in exact and pattern != "*" and not any(map(compile_patterns((pattern,)).match, found))
    ]
    if missing:
        raise ScenarioError(missing)
    return chosen


def _column_kind(model: Model, port: Port) -> str:
    """Return what a port is between two rows: a sampled model changes nothing between its samples."""
    if port.event:
        return EVENT
    level = isinstance(model, Composite) and model.sampled
    sampled = level or (isinstance(model, Python) and model.sampling is not None)
    return HELD if port.discrete or sampled else MOVING


def _account_columns(level: PlanTree) -> Iterator[tuple[str, str, int]]:
    """Yield path, unit and number of what may be recorded of the power bonds of a level."""
    prefix = f"{level.path}." if level.path else ""
    for number, joint in enumerate(level.wiring.bonds):
        units = joint.unit, joint.unit, joint.energy_unit
        for what, (name, unit) in enumerate(zip(COLUMNS, units, strict=True)):
            yield f"{prefix}{joint.name}.{name}", unit, len(COLUMNS) * number + what


def _selects_account(account: str, patterns: Iterable[str]) -> bool:
    """Return whether a pattern selects this account, and is about accounts: `*` alone is not."""
    bond = f"{account.rpartition('.')[0]}."
    about = [each for each in patterns if each.startswith(bond) or each.rpartition(".")[2] in COLUMNS]
    return matches(account, *about)


def _pattern_advice(pattern: str, design: PlanTree) -> str:
    """Return what to do about a pattern that selects nothing."""
    bonds = [path.rpartition(".")[0] for level in design.levels() for path, *_ in _account_columns(level)]
    named = [bond for bond in bonds if pattern.startswith(f"{bond}.")]
    if not named and pattern.rpartition(".")[2] not in COLUMNS:
        return "`hocket show` lists the ports"
    which = (named or bonds or [""])[0]
    return f"`{which}.*`: {', '.join(COLUMNS)}" if which else "accounts are of power bonds: there is none"


def bind_tables(root: Level, chosen: Iterable[TableChoice]) -> list[RecordedTable]:
    """Give every live level the rows it must keep."""
    levels = {level.path: level for level in levels_of(root)}
    for level in reversed(levels.values()):
        level.ledger.begin(level)
    recorded = []
    for choice in chosen:
        entry = RecordedTable(
            choice.table, levels[choice.level], Rows(choice.columns, choice.interval), choice.child
        )
        if choice.child is None:
            entry.level.rows = entry.rows
        else:
            entry.level.micro_rows[choice.child] = entry.rows
        recorded.append(entry)
    return recorded


def attach_micro_rows(recorded: Iterable[RecordedTable]) -> None:
    """Let simulators report their micro steps to their rows."""
    for entry in recorded:
        if entry.child is not None:
            simulator: Any = entry.level.children[entry.child]
            simulator.micro = entry.rows.keep_micro


def keep_start_rows(recorded: Iterable[RecordedTable]) -> None:
    """Keep the first row of every table, at the start."""
    for entry in recorded:
        level = entry.level
        if entry.child is None:
            entry.rows.keep(level, 0)
        else:
            y = np.array([ring[-1][1] for ring in level.memory.rings[entry.child]])
            entry.rows.keep_micro(level.clock.time(0), y)


def _row_interval(level: PlanTree, clock: Clock, every: Every) -> int:
    if every is None or every == "micro":
        return 1
    step = level.composite.step
    if every <= step:
        return 1
    if every % step:
        whose = f" of `{level.path}`" if level.path else ""
        what = f"the output interval {format_duration(every)} is not a multiple of the step"
        hint = format_duration(step * (every // step))
        raise ScenarioError(f"{what} {format_duration(step)}{whose}", "every", "a multiple of the step", hint)
    return clock.ticks(every)


class ConstraintDrift:
    """The columns that are residuals, and the largest value of each so far."""

    def __init__(self, recorded: Sequence[RecordedTable]):
        self.columns: dict[int, list[tuple[int, str, str]]] = {}
        """Per table: column, its path, and the equation."""
        self.largest: dict[str, float] = {}
        self.determined = [path for entry in recorded for path in _determined_inputs(entry)]
        for index, entry in enumerate(recorded):
            known = _residual_equations(entry) if entry.child is None else {}
            paths = enumerate(entry.table.columns, 1)
            self.columns[index] = [(column, path, known[path]) for column, path in paths if path in known]

    def observe(self, index: int, block: Array) -> None:
        """Look at rows of a table."""
        for column, path, _ in self.columns.get(index, ()):
            size = float(np.max(np.abs(block[:, column])))
            self.largest[path] = max(self.largest.get(path, 0.0), size)

    def notes(self) -> list[str]:
        """Return how well each equation was kept."""
        return [
            f"`{equation}` was kept to {self.largest[path]:.2g}, see `{path}`"
            for columns in self.columns.values()
            for _, path, equation in columns
            if path in self.largest
        ]

    def facts(self) -> dict[str, Any]:
        """Return which columns are residuals, and which are determined inputs: at the start a guess."""
        return {"gaps": self.largest, "determined": self.determined}


def _determined_inputs(entry: RecordedTable) -> Iterator[str]:
    for child, model in enumerate(entry.level.wiring.models):
        if isinstance(model, Coupler):
            yield from (f"{entry.level.name(child)}.{port.name}" for port in model.determines)


def _residual_equations(entry: RecordedTable) -> dict[str, str]:
    """Return the equations of a level by the paths of their residuals."""
    found: dict[str, str] = {}
    for child, model in enumerate(entry.level.wiring.models):
        if isinstance(model, Coupler):
            names = gap_names(len(model.equations))
            for gap, equation in zip(names, model.equations, strict=True):
                found[f"{entry.level.name(child)}.{gap}"] = equation
    return found
