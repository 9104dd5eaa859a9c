"""Which outputs follow which inputs at once, against what the FMU declares.

In:  a bench
Out: a verdict and a sentence from each check
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from hocket.errors import SimulatorError
from hocket.model import Array, Port
from hocket.simulators.fmu.probe.bench import ROUNDING, ProbeBench, error_sentence
from hocket.simulators.fmu.probe.findings import Found
from hocket.simulators.fmu.probe.words import count, list_names
from hocket.simulators.fmu.recipe import Fmu
from hocket.simulators.fmu.remaking import remake_fmu

Moved: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]

_ADVICE = "use `Fmu(..., reevaluate=False)` (in a file `reevaluate = false`)"


class _Eager(Fmu):
    """The same FMU, inputs being set between steps whatever it declares."""

    @property
    def outputs(self) -> tuple[Port, ...]:
        names = tuple(port.name for port in self.inputs)
        return tuple(replace(port, feedthrough=names) for port in super().outputs)


@dataclass
class _Reactions:
    """Which outputs (rows) moved with which inputs (columns): in initialisation mode, and between steps."""

    first: Moved
    between: Moved
    tried: int
    failed: str = ""
    trace: str = ""
    """What is different later on, because inputs were tried between steps."""


@lru_cache(maxsize=1)  # two checks ask
def _measure_reactions(bench: ProbeBench) -> _Reactions:
    """Try each input, the others unchanged, without a step."""
    shape = len(bench.names), len(bench.base)
    found = _Reactions(np.zeros(shape, bool), np.zeros(shape, bool), min(shape[1], 200))

    def try_inputs(simulator: Any, t: float, u: Array, moved: Moved) -> None:
        bench.note(f"setting inputs and getting outputs at {t:.6g} s")
        before = np.array(simulator.output(t, u))
        begun = time.monotonic()
        for column in range(found.tried):
            for value in (bench.other[column], 0.7 * bench.base[column] + 0.3 * bench.other[column]):
                if bench.real[column] or value == bench.other[column]:
                    other = u.copy()
                    other[0, column] = value if value != u[0, column] else bench.base[column]
                    moved[:, column] |= np.array(simulator.output(t, other)) != before
            if time.monotonic() - begun > bench.limit / 4:
                found.tried = column + 1
                break
        simulator.output(t, u)

    middle = max(1, bench.repeatable_steps // 2)
    with bench.simulator(remake_fmu(bench.model, kind=_Eager)) as simulator:
        if bench.major > 1:
            try_inputs(simulator, bench.t0, bench.u(0), found.first)
        if not bench.model.reevaluate:
            return found
        bench.walk(simulator, middle)
        try:
            try_inputs(simulator, bench.time(middle), bench.u(middle - 1), found.between)
        except SimulatorError as error:
            found.failed = error_sentence(error)
            return found
        wanted = bench.course.rows[middle : bench.repeatable_steps]
        gap, words = bench.gap(wanted, bench.walk(simulator, len(wanted), middle))
        found.trace = words if gap > ROUNDING else ""
    return found


def _portless_verdict(bench: ProbeBench) -> Found | None:
    """Return what is to be said where nothing can react."""
    if bench.model.inputs and bench.model.outputs:
        return None
    return "not declared", f"it has no {'inputs' if bench.model.outputs else 'outputs'}"


def check_feedthrough(bench: ProbeBench) -> Found:
    """Compare the reactions with those declared."""
    if refused := _portless_verdict(bench):
        return refused
    inputs, description, seen = bench.model.inputs, bench.model.description, _measure_reactions(bench)
    lies, idle, declared, told = [], [], 0, False
    for row, output in enumerate(bench.model.outputs):
        name = bench.variable(output).name
        told = told or description.dependencies.get(name) is not None
        # while it is initialised an output may depend on more
        at_first = description.initial_unknowns.get(name, ())
        for column, port in enumerate(inputs[: seen.tried]):
            allowed = port.name in output.feedthrough
            freely = at_first is None or bench.variable(port).name in at_first
            pair = f"`{output.name}` to `{port.name}`"
            declared += allowed
            if not allowed and (seen.between[row, column] or (seen.first[row, column] and not freely)):
                lies.append(pair)
            elif allowed and not (seen.between[row, column] or seen.first[row, column]):
                idle.append(pair)
    part = "" if seen.tried == len(inputs) else f"; only {seen.tried} of {len(inputs):,} inputs were tried"
    if lies:
        return "false", f"it reacts at once, which it does not declare: {list_names(lies, '')}{part}"
    reacted = declared - len(idle)
    if not told:
        taken = "it declares no dependencies: every output is taken to react to every input"
        return "not declared", f"{taken}; {reacted} of {count(declared, 'reaction')} seen{part}"
    if not declared:
        return "true", f"it declares that no output reacts to an input at once, and none does{part}"
    never = f"; never seen: {list_names(idle, '')}" if idle else ""
    return "true", f"{count(reacted, 'reaction')} seen of {declared} declared, none besides{never}{part}"


def check_reevaluation(bench: ProbeBench) -> Found:
    """See whether outputs follow inputs between steps, and later steps do not mind."""
    if refused := _portless_verdict(bench):
        return refused
    if not bench.model.reevaluate:
        return "not declared", "switched off by `reevaluate=False`"
    seen, relied = _measure_reactions(bench), any(port.feedthrough for port in bench.model.outputs)
    if seen.failed or seen.trace:
        wrong = f"inputs tried between steps leave a trace: {seen.trace}"
        if seen.failed:
            wrong = f"setting inputs and getting outputs between steps is an error: {seen.failed}"
        return ("false", f"{wrong}; {_ADVICE}") if relied else ("not declared", wrong)
    if np.any(seen.between):
        return "true", "outputs follow inputs between steps, and later steps are not disturbed"
    if np.any(seen.first):
        return "not declared", f"outputs do not follow inputs between steps, which FMI leaves open: {_ADVICE}"
    lost = f": {_ADVICE}, nothing is lost" if relied else ""
    return "not declared", f"no output reacts to an input at once{lost}"
