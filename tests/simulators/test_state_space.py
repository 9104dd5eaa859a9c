"""Linear models that make no sense are refused with words that tell what to write."""

from fractions import Fraction

import numpy as np
import pytest

from hocket.errors import ScenarioError
from hocket.model.ports import Port
from hocket.simulators.state_space import Gain, StateSpace, Sum


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"A": [["1.5"]]}, "`A` is not a matrix of numbers"),
        ({"A": [[None]]}, "`A` is not a matrix of numbers"),
        ({"A": [[1j]]}, "`A` is not a matrix of numbers"),
        ({"A": [[1.0, 2.0], [3.0]]}, "`A` is not a matrix of numbers"),
        ({"A": "[[1.0]]"}, "`A` is not a matrix of numbers"),
        ({"A": -1}, r"`A` is the single number -1, not a list of rows such as \[\[-1\]\]"),
        ({"A": None}, "`A` is not a matrix of numbers"),
        ({"A": [1.0]}, "`A` is a list of numbers, not a list of rows"),
        ({"A": [[1.0]], "B": 2, "inputs": ["u"]}, "`B` is the single number 2"),
        ({"A": [[1.0]], "x0": 1}, r"`x0` is the single number 1, not a list such as \[1\]"),
        ({"A": [[1.0]], "x0": ["1"]}, "`x0` is not a list of numbers"),
        ({"A": [[1.0]], "x0": [1, 2]}, "`x0` has 2 entries, expected 1"),
        ({"A": [[1.0]], "C": [[1.0]]}, r"`C` is given(.|\n)*name the outputs, as in outputs="),
        ({"A": [[1.0]], "B": [[1.0]]}, r"`B` is given(.|\n)*name the inputs, as in inputs="),
        ({"D": [[1.0]], "inputs": ["u"]}, r"`D` is given(.|\n)*name the outputs"),
        ({"D": [[1.0]], "outputs": ["y"]}, r"`D` is given(.|\n)*name the inputs"),
    ],
)
def test_matrices_that_make_no_sense(facts, words):
    with pytest.raises(ScenarioError, match=words):
        StateSpace(**facts)


def test_numbers_of_any_kind_are_welcome():
    model = StateSpace(A=np.array([[1]]), B=[[Fraction(1, 2)]], x0=(True,), inputs=["u"])
    assert (model.A, model.B, model.x0) == (((1.0,),), ((0.5,),), (1.0,))
    assert StateSpace(A=[], B=[], C=np.zeros((0, 2)), D=()) == StateSpace()


def test_outputs_keep_what_their_ports_say():
    ports = [Port("on", type="boolean"), Port("level", "m", held=True)]
    model = StateSpace(D=[[1.0], [0.0]], inputs=["u"], outputs=ports)
    assert [(port.type, port.held, port.feedthrough) for port in model.outputs] == [
        ("boolean", False, ("u",)),
        ("real", True, ()),
    ]


def test_gains_are_numbers():
    for make in (lambda: Gain("3"), lambda: Sum("a", "b", gains=["1", 2.0])):
        with pytest.raises(ScenarioError, match="`D` is not a matrix of numbers"):
            make()
