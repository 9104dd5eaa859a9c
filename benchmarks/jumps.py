"""A jump between two steps: the error of every algorithm, flat and across levels, as the macro step shrinks.

    python benchmarks/jumps.py

A source jumps at 0.0537 s, which is on no grid. Alone, it drives a lag: what is constant but for a jump is
held without error. In a loop, two lags drive each other: the error falls with the order of the extrapolation.
Exact answers are matrix exponentials.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import expm

import hocket as hk

JUMP, STOP = 0.0537, 1.0
STEPS = (10, 20, 40, 80)
Build = Callable[[str, str, Any, str], hk.Composite]


def source() -> hk.Table:
    """Return what jumps."""
    return hk.Table([0.0, JUMP, JUMP, 10.0], {"y": [0.0, 0.0, 1.0, 1.0]})


def first_lag() -> hk.StateSpace:
    """Return a' = -3 a + 3 u - 3 b."""
    return hk.StateSpace([[-3.0]], [[3.0, -3.0]], [[1.0]], x0=[0.0], inputs=["u", "b = 0"], outputs=["a"])


def second_lag() -> hk.StateSpace:
    """Return b' = -2 b + 2 a."""
    return hk.StateSpace([[-2.0]], [[2.0]], [[1.0]], x0=[0.0], inputs=["a"], outputs=["b"])


def exact(t: float, *, loop: bool) -> float:
    """Return a: x' = A x + (3, 0) from the jump on."""
    rates = np.array([[-3.0, -3.0 if loop else 0.0, 3.0], [2.0, -2.0, 0.0], [0.0, 0.0, 0.0]])
    return float(expm(rates * max(t - JUMP, 0.0))[0, 2])


def step_control(tolerance: float, *_: str) -> hk.Adaptive:
    """Return step control by defects."""
    return hk.Adaptive(tolerance=tolerance)


ALGORITHMS: dict[str, Callable[..., Any]] = {
    "jacobi": lambda *_: hk.Jacobi(),
    "gauss-seidel": lambda *names: hk.GaussSeidel(list(names)),
    "gauss-seidel backwards": lambda *names: hk.GaussSeidel(list(reversed(names))),
    "iterate": lambda *_: hk.Iterate(tolerance=1e-12),
    "multirate": lambda *names: hk.Multirate({names[-1]: 4}),
    "multirate, source fast": lambda *names: hk.Multirate({names[0]: 4}),
    "compound": lambda *names: hk.Multirate({names[-1]: 4}, "compound"),
    "asynchronous": lambda *names: hk.Asynchronous(dict(zip(reversed(names), (4, 3, 1), strict=False))),
    "asynchronous, source fast": lambda *names: hk.Asynchronous(dict(zip(names, (4, 3, 1), strict=False))),
    "adaptive": partial(step_control, 1e-3),
}


def flat(step: str, how: str, algorithm: Any, system: str) -> hk.Composite:
    """Return all in one level."""
    models: dict[str, Any] = {"src": source(), "a": first_lag()}
    wires = {"a.u": "src.y"}
    if system == "loop":
        models["b"] = second_lag()
        wires |= {"a.b": "b.b", "b.a": "a.a"}
    return hk.Composite(hk.Scenario(models, wires), step, algorithm(*models), extrapolation=how)


def source_inside(step: str, how: str, algorithm: Any, system: str) -> hk.Composite:
    """Return the source in a level of its own, with the first lag in a loop; the second lag is outside."""
    if system == "lag":
        scenario = hk.Scenario({"src": source()}, {"y": "src.y"}, outputs=["y"])
        inner = hk.Composite(scenario, step, extrapolation=how)
        models, wires = {"in": inner, "a": first_lag()}, {"a.u": "in.y"}
    else:
        wires = {"a.u": "src.y", "a.b": "b", "y": "a.a"}
        scenario = hk.Scenario({"src": source(), "a": first_lag()}, wires, inputs=["b"], outputs=["y"])
        inner = hk.Composite(scenario, step, algorithm("src", "a"), extrapolation=how)
        models, wires = {"in": inner, "b": second_lag()}, {"in.b": "b.b", "b.a": "in.y"}
    return hk.Composite(hk.Scenario(models, wires), step, algorithm(*models), extrapolation=how)


def source_outside(step: str, how: str, algorithm: Any, system: str) -> hk.Composite:
    """Return the lags in a level of their own."""
    models: dict[str, Any] = {"a": first_lag()}
    wires = {"a.u": "u"}
    if system == "loop":
        models["b"] = second_lag()
        wires |= {"a.b": "b.b", "b.a": "a.a"}
    inner = hk.Composite(
        hk.Scenario(models, wires, inputs=["u"]), step, algorithm(*models), extrapolation=how
    )
    outer = {"src": source(), "in": inner}
    return hk.Composite(hk.Scenario(outer, {"in.u": "src.y"}), step, algorithm(*outer), extrapolation=how)


PLACES: dict[str, tuple[Build, dict[str, str]]] = {
    "flat": (flat, {"lag": "a.a", "loop": "a.a"}),
    "inside": (source_inside, {"lag": "a.a", "loop": "in.a.a"}),
    "outside": (source_outside, {"lag": "in.a.a", "loop": "in.a.a"}),
}
EXTRAPOLATIONS = ("hold", "linear", "quadratic")


def measure(run: hk.Run, port: str, *, loop: bool) -> tuple[float, float]:
    """Return the largest error in all rows, and the largest value up to the jump."""
    series = run[port]
    t, values = np.asarray(series.t), np.asarray(series.values)
    errors = np.abs(values - [exact(each, loop=loop) for each in t])
    return float(errors.max()), float(np.abs(values[t <= JUMP]).max(initial=0.0))


def errors_of(
    place: str, how: str, name: str, system: str, engine: str = "native"
) -> list[tuple[float, float]]:
    """Return errors and what acts before the jump, for every macro step."""
    build, ports = PLACES[place]
    found = []
    for parts in STEPS:
        # steps of `Adaptive` follow from its tolerance, which shrinks with the macro step
        tolerance = 1e-2 * (10.0 / parts) ** (2 if how == "hold" else 3)
        algorithm = partial(step_control, tolerance) if name == "adaptive" else ALGORITHMS[name]
        composite = build(f"1/{parts} s", how, algorithm, system)
        with tempfile.TemporaryDirectory() as folder:
            run = hk.run(composite, stop=STOP, engine=engine, folder=Path(folder) / "run")
            found.append(measure(run, ports[system], loop=system == "loop"))
    return found


def main() -> None:
    """Print the table."""
    steps = "".join(f"{f'1/{parts}':>10}" for parts in STEPS)
    print(f"{'system':6} {'level':8} {'algorithm':26} {'inputs':10}{steps}{'order':>7}")
    for system in ("lag", "loop"):
        for place in PLACES:
            for name in ALGORITHMS:
                for how in EXTRAPOLATIONS:
                    try:
                        found = errors_of(place, how, name, system)
                    except hk.HocketError as error:
                        print(
                            f"{system:6} {place:8} {name:26} {how:10} {type(error).__name__}: {error}"[:180]
                        )
                        continue
                    errors = [error for error, _ in found]
                    order = np.log2(max(errors[1], 1e-300) / max(errors[-1], 1e-300)) / 2
                    shown = f"{order:7.2f}" if errors[-1] > 1e-13 else "  exact"
                    early = max(value for _, value in found)
                    told = f"  {early:.1e} before the jump" if early else ""
                    print(
                        f"{system:6} {place:8} {name:26} {how:10}"
                        + "".join(f"{error:10.1e}" for error in errors)
                        + shown
                        + told
                    )


if __name__ == "__main__":
    main()
