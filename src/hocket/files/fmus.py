"""FMUs by themselves as a study: what their default experiments say is how they are run.

In:  the path of an .fmu, or FMUs by name and what connects them
Out: a Study
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from hocket.clock import seconds
from hocket.engine.composite import Composite
from hocket.files.names import free_name, legal_names
from hocket.files.study import Experiment
from hocket.model import Connections, Scenario
from hocket.simulators.fmu.recipe import Fmu
from hocket.simulators.fmu.facts import Description

STEP = Fraction(1, 1000)
"""Where an FMU tells neither a step nor how long it runs."""
STEPS = 500
"""In a run whose length is told, but not its step; at least so many."""


def read_fmu(path: Path | str) -> Experiment:
    """Return the study of one FMU; the model is named after the file."""
    file = Path(path)
    fmu = Fmu(file.name, folder=file.absolute().parent)
    study = study_from_fmus({model_name(file): fmu})
    return Experiment(study.composite, study.start, study.stop, name=file.stem, path=file.absolute())


def model_name(file: Path, taken: Collection[str] = ()) -> str:
    """Return the stem of a file as the name of a model; the second of the same name gets `_2`."""
    return free_name(legal_names([file.stem])[file.stem], taken)


def study_from_fmus(fmus: Mapping[str, Fmu], connections: Connections = ()) -> Experiment:
    """Return FMUs, coupled, as a study: the shortest step they ask for, the longest run.

    A run that is no whole number of steps ends with the last that fits.
    """
    described = [fmu.description for fmu in fmus.values()]
    start = min((time for d in described for time in _finite_time(d.start)), default=Fraction(0))
    stops = [time for d in described for time in _finite_time(d.stop) if time > start]
    stop = max(stops, default=start + 1)
    steps = [_fmu_step(fmu, stop - start if stops else None) for fmu in fmus.values()]
    step = min(stop - start, *steps)
    whole = start + step * ((stop - start) / step).__floor__()
    return Experiment(Composite(Scenario(fmus, connections), step), start, whole, name=", ".join(fmus))


def _fmu_step(fmu: Fmu, span: Fraction | None) -> Fraction:
    """Return the step an FMU asks for, else one that suits the length of the run."""
    description: Description = fmu.description
    for step in _finite_time(description.step):
        if step > 0:
            return step
    usual = STEP if span is None else round_down(span / STEPS)
    for own in _finite_time(fmu.interface_used.fixed_step):
        if own > 0:
            return own * max(1, (usual / own).__floor__())
    return usual


def _finite_time(time: float | None) -> Iterator[Fraction]:
    if time is not None and math.isfinite(time):
        yield seconds(time)


def round_down(length: Fraction) -> Fraction:
    """Return the longest of 1, 2 and 5 times a power of ten that is not above a length."""
    power = Fraction(Decimal(10) ** math.floor(math.log10(length)))
    powers = (power / 10, power, power * 10)  # the logarithm is rounded
    return max(times * one for times in (1, 2, 5) for one in powers if times * one <= length)
