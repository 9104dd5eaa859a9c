"""Hierarchies as they are written: `{one, {two, three}}`, or `flat`.

In:  a text and the names of models
Out: a LevelGroup
"""

from __future__ import annotations

import re

from hocket.errors import ScenarioError
from hocket.nesting.hierarchy import LevelGroup

_PARTS = re.compile(r"[{}]|[^\s{},]+")


def parse_hierarchy(text: str, models: tuple[str, ...], where: str) -> LevelGroup:
    """Return the tree that a text describes; raises ScenarioError if it is none of these models."""
    if text == "flat":
        return LevelGroup(models)
    stack: list[list[str | LevelGroup]] = [[]]
    for part in _PARTS.findall(text):
        if part == "{":
            stack.append([])
        elif part == "}" and len(stack) > 1:
            group = LevelGroup(tuple(stack.pop()))
            stack[-1].append(group)
        elif part == "}":
            break
        else:
            stack[-1].append(part)
    outermost = stack[0][0] if len(stack) == 1 and len(stack[0]) == 1 else None
    if not isinstance(outermost, LevelGroup) or sorted(outermost.names()) != sorted(models):
        expected = f"`flat`, or all of {', '.join(models)} once, in braces: {{one, {{two, three}}}}"
        raise ScenarioError(f"`{text}` is no hierarchy of the models", where, expected)
    return outermost
