"""The simulators hocket brings: linear models, Python classes, equations, sources.

In:  what the user knows of a system
Out: Models
"""
