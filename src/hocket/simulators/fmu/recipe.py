"""An FMU as a model: `Fmu("engine.fmu", inertia=0.2)`.

In:  the path of an .fmu, parameters by name, how it is to be run
Out: a Model; nothing of the FMU is loaded before it is opened
"""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np

from hocket.errors import (
    Fault,
    FileError,
    ScenarioError,
    collect_faults,
    list_names,
    raise_faults,
    suggest_nearest,
)
from hocket.model.arguments import (
    as_path,
    as_texts,
    choice_faults,
    expect_flags,
    is_flag,
    is_number,
    is_one_of,
    is_positive,
    set_fields,
)
from hocket.model.clock import Duration, format_duration
from hocket.model.code_loading import permit_code
from hocket.model.html import html_table, html_view
from hocket.model.ports import Port, Reactivity
from hocket.model.protocols import Capabilities, Simulator
from hocket.model.terminals import Terminal
from hocket.simulators.fmu.archive import doubled_files_note, unpack_archive
from hocket.simulators.fmu.binaries import INPUT_SLOPES, OUTPUT_SLOPES, STATE, exported_functions, find_binary
from hocket.simulators.fmu.description import read_description
from hocket.simulators.fmu.findings import PROBED, SAVING, read_findings
from hocket.simulators.fmu.ports import PortLayout, layout_ports
from hocket.simulators.fmu.terminals_xml import TerminalTable, has_terminal_file, read_terminals
from hocket.simulators.fmu.values import Settings, check_settings
from hocket.simulators.fmu.variables import FLOATS, Description, FmuInterface, array_of
from hocket.simulators.methods import ORDERS
from hocket.simulators.ode import METHODS
from hocket.simulators.recipes import Recipe, positive_duration

InterfaceName: TypeAlias = Literal["auto", "co-simulation", "model-exchange", "scheduled-execution"]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Fmu(Recipe):
    """An FMU; `parameters` and further keywords set parameters and start values by variable name.

    `x[1]` and `A[1,2]` name elements of arrays, a list sets the whole. `interface` "auto" takes
    co-simulation where there is one. `isolate` gives it a process of its own, whose calls may take
    `time_limit` (None: where the FMU allows one instance per process only, or has ended the process of its
    first contact). `observe` names variables to put out beside the outputs, as they are at the end of each
    step. With `reevaluate` the outputs are got again when inputs change between steps. `early_return` lets a
    step end early, at an event, and its level roll back and meet it there (None: as an FMI 3 FMU declares).
    `tolerance` is told to the FMU, and so is when the run ends, unless `stop_time` is False: some FMUs go
    there in their first step. With `build` an FMU without a binary for this platform is compiled from the
    sources it brings, once. `method`, `step`, `rtol` and `atol` are those of `Ode`, for model exchange.
    `reactivity` declares that of inputs by name, which a model description has no word for. Paths start in
    `folder`.
    """

    path: str
    values: tuple[tuple[str, Any], ...]
    """The parameters, sorted by name; lists as tuples."""
    interface: InterfaceName
    isolate: bool | None
    observe: tuple[str, ...]
    reevaluate: bool
    early_return: bool | None
    tolerance: float | None
    stop_time: bool
    build: bool
    logging: bool
    method: str
    step: Fraction | None
    rtol: float
    atol: float
    time_limit: Fraction
    reactivity: tuple[tuple[str, Reactivity], ...]
    folder: str

    def __init__(
        self,
        path: str | Path,
        parameters: Mapping[str, Any] | None = None,
        *,
        interface: InterfaceName = "auto",
        isolate: bool | None = None,
        observe: Iterable[str] = (),
        reevaluate: bool = True,
        early_return: bool | None = None,
        tolerance: float | None = None,
        stop_time: bool = True,
        build: bool = False,
        logging: bool = False,
        method: str | None = None,
        step: Duration | None = None,
        rtol: float | None = None,
        atol: float | None = None,
        time_limit: Duration = "60 s",
        reactivity: Mapping[str, Reactivity] | tuple[tuple[str, Reactivity], ...] = (),
        folder: str | Path = "",
        **more: Any,
    ):
        raise_faults(choice_faults("interface", interface, get_args(InterfaceName)))
        expect_flags(reevaluate=reevaluate, stop_time=stop_time, build=build, logging=logging)
        set_fields(
            self,
            path=str(as_path(path)),
            values=_merge_parameters(parameters, more, str(path)),
            interface=interface,
            isolate=isolate,
            observe=as_texts(observe, "observe", "names of variables"),
            reevaluate=bool(reevaluate),
            early_return=early_return,
            tolerance=tolerance,
            stop_time=bool(stop_time),
            build=bool(build),
            logging=bool(logging),
            step=None if step is None else positive_duration(step, "step"),
            time_limit=positive_duration(time_limit, "time_limit"),
            reactivity=_sort_reactivity(reactivity),
            folder=str(folder),
        )
        faults = [*self._refusals(), *self._option_faults(method=method, step=step, rtol=rtol, atol=atol)]
        method = "adaptive" if method is None else method
        relative = self._default_rtol if rtol is None else rtol
        relative = relative if is_number(relative) else 1e-6
        atol = relative / 1000 if atol is None else atol
        set_fields(self, method=method, rtol=relative, atol=atol)
        with collect_faults(faults):
            _ = self.port_layout
        raise_faults(faults)

    def __repr__(self) -> str:
        shown = (f"{name}={value!r:.40}" for name, value in self.values)
        return f"Fmu({', '.join((repr(self.path), *shown))})"

    def _repr_html_(self) -> str:
        here = self.description
        ports = [("input", port) for port in self.inputs] + [("output", port) for port in self.outputs]
        rows = [{"port": port.name, "causality": role, "unit": port.unit or ""} for role, port in ports]
        facts = {"model": here.name, "FMI": here.version, "file": self.path}
        return html_view("Fmu", facts, html_table(rows))

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}

    @cached_property
    def file(self) -> Path:
        return Path(os.path.abspath(os.path.join(self.folder, self.path)))

    @cached_property
    def unpacked_folder(self) -> Path:
        """The folder it is unpacked in; not to be written to."""
        return unpack_archive(self.file)

    @cached_property
    def description(self) -> Description:
        return read_description(self.unpacked_folder, str(self.file))

    @property
    def _default_rtol(self) -> float:
        declared = (self.tolerance, self.description.tolerance)
        return next((relative for relative in declared if relative is not None), 1e-6)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters and start values given, by name."""
        return dict(self.values)

    @cached_property
    def options(self) -> dict[str, Any]:
        """The keywords that remake it, where they differ from the defaults; `folder` aside."""
        defaults = _option_defaults() | {
            "method": "adaptive",
            "rtol": self._default_rtol,
            "atol": self.rtol / 1000,
        }
        step = None if self.step is None else format_duration(self.step)
        told = {**vars(self), "step": step, "time_limit": format_duration(self.time_limit)}
        names = [name for name in self.__dataclass_fields__ if name not in ("path", "values", "folder")]
        return {name: told[name] for name in names if told[name] != defaults[name]}

    @cached_property
    def settings(self) -> Settings:
        """What is to be set before it starts, checked."""
        return check_settings(self.description, self.parameters, str(self.file))

    @cached_property
    def port_layout(self) -> PortLayout:
        """The ports, and the calls that set and get them."""
        faults: list[Fault] = []
        settings = check_settings(self.description, {})
        with collect_faults(faults):
            settings = self.settings
        with collect_faults(faults):
            found = layout_ports(self.description, settings.sizes, self.observe, str(self.file), self.ticks)
            faults += self._reactivity_faults(found.inputs)
        raise_faults(faults)
        return found.with_starts(settings.starts).with_reactivity(dict(self.reactivity))

    def _reactivity_faults(self, inputs: Sequence[Port]) -> Iterator[Fault]:
        """Yield what is wrong with the inputs that a reactivity is declared of."""
        names = [port.name for port in inputs]
        for name, word in self.reactivity:
            if name not in names:
                hint = suggest_nearest(name, names)
                yield Fault(f"`reactivity` names `{name}`", str(self.file), "an input of the FMU", hint)
            yield from choice_faults("reactivity", word, get_args(Reactivity))

    @property
    def inputs(self) -> tuple[Port, ...]:
        """The numeric inputs, arrays by their elements."""
        return self.port_layout.inputs

    @property
    def outputs(self) -> tuple[Port, ...]:
        """The numeric outputs and what is observed, with their direct feedthrough."""
        return self.port_layout.outputs

    @property
    def texts(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of the strings and binaries that go in, and of those that come out."""
        layout = self.port_layout
        inputs, outputs = ([v.name for v in side] for side in (layout.text_inputs, layout.text_outputs))
        return tuple(inputs), tuple(outputs)

    @cached_property
    def has_terminals(self) -> bool:
        """Whether it has a file of terminals, which is read when a scenario is made of it."""
        return has_terminal_file(self.unpacked_folder)

    @property
    def terminals(self) -> tuple[Terminal, ...]:
        """The terminals of FMI 3, which are connected by name."""
        return self._terminal_table.terminals

    @cached_property
    def _terminal_table(self) -> TerminalTable:
        if not self.has_terminals:
            return TerminalTable()
        return read_terminals(self.unpacked_folder, self.description, self.port_layout, str(self.file))

    @property
    def exchange(self) -> bool:
        """Whether hocket integrates it: model exchange."""
        here = self.description
        alone = self.interface == "auto" and here.cs is None and here.me is not None
        return alone or self.interface == "model-exchange"

    @property
    def scheduled(self) -> bool:
        """Whether its clocks activate parts of it: scheduled execution."""
        here = self.description
        alone = self.interface == "auto" and here.cs is None and here.me is None
        return alone or self.interface == "scheduled-execution"

    @property
    def ticks(self) -> bool:
        """Whether it is run with its clocks: not in co-simulation without event mode."""
        if not self.description.clocks:
            return False
        return self.exchange or self.scheduled or self.interface_used.event_mode

    @property
    def intervals(self) -> dict[str, Fraction]:
        clocks = [each for each in self.description.clocks if self.ticks and each.causality == "input"]
        return {
            f"{role} of the clock `{clock.name}`": length
            for clock in clocks
            if clock.ticks is not None and clock.ticks.periodic
            for role, length in (("interval", clock.ticks.interval), ("shift", clock.ticks.shift))
            if length
        }

    @property
    def interface_used(self) -> FmuInterface:
        """What the interface it is run by can do."""
        here = self.description
        return cast("FmuInterface", here.me if self.exchange else here.se if self.scheduled else here.cs)

    @property
    def is_isolated(self) -> bool:
        if self.isolate is not None:
            return self.isolate
        if self.ticks:
            return False
        contact = _first_contact()
        return self.interface_used.only_once or bool(
            contact.recorded_end(self)
            or contact.recorded_crash(self)
            or contact.is_unfinished(self)
            or (contact.recorded_sharing(self) and not self.has_events)
        )

    @property
    def crash_file(self) -> str:
        """Where it is written down if it ends the process it runs in; empty: nowhere."""
        return str(_first_contact().crash_file(self))

    @cached_property
    def binary(self) -> Path:
        """The shared library for this platform; raises FileError if there is none."""
        found = self.unpacked_folder, self.description, self.interface_used, str(self.file)
        try:
            return find_binary(*found)
        except FileError:
            if not self.build:
                raise
        building = importlib.import_module("hocket.simulators.fmu.building")  # here: few need it
        return cast("Path", building.build_binary(*found))

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user may want to know of the FMU."""
        found = (*self.description.problems, *self._terminal_table.problems)
        if self.interface_used.can_save and "rollback" in self.refuted:
            refuted = self.refuted["rollback"]
            found = (*found, f"it is not rolled back, though it declares it: a trial found: {refuted}")
        if self.interface_used.needs_execution_tool:
            tool = self.description.tool or "the tool that made it"
            found = (*found, f"it needs {tool} on this computer to run")
        if self.scheduled:
            what = "its model partitions run one after the other, by priority: preemption is not simulated"
            found = (*found, what)
        if self.has_events and self.is_isolated:
            found = (*found, "it is isolated: its events are handled inside its steps, not in instants")
        return (*found, self.archive_note) if self.archive_note else found

    @property
    def archive_note(self) -> str:
        """What is odd about its archive, though it can be read; empty: nothing."""
        _ = self.unpacked_folder
        return doubled_files_note(self.file)

    @property
    def contact_note(self) -> str:
        """Why it is isolated though nobody has asked for it, known once it was opened; empty: it is not."""
        return str(_first_contact().note(self))

    @property
    def refuted(self) -> dict[str, str]:
        """The capabilities that it declares and a trial found untrue, each with the finding."""
        try:
            kept = read_findings(self, PROBED).get(self.interface_kind)
            freeze = read_findings(self, SAVING).get(self.interface_kind)
        except (ScenarioError, OSError):  # without a binary it does not run anywhere
            return {}
        found = {"rollback": freeze} if freeze else {}
        found |= kept if isinstance(kept, dict) else {}
        return {str(name): str(what) for name, what in found.items()}

    @property
    def interface_kind(self) -> str:
        """The interface it is run by, in words."""
        return (
            "model exchange"
            if self.exchange
            else "scheduled execution"
            if self.scheduled
            else "co-simulation"
        )

    @cached_property
    def capabilities(self) -> Capabilities:
        used, major = self.interface_used, self.description.major
        there = self._available_functions((*STATE[major], *INPUT_SLOPES[major], OUTPUT_SLOPES[major]))
        rollback = used.can_save and major > 1 and there.issuperset(STATE[major])
        rollback = rollback and "rollback" not in self.refuted  # asked for last: it takes the hash
        if self.exchange:
            return Capabilities(
                rollback=rollback,
                order=ORDERS.get(self.method),
                reevaluates=self.reevaluate,
                initial_inputs="settle",
                stops_early=self.has_state_events and self.early_return is not False,
                resumes=self.has_state_events,
                events=self.has_events and not self.is_isolated,
                catches_up=self.has_events,
            )
        # FMI tells derivatives of reals that are outputs, not of what else is observed
        sloping = {self.outputs[place].name for place in self.port_layout.sloped_places}
        flat = tuple(port.name for port in self.outputs if port.name not in sloping)
        slopes = used.output_derivatives >= 1 and OUTPUT_SLOPES[major] in there and bool(sloping)
        return Capabilities(
            rollback=rollback,
            variable_step=used.variable_step or self.scheduled,
            input_degree=None if self._takes_slopes(there) else 0,
            slopes=slopes,
            slopeless=flat if slopes else (),
            reevaluates=self.reevaluate,
            stops_early=used.early_return if self.early_return is None else self.early_return,
            initial_inputs="once" if major == 1 else "settle",
            resumes=major == 3 and used.early_return,
            events=self.has_events and not self.is_isolated,
            catches_up=self.has_events,
        )

    @property
    def has_state_events(self) -> bool:
        """Model exchange: whether it has event indicators, by which state events are found."""
        return self.exchange and self.description.event_indicators > 0

    @property
    def has_events(self) -> bool:
        """Whether it takes part in instants: event mode of FMI 3, or events of model exchange.

        FMUs for model exchange do not declare time events. One without event indicators and discrete
        variables is taken for continuous; time events that it has are handled inside its steps.
        """
        if not self.exchange:
            return self.interface_used.event_mode or self.scheduled
        jumping = (v.variability == "discrete" for v in self.description.variables)
        return self.has_state_events or self.ticks or any(jumping)

    def _takes_slopes(self, there: set[str]) -> bool:
        """Return whether real inputs may move during a step."""
        major = self.description.major
        if major < 3:
            return self.interface_used.interpolates_inputs and there.issuperset(INPUT_SLOPES[major])
        inputs = (v for v in self.description.variables if v.causality == "input" and v.type in FLOATS)
        moving = [v for v in inputs if v.moves]
        followed = all(v.type == "real" and v.intermediate_update and not v.dimensions for v in moving)
        return self.interface_used.intermediate_update and followed

    def _available_functions(self, names: tuple[str, ...]) -> set[str]:
        """Return which functions the binary has; all of them if there is none for this platform."""
        try:
            return exported_functions(self.binary, self.description, self.interface_used, names)
        except ScenarioError:
            return set(names)  # open() refuses it; until then the description is believed

    def make_contact(self) -> None:
        """Try the FMU in a process of its own, if it is new and nothing says whether to isolate it."""
        permit_code(self.file.name, str(self.file), announced=False)
        if self.isolate is None and not self.interface_used.only_once:
            _first_contact().meet(self)

    def open(self) -> Simulator:
        self.make_contact()
        name = "isolated" if self.is_isolated else "exchange" if self.exchange else "live"
        module = importlib.import_module(f"hocket.simulators.fmu.{name}")
        freeze = "" if self.isolate is False else _first_contact().find_freeze(self)
        taking_part = {"events": True} if self.capabilities.events and not self.is_isolated else {}
        simulator = module.open_simulator(self, **taking_part)
        if freeze:
            simulator.refuse_saving(freeze)
        return cast("Simulator", simulator)

    def _refusals(self) -> Iterator[Fault]:
        """Yield why it cannot be run at all."""
        description, where = self.description, str(self.file)
        kinds = {
            "co-simulation": description.cs,
            "model-exchange": description.me,
            "scheduled-execution": description.se,
        }
        if self.interface != "auto" and kinds[self.interface] is None:
            there = " and ".join(kind for kind, found in kinds.items() if found is not None)
            raise ScenarioError(f"it has no interface for {self.interface}", where, there)
        clocked = description.clocked_names
        if clocked and not self.ticks:
            what = f"it has clocks, and no event mode in which they tick: {list_names(clocked, 8)}"
            yield Fault(what, where, "`hasEventMode`")
        elif (clocked or self.scheduled) and self.isolate:
            yield Fault(
                "an FMU with clocks cannot be isolated: they tick at instants", where, "isolate=False"
            )

    def _option_faults(self, **own: Any) -> Iterator[Fault]:
        """Yield what is wrong with options; `own` are those of the solver."""
        where, method = str(self.file), own["method"]
        if not self.exchange:
            for name, value in own.items():
                if value is not None:
                    what = f"`{name}` is given, but the FMU has a solver of its own"
                    hint = 'interface="model-exchange"' if self.description.me is not None else ""
                    yield Fault(what, where, "only for model exchange", hint)
        if method is not None and not is_one_of(method, METHODS):
            hint = suggest_nearest(method, METHODS)
            yield Fault(f"`{method}` is not a method", where, ", ".join(METHODS), hint)
        for name, value in (("tolerance", self.tolerance), ("rtol", own["rtol"]), ("atol", own["atol"])):
            if value is not None and not is_positive(value):
                yield Fault(f"`{name}` is {value!r:.40}", where, "a number above zero")
        for name, value in (("isolate", self.isolate), ("early_return", self.early_return)):
            if value is not None and not is_flag(value):
                yield Fault(f"`{name}` is {value!r:.40}", where, "True, False or None")


def _first_contact() -> Any:
    return importlib.import_module("hocket.simulators.fmu.first_contact")  # here: it looks at files


@cache
def _option_defaults() -> dict[str, Any]:
    """Return what the keywords of an `Fmu` are unless given."""
    return {name: argument.default for name, argument in inspect.signature(Fmu).parameters.items()}


def _merge_parameters(
    parameters: Mapping[str, Any] | None, more: Mapping[str, Any], where: str
) -> tuple[tuple[str, Any], ...]:
    if parameters is not None and not isinstance(parameters, Mapping):
        raise ScenarioError(f"`parameters` is {parameters!r:.60}", where, 'such as {"mass": 2.0}')
    first = dict(parameters or {})
    wrong = [
        Fault(f"{name!r:.40} is not a name", where, "text") for name in first if not isinstance(name, str)
    ]
    wrong += [Fault(f"`{name}` is given twice", where) for name in more if name in first]
    raise_faults(wrong)
    return tuple(sorted((name, _freeze_value(value)) for name, value in {**first, **more}.items()))


def _sort_reactivity(given: Any) -> tuple[tuple[str, Reactivity], ...]:
    pairs = tuple(given.items()) if isinstance(given, Mapping) else given
    named = isinstance(pairs, tuple) and all(
        isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs
    )
    if not named:
        raise ScenarioError(f"`reactivity` is {given!r:.60}", "", 'such as {"u": "delayed"}')
    return tuple(sorted(pairs))


def _freeze_value(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    return tuple(map(_freeze_value, value)) if isinstance(value, (list, tuple)) else value


def remake_fmu(
    fmu: Fmu, parameters: Mapping[str, Any] | None = None, *, kind: type[Fmu] = Fmu, **options: Any
) -> Fmu:
    """Return the FMU with more parameters and other options; `kind` makes another kind of model of it."""
    more = dict(parameters or {})
    given = {name: value for name, value in fmu.parameters.items() if not _is_covered(fmu, name, more)}
    return kind(fmu.path, {**given, **more}, folder=fmu.folder, **{**fmu.options, **options})


def _is_covered(fmu: Fmu, name: str, more: Mapping[str, Any]) -> bool:
    """Return whether a name is an element of an array that is now set whole."""
    array, known = array_of(name), fmu.description.by_name
    # FMI 3 has a variable for the array, FMI 1 and 2 for each element; where both exist they are strangers
    return array in more and (array in known) != (name in known)
