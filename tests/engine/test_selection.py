"""Which ports a pattern means."""

from fractions import Fraction

import pytest

import hocket as hk
from hocket.engine.rows import Rows
from hocket.engine.selection import ConstraintDrift
from systems import ENGINES, LAG_AT_REST

NAMES = ("y[1, 2]", "y[1,3]", "z[1]", "z1")


@pytest.fixture
def arrays():
    return hk.Composite(hk.Scenario({"a": hk.StateSpace(outputs=[hk.Port(name) for name in NAMES])}), 0.1)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("a.y[1, 2]", ["y[1, 2]"]),
        ("a.y[1,3]", ["y[1,3]"]),
        ("*[1, 2]", ["y[1, 2]"]),
        ("a.z[1]", ["z[1]"]),
        ("*z[1]", ["z[1]"]),
        ("a.[yz]1", ["z1"]),
        ("a.y*", ["y[1, 2]", "y[1,3]"]),
    ],
)
def test_indices_are_no_wildcards(arrays, pattern, found):
    assert hk.run(arrays, 0.1, record=[pattern]).ports == tuple(f"a.{name}" for name in found)


def test_a_blank_too_much_is_told(arrays):
    with pytest.raises(hk.ScenarioError, match=r"no port `a.y\[1, 3\]` to record"):
        hk.run(arrays, 0.1, record=["a.y[1, 3]"])


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_as_often_as_the_step_are_those_of_all_steps(engine):
    """Also of shorter ones: step control makes four quarters of each."""
    models = {"ramp": hk.Function(lambda t: [t], ["y"]), "lag": LAG_AT_REST}
    how = hk.Adaptive(hk.Jacobi(), 1e9, first=Fraction(1, 4), quantum=Fraction(1, 4))
    composite = hk.Composite(hk.Scenario(models, {"lag.u": "ramp.y"}), "1 s", how, "hold", "cold")
    found = {every: hk.run(composite, 2, every=every, engine=engine)["lag.y"].t for every in (None, 1, 2)}
    assert found[None][1] == 0.25
    assert found[1].tolist() == found[None].tolist()
    assert found[2].tolist() == [0.0, 2.0]


def test_rows_are_kept_of_every_step_unless_it_is_said_otherwise():
    assert Rows([]).interval == 1


def test_equations_that_were_recorded_have_a_note_of_how_well_they_were_kept():
    drift = ConstraintDrift([])
    drift.columns = {0: [(1, "a.gap", "x = y")], 1: [(1, "b.gap", "u = v")]}
    drift.largest = {"b.gap": 2.5e-9}
    assert drift.notes() == ["`u = v` was kept to 2.5e-09, see `b.gap`"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("given", "start"), [("u = 0", 0.0), ("u = 3", 3.0)])
def test_the_first_row_shows_an_open_input_at_its_start(engine, given, start):
    """y = u, at once."""
    model = hk.StateSpace(D=[[1.0]], inputs=[given], outputs=["y"])
    run = hk.run(hk.Composite(hk.Scenario({"a": model}), "0.1 s"), "0.1 s", engine=engine)
    assert run["a.y"].values.tolist() == [start, start]
