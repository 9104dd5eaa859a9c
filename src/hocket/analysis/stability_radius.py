"""Stability radii: the smallest change of the macro step, or of some simulators' steps, that destabilises.

In:  a Reading; for a structured radius the names of the uncertain simulators
Out: a StabilityRadius: a size no smaller change can beat, and a change of that size that destabilises

Changes are measured in the 2-norm, in the units of the numbers, and may be complex: for real changes the
radius is a lower bound. It is at most 1 - rho (Hinrichsen & Son, 1989; Glumac & Kovacic, 2019, equation 62),
often far below, so 1 - rho does not stand for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hocket.analysis.disturbance_transfer import (
    LARGEST,
    Complex,
    DisturbanceModel,
    Peak,
    Real,
    Transfer,
    UncertainBlock,
    disturbance_model,
    peak,
)
from hocket.analysis.linear_reading import Reading, leaf_children
from hocket.analysis.measure import Drawing, Measure, Rows
from hocket.analysis.root_search import find_minimum
from hocket.analysis.structured_singular_value import (
    POWERS,
    Scaling,
    destabilising_changes,
    identity_scaling,
    largest_block_norm,
    mu_upper_bound,
    unbounded_changes,
)
from hocket.errors import ScenarioError
from hocket.model.units import Share

SLACK = 0.005
"""How far above mu the level is for which every arc of the circle is covered."""
ARCS = 300
NEAR = 0.01
"""Bounds this near to each other, relatively, are good enough."""
WIDE = 40
"""Disturbances per period up to which every angle may get a scaling of its own."""
ROUNDING = 1e-13
"""Radii below are zero: an eigenvalue this near to the circle is on it."""
ON_REQUEST = "`--robust` (in Python robust=True), however long it takes"
"""What to do about a radius that is not computed unasked."""
EXACT = 1e-4
"""Bounds this near to each other, relatively, are one number."""


@dataclass(frozen=True, eq=False)
class StabilityRadius(Drawing):
    """How far a coupling is from unstable: structured, for some simulators, or unstructured."""

    at_least: float
    """No smaller change destabilises."""
    at_most: float
    """The size of `changes`, which do."""
    certified: bool
    """`at_least` holds on the whole unit circle, by level sets; else it was searched at many points."""
    angle: float
    """Of the eigenvalue that the changes bring to the unit circle: at 0 it drifts, at pi it alternates."""
    period: float
    """Seconds."""
    uncertain: tuple[UncertainBlock, ...] = ()
    """The simulators whose steps may change; none: every number of the step may."""
    stateless: tuple[str, ...] = ()
    """Those named that have no state: there is nothing in their steps that could change."""
    inserted: str = ""
    """The pass that put the simulator there; empty: the author of the scenario did."""
    relative: bool = False
    """Sizes are relative to each simulator's own step map."""
    changes: tuple[Complex, ...] = field(default=(), repr=False)
    """One per uncertain simulator, from (state, input coefficients) to new state; or one, of the core."""
    angles: Real = field(default_factory=lambda: np.zeros(0), repr=False)
    sizes: Real = field(default_factory=lambda: np.zeros(0), repr=False)
    """For each angle tried: no smaller change brings an eigenvalue there."""

    @property
    def radius(self) -> float:
        """The radius where it is known exactly, else what is guaranteed."""
        return self.at_most if self.exact else self.at_least

    @property
    def exact(self) -> bool:
        """The two bounds are one number."""
        return self.at_most == self.at_least or self.at_most - self.at_least <= EXACT * self.at_most

    @property
    def frequency(self) -> float:
        """Hertz of the mode that would become unstable."""
        return self.angle / (2.0 * math.pi * self.period)

    def rows(self) -> Rows:
        """Return one row."""
        return [
            {
                "uncertain": self.what,
                "lower bound": self.at_least,
                "upper bound": self.at_most,
                "relative": self.relative,
                "certified": self.certified,
                "angle [rad]": self.angle,
                "frequency [Hz]": self.frequency,
                "note": self.note,
            }
        ]

    @property
    def what(self) -> str:
        """What may change."""
        return ", ".join([*(block.name for block in self.uncertain), *self.stateless]) or "every number"

    @property
    def note(self) -> str:
        """What a reader must know about the figure."""
        if self.at_most == 0.0:
            return "not stable as it is, or within rounding of the stability boundary"
        if math.isinf(self.at_least):
            return "no change of these steps destabilises: they have no state, or no effect on others"
        notes = [f"inserted by the pass {self.inserted}"] if self.inserted else []
        notes += [f"`{b.name}` steps {b.times} times per period" for b in self.uncertain if b.times > 1]
        notes += [f"`{name}` has no state: its outputs are taken as known" for name in self.stateless]
        if not self.exact:
            notes.append("bounds")
        if not self.certified:
            notes.append("lower bound not certified")
        return "; ".join(notes)

    def draw(self) -> Any:
        """Draw the smallest change over the angle, and the smallest of all."""
        from hocket.files.plotting import BLUE, RED, new_figure, set_axes_title

        figure, (axes,) = new_figure(7, 4)
        shown = np.isfinite(self.sizes) & (self.sizes > 0.0)
        axes.plot(np.degrees(self.angles[shown]), self.sizes[shown], color=BLUE, linewidth=1.3)
        if shown.any() and self.sizes[shown].max() > 20.0 * self.sizes[shown].min():
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0.0)
        if math.isfinite(self.at_most) and self.at_most > 0.0:
            point = float(np.degrees(self.angle)), self.at_most
            axes.plot(*point, "o", color=RED, clip_on=False)
            side = "right" if point[0] > 90.0 else "left"
            axes.annotate(f" {self.at_most:.3g} ", point, color=RED, va="top", ha=side)
        axes.set_xlabel("angle of the eigenvalue on the unit circle [°]")
        axes.set_ylabel("smallest change" + (" [relative]" if self.relative else ""))
        axes.set_xlim(0, 180)
        axes.set_xticks(range(0, 181, 30))
        axes.grid(alpha=0.3)
        set_axes_title(axes, f"stability radius: {self.what}")
        return figure


@dataclass(frozen=True, eq=False)
class StabilityRadii(Measure):
    """The structured radius of each simulator, relative to its own step map.

    The nearest first; those that a pass inserted come last. 1 - rho is not one, and never shown as such.
    """

    radii: tuple[StabilityRadius, ...]
    title = "stability radii (structured, relative to the step map of each simulator)"

    def verdict(self) -> list[str]:
        """Return the smallest one."""
        first = next((each for each in self.radii if not each.inserted), None)
        if first is None or not math.isfinite(first.at_least) or first.at_most == 0.0:
            return []
        upper = "" if first.exact else f" to {Share(first.at_most):.2g}"
        mode = f"oscillation at {first.frequency:.3g} Hz" if first.angle > 1e-6 else "no oscillation"
        size = f"{Share(first.at_least):.2g}{upper} of the step map of `{first.what}`"
        least = "no smaller change of a single simulator destabilises"
        return [f"stability radius (structured): {size}, instability with {mode}; {least}"]

    def rows(self) -> Rows:
        """Return a row for each simulator."""
        return [
            {
                "simulator": each.what,
                "lower bound": Share(each.at_least),
                "upper bound": Share(each.at_most),
                "unstable at [Hz]": each.frequency,
                "note": each.note,
            }
            for each in self.radii
        ]

    def facts(self) -> dict[str, Any]:
        """Return everything about them."""
        return {"stability radii": [row for each in self.radii for row in each.rows()]}


def stability_radius(reading: Reading) -> StabilityRadius:
    """Return the unstructured radius: min over |z| = 1 of the smallest singular value of z I - Phi.

    (Hinrichsen & Son, 1989.) Phi is the core of the reading; the figure depends on its coordinates.
    """
    return _bound_radius(Transfer.resolvent(reading.core), _infinite_radius(reading))


def structured_radius(
    reading: Reading, *uncertain: str, relative: bool = False, balanced: bool = False
) -> StabilityRadius:
    """Return the radius for changes of the step maps of these simulators, all of at most the same size.

    One that steps once per period: 1 / max of ||C (z I - Phi)^-1 B|| over |z| = 1 (theory, section 2). Else
    bounds: a simulator that steps several times per period changes alike in each step, and several
    simulators change at once. `relative` measures each change by the norm of the simulator's own step map;
    `balanced` does so after rows and columns of that map were made alike, so that the figure does not depend
    on the units of states and inputs.
    """
    if not uncertain:
        raise ScenarioError("no uncertain simulator was named", expected="a simulator that may change")
    return _disturbed_radius(reading, disturbance_model(reading, uncertain), relative, balanced)


def _disturbed_radius(
    reading: Reading, found: DisturbanceModel, relative: bool, balanced: bool
) -> StabilityRadius:
    weights = [_change_weights(own, relative, balanced) for own in found.maps]
    transfer = _weigh_transfer(found.transfer, found.blocks, weights)
    free = replace(_infinite_radius(reading), uncertain=found.blocks, stateless=found.stateless)
    result = _bound_radius(transfer, replace(free, relative=relative or balanced))
    changed = zip(result.changes, weights, strict=False)
    return replace(result, changes=tuple(rows[:, None] * one * columns for one, (rows, columns) in changed))


def radius_per_simulator(reading: Reading, most: int | None = None) -> tuple[StabilityRadius, ...]:
    """Return the balanced radius of each simulator that has states, it alone changing; the smallest first.

    Simulators with more than `most` disturbances per period (states times steps) are refused.
    """
    names = [level.name(child) for level, child, simulator in leaf_children(reading.root) if len(simulator.z)]
    found = []
    for name in names:
        one = disturbance_model(reading, [name])
        if most is not None and one.transfer.D.shape[1] > most:
            times = one.blocks[0].times
            raise ScenarioError(f"`{name}` steps {times} times per period", hint=ON_REQUEST)
        found.append(_disturbed_radius(reading, one, relative=True, balanced=True))
    return tuple(sorted(found, key=lambda each: each.at_least))


def _infinite_radius(reading: Reading) -> StabilityRadius:
    return StabilityRadius(math.inf, math.inf, True, 0.0, float(reading.period))


def _change_weights(own: Real, relative: bool, balanced: bool) -> tuple[Real, Real]:
    """Return by what changes of a step map are measured: factors of its rows and of its columns."""
    rows, columns = _balance_factors(own) if balanced else (np.ones(own.shape[0]), np.ones(own.shape[1]))
    size = np.linalg.norm(own / rows[:, None] / columns, 2) if relative or balanced else 1.0
    # what has no effect has none after a change of what has
    return rows * float(size), np.where(own.any(axis=0), columns, 0.0) if balanced else columns


def _balance_factors(own: Real) -> tuple[Real, Real]:
    """Return factors of rows and columns whose products are nearest to the entries, by their logarithms.

    Other units of states and inputs multiply rows and columns, and so only these factors.
    """
    count, (i, j) = own.shape[0], np.nonzero(own)
    system = np.zeros((len(i), sum(own.shape)))
    system[np.arange(len(i)), i] = system[np.arange(len(i)), count + j] = 1.0
    logs = np.linalg.lstsq(system, np.log(np.abs(own[i, j])), rcond=None)[0]
    return np.exp(logs[:count]), np.exp(logs[count:])


def _weigh_transfer(
    transfer: Transfer, blocks: tuple[UncertainBlock, ...], weights: list[tuple[Real, Real]]
) -> Transfer:
    """Return the same for changes that are measured by weights of what moves and of what is seen."""
    pairs = list(zip(blocks, weights, strict=True))
    moved, seen = (
        np.concatenate([np.zeros(0), *(np.tile(weight[side], block.times) for block, weight in pairs)])
        for side in (0, 1)
    )
    C, D = seen[:, None] * transfer.C, seen[:, None] * transfer.D * moved
    return Transfer(transfer.Phi, transfer.B * moved, C, D)


def _bound_radius(transfer: Transfer, free: StabilityRadius) -> StabilityRadius:
    """Return the radius, from one that bounds nothing."""
    spectrum = transfer.eigenvalues
    if np.abs(spectrum).max(initial=0.0) >= 1.0 - ROUNDING:
        angle = abs(np.angle(spectrum[np.argmax(np.abs(spectrum))]))
        return replace(free, at_least=0.0, at_most=0.0, angle=float(angle))
    top = peak(transfer) if transfer.D.size else None
    if top is None or top.gain <= ROUNDING:
        return free  # nothing destabilises
    if top.gain >= 1.0 / ROUNDING:  # next to nothing does
        return replace(free, at_least=0.0, at_most=0.0, angle=top.angle)
    if len(free.uncertain) <= 1 and all(block.times == 1 for block in free.uncertain):
        U, s, Vh = np.linalg.svd(transfer.at(top.angle))
        change = np.outer(Vh[0].conj(), U[:, 0].conj()) / s[0]
        return _radius_at_peak(free, top, 1.0 / top.gain, top.angle, (change,))
    return _several_block_bounds(transfer, free, top)


def _radius_at_peak(
    free: StabilityRadius, top: Peak, at_most: float, angle: float, changes: tuple[Complex, ...]
) -> StabilityRadius:
    return replace(
        free,
        at_least=1.0 / top.level,
        at_most=at_most,
        certified=top.certified,
        angle=angle,
        changes=changes,
        angles=top.angles,
        sizes=_inverse_gains(top.gains),
    )


def _inverse_gains(gains: Real) -> Real:
    found: Real = np.divide(1.0, gains, out=np.full(gains.shape, np.inf), where=gains > 0.0)
    return found


def _several_block_bounds(transfer: Transfer, free: StabilityRadius, top: Peak) -> StabilityRadius:
    """Return bounds of the radius for blocks that are repeated, or several: mu from both sides.

    One scaling for the whole circle, the best where it matters, mostly does; else every arc gets its own.
    """
    blocks, scaling = free.uncertain, identity_scaling(free.uncertain)
    for _ in range(2):
        _, scaling = mu_upper_bound(transfer.at(top.angle), scaling)
        top = peak(scaling.scale_transfer(transfer))
    angles, gains = np.append(top.angles, top.angle), np.append(top.gains, top.gain)
    angle, changes = _smallest_changes(transfer, blocks, angles, gains)
    found = _radius_at_peak(free, top, largest_block_norm(changes), angle, changes)
    near = found.at_most - found.at_least <= NEAR * found.at_most
    return found if near or transfer.D.shape[1] > WIDE else _bounds_per_angle(transfer, found)


def _bounds_per_angle(transfer: Transfer, found: StabilityRadius) -> StabilityRadius:
    """Return better bounds: a scaling for each angle."""
    blocks = found.uncertain
    angles = transfer.angles(25, 12)
    bounds = _mu_upper_bounds(transfer, angles, identity_scaling(blocks))
    angle, changes = _smallest_changes(transfer, blocks, angles, bounds)
    if largest_block_norm(changes) < found.at_most:
        found = replace(found, at_most=largest_block_norm(changes), angle=angle, changes=changes)
    level = max(float(bounds.max()), 1.0 / found.at_most) * (1.0 + SLACK)
    small = len(transfer.Phi) <= LARGEST
    covered = _cover_circle(transfer, level, identity_scaling(blocks)) if small else None
    if covered is None or 1.0 / covered < found.at_least:
        return found
    return replace(found, at_least=1.0 / covered, certified=True, angles=angles, sizes=_inverse_gains(bounds))


def _mu_upper_bounds(transfer: Transfer, angles: Real, scaling: Scaling) -> Real:
    """Return upper bounds of mu, as good as they get where they are largest."""
    bounds = np.zeros(len(angles))
    best, scalings = 0.0, []
    for number, angle in enumerate(angles):
        bounds[number], scaling = mu_upper_bound(transfer.at(float(angle)), scaling, POWERS[:1])
        scalings.append(scaling)
    for number in np.argsort(-bounds):
        if bounds[number] <= best:
            break
        bounds[number], _ = mu_upper_bound(transfer.at(float(angles[number])), scalings[number])
        best = max(best, float(bounds[number]))
    return bounds


def _smallest_changes(
    transfer: Transfer, blocks: tuple[UncertainBlock, ...], angles: Real, bounds: Real
) -> tuple[float, tuple[Complex, ...]]:
    """Return the smallest changes found, and the angle where they put an eigenvalue."""
    enough = (1.0 + EXACT) / float(bounds.max())
    angle, best = 0.0, unbounded_changes(blocks)
    for top in np.argsort(-bounds)[:4]:
        parts = destabilising_changes(transfer.at(float(angles[top])), blocks, 6, enough)
        if largest_block_norm(parts) < largest_block_norm(best):
            angle, best = float(angles[top]), parts
        if largest_block_norm(best) <= (1.0 + NEAR) * enough:
            return angle, best
    around = np.sort(angles)
    at = int(np.searchsorted(around, angle))
    finer, smallest = find_minimum(
        lambda a: largest_block_norm(destabilising_changes(transfer.at(a), blocks, 2, enough)),
        float(around[max(at - 1, 0)]),
        float(around[min(at + 1, len(around) - 1)]),
        1e-4,
    )
    if smallest < largest_block_norm(best):
        angle = finer
        best = destabilising_changes(transfer.at(angle), blocks, 2, enough)
    return angle, best


def _cover_circle(transfer: Transfer, level: float, scaling: Scaling) -> float | None:
    """Return a level that mu reaches nowhere on the circle, this one or a little more; None: gave up.

    A scaling that keeps M below the level at one angle does so up to the next crossing, which the pencil of
    the scaled M tells; there the next scaling takes over.
    """
    angle = 0.0
    for _ in range(ARCS):
        bound, scaling = mu_upper_bound(transfer.at(angle), scaling, enough=0.9 * level)
        if bound >= level:
            level = bound * (1.0 + SLACK)
        around = scaling.scale_transfer(transfer)
        crossings = around.crossings(level)
        ends = np.concatenate([[angle], crossings[crossings > angle], [np.pi]])
        beyond = np.flatnonzero(around.gains((ends[1:] + ends[:-1]) / 2.0) >= level)
        if not len(beyond):
            return level
        reached = float(ends[beyond[0]])
        if reached - angle < 1e-9:
            level *= 1.0 + SLACK
        angle = reached
    return None
