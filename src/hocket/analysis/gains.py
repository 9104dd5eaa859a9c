"""How outputs react at once to each other, level by level and all together, and in which loops.

In:  the Blueprint of a tree of linear models
Out: a matrix D for each level and one for all leaves; the loop with the largest gain
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hocket.analysis.stability import spectrum
from hocket.engine.blueprint import PlanTree
from hocket.graph import strong_components
from hocket.model import Array
from hocket.wiring import OWN


@dataclass(frozen=True, eq=False)
class FeedthroughGains:
    """How outputs react at once to each other through connections: y_new = g + D y, all at the same time."""

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
    """Outputs that react to each other in a circle."""

    ports: tuple[str, ...]
    """Each reacts to the one before it, the first to the last."""
    gain: float
    """Once around, with its sign."""
    levels: tuple[str, ...]
    """The levels whose connections it runs over."""

    def __str__(self) -> str:
        around = " -> ".join(f"`{port}`" for port in (*self.ports, self.ports[0]))
        where = " and ".join(f"`{level}`" if level else "the outermost level" for level in self.levels)
        return f"{around} (gain {self.gain:.4g} once around, connected in {where})"


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
    """Return how the outputs of a linear model react at once to the values of its inputs."""
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
    groups = [
        group
        for group in _cyclic_groups(flat.D)
        if deciding is None or any(flat.ports[place] in deciding for place in group)
    ]
    if not groups:
        return None
    sizes = np.abs(flat.D)
    group = max(groups, key=lambda group: radius_and_group(sizes[np.ix_(group, group)])[0])
    around = [group[place] for place in _strongest_cycle(sizes[np.ix_(group, group)])]
    steps = list(zip(around, (*around[1:], around[0]), strict=True))
    ports = flat.ports
    used = [
        level.path
        for level in levels
        for source, target in steps
        if {ports[source], ports[target]} <= set(level.ports)
        and level.D[level.ports.index(ports[target]), level.ports.index(ports[source])] != 0.0
    ]
    gain = float(np.prod([flat.D[target, source] for source, target in steps]))
    return FeedthroughLoop(tuple(ports[place] for place in around), gain, tuple(dict.fromkeys(used)))


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
