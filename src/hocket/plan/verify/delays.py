"""Where a plan lets a value arrive late: not a fault, but what the order of a coupling is about.

In:  a Plan and its Scenario
Out: Delays: an input, what drives it, and by how much of a step it is extrapolated
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from hocket.coupling.wiring import OWN
from hocket.model.scenario import Scenario
from hocket.plan.plan import Plan, describe_instruction
from hocket.plan.traverse import tries
from hocket.plan.verify.level_facts import LevelFacts, Time
from hocket.plan.verify.reader import PlanReader


@dataclass(frozen=True, slots=True)
class InputDelay:
    """An input that is extrapolated, because its source is read only after the step it is needed for."""

    source: str
    """An output, or an input of the level."""
    target: str
    lag: Fraction
    """The longest way from the newest sample to the end of a step, as a part of the level's step."""
    where: str
    """The instruction that steps with it, by its place."""

    def __str__(self) -> str:
        return f"`{self.target}` is `{self.source}` extrapolated over {self.lag} of a step ({self.where})"


def find_delays(plan: Plan, scenario: Scenario) -> list[InputDelay]:
    """Return the inputs that a plan extrapolates, in the order of the scenario."""
    reader = _DelayReader(LevelFacts(scenario), tries(plan.step))
    reader.follow(plan.step)
    return [reader.found[key] for key in sorted(reader.found)]


class _DelayReader(PlanReader):
    """A Reader that looks at how old the samples are that a step is made with."""

    def __init__(self, facts: LevelFacts, tries: bool):
        super().__init__(facts, tries=tries)
        self.shown: list[Time] = [0] * len(self.time)
        """Per child: the time of its newest sample."""
        self.seen: dict[int, list[Time]] = {}
        """Per child: the times of the samples it was fed from."""
        self.found: dict[tuple[int, int], InputDelay] = {}

    def feed(self, child: int) -> None:
        """Look at the times of the samples."""
        super().feed(child)
        drives = self.facts.wiring.drives[child]
        self.seen[child] = [
            2 if drive is None or (drive.child == OWN and self.admitted) else 0 if drive.child == OWN
            else self.shown[drive.child]
            for drive in drives
        ]  # fmt: skip

    def read(self, child: int) -> None:
        """Note the time of the new samples."""
        super().read(child)
        self.shown[child] = self.time[child]

    def restore(self, child: int) -> None:
        """Forget what the sweep before had to extrapolate: its samples stay, and this one interpolates."""
        super().restore(child)
        self.found = {key: delay for key, delay in self.found.items() if key[0] != child}

    def step(self, child: int, fraction: Fraction) -> None:
        """Compare the end of the step with the samples."""
        super().step(child, fraction)
        end = self.time[child]
        for index, time in enumerate(self.seen.get(child, ())):
            lag = Fraction(end - time)
            known = self.found.get((child, index))
            if lag > 0 and (known is None or known.lag < lag):
                self.found[(child, index)] = self._input_delay(child, index, lag)

    def _input_delay(self, child: int, index: int, lag: Fraction) -> InputDelay:
        facts = self.facts
        drive = facts.wiring.drives[child][index]
        assert drive is not None
        own = drive.child == OWN
        source = facts.scenario.inputs[drive.port].name if own else facts.path((drive.child, drive.port))
        target = f"{facts.name(child)}.{facts.model(child).inputs[index].name}"
        place = ".".join(map(str, self.place))
        return InputDelay(source, target, lag, f"step {place}: {describe_instruction(self.instruction)}")
