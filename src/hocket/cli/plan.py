"""hocket plan: what will be done, step by step, in words.

In:  a scenario file, or FMUs
Out: the plan of every level
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from hocket.cli import options
from hocket.cli.screen import say
from hocket.cli.typed import studied
from hocket.engine.blueprint import Blueprint
from hocket.files import wording


def plan(files: options.Files, connect: options.Connect = None) -> None:
    """Print what a step of each level consists of. Nothing is run."""
    study = studied(files, connect or ())
    levels = {level.path: level for level in study.composite.blueprint.levels()}
    for path, level in levels.items():
        around = levels[path.rpartition(".")[0]] if path else None
        if around:
            say("")
        say(*_page(level, around, path or study.name))
    say(*(Text(f"note: {note}", "yellow") for note in study.notes))


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
