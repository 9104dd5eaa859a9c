"""What the remedies against invented energy bring: errors of energy and motion, and what they cost.

In:  nothing; `python benchmarks/energy.py [errors|work|ledger|boxes|accounts|correction]`, all unless said
Out: tables, about 4 minutes on one core

Systems and their true motions are those of the tests. The error of energy is the largest difference between
stored energy and the true one, over the largest true one; the error of motion is the largest error of any
port, over the largest value of that port. Work is counted in steps of simulators, those of all sweeps
included, and in calls: how often the inversion was evaluated while hocket integrated the equations.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.pop(0)  # the folder of this file, which would be taken for the one of the tests
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import numpy as np

import hocket as hk
from energy.systems import System, every, spring_mass, two_masses
from hocket.simulators.power_balance import InversionBalance
from hocket.simulators.wrappers.balanced import Balanced, BondSide

TARGETS = {"energy": 0.01, "motion": 0.02}
"""The errors for which work is compared."""
TANGENT = hk.Hermite()
SUBSTEPS = (1, 2, 5, 8, 16)


@dataclass(frozen=True)
class Remedy:
    """A way to couple."""

    name: str
    inputs: Any
    how: Any
    balance: str | None = None


REMEDIES = (
    Remedy("hold", "hold", hk.Jacobi()),
    Remedy("correction", hk.BalanceCorrection(1.0), hk.Jacobi()),
    Remedy("linear", "linear", hk.Jacobi()),
    Remedy("tangent", TANGENT, hk.Jacobi()),
    Remedy("Gauss-Seidel, hold", "hold", hk.GaussSeidel()),
    Remedy("Gauss-Seidel, linear", "linear", hk.GaussSeidel()),
    Remedy("inversion, tangent", TANGENT, hk.Jacobi(), "inversion"),
    Remedy("inversion, linear", "linear", hk.Jacobi(), "inversion"),
    Remedy("energy, tangent", TANGENT, hk.Jacobi(), "energy"),
    Remedy("energy, linear", "linear", hk.Jacobi(), "energy"),
    Remedy("two sweeps, linear", "linear", hk.Iterate(hk.Jacobi(), None, 2)),
    Remedy("iteration, linear", "linear", hk.Iterate()),
)


@dataclass(frozen=True)
class Seen:
    """What a run came to."""

    energy: float
    motion: float
    steps: int
    calls: int
    gained: float
    """What all bonds gained, over the largest stored energy."""


def headline(text: str) -> None:
    """Print what the next table is about."""
    print(f"\n{text}\n{'-' * len(text)}")


@contextmanager
def counted() -> Iterator[list[int]]:
    """Count how often the inversion is evaluated."""
    calls, law = [0], InversionBalance._law

    def counting(self: InversionBalance, t: float, x: Any, u: Any) -> Any:
        calls[0] += 1
        return law(self, t, x, u)

    InversionBalance._law = counting  # type: ignore[method-assign]
    try:
        yield calls
    finally:
        InversionBalance._law = law  # type: ignore[method-assign]


def errors_of(system: System, run: hk.Run) -> tuple[float, float]:
    """Return the errors of energy and of motion."""
    t, rows = system.seen(run)
    expected = truth(system.name, len(t))
    true = system.stored(expected)
    with np.errstate(over="ignore", invalid="ignore"):
        energy = np.abs(system.stored(rows) - true).max() / true.max()
        motion = (np.abs(rows - expected).max(axis=0) / np.abs(expected).max(axis=0)).max()
    return float(energy), float(motion)


@cache
def systems() -> dict[str, System]:
    """Return all systems by their names."""
    return {system.name: system for system in every()}


@cache
def truth(name: str, count: int) -> np.ndarray:
    """Return the true motion at so many times."""
    system = systems()[name]
    return system.reference(np.linspace(0.0, float(hk.clock.seconds(system.end)), count))


@cache
def seen(name: str, remedy: Remedy, step: str) -> Seen | None:
    """Run a system; None: the run failed."""
    system = systems()[name]
    composite = hk.Composite(system.scenario(remedy.balance), step, remedy.how, remedy.inputs)
    with counted() as calls:
        try:
            run = hk.run(composite, system.end)
        except hk.HocketError as error:
            print(f"  {remedy.name}, {step}: {str(error).splitlines()[0]}")
            return None
    counts = run.info["counts"]
    sweeps = counts.get("sweeps", {}).get("", {}).get("total", counts["steps"])
    largest = float(system.stored(truth(name, counts["steps"] + 1)).max())
    gained = sum(bond["gained"] for bond in run.info["bonds"].values()) / largest
    return Seen(*errors_of(system, run), len(system.models) * sweeps, calls[0], gained)


def number(value: float) -> str:
    """Return two digits, and no more where it has grown beyond all use."""
    if not value < 1e3:
        return "grows"
    return f"{value:.1e}" if value < 0.0995 else f"{value:.2g}" if value < 99.5 else f"{value:.0f}"


def errors() -> None:
    """Print the errors of every remedy, and its work per step."""
    for name, system in systems().items():
        headline(f"{name}, {system.end}: error of energy / of motion")
        print(f"  {'':<22}{'steps':>7}{'calls':>7}" + "".join(f"{step:>19}" for step in system.steps))
        for remedy in REMEDIES:
            found = [seen(name, remedy, step) for step in system.steps]
            cells = "".join(f"{cell(each):>19}" for each in found)
            print(f"  {remedy.name:<22}{per_step(system, found)}{cells}", flush=True)


def cell(found: Seen | None) -> str:
    """Return both errors."""
    return "fails" if found is None else f"{number(found.energy)} / {number(found.motion)}"


def per_step(system: System, found: list[Seen | None]) -> str:
    """Return steps of simulators and calls per step of the level, in the middle of the five."""
    middle = found[2]
    if middle is None:
        return f"{'':>14}"
    count = float(hk.clock.seconds(system.end) / hk.clock.seconds(system.steps[2]))
    calls = f"{middle.calls / count:.0f}" if middle.calls else ""
    return f"{middle.steps / count:>7.3g}{calls:>7}"


def work() -> None:
    """Print how many steps of simulators each remedy needs for a given error, and who needs the least."""
    for what, target in TARGETS.items():
        headline(f"steps of simulators until the error of {what} is below {100 * target:g} %")
        print("  between the five errors by lines; <: the longest step will do; -: the shortest will not")
        print(f"  {'':<22}" + "".join(f"{short(name):>18}" for name in systems()))
        table = {remedy: [least(name, remedy, what, target) for name in systems()] for remedy in REMEDIES}
        best = [min(row[column][0] for row in table.values()) for column in range(len(systems()))]
        for remedy, row in table.items():
            cells = [
                f"{'*' if steps == best[column] < np.inf else ''}{told}"
                for column, (steps, told) in enumerate(row)
            ]
            print(f"  {remedy.name:<22}" + "".join(f"{each:>18}" for each in cells))


def short(name: str) -> str:
    """Return a name that fits a column."""
    return name.replace("two masses, ", "two, ").split(" with ")[0].split(" on ")[0]


def least(name: str, remedy: Remedy, what: str, target: float) -> tuple[float, str]:
    """Return the least steps for an error, and how they are told, with the calls in brackets."""
    found = [seen(name, remedy, step) for step in systems()[name].steps]
    points = [(getattr(each, what) if each else np.inf, each) for each in found]
    if points[-1][1] is None or not points[-1][0] <= target:
        return np.inf, "-"
    place = len(points) - 1
    while place and points[place - 1][0] <= target:
        place -= 1
    (error, good), sign, part = points[place], "<", 0.0
    assert good is not None
    steps = float(good.steps)
    before, coarse = points[place - 1] if place else (0.0, None)
    if coarse is not None and np.isfinite(before):
        sign, part = "", np.log(target / error) / np.log(before / error)
        steps *= (coarse.steps / good.steps) ** part
    calls = f" ({good.calls * steps / good.steps:.0f})" if good.calls else ""
    return steps, f"{sign}{steps:.0f}{calls}"


def ledger() -> None:
    """Print what the bonds gained."""
    headline("what all bonds gained in the run, in % of the largest stored energy, at the third step")
    print(f"  {'':<22}" + "".join(f"{short(name):>18}" for name in systems()))
    for remedy in REMEDIES:
        found = [seen(name, remedy, system.steps[2]) for name, system in systems().items()]
        cells = [
            "fails" if each is None else f"{100 * each.gained:+.2g}" if each.gained < 1e3 else "grows"
            for each in found
        ]
        print(f"  {remedy.name:<22}" + "".join(f"{each:>18}" for each in cells))


class Box:
    """A simulator that takes held inputs and shows outputs, nothing else."""

    input_degree = 0

    def __init__(self, model: hk.StateSpace):
        self.inside = model.open()

    def start(self, t: float) -> None:
        """Go to the initial state."""
        self.inside.start(t)

    def output(self, t: float, u: Any) -> Any:
        """Return the outputs."""
        return self.inside.output(t, u)

    def step(self, t: float, h: float, u: Any) -> None:
        """Advance."""
        self.inside.step(t, h, u)

    def save(self) -> Any:
        """Return the state."""
        return self.inside.save()

    def restore(self, state: Any) -> None:
        """Go back."""
        self.inside.restore(state)


def boxed(system: System, substeps: int | None) -> dict[str, Any]:
    """Return the models as black boxes; with sub-steps: balanced, by the one bond that there is."""
    made = {
        name: hk.Python(Box, model.inputs, model.outputs, model=model)
        for name, model in system.models.items()
    }
    if substeps is None:
        return made
    (bond,) = system.bonds.values()
    ends = [(bond["flow"], bond["effort"], -1.0), (bond["effort"], bond["flow"], 1.0)]
    for given, told, sign in ends:
        name, entry = given.split(".")
        output = system.connections[told].split(".")[1]
        made[name] = Balanced(made[name], [BondSide(output, entry, sign)], substeps=substeps)
    return made


def boxes() -> None:
    """Print what is left of it for black boxes, at the third step."""
    headline("black boxes that take held inputs: error of energy / of motion, steps per step of the level")
    both = (spring_mass(), two_masses())
    print(f"  {'':<30}{'steps':>7}" + "".join(f"{f'{each.name}, {each.steps[2]} s':>28}" for each in both))
    rows: list[tuple[str, Any, int | None]] = [
        ("hold", "hold", None),
        ("correction", hk.BalanceCorrection(1.0), None),
        ("linear, which they hold", "linear", None),
    ]
    rows += [(f"inversion, sub-steps: {count}", "linear", count) for count in SUBSTEPS]
    for name, inputs, substeps in rows:
        cells = []
        for system in both:
            scenario = hk.Scenario(boxed(system, substeps), system.connections)
            run = hk.run(hk.Composite(scenario, system.steps[2], hk.Jacobi(), inputs), system.end)
            cells.append("{} / {}".format(*map(number, errors_of(system, run))))
        print(f"  {name:<30}{2 * (substeps or 1):>7}" + "".join(f"{each:>28}" for each in cells))


def accounts() -> None:
    """Print how far what the accounts say was gained is from the change of the stored energy."""
    headline("two masses, undamped, 5 s: largest difference between gained and stored energy, in J")
    system, steps = two_masses(), ("0.2", "0.1", "0.05", "0.025")
    print(f"  {'':<40}" + "".join(f"{f'{step} s':>12}" for step in steps))
    for name, inputs, part in (
        ("hold", "hold", None),
        ("linear", "linear", None),
        ("tangent", TANGENT, None),
        ("linear, the left mass in a level", "linear", 1),
        ("linear, in one with half the step", "linear", 2),
        ("tangent, the left mass in a level", TANGENT, 1),
        ("tangent, in one with twice the step", TANGENT, 0.5),
    ):
        cells = []
        for step in steps:
            inside = "" if part is None else "level."
            models = dict(system.models)
            if part is not None:
                alone = hk.Scenario({"left": models.pop("left")})
                models = {"level": hk.Composite(alone, repr(round(float(step) / part, 6))), **models}
            wires = {"right.F": f"{inside}left.F", f"{inside}left.v2": "right.v"}
            bonds = {"joint": hk.Bond("right.F", f"{inside}left.v2")}
            whole = hk.Composite(hk.Scenario(models, wires, bonds=bonds), step, hk.Jacobi(), inputs)
            run = hk.run(whole, 4.8, ledger=True)
            ports = [port.replace("left.", f"{inside}left.") for port in system.ports]
            gained, rows = run["joint.gained"], [run[port] for port in ports]
            common = np.intersect1d(gained.t, rows[0].t)
            W = system.stored(np.stack([row.values[np.isin(row.t, common)] for row in rows], axis=1))
            said = gained.values[np.isin(gained.t, common)]
            cells.append(f"{np.abs(said - (W - W[0])).max():.1e}")
        print(f"  {name:<40}" + "".join(f"{cell:>12}" for cell in cells))


def corrected(H: float, of: str, eps: float = 0.05) -> float:
    """Return how the energy of a spring and a mass grows until 75 s (1 N/m, 1 kg; 1 m, 0.5 m/s).

    Inputs are held and corrected by what the last hold missed: of the signal, or of its product with the own
    output, both lines between samples, over the mean of the latter; near its zeros that is let go.
    """

    def missed(before: float, now: float, own_before: float, own: float) -> float:
        mean = 0.5 * (own_before + own)
        beyond = own_before / 6 + own / 3 - 0.5 * mean if of == "energy" else 0.0
        size = mean**2 + eps**2 * (own_before**2 + own**2)
        return (now - before) * (0.5 + beyond * mean / size)

    s, v = 1.0, 0.5
    f_before, v_before = -s, v
    for _ in range(round(75 / H)):
        f = -s
        force = f + missed(f_before, f, v_before, v)
        speed = v + missed(v_before, v, f_before, f)
        f_before, v_before = f, v
        s, v = s + H * speed, v + H * force
    return (s * s + v * v) / 1.25


def correction() -> None:
    """Print what a correction of energy would bring."""
    headline("spring and mass: energy after 75 s, over that at the start, with a correction of")
    print(f"  {'':<10}{'0.2 s':>12}{'0.1 s':>12}{'0.05 s':>12}")
    for of in ("flux", "energy"):
        print(f"  {of:<10}" + "".join(f"{corrected(H, of):>12.4f}" for H in (0.2, 0.1, 0.05)))


TABLES = {
    "errors": errors,
    "work": work,
    "ledger": ledger,
    "boxes": boxes,
    "accounts": accounts,
    "correction": correction,
}


def main() -> None:
    """Print the tables that were asked for."""
    asked = sys.argv[1:] or list(TABLES)
    unknown = [name for name in asked if name not in TABLES]
    if unknown:
        sys.exit(f"there is no table `{unknown[0]}`; there are {', '.join(TABLES)}")
    for name in asked:
        TABLES[name]()


if __name__ == "__main__":
    main()
