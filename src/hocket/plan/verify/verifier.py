"""The static reading of a plan: faults found at the end of each body, and values that arrive late.

In:  a Plan and its Scenario
Out: Violations; and the InputDelays that the order of the coupling rests on
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from hocket.coupling.feedthrough import Node
from hocket.coupling.wiring import OWN
from hocket.model.scenario import Scenario
from hocket.plan.instructions import Body, Step, describe_instruction, tries, walk
from hocket.plan.plan import Plan
from hocket.plan.verify.level_facts import LevelFacts, OutputValues, Time
from hocket.plan.verify.reader import PlanReader
from hocket.plan.verify.violations import Violation


def check_ends(reader: PlanReader) -> None:
    """Note simulators that do not end at the end of the step, and outputs from before it."""
    facts, apart = reader.facts, False
    still, unread = set(), set()
    for child, time in enumerate(reader.time):
        sim, last = facts.name(child), reader.stepped[child]
        if last is None:
            reader.notes.add("never stepped", None, sim)
            still.add(sim)
        elif time != 1:
            kind, rest = ("too little", 1 - time) if time < 1 else ("too much", time - 1)
            reader.notes.add(kind, last, sim, time=time, rest=rest)
            apart = True
        elif reader.unread[child]:
            ports = facts.outputs(child)
            listed = ", ".join(f"`{port}`" for port in ports[:4])
            reader.notes.add("never read", last, sim, ports[0], ports=listed)
            unread.add(sim)
    for kind, names in (("read before step", still), ("unread source", unread)):
        if names:
            reader.notes.drop(kind, names)
    if apart:
        _check_common_end(reader)


def _check_common_end(reader: PlanReader) -> None:
    """Note each simulator that ends elsewhere than one it exchanges values with, once."""
    facts, told = reader.facts, set()
    for target, sources in enumerate(facts.sources):
        for source in sources:
            if reader.time[source] == reader.time[target]:
                continue
            for one, other in ((target, source), (source, target)):
                last = reader.stepped[one]
                if last is None or reader.time[one] == 1 or one in told:
                    continue
                told.add(one)
                wire, port = facts.wire_between(source, target)
                reader.notes.add(
                    "ends apart", last, facts.name(one), port,
                    wire=wire, source=facts.name(other), time=reader.time[one], other=reader.time[other],
                )  # fmt: skip


def check_rows(reader: PlanReader) -> None:
    """Note a row that is kept too early, or not at all."""
    if reader.record is None:
        reader.notes.add("no record", None)
    elif reader.late is not None and reader.recorded == 1:
        reader.notes.add("early record", reader.record, later=describe_instruction(reader.late))


def check_admitted(reader: PlanReader) -> None:
    """Note inputs of the level that never come in."""
    outside = reader.facts.from_outside
    if outside and not reader.admitted:
        child = next(iter(outside))
        reader.notes.add("never admitted", None, reader.facts.name(child), outside[child])


def check_stale(reader: PlanReader, asked: bool) -> None:
    """Note outputs that a consistent plan leaves out of date; a loop is noted once."""
    values, facts = reader.values, reader.facts
    if values is None or (asked and not reader.admitted):
        return
    ended = (child for child in facts.reactions if not reader.unread[child] and reader.time[child] == 1)
    told: set[tuple[Node, ...]] = set()
    for node, source in values.stale_outputs(reader.time, ended, asked):
        loop = facts.loop_of.get(node, ())
        sim, port = facts.name(node[0]), facts.path(node)
        last = reader.evaluated[node[0]]
        if source is None or source not in loop:
            newer = "the inputs from outside" if source is None else f"`{facts.path(source)}`"
            reader.notes.add("stale output", last, sim, port, source=newer)
        elif loop not in told:
            told.add(loop)
            sims = tuple(dict.fromkeys(facts.name(child) for child, _ in loop))
            ports = tuple(facts.path(each) for each in loop)
            around = " -> ".join((*ports, ports[0]))
            reader.notes.add("stale loop", last, sim, port, loop=around, sims=sims, ports=ports)


def verify_plan(plan: Plan, scenario: Scenario, step: Fraction | None = None) -> list[Violation]:
    """Return what is wrong with the plan of one level, found by reading it; the kinds are in `KINDS`.

    `step` is that of the level in seconds: with it, parts of a step are held against the steps of levels
    inside. A value that arrives late because its source steps later is not a fault: see `find_delays`.
    """
    facts = LevelFacts(scenario, step)
    values = OutputValues(facts) if plan.outputs == "consistent" else None
    reader = PlanReader(facts, values=values, tries=tries(plan.step))
    reader.follow(plan.step)
    if plan.step:
        check_ends(reader)
        check_rows(reader)
        check_admitted(reader)
        check_stale(reader, asked=False)
    if values is not None and not plan.output and reader.used and facts.feedthrough_output():
        reader.notes.add("never asked again", None, port=facts.feedthrough_output())
    asked = PlanReader(facts, "output", 1, values)
    _check_output_body(asked, plan.output)
    return [*reader.notes.found.values(), *asked.notes.found.values()]


def _check_output_body(reader: PlanReader, body: Body) -> None:
    """Read what is evaluated again; all simulators stand at the end of the step."""
    steps = [(place, i) for place, i in walk(body) if isinstance(i, Step)]
    for place, instruction in steps:
        reader.notes.add("step when asked", (place, instruction), instruction.sim)
    if body and not steps:
        reader.follow(body)
        check_rows(reader)
        check_admitted(reader)
        check_stale(reader, asked=True)


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
