"""hocket plan: what will be done, step by step, in words or as a picture.

In:  a scenario file, or FMUs
Out: the plan of every level, and what it costs; perhaps a picture of one macro step
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated

from rich.console import RenderableType
from rich.text import Text

from hocket.cli import options
from hocket.cli.command_arguments import read_changed
from hocket.cli.options import option
from hocket.cli.output_files import check_file, check_outputs, print_written, write_json
from hocket.cli.terminal import indent, print_notes, print_out
from hocket.errors import merge_notes
from hocket.files import wording
from hocket.model.clock import format_duration
from hocket.model.experiment import Experiment
from hocket.planning.break_even import BreakEven, break_even
from hocket.planning.cost import Cost, LinkCost, plan_cost
from hocket.planning.planner import plan_tree
from hocket.planning.tree import PlanTree


def plan(
    files: options.Files,
    changes: options.Changes = options.NO_CHANGES,
    plot: Annotated[Path | None, option("SVG", "Draw one macro step as a timeline.")] = None,
    as_json: options.Json = None,
) -> None:
    """Print what a step of each level consists of. Nothing is run.

    Examples:
        hocket plan car.toml --plot plan.svg
        hocket plan a.fmu b.fmu --connect b.u=a.y
    """
    from hocket.report.timeline import check_svg_ending, write_timeline_svg

    check_outputs(as_json)
    if plot:
        check_svg_ending(plot)
        check_file(plot)
    experiment = read_changed(files, changes, looks=True)
    levels = {level.path: level for level in plan_tree(experiment.composite).levels()}
    if as_json:
        write_json(as_json, "plan", _plan_facts(experiment, levels))
    if str(as_json) == "-":
        levels = {}
    for path, level in levels.items():
        around = levels[path.rpartition(".")[0]] if path else None
        if around:
            print_out("")
        print_out(*_plan_lines(level, around, path or experiment.name))
    if levels:
        design = plan_tree(experiment.composite)
        made = plan_cost(design)
        print_out("", *_cost_lines(made))
        even = break_even(design, made)
        if even is not None:
            print_out(*map(indent, _break_even_lines(even)))
        print_notes(experiment.notes)
    if plot:
        write_timeline_svg(plan_tree(experiment.composite), experiment.name, plot)
    if levels:
        print_written(plot, as_json)


def _plan_facts(experiment: Experiment, levels: Mapping[str, PlanTree]) -> dict[str, object]:
    """Return the plans of all levels and what a macro step costs, for JSON."""
    made = plan_cost(plan_tree(experiment.composite))
    plans = [
        {
            "level": path,
            "step [s]": float(level.composite.step),
            "orchestrator": wording.describe_orchestrator(level.composite.orchestrator),
            "lines": list(replace(level.plan, inner={}).lines())[1:],
        }
        for path, level in levels.items()
    ]
    return {
        "name": experiment.name,
        "levels": plans,
        "macro step": float(made.step),
        "simulator steps": {"all": float(sum(made.steps.values(), Fraction(0)))},
        "values exchanged": float(made.values),
        "notes": merge_notes(experiment.notes),
    }


def _plan_lines(level: PlanTree, around: PlanTree | None, name: str) -> Iterator[RenderableType]:
    facts = (
        wording.describe_pace(level, around),
        wording.describe_orchestrator(level.composite.orchestrator),
        f"outputs {level.plan.outputs}",
    )
    yield Text.assemble((name, "bold"), ": ", ", ".join(facts))
    _, *lines = replace(level.plan, inner={}).lines()
    for line in lines:
        body = Text(line.lstrip())
        deep = len(line) - len(body)
        if deep >= 4:
            body.stylize("green", 0, line.lstrip().find(" "))
        else:
            body.stylize("yellow" if line.lstrip().startswith("note:") else "cyan")
        yield indent(body, deep)
    if level.wiring.bonds:
        yield indent(Text("power bonds:", "cyan"))
    for joint in level.wiring.bonds:
        giver, taker = (level.wiring.names[side.child] for side in (joint.given, joint.taken))
        form = level.composite.scenario.bonds[joint.name].balance
        how = f", balanced by {form}" if form else ""
        yield indent(f"{joint.name} from {giver} to {taker}{how}", 4)


def _cost_lines(made: Cost) -> Iterator[RenderableType]:
    """Yield what a step of the outermost level costs, and what passes from host to host."""
    step = format_duration(made.step)
    yield Text.assemble(("costs", "bold"), f": per step of {step}")
    steps = sum(made.steps.values(), Fraction(0))
    rate = float(steps / made.step)
    lines = [
        f"{_format_fraction(steps)} simulator steps, {rate:.6g} per second",
        f"{_format_fraction(made.values)} values exchanged",
    ]
    lines += [_link_cost_line(each, made) for each in made.links]
    if made.links:
        lines.append(f"{made.link_time:.3g} s on the links per second, messages one after the other")
    yield from map(indent, lines)


def _link_cost_line(each: LinkCost, made: Cost) -> str:
    least = " at the least" if made.settles else ""
    iterations = f", {made.sweeps} iterations{least}" if made.sweeps > 1 else ""
    step = format_duration(made.hosts_step)
    now = f"{each.each.messages} ({each.bytes(each.each)} bytes) every {step}{iterations}"
    start = f"{each.start.messages} ({each.bytes(each.start)} bytes) to start"
    return f"messages from {each.source} to {each.target}: {now}; {start}"


GAIN = 1.5
"""A gain of which it is said from how much work on there is."""


def _break_even_lines(even: BreakEven) -> Iterator[str]:
    """Yield how the work is shared, and from how much of it on several hosts gain."""
    shares = ", ".join(f"{host} {100 * share:.3g} %" for host, share in even.shares.items())
    yield f"work by simulator steps: {shares}"
    if not even.parallel:
        yield "hosts wait for each other: they gain nothing over one host"
    elif even.exchange == 0.0:
        yield f"links cost nothing: {len(even.shares)} hosts gain at most {even.limit:.3g} times"
    else:
        more = "" if even.limit <= GAIN else f", {GAIN} times from {even.work_for(GAIN):.3g} s on"
        gains = f"{len(even.shares)} hosts gain from {even.work_for(1.0):.3g} s of work per exchange on"
        yield f"{gains}{more}; at most {even.limit:.3g} times"


def _format_fraction(number: Fraction) -> str:
    return str(number) if number.denominator == 1 else f"{float(number):.6g}"
