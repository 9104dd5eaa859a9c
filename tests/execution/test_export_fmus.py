"""Exported co-simulations with FMUs inside, exports of exports among them: the bits of `hocket.run`."""

from __future__ import annotations

import numpy as np
import pytest
from fmpy import read_model_description, simulate_fmu
from fmpy.validation import validate_fmu

import hocket
from execution.test_export import VERSIONS, same_bits
from fmus.build import build
from hocket import Composite, Experiment, Fmu, Scenario, ScenarioError, blocks
from hocket.files.ssp import write_ssp
from systems import lag, two_masses

pytestmark = pytest.mark.usefixtures("fresh_cache")


def masses_of(tmp_path, version, **options):
    """Return the two masses of the examples as FMUs of a version of FMI, coupled."""
    folder = tmp_path / f"fmi{version}"
    folder.mkdir(exist_ok=True)
    models = {name: Fmu(str(build(name, version, folder=folder)), **options) for name in ("first", "second")}
    described = {
        name: ([p.name for p in m.inputs], [p.name for p in m.outputs]) for name, m in models.items()
    }
    (ours, shown), (theirs, other) = described["first"], described["second"]
    wires = {f"second.{name}": f"first.{name}" for name in theirs if name in shown}
    wires |= {f"first.{name}": f"second.{name}" for name in ours if name in other}
    return models, wires


@pytest.mark.parametrize("version", [1, 2, 3])
def test_fmus_of_all_versions_run_inside(tmp_path, version):
    models, wires = masses_of(tmp_path, version)
    assert wires
    experiment = Experiment(
        Composite(Scenario(models, wires), "1/100", "gauss-seidel"), stop=1, name="masses"
    )
    for fmi in VERSIONS:
        file = hocket.export(experiment, tmp_path / "whole.fmu", fmi=fmi)
        assert validate_fmu(str(file)) == []
        same_bits(experiment, file)


def test_model_exchange_blocks_linear_models_and_levels_stand_side_by_side(tmp_path):
    exchange = Fmu(
        str(build("oscillator", 2, folder=tmp_path)), interface="model-exchange", method="rk4", step="1 ms"
    )
    inner = Composite(Scenario({"lag": Fmu(str(build("lag", 3, folder=tmp_path))), "filter": lag(rate=5.0)},
                               {"filter.u": "lag.y"}), "1/200", "gauss-seidel")  # fmt: skip
    models = {"wish": blocks.Sine(amplitude=2.0, frequency=0.5), "level": inner, "body": exchange}
    shown = exchange.outputs[0].name
    assert shown
    wires = {"level.lag.u": "wish.y", "body.u": "level.filter.y"}
    composite = Composite(Scenario(models, wires), "1/100", "gauss-seidel", "linear")
    experiment = Experiment(composite, stop=1, name="mixed")
    for fmi in VERSIONS:
        file = hocket.export(experiment, tmp_path / "mixed.fmu", fmi=fmi)
        assert validate_fmu(str(file)) == []
        same_bits(experiment, file)


def test_an_ssp_of_fmus_runs_inside(tmp_path):
    models, wires = masses_of(tmp_path, 2)
    experiment = Experiment(Composite(Scenario(models, wires), "1/100"), stop=1, name="masses")
    path = tmp_path / "masses.ssp"
    write_ssp(experiment, path)
    read = hocket.read(path)
    file = hocket.export(read, tmp_path / "whole.fmu")
    same_bits(read, file)


@pytest.mark.parametrize("fmi", VERSIONS)
def test_an_export_of_an_export_of_an_export_has_the_same_bits(tmp_path, fmi):
    experiment = Experiment(two_masses("Control21", "1/100"), stop=1)
    first = hocket.run(experiment)
    file = hocket.export(experiment, tmp_path / "deep1.fmu", fmi=fmi)
    for depth in (2, 3):
        models = {"inside": Fmu(str(file))}
        experiment = Experiment(Composite(Scenario(models), "1/100"), stop=1, name="deep")
        file = hocket.export(experiment, tmp_path / f"deep{depth}.fmu", fmi=fmi)
        assert validate_fmu(str(file)) == []
        same_bits(experiment, file)
    deepest = hocket.run(experiment)
    for port in first.ports:
        np.testing.assert_array_equal(deepest[f"inside.inside.{port}"].values, first[port].values)


def test_parameters_of_fmus_inside_are_parameters_of_the_whole(tmp_path):
    scenario = Scenario({"gain": Fmu(str(build("gain", 2, folder=tmp_path)), k=4.0)})
    file = hocket.export(Composite(scenario, "1/10"), tmp_path / "gain.fmu")
    described = {each.name: each for each in read_model_description(str(file)).modelVariables}
    assert (described["gain.k"].causality, float(described["gain.k"].start)) == ("parameter", 4.0)
    options = {"stop_time": 1, "step_size": 0.1, "output_interval": 0.1, "output": ["gain.y"]}
    rows = simulate_fmu(str(file), start_values={"gain.u": 3.0}, **options)
    assert set(rows["gain.y"]) == {12.0}
    rows = simulate_fmu(str(file), start_values={"gain.u": 3.0, "gain.k": 0.5}, **options)
    assert set(rows["gain.y"]) == {1.5}


def test_an_isolated_fmu_is_refused_by_name(tmp_path):
    scenario = Scenario({"gain": Fmu(str(build("gain", 2, folder=tmp_path)), isolate=True, u=1.0)})
    with pytest.raises(ScenarioError, match="`gain` is isolated"):
        hocket.export(Composite(scenario, "1/10"), tmp_path / "no.fmu")
    assert not (tmp_path / "no.fmu").exists()


def test_what_an_fmu_inside_says_reaches_the_importer(tmp_path, capfd):
    scenario = Scenario({"weak": Fmu(str(build("fails", 2, folder=tmp_path)))})
    file = hocket.export(Composite(scenario, "1/10"), tmp_path / "weak.fmu")
    with pytest.raises(Exception, match="fmi2DoStep"):
        simulate_fmu(str(file), stop_time=10, step_size=0.1, output_interval=0.1)
    said = capfd.readouterr().out
    assert "`weak`, step at t = " in said
