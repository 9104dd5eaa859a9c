"""Loops in 150 random scenes: lifted and solved, with the numbers of the scene, or those of its matrix."""

import numpy as np
import pytest

import hocket as hk
from hocket.planning.compiler.compiler import compile_level
from hocket.planning.compiler.contract import algebraic_loops, triviality_faults
from hocket.planning.compiler.loop_pass import Loops
from planning.compiler.random_scenes import error, found, orders, scene, values
from systems import ENGINES, SEED_BLOCKS, slow_after


def compiled(level, how):
    """The level made trivial; what the pass promises holds."""
    made = compile_level(level, [Loops(how)])
    assert [chapter.by for chapter in made.chapters] == ["loops"]
    assert all(row["reason"] for row in made.rows())
    assert made.chapters[0].gone == ()  # simulators and connections are moved, none is lost
    assert Loops(how).check_postconditions(level)
    assert Loops(how).check_postconditions(made.level) == []
    assert triviality_faults(level)
    assert triviality_faults(made.level) == []
    return made.level


def listened(drawn):
    """Which outputs are seen by all levels: of a level inside, those that somebody outside it listens to.

    Others of that level, if they react to its inputs, are recorded as they were when it was last asked.
    """
    deep = set(drawn.nested)
    heard = {s for t, s in drawn.wires.items() if not {s.partition(".")[0], t.partition(".")[0]} <= deep}
    return [path in heard or path.partition(".")[0] not in deep for path in drawn.outputs]


@pytest.mark.parametrize("seeds", SEED_BLOCKS, ids=str)
def test_outputs_evaluated_again_are_those_of_the_loop_solved_at_its_place(seeds):
    """The exchange solves loops by itself, so the levels that are made may change nothing at all."""
    for seed in seeds:
        drawn = scene(seed, loops=1 + seed % 2)
        level = drawn.level("50 ms", extrapolation=("hold", "linear", "quadratic")[seed % 3])
        flat = values(hk.run(level, stop=0.5), map(drawn.path, drawn.outputs))
        made = found(hk.run(compiled(level, "outputs"), stop=0.5), drawn)
        far = np.abs(made - flat)[:, listened(drawn)].max() / np.abs(flat).max()
        assert far < 1e-9, (seed, far)


@pytest.mark.parametrize("seeds", slow_after(1, [range(1000, 1025), range(1025, 1050)]), ids=str)
def test_steps_made_again_are_of_second_order_on_lines(seeds):
    """Against the matrix exponential of the whole; loops inside and outside, gains up to 3, any order."""
    for seed in seeds:
        drawn = scene(seed, loops=1 + seed % 2)
        wrong = []
        for steps in (20, 40):
            level = orders(drawn.level(f"1/{2 * steps}", extrapolation="linear"), seed)
            run = hk.run(compiled(level, "steps"), stop="0.5")
            wrong.append(error(run, drawn, steps, 0.5))
        assert 3.3 < wrong[0] / wrong[1] < 4.9, (seed, wrong)


def test_both_engines_agree_to_the_bit():
    for seed in range(2000, 2012):
        drawn = scene(seed, loops=1 + seed % 2)
        level = orders(drawn.level("50 ms", extrapolation=("hold", "linear")[seed % 2]), seed)
        made = compiled(level, ("outputs", "steps", "delay")[seed % 3])
        one, other = (hk.run(made, stop=0.2, engine=engine) for engine in ENGINES)
        assert np.array_equal(found(one, drawn), found(other, drawn)), seed


def test_what_is_recorded_inside_a_level_is_followed_to_where_it_is_now():
    drawn = next(each for each in (scene(seed, loops=1, deep=1.0) for seed in range(50)) if _apart(each))
    level = drawn.level("50 ms")
    lifted, left = _apart(drawn)
    record = [f"inner.{lifted}.out0", f"inner.{left}.y0", "*.out0"]
    level = level.with_changes(scenario=level.scenario.with_changes(record=record))
    run = hk.run(compiled(level, "outputs"), stop=0.5)
    assert f"inner.{left}.y0" in run.ports
    assert {port.rpartition(".")[2] for port in run.ports} == {"out0", "y0"}
    assert sum(port.endswith(f".{lifted}.out0") for port in run.ports) == 1


def _apart(drawn):
    """One of a loop inside a level, and one that is there beside it."""
    ring = {path.partition(".")[0] for path in drawn.wires if path.endswith(".in0")}
    beside = [name for name in drawn.nested if name not in ring and drawn.parts[name].D[0, 0] == 0.0]
    return (sorted(ring)[0], beside[0]) if beside and ring <= set(drawn.nested) else None


def test_others_of_the_level_keep_their_rates():
    parts = {"a": hk.Gain(0.5), "b": hk.Gain(-3.0), "fast": hk.Gain(2.0), "slow": hk.Gain(1.0)}
    wires = {"a.u": "b.y", "b.u": "a.y", "fast.u": "a.y", "slow.u": "fast.y"}
    rates = hk.Multirate({"a": 1, "fast": 4}, outputs="stale")
    made = compiled(hk.Composite(hk.Scenario(parts, wires), "50 ms", rates), "outputs")
    assert made.orchestrator == hk.Multirate({"fast": 4}, outputs="stale")
    assert np.abs(hk.run(made, stop=0.5)["slow.y"].values).max() == 0.0


def test_a_delay_would_not_do():
    """Where outputs react to each other by more than they were, a step of delay makes them grow."""
    drawn = [scene(seed, loops=1, deep=0.0) for seed in range(30)]
    growing = [each for each in drawn if np.abs(np.linalg.eigvals(each.instant)).max() > 1.3]
    assert len(growing) >= 10
    for each in growing:
        made = compile_level(each.level("50 ms"), [Loops("delay")]).level
        late = found(hk.run(made, stop=5), each)
        assert np.abs(late).max() > 1e3 * np.abs(each.exact(np.linspace(0.0, 5.0, 101))).max()


def test_the_scenes_are_not_all_alike():
    drawn = [scene(seed, loops=1 + seed % 2) for seed in range(100)]
    radius = [np.abs(np.linalg.eigvals(each.instant)).max() for each in drawn]
    assert sum(each > 1.0 for each in radius) > 40
    assert sum(each < 1.0 for each in radius) > 15
    levels = [each.level("50 ms") for each in drawn if each.nested]
    inside = [level for level in levels if algebraic_loops(level.scenario.models["inner"])]
    assert len(levels) > 25
    assert 5 < len(inside) < len(levels)
    assert sum(len(algebraic_loops(each.level("50 ms"))) == 2 for each in drawn) > 5
