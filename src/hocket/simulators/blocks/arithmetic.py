"""Blocks without a state: products, limits, formulas as text.

In:  inputs of the same instant
Out: what follows from them at once
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hocket.errors import Fault, ScenarioError, raise_faults, suggest_nearest
from hocket.model.arguments import set_fields
from hocket.model.ports import Port, PortLike, parse_value_ports
from hocket.simulators.block import Block
from hocket.simulators.blocks.parameter_checks import as_limits, as_units
from hocket.simulators.formulas import Number, Term, WrittenFormula, clip, read_formula


def _distinct(ports: tuple[Port, ...], what: str) -> tuple[Port, ...]:
    names = [port.name for port in ports]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ScenarioError(f"{what} has two ports named `{twice[0]}`", "inputs", "names that differ")
    return ports


@dataclass(frozen=True, init=False)
class Product(Block):
    """The product `y` of all inputs; `unit` is that of the product."""

    inputs: tuple[Port, ...]
    unit: str

    def __init__(self, inputs: Iterable[PortLike], unit: str = ""):
        as_units(unit=unit)
        ports = _distinct(parse_value_ports(inputs, "a `Product`"), "a `Product`")
        if not ports:
            raise ScenarioError("a `Product` has no inputs", "inputs", '["torque [N*m]", "speed [rad/s]"]')
        set_fields(self, inputs=ports, unit=unit)

    @property
    def outputs(self) -> tuple[Port, ...]:  # type: ignore[override]
        return (Port("y", self.unit, feedthrough=tuple(port.name for port in self.inputs)),)

    def show(self, t: Term, x: Sequence[Term], u: Sequence[Term]) -> Sequence[Number]:
        product = u[0]
        for factor in u[1:]:
            product = product * factor
        return [product]


@dataclass(frozen=True, init=False)
class Saturation(Block):
    """The input `u` within limits: `y`."""

    low: float | None
    high: float | None
    unit: str

    def __init__(self, low: float | None = None, high: float | None = None, unit: str = ""):
        as_units(unit=unit)
        if low is None and high is None:
            raise ScenarioError("a `Saturation` has no limit", "high", "`low`, `high`, or both")
        below, above = as_limits(low, high)
        set_fields(self, low=below, high=above, unit=unit)

    @property
    def inputs(self) -> tuple[Port, ...]:  # type: ignore[override]
        return (Port("u", self.unit),)

    @property
    def outputs(self) -> tuple[Port, ...]:  # type: ignore[override]
        return (Port("y", self.unit, feedthrough=("u",)),)

    def show(self, t: Term, x: Sequence[Term], u: Sequence[Term]) -> Sequence[Number]:
        return [clip(u[0], self.low, self.high)]


@dataclass(frozen=True, init=False)
class Expression(Block):
    """Formulas in the language of equations, one for each output: `Expression("p = torque * speed")`.

    Names on the right become inputs; `inputs` and `outputs` give them units and start values.
    `t` is the time in seconds. Texts are parsed, never run as code.
    """

    equations: tuple[str, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]

    def __init__(
        self,
        equations: str | Iterable[str],
        inputs: Iterable[PortLike] = (),
        outputs: Iterable[PortLike] = (),
    ):
        if not isinstance(equations, (str, Iterable)):
            raise ScenarioError(
                f"`{equations!r:.60}` is not a formula", "equations", "text, or a list of texts"
            )
        texts = (equations,) if isinstance(equations, str) else tuple(equations)
        formulas = [read_formula(each) for each in texts]
        if not formulas:
            raise ScenarioError("an `Expression` has no formula", "equations", '"p = torque * speed"')
        given = _distinct(parse_value_ports(inputs, "an `Expression`"), "an `Expression`")
        shown = _distinct(parse_value_ports(outputs, "an `Expression`"), "an `Expression`")
        results = [each.result for each in formulas]
        raise_faults([*_result_faults(results, given), *_output_faults(results, shown)])
        names = dict.fromkeys(port.name for port in given)
        names |= dict.fromkeys(name for each in formulas for name in each.names)
        results_used = [name for name in names if name in results]
        if results_used:
            what = f"`{results_used[0]}` is the result of a formula, and an input of another one"
            raise ScenarioError(what, "equations", "formulas of inputs only; put one into the other")
        units = {port.name: port for port in (*given, *shown)}
        set_fields(
            self,
            equations=texts,
            inputs=tuple(units.get(name, Port(name)) for name in names),
            outputs=tuple(
                replace(units.get(each.result, Port(each.result)), start=None, feedthrough=each.names)
                for each in formulas
            ),
        )

    def _formulas(self) -> list[WrittenFormula]:
        return [read_formula(each) for each in self.equations]

    def show(self, t: Term, x: Sequence[Term], u: Sequence[Term]) -> Sequence[Number]:
        values = {"t": t} | {port.name: term for port, term in zip(self.inputs, u, strict=True)}
        return [each.term(values) for each in self._formulas()]


def _result_faults(results: Sequence[str], given: Sequence[Port]) -> Iterable[Fault]:
    for name in sorted({name for name in results if results.count(name) > 1}):
        yield Fault(f"`{name}` is the result of two formulas", "equations", "names that differ")
    for port in given:
        if port.name in ("t", "pi"):
            yield Fault(f"`{port.name}` cannot name an input of a formula", "inputs", "another name")


def _output_faults(results: Sequence[str], shown: Sequence[Port]) -> Iterable[Fault]:
    for port in shown:
        if port.name not in results:
            hint = suggest_nearest(port.name, results)
            yield Fault(f"no formula gives `{port.name}`", "outputs", "", hint)
