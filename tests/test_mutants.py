"""`make mutants` tries what it says: the changed code, not the work tree."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("coverage")
TOOLS = Path(__file__).parents[1] / "tools"
SOURCE = """LIMIT = 3


def double(x):
    return x * 2


def clip(x):
    return min(x, LIMIT)


def never(x):
    return x + 1
"""
TEST = """from hocket.engine.arithmetic import clip, double


def test_double():
    assert double(3) == 6


def test_clip():
    assert clip(5) == 3
"""


@pytest.fixture
def mutants(monkeypatch):
    """Return `tools/mutants.py`."""
    monkeypatch.syspath_prepend(str(TOOLS))
    import mutants

    yield mutants
    for name in ("mutants", "mutants_server"):
        sys.modules.pop(name, None)


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="children are forked")
def test_mutants_are_tried_in_the_copy_also_in_editable_installations(mutants, tmp_path):
    """Each change by its verdict: the package in the copy is not the one that is installed."""
    root, copied = tmp_path / "root", tmp_path / "copied"
    for folder in ("src/hocket/engine", "tests/engine"):
        (root / folder).mkdir(parents=True)
    for package in ("hocket", "hocket/engine"):
        (root / "src" / package / "__init__.py").write_text("")
    (root / "src/hocket/engine/arithmetic.py").write_text(SOURCE)
    (root / "tests/engine/test_arithmetic.py").write_text(TEST)
    tree = mutants.Tree(root)
    mutants.copy_tree(root, copied)
    server = mutants.Server(copied, ["tests/engine/test_arithmetic.py"])
    traces = mutants.Traces(tree, tmp_path / "traces")
    found = {}
    for mutant in tree.mutants("src/hocket/engine/arithmetic.py"):
        said, by, count, _ = mutants.try_in(server, mutant, tree, traces)
        found[mutant.before, mutant.after] = said, by.partition("::")[2], count
    server.close()
    assert found == {
        ("3", "4"): ("killed", "test_clip", 2),  # in a process of its own: a name is bound on import
        ("x * 2", "x / 2"): ("killed", "test_double", 2),
        ("2", "3"): ("killed", "test_double", 2),
        ("x + 1", "x - 1"): ("survived", "", 0),
        ("1", "2"): ("survived", "", 0),
    }


def test_what_executes_on_import_needs_a_process_of_its_own(mutants):
    from mutants_server import changed_functions

    def change(before, after):
        codes = (compile(text, "file", "exec") for text in (SOURCE + before, SOURCE + after))
        found = changed_functions(*codes)
        return None if found is None else [old.co_qualname for old, _ in found]

    inner = "def outer(a, b={}):\n    def inner():\n        return a + {}\n    return inner\n"
    assert change(inner.format(1, 2), inner.format(1, 2)) == []
    assert change(inner.format(1, 2), inner.format(1, 3)) == ["outer", "outer.<locals>.inner"]
    assert change(inner.format(1, 2), inner.format(2, 2)) is None  # a default
    assert change("class A:\n    x = 1\n", "class A:\n    x = 2\n") is None
    method = "class A:\n    def f(self):\n        return {}\n"
    assert change(method.format(1), method.format(1.0)) == ["A.f"]  # equal numbers, other types
