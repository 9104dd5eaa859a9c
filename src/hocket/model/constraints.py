"""Couplings that are not assignments: equations between ports that hold at all times.

In:  texts such as `left.x = right.x`
Out: frozen data; what the equations mean is worked out in equations.py
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, assert_never, get_args

from hocket.errors import Fault, ScenarioError, suggest_nearest
from hocket.model.arguments import check_names, choice_faults, is_flag, is_number, set_fields

_EXAMPLE = '["left.x = right.x", "left.F + right.F = 0"]'
_KEYS = ("equations", "rates", "mu", "determines", "law", "alpha", "beta", "weights", "closes", "once")
LawName: TypeAlias = Literal["sliding", "index-1", "index-2", "index-3", "baumgarte", "weighted"]


@dataclass(frozen=True)
class Constraint:
    """Equations between ports: `Constraint(("left.x = right.x", "left.F + right.F = 0"))`.

    They determine the inputs in them, which nothing else may drive. `rates` names the outputs that are time
    derivatives of others: `{"left.x": "left.v"}`. `mu` is how fast gaps between positions are closed where
    inputs act on accelerations, in 1/s (None: 1/step; 0: only speeds are kept equal). `determines` names
    inputs to be found though they stand in no equation: the force that keeps `robot.x = path.x`.

    `law` is what is asked for at the end of each step, of the residual g, where inputs act on accelerations
    (theory, section 13): "sliding" g' + mu g = 0; "index-1" g'' = 0, in the mean over the step; "index-2"
    g' = 0; "index-3" g = 0; "baumgarte" g'' + 2 alpha g' + beta^2 g = 0 (None: 1/step each); "weighted" w0 g
    + w1 g' + w2 g'' = 0 with these `weights`. With `closes` the equations need not hold at the start. With
    `once` inputs are corrected once a step, for the next one, without rollback: a discrete sliding mode.
    """

    equations: tuple[str, ...]
    rates: Mapping[str, str] = field(default_factory=dict)
    mu: float | None = None
    determines: tuple[str, ...] = ()
    law: LawName = "sliding"
    alpha: float | None = None
    beta: float | None = None
    weights: tuple[float, float, float] | None = None
    closes: bool = False
    once: bool = False

    def __post_init__(self) -> None:
        faults = [*self._argument_faults()]
        if faults:
            raise ScenarioError(faults)
        equations, determines = tuple(self.equations), tuple(self.determines)
        set_fields(self, equations=equations, rates=dict(self.rates), determines=determines)
        if self.weights is not None:
            set_fields(self, weights=tuple(float(each) for each in self.weights))

    def law_weights(self, step: float) -> tuple[float, float, float]:
        """Return the weights of g, g' and g'' in what is asked for, with these steps."""
        match self.law:
            case "index-1":
                return 0.0, 0.0, 1.0
            case "index-2":
                return 0.0, 1.0, 0.0
            case "index-3":
                return 1.0, 0.0, 0.0
            case "baumgarte":
                alpha = 1.0 / step if self.alpha is None else self.alpha
                beta = 1.0 / step if self.beta is None else self.beta
                return beta * beta, 2.0 * alpha, 1.0
            case "weighted":
                return self.weights or (0.0, 1.0, 0.0)
            case "sliding":
                return 1.0 / step if self.mu is None else self.mu, 1.0, 0.0
            case _:
                assert_never(self.law)

    def _law_faults(self) -> Iterator[Fault]:
        yield from choice_faults("law", self.law, get_args(LawName))
        for name, laws in (
            ("mu", "sliding"),
            ("alpha", "baumgarte"),
            ("beta", "baumgarte"),
            ("weights", "weighted"),
        ):
            if getattr(self, name) is not None and self.law != laws:
                yield Fault(f"`{name}` belongs to the law `{laws}`, and this one is `{self.law}`", name)
        for name in ("alpha", "beta"):
            value = getattr(self, name)
            if value is not None and not (is_number(value) and value >= 0.0):
                yield Fault(f"`{name}` is {value!r:.60}", name, "a number from 0 on, in 1/s, or None")
        weights: Any = self.weights
        listed = isinstance(weights, Sequence) and len(weights) == 3 and all(map(is_number, weights))
        if weights is not None and not (listed and any(weights)):
            yield Fault(f"`weights` is {weights!r:.60}", "weights", "three numbers: of g, g' and g''")
        if self.law == "weighted" and weights is None:
            yield Fault("the law `weighted` has no `weights`", "weights", "three numbers: of g, g' and g''")
        for name in ("closes", "once"):
            if not is_flag(getattr(self, name)):
                yield Fault(f"`{name}` is {getattr(self, name)!r:.60}", name, "True or False")
        if self.once and self.law not in ("sliding", "index-2"):
            what = f"the law `{self.law}` is solved by iteration, and `once` asks for one correction a step"
            yield Fault(what, "once", "the law `sliding` or `index-2`")

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
        return [*faults, *self._law_faults()]

    def __hash__(self) -> int:
        return hash((self.equations, tuple(self.rates.items()), self.mu, self.determines, self.law))


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
