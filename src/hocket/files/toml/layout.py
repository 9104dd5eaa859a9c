"""How a written file looks: which tables get a header, where long arrays are broken.

In:  nested tables of plain values
Out: TOML text that people like to read

Keys and single values are formatted by `tomli_w`, which would move connections that are tables behind those
that are texts, and so change their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import tomli_w

from hocket.files.toml.table_kinds import Section

_WIDTH = 100


def format_document(section: Section) -> str:
    """Return the TOML text of the outermost table."""
    return "\n".join(_section_lines(section, "")).lstrip("\n") + "\n"


def _section_lines(section: Section, path: str) -> Iterator[str]:
    inner = {name: value for name, value in section.items() if isinstance(value, Section)}
    if path and (len(inner) < len(section) or not section):
        yield f"\n[{path}]"
    for name, value in section.items():
        if name not in inner:
            yield format_assignment(name, value)
    for name, value in inner.items():
        yield from _section_lines(value, f"{path}.{_format_key(name)}" if path else _format_key(name))


def format_assignment(name: str, value: Any) -> str:
    """Return a key with its value, as it stands in a table."""
    key = _format_key(name)
    if isinstance(value, str) and "\n" in value:
        return f"{key} = {_format_long_text(value)}"
    line = f"{key} = {_format_inline(value)}"
    if len(line) <= _WIDTH or not isinstance(value, list):
        return line
    rows: list[str] = []
    for item in map(_format_inline, value):
        # numbers and short texts share a line, rows of a matrix do not
        if rows and item[0] not in "[{" and len(rows[-1]) + len(item) + 2 <= _WIDTH:
            rows[-1] += f" {item},"
        else:
            rows.append(f"    {item},")
    return "\n".join([f"{key} = [", *rows, "]"])


def _format_long_text(value: str) -> str:
    """Return a text of many lines as it looks, where that can be."""
    plain = "'''" not in value and not any((ord(c) < 32 and c not in "\n\t") or c == "\x7f" for c in value)
    return f"'''\n{value}'''" if plain and not value.endswith("'") else _format_inline(value)


def _format_inline(value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{_format_key(name)} = {_format_inline(item)}" for name, item in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_format_inline, value))}]"
    if type(value) is float:
        return repr(value)  # as tomli_w does, but there may be a million
    return tomli_w.dumps({"x": value})[len("x = ") : -1]


@lru_cache
def _format_key(name: str) -> str:
    return tomli_w.dumps({name: 0})[: -len(" = 0\n")]
