"""Hosts in 100 random scenes: their order, their messages, and a small step that changes nothing."""

import numpy as np
import pytest

import hocket as hk
from hocket.planning.compiler.compiler import compile_level
from hocket.planning.compiler.contract import algebraic_loops, triviality_faults
from hocket.planning.compiler.distribution import Distribution
from hocket.planning.compiler.loop_pass import Loops
from hocket.planning.cost import plan_cost
from hocket.planning.planner import plan_tree
from planning.compiler.random_scenes import error, found, hosted, scene, values
from systems import SEED_BLOCKS

EXTRAPOLATIONS = ("hold", "linear", "quadratic")


def level(drawn, seed, step, algorithm="jacobi", extrapolation="hold", small=1):
    """The scene on hosts; a level inside has the small step."""
    made = hosted(drawn.level(step, algorithm, extrapolation), seed)
    if not drawn.nested:
        return made
    inner = made.scenario.models["inner"]
    models = {**made.scenario.models, "inner": inner.with_changes(step=made.step / small)}
    return made.with_changes(scenario=made.scenario.with_models(models))


def compiled(before, *passes):
    """The level distributed; what the pass promises holds."""
    one = passes[-1]
    assert one.reasons(before)
    assert one.check_postconditions(before)
    made = compile_level(before, passes).level
    assert one.reasons(made) == []
    assert one.check_postconditions(made) == []
    assert triviality_faults(made) == []
    assert all(made.scenario.inserted[host].by == "distribution" for host in made.scenario.hosts.models)
    return made


def counted(run, made):
    """Messages and bytes: as told from the plan, and as counted in the run."""
    counts, told = run.info["counts"], plan_cost(plan_tree(made))
    sweeps = counts.get("sweeps", {}).get("", {}).get("total")
    links = counts["messages"].values()
    return (
        (told.messages(counts["steps"], sweeps), told.bytes(counts["steps"], sweeps)),
        (sum(link["messages"] for link in links), sum(link["bytes"] for link in links)),
    )


@pytest.mark.parametrize("seeds", SEED_BLOCKS, ids=str)
def test_the_order_is_one_more_than_the_degree_and_messages_are_as_told(seeds):
    """Against the matrix exponential of the whole; the same polynomials between hosts and inside."""
    for seed in seeds:
        drawn = scene(seed)
        degree, wrong = seed % 3, []
        algorithm = ("jacobi", "gauss-seidel")[seed // 3 % 2]
        for steps in (8, 16):
            before = level(drawn, seed, f"1/{3 * steps}", algorithm, EXTRAPOLATIONS[degree], 2)
            made = compiled(before, Distribution(before.step / 2, EXTRAPOLATIONS[degree]))
            run = hk.run(made, stop="1/3", engine="interpreter" if steps == 8 else "native")
            wrong.append(error(run, drawn, steps, 1 / 3))
            if steps == 8:
                told, seen = counted(run, made)
                assert told == seen, seed
        assert 0.8 < np.log2(wrong[0] / wrong[1]) / (degree + 1) < 1.25, (seed, wrong)


@pytest.mark.parametrize("seeds", [range(100, 110), range(110, 120)], ids=str)
def test_hosts_with_the_step_of_the_level_and_held_values_change_nothing(seeds):
    for seed in seeds:
        drawn = scene(seed)
        flat = level(drawn, seed, "50 ms")
        run = hk.run(compiled(flat, Distribution("50 ms", "hold")), stop="0.4")
        plain = values(hk.run(flat, stop="0.4"), map(drawn.path, drawn.outputs))
        assert np.abs(found(run, drawn) - plain).max() < 1e-12 * np.abs(plain).max(), seed


@pytest.mark.parametrize("sweeps", [2, 1e-9])
def test_steps_made_again_are_counted_and_nearer(sweeps):
    """To the end, lines between the ends of the steps are no worse than lines that go on from before."""
    nearer = 0
    for seed in range(200, 206):
        drawn = scene(seed, deep=0.0)
        before = level(drawn, seed, "1/10", "jacobi", "linear")
        once = hk.run(compiled(before, Distribution("1/20", "linear")), stop=1)
        made = compiled(before, Distribution("1/20", "linear", sweeps))
        run = hk.run(made, stop=1, engine="interpreter")
        told, seen = counted(run, made)
        assert told == seen, seed
        nearer += error(run, drawn, 10) < error(once, drawn, 10)
    assert nearer >= 5


def test_loops_on_one_host_are_lifted_there():
    for seed in range(300, 308):
        drawn = scene(seed, loops=1, deep=0.0)
        ring = sorted({path.partition(".")[0] for path in drawn.wires if path.endswith(".in0")})
        wrong = []
        for steps in (20, 40):
            flat = drawn.level(f"1/{2 * steps}", extrapolation="linear")
            together = sorted(_tied(flat) | set(ring))
            if len(together) == len(drawn.parts):
                break
            before = hosted(flat, seed, together)
            made = compiled(before, Loops("outputs"), Distribution(before.step / 2, "linear"))
            wrong.append(error(hk.run(made, stop="0.5"), drawn, steps, 0.5))
        else:
            assert 3.2 < wrong[0] / wrong[1] < 5.0, (seed, wrong)


def _tied(flat):
    """Everybody in a loop: its members must be on one host."""
    return {path.partition(".")[0] for loop in algebraic_loops(flat) for path in loop}
