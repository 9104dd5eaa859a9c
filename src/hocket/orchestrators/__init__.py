"""The algorithms: each is a function from a scenario to a plan.

In:  a Scenario
Out: the Plan of one step of its level
"""

from hocket.orchestrators.asynchronous import Asynchronous
from hocket.orchestrators.gauss_seidel import GaussSeidel
from hocket.orchestrators.iterate import Iterate
from hocket.orchestrators.jacobi import Jacobi
from hocket.orchestrators.multirate import Multirate

ORCHESTRATORS = {"jacobi": Jacobi(), "gauss-seidel": GaussSeidel(), "iterate": Iterate()}
"""The orchestrators that calls may name by a word."""

__all__ = ["ORCHESTRATORS", "Asynchronous", "GaussSeidel", "Iterate", "Jacobi", "Multirate"]
