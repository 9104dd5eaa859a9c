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

from hocket import read
from hocket.cli import options
from hocket.cli.fmu_page import fmu_page, is_fmu
from hocket.cli.screen import say
from hocket.clock import written
from hocket.engine.blueprint import Blueprint
from hocket.engine.composite import Composite, without_constraints
from hocket.errors import ScenarioError
from hocket.files import wording
from hocket.files.study import Study
from hocket.model import Model, Port
from hocket.passes.contract import levels as levels_of
from hocket.simulators.emulating import inside, layers
from hocket.simulators.fmu import Fmu
from hocket.wiring import Drive


def show(
    file: options.File,
    everything: Annotated[
        bool, typer.Option("--all", metavar="", help="Of an FMU: its local variables too.")
    ] = False,
) -> None:
    """Print levels, models, ports and connections; of an FMU all there is to know. Nothing is run."""
    if is_fmu(file):
        say(*fmu_page(file, everything))
        return
    study = read(file)
    if everything:
        what = f"`--all` is for an FMU, and `{file.name}` is none"
        raise ScenarioError(what, str(file), "an FMU", "leave it out: all of a scenario is shown")
    composite = without_constraints(study.composite, tries=False)
    levels = {level.path: level for level in composite.blueprint.levels()}
    tree = Tree(_label(study.name, _level(composite, levels[""], None)), guide_style="dim")
    tables = [
        _connections(composite, levels[""], f"connections of {study.name}"),
        _bonds(levels[""], composite, f"power bonds of {study.name}"),
        _constraints(study.composite, f"constraints of {study.name}"),
    ]
    _grow(tree, composite, "", levels, tables)
    say(tree, *(line for table in tables if table.row_count for line in ("", table)), "", _run(study))
    say(*(Text(f"note: {note}", "yellow") for note in study.notes))


def _grow(
    tree: Tree, composite: Composite, path: str, levels: dict[str, Blueprint], tables: list[Table]
) -> None:
    """Add what a level holds to the tree, and its connections to the tables."""
    _ports(tree, composite)
    for name, model in composite.scenario.models.items():
        inside = f"{path}.{name}" if path else name
        if isinstance(model, Composite):
            level = levels[inside]
            branch = tree.add(_label(name, _level(model, level, levels[path])))
            tables.append(_connections(model, level, f"connections inside {inside}"))
            tables.append(_bonds(level, model, f"power bonds inside {inside}"))
            _grow(branch, model, inside, levels, tables)
        else:
            _ports(tree.add(_label(name, _facts(model))), model)


def _label(name: str, facts: Iterable[str]) -> Text:
    return Text.assemble((name, "bold"), "  ", ", ".join(facts))


def _level(composite: Composite, level: Blueprint, around: Blueprint | None) -> Iterator[str]:
    yield wording.pace(level, around)
    yield wording.orchestrator(composite.orchestrator)
    yield f"extrapolation {wording.extrapolation(composite.extrapolation)}"
    yield f"outputs {level.plan.outputs}"


def _facts(model: Model) -> Iterator[str]:
    """Yield what is worth knowing about a model: its type, its method and order, what it can do."""
    able = model.abilities
    method, step, period = (getattr(model, name, None) for name in ("method", "step", "period"))
    yield wording.kind(model)
    bare = inside(model)
    if isinstance(bare, Fmu):
        method = f"model exchange by {bare.method}" if bare.exchange else "co-simulation"
    names = (str(getattr(model, name)) for name in ("class_name", "path") if hasattr(model, name))
    yield from (Path(name).name if os.path.isabs(name) else name for name in names)
    yield from ["isolated"] if getattr(model, "isolated", False) else []
    stateless = getattr(model, "x0", None) == ()
    yield from ["no state"] if stateless else [str(method)] if method else []
    yield from [f"order {able.order}"] if able.order is not None and not stateless else []
    yield from [f"steps of {written(step)}"] if step else []
    yield from [f"sampled every {written(period)}"] if period else []
    yield from ["can rewind"] if able.rewind else []
    yield from ["gives slopes"] if able.slopes else []
    yield from [] if able.variable_step else ["only the step of its level"]
    yield from [] if able.input_degree is None else [f"inputs up to degree {able.input_degree}"]
    yield from (layer.emulated for layer in layers(model))


def _ports(tree: Tree, model: Model) -> None:
    """Add the ports of a model to its branch."""
    grid = Table.grid(padding=(0, 2))
    for role, ports in (("in", model.inputs), ("out", model.outputs)):
        for port in ports:
            start = "" if port.start is None or role == "out" else f"= {port.start:g}"
            every = len(model.inputs) > 2 and len(port.feedthrough) == len(model.inputs)
            listed = "all inputs" if every else ", ".join(port.feedthrough)
            reacts = f"reacts at once to {listed}" if listed else ""
            style = "cyan" if role == "in" else "green"
            grid.add_row(Text(role, style), _port(port), start, Text(reacts, "dim"))
    if grid.row_count:
        tree.add(grid)


def _port(port: Port) -> Text:
    return Text.assemble(port.name, (f" [{port.unit}]" if port.unit else "", "dim"))


def _connections(composite: Composite, level: Blueprint, title: str) -> Table:
    """Return the connections of a level: what drives what, and how it is extrapolated and converted."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for heading in ("input", "output that drives it", "extrapolation", "conversion"):
        table.add_column(heading, header_style="dim", overflow="fold")
    drives = dict(_drives(level))
    for connection in composite.scenario.connections:
        drive = drives.get(connection.target)
        table.add_row(connection.target, connection.source, _fitted(drive), _conversion(drive))
    return table


def _bonds(level: Blueprint, composite: Composite, title: str) -> Table:
    """Return the power bonds of a level: their inputs, from whom to whom power counts, and the remedy."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for heading in ("bond", "effort drives", "flow drives", "power", "from", "to", "balance"):
        table.add_column(heading, header_style="dim", overflow="fold")
    wiring = level.wiring
    for joint in wiring.bonds:
        bond = composite.scenario.bonds[joint.name]
        ends = (bond.effort, joint.taken.child), (bond.flow, joint.given.child)
        inputs = [_driven(path, wiring.models[child]) for path, child in ends]
        giver, taker = (wiring.names[account.child] for account in (joint.given, joint.taken))
        power = joint.unit or "any unit"
        table.add_row(joint.name, *inputs, power, giver, taker, wording.balance(bond))
    return table


def _constraints(composite: Composite, title: str) -> Table:
    """Return the equations of all levels."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for heading in ("constraint", "equations"):
        table.add_column(heading, header_style="dim", overflow="fold")
    for path, level in levels_of(composite):
        for name, constraint in level.scenario.constraints.items():
            table.add_row(f"{path}{name}", "; ".join(constraint.equations))
    return table


def _driven(path: str, model: Model) -> Text:
    """Return an input of a bond with its unit."""
    units = {port.name: port.unit for port in model.inputs}
    unit = units.get(path.partition(".")[2], "")
    return Text.assemble(path, (f" [{unit}]" if unit else "", "dim"))


def _fitted(drive: Drive | None) -> str:
    """Return how an input is extrapolated; what is no drive is a text."""
    if drive is None:
        return "text"
    return wording.extrapolation(drive.extrapolation) if drive.extrapolation else "none"


def _drives(level: Blueprint) -> Iterator[tuple[str, Drive]]:
    """Yield what drives each input of the models of a level, and each output of the level itself."""
    wiring = level.wiring
    for name, model, drives in zip(wiring.names, wiring.models, wiring.drives, strict=True):
        for port, drive in zip(model.inputs, drives, strict=True):
            if drive is not None:
                yield f"{name}.{port.name}", drive
    for port, drive in zip(level.composite.scenario.outputs, wiring.outputs, strict=True):
        yield port.name, drive


def _conversion(drive: Drive | None) -> str:
    if drive is None:
        return ""
    factor = "" if drive.gain == 1.0 else f"x {drive.gain:g}"
    return f"{factor} {drive.offset:+g}".strip() if drive.offset else factor


def _run(study: Study) -> str:
    stop = "until told to stop by --stop" if study.stop is None else f"to {written(study.stop)}"
    rows = (
        study.every
        if isinstance(study.every, str)
        else "step"
        if study.every is None
        else written(study.every)
    )
    kept = ", ".join(study.composite.scenario.record)
    return f"runs from {written(study.start)} {stop}, a row every {rows}, recording {kept}"
