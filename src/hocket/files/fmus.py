"""FMUs by themselves as an experiment: what their default experiments say is how they are run.

In:  the path of an .fmu, or FMUs by name and what connects them
Out: an Experiment
"""

from __future__ import annotations

import copy
import math
import re
import shutil
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from hocket.engine.recording import write_error
from hocket.model.arguments import free_name
from hocket.model.clock import format_duration, seconds
from hocket.model.composite import Composite
from hocket.model.experiment import Experiment
from hocket.model.scenario import Connections, Scenario
from hocket.simulators.fmu.archive import cache_folder
from hocket.simulators.fmu.recipe import Fmu
from hocket.simulators.fmu.variables import FmuInterface
from hocket.simulators.wrappers.emulation import is_emulation
from hocket.simulators.wrappers.timed import Timed

_LEGAL = re.compile(r"[^\W\d][\w-]*")


def legal_names(names: Iterable[str], taken: Collection[str] = ()) -> dict[str, str]:
    """Return a name for a model for each name; those that are legal are kept."""
    wanted = list(names)
    chosen = {name: name for name in wanted if _LEGAL.fullmatch(name)}
    used = {*chosen.values(), *taken}
    for name in wanted:
        if name not in chosen:
            plain = re.sub(r"[^\w-]", "_", name)
            chosen[name] = free_name(plain if _LEGAL.fullmatch(plain) else f"_{plain}", used)
            used.add(chosen[name])
    return {name: chosen[name] for name in wanted}


def read_fmu(path: Path | str) -> Experiment:
    """Return the experiment of one FMU; the model is named after the file."""
    file = Path(path)
    fmu = Fmu(file.name, folder=file.absolute().parent)
    experiment = experiment_from_fmus({model_name(file): fmu})
    return Experiment(
        experiment.composite, experiment.start, experiment.stop, name=file.stem, path=file.absolute()
    )


def model_name(file: Path, taken: Collection[str] = ()) -> str:
    """Return the stem of a file as the name of a model; the second of the same name gets `_2`."""
    return free_name(legal_names([file.stem])[file.stem], taken)


def experiment_from_fmus(fmus: Mapping[str, Fmu], connections: Connections = ()) -> Experiment:
    """Return FMUs, coupled, as an experiment: the shortest step they ask for, the longest run.

    A run that is not a whole number of steps ends with the last that fits.
    """
    described = [fmu.description for fmu in fmus.values()]
    start = min((seconds(d.start) for d in described if _is_finite(d.start)), default=Fraction(0))
    stops = [time for d in described if _is_finite(d.stop) and (time := seconds(d.stop)) > start]
    stop = max(stops, default=start + 1)
    wishes = (fmu_step_wish(name, fmu) for name, fmu in fmus.items())
    step = min(stop - start, default_step(wishes, stop - start if stops else None).step)
    whole = start + step * ((stop - start) / step).__floor__()
    return Experiment(Composite(Scenario(fmus, connections), step), start, whole, name=", ".join(fmus))


def _is_finite(time: float | None) -> TypeGuard[float]:
    return time is not None and math.isfinite(time)


STEP = Fraction(1, 1000)
"""Where nothing tells a step, nor how long the run is."""
STEPS = 1000
"""In a run whose length is told, but not its step; at least so many."""
_TRIED = 10_000


class StepWish(NamedTuple):
    """What an FMU says of its step, in seconds."""

    name: str
    asked: float | None
    """The step of its default experiment."""
    fixed: float | None
    """The step that it makes inside."""
    rigid: bool = False
    """Whether it makes no other steps than those that it asks for."""


def fmu_step_wish(name: str, fmu: Fmu, used: FmuInterface | None = None) -> StepWish:
    """Return what an FMU says of its step; `used` if it is not run by the interface that it says."""
    interface = used or fmu.interface_used
    return StepWish(name, fmu.description.step, interface.fixed_step, not interface.variable_step)


class StepChoice(NamedTuple):
    """A step that was chosen since none was told."""

    step: Fraction
    reason: str
    tied: bool
    """Whether an FMU cannot make it shorter."""


def default_step(
    wishes: Iterable[StepWish], span: Fraction | None, inside: Mapping[str, Fraction] | None = None
) -> StepChoice:
    """Return the shortest step that an FMU asks for, else one that suits the length of the run.

    It is a multiple of all steps that FMUs make inside, and of the shorter ones of levels `inside`.
    """
    usual = STEP if span is None else round_down(span / STEPS)
    why = "since nothing says how long the run is" if span is None else "about a thousandth of the run"
    asked: list[StepChoice] = []
    fixed: dict[str, Fraction] = {}
    for name, wanted, own, rigid in wishes:
        if _is_finite(own) and own > 0:
            fixed[name] = seconds(own)
        if _is_finite(wanted) and wanted > 0:
            asked.append(StepChoice(seconds(wanted), f"which `{name}` asks for", rigid))
        elif name in fixed:
            times = _step_multiple(fixed[name], usual, span)
            asked.append(StepChoice(fixed[name] * times, _multiple_reason(name, fixed[name]), True))
    found = min(asked, key=itemgetter(0), default=StepChoice(usual, why, False))
    fixed |= {name: step for name, step in (inside or {}).items() if step < found.step}
    grid = reduce(_common_multiple, fixed.values(), Fraction(0))
    if not grid:
        return found
    if (found.step / grid).denominator == 1:
        return found._replace(tied=True)
    reason = " and ".join(_multiple_reason(name, own) for name, own in fixed.items())
    suited = grid * _step_multiple(grid, found.step, span)
    return StepChoice(suited, f"{reason}, in place of {format_duration(found.step)}, {found.reason}", True)


def _multiple_reason(name: str, own: Fraction) -> str:
    return f"a multiple of the {format_duration(own)} that `{name}` steps by inside"


def _common_multiple(one: Fraction, other: Fraction) -> Fraction:
    """Return the least common multiple of two steps; zero stands for none."""
    if not one:
        return other
    whole = one.denominator * other.denominator
    return Fraction(math.lcm(int(one * whole), int(other * whole)), whole)


def _step_multiple(own: Fraction, usual: Fraction, span: Fraction | None) -> int:
    """Return how many steps inside fit into the usual one, so that they divide the run if they can."""
    times, count = max(1, (usual / own).__floor__()), span / own if span is not None else None
    if count is None or count.denominator != 1:
        return times
    tried = range(times, max(0, times - _TRIED), -1)
    return next((n for n in tried if count.numerator % n == 0), times)


def round_down(length: Fraction) -> Fraction:
    """Return the longest of 1, 2 and 5 times a power of ten that is not above a length."""
    power = Fraction(Decimal(10) ** math.floor(math.log10(length)))
    powers = (power / 10, power, power * 10)  # the logarithm is rounded
    return max(times * one for times in (1, 2, 5) for one in powers if times * one <= length)


def resource_folder(file: Path) -> Path:
    """Return the folder of the FMUs of a scenario file: car.resources for car.toml."""
    return file.with_name(f"{file.stem}.resources")


def with_resources(experiment: Experiment, file: Path) -> Experiment:
    """Return the experiment with FMUs out of archives copied to the resources of a file; raises FileError."""
    copies: dict[Path, str] = {}
    composite = _move_fmus(experiment.composite, resource_folder(file.absolute()), copies)
    return replace(experiment, composite=composite) if copies else experiment


def _move_fmus(model: Any, folder: Path, copies: dict[Path, str]) -> Any:
    """Return a model whose FMUs are in the folder, and no longer in the cache.

    `copies` has the names in the folder, by what they are copies of.
    """
    if isinstance(model, Composite):
        models = {name: _move_fmus(inner, folder, copies) for name, inner in model.scenario.models.items()}
        return model.with_scenario(model.scenario.with_models(models))
    if is_emulation(model) or isinstance(model, Timed):
        wrapper: Any = model
        return replace(wrapper, model=_move_fmus(wrapper.model, folder, copies))
    if not isinstance(model, Fmu) or not model.file.is_relative_to(cache_folder()):
        return model
    if model.file not in copies:
        used = {Path(name).stem for name in copies.values()}
        copies[model.file] = f"{free_name(model.file.stem, used)}{model.file.suffix}"
        _copy_fmu(model.file, folder / copies[model.file])
    made = copy.copy(model)
    object.__setattr__(made, "path", f"{folder.name}/{copies[model.file]}")
    object.__setattr__(made, "folder", str(folder.parent))
    return made


def _copy_fmu(file: Path, target: Path) -> None:
    try:
        target.parent.mkdir(exist_ok=True)
        if file.is_dir():
            shutil.copytree(file, target, dirs_exist_ok=True)
        else:
            shutil.copyfile(file, target)
    except OSError as error:
        raise write_error(target.parent, error) from error
