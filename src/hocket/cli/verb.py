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

from hocket.cli.screen import failure, tell
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


def verb(function: Callable[..., None]) -> Callable[..., None]:
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
            raise typer.Exit(answered(error)) from None

    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def answered(error: BaseException) -> int:
    """Tell the user what went wrong; return the exit code."""
    if isinstance(error, KeyboardInterrupt):
        tell("interrupted", *getattr(error, "__notes__", ()))
        return 1
    if not isinstance(error, HocketError):
        failure(f"{type(error).__name__}: {error}")
        tell(_REPORT)
        return 1
    error.faults = tuple(map(_as_typed, error.faults))
    failure(error.text())
    if isinstance(error, ScenarioError):
        return 2  # before anything ran: no rows to speak of in notes
    tell(*getattr(error, "__notes__", ()))
    if isinstance(error, InternalError):
        tell(_REPORT)
    return 1


def _as_typed(fault: Fault) -> Fault:
    """Return a fault whose hint names options as they are typed, too."""
    hint = fault.hint
    for name, option in _TYPED.items():
        if option not in hint:
            hint = hint.replace(name, f"{name} ({option})")
    return replace(fault, hint=hint)
