"""hocket beside other tools that couple FMUs, and beside a loop in C: the same FMUs, machine and run.

In:  `python benchmarks/peers.py [--quick] [--cases ring-100,two-mass] [--tools hocket,ecos] [--markdown]`
Out: a table for each case: nanoseconds per FMU step (stepping only), times the C loop, seconds to load,
     memory, how far the outputs at the end are from those of the C loop; and who was not measured, and why

Rivals are installed by name from the package index into environments of their own, kept in --folder. Every
figure is the best of several processes; the tools take turns, so that noise hits all alike. The folder
`peers` has a module for each rival.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().with_suffix("")))

from bench import Bench, Result
from cases import CASES, Case
from tools import TOOLS, python_of


def measured(case: Case, pythons: dict[str, Path], options: argparse.Namespace) -> list[Result]:
    """Measure a case: the tools take turns, slow ones less often."""
    with tempfile.TemporaryDirectory(prefix="hocket-peers-") as folder:
        bench = Bench(case, Path(folder), options.seconds, options.time_limit)
        best: dict[str, Result] = {}
        for turn in range(options.repeats):
            for key, python in pythons.items():
                tool = TOOLS[key]
                if tool.record_only and not case.record:
                    continue
                if key in best and (best[key].failure or (tool.pace > 1000 and turn >= options.slow_repeats)):
                    continue
                progress(f"{case.title}: {turn + 1}, {tool.title}")
                found = bench.measure(key, python)
                best[key] = found.best(best[key]) if key in best else found
        progress("")
        return sorted(best.values(), key=lambda result: result.ns)


def progress(text: str) -> None:
    """Show what is being done, where somebody looks."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


# what comes out


def cells(case: Case, results: list[Result]) -> list[tuple[str, ...]]:
    """Return the rows of a table, headings first."""
    bare = next(result.ns for result in results if result.tool == "bare")
    table = [("tool", "version", "steps", "ns/FMU step", "x C loop", "load s", "kB/FMU", "difference")]
    for result in results:
        if not result.failure:
            row = (
                TOOLS[result.tool].title,
                result.version,
                f"{result.steps:,}",
                f"{result.ns:,.1f}" if result.ns < 1000 else f"{result.ns:,.0f}",
                f"{result.ns / bare:,.2f}",
                f"{result.load:.3f}",
                f"{result.memory:,.1f}" if case.size >= 100 else "",  # of few, it is that of the libraries
                f"{result.difference:.1e}" if result.difference else "0",
            )
            table.append(row)
    return table


def show(case: Case, results: list[Result], markdown: bool) -> None:
    """Print a table and what is to be said of it."""
    table = cells(case, results)
    if markdown:
        print(f"\n### {case.title}\n")
        lines = ["| " + " | ".join(row) + " |" for row in table]
        print("\n".join([lines[0], "|:--|:--|" + "--:|" * (len(table[0]) - 2), *lines[1:]]), end="\n\n")
    else:
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        print(f"\n{case.title}")
        for row in table:
            names = (cell.ljust(width) for cell, width in zip(row[:2], widths[:2], strict=True))
            numbers = (cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True))
            print(" ", *names, *numbers, sep="  ")
    for sentence in verdict(case, results):
        print(f"- {sentence}" if markdown else f"  {sentence}")
    sys.stdout.flush()


def verdict(case: Case, results: list[Result]) -> Iterator[str]:
    """Yield how hocket stands, remarks, and who could not do it."""
    done = [result for result in results if not result.failure]
    by_tool = {result.tool: result for result in done}
    if "hocket" in by_tool:
        hocket = by_tool["hocket"].ns
        ratio = hocket / by_tool["bare"].ns
        goal = "" if ratio <= case.limit else "MISSED: "
        yield f"hocket: {ratio:.2f} times the C loop ({goal}at most {case.limit})"
        rivals = [result for result in done if TOOLS[result.tool].home != "own"]
        if rivals:
            first = rivals[0]
            yield f"the fastest rival, {TOOLS[first.tool].title}: {first.ns / hocket:.2f} times hocket"
    for result in done:
        if TOOLS[result.tool].remark:
            yield f"{TOOLS[result.tool].title}: {TOOLS[result.tool].remark}"
    for result in results:
        if result.failure:
            yield f"{TOOLS[result.tool].title}: not measured: {result.failure}"


# what is asked for


def choice(text: str, known: dict[str, Any]) -> list[str]:
    """Return the names listed."""
    names = text.split(",")
    unknown = [name for name in names if name not in known]
    if unknown:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: not among {', '.join(known)}")
    return names


def asked() -> argparse.Namespace:
    """Read the command line."""
    home = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "hocket-peers"
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, known in (("--cases", CASES), ("--tools", TOOLS)):
        parser.add_argument(
            name,
            type=lambda text, known=known: choice(text, known),
            default=list(known),
            help=", ".join(known),
        )
    parser.add_argument("--quick", action="store_true", help="few steps, one repeat: to see that it works")
    parser.add_argument("--markdown", action="store_true", help="tables for a page")
    parser.add_argument("--repeats", type=int, help="of the fast tools; default 7")
    parser.add_argument("--time-limit", type=int, default=300, help="seconds for one measurement")
    parser.add_argument("--folder", type=Path, default=home, help="for the environments of the rivals")
    options = parser.parse_args()
    options.repeats = options.repeats or (1 if options.quick else 7)
    options.slow_repeats = 1 if options.quick else 2
    options.seconds = 0.3 if options.quick else 2.0
    return options


def main() -> None:
    """Measure and print."""
    options = asked()
    options.folder.mkdir(parents=True, exist_ok=True)
    pythons, missing = {}, {}
    for key in dict.fromkeys(["bare", *options.tools]):
        python, reason = python_of(TOOLS[key], options.folder.resolve())
        if reason:
            missing[key] = reason
        else:
            pythons[key] = python
    for name in options.cases:
        show(CASES[name], measured(CASES[name], pythons, options), options.markdown)
    if missing:
        print("\n### Not installed\n" if options.markdown else "\nNot installed")
    for key, reason in missing.items():
        print("-" if options.markdown else " ", f"{TOOLS[key].title}: {reason}")


if __name__ == "__main__":
    main()
