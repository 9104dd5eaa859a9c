"""Tables, CSV files and functions of time: values, slopes, jumps, ends, and every fault with its words."""

import math

import numpy as np
import pytest

from hocket.errors import FileError, ScenarioError, SimulatorError
from hocket.model.ports import Port
from hocket.model.protocols import Capabilities
from hocket.simulators.sources import Csv, Function, Table

U = np.zeros((1, 0))


def opened(model, t=0.0):
    simulator = model.open()
    simulator.start(t)
    return simulator


def values(model, *times):
    simulator = opened(model)
    return [list(simulator.output(t, U)) for t in times]


def slopes(model, *times):
    simulator = opened(model)
    return [list(simulator.slope(t, U)) for t in times]


def test_linear_interpolation():
    table = Table([0, 1, 3], {"a [N]": [0.0, 2.0, 2.0], "b": [1.0, 0.0, 4.0]})
    assert table.outputs == (Port("a", "N"), Port("b"))
    assert table.inputs == ()
    assert table.capabilities == Capabilities(rollback=True, slopes=True)
    assert values(table, 0.0, 0.25, 1.0, 2.0) == [[0.0, 1.0], [0.5, 0.75], [2.0, 0.0], [2.0, 2.0]]
    assert slopes(table, 0.0, 0.5, 1.0, 2.9) == [[2.0, -1.0], [2.0, -1.0], [0.0, 2.0], [0.0, 2.0]]


def test_hold():
    table = Table([0, 1, 3], {"a": [0.0, 2.0, 5.0]}, interpolation="hold")
    assert values(table, 0.0, 0.99, 1.0, 2.99, 3.0) == [[0.0], [0.0], [2.0], [2.0], [5.0]]
    assert slopes(table, 0.5, 1.0) == [[0.0], [0.0]]


def test_a_repeated_time_is_a_jump():
    table = Table([0, 1, 1, 1, 2], {"a": [0.0, 1.0, 7.0, 5.0, 6.0]})
    assert values(table, math.nextafter(1.0, 0.0), 1.0, 1.5) == [[pytest.approx(1.0)], [5.0], [5.5]]
    assert slopes(table, 0.5, 1.0) == [[1.0], [1.0]]


def test_the_ends_hold():
    table = Table([1, 2], {"a": [3.0, 5.0]})
    assert values(table, -1.0, 2.0, 9.0) == [[3.0], [5.0], [5.0]]
    assert slopes(table, -1.0, 2.0, 9.0) == [[0.0], [0.0], [0.0]]


def test_outside_is_an_error_if_asked():
    simulator = opened(Table([1, 2], {"a": [3.0, 5.0]}, outside="error"))
    assert simulator.output(2.0, U) == [5.0]
    with pytest.raises(SimulatorError, match=r"no value at t = 2.5 s(.|\n)*1 s to 2 s(.|\n)*hold"):
        simulator.output(2.5, U)
    with pytest.raises(SimulatorError, match="no value at t = 0 s"):
        simulator.slope(0.0, U)


def test_rows_and_columns_with_names_beside():
    table = Table([0, 1], [[1.0, 2.0], [3.0, 4.0]], outputs=["a", "b [m]"])
    assert values(table, 0.0, 1.0) == [[1.0, 2.0], [3.0, 4.0]]
    assert table == Table(np.array([0.0, 1.0]), {"a": [1, 3], "b [m]": [2, 4]})
    assert hash(table) == hash(Table([0.0, 1.0], {"a": [1, 3], "b [m]": [2, 4]}))
    assert table != Table([0, 1], {"a": [1, 3], "b [m]": [2, 5]})
    assert Table([0], {"a": [1]}, outputs=["other"]).outputs == (Port("other"),)


def test_a_table_keeps_its_own_numbers():
    times, column = np.array([0.0, 1.0]), np.array([1.0, 2.0])
    table = Table(times, {"a": column})
    times[1], column[1] = 9.0, 9.0
    assert values(table, 1.0) == [[2.0]]


def test_times_may_be_as_far_apart_as_numbers_are():
    assert values(Table([-1.5e308, 1.5e308], {"a": [1.0, 2.0]}, "hold"), 0.0) == [[1.0]]


@pytest.mark.parametrize(
    ("t", "columns", "more", "words"),
    [
        ([0, 2, 1], {"a": [1, 2, 3]}, {}, "decrease: 1 s after 2 s"),
        ([0, 1], {"a": [1, 2, 3]}, {}, "2 times"),
        ([0, 1], {"a": [1, 2], "b": [1]}, {}, "unequal length"),
        ([0, 1], {"a": [1, "x"]}, {}, "is not a number"),
        ([0, 1], {"a": ["1", "2"]}, {}, "is not a number"),
        ([0, math.inf], {"a": [1, 2]}, {}, "finite"),
        ([], {"a": []}, {}, "0 times"),
        ([0, 1], [[1], [2]], {}, "have no names"),
        ([0, 1], [[1], [2]], {"outputs": ["a", "b"]}, "a column for each of 2 outputs"),
        ([0, 1], {"a": [1, 2], "a [m]": [1, 2]}, {}, "two outputs are named `a`"),
        ([0], {"a": [1]}, {"interpolation": "liner"}, "did you mean `linear`"),
        ([0], {"a": [1]}, {"outside": "eror"}, "did you mean `error`"),
    ],
)
def test_tables_that_make_no_sense(t, columns, more, words):
    with pytest.raises(ScenarioError, match=words):
        Table(t, columns, **more)


@pytest.fixture
def file(tmp_path):
    def write(text, name="drive.csv"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def test_a_csv_file(file):
    model = Csv(file("time,force [N],x\n0,1,5\n\n0.5,2,6\n0.5,3,6\n1,4,7\n"))
    assert model.outputs == (Port("force", "N"), Port("x"))
    assert values(model, 0.25, 0.5, 0.75) == [[1.5, 5.5], [3.0, 6.0], [3.5, 6.5]]
    assert slopes(model, 0.5) == [[2.0, 2.0]]
    assert Csv(model.path, interpolation="hold").open().output(0.25, U) == [1.0, 5.0]


def test_columns_are_chosen_and_renamed(file):
    path = file("t;wheel speed [rad/s];force [N]\n0;1;5\n1;2;6\n")
    chosen = Csv(path, "t", ["force"])
    assert chosen.outputs == (Port("force", "N"),)
    assert values(chosen, 1.0) == [[6.0]]
    renamed = Csv(path, "t", {"speed [rad/s]": "wheel speed", "f": "force [N]"})
    assert renamed.outputs == (Port("speed", "rad/s"), Port("f"))
    assert values(renamed, 0.0) == [[1.0, 5.0]]
    assert Csv(path, "t").outputs == (Port("wheel speed", "rad/s"), Port("force", "N"))
    with pytest.raises(FileError, match=r"cannot name a port(.|\n)*columns="):
        Csv(file("t;a=b\n0;1\n", "odd.csv"), "t")


def test_units_of_time_are_converted_without_drift(file):
    rows = "".join(f"{k},{k}\n" for k in range(1000))
    times = opened(Csv(file(f"time [ms],a\n{rows}"))).times
    assert times == [k / 1000 for k in range(1000)]
    minutes = Csv(file("time [min],a\n0,0\n1,6\n", "minutes.csv"))
    assert values(minutes, 10.0) == [[pytest.approx(1.0)]]
    with pytest.raises(FileError, match="unit of time"):
        Csv(file("time [kg],a\n0,0\n", "odd.csv")).open()


def test_a_file_from_a_spreadsheet(tmp_path):
    (tmp_path / "drive.csv").write_bytes(b'\xef\xbb\xbf"time [s]"\t"a"\r\n0\t 1\r\n1\t2 \r\n')
    model = Csv("drive.csv", folder=tmp_path)
    assert values(model, 0.5) == [[1.5]]
    assert model == Csv("drive.csv", folder=str(tmp_path))
    assert hash(model) == hash(Csv("drive.csv", folder=tmp_path))


def test_a_missing_file_is_named_at_once(file):
    beside = file("time,a\n0,1\n")
    with pytest.raises(ScenarioError, match=r"there is no file `.*drvie.csv`(.|\n)*did you mean `drive.csv`"):
        Csv("drvie.csv", folder=beside.parent)
    with pytest.raises(FileError, match="is not a file"):
        Csv(beside.parent)
    with pytest.raises(FileError, match="the file is empty"):
        Csv(file("\n\n", "empty.csv"))


@pytest.mark.parametrize(
    ("header", "more", "words"),
    [
        ("tiem,a", {}, "no column `time`(.|\n)*line 1(.|\n)*did you mean `tiem`"),
        ("time,force", {"columns": ["forse"]}, "no column `forse`(.|\n)*did you mean `force`"),
        ("time,a,a", {}, "2 columns are called `a`"),
        ("time,a [m],a [mm]", {"columns": ["a"]}, "2 columns are called `a`"),
        ("time,time,a", {}, "2 columns are called `time`"),
        ("time,a", {"interpolation": "cubic"}, "`interpolation` cannot be 'cubic'"),
    ],
)
def test_headers_that_make_no_sense(file, header, more, words):
    with pytest.raises(ScenarioError, match=words):
        Csv(file(f"{header}\n0,1,2\n"), **more)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("0,1\n1\n", "1 fields(.|\n)*drive.csv, line 3(.|\n)*2, as in the header"),
        ("0,1\n\n1,2,3\n", "3 fields(.|\n)*drive.csv, line 4"),
        ("0,1\n1,two\n", "`two` in column `a`(.|\n)*drive.csv, line 3"),
        ("0,1\n,\n", "`` in column `time`(.|\n)*drive.csv, line 3"),
        ("0,nan\n", "not a finite number(.|\n)*line 2(.|\n)*another rate(.|\n)*ports of one rate"),
        ("1,1\n0.5,2\n", "the time decreases: 0.5 s after 1 s(.|\n)*line 3"),
        ("", "no rows"),
    ],
)
def test_rows_that_make_no_sense(file, rows, words):
    with pytest.raises(FileError, match=words):
        Csv(file(f"time,a\n{rows}")).open()


def test_a_file_that_shrank_since(file):
    model = Csv(file("time,a,b\n0,1,2\n"))
    file("time,a\n0,1\n")
    with pytest.raises(FileError, match="the header has changed"):
        model.open()


def test_a_function():
    model = Function(math.cos, ["y [m]"])
    assert model.outputs == (Port("y", "m"),)
    assert model.capabilities == Capabilities(rollback=True)
    simulator = opened(model)
    assert simulator.output(1.0, U) == math.cos(1.0)
    assert simulator.step(1.0, 0.25, U) == 1.25
    simulator.restore(simulator.save())
    simulator.close()
    assert model == Function(math.cos, ["y [m]"])
    assert len({model, Function(math.cos, ["y [m]"]), Function("math:cos", ["y [m]"])}) == 2


def test_a_function_named_by_text(tmp_path):
    (tmp_path / "wave.py").write_text("def two(t):\n    return t, 2 * t\n\nnumber = 1\n")
    assert values(Function("wave.py:two", ["a", "b"], folder=tmp_path), 3.0) == [[3.0, 6.0]]
    assert opened(Function("math:sin", ["y"])).output(1.0, U) == math.sin(1.0)
    with pytest.raises(ScenarioError, match="is not a function"):
        Function("wave.py:number", ["y"], folder=tmp_path).open()
    with pytest.raises(ScenarioError, match="is not a function"):
        Function(3.0, ["y"])
