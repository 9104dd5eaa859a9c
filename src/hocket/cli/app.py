"""The verbs, gathered: what `hocket` is when it is typed.

In:  the words of a command line
Out: the verb that was meant, called; or the nearest one, offered
"""

from __future__ import annotations

import gc
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import is_dataclass, replace
from functools import wraps
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperGroup

from hocket.cli.options import PlotCommand
from hocket.errors import Fault, HocketError, InternalError, ScenarioError, suggest_nearest

_REPORT = "This is a fault of hocket's own: please report it, with what `--debug` shows."
_CODE_HINT = "--code loads it: that runs it"
_NO_CODE_HINT = "leave `--no-code` out if you trust whoever wrote it"
_TYPED = {"overwrite=True": "--overwrite", "`time_limit`": "--time-limit"}
"""Options of the command line, by what a hint calls them."""
_DEBUG = inspect.Parameter(
    "debug",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool, typer.Option("--debug", metavar="", help="Show where in the code an error arose.")
    ],
)


_LOG_FILE = inspect.Parameter(
    "log_file",
    inspect.Parameter.KEYWORD_ONLY,
    default=None,
    annotation=Annotated[
        Path | None,
        typer.Option("--log-file", metavar="FILE", help="Append to it what is said, when, and how it ended."),
    ],
)
_VERBOSE = inspect.Parameter(
    "verbose",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool,
        typer.Option("--verbose", "-v", metavar="", help="Say on stderr what takes how long."),
    ],
)
_LOOKING = ("plan", "show", "describe", "report")
"""What tells of files without running them: it loads no code that they name, unless asked to."""
_NO_CODE = inspect.Parameter(
    "no_code",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool, typer.Option("--no-code", metavar="", help="Refuse code that a file brings: Python, FMUs.")
    ],
)
_CODE = inspect.Parameter(
    "code",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool, typer.Option("--code", metavar="", help="Load the code that a file brings: that runs it.")
    ],
)


@contextmanager
def _code_rule(looks: bool, code: bool, no_code: bool) -> Iterator[None]:
    """Load no code where files are looked at, or where it is refused; elsewhere say which is loaded."""
    from hocket.cli.terminal import print_err
    from hocket.model import code_loading

    if no_code or (looks and not code):
        with code_loading.no_code(_CODE_HINT if looks else _NO_CODE_HINT):
            yield
        return
    with code_loading.code_announced(lambda what, source: print_err(f"loads `{what}` from {source}")):
        yield


def as_command(function: Callable[..., None]) -> Callable[..., None]:
    """Return the function as a command with the options `--debug` and `--code` or `--no-code`.

    A parameter whose type is a dataclass stands for one option for each of its fields.
    """
    signature = inspect.signature(function, eval_str=True)
    groups: dict[str, Any] = {
        name: each.annotation for name, each in signature.parameters.items() if is_dataclass(each.annotation)
    }
    members = {name: inspect.signature(group, eval_str=True).parameters for name, group in groups.items()}
    looks = function.__name__ in _LOOKING
    parameters = [
        *(
            one
            for each in signature.parameters.values()
            for one in members.get(each.name, {"": each}).values()
        ),
        _CODE if looks else _NO_CODE,
        _LOG_FILE,
        _VERBOSE,
        _DEBUG,
    ]

    @wraps(function)
    def command(
        *,
        debug: bool = False,
        code: bool = False,
        no_code: bool = False,
        log_file: Path | None = None,
        verbose: bool = False,
        **arguments: Any,
    ) -> None:
        if not gc.isenabled():
            gc.freeze()
            gc.enable()
        if log_file is None and not verbose:
            call(debug, code, no_code, arguments)
            return
        from hocket.cli.log_file import keep_log

        try:
            kept = keep_log(log_file, verbose)
        except HocketError as error:  # it cannot be written
            raise typer.Exit(report_error(error)) from None
        with kept:
            call(debug, code, no_code, arguments)

    def call(debug: bool, code: bool, no_code: bool, arguments: dict[str, Any]) -> None:
        try:
            for name, group in groups.items():
                arguments[name] = group(**{key: arguments.pop(key) for key in members[name]})
            with _code_rule(looks, code, no_code):
                function(**arguments)
        except (typer.Exit, BrokenPipeError):
            raise
        except (Exception, KeyboardInterrupt) as error:
            if debug:
                traceback.print_exception(error)
            raise typer.Exit(report_error(error)) from None

    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def report_error(error: BaseException) -> int:
    """Tell the user what went wrong; return the exit code."""
    from hocket.cli.terminal import print_err, print_failure

    if isinstance(error, KeyboardInterrupt):
        print_err("interrupted", *getattr(error, "__notes__", ()))
        return 1
    if not isinstance(error, HocketError):
        print_failure(f"{type(error).__name__}: {error}")
        print_err(_REPORT)
        return 1
    error.faults = tuple(map(_with_option_hint, error.faults))
    print_failure(error.text())
    if isinstance(error, ScenarioError):
        return 2  # before anything ran: no rows to speak of in notes
    print_err(*getattr(error, "__notes__", ()))
    if isinstance(error, InternalError):
        print_err(_REPORT)
    return 1


def _with_option_hint(fault: Fault) -> Fault:
    """Return a fault whose hint names options as they are typed, too."""
    hint = fault.hint
    for name, option in _TYPED.items():
        if option not in hint:
            hint = hint.replace(name, f"{name} ({option})")
    return replace(fault, hint=hint)


VERBS = {
    "run": ("run", "Run a scenario, or FMUs, and keep what was computed; options win over the file."),
    "check": ("check", "Judge a coupling before a run: well posed, stable, how large is the global error?"),
    "nest": (
        "nest",
        "Propose levels for a flat scenario: which simulators exchange more often, does it pay?",
    ),
    "plan": ("plan", "Print what a step of each level consists of. Nothing is run."),
    "show": ("show", "Print levels, models, ports and connections, or all about an FMU. Nothing is run."),
    "resume": (
        "resume",
        "Go on with a run from its newest checkpoint: the same numbers as if it had never ended.",
    ),
    "host": ("host", "Run one host of a scenario here; it meets the others at a HELICS broker."),
    "sweep": ("sweep", "Run with every combination of parameters, in parallel, and print the final values."),
    "study": (
        "study",
        "Run with uncertain parameters: bands, sensitivities, and the share of the macro step.",
    ),
    "fit": (
        "fit",
        "Find parameters for which a co-simulation follows measurements: least squares, with intervals.",
    ),
    "compile": ("compile", "Turn equations, algebraic loops and hosts into ordinary simulators and levels."),
    "tune": (
        "tune",
        "Find the best coupling before anything is run: steps, algorithm, order, extrapolation.",
    ),
    "describe": ("show", "Classify a scenario as the literature does. Nothing is run."),
    "capabilities": ("capabilities", "Print which capabilities simulators have, need, and could emulate."),
    "probe": ("fmu_page", "Load an FMU, step it, and check that what it declares is true."),
    "new": ("scenario_files", "Write a scenario to begin with: it has comments and runs at once."),
    "export": (
        "run_output",
        "Write the rows of a run as CSV, Parquet, HDF5 or MATLAB; or a scenario as an FMU.",
    ),
    "compare": ("compare", "Compare two runs port by port: how far apart, where, within a tolerance?"),
    "plot": ("run_output", "Draw the ports of a run over time, one axes per unit."),
    "report": (
        "run_output",
        "Write one page about a run: verdict, ports with error bands, levels, timeline, tables.",
    ),
    "schema": ("scenario_files", "Print the JSON Schema of scenario files, for completion in an editor."),
}
"""By its name the module of each verb, which is imported when it is called, and what the list says of it."""


def load_command(name: str) -> Any:
    """Return the command of a verb, whose module is imported now; its docstring ends with examples."""
    function = getattr(import_module(f"hocket.cli.{VERBS[name][0]}"), name)
    about, _, examples = (inspect.getdoc(function) or "").partition("\n\nExamples:\n")
    alone = typer.Typer(add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False)
    alone.command(
        name,
        cls=PlotCommand if name == "run" else None,
        help="\n\n".join(paragraph.replace("\n", " ") for paragraph in about.split("\n\n")),
        epilog="\n\n".join(f"Example: [bold]{line.strip()}[/bold]" for line in examples.splitlines()),
    )(as_command(function))
    return typer.main.get_command(alone)


class VerbGroup(TyperGroup):
    """The verbs, each imported when it is called; one that does not exist is answered with the nearest."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take `help` and `help run` for `--help` and `run --help`."""
        return super().parse_args(ctx, [*args[1:2], "--help"] if args[:1] == ["help"] else args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the verb that the first word names."""
        word = args[0]
        if word not in self.commands and not word.startswith("-"):
            from hocket.files.formats import ENDINGS

            hint = f"did you mean `hocket run {word}`?" if word.endswith(ENDINGS) else ""
            ctx.fail(f"There is no verb `{word}`: {hint or suggest_nearest(word, self.commands)}")
        name, command, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if name in VERBS else command, rest


def _print_version(wanted: bool) -> None:
    if wanted:
        import hocket

        typer.echo(f"hocket {hocket.__version__}")
        raise typer.Exit


def _hocket(
    version: Annotated[
        bool,
        typer.Option(
            "--version", metavar="", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Couple simulators into one simulation, at any depth.

    Exit codes: 0 all is well, 1 the run failed or was stopped, 2 bad scenario or command, 3 not judged.
    """


app = typer.Typer(
    cls=VerbGroup,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: [bold]hocket new demo.toml && hocket run demo.toml[/bold]",
)
app.callback()(_hocket)
for _name, (_, _about) in VERBS.items():
    app.command(_name, help=_about)(lambda: None)  # stands in the list until it is called


def main() -> None:
    """Run the command line."""
    gc.disable()  # until the verb begins: what is imported lasts, and looking for garbage in it takes time
    _divert_native_output()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal may not know every sign
    app(prog_name="hocket")


def _divert_native_output() -> None:
    """Let what FMUs and other libraries print go to standard error: standard output is for answers.

    `--json -` and `--csv -` would else be something that nobody can read.
    """
    try:
        if not isinstance(sys.stdout, TextIOWrapper) or sys.stdout.fileno() != 1:
            return
        os.fstat(2)
        answers = os.dup(1)
        os.dup2(2, 1)
    except (OSError, ValueError):  # one of them is closed
        return
    lines, encoding = os.isatty(answers), sys.stdout.encoding
    sys.stdout = open(answers, "w", encoding=encoding, buffering=1 if lines else -1)  # noqa: SIM115
