"""hocket show: what is coupled with what.

In:  a scenario file, or an FMU
Out: the levels with their models and ports as a tree, their connections as tables; or the page of the FMU
"""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from hocket.cli import options
from hocket.cli.command_arguments import read_experiment
from hocket.cli.fmu_page import fmu_page, is_fmu
from hocket.cli.terminal import print_out, titled_table
from hocket.coupling.wiring import Drive
from hocket.errors import ScenarioError
from hocket.files import wording
from hocket.files.formats import read
from hocket.model.clock import format_duration
from hocket.model.composite import Composite
from hocket.model.composite import levels as levels_of
from hocket.model.experiment import Experiment
from hocket.model.ports import Port
from hocket.model.protocols import Model, is_isolated, method_of, origin_of, period_of, state_count, step_of
from hocket.planning.planner import plan_tree
from hocket.planning.prepare import without_constraints
from hocket.planning.tree import PlanTree
from hocket.simulators.fmu.recipe import Fmu
from hocket.simulators.wrappers.emulation import emulation_layers, innermost_model


def describe(files: options.Files, connect: options.Connect = None) -> None:
    """Classify a scenario as the literature does. Nothing is run."""
    from hocket.analysis.classification import classify

    experiment = read_experiment(files, connect or ())
    found = classify(experiment.composite)
    print_out(*titled_table(experiment.name, found.rows(), None))
    print_out("", "only its author knows:", *(f"  {question}" for question in found.unknown))


def show(
    file: options.File,
    everything: Annotated[
        bool, typer.Option("--all", metavar="", help="Of an FMU: its local variables too.")
    ] = False,
) -> None:
    """Print levels, models, ports and connections; of an FMU all there is to know. Nothing is run."""
    if is_fmu(file):
        print_out(*fmu_page(file, everything))
        return
    experiment = read(file)
    if everything:
        what = f"`--all` is for an FMU, and `{file.name}` is none"
        raise ScenarioError(what, str(file), "an FMU", "leave it out: all of a scenario is shown")
    composite = without_constraints(experiment.composite, tries=False)
    levels = {level.path: level for level in plan_tree(composite).levels()}
    tree = Tree(_branch_label(experiment.name, _level_facts(composite, levels[""], None)), guide_style="dim")
    tables = [
        _connection_table(composite, levels[""], f"connections of {experiment.name}"),
        _bond_table(levels[""], composite, f"power bonds of {experiment.name}"),
        _constraint_table(experiment.composite, f"constraints of {experiment.name}"),
    ]
    _add_level(tree, composite, "", levels, tables)
    print_out(
        tree,
        *(line for table in tables if table.row_count for line in ("", table)),
        "",
        _run_line(experiment),
    )
    print_out(*(Text(f"note: {note}", "yellow") for note in experiment.notes))


def _add_level(
    tree: Tree, composite: Composite, path: str, levels: dict[str, PlanTree], tables: list[Table]
) -> None:
    """Add what a level holds to the tree, and its connections to the tables."""
    _add_ports(tree, composite)
    for name, model in composite.scenario.models.items():
        inside = f"{path}.{name}" if path else name
        if isinstance(model, Composite):
            level = levels[inside]
            branch = tree.add(_branch_label(name, _level_facts(model, level, levels[path])))
            tables.append(_connection_table(model, level, f"connections inside {inside}"))
            tables.append(_bond_table(level, model, f"power bonds inside {inside}"))
            _add_level(branch, model, inside, levels, tables)
        else:
            _add_ports(tree.add(_branch_label(name, _model_facts(model))), model)


def _branch_label(name: str, facts: Iterable[str]) -> Text:
    return Text.assemble((name, "bold"), "  ", ", ".join(facts))


def _level_facts(composite: Composite, level: PlanTree, around: PlanTree | None) -> Iterator[str]:
    yield wording.describe_pace(level, around)
    yield wording.describe_orchestrator(composite.orchestrator)
    yield f"extrapolation {wording.describe_extrapolation(composite.extrapolation)}"
    yield f"outputs {level.plan.outputs}"


def _model_facts(model: Model) -> Iterator[str]:
    """Yield what is worth knowing about a model: its type, its method and order, what it can do."""
    able = model.capabilities
    method, step, period = method_of(model), step_of(model), period_of(model)
    yield wording.model_type(model)
    bare = innermost_model(model)
    if isinstance(bare, Fmu):
        method = f"model exchange by {bare.method}" if bare.exchange else "co-simulation"
    origin = origin_of(model)
    yield from [Path(origin).name if os.path.isabs(origin) else origin] if origin else []
    yield from ["isolated"] if is_isolated(model) else []
    stateless = state_count(model) == 0
    yield from ["no state"] if stateless else [method] if method else []
    yield from [f"order {able.order}"] if able.order is not None and not stateless else []
    yield from [f"steps of {format_duration(step)}"] if step else []
    yield from [f"sampled every {format_duration(period)}"] if period else []
    yield from ["can roll back"] if able.rollback else []
    yield from ["gives slopes"] if able.slopes else []
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
            reacts = f"reacts at once to {listed}" if listed else ""
            style = "cyan" if role == "in" else "green"
            grid.add_row(Text(role, style), _port_label(port), start, Text(reacts, "dim"))
    if grid.row_count:
        tree.add(grid)


def _port_label(port: Port) -> Text:
    return Text.assemble(port.name, (f" [{port.unit}]" if port.unit else "", "dim"))


def _connection_table(composite: Composite, level: PlanTree, title: str) -> Table:
    """Return the connections of a level: what drives what, and how it is extrapolated and converted."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for heading in ("input", "output that drives it", "extrapolation", "conversion"):
        table.add_column(heading, header_style="dim", overflow="fold")
    drives = dict(_drives_by_input(level))
    for connection in composite.scenario.connections:
        drive = drives.get(connection.target)
        table.add_row(
            connection.target, connection.source, _extrapolation_words(drive), _conversion_words(drive)
        )
    return table


def _bond_table(level: PlanTree, composite: Composite, title: str) -> Table:
    """Return the power bonds of a level: their inputs, from whom to whom power counts, and the remedy."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for heading in ("bond", "effort drives", "flow drives", "power", "from", "to", "balance"):
        table.add_column(heading, header_style="dim", overflow="fold")
    wiring = level.wiring
    for joint in wiring.bonds:
        bond = composite.scenario.bonds[joint.name]
        ends = (bond.effort, joint.taken.child), (bond.flow, joint.given.child)
        inputs = [_input_label(path, wiring.models[child]) for path, child in ends]
        giver, taker = (wiring.names[account.child] for account in (joint.given, joint.taken))
        power = joint.unit or "any unit"
        table.add_row(joint.name, *inputs, power, giver, taker, wording.describe_balance(bond))
    return table


def _constraint_table(composite: Composite, title: str) -> Table:
    """Return the equations of all levels."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for heading in ("constraint", "equations"):
        table.add_column(heading, header_style="dim", overflow="fold")
    for path, level in levels_of(composite):
        for name, constraint in level.scenario.constraints.items():
            table.add_row(f"{path}{name}", "; ".join(constraint.equations))
    return table


def _input_label(path: str, model: Model) -> Text:
    """Return an input of a bond with its unit."""
    units = {port.name: port.unit for port in model.inputs}
    unit = units.get(path.partition(".")[2], "")
    return Text.assemble(path, (f" [{unit}]" if unit else "", "dim"))


def _extrapolation_words(drive: Drive | None) -> str:
    """Return how an input is extrapolated; what is no drive is a text."""
    if drive is None:
        return "text"
    return wording.describe_extrapolation(drive.extrapolation) if drive.extrapolation else "none"


def _drives_by_input(level: PlanTree) -> Iterator[tuple[str, Drive]]:
    """Yield what drives each input of the models of a level, and each output of the level itself."""
    wiring = level.wiring
    for name, model, drives in zip(wiring.names, wiring.models, wiring.drives, strict=True):
        for port, drive in zip(model.inputs, drives, strict=True):
            if drive is not None:
                yield f"{name}.{port.name}", drive
    for port, drive in zip(level.composite.scenario.outputs, wiring.outputs, strict=True):
        yield port.name, drive


def _conversion_words(drive: Drive | None) -> str:
    if drive is None:
        return ""
    factor = "" if drive.gain == 1.0 else f"x {drive.gain:g}"
    return f"{factor} {drive.offset:+g}".strip() if drive.offset else factor


def _run_line(experiment: Experiment) -> str:
    stop = (
        "until told to stop by --stop"
        if experiment.stop is None
        else f"to {format_duration(experiment.stop)}"
    )
    rows = (
        experiment.every
        if isinstance(experiment.every, str)
        else "step"
        if experiment.every is None
        else format_duration(experiment.every)
    )
    kept = ", ".join(experiment.composite.scenario.record)
    return f"runs from {format_duration(experiment.start)} {stop}, a row every {rows}, recording {kept}"
