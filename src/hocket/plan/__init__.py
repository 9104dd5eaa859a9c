"""A plan is data: the short list of instructions that one step of a level consists of.

In:  instructions written by an orchestrator, or by hand
Out: the same, printed in words and verified before anything runs
"""

from hocket.model.composite import OutputsMode
from hocket.plan.instructions import (
    Adapt,
    Admit,
    Body,
    Commit,
    Control,
    Estimate,
    Feed,
    Instant,
    Instruction,
    Next,
    React,
    Read,
    Receive,
    Record,
    Repeat,
    Restore,
    Save,
    Send,
    Solve,
    Step,
    Times,
    Together,
    Try,
    adapts,
    first_part,
    step_fractions,
    tries,
    walk,
)
from hocket.plan.plan import Plan

# fmt: off
__all__ = [  # noqa: RUF022 - in the order of the story
    # a plan, and what it is made of
    "Plan", "OutputsMode", "Body", "Instruction",
    # values
    "Admit", "Feed", "Read", "Record", "Solve",
    # steps, and steps made again
    "Step", "Times", "Together", "Next", "Try", "Adapt", "Control", "Estimate", "Save", "Restore", "Repeat",
    # events
    "Instant", "React", "Commit",
    # what passes between hosts
    "Send", "Receive",
    # going through a plan
    "walk", "tries", "adapts", "first_part", "step_fractions",
]
# fmt: on
