"""What every pass of the compiler is: conditions before, a change, conditions after.

In:  a level
Out: why a pass has something to do there, what it lacks, the changed level, what does not hold on it
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from hocket.coupling.feedthrough import feedthrough_graph
from hocket.coupling.level_ports import with_level_ports
from hocket.coupling.wiring import scenario_faults
from hocket.errors import Fault
from hocket.model.composite import algorithm_layers, levels, traits_of
from hocket.model.scenario import Insertion

if TYPE_CHECKING:
    from hocket.model.composite import Composite


@runtime_checkable
class Pass(Protocol):
    """One concern, compiled away (Gomes 2016, section 3). Options are fields; it is frozen."""

    name: ClassVar[str]

    def reasons(self, level: Composite) -> list[str]:
        """Return why there is something to do; empty: nothing is."""

    def check_preconditions(self, level: Composite) -> list[Fault]:
        """Return the conditions before that do not hold: capabilities or facts that are missing."""

    def apply(self, level: Composite) -> Composite:
        """Return the level changed; what is new in it stands in `Scenario.inserted`."""

    def check_postconditions(self, level: Composite) -> list[Fault]:
        """Return the conditions after that do not hold; asked after later passes too."""


def insertions(level: Composite) -> dict[str, Insertion]:
    """Return what was inserted at all levels, by its path."""
    return {
        f"{path}{key}": note for path, each in levels(level) for key, note in each.scenario.inserted.items()
    }


SOLVER = "orchestrator"
"""What is noted as inserted in a level whose own algorithm was chosen to solve its loops."""


def solves_loops(level: Composite) -> bool:
    """Return whether the algorithm of a level solves its loops: it iterates, or was chosen for that."""
    if any(traits_of(each).iterates for each in algorithm_layers(level.orchestrator)):
        return True
    return SOLVER in level.scenario.inserted


def algebraic_loops(level: Composite) -> list[tuple[str, ...]]:
    """Return the algebraic loops of one level, as paths of outputs.

    Those too that run through simulators which do not evaluate again: left alone, each sees the other a step
    late there, which may grow without end.
    """
    feedthrough = feedthrough_graph(with_level_ports(level.scenario), at_start=True)
    return [tuple(feedthrough.name(node) for node in loop) for loop in feedthrough.loops]


def unsolved_loops(level: Composite) -> list[tuple[str, ...]]:
    """Return the algebraic loops of one level that its algorithm does not solve."""
    return [] if solves_loops(level) else algebraic_loops(level)


def triviality_faults(level: Composite) -> list[Fault]:
    """Return what keeps a level, or one inside it, from being trivial; empty: it is trivial."""
    faults = []
    for path, each in levels(level):
        for name in each.scenario.constraints:
            what = f"`{name}` is an equation, not an assignment"
            faults.append(Fault(what, f"{path}constraints.{name}", "", "the pass `modularity`"))
        for loop in unsolved_loops(each):
            around = " -> ".join(f"`{node}`" for node in (*loop, loop[0]))
            what = f"{around}: each depends on itself at once"
            faults.append(Fault(what, path.rstrip(".") or "the outermost level", "", "the pass `loops`"))
    return faults or scenario_faults(with_level_ports(level.scenario))
