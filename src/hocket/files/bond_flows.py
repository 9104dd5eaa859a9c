"""The energy that was transferred through the power bonds of a run, and its residual.

In:  a Run: what run.json says of its bonds, and their accounts where they were recorded
Out: BondFlows: frozen data with rows, sums per level, words and a picture
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from hocket.errors import ScenarioError
from hocket.files.error_estimate import SHOWN
from hocket.files.plotting import BLUE, GREY, Series, decimate, new_figure, save_figure, set_axes_title
from hocket.files.run_folder import Run
from hocket.model.units import Share

if TYPE_CHECKING:
    from matplotlib.axes import Axes


KEEPS = 0.01
"""A bond conserves energy if its residual is at most this part of the energy transferred through it."""
BACK = 0.1
"""The residual of a bond oscillates if in the last third of a run at most this part of its peak is left."""
Trend: TypeAlias = Literal["gains", "loses", "conserves", "oscillates"]
"""What a bond does with energy; one that oscillates loses again what it gains."""
_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "u"))


def format_energy(value: float, unit: str) -> str:
    """Return an energy in the unit that suits it: 3.21 kJ; what is not counted in joules stays as it is."""
    if unit != "J":
        return f"{value:.3g} {unit}".rstrip()
    size = abs(value)
    for scale, prefix in _PREFIXES:
        if size >= scale and size < math.inf:
            return f"{value / scale:.3g} {prefix}J"
    return f"{value:.3g} J"


@dataclass(frozen=True)
class BondFlow:
    """One bond: the energy that either side saw pass, from the side that gives the effort to the other."""

    bond: str
    """Its path."""
    given: float
    taken: float
    gained: float
    """What was taken and never given: the coupling made it; below zero it was lost."""
    unit: str
    seconds: float
    """The length of the run."""
    oscillates: bool = False
    """What is gained is lost again, over and over, as far as it was recorded."""
    moved: float = 0.0
    """The energy that went through, whichever way; zero: not known."""

    @property
    def level(self) -> str:
        """The path of the level that the bond stands in; empty: the outermost."""
        return self.bond.rpartition(".")[0]

    @property
    def per_second(self) -> float:
        """The power that the coupling makes on average."""
        return self.gained / self.seconds if self.seconds else 0.0

    @property
    def share(self) -> float:
        """What was made or lost, over what flowed, whichever way."""
        flowed = self.moved or max(abs(self.given), abs(self.taken))
        if not math.isfinite(self.gained):
            return math.inf
        return abs(self.gained) / flowed if flowed else 0.0

    @property
    def verdict_word(self) -> Trend:
        """What the bond does with energy."""
        if self.share <= KEEPS:
            return "conserves"
        if self.oscillates:
            return "oscillates"
        return "loses" if self.gained < 0.0 else "gains"

    @property
    def gain_text(self) -> str:
        """The energy residual in words: `gained 3.2 J (5 % of the transferred energy)`."""
        verb = "lost" if self.gained < 0.0 else "gained"
        if not math.isfinite(self.gained):
            return f"{verb} energy without bound"
        part = f" ({Share(self.share)} of the transferred energy)" if math.isfinite(self.share) else ""
        return f"{verb} {format_energy(abs(self.gained), self.unit)}{part}"

    @property
    def account_text(self) -> str:
        """The whole account."""
        given, taken = format_energy(self.given, self.unit), format_energy(self.taken, self.unit)
        return f"{self.bond}, given {given}, taken {taken}, {self.gain_text}"


@dataclass(frozen=True)
class StoredEnergy:
    """What a simulator stores, in joules, when a run starts and when it ends."""

    simulator: str
    """Its path."""
    start: float
    end: float


@dataclass(frozen=True, eq=False)
class BondFlows:
    """The bonds of a run, the one that makes or loses the largest part of what flows first."""

    name: str
    """Of the run."""
    bonds: tuple[BondFlow, ...]
    series: tuple[Series, ...] = ()
    """What was gained over time, of each bond that this was recorded of."""
    stored: tuple[StoredEnergy, ...] = ()
    """Of the simulators that tell it."""

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each bond."""
        return [
            {
                "bond": each.bond,
                "verdict": each.verdict_word,
                "given": each.given,
                "taken": each.taken,
                "energy residual": each.gained,
                "unit": each.unit,
                "per second": each.per_second,
                "relative residual": Share(each.share),
            }
            for each in self.bonds
        ]

    def level_rows(self) -> list[dict[str, object]]:
        """Return a row for each level and unit: what its bonds made, what they lost, and the sum."""
        groups: dict[tuple[str, str], list[BondFlow]] = {}
        for each in self.bonds:
            groups.setdefault((each.level, each.unit), []).append(each)
        return [
            {
                "level": level or "outermost",
                "bonds": len(group),
                "given": _sum_floats(each.given for each in group),
                "taken": _sum_floats(each.taken for each in group),
                "gained": _sum_floats(max(each.gained, 0.0) for each in group),
                "lost": _sum_floats(max(-each.gained, 0.0) for each in group),
                "energy residual": _sum_floats(each.gained for each in group),
                "unit": unit,
                "per second": _sum_floats(each.per_second for each in group),
            }
            for (level, unit), group in sorted(groups.items())
        ]

    def stored_rows(self) -> list[dict[str, object]]:
        """Return a row for each simulator that tells its stored energy, and their sum."""
        every = (*self.stored, self._stored_together) if len(self.stored) > 1 else self.stored
        return [
            {
                "simulator": each.simulator,
                "at the start": each.start,
                "at the end": each.end,
                "change": each.end - each.start,
                "unit": "J",
            }
            for each in every
        ]

    @property
    def stored_text(self) -> str:
        """What all simulators that tell it store, in words; empty if none does."""
        if not self.stored:
            return ""
        count, energy = len(self.stored), self._stored_together
        start, end = format_energy(energy.start, "J"), format_energy(energy.end, "J")
        which = f"{count} simulators" if count > 1 else self.stored[0].simulator
        return f"{start} at the start, {end} at the end in {which}"

    @property
    def _stored_together(self) -> StoredEnergy:
        start, end = [each.start for each in self.stored], [each.end for each in self.stored]
        return StoredEnergy("together", _sum_floats(start), _sum_floats(end))

    def verdict(self) -> Iterator[str]:
        """Yield what it comes to, in words."""
        wrong = [each for each in self.bonds if each.verdict_word in ("gains", "loses")]
        oscillating = [each for each in self.bonds if each.verdict_word == "oscillates"]
        for word in ("gains", "loses"):
            alike = [each for each in wrong if each.verdict_word == word]
            if alike:
                worst = alike[0]
                others = f"; {len(alike) - 1} more {word[:-1]} too" if len(alike) > 1 else ""
                yield f"energy residual: the bond `{worst.bond}` {worst.gain_text}{others}"
        if oscillating:
            others = f"; {len(oscillating) - 1} more do so too" if len(oscillating) > 1 else ""
            name = f"that of the bond `{oscillating[0].bond}`"
            yield f"energy residual: {name} oscillates, what is gained is lost again{others}"
        if self.bonds and not wrong and not oscillating:
            every = {1: "the bond conserves", 2: "both bonds conserve"}
            which = every.get(len(self.bonds), f"all {len(self.bonds)} bonds conserve")
            yield f"energy residual: {which} energy, to {Share(KEEPS)}"
        for each in () if self.bonds else self.series:  # of a run that was killed the rows are all there is
            if len(each):
                verb, bond = ("lost" if each.values[-1] < 0.0 else "gained"), each.name.rpartition(".")[0]
                made = format_energy(abs(float(each.values[-1])), each.unit)
                until = f"{each.t[-1]:g} s, where its rows end"
                yield f"energy residual: the bond `{bond}` {verb} {made} up to {until}"

    def plot(self, path: Path | str | None = None) -> Any:
        """Draw what the worst bonds gained over time, each in its own axes; `path` also saves the picture."""
        if not self.series:
            what = "the accounts of the bonds were not recorded" if self.bonds else "there are no power bonds"
            hint = "`hocket run --ledger`, or `run(..., ledger=True)`" if self.bonds else ""
            raise ScenarioError(what, self.name, "a run with its ledger", hint)
        shown, left_out = self.series[:SHOWN], len(self.series[SHOWN:])
        flows = {f"{each.bond}.gained": each for each in self.bonds}
        figure, stack = new_figure(9, 0.9 + 1.7 * len(shown), rows=len(shown))
        for axes, series in zip(stack, shown, strict=True):
            _draw_gain(axes, series, flows.get(series.name))
        stack[-1].set_xlabel("time [s]")
        figure.align_ylabels()
        if left_out:
            figure.supxlabel(f"and {left_out} more bonds", fontsize="small", x=1.0, ha="right")
        return save_figure(figure, path)


def read_bond_flows(run: Run) -> BondFlows:
    """Return what flowed through the power bonds of a run; of one that failed what was recorded only."""
    start, reached = run.info.get("start", 0.0), run.info.get("reached", 0.0)
    found = [
        BondFlow(
            bond,
            float(facts["given"]),
            float(facts["taken"]),
            float(facts["gained"]),
            str(facts["unit"]),
            float(reached) - float(start),
            _residual_oscillates(run, bond),
            float(facts.get("moved", 0.0)),
        )
        for bond, facts in (run.info.get("bonds") or {}).items()
    ]
    found.sort(key=lambda each: (each.verdict_word in ("oscillates", "conserves"), -each.share))
    rank = {f"{each.bond}.gained": number for number, each in enumerate(found)}
    kept = [account for account in run.accounts if account.endswith(".gained")]
    kept.sort(key=lambda account: rank.get(account, 0))
    stored = (
        StoredEnergy(path, float(facts["start"]), float(facts["end"]))
        for path, facts in (run.info.get("stored") or {}).items()
    )
    return BondFlows(run.name, tuple(found), tuple(run[account] for account in kept), tuple(stored))


def _residual_oscillates(run: Run, bond: str) -> bool:
    """Return whether what was gained was lost again: late in the run little is left, not only at its end."""
    account = f"{bond}.gained"
    if account not in run:
        return False
    gained = np.abs(run[account].values)
    late = gained[2 * len(gained) // 3 :]
    return bool(np.isfinite(gained).all() and late.min(initial=np.inf) <= BACK * gained.max(initial=0.0))


def _sum_floats(numbers: Iterable[float]) -> float:
    return float(np.sum(np.fromiter(numbers, dtype=float)))


def _draw_gain(axes: Axes, series: Series, flow: BondFlow | None) -> None:
    axes.axhline(0.0, color=GREY, linewidth=0.8)
    axes.plot(*decimate(series), color=BLUE, linewidth=1.3)
    axes.set_ylabel(f"energy residual [{series.unit or '-'}]")
    bond = series.name.rpartition(".")[0]
    set_axes_title(axes, f"{bond}: {flow.verdict_word}, {flow.gain_text}" if flow else bond)
    axes.margins(x=0)
    axes.grid(alpha=0.3)
