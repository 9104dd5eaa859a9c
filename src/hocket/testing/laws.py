"""A law that does not hold, and when numbers are the same.

In:  the name of a law and what was seen; numbers
Out: an AssertionError; yes or no
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from hocket.model.extrapolators import shift_origin, value_at
from hocket.model.protocols import Array, Extrapolator, Model, Sample, Simulator


class LawBroken(AssertionError):  # noqa: N818 - it is read as a sentence
    """A law does not hold: `law` names it."""

    def __init__(self, law: str, what: str):
        self.law = law
        super().__init__(f"law broken: {law}\n  {what}")


def arrays_equal(ones: Sequence[Array], others: Sequence[Array]) -> bool:
    """Say whether the arrays hold the same numbers."""
    return all(np.array_equal(one, other, equal_nan=True) for one, other in zip(ones, others, strict=True))


def check_extrapolator(extrapolator: Extrapolator) -> None:
    """Check every law of an extrapolator; raises LawBroken for the first that does not hold."""
    for law, faults in EXTRAPOLATOR_LAWS.items():
        for what in faults(extrapolator):
            raise LawBroken(law, what)


_TIMES = np.array([-2.5, -2.1, -1.3, -1.2, -0.7, -0.45, -0.1, 0.0, 0.25, 0.8])
"""Uneven, on both sides of the start of the step; repeated further back if more are needed."""


def _make_samples(
    values: Callable[[float], Any], slopes: Callable[[float], Any] | None, count: int
) -> list[Sample]:
    times = np.concatenate([_TIMES - 4.0 * back for back in range(count // len(_TIMES), -1, -1)])[-count:]
    return [Sample(float(s), values(float(s)), slopes(float(s)) if slopes else None) for s in times]


def _fit_history(extrapolator: Extrapolator, samples: Sequence[Sample]) -> tuple[list[Any], Any]:
    """Return the last fit over a history, with memory carried along as the engine does."""
    w = extrapolator.start(samples[0].value)
    coefficients: list[Any] = []
    for end in range(1, len(samples) + 1):
        coefficients, w = extrapolator.fit(list(samples[max(0, end - extrapolator.samples) : end]), w)
    return coefficients, w


def _polynomial_samples(extrapolator: Extrapolator, degree: int, scale: Any = 1.0) -> list[Sample]:
    """Return samples of a polynomial of this degree, with slopes if they are wanted."""
    coefficients = [scale * (1.5 - 0.7 * power) for power in range(degree + 1)]
    rates = [power * coefficient for power, coefficient in enumerate(coefficients)][1:] or [0.0 * scale]
    slopes = (lambda s: value_at(rates, s)) if extrapolator.slopes else None
    return _make_samples(lambda s: value_at(coefficients, s), slopes, extrapolator.samples + 3)


def _check_cold_start(extrapolator: Extrapolator) -> Iterator[str]:
    for count in range(1, extrapolator.samples + 1):
        samples = _make_samples(lambda _: 2.5, (lambda _: 0.0) if extrapolator.slopes else None, count)
        try:
            value = value_at(_fit_history(extrapolator, samples)[0], 0.5)
        except (IndexError, ValueError, TypeError, ZeroDivisionError) as error:
            yield f"fit() of the first {count} samples raised {type(error).__name__}: {error}"
            return
        if abs(value - 2.5) > 1e-9:
            yield f"{count} samples of the constant 2.5 give {value}"


def _check_degree(extrapolator: Extrapolator) -> Iterator[str]:
    for degree in range(extrapolator.degree + 1):
        samples = _polynomial_samples(extrapolator, degree)
        coefficients, _ = _fit_history(extrapolator, samples)
        if len(coefficients) > extrapolator.degree + 1:
            yield f"{len(coefficients)} coefficients, more than degree {extrapolator.degree} has"
        wanted = [1.5 - 0.7 * power for power in range(degree + 1)]
        for s in (0.0, 0.5, 1.0):
            value, true = value_at(coefficients, s), value_at(wanted, s)
            if not abs(value - true) <= 1e-6 * (1.0 + abs(true)):
                yield f"a polynomial of degree {degree} is {value} instead of {true} at {s} s"


def _check_entrywise(extrapolator: Extrapolator) -> Iterator[str]:
    scales = np.array([1.0, -0.3, 7.1])
    together, _ = _fit_history(extrapolator, _polynomial_samples(extrapolator, extrapolator.degree, scales))
    for index, scale in enumerate(scales):
        alone, _ = _fit_history(extrapolator, _polynomial_samples(extrapolator, extrapolator.degree, scale))
        if [float(row[index]) for row in together] != [float(value) for value in alone]:
            yield f"a row of values gives {together}, its entry {index} alone {alone}"


def _check_fit_pure(extrapolator: Extrapolator) -> Iterator[str]:
    samples = _polynomial_samples(extrapolator, extrapolator.degree + 1, np.array([1.0, -0.3, 7.1]))
    _, w = _fit_history(extrapolator, samples)
    newest = samples[-extrapolator.samples :]
    kept = [(sample.s, np.copy(sample.value)) for sample in newest], np.copy(w)
    first, second = (extrapolator.fit(newest, w) for _ in range(2))
    if not arrays_equal(first[0], second[0]) or not np.array_equal(np.copy(w), kept[1]):
        yield "fit() repeated gives other coefficients, or changes the memory"
    if len(newest) != len(kept[0]) or not all(
        sample.s == s and np.array_equal(sample.value, value)
        for sample, (s, value) in zip(newest, kept[0], strict=True)
    ):
        yield "fit() changes the samples"


EXTRAPOLATOR_LAWS: dict[str, Callable[[Extrapolator], Iterator[str]]] = {
    "a cold start makes do with fewer samples": _check_cold_start,
    "polynomials up to the degree are reproduced": _check_degree,
    "rows of values are treated entry by entry": _check_entrywise,
    "fit() is pure": _check_fit_pure,
}
"""What `check_extrapolator` checks, in this order."""


def check_simulator(
    model: Model, t: float = 0.0, h: float = 0.1, u: ArrayLike | None = None, seed: int = 0
) -> None:
    """Check every law on simulators of the model; raises LawBroken for the first that does not hold.

    Steps of h seconds are made from t on, about fifty in all; a model that declares an order makes some six
    hundred smaller ones. `u` are input values or coefficients that the model can bear; None: the ports' start
    values with random numbers of the size of one added.
    """
    bench = _LawBench(model, t, h, u, seed)
    for law, faults in LAWS.items():
        for what in faults(bench):
            raise LawBroken(law, what)


class _LawBench:
    """A model with inputs to try it under."""

    def __init__(self, model: Model, t: float, h: float, u: ArrayLike | None, seed: int):
        self.model, self.t, self.h = model, t, h
        self.rng = np.random.default_rng(seed)
        self.width = len(model.inputs)
        honoured = model.capabilities.input_degree
        self.degree = (8 if honoured is None else honoured) if self.width else 0
        if u is None:
            starts = [port.start or 0.0 for port in model.inputs]
            u = np.array(starts) + self.rng.uniform(0.5, 1.5, self.width)
        given = np.array(u, dtype=float)
        self.u: Array = given.reshape(-1, self.width) if self.width else np.zeros((1, 0))
        if len(self.u) == 1 and self.degree:
            self.u = np.vstack([self.u, self.noise() / (10.0 * h)])

    def noise(self) -> Array:
        """Return a random number for each input, of the size of its value and never small."""
        size = 0.3 * self.rng.uniform(0.5, 1.0, self.width) * self.rng.choice([-1.0, 1.0], self.width)
        return np.asarray(size * (1.0 + np.abs(self.u[0] if hasattr(self, "u") else 0.0)))

    @contextmanager
    def simulator(self) -> Iterator[Any]:
        """Give a started simulator; close it afterwards."""
        simulator = self.model.open()
        try:
            simulator.start(self.t)
            yield simulator
        finally:
            simulator.close()

    def outputs(self, simulator: Simulator, t: float, u: Array) -> Array:
        """Return a copy of the outputs, as numbers."""
        return np.array(simulator.output(t, u), dtype=float).reshape(-1)

    def steps(self, simulator: Simulator, t: float, count: int, u: Array | None = None) -> list[Array]:
        """Make steps; return the outputs after each, under the inputs of that step."""
        inputs, seen = self.u if u is None else u, []
        for _ in range(count):
            reached = simulator.step(t, self.h, inputs.copy())
            seen.append(self.outputs(simulator, reached, _shift_coefficients(inputs, reached - t)))
            t = reached
        return seen

    def after(self, simulator: Simulator, count: int) -> float:
        """Make steps from the start; return the time reached."""
        t = self.t
        for _ in range(count):
            t = simulator.step(t, self.h, self.u.copy())
        return t

    def trace(self, h: float, parts: int, curve: Array) -> Array:
        """Return the outputs after each of eight spans h, each made in so many parts."""
        rows = []
        with self.simulator() as simulator:
            for number in range(8 * parts):
                begin, end = number * h / parts, (number + 1) * h / parts
                simulator.step(self.t + begin, h / parts, _shift_coefficients(curve, begin))
                if (number + 1) % parts == 0:
                    rows.append(self.outputs(simulator, self.t + end, _shift_coefficients(curve, end)))
        return np.array(rows)


def _shift_coefficients(u: Array, s: float) -> Array:
    """Return the coefficients about a time s seconds later."""
    return np.array(shift_origin(list(u), s))


def _check_output_count(bench: _LawBench) -> Iterator[str]:
    with bench.simulator() as simulator:
        wanted, got = len(bench.model.outputs), bench.outputs(simulator, bench.t, bench.u).size
        if wanted != got:
            yield f"output() gives {got} numbers for {wanted} ports"


def _check_step_time(bench: _LawBench) -> Iterator[str]:
    with bench.simulator() as simulator:
        t = bench.t
        for _ in range(3):
            reached = simulator.step(t, bench.h, bench.u.copy())
            slack = 1e-12 * max(1.0, abs(t), bench.h)
            if not isinstance(reached, (int, float)) or not t - slack <= reached <= t + bench.h + slack:
                yield f"step({t!r}, {bench.h!r}, u) returned {reached!r}"
                return
            t = reached


def _check_output_pure(bench: _LawBench) -> Iterator[str]:
    with bench.simulator() as simulator:
        t = bench.after(simulator, 2)
        given = bench.u.copy()
        first = bench.outputs(simulator, t, given)
        if not np.array_equal(given, bench.u):
            yield "output() changes u, which belongs to the caller"
        for why, other in (
            ("repeated", bench.u),
            ("called with other inputs between", bench.u + bench.noise()),
        ):
            bench.outputs(simulator, t, other.copy())
            again = bench.outputs(simulator, t, bench.u.copy())
            if not arrays_equal([first], [again]):
                yield f"output() {why} gives {again} after {first}"


def _check_independence(bench: _LawBench) -> Iterator[str]:
    with bench.simulator() as one, bench.simulator() as other:
        before = bench.outputs(one, bench.t, bench.u), bench.outputs(other, bench.t, bench.u)
        again = bench.outputs(one, bench.t, bench.u)
        seen = bench.steps(one, bench.t, 3)
        if not arrays_equal(before, [again, bench.outputs(other, bench.t, bench.u)]):
            yield "stepping one simulator changes the outputs of another"
        elif not arrays_equal(seen, bench.steps(other, bench.t, 3)):
            yield "two simulators of one model answer differently to the same steps"


def _check_output_passive(bench: _LawBench) -> Iterator[str]:
    ends = []
    for asked in (False, True):
        with bench.simulator() as simulator:
            t = bench.t
            for _ in range(3):
                if asked:
                    bench.outputs(simulator, t, bench.u + bench.noise())
                t = simulator.step(t, bench.h, bench.u.copy())
            ends.append(bench.outputs(simulator, t, bench.u))
    if not arrays_equal(ends[:1], ends[1:]):
        yield f"three steps end at {ends[0]}, with output() called between them at {ends[1]}"


def _check_restart(bench: _LawBench) -> Iterator[str]:
    with bench.simulator() as simulator:
        before = bench.outputs(simulator, bench.t, bench.u)
        seen = bench.steps(simulator, bench.t, 3)
        simulator.start(bench.t)
        again = bench.outputs(simulator, bench.t, bench.u)
        if not arrays_equal([before], [again]):
            yield f"after start() the outputs are {again}, at first they were {before}"
        elif not arrays_equal(seen, bench.steps(simulator, bench.t, 3)):
            yield "after start() the same steps give other outputs"


def _check_rollback(bench: _LawBench) -> Iterator[str]:
    if not bench.model.capabilities.rollback:
        return
    with bench.simulator() as simulator:
        if not (hasattr(simulator, "save") and hasattr(simulator, "restore")):
            yield "capabilities.rollback is declared, but save() or restore() is missing"
            return
        early = simulator.save()
        before = bench.outputs(simulator, bench.t, bench.u)
        t = bench.after(simulator, 2)
        state = simulator.save()
        seen = bench.steps(simulator, t, 3)
        for time in ("first", "second", "third"):
            simulator.restore(state)
            if not arrays_equal(seen, bench.steps(simulator, t, 3)):
                yield f"after the {time} restore() of a state the same steps give other outputs"
                return
        simulator.restore(early)
        if not arrays_equal([before], [bench.outputs(simulator, bench.t, bench.u)]):
            yield "a state saved earlier has changed since"


def _check_feedthrough(bench: _LawBench) -> Iterator[str]:
    with bench.simulator() as simulator:
        for moment, count in (("at the start", 0), ("after three steps", 3)):
            t = bench.after(simulator, count)
            before = bench.outputs(simulator, t, bench.u)
            for column, port in enumerate(bench.model.inputs):
                for _ in range(3):
                    u = bench.u.copy()
                    u[:, column] += bench.noise()[column]
                    changed = bench.outputs(simulator, t, u) != before
                    for output, moves in zip(bench.model.outputs, changed, strict=True):
                        if moves and port.name not in output.feedthrough:
                            yield f"{moment} `{output.name}` reacts to `{port.name}`, which it does not list"


def _check_variable_step(bench: _LawBench) -> Iterator[str]:
    if not bench.model.capabilities.variable_step:
        return
    with bench.simulator() as simulator:
        t = bench.t
        for part in (0.5, 0.5, 0.3, 0.7):
            try:
                t = simulator.step(t, part * bench.h, bench.u.copy())
            except Exception as error:
                raise LawBroken(
                    "any step is accepted, if declared",
                    f"a step of {part} h raised {type(error).__name__}: {error}",
                ) from error
    yield from ()


def _check_input_degree(bench: _LawBench) -> Iterator[str]:
    declared = bench.model.capabilities.input_degree
    if not declared or not bench.width:
        return
    still = np.zeros((declared + 1, bench.width))
    still[0] = bench.u[0]
    value, bent = still.copy(), still.copy()
    value[0] += bench.noise()
    for power in range(1, declared + 1):
        bent[power] = bench.noise() / bench.h**power
    ends = []
    for u in (still, value, bent):
        with bench.simulator() as simulator:
            t = bench.t
            for _ in range(3):
                t = simulator.step(t, bench.h, u.copy())
            ends.append(bench.outputs(simulator, t, still))
    if not arrays_equal(ends[:1], ends[1:2]) and arrays_equal(ends[:1], ends[2:]):
        yield f"input_degree is {declared}, but only the values of the inputs have an effect"


def _check_slopes(bench: _LawBench) -> Iterator[str]:
    if not bench.model.capabilities.slopes:
        return
    for count in (0, 2):
        with bench.simulator() as simulator:
            if not hasattr(simulator, "slope"):
                yield "capabilities.slopes is declared, but slope() is missing"
                return
            t = bench.after(simulator, count)
            slope = np.array(simulator.slope(t, bench.u), dtype=float).reshape(-1)
            if not bench.model.capabilities.variable_step:
                continue
            e, y = 1e-4 * bench.h, [bench.outputs(simulator, t, bench.u)]
            for number in range(2):
                simulator.step(t + number * e, e, _shift_coefficients(bench.u, number * e))
                y.append(
                    bench.outputs(
                        simulator, t + (number + 1) * e, _shift_coefficients(bench.u, (number + 1) * e)
                    )
                )
        estimate = (4.0 * y[1] - 3.0 * y[0] - y[2]) / (2.0 * e)
        bend = np.abs(y[2] - 2.0 * y[1] + y[0]) / e
        allowed = 1e-3 * (np.abs(slope) + np.abs(estimate)) + 2.0 * bend + 1e-6 * np.max(np.abs(y)) / bench.h
        for port, wrong in zip(bench.model.outputs, np.abs(slope - estimate) > allowed + 1e-12, strict=True):
            if wrong:
                yield f"slope() at {t:g} s is {slope}, a small step shows {estimate}: see `{port.name}`"


def _check_order(bench: _LawBench) -> Iterator[str]:
    """Eight spans, halved; a model with its own micro step shows its order only below that."""
    capabilities, own = bench.model.capabilities, getattr(bench.model, "step", None)
    if capabilities.order is None or not capabilities.variable_step:
        return
    h = min(bench.h, float(own)) if isinstance(own, Fraction) else bench.h
    powers = range(1, min(3, bench.degree) + 1)
    curve = np.array([bench.u[0], *(bench.noise() / (8.0 * h) ** power for power in powers)])
    finest = bench.trace(h, 64, curve)
    errors = [
        float(np.max(np.abs(bench.trace(h, parts, curve) - finest), initial=0.0)) for parts in (1, 2, 4, 8)
    ]
    floor = 1e-11 * float(np.max(np.abs(finest), initial=0.0))
    shown = [
        math.log2(coarse / fine)
        for coarse, fine in pairwise(errors)
        if math.isfinite(coarse) and min(coarse, fine) > floor
    ]
    if shown and not any(abs(order - capabilities.order) <= 0.25 for order in shown):
        measured = ", ".join(f"{order:.2f}" for order in shown)
        yield f"order {capabilities.order} is declared, halving the step shows {measured}"


Law: TypeAlias = Callable[[_LawBench], Iterator[str]]

LAWS: dict[str, Law] = {
    "there is a number for every output": _check_output_count,
    "step() returns a time within the step": _check_step_time,
    "output() is pure": _check_output_pure,
    "simulators of one model are independent": _check_independence,
    "output() leaves the state alone": _check_output_passive,
    "start() returns to the initial state": _check_restart,
    "restore() returns to the saved state, if declared": _check_rollback,
    "outputs react at once only to the inputs they list": _check_feedthrough,
    "any step is accepted, if declared": _check_variable_step,
    "input coefficients are honoured up to the declared degree": _check_input_degree,
    "slope() is the time derivative of the outputs, if declared": _check_slopes,
    "halving the step shows the declared order": _check_order,
}
"""What `check_simulator` checks, in this order."""
