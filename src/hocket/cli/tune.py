"""hocket tune: the best coupling of a scenario, found and explained.

In:  a scenario file; what may be chosen and what counts, typed or in its [tune] table
Out: the Pareto front as a table, a picture and a page; a proposal in words; the tuned scenario; its run
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hocket.cli import options
from hocket.cli.facts import keep
from hocket.cli.screen import say, tell
from hocket.cli.searching import Watch, watching
from hocket.cli.targets import check_file, check_picture
from hocket.cli.typed import check_stop, halves
from hocket.clock import seconds
from hocket.errors import FileError, ScenarioError
from hocket.files.formats import read
from hocket.files.study import Study, Tuning

if TYPE_CHECKING:
    from hocket.tune.tuned import Tuned

TIMED = ("error", "relative", "measured", "seconds")
"""Objectives of a run, which must end."""


@dataclass(frozen=True)
class _Asked:
    """What was typed, put together with what the file says."""

    file: Path
    study: Study
    tuning: Tuning
    stop: Fraction | None
    """How long the run is."""
    typed: frozenset[str]


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
            "step, measured, seconds; of some only error:*.x, radius:one; or file.py:function; may be repeated. "
            "Left out: error and work.",
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
    asked = _asked(file, over, objective, limit, stop)
    target = out or file.with_name(f"{file.stem}.tuned.toml")
    writes = apply is not None or out is not None
    _check_targets(file, target if writes else None, plot, page, json)
    how = {"search": search, "budget": budget, "seed": seed, "workers": workers, "dask": dask}
    printed = str(json) == "-"
    with watching(asked.study.name, quiet or printed) as watch:
        made = _searched(asked, how, folder, watch)
    from hocket.cli import front

    row = front.row_of(made, apply, file)
    story = front.story(made, asked.study, row, verify)
    if not printed:
        say(*front.page(made, story, everything))
    wrote: list[str] = []
    if plot:
        made.plot(plot)
        wrote.append(str(plot))
    if page:
        from hocket.report.tuned import write_tuned

        write_tuned(made, page, asked.study)
        wrote.append(f"{page} ({page.stat().st_size / 1000:,.0f} kB)")
    if writes:
        wrote.append(front.written(story, target))
    if json:
        keep(json, front.facts(made, story))
        wrote += [] if printed else [str(json)]
    if not printed:
        say(*(f"wrote {each}" for each in wrote))
    if watch.stopped:
        _tell_stopped(watch, folder)
        raise typer.Exit(1)


def _asked(
    file: Path,
    over: Sequence[str] | None,
    objective: Sequence[str] | None,
    limit: Sequence[str] | None,
    stop: str | None,
) -> _Asked:
    study = read(file)
    ends = _seconds(stop) if stop else study.stop
    if ends is not None and ends <= study.start:
        raise ScenarioError("the run stops before it starts", "--stop", f"more than {float(study.start):g} s")
    typed = _pairs(limit, "--limit")
    limits = {name: _number(name, text) for name, text in typed.items()}
    tuning = Tuning(
        _pairs(over, "--over") or study.tune.over,
        tuple(objective or study.tune.objectives),
        {**study.tune.limits, **limits},
    )
    if any(name.partition(":")[0] in TIMED for name in (*tuning.objectives, *tuning.limits)):
        check_stop(study, stop, [file], "tune")
    given = {"over": over, "objective": objective, "limit": limit}
    return _Asked(
        file,
        study,
        tuning,
        None if ends is None else ends - study.start,
        frozenset(name for name, value in given.items() if value),
    )


def _check_targets(
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


def _searched(asked: _Asked, how: dict[str, Any], folder: Path | None, watch: Watch) -> Tuned:
    from hocket.tune.tuning import tune as tuned_by

    with _placed(asked):
        try:
            return tuned_by(
                asked.study.composite,
                asked.tuning.over or None,
                asked.tuning.objectives or None,
                limits=asked.tuning.limits,
                stop=asked.stop,
                start=asked.study.start,
                folder=folder,
                progress=watch.told,
                early=watch.early,
                **how,
            )
        except KeyboardInterrupt as error:
            found = watch.so_far()
            if found is None:
                error.add_note("nothing was judged yet")
                raise
            return found


@contextmanager
def _placed(asked: _Asked) -> Iterator[None]:
    """Let faults say whether they come from an option or from the file."""
    kinds = {
        "tune.": ("over", "--over "),
        "objectives": ("objective", "--objective"),
        "limits": ("limit", "--limit"),
    }
    try:
        yield
    except ScenarioError as error:
        faults = []
        for fault in error.faults:
            where = fault.where
            for key, (name, option) in kinds.items():
                if where.startswith(key):
                    rest = where[len(key) :]
                    inside = f"`{where if key == 'tune.' else f'tune.{where}'}` in {asked.file}"
                    where = f"{option}{rest}" if name in asked.typed or not asked.tuning.over else inside
                    break
            faults.append(replace(fault, where="--search" if where == "search" else where))
        error.faults = tuple(faults)
        raise


def _tell_stopped(watch: Watch, folder: Path | None) -> None:
    tell(f"stopped by Ctrl-C: {watch.done:,} of {watch.total:,} couplings were judged")
    if folder:
        tell(f"they are kept in {folder}: the same command goes on from there")
    else:
        tell("they are not kept: with --folder DIR the same command goes on where it was stopped")


def _pairs(texts: Sequence[str] | None, option: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts or ():
        name, value = halves(text, option)
        if name in found:
            raise ScenarioError(f"`{name}` is given twice", f"{option} {text}", "each name once")
        found[name] = value
    return found


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ScenarioError(f"`{text}` is no number", f"--limit {name}={text}", "such as rho=1") from None


def _seconds(text: str) -> Fraction:
    try:
        return seconds(text)
    except ValueError:
        raise ScenarioError(f"`{text}` is not a duration", "--stop", '10, "500 ms", "2 min"') from None
