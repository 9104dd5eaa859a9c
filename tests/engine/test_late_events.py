"""Events that are announced late, in a level that is rolled back: each time they are met anew."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

import hocket as hk
from systems import ENGINES


class Noticing:
    """Notices in each of its steps that something has happened in it, sooner or later as its input says."""

    inputs: ClassVar = ["u"]
    outputs: ClassVar = ["count"]
    feedthrough: ClassVar[dict[str, list[str]]] = {}

    def start(self, t: float) -> None:
        self.found: float | None = None
        self.count = 0.0

    def output(self, t: float) -> list[float]:
        return [self.count]

    def step(self, t: float, h: float, u: Any) -> None:
        self.found = t + h * (0.5 - 0.01 * float(u[0, 0]))

    def due(self) -> float | None:
        return self.found

    def react(self, t: float, n: int, u: Any, present: Any) -> None: ...

    def commit(self) -> bool:
        self.found, self.count = None, self.count + 1.0
        return False

    def save(self) -> Any:
        return dict(vars(self))

    def restore(self, state: Any) -> None:
        vars(self).clear()
        vars(self).update(state)


@pytest.mark.parametrize("engine", ENGINES)
def test_late_events_in_a_level_that_is_iterated_are_not_over(engine: str) -> None:
    """The level makes two steps in each sweep, with an event in each; a later sweep meets them earlier."""
    lag = hk.StateSpace([[-1.0]], [[1.0]], [[1.0]], x0=[0.5], inputs=["u"], outputs=["y"])
    scenario = hk.Scenario(
        {"noticing": hk.Python(Noticing)}, {"noticing.u": "u", "count": "noticing.count"},
        inputs=[hk.Port("u", start=0.0)], outputs=["count"],
    )  # fmt: skip
    level = hk.Composite(scenario, "1/20", "jacobi")
    models, wires = {"lag": lag, "level": level}, {"level.u": "lag.y", "lag.u": "level.count"}
    how = hk.Iterate(tolerance=None, at_most=3, accelerate=None)
    run = hk.run(hk.Composite(hk.Scenario(models, wires), "1/10", how), stop="1/2", engine=engine)
    t, count = run["level.count"]
    newest = dict(zip(t.tolist(), count.tolist(), strict=True))
    assert [newest[k / 10] for k in range(6)] == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
