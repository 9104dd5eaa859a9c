"""The start is consistent over all levels: u = L y and y = g(x, u), loops included."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import block_diag, expm

import hocket
from hocket import Composite, ConvergenceError, GaussSeidel, Jacobi, Ode, Python, Scenario, StateSpace
from hocket.plan import Read, Solve
from hocket.planning.planner import plan_tree

STEP = 0.25
NESTS = {
    "2, flat": ("a", "b"),
    "3, flat": ("a", "b", "c"),
    "5, flat": ("a", "b", "c", "d", "e"),
    "2, one of them inside": ("a", ("b",)),
    "3, two of them inside": ("a", ("b", "c")),
    "5, in three levels": ("a", ("b", ("c", "d")), "e"),
    "5, in two levels side by side": (("a", "c"), "b", ("d", "e")),
}
"""A tuple inside is a level."""


def names_in(tree):
    return [name for part in tree for name in ([part] if isinstance(part, str) else names_in(part))]


def paths_in(tree, prefix=""):
    paths = {}
    for place, part in enumerate(tree):
        level = f"{prefix}level{place}."
        paths |= {part: f"{prefix}{part}"} if isinstance(part, str) else paths_in(part, level)
    return paths


def nest(tree, models, connections, orchestrator):
    """The models in the levels of a tree; connections are made at the lowest level that holds both ends."""
    members, deeper = {}, []
    for place, part in enumerate(tree):
        if isinstance(part, str):
            members[part] = models[part]
        else:
            members[f"level{place}"] = nest(part, models, connections, orchestrator)
            deeper.append(set(names_in(part)))
    paths = paths_in(tree)

    def is_here(ends):
        return ends <= set(paths) and not any(ends <= level for level in deeper)

    here = {
        f"{paths[target]}.{u}": f"{paths[source]}.{y}"
        for (target, u), (source, y) in connections.items()
        if is_here({target, source})
    }
    return Composite(Scenario(members, here), STEP, orchestrator)


class Ring:
    """Random linear simulators, each driven by the two next ones, every output reacting to every input."""

    def __init__(self, names, seed=1):
        rng = np.random.default_rng(seed)
        self.names = sorted(names)
        n = len(names)
        self.A = [rng.uniform(-1, 0.5, (2, 2)) for _ in names]
        self.B = [rng.uniform(-1, 1, (2, 2)) for _ in names]
        self.C = [rng.uniform(-1, 1, (2, 2)) for _ in names]
        self.D = [rng.uniform(0.2, 0.7, (2, 2)) for _ in names]
        self.x0 = [rng.uniform(-1, 1, 2) for _ in names]
        self.L = np.zeros((2 * n, 2 * n))
        self.connections = {}
        for i, name in enumerate(self.names):
            for port, j in enumerate(((i + 1) % n, (i + 2) % n if n > 2 else 1 - i)):
                self.L[2 * i + port, 2 * j + port] = 1
                self.connections[name, f"u{port}"] = (self.names[j], f"y{port}")

    def models(self):
        return {
            name: StateSpace(A, B, C, D, x0, inputs=["u0", "u1"], outputs=["y0", "y1"])
            for name, A, B, C, D, x0 in zip(self.names, self.A, self.B, self.C, self.D, self.x0, strict=True)
        }

    def outputs(self, x):
        """(I - D L)^-1 C x"""
        D = block_diag(*self.D)
        return np.linalg.solve(np.eye(len(D)) - D @ self.L, block_diag(*self.C) @ x)

    def steps(self, length=STEP):
        """Phi and Gamma of every simulator over a step with held inputs."""
        for A, B in zip(self.A, self.B, strict=True):
            flow = expm(np.block([[A, B], [np.zeros((2, 4))]]) * length)
            yield flow[:2, :2], flow[:2, 2:]


@pytest.mark.parametrize("tree", NESTS.values(), ids=NESTS)
def test_linear_loops_start_at_their_solution(tree):
    ring, paths = Ring(names_in(tree)), paths_in(tree)
    composite = nest(tree, ring.models(), ring.connections, Jacobi(outputs="stale"))
    assert any(isinstance(instruction, Solve) for instruction in plan_tree(composite).plan.start)
    outputs = [f"{paths[name]}.y{port}" for name in ring.names for port in (0, 1)]
    inputs = [f"{paths[name]}.u{port}" for name in ring.names for port in (0, 1)]
    run = hocket.run(composite, 0, record=[*outputs, *inputs])
    y0 = ring.outputs(np.concatenate(ring.x0))
    assert [run.final(port) for port in outputs] == pytest.approx(y0, rel=0, abs=1e-12)
    assert [run.final(port) for port in inputs] == pytest.approx(ring.L @ y0, rel=0, abs=1e-12)


def still(t, x, u):
    return []


def cosine(t, x, u):
    return np.cos(u)


class Falling:
    inputs = ("u",)
    outputs = ("y",)

    def start(self, t): ...

    def output(self, t, u):
        return np.exp(-u[0])

    def step(self, t, h, u): ...


def test_a_nonlinear_loop_starts_at_its_root():
    """y = cos y is 0.7390851332151607 (Dottie), y = exp(-y) is 0.5671432904097838 (omega)."""
    dottie = Ode(still, cosine, inputs=["u"], outputs=["y"])
    through = StateSpace(D=[[1.0]], inputs=["u"], outputs=["y"])
    models = {"cosine": dottie, "falling": Python(Falling), "wire": through}
    connections = {"cosine.u": "cosine.y", "falling.u": "wire.y", "wire.u": "falling.y"}
    run = hocket.run(Composite(Scenario(models, connections), 1, Jacobi(outputs="stale")), 0)
    assert run.final("cosine.y") == pytest.approx(0.7390851332151607, rel=0, abs=1e-12)
    assert run.final("falling.y") == pytest.approx(0.5671432904097838, rel=0, abs=1e-12)
    assert run.final("wire.y") == pytest.approx(0.5671432904097838, rel=0, abs=1e-12)


def test_a_nonlinear_loop_across_levels_starts_at_its_root():
    inner = Composite(Scenario({"falling": Python(Falling)}), 1, Jacobi(outputs="stale"))
    doubled = StateSpace(D=[[2.0]], inputs=["u"], outputs=["y"])
    connections = {"doubled.u": "level.falling.y", "level.falling.u": "doubled.y"}
    scenario = Scenario({"doubled": doubled, "level": inner}, connections)
    run = hocket.run(Composite(scenario, 1, Jacobi(outputs="stale")), 0)
    # v = exp(-2 v): 2 v = W(2), Lambert's function, 0.8526055020137254
    assert run.final("doubled.y") == pytest.approx(0.8526055020137254, rel=0, abs=1e-12)


def squared(t, x, u):
    return u * u + 1.0


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (StateSpace(A=[[0]], C=[[1]], D=[[1]], x0=[1], inputs=["u"], outputs=["y"]), "no solution"),
        (Ode(still, squared, inputs=["u"], outputs=["y"]), "algebraic loop"),
    ],
    ids=["y = y + 1", "y = y^2 + 1"],
)
def test_a_loop_without_solution_is_refused_and_named(model, why):
    plain = {name: StateSpace(D=[[1.0]], inputs=["u"], outputs=["y"]) for name in "bc"}
    inner = Composite(Scenario(plain, {"c.u": "b.y"}), 1, Jacobi(outputs="stale"))
    bystander = StateSpace(D=[[0.5]], inputs=["u"], outputs=["y"])
    scenario = Scenario(
        {"a": model, "level": inner, "bystander": bystander},
        {"level.b.u": "a.y", "a.u": "level.c.y", "bystander.u": "a.y"},
    )
    with pytest.raises(ConvergenceError, match=why) as caught:
        hocket.run(Composite(scenario, 1, Jacobi(outputs="stale")), 1)
    where = caught.value.faults[0].where
    assert set(where.replace(" at t = 0.0 s", "").split(" -> ")) == {
        "a.y",
        "level.b.y",
        "level.c.y",
    }
    assert "t = 0.0 s" in where


def crossing(first=3.0):
    """Two simulators that drive each other through separate ports: a circle of units, no loop of ports."""
    left = StateSpace(
        A=[[0]],
        C=[[1], [0], [0]],
        D=[[0, 0], [5, 0], [0, 7]],
        x0=[first],
        inputs=["u", "v"],
        outputs=["state", "five", "seven"],
    )
    right = StateSpace(
        D=[[2, 0], [0, 11]], inputs=["u", "v"], outputs=["two", "eleven"],
    )  # fmt: skip
    connections = {
        ("right", "u"): ("left", "state"),
        ("left", "u"): ("right", "two"),
        ("right", "v"): ("left", "five"),
        ("left", "v"): ("right", "eleven"),
    }
    return {"left": left, "right": right}, connections


@pytest.mark.parametrize("tree", [("left", "right"), ("left", ("right",)), (("left",), ("right",))])
def test_a_circle_of_units_that_is_no_loop_is_evaluated_in_order(tree):
    """3 -> two 6 -> five 30 -> eleven 330 -> seven 2310, exactly, at the start and after each step."""
    composite = nest(tree, *crossing(), Jacobi())
    start = plan_tree(composite).plan.start
    assert not any(isinstance(instruction, Solve) for instruction in start)
    assert any(isinstance(instruction, Read) for instruction in start)
    assert not any(isinstance(instruction, Solve) for instruction in plan_tree(composite).plan.step)
    assert plan_tree(composite).plan.outputs == "consistent"
    paths = paths_in(tree)
    run = hocket.run(composite, 1)
    expected = {"left.state": 3, "right.two": 6, "left.five": 30, "right.eleven": 330, "left.seven": 2310}
    for port, value in expected.items():
        name, _, output = port.partition(".")
        assert run[f"{paths[name]}.{output}"].values.tolist() == [value] * 5, port


@pytest.mark.parametrize(("outputs", "how"), [("consistent", "solved"), ("stale", "broken by a delay")])
def test_a_loop_is_named_in_the_plan(outputs, how):
    ring = Ring("ab")
    plan = plan_tree(nest(("a", "b"), ring.models(), ring.connections, Jacobi(outputs=outputs))).plan
    assert any(isinstance(instruction, Solve) for instruction in plan.step) == (outputs == "consistent")
    (note,) = [note for note in plan.notes if how in note]
    assert {"a.y0", "a.y1", "b.y0", "b.y1"} <= set(note.replace(",", " ").split())


def test_without_a_choice_and_without_a_loop_outputs_are_consistent():
    plan = plan_tree(nest(("left", "right"), *crossing(), Jacobi())).plan
    assert plan.outputs == "consistent"
    assert plan.notes == ()


def assert_rows(run, ring, expected):
    """Of all outputs at the outermost level, and of what a is driven by, wherever that comes from."""
    expected = np.array(expected)
    for number, name in enumerate(ring.names):
        for port in (0, 1):
            if f"{name}.y{port}" in run:
                assert run[f"{name}.y{port}"].values == pytest.approx(
                    expected[:, 2 * number + port], rel=1e-11, abs=1e-11
                )
    for port in (0, 1):
        driven = expected @ ring.L[port]
        assert run[f"a.u{port}"].values == pytest.approx(driven, rel=1e-11, abs=1e-11)


def assert_loop_was_announced(run):
    assert any("solved in every step" in note for note in run.info["notes"])


@pytest.mark.parametrize("tree", [("a", "b"), ("a", "b", "c"), ("a", ("b", "c"))])
def test_consistent_jacobi_solves_its_loop_in_every_step(tree):
    """x_k+1 = Phi x_k + Gamma L y_k, y_k = (I - D L)^-1 C x_k."""
    ring = Ring(names_in(tree))
    composite = nest(tree, ring.models(), ring.connections, Jacobi(outputs="consistent"))
    run = hocket.run(composite, 10 * STEP, record=["*", "a.u0", "a.u1"])
    assert_loop_was_announced(run)
    Phi, Gamma = (block_diag(*maps) for maps in zip(*ring.steps(), strict=True))
    x = np.concatenate(ring.x0)
    expected = [ring.outputs(x)]
    for _ in range(10):
        x = Phi @ x + Gamma @ ring.L @ expected[-1]
        expected.append(ring.outputs(x))
    assert_rows(run, ring, expected)


def test_consistent_gauss_seidel_solves_its_loop_after_the_last_one():
    """b steps under what a puts out with its old input; then both are solved for."""
    ring = Ring("ab")
    composite = nest(
        ("a", "b"), ring.models(), ring.connections, GaussSeidel(["a", "b"], outputs="consistent")
    )
    run = hocket.run(composite, 10 * STEP, record=["*", "a.u0", "a.u1"])
    assert_loop_was_announced(run)
    (Phi_a, Gamma_a), (Phi_b, Gamma_b) = ring.steps()
    a, b = ring.x0
    expected = [ring.outputs(np.concatenate([a, b]))]
    for _ in range(10):
        to_a = expected[-1][2:]
        a = Phi_a @ a + Gamma_a @ to_a
        b = Phi_b @ b + Gamma_b @ (ring.C[0] @ a + ring.D[0] @ to_a)
        expected.append(ring.outputs(np.concatenate([a, b])))
    assert_rows(run, ring, expected)


def test_a_level_of_half_the_step_solves_its_own_loop_in_between():
    """In the middle b and c agree with each other under the held output of a; at the end all three agree."""
    ring = Ring("abc")
    models, inner, outer = ring.models(), {}, {}
    for (target, u), (source, y) in ring.connections.items():
        there, here = (f"level.{name}" if name in "bc" else name for name in (target, source))
        if "a" in (target, source):
            outer[f"{there}.{u}"] = f"{here}.{y}"
        else:
            inner[f"{target}.{u}"] = f"{source}.{y}"
    choice = Jacobi(outputs="consistent")
    level = Composite(Scenario({"b": models["b"], "c": models["c"]}, inner), STEP / 2, choice)
    composite = Composite(Scenario({"a": models["a"], "level": level}, outer), STEP, choice)
    run = hocket.run(composite, 10 * STEP, record=["*", "a.u0", "a.u1"])
    assert_loop_was_announced(run)

    Phi_a, Gamma_a = next(ring.steps())
    Phi, Gamma = (block_diag(*maps[1:]) for maps in zip(*ring.steps(STEP / 2), strict=True))
    C, D = block_diag(*ring.C[1:]), block_diag(*ring.D[1:])
    own, held = ring.L[2:, 2:], ring.L[2:, :2]
    a, x = ring.x0[0], np.concatenate(ring.x0[1:])
    expected, halfway = [ring.outputs(np.concatenate([a, x]))], []
    for _ in range(10):
        u, from_a = ring.L @ expected[-1], held @ expected[-1][:2]
        a = Phi_a @ a + Gamma_a @ u[:2]
        x = Phi @ x + Gamma @ u[2:]
        halfway.append(np.linalg.solve(np.eye(4) - D @ own, C @ x + D @ from_a))
        x = Phi @ x + Gamma @ (own @ halfway[-1] + from_a)
        expected.append(ring.outputs(np.concatenate([a, x])))
    assert_rows(run, ring, expected)
    rows = np.array([run[f"level.{name}.y{port}"].values[1::2] for name in "bc" for port in (0, 1)]).T
    assert rows == pytest.approx(np.array(halfway), rel=1e-11, abs=1e-11)


def test_stale_jacobi_passes_each_output_on_a_step_later():
    """y_k+1 = C x_k+1 + D L y_k: the loop is solved at the start only."""
    ring = Ring("ab")
    composite = nest(("a", "b"), ring.models(), ring.connections, Jacobi(outputs="stale"))
    run = hocket.run(composite, 10 * STEP)
    assert run.info["engine"] == "native"
    Phi, Gamma = (block_diag(*maps) for maps in zip(*ring.steps(), strict=True))
    C, D = block_diag(*ring.C), block_diag(*ring.D)
    x = np.concatenate(ring.x0)
    expected = [ring.outputs(x)]
    for _ in range(10):
        u = ring.L @ expected[-1]
        x = Phi @ x + Gamma @ u
        expected.append(C @ x + D @ u)
    rows = np.array([run[f"{name}.y{port}"].values for name in "ab" for port in (0, 1)]).T
    assert rows == pytest.approx(np.array(expected), rel=1e-11, abs=1e-11)
