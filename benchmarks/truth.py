"""How true is what `hocket check` says: nonlinear, switched, sampled and black-box systems against SciPy.

In:  `python benchmarks/truth.py [--half tune|report|fresh|later|trial|last|all] [--as pythonfmu|c]
     [--only NAME] [--verbose] [--json FILE]`; `--convergence`: do couplings converge with shorter steps?
     `--named`: a table of the named cases; `--references`: composed references against those by hand
Out: the confusion table, the distribution of predicted over true error, times; if verbose a line per case

A hash of their names splits the systems into two halves: a method is tuned on one and reported on the other.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from time import process_time
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import hocket as hk
from hocket.analysis.run_error import estimate_error
from truth_systems import CATALOGUE, System
from truth_systems.as_fmus import IN_PYTHON, SMOOTH_IN_C, as_c, as_pythonfmu

LIMIT = 0.5
"""A run of which any output is wrong by this share of its own peak is unsound."""
FLOOR, CEILING = 1e-6, 1.0
"""Errors are compared within these shares of peak: below, the reference is no better; above, all is wrong."""
NAMED = (
    *(
        "hardening_spring_struck",
        "contact_stop",
        "saturated_actuator",
        "diode_starts_off",
        "backlash",
        "laser",
    ),
    *(
        "fitzhugh_nagumo",
        "van_der_pol_on_cycle",
        "predator_prey",
        "relay_hysteresis",
        "relay_ideal",
        "quantiser",
    ),
)
SAID = ("sound", "unsound", "not judged", "refused", "too slow", "crashed")
EXIT_CODES = {0: "sound", 1: "unsound", 3: "not judged"}
DOUBT = re.compile(
    r"not judged|not known|unknown|doubt|uncertain|disagree|cannot|not reliable|ended early|not linear"
    r"|at least|switch",
    re.IGNORECASE,
)
"""Words of doubt in a first line. Here it is the words that are judged: they are all that a reader has."""


@dataclass
class Row:
    """What was said of a system at one macro step, and what is true."""

    system: str
    half: str
    domain: str
    kind: str
    step: float
    bold: bool
    true: float = float("inf")
    """The largest error of all outputs, each relative to its own peak."""
    truth: str = ""
    true_port: float = float("inf")
    """The same of the one port that the system was written to judge: how truth was measured at first."""
    truth_port: str = ""
    errors: dict[str, float] = field(default_factory=dict)
    predictions: dict[str, float] = field(default_factory=dict)
    said: str = "crashed"
    predicted: float | None = None
    """The largest predicted error."""
    first_line: str = ""
    doubt: bool = False
    check_seconds: float = float("nan")
    run_seconds: float = float("nan")

    @property
    def ratio(self) -> float | None:
        """Return the largest predicted over the largest true error."""
        return None if self.predicted is None else compare(self.predicted, self.true)

    @property
    def port_ratios(self) -> list[float]:
        """Return predicted over true error of each output."""
        pairs = ((self.predictions.get(port), true) for port, true in self.errors.items())
        return [compare(found, true) for found, true in pairs if found is not None]


def compare(predicted: float, true: float) -> float:
    """Return predicted over true error, both within floor and ceiling."""
    return float(np.clip(predicted, FLOOR, CEILING) / np.clip(true, FLOOR, CEILING))


def find_predictions(found: Any) -> dict[str, float]:
    """Return the predicted global error of each output as a share of its peak, as far as there are any."""
    for measure in found.measures:
        rows = measure.facts().get("predicted errors")
        if rows:
            return {row["port"]: float(row["of peak"]) for row in rows}
    return {}


def run_truly(system: System, row: Row) -> None:
    """Run the coupling and compare all its outputs with the undivided system."""
    before = process_time()
    try:
        found = system.run_all(row.step)
        row.run_seconds = process_time() - before
        row.errors = system.errors(found)
        row.true, row.true_port = max(row.errors.values()), row.errors[system.port]
    except hk.SimulatorError:  # a value that is not finite ends the run
        row.run_seconds = process_time() - before
    row.truth = "sound" if row.true < LIMIT else "unsound"
    row.truth_port = "sound" if row.true_port < LIMIT else "unsound"


def check_coupling(system: System, row: Row) -> None:
    """Ask `hk.check`, as a user would."""
    before = process_time()
    try:
        found = hk.check(system.composite(row.step), system.stop)
        row.said = EXIT_CODES[found.outcome.exit_code]
        known, paths = find_predictions(found), {port: system.path(port) for port in system.ports}
        row.predictions = {port: known[path] for port, path in paths.items() if path in known}
        row.predicted = max(row.predictions.values(), default=None)
        row.first_line = found.verdict()[0]
    except hk.HocketError as error:
        row.said, row.first_line = "refused", str(error).splitlines()[0]
    row.doubt = row.said != "sound" or bool(DOUBT.search(row.first_line))
    row.check_seconds = process_time() - before


def _judge(system: System, row: Row, link: Any) -> None:
    warnings.simplefilter("ignore")  # overflows are what some of these systems are for
    for stage in (run_truly, check_coupling):
        stage(system, row)
        link.send(row)


def judge(system: System, row: Row, seconds: float) -> Row:
    """Judge one case in a process of its own, which may hang or crash; the check has `seconds`."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_judge, args=(system, row, sender), daemon=True)
    process.start()
    sender.close()
    try:
        for _ in range(2):
            if receiver.poll(seconds):
                row = receiver.recv()
            else:
                row.said, row.doubt = "too slow", True
                break
    except EOFError:
        row.said, row.doubt = "crashed", True
    process.terminate()
    process.join()
    return row


def warm_up() -> None:
    """Run and check something tiny, so that no case pays for what is imported on first use."""
    lag = hk.StateSpace(A=[[-1.0]], B=[[1.0]], C=[[1.0]], x0=[1.0], inputs=["u"], outputs=["y"])
    composite = hk.Composite(hk.Scenario({"a": lag, "b": lag}, {"a.u": "b.y", "b.u": "a.y"}), 0.1)
    hk.run(composite, 1.0).table()["time"].to_numpy()
    hk.check(composite, 1.0)


def judge_all(systems: Iterable[System], seconds: float, verbose: bool) -> list[Row]:
    """Judge each system at its two macro steps."""
    rows = []
    for system in systems:
        for bold, step in enumerate(system.steps):
            row = Row(system.name, system.half, system.domain, system.kind, step, bool(bold))
            rows.append(judge(system, row, seconds))
            if verbose:
                print_case(rows[-1])
    return rows


def print_case(row: Row) -> None:
    """Print a line about one case."""
    predicted = "-" if row.predicted is None else f"{row.predicted:.2g}"
    ratio = "" if row.ratio is None else f"{row.ratio:.2g}"
    print(
        f"{row.system:<30} {row.kind:<9} {row.step:<8.4g} {row.truth:<8} {row.true:<8.2g} "
        f"{row.true_port:<8.2g} {row.said:<10} "
        f"{predicted:<8} {ratio:<8} {row.check_seconds:6.2f} s {row.run_seconds:6.2f} s  "
        f"{row.first_line[:200]}",
        flush=True,
    )


def print_confusion(rows: Sequence[Row]) -> None:
    """Print what was said against what is true: of all outputs, then of one port as it was at first."""
    _print_table(rows, "all outputs", lambda row: row.truth)
    judged = [row for row in rows if row.said in ("sound", "unsound")]
    near = sum(row.said != row.truth and LIMIT / 1.5 < row.true < LIMIT * 1.5 for row in judged)
    print(f"of the wrong ones {near} have a true error within a factor of 1.5 of the limit {LIMIT:g}")
    _print_table(rows, "one port", lambda row: row.truth_port)


def _print_table(rows: Sequence[Row], title: str, truth_of: Callable[[Row], str]) -> None:
    counts = Counter((truth_of(row), row.said) for row in rows)
    print(f"\n{title:<12}" + "".join(f"{said:>12}" for said in SAID))
    for truth in ("sound", "unsound"):
        print(f"{truth:<12}" + "".join(f"{counts[truth, said]:>12}" for said in SAID))
    judged = [row for row in rows if row.said in ("sound", "unsound")]
    right = sum(row.said == truth_of(row) for row in judged)
    missed = _share(len(rows) - len(judged), len(rows))
    print(f"right: {_share(right, len(judged))} of those judged; not judged: {missed}")


def print_distribution(rows: Sequence[Row]) -> None:
    """Print how predicted errors compare with true ones."""
    kinds: dict[str, Callable[[float], bool]] = {
        "within 2": lambda q: 0.5 <= q <= 2.0,
        "within 10": lambda q: 0.1 <= q <= 10.0,
        "over 2": lambda q: q > 2.0,
        "over 10": lambda q: q > 10.0,
        "under 2": lambda q: q < 0.5,
        "under 10": lambda q: q < 0.1,
    }
    print(f"\nlargest predicted / largest true error (within {FLOOR:g} and {CEILING:g} of peak)")
    heads = "".join(f"{kind:>12}" for kind in kinds)
    print(f"{'truth':<12}{'cases':>8}{'predicted':>12}{heads}{'no doubt':>12}")
    for truth in ("sound", "unsound", "all"):
        chosen = [row for row in rows if truth in (row.truth, "all")]
        ratios = [row.ratio for row in chosen if row.ratio is not None]
        silent = sum(row.ratio is not None and row.ratio < 0.1 and not row.doubt for row in chosen)
        counts = "".join(f"{sum(map(test, ratios)):>12}" for test in kinds.values())
        print(f"{truth:<12}{len(chosen):>8}{len(ratios):>12}{counts}{silent:>12}")
    ports = [ratio for row in rows for ratio in row.port_ratios]
    print(
        f"{'each output':<12}{'':>8}{len(ports):>12}"
        + "".join(f"{sum(map(test, ports)):>12}" for test in kinds.values())
    )
    print("over, under: too large, too small by more than that; no doubt: under 10, first line without doubt")


def print_kinds(rows: Sequence[Row]) -> None:
    """Print the same, shorter, for each kind of system."""
    heads = ("cases", "judged", "right", "predicted", "within 2", "under 10")
    print(f"\n{'kind':<12}" + "".join(f"{head:>12}" for head in heads))
    for kind in sorted({row.kind for row in rows}):
        chosen = [row for row in rows if row.kind == kind]
        judged = [row for row in chosen if row.said in ("sound", "unsound")]
        ratios = np.array([row.ratio for row in chosen if row.ratio is not None])
        right = sum(row.said == row.truth for row in judged)
        near, under = ((ratios >= 0.5) & (ratios <= 2.0)).sum(), (ratios < 0.1).sum()
        counts = (len(chosen), len(judged), right, len(ratios), near, under)
        print(f"{kind:<12}" + "".join(f"{count:>12}" for count in counts))


def print_times(rows: Sequence[Row]) -> None:
    """Print the time of checks against that of runs."""
    timed = [row for row in rows if np.isfinite([row.check_seconds, row.run_seconds]).all()]
    if not timed:
        return
    check = np.array([row.check_seconds for row in timed])
    run = np.array([row.run_seconds for row in timed])
    print(f"\ncheck: median {np.median(check):.2f} s, longest {check.max():.1f} s; ", end="")
    print(f"run: median {np.median(run):.3f} s, longest {run.max():.1f} s; ", end="")
    print(f"check within 3 runs + 0.3 s: {_share(int((check <= 3 * run + 0.3).sum()), len(timed))}")


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({100 * part / whole:.1f} %)" if whole else "0 of 0"


def print_named(systems: Iterable[System]) -> None:
    """Print the named cases at both macro steps: verdict, predicted, true, trust after the run."""
    print("| system | macro step | verdict | predicted | true | trust after the run |")
    print("|---|---|---|---|---|---|")
    for system in systems:
        for step in system.steps:
            row = Row(system.name, system.half, system.domain, system.kind, step, False)
            run_truly(system, row)
            check_coupling(system, row)
            said = row.said if row.said != "unsound" else f"unsound{_largest_sound_step(system, row)}"
            sizes = (row.predicted, row.true, estimate_after(system, step))
            shares = " | ".join("-" if size is None else _percent(size) for size in sizes)
            print(f"| {system.name} | {step:g} s | {said} | {shares} |", flush=True)


def _percent(share: float) -> str:
    if share >= 10:
        return "> 1,000 %" if np.isfinite(share) else "fails"
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.0f} %"


def _largest_sound_step(system: System, row: Row) -> str:
    """Return the largest sound step that the check has found."""
    found = hk.check(system.composite(row.step), system.stop).trajectory
    part = found.largest_sound_part if found is not None else 0
    return f"; sound: {row.step / part:.3g} s" if part else ""


def estimate_after(system: System, step: float) -> float | None:
    """Return the global error that is estimated after the run (`--trust`), the largest of all outputs."""
    try:
        composite = system.composite(step)
        run = hk.run(composite, system.stop)
        found = estimate_error(hk.Experiment(composite, stop=Fraction(str(system.stop))), run)
        return float(found.ports[0].relative)
    except hk.HocketError:
        return None


def converge(system: System) -> list[float]:
    """Return the errors with the reasonable macro step, a quarter and a sixteenth of it."""
    return [system.error(*system.run(system.steps[0] / parts)) for parts in (1, 4, 16)]


def print_convergence(systems: Iterable[System]) -> None:
    """Print whether couplings converge to their references."""
    print(f"{'system':<32}{'step':>10}{'error':>12}{'step / 4':>12}{'step / 16':>12}")
    for system in systems:
        errors = "".join(f"{error:>12.2e}" for error in converge(system))
        print(f"{system.name:<32}{system.steps[0]:>10.3g}{errors}", flush=True)


def print_references(systems: Iterable[System]) -> None:
    """Print how far composed references are from those that were written by hand, of the judged port."""
    for system in systems:
        if system.reference is not None:
            times = np.linspace(0.0, system.stop, 501)
            true = system.reference(times)
            off = np.abs(system.composed(times)[system.port] - true).max() / np.abs(true).max()
            print(f"{system.name:<32}{off:>12.2e}", flush=True)


def main() -> None:
    """Read the command line, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument(
        "--half", choices=("tune", "report", "fresh", "later", "trial", "last", "all"), default="tune"
    )
    parser.add_argument("--as", dest="form", choices=("equations", "pythonfmu", "c"), default="equations")
    parser.add_argument("--only", action="append", default=[], help="a part of a name; may be repeated")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each check")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--convergence", action="store_true")
    parser.add_argument("--named", action="store_true", help="only the cases in docs/check.md, as a table")
    parser.add_argument("--references", action="store_true")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    named = {"equations": tuple(CATALOGUE), "pythonfmu": IN_PYTHON, "c": SMOOTH_IN_C}[asked.form]
    systems = [
        CATALOGUE[name]() for name in named if not asked.only or any(part in name for part in asked.only)
    ]
    systems = [each for each in systems if asked.half in (each.half, "all")]
    with tempfile.TemporaryDirectory() as folder:
        if asked.form != "equations":
            wrap = as_c if asked.form == "c" else as_pythonfmu
            systems = [wrap(each, Path(folder)) for each in systems]
        if asked.convergence:
            print_convergence(systems)
            return
        if asked.references:
            print_references(systems)
            return
        warm_up()
        if asked.named:
            print_named(each for each in systems if each.name in NAMED)
            return
        rows = judge_all(systems, asked.seconds, asked.verbose)
    print(f"\n{len(systems)} systems, {len(rows)} cases, half: {asked.half}, as {asked.form}")
    print_confusion(rows)
    print_distribution(rows)
    print_kinds(rows)
    print_times(rows)
    if asked.json:
        asked.json.write_text(json.dumps([asdict(row) | {"ratio": row.ratio} for row in rows], indent=1))


if __name__ == "__main__":
    main()
