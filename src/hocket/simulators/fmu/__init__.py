"""FMUs, the simulators that tools export: FMI 1, 2 and 3.

In:  the path of an .fmu
Out: the Model `Fmu`, in `recipe`
"""
