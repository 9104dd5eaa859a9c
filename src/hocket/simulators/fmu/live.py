"""A co-simulation FMU at work: loaded, initialised, stepped and freed by compiled code.

In:  an Fmu
Out: a live simulator; `native` is what a level of the native engine steps without Python
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

import hocket._native as _native
from hocket.errors import EndRequestError, SimulatorError, list_names
from hocket.model.plain_state import SerialisedState, as_bytes
from hocket.model.protocols import Array
from hocket.simulators.fmu.libraries import (
    LFS_HINT,
    describe_unfit_binary,
    install_hint,
    is_lfs_pointer,
    missing_libraries,
)
from hocket.simulators.fmu.log_messages import deliver
from hocket.simulators.fmu.ports import VariableRanges, element_ranges, group_calls
from hocket.simulators.fmu.suspicions import Doubt, FirstRows, Suspicions, look_into
from hocket.simulators.fmu.values import Setting
from hocket.simulators.fmu.variables import FLOATS, PERIODIC, WHOLE, FmuVariable
from hocket.simulators.methods import TABLEAUX, Tableau

if TYPE_CHECKING:
    from hocket.simulators.fmu.recipe import Fmu


ELSEWHERE = ("adaptive", "cvode")
"""The methods whose steps are made in Python."""


def state_ranges(model: Fmu) -> VariableRanges:
    """Return the states, each with the numbers of its elements."""
    description = model.description
    states = [description.by_name[state] for state, _ in description.states]
    return element_ranges(states, model.settings.sizes)


def state_count(model: Fmu) -> int:
    return model.description.unnamed_states + sum(len(places) for _, places in state_ranges(model))


def exchange_setup(model: Fmu) -> _native.ExchangeSetup:
    """Return what the integrator needs to know; `moving` are the calls for the inputs that may move."""
    count = state_count(model)
    method = "euler" if model.method in ELSEWHERE and count == 0 else model.method
    tableau = Tableau(0, (), (), ()) if method in ELSEWHERE else TABLEAUX.get(method, TABLEAUX["heun"])
    inputs = model.port_layout.input_ranges
    moving = tuple(each for each in inputs if each[0].moves)
    return _native.ExchangeSetup(
        states=count,
        indicators=model.description.event_indicators,
        completed_step=model.interface_used.completed_step,
        all_move=len(moving) == len(inputs) and not model.ticks,
        moving=_encode_groups(model, moving),
        doubted=_doubted_outputs(model),
        a=[weight for row in tableau.a for weight in row],
        b=list(tableau.b),
        c=list(tableau.c),
        multistep=method == "ab2",
        longest=0.0 if model.step is None else float(model.step),
        atol=model.atol,
    )


def _doubted_outputs(model: Fmu) -> list[tuple[int, list[int]]]:
    """Return the outputs that are wrong if the FMU computes them at completed steps only.

    Those that follow inputs between steps, each with these inputs; all, if it says that it need not be told
    of completed steps.
    """
    told, numbers = model.interface_used.completed_step, {p.name: n for n, p in enumerate(model.inputs)}
    return [
        (number, [numbers[name] for name in port.feedthrough] if model.reevaluate else [])
        for number, port in enumerate(model.outputs)
        if not port.discrete
        if not told or (port.feedthrough and model.reevaluate)
    ]


CODES = {name: code for code, name in enumerate((*FLOATS, *WHOLE[1:], "boolean"))}
CODES |= {"integer": CODES["int32"], "enumeration": CODES["int64"]}
TEXT_CODES = {"string": len(set(CODES.values())), "binary": len(set(CODES.values())) + 1}
DONE, EARLY = 0, 1
_LOUDER = "with logging=True, or --log on the command line, it may say more"

Live = TypeVar("Live", bound="CoSimulation")
T = TypeVar("T")


def open_simulator(model: Fmu, events: bool = False) -> CoSimulation:
    """Load the FMU; nothing is instantiated yet. With `events` it can take part in instants."""
    return load_fmu(FmuInstants if events else CoSimulation, model)


def load_fmu(kind: type[Live], model: Fmu) -> Live:
    """Return the live FMU; a binary that cannot be loaded is told in words."""
    unfit = describe_unfit_binary(model.binary)
    if unfit:
        what = f"its binary cannot be loaded: {unfit}"
        hint = LFS_HINT if is_lfs_pointer(model.binary) else "copy or export the FMU again"
        raise SimulatorError(what, str(model.file), "", hint)
    try:
        return kind(model)
    except RuntimeError as error:
        missing = missing_libraries(model.binary)
        if missing:
            listed = ", ".join(map(str, missing))
            what = f"its binary cannot be loaded: it needs {listed}, which this computer does not have"
            raise SimulatorError(what, str(model.file), "", install_hint(missing)) from None
        complete = not isinstance(error, _native.MissingFunctionError)
        hint = "a library that it needs may be damaged: `ldd` on that file lists them" if complete else ""
        raise SimulatorError(f"its binary cannot be loaded: {error}", str(model.file), "", hint) from None


class FmuState(NamedTuple):
    """A state of an FMU, in its own memory."""

    owner: CoSimulation
    kept: _native.FmuState

    def serialise(self) -> bytes:
        """Return it as bytes, by the FMU's own functions."""
        return self.owner.dump(self)


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
        setup = driver_setup(model, used.identifier)
        self.driver = _native.fmu(
            version=description.major,
            library=str(model.binary),
            prefix=prefix,
            setup=setup,
            file=str(model.file).encode(errors="replace").decode(),
            crash_file=model.crash_file,
        )
        self.suspicions = Suspicions(model)

    @property
    def native(self) -> Any:
        """What a level of the native engine steps without Python."""
        return self.driver

    @property
    def instance_name(self) -> str:
        """The name of its instance: the path of the model, set before the start."""
        return self.driver.name

    @instance_name.setter
    def instance_name(self, name: str) -> None:
        self.driver.name = name

    def notes(self) -> list[str]:
        """Return what it could not do as it declares, and what was done instead.

        Raises SimulatorError if it stands still because its state was saved.
        """
        return [*self.driver_notes(), *look_into(self, self.suspicions)]

    def driver_notes(self) -> list[str]:
        return self.driver.notes

    def begins_smoothly(self, ratio: float) -> bool:
        """Return whether its first steps are made, and no output moves so much more in the first of them."""
        return self.driver.begins_smoothly(ratio)

    def first_rows(self) -> FirstRows | None:
        """Return what its first steps were like, once they are made."""
        return self.driver.first_rows

    def doubts_saving(self) -> Doubt | None:
        """Return why it may stand still because its state was saved; None: nothing says so."""
        return self.driver.doubts_saving()

    def trust_saving(self) -> None:
        """Look no longer whether it stands still: that was tried."""
        self.driver.trust_saving()

    @property
    def early(self) -> bool:
        """Whether its level handles steps that end early; set before the start."""
        return bool(self.driver.early)

    @early.setter
    def early(self, wanted: bool) -> None:
        self.driver.early = wanted

    @property
    def ended(self) -> bool:
        """Whether it has asked to end the simulation."""
        return self.driver.ended

    def start(self, t: float) -> None:
        """Instantiate it anew, set what was asked for, and enter initialisation at time t."""
        native = self.driver
        self._require(native.instantiate())
        settings = self.model.settings.settings
        structural = [setting for setting in settings if setting.stage == "structural"]
        if structural:
            self._require(native.configure(True))
            for setting in structural:
                self._set(setting)
            self._require(native.configure(False))
        stop = self.stop_time if self.model.stop_time else None
        asked, declared = self.model.tolerance, self.model.description.tolerance
        self._require(native.prepare(float(t), stop, declared if asked is None else asked))
        for setting in settings:
            if setting.stage == "start":
                self._set(setting)
        self._require(native.begin())

    def tell_origin(self, folder: str, library: str) -> None:
        """Say where its files will lie, for a plan that is started without Python: `start` as data."""
        description, asked = self.model.description, self.model.tolerance
        self.driver.set_origin(
            version=description.major,
            folder=folder,
            library=library,
            prefix=f"{self.model.interface_used.identifier}_" if description.major == 1 else "",
            settings=[encode_setting(setting) for setting in self.model.settings.settings],
            tells_stop=self.model.stop_time,
            tolerance=description.tolerance if asked is None else asked,
        )

    def _set(self, setting: Setting) -> None:
        references = setting.references
        if setting.type in ("string", "binary"):
            texts = [value.encode() if isinstance(value, str) else value for value in setting.values]
            self._require(self.driver.put_texts(references, texts, setting.type == "binary"))
        elif setting.type in ("int64", "uint64", "enumeration"):
            whole = wrap_whole(setting.values)
            self._require(self.driver.put_whole(CODES[setting.type], references, whole))
        else:
            values = [float(value) for value in setting.values]
            self._require(self.driver.put(CODES[setting.type], references, values))

    def ready(self) -> None:
        """Leave initialisation: the inputs are as they shall be. What was set must still be there."""
        self._require(self.driver.ready())
        lost = [text for setting in self.model.settings.settings for text in self._lost_values(setting)]
        if lost:
            what = f"it did not keep what was set: {list_names(lost, 4, quote='')}"
            expected = "parameters and start values that initialisation leaves as they are"
            hint = "leave them out, or set them in the tool that made the FMU"
            raise SimulatorError(what, str(self.model.file), expected, hint)

    def _lost_values(self, setting: Setting) -> Iterator[str]:
        """Yield the values that are others than those that were set, as far as they can be read."""
        if setting.type not in CODES:  # texts
            return
        begin = 0
        for variable in setting.variables:
            size = len(self.model.settings.given[variable.name])
            wanted, begin = setting.values[begin : begin + size], begin + size
            found = self.driver.take(CODES[setting.type], [variable.reference], size)
            if found is None or not variable.keeps_its_start:
                continue
            for number, (one, other) in enumerate(zip(wanted, found, strict=True), 1):
                if not math.isclose(one, other, rel_tol=1e-6 if setting.type == "float32" else 1e-9):
                    element = f"{variable.name}[{number}]" if size > 1 else variable.name
                    yield f"`{element}` was set to {float(one):.9g} and is {other:.9g}"

    def read_reals(self, references: list[int], count: int) -> list[float] | None:
        """Return the values of real variables, ports or not; None: they cannot be read."""
        values: list[float] | None = self.driver.take(CODES["real"], references, count)
        return values

    def output(self, t: float, u: Array) -> Array:
        y: Array = self._require(self.driver.output(contiguous_array(u)))
        return y

    def step(self, t: float, h: float, u: Array) -> float:
        """Advance by h; the time reached is earlier where the FMU stopped early or discarded the step."""
        result = self.driver.step(t, h, contiguous_array(u))
        if result == DONE:
            return t + h
        if result == EARLY:
            return float(self.driver.reached)
        raise self.fault()

    def slope(self, t: float, u: Array) -> Array:
        slope: Array = self._require(self.driver.slope(contiguous_array(u)))
        return slope

    def save(self) -> Any:
        return FmuState(self, self._require(self.driver.save()))

    def refuse_saving(self, why: str) -> None:
        """Make every save an error from now on."""
        self.driver.refuse_saving(why)

    def restore(self, state: Any) -> None:
        """Roll back; the first time it is checked that the FMU goes on from there as before."""
        if isinstance(state, SerialisedState):
            self._require(self.driver.load(as_bytes(state)))
        else:
            self._require(self.driver.restore(state.kept))

    def dump(self, state: FmuState) -> bytes:
        """Return a saved state for another process."""
        return self._require(state.kept.dump())

    def close(self) -> None:
        """Terminate and free it, in whatever state it is."""
        self.driver.close()
        deliver()

    def text(self, port: int) -> bytes:
        value: bytes = self._require(self.driver.text(port))
        return value

    def set_text(self, port: int, value: bytes) -> None:
        self._require(self.driver.set_text(port, value))

    def _require(self, answer: T | None) -> T:
        """Return what a call answered; raises the fault for None, False and numbers below zero."""
        if answer is None or answer is False or (isinstance(answer, int) and answer < 0):
            raise self.fault()
        return answer

    def fault(self) -> SimulatorError:
        """Return the error for the call that failed last, with the FMU's own words."""
        deliver()
        said = self.driver.complaint
        problem = self.driver.problem or "a call failed"
        if self.driver.failed_by_end:
            return EndRequestError(problem)
        hint = self.driver.remedy or ("" if said or self.model.logging else _LOUDER)
        return SimulatorError(f"{problem}: {said}" if said else problem, hint=hint)


class FmuInstants(CoSimulation):
    """An FMU that takes part in the instants of its level: by compiled code, which both engines call."""

    @property
    def event_grid(self) -> float:
        """The seconds between two places for events, where its level takes instants; else 0."""
        return self.driver.grid

    @event_grid.setter
    def event_grid(self, seconds: float) -> None:
        self.driver.grid = seconds

    def ready(self) -> None:
        """Leave initialisation; clocks tick at instants only."""
        if self.model.ticks and self.event_grid == 0.0 and self.model.description.clocked_names:
            what = "it has clocks, and they tick at instants, which its level does not take"
            hint = "leave out what makes it sampled, replayed or sub-stepped"
            raise SimulatorError(what, str(self.model.file), "a level that takes instants", hint)
        super().ready()

    def due(self) -> float | None:
        """Return the time of its next event; one that is to be handled now is not after any time."""
        return self.driver.due()

    def react(self, t: float, n: int, u: Array, present: Sequence[bool]) -> list[bool]:
        """Set what is present in event mode; return which outputs are."""
        return self._require(self.driver.react(t, n, contiguous_array(u), list(present)))

    def commit(self) -> bool:
        """Let discrete states change; return whether the FMU wants another instant."""
        return self._require(self.driver.commit()) > 0


def encode_setting(setting: Setting) -> _native.FmuSetting:
    """Return what is set before initialisation, as compiled code sets it."""
    known: dict[str, Any] = {"structural": setting.stage == "structural", "references": setting.references}
    if setting.type in ("string", "binary"):
        texts = [value.encode() if isinstance(value, str) else value for value in setting.values]
        return _native.FmuSetting(type=TEXT_CODES[setting.type], texts=texts, **known)
    if setting.type in ("int64", "uint64", "enumeration"):
        return _native.FmuSetting(type=CODES[setting.type], whole=wrap_whole(setting.values), **known)
    values = [float(value) for value in setting.values]
    return _native.FmuSetting(type=CODES[setting.type], values=values, **known)


def wrap_whole(values: Sequence[int]) -> list[int]:
    """Return whole numbers as 64 bits with a sign have them."""
    return [value - 2**64 if value >= 2**63 else value for value in values]


def driver_setup(model: Fmu, name: str) -> _native.FmuSetup:
    """Return what compiled code needs to know of an FMU."""
    description, used, faces = model.description, model.interface_used, model.port_layout
    followed = [
        place
        for variable, places in faces.input_ranges
        if used.intermediate_update and variable.intermediate_update
        if variable.variability == "continuous" and not variable.dimensions
        for place in places
    ]
    return _native.FmuSetup(
        name=name,
        token=description.token,
        resources=_resources(model),
        logging=model.logging,
        events=used.event_mode,
        feeds_through=model.reevaluate and any(port.feedthrough for port in model.outputs),
        variable=used.variable_step,
        interpolates=used.interpolates_inputs,
        inputs=len(model.inputs),
        outputs=len(model.outputs),
        set=_encode_groups(model, faces.input_ranges),
        get=_encode_groups(model, faces.output_ranges),
        sloped=_encode_groups(model, faces.sloped_ranges),
        continuous=followed,
        discrete=[n for variable, places in faces.input_ranges if not variable.moves for n in places],
        time=[
            v.reference for v in description.variables if v.causality == "independent" and v.type == "real"
        ],
        texts_in=_encode_texts(faces.text_inputs),
        texts_out=_encode_texts(faces.text_outputs),
        exchange=exchange_setup(model) if model.exchange else None,
        **clock_setup(model),
    )


_CLOCK_KINDS = {"triggered": 0, **dict.fromkeys(PERIODIC, 2), "changing": 3, "countdown": 4}
_OUTPUT_CLOCK = 1


def clock_setup(model: Fmu) -> dict[str, Any]:
    """Return what compiled code needs to know of clocks; nothing where there are none."""
    description, faces = model.description, model.port_layout
    if not model.ticks:
        return {}
    numbers = {variable.name: number for number, variable in enumerate(description.clocks)}
    places = {v.name: len(model.inputs) - len(faces.triggers) + k for k, v in enumerate(faces.triggers)}
    places |= {
        v.name: len(model.outputs) - len(faces.clock_outputs) + k for k, v in enumerate(faces.clock_outputs)
    }

    def clock_numbers(ranges: VariableRanges, count: int) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in range(count)]
        for variable, ports in ranges:
            for place in ports:
                found[place] = [numbers[name] for name in variable.clocks if name in numbers]
        return found

    def clocked_texts(variables: tuple[FmuVariable, ...]) -> list[list[int]]:
        return [[numbers[name] for name in each.clocks if name in numbers] for each in variables]

    def encode(variable: FmuVariable) -> _native.ClockSetup:
        ticks = variable.ticks
        assert ticks is not None
        interval = Fraction(1) if ticks.interval is None else ticks.interval
        told = ticks.periodic and (ticks.interval is None or ticks.variability in ("calculated", "tunable"))
        return _native.ClockSetup(
            reference=variable.reference,
            kind=_OUTPUT_CLOCK if variable.causality == "output" else _CLOCK_KINDS[ticks.variability],
            place=places.get(variable.name, -1),
            priority=ticks.priority,
            told=told and variable.causality == "input",
            tunable=ticks.variability == "tunable",
            fractions=ticks.fractions,
            interval=interval.as_integer_ratio(),
            shift=ticks.shift.as_integer_ratio(),
            name=variable.name,
        )

    return {
        "clocks": [encode(variable) for variable in description.clocks],
        "clocked_in": clock_numbers(faces.input_ranges, len(model.inputs)),
        "clocked_out": clock_numbers(faces.output_ranges, len(model.outputs)),
        "clocked_texts_in": clocked_texts(faces.text_inputs),
        "clocked_texts_out": clocked_texts(faces.text_outputs),
        "scheduled": model.scheduled,
    }


def _resources(model: Fmu) -> str:
    """Return where the FMU finds its own files, as each version wants it told."""
    folder = model.unpacked_folder
    if model.description.major == 1:
        return folder.as_uri()
    resources = folder / "resources"
    return f"{resources}/" if model.description.major == 3 else resources.as_uri()


def _encode_groups(model: Fmu, ranges: VariableRanges) -> list[_native.VariableGroup]:
    return [
        _native.VariableGroup(
            type=CODES[group.type],
            references=group.references,
            places=group.places,
            negated=group.negated,
        )
        for group in group_calls(model.description, ranges)
    ]


def _encode_texts(texts: tuple[FmuVariable, ...]) -> list[_native.TextVariable]:
    return [_native.TextVariable(reference=v.reference, binary=v.type == "binary") for v in texts]


def contiguous_array(u: Array) -> Array:
    return np.ascontiguousarray(u, dtype=float)
