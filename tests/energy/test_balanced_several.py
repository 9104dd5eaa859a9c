"""Several bonds at a simulator, balanced by energy: what is stored stays, and motion converges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import expm

import hocket as hk
from hocket.simulators.energy_projection import BondFlow, limit_energies
from systems import ENGINES

Array = NDArray[np.float64]
TANGENT = hk.Hermite()


def store(B: Any, C: Any, x0: Any, inputs: Any, outputs: Any, Q: Any) -> hk.StateSpace:
    """Return x' = B u, y = C x, W = x'Qx/2: masses or springs."""
    A = np.zeros((len(x0), len(x0)))
    return hk.StateSpace(A, B, C, x0=x0, inputs=inputs, outputs=outputs, energy=Q)


@dataclass(frozen=True)
class Chain:
    """Masses (kg) with springs (N/m) between them, each a simulator; with speeds and lengths to start."""

    masses: tuple[float, ...]
    springs: tuple[float, ...]
    speeds: tuple[float, ...]
    lengths: tuple[float, ...]

    @property
    def weights(self) -> Array:
        return np.array([*self.masses, *self.springs])

    def models(self) -> dict[str, Any]:
        last = len(self.masses) - 1
        made: dict[str, Any] = {}
        for i, (m, v) in enumerate(zip(self.masses, self.speeds, strict=True)):
            sides = [("left [N]", 1 / m)] * (i > 0) + [("right [N]", -1 / m)] * (i < last)
            names, B = [name for name, _ in sides], [[gain for _, gain in sides]]
            made[f"m{i}"] = store(B, [[1]], [v], names, ["v [m/s]"], [[m]])
        for i, (c, s) in enumerate(zip(self.springs, self.lengths, strict=True)):
            ends = ["a [m/s]", "b [m/s]"]
            made[f"k{i}"] = store([[1, -1]], [[c]], [s], ends, ["f [N]"], [[c]])
        return made

    def joined(self, models: dict[str, Any], prefix: str = "") -> hk.Scenario:
        connections: dict[str, str] = {}
        bonds: dict[str, hk.Bond] = {}
        for i in range(len(self.springs)):
            k = f"{prefix}k{i}"
            connections |= {f"m{i}.right": f"{k}.f", f"m{i + 1}.left": f"{k}.f"}
            connections |= {f"{k}.a": f"m{i}.v", f"{k}.b": f"m{i + 1}.v"}
            bonds[f"l{i}"] = hk.Bond(f"m{i}.right", f"{k}.a", reverse=True, balance="energy")
            bonds[f"r{i}"] = hk.Bond(f"m{i + 1}.left", f"{k}.b", balance="energy")
        return hk.Scenario(models, connections, bonds=bonds)

    def states(self, run: hk.Run, prefix: str = "") -> Array:
        speeds = [run[f"m{i}.v"].values for i in range(len(self.masses))]
        lengths = [run[f"{prefix}k{i}.f"].values / c for i, c in enumerate(self.springs)]
        return np.stack([*speeds, *lengths], axis=1)

    def energies(self, run: hk.Run, prefix: str = "") -> Array:
        stored: Array = 0.5 * np.square(self.states(run, prefix)) @ self.weights
        return stored

    def truth(self, step: float, count: int) -> Array:
        """Return the motion of the whole, by its matrix exponential."""
        n = len(self.masses)
        A = np.zeros((n + len(self.springs),) * 2)
        for i, c in enumerate(self.springs):
            A[i, n + i], A[i + 1, n + i] = -c / self.masses[i], c / self.masses[i + 1]
            A[n + i, i], A[n + i, i + 1] = 1, -1
        rows, once = [np.array([*self.speeds, *self.lengths], dtype=float)], expm(A * step)
        for _ in range(count):
            rows.append(once @ rows[-1])
        return np.array(rows)

    def run(self, step: float, inputs: Any = TANGENT, how: Any = "jacobi", stop: float = 5.0) -> hk.Run:
        return hk.run(hk.Composite(self.joined(self.models()), f"{step} s", how, inputs), stop)

    def error(self, step: float, inputs: Any = TANGENT) -> float:
        """Return the largest error of motion in 1 s, in the root of energy, over the whole."""
        seen = self.states(self.run(step, inputs, stop=1.0))
        true = self.truth(step, len(seen) - 1)
        size = np.sqrt(np.square(true[0]) @ self.weights)
        return float(np.abs((seen - true) * np.sqrt(self.weights)).max() / size)


PUSHED = Chain((1, 1), (100,), (1, 0), (0,))
STRETCHED = Chain((1, 1), (100,), (0, 0), (0.1,))
DRIVING = Chain((1, 1), (100,), (10, 10.5), (0,))
"""Both go the same way: far more power passes through the spring than it takes in."""
THREE = Chain((1, 2, 1), (100, 50), (1, 0, 0), (0, 0))
FIVE = Chain((1, 2, 1, 0.5, 1), (100, 50, 100, 80), (1, 0, 0, 0, 0), (0, 0, 0, 0))
CHAINS = {"pushed": PUSHED, "stretched": STRETCHED, "driving": DRIVING, "three": THREE, "five": FIVE}


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("step", [0.2, 0.1, 0.05, 0.02])
def test_tangents_keep_the_stored_energy_at_any_step(name: str, step: float) -> None:
    """Two masses: omega H from 0.28 to 2.8."""
    run = CHAINS[name].run(step)
    E = CHAINS[name].energies(run)
    assert E / E[0] == pytest.approx(np.ones(len(E)), abs=5e-13)
    assert max(abs(bond["gained"]) for bond in run.info["bonds"].values()) < 1e-12 * E[0]


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("step", [0.1, 0.05, 0.02])
def test_lines_pay_back_what_a_start_took(name: str, step: float) -> None:
    """Who is at rest starts with energy that nobody gave; it is settled in the steps that follow."""
    E = CHAINS[name].energies(CHAINS[name].run(step, "linear"))
    off = np.abs(E / E[0] - 1.0)
    assert np.quantile(off, 0.25) < 1e-12  # but for some steps after a start, and who is emptied starts again
    assert E.max() <= 4.0 * E[0]


def test_a_start_with_lines_gains_only_for_a_while() -> None:
    E = PUSHED.energies(PUSHED.run(0.05, "linear"))
    assert E.max() > 1.1 * E[0]  # the second mass knows no slope at rest
    assert E[12:] / E[0] == pytest.approx(np.ones(len(E) - 12), abs=1e-3)


@pytest.mark.parametrize("name", ["pushed", "stretched", "driving", "three"])
@pytest.mark.parametrize(("inputs", "coarse"), [(TANGENT, 0.01), ("linear", 0.005)])
def test_motion_is_of_second_order(name: str, inputs: Any, coarse: float) -> None:
    errors = [CHAINS[name].error(step, inputs) for step in (coarse, coarse / 2)]
    assert 3.2 < errors[0] / errors[1] < 6.0


def test_power_that_passes_through_is_not_held_up() -> None:
    """The same masses at rest on average: the motion between them is the same, whatever the speed of both."""
    slow = Chain((1, 1), (100,), (-0.25, 0.25), (0,))
    size = np.sqrt(10**2 + 10.5**2) / np.sqrt(2 * 0.25**2)
    assert DRIVING.error(0.005) * size < 2.0 * slow.error(0.005)


@pytest.mark.parametrize("inner", ["0.1 s", "0.05 s", "0.025 s"])
@pytest.mark.parametrize("name", ["pushed", "three"])
def test_springs_in_a_level_with_steps_of_its_own(name: str, inner: str) -> None:
    """What was agreed for the long step is handed over in the short ones."""
    chain = CHAINS[name]
    models = chain.models()
    springs = {each: models.pop(each) for each in list(models) if each.startswith("k")}
    inside = hk.Composite(hk.Scenario(springs, {}), inner, "jacobi", "linear")
    scenario = chain.joined({**models, "axle": inside}, "axle.")
    run = hk.run(hk.Composite(scenario, "0.1 s", "jacobi", "linear"), 5)
    stored = run.info["stored"].values()
    assert sum(each["end"] for each in stored) == pytest.approx(0.5, rel=1e-12)
    assert max(abs(bond["gained"]) for bond in run.info["bonds"].values()) < 1e-12


@pytest.mark.parametrize("omega_h", [0.4, 0.7, 1.25])
def test_one_bond_and_a_level_with_shorter_steps(omega_h: float) -> None:
    c = (omega_h / 0.2) ** 2
    spring = store([[1]], [[-c]], [1.0], ["v [m/s]"], ["f [N]"], [[c]])
    mass = store([[1]], [[1]], [0.5], ["f [N]"], ["v [m/s]"], [[1]])
    inside = hk.Composite(hk.Scenario({"spring": spring}, {}), "0.05 s", "jacobi", "linear")
    scenario = hk.Scenario(
        {"axle": inside, "mass": mass},
        {"mass.f": "axle.spring.f", "axle.spring.v": "mass.v"},
        bonds={"joint": hk.Bond("mass.f", "axle.spring.v", balance="energy")},
    )
    run = hk.run(hk.Composite(scenario, "0.2 s", "jacobi", "linear"), 20)
    stored = run.info["stored"].values()
    assert sum(each["end"] for each in stored) == pytest.approx(0.5 * c + 0.125, rel=1e-12)


def _rate(t: float, x: Array, u: Array) -> list[float]:
    return [u[0] - u[1]]


def _pull(t: float, x: Array, u: Array) -> list[float]:
    return [100 * x[0] + 2e4 * x[0] ** 3]


def _hard(x: Array) -> float:
    return float(50 * x[0] ** 2 + 5e3 * x[0] ** 4)


@pytest.mark.parametrize("step", [0.1, 0.05, 0.01])
def test_equations_with_an_energy_that_is_no_square(step: float) -> None:
    """A spring of 100 s + 20000 s^3; solvers sum its work to about 1e-9."""
    spring = hk.Ode(
        _rate, _pull, [0.1], ["a [m/s]", "b [m/s]"], ["f [N]"], feedthrough={}, step="0.25 ms", energy=_hard
    )
    scenario = STRETCHED.joined({**STRETCHED.models(), "k0": spring})
    run = hk.run(hk.Composite(scenario, f"{step} s", "jacobi", "linear"), 1)
    stored = run.info["stored"].values()
    assert sum(each["end"] for each in stored) == pytest.approx(_hard(np.array([0.1])), rel=1e-8)
    assert max(abs(run["m0.v"].values)) > 0.5  # and it moves


def test_levers_and_other_units() -> None:
    """Behind a lever of 2 the second mass has half the speed; its port counts in mm/s, the spring's in kN."""
    models = PUSHED.models()
    models["m1"] = store([[2e6]], [[1]], [100.0], ["left [kN]"], ["v [mm/s]"], [[0.5e-6]])
    connections = [
        hk.Connection("k0.f", "m0.right"),
        hk.Connection("m0.v", "k0.a"),
        hk.Connection("k0.f", "m1.left", gain=2.0),
        hk.Connection("m1.v", "k0.b", gain=2.0),
    ]
    bonds = {
        "l": hk.Bond("m0.right", "k0.a", reverse=True, balance="energy"),
        "r": hk.Bond("m1.left", "k0.b", balance="energy"),
    }
    scenario = hk.Scenario(models, connections, bonds=bonds)
    run = hk.run(hk.Composite(scenario, "0.05 s", "jacobi", TANGENT), 5)
    E = 0.5 * run["m0.v"].values ** 2 + 0.25e-6 * run["m1.v"].values ** 2 + run["k0.f"].values ** 2 / 200
    assert E / E[0] == pytest.approx(np.ones(len(E)), abs=1e-12)
    short = hk.run(hk.Composite(scenario, "0.002 s", "jacobi", TANGENT), 1)
    # s' = v0 - 2 v1, v0' = -100 s, v1' = 2 * 100 s / 0.5
    A = np.array([[0, 0, -100], [0, 0, 400], [1, -2, 0]])
    true = expm(A) @ np.array([1, 0.1, 0])
    assert short["m0.v"].values[-1] == pytest.approx(true[0], abs=0.02)


def test_a_hub_with_three_springs() -> None:
    ports = [f"f{i} [N]" for i in range(3)]
    hub = store([[1, 1, 1]], [[1]], [1.0], ports, ["v [m/s]"], [[1]])
    models: dict[str, Any] = {"hub": hub}
    connections, bonds = {}, {}
    for i, c in enumerate((50.0, 100.0, 200.0)):
        models[f"k{i}"] = store([[1]], [[-c]], [0.05 * i], ["v [m/s]"], ["f [N]"], [[c]])
        connections |= {f"hub.f{i}": f"k{i}.f", f"k{i}.v": "hub.v"}
        bonds[f"b{i}"] = hk.Bond(f"hub.f{i}", f"k{i}.v", balance="energy")
    scenario = hk.Scenario(models, connections, bonds=bonds)
    for step in ("0.1 s", "0.03 s"):
        run = hk.run(hk.Composite(scenario, step, "jacobi", TANGENT), 3)
        E = 0.5 * run["hub.v"].values ** 2
        for i, c in enumerate((50.0, 100.0, 200.0)):
            E = E + run[f"k{i}.f"].values ** 2 / (2 * c)
        assert E / E[0] == pytest.approx(np.ones(len(E)), abs=1e-12)


def test_two_bonds_between_the_same_two() -> None:
    """Two springs in one simulator, two masses in the other."""
    names = (["v0 [m/s]", "v1 [m/s]"], ["f0 [N]", "f1 [N]"])
    springs = store(np.eye(2), np.diag([-100, -30]), [0.1, 0], *names, np.diag([100, 30]))
    masses = store(np.eye(2), np.eye(2), [0, 0.5], *names[::-1], np.eye(2))
    connections = {f"masses.f{i}": f"springs.f{i}" for i in range(2)}
    connections |= {f"springs.v{i}": f"masses.v{i}" for i in range(2)}
    bonds = {f"b{i}": hk.Bond(f"masses.f{i}", f"springs.v{i}", balance="energy") for i in range(2)}
    scenario = hk.Scenario({"springs": springs, "masses": masses}, connections, bonds=bonds)
    run = hk.run(hk.Composite(scenario, "0.1 s", "jacobi", TANGENT), 5)
    stored = run.info["stored"].values()
    assert sum(each["end"] for each in stored) == pytest.approx(0.5 + 0.125, rel=1e-12)


def test_both_engines_and_iterations() -> None:
    scenario = THREE.joined(THREE.models())
    level = hk.Composite(scenario, "0.05 s", "jacobi", "linear")
    seen = [THREE.states(hk.run(level, 3, engine=engine)) for engine in ENGINES]
    assert np.array_equal(*seen)
    twice = THREE.run(0.05, TANGENT, hk.Iterate(hk.Jacobi(), None, 2))
    E = THREE.energies(twice)
    assert E[-1] == pytest.approx(E[0], rel=1e-12)


def flows(*each: tuple[float, float, int]) -> Sequence[BondFlow]:
    return [BondFlow(*one) for one in each]


def test_one_bond_gives_what_is_stored() -> None:
    assert limit_energies(3.0, flows((-5.0, 1.0, 1))) == [-3.0]
    assert limit_energies(3.0, flows((-2.0, 1.0, 1))) == [-2.0]
    assert limit_energies(3.0, flows((9.0, 1.0, 1))) == [9.0]  # the limit of the other one is the other one's
    assert limit_energies(-1.0, flows((-5.0, 1.0, 1))) == [-5.0]  # what is not told limits nothing


def test_what_comes_in_for_sure_may_pass_through() -> None:
    # 8 J come from one that stores 20 J and has two bonds: all of it is sure
    assert limit_energies(1.0, flows((8.0, 20.0, 2), (-9.0, 0.0, 1))) == [8.0, -9.0]
    # of 6 J with two bonds, 3 are sure
    assert limit_energies(1.0, flows((8.0, 6.0, 2), (-9.0, 0.0, 1))) == [8.0, -4.0]
    # two ask for 1 and 9 J of 6: one gets all of its 1, the other the rest
    assert limit_energies(6.0, flows((-1.0, 0.0, 1), (-9.0, 0.0, 1))) == [-1.0, -5.0]
    assert limit_energies(6.0, flows((-7.0, 0.0, 1), (-9.0, 0.0, 1))) == [-3.0, -3.0]


def into(s: int, stored: Array, asked: dict[tuple[int, int], float]) -> dict[tuple[int, int], BondFlow]:
    """Return the bonds of s; what is asked counts from the second end to the first."""
    found = {}
    for end, energy in asked.items():
        if s in end:
            other = end[0] if end[1] == s else end[1]
            count = sum(other in each for each in asked)
            found[end] = BondFlow(energy if end[0] == s else -energy, float(stored[other]), count)
    return found


def test_nobody_ends_below_zero_whatever_the_network() -> None:
    """Bonds at random: what is left after all limits is never below zero."""
    random = np.random.default_rng(6)
    for _ in range(300):
        stored = random.exponential(1.0, 5) * (random.random(5) < 0.8)
        ends = [(i, j) for i in range(5) for j in range(i) if random.random() < 0.6]
        asked = {end: float(random.normal(0.0, 2.0)) for end in ends}
        left = stored.copy()
        for end, energy in asked.items():
            giver, taker = (end[1], end[0]) if energy > 0.0 else end
            mine = into(giver, stored, asked)
            limited = limit_energies(float(stored[giver]), list(mine.values()))
            given = -limited[list(mine).index(end)]
            assert 0.0 <= given <= abs(energy)
            left[giver] -= given
            left[taker] += given
        assert left.min() > -1e-12
