"""hocket tune: the best coupling of a scenario, found and explained.

In:  a scenario file; what may be chosen and what counts, typed or in its [tune] table
Out: the Pareto front as a table, a picture and a page; a proposal in words; the tuned scenario; its run
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import TextColumn

from hocket.cli import options
from hocket.cli.command_arguments import check_stop, parse_stop, read_changed, split_assignment
from hocket.cli.options import flag, option
from hocket.cli.output_files import check_outputs, check_scenario_target, print_written, with_size, write_json
from hocket.cli.terminal import is_terminal, print_err, print_out, progress_bar
from hocket.errors import Fault, FileError, Place, ScenarioError
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
    files: Sequence[Path],
    changes: options.Changes,
    over: Sequence[str] | None,
    objective: Sequence[str] | None,
    limit: Sequence[str] | None,
    stop: str | None,
) -> TuningRequest:
    """Return what is asked for; what was typed wins over the file."""
    experiment = read_changed(files, changes)
    if changes.typed_options():  # the lines of the file are no longer those of the scenario
        experiment = replace(experiment, path=None)
    ends = parse_stop(experiment, stop)
    limits = {
        name: _parse_limit(name, text) for name, text in _parse_pairs(limit, "--limit", "rho=1").items()
    }
    tuning = Tuning(
        _parse_pairs(over, "--over", "step=1ms:100ms:9:log") or experiment.tune.over,
        tuple(objective or experiment.tune.objectives),
        {**experiment.tune.limits, **limits},
    )
    if any(name.partition(":")[0] in TIMED for name in (*tuning.objectives, *tuning.limits)):
        check_stop(experiment, stop, files, "tune")
    given = {"--over": over, "--objective": objective, "--limit": limit}
    typed = frozenset(name for name, value in given.items() if value)
    return TuningRequest(files[0], experiment, tuning, ends, typed)


def _parse_pairs(texts: Sequence[str] | None, option: str, example: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts or ():
        name, value = split_assignment(text, option, f"such as {example}")
        if name in found:
            raise ScenarioError(f"`{name}` is given twice", f"{option} {text}", "each name once")
        found[name] = value
    return found


def _parse_limit(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ScenarioError(f"`{text}` is not a number", f"--limit {name}={text}", "such as rho=1") from None


EVERY = 1.0
"""Seconds between two early results."""
SELDOM = 30.0
"""Seconds between two lines, where no bar is drawn."""


class SearchTimeUpError(Exception):
    """The time that a search was given is over."""


class SearchMonitor:
    """What is known of a search while it goes on; `draw` updates a bar, if there is one."""

    def __init__(self, draw: Callable[..., None] | None, quiet: bool):
        self.until: float | None = None
        """When the search ends with what it found, on the monotonic clock."""
        self.time_is_up = False
        self.done, self.total = 0, 0
        self.latest: TuningResult | None = None
        self.stopped = False
        self._draw, self._quiet = draw, quiet
        self._shown = time.monotonic()

    @property
    def ended_by(self) -> str | None:
        """What has ended the search before all couplings were judged: "time", or "user"."""
        return "time" if self.time_is_up else "user" if self.stopped else None

    def report_progress(self, done: float, total: float) -> None:
        """Take in how many of how many were judged."""
        self.done, self.total = int(done), int(total)
        words = f"{self.done:,} of {self.total:,} couplings"
        if self._draw is not None:
            self._draw(completed=done, total=total, done=words)
        elif not self._quiet and self._is_due(SELDOM):
            print_err(f"{words} are judged")

    def report_early(self, tuned: TuningResult) -> None:
        """Take in what was judged so far; the best of it is shown now and then."""
        self.latest = tuned
        if self.until is not None and time.monotonic() > self.until and tuned.front:
            raise SearchTimeUpError
        if self._draw is not None and self._is_due(EVERY):
            self._draw(best=_best_so_far(tuned))

    def _is_due(self, every: float) -> bool:
        due = time.monotonic() - self._shown >= every
        self._shown = time.monotonic() if due else self._shown
        return due


def _best_so_far(tuned: TuningResult) -> str:
    if not tuned.front:
        return "none within limits"
    numbers = zip(tuned.wanted[: tuned.goals], tuned.numbers[tuned.front[tuned.knee]], strict=False)
    return "best: " + ", ".join(f"{each.name} {value:.2g}" for each, value in numbers)


@contextmanager
def watch_search(name: str, quiet: bool) -> Iterator[SearchMonitor]:
    """Give what a search tells its progress to; it draws a bar if somebody looks."""
    if quiet or not is_terminal(stderr=True):
        yield SearchMonitor(None, quiet)
        return
    with progress_bar(
        TextColumn("{task.fields[done]}"), TextColumn("{task.fields[best]}", style="dim")
    ) as bar:
        yield SearchMonitor(partial(bar.update, bar.add_task(name, total=None, done="", best="")), quiet)


def tune(
    files: options.Files,
    changes: options.Changes = options.NO_CHANGES,
    over: Annotated[
        list[str] | None,
        option(
            "NAME=VALUES",
            "What may be chosen: step=1ms:100ms:9:log, order=all, extrapolation=hold,linear, "
            "two.F.alpha=-1:1.1:22; may be repeated. Left out: what the file's table tune says, or what "
            "suits the scenario.",
        ),
    ] = None,
    objective: Annotated[
        list[str] | None,
        option(
            "NAME",
            "An objective: error, work, rho, delta, relative, radius, exchanges, steps, time, messages, "
            "step, measured, seconds; of some only error:*.x, radius:one; or file.py:function; may be "
            "repeated. Left out: error and work.",
        ),
    ] = None,
    limit: Annotated[
        list[str] | None, option("NAME=VALUE", "A bound of an objective: rho=1, work=2; may be repeated.")
    ] = None,
    stop: options.Stop = None,
    search: Annotated[str, option("HOW", "auto, all, or genetic.")] = "auto",
    budget: Annotated[int, option("N", "Candidates that a genetic search judges.", min=1)] = 2000,
    seconds: Annotated[
        float, option("S", "Ends the search after so long, and the candidates under way; 0: never.", min=0)
    ] = 120.0,
    seed: Annotated[int, option("N", "The seed of the genetic search.", min=0)] = 1,
    workers: Annotated[int | None, option("N", "Processes, if not one per core.", min=1)] = None,
    dask: Annotated[str | None, option("ADDRESS", "The address of a Dask scheduler: tcp://...")] = None,
    folder: Annotated[
        Path | None, option("DIR", "Keeps what was judged: a search that was stopped goes on there.")
    ] = None,
    apply: Annotated[int | None, option("ROW", "Write the scenario of this row of the front.", min=0)] = None,
    out: Annotated[
        Path | None, option("FILE", "Where to; left out: car.tuned.toml. Without --apply the proposal.")
    ] = None,
    verify: Annotated[
        bool, flag("--verify", "Run the present coupling and the proposal, or ROW; compare.")
    ] = False,
    plot: Annotated[Path | None, option("FILE", "Draw the front (.png, .svg, .pdf).")] = None,
    page: Annotated[Path | None, option("FILE", "Write a page of the front (.html).")] = None,
    everything: Annotated[bool, flag("--all", "All rows of the front.")] = False,
    as_json: options.Json = None,
    quiet: Annotated[bool, option("", "Show no progress.", "--quiet", "-q")] = False,
) -> None:
    """Find the best coupling before anything is run: steps, algorithm, order, extrapolation.

    Prints the Pareto front of the candidates, proposes one of them, and shows the lines to change.
    Ctrl-C ends the search and shows what was found so far; with --folder the same command goes on there.

    Examples:
        hocket tune car.toml --verify --page front.html
        hocket tune car.toml --over step=1ms:100ms:9:log --over extrapolation=hold,linear --limit work=1
        hocket tune car.toml --objective rho --objective delta --over b.u.alpha=-1:1.1:22 --plot front.png
        hocket tune car.toml --apply 3 --out better.toml
        hocket tune car.toml --folder tuned --dask tcp://10.0.0.1:8786
    """
    file = files[0]
    asked = read_tuning_request(files, changes, over, objective, limit, stop)
    if verify:
        check_stop(asked.experiment, stop, files, "tune")
    target = out or file.with_name(f"{file.stem}.tuned.toml")
    writes = apply is not None or out is not None
    if writes:
        check_scenario_target(target, files, endings=(".toml", ".ssp"))
    check_outputs(as_json, plot, others=[page])
    if folder:
        _make_search_folder(folder)
    how = {"search": search, "budget": budget, "seed": seed, "workers": workers, "dask": dask}
    printed = str(as_json) == "-"
    with watch_search(asked.experiment.name, quiet or printed) as watch:
        watch.until = time.monotonic() + seconds if seconds else None
        made = _search_couplings(asked, how, folder, watch)
    from hocket.cli import tune_answer as front
    from hocket.report.tuning_page import explain_row, write_tuning_page

    story = explain_row(made, asked.experiment, front.select_row(made, apply, file))
    if not printed:
        print_out(*front.front_lines(made, story, everything))
    if plot:
        made.plot(plot)
    if page:
        write_tuning_page(made, page, asked.experiment)
    tuned = front.write_tuned_scenario(story, target) if writes else None
    if as_json and not (verify and printed):
        write_json(as_json, "tune", front.front_facts(made, story, (), watch.total, watch.ended_by))
    if not printed:
        print_written(plot, page and with_size(page), tuned, as_json)
    if watch.time_is_up:
        judged = f"{watch.done:,} of {watch.total:,} couplings were judged"
        print_err(f"the time of {seconds:g} s is up: {judged}; --seconds 0 judges all of them")
    if watch.stopped:
        _tell_stopped(watch, folder)
        raise typer.Exit(1)
    if verify:
        runs = front.verification_rows(made, story)
        if as_json:
            write_json(as_json, "tune", front.front_facts(made, story, runs, watch.total, watch.ended_by))
        if not printed:
            print_out(*front.comparison_lines(runs))


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
        except SearchTimeUpError:
            watch.time_is_up = True
            assert watch.latest is not None
            return watch.latest
        except KeyboardInterrupt as error:
            watch.stopped = True
            if watch.latest is None:
                error.add_note("nothing was judged yet")
                raise
            return watch.latest


def _tell_stopped(watch: SearchMonitor, folder: Path | None) -> None:
    print_err(f"stopped by Ctrl-C: {watch.done:,} of {watch.total:,} couplings were judged")
    if folder:
        print_err(f"they are kept in {folder}: the same command goes on from there")
    else:
        print_err("they are not kept: with --folder DIR the same command goes on where it was stopped")
