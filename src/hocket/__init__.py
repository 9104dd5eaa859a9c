"""hocket couples simulators into one simulation, at any depth.

In:  models and what connects them
Out: a run, with its plan and its rows
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from hocket.bonds import Bond
from hocket.engine.composite import Composite
from hocket.errors import ConvergenceError, HocketError, ScenarioError, SimulatorError
from hocket.files.formats import read, write
from hocket.files.run import Run, open_run
from hocket.model import Capabilities, Connection, Port, Scenario
from hocket.orchestrators import Asynchronous, GaussSeidel, Iterate, Jacobi, Multirate
from hocket.orchestrators.adaptive import Adaptive
from hocket.running import run
from hocket.signals import BalanceCorrection, Hermite, Hold, Nepce, Polynomial
from hocket.simulators.fmu import Fmu
from hocket.simulators.ode import Ode
from hocket.simulators.python import Python
from hocket.simulators.sources import Csv, Function, Table
from hocket.simulators.state_space import Gain, StateSpace, Sum
from hocket.sweeping import sweep

if TYPE_CHECKING:
    from hocket.analysis.checking import check
    from hocket.nesting.nest import nest
    from hocket.passes.compiler import compile
    from hocket.tuning.tune import tune

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
        "check": "hocket.analysis.checking",
        "compile": "hocket.passes.compiler",
        "nest": "hocket.nesting.nest",
        "tune": "hocket.tuning.tune",
    }

    def __getattr__(name: str) -> Any:
        """Return what is imported when it is first used, so that the others start sooner."""
        if name not in _LATER:
            raise AttributeError(f"module `hocket` has no attribute `{name}`")
        globals()[name] = getattr(import_module(_LATER[name]), name)
        return globals()[name]
