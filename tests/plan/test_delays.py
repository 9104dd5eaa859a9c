"""What arrives late by design is told, not refused."""

from fractions import Fraction as F

from hocket import GaussSeidel, Jacobi, Scenario
from hocket.plan import Feed, Next, Read, Record, Step, Times
from hocket.plan.verify.verifier import find_delays, verify_plan
from plan.levels import CROSSED, RING, A, B, plan, turn
from systems import LAG_AT_REST


def lags(made, scenario=RING):
    assert verify_plan(made, scenario) == []
    return {(each.source, each.target): each.lag for each in find_delays(made, scenario)}


def test_jacobi_extrapolates_everything():
    assert lags(Jacobi(outputs="stale").plan(RING)) == {("b.y", "a.u"): 1, ("a.y", "b.u"): 1}


def test_gauss_seidel_extrapolates_what_points_backwards():
    assert lags(GaussSeidel(["a", "b"]).plan(RING)) == {("b.y", "a.u"): 1}
    assert lags(GaussSeidel(["b", "a"]).plan(RING)) == {("a.y", "b.u"): 1}
    assert len(lags(GaussSeidel([["a", "b"]]).plan(RING))) == 2


def test_a_slow_source_is_extrapolated_further_and_further():
    """b makes four steps while a waits: the last of them ends a whole step after the sample of a."""
    made = plan(Times(4, turn("b", F(1, 4))), *A, Record())
    assert lags(made) == {("a.y", "b.u"): 1}
    made = plan(*A, Times(4, turn("b", F(1, 4))), Record())
    assert lags(made) == {("b.y", "a.u"): 1}
    made = plan(Times(2, (*turn("a", F(1, 2)), *turn("b", F(1, 2)))), Record())
    assert lags(made) == {("b.y", "a.u"): F(1, 2)}


def test_turns_are_extrapolated_by_what_is_left_of_them():
    """a at 0, b at 0, b at 1/3, a at 1/2, b at 2/3: b sees a at 1/2, 1/2, 1; a sees b at 0 and 2/3."""
    made = plan(Next((turn("a", F(1, 2)), turn("b", F(1, 3)))), Record())
    assert lags(made) == {("b.y", "a.u"): F(1, 2), ("a.y", "b.u"): F(1, 6)}
    made = plan(Next((A, turn("b", F(1, 4)))), Record())
    assert lags(made) == {("b.y", "a.u"): 1}
    made = plan(Next((turn("b", F(1, 4)), A)), Record())
    assert lags(made) == {("b.y", "a.u"): F(3, 4), ("a.y", "b.u"): F(1, 4)}


def test_inputs_from_outside_are_late_if_they_are_admitted_late():
    level = Scenario({"a": LAG_AT_REST}, {"a.u": "force", "y": "a.y"}, ["force"], ["y"])
    assert lags(Jacobi().plan(level), level) == {}
    assert lags(Jacobi(inputs="delayed").plan(level), level) == {("force", "a.u"): 1}


def test_a_delay_in_words():
    (delay,) = find_delays(plan(*A, *B, Record()), RING)
    assert str(delay) == "`a.u` is `b.y` extrapolated over 1 of a step (step 2: step a)"


def test_a_delay_by_a_feed_before_the_source_steps_is_meant():
    """The sequential form of Jacobi: both are fed first. Fed after the step, unread, it is a fault."""
    fed_first = plan(Feed("a"), Feed("b"), Step("a"), Read("a"), Step("b"), Read("b"), Record())
    assert len(lags(fed_first)) == 2
    fed_late = plan(Feed("a"), Step("a"), Feed("b"), Read("a"), Step("b"), Read("b"), Record())
    apart = Scenario({"a": LAG_AT_REST, "b": LAG_AT_REST}, CROSSED)
    assert [fault.kind for fault in verify_plan(fed_late, apart)] == ["unread source"]
