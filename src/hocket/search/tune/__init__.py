"""Which coupling is best for a system.

In:  a Composite
Out: another one, with the reasons
"""
