"""A plan is data: the short list of instructions that one step of a level consists of.

In:  instructions written by an orchestrator, or by hand
Out: the same, printed in words and verified before anything runs
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hocket.model.composite import OutputsMode
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
from hocket.plan.plan import Plan
from hocket.plan.traverse import adapts, first_part, step_fractions, tries, walk

if TYPE_CHECKING:
    from hocket.plan.accelerators import Accelerator, Aitken, Newton, QuasiNewton, Relax
    from hocket.plan.verify.verifier import InputDelay, find_delays, verify_plan
    from hocket.plan.verify.violations import KINDS, Violation
else:
    _LATER = {
        **dict.fromkeys(("Accelerator", "Aitken", "Newton", "QuasiNewton", "Relax"), "accelerators"),
        **dict.fromkeys(("InputDelay", "find_delays"), "verify.verifier"),
        **dict.fromkeys(("KINDS", "Violation"), "verify.violations"),
        "verify_plan": "verify.verifier",
    }

    def __getattr__(name: str) -> Any:
        """Return what not every plan needs, imported when it is first used."""
        if name not in _LATER:
            raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
        return getattr(import_module(f"hocket.plan.{_LATER[name]}"), name)


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
