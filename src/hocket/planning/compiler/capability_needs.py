"""What algorithms, extrapolations and passes ask for: capabilities, of whom, why, and what is lost without.

In:  a level
Out: asks, before anybody has answered
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hocket.coupling.feedthrough import Feedthrough
from hocket.coupling.level_ports import with_level_ports
from hocket.coupling.wiring import Wiring, wire_unchecked
from hocket.errors import ScenarioError, suggest_nearest
from hocket.model.composite import CapabilityRequest, DemandingOrchestrator, as_level, is_sampled, traits_of
from hocket.model.equations import Equation
from hocket.model.protocols import Extrapolator, Model, declared_energy, period_of
from hocket.model.scenario import Scenario
from hocket.planning.compiler.capability_table import feedthrough_origin, walk_models
from hocket.simulators.wrappers.emulation import emulation_layers, innermost_model

if TYPE_CHECKING:
    from hocket.model.composite import Composite


PASSES: dict[str, tuple[tuple[str, str, str], ...]] = {
    "modularity": (
        ("rollback", "those that equations couple make their steps again until these hold", ""),
        ("slopes", "equations are differentiated", "rates are named, or slopes are differences"),
    ),
    "loops": (
        ("feedthrough", "loops are found by what is declared", "loops that are none may be lifted"),
        ("rollback", "whole steps are made again until they agree", 'how = "outputs" is left'),
    ),
    "distribution": (
        ("rollback", "steps are made again when values of other hosts come", "hosts are not iterated"),
    ),
    "accuracy": (
        ("variable step", "a controller tells all how far to step", ""),
        ("rollback", "steps with too large an error are taken back", 'estimate "copy" or "defect" is left'),
    ),
}
"""What passes ask of a level: capability, why, and what is lost without; nothing: they refuse."""


# algorithms


def orchestrator_asks(orchestrator: Any, scenario: Scenario) -> Iterator[CapabilityRequest]:
    """Yield what an algorithm asks of a level, if it says so."""
    if isinstance(orchestrator, DemandingOrchestrator):
        yield from (CapabilityRequest(*each) for each in orchestrator.needs(scenario))


def event_asks(scenario: Scenario) -> Iterator[CapabilityRequest]:
    """Yield what those ask of all who may stop early."""
    early = [name for name, model in scenario.models.items() if model.capabilities.stops_early]
    if early:
        why = f"`{early[0]}` may stop inside a step, and the others go back to meet it there"
        loses = f"`{early[0]}` goes on alone from there, where it can"
        for capability in ("rollback", "variable step"):
            yield CapabilityRequest(capability, tuple(scenario.models), why, loses)


# what is exchanged


def extrapolation_asks(level: Any, wiring: Wiring) -> Iterator[tuple[Extrapolator, CapabilityRequest]]:
    """Yield the needs of the extrapolators: slopes of sources, inputs that follow them."""
    sources: dict[Any, dict[str, None]] = {}
    given: dict[Any, dict[str, None]] = {}
    for child, drives in enumerate(wiring.drives):
        honoured = wiring.models[child].capabilities.input_degree
        for port, drive in enumerate(drives):
            fitted = None if drive is None else _input_extrapolator(level, wiring, child, port)
            if drive is None or fitted is None:
                continue
            if fitted.slopes and drive.child >= 0:
                sources.setdefault(fitted, {}).setdefault(wiring.names[drive.child])
            if honoured is not None and honoured < fitted.degree:
                given.setdefault(fitted, {}).setdefault(wiring.names[child])
    for fitted, names in sources.items():
        yield fitted, CapabilityRequest("slopes", tuple(names), "it goes through values and their slopes")
    for fitted, names in given.items():
        degree = min(level.scenario.models[name].capabilities.input_degree or 0 for name in names)
        why = f"inputs are given as polynomials of degree {fitted.degree}"
        loses = f"what it follows is of degree {degree}: its order is at most {degree + 1}"
        yield fitted, CapabilityRequest("input degree", tuple(names), why, loses)


def _input_extrapolator(level: Any, wiring: Wiring, child: int, port: int) -> Extrapolator | None:
    """Return the extrapolator of an input, as the engine chooses it; None: a hold, or passed on."""
    drive = wiring.drives[child][port]
    if drive is None or drive.extrapolation is not None or drive.child < 0:
        return None if drive is None else drive.extrapolation
    ends = wiring.models[child], wiring.models[drive.child]
    if any(is_sampled(end) or period_of(end) is not None for end in ends):
        return None
    if ends[0].inputs[port].discrete or ends[1].outputs[drive.port].discrete:
        return None
    chosen: Extrapolator = level.extrapolation
    return chosen


def exchange_asks(level: Any, wiring: Wiring) -> Iterator[CapabilityRequest]:
    """Yield what consistent outputs ask for."""
    if traits_of(level.orchestrator).outputs == "stale":
        return
    reacting = [
        name
        for name, model in zip(wiring.names, wiring.models, strict=True)
        if any(port.feedthrough for port in model.outputs)
    ]
    if reacting:
        why = "outputs are evaluated again once inputs are exchanged"
        loses = "its outputs stay as they were under the inputs of the step"
        yield CapabilityRequest("re-evaluation", tuple(reacting), why, loses)
    looped = dict.fromkeys(wiring.names[child] for loop in Feedthrough(wiring).loops for child, _ in loop)
    if looped:
        why = "algebraic loops are found by what is declared"
        loses = "loops that are none may be solved, since all outputs are taken to react to all inputs"
        yield CapabilityRequest("feedthrough", tuple(looped), why, loses)


def needs_past(level: Any) -> bool:
    """Return whether an extrapolator of a level loses order without a past."""
    wiring = wire_unchecked(level.scenario)
    fitted = (
        _input_extrapolator(level, wiring, child, port)
        for child, drives in enumerate(wiring.drives)
        for port in range(len(drives))
    )
    return any(each is not None and each.degree > (2 if each.slopes else 1) for each in fitted)


def concerned_models(name: str, scenario: Scenario) -> tuple[str, ...]:
    """Return the models that a pass has to do with."""
    if name == "modularity":
        equations = [Equation.of(each) for one in scenario.constraints.values() for each in one.equations]
        coupled = {path.partition(".")[0] for equation in equations for path in equation.paths}
        return tuple(model for model in scenario.models if model in coupled)
    if name == "loops":
        wiring = wire_unchecked(scenario)
        inside = {wiring.names[child] for loop in Feedthrough(wiring).loops for child, _ in loop}
        return tuple(model for model in scenario.models if model in inside)
    return tuple(scenario.models)


def name_of(thing: Any) -> str:
    """Return how a file would name an algorithm or an extrapolator."""
    name = type(thing).__name__
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name).strip("-")


@dataclass(frozen=True)
class Need:
    """Something on a level asks for a capability of some of its simulators."""

    by: str
    """`iterate`, `extrapolation hermite`, `the start`, `pass accuracy`."""
    level: str
    """The path of the level; empty: the outermost."""
    capability: str
    why: str
    loses: str = ""
    """What is lost without it; empty: without it the scenario is refused."""
    of: tuple[str, ...] = ()
    """The paths of those it is asked of; of levels those inside."""
    unmet: tuple[str, ...] = ()
    """Those who cannot."""
    emulated: tuple[str, ...] = ()
    """Those who can by an emulation."""
    part: Fraction = Fraction(1)
    """Of any step: the shortest that will be asked for, as a part of the level's."""

    @property
    def is_required(self) -> bool:
        """Whether the scenario is refused without it."""
        return not self.loses

    @property
    def is_met(self) -> bool:
        """Whether all can."""
        return not self.unmet


def needs(level: Composite, passes: Iterable[str] = ()) -> list[Need]:
    """Return what is needed on a level and on all inside it; nothing is opened.

    Passes are asked where the scenario has something for them, and those named here in any case.
    """
    named = tuple(passes)
    for name in named:
        if name not in PASSES:
            raise ScenarioError(f"there is no pass `{name}`", "passes", "", suggest_nearest(name, PASSES))
    prepared: Any = level.with_scenario(with_level_ports(level.scenario))
    return [*_level_needs(prepared, ""), *_start_needs(prepared), *_pass_needs(prepared, named)]


def _pass_needs(level: Any, named: Sequence[str]) -> Iterator[Need]:
    """Yield what passes need of the outermost level and of those inside."""
    for path, each in _levels_by_path(level):
        scenario: Scenario = each.scenario
        due = {"modularity": bool(scenario.constraints), "distribution": scenario.hosts is not None}
        for name, asks in PASSES.items():
            if not (due.get(name, False) or (name in named and not path)):
                continue
            sims = concerned_models(name, scenario)
            for capability, why, loses in asks if sims else ():
                need = Need(f"pass {name}", path, capability, why, loses)
                yield _answer_need(need, each, [f"{path}.{sim}" if path else sim for sim in sims], path)


def _level_needs(level: Any, path: str) -> Iterator[Need]:
    scenario: Scenario = level.scenario
    wiring = wire_unchecked(scenario)
    name = name_of(level.orchestrator)
    for ask in orchestrator_asks(level.orchestrator, scenario):
        yield _need_from_ask(ask, name, level, path)
    for ask in event_asks(scenario):
        yield _need_from_ask(ask, "events", level, path)
    for extrapolation, ask in extrapolation_asks(level, wiring):
        yield _need_from_ask(ask, f"extrapolation {name_of(extrapolation)}", level, path)
    for ask in exchange_asks(level, wiring):
        yield _need_from_ask(ask, name, level, path)
    for bond_name, bond in scenario.bonds.items():
        if bond.balance == "energy":
            need = Need(
                f"bond {bond_name}", path, "energy", "power is balanced by the energy that each stores"
            )
            yield _answer_need(need, level, _simulators_of_ports(level, path, (bond.effort, bond.flow)), path)
    for child, model in scenario.models.items():
        if as_level(model) is not None:
            yield from _level_needs(model, f"{path}.{child}" if path else child)


def _simulators_of_ports(level: Any, path: str, ports: Iterable[str]) -> list[str]:
    """Return the paths of the simulators that have these ports."""
    known = [here for here, model in walk_models(level, path) if as_level(model) is None]
    inside = f"{path}." if path else ""
    return [here for here in known if any(f"{inside}{port}".startswith(f"{here}.") for port in ports)]


def _start_needs(level: Any) -> Iterator[Need]:
    """Yield what a past for the extrapolators asks of all simulators of the tree."""
    looking = [path for path, each in _levels_by_path(level) if each.start == "window" and needs_past(each)]
    if looking:
        everybody = [path for path, model in walk_models(level) if as_level(model) is None]
        for capability in ("rollback", "variable step"):
            why = "extrapolators get a past from a window of steps that is taken back"
            loses = "the start is cold, and the order is capped at 2, or 3 with slopes"
            yield _answer_need(Need("the start", looking[0], capability, why, loses), level, everybody)


def _levels_by_path(level: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    yield path, level
    for here, model in walk_models(level, path):
        if as_level(model) is not None:
            yield here, model


# who can


def _need_from_ask(ask: CapabilityRequest, by: str, level: Any, path: str) -> Need:
    """Return a need with the answers of those it is asked of."""
    need = Need(by, path, ask.capability, ask.why, ask.loses, part=ask.part)
    known = level.scenario.models
    sims = [sim for sim in ask.sims if sim in known]
    if ask.capability == "variable step":
        return _answer_step_need(need, level, sims, ask.divides)
    return _answer_need(need, level, [f"{path}.{sim}" if path else sim for sim in sims], path)


def _answer_need(need: Need, level: Any, paths: Sequence[str], inside: str = "") -> Need:
    """Return the need with who cannot, and who can by an emulation; levels answer by those in them."""
    models = dict(walk_models(level, inside))
    leaves = list(_simulators_inside(models, paths))
    unmet = tuple(path for path in leaves if not has_capability(models[path], need.capability))
    emulated = tuple(
        path
        for path in leaves
        if any(layer.emulates == need.capability for layer in emulation_layers(models[path]))
    )
    return replace(need, of=tuple(leaves), unmet=unmet, emulated=emulated)


def _simulators_inside(models: dict[str, Model], paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        level = as_level(models[path])
        if level is None:
            yield path
        else:
            yield from _simulators_inside(models, (f"{path}.{name}" for name in level.scenario.models))


def _answer_step_need(need: Need, level: Any, sims: Sequence[str], divides: bool) -> Need:
    """Return the need of steps other than the level's; a level inside can where its own step fits."""
    unmet, emulated, inside = [], [], f"{need.level}." if need.level else ""
    for sim in sims:
        model = level.scenario.models[sim]
        own = period_of(model) or (model.step if as_level(model) is not None else None)
        fits = (
            model.capabilities.variable_step
            if own is None
            else _step_fits(model, level.step * need.part / own, divides)
        )
        if not fits:
            unmet.append(f"{inside}{sim}")
        elif any(layer.emulates == "variable step" for layer in emulation_layers(model)):
            emulated.append(f"{inside}{sim}")
    of = tuple(f"{inside}{sim}" for sim in sims)
    return replace(need, of=of, unmet=tuple(unmet), emulated=tuple(emulated))


def _step_fits(model: Any, ratio: Fraction, divides: bool) -> bool:
    if period_of(model) is None and model.capabilities.variable_step:
        return True
    return ratio.denominator == 1 or (ratio.numerator == 1 and not divides)


def has_capability(model: Any, capability: str) -> bool:
    """Return whether a simulator has a capability, by itself or by an emulation."""
    can = model.capabilities
    match capability:
        case "rollback":
            return bool(can.rollback)
        case "variable step":
            return bool(can.variable_step)
        case "slopes":
            return bool(can.slopes)
        case "re-evaluation":
            return bool(can.reevaluates)
        case "input degree":
            return can.input_degree is None
        case "feedthrough":
            return not feedthrough_origin(model).startswith("assumed")
        case "energy":
            return declared_energy(innermost_model(model)) is not None
    return False
