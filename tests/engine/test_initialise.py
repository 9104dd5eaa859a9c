"""The start window: who is stepped in it and how often, and what past it tells."""

import numpy as np
import pytest

import hocket as hk
from hocket.engine.initialise import initialise
from hocket.engine.opening import open_level
from hocket.engine.start_window import _leaf_inputs
from hocket.planning.clocks import clock_of
from hocket.planning.planner import plan_tree
from systems import ENGINES, LAG, lag


class Counted:
    """x' = -x + u by Euler; counts the steps it is asked for."""

    outputs = ("y",)
    made: dict[str, int] = {}  # noqa: RUF012

    def __init__(self, name, x0):
        self.name, self.x0 = name, x0

    def start(self, t):
        self.x = self.x0
        self.made[self.name] = 0

    def output(self, t):
        return [self.x]

    def step(self, t, h, u):
        self.made[self.name] += 1
        self.x += h * (float(u[0].sum()) - self.x)

    def save(self):
        return self.x

    def restore(self, state):
        self.x = state


def counted(name, x0, *inputs):
    return hk.Python(Counted, inputs=inputs, outputs=("y",), name=name, x0=x0)


def test_who_sees_nothing_new_is_not_stepped_again():
    """A source makes 3 steps for a parabola, each behind it 3 more, a ring 3 in each sweep."""
    models = {
        "source": counted("source", 1.0),
        "first": counted("first", 2.0, "u"),
        "second": counted("second", 4.0, "u"),
        "a": counted("a", 1.0, "u"),
        "b": counted("b", 3.0, "u"),
    }
    wires = {"first.u": "source.y", "second.u": "first.y", "a.u": "b.y", "b.u": "a.y"}
    composite = hk.Composite(hk.Scenario(models, wires), "0.1 s", hk.Jacobi(), hk.Polynomial(2))
    run = hk.run(composite, "0.1 s")
    window = {name: made - 1 for name, made in Counted.made.items()}  # one is the step of the run itself
    assert window["source"] == 3  # two for the parabola, one that tells whether to trust it
    assert window["first"] == 2 * 3
    assert window["second"] == 3 * 3
    assert window["a"] == window["b"] == 3 * 3  # a sweep of a ring settles one more step of Euler
    assert np.isclose(run["source.y"].values[-1], 0.9)


class Implicit(Counted):
    """x grows by h times its input at the end of the step."""

    def step(self, t, h, u):
        self.made[self.name] += 1
        self.x += h * sum(float(row[0]) * h**power for power, row in enumerate(u))


def test_sweeps_of_the_window_end_when_nothing_moves_by_more_than_1e_14():
    """Each sweep of this ring moves its values by h = 0.1 of what the one before did: 0.015, 0.0015, ...

    The thirteenth moves them by 1.5e-14, the fourteenth is the first below 1e-14. Each makes two steps.
    """
    models = {
        name: hk.Python(Implicit, inputs=("u",), outputs=("y",), name=name, x0=0.15) for name in ("a", "b")
    }
    wires = {"a.u": "b.y", "b.u": "a.y"}
    hk.run(hk.Composite(hk.Scenario(models, wires), "0.1 s", hk.Jacobi(), "linear"), "0.1 s")
    assert {name: Counted.made[name] - 1 for name in models} == {"a": 2 * 14, "b": 2 * 14}


def past(*values):
    """Return how many samples the start stores of a source with these values at 0, 1 and 2 s."""
    source = hk.Function(lambda t: [float(np.interp(t, [0.0, 1.0, 2.0], values))], ["y"])
    models = {"source": source, "lag": LAG}
    composite = hk.Composite(hk.Scenario(models, {"lag.u": "source.y"}), "1 s", hk.Jacobi(), "linear")
    design = plan_tree(composite)
    level = open_level(design, clock_of(design))
    initialise(level, 0.0)
    return [value for _, value, _ in level.memory.rings[0][0]]


@pytest.mark.parametrize("scale", [1.0, -3.0, 1e-9])
def test_a_past_is_told_where_the_next_sample_is_near_the_curve(scale):
    """A line through 0 and 5 leads to 10. 8 misses that by a quarter of the range: just near enough."""
    assert past(0.0, 5.0 * scale, 8.0 * scale) == pytest.approx([-5.0 * scale, 0.0], abs=1e-20)
    assert past(0.0, 5.0 * scale, 7.99 * scale) == [0.0]
    assert past(0.0, 5.0 * scale, 13.33 * scale) == pytest.approx([-5.0 * scale, 0.0], abs=1e-20)
    assert past(0.0, 5.0 * scale, 13.34 * scale) == [0.0]


def test_rounding_is_no_reason_to_doubt_a_constant():
    """The last digits of a million, which are 1e-10, may move by 1e-12 of it."""
    assert past(1e6, 1e6, 1e6 + 9e-7) == [1e6, 1e6]
    assert past(1e6, 1e6, 1e6 + 2e-6) == [1e6]
    assert past(-1e6, -1e6, -1e6 - 9e-7) == [-1e6, -1e6]


@pytest.mark.parametrize("names", [("z", "a"), ("a", "z")])
def test_an_input_has_its_start_value_until_what_drives_it_was_read(names):
    """Of two that react to nothing, `a` is read first, whichever stands first in the scenario."""
    seen = []

    class Constant:
        outputs = ("y",)

        def start(self, t):
            pass

        def output(self, t):
            return [3.0]

        def step(self, t, h, u):
            pass

    class Listener:
        inputs = ("u = 5",)
        outputs = ("y",)
        feedthrough = {}  # noqa: RUF012

        def start(self, t):
            seen.clear()

        def output(self, t, u):
            seen.append(float(u[0][0]))
            return [1.0]

        def step(self, t, h, u):
            pass

    source, target = names
    models = {source: hk.Python(Constant), target: hk.Python(Listener)}
    hk.run(hk.Composite(hk.Scenario(models, {f"{target}.u": f"{source}.y"}), "0.1 s"), "0.1 s")
    assert seen[0] == (5.0 if target == "a" else 3.0)
    assert seen[-1] == 3.0


def test_only_what_is_initialised_once_is_noted_as_such():
    """Two lags in a cycle: each saw other inputs at first, and was then evaluated with the right ones."""
    models = {"a": lag(1.0, 2.0, 1.0), "b": lag(3.0, 1.5, -1.0)}
    run = hk.run(hk.Composite(hk.Scenario(models, {"a.u": "b.y", "b.u": "a.y"}), "0.1 s"), stop=0.1)
    assert not [note for note in run.info["notes"] if "initialised" in note]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("how", ["linear", "quadratic", "cubic"])
@pytest.mark.parametrize("through", [0, 1, 2])
def test_nothing_moves_before_a_jump_that_the_window_sees(through, how, engine):
    """The source jumps at the end of the first step, unannounced: lags behind gains stay where they are."""
    models = {"src": hk.Function(lambda t: 1.0 if t >= 0.1 else 0.0, outputs=["y"])}
    wires, before = {}, "src.y"
    for name in [f"gain{k}" for k in range(through)]:
        models[name] = hk.StateSpace(D=[[1.0]], inputs=["u"], outputs=["y"])
        wires[f"{name}.u"], before = before, f"{name}.y"
    models["lag"], wires["lag.u"] = lag(3.0, 3.0, 0.0), before
    composite = hk.Composite(hk.Scenario(models, wires), "0.1 s", extrapolation=how)
    run = hk.run(composite, stop=0.2, engine=engine)
    assert run["lag.y"].values[:2].tolist() == [0.0, 0.0]
    assert run["lag.y"].values[2] > 0.25


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("gain", "offset"), [(2.0, 1.0), (2.0, 0.0), (1.0, 1.0), (1.0, 0.0)])
def test_the_past_of_a_level_has_the_gain_of_its_output(gain, offset, engine):
    """x = t inside, u = a x + b outside, into z' = u - z: z = a t + (b - a) (1 - exp(-t))."""
    ramp = hk.StateSpace([[0.0, 1.0], [0.0, 0.0]], C=[[1.0, 0.0]], x0=[0.0, 1.0], outputs=["x"])
    out = hk.Connection("ramp.x", "y", gain=gain, offset=offset)
    inner = hk.Composite(hk.Scenario({"ramp": ramp}, [out], outputs=["y"]), "0.1 s")
    outer = hk.Scenario({"in": inner, "lag": lag(1.0, 1.0, 0.0)}, {"lag.u": "in.y"})
    run = hk.run(hk.Composite(outer, "0.1 s", extrapolation="linear"), stop=1, engine=engine)
    t = np.asarray(run["lag.y"].t)
    exact = gain * t + (offset - gain) * (1.0 - np.exp(-t))
    assert run["lag.y"].values == pytest.approx(exact, abs=1e-12)


def test_the_window_is_fed_by_inputs_of_the_whole_constants_and_curves():
    """u = 3 * 4 + 1 from outside, v = 2 (5 + 6 s) - 1 from a curve, w = 7 by itself."""
    ports = [hk.Port("u"), hk.Port("v"), hk.Port("w", start=7.0)]
    model = hk.StateSpace([[-1.0]], [[1.0, 1.0, 1.0]], [[1.0]], x0=[0.0], inputs=ports, outputs=["y"])
    wires = [
        hk.Connection("outside", "a.u", gain=3.0, offset=1.0),
        hk.Connection("b.y", "a.v", gain=2.0, offset=-1.0),
    ]
    free = hk.StateSpace([[-1.0]], C=[[1.0]], x0=[1.0], outputs=["y"])
    scenario = hk.Scenario({"a": model, "b": free}, wires, inputs=[hk.Port("outside", start=4.0)])
    leaves = plan_tree(hk.Composite(scenario, "0.1 s")).leaves
    a, b = leaves.wiring.names.index("a"), leaves.wiring.names.index("b")
    curves = [[[0.0]], [[0.0]]]
    curves[b] = [[5.0, 6.0]]
    assert _leaf_inputs(leaves, a, curves, 1, (4.0,)).tolist() == [[13.0, 9.0, 7.0], [0.0, 12.0, 0.0]]
