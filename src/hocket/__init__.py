"""hocket couples simulators into one simulation, at any depth.

In:  models and what connects them
Out: a run, with its plan and its rows
"""

from importlib.metadata import PackageNotFoundError, version

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
from hocket.orchestrators import GaussSeidel, Jacobi
from hocket.running import run
from hocket.signals import Hermite, Hold, Latch, Nepce, Polynomial
from hocket.simulators.fmu import Fmu
from hocket.simulators.ode import Ode
from hocket.simulators.python import Python
from hocket.simulators.sources import Csv, Function, Table
from hocket.simulators.state_space import Gain, StateSpace, Sum
from hocket.sweeping import sweep

try:
    __version__ = version("hocket")
except PackageNotFoundError:
    __version__ = "0+unknown"

# fmt: off
__all__ = [  # noqa: RUF022 - in the order of the story
    # what is coupled
    "Scenario", "Connection", "Port", "Abilities",
    "StateSpace", "Sum", "Gain", "Python", "Ode", "Fmu", "Table", "Csv", "Function",
    # how
    "Composite", "Jacobi", "GaussSeidel", "Hold", "Latch", "Polynomial", "Hermite", "Nepce",
    # files
    "read", "write",
    # running and looking
    "run", "sweep", "Run", "open_run",
    # what can go wrong
    "HocketError", "ScenarioError", "FileError", "SimulatorError", "ConvergenceError", "InternalError",
]
# fmt: on
