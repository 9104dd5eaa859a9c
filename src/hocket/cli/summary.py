"""What is said about a run when it is over.

In:  a Run and its folder; how wrong it was, if that was asked
Out: a few lines: a table on a terminal, two lines elsewhere; a table of ports with their errors
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hocket.cli.screen import is_terminal, print_out
from hocket.cli.tables import titled_table
from hocket.cli.words import count, format_significant
from hocket.files.flows import BondFlows, read_bond_flows
from hocket.files.run import Run
from hocket.files.trust import ErrorEstimate

MOST = 12
"""Ports in the table of a run."""
BONDS = 6
"""Bonds in the summary of a run."""
_COLOURS = {"finished": "bold green", "stopped": "bold yellow"}


def print_summary(run: Run, folder: Path) -> None:
    """Print how it went and where to look."""
    simulated, took, kept = _simulated_span(run), _wall_time(run), _recorded_size(run)
    look = f'hocket.open_run("{folder.as_posix()}")'
    because = str(run.info["engine"]).partition(", because ")[2]
    notes = [str(note) for note in run.info.get("notes", [])]
    pace, sweeps, adapted, flowed = (
        _realtime_words(run),
        _iteration_lines(run),
        _step_control_lines(run),
        read_bond_flows(run),
    )
    bonds, stored, sent = _bond_lines(flowed, folder), flowed.stored_text, _message_lines(run)
    if not is_terminal():
        print_out(f"{run.name} {run.status}: {simulated} in {took}; {kept}")
        if because:
            print_out(f"run by the interpreter, because {because}")
        if pace:
            print_out(f"real time: {pace}")
        print_out(*(f"iterated: {line}" for line in sweeps))
        print_out(*(f"adapted: {line}" for line in adapted))
        print_out(*(f"sent: {line}" for line in sent))
        print_out(*(f"bond: {line}" for line in bonds))
        if stored:
            print_out(f"stored: {stored}")
        print_out(*(f"note: {note}" for note in notes))
        print_out(f"{folder}  {look}")
        return
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    lines: list[tuple[str, RenderableType]] = [
        ("simulated", simulated),
        ("took", took),
        ("kept", kept),
        ("engine", str(run.info["engine"])),
        *([("real time", pace)] if pace else []),
        *(("iterated", line) for line in sweeps),
        *(("adapted", line) for line in adapted),
        *(("sent", line) for line in sent),
        *(("bond", line) for line in bonds),
        *([("stored", stored)] if stored else []),
        *(("note", note) for note in notes),
        ("folder", Text(str(folder), "bold")),
        ("look", f"hocket plot {shlex.quote(str(folder))}"),
        ("", look),
    ]
    for label, text in lines:
        grid.add_row(label, text)
    print_out(Text.assemble((run.name, "bold"), " ", (run.status, _COLOURS.get(run.status, "bold red"))))
    print_out(Padding(grid, (0, 0, 0, 2), expand=False))


def _iteration_lines(run: Run) -> list[str]:
    """Return how often the steps of each level were made, in words."""
    counted = run.info.get("counts", {}).get("sweeps", {})
    return [
        f"{path or 'outermost'}, {each['total'] / each['repeats']:.1f} sweeps per step, most {each['most']}"
        for path, each in counted.items()
    ]


def _step_control_lines(run: Run) -> list[str]:
    """Return how many steps each level with step control made, and how long they were, in words."""
    counted = run.info.get("counts", {}).get("adapted", {})
    return [
        f"{path or 'outermost'}, {count(each['accepted'], 'step')}, {each['rejected']} rejected, "
        f"{_format_duration(each['shortest'])} to {_format_duration(each['longest'])}"
        for path, each in counted.items()
    ]


def _message_lines(run: Run) -> list[str]:
    """Return what passed from host to host, in words."""
    counted = run.info.get("counts", {}).get("messages", {})
    return [
        f"{link}, {count(each['messages'], 'message')} ({each['start']} to start), {each['bytes']:,} bytes"
        for link, each in counted.items()
    ]


def _bond_lines(flowed: BondFlows, folder: Path) -> list[str]:
    """Return what flowed through the power bonds, in words; those that gain or lose the most first."""
    found = flowed.bonds
    more = len(found) - BONDS
    lines = [each.account_text for each in found[:BONDS]]
    return [*lines, f"and {more} more: hocket check {shlex.quote(str(folder))}"] if more > 0 else lines


def _format_duration(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{format_significant(seconds / size)} {unit}"
    return f"{format_significant(seconds / 1e-9)} ns"


def error_table(run: Run, trust: ErrorEstimate, most: int | None = MOST) -> Iterator[RenderableType]:
    """Yield a table of ports: where they ended, and how wrong they are; the worst first."""
    rows = [
        {
            "port": each.port,
            "unit": each.run.unit,
            "last value": run.final(each.port),
            "estimated error": each.largest,
            "at [s]": each.at,
            "of the largest value": each.relative,
            **({"order": _round_order(each.order)} if trust.method == "Richardson" else {}),
        }
        for each in trust.ports
    ]
    how = "from shorter steps" if trust.method == "Richardson" else "from linear models"
    yield from titled_table(f"how wrong it was, {how}", rows[:most], None)
    if most is not None and len(rows) > most:
        yield f"and {len(rows) - most} more: hocket check {shlex.quote(str(run.path))} --all"


def _round_order(order: float | None) -> float | None:
    return None if order is None else round(order, 2)


def _simulated_span(run: Run) -> str:
    start, reached = run.info["start"], run.info["reached"]
    steps = count(run.info["counts"]["steps"], "step")
    rest = "" if run.status == "finished" else f" of {run.info['stop']:g} s"
    return f"{steps} from {start:g} to {reached:g} s{rest}"


def _wall_time(run: Run) -> str:
    wall = run.info["timings"]["wall"]
    factor = (run.info["reached"] - run.info["start"]) / wall
    return f"{format_significant(wall)} s ({format_significant(factor)} times real time)"


def _recorded_size(run: Run) -> str:
    rows = sum(run.table(table.name).num_rows for table in run.tables)
    rates = f" at {len(run.tables)} rates" if len(run.tables) > 1 else ""
    return f"{count(rows, 'row')}{rates}, {count(len(run.ports), 'port')}"


def _realtime_words(run: Run) -> str:
    """Return how well the run kept pace with the clock; empty if it was not to."""
    if "realtime" not in run.info:
        return ""
    facts = run.info["realtime"]
    late = count(facts["overruns"], "overrun")
    return f"factor {facts['factor']:g}, {late}, at most {format_significant(1000 * facts['largest_lag'])} ms late"
