"""Linear simulators as the native engine has them: matrices that are computed once, and shared.

In:  a StateSpaceSimulator, or a Projected around one, after its start
Out: what compiled code keeps of its model; children of native levels
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, TypeGuard

import numpy as np

import hocket._native as _native
from hocket.engine.reference.level import Level
from hocket.model.clock import Clock
from hocket.plan import Step, walk
from hocket.simulators.energy_projection import Projected
from hocket.simulators.methods import Maps, micro_steps
from hocket.simulators.power_balance import Seat
from hocket.simulators.state_space import StateSpaceSimulator

Key: TypeAlias = tuple[int, int, tuple[int, ...], bool]


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
    """Models that are equal share them.

    `plain`: per simulator (its id) the degree of its inputs where those of the outermost level are held. For
    such inputs its steps then have the bits that they have there, whatever is meant to come from outside.
    """

    def __init__(self, plain: Mapping[int, int] | None = None) -> None:
        self.plain = plain or {}
        self.models: dict[Key, _native.LinearModel] = {}
        self.balances: dict[Key, _native.Balance] = {}

    def linear_model(
        self, simulator: StateSpaceSimulator, level: Level, degree: int, ticks: tuple[int, ...]
    ) -> _native.LinearModel:
        """Return those of a linear simulator."""
        plain = self.plain.get(id(simulator), degree)
        key = id(simulator.model), degree, (*ticks, -plain), level.takes_any_step
        if key not in self.models:
            self.models[key] = _build_linear(
                simulator, level.clock, degree, ticks, None, level.takes_any_step, plain
            )
        return self.models[key]

    def window_model(
        self, simulator: StateSpaceSimulator, clock: Clock, degree: int, ticks: int
    ) -> _native.LinearModel:
        """Return those of a linear simulator that runs ahead at the start, by steps of so many ticks."""
        key = id(simulator.model), degree, (ticks,), False
        if key not in self.models:
            self.models[key] = _build_linear(simulator, clock, degree, (ticks,), None, False)
        return self.models[key]

    def balanced_model(
        self, simulator: Projected, level: Level, degree: int, ticks: tuple[int, ...]
    ) -> _native.Balance:
        """Return those of one whose state follows the agreed energy."""
        key = id(simulator.recipe), degree, ticks, level.takes_any_step
        if key not in self.balances:
            linear = _build_linear(
                simulator.plain, level.clock, degree, ticks, simulator, level.takes_any_step
            )
            self.balances[key] = _build_balance(simulator, linear)
        return self.balances[key]


def add_projected(built: _native.Level, simulator: Projected, balance: _native.Balance) -> None:
    """Hand over what a balanced simulator is doing."""
    plain, agreed = simulator.plain, simulator.agreed
    built.add_projected(
        balance=balance,
        z=plain.z,
        last_h=plain.last_h or 0.0,
        work=simulator.work,
        brought=simulator.brought,
        agreed=None
        if agreed is None
        else _native.Agreed(t=agreed.t, parts=agreed.parts, paid=agreed.paid, work=agreed.work.tolist()),
    )


def _build_linear(
    simulator: StateSpaceSimulator,
    clock: Clock,
    degree: int,
    lengths: tuple[int, ...],
    around: Projected | None,
    asked: bool,
    plain: int | None = None,
) -> _native.LinearModel:
    """Return what is shared; `asked`: steps of other lengths are made, too; `plain`: see Matrices."""
    model = simulator.model
    linear = _native.LinearModel(
        rows=degree + 1,
        multistep=simulator.maps(1.0, degree).first is not None,
        size=simulator.size,
        inputs=len(model.inputs),
        outputs=len(model.outputs),
        A=np.array(model.A, dtype=float),
        B=np.array(model.B, dtype=float),
        C=simulator.C,
        D=simulator.D,
    )

    def step_maps(ticks: int) -> _native.StepMaps:
        """Return a step of a length: its micro steps, the matrices of one, and the work of bonds."""
        h = clock.span(ticks)
        count = micro_steps(h, simulator.step_length)
        maps = _step_maps(simulator, h / count, degree, degree if plain is None else plain)
        return _native.StepMaps(
            ticks=ticks,
            h=h,
            count=count,
            micro_h=h / count,
            Phi=maps.Phi,
            Gamma=maps.Gamma,
            first_Phi=None if maps.first is None else maps.first.Phi,
            first_Gamma=None if maps.first is None else maps.first.Gamma,
            works=None if around is None else around.works(h, degree),
        )

    for ticks in lengths:
        linear.add(step_maps(ticks))
    if asked:
        linear.ask(step_maps)
    return linear


def _step_maps(simulator: StateSpaceSimulator, h: float, degree: int, plain: int) -> Maps:
    """Return the maps of one micro step; what does not come from higher powers of time is as in `plain`."""
    maps = simulator.maps(h, degree)
    if plain == degree:
        return maps
    known = simulator.maps(h, plain)

    def merge(whole: Maps, part: Maps) -> Maps:
        Gamma = np.concatenate([part.Gamma, whole.Gamma[plain + 1 :]])
        first = None if whole.first is None or part.first is None else merge(whole.first, part.first)
        return Maps(part.Phi, Gamma, first)

    return merge(maps, known)


def _build_balance(simulator: Projected, linear: _native.LinearModel) -> _native.Balance:
    recipe, stored = simulator.recipe, simulator.plain.model.stored_energy
    return _native.Balance(
        linear=linear,
        inputs=len(recipe.inputs),
        seats=[_seat(seat) for seat in simulator.seats],
        Q=stored.Q,
        held=stored.held,
        whole=recipe.whole or 0.0,
        straight=recipe.power == "linear",
    )


def _seat(seat: Seat) -> _native.Seat:
    assert seat.told is not None
    assert seat.share is not None
    return _native.Seat(
        output=seat.output,
        input=seat.input,
        told=seat.told,
        share=seat.share,
        booked=seat.booked,
        sign=seat.sign,
        beyond=[
            _native.View(
                output=view.output, input=view.input, share=view.share, sign=view.sign, bonds=view.bonds
            )
            for view in seat.beyond
        ],
    )
