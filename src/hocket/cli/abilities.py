"""hocket abilities: what each simulator can, what the algorithms need, and what can be emulated.

In:  a scenario file, or FMUs; what the file says need not be possible yet
Out: two tables; perhaps the scenario with wrappers where abilities are missing
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from hocket.cli import options
from hocket.cli.choosing import chosen
from hocket.cli.facts import keep
from hocket.cli.screen import say
from hocket.cli.tables import table
from hocket.cli.targets import check_file
from hocket.cli.typed import studied
from hocket.errors import Fault, FileError, ScenarioError
from hocket.files import toml
from hocket.files.formats import write
from hocket.files.study import Study
from hocket.passing import with_ports_made
from hocket.wiring import check

if TYPE_CHECKING:
    from hocket.passes.emulation import Emulated
    from hocket.passes.needs import Need

_FEW = ("rewind", "variable step", "slopes", "input degree", "feedthrough", "re-evaluation", "order")
"""The columns that algorithms ask about most; --all shows the others."""


def abilities(
    files: options.Files,
    algorithm: options.Algorithm = None,
    extrapolation: options.Extrapolation = None,
    passes: Annotated[
        list[str] | None,
        typer.Option("--pass", metavar="NAME", help="Ask for a pass too: accuracy; may be repeated."),
    ] = None,
    emulate: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the scenario with what is missing emulated (.toml)."),
    ] = None,
    wanted: Annotated[
        bool,
        typer.Option("--wanted", metavar="", help="Emulate what is only lost without, too."),
    ] = False,
    probe: Annotated[
        bool,
        typer.Option("--probe", metavar="", help="Open models to see which outputs react at once."),
    ] = False,
    everything: Annotated[bool, typer.Option("--all", metavar="", help="All columns.")] = False,
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="Write all as JSON; - is stdout.")] = None,
    connect: options.Connect = None,
) -> None:
    """Print what each simulator can, what the algorithms and passes need, and what would emulate the rest.

    Exit code 2 if something that is needed is missing.
    """
    from hocket.passes.abilities import ABILITIES, abilities
    from hocket.passes.emulation import emulated
    from hocket.passes.needs import needs

    if emulate:
        check_file(emulate)
        if emulate.suffix.lower() != ".toml":
            what = f"`{emulate.name}` is no name for a scenario that says what is emulated"
            raise FileError(what, str(emulate), "a name that ends in .toml")
    study = _read(files, connect or (), algorithm, extrapolation)
    level: Any = study.composite
    found = needs(level, passes or ())
    can = abilities(level)
    changed = emulated(level, wanted=wanted, probe=probe, passes=passes or ()) if emulate or probe else None
    if json:
        facts = {"abilities": can.rows(), "needs": [_facts(need) for need in found]}
        keep(json, facts | ({"emulated": changed.rows()} if changed else {}))
    if str(json) != "-":
        columns = ABILITIES if everything else _FEW
        rows = [{k: v for k, v in row.items() if k in ("simulator", "kind", *columns)} for row in can.rows()]
        say(*table(f"what the simulators of {study.name} can", rows, None))
        say(*_page(level, found))
        say(*(Text(f"note: {note}", "yellow") for note in study.notes))
    if changed:
        _write(study, changed, emulate, str(json) == "-")
        found = needs(changed.level, passes or ()) if emulate else found
    if any(need.required and need.unmet for need in found):
        raise typer.Exit(2)


def _read(
    files: Sequence[Path],
    connect: Sequence[str],
    algorithm: Sequence[str] | None,
    extrapolation: Sequence[str] | None,
) -> Study:
    """Return the study; a file that is refused for what its simulators cannot do is read all the same."""
    from hocket.passes.needs import needs

    try:
        study = studied(files, connect)
    except ScenarioError:
        if len(files) > 1 or files[0].suffix.lower() != ".toml":
            raise
        study = toml.read(files[0], check=False)
        if _faulty(study) or not any(need.required and need.unmet for need in needs(study.composite)):
            raise
    return chosen(study, algorithm, extrapolation, suited=False)


def _faulty(study: Study) -> bool:
    """Return whether more is wrong than what simulators cannot do."""
    return bool(check(with_ports_made(study.composite.scenario)))


def _page(level: Any, found: Sequence[Need]) -> Iterator[RenderableType]:
    from hocket.passes.emulation import otherwise, remedy

    rows = [
        {
            "level": need.level or "outermost",
            "by": need.by,
            "needs": need.ability,
            "of": _listed(need.of),
            "verdict": _verdict(need),
            "missing in": _listed(need.unmet),
            "emulated by": "; ".join(
                dict.fromkeys(filter(None, (remedy(level, p, need) for p in need.unmet)))
            ),
        }
        for need in found
    ]
    yield from table("what is needed", rows, None)
    if not rows:
        yield from ("", "nothing is needed beyond stepping")
    for need in found:
        if need.unmet:
            whom, what = _listed(need.unmet), f"{need.by} needs {need.ability}: {need.why}"
            yield ""
            yield Text(f"{whom}: {what}", "red" if need.required else "yellow")
            yield f"  without it {'the scenario is refused' if need.required else need.loses}"
            others = {path: otherwise(level, path, need) for path in need.unmet}
            yield from (f"  try, for {path}: {words}" for path, words in others.items() if words)


def _verdict(need: Need) -> str:
    if need.met:
        return "met, emulated" if need.emulated else "met"
    return "NOT MET" if need.required else "lost"


def _listed(paths: Sequence[str]) -> str:
    return ", ".join(paths[:4]) + (f" and {len(paths) - 4} more" if len(paths) > 4 else "")


def _write(study: Study, changed: Emulated, file: Path | None, quiet: bool) -> None:
    """Tell what is emulated, and write it."""
    from hocket.passes.emulation import otherwise

    if changed.left and file:
        raise ScenarioError(
            [
                Fault(
                    f"{need.by} needs {need.ability} of `{path}`, which nothing emulates",
                    need.level or "the outermost level",
                    need.ability,
                    otherwise(changed.level, path, need),
                )
                for need in changed.left
                for path in need.unmet
            ]
        )
    if not quiet:
        say(*table("what is emulated", changed.rows(), None))
        if not changed.done:
            say("", "nothing has to be emulated")
    if file:
        write(replace(study, composite=changed.level), file)
        if not quiet:
            say("", f"wrote {file}")


def _facts(need: Need) -> dict[str, object]:
    """Return a need, for JSON."""
    return {
        "level": need.level,
        "by": need.by,
        "needs": need.ability,
        "why": need.why,
        "of": list(need.of),
        "required": need.required,
        "met": need.met,
        "unmet": list(need.unmet),
        "emulated": list(need.emulated),
        "loses": need.loses,
    }
