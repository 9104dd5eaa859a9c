"""Who reacts to whom at once: rounds of evaluation, loops, and the reach of a level's inputs."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hocket import Scenario, StateSpace
from hocket.coupling.feedthrough import Feedthrough, Round
from hocket.coupling.wiring import OWN, wire

MEMORY = StateSpace(A=[[0]], B=[[1]], C=[[1]], inputs=["u"], outputs=["y"])
"""Reacts to nothing at once."""
WIRE = StateSpace(D=[[1]], inputs=["u"], outputs=["y"])
CROSSED = StateSpace(D=[[0, 1], [1, 0]], inputs=["u", "v"], outputs=["y", "z"])
"""y reacts to v, z to u."""
MIXER = StateSpace(D=[[1, 1]], inputs=["u", "v"], outputs=["y"])


def graph(models, connections, inputs=(), outputs=()):
    return Feedthrough(wire(Scenario(models, connections, inputs, outputs)))


def names_in(found, rounds):
    """The children of every round; a loop by its outputs."""
    names = found.wiring.names
    return [
        {found.name(node) for node in turn.loop} if turn.loop else [names[child] for child in turn.children]
        for turn in rounds
    ]


def test_what_reacts_to_nothing_needs_no_round():
    found = graph({"a": MEMORY, "b": MEMORY}, {"a.u": "b.y", "b.u": "a.y"})
    assert (found.rounds(), found.loops, found.reacting) == ([], [], [])


def test_a_chain_is_evaluated_from_its_source_on():
    models = {"last": WIRE, "first": WIRE, "state": MEMORY, "middle": WIRE}
    connections = {"first.u": "state.y", "middle.u": "first.y", "last.u": "middle.y", "state.u": "last.y"}
    found = graph(models, connections)
    assert found.rounds() == [Round((1,)), Round((3,)), Round((0,))]
    assert found.loops == []


def test_those_that_do_not_depend_on_each_other_share_a_round():
    models = {"state": MEMORY, "a": WIRE, "b": WIRE, "c": WIRE}
    found = graph(models, {"state.u": "c.y", "a.u": "state.y", "b.u": "state.y", "c.u": "b.y"})
    assert found.rounds() == [Round((1, 2)), Round((3,))]


def test_an_input_that_nothing_drives_is_no_dependence():
    found = graph({"a": StateSpace(D=[[1]], inputs=["u = 3"], outputs=["y"])}, {})
    assert found.rounds() == [Round((0,))]
    assert found.loops == []


def test_a_circle_of_simulators_that_is_no_loop_of_ports():
    """State -> a.z -> b.y -> a.y: a is read, then b, then a again."""
    models = {"state": MEMORY, "a": CROSSED, "b": CROSSED}
    connections = {"a.u": "state.y", "b.v": "a.z", "a.v": "b.y", "b.u": "state.y", "state.u": "a.y"}
    found = graph(models, connections)
    assert found.loops == []
    assert names_in(found, found.rounds()) == [["a", "b"], ["b"], ["a"]]


def test_a_loop_is_named_by_its_outputs_and_solved_as_one():
    models = {"a": CROSSED, "state": MEMORY, "b": WIRE, "after": WIRE}
    connections = {"a.v": "b.y", "b.u": "a.y", "a.u": "state.y", "state.u": "a.z", "after.u": "b.y"}
    found = graph(models, connections)
    assert [{found.name(node) for node in loop} for loop in found.loops] == [{"a.y", "b.y"}]
    assert names_in(found, found.rounds()) == [["a"], {"a.y", "b.y"}, ["after"]]
    loop = found.rounds()[1]
    assert set(loop.children) == {0, 2}


def test_an_output_that_drives_its_own_input_is_a_loop():
    found = graph({"a": WIRE}, {"a.u": "a.y"})
    assert found.loops == [((0, 0),)]
    assert found.rounds() == [Round((0,), ((0, 0),))]


def test_a_loop_comes_after_the_loop_that_drives_it():
    models = {"c": MIXER, "d": WIRE, "a": WIRE, "b": WIRE}
    connections = {"a.u": "b.y", "b.u": "a.y", "c.u": "a.y", "d.u": "c.y", "c.v": "d.y"}
    found = graph(models, connections)
    assert names_in(found, found.rounds()) == [{"a.y", "b.y"}, {"c.y", "d.y"}]


def test_only_what_inputs_of_the_level_reach_is_evaluated_again():
    models = {"state": MEMORY, "inside": WIRE, "a": WIRE, "b": WIRE, "loop": CROSSED}
    connections = {
        "state.u": "b.y",
        "inside.u": "state.y",
        "a.u": "u",
        "b.u": "a.y",
        "loop.u": "inside.y",
        "loop.v": "loop.y",
        "y": "b.y",
    }
    found = graph(models, connections, ["u"], ["y"])
    assert names_in(found, found.rounds(only_from_outside=True)) == [["a"], ["b"]]
    assert names_in(found, found.rounds()) == [["inside", "a"], {"loop.y"}, ["b", "loop"]]


def test_a_level_reacts_to_what_reaches_its_outputs():
    models = {"a": CROSSED, "b": CROSSED, "state": MEMORY}
    connections = {
        "a.u": "first",
        "a.v": "second",
        "b.u": "a.z",
        "b.v": "third",
        "state.u": "third",
        "both": "b.z",
        "late": "state.y",
        "crossed": "b.y",
        "early": "a.y",
    }
    found = graph(models, connections, ["first", "second", "third"], ["both", "late", "crossed", "early"])
    assert found.inputs_by_output() == [(0,), (), (2,), (1,)]


def test_everyone_in_a_loop_reacts_to_what_enters_it():
    models = {"a": MIXER, "b": MIXER, "after": WIRE}
    connections = {
        "a.u": "p",
        "a.v": "b.y",
        "b.u": "q",
        "b.v": "a.y",
        "after.u": "a.y",
        "y": "after.y",
        "z": "b.y",
    }
    found = graph(models, connections, ["p", "q"], ["y", "z"])
    assert found.inputs_by_output() == [(0, 1), (0, 1)]


# any scenario without loops, against the solution of the whole system


@st.composite
def without_loops(draw):
    """Random children; their outputs react, by small whole numbers, to outputs earlier in a hidden order."""
    counts = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    nodes = draw(
        st.permutations([(child, port) for child, count in enumerate(counts) for port in range(count)])
    )
    sources = [(OWN, 0), (OWN, 1), *nodes]
    weights = {
        (node, source): draw(st.sampled_from([0, 0, 1, 2, -3]))
        for place, node in enumerate(nodes)
        for source in sources[: place + 2]
    }
    models, connections = {}, {}
    for child, count in enumerate(counts):
        # an input for every source; only those with a weight are reacted to
        inputs = [f"u{number}" for number in range(len(sources))]
        D = [[weights.get(((child, port), source), 0) for source in sources] for port in range(count)]
        outputs = [f"y{port}" for port in range(count)]
        models[f"m{child}"] = StateSpace([[0]], (), [[1]] * count, D, [child + 1], inputs, outputs)
        for number, (other, port) in enumerate(sources):
            connections[f"m{child}.u{number}"] = f"own{port}" if other == OWN else f"m{other}.y{port}"
    return Scenario(models, connections, ["own0", "own1"]), nodes, weights


def solved(nodes, weights, own):
    """y = x + D u, in the hidden order; x is the number of the child, from 1."""
    y = {(OWN, port): value for port, value in enumerate(own)}
    for node in nodes:
        y[node] = node[0] + 1 + sum(w * y[s] for (n, s), w in weights.items() if n == node and w)
    return {node: y[node] for node in nodes}


def evaluated(wiring, rounds, own, y):
    """The rounds as an engine takes them: inputs are what was there when they were fed."""
    y, fed = dict(y), {}
    for turn in rounds:
        for child in turn.children:
            drives = wiring.drives[child]
            fed[child] = [own[d.port] if d.child == OWN else y[d.child, d.port] for d in drives]
        for child in turn.children:
            values = child + 1 + np.array(wiring.models[child].D) @ np.array(fed[child], dtype=float)
            y.update({(child, port): value for port, value in enumerate(values)})
    return y


@settings(max_examples=60, deadline=None)
@given(without_loops())
def test_after_the_rounds_every_output_is_consistent(drawn):
    scenario, nodes, weights = drawn
    wiring = wire(scenario)
    found = Feedthrough(wiring)
    assert found.loops == []
    plain = {node: float(node[0] + 1) for node in nodes}
    y = evaluated(wiring, found.rounds(), (1.0, 10.0), plain)
    assert y == solved(nodes, weights, (1.0, 10.0))
    again = evaluated(wiring, found.rounds(only_from_outside=True), (7.0, -2.0), y)
    assert again == solved(nodes, weights, (7.0, -2.0))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5), st.data())
def test_loops_are_the_outputs_that_come_back_to_themselves(size, data):
    edges = data.draw(st.sets(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)), max_size=8))
    models, connections = {}, {}
    for node in range(size):
        sources = sorted(a for a, b in edges if b == node)
        inputs = [f"u{a}" for a in sources]
        models[f"m{node}"] = StateSpace(D=[[1] * len(inputs)], inputs=inputs, outputs=["y"])
        connections |= {f"m{node}.u{a}": f"m{a}.y" for a in sources}
    paths = np.zeros((size, size), dtype=int)
    for a, b in edges:
        paths[a, b] = 1
    reach = sum(np.linalg.matrix_power(paths, k) for k in range(1, size + 1)) > 0
    expected = {
        frozenset(b for b in range(size) if reach[a, b] and reach[b, a]) for a in range(size) if reach[a, a]
    }
    found = graph(models, connections)
    assert {frozenset(child for child, _ in loop) for loop in found.loops} == expected
    assert sum(bool(turn.loop) for turn in found.rounds()) == len(expected)


def test_a_path_names_an_output():
    found = graph({"a": CROSSED}, {"a.u": "p", "a.v": "p"}, ["p"])
    assert [found.name(node) for node in found.reacting] == ["a.y", "a.z"]


def test_a_long_chain_needs_no_recursion():
    size = 3000
    models = {f"m{k}": WIRE for k in range(size)}
    connections = {f"m{k}.u": f"m{k + 1}.y" for k in range(size - 1)} | {f"m{size - 1}.u": "p"}
    found = graph(models, {**connections, "y": "m0.y"}, ["p"], ["y"])
    assert [turn.children for turn in found.rounds()] == [(k,) for k in range(size - 1, -1, -1)]
    assert found.inputs_by_output() == [(0,)]
