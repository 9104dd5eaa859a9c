"""Balanced by energy: linear models run in compiled code, and agree with the specification in every bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import hocket as hk
from energy.test_balanced_random import network
from hocket.simulators.wrappers.balanced import Balanced, BondSide
from systems import ENGINES, SPRING_MASS, slow_after, spring

EXTRAPOLATIONS = [hk.Hermite(), hk.Polynomial(1), hk.Polynomial(2)]
BOND = hk.Bond("mass.f", "spring.v", balance="energy")


def compared(made: hk.Composite, stop: Any) -> hk.Run:
    """Run on both engines; return the native one, after every number of both was seen to be the same."""
    options: dict[str, Any] = {"record": ["*"], "ledger": True}
    plain = hk.run(made, stop, engine="interpreter", **options)
    for threads in (1, 2):
        native = hk.run(made, stop, engine="native", threads=threads, **options)
        assert native.info["engine"] == "native"
        for key in ("bonds", "stored"):
            assert native.info[key] == plain.info[key]
        for table in plain.tables:
            theirs, ours = plain.table(table.name), native.table(table.name)
            for name, one, other in zip(theirs.column_names, theirs.columns, ours.columns, strict=True):
                assert np.array_equal(one.to_numpy(), other.to_numpy()), (table.name, name, threads)
    return native


def mass(v: float = 0.5) -> hk.StateSpace:
    """One that tells where it is, which holds no energy, and may be pushed."""
    inputs, outputs = ["f [N]", "push [N] = 0"], ["v [m/s]", "x [m]"]
    A, B = [[0, 0], [1, 0]], [[1, 1], [0, 0]]
    return hk.StateSpace(A, B, np.eye(2), x0=[v, 0], inputs=inputs, outputs=outputs, energy=np.diag([1, 0]))


def pair(
    step: Any, how: Any = "jacobi", inputs: Any = "linear", s: float = 1.0, v: float = 0.5
) -> hk.Composite:
    scenario = hk.Scenario(
        {"spring": spring(s, energy=1.0), "mass": mass(v)}, SPRING_MASS, bonds={"joint": BOND}
    )
    return hk.Composite(scenario, step, how, inputs)


@pytest.mark.parametrize("inputs", EXTRAPOLATIONS, ids=str)
@pytest.mark.parametrize("seed", slow_after(4, range(20)))
def test_networks(seed: int, inputs: Any) -> None:
    """Several bonds each, dampers, steps far too long: all limits are met."""
    made, _ = network(seed, inputs)
    compared(made, 25 * made.step)


@pytest.mark.parametrize(
    "how",
    [
        hk.Iterate(hk.Jacobi(), None, 2),
        hk.Iterate(),
        hk.Adaptive(tolerance=1e-3),
        hk.Adaptive(tolerance=1e-3, estimate="richardson"),
        hk.Adaptive(hk.Jacobi(), 1e-2, "energy"),
        hk.Adaptive(hk.Iterate(), 1e-3),
    ],
    ids=str,
)
@pytest.mark.parametrize("inputs", slow_after(1, [EXTRAPOLATIONS[1], EXTRAPOLATIONS[0]]), ids=str)
def test_steps_that_are_made_again_or_chosen(how: Any, inputs: Any) -> None:
    compared(pair("0.1 s", how, inputs), 3)


@pytest.mark.parametrize("s", [0.0, 1.0])
@pytest.mark.parametrize("v", [0.0, 0.5])
@pytest.mark.parametrize("step", ["0.05 s", "1.25 s"])
@pytest.mark.parametrize("inputs", EXTRAPOLATIONS[:2], ids=str)
def test_starts(inputs: Any, step: str, v: float, s: float) -> None:
    """From rest, without anything stored, and with a state that holds no energy."""
    run = compared(pair(step, "jacobi", inputs, s, v), 12.5)
    ends = [sum(each[when] for each in run.info["stored"].values()) for when in ("start", "end")]
    assert ends[1] == pytest.approx(ends[0], rel=1e-12)


@pytest.mark.parametrize("inner", ["0.05 s", "0.1 s", "0.2 s"])
@pytest.mark.parametrize("inputs", EXTRAPOLATIONS[:2], ids=str)
def test_levels_with_steps_of_their_own(inputs: Any, inner: str) -> None:
    """Energies are agreed for the longer steps of the level around."""
    level = hk.Composite(hk.Scenario({"mass": mass()}), inner, extrapolation=inputs)
    wires = {"axle.mass.f": "spring.f", "spring.v": "axle.mass.v"}
    bonds = {"joint": hk.Bond("axle.mass.f", "spring.v", balance="energy")}
    scenario = hk.Scenario({"spring": spring(energy=1.0), "axle": level}, wires, bonds=bonds)
    compared(hk.Composite(scenario, "0.2 s", extrapolation=inputs), 10)


def test_a_source_beside_the_bonds() -> None:
    push = hk.Function(lambda t: [np.sin(3 * t)], outputs=["y [N]"])
    models = {"spring": spring(energy=1.0), "mass": mass(), "hand": push}
    scenario = hk.Scenario(models, {**SPRING_MASS, "mass.push": "hand.y"}, bonds={"joint": BOND})
    compared(hk.Composite(scenario, "0.1 s", extrapolation="linear"), 10)


def by_hand(inputs: hk.Extrapolator, **how: Any) -> hk.Scenario:
    """Return the pair with models that were wrapped by hand."""
    sides = {"spring": BondSide("f", "v", -1), "mass": BondSide("v", "f")}
    models = {"spring": spring(energy=1.0), "mass": mass()}
    told = {f"{name}.{side.output}_told": f"{name}.{side.output}" for name, side in sides.items()}
    wires = {**SPRING_MASS, **told, "spring.v_share": "mass.share", "mass.f_share": "spring.share"}
    balanced = {
        name: Balanced(model, (sides[name],), "energy", linked=True, **how) for name, model in models.items()
    }
    connections = [
        hk.Connection(source, target, None if "share" in target else inputs)
        for target, source in wires.items()
    ]
    return hk.Scenario(balanced, connections, bonds={"joint": replace(BOND, balance=None)})


def test_the_straight_power_of_the_paper() -> None:
    compared(hk.Composite(by_hand(hk.Hermite(), power="linear"), "0.2 s"), 10)


@pytest.mark.parametrize("engine", ENGINES)
def test_held_inputs_freeze_the_motion_and_are_refused(engine: Any) -> None:
    with pytest.raises(hk.SimulatorError, match="is given held inputs: held power freezes the motion"):
        hk.run(hk.Composite(by_hand(hk.Hold()), "0.2 s"), 10, engine=engine)


def test_an_energy_beyond_all_numbers() -> None:
    """A state behind the bond grows as exp(100 t), and its square is no number. Both engines say the same."""
    A, B, C, x0 = np.diag([0, 100]), [[1], [0]], [[1, 0]], [0.5, 1e150]
    ports: dict[str, Any] = {"inputs": ["f [N]"], "outputs": ["v [m/s]"]}
    wild = hk.StateSpace(A, B, C, x0=x0, energy=np.eye(2), **ports)
    scenario = hk.Scenario({"spring": spring(energy=1.0), "mass": wild}, SPRING_MASS, bonds={"joint": BOND})
    said = []
    for engine in ENGINES:
        with pytest.raises(hk.SimulatorError, match="its stored energy is inf J") as caught:
            hk.run(hk.Composite(scenario, "0.1 s", extrapolation="linear"), 10, engine=engine)  # type: ignore[arg-type]
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert "`mass`, step() at t = 0.0 s" in said[0]


def test_work_beyond_all_numbers_names_no_hidden_port() -> None:
    """What it gives to the spring grows with it, until neither is a number."""
    ports: dict[str, Any] = {"inputs": ["f [N]"], "outputs": ["v [m/s]"]}
    wild = hk.StateSpace([[100]], [[1]], [[1]], x0=[1.0], energy=[[1]], **ports)
    scenario = hk.Scenario(
        {"spring": spring(1.0, 1e-6, energy=1e-6), "mass": wild}, SPRING_MASS, bonds={"joint": BOND}
    )
    for engine in ENGINES:
        with pytest.raises(hk.SimulatorError, match="the energy that `mass` hands over is -inf"):
            hk.run(hk.Composite(scenario, "0.1 s", extrapolation="linear"), 10, engine=engine)  # type: ignore[arg-type]
