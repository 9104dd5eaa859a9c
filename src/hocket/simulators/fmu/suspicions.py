"""What is suspected of an FMU while it runs, and tried in a process of its own before it is said.

In:  what compiled code has noticed: outputs that stand still since a save, or jump in the first step
Out: the same as a fact, or nothing; kept by the hash of the FMU's content
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from hocket.errors import HocketError, SimulatorError, list_names

if TYPE_CHECKING:
    from hocket.simulators.fmu.recipe import Fmu

FirstRows: TypeAlias = tuple[float, float, Sequence[Sequence[float]], Sequence[Sequence[float]]]
"""Time and length of the first step; outputs and inputs before it and after each of the first steps."""

Doubt: TypeAlias = tuple[Sequence[float], float, bool]
"""Inputs and step of an FMU that stands still; whether only behind a state that may still be restored."""

LATE = "late outputs"
"""The topic of outputs that are computed from the first step on."""
_JUMPS, _FAR = 20.0, 1000.0
"""How much more a suspect moves in its first step than in the next; where no shorter step can be tried."""
_SHORTER = 1000
"""A step of the trial, as a part of that of the run."""

_late: dict[tuple[str, str, str], bool] = {}
_lock = threading.RLock()


class Suspect(Protocol):
    """A live FMU, here or in a process of its own."""

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
        from hocket.simulators.fmu.first_contact import confirm_freeze  # here: few need it

        judged, freeze = confirm_freeze(self.model, *doubt)
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
        late = late_outputs(self.model, rows)
        if not late:
            return
        names = [port.name for port in self.model.outputs]
        _, _, y, _ = rows
        shown = [
            f"`{name}` is {y[0][n]:.9g} and then {y[1][n]:.9g}"
            for n, name in enumerate(names)
            if name in late
        ]
        self.notes.append(
            "it computes outputs from its first step on: the first row, and what it drives in the first "
            f"step, does not have them ({list_names(shown, 4, quote='')})"
        )


def look_into(simulator: Suspect, suspicions: Suspicions) -> list[str]:
    """Judge what compiled code has noticed of a live FMU meanwhile; return all notes so far."""
    if not suspicions.start_judged:
        rows = simulator.first_rows()
        if rows is not None:
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


def late_outputs(model: Fmu, rows: FirstRows) -> list[str]:
    """Return the outputs that are not computed before the first step."""
    suspected = _jumping_outputs(model, rows)
    if not suspected:
        return []
    from hocket.simulators.fmu.findings import content_hash, keep_findings, read_findings  # here: few need it

    names = [model.outputs[number].name for number in suspected]
    try:
        key = content_hash(model), model.interface_kind
        with _lock:
            kept = read_findings(model, LATE).get(model.interface_kind)
            for name, verdict in kept.items() if isinstance(kept, dict) else ():
                _late.setdefault((*key, str(name)), bool(verdict))
            if any((*key, name) not in _late for name in names):
                found = _try_short_step(model, rows, suspected)
                _late.update({(*key, name): name in found for name in names})
                known = {name: verdict for (*one, name), verdict in _late.items() if tuple(one) == key}
                keep_findings(model, LATE, {**read_findings(model, LATE), model.interface_kind: known})
            return [name for name in names if _late[*key, name]]
    except (HocketError, OSError):
        return []


def _jumping_outputs(model: Fmu, rows: FirstRows) -> list[int]:
    """Return the outputs that leave zero, or a declared guess, in the first step and hardly move afterwards.

    States begin where they are, what is discrete jumps, and what an input does is not the FMU's.
    """
    whole = all(len(row) == len(model.outputs) for row in rows[2])
    whole = whole and all(len(row) == len(model.inputs) for row in rows[3])
    if not whole or not len(rows[2]) == len(rows[3]) >= 3:  # steps that are replayed have no outputs
        return []
    y, u = np.array(rows[2], dtype=float), np.array(rows[3], dtype=float)
    driven, moved = np.abs(np.diff(u, axis=0)), np.abs(np.diff(y, axis=0))
    if (driven[0] > 0.2 * _JUMPS * driven[1:].max(axis=0)).any():
        return []
    far = _JUMPS if model.capabilities.variable_step else _FAR
    jumps = moved[0] > far * moved[1:].max(axis=0)
    states = {state for state, _ in model.description.states}
    found = []
    for variable, places in model.port_layout.output_ranges:
        begins = 0.0 if variable.start is None or variable.dimensions else float(variable.start)
        exact = variable.name in states or variable.keeps_its_start
        if variable.moves and not exact:
            found += [n for n in places if jumps[n] and y[0, n] in (0.0, begins)]
    return found


def _try_short_step(model: Fmu, rows: FirstRows, suspected: list[int]) -> set[str]:
    """Return which of the suspected outputs make their jump in a step however short.

    Without steps of any length the same step is made under inputs that stay: what jumps again is believed.
    """
    from hocket.simulators.fmu.isolated import open_quietly

    if os.name != "posix":
        return set()
    t, h, y, u = rows
    step = h / _SHORTER if model.capabilities.variable_step else h
    inputs = np.array([u[0]], dtype=float)
    simulator = open_quietly(model)
    try:
        simulator.start(t)
        simulator.output(t, inputs)
        simulator.ready()
        before = np.array(simulator.output(t, inputs))
        simulator.step(t, step, inputs)
        after = np.array(simulator.output(t + step, inputs))
    except SimulatorError:
        return set()
    finally:
        with suppress(SimulatorError):
            simulator.close()
    half = {n: 0.5 * abs(y[1][n] - y[0][n]) for n in suspected}
    return {model.outputs[n].name for n in suspected if abs(after[n] - before[n]) > half[n]}
