"""Random bonds: each account against one kept apart, from what every simulator was given and came to.

In:  random levels in levels, with bonds between siblings and to the ports of levels
Out: the energy of every side, step by step as the simulators made them, and what the ledger says
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import comb

import numpy as np
import pytest

import hocket as hk
from hocket.orchestrators.adaptive import Adaptive
from hocket.orchestrators.asynchronous import Asynchronous

COUNT = 48


# what simulators saw: a chain of steps that goes back with them


def value(u, s):
    return sum(c * s**k for k, c in enumerate(u))


def later(u, s):
    """Return the same polynomials in powers of the time since s."""
    size = len(u)
    return np.array([sum(comb(k, j) * s ** (k - j) * u[k] for k in range(j, size)) for j in range(size)])


def watched(model, simulator):
    """Let a simulator note its steps: time, length, inputs, outputs and slopes at both ends."""
    simulator.way = None
    start, step, save, restore = simulator.start, simulator.step, simulator.save, simulator.restore
    if isinstance(model, hk.StateSpace):
        A, B, C, D = (np.array(each) for each in (model.A, model.B, model.C, model.D))

    def end(u):
        if not isinstance(model, hk.StateSpace):
            return np.array(simulator.output(0.0, u)), None
        x = simulator.z[: len(A)].copy()
        rate = C @ (A @ x + B @ u[0]) + (D @ u[1] if len(u) > 1 else 0.0)
        return C @ x + D @ u[0], rate

    def started(t):
        simulator.way = None
        start(t)

    def stepped(t, h, u):
        u = np.array(u)
        before = end(u)
        reached = step(t, h, u)
        simulator.way = simulator.way, (t, h, u, before, end(later(u, h)))
        return reached

    def restored(state):
        restore(state[0])
        simulator.way = state[1]

    simulator.start, simulator.step = started, stepped
    simulator.save, simulator.restore = lambda: (save(), simulator.way), restored
    return simulator


@pytest.fixture
def live(monkeypatch):
    """The simulators that are opened, by the first letters of their outputs."""
    found = {}
    for cls in (hk.StateSpace, hk.Python):

        def opened(model, known=cls.open):
            simulator = found[model.outputs[0].name[:-2]] = watched(model, known(model))
            return simulator

        monkeypatch.setattr(cls, "open", opened)
    return found


def account(way, output, entry):
    """Return when steps ended, and their energies: a trapezoid under a hold, else Simpson's rule."""
    ends, works = [], []
    while way is not None:
        way, (t, h, u, (y0, slope0), (y1, slope1)) = way
        first, middle, last = (value(u, s)[entry] for s in (0.0, h / 2, h))
        if len(u) == 1:
            work = h * (first * y0[output] + last * y1[output]) / 2
        else:
            bend = 0.0 if slope0 is None else h / 8 * (slope0[output] - slope1[output])
            half = (y0[output] + y1[output]) / 2 + bend
            work = h / 6 * (first * y0[output] + 4 * middle * half + last * y1[output])
        ends.append(t + h)
        works.append(work)
    return np.array(ends[::-1]), np.array(works[::-1])


# random levels


class Box:
    """y' = a y + B u by Heun's method, in two steps; it tells no slopes."""

    def __init__(self, a, B):
        self.a, self.B = a, B

    def start(self, t):
        self.y = [0.5 + 0.1 * k for k in range(len(self.B))]

    def output(self, t):
        return list(self.y)

    def rates(self, y, u):
        return [
            self.a * each + sum(b * float(v) for b, v in zip(row, u, strict=True))
            for each, row in zip(y, self.B, strict=True)
        ]

    def step(self, t, h, u):
        for k in range(2):
            now, then = (value(np.array(u), (k + s) * h / 2) for s in (0, 1))
            first = self.rates(self.y, now)
            guess = [y + h / 2 * r for y, r in zip(self.y, first, strict=True)]
            second = self.rates(guess, then)
            self.y = [y + h / 4 * (a + b) for y, a, b in zip(self.y, first, second, strict=True)]

    def save(self):
        return list(self.y)

    def restore(self, state):
        self.y = list(state)


class Pen:
    """Draws levels; remembers their bonds, with the simulator behind each side."""

    def __init__(self, number):
        self.rng = np.random.default_rng([2026, number])
        self.simulators = 0
        self.bonds = {}
        """By path: of both sides simulator, output, input and factor."""
        self.features = Counter()

    def one(self, *choices):
        return choices[int(self.rng.integers(len(choices)))]

    def chance(self, p):
        return bool(self.rng.random() < p)

    def leaf(self):
        name, m, p = f"s{self.simulators}", int(self.rng.integers(2, 4)), 2
        self.simulators += 1
        inputs = [hk.Port(f"{name}u{k}", "", 0.2 * k) for k in range(m)]
        outputs = [f"{name}y{k}" for k in range(p)]
        if self.chance(0.2):
            self.features["black box"] += 1
            model = hk.Python(Box, inputs, outputs, a=-0.5, B=self.rng.uniform(-1, 1, (p, m)).tolist())
        else:
            n = int(self.rng.integers(1, 4))
            A = self.rng.uniform(-1, 1, (n, n)) - np.eye(n)
            B, C = self.rng.uniform(-1, 1, (n, m)), self.rng.uniform(-1, 1, (p, n))
            D = self.rng.uniform(-0.2, 0.2, (p, m)) * self.one(0, 0, 1)
            self.features["reacts"] += bool(D.any())
            x0, method = self.rng.uniform(-1, 1, n), self.one("exact", "exact", "rk4", "euler")
            model = hk.StateSpace(A, B, C, D, x0, inputs, outputs, method)
        ends = [
            {port.name: (name, k, 1.0) for k, port in enumerate(ports)}
            for ports in (model.inputs, model.outputs)
        ]
        return model, *ends

    def level(self, step, depth, path=""):
        """Return a composite, and what is behind its ports: simulator, port, gain."""
        models, free, shown, connections, bonds = {}, {}, {}, [], {}
        for number in range(int(self.rng.integers(2, 4))):
            name = f"m{number}"
            if depth > 1 and number == 0:
                ratio = self.one(Fraction(1), Fraction(1, 2), Fraction(1, 3), Fraction(2))
                self.features[f"step times {ratio}"] += 1
                models[name], inputs, outputs = self.level(step * ratio, depth - 1, f"{path}{name}.")
            else:
                models[name], inputs, outputs = self.leaf()
            free |= {f"{name}.{port}": behind for port, behind in inputs.items()}
            shown |= {f"{name}.{port}": behind for port, behind in outputs.items()}
        for number in range(2):
            bond = self.bond(models, free, shown, connections, f"{path}b{number}")
            bonds |= {} if bond is None else {f"b{number}": bond}
        for target in [each for each in free if self.chance(0.5)]:
            connections.append(hk.Connection(self.one(*shown), target, self.own()))
            del free[target]
        ends = [], [], {}, {}
        if path:
            ends = self.ports(free, shown, connections)
        scenario = hk.Scenario(models, connections, *ends[:2], bonds=bonds)
        start, inside = self.one("window", "cold"), bool(path) or depth > 1
        return hk.Composite(scenario, step, self.way(models, inside), self.curve(), start), *ends[2:]

    def bond(self, models, free, shown, connections, path):
        giver, taker = (str(name) for name in self.rng.permutation(list(models))[:2])
        found = [self.side(name, free, shown) for name in (giver, taker)]
        if None in found:
            return None
        (given, effort), (taken, flow) = found
        gain, sign, reverse = self.one(1.0, 0.5, -2.0), self.one(1.0, -1.0), self.chance(0.3)
        connections.append(hk.Connection(effort, taken, self.own(), gain))
        connections.append(hk.Connection(flow, given, self.own(), gain * sign))
        sides = []
        for entry, output, factor in ((given, effort, 1.0), (taken, flow, sign)):
            (name, port, outside), (_, index, inside) = shown[output], free.pop(entry)
            sides.append((name, port, index, (-factor if reverse else factor) * outside / inside))
        self.bonds[path] = sides
        return hk.Bond(taken, given, "", reverse)

    def side(self, name, free, shown):
        """Return an input and an output of a child that belong to one simulator, if there are any."""
        pairs = [
            (entry, output)
            for entry, behind in free.items()
            for output, other in shown.items()
            if entry.partition(".")[0] == output.partition(".")[0] == name and behind[0] == other[0]
        ]
        return self.one(*pairs) if pairs else None

    def ports(self, free, shown, connections):
        inputs, outputs, entries, ends = [], [], {}, {}
        for path, (name, port, gain) in free.items():
            inputs.append(hk.Port(f"in{len(inputs)}", "", 0.25))
            factor = self.one(1.0, 2.0, -0.5)
            connections.append(hk.Connection(inputs[-1].name, path, None, factor))
            entries[inputs[-1].name] = name, port, gain * factor
        for path, (name, port, gain) in shown.items():
            outputs.append(hk.Port(f"out{len(outputs)}"))
            factor = self.one(1.0, 2.0, -0.5)
            connections.append(hk.Connection(path, outputs[-1].name, None, factor))
            ends[outputs[-1].name] = name, port, gain * factor
        return inputs, outputs, entries, ends

    def own(self):
        return self.curve() if self.chance(0.25) else None

    def curve(self):
        return self.one(hk.Hold(), hk.Polynomial(1), hk.Polynomial(2), hk.Nepce(0.3), hk.BalanceCorrection())

    def way(self, models, inside):
        how = {"outputs": self.one("stale", "consistent")}
        names = [str(name) for name in self.rng.permutation(list(models))]
        rates = {name: self.one(1, 2, 3) for name in names}
        rates |= {name: 1 for name, model in models.items() if isinstance(model, hk.Composite)}
        turns = Asynchronous(rates, **how)
        # all equally often: who is read only after several steps has one account for them
        often = hk.Multirate(dict.fromkeys(names, 1 if inside else 3), **how)
        way = self.one(hk.Jacobi(**how), hk.GaussSeidel(names, **how), turns, often)
        self.features[type(way).__name__] += 1
        if self.chance(0.5):
            way = self.one(hk.Iterate(way, None, 3, None), hk.Iterate(way, 1e-12, 200))
            self.features[f"{type(way.inner).__name__} again"] += 1
        if not inside and self.chance(0.3):
            self.features["step control"] += 1
            way = Adaptive(way, 0.2, self.one("defect", "richardson", "energy"), per="unit", first=1)
        return way


def drawn(number):
    pen = Pen(number)
    composite, *_ = pen.level(Fraction(1, 8), pen.one(1, 2, 3))
    return pen, composite


def told_apart(live, sides):
    """Return the energy given and taken, and what moved."""
    numbers = []
    for name, output, entry, factor in sides:
        works = factor * account(live[name].way, output, entry)[1]
        numbers.append((works.sum(), np.abs(works).sum()))
    return numbers


@pytest.mark.parametrize("number", range(COUNT))
def test_accounts_are_what_simulators_saw_times_what_they_showed(number, live):
    pen, composite = drawn(number)
    plain = hk.run(composite, 1, ledger=True, engine="interpreter")
    for path, sides in pen.bonds.items():
        flowed = plain.info["bonds"][path]
        for word, (energy, moved) in zip(("given", "taken"), told_apart(live, sides), strict=True):
            assert flowed[word] == pytest.approx(energy, abs=1e-11 * max(1.0, moved)), (path, word)
    native = hk.run(composite, 1, ledger=True, threads=2)
    assert native.info["bonds"] == plain.info["bonds"]


def test_the_scenarios_have_everything_in_them():
    pens = [drawn(number)[0] for number in range(COUNT)]
    features = sum((pen.features for pen in pens), Counter())
    assert sum(len(pen.bonds) for pen in pens) > 2 * COUNT
    ways = "Jacobi", "GaussSeidel", "Asynchronous", "Multirate"
    wanted = [*ways, *(f"{way} again" for way in ways), "black box", "reacts", "step control"]
    ratios = [f"step times {ratio}" for ratio in ("1", "1/2", "1/3", "2")]
    assert all(features[each] >= 5 for each in (*wanted, *ratios)), features
