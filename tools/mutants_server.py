"""Try many mutants in one process of pytest: a plugin that collects once and forks for every mutant.

In:  requests, one JSON object in a line: trace a test file, or put a mutant in place and run tests
Out: one JSON object in a line for each

Starting Python, importing and collecting cost three seconds, most tests a few milliseconds. So test files are
collected once, without a mutant; a forked child then gives the functions of one module the code of the mutant
and runs the tests that were asked for. What executes while a module is imported cannot be changed this way:
such mutants are answered `fresh`, and need a process of their own.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import importlib
import inspect
import json
import os
import select
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from mutants import PACKAGES, Swap, is_changed, mutations

PIPES = "MUTANTS_PIPES"
"""The variable of the environment that names the two file descriptors: requests, answers."""
HANGING = 20.0
"""Seconds of CPU time in which no test ends, beside five times what the test needed without a mutant."""
WAITING = 300.0
"""Seconds in which no test ends, whatever it computes."""
TRACED = 30.0
"""Seconds of CPU time after which the rest of a test file is not traced, and so never asked."""


def pytest_configure(config: pytest.Config) -> None:
    """Serve, if the environment says so."""
    if PIPES in os.environ:
        requests, answers = (int(each) for each in os.environ[PIPES].split(","))
        config.pluginmanager.register(Server(requests, answers))


def changed_functions(old: CodeType, new: CodeType) -> list[tuple[CodeType, CodeType]] | None:
    """Return code of functions that differs, each with its new code; None if a module's own code differs."""
    inner = list(zip(_nested(old), _nested(new), strict=False))
    same = len(_nested(old)) == len(_nested(new))
    found: list[tuple[CodeType, CodeType]] = []
    if old.co_flags & inspect.CO_OPTIMIZED:  # of a function; classes and modules are not optimised
        if old == new:
            return []
        found.append((old, new))
        for one, other in inner if same else ():
            found += changed_functions(one, other) or []
        return found
    if not same or old.co_code != new.co_code or old.co_names != new.co_names or _values(old) != _values(new):
        return None
    for one, other in inner:
        below = changed_functions(one, other)
        if below is None:
            return None
        found += below
    return found


def _nested(code: CodeType) -> list[CodeType]:
    return [each for each in code.co_consts if isinstance(each, CodeType)]


def _values(code: CodeType) -> list[str]:
    return [repr(each) for each in code.co_consts if not isinstance(each, CodeType)]


def _identity(code: CodeType) -> tuple[str, int, bytes]:
    return code.co_qualname, code.co_firstlineno, code.co_code


def one_of_each_first(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Return tests so that every function comes once before any comes with other parameters."""
    count: defaultdict[str, int] = defaultdict(int)
    order: list[tuple[int, int, pytest.Item]] = []
    for number, item in enumerate(items):
        name = item.nodeid.partition("[")[0]
        order.append((count[name], number, item))
        count[name] += 1
    return [item for _, _, item in sorted(order, key=lambda each: each[:2])]


class Server:
    """A plugin of pytest that runs what it is asked for, each time in a forked child."""

    def __init__(self, requests: int, answers: int):
        self.requests = os.fdopen(requests)
        self.answers = os.fdopen(answers, "w")
        self.failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that does not pass."""
        self.failed |= report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Answer requests until there is none."""
        items = {item.nodeid: item for item in session.items}
        _import_all()
        functions: defaultdict[str, list[FunctionType]] = defaultdict(list)
        for each in gc.get_objects():
            if isinstance(each, FunctionType):
                functions[each.__code__.co_filename].append(each)
        gc.freeze()
        self._answer({"tests": len(items)})
        for line in self.requests:
            asked = json.loads(line)
            if "trace" in asked:
                chosen = [item for name, item in items.items() if name.partition("::")[0] == asked["trace"]]
                self._answer(self._in_child(partial(self._trace, session, chosen), {}))
            else:
                swap = self._swap(asked, functions) if "module" in asked else []
                if swap is None:
                    self._answer({"verdict": "fresh"})
                    continue
                chosen = [items[name] for name in asked["tests"]]
                work = partial(self._try, session, swap, chosen)
                self._answer(self._in_child(work, asked["tests"]))
        return True

    def _answer(self, facts: dict[str, Any]) -> None:
        self.answers.write(json.dumps(facts) + "\n")
        self.answers.flush()

    def _swap(
        self, asked: dict[str, Any], functions: dict[str, list[FunctionType]]
    ) -> list[tuple[FunctionType, CodeType]] | None:
        """Return functions and the code that each has in the mutant; None if that is not all that changes."""
        path = str(Path.cwd() / asked["module"])
        tree = ast.parse(Path(path).read_text())
        old = compile(tree, path, "exec")
        node, _, after = list(mutations(tree))[asked["place"]]
        Swap(node, after).visit(tree)
        new = compile(ast.fix_missing_locations(tree), path, "exec")
        pairs = changed_functions(old, new)
        if pairs is None:
            return None
        codes = {_identity(before): (before, after) for before, after in pairs}
        swap = [
            (function, codes[_identity(function.__code__)][1])
            for function in functions.get(path, ())
            if _identity(function.__code__) in codes
        ]
        if len(codes) < len(pairs) or not swap:  # two that look the same, or none that was imported
            return None
        if any(len(one.__code__.co_freevars) != len(code.co_freevars) for one, code in swap):
            return None
        return swap

    def _in_child(
        self, work: Callable[[Callable[[Any], None]], None], expected: dict[str, float]
    ) -> dict[str, Any]:
        """Return what a child answers last; if it falls silent, that it hangs or crashed."""
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.setsid()
            os.close(read)
            nothing = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nothing, stream)
            with os.fdopen(write, "w") as pipe:

                def say(facts: Any) -> None:
                    pipe.write(json.dumps(facts) + "\n")
                    pipe.flush()

                try:
                    work(say)
                except BaseException as error:
                    say({"verdict": "killed", "by": f"{type(error).__name__}: {error}"[:200]})
            os._exit(0)
        os.close(write)
        last: dict[str, Any] = {"verdict": "killed", "by": "the process ended"}
        test, text = "", b""
        heard, used = time.monotonic(), 0.0
        try:
            while True:
                if not select.select([read], [], [], 0.25)[0]:
                    allowed = HANGING + 5.0 * expected.get(test, TRACED)
                    if _cpu_time(child) > used + allowed or time.monotonic() > heard + WAITING:
                        return {"verdict": "hangs", "by": test}
                    continue
                piece = os.read(read, 1 << 20)
                if not piece:
                    return {"verdict": "killed", "by": f"{test} ended it"} if "begins" in last else last
                *lines, text = (text + piece).split(b"\n")
                for line in lines:
                    last = json.loads(line)
                    test = last.get("begins", test)
                heard, used = time.monotonic(), _cpu_time(child)
        finally:
            os.close(read)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)

    def _run(self, session: pytest.Session, items: list[pytest.Item], number: int) -> tuple[bool, float]:
        """Return whether a test passed and its CPU time, child processes included."""
        begin = sum(os.times()[:4])
        self.failed = False
        following = items[number + 1] if number + 1 < len(items) else None
        session.config.hook.pytest_runtest_protocol(item=items[number], nextitem=following)
        return not self.failed, sum(os.times()[:4]) - begin

    def _try(
        self,
        session: pytest.Session,
        swap: list[tuple[FunctionType, CodeType]],
        items: list[pytest.Item],
        say: Callable[[Any], None],
    ) -> None:
        for function, code in swap:
            function.__code__ = code
        for number, item in enumerate(items):
            say({"begins": item.nodeid})
            passed, _ = self._run(session, items, number)
            if not passed:
                say({"verdict": "killed", "by": item.nodeid})
                return
        say({"verdict": "survived", "by": ""})

    def _trace(self, session: pytest.Session, items: list[pytest.Item], say: Callable[[Any], None]) -> None:
        from coverage import Coverage

        tests: dict[str, dict[str, Any]] = {}
        patterns = [str(Path.cwd() / each.replace("/*", "/**")) for each in PACKAGES]
        tracer = Coverage(data_file=None, config_file=False, include=patterns, messages=False)
        tracer.set_option("run:disable_warnings", ["no-data-collected"])
        tracer.start()
        order = one_of_each_first(items)
        spent = 0.0
        for number, item in enumerate(order):
            if spent > TRACED:
                break
            say({"begins": item.nodeid})
            tracer.switch_context(item.nodeid)
            passed, seconds = self._run(session, order, number)
            spent += seconds
            tests[item.nodeid] = {"seconds": round(seconds, 3), "passed": passed, "lines": {}}
        tracer.stop()
        data = tracer.get_data()
        for file in data.measured_files():
            module = str(Path(file).relative_to(Path.cwd()))
            if is_changed(module):
                for line, names in data.contexts_by_lineno(file).items():
                    for name in names:
                        if name in tests:
                            tests[name]["lines"].setdefault(module, []).append(line)
        say({"tests": tests, "left": len(items) - len(tests), "seconds": round(spent, 1)})


def _import_all() -> None:
    """Import every module that may be changed: some are imported by a run only, and by every child again."""
    source = Path.cwd() / "src"
    for path in sorted(source.rglob("*.py")):
        if is_changed(str(path.relative_to(Path.cwd()))):
            name = ".".join(path.relative_to(source).with_suffix("").parts)
            importlib.import_module(name.removesuffix(".__init__"))


def _cpu_time(process: int) -> float:
    """Return the seconds that a process has computed, with its children that have ended."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(int(each) for each in fields[11:15]) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit("This is a plugin of pytest that tools/mutants.py starts.")
