"""`hocket.gym`: co-simulations as Gymnasium environments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hocket as hk
from hocket.simulators.wrappers.replay import Replay
from systems import EXAMPLES, lag

pytest.importorskip("gymnasium")


def cart(**options: Any) -> hk.Composite:
    """Return a cart that is pushed, and a lag that follows it."""
    pushed = hk.StateSpace(
        [[0, 1], [0, -0.5]], [[0], [1]], np.eye(2), x0=[1, 0], inputs=["force = 0"], outputs=["x", "v"]
    )
    scenario = hk.Scenario({"cart": pushed, "lag": lag()}, {"lag.u": "cart.x"})
    return hk.Composite(scenario, "1/10", **options)


def make(what: Any = None, **options: Any) -> Any:
    """Return the cart as an environment; its reward is how close it is to zero."""
    given = {"every": "1/5", "stop": 2} | options
    observed = {"cart.x": (-100, 100), "cart.v": (-100, 100), "lag.y": (-100, 100)}
    what = cart() if what is None else what
    return hk.gym(what, {"cart.force": (-1, 1)}, observed, lambda live: -abs(live["cart.x"]), **given)


def roll(env: Any, actions: Any) -> list[bytes]:
    """Return the bits of an episode."""
    rows = [env.reset()[0].tobytes()]
    for action in actions:
        observed, reward, *_ = env.step([action])
        rows.append(observed.tobytes() + np.float64(reward).tobytes())
    return rows


def test_gymnasium_finds_nothing_wrong() -> None:
    from gymnasium.utils.env_checker import check_env

    env = make()
    check_env(env, skip_render_check=True)
    env.close()


def test_an_episode_has_the_exact_motion() -> None:
    env = make(stop=4)
    env.reset()
    force, x, v, t = 0.5, 1.0, 0.0, 0.0
    over = False
    while not over:  # x' = v, v' = -v/2 + force, solved by hand: v -> 2 force
        observed, reward, ended, over, facts = env.step(np.array([force]))
        t += 0.2
        exact = x + 2 * force * t + (v - 2 * force) * 2 * (1 - np.exp(-t / 2))
        assert observed[0] == pytest.approx(exact, rel=1e-12)
        assert observed[1] == pytest.approx(2 * force + (v - 2 * force) * np.exp(-t / 2), abs=1e-12)
        assert reward == -abs(observed[0])
        assert not ended
        assert facts["t"] == pytest.approx(t)
    assert facts["t"] == 4.0
    with pytest.raises(hk.ScenarioError, match="no episode is under way"):
        env.step([0.0])


@pytest.mark.parametrize("rollback", [True, False])
def test_a_reset_brings_everything_back(rollback: bool) -> None:
    class Drift:
        def start(self, t: float) -> None:
            self.y = 0.0

        def step(self, t: float, h: float, u: Any) -> None:
            self.y += h * u[0, 0]

        def output(self, t: float, u: Any) -> Any:
            return [self.y]

        if rollback:

            def save(self) -> float:
                return self.y

            def restore(self, state: float) -> None:
                self.y = state

    drift = hk.Python(Drift, inputs=["u"], outputs=["y"])
    scenario = hk.Scenario({"cart": cart().scenario.models["cart"], "drift": drift}, {"drift.u": "cart.x"})
    env = hk.gym(hk.Composite(scenario, "1/10"), ["cart.force"], ["drift.y", "cart.v"], "cart.x", stop=1)
    actions = [0.3, -0.2, 0.7, 0.1]
    first = roll(env, actions)
    assert roll(env, actions) == first
    assert roll(env, [0.0, *actions])[2:] != first[1:]
    env.close()


def test_what_is_run_is_the_scenario_of_hand_stepping() -> None:
    env = make()
    env.reset()
    with hk.open(cart()) as live:
        for force in (0.2, -1.0, 0.5):
            observed, *_ = env.step([force])
            live.set("cart.force", force)
            live.step(2)
            assert observed.tolist() == [live["cart.x"], live["cart.v"], live["lag.y"]]


def test_vector_environments() -> None:
    env = make(number=3)
    single = make()
    observed, _ = env.reset(seed=1)
    assert observed.shape == (3, 3)
    actions = np.array([[0.1], [0.5], [-1.0]])
    for _ in range(3):
        observed, rewards, *_ = env.step(actions)
    for number, action in enumerate(actions):
        single.reset()
        for _ in range(3):
            alone, reward, *_ = single.step(action)
        assert observed[number].tolist() == alone.tolist()
        assert rewards[number] == reward
    env.close()


def test_an_episode_ends_where_it_is_told() -> None:
    env = make(terminated=lambda live: live["cart.x"] > 1.01)
    env.reset()
    outcomes = [env.step([1.0])[2:4] for _ in range(1)]
    assert outcomes == [(True, False)]  # x = 1.0187 after 0.2 s


def test_files_are_environments_too() -> None:
    env = hk.gym(EXAMPLES / "masses.toml", ["b.force"], ["a.x"], "a.x")
    env.reset()
    assert np.isfinite(env.step([0.1])[0]).all()
    env.close()
    env.close()
    with pytest.raises(hk.ScenarioError, match="it is closed"):
        env.reset()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"actions": {"cart.forces": (-1, 1)}}, "there is no port `cart.forces`"),
        ({"observations": ["cart.y"]}, "there is no port `cart.y`"),
        ({"reward": "cart.z"}, "there is no port `cart.z`"),
        ({"reward": 3}, "reward"),
        ({"actions": {"cart.force": (1, -1)}}, "bounds of `cart.force`"),
        ({"actions": {"cart.force": 1}}, "bounds of `cart.force`"),
        ({"actions": []}, "actions"),
        ({"actions": "cart.force"}, "actions"),
        ({"every": "15 ms"}, "a whole number of macro steps"),
        ({"every": 0}, "above zero"),
        ({"number": 0}, "number"),
        ({"terminated": True}, "terminated"),
    ],
)
def test_what_is_wrong_is_said(change: dict[str, Any], message: str) -> None:
    given = {"actions": ["cart.force"], "observations": ["cart.x"], "reward": "cart.x", "stop": 1} | change
    with pytest.raises(hk.ScenarioError, match=message):
        hk.gym(cart(), **given)


@pytest.mark.parametrize("action", [[1.0, 2.0], 1.0, [np.nan], [np.inf], []])
def test_an_action_that_does_not_fit(action: Any) -> None:
    env = make()
    env.reset()
    with pytest.raises(hk.ScenarioError, match="action"):
        env.step(action)


def test_what_is_replayed_can_be_reset() -> None:
    composite = cart()
    models = {**composite.scenario.models, "lag": Replay(lag())}
    env = make(hk.Composite(composite.scenario.with_models(models), "1/10"))
    assert roll(env, [0.5, 0.5]) == roll(env, [0.5, 0.5])
