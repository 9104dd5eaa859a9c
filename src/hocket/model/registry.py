"""What files, the command line and calls know by name: algorithms, extrapolators, simulators, accelerators.

In:  a kind and a name
Out: the class or object behind it, imported when it is first asked for

hocket's own stand in one table per kind, as `module:attribute`. A package adds its own by entry points of the
same form, in the groups `hocket.orchestrators`, `hocket.extrapolators`, `hocket.simulators` and
`hocket.accelerators`; they are loaded when somebody names them.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Literal, TypeAlias

from hocket.errors import ScenarioError, suggest_nearest
from hocket.model.code_loading import permit_code

Kind: TypeAlias = Literal["orchestrators", "extrapolators", "simulators", "accelerators"]

SINGULAR: Mapping[Kind, str] = {
    "orchestrators": "orchestrator",
    "extrapolators": "extrapolation",
    "simulators": "model",
    "accelerators": "accelerator",
}
"""What messages and files call one of a kind."""

OWN: Mapping[Kind, Mapping[str, str]] = {
    "orchestrators": {
        "jacobi": "hocket.orchestrators.jacobi:Jacobi",
        "gauss-seidel": "hocket.orchestrators.gauss_seidel:GaussSeidel",
        "multirate": "hocket.orchestrators.multirate:Multirate",
        "asynchronous": "hocket.orchestrators.asynchronous:Asynchronous",
        "iterate": "hocket.orchestrators.iterate:Iterate",
        "adaptive": "hocket.orchestrators.adaptive:Adaptive",
        "predictor-corrector": "hocket.orchestrators.predictor_corrector:PredictorCorrector",
        "waveform": "hocket.orchestrators.waveform:Waveform",
    },
    "extrapolators": {
        "hold": "hocket.model.extrapolators:Hold",
        "latch": "hocket.model.extrapolators:Latch",
        "linear": "hocket.model.extrapolators:LINEAR",
        "quadratic": "hocket.model.extrapolators:QUADRATIC",
        "cubic": "hocket.model.extrapolators:CUBIC",
        "polynomial": "hocket.model.extrapolators:Polynomial",
        "hermite": "hocket.model.extrapolators:Hermite",
        "nepce": "hocket.model.extrapolators:Nepce",
        "balance-correction": "hocket.model.extrapolators:BalanceCorrection",
    },
    "simulators": {
        "state-space": "hocket.simulators.state_space:StateSpace",
        "gain": "hocket.simulators.state_space:Gain",
        "sum": "hocket.simulators.state_space:Sum",
        "ode": "hocket.simulators.ode:Ode",
        "dae": "hocket.simulators.dae:Dae",
        "python": "hocket.simulators.python:Python",
        "table": "hocket.simulators.sources:Table",
        "csv": "hocket.simulators.sources:Csv",
        "schedule": "hocket.simulators.schedule:Schedule",
        "fmu": "hocket.simulators.fmu.recipe:Fmu",
        "function": "hocket.simulators.sources:Function",
        "simpy": "hocket.simulators.simpy_environment:SimPy",
        "devs": "hocket.simulators.devs:Devs",
        "helics": "hocket.simulators.helics:Helics",
        "coupler": "hocket.simulators.constraint:Coupler",
        "stand-in": "hocket.simulators.state_space:StandIn",
        "step-controller": "hocket.simulators.step_controller:StepController",
        "timed": "hocket.simulators.wrappers.timed:Timed",
        "step": "hocket.simulators.blocks.signals:Step",
        "ramp": "hocket.simulators.blocks.signals:Ramp",
        "sine": "hocket.simulators.blocks.signals:Sine",
        "pulse": "hocket.simulators.blocks.signals:Pulse",
        "noise": "hocket.simulators.blocks.signals:Noise",
        "product": "hocket.simulators.blocks.arithmetic:Product",
        "saturation": "hocket.simulators.blocks.arithmetic:Saturation",
        "expression": "hocket.simulators.blocks.arithmetic:Expression",
        "transfer-function": "hocket.simulators.blocks.motion:TransferFunction",
        "integrator": "hocket.simulators.blocks.motion:LimitedIntegrator",
        "rate-limiter": "hocket.simulators.blocks.motion:RateLimiter",
        "delay": "hocket.simulators.blocks.delay:Delay",
        "pid": "hocket.simulators.blocks.control:LimitedPID",
        "relay": "hocket.simulators.blocks.control:Relay",
    },
    "accelerators": {
        "plain": "hocket.plan.accelerators:PLAIN",
        "relax": "hocket.plan.accelerators:Relax",
        "aitken": "hocket.plan.accelerators:Aitken",
        "quasi-newton": "hocket.plan.accelerators:QuasiNewton",
        "newton": "hocket.plan.accelerators:Newton",
    },
}

OPENER = "hocket.engine.opening:open_composite"
"""What opens a level: the engine, which a description neither needs nor imports."""


def load_place(place: str) -> Any:
    """Return what stands at a place such as "package.module:name"."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


@cache
def _entry_points(kind: Kind) -> Mapping[str, Any]:
    """Return the entry points of other packages by name; a name of hocket's own cannot be taken."""
    from importlib.metadata import entry_points  # slow, and needed where hocket's own names do not do

    found = entry_points(group=f"hocket.{kind}")
    return {point.name: point for point in found if point.name not in OWN[kind]}


def names(kind: Kind) -> list[str]:
    """Return every known name, hocket's own first."""
    return [*OWN[kind], *_entry_points(kind)]


def is_known(kind: Kind, name: str) -> bool:
    """Return whether a name stands for anything."""
    return name in OWN[kind] or name in _entry_points(kind)


def load(kind: Kind, name: str) -> Any:
    """Return the class, function or object of a name; raises ScenarioError where there is none."""
    own = OWN[kind].get(name)
    if own is not None:
        return load_place(own)
    point = _entry_points(kind).get(name)
    if point is None:
        what = f"there is no {SINGULAR[kind]} `{name}`"
        raise ScenarioError(what, SINGULAR[kind], "", suggest_nearest(name, names(kind)))
    source = f"the entry point `{point.value}` of an installed package"
    permit_code(name, source, announced=point.module not in sys.modules)
    try:
        return point.load()
    except Exception as error:  # whatever the import of another package's module raises
        package = point.dist.name if point.dist is not None else "an unknown package"
        raise ScenarioError(
            f"`{name}` of the package `{package}` cannot be loaded: {type(error).__name__}: {error}",
            SINGULAR[kind],
            f"`{point.value}`, as its entry point in `hocket.{kind}` says",
            f"another version of `{package}`",
        ) from error


def look_up(kind: Kind, word: str) -> Any:
    """Return the object that a word stands for; raises ScenarioError where it needs more than a word."""
    found = load(kind, word)
    if not is_builder(found):
        return found
    needed = _required_arguments(found)
    if needed:
        example = f"{found.__name__}({', '.join(f'{name}=...' for name in needed)})"
        listed = ", ".join(f"`{name}`" for name in needed)
        raise ScenarioError(f"`{word}` needs {listed}", SINGULAR[kind], f"an object: `{example}`")
    return found()


def words(kind: Kind) -> dict[str, Any]:
    """Return what each name stands for that needs nothing more; imports all of a kind."""
    return {
        name: found() if is_builder(found) else found
        for name, found in load_all(kind)
        if not (is_builder(found) and _required_arguments(found))
    }


def load_all(kind: Kind) -> Iterator[tuple[str, Any]]:
    """Yield every name with what stands behind it; a package that is broken is reported where it is named."""
    for name in names(kind):
        try:
            yield name, load(kind, name)
        except ScenarioError:
            continue


def name_of(kind: Kind, cls: type) -> str | None:
    """Return the name under which a class is known; None: files cannot name it."""
    spec = f"{cls.__module__}:{cls.__qualname__}"
    own = next((name for name, known in OWN[kind].items() if known == spec), None)
    if own is not None or cls.__module__.partition(".")[0] == "hocket":
        return own
    return next((name for name, found in load_all(kind) if found is cls), None)


def is_builder(found: Any) -> bool:
    """Return whether what stands behind a name is called to make one, and is not one itself."""
    return isinstance(found, type) or inspect.isfunction(found)


def _required_arguments(build: Any) -> list[str]:
    return [
        name
        for name, argument in inspect.signature(build).parameters.items()
        if argument.default is argument.empty
        and argument.kind not in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD)
    ]
