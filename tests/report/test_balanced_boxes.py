"""What balanced bonds want to know of each other is no business of who reads the page."""

import re

import pytest

import hocket as hk
from hocket.planning.planner import plan_tree
from hocket.report.level_boxes import connection_rows, levels_section, route_wires
from systems import spring

HIDDEN = re.compile(r"_told|_share|_booked|_beyond|_work|\bshare\b")


def mass(*inputs, x0=0.0):
    """A body of 1 kg that several forces act on."""
    return hk.StateSpace(
        [[0.0]], [[1.0] * len(inputs)], [[1.0]], x0=[x0], energy=[[1.0]],
        inputs=[f"{name} [N]" for name in inputs], outputs=["v [m/s]"],
    )  # fmt: skip


def chain(balance):
    """A mass between two springs."""
    models = {"left": spring(energy=1.0), "mass": mass("a", "b"), "right": spring(energy=1.0)}
    wired = {"mass.a": "left.f", "left.v": "mass.v", "mass.b": "right.f", "right.v": "mass.v"}
    bonds = {
        "one": hk.Bond("mass.a", "left.v", balance=balance),
        "two": hk.Bond("mass.b", "right.v", balance=balance),
    }
    return hk.Composite(hk.Scenario(models, wired, bonds=bonds), 0.1, extrapolation="linear")


def in_a_level(balance):
    """A spring outside, its mass in a level with shorter steps."""
    inner = hk.Composite(hk.Scenario({"mass": mass("f")}), 0.05, extrapolation="linear")
    wired = {"axle.mass.f": "spring.f", "spring.v": "axle.mass.v"}
    bonds = {"joint": hk.Bond("axle.mass.f", "spring.v", balance=balance)}
    scenario = hk.Scenario({"axle": inner, "spring": spring(energy=1.0)}, wired, bonds=bonds)
    return hk.Composite(scenario, 0.1, extrapolation="linear")


@pytest.mark.parametrize("balance", ["energy", "inversion"])
@pytest.mark.parametrize("made", [chain, in_a_level])
def test_a_page_shows_the_ports_and_wires_of_the_scenario_only(made, balance):
    plain, balanced = (plan_tree(made(how)) for how in (None, balance))
    assert any(getattr(model, "bookkeeping", ()) for model in balanced.leaves.wiring.models)
    assert list(connection_rows(balanced)) == list(connection_rows(plain))
    for one, other in zip(balanced.levels(), plain.levels(), strict=True):
        order = list(range(len(one.wiring.names)))
        assert [wire.ports for wire in route_wires(one, order)] == [
            wire.ports for wire in route_wires(other, order)
        ]
    assert (
        {row["bond"] for row in connection_rows(balanced)} == {"one", "two"} if made is chain else {"joint"}
    )
    page = levels_section(balanced, "page")
    assert not HIDDEN.search(page)
    assert page.replace(f", balanced by {balance}", "") == levels_section(plain, "page")
    assert f"state-space, exact, balanced by {balance}" in page
