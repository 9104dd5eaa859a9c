"""Is it stable, how wrong is it, and why: other readings of the plan that is run.

In:  a Composite, or a Run
Out: tables
"""
