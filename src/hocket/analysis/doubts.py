"""Why not to believe an estimate of the error of a run.

In:  the run, its study, the runs beside it, and what was estimated
Out: doubts, a sentence each
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hocket.analysis.posedness import posedness
from hocket.files.run import Run
from hocket.files.study import Experiment
from hocket.files.trust import PortEstimate
from hocket.simulators.balanced import Balanced
from hocket.simulators.sources import Csv, Function, Table
from hocket.simulators.state_space import StateSpace

SEEN = 0.5
"""An order below this is none: the error does not fall with the steps."""
FAR = (0.5, 1.0)
"""How far an order that is seen may be below, and above, the one that is promised."""
COUNTS = 0.01
"""Ports whose error is below this part of the worst one's do not raise doubts."""
SMALL = 1e-9
"""Relative errors below this are not doubted: what is integrated inside may be no better."""
ROUNDING_BESIDE = 1e-12
"""Of the largest value beside it: what is smaller may be rounding."""
SAME = 1e-6
"""Relative differences at the start above this come from other models, not from other steps."""


def early_end_doubts(run: Run) -> Iterator[str]:
    """Yield that a run did not come to its end."""
    if run.status != "finished":
        reached, last = run.info.get("reached"), last_row_time(run)
        when = "" if reached is None else f" at {reached:g} s"
        lost = reached is not None and last is not None and last < reached - SAME * abs(reached)
        where = f"its last row, at {last:g} s" if lost else "there"
        yield f"the run ended early{when}, {run.status}: it is judged up to {where}, not beyond"


def last_row_time(run: Run) -> float | None:
    """Return the time of the newest row that is kept; None: there is none."""
    return max((float(run[port].t[-1]) for port in run.ports if len(run[port].t)), default=None)


def broken_loop_doubts(study: Experiment) -> Iterator[str]:
    """Yield the loops that are broken: differences need not tell the error (requirements, section 1.2)."""
    found = posedness(study.composite)
    for loop in () if found.solved else found.loops:
        path = " -> ".join(f"`{port}`" for port in loop)
        yield (
            f"feedthrough on both sides: the algebraic loop {path} is broken by a delay, "
            "and an estimate from shorter steps may mislead"
        )


def order_doubts(known: Sequence[PortEstimate], promised: int | None, closed: bool) -> Iterator[str]:
    """Yield why the orders that are seen speak against the estimate; `closed`: not all promise an order."""
    if any(not math.isfinite(each.largest) for each in known):
        yield "some values are beyond all numbers: no error can be told"
    worst = max((each.relative for each in known if math.isfinite(each.relative)), default=0.0)
    least = max(SMALL, COUNTS * worst)
    ports = [each for each in known if each.order is not None and each.relative >= least]
    none = [each for each in ports if each.order is not None and each.order < SEEN]
    if none:
        names = _summarise_ports([each.port for each in none])
        yield f"no order is to be seen in {names}: it does not settle as the steps get shorter"
    orders = [(each.order, each.port) for each in ports if each.order is not None and each.order >= SEEN]
    if promised is None:
        if orders and not closed:
            yield f"no error was expected, yet {_summarise_ports([port for _, port in orders])} changes with the steps"
        return
    low, high = promised - FAR[0], promised + FAR[1]
    for far, word in (
        ([each for each in orders if each[0] < low], "something loses order"),
        ([each for each in orders if each[0] > high], "the steps are too long to show it, or it is unstable"),
    ):
        if far:
            order, port = max(far, key=lambda each: abs(each[0] - promised))
            yield f"`{port}` shows order {order:.2f} where {promised} is promised: {word}"


def rounding_by_port(run: Run) -> dict[str, float]:
    """Return per port what would be rounding: beside the ports of its simulator, and those in its unit."""
    largest = {port: float(np.abs(run[port].values).max(initial=0.0)) for port in run.ports}
    groups: dict[tuple[str, str], float] = {}
    for port, size in largest.items():
        for key in _comparison_groups(run, port):
            groups[key] = max(groups.get(key, 0.0), size if math.isfinite(size) else 0.0)
    return {port: ROUNDING_BESIDE * max(groups[key] for key in _comparison_groups(run, port)) for port in largest}


def _comparison_groups(run: Run, port: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return ("simulator", port.rpartition(".")[0]), ("unit", run[port].unit)


def changed_model_doubts(run: Run, others: Sequence[Run]) -> Iterator[str]:
    """Yield ports that start otherwise: the files or the code behind the scenario are not what was run."""
    moved, rounding = [], rounding_by_port(run)
    guessed = run.info.get("determined", ())  # what equations determine has a value over steps only
    for port in run.ports if others else ():
        if port in guessed:
            continue
        one, other = run[port], others[0][port]
        if len(one) and len(other) and one.t[0] == other.t[0]:
            scale = max(abs(float(one.values[0])), abs(float(other.values[0])))
            if abs(float(one.values[0] - other.values[0])) > max(SAME * scale, rounding[port]):
                moved.append(port)
    if moved:
        yield f"{_summarise_ports(moved)} starts elsewhere than in the run: the models are not those that were run"


def uncovered_errors(study: Experiment) -> Iterator[str]:
    """Yield what no other steps of levels bring to light."""
    leaves = study.composite.blueprint.leaves.wiring
    inside = [name for name, model in zip(leaves.names, leaves.models, strict=True) if not _is_covered(model)]
    if inside:
        yield f"what is integrated inside {_summarise_ports(inside)}: the steps there stay as they are"


def _is_covered(model: Any) -> bool:
    """Return whether all that a model does is exact, or done in steps that are shortened too."""
    if isinstance(model, Balanced) and model.linked:
        plain: Any = model.model
        integrated = model.form == "inversion" and getattr(plain, "method", "exact") == "exact"
        return isinstance(plain, StateSpace) and not integrated
    return isinstance(model, (StateSpace, Table, Csv, Function))


def _summarise_ports(names: Sequence[str]) -> str:
    return f"`{names[0]}`" + (f" and {len(names) - 1} more" if len(names) > 1 else "")
