"""The static reading of a plan: what is wrong with it is found before anything runs.

In:  a Plan, written by an orchestrator or by hand, and the Scenario it is for
Out: Violations, each with its instruction, simulator and port
"""

from __future__ import annotations

from fractions import Fraction

from hocket.model import Scenario
from hocket.plan.endings import check_admitted, check_ends, check_rows, check_stale
from hocket.plan.facts import LevelFacts
from hocket.plan.instructions import Body, Step
from hocket.plan.kinds import Violation
from hocket.plan.plan import Plan
from hocket.plan.reader import PlanReader
from hocket.plan.values import OutputValues
from hocket.plan.walking import tries, walk


def verify(plan: Plan, scenario: Scenario, step: Fraction | None = None) -> list[Violation]:
    """Return what is wrong with the plan of one level, found by reading it; the kinds are in `plan.kinds`.

    `step` is that of the level in seconds: with it, parts of a step are held against the steps of levels
    inside. A value that arrives late because its source steps later is no fault: see `delays`.
    """
    facts = LevelFacts(scenario, step)
    values = OutputValues(facts) if plan.outputs == "consistent" else None
    reader = PlanReader(facts, values=values, tries=tries(plan.step))
    reader.follow(plan.step)
    if plan.step:
        check_ends(reader)
        check_rows(reader)
        check_admitted(reader)
        check_stale(reader, asked=False)
    if values is not None and not plan.output and reader.used and facts.feedthrough_output():
        reader.notes.add("never asked again", None, port=facts.feedthrough_output())
    asked = PlanReader(facts, "output", 1, values)
    _check_output_body(asked, plan.output)
    return [*reader.notes.found.values(), *asked.notes.found.values()]


def _check_output_body(reader: PlanReader, body: Body) -> None:
    """Read what is evaluated again; all simulators stand at the end of the step."""
    steps = [(place, i) for place, i in walk(body) if isinstance(i, Step)]
    for place, instruction in steps:
        reader.notes.add("step when asked", (place, instruction), instruction.sim)
    if body and not steps:
        reader.follow(body)
        check_rows(reader)
        check_admitted(reader)
        check_stale(reader, asked=True)
