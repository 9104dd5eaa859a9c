"""Change the compiled engine in one place at a time and see whether a test notices.

In:  native/engine/*.cpp, a build of them by ninja (an editable installation leaves one under build/)
Out: how many mutants were killed; a table of the survivors, beside a file that a later call goes on from

One changed file is compiled and linked with what was built before, into a copy of the tree, never into the
work tree. Asked are the test files below in that order, until one fails or `EFFORT` seconds of CPU time are
over. A test that fails is run again without the mutant; only if it passes then, the mutant counts as killed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

from mutants import PYTEST, Mutant, check_imports, copy_tree, environment, remembered, table

SWAPS = {
    " < ": " <= ",
    " <= ": " < ",
    " > ": " >= ",
    " >= ": " > ",
    " == ": " != ",
    " != ": " == ",
    " && ": " || ",
    " || ": " && ",
    " + ": " - ",
    " - ": " + ",
    " * ": " / ",
    " / ": " * ",
    " += ": " -= ",
    " -= ": " += ",
    "true": "false",
    "false": "true",
}
TOKEN = re.compile(
    "|".join(re.escape(each) if " " in each else rf"\b{each}\b" for each in SWAPS)
    + r"|(?<![\w.])\d+\.\d+(?:e[+-]?\d+)?(?![\w.])|(?<![\w.\[<])\d+(?![\w.>:])"
)
QUIET = re.compile(r'^\s*(//|#|case\b|template|static_assert|using)|"')
"""Lines without consequences, or with words."""
FIRST = {
    "accelerators": ("engine/test_acceleration", "orchestrators/test_iterate"),
    "algebraic_loop": ("engine/test_algebraic_loops", "scenarios/test_iterations"),
    "energy_ledger": ("energy/test_ledger", "energy/test_ledger_rules"),
    "exchange_memory": ("engine/test_memory",),
    "instants": ("engine/test_instants", "engine/test_event_guards", "engine/test_crossings"),
    "iteration": ("engine/test_acceleration", "orchestrators/test_iterate"),
    "projected": ("energy/test_balanced_bits",),
    "quadratic_energy": ("energy/test_balanced_bits",),
    "rollback": ("orchestrators/test_iterate", "orchestrators/test_adaptive"),
    "row_buffer": ("engine/test_recording",),
    "step_control": ("engine/test_step_control", "orchestrators/test_adaptive"),
    "step_size_controller": ("engine/test_step_control", "orchestrators/test_adaptive"),
    "watch": ("execution/test_run", "execution/test_long_steps"),
    "crash_guard": ("simulators/test_fmu_crashes", "simulators/test_fmu_live"),
}
"""Test files about one source file; after these come the ones for all."""
ALL = (
    "native/test_bits",
    "native/test_loop",
    "native/test_matrices",
    "native/test_single_ports",
    "engine/test_instants",
    "engine/test_recording",
    "orchestrators/test_multirate",
    "energy/test_ledger",
)
EFFORT = 90
"""Seconds of CPU time that the tests of one mutant may take; then it has survived."""


def mutants_of(root: Path, file: str) -> list[tuple[Mutant, int, int, str]]:
    """Return all changes of a file: each with where it begins and ends in the text, and what is put there."""
    text = (root / file).read_text()
    found: list[tuple[Mutant, int, int, str]] = []
    twins: Counter[tuple[str, str]] = Counter()
    begin = 0
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        code = line.partition("//")[0]
        for match in () if QUIET.search(line) else TOKEN.finditer(code):
            after = _replacement(match[0])
            words = (
                " ".join(line.split()),
                " ".join((line[: match.start()] + after + line[match.end() :]).split()),
            )
            twins[words] += 1
            mutant = Mutant(file, number, len(found), *words, twins[words])
            found.append((mutant, begin + match.start(), begin + match.end(), after))
        begin += len(line)
    return found


def _replacement(token: str) -> str:
    if token in SWAPS:
        return SWAPS[token]
    if "." not in token:
        return str(int(token) + 1)
    return repr(float(token) * 2.0 if float(token) else 1.0)


class Build:
    """The commands of a build, each of which can be made again with one file changed."""

    def __init__(self, folder: Path):
        self.folder = folder
        ninja = shutil.which("ninja", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}") or "ninja"
        module = next(folder.glob("_native*.so")).name
        said = subprocess.run(
            [ninja, "-t", "commands", module], cwd=folder, capture_output=True, text=True, check=True
        )
        self.lines = said.stdout.splitlines()

    def compile(self, file: str, text: str, place: Path) -> Path | None:
        """Return the object file of a changed source file; None: it cannot be compiled."""
        line = next(each for each in self.lines if each.endswith(f"/{file}"))
        words = [each for each in shlex.split(line) if each != "ccache"]
        source, made = place / Path(file).name, place / "changed.o"
        source.write_text(text)
        words[-1] = str(source)
        words[words.index("-o") + 1] = str(made)
        where = [f"-I{Path(shlex.split(line)[-1]).parent}", "-w", "-MF", os.devnull]
        done = subprocess.run([*words, *where], cwd=self.folder, capture_output=True, check=False)
        return made if done.returncode == 0 else None

    def link(self, file: str, made: Path, output: Path) -> None:
        """Link the module with one object changed."""
        line = self.lines[-1].replace(": && ", "").replace(" && :", "")
        words = shlex.split(line)
        place = next(k for k, each in enumerate(words) if each.endswith(f"/{file}.o"))
        words[place] = str(made)
        words[words.index("-o") + 1] = str(output)
        subprocess.run(words, cwd=self.folder, check=True, capture_output=True)


def tests_of(copied: Path, file: str) -> list[str]:
    """Return the test files that are asked about a source file."""
    names = dict.fromkeys([*FIRST.get(Path(file).stem, ()), *ALL])
    return [f"tests/{each}.py" for each in names if (copied / f"tests/{each}.py").exists()]


def verdict(copied: Path, tests: list[str]) -> tuple[str, str]:
    """Return what tests say of the module that stands in a copy, and which one spoke."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (EFFORT, EFFORT + 5))

    done = subprocess.run(
        [*PYTEST, "-q", "-x", "--tb=no", *tests],
        cwd=copied,
        env=environment(copied, PYTHONDONTWRITEBYTECODE="1"),
        capture_output=True,
        text=True,
        preexec_fn=limit,
        timeout=1800,
        check=False,
    )
    if done.returncode == 0:
        return "survived", ""
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if failed:
        return "killed", failed[0].split(" - ")[0].partition(" ")[2]
    ended = -done.returncode
    limits = (24, 9)  # SIGXCPU, SIGKILL: the time was over
    return ("timeout", "") if ended in limits else ("killed", f"the process ended: {done.returncode}")


def main() -> int:
    """Try mutants until all of the sample are done or the time is over."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--build", type=Path, help="the folder of build.ninja")
    parser.add_argument("--sample", type=int, default=20, help="how many mutants")
    parser.add_argument("--seconds", type=float, default=3600.0, help="begin no other one after so long")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", type=Path, default=Path("native.jsonl"), help="goes on from there")
    asked = parser.parse_args()
    root = asked.root.resolve()
    builds = (
        [asked.build] if asked.build else sorted(path.parent for path in root.glob("build/*/build.ninja"))
    )
    build = Build(builds[0].resolve())
    files = sorted(str(path.relative_to(root)) for path in (root / "native" / "engine").glob("*.cpp"))
    every = [each for file in files for each in mutants_of(root, file)]
    every.sort(key=lambda each: sha256(f"{asked.seed} {each[0].key}".encode()).digest())
    known = remembered(asked.results)
    until = time.monotonic() + asked.seconds
    results: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        copied = Path(place) / "tree"
        copy_tree(root, copied)
        module = next(build.folder.glob("_native*.so")).name
        standing = copied / "src" / "hocket" / module
        shutil.copy(build.folder / module, standing)
        check_imports(copied)
        for mutant, begin, end, after in every:
            if len(results) == asked.sample or time.monotonic() > until:
                break
            if mutant.key not in known:
                text = (root / mutant.module).read_text()
                started = time.monotonic()
                made = build.compile(mutant.module, text[:begin] + after + text[end:], Path(place))
                said, by = "refused", "the compiler"
                if made is not None:
                    standing.unlink()
                    build.link(mutant.module, made, standing)
                    said, by = verdict(copied, tests_of(copied, mutant.module))
                    if said == "killed" and "::" in by:
                        standing.unlink()
                        shutil.copy(build.folder / module, standing)
                        if verdict(copied, [by])[0] != "survived":
                            said, by = "unclear", f"{by} fails without the mutant, too"
                known[mutant.key] = {
                    "key": mutant.key,
                    **asdict(mutant),
                    "verdict": "survived" if said == "timeout" else said,
                    "by": by,
                    "seconds": round(time.monotonic() - started, 1),
                }
                with asked.results.open("a") as file:
                    file.write(json.dumps(known[mutant.key]) + "\n")
                print(
                    f"{said:8} {mutant.module}:{mutant.line}: {mutant.before} -> {mutant.after}", flush=True
                )
            if known[mutant.key]["verdict"] != "refused":
                results.append(known[mutant.key])
    text = table(results)
    asked.results.with_suffix(".md").write_text(text)
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
