"""The passes of the compiler by name, as they are typed: `loops(how=steps)`.

In:  the classes of passes
Out: a family of kinds
"""

from __future__ import annotations

from hocket.files.toml.registered_kinds import KindFamily, derive_kind
from hocket.model.clock import Duration
from hocket.model.protocols import Extrapolator
from hocket.planning.compiler.accuracy import Accuracy
from hocket.planning.compiler.distribution import Distribution
from hocket.planning.compiler.loop_pass import Loops
from hocket.planning.compiler.modularity import Modularity


def _build_distribution(
    small_step: Duration | None = None,
    extrapolation: Extrapolator | str = "quadratic",
    sweeps: int | None = None,
    tolerance: float | None = None,
) -> Distribution:
    """Each host goes on by itself with small steps, between exchanges every step of the level."""
    return Distribution(small_step, extrapolation, tolerance if sweeps is None else sweeps)


PASSES = KindFamily(
    "pass",
    (
        derive_kind("modularity", Modularity, without=("tries",)),
        derive_kind("loops", Loops),
        derive_kind("distribution", _build_distribution),
        derive_kind("accuracy", Accuracy),
    ),
)
