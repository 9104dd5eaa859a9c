"""The laws of extrapolators.

In:  an Extrapolator
Out: nothing, or a LawBroken
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from hocket.model import Extrapolator, Sample
from hocket.signals import value_at
from hocket.testing.laws import LawBroken, arrays_equal


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
