"""What a run computes does not depend on the order in which models are listed, nor on what is observed."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hocket as hk
from fmus.build import build
from native.random_scenarios import draw
from systems import ENGINES, SEED_BLOCKS


def shuffle(composite: hk.Composite, rng: np.random.Generator) -> hk.Composite:
    """Return the same co-simulation, its models, connections and bonds listed in another order."""

    def mix(listed: Any) -> list[Any]:
        every = list(listed)
        return [every[number] for number in rng.permutation(len(every))]

    scenario = composite.scenario
    models = {
        name: shuffle(model, rng) if isinstance(model, hk.Composite) else model
        for name, model in mix(scenario.models.items())
    }
    mixed = scenario.with_changes(
        models=models, connections=mix(scenario.connections), bonds=dict(mix(scenario.bonds.items()))
    )
    return composite.with_scenario(mixed)


def assert_same_bits(one: hk.Run, other: hk.Run) -> None:
    for port in {*one} & {*other}:
        assert np.array_equal(one[port].values, other[port].values), port


@pytest.mark.parametrize("block", SEED_BLOCKS)
def test_random_scenarios_compute_the_same_bits_however_they_are_listed(block: range) -> None:
    """Levels in levels, with every orchestrator, extrapolator, accelerator and power bonds."""
    for seed in block:
        drawn = draw(np.random.default_rng(seed))
        told = {"stop": drawn.stop, "start": drawn.start, "every": drawn.every, "record": drawn.record}
        try:
            one = hk.run(drawn.composite, **told)
        except hk.HocketError:
            continue
        other = hk.run(shuffle(drawn.composite, np.random.default_rng(seed)), **told)
        assert {*one} == {*other}
        assert_same_bits(one, other)


@pytest.fixture(scope="module")
def fmus(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], Path]:
    folder = tmp_path_factory.mktemp("fmus")
    return {
        (name, version): build(name, version, folder=folder / f"fmi{version}")
        for name in ("initial", "lazy", "gain")
        for version in (1, 2, 3)
    }


def cosine() -> hk.Function:
    return hk.Function(lambda t: [np.cos(t)], ["y"])


def run_listed(models: dict[str, Any], wires: dict[str, str], listed: Any, engine: Any, **how: Any) -> hk.Run:
    scenario = hk.Scenario({name: models[name] for name in listed}, wires)
    return hk.run(hk.Composite(scenario, "0.1 s", **how), "0.3 s", engine=engine)


OBSERVED = [(), ("twice",), ("evaluations",), ("x", "twice", "evaluations")]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_fmu_is_initialised_with_its_first_inputs(fmus: Any, version: int) -> None:
    """x(0) is the input, 3 cos 0; then x + h (u - x) with u held: 3 in one step, 3 cos 0.1 in the next."""
    wires = {"gain.u": "source.y", "plant.u": "gain.y"}
    second = 3.0 + 0.1 * (3.0 * np.cos(0.1) - 3.0)
    for observe in OBSERVED:
        plant = hk.Fmu(fmus["initial", version], observe=observe)
        models = {"source": cosine(), "gain": hk.Fmu(fmus["gain", version], k=3.0), "plant": plant}
        for listed in permutations(models):
            run = run_listed(models, wires, listed, "native")
            assert run["plant.y"].values[:3] == pytest.approx([3.0, 3.0, second], abs=1e-15)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("name", ["initial", "lazy"])
def test_neither_listing_nor_observing_changes_a_bit(fmus: Any, name: str, version: int, engine: Any) -> None:
    """A source, and a cycle of FMUs of which one has direct feedthrough."""
    wires = {
        "sum.u0": "source.y",
        "sum.u1": "a.y",
        "b.u": "sum.y",
        "c.u": "b.y",
        "gain.u": "c.y",
        "a.u": "gain.y",
    }
    first: hk.Run | None = None
    for number, observe in enumerate(OBSERVED):
        models = {
            "source": cosine(),
            "sum": hk.StateSpace(D=[[0.5, 0.25]], inputs=["u0", "u1"], outputs=["y"]),
            "gain": hk.Fmu(fmus["gain", version], k=0.5),
            **{each: hk.Fmu(fmus[name, version], observe=observe) for each in "abc"},
        }
        for listed in list(permutations(models))[number::240]:
            run = run_listed(models, wires, listed, engine)
            first = first or run
            assert {*first} <= {*run}
            assert_same_bits(first, run)


@pytest.mark.parametrize("versions", [(1, 2), (2, 1), (3, 1)])
def test_in_a_cycle_one_that_is_initialised_once_comes_after_the_others(fmus: Any, versions: Any) -> None:
    """Nothing of the start value 0.25 of an input is left: a(0) = b(0) = source(0) / 2."""
    wires = {"sum.u0": "source.y", "sum.u1": "b.y", "a.u": "sum.y", "b.u": "a.y"}
    models = {
        "source": cosine(),
        "sum": hk.StateSpace(D=[[0.5, 0.0]], inputs=["u0", "u1"], outputs=["y"]),
        "a": hk.Fmu(fmus["initial", versions[0]]),
        "b": hk.Fmu(fmus["initial", versions[1]]),
    }
    for listed in permutations(models):
        run = run_listed(models, wires, listed, "native")
        assert run["a.y"].values[0] == run["b.y"].values[0] == 0.5
