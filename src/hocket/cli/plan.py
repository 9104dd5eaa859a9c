"""hocket plan: what will be done, step by step, in words or as a picture.

In:  a scenario file, or FMUs
Out: the plan of every level; perhaps a picture of one macro step
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from hocket.cli import options
from hocket.cli.choosing import chosen
from hocket.cli.screen import say
from hocket.cli.targets import check_file
from hocket.cli.typed import studied
from hocket.engine.blueprint import Blueprint
from hocket.files import wording


def plan(
    files: options.Files,
    algorithm: options.Algorithm = None,
    extrapolation: options.Extrapolation = None,
    connect: options.Connect = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="SVG", help="Draw one macro step as a timeline.")
    ] = None,
) -> None:
    """Print what a step of each level consists of. Nothing is run."""
    from hocket.report.picture import check_ending, write_picture  # here: the other verbs start sooner

    if plot:
        check_ending(plot)
        check_file(plot)
    study = chosen(studied(files, connect or ()), algorithm, extrapolation)
    levels = {level.path: level for level in study.composite.blueprint.levels()}
    for path, level in levels.items():
        around = levels[path.rpartition(".")[0]] if path else None
        if around:
            say("")
        say(*_page(level, around, path or study.name))
    say(*(Text(f"note: {note}", "yellow") for note in study.notes))
    if plot:
        write_picture(study.composite.blueprint, study.name, plot)
        say(f"wrote {plot}")


def _page(level: Blueprint, around: Blueprint | None, name: str) -> Iterator[RenderableType]:
    facts = (
        wording.pace(level, around),
        wording.orchestrator(level.composite.orchestrator),
        f"outputs {level.plan.outputs}",
    )
    yield Text.assemble((name, "bold"), ": ", ", ".join(facts))
    _, *lines = replace(level.plan, inner={}).lines()
    for line in lines:
        body = Text(line.lstrip())
        indent = len(line) - len(body)
        if indent >= 4:
            body.stylize("green", 0, line.lstrip().find(" "))
        else:
            body.stylize("yellow" if line.lstrip().startswith("note:") else "cyan")
        yield Padding(body, (0, 0, 0, indent), expand=False)
    if level.wiring.bonds:
        yield Padding(Text("accounts of power:", "cyan"), (0, 0, 0, 2), expand=False)
    for joint in level.wiring.bonds:
        giver, taker = (level.wiring.names[side.child] for side in (joint.given, joint.taken))
        yield Padding(Text(f"{joint.name} from {giver} to {taker}"), (0, 0, 0, 4), expand=False)
