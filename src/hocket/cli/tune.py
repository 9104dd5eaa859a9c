"""hocket tune: the best coupling of a scenario, found and explained.

In:  a scenario file; what may be chosen and what counts, typed or in its [tune] table
Out: the Pareto front as a table, a picture and a page; a proposal in words; the tuned scenario; its run
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import Progress as Bar
from rich.progress import TaskID, TextColumn

from hocket.cli import options
from hocket.cli.command_arguments import check_stop
from hocket.cli.output_files import check_file, check_picture, write_json
from hocket.cli.terminal import is_terminal, print_err, print_out, progress_bar
from hocket.errors import Fault, FileError, Place, ScenarioError
from hocket.files.formats import read
from hocket.model.clock import seconds
from hocket.model.composite import Composite
from hocket.model.experiment import Experiment, Tuning
from hocket.planning.planner import plan_tree

if TYPE_CHECKING:
    from hocket.search.tune.tuning_result import TuningResult


TIMED = ("error", "relative", "measured", "seconds")
"""Objectives of a run, which must end."""
_OPTIONS = {"tune": "--over", "objectives": "--objective", "limits": "--limit", "search": "--search"}
"""By what the search calls them."""


@dataclass(frozen=True)
class TuningRequest:
    """A scenario, and what its search is about."""

    file: Path
    experiment: Experiment
    tuning: Tuning
    stop: Fraction | None
    """When the run stops."""
    typed: frozenset[str]
    """The options that were."""

    @contextmanager
    def locate_faults(self) -> Iterator[None]:
        """Let faults say whether they come from an option or from the file."""
        try:
            yield
        except ScenarioError as error:
            error.faults = tuple(map(self._locate_fault, error.faults))
            raise

    def _locate_fault(self, fault: Fault) -> Fault:
        key, name = fault.place.section or fault.place.key, fault.place.key if fault.place.section else ""
        option = _OPTIONS.get(key)
        if option is None:
            return fault
        if key == "tune":
            fault = replace(fault, hint=self._suggest_name(name) or fault.hint)
        inside = {"tune": self.experiment.tune.over, "objectives": self.experiment.tune.objectives}
        if option in self.typed or not inside.get(key, self.experiment.tune.limits):
            return replace(fault, place=Place(option=f"{option} {name}".strip()))
        path = fault.where if key == "tune" else f"tune.{fault.where}"
        return replace(fault, place=Place(detail=f"`{path}` in {self.file}"))

    def _suggest_name(self, name: str) -> str:
        """Return the name that may have been meant; nothing if it is one."""
        known = list(_tunable_names(self.experiment.composite))
        close = [] if name in known else difflib.get_close_matches(name, known, 1, 0.75)
        return f"did you mean `{close[0]}`?" if close else ""


def _tunable_names(composite: Composite) -> Iterator[str]:
    """Yield what can be chosen by name, parameters of models aside."""
    from hocket.analysis.stability_map import variable_names
    from hocket.search.tune.space import CHOICES

    yield from variable_names(composite)
    for level in plan_tree(composite).levels():
        before = f"{level.path}." if level.path else ""
        yield from (f"{before}{word}" for word in CHOICES)
        for each in level.composite.scenario.connections:
            yield from (f"{before}{each.target}.{word}" for word in ("extrapolation", "alpha"))


def read_tuning_request(
    file: Path,
    over: Sequence[str] | None,
    objective: Sequence[str] | None,
    limit: Sequence[str] | None,
    stop: str | None,
) -> TuningRequest:
    """Return what is asked for; what was typed wins over the file."""
    experiment = read(file)
    ends = _parse_stop(stop) if stop else experiment.stop
    if ends is not None and ends <= experiment.start:
        raise ScenarioError(
            "the run stops before it starts", "--stop", f"more than {float(experiment.start):g} s"
        )
    limits = {
        name: _parse_limit(name, text) for name, text in _parse_pairs(limit, "--limit", "rho=1").items()
    }
    tuning = Tuning(
        _parse_pairs(over, "--over", "step=1ms:100ms:9:log") or experiment.tune.over,
        tuple(objective or experiment.tune.objectives),
        {**experiment.tune.limits, **limits},
    )
    if any(name.partition(":")[0] in TIMED for name in (*tuning.objectives, *tuning.limits)):
        check_stop(experiment, stop, [file], "tune")
    given = {"--over": over, "--objective": objective, "--limit": limit}
    typed = frozenset(name for name, value in given.items() if value)
    return TuningRequest(file, experiment, tuning, ends, typed)


def _parse_pairs(texts: Sequence[str] | None, option: str, such_as: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts or ():
        name, sign, value = (part.strip() for part in text.partition("="))
        if not (name and sign and value):
            raise ScenarioError(f"`{text}` is no name with a value", option, f"such as {such_as}")
        if name in found:
            raise ScenarioError(f"`{name}` is given twice", f"{option} {text}", "each name once")
        found[name] = value
    return found


def _parse_limit(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ScenarioError(f"`{text}` is no number", f"--limit {name}={text}", "such as rho=1") from None


def _parse_stop(text: str) -> Fraction:
    try:
        return seconds(text)
    except ValueError:
        raise ScenarioError(f"`{text}` is not a duration", "--stop", '10, "500 ms", "2 min"') from None


EVERY = 1.0
"""Seconds between two early results."""
SELDOM = 30.0
"""Seconds between two lines, where no bar is drawn."""


class SearchMonitor:
    """What is known of a search while it goes on."""

    def __init__(self, bar: Bar | None, task: TaskID | None, writes: bool = False):
        self.done, self.total = 0, 0
        self._writes = writes
        """Whether a line is written now and then, where no bar is drawn."""
        self.stopped = False
        self._bar, self._task = bar, task
        self._latest: TuningResult | None = None
        self._shown = time.monotonic()

    def report_progress(self, done: float, total: float) -> None:
        """Be told how many of how many were judged."""
        self.done, self.total = int(done), int(total)
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, total=total, done=f"{self.done:,} of {self.total:,}")
        elif self._writes and time.monotonic() - self._shown >= SELDOM:
            self._shown = time.monotonic()
            print_err(f"{self.done:,} of {self.total:,} couplings are judged")

    def report_early(self, tuned: TuningResult) -> None:
        """Be told what was judged so far; the best of it is shown now and then."""
        self._latest = tuned
        if self._bar is None or self._task is None or time.monotonic() - self._shown < EVERY:
            return
        self._shown = time.monotonic()
        self._bar.update(self._task, best=_best_so_far(tuned))

    def stop_search(self) -> TuningResult | None:
        """Return the answer so far: the search was stopped."""
        self.stopped = True
        return self._latest


def _best_so_far(tuned: TuningResult) -> str:
    if not tuned.front:
        return "none within limits"
    numbers = tuned.numbers[tuned.front[tuned.knee]]
    told = ", ".join(
        f"{each.name} {value:.2g}" for each, value in zip(tuned.wanted[: tuned.goals], numbers, strict=False)
    )
    return f"best: {told}"


@contextmanager
def watch_search(name: str, quiet: bool) -> Iterator[SearchMonitor]:
    """Give what a search tells its progress to; it draws a bar if somebody looks."""
    if quiet or not is_terminal(stderr=True):
        yield SearchMonitor(None, None, writes=not quiet)
        return
    with progress_bar(
        TextColumn("{task.fields[done]} couplings"), TextColumn("{task.fields[best]}", style="dim")
    ) as bar:
        yield SearchMonitor(bar, bar.add_task(name, total=None, done="0", best=""))


def tune(
    file: options.File,
    over: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUES",
            help="What may be chosen: step=1ms:100ms:9:log, order=all, extrapolation=hold,linear, "
            "two.F.alpha=-1:1.1:22; may be repeated. Left out: what the file's table tune says, or what "
            "suits the scenario.",
        ),
    ] = None,
    objective: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="What counts: error, work, rho, delta, relative, radius, exchanges, steps, time, messages, "
            "step, measured, seconds; of some only error:*.x, radius:one; or file.py:function; may be "
            "repeated. Left out: error and work.",
        ),
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="What may not be passed: rho=1, work=2; may be repeated."),
    ] = None,
    stop: options.Stop = None,
    search: Annotated[str, typer.Option(metavar="HOW", help="auto, all, or genetic.")] = "auto",
    budget: Annotated[
        int, typer.Option(min=1, metavar="N", help="Couplings that a genetic search judges.")
    ] = 2000,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Of the genetic search.")] = 1,
    workers: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Processes, if not one per core.")
    ] = None,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Of a Dask scheduler: tcp://...")
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keeps what was judged: a search that was stopped goes on there."),
    ] = None,
    apply: Annotated[
        int | None, typer.Option(min=0, metavar="ROW", help="Write the scenario of this row of the front.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where to; left out: car.tuned.toml. Without --apply the proposal."
        ),
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", metavar="", help="Run now and the proposal, or ROW; compare.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the front (.png, .svg, .pdf).")
    ] = None,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page of the front (.html).")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", metavar="", help="All rows of the front.")] = False,
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="Write all as JSON; - is stdout.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", metavar="", help="No progress.")] = False,
) -> None:
    """Find the best coupling: which steps, algorithm, order and extrapolation, before anything is run.

    Prints the couplings that no other beats in all that counts, proposes one, and shows the lines to change.
    Ctrl-C ends the search and shows what was found so far; with --folder the same command goes on there.
    """
    asked = read_tuning_request(file, over, objective, limit, stop)
    if verify:
        check_stop(asked.experiment, stop, [file], "tune")
    target = out or file.with_name(f"{file.stem}.tuned.toml")
    writes = apply is not None or out is not None
    _check_tune_targets(file, target if writes else None, plot, page, json)
    if folder:
        _make_search_folder(folder)
    how = {"search": search, "budget": budget, "seed": seed, "workers": workers, "dask": dask}
    printed = str(json) == "-"
    with watch_search(asked.experiment.name, quiet or printed) as watch:
        made = _search_couplings(asked, how, folder, watch)
    from hocket.cli import tune_answer as front

    story = front.explain_row(made, asked.experiment, front.select_row(made, apply, file))
    if not printed:
        print_out(*front.front_lines(made, story, everything))
    wrote: list[str] = []
    if plot:
        made.plot(plot)
        wrote.append(str(plot))
    if page:
        from hocket.report.tuning_page import write_tuning_page

        write_tuning_page(made, page, asked.experiment)
        wrote.append(f"{page} ({page.stat().st_size / 1000:,.0f} kB)")
    if writes:
        wrote.append(front.write_tuned_scenario(story, target))
    if json and not (verify and printed):
        write_json(json, front.front_facts(made, story, ()))
        wrote += [] if printed else [str(json)]
    if not printed:
        print_out(*(f"wrote {each}" for each in wrote))
    if verify and not watch.stopped:
        runs = front.verification_rows(made, story)
        if json:
            write_json(json, front.front_facts(made, story, runs))
        if not printed:
            print_out(*front.comparison_lines(runs))
    if watch.stopped:
        _tell_stopped(watch, folder)
        raise typer.Exit(1)


def _check_tune_targets(
    file: Path, out: Path | None, plot: Path | None, page: Path | None, json: Path | None
) -> None:
    if out:
        check_file(out)
        if out.suffix not in (".toml", ".ssp"):
            raise FileError(f"`{out.name}` is no name for a scenario", "--out", "a name that ends in .toml")
        if out.absolute() == file.absolute():
            hint = "another name: the scenario of now is not replaced"
            raise FileError(f"`{out.name}` is the scenario itself", "--out", "", hint)
    if plot:
        check_picture(plot)
    for each in (page, None if str(json) == "-" else json):
        if each:
            check_file(each)


def _make_search_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what = f"`{folder}` cannot be a folder: {error.strerror or error}"
        raise FileError(what, "--folder", "a folder, or a name for a new one") from None


def _search_couplings(
    asked: TuningRequest, how: dict[str, Any], folder: Path | None, watch: SearchMonitor
) -> TuningResult:
    from hocket.search.tune.tune import tune as tuned_by

    with asked.locate_faults():
        try:
            return tuned_by(
                asked.experiment.composite,
                asked.tuning.over or None,
                asked.tuning.objectives or None,
                limits=asked.tuning.limits,
                stop=asked.stop,
                start=asked.experiment.start,
                folder=folder,
                progress=watch.report_progress,
                early=watch.report_early,
                **how,
            )
        except KeyboardInterrupt as error:
            found = watch.stop_search()
            if found is None:
                error.add_note("nothing was judged yet")
                raise
            return found


def _tell_stopped(watch: SearchMonitor, folder: Path | None) -> None:
    print_err(f"stopped by Ctrl-C: {watch.done:,} of {watch.total:,} couplings were judged")
    if folder:
        print_err(f"they are kept in {folder}: the same command goes on from there")
    else:
        print_err("they are not kept: with --folder DIR the same command goes on where it was stopped")
