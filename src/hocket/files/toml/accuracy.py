"""What the pass `accuracy` inserts, in a file: a step controller, and simulators that are told the time.

In:  their classes
Out: their kinds, a part of the codec
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from hocket.files.toml.forms import DURATION, NUMBER, TRUTH, VECTOR, WHOLE, ChoiceForm, ListForm
from hocket.files.toml.kinds import Field, KindFamily, TableKind, table_kind
from hocket.files.toml.levels import ModelsForm
from hocket.files.toml.place import FilePlace
from hocket.files.toml.ports import PORTS
from hocket.orchestrators.adaptive import PER
from hocket.simulators.step_controller import SOURCES, StepController
from hocket.simulators.timed import Timed

WHOLES = ListForm(WHOLE, "a list of whole numbers")
STOP = Field("stop", DURATION, "the time at which it stands still")
BEGIN = Field("begin", DURATION, "the time at the start")
CONTROL = (
    Field("relative", NUMBER, "this part of the value is allowed beside"),
    Field("estimate", ChoiceForm(SOURCES), "how the error is found"),
    Field("per", ChoiceForm(PER), "whether the error counts per step or per second"),
    Field("rejects", TRUTH, "whether steps are taken back"),
    BEGIN,
    Field("first", DURATION, "the first step"),
    Field("smallest", DURATION, "the smallest step"),
    Field("largest", DURATION, "the largest step"),
)
"""What the step controller and the pass that inserts it share."""


@dataclass(frozen=True)
class InnerModelForm:
    """A model in a model: [models.left.model]."""

    family: Callable[[], KindFamily]

    def read(self, value: Any, place: FilePlace) -> Any:
        return self.family().read(value, place)

    def write(self, value: Any, place: FilePlace) -> Any:
        *outer, name = place.keys
        return ModelsForm(self.family).write({str(name): value}, replace(place, keys=tuple(outer)))[str(name)]

    def schema(self) -> dict[str, Any]:
        return self.family().schema()


def accuracy_kinds(family: Callable[[], KindFamily]) -> tuple[TableKind, ...]:
    """Return the kinds; `family` is that of all models."""
    return (
        table_kind(
            "step-controller",
            StepController,
            Field("watched", PORTS, "the signals whose error matters"),
            STOP,
            Field("tolerance", VECTOR, "the error that is allowed, one for each signal"),
            *CONTROL,
            Field("gains", VECTOR, "of the errors now, before, and before that"),
            Field("order", WHOLE, "of the coupling: 1 where inputs are held"),
            Field("safety", NUMBER, "the next step is this much shorter than it might be"),
            Field("most", NUMBER, "how much longer the next step may be"),
            Field("least", NUMBER, "how much shorter"),
            Field("quantum", DURATION, "half steps are multiples of it; left out: any will do"),
        ),
        table_kind(
            "timed",
            Timed,
            BEGIN,
            Field("degrees", WHOLES, "of the extrapolation of each input; left out: all are held"),
            Field("model", InnerModelForm(family), "the model that is told the time"),
        ),
    )
