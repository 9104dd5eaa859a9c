"""FMUs in the instants of their level: event mode of FMI 3, events of model exchange, both engines alike."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import hocket as hk
from fmus.build import build

G, E = 9.81, 0.7
FIRST = 0.4515236409857309
"""sqrt(2 h / g) with h = 1 m."""


def bounce_times(count):
    """Return the exact times of the bounces of a ball that falls from 1 m."""
    flights = [FIRST, *(2.0 * FIRST * E**k for k in range(1, count))]
    return np.array(list(itertools.accumulate(flights)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("instants")


INTERFACES = {
    "cs3": (3, "cs", {}),
    "me3": (3, "me", {"method": "rk4", "step": "1 ms"}),
    "me2": (2, "me", {"method": "rk4", "step": "1 ms"}),
    "me2 whole": (2, "me", {"method": "heun"}),
    "me3 adaptive": (3, "me", {"method": "adaptive", "rtol": 1e-10}),
}


def fmu(name, folder, interface="cs3", **how):
    version, kind, options = INTERFACES[interface]
    path = build(name, version, folder=folder / f"{version}{kind}", interfaces=(kind,))
    return hk.Fmu(path, **options, **how)


def run_both(models, links, step, stop, orchestrator="jacobi", **how):
    """Return the run, which both engines make alike, row by row and bit by bit."""
    composite = hk.Composite(hk.Scenario(models, links), step, orchestrator)
    runs = [hk.run(composite, stop=stop, engine=each, **how) for each in ("interpreter", "native")]
    for name in runs[0]:
        assert np.array_equal(runs[0][name].t, runs[1][name].t)
        assert np.array_equal(runs[0][name].values, runs[1][name].values, equal_nan=True)
    assert runs[1].info["engine"] == "native"
    return runs[1]


def pairs(t):
    """Return the numbers of the rows after an event: the row before is at the same time."""
    return np.flatnonzero(np.diff(t) == 0.0) + 1


def test_the_known_answer_of_the_ball():
    assert bounce_times(1)[0] == pytest.approx((2 / G) ** 0.5, rel=1e-15)
    speeds = G * FIRST * E ** np.arange(1, 25)
    assert np.flatnonzero(speeds < 0.1)[0] + 1 == 11
    assert bounce_times(11)[-1] == pytest.approx(2.4991133142, abs=1e-10)


@pytest.mark.parametrize("partner", [False, True])
@pytest.mark.parametrize("interface", INTERFACES)
def test_every_bounce_is_recorded_left_and_right(folder, interface, partner):
    models, links = {"ball": fmu("ball", folder, interface)}, {}
    if partner:
        models["lag"] = hk.Fmu(build("lag", 2, folder=folder))
        links["lag.u"] = "ball.h"
    run = run_both(models, links, "0.1 s", 3)
    t, v = run["ball.v"].t, run["ball.v"].values
    after = pairs(t)
    exact, speeds = bounce_times(24), G * FIRST * E ** np.arange(24)
    assert t[after] == pytest.approx(exact, abs=1e-9)
    assert v[after - 1] == pytest.approx(-speeds, abs=1e-8)
    assert v[after][:-1] == pytest.approx(E * speeds[:-1], abs=1e-8)
    assert v[after[-1]] == 0.0  # it rests
    assert run["ball.bounces"].values[after].tolist() == list(range(1, 25))


def test_adaptive_steps_meet_the_bounces_of_an_fmu_and_a_lag(folder):
    models = {"ball": fmu("ball", folder), "lag": hk.Fmu(build("lag", 3, folder=folder))}
    run = run_both(models, {"lag.u": "ball.h"}, "0.1 s", 3, hk.Adaptive(tolerance=1e-3))
    assert run["ball.v"].t[pairs(run["ball.v"].t)] == pytest.approx(bounce_times(24), abs=1e-9)


@pytest.mark.parametrize("order", [("ball", "lag"), ("lag", "ball")])
@pytest.mark.parametrize("algorithm", ["gauss-seidel", "iterate"])
def test_other_algorithms_meet_them(folder, order, algorithm):
    known = {"ball": fmu("ball", folder), "lag": hk.Fmu(build("lag", 3, folder=folder))}
    run = run_both({name: known[name] for name in order}, {"lag.u": "ball.h"}, "0.1 s", 2, algorithm)
    count = np.sum(bounce_times(24) < 2)
    assert run["ball.v"].t[pairs(run["ball.v"].t)] == pytest.approx(bounce_times(count), abs=1e-9)


@pytest.mark.parametrize("step", ["0.7 s", "0.5 s", "20 s"])
@pytest.mark.parametrize("interface", ["cs3", "me3", "me2", "me3 adaptive"])
def test_nine_time_events_are_met_wherever_steps_end(folder, interface, step):
    """At 1, 2 ... 9 s; y is left and right of each, and its integral x knows no other times."""
    run = run_both({"c": fmu("counter", folder, interface)}, {}, step, 9.8 if step == "0.7 s" else "20 s")
    t, y, x = run["c.y"].t, run["c.y"].values, run["c.x"].values
    after = pairs(t)
    after = after[t[after] < 9.5]
    assert t[after].tolist() == [float(k) for k in range(1, 10)]
    assert y[after - 1].tolist() == [float(k) for k in range(9)]
    assert y[after].tolist() == [float(k) for k in range(1, 10)]
    assert x[after] == pytest.approx([k * (k - 1) / 2 for k in range(1, 10)], abs=1e-9)


@pytest.mark.parametrize("interface", ["cs3", "me3"])
def test_events_pass_through_levels(folder, interface):
    inner = hk.Composite(
        hk.Scenario({"ball": fmu("ball", folder, interface)}, {"h": "ball.h"}, outputs=["h"]), "0.05 s"
    )
    models = {"inside": inner, "lag": hk.Fmu(build("lag", 2, folder=folder))}
    run = run_both(models, {"lag.u": "inside.h"}, "0.1 s", 2)
    count = np.sum(bounce_times(24) < 2)
    t = run["inside.ball.v"].t
    assert t[pairs(t)] == pytest.approx(bounce_times(count), abs=1e-9)


def test_a_jump_of_an_fmu_reaches_another_in_the_same_time(folder):
    """The discrete input of one is the discrete output of the other: both jump at one time."""
    sampled = hk.Fmu(build("sampled", 3, folder=folder), period=100.0)
    run = run_both({"c": fmu("counter", folder, every=0.25), "s": sampled}, {"s.u": "c.y"}, "0.1 s", 1)
    t, w = run["s.w"].t, run["s.w"].values
    for k in range(1, 4):
        here = np.flatnonzero(t == 0.25 * k)
        assert w[here[0]] == k - 1
        assert w[here[-1]] == k


def test_an_isolated_fmu_handles_its_events_inside_its_steps_and_says_so(folder):
    model = fmu("ball", folder, isolate=True)
    assert not model.capabilities.events
    assert any("isolated: its events are handled inside its steps" in note for note in model.notes)


def test_a_rollback_forgets_what_happened_at_an_instant(folder):
    """Saved before an event, restored after it: the event comes again, with the same numbers."""
    simulator = fmu("ball", folder).open()
    simulator.early, simulator.event_grid = True, 1e-12
    none = np.zeros((1, 0))
    simulator.start(0.0)
    simulator.ready()
    state = simulator.save()
    seen = []
    for _ in range(3):
        assert simulator.due() is None
        assert simulator.step(0.0, 1.0, none) == pytest.approx(FIRST, abs=1e-15)
        left = simulator.output(FIRST, none).tolist()
        assert simulator.due() <= FIRST
        assert simulator.react(FIRST, 1, none[0], []) == [False] * 3
        assert not simulator.commit()
        assert simulator.due() is None
        seen.append((left, simulator.output(FIRST, none).tolist()))
        simulator.restore(state)
    simulator.close()
    assert seen[0] == seen[1] == seen[2]
    assert seen[0][0][1] == pytest.approx(-G * FIRST)
    assert seen[0][1][1] == pytest.approx(E * G * FIRST)


# clocks


class Trigger:
    """Ticks a clock at given times."""

    outputs = (hk.Port("tick", type="clock"),)

    def __init__(self, times):
        self.times = list(times)

    def start(self, t):
        self.left, self.now = list(self.times), t

    def step(self, t, h, u):
        return t + h

    def output(self, t, u):
        return [1.0]

    def due(self):
        return Fraction(self.left[0]) if self.left else None

    def react(self, t, n, u, present):
        self.now = t
        return [bool(self.left) and self.left[0] <= t]

    def commit(self):
        if self.left and self.left[0] <= self.now:
            del self.left[0]
        return False

    def save(self):
        return list(self.left), self.now

    def restore(self, state):
        self.left, self.now = list(state[0]), state[1]


@pytest.mark.parametrize("interface", ["co-simulation", "scheduled-execution"])
def test_the_known_answer_of_three_clocks(folder, interface):
    """Ticks 10, 4 and 1 at t = 0 ... 9 s; the output clock ticks with every fifth of them: 2, 6, 9 s."""
    models = {
        "f": hk.Fmu(build("ticks", 3, folder=folder), interface=interface),
        "trigger": hk.Python(Trigger, times=[0, 1, 8, 9]),
    }
    run = run_both(models, {"f.b": "trigger.tick"}, "0.7 s", 9.1)
    assert [run.final(f"f.{name}") for name in ("n_a", "n_b", "n_c", "total")] == [10, 4, 1, 15]
    ticks = run["f.out"]
    assert ticks.t[~np.isnan(ticks.values)].tolist() == [2.0, 6.0, 9.0]


@pytest.mark.parametrize(
    ("p", "q", "stop", "counts"),
    [
        ({"intervalCounter": 1, "resolution": 3}, {"intervalCounter": 1, "resolution": 2}, 10, (31, 21, 11)),
        ({"intervalDecimal": 0.1}, {"intervalDecimal": 0.3}, 30, (301, 101, 101)),
        ({"intervalDecimal": 0.1, "shiftDecimal": 0.05}, {"intervalDecimal": 0.3}, 30, (300, 101, 0)),
    ],
)
def test_periodic_clocks_coincide_as_their_fractions_do(folder, p, q, stop, counts):
    ticks = {
        name: {"ticks": {"intervalVariability": "constant", **each}} for name, each in (("p", p), ("q", q))
    }
    model = hk.Fmu(build("metronome", 3, folder=folder, file=f"{counts[0]}.fmu", variables=ticks))
    run = run_both({"m": model}, {}, "1 s", stop)
    assert tuple(run.final(f"m.{name}") for name in ("n_p", "n_q", "both")) == counts


@pytest.mark.parametrize("variability", ["constant", "fixed", "tunable"])
def test_periodic_clocks_of_every_kind_with_an_interval_tick_alike(folder, variability):
    ticks = {"p": {"ticks": {"intervalVariability": variability, "intervalDecimal": 0.25}}}
    model = hk.Fmu(build("metronome", 3, folder=folder, file=f"p_{variability}.fmu", variables=ticks))
    run = run_both({"m": model}, {}, "1 s", 3)
    n = run["m.n_p"]
    assert n.t[np.flatnonzero(np.diff(n.values)) + 1].tolist() == [0.25 * k for k in range(13)]


def test_a_tunable_interval_that_changes_counts_from_now(folder):
    """Every 1/4 s, every 1/2 s from the fourth tick on: 0, 1/4, 1/2, 3/4, then 5/4, 7/4 ... s."""
    ticks = {"p": {"ticks": {"intervalVariability": "tunable"}}}
    model = hk.Fmu(build("metronome", 3, folder=folder, file="slower.fmu", variables=ticks), slower=2.0)
    run = run_both({"m": model}, {}, "1 s", 3)
    n = run["m.n_p"]
    rises = n.t[np.flatnonzero(np.diff(n.values)) + 1].tolist()
    assert rises == [0.0, 0.25, 0.5, 0.75, 1.25, 1.75, 2.25, 2.75]


@pytest.mark.parametrize("kind", ["calculated", "tunable"])
def test_an_interval_that_the_fmu_tells(folder, kind):
    ticks = {"p": {"ticks": {"intervalVariability": kind}}}
    model = hk.Fmu(build("metronome", 3, folder=folder, file=f"{kind}.fmu", variables=ticks), every=0.375)
    run = run_both({"m": model}, {}, "1 s", 3)
    assert run.final("m.n_p") == 9  # at 0, 0.375 ... 3


def test_a_changing_interval_of_zero_is_another_instant_at_the_same_time(folder):
    """1/2 s from the start, 0 from the first tick, 1/4 s from the second."""
    run = run_both({"m": hk.Fmu(build("metronome", 3, folder=folder))}, {}, "1 s", 2)
    t, n = run["m.n_r"].t, run["m.n_r"].values
    rises = np.flatnonzero(np.diff(n)) + 1
    assert t[rises].tolist() == [0.5, 0.5, 0.75]


def test_what_is_clocked_is_sampled_and_held(folder):
    """w = 2 u at the ticks of p, each 0.1 s, where u = t."""
    models = {
        "source": hk.Function(lambda t: t, outputs=["y"]),
        "m": hk.Fmu(build("metronome", 3, folder=folder)),
    }
    run = run_both(models, {"m.u": "source.y"}, "0.25 s", 1)
    t, w = run["m.w"].t, run["m.w"].values
    last = np.append(np.diff(t) > 0.0, True)
    assert w[last] == pytest.approx(np.floor(t[last] * 10 + 1e-9) / 10 * 2, abs=1e-12)


@pytest.mark.parametrize(
    ("interval", "message"),
    [
        ({"intervalDecimal": -0.1}, "the interval of the clock `p` is -1/10 s"),
        ({"intervalDecimal": 0.0}, "the interval of the clock `p` is 0 s"),
        ({"intervalDecimal": 0.1, "shiftDecimal": -1.0}, "the shift of the clock `p` is -1 s"),
    ],
)
def test_intervals_that_are_not_above_zero_are_refused(tmp_path, interval, message):
    ticks = {"p": {"ticks": {"intervalVariability": "constant", **interval}}}
    with pytest.raises(hk.HocketError, match=message):
        hk.Fmu(build("metronome", 3, folder=tmp_path, variables=ticks))


def test_an_interval_variability_that_is_none_is_refused(tmp_path):
    ticks = {"p": {"ticks": {"intervalVariability": "sometimes"}}}
    with pytest.raises(hk.HocketError, match="the interval variability of the clock `p` is `sometimes`"):
        hk.Fmu(build("metronome", 3, folder=tmp_path, variables=ticks))


@pytest.mark.parametrize("engine", ["interpreter", "native"])
@pytest.mark.parametrize("interface", ["cs3", "me3", "me2"])
def test_a_time_event_in_the_past_is_refused(folder, interface, engine):
    with pytest.raises(hk.SimulatorError, match=r"`c` announces an event at t = -\d.0 s, which is over"):
        hk.run(
            hk.Composite(hk.Scenario({"c": fmu("counter", folder, interface, every=-1.0)}), 1),
            stop=1,
            engine=engine,
        )


def test_an_interval_that_the_fmu_tells_must_be_above_zero(tmp_path):
    ticks = {"p": {"ticks": {"intervalVariability": "calculated"}}}
    model = hk.Fmu(build("metronome", 3, folder=tmp_path, variables=ticks), every=-0.25)
    with pytest.raises(hk.SimulatorError, match=r"the interval of its clock `p` is -0.25 s"):
        hk.run(hk.Composite(hk.Scenario({"m": model}), 1), stop=1)


def test_ticks_that_64_bits_do_not_hold_are_refused(folder):
    """From 1/4294967279 s on every 1/4294967291 s: both are prime, and their product is above 2^63."""
    interval = {"intervalCounter": 1, "resolution": 4294967291}
    ticks = {"p": {"ticks": {"intervalVariability": "constant", **interval}}}
    model = hk.Fmu(build("metronome", 3, folder=folder, file="primes.fmu", variables=ticks))
    start = Fraction(1, 4294967279)
    for engine in ("native", "interpreter"):
        with pytest.raises(hk.SimulatorError, match=r"(?s)1/4294967291 s.*no common tick"):
            hk.run(hk.Composite(hk.Scenario({"m": model}), 1), start=start, stop=start + 1, engine=engine)


@pytest.mark.parametrize("interval", [1.2345678901234567e-3, 0.1 + 0.2, 1 / 3])
def test_an_interval_with_all_the_digits_of_a_float_ticks(folder, interval):
    ticks = {"p": {"ticks": {"intervalVariability": "constant", "intervalDecimal": interval}}}
    model = hk.Fmu(build("metronome", 3, folder=folder, file=f"digits_{interval}.fmu", variables=ticks))
    run = run_both({"m": model}, {}, "1 s", 12)  # with a denominator of 64 bits times would end at one second
    n = run["m.n_p"]
    rises = n.t[np.flatnonzero(np.diff(n.values)) + 1]
    assert rises == pytest.approx(interval * np.arange(int(12 / interval + 1e-9) + 1), rel=1e-12)


def test_an_input_with_two_clocks_is_refused(tmp_path):
    path = build("metronome", 3, folder=tmp_path, variables={"u": {"clocks": ["p", "q"]}})
    with pytest.raises(hk.ScenarioError, match="the input `u` has 2 clocks: `p`, `q`"):
        hk.Fmu(path)


def test_an_event_port_is_not_connected_to_a_continuous_input(folder):
    models = {"f": hk.Fmu(build("ticks", 3, folder=folder)), "lag": hk.Fmu(build("lag", 3, folder=folder))}
    with pytest.raises(hk.ScenarioError, match="`out` is an event"):
        hk.run(hk.Composite(hk.Scenario(models, {"lag.u": "f.out"}), 1), stop=1)


def test_scheduled_execution_says_that_preemption_is_not_simulated(folder):
    model = hk.Fmu(build("ticks", 3, folder=folder), interface="scheduled-execution")
    assert any("preemption is not simulated" in note for note in model.notes)


@pytest.mark.parametrize("order", [("f", "trigger"), ("trigger", "f")])
def test_the_order_in_which_clocked_models_are_listed_does_not_matter(folder, order):
    path = build("ticks", 3, folder=folder)
    known = {"f": hk.Fmu(path), "trigger": hk.Python(Trigger, times=[0, 1, 8, 9])}
    run = run_both({name: known[name] for name in order}, {"f.b": "trigger.tick"}, "0.7 s", 9.1)
    assert [run.final(f"f.{name}") for name in ("n_a", "n_b", "n_c", "total")] == [10, 4, 1, 15]


def test_a_clock_that_hocket_ticks_triggers_others(folder):
    """The clock a of one FMU, each second, triggers the clock b of another."""
    models = {"f": hk.Fmu(build("ticks", 3, folder=folder)), "g": hk.Fmu(build("clocked", 3, folder=folder))}
    models["trigger"] = hk.Python(Trigger, times=[100])
    run = run_both(models, {"g.tick": "f.a", "f.b": "trigger.tick"}, "0.7 s", 9.1)
    assert run.final("g.y") == run.final("f.n_a") == 10


def test_a_clock_without_a_source_is_refused(folder):
    models = {"f": hk.Fmu(build("ticks", 3, folder=folder))}
    with pytest.raises(hk.ScenarioError, match=r"nothing ticks the clock `f\.b`"):
        hk.run(hk.Composite(hk.Scenario(models), 1), stop=1)


def test_clocks_do_not_tick_where_no_instants_are_taken(folder):
    simulator = hk.Fmu(build("metronome", 3, folder=folder)).open()
    simulator.start(0.0)
    with pytest.raises(hk.SimulatorError, match="they tick at instants, which its level does not take"):
        simulator.ready()
    simulator.close()
    with pytest.raises(hk.ScenarioError, match="an FMU with clocks cannot be isolated"):
        hk.Fmu(build("metronome", 3, folder=folder), isolate=True)


# ticks that are not fractions in 64 bits


def metronome(folder, **clocks):
    ticks = {name: {"ticks": each} for name, each in clocks.items()}
    return build("metronome", 3, folder=folder, variables=ticks)


CONSTANT = {"intervalVariability": "constant"}
CALCULATED = {"intervalVariability": "calculated"}


@pytest.mark.parametrize("engine", ["interpreter", "native"])
def test_clocks_of_one_fmu_without_a_common_tick_are_refused(tmp_path, engine):
    p, q = ({**CONSTANT, "intervalCounter": 2, "resolution": each} for each in (2**32 - 5, 2**32 - 17))
    composite = hk.Composite(hk.Scenario({"m": hk.Fmu(metronome(tmp_path, p=p, q=q))}), "1 s")
    message = (
        r"the interval of the clock `p` of `m` \(2/4294967291 s\) and the interval of the clock `q` of `m` "
        r"\(2/4294967279 s\) have no common tick in 64 bits"
    )
    with pytest.raises(hk.ScenarioError, match=message):
        hk.run(composite, stop=1, engine=engine)


@pytest.mark.parametrize("engine", ["interpreter", "native"])
def test_an_interval_that_is_told_must_have_a_common_tick_with_the_others(tmp_path, engine):
    """The FMU tells 2^-10 s times a whole number; 1024 (2^55 - 1) has 65 bits."""
    told = {**CALCULATED, "supportsFraction": "true"}
    q = {**CONSTANT, "intervalCounter": 2**55, "resolution": 2**55 - 1}
    model = hk.Fmu(metronome(tmp_path, p=told, q=q), every=3 / 1024)
    message = (
        r"the intervals of its clocks `p` \(3/1024 s\) and `q` \(36028797018963968/36028797018963967 s\) "
        "have no common tick in 64 bits"
    )
    with pytest.raises(hk.SimulatorError, match=message):
        hk.run(hk.Composite(hk.Scenario({"m": model}), "1 s"), stop=2, engine=engine)


@pytest.mark.parametrize("engine", ["interpreter", "native"])
def test_an_interval_that_is_told_must_be_a_fraction_in_64_bits(tmp_path, engine):
    model = hk.Fmu(metronome(tmp_path, p=CALCULATED), every=1e-24)
    with pytest.raises(hk.SimulatorError, match=r"`p` is .* s, which is not a fraction in 64 bits"):
        hk.run(hk.Composite(hk.Scenario({"m": model}), "1 s"), stop=1, engine=engine)


@pytest.mark.parametrize(
    "interval", [{"intervalDecimal": "1e-20"}, {"intervalCounter": 1, "resolution": 2**64 - 1}]
)
def test_an_interval_that_is_declared_must_be_a_fraction_in_64_bits(tmp_path, interval):
    with pytest.raises(hk.HocketError, match=r"the interval of the clock `p` is 1/\d{20,} s"):
        hk.Fmu(metronome(tmp_path, p={**CONSTANT, **interval}))


def test_clocks_of_two_fmus_and_a_sampled_class_need_a_common_tick(tmp_path):
    one = metronome(tmp_path / "one", p={**CONSTANT, "intervalCounter": 2, "resolution": 2**32 - 5})
    other = metronome(tmp_path / "other", p={**CONSTANT, "intervalCounter": 2, "resolution": 2**32 - 17})
    scenario = hk.Scenario({"one": hk.Fmu(one), "other": hk.Fmu(other)})
    with pytest.raises(
        hk.ScenarioError, match=r"`p` of `one` .* and the interval of the clock `p` of `other`"
    ):
        hk.run(hk.Composite(scenario, "1 s"), stop=1)
