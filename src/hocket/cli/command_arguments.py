"""What was typed for an algorithm or an extrapolation takes the place of what the file says.

In:  texts such as `gauss-seidel`, `iterate(tolerance=1e-6)` and `axle=linear`
Out: the Experiment with other levels; or every fault with the option it is in
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import hocket
from hocket.cli.options import Changes, FmuChoices
from hocket.errors import Fault, Place, ScenarioError, collect_faults, raise_faults, suggest_nearest
from hocket.files.toml.registered_kinds import EXTRAPOLATIONS, ORCHESTRATORS, KindFamily
from hocket.files.toml.syntax import FilePlace, Source, TomlFindings
from hocket.model.clock import format_duration, seconds
from hocket.model.code_loading import is_code_refused
from hocket.model.composite import Composite, levels
from hocket.model.experiment import Experiment
from hocket.model.ports import matches
from hocket.model.scenario import Connection
from hocket.planning.parameters import (
    is_fmu,
    is_level_step,
    leaves,
    split_parameter_path,
    with_leaves,
    with_parameters,
)
from hocket.planning.planner import plan_tree
from hocket.planning.unloaded import without_code
from hocket.simulators.recipes import positive_duration

_FAMILIES: dict[str, KindFamily] = {"algorithm": ORCHESTRATORS, "extrapolation": EXTRAPOLATIONS}
_EXAMPLES = {
    "algorithm": "iterate(tolerance=1e-6)",
    "extrapolation": "nepce(alpha=-0.1)",
    "pass": "loops(how=steps)",
}
_PARTS = re.compile(
    r"""(?P<quoted>"[^"]*"|'[^']*')
      | (?P<call>[A-Za-z][\w-]*)\s*\((?P<none>\s*\))?
      | (?P<word>[A-Za-z][\w-]*)(?!\s*[=\w.-])
      | (?P<part>\d+/\d+)
      | (?P<end>\))
      | (?P<other>[\w.+-]+|.)""",
    re.VERBOSE | re.DOTALL,
)
_KEYS = ("orchestrator", "order", "rates", "inner", "tolerance")
"""Where the faults of algorithms are that show in a scenario only."""
_VALUES = ("true", "false", "inf", "nan")


def _without_code(experiment: Experiment) -> Experiment:
    """Return the experiment as it can be looked at: without its code, unless `--code` was typed."""
    return without_code(experiment, "--code loads it: that runs it") if is_code_refused() else experiment


def with_algorithms(
    experiment: Experiment,
    algorithm: Sequence[str] | None,
    extrapolation: Sequence[str] | None,
    suited: bool = True,
) -> Experiment:
    """Return the experiment with what was typed for its levels; without a level's name it is the outermost.

    `suited`: what does not suit its level is refused.
    """
    known = {path.removesuffix("."): each for path, each in levels(experiment.composite)}
    faults: list[Fault] = []
    how: dict[str, dict[str, Any]] = {}
    typed: dict[str, str] = {}
    choices = [("algorithm", "orchestrator", text) for text in algorithm or ()]
    choices += [("extrapolation", "extrapolation", text) for text in extrapolation or ()]
    for option, part, text in choices:
        with collect_faults(faults):
            path, read = _parse_level_choice(text, option, known)
            how.setdefault(path, {})[part] = read
            if option == "algorithm":
                typed[path] = f"--algorithm {text}"
    raise_faults(faults)
    if not how:
        return experiment
    made = _replace_algorithms(experiment.composite, how)
    return replace(experiment, composite=_require_suitable(made, typed) if suited else made)


def _require_suitable(composite: Composite, typed: Mapping[str, str]) -> Composite:
    """Return the composite if what was typed suits its levels."""

    def typed_place(place: Place) -> Place | None:
        meant = place.level in typed and (place.section or place.key) in _KEYS
        return Place.of(typed[place.level]) if meant else None

    return _require_plan(composite, typed_place)


def _require_plan(composite: Composite, typed_place: Callable[[Place], Place | None]) -> Composite:
    """Return the composite if its plan has no faults in what was typed; others are for the run to tell."""
    faults: list[Fault] = []
    with collect_faults(faults):
        plan_tree(composite)
    found = [(fault, typed_place(fault.place)) for fault in faults]
    raise_faults(replace(fault, place=place) for fault, place in found if place)
    return composite


def _replace_algorithms(
    composite: Composite, how: Mapping[str, Mapping[str, Any]], path: str = ""
) -> Composite:
    inside = f"{path}." if path else ""
    models = {
        name: _replace_algorithms(model, how, f"{inside}{name}") if isinstance(model, Composite) else model
        for name, model in composite.scenario.models.items()
    }
    return composite.with_changes(scenario=composite.scenario.with_models(models), **how.get(path, {}))


def _parse_level_choice(text: str, option: str, known: Mapping[str, Composite]) -> tuple[str, Any]:
    """Return the path of a level and what was typed for it."""
    where = f"--{option} {text}"
    head, sign, rest = text.partition("=")
    named = bool(sign) and not set("({") & set(head)
    path, meant = (head.strip(), rest.strip()) if named else ("", text.strip())
    if path not in known:
        inner = [name for name in known if name.endswith(f".{path}")] or [name for name in known if name]
        hint = suggest_nearest(path, inner) if inner else f"there is the outermost only: `--{option} {meant}`"
        raise ScenarioError(f"there is no level `{path}`", where, "the path of a level", hint)
    return path, parse_kind(_FAMILIES[option], meant, option, where)


def parse_kind(
    family: KindFamily, text: str, option: str, where: str, more: Mapping[str, Any] | None = None
) -> Any:
    """Return what a text such as `iterate(tolerance=1e-6)` means; `more` are options that may be left out."""
    value = _parse_toml_value(text, option, where)
    if more:
        value = {**more, **(value if isinstance(value, dict) else {"type": value})}
    findings = TomlFindings()
    place = FilePlace(findings, Source(where, table={option: value}), (option,))
    read = family.read(value, place)
    if findings.faults:
        raise ScenarioError(findings.sorted_faults())
    return read


def _parse_toml_value(typed: str, option: str, where: str) -> Any:
    """Return what a file would hold: a word, or a table; `a(b=c)` is short for `{ type = "a", b = "c" }`."""
    if not set("({[=") & set(typed):
        return typed
    try:
        table = typed if typed.startswith("{") else "".join(map(_token_to_toml, _PARTS.finditer(typed)))
        return tomllib.loads(f"value = {table}")["value"]
    except tomllib.TOMLDecodeError:
        expected = f"a word, or a word with options in quotes: '{_EXAMPLES[option]}'"
        hint = "" if typed.count("(") == typed.count(")") else "a bracket is not closed"
        raise ScenarioError(f"`{typed}` cannot be read", where, expected, hint) from None


def _token_to_toml(found: re.Match[str]) -> str:
    match found.lastgroup:
        case "call" | "none":
            return f'{{ type = "{found["call"]}"' + (" }" if found["none"] else ", ")
        case "word" if found["word"] not in _VALUES:
            return f'"{found["word"]}"'
        case "part":
            return f'"{found["part"]}"'
        case "end":
            return " }"
    return found[0]


_OPTIONS = {"step": "--step", "parameters": "--set", "threads": "--threads", "realtime": "--realtime"}
_RUN_KEYS = ("start", "stop", "every", "record")


def read_experiment(
    files: Sequence[Path],
    connect: Sequence[str] = (),
    observe: Sequence[str] = (),
    how: Mapping[str, Mapping[str, Any]] | None = None,
) -> Experiment:
    """Return what was typed as one experiment; `how` are options of its FMUs, by what was typed."""
    experiment = hocket.read(files[0]) if len(files) == 1 else _couple_fmus(files)
    composite = _with_fmu_options(experiment.composite, how or {}, str(files[0]))
    composite = _with_observed(composite, observe)
    composite = _with_connections(composite, connect)
    return replace(experiment, composite=composite)


def fmu_options(typed: FmuChoices) -> dict[str, dict[str, Any]]:
    """Return the options of FMUs that were typed, and what they mean to an `Fmu`."""
    isolate = typed.isolate
    limit = None if typed.time_limit is None else positive_duration(typed.time_limit, "--time-limit")
    meant: dict[str, dict[str, Any] | None] = {
        "--interface": {"interface": typed.interface.value} if typed.interface else None,
        "--isolate" if isolate else "--no-isolate": None if isolate is None else {"isolate": isolate},
        "--no-stop-time": {"stop_time": False} if typed.no_stop_time else None,
        "--time-limit": None if limit is None else {"isolate": True, "time_limit": limit},
        "--log": {"logging": True} if typed.log else None,
    }
    return {option: meaning for option, meaning in meant.items() if meaning}


def _with_fmu_options(composite: Composite, how: Mapping[str, Mapping[str, Any]], where: str) -> Composite:
    """Return the composite with these options of all of its FMUs; without any FMU they are refused."""
    if not how:
        return composite
    from hocket.simulators.fmu.recipe import Fmu, remake_fmu  # here: most runs have no FMU

    fmus = {path: model for path, model in leaves(composite) if isinstance(model, Fmu)}
    if not fmus:
        what = "`{}` is for FMUs, and there is none"
        raise ScenarioError([Fault(what.format(option), where, "", "leave it out") for option in how])
    meant = {name: value for meaning in how.values() for name, value in meaning.items()}
    return with_leaves(composite, {path: remake_fmu(fmu, **meant) for path, fmu in fmus.items()})


def _couple_fmus(files: Sequence[Path]) -> Experiment:
    others = [file for file in files if file.suffix.lower() != ".fmu" and not file.is_dir()]
    if others:
        what = f"{len(files)} files were given, and `{others[0]}` is not an FMU"
        raise ScenarioError(what, "", "one scenario, or several FMUs")

    from hocket.files.fmus import experiment_from_fmus, model_name
    from hocket.simulators.fmu.recipe import Fmu

    fmus: dict[str, Fmu] = {}
    for file in files:
        (fmu,) = hocket.read(file).composite.scenario.models.values()
        assert isinstance(fmu, Fmu)
        fmus[model_name(file, fmus)] = fmu
    return replace(experiment_from_fmus(fmus), name="-".join(fmus))


def _with_observed(composite: Composite, names: Sequence[str]) -> Composite:
    """Return the composite with variables of its FMUs put out."""
    if not names:
        return composite
    from hocket.simulators.fmu.recipe import Fmu, remake_fmu

    wanted: dict[str, tuple[str, ...]] = {}
    for written in names:
        path, name = split_parameter_path(composite, written, f"--observe {written}")
        wanted[path] = (*wanted.get(path, ()), name)
    models, changed, faults = dict(leaves(composite)), {}, []
    for path, observe in wanted.items():
        fmu = models[path]
        if not isinstance(fmu, Fmu):
            faults.append(Fault(f"`{path}` is not an FMU", f"--observe {path}.{observe[0]}"))
            continue
        try:
            changed[path] = remake_fmu(fmu, observe=(*fmu.observe, *observe))
        except ScenarioError as error:
            faults += [replace(fault, place=Place(option="--observe")) for fault in error.faults]
    raise_faults(faults)
    return with_leaves(composite, changed)


def _with_connections(composite: Composite, written: Sequence[str]) -> Composite:
    """Return the composite with more connections, written `b.u=a.y` or `a.y->b.u`."""
    made = []
    for text in written:
        source, arrow, target = (part.strip() for part in text.partition("->"))
        if not arrow:
            target, arrow, source = (part.strip() for part in text.partition("="))
        if not (source and arrow and target):
            expected = "input=output, as b.u=a.y, or output->input in quotes"
            raise ScenarioError(f"`{text}` is not a connection", "--connect", expected)
        made.append(Connection(_full_port_path(composite, source), _full_port_path(composite, target)))
    scenario = composite.scenario
    if not made:
        return composite
    joined = composite.with_scenario(scenario.with_changes(connections=(*scenario.connections, *made)))
    option = Place(option="--connect")
    return _require_plan(joined, lambda place: option if place.section == "connections" else None)


def _full_port_path(composite: Composite, port: str) -> str:
    """Return the path of a port: where there is one model only, that need not be named."""
    models = composite.scenario.models
    name, model = next(iter(models.items()))
    single = len(models) == 1 and not isinstance(model, Composite)
    known = [known.name for known in (*model.inputs, *model.outputs)]
    return f"{name}.{port}" if single and any(matches(one, port) for one in known) else port


def record_patterns(experiment: Experiment, patterns: Sequence[str] | None) -> list[str] | None:
    """Return the patterns of `--record` as paths; None: what the scenario records."""
    for pattern in patterns or ():
        _check_port(experiment.composite, pattern)
    return [_full_port_path(experiment.composite, pattern) for pattern in patterns] if patterns else None


def _check_port(composite: Composite, name: str) -> None:
    """Refuse a variable of an FMU that would have to be observed first."""
    try:
        path, variable = split_parameter_path(composite, name)
    except ScenarioError:
        return  # a pattern, or a name that the run refuses
    model: Any = dict(leaves(composite))[path]
    ports = [port.name for port in (*model.inputs, *model.outputs)]
    if is_fmu(model) and variable in model.description.by_name and variable not in ports:
        array = bool(model.description.by_name[variable].dimensions)
        hint = f"--record '{name}*'" if array else f"--observe {name}"
        what = f"`{name}` is not a port but {'an array of them' if array else 'a variable inside'}"
        raise ScenarioError(what, "--record", "an input or output", hint)


def parse_assignments(
    experiment: Experiment, written: Sequence[str], option: str = "--set"
) -> dict[str, Any]:
    """Return parameters by path from texts such as `a.k=20`."""
    pairs = [split_assignment(text, option) for text in written]
    return {name: parse_value_for(experiment, name, value, option) for name, value in pairs}


def split_assignment(text: str, option: str, expected: str = "name=value, as k=20") -> tuple[str, str]:
    """Return the name and the value of `k=20`."""
    name, sign, value = (part.strip() for part in text.partition("="))
    if not (name and sign):
        raise ScenarioError(f"`{text}` is not a name with a value", option, expected)
    return name, value


def parse_value_for(experiment: Experiment, name: str, text: str, option: str) -> Any:
    """Return what a text means to the variable it is for: a number, true, false, a list; else the text."""
    if is_level_step(experiment.composite, name):
        return parse_literal(text)
    path, variable = split_parameter_path(experiment.composite, name, f"{option} {name}")
    model: Any = dict(leaves(experiment.composite))[path]
    declared = model.description.by_name.get(variable) if is_fmu(model) else None
    found = parse_literal(text)
    is_text = declared is not None and declared.type in ("string", "binary") and not declared.dimensions
    return text if is_text and not isinstance(found, str) else found


def parse_literal(text: str) -> Any:
    """Return a text as the number, truth, list or text it is."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        found = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        try:
            return float(text)
        except ValueError:
            return text
    return found if isinstance(found, (bool, int, float, str, list)) else text


def read_for_run(
    verb: str,
    files: Sequence[Path],
    changes: Changes,
    observe: Sequence[str],
    fmus: Mapping[str, Mapping[str, Any]],
    stop: str | None,
    ledger: bool,
) -> Experiment:
    """Return what was typed as an experiment that can be run: it ends, and there are bonds for a ledger.

    Its parameters are left to the run, which keeps them.
    """
    experiment = read_changed(files, replace(changes, assign=None), observe=observe, how=fmus)
    check_stop(experiment, stop, files, verb)
    if ledger and not any(level.wiring.bonds for level in plan_tree(experiment.composite).levels()):
        hint = "leave it out"
        hint += ", or give the file a table [bonds.NAME] with `effort` and `flow`" if _is_toml(files) else ""
        where = ", ".join(map(str, files))
        raise ScenarioError("`--ledger` is for power bonds, and there is none", where, "", hint)
    return experiment


def check_stop(experiment: Experiment, stop: str | None, files: Sequence[Path], verb: str) -> None:
    """Refuse a run that nothing would end."""
    if experiment.stop is None and stop is None:
        hint = f"`hocket {verb} {files[0]} --stop 10`"
        hint += ", or in the file: a table [run] with `stop = 10`" if _is_toml(files) else ""
        raise ScenarioError("nothing says when the run stops", str(files[0]), "a stop time", hint)


def read_changed(
    files: Sequence[Path],
    changes: Changes,
    stop: str | None = None,
    *,
    observe: Sequence[str] = (),
    how: Mapping[str, Mapping[str, Any]] | None = None,
    looks: bool = False,
) -> Experiment:
    """Return what was typed as one experiment: with connections, step, algorithms, parameters and end.

    `looks`: it is not run, and looked at without its code unless `--code` was typed.
    """
    if changes.build:
        how = {**(how or {}), "--build": {"build": True}}
    experiment = read_experiment(files, changes.connect or (), observe, how)
    experiment = with_changes(_without_code(experiment) if looks else experiment, changes)
    return replace(experiment, stop=parse_stop(experiment, stop)) if stop is not None else experiment


ISOLATED = 8
"""Co-simulation FMUs up to which each has a process of its own while they are identified."""


def isolate_few(experiment: Experiment) -> Experiment:
    """Return the experiment with its FMUs isolated, if they are few: to be pushed about may end a process."""
    fmus = {path: model for path, model in leaves(experiment.composite) if is_fmu(model)}
    if not fmus:
        return experiment
    from hocket.simulators.fmu.first_contact import is_wanted
    from hocket.simulators.fmu.recipe import Fmu, remake_fmu

    undecided = {
        path: remake_fmu(fmu, isolate=True)
        for path, fmu in fmus.items()
        if isinstance(fmu, Fmu) and fmu.isolate is None and not fmu.exchange
    }
    if not is_wanted() or len(undecided) > ISOLATED:
        return experiment
    return replace(experiment, composite=with_leaves(experiment.composite, undecided))


def with_changes(experiment: Experiment, changes: Changes, suited: bool = True) -> Experiment:
    """Return the experiment with the step, the algorithms and the parameters that were typed.

    `suited`: an algorithm that does not suit its level is refused.
    """
    if changes.step is not None:
        with locate_faults((), ()):
            composite = experiment.composite.with_changes(step=changes.step)
        experiment = replace(experiment, composite=composite)
    experiment = with_algorithms(experiment, changes.algorithm, changes.extrapolation, suited)
    values = parse_assignments(experiment, changes.assign or ())
    return replace(experiment, composite=with_parameters(experiment.composite, values, "--set"))


def parse_stop(experiment: Experiment, typed: str | None) -> Fraction | None:
    """Return when the run stops, as it was typed or as the file says; None: nothing says it."""
    try:
        end = experiment.stop if typed is None else seconds(typed)
    except ValueError as error:
        raise ScenarioError(str(error), "--stop", '10, "500 ms", "2 min"') from None
    if end is not None and end <= experiment.start:
        what = f"the run stops at {format_duration(end)} and starts at {format_duration(experiment.start)}"
        raise ScenarioError(what, "--stop", f"more than {format_duration(experiment.start)}")
    return end


def folder_stem(files: Sequence[Path], experiment: Experiment) -> str:
    """Return how the folders of runs begin."""
    return files[0].stem if len(files) == 1 else experiment.name


def _is_toml(files: Sequence[Path]) -> bool:
    return files[0].suffix == ".toml"


@contextmanager
def locate_faults(files: Sequence[Path], typed: Sequence[str], own: Sequence[str] = ()) -> Iterator[None]:
    """Let faults of the run say whether they come from an option or from the file; `own` are options only."""
    try:
        yield
    except ScenarioError as error:
        error.faults = tuple(
            replace(fault, place=_typed_place(fault.place, files, typed, own)) for fault in error.faults
        )
        raise


def _typed_place(place: Place, files: Sequence[Path], typed: Sequence[str], own: Sequence[str]) -> Place:
    """Return the place of a fault as the user of the command knows it."""
    if place.level or place.option:
        return place
    name = place.section or place.key
    if name == "parameters" and place.section and place.key:
        return Place(option="--vary or --set" if "set" in typed else "--vary", detail=place.detail)
    if name in own or (name in _RUN_KEYS and name in typed):
        return Place(option=f"--{name}", detail=place.detail)
    if name in _RUN_KEYS:
        return Place(detail=f"`{name}` in {', '.join(map(str, files))}")
    return Place(option=_OPTIONS[name], detail=place.detail) if name in _OPTIONS else place
