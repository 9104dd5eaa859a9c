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
from hocket.simulators.fmu.probe.bench import ProbeBench
from hocket.simulators.fmu.probe.findings import Finding, Found

CHECKS: dict[str, Callable[[ProbeBench], Found]] = {
    "loads": running.check_loading,
    "steps": running.check_stepping,
    "repeats": running.check_repeatability,
    "instances": running.check_instances,
    "rewind": rewinding.check_rewind,
    "memory": rewinding.check_memory,
    "variable step": stepping.check_variable_step,
    "feedthrough": reactions.check_feedthrough,
    "reevaluate": reactions.check_reevaluation,
    "input derivatives": derivatives.check_input_derivatives,
    "output derivatives": derivatives.check_output_derivatives,
    "directional derivatives": derivatives.check_directional,
    "early return": stepping.check_early_return,
    "texts": running.check_texts,
    "arrays": running.check_arrays,
}
"""What is looked at, in this order."""


def run_checks(bench: ProbeBench, names: Sequence[str]) -> Iterator[Finding]:
    """Yield what the checks of these names find."""
    dead = ""
    for name in names:
        if dead:
            yield Finding(name, "untried", dead)
            continue
        bench.said.clear()
        try:
            with _capture_messages(bench.said):
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
def _capture_messages(said: list[str]) -> Iterator[None]:
    """Keep what FMUs say, instead of passing it on."""

    class MessageHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(f"{record.levelname.lower()}: {record.getMessage().partition(': ')[2]}")

    ear, level, passes = MessageHandler(), LOGGER.level, LOGGER.propagate
    LOGGER.addHandler(ear)
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False
    try:
        yield
    finally:
        LOGGER.removeHandler(ear)
        LOGGER.setLevel(level)
        LOGGER.propagate = passes
