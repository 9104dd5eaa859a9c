"""Slopes of FMUs along a pilot run: perturbations grow in the coupling as equations in Python say."""

from __future__ import annotations

import numpy as np
import pytest

import hocket as hk
from fmus.build import build
from hocket.analysis.pilot import run_pilot
from hocket.analysis.variational import StateTrace

CUBIC = {"b": 0.9, "c": 1.0, "d": 0.3, "x0": 1.5}


def by_equations():
    """Return the plant of tests/fmus/models/plant.c, as equations."""

    def f(t, s, u):
        pull = CUBIC["c"] * s[0] + CUBIC["b"] * s[0] ** 3 + CUBIC["d"] * s[1]
        return [s[1], u[0] + s[2] - pull, (u[1] - s[2]) / 0.5]

    return hk.Ode(
        f,
        lambda t, s, u: [s[0], np.sin(s[2])],
        x0=[1.5, 0.0, 0.0],
        inputs=["u", "w"],
        outputs=["s", "q"],
        feedthrough={},
    )


def coupled(plant, step="20 ms"):
    """Return the plant in a loop with a lag that pushes where it stands."""
    lag = hk.Ode(lambda t, s, u: [-2.0 * s[0] - 1.5 * np.tanh(u[0])], x0=[0.2], inputs=["x"], outputs=["y"])
    rest = hk.Ode(lambda t, s, u: [-s[0]], x0=[0.3], inputs=["q"], outputs=["y"])
    links = {"plant.u": "lag.y", "plant.w": "rest.y", "lag.x": "plant.s", "rest.q": "plant.q"}
    return hk.Composite(hk.Scenario({"plant": plant, "lag": lag, "rest": rest}, links), step)


def as_fmu(folder, version, interface):
    name = "providesDirectionalDerivative" + ("s" if version == 3 else "")
    file = build("plant", version, folder=folder, **{name: True})
    return hk.Fmu(file, interface=interface, isolate=False, **CUBIC)


@pytest.mark.parametrize("interface", ["model-exchange", "co-simulation"])
@pytest.mark.parametrize("version", [2, 3])
def test_growth_along_the_run_is_that_of_the_equations(version, interface, tmp_path):
    found = hk.check(coupled(as_fmu(tmp_path, version, interface)), 4.0).variation
    told = hk.check(coupled(by_equations()), 4.0).variation
    assert found is not None
    one, other = found.reading, told.reading
    assert one.final_growth == pytest.approx(other.final_growth, rel=0.2)
    assert one.final_exact_growth == pytest.approx(other.final_exact_growth, rel=0.2)
    assert one.radii.min() == pytest.approx(other.radii.min(), abs=0.01)
    assert len(set(np.round(one.radii, 6))) > 3  # they change along the run


@pytest.mark.parametrize("interface", ["model-exchange", "co-simulation"])
def test_asking_for_slopes_leaves_the_run_as_it_is(interface, tmp_path):
    composite = coupled(as_fmu(tmp_path, 2, interface))
    experiment = hk.Experiment(composite, stop=4)
    trace = StateTrace(composite, 200)
    looked, alone = (run_pilot(experiment, 1, 200, 60.0, look) for look in (trace, None))
    assert len(trace.fmus["plant"]) >= 40
    for port, (t, values) in alone.ports.items():
        assert np.array_equal(values, looked.ports[port][1]), port
        assert np.array_equal(t, looked.ports[port][0])
