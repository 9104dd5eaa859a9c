"""Change the source in one place at a time and see whether a test notices: `python tools/mutants.py`.

In:  the packages below, a sample size, a seed, a time limit
Out: how many mutants were killed; a table of the survivors, beside a file that a later call goes on from

Each mutant is tried in a copy of the tree, never in the work tree, against the test files beside it: those of
the module's own name, those that import it, those of its room and of rooms that try it through a run.
"""

from __future__ import annotations

import argparse
import ast
import copy
import fnmatch
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from queue import SimpleQueue

PACKAGES = (
    "src/hocket/model/extrapolators.py",
    "src/hocket/orchestrators/*",
    "src/hocket/engine/*",
    "src/hocket/analysis/*",
)
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.MatMult: ast.Mult,
}
DRAWING = ("draw", "plot")
"""Names of functions that draw pictures, which people look at and tests do not."""
PATIENCE = 240.0
"""Seconds that the tests of one mutant are given; if all pass that long, it has survived."""
HANGING = 60.0
"""Seconds in which no test ends: the mutant hangs, which counts as killed."""
FILES = 12
"""As many test files at most are tried for a mutant: the nearest first."""
NEIGHBOURS = {
    "model": ("engine", "laws", "order"),
    "orchestrators": ("plan", "order"),
    "engine": ("orchestrators", "scenarios", "native", "order"),
    "analysis": ("cli",),
}
"""Folders of tests that try the modules of a room through runs or commands."""
ELSEWHERE = {
    "step_control": ("adaptive",),
    "iteration": ("iterate", "iterations"),
    "acceleration": ("iterate", "iterations"),
    "algebraic_loops": ("iterations", "initialisation"),
    "initialise": ("initialisation",),
    "rollback": ("iterate", "adaptive"),
    "ledger": ("ledger", "energy_control"),
    "message_counter": ("distribution",),
    "selection": ("run", "recording"),
    "rows": ("run", "recording"),
    "program": ("bits", "loop", "ledger"),
    "matrices": ("bits", "balanced_bits"),
    "bond_energy": ("bond_notes", "balanced_analysis"),
    "coupling_check": ("checking", "check"),
    "recommended_change": ("checking", "check"),
    "defect_estimate": ("run_error",),
    "linear_models": ("leaps", "models", "driven", "sampling"),
    "forced_response": ("driven",),
    "linearisation": ("models", "identify"),
    "pulse_responses": ("identify", "black_boxes"),
    "error_prediction": ("prediction",),
    "exact_solution": ("exact", "intervals"),
    "structured_singular_value": ("radius",),
    "stability_map": ("maps",),
    "stability_intervals": ("intervals", "largest_step", "searches"),
    "run_observation": ("driven", "identify"),
}
"""Test files, wherever they stand, that are about a module under another name."""


@dataclass(frozen=True)
class Mutant:
    """One change of one place of the source."""

    module: str
    """The file, from the root of the tree."""
    line: int
    place: int
    """The number of the change among all of its file."""
    before: str
    after: str
    twin: int
    """The number among changes of the file that read the same."""

    @property
    def key(self) -> str:
        """What tells it from all others, also after lines have moved."""
        return f"{self.module}: {self.before} -> {self.after} ({self.twin})"


def mutations(tree: ast.Module) -> Iterator[tuple[ast.AST, str, ast.AST]]:
    """Yield every node with what may stand in its place: one change each."""
    quiet = {id(each) for node in ast.walk(tree) for each in _unheard(node)}
    for node in ast.walk(tree):
        if id(node) in quiet:
            continue
        for after in _changes(node):
            yield node, ast.unparse(node), after


def _unheard(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what has no consequence: annotations, decorators, imports for type checkers, words, pictures."""
    match node:
        case ast.AnnAssign(annotation=annotation) | ast.arg(annotation=ast.expr() as annotation):
            yield from ast.walk(annotation)
        case ast.FunctionDef(name=name) if name.lstrip("_").startswith(DRAWING):
            yield from ast.walk(node)
        case ast.keyword(arg="strict"):  # of zip: what is zipped has one length
            yield from ast.walk(node)
        case ast.FunctionDef() | ast.ClassDef():
            inner = [*node.decorator_list, *filter(None, [getattr(node, "returns", None)])]
            yield from (each for outer in inner for each in ast.walk(outer))
        case ast.JoinedStr() | ast.Assert():
            yield from ast.walk(node)
        case ast.If(test=test) if "TYPE_CHECKING" in ast.unparse(test):
            yield from ast.walk(node)


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare(ops=[op, *_]) if type(op) in COMPARISONS:
            yield _with(node, ops=[COMPARISONS[type(op)](), *node.ops[1:]])
        case ast.BinOp(op=op) if type(op) in OPERATORS and not _is_text(node):
            yield _with(node, op=OPERATORS[type(op)]())
        case ast.AugAssign(op=op) if type(op) in OPERATORS:
            yield _with(node, op=OPERATORS[type(op)]())
        case ast.BoolOp(op=op):
            yield _with(node, op=ast.Or() if isinstance(op, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.UnaryOp(op=ast.USub(), operand=operand) if not isinstance(operand, ast.Constant):
            yield operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
        case ast.Constant(value=float(value)):
            yield ast.Constant(value * 2.0 if value else 1.0)
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) if not isinstance(
            test, ast.Compare | ast.BoolOp | ast.UnaryOp
        ):
            yield _with(node, test=ast.UnaryOp(ast.Not(), test))
        case ast.Expr(value=ast.Call()) | ast.AugAssign():
            yield ast.Pass()
        case ast.Continue():
            yield ast.Break()
        case ast.Break():
            yield ast.Continue()


def _with(node: ast.AST, **fields: object) -> ast.AST:
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(
        isinstance(each, ast.JoinedStr) or (isinstance(each, ast.Constant) and isinstance(each.value, str))
        for each in sides
    )


class Swap(ast.NodeTransformer):
    """Puts one node in another's place."""

    def __init__(self, old: ast.AST, new: ast.AST):
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        """Return the node, or what stands for it."""
        return self.new if node is self.old else self.generic_visit(node)


@dataclass(frozen=True)
class Tree:
    """A tree of source and tests."""

    root: Path

    @cached_property
    def modules(self) -> list[str]:
        """The files that are changed."""
        files = (str(path.relative_to(self.root)) for path in sorted((self.root / "src").rglob("*.py")))
        return [file for file in files if any(fnmatch.fnmatch(file, pattern) for pattern in PACKAGES)]

    def mutants(self, module: str) -> list[Mutant]:
        """Return all changes of a file."""
        tree = ast.parse((self.root / module).read_text())
        found: list[Mutant] = []
        twins: Counter[tuple[str, str]] = Counter()
        for place, (node, before, after) in enumerate(mutations(tree)):
            words = _short(before), _short(ast.unparse(after))
            twins[words] += 1
            found.append(Mutant(module, getattr(node, "lineno", 0), place, *words, twins[words]))
        return found

    def text(self, mutant: Mutant) -> str:
        """Return a file with one change."""
        tree = ast.parse((self.root / mutant.module).read_text())
        node, _, after = list(mutations(tree))[mutant.place]
        return ast.unparse(ast.fix_missing_locations(Swap(node, after).visit(tree)))

    @cached_property
    def imports(self) -> dict[str, set[str]]:
        """What each test file imports, as dotted names."""
        direct: dict[str, set[str]] = {}
        for path in sorted((self.root / "tests").rglob("test_*.py")):
            found: set[str] = set()
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and node.module:
                    found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
                elif isinstance(node, ast.Import):
                    found |= {alias.name for alias in node.names}
            direct[str(path.relative_to(self.root))] = found
        return direct

    def tests_of(self, module: str) -> list[str]:
        """Return the test files beside a module, the nearest first."""
        inner = Path(module).relative_to("src/hocket").with_suffix("")
        dotted = ".".join(["hocket", *inner.parts]).removesuffix(".__init__")
        room, name = inner.parts[0], inner.name
        ranked: list[tuple[int, int, str]] = []
        for file, imports in self.imports.items():
            path = self.root / file
            folder, own = Path(file).parts[1], path.stem.removeprefix("test_")
            near = [name] * (folder == room) + list(ELSEWHERE.get(name, ()))
            if any(own == each or own.startswith(f"{each}_") for each in near):
                rank = 0
            elif dotted in imports:
                rank = 1
            elif folder == room:
                rank = 2
            elif folder in NEIGHBOURS.get(room, ()):
                rank = 3
            else:
                continue
            ranked.append((rank, path.stat().st_size, file))
        return [file for _, _, file in sorted(ranked)][:FILES]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 90 else line[:87] + "..."


def copy_tree(root: Path, folder: Path) -> None:
    """Copy what tests need."""
    for name in ("src", "tests", "examples", "docs", "tools", "native", "benchmarks"):
        if (root / name).exists():
            shutil.copytree(root / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "CMakeLists.txt", "CHANGELOG.md"):
        if (root / name).exists():
            shutil.copy(root / name, folder / name)


def native_module() -> Path:
    """Return the compiled core that Python imports here."""
    from hocket import _native

    return Path(_native.__file__)


def verdict(copied: Path, tests: list[str]) -> tuple[str, str]:
    """Return what the tests say of a mutant that stands in a copy of the tree, and which one spoke."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(copied / "src"), str(copied / "tests")]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "HOCKET_NO_BROWSER": "1",
    }
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-vv",
        "--tb=no",
        "-p",
        "no:cacheprovider",
        "-m",
        "not slow",
    ]
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            [*words, *tests],
            cwd=copied,
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        begin = heard = time.monotonic()
        size = 0
        while process.poll() is None:
            time.sleep(0.2)
            now, written = time.monotonic(), os.fstat(output.fileno()).st_size
            heard, size = (now, written) if written > size else (heard, size)
            if now > heard + HANGING or now > begin + PATIENCE:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return ("hangs" if now > heard + HANGING else "survived"), ""
        output.seek(0)
        said = output.read()
    if process.returncode == 0:
        return "survived", ""
    failed = [line for line in said.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return "killed", failed[0].split(" - ")[0] if failed else said.strip()[-200:]


def sample(tree: Tree, count: int, seed: int) -> list[Mutant]:
    """Return so many changes, drawn from all; one stays drawn when the source changes elsewhere."""
    every = [mutant for module in tree.modules for mutant in tree.mutants(module)]
    return sorted(every, key=lambda each: sha256(f"{seed} {each.key}".encode()).digest())[:count]


def remembered(path: Path) -> dict[str, dict[str, object]]:
    """Return what calls before have found, by the key of the mutant."""
    if not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {line["key"]: line for line in lines}


def table(results: list[dict[str, object]]) -> str:
    """Return the survivors as a table, after the counts."""
    survived = [each for each in results if each["verdict"] == "survived"]
    killed = len(results) - len(survived)
    share = f" ({killed / len(results):.1%})" if results else ""
    lines = [
        f"{len(results)} mutants: {killed} killed{share}, {len(survived)} survived",
        "",
        "| place | before | after |",
        "|---|---|---|",
    ]
    rows = sorted((str(each["module"]), int(str(each["line"])), str(each["key"]), each) for each in survived)
    for module, line, _, each in rows:
        cells = (str(each[name]).replace("|", "\\|") for name in ("before", "after"))
        lines.append(f"| `{module}:{line}` | " + " | ".join(f"`{cell}`" for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Try mutants until all of the sample are done or the time is over."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--sample", type=int, default=200, help="how many mutants")
    parser.add_argument("--seconds", type=float, default=3600.0, help="begin no other one after so long")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", default="*", help="modules that match, such as '*/engine/*'")
    parser.add_argument("--results", type=Path, default=Path("mutants.jsonl"), help="goes on from there")
    parser.add_argument("--again", action="store_true", help="try survivors of calls before once more")
    parser.add_argument("--list", action="store_true", help="name the sample and its tests; try none")
    asked = parser.parse_args()
    tree = Tree(asked.root.resolve())
    drawn = sample(tree, asked.sample, asked.seed)
    chosen = [each for each in drawn if fnmatch.fnmatch(each.module, asked.only)]
    if asked.list:
        for mutant in chosen:
            print(f"{mutant.module}:{mutant.line}: {mutant.before} -> {mutant.after}")
            print("    " + " ".join(tree.tests_of(mutant.module)))
        return 0
    known = remembered(asked.results)
    if asked.again:
        known = {key: each for key, each in known.items() if each["verdict"] != "survived"}
    waiting = [mutant for mutant in chosen if mutant.key not in known]
    until = time.monotonic() + asked.seconds
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(asked.processes):
            folder = Path(place) / str(number)
            copy_tree(tree.root, folder)
            if not list((folder / "src" / "hocket").glob("_native*.so")):
                shutil.copy(native_module(), folder / "src" / "hocket")
            copies.put(folder)

        def try_one(mutant: Mutant) -> None:
            if time.monotonic() > until:
                return
            copied = copies.get()
            try:
                file = copied / mutant.module
                original = file.read_text()
                file.write_text(tree.text(mutant))
                begin = time.monotonic()
                said, by = verdict(copied, tree.tests_of(mutant.module))
                file.write_text(original)
                facts = {"key": mutant.key, **asdict(mutant), "verdict": said, "by": by}
                facts["seconds"] = round(time.monotonic() - begin, 1)
                known[mutant.key] = facts
                with asked.results.open("a") as results:
                    results.write(json.dumps(facts) + "\n")
                print(
                    f"{said:8} {mutant.module}:{mutant.line}: {mutant.before} -> {mutant.after}", flush=True
                )
            finally:
                copies.put(copied)

        with ThreadPoolExecutor(asked.processes) as pool:
            list(pool.map(try_one, waiting))
    done = [known[mutant.key] for mutant in chosen if mutant.key in known]
    text = table(done)
    asked.results.with_suffix(".md").write_text(text)
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
