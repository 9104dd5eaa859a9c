"""The checks, and how they are made one after the other in this process.

In:  a bench, the names of checks
Out: findings
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from hocket.errors import HocketError
from hocket.simulators.fmu.logs import LOGGER
from hocket.simulators.fmu.probe import derivatives, reactions, rewinding, running, stepping
from hocket.simulators.fmu.probe.bench import Bench
from hocket.simulators.fmu.probe.findings import Finding, Found

CHECKS: dict[str, Callable[[Bench], Found]] = {
    "loads": running.loads,
    "steps": running.steps,
    "repeats": running.repeats,
    "instances": running.instances,
    "rewind": rewinding.rewind,
    "memory": rewinding.memory,
    "variable step": stepping.variable_step,
    "feedthrough": reactions.feedthrough,
    "reevaluate": reactions.reevaluate,
    "input derivatives": derivatives.input_slopes,
    "output derivatives": derivatives.output_slopes,
    "directional derivatives": derivatives.directional,
    "early return": stepping.early_return,
    "texts": running.texts,
    "arrays": running.arrays,
}
"""What is looked at, in this order."""


def checked(bench: Bench, names: Sequence[str]) -> Iterator[Finding]:
    """Yield what the checks of these names find."""
    dead = ""
    for name in names:
        if dead:
            yield Finding(name, "untried", dead)
            continue
        bench.said.clear()
        try:
            with _listening(bench.said):
                verdict, what = CHECKS[name](bench)
        except HocketError as error:
            fault = error.faults[0]
            verdict, what = "false", fault.what
            if name == "loads" and fault.hint:
                what += f"; {fault.hint}"
        yield Finding(name, verdict, what)
        if name == "loads" and verdict == "false":
            dead = "it does not start"
        elif name == "steps" and not len(bench.course.rows):
            dead = "it makes no step"
        elif name == "rewind" and verdict == "false":
            bench.rewinds = False


@contextmanager
def _listening(said: list[str]) -> Iterator[None]:
    """Keep what FMUs say, instead of passing it on."""

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(f"{record.levelname.lower()}: {record.getMessage().partition(': ')[2]}")

    ear, level, passes = Ear(), LOGGER.level, LOGGER.propagate
    LOGGER.addHandler(ear)
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False
    try:
        yield
    finally:
        LOGGER.removeHandler(ear)
        LOGGER.setLevel(level)
        LOGGER.propagate = passes
