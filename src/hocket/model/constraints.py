"""Couplings that are not assignments: equations between ports that hold at all times.

In:  texts such as `left.x = right.x`
Out: frozen data; what the equations mean is worked out in equations.py
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from hocket.errors import Fault, ScenarioError, suggest_nearest
from hocket.model.arguments import check_names, set_fields

_EXAMPLE = '["left.x = right.x", "left.F + right.F = 0"]'
_KEYS = ("equations", "rates", "mu", "determines")


@dataclass(frozen=True)
class Constraint:
    """Equations between ports: `Constraint(("left.x = right.x", "left.F + right.F = 0"))`.

    They determine the inputs in them, which nothing else may drive. `rates` names the outputs that are time
    derivatives of others: `{"left.x": "left.v"}`. `mu` is how fast gaps between positions are closed where
    inputs act on accelerations, in 1/s (None: 1/step; 0: only speeds are kept equal). `determines` names
    inputs to be found though they stand in no equation: the force that keeps `robot.x = path.x`.
    """

    equations: tuple[str, ...]
    rates: Mapping[str, str] = field(default_factory=dict)
    mu: float | None = None
    determines: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        faults = [*self._argument_faults()]
        if faults:
            raise ScenarioError(faults)
        equations, determines = tuple(self.equations), tuple(self.determines)
        set_fields(self, equations=equations, rates=dict(self.rates), determines=determines)

    def _argument_faults(self) -> list[Fault]:
        if isinstance(self.equations, str) or not all(isinstance(each, str) for each in self.equations):
            return [Fault(f"`equations` is {self.equations!r:.60}", "equations", f"a list: {_EXAMPLE}")]
        faults = [] if self.equations else [Fault("there are no equations", "equations", _EXAMPLE)]
        rates: Any = self.rates
        if not isinstance(rates, Mapping) or not all(isinstance(p, str) for e in rates.items() for p in e):
            expected = 'outputs and their time derivatives: {"left.x": "left.v"}'
            faults.append(Fault(f"`rates` is {self.rates!r:.60}", "rates", expected))
        mu: Any = self.mu
        if mu is not None and (not isinstance(mu, (int, float)) or not 0.0 <= mu < math.inf):
            faults.append(Fault(f"`mu` is {mu!r}", "mu", "a number from 0 on, in 1/s, or None"))
        if isinstance(self.determines, str) or not all(isinstance(each, str) for each in self.determines):
            faults.append(Fault(f"`determines` is {self.determines!r:.60}", "determines", '["robot.F"]'))
        return faults

    def __hash__(self) -> int:
        return hash((self.equations, tuple(self.rates.items()), self.mu, self.determines))


def named_constraints(written: Mapping[str, Any], models: Collection[str] = ()) -> dict[str, Constraint]:
    """Return constraints from what was written: a Constraint, equations, or a table of its parts."""
    check_names(written, "constraint", f'{{"link": {_EXAMPLE}}}', models)
    return {name: _constraint(each, f"constraints.{name}") for name, each in written.items()}


def _constraint(each: Any, where: str) -> Constraint:
    try:
        if isinstance(each, Constraint):
            return each
        if isinstance(each, Mapping):
            for key in each:
                if key not in _KEYS:
                    raise ScenarioError(
                        f"a constraint has no `{key}`", where, "", suggest_nearest(str(key), _KEYS)
                    )
            return Constraint(**{"equations": (), **each})
        if isinstance(each, str):
            return Constraint((each,))
        return Constraint(tuple(each))
    except ScenarioError as error:
        raise ScenarioError([Fault(f.what, where, f.expected, f.hint) for f in error.faults]) from None
    except TypeError:
        raise ScenarioError(f"a constraint cannot be made of {each!r:.60}", where, _EXAMPLE) from None
