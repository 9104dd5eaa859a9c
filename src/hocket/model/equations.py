"""Equations between ports: read from text, evaluated, and followed along in time.

In:  texts such as `left.x = 2 * right.x`
Out: the residual left - right, and how fast it changes when the ports do

Texts are parsed, never run as code. Derivatives are exact: every number travels with its rate of change
(dual numbers, Wengert 1964).
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from hocket.errors import Fault, ScenarioError, suggest_nearest
from hocket.model.protocols import Value
from hocket.model.units import conversion

Dual: TypeAlias = tuple[Value, Value]
"""A number and its rate of change; each may be a row in the linear reading."""
Term: TypeAlias = Callable[[Sequence[Dual]], Dual]

_QUOTED = re.compile(r"`([^`]*)`")
_PLACE = "quoted_port_{}_"
_EXAMPLE = "text such as `left.x = right.x`"


def _or_nan(function: Callable[..., float], *numbers: Any) -> float:
    """Return what a function gives; not a number where it gives nothing, so that the engine says so."""
    try:
        return float(function(*numbers))
    except (ValueError, OverflowError, ZeroDivisionError):
        return math.nan


FUNCTIONS: Mapping[str, tuple[Callable[[float], float], Callable[[float], float]]] = {
    "sin": (math.sin, math.cos),
    "cos": (math.cos, lambda x: -math.sin(x)),
    "tan": (math.tan, lambda x: 1.0 + math.tan(x) ** 2),
    "sqrt": (math.sqrt, lambda x: 0.5 / math.sqrt(x)),
    "exp": (math.exp, math.exp),
    "log": (math.log, lambda x: 1.0 / x),
    "abs": (abs, lambda x: math.copysign(1.0, x)),
}
"""The functions that equations may use, each with its derivative."""


@dataclass(frozen=True)
class Equation:
    """An equation between ports; `Equation.of` reads one."""

    text: str
    paths: tuple[str, ...]
    """The ports in it, in the order of the text."""
    linear: bool
    """Whether its residual is a sum of ports, each times a number, and a number."""
    plain: tuple[str, ...]
    """The ports that are added as they are: they must have one unit."""
    _residual: Term

    @staticmethod
    def of(text: str) -> Equation:
        """Return the equation that a text writes; raises ScenarioError."""
        return _parse_equation(text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equation) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __reduce__(self) -> tuple[Any, ...]:
        return _parse_equation, (self.text,)

    def residual(self, values: Mapping[str, Value]) -> Value:
        """Return left - right."""
        return self._residual([(values[path], 0.0) for path in self.paths])[0]

    def residual_and_rate(self, values: Mapping[str, Value], rates: Mapping[str, Value]) -> Dual:
        """Return left - right, and its rate of change where the ports change at these rates."""
        return self._residual([(values[path], rates[path]) for path in self.paths])

    def partial(self, path: str, values: Mapping[str, Value]) -> Value:
        """Return the derivative of left - right by one port."""
        return self.residual_and_rate(values, {each: float(each == path) for each in self.paths})[1]

    def unit_faults(self, units: Mapping[str, str], where: str) -> Iterator[Fault]:
        """Yield which ports are added though their units differ; ports without a unit fit to all."""
        known = [(path, units[path]) for path in self.plain if units.get(path)]
        for path, unit in known[1:]:
            first, other = known[0]
            expected = "one unit, or the factor between them: `left.x = 0.001 * right.x`"
            try:
                same = conversion(unit, other) == (1.0, 0.0)
            except ValueError as error:
                yield Fault(f"`{first}` and `{path}` are added: {error}", where, expected)
                continue
            if not same:
                what = f"`{first}` is in `{other}`, `{path}` in `{unit}`, and they are added as they are"
                yield Fault(what, where, expected)


@cache
def _parse_equation(text: str) -> Equation:
    where = f"equation `{text}`"
    if not isinstance(text, str):
        raise ScenarioError(f"`{text!r:.60}` is not an equation", expected=_EXAMPLE)
    quoted = _QUOTED.findall(text)
    numbers = iter(range(len(quoted)))
    sides = _QUOTED.sub(lambda _: f" {_PLACE.format(next(numbers))} ", text).split("=")
    if len(sides) != 2 or not all(side.strip() for side in sides):
        what = f"`{text}` is not an equation"
        raise ScenarioError(what, expected=f"two sides and one `=` between them: {_EXAMPLE}")
    if "`" in "".join(sides):
        raise ScenarioError("a backtick without its partner", where, "odd names in backticks")
    reader = _EquationParser(where, {_PLACE.format(number): path for number, path in enumerate(quoted)})
    left, right = (reader.side(side) for side in sides)
    whole = ast.BinOp(left, ast.Sub(), right)
    term = reader.term(whole)
    if not reader.paths:
        raise ScenarioError(f"`{text}` has no ports", expected=_EXAMPLE)
    plain = tuple(dict.fromkeys(reader.path(node) for node in _summands(whole) if reader.is_port(node)))
    return Equation(text, tuple(reader.paths), reader.degree(whole) <= 1, plain, term)


def _summands(node: ast.expr) -> Iterator[ast.expr]:
    """Yield what is added up in a term."""
    match node:
        case ast.BinOp(left, ast.Add() | ast.Sub(), right):
            yield from _summands(left)
            yield from _summands(right)
        case ast.UnaryOp(ast.USub() | ast.UAdd(), operand):
            yield from _summands(operand)
        case _:
            yield node


class _EquationParser:
    """Turns parsed text into functions, and knows the ports met on the way."""

    def __init__(self, where: str, quoted: Mapping[str, str]):
        self.where = where
        self.quoted = quoted
        self.paths: dict[str, int] = {}

    def side(self, text: str) -> ast.expr:
        """Return one side of an equation, parsed."""
        try:
            return ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError):
            hint = "names that are not plain words stand in backticks: `` `left-arm.x` ``"
            what = f"`{text.strip():.200}` cannot be read"
            raise ScenarioError(what, self.where, "numbers, ports, + - * / ** and functions", hint) from None

    def is_port(self, node: ast.expr) -> bool:
        """Return whether a node names a port."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id != "pi"

    def path(self, node: ast.expr) -> str:
        """Return the path that a node writes."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        assert isinstance(node, ast.Name)
        return ".".join(self.quoted.get(part, part) for part in (node.id, *reversed(parts)))

    def words(self, node: ast.expr) -> str:
        """Return a node as it was written."""
        text = ast.unparse(node)
        for place, path in self.quoted.items():
            text = text.replace(place, path)
        return text

    def degree(self, node: ast.expr) -> int:
        """Return 0 for a number, 1 for a sum of ports times numbers, 2 for all else."""
        match node:
            case ast.BinOp(left, ast.Add() | ast.Sub(), right):
                return max(self.degree(left), self.degree(right))
            case ast.BinOp(left, ast.Mult(), right):
                return min(2, self.degree(left) + self.degree(right))
            case ast.BinOp(left, ast.Div(), right):
                return self.degree(left) if self.degree(right) == 0 else 2
            case ast.UnaryOp(_, operand):
                return self.degree(operand)
            case ast.BinOp(left, _, right):
                return 2 if self.degree(left) or self.degree(right) else 0
            case ast.Call(_, arguments):
                return 2 if any(self.degree(each) for each in arguments) else 0
        return 1 if self.is_port(node) else 0

    def term(self, node: ast.expr) -> Term:
        """Return the function that evaluates a node."""
        match node:
            case ast.Constant(value) if isinstance(value, (int, float)) and not isinstance(value, bool):
                return _constant(float(value))
            case ast.Name("pi"):
                return _constant(math.pi)
            case ast.Name() | ast.Attribute() if self.is_port(node):
                return _port(self.paths.setdefault(self.path(node), len(self.paths)))
            case ast.UnaryOp(ast.UAdd(), operand):
                return self.term(operand)
            case ast.UnaryOp(ast.USub(), operand):
                return _negative(self.term(operand))
            case ast.BinOp(left, operator, right) if type(operator) in _RULES:
                return _binary(operator, self.term(left), self.term(right))
            case ast.Call(ast.Name(name), [argument], []) if name in FUNCTIONS:
                return _function(name, self.term(argument))
            case ast.Call(ast.Name(name), _, _):
                hint = f"`{name}` takes one number" if name in FUNCTIONS else suggest_nearest(name, FUNCTIONS)
                raise ScenarioError(f"`{self.words(node)}` cannot be evaluated", self.where, "", hint)
        what = f"`{self.words(node)}` has no place in an equation"
        is_power = isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitXor)
        hint = "powers are written with `**`" if is_power else ""
        raise ScenarioError(what, self.where, "numbers, ports, + - * / **, " + ", ".join(FUNCTIONS), hint)


def _constant(number: float) -> Term:
    return lambda _: (number, 0.0)


def _port(index: int) -> Term:
    return lambda duals: duals[index]


def _negative(term: Term) -> Term:
    def evaluate(duals: Sequence[Dual]) -> Dual:
        x, dx = term(duals)
        return -x, -dx

    return evaluate


def _quotient(x: Value, dx: Value, y: Value, dy: Value) -> Dual:
    if isinstance(y, float) and y == 0.0:
        return math.nan, math.nan
    quotient = x / y
    return quotient, (dx - quotient * dy) / y


def _power(x: Value, dx: Value, y: Value, dy: Value) -> Dual:
    value = _or_nan(math.pow, x, y)
    rate = y * _or_nan(math.pow, x, y - 1.0) * dx if dx != 0.0 and y != 0.0 else 0.0
    return value, rate + (value * _or_nan(math.log, x) * dy if dy != 0.0 else 0.0)


_RULES: Mapping[type[ast.operator], Callable[[Value, Value, Value, Value], Dual]] = {
    ast.Add: lambda x, dx, y, dy: (x + y, dx + dy),
    ast.Sub: lambda x, dx, y, dy: (x - y, dx - dy),
    ast.Mult: lambda x, dx, y, dy: (x * y, dx * y + x * dy),
    ast.Div: _quotient,
    ast.Pow: _power,
}
"""What an operator makes of two dual numbers."""


def _binary(operator: ast.operator, one: Term, other: Term) -> Term:
    rule = _RULES[type(operator)]
    return lambda duals: rule(*one(duals), *other(duals))


def _function(name: str, term: Term) -> Term:
    function, derivative = FUNCTIONS[name]

    def evaluate(duals: Sequence[Dual]) -> Dual:
        x, dx = term(duals)
        return _or_nan(function, x), (_or_nan(derivative, x) * dx if dx != 0.0 else 0.0)

    return evaluate
