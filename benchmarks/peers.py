"""hocket beside the other tools that couple FMUs, and beside a loop in C: the same FMUs, the same machine, one run.

In:  `python benchmarks/peers.py [--quick] [--cases ring-100,two-mass] [--tools hocket,fmpy-loop] [--markdown]`
Out: a table for each case: nanoseconds per FMU step (stepping only), times the C loop, seconds to load, memory,
     and how far the outputs at the end are from those of the C loop; then who could not be measured, and why

Rivals are installed by name from the package index into environments of their own, kept in --folder. Every figure
is the best of several processes; the tools take turns, so that noise hits all alike.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

HERE = Path(__file__).resolve().parent
STEP = 1 / 128
"""Seconds; a power of two, so that no tool's clock drifts."""
TIME_LIMIT = 300


# what is coupled


@dataclass(frozen=True)
class Case:
    """A system, and how it is stepped."""

    title: str
    size: int
    """The FMUs in the ring; 2 is the two-mass oscillator."""
    steps: int
    method: str = "jacobi"
    record: bool = False
    limit: float = 2.0
    """hocket's time is to be at most so many times that of the C loop."""


CASES = {
    "two-mass": Case("Two-mass oscillator, Jacobi", 2, 100_000),
    "two-mass-gs": Case("Two-mass oscillator, Gauss-Seidel", 2, 100_000, "gauss-seidel"),
    "ring-10": Case("Ring of 10 lags, Jacobi", 10, 100_000),
    "ring-100": Case("Ring of 100 lags, Jacobi", 100, 20_000, limit=1.5),
    "ring-1000": Case("Ring of 1,000 lags, Jacobi", 1000, 4_000, limit=1.5),
    "ring-100-rows": Case(
        "Ring of 100 lags, Jacobi, all outputs recorded at every step", 100, 20_000, record=True, limit=5.0
    ),
}


@dataclass
class Unit:
    """An FMU under a name; see peers/system.py."""

    name: str
    fmu: str
    guid: str
    identifier: str
    library: str
    inputs: list[str]
    outputs: list[str]
    references: dict[str, int]
    parameters: dict[str, float]
    starts: dict[str, float] = field(default_factory=dict)


@cache
def described(kind: str, folder: Path) -> dict[str, Any]:
    """Build an FMU, unpack it, and return what its description says."""
    spec = spec_from_file_location("build", HERE.parent / "tests" / "fmus" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    builder = module_from_spec(spec)
    sys.modules["build"] = builder
    spec.loader.exec_module(builder)
    path = builder.build(kind, 2, folder=folder, interfaces=["cs"])
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder / kind)
    root = ET.parse(folder / kind / "modelDescription.xml").getroot()
    variables = list(root.iter("ScalarVariable"))
    return {
        "fmu": str(path),
        "guid": root.get("guid"),
        "identifier": kind,
        "library": str(folder / kind / "binaries" / "linux64" / f"{kind}.so"),
        "inputs": [v.get("name") for v in variables if v.get("causality") == "input"],
        "outputs": [v.get("name") for v in variables if v.get("causality") == "output"],
        "references": {v.get("name"): int(v.get("valueReference", "")) for v in variables},
    }


def coupled(case: Case, folder: Path) -> tuple[list[Unit], list[tuple[str, str, str, str]]]:
    """Return units and wires."""
    if case.size == 2:
        # no dampers to the ground: it still moves at the end
        loose = {"first": {"d": 0.0, "d_coupling": 0.1}, "second": {"d": 0.0}}
        units = [Unit(kind, **described(kind, folder), parameters=values) for kind, values in loose.items()]
        return units, [
            ("second", "x", "first", "x"),
            ("second", "v", "first", "v"),
            ("first", "force", "second", "force"),
        ]
    # names of one length: some tools take a name for a prefix
    units = [
        Unit(
            f"s{number:04}",
            **described("lag", folder),
            parameters={"T": 1.0 + 0.1 * (number % 50), "y0": 1.0 + 0.01 * number},
        )
        for number in range(case.size)
    ]
    return units, [
        (units[number - 1].name, "y", units[number].name, "u") for number in range(len(units))
    ]


# who couples it


@dataclass(frozen=True)
class Tool:
    """Somebody who can couple FMUs."""

    title: str
    module: str
    """In the folder peers; nothing for the C loop."""
    packages: str = ""
    """What pip is to install."""
    home: str = "rivals"
    """Its environment; `own` is the one that runs this."""
    pace: int = 100
    """About so many nanoseconds per FMU step: from this follows how many steps it is given."""
    start: str = "exchanged"
    """What it does before the first step; see bare_fmus.c."""
    remark: str = ""
    record_only: bool = False


TOOLS = {
    "bare": Tool("C loop", "", home="own", pace=10),
    "bare-rows": Tool("C loop that writes rows", "", home="own", pace=20, record_only=True),
    "hocket": Tool("hocket", "hocket_run", home="own", pace=15),
    "fmpy-container-at-once": Tool(
        "FMPy container, one doStep", "fmpy_container_at_once", "fmpy", pace=40,
        remark="the whole run in one call: no value is to be had on the way",
    ),
    "fmpy-container": Tool("FMPy container", "fmpy_container", "fmpy", pace=200),
    "toolbox-container-at-once": Tool(
        "FMU toolbox container, one doStep", "toolbox_container_at_once", "fmu-manipulation-toolbox fmpy",
        pace=100, remark="the whole run in one call: no value is to be had on the way",
    ),
    "toolbox-container": Tool(
        "FMU toolbox container", "toolbox_container", "fmu-manipulation-toolbox fmpy", pace=200
    ),
    "ecos": Tool("ecospy", "ecos", "tbb ecospy", pace=500),
    "libcosim": Tool("libcosimpy", "libcosim", "libcosimpy", pace=3_000),
    "fmpy-loop": Tool("FMPy, loop in Python", "fmpy_loop", "fmpy", pace=10_000),
    "fmpy-ssp": Tool(
        "FMPy simulate_ssp", "fmpy_ssp", "fmpy", pace=20_000, start="blank",
        remark="always records; inputs are 0 in the first step, and so they are in the C loop it is compared with",
    ),
    "cofmupy": Tool("CoFmuPy", "cofmupy_master", "cofmpy", home="cofmpy", pace=20_000),
    "mosaik": Tool("mosaik", "mosaik_world", "mosaik fmpy", pace=120_000),
    "helics": Tool("HELICS", "helics_federates", "helics fmpy", pace=120_000),
    "omsimulator": Tool("OMSimulator", "", "OMSimulator", home="omsimulator"),
    "pyfmi": Tool("PyFMI", "", "pyfmi", home="pyfmi"),
}  # fmt: skip


def python_of(tool: Tool, folder: Path) -> tuple[Path, str]:
    """Return the Python that has the tool, or why there is none. What pip said is kept for the next time."""
    if tool.home == "own":
        return Path(sys.executable), ""
    home = folder / tool.home
    python, said = home / "bin" / "python", home / "pip.json"
    if not python.exists():
        print(f"making {home} ...", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
    outcomes: dict[str, str] = json.loads(said.read_text()) if said.exists() else {}
    for package in tool.packages.split():
        if package not in outcomes:
            print(f"installing {package} ...", file=sys.stderr)
            command = [python, "-m", "pip", "install", "--disable-pip-version-check", package]
            done = subprocess.run(command, capture_output=True, text=True)
            outcomes[package] = "" if done.returncode == 0 else why(done.stdout + done.stderr)
            said.write_text(json.dumps(outcomes, indent=1))
        if outcomes[package]:
            return python, f"pip cannot install {package}: {outcomes[package]}"
    return python, "" if tool.module else "pip installs it, but nothing here knows how to drive it"


def why(text: str) -> str:
    """Return the line of an output that says most."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if "rror:" in line and "subprocess" not in line]
    return (telling or lines or ["it said nothing"])[-1 if not telling else 0][:200]


# measuring


@dataclass
class Result:
    """What one tool did in one case: the best of its repeats."""

    tool: str
    version: str = ""
    steps: int = 0
    ns: float = float("inf")
    load: float = float("inf")
    memory: float = 0.0
    difference: float = 0.0
    failure: str = ""


class Bench:
    """One case being measured."""

    def __init__(self, case: Case, folder: Path, seconds: float):
        self.case, self.folder, self.seconds = case, folder, seconds
        self.units, self.wires = coupled(case, folder)
        self.plan = folder / "plan.txt"
        self.plan.write_text("\n".join(self._plan()))
        self.references: dict[tuple[int, str], dict[str, float]] = {}
        first = iter(self._bare(0, "exchanged", "-")["inputs"])
        for unit in self.units:
            unit.starts = {name: next(first) for name in unit.inputs}

    def _plan(self) -> Iterator[str]:
        names = [(unit.name, name) for unit in self.units for name in unit.outputs]
        outputs = {name: place for place, name in enumerate(names)}
        inputs = [(unit.name, name) for unit in self.units for name in unit.inputs]
        sources = {wire[2:]: wire[:2] for wire in self.wires}
        yield f"{len(self.units)} {len(inputs)} {len(outputs)} {len(self.wires)}"
        for unit in self.units:
            driven = [(unit.name, name) for name in unit.inputs]
            yield f"{unit.library} {unit.guid} {unit.name}"
            yield f"{len(unit.parameters)} {len(unit.inputs)} {len(unit.outputs)} {len(driven)}"
            yield " ".join(f"{unit.references[name]} {value!r}" for name, value in unit.parameters.items())
            yield " ".join(str(unit.references[name]) for name in (*unit.inputs, *unit.outputs))
            yield " ".join(f"{outputs[sources[name]]} {inputs.index(name)}" for name in driven)

    def steps(self, tool: Tool) -> int:
        """Return as many steps as take about the seconds wanted."""
        fitting = int(self.seconds * 1e9 / tool.pace / self.case.size)
        return max(20, min(self.case.steps, fitting))

    def measure(self, key: str, python: Path, seconds: int) -> Result:
        """Run a tool once."""
        tool = TOOLS[key]
        steps = self.steps(tool)
        if not tool.module:
            rows = str(self.folder / "rows.bin") if tool.record_only else "-"
            found = self._bare(steps, tool.start, rows) | {"stepped": steps, "version": ""}
            found["values"] = self._named(found["outputs"])
        else:
            found = self._worker(tool, python, steps, seconds)
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

    def _worker(self, tool: Tool, python: Path, steps: int, seconds: int) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            job = {
                "units": [asdict(unit) for unit in self.units],
                "wires": self.wires,
                "step": STEP,
                "steps": steps,
                "method": self.case.method,
                "record": self.case.record,
            }
            (Path(folder) / "job.json").write_text(json.dumps(job))
            command = [python, HERE / "peers" / "worker.py", tool.module, Path(folder) / "job.json"]
            try:
                # its own folder for temporary files: not every tool takes away what it unpacked
                done = subprocess.run(
                    command,
                    capture_output=True,
                    text=True,
                    errors="replace",
                    timeout=seconds,
                    env={**os.environ, "TMPDIR": folder},
                )
            except subprocess.TimeoutExpired:
                return {"failure": f"no result after {seconds} s"}
        if done.returncode or not done.stdout:
            return {"failure": f"exit code {done.returncode}: {why(done.stderr)}"}
        found: dict[str, Any] = json.loads(done.stdout)
        return found | {"failure": found["unable"]} if "unable" in found else found

    def _difference(self, values: dict[str, float], steps: int, start: str) -> float:
        """Return the largest difference from the C loop; a force is left out: when it was read is a matter of taste."""
        if (steps, start) not in self.references:
            self.references[steps, start] = self._named(self._bare(steps, start, "-")["outputs"])
        expected = self.references[steps, start]
        return max(abs(values[name] - expected[name]) for name in expected if not name.endswith(".force"))

    def _named(self, outputs: list[float]) -> dict[str, float]:
        names = [f"{unit.name}.{name}" for unit in self.units for name in unit.outputs]
        return dict(zip(names, outputs, strict=True))


@cache
def program(folder: Path) -> Path:
    """Compile the C loop."""
    target = folder / "bare_fmus"
    subprocess.run(["gcc", "-O2", HERE / "bare_fmus.c", "-o", target, "-ldl"], check=True)
    return target


def measured(case: Case, keys: list[str], options: argparse.Namespace, pythons: dict[str, Path]) -> list[Result]:
    """Measure a case: the tools take turns, slow ones less often."""
    with tempfile.TemporaryDirectory(prefix="hocket-peers-") as folder:
        bench = Bench(case, Path(folder), options.seconds)
        best: dict[str, Result] = {}
        for turn in range(options.repeats):
            for key in keys:
                tool = TOOLS[key]
                if tool.record_only and not case.record:
                    continue
                if key in best and (best[key].failure or (tool.pace > 1000 and turn >= options.slow_repeats)):
                    continue
                progress(f"{case.title}: {turn + 1}, {tool.title}")
                found = bench.measure(key, pythons[key], options.time_limit)
                if key in best:
                    found.ns, found.load = min(found.ns, best[key].ns), min(found.load, best[key].load)
                    found.difference = max(found.difference, best[key].difference)
                best[key] = found
        progress("")
        return sorted(best.values(), key=lambda result: result.ns)


def progress(text: str) -> None:
    """Show what is being done, where somebody looks."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


# what comes out


def cells(case: Case, results: list[Result]) -> list[tuple[str, ...]]:
    """Return the rows of a table, headings first."""
    bare = next((result.ns for result in results if result.tool == "bare"), float("nan"))
    table = [("tool", "version", "steps", "ns/FMU step", "x C loop", "load s", "kB/FMU", "difference")]
    for result in results:
        if result.failure:
            continue
        memory = f"{result.memory:,.1f}" if case.size >= 100 else ""
        table.append(
            (
                TOOLS[result.tool].title,
                result.version,
                f"{result.steps:,}",
                f"{result.ns:,.1f}" if result.ns < 1000 else f"{result.ns:,.0f}",
                f"{result.ns / bare:,.2f}",
                f"{result.load:.3f}",
                memory,
                f"{result.difference:.1e}" if result.difference else "0",
            )
        )
    return table


def show(case: Case, results: list[Result], markdown: bool) -> None:
    """Print a table and what is to be said of it."""
    table = cells(case, results)
    if markdown:
        print(f"\n### {case.title}\n")
        lines = ["| " + " | ".join(row) + " |" for row in table]
        print("\n".join([lines[0], "|:--|:--|" + "--:|" * (len(table[0]) - 2), *lines[1:]]))
        print()
    else:
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        print(f"\n{case.title}")
        for row in table:
            left, right = row[:2], row[2:]
            print(
                "  " + "  ".join(cell.ljust(width) for cell, width in zip(left, widths[:2], strict=True)),
                *(cell.rjust(width) for cell, width in zip(right, widths[2:], strict=True)),
                sep="  ",
            )
    for sentence in verdict(case, results):
        print(f"- {sentence}" if markdown else f"  {sentence}")


def verdict(case: Case, results: list[Result]) -> Iterator[str]:
    """Yield how hocket stands, remarks, and who could not do it."""
    by_tool = {result.tool: result for result in results if not result.failure}
    if {"bare", "hocket"} <= by_tool.keys():
        ratio = by_tool["hocket"].ns / by_tool["bare"].ns
        kept = "at most" if ratio <= case.limit else "MISSED: at most"
        text = f"hocket: {ratio:.2f} times the C loop ({kept} {case.limit})"
        rivals = [r for r in results if r.tool in by_tool and TOOLS[r.tool].home != "own"]
        if rivals:
            text += f"; the fastest rival, {TOOLS[rivals[0].tool].title}, takes {rivals[0].ns / by_tool['hocket'].ns:.2f} times as long as hocket"
        yield text
    for result in results:
        if not result.failure and TOOLS[result.tool].remark:
            yield f"{TOOLS[result.tool].title}: {TOOLS[result.tool].remark}"
    for result in results:
        if result.failure:
            yield f"{TOOLS[result.tool].title}: not measured: {result.failure}"


def choice(text: str, known: dict[str, Any]) -> list[str]:
    """Return the names listed."""
    names = list(known) if text == "all" else text.split(",")
    unknown = [name for name in names if name not in known]
    if unknown:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: not among {', '.join(known)}")
    return names


def main() -> None:
    """Measure and print."""
    cache_folder = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser()
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=lambda text: choice(text, CASES), default=list(CASES), help=", ".join(CASES))
    parser.add_argument("--tools", type=lambda text: choice(text, TOOLS), default=list(TOOLS), help=", ".join(TOOLS))
    parser.add_argument("--quick", action="store_true", help="few steps, one repeat: to see that it works")
    parser.add_argument("--markdown", action="store_true", help="tables for a page")
    parser.add_argument("--repeats", type=int, help="of the fast tools; default 7")
    parser.add_argument("--time-limit", type=int, default=TIME_LIMIT, help="seconds for one measurement")
    parser.add_argument("--folder", type=Path, default=cache_folder / "hocket-peers", help="for environments")
    options = parser.parse_args()
    options.repeats = options.repeats or (1 if options.quick else 7)
    options.slow_repeats = 1 if options.quick else 2
    options.seconds = 0.3 if options.quick else 2.0
    options.folder.mkdir(parents=True, exist_ok=True)
    pythons, missing = {}, {}
    for key in dict.fromkeys(["bare", *options.tools]):
        pythons[key], reason = python_of(TOOLS[key], options.folder.resolve())
        if reason:
            missing[key] = reason
    keys = [key for key in pythons if key not in missing]
    for name in options.cases:
        show(CASES[name], measured(CASES[name], keys, options, pythons), options.markdown)
    if missing:
        print("\n### Not installed\n" if options.markdown else "\nNot installed")
    for key, reason in missing.items():
        print(f"- {TOOLS[key].title}: {reason}" if options.markdown else f"  {TOOLS[key].title}: {reason}")


if __name__ == "__main__":
    main()
