"""Random linear scenes, and their exact motion from matrices alone: nothing here asks hocket for numbers.

`scene(seed, ...)` draws simulators with one to four states, connects them, and may put some of them into a
level inside, or loops among them. The whole is x' = M x with a constant as last state.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag, expm, qr

import hocket as hk


@dataclass(frozen=True, eq=False)
class Part:
    """One simulator: x' = A x + B u, y = C x + D u; `start` are its inputs where nothing drives them."""

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    D: np.ndarray
    x0: np.ndarray
    start: np.ndarray
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def model(self):
        inputs = [hk.Port(name, start=value) for name, value in zip(self.inputs, self.start, strict=True)]
        return hk.StateSpace(
            self.A, self.B, self.C, self.D, x0=self.x0, inputs=inputs, outputs=self.outputs
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Scene:
    """Parts in the order of their models, wires from inputs to outputs, and who is in a level inside."""

    parts: dict[str, Part]
    wires: dict[str, str]
    nested: tuple[str, ...] = ()

    def path(self, port):
        """The path of a port in the scenario."""
        return f"inner.{port}" if port.partition(".")[0] in self.nested else port

    @property
    def outputs(self):
        return [f"{name}.{port}" for name, part in self.parts.items() for port in part.outputs]

    def scenario(self, step, inside="jacobi", extrapolation="hold", **more):
        """The scenario; the level inside has the same step."""
        models = {name: part.model() for name, part in self.parts.items()}
        if not self.nested:
            return hk.Scenario(models, self.wires, **more)
        both = {t: s for t, s in self.wires.items() if all(self.path(port) != port for port in (s, t))}
        deep = hk.Scenario({name: models[name] for name in models if name in self.nested}, both)
        level = hk.Composite(deep, step, inside, extrapolation)
        outer = {"inner" if name in self.nested else name: model for name, model in models.items()}
        wires = {self.path(t): self.path(s) for t, s in self.wires.items() if t not in both}
        return hk.Scenario({**outer, "inner": level}, wires, **more)

    def level(self, step, orchestrator="jacobi", extrapolation="hold", inside="jacobi", **more):
        scenario = self.scenario(step, inside, extrapolation, **more)
        return hk.Composite(scenario, step, orchestrator, extrapolation)

    def whole(self):
        """M, the rows of all outputs, and the first state; the last state is 1."""
        parts = list(self.parts.values())
        A, B, C, D = (block_diag(*(getattr(part, name) for part in parts)) for name in "ABCD")
        ins = [f"{name}.{port}" for name, part in self.parts.items() for port in part.inputs]
        K = np.zeros((len(ins), len(self.outputs)))
        free = np.concatenate([part.start for part in parts])
        for target, source in self.wires.items():
            K[ins.index(target), self.outputs.index(source)] = 1.0
            free[ins.index(target)] = 0.0
        solved = np.linalg.inv(np.eye(len(D)) - D @ K)
        Y, y0 = solved @ C, solved @ D @ free
        M = np.zeros((len(A) + 1, len(A) + 1))
        M[:-1, :-1], M[:-1, -1] = A + B @ K @ Y, B @ (K @ y0 + free)
        return M, np.column_stack([Y, y0]), np.concatenate([*(part.x0 for part in parts), [1.0]])

    def exact(self, times):
        """All outputs at equidistant times."""
        M, Y, z = self.whole()
        ahead, rows = expm(M * (times[1] - times[0])), []
        z = expm(M * times[0]) @ z
        for _ in times:
            rows.append(Y @ z)
            z = ahead @ z
        return np.array(rows)

    @property
    def instant(self):
        """The matrix by which outputs depend on each other at once: D K."""
        D = block_diag(*(part.D for part in self.parts.values()))
        ins = [f"{name}.{port}" for name, part in self.parts.items() for port in part.inputs]
        K = np.zeros((len(ins), len(self.outputs)))
        for target, source in self.wires.items():
            K[ins.index(target), self.outputs.index(source)] = 1.0
        return D @ K


def values(run, paths):
    """The columns of a run."""
    return np.column_stack([np.asarray(run[path].values) for path in paths])


def stable(rng, n):
    """A matrix with eigenvalues to the left: decays of 0.3 to 2, oscillations of 0.5 to 2.5 with damping."""
    blocks = []
    while n:
        if n >= 2 and rng.random() < 0.6:
            d, w = rng.uniform(0.05, 0.8), rng.uniform(0.5, 2.5)
            blocks.append(np.array([[-d, w], [-w, -d]]))
        else:
            blocks.append(np.array([[-rng.uniform(0.3, 2.0)]]))
        n -= len(blocks[-1])
    A = block_diag(*blocks)
    Q = qr(rng.standard_normal(A.shape))[0]
    return Q @ A @ Q.T


def part(rng, reacts=0.5):
    """One to four states, one to three inputs and outputs; the first output may react to the first input."""
    n, m, p = int(rng.integers(1, 5)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    D = np.zeros((p, m))
    if rng.random() < reacts:
        D[0, 0] = rng.uniform(0.2, 0.8) * rng.choice([-1, 1])
    return Part(
        stable(rng, n),
        rng.uniform(-0.7, 0.7, (n, m)),
        rng.uniform(-1.0, 1.0, (p, n)),
        D,
        rng.uniform(-1.0, 1.0, n),
        rng.uniform(-0.5, 0.5, m).round(3),
        tuple(f"u{k}" for k in range(m)),
        tuple(f"y{k}" for k in range(p)),
    )


def wired(rng, parts, connected=0.8):
    """Random wires; `u0`, which may be reacted to, listens only to parts that come earlier in some order."""
    names = [str(name) for name in rng.permutation(list(parts))]
    wires = {}
    for rank, name in enumerate(names):
        for port in parts[name].inputs:
            others = names[:rank] if port == "u0" else [each for each in names if each != name]
            if others and rng.random() < connected:
                source = str(rng.choice(others))
                wires[f"{name}.{port}"] = f"{source}.{rng.choice(parts[source].outputs)}"
    return wires


def looped(rng, parts, wires, ring, mark):
    """The parts and wires, with a ring of ports more: its outputs react to each other at once."""
    parts, wires = dict(parts), dict(wires)
    size = rng.uniform(0.4, 0.7) if rng.random() < 0.4 else rng.uniform(1.6, 3.0)
    gains = rng.uniform(0.6, 1.5, len(ring)) * rng.choice([-1, 1], len(ring))
    gains *= (size / abs(np.prod(gains))) ** (1 / len(ring))
    for name, before, gain in zip(ring, [ring[-1], *ring[:-1]], gains, strict=True):
        each = parts[name]
        n, D = len(each.A), block_diag(each.D, [[gain]])
        if rng.random() < 0.5:
            D[0, -1], D[-1, 0] = rng.uniform(-0.3, 0.3, 2) * rng.integers(0, 2, 2)
        parts[name] = Part(
            each.A,
            np.column_stack([each.B, rng.uniform(-0.5, 0.5, n)]),
            np.vstack([each.C, rng.uniform(-1.0, 1.0, n)]),
            D,
            each.x0,
            np.append(each.start, 0.0),
            (*each.inputs, f"in{mark}"),
            (*each.outputs, f"out{mark}"),
        )
        wires[f"{name}.in{mark}"] = f"{before}.out{mark}"
    return parts, wires


def tame(scene):
    """Whether loops are far from singular, and the whole neither fast nor fast growing."""
    if np.linalg.cond(np.eye(len(scene.outputs)) - scene.instant) > 30:
        return False
    poles = np.linalg.eigvals(scene.whole()[0])
    return poles.real.max() < 0.3 and np.abs(poles).max() < 5.0


def scene(seed, loops=0, size=(3, 8), deep=0.4, reacts=0.5):
    """A random scene; of `loops` loops the members are two or three, and may be shared."""
    rng = np.random.default_rng(seed)
    while True:
        names = [f"s{k}" for k in range(rng.integers(*size))]
        parts = {name: part(rng, reacts) for name in rng.permutation(names).tolist()}
        wires = wired(rng, parts)
        for mark in range(loops):
            ring = rng.choice(names, min(len(names), int(rng.integers(2, 4))), replace=False).tolist()
            parts, wires = looped(rng, parts, wires, ring, mark)
        nested = ()
        if rng.random() < deep:
            nested = tuple(rng.choice(names, int(rng.integers(1, len(names))), replace=False).tolist())
        drawn = Scene(parts, wires, tuple(name for name in parts if name in nested))
        if tame(drawn):
            return drawn


def found(run, scene, rows=None):
    """The outputs of a scene in a run of what it was compiled to, whatever levels they are in now.

    Stand-ins on other hosts do not count. `rows` takes as many, at equal distances.
    """
    ports = [port for port in run.ports if "_at_" not in port]
    ends = {path: [port for port in ports if f".{port}".endswith(f".{path}")] for path in scene.outputs}
    assert all(len(each) == 1 for each in ends.values()), ends
    columns = [np.asarray(run[port].values) for (port,) in ends.values()]
    return np.column_stack([each[:: (len(each) - 1) // (rows or len(each) - 1)] for each in columns])


def error(run, scene, steps, stop=1.0):
    """The root mean square of all outputs against the exact motion, over the second half."""
    wrong = found(run, scene, steps) - scene.exact(np.linspace(0.0, stop, steps + 1))
    return float(np.sqrt(np.mean(wrong[steps // 2 :] ** 2)))


def orders(level, seed):
    """The level with one of the algorithms that one by one or all at once make their steps."""
    rng = np.random.default_rng(seed)
    names = rng.permutation(list(level.scenario.models)).tolist()
    return level.with_changes(orchestrator=[hk.Jacobi(), hk.GaussSeidel(), hk.GaussSeidel(names)][seed % 3])


def hosted(level, seed, together=()):
    """The level on two or three hosts that have something to tell; some models may have to be together."""
    rng = np.random.default_rng(seed)
    while True:
        alone = [
            name for name in rng.permutation(list(level.scenario.models)).tolist() if name not in together
        ]
        groups = [list(together), *([name] for name in alone)] if together else [[name] for name in alone]
        hosts = {f"h{k}": groups[k] for k in range(min(len(groups), int(rng.integers(2, 4))))}
        for each in groups[len(hosts) :]:
            hosts[f"h{rng.integers(len(hosts))}"] += each
        placed = {name: host for host, names in hosts.items() for name in names}
        ends = [[path.partition(".")[0] for path in (c.source, c.target)] for c in level.scenario.connections]
        if any(placed[source] != placed[target] for source, target in ends):
            return level.with_changes(scenario=level.scenario.with_changes(hosts=hosts))


def seen(drawn):
    """The scene with all states among the outputs, so that no error is hidden."""
    parts = {
        name: Part(
            each.A,
            each.B,
            np.vstack([each.C, np.eye(len(each.A))]),
            np.vstack([each.D, np.zeros((len(each.A), each.D.shape[1]))]),
            each.x0,
            each.start,
            each.inputs,
            (*each.outputs, *(f"x{k}" for k in range(len(each.A)))),
        )
        for name, each in drawn.parts.items()
    }
    return Scene(parts, drawn.wires, drawn.nested)
