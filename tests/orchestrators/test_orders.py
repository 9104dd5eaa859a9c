"""Who goes first: the order that Gauss-Seidel finds, and orders that are given."""

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hocket import GaussSeidel, Jacobi, Scenario, StateSpace
from hocket.coupling.wiring import wire
from hocket.errors import ScenarioError
from hocket.orchestrators.gauss_seidel import best_order
from hocket.plan import Feed, Read, Step, Together


def model(inputs=(), reacting=()):
    """One output y, which reacts at once to some of the inputs."""
    D = [[float(name in reacting) for name in inputs]]
    return StateSpace([[0]], (), [[1]], D, None, inputs, ["y"])


def scenario(edges, names=None):
    """Edges (source, target, whether the target reacts at once), each to an input of its own."""
    names = names or sorted({name for edge in edges for name in edge[:2]})
    inputs = {name: [f"u{k}" for k, edge in enumerate(edges) if edge[1] == name] for name in names}
    reacting = {f"u{k}" for k, edge in enumerate(edges) if edge[2]}
    models = {name: model(inputs[name], reacting) for name in names}
    return Scenario(models, {f"{edge[1]}.u{k}": f"{edge[0]}.y" for k, edge in enumerate(edges)})


def order_of(given_scenario):
    return [name for group in best_order(wire(given_scenario)) for name in group]


def delays(order, edges):
    """Connections against the order; two for each whose target reacts at once."""
    return sum(1 + at_once for a, b, at_once in edges if order.index(a) > order.index(b))


def plain(*pairs):
    return [(a, b, False) for a, b in pairs]


@pytest.mark.parametrize(
    ("edges", "order"),
    [
        (plain("ca", "ab"), "cab"),
        (plain("dc", "cb", "ba"), "dcba"),
        (plain("ab", "ba"), "ab"),
        (plain("ab", "ba", "ba"), "ba"),
        (plain("ab", "ab", "bc", "ca", "ca"), "cab"),
        ([("a", "b", False), ("b", "a", True)], "ba"),
        ([("a", "b", True), ("b", "a", True)], "ab"),
        ([("a", "b", False), ("a", "b", False), ("b", "a", True)], "ab"),
        ([("a", "b", False), ("a", "b", False), ("b", "a", True), ("b", "a", False)], "ba"),
        (plain("ba", "dc"), "badc"),
        (plain("da"), "bcda"),
    ],
    ids=[
        "a chain",
        "a chain backwards",
        "a tie goes by name",
        "two against one",
        "the ring is cut at its weakest",
        "reacting counts double",
        "both react: a tie",
        "two against a double one: a tie",
        "two against three",
        "two chains",
        "those not connected stay",
    ],
)
def test_the_order_with_the_fewest_delays(edges, order):
    names = sorted({*order})
    assert order_of(scenario(edges, names)) == list(order)


def test_ties_go_by_name_however_the_models_are_listed():
    edges = plain("ab", "ba", "cd", "dc")
    for listed in permutations("abcd"):
        assert order_of(scenario(edges, list(listed))) == list("abcd")
    assert order_of(scenario([], list("zxy"))) == list("xyz")


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 5), st.data())
def test_no_other_order_has_fewer_delays(size, data):
    names = "abcde"[:size]
    ends = st.tuples(st.sampled_from(names), st.sampled_from(names), st.booleans())
    edges = data.draw(st.lists(ends, max_size=10))
    order = order_of(scenario(edges, list(names)))
    least = min(delays(other, edges) for other in permutations(names))
    assert sorted(order) == list(names)
    assert delays(order, edges) == least


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_the_order_does_not_depend_on_how_connections_are_listed(data):
    ends = st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd"), st.booleans())
    edges = data.draw(st.lists(ends, max_size=8))
    shuffled = data.draw(st.permutations(edges))
    assert order_of(scenario(edges, list("abcd"))) == order_of(scenario(shuffled, list("abcd")))


def test_what_comes_from_outside_or_from_itself_counts_for_nothing():
    models = {"a": model(["u"]), "b": model(["own", "outside"])}
    connections = {"a.u": "p", "b.own": "b.y", "b.outside": "p"}
    assert order_of(Scenario(models, connections, ["p"])) == ["a", "b"]


def test_a_long_chain_backwards_is_turned_round():
    names = [f"m{k}" for k in range(2000)]
    models = {name: model(["u"] if number + 1 < len(names) else []) for number, name in enumerate(names)}
    connections = {f"m{k}.u": f"m{k + 1}.y" for k in range(len(names) - 1)}
    assert order_of(Scenario(models, connections)) == names[::-1]


def test_a_ring_beyond_the_exact_search_is_cut_once():
    names = [f"m{k}" for k in range(50)]
    edges = [(a, b, False) for a, b in zip(names, [*names[1:], names[0]], strict=True)]
    assert order_of(scenario(edges[::-1], names)) == names


# plans


def test_each_in_turn_is_fed_stepped_and_read():
    plan = GaussSeidel(outputs="stale").plan(scenario(plain("ba", "cb")))
    assert plan.step[:-1] == (
        Step("c"), Read("c"),
        Feed("b"), Step("b"), Read("b"),
        Feed("a"), Step("a"), Read("a"),
    )  # fmt: skip


def test_a_group_steps_together():
    plan = GaussSeidel(["c", ["a", "b"]], outputs="stale").plan(scenario(plain("ab", "ba", "ac")))
    assert plan.step[:-1] == (
        Feed("c"),
        Step("c"),
        Read("c"),
        Together(((Feed("a"),), (Feed("b"),))),
        Together(((Step("a"),), (Step("b"),))),
        Together(((Read("a"),), (Read("b"),))),
    )


def test_one_group_of_all_is_jacobi():
    ring = scenario([("a", "b", True), ("b", "c", False), ("c", "a", False)])
    assert GaussSeidel([["a", "b", "c"]]).plan(ring) == Jacobi().plan(ring)


def test_lists_and_tuples_are_the_same_order():
    assert GaussSeidel(["a", ["b", "c"]]) == GaussSeidel(("a", ("b", "c")))
    assert hash(GaussSeidel(["a", ["b", "c"]])) == hash(GaussSeidel(("a", ("b", "c"))))
    assert GaussSeidel(["a", "b", "c"]) != GaussSeidel(["a", ["b", "c"]])
    assert GaussSeidel() == GaussSeidel("auto")


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (
            ["left", "rihgt"],
            """\
2 faults:
1. the order names `rihgt`, which is not a model
     where:    order
     try:      did you mean `right`?
2. the order leaves out `right`
     where:    order""",
        ),
        (["left", "right", "left"], "the order names `left` twice\n  where:    order"),
        ([["left", "right"], "right"], "the order names `right` twice\n  where:    order"),
        (["right"], "the order leaves out `left`\n  where:    order"),
        (
            [],
            """\
2 faults:
1. the order leaves out `left`
     where:    order
2. the order leaves out `right`
     where:    order""",
        ),
    ],
    ids=["unknown", "twice", "twice, in a group", "left out", "empty"],
)
def test_wrong_orders_are_refused(order, message):
    with pytest.raises(ScenarioError) as caught:
        GaussSeidel(order).plan(scenario([("left", "right", False)]))
    assert str(caught.value) == message


@pytest.mark.parametrize("orchestrator", [Jacobi, GaussSeidel])
@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (
            {"outputs": "fresh"},
            '`outputs` cannot be \'fresh\'\n  where:    outputs\n  expected: "stale" or "consistent"',
        ),
        (
            {"inputs": "late"},
            '`inputs` cannot be \'late\'\n  where:    inputs\n  expected: "clean" or "delayed"',
        ),
    ],
)
def test_wrong_words_are_refused(orchestrator, choice, message):
    with pytest.raises(ScenarioError) as caught:
        orchestrator(**choice)
    assert str(caught.value) == message
