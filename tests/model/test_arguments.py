"""Wrong kinds of things given to public calls: each is refused in hocket's words, with what was expected."""

from pathlib import Path

import numpy as np
import pytest

import hocket as hk
from hocket.model.arguments import is_number, is_whole
from systems import LAG

PAIR = hk.Composite(hk.Scenario({"a": LAG, "b": LAG}, {"a.u": "b.y", "b.u": "a.y"}), 0.1)
THREE = hk.Composite(
    hk.Scenario({"a": LAG, "b": LAG, "c": LAG}, {"a.u": "b.y", "b.u": "c.y", "c.u": "a.y"}), 0.1
)
ODE = {"f": lambda t, x, u: [-x[0]], "x0": [1.0]}

WRONG = {
    "nest": (lambda **given: hk.nest(THREE, **given), {
        "tolerance": ("a", [1e-3], float("nan"), -1.0, True),
        "work": ("much", None, 0.0, float("inf")),
        "stop": ("soon", [1], 0),
        "progress": (3,),
    }),
    "tune": (lambda **given: hk.tune(**{"what": PAIR, "budget": 4, "workers": 1} | given), {
        "what": (3, None, PAIR.scenario),
        "over": ("step", [1], {"step": 0.1}, {1: "2"}),
        "goals": (3, [1], "errr", ["errr"]),
        "limits": ("rho", [1], {"rho": "1"}, {"rho": float("nan")}, {1: 1.0}),
        "stop": ("soon", [1], float("nan"), 0, -1),
        "start": ("soon",),
        "budget": ("many", None, 0, 2.5),
        "seed": ("x", -1, 1.5),
        "workers": ("two", 0, 1.5),
        "dask": (3,),
        "folder": (3, [1], b"x"),
        "progress": (3,),
        "early": ("x",),
    }),
    "compile": (lambda **given: hk.compile(**{"what": PAIR} | given), {
        "what": (3, None),
        "passes": ("loops", [3], 3),
    }),
    "run": (lambda **given: hk.run(PAIR, **{"stop": 1} | given), {
        "stop": ("soon", [1], None, float("nan"), -1, 0.15),
        "step": ("abc", [1], 0, -1, float("inf")),
        "every": ("abc", [1], 0),
        "parameters": ("a", [1], 3),
        "record": (3, [3], b"a.y", ["a.z"]),
        "folder": (3, [1], b"x"),
        "name": (3, ["x"]),
        "engine": (3, "fast"),
        "threads": ("two", 0),
        "realtime": ("fast", -1),
        "progress": (3,),
    }),
    "sweep": (lambda **given: hk.sweep(PAIR, **{"stop": 1, "parameters": [{}]} | given), {
        "parameters": (None, 3, "a", ["a"], [1]),
        "stop": ("soon", None),
        "workers": ("two", 0),
        "folder": (3,),
        "progress": (3,),
        "step": ("abc",),
        "again": (3, "yes", True),
        "shard": (3, "3", "4/3", (0, 1)),
        "checkpoint": (3, "nowhere"),
        "dask": (3,),
    }),
    "check": (lambda **given: hk.check(**{"what": PAIR} | given), {
        "what": (3, None),
        "stop": ("soon", [1], 0),
        "start": ("soon", [1]),
    }),
    "scenario": (lambda **given: hk.Scenario({"a": LAG}, **given), {
        "connections": ("a.u", 3, None, [1], {"a.u": 1}, {"a.u": ()}, ["ab"], [("a.y",)]),
        "inputs": (3, None, [1], "u"),
        "outputs": (3, None, [1], "y"),
        "record": (3, None, [1]),
        "hosts": ({"plant": 3}, {"plant": [3]}),
    }),
    "gauss-seidel": (lambda **given: hk.GaussSeidel(**given), {
        "order": (3, None, [1], (1, 2), "ab"),
    }),
    "iterate": (lambda **given: hk.Iterate(**given), {
        "tolerance": ("a", [1], 0, float("nan")),
        "at_most": ("a", 0, True, 10**30),
    }),
    "ode": (lambda **given: hk.Ode(**ODE, **given), {
        "method": (None, 3),
        "rtol": ("a", None, [1]),
        "atol": ("a", None, 0),
        "inputs": (3, [1]),
    }),
    "polynomial": (lambda **given: hk.Polynomial(**given), {"degree": ("a", None, 2.5, -1, 9)}),
    "nepce": (lambda **given: hk.Nepce(**given), {"alpha": ("a", None, float("nan"))}),
    "balance": (lambda **given: hk.BalanceCorrection(**given), {"alpha": ("a", None, float("inf"))}),
}  # fmt: skip
CASES = [
    pytest.param(call, name, value, id=f"{who}-{name}-{value!r:.30}")
    for who, (call, wrong) in WRONG.items()
    for name, values in wrong.items()
    for value in values
]


@pytest.mark.parametrize(("call", "name", "value"), CASES)
def test_a_wrong_argument_is_told_with_what_was_expected(call, name, value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(hk.ScenarioError) as caught:
        call(**{name: value})
    assert all(fault.expected or fault.hint or fault.where for fault in caught.value.faults)
    assert not list(Path().iterdir())


def test_one_objective_needs_no_list():
    found = hk.tune(PAIR, {"step": "0.1, 0.2"}, "rho", workers=1)
    assert [each.name for each in found.wanted] == ["rho"]


def test_numbers_of_all_kinds():
    assert all(map(is_number, (1, 0.5, np.float64(2), np.int64(3))))
    assert not any(map(is_number, (True, "1", None, float("nan"), float("inf"), 1j, [1])))
    assert all(is_whole(value, 1) for value in (1, np.int64(3)))
    assert not any(is_whole(value, 1) for value in (0, True, 1.0, "1", None))
