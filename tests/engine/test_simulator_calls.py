"""Calls of simulators: what they are given, and what is said of those that raise."""

from types import SimpleNamespace

import numpy as np
import pytest

from hocket.engine.opening import _open_model
from hocket.engine.simulator_calls import _raising_line, read_only


def test_a_simulator_cannot_write_into_its_inputs():
    u = np.ones((2, 1))
    seen = read_only(u)
    with pytest.raises(ValueError, match="read-only"):
        seen[0, 0] = 2.0
    u[0, 0] = 3.0
    assert seen[0, 0] == 3.0


def test_the_line_of_a_simulator_that_raised_is_named_and_none_of_hocket():
    def faulty():
        raise ValueError

    with pytest.raises(ValueError) as raised:
        faulty()
    line = faulty.__code__.co_firstlineno + 1
    assert _raising_line(raised.value) == f", test_simulator_calls.py line {line}"


def test_a_simulator_that_has_a_name_is_given_its_path():
    named, nameless = SimpleNamespace(instance_name=""), SimpleNamespace()
    for simulator in (named, nameless):
        assert (
            _open_model(SimpleNamespace(open=lambda simulator=simulator: simulator), "axle.wheel")
            is simulator
        )
    assert vars(named) == {"instance_name": "axle.wheel"}
    assert vars(nameless) == {}
