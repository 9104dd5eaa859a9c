"""Whether the derivatives that an FMU takes and gives are what differences show.

In:  a bench
Out: a verdict and a sentence from each check
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hocket.errors import SimulatorError
from hocket.model import Array
from hocket.signals import shift_origin
from hocket.simulators.fmu.facts import FmuInterface
from hocket.simulators.fmu.functions import DIRECTIONAL, INPUT_SLOPES, OUTPUT_SLOPES
from hocket.simulators.fmu.probe.bench import ProbeBench, error_sentence, relative_differences
from hocket.simulators.fmu.probe.findings import INTEGRATED, Found, judge_claim
from hocket.simulators.fmu.probe.words import count
from hocket.simulators.fmu.recipe import Fmu
from hocket.simulators.fmu.remaking import remake_fmu


def check_input_derivatives(bench: ProbeBench) -> Found:
    """Let inputs move during steps, and compare with inputs held during small steps."""
    if bench.model.exchange:
        return INTEGRATED
    if not (bench.used.interpolates_inputs or bench.used.intermediate_update):
        return "not declared", "inputs are held during a step"
    if refuted := bench.refute_claim("it interpolates its inputs", *INPUT_SLOPES[bench.major]):
        return refuted
    if not np.any(bench.real):
        return "untried", "it has no real inputs"
    if bench.model.abilities.input_degree == 0:
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
                u = np.array(shift_origin(list(curve), begin + at * h))[:rows]
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
    """Compare slopes of outputs with differences over three small steps."""
    if bench.model.exchange:
        return INTEGRATED
    if bench.used.output_derivatives < 1:
        return "not declared", "it does not tell slopes"
    if refuted := bench.refute_claim("it tells the slopes of outputs", OUTPUT_SLOPES[bench.major]):
        return refuted
    if not bench.model.abilities.slopes:
        return "untried", "not all outputs are reals"
    few = max(0, min(bench.repeatable_steps, 10) - 3)
    e = 1e-4 * bench.h if bench.used.variable_step else bench.h
    with bench.simulator() as simulator:
        bench.walk(simulator, few)
        t, u = bench.time(few), bench.u(few)
        y = [bench.step(simulator, t + k * e, e, u) for k in range(3)]
        bench.note(f"getting slopes at {t + 3 * e:.6g} s")
        slope = np.array(simulator.slope(t + 3 * e, u), dtype=float)
    estimate = (3.0 * y[2] - 4.0 * y[1] + y[0]) / (2.0 * e)
    bend = np.abs(y[2] - 2.0 * y[1] + y[0]) / e
    noise = 1e-6 * np.max(np.abs(y)) / bench.h + 1e-12
    wrong = ~(np.abs(slope - estimate) <= 1e-3 * (np.abs(slope) + np.abs(estimate)) + 2.0 * bend + noise)
    worst = int(np.argmax(wrong if np.any(wrong) else np.abs(slope - estimate)))
    told = f"the slope of `{bench.names[worst]}` is {slope[worst]:.6g}"
    return judge_claim(not np.any(wrong), f"{told}, differences show {estimate[worst]:.6g}")


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
    if refuted := bench.refute_claim("it gives them", DIRECTIONAL[bench.major]):
        return refuted
    whole = []
    for kind in (Fmu, _WithoutDirectional):
        with bench.simulator(remake_fmu(bench.model, kind=kind, method="heun")) as simulator:
            t = bench.time(len(bench.walk(simulator, min(bench.repeatable_steps, 3))))
            bench.note(f"getting directional derivatives at {t:.6g} s")
            a, b, c, d = simulator.jacobian(t, bench.u(2))
            whole.append(np.block([[a, b], [c, d]]))
    told, seen = whole
    if not told.size:
        return "untried", "there is nothing to differentiate"
    apart = relative_differences(told, seen)
    row, column = np.unravel_index(int(np.argmax(apart)), apart.shape)
    if apart[row, column] <= 1e-5:
        size = f"{told.shape[0]} x {told.shape[1]}"
        return "true", f"{size}; differences show the same up to {np.max(apart):.2g}"
    entry = f"entry ({row + 1}, {column + 1}) is {told[row, column]:.6g}"
    return "false", f"{entry}, differences show {seen[row, column]:.6g}"
