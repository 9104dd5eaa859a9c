"""A plan is read statically: what is wrong with it is found before anything runs.

In:  a Plan and its Scenario
Out: faults
"""
