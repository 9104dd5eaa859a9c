"""Blocks for loops, by name: signals, arithmetic, controllers, and what tells how good a loop is.

In:  parameters
Out: models, to be connected like any others; `docs/blocks.md` has a table of them
"""

from hocket.analysis.loop_metrics import Margins, StepMetrics, margins, step_metrics
from hocket.simulators.blocks.arithmetic import Expression, Product, Saturation
from hocket.simulators.blocks.control import PID, Relay
from hocket.simulators.blocks.delay import Delay
from hocket.simulators.blocks.motion import Integrator, RateLimiter, TransferFunction
from hocket.simulators.blocks.signals import Noise, Pulse, Ramp, Sine, Step
from hocket.simulators.state_space import Gain, Sum

__all__ = [
    "PID",
    "Delay",
    "Expression",
    "Gain",
    "Integrator",
    "Margins",
    "Noise",
    "Product",
    "Pulse",
    "Ramp",
    "RateLimiter",
    "Relay",
    "Saturation",
    "Sine",
    "Step",
    "StepMetrics",
    "Sum",
    "TransferFunction",
    "margins",
    "step_metrics",
]
