"""A co-simulation FMU at work: loaded, initialised, stepped and freed by compiled code.

In:  an Fmu
Out: a live simulator; `native` is what a level of the native engine steps without Python
"""

from __future__ import annotations

import itertools
import logging
import math
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from hocket import _native
from hocket.errors import SimulatorError
from hocket.model.protocols import Array
from hocket.simulators.fmu.ports import ValueGroup, shape
from hocket.simulators.fmu.values import Setting
from hocket.simulators.fmu.variables import FLOATS, FmuVariable
from hocket.simulators.methods import TABLEAUX

if TYPE_CHECKING:
    from hocket.simulators.fmu.recipe import Fmu


ELSEWHERE = ("adaptive", "cvode")
"""The methods whose steps are made in Python."""


def element_count(model: Fmu, variable: FmuVariable) -> int:
    """Return how many numbers a variable holds."""
    return math.prod(shape(variable, model.settings.sizes))


def state_count(model: Fmu) -> int:
    """Return how many continuous states it has."""
    description = model.description
    return sum(element_count(model, description.by_name[state]) for state, _ in description.states)


def exchange_facts(model: Fmu) -> dict[str, Any]:
    """Return what the integrator needs to know; `moving` are the calls for the inputs that may move."""
    count = state_count(model)
    method = "euler" if model.method in ELSEWHERE and count == 0 else model.method
    tableau = None if method in ELSEWHERE else TABLEAUX.get(method, TABLEAUX["heun"])
    every, moving = _moving_groups(model)
    return {
        "states": count,
        "indicators": model.description.event_indicators,
        "completed_step": model.interface_used.completed_step,
        "all_move": every,
        "moving": moving,
        "a": [] if tableau is None else [weight for row in tableau.a for weight in row],
        "b": [] if tableau is None else list(tableau.b),
        "c": [] if tableau is None else list(tableau.c),
        "multistep": method == "ab2",
        "longest": 0.0 if model.step is None else float(model.step),
        "atol": model.atol,
    }


def port_ranges(model: Fmu, causality: str) -> list[tuple[FmuVariable, range]]:
    """Return the numeric inputs or outputs, each with the numbers of its ports."""
    found, place = [], 0
    for variable in model.description.variables:
        if variable.causality == causality and variable.alias_of is None and variable.numeric:
            count = element_count(model, variable)
            found.append((variable, range(place, place + count)))
            place += count
    return found


def _moving_groups(model: Fmu) -> tuple[bool, tuple[ValueGroup, ...]]:
    every = port_ranges(model, "input")
    chosen = [(variable, places) for variable, places in every if variable.moves]
    groups = []
    for kind in FLOATS:
        own = [(variable, places) for variable, places in chosen if variable.type == kind]
        if own:
            references = tuple(variable.reference for variable, _ in own)
            groups.append(ValueGroup(kind, references, tuple(place for _, places in own for place in places)))
    return len(chosen) == len(every), tuple(groups)


LOGGER = logging.getLogger("hocket.fmu")
_LEVELS = (logging.INFO, logging.WARNING, logging.WARNING, logging.ERROR, logging.CRITICAL)


def deliver() -> None:
    """Hand over every message that waits; called between steps and around the calls from Python."""
    for name, status, category, text in _native.take_log():
        level = _LEVELS[status] if 0 <= status < len(_LEVELS) else logging.WARNING
        LOGGER.log(level, "%s: %s", name, text, extra={"instance": name, "category": category})


_TYPES = (
    "real", "float32", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "boolean"
)  # fmt: skip
_CODES = {name: code for code, name in enumerate(_TYPES)} | {"integer": 6, "enumeration": 8}
DONE, EARLY = 0, 1
_LOUDER = "with logging=True, or --log on the command line, it may say more"

Live = TypeVar("Live", bound="CoSimulation")

_counts: defaultdict[str, Iterator[int]] = defaultdict(lambda: itertools.count(1))


def open_simulator(model: Fmu) -> CoSimulation:
    """Load the FMU; nothing is instantiated yet."""
    return load_fmu(CoSimulation, model)


def load_fmu(kind: type[Live], model: Fmu) -> Live:
    """Return the live FMU; a binary that cannot be loaded is told in words."""
    try:
        return kind(model)
    except RuntimeError as error:
        lacking = "has no function" in str(error)
        hint = "" if lacking else "a library that it needs may be missing: `ldd` on that file lists them"
        raise SimulatorError(f"its binary cannot be loaded: {error}", str(model.file), "", hint) from None


class CoSimulation:
    """A live co-simulation FMU."""

    settles = True
    """Its initial state may depend on its inputs, declared or not."""

    def __init__(self, model: Fmu):
        self.model = model
        self.stop_time: float | None = None
        """When the run will end, if that is known: FMUs are told."""
        description, used = model.description, model.interface_used
        prefix = f"{used.identifier}_" if description.major == 1 else ""
        number = next(_counts[used.identifier])
        name = used.identifier if number == 1 else f"{used.identifier}_{number}"
        self.native = _native.fmu(
            description.major, str(model.binary), prefix, {"name": name, **driver_facts(model)}
        )

    @property
    def early(self) -> bool:
        """Whether its level handles steps that end early; set before the start."""
        return bool(self.native.early)

    @early.setter
    def early(self, wanted: bool) -> None:
        self.native.early = wanted

    # Simulator

    def start(self, t: float) -> None:
        """Instantiate it anew, set what was asked for, and enter initialisation at time t."""
        native = self.native
        self._require_success(native.instantiate())
        settings = self.model.settings.settings
        structural = [setting for setting in settings if setting.stage == "structural"]
        if structural:
            self._require_success(native.configure(True))
            for setting in structural:
                self._set(setting)
            self._require_success(native.configure(False))
        for setting in settings:
            if setting.stage == "start":
                self._set(setting)
        self._require_success(native.begin(float(t), self.stop_time, self.model.tolerance))

    def _set(self, setting: Setting) -> None:
        references = list(setting.references)
        if setting.type in ("string", "binary"):
            texts = [value.encode() if isinstance(value, str) else value for value in setting.values]
            self._require_success(self.native.put_texts(references, texts, setting.type == "binary"))
        elif setting.type in ("int64", "enumeration"):
            self._require_success(
                self.native.put_whole(_CODES[setting.type], references, list(setting.values))
            )
        elif setting.type == "uint64":
            wrapped = [value - 2**64 if value >= 2**63 else value for value in setting.values]
            self._require_success(self.native.put_whole(_CODES[setting.type], references, wrapped))
        else:
            values = [float(value) for value in setting.values]
            self._require_success(self.native.put(_CODES[setting.type], references, values))

    def ready(self) -> None:
        """Leave initialisation: the inputs are as they shall be."""
        self._require_success(self.native.ready())

    def output(self, t: float, u: Array) -> Array:
        """Return the outputs under these inputs."""
        y: Array | None = self.native.output(_contiguous_array(u))
        return self._require_array(y)

    def step(self, t: float, h: float, u: Array) -> float:
        """Advance by h; the time reached is earlier where the FMU stopped early or discarded the step."""
        result = self.native.step(t, h, _contiguous_array(u))
        if result == DONE:
            return t + h
        if result == EARLY:
            return float(self.native.reached)
        raise self.fault()

    def slope(self, t: float, u: Array) -> Array:
        """Return the time derivatives of the outputs."""
        return self._require_array(self.native.slope(_contiguous_array(u)))

    def save(self) -> Any:
        """Return the FMU's state."""
        saved = self.native.save()
        if saved is None:
            raise self.fault()
        return saved

    def restore(self, state: Any) -> None:
        """Go back; the first time it is checked that the FMU goes on from there as before."""
        self._require_success(self.native.restore(state))

    def close(self) -> None:
        """Terminate and free it, in whatever state it is."""
        self.native.close()
        deliver()

    # the slow lane

    def text(self, port: int) -> bytes:
        """Return a string or binary output."""
        value: bytes | None = self.native.text(port)
        if value is None:
            raise self.fault()
        return value

    def set_text(self, port: int, value: bytes) -> None:
        """Set a string or binary input."""
        self._require_success(self.native.set_text(port, value))

    # what went wrong

    def _require_success(self, good: bool) -> None:
        if not good:
            raise self.fault()

    def _require_array(self, y: Array | None) -> Array:
        if y is None:
            raise self.fault()
        return y

    def fault(self) -> SimulatorError:
        """Return the error for the call that failed last, with the FMU's own words."""
        deliver()
        said = self.native.complaint
        problem = self.native.problem or "a call failed"
        hint = "" if said or self.model.logging else _LOUDER
        return SimulatorError(f"{problem}: {said}" if said else problem, hint=hint)


def driver_facts(model: Fmu) -> dict[str, Any]:
    """Return what compiled code needs to know."""
    description, used, faces = model.description, model.interface_used, model.port_layout
    moving = {
        variable.name
        for variable in description.variables
        if variable.causality == "input" and variable.intermediate_update
        if variable.variability == "continuous" and not variable.dimensions
    }
    return {
        "token": description.token,
        "resources": _resources(model),
        "logging": model.logging,
        "events": used.event_mode,
        "early": False,
        "feeds_through": model.reevaluate and any(port.feedthrough for port in model.outputs),
        "variable": used.variable_step,
        "interpolates": used.interpolates_inputs,
        "inputs": len(model.inputs),
        "outputs": len(model.outputs),
        "set": _encode_groups(faces.input_groups),
        "get": _encode_groups(faces.output_groups),
        "continuous": [
            number
            for number, port in enumerate(model.inputs)
            if used.intermediate_update and port.name in moving
        ],
        "discrete": [
            place
            for variable, places in port_ranges(model, "input")
            if not variable.moves
            for place in places
        ],
        "texts_in": _texts(faces.text_input_groups),
        "texts_out": _texts(faces.text_output_groups),
        **({"exchange": _exchange(model)} if model.exchange else {}),
    }


def _exchange(model: Fmu) -> dict[str, Any]:
    known = exchange_facts(model)
    return {**known, "moving": _encode_groups(known["moving"])}


def _resources(model: Fmu) -> str:
    """Return where the FMU finds its own files, as each version wants it told."""
    folder = model.unpacked_folder
    if model.description.major == 1:
        return folder.as_uri()
    resources = folder / "resources"
    return f"{resources}/" if model.description.major == 3 else resources.as_uri()


def _encode_groups(groups: tuple[ValueGroup, ...]) -> list[tuple[int, list[int], list[int]]]:
    return [(_CODES[group.type], list(group.references), list(group.places)) for group in groups]


def _texts(groups: tuple[ValueGroup, ...]) -> list[tuple[int, bool]]:
    """Return reference and kind of each text, in the order of their ports."""
    placed = {
        place: (reference, group.type == "binary")
        for group in groups
        for reference, place in zip(group.references, group.places, strict=True)
    }
    return [placed[place] for place in sorted(placed)]


def _contiguous_array(u: Array) -> Array:
    return np.ascontiguousarray(u, dtype=float)
