"""The interface Jacobian of a level: how what a pass of a step finds depends on what it was given.

In:  a Composite, an Experiment or the path of a file
Out: an InterfaceJacobian: the matrix K for `Newton(jacobian=...)` and `PredictorCorrector(jacobian=...)`

It follows from linear models of the simulators: their own, Jacobians of FMUs by directional derivatives where
they have them, else identified ones (theory, section 7.4; Sicklinger et al. 2014).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hocket.analysis.linear_reading import read_linear
from hocket.analysis.linearisation import LinearisedLeaf, linearise
from hocket.engine.opening import open_level
from hocket.errors import ScenarioError
from hocket.files.experiments import ExperimentLike, as_experiment
from hocket.model.composite import Composite, traits_of
from hocket.orchestrators.iterate import Iterate
from hocket.plan import Repeat
from hocket.planning.clocks import clock_of
from hocket.planning.planner import plan_tree


@dataclass(frozen=True)
class InterfaceJacobian:
    """Derivatives of the outputs that a pass finds by those that it was given, at the start of a run."""

    names: tuple[str, ...]
    """The outputs: of rows and columns."""
    matrix: tuple[tuple[float, ...], ...]
    leaves: tuple[LinearisedLeaf, ...]
    """How each simulator got its linear model."""


def interface_jacobian(what: ExperimentLike) -> InterfaceJacobian:
    """Return the interface Jacobian of the outermost level, for the algorithm inside its iteration.

    It is that of the macro step and the extrapolation of the level: another step needs another one. Raises
    ScenarioError where a simulator has no linear model, or nothing is handed back.
    """
    experiment = as_experiment(what, done="linearised")
    orchestrator = experiment.composite.orchestrator
    traits = traits_of(orchestrator)
    inner = traits.inner if traits.iterates and traits.inner is not None else orchestrator
    made = linearise(
        replace(experiment.composite, orchestrator=Iterate(inner)), still=True, start=experiment.start
    )
    reading = read_linear(made.composite)
    matrix = next((K for path, K in reading.sweeps if not path), None)
    if matrix is None:
        raise ScenarioError("no output is handed back from one pass to the next", "interface_jacobian")
    names = _handed_back(reading.composite)
    return InterfaceJacobian(names, tuple(tuple(map(float, row)) for row in matrix), made.leaves)


def _handed_back(composite: Composite) -> tuple[str, ...]:
    """Return the outputs that a pass hands to the next one, in the order of the numbers."""
    design = plan_tree(composite)
    root = open_level(design, clock_of(design))
    try:
        repeat = next(each for level, each in design.instructions(Repeat) if not level.path)
        unknowns = root.unknowns_of(repeat)
        return tuple(unknowns.name(place) for place in unknowns.places)
    finally:
        root.close()
