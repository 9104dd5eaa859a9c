"""Power bonds in files: what is written is read back, and every fault is told with its line."""

import numpy as np
import pytest

from files.test_ssp_writing import facts, made  # noqa: F401 - a fixture
from hocket.errors import FileError
from hocket.files.bond_flows import BondFlow, BondFlows
from hocket.files.plotting import Series
from hocket.files.ssp import read_ssp, write_ssp
from hocket.files.toml import dumps, loads, read, write
from hocket.model.bonds import Bond
from hocket.model.composite import Composite
from hocket.model.experiment import Experiment
from hocket.model.extrapolators import BalanceCorrection
from hocket.model.scenario import Scenario
from hocket.simulators.fmu.recipe import Fmu
from hocket.simulators.ode import Ode
from hocket.simulators.state_space import StateSpace
from systems import EXAMPLES

EXAMPLE = (EXAMPLES / "spring_mass.toml").read_text()
BONDS = {
    "joint": Bond("mass.force", "spring.speed"),
    "back": Bond("mass2.force", "spring2.speed", reverse=True, eps=0.25),
    "heat": Bond("mass3.force", "spring3.speed", "kW"),
}


def spring(c=1.0):
    return StateSpace(
        [[0.0]], [[1.0]], [[-c]], x0=[1.0], inputs=["speed [m/s]"], outputs=["force [N]"], energy=[[c]]
    )


def mass():
    return StateSpace([[0.0]], [[1.0]], [[1.0]], x0=[0.5], inputs=["force [N]"], outputs=["speed [m/s]"])


def pair(bonds=None, **more):
    connections = {"mass.force": "spring.force", "spring.speed": "mass.speed"}
    return Scenario({"spring": spring(), "mass": mass()}, connections, bonds=bonds, **more)


def pairs(inside=None, bonds=None):
    """Three springs with their masses, and what stands beside them."""
    models, connections = dict(inside or {}), {}
    for number in ("", "2", "3"):
        models |= {f"spring{number}": spring(), f"mass{number}": mass()}
        connections[f"mass{number}.force"] = f"spring{number}.force"
        connections[f"spring{number}.speed"] = f"mass{number}.speed"
    return Scenario(models, connections, bonds=bonds)


def stored(x, c):
    return c * x[0] ** 2 / 2.0


def rate(t, x, u, c):
    return [u[0]]


def faults(text):
    with pytest.raises(FileError) as caught:
        loads(text)
    return caught.value.faults


def told(text):
    """The only fault: line, what, hint."""
    (fault,) = faults(text)
    return int(fault.where.removeprefix("line ")), fault.what, fault.hint


def changed(old, new):
    assert EXAMPLE.count(old) == 1
    return EXAMPLE.replace(old, new)


def line_of(text, start):
    return next(number for number, line in enumerate(text.splitlines(), 1) if line.startswith(start))


@pytest.mark.parametrize("bonds", [{}, BONDS], ids=["none", "three"])
def test_bonds_of_all_levels_come_back(bonds):
    inner = Composite(pairs(bonds=bonds), "0.05")
    composite = Composite(pairs({"axle": inner}, bonds), "0.1")
    text = dumps(composite)
    back = loads(text).composite
    assert back == composite
    assert back.scenario.bonds == bonds
    assert list(back.scenario.models["axle"].scenario.bonds) == list(bonds)
    assert ("bonds" in text) == bool(bonds)


def test_a_bond_across_levels_comes_back():
    inner = Composite(Scenario({"spring": spring()}), "0.05")
    outer = Scenario(
        {"axle": inner, "mass": mass()},
        {"mass.force": "axle.spring.force", "axle.spring.speed": "mass.speed"},
        bonds={"joint": Bond("mass.force", "axle.spring.speed")},
    )
    composite = Composite(outer, "0.1")
    assert loads(dumps(composite)).composite == composite


def test_defaults_are_left_out_and_a_balance_is_kept():
    bonds = {"joint": Bond("mass.force", "spring.speed", balance="inversion", eps=0.1)}
    text = dumps(Composite(pair(bonds), "0.1", extrapolation="linear"))
    written = text[text.index("[bonds.joint]") :].split("\n")[1:5]
    assert written == [
        'effort = "mass.force"',
        'flow = "spring.speed"',
        'balance = "inversion"',
        "eps = 0.1",
    ]
    assert loads(text).composite.scenario.bonds == bonds


def test_the_example_says_what_it_is_meant_to_say():
    scenario = loads(EXAMPLE).composite.scenario
    assert scenario.bonds == {"joint": Bond("mass.force", "spring.speed")}
    assert [model.energy for model in scenario.models.values()] == [((1.0,),), ((1.0,),)]


def test_an_energy_that_is_a_function_comes_back_with_its_folder(tmp_path):
    (tmp_path / "plant.py").write_text(
        "def rate(t, x, u, c):\n    return [u[0]]\n\n\ndef stored(x, c):\n    return c * x[0] ** 2 / 2\n"
    )
    ode = Ode(
        "plant.py:rate",
        x0=[2.0],
        inputs=["u = 0"],
        energy="plant.py:stored",
        folder=str(tmp_path),
        c=3.0,
    )
    composite = Composite(Scenario({"spring": ode}), "0.1")
    write(composite, tmp_path / "ode.toml")
    back = read(tmp_path / "ode.toml").composite.scenario.models["spring"]
    assert back == ode
    assert back.stored_energy.value([2.0]) == 6.0
    named = Ode(rate, x0=[2.0], inputs=["u = 0"], energy=stored, c=3.0)
    assert f'energy = "{__name__}:stored"' in dumps(Composite(Scenario({"spring": named}), "0.1"))


def test_an_energy_that_cannot_be_called_is_told_at_its_line(tmp_path):
    (tmp_path / "plant.py").write_text(
        "def rate(t, x, u):\n    return [0]\n\n\ndef stored(t, x):\n    return 0\n"
    )
    text = 'step = 1\n[models.a]\ntype = "ode"\nf = "plant.py:rate"\nx0 = [0]\nenergy = "plant.py:{}"\n'
    for name, words in (("stored", "cannot be called with x"), ("stord", "stord")):
        with pytest.raises(FileError) as caught:
            loads(text.format(name), folder=tmp_path)
        (fault,) = caught.value.faults
        assert "line 6" in fault.where
        assert words in fault.what


@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_a_balance_correction_comes_back(alpha):
    composite = Composite(pairs(bonds=BONDS), "0.1", extrapolation=BalanceCorrection(alpha))
    assert loads(dumps(composite)).composite == composite
    word = EXAMPLE.replace('"hold"', '"balance-correction"')
    assert loads(word).composite.extrapolation == BalanceCorrection(1.0)
    table = EXAMPLE.replace('"hold"', f'{{ type = "balance-correction", alpha = {alpha} }}')
    assert loads(table).composite.extrapolation == BalanceCorrection(alpha)


@pytest.mark.parametrize(
    ("old", "new", "start", "what", "hint"),
    [
        ('effort = "mass.force', 'effort = "mass.forse', "effort", "`mass` has no input `forse`", "`force`"),
        ('flow = "spring', 'flow = "sprng', "flow", "there is no model `sprng`", "`spring`"),
        ("[bonds.joint]", "[bonds.mass]", "[bonds", "`mass` names a bond and a model", ""),
        ("[bonds.joint]", '[bonds."a.b"]', "[bonds", "`a.b` cannot name a bond", ""),
        ("[bonds.joint]", "[bonds]", "effort", "a bond has no name", ""),
        ("effort =", "efort =", "efort", "there is no key `efort`", "`effort`"),
        ("effort =", "eps = 0\neffort =", "eps", "`eps` cannot be 0.0", ""),
        ("effort =", 'balance = "inversoin"\neffort =', "balance", "`balance` is the text", "`inversion`"),
        ("effort =", 'unit = "kg"\neffort =', "[bonds", "`N` times `m/s` is not `kg`", "`unit`"),
        ('flow = "spring.speed"', 'flow = "mass.force"', "[bonds", "there and back", "the other"),
        ('effort = "mass.force"\n', "", "[bonds", "`effort` is missing in a bond", ""),
    ],
)  # fmt: skip
def test_faults_are_told_at_their_line(old, new, start, what, hint):
    text = changed(old, new)
    line, said, tried = told(text)
    assert line == line_of(text, start)
    assert what in said
    assert hint in tried


def test_units_that_make_no_power_are_refused_at_the_line_of_the_bond():
    text = EXAMPLE.replace("force [N]", "force [m]")
    line, said, _ = told(text)
    assert line == line_of(text, "[bonds.joint]")
    assert "`m` times `m/s` is not `W`" in said


def test_a_bond_of_three_simulators_is_refused():
    third = '[models.third]\ntype = "state-space"\nA = [[0]]\nB = [[1]]\ninputs = ["speed [m/s]"]\n'
    text = changed("[connections] ", f"{third}\n[connections] ")
    text = text.replace('flow = "spring.speed"', 'flow = "third.speed"')
    text = text.replace("spring.speed = ", 'third.speed = "mass.speed"\nspring.speed = ')
    line, said, _ = told(text)
    assert line == line_of(text, "[bonds.joint]")
    assert "between two simulators" in said


def test_all_faults_of_bonds_are_told_at_once():
    text = EXAMPLE + '\n[bonds.one]\neffort = "mass.force"\nflow = "spring.sped"\nunits = "W"\n'
    text += '\n[bonds.two]\neffort = "mass.force"\nflow = "spring.speed"\nunit = "kg"\n'
    assert [fault.what.partition(":")[0] for fault in faults(text)] == [
        "`spring` has no input `sped`",
        "there is no key `units` in a bond",
        "`N` times `m/s` is not `kg`",
    ]


def test_two_bonds_of_the_same_connections_name_each_other():
    for ends in (("mass.force", "spring.speed"), ("spring.speed", "mass.force")):
        text = EXAMPLE + '\n[bonds.again]\neffort = "{}"\nflow = "{}"\n'.format(*ends)
        line, said, hint = told(text)
        assert line == line_of(text, "[bonds.again]")
        assert said.startswith("`joint` and `again` are bonds of the same two inputs")
        assert "count twice" in hint


def test_a_fault_of_an_inner_bond_has_its_line():
    inner = Composite(pair({"joint": Bond("mass.force", "spring.speed")}), "0.1")
    text = dumps(Composite(Scenario({"axle": inner}), "0.1"))
    assert loads(text).composite.scenario.models["axle"].scenario.bonds
    wrong = text.replace('flow = "spring.speed"', 'flow = "spring.spead"')
    line, said, hint = told(wrong)
    assert line == line_of(wrong, "flow =")
    assert "spead" in said
    assert "`speed`" in hint


def test_a_fault_in_a_file_that_is_included_names_that_file(tmp_path):
    (tmp_path / "inner.toml").write_text(changed('flow = "spring.speed"', 'flow = "spring.spead"'))
    (tmp_path / "outer.toml").write_text(
        'step = 0.2\n[models.axle]\ntype = "composite"\nfile = "inner.toml"\n'
    )
    with pytest.raises(FileError) as caught:
        read(tmp_path / "outer.toml")
    (fault,) = caught.value.faults
    assert fault.where.startswith("inner.toml, line ")


def test_the_picture_of_a_long_run_is_decimated_and_keeps_the_peaks():
    t = np.arange(100_001) / 1000
    gained = np.where(t == 77.777, 5.0, np.where(t > 99.0, np.inf, np.sin(t)))
    flow = BondFlow("$joint", 1.0, 2.0, 1.0, "J", 100.0)
    figure = BondFlows("long", (flow,), (Series(t, gained, "J", "$joint.gained"),)).plot()
    (axes,) = figure.axes
    assert all(len(line.get_xdata()) <= 4000 for line in axes.lines)
    assert np.nanmax(axes.lines[-1].get_ydata()) == 5.0
    assert axes.get_title(loc="left") == "$joint: gains, gained 1 J (50 % of the transferred energy)"
    figure.canvas.draw()


def test_a_bond_between_fmus_survives_an_ssp(tmp_path, made):  # noqa: F811
    scenario = Scenario(
        {"left": Fmu(made("first")), "right": Fmu(made("second"))},
        [("right.x", "left.x"), ("right.v", "left.v"), ("left.force", "right.force")],
        bonds={"joint": Bond("right.force", "left.v", reverse=True)},
    )
    experiment = Experiment(Composite(scenario, "10 ms"), name="masses")
    write_ssp(experiment, tmp_path / "masses.ssp")
    back = read_ssp(tmp_path / "masses.ssp").composite
    assert back.scenario.bonds == scenario.bonds
    assert facts(back) == facts(experiment.composite)
