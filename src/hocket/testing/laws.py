"""The laws of extrapolators and orchestrators, and those of stepping, which every simulator obeys.

In:  an Extrapolator; an Orchestrator and a Scenario; a bench with a Model and inputs to try it under
Out: what does not hold, in words; a LawBroken
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from hocket.model.composite import (
    CapabilityRequest,
    DemandingOrchestrator,
    Orchestrator,
    OrchestratorTraits,
    traits_of,
)
from hocket.model.extrapolators import shift_origin, value_at
from hocket.model.protocols import Array, EventSimulator, Extrapolator, Model, Sample, Simulator, provides
from hocket.model.scenario import Scenario
from hocket.plan import Plan
from hocket.plan.verify.verifier import verify_plan
from hocket.planning.compiler.capabilities import CAPABILITIES


class LawBroken(AssertionError):  # noqa: N818 - it is read as a sentence
    """A law does not hold: `law` names it."""

    def __init__(self, law: str, what: str):
        self.law = law
        super().__init__(f"law broken: {law}\n  {what}")


class CallFailed(Exception):  # noqa: N818 - it is read as a sentence
    """A call that a law makes raised an exception, which is its cause."""


def check_laws(laws: Mapping[str, Callable[..., Iterator[str]]], *subject: Any) -> None:
    """Check laws in their order; raises LawBroken for the first that does not hold."""
    for law, faults in laws.items():
        try:
            for what in faults(*subject):
                raise LawBroken(law, what)
        except CallFailed as failure:
            raise LawBroken(law, str(failure)) from failure.__cause__


def arrays_equal(ones: Sequence[Array], others: Sequence[Array]) -> bool:
    """Say whether the arrays hold the same numbers."""
    return all(np.array_equal(one, other, equal_nan=True) for one, other in zip(ones, others, strict=True))


def check_extrapolator(extrapolator: Extrapolator) -> None:
    """Check every law of an extrapolator; raises LawBroken for the first that does not hold."""
    check_laws(EXTRAPOLATOR_LAWS, extrapolator)


_TIMES = np.array([-2.5, -2.1, -1.3, -1.2, -0.7, -0.45, -0.1, 0.0, 0.25, 0.8])
"""Uneven, on both sides of the start of the step; repeated further back if more are needed."""


def _make_samples(
    values: Callable[[float], Any], slopes: Callable[[float], Any] | None, count: int
) -> list[Sample]:
    times = np.concatenate([_TIMES - 4.0 * back for back in range(count // len(_TIMES), -1, -1)])[-count:]
    return [Sample(float(s), values(float(s)), slopes(float(s)) if slopes else None) for s in times]


def _fit_history(extrapolator: Extrapolator, samples: Sequence[Sample]) -> tuple[list[Any], Any]:
    """Return the last fit over a history, with memory carried along as the engine does."""
    w = extrapolator.start(samples[0].value)
    coefficients: list[Any] = []
    for end in range(1, len(samples) + 1):
        coefficients, w = extrapolator.fit(list(samples[max(0, end - extrapolator.samples) : end]), w)
    return coefficients, w


def _polynomial_samples(extrapolator: Extrapolator, degree: int, scale: Any = 1.0) -> list[Sample]:
    """Return samples of a polynomial of this degree, with slopes if they are wanted."""
    coefficients = [scale * (1.5 - 0.7 * power) for power in range(degree + 1)]
    rates = [power * coefficient for power, coefficient in enumerate(coefficients)][1:] or [0.0 * scale]
    slopes = (lambda s: value_at(rates, s)) if extrapolator.slopes else None
    return _make_samples(lambda s: value_at(coefficients, s), slopes, extrapolator.samples + 3)


def _check_cold_start(extrapolator: Extrapolator) -> Iterator[str]:
    for count in range(1, extrapolator.samples + 1):
        samples = _make_samples(lambda _: 2.5, (lambda _: 0.0) if extrapolator.slopes else None, count)
        try:
            value = value_at(_fit_history(extrapolator, samples)[0], 0.5)
        except (IndexError, ValueError, TypeError, ZeroDivisionError) as error:
            yield f"fit() of the first {count} samples raised {type(error).__name__}: {error}"
            return
        if abs(value - 2.5) > 1e-9:
            yield f"{count} samples of the constant 2.5 give {value}"


def _check_degree(extrapolator: Extrapolator) -> Iterator[str]:
    for degree in range(extrapolator.degree + 1):
        samples = _polynomial_samples(extrapolator, degree)
        coefficients, _ = _fit_history(extrapolator, samples)
        if len(coefficients) > extrapolator.degree + 1:
            yield f"{len(coefficients)} coefficients, more than degree {extrapolator.degree} has"
        wanted = [1.5 - 0.7 * power for power in range(degree + 1)]
        for s in (0.0, 0.5, 1.0):
            value, true = value_at(coefficients, s), value_at(wanted, s)
            if not abs(value - true) <= 1e-6 * (1.0 + abs(true)):
                yield f"a polynomial of degree {degree} is {value} instead of {true} at {s} s"


def _check_entrywise(extrapolator: Extrapolator) -> Iterator[str]:
    scales = np.array([1.0, -0.3, 7.1])
    together, _ = _fit_history(extrapolator, _polynomial_samples(extrapolator, extrapolator.degree, scales))
    for index, scale in enumerate(scales):
        alone, _ = _fit_history(extrapolator, _polynomial_samples(extrapolator, extrapolator.degree, scale))
        if [float(row[index]) for row in together] != [float(value) for value in alone]:
            yield f"a row of values gives {together}, its entry {index} alone {alone}"


def _check_fit_pure(extrapolator: Extrapolator) -> Iterator[str]:
    samples = _polynomial_samples(extrapolator, extrapolator.degree + 1, np.array([1.0, -0.3, 7.1]))
    _, w = _fit_history(extrapolator, samples)
    newest = samples[-extrapolator.samples :]
    kept = [(sample.s, np.copy(sample.value)) for sample in newest], np.copy(w)
    first, second = (extrapolator.fit(newest, w) for _ in range(2))
    if not arrays_equal(first[0], second[0]) or not np.array_equal(np.copy(w), kept[1]):
        yield "fit() repeated gives other coefficients, or changes the memory"
    if len(newest) != len(kept[0]) or not all(
        sample.s == s and np.array_equal(sample.value, value)
        for sample, (s, value) in zip(newest, kept[0], strict=True)
    ):
        yield "fit() changes the samples"


EXTRAPOLATOR_LAWS: dict[str, Callable[[Extrapolator], Iterator[str]]] = {
    "a cold start makes do with fewer samples": _check_cold_start,
    "polynomials up to the degree are reproduced": _check_degree,
    "rows of values are treated entry by entry": _check_entrywise,
    "fit() is pure": _check_fit_pure,
}
"""What `check_extrapolator` checks, in this order."""


def check_orchestrator(orchestrator: Orchestrator, scenario: Scenario) -> None:
    """Check every law of an orchestrator on a scenario; raises LawBroken for the first that does not hold."""
    check_laws(ORCHESTRATOR_LAWS, orchestrator, scenario)


def _check_plan(orchestrator: Orchestrator, scenario: Scenario) -> Iterator[str]:
    plan, again = (attempt("plan(scenario)", orchestrator.plan, scenario) for _ in range(2))
    if not isinstance(plan, Plan):
        yield f"plan() returned {plan!r:.60}, expected a Plan"
    elif plan != again:
        yield "plan() repeated gives another plan"
    else:
        yield from (str(violation) for violation in verify_plan(plan, scenario))


def _check_traits(orchestrator: Orchestrator, scenario: Scenario) -> Iterator[str]:
    traits = traits_of(orchestrator)
    if not isinstance(traits, OrchestratorTraits):
        yield f"`traits` is {traits!r:.60}, expected OrchestratorTraits"
        return
    outputs = orchestrator.plan(scenario).outputs
    if traits.outputs not in (None, outputs):
        yield f"`traits.outputs` is {traits.outputs!r}, and the plan leaves outputs {outputs}"
    order = () if traits.order in (None, "auto") else traits.order
    ordered = [name for group in order or () for name in ((group,) if isinstance(group, str) else group)]
    for name in (*ordered, *(name for name, _ in traits.rates or ())):
        if name not in scenario.models:
            yield f"`traits` name `{name}`, which is not a model of the scenario"


def _check_needs(orchestrator: Orchestrator, scenario: Scenario) -> Iterator[str]:
    if not isinstance(orchestrator, DemandingOrchestrator):
        return
    for need in attempt("needs(scenario)", lambda: list(orchestrator.needs(scenario))):
        if not isinstance(need, CapabilityRequest):
            yield f"needs() yields {need!r:.60}, expected a CapabilityRequest"
        elif need.capability not in CAPABILITIES:
            yield f"needs() asks for `{need.capability}`, expected one of {', '.join(CAPABILITIES)}"
        else:
            others = [name for name in need.sims if name not in scenario.models]
            yield from (f"needs() names `{name}`, which is not a model of the scenario" for name in others)


ORCHESTRATOR_LAWS: dict[str, Callable[[Orchestrator, Scenario], Iterator[str]]] = {
    "plan() is pure, and the plan verifies": _check_plan,
    "traits describe the plan": _check_traits,
    "needs() asks for capabilities of models": _check_needs,
}
"""What `check_orchestrator` checks, in this order."""


def attempt(words: str, call: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a call gives; `words` say what was tried."""
    try:
        return call(*arguments)
    except Exception as error:
        raise CallFailed(f"{words} raised {type(error).__name__}: {error}") from error


class LawBench:
    """A model with inputs to try it under."""

    def __init__(self, model: Model, t: float, h: float, u: ArrayLike | None, seed: int):
        self.model, self.t, self.h = model, t, h
        self.rng = np.random.default_rng(seed)
        self.width = len(model.inputs)
        honoured = model.capabilities.input_degree
        self.degree = (8 if honoured is None else honoured) if self.width else 0
        if u is None:
            starts = [port.start or 0.0 for port in model.inputs]
            u = np.array(starts) + self.rng.uniform(0.5, 1.5, self.width)
        given = np.array(u, dtype=float)
        self.u: Array = given.reshape(-1, self.width) if self.width else np.zeros((1, 0))
        if len(self.u) == 1 and self.degree:
            self.u = np.vstack([self.u, self.noise() / (10.0 * h)])

    def noise(self) -> Array:
        """Return a random number for each input, of the size of its value and never small."""
        size = 0.3 * self.rng.uniform(0.5, 1.0, self.width) * self.rng.choice([-1.0, 1.0], self.width)
        return np.asarray(size * (1.0 + np.abs(self.u[0])))

    @contextmanager
    def simulator(self) -> Iterator[Any]:
        """Give a started simulator; close it afterwards."""
        simulator = self.model.open()
        try:
            simulator.start(self.t)
            yield simulator
        finally:
            simulator.close()

    def outputs(self, simulator: Simulator, t: float, u: Array) -> Array:
        """Return a copy of the outputs, as numbers."""
        return np.array(simulator.output(t, u), dtype=float).reshape(-1)

    def steps(self, simulator: Simulator, t: float, count: int) -> list[Array]:
        """Make steps; return the outputs after each, under the inputs of that step."""
        seen = []
        for _ in range(count):
            reached = simulator.step(t, self.h, self.u.copy())
            seen.append(self.outputs(simulator, reached, shift_coefficients(self.u, reached - t)))
            t = reached
        return seen

    def after(self, simulator: Simulator, count: int, u: Array | None = None) -> float:
        """Make steps from the start; return the time reached."""
        t = self.t
        for _ in range(count):
            t = simulator.step(t, self.h, (self.u if u is None else u).copy())
        if provides(simulator, EventSimulator) and (due := simulator.due()) is not None and due <= t:
            simulator.react(t, 1, self.u[0].copy(), [False] * self.u.shape[1])
            simulator.commit()  # what happens there is over: outputs are those after it
        return t

    def trace(self, h: float, parts: int, curve: Array) -> Array:
        """Return the outputs after each of eight spans h, each made in so many parts."""
        rows = []
        with self.simulator() as simulator:
            for number in range(8 * parts):
                begin, end = number * h / parts, (number + 1) * h / parts
                simulator.step(self.t + begin, h / parts, shift_coefficients(curve, begin))
                if (number + 1) % parts == 0:
                    rows.append(self.outputs(simulator, self.t + end, shift_coefficients(curve, end)))
        return np.array(rows)


def shift_coefficients(u: Array, s: float) -> Array:
    """Return the coefficients about a time s seconds later."""
    return np.array(shift_origin(list(u), s))


def _check_output_count(bench: LawBench) -> Iterator[str]:
    with bench.simulator() as simulator:
        wanted, got = len(bench.model.outputs), bench.outputs(simulator, bench.t, bench.u).size
        if wanted != got:
            yield f"output() gives {got} numbers for {wanted} ports"


def _check_step_time(bench: LawBench) -> Iterator[str]:
    with bench.simulator() as simulator:
        t = bench.t
        for _ in range(3):
            reached = simulator.step(t, bench.h, bench.u.copy())
            slack = 1e-12 * max(1.0, abs(t), bench.h)
            if not isinstance(reached, (int, float)) or not t - slack <= reached <= t + bench.h + slack:
                yield f"step({t!r}, {bench.h!r}, u) returned {reached!r}"
                return
            t = reached


def _check_output_pure(bench: LawBench) -> Iterator[str]:
    with bench.simulator() as simulator:
        t = bench.after(simulator, 2)
        given = bench.u.copy()
        first = bench.outputs(simulator, t, given)
        if not np.array_equal(given, bench.u):
            yield "output() changes u, which belongs to the caller"
        for why, other in (
            ("repeated", bench.u),
            ("called with other inputs between", bench.u + bench.noise()),
        ):
            bench.outputs(simulator, t, other.copy())
            again = bench.outputs(simulator, t, bench.u.copy())
            if not arrays_equal([first], [again]):
                yield f"output() {why} gives {again} after {first}"


def _check_independence(bench: LawBench) -> Iterator[str]:
    with bench.simulator() as one, bench.simulator() as other:
        before = bench.outputs(one, bench.t, bench.u), bench.outputs(other, bench.t, bench.u)
        again = bench.outputs(one, bench.t, bench.u)
        seen = bench.steps(one, bench.t, 3)
        if not arrays_equal(before, [again, bench.outputs(other, bench.t, bench.u)]):
            yield "stepping one simulator changes the outputs of another"
        elif not arrays_equal(seen, bench.steps(other, bench.t, 3)):
            yield "two simulators of one model answer differently to the same steps"


def _check_output_passive(bench: LawBench) -> Iterator[str]:
    ends = []
    for asked in (False, True):
        with bench.simulator() as simulator:
            t = bench.t
            for _ in range(3):
                if asked:
                    bench.outputs(simulator, t, bench.u + bench.noise())
                t = simulator.step(t, bench.h, bench.u.copy())
            ends.append(bench.outputs(simulator, t, bench.u))
    if not arrays_equal(ends[:1], ends[1:]):
        yield f"three steps end at {ends[0]}, with output() called between them at {ends[1]}"


def _check_restart(bench: LawBench) -> Iterator[str]:
    with bench.simulator() as simulator:
        before = bench.outputs(simulator, bench.t, bench.u)
        seen = bench.steps(simulator, bench.t, 3)
        simulator.start(bench.t)
        again = bench.outputs(simulator, bench.t, bench.u)
        if not arrays_equal([before], [again]):
            yield f"after start() the outputs are {again}, at first they were {before}"
        elif not arrays_equal(seen, bench.steps(simulator, bench.t, 3)):
            yield "after start() the same steps give other outputs"


def _check_feedthrough(bench: LawBench) -> Iterator[str]:
    with bench.simulator() as simulator:
        for moment, count in (("at the start", 0), ("after three steps", 3)):
            t = bench.after(simulator, count)
            before = bench.outputs(simulator, t, bench.u)
            for column, port in enumerate(bench.model.inputs):
                for _ in range(3):
                    u = bench.u.copy()
                    u[:, column] += bench.noise()[column]
                    changed = bench.outputs(simulator, t, u) != before
                    for output, moves in zip(bench.model.outputs, changed, strict=True):
                        if moves and port.name not in output.feedthrough:
                            yield f"{moment} `{output.name}` reacts to `{port.name}`, which it does not list"


Law: TypeAlias = Callable[[LawBench], Iterator[str]]

STEPPING_LAWS: dict[str, Law] = {
    "there is a number for every output": _check_output_count,
    "step() returns a time within the step": _check_step_time,
    "output() is pure": _check_output_pure,
    "simulators of one model are independent": _check_independence,
    "output() leaves the state alone": _check_output_passive,
    "start() returns to the initial state": _check_restart,
    "direct feedthrough to outputs is declared": _check_feedthrough,
}
"""What holds for every simulator, whatever it declares."""
