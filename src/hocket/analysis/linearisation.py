"""Linear models of anything: the scenario with a linear stand-in for every simulator that is not linear.

In:  a Composite, and where it shall be linearised: at its start, at a later time, at given points
Out: the same Composite with stand-ins, and for each simulator how it was obtained and how well it fits
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import Any, cast

import numpy as np

from hocket.analysis.cosimulation_tangents import describe_source, tangent_of_cosimulation
from hocket.analysis.event_identification import announces_events, identify_reactor
from hocket.analysis.identification import ALONE, POOR, identify
from hocket.analysis.linear_models import IdentifiedModel, PeriodicModel, Tangent, named_leaves
from hocket.analysis.linear_reading import is_linear, leaf_children
from hocket.analysis.measure import Measure, Outcome, Rows
from hocket.analysis.pulse_responses import (
    ROUNDING,
    BlackBoxBench,
    OperatingPoint,
    RefusedError,
    relative_error,
)
from hocket.analysis.sampled_models import SampledStandIn
from hocket.analysis.stability import MARGIN
from hocket.analysis.switched_modes import OdeModes, modes_of_ode
from hocket.analysis.tangent_fit import (
    TRIED,
    Look,
    central_differences,
    change_sizes,
    curves_smoothly,
    tangent_error,
)
from hocket.engine.initialise import initialise
from hocket.engine.opening import open_level
from hocket.engine.reference.level import Level
from hocket.errors import Fault, ScenarioError, SimulatorError, suggest_nearest
from hocket.files.plotting import BLUE, RED, new_figure
from hocket.model.clock import Duration, common_tick, format_duration, seconds
from hocket.model.composite import Composite
from hocket.model.protocols import Array, Model
from hocket.plan import Step, walk
from hocket.planning.clocks import clock_of
from hocket.planning.parameters import with_cold_starts, with_leaves
from hocket.planning.planner import plan_tree
from hocket.planning.tree import PlanTree, window_degree, window_obstacles
from hocket.simulators.block import Block
from hocket.simulators.crossing import Detector
from hocket.simulators.fmu.recipe import Fmu
from hocket.simulators.methods import ORDERS, MethodName
from hocket.simulators.ode import Ode
from hocket.simulators.python import Python
from hocket.simulators.recipes import parse_seconds
from hocket.simulators.sampling import Sampling
from hocket.simulators.sources import Csv, Function, Table
from hocket.simulators.state_space import StateSpace
from hocket.simulators.wrappers.windowed import Windowed

PUSHED, FEW_STEPS = 1e-3, 4
"""How far inputs are moved, and for how many steps, to see whether outputs stand still."""
REST = 1e-9
"""Rates below this part of the state in a second are those of an equilibrium."""


@dataclass(frozen=True)
class LinearisationPoint:
    """Where an Ode is linearised: what is left out is as it is in the scenario."""

    x: Sequence[float] | None = None
    u: Sequence[float] | None = None
    t: float | None = None


@dataclass(frozen=True)
class TangentFit:
    """A tangent, how far it is off at small changes, and what the user should know."""

    tangent: Tangent
    fit: float
    notes: tuple[str, ...]
    depends_on_time: bool = False


LATER = tuple(float(unit * part) for unit in (1e-3, 1.0, 60.0, 3600.0) for part in (1.0, 2**0.5, math.pi))
"""Seconds after which equations are evaluated again: what depends on time is not periodic in all of them."""


def tangent_of_ode(model: Ode, simulator: Any, point: LinearisationPoint, t: float, u: Array) -> TangentFit:
    """Return the tangent of an Ode: by its Jacobian where it has one, else by central differences."""
    x = np.array(simulator.x if point.x is None else point.x, dtype=float)
    u = u if point.u is None else np.array(point.u, dtype=float)
    t = t if point.t is None else point.t
    if (x.shape, u.shape) != ((len(model.x0),), (len(model.inputs),)):
        expected = f"{len(model.x0)} states and {len(model.inputs)} inputs"
        raise ScenarioError("the point does not fit the Ode", "at", expected)
    f = model.function(model.f)
    g = None if model.g is None else model.function(model.g)
    n, where = len(x), np.concatenate([x, u])

    def rates_and_outputs(point: Array, t: float = t) -> Array:
        x, u = point[:n], point[n:]
        y = x if g is None else _call_function(g, t, x, u, len(model.outputs))
        return np.concatenate([_call_function(f, t, x, u, n), y])

    now = rates_and_outputs(where)
    same = all(np.array_equal(rates_and_outputs(where, t + later), now) for later in LATER)
    notes: tuple[str, ...] = () if same else (f"explicitly time-dependent: linearised at {t:g} s",)
    refusal: RefusedError | None = None
    for sizes in change_sizes(x, u):
        slopes = central_differences(rates_and_outputs, where, sizes)
        if model.jacobian is not None:
            given = _call_function(model.function(model.jacobian), t, x, u, n**2)
            slopes[:n, :n] = given.reshape(n, n)
        try:
            touch = _fit_tangent(model, rates_and_outputs, n, where, slopes, notes, sizes)
            return replace(touch, depends_on_time=not same)
        except CurvedError as error:
            refusal = refusal or error
    assert refusal is not None
    raise refusal


class CurvedError(RefusedError):
    """Its tangent does not follow it: perhaps it does closer to the point."""


def _call_function(function: Callable[..., Any], t: float, x: Array, u: Array, count: int) -> Array:
    """Return what a function of the user's gives: so many numbers, in one row."""
    try:
        return np.array(function(t, x, u), dtype=float).reshape(count)
    except Exception as error:  # somebody else's code
        raise RefusedError(f"it failed when it was tried: {type(error).__name__}: {error}") from error


def tangent_of_fmu(model: Fmu, place: OperatingPoint) -> TangentFit | None:
    """Return the tangent of a model exchange FMU, from its directional derivatives or from differences.

    None: slopes do not tell all of it, because reals change at events, or at the end of steps only.
    """
    if any(port.held for port in (*model.inputs, *model.outputs)):
        return None
    live = place.simulator
    if model.description.event_indicators:
        moved = BlackBoxBench(place).run([np.zeros((place.powers, len(place.u)))] * ALONE)
    slopes, doubt = live.slopes(place.u[np.newaxis])
    exchange = live.exchange
    n = len(exchange.x)
    if _silent_outputs_move(model, place, slopes[n:]):
        return None

    def rates_and_outputs(point: Array) -> Array:
        found = exchange.probe(point[:n].copy(), point[n:].copy(), len(model.outputs))
        if found is None:
            raise live.fault()
        return np.concatenate(found)

    point, notes = np.concatenate([exchange.x, place.u]), (f"{model.file.name}: {doubt}",) if doubt else ()
    touch = _fit_tangent(model, rates_and_outputs, n, point, slopes, notes, np.maximum(np.abs(point), 1.0))
    if model.description.event_indicators:
        _check_events(touch.tangent, moved, place)
    return touch


def _silent_outputs_move(model: Fmu, place: OperatingPoint, slopes: Array) -> bool:
    """Return whether an output that depends on no state and no input answers to inputs in steps."""
    silent = [
        number
        for number, port in enumerate(model.outputs)
        if port.type == "real" and not slopes[number].any()
    ]
    if not silent or not model.inputs or (place.started and not model.capabilities.rollback):
        return False
    bench = BlackBoxBench(place)
    push = bench.still.copy()
    push[0] = [
        PUSHED * max(1.0, abs(u)) if port.type == "real" else 0.0
        for u, port in zip(place.u, model.inputs, strict=True)
    ]
    free, pushed = (bench.run([each] * FEW_STEPS)[:, silent] for each in (bench.still, push))
    bench.restore_simulator()
    return bool((np.abs(pushed - free) > ROUNDING * np.abs(free).max(axis=0)).any())


def _check_events(tangent: Tangent, moved: Array, place: OperatingPoint) -> None:
    """Refuse an FMU with events whose motion is not that of its tangent: events are not seen in slopes."""
    live, u, h = tangent.open(), place.u[np.newaxis], float(place.h)
    live.start(0.0)
    rows = [live.output(0.0, u)]
    for _ in range(len(moved) - 1):
        live.step(0.0, h, u)
        rows.append(live.output(0.0, u))
    off = relative_error(np.array(rows) - moved[0], moved - moved[0], np.abs(moved).max(axis=0))
    if off > POOR:
        span = f"{(len(moved) - 1) * h:.3g} s"
        raise RefusedError(f"it has events, and does not move as its tangent within {span}")


def _fit_tangent(
    model: Ode | Fmu, look: Look, n: int, point: Array, slopes: Array, notes: tuple[str, ...], sizes: Array
) -> TangentFit:
    """Return the tangent with these slopes at a point whose first n numbers are states."""
    x, there = point[:n], look(point)
    if not (np.isfinite(there).all() and np.isfinite(slopes).all()):
        raise RefusedError("its rates or derivatives are not finite at this point")
    constant = there - slopes @ point
    moving = np.abs(there[:n]) > REST * np.maximum(np.abs(x), 1.0)
    if moving.any():
        state = int(np.argmax(moving))
        notes = (*notes, f"not an equilibrium: x{state + 1} moves by {there[state]:.3g} per second")
    fit = tangent_error(look, point, slopes, sizes)
    if fit > POOR:
        what = f"the residual of its Jacobian is {100.0 * min(fit, 1.0):.0f} % at changes of {TRIED:g}"
        smooth = "it is smooth, but curved: its linear model holds for smaller changes only"
        why = smooth if curves_smoothly(look, point, slopes, sizes) else "it is not smooth at this point"
        raise CurvedError(f"{what}: {why}")
    if (sizes < np.maximum(np.abs(point), 1.0)).any():
        notes = (*notes, f"linear for changes of about {TRIED * sizes.min():.2g} only")
    matrices = slopes[:n, :n], slopes[:n, n:], slopes[n:, :n], slopes[n:, n:]
    fixed = model.method in ORDERS
    solver = (cast("MethodName", model.method), model.step) if fixed else ("exact", None)
    return TangentFit(Tangent(model, *matrices, x, constant[:n], constant[n:], *solver), fit, notes)


SURE = 1e-9
"""A fit below this is that of a linear model: a curved motion may come near, but not so near."""


@dataclass(frozen=True)
class LinearisedLeaf:
    """How one simulator got its linear model."""

    path: str
    how: str
    """exact, constant, jacobian, identified or refused."""
    fit: float
    """The relative error of the model: of the predicted response to a test signal where it is identified, of
    rates and outputs at changes of a thousandth where it is a Jacobian; not a number if refused."""
    states: int
    refused: str = ""
    """Why it has no linear model."""
    notes: tuple[str, ...] = ()
    depends_on_time: bool = False
    """An Ode whose rates depend on time itself: its linear model is that of one moment."""
    mute: bool = False
    """Its pulse responses are zero: it may switch later."""


@dataclass(frozen=True)
class LinearModels(Measure):
    """How each simulator got its linear model."""

    leaves: tuple[LinearisedLeaf, ...]
    title = "linear models"

    @property
    def refused(self) -> tuple[LinearisedLeaf, ...]:
        """Those that have none."""
        return tuple(leaf for leaf in self.leaves if leaf.how == "refused")

    @property
    def fit(self) -> float:
        """The worst fit of all; not a number if one was refused."""
        return math.nan if self.refused else max((leaf.fit for leaf in self.leaves), default=0.0)

    @property
    def outcome(self) -> Outcome:
        """Not judged if one has none."""
        return Outcome.NOT_JUDGED if self.refused else Outcome.GOOD

    def verdict(self) -> list[str]:
        """Return the first that has none, and why."""
        more = f" (and {len(self.refused) - 1} more)" if len(self.refused) > 1 else ""
        return [f"not judged: `{leaf.path}`: {leaf.refused}{more}" for leaf in self.refused[:1]]

    def rows(self) -> Rows:
        """Return a row for each simulator that is not linear."""
        return [
            {
                "simulator": leaf.path,
                "linear model": leaf.how,
                "fit residual": leaf.fit,
                "note": "; ".join(filter(None, (leaf.refused, *leaf.notes))),
            }
            for leaf in self.leaves
            if leaf.how != "exact"
        ]

    def facts(self) -> dict[str, Any]:
        return {self.title: [asdict(leaf) for leaf in self.leaves]}

    def draw(self) -> Any:
        figure, (axes,) = new_figure(7, 1.2 + 0.3 * len(self.leaves))
        for place, leaf in enumerate(self.leaves):
            if leaf.how == "refused":
                axes.text(2e-16, place, leaf.refused[:64], va="center", fontsize="x-small")
            else:
                axes.barh(place, max(leaf.fit, 1e-16), left=1e-17, color=BLUE)
        axes.axvline(POOR, color=RED, linewidth=1.3)
        axes.set_yticks(range(len(self.leaves)), [f"{leaf.path} ({leaf.how})" for leaf in self.leaves])
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.set_xlim(1e-16, 1.0)
        axes.set_xlabel("fit residual of the linear model")
        return figure


@dataclass(frozen=True)
class LinearisedScenario(LinearModels):
    """A scenario with linear stand-ins, and the report on each of its simulators."""

    made: Composite
    """With the originals where there is no stand-in."""
    modes: Mapping[str, OdeModes] = field(default_factory=dict)
    """By path: the modes of what switches. The composite is in those that it starts in."""

    @property
    def composite(self) -> Composite:
        """The linear composite; raises ScenarioError with the reasons if a simulator has no linear model."""
        faults = [
            Fault(f"`{leaf.path}` has no linear model: {leaf.refused}", leaf.path, "a linear response")
            for leaf in self.refused
        ]
        faults += [
            Fault(f"`{path}` has events, and no linear model holds across them", path, "a linear response")
            for path, modes in self.modes.items()
            if modes.has_events
        ]
        if faults:
            raise ScenarioError(faults)
        return self.made


def linearise(
    composite: Composite,
    at: Duration | Mapping[str, LinearisationPoint] | None = None,
    *,
    still: bool = False,
    start: Duration = 0,
    kinks: bool = False,
) -> LinearisedScenario:
    """Return the composite with every simulator that is not linear replaced by a linear stand-in.

    `at` is a time after the start, to which the scenario is run first, or points for some of its Odes, by
    path; `start` is the time at which it starts. Black boxes are identified for the step of their level:
    another step needs another call. With `still`, what cannot be judged and has no inputs stands still: no
    coupling depends on how it moves. With `kinks`, modes of an Ode are looked for that no event leads to.
    """
    design = plan_tree(composite)
    points = at if isinstance(at, Mapping) else {}
    ahead = Fraction(0) if at is None or isinstance(at, Mapping) else _check_time_ahead(at, composite.step)
    names = design.leaves.wiring.names
    for path in points:
        if path not in names:
            raise ScenarioError(f"there is no simulator `{path}`", "at", "", suggest_nearest(path, names))
    if all(map(is_linear, design.leaves.wiring.models)):
        exact = tuple(_exact_leaf(name, model) for name, model in named_leaves(composite))
        return LinearisedScenario(exact, design.composite)
    begin = parse_seconds(start, "start")
    root = open_level(design, clock_of(design, ahead, start=begin))
    looking = max(window_degree(level) for level in design.levels())
    changed: dict[str, Model] = {}
    leaves: list[LinearisedLeaf] = []
    modes: dict[str, OdeModes] = {}
    try:
        initialise(root, float(begin))
        for _ in range(int(ahead / composite.step)):
            root.advance(root.now, root.length, root.inputs[1])
        for level, child, _ in leaf_children(root):
            leaf, stand_in = _linearise_leaf(level, child, points.get(level.name(child)), still, looking)
            found = _find_modes(level, child, leaf, kinks)
            if found is not None:
                modes[leaf.path], stand_in = found, found.tangents[0]
                count = f"{len(found.tangents)} modes" if len(found.tangents) > 1 else "events"
                leaf = replace(leaf, notes=(*leaf.notes, f"it has {count}"))
            leaves.append(leaf)
            changed[leaf.path] = stand_in
    finally:
        root.close()
    made = _with_fitting_start(with_leaves(design.composite, changed), changed, design)
    return LinearisedScenario(tuple(leaves), made, modes)


def _find_modes(level: Level, child: int, leaf: LinearisedLeaf, kinks: bool) -> OdeModes | None:
    """Return the modes of an Ode with a tangent; None: it has one only, and no events."""
    model, simulator = level.wiring.models[child], level.children[child]
    equations = model.ode if isinstance(model, Block) else model
    if not isinstance(equations, Ode) or leaf.how != "jacobian" or not (kinks or equations.events):
        return None
    live: Any = simulator
    t, u = level.clock.time(level.ticks[child]), level.memory.u[child][0].copy()
    found = modes_of_ode(equations, np.array(live.x, dtype=float), u, t, kinks)
    if found is None or equations is model:
        return found
    return replace(found, tangents=tuple(replace(each, stands_for=model) for each in found.tangents))


def _check_time_ahead(at: Duration, step: Fraction) -> Fraction:
    time = parse_seconds(at, "at")
    if time < 0 or (time / step).denominator != 1:
        steps = f"a whole number of steps of {format_duration(step)}"
        raise ScenarioError(f"{format_duration(time)} is not {steps}", "at")
    return time


def _exact_leaf(path: str, model: Any) -> LinearisedLeaf:
    return LinearisedLeaf(path, "exact", 0.0, len(model.A) if isinstance(model, (StateSpace, Tangent)) else 0)


def _linearise_leaf(
    level: Level, child: int, point: LinearisationPoint | None, still: bool, looking: int
) -> tuple[LinearisedLeaf, Model]:
    """Return what is known of a leaf, and what stands for it; `looking` is the degree of the start window."""
    model, path = level.wiring.models[child], level.name(child)
    simulator: Any = level.children[child]
    if point is not None and not isinstance(model, Ode):
        raise ScenarioError(f"`{path}` is not an Ode", "at", "a time, for all simulators")
    if isinstance(model, Windowed):
        why = "its windows hand on curves, and the linear reading carries values"
        return LinearisedLeaf(path, "refused", math.nan, 0, why), model
    if is_linear(model):
        return _exact_leaf(path, model), model
    level.feed(child)
    t, u = level.clock.time(level.ticks[child]), level.memory.u[child][0].copy()
    if isinstance(model, (Function, Table, Csv)):
        return _constant_leaf(path, model, simulator, t, u, (f"as it is at {t:g} s",))
    if isinstance(model, Python) and model.sampling is not None:
        return _sampled_leaf(path, model, model.sampling, t, u)
    if isinstance(model, Detector):
        why = "it looks for crossings: steps end where it finds one, and what reacts to it switches"
        return LinearisedLeaf(path, "refused", math.nan, 0, why), model
    if isinstance(model, Block) and not model.inputs:
        return _constant_leaf(path, model, simulator, t, u, (f"as it is at {t:g} s",))
    if isinstance(model, Block) and model.switches:
        return LinearisedLeaf(path, "refused", math.nan, 0, model.switches), model
    place = _operating_place(level, child, u, looking)
    if not isinstance(model, Ode) and announces_events(model, simulator):
        return _reactor_leaf(path, place, level.wiring.used_outputs(child))
    try:
        if isinstance(model, Block) and model.ode is not None:
            touch = tangent_of_ode(model.ode, simulator, LinearisationPoint(), t, u)
            touch = replace(touch, tangent=replace(touch.tangent, stands_for=model))
        elif isinstance(model, Ode):
            touch = tangent_of_ode(model, simulator, point or LinearisationPoint(), t, u)
        elif isinstance(model, Fmu) and model.exchange and not model.is_isolated:
            found = tangent_of_fmu(model, place)
            if found is None:
                return _identify_leaf(path, place, still)
            touch = found
        else:
            return _identify_leaf(path, place, still)
    except (RefusedError, SimulatorError) as error:
        why = error.faults[0].what if isinstance(error, SimulatorError) else str(error)
        return LinearisedLeaf(path, "refused", math.nan, 0, why), model
    states, moves = len(touch.tangent.A), touch.depends_on_time
    leaf = LinearisedLeaf(path, "jacobian", touch.fit, states, notes=touch.notes, depends_on_time=moves)
    return leaf, touch.tangent


def _constant_leaf(
    path: str, model: Model, simulator: Any, t: float, u: Array, notes: tuple[str, ...]
) -> tuple[LinearisedLeaf, Model]:
    """Return what stands still, with the outputs it has now."""
    y = np.array(simulator.output(t, u[np.newaxis]), dtype=float).reshape(-1)
    return LinearisedLeaf(path, "constant", 0.0, 0, notes=notes), Tangent.static(model, shift=y)


def _identify_leaf(path: str, place: OperatingPoint, still: bool) -> tuple[LinearisedLeaf, Model]:
    if (given := tangent_of_cosimulation(place)) is not None:
        tangent, fit = given
        leaf = LinearisedLeaf(path, "jacobian", fit, len(tangent.A), notes=(describe_source(fit),))
        return leaf, tangent
    found, model = identify(place), place.model
    made = found.stand_in
    if made is not None:
        grows = float(np.abs(np.linalg.eigvals(made.F)).max(initial=0.0)) > 1.0 + MARGIN
        if model.inputs or found.fit <= SURE or not grows:
            states, notes = len(made.F), found.notes
            return LinearisedLeaf(path, "identified", found.fit, states, "", notes, mute=found.mute), made
    why = found.refused or "it grows by itself, and without inputs nobody can tell whether it goes on"
    if not still or model.inputs:
        return LinearisedLeaf(path, "refused", math.nan, 0, why, found.notes), model
    t = float(place.t)
    notes = f"as it is at {t:g} s: {why}", "no inputs: no coupling depends on it"
    return _constant_leaf(path, model, place.simulator, t, place.u, notes)


def _reactor_leaf(path: str, place: OperatingPoint, used: set[int]) -> tuple[LinearisedLeaf, Model]:
    """Return what announces its events, identified from event to event."""
    found, stand_in = identify_reactor(place, used)
    if stand_in is None:
        return LinearisedLeaf(path, "refused", math.nan, 0, found.refused, found.notes), place.model
    states = len(stand_in.x0)
    return LinearisedLeaf(path, "identified", found.fit, states, "", found.notes, mute=found.mute), stand_in


def _sampled_leaf(
    path: str, model: Python, sampling: Sampling, t: float, u: Array
) -> tuple[LinearisedLeaf, Model]:
    """Return a model that is sampled at announced times, identified from what it does with a sample."""
    if sampling.jitter is not None:
        why = "the times of its samples have jitter, and no period"
        return LinearisedLeaf(path, "refused", math.nan, 0, why), model
    bare = model.without_sampling()
    live = bare.open()
    try:
        live.start(t)
        place = OperatingPoint(bare, live, seconds(t), sampling.period, u, 1, False, False)
        leaf, inside = _identify_leaf(path, place, still=False)
    finally:
        live.close()
    if leaf.how == "refused":
        return leaf, model
    if not isinstance(inside, IdentifiedModel):
        why = "it makes fixed steps inside that its period is not a multiple of"
        return LinearisedLeaf(path, "refused", math.nan, 0, why), model
    return leaf, SampledStandIn(model, inside, sampling)


def _operating_place(level: Level, child: int, u: Array, looking: int) -> OperatingPoint:
    """Return where a black box stands: time, step, powers of its inputs."""
    model, tick, name = level.wiring.models[child], level.ticks[child], level.wiring.names[child]
    steps = (each for _, each in walk(level.plan.step) if isinstance(each, Step) and each.sim == name)
    honoured = model.capabilities.input_degree
    degree = max(level.memory.degrees[child], looking if honoured is None else min(looking, honoured))
    return OperatingPoint(
        model,
        level.children[child],
        level.clock.start + tick * level.clock.tick,
        level.tree.composite.step * common_tick(each.fraction for each in steps),
        u,
        degree + 1,
        level.memory.sloped[child],
        tick != 0,
    )


def _with_fitting_start(composite: Composite, changed: Mapping[str, Model], design: PlanTree) -> Composite:
    """Return the composite with cold starts where a past would need other steps than were identified."""
    steps = [model.h for model in changed.values() if isinstance(model, IdentifiedModel)]
    past = [level.composite.step for level in design.levels() if window_degree(level)]
    fits = all((other / own).denominator == 1 for own in steps for other in past)
    fits = fits and not (past and any(isinstance(model, PeriodicModel) for model in changed.values()))
    return composite if fits or window_obstacles(design.leaves) else with_cold_starts(composite)
