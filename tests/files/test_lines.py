"""The line of every key, in every way TOML has to write one."""

import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from hocket.files.toml.syntax import KeyLines

TEXT = '''\
# a comment with [brackets] and = signs
step = "10 ms"   # the rest
note = """
[models.not_a_table]
step = "1 s" \\""" still text
"""
path = 'C:\\[x]'

[run]
stop = 1979-05-27 07:32:00
[models.left]
A = [
  [0, 1],  # first
  [-0.2,
   -0.3],
]
ports = [{ name = "x", unit = "m" }, { name = "v" },
  { name = "a", "strange key" = [1, 2] }]

[[axles]]
load = 1
[[axles]]
load = 2
[axles.wheel]
size = 3
[[axles.bolts]]
torque = 4

[connections]
right.force = "left.force"
"left.x" = { from = "right.x", extrapolation.type = "nepce" }
axle."wheel.x".y = "z"
'''


def test_every_form_of_key() -> None:
    lines = KeyLines(TEXT)
    expected = {
        ("step",): 2,
        ("note",): 3,
        ("path",): 7,
        ("run",): 9,
        ("run", "stop"): 10,
        ("models",): 11,
        ("models", "left"): 11,
        ("models", "left", "A"): 12,
        ("models", "left", "A", 0, 1): 13,
        ("models", "left", "A", 1): 14,
        ("models", "left", "A", 1, 1): 15,
        ("models", "left", "ports", 1, "name"): 17,
        ("models", "left", "ports", 2, "strange key", 1): 18,
        ("axles",): 20,
        ("axles", 0, "load"): 21,
        ("axles", 1): 22,
        ("axles", 1, "load"): 23,
        ("axles", 1, "wheel", "size"): 25,
        ("axles", 1, "bolts", 0, "torque"): 27,
        ("connections", "right"): 30,
        ("connections", "right", "force"): 30,
        ("connections", "left.x", "extrapolation", "type"): 31,
        ("connections", "axle", "wheel.x", "y"): 32,
    }
    assert {keys: lines.of(keys) for keys in expected} == expected
    assert lines.repeated == []


def test_a_key_that_is_not_there_has_the_line_of_its_table() -> None:
    lines = KeyLines(TEXT)
    assert lines.of(("models", "left", "B")) == 11
    assert lines.of(("connections", "left.x", "missing")) == 31
    assert lines.of(("nothing",)) is None
    assert lines.of(()) is None


def test_keys_given_twice() -> None:
    lines = KeyLines('a = 1\nb.c = 2\n[t]\nx = 1\n[u]\n"x" = 1\n[t]\n[v]\ny = {z = 1, z = 2}\ny = 3\n')
    assert lines.repeated == [(("t",), 3, 7), (("v", "y", "z"), 9, 9), (("v", "y"), 9, 10)]


def test_any_text_is_survived() -> None:
    for text in (
        "",
        "[",
        "[[a",
        "a = [1, 2",
        "a = {",
        "= 3",
        "a = }\nb = 1",
        '"""',
        "a.b",
        "a = [}, {]]\nb = 1",
        "]",
    ):
        KeyLines(text)
    assert KeyLines("a = }\nb = 1").of(("b",)) == 2


@given(st.text(alphabet="ab.=[]{},\n\"'# \\1", max_size=60))
def test_noise_is_survived(text: str) -> None:
    KeyLines(text)


_LEAVES = st.one_of(
    st.integers(), st.text(max_size=5), st.lists(st.text(max_size=3), max_size=3), st.floats(0, 1)
)
_TABLES = st.recursive(
    st.lists(_LEAVES, max_size=3).map(tuple),
    lambda inner: st.lists(
        st.one_of(_LEAVES, inner, st.lists(inner, min_size=1, max_size=2)), max_size=4
    ).map(tuple),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(_TABLES, st.sampled_from(["k{}", "k {}", "k.{}", 'k"{}']))
def test_the_line_holds_the_key(shape: tuple[object, ...], pattern: str) -> None:
    count = 0
    known: dict[tuple[str | int, ...], str] = {}

    def table(items: tuple[object, ...], path: tuple[str | int, ...]) -> dict[str, object]:
        nonlocal count
        made: dict[str, object] = {}
        for item in items:
            count += 1
            key = pattern.format(count)
            here = (*path, key)
            known[here] = tomli_w.dumps({key: 0}).removesuffix(" = 0\n")
            if isinstance(item, tuple):
                made[key] = table(item, here)
            elif isinstance(item, list) and item and isinstance(item[0], tuple):
                made[key] = [table(inner, (*here, number)) for number, inner in enumerate(item)]
            else:
                made[key] = item
        return made

    text = tomli_w.dumps(table(shape, ()))
    lines = KeyLines(text)
    for path, key in known.items():
        line = lines.of(path)
        assert line is not None
        assert key in text.split("\n")[line - 1]
