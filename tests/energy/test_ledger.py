"""The accounts of power bonds: against stored energy, heat and exact integrals, on both engines."""

from __future__ import annotations

import numpy as np
import pytest

import hocket as hk
from hocket.orchestrators.adaptive import Adaptive
from hocket.orchestrators.asynchronous import Asynchronous
from systems import ENGINES, SPRING_MASS

C, M = 2.0, 3.0
START = 1.0, 0.5
BOND = {"joint": hk.Bond("mass.f", "spring.v")}


def spring(c=C, d=0.0):
    """A spring with a damper: it gives f = -c s - d v, and shows s."""
    return hk.StateSpace([[0]], [[1]], [[-c], [1]], [[-d], [0]], START[:1], ["v [m/s]"], ["f [N]", "s [m]"])


def mass(m=M):
    return hk.StateSpace([[0]], [[1 / m]], [[1]], x0=START[1:], inputs=["f [N]"], outputs=["v [m/s]"])


def pair(orchestrator, extrapolation="hold", step="0.2", d=0.0, start="window"):
    scenario = hk.Scenario({"spring": spring(d=d), "mass": mass()}, SPRING_MASS, bonds=BOND)
    return hk.Composite(scenario, step, orchestrator, extrapolation, start)


def stored(run, inside=""):
    """Return what spring and mass store in every row, in J."""
    return 0.5 * C * run[f"{inside}spring.s"].values ** 2, 0.5 * M * run["mass.v"].values ** 2


def both(composite, stop, **options):
    """Run on both engines with their ledgers; all bits are the same."""
    native, plain = (hk.run(composite, stop, ledger=True, engine=engine, **options) for engine in ENGINES)
    assert [native.info["engine"], plain.info["engine"]] == list(ENGINES)
    assert plain.info["bonds"] == native.info["bonds"]
    assert plain.tables == native.tables
    for table in plain.tables:
        theirs, ours = plain.table(table.name), native.table(table.name)
        for name in theirs.column_names:
            assert np.array_equal(theirs[name].to_numpy(), ours[name].to_numpy()), name
    return native


# without losses, what is gained is the change of what is stored

WAYS = {
    "Jacobi": hk.Jacobi(),
    "Jacobi, stale": hk.Jacobi(outputs="stale"),
    "Jacobi, delayed": hk.Jacobi(inputs="delayed"),
    "Gauss-Seidel": hk.GaussSeidel(),
    "Gauss-Seidel, mass first, stale": hk.GaussSeidel(["mass", "spring"], outputs="stale"),
    "iterated": hk.Iterate(hk.Jacobi(), 1e-12),
    "iterated twice, stale": hk.Iterate(hk.GaussSeidel(outputs="stale"), None, 2),
    "Newton": hk.Iterate(hk.Jacobi(), 1e-12, accelerate="newton"),
    "spring three times": hk.Multirate({"spring": 3}),
    "mass three times, first, stale": hk.Multirate({"mass": 3}, "fastest-first", outputs="stale"),
    "compound": hk.Multirate({"mass": 3}, "compound"),
    "compound, stale": hk.Multirate({"spring": 4}, "compound", outputs="stale"),
    "asynchronous": Asynchronous({"spring": 3, "mass": 2}),
    "asynchronous, stale": Asynchronous({"spring": 2, "mass": 5}, outputs="stale"),
    "adaptive": Adaptive(hk.Jacobi(), 0.1, first=1),
    "adaptive, stale": Adaptive(hk.GaussSeidel(outputs="stale"), 0.05, first=1),
    "adaptive, orders": Adaptive(hk.Jacobi(), 0.1, "orders"),
    "adaptive, half steps": Adaptive(hk.Jacobi(), 0.02, "richardson", first=1),
    "adaptive, iterated": Adaptive(hk.Iterate(hk.Jacobi(), 1e-10), 0.01, first=1),
    "adaptive, rates": Adaptive(hk.Multirate({"spring": 2}), 0.05, first=1),
}
INPUTS = {
    "hold": hk.Hold(),
    "linear": hk.Polynomial(1),
    "tangent": hk.Hermite(),
    "corrected": hk.BalanceCorrection(),
    "filtered": hk.Nepce(-0.2),
}


@pytest.mark.parametrize("extrapolation", INPUTS.values(), ids=INPUTS)
@pytest.mark.parametrize("orchestrator", WAYS.values(), ids=WAYS)
def test_what_is_gained_is_the_change_of_what_is_stored(orchestrator, extrapolation):
    """Under lines, s and v are quadratic in time: the ledger's rules are exact."""
    run = both(pair(orchestrator, extrapolation), 3)
    in_spring, in_mass = stored(run)
    flowed = run.info["bonds"]["joint"]
    total = in_spring + in_mass
    assert run["joint.gained"].values == pytest.approx(total - total[0], abs=1e-13)
    assert flowed["given"] == pytest.approx(in_spring[0] - in_spring[-1], abs=1e-13)
    assert flowed["taken"] == pytest.approx(in_mass[-1] - in_mass[0], abs=1e-13)
    assert flowed["gained"] == run["joint.gained"].values[-1]
    assert np.abs(run["joint.given"].values).max() > 0.3


@pytest.mark.parametrize(
    "name", ["adaptive", "adaptive, stale", "adaptive, half steps", "adaptive, iterated", "adaptive, rates"]
)
def test_the_test_above_meets_steps_that_were_taken_back(name):
    run = hk.run(pair(WAYS[name]), 3)
    assert run.info["counts"]["adapted"][""]["rejected"] >= 1


@pytest.mark.parametrize("extrapolation", INPUTS.values(), ids=INPUTS)
@pytest.mark.parametrize(
    "sweep",
    [
        Asynchronous({"spring": 3, "mass": 2}),
        Asynchronous({"spring": 1, "mass": 2}, outputs="stale"),
        hk.Multirate({"spring": 2, "mass": 2}),
    ],
    ids=["in turns", "in turns, stale", "twice each"],
)
@pytest.mark.parametrize("d", [0.0, 0.5])
def test_several_steps_in_a_sweep_start_where_the_one_before_ended(d, sweep, extrapolation):
    """Not where the sweep began: what each side stores tells its account; with a damper, that of the mass."""
    run = both(pair(hk.Iterate(sweep, None, 3, None), extrapolation, d=d), 2)
    in_spring, in_mass = stored(run)
    flowed = run.info["bonds"]["joint"]
    assert flowed["taken"] == pytest.approx(in_mass[-1] - in_mass[0], abs=1e-13)
    if d == 0.0:
        assert flowed["given"] == pytest.approx(in_spring[0] - in_spring[-1], abs=1e-13)
    assert min(np.ptp(in_spring), np.ptp(in_mass)) > 0.1


def test_rejected_steps_leave_no_trace():
    """A run with many steps taken back, against the sum over the rows that stayed: f v is a line in each."""
    run = both(pair(Adaptive(hk.Jacobi(), 0.05, first=1, controller="I"), step="0.5"), 20)
    assert run.info["counts"]["adapted"][""]["rejected"] >= 3
    t, f, v = run["spring.f"].t, run["spring.f"].values, run["mass.v"].values
    given = 0.5 * np.diff(t) * (f[:-1] + f[1:]) * v[:-1]
    taken = 0.5 * np.diff(t) * (v[:-1] + v[1:]) * f[:-1]
    gained = np.append(0.0, np.cumsum(taken - given))
    assert run["joint.gained"].values == pytest.approx(gained, abs=1e-12)
    assert run.info["bonds"]["joint"]["given"] == pytest.approx(given.sum(), abs=1e-12)


def test_hold_gains_omega_squared_per_step():
    """Moshagen 2021: every step of held inputs makes 1 + (omega H)^2 of the energy."""
    run = hk.run(pair(hk.Jacobi(), step="0.1"), 4, ledger=True)
    E0 = 0.5 * (C * START[0] ** 2 + M * START[1] ** 2)
    factor = 1 + C / M * 0.01
    expected = E0 * (factor ** np.arange(41) - 1)
    assert run["joint.gained"].values == pytest.approx(expected, abs=1e-13)


# levels


def nested(extrapolation="hold", step="0.1", orchestrator=None, inner=None, start="window"):
    """Put the spring into a level, and a bond across."""
    axle = hk.Composite(hk.Scenario({"spring": spring()}), step, inner or hk.Jacobi(), start=start)
    scenario = hk.Scenario(
        {"axle": axle, "mass": mass()},
        {"mass.f": "axle.spring.f", "axle.spring.v": "mass.v"},
        bonds={"joint": hk.Bond("mass.f", "axle.spring.v")},
    )
    return hk.Composite(scenario, "0.2", orchestrator or hk.Jacobi(), extrapolation, start)


@pytest.mark.parametrize("step", ["0.2", "0.1", "0.05"])
@pytest.mark.parametrize("extrapolation", [hk.Hold(), hk.BalanceCorrection(), hk.Nepce(0.1)], ids=str)
@pytest.mark.parametrize(
    "orchestrator",
    [
        hk.Jacobi(),
        hk.GaussSeidel(outputs="stale"),
        hk.Iterate(hk.Jacobi(), 1e-12),
        Adaptive(hk.Jacobi(), 0.2),
    ],
    ids=lambda way: type(way).__name__,
)
def test_a_bond_across_levels_gains_what_is_stored(orchestrator, extrapolation, step):
    inner = None
    if isinstance(orchestrator, Adaptive):
        inner = Adaptive(hk.Jacobi(), 10.0, first=1)
    run = both(nested(extrapolation, step, orchestrator, inner), 4)
    in_spring, in_mass = stored(run, "axle.")
    flowed = run.info["bonds"]["joint"]
    assert flowed["given"] == pytest.approx(in_spring[0] - in_spring[-1], abs=1e-13)
    assert flowed["taken"] == pytest.approx(in_mass[-1] - in_mass[0], abs=1e-13)


@pytest.mark.parametrize("extrapolation", [hk.Hold(), hk.BalanceCorrection(), hk.Nepce(0.1)], ids=str)
@pytest.mark.parametrize(
    "orchestrator", [hk.Jacobi(), hk.GaussSeidel(["mass", "axle"]), hk.GaussSeidel(outputs="stale")]
)
@pytest.mark.parametrize("step", ["0.4", "0.6"])
def test_a_level_with_a_longer_step_gives_what_it_stored(orchestrator, extrapolation, step):
    """It takes the inputs of the first of the steps around it, and shows its outputs after the last."""
    run = both(nested(extrapolation, step, orchestrator), 6)
    in_spring, in_mass = stored(run, "axle.")
    flowed = run.info["bonds"]["joint"]
    assert flowed["given"] == pytest.approx(in_spring[0] - in_spring[-1], abs=1e-13)
    assert flowed["taken"] == pytest.approx(in_mass[-1] - in_mass[0], abs=1e-13)
    assert np.ptp(in_spring) > 0.1


def test_bonds_of_an_inner_level_have_its_path_and_its_rows():
    """A whole spring and mass in a level with steps of a fifth; beside it, one with bonds of its own."""
    inner = hk.Composite(hk.Scenario({"spring": spring(), "mass": mass()}, SPRING_MASS, bonds=BOND), "0.04")
    scenario = hk.Scenario({"axle": inner, "spring": spring(), "mass": mass()}, SPRING_MASS, bonds=BOND)
    run = both(hk.Composite(scenario, "0.2"), 4)
    assert set(run.info["bonds"]) == {"joint", "axle.joint"}
    E0 = 0.5 * (C * START[0] ** 2 + M * START[1] ** 2)
    for prefix, h, count in (("", 0.2, 20), ("axle.", 0.04, 100)):
        gained = run[f"{prefix}joint.gained"]
        assert len(gained.t) == count + 1
        assert gained.values == pytest.approx(
            E0 * ((1 + C / M * h * h) ** np.arange(count + 1) - 1), abs=1e-12
        )


def test_an_inner_bond_is_repeated_and_taken_back_with_its_level():
    """The level around iterates, in steps that are taken back; the pair inside is left alone by the rest."""
    inside = hk.Scenario({"spring": spring(), "mass": mass()}, SPRING_MASS, bonds=BOND)
    other = hk.StateSpace([[-1]], [[5]], [[1]], x0=[1], inputs=["u"], outputs=["y"])
    scenario = hk.Scenario(
        {"axle": hk.Composite(inside, "0.25", Adaptive(hk.Jacobi(), 0.5, first=1)), "a": other, "b": other},
        {"a.u": "b.y", "b.u": "a.y"},
    )
    way = Adaptive(hk.Iterate(hk.Jacobi(), 1e-9), 0.5, first=1)
    run = both(hk.Composite(scenario, "0.25", way), 2)
    assert run.info["counts"]["adapted"][""]["rejected"] >= 1
    energy = 0.5 * C * run["axle.spring.s"].values ** 2 + 0.5 * M * run["axle.mass.v"].values ** 2
    assert run["axle.joint.gained"].values == pytest.approx(energy - energy[0], abs=1e-13)


# what is kept


def test_columns_and_their_units():
    run = hk.run(pair(hk.Jacobi()), 1, ledger=True)
    assert run.ports == ("spring.f", "spring.s", "mass.v", "joint.given", "joint.taken", "joint.gained")
    assert [run[f"joint.{name}"].unit for name in ("given", "taken", "gained")] == ["W", "W", "J"]
    assert run.info["bonds"]["joint"]["unit"] == "J"
    f, v = run["spring.f"].values, run["mass.v"].values
    assert run["joint.given"].values == pytest.approx([f[0] * v[0], *(f[1:] * v[:-1])], abs=1e-15)
    assert run["joint.taken"].values == pytest.approx([f[0] * v[0], *(f[:-1] * v[1:])], abs=1e-15)


@pytest.mark.parametrize("engine", ENGINES)
def test_energies_are_told_without_columns_too(engine):
    plain, kept = (hk.run(pair(hk.Jacobi()), 4, ledger=ledger, engine=engine) for ledger in (False, True))
    assert plain.ports == ("spring.f", "spring.s", "mass.v")
    assert plain.info["bonds"] == kept.info["bonds"]
    assert np.array_equal(plain["mass.v"].values, kept["mass.v"].values)


def test_bonds_do_not_change_the_run():
    with_bonds = pair(hk.Jacobi(), "linear")
    without = hk.Composite(with_bonds.scenario.with_changes(bonds={}), "0.2", hk.Jacobi(), "linear")
    runs = [hk.run(each, 4) for each in (with_bonds, without)]
    assert np.array_equal(*(run["mass.v"].values for run in runs))
    assert "bonds" not in runs[1].info


def test_one_column_by_its_path():
    run = hk.run(pair(hk.Jacobi()), 1, record=["joint.gained"])
    assert run.ports == ("joint.gained",)
    assert len(run["joint.gained"].t) == 6
    with pytest.raises(hk.ScenarioError, match=r"no port `joint.gaind`(.|\n)*joint.gained"):
        hk.run(pair(hk.Jacobi()), 1, record=["joint.gaind"])


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_that_are_further_apart_hold_the_same_accounts(engine):
    fine, coarse = (
        hk.run(pair(hk.Jacobi(), "linear"), 4, ledger=True, every=every, engine=engine) for every in (None, 1)
    )
    for name in ("given", "taken", "gained"):
        assert np.array_equal(fine[f"joint.{name}"].values[::5], coarse[f"joint.{name}"].values)


def test_a_run_that_starts_later_begins_at_nothing():
    run = both(pair(hk.Jacobi(), "linear"), 5, start=1)
    assert run["joint.gained"].values[0] == 0.0
    in_spring, in_mass = stored(run)
    total = in_spring + in_mass
    assert run["joint.gained"].values == pytest.approx(total - total[0], abs=1e-13)


def test_a_composite_that_runs_again_begins_at_nothing():
    composite = pair(hk.Jacobi(), "linear")
    first, second = (hk.run(composite, 2).info["bonds"] for _ in range(2))
    assert first == second


# steps that end early, and simulators with steps of their own


class Relay:
    """Shows nothing but that it stops every 0.37 s."""

    outputs = ("y",)
    stops_early = True

    def start(self, t):
        self.changes = 0

    def output(self, t):
        return [float(self.changes)]

    def step(self, t, h, u):
        change = (self.changes + 1) * 0.37
        if t + h < change - 1e-12:
            return t + h
        self.changes += 1
        return min(t + h, change)

    def save(self):
        return self.changes

    def restore(self, state):
        self.changes = state


@pytest.mark.parametrize("extrapolation", ["hold", "linear"])
@pytest.mark.parametrize(
    "orchestrator",
    [hk.Jacobi(), hk.GaussSeidel(outputs="stale"), Adaptive(hk.Jacobi(), 0.1, first=1)],
    ids=lambda way: type(way).__name__,
)
def test_steps_that_end_early(orchestrator, extrapolation):
    """They are made again to where the event is, and what was made in vain is not in the accounts."""
    models = {"spring": spring(), "mass": mass(), "relay": hk.Python(Relay)}
    scenario = hk.Scenario(models, SPRING_MASS, bonds=BOND)
    runs = [
        hk.run(hk.Composite(scenario, "0.2", orchestrator, extrapolation), 3, ledger=True, engine=engine)
        for engine in ENGINES
    ]
    assert np.array_equal(*(run["joint.gained"].values for run in runs))
    run = runs[1]
    assert run["relay.y"].values[-1] == 8
    in_spring, in_mass = stored(run)
    total = in_spring + in_mass
    assert run["joint.gained"].values == pytest.approx(total - total[0], abs=1e-13)
    flowed = run.info["bonds"]["joint"]
    assert flowed["given"] == pytest.approx(in_spring[0] - in_spring[-1], abs=1e-13)
