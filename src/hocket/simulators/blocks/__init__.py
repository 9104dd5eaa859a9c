"""Blocks by what they do: signals, arithmetic, motion, control.

In:  parameters of blocks
Out: models
"""
