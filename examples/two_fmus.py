"""Two FMUs, coupled in three lines: the masses of two_masses.toml, compiled from C for this example.

python examples/two_fmus.py [FOLDER]
"""

import sys
from pathlib import Path

import hocket as hk

out = Path(sys.argv[1] if len(sys.argv) > 1 else "out")
out.mkdir(exist_ok=True)
sys.path.append(str(Path(__file__).parents[1] / "tests"))
from fmus.build import build  # noqa: E402 - the FMUs of the tests

first, second = (hk.Fmu(build(name, 2, folder=out)) for name in ("first", "second"))

wires = {"first.x": "second.x", "first.v": "second.v", "second.force": "first.force"}
run = hk.run(hk.Composite(hk.Scenario({"first": first, "second": second}, wires), "10 ms"), stop=50)
run.plot("second.x", "first.force", path=out / "two_fmus.png")

print(f"after {run['second.x'].t[-1]:g} s the second mass is at {run.final('second.x'):.6f} m")
print(f"wrote {out / 'two_fmus.png'}")
