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
from typing import Annotated, Any

from rich.text import Text

from hocket.cli import options
from hocket.cli.command_arguments import parse_kind, read_changed
from hocket.cli.options import flag, option
from hocket.cli.output_files import (
    check_file,
    check_outputs,
    check_scenario_target,
    print_written,
    write_json,
)
from hocket.cli.terminal import print_out
from hocket.errors import FileError
from hocket.files import toml
from hocket.files.atomic_files import write_text
from hocket.files.fmus import resource_folder
from hocket.files.toml.pass_options import PASSES
from hocket.model.experiment import Experiment
from hocket.planning.compiler.compiler import Compilation, compile_level


def compile(
    files: options.Files,
    changes: options.Changes = options.NO_CHANGES,
    out: Annotated[
        Path | None, option("FILE", "Where to write it; left out: car.compiled.toml for car.toml.")
    ] = None,
    passes: Annotated[
        list[str] | None,
        option(
            "NAME",
            "A pass to run: modularity, 'loops(how=steps)', 'distribution(small_step=\"20 ms\")', "
            "'accuracy(tolerance=1e-4)'; may be repeated. Left out: those that are needed.",
            "--pass",
        ),
    ] = None,
    explain: Annotated[bool, flag("--explain", "Tell what is inserted and why; write nothing.")] = False,
    diff: Annotated[bool, flag("--diff", "Show what changes; write nothing.")] = False,
    undo: Annotated[bool, flag("--undo", "Write the text that a file was compiled from.")] = False,
    as_json: options.Json = None,
) -> None:
    """Turn equations, algebraic loops and hosts into ordinary simulators and levels.

    What is inserted is told, with the pass it is from and the reason; the file that is written holds the
    original text, and `--undo` gives it back.

    Examples:
        hocket compile car.toml --explain
        hocket compile car.toml --pass 'loops(how=steps)' --out simple.toml
        hocket compile simple.toml --undo --out car.toml
    """
    file = files[0]
    if undo:
        _restore_original(file, out)
        return
    target = out or file.with_name(f"{file.stem}.compiled.toml")
    printed, writes = str(as_json) == "-", not explain and not diff
    check_outputs(as_json)
    if writes:
        check_scenario_target(target, files)
    experiment = read_changed(files, changes)
    made = compile_level(
        experiment.composite, [_parse_pass(text, experiment) for text in passes] if passes else None
    )
    counted = any(chapter.by == "accuracy" for chapter in made.chapters)  # steps under control: s, not t
    settings: dict[str, Any] = {"start": Fraction(0), "stop": None, "every": None} if counted else {}
    text = file.read_bytes().decode() if file.suffix.lower() == ".toml" else ""  # with its ends of lines
    after = replace(experiment, composite=made.level, original=text, **settings)
    if as_json:
        write_json(as_json, "compile", _compilation_facts(made))
    if not printed:
        print_out(*_compilation_lines(made, explain))
    if diff:
        print_out(*_diff_lines(experiment, after, file, target))
    if not writes:
        return
    toml.write(after, target)
    if not printed:
        print_written(target)
        if file.suffix.lower() == ".ssp":
            print_out(f"its FMUs are in {resource_folder(target)}: keep them together")
        if counted:
            print_out(f"its steps are counted, three or four to each of t: hocket run {target} --stop 1000")


def _parse_pass(text: str, experiment: Experiment) -> Any:
    more: dict[str, Any] = {}
    if text.strip().startswith("accuracy"):
        ends = {"begin": experiment.start, "stop": experiment.stop}
        more = {name: float(end) for name, end in ends.items() if end is not None}
    return parse_kind(PASSES, text, "pass", f"--pass {text}", more)


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
    print_written(target)


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
