"""From a study to an SSP.

In:  a Study whose models are FMUs
Out: an .ssp
"""
