"""A run that fails: the longest step with which it is sound to its end, checked against SciPy."""

import numpy as np
from scipy.integrate import solve_ivp

import hocket as hk


def test_a_struck_hardening_spring_is_unsound_and_a_sound_step_is_found():
    mass = hk.Ode(
        lambda t, x, u: [x[1], u[0]], x0=[0.0, 3.0], inputs=["F"], outputs=["x", "v"], feedthrough={}
    )
    spring = hk.Ode(
        lambda t, x, u: [], lambda t, x, u: [-u[0] - 400.0 * u[0] ** 3], x0=[], inputs=["x"], outputs=["F"]
    )
    scenario = hk.Scenario({"mass": mass, "spring": spring}, {"mass.F": "spring.F", "spring.x": "mass.x"})
    found = hk.check(hk.Composite(scenario, 0.1), 2.0, pilot_seconds=40.0)  # however loaded the machine is
    assert found.judgement == "unsound"
    part = found.trajectory.largest_sound_part
    assert part > 1, found.verdict()
    assert f"with 1/{part} of the steps" in found.verdict()[1]
    run = hk.run(hk.Composite(scenario, 0.1 / part), 2.0)
    t, x = (np.asarray(each) for each in run["mass.x"])
    exact = solve_ivp(
        lambda t, y: [y[1], -y[0] - 400.0 * y[0] ** 3],
        (0.0, 2.0),
        [0.0, 3.0],
        "DOP853",
        t,
        rtol=1e-10,
        atol=1e-12,
    ).y[0]
    assert np.abs(x - exact).max() < 0.5 * np.abs(exact).max()
