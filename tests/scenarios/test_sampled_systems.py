"""Sampled systems: samples at offset + k period are exact, outputs change after a delay, jitter repeats."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import hocket as hk
from scenarios.hybrid import both_engines, final_values, rows, values_at
from systems import ENGINES


class Proportional:
    """u = -k x: direct feedthrough, so what follows from a sample is known at once."""

    inputs: ClassVar = ["x"]
    outputs: ClassVar = ["u"]

    def __init__(self, k: float = 1.0):
        self.k = k

    def start(self, t: float) -> None: ...

    def output(self, t: float, u: Any) -> list[float]:
        return [-self.k * u[0, 0]]

    def step(self, t: float, h: float, u: Any) -> None: ...

    def save(self) -> None: ...

    def restore(self, state: None) -> None: ...


class Computed(Proportional):
    """The same, computed in a step: no direct feedthrough."""

    def start(self, t: float) -> None:
        self.u = 0.0

    def output(self, t: float) -> list[float]:  # type: ignore[override]
        return [self.u]

    def step(self, t: float, h: float, u: Any) -> None:
        self.u = -self.k * u[0, 0]

    def save(self) -> Any:
        return self.u

    def restore(self, state: Any) -> None:
        self.u = state


class Counter:
    """Counts its samples, and keeps their times."""

    inputs: ClassVar = ["x = 0"]
    outputs: ClassVar = ["count", "last"]
    feedthrough: ClassVar[dict[str, list[str]]] = {}

    def start(self, t: float) -> None:
        self.count, self.last = 0, -1.0

    def output(self, t: float) -> list[float]:
        return [float(self.count), self.last]

    def step(self, t: float, h: float, u: Any) -> None:
        self.count, self.last = self.count + 1, t

    def save(self) -> Any:
        return self.count, self.last

    def restore(self, state: Any) -> None:
        self.count, self.last = state


class Follower(Computed):
    """Adds one to what it sees."""

    inputs: ClassVar = ["x = 0"]
    outputs: ClassVar = ["u"]

    def step(self, t: float, h: float, u: Any) -> None:
        self.u = u[0, 0] + 1.0


def integrator(x0: float = 1.0) -> hk.StateSpace:
    return hk.StateSpace([[0.0]], [[1.0]], [[1.0]], x0=[x0], inputs=["u"], outputs=["x"])


def loop(controller: hk.Python, step: str = "1/2 s", algorithm: Any = "jacobi") -> hk.Composite:
    wires = {"plant.u": "c.u", "c.x": "plant.x"}
    return hk.Composite(hk.Scenario({"plant": integrator(), "c": controller}, wires), step, algorithm)


def sampled_loop(
    k: Fraction, delay: Fraction, samples: int, initial: Fraction = Fraction(0)
) -> list[Fraction]:
    """Return x at the samples: x' = u, u = -k x(t_k) from t_k + delay on; period 1, delay at most 1."""
    x, u = [Fraction(1)], initial
    for _ in range(samples):
        command = -k * x[-1]
        x.append(x[-1] + delay * u + (1 - delay) * command)
        u = command
    return x


ALGORITHMS = {
    "jacobi": hk.Jacobi(),
    "gauss-seidel": hk.GaussSeidel(["plant", "c"]),
    "gauss-seidel backwards": hk.GaussSeidel(["c", "plant"]),
    "iterate": hk.Iterate(tolerance=1e-12),
    "multirate": hk.Multirate({"plant": 3}),
    "asynchronous": hk.Asynchronous({"plant": 3}),
    "adaptive": hk.Adaptive(tolerance=0.05),
}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("controller", [Proportional, Computed])
@pytest.mark.parametrize("delay", ["0", "1/4", "1/2", "3/4", "1"])
def test_a_sampled_loop_with_delay_is_exact(
    delay: str, controller: type, algorithm: str, tmp_path: Path
) -> None:
    model = hk.Python(controller, period=1, delay=f"{delay} s", k=0.75)
    run = both_engines(loop(model, algorithm=ALGORITHMS[algorithm]), tmp_path, stop=8)
    expected = sampled_loop(Fraction(3, 4), Fraction(delay), 8)
    assert final_values(run, "plant.x", range(9)) == pytest.approx([float(x) for x in expected], abs=1e-13)


@pytest.mark.parametrize(
    ("delay", "limit"), [("0", 2.0), ("1/4", 4.0), ("1/2", 2.0), ("3/4", 4.0 / 3.0), ("1", 1.0)]
)
def test_the_largest_stable_gain_of_a_delayed_loop(delay: str, limit: float, tmp_path: Path) -> None:
    """The limits of K h are the gains at which a root of the loop lies on the unit circle."""
    ends = []
    for factor in (0.97, 1.03):
        model = hk.Python(Proportional, period=1, delay=f"{delay} s", k=factor * limit)
        run = hk.run(loop(model), stop=400, folder=tmp_path / str(factor))
        ends.append(np.abs(rows(run, "plant.x")[1][-40:]).max())
    assert ends[0] < 0.02
    assert ends[1] > 50.0


def test_samples_begin_at_their_offset(tmp_path: Path) -> None:
    model = hk.Python(Computed, period=1, offset="0.3 s", delay=0, k=0.5)
    run = both_engines(loop(model), tmp_path, stop=3)
    assert final_values(run, "c.u", [0.3, 1.3, 2.3]) == [-0.5, -0.25, -0.125]
    assert values_at(run, "c.u", 0.0) == [0.0], "nothing is sampled before"
    assert rows(run, "plant.x")[1][-1] == pytest.approx(0.25 - 0.125 * 0.7, abs=1e-15)


@pytest.mark.parametrize("controller", [Proportional, Computed])
def test_an_offset_of_zero_is_the_period_alone(controller: type, tmp_path: Path) -> None:
    """Without a delay outputs change when they do with the period alone."""
    runs = [
        hk.run(
            loop(hk.Python(controller, period=1, k=0.75, **more)), stop=6, folder=tmp_path / str(len(more))
        )
        for more in ({}, {"offset": 0})
    ]
    one, other = (final_values(run, "plant.x", range(7)) for run in runs)
    assert one == pytest.approx(other, abs=1e-14)
    late = Fraction(0) if controller is Proportional else Fraction(1)
    exact = sampled_loop(Fraction(3, 4), late, 6)
    assert other == pytest.approx([float(x) for x in exact], abs=1e-14)


def test_a_delay_may_be_longer_than_the_period(tmp_path: Path) -> None:
    """What follows from the sample at k is seen from k + 2.5 on."""
    ramp = hk.Table([0.0, 100.0], {"y": [0.0, 100.0]})
    models = {"ramp": ramp, "c": hk.Python(Computed, period=1, delay="2.5 s", k=-1.0)}
    run = both_engines(hk.Composite(hk.Scenario(models, {"c.x": "ramp.y"}), "1/4 s"), tmp_path, stop=9)
    for k in range(7):
        assert values_at(run, "c.u", k + 2.5) == [max(k - 1.0, 0.0), float(k)]


def test_two_that_drive_each_other_are_a_period_apart(tmp_path: Path) -> None:
    for order in (("a", "b"), ("b", "a")):
        models = {name: hk.Python(Follower, period=1, delay=0) for name in order}
        composite = hk.Composite(hk.Scenario(models, {"a.x": "b.u", "b.x": "a.u"}), "1/2 s")
        run = both_engines(composite, tmp_path / order[0], stop=5)
        for name in ("a", "b"):
            assert final_values(run, f"{name}.u", range(6)) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_two_with_delays_of_a_period_meet(tmp_path: Path) -> None:
    """What changes at the time of a sample is seen by it: each is one period late, not two."""
    models = {name: hk.Python(Follower, period=1, delay=1) for name in ("a", "b")}
    composite = hk.Composite(hk.Scenario(models, {"a.x": "b.u", "b.x": "a.u"}), "1/2 s")
    run = both_engines(composite, tmp_path, stop=5)
    assert final_values(run, "a.u", range(6)) == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_a_sample_at_the_time_of_a_jump_sees_the_value_after_it(tmp_path: Path) -> None:
    jump = hk.Table([0.0, 2.0], {"y": [0.0, 7.0]}, interpolation="hold")
    for more in ({}, {"offset": 0}):
        models = {"jump": jump, "c": hk.Python(Proportional, period=1, k=-1.0, **more)}
        composite = hk.Composite(hk.Scenario(models, {"c.x": "jump.y"}), "1/2 s")
        run = both_engines(composite, tmp_path / str(len(more)), stop=3)
        assert final_values(run, "c.u", [1.0, 2.0, 3.0]) == [0.0, 7.0, 7.0]


@pytest.mark.parametrize("step", ["1/10 s", "1 s", "2/5 s"])
@pytest.mark.parametrize(
    ("periods", "stop", "counts", "together"),
    [(("1/3", "1/2"), 10, (31, 21), 11), (("1/10", "3/10"), 30, (301, 101), 101)],
)
def test_rates_that_meet(
    periods: tuple[str, str], stop: int, counts: tuple[int, int], together: int, step: str, tmp_path: Path
) -> None:
    models = {
        name: hk.Python(Counter, period=f"{period} s", delay=0)
        for name, period in zip("ab", periods, strict=True)
    }
    run = both_engines(hk.Composite(hk.Scenario(models, {}), step), tmp_path, stop=stop)
    times = [np.unique(rows(run, f"{name}.last")[1]) for name in "ab"]
    times = [each[each >= 0.0] for each in times]
    assert tuple(len(each) for each in times) == counts
    assert len(np.intersect1d(*times)) == together
    for each, period in zip(times, periods, strict=True):
        assert each.tolist() == [float(k * Fraction(period)) for k in range(len(each))]


def test_a_rate_transition_is_exact(tmp_path: Path) -> None:
    """A slow model sees what a fast one showed before their common time."""
    models = {
        "fast": hk.Python(Counter, period="0.1 s", delay=0),
        "slow": hk.Python(Computed, period="0.3 s", delay=0, k=-1.0),
    }
    run = both_engines(hk.Composite(hk.Scenario(models, {"slow.x": "fast.count"}), "1 s"), tmp_path, stop=3)
    seen = final_values(run, "slow.u", [float(k * Fraction(3, 10)) for k in range(11)])
    assert seen == [float(3 * k) for k in range(11)]


# jitter


def sample_times(tmp_path: Path, **options: Any) -> list[float]:
    model = hk.Python(Counter, period="0.1 s", delay=0, **options)
    run = both_engines(hk.Composite(hk.Scenario({"c": model}, {}), "1/4 s"), tmp_path, stop=20)
    t, count = rows(run, "c.count")
    return [float(each) for each in t[1:][np.diff(count) == 1.0]]


def test_uniform_jitter_is_late_by_up_to_its_width(tmp_path: Path) -> None:
    times = sample_times(tmp_path, jitter={"uniform": "20 ms"}, seed=7)
    late = np.array([t - 0.1 * k for k, t in enumerate(times)])
    assert len(late) in (200, 201)
    assert 0.0 <= late.min() < 0.001
    assert 0.019 < late.max() <= 0.02 + 1e-12
    assert late.mean() == pytest.approx(0.01, abs=3 * 0.02 / np.sqrt(12 * 200))


def test_normal_jitter_is_early_or_late(tmp_path: Path) -> None:
    times = sample_times(tmp_path, jitter={"normal": "10 ms"}, seed=1, offset="50 ms")
    late = np.array([t - 0.05 - 0.1 * k for k, t in enumerate(times)])
    assert late.mean() == pytest.approx(0.0, abs=3 * 0.01 / np.sqrt(200))
    assert late.std() == pytest.approx(0.01, rel=0.15)
    assert abs(late).max() < 0.05


def test_wide_normal_jitter_keeps_the_order(tmp_path: Path) -> None:
    times = sample_times(tmp_path, jitter={"normal": "90 ms"}, offset="50 ms")
    assert (np.diff(times) > 0.0).all()
    assert len(times) in (199, 200, 201)


def test_a_seed_says_it_all(tmp_path: Path) -> None:
    options: dict[str, Any] = {"jitter": {"uniform": "20 ms"}}
    one, again, other = (
        sample_times(tmp_path / name, **options, seed=seed) for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert one == again
    assert one != other


def test_jitter_survives_rollback(tmp_path: Path) -> None:
    """A ball that bounces rolls all back, the sampled model too."""

    def bounce(t: float, x: Any, u: Any) -> list[float]:
        return [0.0, -0.7 * x[1]]

    ball = hk.Ode(
        lambda t, x, u: [x[1], -9.81],
        x0=[1.0, 0.0],
        outputs=["h", "v"],
        events=[hk.Event(lambda t, x, u: x[0], "falling", bounce)],
    )
    times = []
    for models in ({"ball": ball}, {}):
        counter = hk.Python(Counter, period="0.1 s", delay="30 ms", jitter={"uniform": "40 ms"})
        composite = hk.Composite(hk.Scenario({"c": counter, **models}, {}), "1/4 s")
        run = both_engines(composite, tmp_path / str(len(models)), stop=2)
        t, count = rows(run, "c.count")
        times.append([float(each) for each in t[1:][np.diff(count) == 1.0]])
    assert times[0] == pytest.approx(times[1], abs=1e-12)
    assert len(times[0]) == 20


def test_a_sampled_model_inside_a_level(tmp_path: Path) -> None:
    inner = hk.Composite(
        hk.Scenario(
            {"c": hk.Python(Proportional, period=1, delay="1/4 s", k=0.75)},
            {"c.x": "x", "u": "c.u"},
            inputs=["x"],
            outputs=["u"],
        ),
        "1/4 s",
    )
    wires = {"plant.u": "in.u", "in.x": "plant.x"}
    composite = hk.Composite(hk.Scenario({"plant": integrator(), "in": inner}, wires), "1/2 s")
    run = both_engines(composite, tmp_path, stop=8)
    expected = sampled_loop(Fraction(3, 4), Fraction(1, 4), 8)
    assert final_values(run, "plant.x", range(9)) == pytest.approx([float(x) for x in expected], abs=1e-13)


def test_a_sampled_model_without_rollback(tmp_path: Path) -> None:
    class Once:
        inputs, outputs, start, step = Computed.inputs, Computed.outputs, Computed.start, Computed.step

        def __init__(self, k: float):
            self.k = k

        def output(self, t: float) -> list[float]:
            return [self.u]  # type: ignore[attr-defined]

    model = hk.Python(Once, period=1, delay="1/4 s", k=0.75)
    assert not model.capabilities.rollback
    run = both_engines(loop(model), tmp_path, stop=8)
    expected = sampled_loop(Fraction(3, 4), Fraction(1, 4), 8)
    assert final_values(run, "plant.x", range(9)) == pytest.approx([float(x) for x in expected], abs=1e-13)


# what is refused


class Named(Proportional):
    def __init__(self, delay: float = 0.0, seed: int = 0):
        super().__init__()
        self.delay, self.seed = delay, seed


def test_without_a_period_the_words_are_parameters() -> None:
    assert hk.Python(Named, delay=0.5, seed=3).parameters == {"delay": 0.5, "seed": 3}
    sampled = hk.Python(Named, period=1, seed=3)
    assert sampled.parameters == {"seed": 3}
    assert sampled.sampling is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"period": 1, "delay": -1}, "`delay` is -1"),
        ({"period": 1, "offset": "-1 ms"}, "`offset` is -1 ms"),
        ({"period": 1, "offset": "soon"}, "`soon` is not a duration"),
        ({"period": 0, "offset": 1}, "`period` is 0"),
        ({"period": 1, "jitter": "1 ms"}, "`jitter` cannot be '1 ms'"),
        ({"period": 1, "jitter": {"even": 1}}, "`jitter` cannot be"),
        ({"period": 1, "jitter": {"uniform": 0}}, "`jitter` is 0"),
        ({"period": 1, "jitter": {"uniform": 2}}, "the jitter 2 s is not below the period 1 s"),
        ({"period": 1, "jitter": {"uniform": 0.5}, "seed": -1}, "`seed` cannot be -1"),
        ({"offset": 1}, "`Proportional` has no parameter `offset`"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(hk.ScenarioError) as caught:
        hk.Python(Proportional, **options)
    assert words in str(caught.value)


def test_a_parameter_of_the_same_name_is_refused() -> None:
    with pytest.raises(hk.ScenarioError, match="`delay` is a parameter of `Named`, and of its sampling"):
        hk.Python(Named, period=1, delay=0.5)


def test_events_and_samples_do_not_mix() -> None:
    class Due(Counter):
        def due(self) -> None: ...

        def react(self, t: float, n: int, u: Any, present: Any) -> None: ...

        def commit(self) -> bool:
            return False

    with pytest.raises(hk.ScenarioError, match="has events of its own cannot be sampled"):
        hk.Python(Due, period=1, delay=0)

    class Emits(Counter):
        outputs: ClassVar = [hk.Port("count", event=True), "last"]

    with pytest.raises(hk.ScenarioError, match="`count` is an event, and a sampled model has held values"):
        hk.Python(Emits, period=1, delay=0)


@pytest.mark.parametrize("engine", ENGINES)
def test_beside_fixed_steps_samples_are_late_and_noted(engine: str, tmp_path: Path) -> None:
    class Fixed(Counter):
        variable_step = False

    models = {"c": hk.Python(Counter, period="0.15 s", delay=0), "fixed": hk.Python(Fixed)}
    composite = hk.Composite(hk.Scenario(models, {}), "1/10 s")
    run = hk.run(composite, stop=0.6, engine=engine, folder=tmp_path / "run")
    assert any("late by at most 0.1 s" in note for note in run.info["notes"])
    assert run.final("c.count") == 5.0


class _Constant:
    inputs, outputs = (), ("y",)

    def start(self, t): ...

    def output(self, t, u):
        return [1.0]

    def step(self, t, h, u): ...


@pytest.mark.parametrize("engine", ["interpreter", "native"])
@pytest.mark.parametrize("how", [{}, {"delay": 0}])
def test_periods_without_a_common_tick_are_refused(engine, how):
    """A tick of 1/(p q) s has 64 bits and more; with `how` empty each is a level with that step."""
    p, q = Fraction(1, 2**32 - 5), Fraction(1, 2**32 - 17)
    models = {name: hk.Python(_Constant, period=each, **how) for name, each in (("a", p), ("b", q))}
    message = (
        r"the period of `a` \(1/4294967291 s\) and the period of `b` \(1/4294967279 s\) have no common tick "
        "in 64 bits"
    )
    with pytest.raises(hk.ScenarioError, match=message):
        hk.run(hk.Composite(hk.Scenario(models), 1), stop=1, engine=engine)
