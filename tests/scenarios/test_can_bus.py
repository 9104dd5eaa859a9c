"""A CAN bus and two nodes as FMUs: frames are binaries with clocks, as in the layered standard FMI-LS-BUS."""

import itertools

import numpy as np
import pytest

import hocket as hk
from fmus.build import build

SENT = 0.3
FRAME = (44 + 4) / 100_000
"""Seconds that a frame takes: 44 bits of its own and 4 of payload, at 100 kbit/s."""
LINKS = {
    "bus.rx1": "first.tx", "bus.rx1_clock": "first.tx_clock",
    "bus.rx2": "second.tx", "bus.rx2_clock": "second.tx_clock",
    "first.rx": "bus.tx1", "first.rx_clock": "bus.tx1_clock",
    "second.rx": "bus.tx2", "second.rx_clock": "bus.tx2_clock",
}  # fmt: skip


@pytest.fixture(scope="module")
def fmus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("can")
    node = build("node", 3, folder=folder)
    return {
        "bus": hk.Fmu(build("canbus", 3, folder=folder)),
        "first": hk.Fmu(node, id=1),
        "second": hk.Fmu(node, id=2),
    }


def place(models, links, inside):
    """Return a scenario with each of the models in the level that `inside` names for it, if any."""
    levels = {}
    for name, model in models.items():
        levels.setdefault(inside.get(name, ""), {})[name] = model
    outer = levels.pop("", {})
    path = {name: f"{inside[name]}.{name}" if name in inside else name for name in models}

    def lead(port):
        name, _, rest = port.partition(".")
        return f"{path[name]}.{rest}"

    for level, held in levels.items():
        within = {t: s for t, s in links.items() if {t.split(".")[0], s.split(".")[0]} <= held.keys()}
        outer[level] = hk.Composite(hk.Scenario(held, within), "5 ms")
        links = {t: s for t, s in links.items() if t not in within}
    return hk.Scenario(outer, {lead(t): lead(s) for t, s in links.items()}), path


def run_both(scenario, orchestrator="jacobi", step="10 ms", stop=0.4):
    composite = hk.Composite(scenario, step, orchestrator)
    runs = [hk.run(composite, stop=stop, engine=each) for each in ("interpreter", "native")]
    for name in runs[0]:
        assert np.array_equal(runs[0][name].t, runs[1][name].t)
        assert np.array_equal(runs[0][name].values, runs[1][name].values, equal_nan=True)
    assert runs[1].info["engine"] == "native"
    return runs[1]


def check_delivery(run, path):
    """Both send at 0.3 s: the frame of the first is delivered a frame later, that of the second two."""
    found = {port: run.final(f"{path[name]}.{rest}") for port in PORTS for name, rest in [port.split(".")]}
    assert found["second.received_at"] == pytest.approx(SENT + FRAME, abs=1e-12)  # 0.30048
    assert found["first.confirmed_at"] == found["second.received_at"]
    assert found["first.received_at"] == pytest.approx(SENT + 2 * FRAME, abs=1e-12)  # 0.30096
    assert found["second.confirmed_at"] == found["first.received_at"]
    assert [found[f"{name}.payload"] for name in ("first", "second")] == [0x20, 0x10]
    assert [found[f"{name}.received"] for name in ("first", "second")] == [1, 1]
    assert [found[f"{name}.confirmed"] for name in ("first", "second")] == [1, 1]
    assert (found["bus.carried"], found["bus.apart"]) == (2, 0)


NODE = ("received_at", "confirmed_at", "payload", "received", "confirmed")
PORTS = ("bus.carried", "bus.apart", *(f"{n}.{p}" for n in ("first", "second") for p in NODE))


@pytest.mark.parametrize("order", list(itertools.permutations(("bus", "first", "second"))))
def test_frames_are_delivered_one_after_the_other(fmus, order):
    scenario, path = place({name: fmus[name] for name in order}, LINKS, {})
    check_delivery(run_both(scenario), path)


@pytest.mark.parametrize("orchestrator", ["gauss-seidel", "jacobi"])
@pytest.mark.parametrize("step", ["7 ms", "100 ms"])
def test_whatever_the_step_is(fmus, orchestrator, step):
    scenario, path = place(fmus, LINKS, {})
    check_delivery(run_both(scenario, orchestrator, step, 0.7), path)


@pytest.mark.parametrize(
    "inside",
    [
        {"bus": "net"},
        {"first": "left", "second": "right"},
        {"bus": "net", "first": "cars", "second": "cars"},
        {"bus": "net", "first": "net"},
    ],
)
def test_bus_and_nodes_in_different_levels(fmus, inside):
    scenario, path = place(fmus, LINKS, inside)
    check_delivery(run_both(scenario), path)


def test_equal_countdowns_tick_in_one_instant(fmus):
    run = run_both(place(fmus, LINKS, {})[0])
    first, second = (run[f"bus.tx{k}_clock"] for k in (1, 2))
    ticks = ~np.isnan(first.values)
    assert np.array_equal(ticks, ~np.isnan(second.values))
    assert first.t[ticks] == pytest.approx([SENT + FRAME, SENT + 2 * FRAME], abs=1e-12)


def test_frames_every_millisecond_keep_the_bus_busy(fmus):
    """Each node sends from 0.3 s on, 50 frames a millisecond apart: 100 frames of 0.48 ms, none is lost."""
    models = {"bus": fmus["bus"]}
    for number, name in enumerate(("first", "second"), 1):
        models[name] = hk.Fmu(fmus[name].path, id=number, every=1e-3)
    run = run_both(place(models, LINKS, {})[0], step="0.5 ms", stop=0.3495)
    assert run.final("first.sent") == run.final("second.sent") == 50
    assert run.final("first.confirmed") + run.final("second.confirmed") == run.final("bus.carried")
    assert run.final("second.received") == 50
    assert run.final("bus.apart") == 0


def test_an_isolated_node_is_refused(fmus):
    with pytest.raises(hk.ScenarioError, match="an FMU with clocks cannot be isolated"):
        hk.Fmu(fmus["first"].path, isolate=True)
