"""Simulators from equations: x' = f(t, x, u), y = g(t, x, u), integrated by hocket.

In:  two functions, an initial state, ports and a method
Out: a Model; its simulators advance the state and may report every micro step
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, get_args

from hocket.errors import Fault, Place, ScenarioError, count, raise_faults, suggest_nearest
from hocket.model.arguments import choice_faults, is_number, is_one_of, set_fields
from hocket.model.clock import Duration
from hocket.model.crossings import Direction
from hocket.model.ports import Port, PortLike, parse_value_ports
from hocket.model.protocols import Capabilities, Simulator
from hocket.simulators.energies import DeclaredEnergy
from hocket.simulators.methods import ORDERS, TABLEAUX, vector
from hocket.simulators.recipes import (
    Feedthrough,
    Recipe,
    load,
    positive_duration,
    qualified_name,
    with_feedthrough,
)
from hocket.simulators.solvers import Equation, make_solver


def call_faults(
    equations: Mapping[str, Callable[..., Any]], given: Mapping[str, Any], options: Iterable[str], where: str
) -> Iterator[Fault]:
    """Yield why equations, by the letter that stands for them, cannot be called with (t, x, u, **given).

    `options` are the keywords of the recipe itself: a misspelt one looks like a parameter.
    """
    signatures = {role: found for role, code in equations.items() if (found := _inspect_signature(code))}
    takers = {role: _named_parameters(signature) for role, signature in signatures.items()}
    for role, taken in takers.items():
        if taken is None:
            what = f"`{role}` is `{role}{signatures[role]}` and cannot be called with t, x and u"
            yield Fault(
                what,
                Place(key=role, detail=where),
                f"`def {role}(t, x, u)`, even if it uses only some of them",
            )
    known = {role: taken for role, taken in takers.items() if taken is not None}
    unknown: list[str] = []
    for name in given:
        without = [role for role in known if not _takes_parameter(signatures[role], known[role], name)]
        if without:
            unknown.append(name)
            own = list(dict.fromkeys(parameter for taken in known.values() for parameter in taken))
            yield _unknown_parameter_fault(name, without, len(without) < len(known), own, options, where)
    for name in dict.fromkeys(name for taken in known.values() for name in taken):
        empty = inspect.Parameter.empty
        needing = [role for role, taken in known.items() if name in taken and taken[name].default is empty]
        if needing and name not in given and not difflib.get_close_matches(name, unknown, n=1, cutoff=0.6):
            listed = " and ".join(f"`{role}`" for role in needing)
            verb = "needs" if len(needing) == 1 else "need"
            place = Place(key=needing[0], detail=where)
            yield Fault(f"{listed} {verb} the parameter `{name}`", place, "", f"`Ode(..., {name}=...)`")


def energy_faults(energy: Any, given: Mapping[str, Any], where: str) -> Iterator[Fault]:
    """Yield why an energy, if there is one, cannot be called with (x, **given)."""
    signature = _inspect_signature(energy) if callable(energy) else None
    if signature is None:
        return
    try:
        signature.bind(None, **given)
    except TypeError as error:
        listed = ", ".join(("x", *given))
        what = f"`energy` is `energy{signature}` and cannot be called with {listed}: {error}"
        yield Fault(
            what,
            Place(key="energy", detail=where),
            f"`def energy({listed})`, even if it uses only some of them",
        )


def _unknown_parameter_fault(
    name: str, without: list[str], taken_by_others: bool, own: list[str], options: Iterable[str], where: str
) -> Fault:
    listed = " and ".join(f"`{role}`" for role in without)
    what, place = f"`{name}` is not a parameter of {listed}", Place(key=name, detail=where)
    if taken_by_others:
        expected = "f, g and the Jacobian are called with the same parameters"
        return Fault(what, place, expected, f"`def {without[0]}(t, x, u, {name})`, used or not")
    meant = suggest_nearest(name, [*own, *options], listing=False)
    if not meant:
        meant = suggest_nearest(name, own) or f"leave it out, or `def {without[0]}(t, x, u, {name})`"
    return Fault(what, place, "", meant)


def _inspect_signature(code: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(code)
    except (TypeError, ValueError):
        return None  # compiled code cannot be asked: calling it tells


def _named_parameters(signature: inspect.Signature) -> dict[str, inspect.Parameter] | None:
    """Return what can be given by name after t, x and u; None if these three are not taken."""
    try:
        filled = signature.bind_partial(None, None, None).arguments
    except TypeError:
        return None
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {
        name: parameter
        for name, parameter in signature.parameters.items()
        if parameter.kind in named and name not in filled
    }


def _takes_parameter(signature: inspect.Signature, taken: Mapping[str, Any], name: str) -> bool:
    anything = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
    return name in taken or (anything and name not in list(signature.parameters)[:3])


@dataclass(frozen=True)
class Event:
    """When `g(t, x, u)` crosses zero in a direction, the state becomes what `action(t, x, u)` returns.

    Without an action nothing changes, and the step ends there nevertheless: where f is not smooth.
    """

    g: Callable[..., Any] | str
    direction: Direction = "both"
    action: Callable[..., Any] | str | None = None

    def __post_init__(self) -> None:
        faults = [*choice_faults("direction", self.direction, get_args(Direction))]
        for role, code in (("g", self.g), ("action", self.action)):
            if not (callable(code) or isinstance(code, str) or (code is None and role == "action")):
                faults.append(Fault(f"`{role}` is `{code!r:.60}`", role, "a function of t, x and u"))
        if faults:
            raise ScenarioError(faults)

    def counts(self, before: float, after: float) -> bool:
        """Return whether a change of g is a crossing in the direction."""
        falls, rises = before > 0.0 >= after, before < 0.0 <= after
        return (falls and self.direction != "rising") or (rises and self.direction != "falling")


def as_events(given: Iterable[Event]) -> tuple[Event, ...]:
    """Return events as they are listed; raises ScenarioError for anything else."""
    listed = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
    raise_faults(
        Fault(f"`{each!r:.60}` is not an event", "events", '`Event(g, "falling", action)`')
        for each in listed
        if not isinstance(each, Event)
    )
    return listed


METHODS = (*TABLEAUX, "ab2", "adaptive", "cvode")


@dataclass(frozen=True, init=False, eq=False)
class Ode(Recipe):
    """x' = f(t, x, u), y = g(t, x, u); further keywords are parameters, handed to f, g and the Jacobian.

    x and u are 1-D arrays, not to be written to, u the input values at that t. Without `g` the outputs are
    the states, named x1, x2 ... unless `outputs` names them. f, g and `jacobian` (df/dx, for the implicit
    methods) are functions or texts such as "plant.py:rate".

    `method`: euler, heun, rk4, ab2, implicit-euler or trapezoid, with micro steps of at most `step` (None:
    one per macro step); adaptive (explicit, error kept below rtol and atol) or cvode (the same for stiff
    systems), whose internal steps are at most `step`. With `g` and without `feedthrough` every input is
    taken to have direct feedthrough to every output; `{}` says that none has.

    `energy` is a function of x and the parameters, or text that names one: the joules that a state stores,
    zero where it stores none.

    `events` are functions of t, x and u that cross zero, and what becomes of x there: `Event(g, "falling",
    action)`. Steps of the level end right behind a crossing.
    """

    f: Equation | str
    g: Equation | str | None
    x0: tuple[float, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    method: str
    step: Fraction | None
    rtol: float
    atol: float
    jacobian: Equation | str | None
    energy: Equation | str | None
    events: tuple[Event, ...]
    values: tuple[tuple[str, Any], ...]
    folder: str

    def __init__(
        self,
        f: Equation | str,
        g: Equation | str | None = None,
        x0: Sequence[float] = (),
        inputs: Iterable[PortLike] = (),
        outputs: Iterable[PortLike] | None = None,
        method: str = "rk4",
        step: Duration | None = None,
        feedthrough: Feedthrough | None = None,
        rtol: float = 1e-6,
        atol: float = 1e-9,
        jacobian: Equation | str | None = None,
        energy: Equation | str | None = None,
        events: Iterable[Event] = (),
        *,
        folder: str | Path = "",
        **parameters: Any,
    ):
        where = f"`Ode` of `{qualified_name(f)}`"
        if not is_one_of(method, METHODS):
            exact = is_one_of(method, ("exact",))
            hint = "`exact` is for `StateSpace`" if exact else suggest_nearest(str(method), METHODS)
            raise ScenarioError(f"`{method}` is not a method", where, ", ".join(METHODS), hint)
        if not (is_number(rtol) and is_number(atol) and 1e-13 <= rtol < 1.0 and atol > 0.0):
            what = f"tolerances rtol = {rtol}, atol = {atol}"
            raise ScenarioError(what, where, "1e-13 <= rtol < 1, 0 < atol")
        try:
            state = vector(x0, "x0")
        except ValueError as error:
            raise ScenarioError(str(error), where, "a list of numbers, one per state") from None
        entries = parse_value_ports(inputs, where)
        set_fields(
            self,
            f=f,
            g=g,
            x0=state,
            inputs=entries,
            outputs=_output_ports(g, state, entries, outputs, feedthrough, where),
            method=method,
            step=None if step is None else positive_duration(step, "step"),
            rtol=float(rtol),
            atol=float(atol),
            jacobian=jacobian,
            energy=energy,
            events=as_events(events),
            values=tuple(sorted(parameters.items())),
            folder=str(folder),
        )
        codes = self._equations.items()
        self._check_equations({role: code for role, code in codes if not isinstance(code, str)})

    @property
    def capabilities(self) -> Capabilities:
        # where the outputs are the states, their slopes are f
        jumps = bool(self.events)
        return Capabilities(
            rollback=True,
            slopes=self.g is None,
            micro=True,
            order=ORDERS.get(self.method),
            stops_early=jumps,
            events=jumps,
            catches_up=jumps,
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """What f, g, the Jacobian and the energy are called with, beside t, x and u."""
        return dict(self.values)

    @property
    def _equations(self) -> dict[str, Equation | str]:
        every = (("f", self.f), ("g", self.g), ("jacobian", self.jacobian), ("energy", self.energy))
        of_events = (
            (f"{role} of event {number}", code)
            for number, event in enumerate(self.events, 1)
            for role, code in (("g", event.g), ("action", event.action))
        )
        return {role: code for role, code in (*every, *of_events) if code is not None}

    def check(self) -> None:
        """Load the functions; raises ScenarioError if they do not take t, x, u and the parameters."""
        self._check_equations({role: self._load_equation(code) for role, code in self._equations.items()})

    def _check_equations(self, equations: Mapping[str, Any]) -> None:
        where = f"`Ode` of `{qualified_name(self.f)}`"
        faults = []
        for role, code in equations.items():
            if not callable(code):
                taken = "x" if role == "energy" else "t, x and u"
                expected = f"a function of {taken}, or text that names one"
                faults.append(Fault(f"`{role}` is `{code!r}`", where, expected))
        faults += call_faults(
            {role: code for role, code in equations.items() if callable(code) and role != "energy"},
            self.parameters,
            [name for name in inspect.signature(Ode).parameters if name != "parameters"],
            where,
        )
        raise_faults([*faults, *energy_faults(equations.get("energy"), self.parameters, where)])

    @property
    def stored_energy(self) -> DeclaredEnergy | None:
        """The stored energy of a state; None: not declared."""
        if self.energy is None:
            return None
        return DeclaredEnergy(self.function(self.energy), qualified_name(self.energy))

    def open(self) -> Simulator:
        self.check()
        solver = make_solver(self)
        if not self.events:
            return solver
        from hocket.simulators.ode_events import EventOde

        return EventOde(self, solver)

    def function(self, equation: Equation | str) -> Equation:
        """Return f, g or the Jacobian, loaded and with the parameters filled in."""
        found = self._load_equation(equation)
        return partial(found, **self.parameters) if self.values else found

    def _load_equation(self, equation: Equation | str) -> Equation:
        found: Equation = load(equation, self.folder) if isinstance(equation, str) else equation
        if not callable(found):
            what = f"`{qualified_name(equation)}` is not a function"
            raise ScenarioError(what, expected="a function of t, x and u")
        return found


def _output_ports(
    g: Equation | str | None,
    x0: tuple[float, ...],
    inputs: tuple[Port, ...],
    outputs: Iterable[PortLike] | None,
    feedthrough: Feedthrough | None,
    where: str,
) -> tuple[Port, ...]:
    if outputs is None:
        if g is not None:
            raise ScenarioError("the outputs of `g` have no names", where, 'outputs=["y1", ...]')
        outputs = [f"x{number}" for number in range(1, len(x0) + 1)]
    written = parse_value_ports(outputs, where)
    if g is None:
        if len(written) != len(x0):
            what = f"{count(len(written), 'output')} for {count(len(x0), 'state')}"
            if not x0:
                hint = "give `x0`, one number per state, or `g`"
            elif len(written) < len(x0):
                hint = "name every state in `outputs`, or choose some with `g`"
            else:
                hint = "leave outputs out, or compute them with `g`"
            raise ScenarioError(what, where, "without `g` every state is an output", hint)
        written, feedthrough = tuple(replace(port, feedthrough=()) for port in written), {}
    return with_feedthrough(written, inputs, feedthrough, where)
