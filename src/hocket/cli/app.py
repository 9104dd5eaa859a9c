"""The verbs, gathered: what `hocket` is when it is typed.

In:  the words of a command line
Out: the verb that was meant, called; or the nearest one, offered
"""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import hocket
from hocket.cli.capabilities import abilities
from hocket.cli.check import check
from hocket.cli.compile import compile as compile_
from hocket.cli.export import export
from hocket.cli.fmu_page import probe
from hocket.cli.nest import nest
from hocket.cli.options import PlotCommand
from hocket.cli.plan import plan
from hocket.cli.plot import plot
from hocket.cli.report import report
from hocket.cli.run import run
from hocket.cli.scenario_files import new, schema
from hocket.cli.show import describe, show
from hocket.cli.sweep import sweep
from hocket.cli.terminal import print_err, print_failure
from hocket.cli.tune import tune
from hocket.errors import Fault, HocketError, InternalError, ScenarioError, suggest_nearest
from hocket.files.formats import ENDINGS

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


class Verbs(TyperGroup):
    """The verbs; one that does not exist is answered with the nearest."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take `help` and `help run` for `--help` and `run --help`."""
        return super().parse_args(ctx, [*args[1:2], "--help"] if args[:1] == ["help"] else args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the verb that the first word names."""
        word = args[0]
        if word not in self.commands and not word.startswith("-"):
            hint = f"did you mean `hocket run {word}`?" if word.endswith(ENDINGS) else ""
            ctx.fail(f"There is no verb `{word}`: {hint or suggest_nearest(word, self.commands)}")
        return super().resolve_command(ctx, args)


def _print_version(wanted: bool) -> None:
    if wanted:
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
    cls=Verbs,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: [bold]hocket new demo.toml && hocket run demo.toml[/bold]",
)
app.callback()(_hocket)
for _function, *_examples in (
    (
        run,
        "hocket run car.toml --stop 10 --record 'axle.*' --plot car.png",
        "hocket run demo.toml --algorithm 'iterate(tolerance=1e-6)' --extrapolation linear",
        "hocket run ball.fmu --set e=0.8 --observe resting --plot",
        "hocket run a.fmu b.fmu --connect b.u=a.y --connect a.u=b.y",
    ),
    (
        check,
        "hocket check car.toml --stop 10 --algorithm gauss-seidel",
        "hocket check a.fmu b.fmu --connect b.u=a.y --json -",
        "hocket check runs/car-001 --plot wrong.png",
    ),
    (
        nest,
        "hocket nest car.toml --tolerance 1e-3 --out nested.toml",
        "hocket nest car.toml --work 1.5 --plot clusters.png",
    ),
    (plan, "hocket plan car.toml --plot plan.svg", "hocket plan a.fmu b.fmu --connect b.u=a.y"),
    (show, "hocket show car.toml", "hocket show ball.fmu --all"),
    (
        sweep,
        "hocket sweep ball.fmu --vary e=0.5,0.7,0.9 --vary h0=1:2:11",
        "hocket sweep car.ssp --vary spring.k=1e4:4e4:16 --csv k.csv",
    ),
    (
        compile_,
        "hocket compile car.toml --explain",
        "hocket compile car.toml --pass 'loops(how=steps)' --out simple.toml",
        "hocket compile simple.toml --undo --out car.toml",
    ),
    (
        tune,
        "hocket tune car.toml --verify --page front.html",
        "hocket tune car.toml --over step=1ms:100ms:9:log --over extrapolation=hold,linear --limit work=1",
        "hocket tune car.toml --objective rho --objective delta --over b.u.alpha=-1:1.1:22 --plot front.png",
        "hocket tune car.toml --apply 3 --out better.toml",
        "hocket tune car.toml --folder tuned --dask tcp://10.0.0.1:8786",
    ),
    (describe, "hocket describe car.toml"),
    (
        abilities,
        "hocket abilities car.toml --algorithm iterate",
        "hocket abilities car.toml --emulate able.toml",
    ),
    (probe, "hocket probe engine.fmu"),
    (new, "hocket new demo.toml"),
    (export, "hocket export runs/car-001 car.csv --ports 'axle.*' --ports body.v"),
    (plot, "hocket plot runs/car-001 'axle.*' --out axle.png"),
    (report, "hocket report runs/car-001 --open"),
    (schema, "hocket schema > hocket.schema.json"),
):
    _paragraphs = (inspect.getdoc(_function) or "").split("\n\n")
    app.command(
        cls=PlotCommand if _function is run else None,
        help="\n\n".join(paragraph.replace("\n", " ") for paragraph in _paragraphs),
        epilog="\n\n".join(f"Example: [bold]{example}[/bold]" for example in _examples),
    )(as_command(_function))


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal may not know every sign
    app(prog_name="hocket")
