"""The Coupler of a coupling: its simulators are tried, and what they answer becomes numbers.

In:  a ConstraintGroup, the scenario with ports at every level that an equation reaches into
Out: a Coupler, and which models must be given slopes; or the conditions that are not met
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hocket.constraining import ConstraintGroup, find_equation_port, is_level_input
from hocket.errors import Fault
from hocket.model import Array, Model, Port, Scenario, as_level
from hocket.passes.sensitivity import (
    GROWS,
    Moment,
    PulseTrial,
    Response,
    SensitivityBench,
    TrialError,
    changes,
    equations_acted_at_once,
    invert_sensitivity,
    midpoint_values,
    outputs_reacting_at_once,
    pulse_growth,
    residuals,
)
from hocket.simulators.constraint import Coupler
from hocket.simulators.sloped import Sloped

if TYPE_CHECKING:
    from hocket.engine.composite import Composite

TRIAL = 8
"""Slopes by differences come from trial steps of this part of the step."""
FLOOR = 1e-9
"""Residuals below this are zero, however small the values are."""


@dataclass(frozen=True)
class CouplerDesign:
    """A Coupler for a coupling, and the models that tell slopes by differences from now on."""

    coupling: ConstraintGroup
    coupler: Coupler
    sloped: Mapping[str, Model]


def derive_coupler(
    scenario: Scenario, coupling: ConstraintGroup, level: Composite, gap: float
) -> CouplerDesign | list[Fault]:
    """Return the Coupler, or why there is none.

    `gap` is what equations may be short of at the start, as a part of the values in them.
    """
    # a level with step control begins with a short step: what its inputs are then must be told
    step = float(level.step * getattr(level.orchestrator, "first", 1))
    models = {name: scenario.models[name] for name in coupling.models}
    sloped: dict[str, Model] = {}
    while True:
        try:
            response = _bench(scenario, coupling, models | sloped, step).response()
        except TrialError as error:
            what = f"`{error.args[0]}` was tried over a step of {step:g} s: {error.args[1]}"
            return [Fault(what, coupling.where, "simulators that bear steps from their start values")]
        senseless = [*_undefined_faults(coupling, response)]
        if senseless:
            return senseless
        second = pulse_growth(*changes(response, lambda now, _: residuals(coupling.equations, now))) > GROWS
        lacking = _missing_rates(coupling, second, response)
        if not lacking:
            break
        more = _with_slopes(coupling, lacking, models, level)
        if isinstance(more, list):
            return more
        sloped |= more
    degrees = np.where(
        second, 2, np.where(equations_acted_at_once(response, coupling.equations), 0, 1)
    ).tolist()
    coupler = _coupler(
        scenario, coupling, degrees, 1.0 / float(level.step), outputs_reacting_at_once(response)
    )
    faults = [*_rate_faults(coupling, coupler, response)] or [
        *_start_faults(coupling, coupler, response, sloped, gap),
        *_third_derivative_faults(coupling, coupler, response),
    ]
    if faults:
        return faults
    S, _ = changes(response, _sigma(coupler))
    W = invert_sensitivity(S, coupler.equations, coupling.determines, coupling.where)
    if isinstance(W, list):
        return W
    base = response.base
    first = np.array([base.after.values[path] for path in coupling.determines])
    start: Array = first - W @ np.array(_sigma(coupler)(base.after, base.start))
    return CouplerDesign(
        coupling, coupler.with_changes(W=W.tolist(), start=start.tolist(), over=step), sloped
    )


def draft_coupler(scenario: Scenario, coupling: ConstraintGroup) -> CouplerDesign:
    """Return the Coupler as far as it is known while nothing is opened."""
    return CouplerDesign(coupling, _coupler(scenario, coupling, [1] * len(coupling.equations), 0.0, ()), {})


def _bench(
    scenario: Scenario, coupling: ConstraintGroup, models: Mapping[str, Model], step: float
) -> SensitivityBench:
    def place(path: str) -> tuple[str, str]:
        owner, _, port = path.partition(".")
        return owner, port

    own = [path for path in coupling.reads if is_level_input(scenario, path)]
    return SensitivityBench(
        models,
        {path: place(path) for path in coupling.reads if path not in own},
        {path: place(path) for path in coupling.determines},
        step,
        {path: (find_equation_port(scenario, path) or Port(path)).start or 0.0 for path in own},
    )


def _missing_rates(coupling: ConstraintGroup, second: Any, response: Response) -> list[str]:
    """Return the outputs whose time derivative is needed and not known."""
    rates = dict(coupling.rates)
    return list(
        dict.fromkeys(
            path
            for equation, needs in zip(coupling.equations, second, strict=True)
            for path in equation.paths
            if needs and path not in rates and path not in response.base.after.slopes
        )
    )


def _with_slopes(
    coupling: ConstraintGroup, lacking: list[str], models: Mapping[str, Model], level: Composite
) -> dict[str, Model] | list[Fault]:
    """Return models that tell slopes by differences, or why that cannot be."""
    found: dict[str, Model] = {}
    for path in lacking:
        owner = path.partition(".")[0]
        model = models.get(owner)
        if model is None:
            why = "comes from outside the level"
        elif as_level(model):
            why = f"is inside a level without slopes, `{owner}`"
        elif not model.abilities.variable_step:
            why = f"cannot be found by short trial steps: `{owner}` accepts only the step of its level"
        else:
            found[owner] = Sloped(model, level.step / TRIAL)
            continue
        what = f"inputs act on accelerations, so the time derivative of `{path}` is needed; it {why}"
        hint = f'name the output that is its derivative: rates = {{ "{path}" = "..." }}'
        return [Fault(what, coupling.where, "a rate, or slopes", hint)]
    return found


def _sigma(coupler: Coupler) -> Callable[[Moment, Moment], list[float]]:
    return lambda now, before: coupler.sigma(now.values, now.slopes, midpoint_values(now, before))


def _coupler(
    scenario: Scenario, coupling: ConstraintGroup, degrees: list[int], mu: float, at_once: Collection[str]
) -> Coupler:
    """Return the Coupler as far as it is known before W is; `mu` is for constraints that give none."""

    def ports(paths: tuple[str, ...]) -> list[Port]:
        return [Port(path, (find_equation_port(scenario, path) or Port(path)).unit) for path in paths]

    middle = dict.fromkeys(
        path
        for equation, degree in zip(coupling.equations, degrees, strict=True)
        if degree == 0
        for path in equation.paths
        if path in coupling.reads and path not in at_once
    )
    chosen = [mu if each is None else each for each in coupling.mu]
    return Coupler(
        [equation.text for equation in coupling.equations],
        ports(coupling.reads),
        ports(coupling.determines),
        np.zeros((len(coupling.determines), len(degrees))).tolist(),
        degrees,
        [each if degree == 2 else 0.0 for each, degree in zip(chosen, degrees, strict=True)],
        dict(coupling.rates),
        tuple(middle),
    )


def _undefined_faults(coupling: ConstraintGroup, response: Response) -> Iterator[Fault]:
    """Yield equations without a value: roots of what is negative, divisions by nothing."""
    for equation in coupling.equations:
        for when, moment in (("the start", response.base.start), ("the end of a step", response.base.after)):
            value = equation.residual(moment.values)
            if not np.isfinite(value):
                met = ", ".join(f"`{path}` = {moment.values[path]:.3g}" for path in equation.paths)
                what = f"`{equation.text}` has no value at {when}: left - right is {value}, with {met}"
                yield Fault(what, coupling.where, "equations with a value where the simulators are")
                break


def _rate_faults(coupling: ConstraintGroup, coupler: Coupler, response: Response) -> Iterator[Fault]:
    """Yield pairs of `rates` of which only one reacts to an input: it is the derivative of something else."""
    used = {
        path
        for equation, degree in zip(coupling.equations, coupler.degrees, strict=True)
        for path in equation.paths
        if degree == 2
    }
    for path, rate in coupling.rates:
        if path not in used:
            continue
        for each, trial in zip(coupling.determines, response.moved, strict=True):
            moves = [name for name in (path, rate) if _is_moved(name, trial, response.base)]
            if len(moves) == 1:
                still = rate if moves == [path] else path
                what = (
                    f"`{rate}` is not the rate of `{path}`: `{each}` acts on `{moves[0]}`, not on `{still}`"
                )
                yield Fault(what, f"{coupling.where}.rates", "its time derivative")
                break


def _is_moved(path: str, trial: PulseTrial, base: PulseTrial) -> bool:
    return any(
        getattr(trial, when).values[path] != getattr(base, when).values[path] for when in ("after", "later")
    )


def _start_faults(
    coupling: ConstraintGroup, coupler: Coupler, response: Response, sloped: Collection[str], gap: float
) -> Iterator[Fault]:
    """Yield what does not hold at the start, though no input can change it at once.

    Slopes by differences are not exact enough to be judged.
    """
    start, known = response.base.start, dict(coupling.rates)
    for equation, degree in zip(coupling.equations, coupler.degrees, strict=True):
        if degree == 0:
            continue  # the first step puts it right
        rates = {
            p: start.values[known[p]] if p in known else start.slopes.get(p, 0.0) for p in equation.paths
        }
        g, speed = equation.residual_and_rate(start.values, rates)
        told = degree == 2 and not any(p.partition(".")[0] in sloped for p in rates if p not in known)
        size = max(abs(start.values[path]) for path in equation.paths)
        fast = max(abs(rate) for rate in rates.values())
        sides = (("left - right", g, size), ("the time derivative of left - right", speed, fast))
        for number, (what, short, scale) in enumerate(sides):
            if abs(short) > max(gap * scale, FLOOR) and (told or not number):
                yield Fault(
                    f"`{equation.text}` does not hold at the start: {what} is {short:.3g}",
                    coupling.where,
                    f"start values that agree to {gap:g} of their size",
                    "change the start values of the simulators it couples",
                )


def _third_derivative_faults(
    coupling: ConstraintGroup, coupler: Coupler, response: Response
) -> Iterator[Fault]:
    """Yield equations whose inputs act beyond accelerations."""
    speeds = coupler.with_changes(mu=[0.0] * len(coupler.mu))
    beyond = pulse_growth(*changes(response, _sigma(speeds))) > GROWS
    for equation, far, degree in zip(coupling.equations, beyond, coupler.degrees, strict=True):
        if far and degree == 2:
            what = f"the inputs act on `{equation.text}` only through its third derivative, or later"
            hint = "is an actuator between them? constrain what it acts on, or join the two simulators"
            yield Fault(what, coupling.where, "inputs that act on outputs, speeds or accelerations", hint)
