"""Instants: steps end at events, nothing acts before its instant, and what was before a jump is forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.linalg import expm

import hocket as hk
from hocket.model.ports import Port
from hocket.plan import Instant, Try, walk
from hocket.planning.planner import plan_tree
from hocket.simulators.ode import Event
from systems import ENGINES, lag

JUMP = 0.0537
"""When the source jumps: on no grid."""

# a source that jumps, into two lags that drive each other

RATES = np.array([[-3.0, -3.0], [2.0, -2.0]])


def jumping_source() -> hk.Table:
    return hk.Table([0.0, JUMP, JUMP, 10.0], {"y": [0.0, 0.0, 1.0, 1.0]})


def first_lag() -> hk.StateSpace:
    return hk.StateSpace([[-3.0]], [[3.0, -3.0]], [[1.0]], x0=[0.0], inputs=["u", "b"], outputs=["a"])


def second_lag() -> hk.StateSpace:
    return hk.StateSpace([[-2.0]], [[2.0]], [[1.0]], x0=[0.0], inputs=["a"], outputs=["b"])


def exact_state(t: float) -> np.ndarray:
    """Return a and b by the matrix exponential of the whole: x' = A x + (3, 0) from the jump on."""
    whole = np.zeros((3, 3))
    whole[:2, :2], whole[0, 2] = RATES, 3.0
    return expm(whole * (t - JUMP))[:2, 2]


WIRES = {"a.u": "src.y", "a.b": "b.b", "b.a": "a.a"}


def flat(step: str, algorithm: Any, how: str) -> hk.Composite:
    scenario = hk.Scenario({"src": jumping_source(), "a": first_lag(), "b": second_lag()}, WIRES)
    return hk.Composite(scenario, step, algorithm("src", "a", "b"), extrapolation=how)


def source_inside(step: str, algorithm: Any, how: str) -> hk.Composite:
    wires = {"a.u": "src.y", "a.b": "b", "y": "a.a"}
    scenario = hk.Scenario({"src": jumping_source(), "a": first_lag()}, wires, inputs=["b"], outputs=["y"])
    inner = hk.Composite(scenario, step, algorithm("src", "a"), extrapolation=how)
    outer = hk.Scenario({"in": inner, "b": second_lag()}, {"in.b": "b.b", "b.a": "in.y"})
    return hk.Composite(outer, step, extrapolation=how)


def source_outside(step: str, algorithm: Any, how: str) -> hk.Composite:
    wires = {"a.u": "u", "a.b": "b.b", "b.a": "a.a"}
    scenario = hk.Scenario({"a": first_lag(), "b": second_lag()}, wires, inputs=["u"])
    inner = hk.Composite(scenario, step, extrapolation=how)
    outer = hk.Scenario({"src": jumping_source(), "in": inner}, {"in.u": "src.y"})
    return hk.Composite(outer, step, algorithm("src", "in"), extrapolation=how)


ALGORITHMS = {
    "jacobi": lambda *names: hk.Jacobi(),
    "gauss-seidel": lambda *names: hk.GaussSeidel(list(names)),
    "gauss-seidel backwards": lambda *names: hk.GaussSeidel(list(reversed(names))),
    "iterate": lambda *names: hk.Iterate(tolerance=1e-12),
    "multirate": lambda *names: hk.Multirate({names[-1]: 4}),
    "compound": lambda *names: hk.Multirate({names[-1]: 4}, "compound"),
    "asynchronous": lambda *names: hk.Asynchronous(dict(zip(reversed(names), (4, 3, 1), strict=False))),
}
SYSTEMS = {"flat": (flat, "a.a"), "inside": (source_inside, "in.a.a"), "outside": (source_outside, "in.a.a")}


@pytest.mark.parametrize("how", ["hold", "linear"])
@pytest.mark.parametrize("where", SYSTEMS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_jump_between_steps_keeps_the_order(algorithm: str, where: str, how: str, tmp_path: Any) -> None:
    build, port = SYSTEMS[where]
    errors = []
    for parts in (20, 40, 80, 160):
        composite = build(f"1/{parts} s", ALGORITHMS[algorithm], how)
        run = hk.run(composite, stop=1, folder=tmp_path / str(parts))
        t, a = rows(run, port)
        errors.append(max(abs(a[k] - exact_state(max(t[k], JUMP))[0]) for k in range(len(t))))
    order = np.log2(errors[0] / errors[-1]) / 3  # how far a jump is into its step changes from H to H
    wanted = 1.0 if how == "hold" else 2.0
    assert order == pytest.approx(wanted, abs=0.35) or order > wanted, errors
    assert errors[-1] < (2e-2 if how == "hold" else 1e-3)


@pytest.mark.parametrize("how", ["hold", "linear", "quadratic"])
@pytest.mark.parametrize("where", SYSTEMS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_jump_between_steps_has_the_same_bits_on_both_engines(algorithm, where, how, tmp_path) -> None:
    build, _ = SYSTEMS[where]
    both(build("1/20 s", ALGORITHMS[algorithm], how), tmp_path, stop=0.4)


@pytest.mark.parametrize("how", ["hold", "linear"])
def test_step_control_is_as_good_as_its_tolerance_across_a_jump(how: str, tmp_path: Any) -> None:
    """A step control by defects keeps the error in proportion to the tolerance."""
    errors = []
    for tolerance in (1e-2, 1e-3, 1e-4):
        composite = flat("1/10 s", lambda *names, tol=tolerance: hk.Adaptive(tolerance=tol), how)
        run = hk.run(composite, stop=1, folder=tmp_path / str(tolerance))
        errors.append(abs(run.final("a.a") - exact_state(1.0)[0]))
        assert errors[-1] < tolerance
    assert errors[-1] < errors[0] / 10.0


class Schedule:
    """Is present every tenth of a second; it says so in floats that are rounded, or in fractions."""

    inputs = ()
    outputs = (Port("beat", event=True),)

    def __init__(self, exact: bool):
        self.exact, self.count = exact, 0

    def start(self, t: float) -> None:
        self.count = round(10.0 * t)

    def output(self, t: float) -> list[float]:
        return [1.0]

    def step(self, t: float, h: float, u: Any) -> None: ...

    def due(self) -> Any:
        return Fraction(self.count, 10) if self.exact else self.count * 0.1

    def react(self, t: float, n: int, u: Any, present: Sequence[bool]) -> list[bool]:
        return [True]

    def commit(self) -> bool:
        self.count += 1
        return False

    def save(self) -> int:
        return self.count

    def restore(self, state: int) -> None:
        self.count = state


@pytest.mark.parametrize("step", ["1/2 s", "1/7 s"])
def test_floats_and_fractions_that_mean_one_time_meet_in_one_instant(step: str, tmp_path: Any) -> None:
    """Also late in a run, where the rounding of a float is longer than the places of the clock are apart."""
    models = {"exact": hk.Python(Schedule, exact=True), "rounded": hk.Python(Schedule, exact=False)}
    composite = hk.Composite(hk.Scenario(models, {}), step)
    run = hk.run(composite, start=9000, stop=9004, folder=tmp_path / "late")
    exact, rounded = (~np.isnan(rows(run, f"{name}.beat")[1]) for name in models)
    assert (exact == rounded).all()
    run = both(composite, tmp_path, stop=40)
    exact, rounded = (~np.isnan(rows(run, f"{name}.beat")[1]) for name in models)
    assert exact.sum() == 401
    assert (exact == rounded).all()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("how", ["hold", "linear"])
@pytest.mark.parametrize("algorithm", [*ALGORITHMS, "adaptive"])
def test_a_jump_into_a_lag_alone_is_exact(algorithm: str, how: str, engine: str, tmp_path: Any) -> None:
    """What is constant but for a jump is held without error, whatever the algorithm."""
    chosen = {**ALGORITHMS, "adaptive": lambda *names: hk.Adaptive(tolerance=1e-4)}[algorithm]
    scenario = hk.Scenario({"src": jumping_source(), "lag": lag(3.0, 3.0, 0.0)}, {"lag.u": "src.y"})
    composite = hk.Composite(scenario, "1/10 s", chosen("src", "lag"), extrapolation=how)
    run = hk.run(composite, stop=1, engine=engine, folder=tmp_path / "run")
    assert run.final("lag.y") == pytest.approx(1.0 - np.exp(-3.0 * (1.0 - JUMP)), abs=1e-12)
    t, y = rows(run, "src.y")
    at = np.flatnonzero(t == JUMP)
    assert list(y[at]) == [0.0, 1.0], "the row before the jump and the one after it"
    before = t < JUMP
    assert not rows(run, "lag.y")[1][before].any(), "nothing acts before its instant"


def test_events_have_two_rows_also_where_rows_are_rare(tmp_path: Any) -> None:
    scenario = hk.Scenario({"src": jumping_source(), "lag": lag(3.0, 3.0, 0.0)}, {"lag.u": "src.y"})
    run = both(hk.Composite(scenario, "1/10 s"), tmp_path, stop=1, every="1/2 s")
    t, y = rows(run, "src.y")
    assert list(t) == [0.0, JUMP, JUMP, 0.5, 1.0]
    assert list(y) == [0.0, 0.0, 1.0, 1.0, 1.0]
    expected = [0.0, 0.0, 0.0, *(1.0 - np.exp(-3.0 * (end - JUMP)) for end in (0.5, 1.0))]
    assert rows(run, "lag.y")[1] == pytest.approx(expected, abs=1e-12)


def rows(run: Any, port: str) -> tuple[np.ndarray, np.ndarray]:
    """Return times and values."""
    return np.asarray(run[port].t), np.asarray(run[port].values)


def both(composite: hk.Composite, tmp_path: Any, **options: Any) -> Any:
    """Run on both engines; return the run after its rows were found equal, bit for bit."""
    runs = [hk.run(composite, engine=e, folder=tmp_path / e, **options) for e in ENGINES]
    assert runs[0].info["engine"] == "native", runs[0].info["why_interpreted"]
    for port in runs[0].ports:
        for one, other in zip(*(rows(run, port) for run in runs), strict=True):
            assert one.tobytes() == other.tobytes(), port
    return runs[0]


# a ball


def ball(e: float = 0.7, **options: Any) -> hk.Ode:
    def bounce(t: float, x: Any, u: Any) -> list[float]:
        return [0.0, -e * x[1]]

    hits = Event(lambda t, x, u: x[0], "falling", bounce)
    options = {"x0": [1.0, 0.0], "outputs": ["h", "v"], "method": "rk4", **options}
    return hk.Ode(lambda t, x, u: [x[1], -9.81], events=[hits], **options)


def bounces(count: int, e: float = 0.7, g: float = 9.81) -> list[float]:
    """Return when a ball dropped from 1 m hits the floor."""
    first = np.sqrt(2.0 / g)
    times, flight = [first], 2.0 * first
    for _ in range(count - 1):
        flight *= e
        times.append(times[-1] + flight)
    return times


def event_times(run: Any, port: str) -> np.ndarray:
    """Return the times that have more than one row."""
    t, _ = rows(run, port)
    return np.unique(t[1:][np.diff(t) == 0.0])


@pytest.mark.parametrize("algorithm", [*ALGORITHMS, "adaptive"])
def test_a_ball_is_met_where_it_bounces(algorithm: str, tmp_path: Any) -> None:
    chosen = {**ALGORITHMS, "adaptive": lambda *names: hk.Adaptive(tolerance=1e-2)}[algorithm]
    scenario = hk.Scenario({"ball": ball(), "lag": lag(x0=0.0)}, {"lag.u": "ball.h"})
    run = both(hk.Composite(scenario, "1/10 s", chosen("ball", "lag")), tmp_path, stop=2.3)
    expected = bounces(6)
    assert expected[0] == pytest.approx(0.4515236409857309, abs=1e-15)
    assert event_times(run, "ball.h") == pytest.approx(expected, abs=1e-9)
    t, v = rows(run, "ball.v")
    for number, time in enumerate(event_times(run, "ball.v")):
        left, right = v[t == time]
        speed = np.sqrt(2.0 * 9.81) * 0.7**number
        assert (left, right) == pytest.approx((-speed, 0.7 * speed), abs=1e-9)


def test_a_ball_inside_a_level_is_met_outside(tmp_path: Any) -> None:
    inner = hk.Composite(hk.Scenario({"ball": ball()}, {"h": "ball.h"}, outputs=["h"]), "1/40 s")
    scenario = hk.Scenario({"in": inner, "lag": lag(x0=0.0)}, {"lag.u": "in.h"})
    run = both(hk.Composite(scenario, "1/10 s"), tmp_path, stop=1.2)
    assert event_times(run, "in.ball.h") == pytest.approx(bounces(2), abs=1e-9)
    assert event_times(run, "lag.y") == pytest.approx(bounces(2), abs=1e-9), (
        "the level around stops there too"
    )


def test_a_ball_in_a_level_with_a_longer_step(tmp_path: Any) -> None:
    inner = hk.Composite(hk.Scenario({"ball": ball()}, {"h": "ball.h"}, outputs=["h"]), "1/5 s")
    scenario = hk.Scenario({"in": inner, "lag": lag(x0=0.0)}, {"lag.u": "in.h"})
    run = both(hk.Composite(scenario, "1/10 s"), tmp_path, stop=1.2)
    t, v = rows(run, "in.ball.v")
    assert np.unique(t[1:][np.diff(v) > 1.0]) == pytest.approx(bounces(2), abs=1e-9)


def test_listing_does_not_matter(tmp_path: Any) -> None:
    models = {"ball": ball(), "lag": lag(x0=0.0), "src": jumping_source(), "late": lag(2.0, 2.0, 0.0)}
    wires = {"lag.u": "ball.h", "late.u": "src.y"}
    found = []
    for order in (list(models), list(reversed(models))):
        scenario = hk.Scenario({name: models[name] for name in order}, wires)
        run = hk.run(hk.Composite(scenario, "1/10 s"), stop=1.5, folder=tmp_path / order[0])
        found.append({port: [each.tobytes() for each in rows(run, port)] for port in sorted(run.ports)})
    assert found[0] == found[1]


# events that are present or absent


class Beat:
    """Is present now and then, with its number."""

    inputs = ()
    outputs = (Port("beat", event=True),)

    def __init__(self, every: float):
        self.period = Fraction(str(every))
        self.count = 0

    def start(self, t: float) -> None:
        self.count = 0

    def output(self, t: float) -> list[float]:
        return [float(self.count)]

    def step(self, t: float, h: float, u: Any) -> None: ...

    def due(self) -> Fraction:
        return self.period * self.count

    def react(self, t: float, n: int, u: Any, present: Sequence[bool]) -> list[bool]:
        return [True]

    def commit(self) -> bool:
        self.count += 1
        return False

    def save(self) -> int:
        return self.count

    def restore(self, state: int) -> None:
        self.count = state


class Relay:
    """Hands an event on in the instant in which it is present; keeps what came, and when."""

    inputs = (Port("x", event=True, start=0.0),)
    outputs = (Port("y", event=True), Port("count", held=True))
    feedthrough: ClassVar = {"y": ["x"]}

    def __init__(self) -> None:
        self.log: list[tuple[float, int, float]] = []
        self.value, self.here, self.count = 0.0, False, 0

    def start(self, t: float) -> None: ...

    def output(self, t: float, u: Any) -> list[float]:
        return [self.value, float(self.count)]

    def step(self, t: float, h: float, u: Any) -> None: ...

    def due(self) -> None:
        return None

    def react(self, t: float, n: int, u: Any, present: Sequence[bool]) -> list[bool]:
        self.here = bool(present[0])
        if self.here:
            self.value = float(u[0]) + 0.1
        return [self.here, False]

    def commit(self) -> bool:
        self.count += self.here
        return False

    def save(self) -> Any:
        return self.value, self.here, self.count

    def restore(self, state: Any) -> None:
        self.value, self.here, self.count = state


def test_events_pass_a_chain_in_one_instant(tmp_path: Any) -> None:
    models = {"beat": hk.Python(Beat, every=0.25)} | {f"r{k}": hk.Python(Relay) for k in range(1, 6)}
    wires = {"r1.x": "beat.beat"} | {f"r{k}.x": f"r{k - 1}.y" for k in range(2, 6)}
    run = both(hk.Composite(hk.Scenario(models, wires), "1/10 s"), tmp_path, stop=1)
    t, y = rows(run, "r5.y")
    there = ~np.isnan(y)
    assert list(t[there]) == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert y[there] == pytest.approx([number + 0.5 for number in range(5)])
    assert run.final("r5.count") == 5.0


def test_beats_of_different_periods_coincide(tmp_path: Any) -> None:
    models = {"one": hk.Python(Beat, every=0.1), "three": hk.Python(Beat, every=0.3)}
    run = both(hk.Composite(hk.Scenario(models, {}), "1/2 s"), tmp_path, stop=30)
    _, one = rows(run, "one.beat")
    _, three = rows(run, "three.beat")
    assert (~np.isnan(one)).sum() == 301
    assert (~np.isnan(three)).sum() == 101
    assert (~np.isnan(one) & ~np.isnan(three)).sum() == 101, "in the same instants"


class Endless(Beat):
    """Is due again and again at one time."""

    def commit(self) -> bool:
        return True


class Late(Beat):
    """Announces an event that is over, and never moves on."""

    def due(self) -> Any:
        return -0.25


class Lost(Beat):
    def due(self) -> Any:
        return float("nan")


class Once(Beat):
    """Announces one event and then, where it has happened, a time that is given."""

    def __init__(self, every: float, first: Any, then: Any):
        super().__init__(every)
        self.first, self.then, self.happened = first, then, False

    def due(self) -> Any:
        return self.then if self.happened else self.first

    def commit(self) -> bool:
        self.happened = True
        return False


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize(
    ("first", "then", "words"),
    [
        (Fraction(-1, 3), None, "t = -0.3333333333333333 s, which is over: t = 0.0 s is reached"),
        (-1e300, None, "which is over: t = 0.0 s is reached"),
        (0.25, 0.2, "t = 0.2 s, which is over: t = 0.25 s is reached"),
        (0.25, Fraction(1, 5), "t = 0.2 s, which is over: t = 0.25 s is reached"),
        (0.25, -Fraction(10**30), "which is over: t = 0.25 s is reached"),
        (0.25, 0.25 - 1e-9, "which is over: t = 0.25 s is reached"),
        (0.25, float("-inf"), "due() returned -inf"),
    ],
)
def test_negative_intervals_are_refused(
    first: Any, then: Any, words: str, nested: bool, engine: str, tmp_path: Any
) -> None:
    composite = hk.Composite(
        hk.Scenario({"a": hk.Python(Once, every=0.1, first=first, then=then)}, {}), "1/10 s"
    )
    if nested:
        composite = hk.Composite(hk.Scenario({"in": composite}), "1/5 s")
    with pytest.raises(hk.SimulatorError) as caught:
        hk.run(composite, stop=1, engine=engine, folder=tmp_path / "run")
    assert words in str(caught.value)
    assert "`in.a`" in str(caught.value) or not nested


@pytest.mark.parametrize("then", [0.25 - 1e-16, Fraction(1, 4), None, 1e300, Fraction(10**30), 0.25 - 1e-14])
def test_a_time_that_misses_by_its_rounding_is_not_refused(then: Any, tmp_path: Any) -> None:
    class Twice(Once):
        def commit(self) -> bool:
            self.then = None if self.happened else self.then
            return super().commit()

    model = hk.Python(Twice, every=0.1, first=0.25, then=then)
    run = both(hk.Composite(hk.Scenario({"a": model}, {}), "1/10 s"), tmp_path, stop=1)
    t, beat = rows(run, "a.beat")
    expected = 1 if then is None or then > 1 else 2
    assert list(t[beat == beat]) == [0.25] * expected


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("flags", ["x", 1, {"beat": True}, [None], [2], [float("nan")], [[True]]])
def test_what_react_returns_is_a_list_of_flags(flags: Any, engine: str, tmp_path: Any) -> None:
    class Odd(Beat):
        def react(self, t: float, n: int, u: Any, present: Sequence[bool]) -> Any:
            return flags

    composite = hk.Composite(hk.Scenario({"a": hk.Python(Odd, every=0.1)}, {}), "1/10 s")
    with pytest.raises(hk.SimulatorError, match=r"react\(\) returned .*, expected None, or a list of True"):
        hk.run(composite, stop=1, engine=engine, folder=tmp_path / "run")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("again", ["x", 2, float("nan"), [False], np.array([True, False])])
def test_what_commit_returns_is_a_flag(again: Any, engine: str, tmp_path: Any) -> None:
    class Odd(Beat):
        def commit(self) -> Any:
            return again

    composite = hk.Composite(hk.Scenario({"a": hk.Python(Odd, every=0.1)}, {}), "1/10 s")
    with pytest.raises(hk.SimulatorError, match=r"commit\(\) returned .*, expected True if another instant"):
        hk.run(composite, stop=1, engine=engine, folder=tmp_path / "run")


class Talkative(Beat):
    def react(self, t: float, n: int, u: Any, present: Sequence[bool]) -> list[bool]:
        return [True, True]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Endless, "1000 instants follow each other at t = 0.0 s, and `a` takes part in another"),
        (Late, "`a` announces an event at t = -0.25 s, which is over: t = 0.0 s is reached"),
        (Lost, "due() returned nan, expected a finite time in seconds, or None"),
        (Talkative, "react() returned 2 flags, expected 1, one per output"),
    ],
)
def test_wrong_events_are_named(model: type, words: str, engine: str, tmp_path: Any) -> None:
    composite = hk.Composite(hk.Scenario({"a": hk.Python(model, every=0.1)}, {}), "1/10 s")
    with pytest.raises(hk.SimulatorError) as caught:
        hk.run(composite, stop=1, engine=engine, folder=tmp_path / "run")
    assert words in str(caught.value)


def test_a_class_with_two_of_the_three_methods_is_refused() -> None:
    """Without commit() nothing would happen, and nobody would know."""

    class Half:
        inputs, outputs = (), ("y",)

        def start(self, t: float) -> None: ...

        def output(self, t: float) -> list[float]:
            return [0.0]

        def step(self, t: float, h: float, u: Any) -> None: ...

        def due(self) -> float:
            return 0.5

        def react(self, t: float, n: int, u: Any, present: Any) -> None: ...

    with pytest.raises(hk.ScenarioError, match="has `due` and `react`, and no `commit`"):
        hk.Python(Half)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("g", "action", "words"),
    [
        (lambda t, x, u: float("nan"), None, "the function of event 0, counted from 0, is nan at t = 0.0 s"),
        (lambda t, x, u: x[0], lambda t, x, u: [float("nan")], "the action of an event returned [nan]"),
    ],
)
def test_event_functions_that_are_not_numbers_are_named(
    g: Any, action: Any, words: str, engine: str, tmp_path: Any
) -> None:
    events = [Event(g, "both", action)]
    ode = hk.Ode(lambda t, x, u: [1.0], x0=[-0.5], outputs=["x"], events=events)
    with pytest.raises(hk.SimulatorError) as caught:
        hk.run(
            hk.Composite(hk.Scenario({"a": ode}), "1/10 s"), stop=1, engine=engine, folder=tmp_path / "run"
        )
    assert words in str(caught.value)


def test_events_and_values_do_not_mix() -> None:
    models = {"beat": hk.Python(Beat, every=0.1), "lag": lag(x0=0.0)}
    composite = hk.Composite(hk.Scenario(models, {"lag.u": "beat.beat"}), "1/10 s")
    with pytest.raises(hk.ScenarioError, match=r"`beat.beat` cannot drive `lag.u`: `beat` is an event"):
        plan_tree(composite)
    models = {"relay": hk.Python(Relay), "lag": lag(x0=0.0, inputs=("u = 0",))}
    composite = hk.Composite(hk.Scenario(models, {"relay.x": "lag.y"}), "1/10 s")
    with pytest.raises(hk.ScenarioError, match=r"`lag.y` cannot drive `relay.x`: `x` is an event"):
        plan_tree(composite)


EVENT, CLOCK = Port("e", event=True), Port("e", type="clock")


class Plain:
    """Has a port of events, and takes no part in instants."""

    inputs, outputs = (EVENT,), ("y",)

    def start(self, t: float) -> None: ...

    def output(self, t: float) -> list[float]:
        return [0.0]

    def step(self, t: float, h: float, u: Any) -> None: ...


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: hk.Python(Plain), "`a.e` is an event, and `a` takes no part in instants"),
        (
            lambda: hk.StateSpace([[0.0]], [[1.0]], [[1.0]], inputs=[EVENT], outputs=["y"]),
            "`e` is an event, and a `StateSpace` has values only",
        ),
        (
            lambda: hk.Ode(lambda t, x, u: [0.0], x0=[0.0], outputs=[CLOCK]),
            "`e` is a clock, and `Ode`",
        ),
        (lambda: hk.Function(lambda t: t, [EVENT]), "`e` is an event, and `Function`"),
        (lambda: hk.Table([0.0], [[1.0]], outputs=[EVENT]), "`e` is an event, and a table"),
        (lambda: hk.Table([0.0], {"e": [1]}, types={"e": "clock"}), "`e` is a clock, and a table"),
    ],
)
def test_events_of_what_takes_no_part_in_instants_are_refused(build: Any, words: str) -> None:
    """An absent event would be integrated as a value, and a clock would never tick."""
    beat = hk.Python(Beat, every=0.1)

    def plan() -> None:
        model = build()
        wires = {"a.e": "beat.beat"} if model.inputs else {}
        plan_tree(hk.Composite(hk.Scenario({"beat": beat, "a": model}, wires), "1/10 s"))

    with pytest.raises(hk.ScenarioError) as caught:
        plan()
    assert words in str(caught.value)


def test_a_value_does_not_tick_a_clock() -> None:
    class Ticked(Relay):
        inputs, feedthrough = (CLOCK,), {}

    models = {"beat": hk.Python(Beat, every=0.1), "a": hk.Python(Ticked)}
    with pytest.raises(hk.ScenarioError, match=r"`beat.beat` is a real, and a clock ticks without a value"):
        plan_tree(hk.Composite(hk.Scenario(models, {"a.e": "beat.beat"}), "1/10 s"))
    with pytest.raises(hk.ScenarioError, match=r"(?s)nothing ticks the clock `a.e`.*try: "):
        plan_tree(hk.Composite(hk.Scenario({"a": models["a"]}), "1/10 s"))


class Swap(Relay):
    inputs = (Port("x", start=0.0),)
    outputs = (Port("y"),)
    feedthrough: ClassVar = {"y": ["x"]}

    def output(self, t: float, u: Any) -> list[float]:
        return [-float(u[0, 0])]


def test_a_loop_through_a_discontinuity_is_refused() -> None:
    models = {"a": hk.Python(Swap), "b": hk.Python(Swap)}
    composite = hk.Composite(hk.Scenario(models, {"a.x": "b.y", "b.x": "a.y"}), "1/10 s")
    with pytest.raises(hk.ScenarioError, match=r"goes through `a`, `b`, which jumps"):
        plan_tree(composite)
    inner = hk.Composite(hk.Scenario({"m": hk.Python(Swap)}), "1/10 s")
    gain = hk.StateSpace([[-1.0]], [[0.0]], [[0.0]], D=[[0.5]], inputs=["x"], outputs=["y"])
    across = hk.Scenario({"a": inner, "g": gain}, {"a.m.x": "g.y", "g.x": "a.m.y"})
    with pytest.raises(hk.ScenarioError, match=r"a\.m\.y -> g\.y goes through `a`, which jumps"):
        plan_tree(hk.Composite(across, "1/10 s"))


# plans


def test_a_plan_tells_its_instants() -> None:
    scenario = hk.Scenario({"src": jumping_source(), "lag": lag()}, {"lag.u": "src.y"})
    plan = plan_tree(hk.Composite(scenario, "1/10 s")).plan
    tried = [each for _, each in walk(plan.step) if isinstance(each, Try)]
    assert [(each.found, each.announced) for each in tried] == [(False, True)]
    text = str(plan)
    assert "try to the next event that is announced:" in text
    assert "at an event, instant after instant, at most 1000:" in text
    assert "react lag, src" in text
    assert "commit src" in text


def test_without_events_there_are_no_instants() -> None:
    steady = hk.Table([0.0, 1.0], {"y": [0.0, 1.0]})
    scenario = hk.Scenario({"src": steady, "lag": lag()}, {"lag.u": "src.y"})
    plan = plan_tree(hk.Composite(scenario, "1/10 s")).plan
    assert not [each for _, each in walk(plan.step) if isinstance(each, (Try, Instant))]


class Fixed:
    inputs, outputs = ("u = 0",), ("y",)
    variable_step = False

    def start(self, t: float) -> None: ...

    def output(self, t: float) -> list[float]:
        return [0.0]

    def step(self, t: float, h: float, u: Any) -> None:
        assert h == 0.1


def test_events_beside_fixed_steps_are_late_and_noted(tmp_path: Any) -> None:
    models = {"src": jumping_source(), "lag": lag(3.0, 3.0, 0.0), "fixed": hk.Python(Fixed)}
    run = both(hk.Composite(hk.Scenario(models, {"lag.u": "src.y"}), "1/10 s"), tmp_path, stop=1)
    assert run.final("lag.y") == pytest.approx(1.0 - np.exp(-3.0 * 0.9), abs=1e-12)
    assert any(
        "late by at most 0.1 s: `fixed` accepts steps of one length only" in note
        for note in run.info["notes"]
    )


# what jumps because something else does


def following(**gains: float) -> hk.Scenario:
    """Return the source, two gains in a loop, a.y = u + 0.5 b.y and b.y = `b` a.y, and a lag behind them."""
    a = hk.StateSpace([[-1.0]], [[0.0, 0.0]], [[0.0]], D=[[1.0, 0.5]], inputs=["u", "b"], outputs=["y"])
    b = hk.StateSpace([[-1.0]], [[0.0]], [[0.0]], D=[[gains["b"]]], inputs=["a"], outputs=["y"])
    wires = {"a.u": "src.y", "a.b": "b.y", "b.a": "a.y", "lag.u": "a.y"}
    models = {"src": jumping_source(), "a": a, "b": b, "lag": lag(3.0, 3.0, 0.0)}
    if not gains["b"]:
        del wires["b.a"], wires["a.b"], models["b"]
        models["a"] = hk.StateSpace([[-1.0]], [[0.0]], [[0.0]], D=[[1.0]], inputs=["u"], outputs=["y"])
    return hk.Scenario(models, wires)


@pytest.mark.parametrize("how", ["hold", "linear", "quadratic"])
@pytest.mark.parametrize(("b", "gain"), [(0.0, 1.0), (0.5, 4.0 / 3.0)], ids=["alone", "in a loop"])
@pytest.mark.parametrize("algorithm", ["jacobi", "gauss-seidel"])
def test_what_follows_a_jump_jumps_and_forgets_too(
    algorithm: str, b: float, gain: float, how: str, tmp_path: Any
) -> None:
    """A gain has no events of its own; a line through its value before the jump would be wrong by 0.1."""
    scenario = following(b=b)
    order = [name for name in ("src", "a", "b", "lag") if name in scenario.models]
    composite = hk.Composite(scenario, "1/10 s", ALGORITHMS[algorithm](*order), extrapolation=how)
    run = both(composite, tmp_path, stop=1)
    assert run.final("lag.y") == pytest.approx(gain * (1.0 - np.exp(-3.0 * (1.0 - JUMP))), abs=1e-12)
    t, y = rows(run, "a.y")
    assert list(y[t == JUMP]) == pytest.approx([0.0, gain], abs=1e-12)


def test_events_in_a_sampled_level_are_refused_where_nobody_meets_them() -> None:
    inner = hk.Scenario({"beat": hk.Python(Beat, every=0.1)}, {})
    composite = hk.Composite(hk.Scenario({"a": hk.Composite(inner, "1/2 s", sampled=True)}, {}), "1/2 s")
    with pytest.raises(hk.ScenarioError, match=r"`a.beat` announces events, and `a` is sampled"):
        plan_tree(composite)


@pytest.mark.parametrize("how", ["hold", "linear"])
def test_a_jump_whose_time_is_off_by_a_rounding(how: Any, tmp_path: Any) -> None:
    """0.1 + 0.2 is not 0.3, and means it; the lag is exact from there on."""
    late = 0.1 + 0.2
    source = hk.Table([0.0, late, late, 10.0], {"y": [0.0, 0.0, 1.0, 1.0]}, how)
    scenario = hk.Scenario({"src": source, "lag": lag(3.0, 3.0, 0.0)}, {"lag.u": "src.y"})
    run = both(hk.Composite(scenario, "1/10 s"), tmp_path, stop=1)
    t, y = rows(run, "src.y")
    assert list(y[t == 0.3]) == [0.0, 1.0]
    assert run.final("lag.y") == pytest.approx(1.0 - np.exp(-3.0 * 0.7), abs=1e-12)


@pytest.mark.parametrize("inner", ["1/120 s", "1/60 s", "1/30 s"])
@pytest.mark.parametrize("algorithm", ["jacobi", "gauss-seidel", "gauss-seidel backwards", "iterate"])
@pytest.mark.parametrize("how", ["hold", "linear"])
def test_a_jump_at_the_end_of_a_step_whose_float_is_earlier(
    how: str, algorithm: str, inner: str, tmp_path: Any
) -> None:
    """11/120 + 1/120 is not 0.1 as floats: before the jump there is the value before it nevertheless."""
    source = hk.Table([0.0, 0.1, 0.1, 0.3, 0.3, 0.5, 0.5, 1.0], {"y": [1, 1, 2, 2, -1, -1, 3, 3]})
    level = hk.Composite(hk.Scenario({"src": source}), inner)
    scenario = hk.Scenario({"in": level, "x": lag(0.0, 1.0, 0.0)}, {"x.u": "in.src.y"})
    composite = hk.Composite(scenario, "1/10 s", ALGORITHMS[algorithm]("in", "x"), extrapolation=how)
    run = both(composite, tmp_path, stop=1)
    assert run.final("x.y") == pytest.approx(0.1 * 1 + 0.2 * 2 - 0.2 * 1 + 0.5 * 3, abs=1e-12)
    t, y = rows(run, "in.src.y")
    assert list(y[t == 0.1]) == [1.0, 2.0]


def test_a_table_in_a_sampled_level_is_seen_at_the_samples(tmp_path: Any) -> None:
    inner = hk.Scenario({"src": jumping_source()}, {"y": "src.y"}, outputs=["y"])
    composite = hk.Composite(hk.Scenario({"a": hk.Composite(inner, "1/2 s", sampled=True)}, {}), "1/2 s")
    run = both(composite, tmp_path, stop=2)
    assert list(run["a.src.y"].values) == [0.0, 1.0, 1.0, 1.0, 1.0]
