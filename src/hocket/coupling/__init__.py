"""Names become numbers: wiring, direct feedthrough, algebraic loops, ports that levels make on the way.

In:  a Scenario
Out: a Wiring and graphs over it
"""
