"""First contact: an FMU that is new here is tried in a process of its own before it may run in this one.

In:  an Fmu that nothing says to isolate or not
Out: how it ended the process of the trial, if it did: it stays isolated then; whether a saved state stops it:
     it is not rolled back then; both kept by the hash of its content

It is loaded, instantiated, initialised, stepped and freed, with its own parameters. HOCKET_FIRST_CONTACT=0
or isolate=False leaves it out.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from hocket.errors import HocketError, SimulatorError
from hocket.model.protocols import Array
from hocket.simulators.fmu.findings import SAVING, content_hash, keep_findings, read_findings

if TYPE_CHECKING:
    from hocket.simulators.fmu.recipe import Fmu

SWITCH = "HOCKET_FIRST_CONTACT"
TOPIC = "first contact"
STEPS = 3
"""Steps of a trial."""
STEP = 1e-3
"""Seconds of a step, where the FMU says nothing of its own."""

_known: dict[tuple[str, str], str] = {}
_freezes: dict[tuple[str, str], str] = {}
_lock = threading.RLock()


def is_wanted() -> bool:
    """Return whether FMUs are tried at all."""
    return os.environ.get(SWITCH, "1").lower() not in ("0", "no", "off", "false")


def recorded_end(model: Fmu) -> str:
    """Return how the FMU has ended the process of its trial; empty: it did not, or was not tried yet."""
    if not is_wanted():
        return ""
    try:
        key = _key(model)
    except (HocketError, OSError):  # without a binary it does not run anywhere
        return ""
    if key not in _known:
        end = read_findings(model, TOPIC).get(key[1])
        if not isinstance(end, str):
            return ""
        _known[key] = end
    return _known[key]


def meet(model: Fmu) -> None:
    """Try an FMU that was not tried before. What it reports as an error is left to the run to say."""
    if not is_wanted():
        return
    with _lock:
        recorded_end(model)
        key = _key(model)
        if key in _known:
            return
        end = _try_out(model)
        if end is None:
            return
        _known[key] = end
        keep_findings(model, TOPIC, {**read_findings(model, TOPIC), key[1]: end})
        if end:
            logging.getLogger("hocket.fmu").warning("%s: %s", model.interface_used.identifier, note(model))


def find_freeze(model: Fmu) -> str:
    """Return how a saved state stops the FMU; tried in a process of its own, if it was not tried before.

    Empty: it does not, or nothing moves in the trial. Model exchange is left out: hocket integrates it.
    """
    if not is_wanted() or model.exchange or not model.capabilities.rollback or recorded_end(model):
        return ""
    with _lock:
        key = _key(model)
        if key not in _freezes:
            kept = read_findings(model, SAVING)
            found = kept.get(key[1])
            if not isinstance(found, str):
                found = _compare_saving(model)
                if found is not None:
                    keep_findings(model, SAVING, {**kept, key[1]: found})
            _freezes[key] = found or ""
        return _freezes[key]


def forget_freeze(model: Fmu) -> None:
    """Let the FMU save its state again: a probe has found nothing against that."""
    with _lock:
        _freezes[_key(model)] = ""
        keep_findings(model, SAVING, {**read_findings(model, SAVING), model.interface_kind: ""})


def _compare_saving(model: Fmu) -> str | None:
    """Return which output stands still after a save, and not without one; None: it reported an error."""
    from hocket.simulators.fmu.isolated import open_quietly
    from hocket.simulators.fmu.probe.driver import describe_freeze, input_values

    simulator = open_quietly(model)
    try:
        for u in dict.fromkeys(input_values(model)):
            free = _make_steps(simulator, model, u)
            if np.array_equal(free[1:], free[:-1]):
                continue  # at rest: the next inputs may move it
            saved = _make_steps(simulator, model, u, saving=True)
            found = describe_freeze(model, free, saved)
            return found if found and np.array_equal(free, _make_steps(simulator, model, u)) else ""
    except SimulatorError:  # the run meets it, if it saves at all
        return None
    finally:
        with suppress(SimulatorError):
            simulator.close()
    return ""


def note(model: Fmu) -> str:
    """Return what a user is told of an FMU that stays isolated; empty: it does not for this reason."""
    if model.isolate is not None or model.interface_used.only_once or not recorded_end(model):
        return ""
    return (
        f"in its first contact {recorded_end(model)}; it runs in a process of its own (isolate=False: here)"
    )


def _key(model: Fmu) -> tuple[str, str]:
    return content_hash(model), model.interface_kind


def _try_out(model: Fmu) -> str | None:
    """Return how the FMU ended the process of its trial; empty: not at all; None: it reported an error."""
    from hocket.simulators.fmu.isolated import open_quietly

    simulator = open_quietly(model)
    try:
        try:
            _make_steps(simulator, model)
        finally:
            simulator.close()
    except SimulatorError as error:
        return error.faults[0].what if simulator.was_ended else None
    return ""


def _make_steps(
    simulator: Any, model: Fmu, inputs: Sequence[float] | None = None, saving: bool = False
) -> Array:
    """Start it and make steps, from a state that is saved or not; return the outputs before and after."""
    t = model.description.start or 0.0
    h = model.interface_used.fixed_step or model.description.step or STEP
    u = np.array([[port.start or 0.0 for port in model.inputs] if inputs is None else inputs])
    simulator.start(t)
    simulator.output(t, u)
    simulator.ready()
    state = simulator.save() if saving else None
    rows = [np.array(simulator.output(t, u))]
    for number in range(STEPS):
        simulator.step(t + number * h, h, u)
        rows.append(np.array(simulator.output(t + (number + 1) * h, u)))
    del state  # it was kept until here
    return np.array(rows)
