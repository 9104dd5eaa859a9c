"""What a simulator can do beyond stepping is tried: one law for each optional capability.

In:  a Model
Out: nothing, or a LawBroken that names the law and what was seen instead
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hocket.model import protocols
from hocket.model.ports import Port
from hocket.model.protocols import Array, Model, Simulator, provides
from hocket.testing.laws import (
    STEPPING_LAWS,
    Law,
    LawBench,
    arrays_equal,
    attempt,
    check_laws,
    shift_coefficients,
)


def check_simulator(
    model: Model, t: float = 0.0, h: float = 0.1, u: ArrayLike | None = None, seed: int = 0
) -> None:
    """Check every law on simulators of the model; raises LawBroken for the first that does not hold.

    Steps of h seconds are made from t on, about fifty in all; a model that declares an order makes some six
    hundred smaller ones. `u` are input values or coefficients that the model can bear; None: the ports' start
    values with random numbers of the size of one added.
    """
    check_laws(LAWS, LawBench(model, t, h, u, seed))


def _check_rollback(bench: LawBench) -> Iterator[str]:
    if not bench.model.capabilities.rollback:
        return
    with bench.simulator() as simulator:
        if not provides(simulator, protocols.RollbackSimulator):
            yield "capabilities.rollback is declared, but save() or restore() is missing"
            return
        early = simulator.save()
        before = bench.outputs(simulator, bench.t, bench.u)
        t = bench.after(simulator, 2)
        state = simulator.save()
        seen = bench.steps(simulator, t, 3)
        for time in ("first", "second", "third"):
            simulator.restore(state)
            if not arrays_equal(seen, bench.steps(simulator, t, 3)):
                yield f"after the {time} restore() of a state the same steps give other outputs"
                return
        simulator.restore(early)
        if not arrays_equal([before], [bench.outputs(simulator, bench.t, bench.u)]):
            yield "a state saved earlier has changed since"


def _check_variable_step(bench: LawBench) -> Iterator[str]:
    if not bench.model.capabilities.variable_step:
        return
    with bench.simulator() as simulator:
        t = bench.t
        for part in (0.5, 0.5, 0.3, 0.7):
            t = attempt(f"a step of {part} h", simulator.step, t, part * bench.h, bench.u.copy())
    yield from ()


def _check_input_degree(bench: LawBench) -> Iterator[str]:
    declared = bench.model.capabilities.input_degree
    if not declared or not bench.width:
        return
    still = np.zeros((declared + 1, bench.width))
    still[0] = bench.u[0]
    value, bent = still.copy(), still.copy()
    value[0] += bench.noise()
    for power in range(1, declared + 1):
        bent[power] = bench.noise() / bench.h**power
    ends = []
    for u in (still, value, bent):
        with bench.simulator() as simulator:
            ends.append(bench.outputs(simulator, bench.after(simulator, 3, u), still))
    if not arrays_equal(ends[:1], ends[1:2]) and arrays_equal(ends[:1], ends[2:]):
        yield f"input_degree is {declared}, but only the values of the inputs have an effect"


def _check_slopes(bench: LawBench) -> Iterator[str]:
    if not bench.model.capabilities.slopes:
        return
    for count in (0, 2):
        with bench.simulator() as simulator:
            if not provides(simulator, protocols.OutputDerivativeSimulator):
                yield "capabilities.slopes is declared, but slope() is missing"
                return
            t = bench.after(simulator, count)
            slope = np.array(attempt("slope(t, u)", simulator.slope, t, bench.u), dtype=float).reshape(-1)
            if slope.size != len(bench.model.outputs):
                yield f"slope() gives {slope.size} numbers for {len(bench.model.outputs)} ports"
                return
            if not bench.model.capabilities.variable_step:
                continue
            e, y = 1e-4 * bench.h, [bench.outputs(simulator, t, bench.u)]
            for number in range(2):
                simulator.step(t + number * e, e, shift_coefficients(bench.u, number * e))
                y.append(
                    bench.outputs(
                        simulator, t + (number + 1) * e, shift_coefficients(bench.u, (number + 1) * e)
                    )
                )
        estimate = (4.0 * y[1] - 3.0 * y[0] - y[2]) / (2.0 * e)
        bend = np.abs(y[2] - 2.0 * y[1] + y[0]) / e
        allowed = 1e-3 * (np.abs(slope) + np.abs(estimate)) + 2.0 * bend + 1e-6 * np.max(np.abs(y)) / bench.h
        for port, wrong in zip(bench.model.outputs, np.abs(slope - estimate) > allowed + 1e-12, strict=True):
            if wrong and port.name not in bench.model.capabilities.slopeless:
                yield f"slope() at {t:g} s is {slope}, a small step shows {estimate}: see `{port.name}`"


def _check_order(bench: LawBench) -> Iterator[str]:
    """Eight spans, halved; a model with its own micro step shows its order only below that."""
    capabilities, own = bench.model.capabilities, protocols.step_of(bench.model)
    if capabilities.order is None or not capabilities.variable_step:
        return
    h = bench.h if own is None else min(bench.h, float(own))
    powers = range(1, min(3, bench.degree) + 1)
    curve = np.array([bench.u[0], *(bench.noise() / (8.0 * h) ** power for power in powers)])
    finest = bench.trace(h, 64, curve)
    errors = [
        float(np.max(np.abs(bench.trace(h, parts, curve) - finest), initial=0.0)) for parts in (1, 2, 4, 8)
    ]
    floor = 1e-11 * float(np.max(np.abs(finest), initial=0.0))
    shown = [
        math.log2(coarse / fine)
        for coarse, fine in pairwise(errors)
        if math.isfinite(coarse) and min(coarse, fine) > floor
    ]
    if shown and not any(abs(order - capabilities.order) <= 0.25 for order in shown):
        measured = ", ".join(f"{order:.2f}" for order in shown)
        yield f"order {capabilities.order} is declared, halving the step shows {measured}"


def _check_preferred_step(bench: LawBench) -> Iterator[str]:
    with bench.simulator() as simulator:
        if not provides(simulator, protocols.PreferredStepSimulator):
            return
        t = bench.after(simulator, 2)
        before = bench.outputs(simulator, t, bench.u)
        preferred = attempt("prefers(t)", simulator.prefers, t)
        if not isinstance(preferred, Real) or not float(preferred) > 0.0:
            yield f"prefers({t!r}) returned {preferred!r}, expected seconds above zero"
        if not arrays_equal([before], [bench.outputs(simulator, t, bench.u)]):
            yield "prefers() changes the outputs"


def _check_energy(bench: LawBench) -> Iterator[str]:
    with bench.simulator() as simulator:
        if not provides(simulator, protocols.StoredEnergySimulator):
            if protocols.declared_energy(bench.model) is not None:
                yield "the model declares its stored energy, but energy() is missing"
            return
        for count in (0, 2):
            t = bench.after(simulator, count)
            before = bench.outputs(simulator, t, bench.u)
            first, second = (attempt("energy()", simulator.energy) for _ in range(2))
            if not isinstance(first, Real) or not math.isfinite(first):
                yield f"energy() returned {first!r}, expected a finite number of joules"
            elif first != second or not arrays_equal([before], [bench.outputs(simulator, t, bench.u)]):
                yield "energy() repeated gives another number, or changes the outputs"


def _check_initialisation(bench: LawBench) -> Iterator[str]:
    with bench.simulator() as simulator:
        if not provides(simulator, protocols.InitialisationSimulator):
            return
        bench.outputs(simulator, bench.t, bench.u)
        attempt("ready()", simulator.ready)
        before, again = (bench.outputs(simulator, bench.t, bench.u) for _ in range(2))
        if not arrays_equal([before], [again]):
            yield f"after ready() output() repeated gives {again} after {before}"
        reached = attempt("the step after ready()", simulator.step, bench.t, bench.h, bench.u.copy())
        if not bench.t < reached:
            yield f"after ready() a step from {bench.t!r} s reaches {reached!r} s"


def _check_end_request(bench: LawBench) -> Iterator[str]:
    with bench.simulator() as simulator:
        if provides(simulator, protocols.EndingSimulator) and simulator.ended is not False:
            yield f"after start() `ended` is {simulator.ended!r}"


def _check_events(bench: LawBench) -> Iterator[str]:
    with bench.simulator() as simulator:
        declared = bench.model.capabilities.events
        if not provides(simulator, protocols.EventSimulator):
            if declared:
                yield "`events` is declared, and due(), react() or commit() is missing"
            return
        due = attempt("due()", simulator.due)
        if due is None:
            return
        if not declared:
            yield f"due() announces an event at {due!r} s, and `events` is not declared"
        if not math.isfinite(due):
            yield f"due() is {due!r}, neither a finite time nor None"
        if attempt("due()", simulator.due) != due:
            yield "due() repeated gives another time"
        t, absent = float(due), [False] * len(bench.model.inputs)
        if t > bench.t:
            attempt("the step to the event", simulator.step, bench.t, t - bench.t, bench.u.copy())
        for n in range(1, MOST_INSTANTS):
            attempt("react()", simulator.react, max(t, bench.t), n, bench.u[0].copy(), absent)
            again = attempt("commit()", simulator.commit)
            later = attempt("due()", simulator.due)
            if not again and (later is None or later > due):
                return
        yield f"after {MOST_INSTANTS} instants at t = {t!r} s another one is due"


MOST_INSTANTS = 100


def _check_settings(bench: LawBench) -> Iterator[str]:
    with bench.simulator() as plain:
        settings = protocols.RunEndSimulator, protocols.EarlyReturnSimulator, protocols.NamedSimulator
        if not any(provides(plain, setting) for setting in settings):
            return
        seen = bench.steps(plain, bench.t, 3)
    simulator: Any = bench.model.open()
    try:
        if provides(simulator, protocols.RunEndSimulator):
            simulator.stop_time = bench.t + 1000.0 * bench.h
        if provides(simulator, protocols.NamedSimulator):
            simulator.instance_name = "level.model"
        if provides(simulator, protocols.EarlyReturnSimulator):
            simulator.early = False
        attempt("start(t) after the settings", simulator.start, bench.t)
        if not arrays_equal(seen, bench.steps(simulator, bench.t, 3)):
            yield "a known end of the run changes the steps before it"
        if provides(simulator, protocols.EarlyReturnSimulator):
            simulator.early = True
            simulator.start(bench.t)
            reached = simulator.step(bench.t, bench.h, bench.u.copy())
            if not bench.t < reached:
                yield f"with `early` a step from {bench.t!r} s reaches {reached!r} s"
    finally:
        simulator.close()


def _check_spaced_events(bench: LawBench) -> Iterator[str]:
    with bench.simulator() as simulator:
        if not provides(simulator, protocols.SpacedEventSimulator):
            return
        t, due = bench.t, simulator.due()
        attempt("space_events(h)", simulator.space_events, bench.h)
        if simulator.due() != due:
            yield f"space_events() changes due() from {due!r} to {simulator.due()!r}: it acts on later events"
        attempt("a step after space_events(h)", simulator.step, t, bench.h, bench.u.copy())


def _check_event_grid(bench: LawBench) -> Iterator[str]:
    with bench.simulator() as plain:
        if not provides(plain, protocols.InstantSettingSimulator):
            return
        seen = bench.steps(plain, bench.t, 1)
    with bench.simulator() as simulator:
        attempt("event_grid", setattr, simulator, "event_grid", bench.h * 2.0**-30)
        attempt("start(t) after event_grid", simulator.start, bench.t)
        due = attempt("due()", simulator.due)
        reached = simulator.step(bench.t, bench.h, bench.u.copy())
        if (due is not None and due <= bench.t + bench.h) or reached < bench.t + bench.h:
            return  # something happens in this step, and it is left to the instants
        simulator.start(bench.t)
        if not arrays_equal(seen, bench.steps(simulator, bench.t, 1)):
            yield "event_grid changes a step in which nothing happens"


def _check_notes(bench: LawBench) -> Iterator[str]:
    with bench.simulator() as simulator:
        if provides(simulator, protocols.NotingSimulator):
            notes = simulator.notes()
            if not isinstance(notes, list | tuple) or not all(isinstance(note, str) for note in notes):
                yield f"notes() returns {notes!r:.60}, expected a list of sentences"


def _check_micro_steps(bench: LawBench) -> Iterator[str]:
    if not bench.model.capabilities.micro:
        return
    with bench.simulator() as simulator:
        if not provides(simulator, protocols.MicroStepSimulator):
            yield "capabilities.micro is declared, but there is no attribute `micro`"
            return
        calls: list[tuple[float, Array]] = []
        simulator.micro = lambda t, y: calls.append((t, np.array(y, dtype=float).reshape(-1)))
        reached = simulator.step(bench.t, bench.h, bench.u.copy())
        y = bench.outputs(simulator, reached, shift_coefficients(bench.u, reached - bench.t))
        times = [bench.t, *(t for t, _ in calls)]
        if any(after <= before for before, after in pairwise(times)):
            yield f"micro steps are reported at {times[1:]} s, in a step from {bench.t!r} s"
        elif not calls or abs(times[-1] - reached) > 1e-9 * bench.h:
            yield f"the step ends at {reached!r} s, and the last micro step is reported at {times[-1]!r} s"
        elif not all(values.shape == y.shape for _, values in calls):
            yield f"a micro step is reported with {len(calls[0][1])} numbers for {y.size} outputs"
        elif not np.allclose(calls[-1][1], y, rtol=1e-9, atol=1e-12, equal_nan=True):
            yield f"at the end of a step {calls[-1][1]} is reported, and the outputs are {y}"


def _check_texts(bench: LawBench) -> Iterator[str]:
    inputs, outputs = protocols.text_ports(bench.model)
    if not (inputs or outputs):
        return
    with bench.simulator() as simulator:
        if not provides(simulator, protocols.TextSimulator):
            yield "the model names texts, but text() or set_text() is missing"
            return
        bench.outputs(simulator, bench.t, bench.u)
        for port, name in enumerate(outputs):
            value = attempt(f"text({port})", simulator.text, port)
            if not isinstance(value, bytes):
                yield f"text({port}), which is `{name}`, returned {value!r:.40}, expected bytes"
        for port in range(len(inputs)):
            attempt(f"set_text({port}, value)", simulator.set_text, port, b"")


def _check_columns(bench: LawBench) -> Iterator[str]:
    with bench.simulator() as simulator:
        if not len(protocols.linear_state(simulator)):
            return
        before = simulator.z.copy()
        simulator.step(bench.t, bench.h, bench.u.copy())
        alone = simulator.z.copy()
        simulator.start(bench.t)
        simulator.z = np.stack([before, before], axis=1)
        attempt(
            "a step of columns", simulator.step, bench.t, bench.h, np.repeat(bench.u[:, :, None], 2, axis=2)
        )
        if not all(
            np.allclose(column, alone, rtol=1e-9, atol=1e-300) for column in np.transpose(simulator.z)
        ):
            yield f"a step takes the state to {alone}, and as two columns to {simulator.z}"


def _check_native_twin(bench: LawBench) -> Iterator[str]:
    with bench.simulator() as simulator:
        twin = protocols.native_twin(simulator)
        if twin is not None and type(twin).__module__ != "hocket._native":
            yield f"`native` is {twin!r:.60}, expected an object of the native module"


def _check_own_code(bench: LawBench) -> Iterator[str]:
    if provides(bench.model, protocols.CheckableModel):
        attempt("check()", bench.model.check)
    yield from ()


def _check_period(bench: LawBench) -> Iterator[str]:
    period = protocols.period_of(bench.model)
    if period is None:
        return
    if not _is_duration(period):
        yield f"`period` is {period!r}, expected a Fraction of seconds above zero"
    elif not provides(bench.model, protocols.SampledModel):
        yield "`period` is declared, but without_period() is missing"
    else:
        given: Any = bench.model
        plain = attempt("without_period()", given.without_period)
        same = protocols.is_model(plain) and (plain.inputs, plain.outputs) == (given.inputs, given.outputs)
        if protocols.period_of(plain) is not None or not same:
            yield f"without_period() returned {plain!r:.60}, expected the same ports and no period"


def _is_duration(value: object) -> bool:
    return isinstance(value, Fraction) and value > 0


def _are_names(given: object) -> bool:
    return isinstance(given, tuple) and all(isinstance(name, str) for name in given)


def _port_names(model: Model) -> set[str]:
    return {port.name for port in (*model.inputs, *model.outputs)}


_ATTRIBUTES: dict[type, tuple[str, Callable[[Any, dict[str, Any]], bool]]] = {
    protocols.ImplicitInitialisationSimulator: (
        "True or False",
        lambda _, its: isinstance(its["settles"], bool),
    ),
    protocols.SteppedModel: (
        "a Fraction of seconds above zero, or None",
        lambda _, its: its["step"] is None or callable(its["step"]) or _is_duration(its["step"]),
    ),
    protocols.RepeatingModel: (
        "Fractions of seconds above zero, by name",
        lambda _, its: (
            _are_names(tuple(its["intervals"])) and all(map(_is_duration, its["intervals"].values()))
        ),
    ),
    protocols.TextModel: (
        "the names of inputs and of outputs, in two tuples",
        lambda _, its: len(its["texts"]) == 2 and all(map(_are_names, its["texts"])),
    ),
    protocols.DescribedModel: (
        "a table of variables by name",
        lambda _, its: all(
            isinstance(name, str) and each.type for name, each in its["description"].by_name.items()
        ),
    ),
    protocols.BookkeepingModel: (
        "names of ports in a frozenset",
        lambda model, its: (
            isinstance(its["bookkeeping"], frozenset) and its["bookkeeping"] <= _port_names(model)
        ),
    ),
    protocols.WrapperModel: ("the model inside", lambda _, its: protocols.is_model(its["model"])),
    protocols.ClassModel: ("a text", lambda _, its: isinstance(its["class_name"], str)),
    protocols.FileModel: ("a text", lambda _, its: isinstance(its["path"], str)),
    protocols.ProbedModel: (
        "findings by capability",
        lambda _, its: all(isinstance(text, str) for pair in its["refuted"].items() for text in pair),
    ),
    protocols.IsolatedModel: ("True or False", lambda _, its: isinstance(its["is_isolated"], bool)),
    protocols.IntegratedModel: (
        "finite numbers, and the name of a method",
        lambda _, its: isinstance(its["method"], str) and bool(np.all(np.isfinite(its["x0"]))),
    ),
    protocols.ParameterModel: (
        "the same parameters, as a dict and as sorted pairs",
        lambda _, its: [name for name, _ in its["values"]] == sorted(its["parameters"]),
    ),
    protocols.RemadeModel: (
        "what makes a model with the same ports again",
        lambda model, its: _all_ports(its["remake"](its["arguments"])) == _all_ports(model),
    ),
}
"""What an attribute must be, where it is there: in words, and as a question to the model and the values."""


def _all_ports(model: protocols.Model) -> tuple[Port, ...]:
    return (*model.inputs, *model.outputs)


def _check_attributes(bench: LawBench) -> Iterator[str]:
    with bench.simulator() as simulator:
        for protocol, (expected, holds) in _ATTRIBUTES.items():
            asked = simulator if Simulator in protocol.__mro__ else bench.model
            if not provides(asked, protocol):
                continue
            values = protocols.declarations(asked, protocol)
            try:
                right = holds(bench.model, values)
            except (TypeError, ValueError, AttributeError):
                right = False
            if not right:
                told = ", ".join(f"`{name}` is {value!r:.60}" for name, value in values.items())
                yield f"{told}, expected {expected}"


LAWS: dict[str, Law] = {
    **STEPPING_LAWS,
    "attributes that are declared are what they shall be": _check_attributes,
    "restore() returns to the saved state, if declared": _check_rollback,
    "any step is accepted, if declared": _check_variable_step,
    "input coefficients are honoured up to the declared degree": _check_input_degree,
    "slope() is the time derivative of the outputs, if declared": _check_slopes,
    "halving the step shows the declared order": _check_order,
    "prefers() returns a step above zero and changes nothing": _check_preferred_step,
    "energy() returns a finite number and changes nothing": _check_energy,
    "ready() leaves the initialisation, and no time passes": _check_initialisation,
    "events are announced, and are over once they are committed": _check_events,
    "stop_time, instance_name and early are set before the start, and change no step": _check_settings,
    "space_events() acts on later events only": _check_spaced_events,
    "event_grid changes no step in which nothing happens": _check_event_grid,
    "notes() returns sentences": _check_notes,
    "ended is False after start()": _check_end_request,
    "micro(t, y) is called after every micro step, if declared": _check_micro_steps,
    "texts are bytes, one for each text port": _check_texts,
    "z carries columns, each moving alone": _check_columns,
    "native is an object of the native module": _check_native_twin,
    "check() finds nothing wrong": _check_own_code,
    "period is a time above zero, and without_period() leaves it out": _check_period,
}
"""What `check_simulator` checks, in this order."""

CAPABILITY_LAWS: dict[type, Law] = {
    protocols.RollbackSimulator: _check_rollback,
    protocols.OutputDerivativeSimulator: _check_slopes,
    protocols.PreferredStepSimulator: _check_preferred_step,
    protocols.StoredEnergySimulator: _check_energy,
    protocols.StoredEnergyModel: _check_energy,
    protocols.InitialisationSimulator: _check_initialisation,
    protocols.RunEndSimulator: _check_settings,
    protocols.EarlyReturnSimulator: _check_settings,
    protocols.EventSimulator: _check_events,
    protocols.NamedSimulator: _check_settings,
    protocols.SpacedEventSimulator: _check_spaced_events,
    protocols.InstantSettingSimulator: _check_event_grid,
    protocols.NotingSimulator: _check_notes,
    protocols.EndingSimulator: _check_end_request,
    protocols.MicroStepSimulator: _check_micro_steps,
    protocols.TextSimulator: _check_texts,
    protocols.LinearSimulator: _check_columns,
    protocols.NativeSimulator: _check_native_twin,
    protocols.CheckableModel: _check_own_code,
    protocols.SampledModel: _check_period,
    **dict.fromkeys(_ATTRIBUTES, _check_attributes),
}
"""The law of each optional capability: those of `hocket.model.protocols`, all of them."""
