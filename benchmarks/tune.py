"""What `hocket tune` finds, and how fast: the figures of issue 8 beside what was asked.

In:  nothing; `python benchmarks/tune.py [figure6|wide|genetic|figure7|chain|masses]`, all unless said
Out: tables, about 10 minutes on two quiet cores
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from time import perf_counter
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.pop(0)  # the folder of this file, which would be taken for the one of the tests
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import numpy as np

from hocket.planning.parameters import leaves, with_leaves
from hocket.search.tune.tune import tune
from hocket.search.tune.tuning_result import TuningResult, check_prediction
from search.nest.systems import chain
from systems import three_masses, two_masses

ALPHA, STEP = "two.F.alpha", "step"
STEPS = "1e-3:10:100:log"
BOTH = ["rho", "delta"]
WORST = [1.0, 2.0]
"""Up to which volumes are measured: what has rho of 1 grows."""


def say(what: str, found: object, asked: object = "") -> None:
    """Print a line: what, found, asked."""
    print(f"  {what:<58} {found!s:<26} {asked}")


def timed(search: Callable[[], TuningResult]) -> tuple[TuningResult, float]:
    """Return what a search finds and its seconds."""
    before = perf_counter()
    return search(), perf_counter() - before


def control21() -> Any:
    """The coupling of figure 6."""
    return two_masses("Control21", 0.1, (0.0, 0.0, 0.5))


def told(done: float, total: float) -> None:
    """Show progress where somebody looks."""
    if sys.stderr.isatty():
        print(f"\r  {done:,.0f} of {total:,.0f}", end="" if done < total else "\n", file=sys.stderr)


def brute(over: str) -> tuple[TuningResult, float]:
    """Judge all of a range of alpha and 100 steps."""
    return timed(lambda: tune(control21(), {ALPHA: over, STEP: STEPS}, BOTH, workers=2, progress=told))


def figure6() -> None:
    """Figure 6: all points, and the published one."""
    made, spent = brute("0:1.1:100")
    print("figure 6: 100 x 100 points, two processes")
    say("seconds for 10,000 couplings", f"{spent:.1f}", "under 60, on two cores")
    (row,) = [row for row in made.rows() if row[ALPHA] == "0.6" and row[STEP] == "9.11163 s"] or [{}]
    say("alpha = 0.6, h = 9.11163 on the front", bool(row), True)
    say("rho, delta", f"{row.get('rho', 0):.5f}, {row.get('delta', 0):.5f}", "0.45042, 0.78140")
    say("volume up to (1, 2)", f"{made.volume(WORST):.6f}")


def wide() -> None:
    """Beyond the paper: negative alpha."""
    paper, _ = brute("0:1.1:100")
    made, spent = brute("-1:1.1:190")  # every alpha of the paper, and as dense below
    old, new = paper.costs[list(paper.front)], made.costs[list(made.front)]
    better = sum(bool(((new <= row).all(axis=1) & (new < row).any(axis=1)).any()) for row in old)
    matched = sum(bool((new <= row).all(axis=1).any()) for row in old)
    print(f"alpha from -1: 190 x 100 points, {spent:.0f} s")
    say("points of the paper's front matched or beaten", f"{matched} of {len(old)}", "all")
    say("of these beaten", better)
    say("volume, paper and here", f"{paper.volume(WORST):.6f}, {made.volume(WORST):.6f}")
    print(f"  {'rho at most':>14} {'delta, paper':>14} {'delta, here':>14} {'times less':>12}")
    for rho in (0.46, 0.5, 0.7, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 0.999, 0.9999):
        before, after = (each[each[:, 0] <= rho, 1].min(initial=np.inf) for each in (old, new))
        print(f"  {rho:>14} {before:>14.5g} {after:>14.5g} {before / after:>12.3g}")


def genetic() -> None:
    """NSGA-II with a tenth of the evaluations."""
    whole, _ = brute("0:1.1:100")
    print("NSGA-II with 1,000 of 10,000 evaluations")
    for seed in (1, 2, 3, 4, 5):
        over = {ALPHA: "0:1.1:100", STEP: STEPS}
        how: dict[str, Any] = {"search": "genetic", "budget": 1000, "seed": seed, "workers": 2}
        made = tune(control21(), over, BOTH, **how)
        share = made.volume(WORST) / whole.volume(WORST)
        say(f"seed {seed}: share of the volume ({len(made.points)} points)", f"{share:.6f}", "at least 0.99")


def figure7() -> None:
    """Figure 7: three numbers, by NSGA-II on hundredths of alpha."""
    control12 = two_masses("Control12", 1.0, (0.1, 0.1, 0.0))
    names = "one.x2.alpha", "one.v2.alpha", STEP
    point = tune(control12, dict(zip(names, ("0.59", "0.36", "8.9"), strict=True)), BOTH).numbers[0]
    print("figure 7")
    say("rho, delta at (0.59, 0.36, 8.9)", f"{point[0]:.6f}, {point[1]:.4f}", "0.41, 1.1")
    coarse = dict(zip(names, ("0.09:1.09:11", "0.06:1.06:11", "5:10:51"), strict=True))
    made = tune(control12, coarse, BOTH, workers=2, progress=told)
    say("on the front of a grid of 0.1 x 0.1 x 0.1 s", _on_front(made, point))
    fine = dict(zip(names, ("0:1.1:111", "0:1.1:111", "5:10:501"), strict=True))
    made = tune(control12, fine, BOTH, search="genetic", budget=4000, workers=2, progress=told)
    ratios = (made.costs[list(made.front)] / point).max(axis=1)
    say(
        "on hundredths: nearest of the front, as a part of it", f"{ratios.min():.4f}", "below 1: it is beaten"
    )


def _on_front(made: TuningResult, point: tuple[float, ...]) -> bool:
    return any(np.allclose(made.numbers[k], point, rtol=1e-9) for k in made.front)


def chains() -> None:
    """Five simulators: all orders, three extrapolations of each, two nestings."""
    five = chain({(2, 3)}, count=5, stiff=20.0, step="50 ms")
    links = [each.target for each in five.scenario.connections]
    heads = [f"m{number:02d}" for number in range(1, 6)]
    over = {"algorithm": "gauss-seidel", "order": "all", "nesting": "flat, {m01, {m02, m03}, m04, m05}"}
    three = "hold, linear, quadratic"
    plain = over | {"extrapolation": three}
    made, spent = timed(lambda: tune(five, plain, ["rho", "exchanges"], workers=2, progress=told))
    print("five masses in a row")
    say(f"seconds for {len(made.points):,}: orders, extrapolations, nestings", f"{spent:.1f}", "minutes")
    each = over | {f"{name}.extrapolation": three for name in links if name.split(".")[0] in heads}
    made, spent = timed(lambda: tune(five, each, ["rho", "exchanges"], workers=2, budget=2000, progress=told))
    say(
        f"{made.space.size:,} with one extrapolation per connection: 2,000 of them",
        f"{spent:.1f} s",
        "minutes",
    )


def masses() -> None:
    """The three masses of Hafner's thesis, scenario 2, exact leaves, default space."""
    made = three_masses(2, "100 ms", "25 ms")
    made = with_leaves(made, {path: replace(m, method="exact", step=None) for path, m in leaves(made)})
    made = made.with_scenario(made.scenario.with_changes(record=["*.x", "*.v"]))
    found, spent = timed(lambda: tune(made, stop=25, workers=2, progress=told))
    chosen = found.composite_of(found.knee)
    print(f"three masses, scenario 2: {len(found.points):,} of {found.space.size:,} judged in {spent:.0f} s")
    now, then = (check_prediction(each, Fraction(25)) for each in (made, chosen))
    say("error of now over 25 s", f"{now.found:.4f}", "0.39")
    say("error of the proposal", f"{then.found:.3g}", "at most 0.002")
    say("predicted", f"{then.predicted:.3g}", "within a factor of 2")
    say("simulator steps per second, now and then", f"{now.steps:g}, {then.steps:g}", "no more")
    say("exchanges per second, now and then", f"{now.exchanges:g}, {then.exchanges:g}", "no more")
    for line in found.words():
        print(f"  {line}")


PARTS = {
    "figure6": figure6,
    "wide": wide,
    "genetic": genetic,
    "figure7": figure7,
    "chain": chains,
    "masses": masses,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()
