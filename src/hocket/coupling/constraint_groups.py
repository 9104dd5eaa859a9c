"""What constraints mean in a scenario: which inputs they determine, from which outputs, what hangs together.

In:  a Scenario with constraints
Out: a ConstraintGroup for each set of constraints that share simulators; or every fault that can be known
     before a model is opened
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hocket.coupling.level_ports import port_at
from hocket.errors import Fault, Place, ScenarioError, count, list_names, suggest_nearest
from hocket.model.composite import as_level
from hocket.model.constraints import Constraint
from hocket.model.equations import Equation
from hocket.model.ports import Port
from hocket.model.scenario import Scenario
from hocket.model.units import product_factor


@dataclass(frozen=True)
class ConstraintGroup:
    """Equations that must be solved together, because their simulators are shared."""

    constraints: tuple[str, ...]
    models: tuple[str, ...]
    """The models of the level that they couple, in the order of the scenario."""
    equations: tuple[Equation, ...]
    laws: tuple[Constraint, ...]
    """Per equation: the constraint that it is of, which says what is asked for."""
    rates: tuple[tuple[str, str], ...]
    reads: tuple[str, ...]
    """Outputs, and inputs of the level itself, in the equations and their rates."""
    determines: tuple[str, ...]
    """The inputs in the equations, and those that are to be found for them."""

    @property
    def where(self) -> str:
        """The place of its constraints in the scenario."""
        return f"constraints.{self.constraints[0]}"

    @property
    def once(self) -> bool:
        """Whether its inputs are corrected once a step, without rollback."""
        return all(law.once for law in self.laws)


def group_constraints(scenario: Scenario) -> tuple[list[ConstraintGroup], list[Fault]]:
    """Return what the constraints of a level couple, and all faults in them."""
    found: list[ConstraintGroup] = []
    faults: list[Fault] = []
    for name, constraint in scenario.constraints.items():
        try:
            equations = tuple(map(Equation.of, constraint.equations))
        except ScenarioError as error:
            for fault in error.faults:
                what = fault.what + (f", in the {fault.where}" if fault.where else "")
                faults.append(replace(fault, place=Place.of(f"constraints.{name}"), what=what))
            continue
        wrong = [*_path_faults(scenario, name, constraint, equations)]
        faults += wrong
        if not wrong:
            found.append(_single_constraint_group(scenario, name, constraint, equations))
    joined = _merge_overlapping_groups(scenario, found)
    for coupling in joined:
        if not coupling.once and any(law.once for law in coupling.laws):
            what = "constraints that share a simulator are solved together, and only some say `once`"
            faults.append(Fault(what, f"{coupling.where}.once", "all of them, or none"))
    faults += [fault for coupling in joined for fault in _count_faults(scenario, coupling)]
    return joined, faults


def determined_inputs(scenario: Scenario) -> set[str]:
    """Return the inputs that the constraints of a level determine."""
    return {path for coupling in group_constraints(scenario)[0] for path in coupling.determines}


def is_level_input(scenario: Scenario, path: str) -> bool:
    """Return whether a path is an input of the level itself."""
    return path in scenario.input_names


def find_equation_port(scenario: Scenario, path: str) -> Port | None:
    """Return the port that a path in an equation names: an output, an input, or one of the level itself."""
    if is_level_input(scenario, path):
        return next(port for port in scenario.inputs if port.name == path)
    return port_at(scenario, path, True) or port_at(scenario, path, False)


def _is_input(scenario: Scenario, path: str) -> bool:
    return not is_level_input(scenario, path) and port_at(scenario, path, True) is None


def _path_faults(
    scenario: Scenario, name: str, constraint: Constraint, equations: tuple[Equation, ...]
) -> Iterator[Fault]:
    where = f"constraints.{name}"
    used = dict.fromkeys(path for equation in equations for path in equation.paths)
    units: dict[str, str] = {}
    for path in constraint.determines:
        if find_equation_port(scenario, path) is not None and not _is_input(scenario, path):
            yield Fault(f"`{path}` is an output", f"{where}.determines", "inputs that nothing drives")
    rates = constraint.rates
    for path in dict.fromkeys((*used, *rates, *rates.values(), *constraint.determines)):
        port = find_equation_port(scenario, path)
        if port is None:
            yield Fault(f"there is no port `{path}`", where, "", _suggest_port(scenario, path))
            continue
        units[path] = port.unit
        source = _driver(scenario, path) if _is_input(scenario, path) else None
        if source is not None:
            what = f"`{path}` is driven by `{source}`, and stands in an equation that would determine it"
            yield Fault(what, where, "inputs that nothing else drives", f"write `{source}` in its place")
        if port.discrete:
            what = f"`{path}` jumps from value to value"
            yield Fault(what, where, "real ports that change continuously")
    for equation in equations:
        yield from equation.unit_faults(units, where)
    if all(path in units for path in used):  # else a misspelt name would be told twice
        yield from _rate_faults(scenario, constraint, used, units, where)


def _rate_faults(
    scenario: Scenario, constraint: Constraint, used: dict[str, None], units: dict[str, str], where: str
) -> Iterator[Fault]:
    for path, rate in constraint.rates.items():
        here = f"{where}.rates"
        if path not in used:
            hint = suggest_nearest(path, used)
            yield Fault(f"`{path}` stands in no equation", here, "an output of the equations", hint)
        driven = [each for each in (path, rate) if each in units and _is_input(scenario, each)]
        if driven:
            yield Fault(f"`{driven[0]}` is an input", here, "outputs and their time derivatives")
            continue
        try:
            same = product_factor(units.get(rate, ""), "s", units.get(path, "")) == 1.0
        except ValueError as error:
            same, reason = False, str(error)
        else:
            reason = f"`{units.get(rate)}` times seconds is not `{units.get(path)}`"
        if not same:
            yield Fault(f"`{rate}` is not the rate of `{path}`: {reason}", here, "its time derivative")


def _suggest_port(scenario: Scenario, path: str) -> str:
    known = [
        f"{name}.{port.name}"
        for name, model in scenario.models.items()
        for port in (*model.outputs, *model.inputs)
    ]
    return suggest_nearest(path, [*known, *scenario.input_names])


def _driver(scenario: Scenario, path: str) -> str | None:
    """Return what drives an input, in this level or inside it."""
    for connection in scenario.connections:
        if connection.target == path:
            return connection.source
    owner, _, rest = path.partition(".")
    level = as_level(scenario.models.get(owner))
    if level and is_level_input(level.scenario, rest):
        return None  # a port of the level, which hands on what it is given
    inner = _driver(level.scenario, rest) if level else None
    if inner is None or level is None or is_level_input(level.scenario, inner):
        return inner
    return f"{owner}.{inner}"


def _single_constraint_group(
    scenario: Scenario, name: str, constraint: Constraint, equations: tuple[Equation, ...]
) -> ConstraintGroup:
    paths = dict.fromkeys(path for equation in equations for path in equation.paths)
    paths |= dict.fromkeys(constraint.determines)
    known = [path for path in paths if not _is_input(scenario, path)]
    reads = dict.fromkeys((*known, *constraint.rates.values()))
    owners = {path.partition(".")[0] for path in (*paths, *reads) if not is_level_input(scenario, path)}
    return ConstraintGroup(
        (name,),
        tuple(model for model in scenario.models if model in owners),
        equations,
        (constraint,) * len(equations),
        tuple(constraint.rates.items()),
        tuple(reads),
        tuple(path for path in paths if _is_input(scenario, path)),
    )


def _merge_overlapping_groups(scenario: Scenario, found: list[ConstraintGroup]) -> list[ConstraintGroup]:
    """Return couplings that share no simulator."""
    joined: list[ConstraintGroup] = []
    for coupling in found:
        near = [each for each in joined if set(each.models) & set(coupling.models)]
        joined = [each for each in joined if each not in near]
        for each in near:
            coupling = _merge_group_pair(scenario, each, coupling)
        joined.append(coupling)
    return joined


def _merge_group_pair(scenario: Scenario, one: ConstraintGroup, other: ConstraintGroup) -> ConstraintGroup:
    return ConstraintGroup(
        (*one.constraints, *other.constraints),
        tuple(name for name in scenario.models if name in (*one.models, *other.models)),
        (*one.equations, *other.equations),
        (*one.laws, *other.laws),
        tuple(dict((*one.rates, *other.rates)).items()),
        tuple(dict.fromkeys((*one.reads, *other.reads))),
        tuple(dict.fromkeys((*one.determines, *other.determines))),
    )


def _count_faults(scenario: Scenario, coupling: ConstraintGroup) -> Iterator[Fault]:
    equations, inputs = len(coupling.equations), len(coupling.determines)
    if equations == inputs:
        return
    listed = f": {list_names(coupling.determines, inputs)}" if inputs else ""
    what = f"{count(equations, 'equation')} for {count(inputs, 'input')}{listed}"
    names = " and ".join(f"`{name}`" for name in coupling.constraints)
    expected = f"as many equations in {names} as inputs that nothing drives"
    yield Fault(what, coupling.where, expected, _count_hint(scenario, coupling))


def _count_hint(scenario: Scenario, coupling: ConstraintGroup) -> str:
    if len(coupling.equations) > len(coupling.determines):
        speeds = [e.text for e in coupling.equations if set(e.paths) <= {rate for _, rate in coupling.rates}]
        if speeds:
            return f"`{speeds[0]}` follows from `rates`: leave it out"
        return (
            "inputs that stand in no equation are named in `determines`, speeds of positions in `rates`;"
            " leave out what follows from other equations"
        )
    paths = (f"{name}.{port.name}" for name in coupling.models for port in scenario.models[name].inputs)
    undetermined = " and ".join([f"`{path}`" for path in paths if path in coupling.determines][:3])
    return f"say how {undetermined} belong together, as in `a.F + b.F = 0`"
