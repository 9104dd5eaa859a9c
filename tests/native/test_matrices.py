"""What the native engine is handed over of linear models, before the first step."""

import pytest

import hocket as hk
from hocket.engine.native.matrices import step_ticks
from hocket.engine.opening import open_level
from hocket.orchestrators import Multirate
from hocket.planning.clocks import clock_of
from hocket.planning.planner import plan_tree
from systems import lag

PAIR = hk.Scenario({"fast": lag(8.0), "slow": lag()}, {"fast.u": "slow.y", "slow.u": "fast.y"})


@pytest.mark.parametrize(
    ("orchestrator", "parts"),
    [
        (hk.Jacobi(), [{1}, {1}]),
        (Multirate({"fast": 4}), [{4}, {1}]),
        (Multirate({"fast": 4}, "compound"), [{1, 4}, {1}]),
    ],
)
def test_matrices_are_made_for_the_steps_of_the_plan(orchestrator, parts):
    """A compound step predicts with one long step of the fast one."""
    design = plan_tree(hk.Composite(PAIR, "0.1 s", orchestrator))
    root = open_level(design, clock_of(design))
    expected = [tuple(sorted(root.length // part for part in each)) for each in parts]
    assert step_ticks(root) == expected
    root.close()
