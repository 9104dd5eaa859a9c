"""Random scenarios: levels in levels, all kinds of simulators, extrapolators and orchestrators.

`draw(rng)` returns a composite with everything it takes to run it. Inputs are weak and runs are short, so
numbers stay finite whatever the coupling does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from hocket import (
    Composite,
    Connection,
    Function,
    GaussSeidel,
    Hermite,
    Hold,
    Iterate,
    Jacobi,
    Nepce,
    Ode,
    Polynomial,
    Port,
    Python,
    Scenario,
    StateSpace,
)
from hocket.coupling.feedthrough import Feedthrough
from hocket.coupling.level_ports import with_level_ports
from hocket.coupling.wiring import wire
from hocket.orchestrators.adaptive import Adaptive
from hocket.orchestrators.asynchronous import Asynchronous
from hocket.orchestrators.multirate import Multirate
from native.random_bonds import bonds_of

METHODS = ("exact", "euler", "implicit-euler", "heun", "rk4", "trapezoid", "ab2")
UNITS = ("m", "cm"), ("m/s", "km/h"), ("K", "degC"), ("N", "")
FORMS = (list, tuple, np.array)


class Remembering:
    """Keeps one number per output; looks at its inputs in the middle of the step."""

    def __init__(self, weights, form):
        self.weights, self.form = weights, form

    def start(self, t):
        self.y = [0.5 * (k + 1) for k in range(len(self.weights))]

    def output(self, t):
        return self.form(self.y)

    def step(self, t, h, u):
        middle = [0.0] * u.shape[1]
        for row in u[::-1]:
            middle = [value * (0.5 * h) + float(c) for value, c in zip(middle, row, strict=True)]
        pushes = [sum(w * m for w, m in zip(row, middle, strict=True)) for row in self.weights]
        self.y = [0.8 * y + h * push for y, push in zip(self.y, pushes, strict=True)]
        return t + h


class Rewinding(Remembering):
    """The same, with everything a simulator may offer."""

    def save(self):
        return list(self.y)

    def restore(self, state):
        self.y = list(state)

    def slope(self, t, u):
        return [sum(w * float(x) for w, x in zip(row, u[0], strict=True)) for row in self.weights]


class Reacting(Rewinding):
    """Its outputs react to its inputs at once."""

    def output(self, t, u):
        pushes = [sum(w * float(x) for w, x in zip(row, u[0], strict=True)) for row in self.weights]
        return self.form([y + 0.3 * push for y, push in zip(self.y, pushes, strict=True)])


class Coarse(Remembering):
    """Honours no slopes of its inputs."""

    input_degree = 0


class Straight(Rewinding):
    """Honours slopes, no more."""

    input_degree = 1


PYTHON = (Remembering, Rewinding, Reacting, Coarse, Straight)


@dataclass
class Drawn:
    """A composite and how to run it."""

    composite: Composite
    stop: Fraction
    start: Fraction
    every: Fraction | str | None
    record: list[str]
    features: set[str]


@dataclass
class Level:
    """A level while it is drawn: its models, and what can still be connected."""

    step: Fraction
    models: dict[str, object] = field(default_factory=dict)
    inputs: dict[str, Port] = field(default_factory=dict)
    """By path."""
    outputs: dict[str, Port] = field(default_factory=dict)
    driven: dict[str, Port] = field(default_factory=dict)
    """Inputs that something drives."""
    connections: list[Connection] = field(default_factory=list)


def draw(rng: np.random.Generator) -> Drawn:
    """Return a random scenario."""
    pen = Pen(rng, iterates=0.4, adapts=0.4, rates=0.5, bonds=0.9)
    step = Fraction(1, int(rng.choice([7, 10, 32])))
    composite, _, _ = pen.level(step, depth=int(rng.integers(1, 4)), outermost=True)
    steps = int(rng.integers(8, 15))
    start = pen.one(Fraction(0), Fraction(0), Fraction(1, 3))
    every = pen.one(None, None, "micro", "coarser")
    pen.features |= {f"every {every}", f"start {start}"}
    if every == "coarser":
        every = next((k * step for k in (2, 3, 6) if pen.may_record(k * step)), None)
    return Drawn(composite, start + steps * step, start, every, ["*", *pen.paths(composite)], pen.features)


class Pen:
    """Draws from one generator and remembers what it used."""

    def __init__(
        self,
        rng: np.random.Generator,
        iterates: float = 0.0,
        adapts: float = 0.0,
        rates: float = 0.0,
        bonds: float = 0.0,
    ):
        self.rng = rng
        self.adapts, self.rates = adapts, rates
        """How often a level chooses its steps, where all in it make any."""
        self.bonds = bonds
        """How often two that drive each other are said to exchange power."""
        self.aside, self.apart = rng.spawn(2)
        self.iterates = iterates
        """How often a level iterates, where all in it can go back."""
        self.features: set[str] = set()
        self.steps: list[Fraction] = []

    def one(self, *choices):
        return choices[int(self.rng.integers(len(choices)))]

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def numbers(self, *shape: int, size: float = 1.0) -> np.ndarray:
        return self.rng.uniform(-size, size, shape)

    def may_record(self, every: Fraction) -> bool:
        """Return whether rows so far apart fall on the steps of every level."""
        return all(every <= step or every % step == 0 for step in self.steps)

    def note(self, thing: object) -> None:
        self.features.add(thing if isinstance(thing, str) else type(thing).__name__)

    # simulators

    def ports(self, letter: str, count: int, start: bool = False) -> list[Port]:
        units = [self.one(*self.one(*UNITS)) if self.chance(0.3) else "" for _ in range(count)]
        return [Port(f"{letter}{k}", unit, 0.25 * k if start else None) for k, unit in enumerate(units)]

    def leaf(self, step: Fraction):
        kind = self.one("linear", "linear", "linear", "linear", "python", "ode", "function")
        self.note(kind)
        return getattr(self, kind)(step)

    def linear(self, step: Fraction) -> StateSpace:
        n, m, p = (int(k) for k in self.rng.integers([0, 0, 1], [6, 5, 6]))
        method = self.one(*METHODS)
        own = self.one(None, step, step / 2, step / 3)
        D = self.numbers(p, m, size=0.2) * (self.rng.random((p, m)) < self.one(0.0, 0.0, 0.3, 1.0))
        self.features |= {method, f"{n} states", f"{p} outputs"}
        self.note("micro steps" if own not in (None, step) else "one step")
        self.note("feedthrough" if D.any() else "no feedthrough")
        return StateSpace(
            A=self.numbers(n, n) - np.eye(n),
            B=self.numbers(n, m),
            C=self.numbers(p, n),
            D=D,
            x0=self.numbers(n),
            inputs=self.ports("u", m, start=True),
            outputs=self.ports("y", p),
            method=method,
            step=own,
        )

    def python(self, step: Fraction) -> Python:
        m, p = (int(k) for k in self.rng.integers([0, 1], [4, 4]))
        cls, form = self.one(*PYTHON), self.one(*FORMS)
        period = self.one(None, None, None, step * 3, step / 2)
        self.features |= {cls.__name__, f"period {period / step if period else None}"}
        return Python(
            cls,
            self.ports("u", m, start=True),
            self.ports("y", p),
            period,
            weights=self.numbers(p, m, size=0.5).tolist(),
            form=form,
        )

    def ode(self, step: Fraction) -> Ode:
        weights = np.hstack([self.numbers(2, 2) - np.eye(2), self.numbers(2, 2)]).tolist()

        def rate(t, x, u):
            return [sum(w * v for w, v in zip(row, (*x, *u), strict=True)) for row in weights]

        method = self.one("euler", "heun", "rk4", "ab2")
        own = self.one(None, step / 2)
        x0 = self.numbers(2)
        return Ode(rate, None, x0, self.ports("u", 2, True), self.ports("x", 2), method, own)

    def function(self, step: Fraction) -> Function:
        slope = float(self.numbers())
        return Function(lambda t: [slope * t, t * t], ["f0", "f1"])

    # levels

    def level(self, step: Fraction, depth: int, outermost: bool = False):
        """Return a composite, and the inputs and outputs that paths may reach in it."""
        self.steps.append(step)
        drawn = Level(step)
        for number in range(int(self.rng.integers(2, 5))):
            self.child(drawn, f"m{number}", depth)
        if depth > 1:
            self.child(drawn, "deep", depth, nested=True)
        for path in list(drawn.inputs):
            if self.chance(0.8) and drawn.outputs:
                self.connect(drawn, path)
        ends = ((), ()) if outermost else self.own_ports(drawn)
        return self.composite(drawn, *ends), drawn.inputs, drawn.outputs

    def child(self, level: Level, name: str, depth: int, nested: bool = False) -> None:
        if nested or (depth > 1 and self.chance(0.2)):
            ratio = self.one(Fraction(1), Fraction(1, 2), Fraction(1, 3), Fraction(2), Fraction(3))
            self.features |= {f"depth {depth}", f"step times {ratio}"}
            model, inputs, outputs = self.level(level.step * ratio, depth - 1)
            inputs = {port.name: port for port in model.inputs} | inputs
            outputs = {port.name: port for port in model.outputs} | outputs
        else:
            model = self.leaf(level.step)
            inputs = {port.name: port for port in model.inputs}
            outputs = {port.name: port for port in model.outputs}
            if getattr(model, "period", None):
                self.steps.append(model.period)
        level.models[name] = model
        level.inputs |= {f"{name}.{path}": port for path, port in inputs.items()}
        level.outputs |= {f"{name}.{path}": port for path, port in outputs.items()}

    def connect(self, level: Level, target: str) -> None:
        """Drive an input by any output whose unit converts."""
        unit = level.inputs[target].unit
        source = self.one(*level.outputs)
        if not _converts(level.outputs[source].unit, unit):
            return
        gives_slopes = level.models[source.partition(".")[0]].capabilities.slopes
        extrapolation = self.extrapolator(gives_slopes) if self.chance(0.4) else None
        level.connections.append(Connection(source, target, extrapolation))
        level.driven[target] = level.inputs.pop(target)
        self.note("path through levels" if max(source.count("."), target.count(".")) > 1 else "connection")
        self.note("unit conversion" if level.outputs[source].unit != unit and unit else "same unit")

    def own_ports(self, level: Level) -> tuple[list[Port], list[Port]]:
        """Give the level inputs that drive free ones inside, and outputs that repeat some inside."""
        inputs, outputs = [], []
        for path in [path for path in level.inputs if self.chance(0.4)]:
            port = Port(f"in{len(inputs)}", level.inputs.pop(path).unit, 0.5)
            inputs.append(port)
            hold = self.one(None, None, Hold())
            self.note("passed on" if hold is None else "passed on, held")
            level.connections.append(Connection(port.name, path, hold))
        for path in [path for path in level.outputs if self.chance(0.3)][:3]:
            port = Port(f"out{len(outputs)}", level.outputs[path].unit)
            outputs.append(port)
            level.connections.append(Connection(path, port.name))
        return inputs, outputs

    def composite(self, level: Level, inputs: list[Port], outputs: list[Port]) -> Composite:
        bonds = bonds_of(level, self.apart, self.bonds, self.note) if self.bonds else {}
        scenario = Scenario(level.models, level.connections, inputs, outputs, bonds=bonds)
        slopes = all(model.capabilities.slopes for model in level.models.values())
        start = self.one("window", "cold")
        self.note(f"start {start}")
        return Composite(scenario, level.step, self.orchestrator(scenario), self.extrapolator(slopes), start)

    def extrapolator(self, slopes: bool):
        choices = [Hold(), Polynomial(1), Polynomial(2), Polynomial(3), Nepce(float(self.numbers(size=0.6)))]
        chosen = self.one(*choices, *([Hermite(1), Hermite(2)] if slopes else []))
        self.note(f"{type(chosen).__name__} of degree {chosen.degree}")
        return chosen

    def orchestrator(self, scenario: Scenario):
        loops = bool(Feedthrough(wire(with_level_ports(scenario))).loops)
        outputs = self.one("stale", "consistent")
        inputs = self.one("clean", "clean", "delayed")
        self.features |= {f"outputs {outputs}", f"inputs {inputs}", "loop" if loops else "no loop"}
        kind = self.one("Jacobi", "sequence", "sequence", "groups", "auto")
        self.note(kind)
        if kind == "Jacobi":
            return self.iterated(Jacobi(outputs=outputs, inputs=inputs), scenario)
        order = [str(name) for name in self.rng.permutation(list(scenario.models))]
        if kind == "groups":
            cut = int(self.rng.integers(1, len(order)))
            order = [order[:cut], *order[cut:]] if self.chance(0.5) else [*order[:cut], order[cut:]]
        order = "auto" if kind == "auto" else order
        return self.iterated(GaussSeidel(order, outputs=outputs, inputs=inputs), scenario)

    def iterated(self, explicit, scenario: Scenario):
        models = scenario.models.values()
        able = all(model.capabilities.rollback for model in models)
        free = all(
            model.capabilities.variable_step
            and not getattr(model, "period", None)
            and not getattr(model, "step", None)
            for model in models
        )
        compound = False
        if free and self.aside.random() < self.rates:
            explicit, compound = self.rated(explicit, scenario, able)
        made = (
            self.repeated(explicit)
            if able and not compound and self.aside.random() < self.iterates
            else explicit
        )
        return self.controlled(made, able) if free and self.aside.random() < self.adapts else made

    def rated(self, explicit, scenario: Scenario, able: bool):
        how = {"outputs": explicit.outputs, "inputs": explicit.inputs}
        counts = [(1, 2, 4), (1, 3, 6), (2, 3, 5)][int(self.aside.integers(3))]
        rates = {name: counts[int(self.aside.integers(3))] for name in scenario.models}
        schemes = ("slowest-first", "fastest-first", *(("compound",) if able else ()))
        scheme = (*schemes, "asynchronous")[int(self.aside.integers(len(schemes) + 1))]
        if counts == (2, 3, 5) or scheme == "asynchronous":
            self.note("rates, asynchronous")
            return Asynchronous(rates, **how), False
        self.note(f"rates, {scheme}")
        return Multirate(rates, scheme, **how), scheme == "compound"

    def controlled(self, made, able: bool):
        estimates = ("defect", "orders", "richardson") if able else ("defect", "orders")
        estimate = estimates[int(self.aside.integers(len(estimates)))]
        controller = ("I", "PI", "PID")[int(self.aside.integers(3))]
        per = ("unit", "step")[int(self.aside.integers(2))]
        self.note(f"steps by {estimate}")
        parts = {"quantum": Fraction(1, 4096), "first": Fraction(1, 8)}
        return Adaptive(made, 0.5, estimate, controller, per, rejects=None if able else False, **parts)

    def repeated(self, explicit):
        tolerance, at_most = ((None, 2), (None, 3), (1e-13, 200))[int(self.aside.integers(3))]
        self.note(f"iterated to {tolerance}")
        led = None, "relax", "aitken", "quasi-newton", "newton"
        accelerate = led[int(self.aside.integers(len(led)))]
        if tolerance is None and accelerate != "relax":
            accelerate = None  # the others lead to a tolerance, or want what can be predicted
        self.note(f"led by {accelerate}")
        return Iterate(explicit, tolerance, at_most, accelerate)

    def paths(self, composite: Composite, prefix: str = "") -> list[str]:
        """Return the path of every input, at all levels."""
        found = []
        for name, model in composite.scenario.models.items():
            found += [f"{prefix}{name}.{port.name}" for port in model.inputs]
            if isinstance(model, Composite):
                found += self.paths(model, f"{prefix}{name}.")
        return found


def _converts(source: str, target: str) -> bool:
    return not source or not target or any({source, target} <= set(pair) for pair in UNITS)
