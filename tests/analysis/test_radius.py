"""Stability radii: known matrices, real changes of simulators, and direct searches for what destabilises."""

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import brentq, minimize

from hocket import Composite, GaussSeidel, Iterate, Jacobi, Ode, Scenario, StateSpace
from hocket.analysis import stability_radius as radii
from hocket.analysis.disturbance_transfer import Transfer, UncertainBlock, disturbance_model, peak
from hocket.analysis.linear_reading import gather_state, read_linear
from hocket.analysis.linearisation import linearise
from hocket.analysis.stability import spectral_radius
from hocket.analysis.stability_radius import (
    StabilityRadius,
    _cover_circle,
    radius_per_simulator,
    stability_radius,
    structured_radius,
)
from hocket.analysis.structured_singular_value import (
    Scaling,
    assemble_delta,
    identity_scaling,
    mu_upper_bound,
)
from hocket.errors import ScenarioError
from systems import FILTERS, LinearPen, three_masses, two_masses


def of_matrix(Phi):
    """Return the unstructured radius of a matrix."""
    return stability_radius(SimpleNamespace(core=np.array(Phi, dtype=float), period=Fraction(1)))


def rho(M):
    return float(np.abs(np.linalg.eigvals(M)).max())


# known matrices


@pytest.mark.parametrize("angle", [0.0, 0.4, 2.5])
def test_of_a_normal_matrix_it_is_the_distance_to_the_circle(angle):
    turn = 0.8 * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    found = of_matrix(turn)
    assert found.radius == pytest.approx(0.2, rel=1e-9)
    assert found.angle == pytest.approx(angle, abs=1e-4)
    assert found.certified
    assert found.frequency == pytest.approx(angle / (2 * np.pi), abs=1e-4)


@pytest.mark.parametrize("a", [0.0, 0.5, 0.99])
def test_of_a_jordan_block_it_is_far_less(a):
    """The singular values of [[1 - a, -1], [0, 1 - a]]: their product is (1 - a)^2, they are 1 apart."""
    found = of_matrix([[a, 1.0], [0.0, a]])
    assert found.radius == pytest.approx((np.sqrt(1 + 4 * (1 - a) ** 2) - 1) / 2, rel=1e-6)
    assert found.radius < 1 - a


def test_what_is_not_stable_has_none():
    assert of_matrix([[1.0]]).radius == 0.0
    assert "not stable as it is" in of_matrix([[-1.2]]).rows()[0]["note"]


@pytest.mark.parametrize("e", [1e-3, 1e-6, 1e-8, 1e-10, 1e-12, 1e-14, 0.0])
def test_next_to_the_circle(e):
    """Of a Jordan block, where the radius is e^2: below rounding it is zero, and never more than that."""
    found = of_matrix([[1 - e, 1.0], [0.0, 1 - e]])
    assert found.at_least <= e**2 * (1 + 1e-6)
    assert found.at_most == pytest.approx(e**2, rel=1e-3, abs=2e-13)


def test_against_a_fine_grid_for_matrices_that_are_far_from_normal():
    rng = np.random.default_rng(4)
    for _ in range(25):
        n = int(rng.integers(2, 9))
        Phi = rng.normal(size=(n, n)) + np.triu(rng.normal(size=(n, n)) * 4, 1)
        Phi *= rng.uniform(0.3, 0.98) / rho(Phi)
        z = np.exp(1j * np.linspace(0, np.pi, 4001))[:, None, None]
        grid = np.linalg.svd(z * np.eye(n) - Phi, compute_uv=False)[:, -1].min()
        found = of_matrix(Phi)
        assert found.certified
        assert grid * (1 - 1e-2) - 1e-6 <= found.at_most <= grid * (1 + 1e-12)
        assert found.at_least <= found.at_most <= 1 - rho(Phi) + 1e-12
        (change,) = found.changes
        assert np.linalg.matrix_rank(change, tol=1e-9 * found.radius) == 1
        assert np.linalg.norm(change, 2) == pytest.approx(found.radius, rel=1e-9)
        assert rho(Phi + change) == pytest.approx(1.0, abs=1e-9)


def test_level_sets_find_what_the_grid_misses(monkeypatch):
    """Two modes near the circle; the search begins at three angles only, far from the sharper one."""
    parts = []
    for modulus, angle in ((0.97, 0.3), (0.9999, 1.234)):
        parts.append(modulus * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]))
    Phi = np.block([[parts[0], np.zeros((2, 2))], [np.zeros((2, 2)), parts[1]]])
    monkeypatch.setattr(Transfer, "angles", lambda self, *_: np.array([0.0, 0.3, np.pi]))
    top = peak(Transfer.resolvent(Phi))
    assert top.certified
    assert top.angle == pytest.approx(1.234, abs=1e-6)
    assert 1 / top.gain == pytest.approx(1e-4, rel=1e-6)


def test_crossings_are_where_the_level_is():
    rng = np.random.default_rng(8)
    Phi = rng.normal(size=(4, 4))
    Phi *= 0.9 / rho(Phi)
    transfer = Transfer(Phi, rng.normal(size=(4, 2)), rng.normal(size=(3, 4)), rng.normal(size=(3, 2)))
    angles = np.linspace(0, np.pi, 20001)
    gains = transfer.gains(angles)
    level = float(np.quantile(gains, 0.8))
    expected = angles[np.flatnonzero((gains[1:] > level) != (gains[:-1] > level))]
    found = transfer.crossings(level)
    assert all(np.abs(found - angle).min() < 2e-4 for angle in expected)


# the couplings of Glumac and Kovacic


@pytest.mark.parametrize("coupling", FILTERS)
def test_the_radius_is_not_one_minus_rho(coupling):
    reading = read_linear(two_masses(coupling, 8.9))
    found = stability_radius(reading)
    assert found.certified
    assert found.radius < 0.8 * (1 - spectral_radius(reading))
    assert rho(reading.core + found.changes[0]) == pytest.approx(1.0, abs=1e-9)


def test_one_minus_rho_misranks():
    """Formulas, section 2: 1 - rho prefers Control12, the radius and the bound of c_k prefer Control21."""
    first, second = (read_linear(two_masses(name, 8.9)) for name in ("Control12", "Control21"))
    assert 1 - spectral_radius(first) == pytest.approx(0.587, abs=1e-3)
    assert 1 - spectral_radius(second) == pytest.approx(0.558, abs=1e-3)
    assert stability_radius(second).radius > 1.2 * stability_radius(first).radius
    both = [structured_radius(reading, "one", "two").radius for reading in (first, second)]
    assert both[1] > 1.2 * both[0]


def test_one_simulator_by_the_factors_of_the_paper():
    """B = Phi_2 H_1 E_1 and C = S_1 F_1 for the first of a sequence (formulas, section 2), on a fine grid."""
    from scipy.linalg import expm

    h, ck, dk = 8.9, 1.0, 2.0
    F1, G1, H1 = np.eye(10), np.eye(10), np.eye(10)
    F2, G2, H2 = np.eye(10), np.eye(10), np.eye(10)
    F1[[7, 8]] = np.eye(10)[[5, 6]]
    F2[9] = np.eye(10)[4]
    one = np.zeros((4, 4))
    one[:2] = [[0, 1, 0, 0], [-0.2, -0.3, ck / 10, dk / 10]]
    two = np.zeros((3, 3))
    two[:2] = [[0, 1, 0], [-0.1, -0.2, 0.1]]
    G1[np.ix_([0, 1], [0, 1, 7, 8])] = expm(one * h)[:2]
    G2[np.ix_([2, 3], [2, 3, 9])] = expm(two * h)[:2]
    H1[4], H2[5], H2[6] = 0.0, np.eye(10)[2], np.eye(10)[3]
    H1[4, [0, 1, 7, 8]] = [ck, dk, -ck, -dk]
    first, second = H1 @ G1 @ F1, H2 @ G2 @ F2
    Phi = second @ first
    cases = {
        "one": (second @ H1[:, [0, 1]], F1[[0, 1, 7, 8]]),
        "two": (H2[:, [2, 3]], F2[[2, 3, 9]] @ first),
    }
    reading = read_linear(two_masses("Seidel12", h))
    z = np.exp(1j * np.linspace(0, np.pi, 20001))[:, None, None]
    for name, (B, C) in cases.items():
        M = C @ np.linalg.solve(z * np.eye(10) - Phi, np.broadcast_to(B + 0j, (len(z), *B.shape)))
        expected = 1 / np.linalg.svd(M, compute_uv=False)[:, 0].max()
        assert structured_radius(reading, name).radius == pytest.approx(expected, rel=1e-6)


def test_a_cyclic_rotation_changes_no_structured_radius():
    """It is about the same loop, cut open elsewhere; the unstructured radius depends on the cut."""
    readings = [read_linear(two_masses(name, 8.9)) for name in ("Seidel12", "Seidel21")]
    for names in (("one",), ("two",), ("one", "two")):
        first, second = (structured_radius(reading, *names) for reading in readings)
        assert first.radius == pytest.approx(second.radius, rel=1e-6)


def test_relative_sizes_are_shares_of_the_step_map():
    reading = read_linear(two_masses("Control21", 8.9))
    absolute, relative = (structured_radius(reading, "two", relative=share) for share in (False, True))
    (block,) = absolute.uncertain
    assert relative.radius == pytest.approx(absolute.radius / block.norm, rel=1e-9)
    assert np.linalg.norm(relative.changes[0], 2) == pytest.approx(absolute.radius, rel=1e-6)


# changes of real simulators: the disturbance map tells exactly what a changed scenario does


class PlainPen(LinearPen):
    """Draws no slopes: they follow from A and B, and a change of the step alone leaves them as they are."""

    def extrapolator(self, slopes):
        return super().extrapolator(False)


def drawn(seed):
    rng = np.random.default_rng(seed)
    step = Fraction(1, int(rng.choice([7, 10, 32])))
    return PlainPen(rng).level(step, depth=int(rng.integers(1, 4)), outermost=True)[0]


def leaves(composite, prefix=""):
    for name, model in composite.scenario.models.items():
        if isinstance(model, Composite):
            yield from leaves(model, f"{prefix}{name}.")
        elif len(model.A):
            yield f"{prefix}{name}"


def changed(composite, path, rng):
    """Return the same with another A and B in one simulator."""
    head, _, rest = path.partition(".")
    models = dict(composite.scenario.models)
    model = models[head]
    if rest:
        models[head] = changed(model, rest, rng)
    else:
        A, B = np.array(model.A), np.array(model.B).reshape(len(model.A), len(model.inputs))
        A, B = A + 0.1 * rng.normal(size=A.shape), B + 0.1 * rng.normal(size=B.shape)
        ports = model.inputs, model.outputs
        models[head] = StateSpace(A, B, model.C, model.D, model.x0, *ports, model.method, model.step)
    return composite.with_scenario(replace(composite.scenario, models=models))


def closed(found, changes):
    """Return the core with the changes in place."""
    M, Delta = found.transfer, assemble_delta(changes, found.blocks)
    loop = np.eye(len(M.D)) - M.D @ Delta
    return M.Phi + M.B @ Delta @ np.linalg.solve(loop, M.C)


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 6, 7, 8, 10, 11, 12, 17, 18, 19, 20, 21, 22, 28, 29])
def test_a_changed_simulator_does_what_its_disturbance_says(seed):
    rng = np.random.default_rng(seed)
    before = drawn(seed)
    names = [str(name) for name in rng.permutation(list(leaves(before)))][: int(rng.integers(1, 4))]
    if not names:
        pytest.skip("no simulator has a state")
    after = before
    for name in names:
        after = changed(after, name, rng)
    one, other = (disturbance_model(read_linear(each), names) for each in (before, after))
    found = closed(one, [b - a for a, b in zip(one.maps, other.maps, strict=True)])
    got, expected = (
        np.sort(np.abs(np.linalg.eigvals(M)))[::-1][:3] for M in (found, read_linear(after).core)
    )
    assert got == pytest.approx(expected[: len(got)], rel=1e-7, abs=1e-7)


def test_the_reading_is_left_as_it_was():
    reading = read_linear(three_masses(1, "0.1", "0.05"))
    before = gather_state(reading.root)
    structured_radius(reading, "pair")
    assert np.array_equal(gather_state(reading.root), before)
    assert np.array_equal(before, reading.z)
    assert structured_radius(reading, "pair").radius == structured_radius(reading, "pair").radius


def test_constants_change_no_radius():
    """An ODE with a constant push, linearised, against the same model without it."""
    one = StateSpace(A=[[-1.0]], B=[[0.8]], C=[[1.0]], x0=[1.0], inputs=["u"], outputs=["y"])
    two = StateSpace(A=[[-0.5]], B=[[-0.6]], C=[[1.0]], x0=[1.0], inputs=["u"], outputs=["y"], method="rk4")
    pushed = Ode(lambda t, x, u: [-0.5 * x[0] - 0.6 * u[0] + 3.0], None, [1.0], ["u"], ["y"], "rk4")
    links = {"one.u": "two.y", "two.u": "one.y"}
    plain, other = (
        Composite(Scenario({"one": one, "two": model}, links), "0.5", "jacobi", "linear")
        for model in (two, pushed)
    )
    readings = read_linear(plain), read_linear(linearise(other).composite)
    for relative in (False, True):
        radii = [structured_radius(reading, "two", relative=relative).radius for reading in readings]
        assert radii[0] == pytest.approx(radii[1], rel=1e-6)


# direct searches for the smallest change that destabilises


def searched(Phi_of, shapes, starts=2, seed=0):
    """Return the smallest size found of complex matrices with rho(Phi_of(matrices)) >= 1."""
    rng = np.random.default_rng(seed)
    counts = [rows * columns for rows, columns in shapes]

    def unit(x):
        parts, at = [], 0
        for (rows, columns), count in zip(shapes, counts, strict=True):
            parts.append((x[at : at + count] + 1j * x[at + count : at + 2 * count]).reshape(rows, columns))
            at += 2 * count
        largest = max(np.linalg.norm(part, 2) for part in parts)
        return [part / largest for part in parts]

    def reach(x):
        parts = unit(x)

        def height(t):
            return rho(Phi_of([t * part for part in parts])) - 1.0

        low, high = (0.97 * last[0], 1.03 * last[0]) if last else (0.0, 1e-3)
        if not height(low) < 0.0 <= height(high):
            low, high = 0.0, 1e-3
            while height(high) < 0.0:
                low, high = high, 1.2 * high
                if high > 1e3:
                    return high
        last[:] = [brentq(height, low, high, xtol=1e-9)]
        return last[0]

    last = []
    best = np.inf
    for _ in range(starts):
        last.clear()
        tried = [rng.normal(size=2 * sum(counts)) for _ in range(10)]
        first = min(tried, key=reach)
        reach(first)
        found = minimize(reach, first, method="BFGS", options={"maxiter": 60})
        best = min(best, float(found.fun))
    return best


def scalars(step, order=("one", "two")):
    """Two scalar simulators that drive each other."""
    one = StateSpace(A=[[-1.0]], B=[[0.8]], C=[[1.0]], x0=[1.0], inputs=["u"], outputs=["y"])
    two = StateSpace(A=[[-0.5]], B=[[-0.6]], C=[[1.0]], x0=[1.0], inputs=["u"], outputs=["y"])
    links = {"one.u": "two.y", "two.u": "one.y"}
    return Composite(Scenario({"one": one, "two": two}, links), step, GaussSeidel(order, outputs="stale"))


def agrees(found: StabilityRadius, size: float) -> None:
    """From above to a few percent, and never below."""
    assert found.at_least * (1 - 1e-6) <= size <= found.at_most * 1.03


def test_search_for_any_change():
    reading = read_linear(scalars(1))
    found = stability_radius(reading)
    n = len(reading.core)
    size = searched(lambda parts: reading.core + parts[0], [(n, n)])
    agrees(found, size)
    assert found.exact


def test_search_for_a_change_of_one_simulator():
    reading = read_linear(two_masses("Control21", 8.9))
    inside = disturbance_model(reading, ["two"])
    found = structured_radius(reading, "two")
    assert found.exact
    agrees(found, searched(lambda parts: closed(inside, parts), [(2, 3)]))


def test_search_for_a_change_of_several():
    reading = read_linear(scalars("0.7"))
    inside = disturbance_model(reading, ["one", "two"])
    found = structured_radius(reading, "one", "two")
    assert found.at_least >= 0.99 * found.at_most
    agrees(found, searched(lambda parts: closed(inside, parts), [(1, 2), (1, 2)]))


def test_search_for_a_change_that_acts_in_every_inner_step():
    outer = StateSpace(A=[[-1.0]], B=[[0.8]], C=[[1.0]], x0=[1.0], inputs=["u"], outputs=["y"])
    pair = scalars("0.5")
    inner = Composite(
        Scenario(
            pair.scenario.models,
            {"one.u": "two.y", "two.u": "push", "y": "one.y"},
            inputs=["push = 0"],
            outputs=["y"],
        ),
        "0.5",
        Jacobi(outputs="stale"),
    )
    links = {"inner.push": "outer.y", "outer.u": "inner.y"}
    reading = read_linear(
        Composite(Scenario({"outer": outer, "inner": inner}, links), 1, Jacobi(outputs="stale"))
    )
    inside = disturbance_model(reading, ["inner.two"])
    found = structured_radius(reading, "inner.two")
    assert [block.times for block in found.uncertain] == [2]
    assert "steps 2 times per period" in str(found.rows()[0]["note"])
    assert found.at_least >= 0.97 * found.at_most
    agrees(found, searched(lambda parts: closed(inside, parts), [inside.maps[0].shape]))


@pytest.mark.parametrize("names", [("first", "second", "third"), ("first",), ("third", "second")])
def test_both_bounds_meet_for_up_to_three_simulators(names):
    """For three full blocks at most the scaled bound is mu itself (Doyle, 1982)."""
    reading = read_linear(three_masses(1, "0.1"))
    found = structured_radius(reading, *names)
    assert found.certified
    assert found.at_most * 0.99 <= found.at_least <= found.at_most
    inside = disturbance_model(reading, names)
    sizes = [np.linalg.norm(change, 2) for change in found.changes]
    assert max(sizes) == pytest.approx(found.at_most, rel=1e-9)
    assert rho(closed(inside, found.changes)) == pytest.approx(1.0, abs=1e-8)


def test_scaling_never_falls_below_what_was_found():
    """The bound by scaling holds for every block diagonal Delta, repeated blocks among them."""
    rng = np.random.default_rng(3)
    blocks = (UncertainBlock("a", 1, 2, 3, 1.0), UncertainBlock("b", 2, 2, 1, 1.0))
    for _ in range(10):
        M = rng.normal(size=(8, 5)) + 1j * rng.normal(size=(8, 5))
        bound, scaling = mu_upper_bound(M, identity_scaling(blocks))
        assert bound == pytest.approx(np.linalg.norm(scaling.scale_matrix(M), 2), rel=1e-9)
        assert isinstance(scaling, Scaling)
        assert bound <= np.linalg.norm(M, 2) * (1 + 1e-12)
        for _ in range(50):
            parts = [
                rng.normal(size=(b.moves, b.sees)) + 1j * rng.normal(size=(b.moves, b.sees)) for b in blocks
            ]
            parts = [part / np.linalg.norm(part, 2) for part in parts]
            assert rho(assemble_delta(parts, blocks) @ M) <= bound * (1 + 1e-9)


# what is said


def test_a_simulator_without_a_state():
    gain = StateSpace(D=[[0.5]], inputs=["u"], outputs=["y"])
    plant = StateSpace(A=[[-1.0]], B=[[1.0]], C=[[1.0]], x0=[1.0], inputs=["u"], outputs=["y"])
    links = {"gain.u": "plant.y", "plant.u": "gain.y"}
    reading = read_linear(Composite(Scenario({"gain": gain, "plant": plant}, links), "0.1"))
    alone, both = structured_radius(reading, "gain"), structured_radius(reading, "gain", "plant")
    assert alone.radius == np.inf
    assert "no state" in alone.note
    assert both.radius == structured_radius(reading, "plant").radius
    assert "`gain` has no state" in both.note


def test_names_that_are_not_there():
    reading = read_linear(two_masses("Seidel12", 1.0))
    with pytest.raises(ScenarioError, match="`thre`"):
        structured_radius(reading, "thre")
    with pytest.raises(ScenarioError, match="no uncertain simulator"):
        structured_radius(reading)


def test_a_picture(tmp_path):
    reading = read_linear(two_masses("Control21", 8.9))
    for found in (stability_radius(reading), structured_radius(reading, "one", "two", relative=True)):
        found.plot(tmp_path / "radius.png")
        assert (tmp_path / "radius.png").stat().st_size > 5000
    structured_radius(read_linear(two_masses("Seidel12", 20.0)), "one").plot()


# what does not depend on units


def in_units(scale):
    """A mass whose states are in metres times `scale`, and whose force is in newtons over it."""
    mass = StateSpace(
        [[0, 1], [-0.1, -0.2]], [[0], [0.1 * scale**2]], np.eye(2) / scale, x0=[1, 0],
        inputs=["f"], outputs=["x", "v"],
    )  # fmt: skip
    spring = StateSpace([[-5.0]], [[1.0, 1.0]], [[-3.0 / scale]], inputs=["x", "v"], outputs=["f"])
    links = {"mass.f": "spring.f", "spring.x": "mass.x", "spring.v": "mass.v"}
    return read_linear(Composite(Scenario({"mass": mass, "spring": spring}, links), Fraction(1, 10)))


def test_a_balanced_radius_does_not_depend_on_units():
    plain = radius_per_simulator(in_units(1.0))
    assert [each.what for each in plain] == ["mass", "spring"]
    for scale in (1e-3, 1e4):
        scaled = radius_per_simulator(in_units(scale))
        assert [each.radius for each in scaled] == pytest.approx([each.radius for each in plain], rel=1e-5)
    relative = [structured_radius(in_units(scale), "mass", relative=True).radius for scale in (1.0, 1e4)]
    assert relative[0] > 100.0 * relative[1]


def test_a_balanced_change_destabilises():
    """The change, added to the step map in the units it has, puts an eigenvalue on the circle."""
    reading = in_units(1e3)
    found = structured_radius(reading, "mass", balanced=True)
    transfer, (change,) = disturbance_model(reading, ["mass"]).transfer, found.changes
    gain = np.linalg.solve(np.eye(2) - change @ transfer.D, change @ transfer.C)
    assert rho(transfer.Phi + transfer.B @ gain) == pytest.approx(1.0, abs=1e-8)


def test_many_disturbances_are_refused():
    with pytest.raises(ScenarioError, match=r"`pair\.second` steps 4 times per period"):
        radius_per_simulator(read_linear(three_masses(2, "0.1 s", "0.025 s")), most=4)


@pytest.mark.parametrize(("nested", "said"), [(False, "the steps are"), (True, "the steps of `inner` are")])
def test_a_fixed_number_of_iterations_has_no_radius(nested, said):
    """Each iteration would be disturbed in another way; the level that iterates is named."""
    first, second = (
        StateSpace(A=[[-1.0]], B=[[1.0]], C=[[1.0]], x0=[1.0], inputs=["u"], outputs=["y"]) for _ in range(2)
    )
    scenario = Scenario({"a": first, "b": second}, {"a.u": "b.y", "b.u": "a.y"})
    level = Composite(scenario, "0.1 s", Iterate(tolerance=None, at_most=3))
    whole = Composite(Scenario({"inner": level}), "0.1 s") if nested else level
    with pytest.raises(ScenarioError) as caught:
        structured_radius(read_linear(whole), "inner.a" if nested else "a")
    assert caught.value.faults[0].what.startswith(f"{said} made again a fixed number of times")


@pytest.mark.parametrize("angle", [0.4, 1.0, 1.6, 2.2, 2.8])
@pytest.mark.parametrize("share", [0.7, 0.85, 1.01])
def test_a_certificate_covers_the_whole_circle(angle, share):
    """One block: mu is the gain, and that of r times a rotation by a peaks at a, with 1 / (1 - r)."""
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    transfer, top = Transfer.resolvent(0.9 * turn), 10.0
    assert transfer.gains(np.zeros(1))[0] < 0.7 * top  # the level is crossed elsewhere
    scaling = identity_scaling([UncertainBlock("it", 2, 2, 1, 1.0)])
    found = _cover_circle(transfer, share * top, scaling)
    assert found is not None
    assert found >= top
    assert found <= 1.02 * top


@pytest.mark.parametrize(
    ("covered", "at_least", "certified"),
    [(None, 0.2, False), (10.0, 0.2, False), (4.0, 0.25, True)],
)
def test_a_bound_over_the_whole_circle_counts_if_it_is_better(covered, at_least, certified, monkeypatch):
    """mu is at most `covered` at every angle: no change below its inverse makes the coupling unstable."""
    blocks = (UncertainBlock("a", 1, 1, 1, 1.0),)
    found = StabilityRadius(0.2, 0.5, False, 0.0, 1.0, uncertain=blocks)
    monkeypatch.setattr(radii, "_mu_upper_bounds", lambda *_: np.array([1.0, 2.5]))
    monkeypatch.setattr(radii, "_smallest_changes", lambda *_: (1.0, (np.array([[0.4 + 0j]]),)))
    monkeypatch.setattr(radii, "identity_scaling", lambda blocks: None)
    monkeypatch.setattr(radii, "_cover_circle", lambda *_: covered)
    transfer = SimpleNamespace(angles=lambda *_: np.array([0.0, 1.0]), Phi=np.eye(2))
    better = radii._bounds_per_angle(transfer, found)
    assert (better.at_least, better.at_most, better.certified) == (at_least, 0.4, certified)
