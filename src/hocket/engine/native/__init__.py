"""The native engine: a started tree of levels is handed over to compiled code.

In:  a tree of open simulators
Out: rows and values, as the reference engine computes them
"""
