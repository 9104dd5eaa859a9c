"""A plan is data: the short list of instructions that one step of a level consists of.

In:  instructions written by an orchestrator, or by hand
Out: the same, printed in words and verified before anything runs
"""

from hocket.plan.accelerators import Accelerator, Aitken, Newton, QuasiNewton, Relax
from hocket.plan.delays import Delay, delays
from hocket.plan.instructions import (
    Admit,
    Body,
    Feed,
    Instruction,
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
from hocket.plan.walking import step_fractions, tries, walk

__all__ = [
    "KINDS",
    "Accelerator",
    "Admit",
    "Aitken",
    "Body",
    "Delay",
    "Feed",
    "Instruction",
    "Newton",
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
    "delays",
    "step_fractions",
    "tries",
    "verify",
    "walk",
]
