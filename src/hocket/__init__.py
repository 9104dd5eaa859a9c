"""hocket couples simulators into one simulation, at any depth, and says how far to trust it.

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
from hocket.model import Abilities, Connection, Port, Scenario
from hocket.orchestrators import GaussSeidel, Jacobi
from hocket.running import run
from hocket.signals import Hermite, Hold, Nepce, Polynomial
from hocket.simulators.state_space import Gain, StateSpace, Sum

try:
    __version__ = version("hocket")
except PackageNotFoundError:
    __version__ = "0+unknown"
