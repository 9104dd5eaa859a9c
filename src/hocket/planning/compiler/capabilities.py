"""What each simulator of a scenario can do, by itself or by an emulation, and what is needed of it.

In:  a level, with levels inside
Out: a table of capabilities (after Gomes 2016, figure 1a); Needs of algorithms, extrapolations and passes,
     with those that can and those that cannot
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hocket.coupling.feedthrough import Feedthrough
from hocket.coupling.level_ports import with_level_ports
from hocket.coupling.wiring import Wiring, wire_unchecked
from hocket.errors import ScenarioError, suggest_nearest
from hocket.model.clock import format_duration
from hocket.model.composite import (
    CapabilityRequest,
    DemandingOrchestrator,
    accepts_any_step,
    as_level,
    levels,
    traits_of,
)
from hocket.model.equations import Equation
from hocket.model.protocols import (
    Extrapolator,
    Model,
    PreferredStepSimulator,
    StoredEnergySimulator,
    declared_energy,
    period_of,
    provides,
)
from hocket.model.scenario import Scenario
from hocket.planning.parameters import leaves, walk_models
from hocket.planning.tree import needs_past
from hocket.simulators.fmu.recipe import Fmu
from hocket.simulators.ode import Ode
from hocket.simulators.python import Python
from hocket.simulators.wrappers.emulation import emulation_layers, innermost_model

if TYPE_CHECKING:
    from hocket.model.composite import Composite


YES, NO = "yes", "no"
CAPABILITIES = {
    "rollback": "rolls back to a state it was in: save() and restore(), canGetAndSetFMUstate",
    "variable step": "takes steps of any length, not only that of its level",
    "slopes": "tells the time derivatives of its outputs",
    "input degree": "the highest power of time in an input that it follows within a step",
    "feedthrough": "says which inputs have direct feedthrough to which outputs",
    "re-evaluation": "its outputs follow new inputs between steps",
    "events": "may end a step early, where an event is",
    "step wish": "says which step it would like",
    "order": "of its solver; empty: exact, or not known",
    "energy": "says how much energy it stores",
    "copies": "may be opened several times",
}
"""The columns, and what they mean."""


@dataclass(frozen=True)
class CapabilityRow:
    """What one simulator, or a level of them, can do."""

    path: str
    kind: str
    capabilities: tuple[tuple[str, str], ...]
    """By the names of CAPABILITIES: yes, no, `emulated: by replay`, or a value."""
    level: bool = False

    def __getitem__(self, capability: str) -> str:
        return dict(self.capabilities)[capability]


@dataclass(frozen=True)
class CapabilityTable:
    """A row for each simulator and each level; a level can what those in it can."""

    able: tuple[CapabilityRow, ...]

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each."""
        return [{"simulator": each.path, "kind": each.kind, **dict(each.capabilities)} for each in self.able]

    def __getitem__(self, path: str) -> CapabilityRow:
        return {each.path: each for each in self.able}[path]


def tabulate_capabilities(level: Composite) -> CapabilityTable:
    """Return the table of a level and all in it; nothing is opened."""
    return CapabilityTable(tuple(_capability_row(path, model) for path, model in walk_models(level)))


def _capability_row(path: str, model: Any) -> CapabilityRow:
    can, bare = model.capabilities, innermost_model(model)
    emulated = {layer.emulates: layer.emulation for layer in reversed(list(emulation_layers(model)))}
    nested = as_level(model) is not None
    period = period_of(model)
    found = {
        "rollback": _yes_or_no(can.rollback),
        "variable step": f"no: sampled every {format_duration(period)}"
        if period
        else _yes_or_no(can.variable_step),
        "slopes": _yes_or_no(can.slopes),
        "input degree": "any" if can.input_degree is None else str(can.input_degree),
        "feedthrough": feedthrough_origin(model),
        "re-evaluation": _yes_or_no(can.reevaluates),
        "events": _yes_or_no(can.stops_early),
        "step wish": _yes_or_no(
            isinstance(bare, Python) and provides(bare._class_facts.cls, PreferredStepSimulator)
        ),
        "order": "" if can.order is None else str(can.order),
        "energy": _yes_or_no(_tells_energy(model)),
        "copies": _copies(model),
    }
    for capability, how in emulated.items():
        if capability in found and " by " in how:
            found[capability] = f"emulated: {how.partition(' by ')[2]}"
    if nested:
        _note_emulations_inside(found, model)
    return CapabilityRow(path, "level" if nested else type(bare).__name__, tuple(found.items()), nested)


def _note_emulations_inside(found: dict[str, str], level: Any) -> None:
    """Say of a level that a capability is emulated where that of one inside is."""
    within = [_capability_row(name, model) for name, model in level.scenario.models.items()]
    for capability in ("rollback", "slopes"):
        how = sorted({each[capability] for each in within if each[capability].startswith("emulated")})
        if found[capability] == YES and how:
            found[capability] = how[0]


def feedthrough_origin(model: Any) -> str:
    """Return how it is known which outputs react to which inputs at once."""
    if as_level(model) is not None:
        return "from inside"
    told = [layer for layer in emulation_layers(model) if layer.emulates == "feedthrough"]
    if told:
        return "emulated: probing" if told[0].probed else "declared"
    bare = innermost_model(model)
    if not bare.inputs or not bare.outputs:
        return "none"
    return "assumed: all" if _assumes_feedthrough(bare) else "declared"


def _assumes_feedthrough(bare: Any) -> bool:
    """Return whether every output is taken to react to every input because nothing else is known."""
    every = tuple(port.name for port in bare.inputs)
    if not any(port.feedthrough == every for port in bare.outputs):
        return False
    if isinstance(bare, Python):
        return "feedthrough" not in bare.declared
    if isinstance(bare, Ode):
        return bare.g is not None
    if isinstance(bare, Fmu):
        told = bare.description.dependencies
        return any(told.get(port.name) is None and port.feedthrough == every for port in bare.outputs)
    return False


def _tells_energy(model: Any) -> bool:
    if level := as_level(model):
        return all(map(_tells_energy, level.scenario.models.values()))
    bare = innermost_model(model)
    if any(layer.emulates == "variable step" for layer in emulation_layers(model)):
        return False
    if isinstance(bare, Python):
        return provides(bare._class_facts.cls, StoredEnergySimulator)
    return declared_energy(bare) is not None


def _copies(model: Any) -> str:
    if level := as_level(model):
        return next((found for found in map(_copies, level.scenario.models.values()) if found != YES), YES)
    bare = innermost_model(model)
    return "one per process" if isinstance(bare, Fmu) and bare.interface_used.only_once else YES


def _yes_or_no(can: bool) -> str:
    return YES if can else NO


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
        ("rollback", "steps with too large an error are rolled back", 'estimate "copy" or "defect" is left'),
    ),
}
"""What passes ask of a level: capability, why, and what is lost without; nothing: they refuse."""


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
    """Those that cannot."""
    emulated: tuple[str, ...] = ()
    """Those that can by an emulation."""
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
    prepared = level.with_scenario(with_level_ports(level.scenario))
    every = [(prefix, each) for prefix, each in levels(prepared)]
    ends_at_events = any(
        model.capabilities.events or model.capabilities.stops_early for _, model in leaves(prepared)
    )
    own = [need for prefix, each in every for need in _level_needs(each, prefix, ends_at_events)]
    made = [need for prefix, each in every for need in _pass_needs(each, prefix, named)]
    return [*own, *_start_needs(prepared), *made]


def _level_needs(level: Composite, prefix: str, ends_at_events: bool) -> Iterator[Need]:
    """Yield what the algorithm of a level, what it exchanges, its events and its bonds need.

    `ends_at_events`: something happens in the tree, so levels inside step to any time if all in them can.
    """
    scenario, algorithm = level.scenario, name_of(level.orchestrator)
    wiring = wire_unchecked(scenario, level.extrapolation)
    asks: list[tuple[str, CapabilityRequest]] = []
    if isinstance(level.orchestrator, DemandingOrchestrator):
        asks += [(algorithm, CapabilityRequest(*ask)) for ask in level.orchestrator.needs(scenario)]
    asks += [("events", ask) for ask in _event_asks(scenario)]
    asks += [(f"extrapolation {name_of(by)}", ask) for by, ask in _extrapolation_asks(level, wiring)]
    asks += [(algorithm, ask) for ask in _exchange_asks(level, wiring)]
    for by, ask in asks:
        need = Need(by, prefix[:-1], ask.capability, ask.why, ask.loses, part=ask.part)
        sims = [sim for sim in ask.sims if sim in scenario.models]
        if ask.capability == "variable step":
            yield _answer_step_need(need, level, sims, ask.divides, ends_at_events)
        else:
            yield _answer_need(need, level, prefix, [f"{prefix}{sim}" for sim in sims])
    for name, bond in scenario.bonds.items():
        if bond.balance == "energy":
            why = "power is balanced by the energy that each stores"
            ports = f"{prefix}{bond.effort}", f"{prefix}{bond.flow}"
            sims = [path for path, _ in leaves(level, prefix) if any(p.startswith(f"{path}.") for p in ports)]
            yield _answer_need(Need(f"bond {name}", prefix[:-1], "energy", why), level, prefix, sims)


def _start_needs(level: Composite) -> Iterator[Need]:
    """Yield what a past for the extrapolators asks of all simulators of the tree."""
    looking = [
        prefix
        for prefix, each in levels(level)
        if each.start == "window"
        and any(map(needs_past, wire_unchecked(each.scenario, each.extrapolation).extrapolators))
    ]
    for capability in ("rollback", "variable step") if looking else ():
        why = "extrapolators get a past from a window of steps that is rolled back"
        loses = "the start is cold, and the order is capped at 2, or 3 with slopes"
        need = Need("the start", looking[0][:-1], capability, why, loses)
        yield _answer_need(need, level, "", [path for path, _ in leaves(level)])


def _pass_needs(level: Composite, prefix: str, named: Sequence[str]) -> Iterator[Need]:
    """Yield what passes need of a level; those that are named are for the outermost one."""
    scenario = level.scenario
    due = {"modularity": bool(scenario.constraints), "distribution": scenario.hosts is not None}
    for name, asks in PASSES.items():
        if due.get(name, False) or (name in named and not prefix):
            sims = [f"{prefix}{sim}" for sim in _concerned_models(name, scenario)]
            for capability, why, loses in asks if sims else ():
                need = Need(f"pass {name}", prefix[:-1], capability, why, loses)
                yield _answer_need(need, level, prefix, sims)


# what is asked for


def _event_asks(scenario: Scenario) -> Iterator[CapabilityRequest]:
    """Yield what those ask of all which may stop early."""
    early = [name for name, model in scenario.models.items() if model.capabilities.stops_early]
    for capability in ("rollback", "variable step") if early else ():
        why = f"`{early[0]}` may stop inside a step, and the others roll back to meet it there"
        loses = f"the events of `{early[0]}` act on the others at the end of the macro step"
        yield CapabilityRequest(capability, tuple(scenario.models), why, loses)


def _extrapolation_asks(level: Composite, wiring: Wiring) -> Iterator[tuple[Extrapolator, CapabilityRequest]]:
    """Yield the needs of the extrapolators: slopes of sources, inputs that follow them."""
    sources: dict[Any, dict[str, None]] = {}
    given: dict[Any, dict[str, None]] = {}
    for child, drives in enumerate(wiring.drives):
        honoured = wiring.models[child].capabilities.input_degree
        for drive in drives:
            if drive is None or (fitted := drive.extrapolation) is None:
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


def _exchange_asks(level: Composite, wiring: Wiring) -> Iterator[CapabilityRequest]:
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


def _concerned_models(name: str, scenario: Scenario) -> tuple[str, ...]:
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


# answers


def _answer_need(need: Need, level: Composite, prefix: str, paths: Iterable[str]) -> Need:
    """Return the need with those that cannot, and those that can by an emulation; levels answer by theirs."""
    of = {
        leaf: model
        for path in paths
        for leaf, model in leaves(level, prefix)
        if leaf == path or leaf.startswith(f"{path}.")
    }
    unmet = tuple(path for path, model in of.items() if not has_capability(model, need.capability))
    emulated = tuple(path for path, model in of.items() if _is_emulated(model, need.capability))
    return replace(need, of=tuple(of), unmet=unmet, emulated=emulated)


def _is_emulated(model: Model, capability: str) -> bool:
    return any(layer.emulates == capability for layer in emulation_layers(model))


def _answer_step_need(
    need: Need, level: Composite, sims: Sequence[str], divides: bool, ends_at_events: bool
) -> Need:
    """Return the need of steps other than the level's; a level inside can where its own step fits."""
    unmet, emulated, inside = [], [], f"{need.level}." if need.level else ""
    for sim in sims:
        model: Any = level.scenario.models[sim]
        own = period_of(model) or (model.step if as_level(model) is not None else None)
        fits = (
            model.capabilities.variable_step
            if own is None
            else _step_fits(model, level.step * need.part / own, divides)
        )
        if not fits and not (ends_at_events and divides and accepts_any_step(model)):
            unmet.append(f"{inside}{sim}")
        elif _is_emulated(model, "variable step"):
            emulated.append(f"{inside}{sim}")
    of = tuple(f"{inside}{sim}" for sim in sims)
    return replace(need, of=of, unmet=tuple(unmet), emulated=tuple(emulated))


def _step_fits(model: Any, ratio: Fraction, divides: bool) -> bool:
    if period_of(model) is None and model.capabilities.variable_step:
        return True
    return ratio.denominator == 1 or (ratio.numerator == 1 and not divides)


_ANSWERS: dict[str, Callable[[Any], bool]] = {
    "rollback": lambda model: model.capabilities.rollback,
    "variable step": lambda model: model.capabilities.variable_step,
    "slopes": lambda model: model.capabilities.slopes,
    "re-evaluation": lambda model: model.capabilities.reevaluates,
    "input degree": lambda model: model.capabilities.input_degree is None,
    "feedthrough": lambda model: not feedthrough_origin(model).startswith("assumed"),
    "energy": lambda model: declared_energy(innermost_model(model)) is not None,
}


def has_capability(model: Model, capability: str) -> bool:
    """Return whether a simulator has a capability, by itself or by an emulation."""
    return capability in _ANSWERS and bool(_ANSWERS[capability](model))
