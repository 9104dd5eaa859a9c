"""From an SSP to a study, in stages: documents, directions, values, levels.

In:  an .ssp
Out: an SspImport
"""
