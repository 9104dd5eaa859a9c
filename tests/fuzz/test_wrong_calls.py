"""Whatever a public call is given by mistake, it works or says what was expected: never a raw error."""

from __future__ import annotations

import warnings
from inspect import Parameter, signature
from pathlib import Path

import pytest

import hocket as hk
from fuzz.wrong_calls import GoodCall, good_calls, wrong_calls


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, GoodCall]:
    return good_calls(tmp_path_factory.mktemp("calls"))


def test_the_calls_are_good_before_one_argument_is_replaced(calls: dict[str, GoodCall]) -> None:
    for good in calls.values():
        good.use(good.call(**good.arguments))


APART = {
    "Atomic",
    "Hold",
    "ConvergenceError",
    "HocketError",
    "HostError",
    "ScenarioError",
    "SimulatorError",
    "Any",
}
"""What takes nothing, and errors, which hocket makes itself."""
INSIDE = {("Run", "keep"), ("error_budget", "watch")}


def test_every_keyword_of_what_is_public_is_among_them(calls: dict[str, GoodCall]) -> None:
    missing = []
    for name in dir(hk):  # most of it is imported when it is asked for
        made = getattr(hk, name)
        if name.startswith("_") or not callable(made) or name in APART:
            continue
        for key, parameter in signature(made).parameters.items():
            named = parameter.kind not in (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
            if named and (name, key) not in INSIDE and not (name in calls and key in calls[name].arguments):
                missing.append(f"{name}({key})")
    assert missing == []


@pytest.mark.parametrize(
    ("first", "every"),
    [(0, 7), *(pytest.param(first, 7, marks=pytest.mark.slow) for first in range(1, 7))],
)
def test_a_wrong_argument_is_an_error_that_says_so(
    first: int, every: int, calls: dict[str, GoodCall], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # texts that are taken for paths lead nowhere else
    raw = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, attempt in list(wrong_calls(calls))[first::every]:
            try:
                attempt()
            except hk.HocketError:
                pass
            except Exception as error:
                raw.append(f"{name}: {type(error).__name__}: {error}")
    assert not raw, "\n".join(raw)
