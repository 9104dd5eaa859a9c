"""Orders of more models than can be listed: their numbers, and how good those are that are found."""

from __future__ import annotations

from itertools import islice, permutations

import numpy as np
import pytest

import hocket as hk
from hocket.analysis.linear_reading import read_linear
from hocket.orchestrators.gauss_seidel import GaussSeidel
from hocket.search.tune.numbered_orders import NumberedOrders
from hocket.search.tune.objectives import Objective
from hocket.search.tune.order_search import search_orders
from hocket.search.tune.space import DesignVariable, Space, apply_choices, near_now, parse_space
from systems import slow_after, spectral_radius

NAMES = tuple("abcdefghijkl")


def test_orders_have_the_numbers_of_itertools():
    for count in (1, 2, 5):
        orders = NumberedOrders(NAMES[:count])
        assert list(orders) == list(permutations(NAMES[:count]))
        assert [orders.number(each) for each in orders] == list(range(len(orders)))
    many = NumberedOrders(NAMES)
    assert len(many) == 479_001_600
    assert list(islice(many, 3)) == list(islice(permutations(NAMES), 3))
    assert many[len(many) - 1] == NAMES[::-1]
    assert many[-1] == NAMES[::-1]
    assert many.index(NAMES[::-1]) == len(many) - 1
    with pytest.raises(IndexError):
        many[len(many)]
    with pytest.raises(ValueError, match="zz"):
        many.index(("zz",))


def test_rotations_have_one_number():
    orders = NumberedOrders(NAMES[:5], fixed=1)
    assert len(orders) == 24
    assert {order[0] for order in orders} == {"a"}
    for order in permutations(NAMES[:5]):
        turned = orders[orders.number(order)]
        begin = order.index("a")
        assert turned == order[begin:] + order[:begin]


def costs(order, weight):
    """The weight of what is known late: sources after their targets."""
    place = {name: k for k, name in enumerate(order)}
    p = np.array([place[name] for name in NAMES])
    return float(weight[p[:, None] > p[None, :]].sum())


def least_cost(weight):
    """The linear ordering problem, exactly: dynamic programming over all sets of names in front."""
    n = len(weight)
    best = np.full(1 << n, np.inf)
    best[0] = 0.0
    for members in range(1 << n):
        for new in range(n):
            if not members >> new & 1:
                # those that come later and drive the new one are late
                late = sum(weight[k, new] for k in range(n) if k != new and not members >> k & 1)
                best[members | 1 << new] = min(best[members | 1 << new], best[members] + late)
    return best[-1]


@pytest.mark.parametrize("seed", slow_after(2, range(8)))
def test_the_search_beats_ten_thousand_orders_by_chance(seed):
    """1,000 of 479,001,600 orders: better than 10,000 by chance, at most 8 % above the exact optimum."""
    random = np.random.default_rng(seed)
    weight = random.integers(1, 20, (12, 12)) * (random.random((12, 12)) < 0.4)
    np.fill_diagonal(weight, 0)
    orders = NumberedOrders(NAMES)
    space = Space((DesignVariable("order", orders, orders),))
    asked = 0

    def ask(points):
        nonlocal asked
        asked += len(points)
        return [(costs(orders[k], weight),) for (k,) in points]

    points = search_orders(space, (Objective("delays"),), 1, ask, 1000, seed)
    assert asked == len(points) == len(set(points)) == 1000
    found = min(costs(orders[k], weight) for (k,) in points)
    chance = min(costs(random.permutation(NAMES), weight) for _ in range(10_000))
    assert found <= 1.08 * least_cost(weight)
    assert found < chance


def ring(count, seed):
    """Lags that drive each other, at random."""
    random = np.random.default_rng(seed)
    names = NAMES[:count]
    sources = {name: [names[k - 1], names[(k + 3) % count]] for k, name in enumerate(names)}
    models = {
        name: hk.StateSpace(
            [[-random.uniform(0.5, 3.0)]],
            [random.normal(size=2).tolist()],
            [[1.0]],
            x0=[1.0],
            inputs=["u1", "u2"],
            outputs=["y"],
        )
        for name in names
    }
    wires = {f"{name}.u{k}": f"{each}.y" for name in names for k, each in enumerate(sources[name], 1)}
    return hk.Composite(hk.Scenario(models, wires), 0.4, GaussSeidel(names), extrapolation="linear")


def test_tune_searches_orders_of_many_models():
    composite = ring(8, 3)
    found = hk.tune(composite, {"order": "all"}, ["rho"], search="genetic", budget=60, workers=1)
    assert len(found.points) == 60
    orders = [found.space.values(point)["order"] for point in found.points]
    assert len(set(orders)) == 60
    numbers = [each[0] for each in found.numbers]
    chosen = orders[int(np.argmin(numbers))]
    radius = spectral_radius(read_linear(apply_choices(composite, {"order": chosen})).Phi)
    assert radius == pytest.approx(min(numbers), rel=1e-9)
    assert min(numbers) <= spectral_radius(read_linear(composite).Phi)


@pytest.mark.slow
def test_twelve_models_against_ten_times_as_many_orders_by_chance():
    composite = ring(12, 5)
    found = hk.tune(composite, {"order": "all"}, ["rho"], budget=100, search="genetic")
    best = min(each[0] for each in found.numbers)
    random = np.random.default_rng(1)
    chance = min(
        spectral_radius(
            read_linear(apply_choices(composite, {"order": tuple(random.permutation(NAMES))})).Phi
        )
        for _ in range(1000)
    )
    assert best <= 1.05 * chance


def test_the_search_begins_with_now_and_orders_near_it():
    composite = ring(9, 1)
    space = parse_space(composite, {"order": "all", "step": "0.1, 0.2, 0.4"})
    points = near_now(composite, space)
    assert space.values(points[0]) == {"order": NAMES[:9], "step": 0.4}
    assert space.values(points[1])["order"] == ("b", "a", *NAMES[2:9])
    assert len(points) == 1 + 8 + 2


def test_more_orders_than_numbers_are_refused():
    names = [f"m{k}" for k in range(21)]
    models = {name: hk.StateSpace([[-1.0]], [[1.0]], [[1.0]], inputs=["u"], outputs=["y"]) for name in names}
    wires = {f"{name}.u": f"{names[k - 1]}.y" for k, name in enumerate(names)}
    composite = hk.Composite(hk.Scenario(models, wires), 0.1, GaussSeidel())
    with pytest.raises(hk.ScenarioError, match="at most 20 models"):
        parse_space(composite, {"order": "all"})
