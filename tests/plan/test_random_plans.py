"""Every plan that an orchestrator makes verifies; a plan with an instruction less is refused or the same."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import hocket as hk
from hocket.files import toml
from hocket.model.protocols import Capabilities
from hocket.orchestrators import Asynchronous, Multirate
from hocket.plan import Plan, Together, tries
from hocket.plan.verify.verifier import find_delays, verify_plan
from hocket.planning.planner import plan_tree
from native.random_scenarios import draw
from systems import EXAMPLES

FILES = sorted(EXAMPLES.glob("*.toml"))


def drawn(seed):
    return draw(np.random.default_rng(10_000 + seed))


@pytest.mark.parametrize("block", range(10))
def test_plans_of_random_scenarios_verify(block):
    """A blueprint is verified at all levels; nothing is opened."""
    for seed in range(30 * block, 30 * block + 30):
        for level in plan_tree(drawn(seed).composite).levels():
            assert verify_plan(level.plan, level.composite.scenario, level.composite.step) == []


MODES = [(outputs, inputs) for outputs in ("stale", "consistent") for inputs in ("clean", "delayed")]


def leaves(scenario):
    return [name for name, model in scenario.models.items() if not isinstance(model, hk.Composite)]


@pytest.mark.parametrize(("outputs", "inputs"), MODES)
def test_every_mode_and_order_verifies(outputs, inputs):
    """The levels of random scenarios, each under other orchestrators than the one it was drawn with."""
    for seed in range(300, 330):
        for level in plan_tree(drawn(seed).composite).levels():
            scenario = level.composite.scenario
            names = list(scenario.models)
            groups = [names[0], *([names[1:]] if names[1:] else [])]
            rates = {name: 1 + number for number, name in enumerate(leaves(scenario))}
            doubled = {name: 2**number for number, name in enumerate(leaves(scenario))}
            for made in (
                Asynchronous(rates, outputs=outputs, inputs=inputs),
                Multirate(doubled, outputs=outputs, inputs=inputs),
                Multirate(doubled, "fastest-first", outputs=outputs, inputs=inputs),
                hk.Jacobi(outputs=outputs, inputs=inputs),
                hk.GaussSeidel(outputs=outputs, inputs=inputs),
                hk.GaussSeidel(names[::-1], outputs=outputs, inputs=inputs),
                hk.GaussSeidel([names], outputs=outputs, inputs=inputs),
                hk.GaussSeidel(groups, outputs=outputs, inputs=inputs),
            ):
                assert verify_plan(made.plan(scenario), scenario, level.composite.step) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_plans_of_the_examples_verify(path):
    for level in plan_tree(toml.read(path).composite).levels():
        assert verify_plan(level.plan, level.composite.scenario, level.composite.step) == []


@dataclass(frozen=True)
class Bouncing:
    """A model whose steps may end early."""

    inputs = (hk.Port("u"),)
    outputs = (hk.Port("y"),)
    capabilities = Capabilities(rollback=True, stops_early=True)

    def open(self): ...


@pytest.mark.parametrize("orchestrator", [hk.Jacobi(), hk.GaussSeidel()])
def test_plans_that_may_shorten_their_steps_verify(orchestrator):
    ball = hk.Scenario({"a": Bouncing(), "b": Bouncing()}, {"a.u": "b.y", "b.u": "a.y"})
    made = plan_tree(hk.Composite(ball, "1 s", orchestrator)).plan
    assert tries(made.step)
    assert verify_plan(replace(made, start=()), ball) == []


# an instruction less


@dataclass(frozen=True)
class Written:
    """An orchestrator that hands out one plan."""

    made: Plan
    outputs: str
    inputs: str

    def plan(self, scenario):
        return self.made


def one_less(body):
    """Yield the body without one of its instructions, each in turn."""
    for k, instruction in enumerate(body):
        yield (*body[:k], *body[k + 1 :])
        for j in range(len(instruction.bodies) if isinstance(instruction, Together) else 0):
            rest = instruction.bodies[:j] + instruction.bodies[j + 1 :]
            yield (*body[:k], *((Together(rest),) if rest else ()), *body[k + 1 :])


def rewritten(level, made):
    """The same level under another plan; seen from outside it reacts as before."""
    how = level.orchestrator
    written = Written(made, how.outputs, how.inputs)
    return hk.Composite(level.scenario, level.step, written, level.extrapolation, level.start, level.sampled)


def values(random, composite):
    stop = random.start + 6 * composite.step
    run = hk.run(composite, stop, start=random.start, engine="interpreter")
    return np.concatenate([run[name].values for name in sorted(run)])


def shorter_plans(level):
    """Yield the plan of a level with one instruction less in one of its bodies, as long as it verifies."""
    whole = level.orchestrator.plan(level.scenario)
    for body in one_less(whole.step):
        yield replace(whole, step=body)
    for body in one_less(whole.output):
        yield replace(whole, output=body)


def test_a_plan_with_an_instruction_less_is_refused_or_does_the_same():
    """What the verifier lets pass is run: it must give the numbers of the whole plan.

    Without tangents: slopes follow inputs that values do not react to, and no plan promises them.
    """
    refused = passed = 0
    for seed in range(400, 445):
        random = drawn(seed)
        if any(feature.startswith("Hermite") for feature in random.features):
            continue
        root = plan_tree(random.composite).composite
        models = dict(root.scenario.models)
        inner = {name: model for name, model in models.items() if isinstance(model, hk.Composite)}
        expected = None
        for name, level in {"": root, **inner}.items():
            for made in shorter_plans(level):
                if verify_plan(made, level.scenario, level.step):
                    refused += 1
                    continue
                passed += 1
                expected = values(random, root) if expected is None else expected
                other = rewritten(level, made)
                if name:
                    other = root.with_scenario(root.scenario.with_models({**models, name: other}))
                assert values(random, other) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert refused > 200
    assert passed > 10


# many simulators


@pytest.mark.parametrize("orchestrator", [hk.Jacobi(), hk.GaussSeidel(), hk.Jacobi(outputs="stale")], ids=str)
def test_a_plan_of_many_simulators(orchestrator):
    lag = hk.StateSpace([[-1.0]], [[1.0]], [[1.0]], inputs=["u"], outputs=["y"])
    gain = hk.StateSpace(D=[[0.5]], inputs=["u"], outputs=["y"])
    size = 5_000
    models = {f"m{k}": gain if k % 3 else lag for k in range(size)}
    ring = hk.Scenario(models, {f"m{k}.u": f"m{(k - 1) % size}.y" for k in range(size)})
    made = orchestrator.plan(ring)
    assert verify_plan(made, ring) == []
    assert len(find_delays(made, ring)) == (1 if isinstance(orchestrator, hk.GaussSeidel) else size)
    without = replace(made, step=made.step[1:])
    assert len(verify_plan(without, ring)) == (1 if isinstance(orchestrator, hk.GaussSeidel) else size)
