"""After a run: its summary; and hocket check RUN, its global error and whether the estimate is reliable.

In:  a Run, or its folder
Out: the verdict, then the table of each measure; a picture, or JSON; the estimate, kept in the folder
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hocket.analysis.measure import Measure, Outcome, join_facts, worst_outcome
from hocket.cli.options import argument, flag
from hocket.cli.output_files import check_outputs, draw_measures, open_noted_run, print_written, write_json
from hocket.cli.terminal import (
    format_significant,
    is_terminal,
    label_grid,
    print_err,
    print_measures,
    print_out,
    run_progress,
)
from hocket.errors import FileError, ScenarioError, count
from hocket.execution.session import Progress
from hocket.files.bond_flows import read_bond_flows
from hocket.files.error_estimate import ErrorEstimate, read_estimate, write_estimate
from hocket.files.run_facts import FACTS
from hocket.files.run_folder import Run
from hocket.model.experiment import Experiment

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hocket.analysis.run_error import Watch


BONDS = 6
"""Bonds in the summary of a run."""
_COLOURS = {"ended": "bold green", "finished": "bold green", "stopped": "bold yellow"}


def print_summary(run: Run, folder: Path) -> None:
    """Print how it went and where to look."""
    info, why, look = run.info, run.info["why_interpreted"], f'hocket.open_run("{folder.as_posix()}")'
    steps, rest = count(info["counts"]["steps"], "step"), f" of {info['stop']:g} s"
    simulated = f"{steps} from {info['start']:g} to {info['reached']:g} s{rest * (run.status != 'finished')}"
    wall = info["timings"]["wall"]
    factor = (info["reached"] - info["start"]) / wall
    took = f"{format_significant(wall)} s ({format_significant(factor)} times real time)"
    if is_terminal():
        from rich.text import Text

        lines: list[tuple[str, RenderableType]] = [
            ("simulated", simulated),
            ("took", took),
            ("kept", run.size_text),
            ("engine", info["engine"] + (f", because {why}" if why else "")),
            *_summary_facts(run, folder),
            ("folder", Text(str(folder), "bold")),
            ("look", f"hocket plot {shlex.quote(str(folder))}"),
            ("", look),
        ]
        print_out(
            Text.assemble((run.name, "bold"), " ", (run.status, _COLOURS.get(run.info["status"], "bold red")))
        )
        print_out(label_grid(lines))
        return
    print_out(f"{run.name} {run.status}: {simulated} in {took}; {run.size_text}")
    if why:
        print_out(f"run by the interpreter, because {why}")
    print_out(*(f"{label}: {text}" for label, text in _summary_facts(run, folder)))
    print_out(f"{folder}  {look}")


def _summary_facts(run: Run, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield what only some runs have: lags, iterations, step control, messages, power bonds, notes."""
    if realtime := run.info.get("realtime"):
        lag = format_significant(1000 * realtime["largest_lag"])
        late = f"{count(realtime['overruns'], 'overrun')}, at most {lag} ms late"
        yield "real time", f"factor {realtime['factor']:g}, {late}"
    counts = run.info.get("counts", {})
    for path, each in counts.get("sweeps", {}).items():
        mean = each["total"] / each["repeats"]
        yield "iterated", f"{path or 'outermost'}, {mean:.1f} iterations per step, most {each['most']}"
    for path, each in counts.get("adapted", {}).items():
        made = f"{count(each['accepted'], 'step')}, {each['rejected']} rejected"
        lengths = f"{_format_duration(each['shortest'])} to {_format_duration(each['longest'])}"
        yield "adapted", f"{path or 'outermost'}, {made}, {lengths}"
    for link, each in counts.get("messages", {}).items():
        sent = f"{count(each['messages'], 'message')} ({each['start']} to start)"
        yield "sent", f"{link}, {sent}, {each['bytes']:,} bytes"
    flows = read_bond_flows(run)
    yield from (("bond", each.account_text) for each in flows.bonds[:BONDS])
    if len(flows.bonds) > BONDS:
        yield "bond", f"and {len(flows.bonds) - BONDS} more: hocket check {shlex.quote(str(folder))}"
    if flows.stored_text:
        yield "stored", flows.stored_text
    yield from (("note", str(note)) for note in run.info.get("notes", []))


def _format_duration(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{format_significant(seconds / size)} {unit}"
    return f"{format_significant(seconds / 1e-9)} ns"


PANEL = "Of a run"
ROWS = 8
"""Of each table, unless all are asked for."""
ARCHIVES = ("SystemStructure.ssd", "modelDescription.xml")
"""What a folder that is not a run may hold."""
FilesOrRun = Annotated[
    list[Path], argument("FILE", "A scenario (.toml, .ssp), FMUs, or the folder of a run.")
]
Quick = Annotated[bool, flag("--quick", "Estimate without running it again.", PANEL)]
Budget = Annotated[
    bool, flag("--budget", "Divide the error: which level, which solver is to blame; more runs.", PANEL)
]
Again = Annotated[bool, flag("--again", "Estimate anew, though the folder has an estimate.", PANEL)]


def is_run(files: list[Path]) -> bool:
    """Return whether what was typed is meant as a run: one folder that is not an unpacked archive."""
    folder = files[0]
    archive = any((folder / name).is_file() for name in ARCHIVES)
    return len(files) == 1 and (folder.name == FACTS or (folder.is_dir() and not archive))


def refuse_run_options(files: list[Path], typed: Mapping[str, object]) -> None:
    """Refuse options that are for runs only."""
    for name, value in typed.items():
        if value:
            hint = f"hocket check runs/{files[0].stem}-001 {name}"
            what = f"`{name}` is for runs, and this is not one"
            raise ScenarioError(what, str(files[0]), "a run folder", hint)


def check_run(
    folder: Path,
    quick: bool,
    again: bool,
    plot: Path | None,
    as_json: Path | None,
    everything: bool,
    others: Mapping[str, object],
    budget: bool = False,
) -> None:
    """Say how large the error of a run is; `others` are options that are for scenarios only, by name."""
    from hocket.analysis.run_measures import MEASURES, run_measures

    typed = [name for name, value in others.items() if value]
    if typed:
        hint = "leave it out: a run is judged as it was run"
        raise ScenarioError(f"`{typed[0]}` is for scenarios, and this is a run", str(folder), "", hint)
    check_outputs(as_json, plot, (each.picture for each in MEASURES))
    run = open_noted_run(folder)
    if run.status == "running":
        raise ScenarioError(f"`{run.path.name}` is still under way", str(folder), "a run that has ended")
    found, kept = _read_or_estimate(run.without_accounts(), quick, again, quiet=str(as_json) == "-")
    facts = {"run": str(run.path), "status": run.status, "found before": kept}
    remark = "this was found before and is kept in the folder: --again estimates it anew" if kept else ""
    measures: Sequence[Measure] = run_measures(run, found)
    if budget:
        from hocket.analysis.error_budget import error_budget

        measures = [*measures, error_budget(run, watch=announce_reruns(str(as_json) == "-"))]
    outcome = worst_outcome(measures)
    present_measures(measures, plot, as_json, everything, outcome, facts, more_rows(run), remark)


def present_measures(
    measures: Sequence[Measure],
    plot: Path | None,
    as_json: Path | None,
    everything: bool,
    outcome: Outcome,
    facts: Mapping[str, object] | None = None,
    more: str = "--all",
    remark: str = "",
    verb: str = "check",
) -> None:
    """Print, draw and write measures, and end with the exit code of the outcome; JSON has `facts` too."""
    printed = str(as_json) == "-"
    if as_json:
        write_json(as_json, verb, {**(facts or {}), **join_facts(measures, outcome)})
    if not printed:
        print_measures(measures, None if everything else ROWS, more, remark)
    drawn = draw_measures(measures, plot)
    if not printed:
        print_written(*drawn, as_json)
    if outcome.exit_code:
        raise typer.Exit(outcome.exit_code)


def more_rows(run: Run) -> str:
    """Return the command that shows all rows of what is said about a run."""
    return f"hocket check {shlex.quote(str(run.path))} --all"


def _read_or_estimate(run: Run, quick: bool, again: bool, quiet: bool) -> tuple[ErrorEstimate, bool]:
    """Return the estimate, and whether it was in the folder already."""
    from hocket.analysis.reconciliation import add_prediction
    from hocket.analysis.run_error import PARTS, estimate_run_error, experiment_of, truncate_experiment

    kept = None
    try:
        kept = read_estimate(run.path)
    except FileError as error:
        print_err(f"{error.faults[0].what}; the error is estimated anew")
    if kept and not again and (quick or kept.method == "Richardson"):
        return kept, True
    found = estimate_run_error(run, quick, announce_reruns(quiet))
    if found.runs == len(PARTS) and found.ports and found.method == "Richardson":  # Ctrl-C ends all of it
        found = add_prediction(found, truncate_experiment(experiment_of(run), run))
    if kept is None or found.runs >= kept.runs:
        try:
            write_estimate(run.path, found)
        except FileError as error:
            print_err(f"not kept: {error.faults[0].what}")
    return found, False


def announce_reruns(quiet: bool) -> Watch:
    """Return what tells of the runs that are made, with a bar on a terminal."""

    @contextmanager
    def watch(experiment: Experiment, how: str) -> Iterator[Progress | None]:
        if not quiet:
            print_err(f"again {how}")
        with run_progress(experiment, quiet) as progress:
            yield progress

    return watch
