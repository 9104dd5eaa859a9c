"""Whether a scenario is trivial: assignments only, and nothing that depends on itself at once.

In:  a level
Out: why it is not, if it is not (Gomes 2016, section 2)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hocket.errors import Fault
from hocket.feedthrough import Feedthrough
from hocket.passes.contract import levels
from hocket.passing import with_level_ports
from hocket.wiring import scenario_faults, wire_unchecked

if TYPE_CHECKING:
    from hocket.engine.composite import Composite


SOLVER = "orchestrator"
"""What is noted as inserted in a level whose own algorithm was chosen to solve its loops."""


def solves_loops(level: Composite) -> bool:
    """Return whether the algorithm of a level solves its loops: it iterates, or was chosen for that."""
    orchestrator: Any = level.orchestrator
    while orchestrator is not None:
        if hasattr(orchestrator, "accelerator"):
            return True
        orchestrator = getattr(orchestrator, "inner", None)
    return SOLVER in level.scenario.inserted


def algebraic_loops(level: Composite) -> list[tuple[str, ...]]:
    """Return the algebraic loops of one level, as paths of outputs.

    Those too that run through simulators which do not evaluate again: left alone, each sees the other a step
    late there, which may grow without end.
    """
    feedthrough = Feedthrough(wire_unchecked(with_level_ports(level.scenario)), at_start=True)
    return [tuple(feedthrough.name(node) for node in loop) for loop in feedthrough.loops]


def triviality_faults(level: Composite) -> list[Fault]:
    """Return what keeps a level, or one inside it, from being trivial; empty: it is trivial."""
    faults = []
    for path, each in levels(level):
        for name in each.scenario.constraints:
            what = f"`{name}` is an equation, not an assignment"
            faults.append(Fault(what, f"{path}constraints.{name}", "", "the pass `modularity`"))
        for loop in () if solves_loops(each) else algebraic_loops(each):
            what = f"{_format_loop(loop)}: each depends on itself at once"
            faults.append(Fault(what, path.rstrip(".") or "the outermost level", "", "the pass `loops`"))
    return faults or scenario_faults(with_level_ports(level.scenario))


def _format_loop(loop: tuple[str, ...]) -> str:
    return " -> ".join(f"`{path}`" for path in (*loop, loop[0]))
