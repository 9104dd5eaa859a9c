"""Iterations: a step is made again until what it hands back agrees with what it was given.

In:  a Repeat, and a level whose simulators were saved before it
Out: samples that agree with themselves; or a ConvergenceError with the residuals on the way

The native engine repeats every operation here in the same order, so that the bits agree. In the linear
reading a Repeat to a tolerance is its limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hocket.engine.algebraic_loops import (
    SLOPE,
    VALUE,
    SingularError,
    Unknown,
    Unknowns,
    linear_fixed_point,
    relative_residual,
    solve_linear,
)
from hocket.engine.protocol import LiveLevel
from hocket.errors import ConvergenceError, ScenarioError, list_names
from hocket.model.extrapolators import Hold, Polynomial, interpolate_samples, value_at
from hocket.model.plain_state import is_record
from hocket.model.protocols import Sample, Value
from hocket.plan import Body, Repeat
from hocket.plan.accelerators import Accelerator, Newton, PredictingAccelerator
from hocket.plan.instructions import feedback_drives

GROWING = 1e-3
"""A residual below this has not grown: it got stuck."""
GROWN = 1e12
"""A residual that has become so much larger than the first will not come back."""


@is_record
@dataclass(slots=True)
class SweepCounts:
    """How often the steps of a level were made again."""

    repeats: int = 0
    total: int = 0
    most: int = 0

    def add(self, sweeps: int) -> None:
        """Count one Repeat."""
        self.repeats += 1
        self.total += sweeps
        self.most = max(self.most, sweeps)


def feedback_unknowns(level: LiveLevel, body: Body) -> list[Unknown]:
    """Return what a repetition takes from the one before it: values, and slopes where they are used.

    They are sorted by name: sums over them must not depend on how models are listed.
    """
    found: set[Unknown] = set()
    for drive in feedback_drives(body, level.wiring):
        found.add((drive.child, drive.port, VALUE))
        if (drive.extrapolation or Hold()).slopes:
            found.add((drive.child, drive.port, SLOPE))
    return sorted(found, key=lambda unknown: (unknown[2], level.wiring.output_path(*unknown[:2])))


def run_repeat(level: LiveLevel, instruction: Repeat) -> None:
    """Do a body until what it hands back agrees with what it was given."""
    level.repeating += 1
    try:
        _run_repetitions(level, instruction)
    finally:
        level.repeating -= 1


def _run_repetitions(level: LiveLevel, instruction: Repeat) -> None:
    unknowns = level.unknowns_of(instruction)
    predicted, samples = predict_unknowns(level, instruction, unknowns)
    level.run(instruction.body)
    if not unknowns.places:
        level.sweeps.add(1)
    elif np.ndim(unknowns.newest()[0]) and (instruction.until is not None or predicted):
        _solve_limit(level, instruction, unknowns, predicted)
    else:
        level.sweeps.add(_iterate_body(level, instruction, unknowns, predicted, samples))


def check_jacobian(instruction: Repeat, unknowns: Unknowns) -> Unknowns:
    """Return what repetitions hand to each other; ScenarioError where a given Jacobian does not fit."""
    led = instruction.accelerate
    rows = led.jacobian if isinstance(led, Newton) else None
    if rows is not None and len(rows) != len(unknowns.places):
        names = list_names((unknowns.name(place) for place in unknowns.places), 6) or "nothing"
        size = f"{len(rows)} x {len(rows)}"
        what = f"a Jacobian of {size}, and {len(unknowns.places)} numbers are handed back: {names}"
        raise ScenarioError(what, "jacobian", "a row for each, sorted by name", "`hocket.interface_jacobian`")
    return unknowns


def leads_predicted(instruction: Repeat) -> bool:
    """Return whether a fixed number of iterations begins with what the extrapolation predicts."""
    led = instruction.accelerate
    return instruction.until is None and led is not None and led.predicts and instruction.at_most > 1


def predicted_samples(level: LiveLevel, instruction: Repeat) -> list[int]:
    """Return how many samples predict each value that is handed back; none are needed: empty.

    What is predicted must be what the inputs are at the end of the first iteration. That holds for holds and
    polynomials, if all that an output drives extrapolate it alike, and in whole steps.
    """
    if not leads_predicted(instruction):
        return []
    found: dict[Unknown, int] = {}
    for drive in feedback_drives(instruction.body, level.wiring):
        extrapolator = drive.extrapolation or Hold()
        name = f"{level.name(drive.child)}.{level.wiring.models[drive.child].outputs[drive.port].name}"
        if not isinstance(extrapolator, Hold | Polynomial):
            what = f"Newton's method predicts no value of `{name}` through {type(extrapolator).__name__}"
            raise ScenarioError(what, "accelerate", "hold, or a polynomial through values", _TO_TOLERANCE)
        samples = found.setdefault((drive.child, drive.port, VALUE), extrapolator.samples)
        if samples != extrapolator.samples:
            what = f"`{name}` is extrapolated in two ways, and Newton's method predicts one value of it"
            raise ScenarioError(what, "accelerate", "one extrapolation of an output", _TO_TOLERANCE)
    return [found[place] for place in level.unknowns_of(instruction).places]


_TO_TOLERANCE = "an iteration to a tolerance, which needs no prediction"


def predict_unknowns(level: LiveLevel, instruction: Repeat, unknowns: Unknowns) -> tuple[list[Value], int]:
    """Return the values that the extrapolation predicts, where they are looked at, and from how many samples.

    They are those at the end of the step.
    """
    predicted: list[Value] = []
    used = 0
    end = level.clock.span(level.reached - level.now)
    samples = predicted_samples(level, instruction)
    for (child, port, _), count in zip(unknowns.places, samples, strict=bool(samples)):
        ring = list(level.memory.rings[child][port])[-count:]
        past = [Sample(level.clock.span(at - level.now), value, slope) for at, value, slope in ring]
        predicted.append(value_at(interpolate_samples(past), end))
        used += len(past)
    return predicted, used


def _iterate_body(
    level: LiveLevel, instruction: Repeat, unknowns: Unknowns, predicted: list[Value], samples: int
) -> int:
    """Repeat a body that was done once; return how often it was done."""
    until, at_most = instruction.until, instruction.at_most
    accelerator = level.accelerator_of(instruction)
    residuals: list[float] = []
    first: list[Value] = []
    count = 1

    def sweep(numbers: list[Value]) -> list[Value]:
        nonlocal count
        count += 1
        unknowns.put(numbers)
        level.run(instruction.body)
        return found_everywhere()

    def found_everywhere() -> list[Value]:
        if level.traffic is not None:
            level.traffic.flush()
        return unknowns.newest()

    given = found_everywhere()
    accelerator.begin()
    if predicted and isinstance(accelerator, PredictingAccelerator):
        accelerator.check_step(level.reached - level.now, samples)
        try:
            given = accelerator.next_guess(predicted, given, sweep)
        except SingularError:
            raise no_agreement(level, unknowns) from None
    for turn in range(1, at_most):
        found = sweep(given)
        if until is not None:
            change = [a - b for a, b in zip(found, given, strict=True)]
            first = first or found
            if relative_residual(change, found) <= until:
                return count
            # against the first values: beside values that grow too, growth would not show
            residuals.append(relative_residual(change, first))
            if not residuals[-1] <= GROWN * max(1.0, residuals[0]):
                break
        if turn + 1 < at_most:
            try:
                given = accelerator.next_guess(given, found, sweep)
            except SingularError:
                break
        elif predicted and isinstance(accelerator, PredictingAccelerator):
            accelerator.finish(given, found)
    if until is not None:
        raise no_agreement(level, unknowns, until, residuals, instruction.accelerate)
    return count


def _solve_limit(level: LiveLevel, instruction: Repeat, unknowns: Unknowns, predicted: list[Value]) -> None:
    """Leave the level where a linear iteration ends, if it ends; its matrix is kept to be judged.

    Newton's method is there after one correction, unless its matrix is another one: then it is followed.
    """

    def sweep(numbers: Sequence[Value]) -> list[Value]:
        unknowns.put(numbers)
        level.run(instruction.body)
        return unknowns.newest()

    led = instruction.accelerate
    try:
        if instruction.until is None and isinstance(led, Newton) and led.jacobian is not None:
            matrix = np.eye(len(led.jacobian)) - np.array(led.jacobian)
            given, found = predicted, unknowns.newest()
            for _ in range(1, instruction.at_most):
                residual = [f - g for f, g in zip(found, given, strict=True)]
                change = solve_linear(matrix.tolist(), residual)
                given = [g + c for g, c in zip(given, change, strict=True)]
                found = sweep(given)
            return
        solution, matrix = linear_fixed_point(sweep, unknowns.newest())
    except SingularError:
        raise no_agreement(level, unknowns) from None
    if instruction.until is not None:
        level.sweep_matrix = matrix
    sweep(solution)


def no_agreement(
    level: LiveLevel,
    unknowns: Unknowns,
    until: float = 0.0,
    residuals: Sequence[float] = (),
    led: Accelerator | None = None,
) -> ConvergenceError:
    """Return the error for an iteration that does not converge."""
    listed = list_names((unknowns.name(place) for place in unknowns.places if place[2] == VALUE), 4)
    where = f"`{level.path}`, " if level.path else ""
    t = level.clock.time(level.now)
    if not residuals:
        return ConvergenceError(
            f"the iteration of {listed} has no end: there is no solution, or no single one",
            where=f"{where}step from t = {t!r} s",
        )
    shown = ", ".join(f"{each:.2g}" for each in residuals[-6:])
    grows = not residuals[-1] < max(GROWING, 0.5 * residuals[0])
    outcome = "does not contract" if grows else "did not converge"
    return ConvergenceError(
        f"the iteration of {listed} {outcome} in {len(residuals) + 1} iterations",
        where=f"{where}step from t = {t!r} s; the last residuals: {shown}",
        expected=f"a residual of {until:g}",
        hint=_acceleration_advice(led) + ("a shorter step" if grows else "more iterations"),
    )


def _acceleration_advice(led: Accelerator | None) -> str:
    """Return the advice to lead sweeps in a better way, unless it was followed."""
    better = "quasi-newton" if led is None else led.alternative
    return f'accelerate = "{better}"; ' if better else ""
