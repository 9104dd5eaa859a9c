"""`hocket.linearize`: the coupled model, or the plan, as a `control.StateSpace`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hocket as hk
from fmus.build import build
from systems import THREE, three_masses

control = pytest.importorskip("control")


def with_push(composite: hk.Composite) -> hk.Composite:
    """Return the composite with one more simulator, whose input changes nothing of the others."""
    push = hk.StateSpace([[-9.0]], [[0.0]], [[1.0]], inputs=["w = 0"], outputs=["y"])
    models = {**composite.scenario.models, "push": push}
    return composite.with_scenario(composite.scenario.with_models(models))


def monolithic(scenario: int) -> np.ndarray[Any, Any]:
    """Return the eigenvalues of the three masses, from their stiffness and damping."""
    c1, c12, c23, c3 = THREE["parameters"]["c1_c12_c23_c3"][str(scenario)]
    d1, d12, d23, d3 = THREE["parameters"]["d1_d12_d23_d3"]
    masses = np.diag(THREE["parameters"]["m"])
    K = np.array([[c1 + c12, -c12, 0], [-c12, c12 + c23, -c23], [0, -c23, c23 + c3]])
    D = np.array([[d1 + d12, -d12, 0], [-d12, d12 + d23, -d23], [0, -d23, d23 + d3]])
    inverse = np.linalg.inv(masses)
    return np.linalg.eigvals(np.block([[np.zeros((3, 3)), np.eye(3)], [-inverse @ K, -inverse @ D]]))


@pytest.mark.parametrize("scenario", [1, 2, 3])
def test_three_masses_have_their_eigenvalues(scenario: int) -> None:
    found = hk.linearize(with_push(three_masses(scenario, "0.1 s")), ["push.w"], ["third.x"])
    poles = np.delete(found.poles(), np.abs(found.poles() + 9.0).argmin())
    assert np.abs(np.sort_complex(poles) - np.sort_complex(monolithic(scenario))).max() < 1e-9
    assert found.dt == 0
    assert found.state_labels[:2] == ["first_x1", "first_x2"]
    assert (found.input_labels, found.output_labels) == (["push_w"], ["third_x"])


RADII = THREE["spectral_radius_of_one_outer_step"]


@pytest.mark.parametrize(
    ("scenario", "steps"), [(int(number), steps) for number in RADII for steps in RADII[number]]
)
def test_the_plan_has_the_spectral_radius_of_the_golden_file(scenario: int, steps: str) -> None:
    lengths = [f"{length} s" for length in steps.split("/")]
    shown = "third.x" if len(lengths) == 1 else "pair.third.x"
    composite = with_push(three_masses(scenario, *lengths))
    found = hk.linearize(composite, ["push.w"], [shown], discrete=True)
    assert np.abs(found.poles()).max() == pytest.approx(RADII[str(scenario)][steps], abs=6e-8)
    assert found.dt == float(steps.split("/")[0])


def test_a_force_moves_a_mass_as_in_closed_form() -> None:
    mass = hk.StateSpace([[0, 1], [-4, -0.4]], [[0], [1]], [[1, 0]], inputs=["force"], outputs=["x"])
    plain = hk.StateSpace([[-2.0]], [[2.0]], [[1.0]], inputs=["u"], outputs=["y"])
    scenario = hk.Scenario(
        {"mass": mass, "filter": plain}, {"mass.force": "F", "filter.u": "mass.x"}, inputs=["F = 1"]
    )
    found = hk.linearize(hk.Composite(scenario, "1/10"), ["F"], ["filter.y", "mass.x"])
    for s in (0.3j, 1j, 2.5j):  # 1 / (s^2 + 0.4 s + 4), behind it 2 / (s + 2)
        exact = 1 / (s * s + 0.4 * s + 4)
        answer = np.asarray(found(s)).reshape(-1)
        assert answer == pytest.approx([exact * 2 / (s + 2), exact], rel=1e-12)
    cut = hk.linearize(hk.Composite(scenario, "1/10"), ["filter.u"], ["filter.y"])
    assert complex(cut(1j)) == pytest.approx(2 / (1j + 2), rel=1e-12)
    cut = hk.linearize(hk.Composite(scenario, "1/10"), ["mass.x"], ["filter.y", "mass.x"])
    assert np.asarray(cut(1j)).reshape(-1) == pytest.approx([2 / (1j + 2), 1.0], rel=1e-12)


def stepped(composite: hk.Composite, inputs: list[str], outputs: list[str], values: Any, stride: int) -> Any:
    """Return what hand-stepping shows before each of the steps in which inputs have these values."""
    rows = []
    with hk.open(composite) as live:
        for row in values:
            for path, value in zip(inputs, row, strict=True):
                live.set(path, float(value))
            rows.append([live[path] for path in outputs])
            live.step(stride)
    return np.array(rows)


CASES = [
    (three_masses(2, "0.1 s"), ["first.force", "third.x2"], ["second.pull", "third.x"]),
    (three_masses(2, "0.1 s"), ["second.x"], ["second.pull", "third.x"]),
    (three_masses(3, "0.1 s", outputs="consistent"), ["second.x1"], ["first.x", "third.x"]),
    (
        three_masses(2, "0.2 s", "0.05 s"),
        ["first.force", "pair.third.x2"],
        ["pair.second.pull", "pair.third.x"],
    ),
    (
        three_masses(2, "0.2 s", "0.05 s", outputs="consistent"),
        ["first.force"],
        ["pair.second.pull", "first.x"],
    ),
    *(
        (
            hk.Composite(three_masses(2, "0.1 s").scenario, "0.1 s", how, extrapolation=degree),
            ["first.force"],
            ["third.x"],
        )
        for how in ("gauss-seidel", hk.Iterate(tolerance=1e-13), hk.Multirate({"second": 2}))
        for degree in ("hold", "linear")
    ),
]


@pytest.mark.parametrize(("composite", "inputs", "outputs"), CASES)
def test_the_plan_answers_as_when_it_is_stepped_by_hand(
    composite: hk.Composite, inputs: list[str], outputs: list[str]
) -> None:
    found = hk.linearize(composite, inputs, outputs, discrete=True)
    values = np.random.default_rng(0).normal(size=(25, len(inputs)))
    stride = round(found.dt / float(composite.step))
    moved = stepped(composite, inputs, outputs, values, stride)
    moved -= stepped(composite, inputs, outputs, 0.0 * values, stride)
    x, rows = np.zeros(found.nstates), []
    for row in values:
        rows.append(found.C @ x + found.D @ row)
        x = found.A @ x + found.B @ row

    assert np.abs(np.array(rows) - moved).max() < 1e-9 * np.abs(moved).max()


def test_an_ode_is_linearised_where_it_has_got_to() -> None:
    pendulum = hk.Ode(
        _swing, x0=[3.0, 0.0], inputs=["tau = 0"],
        outputs=["angle", "speed"],
    )  # fmt: skip
    composite = hk.Composite(hk.Scenario({"p": pendulum}, {}), "1/10")
    found = hk.linearize(composite, ["p.tau"], ["p.angle"])
    assert np.asarray(found.A) == pytest.approx(np.array([[0, 1], [-np.cos(3.0), 0]]), abs=1e-8)
    with hk.open(composite) as live:
        live.step(20)
        angle = live["p.angle"]
    later = hk.linearize(composite, ["p.tau"], ["p.angle"], at=2)
    assert later.A[1, 0] == pytest.approx(-np.cos(angle), abs=1e-6)
    assert abs(np.cos(angle) - np.cos(3.0)) > 0.1


def _swing(t: float, x: Any, u: Any) -> Any:
    return [x[1], u[0] - np.sin(x[0])]


def test_an_fmu_is_linearised(tmp_path: Any) -> None:
    fmu = hk.Fmu(build("vanderpol", 2, folder=tmp_path), interface="model-exchange")
    names = [port.name for port in fmu.outputs]
    driver = hk.StateSpace([[-1.0]], [[1.0]], [[1.0]], inputs=["u = 0"], outputs=["y"])
    composite = hk.Composite(hk.Scenario({"v": fmu, "d": driver}, {"d.u": f"v.{names[0]}"}), "1/100")
    found = hk.linearize(composite, ["d.u"], ["d.y", f"v.{names[0]}"])
    assert complex(np.asarray(found(1j)).reshape(-1)[0]) == pytest.approx(1 / (1j + 1), rel=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inputs": ["first.forces"]}, "there is no port `first.forces`"),
        ({"outputs": ["first.force"]}, "there is no port `first.force`"),
        ({"inputs": []}, "at least one"),
        ({"inputs": "first.force"}, "a list of paths"),
        ({"outputs": [3]}, "a list of paths"),
        ({"outputs": ["first.x", "first.x"]}, "twice"),
        ({"discrete": "yes"}, "discrete"),
        ({"at": "15 ms"}, "not a whole number of steps"),
    ],
)
def test_what_is_wrong_is_said(change: dict[str, Any], message: str) -> None:
    given = {"inputs": ["first.force"], "outputs": ["first.x"]} | change
    pushed = hk.Ode(_swing, x0=[0.0, 0.0], inputs=["tau = 0"], outputs=["angle", "speed"])
    composite = three_masses(1, "0.1 s")
    models = {**composite.scenario.models, "pendulum": pushed}
    composite = composite.with_scenario(composite.scenario.with_models(models))
    with pytest.raises(hk.ScenarioError, match=message):
        hk.linearize(composite, **given)
