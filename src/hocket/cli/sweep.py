"""hocket sweep: one scenario, or FMUs, run with every combination of parameters.

In:  files, and what varies: `k=1,2,5`, `m=1:3:5`
Out: a folder of runs, and a table of final values
"""

from __future__ import annotations

import csv as comma_separated
import math
import tomllib
from collections.abc import Sequence
from io import StringIO
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.text import Text

import hocket
from hocket.cli import options
from hocket.cli.command_arguments import (
    fmu_options,
    folder_stem,
    locate_faults,
    parse_assignments,
    parse_literal,
    parse_value_for,
    read_for_run,
    record_patterns,
    split_assignment,
)
from hocket.cli.options import flag, option
from hocket.cli.output_files import check_outputs, print_written, run_folder, write_json
from hocket.cli.terminal import count_progress, is_terminal, plain_table, print_err, print_out, relay_fmu_logs
from hocket.errors import FileError, ScenarioError, count
from hocket.execution.sweep_folder import parse_shard
from hocket.execution.sweep_results import SweepResults
from hocket.files.atomic_files import write_text
from hocket.model.experiment import Experiment

MOST = 1_000_000
"""Runs of a sweep."""
COLUMNS = 8
"""Ports whose final values a table on a terminal shows."""
BONDS = 4
"""Power bonds of which it shows what they gained."""


def sweep(
    files: options.Files,
    vary: Annotated[
        list[str], option("NAME=VALUES", "k=1,2,5, or 5 values from 1 to 3: k=1:3:5; may be repeated.")
    ],
    stop: options.Stop = None,
    start: options.Start = None,
    changes: options.Changes = options.NO_CHANGES,
    every: options.Every = None,
    record: options.Record = None,
    ledger: options.Ledger = False,
    folder: Annotated[
        Path | None, option("DIR", "Where to keep the runs, if not in runs/FILE-sweep-001.")
    ] = None,
    overwrite: Annotated[bool, flag("--overwrite", "Replace the runs in --folder.")] = False,
    workers: Annotated[int | None, option("N", "Runs at a time, if not one per processor.", min=1)] = None,
    in_process: Annotated[
        bool, flag("--in-process", "Run FMUs in threads of this process, which they may end.")
    ] = False,
    again: Annotated[
        bool, flag("--again", "Go on in --folder: runs that have come to their end there are taken.")
    ] = False,
    shard: Annotated[
        str | None, option("PART/PARTS", "Make one part of the runs only: 3/10 is the third of ten.")
    ] = None,
    checkpoint: Annotated[
        Path | None, option("RUN", "Begin every run at the newest checkpoint of this run, or file.")
    ] = None,
    dask: Annotated[str | None, option("ADDRESS", "The address of a Dask scheduler: tcp://...")] = None,
    parquet: Annotated[Path | None, option("FILE", "Write the table, all of it, as Parquet.")] = None,
    quiet: Annotated[bool, flag("--quiet", "Print the folder of the runs only.")] = False,
    csv: Annotated[Path | None, option("FILE", "Write the table, all of it; -: print it instead.")] = None,
    as_json: options.Json = None,
    fmus: options.FmuChoices = options.NO_FMU_CHOICES,
) -> None:
    """Run with every combination of parameters, in parallel, and print the final values.

    Ctrl-C stops all of them: every row so far is kept. The exit code is 1 then, and when a run fails.

    Examples:
        hocket sweep ball.fmu --vary e=0.5,0.7,0.9 --vary h0=1:2:11
        hocket sweep car.ssp --vary spring.k=1e4:4e4:16 --csv k.csv
        hocket sweep car.ssp --vary spring.k=1e4:4e4:1000 --folder runs/k --again --shard 3/10
    """
    experiment = read_for_run("sweep", files, changes, fmus.observe or (), fmu_options(fmus), stop, ledger)
    fixed = parse_assignments(experiment, changes.assign or ())
    varied = _parameter_combinations(experiment, vary)
    check_outputs(as_json, others=[csv, parquet])
    if again and folder is None:
        raise ScenarioError("`--again` needs `--folder`", "--again", "the folder of the sweep that goes on")
    typed = {"start": start, "stop": stop, "every": every, "record": record, "set": changes.assign}
    with (
        run_folder(folder, f"{folder_stem(files, experiment)}-sweep", overwrite) as place,
        locate_faults(files, [name for name, value in typed.items() if value]),
        relay_fmu_logs(fmus.log) as said,
        count_progress(experiment.name, "runs", quiet, len(varied)) as progress,
    ):
        results = hocket.sweep(
            experiment,
            [{**fixed, **one} for one in varied],
            stop,
            start=start,
            every=every,
            record=record_patterns(experiment, record),
            ledger=ledger,
            folder=place,
            processes=False if in_process else None,
            overwrite=overwrite,
            workers=workers,
            again=again,
            shard=shard,
            checkpoint=checkpoint,
            dask=dask,
            errors="return",
            progress=progress,
        )
        said += [str(result) for result in results if isinstance(result, Exception)]
        _raise_scenario_fault(results)
    part, parts = parse_shard(shard)
    asked = varied[part - 1 :: parts]
    _print_results(asked, results, place, quiet, csv, as_json)
    if parquet:
        results.to_parquet(parquet)
        print_written(parquet)
    good = [isinstance(result, hocket.Run) and result.is_complete for result in results]
    if not all(good) or len(results) < len(asked):
        raise typer.Exit(1)


def _raise_scenario_fault(results: Sequence[hocket.Run | Exception]) -> None:
    """Raise what is wrong with the scenario, the same for every run, or with the files of the sweep."""
    wrong = [result for result in results if isinstance(result, ScenarioError)]
    files = [error for error in wrong if isinstance(error, FileError)]
    same = len(wrong) == len(results) and len({str(error) for error in wrong}) == 1
    if files or same:
        raise (files or wrong)[0]


def _parameter_combinations(experiment: Experiment, vary: Sequence[str]) -> list[dict[str, Any]]:
    """Return every combination of the values, the last parameter varying fastest."""
    columns = {}
    for text in vary:
        name, values = split_assignment(text, "--vary", "name=values, as k=1,2,5")
        if name in columns:
            raise ScenarioError(f"`{name}` varies twice", f"--vary {text}", "each parameter once")
        columns[name] = _parse_values(experiment, name, values)
    _check_run_count(math.prod(map(len, columns.values())), "--vary")
    return [dict(zip(columns, values, strict=True)) for values in product(*columns.values())]


def _check_run_count(number: int, where: str) -> None:
    """Refuse more runs than anybody waits for: a count that was mistyped."""
    if number > MOST:
        hint = "fewer values, or several sweeps"
        raise ScenarioError(f"that would be {number:,} runs", where, f"at most {MOST:,}", hint)


def _parse_values(experiment: Experiment, name: str, text: str) -> list[Any]:
    """Return the values of `1,2,5` or of `1:3:5`, the second with equal distances."""
    parts = text.split(":")
    if len(parts) > 1 and all(isinstance(parse_literal(part), int | float) for part in parts):
        if len(parts) != 3 or not parts[2].strip().isdecimal() or int(parts[2]) < 1:
            raise ScenarioError(f"`{text}` is not a range", f"--vary {name}", "first:last:count, as 1:3:5")
        first, last, number = float(parts[0]), float(parts[1]), int(parts[2])
        _check_run_count(number, f"--vary {name}={text}")
        return [float(f"{value:.12g}") for value in np.linspace(first, last, number)]
    try:
        listed = tomllib.loads(f"values = [{text}]")["values"]
    except tomllib.TOMLDecodeError:
        listed = None
    if listed and any(isinstance(value, list) for value in listed):
        return list(listed)
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise ScenarioError(f"`{name}` has no values", f"--vary {name}={text}", "values as 1,2,5 or 1:3:5")
    return [parse_value_for(experiment, name, word, "--vary") for word in words]


def _print_results(
    varied: list[dict[str, Any]],
    results: SweepResults,
    place: Path,
    quiet: bool,
    csv: Path | None,
    as_json: Path | None,
) -> None:
    """Print the table and where the runs are; write the table."""
    runs = [run for run in results if isinstance(run, hocket.Run)]
    gains = list(dict.fromkeys(name for run in runs for name in _bond_gains(run)))
    ports = list(dict.fromkeys(port for run in runs for port in run.ports if port not in gains))
    pairs = list(zip(varied, results, strict=False))
    rows = [
        _result_row(f"{n + 1:03}", one, result, [*ports, *gains])
        for n, (one, result) in zip(results.numbers, pairs, strict=True)
    ]
    heads = ["run", *(varied[0] if varied else ()), *ports, *gains, "status"]
    for one, result in pairs:
        if isinstance(result, Exception):
            which = ", ".join(f"{name} = {value}" for name, value in one.items())
            print_err(f"{which}: {str(result).splitlines()[0]}")
    if len(results) < len(varied) or any(row[-1] == "stopped" for row in rows):
        print_err(f"stopped by Ctrl-C: {len(results):,} of {count(len(varied), 'run')} were begun")
    if csv:
        _write_csv(csv, heads, rows)
    if as_json:
        runs_facts = [
            {
                "run": row[0],
                "parameters": one,
                "final": dict(zip(heads[1 + len(one) : -1], row[1 + len(one) : -1], strict=True)),
                "status": row[-1],
            }
            for (one, _), row in zip(pairs, rows, strict=True)
        ]
        good = len(results) == len(varied) and all(
            isinstance(r, hocket.Run) and r.is_complete for r in results
        )
        write_json(as_json, "sweep", {"folder": str(place), "good": good, "runs": runs_facts})
    if "-" in (str(csv), str(as_json)):
        print_err(str(place))
        return
    if quiet:
        print_out(str(place))
        return
    left_out = {*ports[COLUMNS:], *gains[BONDS:]} if is_terminal() else set()
    shown = [number for number, head in enumerate(heads[:-1]) if head not in left_out]
    table = plain_table(*(heads[number] for number in shown), "", justify="right", overflow="fold")
    for row, result in zip(rows, results, strict=False):
        complete = isinstance(result, hocket.Run) and result.is_complete
        colour = "bold green" if complete else "bold red"
        status = Text("" if row[-1] == "finished" else row[-1], colour, justify="left")
        table.add_row(*(_format_value(row[number]) for number in shown), status)
    print_out(table, f"final values of {count(len(rows), 'run')} in {place}")
    if left_out:
        print_out(f"{count(len(left_out), 'more column')}: --record chooses, --csv writes all")
    print_written(csv)


def _bond_gains(run: hocket.Run) -> dict[str, float]:
    """Return what every power bond gained, by the name under which the ledger records it."""
    return {f"{bond}.gained": facts["gained"] for bond, facts in run.info.get("bonds", {}).items()}


def _result_row(
    number: str, one: dict[str, Any], result: hocket.Run | Exception, columns: list[str]
) -> list[Any]:
    if isinstance(result, Exception):
        return [number, *one.values(), *(None for _ in columns), "failed"]
    finals = _bond_gains(result) | {name: result.final(name) for name in columns if name in result}
    return [number, *one.values(), *(finals.get(name) for name in columns), result.status]


def _format_value(value: Any) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _write_csv(file: Path, heads: list[str], rows: list[list[Any]]) -> None:
    text = StringIO()
    writer = comma_separated.writer(text, lineterminator="\n")
    writer.writerows([heads, *rows])
    if str(file) == "-":
        print(text.getvalue(), end="")
    else:
        write_text(file, text.getvalue())
