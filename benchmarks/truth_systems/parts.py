"""Parts of coupled systems: equations, algebraic parts, and black boxes with a Runge-Kutta solver inside.

In:  equations x' = f(t, x, u), y = g(t, x, u)
Out: models of hocket; black boxes with rollback or without, and nothing that could be looked into
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hocket as hk

Equation = Callable[[float, Any, Any], Sequence[float]]


def part(
    f: Equation,
    x0: Sequence[float],
    inputs: str,
    outputs: str,
    g: Equation | None = None,
    *,
    through: bool = False,
    **options: Any,
) -> hk.Ode:
    """Return equations; ports are names between blanks, `through`: outputs have direct feedthrough."""
    feedthrough = None if through or g is None else {}
    ports = {"inputs": inputs.split(), "outputs": outputs.split()}
    return hk.Ode(f, g, x0=x0, **ports, feedthrough=feedthrough, **options)


def algebraic(g: Equation, inputs: str, outputs: str) -> hk.Ode:
    """Return a part without states: y = g(t, x, u)."""
    return part(lambda t, x, u: [], [], inputs, outputs, g, through=True)


def mass(m: float, x: float, v: float, own: Callable[[float, float, float], float] | None = None) -> hk.Ode:
    """Return a body that a force F moves, and a force of its own, own(t, x, v); outputs x and v."""
    force = own or (lambda t, x, v: 0.0)
    return part(lambda t, s, u: [s[1], (u[0] + force(t, s[0], s[1])) / m], [x, v], "F", "x v")


def rk4(f: Equation, t: float, x: NDArray[np.float64], h: float, u: Callable[[float], Any]) -> Any:
    """Return the state after one classical Runge-Kutta step with inputs u(t)."""
    k1 = np.asarray(f(t, x, u(t)))
    k2 = np.asarray(f(t + h / 2, x + h / 2 * k1, u(t + h / 2)))
    k3 = np.asarray(f(t + h / 2, x + h / 2 * k2, u(t + h / 2)))
    k4 = np.asarray(f(t + h, x + h * k3, u(t + h)))
    return x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def box(
    f: Equation,
    x0: Sequence[float],
    inputs: str,
    outputs: str,
    g: Equation | None = None,
    *,
    through: bool = False,
    rollback: bool = False,
    substeps: int = 8,
) -> hk.Python:
    """Return a black box; it follows inputs that are polynomials in time."""

    class Box:
        equations = (f, g, tuple(x0))
        """For the reference only: hocket does not know this name."""

        def start(self, t: float) -> None:
            self.x = np.array(x0, float)

        def output(self, t: float) -> Any:
            return g(t, self.x, None) if g else self.x

        def step(self, t: float, h: float, u: NDArray[np.float64]) -> None:
            small, powers = h / substeps, np.arange(len(u))

            def at(s: float) -> Any:
                return (s - t) ** powers @ u

            for k in range(substeps):
                self.x = rk4(f, t + k * small, self.x, small, at)

    class Open(Box):
        def output(self, t: float, u: Any) -> Any:  # type: ignore[override]
            return g(t, self.x, u[0])  # type: ignore[misc]

    kind: type = Open if through else Box
    if rollback:
        kind = type(
            "Reversible",
            (kind,),
            {
                "save": lambda self: self.x.copy(),
                "restore": lambda self, state: setattr(self, "x", state.copy()),
            },
        )
    return hk.Python(kind, inputs=inputs.split(), outputs=outputs.split())
