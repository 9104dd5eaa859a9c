"""One coupling that is judged; what several objectives need is worked out once.

In:  a Composite, how long it runs
Out: its linear reading, its predicted error, its work
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import cached_property

from hocket.analysis.leaps import merge_micro_steps
from hocket.analysis.linear import Reading, read_linear
from hocket.analysis.models import linearise
from hocket.analysis.played import with_sources
from hocket.analysis.prediction import PortError, PredictedError, predicted_error
from hocket.analysis.settling import iteration_convergence
from hocket.analysis.variants import with_cold_starts
from hocket.engine.composite import Composite, without_constraints
from hocket.errors import HocketError, ScenarioError, suggest_nearest
from hocket.nesting.work import Work, work_of
from hocket.parameters import leaves
from hocket.plan import Repeat, walk
from hocket.plan.cost import Cost, plan_cost
from hocket.simulators.state_space import StateSpace


class Case:
    """One coupling; `now` is the work of the one it is compared with, `times` the seconds of steps."""

    def __init__(
        self,
        composite: Composite,
        stop: Fraction | None,
        start: Fraction = Fraction(0),
        now: Work | None = None,
        times: Mapping[str, float] | None = None,
    ):
        self.composite, self.stop, self.start, self.now, self.times = composite, stop, start, now, times

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
        if "_driven_reading" in self.__dict__:
            return self._driven_reading
        return read_linear(with_cold_starts(self.linear) if _looks_back(self.linear) else self.linear)

    @cached_property
    def _driven_reading(self) -> Reading:
        assert self.stop is not None
        return read_linear(with_sources(self.linear, self.stop, self.start))

    @cached_property
    def prediction(self) -> PredictedError:
        """Its error over the run."""
        if self.stop is None:
            what = "an error is that of a run, and nothing says how long that is"
            raise ScenarioError(what, "objectives", "a stop time", "--stop 10, or `stop` under [run]")
        return predicted_error(self._driven_reading, self.stop, measure=False, local=False)

    def errors(self, patterns: tuple[str, ...] = ()) -> list[PortError]:
        """Return the errors of some outputs: named, or else those that the scenario records.

        Names are paths with wildcards; the levels around a simulator may be left out.
        """
        known = {each.port: each for each in self.prediction.ports}
        return [known[name] for name in counted_outputs(self.composite, tuple(known), patterns)]

    @cached_property
    def work(self) -> Work:
        """Exchanges and steps per second; iterations to the end with the sweeps they should take."""
        return work_of(self.composite, self._sweeps)

    @cached_property
    def cost(self) -> Cost:
        """Steps of each simulator, and messages between hosts."""
        known = {path: float(count) for path, count in self._sweeps.items() if count is not None}
        return plan_cost(self.composite.blueprint, known)

    @cached_property
    def _sweeps(self) -> dict[str, int | None]:
        plans = [level.plan.step for level in self.composite.blueprint.levels()]
        if all(each.until is None for plan in plans for _, each in walk(plan) if isinstance(each, Repeat)):
            return {}
        try:
            return {each.level: each.sweeps for each in iteration_convergence(self.reading)}
        except HocketError:
            return {}

    def seconds_of(self, path: str) -> float:
        """Return the seconds that a step of a simulator takes; it may have got levels around it since."""
        assert self.times is not None
        own = [key for key in self.times if key == path or _within(path, key) or _within(key, path)]
        return self.times[max(own, key=len)] if own else sum(self.times.values()) / len(self.times)


def counted_outputs(composite: Composite, ports: Sequence[str], patterns: tuple[str, ...]) -> list[str]:
    """Return which of the outputs count: those that are named, or else those that the scenario records."""
    if patterns:
        kept = [port for port in ports if any(_matches_pattern(port, text) for text in patterns)]
        if not kept:
            hint = suggest_nearest(patterns[0], ports)
            raise ScenarioError(f"no output is `{', '.join(patterns)}`", "objectives", "", hint)
        return kept
    record = composite.scenario.record
    return [port for port in ports if any(fnmatchcase(port, text) for text in record)] or list(ports)


def units_of(composite: Composite, patterns: tuple[str, ...]) -> list[str]:
    """Return the units of the outputs that count, each once; outputs without a unit fit to all."""
    wiring = composite.blueprint.leaves.wiring
    units = {
        f"{name}.{port.name}": port.unit
        for name, model in zip(wiring.names, wiring.models, strict=True)
        for port in model.outputs
    }
    return list(
        dict.fromkeys(
            filter(None, (units[port] for port in counted_outputs(composite, tuple(units), patterns)))
        )
    )


def _matches_pattern(port: str, text: str) -> bool:
    return fnmatchcase(port, text) or fnmatchcase(port, f"*.{text}")


def _within(path: str, key: str) -> bool:
    return path.endswith(f".{key}")


def _looks_back(composite: Composite) -> bool:
    """Return whether inputs anywhere are fitted to more than the newest sample."""
    own = [composite.extrapolation, *(each.extrapolation for each in composite.scenario.connections)]
    inner = (model for model in composite.scenario.models.values() if isinstance(model, Composite))
    return any(each is not None and each.samples > 1 for each in own) or any(map(_looks_back, inner))
