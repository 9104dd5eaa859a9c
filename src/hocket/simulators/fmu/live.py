"""A co-simulation FMU at work: loaded, initialised, stepped and freed by compiled code.

In:  an Fmu
Out: a live simulator; `native` is what a level of the native engine steps without Python
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from hocket import _native
from hocket.errors import SimulatorError
from hocket.model import Array
from hocket.simulators.fmu.continuous import exchange_facts, placed
from hocket.simulators.fmu.logs import deliver
from hocket.simulators.fmu.ports import Group
from hocket.simulators.fmu.values import Setting

if TYPE_CHECKING:
    from hocket.simulators.fmu.recipe import Fmu

_TYPES = (
    "real", "float32", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "boolean"
)  # fmt: skip
_CODES = {name: code for code, name in enumerate(_TYPES)} | {"integer": 6, "enumeration": 8}
DONE, EARLY = 0, 1
_LOUDER = "with logging=True, or --log on the command line, it may say more"

Live = TypeVar("Live", bound="CoSimulation")

_counts: defaultdict[str, Iterator[int]] = defaultdict(lambda: itertools.count(1))


def opened(model: Fmu) -> CoSimulation:
    """Load the FMU; nothing is instantiated yet."""
    return loaded(CoSimulation, model)


def loaded(kind: type[Live], model: Fmu) -> Live:
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
            description.major, str(model.binary), prefix, {"name": name, **facts(model)}
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
        self._done(native.instantiate())
        settings = self.model.settings.settings
        structural = [setting for setting in settings if setting.stage == "structural"]
        if structural:
            self._done(native.configure(True))
            for setting in structural:
                self._set(setting)
            self._done(native.configure(False))
        for setting in settings:
            if setting.stage == "start":
                self._set(setting)
        self._done(native.begin(float(t), self.stop_time, self.model.tolerance))

    def _set(self, setting: Setting) -> None:
        references = list(setting.references)
        if setting.type in ("string", "binary"):
            texts = [value.encode() if isinstance(value, str) else value for value in setting.values]
            self._done(self.native.put_texts(references, texts, setting.type == "binary"))
        elif setting.type in ("int64", "enumeration"):
            self._done(self.native.put_whole(_CODES[setting.type], references, list(setting.values)))
        elif setting.type == "uint64":
            wrapped = [value - 2**64 if value >= 2**63 else value for value in setting.values]
            self._done(self.native.put_whole(_CODES[setting.type], references, wrapped))
        else:
            values = [float(value) for value in setting.values]
            self._done(self.native.put(_CODES[setting.type], references, values))

    def ready(self) -> None:
        """Leave initialisation: the inputs are as they shall be."""
        self._done(self.native.ready())

    def output(self, t: float, u: Array) -> Array:
        """Return the outputs under these inputs."""
        y: Array | None = self.native.output(_plain(u))
        return self._got(y)

    def step(self, t: float, h: float, u: Array) -> float:
        """Advance by h; the time reached is earlier where the FMU stopped early or discarded the step."""
        result = self.native.step(t, h, _plain(u))
        if result == DONE:
            return t + h
        if result == EARLY:
            return float(self.native.reached)
        raise self.fault()

    def slope(self, t: float, u: Array) -> Array:
        """Return the time derivatives of the outputs."""
        return self._got(self.native.slope(_plain(u)))

    def save(self) -> Any:
        """Return the FMU's state."""
        saved = self.native.save()
        if saved is None:
            raise self.fault()
        return saved

    def restore(self, state: Any) -> None:
        """Go back; the first time it is checked that the FMU goes on from there as before."""
        self._done(self.native.restore(state))

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
        self._done(self.native.set_text(port, value))

    # what went wrong

    def _done(self, good: bool) -> None:
        if not good:
            raise self.fault()

    def _got(self, y: Array | None) -> Array:
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


def facts(model: Fmu) -> dict[str, Any]:
    """Return what compiled code needs to know."""
    description, used, faces = model.description, model.interface_used, model.faces
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
        "set": _groups(faces.input_groups),
        "get": _groups(faces.output_groups),
        "continuous": [
            number
            for number, port in enumerate(model.inputs)
            if used.intermediate_update and port.name in moving
        ],
        "discrete": [
            place for variable, places in placed(model, "input") if not variable.moves for place in places
        ],
        "texts_in": _texts(faces.text_input_groups),
        "texts_out": _texts(faces.text_output_groups),
        **({"exchange": _exchange(model)} if model.exchange else {}),
    }


def _exchange(model: Fmu) -> dict[str, Any]:
    known = exchange_facts(model)
    return {**known, "moving": _groups(known["moving"])}


def _resources(model: Fmu) -> str:
    """Return where the FMU finds its own files, as each version wants it told."""
    folder = model.unpacked
    if model.description.major == 1:
        return folder.as_uri()
    resources = folder / "resources"
    return f"{resources}/" if model.description.major == 3 else resources.as_uri()


def _groups(groups: tuple[Group, ...]) -> list[tuple[int, list[int], list[int]]]:
    return [(_CODES[group.type], list(group.references), list(group.places)) for group in groups]


def _texts(groups: tuple[Group, ...]) -> list[tuple[int, bool]]:
    """Return reference and kind of each text, in the order of their ports."""
    placed = {
        place: (reference, group.type == "binary")
        for group in groups
        for reference, place in zip(group.references, group.places, strict=True)
    }
    return [placed[place] for place in sorted(placed)]


def _plain(u: Array) -> Array:
    return np.ascontiguousarray(u, dtype=float)
