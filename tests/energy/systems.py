"""Systems that are cut at power bonds, with their true motion and the energy they store.

Simulators solve their equations exactly or in short Runge-Kutta steps, so that only the coupling errs. True
motions do not come from hocket: matrix exponentials of the uncut equations, else SciPy at 1e-12.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import hocket as hk

Array = NDArray[np.float64]


@dataclass(frozen=True)
class System:
    """Simulators, what joins them, and what is known about the whole."""

    name: str
    models: dict[str, Any]
    connections: dict[str, str]
    bonds: dict[str, dict[str, Any]]
    """What a Bond is made of: the inputs that effort and flow drive, and whether power counts backwards."""
    ports: tuple[str, ...]
    """Outputs from which the whole state can be told."""
    end: str
    steps: tuple[str, ...]
    """Five, each half the one before."""
    reference: Callable[[Array], Array]
    """The true values of `ports` at given times, one row per time."""
    stored: Callable[[Array], Array]
    """The energy in joules of rows of `ports`."""
    lossless: bool = False

    def scenario(self, balance: str | None = None, **options: Any) -> hk.Scenario:
        """Return it with its bonds."""
        bonds = {name: hk.Bond(**ends, balance=balance, **options) for name, ends in self.bonds.items()}
        return hk.Scenario(self.models, self.connections, bonds=bonds)

    def seen(self, run: hk.Run) -> tuple[Array, Array]:
        """Return the times and rows of `ports` that a run kept."""
        return run[self.ports[0]].t, np.stack([run[port].values for port in self.ports], axis=1)


def exactly(A: Any, x0: Any, C: Any, t: Array, settled: Any = 0.0) -> Array:
    """Return C x at equidistant times, where x' = A (x - settled)."""
    A, away = np.array(A, dtype=float), np.array(x0, dtype=float) - settled
    once, rows = expm(A * (t[1] - t[0])), [away]
    for _ in t[1:]:
        rows.append(once @ rows[-1])
    return (np.array(rows) + settled) @ np.array(C, dtype=float).T


def finely(f: Callable[..., Any], x0: Any, t: Array, breaks: tuple[float, ...] = ()) -> Array:
    """Return x at these times, integrated piece by piece where f is not smooth."""
    rows, x, began = [np.array([x0], dtype=float)], np.array(x0, dtype=float), float(t[0])
    for end in (*breaks, float(t[-1])):
        wanted = t[(t > began) & (t <= end)]
        asked = np.unique(np.append(wanted, end))
        found = solve_ivp(f, (began, end), x, "DOP853", asked, rtol=1e-12, atol=1e-13)
        rows.append(found.y.T[: len(wanted)])
        x, began = found.y[:, -1], end
    return np.concatenate(rows)


def quadratic(*weights: float) -> Callable[[Array], Array]:
    """Return half the weighted sum of squares."""
    return lambda rows: 0.5 * np.square(rows) @ np.array(weights)


def spring_mass(c: float = 1.0, m: float = 1.0) -> System:
    """A spring (f = -c s) and a mass, the system of Moshagen 2021, table 1."""
    start = [1.0, 0.5]
    spring = hk.StateSpace(
        [[0]], [[1]], [[-c]], x0=start[:1], inputs=["v [m/s]"], outputs=["f [N]"], energy=[[c]]
    )
    mass = hk.StateSpace(
        [[0]], [[1 / m]], [[1]], x0=start[1:], inputs=["f [N]"], outputs=["v [m/s]"], energy=[[m]]
    )
    return System(
        "spring and mass",
        {"spring": spring, "mass": mass},
        {"mass.f": "spring.f", "spring.v": "mass.v"},
        {"joint": {"effort": "mass.f", "flow": "spring.v"}},
        ("spring.f", "mass.v"),
        "80 s",
        ("0.4", "0.2", "0.1", "0.05", "0.025"),
        lambda t: exactly([[0, 1], [-c / m, 0]], start, np.diag([-c, 1]), t),
        quadratic(1 / c, m),
        lossless=True,
    )


def resting_mass(d: float = 0.0) -> hk.StateSpace:
    """A mass of 1 kg at rest, on a spring of 1 N/m and a damper."""
    return hk.StateSpace(
        [[0, 1], [-1, -d]],
        [[0], [1]],
        np.eye(2),
        x0=[0, 0],
        inputs=["F [N]"],
        outputs=["x [m]", "v [m/s]"],
        energy=np.eye(2),
    )


def two_masses(d: float = 0.0, dk: float = 0.0, ck: float = 2.0) -> System:
    """Two masses of 1 kg on springs of 1 N/m; the left one owns spring ck and damper dk between them."""
    left = hk.StateSpace(
        [[0, 1, 0], [-1, -(d + dk), -ck], [0, 1, 0]],
        [[0], [dk], [-1]],
        [[0, dk, ck], [1, 0, 0], [0, 1, 0], [0, 0, 1]],
        [[-dk], [0], [0], [0]],
        [1, 0, 1],
        ["v2 [m/s]"],
        ["F [N]", "x [m]", "v [m/s]", "e [m]"],
        energy=np.diag([1, 1, ck]),
    )
    right = resting_mass(d)
    damped = d > 0 or dk > 0
    stiff, rub = np.array([[1 + ck, -ck], [-ck, 1 + ck]]), np.array([[d + dk, -dk], [-dk, d + dk]])
    whole = np.block([[np.zeros((2, 2)), np.eye(2)], [-stiff, -rub]])
    return System(
        f"two masses, {'damped' if damped else 'undamped'}",
        {"left": left, "right": right},
        {"right.F": "left.F", "left.v2": "right.v"},
        {"joint": {"effort": "right.F", "flow": "left.v2"}},
        ("left.x", "left.v", "left.e", "right.x", "right.v"),
        "30 s",
        ("0.4", "0.2", "0.1", "0.05", "0.025"),
        lambda t: exactly(
            whole,
            [1, 0, 0, 0],
            [[1, 0, 0, 0], [0, 0, 1, 0], [1, -1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]],
            t,
        ),
        quadratic(1, 1, ck, 1, 1),
        lossless=not damped,
    )


def _hard_mass(t: float, x: Array, u: Array, k3: float) -> list[float]:
    place, v, F = x
    return [v, -place - k3 * place**3 - F, v - u[0]]


def _hard_energy(x: Array, k3: float) -> float:
    return float(0.5 * (x[0] ** 2 + x[1] ** 2 + x[2] ** 2) + 0.25 * k3 * x[0] ** 4)


def _pair(t: float, x: Array, k3: float) -> list[float]:
    x1, x2, v1, v2 = x
    return [v1, v2, -x1 - k3 * x1**3 - (x1 - x2), (x1 - x2) - x2]


def duffing(k3: float = 1.0) -> System:
    """A mass on a spring x + k3 x^3, by a spring of 1 N/m joined to a mass on one of 1 N/m."""
    hard = hk.Ode(
        _hard_mass,
        x0=[1.5, 0, 1.5],
        inputs=["v2 [m/s]"],
        outputs=["x [m]", "v [m/s]", "F [N]"],
        step="0.005",
        energy=_hard_energy,
        k3=k3,
    )
    soft = resting_mass()

    def reference(t: Array) -> Array:
        x1, x2, v1, v2 = finely(lambda s, x: _pair(s, x, k3), [1.5, 0, 0, 0], t).T
        return np.stack([x1, v1, x1 - x2, x2, v2], axis=1)

    return System(
        "Duffing pair",
        {"hard": hard, "soft": soft},
        {"soft.F": "hard.F", "hard.v2": "soft.v"},
        {"joint": {"effort": "soft.F", "flow": "hard.v2"}},
        ("hard.x", "hard.v", "hard.F", "soft.x", "soft.v"),
        "30 s",
        ("0.4", "0.2", "0.1", "0.05", "0.025"),
        reference,
        lambda rows: quadratic(1, 1, 1, 1, 1)(rows) + 0.25 * k3 * rows[:, 0] ** 4,
        lossless=True,
    )


MOTOR = {
    "V": 24.0, "Rf": 0.1, "Lf": 1e-3, "Cf": 2e-3,
    "R": 0.5, "L": 2e-3, "k": 0.05, "J": 1e-4, "b": 1e-5,
    "N": 5.0, "cs": 2.0, "Jl": 5e-3, "bl": 1e-3,
}  # fmt: skip
"""Volts, ohms, henries, farads; V s, kg m^2, N m s; gear ratio, stiffness at the motor's side, load."""


def motor() -> System:
    """A supply with a filter, a motor, and a load behind a gearbox with an elastic shaft, switched on."""
    V, Rf, Lf, Cf, R, L, k, J, b, N, cs, Jl, bl = MOTOR.values()
    supply = hk.StateSpace(
        [[-Rf / Lf, -1 / Lf], [1 / Cf, 0]],
        [[1 / Lf, 0], [0, -1 / Cf]],
        [[0, 1], [1, 0]],
        x0=[0, 0],
        inputs=[f"emf [V] = {V}", "drawn [A]"],
        outputs=["u [V]", "i [A]"],
        energy=np.diag([Lf, Cf]),
    )
    machine = hk.StateSpace(
        [[-R / L, -k / L], [k / J, -b / J]],
        [[1 / L, 0], [0, -1 / J]],
        np.eye(2),
        x0=[0, 0],
        inputs=["u [V]", "torque [N.m]"],
        outputs=["i [A]", "speed [rad/s]"],
        energy=np.diag([L, J]),
    )
    load = hk.StateSpace(
        [[0, -N], [N * cs / Jl, -bl / Jl]],
        [[1], [0]],
        [[cs, 0], [0, 1]],
        x0=[0, 0],
        inputs=["speed [rad/s]"],
        outputs=["torque [N.m]", "slow [rad/s]"],
        energy=np.diag([cs, Jl]),
    )
    whole = np.array(
        [
            [-Rf / Lf, -1 / Lf, 0, 0, 0, 0],
            [1 / Cf, 0, -1 / Cf, 0, 0, 0],
            [0, 1 / L, -R / L, -k / L, 0, 0],
            [0, 0, k / J, -b / J, -cs / J, 0],
            [0, 0, 0, 1, 0, -N],
            [0, 0, 0, 0, N * cs / Jl, -bl / Jl],
        ]
    )
    settled = -np.linalg.solve(whole, [V / Lf, 0, 0, 0, 0, 0])
    return System(
        "motor with gearbox load",
        {"supply": supply, "motor": machine, "load": load},
        {
            "motor.u": "supply.u",
            "supply.drawn": "motor.i",
            "motor.torque": "load.torque",
            "load.speed": "motor.speed",
        },
        {
            "electrical": {"effort": "motor.u", "flow": "supply.drawn"},
            "mechanical": {"effort": "motor.torque", "flow": "load.speed", "reverse": True},
        },
        ("supply.i", "supply.u", "motor.i", "motor.speed", "load.torque", "load.slow"),
        "0.1 s",
        ("1 ms", "0.5 ms", "0.25 ms", "0.125 ms", "0.0625 ms"),
        lambda t: exactly(whole, np.zeros(6), np.diag([1, 1, 1, 1, cs, 1]), t, settled),
        quadratic(Lf, Cf, L, J, 1 / cs, Jl),
    )


BUMP = 0.05, 0.1
"""The height of the bump in m, and how long the wheel is on it, in s."""


def road_speed(t: float) -> float:
    """Return how fast the road rises under the wheel: a bump like 1 - cos, left at its end."""
    height, length = BUMP
    turn = 2.0 * np.pi / length
    return float(0.5 * height * turn * np.sin(turn * t)) if 0.0 < t < length else 0.0


def _wheel(t: float, x: Array, u: Array, mw: float, kt: float) -> list[float]:
    return [road_speed(t) - x[1], (kt * x[0] - u[0]) / mw]


def _wheel_energy(x: Array, mw: float, kt: float) -> float:
    return float(0.5 * (kt * x[0] ** 2 + mw * x[1] ** 2))


def quarter_car(
    mw: float = 40.0, mb: float = 300.0, kt: float = 160e3, ks: float = 16e3, d: float = 1.2e3
) -> System:
    """A wheel on its tyre, a suspension with a damper, a body; about rest, over a bump."""
    wheel = hk.Ode(
        _wheel,
        x0=[0, 0],
        inputs=["F [N]"],
        outputs=["tyre [m]", "v [m/s]"],
        step="0.5 ms",
        energy=_wheel_energy,
        mw=mw,
        kt=kt,
    )
    suspension = hk.StateSpace(
        [[0]],
        [[1, -1]],
        [[ks], [1]],
        [[d, -d], [0, 0]],
        [0],
        ["below [m/s]", "above [m/s]"],
        ["F [N]", "e [m]"],
        energy=[[ks]],
    )
    body = hk.StateSpace(
        [[0]], [[1 / mb]], [[1]], x0=[0], inputs=["F [N]"], outputs=["v [m/s]"], energy=[[mb]]
    )

    def whole(t: float, x: Array) -> list[float]:
        tyre, below, e, above = x
        F = ks * e + d * (below - above)
        return [road_speed(t) - below, (kt * tyre - F) / mw, below - above, F / mb]

    return System(
        "quarter-car on a bump",
        {"wheel": wheel, "suspension": suspension, "body": body},
        {
            "wheel.F": "suspension.F",
            "body.F": "suspension.F",
            "suspension.below": "wheel.v",
            "suspension.above": "body.v",
        },
        {
            "axle": {"effort": "wheel.F", "flow": "suspension.below", "reverse": True},
            "top": {"effort": "body.F", "flow": "suspension.above"},
        },
        ("wheel.tyre", "wheel.v", "suspension.e", "body.v"),
        "2 s",
        ("16 ms", "8 ms", "4 ms", "2 ms", "1 ms"),
        lambda t: finely(whole, np.zeros(4), t, (BUMP[1],)),
        quadratic(kt, mw, ks, mb),
    )


def every() -> list[System]:
    """Return all of them."""
    return [
        spring_mass(),
        two_masses(),
        two_masses(d=0.1, dk=0.2),
        duffing(),
        motor(),
        quarter_car(),
    ]
