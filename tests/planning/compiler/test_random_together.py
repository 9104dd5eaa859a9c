"""Equations, loops and hosts in one scenario: all passes in their order, against the whole as one system."""

from dataclasses import replace

import numpy as np
import pytest

import hocket as hk
from hocket.files import toml
from hocket.model.experiment import Experiment
from hocket.planning.compiler.accuracy import Accuracy, accepted_steps
from hocket.planning.compiler.compiler import compile_level
from hocket.planning.compiler.contract import algebraic_loops, triviality_faults
from hocket.planning.compiler.distribution import Distribution
from hocket.planning.compiler.loop_pass import Loops
from hocket.planning.compiler.modularity import Modularity
from planning.compiler.random_links import bodies
from planning.compiler.random_scenes import error, scene
from systems import slow_after


def drawn(seed):
    """Bodies that links join, beside simulators in a loop; each side hears one output of the other."""
    rng = np.random.default_rng(seed)
    while True:
        ring = scene(int(rng.integers(10**9)), loops=1, size=(3, 5), deep=0.0)
        linked = replace(bodies(rng), deep=False)
        if not linked.wires:
            continue
        parts = {name: _open(part, name, ring.wires) for name, part in ring.parts.items()}
        ears = [f"{name}.{port}" for name, part in parts.items() for port in part.inputs]
        deaf = [path for path in ears if path not in ring.wires]
        if not deaf:
            continue
        wires = {**ring.wires, **linked.wires, **dict.fromkeys(deaf, "b0.x0")}
        wires["other.pull"] = str(rng.choice([path for path in ring.outputs if path.endswith(".y0")]))
        made = replace(linked, parts={**parts, **linked.parts}, wires=wires).consistent(rng)
        poles = np.linalg.eigvals(made.whole()[0])
        if np.abs(poles).max() < 5.0 and poles.real.max() < 0.3:
            return made


def _open(part, name, wires):
    """A part whose outputs do not react to what it hears from the bodies."""
    D = part.D.copy()
    for column, port in enumerate(part.inputs):
        if f"{name}.{port}" not in wires:
            D[:, column] = 0.0
    return replace(part, D=D, start=np.zeros(len(part.start)))


def placed(each, level):
    """The linked bodies on one host, those of the loop on another, the rest anywhere."""
    tied = {path.partition(".")[0] for loop in algebraic_loops(level) for path in loop}
    rest = [name for name in each.parts if name not in tied | each.coupled()]
    hosts = {"plant": [*sorted(each.coupled()), *rest[::2]], "lab": [*sorted(tied), *rest[1::2]]}
    return level.with_changes(scenario=level.scenario.with_changes(hosts=hosts))


@pytest.mark.parametrize("seeds", slow_after(1, [range(10), range(10, 20)]), ids=str)
def test_all_passes_in_their_order(seeds):
    for seed in seeds:
        each, wrong = drawn(seed), []
        for steps in (20, 40):
            before = placed(each, each.level(f"1/{2 * steps}"))
            made = compile_level(before, [Distribution(before.step / 2, "linear"), Loops(), Modularity()])
            assert [chapter.by for chapter in made.chapters] == ["modularity", "loops", "distribution"]
            assert triviality_faults(made.level) == []
            for one in (Modularity(), Loops(), Distribution()):
                assert one.check_postconditions(made.level) == []
            wrong.append(error(hk.run(made.level, stop="0.5"), each, steps, 0.5))
        assert 3.0 < wrong[0] / wrong[1] < 5.0, (seed, wrong)
        text = toml.dumps(Experiment(made.level))
        assert toml.loads(text).composite == made.level, seed


def test_step_control_comes_last():
    for seed in range(30, 36):
        each = drawn(seed)
        control = Accuracy("0.5", 1e-3, estimate="defect", largest="50 ms", first="5 ms")
        made = compile_level(each.level("50 ms"), [control, Loops(), Modularity()])
        assert [chapter.by for chapter in made.chapters] == ["modularity", "loops", "accuracy"]
        done = accepted_steps(hk.run(made.level, stop=200))
        assert done.finished
        assert done.faults() == []
        exact = each.exact(np.array([0.0, 0.5]))[-1]
        ends = [[path for path in done.values if f".{path}".endswith(f".{port}")] for port in each.outputs]
        last = np.array([done[path][-1] for (path,) in ends])
        assert np.abs(last - exact).max() < 2e-3, seed
