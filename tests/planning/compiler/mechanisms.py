"""Three mechanisms of bodies that equations join, with their exact motion."""

import numpy as np
from scipy.integrate import solve_ivp

import hocket as hk
from hocket.model.constraints import Constraint
from planning.compiler.linked import crank_exact, pendulum_exact

G = 9.81


def rotor(angle, speed):
    """A rotor of 0.5 kg m^2: an exact micro step under a held torque."""
    return hk.StateSpace(
        [[0.0, 1.0], [0.0, 0.0]],
        [[0.0], [2.0]],
        np.eye(2),
        x0=[angle, speed],
        inputs=["T"],
        outputs=["f", "w"],
    )


def pendulum(**law):
    """A mass of 1 kg in the plane, kept at 1 m from a point: released where the rod lies level."""
    mass = hk.Ode(
        lambda t, x, u: [x[2], x[3], u[0], u[1] - G],
        x0=[1.0, 0.0, 0.0, 0.0],
        inputs=["Fx", "Fy"],
        outputs=["x", "y", "vx", "vy"],
        step="1 ms",
    )
    rod = Constraint(
        ("m.x**2 + m.y**2 = 1", "m.Fx * m.y = m.Fy * m.x"), {"m.x": "m.vx", "m.y": "m.vy"}, **law
    )
    return hk.Scenario({"m": mass}, constraints={"c": rod})


def slider_crank(**law):
    """A rotor whose pin moves a mass on a spring: x = sin f."""
    slider = hk.StateSpace(
        [[0.0, 1.0], [-2.0, 0.0]],
        [[0.0], [1.0]],
        np.eye(2),
        x0=[np.sin(0.3), np.cos(0.3)],
        inputs=["F"],
        outputs=["x", "v"],
    )
    crank = Constraint(
        ("slider.x = sin(rotor.f)", "rotor.T + slider.F * cos(rotor.f) = 0"),
        {"slider.x": "slider.v", "rotor.f": "rotor.w"},
        **law,
    )
    return hk.Scenario({"rotor": rotor(0.3, 1.0), "slider": slider}, constraints={"c": crank})


BASE, CRANK, ROCKER = 4.0, 1.0, 3.0
START = 0.5 * np.pi, 0.6 * np.pi
"""Angles of crank and rocker at the start; the length of the bar between them follows."""


def _bar(a, b):
    """The vector from the crank's pin to the rocker's, and its derivatives by both angles."""
    d = np.array([BASE + ROCKER * np.cos(b) - CRANK * np.cos(a), ROCKER * np.sin(b) - CRANK * np.sin(a)])
    by_a = np.array([CRANK * np.sin(a), -CRANK * np.cos(a)])
    by_b = np.array([-ROCKER * np.sin(b), ROCKER * np.cos(b)])
    return d, 2.0 * d @ by_a, 2.0 * d @ by_b


_d0, _a0, _b0 = _bar(*START)
SPEEDS = 1.0, -_a0 / _b0


def four_bar(**law):
    """Two rotors, and a massless bar from pin to pin: its length stays, and it pulls both ends alike."""
    x = f"({BASE} + {ROCKER}*cos(b.f) - {CRANK}*cos(a.f))"
    y = f"({ROCKER}*sin(b.f) - {CRANK}*sin(a.f))"
    on_a = f"({x}*{CRANK}*sin(a.f) - {y}*{CRANK}*cos(a.f))"
    on_b = f"({y}*{ROCKER}*cos(b.f) - {x}*{ROCKER}*sin(b.f))"
    bar = Constraint(
        (f"{x}**2 + {y}**2 = {float(_d0 @ _d0)!r}", f"a.T * {on_b} = b.T * {on_a}"),
        {"a.f": "a.w", "b.f": "b.w"},
        **law,
    )
    models = {"a": rotor(START[0], SPEEDS[0]), "b": rotor(START[1], SPEEDS[1])}
    return hk.Scenario(models, constraints={"c": bar})


def _four_bar_exact(times):
    """Solve J q'' = G' l with G q'' = -G' q', by accelerations (index 1), to 1e-11."""

    def rate(t, q):
        a, b, wa, wb = q
        _, ga, gb = _bar(a, b)
        step = 1e-6
        _, ha, hb = _bar(a + step * wa, b + step * wb)
        _, ia, ib = _bar(a - step * wa, b - step * wb)
        bent = ((ha - ia) * wa + (hb - ib) * wb) / (2.0 * step)
        pull = -bent / (2.0 * (ga * ga + gb * gb))
        return [wa, wb, 2.0 * ga * pull, 2.0 * gb * pull]

    begin = [*START, *SPEEDS]
    return solve_ivp(rate, (0.0, times[-1]), begin, rtol=1e-10, atol=1e-11, t_eval=times).y[0]


MECHANISMS = {
    "pendulum": (pendulum, "m.x", lambda t: pendulum_exact(t, G)[0]),
    "slider-crank": (slider_crank, "rotor.f", lambda t: crank_exact(t, 0.5, 1.0, 2.0)),
    "four-bar": (four_bar, "a.f", _four_bar_exact),
}


def drift_and_error(name, law, step, stop=2):
    """Return the largest gap and the largest error of what moves."""
    build, port, exact = MECHANISMS[name]
    run = hk.run(hk.Composite(build(**law), step), stop=stop)
    gap = np.abs(run["c.gap1"].values).max()
    return float(gap), float(np.abs(run[port].values - exact(run[port].t)).max())
