"""Which values uncertain parameters take in the runs of a study, and what the results say of each parameter.

In:  distributions by path, a method, a number of runs, a seed; then one number for each run
Out: a design: values by path for each run; sensitivity indices
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations, product
from math import comb
from typing import Any, Literal, TypeAlias

import numpy as np

from hocket.errors import ScenarioError
from hocket.files.plotting import import_extra
from hocket.model.distributions import Distribution
from hocket.model.protocols import Array

Method: TypeAlias = Literal["latin-hypercube", "monte-carlo", "sobol", "chaos"]
TERMS_PER_RUN = 0.5
"""Terms of a polynomial chaos, as a share of the runs: more would fit the noise."""
HIGHEST_DEGREE = 10


@dataclass(frozen=True, eq=False)
class Design:
    """The values of all runs."""

    method: Method
    uncertain: Mapping[str, Distribution]
    probabilities: Array
    """One row per run, one column per parameter, each in (0, 1)."""

    @property
    def values(self) -> Array:
        """The values of the parameters: one row per run."""
        columns = [
            each.quantile(self.probabilities[:, column])
            for column, each in enumerate(self.uncertain.values())
        ]
        return np.column_stack(columns)

    def parameters(self) -> list[dict[str, float]]:
        """Return the parameters of each run by path."""
        return [dict(zip(self.uncertain, map(float, row), strict=True)) for row in self.values]


@dataclass(frozen=True)
class Sensitivity:
    """How much of the variance of a result comes from a parameter (Sobol 1993; Saltelli et al. 2010)."""

    parameter: str
    first: float
    """From this parameter alone."""
    total: float
    """From it and from all that it has a part in."""
    pairs: Mapping[str, float]
    """From it together with another, by the other."""


def make_design(uncertain: Mapping[str, Distribution], method: Method, runs: int, seed: int) -> Design:
    """Return the design; the number of runs may be smaller than asked for where the method needs a grid."""
    from scipy.stats import qmc

    count = len(uncertain)
    match method:
        case "monte-carlo":
            p = np.random.default_rng(seed).random((runs, count))
        case "sobol":
            p = _saltelli_sample(count, runs, seed)
        case "latin-hypercube" | "chaos":
            p = qmc.LatinHypercube(count, seed=seed).random(runs)
        case _:
            known = '"latin-hypercube", "monte-carlo", "sobol" or "chaos"'
            raise ScenarioError(f"there is no method {method!r}", "method", known)
    tiny = np.finfo(float).eps
    return Design(method, dict(uncertain), np.clip(p, tiny, 1.0 - tiny))


def _problem(count: int) -> dict[str, Any]:
    return {"num_vars": count, "names": [str(k) for k in range(count)], "bounds": [[0.0, 1.0]] * count}


def _saltelli_sample(count: int, runs: int, seed: int) -> Array:
    """Return base samples in a number that is a power of two, as Sobol sequences ask for."""
    base = runs // (2 * count + 2)
    if base < 2:
        expected = f"at least {2 * (2 * count + 2)} runs for {count} parameters"
        raise ScenarioError(f"{runs} runs are too few for Sobol indices", "runs", expected)
    sample = import_extra("SALib.sample.sobol", "study").sample
    power = 2 ** (base.bit_length() - 1)
    return np.asarray(sample(_problem(count), power, calc_second_order=True, seed=seed), dtype=float)


def find_sensitivities(design: Design, results: Array) -> list[Sensitivity]:
    """Return the indices of one result per run; empty where the method gives none, or nothing varies."""
    if not np.isfinite(results).all() or np.ptp(results) == 0.0:
        return []
    if design.method == "sobol":
        return _sobol_indices(design, results)
    return _chaos_indices(design, results) if design.method == "chaos" else []


def _sobol_indices(design: Design, results: Array) -> list[Sensitivity]:
    names = list(design.uncertain)
    analyse = import_extra("SALib.analyze.sobol", "study").analyze
    found = analyse(_problem(len(names)), results, calc_second_order=True, seed=1, print_to_console=False)
    pairs = np.triu(np.nan_to_num(found["S2"]), 1)
    both = pairs + pairs.T
    return [
        Sensitivity(
            name,
            float(found["S1"][k]),
            float(found["ST"][k]),
            {other: float(both[k, j]) for j, other in enumerate(names) if j != k},
        )
        for k, name in enumerate(names)
    ]


def chaos_degree(count: int, runs: int) -> int:
    """Return the total degree of the polynomials that so many runs determine."""
    degree = 1
    while degree < HIGHEST_DEGREE and comb(count + degree + 1, count) <= TERMS_PER_RUN * runs:
        degree += 1
    return degree


def _chaos_indices(design: Design, results: Array) -> list[Sensitivity]:
    """Return indices from orthonormal polynomials fitted by least squares (Sudret 2008)."""
    names, count = list(design.uncertain), design.probabilities.shape[1]
    degree = chaos_degree(count, len(results))
    powers = [each for each in product(range(degree + 1), repeat=count) if sum(each) <= degree]
    bases = [
        _orthonormal_basis(each, design.probabilities[:, column], degree)
        for column, each in enumerate(design.uncertain.values())
    ]
    terms = np.ones((len(results), len(powers)))
    for number, each in enumerate(powers):
        for column, power in enumerate(each):
            terms[:, number] *= bases[column][power]
    shares = np.linalg.lstsq(terms, results, rcond=None)[0] ** 2
    concerned = [frozenset(k for k, power in enumerate(each) if power) for each in powers]
    variance = float(sum(share for share, who in zip(shares, concerned, strict=True) if who))

    def part(of: Any) -> float:
        return float(sum(share for share, who in zip(shares, concerned, strict=True) if of(who))) / variance

    both = {
        pair: part(lambda who, pair=frozenset(pair): who == pair) for pair in combinations(range(count), 2)
    }
    return [
        Sensitivity(
            name,
            part(lambda who, k=k: who == {k}),
            part(lambda who, k=k: k in who),
            {names[j]: both[min(j, k), max(j, k)] for j in range(count) if j != k},
        )
        for k, name in enumerate(names)
    ]


def _orthonormal_basis(distribution: Distribution, p: Array, degree: int) -> list[Array]:
    """Return polynomials that are orthonormal under the distribution, at the samples.

    Hermite in the Gaussian behind a normal or lognormal distribution, Legendre in the probability elsewhere.
    """
    from scipy.special import ndtri

    gaussian = distribution.kind == "lognormal" or (
        distribution.kind == "normal" and len(distribution.values) == 2
    )
    x = ndtri(p) if gaussian else 2.0 * p - 1.0
    found = [np.ones_like(x), x]
    for k in range(1, degree):
        if gaussian:
            found.append(x * found[k] - k * found[k - 1])
        else:
            found.append(((2 * k + 1) * x * found[k] - k * found[k - 1]) / (k + 1))
    factorials = np.cumprod([1.0, *range(1, degree + 1)])
    scale = (lambda k: 1.0 / np.sqrt(factorials[k])) if gaussian else (lambda k: np.sqrt(2.0 * k + 1.0))
    return [scale(k) * each for k, each in enumerate(found[: degree + 1])]
