"""How wrong a run was, from shorter steps and from its defects: against exact solutions; when in doubt."""

import json
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.linalg import expm

import hocket as hk
from hocket.analysis.defect_estimate import rounding_by_port, trust_from_defect
from hocket.analysis.exact_solution import exact_solution
from hocket.analysis.run_error import engine_of, estimate_error, estimate_run_error, experiment_of
from hocket.errors import FileError, ScenarioError, SimulatorError
from hocket.files.error_estimate import (
    BANDS,
    TRUST,
    ErrorEstimate,
    InputDefect,
    read_estimate,
    write_estimate,
)
from hocket.model.experiment import Experiment
from systems import LAG, TWO, three_masses, two_masses


def estimated(composite, stop, **options):
    experiment = Experiment(composite, stop=Fraction(stop), name="it")
    return estimate_error(experiment, hk.run(composite, stop, **options))


def coupled(t):
    """Return F, x2 and v2 of the two masses as one system, by the matrix exponential (equation 16a)."""
    p, x0 = TWO["parameters"], np.array(TWO["conventions"]["x0 two mass"], dtype=float)
    own, coupling = (
        np.array([[0, 1, 0, 0], [-p["c1"], -p["d1"], 0, 0], [0, 0, 0, 1], [0, 0, -p["c2"], -p["d2"]]]),
        np.array([p["ck"], p["dk"], -p["ck"], -p["dk"]]),
    )
    A = (own + np.outer([0, -1, 0, 1], coupling)) / np.array([[1], [p["m1"]], [1], [p["m2"]]])
    states = np.array([expm(A * time) @ x0 for time in t])
    return {"one.F": states @ coupling, "two.x": states[:, 2], "two.v": states[:, 3]}


# Richardson


def decay(t, x, u):
    return [-x[0]]


@pytest.mark.parametrize("own", ["20 ms", "25 ms", "100 ms", None])
@pytest.mark.parametrize(("method", "order"), [("euler", 1), ("heun", 2)])
def test_fixed_steps_of_equations_are_shortened_too(own, method, order):
    """x' = -x alone in a level of 0.1 s: all of its error is that of its own steps."""
    found = estimated(
        hk.Composite(hk.Scenario({"it": hk.Ode(decay, x0=[1.0], method=method, step=own)}), "0.1 s"), 1
    )
    error = np.abs(found["it.x1"].run.values - np.exp(-found["it.x1"].run.t)).max()
    assert found["it.x1"].largest == pytest.approx(error, rel=0.02)
    assert found["it.x1"].order == pytest.approx(order, abs=0.1)
    assert found.unseen == found.doubts == ()


def test_solvers_that_choose_their_steps_are_not_covered():
    adaptive = hk.Ode(decay, x0=[1.0], method="adaptive", step="25 ms")
    found = estimated(hk.Composite(hk.Scenario({"it": adaptive}), "0.1 s"), 1)
    assert found.unseen == ("what is integrated inside `it`: the steps there stay as they are",)


@pytest.mark.parametrize("coupling", ["Seidel12", "Seidel21", "Control12", "Control21"])
@pytest.mark.parametrize("h", [0.0625, 0.5, 2.0])
def test_the_estimate_is_within_a_factor_of_two(coupling, h):
    found = estimated(two_masses(coupling, h), 20)
    assert found.method == "Richardson"
    assert found.doubts == found.unseen == ()
    assert (found.predicted, found.runs) == (1, 2)
    assert {each.port for each in found.ports} == {"one.F", "two.x", "two.v"}
    for each in found.ports:
        error = each.run.values - coupled(each.run.t)[each.port]
        assert 0.5 < each.largest / np.abs(error).max() < 2.0, each.port
        assert 0.5 < np.linalg.norm(each.error) / np.linalg.norm(error) < 2.0, each.port
        assert each.error @ error > 0.9 * np.linalg.norm(each.error) * np.linalg.norm(error)  # with its sign


@pytest.mark.parametrize("nested", [False, True])
def test_the_estimate_is_the_error(nested):
    steps = ("0.1 s", "0.025 s") if nested else ("0.1 s",)
    composite = three_masses(1, *steps, outputs="consistent")
    found = estimated(composite, 5)
    solution = exact_solution(composite)
    assert len(found.ports) == 8
    for each in found.ports:
        truth = solution.outputs(each.run.t)[:, solution.ports.index(each.port)]
        error = each.run.values - truth
        assert each.order == pytest.approx(1.0, abs=0.2), each.port
        assert each.largest == pytest.approx(np.abs(error).max(), rel=0.2), each.port
        np.testing.assert_allclose(each.error, error, atol=0.25 * np.abs(error).max())
    rows = {"first.x": 51, "pair.third.x" if nested else "third.x": 201 if nested else 51}
    assert {port: len(found[port].error) for port in rows} == rows


def second_order():
    one, two = two_masses("Seidel12", 0.1).scenario.models.values()
    links = {"one.x2": "two.x", "one.v2": "two.v", "two.F": "one.F"}
    return hk.Composite(hk.Scenario({"one": one, "two": two}, links), "0.1 s", extrapolation="linear")


def test_a_higher_order_is_seen():
    found = estimated(second_order(), 10)
    assert found.predicted == 2
    assert found.doubts == ()
    assert found.good
    for each in found.ports:
        truth = coupled(each.run.t)[each.port]
        assert each.order == pytest.approx(2.0, abs=0.2)
        assert each.largest == pytest.approx(np.abs(each.run.values - truth).max(), rel=0.05)
    first, second = found.verdict()
    assert first.startswith("estimated global error: ")
    assert second.startswith("observed order ")
    assert second.endswith(" matches the expected order 2: the estimate is reliable")


def test_all_steps_are_halved_and_quartered():
    composite = three_masses(1, "0.1 s", "0.025 s")
    told = []

    @contextmanager
    def watch(experiment, how):
        times = []
        yield lambda t, stop: times.append((t, stop))
        inner = experiment.composite.scenario.models["pair"]
        third = inner.scenario.models["third"]
        told.append((how, experiment.composite.step, inner.step, third.step, times[-1]))

    experiment = Experiment(composite, stop=Fraction(5), name="it")
    estimate_error(experiment, hk.run(composite, 5), watch=watch)
    ms = Fraction(1, 1000)
    assert told == [
        ("with 1/2 of the steps", 50 * ms, 25 * ms / 2, ms * 5 / 8, (5.0, 5.0)),
        ("with 1/4 of the steps", 25 * ms, 25 * ms / 4, ms * 5 / 16, (5.0, 5.0)),
    ]


def test_an_exact_run_shows_rounding_only():
    lag = hk.StateSpace(A=[[-1.0]], C=[[1.0]], x0=[1.0], outputs=["y"])
    found = estimated(hk.Composite(hk.Scenario({"lag": lag}), "0.1 s"), 3)
    (port,) = found.ports
    np.testing.assert_allclose(port.run.values, np.exp(-port.run.t), rtol=1e-12)
    assert port.order is None
    assert port.relative < 1e-13
    assert found.verdict()[-1] == "shorter steps change nothing but rounding: the estimate is reliable"


# doubts


def looped(gain, orchestrator):
    lag = hk.StateSpace(A=[[-1.0]], C=[[1.0]], x0=[1.0], outputs=["y"])
    models = {"a": hk.Gain(gain), "b": hk.Gain(-gain), "lag": lag, "sum": hk.Sum("u", "v")}
    scenario = hk.Scenario(models, {"sum.u": "b.y", "sum.v": "lag.y", "a.u": "sum.y", "b.u": "a.y"})
    return hk.Composite(scenario, "0.1 s", orchestrator)


def test_a_loop_that_does_not_settle_is_doubted():
    found = estimated(looped(1.2, hk.Jacobi(outputs="stale")), 3)
    assert any("broken by a delay" in doubt for doubt in found.doubts)
    assert any("no observed order in " in doubt for doubt in found.doubts)
    assert not found.good
    assert found.verdict()[0].startswith("estimated global error, not reliable: ")


def test_a_loop_broken_by_a_delay_is_doubted_even_where_it_settles():
    found = estimated(looped(0.5, hk.Jacobi(outputs="stale")), 3)
    assert found.doubts[0].startswith("feedthrough on both sides: the algebraic loop ")
    assert "`sum.y`" in found.doubts[0]
    solved = estimated(looped(0.5, hk.Jacobi(outputs="consistent")), 3)
    assert not any("feedthrough" in doubt for doubt in solved.doubts)


class Shaky:
    """Counts its steps, and is wrong by something that has nothing to do with their length."""

    inputs = ("u",)
    outputs = ("y",)

    def start(self, t):
        self.steps = 0

    def output(self, t, u):
        return [np.sin(37.0 * self.steps**2)]

    def step(self, t, h, u):
        self.steps += 1


def shaky():
    source = hk.StateSpace(A=[[-1.0]], C=[[1.0]], x0=[1.0], outputs=["y"])
    models = {"source": source, "shaky": hk.Python(Shaky)}
    return hk.Composite(hk.Scenario(models, {"shaky.u": "source.y"}), "0.1 s")


def test_noise_is_doubted():
    found = estimated(shaky(), 10)
    assert found["shaky.y"].order < 0.5
    assert any("no observed order in `shaky.y`" in doubt for doubt in found.doubts)
    assert found.unseen == ("what is integrated inside `shaky`: the steps there stay as they are",)


def test_an_unstable_run_is_wrong_and_its_order_is_too_high():
    scenario = three_masses(2, "0.1 s", outputs="stale").scenario
    composite = hk.Composite(scenario, "0.1 s", hk.Jacobi(outputs="stale"))
    assert max(abs(np.linalg.eigvals(hk_reading(composite)))) > 1.0
    found = estimated(composite, 200)
    assert found.ports[0].relative > 0.5
    assert "the result is wrong: the global error exceeds 50 % of peak" in found.verdict()
    assert any(", expected order " in doubt or "overflow" in doubt for doubt in found.doubts)
    assert not found.good


def hk_reading(composite):
    from hocket.analysis.linear_reading import read_linear

    return read_linear(composite).Phi


def test_values_that_grew_beyond_all_numbers(tmp_path):
    grows = hk.StateSpace(A=[[60.0]], B=[[1.0]], C=[[1.0]], x0=[1.0], inputs=["u"], outputs=["y"])
    loop = hk.Composite(hk.Scenario({"a": grows}, {"a.u": "a.y"}), "0.5 s")
    with pytest.raises(SimulatorError, match="inf"):
        hk.run(loop, 20, folder=tmp_path / "run")
    found = estimate_run_error(hk.open_run(tmp_path / "run"))
    assert found.doubts[0].startswith("the run ended early at ")
    assert not found.good
    huge = replace(found.ports[0], error=np.full(len(found.ports[0].error), np.nan))
    assert huge.largest == huge.relative == np.inf
    write_estimate(tmp_path / "run", replace(found, ports=(huge,)))
    assert read_estimate(tmp_path / "run").ports[0].largest == np.inf
    found.plot(tmp_path / "huge.png")


def test_models_that_are_no_longer_the_same():
    run = hk.run(two_masses("Seidel12", 0.5), 10)
    other = Experiment(two_masses("Seidel12", 0.5, m1=1.0, ck=5.0), stop=Fraction(10), name="it")
    found = estimate_error(other, run)
    assert any("the models are not those that were run" in doubt for doubt in found.doubts)


class Stops:
    """Refuses steps that are shorter than half a second."""

    inputs = ("u",)
    outputs = ("y",)

    def start(self, t):
        self.y = 1.0

    def output(self, t, u):
        return [self.y]

    def step(self, t, h, u):
        if h < 0.4:
            raise ValueError("too short a step for me")
        self.y -= h * u[0][0]


def test_steps_that_cannot_be_made_leave_what_there_is():
    composite = hk.Composite(hk.Scenario({"a": hk.Python(Stops)}, {"a.u": "a.y"}), "0.5 s")
    found = estimated(composite, 5)
    assert found.ports == ()
    assert found.runs == 0
    assert found.doubts[0].startswith("there is no run with 1/2 of the steps: ")
    assert found.verdict()[0] == "not judged: there is no estimate of the global error"
    twice = hk.Composite(composite.scenario, "1 s")
    half = estimated(twice, 5)
    assert (half.runs, half["a.y"].order) == (1, None)
    truth = np.array([0.0**n for n in range(6)]) - np.array([0.25**n for n in range(6)])
    np.testing.assert_allclose(half["a.y"].error, 2.0 * truth)  # of order one, by promise
    assert half.doubts[0].startswith("there is no run with 1/4 of the steps: ")


# folders


def test_what_was_found_is_read_again(tmp_path):
    composite = three_masses(1, "0.1 s", "0.025 s")
    run = hk.run(composite, 5, folder=tmp_path / "run")
    assert read_estimate(run.path) is None
    found = estimate_error(Experiment(composite, stop=Fraction(5), name="it"), run)
    gap = InputDefect("a.u", "b.y", "N", 1.5, 0.25, 0.5, float("inf"))
    write_estimate(run.path, replace(found, gaps=(gap,), doubts=("not so sure",), unseen=("the rest",)))
    again = read_estimate(tmp_path / "run")
    assert again.gaps == (gap,)
    assert (again.doubts, again.unseen) == (("not so sure",), ("the rest",))
    assert (again.method, again.predicted, again.runs) == ("Richardson", 1, 2)
    assert again.rows() == found.rows()
    for one, other in zip(again.ports, found.ports, strict=True):
        assert (one.port, one.run.unit, one.order) == (other.port, other.run.unit, other.order)
        np.testing.assert_array_equal(one.run.t, other.run.t)
        np.testing.assert_array_equal(one.run.values, other.run.values)
        np.testing.assert_array_equal(one.error, other.error)
    facts = json.loads((tmp_path / "run" / TRUST).read_text())
    assert [each["largest"] for each in facts["ports"]] == [each.largest for each in found.ports]
    assert not list((tmp_path / "run").glob("*.new"))


def test_another_run_in_the_folder_forgets_it(tmp_path):
    composite = two_masses("Seidel12", 0.5)
    run = hk.run(composite, 5, folder=tmp_path / "run")
    write_estimate(run.path, ErrorEstimate((), (), 1))
    kept = [(run.path / name).read_bytes() for name in (TRUST, BANDS)]
    hk.run(composite, 5, folder=tmp_path / "run", overwrite=True)
    assert not (run.path / TRUST).exists()
    assert read_estimate(run.path) is None
    for name, content in zip((TRUST, BANDS), kept, strict=True):
        (run.path / name).write_bytes(content)
    assert read_estimate(run.path) is None  # of the run before


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"hocket_trust": "one"}',
        '{"hocket_trust": 1, "begun": 3}',
        '{"hocket_trust": 1}',
    ],
)
def test_what_is_damaged_is_said(tmp_path, text):
    run = hk.run(two_masses("Seidel12", 0.5), 5, folder=tmp_path / "run")
    write_estimate(run.path, ErrorEstimate((), (), 1))
    if text == '{"hocket_trust": 1, "begun": 3}':
        (run.path / TRUST).write_text(text)
        assert read_estimate(run.path) is None
        return
    (run.path / TRUST).write_text(text)
    with pytest.raises(FileError, match=r"`trust\.json` cannot be read") as caught:
        read_estimate(run.path)
    assert "--again" in str(caught.value)


def test_bands_that_are_damaged_or_gone(tmp_path):
    run = hk.run(two_masses("Seidel12", 0.5), 5, folder=tmp_path / "run")
    found = estimate_run_error(run)
    write_estimate(run.path, found)
    (run.path / BANDS).write_bytes((run.path / BANDS).read_bytes()[:300])
    with pytest.raises(FileError, match="cannot be read"):
        read_estimate(run.path)
    (run.path / BANDS).unlink()
    with pytest.raises(FileError, match="cannot be read"):
        read_estimate(run.path)
    newer = json.loads((run.path / TRUST).read_text()) | {"hocket_trust": 3}
    (run.path / TRUST).write_text(json.dumps(newer))
    with pytest.raises(FileError, match="newer hocket"):
        read_estimate(run.path)


def test_options_of_the_run_are_in_the_folder(tmp_path):
    composite = second_order()
    run = hk.run(composite, "8 s", start="2 s", step="0.2 s", engine="interpreter", folder=tmp_path / "run")
    assert engine_of(run) == "interpreter"
    experiment = experiment_of(run)
    assert (experiment.start, experiment.stop, experiment.composite.step) == (2, 8, Fraction(1, 5))
    found = estimate_run_error(run)
    assert found.doubts == ()
    for each in found.ports:
        truth = coupled(each.run.t - 2.0)[each.port]
        assert each.run.t[0] == 2.0
        assert each.largest == pytest.approx(np.abs(each.run.values - truth).max(), rel=0.1)


def test_a_run_that_failed_is_judged_as_far_as_it_came(tmp_path):
    masses = two_masses("Seidel12", 0.5).scenario
    models = {**masses.models, "limit": hk.Python(Fails)}
    scenario = hk.Scenario(models, [*masses.connections, hk.Connection("two.x", "limit.u")])
    with pytest.raises(SimulatorError):
        hk.run(hk.Composite(scenario, "0.5 s", hk.GaussSeidel(["one", "two", "limit"], outputs="stale")), 20,
               folder=tmp_path / "run")  # fmt: skip
    run = hk.open_run(tmp_path / "run")
    found = estimate_run_error(run)
    assert found.doubts[0].startswith("the run ended early at ")
    assert "failed" in found.doubts[0]
    assert found["two.x"].run.t[-1] == run["two.x"].t[-1] == 3.0
    truth = coupled(found["two.x"].run.t)["two.x"]
    assert found["two.x"].largest == pytest.approx(np.abs(found["two.x"].run.values - truth).max(), rel=0.2)


def test_rows_may_end_before_the_run_did(tmp_path):
    """A run that failed at 3 s, as told by its rows: every 2 s, and every 5 s."""
    limit = hk.Composite(hk.Scenario({"limit": hk.Python(Fails)}, {"limit.u": "limit.y"}), "0.5 s")
    for every in (2, 5):
        with pytest.raises(SimulatorError):
            hk.run(limit, 20, every=every, folder=tmp_path / str(every))
    said = estimate_run_error(hk.open_run(tmp_path / "2")).doubts[0]
    assert said == "the run ended early at 3 s, failed: it is judged up to its last row, at 2 s, not beyond"
    with pytest.raises(ScenarioError) as caught:
        estimate_run_error(hk.open_run(tmp_path / "5"))
    (fault,) = caught.value.faults
    assert fault.what == "the run came to 3 s, failed, and no row after its first step is kept"
    assert fault.where == str(tmp_path / "5")


class Fails:
    """Fails after three seconds."""

    inputs = ("u",)
    outputs = ("y",)

    def start(self, t):
        pass

    def output(self, t, u):
        return [0.0]

    def step(self, t, h, u):
        if t + h > 3.2:
            raise ValueError("enough")


# the defect


@pytest.mark.parametrize("coupling", ["Seidel12", "Control21"])
@pytest.mark.parametrize("h", [0.25, 1.0])
def test_linear_models_tell_the_error_without_another_run(coupling, h, monkeypatch):
    run = hk.run(two_masses(coupling, h), 20)
    monkeypatch.setattr("hocket.execution.run.run_experiment", None)
    found = estimate_run_error(run, quick=True)
    assert (found.method, found.doubts, found.runs) == ("defect", (), 0)
    for each in found.ports:
        error = each.run.values - coupled(each.run.t)[each.port]
        np.testing.assert_allclose(each.error, error, atol=1e-9 * np.abs(each.run.values).max())
    assert len(found.ports) == 3


@pytest.mark.parametrize("start", [0, 2])
def test_sources_of_time_are_played_as_they_were(start):
    lag = hk.StateSpace(A=[[-1.0]], B=[[1.0]], C=[[1.0]], x0=[0.0], inputs=["u"], outputs=["y"])
    models = {"lag": lag, "wave": hk.Function(np.sin, outputs=["y"])}
    composite = hk.Composite(hk.Scenario(models, {"lag.u": "wave.y"}), "0.1 s")
    experiment = Experiment(composite, start=Fraction(start), stop=Fraction(start + 10), name="it")
    found = trust_from_defect(hk.run(composite, start + 10, start=start), experiment)
    t, y = found["lag.y"].run
    truth = (np.sin(t) - np.cos(t) - (np.sin(start) - np.cos(start)) * np.exp(start - t)) / 2.0
    np.testing.assert_allclose(found["lag.y"].error, y - truth, atol=1e-12)
    assert found["lag.y"].largest > 0.03
    assert found.good


def test_the_defect_of_a_held_input_is_what_its_output_moved():
    run = hk.run(two_masses("Seidel12", 0.5), 10)
    found = {gap.input: gap for gap in estimate_run_error(run, quick=True).gaps}
    assert found.keys() == {"one.x2", "one.v2"}  # of two.F the step of the other is known
    for target, source in (("one.x2", "two.x"), ("one.v2", "two.v")):
        t, y = run[source]
        moved = np.abs(y[1:] - y[:-1])
        gap = found[target]
        assert gap.output == source
        assert gap.largest == pytest.approx(moved.max(), rel=1e-12)
        assert gap.at == t[1 + moved.argmax()]
        assert gap.mean == pytest.approx(moved.mean(), rel=1e-12)
        assert gap.relative == pytest.approx(moved.max() / np.abs(y).max(), rel=1e-12)


def test_the_defect_of_a_linear_input_is_how_its_output_bent():
    run = hk.run(second_order(), 10)
    found = {gap.input: gap for gap in estimate_run_error(run, quick=True).gaps}
    _, x = run["two.x"]
    assert found["one.x2"].largest == pytest.approx(np.abs(x[2:] - 2.0 * x[1:-1] + x[:-2]).max(), rel=1e-9)


def pendulum(angle):
    swing = hk.Ode(
        lambda t, x, u: [x[1], -9.81 * np.sin(x[0]) + u[0]], g=lambda t, x, u: [x[0]], x0=[angle, 0.0],
        inputs=["push"], outputs=["angle"], method="rk4", step="1 ms",
    )  # fmt: skip
    brake = hk.StateSpace(A=[[-5.0]], B=[[1.0]], C=[[-1.0]], x0=[0.0], inputs=["u"], outputs=["y"])
    scenario = hk.Scenario(
        {"swing": swing, "brake": brake}, {"swing.push": "brake.y", "brake.u": "swing.angle"}
    )
    return hk.Composite(scenario, "20 ms")


def test_linear_models_count_only_where_they_follow_the_run():
    for angle, followed in ((0.01, True), (2.0, False)):
        composite = pendulum(angle)
        run = hk.run(composite, 2)
        found = trust_from_defect(run, Experiment(composite, stop=Fraction(2), name="it"))
        assert bool(found.ports) == followed
        assert found.gaps
        if not followed:
            (doubt,) = found.doubts
            assert doubt.startswith("no error per port: its linear model is too far from ")
            assert not found.good
            assert found.verdict()[0] == "not judged: there is no estimate of the global error"
        else:
            fine = hk.run(hk.Composite(composite.scenario, "1 ms"), 2, every="20 ms")
            true = np.abs(run["swing.angle"].values - fine["swing.angle"].values).max()
            assert 0.5 < found["swing.angle"].largest / true < 2.0


def test_black_boxes_have_defects_only():
    composite = shaky()
    found = trust_from_defect(hk.run(composite, 1), Experiment(composite, stop=Fraction(1), name="it"))
    assert found.doubts == ("no error per port: `shaky` is neither a linear model nor an equation",)
    assert [gap.input for gap in found.gaps] == ["shaky.u"]
    sparse = trust_from_defect(
        hk.run(composite, 1, every="0.5 s"), Experiment(composite, stop=Fraction(1), name="it")
    )
    assert sparse.gaps == ()
    assert "the defect of `shaky.u`: inputs are kept only if --record names them" in sparse.unseen


def unreadable(tmp_path, record):
    composite = pendulum(0.5)
    return hk.run(composite, 1, record=record, folder=tmp_path / "run")


def test_a_scenario_that_cannot_be_opened_again_leaves_the_defect(tmp_path):
    run = unreadable(tmp_path, ["*", "brake.u"])
    with pytest.raises(ScenarioError, match="cannot be opened again"):
        experiment_of(run)
    found = estimate_run_error(run)
    assert found.method == "defect"
    assert found.doubts[0].startswith("the scenario cannot be opened again (scenario.toml, line ")
    (gap,) = found.gaps
    (_, u), (_, y) = run["brake.u"], run["swing.angle"]
    assert (gap.input, gap.output) == ("brake.u", "swing.angle")
    assert gap.largest == pytest.approx(np.abs(u - y).max(), rel=1e-12)
    assert any("`swing.push`" in what for what in found.unseen)


# pictures


def test_pictures(tmp_path):
    run = hk.run(two_masses("Seidel12", 0.5), 10)
    found = estimate_run_error(run)
    figure = found.plot(tmp_path / "bands.png")
    assert len(figure.axes) == 3
    assert all(axes.collections for axes in figure.axes)
    assert (tmp_path / "bands.png").read_bytes()[:4] == b"\x89PNG"
    gaps = replace(estimate_run_error(run, quick=True), ports=())
    assert len(gaps.plot().axes[0].patches) == len(gaps.gaps)


# what is zero, what is short, what is late


def symmetric(other=1.0):
    """Two states are alike for ever: their difference is rounding."""
    A = [[-1, 0.3, 0], [0.3, -1.5, 0.3], [0, 0.3, -1]]
    ports = {"inputs": ["u"], "outputs": ["difference", "sum"], "x0": [1, 0.2, 1]}
    a = hk.StateSpace(A, [[1], [0.7], [other]], [[1, 0, -1], [1, 1, 1]], **ports)
    b = hk.StateSpace([[-2]], [[-1]], [[1]], inputs=["u"], outputs=["y"])
    return hk.Composite(hk.Scenario({"a": a, "b": b}, {"a.u": "b.y", "b.u": "a.sum"}), "10 ms")


def test_the_rounding_of_a_port_that_stays_zero_is_no_error(tmp_path):
    run = hk.run(symmetric(), 5, folder=tmp_path / "run")
    found = estimate_error(Experiment(symmetric(), stop=Fraction(5)), run)
    assert found.good
    assert found.ports[-1].port == "a.difference"
    assert (found["a.difference"].relative, found["a.difference"].order) == (0.0, None)
    assert 0.0 < found["a.difference"].largest < 1e-13
    write_estimate(run.path, found)
    assert read_estimate(run.path)["a.difference"].relative == 0.0


def test_a_small_port_that_moves_is_no_rounding():
    """The difference is 1e-13 of the sum, but it falls with the steps as an error does."""
    composite = symmetric()
    models = dict(composite.scenario.models)
    models["a"] = replace(models["a"], C=[[1e-13, 0, 0], [1, 1, 1]])
    found = estimated(composite.with_scenario(composite.scenario.with_models(models)), 5)
    assert found.good
    assert found["a.difference"].order == pytest.approx(1.0, abs=0.1)
    assert found["a.difference"].relative > 1e-3


@pytest.mark.parametrize(("unit", "start"), [(Fraction(1, 10**9), 0), (Fraction(1, 100), 10**9)])
def test_steps_of_a_nanosecond_and_starts_after_thirty_years(unit, start, tmp_path):
    """A lag of 50 steps fed with half of itself, held: the factor is (1 + e) / 2, e = exp(-1 / 50)."""
    rate = 1 / (50 * float(unit))
    lag = hk.StateSpace(A=[[-rate]], B=[[rate]], C=[[1]], x0=[1], inputs=["u"], outputs=["y"])
    scenario = hk.Scenario({"lag": lag, "half": hk.Gain(0.5)}, {"lag.u": "half.y", "half.u": "lag.y"})
    composite = hk.Composite(scenario, unit)
    stop = start + 100 * unit
    run = hk.run(composite, stop, start=start, folder=tmp_path / "run")
    experiment = Experiment(composite, stop=Fraction(stop), start=Fraction(start))
    found = estimate_error(experiment, run)
    assert found.good, found.verdict()
    e, steps = np.exp(-1 / 50), np.arange(101)
    error = (0.5 + 0.5 * e) ** steps - np.exp(-steps / 100)
    assert len(found["lag.y"].error) == 101
    assert found["lag.y"].largest == pytest.approx(np.abs(error).max(), rel=0.05)
    assert found["lag.y"].order == pytest.approx(1.0, abs=0.05)
    quick = trust_from_defect(run, experiment)
    assert quick["lag.y"].largest == pytest.approx(np.abs(error).max(), rel=1e-6)
    (gap,) = [each for each in quick.gaps if each.input == "lag.u"]
    assert gap.largest == pytest.approx(0.5 * (1 - (0.5 + 0.5 * e)), rel=1e-6)


def test_what_does_not_change_with_the_steps_has_no_order():
    """A source alone: shorter steps give the same numbers, and no power of zero is made up."""
    source = hk.Function(lambda t: [1.0 + t], ["y"])
    scenario = hk.Scenario({"source": source, "lag": LAG}, {"lag.u": "source.y"})
    composite = hk.Composite(scenario, "0.1 s")
    made = estimate_error(Experiment(composite, stop=Fraction(2)), hk.run(composite, 2))
    orders = {each.run.name: each.order for each in made.ports}
    assert orders["source.y"] is None
    assert orders["lag.y"] == pytest.approx(1.0, abs=0.1)


def test_rounding_is_counted_beside_the_ports_of_a_simulator_and_of_a_unit():
    """1e-12 of the largest value that is comparable; what is not finite tells nothing."""
    values = {
        "a.x": ([3.0, -4.0], "m"),
        "a.v": ([0.5, 0.0], "m/s"),
        "b.x": ([0.1, 0.2], "m"),
        "b.w": ([np.inf, 1e9], "J"),
        "c.n": ([np.nan, 7.0], "N"),
    }
    columns = {
        port: SimpleNamespace(values=np.array(each), unit=unit) for port, (each, unit) in values.items()
    }

    class Rows(dict):
        ports = tuple(columns)

    found = rounding_by_port(Rows(columns))
    expected = {"a.x": 4e-12, "a.v": 4e-12, "b.x": 4e-12, "b.w": 2e-13, "c.n": 0.0}
    assert found == pytest.approx(expected, rel=1e-9, abs=0.0)


# Step control


def spring(t, x, u):
    return [x[1], -4.0 * x[0] - 0.2 * x[1] + u[0]]


def follower(t, x, u):
    return [u[0] - x[0]]


@pytest.mark.parametrize("extrapolation", ["hold", "linear"])
@pytest.mark.parametrize("estimate", ["defect", "richardson"])
def test_levels_that_control_their_steps_are_judged_by_tighter_tolerances(estimate, extrapolation):
    """Shorter longest steps alone change little: the estimate was 0.19 of the error with held inputs."""
    models = {
        "a": hk.Ode(spring, x0=[1.0, 0.0], inputs=["u"], outputs=["x", "v"]),
        "b": hk.Ode(follower, x0=[0.5], inputs=["u"], outputs=["z"]),
    }
    scenario = hk.Scenario(models, [("a.x", "b.u"), ("b.z", "a.u")])
    how = hk.Adaptive(tolerance=1e-2, estimate=estimate)
    found = estimated(hk.Composite(scenario, "200 ms", how, extrapolation), 4)
    A = np.array([[0.0, 1.0, 0.0], [-4.0, -0.2, 1.0], [1.0, 0.0, -1.0]])
    for row, port in enumerate(("a.x", "a.v", "b.z")):
        exact = [(expm(A * t) @ [1.0, 0.0, 0.5])[row] for t in found[port].run.t]
        true = np.abs(found[port].run.values - exact).max()
        assert found[port].largest == pytest.approx(true, rel=0.25)
    assert found.doubts == ()
