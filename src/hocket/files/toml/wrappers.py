"""Keys of a model that let it do what it cannot do by itself: `replay`, `substep`, `slopes`, `feedthrough`.

In:  what builds a model, and the keys beside its own
Out: the model in its wrappers, from the inside out in that order; and the keys of a wrapped model again
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from fractions import Fraction
from functools import wraps
from typing import Any

from hocket.clock import format_duration
from hocket.errors import ScenarioError
from hocket.files.toml.forms import DURATION, TEXT, TEXTS, TRUTH, EitherForm, MappingForm, WordOrForm
from hocket.files.toml.kinds import Field
from hocket.model import Model
from hocket.simulators.emulating import is_emulation
from hocket.simulators.reacting import Reacting
from hocket.simulators.recipes import positive_duration
from hocket.simulators.replay import Replay
from hocket.simulators.sloped import Sloped
from hocket.simulators.substepped import Substepped

BACKWARD = "backward"
"""Slopes from the outputs of the steps before."""


def _no_value(_: Any) -> None:
    """The wrapper is written around the model, not by it."""


PROBED = Field(
    "probed", TRUTH, "whether `feedthrough` was found by trying, and is an estimate", get=_no_value
)
SLOPES = Field(
    "slopes",
    WordOrForm(BACKWARD, DURATION),
    f'slopes of outputs by trial steps this long, taken back; "{BACKWARD}": from the steps before',
    get=_no_value,
)
WRAPPERS = (
    Field(
        "feedthrough",
        MappingForm(EitherForm(str, TEXT, TEXTS), 'a table such as { y = ["u"] }'),
        "by output: the inputs it reacts to at once; left out: as the model says",
        get=_no_value,
    ),
    PROBED,
    Field("replay", TRUTH, "goes back by making all steps again, if it cannot otherwise", get=_no_value),
    Field(
        "substep", DURATION, "takes any step by steps of this length, if it cannot otherwise", get=_no_value
    ),
    SLOPES,
)
_ORDER = (Reacting, Replay, Substepped, Sloped)
"""From the inside out."""


def with_wrapper_keys(build: Callable[..., Model], *fields: Field) -> Callable[..., Model]:
    """Return a builder that knows the keys of wrappers beside what it knew.

    A `feedthrough` of its own is taken from it where it is an estimate: that is the wrapper's to say.
    """
    known = inspect.signature(build)
    names = [field.name for field in fields]

    @wraps(build)
    def build_wrapped(**arguments: Any) -> Model:
        taken = [*names, "feedthrough"] if arguments.get("probed") else names
        own = {name: value for name, value in arguments.items() if name not in taken}
        return wrap_model(build(**own), **{name: arguments[name] for name in taken if name in arguments})

    more = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in names]
    rest = [each for each in known.parameters.values() if each.kind is each.VAR_KEYWORD]
    first = [each for each in known.parameters.values() if each not in rest]
    build_wrapped.__signature__ = known.replace(parameters=[*first, *more, *rest])  # type: ignore[attr-defined]
    return build_wrapped


def wrap_model(
    model: Model,
    feedthrough: dict[str, Any] | None = None,
    probed: bool = False,
    replay: bool = False,
    substep: Fraction | None = None,
    slopes: Fraction | str | None = None,
) -> Model:
    """Return a model in the wrappers that its keys ask for."""
    if probed and feedthrough is None:
        raise ScenarioError(
            "`probed` is said of nothing", "probed", "`feedthrough`, which was found by trying"
        )
    if feedthrough is not None:
        model = Reacting(model, feedthrough, probed)
    if replay:
        model = Replay(model)
    if substep is not None:
        model = Substepped(model, substep)
    if slopes is not None:
        model = Sloped(model, None if isinstance(slopes, str) else positive_duration(slopes, "slopes"))
    return model


def unwrap_model(model: Any) -> tuple[Model, dict[str, Any]]:
    """Return the model inside and the keys of its wrappers; what no file can say is left around it."""
    keys: dict[str, Any] = {}
    outer = len(_ORDER)
    while is_emulation(model) and _ORDER.index(type(model)) < outer:
        outer = _ORDER.index(type(model))
        keys |= _wrapper_keys(model)
        model = model.model
    return model, dict(reversed(keys.items()))


def _wrapper_keys(wrapper: Any) -> dict[str, Any]:
    match wrapper:
        case Reacting(feedthrough=told, probed=probed):
            table = {output: list(inputs) for output, inputs in told}
            return {**({"probed": True} if probed else {}), "feedthrough": table}
        case Substepped(substep=substep):
            return {"substep": format_duration(substep)}
        case Sloped(trial=trial):
            return {"slopes": BACKWARD if trial is None else format_duration(trial)}
    return {"replay": True}
