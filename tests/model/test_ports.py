"""Patterns of paths: wildcards, and the indices of array elements, which are part of a name."""

import pytest

import hocket as hk
from hocket.model.ports import is_pattern, matches
from hocket.planning.compiler.accuracy import Accuracy
from hocket.search.tune.objectives import counted_outputs


@pytest.mark.parametrize(
    ("pattern", "path", "answer"),
    [
        ("*.x", "car.wheel.x", True),
        ("car.?heel.x", "car.wheel.x", True),
        ("*.[xy]", "car.y", True),
        ("*.[xy]", "car.z", False),
        ("tank.level[2]", "tank.level[2]", True),
        ("tank.level[2]", "tank.level2", False),
        ("*.level[1, 2]", "tank.level[1, 2]", True),
        ("*.level[?]", "tank.level?", True),
        ("tank.level[[]*]", "tank.level[2]", True),
    ],
)
def test_paths_that_match(pattern: str, path: str, answer: bool) -> None:
    assert matches(path, pattern) is answer
    assert matches(path, "nothing", pattern) is answer
    assert is_pattern(pattern) is (pattern != "tank.level[2]")


def test_no_pattern_matches_nothing() -> None:
    assert not matches("a.x")


def _element() -> hk.Composite:
    outputs = [hk.Port("x[1]"), hk.Port("x1")]
    lag = hk.StateSpace(A=[[-1.0]], B=[[1.0]], C=[[1.0], [2.0]], x0=[1.0], inputs=["u"], outputs=outputs)
    back = hk.StateSpace(A=[[-1.0]], B=[[1.0]], C=[[1.0]], inputs=["u"], outputs=["y"])
    scenario = hk.Scenario({"a": lag, "b": back}, {"b.u": "a.x1", "a.u": "b.y"}, record=("a.x[1]",))
    return hk.Composite(scenario, "10 ms")


def test_elements_of_arrays_are_meant_by_their_names() -> None:
    """`x[1]` was read as a set of one character: the other port, or every port, was taken for it."""
    composite = _element()
    ports = ["a.x[1]", "a.x1", "b.y"]
    assert counted_outputs(composite, ports, ()) == ["a.x[1]"]
    assert counted_outputs(composite, ports, ("x[1]",)) == ["a.x[1]"]
    run = hk.run(composite, stop=1, folder=None)
    assert run.select(["a.x[1]"]) == ("a.x[1]",)
    assert not Accuracy(1e-3, tolerances={"a.x[1]": 1e-6}).check_preconditions(composite)
