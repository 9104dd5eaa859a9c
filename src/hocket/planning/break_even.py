"""Break-even: from how much work per exchange on several hosts gain anything over one.

In:  the plan tree of a scenario with hosts, and its cost
Out: the share of work of each host, the cost of an exchange, and the work from which on there is a gain
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from hocket.model.composite import traits_of
from hocket.planning.cost import Cost, distributed_level, hosts_of
from hocket.planning.tree import PlanTree


@dataclass(frozen=True)
class BreakEven:
    """What several hosts gain over one, as far as that is known before anything is measured.

    One host needs the work W of an exchange; several need that of the busiest, s W, and C on the links: the
    gain is W / (s W + C). Steps of simulators count as equally long.
    """

    shares: Mapping[str, float]
    """Per host: its part of all simulator steps."""
    exchange: float
    """Seconds on the links per exchange, messages one after the other."""
    parallel: bool
    """Whether hosts compute at the same time; if not, nothing is gained."""

    @property
    def limit(self) -> float:
        """The gain that is never reached, however much work there is."""
        return 1.0 / max(self.shares.values()) if self.parallel else 1.0

    def work_for(self, gain: float) -> float:
        """Return the seconds of work per exchange, on one host, from which on there is so much gain."""
        if gain >= self.limit:
            return math.inf
        return gain * self.exchange / (1.0 - gain / self.limit)


def break_even(design: PlanTree, cost: Cost) -> BreakEven | None:
    """Return what the hosts of a scenario gain; None: it has not several, or none of them has work."""
    level = distributed_level(design)
    if level is None:
        return None
    placed, prefix = hosts_of(level).host_by_model(), f"{level.path}." if level.path else ""
    steps = {host: Fraction(0) for host in hosts_of(level).models}
    for path, count in cost.steps.items():
        if path.startswith(prefix):
            steps[placed[path.removeprefix(prefix).partition(".")[0]]] += count
    every = sum(steps.values(), Fraction(0))
    if not every:
        return None
    exchange = cost.link_time * float(cost.hosts_step)
    parallel = traits_of(level.composite.orchestrator).schedule != "sequential"
    return BreakEven({host: float(count / every) for host, count in steps.items()}, exchange, parallel)
