"""Tables and CSV files that drive integers, booleans and enumerations, in Python and in files."""

import numpy as np
import pytest

import hocket as hk
from fmus.build import build
from hocket.errors import FileError, ScenarioError
from hocket.files import toml

COLUMNS = {"n": [1, 2, -3], "on": [0, 1, 0], "level": [1, 3, 2], "x": [0.0, 1.0, 3.0]}
TYPES = {"n": "integer", "on": "boolean", "level": "enumeration"}
LINKS = {"f.u_int": "s.n", "f.u_bool": "s.on", "f.u_enum": "s.level", "f.u_real": "s.x"}
ROWS = "t,n,on,level,x\n0,1,false,1,0\n1,2,TRUE,3,1\n2,-3,0,2,3\n"


def table(**options):
    return hk.Table([0, 1, 2], COLUMNS, types=TYPES, **options)


def csv(folder, **options):
    (folder / "rows.csv").write_text(ROWS)
    return hk.Csv("rows.csv", "t", types=TYPES, folder=folder, **options)


def composite(folder, source, version=2):
    fmu = hk.Fmu(build("types", version, folder=folder))
    return hk.Composite(hk.Scenario({"s": source, "f": fmu}, LINKS), "500 ms", hk.GaussSeidel())


@pytest.mark.parametrize("kind", ["table", "csv"])
@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("engine", ["native", "interpreter"])
def test_they_drive_inputs_of_their_types_and_are_held(tmp_path, kind, version, engine):
    source = table() if kind == "table" else csv(tmp_path)
    run = hk.run(composite(tmp_path, source, version), 2, engine=engine)
    # at 1 s and at 2 s a row before the jump and one after it
    np.testing.assert_array_equal(run["s.n"].t, [0, 0.5, 1, 1, 1.5, 2, 2])
    np.testing.assert_array_equal(run["s.n"].values, [1, 1, 1, 2, 2, 2, -3])
    np.testing.assert_array_equal(run["s.x"].values, [0.0, 0.5, 1.0, 1.0, 2.0, 3.0, 3.0])
    # after a step: n + 1, on != true, max(level, 2), of what holds in it: a jump at its end is not seen yet
    np.testing.assert_array_equal(run["f.y_int"].values[1:], [2, 2, 2, 3, 3, 3])
    np.testing.assert_array_equal(run["f.y_bool"].values[1:], [1, 1, 1, 0, 0, 0])
    np.testing.assert_array_equal(run["f.y_enum"].values[1:], [2, 2, 2, 3, 3, 3])


@pytest.mark.parametrize("kind", ["table", "csv"])
def test_files_keep_the_types(tmp_path, kind):
    level = composite(tmp_path, table() if kind == "table" else csv(tmp_path))
    toml.write(hk.Experiment(level, stop=2), tmp_path / "typed.toml")
    assert 'types = { n = "integer", on = "boolean", level = "enumeration" }' in (
        (tmp_path / "typed.toml").read_text()
    )
    again = hk.run(tmp_path / "typed.toml")
    np.testing.assert_array_equal(again["f.y_int"].values, hk.run(level, 2)["f.y_int"].values)


def test_truths_are_boolean():
    made = hk.Table([0, 1], {"on": [False, True], "off": np.array([True, False]), "x": [0, 1]})
    assert [port.type for port in made.outputs] == ["boolean", "boolean", "real"]


@pytest.mark.parametrize(
    ("columns", "types", "told"),
    [
        ({"n": [1, 1.5]}, {"n": "integer"}, "the column `n` of a `Table` has the value 1.5"),
        ({"on": [0, 2]}, {"on": "boolean"}, "the column `on` of a `Table` has the value 2"),
        ({"n": [1, 2]}, {"m": "integer"}, "there is no column `m`"),
        ({"n": [1, 2]}, {"n": "whole"}, "`type` cannot be 'whole'"),
    ],
)
def test_values_that_do_not_suit_are_refused(columns, types, told):
    with pytest.raises(ScenarioError) as error:
        hk.Table([0, 1], columns, types=types)
    assert error.value.faults[0].what.startswith(told)


def test_a_cell_that_does_not_suit_is_refused_with_its_line(tmp_path):
    (tmp_path / "rows.csv").write_text("t,n\n0,1\n1,1.5\n")
    source = hk.Csv(tmp_path / "rows.csv", "t", types={"n": "integer"})
    with pytest.raises(FileError) as error:
        source.open()
    assert (error.value.faults[0].what, error.value.faults[0].place.line) == (
        "`1.5` in column `n` is not of the type integer",
        3,
    )


def test_a_name_in_a_column_of_numbers_is_told_what_the_column_holds(tmp_path):
    (tmp_path / "rows.csv").write_text("t,level\n0,high\n1,2\n")
    source = hk.Csv(tmp_path / "rows.csv", "t", types={"level": "enumeration"})
    with pytest.raises(FileError) as error:
        source.open()
    assert error.value.faults[0].expected == "the numbers of its items, which are whole"


def test_a_column_of_reals_says_how_to_drive_an_integer(tmp_path):
    with pytest.raises(ScenarioError, match=r'types = \{ n = "integer" \}'):
        hk.run(composite(tmp_path, hk.Table([0, 1, 2], COLUMNS)), 2)
