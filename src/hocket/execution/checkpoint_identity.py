"""What tells a checkpoint from those of other co-simulations, other values and other versions.

In:  an experiment and its plan
Out: the header of a checkpoint; or the error that says what does not match
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from hocket.engine.native.engine import NativeEngine
from hocket.engine.portable_state import Engine
from hocket.errors import Fault, FileError, HocketError, ScenarioError, SimulatorError
from hocket.files.checkpoint import Checkpoint
from hocket.files.toml import dumps
from hocket.model.clock import Clock
from hocket.model.experiment import Experiment
from hocket.planning.parameters import is_fmu
from hocket.planning.tree import PlanTree


def own_version() -> str:
    """Return the version of hocket."""
    try:
        return version("hocket")
    except PackageNotFoundError:
        return "not installed"


def plan_hash(design: PlanTree) -> str:
    """Return what tells the structure of a co-simulation from others: its plans, simulators, ports and wires.

    Values of parameters are not among it.
    """
    digest = hashlib.sha256()
    for line in _structure(design):
        digest.update(line.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()


def _structure(design: PlanTree) -> Iterator[str]:
    for level in design.levels():
        wiring = level.wiring
        yield f"level {level.path}: {level.composite.step}"
        yield str(level.plan)
        for name, model, drives in zip(wiring.names, wiring.models, wiring.drives, strict=True):
            token = model.description.token if is_fmu(model) else ""
            yield f"{name}: {type(model).__qualname__} {token}"
            for port in (*model.inputs, *model.outputs):
                yield f"{port.name} {port.type} {port.event}"
            yield repr([d and (d.child, d.port, d.gain, d.offset, repr(d.extrapolation)) for d in drives])


def scenario_hash(experiment: Experiment) -> str:
    """Return what tells a scenario and its values from others; empty: it cannot be written as text."""
    try:
        text = dumps(Experiment(experiment.composite, start=experiment.start))
    except HocketError:
        return ""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def refuse_unportable(design: PlanTree) -> None:
    """Refuse simulators whose state cannot be written down, by name, as far as they say so themselves."""
    leaves = design.leaves.wiring
    hint = "`Replay(model)`, replay = true in a file: all its steps are made again"
    faults = []
    for name, model in zip(leaves.names, leaves.models, strict=True):
        if not model.capabilities.rollback:
            faults.append(Fault(f"`{name}` cannot save its state", "checkpoint", "rollback", hint))
        elif is_fmu(model) and not model.interface_used.can_serialise:
            what = f"`{name}` cannot write down its state: the FMU does not declare that it can be serialised"
            faults.append(Fault(what, "checkpoint", "canSerializeFMUState", hint))
    if faults:
        raise SimulatorError(faults)


@dataclass(frozen=True)
class Identity:
    """What a checkpoint says of the co-simulation that it is of."""

    experiment: Experiment
    design: PlanTree
    clock: Clock

    @cached_property
    def hashes(self) -> tuple[str, str]:
        """The hashes of the plan and of the scenario: they take longer than the state."""
        return plan_hash(self.design), scenario_hash(self.experiment)

    def header(self, engine: Engine, **more: Any) -> dict[str, Any]:
        """Return the header of a checkpoint of now."""
        clock, stop, every = self.clock, self.experiment.stop, self.experiment.every
        time = self.experiment.start + engine.now * clock.tick
        numbers = (clock.tick, clock.start, Fraction(clock.quantum), Fraction(clock.coarse))
        return {
            "hocket": own_version(),
            "engine": engine.name,
            "condensed": isinstance(engine, NativeEngine) and bool(engine.condensed),
            "time": list(time.as_integer_ratio()),
            "stop": None if stop is None else list(stop.as_integer_ratio()),
            "every": list(every.as_integer_ratio()) if isinstance(every, Fraction) else every,
            "tick": engine.now,
            "clock": [list(each.as_integer_ratio()) for each in numbers],
            "plan": self.hashes[0],
            "scenario": self.hashes[1],
            "overrides": {},
            "record": None,
            "ledger": False,
            "stored": {},
            "position": None,
            **more,
        }


def checkpoint_clock(checkpoint: Checkpoint) -> Clock:
    """Return the clock whose ticks a checkpoint counts."""
    tick, start, quantum, coarse = (Fraction(*each) for each in checkpoint.header["clock"])
    return Clock(tick, start, int(quantum), int(coarse))


def check_identity(checkpoint: Checkpoint, experiment: Experiment, design: PlanTree) -> None:
    """Refuse a checkpoint of another version, or of a co-simulation of another structure or start."""
    header, where = checkpoint.header, str(checkpoint.path)
    if header["hocket"] != own_version():
        what = f"the checkpoint was written by hocket {header['hocket']}, and this is {own_version()}"
        raise FileError(what, where, "the same version", "go on with that version, or run it anew")
    if header["plan"] != plan_hash(design):
        what = (
            "the checkpoint is of another co-simulation: other simulators, ports, connections, steps or plan"
        )
        raise FileError(what, where, "the scenario that was run", "hand over what was run, or run it anew")
    if checkpoint_clock(checkpoint).start != experiment.start:
        what = "the checkpoint is of a run with another start time"
        raise FileError(what, where, "the start time of that run")


def check_values(checkpoint: Checkpoint, experiment: Experiment) -> None:
    """Refuse a scenario with other values than those that were run."""
    before, now = checkpoint.header["scenario"], scenario_hash(experiment)
    if before and now and before != now:
        raise FileError(
            "the scenario has other values than when the checkpoint was written",
            str(checkpoint.path),
            "the scenario as it was run",
            "parameters={...} (--set) changes what may be changed",
        )


def refuse_overrides(checkpoint: Checkpoint) -> None:
    """Refuse a checkpoint of what was stepped by hand with ports that were overridden."""
    if overridden := checkpoint.header["overrides"]:
        what = f"ports were overridden when it was written: {', '.join(f'`{each}`' for each in overridden)}"
        hint = "hocket.open(..., checkpoint=path) goes on by hand"
        raise ScenarioError(what, "resume", "a checkpoint without overrides", hint)
