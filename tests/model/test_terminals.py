"""Terminals: which members are connected, by each matching rule, and what does not fit."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

import hocket as hk
from hocket.model.terminals import Terminal, TerminalMember, connect_terminals


def member(name, side="", kind="signal", elements=1):
    """`side`: "in", "out", or neither for a parameter."""
    ports = tuple(f"v_{name}[{k}]" for k in range(1, elements + 1)) if elements > 1 else (f"v_{name}",)
    ends = (ports if side == "in" else (), ports if side == "out" else ())
    return TerminalMember(name, f"v_{name}", *ends, kind=kind)


def terminal(*members, rule="plug", kind="", name="T", **more):
    return Terminal(name, rule, kind, members, **more)


def models(one, other):
    return {
        name: SimpleNamespace(has_terminals=True, terminals=(each,))
        for name, each in (("a", one), ("b", other))
    }


def connect(one, other, **more):
    """Return the connections of `b.T = "a.T"` as {input: output}."""
    wires = connect_terminals(models(one, other), [hk.Connection("a.T", "b.T", **more)])
    return {each.target: each.source for each in wires}


def refusal(one, other, **more):
    with pytest.raises(hk.ScenarioError) as error:
        connect(one, other, **more)
    assert error.value.faults[0].where == "connections.b.T"
    return str(error.value)


def test_outputs_drive_inputs_in_both_directions():
    one, other = (
        terminal(member("x", "out"), member("y", "in")),
        terminal(member("x", "in"), member("y", "out")),
    )
    assert connect(one, other) == {"b.v_x": "a.v_x", "a.v_y": "b.v_y"}


def test_a_bus_connects_what_both_have():
    one = terminal(member("x", "out"), member("z", "in"), rule="bus")
    other = terminal(member("y", "in"), member("x", "in"), rule="bus")
    assert connect(one, other) == {"b.v_x": "a.v_x"}


def test_a_sequence_goes_by_place():
    one = terminal(member("first", "out"), member("second", "in"), rule="sequence")
    other = terminal(member("alpha", "in"), member("beta", "out"), rule="sequence")
    assert connect(one, other) == {"b.v_alpha": "a.v_first", "a.v_second": "b.v_beta"}


def test_a_transceiver_crosses_what_is_sent_and_received():
    one = terminal(
        *(
            member(f"{way}_{what}", side)
            for way, side in (("Tx", "out"), ("Rx", "in"))
            for what in ("Data", "Clock")
        ),
        rule="org.fmi-ls-bus.transceiver",
    )
    assert connect(one, one) == {
        "b.v_Rx_Data": "a.v_Tx_Data", "b.v_Rx_Clock": "a.v_Tx_Clock",
        "a.v_Rx_Data": "b.v_Tx_Data", "a.v_Rx_Clock": "b.v_Tx_Clock",
    }  # fmt: skip


def test_arrays_are_connected_element_by_element():
    one, other = terminal(member("x", "out", elements=2)), terminal(member("x", "in", elements=2))
    assert connect(one, other) == {"b.v_x[1]": "a.v_x[1]", "b.v_x[2]": "a.v_x[2]"}


def test_parameters_are_left_alone():
    one, other = terminal(member("p"), member("x", "out")), terminal(member("p"), member("x", "in"))
    assert connect(one, other) == {"b.v_x": "a.v_x"}


@pytest.mark.parametrize(("kinds", "gain"), [(("inflow", "inflow"), -1.0), (("inflow", "outflow"), 1.0)])
def test_flows_into_both_add_up_to_zero(kinds, gain):
    one, other = terminal(member("f", "out", kinds[0])), terminal(member("f", "in", kinds[1]))
    (wire,) = connect_terminals(models(one, other), [hk.Connection("a.T", "b.T")])
    assert (wire.source, wire.target, wire.gain) == ("a.v_f", "b.v_f", gain)


def test_terminals_inside_are_connected_too():
    inside = terminal(member("y", "out"), name="T.Config")
    one = terminal(member("x", "out"), rule="bus", inside=(inside,))
    other = terminal(member("x", "in"), rule="bus", inside=(replace(inside, members=(member("y", "in"),)),))
    assert connect(one, other) == {"b.v_x": "a.v_x", "b.v_y": "a.v_y"}
    alone = connect_terminals(models(one, other), [hk.Connection("a.T.Config", "b.T.Config")])
    assert [(each.source, each.target) for each in alone] == [("a.v_y", "b.v_y")]


def test_what_is_not_a_terminal_stays_as_it_is():
    wires = (hk.Connection("a.v_x", "b.v_x"), hk.Connection("u", "b.y"))
    assert connect_terminals(models(terminal(), terminal()), wires) == wires


OUT, IN = terminal(member("x", "out")), terminal(member("x", "in"))


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        (OUT, replace(IN, rule="bus"), "`a.T` and `b.T` have different matching rules: `plug` and `bus`"),
        (replace(OUT, rule="org.x"), replace(IN, rule="org.x"), "matching rule that hocket does not know"),
        (replace(OUT, kind="can"), replace(IN, kind="lin"), "of different kinds: `can` and `lin`"),
        (OUT, OUT, "`a.v_x` is an output, and `b.v_x` is an output"),
        (IN, IN, "`a.v_x` is an input, and `b.v_x` is an input"),
        (OUT, terminal(member("x")), "`a.v_x` is an output, and `b.v_x` is no port"),
        (OUT, terminal(member("y", "in")), "`x` of `a.T` has no counterpart in `b.T`"),
        (terminal(), IN, "`x` of `b.T` has no counterpart in `a.T`"),
        (replace(OUT, rule="bus"), terminal(member("y", "in"), rule="bus"), "have no port in common"),
        (replace(OUT, rule="sequence"), terminal(rule="sequence"), "`x` of `a.T` has no counterpart"),
        (OUT, terminal(member("x", "in", elements=2)), "`a.v_x` and `b.v_x` have 1 and 2 elements"),
        (OUT, terminal(member("x", "in", "inflow")), "`a.v_x` is signal, and `b.v_x` is inflow"),
        (replace(OUT, streams=True), IN, "`a.T` has stream variables, which hocket does not connect"),
        (replace(OUT, inside=(replace(OUT, name="T.I"),)), IN, "do not hold the same terminals"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_by_name(one, other, words):
    assert words in refusal(one, other)


def test_a_gain_is_for_ports():
    assert "has a gain or an offset" in refusal(OUT, IN, gain=2.0)


def test_a_terminal_needs_a_terminal():
    with pytest.raises(
        hk.ScenarioError, match=r"`a\.T` is a terminal, `b\.Tt` is not(.|\n)*did you mean `b\.T`"
    ):
        connect_terminals(models(OUT, IN), [hk.Connection("a.T", "b.Tt")])
    with pytest.raises(hk.ScenarioError, match=r"the terminal `a\.T` is connected to itself"):
        connect_terminals(models(OUT, IN), [hk.Connection("a.T", "a.T")])


def test_all_that_is_wrong_is_said_at_once():
    wires = [hk.Connection("a.T", "b.no"), hk.Connection("b.T", "a.no")]
    with pytest.raises(hk.ScenarioError) as error:
        connect_terminals(models(OUT, IN), wires)
    assert len(error.value.faults) == 2
