"""Awkward scenarios made simple: each concern is a pass from level to level.

In:  a Composite
Out: a Composite that does the same, with ordinary simulators inserted
"""
