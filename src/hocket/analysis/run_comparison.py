"""Two runs beside each other, or a run and a reference: how far are they apart, and where.

In:  two runs, or files of columns; tolerances
Out: a Comparison: a row for each port, a verdict for regression tests, a picture
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from hocket.analysis.measure import Measure, Outcome, Rows
from hocket.engine.recording import EVENT, HELD, MOVING
from hocket.errors import FileError, ScenarioError, count, list_names, suggest_nearest
from hocket.files.plotting import BLUE, GREY, RED, Series, decimate, new_figure, set_axes_title
from hocket.files.rates import Rate, union_rows, values_at
from hocket.files.rates import Rows as Instants
from hocket.files.run_folder import Run, open_run
from hocket.model.arguments import as_path, as_texts, expect, is_number
from hocket.model.clock import Duration, seconds
from hocket.model.html import VerdictView
from hocket.model.ports import matches
from hocket.model.protocols import Array
from hocket.model.units import Share, conversion
from hocket.simulators.sources import Csv

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Side: TypeAlias = "Run | Path | str"
RELATIVE = 1e-6
"""What may differ unless something else is said, as a part of the peak: rounding."""
_DRAWN = 4


@dataclass(frozen=True, eq=False)
class PortDifference:
    """One port in both, on common instants: the reference, what is compared with it, how far it may be."""

    port: str
    unit: str
    t: Array
    reference: Array
    other: Array
    lower: Array
    upper: Array
    """The tube around the reference."""
    remark: str = ""

    @property
    def difference(self) -> Array:
        """How far the other is from the reference; infinite where one of them is absent or not a number."""
        both = np.isnan(self.reference) & np.isnan(self.other)
        with np.errstate(invalid="ignore"):
            apart = np.where(self.reference == self.other, 0.0, np.abs(self.other - self.reference))
        found: Array = np.where(both, 0.0, np.where(np.isnan(apart), np.inf, apart))
        return found

    @property
    def outside(self) -> Array:
        """Which instants are outside of the tube."""
        inside = (self.other >= self.lower) & (self.other <= self.upper)
        found: Array = ~(inside | (self.difference == 0.0))
        return found

    @property
    def is_within(self) -> bool:
        """Whether all of it is within the tube."""
        return not self.remark and not self.outside.any()

    def row(self) -> dict[str, object]:
        """Return its row of the table."""
        apart = self.difference
        if not len(apart):
            return dict.fromkeys(_HEADS) | {"port": self.port, "unit": self.unit, "within": False}
        worst, peak = int(np.argmax(apart)), _peak(self.reference)
        first = np.flatnonzero(self.outside)
        return {
            "port": self.port,
            "unit": self.unit,
            "largest": float(apart[worst]),
            "of peak": Share(apart[worst] / peak if peak else np.inf if apart[worst] else 0.0),
            "at": float(self.t[worst]),
            "rms": self._rms(apart),
            "leaves at": float(self.t[first[0]]) if len(first) else None,
            "within": self.is_within,
        }

    def _rms(self, apart: Array) -> float:
        """Return the root mean square over time: between instants the difference is a straight line."""
        signed = np.where(np.isfinite(apart), self.other - self.reference, np.nan)
        begin, end, length = signed[:-1], signed[1:], np.diff(self.t)
        if not length.sum():
            return float(np.sqrt(np.mean(apart**2)))
        square = np.sum(length * (begin**2 + begin * end + end**2)) / 3.0 / length.sum()
        return float(np.sqrt(square)) if np.isfinite(square) else float("inf")


_HEADS = ("port", "unit", "largest", "of peak", "at", "rms", "leaves at", "within")


@dataclass(frozen=True, eq=False)
class Comparison(VerdictView, Measure):
    """What differs between two runs: `found.good`, `found.rows()`, `found.plot()`."""

    names: tuple[str, str]
    ports: tuple[PortDifference, ...]
    missing: tuple[str, ...]
    """Ports of the reference that the other has not."""
    extra: tuple[str, ...]
    spans: tuple[tuple[float, float], tuple[float, float]]
    tolerance: str
    picture: ClassVar[str | None] = ""

    @property
    def title(self) -> str:
        return "differences"

    @property
    def outcome(self) -> Outcome:
        if not self.ports:
            return Outcome.NOT_JUDGED
        return Outcome.GOOD if self._same_span and not self.missing and not self._outside else Outcome.BAD

    @property
    def good(self) -> bool:
        """Whether every port of the reference is there, all the time, within the tolerance."""
        return self.outcome is Outcome.GOOD

    @property
    def _outside(self) -> list[PortDifference]:
        return [each for each in self.ports if not each.is_within]

    @property
    def _same_span(self) -> bool:
        return self.spans[0] == self.spans[1]

    def verdict(self) -> list[str]:
        first, second = self.names
        if not self.ports:
            return [f"not judged: `{first}` and `{second}` have no port in common"]
        outside, lines = self._outside, []
        rows = [(each, each.row()) for each in outside or self.ports]
        apart = [(each, row) for each, row in rows if row["largest"] is not None]
        if not outside and all(row["largest"] == 0.0 for _, row in apart):
            has = "has" if len(self.ports) == 1 else "have"
            lines.append(f"equal: {count(len(self.ports), 'port')} {has} the same values")
        elif apart:
            worst, row = max(apart, key=lambda pair: _distance(pair[1]))
            unit = f" {worst.unit}" if worst.unit else ""
            most = (
                f"`{worst.port}` by {row['largest']:.3g}{unit} ({row['of peak']} of peak) at {row['at']:g} s"
            )
            lines.append(
                f"different: {len(outside)} of {count(len(self.ports), 'port')} leave the tolerance of "
                f"{self.tolerance}; farthest {most}"
                if outside
                else f"equal within {self.tolerance}: {count(len(self.ports), 'port')}; farthest {most}"
            )
        lines += [f"different: `{each.port}`: {each.remark}" for each in outside if each.remark]
        if self.missing:
            lines.append(f"different: `{second}` has no {list_names(self.missing, 6)}")
        if not self._same_span:
            spans = [f"{begin:g} to {end:g} s" for begin, end in self.spans]
            lines.append(
                f"different: `{first}` has {spans[0]}, `{second}` {spans[1]}: the common part is compared"
            )
        return lines

    def rows(self) -> Rows:
        rows = [each.row() for each in self.ports]
        return sorted(rows, key=lambda row: (not row["within"], *_distance(row)), reverse=True)

    def notes(self) -> list[str]:
        return [f"`{self.names[1]}` also has {list_names(self.extra, 6)}"] if self.extra else []

    def facts(self) -> dict[str, Any]:
        keys = ("reference", "other", "tolerance", "missing", "extra")
        values = (*self.names, self.tolerance, list(self.missing), list(self.extra))
        return {**super().facts(), **dict(zip(keys, values, strict=True))}

    def draw(self) -> Figure:
        """Draw the ports that are farthest apart, both runs over each other, in the tube."""
        order = [row["port"] for row in self.rows()][:_DRAWN]
        shown = [next(each for each in self.ports if each.port == port) for port in order]
        if not shown:
            raise ScenarioError("there is nothing to draw", hint="compare runs with a port in common")
        figure, stack = new_figure(9, 0.9 + 2.2 * len(shown), rows=len(shown))
        for axes, each in zip(stack, shown, strict=True):
            tube = np.isfinite(each.lower) & np.isfinite(each.upper)
            axes.fill_between(each.t, each.lower, each.upper, where=tube, color=GREY, alpha=0.25, linewidth=0)
            for values, name, colour, style in (
                (each.reference, self.names[0], BLUE, "-"),
                (each.other, self.names[1], RED, "--"),
            ):
                axes.plot(*decimate(Series(each.t, values, each.unit, name)), style, color=colour, label=name)
            bad = np.flatnonzero(each.outside)
            if len(bad):
                axes.axvline(each.t[bad[0]], color=RED, linewidth=0.8, linestyle=":")
            axes.set_ylabel(f"{each.port.rpartition('.')[2]} [{each.unit or '-'}]", parse_math=False)
            within = "within the tolerance" if each.is_within else "leaves the tolerance"
            set_axes_title(axes, f"{each.port}: {within}")
            axes.margins(x=0)
            axes.grid(color="#e4e4e4", linewidth=0.8)
            axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.03), frameon=False, fontsize="small")
        stack[-1].set_xlabel("time [s]")
        return figure


def compare(
    a: Side,
    b: Side,
    ports: Iterable[str] | None = None,
    *,
    absolute: float = 0.0,
    relative: float = RELATIVE,
    time_tolerance: Duration = 0,
) -> Comparison:
    """Compare `b` with the reference `a`: runs, folders of runs, or CSV or Parquet files that hold columns.

    A port is within the tolerance if it stays in a tube around the reference: `absolute` in its own unit
    plus `relative` times the largest value of the reference up and down, and `time_tolerance` to the left
    and the right. All ports of the reference must be there (or those that `ports` names, with patterns), over
    the same time. Where both have rows at other times, the lines between them are compared.
    """
    for name, value in (("absolute", absolute), ("relative", relative)):
        expect(is_number(value) and value >= 0, name, value, "a number, 0 or above")
    try:
        width = float(seconds(time_tolerance))
    except ValueError as error:
        raise ScenarioError(str(error), "time_tolerance", 'a duration such as "10 ms"') from None
    expect(width >= 0, "time_tolerance", time_tolerance, "a duration, 0 or above")
    first, second = _read_side(a, "a"), _read_side(b, "b")
    wanted = list(first.columns) if ports is None else _select(first, as_texts(ports, "ports"))
    shared = [port for port in wanted if port in second.columns]
    words = [f"{float(relative):g} of peak"] if relative > 0 else []
    words += [f"{float(absolute):g}"] if absolute > 0 else []
    words += [f"{width:g} s in time"] * (width > 0)
    names = (first.name, second.name)
    return Comparison(
        names if names[0] != names[1] else (f"{names[0]} (reference)", f"{names[1]} (other)"),
        tuple(_compare_port(port, first, second, absolute, relative, width) for port in shared),
        tuple(port for port in wanted if port not in second.columns),
        tuple(port for port in second.columns if port not in first.columns) if ports is None else (),
        (first.span, second.span),
        " + ".join(words) or "0",
    )


@dataclass(frozen=True, eq=False)
class _Columns:
    name: str
    columns: Mapping[str, tuple[Rate, str]]
    """By port: a rate of one column, and its unit."""

    @property
    def span(self) -> tuple[float, float]:
        filled = [rate.t for rate, _ in self.columns.values() if len(rate.t)]
        return min((float(t[0]) for t in filled), default=0.0), max(
            (float(t[-1]) for t in filled), default=0.0
        )


def _read_side(what: object, name: str) -> _Columns:
    if isinstance(what, Run):
        run = what
    else:
        path = as_path(what, name)
        if path.suffix.lower() in (".csv", ".txt", ".tsv", ".parquet") and not path.is_dir():
            return _read_file(path)
        run = open_run(path)
    found = {}
    for rate in run.read_rates(run.select(None)):
        for column, (port, unit) in enumerate(zip(rate.names, rate.units, strict=True)):
            found[port] = Rate(rate.t, rate.values[:, column : column + 1], (rate.kinds[column],)), unit
    folder = run.path.name if not run.path.name.startswith("hocket-") else run.name
    return _Columns(folder, {port: found[port] for port in run.ports})


def _read_file(path: Path) -> _Columns:
    source = Csv(path)
    file = source.column_file
    times, values = file.read(file.column(source.time), source.columns)
    found = {}
    for column, port in enumerate(source.outputs):
        kind = HELD if port.discrete else MOVING
        found[port.name] = Rate(times, values[:, column : column + 1], (kind,)), port.unit
    return _Columns(path.name, found)


def _select(side: _Columns, patterns: Iterable[str]) -> list[str]:
    found: dict[str, None] = {}
    for pattern in patterns:
        alike = [pattern] if pattern in side.columns else [p for p in side.columns if matches(p, pattern)]
        if not alike:
            hint = suggest_nearest(pattern, side.columns)
            raise FileError(f"`{side.name}` has no port `{pattern}`", "ports", "", hint)
        found |= dict.fromkeys(alike)
    return list(found)


def _compare_port(
    port: str, first: _Columns, second: _Columns, absolute: float, relative: float, width: float
) -> PortDifference:
    (a, unit), (b, other_unit) = first.columns[port], second.columns[port]
    none: Array = np.empty(0)
    nothing = PortDifference(port, unit, none, none, none, none, none)
    try:
        gain, offset = conversion(other_unit, unit)
    except ValueError as error:
        return replace(nothing, remark=str(error))
    b = replace(b, values=gain * b.values + offset) if (gain, offset) != (1.0, 0.0) else b
    if EVENT in (*a.kinds, *b.kinds):
        a, b = replace(a, kinds=(EVENT,)), replace(b, kinds=(EVENT,))
    if not len(a.t) or not len(b.t) or a.t[0] > b.t[-1] or b.t[0] > a.t[-1]:
        return replace(nothing, remark="there is no time at which both have a value")
    rows = union_rows([a, b])
    common = (rows.t >= max(a.t[0], b.t[0])) & (rows.t <= min(a.t[-1], b.t[-1]))
    rows = Instants(rows.t[common], rows.n[common])
    reference, other = (values_at(each, rows, True)[:, 0] for each in (a, b))
    limit = absolute + relative * _peak(a.values[:, 0])
    lower, upper = _envelope(a, rows.t, width) if width and a.kinds != (EVENT,) else (reference, reference)
    return PortDifference(port, unit, rows.t, reference, other, lower - limit, upper + limit)


def _peak(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(np.max(np.abs(finite))) if len(finite) else 0.0


def _envelope(rate: Rate, t: Array, width: float) -> tuple[Array, Array]:
    """Return the least and the largest value of a column within a distance in time."""
    ends = [np.clip(t + sign * width, rate.t[0], rate.t[-1]) for sign in (-1.0, 1.0)]
    zero = np.zeros(len(t), np.int64)
    sides = [
        Instants.after(ends[0]),
        Instants(ends[1], zero),
        Instants(ends[0], zero),
        Instants.after(ends[1]),
    ]
    around = [values_at(rate, rows, True)[:, 0] for rows in sides]
    values = np.append(rate.values[:, 0], np.nan)
    begin, stop = np.searchsorted(rate.t, ends[0]), np.searchsorted(rate.t, ends[1], side="right")
    places = np.column_stack([begin, stop]).ravel()
    found = []
    for what in (np.fmin, np.fmax):
        inner = what.reduceat(values, places)[::2]
        inner = np.where(begin < stop, inner, np.nan)
        found.append(what.reduce([inner, *around]))
    return found[0], found[1]


def _distance(row: Mapping[str, object]) -> tuple[float, float]:
    """Return how far a port is apart, by its peak and in its unit; what was not compared is farthest."""
    share, size = (
        float(each) if isinstance(each, float) else np.inf for each in (row["of peak"], row["largest"])
    )
    return share, size
