"""Is it well posed: algebraic loops, and where a delay of one macro step comes in.

In:  a Composite
Out: a Posedness, from the scenario and its plans alone: nothing is run
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hocket.analysis.measure import Measure, Outcome, Rows
from hocket.coupling.feedthrough import Feedthrough
from hocket.coupling.wiring import OWN, Drive
from hocket.files.wording import describe_extrapolation
from hocket.model.composite import Composite
from hocket.model.extrapolators import Hold
from hocket.model.protocols import bookkeeping_ports
from hocket.plan.plan import NoteKind
from hocket.plan.verify.verifier import InputDelay, find_delays
from hocket.planning.planner import plan_tree
from hocket.planning.tree import PlanTree


def bookkeeping_paths(level: PlanTree) -> frozenset[str]:
    """Return the ports inside a level that only balanced bonds want, as `motor.share`."""
    every = ((name, hidden_ports(level, child)) for child, name in enumerate(level.wiring.names))
    return frozenset(f"{name}.{port}" for name, ports in every for port in ports)


def hidden_ports(level: PlanTree, child: int) -> frozenset[str]:
    """Return the ports of a child that only balanced bonds want; a level has those that lead inside."""
    if child in level.inner:
        return bookkeeping_paths(level.inner[child])
    return bookkeeping_ports(level.wiring.models[child])


def delayed_inputs(level: PlanTree) -> Iterator[tuple[int, int, Drive, InputDelay]]:
    """Yield child, number of the input, and what drives it, for inputs that others drive too late."""
    wiring, number = level.wiring, level.wiring.numbers()
    for delay in find_delays(level.plan, level.composite.scenario):
        name, _, port = delay.target.partition(".")
        child = number[name]
        index = [each.name for each in wiring.models[child].inputs].index(port)
        drive = wiring.drives[child][index]
        if drive is not None and drive.child != OWN and port not in hidden_ports(level, child):
            yield child, index, drive, delay


@dataclass(frozen=True)
class DelayedConnection:
    """A connection whose input is extrapolated: its source has not yet made the step."""

    source: str
    target: str
    extrapolation: str
    reacts: bool
    """The input has direct feedthrough to an output of its simulator, which shows the delay right away."""


@dataclass(frozen=True)
class Posedness(Measure):
    """What can be told of a scenario before any number is known."""

    loops: tuple[tuple[str, ...], ...]
    """Algebraic loops: outputs with direct feedthrough to themselves, through levels too."""
    delays: tuple[DelayedConnection, ...]
    solved: bool
    """The loops are solved in every step; else they are broken by a delay."""
    ill_posed: str = ""
    """Why nothing can start; then there are no other measures."""

    title = "extrapolated inputs"

    @property
    def outcome(self) -> Outcome:
        """Bad if nothing can start."""
        return Outcome.BAD if self.ill_posed else Outcome.GOOD

    def verdict(self) -> list[str]:
        """Return why nothing can start."""
        return [f"ill posed: {self.ill_posed}"] if self.ill_posed else []

    def rows(self) -> Rows:
        """Return one row for each delayed connection."""
        return [
            {
                "from": delay.source,
                "to": delay.target,
                "extrapolation": delay.extrapolation,
                "direct feedthrough": "yes" if delay.reacts else "",
            }
            for delay in self.delays
        ]

    def notes(self) -> list[str]:
        """Return the algebraic loops."""
        how = "solved in every step" if self.solved else "broken by a delay of one macro step"
        how = "without a unique solution" if self.ill_posed else how
        return [f"algebraic loop: {' -> '.join(loop)}, {how}" for loop in self.loops]

    def facts(self) -> dict[str, Any]:
        """Return loops and extrapolated inputs."""
        return {"algebraic loops": self.loops, self.title: self.rows()}


def posedness(composite: Composite) -> Posedness:
    """Return loops and delays at all levels; raises ScenarioError for what is not a scenario at all."""
    root = plan_tree(composite)
    graph = Feedthrough(root.leaves.wiring, at_start=True)
    loops = tuple(tuple(graph.name(node) for node in loop) for loop in graph.loops)
    delays = tuple(delay for level in root.levels() for delay in _delayed_connections(level))
    broken = any(note.kind is NoteKind.BROKEN_LOOP for level in root.levels() for note in level.plan.notes)
    return Posedness(loops, delays, solved=not broken)


def _delayed_connections(level: PlanTree) -> Iterator[DelayedConnection]:
    """Yield the connections between the children of a level that are extrapolated."""
    inside = f"{level.path}." if level.path else ""
    for child, index, drive, delay in delayed_inputs(level):
        model = level.wiring.models[child]
        reacts = any(model.inputs[index].name in output.feedthrough for output in model.outputs)
        how = describe_extrapolation(drive.extrapolation or Hold())
        yield DelayedConnection(f"{inside}{delay.source}", f"{inside}{delay.target}", how, reacts)
