"""Zero-stability: do outputs with direct feedthrough to each other converge, however short the steps are?

In:  a Composite whose models are linear
Out: a ZeroStability: gains of each level and of all leaves together, the composed map that decides, why

As the steps vanish no state moves, and what is left are outputs y = g + D u exchanged over and over
(Kuebler & Schiehlen 2000; Hafner, Bicher & Popper, equations 3 to 6). States need not be read: a run starts
only where I - D is regular; then (I - D)^-1 g is a fixed point whatever g is, so that nothing drifts.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hocket.analysis.linear_models import IdentifiedModel, Tangent, named_leaves
from hocket.analysis.linear_reading import read_linear
from hocket.analysis.measure import Measure, Outcome, Rows
from hocket.analysis.sampled_models import SampledStandIn
from hocket.analysis.stability import MARGIN, are_powers_bounded, spectrum
from hocket.coupling.graph import strong_components
from hocket.coupling.wiring import OWN
from hocket.errors import ConvergenceError, Fault, InternalError, ScenarioError
from hocket.files.plotting import BLUE, GREY, RED, new_figure, set_axes_title
from hocket.model.composite import Composite
from hocket.model.extrapolators import Hold, Polynomial
from hocket.model.protocols import Array
from hocket.orchestrators.jacobi import Jacobi
from hocket.planning.parameters import with_leaves
from hocket.planning.planner import plan_tree
from hocket.planning.tree import PlanTree
from hocket.simulators.state_space import StateSpace


@dataclass(frozen=True, eq=False)
class FeedthroughGains:
    """The direct feedthrough of outputs to each other through connections: y_new = g + D y, all at once."""

    path: str
    """Of the level whose connections count; empty: the outermost one."""
    ports: tuple[str, ...]
    """The outputs of all leaves inside, as paths: rows and columns of D."""
    D: Array = field(repr=False)
    rho: float
    norm: float
    """The largest row sum, ||D||_inf."""
    rho_abs: float
    """The radius of |D|, all gains taken positive."""


@dataclass(frozen=True)
class FeedthroughLoop:
    """An algebraic loop."""

    ports: tuple[str, ...]
    """Each has direct feedthrough from the one before it, the first from the last."""
    gain: float
    """The loop gain, with its sign."""
    levels: tuple[str, ...]
    """The levels whose connections it runs over."""

    def __str__(self) -> str:
        around = " -> ".join(f"`{port}`" for port in (*self.ports, self.ports[0]))
        where = " and ".join(f"`{level}`" if level else "the outermost level" for level in self.levels)
        return f"{around} (loop gain {self.gain:.4g}, connected in {where})"


@dataclass(frozen=True)
class FeedthroughPart:
    """A leaf or a level: how its leaves react, and how its own ports lead to theirs."""

    ports: tuple[str, ...]
    D: Array
    """Per output and input of the leaves."""
    enter: Array
    """Per input of the leaves and own input: the factor on the way in."""
    leave: Array
    """Per own output and output of the leaves: the factor on the way out."""
    levels: tuple[FeedthroughGains, ...] = ()
    """This level and those inside it."""
    behind: dict[str, frozenset[str]] = field(default_factory=dict)
    """Per port of anything inside: the outputs of leaves that it shows, or that react to it."""


def feedthrough_part(level: PlanTree) -> FeedthroughPart:
    """Return a level; D, enter and leave of its children, one after the other, make up its own.

    A level inside counts with the D of its leaves, its own connections left out (Hafner, Bicher & Popper,
    equations 11 and 16). The sum over the levels is then the D of all leaves wired directly.
    """
    from scipy.linalg import block_diag

    inner = [
        feedthrough_part(level.inner[child]) if child in level.inner else _leaf_part(level, child)
        for child in range(len(level.wiring.models))
    ]
    ports = tuple(port for part in inner for port in part.ports)
    D, enter, leave = (
        np.asarray(block_diag(*(getattr(part, name) for part in inner))) for name in ("D", "enter", "leave")
    )
    between, inward, outward = _connection_factors(level)
    here = gains_from_matrix(level.path, ports, D @ enter @ between @ leave)
    part = FeedthroughPart(ports, D, enter @ inward, outward @ leave)
    behind = {name: shown for each in inner for name, shown in each.behind.items()}
    if level.path:
        behind |= _outputs_behind_ports(level.path, level.composite, part)
    return replace(part, levels=(here, *(each for one in inner for each in one.levels)), behind=behind)


def feedthrough_matrix(model: Any) -> Array:
    """Return the direct feedthrough of a linear model, from the values of its inputs to its outputs."""
    if isinstance(model, SampledStandIn):  # it shows what it has seen at samples only
        return np.zeros((len(model.outputs), len(model.inputs)))
    D = np.array(model.D, dtype=np.float64)
    values = D[0][: len(model.outputs)] if D.ndim == 3 else D  # identified: powers of time come after
    return values.reshape(len(model.outputs), len(model.inputs))


def _leaf_part(level: PlanTree, child: int) -> FeedthroughPart:
    name, model = level.name(child), level.wiring.models[child]
    D = feedthrough_matrix(model)
    ports = tuple(f"{name}.{port.name}" for port in model.outputs)
    part = FeedthroughPart(ports, D, np.eye(len(model.inputs)), np.eye(len(ports)))
    return replace(part, behind=_outputs_behind_ports(name, model, part))


def _outputs_behind_ports(path: str, model: Any, part: FeedthroughPart) -> dict[str, frozenset[str]]:
    reacting = (part.D @ part.enter).T
    rows = [*zip(model.outputs, part.leave, strict=True), *zip(model.inputs, reacting, strict=True)]
    return {
        f"{path}.{port.name}": frozenset(part.ports[place] for place in np.flatnonzero(row))
        for port, row in rows
    }


def _connection_factors(level: PlanTree) -> tuple[Array, Array, Array]:
    """Return the factors between children, from own inputs to children, and from children to own outputs."""
    wiring = level.wiring
    first = np.cumsum([0, *(len(model.outputs) for model in wiring.models)])
    drives = [drive for driven in wiring.drives for drive in driven]
    between = np.zeros((len(drives), first[-1]))
    inward = np.zeros((len(drives), len(level.composite.inputs)))
    outward = np.zeros((len(wiring.outputs), first[-1]))
    for row, drive in enumerate(drives):
        if drive is not None and drive.child == OWN:
            inward[row, drive.port] = drive.gain
        elif drive is not None:
            between[row, first[drive.child] + drive.port] = drive.gain
    for row, shown in enumerate(wiring.outputs):
        outward[row, first[shown.child] + shown.port] = shown.gain
    return between, inward, outward


def flat_gains(part: FeedthroughPart) -> FeedthroughGains:
    """Return the gains of all leaves wired directly to each other."""
    number = {port: place for place, port in enumerate(part.ports)}
    D = np.zeros((len(number), len(number)))
    for level in part.levels:
        places = [number[port] for port in level.ports]
        D[np.ix_(places, places)] += level.D
    return gains_from_matrix("", part.ports, D)


def gains_from_matrix(path: str, ports: tuple[str, ...], D: Array) -> FeedthroughGains:
    """Return D with its radius, norm and radius of |D|."""
    norm = float(np.abs(D).sum(axis=1).max(initial=0.0))
    return FeedthroughGains(path, ports, D, radius_and_group(D)[0], norm, radius_and_group(np.abs(D))[0])


def radius_and_group(D: Array) -> tuple[float, list[int]]:
    """Return the spectral radius, and the numbers it belongs to.

    Group by group: what only passes through has radius 0 exactly, not the root of a rounding error.
    """
    best: tuple[float, list[int]] = 0.0, []
    for group in _cyclic_groups(D):
        values = spectrum(D[np.ix_(group, group)], 1, vectors=False)[0]
        best = max(best, (float(np.abs(values).max()), group), key=lambda found: found[0])
    return best


def _cyclic_groups(D: Array) -> list[list[int]]:
    """Return the groups of numbers that react to themselves, in however many steps."""
    edges = [(int(source), int(target)) for target, source in np.argwhere(D)]
    groups = strong_components(len(D), edges)
    return [group for group in groups if len(group) > 1 or D[group[0], group[0]] != 0.0]


def strongest_loop(
    levels: tuple[FeedthroughGains, ...], flat: FeedthroughGains, deciding: Collection[str] | None = None
) -> FeedthroughLoop | None:
    """Return the loop with the largest gain per step, near these outputs; None: anywhere."""
    sizes, ports = np.abs(flat.D), flat.ports
    groups = [
        group
        for group in _cyclic_groups(flat.D)
        if deciding is None or any(ports[place] in deciding for place in group)
    ]
    if not groups:
        return None
    group = max(groups, key=lambda group: radius_and_group(sizes[np.ix_(group, group)])[0])
    around = [group[place] for place in _strongest_cycle(sizes[np.ix_(group, group)])]
    steps = list(zip(around, (*around[1:], around[0]), strict=True))
    used = []
    for level in levels:
        number = {port: place for place, port in enumerate(level.ports)}
        ends = [(number.get(ports[target]), number.get(ports[source])) for source, target in steps]
        if any(None not in end and level.D[end] != 0.0 for end in ends):
            used.append(level.path)
    gain = float(np.prod([flat.D[target, source] for source, target in steps]))
    return FeedthroughLoop(tuple(ports[place] for place in around), gain, tuple(used))


def _strongest_cycle(sizes: Array) -> list[int]:
    """Return the circle of a strong component with the largest mean gain (Karp 1978, theorem 1)."""
    count = len(sizes)
    best = np.full((count + 1, count), -np.inf)  # of all walks of so many steps from the first number
    best[0, 0] = 0.0
    came = np.zeros((count + 1, count), dtype=np.int64)
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = np.log(sizes.T)
        for step in range(1, count + 1):
            ways = best[step - 1][:, None] + weights
            came[step], best[step] = ways.argmax(axis=0), ways.max(axis=0)
        means = (best[count] - best[:count]) / np.arange(count, 0, -1)[:, None]
    means[np.isneginf(best[:count])] = np.inf
    ends = np.where(np.isneginf(best[count]), -np.inf, means.min(axis=0))
    walk = [int(np.argmax(ends))]
    for step in range(count, 0, -1):  # a walk this long meets itself, and where it does is the circle
        walk.append(int(came[step, walk[-1]]))
        if walk[-1] in walk[:-1]:
            break
    return walk[walk.index(walk[-1]) : -1][::-1]


ROUNDING = 1e-12
"""How far a gain of one may be off for want of digits."""
_STALE = (Jacobi(outputs="stale"), Jacobi(outputs="stale", inputs="delayed"))


@dataclass(frozen=True, eq=False)
class ZeroStability(Measure):
    """The verdict for steps that vanish, all in the same proportion."""

    stable: bool
    reason: str
    rho: float | None
    """The radius of the composed map; None: a loop has no single solution, so that nothing starts."""
    semisimple: bool | None
    """Whether eigenvalues on the unit circle have all their eigenvectors; None: none is on it."""
    levels: tuple[FeedthroughGains, ...]
    """Each level by itself, the outermost first: they tell where the trouble is, and decide nothing."""
    flat: FeedthroughGains
    """All leaves wired directly to each other."""
    norm_certifies: bool | None
    """||D||_inf <= 1 (Hafner, Bicher & Popper, theorem 2 and corollary 3); None: it does not apply."""
    radius_certifies: bool | None
    """rho(|D|) < 1, the sharper one (theory, section 3); None: it does not apply."""
    uncertified: str
    """Why the certificates do not apply; empty where they do."""
    loop: FeedthroughLoop | None
    """The loop with the largest gain per step, among those that decide."""
    T: Array = field(repr=False)
    """The composed map of one period: the linear reading of the plan with nothing moving."""

    title = "zero-stability: gains of direct feedthrough"

    @property
    def outcome(self) -> Outcome:
        """A caution: at the present step the spectral radius decides."""
        return Outcome.GOOD if self.stable else Outcome.CAUTION

    def verdict(self) -> list[str]:
        """Return why it is not zero-stable."""
        return [] if self.stable else [self.reason]

    def rows(self) -> Rows:
        """Return a row for each level, for all leaves together, and for the composed map."""
        gains = [(each.path or "outermost", each.rho, each.norm, each.rho_abs) for each in self.levels]
        gains.append(("all leaves, flat", self.flat.rho, self.flat.norm, self.flat.rho_abs))
        heads = "level", "rho(D)", "||D||_inf", "rho(|D|)"
        last = "composed: decides", self.rho, None, None
        return [dict(zip(heads, each, strict=True)) for each in (*gains, last)]

    def notes(self) -> list[str]:
        return [self.reason]

    def facts(self) -> dict[str, Any]:
        return {"zero-stable": self.stable, "feedthrough gains": self.rows()}

    def draw(self) -> Any:
        """Draw the gains of the levels, and the eigenvalues of the composed map with the unit circle."""
        figure, (bars, plane) = new_figure(9, 3.8, 2, (3, 2))
        parts, places = (*self.levels, self.flat), np.arange(len(self.levels) + 1)
        names = [*(each.path or "outermost" for each in self.levels), "all, flat"]
        for offset, label, colour, heights in (
            (-0.25, "rho", BLUE, [each.rho for each in parts]),
            (0.0, "rho(|D|)", "#E69F00", [each.rho_abs for each in parts]),
            (0.25, "inf norm", "#56B4E9", [each.norm for each in parts]),
        ):
            bars.bar(places + offset, heights, 0.23, label=label, color=colour)
        bars.axhline(1.0, color=GREY, linewidth=1.0)
        bars.set_xticks(places, [name if len(name) <= 20 else f"…{name[-19:]}" for name in names])
        set_axes_title(bars, "gains of the levels")
        bars.legend(frameon=False, fontsize="small")
        turn = np.exp(2j * np.pi * np.linspace(0.0, 1.0, 361))
        plane.plot(turn.real, turn.imag, color=GREY, linewidth=1.0)
        values = np.linalg.eigvals(self.T) if len(self.T) else np.zeros(0)
        plane.plot(values.real, values.imag, "o", color="#009E73" if self.stable else RED, markersize=5)
        plane.set_aspect("equal", adjustable="datalim")
        word = "stable" if self.stable else "unstable"
        verdict = "cannot start" if self.rho is None else f"spectral radius {self.rho:.4g}, {word}"
        set_axes_title(plane, f"composed map: {verdict}")
        for axes in (bars, plane):
            axes.grid(color="#e4e4e4", linewidth=0.8)
            axes.set_axisbelow(True)
        return figure


def zero_stability(composite: Composite) -> ZeroStability:
    """Return whether the outputs of a coupling converge as its steps vanish, and why not.

    All models must be linear. That each level passes by itself (theorem 1 of Hafner, Bicher & Popper) is not
    enough: the composed map decides.
    """
    design = plan_tree(composite)
    _check_static_linear(composite)
    part = feedthrough_part(design)
    levels, flat = part.levels, flat_gains(part)
    try:
        reading = read_linear(at_rest(composite))
    except ConvergenceError as error:
        reason = f"ill posed: {error.faults[0].what}: {error.faults[0].where}"
        loop, nothing = strongest_loop(levels, flat), np.zeros((0, 0))
        return ZeroStability(False, reason, None, None, levels, flat, None, None, reason, loop, nothing)
    rho, worst = radius_and_group(reading.core)
    cells = [reading.cells[reading.live[place]] for place in worst]
    deciding = {port for cell in cells for port in part.behind.get(f"{cell.owner}.{cell.name}", ())}
    stable = are_powers_bounded(reading.core, rho)
    # rounding moves a double eigenvalue with one eigenvector by the root of its size
    near = -MARGIN <= rho - 1.0 <= math.sqrt(MARGIN)
    grows_alone = rho > 1.0 + ROUNDING and is_semisimple(reading.core)
    uncertified = _why_uncertified(design)
    found = ZeroStability(
        stable=stable,
        reason="",
        rho=rho,
        semisimple=(stable or grows_alone) if near else None,
        levels=levels,
        flat=flat,
        norm_certifies=None if uncertified else flat.norm <= 1.0 + ROUNDING,
        radius_certifies=None if uncertified else flat.rho_abs < 1.0 - ROUNDING,
        uncertified=uncertified,
        loop=strongest_loop(levels, flat, deciding if rho else None),
        T=reading.core,
    )
    return replace(
        found, reason=_describe_zero_stability(found, f"`{cells[0].owner}.{cells[0].name}`" if cells else "")
    )


def at_rest(composite: Composite) -> Composite:
    """Return the same coupling with every leaf at rest, y = D u; the plan is the very same."""
    design = plan_tree(composite)
    resting = {
        name: Tangent.static(model, feedthrough_matrix(model)) for name, model in named_leaves(composite)
    }
    still = with_leaves(design.composite, resting)
    if plan_tree(still).plan != design.plan:
        raise InternalError("the plan changes when the models come to rest")
    return still


def is_semisimple(Phi: Array) -> bool:
    """Return whether the eigenvalues on the unit circle have as many eigenvectors as they count.

    It names why powers grow; whether they do is not decided here.
    """
    from scipy.linalg import eigvals, svdvals

    values = eigvals(Phi)
    circle = values[np.abs(np.abs(values) - 1.0) <= math.sqrt(MARGIN)]
    seen: list[complex] = []
    for value in circle:
        if any(abs(value - other) <= math.sqrt(MARGIN) for other in seen):
            continue
        seen.append(complex(value))
        count = int((np.abs(circle - value) <= math.sqrt(MARGIN)).sum())
        singular = svdvals(Phi - value * np.eye(len(Phi)))
        if int((singular <= math.sqrt(MARGIN) * max(1.0, singular[0])).sum()) < count:
            return False
    return True


def _check_static_linear(composite: Composite) -> None:
    faults = [
        Fault(f"`{name}` is not linear", name, "models with matrices A, B, C and D")
        for name, model in named_leaves(composite)
        if not isinstance(model, (StateSpace, Tangent, IdentifiedModel, SampledStandIn))
    ]
    if faults:
        raise ScenarioError(faults)


def _why_uncertified(design: PlanTree) -> str:
    """Return why the certificates do not apply: they are for holds, stale outputs and Jacobi everywhere."""
    for level in design.levels():
        name = f"`{level.path}`" if level.path else "the outermost level"
        plans = [jacobi.plan(level.composite.scenario).step for jacobi in _STALE]
        if level.plan.output or level.plan.step not in plans:
            return f"{name} is not a Jacobi with stale outputs"
        for each in level.wiring.extrapolators:
            if not (isinstance(each, Hold) or each == Polynomial(0)):
                return f"{name} does not hold inputs: {each}"
    return ""


def _describe_zero_stability(found: ZeroStability, memory: str) -> str:
    """Return the verdict in words."""
    loop = f"; dominant algebraic loop: {found.loop}" if found.loop else ""
    if found.stable and not found.flat.rho_abs:
        return "zero-stable: no output has direct feedthrough to itself"
    if found.stable and found.semisimple:
        return f"zero-stable, marginally: feedthrough map with spectral radius 1, semisimple{loop}"
    if found.semisimple is False:
        return f"not zero-stable: spectral radius 1 with a defective eigenvalue, errors accumulate{loop}"
    digits = 4 if found.semisimple is None else 10
    factor = f"feedthrough map with spectral radius {found.rho:.{digits}g}"
    if found.stable and (found.rho or 0.0) < ROUNDING:
        return f"zero-stable: algebraic loops are solved within each step{loop}"
    if found.stable:
        certified = found.norm_certifies or found.radius_certifies
        always = "; this holds for every hierarchy and every ratio of steps" if certified else ""
        return f"zero-stable: {factor}{loop}{always}"
    grows = f"not zero-stable, unstable however short the steps: {factor}"
    if not found.loop:
        return f"{grows}, in the memory of the extrapolation of {memory} alone"
    # held inputs with rho(|D|) < 1 converge in any order and at any rates (Chazan & Miranker 1969)
    if found.flat.rho_abs < 1.0 - ROUNDING:
        return f"{grows}{loop}; with held inputs it would be stable"
    if len(found.levels) > 1 and all(each.rho < 1.0 for each in found.levels):
        return f"{grows}{loop}; each level by itself is stable, together they are not"
    return f"{grows}{loop}"
