"""One case being measured.

In:  a case and a tool, each time in a process of its own
Out: nanoseconds per FMU step, seconds to load, kB per FMU, the difference from the C loop
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cases import STEP, Case, coupled
from system import Wire
from tools import TOOLS, Tool, why

HERE = Path(__file__).resolve().parent


@dataclass
class Result:
    """What one tool did in one case."""

    tool: str
    version: str = ""
    steps: int = 0
    ns: float = float("inf")
    load: float = float("inf")
    memory: float = 0.0
    difference: float = 0.0
    failure: str = ""

    def best(self, other: Result) -> Result:
        """Return the better of two."""
        self.ns, self.load = min(self.ns, other.ns), min(self.load, other.load)
        self.difference = max(self.difference, other.difference)
        return self


class Bench:
    """A case, ready to be measured; `seconds` is about what the stepping of one tool may take."""

    def __init__(self, case: Case, folder: Path, seconds: float, time_limit: int):
        self.case, self.folder, self.seconds, self.time_limit = case, folder, seconds, time_limit
        self.units, self.wires = coupled(case, folder)
        self.names = [(unit.name, name) for unit in self.units for name in unit.outputs]
        self.plan = folder / "plan.txt"
        self.plan.write_text("\n".join(self._plan()))
        self.expected: dict[tuple[int, str], dict[str, float]] = {}
        inputs = iter(self._bare(0, "exchanged", "-")["inputs"])
        for unit in self.units:
            unit.starts.update({name: next(inputs) for name in unit.inputs})

    def _plan(self) -> Iterator[str]:
        """Yield what bare_fmus.c reads."""
        outputs = {name: place for place, name in enumerate(self.names)}
        inputs = {
            name: place
            for place, name in enumerate((unit.name, name) for unit in self.units for name in unit.inputs)
        }
        drives: dict[str, list[Wire]] = {unit.name: [] for unit in self.units}
        for wire in self.wires:
            drives[wire.target].append(wire)
        yield f"{len(self.units)} {len(inputs)} {len(outputs)} {len(self.wires)}"
        for unit in self.units:
            driven = drives[unit.name]
            yield f"{unit.library} {unit.guid} {unit.name}"
            yield f"{len(unit.parameters)} {len(unit.inputs)} {len(unit.outputs)} {len(driven)}"
            yield " ".join(f"{unit.references[name]} {value!r}" for name, value in unit.parameters.items())
            yield " ".join(str(unit.references[name]) for name in (*unit.inputs, *unit.outputs))
            yield " ".join(f"{outputs[w.source, w.output]} {inputs[w.target, w.input]}" for w in driven)

    def measure(self, key: str, python: Path) -> Result:
        """Run a tool once."""
        tool = TOOLS[key]
        fitting = int(self.seconds * 1e9 / tool.pace / self.case.size)
        steps = max(20, min(self.case.steps, fitting))
        if tool.module:
            found = self._worker(tool, python, steps)
        else:
            rows = str(self.folder / "rows.bin") if tool.record_only else "-"
            found = self._bare(steps, tool.start, rows) | {"stepped": steps, "version": ""}
            found["values"] = self._named(found["outputs"])
        if "failure" in found:
            return Result(key, found.get("version", ""), failure=found["failure"])
        return Result(
            key,
            found["version"],
            found["stepped"],
            found["steps"] / found["stepped"] / self.case.size * 1e9,
            found["load"],
            found["memory"] / self.case.size,
            self._difference(found["values"], steps, tool.start),
        )

    def _bare(self, steps: int, start: str, rows: str) -> dict[str, Any]:
        words = [program(self.folder), self.plan, str(steps), repr(STEP), self.case.method, start, rows]
        done = subprocess.run(words, check=True, capture_output=True, text=True)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def _worker(self, tool: Tool, python: Path, steps: int) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            job = {
                "units": [asdict(unit) for unit in self.units],
                "wires": [asdict(wire) for wire in self.wires],
                "step": STEP,
                "steps": steps,
                "method": self.case.method,
                "record": self.case.record,
                "at_once": tool.at_once,
            }
            path = Path(folder) / "job.json"
            path.write_text(json.dumps(job))
            try:
                done = subprocess.run(
                    [python, HERE / "worker.py", tool.module, path],
                    capture_output=True,
                    text=True,
                    errors="replace",
                    timeout=self.time_limit,
                    env={**os.environ, "TMPDIR": folder},  # not every tool clears away what it unpacked
                )
            except subprocess.TimeoutExpired:
                return {"failure": f"no result after {self.time_limit} s"}
        if done.returncode or not done.stdout:
            return {"failure": f"exit code {done.returncode}: {why(done.stderr)}"}
        found: dict[str, Any] = json.loads(done.stdout)
        return found | {"failure": found["unable"]} if "unable" in found else found

    def _difference(self, values: dict[str, float], steps: int, start: str) -> float:
        """Return the largest difference from the C loop.

        A force is left out: it follows inputs at once, so it depends on when it was read.
        """
        if (steps, start) not in self.expected:
            self.expected[steps, start] = self._named(self._bare(steps, start, "-")["outputs"])
        expected = self.expected[steps, start]
        return max(abs(values[name] - expected[name]) for name in expected if not name.endswith(".force"))

    def _named(self, outputs: list[float]) -> dict[str, float]:
        return {f"{unit}.{name}": value for (unit, name), value in zip(self.names, outputs, strict=True)}


@cache
def program(folder: Path) -> Path:
    """Compile the C loop."""
    target = folder / "bare_fmus"
    subprocess.run(["gcc", "-O2", HERE.parent / "bare_fmus.c", "-o", target, "-ldl"], check=True)
    return target
