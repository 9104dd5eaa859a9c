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
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any, NamedTuple

import typer
import typer.main
from typer.core import TyperGroup

from hocket.cli.options import PlotCommand
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


class Verb(NamedTuple):
    """A verb before its module is imported: where it is, what the list of verbs says of it, examples."""

    place: str
    about: str
    examples: tuple[str, ...]


VERBS = {
    "run": Verb(
        "run:run",
        "Run a scenario, or FMUs, and keep what was computed; options win over the file.",
        (
            "hocket run car.toml --stop 10 --record 'axle.*' --plot car.png",
            "hocket run demo.toml --algorithm 'iterate(tolerance=1e-6)' --extrapolation linear",
            "hocket run ball.fmu --set e=0.8 --observe resting --plot",
            "hocket run a.fmu b.fmu --connect b.u=a.y --connect a.u=b.y",
        ),
    ),
    "check": Verb(
        "check:check",
        "Say before the run whether the coupling is well posed and stable, and how wrong it will be.",
        (
            "hocket check car.toml --stop 10 --algorithm gauss-seidel",
            "hocket check a.fmu b.fmu --connect b.u=a.y --json -",
            "hocket check runs/car-001 --plot wrong.png",
        ),
    ),
    "nest": Verb(
        "nest:nest",
        "Propose levels for a flat scenario: who should talk often, how often, and whether that pays.",
        (
            "hocket nest car.toml --tolerance 1e-3 --out nested.toml",
            "hocket nest car.toml --work 1.5 --plot clusters.png",
        ),
    ),
    "plan": Verb(
        "plan:plan",
        "Print what a step of each level consists of. Nothing is run.",
        ("hocket plan car.toml --plot plan.svg", "hocket plan a.fmu b.fmu --connect b.u=a.y"),
    ),
    "show": Verb(
        "show:show",
        "Print levels, models, ports and connections; of an FMU all there is to know. Nothing is run.",
        ("hocket show car.toml", "hocket show ball.fmu --all"),
    ),
    "sweep": Verb(
        "sweep:sweep",
        "Run with every combination of parameters, in parallel, and print what became of them.",
        (
            "hocket sweep ball.fmu --vary e=0.5,0.7,0.9 --vary h0=1:2:11",
            "hocket sweep car.ssp --vary spring.k=1e4:4e4:16 --csv k.csv",
        ),
    ),
    "compile": Verb(
        "compile:compile",
        "Make a scenario trivial: equations, algebraic loops and hosts become ordinary simulators"
        " and levels.",
        (
            "hocket compile car.toml --explain",
            "hocket compile car.toml --pass 'loops(how=steps)' --out simple.toml",
            "hocket compile simple.toml --undo --out car.toml",
        ),
    ),
    "tune": Verb(
        "tune:tune",
        "Find the best coupling: which steps, algorithm, order and extrapolation, before anything is run.",
        (
            "hocket tune car.toml --verify --page front.html",
            "hocket tune car.toml --over step=1ms:100ms:9:log --over extrapolation=hold,linear"
            " --limit work=1",
            "hocket tune car.toml --objective rho --objective delta --over b.u.alpha=-1:1.1:22"
            " --plot front.png",
            "hocket tune car.toml --apply 3 --out better.toml",
            "hocket tune car.toml --folder tuned --dask tcp://10.0.0.1:8786",
        ),
    ),
    "describe": Verb(
        "show:describe",
        "Classify a scenario as the literature does. Nothing is run.",
        ("hocket describe car.toml",),
    ),
    "capabilities": Verb(
        "capabilities:capabilities",
        "Print what each simulator can, what the algorithms and passes need, and what would emulate"
        " the rest.",
        (
            "hocket capabilities car.toml --algorithm iterate",
            "hocket capabilities car.toml --emulate able.toml",
        ),
    ),
    "probe": Verb(
        "fmu_page:probe",
        "Load an FMU, step it, and check that what it declares is true.",
        ("hocket probe engine.fmu",),
    ),
    "new": Verb(
        "scenario_files:new",
        "Write a scenario to begin with: it has comments and runs at once.",
        ("hocket new demo.toml",),
    ),
    "export": Verb(
        "export:export",
        "Write the rows of a run as CSV or Parquet, time first.",
        ("hocket export runs/car-001 car.csv --ports 'axle.*' --ports body.v",),
    ),
    "plot": Verb(
        "plot:plot",
        "Draw the ports of a run over time, one axes per unit.",
        ("hocket plot runs/car-001 'axle.*' --out axle.png",),
    ),
    "report": Verb(
        "report:report",
        "Write one page about a run: the verdict, ports with error bands, levels, timeline, tables.",
        ("hocket report runs/car-001 --open",),
    ),
    "schema": Verb(
        "scenario_files:schema",
        "Print the JSON Schema of scenario files, for completion in an editor.",
        ("hocket schema > hocket.schema.json",),
    ),
}


def load_command(name: str) -> Any:
    """Return the command of a verb, whose module is imported now."""
    module, _, attribute = VERBS[name].place.partition(":")
    function = getattr(import_module(f"hocket.cli.{module}"), attribute)
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")
    alone = typer.Typer(add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False)
    alone.command(
        name,
        cls=PlotCommand if name == "run" else None,
        help="\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs),
        epilog="\n\n".join(f"Example: [bold]{example}[/bold]" for example in VERBS[name].examples),
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
for _name, _verb in VERBS.items():
    app.command(_name, help=_verb.about)(lambda: None)  # stands in the list until it is called


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal may not know every sign
    app(prog_name="hocket")
