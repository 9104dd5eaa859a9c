"""Files by their endings, and an FMU by itself as an experiment."""

from fractions import Fraction
from pathlib import Path

import pytest

import hocket as hk
from fmus.build import build
from hocket.errors import FileError
from hocket.files.fmus import experiment_from_fmus, model_name, round_down

pytestmark = pytest.mark.usefixtures("fresh_cache")


def lag(folder, **overrides):
    return build("lag", 2, folder=folder, binary=b"", **overrides)


def coupled(folder):
    """Two FMUs that drive each other."""
    first, second = (hk.Fmu(build(name, 2, folder=folder)) for name in ("first", "second"))
    wires = {"first.x": "second.x", "first.v": "second.v", "second.force": "first.force"}
    return hk.Composite(hk.Scenario({"first": first, "second": second}, wires), "10 ms")


# reading


def test_an_fmu_is_an_experiment(tmp_path):
    experiment = hk.read(lag(tmp_path))
    assert (experiment.name, experiment.start, experiment.stop, experiment.composite.step) == (
        "lag",
        0,
        1,
        Fraction(1, 10),
    )
    assert experiment.path == tmp_path / "lag.fmu"
    assert list(experiment.composite.scenario.models) == ["lag"]


def test_times_of_an_experiment_that_starts_late(tmp_path):
    path = lag(tmp_path, startTime="0.5", stopTime="2", stepSize="0.25")
    experiment = hk.read(str(path))
    assert (experiment.start, experiment.stop, experiment.composite.step) == (
        Fraction(1, 2),
        2,
        Fraction(1, 4),
    )


@pytest.mark.parametrize(
    ("experiment", "step", "stop"),
    [
        ({"stepSize": None}, Fraction(1, 1000), 1),
        ({"stepSize": None, "stopTime": "3"}, Fraction(1, 500), 3),
        ({"stepSize": None, "stopTime": "1e-3"}, Fraction(1, 1_000_000), Fraction(1, 1000)),
        ({"stepSize": None, "stopTime": None}, Fraction(1, 1000), 1),
        ({"stepSize": "0.3"}, Fraction(3, 10), Fraction(9, 10)),
        ({"stepSize": "5"}, 1, 1),
        ({"stepSize": "0"}, Fraction(1, 1000), 1),
        ({"stopTime": "0"}, Fraction(1, 10), 1),
    ],
    ids=["step", "of 3 s", "of 1 ms", "stop", "no whole number", "longer than the run", "zero", "no time"],
)
def test_what_the_experiment_does_not_tell(tmp_path, experiment, step, stop):
    experiment = hk.read(lag(tmp_path, **experiment))
    assert (experiment.composite.step, experiment.stop) == (step, stop)


def test_a_step_is_a_multiple_of_the_internal_one(tmp_path):
    options = {"stepSize": None, "fixedInternalStepSize": "0.0003"}
    experiment = hk.read(build("lag", 3, folder=tmp_path, binary=b"", **options))
    assert experiment.composite.step == Fraction(9, 10_000)  # 1 ms would not be


def test_the_shortest_step_and_the_longest_run_of_several(tmp_path):
    slow = hk.Fmu(lag(tmp_path / "slow", stopTime="5"))
    fast = hk.Fmu(lag(tmp_path / "fast", stepSize="0.01"))
    experiment = experiment_from_fmus({"slow": slow, "fast": fast}, {"fast.u": "slow.y"})
    assert (experiment.composite.step, experiment.stop) == (Fraction(1, 100), 5)
    assert experiment.composite.scenario.connections[0].target == "fast.u"


def test_names_of_models():
    assert model_name(Path("a/lag.fmu")) == "lag"
    assert model_name(Path("lag.fmu"), ["lag", "lag_2"]) == "lag_3"
    assert model_name(Path("My Model 2.1.fmu")) == "My_Model_2_1"
    assert model_name(Path("2-pumps.fmu")) == "_2-pumps"


def test_rounding_down():
    for length, rounded in ((1, 1), (0.9, 0.5), (0.0049, 0.002), (5e-3, 5e-3), (1999, 1000), (1e-9, 1e-9)):
        assert round_down(Fraction(str(length))) == Fraction(str(rounded))


def test_a_folder_as_an_fmu(tmp_path):
    from hocket.simulators.fmu.archive import extract_archive

    extract_archive(lag(tmp_path), tmp_path / "unpacked")
    assert list(hk.read(tmp_path / "unpacked").composite.scenario.models) == ["unpacked"]


def test_the_same_experiment_from_every_format(tmp_path):
    two = coupled(tmp_path)
    finals = []
    for name in ("two.toml", "two.ssp", "TWO.SSP"):
        hk.write(two, tmp_path / name)
        assert hk.read(tmp_path / name).composite.step == two.step
        finals.append(hk.run(tmp_path / name, 1).final("second.x"))
    assert finals == [hk.run(two, 1).final("second.x")] * 3


@pytest.mark.parametrize("name", ["lga.fmu", "lga.ssp", "lga.txt", "nowhere/lag.fmu"])
def test_a_file_that_is_not_there(tmp_path, monkeypatch, name):
    lag(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileError) as caught:
        hk.read(name)
    assert f"there is no file `{name}`" in str(caught.value)
    assert ("`lag.fmu`" in caught.value.faults[0].hint) == name.startswith("lga")


def test_what_is_no_scenario(tmp_path):
    (tmp_path / "notes.txt").write_text("milk")
    for path, what in (
        (tmp_path / "notes.txt", "`notes.txt` is neither a scenario nor an FMU"),
        (tmp_path, "is a folder"),
    ):
        with pytest.raises(FileError, match=what) as caught:
            hk.read(path)
        assert ".toml, .ssp, .ssd or .fmu" in str(caught.value)


def test_a_run_and_a_scenario_are_told_apart(tmp_path):
    lag = hk.StateSpace([[-1.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["u = 0"], outputs=["y"])
    composite = hk.Composite(hk.Scenario({"lag": lag}), 0.1)
    hk.run(composite, 1, folder=tmp_path / "kept")
    hk.write(composite, tmp_path / "lag.toml")
    with pytest.raises(FileError, match="it holds a run: `hocket report "):
        hk.read(tmp_path / "kept")
    with pytest.raises(FileError, match=r"`hocket run lag\.toml` makes one"):
        hk.open_run(tmp_path / "lag.toml")


def test_what_cannot_be_written(tmp_path):
    with pytest.raises(FileError, match=r"ends in \.toml or \.ssp"):
        hk.write(coupled(tmp_path), tmp_path / "two.fmu")


# running


@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_fmu_is_run_by_its_path_and_as_it_is(tmp_path, version):
    path = build("lag", version, folder=tmp_path)
    by_path = hk.run(path, 2, parameters={"y0": 1.0, "lag.T": 2.0}, step="10 ms")
    as_it_is = hk.run(hk.Fmu(path, y0=1.0, T=2.0), 2, step="10 ms")
    assert by_path["lag.y"].values.tolist() == as_it_is["lag.y"].values.tolist()
    assert by_path.final("lag.y") == pytest.approx((1 - 0.005) ** 200)
    assert by_path.info["parameters"] == {"y0": 1.0, "lag.T": 2.0}


def test_the_run_folder_can_be_run_again(tmp_path, monkeypatch):
    build("lag", 2, folder=tmp_path)
    monkeypatch.chdir(tmp_path)
    first = hk.run("lag.fmu", parameters={"y0": 3.0}, folder="kept")
    monkeypatch.chdir("/")
    assert hk.run(tmp_path / "kept" / "scenario.toml").final("lag.y") == first.final("lag.y")


def test_what_cannot_be_run():
    with pytest.raises(
        hk.ScenarioError, match=r"several of them with connections, or the path of a scenario"
    ):
        hk.run(3)
