"""What a file holds can be made by hand too: times as durations, faults by name."""

from fractions import Fraction

import pytest

import hocket as hk
from systems import FREE_LAG


def test_times_may_be_durations():
    made = hk.Experiment(hk.Composite(hk.Scenario({"a": FREE_LAG}), "10 ms"), "1 s", stop=2.5, every="20 ms")
    assert (made.start, made.stop, made.every) == (1, Fraction(5, 2), Fraction(1, 50))
    assert hk.run(made, record=["a.*"]).status == "finished"


@pytest.mark.parametrize("key", ["start", "stop", "every"])
def test_what_is_not_a_duration_is_told_by_its_key(key):
    with pytest.raises(hk.ScenarioError, match="`soon` is not a duration") as caught:
        hk.Experiment(hk.Composite(hk.Scenario({"a": FREE_LAG}), "10 ms"), **{key: "soon"})
    assert caught.value.faults[0].place.key == key
