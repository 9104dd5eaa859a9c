"""A scenario runs on its hosts: each does its part of the plan, and messages pass between them.

In:  a Job whose outermost level has hosts
Out: rows of every host, gathered in one run folder
"""
