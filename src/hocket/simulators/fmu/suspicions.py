"""What is suspected of an FMU while it runs, and tried in a process of its own before it is said.

In:  what compiled code has noticed: outputs that stand still since a save, or jump in the first step
Out: the same as a fact, or nothing; kept by the hash of the FMU's content
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from hocket.errors import SimulatorError, list_names

if TYPE_CHECKING:
    from hocket.simulators.fmu.recipe import Fmu

FirstRows: TypeAlias = tuple[float, float, Sequence[Sequence[float]], Sequence[Sequence[float]]]
"""Time and length of the first step; outputs and inputs before it and after each of the first steps."""

Doubt: TypeAlias = tuple[Sequence[float], float, bool]
"""Inputs and step of an FMU that stands still; whether only behind a state that may still be restored."""

_JUMPS, _FAR = 20.0, 1000.0
"""How much more a suspect moves in its first step than in the next; where no shorter step can be tried."""


class Suspect(Protocol):
    """A live FMU, here or in a process of its own."""

    def begins_smoothly(self, ratio: float) -> bool: ...
    def first_rows(self) -> FirstRows | None: ...
    def doubts_saving(self) -> Doubt | None: ...
    def trust_saving(self) -> None: ...


class Suspicions:
    """What is found out about one live FMU, in words."""

    def __init__(self, model: Fmu):
        self.model = model
        self.notes: list[str] = []
        self.saving_judged = model.exchange
        """Nothing speaks against its state any more."""
        self.start_judged = model.exchange
        """Its first steps were looked at."""

    def judge_saving(self, doubt: Doubt) -> None:
        """Raise SimulatorError if it stands still because its state was saved."""
        judged, freeze = _first_contact().confirm_freeze(self.model, *doubt)
        if freeze:
            raise SimulatorError(freeze, hint=_OTHERWISE)
        if judged is None:
            self.notes.append(
                "nothing has moved since its state was saved, and a trial that would tell why has failed: "
                "not judged"
            )
        self.saving_judged = judged is not False

    def judge_start(self, rows: FirstRows) -> None:
        """Note the outputs that it computes from its first step on."""
        self.start_judged = True
        t, h, y, u = rows
        jumps = {n: abs(y[1][n] - y[0][n]) for n in _jumping_outputs(self.model, rows)}
        late = _first_contact().find_late_outputs(self.model, t, h, u[0], jumps) if jumps else ()
        if not late:
            return
        names = [port.name for port in self.model.outputs]
        shown = [
            f"`{name}` is {y[0][n]:.9g} and then {y[1][n]:.9g}"
            for n, name in enumerate(names)
            if name in late
        ]
        self.notes.append(
            "it computes outputs from its first step on: the first row, and what it drives in the first "
            f"step, does not have them ({list_names(shown, 4, quote='')})"
        )


def _first_contact() -> Any:
    return importlib.import_module("hocket.simulators.fmu.first_contact")  # here: few need it


def look_into(simulator: Suspect, suspicions: Suspicions) -> list[str]:
    """Judge what compiled code has noticed of a live FMU meanwhile; return all notes so far."""
    if not suspicions.start_judged:
        if simulator.begins_smoothly(_JUMPS):  # compiled code knows: a thousand FMUs are judged in turn
            suspicions.start_judged = True
        elif (rows := simulator.first_rows()) is not None:
            suspicions.judge_start(rows)
    doubt = None if suspicions.saving_judged else simulator.doubts_saving()
    if doubt is not None:
        suspicions.judge_saving(doubt)
        if suspicions.saving_judged:
            simulator.trust_saving()
    return suspicions.notes


_OTHERWISE = (
    "let it be started again instead: `Replay(fmu)`, or `replay = true` in a file; or take an algorithm that "
    "does not roll back"
)


def _jumping_outputs(model: Fmu, rows: FirstRows) -> list[int]:
    """Return the outputs that leave zero, or a declared guess, in the first step and hardly move afterwards.

    States begin where they are, what is discrete jumps, and what an input does is not the FMU's.
    """
    _, _, y, u = rows
    if not len(y) == len(u) >= 3:
        return []
    moved = list(_movements(y))
    if not any(first > _JUMPS * later for first, later in moved):
        return []
    outputs, inputs = len(model.outputs), len(model.inputs)
    if any(len(row) != outputs for row in y) or any(len(row) != inputs for row in u):
        return []  # steps that are replayed have no outputs
    if any(first > 0.2 * _JUMPS * later for first, later in _movements(u)):
        return []
    far = _JUMPS if model.capabilities.variable_step else _FAR
    jumps = [first > far * later for first, later in moved]
    states = {state for state, _ in model.description.states}
    found = []
    for variable, places in model.port_layout.output_ranges:
        begins = 0.0 if variable.start is None or variable.dimensions else float(variable.start)
        exact = variable.name in states or variable.keeps_its_start
        if variable.moves and not exact:
            found += [n for n in places if jumps[n] and y[0][n] in (0.0, begins)]
    return found


def _movements(rows: Sequence[Sequence[float]]) -> Iterator[tuple[float, float]]:
    """Yield how far each column moves at first, and how far at most afterwards."""
    for column in zip(*rows, strict=False):
        first, *later = (abs(after - before) for before, after in pairwise(column))
        yield first, max(later)
