"""hocket tune: the best coupling of a scenario, found and explained.

In:  a scenario file; what may be chosen and what counts, typed or in its [tune] table
Out: the Pareto front as a table, a picture and a page; a proposal in words; the tuned scenario; its run
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hocket.cli import options
from hocket.cli.asked import TuningRequest, read_tuning_request
from hocket.cli.facts import write_json
from hocket.cli.screen import print_err, print_out
from hocket.cli.searching import SearchMonitor, watch_search
from hocket.cli.targets import check_file, check_picture
from hocket.cli.typed import check_stop
from hocket.errors import FileError

if TYPE_CHECKING:
    from hocket.tuning.tuned import TuningResult


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
        check_stop(asked.study, stop, [file], "tune")
    target = out or file.with_name(f"{file.stem}.tuned.toml")
    writes = apply is not None or out is not None
    _check_tune_targets(file, target if writes else None, plot, page, json)
    if folder:
        _make_search_folder(folder)
    how = {"search": search, "budget": budget, "seed": seed, "workers": workers, "dask": dask}
    printed = str(json) == "-"
    with watch_search(asked.study.name, quiet or printed) as watch:
        made = _search_couplings(asked, how, folder, watch)
    from hocket.cli import front

    story = front.explain_row(made, asked.study, front.select_row(made, apply, file))
    if not printed:
        print_out(*front.front_lines(made, story, everything))
    wrote: list[str] = []
    if plot:
        made.plot(plot)
        wrote.append(str(plot))
    if page:
        from hocket.report.tuned import write_tuning_page

        write_tuning_page(made, page, asked.study)
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
    from hocket.tuning.tune import tune as tuned_by

    with asked.locate_faults():
        try:
            return tuned_by(
                asked.study.composite,
                asked.tuning.over or None,
                asked.tuning.objectives or None,
                limits=asked.tuning.limits,
                stop=asked.stop,
                start=asked.study.start,
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
