"""First contact: an FMU that is new here is tried in a process of its own before it may run in this one.

In:  an Fmu that nothing says to isolate or not
Out: how it ended the process of the trial, if it did, or how instances in one process disturb each other: it
     stays isolated then; whether a saved state stops it: it is not rolled back then; all kept by the hash of
     its content

It is loaded, instantiated, initialised, stepped, started again, rolled back if it can be, and freed, with its
own parameters, in memory that is not empty as that of a new process is, and whose ends are watched: what it
reads without having written it, or writes beyond what it was given, shows. A trial that ends in an error has
shown little: unless events are handled with others, the FMU is isolated in this run, and tried again in the
next. HOCKET_FIRST_CONTACT=0 or isolate=False leaves it out.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from hocket.errors import HocketError, SimulatorError
from hocket.model.protocols import Array
from hocket.simulators.fmu.archive import cache_folder
from hocket.simulators.fmu.findings import SAVING, content_hash, keep_findings, read_findings

if TYPE_CHECKING:
    from hocket.simulators.fmu.recipe import Fmu

SWITCH = "HOCKET_FIRST_CONTACT"
TOPIC = "first contact"
SHARING = "instances"
"""The topic of instances that disturb each other in one process."""
STEPS = 3
"""Steps of a trial."""
STEP = 1e-3
"""Seconds of a step, where the FMU says nothing of its own."""
SHORTER = 1000
"""How much shorter a step is that tells jumps from what is fast."""
LATE = "late outputs"
"""The topic of outputs that are computed from the first step on."""
_ALIKE = 1e-9
"""What rows of two instances may differ by, for numbers of the size of one."""
_PATIENCE = 5.0
"""Seconds of a trial after which no more instances are made in it."""
_WORDS = 500
"""Characters of what is written down when it ends a process."""

_known: dict[tuple[str, str], str] = {}
_unfinished: set[tuple[str, str]] = set()
_sharing: dict[tuple[str, str], str] = {}
_freezes: dict[tuple[str, str], str] = {}
_lock = threading.RLock()


def is_wanted() -> bool:
    """Return whether FMUs are tried at all."""
    return os.environ.get(SWITCH, "1").lower() not in ("0", "no", "off", "false")


def crash_file(model: Fmu) -> str:
    """Return the file in which it is written down that the FMU has ended a process it ran in; "": nowhere."""
    if not is_wanted():
        return ""
    try:
        digest, kind = _key(model)
        return str(cache_folder("findings") / f"{digest}-{kind.replace(' ', '-')}.crash")
    except (HocketError, OSError):  # without a binary it does not run anywhere
        return ""


def recorded_crash(model: Fmu) -> str:
    """Return how the FMU has ended a process it ran in, after its trial; empty: it did not."""
    path = crash_file(model)
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_WORDS).replace("\n", " ").strip() or "a crash"
    except OSError:
        return ""


def recorded_end(model: Fmu) -> str:
    """Return how the FMU has ended the process of its trial; empty: it did not, or was not tried yet."""
    return _recall(model, TOPIC, _known)


def recorded_sharing(model: Fmu) -> str:
    """Return how instances of the FMU disturb each other in one process; empty: not at all, or not tried."""
    return _recall(model, SHARING, _sharing)


def _recall(model: Fmu, topic: str, known: dict[tuple[str, str], str]) -> str:
    if not is_wanted():
        return ""
    try:
        key = _key(model)
    except (HocketError, OSError):  # without a binary it does not run anywhere
        return ""
    if key not in known:
        words = read_findings(model, topic).get(key[1])
        if not isinstance(words, str):
            return ""
        known[key] = words
    return known[key]


def is_unfinished(model: Fmu) -> bool:
    """Return whether the FMU has reported an error in its trial: what it does later is not known."""
    return bool(_unfinished) and is_wanted() and not model.has_events and _key(model) in _unfinished


def meet(model: Fmu) -> None:
    """Try an FMU that was not tried before. What it reports as an error is left to the run to say."""
    if not is_wanted():
        return
    with _lock:
        recorded_end(model)
        key = _key(model)
        if key in _known:
            return
        end, sharing = _try_out(model)
        if end is None:
            _unfinished.add(key)
            return
        _unfinished.discard(key)
        _known[key] = end
        _sharing[key] = sharing
        for topic, words in ((TOPIC, end), (SHARING, sharing)):
            keep_findings(model, topic, {**read_findings(model, topic), key[1]: words})
        if end or sharing:
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
                judged, found = _compare_saving(model)
                if judged is not None:
                    keep_findings(model, SAVING, {**kept, key[1]: found})
            _freezes[key] = found
        return _freezes[key]


def forget_freeze(model: Fmu) -> None:
    """Let the FMU save its state again: a probe has found nothing against that."""
    with _lock:
        _freezes[_key(model)] = ""
        keep_findings(model, SAVING, {**read_findings(model, SAVING), model.interface_kind: ""})


def confirm_freeze(model: Fmu, inputs: Sequence[float], step: float, behind: bool) -> tuple[bool | None, str]:
    """Try whether a saved state stops the FMU, under inputs and with a step of a run; keep what is found.

    Return whether that could be judged (None: the trial failed), and how it stands still; empty: it does not.
    What stands still only `behind` a state that may still be restored can roll back where nothing is behind.
    """
    with _lock:
        judged, found = _compare_saving(model, inputs if np.isfinite(inputs).all() else None, step, behind)
        if judged and not behind:
            _freezes[_key(model)] = found
            with suppress(HocketError, OSError):
                keep_findings(model, SAVING, {**read_findings(model, SAVING), model.interface_kind: found})
        return judged, found


def _compare_saving(
    model: Fmu, inputs: Sequence[float] | None = None, step: float | None = None, behind: bool = False
) -> tuple[bool | None, str]:
    """Return whether anything moves in a trial, and which output stands still after a save, but not without.

    None: the FMU reported an error, or there is no process for a trial. The first step from a state is not
    `behind` it.
    """
    from hocket.simulators.fmu.isolated import open_quietly
    from hocket.simulators.fmu.probe.driver import describe_freeze, input_values

    if os.name != "posix":
        return None, ""
    given = [] if inputs is None else [tuple(map(float, inputs))]
    simulator = open_quietly(model)
    try:
        for u in dict.fromkeys((*given, *input_values(model))):
            free = _make_steps(simulator, model, u, step)
            if np.array_equal(free[1:], free[:-1]):
                continue  # at rest: the next inputs may move it
            saved = _make_steps(simulator, model, u, step, saving=True)
            found = describe_freeze(model, free[behind:], saved[behind:])
            repeats = np.array_equal(free, _make_steps(simulator, model, u, step))
            return True, found if found and repeats else ""
    except SimulatorError:  # the run meets it, if it saves at all
        return None, ""
    finally:
        with suppress(SimulatorError):
            simulator.close()
    return False, ""


def find_late_outputs(
    model: Fmu, t: float, h: float, u: Sequence[float], jumps: dict[int, float]
) -> list[str]:
    """Return the outputs that are not computed before the first step, of those that jump there, so far each.

    Tried in a process of its own, under the inputs u, if that was not tried before.
    """
    names = [model.outputs[number].name for number in jumps]
    try:
        key = _key(model)
        with _lock:
            kept = read_findings(model, LATE)
            known = kept.get(key[1])
            known = dict(known) if isinstance(known, dict) else {}
            if not known.keys() >= set(names):
                found = _try_short_step(model, t, h, u, jumps)
                known |= {name: name in found for name in names}
                keep_findings(model, LATE, {**kept, key[1]: known})
            return [name for name in names if known[name]]
    except (HocketError, OSError):
        return []


def _try_short_step(model: Fmu, t: float, h: float, u: Sequence[float], jumps: dict[int, float]) -> set[str]:
    """Return which outputs make their jump in a step however short.

    Without steps of any length the same step is made under inputs that stay: what jumps again is believed.
    """
    from hocket.simulators.fmu.isolated import open_quietly

    if os.name != "posix":
        return set()
    step = h / SHORTER if model.capabilities.variable_step else h
    inputs = np.array([u], dtype=float)
    simulator = open_quietly(model)
    try:
        simulator.start(t)
        simulator.output(t, inputs)
        simulator.ready()
        before = np.array(simulator.output(t, inputs))
        simulator.step(t, step, inputs)
        after = np.array(simulator.output(t + step, inputs))
    except SimulatorError:
        return set()
    finally:
        with suppress(SimulatorError):
            simulator.close()
    return {model.outputs[n].name for n, far in jumps.items() if abs(after[n] - before[n]) > 0.5 * far}


def note(model: Fmu) -> str:
    """Return what a user is told of an FMU that stays isolated; empty: it does not for this reason."""
    if model.isolate is not None or model.interface_used.only_once:
        return ""
    if end := recorded_end(model):
        when = f"in its first contact {end}"
    elif crash := recorded_crash(model):
        when = f"in an earlier run it ended Python: {crash}"
    elif is_unfinished(model):
        when = "in its first contact it reported an error"
    elif when := recorded_sharing(model):
        if model.has_events:
            return f"{when}; isolate=True: each has a process of its own, and handles events inside its steps"
    else:
        return ""
    return f"{when}; it runs in a process of its own (isolate=False: here)"


def _key(model: Fmu) -> tuple[str, str]:
    return content_hash(model), model.interface_kind


def _try_out(model: Fmu) -> tuple[str | None, str]:
    """Return how the FMU ended the process of its trial, and how instances of it disturb each other.

    The first is empty if it did not, None if it reported an error; the second is empty if they do not.
    """
    from hocket.simulators.fmu.isolated import open_quietly

    simulator = open_quietly(model)
    found: str | None = ""
    sharing = ""

    def compare(simulator: Any, model: Fmu) -> None:
        nonlocal sharing
        sharing = _find_sharing(simulator, model)

    begin = perf_counter()
    for action in (_make_steps, _start_again, compare, lambda *_: simulator.close()):
        if action in (_start_again, compare) and found is None:
            continue
        if action is compare and perf_counter() - begin > _PATIENCE:
            continue
        try:
            action(simulator, model)
        except SimulatorError as error:
            if simulator.was_ended:
                found = found or error.faults[0].what
            elif action not in (_start_again, compare) and not found:
                found = None
    return found, sharing


def _find_sharing(simulator: Any, model: Fmu) -> str:
    """Return how instances, or other simulators, are disturbed by one in the same process; empty: not at all.

    What goes another way in every new process says nothing: it may be random.
    """
    from hocket.simulators.fmu.probe.driver import input_values

    if simulator.changes_arithmetic():
        return (
            "it changes how its process computes with floating-point numbers (rounding, small numbers, traps)"
        )
    t, h = model.description.start or 0.0, _step(model)
    ways = simulator.run_beside(t, h, STEPS, [list(u) for u in dict.fromkeys(input_values(model))])
    if ways is None:
        return ""
    if isinstance(ways, str):
        return f"a second instance in its process reports an error: {ways}"
    alone, beside = ways
    apart = ~np.isclose(beside, alone, rtol=_ALIKE, atol=_ALIKE, equal_nan=True)
    if not np.any(apart) or not _repeats(model):
        return ""
    row, column = np.argwhere(apart)[0]
    there = f"`{model.outputs[column].name}` is {beside[row, column]:.9g} at t = {t + row * h:.9g} s"
    return f"instances of it disturb each other in one process: {there}, and {alone[row, column]:.9g} alone"


def _repeats(model: Fmu) -> bool:
    """Return whether it makes the same steps in each new process."""
    from hocket.simulators.fmu.isolated import open_quietly

    rows: list[Array] = []
    for _ in range(2):
        simulator = open_quietly(model)
        try:
            rows.append(_make_steps(simulator, model))
        except SimulatorError:
            return False
        finally:
            with suppress(SimulatorError):
                simulator.close()
    return np.array_equal(rows[0], rows[1], equal_nan=True)


def _start_again(simulator: Any, model: Fmu) -> None:
    """Make the calls that some runs make: another start, with a stop time, longer steps, and rollback."""
    simulator.stop_time = (model.description.start or 0.0) + 4 * STEPS * _step(model)
    _make_steps(simulator, model, step=2 * _step(model))
    if not model.capabilities.rollback:
        return
    _make_steps(simulator, model, saving=True)
    h, u = _step(model), _inputs(model)
    t = (model.description.start or 0.0) + STEPS * h
    state = simulator.save()
    for _ in range(2):
        simulator.step(t, h, u)
        simulator.output(t + h, u)
        simulator.restore(state)


def _step(model: Fmu) -> float:
    return model.interface_used.fixed_step or model.description.step or STEP


def _inputs(model: Fmu) -> Array:
    return np.array([[port.start or 0.0 for port in model.inputs]])


def _make_steps(
    simulator: Any,
    model: Fmu,
    inputs: Sequence[float] | None = None,
    step: float | None = None,
    saving: bool = False,
) -> Array:
    """Start it and make steps, from a state that is saved or not; return the outputs before and after."""
    t = model.description.start or 0.0
    h = step or _step(model)
    u = _inputs(model) if inputs is None else np.array([inputs])
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
