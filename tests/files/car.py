"""A file with two masses in two levels, and a module of Python that files name."""

CAR = """\
# two masses, coupled by force and displacement
step = "10 ms"
orchestrator = { type = "gauss-seidel", order = ["left", "right"], outputs = "stale" }
extrapolation = "linear"
record = ["*.x"]

[run]
stop = "10 s"
every = "micro"

[models.left]
type = "state-space"
A = [[0, 1], [-0.2, -0.3]]
B = [[0, 0], [1, 1]]
C = [[1, 0]]
inputs = ["x [m]", "v [m/s]"]
outputs = ["force [N]"]

[models.right]
type = "composite"
step = "2.5 ms"
start = "cold"

[models.right.models.mass]
type = "state-space"
A = [[0, 1], [-1, 0]]
B = [[0], [1]]
C = [[1, 0], [0, 1]]
x0 = [1, 0]
inputs = [{ name = "force", unit = "N", start = 0 }]
outputs = ["x [m]", "v [m/s]"]

[connections]
right.mass.force = "left.force"
left.x = { from = "right.mass.x", extrapolation = "quadratic" }
"left.v" = { from = "right.mass.v", extrapolation = { type = "nepce", alpha = 0.6 } }
"""

PLANT = """\
class Tank:
    inputs = ["q [l/s]"]
    outputs = ["h [m]"]

    def __init__(self, area=1.0, names=()):
        self.area = area

    def start(self, t):
        self.h = 0.0

    def output(self, t):
        return [self.h]

    def step(self, t, h, u):
        self.h += h * u[0][0] / self.area


def rate(t, x, u, k=1.0):
    return -k * x + u


def out(t, x, u, k=1.0):
    return x


def ramp(t):
    return t
"""
