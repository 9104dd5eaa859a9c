"""Which coupling is best: hierarchies (nest) and all other choices (tune).

In:  an Experiment
Out: candidates, judged, and the Pareto front
"""
