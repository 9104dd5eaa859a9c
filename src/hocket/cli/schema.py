"""hocket schema: scenario files as editors understand them.

In:  nothing
Out: the JSON Schema on stdout
"""

from __future__ import annotations

import typer

from hocket.files.toml.schema import schema_text


def schema() -> None:
    """Print the JSON Schema of scenario files, for completion in an editor.

    Save it beside your files and begin them with [bold]#:schema hocket.schema.json[/bold]
    """
    typer.echo(schema_text(), nl=False)
