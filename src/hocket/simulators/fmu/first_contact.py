"""First contact: an FMU that is new here is tried in a process of its own before it may run in this one.

In:  an Fmu that nothing says to isolate or not
Out: how it ended the process of the trial, if it did: it stays isolated then; kept by the hash of its content

It is loaded, instantiated, initialised, stepped and freed, with its own parameters. HOCKET_FIRST_CONTACT=0
or isolate=False leaves it out.
"""

from __future__ import annotations

import logging
import os
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from hocket.errors import HocketError, SimulatorError
from hocket.simulators.fmu.findings import content_hash, keep_findings, read_findings

if TYPE_CHECKING:
    from hocket.simulators.fmu.recipe import Fmu

SWITCH = "HOCKET_FIRST_CONTACT"
TOPIC = "first contact"
STEPS = 3
"""Steps of a trial."""
STEP = 1e-3
"""Seconds of a step, where the FMU says nothing of its own."""

_known: dict[tuple[str, str], str] = {}
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


def note(model: Fmu) -> str:
    """Return what a user is told of an FMU that stays isolated; empty: it does not for this reason."""
    if model.isolate is not None or model.interface_used.only_once or not recorded_end(model):
        return ""
    return (
        f"in its first contact {recorded_end(model)}; it runs in a process of its own (isolate=False: here)"
    )


def _key(model: Fmu) -> tuple[str, str]:
    return content_hash(model), "model exchange" if model.exchange else "co-simulation"


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


def _make_steps(simulator: Any, model: Fmu) -> None:
    t = model.description.start or 0.0
    h = model.interface_used.fixed_step or model.description.step or STEP
    u = np.array([[port.start or 0.0 for port in model.inputs]])
    simulator.start(t)
    simulator.output(t, u)
    simulator.ready()
    for number in range(STEPS):
        simulator.step(t + number * h, h, u)
        simulator.output(t + (number + 1) * h, u)
