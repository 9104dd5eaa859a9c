"""What the collaborators of a live level see of it: its state, and the calls it makes on its children.

In:  nothing
Out: the protocol `LiveLevel`, which `hocket.engine.reference.level.Level` fulfils
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from hocket.coupling.wiring import Wiring
from hocket.engine.memory import ExchangeMemory
from hocket.model.clock import Clock
from hocket.model.protocols import Array
from hocket.plan import Adapt, Body, Plan, Repeat


class LiveLevel(Protocol):
    """A level whose simulators are open. Iteration, rollback, step control and the ledger act on it.

    What belongs to one of these collaborators alone (its counts, its saved states) is `Any` here: the others
    need not know it.
    """

    path: str
    wiring: Wiring
    plan: Plan
    children: list[Any]
    number: dict[str, int]
    last: int | None
    clock: Clock
    length: int
    adaptive: bool
    memory: ExchangeMemory
    ticks: list[int]
    now: int
    reached: int
    span: int
    inputs: tuple[int, Array]
    offered: tuple[int, Array]
    repeating: int
    sweep_matrix: Array | None
    ledger: Any
    rows: Any
    micro_rows: Any
    kept: Any
    restorable: list[Any]
    under_way: bool
    sweeps: Any
    steps: Any
    pace: Any
    accelerators: Any
    tree: Any
    traffic: Any
    sent_at_start: Any
    starts: tuple[float, ...]
    instants: Any
    ends_outside: bool
    remote: frozenset[int]

    def name(self, child: int) -> str:
        """Return the path of a child."""

    def run(self, body: Body) -> None:
        """Execute instructions."""

    def feed(self, child: int) -> None:
        """Fit the inputs of a child from the samples."""

    def read(self, child: int) -> None:
        """Evaluate the outputs of a child, and store them as samples."""

    def inputs_since(self, child: int, tick: int) -> Array:
        """Return the polynomials of a child in powers of the time since a tick."""

    def outputs_of(self, child: int, tick: int, u: Array) -> Array:
        """Return the outputs of a child at a tick."""

    def slopes_of(self, child: int, tick: int, u: Array) -> Array:
        """Return the time derivatives of the outputs of a child."""

    @property
    def reads_linear(self) -> bool:
        """Whether numbers are rows, in the linear reading."""

    def store_jumps(self, child: int, whole: bool, present: Sequence[bool] | None = None) -> None:
        """Evaluate the outputs of a child at an instant; where one jumps, what was before it is forgotten."""

    def note_jumps(self, child: int, before: Sequence[Any]) -> None:
        """Count the jumps of the outputs of a child, from the samples it had before."""

    def end_jump(self) -> None:
        """Begin anew after an event: what led here says nothing about what comes."""

    def call_child(self, call: str, child: int, *arguments: Any) -> Any:
        """Save or restore a child."""

    def unknowns_of(self, instruction: Repeat) -> Any:
        """Return what the repetitions of a Repeat hand to each other."""

    def controller_of(self, instruction: Adapt) -> Any:
        """Return which step is to be tried next."""

    def accelerator_of(self, instruction: Repeat) -> Any:
        """Return what leads a Repeat to its end."""

    def save(self) -> Any:
        """Return the state of the whole tree."""

    def restore(self, state: Any) -> None:
        """Roll back to a saved state."""
