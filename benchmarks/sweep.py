"""A sweep over FMUs: processes and threads beside each other, and whether all of it survives.

In:  nothing; `python benchmarks/sweep.py [--quick] [--repeat N]`
Out: seconds of each, and how many of the repetitions gave the same final values
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import hocket as hk
from fmus.build import build

VARIANTS = 20 if "--quick" in sys.argv else 200
REPEAT = int(sys.argv[sys.argv.index("--repeat") + 1]) if "--repeat" in sys.argv else 1


def masses(folder: Path) -> hk.Composite:
    """Return two masses on springs, each an FMU."""
    models = {name: hk.Fmu(build(name, 2, folder=folder)) for name in ("first", "second")}
    wires = {"first.x": "second.x", "first.v": "second.v", "second.force": "first.force"}
    return hk.Composite(hk.Scenario(models, wires), "1 ms")


def sweep(level: hk.Composite, processes: bool) -> tuple[float, list[float]]:
    """Return the seconds that a sweep takes, and its final values."""
    sets = [{"second.x0": 0.1 + 0.001 * number} for number in range(VARIANTS)]
    begin = perf_counter()
    runs = hk.sweep(level, sets, 10, workers=2, processes=processes)
    return perf_counter() - begin, [run.final("second.x") for run in runs]


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        level = masses(Path(folder))
        _, expected = sweep(level, processes=False)  # the first contact is made here
        print(
            f"{VARIANTS} variants of two FMUs, 10,000 steps each, two workers; best and worst of {REPEAT}, s"
        )
        for name, processes in (("processes", True), ("threads", False)):
            found = [sweep(level, processes) for _ in range(REPEAT)]
            times, same = [took for took, _ in found], sum(finals == expected for _, finals in found)
            print(f"{name:<12}{min(times):10.2f}{max(times):10.2f}   equal bits in {same} of {REPEAT}")


if __name__ == "__main__":
    main()
