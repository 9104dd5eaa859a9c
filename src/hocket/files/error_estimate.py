"""The estimated global error of a run: as data, as a file beside the run, and as bands in a picture.

In:  an ErrorEstimate, or the folder of a run that keeps one; series, and the figure they are drawn in
Out: verdict, rows, trust.json and trust.arrow; a Matplotlib figure, for which no display is needed
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa

from hocket.engine.recording import write_error
from hocket.errors import FileError, ScenarioError, suggest_nearest
from hocket.files.atomic_files import read_text, replace_file, write_text
from hocket.files.plotting import (
    BLUE,
    Series,
    decimate,
    draw_share_bars,
    envelope,
    new_figure,
    save_figure,
    set_axes_title,
)
from hocket.files.run_clearing import BANDS, TRUST
from hocket.files.run_facts import checksum, parse_sealed, read_facts, seal
from hocket.model.protocols import Array
from hocket.model.units import Share

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


SHOWN = 6
"""Ports in a picture of an estimate, the worst ones."""


def _draw_defect_bars(gaps: Sequence[InputDefect], path: Path | str | None) -> Any:
    figure, (axes,) = new_figure(9, 1.2 + 0.3 * len(gaps))
    draw_share_bars(axes, [gap.input for gap in gaps], [gap.relative for gap in gaps])
    axes.set_xlabel("largest defect, relative to peak")
    set_axes_title(axes, "connection defects")
    return save_figure(figure, path)


def add_bands(figure: Figure, series: Sequence[Series], estimate: ErrorEstimate) -> int:
    """Fill the bands around series that `draw_series` drew in a figure, one axes per unit; count them."""
    axes = dict(zip(dict.fromkeys(each.unit for each in series), figure.axes, strict=False))
    numbers: dict[str, int] = {}
    found = 0
    for each in series:
        number = numbers[each.unit] = numbers.get(each.unit, -1) + 1
        if each.name in estimate:
            place = axes[each.unit]
            fill_band(place, estimate[each.name], str(place.lines[number].get_color()))
            found += 1
    if found:
        words = "with its estimated error" + (", not reliable" if estimate.doubts else "")
        set_axes_title(figure.axes[0], f"{figure.axes[0].get_title(loc='left')}, {words}")
    return found


def fill_band(axes: Axes, each: PortEstimate, colour: str) -> None:
    """Fill the band around one port."""
    band = np.abs(each.error)
    with np.errstate(over="ignore", invalid="ignore"):
        t, low, high = envelope(each.run.t, each.run.values - band, each.run.values + band)
    axes.fill_between(t, low, high, color=colour, alpha=0.22, linewidth=0.0)


Method: TypeAlias = Literal["Richardson", "defect"]
"""From runs with shorter steps; or from how far inputs were from the outputs that drive them."""
WRONG = 0.5
"""An error above this part of the peak value is of its size."""


AGREED = 0.25
"""How far an observed order may be from the expected one to match it."""


def matching_rows(t: Array, others: Array) -> tuple[Any, Any]:
    """Return where other times have each of these, of equal ones the last, and whether they have it at all.

    Times that differ by rounding are the same.
    """
    if not len(others):
        return np.zeros(len(t), dtype=np.intp), np.zeros(len(t), dtype=bool)
    apart = np.diff(others)
    shortest = float(apart[apart > 0.0].min(initial=np.inf))
    slack = np.minimum(1e-9 * (1.0 + np.abs(t)), 0.1 * shortest)
    at = np.clip(np.searchsorted(others, t + slack, side="right") - 1, 0, None)
    return at, np.abs(others[at] - t) <= 2.0 * slack


def format_time(t: float) -> str:
    """Return a time in few digits, but to a hundredth of a second: a run may start late."""
    return f"{t:.4g}" if abs(t) < 1e3 else f"{t:.2f}".rstrip("0").rstrip(".")


@dataclass(frozen=True, eq=False)
class PortEstimate:
    """One port: how far it is from where it should be."""

    run: Series
    error: Array
    """The estimate at each time of the run, with its sign: the run less the truth."""
    order: float | None
    """With which the difference falls as the steps get shorter; None: there is none to see."""
    rounding: float = 0.0
    """What is smaller than this is the rounding of others: values that should be zero."""

    @property
    def port(self) -> str:
        """Its path."""
        return self.run.name

    @property
    def largest(self) -> float:
        """The largest estimate, in the unit of the port."""
        size = np.abs(self.error)
        return float(size.max(initial=0.0)) if not np.isnan(size).any() else math.inf

    @property
    def at(self) -> float:
        """When the estimate is largest, in seconds."""
        return float(self.run.t[int(np.argmax(np.abs(self.error)))]) if len(self.error) else 0.0

    @property
    def relative(self) -> float:
        """The largest estimate over the largest value; of what is rounding, zero."""
        scale = float(np.abs(self.run.values).max(initial=0.0))
        if max(self.largest, scale) <= self.rounding:
            return 0.0
        if not math.isfinite(self.largest) or not math.isfinite(scale):
            return math.inf
        return self.largest / scale if scale else math.inf if self.largest else 0.0


@dataclass(frozen=True)
class InputDefect:
    """One connection: how far its input was from the output that drives it, at the ends of steps."""

    input: str
    output: str
    unit: str
    largest: float
    at: float
    """Seconds."""
    mean: float
    relative: float
    """The largest over the largest value."""

    def row(self) -> dict[str, object]:
        """Return it as a row of a table."""
        return {
            "input": self.input,
            "output": self.output,
            "unit": self.unit,
            "largest defect": self.largest,
            "at [s]": self.at,
            "mean": self.mean,
            "of peak": Share(self.relative),
        }


@dataclass(frozen=True, eq=False)
class ErrorEstimate:
    """An estimate per port, the worst in relation to its peak first, and why it is not reliable."""

    ports: tuple[PortEstimate, ...]
    doubts: tuple[str, ...]
    """Why it is not reliable; empty: it is."""
    predicted: int | None
    """The expected order; None: every step is exact."""
    method: Method = "Richardson"
    unseen: tuple[str, ...] = ()
    """What the estimate leaves out."""
    gaps: tuple[InputDefect, ...] = ()
    """Of the method `defect`: each connection, the worst first."""
    runs: int = 0
    """How many runs with shorter steps came to their end, of two."""
    prediction: tuple[tuple[str, float], ...] = ()
    """What `hocket check` predicts for each port, a part of its peak; empty: nothing was predicted."""

    def __getitem__(self, port: str) -> PortEstimate:
        for each in self.ports:
            if each.port == port:
                return each
        known = [each.port for each in self.ports]
        raise ScenarioError(f"no error of `{port}` was estimated", hint=suggest_nearest(port, known))

    def __contains__(self, port: object) -> bool:
        return any(each.port == port for each in self.ports)

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each port."""
        return [
            {
                "port": each.port,
                "unit": each.run.unit,
                "estimated error": each.largest,
                "at [s]": each.at,
                "of peak": Share(each.relative),
                "observed order": each.order,
            }
            for each in self.ports
        ]

    def defect_rows(self) -> list[dict[str, object]]:
        """Return a row for each connection of the method `defect`."""
        return [each.row() for each in self.gaps]

    @property
    def good(self) -> bool:
        """There is an estimate, it is reliable, and it is not of the size of the values."""
        return bool(self.ports) and not self.doubts and self.ports[0].relative < WRONG

    @property
    def is_wrong(self) -> bool:
        """Whether the global error is of the size of the values, or is not a number."""
        return bool(self.ports) and not self.ports[0].relative < WRONG

    def verdict(self) -> list[str]:
        """Return the largest global error, where it is, and whether the estimate is reliable."""
        left_out = (f"not included: {what}" for what in self.unseen)
        return [*self._error_lines(), *self._reliability_lines(), *left_out]

    def _error_lines(self) -> Iterator[str]:
        if self.ports:
            worst = self.ports[0]
            belief = ", not reliable" if self.doubts else ""
            size = _describe_error(worst, worst.run.unit)
            yield f"estimated global error{belief}: {size} in `{worst.port}`, at {format_time(worst.at)} s"
            if self.is_wrong:
                yield f"the result is wrong: the global error exceeds {Share(WRONG):.0f} of peak"
        else:
            yield "not judged: there is no estimate of the global error"
        if self.gaps:
            gap = self.gaps[0]
            ends = f"between input `{gap.input}` and output `{gap.output}`, at {format_time(gap.at)} s"
            yield f"largest connection defect: {_describe_error(gap, gap.unit)} {ends}"

    def _reliability_lines(self) -> Iterator[str]:
        for doubt in self.doubts:
            yield f"doubt: {doubt}"
        if self.doubts or not self.ports:
            return
        if self.method == "defect":
            yield "the linear models follow the run: the estimate is reliable as far as they go"
            return
        orders = [each.order for each in self.ports if each.order is not None]
        why = "shorter steps change nothing but rounding"
        if orders:
            matches = self.predicted is not None and abs(orders[0] - self.predicted) <= AGREED
            verb = " matches the" if matches else ","
            expected = "" if self.predicted is None else f"{verb} expected order {self.predicted}"
            why = f"observed order {orders[0]:.2f}{expected}"
        yield f"{why}: the estimate is reliable"

    def plot(self, path: Path | str | None = None) -> Any:
        """Draw the worst ports, each with the band in which it is expected to be; without ports, defects.

        `path` also saves the picture.
        """
        shown = self.ports[:SHOWN]
        if not shown:
            return _draw_defect_bars(self.gaps[:30], path)
        figure, stack = new_figure(9, 0.9 + 1.7 * len(shown), rows=len(shown))
        for axes, each in zip(stack, shown, strict=True):
            fill_band(axes, each, BLUE)
            axes.plot(*decimate(each.run), color=BLUE, linewidth=1.2)
            unit = f" [{each.run.unit}]" if each.run.unit else ""
            error = f"global error {Share(each.relative):.2g} of peak, {each.largest:.2g}"
            set_axes_title(axes, f"{each.port}{unit}: {error}")
            axes.grid(alpha=0.3)
            axes.margins(x=0)
        stack[-1].set_xlabel("time [s]")
        return save_figure(figure, path)


def _describe_error(each: PortEstimate | InputDefect, unit: str) -> str:
    return f"{Share(each.relative):.2g} of peak, {each.largest:.2g} {unit}".rstrip()


MARK, FORMAT = "hocket_trust", 2
_BROKEN = (KeyError, TypeError, ValueError, AttributeError, OSError, pa.ArrowException)
_LISTS = ("t", "value", "error")


def write_estimate(folder: Path | str, estimate: ErrorEstimate) -> None:
    """Keep an estimate in a run folder; one that is there is replaced.

    trust.json is written last and removed first, so that it never speaks of other bands than its own.
    """
    place = Path(folder)
    facts = {
        MARK: FORMAT,
        "begun": _run_identity(place),
        "method": estimate.method,
        "predicted order": estimate.predicted,
        "doubts": estimate.doubts,
        "unseen": estimate.unseen,
        "runs": estimate.runs,
        "prediction": [[port, _json_number(error)] for port, error in estimate.prediction],
        "ports": [
            {"port": each.port, "unit": each.run.unit, "order": _json_number(each.order)}
            | {"largest": _json_number(each.largest), "relative": _json_number(each.relative)}
            | {"rounding": each.rounding}
            for each in estimate.ports
        ],
        "gaps": [{name: _json_number(value) for name, value in asdict(gap).items()} for gap in estimate.gaps],
    }
    try:
        (place / TRUST).unlink(missing_ok=True)
    except OSError as error:
        raise write_error(place / TRUST, error) from error
    columns = {
        "port": pa.array([each.port for each in estimate.ports], pa.string()),
        "t": _list_column(each.run.t for each in estimate.ports),
        "value": _list_column(each.run.values for each in estimate.ports),
        "error": _list_column(each.error for each in estimate.ports),
    }
    table = pa.table(columns)
    with replace_file(place / BANDS) as file, pa.ipc.new_file(file, table.schema) as arrow:
        arrow.write_table(table)
    facts["bands"] = checksum((place / BANDS).read_bytes())
    write_text(place / TRUST, seal(facts))


def read_estimate(folder: Path | str) -> ErrorEstimate | None:
    """Return the estimate that is kept in a run folder; None: there is none, or it is that of another run.

    Raises FileError if what is kept cannot be read.
    """
    place = Path(folder)
    if not (place / TRUST).is_file():
        return None
    try:
        facts = parse_sealed(read_text(place / TRUST), str(place / TRUST), MARK)
        if facts is None:
            raise ValueError("it is not one of hocket's")
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
    if "bands" in facts and facts["bands"] != checksum((place / BANDS).read_bytes()):
        raise ValueError(f"`{BANDS}` was changed since hocket wrote it")
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
        InputDefect(
            str(gap["input"]), str(gap["output"]), str(gap["unit"]), *(float(gap[name]) for name in _NUMBERS)
        )
        for gap in facts["gaps"]
    )
    return ErrorEstimate(
        tuple(ports),
        tuple(map(str, facts["doubts"])),
        None if facts["predicted order"] is None else int(facts["predicted order"]),
        facts["method"],
        tuple(map(str, facts["unseen"])),
        gaps,
        int(facts["runs"]),
        tuple((str(port), float(error)) for port, error in facts.get("prediction", ())),
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


def _list_column(columns: Iterable[Array]) -> pa.Array:
    return pa.array(list(columns), pa.large_list(pa.float64()))
