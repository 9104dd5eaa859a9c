"""A plan is data: the short list of instructions that one step of a level consists of.

In:  instructions written by an orchestrator, or by hand
Out: the same, printed in words and verified before anything runs
"""

from hocket.plan.accelerators import Accelerator, Aitken, Newton, QuasiNewton, Relax
from hocket.plan.control import Control, Estimate
from hocket.plan.delays import InputDelay, delays
from hocket.plan.instructions import (
    Adapt,
    Admit,
    Body,
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
from hocket.plan.kinds import KINDS, Violation
from hocket.plan.plan import OutputsMode, Plan
from hocket.plan.verify import verify
from hocket.plan.walking import adapts, first_part, step_fractions, tries, walk

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
    "delays",
    "first_part",
    "step_fractions",
    "tries",
    "verify",
    "walk",
]
