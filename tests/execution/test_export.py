"""A co-simulation as an FMU: other importers run it, with the bits of `hocket.run`."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from fmpy import extract, read_model_description, simulate_fmu
from fmpy.fmi2 import FMU2Slave
from fmpy.validation import validate_fmu

import hocket
from hocket import Composite, Experiment, Python, Scenario, ScenarioError, blocks
from systems import ROOT, lag, random_linear, slow_after, three_masses, two_masses

VERSIONS = ("2.0", "3.0")


def rows_of(file, ports, step, stop, **options):
    """Return what FMPy finds at every step."""
    rows = simulate_fmu(
        str(file), output=list(ports), stop_time=stop, step_size=step, output_interval=step, **options
    )
    return {port: rows[port] for port in ports}


def same_bits(experiment, file, **options):
    """Run an experiment and its FMU, and compare every row."""
    run = hocket.run(experiment)
    step, stop = float(experiment.composite.step), float(experiment.stop)
    columns = next(table.columns for table in run.tables if table.name == "")
    found = rows_of(file, columns, step, stop, **options)
    for port in columns:
        np.testing.assert_array_equal(found[port], run[port].values, err_msg=port)


@pytest.mark.parametrize("fmi", VERSIONS)
@pytest.mark.parametrize(
    ("name", "composite", "stop"),
    [
        ("two masses", two_masses("Control21", "1/100"), 1),
        ("thesis 3", three_masses(3, "5/1000", "5/1000"), "1/2"),
    ],
)
def test_fmpy_finds_the_bits_of_run(name, composite, stop, fmi, tmp_path):
    experiment = Experiment(composite, stop=Fraction(stop), name=name)
    file = hocket.export(experiment, tmp_path / "one.fmu", fmi=fmi)
    assert validate_fmu(str(file)) == []
    same_bits(experiment, file)


@pytest.mark.parametrize("seed", slow_after(6, range(40)))
def test_random_levels_in_levels_give_the_same_bits(seed, tmp_path):
    composite = random_linear(seed)
    if composite.capabilities.variable_step:
        pytest.skip("steps of any length need matrices from Python")
    experiment = Experiment(composite, stop=5 * composite.step)
    same_bits(experiment, hocket.export(experiment, tmp_path / "one.fmu", fmi=VERSIONS[seed % 2]))


class Slave:
    """An instance of an exported FMU (FMI 2.0), driven by hand through FMPy."""

    def __init__(self, file, folder, stop=10.0):
        self.folder = Path(extract(str(file), str(folder)))
        self.description = read_model_description(str(file))
        self.reference = {each.name: each.valueReference for each in self.description.modelVariables}
        self.said = []
        self.fmu = FMU2Slave(
            guid=self.description.guid,
            unzipDirectory=str(self.folder),
            modelIdentifier=self.description.coSimulation.modelIdentifier,
            instanceName="one",
        )
        self.fmu.instantiate()
        self.fmu.setupExperiment(startTime=0.0, stopTime=stop)
        self.fmu.enterInitializationMode()

    def begin(self):
        self.fmu.exitInitializationMode()
        return self

    def __setitem__(self, name, value):
        self.fmu.setReal([self.reference[name]], [value])

    def __getitem__(self, name):
        return self.fmu.getReal([self.reference[name]])[0]

    def steps(self, count, h, names, first=0):
        """Return what some ports show after each of so many steps."""
        rows = []
        for k in range(first, first + count):
            self.fmu.doStep(currentCommunicationPoint=k * h, communicationStepSize=h)
            rows.append([self[name] for name in names])
        return rows


PORTS = ("one.F", "two.x", "two.v")


@pytest.fixture
def masses(tmp_path):
    return hocket.export(two_masses("Control21", "1/100"), tmp_path / "masses.fmu")


def test_a_state_that_is_set_again_gives_the_same_bits(masses, tmp_path):
    slave = Slave(masses, tmp_path / "a").begin()
    slave.steps(50, 0.01, PORTS)
    state = slave.fmu.getFMUstate()
    once = slave.steps(100, 0.01, PORTS, 50)
    slave.fmu.setFMUstate(state)
    assert slave.steps(100, 0.01, PORTS, 50) == once
    slave.fmu.freeFMUState(state)


OTHER = """
import json, sys
from pathlib import Path
sys.path[:0] = sys.argv[1:2]
from execution.test_export import PORTS, Slave
slave = Slave(sys.argv[2], sys.argv[3]).begin()
slave.fmu.setFMUstate(slave.fmu.deSerializeFMUstate(Path(sys.argv[4]).read_bytes()))
print(json.dumps(slave.steps(100, 0.01, PORTS, 50)))
"""


def test_a_state_goes_on_in_another_process_with_the_same_bits(masses, tmp_path):
    slave = Slave(masses, tmp_path / "a").begin()
    slave.steps(50, 0.01, PORTS)
    (tmp_path / "state").write_bytes(slave.fmu.serializeFMUstate(slave.fmu.getFMUstate()))
    once = slave.steps(100, 0.01, PORTS, 50)
    words = [Path(__file__).parents[1], masses, tmp_path / "b", tmp_path / "state"]
    done = subprocess.run(
        [sys.executable, "-c", OTHER, *map(str, words)], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout.splitlines()[-1]) == once


def test_two_instances_do_not_know_of_each_other(masses, tmp_path):
    one, two = Slave(masses, tmp_path / "a").begin(), Slave(masses, tmp_path / "b")
    two["two.x0[1]"] = 2.0
    two.begin()
    first = one.steps(20, 0.01, PORTS)
    other = two.steps(20, 0.01, PORTS)
    assert first != other
    one.fmu.reset()
    one.fmu.setupExperiment(startTime=0.0)
    one.fmu.enterInitializationMode()
    assert one.begin().steps(20, 0.01, PORTS) == first


def test_an_input_follows_what_the_importer_sets(tmp_path):
    """x' = -x + u with x(0) = 0 and u = t: x = t - 1 + exp(-t), exactly with the slope of the input."""
    composite = Composite(Scenario({"lag": lag(x0=0.0)}), "1/10")
    file = hocket.export(composite, tmp_path / "lag.fmu")
    slave = Slave(file, tmp_path / "a")
    assert [each.name for each in slave.description.modelVariables if each.causality == "input"] == ["lag.u"]
    slave["lag.u"] = 0.0
    slave.begin()
    for k in range(10):
        slave["lag.u"] = k * 0.1
        slave.fmu.setRealInputDerivatives([slave.reference["lag.u"]], [1], [1.0])
        slave.fmu.doStep(currentCommunicationPoint=k * 0.1, communicationStepSize=0.1)
    assert slave["lag.y"] == pytest.approx(np.exp(-1.0), rel=1e-13)


def test_outputs_show_what_is_set_before_the_first_step(tmp_path):
    composite = Composite(Scenario({"gain": hocket.Gain(3.0)}), "1/10")
    slave = Slave(hocket.export(composite, tmp_path / "gain.fmu"), tmp_path / "a")
    slave["gain.u"] = 2.0
    assert slave["gain.y"] == 6.0
    slave["gain.u"] = 5.0
    assert slave.begin()["gain.y"] == 15.0


def test_blocks_run_inside(tmp_path):
    models = {
        "wish": blocks.Sine(amplitude=2.0, frequency=0.5, offset=1.0),
        "pid": blocks.PID(2.0, Ti=0.5, high=0.7, period="1/10"),
        "plant": lag(),
    }
    wires = {"pid.reference": "wish.y", "pid.measured": "plant.y", "plant.u": "pid.control"}
    experiment = Experiment(Composite(Scenario(models, wires), "1/20", "gauss-seidel"), stop=2, name="loop")
    for fmi in VERSIONS:
        file = hocket.export(experiment, tmp_path / "loop.fmu", fmi=fmi)
        assert validate_fmu(str(file)) == []
        same_bits(experiment, file)


def test_a_step_that_is_no_whole_number_of_its_own_is_refused_with_both_numbers(masses, tmp_path, capfd):
    slave = Slave(masses, tmp_path / "a").begin()
    with pytest.raises(Exception, match="fmi2DoStep"):
        slave.fmu.doStep(currentCommunicationPoint=0.0, communicationStepSize=0.013)
    said = capfd.readouterr().out
    assert "a step of 0.013 s is no whole number of steps of 0.01 s" in said
    slave.fmu.doStep(currentCommunicationPoint=0.0, communicationStepSize=0.03)  # three of its own
    assert slave.fmu.getRealStatus(2) == 0.03


def test_a_start_elsewhere_is_refused_with_both_times(masses, tmp_path, capfd):
    slave = Slave(masses, tmp_path / "a")
    slave.fmu.reset()
    with pytest.raises(Exception, match="fmi2SetupExperiment"):
        slave.fmu.setupExperiment(startTime=2.0)
    assert "it starts at t = 0 s, not at 2 s" in capfd.readouterr().out


class Doubling:
    def start(self, t):
        pass

    def output(self, t, u):
        return [2.0 * u[0]]

    def step(self, t, h, u):
        return t + h


def test_what_runs_in_python_is_refused_by_name_and_nothing_is_written(tmp_path):
    model = Python(Doubling, inputs=["u = 1"], outputs=["y"])
    composite = Composite(Scenario({"twice": model, "lag": lag()}, {"lag.u": "twice.y"}), "1/10")
    with pytest.raises(ScenarioError, match=r"`twice` \(Python\) runs in Python"):
        hocket.export(composite, tmp_path / "no.fmu")
    assert list(tmp_path.iterdir()) == []


def test_what_equations_determine_is_not_open_and_their_solver_is_named(tmp_path):
    with pytest.raises(ScenarioError, match=r"`link` \(Coupler\) runs in Python"):
        hocket.export(ROOT / "examples" / "massless_link.toml", tmp_path / "no.fmu")


def test_a_damaged_plan_is_refused(masses, tmp_path, capfd):
    folder = Path(extract(str(masses), str(tmp_path / "a")))
    plan = folder / "resources" / "plan.hocket"
    data = bytearray(plan.read_bytes())
    data[len(data) // 2] ^= 1
    plan.write_bytes(bytes(data))
    description = read_model_description(str(masses))
    fmu = FMU2Slave(
        guid=description.guid,
        unzipDirectory=str(folder),
        modelIdentifier=description.coSimulation.modelIdentifier,
        instanceName="one",
    )
    with pytest.raises(Exception, match="instantiate"):
        fmu.instantiate()
    assert "it is damaged" in capfd.readouterr().out


def test_inputs_with_start_values_change_no_bit_while_they_are_left_alone(tmp_path):
    """What can be set from outside needs other matrices; a run without it has the bits that it had before."""
    inner = Composite(Scenario({"deep": lag(rate=0.3, inputs=("u = 0.4",))}), "1/20")
    plant = hocket.StateSpace(
        A=[[0.0, 1.0], [-2.0, -0.3]], B=[[0.0, 0.0], [1.0, 0.7]], C=[[1.0, 0.0]], x0=[1.0, 0.0],
        inputs=["force", "wind = 0.3"], outputs=["x"],
    )  # fmt: skip
    models = {"plant": plant, "spring": hocket.Gain(-3.0), "level": inner}
    wires = {"spring.u": "plant.x", "plant.force": "spring.y"}
    composite = Composite(Scenario(models, wires), "1/20", "jacobi", "linear")
    experiment = Experiment(composite, stop=5, name="plant")
    for fmi in VERSIONS:
        file = hocket.export(experiment, tmp_path / "plant.fmu", fmi=fmi)
        described = read_model_description(str(file))
        inputs = {each.name: each.start for each in described.modelVariables if each.causality == "input"}
        assert inputs == {"plant.wind": "0.3", "level.deep.u": "0.4"}
        same_bits(experiment, file)
    calm = hocket.run(experiment, parameters=None)
    blown = simulate_fmu(
        str(file),
        stop_time=5,
        step_size=0.05,
        output_interval=0.05,
        start_values={"plant.wind": 0.0},
        output=["plant.x"],
    )
    assert not np.array_equal(blown["plant.x"], calm["plant.x"].values)


def test_asking_for_outputs_between_setting_and_stepping_changes_nothing(tmp_path):
    """A level with consistent outputs evaluates them under new inputs, asked or not."""
    models = {"gain": hocket.Gain(0.5), "lag": lag()}
    wires = {"lag.u": "gain.y"}
    composite = Composite(Scenario(models, wires), "1/10", hocket.Jacobi(outputs="consistent"))
    file = hocket.export(composite, tmp_path / "chain.fmu")
    rows = {}
    for asks in (True, False):
        slave = Slave(file, tmp_path / f"asks {asks}")
        slave["gain.u"] = 1.0
        slave.begin()
        found = []
        for k in range(20):
            slave["gain.u"] = float(k % 3)
            if asks:
                assert slave["gain.y"] == 0.5 * (k % 3)
            slave.fmu.doStep(currentCommunicationPoint=k * 0.1, communicationStepSize=0.1)
            found.append(slave["lag.y"])
        rows[asks] = found
    assert rows[True] == rows[False]


@pytest.mark.parametrize("count", slow_after(1, [50, 1000]))
def test_many_instances_live_beside_each_other(count, masses, tmp_path):
    folder = extract(str(masses), str(tmp_path / "a"))
    description = read_model_description(str(masses))
    instances = []
    for number in range(count):
        fmu = FMU2Slave(
            guid=description.guid,
            unzipDirectory=folder,
            modelIdentifier=description.coSimulation.modelIdentifier,
            instanceName=f"{number}",
        )
        fmu.instantiate()
        fmu.setupExperiment(startTime=0.0)
        fmu.enterInitializationMode()
        fmu.exitInitializationMode()
        fmu.doStep(currentCommunicationPoint=0.0, communicationStepSize=0.01 * (1 + number % 3))
        instances.append(fmu)
    shown = {tuple(fmu.getReal([1, 2, 3])) for fmu in instances}
    assert len(shown) == 3
    for fmu in instances:
        fmu.fmi2FreeInstance(fmu.component)
