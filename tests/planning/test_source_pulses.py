"""Pulses of sources between two samples are noticed, before the run and in its notes."""

import math

import pytest

import hocket as hk

PULSES = {
    "table": hk.Table([0.0, 0.51, 0.52, 0.53, 2.0], {"y": [0.0, 0.0, 1.0, 0.0, 0.0]}),
    "function": hk.Function(lambda t: 1.0 if 0.51 < t < 0.54 else 0.0, ["y"]),
}
SEEN = {
    "wide": hk.Table([0.0, 0.5, 0.75, 1.0, 2.0], {"y": [0.0, 0.0, 1.0, 0.0, 0.0]}),
    "announced": hk.Table([0.0, 0.51, 0.51, 0.53, 0.53, 2.0], {"y": [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]}),
    "held": hk.Table([0.0, 0.51, 0.53], {"y": [0.0, 1.0, 0.0]}, interpolation="hold"),
    "sine": hk.Function(lambda t: math.sin(6.0 * t), ["y"]),
    "step": hk.Function(lambda t: 1.0 if t > 0.53 else 0.0, ["y"]),
}


def driven(source):
    lag = hk.StateSpace(A=[[-1.0]], B=[[1.0]], C=[[1.0]], x0=[0.0], inputs=["u"], outputs=["x"])
    return hk.Composite(hk.Scenario({"source": source, "lag": lag}, [("source.y", "lag.u")]), "100 ms")


@pytest.mark.parametrize("name", PULSES)
def test_a_pulse_between_samples_is_noticed(name):
    composite = driven(PULSES[name])
    run = hk.run(composite, 2)
    assert abs(run["lag.x"].values).max() == 0.0  # the lag has not seen it
    told = [note for note in run.info["notes"] if "pulse" in note]
    assert len(told) == 1
    assert "`source.y` has a pulse at 0.5" in told[0]
    assert any(line.startswith("doubt: `source.y` has a pulse") for line in hk.check(composite, 2).verdict())


@pytest.mark.parametrize("name", SEEN)
def test_what_is_seen_or_announced_is_not(name):
    composite = driven(SEEN[name])
    run = hk.run(composite, 2)
    assert not [note for note in run.info["notes"] if "pulse" in note]
    assert abs(run["lag.x"].values).max() > 0.0
