"""Blocks by what they do: signals, arithmetic, motion, control."""
