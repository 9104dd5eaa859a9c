"""The exact coupled system against matrices and solutions written down by hand."""

import numpy as np
import pytest
from scipy.linalg import expm

from hocket import Composite, Connection, Function, Gain, Port, Scenario, StateSpace, Sum
from hocket.analysis.exact_solution import check_singular_loops, exact_places, exact_solution, orbit
from hocket.analysis.linear_models import IdentifiedModel, Tangent
from hocket.analysis.linear_reading import list_places, read_linear
from hocket.errors import ConvergenceError, ScenarioError
from systems import THREE, TWO, three_masses, two_masses

MASS = 10.0


def lag(rate=1.0, x0=1.0, unit="", out=""):
    """x' = rate (u - x), y = x."""
    return StateSpace(
        A=[[-rate]], B=[[rate]], C=[[1]], x0=[x0], inputs=[Port("u", unit, 0.0)], outputs=[Port("y", out)]
    )


def coupled(number):
    """The three masses as one matrix over (x1, v1, x2, v2, x3, v3)."""
    c1, c12, c23, c3 = THREE["parameters"]["c1_c12_c23_c3"][str(number)]
    d1, d12, d23, d3 = THREE["parameters"]["d1_d12_d23_d3"]
    matrix = np.zeros((6, 6))
    matrix[0::2, 1::2] = np.eye(3)
    matrix[1::2, 0::2] = [[-c1 - c12, c12, 0], [c12, -c12 - c23, c23], [0, c23, -c23 - c3]]
    matrix[1::2, 1::2] = [[-d1 - d12, d12, 0], [d12, -d12 - d23, d23], [0, d23, -d23 - d3]]
    matrix[1::2] /= MASS
    return matrix


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("steps", [("0.1 s",), ("0.1 s", "0.025 s")])
def test_three_masses_are_one_system_however_nested(number, steps):
    found = exact_solution(three_masses(number, *steps))
    assert np.abs(found.A - coupled(number)).max() < 1e-14
    assert not found.b.any()
    assert found.x0.tolist() == [1, 0, 2, 0, 3, 0]
    assert found.states[0] == "first.x1"
    pair = "pair." if len(steps) > 1 else ""
    assert found.ports[-1] == f"{pair}third.pull"


@pytest.mark.parametrize("coupling", ["Seidel12", "Control21"])
def test_two_masses_are_those_of_the_golden_numbers(coupling):
    found = exact_solution(two_masses(coupling, 1.0))
    expected = np.array([complex(*value) for value in TWO["values"]["coupled_eigenvalues"]])
    assert np.sort_complex(np.linalg.eigvals(found.A)) == pytest.approx(np.sort_complex(expected), abs=1e-12)
    for t, y in TWO["values"]["exact_y_t"].items():
        assert found.outputs([float(t)])[0] == pytest.approx(y, abs=1e-12)


def test_an_input_that_nothing_drives_is_constant():
    driven = StateSpace(
        A=[[-2]], B=[[2]], C=[[3]], D=[[5]], x0=[1], inputs=["u = 4"], outputs=["y"]
    )  # x = 4 + (1 - 4) exp(-2 t)
    found = exact_solution(Composite(Scenario({"it": driven}), 1))
    for t in (0.0, 0.3, 2.0):
        assert found.outputs([t])[0][0] == pytest.approx(3 * (4 - 3 * np.exp(-2 * t)) + 20, rel=1e-13)


def test_gains_offsets_and_units_count():
    """300 K are 26.85 degC; twice that and one more is what the second one follows."""
    source = StateSpace(A=[[0]], C=[[1]], x0=[300], outputs=["T [K]"])
    scenario = Scenario(
        {"source": source, "follower": lag(0.5, 0.0, unit="degC")},
        [Connection("source.T", "follower.u", gain=2.0, offset=1.0)],
    )
    found = exact_solution(Composite(scenario, 1))
    assert found.outputs([3.0])[0][1] == pytest.approx(54.7 * (1 - np.exp(-1.5)), rel=1e-12)


def test_factors_add_up_through_levels():
    inside = Scenario(
        {"lag": lag(1.0, 0.0, unit="m", out="m")},
        [Connection("in", "lag.u", gain=3.0), Connection("lag.y", "out", offset=-1.0)],
        ["in [cm] = 50"],
        ["out [cm]"],
    )
    free = Scenario({"level": Composite(inside, 1), "after": lag(1.0, 2.0)}, {"after.u": "level.out"})
    found = exact_solution(Composite(free, 1))  # y = 1.5 m (1 - exp(-t)), out = 100 y - 1 cm
    t = 0.7
    y = dict(zip(found.ports, found.outputs([t])[0], strict=True))
    assert y["level.lag.y"] == pytest.approx(1.5 * (1 - np.exp(-t)), rel=1e-12)
    followed = 149 * (1 - np.exp(-t)) - 150 * t * np.exp(-t) + 2 * np.exp(-t)
    assert y["after.y"] == pytest.approx(followed, rel=1e-12)


def test_a_loop_is_solved():
    """y = x + 0.5 z and z = 0.4 y: y = x / 0.8."""
    reacting = StateSpace(A=[[-1]], C=[[1]], D=[[0.5]], B=[[0]], x0=[2], inputs=["z"], outputs=["y"])
    scenario = Scenario({"a": reacting, "b": Gain(0.4)}, {"a.z": "b.y", "b.u": "a.y"})
    assert exact_solution(Composite(scenario, 1)).outputs([1.0])[0] == pytest.approx(
        [2.5 * np.exp(-1.0), np.exp(-1.0)], rel=1e-13
    )


def test_a_loop_without_a_solution_names_its_ports():
    scenario = Scenario(
        {"source": lag(), "a": Sum("u", "v"), "b": Gain(1.0)},
        {"a.u": "source.y", "a.v": "b.y", "b.u": "a.y"},
    )
    with pytest.raises(ConvergenceError) as caught:
        exact_solution(Composite(scenario, 1))
    assert "a.y" in str(caught.value)
    assert "b.y" in str(caught.value)
    assert "source" not in str(caught.value)


def test_large_gains_in_a_chain_are_no_loop():
    models = {"source": lag(), **{f"g{k}": Gain(1e9) for k in range(3)}}
    wires = {"g0.u": "source.y", "g1.u": "g0.y", "g2.u": "g1.y"}
    assert exact_solution(Composite(Scenario(models, wires), 1)).outputs([0.0])[0, -1] == pytest.approx(1e27)


@pytest.mark.parametrize(
    "times", [[0.0], [0.3], [0.0, 0.1, 0.2, 0.3], [0.4, 0.6, 0.8], [0.05, 0.15, 0.25], [0.0, 0.1, 0.5, 2.0]]
)
def test_all_times_are_reached(times):
    found = exact_solution(three_masses(2, "0.1 s"))
    x0 = np.array([1.0, 0, 2, 0, 3, 0])
    for t, row in zip(times, found.trajectory(np.array(times)), strict=True):
        assert row == pytest.approx([*(expm(coupled(2) * t) @ x0), 1.0], rel=1e-12, abs=1e-13)
    outputs = found.outputs(np.array(times))
    assert outputs[-1] == pytest.approx(found.outputs([times[-1]])[0], rel=1e-12, abs=1e-13)


def test_long_grids_do_not_drift():
    found = exact_solution(three_masses(1, "0.1 s"))
    values, vectors = np.linalg.eig(coupled(1))
    modes = np.linalg.solve(vectors, np.array([1, 0, 2, 0, 3, 0], dtype=complex))
    t = 0.00125 * np.arange(80001)
    truth = np.real((vectors * modes) @ np.exp(np.outer(values, t))).T
    assert np.abs(found.trajectory(t)[:, :6] - truth).max() < 1e-10


@pytest.mark.parametrize("size", [2, 80])
def test_an_orbit_is_repeated_products(size):
    rng = np.random.default_rng(size)
    step = 0.9 * np.linalg.qr(rng.normal(size=(size, size)))[0]
    step[np.abs(step) < 0.3 * (size > 2)] = 0.0
    x = rng.normal(size=size)
    found = orbit(step, x, 150)
    assert found.shape == (151, size)
    assert found[0].tolist() == x.tolist()
    assert found[147] == pytest.approx(np.linalg.matrix_power(step, 147) @ x, rel=1e-9, abs=1e-15)


def test_what_stands_for_others_has_constants():
    """x' = -x + 1, y = x + 10 from 3: x = 1 + 2 exp(-t)."""
    one = np.ones(1)
    model = lag()
    tangent = Tangent(model, -np.eye(1), np.eye(1), np.eye(1), np.zeros((1, 1)), 3 * one, one, 10 * one)
    found = exact_solution(Composite(Scenario({"it": tangent}), 1))
    assert found.outputs([2.0])[0][0] == pytest.approx(11 + 2 * np.exp(-2.0), rel=1e-13)


def test_an_identified_model_moves_between_its_steps():
    h, A, B = 0.2, np.array([[0, 1], [-2, -0.3]]), np.array([[0.0], [1.0]])
    step = expm(h * np.vstack([np.hstack([A, B, [[0.5], [0]]]), np.zeros((2, 4))]))
    model = StateSpace(A=A, B=B, C=[[1, 0]], x0=[1, 0], inputs=["u = 2"], outputs=["y"])
    identified = IdentifiedModel(
        model, "0.2", step[:2, :2], step[None, :2, 2:3], np.array([[1.0, 0]]), np.zeros((1, 1, 1)),
        np.array([1.0, 0]), step[:2, 3], np.zeros(1),
    )  # fmt: skip
    found = exact_solution(Composite(Scenario({"it": identified}), h))
    assert np.abs(found.A - A).max() < 1e-12
    assert found.b == pytest.approx([0.5, 2.0], abs=1e-12)


def test_a_motion_that_flips_has_no_time_between():
    model = lag()
    flipping = IdentifiedModel(
        model, 1, -0.5 * np.eye(1), np.ones((1, 1, 1)), np.eye(1), np.zeros((1, 1, 1)), *np.zeros((3, 1))
    )
    with pytest.raises(ScenarioError, match=r"`it` was identified with a motion that changes its sign"):
        exact_solution(Composite(Scenario({"it": flipping}), 1))


def test_what_is_not_linear_is_refused():
    scenario = Scenario({"it": lag(), "wave": Function(lambda t: [t * t], ["y"])}, {"it.u": "wave.y"})
    with pytest.raises(ScenarioError, match="`wave` is not linear"):
        exact_solution(Composite(scenario, 1))


def test_every_number_of_a_step_is_one_of_the_exact_solution():
    """a' = -a + 2 b + 5, b' = 3 a - 3 b, seen with lines; b is in a level of half the step.

    Rows act on [a, b, 1]: a sample, value and slope of an input, and what a level is told from outside,
    in use and offered; an input that nothing drives stays at its start.
    """
    b = {"b": lag(3.0)}
    inside = Scenario(b, {"b.u": "u", "y": "b.y"}, inputs=["u = 0", "v = 7", "w = 0"], outputs=["y"])
    models = {"a": lag(), "in": Composite(inside, "0.05 s", extrapolation="linear")}
    wires = [Connection("in.y", "a.u", gain=2.0, offset=5.0), Connection("a.y", "in.u")]
    composite = Composite(Scenario(models, wires), "0.1 s", extrapolation="linear")
    root = read_linear(composite).root
    found = exact_places(exact_solution(composite), root)
    one, two, none = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]
    slope_of_one = [-1.0, 2.0, 5.0]
    told = [(row, 0.1, moves) for moves in (False, True) for row in ((one, slope_of_one)[moves], none, none)]
    told[1] = ([0.0, 0.0, 7.0], 0.1, False)
    expected = [
        ("state a.x1", one, 0.0, False),
        *(
            (f"sample {name}.y", row, ago, False)
            for name, row in (("a", one), ("in", two))
            for ago in (0.0, 0.1)
        ),
        ("input a.u", [0.0, 2.0, 5.0], 0.1, False),
        ("input a.u", [6.0, -6.0, 0.0], 0.1, True),
        ("input in.u", one, 0.1, False),
        ("input in.u", slope_of_one, 0.1, True),
        ("state in.b.x1", two, 0.0, False),
        ("sample in.b.y", two, 0.0, False),
        ("input in.b.u", one, 0.05, False),
        ("input in.b.u", slope_of_one, 0.05, True),
        *((f"outside in.{port}", *each) for port, each in zip("uvwuvw" * 2, told * 2, strict=True)),
    ]
    cells = [place.cell for place in list_places(root)]
    names = [f"{cell.kind} {cell.owner}.{cell.name}" for cell in cells]
    numbers = zip(names, found.weights.tolist(), found.ago.tolist(), found.moving.tolist(), strict=True)
    assert list(numbers) == expected


@pytest.mark.parametrize("start", [0.0, 3.0])
def test_an_input_of_the_whole_stays_at_its_start(start):
    scenario = Scenario({"a": lag()}, [Connection("u", "a.u", gain=2.0, offset=1.0)], inputs=[f"u = {start}"])
    assert exact_solution(Composite(scenario, "0.1 s")).b.tolist() == [2.0 * start + 1.0]


def test_a_loop_of_gains_with_a_product_of_one_has_no_solution():
    ports = ("a.y", "b.y", "c.y")
    with pytest.raises(ConvergenceError) as caught:
        check_singular_loops(np.array([[0.0, 2.0, 0.0], [0.5, 0.0, 0.0], [1e6, 0.0, 0.0]]), ports)
    (fault,) = caught.value.faults
    assert fault.where == "a.y -> b.y -> a.y at t = 0.0 s"
    for product in (0.99, 1.01, -1.0, 4.0):
        check_singular_loops(np.array([[0.0, 2.0, 0.0], [product / 2.0, 0.0, 0.0], [0.0, 1.0, 0.0]]), ports)
