"""What every verb shares: its errors become messages on stderr and exit codes.

In:  a function of the library, as a verb calls it
Out: a command; 0 if it went well, 1 if a run failed or was stopped, 2 if the scenario is wrong
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Annotated, Any

import typer

from hocket.cli.screen import print_err, print_failure
from hocket.errors import Fault, HocketError, InternalError, ScenarioError

_REPORT = "This is a fault of hocket's own: please report it, with what `--debug` shows."
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


def as_command(function: Callable[..., None]) -> Callable[..., None]:
    """Return the function as a command with the option `--debug`."""
    signature = inspect.signature(function, eval_str=True)
    parameters = [*signature.parameters.values(), _DEBUG]

    @wraps(function)
    def command(*, debug: bool = False, **arguments: Any) -> None:
        try:
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
