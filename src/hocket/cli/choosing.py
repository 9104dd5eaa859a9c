"""What was typed for an algorithm or an extrapolation takes the place of what the file says.

In:  texts such as `gauss-seidel`, `iterate(tolerance=1e-6)` and `axle=linear`
Out: the Study with other levels; or every fault with the option it is in
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hocket.engine.composite import Composite
from hocket.errors import Fault, ScenarioError, suggest_nearest
from hocket.files.study import Experiment
from hocket.files.toml.codec import EXTRAPOLATIONS, ORCHESTRATORS
from hocket.files.toml.kinds import KindFamily
from hocket.files.toml.place import FilePlace, Source, TomlFindings
from hocket.passes.contract import levels

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


def with_algorithms(
    study: Experiment,
    algorithm: Sequence[str] | None,
    extrapolation: Sequence[str] | None,
    suited: bool = True,
) -> Experiment:
    """Return the study with what was typed for its levels; without a level's name it is the outermost.

    `suited`: what does not suit its level is refused.
    """
    known = {path.removesuffix("."): each for path, each in levels(study.composite)}
    faults: list[Fault] = []
    how: dict[str, dict[str, Any]] = {}
    typed: dict[str, str] = {}
    for option, texts in (("algorithm", algorithm or ()), ("extrapolation", extrapolation or ())):
        for text in texts:
            try:
                path, read = _parse_level_choice(text, option, known)
                how.setdefault(path, {})[option] = read
                if option == "algorithm":
                    typed[path] = f"--algorithm {text}"
            except ScenarioError as error:
                faults += error.faults
    if faults:
        raise ScenarioError(faults)
    if not how:
        return study
    made = _replace_algorithms(study.composite, how)
    return replace(study, composite=_require_suitable(made, typed) if suited else made)


def _require_suitable(composite: Composite, typed: Mapping[str, str]) -> Composite:
    """Return the composite if what was typed suits its levels; other faults are for the run to tell."""
    try:
        _ = composite.blueprint
    except ScenarioError as error:
        faults = [
            replace(fault, where=typed[path])
            for fault in error.faults
            for path, _, key in [fault.where.partition(",")[0].rpartition(".")]
            if key in _KEYS and path in typed
        ]
        if faults:
            raise ScenarioError(faults) from None
    return composite


def _replace_algorithms(
    composite: Composite, how: Mapping[str, Mapping[str, Any]], path: str = ""
) -> Composite:
    inside = f"{path}." if path else ""
    models = {
        name: _replace_algorithms(model, how, f"{inside}{name}") if isinstance(model, Composite) else model
        for name, model in composite.scenario.models.items()
    }
    new = how.get(path, {})
    return Composite(
        composite.scenario.with_models(models),
        composite.step,
        new.get("algorithm", composite.orchestrator),
        new.get("extrapolation", composite.extrapolation),
        composite.start,
        composite.sampled,
    )


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


def _parse_toml_value(text: str, option: str, where: str) -> Any:
    """Return what a file would hold: a word, or a table; `a(b=c)` is short for `{ type = "a", b = "c" }`."""
    if not set("({[=") & set(text):
        return text
    try:
        return tomllib.loads(f"value = {text if text.startswith('{') else _as_toml(text)}")["value"]
    except tomllib.TOMLDecodeError:
        example = _EXAMPLES[option]
        expected = f"a word, or a word with options in quotes: '{example}'"
        raise ScenarioError(f"`{text}` cannot be read", where, expected, _bracket_hint(text)) from None


def _bracket_hint(text: str) -> str:
    return "" if text.count("(") == text.count(")") else "a bracket is not closed"


def _as_toml(text: str) -> str:
    return "".join(_token_to_toml(found) for found in _PARTS.finditer(text))


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
