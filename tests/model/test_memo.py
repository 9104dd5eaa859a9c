"""What follows from a frozen object is worked out once, and goes with the object."""

import copy
import gc
import pickle
import weakref

import hocket as hk
from hocket.coupling.wiring import wire
from hocket.planning.planner import plan_tree
from systems import ENGINES


def lagging() -> hk.Composite:
    lag = hk.StateSpace([[-1.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["u"], outputs=["y"])
    return hk.Composite(hk.Scenario({"lag": lag}, {"lag.u": "lag.y"}), "0.1 s")


def test_answers_are_worked_out_once_per_object():
    composite = lagging()
    assert plan_tree(composite) is plan_tree(composite)
    assert wire(composite.scenario) is wire(composite.scenario)
    assert plan_tree(lagging()) is not plan_tree(composite)


def test_a_copy_or_a_pickle_takes_no_answer_along():
    composite = lagging()
    made = plan_tree(composite)
    for other in (copy.copy(composite), copy.deepcopy(composite), pickle.loads(pickle.dumps(composite))):
        assert "remembered" not in vars(other)
        assert other == composite
        assert plan_tree(other) is not made


def test_nothing_is_kept_of_what_was_run_and_let_go():
    """Plans refer to their composites: a table of plans beside them would keep both for ever."""
    gone = []
    for engine in ENGINES:
        composite = lagging()
        hk.run(composite, "1 s", engine=engine)
        hk.check(composite, "1 s")
        gone += [weakref.ref(composite), weakref.ref(composite.scenario), weakref.ref(plan_tree(composite))]
        del composite
    gc.collect()
    assert [each() for each in gone] == [None] * len(gone)
