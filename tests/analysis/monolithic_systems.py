"""Random linear scenarios whose exact solution is that of one system: chains, ladders, random, sampled.

`draw_case(seed, number)` returns a composite up to three levels deep beside a `Monolith`, which is put
together from the same matrices by hand and solved by the matrix exponential: nothing of hocket takes part.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

import numpy as np
from scipy.linalg import expm

from hocket import (
    Composite,
    GaussSeidel,
    Hermite,
    Hold,
    Iterate,
    Jacobi,
    Polynomial,
    Python,
    Scenario,
    StateSpace,
)
from hocket.orchestrators.asynchronous import Asynchronous
from hocket.orchestrators.multirate import Multirate

FAMILIES = ("chain", "ladder", "random", "sampled")
METHODS = ("exact", "exact", "exact", "euler", "implicit-euler", "heun", "rk4", "trapezoid", "ab2")
SAMPLES_AT_ONCE, SAMPLES_LATER = "at once", "later"


class AtOnce:
    """A linear controller that shows what follows from its sample at once: y = H z + J e, z' = F z + G e."""

    def __init__(self, F, G, H, J):
        self.J = np.array(J, dtype=float)
        n, (p, m) = len(F), self.J.shape
        self.F, self.G, self.H = (
            np.array(F).reshape(n, n),
            np.array(G).reshape(n, m),
            np.array(H).reshape(p, n),
        )

    def start(self, t):
        self.z = np.zeros(len(self.F))

    def output(self, t, u):
        return self.H @ self.z + self.J @ np.asarray(u, dtype=float)[0]

    def step(self, t, h, u):
        self.z = self.F @ self.z + self.G @ np.asarray(u, dtype=float)[0]
        return t + h


class Later(AtOnce):
    """The same, shown a period later, or a delay later."""

    def start(self, t):
        super().start(t)
        self.y = np.zeros(len(self.H))

    def output(self, t):
        return self.y

    def step(self, t, h, u):
        self.y = self.H @ self.z + self.J @ np.asarray(u, dtype=float)[0]
        return super().step(t, h, u)


@dataclass(frozen=True)
class Controller:
    """The matrices of a sampled controller, and when it samples."""

    F: np.ndarray
    G: np.ndarray
    H: np.ndarray
    J: np.ndarray
    kind: str
    period: Fraction
    offset: Fraction | None = None
    delay: Fraction | None = None

    def model(self) -> Python:
        """Return it as a simulator of hocket."""
        made_of = {name: getattr(self, name).tolist() for name in "FGHJ"}
        cls = AtOnce if self.kind == SAMPLES_AT_ONCE else Later
        when = {name: each for name in ("offset", "delay") if (each := getattr(self, name)) is not None}
        ins, outs = (
            [f"{letter}{k}" for k in range(size)] for letter, size in zip("uy", self.J.T.shape, strict=True)
        )
        return Python(cls, ins, outs, self.period, **when, **made_of)

    @property
    def latency(self) -> Fraction:
        """How long after its sample it shows what follows."""
        if self.delay is not None:
            return self.delay
        return Fraction(0) if self.kind == SAMPLES_AT_ONCE else self.period


@dataclass
class Monolith:
    """Everything as one system, by the matrices of the parts: x' = A x + B u, y = C x + D u, u = L y."""

    leaves: dict[str, StateSpace]
    wires: dict[str, str]
    controllers: dict[str, Controller] = field(default_factory=dict)

    def __post_init__(self) -> None:
        blocks = [
            tuple(
                np.array(each, dtype=float).reshape(shape)
                for each, shape in (
                    (leaf.A, (len(leaf.A), len(leaf.A))),
                    (leaf.B, (len(leaf.A), len(leaf.inputs))),
                    (leaf.C, (len(leaf.outputs), len(leaf.A))),
                    (leaf.D, (len(leaf.outputs), len(leaf.inputs))),
                )
            )
            for leaf in self.leaves.values()
        ]
        A, B, C, D = (_stack_blocks([block[k] for block in blocks]) for k in range(4))
        self.x0 = np.concatenate([np.array(leaf.x0, dtype=float) for leaf in self.leaves.values()])
        inputs = [f"{path}.{port.name}" for path, leaf in self.leaves.items() for port in leaf.inputs]
        self.ports = [f"{path}.{port.name}" for path, leaf in self.leaves.items() for port in leaf.outputs]
        self.held = [f"{path}.y{k}" for path, each in self.controllers.items() for k in range(len(each.H))]
        place = {port: k for k, port in enumerate(self.ports)}
        L, W = np.zeros((len(inputs), len(self.ports))), np.zeros((len(inputs), len(self.held)))
        for row, path in enumerate(inputs):
            source = self.wires.get(path)
            if source in place:
                L[row, place[source]] = 1.0
            elif source is not None:
                W[row, self.held.index(source)] = 1.0
        solved = np.linalg.inv(np.eye(len(self.ports)) - D @ L)
        self.condition = float(np.linalg.cond(np.eye(len(self.ports)) - D @ L))
        self.C, self.Dw = solved @ C, solved @ D @ W
        self.A, self.Bw = A + B @ L @ self.C, B @ (L @ self.Dw + W)

    def solve(self, times: np.ndarray) -> np.ndarray:
        """Return all outputs of the leaves at these times, a row each; they must not jump."""
        instants, states, held = self._solve_instants(float(np.max(times)))
        rows = np.empty((len(times), len(self.ports)))
        n, generator = len(self.A), np.zeros((len(self.A) + len(self.held),) * 2)
        generator[:n, :n], generator[:n, n:] = self.A, self.Bw
        flows: dict[float, np.ndarray] = {}
        for row, t in enumerate(times):
            last = max(0, int(np.searchsorted(instants, t + 1e-12, side="right")) - 1)
            ahead = float(t) - instants[last]
            key = round(ahead, 13)
            if key not in flows:
                flows[key] = expm(generator * ahead)
            whole = np.concatenate([states[last], held[last]])
            x = (flows[key] @ whole)[:n]
            rows[row] = self.C @ x + self.Dw @ held[last]
        return rows

    def _solve_instants(self, stop: float) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
        """Return when something is sampled or shown, with states and what is held from then on."""
        n, w = len(self.A), len(self.held)
        x, shown = self.x0, np.zeros(w)
        if not self.controllers:
            return self._solve_anchors(stop)
        generator = np.zeros((n + w, n + w))
        generator[:n, :n], generator[:n, n:] = self.A, self.Bw
        queue: list[tuple[Fraction, int, int, str, object]] = []
        for number, (path, each) in enumerate(self.controllers.items()):
            heapq.heappush(queue, (each.offset or Fraction(0), 1, number, path, None))
        memory = {path: np.zeros(len(each.F)) for path, each in self.controllers.items()}
        now, order = Fraction(0), len(queue)
        instants, states, held = [0.0], [x], [shown]
        while queue and float(queue[0][0]) <= stop + 1e-12:
            at, rank, _, path, value = heapq.heappop(queue)
            if at > now:
                x = (expm(generator * float(at - now)) @ np.concatenate([x, shown]))[:n]
                now = at
            each = self.controllers[path]
            own = slice(self.held.index(f"{path}.y0"), self.held.index(f"{path}.y0") + len(each.H))
            order += 1
            if rank == 0:
                shown = shown.copy()
                shown[own] = value
            else:
                y = self.C @ x + self.Dw @ shown
                e = np.array(
                    [y[self.ports.index(self.wires[f"{path}.u{k}"])] for k in range(each.J.shape[1])]
                )
                found = each.H @ memory[path] + each.J @ e
                memory[path] = each.F @ memory[path] + each.G @ e
                heapq.heappush(queue, (at + each.latency, 0, order, path, found))
                heapq.heappush(queue, (at + each.period, 1, order, path, None))
            if instants[-1] == float(at):
                states[-1], held[-1] = x, shown
            else:
                instants.append(float(at))
                states.append(x)
                held.append(shown)
        return np.array(instants), states, held

    def _solve_anchors(self, stop: float) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
        """Return the states at whole seconds, from which others follow."""
        times = np.arange(0.0, stop + 1.0)
        flow, states = expm(self.A), [self.x0]
        for _ in pairwise(times):
            states.append(flow @ states[-1])
        return times, states, [np.zeros(0)] * len(times)


def _stack_blocks(blocks: list[np.ndarray]) -> np.ndarray:
    """Return a block-diagonal matrix; blocks may have no rows or no columns."""
    whole = np.zeros((sum(each.shape[0] for each in blocks), sum(each.shape[1] for each in blocks)))
    row = column = 0
    for each in blocks:
        whole[row : row + each.shape[0], column : column + each.shape[1]] = each
        row, column = row + each.shape[0], column + each.shape[1]
    return whole


@dataclass
class MonolithicCase:
    """A composite, the same as one system, and what it is made of."""

    composite: Composite
    monolith: Monolith
    stop: Fraction
    features: set[str]


class _Draw:
    """Draws one case; a number says all of it."""

    def __init__(self, seed: int, number: int):
        self.rng = np.random.default_rng([seed, number, 20])
        self.family = FAMILIES[number % len(FAMILIES)]
        self.features: set[str] = {self.family}
        self.leaves: dict[str, StateSpace] = {}
        self.wires: dict[str, str] = {}
        self.controllers: dict[str, Controller] = {}
        self.step = Fraction(1, int(self.rng.choice([8, 10, 20, 40])))

    def one(self, *choices):
        return choices[int(self.rng.integers(len(choices)))]

    def note(self, what: str) -> None:
        self.features.add(what)

    def add(self, name: str, A, B, C, D, x0) -> None:
        """Add a leaf with a method and a step of its own."""
        A, B, C, D = (np.array(each, dtype=float) for each in (A, B, C, D))
        method = self.one(*METHODS) if len(A) else "exact"
        own = None if method == "exact" else self.one(None, self.step / 36, self.step / 72)
        self.note(method)
        ports = {
            "inputs": [f"u{k} = 0" for k in range(D.shape[1])],
            "outputs": [f"y{k}" for k in range(D.shape[0])],
        }
        self.leaves[name] = StateSpace(A, B, C, D, x0, **ports, method=method, step=own)

    def chain(self) -> None:
        """Masses between springs and dampers that are gains, or that push each other directly."""
        count = int(self.rng.integers(2, 5))
        direct = bool(self.rng.random() < 0.5)
        stiff, damp = self.rng.uniform(0.5, 20.0, count), self.rng.uniform(0.1, 1.0, count)
        for k in range(count):
            mass = self.rng.uniform(0.5, 3.0)
            A = [[0.0, 1.0], [-self.rng.uniform(0.5, 5.0) / mass, -self.rng.uniform(0.0, 1.0) / mass]]
            self.add(f"m{k}", A, [[0.0, 0.0], [1 / mass, 1 / mass]], np.eye(2), np.zeros((2, 2)), self.x0(2))
        for k in range(count - 1):
            left, right = f"m{k}", f"m{k + 1}"
            law = np.array([[-stiff[k], -damp[k], stiff[k], damp[k]]])
            if direct and self.rng.random() < 0.5:  # the spring has a state, its elongation
                self.add(
                    f"s{k}",
                    [[0.0]],
                    [[0.0, -1.0, 0.0, 1.0]],
                    [[stiff[k]], [-stiff[k]]],
                    np.outer([1.0, -1.0], [0.0, -damp[k], 0.0, damp[k]]),
                    self.x0(1),
                )
                self.note("spring with a state")
            else:
                self.add(
                    f"s{k}", np.zeros((0, 0)), np.zeros((0, 4)), np.zeros((2, 0)), np.vstack([law, -law]), []
                )
            ends = ((left, "y0"), (left, "y1"), (right, "y0"), (right, "y1"))
            self.wires |= {f"s{k}.u{j}": f"{name}.{port}" for j, (name, port) in enumerate(ends)}
            self.wires |= {f"{left}.u0": f"s{k}.y0", f"{right}.u1": f"s{k}.y1"}

    def ladder(self) -> None:
        """Capacitors that show voltages and conductors, or inductors, that show currents."""
        count = int(self.rng.integers(2, 6))
        for k in range(count):
            C = self.rng.uniform(0.2, 2.0)
            self.add(
                f"c{k}",
                [[-self.rng.uniform(0.05, 1.0) / C]],
                [[1 / C, -1 / C]],
                [[1.0]],
                [[0.0, 0.0]],
                self.x0(1),
            )
        for k in range(count - 1):
            inductive = self.rng.random() < 0.3
            R = self.rng.uniform(0.2, 3.0)
            if inductive:
                L = self.rng.uniform(0.1, 1.0)
                self.add(f"r{k}", [[-R / L]], [[1 / L, -1 / L]], [[1.0]], [[0.0, 0.0]], self.x0(1))
                self.note("inductor")
            else:
                self.add(f"r{k}", np.zeros((0, 0)), np.zeros((0, 2)), np.zeros((1, 0)), [[1 / R, -1 / R]], [])
            self.wires |= {f"r{k}.u0": f"c{k}.y0", f"r{k}.u1": f"c{k + 1}.y0"}
            self.wires |= {f"c{k}.u1": f"r{k}.y0", f"c{k + 1}.u0": f"r{k}.y0"}

    def random(self, feedthrough: float = 0.4, count: int = 0) -> None:
        """Stable systems with direct feedthrough, wired at random; algebraic loops among them."""
        for k in range(count or int(self.rng.integers(2, 6))):
            n, m, p = (int(v) for v in self.rng.integers([0 if feedthrough else 1, 1, 1], [4, 4, 3]))
            A = self.rng.normal(size=(n, n))
            A -= (max(np.linalg.eigvals(A).real, default=0.0) + self.rng.uniform(0.2, 2.0)) * np.eye(n)
            D = self.rng.uniform(-0.8, 0.8, (p, m)) * (self.rng.random((p, m)) < feedthrough)
            scale = self.one(0.5, 1.0, 2.0)
            self.add(
                f"g{k}", A, scale * self.rng.normal(size=(n, m)), self.rng.normal(size=(p, n)), D, self.x0(n)
            )
        outputs = [f"{path}.{port.name}" for path, leaf in self.leaves.items() for port in leaf.outputs]
        for path, leaf in self.leaves.items():
            for port in leaf.inputs:
                if self.rng.random() < 0.85:
                    self.wires[f"{path}.{port.name}"] = self.one(*outputs)

    def sampled(self) -> None:
        """Plants without direct feedthrough, and one or two sampled controllers."""
        self.random(0.0, int(self.rng.integers(1, 4)))
        outputs = [f"{path}.{port.name}" for path, leaf in self.leaves.items() for port in leaf.outputs]
        for k in range(int(self.rng.integers(1, 3))):
            n, m = int(self.rng.integers(0, 2)), int(self.rng.integers(1, 3))
            kind = self.one(SAMPLES_AT_ONCE, SAMPLES_LATER)
            period = self.step * self.one(1, 2, 3, 5)
            offset = delay = None
            if kind == SAMPLES_LATER:
                offset = self.one(None, period / 2, period / 3)
            if self.rng.random() < 0.4:
                delay = period * self.one(Fraction(1, 4), Fraction(1, 2), 1, Fraction(3, 2))
            gain = self.one(0.3, 1.0, 2.0)
            self.note(f"controller {kind}")
            self.features |= {
                name for name, each in (("offset", offset), ("delay", delay)) if each is not None
            }
            F = self.rng.uniform(-0.9, 0.9, (n, n))
            G, H = self.rng.normal(size=(n, m)), gain * self.rng.normal(size=(1, n))
            J = gain * self.rng.normal(size=(1, m))
            self.controllers[f"k{k}"] = Controller(F, G, H, J, kind, period, offset, delay)
            self.wires |= {f"k{k}.u{j}": self.one(*outputs) for j in range(m)}
            free = [f"{p}.{port.name}" for p, leaf in self.leaves.items() for port in leaf.inputs]
            self.wires[self.one(*free)] = f"k{k}.y0"

    def x0(self, n: int) -> np.ndarray:
        return self.rng.normal(size=n)

    # levels

    def case(self) -> MonolithicCase:
        getattr(self, self.family)()
        names = [*self.leaves, *self.controllers]
        self.places: dict[str, str] = {}
        tree = self.tree(names, int(self.rng.integers(0, 3)), "")
        wires = {self.moved(target): self.moved(source) for target, source in self.wires.items()}
        composite = self.level(tree, wires, self.step, 1)
        moved = {self.places[name]: leaf for name, leaf in self.leaves.items()}
        controllers = {self.places[name]: each for name, each in self.controllers.items()}
        stop = self.step * int(self.rng.choice([60, 100, 200]))
        return MonolithicCase(composite, Monolith(moved, wires, controllers), stop, self.features)

    def moved(self, path: str) -> str:
        name, _, port = path.partition(".")
        return f"{self.places[name]}.{port}"

    def tree(self, names: list[str], depth: int, prefix: str) -> dict:
        """Return nested dictionaries with these leaves at their ends."""
        found: dict = {}
        rest = list(names)
        if depth and len(rest) > 1:
            chosen = [name for name in rest if self.rng.random() < 0.6] or rest[:1]
            if len(chosen) == len(rest):
                chosen = chosen[1:]
            found["deep"] = self.tree(chosen, depth - 1, f"{prefix}deep.")
            rest = [name for name in rest if name not in chosen]
        for name in rest:
            self.places[name] = f"{prefix}{name}"
            found[name] = name
        return found

    def level(self, tree: dict, wires: dict, step: Fraction, depth: int) -> Composite:
        self.note(f"depth {depth}")
        models = {}
        for name, what in tree.items():
            if isinstance(what, dict):
                ratio = self.one(1, 1, 2, 3) if self.family != "sampled" else self.one(1, 1, 2)
                models[name] = self.level(what, {}, step / ratio, depth + 1)
            else:
                known = self.leaves.get(what)
                models[name] = self.controllers[what].model() if known is None else known
        plain = all(isinstance(model, StateSpace) for model in models.values())
        slopes = plain
        extrapolation = self.one(Hold(), Polynomial(1), Polynomial(2), *([Hermite(1)] if slopes else []))
        self.note(f"{type(extrapolation).__name__} {extrapolation.degree}")
        start = self.one("window", "cold")
        self.note(start)
        return Composite(
            Scenario(models, wires), step, self.orchestrator(models, plain), extrapolation, start
        )

    def orchestrator(self, models: dict, plain: bool):
        outputs = self.one("stale", "consistent")
        inputs = self.one("clean", "clean", "delayed") if outputs == "stale" else "clean"
        how = {"outputs": outputs, "inputs": inputs}
        names = [str(name) for name in self.rng.permutation(list(models))]
        order: object = self.one("auto", names)
        if len(names) > 2 and self.rng.random() < 0.3:
            cut = int(self.rng.integers(1, len(names)))
            order = [names[:cut], *names[cut:]]
        explicit = self.one(Jacobi(**how), GaussSeidel(order, **how))
        kind = self.one("explicit", "explicit", "iterated", "fixed", "multirate", "asynchronous")
        self.features |= {outputs, inputs, type(explicit).__name__}
        rates = {name: int(self.rng.choice([1, 2, 4])) for name in names}
        scheme = self.one("slowest-first", "fastest-first", "compound")
        if kind in ("iterated", "fixed") and plain:
            self.note(kind)
            return Iterate(explicit, 1e-12, 300) if kind == "iterated" else Iterate(explicit, None, 2)
        if kind == "multirate" and plain:
            self.note(f"multirate {scheme}")
            return Multirate(rates, scheme, **how)
        if kind == "asynchronous" and plain:
            self.note(kind)
            return Asynchronous(rates, **how)
        return explicit


def draw_case(seed: int, number: int) -> MonolithicCase | None:
    """Return a random case; None where its algebraic loops are nearly singular."""
    case = _Draw(seed, number).case()
    return case if case.monolith.condition < 1e3 else None
