"""The static reading of a plan: faults found at the end of each body, and values that arrive late.

In:  a Plan and its Scenario
Out: Violations; and the InputDelays that the order of the coupling rests on
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from hocket.coupling.feedthrough import Feedthrough, Node
from hocket.coupling.wiring import OWN, Wiring
from hocket.model.composite import as_level
from hocket.model.ports import Port
from hocket.model.scenario import Scenario
from hocket.plan.instructions import (
    Admit,
    Body,
    Feed,
    Place,
    Read,
    Receive,
    Record,
    Send,
    Solve,
    Step,
    Together,
    describe_instruction,
    named_simulators,
    tries,
    walk,
    with_places,
)
from hocket.plan.plan import NoteKind, Plan
from hocket.plan.verify.level_facts import LevelFacts, OutputValues, Time
from hocket.plan.verify.reader import PlanReader
from hocket.plan.verify.violations import Violation, ViolationLog


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
            left = reader.part_unread.get(child)
            ports = [port for n, port in enumerate(facts.outputs(child)) if left is None or n in left]
            listed = ", ".join(f"`{port}`" for port in ports[:4])
            reader.notes.add("never read", last, sim, ports[0], ports=listed)
            unread.add(sim)
    for source, target in sorted(reader.sent):
        reader.notes.add("never received", None, source=source, target=target)
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
    The start of several levels is about their leaves: see `verify_start`.
    """
    facts = LevelFacts(scenario, step)
    values = OutputValues(facts) if plan.outputs == "consistent" else None
    reader = PlanReader(facts, values=values, tries=tries(plan.step))
    if not any(note.kind is NoteKind.EARLY_END for note in plan.notes):
        reader.refuse_early_stops()
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
    nested = any(map(as_level, facts.wiring.models))
    start = verify_start(plan.start, facts.wiring) if plan.start and not nested else []
    return [*reader.notes.found.values(), *asked.notes.found.values(), *start]


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


def verify_start(body: Body, wiring: Wiring) -> list[Violation]:
    """Return what is wrong with what is done before the first step; `wiring` is that of all leaves."""
    reader = _StartReader(wiring)
    reader.follow(body)
    reader.check_values()
    return list(reader.notes.found.values())


class _StartReader:
    """Reads which outputs have values, under inputs that have some."""

    def __init__(self, wiring: Wiring):
        self.wiring, self.number = wiring, wiring.numbers()
        self.graph = Feedthrough(wiring, at_start=True)
        self.loop_of = {node: loop for loop in self.graph.loops for node in loop}
        self.notes = ViolationLog("start")
        self.own: set[Node] = set()
        """What has a value, as far as the body of a Together has found it: the others do not see that."""
        self.before: list[set[Node]] = []
        """The same, of the bodies around it."""
        self.fed: set[tuple[Node, Node]] = set()
        """Outputs and what they react to, where the input had a value when it was fed."""

    def follow(self, body: Body, place: Place = (), together: bool = False) -> None:
        """Read instructions one after the other."""
        for at, instruction in with_places(body, place, together):
            unknown = [sim for sim in named_simulators(instruction) if sim not in self.number]
            for sim in unknown:
                near = self.notes.nearest_name(sim, self.number)
                self.notes.add("unknown simulator", (at, instruction), sim, near=near)
            match instruction:
                case Feed() | Read() | Solve() if unknown:
                    pass
                case Feed(sim, ports):
                    self._expect_ports((at, instruction), self.wiring.models[self.number[sim]].inputs)
                    self._feed(self.number[sim], ports)
                case Read(sim, ports):
                    self._expect_ports((at, instruction), self.wiring.models[self.number[sim]].outputs)
                    self._read(self.number[sim], ports)
                case Solve():
                    self._solve(instruction)
                case Together(bodies):
                    self._follow_together(bodies, at)
                case Admit() | Record() | Send() | Receive():
                    pass
                case _:
                    given = describe_instruction(instruction)
                    self.notes.add("not at the start", (at, instruction), given=given)

    def _expect_ports(self, spot: tuple[Place, Feed | Read], every: Sequence[Port]) -> None:
        """Note ports that an instruction names and that do not exist."""
        known = [port.name for port in every]
        for port in spot[1].ports:
            if port not in known:
                sim, near = spot[1].sim, self.notes.nearest_name(port, known)
                self.notes.add("unknown port", spot, sim, f"{sim}.{port}", near=near)

    def _follow_together(self, bodies: tuple[Body, ...], place: Place) -> None:
        self.before.append(self.own)
        found: set[Node] = set()
        for number, body in enumerate(bodies, 1):
            self.own = set()
            self.follow(body, (*place, number), together=True)
            found |= self.own
        self.own = self.before.pop()
        self.own |= found

    def _has_value(self, node: Node) -> bool:
        return node in self.own or any(node in known for known in self.before)

    def _outputs(self, child: int) -> list[Node]:
        return [(child, port) for port in range(len(self.wiring.models[child].outputs))]

    def _feed(self, child: int, ports: tuple[str, ...]) -> None:
        pairs = zip(self.wiring.models[child].inputs, self.wiring.drives[child], strict=True)
        chosen = {
            (d.child, d.port) for port, d in pairs if d is not None and (not ports or port.name in ports)
        }
        for node in self._outputs(child):
            for source in self.graph.sources.get(node, ()):
                if source in chosen:
                    (self.fed.add if self._has_value(source) else self.fed.discard)((node, source))

    def _read(self, child: int, ports: tuple[str, ...]) -> None:
        sources, outputs = self.graph.sources, self.wiring.models[child].outputs
        nodes = [node for node in self._outputs(child) if not ports or outputs[node[1]].name in ports]
        self.own |= {n for n in nodes if all((n, source) in self.fed for source in sources.get(n, ()))}

    def _solve(self, solve: Solve) -> None:
        nodes = {
            node
            for sim in solve.sims
            for node in self._outputs(self.number[sim])
            if node in self.loop_of and self.graph.name(node) in solve.ports
        }
        outer = {source for node in nodes for source in self.graph.sources[node]} - nodes
        if all(map(self._has_value, outer)):
            self.own |= nodes

    def check_values(self) -> None:
        """Note each output without a value of which the reason is not another one, and each loop once."""
        told: set[Node] = set()
        for child, sim in enumerate(self.wiring.names):
            for node in self._outputs(child):
                sources, loop = self.graph.sources.get(node, []), self.loop_of.get(node, ())
                others = [each for each in sources if not self._has_value(each) and each not in loop]
                if self._has_value(node) or node in told or others:
                    continue
                told |= set(loop)
                why, remedy = "", f"Read({sim!r})"
                if loop:
                    around = ", ".join(f"`{self.graph.name(each)}`" for each in loop)
                    why, remedy = f": it is in an algebraic loop of {around}", "a Solve of the loop"
                elif sources:
                    why = f": it follows `{self.graph.name(sources[0])}`, and is not fed and read after that"
                    remedy = f"Feed({sim!r}), Read({sim!r})"
                self.notes.add("unknown at start", None, sim, self.graph.name(node), why=why, remedy=remedy)


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
        self.shown_by_port: dict[Node, Time] = {}
        """The same of outputs, where they are read one by one."""
        self.seen: dict[int, list[Time]] = {}
        """Per child: the times of the samples it was fed from."""
        self.found: dict[tuple[int, int], InputDelay] = {}

    def feed(self, child: int, ports: set[int] | None = None) -> None:
        """Look at the times of the samples."""
        super().feed(child, ports)
        drives = self.facts.wiring.drives[child]
        seen = [
            2 if drive is None or (drive.child == OWN and self.admitted) else 0 if drive.child == OWN
            else self.shown_by_port.get((drive.child, drive.port), self.shown[drive.child])
            for drive in drives
        ]  # fmt: skip
        before = self.seen.get(child, seen)
        self.seen[child] = [
            new if ports is None or index in ports else old
            for index, (new, old) in enumerate(zip(seen, before, strict=True))
        ]

    def read(self, child: int, ports: set[int] | None = None) -> None:
        """Note the time of the new samples."""
        super().read(child, ports)
        for port in range(len(self.facts.model(child).outputs)) if ports is not None else ():
            known = self.shown_by_port.get((child, port), self.shown[child])
            self.shown_by_port[child, port] = self.time[child] if port in (ports or ()) else known
        if ports is None:
            self.shown[child] = self.time[child]
            for node in [node for node in self.shown_by_port if node[0] == child]:
                del self.shown_by_port[node]

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
