"""Formulas as lists of operations: evaluated in Python, and by compiled code with the same bits.

In:  formulas written with operators, or text in the language of equations
Out: a Program: from given numbers to results, operation by operation

A `Tape` hands out `Term`s for the numbers that it is given; what is computed with them is written down. The
order of the operations is that in which they are written, so that both engines round alike.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from hocket.errors import ScenarioError, suggest_nearest

Number: TypeAlias = "Term | float"

OPERATIONS = (
    *("add", "subtract", "multiply", "divide", "power", "negative"),
    *("sin", "cos", "tan", "sqrt", "exp", "log", "abs", "floor"),
    *("least", "greatest", "less", "select", "uniform", "normal"),
)
"""What a program can do; the number of each is that of `Operation::Code` in native/engine/formulas.hpp."""
_CODES = {name: code for code, name in enumerate(OPERATIONS)}
FUNCTIONS = ("sin", "cos", "tan", "sqrt", "exp", "log", "abs")
"""What texts may call with one number, as equations do; `min` and `max` take two."""


class Term:
    """A number of a tape: one that it is given, a constant, or the result of an operation."""

    __slots__ = ("place", "tape")

    def __init__(self, tape: Tape, place: int):
        self.tape, self.place = tape, place

    def __add__(self, other: Number) -> Term:
        return self.tape.note("add", self, other)

    def __radd__(self, other: float) -> Term:
        return self.tape.note("add", other, self)

    def __sub__(self, other: Number) -> Term:
        return self.tape.note("subtract", self, other)

    def __rsub__(self, other: float) -> Term:
        return self.tape.note("subtract", other, self)

    def __mul__(self, other: Number) -> Term:
        return self.tape.note("multiply", self, other)

    def __rmul__(self, other: float) -> Term:
        return self.tape.note("multiply", other, self)

    def __truediv__(self, other: Number) -> Term:
        return self.tape.note("divide", self, other)

    def __rtruediv__(self, other: float) -> Term:
        return self.tape.note("divide", other, self)

    def __neg__(self) -> Term:
        return self.tape.note("negative", self)


class Tape:
    """Writes down what is computed with the numbers that it is given."""

    def __init__(self, given: int):
        self.given = tuple(Term(self, place) for place in range(given))
        self._constants: dict[float, int] = {}
        self._operations: dict[tuple[int, ...], int] = {}

    def constant(self, value: float) -> Term:
        """Return the term of a number that is known; its place is found when the program is made."""
        return Term(self, -1 - self._constants.setdefault(float(value), len(self._constants)))

    def note(self, name: str, *arguments: Number) -> Term:
        """Return the result of an operation; one that was written down before is not repeated."""
        places = [each.place if isinstance(each, Term) else self.constant(each).place for each in arguments]
        operation = (_CODES[name], *places, *[0] * (3 - len(places)))
        number = self._operations.setdefault(operation, len(self._operations))
        return Term(self, len(self.given) + number)

    def program(self, results: Sequence[Number]) -> Program:
        """Return what was written down, with these results."""
        terms = [each if isinstance(each, Term) else self.constant(each) for each in results]
        first, count = len(self.given), len(self._constants)

        def place(written: int) -> int:
            """Constants lie behind what is given, and operations behind them."""
            if written < 0:
                return first - 1 - written
            return written if written < first else written + count

        operations = tuple((code, *map(place, places)) for code, *places in self._operations)
        return Program(first, tuple(self._constants), operations, tuple(place(each.place) for each in terms))


@dataclass(frozen=True)
class Program:
    """Operations on registers: first what is given, then constants, then what each operation gives."""

    given: int
    constants: tuple[float, ...]
    operations: tuple[tuple[int, ...], ...]
    """Code and the registers of three arguments; those that are not needed are 0."""
    results: tuple[int, ...]

    @cached_property
    def _calls(self) -> list[tuple[Callable[..., float], tuple[int, ...]]]:
        return [
            (_FUNCTIONS[OPERATIONS[code]], tuple(places[: _ARGUMENTS.get(OPERATIONS[code], 2)]))
            for code, *places in self.operations
        ]

    def __call__(self, given: Sequence[float]) -> list[float]:
        """Return the results for these numbers."""
        registers = [*given, *self.constants]
        for function, places in self._calls:
            registers.append(function(*[registers[place] for place in places]))
        return [registers[place] for place in self.results]


def _or_nan(function: Callable[..., float]) -> Callable[..., float]:
    """Return what a function gives; not a number where it gives nothing, so that the engine says so."""

    def evaluate(*numbers: float) -> float:
        try:
            return function(*numbers)
        except (ValueError, OverflowError, ZeroDivisionError):
            return math.nan

    return evaluate


def _least(a: float, b: float) -> float:
    return a if a < b or a != a else b


def _greatest(a: float, b: float) -> float:
    return a if a > b or a != a else b


def _floor(a: float) -> float:
    return float(math.floor(a)) if math.isfinite(a) else a


_MASK = (1 << 64) - 1


def _mix(value: int) -> int:
    """Scramble 64 bits (SplitMix64; Steele, Lea and Flood 2014)."""
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & _MASK
    return value ^ (value >> 31)


def uniform(seed: float, number: float) -> float:
    """Return a number above 0 and below 1: the same for the same seed and number, both whole."""
    mixed = _mix((_mix((int(seed) + 0x9E3779B97F4A7C15) & _MASK) + int(number) * 0x9E3779B97F4A7C15) & _MASK)
    return ((mixed >> 12) + 0.5) * 2.0**-52


def normal(seed: float, number: float) -> float:
    """Return a number with mean 0 and standard deviation 1 (Box and Muller 1958)."""
    radius = math.sqrt(-2.0 * math.log(uniform(seed, 2.0 * number)))
    return radius * math.cos(2.0 * math.pi * uniform(seed, 2.0 * number + 1.0))


_FUNCTIONS: Mapping[str, Callable[..., float]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": _or_nan(lambda a, b: a / b),
    "power": _or_nan(math.pow),
    "negative": lambda a: -a,
    "sin": _or_nan(math.sin),
    "cos": _or_nan(math.cos),
    "tan": _or_nan(math.tan),
    "sqrt": _or_nan(math.sqrt),
    "exp": _or_nan(math.exp),
    "log": _or_nan(math.log),
    "abs": abs,
    "floor": _floor,
    "least": _least,
    "greatest": _greatest,
    "less": lambda a, b: 1.0 if a < b else 0.0,
    "select": lambda a, b, c: b if a != 0.0 else c,
    "uniform": uniform,
    "normal": normal,
}
_ARGUMENTS = dict.fromkeys(("negative", *FUNCTIONS, "floor"), 1) | {"select": 3}


def least(a: Term, b: Number) -> Term:
    """Return the smaller one."""
    return a.tape.note("least", a, b)


def greatest(a: Term, b: Number) -> Term:
    """Return the larger one."""
    return a.tape.note("greatest", a, b)


def clip(a: Term, low: float | None, high: float | None) -> Term:
    """Return a number within limits; None: there is none."""
    above = a if low is None else greatest(a, low)
    return above if high is None else least(above, high)


def less(a: Number, b: Number) -> Term:
    """Return 1 where a is below b, else 0."""
    tape = a.tape if isinstance(a, Term) else b.tape  # type: ignore[union-attr]
    return tape.note("less", a, b)


def select(condition: Term, one: Number, other: Number) -> Term:
    """Return one where a condition is not zero, else the other."""
    return condition.tape.note("select", condition, one, other)


# texts


@dataclass(frozen=True)
class WrittenFormula:
    """`power = torque * speed`: the name of a result, and what it is."""

    result: str
    names: tuple[str, ...]
    """What it is computed from, in the order of the text; `t` is the time, and no name."""
    body: Any

    def term(self, values: Mapping[str, Term]) -> Term:
        """Write the formula down on the tape that these terms are of; `t` is among them."""
        return _term(self.body, values, next(iter(values.values())).tape)


_HINT = "numbers, names, t, pi, + - * / **, min, max, " + ", ".join(FUNCTIONS)


def read_formula(text: object) -> WrittenFormula:
    """Return the formula that a text writes; raises ScenarioError. Texts are parsed, never run as code."""
    example = 'text such as "power = torque * speed"'
    if not isinstance(text, str) or text.count("=") != 1:
        raise ScenarioError(f"`{text!r:.60}` is not a formula", "equations", example)
    result, _, written = (part.strip() for part in text.partition("="))
    if not result.isidentifier() or result in ("t", "pi", "min", "max", *FUNCTIONS):
        raise ScenarioError(f"`{result:.60}` cannot name the result of a formula", "equations", example)
    where = f"formula `{text:.200}`"
    try:
        body = ast.parse(written, mode="eval").body
        names = tuple(dict.fromkeys(_names(body, where)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ScenarioError(f"`{written:.200}` cannot be read", where, _HINT) from None
    if result in names:
        what = f"`{result}` is computed from itself"
        raise ScenarioError(what, where, "a loop through another model")
    return WrittenFormula(result, tuple(name for name in names if name != "t"), body)


def _names(node: ast.expr, where: str) -> list[str]:
    """Return the names in a formula, `pi` aside; raises ScenarioError for what has no place in it."""
    match node:
        case ast.Constant(value) if isinstance(value, (int, float)) and not isinstance(value, bool):
            float(value)
            return []
        case ast.Name("pi"):
            return []
        case ast.Name(name):
            return [name]
        case ast.UnaryOp(ast.UAdd() | ast.USub(), operand):
            return _names(operand, where)
        case ast.BinOp(left, operator, right) if type(operator) in _OPERATORS:
            return [*_names(left, where), *_names(right, where)]
        case ast.Call(ast.Name(name), [argument], []) if name in FUNCTIONS:
            return _names(argument, where)
        case ast.Call(ast.Name("min" | "max"), [one, other], []):
            return [*_names(one, where), *_names(other, where)]
        case ast.Call(ast.Name(name), _, _):
            takes = "takes one number" if name in FUNCTIONS else ""
            takes = "takes two numbers" if name in ("min", "max") else takes
            hint = f"`{name}` {takes}" if takes else suggest_nearest(name, ("min", "max", *FUNCTIONS))
            raise ScenarioError(f"`{ast.unparse(node):.200}` cannot be evaluated", where, _HINT, hint)
    is_power = isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitXor)
    hint = "powers are written with `**`" if is_power else ""
    raise ScenarioError(f"`{ast.unparse(node):.200}` has no place in a formula", where, _HINT, hint)


_OPERATORS: Mapping[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.Pow: "power",
}


def _term(node: ast.expr, values: Mapping[str, Term], tape: Tape) -> Term:
    match node:
        case ast.Constant(value):
            return tape.constant(float(value))  # type: ignore[arg-type]
        case ast.Name("pi"):
            return tape.constant(math.pi)
        case ast.Name(name):
            return values[name]
        case ast.UnaryOp(ast.UAdd(), operand):
            return _term(operand, values, tape)
        case ast.UnaryOp(_, operand):
            return -_term(operand, values, tape)
        case ast.BinOp(left, operator, right):
            return tape.note(
                _OPERATORS[type(operator)], _term(left, values, tape), _term(right, values, tape)
            )
        case ast.Call(ast.Name(name), arguments):
            terms = [_term(each, values, tape) for each in arguments]
            return tape.note({"min": "least", "max": "greatest"}.get(name, name), *terms)
    raise AssertionError(ast.dump(node))  # `_names` has refused it
