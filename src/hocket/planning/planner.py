"""The plan of a co-simulation: prepared, wired and planned at all levels, before anything is opened.

In:  a Composite
Out: its PlanTree, with what a user should know of it; or every fault
"""

from __future__ import annotations

from dataclasses import replace

from hocket.errors import raise_faults
from hocket.model.composite import Composite, levels
from hocket.model.memo import Memo
from hocket.planning.prepare import prepare_composite
from hocket.planning.tree import PlanTree, build_tree, nest_plans, verify_tree


def plan_tree(composite: Composite) -> PlanTree:
    """Return everything that follows from a composite, at all levels; raises with every fault."""
    return _TREES(composite)


def draft_tree(composite: Composite) -> PlanTree:
    """Return what is known before a model is opened, neither verified nor noted."""
    constrained = any(each.scenario.constraints for _, each in levels(composite))
    return _build(prepare_composite(composite, tries=False)) if constrained else _BARE(composite)


def _build(prepared: Composite) -> PlanTree:
    root = build_tree(prepared)
    able = [model.capabilities for model in root.leaves.wiring.models]
    if any(each.events or each.stops_early for each in able):
        from hocket.planning.instants import add_instants

        add_instants(root)
    if any(level.composite.scenario.hosts for level in root.levels()):
        from hocket.planning.choreography import add_messages

        add_messages(root)
    nest_plans(root)
    return root


def _verify(root: PlanTree) -> PlanTree:
    from hocket.planning.common_ticks import tick_faults
    from hocket.planning.notes import tree_notes

    raise_faults(tick_faults(root))
    verify_tree(root)
    root.plan = replace(root.plan, notes=(*root.plan.notes, *tree_notes(root, root.leaves)))
    return root


_BARE: Memo[Composite, PlanTree] = Memo(lambda composite: _build(prepare_composite(composite)))
_TREES: Memo[Composite, PlanTree] = Memo(lambda composite: _verify(_BARE(composite)))
"""A plan is made once per composite: to check it, to cost it and to run it."""
