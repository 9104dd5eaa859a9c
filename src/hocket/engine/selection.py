"""Which ports are kept, in which table: every level has its rate, and so may every simulator's micro steps.

In:  a tree of levels, the patterns of the scenario, the output interval
Out: a table and its rows for each rate
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import translate
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from hocket.clock import written
from hocket.engine.interpreter import Level
from hocket.engine.recording import Table
from hocket.engine.rows import Column, Rows
from hocket.errors import Fault, ScenarioError, nearest


@dataclass
class Recorded:
    """A table, the level it belongs to and its rows; `child` is set for the micro steps of one simulator."""

    table: Table
    level: Level
    rows: Rows
    child: int | None = None


def select(root: Level, patterns: Sequence[str], every: Fraction | Literal["micro"] | None) -> list[Recorded]:
    """Give every level the rows it must keep.

    A pattern with wildcards selects outputs at any depth, unless a level on the way does not record them;
    an exact path always counts, and may also name an input.
    """
    exact = {pattern for pattern in patterns if not any(sign in pattern for sign in "*?[")}
    known: list[str] = []
    found: set[str] = set()
    chosen: list[Recorded] = []

    def visit(level: Level, wild: list[tuple[int, re.Pattern[str]]]) -> None:
        columns: list[Column] = []
        names: list[str] = []
        units: list[str] = []
        inner: list[Level] = []
        for child, model in enumerate(level.wiring.models):
            prefix = level.name(child)
            simulator = level.children[child]
            if isinstance(simulator, Level):
                inner.append(simulator)
            mine: list[Column] = []
            for is_input, ports in ((False, model.outputs), (True, model.inputs)):
                for index, port in enumerate(ports):
                    path = f"{prefix}.{port.name}"
                    if "." in port.name:  # made on the way of a connection: its source has the same path
                        continue
                    if exact:
                        known.append(path)
                    if path in exact or (not is_input and all(p.match(path, skip) for skip, p in wild)):
                        found.add(path)
                        names.append(path)
                        units.append(port.unit)
                        mine.append((child, index, is_input))
            columns += mine
            outputs = [column for column in mine if not column[2]]
            if every == "micro" and outputs and hasattr(simulator, "micro"):
                kept = [model.outputs[index] for _, index, _ in outputs]
                paths = tuple(f"{prefix}.{port.name}" for port in kept)
                table = Table(f"{prefix}@micro", paths, tuple(port.unit for port in kept))
                chosen.append(Recorded(table, level, Rows(outputs), child))
        if columns:
            rows = Rows(columns, _interval(level, every))
            level.rows = rows
            chosen.append(Recorded(Table(level.path, tuple(names), tuple(units)), level, rows))
        for deeper in inner:
            own = deeper.blueprint.composite.scenario.record
            narrower = [] if own == ("*",) else [(len(deeper.path) + 1, _pattern(own))]
            visit(deeper, [*wild, *narrower])

    visit(root, [(0, _pattern(pattern for pattern in patterns if pattern not in exact))])
    missing = sorted(exact - found)
    if missing:
        raise ScenarioError(
            [Fault(f"there is no port `{m}` to record", "record", "", nearest(m, known)) for m in missing]
        )
    return chosen


def _pattern(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(translate(pattern) for pattern in patterns) or r"(?!)")


def attach(recorded: Iterable[Recorded]) -> None:
    """Let simulators report their micro steps to their rows."""
    for entry in recorded:
        if entry.child is not None:
            simulator: Any = entry.level.children[entry.child]
            simulator.micro = entry.rows.keep_micro


def keep_start(recorded: Iterable[Recorded]) -> None:
    """Keep the first row of every table, at the start."""
    for entry in recorded:
        level = entry.level
        if entry.child is None:
            entry.rows.keep(level, 0)
        else:
            y = np.array([ring[-1][1] for ring in level.memory.rings[entry.child]])
            entry.rows.keep_micro(level.clock.time(0), y)


def _interval(level: Level, every: Fraction | Literal["micro"] | None) -> int:
    if every is None or every == "micro":
        return 1
    ticks = every / level.clock.tick
    step = level.length * level.clock.tick
    if ticks <= level.length:
        return 1
    if ticks % level.length:
        raise ScenarioError(
            f"rows every {written(every)} do not fall on the steps of {written(step)}"
            + (f" of `{level.path}`" if level.path else ""),
            where="every",
            expected="a multiple of the step",
            hint=written(step * (every // step)),
        )
    return int(ticks)
