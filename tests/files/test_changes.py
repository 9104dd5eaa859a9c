"""What differs between two scenarios, as lines; and files of which only these lines change."""

from dataclasses import replace

import pytest

import hocket as hk
from hocket.errors import FileError
from hocket.files import toml
from hocket.files.toml.line_changes import changes_in_text, line_changes, rewrite_text, scenario_tables
from hocket.model.experiment import Tuning
from hocket.model.extrapolators import Nepce, Polynomial

TEXT = """# a comment
step = 0.1   # of all
orchestrator = { type = "gauss-seidel", order = ["one", "two"] } # "#" here

[run]
stop = 5

[models.one]
type = "composite"
step = "50 ms"
[models.one.models.lag]
type = "state-space"
A = [[-1]]
B = [[1]]
C = [[1]]
inputs = ["u"]
outputs = ["y"]

[models.two]
type = "state-space"
A = [[-1]]
B = [[1]]
C = [[1]]
inputs = ["u"]
outputs = ["y"]

[connections] # input = output
one.lag.u = "two.y"
"two.u" = { from = "one.lag.y", gain = 2 }
"""


def changed(change):
    experiment = toml.loads(TEXT)
    after = replace(experiment, composite=change(experiment.composite))
    found = line_changes(scenario_tables(experiment), scenario_tables(after))
    text = rewrite_text(TEXT, found, after, "")
    return found, text, after


def test_nothing_changes():
    found, text, _ = changed(lambda composite: composite)
    assert found == []
    assert text == TEXT


def test_a_value_changes_and_its_comment_stays():
    found, text, after = changed(
        lambda composite: composite.with_changes(orchestrator=hk.GaussSeidel(["two", "one"]))
    )
    assert [(each.table, each.key) for each in found] == [("", "orchestrator")]
    assert text == TEXT.replace('["one", "two"]', '["two", "one"]')
    assert toml.loads(text).composite == after.composite
    (line,) = changes_in_text(TEXT, found)
    assert line.old == 'orchestrator = { type = "gauss-seidel", order = ["one", "two"] } # "#" here'
    assert list(line.diff_lines())[1].endswith('["two", "one"] } # "#" here')


def test_the_ends_of_lines_stay():
    experiment = toml.loads(TEXT)
    after = replace(
        experiment, composite=experiment.composite.with_changes(orchestrator=hk.GaussSeidel(["two", "one"]))
    )
    found = line_changes(scenario_tables(experiment), scenario_tables(after))
    text = rewrite_text(TEXT.replace("\n", "\r\n"), found, after, "")
    assert text == TEXT.replace('["one", "two"]', '["two", "one"]').replace("\n", "\r\n")


def test_what_is_not_in_the_text_is_added_to_its_table():
    found, text, after = changed(lambda composite: composite.with_changes(extrapolation=Polynomial(1)))
    assert [(each.key, each.old, each.new) for each in found] == [
        ("extrapolation", 'extrapolation = "hold"', 'extrapolation = "linear"')
    ]
    (line,) = changes_in_text(TEXT, found)
    assert list(line.diff_lines()) == ['+extrapolation = "linear"']
    before = '"#" here\n'
    assert text == TEXT.replace(before, f'{before}extrapolation = "linear"\n')
    assert toml.loads(text).composite == after.composite


def test_connections_and_levels_inside():
    def change(composite):
        connections = [replace(each, extrapolation=Nepce(0.5)) for each in composite.scenario.connections]
        inner = composite.scenario.models["one"].with_changes(
            step="25 ms", orchestrator=hk.Jacobi(outputs="stale")
        )
        scenario = composite.scenario.with_changes(connections=connections)
        return composite.with_scenario(scenario.with_models({**scenario.models, "one": inner}))

    found, text, after = changed(change)
    assert [(each.table, each.key) for each in found] == [
        ("models.one", "step"),
        ("models.one", "orchestrator"),
        ("connections", "one.lag.u"),
        ("connections", "two.u"),
    ]
    assert 'one.lag.u = { from = "two.y", extrapolation = { type = "nepce", alpha = 0.5 } }' in text
    assert text.startswith("# a comment\nstep = 0.1   # of all\n")
    assert text.count("\n") == TEXT.count("\n") + 1
    assert toml.loads(text).composite == after.composite


def test_what_cannot_be_changed_line_by_line_is_not():
    long = TEXT.replace(
        '"two.u" = { from = "one.lag.y", gain = 2 }', '[connections."two.u"]\nfrom = "one.lag.y"\ngain = 2'
    )
    experiment = toml.loads(long)
    connections = [
        replace(each, extrapolation=Nepce(0.5)) for each in experiment.composite.scenario.connections
    ]
    made = experiment.composite.with_scenario(
        experiment.composite.scenario.with_changes(connections=connections)
    )
    after = replace(experiment, composite=made)
    assert (
        rewrite_text(long, line_changes(scenario_tables(experiment), scenario_tables(after)), after, "")
        is None
    )


def test_the_table_of_a_search_comes_back():
    table = """
[tune]
step = ["50 ms", 0.1]
order = [["one", "two"], "two one"]
two.u.alpha = "0:1:3"
"two.u.extrapolation" = "hold"
objectives = ["rho", "delta"]
limits = { rho = 1 }
"""
    experiment = toml.loads(TEXT + table)
    assert experiment.tune == Tuning(
        {
            "step": "50 ms, 0.1",
            "order": "one two, two one",
            "two.u.alpha": "0:1:3",
            "two.u.extrapolation": "hold",
        },
        ("rho", "delta"),
        {"rho": 1.0},
    )
    assert toml.loads(toml.dumps(experiment)) == experiment


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("tune = 3", "a table of what may be chosen"),
        ("tune.step = true", 'values: "1 ms:100 ms:9:log"'),
        ("tune.limits = 3", "limits = { rho = 1, work = 2 }"),
        ('tune.limits.rho = "x"', "a number"),
        ('tune.objectives = "rho"', "a list of texts"),
    ],
)
def test_wrong_tables_are_told_with_their_line(line, told):
    with pytest.raises(FileError) as error:
        toml.loads(f"{line}\n{TEXT}")
    assert told in str(error.value)
    assert "line 1" in str(error.value)
