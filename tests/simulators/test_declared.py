"""Energies that are functions of the state: right ones are taken, however odd, and wrong ones are not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hocket.errors import SimulatorError
from hocket.simulators.energies import DeclaredEnergy
from hocket.simulators.energy_projection import check_energy_function
from hocket.simulators.power_balance import Seat

SEAT = Seat(0, 0, -1.0, 0.05, None, None, None, False, "f` and `v")
"""A spring: it puts out minus what pulls at it."""
V0, P0 = 1e-3, 1e5


def judged(W: Callable[[Any], float], force: Callable[[Any], float], x0: list[float], *ways: float) -> None:
    """Look at something with the energy W whose first state is driven, others as `ways` say."""
    along = np.array([1.0, *ways, *[0.0] * (len(x0) - 1 - len(ways))])
    f, g = (lambda t, x, u: u[0] * along), (lambda t, x, u: [-force(x)])
    check_energy_function(DeclaredEnergy(W, "W"), f, g, [SEAT], 0.0, np.array(x0), np.zeros(1))


def positive(s: float) -> float:
    return max(s, 0.0)


def cosine(s: float) -> float:
    return 9.81 * (1 - math.cos(s))


def sine(s: float) -> float:
    return 9.81 * math.sin(s)


RIGHT: dict[str, tuple[Any, ...]] = {
    "Duffing at rest": (lambda x: 0.5 * x[0] ** 2 + 0.25 * x[0] ** 4, lambda x: x[0] + x[0] ** 3, [0.0]),
    "pendulum upright": (lambda x: cosine(x[0]), lambda x: sine(x[0]), [math.pi]),
    "double well": (lambda x: 0.25 * (x[0] ** 2 - 1) ** 2, lambda x: x[0] ** 3 - x[0], [1.0]),
    "prestressed": (lambda x: 5e4 * (x @ x), lambda x: 1e5 * (x[0] - x[1]), [0.1, 0.1], -1.0),
    "unequally": (lambda x: x**2 @ [1.5e4, 3.5e4], lambda x: x @ [3e4, -7e4], [0.7, 0.3], -1.0),
    "gas": (
        lambda x: P0 * (V0 * math.log(V0 / (V0 - x[0])) - x[0]),
        lambda x: P0 * (V0 / (V0 - x[0]) - 1),
        [0.0],
    ),
    "diode": (lambda x: math.expm1(40 * x[0]) / 40 - x[0], lambda x: math.expm1(40 * x[0]), [0.0]),
    "Hertz": (lambda x: 0.4e8 * positive(x[0]) ** 2.5, lambda x: 1e8 * positive(x[0]) ** 1.5, [0.0]),
    "contact": (lambda x: 0.5e8 * positive(x[0]) ** 2, lambda x: 1e8 * positive(x[0]), [0.0]),
    "beside an odometer": (
        lambda x: 0.5 * x[0] ** 2 + 250 * x[0] ** 4,
        lambda x: x[0] + 1e3 * x[0] ** 3,
        [0.1, 1e5],
    ),
    "beside a pressure": (lambda x: cosine(x[0]) + 5e-15 * x[1] ** 2, lambda x: sine(x[0]), [0.1, 1e7]),
    "beside a train": (lambda x: x**2 @ [500, 2e5], lambda x: 1e3 * x[0], [1e-5, 50.0]),
    "picofarad": (lambda x: 0.5 * x[0] ** 2 / 1e-12, lambda x: x[0] / 1e-12, [1e-12]),
    "near its end": (
        lambda x: 9.81 * (1 - math.sqrt(1 - x[0] ** 2)),
        lambda x: 9.81 * x[0] / math.sqrt(1 - x[0] ** 2),
        [0.98],
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_ones(name: str) -> None:
    judged(*RIGHT[name])


@pytest.mark.parametrize("x0", [[0.5], [0.0], [-2.0]])
@pytest.mark.parametrize(
    ("W", "hint"),
    [
        (lambda x: x[0] ** 2, "`energy` in joules"),
        (lambda x: 1.01 * 0.5 * x[0] ** 2, "`energy` in joules"),
        (lambda x: 0.5e-3 * x[0] ** 2, "`energy` in joules"),
        (lambda x: 1.0, "`energy` in joules"),
        (lambda x: 0.5 * x[0] ** 2 + 0.25 * x[0] ** 4, "`energy` in joules"),
        (lambda x: 50.0 - 0.5 * x[0] ** 2, "`reverse` of the bond"),
    ],
    ids=["twice", "a hundredth more", "in kJ", "a constant", "of another spring", "the other way"],
)
def test_wrong_ones(W: Any, hint: str, x0: list[float]) -> None:
    with pytest.raises(SimulatorError, match="does not grow by the power that comes in") as caught:
        judged(W, lambda x: x[0], x0)
    assert hint in str(caught.value)


def test_one_of_another_spring_is_taken_where_both_are_alike() -> None:
    """At small motions nobody can tell, and nothing is lost."""
    judged(lambda x: 0.5 * x[0] ** 2 + 0.25 * x[0] ** 4, lambda x: x[0], [1e-3])


def test_inputs_that_are_not_known_yet() -> None:
    """A temperature that is connected: at the start it is zero as far as anybody knows."""

    def f(t: float, x: Any, u: Any) -> list[float]:
        return [u[0] - 0.01 * math.log(u[1]) * x[0]]

    energy = DeclaredEnergy(lambda x: 0.5 * x[0] ** 2, "W")
    check_energy_function(energy, f, lambda t, x, u: [-x[0]], [SEAT], 0.0, np.array([0.5]), np.zeros(2))
