"""Do outputs that react at once to each other settle, however short the steps are?

In:  a Composite whose models are linear
Out: a ZeroStability: gains of each level and of all leaves together, the composed map that decides, why

As the steps vanish no state moves, and what is left are outputs y = g + D u exchanged over and over
(Kuebler & Schiehlen 2000; Hafner, Bicher & Popper, equations 3 to 6). States need not be read: a run starts
only where I - D is regular; then (I - D)^-1 g is a fixed point whatever g is, so that nothing drifts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from hocket.analysis.gains import (
    FeedthroughGains,
    FeedthroughLoop,
    feedthrough_matrix,
    feedthrough_part,
    flat_gains,
    radius_and_group,
    strongest_loop,
)
from hocket.analysis.linear import is_linear, read_linear
from hocket.analysis.pictures import save_figure
from hocket.analysis.stability import MARGIN
from hocket.engine.blueprint import PlanTree
from hocket.engine.composite import Composite
from hocket.errors import ConvergenceError, Fault, InternalError, ScenarioError
from hocket.files.drawing import import_extra
from hocket.model import Array, Capabilities, Port
from hocket.orchestrators.jacobi import Jacobi
from hocket.parameters import with_leaves
from hocket.signals import Hold, Polynomial
from hocket.simulators.state_space import StateSpace, StateSpaceSimulator

ROUNDING = 1e-12
"""How far a gain of one may be off for want of digits."""
_STALE = (Jacobi(outputs="stale"), Jacobi(outputs="stale", inputs="delayed"))
_COLOURS = {"rho": "#0072B2", "rho_abs": "#E69F00", "norm": "#56B4E9", True: "#009E73", False: "#D55E00"}


@dataclass(frozen=True, eq=False)
class ZeroStability:
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
    """rho(|D|) < 1, the sharper one (formulas, section 3); None: it does not apply."""
    uncertified: str
    """Why the certificates do not apply; empty where they do."""
    loop: FeedthroughLoop | None
    """The loop with the largest gain per step, among those that decide."""
    T: Array = field(repr=False)
    """The composed map of one period: the linear reading of the plan with nothing moving."""

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each level, for all leaves together, and for the composed map."""
        named = [(each.path or "the outermost level", each) for each in self.levels]
        rows: list[dict[str, object]] = [
            {"level": name, "rho": each.rho, "inf norm": each.norm, "rho(|D|)": each.rho_abs}
            for name, each in (*named, ("all leaves, flat", self.flat))
        ]
        return [*rows, {"level": "composed: decides", "rho": self.rho, "inf norm": None, "rho(|D|)": None}]

    def plot(self, path: Path | str | None = None) -> Any:
        """Draw the gains of the levels, and the eigenvalues of the composed map with the unit circle."""
        return _plot_zero_stability(self, path)


def zero_stability(composite: Composite) -> ZeroStability:
    """Return whether the outputs of a coupling settle as its steps vanish, and why not.

    All models must be linear. That each level passes by itself (theorem 1 of Hafner, Bicher & Popper) is not
    enough: the composed map decides.
    """
    design = composite.blueprint
    _check_static_linear(design)
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
    # rounding moves a double eigenvalue with one eigenvector by the root of its size
    on_circle = is_semisimple(reading.core) if -MARGIN <= rho - 1.0 <= math.sqrt(MARGIN) else None
    uncertified = _why_uncertified(design)
    found = ZeroStability(
        stable=rho < 1.0 - MARGIN or (rho <= 1.0 + MARGIN and bool(on_circle)),
        reason="",
        rho=rho,
        semisimple=on_circle,
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
    design = composite.blueprint
    leaves = design.leaves.wiring
    still = with_leaves(
        design.composite,
        {name: RestingModel(model) for name, model in zip(leaves.names, leaves.models, strict=True)},
    )
    if still.plan() != design.plan:
        raise InternalError("the plan changes when the models come to rest")
    return still


@dataclass(frozen=True)
class RestingModel:
    """A linear model whose state does not move: what its outputs change by is D u."""

    model: Any
    A = ()

    @property
    def inputs(self) -> tuple[Port, ...]:
        """Those of the model."""
        return tuple(self.model.inputs)

    @property
    def outputs(self) -> tuple[Port, ...]:
        """Those of the model, with what they are said to react to."""
        return tuple(self.model.outputs)

    @property
    def abilities(self) -> Capabilities:
        """Those of the model."""
        found: Capabilities = self.model.abilities
        return found

    def open(self) -> StateSpaceSimulator:
        """Make a live simulator."""
        D = feedthrough_matrix(self.model).tolist() if self.inputs and self.outputs else ()
        return StateSpace(D=D, inputs=self.inputs, outputs=self.outputs).open()


def is_semisimple(Phi: Array) -> bool:
    """Return whether the eigenvalues on the unit circle have as many eigenvectors as they count."""
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


def _check_static_linear(design: PlanTree) -> None:
    leaves = design.leaves.wiring
    faults = [
        Fault(f"`{name}` is not linear", name, "models with matrices A, B, C and D")
        for name, model in zip(leaves.names, leaves.models, strict=True)
        if not (is_linear(model) and hasattr(model, "D"))
    ]
    if faults:
        raise ScenarioError(faults)


def _why_uncertified(design: PlanTree) -> str:
    """Return why the certificates do not apply: they are for holds, stale outputs and Jacobi everywhere."""
    for level in design.levels():
        name = f"`{level.path}`" if level.path else "the outermost level"
        plans = [jacobi.plan(level.composite.scenario).step for jacobi in _STALE]
        if level.plan.output or level.plan.step not in plans:
            return f"{name} is no Jacobi with stale outputs"
        for each in level.wiring.extrapolators:
            if not (isinstance(each, Hold) or each == Polynomial(0)):
                return f"{name} does not hold inputs: {each}"
    return ""


def _describe_zero_stability(found: ZeroStability, memory: str) -> str:
    """Return the verdict in words."""
    loop = f"; the strongest loop is {found.loop}" if found.loop else ""
    if found.stable and not found.flat.rho_abs:
        return "stable: no output reacts at once to itself"
    if found.stable and found.semisimple:
        return f"stable, barely: what goes around neither shrinks nor grows{loop}"
    if found.semisimple is False:
        return f"unstable: the radius is 1 with too few eigenvectors, so errors add up step by step{loop}"
    digits = 4 if found.semisimple is None else 10
    factor = f"to {found.rho:.{digits}g} of itself each step"
    if found.stable and (found.rho or 0.0) < ROUNDING:
        return f"stable: nothing goes around from step to step, loops are solved within each{loop}"
    if found.stable:
        certified = found.norm_certifies or found.radius_certifies
        always = "; so it does in every nesting and at every ratio of steps" if certified else ""
        return f"stable: what goes around shrinks {factor}{loop}{always}"
    grows = f"unstable, however short the steps: what goes around grows {factor}"
    if not found.loop:
        return f"{grows}, in the memory of the extrapolation of {memory} alone"
    # held inputs with rho(|D|) < 1 settle in any order and at any rates (Chazan & Miranker 1969)
    if found.flat.rho_abs < 1.0 - ROUNDING:
        return f"{grows}{loop}; with held inputs it would shrink"
    if len(found.levels) > 1 and all(each.rho < 1.0 for each in found.levels):
        return f"{grows}{loop}; each level by itself would settle, together they do not"
    return f"{grows}{loop}"


def _plot_zero_stability(found: ZeroStability, path: Path | str | None) -> Any:
    figure = import_extra("matplotlib.figure", "plot").Figure(figsize=(9, 3.8), layout="constrained")
    bars, plane = figure.subplots(1, 2, width_ratios=(3, 2))
    _draw_level_gains(bars, found)
    _draw_composed_map(plane, found)
    for axes in (bars, plane):
        axes.grid(color="#e4e4e4", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    return save_figure(figure, path)


def _draw_level_gains(axes: Any, found: ZeroStability) -> None:
    parts = (*found.levels, found.flat)
    names = [*(each.path or "outermost" for each in found.levels), "all, flat"]
    places = np.arange(len(parts))
    for offset, kind, label in (
        (-0.25, "rho", "rho"),
        (0.0, "rho_abs", "rho(|D|)"),
        (0.25, "norm", "inf norm"),
    ):
        heights = [getattr(each, kind) for each in parts]
        axes.bar(places + offset, heights, 0.23, label=label, color=_COLOURS[kind])
    axes.axhline(1.0, color="#444444", linewidth=1.0)
    axes.set_xticks(places, [name if len(name) <= 20 else f"…{name[-19:]}" for name in names])
    axes.set_title("gains of the levels", loc="left", fontsize="medium", fontweight="bold")
    axes.legend(frameon=False, fontsize="small")


def _draw_composed_map(axes: Any, found: ZeroStability) -> None:
    turn = np.exp(2j * np.pi * np.linspace(0.0, 1.0, 361))
    axes.plot(turn.real, turn.imag, color="#444444", linewidth=1.0)
    values = np.linalg.eigvals(found.T) if len(found.T) else np.zeros(0)
    axes.plot(values.real, values.imag, "o", color=_COLOURS[found.stable], markersize=5)
    axes.set_aspect("equal", adjustable="datalim")
    word = "stable" if found.stable else "unstable"
    verdict = "cannot start" if found.rho is None else f"radius {found.rho:.4g}, {word}"
    axes.set_title(f"composed map: {verdict}", loc="left", fontsize="medium", fontweight="bold")
