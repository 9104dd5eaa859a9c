"""What a plan costs: values handed over and simulator steps, counted off the very plan that is run.

In:  a Composite
Out: a Work: exchanges and simulator steps per second of simulated time
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from hocket.errors import ScenarioError
from hocket.model.composite import Composite
from hocket.plan import Adapt, Body, Feed, Instruction, Next, Read, Repeat, Solve, Step, Times, Together, Try
from hocket.planning.planner import plan_tree
from hocket.planning.tree import PlanTree

MANY = 20
"""Sweeps of an iteration of which nothing better is known."""


@dataclass(frozen=True)
class Work:
    """Per second of simulated time.

    An exchange is one value set at a simulator or at a level: each connection counts at the rate of the
    level it belongs to, again where outputs are made consistent. A value that a level was given and hands on
    inside counts once. Micro steps are a simulator's own affair and do not count.
    """

    exchanges: float
    steps: float

    def __add__(self, other: Work) -> Work:
        return Work(self.exchanges + other.exchanges, self.steps + other.steps)

    def __mul__(self, times: float) -> Work:
        return Work(self.exchanges * times, self.steps * times)


NONE = Work(0.0, 0.0)


def work_of(composite: Composite, sweeps: Mapping[str, int | None] | None = None, many: int = MANY) -> Work:
    """Return what a composite costs; `sweeps` are those of levels that iterate to a tolerance, by path.

    Levels that are not among them make `many`.
    """
    design = plan_tree(composite)
    counter = _Counter(sweeps or {}, many)
    return counter.body(design, design.plan.step) * float(1 / composite.step)


@dataclass(frozen=True)
class _Counter:
    sweeps: Mapping[str, int | None]
    many: int

    def body(self, level: PlanTree, body: Body) -> Work:
        total = NONE
        for each in body:
            total = total + self._instruction_work(level, each)
        return total

    def _instruction_work(self, level: PlanTree, each: Instruction) -> Work:
        match each:
            case Feed(sim):
                return Work(self._count_inputs(level, sim), 0.0)
            case Solve(sims):
                return Work(sum(self._count_inputs(level, sim) for sim in sims), 0.0)
            case Step(sim, fraction):
                return self._step_work(level, sim, fraction)
            case Read(sim):
                inner = level.inner.get(_number(level, sim))
                return self.body(inner, inner.plan.output) if inner else NONE
            case Times(n, inside):
                return self.body(level, inside) * n
            case Repeat(inside, until, at_most):
                known = at_most if until is None else self.sweeps.get(level.path)
                return self.body(level, inside) * (known or self.many)
            case Together(bodies):
                return sum((self.body(level, inside) for inside in bodies), NONE)
            case Next(bodies):
                return sum((self.body(level, inside) * _turns(inside) for inside in bodies), NONE)
            case Try(inside):
                return self.body(level, inside)
            case Adapt():
                what = "what a level costs that chooses its steps is not known before the run"
                raise ScenarioError(what, level.path or "the outermost level", "steps of one length")
        return NONE

    def _count_inputs(self, level: PlanTree, sim: str) -> float:
        drives = level.wiring.drives[_number(level, sim)]
        return float(sum(drive is not None and drive.child >= 0 for drive in drives))

    def _step_work(self, level: PlanTree, sim: str, fraction: Fraction) -> Work:
        inner = level.inner.get(_number(level, sim))
        if inner is None:
            return Work(0.0, 1.0)
        times = float(level.composite.step * fraction / inner.composite.step)
        return self.body(inner, inner.plan.step) * times


def _number(level: PlanTree, sim: str) -> int:
    return level.wiring.names.index(sim)


def _turns(body: Body) -> float:
    """Return how often a body comes to its turn in a step."""
    return float(max((1 / each.fraction for each in body if isinstance(each, Step)), default=Fraction(1)))
