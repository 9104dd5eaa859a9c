"""Whether the derivatives that an FMU takes and gives are what differences show.

In:  a bench
Out: a verdict and a sentence from each check
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from hocket.errors import SimulatorError, count, list_names
from hocket.model.extrapolators import shift_origin
from hocket.model.ports import Port
from hocket.model.protocols import Array
from hocket.simulators.fmu.binaries import DIRECTIONAL, INPUT_SLOPES, OUTPUT_SLOPES
from hocket.simulators.fmu.probe.driver import (
    ROUNDING,
    Found,
    ProbeBench,
    error_sentence,
    judge_claim,
    relative_differences,
)
from hocket.simulators.fmu.recipe import Fmu, remake_fmu
from hocket.simulators.fmu.variables import FmuInterface


def check_input_derivatives(bench: ProbeBench) -> Found:
    """Let inputs move during steps, and compare with inputs held during small steps."""
    if not (bench.used.interpolates_inputs or bench.used.intermediate_update):
        return "not declared", "inputs are held during a step"
    if refuted := bench.refute_claim("it interpolates its inputs", *INPUT_SLOPES[bench.major]):
        return refuted
    if not np.any(bench.real):
        return "untried", "it has no real inputs"
    if bench.model.capabilities.input_degree == 0:
        return "untried", "some of its real inputs may not move during a step"
    few = min(bench.repeatable_steps, 10)
    span = few * bench.h
    slope = np.where(bench.real, bench.other - bench.base, 0.0) / span
    line, bow = np.array([bench.base, slope]), np.array([bench.base, 0.0 * slope, slope / span])

    def step_outputs(rows: int, curve: Array, parts: int = 1, at: float = 0.0) -> Array:
        """Return outputs after each step; inputs in so many rows, expanded about a point of each part."""
        seen = []
        with bench.simulator() as simulator:
            for n in range(few * parts):
                begin, h = n * bench.h / parts, bench.h / parts
                u = np.array(shift_origin(curve, begin + at * h))[:rows]
                seen.append(bench.step(simulator, bench.t0 + begin, h, u))
        return np.array(seen)[parts - 1 :: parts]

    held, linear = step_outputs(1, line), step_outputs(2, line)
    if np.array_equal(held, linear):
        if np.array_equal(held, step_outputs(1, np.array([bench.base]))):
            return "untried", f"no output depends on the inputs within {count(few, 'step')}"
        return "false", "inputs that move are taken as held: no output changes"
    told, good = f"{count(few, 'step')}: a linear input has an effect", True
    parts = min(20, bench.affordable(1 / 4) // few)
    if bench.used.variable_step and parts >= 4:
        fine = step_outputs(1, line, parts, 0.5)
        coarse, better = (float(np.max(np.abs(rows - fine))) for rows in (held, linear))
        good = better < coarse
        told = f"against steps of h/{parts} a linear input errs by {better:.2g}, a held one by {coarse:.2g}"
    try:
        bends = not np.array_equal(step_outputs(2, bow), step_outputs(3, bow))
        told += "; parabolas are honoured" if bends else "; parabolas are taken as lines"
    except SimulatorError as error:
        told += f"; a parabola is an error: {error_sentence(error)}"
    return judge_claim(good, told)


def check_output_derivatives(bench: ProbeBench) -> Found:
    """Compare output derivatives with differences over three small steps."""
    if bench.used.output_derivatives < 1:
        return "not declared", "it does not tell output derivatives"
    if refuted := bench.refute_claim("it tells output derivatives", OUTPUT_SLOPES[bench.major]):
        return refuted
    if not bench.model.capabilities.slopes:
        return "untried", "no output is a real"
    few = max(0, min(bench.repeatable_steps, 10) - 3)
    e = 1e-4 * bench.h if bench.used.variable_step else bench.h
    with bench.simulator() as simulator:
        bench.walk(simulator, few)
        t, u = bench.time(few), bench.u(few)
        y = [bench.step(simulator, t + k * e, e, u) for k in range(3)]
        bench.note(f"getting output derivatives at {t + 3 * e:.6g} s")
        slope = np.array(simulator.slope(t + 3 * e, u), dtype=float)
    estimate = (3.0 * y[2] - 4.0 * y[1] + y[0]) / (2.0 * e)
    bend = np.abs(y[2] - 2.0 * y[1] + y[0]) / e
    noise = 1e-6 * np.max(np.abs(y)) / bench.h + 1e-12
    told = np.array([name not in bench.model.capabilities.slopeless for name in bench.names])
    slope = np.where(told, slope, estimate)
    wrong = ~(np.abs(slope - estimate) <= 1e-3 * (np.abs(slope) + np.abs(estimate)) + 2.0 * bend + noise)
    worst = int(np.argmax(wrong if np.any(wrong) else np.abs(slope - estimate)))
    words = f"the derivative of `{bench.names[worst]}` is {slope[worst]:.6g}"
    return judge_claim(not np.any(wrong), f"{words}, differences show {estimate[worst]:.6g}")


class _WithoutDirectional(Fmu):
    """The same FMU, its directional derivatives left alone."""

    @property
    def interface_used(self) -> FmuInterface:
        return replace(super().interface_used, directional=False)


def check_directional(bench: ProbeBench) -> Found:
    """Compare the Jacobian with the one by differences."""
    if not bench.used.directional:
        return "not declared", "it does not give them"
    if not bench.model.exchange:
        how = '`interface="model-exchange"`, or `--interface model-exchange` on the command line'
        return "untried", f"hocket asks for them in model exchange only: {how}"
    if bench.model.isolate:
        return "untried", "hocket asks for them in its own process only, and a second instance there ends it"
    if refuted := bench.refute_claim("it gives them", DIRECTIONAL[bench.major]):
        return refuted
    found: list[tuple[Array, str]] = []
    for kind in (Fmu, _WithoutDirectional):
        with bench.simulator(remake_fmu(bench.model, kind=kind, method="heun")) as simulator:
            t = bench.time(len(bench.walk(simulator, min(bench.repeatable_steps, 3))))
            bench.note(f"getting directional derivatives at {t:.6g} s")
            found.append(simulator.slopes(bench.u(2)))
    (told, doubt), (seen, _) = found
    if not told.size:
        return "untried", "there is nothing to differentiate"
    if doubt:
        return "false", doubt
    size, apart = f"{told.shape[0]} x {told.shape[1]}", float(np.max(relative_differences(told, seen)))
    return "true", f"{size}; differences show the same up to {apart:.2g}"


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
    """Return what is to be said where there can be no feedthrough."""
    if bench.model.inputs and bench.model.outputs:
        return None
    return "not declared", f"it has no {'inputs' if bench.model.outputs else 'outputs'}"


def check_feedthrough(bench: ProbeBench) -> Found:
    """Compare the direct feedthrough with that declared."""
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
            pair = f"`{port.name}` to `{output.name}`"
            declared += allowed
            if not allowed and (seen.between[row, column] or (seen.first[row, column] and not freely)):
                lies.append(pair)
            elif allowed and not (seen.between[row, column] or seen.first[row, column]):
                idle.append(pair)
    part = "" if seen.tried == len(inputs) else f"; only {seen.tried} of {len(inputs):,} inputs were tried"
    if lies:
        return "false", f"it has direct feedthrough that it does not declare: {_list_pairs(lies)}{part}"
    reacted = declared - len(idle)
    if not told:
        taken = "it declares no dependencies: every input is taken to have direct feedthrough to every output"
        return "not declared", f"{taken}; {reacted} of {count(declared, 'pair')} seen{part}"
    if not declared:
        return "true", f"it declares no direct feedthrough, and has none{part}"
    never = f"; never seen: {_list_pairs(idle)}" if idle else ""
    return "true", f"{count(reacted, 'pair')} seen of {declared} declared, none besides{never}{part}"


def _list_pairs(pairs: list[str]) -> str:
    return list_names(pairs, 4, "")


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
    return "not declared", f"there is no direct feedthrough{lost}"
