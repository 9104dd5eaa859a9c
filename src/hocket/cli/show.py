"""hocket show: what is coupled with what.

In:  a scenario file, or an FMU
Out: the levels with their models and ports as a tree, their connections as tables; or the page of the FMU
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated

from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from hocket.cli import options
from hocket.cli.command_arguments import read_changed
from hocket.cli.fmu_page import fmu_page, is_fmu
from hocket.cli.options import flag
from hocket.cli.output_files import check_outputs, write_json
from hocket.cli.terminal import print_notes, print_out, titled_table
from hocket.coupling.wiring import Drive
from hocket.errors import ScenarioError, merge_notes
from hocket.files import wording
from hocket.model.clock import format_duration
from hocket.model.composite import Composite
from hocket.model.composite import levels as levels_of
from hocket.model.experiment import Experiment
from hocket.model.protocols import Model, period_of
from hocket.planning.planner import plan_tree
from hocket.planning.prepare import without_constraints
from hocket.planning.tree import PlanTree
from hocket.simulators.python import Python
from hocket.simulators.wrappers.emulation import emulation_layers, innermost_model


def describe(
    files: options.Files, changes: options.Changes = options.NO_CHANGES, as_json: options.Json = None
) -> None:
    """Classify a scenario as the literature does. Nothing is run.

    Examples:
        hocket describe car.toml
    """
    from hocket.analysis.classification import UNKNOWN, classify

    check_outputs(as_json)
    experiment = read_changed(files, changes, looks=True)
    rows = [{"term": term, "here": here} for term, here in classify(experiment.composite).items()]
    if as_json:
        notes = merge_notes(experiment.notes)
        facts = {"name": experiment.name, "terms": rows, "only its author knows": UNKNOWN, "notes": notes}
        write_json(as_json, "describe", facts)
        if str(as_json) == "-":
            return
    print_out(*titled_table(experiment.name, rows, None))
    print_out("", "only its author knows:", *(f"  {question}" for question in UNKNOWN))
    print_notes(experiment.notes)


def show(
    files: options.Files,
    changes: options.Changes = options.NO_CHANGES,
    everything: Annotated[bool, flag("--all", "Of an FMU: its local variables too.")] = False,
    as_json: options.Json = None,
) -> None:
    """Print levels, models, ports and connections, or all about an FMU. Nothing is run.

    Examples:
        hocket show car.toml
        hocket show ball.fmu --all
        hocket show a.fmu b.fmu --connect b.u=a.y
    """
    file, *more = files
    check_outputs(as_json)
    if not as_json and is_fmu(file) and not more and not changes.typed_options().keys() - {"--build"}:
        print_out(*fmu_page(file, everything, changes.build))
        return
    experiment = read_changed(files, changes, looks=True)
    if everything:
        what = f"`--all` is for an FMU, and `{file.name}` is not one"
        raise ScenarioError(what, str(file), "an FMU", "leave it out: all of a scenario is shown")
    composite = without_constraints(experiment.composite, tries=False)
    levels = {level.path: level for level in plan_tree(composite).levels()}
    if as_json:
        write_json(as_json, "show", _scenario_facts(experiment, composite, levels))
        if str(as_json) == "-":
            return
    tree = Tree(_branch_label(experiment.name, _level_facts(levels[""], None)), guide_style="dim")
    _add_level(tree, composite, "", levels)
    print_out(tree)
    for before, each in levels_of(composite):
        path = before.removesuffix(".")
        place = f"inside {path}" if path else f"of {experiment.name}"
        print_out(*titled_table(f"connections {place}", list(_connection_rows(each, levels[path])), None))
        print_out(*titled_table(f"power bonds {place}", list(_bond_rows(each, levels[path])), None))
    rows = [
        {"constraint": f"{path}{name}", "equations": "; ".join(constraint.equations)}
        for path, each in levels_of(experiment.composite)
        for name, constraint in each.scenario.constraints.items()
    ]
    print_out(*titled_table(f"constraints of {experiment.name}", rows, None))
    crossings = list(_crossing_rows(experiment.composite))
    print_out(*titled_table(f"crossings of {experiment.name}", crossings, None))
    print_out("", _run_line(experiment))
    print_notes(experiment.notes)


def _scenario_facts(
    experiment: Experiment, composite: Composite, levels: Mapping[str, PlanTree]
) -> dict[str, object]:
    """Return what is shown, for JSON; paths are those from the outermost level."""
    inside: list[dict[str, object]] = []
    models: list[dict[str, object]] = []
    connections: list[dict[str, object]] = []
    bonds: list[dict[str, object]] = []
    for before, each in levels_of(composite):
        path = before.removesuffix(".")
        around = levels[path.rpartition(".")[0]] if path else None
        inside.append({"level": path, "about": list(_level_facts(levels[path], around))})
        connections += [{"level": path, **row} for row in _connection_rows(each, levels[path])]
        for row in _bond_rows(each, levels[path]):
            bonds.append({"level": path, **{key: str(value) for key, value in row.items()}})
        for name, model in each.scenario.models.items():
            if not isinstance(model, Composite):
                ports = {"inputs": model.inputs, "outputs": model.outputs}
                listed = {
                    role: [{"name": port.name, "unit": port.unit, "type": port.type} for port in those]
                    for role, those in ports.items()
                }
                models.append({"model": f"{before}{name}", "about": list(_model_facts(model)), **listed})
    return {
        "name": experiment.name,
        "start": float(experiment.start),
        "stop": None if experiment.stop is None else float(experiment.stop),
        "levels": inside,
        "models": models,
        "connections": connections,
        "bonds": bonds,
        "crossings": list(_crossing_rows(experiment.composite)),
        "notes": merge_notes(experiment.notes),
    }


def _add_level(tree: Tree, composite: Composite, path: str, levels: Mapping[str, PlanTree]) -> None:
    """Add what a level holds to the tree."""
    _add_ports(tree, composite)
    for name, model in composite.scenario.models.items():
        inside = f"{path}.{name}" if path else name
        if isinstance(model, Composite):
            branch = tree.add(_branch_label(name, _level_facts(levels[inside], levels[path])))
            _add_level(branch, model, inside, levels)
        else:
            _add_ports(tree.add(_branch_label(name, _model_facts(model))), model)


def _branch_label(name: str, facts: Iterable[str]) -> Text:
    return Text.assemble((name, "bold"), "  ", ", ".join(facts))


def _level_facts(level: PlanTree, around: PlanTree | None) -> Iterator[str]:
    yield wording.describe_pace(level, around)
    yield wording.describe_orchestrator(level.composite.orchestrator)
    yield f"extrapolation {wording.describe_extrapolation(level.composite.extrapolation)}"
    yield f"outputs {level.plan.outputs}"


def _model_facts(model: Model) -> Iterator[str]:
    """Yield what is worth knowing about a model, with its capabilities."""
    able, period = model.capabilities, period_of(model)
    yield from wording.describe_model(model)
    yield from [f"sampled every {format_duration(period)}"] if period else []
    bare = innermost_model(model)
    yield from [bare.sampling.words] if isinstance(bare, Python) and bare.sampling else []
    yield from ["rollback"] if able.rollback else []
    yield from ["output derivatives"] if able.slopes else []
    yield from [] if able.variable_step else ["only the step of its level"]
    yield from [] if able.input_degree is None else [f"inputs up to degree {able.input_degree}"]
    yield from (layer.emulation for layer in emulation_layers(model))


def _add_ports(tree: Tree, model: Model) -> None:
    """Add the ports of a model to its branch."""
    grid = Table.grid(padding=(0, 2))
    for role, ports in (("in", model.inputs), ("out", model.outputs)):
        for port in ports:
            start = "" if port.start is None or role == "out" else f"= {port.start:g}"
            every = len(model.inputs) > 2 and len(port.feedthrough) == len(model.inputs)
            listed = "all inputs" if every else ", ".join(port.feedthrough)
            through = f"direct feedthrough of {listed}" if listed else ""
            style = "cyan" if role == "in" else "green"
            name = _with_unit(port.name, port.unit)
            about = f"event{', ' if through else ''}{through}" if port.event else through
            grid.add_row(Text(role, style), name, start, Text(about, "dim"))
    if grid.row_count:
        tree.add(grid)


def _with_unit(name: str, unit: str) -> Text:
    return Text.assemble(name, (f" [{unit}]" if unit else "", "dim"))


def _connection_rows(composite: Composite, level: PlanTree) -> Iterator[dict[str, object]]:
    """Yield the connections of a level: what drives what, and how it is extrapolated and converted."""
    drives = dict(_drives_by_input(level))
    for connection in composite.scenario.connections:
        drive = drives.get(connection.target)
        yield {
            "input": connection.target,
            "output that drives it": connection.source,
            "extrapolation": wording.describe_drive(drive) if drive else "text",
            "conversion": wording.describe_conversion(drive) if drive else "",
        }


def _crossing_rows(composite: Composite) -> Iterator[dict[str, object]]:
    """Yield the crossings of all levels: of which output, and what counts."""
    for path, level in levels_of(composite):
        for name, each in level.scenario.crossings.items():
            yield {
                "crossing": f"{path}{name}",
                "output": f"{path}{each.output}",
                "direction": each.direction,
                "at": f"{each.at:g}",
                "hysteresis": f"{each.hysteresis:g}" if each.hysteresis else "none",
            }


def _bond_rows(composite: Composite, level: PlanTree) -> Iterator[dict[str, object]]:
    """Yield the power bonds of a level: their inputs, the direction in which power counts, and the remedy."""
    wiring = level.wiring
    for joint in wiring.bonds:
        bond = composite.scenario.bonds[joint.name]
        yield {
            "bond": joint.name,
            "effort drives": _bond_input(bond.effort, wiring.models[joint.taken.child]),
            "flow drives": _bond_input(bond.flow, wiring.models[joint.given.child]),
            "power": joint.unit or "any unit",
            "from": wiring.names[joint.given.child],
            "to": wiring.names[joint.taken.child],
            "balance": wording.describe_balance(bond),
        }


def _bond_input(path: str, model: Model) -> Text:
    """Return an input of a bond with its unit."""
    units = {port.name: port.unit for port in model.inputs}
    return _with_unit(path, units.get(path.partition(".")[2], ""))


def _drives_by_input(level: PlanTree) -> Iterator[tuple[str, Drive]]:
    """Yield what drives each input of the models of a level, and each output of the level itself."""
    wiring = level.wiring
    for name, model, drives in zip(wiring.names, wiring.models, wiring.drives, strict=True):
        for port, drive in zip(model.inputs, drives, strict=True):
            if drive is not None:
                yield f"{name}.{port.name}", drive
    for port, drive in zip(level.composite.scenario.outputs, wiring.outputs, strict=True):
        yield port.name, drive


def _run_line(experiment: Experiment) -> str:
    stop, every = experiment.stop, experiment.every
    end = "until told to stop by --stop" if stop is None else f"to {format_duration(stop)}"
    rows = every if isinstance(every, str) else "step" if every is None else format_duration(every)
    kept = ", ".join(experiment.composite.scenario.record)
    return f"runs from {format_duration(experiment.start)} {end}, a row every {rows}, recording {kept}"
