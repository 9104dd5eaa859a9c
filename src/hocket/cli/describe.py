"""hocket describe: what kind of co-simulation it is, in the terms of the field.

In:  a scenario file, or FMUs
Out: its classification
"""

from __future__ import annotations

from hocket.cli import options
from hocket.cli.screen import print_out
from hocket.cli.tables import titled_table
from hocket.cli.typed import read_study


def describe(files: options.Files, connect: options.Connect = None) -> None:
    """Classify a scenario as the literature does. Nothing is run."""
    from hocket.analysis.classification import classify  # here: the other verbs start sooner

    study = read_study(files, connect or ())
    found = classify(study.composite)
    print_out(*titled_table(study.name, found.rows(), None))
    print_out("", "only its author knows:", *(f"  {question}" for question in found.unknown))
