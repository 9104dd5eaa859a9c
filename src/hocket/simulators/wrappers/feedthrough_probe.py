"""Direct feedthrough of models that do not say which outputs have it: told, or tried out.

In:  a Model, and its direct feedthrough; or nothing, and its simulators are pushed
Out: a Model like it whose outputs list these inputs
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from hocket.errors import ScenarioError
from hocket.model.arguments import set_fields
from hocket.model.ports import Port
from hocket.model.protocols import (
    Array,
    Capabilities,
    InitialisationSimulator,
    Model,
    Simulator,
    declared_energy,
    provides,
    step_of,
    text_ports,
)
from hocket.simulators.recipes import Feedthrough, with_feedthrough
from hocket.simulators.wrappers.emulation import Emulating, check_wrapped, outputs_of

PUSHES = 3
"""How often each input is changed, each time and place."""


@dataclass(frozen=True, init=False)
class Reacting(Emulating):
    """A model like the one inside, with direct feedthrough from the inputs given here and from no others.

    `{"y": ["u"]}`: outputs that are not named have none. `probed` says that it was found by trying.
    """

    model: Model
    feedthrough: tuple[tuple[str, tuple[str, ...]], ...]
    probed: bool = False
    emulates: ClassVar[str] = "feedthrough"
    rank: ClassVar[int] = 0

    def __init__(
        self,
        model: Model,
        feedthrough: Feedthrough | tuple[tuple[str, tuple[str, ...]], ...],
        probed: bool = False,
    ):
        check_wrapped(model, "Reacting", "given direct feedthrough")
        told = feedthrough if isinstance(feedthrough, Mapping) else dict(feedthrough)
        made = with_feedthrough(model.outputs, model.inputs, told, "feedthrough")
        listed = tuple((port.name, tuple(port.feedthrough)) for port in made if port.feedthrough)
        set_fields(self, model=model, feedthrough=listed, probed=bool(probed))

    @property
    def step(self) -> Fraction | None:
        return step_of(self.model)

    @property
    def energy(self) -> Any:
        return declared_energy(self.model)

    @property
    def texts(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return text_ports(self.model)

    @property
    def file_keys(self) -> dict[str, Any]:
        table = {output: list(inputs) for output, inputs in self.feedthrough}
        return {**({"probed": True} if self.probed else {}), "feedthrough": table}

    @property
    def emulation(self) -> str:
        return "feedthrough by probing" if self.probed else "feedthrough as told"

    @property
    def price(self) -> str:
        return "feedthrough that did not show when it was tried is missed" if self.probed else "nothing"

    @property
    def outputs(self) -> tuple[Port, ...]:
        known = dict(self.feedthrough)
        return tuple(replace(port, feedthrough=known.get(port.name, ())) for port in self.model.outputs)

    @property
    def capabilities(self) -> Capabilities:
        return self.model.capabilities

    def open(self) -> Simulator:
        return self.model.open()


def probe_feedthrough(model: Model, h: float, t: float = 0.0, seed: int = 0) -> dict[str, tuple[str, ...]]:
    """Return the inputs that moved each output when they were changed and no time passed.

    Tried at the start and after one, three and seven steps of h seconds under other inputs, each input three
    times: an estimate. An output that reacts only elsewhere (a switch) is taken not to.
    """
    if not model.capabilities.reevaluates:
        raise ScenarioError(
            "its outputs do not follow inputs between steps: nothing can be seen",
            "feedthrough",
            "a model that evaluates its outputs again",
        )
    rng = np.random.default_rng(seed)
    moved = np.zeros((len(model.outputs), len(model.inputs)), dtype=bool)
    simulator: Any = model.open()
    try:
        simulator.start(t)
        u = np.array([[port.start or 0.0 for port in model.inputs]], dtype=float).reshape(1, -1)
        simulator.output(t, u)
        if provides(simulator, InitialisationSimulator):
            simulator.ready()
        _push_inputs(model, simulator, t, u, rng, moved)
        for steps in (1, 2, 4):
            for _ in range(steps):
                # under other inputs: at rest a product may hide a reaction
                returned = simulator.step(t, h, _perturb_inputs(model, u, rng))
                t = t + h if returned is None else float(returned)
            _push_inputs(model, simulator, t, u, rng, moved)
    finally:
        with suppress(Exception):  # what was seen counts
            simulator.close()
    names = [port.name for port in model.inputs]
    return {
        port.name: tuple(name for name, seen in zip(names, row, strict=True) if seen)
        for port, row in zip(model.outputs, moved, strict=True)
    }


def _push_inputs(
    model: Model, simulator: Any, t: float, u: Array, rng: np.random.Generator, moved: Any
) -> None:
    """Change each input, the others as they are; note which outputs move."""
    for column, port in enumerate(model.inputs):
        for other in _other_values(port, float(u[0, column]), rng):
            around = _perturb_inputs(model, u, rng)
            before = outputs_of(simulator, t, around)
            pushed = around.copy()
            pushed[0, column] = other
            after = outputs_of(simulator, t, pushed)
            moved[:, column] |= np.array([a != b for a, b in zip(before, after, strict=True)], dtype=bool)
    simulator.output(t, u)


def _perturb_inputs(model: Model, u: Array, rng: np.random.Generator) -> Array:
    """Return inputs of which no real is zero for long: a product with zero would hide a reaction."""
    size = np.array([0.0 if port.discrete else rng.uniform(0.1, 1.0) for port in model.inputs])
    return u + size * (1.0 + np.abs(u))


def _other_values(port: Port, value: float, rng: np.random.Generator) -> Iterator[float]:
    if port.type == "boolean":
        yield 1.0 - value
    elif port.type != "real":
        yield from (value + 1.0, value + 2.0)
    else:
        for _ in range(PUSHES):
            yield value + float(rng.uniform(1.0, 3.0) * rng.choice([-1.0, 1.0])) * (1.0 + abs(value))
