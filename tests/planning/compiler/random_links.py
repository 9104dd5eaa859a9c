"""Random bodies and circuits that equations couple, and their exact motion by elimination.

Each row of the equations is P y + Q u = 0. Rows in which no determined input acts are differentiated until
one does; then u = -S^-1 R x, and what is left is an ordinary system (index reduction; Brenan 1996, 2.2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import block_diag, expm, null_space

import hocket as hk
from planning.compiler.random_scenes import Part


@dataclass(frozen=True, eq=False)
class Links:
    """Parts, wires between them, and equations: as text, and as rows over outputs and free inputs."""

    parts: dict[str, Part]
    wires: dict[str, str]
    rows: list[dict[str, float]]
    rates: dict[str, str]
    deep: bool = False
    """Whether those that equations couple are in a level inside."""

    @property
    def outputs(self):
        return [f"{name}.{port}" for name, part in self.parts.items() for port in part.outputs]

    def equations(self):
        """The rows as texts, some with terms on both sides."""
        return [
            " + ".join(f"{value!r} * {path}" for path, value in row.items()) + " = 0" for row in self.rows
        ]

    def coupled(self):
        return {path.partition(".")[0] for row in self.rows for path in row}

    def level(self, step, orchestrator="jacobi", extrapolation="linear"):
        models = {name: part.model() for name, part in self.parts.items()}
        rule = {"bond": {"equations": self.equations(), "rates": self.rates}}
        if not self.deep:
            scenario = hk.Scenario(models, self.wires, constraints=rule)
            return hk.Composite(scenario, step, orchestrator, extrapolation)
        inside = {name: model for name, model in models.items() if name in self.coupled()}
        inner = hk.Composite(hk.Scenario(inside, constraints=rule), step, orchestrator, extrapolation)

        def path(port):
            return f"inner.{port}" if port.partition(".")[0] in inside else port

        wires = {path(t): path(s) for t, s in self.wires.items()}
        around = {"inner": inner} | {name: model for name, model in models.items() if name not in inside}
        return hk.Composite(hk.Scenario(around, wires), step, "jacobi", extrapolation)

    def whole(self):
        """The matrix of the eliminated system, the rows of all outputs, and the manifold that it moves on."""
        A, B, C, D = (block_diag(*(getattr(part, name) for part in self.parts.values())) for name in "ABCD")
        ins = [f"{name}.{port}" for name, part in self.parts.items() for port in part.inputs]
        K = np.zeros((len(ins), len(C)))
        for target, source in self.wires.items():
            K[ins.index(target), self.outputs.index(source)] = 1.0
        C = np.linalg.solve(np.eye(len(C)) - D @ K, C)
        A = A + B @ K @ C
        free = [path for path in ins if path not in self.wires]
        assert not D[:, [ins.index(path) for path in free]].any()
        B = B[:, [ins.index(path) for path in free]]
        S, R, manifold = [], [], [np.zeros((0, len(A)))]
        for row in self.rows:
            on_x = sum(
                (value * C[self.outputs.index(p)] for p, value in row.items() if p not in free), 0 * C[0]
            )
            on_u = np.array([row.get(path, 0.0) for path in free])
            while np.abs(on_u).max() < 1e-9:
                manifold.append(on_x[None])
                on_x, on_u = on_x @ A, on_x @ B
            S.append(on_u)
            R.append(on_x)
        return A - B @ np.linalg.solve(np.array(S), np.array(R)), C, np.vstack(manifold)

    def first(self):
        return np.concatenate([part.x0 for part in self.parts.values()])

    def exact(self, times):
        M, C, _ = self.whole()
        ahead, x, rows = expm(M * (times[1] - times[0])), self.first(), []
        for _ in times:
            rows.append(C @ x)
            x = ahead @ x
        return np.array(rows)

    def consistent(self, rng):
        """The same from a random start on the manifold, where all equations hold."""
        basis = null_space(self.whole()[2])
        x = basis @ rng.uniform(-1.0, 1.0, basis.shape[1])
        parts, at = {}, 0
        for name, part in self.parts.items():
            parts[name] = replace(part, x0=x[at : at + len(part.A)])
            at += len(part.A)
        return replace(self, parts=parts)


def _part(A, B, C, x0, inputs, outputs):
    A, B, C = (np.array(each, dtype=float) for each in (A, B, C))
    zero = np.zeros((len(outputs), len(inputs)))
    return Part(
        A, B, C, zero, np.array(x0, dtype=float), np.zeros(len(inputs)), tuple(inputs), tuple(outputs)
    )


def body(rng, forces):
    """One or two masses on springs; each force acts on the mass of its end, 0 or -1; seen are both ends."""
    count = int(rng.integers(1, 3))
    m, c, d = rng.uniform(0.5, 2.0, count), rng.uniform(0.3, 3.0, count), rng.uniform(0.05, 0.6, count)
    stiff, damp = np.diag(c), np.diag(d)
    if count == 2:
        between, loss = rng.uniform(0.5, 3.0), rng.uniform(0.05, 0.5)
        spring = np.array([[1.0, -1.0], [-1.0, 1.0]])
        stiff, damp = stiff + between * spring, damp + loss * spring
    zero, one = np.zeros((count, count)), np.eye(count)
    A = np.block([[zero, one], [-stiff / m[:, None], -damp / m[:, None]]])
    B = np.zeros((2 * count, len(forces)))
    for column, end in enumerate(forces.values()):
        B[count + end % count, column] = 1.0 / m[end % count]
    C = np.zeros((4, 2 * count))
    C[0, 0], C[1, count], C[2, count - 1], C[3, 2 * count - 1] = 1.0, 1.0, 1.0, 1.0
    return _part(A, B, C, np.zeros(2 * count), forces, ("x0", "v0", "x1", "v1"))


def bodies(rng):
    """Two to four bodies in a tree of links: equal places or speeds, perhaps by a lever; one more beside."""
    count = int(rng.integers(2, 5))
    forces = {f"b{n}": {} for n in range(count)}
    rows, rates = [], {}
    told = bool(rng.integers(0, 2))
    for number in range(1, count):
        other, lever = int(rng.integers(0, number)), float(rng.choice([1.0, round(rng.uniform(0.5, 2.0), 2)]))
        what = "x" if rng.random() < 0.7 else "v"
        ends = []
        for name in (f"b{other}", f"b{number}"):
            end = int(rng.integers(0, 2))
            forces[name][f"f{number}"] = -end
            ends.append(f"{name}.{what}{end}")
            if what == "x" and told:
                rates[ends[-1]] = f"{name}.v{end}"
        rows.append({ends[0]: lever, ends[1]: -1.0})
        rows.append({f"b{other}.f{number}": 1.0, f"b{number}.f{number}": lever})
    wires, apart = {}, bool(rng.integers(0, 2))
    if apart:
        forces["b0"]["pull"], forces["other"] = 0, {"pull": 0}
    parts = {name: body(rng, forces[name]) for name in rng.permutation(list(forces)).tolist()}
    if apart:
        parts = {name: _weaker(part, "pull", 0.4) for name, part in parts.items()}
        wires = {"b0.pull": "other.x1", "other.pull": "b0.x0"}
    return Links(parts, wires, rows, rates, deep=apart and bool(rng.integers(0, 2)))


def _weaker(part, port, gain):
    """The same part with a small gain on one input."""
    B = part.B * np.array([gain if name == port else 1.0 for name in part.inputs])
    return _part(part.A, B, part.C, part.x0, part.inputs, part.outputs)


def junction(rng):
    """Capacitors with leaks, and coils, at one node: equal voltages, and currents that add up to nothing."""
    capacitors, coils = int(rng.integers(1, 4)), int(rng.integers(0, 3))
    coils += capacitors + coils < 2
    parts = {}
    for n in range(capacitors):
        C, R = rng.uniform(0.5, 2.0), rng.uniform(0.5, 4.0)
        parts[f"c{n}"] = _part([[-1 / (R * C)]], [[1 / C]], [[1.0]], [0.0], ["i"], ["v"])
    for n in range(coils):
        L, R = rng.uniform(0.5, 2.0), rng.uniform(0.2, 2.0)
        parts[f"l{n}"] = _part([[-R / L]], [[1 / L]], [[1.0]], [0.0], ["v"], ["i"])
    parts = {name: parts[name] for name in rng.permutation(list(parts)).tolist()}
    rows = [{"c0.v": 1.0, f"{name}.v": -1.0} for name in parts if name != "c0"]
    rows.append({f"{name}.i": 1.0 for name in parts})
    return Links(parts, {}, rows, {})


def links(seed):
    """Random bodies, and every third time a junction, from a start where the equations hold."""
    rng = np.random.default_rng(seed)
    while True:
        drawn = (junction if seed % 3 == 0 else bodies)(rng)
        poles = np.linalg.eigvals(drawn.whole()[0])
        if np.abs(poles).max() < 5.0 and poles.real.max() < 0.2:
            return drawn.consistent(rng)
