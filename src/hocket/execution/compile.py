"""`hocket.compile`: an awkward scenario is made simple by the passes of the compiler.

In:  a composite, FMUs or the path of a file, and the passes to run
Out: a Compilation: the level without constraints, loops or hosts, and what was inserted
"""

from __future__ import annotations

from collections.abc import Sequence

from hocket.files.experiments import ExperimentLike, as_experiment
from hocket.model.scenario import Connections
from hocket.planning.compiler.compiler import Compilation, compile_level
from hocket.planning.compiler.contract import Pass


def compile(
    what: ExperimentLike,
    passes: Sequence[Pass] | None = None,
    *,
    connections: Connections = (),
    in_order: bool = True,
) -> Compilation:
    """Return a trivial level that does what this one should; see `compile_level`."""
    return compile_level(
        as_experiment(what, connections, done="compiled").composite, passes, in_order=in_order
    )
