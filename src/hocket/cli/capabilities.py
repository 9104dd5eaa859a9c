"""hocket capabilities: those of each simulator, those that are needed, and those that can be emulated.

In:  a scenario file, or FMUs; what the file says need not be possible yet
Out: two tables; perhaps the scenario with wrappers where capabilities are missing
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from hocket.cli import options
from hocket.cli.command_arguments import read_experiment, with_changes
from hocket.cli.options import flag, option
from hocket.cli.output_files import check_scenario_target, print_written, write_json
from hocket.cli.terminal import print_notes, print_out, titled_table
from hocket.coupling.level_ports import with_level_ports
from hocket.coupling.wiring import scenario_faults
from hocket.errors import Fault, ScenarioError, list_names
from hocket.files import toml
from hocket.files.formats import write
from hocket.model.experiment import Experiment
from hocket.planning.compiler.capabilities import CAPABILITIES, Need, needs, tabulate_capabilities
from hocket.planning.compiler.emulation_pass import EmulationResult, emulate_missing, other_remedy, remedy

_FEW = ("rollback", "variable step", "slopes", "input degree", "feedthrough", "re-evaluation", "order")
"""The columns that algorithms ask about most; --all shows the others."""


def capabilities(
    files: options.Files,
    changes: options.Changes = options.NO_CHANGES,
    passes: Annotated[
        list[str] | None, option("NAME", "Ask for a pass too: accuracy; may be repeated.", "--pass")
    ] = None,
    emulate: Annotated[
        Path | None, option("FILE", "Write the scenario with what is missing emulated (.toml).")
    ] = None,
    wanted: Annotated[bool, flag("--wanted", "Emulate what is wanted but not required, too.")] = False,
    probe: Annotated[
        bool, flag("--probe", "Open models to see which outputs have direct feedthrough.")
    ] = False,
    everything: Annotated[bool, flag("--all", "Show all columns.")] = False,
    as_json: options.Json = None,
) -> None:
    """Print which capabilities simulators have, need, and could emulate.

    Exit code 2 if something that is needed is missing.

    Examples:
        hocket capabilities car.toml --algorithm iterate
        hocket capabilities car.toml --emulate able.toml
    """
    if emulate:
        check_scenario_target(emulate, where="--emulate")
    experiment = _read_unchecked(files, changes)
    level: Any = experiment.composite
    found = needs(level, passes or ())
    can = tabulate_capabilities(level)
    changed = (
        emulate_missing(level, wanted=wanted, probe=probe, passes=passes or ()) if emulate or probe else None
    )
    printed = str(as_json) == "-"
    if as_json:
        facts = {"capabilities": can.rows(), "needs": [_need_facts(need) for need in found]}
        write_json(as_json, "capabilities", facts | ({"emulated": changed.rows()} if changed else {}))
    if not printed:
        columns = ("simulator", "kind", *(CAPABILITIES if everything else _FEW))
        rows = [{head: row[head] for head in row if head in columns} for row in can.rows()]
        print_out(*titled_table(f"capabilities of the simulators of {experiment.name}", rows, None))
        print_out(*_need_lines(level, found))
        print_notes(experiment.notes)
    if changed:
        _write_emulated(experiment, changed, emulate, printed)
        found = needs(changed.level, passes or ()) if emulate else found
    if _is_refused(found):
        raise typer.Exit(2)


def _read_unchecked(files: Sequence[Path], changes: options.Changes) -> Experiment:
    """Return the experiment; a file that is refused for what its simulators cannot do is read too."""
    try:
        how = {"--build": {"build": True}} if changes.build else None
        experiment = read_experiment(files, changes.connect or (), how=how)
    except ScenarioError:
        if len(files) > 1 or files[0].suffix.lower() != ".toml":
            raise
        experiment = toml.read(files[0], check=False)
        others = scenario_faults(with_level_ports(experiment.composite.scenario))
        if others or not _is_refused(needs(experiment.composite)):
            raise
    return with_changes(experiment, changes, suited=False)


def _is_refused(found: Sequence[Need]) -> bool:
    return any(need.is_required and need.unmet for need in found)


def _need_lines(level: Any, found: Sequence[Need]) -> Iterator[RenderableType]:
    rows = [
        {
            "level": need.level or "outermost",
            "by": need.by,
            "needs": need.capability,
            "of": _few_names(need.of),
            "verdict": _need_verdict(need),
            "missing in": _few_names(need.unmet),
            "emulated by": "; ".join(
                dict.fromkeys(filter(None, (remedy(level, p, need) for p in need.unmet)))
            ),
        }
        for need in found
    ]
    yield from titled_table("required capabilities", rows, None)
    if not rows:
        yield from ("", "nothing is needed beyond stepping")
    for need in found:
        if need.unmet:
            names, what = _few_names(need.unmet), f"{need.by} needs {need.capability}: {need.why}"
            yield ""
            yield Text(f"{names}: {what}", "red" if need.is_required else "yellow")
            yield f"  without it {'the scenario is refused' if need.is_required else need.loses}"
            others = {path: other_remedy(level, path, need) for path in need.unmet}
            yield from (f"  try, for {path}: {words}" for path, words in others.items() if words)


def _few_names(paths: Sequence[str]) -> str:
    return list_names(paths, 4, quote="")


def _need_verdict(need: Need) -> str:
    if need.is_met:
        return "met, emulated" if need.emulated else "met"
    return "NOT MET" if need.is_required else "lost"


def _write_emulated(experiment: Experiment, changed: EmulationResult, file: Path | None, quiet: bool) -> None:
    """Tell what is emulated, and write it."""
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
        print_out(*titled_table("emulated capabilities", changed.rows(), None))
        if not changed.done:
            print_out("", "nothing has to be emulated")
    if file:
        write(replace(experiment, composite=changed.level), file)
        if not quiet:
            print_written(file)


def _need_facts(need: Need) -> dict[str, object]:
    """Return a need, for JSON."""
    return {
        "level": need.level,
        "by": need.by,
        "needs": need.capability,
        "why": need.why,
        "of": need.of,
        "required": need.is_required,
        "met": need.is_met,
        "unmet": need.unmet,
        "emulated": need.emulated,
        "loses": need.loses,
    }
