"""Measures one tool on one job: `python worker.py TOOL JOB`, TOOL being a module of this folder.

In:  the name of a module with `PACKAGE` and `run(system, meter)`, which returns the outputs at the end
Out: one line of JSON on the standard output; whatever the tool itself prints goes to the standard error
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from importlib.metadata import version
from pathlib import Path

from system import Meter, System, UnableError


def main() -> None:
    """Measure."""
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    name, job = sys.argv[1:]
    system, meter = System.read(Path(job).resolve()), Meter()
    tool = importlib.import_module(name)
    result: dict[str, object] = {"version": version(tool.PACKAGE)}
    os.chdir(system.folder)
    try:
        meter.begin()
        result["values"] = tool.run(system, meter)
        result |= {"load": meter.load, "steps": meter.steps, "memory": meter.memory, "stepped": meter.stepped}
    except UnableError as error:
        result["unable"] = str(error)
    answer.write(json.dumps(result) + "\n")
    answer.flush()
    os._exit(0)  # some tools take long, or crash, when they are torn down


if __name__ == "__main__":
    main()
