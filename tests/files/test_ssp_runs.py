"""SSPs that are run: by hocket as the experiment they came from, and by FMPy."""

from fractions import Fraction

import numpy as np
import pytest
from fmpy.ssp.simulation import simulate_ssp

from files.test_ssp import (
    archive,
    binding,
    bus,
    component,
    connection,
    connector,
    dictionary,
    entries,
    entry,
    fmu,
    inline,
    level,
    parameter,
    ssd,
    system,
)
from hocket.execution.run import run
from hocket.files.ssp import read_ssp, write_ssp
from hocket.model.composite import Composite
from hocket.model.experiment import Experiment
from hocket.model.ports import Port
from hocket.model.scenario import Connection, Scenario
from hocket.orchestrators import GaussSeidel
from hocket.simulators.fmu.recipe import Fmu

pytestmark = pytest.mark.usefixtures("fresh_cache")


@pytest.fixture
def masses(tmp_path):
    for name in ("first", "second"):
        (tmp_path / f"{name}.fmu").write_bytes(fmu(name, binary=True))
    return Fmu(tmp_path / "first.fmu", c=2.0), Fmu(tmp_path / "second.fmu", m=5.0)


def flat(masses):
    links = {"right.force": "left.force", "left.x": "right.x", "left.v": "right.v"}
    scenario = Scenario(dict(zip(("left", "right"), masses, strict=True)), links)
    return Experiment(Composite(scenario, "10 ms"), stop=Fraction(1), name="flat")


def nested(masses):
    inner = Composite(
        Scenario(
            {"mass": masses[1]},
            [Connection("force", "mass.force"), Connection("mass.x", "x"), Connection("mass.v", "v")],
            [Port("force", "kN")],
            [Port("x", "m"), Port("v", "m/s")],
        ),
        "5 ms",
    )
    links = {"right.force": "left.force", "left.x": "right.x", "left.v": "right.v"}
    outer = Composite(
        Scenario({"left": masses[0], "right": inner}, links), "10 ms", GaussSeidel(["left", "right"])
    )
    return Experiment(outer, stop=Fraction(1), name="nested")


@pytest.mark.parametrize("make", [flat, nested])
def test_an_experiment_runs_the_same_after_its_way_through_a_file(tmp_path, masses, make):
    experiment = make(masses)
    write_ssp(experiment, tmp_path / "x.ssp")
    one, two = run(experiment), run(read_ssp(tmp_path / "x.ssp"))
    assert one.ports == two.ports
    for name in one.ports:
        np.testing.assert_array_equal(one[name], two[name])


def test_fmpy_runs_it(tmp_path, masses):
    """FMPy knows neither parameters nor units of an SSP: the same masses without them."""
    plain = tuple(Fmu(model.file) for model in masses)
    experiment = flat(plain)
    write_ssp(experiment, tmp_path / "x.ssp")
    rows = simulate_ssp(str(tmp_path / "x.ssp"), stop_time=1.0, step_size=0.01)
    assert rows["right.x"][-1] == pytest.approx(run(experiment)["right.x"][-1], abs=5e-3)
    write_ssp(nested(plain), tmp_path / "y.ssp")
    rows = simulate_ssp(str(tmp_path / "y.ssp"), stop_time=1.0, step_size=0.01)
    assert rows["right.mass.x"][-1] == pytest.approx(run(experiment)["right.x"][-1], abs=5e-3)


def test_what_a_connection_does_to_a_value(tmp_path):
    """Factors, a dictionary, a way through a system, an open input with a value."""
    inner = system(
        component("g", "resources/gain.fmu") + bus("far", "signal"),
        connection("u", "y") + connection("far.signal", "g.u"),
        connector("u", "input") + connector("y", "output"),
        name="in",
    )
    elements = "".join(component(name, "resources/gain.fmu") for name in "ab") + inner + bus("near", "signal")
    links = connection("start", "a.u")
    links += connection("a.y", "in.u", '<ssc:LinearTransformation factor="10" offset="1"/>')
    links += connection("in.y", "b.u")
    links += connection("b.y", "near.signal", '<ssc:LinearTransformation factor="-1"/>')
    inside = system(
        elements,
        links,
        connector("start", "input"),
        binding(inline(parameter("start", 3), parameter("b.k", 0.5))),
        dictionary(entry("signal")) + level('step = "0.1 s"'),
    )
    text = ssd(inside, '<ssd:DefaultExperiment stopTime="1"/>')
    found = run(read_ssp(archive(tmp_path, text, {"resources/gain.fmu": fmu("gain", binary=True)})))
    assert [found[name][-1] for name in ("a.y", "b.y", "in.g.y")] == [6.0, 30.5, -61.0]


def test_tables_and_casts(tmp_path):
    links = connection("n", "a.u_int")
    links += connection("a.y_int", "b.u_int", entries("Integer", (5, 40), (6, 50)))
    links += connection("a.y_int", "b.u_real") + connection(
        "a.y_bool", "b.u_bool", entries("Boolean", (1, 0), (0, 1))
    )
    links += connection("a.y_enum", "b.u_enum", entries("Enumeration", ("low", "high")))
    inside = system(
        component("a", "resources/types.fmu") + component("b", "resources/types.fmu"),
        links,
        connector("n", "input", "<ssc:Integer/>"),
        binding(inline(parameter("n", 4, "Integer"))),
        level('step = "0.1 s"'),
    )
    text = ssd(inside, '<ssd:DefaultExperiment stopTime="1"/>')
    found = run(read_ssp(archive(tmp_path, text, {"resources/types.fmu": fmu("types", binary=True)})))
    # a adds its parameter, 1, to 4; the table turns 5 into 40; b adds 1
    assert found["b.y_int"][-1] == 41.0
    assert found["b.y_real"][-1] == 10.0
    # a: false is not its parameter, true, so it says true; the table says false; b says true
    assert found["b.y_bool"][-1] == 1.0
    assert found["b.y_enum"][-1] == 3.0
