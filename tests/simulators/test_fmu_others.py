"""FMUs that another tool has made: pythonfmu (FMI 2) and pythonfmu3, which run Python inside the FMU."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import hocket as hk
from fmus.build import build
from systems import ENGINES

FMI2 = """
from pythonfmu import Fmi2Causality, Fmi2Slave, Fmi2Variability, Real


class Lag(Fmi2Slave):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.u, self.y, self.T = 0.0, 1.0, 2.0
        self.register_variable(Real("u", causality=Fmi2Causality.input))
        self.register_variable(Real("y", causality=Fmi2Causality.output))
        self.register_variable(
            Real("T", causality=Fmi2Causality.parameter, variability=Fmi2Variability.fixed)
        )

    def do_step(self, t, h):
        self.y += h * (self.u - self.y) / self.T
        return True
"""
FMI3 = """
from pythonfmu3 import CoSimulation, Float64, Fmi3Causality, Fmi3Slave, Fmi3StepResult, Fmi3Variability


class Lag3(Fmi3Slave, CoSimulation):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.time, self.u, self.y, self.T = 0.0, 0.0, 1.0, 2.0
        self.register_variable(
            Float64("time", causality=Fmi3Causality.independent, variability=Fmi3Variability.continuous)
        )
        self.register_variable(Float64("u", causality=Fmi3Causality.input))
        self.register_variable(Float64("y", causality=Fmi3Causality.output))
        self.register_variable(
            Float64("T", causality=Fmi3Causality.parameter, variability=Fmi3Variability.tunable)
        )

    def do_step(self, t, h):
        self.y += h * (self.u - self.y) / self.T
        return Fmi3StepResult()
"""


@pytest.fixture(scope="module", params=["pythonfmu", "pythonfmu3"])
def lag(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    # Python inside these FMUs is the one process's own: modules must not have the same name
    name, code = ("Lag", FMI2) if request.param == "pythonfmu" else ("Lag3", FMI3)
    (folder / f"{name.lower()}.py").write_text(code)
    command = [sys.executable, "-m", request.param, "build", "-f", f"{name.lower()}.py"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / f"{name}.fmu"


@pytest.mark.parametrize("options", [{}, {"isolate": True}], ids=["here", "isolated"])
@pytest.mark.parametrize("engine", ENGINES)
def test_they_run_beside_others(lag: Path, engine: Any, options: dict[str, Any], tmp_path: Path) -> None:
    """Two lags that drive each other, one of them in C, equal explicit Euler by hand."""
    models = {
        "a": hk.Fmu(lag, T=4.0, **options),
        "b": hk.Fmu(build("lag", 2, folder=tmp_path), T=2.0, y0=0.0),
    }
    composite = hk.Composite(hk.Scenario(models, {"a.u": "b.y", "b.u": "a.y"}), "0.1 s")
    run = hk.run(composite, stop=2, engine=engine)
    a, b = 1.0, 0.0
    for _ in range(20):
        a, b = a + 0.1 * (b - a) / 4.0, b + 0.1 * (a - b) / 2.0
    assert (run.final("a.y"), run.final("b.y")) == pytest.approx((a, b), rel=1e-14)


def test_beside_python_simulators_on_two_threads(lag: Path) -> None:
    """Both hold the interpreter lock in turn: nobody waits for ever."""
    models = {"a": hk.Fmu(lag), "b": hk.Fmu(lag), "c": hk.Function(lambda t: 1.0, outputs=["y"])}
    composite = hk.Composite(hk.Scenario(models, {"a.u": "c.y", "b.u": "c.y"}), "0.1 s")
    run = hk.run(composite, stop=10, threads=2)
    assert run.final("a.y") == run.final("b.y") == pytest.approx(1.0)
