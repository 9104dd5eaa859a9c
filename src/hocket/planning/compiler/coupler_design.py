"""The Coupler of a coupling: its simulators are tried, and what they answer becomes numbers.

In:  a ConstraintGroup, the scenario with ports at every level that an equation reaches into
Out: a Coupler, and which models must be given slopes; or the conditions that are not met
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hocket.coupling.constraint_groups import ConstraintGroup, find_equation_port, is_level_input
from hocket.errors import Fault, HocketError, ScenarioError, raise_faults
from hocket.model.composite import as_level, traits_of
from hocket.model.equations import Equation
from hocket.model.ports import Port
from hocket.model.protocols import Array, InitialisationSimulator, Model, provides
from hocket.model.scenario import Scenario
from hocket.simulators.constraint import Coupler
from hocket.simulators.wrappers.derivatives import Sloped

if TYPE_CHECKING:
    from hocket.model.composite import Composite


GROWS = 1.75
"""What a pulse over one step has done after a second step, over what it had done after the first: up to one
where an input acts on an output or its speed, three where it acts on an acceleration, seven beyond."""
SINGULAR = 1e-10
NUDGES = (1.0, 1e-3)
"""By how much inputs are moved; the smaller one where the larger is not borne."""


class TrialError(Exception):
    """A simulator does not bear to be tried; the arguments say which, and what it said."""


@dataclass(frozen=True)
class Moment:
    """Values of all ports in the equations, and the slopes of those whose models tell them."""

    values: dict[str, float]
    slopes: dict[str, float]


class PulseTrial(NamedTuple):
    """At the start, after a step under some inputs, and after one more under none."""

    start: Moment
    after: Moment
    later: Moment


@dataclass(frozen=True)
class Response:
    """Trials: one as things are, and one for each determined input moved by `nudge`."""

    base: PulseTrial
    moved: tuple[PulseTrial, ...]
    nudge: float


@dataclass(frozen=True)
class SensitivityBench:
    """Live simulators, tried over and over from their start."""

    models: Mapping[str, Model]
    reads: Sequence[str]
    determined: Sequence[str]
    """Paths of outputs, and of inputs."""
    step: float
    constants: Mapping[str, float]
    """What comes from outside the level."""

    def response(self) -> Response:
        """Try each determined input; raises TrialError."""
        with self._open_simulators() as (live, saved):
            first = np.array([self._start(path) for path in self.determined])
            base = self._trial(live, saved, first, first)
            for nudge in NUDGES:
                try:
                    units = np.eye(len(first))
                    moved = [self._trial(live, saved, first + nudge * unit, first) for unit in units]
                    return Response(base, tuple(moved), nudge)
                except TrialError as error:
                    failed = error
            raise failed

    def _start(self, path: str) -> float:
        owner, _, name = path.partition(".")
        return next(port.start or 0.0 for port in self.models[owner].inputs if port.name == name)

    @contextmanager
    def _open_simulators(self) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        live: dict[str, Any] = {}
        saved: dict[str, Any] = {}
        try:
            for name, model in self.models.items():
                with _report_trial_errors(name):
                    live[name] = simulator = self._open(name)
                    if model.capabilities.rollback:
                        saved[name] = simulator.save()
            yield live, saved
        finally:
            for simulator in live.values():
                with suppress(Exception):  # what was learned counts
                    simulator.close()

    def _open(self, name: str) -> Any:
        """Return a simulator at its start."""
        simulator = self.models[name].open()
        simulator.start(0.0)
        simulator.output(0.0, self._inputs(name, {}))
        if provides(simulator, InitialisationSimulator):
            simulator.ready()
        return simulator

    def _inputs(self, owner: str, given: Mapping[str, float]) -> Array:
        ports = self.models[owner].inputs
        u = [given.get(f"{owner}.{port.name}", port.start or 0.0) for port in ports]
        return np.array([u], dtype=float).reshape(1, len(ports))

    def _trial(self, live: dict[str, Any], saved: dict[str, Any], u: Array, after: Array) -> PulseTrial:
        given, none = (dict(zip(self.determined, each.tolist(), strict=True)) for each in (u, after))
        for name in live:
            with _report_trial_errors(name):
                if name in saved:
                    live[name].restore(saved[name])
                else:  # it cannot roll back: it is opened anew
                    live[name].close()
                    live[name] = self._open(name)
        moments = [self._moment(live, 0.0, given)]
        for number, inputs in enumerate((given, none)):
            for name, simulator in live.items():
                with _report_trial_errors(name):
                    simulator.step(number * self.step, self.step, self._inputs(name, inputs))
            moments.append(self._moment(live, (number + 1) * self.step, inputs))
        return PulseTrial(*moments)

    def _moment(self, live: dict[str, Any], t: float, given: Mapping[str, float]) -> Moment:
        values, slopes = {**self.constants, **given}, dict.fromkeys(given, 0.0)
        for name, simulator in live.items():
            model = self.models[name]
            with _report_trial_errors(name):
                u = self._inputs(name, given)
                y = np.array(simulator.output(t, u), dtype=float).reshape(-1)
                dy = np.array(simulator.slope(t, u), dtype=float) if model.capabilities.slopes else None
            for number, port in enumerate(model.outputs):
                if (path := f"{name}.{port.name}") in self.reads:
                    values[path] = float(y[number])
                    if dy is not None and port.name not in model.capabilities.slopeless:
                        slopes[path] = float(dy[number])
        if not all(map(np.isfinite, values.values())):
            path = next(path for path, value in values.items() if not np.isfinite(value))
            raise TrialError(path, f"is {values[path]}")
        return Moment(values, slopes)


@contextmanager
def _report_trial_errors(name: str) -> Iterator[None]:
    try:
        yield
    except HocketError as error:
        raise TrialError(name, error.faults[0].what) from error
    except Exception as error:
        raise TrialError(name, f"{type(error).__name__}: {error}") from error


def changes(response: Response, evaluate: Callable[[Moment, Moment], Any]) -> tuple[Array, Array]:
    """Return by how much something changes per unit of each input, after the step and one step later.

    What is evaluated depends on the moment, and on the one a step before.
    """
    found = []
    for now in (1, 2):
        base, *moved = (
            np.array(evaluate(trial[now], trial[now - 1]), dtype=float)
            for trial in (response.base, *response.moved)
        )
        columns = [each - base for each in moved]
        found.append(np.array(columns).T.reshape(len(base), len(columns)) / response.nudge)
    return found[0], found[1]


def outputs_reacting_at_once(response: Response) -> set[str]:
    """Return the outputs to which a determined input has direct feedthrough."""
    start = response.base.start.values
    return {
        path
        for trial in response.moved
        for path, value in trial.start.values.items()
        if abs(value - start[path]) > 1e-12 * max(1.0, abs(value))
    }


def equations_acted_at_once(response: Response, equations: Sequence[Equation]) -> Array:
    """Return per equation whether a determined input acts on it at once."""
    base = np.array(residuals(equations, response.base.start))
    moved = [np.array(residuals(equations, trial.start)) for trial in response.moved]
    largest = np.max([np.abs(each - base) for each in moved], axis=0, initial=0.0)
    return np.asarray(largest > 1e-12 * np.maximum(1.0, np.abs(base)))


def midpoint_values(now: Moment, before: Moment) -> dict[str, float]:
    """Return the values in the middle of a step."""
    return {path: 0.5 * (value + before.values[path]) for path, value in now.values.items()}


def pulse_growth(now: Array, later: Array) -> Array:
    """Return per equation by how much the answer to a pulse grows in the step after it."""
    first, then = np.abs(now).max(axis=1, initial=0.0), np.abs(later).max(axis=1, initial=0.0)
    return np.where(then > 0.0, then / np.maximum(first, 1e-300), 0.0)


def residuals(equations: Sequence[Equation], moment: Moment) -> list[float]:
    """Return left - right of each equation."""
    return [float(equation.residual(moment.values)) for equation in equations]


def invert_sensitivity(S: Array, equations: Sequence[str], inputs: Sequence[str], where: str) -> Array:
    """Return the inverse of how equations react to inputs; raises ScenarioError where there is none."""
    deaf = [text for text, row in zip(equations, S, strict=True) if not np.abs(row).max() > 0.0]
    listed = " and ".join(f"`{path}`" for path in inputs)
    if deaf:
        what = f"`{deaf[0]}` does not react to {listed} within a step"
        hint = "is there a way from these inputs to the outputs in it? does it act later than a step?"
        raise ScenarioError(what, where, "inputs that act on what is asked of them", hint)
    idle = [path for path, column in zip(inputs, S.T, strict=True) if not np.abs(column).max() > 0.0]
    if idle:
        what = f"`{idle[0]}` has no influence on the equations"
        raise ScenarioError(what, where, "inputs that act on what is asked of them")
    rows = S / np.abs(S).max(axis=1, keepdims=True)
    scaled = rows / np.abs(rows).max(axis=0, keepdims=True)
    sizes = np.linalg.svd(scaled, compute_uv=False)
    if sizes[-1] < SINGULAR * sizes[0]:
        what = f"the equations cannot tell {listed} apart: they react to them in the same way"
        hint = "one equation may follow from the others; for a force and its counterforce, say which is which"
        raise ScenarioError(what, where, "equations that do not depend on each other", hint)
    return np.array(np.linalg.inv(S), dtype=np.float64)


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
) -> CouplerDesign:
    """Return the Coupler; raises ScenarioError where there is none.

    `gap` is what equations may be short of at the start, as a part of the values in them.
    """
    # a level with step control begins with a short step: what its inputs are then must be told
    step = float(level.step * traits_of(level.orchestrator).first)
    models = {name: scenario.models[name] for name in coupling.models}
    sloped: dict[str, Model] = {}
    while True:
        try:
            response = _bench(scenario, coupling, models | sloped, step).response()
        except TrialError as error:
            what = f"`{error.args[0]}` was tried over a step of {step:g} s: {error.args[1]}"
            expected = "simulators that bear steps from their start values"
            raise ScenarioError(what, coupling.where, expected) from None
        raise_faults(_undefined_faults(coupling, response))
        second = pulse_growth(*changes(response, lambda now, _: residuals(coupling.equations, now))) > GROWS
        lacking = _missing_rates(coupling, second, response)
        if not lacking:
            break
        sloped |= _with_slopes(coupling, lacking, models, level)
    degrees = np.where(
        second, 2, np.where(equations_acted_at_once(response, coupling.equations), 0, 1)
    ).tolist()
    coupler = _coupler(scenario, coupling, degrees, float(level.step), outputs_reacting_at_once(response))
    raise_faults(_law_faults(coupling, coupler))
    s, rates = _sigma_at(coupler, response.base.start)
    known = [rate if degree == 2 else each for rate, each, degree in zip(rates, s, degrees, strict=True)]
    coupler = replace(coupler, start_rates=known)
    raise_faults(_rate_faults(coupling, coupler, response))
    started = _start_faults(coupling, coupler, response, sloped, gap)
    raise_faults([*started, *_third_derivative_faults(coupling, coupler, response)])
    S, _ = changes(response, _sigma(coupler, step))
    W = invert_sensitivity(S, coupler.equations, coupling.determines, coupling.where)
    start = _start_values(coupling, coupler, response, S, step)
    return CouplerDesign(coupling, replace(coupler, W=W.tolist(), start=start.tolist(), over=step), sloped)


def _sigma_at(coupler: Coupler, moment: Moment) -> tuple[list[float], list[float]]:
    """Return s of each equation at a moment, as if g' had not changed, and g'."""
    rates = coupler.residual_rates(moment.values, moment.slopes)
    g_rates = [float(rates[number][1]) if number in rates else 0.0 for number in range(len(coupler.degrees))]
    s = coupler.sigma(moment.values, moment.slopes, moment.values, g_rates, 1.0)
    return [float(each) for each in s], g_rates


def _law_faults(coupling: ConstraintGroup, coupler: Coupler) -> Iterator[Fault]:
    """Yield laws of equations that have no accelerations, or are solved within a step."""
    zipped = list(zip(coupling.laws, coupler.degrees, coupling.equations, strict=True))
    for law, degree, equation in zipped:
        served = any(other is law and each == 2 for other, each, _ in zipped)
        if law.law != "sliding" and not served:
            what = (
                f"the law `{law.law}` is for inputs that act on accelerations; on `{equation.text}` they act "
            )
            yield Fault(what + ("on speeds" if degree else "at once"), f"{coupling.where}.law", "no `law`")
        if degree == 0 and law.once and not set(equation.paths) <= set(coupling.determines):
            what = f"inputs act on `{equation.text}` at once, and `once` corrects them for the next step"
            yield Fault(what, f"{coupling.where}.once", "inputs that act on speeds or accelerations")


def _start_values(
    coupling: ConstraintGroup, coupler: Coupler, response: Response, sensitivity: Array, step: float
) -> Array:
    """Return the determined inputs at the start.

    Those that act on their equations at once solve them as they are then, to first order; the others are
    those of the first step: no equation tells what they are at the start.
    """
    base = response.base
    first = np.array([base.after.values[path] for path in coupling.determines])
    matrix, short = sensitivity.copy(), np.array(_sigma(coupler, step)(base.after, base.start))
    now = np.array(residuals(coupling.equations, base.start))
    moved = np.array([np.array(residuals(coupling.equations, trial.start)) - now for trial in response.moved])
    at_once = np.array(coupler.degrees) == 0
    matrix[at_once], short[at_once] = (moved.T / response.nudge)[at_once], now[at_once]
    if np.linalg.cond(matrix) > 1.0 / SINGULAR:
        matrix, short = sensitivity, np.array(_sigma(coupler, step)(base.after, base.start))
    return np.asarray(first - np.linalg.solve(matrix, short))


def draft_coupler(scenario: Scenario, coupling: ConstraintGroup) -> CouplerDesign:
    """Return the Coupler as far as it is known while nothing is opened."""
    return CouplerDesign(coupling, _coupler(scenario, coupling, [1] * len(coupling.equations), 1.0, ()), {})


def _bench(
    scenario: Scenario, coupling: ConstraintGroup, models: Mapping[str, Model], step: float
) -> SensitivityBench:
    own = [path for path in coupling.reads if is_level_input(scenario, path)]
    return SensitivityBench(
        models,
        [path for path in coupling.reads if path not in own],
        coupling.determines,
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
) -> dict[str, Model]:
    """Return models that tell slopes by differences; raises ScenarioError where that cannot be."""
    found: dict[str, Model] = {}
    for path in lacking:
        owner = path.partition(".")[0]
        model = models.get(owner)
        if model is None:
            why = "comes from outside the level"
        elif as_level(model):
            why = f"is inside a level without slopes, `{owner}`"
        elif not model.capabilities.variable_step:
            why = f"cannot be found by short trial steps: `{owner}` accepts only the step of its level"
        else:
            found[owner] = Sloped(model, level.step / TRIAL)
            continue
        what = f"inputs act on accelerations, so the time derivative of `{path}` is needed; it {why}"
        hint = f'name the output that is its derivative: rates = {{ "{path}" = "..." }}'
        raise ScenarioError(what, coupling.where, "a rate, or slopes", hint)
    return found


def _sigma(coupler: Coupler, step: float) -> Callable[[Moment, Moment], list[float]]:
    return lambda now, before: coupler.sigma(
        now.values, now.slopes, midpoint_values(now, before), _sigma_at(coupler, before)[1], step
    )


def _coupler(
    scenario: Scenario, coupling: ConstraintGroup, degrees: list[int], step: float, at_once: Collection[str]
) -> Coupler:
    """Return the Coupler as far as it is known before W is, for this step of the level."""

    def ports(paths: tuple[str, ...]) -> list[Port]:
        return [Port(path, (find_equation_port(scenario, path) or Port(path)).unit) for path in paths]

    middle = dict.fromkeys(
        path
        for equation, degree in zip(coupling.equations, degrees, strict=True)
        if degree == 0
        for path in equation.paths
        if path in coupling.reads and path not in at_once
    )
    laws = [law.law_weights(step) for law in coupling.laws]
    others = any(law.law != "sliding" for law in coupling.laws)
    return Coupler(
        [equation.text for equation in coupling.equations],
        ports(coupling.reads),
        ports(coupling.determines),
        np.zeros((len(coupling.determines), len(degrees))).tolist(),
        degrees,
        [law[0] if degree == 2 else 0.0 for law, degree in zip(laws, degrees, strict=True)],
        dict(coupling.rates),
        tuple(middle),
        laws=laws if others else (),
        once=coupling.once,
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
    return any(trial[when].values[path] != base[when].values[path] for when in (1, 2))


def _start_faults(
    coupling: ConstraintGroup, coupler: Coupler, response: Response, sloped: Collection[str], gap: float
) -> Iterator[Fault]:
    """Yield what does not hold at the start, though no input can change it at once.

    Slopes by differences are not exact enough to be judged.
    """
    start, known = response.base.start, dict(coupling.rates)
    for equation, degree, law in zip(coupling.equations, coupler.degrees, coupling.laws, strict=True):
        if degree == 0 or law.closes:
            continue  # the first step puts it right, or it is closed on the way
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
    speeds = replace(coupler, mu=[0.0] * len(coupler.mu), laws=())
    beyond = pulse_growth(*changes(response, _sigma(speeds, 1.0))) > GROWS
    for equation, far, degree in zip(coupling.equations, beyond, coupler.degrees, strict=True):
        if far and degree == 2:
            what = f"the inputs act on `{equation.text}` only through its third derivative, or later"
            hint = "is an actuator between them? constrain what it acts on, or join the two simulators"
            yield Fault(what, coupling.where, "inputs that act on outputs, speeds or accelerations", hint)
