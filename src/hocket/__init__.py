"""hocket couples simulators into one simulation, at any depth.

In:  models and what connects them
Out: a run, with its plan and its rows

Every name is imported when it is first used, so that each program pays for what it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hocket import blocks as blocks
    from hocket import testing as testing
    from hocket.analysis.coupled_linearisation import linearize
    from hocket.analysis.coupling_check import check
    from hocket.analysis.error_budget import error_budget
    from hocket.analysis.interface_jacobian import interface_jacobian
    from hocket.analysis.run_comparison import compare
    from hocket.analysis.uncertainty import study
    from hocket.errors import ConvergenceError, HocketError, HostError, ScenarioError, SimulatorError
    from hocket.execution.compile import compile
    from hocket.execution.distributed.lead import run_distributed
    from hocket.execution.fmu_export.export import export
    from hocket.execution.gym import gym
    from hocket.execution.live import open
    from hocket.execution.resume import resume
    from hocket.execution.run import run
    from hocket.execution.sweep import sweep
    from hocket.files.formats import read, write
    from hocket.files.run_folder import Run, open_run
    from hocket.model.bonds import Bond
    from hocket.model.composite import Composite
    from hocket.model.crossings import Crossing
    from hocket.model.experiment import Experiment
    from hocket.model.extrapolators import BalanceCorrection, Hermite, Hold, Nepce, Polynomial
    from hocket.model.ports import Port
    from hocket.model.protocols import Capabilities
    from hocket.model.scenario import Connection, Scenario
    from hocket.orchestrators.adaptive import Adaptive
    from hocket.orchestrators.asynchronous import Asynchronous
    from hocket.orchestrators.gauss_seidel import GaussSeidel
    from hocket.orchestrators.iterate import Iterate
    from hocket.orchestrators.jacobi import Jacobi
    from hocket.orchestrators.multirate import Multirate
    from hocket.orchestrators.predictor_corrector import PredictorCorrector
    from hocket.orchestrators.waveform import Waveform
    from hocket.search.fit import fit
    from hocket.search.nest.nest import nest
    from hocket.search.tune.tune import tune
    from hocket.simulators.dae import Dae
    from hocket.simulators.devs import Atomic, Devs
    from hocket.simulators.fmu.recipe import Fmu
    from hocket.simulators.ode import Event, Ode
    from hocket.simulators.python import Python
    from hocket.simulators.schedule import Schedule
    from hocket.simulators.simpy_environment import SimPy
    from hocket.simulators.sources import Csv, Function, Table
    from hocket.simulators.state_space import Gain, StateSpace, Sum

    __version__: str

# fmt: off
__all__ = [  # noqa: RUF022 - in the order of the story
    # what is coupled
    "Scenario", "Connection", "Bond", "Crossing", "Port", "Capabilities",
    "StateSpace", "Sum", "Gain", "Python", "Ode", "Dae", "Event",
    "Fmu", "Table", "Csv", "Schedule", "Function",
    "SimPy", "Devs", "Atomic",
    # how
    "Composite", "Experiment", "Jacobi", "GaussSeidel", "Iterate", "PredictorCorrector", "Waveform",
    "Multirate", "Asynchronous", "Adaptive", "Hold", "Polynomial", "Hermite", "Nepce", "BalanceCorrection",
    # files
    "read", "write", "export",
    # a better coupling
    "compile", "nest", "tune",
    # running and looking
    "check", "run", "run_distributed", "resume", "open", "sweep", "study", "fit", "error_budget",
    "Run", "open_run", "compare", "interface_jacobian",
    # for other tools
    "gym", "linearize",
    # what can go wrong
    "HocketError", "ScenarioError", "SimulatorError", "ConvergenceError", "HostError",
]
# fmt: on


if not TYPE_CHECKING:  # a checker of types must go on to see names that are not there
    _MODULES = {
        "analysis.coupling_check": ("check",),
        "analysis.coupled_linearisation": ("linearize",),
        "analysis.error_budget": ("error_budget",),
        "analysis.interface_jacobian": ("interface_jacobian",),
        "analysis.run_comparison": ("compare",),
        "analysis.uncertainty": ("study",),
        "errors": ("ConvergenceError", "HocketError", "HostError", "ScenarioError", "SimulatorError"),
        "execution.compile": ("compile",),
        "execution.fmu_export.export": ("export",),
        "execution.gym": ("gym",),
        "execution.live": ("open",),
        "execution.resume": ("resume",),
        "execution.run": ("run",),
        "execution.distributed.lead": ("run_distributed",),
        "execution.sweep": ("sweep",),
        "files.formats": ("read", "write"),
        "files.run_folder": ("Run", "open_run"),
        "model.bonds": ("Bond",),
        "model.composite": ("Composite",),
        "model.crossings": ("Crossing",),
        "model.experiment": ("Experiment",),
        "model.extrapolators": ("BalanceCorrection", "Hermite", "Hold", "Nepce", "Polynomial"),
        "model.ports": ("Port",),
        "model.protocols": ("Capabilities",),
        "model.scenario": ("Connection", "Scenario"),
        "orchestrators": (
            "Adaptive",
            "Asynchronous",
            "GaussSeidel",
            "Iterate",
            "Jacobi",
            "Multirate",
            "PredictorCorrector",
            "Waveform",
        ),
        "search.fit": ("fit",),
        "search.nest.nest": ("nest",),
        "search.tune.tune": ("tune",),
        "simulators.dae": ("Dae",),
        "simulators.devs": ("Atomic", "Devs"),
        "simulators.fmu.recipe": ("Fmu",),
        "simulators.ode": ("Event", "Ode"),
        "simulators.python": ("Python",),
        "simulators.schedule": ("Schedule",),
        "simulators.simpy_environment": ("SimPy",),
        "simulators.sources": ("Csv", "Function", "Table"),
        "simulators.state_space": ("Gain", "StateSpace", "Sum"),
    }
    _MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

    _RENAMED = {"Abilities": "Capabilities", "Study": "Experiment"}
    """Old names, for one release."""

    def __getattr__(name: str) -> Any:
        """Return a public name, imported when it is first used."""
        if name in _RENAMED:
            from warnings import warn

            warn(f"`hocket.{name}` is now `hocket.{_RENAMED[name]}`", DeprecationWarning, stacklevel=2)
            name = _RENAMED[name]
        if name == "__version__":
            found = _read_version()
        elif name in _MODULE_OF:
            from importlib import import_module

            found = getattr(import_module(f"hocket.{_MODULE_OF[name]}"), name)
        elif name in ("blocks", "testing"):
            from importlib import import_module

            found = import_module(f"hocket.{name}")
        else:
            raise AttributeError(f"module `hocket` has no attribute `{name}`")
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


def _read_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("hocket")
    except PackageNotFoundError:
        return "0+unknown"
