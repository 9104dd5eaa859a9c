"""The error that two runs show, where one of them blows up."""

import math
from fractions import Fraction

import pytest

import hocket as hk
from hocket.search.tune.objectives import measured_error

STEPS = 5


def decay(k: float, **more: object) -> hk.Composite:
    """x' = -k x with x held over steps of 1 s: a factor 1 - k per step, and 1 - k/2 with half of them."""
    models = {"tank": hk.StateSpace([[0.0]], [[-k]], [[1.0]], x0=[1.0], inputs=["u"], outputs=["x"]), **more}
    return hk.Composite(hk.Scenario(models, {"tank.u": "tank.x"}), 1)


@pytest.mark.parametrize("k", [0.5, 10.0])
def test_the_smaller_run_is_the_measure(k: float) -> None:
    """At k = 10 both blow up, the finer one more: 9^5 and 4^10."""
    pairs = [((1.0 - k) ** n, (1.0 - k / 2) ** (2 * n)) for n in range(STEPS + 1)]
    gap = max(abs(one - other) for one, other in pairs)
    size = min(max(abs(one) for one, _ in pairs), max(abs(other) for _, other in pairs))
    assert measured_error(decay(k), Fraction(STEPS)) == pytest.approx(gap / size, rel=1e-12)


def test_a_spike_of_the_finer_run_hides_no_error() -> None:
    """It is between the times of the coarse run, where no gap is looked for."""
    spike = hk.Function(lambda t: 1.0 + 1e20 * math.exp(-(((t - 1.5) / 0.01) ** 2)), ["y"])
    plain = measured_error(decay(0.5), Fraction(STEPS))
    assert plain > 0.05
    assert measured_error(decay(0.5, spike=spike), Fraction(STEPS)) == plain
