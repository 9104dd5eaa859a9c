"""A spring and a mass, plain or balanced, and what the golden numbers are compared with."""

from __future__ import annotations

import numpy as np

import hocket
from hocket import Composite, Hermite, Jacobi, Scenario
from hocket.model.extrapolators import Latch
from hocket.simulators.wrappers.balanced import Balanced, BondSide
from systems import mass, spring


def pair(c=1.0, m=1.0, s=1.0, v=0.5):
    """Return a spring and a mass that declare what they store."""
    return spring(s, c, energy=c), mass(v, m, energy=m)


def plain(extrapolation, models=None):
    first, second = models or pair()
    connections = [("spring.f", "mass.f", extrapolation), ("mass.v", "spring.v", extrapolation)]
    return Scenario({"spring": first, "mass": second}, connections)


def linked(models, bonds, form, extrapolation):
    """Connect bonds as (one, output, other, output): every output drives the other's input of that name."""
    connections = []
    for one, out, other, back in bonds:
        for name, own, partner, given in ((one, out, other, back), (other, back, one, out)):
            connections.append((f"{name}.{own}", f"{partner}.{own}", extrapolation))
            if (f"{name}.{own}", f"{name}.{own}_told") not in [each[:2] for each in connections]:
                connections.append((f"{name}.{own}", f"{name}.{own}_told", extrapolation))
            if form == "energy":
                connections.append((f"{partner}.share", f"{name}.{given}_share", Latch()))
    return Scenario(models, connections)


def balanced(form, models=None, extrapolation=None, scale=None, **more):
    first, second = models or pair()
    around = {
        "spring": Balanced(first, [BondSide("f", "v", -1, scale)], form, linked=True, **more),
        "mass": Balanced(second, [BondSide("v", "f", 1, scale)], form, linked=True, **more),
    }
    return linked(around, [("spring", "f", "mass", "v")], form, extrapolation or Hermite())


def states(scenario, c=1.0, step="0.2", stop=75, engine="native", orchestrator=None, start="cold"):
    """Return s and v at every step."""
    composite = Composite(scenario, step, orchestrator or Jacobi(), start=start)
    run = hocket.run(composite, stop, record=["spring.f", "mass.v"], engine=engine)
    return np.stack([-run["spring.f"].values / c, run["mass.v"].values], axis=1)


def energies(seen, c=1.0, m=1.0):
    """Return the energy over that of the start."""
    E = c * seen[:, 0] ** 2 + m * seen[:, 1] ** 2
    return E / E[0]
