"""Which ports a pattern means."""

import pytest

import hocket as hk

NAMES = ("y[1, 2]", "y[1,3]", "z[1]", "z1")


@pytest.fixture
def arrays():
    return hk.Composite(hk.Scenario({"a": hk.StateSpace(outputs=[hk.Port(name) for name in NAMES])}), 0.1)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("a.y[1, 2]", ["y[1, 2]"]),
        ("a.y[1,3]", ["y[1,3]"]),
        ("*[1, 2]", ["y[1, 2]"]),
        ("a.z[1]", ["z[1]"]),
        ("*z[1]", ["z[1]"]),
        ("a.[yz]1", ["z1"]),
        ("a.y*", ["y[1, 2]", "y[1,3]"]),
    ],
)
def test_indices_are_no_wildcards(arrays, pattern, found):
    assert hk.run(arrays, 0.1, record=[pattern]).ports == tuple(f"a.{name}" for name in found)


def test_a_blank_too_much_is_told(arrays):
    with pytest.raises(hk.ScenarioError, match=r"no port `a.y\[1, 3\]` to record"):
        hk.run(arrays, 0.1, record=["a.y[1, 3]"])
