"""Systems that equations couple, with their exact answers."""

import numpy as np
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import hocket as hk
from hocket.model.constraints import Constraint

EQUATIONS = ("left.x = right.x", "left.F + right.F = 0")
RATES = {"left.x": "left.v", "right.x": "right.v"}
LINK = Constraint(EQUATIONS, RATES)


def mass(m, c, d, inputs=("F [N]",), outputs=("x [m]", "v [m/s]"), **more):
    """A mass on a spring with a damper; all its inputs are forces."""
    return hk.StateSpace(
        A=[[0.0, 1.0], [-c / m, -d / m]],
        B=[[0.0] * len(inputs), [1.0 / m] * len(inputs)],
        C=np.eye(2)[: len(outputs)],
        x0=[1.0, 0.0],
        inputs=inputs,
        outputs=outputs,
        **more,
    )


def pair(constraint=LINK, **more):
    """Two masses that a massless link joins (requirements, section 1.5)."""
    models = {"left": mass(1.0, 1.0, 0.5), "right": mass(1.0, 2.0, 0.3)}
    return hk.Scenario(models, constraints={"link": constraint}, **more)


JOINED = np.array([[0.0, 1.0], [-3.0 / 2.0, -0.8 / 2.0]])
"""The pair as one body: masses, springs and dampers add up."""


def exact(A, x0, times):
    """Solve x' = A x, by the eigenvalues of A."""
    values, vectors = np.linalg.eig(A)
    parts = np.linalg.solve(vectors, np.array(x0, dtype=complex))
    found = (vectors @ (parts[:, None] * np.exp(values[:, None] * times))).real.T
    assert np.allclose(found[-1], expm(A * times[-1]) @ x0, rtol=1e-10, atol=1e-13)
    return found


def column(run, name):
    return np.array(run[name].values)


def errors(run, A, x0, states):
    """The largest error of each state, over all ports that should be it."""
    found = []
    for number, ports in states.items():
        expected = exact(A, x0, np.array(run[ports[0]].t))[:, number]
        found.append(max(float(np.abs(column(run, port) - expected).max()) for port in ports))
    return found


def largest(run, name):
    return float(np.abs(column(run, name)).max())


class Body:
    """A mass on a spring as a black box: Runge-Kutta inside, nothing told but the place."""

    inputs = ("F [N]",)
    outputs = ("x [m]",)

    def __init__(self, c, d):
        self.c, self.d = c, d

    def start(self, t):
        self.state = np.array([1.0, 0.0])

    def output(self, t):
        return self.state[: len(self.outputs)].copy()

    def step(self, t, h, u):
        force, part = float(u[0, 0]), h / 10

        def rate(s):
            return np.array([s[1], force - self.c * s[0] - self.d * s[1]])

        for _ in range(10):
            s = self.state
            k1 = rate(s)
            k2 = rate(s + part / 2 * k1)
            k3 = rate(s + part / 2 * k2)
            k4 = rate(s + part * k3)
            self.state = s + part / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    def save(self):
        return self.state.copy()

    def restore(self, state):
        self.state = state.copy()


class Told(Body):
    """The same, with its speed told."""

    outputs = ("x [m]", "v [m/s]")


def boxes(kind, rates):
    models = {"left": hk.Python(kind, c=1.0, d=0.5), "right": hk.Python(kind, c=2.0, d=0.3)}
    return hk.Scenario(models, constraints={"link": Constraint(EQUATIONS, rates)})


def capacitor(C, R):
    """A capacitor with a leak: a current goes in, its voltage is seen."""
    return hk.StateSpace(
        [[-1.0 / (R * C)]], [[1.0 / C]], [[1.0]], x0=[1.0], inputs=["i [A]"], outputs=["v [V]"]
    )


def coil(L, R):
    """An inductor with its resistance: a voltage is put on, its current is seen."""
    return hk.StateSpace([[-R / L]], [[1.0 / L]], [[1.0]], x0=[0.0], inputs=["v [V]"], outputs=["i [A]"])


JUNCTION = Constraint(("a.v = b.v", "b.v = c.v", "a.i + b.i + c.i = 0"))


def pendulum_exact(times, g):
    found = solve_ivp(
        lambda t, q: [q[1], -g * np.sin(q[0])],
        (0.0, times[-1]),
        [np.pi / 2, 0.0],
        rtol=1e-11,
        atol=1e-12,
        t_eval=times,
    )
    return np.sin(found.y[0]), -np.cos(found.y[0])


def crank_exact(times, J, m, k):
    """J f'' = T, m s'' = F - k s, s = sin f, T = -F cos f, from f = 0.3, f' = 1."""

    def rate(t, q):
        f, w = q
        pushed = m * np.cos(f) * np.sin(f) * w * w - k * np.sin(f) * np.cos(f)
        return [w, pushed / (J + m * np.cos(f) ** 2)]

    span = (0.0, times[-1])
    return solve_ivp(rate, span, [0.3, 1.0], rtol=1e-11, atol=1e-12, t_eval=times).y[0]
