"""`hocket.linearize`: a coupled scenario as a `control.StateSpace`, for the design of controllers.

In:  an experiment; inputs and outputs by path; where it is linearised
Out: the coupled model in continuous time, or the plan that is run in discrete time, with names
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hocket.analysis.exact_solution import block_diagonal, check_singular_loops, leaf_system, wiring_matrices
from hocket.analysis.linear_models import named_leaves
from hocket.analysis.linear_reading import Indices, Reading, live_columns, read_linear
from hocket.analysis.linearisation import linearise
from hocket.coupling.wiring import CONSTANT
from hocket.errors import Fault, Place, ScenarioError, raise_faults, suggest_nearest
from hocket.files.experiments import ExperimentLike, as_experiment
from hocket.model.arguments import expect, free_name, is_flag
from hocket.model.clock import Duration
from hocket.model.composite import Composite
from hocket.model.extrapolators import Hold
from hocket.model.ports import Port
from hocket.model.protocols import Array
from hocket.model.scenario import Connection
from hocket.planning.parameters import change_level
from hocket.planning.planner import plan_tree
from hocket.planning.tree import PlanTree
from hocket.simulators.state_space import StateSpace

if TYPE_CHECKING:
    import control

Matrices = tuple[Array, Array, Array, Array, list[str]]
"""A, B, C, D and the names of the states."""


def linearize(
    experiment: ExperimentLike,
    inputs: Sequence[str],
    outputs: Sequence[str],
    at: Duration | None = None,
    *,
    discrete: bool = False,
) -> control.StateSpace:
    """Return the coupled scenario around an operating point, as a `control.StateSpace` with names.

    `inputs` are paths of inputs at any depth, of inputs of the scenario itself, or of outputs: each is cut
    from what drives it, as `Live.set` does. `outputs` are paths of outputs. `at` is the time after the start
    at which it is linearised, a whole number of macro steps; None: the start. The model is that of the
    coupled simulators in continuous time, without any macro step; with `discrete` it is that of the plan,
    from macro step to macro step, its inputs held: what `hocket.open` does when it is stepped. States, inputs
    and outputs are deviations from the operating point. `_` stands for `.` in names. It needs the package
    `control`, and linear models of all simulators: of `Ode`, FMUs and black boxes they are found.
    """
    try:
        import control as package
    except ImportError:
        what, hint = "control is not installed", "pip install 'hocket[control]'"
        raise ScenarioError(what, "linearize", "the package `control`", hint) from None
    for name, given in (("inputs", inputs), ("outputs", outputs)):
        fits = isinstance(given, Sequence) and not isinstance(given, str)
        listed = fits and len(given) > 0 and all(isinstance(path, str) for path in given)
        expect(listed, name, given, 'a list of paths, at least one: ["car.force"]')
        twice = sorted({path for path in given if list(given).count(path) > 1})
        expect(not twice, name, list(given), f"each path once; `{''.join(twice[:1])}` is there twice")
    expect(is_flag(discrete), "discrete", discrete, "True or False")
    what_runs = as_experiment(experiment, done="linearised")
    _check_paths(plan_tree(what_runs.composite), inputs, outputs)
    linear = linearise(what_runs.composite, at, start=what_runs.start).composite
    find = _plan_matrices if discrete else _coupled_matrices
    (A, B, C, D, states), dt = find(linear, list(inputs), list(outputs))
    labels = {
        "states": _label_paths(states),
        "inputs": _label_paths(inputs),
        "outputs": _label_paths(outputs),
    }
    title = {"name": _label_paths([what_runs.name])[0]} if what_runs.name else {}
    return package.StateSpace(A, B, C, D, dt, remove_useless_states=False, **labels, **title)


def _check_paths(design: PlanTree, inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """Refuse paths of ports that are not there, or have no value at all times, all at once."""
    shown, taken = _paths(design, lambda model: model.outputs), _paths(design, lambda model: model.inputs)
    taken |= {port.name: port for port in design.composite.inputs}
    faults: list[Fault] = []
    for which, paths, known in (("inputs", inputs, taken | shown), ("outputs", outputs, shown)):
        for path in paths:
            port = known.get(path)
            if port is None:
                expected = "an output by its path" if which == "outputs" else "an input or output by its path"
                hint = suggest_nearest(path, known)
                faults.append(Fault(f"there is no port `{path}`", Place(which), expected, hint))
            elif port.event:
                what = f"`{path}` is an event: it has a value at instants only"
                faults.append(Fault(what, Place(which), "a port that has a value at all times"))
    raise_faults(faults)


def _paths(design: PlanTree, ports: Callable[[Any], tuple[Port, ...]]) -> dict[str, Port]:
    leaves = design.leaves.wiring
    pairs = zip(leaves.names, leaves.models, strict=True)
    return {f"{name}.{port.name}": port for name, model in pairs for port in ports(model)}


def _label_paths(paths: Sequence[str]) -> list[str]:
    """Return names without dots, which `control` keeps for itself, each once."""
    found: list[str] = []
    for path in paths:
        found.append(free_name(path.replace(".", "_"), found))
    return found


# in continuous time


def _coupled_matrices(composite: Composite, inputs: list[str], outputs: list[str]) -> tuple[Matrices, float]:
    """Return the leaves wired directly to each other: x' = A x + B s, y = C x + D s, s being the inputs."""
    leaves = named_leaves(composite)
    blocks = [leaf_system(name, model) for name, model in leaves]
    a, b, c, d = (block_diagonal(parts) for parts in zip(*(block[:4] for block in blocks), strict=True))
    L, _ = wiring_matrices(composite)
    E = _entries(composite, inputs)
    rows = [f"{name}.{port.name}" for name, model in leaves for port in model.outputs]
    L = L.copy()
    L[[_input_paths(composite).index(path) for path in inputs if path in _input_paths(composite)]] = 0.0
    shown = np.zeros((len(rows), len(inputs)))
    for column, path in enumerate(inputs):
        if path in rows:  # an output: it shows the input to all that it drives
            row = rows.index(path)
            c[row], d[row], shown[row, column] = 0.0, 0.0, 1.0
    loop = d @ L
    check_singular_loops(loop, tuple(rows))
    right = np.hstack([c, d @ E + shown])
    y = np.linalg.solve(np.eye(len(loop)) - loop, right)
    n = len(a)
    u = L @ y
    u[:, n:] += E
    chosen = [rows.index(path) for path in outputs]
    sizes = zip(leaves, blocks, strict=True)
    states = [f"{name}.x{k + 1}" for (name, _), block in sizes for k in range(len(block[4]))]
    return (a + b @ u[:, :n], b @ u[:, n:], y[chosen, :n], y[chosen, n:], states), 0.0


def _input_paths(composite: Composite) -> list[str]:
    return [f"{name}.{port.name}" for name, model in named_leaves(composite) for port in model.inputs]


def _entries(composite: Composite, inputs: list[str]) -> Array:
    """Return how inputs of leaves follow those of the model: by themselves, or from those of the scenario."""
    wiring = plan_tree(composite).leaves.wiring
    drives = [drive for drives in wiring.drives for drive in drives]
    own = [port.name for port in composite.inputs]
    E = np.zeros((len(drives), len(inputs)))
    for row, (path, drive) in enumerate(zip(_input_paths(composite), drives, strict=True)):
        if path in inputs:
            E[row, inputs.index(path)] = 1.0
        elif drive is not None and drive.child < 0 and drive.child != CONSTANT and own[drive.port] in inputs:
            E[row, inputs.index(own[drive.port])] = drive.gain
    return E


# in discrete time


def _plan_matrices(composite: Composite, inputs: list[str], outputs: list[str]) -> tuple[Matrices, float]:
    """Return one period of the plan: z[k+1] = A z[k] + B s[k], y[k] = C z[k], s[k] being held over it."""
    held: list[str] = []
    for path in inputs:
        composite, name = _with_held_input(composite, path)
        held.append(name)
    reading = read_linear(composite)
    owners = [cell.owner for cell in reading.cells]
    given = np.array([[cell == name for name in held] for cell in owners], dtype=float)
    given = given.reshape(len(owners), len(held))
    free = np.flatnonzero(given.sum(axis=1) == 0.0)
    Phi, push = reading.Phi[np.ix_(free, free)], reading.Phi[free] @ given
    C, D = _output_rows(reading, dict(zip(inputs, held, strict=True)), free, inputs, outputs)
    live = live_columns(Phi, C)
    states = [str(reading.cells[index]) for index in free[live]]
    return (Phi[np.ix_(live, live)], push[live], C[:, live], D, states), float(reading.period)


def _output_rows(
    reading: Reading, held: dict[str, str], free: Indices, inputs: list[str], outputs: list[str]
) -> tuple[Array, Array]:
    """Return the newest samples of outputs as rows; an output that is an input shows what it is given."""
    C, D = np.zeros((len(outputs), len(reading.cells))), np.zeros((len(outputs), len(inputs)))
    for row, path in enumerate(outputs):
        if path in held:
            D[row, inputs.index(path)] = 1.0
        else:
            C[row, reading.newest[path]] = 1.0
    return C[:, free], D


def _with_held_input(composite: Composite, path: str) -> tuple[Composite, str]:
    """Return the composite with a port driven by a number that is held, and the path of what holds it."""
    own = next((port for port in composite.inputs if port.name == path), None)
    if own is not None:
        return _hold_own_input(composite, own)
    for level in plan_tree(composite).levels():
        for child, model in enumerate(level.wiring.models):
            for ports, is_input in ((model.inputs, True), (model.outputs, False)):
                port = next((port for port in ports if f"{level.name(child)}.{port.name}" == path), None)
                if port is None:
                    continue
                holder = free_name("held", level.composite.scenario.models)
                hold = partial(
                    _hold, holder=holder, owner=level.wiring.names[child], port=port, driven=is_input
                )
                prefix = f"{level.path}." if level.path else ""
                return change_level(composite, level.path, hold), prefix + holder
    raise ScenarioError(f"there is no port `{path}`", "inputs")


def _hold(composite: Composite, holder: str, owner: str, port: Port, driven: bool) -> Composite:
    """Return a level in which a port of one of its models is what a holder shows."""
    path, wires = f"{owner}.{port.name}", []
    for wire in composite.scenario.connections:
        if driven and wire.target == path:
            continue
        if not driven and wire.source == path:
            wire = replace(wire, source=f"{holder}.y", extrapolation=Hold())
        wires.append(wire)
    if driven:
        wires.append(Connection(f"{holder}.y", path, Hold()))
    return _with_holder(composite, holder, wires, port)


def _hold_own_input(composite: Composite, port: Port) -> tuple[Composite, str]:
    """Return the composite with an input of the scenario itself held inside, and what holds it."""
    scenario = composite.scenario
    holder = free_name("held", scenario.models)
    wires = [
        replace(wire, source=f"{holder}.y", extrapolation=Hold()) if wire.source == port.name else wire
        for wire in scenario.connections
    ]
    left = [each for each in scenario.inputs if each.name != port.name]
    without = composite.with_scenario(scenario.with_changes(inputs=(), connections=()))
    changed = _with_holder(without, holder, wires, port)
    return changed.with_scenario(changed.scenario.with_changes(inputs=left)), holder


def _with_holder(composite: Composite, holder: str, wires: list[Connection], port: Port) -> Composite:
    """Return a level with one more model, which shows a number that nothing changes."""
    model = StateSpace([[0.0]], C=[[1.0]], x0=[0.0], outputs=[Port("y", port.unit)])
    scenario = composite.scenario
    models = {holder: model, **scenario.models}
    changes = {"models": models, "connections": wires, "bonds": {}, "hosts": None}
    return composite.with_scenario(scenario.with_changes(**changes))
