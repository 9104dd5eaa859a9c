"""What hocket itself costs per run of a small system: a PID loop with other gains each time.

In:  nothing; `python benchmarks/small_runs.py [--quick]`
Out: CPU milliseconds per run, of run, sweep and stepping side by side

The CPU time of this process is counted, of all its threads: other programs do not disturb it. What is
counted is everything: the controller is made anew, planned, opened, stepped 500 times, and recorded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import process_time

import hocket as hk
from hocket.blocks import PID, Step

RUNS = 20 if "--quick" in sys.argv else 200
REPEATS = 3
STEP, STOP = "10 ms", 5
GAINS = [2.0 + 0.01 * number for number in range(RUNS)]
KINDS = {
    "linear": {},
    "sampled": {"low": -2.0, "high": 2.0, "period": STEP},
    "limited": {"low": -2.0, "high": 2.0},
}


def loop(kind: str, gain: float) -> hk.Composite:
    """Return a lag that a PID controller brings to a step at 0.1 s."""
    models = {
        "reference": Step(at="0.1 s", after=1.0),
        "pid": PID(K=gain, Ti="0.5 s", **KINDS[kind]),
        "lag": hk.StateSpace([[-1.0]], [[1.0]], [[1.0]], inputs=["u"], outputs=["y"]),
    }
    wires = {"pid.reference": "reference.y", "pid.measured": "lag.y", "lag.u": "pid.control"}
    return hk.Composite(hk.Scenario(models, wires), STEP)


def run(kind: str) -> list[float]:
    """Run each gain by itself."""
    return [hk.run(loop(kind, gain), STOP).final("lag.y") for gain in GAINS]


def sweep(kind: str) -> list[float]:
    """Sweep the gain."""
    return [
        each.final("lag.y") for each in hk.sweep(loop(kind, 1.0), [{"pid.K": gain} for gain in GAINS], STOP)
    ]


def step(kind: str) -> list[float]:
    """Step each gain by a loop in Python."""
    finals = []
    for gain in GAINS:
        with hk.open(loop(kind, gain), stop=STOP) as live:
            for _ in range(500):
                live.step()
            finals.append(live["lag.y"])
    return finals


def measure(work: Callable[[str], list[float]], kind: str) -> tuple[float, list[float]]:
    """Return the least CPU milliseconds per run, of several repeats, and the final values."""
    costs = []
    for _ in range(REPEATS):
        begin = process_time()
        finals = work(kind)
        costs.append((process_time() - begin) / RUNS * 1e3)
    return min(costs), finals


def main() -> None:
    """Print the table."""
    print(f"{RUNS} runs of 500 steps; CPU ms per run, the least of {REPEATS} repeats")
    print(f"{'PID':<10}{'run':>8}{'sweep':>8}{'step':>8}   equal finals")
    for kind in KINDS:
        found = {work: measure(work, kind) for work in (run, sweep, step)}
        same = all(finals == found[run][1] for _, finals in found.values())
        costs = [f"{cost:8.2f}" for cost, _ in found.values()]
        print(f"{kind:<10}{''.join(costs)}   {same}", flush=True)


if __name__ == "__main__":
    main()
