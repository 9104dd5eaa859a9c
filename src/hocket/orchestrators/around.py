"""What algorithms around another one share: values pass between the steps as the inner one says.

In:  an orchestrator inside
Out: its modes of exchange
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hocket.model import Orchestrator
from hocket.orchestrators.exchange import InputsMode
from hocket.plan import OutputsMode


def algorithm_layers(orchestrator: Any) -> Iterator[Any]:
    """Yield an algorithm, the one inside it, and so on: the last is that of one step."""
    yield orchestrator
    while hasattr(orchestrator, "inner"):
        orchestrator = orchestrator.inner
        yield orchestrator


class WrappingOrchestrator:
    """An algorithm that does what another one does, again or in other steps."""

    inner: Orchestrator

    @property
    def outputs(self) -> OutputsMode:
        """As of the algorithm inside."""
        return getattr(self.inner, "outputs", "consistent")

    @property
    def inputs(self) -> InputsMode:
        """As of the algorithm inside."""
        return getattr(self.inner, "inputs", "clean")
