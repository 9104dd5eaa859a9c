"""`hocket.gym`: a co-simulation as a Gymnasium environment, for reinforcement learning.

In:  an experiment; which ports are actions and observations; the reward
Out: a `gymnasium.Env`, or several as a vector environment
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, TypeAlias

import numpy as np

from hocket.errors import Fault, Place, ScenarioError, raise_faults, suggest_nearest
from hocket.execution.live import Live, LiveState
from hocket.execution.live import open as open_live
from hocket.execution.run import whole_steps
from hocket.files.experiments import ExperimentLike, as_experiment, vary_experiment
from hocket.model.arguments import expect, expect_count
from hocket.model.clock import Duration, format_duration
from hocket.model.experiment import Experiment
from hocket.planning.parameters import leaves
from hocket.simulators.recipes import positive_duration

Ports: TypeAlias = Sequence[str] | Mapping[str, tuple[float, float]]
Judge: TypeAlias = Callable[[Live], Any]
PAIR = '{"car.force": (-1, 1)}: paths of ports, with their bounds'


def gym(
    experiment: ExperimentLike,
    actions: Ports,
    observations: Ports,
    reward: Judge | str,
    *,
    terminated: Judge | None = None,
    every: Duration | None = None,
    stop: Duration | None = None,
    parameters: Mapping[str, Any] | None = None,
    number: int | None = None,
) -> Any:
    """Return the co-simulation as a `gymnasium.Env`: `reset()`, `step(action)`, `close()`.

    `actions` are inputs (or outputs to be overridden) by path, with their bounds: `{"car.force": (-1, 1)}`;
    `observations` are ports in the same form, or a list of paths without bounds. An action holds for `every`,
    a whole number of macro steps (None: one). `reward` is a function of the `hocket.open`ed co-simulation
    after the step, `lambda live: -live["car.x"] ** 2`, or the path of a port. `terminated` is another, true
    where an episode is over; a simulator that ends the simulation ends the episode too. At the stop time an
    episode is truncated. `reset()` brings all simulators back to the state at the start: those that cannot
    roll back are opened anew. With a `number` it is that many of them, a `gymnasium.vector.VectorEnv`. It
    needs the package `gymnasium`.
    """
    _import_gymnasium()
    expect(callable(reward) or isinstance(reward, str), "reward", reward, "a function of Live, or a path")
    expect(terminated is None or callable(terminated), "terminated", terminated, "a function of Live")
    expect_count("number", number)
    what = as_experiment(experiment, stop=stop)
    what = vary_experiment(what, {} if parameters is None else parameters)
    step = what.composite.step
    ratio = (step if every is None else positive_duration(every, "every")) / step
    if ratio.denominator != 1:
        said = f"`every` is {format_duration(ratio * step)}, and the macro step {format_duration(step)}"
        raise ScenarioError(said, "every", "a whole number of macro steps")
    acts = _bounds(actions, "actions")
    seen = _bounds(observations, "observations")
    make = partial(_environment_class(), what, acts, seen, reward, terminated, ratio.numerator)
    if number is None:
        return make()
    from gymnasium.vector import SyncVectorEnv

    return SyncVectorEnv([make] * number)


def _import_gymnasium() -> Any:
    try:
        import gymnasium
    except ImportError:
        what, hint = "Gymnasium is not installed", "pip install 'hocket[gym]'"
        raise ScenarioError(what, "gym", "the package `gymnasium`", hint) from None
    return gymnasium


def _bounds(ports: Ports, where: str) -> dict[str, tuple[float, float]]:
    """Return the ports with their bounds; those of a list have none."""
    listed = isinstance(ports, Mapping | Sequence) and not isinstance(ports, str) and len(ports) > 0
    expect(listed and all(isinstance(path, str) for path in ports), where, ports, PAIR)
    if not isinstance(ports, Mapping):
        return dict.fromkeys(ports, (-inf, inf))
    faults = []
    for path, pair in ports.items():
        try:
            low, high = map(float, pair)
        except (TypeError, ValueError):
            low, high = inf, -inf
        if not low < high:
            faults.append(
                Fault(f"the bounds of `{path}` are {pair!r:.60}", Place(where), "the lower, the higher")
            )
    raise_faults(faults)
    return {path: (float(low), float(high)) for path, (low, high) in ports.items()}


def _environment_class() -> Any:
    """Return the class of environments, which needs Gymnasium to be there."""
    base: Any = _import_gymnasium().Env

    class CosimulationEnv(Episodes, base):  # type: ignore[misc]
        """A co-simulation as a Gymnasium environment."""

    return CosimulationEnv


class Episodes:
    """A co-simulation that is stepped by actions; beside `gymnasium.Env` it is an environment."""

    metadata: Mapping[str, Any] = {"render_modes": []}

    def __init__(
        self,
        experiment: Experiment,
        actions: Mapping[str, tuple[float, float]],
        observations: Mapping[str, tuple[float, float]],
        reward: Judge | str,
        terminated: Judge | None,
        held: int,
    ):
        self.experiment = experiment
        self.actions, self.observations = tuple(actions), tuple(observations)
        self.held = held
        self._terminated = terminated
        self._reward: Judge = (lambda live: live[reward]) if isinstance(reward, str) else reward
        self.action_space, self.observation_space = _box(actions), _box(observations)
        self._rolls_back = all(model.capabilities.rollback for _, model in leaves(experiment.composite))
        self._over = True
        self._live: Live | None = None
        self._begin: LiveState | None = None
        self._open()
        self._check_ports(reward)

    @property
    def live(self) -> Live:
        """The co-simulation, as `hocket.open` returns it."""
        if self._live is None:
            raise ScenarioError("it is closed", "gym", "an environment that is open", "hocket.gym(...)")
        return self._live

    def _open(self) -> None:
        self._live = open_live(self.experiment)
        self._begin = self._live.save() if self._rolls_back else None
        self._is_fresh = True
        stop, live = self.experiment.stop, self._live
        self._last = inf
        if stop is not None:
            self._last = whole_steps(self.experiment.start, stop, self.experiment.composite.step)
        if live.ended_by:
            what = f"`{live.ended_by}` asks to end the simulation at its start"
            raise ScenarioError(what, "gym", "an episode of at least one step")

    def _check_ports(self, reward: Judge | str) -> None:
        """Refuse actions, observations and a reward that are not ports, all at once."""
        named = [("actions", path) for path in self.actions]
        named += [("observations", path) for path in self.observations]
        named += [("reward", reward)] if isinstance(reward, str) else []
        known = self.live.ports
        faults = [
            Fault(f"there is no port `{path}`", Place(key=where), "", suggest_nearest(path, known))
            for where, path in named
            if path not in self.live
        ]
        raise_faults(faults)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode at the start, with the state that everything had there."""
        super().reset(seed=seed)  # type: ignore[misc]
        if options:
            what = f"`reset` has no option `{next(iter(options))}`"
            raise ScenarioError(what, "options", "none", "another environment: gym(..., parameters=...)")
        if not self._is_fresh:
            if self._begin is not None:
                self.live.restore(self._begin)
            else:
                self.live.close()
                self._open()
        self._is_fresh = True
        self._over = False
        return self._observe(), self._facts()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Let an action act for `every`; return observation, reward, terminated, truncated, facts."""
        live = self.live
        given = np.asarray(action, dtype=float)
        fits = given.shape == (len(self.actions),) and bool(np.isfinite(given).all())
        expect(fits, "action", action, f"{len(self.actions)} finite numbers: {', '.join(self.actions)}")
        if self._over:
            what = "no episode is under way"
            raise ScenarioError(what, "step", "an episode that has begun and is not over", "reset()")
        for path, value in zip(self.actions, given.tolist(), strict=True):
            live.set(path, value)
        self._is_fresh = False
        live.step(int(min(self.held, self._last - live.steps)))
        ended = bool(live.ended_by) or (self._terminated is not None and bool(self._terminated(live)))
        cut = not ended and live.steps >= self._last
        self._over = ended or cut
        return self._observe(), float(self._reward(live)), ended, cut, self._facts()

    def _observe(self) -> Any:
        live = self.live
        return np.array([live[path] for path in self.observations], dtype=np.float64)

    def _facts(self) -> dict[str, Any]:
        return {"t": self.live.t, "ended_by": self.live.ended_by}

    def close(self) -> None:
        """Close every simulator; it can be called twice."""
        if self._live is not None:
            self._live.close()
        self._live = self._begin = None


def _box(ports: Mapping[str, tuple[float, float]]) -> Any:
    """Return the space of numbers within the bounds of ports."""
    low, high = np.array(list(ports.values()), dtype=np.float64).T
    return _import_gymnasium().spaces.Box(low, high, dtype=np.float64)
