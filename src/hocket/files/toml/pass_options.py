"""The passes of the compiler by name, as they are typed: `loops(how=steps)`.

In:  the classes of passes
Out: a family of kinds
"""

from __future__ import annotations

from typing import Any, get_args

from hocket.files.toml.forms import DURATION, NUMBER, TEXTS, WHOLE, ChoiceForm
from hocket.files.toml.model_kinds import CONTROL, STOP
from hocket.files.toml.registered_kinds import ACCELERATIONS, EXTRAPOLATIONS, KindFamily
from hocket.files.toml.table_kinds import Field, table_kind
from hocket.orchestrators.adaptive import GAINS
from hocket.planning.compiler.accuracy import Accuracy
from hocket.planning.compiler.distribution import Distribution
from hocket.planning.compiler.loop_pass import How, Loops
from hocket.planning.compiler.modularity import Modularity

_SWEEPS = (
    Field("tolerance", NUMBER, "the relative change that ends an iteration"),
    Field("at_most", WHOLE, "sweeps in a step"),
    Field("accelerate", ACCELERATIONS, "how sweeps are led to their end"),
)


def _build_distribution(
    small_step: Any = None, extrapolation: Any = "quadratic", sweeps: int | None = None, tolerance: Any = None
) -> Distribution:
    """Each host goes on by itself with small steps, between exchanges every step of the level."""
    return Distribution(small_step, extrapolation, tolerance if sweeps is None else sweeps)


PASSES = KindFamily(
    "pass",
    (
        table_kind(
            "modularity",
            Modularity,
            *_SWEEPS,
            Field("gap", NUMBER, "what equations may be short of at the start"),
        ),
        table_kind("loops", Loops, Field("how", ChoiceForm(get_args(How)), "how loops are solved"), *_SWEEPS),
        table_kind(
            "distribution",
            _build_distribution,
            Field("small_step", DURATION, "of the hosts; left out: a tenth of the level's step"),
            Field("extrapolation", EXTRAPOLATIONS, "how values of other hosts go on"),
            Field("sweeps", WHOLE, "makes each step so many times"),
            Field("tolerance", NUMBER, "makes steps again until hosts agree"),
            cls=Distribution,
        ),
        table_kind(
            "accuracy",
            Accuracy,
            STOP,
            Field("tolerance", NUMBER, "the error that is allowed"),
            *CONTROL,
            Field("controller", ChoiceForm(tuple(GAINS)), "how the next step follows from the errors"),
            Field("watch", TEXTS, "the outputs whose error counts"),
        ),
    ),
)
