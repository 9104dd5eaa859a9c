"""Errors predicted for black boxes, from nothing but their answers, against runs and the exact solution.

The exact solutions are those of matrices written down here, for the whole system at once.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.linalg import block_diag, expm

import hocket as hk
from fmus.build import build
from hocket.analysis.error_prediction import predicted_error
from hocket.analysis.linearisation import linearise
from systems import THREE, TWO_MASS_WIRES

FACTOR, CLOSE = 2.0, 1.01
"""How far predictions may be off; and where a past at the start needs no other steps than were identified."""
SMALL = 1e-8
"""Errors below this part of the values are not compared: black boxes are pushed by small numbers."""


class Fixed:
    """x' = A x + B u, y = C x + D u; it shows its outputs only, and cannot roll back."""

    def __init__(self, A, B, C, D, x0):
        self.A, self.B, self.C, self.D = (np.array(each, dtype=float) for each in (A, B, C, D))
        self.x0, self.flows = np.array(x0, dtype=float), {}

    def start(self, t):
        self.x = self.x0.copy()

    def output(self, t, u):
        return self.C @ self.x + self.D @ u[0]

    def step(self, t, h, u):
        self.x = self._flow(h, len(u)) @ np.concatenate([self.x, u.ravel()])

    def _flow(self, h, powers):
        """The rows of the states in the flow of [x, coefficients of the inputs]."""
        if (h, powers) in self.flows:
            return self.flows[h, powers]
        n, m = self.B.shape
        whole = np.zeros((n + powers * m, n + powers * m))
        whole[:n, :n], whole[:n, n : n + m] = self.A, self.B
        for k in range(powers - 1):
            row = n + k * m
            whole[row : row + m, row + m : row + 2 * m] = (k + 1) * np.eye(m)
        self.flows[h, powers] = expm(whole * h)[:n]
        return self.flows[h, powers]


class Rewinding(Fixed):
    """The same, which can go back, so that extrapolators get a past."""

    def save(self):
        return self.x.copy()

    def restore(self, state):
        self.x = state.copy()


def black(cls, A, B, C, D, x0, inputs, outputs):
    """Return a black box that reacts at once where D is not zero."""
    reacts = {
        name: [port for port, d in zip(inputs, row, strict=True) if d]
        for name, row in zip(outputs, D, strict=True)
    }
    made = type(cls.__name__, (cls,), {"feedthrough": reacts})
    return hk.Python(made, [f"{port} = 0" for port in inputs], outputs, A=A, B=B, C=C, D=D, x0=x0)


def compare(composite, stop, whole, x0, seen, factor=CLOSE):
    """Assert that predicted errors are those of a run; `seen` gives the row of each port on the states."""
    found = predicted_error(linearise(composite).composite, stop, measure=False)
    run = hk.run(composite, stop)
    compared = 0
    for port, row in seen.items():
        t, values = run[port]
        exact = np.array([np.dot(row, expm(whole * each) @ x0) for each in t])
        wrong, size = np.abs(values - exact).max(), np.abs(exact).max()
        if wrong > SMALL * size:
            assert wrong / factor <= found[port].largest <= wrong * factor, port
            assert found[port].scale == pytest.approx(size, rel=1e-3)
            compared += 1
        else:
            assert found[port].largest <= 10 * SMALL * size
    assert compared


# two masses: m = 10, springs 1, dampers 1 and 2, coupled by a spring 1 and a damper 2 (Glumac & Kovacic 2019)

TWO = np.array([[0, 1, 0, 0], [-0.2, -0.3, 0.1, 0.2], [0, 0, 0, 1], [0.1, 0.2, -0.2, -0.4]])
TWO_START = np.array([0.1, 0.1, 0.2, 0.1])
TWO_PORTS = {"second.x": [0, 0, 1, 0], "second.v": [0, 0, 0, 1], "first.force": [1, 2, -1, -2]}
ORCHESTRATORS = {
    "jacobi": hk.Jacobi(),
    "stale jacobi": hk.Jacobi(outputs="stale"),
    "first, second": hk.GaussSeidel(["first", "second"]),
    "second, first": hk.GaussSeidel(["second", "first"], outputs="stale"),
}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Builds each FMU once."""
    folder = tmp_path_factory.mktemp("fmus")

    @cache
    def path(name, version):
        return build(name, version, folder=folder / str(version))

    return path


@pytest.mark.parametrize("orchestrator", ORCHESTRATORS)
@pytest.mark.parametrize(("h", "version"), [("0.1", 2), ("0.4", 3), ("1", 1), ("2", 2)])
def test_two_masses_as_fmus(built, h, version, orchestrator):
    """With many substeps: what an FMU integrates wrongly inside is not seen from outside."""
    models = {name: hk.Fmu(built(name, version), substeps=20) for name in ("first", "second")}
    composite = hk.Composite(hk.Scenario(models, TWO_MASS_WIRES), h, ORCHESTRATORS[orchestrator])
    compare(composite, 40 * Fraction(h), TWO, TWO_START, TWO_PORTS)


@pytest.mark.parametrize("cls", [Rewinding, Fixed])
@pytest.mark.parametrize("extrapolation", [hk.Polynomial(1), hk.Polynomial(2), hk.Nepce(0.3)])
@pytest.mark.parametrize(("h", "orchestrator"), [("0.25", "jacobi"), ("1", "second, first")])
def test_two_masses_in_python(h, orchestrator, extrapolation, cls):
    first = [[0, 1], [-0.2, -0.3]], [[0, 0], [0.1, 0.2]], [[1, 2]], [[-1, -2]], TWO_START[:2]
    second = [[0, 1], [-0.1, -0.2]], [[0], [0.1]], np.eye(2), np.zeros((2, 1)), TWO_START[2:]
    models = {
        "first": black(cls, *first, ["x", "v"], ["force"]),
        "second": black(cls, *second, ["force"], ["x", "v"]),
    }
    how = h, ORCHESTRATORS[orchestrator], extrapolation
    compare(
        hk.Composite(hk.Scenario(models, TWO_MASS_WIRES), *how), 40 * Fraction(h), TWO, TWO_START, TWO_PORTS
    )


# three masses (Hafner 2021, section 6.3) as black boxes: flat, and the stiff pair on a level of its own


def three(number):
    """The matrix of all three masses over (x1, v1, x2, v2, x3, v3)."""
    c1, c12, c23, c3 = THREE["parameters"]["c1_c12_c23_c3"][str(number)]
    d1, d12, d23, d3 = THREE["parameters"]["d1_d12_d23_d3"]
    matrix = np.zeros((6, 6))
    matrix[0::2, 1::2] = np.eye(3)
    matrix[1::2, 0::2] = [[-c1 - c12, c12, 0], [c12, -c12 - c23, c23], [0, c23, -c23 - c3]]
    matrix[1::2, 1::2] = [[-d1 - d12, d12, 0], [d12, -d12 - d23, d23], [0, d23, -d23 - d3]]
    matrix[1::2] /= 10.0
    return matrix


def mass(place, number):
    """Return one of the masses; its inputs are where its neighbours are, and how fast."""
    whole, own = three(number), slice(2 * place, 2 * place + 2)
    others = [each for each in (place - 1, place + 1) if 0 <= each <= 2]
    columns = [2 * each + k for each in others for k in (0, 1)]
    inputs = [f"{letter}{each + 1}" for each in others for letter in "xv"]
    matrices = whole[own, own], whole[own][:, columns], np.eye(2), np.zeros((2, len(columns)))
    return black(Rewinding, *matrices, [place + 1.0, 0.0], inputs, ["x", "v"])


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize(
    ("number", "h", "extrapolation"),
    [
        (1, "0.05", "hold"),
        (1, "0.1", "linear"),
        (2, "0.025", "hold"),
        (2, "0.05", "linear"),
        (3, "0.01", "hold"),
    ],
)
def test_three_masses_in_python(number, h, extrapolation, nested):
    names = ["m1", "m2", "m3"]
    models = {name: mass(place, number) for place, name in enumerate(names)}
    wires = {
        f"{name}.{letter}{other[1]}": f"{other}.{letter}"
        for name, other in (("m1", "m2"), ("m2", "m1"), ("m2", "m3"), ("m3", "m2"))
        for letter in "xv"
    }
    level = ""
    if nested:
        inside = {
            target: source
            for target, source in wires.items()
            if "m1" not in target + source and "1" not in target
        }
        pair = hk.Composite(
            hk.Scenario({name: models[name] for name in ("m2", "m3")}, inside),
            Fraction(h) / 5,
            "gauss-seidel",
            extrapolation,
        )
        outside = {target: source for target, source in wires.items() if target not in inside}
        wires = {
            ("pair." * (target[:2] != "m1")) + target: ("pair." * (source[:2] != "m1")) + source
            for target, source in outside.items()
        }
        models, level = {"m1": models["m1"], "pair": pair}, "pair."
    composite = hk.Composite(hk.Scenario(models, wires), h, "jacobi", extrapolation)
    rows, factor = np.eye(6), FACTOR if nested and extrapolation == "linear" else CLOSE
    seen = {
        f"{'' if name == 'm1' else level}{name}.{letter}": rows[2 * place + k]
        for place, name in enumerate(names)
        for k, letter in enumerate("xv")
    }
    compare(composite, 60 * Fraction(h), three(number), np.array([1.0, 0, 2, 0, 3, 0]), seen, factor)


# random systems: everyone is driven by everyone


@pytest.mark.parametrize("seed", range(12))
def test_random_couplings_in_python(seed):
    print(f"seed {seed}")
    rng = np.random.default_rng([77, seed])
    count, h = 3, Fraction(1, int(rng.choice([5, 10, 20])))
    sizes = [int(size) for size in rng.integers(1, 4, count)]
    blocks = []
    for size in sizes:
        A = rng.uniform(-1, 1, (size, size)) - 1.2 * np.eye(size)
        blocks.append((A, rng.uniform(-1, 1, (size, count)), rng.uniform(-1, 1, (1, size))))
    ins, x0 = [f"u{k}" for k in range(count)], rng.uniform(-1, 1, sum(sizes))
    starts = np.split(x0, np.cumsum(sizes)[:-1])
    cls = Rewinding if seed % 2 else Fixed
    models = {
        f"m{k}": black(cls, *block, np.zeros((1, count)), start, ins, ["y"])
        for k, (block, start) in enumerate(zip(blocks, starts, strict=True))
    }
    wires = {f"m{k}.u{other}": f"m{other}.y" for k in range(count) for other in range(count)}
    A, C = block_diag(*(block[0] for block in blocks)), block_diag(*(block[2] for block in blocks))
    whole = A + np.vstack([block[1] for block in blocks]) @ C
    orchestrator = [hk.Jacobi(), hk.Jacobi(outputs="stale"), hk.GaussSeidel(["m1", "m2", "m0"])][seed % 3]
    extrapolation = [hk.Hold(), hk.Polynomial(1), hk.Polynomial(2), hk.Nepce(-0.2)][seed % 4]
    composite = hk.Composite(hk.Scenario(models, wires), h, orchestrator, extrapolation)
    compare(composite, 4, whole, x0, {f"m{k}.y": C[k] for k in range(count)})
