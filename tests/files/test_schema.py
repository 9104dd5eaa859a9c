"""The JSON Schema accepts what the reader accepts, and is published as it is."""

import json
import tomllib
from typing import Any

import jsonschema
import pytest

from hocket.files.toml.codec import EXTRAPOLATIONS, MODELS, ORCHESTRATORS, schema, schema_text
from hocket.model import registry
from systems import ROOT

PUBLISHED = ROOT / "docs" / "hocket.schema.json"

GOOD = """
name = "car"
step = "10 ms"
orchestrator = { type = "gauss-seidel", order = ["left", ["axle", "tank"]], outputs = "stale" }
extrapolation = { type = "nepce", alpha = 0.6 }
start = "cold"
record = ["*"]
run = { start = 0, stop = "10 s", every = "micro" }

[models.left]
type = "state-space"
A = [[0, 1], [-0.2, -0.3]]
inputs = ["x [m]", { name = "v", unit = "m/s", start = 1 }]
outputs = ["force [N]"]
step = 0.001
[models.tank]
type = "python"
class = "plant.py:Tank"
period = "1/3 s"
parameters = { area = 2, names = ["a", { b = true }] }
[models.node]
type = "dae"
f = "circuit.py:node"
x0 = [0.3, 0.0]
algebraic = [1]
inputs = ["u"]
outputs = ["q", "v"]

[models.ode]
type = "ode"
f = "plant.py:rate"
feedthrough = { y = ["u"], z = "u" }
[models.table]
type = "table"
t = [0, 1]
columns = { "a [N]" = [1, 2] }
[models.rows]
type = "table"
t = [0, 1]
columns = [[1, 2], [3, 4]]
outputs = ["a", "b"]
[models.csv]
type = "csv"
path = "measured.csv"
columns = ["force"]
[models.heating]
type = "schedule"
origin = "2024-01-01 00:00 Europe/Berlin"
holidays = ["2024-12-25"]
[models.heating.profiles."set point [degC]"]
weekdays = { "06:00" = 21, "22:00" = 16 }
weekend = 16
holidays = 16
[models.gain]
type = "gain"
gain = 2
[models.sum]
type = "sum"
inputs = ["a", "b"]
[models.fmu]
type = "fmu"
path = "spring.fmu"
parameters = { k = 20.0, "x[1]" = 2 }
observe = ["h"]
isolate = true

[models.right_at_plant]
type = "stand-in"
shows = ["force [N]", { name = "gear", type = "integer", held = true }]
of = "right"
[models.a_step]
type = "step"
at = "0.1 s"
after = 2.0
[models.a_ramp]
type = "ramp"
slope = 2
[models.a_sine]
type = "sine"
frequency = 50
unit = "V"
[models.a_pulse]
type = "pulse"
period = "1 s"
width = "1/3 s"
[models.a_noise]
type = "noise"
period = 0.01
seed = 3
distribution = "uniform"
[models.a_product]
type = "product"
inputs = ["a [V]", "b [A]"]
unit = "W"
[models.a_saturation]
type = "saturation"
low = -1
high = 1
[models.an_expression]
type = "expression"
equations = ["p = u * i"]
inputs = ["u [V]", "i [A]"]
outputs = ["p [W]"]
[models.a_transfer]
type = "transfer-function"
numerator = [1]
denominator = [0.5, 1]
[models.an_integrator]
type = "integrator"
high = 2.5
reset = true
[models.a_limiter]
type = "rate-limiter"
rising = 2
[models.a_delay]
type = "delay"
delay = "5 ms"
[models.a_pid]
type = "pid"
K = 2
Ti = "0.5 s"
period = "10 ms"
[models.a_relay]
type = "relay"
low = 1
high = 2
[models.function]
type = "function"
f = "plant.py:ramp"
outputs = ["y"]
[models.queue]
type = "devs"
atomic = "plant.py:Queue"
inputs = [{ name = "job", event = true }]
parameters = { service = 2 }
[models.line]
type = "simpy"
factory = "plant.py:line"
outputs = ["load", { name = "done", event = true }]
[models.federation]
type = "helics"
inputs = ["i [A]"]
publications = ["hocket/i"]
outputs = ["v [V]"]
subscriptions = ["grid/v"]
broker = "tcp://10.0.0.1:23404"
[models.sampled]
type = "python"
class = "plant.py:Tank"
period = "1 s"
offset = 0.1
delay = "1 ms"
jitter = { normal = "1 ms" }
seed = 3
[models.clock]
type = "step-controller"
watched = ["left.force [N]"]
stop = "10 s"
tolerance = [1e-3]
[models.told]
type = "timed"
degrees = [1]
model = { type = "gain", gain = 1 }
[models.link]
type = "coupler"
equations = ["left.x = right.x", "left.F + right.F = 0"]
reads = ["left.x [m]", "right.x [m]"]
determines = ["left.F [N]", "right.F [N]"]
W = [[1, 0.5], [-1, 0.5]]
degrees = [2, 0]
[models.file]
type = "composite"
file = "axle.toml"
[models.axle]
type = "composite"
step = "2.5 ms"
outputs = [{ name = "y", feedthrough = ["u"] }]
[models.axle.models.wheel]
type = "composite"
step = 1
models.spring = { type = "gain", gain = 1 }
[models.axle.connections]
y = "wheel.spring.y"

[connections]
left.x = "axle.y"
axle.wheel.spring.u = { from = "left.force", extrapolation = "quadratic" }
"tank.q" = { from = "left.force", extrapolation = { type = "polynomial", degree = 3 } }
[constraints.rod]
equations = ["left.x = axle.y"]
rates = { "left.x" = "left.v" }
mu = 2
determines = ["left.F"]
"""


def valid(written: str) -> bool:
    return bool(jsonschema.Draft7Validator(schema()).is_valid(tomllib.loads(written)))


def test_the_published_file_is_current() -> None:
    assert PUBLISHED.read_text(encoding="utf-8") == schema_text(), "run `make lists`"


def test_it_is_a_schema() -> None:
    jsonschema.Draft7Validator.check_schema(json.loads(schema_text()))


def test_good_files() -> None:
    jsonschema.validate(tomllib.loads(GOOD), schema(), jsonschema.Draft7Validator)


def test_every_kind_has_a_good_example() -> None:
    models: Any = tomllib.loads(GOOD)["models"].values()
    assert {model["type"] for model in models} == {kind.name for kind in MODELS.kinds}


@pytest.mark.parametrize("family", [EXTRAPOLATIONS, ORCHESTRATORS])
def test_words(family: Any) -> None:
    for word in (
        *(name for name, found in registry.load_all(family.registered) if not registry.is_builder(found)),
        *(kind.name for kind in family.kinds if not any(entry.required for entry in kind.fields)),
    ):
        assert valid(f'step = 1\n{family.name} = "{word}"\n[models]')
    assert not valid(f'step = 1\n{family.name} = "wibble"\n[models]')
    assert not valid('step = 1\nextrapolation = "polynomial"\n[models]')


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('step = "10 ms"', ""),
        ('step = "10 ms"', 'step = "fast"'),
        ('step = "10 ms"', "step = true"),
        ('name = "car"', "stop = 10"),
        ('outputs = "stale"', 'outputs = "stail"'),
        ('"gauss-seidel"', '"gauss-sidel"'),
        ("alpha = 0.6", "a = 0.6"),
        ("alpha = 0.6", "alpha = 0.6, beta = 1"),
        ('"cold"', '"warm"'),
        ("[[0, 1], [-0.2, -0.3]]", "[0, 1]"),
        ('unit = "m/s"', "unit = 3"),
        ('"state-space"', '"state space"'),
        ('type = "gain"\ngain = 2', 'type = "gain"'),
        ('file = "axle.toml"', 'file = "axle.toml"\nstep = 1'),
        ('step = "2.5 ms"', 'step = "fast"'),
        ("models.spring = { type", "models.spring = { kind"),
        ('"axle.y"\n', "3\n"),
        ("degree = 3", "degree = 1.5"),
        ('"plant.py:Tank"', '"Tank"'),
        ("[connections]", "[conections]"),
    ],
)
def test_bad_files(old: str, new: str) -> None:
    assert valid(GOOD)
    assert old in GOOD
    assert not valid(GOOD.replace(old, new))
