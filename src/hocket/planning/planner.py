"""The plan of a co-simulation: prepared, wired and planned at all levels, before anything is opened.

In:  a Composite
Out: its PlanTree, with what a user should know of it; or every fault
"""

from __future__ import annotations

from dataclasses import replace

from hocket.model.composite import Composite
from hocket.model.memo import Memo
from hocket.planning.compiler.contract import levels
from hocket.planning.notes import tree_notes
from hocket.planning.prepare import prepare_composite
from hocket.planning.tree import PlanTree, build_tree


def plan_tree(composite: Composite) -> PlanTree:
    """Return everything that follows from a composite, at all levels; raises with every fault."""
    return _TREES(composite)


def draft_tree(composite: Composite) -> PlanTree:
    """Return what is known before a model is opened; a tree with constraints cannot be run as it is."""
    constrained = any(each.scenario.constraints for _, each in levels(composite))
    return _noted(prepare_composite(composite, tries=False)) if constrained else plan_tree(composite)


def _noted(prepared: Composite) -> PlanTree:
    root = build_tree(prepared)
    root.plan = replace(root.plan, notes=(*root.plan.notes, *tree_notes(root, root.leaves)))
    return root


_TREES: Memo[Composite, PlanTree] = Memo(lambda composite: _noted(prepare_composite(composite)))
"""A plan is made once per composite: to check it, to cost it and to run it."""
