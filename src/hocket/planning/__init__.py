"""From a description to what will be done: prepared composites and the tree of plans of all levels.

In:  a Composite
Out: a PlanTree, or every fault
"""
