"""hocket compile: an awkward scenario made simple, with what was inserted and why.

In:  a scenario file, perhaps one that was compiled
Out: the compiled scenario; the story, the differences; or the text it was compiled from
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from difflib import unified_diff
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from hocket.cli import options
from hocket.cli.command_arguments import parse_kind
from hocket.cli.output_files import check_file, write_json
from hocket.cli.terminal import print_out
from hocket.errors import FileError
from hocket.files import toml
from hocket.files.atomic_files import write_text
from hocket.files.fmus import resource_folder
from hocket.files.formats import read
from hocket.model.experiment import Experiment

if TYPE_CHECKING:
    from hocket.planning.compiler.compiler import Compilation


def compile(
    file: options.File,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to write it; left out: car.compiled.toml for car.toml."),
    ] = None,
    passes: Annotated[
        list[str] | None,
        typer.Option(
            "--pass",
            metavar="NAME",
            help="A pass to run: modularity, 'loops(how=steps)', 'distribution(small_step=\"20 ms\")', "
            "'accuracy(tolerance=1e-4)'; may be repeated. Left out: those that are needed.",
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", metavar="", help="Tell the story, write nothing.")
    ] = False,
    diff: Annotated[
        bool, typer.Option("--diff", metavar="", help="Show what changes, write nothing.")
    ] = False,
    undo: Annotated[
        bool, typer.Option("--undo", metavar="", help="Write the text that a file was compiled from.")
    ] = False,
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the story as JSON; - is stdout.")
    ] = None,
) -> None:
    """Make a scenario trivial: equations, algebraic loops and hosts become ordinary simulators and levels.

    What is inserted is told, with the pass it is from and the reason; the file that is written holds the
    original text, and `--undo` gives it back.
    """
    from hocket.planning.compiler.compiler import compile_level as compiled_by

    if undo:
        _restore_original(file, out)
        return
    target = out or file.with_name(f"{file.stem}.compiled.toml")
    writes = not explain and not diff
    if json and str(json) != "-":
        check_file(json)
    if writes:
        _check_compile_target(target, file)
    experiment = read(file)
    made = compiled_by(
        experiment.composite, [_parse_pass(text, experiment) for text in passes] if passes else None
    )
    after = replace(experiment, composite=made.level, original=_toml_source(file), **_run_settings(made))
    if json:
        write_json(json, _compilation_facts(made))
    if str(json) != "-":
        print_out(*_compilation_lines(made, explain))
    if diff:
        print_out(*_diff_lines(experiment, after, file, target))
    if writes:
        toml.write(after, target)
        if str(json) != "-":
            print_out(f"wrote {target}")
            if file.suffix.lower() == ".ssp":
                print_out(f"its FMUs are in {resource_folder(target)}: keep them together")
            if _run_settings(made):
                print_out(
                    f"its steps are counted, three or four to each of t: hocket run {target} --stop 1000"
                )


def _parse_pass(text: str, experiment: Experiment) -> Any:
    from hocket.files.toml.pass_options import PASSES

    more: dict[str, Any] = {}
    if text.strip().startswith("accuracy"):
        more = {"begin": float(experiment.start)} | (
            {"stop": float(experiment.stop)} if experiment.stop is not None else {}
        )
    return parse_kind(PASSES, text, "pass", f"--pass {text}", more)


def _check_compile_target(target: Path, file: Path) -> None:
    """Refuse names that are no scenario's, and the file that is compiled: its text would be gone."""
    check_file(target)
    if target.suffix.lower() != ".toml":
        raise FileError(f"`{target.name}` is no name for a scenario", "--out", "a name that ends in .toml")
    if target.exists() and file.exists() and target.samefile(file):
        what = f"`{target.name}` is what is compiled"
        raise FileError(what, "--out", "another file", f"--out {file.stem}.compiled.toml")


def _restore_original(file: Path, out: Path | None) -> None:
    experiment = toml.read(file, check=False)
    if not experiment.original:
        what = f"`{file.name}` was not compiled, or not from a .toml file"
        raise FileError(what, str(file), "a file that `hocket compile` wrote, with the text under `original`")
    target = out or file.with_name(f"{file.stem.removesuffix('.compiled')}.toml")
    check_file(target)
    if target.exists() and target.read_bytes() != experiment.original.encode():
        raise FileError(f"`{target}` is there, and differs", str(target), "a new file", "--out another.toml")
    write_text(target, experiment.original)
    print_out(f"wrote {target}")


def _toml_source(file: Path) -> str:
    """Return the text of a scenario file, with the ends of lines that it has; of another format, none."""
    return file.read_bytes().decode() if file.suffix.lower() == ".toml" else ""


def _run_settings(made: Compilation) -> dict[str, Any]:
    """Return how the compiled scenario is run, if not as before: steps under control are counted by s."""
    over_s = any(chapter.by == "accuracy" for chapter in made.chapters)
    return {"start": Fraction(0), "stop": None, "every": None} if over_s else {}


def _compilation_facts(made: Compilation) -> dict[str, Any]:
    return {
        "passes": [{"pass": each.by, "because": list(each.why)} for each in made.chapters],
        "inserted": made.rows(),
        "idle": list(made.idle),
    }


def _compilation_lines(made: Compilation, explain: bool) -> Iterator[Text | str]:
    if explain:
        for line in made.story():
            yield Text(line, "bold" if line[:1].isdigit() and "." in line[:3] else "")
        return
    if not made.chapters:
        yield "nothing to do: every input has one source, and nothing depends on itself at once"
    for chapter in made.chapters:
        yield Text(f"{chapter.by}: {len(chapter.inserted)} inserted", "bold")
        yield from (f"  {path}: {reason}" for path, reason in chapter.inserted)


def _diff_lines(before: Experiment, after: Experiment, file: Path, target: Path) -> Iterator[Text]:
    old, new = (toml.dumps(replace(each, original=""), strict=False).splitlines() for each in (before, after))
    for line in unified_diff(old, new, str(file), str(target), lineterm="", n=1):
        style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
        yield Text(line, style)
