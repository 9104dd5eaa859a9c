"""Wrappers that give a model a capability it lacks by itself.

In:  a Model
Out: a Model with one more capability, and what that costs
"""
