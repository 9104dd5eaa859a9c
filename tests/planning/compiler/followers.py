"""A black box that reacts at once, for loops that cannot be rewound."""

import hocket as hk


class Follower:
    """Halves what it gets, at once; cannot roll back."""

    inputs = ("u",)
    outputs = (hk.Port("y", feedthrough=("u",)),)

    def start(self, t):
        pass

    def output(self, t, u):
        return [0.5 * u[0, 0]]

    def step(self, t, h, u):
        return t + h
