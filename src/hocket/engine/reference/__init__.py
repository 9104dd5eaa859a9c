"""The reference engine: the plan, executed in plain Python.

In:  a tree of open simulators
Out: the same bits as the native engine
"""
