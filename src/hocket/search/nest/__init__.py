"""Which simulators should be a level of their own.

In:  a flat Composite
Out: one with levels, where these are better at equal work
"""
