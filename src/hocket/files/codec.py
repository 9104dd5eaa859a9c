"""The one table of everything a file can describe: kinds, their fields, and how those are written.

In:  nothing
Out: the kinds from which reading, writing and the JSON Schema follow

A new kind of model, orchestrator or extrapolator needs one entry here and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal, get_args

from hocket.engine.composite import Composite, StartMode
from hocket.errors import ScenarioError
from hocket.files.forms import (
    CODE,
    DURATION,
    FOLDER,
    MATRIX,
    NUMBER,
    TEXT,
    TEXTS,
    VALUES,
    VECTOR,
    WHOLE,
    Choice,
    Either,
    Listing,
    Mapped,
    Zeros,
)
from hocket.files.kinds import Family, Field, Kind, kind
from hocket.files.levels import Connections, Included, Models, Order
from hocket.files.study import Study
from hocket.model import Connection, Extrapolator, Model, Orchestrator, Port, Scenario
from hocket.orchestrators import GaussSeidel, Jacobi
from hocket.orchestrators.exchange import InputsMode
from hocket.plan import OutputsMode
from hocket.signals import NAMED, Hermite, Hold, Nepce, Polynomial
from hocket.simulators.methods import MethodName
from hocket.simulators.ode import METHODS, Ode
from hocket.simulators.python import Python
from hocket.simulators.sources import Csv, Function, Interpolation, Outside, Table
from hocket.simulators.state_space import Gain, StateSpace, Sum
