"""Step control by energy says in which unit its tolerance counts."""

import pytest

import hocket as hk
from hocket.errors import ConvergenceError, ScenarioError
from hocket.planning.planner import plan_tree
from systems import ENGINES

MASS = hk.StateSpace([[0.0]], [[1.0]], [[1.0]], x0=[0.5], inputs=["f [N]"], outputs=["v [m/s]"])
SPRING = hk.StateSpace([[0.0]], [[1.0]], [[-1.0]], x0=[1.0], inputs=["v [m/s]"], outputs=["f [N]"])


def pairs(*units: str, **how: object) -> hk.Composite:
    """Springs and masses, each pair with a bond in its unit."""
    models, wired, bonds = {}, {}, {}
    for k, unit in enumerate(units):
        models |= {f"s{k}": SPRING, f"m{k}": MASS}
        wired |= {f"m{k}.f": f"s{k}.f", f"s{k}.v": f"m{k}.v"}
        bonds[f"joint{k}"] = hk.Bond(f"m{k}.f", f"s{k}.v", unit)
    control = hk.Adaptive(estimate="energy", **{"tolerance": 0.5, "per": "unit", **how})
    return hk.Composite(hk.Scenario(models, wired, bonds=bonds), "0.2 s", control)


@pytest.mark.parametrize(
    ("unit", "per", "said"),
    [("W", "unit", "0.5 W by"), ("W", "step", "0.5 J per step by"), ("kW", "step", "0.5 kW.s per step by")],
)
def test_the_plan_has_the_unit(unit: str, per: str, said: str) -> None:
    assert f"an error of {said} what the bonds gained" in str(plan_tree(pairs(unit, per=per)).plan)


@pytest.mark.parametrize("engine", ENGINES)
def test_so_has_the_error(engine: str) -> None:
    with pytest.raises(ConvergenceError, match="expected: an error of 1e-15 W"):
        hk.run(pairs("W", tolerance=1e-15, quantum="1/8", first="1/8"), 5, engine=engine)


def test_units_are_not_added_up() -> None:
    with pytest.raises(ScenarioError, match="count in `W`, `kW`"):
        plan_tree(pairs("W", "kW"))
