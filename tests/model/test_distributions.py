"""Distributions: quantiles as SciPy has them, and what is written wrong."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from hocket.errors import ScenarioError
from hocket.model.distributions import Distribution

P = np.array([1e-6, 0.01, 0.2, 0.5, 0.77, 0.99, 1.0 - 1e-6])


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("normal(20, 2)", stats.norm(20, 2)),
        ("normal(20, 2, 18, 25)", stats.truncnorm(-1.0, 2.5, 20, 2)),
        ("uniform(-1, 3)", stats.uniform(-1, 4)),
        ("triangular(1, 2, 5)", stats.triang(0.25, 1, 4)),
        ("lognormal(3, 0.5)", stats.lognorm(0.5, scale=3)),
    ],
)
def test_quantiles(text: str, known: object) -> None:
    made = Distribution.parse(text)
    assert made.quantile(P) == pytest.approx(known.ppf(P), rel=1e-9)  # type: ignore[attr-defined]
    assert Distribution.parse(str(made)) == made


@pytest.mark.parametrize(
    "text",
    [
        "normal(20)",
        "normal(20, -2)",
        "normal(20, 2, 5, 1)",
        "uniform(3, 1)",
        "triangular(1, 9, 5)",
        "lognormal(-1, 1)",
        "normal(nan, 1)",
        "gauss(1, 2)",
        "20",
        "normal(a, b)",
        7,
    ],
)
def test_what_is_not_a_distribution_is_refused(text: object) -> None:
    with pytest.raises(ScenarioError, match="is not a"):
        Distribution.parse(text)
