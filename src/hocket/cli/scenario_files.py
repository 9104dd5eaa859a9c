"""hocket new: a scenario to begin with.

In:  a name
Out: a commented scenario file that runs at once
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from hocket.cli.json_documents import document_schema_text
from hocket.cli.options import argument, flag
from hocket.cli.output_files import check_scenario_target
from hocket.cli.terminal import print_out
from hocket.errors import FileError
from hocket.files.atomic_files import write_text
from hocket.files.toml.codec import schema_text

_STARTERS = Path(__file__).with_name("starters")


def new(
    name: Annotated[Path, argument("NAME.toml", "The file to write.")],
    nested: Annotated[bool, flag("--nested", "With a co-simulation inside the co-simulation.")] = False,
) -> None:
    """Write a scenario to begin with: it has comments and runs at once.

    Examples:
        hocket new demo.toml
    """
    file = name if name.suffix else name.with_suffix(".toml")
    check_scenario_target(file, where=str(file))
    starter = _STARTERS / ("nested.toml" if nested else "plain.toml")
    text = starter.read_text(encoding="utf-8").replace("NAME", file.name)
    if file.exists():
        hint = "choose another name; nothing was changed"
        raise FileError(f"`{file.name}` exists already", str(file), "", hint)
    write_text(file, text)
    print_out(f"wrote {file}", f"run it:  hocket run {shlex.quote(str(file))}")


def schema(
    answers: Annotated[bool, flag("--answers", "The schema of the JSON that verbs write, instead.")] = False,
) -> None:
    """Print the JSON Schema of scenario files, for completion in an editor.

    Save it beside your files and begin them with [bold]#:schema hocket.schema.json[/bold]

    Examples:
        hocket schema > hocket.schema.json
    """
    typer.echo(document_schema_text() if answers else schema_text(), nl=False)
