"""`--step`, `--set`, `--algorithm`, `--connect`: the same for every verb that reads a scenario."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hocket as hk
from command_line import good, refused
from fmus.build import build
from systems import EXAMPLES

TWO = EXAMPLES / "two_masses.toml"
VERBS = ("run", "check", "tune", "compile", "nest", "plan", "show", "sweep", "capabilities", "describe")
CHANGED = ("--step", "--algorithm", "--extrapolation", "--connect", "--set")


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, ...]:
    return tuple(build(name, folder=tmp_path) for name in ("first", "second"))


LINKS = ("second.force=first.force", "first.x=second.x", "first.v=second.v")
COUPLED = tuple(word for link in LINKS for word in ("--connect", link))


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_takes_them(verb: str) -> None:
    told = good(verb, "--help")
    assert [option for option in CHANGED if option not in told] == []


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_refuses_them_in_the_same_words(verb: str) -> None:
    more = ("--vary", "first.k=1,2") if verb == "sweep" else ()
    more = (*more, "--stop", "1") if verb in ("run", "sweep") else more
    assert "where:    --step" in refused(verb, TWO, "--step", "soon", *more)
    assert "there is no orchestrator `jakobi`" in refused(verb, TWO, "--algorithm", "jakobi", *more)
    assert "`nonsense` is not a connection" in refused(verb, TWO, "--connect", "nonsense", *more)


def test_plan_and_show_have_what_was_typed(pair: tuple[Path, ...]) -> None:
    words = (*pair, *COUPLED, "--step", "5 ms", "--algorithm", "gauss-seidel")
    for verb in ("plan", "show"):
        told = good(verb, *words)
        assert "steps of 5 ms" in told
        assert "gauss-seidel" in told


def test_show_with_something_typed_shows_an_fmu_as_a_scenario(pair: tuple[Path, ...]) -> None:
    assert "runs here" in good("show", pair[0])
    assert "steps of 5 ms" in good("show", pair[0], "--step", "5 ms")


def test_check_in_python_is_check_on_the_command_line(pair: tuple[Path, ...]) -> None:
    words = (*pair, *COUPLED, "--step", "5 ms", "--stop", "1", "--set", "second.m=2", "--json", "-")
    typed = json.loads(good("check", *words))["verdict"]
    links = {"second.force": "first.force", "first.x": "second.x", "first.v": "second.v"}
    how = {"connections": links, "parameters": {"second.m": 2.0}}
    assert hk.check(list(pair), 1, step="5 ms", **how).verdict() == typed
    assert hk.check(list(pair), 1, step="10 ms", **how).verdict() != typed


def test_what_is_written_has_what_was_typed(tmp_path: Path) -> None:
    typed = ("--step", "50 ms", "--algorithm", "jacobi")
    for verb, out in (("compile", "a.toml"), ("tune", "b.toml")):
        more = ("--over", "extrapolation=hold,linear", "--workers", "1") if verb == "tune" else ()
        good(verb, TWO, *typed, *more, "--out", tmp_path / out)
        written = hk.read(tmp_path / out).composite
        assert (float(written.step), written.orchestrator) == (0.05, hk.Jacobi()), verb
