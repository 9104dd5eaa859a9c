"""A module imports only from those above it: the layout of the design, read off the source."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "hocket"

ORDER = [
    "errors", "arguments", "clock", "units", "bonds", "constraints", "hosts",
    "model", "equations", "signals", "_native", "simulators", "graph", "passing",
    "losing", "bonding", "constraining", "wiring",
    "plan", "feedthrough", "orchestrators", "passes", "engine", "parameters", "files", "analysis", "pacing",
    "execution", "running", "sweeping", "trusting", "nesting", "tuning", "report", "testing", "cli",
]  # fmt: skip

TOPS = {name: rank for rank, name in enumerate(ORDER)}
FORBIDDEN = {"utils", "common", "helpers", "core", "base", "manager"}


def imports(path: Path) -> list[str]:
    tree = ast.parse(path.read_text())
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    }
    found = []
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "hocket":
            found += [f"hocket.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
    return [name.split(".")[1] for name in found if name.startswith("hocket.")]


def test_every_module_stands_in_the_order():
    tops = {
        path.stem if path.is_file() else path.name for path in SOURCE.iterdir() if path.name[0] not in "._"
    }
    tops -= {"__pycache__", "__init__", "py", "py.typed"}
    tops = {top for top in tops if (SOURCE / f"{top}.py").exists() or (SOURCE / top).is_dir()}
    assert tops == set(ORDER) - {"_native"}
    assert not tops & FORBIDDEN


def test_modules_import_only_from_above():
    wrong = []
    for path in SOURCE.rglob("*.py"):
        top = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if top in ("__init__", "__main__"):
            continue
        wrong += [
            f"{path.name} imports {name}" for name in imports(path) if name in TOPS and TOPS[name] > TOPS[top]
        ]
    assert not wrong


def test_every_module_says_what_goes_in_and_out():
    silent = []
    for path in SOURCE.rglob("*.py"):
        text = ast.get_docstring(ast.parse(path.read_text())) or ""
        if "In:" not in text or "Out:" not in text:
            silent.append(str(path.relative_to(SOURCE)))
    assert not silent


def test_few_public_names():
    import hocket

    assert len(hocket.__all__) <= 40
    assert all(hasattr(hocket, name) for name in hocket.__all__)
