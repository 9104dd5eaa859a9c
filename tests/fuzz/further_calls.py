"""Good calls of what was added later: hosts, environments, exports, linear models, predictors."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import hocket as hk
from fuzz.wrong_calls import GoodCall
from systems import FREE_LAG, LAG


def further_calls(folder: Path) -> dict[str, GoodCall]:
    """Return what works, by name; without what needs packages that are not here."""
    models = {"a": FREE_LAG, "b": LAG}
    scenario = hk.Scenario(models, {"b.u": "a.y", "a.u": "b.y"})
    coupled = hk.Composite(scenario, "10 ms")
    hosts = {"one": ["a"], "two": ["b"]}
    spread = hk.Composite(hk.Scenario(models, {"b.u": "a.y", "a.u": "b.y"}, hosts=hosts), "10 ms")
    calls = {
        "PredictorCorrector": GoodCall(
            hk.PredictorCorrector,
            {"inner": hk.Jacobi(), "jacobian": None, "falls": 0.1},
            lambda made: hk.run(hk.Composite(scenario, "10 ms", made), "20 ms", folder=None),
        ),
        "export": GoodCall(
            hk.export,
            {
                "what": coupled,
                "file": folder / "coupled.fmu",
                "fmi": "2.0",
                "connections": (),
                "start": 0,
                "stop": "100 ms",
                "step": "10 ms",
                "parameters": {},
                "record": None,
                "name": "",
            },
        ),
        "interface_jacobian": GoodCall(hk.interface_jacobian, {"what": coupled}),
        "run_distributed": GoodCall(
            hk.run_distributed,
            {
                "what": spread,
                "stop": "20 ms",
                "means": "threads",
                "start": 0,
                "every": None,
                "parameters": {},
                "record": None,
                "ledger": False,
                "folder": folder / "distributed",
                "overwrite": True,
                "patience": 20.0,
                "progress": None,
                "interrupted": None,
            },
        ),
    }
    if find_spec("gymnasium") is not None:
        calls["gym"] = GoodCall(hk.gym, _environment(coupled), lambda made: (made.reset(), made.close()))
    if find_spec("control") is not None:
        arguments = {"experiment": coupled, "inputs": ["a.u"], "outputs": ["b.y"], "at": None}
        calls["linearize"] = GoodCall(hk.linearize, arguments | {"discrete": False})
    return calls


def _environment(what: hk.Composite) -> dict[str, Any]:
    return {
        "experiment": what,
        "actions": {"a.u": (-1.0, 1.0)},
        "observations": ["b.y"],
        "reward": "b.y",
        "terminated": None,
        "every": "20 ms",
        "stop": "100 ms",
        "parameters": {},
        "number": None,
    }
