"""Change the source in one place at a time and see whether a test notices: `python tools/mutants.py`.

In:  the packages below, a sample size, a seed, a time limit
Out: how many mutants were killed; a table of the survivors, beside a file that a later call goes on from

Each mutant is tried in a copy of the tree, never in the work tree, against the test files beside it: those of
the module's own name, those that import it, those of its room and of rooms that try it through a run. These
are run once without a mutant and traced. Asked are those that passed and went through the changed lines: the
nearest first, and among these the fastest, in a process that has collected all (tools/mutants_server.py). A
test that fails is run again without the mutant; only if it passes then, the mutant counts as killed.
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
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from queue import SimpleQueue
from typing import Any

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
PATIENCE = 600.0
"""Seconds that the tests of a mutant in a process of its own are given; then it has survived."""
HANGING = 200.0
"""Seconds in which no test of a process of its own ends: the mutant hangs, which counts as killed."""
EFFORT = 20.0
"""Seconds of CPU time that the tests of one mutant may take, as measured while they were traced."""
RANKS = ((0, 1), (2,), (3,))
"""The distances of test files that are asked together; the farther ones only if the nearer ones pass."""
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
    "rollback": ("iterate", "adaptive", "multirate"),
    "ledger": ("ledger", "energy_control"),
    "message_counter": ("distribution",),
    "level": ("distribution", "multirate"),
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


def is_changed(file: str) -> bool:
    """Return whether a file, given from the root of the tree, is among those that are changed."""
    return any(fnmatch.fnmatch(file, pattern) for pattern in PACKAGES)


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
        return [file for file in files if is_changed(file)]

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

    def tests_of(self, module: str) -> dict[str, int]:
        """Return the test files beside a module, the nearest first, and how far each is."""
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
        return {file: rank for rank, _, file in sorted(ranked)}

    def lines_of(self, mutant: Mutant) -> set[int]:
        """Return the lines whose tests are asked: of the statement, or where the name it binds is read."""
        tree = ast.parse((self.root / mutant.module).read_text())
        changed, _, _ = list(mutations(tree))[mutant.place]
        statement: ast.AST = changed
        inside = False
        for node in ast.walk(tree):  # from the outside to the inside
            if any(each is changed for each in ast.walk(node)):
                if isinstance(node, ast.stmt | ast.match_case):
                    statement = node
                inside |= isinstance(node, ast.FunctionDef | ast.Lambda)
        if inside:
            return set(_own_lines(statement))
        bound = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        read = {
            node.lineno
            for node in ast.walk(tree)
            if (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in bound)
            or (isinstance(node, ast.Attribute) and node.attr in bound)
        }
        return read or set(range(1, 100_000))

    def chosen(
        self, mutant: Mutant, traces: dict[str, Trace], effort: float, unreliable: set[str]
    ) -> dict[str, float]:
        """Return the tests of traced files that are asked about a mutant, file by file, and what each needs.

        Each function is asked with one set of parameters before any is asked with others.
        """
        lines, ranks = set(self.lines_of(mutant)), self.tests_of(mutant.module)
        through: list[tuple[int, float, str, str]] = []
        beside: list[tuple[int, float, str, str]] = []
        for file, trace in traces.items():
            for name, test in trace["tests"].items():
                if test["passed"] and name not in unreliable:
                    touched = lines & set(test["lines"].get(mutant.module, ()))
                    (through if touched else beside).append((ranks[file], test["seconds"], file, name))
        files = {file for _, _, file, _ in through}
        shared = [each for each in sorted(beside) if each[2] in files]  # what a first test leaves behind
        seen: Counter[str] = Counter()
        order: list[tuple[int, float, str, str]] = []
        for _, seconds, file, name in sorted(through):
            order.append((seen[name.partition("[")[0]], seconds, file, name))
            seen[name.partition("[")[0]] += 1
        order.sort(key=lambda each: (min(each[0], 1), ranks[each[2]], each[0], each[1]))
        taken: dict[str, list[tuple[str, float]]] = {}
        spent = 0.0
        for _, seconds, file, name in [*order, *shared]:
            if spent + seconds <= effort:
                spent += seconds
                taken.setdefault(file, []).append((name, seconds))
        return {name: seconds for names in taken.values() for name, seconds in names}


def _own_lines(node: ast.AST) -> range:
    """Return the lines of a statement without those of statements inside."""
    match node:
        case ast.match_case(pattern=pattern, body=[first, *_]):
            return range(pattern.lineno, max(pattern.lineno + 1, first.lineno))
        case ast.Match(cases=[case, *_]):
            return range(node.lineno, case.pattern.lineno)
        case ast.FunctionDef():  # a default
            return range(node.lineno, (node.end_lineno or node.lineno) + 1)
        case ast.stmt():
            body = getattr(node, "body", None)
            end = max(node.lineno + 1, body[0].lineno) if body else (node.end_lineno or node.lineno) + 1
            return range(node.lineno, end)
    return range(0)


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
    (folder / START).mkdir()
    (folder / START / "sitecustomize.py").write_text(WITHOUT_REDIRECTION)


START = "at_start"
"""The folder of a copy with what Python executes first there."""
WITHOUT_REDIRECTION = """import sys
sys.meta_path[:] = [each for each in sys.meta_path if type(each).__name__ != "ScikitBuildRedirectingFinder"]
"""
"""An editable installation leads every import of hocket to the work tree, whatever stands in PYTHONPATH."""


def check_imports(copied: Path) -> None:
    """Raise an error if tests in a copy would import another hocket: then no mutant would ever be noticed."""
    command = [sys.executable, "-c", "import hocket, hocket._native; print(hocket.__file__)"]
    done = subprocess.run(
        command, cwd=copied, env=environment(copied), capture_output=True, text=True, check=True
    )
    if not Path(done.stdout.strip()).is_relative_to(copied):
        raise RuntimeError(f"tests in {copied} would import {done.stdout.strip()}: nothing would be tried")


def native_module() -> Path:
    """Return the compiled core that Python imports here."""
    from hocket import _native

    return Path(_native.__file__)


def environment(copied: Path, **more: str) -> dict[str, str]:
    """Return the environment in which a copy of the tree is tried."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(
            [*(str(copied / each) for each in (START, "src", "tests")), str(Path(__file__).parent)]
        ),
        "PYTHONUNBUFFERED": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "HOCKET_NO_BROWSER": "1",
        **more,
    }


PYTEST = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-m", "not slow"]
Trace = dict[str, Any]
"""Of a test file: the `digest` of its text and its `tests`, each with `lines`, `seconds` and `passed`."""


class Server:
    """A process of pytest in a copy of the tree that has collected all tests and forks for every mutant."""

    def __init__(self, copied: Path, files: list[str]):
        self.copied = copied
        theirs, self._write = os.pipe()
        self._read, answers = os.pipe()
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115 (as long as the process)
        self.process = subprocess.Popen(
            [
                *PYTEST,
                *("-q", "-s", f"--basetemp={copied / 'temporary'}", "--continue-on-collection-errors"),
                *("-p", "mutants_server", *files),
            ],
            cwd=copied,
            env=environment(copied, MUTANTS_PIPES=f"{theirs},{answers}"),
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=self._said,
            pass_fds=(theirs, answers),
        )
        os.close(theirs)
        os.close(answers)
        self._requests, self._answers = os.fdopen(self._write, "w"), os.fdopen(self._read)
        self.count = self._receive()["tests"]

    def ask(self, **request: object) -> dict[str, Any]:
        """Return the answer to a request."""
        self._requests.write(json.dumps(request) + "\n")
        self._requests.flush()
        return self._receive()

    def _receive(self) -> dict[str, Any]:
        line = self._answers.readline()
        if not line:
            self._said.seek(0)
            raise RuntimeError(f"pytest ended: {self._said.read()[-2000:]}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        self._requests.close()
        self.process.wait()
        self._answers.close()
        self._said.close()


class Traces:
    """Traces of test files; those of a call before stay where neither source nor test file has changed."""

    def __init__(self, tree: Tree, store: Path):
        self.tree, self.store = tree, store
        store.mkdir(parents=True, exist_ok=True)
        source = (tree.root / module for module in tree.modules)
        self.source = sha256(b"".join(path.read_bytes() for path in source)).hexdigest()
        self.known: dict[str, Trace] = {}
        self.unreliable: set[str] = set()
        self.locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def of(self, file: str, server: Server) -> Trace:
        """Return the trace of a test file, made without a mutant if there is none yet."""
        with self.locks[file]:
            if file not in self.known:
                digest = sha256(self.source.encode() + (server.copied / file).read_bytes()).hexdigest()
                path = self.store / f"{file.replace('/', '.')}.{digest[:16]}.json"
                if not path.exists():
                    answer = server.ask(trace=file)
                    if "tests" not in answer:
                        print(f"no trace {file}: {answer}", flush=True)
                        return {"tests": {}}
                    path.write_text(json.dumps(answer))
                    failed = sum(not each["passed"] for each in answer["tests"].values())
                    print(
                        f"traced   {file}: {len(answer['tests'])} tests, {answer['left']} left out, "
                        f"{failed} failed, {answer['seconds']} s",
                        flush=True,
                    )
                self.known[file] = json.loads(path.read_text())
            return self.known[file]


def verdict(copied: Path, tests: list[str]) -> tuple[str, str]:
    """Return what the tests say of a mutant that stands in a copy of the tree, and which one spoke."""
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            [*PYTEST, "-vv", "--tb=no", "-x", *tests],
            cwd=copied,
            env=environment(copied, PYTHONDONTWRITEBYTECODE="1"),
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


def try_in(
    server: Server, mutant: Mutant, tree: Tree, traces: Traces, effort: float = EFFORT
) -> tuple[str, str, int, float]:
    """Return the verdict on a mutant, the test that spoke, how many were asked and their CPU time."""
    beside = tree.tests_of(mutant.module)
    count, left = 0, effort
    for ranks in RANKS:
        known = {each: traces.of(each, server) for each, rank in beside.items() if rank in ranks}
        while True:
            tests = tree.chosen(mutant, known, left, traces.unreliable)
            if not tests:
                break
            said, by = _ask(server, mutant, tree, tests)
            if said == "killed" and by in tests:
                alone = server.ask(tests={by: tests[by]})
                if alone["verdict"] != "survived":  # it fails without a mutant, too
                    print(f"fails    {by}: asked no more", flush=True)
                    traces.unreliable.add(by)
                    continue
            count += len(tests)
            left -= sum(tests.values())
            if said != "survived":
                return said, by, count, effort - left
            break
    return "survived", "", count, effort - left


def _ask(server: Server, mutant: Mutant, tree: Tree, tests: dict[str, float]) -> tuple[str, str]:
    """Return what tests say, in a child of the server or, where imports change, in a process of their own."""
    answer = server.ask(module=mutant.module, place=mutant.place, tests=tests)
    if answer["verdict"] != "fresh":
        return answer["verdict"], answer["by"]
    file, original = server.copied / mutant.module, server.copied / "original"
    shutil.copy2(file, original)
    file.write_text(tree.text(mutant))
    try:
        said, by = verdict(server.copied, list(tests))
    finally:
        shutil.copy2(original, file)  # with its time: compiled files go by it
    return said, by.partition(" ")[2]


def _cpu_seconds(server: Server) -> float:
    """Return what this process, its children that have ended and a server's children have computed."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(each) for each in fields[11:15]) / os.sysconf("SC_CLK_TCK") + sum(os.times()[:4])


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
    parser.add_argument("--effort", type=float, default=EFFORT, help="CPU seconds of tests for each mutant")
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
    files = sorted({file for mutant in waiting for file in tree.tests_of(mutant.module)})
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        servers: SimpleQueue[Server] = SimpleQueue()
        for number in range(asked.processes):
            folder = Path(place) / str(number)
            copy_tree(tree.root, folder)
            if not list((folder / "src" / "hocket").glob("_native*.so")):
                shutil.copy(native_module(), folder / "src" / "hocket")
            check_imports(folder)
            servers.put(Server(folder, files))
        traces = Traces(tree, asked.results.parent / "mutants.traces")

        def try_one(mutant: Mutant) -> None:
            if time.monotonic() > until:
                return
            server = servers.get()
            try:
                begin, before = time.monotonic(), _cpu_seconds(server)
                said, by, count, effort = try_in(server, mutant, tree, traces, asked.effort)
                facts = {
                    "key": mutant.key,
                    **asdict(mutant),
                    "verdict": said,
                    "by": by,
                    "asked": count,
                    "effort": round(effort, 2),
                    "seconds": round(time.monotonic() - begin, 1),
                    "cpu": round(_cpu_seconds(server) - before, 2),
                }
                known[mutant.key] = facts
                with asked.results.open("a") as results:
                    results.write(json.dumps(facts) + "\n")
                where = f"{mutant.module}:{mutant.line}: {mutant.before} -> {mutant.after}"
                print(f"{said:8} {facts['cpu']:5} s  {where}", flush=True)
            finally:
                servers.put(server)

        with ThreadPoolExecutor(asked.processes) as pool:
            list(pool.map(try_one, waiting))
        while not servers.empty():
            servers.get().close()
    done = [known[mutant.key] for mutant in chosen if mutant.key in known]
    text = table(done)
    asked.results.with_suffix(".md").write_text(text)
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
