"""The page of an FMU: what it is, what it can do, whether it runs here, its variables.

In:  the path of an .fmu
Out: lines and tables for the screen; nothing of the FMU is loaded
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from hocket.cli.options import Json, argument, flag, option
from hocket.cli.output_files import check_outputs, write_json
from hocket.cli.terminal import console, indent, is_terminal, label_grid, plain_table, print_out, titled_table
from hocket.errors import ScenarioError, count, list_names
from hocket.files.fmus import experiment_from_fmus
from hocket.files.formats import read
from hocket.model.clock import format_duration
from hocket.simulators.fmu.archive import DESCRIPTION, unpack_archive
from hocket.simulators.fmu.binaries import (
    DIRECTIONAL,
    INPUT_SLOPES,
    OUTPUT_SLOPES,
    STATE,
    exported_functions,
    find_binary,
    required_functions,
)
from hocket.simulators.fmu.building import build_binary
from hocket.simulators.fmu.description import read_description
from hocket.simulators.fmu.libraries import (
    LFS_HINT,
    describe_unfit_binary,
    install_hint,
    is_lfs_pointer,
    missing_libraries,
)
from hocket.simulators.fmu.probe import probe as probed
from hocket.simulators.fmu.recipe import Fmu
from hocket.simulators.fmu.variables import Description, FmuInterface, FmuVariable, array_of
from hocket.simulators.recipes import positive_duration

_GROUPS = (
    ("inputs", ("input",)),
    ("outputs", ("output",)),
    ("parameters", ("parameter", "structuralParameter")),
    ("calculated parameters", ("calculatedParameter",)),
    ("locals", ("local", "independent")),
)


def _functions_containing(part: str) -> dict[int, tuple[str, ...]]:
    """Return the functions of FMI whose names have a part, by version."""
    return {
        major: tuple(name for name in required_functions(major, exchange=False) if part in name.lower())
        for major in (1, 2, 3)
    }


_CLAIMS: tuple[tuple[str, str, Mapping[int, str | tuple[str, ...]]], ...] = (
    ("can_save", "rollback", STATE),
    ("can_serialise", "serialised states", _functions_containing("serialize")),
    ("variable_step", "steps of any length", {}),
    ("interpolates_inputs", "inputs that move during a step", INPUT_SLOPES),
    ("output_derivatives", "output derivatives", OUTPUT_SLOPES),
    ("intermediate_update", "intermediate update", {}),
    ("event_mode", "event mode", {}),
    ("early_return", "steps may end early", {}),
    ("directional", "directional derivatives", DIRECTIONAL),
    ("adjoint", "adjoint derivatives", _functions_containing("adjoint")),
    ("asynchronous", "steps in the background", {}),
    ("completed_step", "wants to be told of each completed step", {}),
    ("only_once", "one instance per process (hocket gives each a process of its own)", {}),
    ("needs_execution_tool", "needs the tool that made it", {}),
)
"""What an interface may declare, in words, and the functions that it takes."""


def is_fmu(file: Path) -> bool:
    """Return whether a path is that of an FMU, packed or not."""
    return (file.suffix.lower() == ".fmu" and file.exists()) or (file / DESCRIPTION).is_file()


_ROWS = 200
"""Variables of one causality that are listed unless all are asked for."""
_NAMES = 12
"""Inputs that are listed beside an output."""


def fmu_page(file: Path, everything: bool, build: bool = False) -> Iterator[RenderableType]:
    """Yield what there is to know of an FMU, locals too if everything is asked for; `build` compiles it."""
    folder = unpack_archive(file.absolute())
    description = read_description(folder, str(file))
    interfaces = {"co-simulation": description.cs, "model exchange": description.me}
    there = {name: interface for name, interface in interfaces.items() if interface is not None}
    fmu, refusal = _model_or_refusal(file)
    yield Text.assemble((description.name, "bold"), f"  FMI {description.version}, ", " and ".join(there))
    if description.about:
        yield indent(description.about)
    made = ", ".join(text for text in (description.tool, description.date) if text)
    facts: list[tuple[str, RenderableType]] = [
        *([("made by", made)] if made else []),
        *_platform_facts(folder, description, there, refusal, build),
        *_experiment_facts(description, fmu),
        *((name, _capability_words(folder, description, one)) for name, one in there.items()),
        *_content_facts(description),
    ]
    yield label_grid(facts)
    for title, causalities in _GROUPS:
        chosen = [variable for variable in description.variables if variable.causality in causalities]
        if everything or title != "locals":
            shown = chosen if everything else chosen[:_ROWS]
            yield from titled_table(title, _variable_rows(shown, fmu), None)
            if len(shown) < len(chosen):
                yield f"and {len(chosen) - len(shown):,} more: --all"
    yield from titled_table("terminals", list(_terminal_rows(fmu)), None)
    notes = fmu.notes if fmu else description.problems
    yield from ("" for _ in notes[:1])
    yield from (Text(f"note: {note}", "yellow") for note in notes)
    if fmu is not None:
        yield from ("", f"run it:  hocket run {shlex.quote(str(file))} --plot")


def _terminal_rows(fmu: Fmu | None) -> Iterator[dict[str, object]]:
    """Yield the terminals that may be connected by name, with their members."""
    for top in fmu.terminals if fmu is not None else ():
        for each in top.all():
            yield {
                "terminal": each.name,
                "kind": each.kind,
                "matching rule": each.rule,
                "members": ", ".join(member.name for member in each.members),
            }


def _model_or_refusal(file: Path) -> tuple[Fmu | None, str]:
    """Return the FMU as a model, or why it cannot be one."""
    try:
        (model,) = read(file).composite.scenario.models.values()
    except ScenarioError as error:
        return None, "; ".join(fault.what for fault in error.faults)
    assert isinstance(model, Fmu)
    return model, ""


def _platform_facts(
    folder: Path, description: Description, there: dict[str, FmuInterface], refusal: str, build: bool
) -> Iterator[tuple[str, Text]]:
    """Yield whether it runs on this computer, with all that its binary needs, and the platforms it is for."""
    built = False
    for interface in () if refusal else there.values():
        try:
            binary = find_binary(folder, description, interface)
        except ScenarioError as error:
            refusal, built = f"{error.faults[0].what}; {error.faults[0].hint}", build
            if not build:
                break
            try:
                binary = build_binary(folder, description, interface, description.name)
            except ScenarioError as error:
                refusal = error.faults[0].what
                break
            refusal = ""
        refusal = refusal or _loading_refusal(binary)
    yes = "yes, compiled from its sources (run it with --build)" if built else "yes"
    yield "runs here", Text(f"no: {refusal}", "bold red") if refusal else Text(yes, "green")
    yield "platforms", Text(", ".join(description.platforms) or "none")


def _loading_refusal(binary: Path) -> str:
    unfit, missing = describe_unfit_binary(binary), missing_libraries(binary)
    if unfit and is_lfs_pointer(binary):
        return f"{unfit}: {LFS_HINT}"
    if unfit or not missing:
        return unfit
    hint = install_hint(missing)
    return f"it needs {', '.join(map(str, missing))}, not found here" + (f"; {hint}" if hint else "")


def _experiment_facts(description: Description, fmu: Fmu | None) -> Iterator[tuple[str, str]]:
    ends = (("from", description.start), ("to", description.stop))
    span = [f"{word} {time:g} s" for word, time in ends if time is not None]
    told = [" ".join(span)] if span else []
    told += [f"steps of {description.step:g} s"] if description.step is not None else []
    told += [f"tolerance {description.tolerance:g}"] if description.tolerance is not None else []
    yield "experiment", ", ".join(told) or "not told"
    if fmu is not None:
        experiment = experiment_from_fmus({"fmu": fmu})
        assert experiment.stop is not None
        step, start, stop = map(
            format_duration, (experiment.composite.step, experiment.start, experiment.stop)
        )
        yield "hocket run", f"steps of {step} from {start} to {stop}, unless told otherwise"


def _capability_words(folder: Path, description: Description, interface: FmuInterface) -> Text:
    """Return what an interface can do; what its binary has no functions for is said so."""
    words: list[str] = []
    lacking: list[str] = []
    for name, word, functions in _CLAIMS:
        needed = functions.get(description.major, ())
        needed = (needed,) if isinstance(needed, str) else needed
        integrated = name == "variable_step" and interface is description.me
        if getattr(interface, name) and not integrated:
            missing = _missing_functions(folder, description, interface, needed)
            (lacking if missing else words).append(f"{word} ({', '.join(missing)})" if missing else word)
    if interface.fixed_step:
        words.append(f"internal steps of {interface.fixed_step:g} s")
    text = Text(", ".join(words) or "no more than it must")
    if lacking:
        text.append(f"; declared, but its binary lacks the functions: {', '.join(lacking)}", "yellow")
    return text


def _missing_functions(
    folder: Path, description: Description, interface: FmuInterface, needed: Sequence[str]
) -> list[str]:
    try:
        there = exported_functions(
            find_binary(folder, description, interface), description, interface, needed
        )
    except ScenarioError:
        return []
    return [name for name in needed if name not in there]


def _content_facts(description: Description) -> Iterator[tuple[str, str]]:
    found = Counter(variable.causality for variable in description.variables)
    counts = {title: sum(found[causality] for causality in causalities) for title, causalities in _GROUPS}
    listed = [count(number, title.removesuffix("s")) for title, number in counts.items() if number]
    yield "holds", ", ".join(listed) or "no variables"
    states = [state for state, _ in description.states]
    if description.unnamed_states:
        yield "states", f"{description.unnamed_states}, which FMI 1 does not name"
    if states:
        yield "states", f"{len(states)}: {list_names(states, 8, quote='')}"
    if description.event_indicators:
        yield "event indicators", str(description.event_indicators)


def _variable_rows(variables: Iterable[FmuVariable], fmu: Fmu | None) -> list[dict[str, str]]:
    """Return a row for each variable; columns that nothing has are left out."""
    outputs = fmu.outputs if fmu else ()
    through = {array_of(port.name): port.feedthrough for port in outputs}
    through |= {port.name: port.feedthrough for port in outputs}
    rows = [
        {
            "name": variable.name,
            "type": _variable_type(variable),
            "unit": variable.unit,
            "start": _format_start_value(variable.start),
            "range": _variable_range(variable),
            "direct feedthrough of": list_names(through.get(variable.name, ()), _NAMES, quote="")
            if variable.causality == "output"
            else "",
            "about": variable.about,
        }
        for variable in variables
    ]
    used = {head for row in rows for head, text in row.items() if text} | {"name", "type"}
    return [{head: text for head, text in row.items() if head in used} for row in rows]


def _variable_type(variable: FmuVariable) -> str:
    sizes = f" [{' x '.join(map(str, variable.dimensions))}]" if variable.dimensions else ""
    fixed = " tunable" if variable.variability == "tunable" else ""
    return f"{variable.type}{sizes}{fixed}"


def _format_start_value(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_format_start_value, value[:6])) + (" ..." if len(value) > 6 else "")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return value[:16].hex() + ("..." if len(value) > 16 else "")
    return "" if value is None else f"{value:g}" if isinstance(value, float) else repr(value)


def _variable_range(variable: FmuVariable) -> str:
    if variable.items:
        return ", ".join(f"{item} = {number}" for item, number in variable.items.items())
    low, high = variable.minimum, variable.maximum
    if low is not None and high is not None:
        return f"{low:g} .. {high:g}"
    return f">= {low:g}" if low is not None else f"<= {high:g}" if high is not None else ""


_STYLES = {"true": "green", "false": "bold red", "not declared": "dim", "untried": "yellow"}


def probe(
    file: Annotated[Path, argument("FMU", "An FMU.")],
    interface: Annotated[str, option("NAME", "co-simulation or model-exchange, if it has both.")] = "auto",
    time_limit: Annotated[str, option("TIME", "The longest time of a check.")] = "60 s",
    here: Annotated[bool, flag("--here", "In this process: a crash of the FMU ends it.")] = False,
    as_json: Json = None,
) -> None:
    """Load an FMU, step it, and check that what it declares is true.

    Exit codes: 0 it is, 1 it is not or the FMU fails, 2 the FMU cannot be read.

    Examples:
        hocket probe engine.fmu
    """
    check_outputs(as_json)
    limit: Any = positive_duration(time_limit, "--time-limit")
    named: Any = interface
    model = Fmu(file, interface=named, time_limit=limit)
    looked_at = is_terminal(stderr=True)
    busy = console(stderr=True, moving=True).status("probing it") if looked_at else nullcontext()
    with busy:
        found = probed(model, here=here)
    if as_json:
        rows = [{"name": each.name, "verdict": each.verdict, "found": each.what} for each in found.findings]
        facts = {"good": not found.failed_checks, "summary": found.summary, "findings": rows}
        write_json(as_json, "probe", facts)
    if str(as_json) == "-":
        if found.failed_checks:
            raise typer.Exit(1)
        return
    table = plain_table("capability", "verdict", no_wrap=True)
    table.add_column("found", overflow="fold")
    for finding in found.findings:
        quiet = "dim" if finding.verdict == "not declared" else ""
        verdict = Text(finding.verdict, _STYLES[finding.verdict])
        table.add_row(Text(finding.name, quiet), verdict, Text(finding.what, quiet))
    print_out(table, "", Text(found.summary, "bold red" if found.failed_checks else "bold green"))
    if found.failed_checks:
        raise typer.Exit(1)
