"""What hocket reads and writes: scenario files and run folders.

In:  text and rows
Out: the same things as data
"""
