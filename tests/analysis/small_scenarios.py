"""Small random linear scenarios, one to three levels deep, for tests that need many."""

from __future__ import annotations

from fractions import Fraction

from hocket import Iterate, Scenario, StateSpace
from native.random_scenarios import METHODS, Level
from systems import LinearPen


class SmallPen(LinearPen):
    """Draws as the others do, but fewer and smaller simulators: it is the number of scenarios that counts."""

    def linear(self, step: Fraction) -> StateSpace:
        n, m, p = (int(k) for k in self.rng.integers([0, 1, 1], [3, 3, 3]))
        D = self.numbers(p, m, size=0.5) * (self.rng.random((p, m)) < self.one(0.0, 0.3, 1.0))
        how = {"method": self.one(*METHODS), "step": self.one(None, step, step / 2, step / 3)}
        self.features |= {how["method"], "feedthrough" if D.any() else "no feedthrough"}
        self.note("one step" if how["step"] in (None, step) else "micro steps")
        ports = {"inputs": self.ports("u", m, start=True), "outputs": self.ports("y", p)}
        A, B, C = self.numbers(n, n), 2 * self.numbers(n, m), 2 * self.numbers(p, n)
        return StateSpace(A, B, C, D, self.numbers(n), **ports, **how)

    def level(self, step: Fraction, depth: int, outermost: bool = False):
        self.steps.append(step)
        drawn = Level(step)
        for number in range(int(self.rng.integers(1 + (depth == 1), 3))):
            self.child(drawn, f"m{number}", depth=1)
        if depth > 1:
            self.child(drawn, "deep", depth, nested=True)
        for path in list(drawn.inputs):
            if self.chance(0.9):
                self.connect(drawn, path)
        ends = ((), ()) if outermost else self.own_ports(drawn)
        return self.composite(drawn, *ends), drawn.inputs, drawn.outputs

    def iterated(self, explicit, scenario: Scenario):
        """Iterate at times; not until only rounding is left, which takes long and may not end."""
        if self.aside.random() >= self.iterates:
            return explicit
        tolerance, at_most = ((None, 2), (None, 3), (1e-9, 300))[int(self.aside.integers(3))]
        self.note(f"iterated to {tolerance}")
        return Iterate(explicit, tolerance, at_most)
