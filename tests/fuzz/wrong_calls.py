"""Calls with one wrong argument: each ends well or in a HocketError, whatever was given."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import hocket as hk
from fmus.build import build
from hocket import blocks
from systems import FREE_LAG, LAG, lag


def wrong_values() -> dict[str, Any]:
    """Return what somebody may hand in by mistake, by a word for it."""
    return {
        "none": None,
        "true": True,
        "zero": 0,
        "negative": -1,
        "huge": 10**400,
        "half": 0.5,
        "nan": math.nan,
        "infinite": math.inf,
        "complex": 1j,
        "decimal": Decimal("0.1"),
        "fraction": Fraction(1, 3),
        "empty text": "",
        "text": "a word",
        "text with zero byte": "a\0b",
        "text with surrogate": "a\ud800",
        "text with braces": "{0}.{1}*",
        "bytes": b"abc",
        "empty list": [],
        "list of numbers": [1, 2],
        "list of none": [None],
        "ragged list": [[1.0], [2.0, 3.0]],
        "nested list": [[["deep"]]],
        "dict of numbers": {1: 2},
        "dict of words": {"u": "y"},
        "dict of dicts": {"a": {"b": {}}},
        "set": {1, "a"},
        "array": np.array([1.0, 2.0]),
        "array of objects": np.array([None, "a"], dtype=object),
        "empty array": np.zeros((0, 3)),
        "NumPy scalar": np.float32(1.5),
        "NumPy whole number": np.int64(2),
        "date": datetime.date(2024, 1, 1),
        "path": Path("nowhere/at.all"),
        "class": int,
        "function": lambda *_: "x",
        "function without result": lambda *_: None,
        "generator": (n for n in [1]),
        "model": LAG,
        "scenario": hk.Scenario({"a": FREE_LAG}),
        "object": object(),
    }


class GoodCall(NamedTuple):
    """A call that works, the arguments that are replaced, and what is done with its result."""

    call: Callable[..., Any]
    arguments: dict[str, Any]
    use: Callable[[Any], Any] = lambda made: made


def _alone(model: Any) -> Any:
    return hk.run(hk.Composite(hk.Scenario({"it": model}), "10 ms"), "20 ms", folder=None)


def _driven(model: Any) -> Any:
    scenario = hk.Scenario({"it": model, "lag": LAG}, {"lag.u": "it.y", "it.u": "lag.y"})
    return hk.run(hk.Composite(scenario, "10 ms"), "20 ms")


def _pair(**parts: Any) -> hk.Scenario:
    return hk.Scenario({"a": LAG, "b": LAG}, {"a.u": "b.y", "b.u": "a.y"}).with_changes(**parts)


def _coupled(**parts: Any) -> hk.Composite:
    return hk.Composite(_pair(), "10 ms").with_changes(**parts)


def _three() -> hk.Composite:
    connections = {"a.u": "c.y", "b.u": "a.y", "c.u": "b.y"}
    return hk.Composite(hk.Scenario({"a": LAG, "b": LAG, "c": LAG}, connections), "10 ms")


def _run_briefly(what: Any) -> Any:
    return hk.run(what, "20 ms")


class Counter:
    """Counts its steps."""

    inputs = ("u",)
    outputs = ("y",)

    def __init__(self, gain: float = 1.0) -> None:
        self.gain, self.count = gain, 0.0

    def start(self, t: float) -> None:
        self.count = 0.0

    def step(self, t: float, h: float, u: Any) -> None:
        self.count += self.gain

    def output(self, t: float, u: Any) -> tuple[float]:
        return (self.count,)


class Clock(hk.Atomic):
    """Ticks for ever."""

    outputs = ("tick",)

    def __init__(self, gap: float = 0.005) -> None:
        self.gap = gap

    def time_advance(self) -> Any:
        return self.gap

    def output(self) -> dict[str, float]:
        return {"tick": 1.0}

    def internal(self) -> None:
        pass


def _idle(env: Any, ports: Any) -> None:
    def work() -> Any:
        yield env.timeout(0.005)

    env.process(work())


def good_calls(folder: Path) -> dict[str, GoodCall]:
    """Return calls of everything that is public, each with arguments that fit."""
    table = folder / "table.csv"
    table.write_text("time,y\n0,1\n1,2\n")
    finished = hk.run(_coupled(), "50 ms", folder=folder / "finished")
    hk.run(_coupled(), "50 ms", folder=folder / "saved", checkpoint_every="1 h")
    stepped = hk.open(_coupled())
    frame = {"ports": ["a.y"], "rate": "union", "interpolate": True, "origin": "2024-01-01"}
    scenario_file = folder / "pair.toml"
    hk.write(hk.Experiment(_coupled(), stop="50 ms"), scenario_file)
    orchestrated = lambda made: _run_briefly(_coupled(orchestrator=made))  # noqa: E731
    extrapolated = lambda made: _run_briefly(_coupled(extrapolation=made))  # noqa: E731
    matrices = {"A": [[-1.0]], "B": [[1.0]], "C": [[1.0]], "D": [[0.0]]}
    return {
        "Port": GoodCall(
            lambda **g: lag(inputs=(hk.Port(**g),)),
            {"name": "u", "unit": "m", "start": 0.0, "feedthrough": (), "type": "real", "held": False}
            | {"reactivity": None, "event": False},
            _alone,
        ),
        "output Port": GoodCall(
            lambda **g: lag(inputs=("u = 0",), outputs=(hk.Port(**g),)),
            {"name": "y", "unit": "m", "start": 0.0, "feedthrough": ("u",), "type": "real", "held": False}
            | {"reactivity": None, "event": False},
            _alone,
        ),
        "Capabilities": GoodCall(
            hk.Capabilities,
            {
                "rollback": False,
                "variable_step": True,
                "input_degree": 1,
                "slopes": False,
                "micro": False,
                "order": 2,
                "reevaluates": True,
                "stops_early": False,
                "slopeless": (),
                "initial_inputs": "unused",
                "resumes": False,
                "events": False,
                "catches_up": False,
                "observes": False,
            },
        ),
        "StateSpace": GoodCall(
            hk.StateSpace,
            matrices
            | {
                "x0": [1.0],
                "inputs": ("u",),
                "outputs": ("y",),
                "method": "exact",
                "step": "1 ms",
                "energy": [[1.0]],
            },
            _driven,
        ),
        "Sum": GoodCall(
            lambda first, gains, unit: hk.Sum(first, "v", gains=gains, unit=unit),
            {"first": "u", "gains": [1.0, 2.0], "unit": ""},
        ),
        "Gain": GoodCall(hk.Gain, {"gain": 2.0, "unit": "m", "out": "m"}),
        "Python": GoodCall(
            hk.Python,
            {"cls": Counter, "inputs": ("u",), "outputs": ("y",), "period": "10 ms", "gain": 2.0}
            | {"offset": "1 ms", "delay": "2 ms", "jitter": {"uniform": "1 ms"}, "seed": 1, "folder": ""},
            _driven,
        ),
        "Ode": GoodCall(
            hk.Ode,
            {
                "f": lambda t, x, u: [-x[0] + u[0]],
                "g": lambda t, x, u: [x[0]],
                "x0": (1.0,),
                "inputs": ("u",),
                "outputs": ("y",),
                "method": "rk4",
                "step": "1 ms",
                "feedthrough": {},
                "rtol": 1e-6,
                "atol": 1e-9,
                "jacobian": lambda t, x, u: [[-1.0]],
                "energy": lambda x: x[0] ** 2,
                "events": (),
                "folder": "",
            },
            _driven,
        ),
        "Dae": GoodCall(
            hk.Dae,
            {
                "f": lambda t, x, dx, u: [dx[0] + x[0] - u[0]],
                "x0": (1.0,),
                "algebraic": (),
                "inputs": ("u",),
                "outputs": ("y",),
                "rtol": 1e-6,
                "atol": 1e-9,
                "folder": "",
            },
            _driven,
        ),
        "Fmu": GoodCall(
            hk.Fmu,
            {
                "path": build("gain", folder=folder),
                "parameters": {},
                "interface": "auto",
                "isolate": None,
                "observe": (),
                "reevaluate": True,
                "early_return": None,
                "tolerance": None,
                "stop_time": True,
                "build": False,
                "logging": False,
                "method": None,
                "step": None,
                "rtol": None,
                "atol": None,
                "time_limit": "60 s",
                "reactivity": {},
                "folder": "",
            },
            _alone,
        ),
        "Table": GoodCall(
            hk.Table,
            {
                "t": [0.0, 1.0],
                "columns": {"y": [1.0, 2.0]},
                "interpolation": "linear",
                "outputs": ("y",),
                "outside": "hold",
                "types": None,
                "origin": "",
            },
            _alone,
        ),
        "Schedule": GoodCall(
            hk.Schedule,
            {
                "profiles": {"y": {"daily": {"06:00": 1.0}, "holidays": 0.0}},
                "origin": "2024-01-01",
                "holidays": ["2024-12-25"],
                "days": 400,
            },
            _alone,
        ),
        "Csv": GoodCall(
            hk.Csv,
            {"path": table, "time": "time", "columns": ["y"], "interpolation": "linear", "outside": "hold"}
            | {"types": {}, "folder": "", "origin": "", "time_zone": "", "time_format": "", "decimal": "."},
            _alone,
        ),
        "Function": GoodCall(hk.Function, {"f": math.sin, "outputs": ("y",), "folder": ""}, _alone),
        "Devs": GoodCall(
            hk.Devs, {"atomic": Clock, "inputs": (), "outputs": ("tick",), "folder": "", "gap": 0.005}, _alone
        ),
        "SimPy": GoodCall(
            hk.SimPy, {"factory": _idle, "inputs": ("u = 0",), "outputs": ("y",), "folder": ""}, _alone
        ),
        "Event": GoodCall(
            lambda **g: hk.Ode(lambda t, x, u: [1.0], None, (0.0,), outputs=("y",), events=[hk.Event(**g)]),
            {"g": lambda t, x, u: x[0] - 0.015, "direction": "both", "action": lambda t, x, u: [0.0]},
            _alone,
        ),
        "Crossing": GoodCall(
            lambda **g: _coupled(scenario=_pair(crossings={"it": hk.Crossing(**g)})),
            {"output": "a.y", "direction": "both", "at": 0.5, "hysteresis": 0.0, "tolerance": None},
            _run_briefly,
        ),
        "Connection": GoodCall(
            lambda **g: _coupled(scenario=_pair(connections=(hk.Connection(**g), ("a.y", "b.u")))),
            {"source": "b.y", "target": "a.u", "extrapolation": hk.Hold(), "gain": 1.0, "offset": 0.0},
            _run_briefly,
        ),
        "Bond": GoodCall(
            lambda **g: _coupled(scenario=_pair(bonds={"shaft": hk.Bond(**g)})),
            {
                "effort": "b.u",
                "flow": "a.u",
                "unit": "W",
                "reverse": False,
                "balance": None,
                "eps": 0.05,
                "power": "product",
            },
            _run_briefly,
        ),
        "Scenario": GoodCall(
            lambda **g: _coupled(scenario=hk.Scenario(**g)),
            {
                "models": {"a": LAG, "b": LAG},
                "connections": {"a.u": "b.y", "b.u": "a.y"},
                "inputs": (),
                "outputs": (),
                "record": ("*",),
                "bonds": None,
                "constraints": None,
                "hosts": None,
                "inserted": None,
                "crossings": None,
            },
            _run_briefly,
        ),
        "Scenario of one": GoodCall(
            lambda **g: hk.Scenario(**g),
            {"models": {"a": LAG}, "connections": [("a.y", "a.u")], "record": ["a.*"]},
            lambda made: _run_briefly(hk.Composite(made, "10 ms")),
        ),
        "Composite": GoodCall(
            hk.Composite,
            {
                "scenario": _pair(),
                "step": "10 ms",
                "orchestrator": "jacobi",
                "extrapolation": "hold",
                "start": "window",
                "sampled": False,
                "inherits_step": False,
                "on_zeno": "stop",
                "at_most_instants": 1000,
            },
            _run_briefly,
        ),
        "Experiment": GoodCall(
            hk.Experiment,
            {
                "composite": _coupled(),
                "start": 0,
                "stop": "20 ms",
                "every": "10 ms",
                "origin": "2024-01-01",
                "name": "it",
                "tune": hk.Experiment(_coupled()).tune,
                "uncertain": {},
                "valid": {},
                "wcet": {},
                "original": "",
                "path": None,
                "notes": (),
            },
            hk.run,
        ),
        "Jacobi": GoodCall(hk.Jacobi, {"outputs": "consistent", "inputs": "clean"}, orchestrated),
        "GaussSeidel": GoodCall(
            hk.GaussSeidel, {"order": ["a", "b"], "outputs": "consistent", "inputs": "clean"}, orchestrated
        ),
        "Iterate": GoodCall(
            hk.Iterate,
            {"inner": hk.Jacobi(), "tolerance": 1e-6, "at_most": 20, "accelerate": None},
            orchestrated,
        ),
        "PredictorCorrector": GoodCall(
            hk.PredictorCorrector, {"inner": hk.Jacobi(), "jacobian": None, "falls": 0.1}, orchestrated
        ),
        "Waveform": GoodCall(
            hk.Waveform,
            {
                "samples": 4,
                "degree": 1,
                "inner": hk.Jacobi(outputs="stale"),
                "tolerance": 1e-6,
                "at_most": 20,
                "accelerate": None,
            },
            orchestrated,
        ),
        "Multirate": GoodCall(
            hk.Multirate,
            {"rates": {"a": 2}, "scheme": "slowest-first", "outputs": "consistent", "inputs": "clean"},
            orchestrated,
        ),
        "Asynchronous": GoodCall(
            hk.Asynchronous, {"rates": {"a": 2}, "outputs": "consistent", "inputs": "clean"}, orchestrated
        ),
        "Adaptive": GoodCall(
            hk.Adaptive,
            {
                "inner": hk.Jacobi(),
                "tolerance": 1e-3,
                "estimate": "defect",
                "controller": "PI",
                "per": "step",
                "quantum": Fraction(1, 1024),
                "first": Fraction(1, 64),
                "rejects": None,
                "on_jump": "pass",
            },
            orchestrated,
        ),
        "Polynomial": GoodCall(hk.Polynomial, {"degree": 1}, extrapolated),
        "Hermite": GoodCall(hk.Hermite, {"samples": 1}, extrapolated),
        "Nepce": GoodCall(hk.Nepce, {"alpha": 0.5}, extrapolated),
        "BalanceCorrection": GoodCall(hk.BalanceCorrection, {"alpha": 0.5}, extrapolated),
        "read": GoodCall(hk.read, {"path": scenario_file}, hk.run),
        "write": GoodCall(hk.write, {"what": _coupled(), "path": folder / "written.toml"}),
        "compile": GoodCall(
            hk.compile,
            {"what": _coupled(), "passes": None, "connections": (), "step": "5 ms", "in_order": True}
            | {"parameters": {}},
        ),
        "nest": GoodCall(
            hk.nest,
            {"what": _three(), "tolerance": 1e-2, "stop": "0.1 s", "work": 1.0, "keep": False}
            | {"connections": (), "step": "10 ms", "parameters": {}, "progress": None},
        ),
        "tune": GoodCall(
            hk.tune,
            {
                "what": _coupled(),
                "over": {"step": "5 ms, 10 ms"},
                "goals": ["error"],
                "connections": (),
                "limits": None,
                "stop": "0.1 s",
                "start": None,
                "search": "auto",
                "budget": 3,
                "seed": 1,
                "workers": 1,
                "folder": None,
                "step": None,
                "parameters": {},
                "dask": None,
                "progress": None,
                "early": None,
            },
        ),
        "interface_jacobian": GoodCall(hk.interface_jacobian, {"what": _coupled()}),
        "check": GoodCall(
            hk.check,
            {
                "what": _coupled(),
                "stop": "0.1 s",
                "start": 0,
                "connections": (),
                "step": "10 ms",
                "parameters": {},
                "advise": False,
                "robust": False,
                "pilot": True,
                "pilot_seconds": 1.0,
                "max_error": 0.5,
                "deadline": None,
                "progress": None,
            },
            lambda made: (str(made), repr(made)),
        ),
        "run": GoodCall(
            hk.run,
            {
                "what": _coupled(),
                "stop": "20 ms",
                "connections": (),
                "start": 0,
                "step": "10 ms",
                "every": "10 ms",
                "parameters": {},
                "record": ["a.y"],
                "ledger": False,
                "folder": None,
                "overwrite": False,
                "name": "it",
                "engine": "native",
                "threads": 1,
                "realtime": None,
                "checkpoint_every": "1 h",
                "progress": None,
            },
        ),
        "run_distributed": GoodCall(
            hk.run_distributed,
            {
                "what": hk.Composite(_pair(hosts={"one": ["a"], "two": ["b"]}), "10 ms"),
                "stop": "20 ms",
                "means": "threads",
                "broker": "",
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
        "export": GoodCall(
            hk.export,
            {
                "what": hk.Composite(
                    hk.Scenario({"a": FREE_LAG, "b": LAG}, {"b.u": "a.y", "a.u": "b.y"}), "10 ms"
                ),
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
        "resume": GoodCall(
            hk.resume,
            {
                "source": folder / "saved",
                "what": hk.Experiment(_coupled(), stop="50 ms"),
                "stop": "100 ms",
                "parameters": {"a.A[1,1]": -2.0},
                "folder": folder / "resumed",
                "overwrite": True,
                "checkpoint_every": "1 h",
                "threads": 1,
                "progress": None,
            },
        ),
        "open": GoodCall(
            hk.open,
            {
                "what": _coupled(),
                "connections": (),
                "start": 0,
                "stop": "100 ms",
                "step": "10 ms",
                "parameters": {},
                "engine": "native",
                "threads": 1,
                "checkpoint": None,
            },
            lambda made: (made.step(), made.close()),
        ),
        "Live.checkpoint": GoodCall(stepped.checkpoint, {"path": folder / "by_hand"}),
        "Live.step": GoodCall(stepped.step, {"n": 1}),
        "Live.run": GoodCall(lambda until: hk.open(_coupled()).run(until), {"until": "20 ms"}),
        "Live.set": GoodCall(stepped.set, {"path": "a.u", "value": 1.0}),
        "Live.release": GoodCall(
            lambda path: (stepped.set("a.u", 1.0), stepped.release(path)), {"path": "a.u"}
        ),
        "Live[]": GoodCall(lambda path: stepped[path], {"path": "a.y"}),
        "Live.restore": GoodCall(stepped.restore, {"state": stepped.save()}),
        "sweep": GoodCall(
            hk.sweep,
            {
                "what": _coupled(),
                "parameters": [{}],
                "stop": "20 ms",
                "workers": 1,
                "processes": None,
                "errors": "raise",
                "folder": None,
                "again": False,
                "shard": "1/1",
                "checkpoint": None,
                "dask": None,
                "progress": None,
            },
        ),
        "gym": GoodCall(
            hk.gym,
            {
                "experiment": _coupled(),
                "actions": {"a.u": (-1, 1)},
                "observations": ["a.y"],
                "reward": "a.y",
                "terminated": None,
                "every": "10 ms",
                "stop": "20 ms",
                "parameters": {},
                "number": None,
            },
        ),
        "linearize": GoodCall(
            hk.linearize,
            {"experiment": _coupled(), "inputs": ["a.u"], "outputs": ["b.y"], "at": 0, "discrete": False},
        ),
        "study": GoodCall(
            hk.study,
            {
                "what": _coupled(),
                "uncertain": {"a.A[1,1]": "normal(-1, 0.1)"},
                "stop": "20 ms",
                "method": "monte-carlo",
                "runs": 2,
                "seed": 1,
                "quantity": "final",
                "estimate": False,
                "folder": None,
                "workers": 1,
                "processes": None,
                "dask": None,
                "progress": None,
                "watch": None,
            },
        ),
        "fit": GoodCall(
            hk.fit,
            {
                "what": _coupled(),
                "data": {"t": [0.0, 0.01, 0.02], "a.y": [1.0, 1.0, 1.0]},
                "parameters": {"a.A[1,1]": (-2.0, -1.0, 0.0)},
                "stop": "20 ms",
                "starts": 1,
                "seed": 0,
                "deviations": None,
                "confidence": 0.95,
                "evaluations": 2,
                "progress": None,
            },
        ),
        "step_metrics": GoodCall(
            blocks.step_metrics,
            {"t": [0.0, 1.0], "y": [0.0, 1.0], "final": 1.0, "initial": 0.0, "at": 0.0, "band": 0.02},
        ),
        "margins": GoodCall(blocks.margins, {"loop": hk.Gain(2.0), "delay": 0.0}),
        "error_budget": GoodCall(
            hk.error_budget,
            {
                "run": finished,
                "experiment": hk.Experiment(_coupled(), stop="50 ms"),
                "port": None,
            },
        ),
        "open_run": GoodCall(hk.open_run, {"path": folder / "finished"}, lambda made: made["a.y"]),
        "Run": GoodCall(hk.Run, {"path": folder / "finished"}, lambda made: made["a.y"]),
        "Run[]": GoodCall(lambda port: finished[port], {"port": "a.y"}),
        "Run.final": GoodCall(finished.final, {"port": "a.y"}),
        "Run.select": GoodCall(finished.select, {"wanted": ["a.y"]}),
        "Run.table": GoodCall(finished.table, {"name": ""}),
        "Run.to_pandas": GoodCall(finished.to_pandas, {"table": ""}),
        "Run.to_pandas of all": GoodCall(finished.to_pandas, frame),
        "Run.to_xarray": GoodCall(finished.to_xarray, frame),
        "Run.to_csv": GoodCall(finished.to_csv, {"path": folder / "out.csv", **frame}),
        "Run.to_parquet": GoodCall(finished.to_parquet, {"path": folder / "out.parquet", **frame}),
        "Run.to_hdf5": GoodCall(finished.to_hdf5, {"path": folder / "out.h5", "ports": ["a.y"]}),
        "Run.to_mat": GoodCall(finished.to_mat, {"path": folder / "out.mat", "ports": ["a.y"]}),
        "Run.resample": GoodCall(
            finished.resample, {"every": "10 ms", "how": "mean", "ports": ["a.y"], "origin": "2024-01-01"}
        ),
        "compare": GoodCall(
            hk.compare,
            {"a": finished, "b": finished.path, "ports": ["a.y"], "absolute": 0.0, "relative": 0.1}
            | {"time_tolerance": "1 ms"},
        ),
        "Run.aggregate": GoodCall(finished.aggregate, {"above": 0.5}),
        "Run.plot": GoodCall(
            lambda port, path: finished.plot(port, path=path), {"port": "a.y", "path": folder / "a.png"}
        ),
    }


CALLBACKS = ("progress", "early")
"""What these raise is their own, so they are not given what can be called and fails."""


def wrong_calls(calls: dict[str, GoodCall]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield every call with every argument wrong in every way, one at a time, with a name for it."""
    for name, good in calls.items():
        for argument in good.arguments:
            for word in wrong_values():
                if argument in CALLBACKS and word == "class":
                    continue

                def attempt(good: GoodCall = good, argument: str = argument, word: str = word) -> Any:
                    return good.use(good.call(**good.arguments | {argument: wrong_values()[word]}))

                yield f"{name}({argument} = {word})", attempt
