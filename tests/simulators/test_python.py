"""Classes as models: ports, feedthrough, capabilities, loading from text, and every fault with its words."""
# ruff: noqa: RUF012 - a simulator is handed more than it needs

import collections.abc
import os
import pickle
from fractions import Fraction

import numpy as np
import pytest

from hocket.errors import ScenarioError, SimulatorError
from hocket.execution.run import run
from hocket.model.composite import Composite
from hocket.model.ports import Port
from hocket.model.protocols import Capabilities, RollbackSimulator, provides
from hocket.model.scenario import Scenario
from hocket.orchestrators.iterate import Iterate
from hocket.simulators.python import Python
from hocket.simulators.recipes import load, qualified_name
from systems import ENGINES


class Tank:
    inputs = ("inflow [m^3/s] = 0.5",)
    outputs = ("level [m]",)

    def __init__(self, area=2.0, level=1.0):
        self.area, self.initial = area, level

    def start(self, t):
        self.level = self.initial

    def output(self, t):
        return self.level

    def step(self, t, h, u):
        self.level += h * u[0][0] / self.area


class Rewindable(Tank):
    order = 1
    input_degree = 0
    variable_step = False

    def save(self):
        return self.level

    def restore(self, state):
        self.level = state

    def slope(self, t, u):
        return u[0] / self.area


class Mixer:
    inputs = ("a", "b")
    outputs = ("sum", "memory")
    feedthrough = {"sum": ["a", "b"]}

    def start(self, t):
        self.seen = 0.0

    def output(self, t, u):
        return [u[0][0] + u[0][1], self.seen]

    def step(self, t, h, u):
        self.seen = u[0][0]
        return t + h


def test_ports_come_from_the_class():
    model = Python(Tank)
    assert model.inputs == (Port("inflow", "m^3/s", 0.5),)
    assert model.outputs == (Port("level", "m"),)
    assert model.capabilities == Capabilities()


def test_given_ports_win():
    model = Python(Tank, inputs=["q"], outputs=[Port("x", "m")])
    assert [port.name for port in (*model.inputs, *model.outputs)] == ["q", "x"]


def test_a_simulator_steps_and_none_means_the_end_of_the_step():
    simulator = Python(Tank, area=4.0).open()
    simulator.start(0.0)
    assert simulator.output(0.0, np.array([[8.0]])) == 1.0
    assert simulator.step(0.0, 0.5, np.array([[8.0]])) == 0.5
    assert simulator.output(0.5, np.array([[8.0]])) == 2.0
    simulator.close()


def test_simulators_do_not_share_state():
    model = Python(Tank)
    one, other = model.open(), model.open()
    for simulator in (one, other):
        simulator.start(0.0)
    one.step(0.0, 1.0, np.array([[2.0]]))
    assert (one.output(1.0, None), other.output(1.0, None)) == (2.0, 1.0)


def test_capabilities_follow_methods_and_attributes():
    model = Python(Rewindable)
    assert model.capabilities == Capabilities(
        rollback=True, variable_step=False, input_degree=0, slopes=True, order=1
    )
    assert provides(model.open(), RollbackSimulator)
    assert not provides(Python(Tank).open(), RollbackSimulator)


def test_declared_feedthrough():
    assert [port.feedthrough for port in Python(Mixer).outputs] == [("a", "b"), ()]


def test_output_with_inputs_reacts_to_all_unless_declared():
    class Undeclared(Mixer):
        feedthrough = None

    class Moore(Mixer):
        feedthrough = {}

    assert [port.feedthrough for port in Python(Undeclared).outputs] == [("a", "b")] * 2
    assert [port.feedthrough for port in Python(Moore).outputs] == [()] * 2
    kept = Python(Undeclared, outputs=[Port("sum"), Port("memory", feedthrough=("a",))])
    assert [port.feedthrough for port in kept.outputs] == [("a", "b"), ("a",)]


def test_output_without_inputs_reacts_to_none():
    assert Python(Tank, outputs=[Port("level", feedthrough=("inflow",))]).outputs[0].feedthrough == ()


def test_a_static_output_is_understood():
    class Wave(Tank):
        inputs = ()

        @staticmethod
        def output(t):
            return t * t

    assert Python(Wave).open().output(3.0, None) == 9.0


def test_equality_and_hash():
    assert Python(Tank, area=1.0, level=2.0) == Python(Tank, level=2.0, area=1.0)
    assert Python(Tank, area=1.0) != Python(Tank, area=2.0)
    arrays = [Python(Tank, area=np.array([1.0, 2.0])) for _ in range(2)]
    assert arrays[0] == arrays[1]
    assert arrays[0] != Python(Tank, area=np.array([1.0, 3.0]))
    assert len({Python(Tank, area=[1.0]), Python(Tank, area=[1.0]), *arrays}) == 2
    assert Python(Tank) != "Tank"


def test_parameters_and_names_for_a_file():
    model = Python(Tank, level=2.0, area=1.0)
    assert model.values == (("area", 1.0), ("level", 2.0))
    assert model.parameters == {"area": 1.0, "level": 2.0}
    assert model.class_name == f"{Tank.__module__}:Tank"
    assert Python("plant.py:Tank").class_name == "plant.py:Tank"


def test_period_is_kept_exactly_and_can_be_left_off():
    model = Python(Tank, period="2.5 ms", area=3.0)
    assert model.period == Fraction(1, 400)
    assert model.without_period() == Python(Tank, area=3.0)
    with pytest.raises(ScenarioError, match="above zero"):
        Python(Tank, period=0)
    with pytest.raises(ScenarioError, match="not a duration"):
        Python(Tank, period="soon")


PLANT = """
from part import AREA

class Tank:
    inputs = ["q"]
    outputs = ["x"]
    class Small:
        inputs = ["q"]
        def start(self, t): self.x = 0.0
        def output(self, t): return []
        def step(self, t, h, u): return t + h
    def __init__(self, gain=1.0): self.gain = gain
    def start(self, t): self.x = AREA
    def output(self, t): return self.gain * self.x
    def step(self, t, h, u): return t + h

number = 3
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "plant.py").write_text(PLANT)
    (tmp_path / "part.py").write_text("AREA = 7.0\n")
    return tmp_path


def test_a_class_in_a_file(folder):
    model = Python("plant.py:Tank", folder=folder, gain=2.0)
    simulator = model.open()
    simulator.start(0.0)
    assert simulator.output(0.0, None) == 14.0
    assert type(simulator.object) is type(model.open().object)
    assert Python("plant.py:Tank.Small", folder=folder).outputs == ()


def test_a_class_in_a_file_of_the_working_directory(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert Python("plant.py:Tank").inputs == (Port("q"),)


def test_a_changed_file_is_read_again(folder):
    file = folder / "changing.py"
    for name in ("one", "two"):
        file.write_text(PLANT.replace('"x"', f'"{name}"') + "#" * (name == "two"))
        os.utime(file, ns=(0, len(file.read_text())))
        assert Python("changing.py:Tank", folder=folder).outputs[0].name == name


def test_a_class_in_a_module_beside_the_scenario(folder):
    (folder / "hocket_test_module.py").write_text(PLANT)
    assert Python("hocket_test_module:Tank", folder=folder).inputs == (Port("q"),)
    assert load("collections.abc:Mapping") is collections.abc.Mapping


def test_a_text_is_loaded_late_and_travels(folder):
    model = Python("nowhere.py:Tank", folder=folder)
    (folder / "nowhere.py").write_text(PLANT)
    assert model.outputs[0].name == "x"
    assert pickle.loads(pickle.dumps(model)) == model


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("plant.py:Tnak", "has no `Tnak`(.|\n)*did you mean `Tank`"),
        ("plnt.py:Tank", "there is no file(.|\n)*did you mean `plant.py`"),
        ("no_such_package_here.part:Tank", "there is no module `no_such_package_here`"),
        ("plant.py", "does not say what to load"),
        ("plant.py:number", "`plant.py:number` is not a class"),
        ("broken.py:Tank", "cannot be loaded: ZeroDivisionError(.|\n)*broken.py, line 2"),
        ("syntax.py:Tank", "cannot be loaded: SyntaxError(.|\n)*syntax.py, line 1"),
        ("needy.py:Tank", "cannot be loaded: ModuleNotFoundError(.|\n)*no_such_package_here"),
    ],
)
def test_what_cannot_be_loaded_is_said(folder, text, words):
    (folder / "broken.py").write_text("x = 0\n1 / x\n")
    (folder / "syntax.py").write_text("class\n")
    (folder / "needy.py").write_text("import no_such_package_here\n")
    with pytest.raises(ScenarioError, match=words):
        _ = Python(text, folder=folder).inputs


def test_missing_methods_and_wrong_parameters_are_reported_together():
    class Half:
        inputs = ("u",)

        def __init__(self, mass):
            self.mass = mass

        def begin(self):
            """Not a protocol method."""

        def output(self):
            """Take too little."""

        def stepp(self, t, h, u):
            """Carry a slip of the pen."""

    with pytest.raises(ScenarioError) as caught:
        Python(Half, mas=1.0)
    text = str(caught.value)
    assert "5 faults" in text
    for words in (
        "has no method `start`",
        "has no method `step`",
        "did you mean `stepp`?",
        "`Half.output` cannot be called with 2 arguments",
        "has no parameter `mas`",
        "did you mean `mass`?",
        "needs the parameter `mass`",
    ):
        assert words in text


def test_a_constructor_that_refuses():
    class Picky(Tank):
        def __init__(self, area=1.0):
            if area < 0:
                raise ValueError("area must be positive")
            super().__init__(area + 1)
            self.share = 1 / (area - 1)

    with pytest.raises(ScenarioError, match="cannot be made with these parameters: area must be positive"):
        Python(Picky, area=-1.0).open()
    with pytest.raises(ScenarioError, match="cannot be made with these parameters"):
        Python(Picky, area="large").open()
    with pytest.raises(SimulatorError, match=r"ZeroDivisionError(.|\n)*test_python.py, line"):
        Python(Picky, area=1.0).open()


@pytest.mark.parametrize(
    ("attribute", "value", "words"),
    [
        ("feedthrough", {"summ": ["a"]}, "names `summ`, which is not an output(.|\n)*did you mean `sum`"),
        ("feedthrough", {"sum": ["aa"]}, "names `aa`, which is not an input"),
        ("order", "two", "whole number"),
        ("variable_step", 1, "True or False"),
        ("inputs", ("a", "a"), "two inputs are named `a`"),
        ("inputs", "a", "ports are a list"),
    ],
)
def test_attributes_that_make_no_sense(attribute, value, words):
    with pytest.raises(ScenarioError, match=words):
        Python(type("Odd", (Mixer,), {"feedthrough": None, attribute: value}))


def test_neither_inputs_nor_outputs():
    class Bare(Tank):
        inputs = None
        outputs = None

    with pytest.raises(ScenarioError, match="neither inputs nor outputs"):
        Python(Bare)
    assert Python(Bare, outputs=["x"]).inputs == ()


def test_what_is_no_class():
    with pytest.raises(ScenarioError, match="is not a class"):
        Python(Tank())
    assert qualified_name(test_what_is_no_class).endswith(":test_what_is_no_class")


@pytest.mark.parametrize(("has", "lacks"), [("save", "restore"), ("restore", "save")])
def test_half_a_rollback_is_a_fault(has, lacks):
    """Else the class would be taken for one that cannot roll back, without a word."""
    misspelt = {"save": "sav", "restore": "resotre"}[lacks]
    half = type("Half", (Tank,), {has: lambda *_: None, misspelt: lambda *_: None})
    with pytest.raises(
        ScenarioError, match=f"`Half` has `{has}` and no `{lacks}`(.|\n)*did you mean `{misspelt}`"
    ):
        _ = Python(half).capabilities


class Lag:
    """A lag whose state is an array that each step changes in place."""

    inputs = ("u",)
    outputs = ("y",)

    def __init__(self, careful):
        self.careful = careful

    def start(self, t):
        self.x = np.array([1.0])

    def output(self, t):
        return self.x[0]

    def step(self, t, h, u):
        self.x += h * (-u[0][0] - self.x)

    def save(self):
        return self.x.copy() if self.careful else self.x

    def restore(self, state):
        self.x = state.copy() if self.careful else state


@pytest.mark.parametrize("engine", ENGINES)
def test_a_saved_state_does_not_change_with_the_object(engine):
    """Steps that are made again begin where they began, whether or not save() and restore() copy."""
    shown = []
    for careful in (True, False):
        models = {name: Python(Lag, careful=careful) for name in ("a", "b")}
        pair = Composite(Scenario(models, {"a.u": "b.y", "b.u": "a.y"}), 0.1, Iterate(tolerance=1e-10))
        shown.append(run(pair, stop=1, engine=engine, folder=None).to_pandas().to_numpy())
    # the fixed point of a step: x1 = x0 + h (-x1 - x0), both sides alike
    expected = (0.9 / 1.1) ** np.arange(11)
    np.testing.assert_allclose(shown[0][:, :2], np.column_stack([expected, expected]), rtol=1e-8)
    np.testing.assert_array_equal(shown[0], shown[1])
