"""What is wrong with a scenario file is told all at once, each fault with its line."""

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from files.car import CAR
from hocket.errors import Fault, FileError, Place
from hocket.files.toml import loads, read


def faults(text: str, **options: Any) -> list[Fault]:
    with pytest.raises(FileError) as caught:
        loads(dedent(text), **options)
    return list(caught.value.faults)


def fault(text: str, **options: Any) -> Fault:
    (only,) = faults(text, **options)
    return only


def test_all_faults_are_told_at_once_in_order(tmp_path: Path) -> None:
    path = tmp_path / "car.toml"
    path.write_text(
        CAR.replace("step", "stpe", 1)
        .replace('"gauss-seidel"', '"gauss-sidel"')
        .replace('stop = "10 s"', 'stop = "10 parsec"')
        .replace("A = [[0, 1], [-1, 0]]", 'A = [[0, 1], [-1, "0"]]')
        .replace("left.x =", "left.y =")
        .replace('right.mass.force = "left.force"', 'right.mass.forse = "left.fors"')
    )
    with pytest.raises(FileError) as caught:
        read(path)
    assert str(caught.value) == dedent("""\
        6 faults:
        1. there is no key `stpe` in a scenario
             where:    car.toml, line 2
             try:      did you mean `step`?
        2. there is no orchestrator `gauss-sidel`
             where:    car.toml, line 3
             try:      did you mean `gauss-seidel`?
        3. `stop` is the text "10 parsec"
             where:    car.toml, line 8
             expected: a duration such as "2.5 ms", "1/3 s" or 0.01
        4. `A[1][1]` is the text "0"
             where:    car.toml, line 26
             expected: a number
        5. `left` has no output `fors`
             where:    car.toml, line 34
             try:      did you mean `force`?
        6. `left` has no input `y`
             where:    car.toml, line 35
             try:      one of `x`, `v`""")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[models]",
            """
            `step` is missing in a scenario
              expected: the macro step, such as "10 ms"
            """,
        ),
        (
            "step = 1",
            """
            `models` is missing in a scenario
              expected: by name: [models.left]
            """,
        ),
        (
            "step = 1\nmodels = 3",
            """
            `models` is the number 3
              where:    line 2
              expected: a table for each model: [models.left]
            """,
        ),
        (
            "step = true\n[models]",
            """
            `step` is true
              where:    line 1
              expected: a duration such as "2.5 ms", "1/3 s" or 0.01
            """,
        ),
        (
            "step = -1\n[models]",
            """
            the step -1 s is not positive
              where:    line 1
              expected: a step above zero
            """,
        ),
        (
            "step = 1\n[model.a]\n[models]",
            """
            there is no key `model` in a scenario
              where:    line 2
              try:      did you mean `models`?
            """,
        ),
        (
            "step = 1\nrecord = '*'\n[models]",
            """
            `record` is the text "*"
              where:    line 2
              expected: a list of texts
            """,
        ),
        (
            "step = 1\nextrapolation = 'lineer'\n[models]",
            """
            there is no extrapolation `lineer`
              where:    line 2
              try:      did you mean `linear`?
            """,
        ),
        (
            "step = 1\nextrapolation = 'polynomial'\n[models]",
            """
            `degree` is missing in `polynomial`
              where:    line 2
              expected: 0 to 8
            """,
        ),
        (
            "step = 1\n[extrapolation]\ntype = 'polynomial'\ndegree = 1.5\n[models]",
            """
            `degree` is the number 1.5
              where:    line 4
              expected: a whole number
            """,
        ),
        (
            "step = 1\nextrapolation = { degree = 1 }\n[models]",
            """
        `type` is missing in `extrapolation`
          where:    line 2
          expected: the kind of extrapolation
          try:      one of `hold`, `latch`, `linear`, `quadratic`, `cubic`, `polynomial`, `hermite`, `nepce` and 1 more
        """,  # noqa: E501
        ),
        (
            "step = 1\nextrapolation = 1\n[models]",
            """
            `extrapolation` is the number 1
              where:    line 2
              expected: a word or a table, as in { type = "hold", ... }
            """,
        ),
        (
            "step = 1\norchestrator = { type = 'jacobi', outputs = 'stail' }\n[models]",
            """
            `outputs` is the text "stail"
              where:    line 2
              expected: "stale" or "consistent"
              try:      did you mean `stale`?
            """,
        ),
        (
            "step = 1\norchestrator = { type = 3 }\n[models]",
            """
            `type` is the number 3
              where:    line 2
              expected: the kind of orchestrator, a text in quotes
            """,
        ),
        (
            "step = 1\n[models.a]\ntype = 'gian'",
            """
            there is no model of type `gian`
              where:    line 3
              try:      did you mean `gain`?
            """,
        ),
        (
            "step = 1\n[models]\na = 'gain'",
            """
            `a` is the text "gain"
              where:    line 3
              expected: a table, as in { type = "state-space", ... }
            """,
        ),
        (
            "step = 1\n[models.a]\ntype = 'gain'",
            """
            `gain` is missing in `gain`
              where:    line 2
              expected: y = gain u
            """,
        ),
        (
            "step = 1\n[models.'a.b']\ntype = 'gain'\ngain = 1",
            """
            `a.b` cannot name a model
              where:    line 2
              expected: letters, digits, _ and -, no dots: dots join paths
            """,
        ),
        (
            "step = 1\n[models.a]\ntype = 'sum'\ninputs = ['a']\ngains = [1, 2]",
            """
            2 `gains` for 1 inputs
              where:    line 5
              expected: one for each input
            """,
        ),
        (
            "step = 1\n[models.a]\ntype = 'state-space'\nA = [[1]]\nB = [\n[1, 2]]\ninputs = ['u']",
            """
            a StateSpace cannot be built: `B` has shape 1 x 2, expected 1 x 1
              where:    line 5
              expected: A n x n, B n x 1, C 0 x n, D 0 x 1, n in x0
            """,
        ),
        (
            "step = 1\n[models.a]\ntype = 'state-space'\ninputs = [\n'ok = 0',\n'force [N'\n]",
            """
            `force [N` is not a port
              where:    line 6
              expected: text such as "force [N]"
            """,
        ),
        (
            "step = 1\n[models.a]\ntype = 'state-space'\ninputs = ['u = 0', 3]",
            """
            `inputs[1]` is the number 3
              where:    line 4
              expected: text such as "force [N]", or a table: { name = ... }
            """,
        ),
        (
            "step = 1\n[models.a]\ntype = 'state-space'\ninputs = 'u = 0'",
            """
            `inputs` is the text "u = 0"
              where:    line 4
              expected: a list of ports: ["force [N]", "x [m] = 0.5"]
            """,
        ),
        (
            "step = 1\n[models.a]\ntype = 'state-space'\ninputs = [{ nam = 'u' }]",
            """
            there is no key `nam` in a port
              where:    line 4
              try:      did you mean `name`?
            """,
        ),
        (
            "step = 1\n[models]\n[run]\nstop = -1",
            """
            the run stops before it starts
              where:    line 4
              expected: `stop` after `start`, which is 0 if left out
            """,
        ),
        (
            "step = 1\n[models]\n[run]\nevery = 'mikro'",
            """
            `every` is the text "mikro"
              where:    line 4
              expected: a duration such as "2.5 ms", "1/3 s" or 0.01
            """,
        ),
        (
            "step = 1\n[models]\n[connections]\na.b = 3",
            """
            `a.b` is the number 3
              where:    line 4
              expected: an output such as "left.force", or a table: { from = ... }
            """,
        ),
        (
            "step = 1\n[models]\n[connections]\na.b = {}",
            """
            `a.b` is an empty table
              where:    line 4
              expected: an output such as "left.force", or a table: { from = ... }
            """,
        ),
        (
            "step = 1\n[models]\n[connections]\na.b = { form = 'c.d', extrapolation = 'hold' }",
            """
            there is no key `form` in a connection
              where:    line 4
              try:      did you mean `from`?
            """,
        ),
        (
            "step = 1\nconnections = 'a'\n[models]",
            """
            `connections` is the text "a"
              where:    line 2
              expected: a table of inputs: right.force = "left.force"
            """,
        ),
    ],
)
def test_faults_of_keys_and_types(text: str, message: str) -> None:
    with pytest.raises(FileError) as caught:
        loads(text)
    assert str(caught.value) == dedent(message).strip()


LEVELS = """\
step = "10 ms"
[models.body]
type = "gain"
gain = 1
unit = "N"
[models.axle]
type = "composite"
step = "5 ms"
inputs = ["f [N]"]
outputs = ["y"]
[models.axle.models.wheel]
type = "gain"
gain = 1
[models.axle.connections]
wheel.u = "f"
y = "wheel.y"
[connections]
axle.f = "body.y"
body.u = "axle.y"
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"axle.y"', '"axel.y"', Fault("there is no model `axel`", "line 19", "", "did you mean `axle`?")),
        ('"axle.y"', '"axle.yy"', Fault("`axle` has no output `yy`", "line 19", "", "did you mean `y`?")),
        ("wheel.u", "wheel.w", Fault("`wheel` has no input `w`", "line 15", "", "one of `u`")),
        ('y = "wheel.y"', "", Fault("nothing drives the output `y`", "line 10", "a connection to it")),
        (
            "body.u =",
            "axle.wheel.u =",
            Fault(
                "`axle` has no input `wheel.u`",
                "line 19",
                "",
                "it is driven inside `axle` already, by `f`: one source per input",
            ),
        ),
        (
            'body.u = "axle.y"',
            "",
            Fault(
                "nothing drives `body.u`",
                "line 2",
                "a connection or a start value",
                'connect an output to it, or give it a start value: "u = 0.0"',
            ),
        ),
        (
            'f [N]"',
            'f [wibble]"',
            Fault(
                "`wibble` is not a known physical unit",
                "line 18",
                "`body.y` and `axle.f` in units that convert",
            ),
        ),
        (
            '"5 ms"',
            '"3 ms"',
            Fault(
                "the step 3 ms of `axle` does not divide the step 10 ms around it",
                "line 8",
                "the outer step divided by a whole number, or a multiple of it",
                "2.5 ms or 1/300 s",
            ),
        ),
        (
            'step = "10 ms"',
            'step = "10 ms"\norchestrator.type = "gauss-seidel"\norchestrator.order = ["body", "axel"]',
            None,
        ),
    ],
)
def test_faults_of_the_scenario_have_lines(old: str, new: str, expected: Fault | None) -> None:
    found = faults(LEVELS.replace(old, new))
    if expected is None:
        assert [(one.what, one.where) for one in found] == [
            ("the order names `axel`, which is not a model", "line 3"),
            ("the order leaves out `axle`", "line 3"),
        ]
    else:
        assert list(map(str, found)) == [str(expected)]
    loads(LEVELS.replace(old, new), check=False)


def test_two_sources() -> None:
    twice = 'step = 1\n[models]\n[connections]\na.b = "c.d"\nx.y = "c.d"\na.b = "e.f"\n'
    hint = "add them in a model of type `sum` and connect that"
    assert fault(twice) == Fault(
        "`a.b` has two sources, in line 4 and line 6", "line 6", "one source per input", hint
    )
    quoted = twice.replace('a.b = "e', '"a.b" = "e')
    assert fault(quoted, check=False) == Fault(
        "`a.b` has two sources, `c.d` and `e.f`", "line 6", "one source per input", hint
    )
    inner = 'step = 1\n[models.m.connections]\na.b = "c.d"\na.b = "e.f"\n'
    assert fault(inner).what == "`a.b` has two sources, in line 3 and line 4"


def test_a_key_given_twice() -> None:
    assert fault("step = 1\nstep = 2") == Fault(
        "`step` is given twice, in line 1 and line 2", "line 2", "each key once"
    )
    assert (
        fault("[models.a]\n[models.b]\n[models.a]").what == "`models.a` is given twice, in line 1 and line 3"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "[models]\nstep = 10 ms # x",
            Fault(
                "this is not TOML, expected newline or end of document after a statement: `step = 10 ms # x`",
                "line 2",
                "",
                'put the duration in quotes: "10 ms"',
            ),
        ),
        (
            "step = jacobi",
            Fault("this is not TOML, invalid value: `step = jacobi`", "line 1", "", "text stands in quotes"),
        ),
        ("\n\na = [1,\n2", Fault("this is not TOML, unclosed array: `2`", "line 4")),
        ("a = " + "[" * 5000, None),
    ],
)
def test_syntax(text: str, expected: Fault | None) -> None:
    assert fault(text) == (expected or Fault("tables or lists are nested too deeply"))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "car.toml").write_bytes(b'step = "1 s"\n# \xe9t\xe9\n')
    with pytest.raises(FileError) as caught:
        read(tmp_path / "car.toml")
    assert caught.value.faults == (
        Fault(
            "`car.toml` is not UTF-8 text: byte 0xe9",
            "car.toml, line 2",
            "UTF-8",
            "save it as UTF-8 in your editor",
        ),
    )
    with pytest.raises(FileError) as caught:
        read(tmp_path / "cra.toml")
    assert caught.value.faults == (
        Fault(
            f"there is no file `{tmp_path / 'cra.toml'}`",
            Place(file="cra.toml"),
            "",
            "did you mean `car.toml`?",
        ),
    )
    with pytest.raises(FileError) as caught:
        read(tmp_path)
    assert caught.value.faults == (
        Fault(f"`{tmp_path}` is a folder", Place(file=tmp_path.name), "a TOML file"),
    )


def _include(path: Path, *files: str) -> None:
    levels = [
        f'[models.level{number}]\ntype = "composite"\nfile = "{file}"\n' for number, file in enumerate(files)
    ]
    path.write_text("step = 1\n" + "".join(levels) + "[models.g]\ntype = 'sum'\ninputs = []\n")


def test_files_inside_files(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    _include(tmp_path / "car.toml", "parts/axle.toml", "parts/wheel.toml")
    _include(tmp_path / "parts" / "axle.toml", "wheel.toml")
    _include(tmp_path / "parts" / "wheel.toml")
    car = read(tmp_path / "car.toml").composite
    wheel = read(tmp_path / "parts" / "wheel.toml").composite
    axle: Any = car.scenario.models["level0"]
    assert axle.scenario.models["level0"] == wheel == car.scenario.models["level1"]


def test_faults_in_files_inside_files(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    _include(tmp_path / "car.toml", "parts/axle.toml", "parts/whel.toml")
    _include(tmp_path / "parts" / "wheel.toml")
    (tmp_path / "parts" / "axle.toml").write_text(
        'step = "2 s"\n[models.g]\ntype = "gain"\ngain = 1\n[connections]\ng.v = "g.y"\ng.u = 3'
    )
    with pytest.raises(FileError) as caught:
        read(tmp_path / "car.toml")
    assert [(one.what, one.where, one.hint) for one in caught.value.faults] == [
        ("`g` has no input `v`", "parts/axle.toml, line 6", "one of `u`"),
        ("`g.u` is the number 3", "parts/axle.toml, line 7", ""),
        (
            f"there is no file `{tmp_path / 'parts' / 'whel.toml'}`",
            "car.toml, line 7",
            "did you mean `wheel.toml`?",
        ),
    ]


def test_the_step_of_a_file_inside_is_blamed_there(tmp_path: Path) -> None:
    (tmp_path / "car.toml").write_text('step = 1\n[models.axle]\ntype = "composite"\nfile = "axle.toml"\n')
    (tmp_path / "axle.toml").write_text('[models]\nt = { type = "sum", inputs = [] }\n')
    with pytest.raises(FileError) as caught:
        read(tmp_path / "car.toml")
    assert [(one.what, one.where) for one in caught.value.faults] == [
        ("`step` is missing in a scenario", "axle.toml")
    ]
    (tmp_path / "axle.toml").write_text('step = "0.3 s"\n[models]\nt = { type = "sum", inputs = [] }\n')
    with pytest.raises(FileError, match=r"axle.toml, line 1"):
        read(tmp_path / "car.toml")


def test_a_cycle_of_files(tmp_path: Path) -> None:
    _include(tmp_path / "car.toml", "a.toml")
    _include(tmp_path / "a.toml", "b.toml")
    _include(tmp_path / "b.toml", "a.toml")
    with pytest.raises(FileError) as caught:
        read(tmp_path / "car.toml")
    assert caught.value.faults == (
        Fault(
            "a cycle of composites: `a.toml` includes `b.toml` includes `a.toml`",
            "b.toml, line 4",
            "files that do not include themselves",
        ),
    )
    _include(tmp_path / "a.toml", "../" + tmp_path.name + "/a.toml")
    with pytest.raises(FileError, match=r"a cycle of composites: `a.toml` includes `a.toml`"):
        read(tmp_path / "a.toml")


def test_an_included_file_has_no_other_keys(tmp_path: Path) -> None:
    _include(tmp_path / "b.toml")
    text = 'step = 1\n[models.b]\ntype = "composite"\nfile = "b.toml"\nstep = 2\n'
    assert fault(text, folder=tmp_path) == Fault(
        "there is no key `step` in `composite`", "line 5", "", "one of `type`, `file`"
    )
    assert fault(text.replace('"b.toml"', "3").replace("step = 2", ""), folder=tmp_path) == Fault(
        "`file` is the number 3", "line 4", "the path of a scenario file"
    )


CODED = """\
step = 1
[models.tank]
type = "python"
class = "plant.py:Tank"
inputs = ["q = 0"]
[models.tank.parameters]
area = 2
"""


@pytest.mark.parametrize(
    ("old", "new", "what", "where", "hint"),
    [
        ("plant.py:Tank", "plant.py:Tnak", "`plant.py` has no `Tnak`", "line 4", "did you mean `Tank`?"),
        ("plant.py:Tank", "palnt.py:Tank", "there is no file", "line 4", "did you mean `plant.py`?"),
        ("plant.py:Tank", "plant.py:rate", "`plant.py:rate` is not a class", "line 4", ""),
        ("plant.py:Tank", "Tank", "`Tank` does not say what to load and from where", "line 4", ""),
        ("area", "aera", "`Tank` has no parameter `aera`", "line 7", "did you mean `area`?"),
        ("area", "period", "`period` cannot be the name of a parameter", "line 7", ""),
        ("python", "ode", "there is no key `class` in `ode`", "line 4", None),
    ],
)
def test_faults_of_code(folder: Path, old: str, new: str, what: str, where: str, hint: str | None) -> None:
    found = faults(CODED.replace(old, new), folder=folder)[0 if old != "python" else 1]
    assert found.what.startswith(what)
    assert found.where == where
    assert hint is None or found.hint == hint


@pytest.mark.parametrize(
    ("parameters", "what", "where", "hint"),
    [
        ("kk = 2", "`kk` is not a parameter of `f` and `g`", "line 8", "did you mean `k`?"),
        ("metod = 2", "`metod` is not a parameter of `f` and `g`", "line 8", "did you mean `method`?"),
        ("", "`f` needs the parameter `size`", "line 4", "`Ode(..., size=...)`"),
    ],
)
def test_parameters_that_equations_do_not_take(
    folder: Path, parameters: str, what: str, where: str, hint: str
) -> None:
    f = "def f(t, x, u, k=1.0):" if parameters else "def f(t, x, u, size, k=1.0):"
    (folder / "plant.py").write_text(f"{f}\n    return -x\n\n\ndef g(t, x, u, k=1.0):\n    return x\n")
    found = fault(
        'step = 1\n[models.m]\ntype = "ode"\nf = "plant.py:f"\ng = "plant.py:g"\nx0 = [1]\noutputs = ["y"]\n'
        f"parameters = {{ {parameters} }}\n",
        folder=folder,
    )
    assert (found.what, found.where, found.hint) == (what, where, hint)


def test_code_that_fails_to_load_names_its_own_line(folder: Path) -> None:
    (folder / "plant.py").write_text("x = 1\nraise RuntimeError('no licence')\n")
    found = fault(CODED, folder=folder)
    assert found.what == f"`{folder / 'plant.py'}` cannot be loaded: RuntimeError: no licence"
    assert found.where == f"line 4 ({folder / 'plant.py'}, line 2)"


def test_a_column_that_is_not_there(folder: Path) -> None:
    text = 'step = 1\n[models.m]\ntype = "csv"\npath = "measured.csv"\ncolumns = ["forse"]\n'
    found = fault(text, folder=folder)
    assert found.what == "there is no column `forse`"
    assert found.where == f"line 2 ({folder / 'measured.csv'}, line 1)"
