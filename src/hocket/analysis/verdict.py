"""The verdict of a check in plain words.

In:  a Check
Out: lines, the answer first
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hocket.analysis.advice import CouplingChange
from hocket.analysis.energy import BondCheck
from hocket.analysis.prediction import PredictedError
from hocket.analysis.stability import MARGIN
from hocket.files.estimate import format_time
from hocket.files.flows import KEEPS

FOLLOWS = 0.8
"""Of the rate at which a system grows: a coupling that grows slower than this is elsewhere."""

if TYPE_CHECKING:
    from hocket.analysis.checking import Check


def verdict_lines(found: Check) -> list[str]:
    """Return what was found, the most important first."""
    if found.ill_posed:
        return [f"ill posed: {found.ill_posed}"]
    refused = [leaf for leaf in found.leaves if leaf.how == "refused"]
    if refused:
        first = f"not judged: `{refused[0].path}`: {refused[0].refused}"
        more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        return [first + more, *_energy_lines(found.bonds), *_unjudged_lines(found)]
    lines = [_stability_line(found)] if found.stability else []
    if not found.is_conclusive:
        worst = max(found.leaves, key=lambda leaf: leaf.fit)
        doubt = f"the linear model of `{worst.path}` is good to {worst.fit:.2g} only"
        lines[0] = f"not sure, for {doubt}: {lines[0]}"
    if found.zero and not found.zero.stable:
        lines.append(found.zero.reason)
    lines = [*_iteration_lines(found), *lines]
    lines += [_error_line(found.prediction)] if found.prediction else []
    lines += [f"other steps: {found.largest.words}"] if found.largest else []
    lines += _robustness_lines(found)
    lines += _energy_lines(found.bonds)
    lines += _unjudged_lines(found)
    lines += [_advice_line(found.best, found.prediction)] if found.best else []
    return lines


def _unjudged_lines(found: Check) -> list[str]:
    return [f"not judged: {reason}" for reason in found.unjudged]


def _iteration_lines(found: Check) -> list[str]:
    """Return what is to be said of iterations that do not settle: nothing that follows will be reached."""
    return [
        f"does not settle: each sweep of {each.name}, {each.how}, makes what is wrong {each.factor:.3g} "
        'times as large; try accelerate = "quasi-newton"'
        for each in found.iterations
        if not each.settles
    ]


def _robustness_lines(found: Check) -> list[str]:
    """Return the line on the radius; 1 - rho is not it, and is never shown for it."""
    first = next((each for each in found.robustness if not each.inserted), None)
    if first is None or not math.isfinite(first.at_least) or first.at_most == 0.0:
        return []
    size = f"{100.0 * first.at_least:.2g}%"
    if not first.exact:
        size += f" to {100.0 * first.at_most:.2g}%"
    mode = f"swing up at {first.frequency:.3g} Hz" if first.angle > 1e-6 else "grow"
    rest = "no smaller change of one simulator can"
    return [f"robust: a change of `{first.what}` by {size} of its step could make it {mode}; {rest}"]


def _stability_line(found: Check) -> str:
    measured = found.stability
    assert measured is not None
    rho = f"the largest factor per step is {measured.rho:.6g}"
    if measured.stable:
        return f"stable: {rho}" + (", on the edge" if measured.rho > 1.0 - MARGIN else "")
    if found.own_growth and found.drifts:
        return f"the system itself moves on and on, as a free body does, and the coupling follows it: {rho}"
    if found.own_growth:
        assert found.own is not None
        follows = math.log(measured.rho) > FOLLOWS * math.log(found.own)
        how = "and the coupling follows it" if follows else "and the coupling does not follow it"
        return f"the system itself grows, by {found.own:.6g} per step, {how}: {rho}"
    mode = measured.modes[0]
    doubling = math.log(2.0) / math.log(mode.radius) * measured.period if mode.radius > 1.0 else math.inf
    who = ", ".join(f"`{part.name}` {part.share:.0%}" for part in mode.parts[:3])
    pace = (
        f"doubled every {doubling:.3g} s, at {mode.frequency:.3g} Hz" if math.isfinite(doubling) else "slowly"
    )
    return f"unstable: {rho}: what is wrong grows, {pace}; in it are {who}"


def _error_line(found: PredictedError) -> str:
    worst = found.worst
    if not any(each.scale for each in found.ports) and not any(each.largest for each in found.ports):
        return "expected error: none: nothing moves"
    if all(each.rounding for each in found.ports):
        return "expected error: none but rounding"
    if found.worthless:
        return "the error grows without bound: the run will be worthless"
    unit = f" {worst.unit}" if worst.unit else ""
    share = f", {worst.relative:.2g} of its largest value"
    if worst.stays_zero:
        share = ", which should stay zero"
    order = f"; order {found.order.measured:.2g}" if found.order.measured is not None else ""
    size = f"at most {worst.largest:.2g}{unit} in `{worst.port}`{share}"
    return f"expected error: {size}, at {format_time(worst.at)} s{order}"


def _energy_lines(found: BondCheck | None) -> list[str]:
    """Return what is to be said of the power bonds: the one that gains or loses most, and what helps."""
    if found is None or not found.gains:
        return []
    if not any(gain.moved for gain in found.gains):
        return ["energy: nothing flows through the bonds in a trial run, so nothing is said of them"]
    now, size = found.now, f"{100.0 * found.now.share:.2g}% of what flows"
    if now.keeps_energy:
        return [f"energy: the bonds keep it, to {size}"]
    worst = max(found.gains, key=lambda gain: abs(gain.gained) if math.isfinite(gain.gained) else math.inf)
    if not math.isfinite(worst.gained):
        lines = [f"energy: what the bond `{worst.bond}` gains grows beyond all numbers in a trial run"]
    elif now.share > KEEPS:
        made = f"{abs(worst.per_step):.2g} {worst.unit} in every step, {abs(worst.share):.1%} of what flows"
        lines = [f"energy: the bond `{worst.bond}` {'gains' if worst.gained > 0.0 else 'loses'} {made}"]
    elif now.grows:
        lines = [f"energy: the bonds make or lose {size}, and it adds up: a factor of {now.rho:.9g} per step"]
    else:
        lines = [f"energy: the bonds keep it, to {size}"]
    if now.share <= KEEPS and now.off is not None:
        lines.append(f"stored energy: off by {now.off:.2g} of its largest, against an iteration")
    best = found.best
    if best is not None:
        cost = f", for {best.work:.2g} times the steps" if best.work > 1.0 else ""
        what = "what keeps the energy" if best.keeps_energy else "what comes nearest to keeping the energy"
        lines.append(f"{what}: {best.words}: {best.share:.2g} of what flows{cost}")
    return lines


def _advice_line(change: CouplingChange, predicted: PredictedError | None) -> str:
    now = "" if predicted is None or predicted.worthless else f" instead of {predicted.worst.relative:.2g}"
    what = ""
    if change.error is not None and math.isfinite(change.error) and (change.error or now != " instead of 0"):
        what = f"the largest error is {change.error:.2g} of the value{now}"
    cost = f", for {change.steps:g} times the steps" if change.steps > 1.0 else ""
    return f"what helps most: {change.words}: factor {change.rho:.6g}{', ' if what else ''}{what}{cost}"
