"""One coupling, judged before it is run: its linear models, its step as a matrix, its error and its cost.

In:  a Composite, and how long it runs
Out: a Case; what is asked for is computed once
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property

from hocket.analysis.error_prediction import PredictedError, predicted_error
from hocket.analysis.linear_models import merge_micro_steps
from hocket.analysis.linear_reading import Reading, read_linear
from hocket.analysis.linearisation import linearise
from hocket.analysis.source_playback import with_sources
from hocket.analysis.stability import IterationConvergence, iteration_convergence
from hocket.errors import HocketError, ScenarioError
from hocket.model.composite import Composite
from hocket.plan import Repeat, walk
from hocket.planning.cost import Cost, Work, plan_cost, plan_work
from hocket.planning.parameters import leaves, with_cold_starts
from hocket.planning.planner import plan_tree
from hocket.planning.prepare import without_constraints
from hocket.simulators.state_space import StateSpace


class Case:
    """One coupling; `linear` is given where its linear models are known.

    `now` is the work of the coupling it is compared with, `times` the seconds that steps of simulators take.
    """

    def __init__(
        self,
        composite: Composite,
        stop: Fraction | None,
        start: Fraction = Fraction(0),
        now: Work | None = None,
        times: Mapping[str, float] | None = None,
        linear: Composite | None = None,
    ):
        self.composite, self.stop, self.start, self.now, self.times = composite, stop, start, now, times
        if linear is not None:
            self.linear = linear

    @cached_property
    def linear(self) -> Composite:
        """The composite with linear models in place of all others."""
        composite = without_constraints(self.composite)
        if all(type(model) is StateSpace for _, model in leaves(composite)):
            return merge_micro_steps(composite)
        others = len(composite.scenario.models) > 1
        return merge_micro_steps(linearise(composite, still=others, start=self.start).composite)

    @cached_property
    def reading(self) -> Reading:
        """Its step as a matrix; how it starts does not matter to that."""
        if "driven_reading" in self.__dict__:
            return self.driven_reading
        return read_linear(with_cold_starts(self.linear) if looks_back(self.linear) else self.linear)

    @cached_property
    def driven_reading(self) -> Reading:
        """Its step as a matrix, with its sources and its start."""
        if self.stop is None:
            what = "an error is that of a run, and nothing says how long that is"
            raise ScenarioError(what, "objectives", "a stop time", "--stop 10, or `stop` under [run]")
        return read_linear(with_sources(self.linear, self.stop, self.start))

    @cached_property
    def prediction(self) -> PredictedError:
        """Its error over the run."""
        reading = self.driven_reading
        assert self.stop is not None
        return predicted_error(reading, self.stop, measure=False, local=False)

    @cached_property
    def iterations(self) -> tuple[IterationConvergence, ...]:
        """The iterations of its levels, as they should converge."""
        return tuple(iteration_convergence(self.reading))

    @cached_property
    def sweeps(self) -> dict[str, int | None]:
        """Per level that iterates to a tolerance: the sweeps it should take; empty where nothing is known."""
        plans = [level.plan.step for level in plan_tree(self.composite).levels()]
        if all(each.until is None for plan in plans for _, each in walk(plan) if isinstance(each, Repeat)):
            return {}
        try:
            return {each.level: each.sweeps for each in self.iterations}
        except HocketError:
            return {}

    @cached_property
    def work(self) -> Work:
        """Exchanges and steps per second; iterations to the end with the sweeps they should take."""
        return plan_work(plan_tree(self.composite), self.sweeps)

    @cached_property
    def cost(self) -> Cost:
        """Steps of each simulator, and messages between hosts."""
        return plan_cost(plan_tree(self.composite), self.sweeps)


def looks_back(composite: Composite) -> bool:
    """Return whether inputs anywhere are fitted to more than the newest sample."""
    own = [composite.extrapolation, *(each.extrapolation for each in composite.scenario.connections)]
    inner = (model for model in composite.scenario.models.values() if isinstance(model, Composite))
    return any(each is not None and each.samples > 1 for each in own) or any(map(looks_back, inner))
