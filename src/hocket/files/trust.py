"""How wrong a run was, as it is kept in its folder: trust.json, and the bands over time in trust.arrow.

In:  an ErrorEstimate; or a run folder
Out: the two files, the bands first; or the ErrorEstimate that they hold
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa

from hocket.engine.recording import write_error
from hocket.errors import FileError
from hocket.files.drawing import Series
from hocket.files.estimate import ErrorEstimate as ErrorEstimate
from hocket.files.estimate import InputDefect as InputDefect
from hocket.files.estimate import Method
from hocket.files.estimate import PortEstimate as PortEstimate
from hocket.files.run import read_facts
from hocket.files.whole import read_text, replace_file, write_text

TRUST, BANDS = "trust.json", "trust.arrow"
MARK, FORMAT = "hocket_trust", 1
_BROKEN = (KeyError, TypeError, ValueError, AttributeError, OSError, pa.ArrowException)
_LISTS = ("t", "value", "error")


def write_estimate(folder: Path | str, trust: ErrorEstimate) -> None:
    """Keep a trust in a run folder; one that is there is replaced.

    trust.json is written last and removed first, so that it never speaks of other bands than its own.
    """
    place = Path(folder)
    facts = {
        MARK: FORMAT,
        "begun": _run_identity(place),
        "method": trust.method,
        "predicted order": trust.predicted,
        "doubts": trust.doubts,
        "unseen": trust.unseen,
        "runs": trust.runs,
        "ports": [
            {"port": each.port, "unit": each.run.unit, "order": _json_number(each.order)}
            | {"largest": _json_number(each.largest), "relative": _json_number(each.relative)}
            | {"rounding": each.rounding}
            for each in trust.ports
        ],
        "gaps": [{name: _json_number(value) for name, value in asdict(gap).items()} for gap in trust.gaps],
    }
    try:
        (place / TRUST).unlink(missing_ok=True)
    except OSError as error:
        raise write_error(place / TRUST, error) from error
    columns = {
        "port": pa.array([each.port for each in trust.ports], pa.string()),
        "t": _list_column(each.run.t for each in trust.ports),
        "value": _list_column(each.run.values for each in trust.ports),
        "error": _list_column(each.error for each in trust.ports),
    }
    table = pa.table(columns)
    with replace_file(place / BANDS) as file, pa.ipc.new_file(file, table.schema) as arrow:
        arrow.write_table(table)
    write_text(place / TRUST, json.dumps(facts, indent=1, ensure_ascii=False) + "\n")


def read_estimate(folder: Path | str) -> ErrorEstimate | None:
    """Return how wrong the run in a folder was; None: nobody asked yet, or it was another run.

    Raises FileError if what is kept cannot be read.
    """
    place = Path(folder)
    if not (place / TRUST).is_file():
        return None
    try:
        facts = json.loads(read_text(place / TRUST))
        if facts[MARK] > FORMAT:
            hint = "pip install --upgrade hocket"
            raise FileError("the estimate was written by a newer hocket", str(place / TRUST), hint=hint)
        if facts["begun"] != _run_identity(place):
            return None
        return _parse_estimate(facts, place)
    except _BROKEN as error:
        why = f"it lacks {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
        what = f"`{TRUST}` cannot be read: {why}"
        hint = f"`hocket check {place} --again` makes it anew"
        raise FileError(what, str(place / TRUST), "what hocket wrote", hint) from error


def _parse_estimate(facts: Mapping[str, Any], place: Path) -> ErrorEstimate:
    if facts["method"] not in get_args(Method):
        raise ValueError(f"there is no method `{facts['method']}`")
    with pa.OSFile(str(place / BANDS)) as file:
        table = pa.ipc.open_file(file).read_all()
    lists = {name: table.column(name).combine_chunks() for name in _LISTS}
    named = {port: row for row, port in enumerate(table.column("port").to_pylist())}
    ports = []
    for each in facts["ports"]:
        row = named[each["port"]]
        t, value, error = (np.asarray(lists[name][row].values, dtype=float) for name in _LISTS)
        if not len(t) == len(value) == len(error):
            raise ValueError(f"the band of `{each['port']}` has rows of other lengths")
        series = Series(t, value, str(each["unit"]), each["port"])
        ports.append(
            PortEstimate(series, error, _parse_number(each["order"]), float(each.get("rounding", 0.0)))
        )
    gaps = tuple(
        InputDefect(**{**gap, **{name: _parse_number(gap[name]) for name in _NUMBERS}})
        for gap in facts["gaps"]
    )
    return ErrorEstimate(
        tuple(ports),
        tuple(map(str, facts["doubts"])),
        facts["predicted order"],
        facts["method"],
        tuple(map(str, facts["unseen"])),
        gaps,
        int(facts["runs"]),
    )


_NUMBERS = ("largest", "at", "mean", "relative")


def _run_identity(folder: Path) -> Any:
    """Return what tells a run from others that were in the same folder."""
    facts = read_facts(folder) or {}
    return [facts.get("begun"), facts.get("process"), facts.get("timings", {}).get("wall")]


def _json_number(value: Any) -> Any:
    """Return a value as JSON can hold it: it has no infinity."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _parse_number(value: Any) -> Any:
    return None if value is None else float(value)


def _list_column(columns: Any) -> pa.Array:
    parts = [np.asarray(column, dtype=float) for column in columns]
    ends = np.cumsum([0, *map(len, parts)])
    flat = np.concatenate(parts) if parts else np.zeros(0)
    return pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), pa.array(flat, pa.float64()))
