"""The start window: a simulator is stepped again only where its inputs have changed."""

import numpy as np

import hocket as hk


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
