"""The keys of blocks in scenario files.

In:  the parameters of the classes in hocket.simulators.blocks
Out: a part of the kinds of models
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hocket.files.toml.forms import (
    DURATION,
    NUMBER,
    TEXT,
    TEXTS,
    TRUTH,
    VECTOR,
    WHOLE,
    ChoiceForm,
    EitherForm,
)
from hocket.files.toml.table_kinds import OUTPUTS, PORTS, Field
from hocket.model.clock import seconds

_UNIT = Field("unit", TEXT, "of its ports")
_OUT = Field("out", TEXT, "of the output; left out: that of the input")
_LOW = Field("low", NUMBER, "the lower limit; left out: there is none")
_HIGH = Field("high", NUMBER, "the upper limit; left out: there is none")


def _duration(name: str, about: str, attribute: str = "") -> Field:
    """Return the key of a time that a block keeps in seconds."""

    def get(model: Any) -> Fraction | None:
        value = getattr(model, attribute or name)
        return None if value is None else seconds(value)

    return Field(name, DURATION, about, get=get)


_PERIOD = _duration("period", "from one to the next", "interval")
_FROM = _duration("at", "when it begins")

BUILDERS = {
    "pid": "hocket.simulators.blocks.control:PID",
    "integrator": "hocket.simulators.blocks.motion:Integrator",
}
"""What a table is read by, where that is not the class; linear ones are written as state-space."""

BLOCK_KEYS: dict[str, tuple[Field, ...]] = {
    "step": (
        _duration("at", "when it jumps"),
        Field("before", NUMBER, "the value until then"),
        Field("after", NUMBER, "the value from then on"),
        _UNIT,
    ),
    "ramp": (
        Field("slope", NUMBER, "per second"),
        _FROM,
        Field("initial", NUMBER, "the value until then"),
        _UNIT,
    ),
    "sine": (
        Field("amplitude", NUMBER),
        Field("frequency", NUMBER, "in Hz"),
        Field("phase", NUMBER, "in rad"),
        Field("offset", NUMBER, "its mean"),
        _UNIT,
    ),
    "pulse": (
        _PERIOD,
        _duration("width", "how long it is high"),
        _FROM,
        Field("low", NUMBER, "the value between pulses"),
        Field("high", NUMBER, "the value of a pulse"),
        _UNIT,
    ),
    "noise": (
        _PERIOD,
        Field("std", NUMBER, "the standard deviation"),
        Field("mean", NUMBER),
        Field("seed", WHOLE, "the same seed gives the same values"),
        Field("distribution", ChoiceForm("hocket.simulators.blocks.signals:Distribution")),
        _UNIT,
    ),
    "product": (
        Field("inputs", PORTS),
        Field("unit", TEXT, "of the product"),
    ),
    "saturation": (_LOW, _HIGH, _UNIT),
    "expression": (
        Field(
            "equations",
            EitherForm(str, TEXT, TEXTS),
            'one for each output: "p = torque * speed"',
        ),
        Field("inputs", PORTS, "units and start values of what is on the right"),
        Field("outputs", OUTPUTS, "units of what is on the left"),
    ),
    "transfer-function": (
        Field("numerator", VECTOR, "coefficients, the highest power of s first"),
        Field("denominator", VECTOR, "coefficients, the highest power of s first"),
        Field("unit", TEXT, "of the input"),
        _OUT,
    ),
    "integrator": (
        Field("gain", NUMBER, "of the input"),
        Field("x0", NUMBER, "the value at the start, and after a reset"),
        _LOW,
        _HIGH,
        Field("reset", TRUTH, "whether it has an input reset, an event"),
        Field("unit", TEXT, "of the input"),
        _OUT,
    ),
    "rate-limiter": (
        Field("rising", NUMBER, "by how much it rises per second at most"),
        Field("falling", NUMBER, "by how much it falls; left out: as it rises"),
        Field("y0", NUMBER, "the value at the start"),
        _UNIT,
    ),
    "delay": (
        _duration("delay", "how much later the input comes out"),
        Field("initial", NUMBER, "what comes out until then"),
        _UNIT,
    ),
    "pid": (
        Field("K", NUMBER, "the gain"),
        _duration("Ti", "the integral time; left out: no integral part"),
        _duration("Td", "the derivative time; left out: no derivative part"),
        Field("N", NUMBER, "the derivative is filtered by Td / N"),
        Field("b", NUMBER, "the weight of the reference in the proportional part"),
        Field("c", NUMBER, "the weight of the reference in the derivative part"),
        _LOW,
        _HIGH,
        _duration("Tt", "the time constant of the anti-windup"),
        Field("i0", NUMBER, "the integral part at the start"),
        Field("y0", NUMBER, "the measured value at the start"),
        Field("period", DURATION, "from sample to sample; left out: it is continuous"),
        Field("unit", TEXT, "of what is measured"),
        Field("out", TEXT, "of the control"),
    ),
    "relay": (
        Field("low", NUMBER, "below it, it is off"),
        Field("high", NUMBER, "above it, it is on"),
        Field("off", NUMBER, "the output when off"),
        Field("on", NUMBER, "the output when on"),
        Field("starts_on", TRUTH),
        Field("unit", TEXT, "of the input"),
        Field("out", TEXT, "of the output"),
    ),
}
