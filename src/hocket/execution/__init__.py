"""An experiment is executed: once, many times, in step with the wall clock.

In:  an Experiment
Out: a Run
"""
