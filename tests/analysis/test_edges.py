"""Decisions at their edges: what counts as growing, as rounding, as a change that helps."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import hocket as hk
from hocket.analysis import consistency, coupling_check
from hocket.analysis.bond_energy import BondCheck, BondGain, Remedy, _energy_grows
from hocket.analysis.consistency import relative_consistency
from hocket.analysis.defect_estimate import changed_model_doubts, connection_gaps
from hocket.analysis.disturbance_transfer import Transfer, _refine_peak
from hocket.analysis.error_prediction import predicted_order
from hocket.analysis.forced_response import DrivenSolution, couple_devices, devices_of
from hocket.analysis.identification import HankelSpectrum
from hocket.analysis.linear_models import Tangent
from hocket.analysis.linearisation import RefusedError, _check_events
from hocket.analysis.measure import Outcome
from hocket.analysis.recommended_change import CouplingChange, RecommendedChanges, best_change
from hocket.analysis.run_error import _observed_order
from hocket.analysis.stability import EDGE, MARGIN, IterationConvergence, Stability, participation_factors
from hocket.analysis.stability_intervals import largest_modulus, stable_intervals
from hocket.analysis.stability_radius import StabilityRadii, StabilityRadius
from hocket.engine.opening import open_level
from hocket.errors import ScenarioError
from hocket.files.plotting import Series
from hocket.model.clock import seconds
from hocket.model.experiment import Experiment
from systems import FREE_LAG, LAG, LAG_AT_REST


def change(rho, error=None, steps=1.0):
    return CouplingChange("another", rho, error, steps)


def test_a_change_that_leaves_a_free_body_on_the_circle_makes_it_stable():
    """A free body has an eigenvalue of one, whatever the coupling."""
    assert best_change([change(1.0)], 1.5, None) == change(1.0)
    assert best_change([change(1.0 + 2.0 * EDGE)], 1.5, None) is None
    assert best_change([change(1.0)], 1.0, None) is None


def test_a_stable_coupling_is_changed_only_for_an_error_that_is_known():
    known, unknown = change(0.9, 0.001), change(0.9)
    assert best_change([unknown], 0.9, 0.1) is None
    assert best_change([unknown, known], 0.9, 0.1) == known


@pytest.mark.parametrize(
    ("best", "now", "said"),
    [
        (change(0.5), None, "another: spectral radius 0.5"),
        (change(0.5), 0.2, "another: spectral radius 0.5"),
        (change(0.5, 0.01), None, "another: spectral radius 0.5, predicted global error 1 % of peak"),
        (
            change(0.5, 0.01, 2.0),
            0.2,
            "another: spectral radius 0.5, predicted global error 1 % of peak instead of 20 %, "
            "for 2 times the steps",
        ),
        (change(0.5, math.inf), 0.2, "another: spectral radius 0.5"),
    ],
)
def test_what_is_said_of_a_change(best, now, said):
    (line,) = RecommendedChanges((best,), best, now).verdict()
    assert line == f"recommended change: {said}"


def stability(rho, stable=False, **more):
    return Stability(rho, stable, 1.0, (), (), **more)


def test_a_verdict_on_exact_models_is_conclusive():
    assert stability(0.5, True).conclusive
    assert stability(0.5, True).outcome is Outcome.GOOD
    assert stability(1.5).outcome is Outcome.BAD


@pytest.mark.parametrize(
    ("rho", "exact", "grows"),
    [
        (1.5, None, False),
        (1.0 + MARGIN, 1.0 + MARGIN, False),
        (1.0 + 2.0 * MARGIN, 1.0 + 2.0 * MARGIN, True),
        (1.5, 1.5, True),
        (1.5, 1.2, False),
        (1.01, 1.5, True),
    ],
)
def test_what_grows_by_itself_grows_as_fast_as_the_exact_system(rho, exact, grows):
    found = stability(rho, exact_rho=exact)
    assert found.grows_by_itself is grows
    assert found.outcome is (Outcome.GOOD if grows else Outcome.BAD)


def test_motions_that_stand_still_are_eigenvalues_of_one():
    values = np.array([-1.0, 1.0, 0.5, 1.0])
    assert largest_modulus(values, 2) == 1.0
    assert largest_modulus(values[1:], 2) == 0.5
    assert largest_modulus(values[1:], 1) == 1.0
    assert largest_modulus(values[1:]) == 1.0
    assert largest_modulus(np.array([1.0 + 2.0 * EDGE, 0.5]), 1) == 1.0 + 2.0 * EDGE


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), (2.0, 1.0), (0.0, math.inf)])
def test_a_parameter_goes_upwards(low, high):
    with pytest.raises(ScenarioError, match=f"cannot go from {low:g} to {high:g}"):
        stable_intervals(lambda _: 0.5, low, high)


def test_differences_are_rounding_in_relation_to_values():
    ones = np.ones(5)
    assert _observed_order(1e-6 * ones, 5e-7 * ones, 1e6 * ones) is None
    assert _observed_order(1e-9 * ones, 2.5e-10 * ones, 1e-6 * ones) == pytest.approx(2.0)
    assert _observed_order(1e-6 * ones, 5e-7 * ones, ones) == pytest.approx(1.0)


def test_what_cannot_be_computed_is_said():
    coupling = coupling_check.Coupling(None, None, {}, advise=False, robust=None)
    assert coupling.guard("radius", lambda: np.linalg.inv(np.zeros((1, 1)))) is None
    assert coupling.guard("size", lambda: math.exp(1e9)) is None
    assert coupling.failed == [
        "radius: its numbers are too large or too small (Singular matrix)",
        "size: its numbers are too large or too small (math range error)",
    ]


@pytest.mark.parametrize(
    ("stop", "length", "notes"),
    [
        ("0.1 s", "0.1 s", []),
        ("0.2 s", "0.1 s", ["the run has 2 macro steps, only the first are predicted"]),
    ],
)
def test_at_least_one_step_of_a_run_is_predicted(monkeypatch, stop, length, notes):
    monkeypatch.setattr(coupling_check, "NUMBERS", 0)
    composite = hk.Composite(hk.Scenario({"a": LAG, "b": LAG}, {"a.u": "b.y", "b.u": "a.y"}), "0.1 s")
    experiment = coupling_check.as_experiment(composite, stop=stop)
    coupling = coupling_check._read_coupling(experiment, advise=False, robust=False)
    assert coupling.length == seconds(length)
    assert coupling.failed == [f"global error after 0.1 s: {note}" for note in notes]


@pytest.mark.parametrize(("radius", "angle"), [(0.9, 1.0), (0.5, 2.0), (0.99, 0.4)])
def test_the_peak_of_a_rotation_is_at_its_angle(radius, angle):
    """The resolvent of r times a rotation by a is largest at a, with 1 / (1 - r)."""
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    transfer, angles = Transfer.resolvent(radius * turn), np.linspace(0.0, math.pi, 8)
    place, gain = _refine_peak(transfer, angles, transfer.gains(angles), 3)
    assert place == pytest.approx(angle, abs=1e-3 * (1.0 - radius))
    assert gain == pytest.approx(1.0 / (1.0 - radius), rel=1e-6)


def test_what_is_not_connected_is_consistent():
    assert relative_consistency(hk.Composite(hk.Scenario({"a": FREE_LAG}), "0.1 s")).delta == 0.0


def test_a_run_starts_where_it_starts_also_at_zero():
    still = hk.Scenario({"a": LAG_AT_REST, "b": LAG_AT_REST}, {"a.u": "b.y", "b.u": "a.y"})
    run = hk.run(hk.Composite(still, "0.1 s"), "0.5 s")
    assert not run["a.y"].values.any()
    assert list(changed_model_doubts(run, [run])) == []


@pytest.mark.parametrize(("how", "off"), [("hold", 2.0 * 0.19), ("linear", 2.0 * 0.02)])
def test_what_an_extrapolation_misses_is_the_next_difference_of_its_output(how, off):
    """t^2 at steps of 0.1 s rises by 0.19 in the last of them, its differences by 0.02; u = 2 t^2 - 3."""
    models = {"one": hk.Function(lambda t: [t], ["y"]), "curve": hk.Function(lambda t: [t * t], ["y"])}
    models |= {"a": LAG, "b": LAG}
    wires = [hk.Connection("one.y", "a.u"), hk.Connection("curve.y", "b.u", gain=2.0, offset=-3.0)]
    composite = hk.Composite(hk.Scenario(models, wires), "0.1 s", hk.Jacobi(), how)
    known, missing = connection_gaps(
        hk.run(composite, 1, record=["curve.y", "a.y", "b.y"]), Experiment(composite, stop=1)
    )
    assert missing == ["a.u"]
    (gap,) = known
    assert (gap.input, gap.output) == ("b.u", "curve.y")
    assert gap.largest == pytest.approx(off)
    assert gap.relative == pytest.approx(off / 3.0)


@pytest.mark.parametrize(("level", "name"), [("", "the outermost level"), ("in.side", "`in.side`")])
def test_an_iteration_is_named_after_its_level(level, name):
    assert IterationConvergence(level, 0.5, 0.5, "plain", 1, 30).name == name


def test_motion_without_an_event_is_that_of_the_tangent():
    """x' = 2 - x from 1 is 2 - e^-t; the outputs are x and x / 1000 + 5, and the input is silent."""
    A, B, C, D = (np.array(each) for each in ([[-1.0]], [[0.0]], [[1.0], [0.001]], [[0.0], [0.0]]))
    tangent = Tangent(LAG, A, B, C, D, np.ones(1), np.array([2.0]), np.array([0.0, 5.0]))
    place = SimpleNamespace(u=np.zeros(1), h=0.25)
    x = 2.0 - np.exp(-0.25 * np.arange(9))
    _check_events(tangent, np.column_stack([x, 0.001 * x + 5.0]), place)
    with pytest.raises(RefusedError, match="does not move as its tangent within 2 s"):
        _check_events(tangent, np.column_stack([x, 0.002 * x + 4.999]), place)


@pytest.mark.parametrize(
    ("how", "order", "where"),
    [
        (None, 2, "`a.u` is extrapolated with degree 1"),
        (hk.Hold(), 1, "`in.b.u` is extrapolated with degree 0"),
    ],
)
def test_a_level_that_holds_what_comes_from_outside_has_the_order_of_that(how, order, where):
    wires = [hk.Connection("u", "b.u", extrapolation=how), hk.Connection("b.y", "y")]
    inside = hk.Scenario({"b": LAG}, wires, inputs=["u = 0"], outputs=["y"])
    models = {"a": LAG, "in": hk.Composite(inside, "0.1 s", extrapolation="linear")}
    outer = hk.Scenario(models, {"a.u": "in.y", "in.u": "a.y"})
    assert predicted_order(hk.Composite(outer, "0.1 s", extrapolation="linear")) == (order, where)


@pytest.mark.parametrize(
    ("t", "values", "doubts"),
    [([0.0, 1.0], [2.0, 3.0], 1), ([0.5, 1.0], [2.0, 3.0], 0), ([0.0], [1.0], 0), ([], [], 0)],
)
def test_starts_are_compared_where_both_are_known(t, values, doubts):
    def recorded(t, values):
        class Recorded(dict):
            ports, info = ("a.y",), {}

        return Recorded({"a.y": Series(np.array(t), np.array(values), "", "a.y")})

    run = recorded([0.0, 1.0], [1.0, 2.0])
    assert len(list(changed_model_doubts(run, [recorded(t, values)]))) == doubts
    assert len(list(changed_model_doubts(recorded(t, values), [run]))) == doubts


@pytest.mark.parametrize(
    ("rho", "own", "steps", "grows"),
    [
        (1.0001, 1.0, 40, False),  # (1 + 1e-4)^80 is 1.008
        (1.0001, 1.0, 60, True),  # (1 + 1e-4)^120 is 1.012
        (2.0002, 2.0, 60, True),
        (0.9, 1.0, 1000, False),
        (1.0, 1.0, 1000, False),
        (None, 1.0, 60, False),
        (1.0001, None, 60, False),
        (None, None, 60, False),
    ],
)
def test_energy_grows_with_the_square_of_motion_by_more_than_one_percent(rho, own, steps, grows):
    assert _energy_grows(rho, own, steps) is grows


def test_states_take_part_as_their_simulator_and_what_is_exchanged_as_its_port():
    cells = [
        SimpleNamespace(kind=kind, owner=owner, name=name)
        for kind, owner, name in (
            ("state", "a", "x1"),
            ("history", "a", "x2"),
            ("sample", "b", "y"),
            ("input", "b", "u"),
        )
    ]
    parts = participation_factors(cells, np.array([1.0, 2.0, 1j, 1.0]), np.array([2.0, 1.0, 3.0, 0.0]))
    found = [(part.name, part.kind, part.share) for part in parts]
    assert found == [("a", "simulator", pytest.approx(4 / 7)), ("b.y", "sample", pytest.approx(3 / 7))]


def test_times_next_to_a_break_are_meant_as_the_break():
    solution = SimpleNamespace(signals=SimpleNamespace(breaks=np.array([0.0, 1.0, 2.0, 4.0])))
    times = np.array(
        [0.0, 0.3, 1.0 - 1e-15, 1.0 + 1e-15, 1.6, 2.0 - 1e-15, 2.0 + 1e-15, 2.0 + 1e-9, 4.0 + 1e-15]
    )
    meant = [0.0, 0.3, 1.0, 1.0, 1.6, 2.0, 2.0, 2.0 + 1e-9, 4.0]
    assert DrivenSolution._snap_to_breaks(solution, times).tolist() == meant


@pytest.mark.parametrize(
    ("share", "remedies", "last"),
    [
        (0.001, [], "0.1 % of the transferred energy, the bonds conserve energy"),
        (0.2, [], "the bond `rod` gains 0.02 J per step, 20.0 % of the transferred energy"),
        (
            0.2,
            [Remedy("shorter steps", 0.05, 4.0), Remedy("iterate", 0.002, 3.0), Remedy("balance", 0.0, 9.0)],
            "conserves energy: iterate: energy residual 0.2 % of the transferred energy, "
            "for 3 times the steps",
        ),
        (
            0.2,
            [Remedy("shorter steps", 0.05, 1.0)],
            "comes nearest to conserving energy: shorter steps: energy residual 5 % "
            "of the transferred energy",
        ),
    ],
)
def test_the_cheapest_remedy_that_conserves_energy_is_named_if_one_is_needed(share, remedies, last):
    gain = BondGain("rod", 10.0 * share, 10.0, seconds=10.0, step=0.1, unit="J")
    lines = BondCheck((gain,), Remedy("now", share, 1.0), tuple(remedies)).verdict()
    assert len(lines) == 1 + bool(remedies)
    assert lines[-1].removeprefix("energy residual: ") == last


@pytest.mark.parametrize(
    ("angle", "mode"),
    [(0.0, "no oscillation"), (1e-6, "no oscillation"), (math.pi / 2.0, "oscillation at 0.5 Hz")],
)
def test_a_quarter_turn_in_half_a_second_is_half_a_hertz(angle, mode):
    (line,) = StabilityRadii((StabilityRadius(0.1, 0.1, True, angle, 0.5),)).verdict()
    assert f"instability with {mode};" in line


def test_a_radius_of_one_at_the_end_of_a_range_begins_no_interval():
    assert not stable_intervals(lambda p: 1.0 + p, 0.0, 1.0).intervals
    (found,) = stable_intervals(lambda p: 1.0 - p, 0.0, 1.0).intervals
    assert (found.low, found.high) == pytest.approx((0.0, 1.0), abs=1e-6)


def test_simulators_that_were_started_for_defects_are_closed(monkeypatch):
    closed = []

    def opened(*arguments):
        root = open_level(*arguments)
        monkeypatch.setattr(root, "close", lambda: closed.append(root))
        return root

    monkeypatch.setattr(consistency, "open_level", opened)
    composite = hk.Composite(hk.Scenario({"a": LAG, "b": LAG}, {"a.u": "b.y", "b.u": "a.y"}), "0.1 s")
    assert consistency.defects_from_starts(composite, 1).shape == (2, 2)
    assert len(closed) == 1


def test_responses_are_scaled_to_the_size_of_each_output_and_input():
    """Answers 0.001 2^-k to the first input and half of that to the second."""
    answers = 0.001 * 0.5 ** np.arange(12.0)[:, None, None] * np.array([[[1.0, 0.5]]])
    found = HankelSpectrum.of(answers)
    assert found.rows.tolist() == [0.001]
    assert found.columns.tolist() == [1.0, 0.5]


def test_a_sampled_device_adds_what_it_shows_and_what_it_sees():
    """It sees 1 of the plant and 3 that nobody drives, and shows 2 (3) - 0.5 (1) = 5.5 from the start on."""
    device = hk.StateSpace(D=[[-0.5, 2.0]], inputs=["x = 0", "r = 3"], outputs=["u"])
    sampled = hk.Composite(hk.Scenario({"g": device}), "0.2 s", sampled=True)
    models = {"plant": LAG, "c": sampled}
    composite = hk.Composite(hk.Scenario(models, {"plant.u": "c.g.u", "c.g.x": "plant.y"}), "0.1 s")
    system = couple_devices(composite, devices_of(composite))[0].system
    assert system.states == ("plant.x1", "shown by c.g 0", "seen 0", "seen 1")
    assert system.x0.tolist() == [1.0, 5.5, 1.0, 3.0]


def test_what_equations_determine_does_not_hide_others_that_start_elsewhere():
    class Recorded(dict):
        ports, info = ("a.y", "b.y"), {"determined": ["a.y"]}

    def recorded(start):
        t, values = np.array([0.0, 1.0]), np.array([start, 2.0])
        return Recorded({port: Series(t, values, "", port) for port in Recorded.ports})

    (said,) = changed_model_doubts(recorded(1.0), [recorded(3.0)])
    assert said.startswith("`b.y` starts elsewhere")
