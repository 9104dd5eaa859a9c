"""The rows of all hosts become those of one run.

In:  a folder for each host, with the rows that it kept
Out: the tables as one process would have written them, up to where all hosts have come
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from hocket.engine.recording import ArrowRecorder
from hocket.errors import HocketError, HostError
from hocket.execution.session import Job
from hocket.files.run_folder import Run
from hocket.model.protocols import Array
from hocket.planning.cost import hosts_of

BLOCK = 1 << 16
"""Numbers that are written at once."""


def open_parts(folders: Mapping[str, Path]) -> dict[str, Run]:
    """Return the runs of the hosts that have left one."""
    found = {}
    for host, folder in folders.items():
        with suppress(HocketError):
            found[host] = Run(folder)
    return found


def gather_rows(job: Job, parts: Mapping[str, Run], recorder: ArrowRecorder) -> float:
    """Write the rows that all hosts have, table by table; return the time that all have reached.

    Rows of a table over several hosts are those at times that all of them have.
    """
    recorder.open([choice.table for choice in job.choices])
    reached = [_newest_time(run) for run in parts.values()]
    whole = len(parts) == len(hosts_of(job.design).models)
    limit = min(reached, default=job.clock.time(0)) if whole else job.clock.time(0)
    for index, choice in enumerate(job.choices):
        columns = _find_columns(choice.table.name, parts)
        if any(path not in columns for path in choice.table.columns):
            continue  # a host has not come so far as to keep a row
        pieces = [columns[path] for path in choice.table.columns]
        count = min(int(np.searchsorted(times, limit, side="right")) for times, _ in pieces)
        times = pieces[0][0][:count]
        if any(not np.array_equal(other[:count], times) for other, _ in pieces):
            raise HostError(f"the hosts have kept rows of `{choice.table.name or 'the run'}` at other times")
        block = np.column_stack([times, *(values[:count] for _, values in pieces)])
        rows = max(1, BLOCK // block.shape[1])
        for begin in range(0, count, rows):
            recorder.write(index, block[begin : begin + rows])
    return limit


def _newest_time(run: Run) -> float:
    """Return the time of the newest row of the outermost level, or how far the run says it has come."""
    told = run.info.get("reached")
    if isinstance(told, float | int) and run.info["status"] != "running":
        return float(told)
    newest = [_table(run, table.name)["time"][-1] for table in run.tables if run.table(table.name).num_rows]
    return float(min(newest, default=float(run.info.get("start", 0.0))))


def _table(run: Run, name: str) -> dict[str, Array]:
    table = run.table(name)
    return {
        "time": np.asarray(table.column(0)),
        **{each: np.asarray(table[each]) for each in table.column_names[1:]},
    }


def _find_columns(name: str, parts: Mapping[str, Run]) -> dict[str, tuple[Array, Array]]:
    """Return times and values of every column of a table, on whichever host it was kept."""
    found: dict[str, tuple[Array, Array]] = {}
    for run in parts.values():
        if any(table.name == name for table in run.tables):
            table = run.table(name)
            times = np.asarray(table.column(0))
            found |= {each: (times, np.asarray(table[each])) for each in table.column_names[1:]}
    return found


def gather_facts(job: Job, parts: Mapping[str, Run]) -> dict[str, Any]:
    """Return what run.json says of all hosts together: counts as one process would have them, and of each."""
    hosts, sent = hosts_of(job.design), dict[str, dict[str, int]]()
    told = {}
    for host, run in parts.items():
        info = run.info
        for pair, (messages, values) in info.get("sent", {}).items():
            source, _, target = pair.partition(" to ")
            sent[pair] = {
                "messages": messages,
                "bytes": hosts.between(source, target).header * messages + 8 * values,
            }
        facts = {"status": run.status} | {key: info.get(key) for key in ("reached", "exchanges", "error")}
        facts["process"], facts["machine"] = info.get("process"), info.get("host")
        told[host] = {key: value for key, value in facts.items() if value not in (None, "")}
    predicted: Mapping[str, Any] = next(
        (run.info["counts"].get("messages", {}) for run in parts.values() if run.info.get("counts")), {}
    )
    for pair, each in sent.items():
        if "start" in predicted.get(pair, {}):
            sent[pair] = {"start": predicted[pair]["start"], **each}
    counts: dict[str, Any] = {"simulators": len(job.design.leaves.places)}
    for run in parts.values():
        for key, value in run.info.get("counts", {}).items():
            if key == "steps":
                counts["steps"] = min(value, counts.get("steps", value))
            elif key in ("sweeps", "adapted"):
                counts[key] = {**counts.get(key, {}), **value}
    if sent:
        counts["messages"] = {pair: sent[pair] for pair in predicted or sent if pair in sent}
    notes = list(dict.fromkeys(note for run in parts.values() for note in run.info.get("notes", ())))
    return {"counts": counts, "notes": notes, "hosts": told}
