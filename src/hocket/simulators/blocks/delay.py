"""A transport delay: what goes in comes out later.

In:  a delay; inputs as polynomials over steps, and their jumps
Out: the same a delay later, jumps at their times
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from hocket.model.arguments import set_fields
from hocket.model.clock import Duration
from hocket.model.extrapolators import value_at
from hocket.model.ports import Port
from hocket.model.protocols import Array, Capabilities, Simulator
from hocket.simulators.block import Remade
from hocket.simulators.blocks.parameter_checks import as_duration, as_number, as_units
from hocket.simulators.sampling import is_not_after


@dataclass(frozen=True, init=False)
class Delay(Remade):
    """An output `y` that is the input `u` a delay ago, and `initial` until then.

    It keeps the polynomials of its input, so that it adds no error of its own. A jump that is announced comes
    out as a jump that is announced. It has no direct feedthrough, however short it is.
    """

    delay: float
    initial: float
    unit: str

    def __init__(self, delay: Duration, initial: float = 0.0, unit: str = ""):
        as_units(unit=unit)
        set_fields(self, delay=as_duration("delay", delay), initial=as_number("initial", initial), unit=unit)

    @property
    def inputs(self) -> tuple[Port, ...]:
        return (Port("u", self.unit),)

    @property
    def outputs(self) -> tuple[Port, ...]:
        return (Port("y", self.unit),)

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(rollback=True, events=True, catches_up=True)

    def open(self) -> Simulator:
        return DelaySimulator(self)


class _Piece(NamedTuple):
    """The input from a time on, until the next piece begins."""

    begin: float
    coefficients: tuple[float, ...]
    jumps: bool
    """Whether it begins with a jump that was announced."""


class DelaySimulator:
    """Keeps the pieces of its input that are still to come out."""

    event_grid = 0.0

    def __init__(self, model: Delay):
        self.model, self.delay = model, model.delay
        self.pieces: tuple[_Piece, ...] = ()
        self.passed = -math.inf
        """Jumps of the input that began until then have come out."""

    def start(self, t: float) -> None:
        self.pieces = (_Piece(-math.inf, (self.model.initial,), False),)
        self.passed = -math.inf

    def close(self) -> None:
        """Nothing is held."""

    def save(self) -> tuple[tuple[_Piece, ...], float]:
        return self.pieces, self.passed

    def restore(self, state: tuple[tuple[_Piece, ...], float]) -> None:
        self.pieces, self.passed = state

    def step(self, t: float, h: float, u: Array) -> float:
        if h == 0.0:
            return t
        self._pass_jumps(t)  # those that nobody has committed
        self._begin_piece(_Piece(t, tuple(u[:, 0].tolist()), False))
        if self.event_grid == 0.0:
            self._pass_jumps(t + h)
        used = self._piece_at(t + h)
        self.pieces = self.pieces[used:]
        return t + h

    def output(self, t: float, u: Array) -> Any:
        piece = self.pieces[self._piece_at(t)]
        if piece.begin == -math.inf:
            return [self.model.initial]
        return [float(value_at(piece.coefficients, max((t - self.delay) - piece.begin, 0.0)))]

    def _begin_piece(self, piece: _Piece) -> None:
        last = self.pieces[-1]
        if last.begin == piece.begin:  # it jumped there: the polynomial behind the jump
            self.pieces = (*self.pieces[:-1], piece._replace(jumps=last.jumps))
        else:
            self.pieces = (*self.pieces, piece)

    def _piece_at(self, t: float) -> int:
        """Return the number of the piece that comes out at a time; a jump after it is committed."""
        found = 0
        for number, piece in enumerate(self.pieces):
            if is_not_after(piece.begin + self.delay, t) and not (piece.jumps and piece.begin > self.passed):
                found = number
        return found

    def _pass_jumps(self, limit: float) -> None:
        for piece in self.pieces:
            if piece.jumps and is_not_after(piece.begin + self.delay, limit):
                self.passed = max(self.passed, piece.begin)

    # instants

    def due(self) -> float | None:
        """Return when the next jump comes out."""
        for piece in self.pieces:
            if piece.jumps and piece.begin > self.passed:
                return piece.begin + self.delay
        return None

    def react(self, t: float, n: int, u: Array, present: Sequence[bool]) -> None:
        """Look whether the input has jumped, or a jump comes out."""
        due = self.due()
        self.coming = due if due is not None and (not any(present) or due <= t) else None
        self.jump = _Piece(t, (float(u[0]),), True) if any(present) else None

    def commit(self) -> bool:
        """Keep the jump of the input, and show the one that is due."""
        if self.coming is not None:
            self._pass_jumps(self.coming)
        if self.jump is not None:
            last = self.pieces[-1]
            kept = self.pieces[:-1] if last.begin == self.jump.begin else self.pieces
            self.pieces = (*kept, self.jump)
        return False
