"""hocket capabilities: what each simulator can, what the algorithms need, and what can be emulated.

In:  a scenario file, or FMUs; what the file says need not be possible yet
Out: two tables; perhaps the scenario with wrappers where capabilities are missing
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
from hocket.cli.command_arguments import read_experiment, with_algorithms
from hocket.cli.output_files import check_file, write_json
from hocket.cli.terminal import print_out, titled_table
from hocket.coupling.level_ports import with_level_ports
from hocket.coupling.wiring import scenario_faults
from hocket.errors import Fault, FileError, ScenarioError
from hocket.files import toml
from hocket.files.formats import write
from hocket.model.experiment import Experiment

if TYPE_CHECKING:
    from hocket.planning.compiler.capability_needs import Need
    from hocket.planning.compiler.emulation_pass import EmulationResult


_FEW = ("rollback", "variable step", "slopes", "input degree", "feedthrough", "re-evaluation", "order")
"""The columns that algorithms ask about most; --all shows the others."""


def capabilities(
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
    from hocket.planning.compiler.capability_needs import needs
    from hocket.planning.compiler.capability_table import CAPABILITIES, tabulate_capabilities
    from hocket.planning.compiler.emulation_pass import emulate_missing

    if emulate:
        check_file(emulate)
        if emulate.suffix.lower() != ".toml":
            what = f"`{emulate.name}` is no name for a scenario that says what is emulated"
            raise FileError(what, str(emulate), "a name that ends in .toml")
    experiment = _read_unchecked(files, connect or (), algorithm, extrapolation)
    level: Any = experiment.composite
    found = needs(level, passes or ())
    can = tabulate_capabilities(level)
    changed = (
        emulate_missing(level, wanted=wanted, probe=probe, passes=passes or ()) if emulate or probe else None
    )
    if json:
        facts = {"capabilities": can.rows(), "needs": [_need_facts(need) for need in found]}
        write_json(json, facts | ({"emulated": changed.rows()} if changed else {}))
    if str(json) != "-":
        columns = CAPABILITIES if everything else _FEW
        rows = [{k: v for k, v in row.items() if k in ("simulator", "kind", *columns)} for row in can.rows()]
        print_out(*titled_table(f"what the simulators of {experiment.name} can", rows, None))
        print_out(*_need_lines(level, found))
        print_out(*(Text(f"note: {note}", "yellow") for note in experiment.notes))
    if changed:
        _write_emulated(experiment, changed, emulate, str(json) == "-")
        found = needs(changed.level, passes or ()) if emulate else found
    if any(need.is_required and need.unmet for need in found):
        raise typer.Exit(2)


def _read_unchecked(
    files: Sequence[Path],
    connect: Sequence[str],
    algorithm: Sequence[str] | None,
    extrapolation: Sequence[str] | None,
) -> Experiment:
    """Return the experiment; a file that is refused for what its simulators cannot do is read too."""
    from hocket.planning.compiler.capability_needs import needs

    try:
        experiment = read_experiment(files, connect)
    except ScenarioError:
        if len(files) > 1 or files[0].suffix.lower() != ".toml":
            raise
        experiment = toml.read(files[0], check=False)
        if _has_other_faults(experiment) or not any(
            need.is_required and need.unmet for need in needs(experiment.composite)
        ):
            raise
    return with_algorithms(experiment, algorithm, extrapolation, suited=False)


def _has_other_faults(experiment: Experiment) -> bool:
    """Return whether more is wrong than what simulators cannot do."""
    return bool(scenario_faults(with_level_ports(experiment.composite.scenario)))


def _need_lines(level: Any, found: Sequence[Need]) -> Iterator[RenderableType]:
    from hocket.planning.compiler.emulation_pass import other_remedy, remedy

    rows = [
        {
            "level": need.level or "outermost",
            "by": need.by,
            "needs": need.capability,
            "of": _join_paths(need.of),
            "verdict": _need_verdict(need),
            "missing in": _join_paths(need.unmet),
            "emulated by": "; ".join(
                dict.fromkeys(filter(None, (remedy(level, p, need) for p in need.unmet)))
            ),
        }
        for need in found
    ]
    yield from titled_table("what is needed", rows, None)
    if not rows:
        yield from ("", "nothing is needed beyond stepping")
    for need in found:
        if need.unmet:
            whom, what = _join_paths(need.unmet), f"{need.by} needs {need.capability}: {need.why}"
            yield ""
            yield Text(f"{whom}: {what}", "red" if need.is_required else "yellow")
            yield f"  without it {'the scenario is refused' if need.is_required else need.loses}"
            others = {path: other_remedy(level, path, need) for path in need.unmet}
            yield from (f"  try, for {path}: {words}" for path, words in others.items() if words)


def _need_verdict(need: Need) -> str:
    if need.is_met:
        return "met, emulated" if need.emulated else "met"
    return "NOT MET" if need.is_required else "lost"


def _join_paths(paths: Sequence[str]) -> str:
    return ", ".join(paths[:4]) + (f" and {len(paths) - 4} more" if len(paths) > 4 else "")


def _write_emulated(experiment: Experiment, changed: EmulationResult, file: Path | None, quiet: bool) -> None:
    """Tell what is emulated, and write it."""
    from hocket.planning.compiler.emulation_pass import other_remedy

    if changed.left and file:
        raise ScenarioError(
            [
                Fault(
                    f"{need.by} needs {need.capability} of `{path}`, which nothing emulates",
                    need.level or "the outermost level",
                    need.capability,
                    other_remedy(changed.level, path, need),
                )
                for need in changed.left
                for path in need.unmet
            ]
        )
    if not quiet:
        print_out(*titled_table("what is emulated", changed.rows(), None))
        if not changed.done:
            print_out("", "nothing has to be emulated")
    if file:
        write(replace(experiment, composite=changed.level), file)
        if not quiet:
            print_out("", f"wrote {file}")


def _need_facts(need: Need) -> dict[str, object]:
    """Return a need, for JSON."""
    return {
        "level": need.level,
        "by": need.by,
        "needs": need.capability,
        "why": need.why,
        "of": list(need.of),
        "required": need.is_required,
        "met": need.is_met,
        "unmet": list(need.unmet),
        "emulated": list(need.emulated),
        "loses": need.loses,
    }
