"""What a run over s computed over t: its accepted rows.

In:  a run of a level whose time is told by a step controller
Out: times and values; how many steps were accepted and taken back; errors above the tolerance
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from hocket.errors import Fault, ScenarioError
from hocket.model import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PORTS = ("t", "h", "accepted", "error")


class RunLike(Protocol):
    """A Run, as far as it is looked at here."""

    @property
    def ports(self) -> tuple[str, ...]:
        """Everything that was recorded."""

    def __getitem__(self, port: str) -> Any:
        """Return the series of a port."""


@dataclass(frozen=True)
class AcceptedSteps:
    """The accepted points of a run over s, by time."""

    t: Array
    values: Mapping[str, Array]
    error: Array
    """Of the step that led there, in tolerances, as it was estimated."""
    rejected: int
    """Steps that were taken back."""
    finished: bool
    """Whether the stop of the controller was reached; else there were too few steps of s."""

    def __getitem__(self, port: str) -> Array:
        return self.values[port]

    @property
    def steps(self) -> int:
        """How many steps were accepted."""
        return len(self.t) - 1

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each accepted time."""
        return [
            {"t": float(t), **{port: float(values[row]) for port, values in self.values.items()}}
            for row, t in enumerate(self.t)
        ]

    def faults(self) -> list[Fault]:
        """Return what the run promised and did not keep."""
        faults = []
        worst = int(np.argmax(self.error))
        if self.error[worst] > 1.0:
            what = f"the error is {self.error[worst]:.3g} times the tolerance"
            hint = "a smaller `first`" if worst <= 1 else "an estimate that goes back: richardson, defect"
            faults.append(Fault(what, f"step to t = {self.t[worst]:.6g} s", "at most 1", hint))
        if not self.finished:
            where = f"t = {self.t[-1]:.6g} s"
            faults.append(
                Fault("the run ended before its time was up", where, "more steps of s", "a later stop")
            )
        return faults

    def plot(self, *ports: str, path: Path | str | None = None) -> Figure:
        """Draw ports (none given: all) over time; `path` also saves the picture."""
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(layout="constrained")
        for port in ports or self.values:
            axes.plot(self.t, self.values[port], label=port)
        axes.set_xlabel("t [s]")
        axes.legend()
        if path is not None:
            figure.savefig(path)
        return figure


def accepted_steps(run: RunLike, clock: str = "clock", ports: Iterable[str] | None = None) -> AcceptedSteps:
    """Return the accepted rows of a run over s; `ports`: which columns (None: all but the controller's)."""
    missing = [port for port in PORTS if f"{clock}.{port}" not in run.ports]
    if missing:
        hint = f'record=["{clock}.*", ...]'
        what = f"`{clock}.{missing[0]}` was not recorded"
        raise ScenarioError(what, "run", "a run over s, with the columns of its step controller", hint)
    t, h, taken, error = (np.array(run[f"{clock}.{port}"].values) for port in PORTS)
    kept = taken > 0.5
    names = [port for port in run.ports if not port.startswith(f"{clock}.")] if ports is None else list(ports)
    return AcceptedSteps(
        t[kept],
        {port: np.array(run[port].values)[kept] for port in names},
        error[kept],
        int(np.count_nonzero((error > 1.0) & ~kept)),
        bool(h[kept][-1] == 0.0),
    )
