"""FMUs coupled with each other and with other models: exact answers, both engines, every version of FMI."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hocket as hk
from fmus.build import build
from hocket.engine.opening import open_composite
from hocket.planning.planner import plan_tree
from systems import ENGINES

LINKS = {"first.x": "second.x", "first.v": "second.v", "second.force": "first.force"}


@pytest.fixture(scope="module")
def fmus(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("fmus")
    made: dict[tuple[str, int], Path] = {}

    def get(name: str, version: int = 2, **parameters: Any) -> hk.Fmu:
        if (name, version) not in made:
            made[name, version] = build(name, version, folder=folder / f"fmi{version}")
        return hk.Fmu(made[name, version], **parameters)

    return get


def halves(method: str = "rk4") -> dict[str, Any]:
    """The two masses of Glumac and Kovacic as matrices, integrated as the FMUs do it."""
    first = hk.StateSpace(
        A=[[0, 1], [-0.2, -0.3]], B=[[0, 0], [0.1, 0.2]], C=[[1, 2]], D=[[-1, -2]], x0=[0.1, 0.1],
        inputs=["x", "v"], outputs=["force"], method=method,
    )  # fmt: skip
    second = hk.StateSpace(
        A=[[0, 1], [-0.1, -0.2]], B=[[0], [0.1]], C=[[1, 0], [0, 1]], x0=[0.2, 0.1],
        inputs=["force"], outputs=["x", "v"], method=method,
    )  # fmt: skip
    return {"first": first, "second": second}


def masses(models: dict[str, Any], orchestrator: Any, engine: Any = "native") -> hk.Run:
    composite = hk.Composite(hk.Scenario(models, LINKS), "0.1 s", orchestrator)
    return hk.run(composite, stop=50, engine=engine)


@pytest.mark.parametrize("outputs", ["stale", "consistent"])
@pytest.mark.parametrize("orchestrator", [hk.Jacobi, hk.GaussSeidel])
def test_two_masses_as_fmus_equal_the_matrices(fmus: Any, orchestrator: Any, outputs: Any) -> None:
    exact = masses(halves(), orchestrator(outputs=outputs))
    same: list[np.ndarray] = []
    for version in (1, 2, 3):
        for engine in ENGINES:
            models = {name: fmus(name, version) for name in ("first", "second")}
            run = masses(models, orchestrator(outputs=outputs), engine)
            for port in exact:
                assert np.max(np.abs(run[port].values - exact[port].values)) < 1e-9
            same.append(np.array([run[port].values for port in run]))
    assert all(np.array_equal(values, same[0]) for values in same)


def test_a_level_of_fmus(fmus: Any) -> None:
    """Inside a level of one step, both halves do what they do outside of it."""
    flat = masses({name: fmus(name) for name in ("first", "second")}, "jacobi")
    inner = hk.Scenario({name: fmus(name) for name in ("first", "second")}, LINKS)
    nested = hk.Composite(hk.Scenario({"pair": hk.Composite(inner, "0.1 s")}), "0.2 s")
    run = hk.run(nested, stop=50)
    assert np.array_equal(run["pair.second.x"].values, flat["second.x"].values)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_chain_through_units_is_no_loop(fmus: Any, engine: Any) -> None:
    """Feedthrough passes through several units, and twice through one of them, within an instant."""
    models = {
        "source": hk.Function(np.cos, outputs=["y"]),
        **{f"g{k}": fmus("gain", k=2.0) for k in range(3)},
    }
    links = {"g0.u": "source.y", "g1.u": "g0.y", "g2.u": "g1.y"}
    run = hk.run(hk.Composite(hk.Scenario(models, links), "0.1 s"), stop=1, engine=engine)
    assert run["g2.y"].values == pytest.approx(8 * np.cos(run["g2.y"].t), abs=1e-14)
    late = {name: fmus("gain", k=2.0, reevaluate=False) for name in ("g0", "g1", "g2")}
    composite = hk.Composite(hk.Scenario({"source": models["source"], **late}, links), "0.1 s")
    stale = hk.run(composite, stop=1, engine=engine)
    assert stale["g2.y"].values[0] == pytest.approx(8.0)  # at the start the order is kept all the same
    assert stale["g2.y"].values[4:] == pytest.approx(8 * np.cos(stale["g2.y"].t[:-4] + 0.1), abs=1e-14)


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("engine", ENGINES)
def test_types_travel(fmus: Any, version: int, engine: Any) -> None:
    links = {f"b.u_{kind}": f"a.y_{kind}" for kind in ("real", "int", "bool", "enum", "string")}
    models = {"a": fmus("types", version, u_real=1.5, u_int=4), "b": fmus("types", version)}
    run = hk.run(hk.Composite(hk.Scenario(models, links), 1, "gauss-seidel"), stop=2, engine=engine)
    assert [run.final(f"b.y_{kind}") for kind in ("real", "int", "bool", "enum")] == [6.0, 6.0, 0.0, 2.0]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("engine", ENGINES)
def test_texts_travel_beside_the_numbers(fmus: Any, version: int, engine: Any) -> None:
    kinds = ("string", "binary") if version == 3 else ("string",)
    links = {f"b.u_{kind}": f"a.y_{kind}" for kind in kinds}
    models = {"a": fmus("types", version, u_string="world"), "b": fmus("types", version, p_string="well, ")}
    composite = hk.Composite(hk.Scenario(models, links), 1, hk.GaussSeidel(["a", "b"]))
    level = open_composite(composite)
    try:
        level.start(0.0)
        zero = np.zeros((1, 0))
        level.step(0.0, 1.0, zero)
        level.step(1.0, 1.0, zero)
        names = models["b"].texts[1]
        live: Any = level.children[1]
        assert live.text(names.index("y_string")) == b"well, hello world"
        if version == 3:
            assert live.text(names.index("y_binary")) == b"\xca\xfe\xca\xfe"
    finally:
        level.close()
    hk.run(composite, stop=2, engine=engine)


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("y_real", "u_int", "`a.y_real` is a real, and an integer cannot hold all its values"),
        ("y_int", "u_bool", "`a.y_int` is an integer, and a boolean cannot hold all its values"),
        ("y_int", "u_enum", "`a.y_int` is an integer, and an enumeration cannot hold all its values"),
        ("y_string", "u_real", "`a.y_string` is a text, the other end is not"),
    ],
)
def test_what_would_be_lost_is_refused(fmus: Any, source: str, target: str, message: str) -> None:
    models = {"a": fmus("types"), "b": fmus("types")}
    composite = hk.Composite(hk.Scenario(models, {f"b.{target}": f"a.{source}"}), 1)
    with pytest.raises(hk.ScenarioError) as error:
        plan_tree(composite)
    assert error.value.faults[0].what == message


@pytest.mark.parametrize(
    ("source", "target"), [("y_bool", "u_int"), ("y_enum", "u_int"), ("y_int", "u_real")]
)
def test_what_fits_is_connected(fmus: Any, source: str, target: str) -> None:
    models = {"a": fmus("types", u_bool=False), "b": fmus("types", p_int=0, p_real=1.0)}
    composite = hk.Composite(hk.Scenario(models, {f"b.{target}": f"a.{source}"}), 1, "gauss-seidel")
    run = hk.run(composite, stop=2)
    assert run.final(f"b.{target.replace('u_', 'y_')}") == run.final(f"a.{source}")


def test_whole_numbers_are_held_whatever_the_extrapolation(fmus: Any) -> None:
    models = {"a": fmus("types"), "b": fmus("types")}
    composite = hk.Composite(hk.Scenario(models, {"b.u_int": "a.y_int"}), 1, extrapolation="linear")
    assert hk.run(composite, stop=5).final("b.y_int") == 2.0
    linked = [hk.Connection("a.y_int", "b.u_int", hk.Polynomial(1))]
    with pytest.raises(hk.ScenarioError, match="an integer cannot be extrapolated"):
        plan_tree(hk.Composite(hk.Scenario(models, linked), 1))


# events inside a step


@pytest.mark.parametrize("version", [2, 3])
def test_all_go_back_and_meet_a_step_that_ended_early(fmus: Any, version: int) -> None:
    models = {"a": fmus("discards", version, at=0.455, early_return=True), "lag": fmus("lag")}
    composite = hk.Composite(hk.Scenario(models, {"lag.u": "a.y"}), "0.1 s")
    assert "if one ends early, all roll back" in str(plan_tree(composite).plan)
    run = hk.run(composite, stop=1)
    assert run["a.y"].t.tolist() == pytest.approx(
        [0, 0.1, 0.2, 0.3, 0.4, 0.455, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    )
    t, y = run["a.y"].t, 0.0  # explicit Euler on the steps that were made
    for k in range(len(t) - 1):
        y += (t[k + 1] - t[k]) * (t[k] - y)
    assert run.final("lag.y") == pytest.approx(y, rel=1e-13)


def test_a_ball_bounces_in_its_level(fmus: Any) -> None:
    """FMI 3: event mode is entered at the bounce, and everyone else is there too."""
    models = {"ball": fmus("ball", 3), "lag": fmus("lag", 3)}
    run = hk.run(hk.Composite(hk.Scenario(models, {"lag.u": "ball.h"}), "0.1 s"), stop=1)
    bounce = (2 / 9.81) ** 0.5
    assert np.min(np.abs(run["ball.h"].t - bounce)) < 1e-12
    s = 1.0 - bounce
    assert run.final("ball.h") == pytest.approx(0.7 * 9.81 * bounce * s - 9.81 / 2 * s**2, abs=1e-12)


def test_a_ball_bounces_until_it_rests(fmus: Any) -> None:
    """Bounces come closer and closer, the later ones at times that rounding moves."""
    ball = {"ball": fmus("ball", 3)}
    run = hk.run(hk.Composite(hk.Scenario(ball), "0.1 s"), stop=4)
    assert run.final("ball.h") == 0.0
    alone = hk.run(hk.Composite(hk.Scenario({"ball": fmus("ball", 2)}), "0.1 s"), stop=4)
    assert run.final("ball.bounces") == alone.final("ball.bounces") > 10


def test_where_others_cannot_go_back_an_fmi3_fmu_goes_on_alone(fmus: Any) -> None:
    stubborn = hk.Python(Stubborn)
    models = {"ball": fmus("ball", 3), "other": stubborn}
    composite = hk.Composite(hk.Scenario(models, {"other.u": "ball.h"}), "0.1 s")
    late = "events that `ball` finds within a step act on others at the end of it, late by at most 0.1 s"
    assert f"{late}: `other` cannot roll back" in plan_tree(composite).plan.notes[0]
    run = hk.run(composite, stop=1)
    assert len(np.unique(run["ball.h"].t)) == 11
    bounce = (2 / 9.81) ** 0.5
    s = 1.0 - bounce
    assert run.final("ball.h") == pytest.approx(0.7 * 9.81 * bounce * s - 9.81 / 2 * s**2, abs=1e-12)


class Stubborn:
    inputs = ("u",)
    outputs = ("y",)

    def start(self, t: float) -> None:
        pass

    def step(self, t: float, h: float, u: Any) -> None:
        pass

    def output(self, t: float, u: Any) -> list[float]:
        return [0.0]


# what goes wrong


BAD = {
    "fails": ("fmi2DoStep returned Error", "the valve is stuck"),
    "fatal": ("fmi2DoStep returned Fatal",),
    "nan": ("`bad.y` is nan",),
    "discards": ("`bad` stopped at 0.455 s instead of", "early_return=True"),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", BAD)
def test_rows_are_kept_when_an_fmu_fails(fmus: Any, name: str, engine: Any, tmp_path: Path) -> None:
    models = {"bad": fmus(name, at=0.455), "lag": fmus("lag")}
    composite = hk.Composite(hk.Scenario(models, {"lag.u": "bad.y"}), "0.01 s")
    with pytest.raises(hk.SimulatorError) as error:
        hk.run(composite, stop=1, folder=tmp_path / "run", engine=engine)
    for text in BAD[name]:
        assert text in str(error.value)
    run = hk.open_run(tmp_path / "run")
    assert run.status == "failed"
    assert run["lag.y"].t[-1] == pytest.approx(0.45, abs=0.011)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("refuses", "it cannot be instantiated: "),
        ("badinit", "fmi2ExitInitializationMode returned Error: "),
        ("gutless", "has no function fmi2DoStep"),
    ],
)
def test_an_fmu_that_does_not_start(fmus: Any, name: str, text: str) -> None:
    with pytest.raises(hk.SimulatorError) as error:
        hk.run(hk.Composite(hk.Scenario({"bad": fmus(name)}), "0.1 s"), stop=1)
    assert text in str(error.value)
    assert "`bad`" in str(error.value)


def test_a_lie_about_rewinding_is_found_where_it_is_used(fmus: Any) -> None:
    models = {"liar": fmus("liar"), "lag": fmus("lag")}
    composite = hk.Composite(hk.Scenario(models, {"lag.u": "liar.y"}), "0.1 s", extrapolation="quadratic")
    with pytest.raises(hk.SimulatorError, match="says that it can save and restore its state, but"):
        hk.run(composite, stop=1)
