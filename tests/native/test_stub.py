"""The stub of the compiled module names what the module has, with the same parameters."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import hocket
from hocket import _native

STUB = ast.parse((Path(hocket.__file__).parent / "_native.pyi").read_text())
CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}
FUNCTIONS = {node.name: node for node in STUB.body if isinstance(node, ast.FunctionDef)}


def public(names):
    return {name for name in names if not name.startswith("_")}


def members(node: ast.ClassDef) -> set[str]:
    """Return what a class of the stub declares."""
    found = set()
    for each in node.body:
        if isinstance(each, ast.FunctionDef):
            found.add(each.name)
        elif isinstance(each, ast.AnnAssign):
            found.add(each.target.id)
        elif isinstance(each, ast.Assign):
            found |= {target.id for target in each.targets}
    return found


def parameters(signature: str) -> list[str]:
    """Return the names in a signature as nanobind writes it; an unnamed one is `arg`."""
    plain = re.sub(r"ndarray\[[^\]]*\]", "ndarray", re.sub(r"\\\d+", "None", signature))
    tree = ast.parse(plain + ": ...").body[0]
    return names(tree)


def names(function: ast.FunctionDef) -> list[str]:
    arguments = function.args
    return [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def agree(stub: ast.FunctionDef, bound) -> bool:
    """Return whether a function of the stub takes what the compiled one takes."""
    [[signature, *_]] = bound.__nb_signature__
    real, written = parameters(signature), names(stub)
    return len(real) == len(written) and all(
        one == other or one.startswith("arg") for one, other in zip(real, written, strict=True)
    )


def test_both_name_the_same_things():
    aliases = {node.target.id for node in STUB.body if isinstance(node, ast.AnnAssign)}
    assert public({*CLASSES, *FUNCTIONS, *aliases}) == public(dir(_native))


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_classes_have_the_members_of_the_stub(name):
    real, node = getattr(_native, name), CLASSES[name]
    assert public(vars(real)) == public(members(node))
    assert [base.__name__ for base in real.__bases__ if base is not object] == [
        base.id for base in node.bases
    ]
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and hasattr(vars(real).get(each.name), "__nb_signature__"):
            assert agree(each, vars(real)[each.name]), each.name


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions_take_the_parameters_of_the_stub(name):
    assert agree(FUNCTIONS[name], getattr(_native, name))


def test_an_operation_is_any_kind_of_operation():
    kinds = {getattr(_native, name) for name in dir(_native) if name.endswith("Operation")}
    assert set(_native.Operation.__args__) == kinds - {_native.Operation}
