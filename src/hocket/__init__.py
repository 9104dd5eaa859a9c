"""hocket couples simulators into one simulation, at any depth.

In:  models and what connects them
Out: a run, with its plan and its rows
"""

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from hocket.bonds import Bond
from hocket.engine.composite import Composite
from hocket.errors import (
    ConvergenceError,
    FileError,
    HocketError,
    InternalError,
    ScenarioError,
    SimulatorError,
)
from hocket.files.formats import read, write
from hocket.files.run import Run, open_run
from hocket.model import Abilities, Connection, Port, Scenario
from hocket.orchestrators import Asynchronous, GaussSeidel, Iterate, Jacobi, Multirate
from hocket.orchestrators.adaptive import Adaptive
from hocket.running import run
from hocket.signals import BalanceCorrection, Hermite, Hold, Latch, Nepce, Polynomial
from hocket.simulators.fmu import Fmu
from hocket.simulators.ode import Ode
from hocket.simulators.python import Python
from hocket.simulators.sources import Csv, Function, Table
from hocket.simulators.state_space import Gain, StateSpace, Sum
from hocket.sweeping import sweep

if TYPE_CHECKING:
    from hocket.analysis.checking import check

try:
    __version__ = version("hocket")
except PackageNotFoundError:
    __version__ = "0+unknown"

# fmt: off
__all__ = [  # noqa: RUF022 - in the order of the story
    # what is coupled
    "Scenario", "Connection", "Bond", "Port", "Abilities",
    "StateSpace", "Sum", "Gain", "Python", "Ode", "Fmu", "Table", "Csv", "Function",
    # how
    "Composite", "Jacobi", "GaussSeidel", "Iterate", "Multirate", "Asynchronous", "Adaptive",
    "Hold", "Latch", "Polynomial", "Hermite", "Nepce", "BalanceCorrection",
    # files
    "read", "write",
    # running and looking
    "check", "run", "sweep", "Run", "open_run",
    # what can go wrong
    "HocketError", "ScenarioError", "FileError", "SimulatorError", "ConvergenceError", "InternalError",
]
# fmt: on


if not TYPE_CHECKING:  # a checker of types must go on to see names that are not there

    def __getattr__(name: str) -> Any:
        """Return what is imported when it is first used, so that the others start sooner."""
        if name != "check":
            raise AttributeError(f"module `hocket` has no attribute `{name}`")
        from hocket.analysis.checking import check

        globals()[name] = check
        return check
