"""The plan is run: feed, step, read.

In:  a Composite
Out: values in one memory, rows in a recorder
"""
