"""Linear simulators as the native engine has them: matrices that are computed once, and shared.

In:  a StateSpaceSimulator, or a Projected around one, after its start
Out: what compiled code keeps of its model; children of native levels
"""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np

import hocket._native as _native  # type: ignore[import-not-found]
from hocket.engine.reference.level import Level
from hocket.plan import Step, walk
from hocket.simulators.energy_projection import Projected
from hocket.simulators.methods import micro_steps
from hocket.simulators.state_space import StateSpaceSimulator

NONE = np.zeros(0)


def has_native_twin(simulator: Any, degree: int) -> TypeGuard[Projected]:
    """Return whether compiled code has the twin of a balanced simulator, under inputs of this degree."""
    return isinstance(simulator, Projected) and simulator.exact and simulator.recipe.linked and degree > 0


def linear_part(simulator: Any, degree: int) -> StateSpaceSimulator | None:
    """Return the linear simulator whose state compiled code has: this one, or the one inside, or none."""
    inside = simulator.plain if has_native_twin(simulator, degree) else simulator
    return inside if isinstance(inside, StateSpaceSimulator) else None


def step_ticks(level: Level) -> list[tuple[int, ...]]:
    """Return the steps that each child will make, in ticks; those of an adaptive level follow."""
    found: list[set[int]] = [set() for _ in level.children]
    for _, each in walk(level.plan.step):
        if isinstance(each, Step):
            found[level.number[each.sim]].add(int(level.length * each.fraction))
    return [tuple(sorted(lengths)) or (level.length,) for lengths in found]


class Matrices:
    """Models that are equal share them."""

    def __init__(self) -> None:
        self.models: dict[Any, Any] = {}

    def linear_model(
        self, simulator: StateSpaceSimulator, level: Level, degree: int, ticks: tuple[int, ...]
    ) -> Any:
        """Return those of a linear simulator."""
        key = id(simulator.model), degree, ticks, level.adaptive
        if key not in self.models:
            self.models[key] = _build_linear(simulator, level, degree, ticks, None)
        return self.models[key]

    def balanced_model(self, simulator: Projected, level: Level, degree: int, ticks: tuple[int, ...]) -> Any:
        """Return those of one whose state follows the agreed energy."""
        key = id(simulator.recipe), degree, ticks, level.adaptive
        if key not in self.models:
            linear = _build_linear(simulator.plain, level, degree, ticks, simulator)
            self.models[key] = _build_balance(simulator, linear)
        return self.models[key]


def add_projected(built: Any, simulator: Projected, balance: Any) -> None:
    """Hand over what a balanced simulator is doing."""
    plain, agreed = simulator.plain, simulator.agreed
    t, *terms = (0.0,) if agreed is None else (agreed.t, agreed.parts, agreed.paid, agreed.work.tolist())
    built.add_projected(balance, plain.z, plain.last_h or 0.0, simulator.work, simulator.brought, t, terms)


def _build_linear(
    simulator: StateSpaceSimulator,
    level: Level,
    degree: int,
    lengths: tuple[int, ...],
    around: Projected | None,
) -> Any:
    model, clock = simulator.model, level.clock
    size, inputs, outputs = simulator.size, len(model.inputs), len(model.outputs)
    made = _native.linear(
        degree + 1, simulator.maps(1.0, degree).first is not None,
        np.array(model.A, dtype=float), np.array(model.B, dtype=float), simulator.C, simulator.D,
        size, inputs, outputs,
    )  # fmt: skip

    def step_maps(ticks: int) -> tuple[Any, ...]:
        """Return a step of a length: its micro steps, the matrices of one, and the work of bonds."""
        h = clock.span(ticks)
        count = micro_steps(h, simulator.step_length)
        maps = simulator.maps(h / count, degree)
        first = (maps.first.Phi, maps.first.Gamma) if maps.first is not None else (NONE, NONE)
        works = NONE if around is None else around.works(h, degree)
        return h, count, h / count, maps.Phi, maps.Gamma, *first, works

    for ticks in lengths:
        made.add(ticks, *step_maps(ticks))
    if level.adaptive:
        made.ask(step_maps)
    return made


def _build_balance(simulator: Projected, linear: Any) -> Any:
    recipe, stored = simulator.recipe, simulator.plain.model.stored_energy
    seats = [
        (
            seat.output,
            seat.input,
            seat.told,
            seat.share,
            -1 if seat.booked is None else seat.booked,
            seat.sign,
            [(view.output, view.input, view.share, view.sign, view.bonds) for view in seat.beyond],
        )
        for seat in simulator.seats
    ]
    held = NONE if stored.held is None else stored.held
    straight = recipe.power == "linear"
    return _native.balance(linear, len(recipe.inputs), seats, stored.Q, held, recipe.whole or 0.0, straight)
