"""A plan is data: the short list of instructions that one step of a level consists of.

In:  instructions written by an orchestrator, or by hand
Out: the same, printed in words and verified before anything runs
"""

from hocket.plan.accelerators import Accelerator, Aitken, Newton, QuasiNewton, Relax
from hocket.plan.instructions import (
    Adapt,
    Admit,
    Body,
    Control,
    Estimate,
    Feed,
    Instruction,
    Next,
    Read,
    Record,
    Repeat,
    Restore,
    Save,
    Solve,
    Step,
    Times,
    Together,
    Try,
)
from hocket.plan.plan import OutputsMode, Plan
from hocket.plan.traverse import adapts, first_part, step_fractions, tries, walk
from hocket.plan.verify.delays import InputDelay, find_delays
from hocket.plan.verify.verifier import verify_plan
from hocket.plan.verify.violations import KINDS, Violation

__all__ = [
    "KINDS",
    "Accelerator",
    "Adapt",
    "Admit",
    "Aitken",
    "Body",
    "Control",
    "Estimate",
    "Feed",
    "InputDelay",
    "Instruction",
    "Newton",
    "Next",
    "OutputsMode",
    "Plan",
    "QuasiNewton",
    "Read",
    "Record",
    "Relax",
    "Repeat",
    "Restore",
    "Save",
    "Solve",
    "Step",
    "Times",
    "Together",
    "Try",
    "Violation",
    "adapts",
    "find_delays",
    "first_part",
    "step_fractions",
    "tries",
    "verify_plan",
    "walk",
]
