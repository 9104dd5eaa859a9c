"""hocket couples simulators into one simulation, at any depth.

In:  models and what connects them
Out: a run, with its plan and its rows
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from hocket.errors import ConvergenceError, HocketError, ScenarioError, SimulatorError
from hocket.execution.run import run
from hocket.execution.sweep import sweep
from hocket.files.formats import read, write
from hocket.files.run_folder import Run, open_run
from hocket.model.bonds import Bond
from hocket.model.composite import Composite
from hocket.model.extrapolators import BalanceCorrection, Hermite, Hold, Nepce, Polynomial
from hocket.model.ports import Port
from hocket.model.protocols import Capabilities
from hocket.model.scenario import Connection, Scenario
from hocket.orchestrators import Asynchronous, GaussSeidel, Iterate, Jacobi, Multirate
from hocket.orchestrators.adaptive import Adaptive
from hocket.simulators.fmu import Fmu
from hocket.simulators.ode import Ode
from hocket.simulators.python import Python
from hocket.simulators.sources import Csv, Function, Table
from hocket.simulators.state_space import Gain, StateSpace, Sum

if TYPE_CHECKING:
    from hocket.analysis.coupling_check import check
    from hocket.execution.compile import compile
    from hocket.search.nest.nest import nest
    from hocket.search.tune.tune import tune


try:
    __version__ = version("hocket")
except PackageNotFoundError:
    __version__ = "0+unknown"

# fmt: off
__all__ = [  # noqa: RUF022 - in the order of the story
    # what is coupled
    "Scenario", "Connection", "Bond", "Port", "Capabilities",
    "StateSpace", "Sum", "Gain", "Python", "Ode", "Fmu", "Table", "Csv", "Function",
    # how
    "Composite", "Jacobi", "GaussSeidel", "Iterate", "Multirate", "Asynchronous", "Adaptive",
    "Hold", "Polynomial", "Hermite", "Nepce", "BalanceCorrection",
    # files
    "read", "write",
    # a better coupling
    "compile", "nest", "tune",
    # running and looking
    "check", "run", "sweep", "Run", "open_run",
    # what can go wrong
    "HocketError", "ScenarioError", "SimulatorError", "ConvergenceError",
]
# fmt: on


if not TYPE_CHECKING:  # a checker of types must go on to see names that are not there
    _LATER = {
        "check": "hocket.analysis.coupling_check",
        "compile": "hocket.execution.compile",
        "nest": "hocket.search.nest.nest",
        "tune": "hocket.search.tune.tune",
    }

    def __getattr__(name: str) -> Any:
        """Return what is imported when it is first used, so that the others start sooner."""
        if name not in _LATER:
            raise AttributeError(f"module `hocket` has no attribute `{name}`")
        globals()[name] = getattr(import_module(_LATER[name]), name)
        return globals()[name]
