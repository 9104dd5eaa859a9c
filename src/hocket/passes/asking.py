"""What algorithms, extrapolations and passes ask for: abilities, of whom, why, and what is lost without.

In:  a level
Out: asks, before anybody has answered
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

from hocket.equations import Equation
from hocket.feedthrough import Feedthrough
from hocket.model import Extrapolator, Scenario
from hocket.orchestrators import Asynchronous, Iterate, Multirate
from hocket.orchestrators.adaptive import Adaptive
from hocket.wiring import Wiring, wire_unchecked


class Ask(NamedTuple):
    """A need before anybody is asked: of the children of one level."""

    ability: str
    sims: tuple[str, ...]
    why: str
    loses: str = ""
    part: Fraction = Fraction(1)
    divides: bool = False
    """Whether any multiple of the part may be asked for."""


PASSES: dict[str, tuple[tuple[str, str, str], ...]] = {
    "modularity": (
        ("rewind", "those that equations couple make their steps again until these hold", ""),
        ("slopes", "equations are differentiated", "rates are named, or slopes are differences"),
    ),
    "loops": (
        ("feedthrough", "loops are found by what is declared", "loops that are none may be lifted"),
        ("rewind", "whole steps are made again until they agree", 'how = "outputs" is left'),
    ),
    "distribution": (
        ("rewind", "steps are made again when values of other hosts come", "hosts are not iterated"),
    ),
    "accuracy": (
        ("variable step", "a controller tells all how far to step", ""),
        ("rewind", "steps with too large an error are taken back", 'estimate "copy" or "defect" is left'),
    ),
}
"""What passes ask of a level: ability, why, and what is lost without; nothing: they refuse."""


# algorithms


def orchestrator_asks(orchestrator: Any, scenario: Scenario) -> Iterator[Ask]:
    """Yield what an algorithm asks of a level; one of somebody else's may say it in `needs(scenario)`."""
    everybody = tuple(scenario.models)
    match orchestrator:
        case Adaptive():
            why = "steps are as long as their error allows"
            yield Ask("variable step", everybody, why, "", orchestrator.quantum, True)
            yield from _rollback_asks(orchestrator, everybody)
            yield from orchestrator_asks(orchestrator.inner, scenario)
        case Iterate():
            why = "steps are made again until what is exchanged agrees"
            yield Ask("rewind", everybody, why)
            yield from orchestrator_asks(orchestrator.inner, scenario)
        case Multirate() | Asynchronous():
            fast = [(name, rate) for name, rate in orchestrator.rates if rate > 1 and name in everybody]
            for name, rate in fast:
                why = f"it makes {rate} steps in each step of the level"
                yield Ask("variable step", (name,), why, "", Fraction(1, rate))
            if isinstance(orchestrator, Multirate) and orchestrator.scheme == "compound" and fast:
                slowest = min(
                    rate for _, rate in ((n, dict(orchestrator.rates).get(n, 1)) for n in everybody)
                )
                again = tuple(name for name, rate in fast if rate > slowest)
                yield Ask("rewind", again, "the fast ones predict with one long step, and go back")
        case _ if hasattr(orchestrator, "needs"):
            for ability, sims, why in orchestrator.needs(scenario):
                yield Ask(ability, tuple(sims), why)


def _rollback_asks(control: Adaptive, everybody: tuple[str, ...]) -> Iterator[Ask]:
    if control.estimate == "orders":
        return
    if control.estimate == "richardson":
        yield Ask("rewind", everybody, "each step is made twice, whole and in halves")
    elif control.rejects:
        yield Ask("rewind", everybody, "steps with too large an error are taken back")
    elif control.rejects is None:
        loses = "a step with too large an error stays, the next is shorter"
        yield Ask("rewind", everybody, "steps with too large an error are taken back", loses)


def event_asks(scenario: Scenario) -> Iterator[Ask]:
    """Yield what those ask of all who may stop early."""
    early = [name for name, model in scenario.models.items() if model.abilities.stops_early]
    if early:
        why = f"`{early[0]}` may stop inside a step, and the others go back to meet it there"
        loses = f"`{early[0]}` goes on alone from there, where it can"
        for ability in ("rewind", "variable step"):
            yield Ask(ability, tuple(scenario.models), why, loses)


# what is exchanged


def extrapolation_asks(level: Any, wiring: Wiring) -> Iterator[tuple[Extrapolator, Ask]]:
    """Yield the needs of the extrapolators: slopes of sources, inputs that follow them."""
    sources: dict[Any, dict[str, None]] = {}
    given: dict[Any, dict[str, None]] = {}
    for child, drives in enumerate(wiring.drives):
        honoured = wiring.models[child].abilities.input_degree
        for port, drive in enumerate(drives):
            fitted = None if drive is None else _input_extrapolator(level, wiring, child, port)
            if drive is None or fitted is None:
                continue
            if fitted.slopes and drive.child >= 0:
                sources.setdefault(fitted, {}).setdefault(wiring.names[drive.child])
            if honoured is not None and honoured < fitted.degree:
                given.setdefault(fitted, {}).setdefault(wiring.names[child])
    for fitted, names in sources.items():
        yield fitted, Ask("slopes", tuple(names), "it goes through values and their slopes")
    for fitted, names in given.items():
        degree = min(level.scenario.models[name].abilities.input_degree or 0 for name in names)
        why = f"inputs are given as polynomials of degree {fitted.degree}"
        loses = f"what it follows is of degree {degree}: its order is at most {degree + 1}"
        yield fitted, Ask("input degree", tuple(names), why, loses)


def _input_extrapolator(level: Any, wiring: Wiring, child: int, port: int) -> Extrapolator | None:
    """Return the extrapolator of an input, as the engine chooses it; None: a hold, or passed on."""
    drive = wiring.drives[child][port]
    if drive is None or drive.extrapolation is not None or drive.child < 0:
        return None if drive is None else drive.extrapolation
    ends = wiring.models[child], wiring.models[drive.child]
    if any(getattr(end, "sampled", False) or getattr(end, "period", None) is not None for end in ends):
        return None
    if ends[0].inputs[port].discrete or ends[1].outputs[drive.port].discrete:
        return None
    chosen: Extrapolator = level.extrapolation
    return chosen


def exchange_asks(level: Any, wiring: Wiring) -> Iterator[Ask]:
    """Yield what consistent outputs ask for."""
    if getattr(level.orchestrator, "outputs", "consistent") != "consistent":
        return
    reacting = [
        name
        for name, model in zip(wiring.names, wiring.models, strict=True)
        if any(port.feedthrough for port in model.outputs)
    ]
    if reacting:
        why = "outputs are evaluated again once inputs are exchanged"
        loses = "its outputs stay as they were under the inputs of the step"
        yield Ask("re-evaluation", tuple(reacting), why, loses)
    looped = dict.fromkeys(wiring.names[child] for loop in Feedthrough(wiring).loops for child, _ in loop)
    if looped:
        why = "algebraic loops are found by what is declared"
        loses = "loops that are none may be solved, since all outputs are taken to react to all inputs"
        yield Ask("feedthrough", tuple(looped), why, loses)


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
