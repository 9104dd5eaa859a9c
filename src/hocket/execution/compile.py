"""`hocket.compile`: an awkward scenario is made simple by the passes of the compiler.

In:  a composite, FMUs or the path of a file, and the passes to run
Out: a Compilation: the level without constraints, loops or hosts, and what was inserted
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hocket.files.experiments import ExperimentLike, as_experiment
from hocket.model.clock import Duration
from hocket.model.scenario import Connections
from hocket.planning.compiler.compiler import Compilation, compile_level
from hocket.planning.compiler.contract import Pass


def compile(
    what: ExperimentLike,
    passes: Sequence[Pass] | None = None,
    *,
    connections: Connections = (),
    step: Duration | None = None,
    parameters: Mapping[str, Any] | None = None,
    in_order: bool = True,
) -> Compilation:
    """Return a trivial level that does what this one should; see `compile_level`.

    `connections`, `step` and `parameters` are those of `hocket.run`.
    """
    meant = as_experiment(what, connections, step=step, parameters=parameters, done="compiled")
    return compile_level(meant.composite, passes, in_order=in_order)
