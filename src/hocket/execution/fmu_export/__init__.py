"""A co-simulation becomes an FMU: its plan as a file, the library that runs it, a model description.

In:  an experiment
Out: an .fmu
"""
