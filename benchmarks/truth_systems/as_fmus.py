"""The same systems as co-simulation FMUs: every part that is given by equations becomes an FMU of FMI 2.

In:  a System, a folder
Out: a System with FMUs in place of its equations; by pythonfmu, or in C with the frame of the test FMUs
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import hocket as hk
from truth_systems.system import System

BENCHMARKS = Path(__file__).resolve().parents[1]
SUBSTEPS = 8
SMOOTH_IN_C = (
    *("hardening_spring_struck", "pendulum_on_cart", "double_pendulum", "coupled_pendulums"),
    *("two_machines_swing", "brusselator", "laser", "glycolysis", "predator_prey", "fitzhugh_nagumo"),
    *("morris_lecar", "repressilator", "lorenz", "roessler", "van_der_pol_on_cycle", "van_der_pol_pair"),
    *("saturating_inductor", "radiation"),
)
"""Systems without branches: their equations can be written down as C by evaluating them once."""
IN_PYTHON = (*SMOOTH_IN_C, "contact_stop", "backlash", "diode_starts_off", "saturated_actuator", "dead_zone")

SCRIPT = """
import sys
if {benchmarks!r} not in sys.path:
    sys.path.append({benchmarks!r})
import numpy as np
from pythonfmu import Fmi2Causality, Fmi2Slave, Real
from truth_systems import CATALOGUE
from truth_systems.parts import rk4


class {title}(Fmi2Slave):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        model = CATALOGUE[{system!r}]().models[{path!r}]
        self.f, self.g = model.function(model.f), model.g and model.function(model.g)
        self.t, self.x, self.u = 0.0, np.array(model.x0, float), np.zeros(len(model.inputs))
        for k, port in enumerate(model.inputs):
            access = dict(getter=lambda k=k: float(self.u[k]), setter=lambda v, k=k: self.put(k, v))
            self.register_variable(Real(port.name, causality=Fmi2Causality.input, **access))
        for k, port in enumerate(model.outputs):
            show = lambda k=k: self.show(k)
            self.register_variable(Real(port.name, causality=Fmi2Causality.output, getter=show))

    def put(self, k, value):
        self.u[k] = value

    def show(self, k):
        return float((self.g(self.t, self.x, self.u) if self.g else self.x)[k])

    def do_step(self, t, h):
        u, small = self.u.copy(), h / {substeps}
        for k in range({substeps}):
            if len(self.x):
                self.x = rk4(self.f, t + k * small, self.x, small, lambda s: u)
        self.t = t + h
        return True
"""


def as_pythonfmu(system: System, folder: Path) -> System:
    """Return the system with each of its equations in an FMU by pythonfmu."""
    from pythonfmu.builder import FmuBuilder

    def build(path: str, model: hk.Ode) -> hk.Fmu:
        title = "".join(word.title() for word in f"{system.name}_{path}".split("_"))
        script = folder / f"{title.lower()}.py"
        words = {"benchmarks": str(BENCHMARKS), "title": title, "system": system.name, "path": path}
        script.write_text(SCRIPT.format(**words, substeps=SUBSTEPS))
        FmuBuilder.build_FMU(script, dest=folder)
        return hk.Fmu(folder / f"{title}.fmu", isolate=False)

    return _with_fmus(system, build)


def as_c(system: System, folder: Path) -> System:
    """Return the system with each of its equations in an FMU in C."""
    tests = str(BENCHMARKS.parent / "tests")
    if tests not in sys.path:
        sys.path.append(tests)
    from fmus.build import build as build_fmu
    from fmus.table import sources

    def build(path: str, model: hk.Ode) -> hk.Fmu:
        name = f"{system.name}_{path}"
        source = folder / f"{name}.c"
        text, options = _source(name, model)
        source.write_text(text)
        sources()[name] = source, options
        return hk.Fmu(build_fmu(name, 2, folder=folder, interfaces=("cs",)), isolate=False)

    return _with_fmus(system, build)


def _with_fmus(system: System, build: Callable[[str, hk.Ode], hk.Fmu]) -> System:
    parts = system.models.items()
    models = {path: build(path, each) if isinstance(each, hk.Ode) else each for path, each in parts}
    return replace(system, models=models, equations=system.models)


class Term:
    """A number that is not known yet: calculating with it writes C."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __add__(self, other: Any) -> Term:
        return Term(f"({self.text} + {_text(other)})")

    def __radd__(self, other: Any) -> Term:
        return Term(f"({_text(other)} + {self.text})")

    def __sub__(self, other: Any) -> Term:
        return Term(f"({self.text} - {_text(other)})")

    def __rsub__(self, other: Any) -> Term:
        return Term(f"({_text(other)} - {self.text})")

    def __mul__(self, other: Any) -> Term:
        return Term(f"({self.text} * {_text(other)})")

    def __rmul__(self, other: Any) -> Term:
        return Term(f"({_text(other)} * {self.text})")

    def __truediv__(self, other: Any) -> Term:
        return Term(f"({self.text} / {_text(other)})")

    def __rtruediv__(self, other: Any) -> Term:
        return Term(f"({_text(other)} / {self.text})")

    def __pow__(self, other: float) -> Term:
        return Term(f"pow({self.text}, {_text(other)})")

    def __neg__(self) -> Term:
        return Term(f"(-{self.text})")

    def __abs__(self) -> Term:
        return Term(f"fabs({self.text})")

    def __bool__(self) -> bool:
        raise TypeError("equations with branches cannot be written as C")


def _call(function: str) -> Callable[[Term], Term]:
    return lambda term: Term(f"{function}({term.text})")


_METHODS = {name: name for name in ("exp", "sin", "cos", "tanh", "sinh", "cosh", "sqrt")} | {"arctan": "atan"}
for _name, _in_c in _METHODS.items():
    setattr(Term, _name, _call(_in_c))  # NumPy's functions ask an object for a method of their name


def _text(value: Any) -> str:
    return value.text if isinstance(value, Term) else repr(float(value))


def _source(name: str, model: hk.Ode) -> tuple[str, dict[str, Any]]:
    """Return the C source of a part, and the table of its variables."""
    u = [Term(f"m->{port.name}") for port in model.inputs]
    x = [Term(f"m->state{k}") for k in range(len(model.x0))]
    time = Term("m->time")
    rates = model.function(model.f)(time, x, u)
    values = model.function(model.g)(time, x, u) if model.g else x
    variables: dict[str, dict[str, Any]] = {port.name: {"input": 0.0} for port in model.inputs}
    for k, start in enumerate(model.x0):
        variables[f"state{k}"] = {"local": float(start), "derivative": f"rate{k}"}
    for port, value in zip(model.outputs, values, strict=True):
        through = [each.name for each, term in zip(model.inputs, u, strict=True) if term.text in _text(value)]
        variables[port.name] = {"output": 0.0, "from": through}
    lines = [f"m->rate{k} = {_text(rate)};" for k, rate in enumerate(rates)]
    lines += [f"m->{port.name} = {_text(value)};" for port, value in zip(model.outputs, values, strict=True)]
    body = "\n    ".join(lines)
    text = f"""#include <math.h>
#include "table.h"

void evaluate(Model *m) {{
    {body}
}}

int step(Model *m, double h) {{
    rk4(m, h, {SUBSTEPS});
    return OK;
}}
"""
    return text, {"description": name, "variables": variables}
