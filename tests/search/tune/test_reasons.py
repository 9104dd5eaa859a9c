"""Why to choose a coupling, in words."""

import math

import pytest

from hocket.search.tune.objectives import Objective
from hocket.search.tune.tuning_result import reason

ERROR, WORK, RHO = Objective("error"), Objective("work"), Objective("rho")
RADIUS, STEP = Objective("radius", larger=True), Objective("step", larger=True)


@pytest.mark.parametrize(
    ("wanted", "new", "old", "told"),
    [
        ((ERROR, WORK), (0.05, 1.0), (1.0, 1.0), "20 times less error than now at the same work"),
        ((ERROR, WORK), (0.5, 1.3), (1.0, 1.0), "2 times less error than now but 1.3 times more work"),
        ((ERROR, WORK), (0.5, 0.5), (1.0, 1.0), "2 times less error and 2 times less work than now"),
        ((ERROR, WORK), (1.0, 1.0), (1.0, 1.0), "the same error and work as now"),
        ((ERROR, WORK), (4.0, 1.0), (1.0, 1.0), "at the same work 4 times more error than now"),
        ((ERROR, WORK), (1.01, 0.25), (1.0, 1.0), "4 times less work than now at the same error"),
        ((RHO, STEP), (0.9, 0.1), (0.99, 0.1), "a 1.1 times smaller rho than now at the same step"),
        ((RHO, WORK), (0.992, 0.5), (0.99, 1.0), "2 times less work than now but a 1.002 times larger rho"),
        ((RADIUS, STEP), (0.3, 0.2), (0.1, 0.1),
         "a 3 times larger stability radius and a 2 times larger step than now"),
        ((ERROR, WORK), (0.25, 1.0), (math.nan, 1.0), "the same work as now; error 0.25, where now has none"),
        ((ERROR,), (0.0,), (1.0,), "error 0 instead of 1"),
        ((ERROR,), (1e-9,), (1e9,), "1e+18 times less error than now"),
    ],
)  # fmt: skip
def test_gains_come_first_then_what_stays_then_the_price(wanted, new, old, told):
    assert reason(wanted, new, old) == told
