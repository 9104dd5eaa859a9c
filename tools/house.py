"""Count what makes the code base easy or hard to enter: `python tools/house.py [ROOT]`.

In:  the source tree of hocket (this one, or another one for comparison)
Out: one line per measure, with its limit; `--list MEASURE` names what was counted
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

IRREGULAR = frozenset(
    [
        "been",
        "begun",
        "bent",
        "bound",
        "broken",
        "built",
        "chosen",
        "climbed",
        "cut",
        "done",
        "drawn",
        "driven",
        "fed",
        "felt",
        "fit",
        "found",
        "given",
        "gone",
        "got",
        "grown",
        "had",
        "heard",
        "held",
        "kept",
        "known",
        "laid",
        "led",
        "left",
        "let",
        "lost",
        "made",
        "meant",
        "met",
        "overlaid",
        "paid",
        "put",
        "redone",
        "remade",
        "rewound",
        "run",
        "said",
        "seen",
        "sent",
        "set",
        "shown",
        "shrunk",
        "spent",
        "split",
        "spread",
        "stood",
        "stuck",
        "taken",
        "taught",
        "thought",
        "told",
        "torn",
        "understood",
        "undone",
        "unmade",
        "unseen",
        "unread",
        "won",
        "worn",
        "wound",
        "written",
        "rewritten",
        "hidden",
        "swept",
        "frozen",
        "driven",
        "unmet",
        "unwritten",
    ]
) - frozenset(["cut", "fit", "let", "put", "run", "set", "split", "spread", "had"])
"""Participles that do not end in -ed; those that are verbs or nouns as they stand are left out."""

NO_PARTICIPLES = frozenset(
    ["need", "feed", "seed", "speed", "embed", "exceed", "proceed", "shed", "need", "bed", "red", "proceed"]
)

CAPABILITY = re.compile(r"^[a-z_]+$")


def is_participle(name: str) -> bool:
    """Return whether a name is one bare participle: `told`, `_made`, `opened`."""
    bare = name.strip("_")
    if "_" in bare or name.startswith("__"):
        return False
    return bare in IRREGULAR or (bare.endswith("ed") and bare not in NO_PARTICIPLES)


@dataclass(frozen=True)
class House:
    """A source tree, parsed once."""

    root: Path

    @property
    def source(self) -> Path:
        """The package."""
        return self.root / "src" / "hocket"

    @cached_property
    def modules(self) -> dict[str, Path]:
        """Every module by its dotted name."""
        found = {}
        for path in sorted(self.source.rglob("*.py")):
            name = ".".join(["hocket", *path.relative_to(self.source).with_suffix("").parts])
            found[name.removesuffix(".__init__")] = path
        return found

    @cached_property
    def trees(self) -> dict[str, ast.Module]:
        """The syntax tree of every module."""
        return {name: ast.parse(path.read_text()) for name, path in self.modules.items()}

    @cached_property
    def imports(self) -> dict[str, set[str]]:
        """What each module imports, anywhere in it: at the top, in functions, for the type checker."""
        return {name: set(self._imported(name)) for name in self.modules}

    def _imported(self, name: str) -> Iterable[str]:
        for node in ast.walk(self.trees[name]):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "hocket":
                for alias in node.names:
                    full = f"{node.module}.{alias.name}"
                    yield full if full in self.modules else node.module
            elif isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names if alias.name in self.modules)

    def functions(self) -> Iterable[tuple[str, str]]:
        """Yield the module and the name of every function and method."""
        for module, tree in self.trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield module, node.name


def top_entries(house: House) -> list[str]:
    """Return the entries at the top of the package."""
    kept = (
        path for path in house.source.iterdir() if path.name[0] not in "._" and path.suffix in ("", ".py")
    )
    return sorted(path.name for path in kept if path.is_file() or any(path.rglob("*.py")))


def modules(house: House) -> list[str]:
    """Return every module."""
    return list(house.modules)


def lines(house: House) -> list[str]:
    """Return every line of Python."""
    return [line for path in house.modules.values() for line in path.read_text().splitlines()]


def module_sizes(house: House) -> list[str]:
    """Return how many lines each module has, the longest first."""
    sizes = sorted(((len(path.read_text().splitlines()), name) for name, path in house.modules.items()))
    return [f"{size} {name}" for size, name in reversed(sizes)]


def long_modules(house: House) -> list[str]:
    """Return the modules that have more lines than `MODULE`."""
    return [each for each in module_sizes(house) if int(each.split()[0]) > MODULE]


def long_functions(house: House) -> list[str]:
    """Return the functions whose bodies have more lines than `FUNCTION`, docstrings aside."""
    found = []
    for module, tree in house.trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = node.body[1:2] if ast.get_docstring(node) else node.body[:1]
                size = (node.end_lineno or 0) - first[0].lineno + 1 if first else 0
                if size > FUNCTION:
                    found.append(f"{size} {module}: {node.name}")
    return found


def repeated_blocks(house: House) -> list[str]:
    """Return where at least `BLOCK` lines of code stand as they stand elsewhere; white space does not count.

    Left out are imports, docstrings, comments, and lines of punctuation alone.
    """
    places: dict[tuple[str, ...], tuple[str, int]] = {}
    found = []
    for module, path in house.modules.items():
        code = _code_lines(path.read_text(), house.trees[module])
        fresh = True  # a longer run is one place
        for number in range(len(code) - BLOCK + 1):
            block = tuple(text for _, text in code[number : number + BLOCK])
            other, line = places.setdefault(block, (module, code[number][0]))
            repeats = (other, line) != (module, code[number][0])
            if repeats and fresh:
                found.append(f"{module}:{code[number][0]} as {other}:{line}")
            fresh = not repeats
    return found


def _code_lines(text: str, tree: ast.Module) -> list[tuple[int, str]]:
    """Return the numbered lines that count in a comparison."""
    left_out: set[int] = set()
    for node in ast.walk(tree):
        words = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if words or isinstance(node, ast.Import | ast.ImportFrom):
            left_out.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))  # type: ignore[attr-defined]
    stripped = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
    return [
        (number, line)
        for number, line in stripped
        if number not in left_out and not line.startswith("#") and re.search(r"\w", line)
    ]


def cycles(house: House) -> list[str]:
    """Return the modules that import themselves through others, lazy imports and TYPE_CHECKING included."""
    order: list[str] = []
    seen: set[str] = set()
    users: dict[str, set[str]] = {name: set() for name in house.modules}
    for name, others in house.imports.items():
        for other in others & users.keys() - {name}:
            users[other].add(name)
    for name in house.modules:
        _visit(name, lambda each: house.imports[each] & users.keys(), seen, order.append)
    found: list[str] = []
    seen = set()
    for name in reversed(order):
        component: list[str] = []
        _visit(name, users.__getitem__, seen, component.append)
        found += component if len(component) > 1 else []
    return sorted(found)


def _visit(name: str, after: Callable[[str], set[str]], seen: set[str], leave: Callable[[str], None]) -> None:
    """Walk a graph depth first; call `leave` with each node when all behind it were left."""
    if name in seen:
        return
    seen.add(name)
    stack = [(name, iter(sorted(after(name))))]
    while stack:
        node, rest = stack[-1]
        for other in rest:
            if other not in seen:
                seen.add(other)
                stack.append((other, iter(sorted(after(other)))))
                break
        else:
            stack.pop()
            leave(node)


def modules_for_a_file(house: House) -> list[str]:
    """Return the modules that reading a scenario file imports."""
    program = (
        "import sys, importlib\n"
        "try:\n    from hocket.files.formats import read\n"
        "except ModuleNotFoundError:\n    from hocket.files import read\n"
        "read(sys.argv[1])\n"
        "print(*(name for name in sys.modules if name.split('.')[0] == 'hocket'), sep='\\n')\n"
    )
    example = house.root / "examples" / "two_masses.toml"
    done = subprocess.run(
        [sys.executable, "-c", program, str(example)],
        capture_output=True,
        text=True,
        check=True,
        cwd=house.root,
    )
    return done.stdout.split()


def duplicate_basenames(house: House) -> list[str]:
    """Return the file names that more than one module has."""
    counts = Counter(path.name for path in house.modules.values() if path.name != "__init__.py")
    return sorted(name for name, count in counts.items() if count > 1)


def participles(house: House) -> list[str]:
    """Return the functions that are named by a bare participle."""
    return [f"{module}: {name}" for module, name in house.functions() if is_participle(name)]


def single_importers(house: House) -> list[str]:
    """Return the modules that one other module imports, packages' faces aside."""
    users = Counter(other for name, others in house.imports.items() for other in others - {name})
    return sorted(name for name in house.modules if users[name] == 1)


def capability_strings(house: House) -> list[str]:
    """Return where `getattr` or `hasattr` asks an object for an attribute by a literal string."""
    found = []
    for module, tree in house.trees.items():
        if module in ("hocket.model.protocols", "hocket.model.simulator_protocols"):
            continue
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("getattr", "hasattr")
                and len(node.args) > 1
                and isinstance(node.args[1], ast.Constant)
                and ast.unparse(node.args[0]) not in SYSTEM_OBJECTS
                and not str(node.args[1].value).startswith("__")
            ):
                found.append(f"{module}:{node.lineno} {ast.unparse(node)}")
    return found


SYSTEM_OBJECTS = frozenset({"os", "signal", "sys", "typer"})
"""Modules of the platform, whose functions not every system has."""

MESSAGES = frozenset(
    [
        "note",
        "notes",
        "fault",
        "error",
        "message",
        "hint",
        "where",
        "what",
        "told",
        "why",
        "text",
        "reason",
        "said",
    ]
)
"""Names that hold the words of a message."""


def branches_on_words(house: House) -> list[str]:
    """Return where a literal text is looked for in a message: `"delay" in note`, `hint.startswith("did")`."""
    found = []
    for module, tree in house.trees.items():
        for node in ast.walk(tree):
            subject: ast.expr | None = None
            if (
                isinstance(node, ast.Compare)
                and isinstance(node.ops[0], ast.In | ast.NotIn)
                and isinstance(node.left, ast.Constant)
                and isinstance(node.left.value, str)
                and " " in node.left.value.strip() + " " * (len(node.left.value) > 6)
            ):
                subject = node.comparators[0]
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ("startswith", "endswith", "find", "index")
                and node.args
                and isinstance(node.args[0], ast.Constant)
                and isinstance(node.args[0].value, str)
            ):
                subject = node.func.value
            if subject is not None and _holds_a_message(subject):
                found.append(f"{module}:{node.lineno} {ast.unparse(node)}")
    return found


def _holds_a_message(node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str":
        return bool(node.args) and _holds_a_message(node.args[0])
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name.strip("_") in MESSAGES


CITATION = re.compile(r"\(?(?:formulas|theory),? section (\d+(?:\.\d+)?)", re.IGNORECASE)


def unresolved_citations(house: House) -> list[str]:
    """Return the citations of sections that `docs/theory.md` does not have."""
    theory = house.root / "docs" / "theory.md"
    text = theory.read_text() if theory.exists() else ""
    sections = set(re.findall(r"^#+ (\d+(?:\.\d+)?)", text, re.MULTILINE))
    found = []
    for path in [*house.source.rglob("*.py"), *(house.root / "native").rglob("*.?pp")]:
        for match in CITATION.finditer(" ".join(path.read_text().split())):
            if not match[0].lower().lstrip("(").startswith("theory") or match[1] not in sections:
                found.append(f"{path.relative_to(house.root)}: {match[0]}")
    return found


def module_list(house: House) -> str:
    """Return every module with the first line of its docstring, as docs/architecture.md lists them."""
    lines: list[str] = []
    room = ""
    for name, path in house.modules.items():
        first = (ast.get_docstring(house.trees[name]) or "").split("\n")[0]
        short = path.relative_to(house.source).as_posix()
        if (path.name == "__init__.py" and short.count("/") < 2) or short.count("/") == 0:
            room = short.removesuffix("__init__.py")
            lines += [] if room in ("", "__main__.py") else ["", f"**`{room}`** {first}", ""]
        else:
            lines.append(f"- `{short.removesuffix('/__init__.py')}`: {first}")
    return "\n".join(lines).strip() + "\n"


def mean(found: list[str]) -> int:
    """Return the mean of the numbers that each begins with."""
    return round(sum(int(each.split()[0]) for each in found) / len(found))


@dataclass(frozen=True)
class Measure:
    """What is counted, and how much there may be."""

    count: Callable[[House], list[str]]
    at_most: int | None = None
    at_least: int = 0
    sum_up: Callable[[list[str]], int] = len

    def holds(self, number: int) -> bool:
        """Return whether the limits are kept."""
        return self.at_least <= number and (self.at_most is None or number <= self.at_most)

    def describe_limits(self) -> str:
        """Return the limits in words."""
        words = [f"at least {self.at_least:,}"] if self.at_least else []
        words += [] if self.at_most is None else [f"at most {self.at_most:,}"]
        return f" ({', '.join(words)})" if words else ""


MODULE = 600
"""Lines of a module that are too many."""
FUNCTION = 80
"""Lines of a function that are too many."""
BLOCK = 8
"""Lines of code that should not be written twice."""


MEASURES = {
    "entries at the top": Measure(top_entries, 16),
    "lines of Python": Measure(lines),
    "modules": Measure(modules),
    "lines per module on average": Measure(module_sizes, 240, 180, mean),
    "modules of more than 600 lines": Measure(long_modules, 0),
    "functions of more than 80 lines": Measure(long_functions, 0),
    "blocks of 8 lines written twice": Measure(repeated_blocks, 4),
    "modules in import cycles": Measure(cycles, 0),
    "modules imported by reading a scenario file": Measure(modules_for_a_file, 45),
    "duplicate basenames": Measure(duplicate_basenames, 15),
    "functions named by a bare participle": Measure(participles, 40),
    "capabilities found by string": Measure(capability_strings, 0),
    "branches on the words of a message": Measure(branches_on_words, 0),
    "unresolved citations": Measure(unresolved_citations, 0),
    "modules with one importer": Measure(single_importers),
}


def main() -> int:
    """Print the table; exit with 1 where a limit is exceeded and `--check` was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--list", metavar="MEASURE", help="name what a measure counted")
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")
    parser.add_argument("--modules", action="store_true", help="print what each module is about")
    parser.add_argument("--publish", action="store_true", help="put that into docs/architecture.md")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a limit is exceeded")
    asked = parser.parse_args()
    house = House(asked.root.resolve())
    if asked.modules:
        print(module_list(house), end="")
        return 0
    if asked.publish:
        page = house.root / "docs" / "architecture.md"
        head, mark, _ = page.read_text().partition("`python tools/house.py --modules` prints it.\n\n")
        page.write_text(head + mark + module_list(house))
        return 0
    if asked.list:
        for title, measure in MEASURES.items():
            if asked.list in title:
                print(*measure.count(house), sep="\n")
        return 0
    counts = {title: measure.sum_up(measure.count(house)) for title, measure in MEASURES.items()}
    if asked.json:
        print(json.dumps(counts, indent=2))
    else:
        for title, count in counts.items():
            print(f"{count:>8,}  {title}{MEASURES[title].describe_limits()}")
    kept = all(MEASURES[title].holds(count) for title, count in counts.items())
    return int(asked.check and not kept)


if __name__ == "__main__":
    sys.exit(main())
