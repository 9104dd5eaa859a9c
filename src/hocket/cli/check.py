"""hocket check: is it stable, how wrong will it be, and what to change.

In:  a scenario file, or FMUs
Out: a verdict in plain words, then the tables behind it; a picture, or JSON
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from hocket.cli import options
from hocket.cli.screen import say
from hocket.cli.tables import table
from hocket.cli.targets import check_file, check_picture
from hocket.cli.typed import assigned, studied
from hocket.clock import seconds, written
from hocket.errors import ScenarioError
from hocket.files.whole import write_text
from hocket.parameters import with_parameters

if TYPE_CHECKING:
    from hocket.analysis.checking import Check

ROWS = 8
"""Of each table, unless all are asked for."""


def check(
    files: options.Files,
    stop: options.Stop = None,
    connect: options.Connect = None,
    assign: options.Set = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="PNG", help="Draw the eigenvalues, and who takes part.")
    ] = None,
    as_json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write everything; -: print it instead.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", metavar="", help="All rows of the tables.")] = False,
) -> None:
    """Say before the run whether the coupling is well posed and stable, and how wrong it will be.

    It is judged by the very plan that will be run. What is not linear is linearised where it starts; black
    boxes are stepped by small pulses. The exit code is 1 if the coupling is ill posed, unstable or cannot be
    judged.
    """
    from hocket.analysis.checking import check as checked  # here: the other verbs start sooner

    study = studied(files, connect or ())
    composite = with_parameters(study.composite, assigned(study, assign or ()), "--set")
    if plot:
        check_picture(plot)
    if as_json and str(as_json) != "-":
        check_file(as_json)
    found = checked(composite, _length(stop, study.start, study.stop))
    if as_json:
        text = json.dumps(_plain(_facts(found)), indent=2)
        if str(as_json) == "-":
            print(text)
        else:
            write_text(as_json, text + "\n")
    if str(as_json) != "-":
        first, *rest = found.verdict()
        say(Text(first, "bold" if found.good else "bold red"), *rest)
        say(*_tables(found, None if everything else ROWS))
    if plot and found.stability:
        found.stability.plot(plot)
    if str(as_json) != "-":
        say(*(f"wrote {file}" for file in (plot, as_json) if file))
    if not found.good:
        raise typer.Exit(1)


def _length(typed: str | None, start: Fraction, stop: Fraction | None) -> Fraction | None:
    try:
        end = stop if typed is None else seconds(typed)
    except ValueError as error:
        raise ScenarioError(str(error), "--stop") from None
    if end is not None and end <= start:
        raise ScenarioError(f"the run stops at {written(end)} and starts at {written(start)}", "--stop")
    return None if end is None else end - start


def _tables(found: Check, most: int | None) -> Iterator[RenderableType]:
    if found.stability:
        yield from table("what lasts longest", found.stability.rows(), most)
        alone = [{"level": path, "factor": rho} for path, rho in found.stability.levels]
        yield from table("each level by itself, its inputs held", alone, most)
    if found.prediction:
        yield from table("expected errors", found.prediction.rows(), most)
        yield ""
        yield f"order: {found.prediction.order.words}"
    tried = [
        {
            "change": change.words,
            "factor": change.rho,
            "largest error": change.error,
            "steps": f"{change.steps:g} times",
        }
        for change in found.advice
    ]
    yield from table("what would change it", tried, most)
    yield from table("inputs that are extrapolated", found.posedness.rows(), most)
    for loop in found.posedness.loops:
        how = "solved in every step" if found.posedness.solved else "broken by a delay of one step"
        yield f"algebraic loop: {' -> '.join(loop)}, {how}"
    models = [
        {
            "simulator": leaf.path,
            "linear model": leaf.how,
            "fit": leaf.fit,
            "why": "; ".join(filter(None, (leaf.refused, *leaf.notes))),
        }
        for leaf in found.leaves
        if leaf.how != "exact"
    ]
    yield from table("what is not linear", models, most)


def _facts(found: Check) -> dict[str, Any]:
    zero = found.zero
    return {
        "good": found.good,
        "verdict": found.verdict(),
        "rho": found.stability.rho if found.stability else None,
        "rho of the exact system": found.own,
        "stable": found.stability.stable if found.stability else None,
        "zero-stable": zero.stable if zero else None,
        "modes": found.stability.rows() if found.stability else [],
        "levels": dict(found.stability.levels) if found.stability else {},
        "errors": found.prediction.rows() if found.prediction else [],
        "order": found.prediction.order.measured if found.prediction else None,
        "changes": [vars(change) for change in found.advice],
        "loops": found.posedness.loops,
        "extrapolated": found.posedness.rows(),
        "models": [vars(leaf) for leaf in found.leaves],
        "not judged": found.unjudged,
    }


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it: it has no infinity."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
