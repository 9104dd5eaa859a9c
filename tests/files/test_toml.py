"""Scenario files: what is written is read back, and every fault is told with its line."""

import errno
import math
import os
from fractions import Fraction
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from files.car import CAR
from hocket.errors import FileError, ScenarioError
from hocket.files.toml import dumps, loads, read, write
from hocket.model.composite import Composite
from hocket.model.experiment import Experiment
from hocket.model.extrapolators import Hermite, Hold, Nepce, Polynomial
from hocket.model.ports import Port
from hocket.model.protocols import Capabilities
from hocket.model.scenario import Connection, Scenario
from hocket.orchestrators import GaussSeidel, Jacobi
from hocket.planning.planner import plan_tree
from hocket.simulators.ode import Ode
from hocket.simulators.python import Python
from hocket.simulators.sources import Csv, Function, Table
from hocket.simulators.state_space import Gain, StateSpace, Sum


def car() -> Composite:
    mass = StateSpace(
        A=[[0, 1], [-1, 0]],
        B=[[0], [1]],
        C=[[1, 0], [0, 1]],
        x0=[1, 0],
        inputs=["force [N] = 0"],
        outputs=["x [m]", "v [m/s]"],
    )
    left = StateSpace(
        A=[[0, 1], [-0.2, -0.3]],
        B=[[0, 0], [1, 1]],
        C=[[1, 0]],
        inputs=["x [m]", "v [m/s]"],
        outputs=["force [N]"],
    )
    connections = [
        Connection("left.force", "right.mass.force"),
        Connection("right.mass.x", "left.x", Polynomial(2)),
        Connection("right.mass.v", "left.v", Nepce(0.6)),
    ]
    right = Composite(Scenario({"mass": mass}), "2.5 ms", start="cold")
    scenario = Scenario({"left": left, "right": right}, connections, record=["*.x"])
    return Composite(scenario, "10 ms", GaussSeidel(["left", "right"], outputs="stale"), "linear")


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "car.toml"
    path.write_text(CAR)
    experiment = read(path)
    assert experiment == Experiment(car(), Fraction(0), Fraction(10), "micro", "car")
    assert experiment.path == path
    assert plan_tree(experiment.composite).plan.outputs == "stale"


def test_windows_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "car.toml"
    path.write_bytes(b"\xef\xbb\xbf" + CAR.replace("\n", "\r\n").encode())
    assert read(path).composite == car()


def test_a_name_goes_before_that_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text('name = "two masses"\n' + CAR)
    assert read(path).name == "two masses"
    write(read(path), tmp_path / "b.toml")
    assert read(tmp_path / "b.toml").name == "two masses"


@pytest.mark.parametrize(
    ("written", "extrapolation"),
    [
        ('"hold"', Hold()),
        ('{ type = "hold" }', Hold()),
        ('"cubic"', Polynomial(3)),
        ('"hermite"', Hermite(1)),
        ('{ type = "polynomial", degree = 3 }', Polynomial(3)),
        ('{ type = "hermite", samples = 2 }', Hermite(2)),
        ('{ type = "nepce", alpha = -1 }', Nepce(-1.0)),
    ],
)
def test_extrapolations(written: str, extrapolation: object) -> None:
    experiment = loads(f"step = 1\nextrapolation = {written}\n[models]", check=False)
    assert experiment.composite.extrapolation == extrapolation


@pytest.mark.parametrize(
    ("written", "orchestrator"),
    [
        ('"jacobi"', Jacobi()),
        ('"gauss-seidel"', GaussSeidel()),
        ('{ type = "jacobi", outputs = "consistent" }', Jacobi(outputs="consistent")),
        ('{ type = "gauss-seidel", order = "auto" }', GaussSeidel()),
        ('{ type = "gauss-seidel", order = ["a", ["b", "c"]] }', GaussSeidel(["a", ["b", "c"]])),
    ],
)
def test_orchestrators(written: str, orchestrator: object) -> None:
    experiment = loads(f"step = 1\norchestrator = {written}\n[models]", check=False)
    assert experiment.composite.orchestrator == orchestrator


def test_gain_and_sum() -> None:
    experiment = loads(
        """
        step = 0.5
        models.twice = { type = "gain", gain = 2, unit = "m", out = "km" }
        models.less = { type = "sum", inputs = ["a = 1", "b = 2"], gains = [1, -1], unit = "N" }
        connections.twice.u = "less.y"
        connections.less = { a = "twice.y" }
        models.bare = { type = "sum", inputs = ["a = 1"] }
    """.replace('unit = "N"', 'unit = "m"')
    )
    models = experiment.composite.scenario.models
    assert models["twice"] == Gain(2, "m", "km")
    assert models["less"] == Sum("a = 1", "b = 2", gains=[1, -1], unit="m")
    assert models["bare"] == Sum("a = 1")
    assert experiment.composite.scenario.connections == (
        Connection("less.y", "twice.u"),
        Connection("twice.y", "less.a"),
    )


def test_a_port_may_be_called_from() -> None:
    experiment = loads(
        """
        step = 1
        outputs = ["late"]
        [models.late]
        type = "sum"
        inputs = ["from"]
        [models.clock]
        type = "table"
        t = [0, 1]
        columns = { "y [s]" = [0, 1] }
        [connections]
        late.from = "clock.y"
        "late" = { from = "late.y", extrapolation = "hold" }
    """.replace('late.from = "clock.y"', '"late.from" = "clock.y"')
    )
    assert [connection.target for connection in experiment.composite.scenario.connections] == [
        "late.from",
        "late",
    ]
    dotted = loads("""
        step = 1
        [models.late]
        type = "sum"
        inputs = ["from"]
        [models.clock]
        type = "table"
        t = [0, 1]
        columns = { y = [0, 1] }
        [connections]
        late.from = "clock.y"
    """)
    assert dotted.composite.scenario.connections == (Connection("clock.y", "late.from"),)


def test_code_and_measurements(folder: Path) -> None:
    (folder / "parts").mkdir()
    (folder / "parts" / "part.toml").write_text(
        'step = "5 ms"\n[models.tank]\ntype = "python"\nclass = "../plant.py:Tank"\ninputs = ["q = 1"]\n'
        '[models.g]\ntype = "gain"\ngain = 2\n'
    )
    (folder / "experiment.toml").write_text("""
step = "10 ms"
[models.tank]
type = "python"
class = "plant.py:Tank"
period = "20 ms"
parameters = { area = 2, names = ["a", { b = true }] }
[models.decay]
type = "ode"
f = "plant.py:rate"
g = "plant.py:out"
x0 = [1]
inputs = ["u"]
outputs = ["y"]
feedthrough = {}
method = "heun"
step = "1 ms"
parameters = { k = 2.5 }
[models.free]
type = "ode"
f = "plant.py:rate"
x0 = [1]
inputs = ["u = 0"]
[models.source]
type = "function"
f = "plant.py:ramp"
outputs = ["q [m^3/s]"]
[models.measured]
type = "csv"
path = "measured.csv"
columns = { "v [m/s]" = "wheel speed", "force [N]" = "force" }
[models.force]
type = "csv"
path = "measured.csv"
columns = ["force"]
[models.table]
type = "table"
t = [0, 1]
columns = { "a [N]" = [1, 2], b = [3, 4] }
interpolation = "hold"
[models.part]
type = "composite"
file = "parts/part.toml"
[connections]
tank.q = "source.q"
decay.u = "table.b"
part.g.u = "decay.y"
""")
    experiment = read(folder / "experiment.toml")
    here = str(folder)
    assert experiment.composite.scenario.models == {
        "tank": Python("plant.py:Tank", period="20 ms", folder=here, area=2, names=["a", {"b": True}]),
        "decay": Ode(
            "plant.py:rate", "plant.py:out", [1], ["u"], ["y"], "heun", "1 ms", {}, folder=here, k=2.5
        ),
        "free": Ode("plant.py:rate", x0=[1], inputs=["u = 0"], folder=here),
        "source": Function("plant.py:ramp", ["q [m^3/s]"], folder=here),
        "measured": Csv(
            "measured.csv", "time", {"v [m/s]": "wheel speed", "force [N]": "force"}, folder=here
        ),
        "force": Csv("measured.csv", columns=["force"], folder=here),
        "table": Table([0, 1], {"a [N]": [1, 2], "b": [3, 4]}, "hold"),
        "part": Composite(
            Scenario(
                {
                    "tank": Python("../plant.py:Tank", ["q = 1"], folder=str(folder / "parts")),
                    "g": Gain(2),
                }
            ),
            "5 ms",
        ),
    }
    # in the same folder and in another the paths lead to the same files
    (folder / "other").mkdir()
    for path in (folder / "again.toml", folder / "other" / "again.toml"):
        write(experiment.composite, path)
        assert read(path).composite == experiment.composite
    assert loads(dumps(experiment)) == experiment


def test_paths_of_texts_start_in_their_folder(folder: Path) -> None:
    text = 'step = 1\n[models.s]\ntype = "function"\nf = "plant.py:ramp"\noutputs = ["y"]\n'
    composite = loads(text, folder=folder).composite
    assert dumps(composite, folder=folder) == dumps(loads(dumps(composite)), folder=folder)
    assert "folder" not in dumps(composite, folder=folder)
    assert f'folder = "{folder}"' in dumps(composite)


def test_a_written_file_looks_like_one_by_hand() -> None:
    experiment = Experiment(car(), stop=Fraction(10), name="car")
    assert dumps(experiment) == dedent("""\
        name = "car"
        step = "10 ms"
        orchestrator = { type = "gauss-seidel", order = ["left", "right"], outputs = "stale" }
        extrapolation = "linear"
        record = ["*.x"]

        [run]
        stop = "10 s"

        [models.left]
        type = "state-space"
        A = [[0.0, 1.0], [-0.2, -0.3]]
        B = [[0.0, 0.0], [1.0, 1.0]]
        C = [[1.0, 0.0]]
        inputs = ["x [m]", "v [m/s]"]
        outputs = ["force [N]"]

        [models.right]
        type = "composite"
        step = "2.5 ms"
        orchestrator = "jacobi"
        extrapolation = "hold"
        start = "cold"

        [models.right.models.mass]
        type = "state-space"
        A = [[0.0, 1.0], [-1.0, 0.0]]
        B = [[0.0], [1.0]]
        C = [[1.0, 0.0], [0.0, 1.0]]
        x0 = [1.0, 0.0]
        inputs = ["force [N] = 0.0"]
        outputs = ["x [m]", "v [m/s]"]

        [connections]
        "right.mass.force" = "left.force"
        "left.x" = { from = "right.mass.x", extrapolation = "quadratic" }
        "left.v" = { from = "right.mass.v", extrapolation = { type = "nepce", alpha = 0.6 } }
    """)
    assert loads(dumps(experiment)) == experiment


def test_long_lists_are_broken() -> None:
    table = Table([number / 7 for number in range(40)], [[number] for number in range(40)], outputs=["y"])
    composite = Composite(Scenario({"table": table}), 1)
    text = dumps(composite)
    assert max(map(len, text.split("\n"))) <= 100
    assert loads(text).composite == composite


class Own:
    """A model that files know nothing of."""

    inputs = ()
    outputs = (Port("y"),)
    capabilities = Capabilities()

    def open(self) -> Any:
        raise NotImplementedError

    def __repr__(self) -> str:
        return "Own()"


def test_what_cannot_be_written_is_named() -> None:
    models: dict[str, Any] = {
        "wave": Function(lambda t: t, ["y"]),
        "own": Own(),
        "plant": Python("plant.py:Tank", ["q"], ["h"], shape=(1, 2), name=None),
    }
    composite = Composite(Scenario(models), 1)
    with pytest.raises(ScenarioError) as caught:
        dumps(composite)
    first, second, third, fourth = caught.value.faults
    assert first.where == "models.wave.f"
    assert "<lambda>" in first.what
    assert first.what.endswith("cannot be written to a file")
    assert first.hint == "give it a name in a module or file of its own"
    assert second.what == "`Own()` cannot be written to a file"
    assert second.where == "models.own"
    assert second.hint.startswith("files know `state-space`, `gain`")
    assert (third.what, third.where) == ("`None` cannot be written to a file", "models.plant.parameters.name")
    assert (fourth.what, fourth.where) == (
        "`(1, 2)` cannot be written to a file",
        "models.plant.parameters.shape",
    )
    described = dumps(composite, strict=False)
    assert 'own = "Own()"' in described
    with pytest.raises(FileError):
        loads(described)


def test_two_sources_cannot_be_written() -> None:
    composite = Composite(Scenario({}, [("a.y", "b.u"), ("c.y", "b.u")]), 1)
    with pytest.raises(ScenarioError, match=r"`b.u` has two sources"):
        dumps(composite)


def test_code_is_written_by_its_name() -> None:
    composite = Composite(Scenario({"x": Function(math.sin, ["y"])}), 1)
    assert 'f = "math:sin"' in dumps(composite)


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(
        FileError, match=r"cannot write `car.toml`: No such file or directory(.|\n)*make it first"
    ):
        write(car(), tmp_path / "nowhere" / "car.toml")


def test_a_file_that_cannot_be_written_whole_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "car.toml"
    file.write_text("old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(FileError, match=r"cannot write `car.toml`: No space left on device"):
        write(car(), file)
    assert file.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["car.toml"]


_names = st.one_of(
    st.sampled_from(["left", "axle", "models", "connections", "type", "from", "order", "run", "é-1", "_x"]),
    st.from_regex(r"[a-z_][a-z0-9_-]{0,6}", fullmatch=True),
)
_texts = st.one_of(
    st.sampled_from(["x", "wheel.force", "a b", 'q"', "k]", "= 1", "", "é\n"]), st.text(max_size=6)
)
_floats = st.one_of(
    st.sampled_from([0.0, -0.0, 5e-324, -2.2250738585072011e-308, 0.1, 1e22, 1.7976931348623157e308]),
    st.floats(allow_nan=False, allow_infinity=False),
)
_durations = st.one_of(
    st.fractions(min_value=Fraction(1, 10**12), max_value=10**9),
    st.sampled_from([Fraction(1, 3), Fraction(1, 400), Fraction(1, 10**6), Fraction(10**5)]),
)
_units = st.sampled_from(["", "", "N", "m/s", "km/h", " odd ", "]"])
_lists = st.lists(_texts, max_size=2, unique=True)
_ports = st.builds(Port, _texts, _units, st.none() | _floats, _lists.map(tuple))
_bare = st.builds(Port, _texts, _units, st.none() | _floats)
_extrapolators = st.one_of(
    st.just(Hold()),
    st.builds(Polynomial, st.integers(0, 8)),
    st.builds(Hermite, st.integers(1, 4)),
    st.builds(Nepce, _floats),
)
_modes = {
    "outputs": st.sampled_from(["stale", "consistent"]),
    "inputs": st.sampled_from(["clean", "delayed"]),
}
_orders = st.just("auto") | st.lists(_names | st.lists(_names, max_size=2), max_size=3)
_orchestrators = st.builds(Jacobi, **_modes) | st.builds(GaussSeidel, _orders, **_modes)
_values = st.recursive(
    st.one_of(st.booleans(), st.integers(), _floats, _texts),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_texts, inner, max_size=2),
    max_leaves=4,
)
_parameters = st.dictionaries(st.sampled_from(["mass", "k", "type", "models"]), _values, max_size=2)


def _matrix(rows: int, columns: int) -> st.SearchStrategy[list[list[float]]]:
    row = st.lists(_floats, min_size=columns, max_size=columns)
    return st.lists(row, min_size=rows, max_size=rows)


@st.composite
def _state_spaces(draw: st.DrawFn) -> StateSpace:
    inputs, outputs = draw(st.lists(_ports, max_size=2)), draw(st.lists(_bare, max_size=2))
    n, m, p = draw(st.integers(0, 2)), len(inputs), len(outputs)
    return StateSpace(
        draw(_matrix(n, n)),
        draw(_matrix(n, m)),
        draw(_matrix(p, n)),
        draw(_matrix(p, m)),
        draw(_matrix(1, n))[0],
        inputs,
        outputs,
        draw(st.sampled_from(["exact", "rk4", "ab2"])),
        draw(st.none() | _durations),
    )


@st.composite
def _coded(draw: st.DrawFn) -> Any:
    inputs = draw(
        st.lists(_ports.map(lambda port: Port(port.name, port.unit)), max_size=2, unique_by=lambda p: p.name)
    )
    outputs = draw(st.lists(_bare, max_size=2, unique_by=lambda port: port.name))
    folder = draw(st.sampled_from(["", "plants", "/abs/plants"]))
    parameters = draw(_parameters)
    match draw(st.sampled_from(["python", "ode", "function", "table"])):
        case "python":
            given_inputs = draw(st.none() | st.just(inputs))
            period = draw(st.none() | _durations)
            return Python("plant.py:Tank", given_inputs, outputs, period, folder=folder, **parameters)
        case "ode":
            reacts = {port.name: [u.name for u in inputs[:1]] for port in outputs}
            feedthrough = draw(st.sampled_from([None, {}, reacts]))
            return Ode(
                "p:f", "p:g", [0.5], inputs, outputs, feedthrough=feedthrough, folder=folder, **parameters
            )
        case "function":
            return Function("p:f", outputs, folder=folder)
    times = sorted(draw(st.lists(_floats, min_size=1, max_size=3)))
    return Table(times, draw(_matrix(len(times), len(outputs))), "hold", outputs, "error")


@st.composite
def _composites(draw: st.DrawFn, depth: int = 2) -> Composite:
    leaves = _state_spaces() | _coded()
    inner = leaves | _composites(depth - 1) if depth else leaves
    models = draw(st.dictionaries(_names, inner, max_size=3))
    outputs = draw(st.lists(_ports, max_size=2))
    ends = st.builds("{}.{}".format, _names, _texts)
    targets = draw(
        st.lists(ends | st.sampled_from([port.name for port in outputs] or ["a.b"]), max_size=3, unique=True)
    )
    connections = [Connection(draw(ends), target, draw(st.none() | _extrapolators)) for target in targets]
    scenario = Scenario(models, connections, draw(st.lists(_ports, max_size=1)), outputs, draw(_lists))
    start = draw(st.sampled_from(["window", "cold"]))
    return Composite(
        scenario, draw(_durations), draw(_orchestrators), draw(_extrapolators), start, draw(st.booleans())
    )  # type: ignore[arg-type]


_experiments = st.builds(
    Experiment,
    _composites(),
    start=st.fractions(-10, 0),
    stop=st.none() | _durations,
    every=st.none() | st.just("micro") | _durations,
    name=_texts,
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(_experiments)
def test_what_is_written_is_read_back(experiment: Experiment) -> None:
    text = dumps(experiment)
    again = loads(text, check=False)
    assert again == experiment
    assert list(again.composite.scenario.models) == list(experiment.composite.scenario.models)
    assert dumps(again) == text  # tells -0.0 from 0.0, which == does not


@given(st.fractions(min_value=Fraction(1, 10**15)))
def test_durations_are_exact(step: Fraction) -> None:
    assert loads(dumps(Composite(Scenario({}), step)), check=False).composite.step == step
