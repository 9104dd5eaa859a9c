"""hocket tune: the best coupling of a scenario, found and explained.

In:  a scenario file; what may be chosen and what counts, typed or in its [tune] table
Out: the Pareto front as a table and a picture, a proposal in words; the tuned scenario; what its run shows
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from hocket.cli import options
from hocket.cli.facts import keep
from hocket.cli.progress import counted
from hocket.cli.screen import say
from hocket.cli.tables import table
from hocket.cli.targets import check_file, check_picture
from hocket.cli.typed import halves
from hocket.clock import seconds
from hocket.errors import ScenarioError
from hocket.files.formats import read, write
from hocket.files.study import Study

if TYPE_CHECKING:
    from hocket.tune.tuned import Tuned

SHOWN = 20
"""Rows of the front on a screen."""


def tune(
    file: options.File,
    over: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUES",
            help="What may be chosen: 'step=1ms:100ms:9:log', 'order=all', 'extrapolation=hold,linear', "
            "'two.F.alpha=-1:1.1:22'; may be repeated. Left out: the file's [tune], or what suits it.",
        ),
    ] = None,
    objective: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="What counts: error, work, rho, delta, relative, radius, exchanges, steps, step, measured, "
            "seconds, or file.py:function; may be repeated. Left out: error and work.",
        ),
    ] = None,
    limit: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="What may not be passed: rho=1, work=2.")
    ] = None,
    stop: options.Stop = None,
    search: Annotated[str, typer.Option(metavar="HOW", help="auto, all, or genetic.")] = "auto",
    budget: Annotated[int, typer.Option(metavar="N", help="Couplings that a genetic search judges.")] = 2000,
    seed: Annotated[int, typer.Option(metavar="N", help="Of the genetic search.")] = 1,
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Processes; left out: one per core.")
    ] = None,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Of a Dask scheduler: tcp://...")
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Keeps what was judged: a search goes on from there."),
    ] = None,
    apply: Annotated[int | None, typer.Option(metavar="ROW", help="Write this row of the front.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The tuned scenario; left out: car.tuned.toml.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the front (.png, .svg, .pdf).")
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", metavar="", help="Run now and the proposal, compare.")
    ] = False,
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="Write all as JSON; - is stdout.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", metavar="", help="No progress.")] = False,
) -> None:
    """Find the best coupling: which steps, algorithm, order and extrapolation, before anything is run.

    Prints the couplings that no other beats in all that counts, and proposes one with the reason.
    """
    from hocket.tune.tuning import tune as tuned_by

    study = read(file)
    target = out or file.with_name(f"{file.stem}.tuned.toml")
    if plot:
        check_picture(plot)
    if apply is not None or out:
        check_file(target)
    ends = seconds(stop) if stop else study.stop
    with counted(study.name, "couplings", quiet or str(json) == "-") as told:
        made = tuned_by(
            study.composite,
            _pairs(over, "--over") or dict(study.tune) or None,
            objective,
            limits={name: _number(name, text) for name, text in _pairs(limit, "--limit").items()},
            stop=None if ends is None else ends - study.start,
            start=study.start,
            search=search,  # type: ignore[arg-type]
            budget=budget,
            seed=seed,
            workers=workers,
            dask=dask,
            folder=folder,
            progress=told,
        )
    if json:
        keep(
            json, {"front": made.rows(), "proposed": made.knee, "now": _now(made), "judged": len(made.points)}
        )
    if str(json) != "-":
        say(*_page(made, study))
    row = made.knee if apply is None else apply
    if verify:
        say(*_verified(made, row, study))
    if plot:
        made.plot(plot)
        say(f"wrote {plot}")
    if apply is not None or out:
        write(replace(study, composite=made.composite_of(row)), target)
        say(f"wrote {target}")


def _pairs(texts: Sequence[str] | None, option: str) -> dict[str, str]:
    return dict(halves(text, option) for text in texts or ())


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ScenarioError(f"`{text}` is no number", f"--limit {name}={text}", "such as rho=1") from None


def _now(made: Tuned) -> dict[str, float]:
    return {each.name: value for each, value in zip(made.wanted, made.now, strict=True)}


def _page(made: Tuned, study: Study) -> Iterator[Any]:
    rows: list[Mapping[str, object]] = list(made.rows())
    shown = rows if len(rows) <= SHOWN else _thinned(rows, made.knee)
    yield from table(f"what no other coupling of {study.name} beats", [dict(row) for row in shown], None)
    if len(shown) < len(rows):
        yield f"{len(rows) - len(shown)} more rows of the front: --json"
    yield ""
    yield f"{len(made.points):,} couplings judged, {len(rows)} on the front"
    for number, line in enumerate(made.words()):
        yield Text(line, "bold" if number == 0 else "")


def _thinned(rows: Sequence[Mapping[str, object]], kept: int) -> list[Mapping[str, object]]:
    wanted = {round(k * (len(rows) - 1) / (SHOWN - 2)) for k in range(SHOWN - 1)} | {kept}
    return [row for number, row in enumerate(rows) if number in wanted]


def _verified(made: Tuned, row: int, study: Study) -> Iterator[Any]:
    from hocket.tune.verifying import verified

    if made.stop is None:
        raise ScenarioError("nothing says how long to run", "--verify", "a stop time", "--stop 10")
    rows = [
        {"coupling": name, **verified(composite, Fraction(made.stop), study.start).row()}
        for name, composite in (("now", made.composite), (f"row {row}", made.composite_of(row)))
    ]
    yield from table("predicted, and what runs show", rows, None)
