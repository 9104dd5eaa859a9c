"""hocket new: a scenario to begin with.

In:  a name
Out: a commented scenario file that runs at once
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from hocket.cli.terminal import print_out
from hocket.errors import FileError
from hocket.files.toml.codec import schema_text

_STARTERS = Path(__file__).with_name("starters")


def new(
    name: Annotated[Path, typer.Argument(metavar="NAME.toml", help="The file to write.", show_default=False)],
    nested: Annotated[
        bool, typer.Option("--nested", metavar="", help="With a co-simulation inside the co-simulation.")
    ] = False,
) -> None:
    """Write a scenario to begin with: it has comments and runs at once."""
    file = name if name.suffix else name.with_suffix(".toml")
    if file.suffix != ".toml":
        raise FileError(f"`{file.name}` is no name for a scenario", str(file), "a name that ends in .toml")
    starter = _STARTERS / ("nested.toml" if nested else "plain.toml")
    text = starter.read_text(encoding="utf-8").replace("NAME", file.name)
    try:
        with file.open("x", encoding="utf-8", newline="\n") as opened:
            opened.write(text)
    except FileExistsError:
        hint = "choose another name; nothing was changed"
        raise FileError(f"`{file.name}` exists already", str(file), "", hint) from None
    except OSError as error:
        what = f"`{file.name}` cannot be written: {error.strerror or error}"
        raise FileError(what, str(file), "a folder that exists and that you may write to") from error
    print_out(f"wrote {file}", f"run it:  hocket run {shlex.quote(str(file))}")


def schema() -> None:
    """Print the JSON Schema of scenario files, for completion in an editor.

    Save it beside your files and begin them with [bold]#:schema hocket.schema.json[/bold]
    """
    typer.echo(schema_text(), nl=False)
