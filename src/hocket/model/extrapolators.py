"""How 3.0 N at 0.49 s becomes a line over [0.50, 0.51]: polynomials through time-stamped samples.

In:  samples of one signal, oldest first, with times in seconds from the start of the step
Out: coefficients in powers of that time

Every operation here is repeated by the native engine in the same order, so that the bits agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from hocket.model.arguments import expect, is_number, is_whole, set_fields
from hocket.model.protocols import Array, Sample, Value


def newton(nodes: Sequence[float], differences: list[Value]) -> list[Value]:
    """Return monomial coefficients of the Newton polynomial with these nodes and divided differences."""
    last = len(differences) - 1
    coefficients = list(differences)
    for k in range(last - 1, -1, -1):
        for j in range(k, last):
            coefficients[j] = coefficients[j] - nodes[k] * coefficients[j + 1]
    return coefficients


def shift_origin(coefficients: Sequence[Value] | Array, ds: float) -> list[Value]:
    """Return the same polynomial in powers of (s - ds): a new origin, the same curve."""
    moved = list(coefficients)
    if ds != 0.0:
        for k in range(len(moved) - 1):
            for j in range(len(moved) - 2, k - 1, -1):
                moved[j] = moved[j] + ds * moved[j + 1]
    return moved


def value_at(coefficients: Sequence[Value] | Array, s: float) -> Value:
    """Return the polynomial's value at s."""
    value: Value = coefficients[-1]
    for power in range(len(coefficients) - 2, -1, -1):
        value = value * s + coefficients[power]
    return value


def interpolate_samples(samples: Sequence[Sample]) -> list[Value]:
    """Return the coefficients of the polynomial through all these samples."""
    nodes = [sample.s for sample in samples]
    table = [sample.value for sample in samples]
    for k in range(1, len(table)):
        for j in range(len(table) - 1, k - 1, -1):
            table[j] = (table[j] - table[j - 1]) / (nodes[j] - nodes[j - k])
    return newton(nodes, table)


class _Extrapolator:
    """An extrapolator that fits values only, and remembers nothing from step to step."""

    __slots__ = ()
    slopes = False

    def start(self, y0: Value) -> Value:
        """Keep no memory."""


@dataclass(frozen=True, slots=True)
class Hold(_Extrapolator):
    """The newest value, held."""

    samples = 1
    degree = 0

    def fit(self, samples: Sequence[Sample], w: Value) -> tuple[list[Value], Value]:
        """Return the newest value."""
        return [samples[-1].value], w


@dataclass(frozen=True, slots=True)
class Latch(_Extrapolator):
    """The newest value not later than the start of the step: what a sampled device sees, and shows."""

    samples = 2
    degree = 0

    def fit(self, samples: Sequence[Sample], w: Value) -> tuple[list[Value], Value]:
        """Return the value at the start of the step, though a later one may be known."""
        known = [sample.value for sample in samples if sample.s <= 0.0]
        return [known[-1] if known else samples[0].value], w


@dataclass(frozen=True, slots=True)
class Polynomial(_Extrapolator):
    """The polynomial of this degree through the newest samples; fewer samples give a lower degree."""

    degree: Annotated[int, "0 to 8"]

    def __post_init__(self) -> None:
        fits = is_whole(self.degree) and self.degree <= 8
        expect(fits, "degree", self.degree, "0 to 8", where="Polynomial")
        set_fields(self, degree=int(self.degree))

    @property
    def samples(self) -> int:
        """One more than the degree."""
        return self.degree + 1

    def fit(self, samples: Sequence[Sample], w: Value) -> tuple[list[Value], Value]:
        """Return Newton's polynomial."""
        return interpolate_samples(samples), w


@dataclass(frozen=True, slots=True)
class Hermite(_Extrapolator):
    """Through the newest samples and their slopes: with one sample a tangent, with two a cubic."""

    samples: Annotated[int, "1 to 4, each with its slope"] = 1
    slopes = True

    def __post_init__(self) -> None:
        fits = is_whole(self.samples, 1) and self.samples <= 4
        expect(fits, "samples", self.samples, "1 to 4", where="Hermite")
        set_fields(self, samples=int(self.samples))

    @property
    def degree(self) -> int:
        """Two conditions per sample."""
        return 2 * self.samples - 1

    def fit(self, samples: Sequence[Sample], w: Value) -> tuple[list[Value], Value]:
        """Return Newton's polynomial with every node doubled."""
        nodes = [sample.s for sample in samples for _ in (0, 1)]
        table = [sample.value for sample in samples for _ in (0, 1)]
        for j in range(len(table) - 1, 0, -1):
            if j % 2:
                table[j] = samples[j // 2].slope
            else:
                table[j] = (table[j] - table[j - 1]) / (nodes[j] - nodes[j - 1])
        for k in range(2, len(table)):
            for j in range(len(table) - 1, k - 1, -1):
                table[j] = (table[j] - table[j - 1]) / (nodes[j] - nodes[j - k])
        return newton(nodes, table), w


@dataclass(frozen=True, slots=True)
class Nepce(_Extrapolator):
    """A filtered hold: w' = alpha w + (1 - alpha) y (Glumac & Kovacic, equation 45).

    alpha = 0 is the hold; small negative values often beat it.
    """

    alpha: Annotated[float, "the weight of the past; 0 is the hold"]
    samples = 1
    degree = 0

    def __post_init__(self) -> None:
        expect(is_number(self.alpha), "alpha", self.alpha, "a finite number", where="Nepce")

    def start(self, y0: Value) -> Value:
        """Begin settled at the first value."""
        return y0

    def fit(self, samples: Sequence[Sample], w: Value) -> tuple[list[Value], Value]:
        """Return the filtered value."""
        w = self.alpha * w + (1.0 - self.alpha) * samples[-1].value
        return [w], w


@dataclass(frozen=True, slots=True)
class BalanceCorrection(_Extrapolator):
    """The newest value, held, and what the last hold fell short of, handed on.

    u = y + alpha (mean of y over the last step - y before), the error taken against the uncorrected hold
    (Scharff, Moshagen and Vondrejc 2017). Between samples y is taken to be a line, so with alpha = 1 as much
    flows in a step as with a linear extrapolation; the energy of a bond that is corrected both ways likewise.
    """

    alpha: Annotated[float, "the part that is handed on of what the last hold fell short of"] = 1.0
    samples = 2
    degree = 0

    def __post_init__(self) -> None:
        expect(is_number(self.alpha), "alpha", self.alpha, "a finite number", where="BalanceCorrection")

    def fit(self, samples: Sequence[Sample], w: Value) -> tuple[list[Value], Value]:
        """Return the corrected value; nothing is known to be short at a cold start."""
        newest = samples[-1].value
        if len(samples) == 1:
            return [newest], w
        before = samples[0].value
        return [newest + self.alpha * (0.5 * (before + newest) - before)], w


LINEAR, QUADRATIC, CUBIC = Polynomial(1), Polynomial(2), Polynomial(3)
"""What files and calls name by a word; `hocket.model.registry` has the words."""
