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
TERMINALS = {"bus.Node1": "first.CanChannel", "second.CanChannel": "bus.Node2"}
"""The same, by the terminals of the FMUs."""


def terminals(**members):
    """Return the file of an FMU with terminals: for each what its members are called, by their names."""
    listed = "".join(
        f'<Terminal name="{name}" terminalKind="org.fmi-ls-bus.network-terminal" '
        'matchingRule="org.fmi-ls-bus.transceiver">'
        + "".join(
            f'<TerminalMemberVariable variableKind="signal" variableName="{variable}" memberName="{member}"/>'
            for member, variable in called.items()
        )
        + "</Terminal>"
        for name, called in members.items()
    )
    version = '<?xml version="1.0" encoding="UTF-8"?>'
    inside = f"<Terminals>{listed}</Terminals>"
    return f'{version}<fmiTerminalsAndIcons fmiVersion="3.0">{inside}</fmiTerminalsAndIcons>'


def channel(tx, rx):
    return {"Tx_Data": tx, "Tx_Clock": f"{tx}_clock", "Rx_Data": rx, "Rx_Clock": f"{rx}_clock"}


@pytest.fixture(scope="module")
def fmus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("can")
    node = build("node", 3, folder=folder, terminals=terminals(CanChannel=channel("tx", "rx")))
    ends = {f"Node{k}": channel(f"tx{k}", f"rx{k}") for k in (1, 2)}
    return {
        "bus": hk.Fmu(build("canbus", 3, folder=folder, terminals=terminals(**ends))),
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


@pytest.mark.parametrize("kinds", [("me", "me", "me"), ("me", "cs", "me"), ("cs", "me", "cs")])
def test_frames_pass_in_model_exchange(tmp_path, kinds):
    files = [
        build(name, 3, folder=tmp_path, file=f"{name}_{kind}.fmu", interfaces=(kind,))
        for name, kind in zip(("canbus", "node", "node"), kinds, strict=True)
    ]
    models = {"bus": hk.Fmu(files[0]), "first": hk.Fmu(files[1], id=1), "second": hk.Fmu(files[2], id=2)}
    check_delivery(run_both(hk.Scenario(models, LINKS)), {name: name for name in models})


def test_terminals_are_connected_by_their_names(fmus):
    scenario = hk.Scenario(fmus, TERMINALS)
    assert {each.target: each.source for each in scenario.connections} == LINKS
    check_delivery(run_both(scenario), {name: name for name in fmus})


@pytest.mark.parametrize("inside", [{"first": "car.left"}, {"bus": "net.inner", "first": "car.left"}])
def test_terminals_of_fmus_in_levels(fmus, inside):
    """Two levels deep, at one end and at both."""
    path = {name: f"{inside[name]}.{name}" if name in inside else name for name in fmus}
    models = {name: model for name, model in fmus.items() if name not in inside}
    for name, place in inside.items():
        outer, inner = place.split(".")
        level = hk.Composite(hk.Scenario({name: fmus[name]}), "5 ms")
        models[outer] = hk.Composite(hk.Scenario({inner: level}), "5 ms")
    wires = {
        f"{path[target]}.{port}": f"{path[source]}.{drive}"
        for t, s in TERMINALS.items()
        for target, port, source, drive in [(*t.split("."), *s.split("."))]
    }
    check_delivery(run_both(hk.Scenario(models, wires)), path)


def test_terminals_in_a_file(fmus, tmp_path):
    lines = ['step = "10 ms"', "[run]", 'stop = "0.4 s"']
    for name, fmu in fmus.items():
        lines += [f"[models.{name}]", 'type = "fmu"', f'path = "{fmu.path}"']
        lines += [f"parameters = {{ id = {fmu.parameters['id']} }}"] if fmu.parameters else []
    lines += ["[connections]", *(f'{target} = "{source}"' for target, source in TERMINALS.items())]
    file = tmp_path / "can.toml"
    file.write_text("\n".join(lines))
    experiment = hk.read(file)
    assert {each.target: each.source for each in experiment.composite.scenario.connections} == LINKS
    run = hk.run(file)
    check_delivery(run, {name: name for name in fmus})
    hk.write(experiment, tmp_path / "again.toml")
    assert hk.read(tmp_path / "again.toml").composite.scenario == experiment.composite.scenario


def test_a_misspelt_terminal_in_a_file_has_its_line(fmus, tmp_path):
    file = tmp_path / "can.toml"
    models = [f'{name} = {{ type = "fmu", path = "{fmus[name].path}" }}' for name in ("bus", "first")]
    wires = ["[connections]", 'bus.Node1 = "first.CanChanel"']
    file.write_text("\n".join(['step = "10 ms"', "[models]", *models, *wires]))
    with pytest.raises(hk.ScenarioError) as error:
        hk.read(file)
    words = "`bus.Node1` is a terminal, `first.CanChanel` is not"
    assert [(fault.what, fault.place.line) for fault in error.value.faults] == [(words, 6)]
    assert error.value.faults[0].hint == "did you mean `first.CanChannel`?"


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("<fmiTerminals", "its terminals cannot be read: it is not XML"),
        (
            terminals(CanChannel=channel("tx", "gone")),
            "`CanChannel` is left out: it names `gone`, `gone_clock`",
        ),
        (terminals(tx=channel("tx", "rx")), "its terminal `tx` is left out: a port has its name"),
        (terminals(**{"": channel("tx", "rx")}), "is left out: it has no name"),
        (
            terminals(A=channel("tx", "rx")).replace("Rx_Data", "Tx_Data"),
            "its terminal `A` is left out: two members are named `Tx_Data`",
        ),
        (
            terminals(A=channel("tx", "rx")).replace("</Terminals>", '<Terminal name="A"/></Terminals>'),
            "two of its terminals are named `A`: they are left out",
        ),
    ],
)
def test_terminals_that_cannot_be_used_are_left_out_with_a_note(tmp_path, text, note):
    fmu = hk.Fmu(build("node", 3, folder=tmp_path, terminals=text))
    assert any(note in each for each in fmu.notes)
    assert fmu.terminals == ()
    hk.Scenario({"node": fmu})


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
