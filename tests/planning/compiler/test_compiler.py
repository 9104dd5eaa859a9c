"""The compiler: order, conditions before and after, the story, and scenarios that are refused."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

import hocket as hk
from hocket.errors import Fault
from hocket.planning.compiler.compiler import compile_level
from hocket.planning.compiler.contract import insertions, triviality_faults
from hocket.planning.compiler.loop_pass import Loops
from hocket.planning.compiler.modularity import Modularity
from planning.compiler.joined import joined


@dataclass(frozen=True)
class Breaking:
    """Undoes what another pass did; runs last."""

    name: ClassVar[str] = "breaking"

    def reasons(self, level):
        return ["it is asked to"]

    def check_preconditions(self, level):
        return []

    def apply(self, level):
        return level.with_changes(scenario=level.scenario.with_changes(inserted={}), orchestrator=hk.Jacobi())

    def check_postconditions(self, level):
        return []


@dataclass(frozen=True)
class Hopeless(Breaking):
    """Lacks something."""

    name: ClassVar[str] = "accuracy"

    def check_preconditions(self, level):
        return [Fault("there is no clock", "models.one", "a clock", "buy one")]


def test_the_order_is_that_of_the_concerns_however_they_are_given():
    made = compile_level(joined(1, 2, "0.1"), [Loops(), Modularity()])
    assert made.idle == ("modularity",)
    assert [chapter.by for chapter in made.chapters] == ["loops"]


def test_what_a_later_pass_breaks_is_noticed():
    with pytest.raises(hk.ScenarioError, match="what `loops` is for does not hold after `breaking`"):
        compile_level(joined(1, 2, "0.1"), [Loops("steps"), Breaking()])


def test_an_unmet_condition_is_told_with_its_place():
    with pytest.raises(hk.ScenarioError) as caught:
        compile_level(joined(1, 2, "0.1"), [Loops(), Hopeless()])
    told = str(caught.value)
    assert "the pass `accuracy` cannot be run: there is no clock" in told
    assert "models.one" in told
    assert "buy one" in told


def test_a_trivial_scenario_needs_nothing():
    still = hk.Composite(hk.Scenario({"one": hk.Function(abs, ["y"])}, {}), 1)
    made = compile_level(still)
    assert made.level == still
    assert made.chapters == ()
    assert set(made.idle) == {"modularity", "loops"}
    assert not triviality_faults(still)


def test_a_scenario_that_stays_untrivial_is_refused():
    with pytest.raises(hk.ScenarioError, match="the scenario is not trivial"):
        compile_level(joined(1, 2, "0.1"), [Modularity()])


def test_the_story_names_pass_and_reason_of_everything_inserted():
    made = compile_level(joined(1, 2, "0.1"))
    told = "\n".join(made.story())
    for path, note in insertions(made.level).items():
        assert f"inserted {path}: {note.reason}" in told
    assert "because `one.a` and `two.F` depend on each other at once" in told


def test_simulators_that_moved_are_told_as_moved():
    scenario = joined(1, 2, "0.1").scenario
    more = {**scenario.models, "third": hk.Function(abs, ["y"])}
    made = compile_level(hk.Composite(scenario.with_models(more), "0.1"))
    assert set(made.chapters[0].moved) == {("one", "one_two.one"), ("two", "one_two.two")}
    assert "moved one to one_two.one" in "\n".join(made.story())
