"""A plan read statically: the same instructions as in a run, done to clocks instead of simulators.

In:  a body of a Plan, the Facts of its level
Out: where every simulator stands at the end, and what was wrong on the way
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Never

from hocket import plan
from hocket.coupling.feedthrough import Node
from hocket.model.composite import accepts_any_step, as_level
from hocket.model.ports import Port
from hocket.plan.instructions import WHOLE, Place, Spot, join_names, named_simulators, with_places
from hocket.plan.verify.body_faults import (
    Finding,
    are_uniform,
    body_owners,
    find_races,
    last_step_faults,
    message_faults,
    repeat_faults,
    steps_in,
    try_faults,
    turn_faults,
    turn_order,
)
from hocket.plan.verify.level_facts import LevelFacts, OutputValues, Time
from hocket.plan.verify.violations import ViolationLog


def solved_nodes(reader: PlanReader, solve: plan.Solve) -> list[Node]:
    """Return the outputs that are solved for; what is wrong with them is noted.

    If anything is, all loops of the simulators count as solved, so that one mistake is told once.
    """
    facts = reader.facts
    nodes: dict[Node, str] = {}
    sound = True
    for path in solve.ports:
        node = _find_node(reader, path)
        if node is None:
            sound = False
            continue
        nodes[node] = path
        sim = facts.name(node[0])
        if sim not in solve.sims:
            reader.fault("loop without simulator", sim, path)
            sound = False
        if node not in facts.loop_of:
            again = facts.model(node[0]).capabilities.reevaluates
            why = "" if again else f": `{sim}` cannot be evaluated again between steps"
            reader.fault("no loop", sim, path, why=why)
            sound = False
    if not solve.ports:
        reader.fault("empty body")
    for node, path in nodes.items() if sound else ():
        loop = facts.loop_of.get(node, ())
        missing = [facts.path(each) for each in loop if each not in nodes]
        if missing:
            whole = [facts.path(each) for each in loop]
            sim = facts.name(node[0])
            reader.fault("part of a loop", sim, path, missing=join_names(missing), loop=join_names(whole))
            sound = False
            break
    return list(nodes) if nodes and sound else _loop_nodes(reader, solve)


def _loop_nodes(reader: PlanReader, solve: plan.Solve) -> list[Node]:
    facts = reader.facts
    children = [facts.number[sim] for sim in solve.sims if sim in facts.number]
    nodes = [(child, each.port) for child in children for each in facts.reactions.get(child, ())]
    return [node for node in nodes if node in facts.loop_of]


def _find_node(reader: PlanReader, path: str) -> Node | None:
    """Return the output behind a path; a name that is none is noted."""
    facts = reader.facts
    sim, _, port = path.partition(".")
    child = facts.number.get(sim)
    if child is None:
        reader.fault("unknown simulator", sim, path, near=reader.notes.nearest_name(sim, facts.number))
        return None
    for index, output in enumerate(facts.model(child).outputs):
        if output.name == port:
            return child, index
    reader.fault("unknown port", sim, path, near=reader.notes.nearest_name(path, facts.outputs(child)))
    return None


ROUNDS = 3
"""So often a body that is done many times is read: the first, another, and the last."""


class PlanReader:
    """Reads one body. Times are fractions of the level's step."""

    def __init__(
        self,
        facts: LevelFacts,
        title: str = "step",
        time: Time = 0,
        values: OutputValues | None = None,
        tries: bool = False,
    ):
        size = len(facts.wiring.names)
        self.facts = facts
        self.number, self.driven, self.sources = facts.number, facts.needs_feed, facts.sources
        self.shows = [bool(model.outputs) for model in facts.wiring.models]
        self.notes = ViolationLog(title)
        self.values = values
        self.tries = tries
        """Whether steps may be made shorter: then all must be."""
        self.time: list[Time] = [time] * size
        self.latest = time
        self.fed = [False] * size
        self.unread: list[bool] = [False] * size
        """Stepped, and not read since."""
        self.stepped: list[Spot | None] = [None] * size
        """The last step of each child."""
        self.evaluated: list[Spot | None] = [None] * size
        """The last read of each child."""
        self.saved: dict[int, Time] = {}
        self.admitted = self.used = False
        """Inputs from outside, and whether a feed came after they were."""
        self.record: Spot | None = None
        self.recorded = 0
        self.late: plan.Instruction | None = None
        """What came after the record."""
        self.part_fed: dict[int, set[int]] = {}
        """Per child that is fed by ports: the inputs fed since its last step."""
        self.part_unread: dict[int, set[int]] = {}
        """Per child that is read by ports: the outputs not read since its last step."""
        self.saved_fed: dict[int, set[int]] = {}
        """Per child that was saved: the inputs that were fed before that, and not again since."""
        self.shown_at: dict[Node, Time] = {}
        """Where reactivity is declared: the time of the newest sample of each output."""
        self.seen_at: dict[tuple[int, int], Time] = {}
        """Where it is declared: the time of the sample that an input was fed with."""
        self.guessing = False
        """In the first sweep of an iteration."""
        self.stops_early = [False] * size
        """Per child: whether it may stop inside a step, and nobody has said what becomes of that."""
        self.trying = self.tried = 0
        self.adapting = False
        self.sent: set[tuple[str, str]] = set()
        """From which host to which something was sent that is not received yet."""
        self.crowd: list[tuple[dict[str, int], int]] = []
        """For each Together around here: which body has which simulator, and which this is."""
        self.place: Place = ()
        self.instruction: plan.Instruction = plan.Record()

    def follow(self, body: plan.Body, place: Place = (), together: bool = False) -> None:
        """Read instructions one after the other."""
        if not body:
            self.notes.add("empty body", self.spot if self.place else None)
        for at, instruction in with_places(body, place, together):
            self.place, self.instruction = at, instruction
            match instruction:
                case plan.Feed() | plan.Step() | plan.Read():
                    self.follow_simple(instruction)
                case plan.Together(bodies):
                    self.follow_together(bodies, at)
                case plan.Solve():
                    self.solve(instruction)
                case plan.Times(n, inner):
                    self.follow_times(n, inner, at)
                case plan.Next(bodies):
                    self.take_turns(bodies, at)
                case plan.Record():
                    self.keep_row()
                case plan.Admit():
                    self.admit()
                case plan.Try():
                    self.attempt(instruction, at)
                case plan.Instant():
                    self.follow_instant(instruction, at)
                case plan.React() | plan.Commit():
                    self.fault("outside an instant", (*named_simulators(instruction), "")[0])
                case plan.Adapt(inner, control):
                    self.adapt(inner, control, at)
                case plan.Save(sims):
                    for child in self.look_up(sims):
                        self.save(child)
                case plan.Restore(sims):
                    for child in self.look_up(sims):
                        self.restore(child)
                    self.latest = max(self.time, default=0)
                case plan.Repeat():
                    self.repeat(instruction, at)
                case plan.Send() | plan.Receive():
                    self.note_all(message_faults(self.facts, self.sent, self.spot))
                case _:
                    self.refuse(instruction)

    def refuse(self, given: Never) -> None:
        """Note what is not an instruction; mypy rejects a match that leaves one out."""
        self.fault("no instruction", given=f"{given!r:.60}")

    def follow_simple(self, instruction: plan.Feed | plan.Step | plan.Read) -> None:
        """Read an instruction about one simulator."""
        child = self.number.get(instruction.sim)
        if child is None:
            self.look_up((instruction.sim,))
        elif isinstance(instruction, plan.Step):
            self.step(child, instruction.fraction)
        elif isinstance(instruction, plan.Feed):
            self.feed(child, self._port_numbers(child, instruction.ports, self.facts.model(child).inputs))
        else:
            self.read(child, self._port_numbers(child, instruction.ports, self.facts.model(child).outputs))

    def _port_numbers(self, child: int, ports: tuple[str, ...], every: Sequence[Port]) -> set[int] | None:
        """Return the numbers of the ports that an instruction names; None: all. Unknown ones are faults."""
        if not ports:
            return None
        number = {port.name: index for index, port in enumerate(every)}
        sim = self.facts.name(child)
        for port in ports:
            if port not in number:
                near = self.notes.nearest_name(port, number)
                self.fault("unknown port", sim, f"{sim}.{port}", near=near)
        return {number[port] for port in ports if port in number}

    @property
    def spot(self) -> Spot:
        """The instruction that is read."""
        return self.place, self.instruction

    def fault(self, kind: str, sim: str = "", port: str = "", **more: object) -> None:
        """Note what is wrong with the instruction that is read."""
        self.notes.add(kind, self.spot, sim, port, **more)

    def note_all(self, found: Iterable[Finding]) -> None:
        """Note what is wrong with bodies inside."""
        for each in found:
            self.notes.add(each.kind, each.spot, each.sim, each.port, **each.more)

    def look_up(self, sims: Sequence[str]) -> list[int]:
        """Return the numbers of simulators; unknown ones are faults."""
        found = []
        for sim in sims:
            child = self.number.get(sim)
            if child is None:
                self.fault("unknown simulator", sim, near=self.notes.nearest_name(sim, self.number))
            else:
                found.append(child)
        return found

    # values

    def feed(self, child: int, ports: set[int] | None = None) -> None:
        """Fit the inputs of a child, or some of them."""
        drives = self.facts.wiring.drives[child]
        if ports is None:
            self.fed[child] = True
            self.part_fed.pop(child, None)
            self.saved_fed.pop(child, None)
        else:
            part = self.part_fed.setdefault(child, set(self._driven_inputs(child) if self.fed[child] else ()))
            part |= ports
            self.fed[child] = self._driven_inputs(child) <= part
            self.saved_fed.get(child, set()).difference_update(ports)
        for source in self.sources[child]:
            if self.unread[source] and not self._in_other_body(source):
                left = self.part_unread.get(source)
                wires = [
                    index
                    for index, drive in enumerate(drives)
                    if drive is not None and drive.child == source
                    if (ports is None or index in ports) and (left is None or drive.port in left)
                ]
                if wires:
                    sim, name = self.facts.name(child), self.facts.name(source)
                    port = f"{sim}.{self.facts.model(child).inputs[wires[0]].name}"
                    self.fault("unread source", sim, port, source=name)
        for index, _ in self.facts.reactive.get(child, ()):
            drive = drives[index]
            if drive is not None and drive.child >= 0 and (ports is None or index in ports):
                self.seen_at[child, index] = self.shown_at.get((drive.child, drive.port), 0)
        if self.admitted and child in self.facts.from_outside:
            self.used = True
        if self.values is not None:
            self.values.feed(child, self.time[child], ports)

    def _driven_inputs(self, child: int) -> set[int]:
        return {index for index, drive in enumerate(self.facts.wiring.drives[child]) if drive is not None}

    def _in_other_body(self, child: int) -> bool:
        """Return whether a child belongs to another of the bodies that run together."""
        name = self.facts.name(child)
        return any(owner.get(name, number) != number for owner, number in self.crowd)

    def read(self, child: int, ports: set[int] | None = None) -> None:
        """Store the outputs of a child, or some of them."""
        self._check_read_time(child)
        every = (
            range(len(self.facts.model(child).outputs)) if ports is not None or self.facts.reactive else ()
        )
        if ports is None:
            self.unread[child] = False
            self.part_unread.pop(child, None)
        elif self.unread[child]:
            left = self.part_unread.setdefault(child, set(every))
            left -= ports
            self.unread[child] = bool(left)
        if self.facts.reactive:
            for port in every if ports is None else ports:
                self.shown_at[child, port] = self.time[child]
        self.evaluated[child] = self.spot
        self._note_late()
        if self.values is not None:
            self.values.read(child, self.time[child], ports)

    def _check_read_time(self, child: int) -> None:
        """Note a child that is read before its first step, though others have moved on."""
        if self.stepped[child] is None and self.time[child] < self.latest:
            port = next(iter(self.facts.outputs(child)), "")
            now, latest = self.time[child], self.latest
            self.fault("read before step", self.facts.name(child), port, time=now, latest=latest)

    def solve(self, solve: plan.Solve) -> None:
        """Solve a loop: all in it are fed and read together."""
        children = self.look_up(solve.sims)
        if children:
            self._check_read_time(children[0])
        for child in children:
            if self.time[child] != self.time[children[0]]:
                sim, other = self.facts.name(children[0]), self.facts.name(child)
                one, two = self.time[children[0]], self.time[child]
                self.fault("loop apart", sim, source=other, time=one, other=two)
                break
            if self.unread[child]:
                self.fault("loop before read", self.facts.name(child))
        nodes = solved_nodes(self, solve)
        for child in children:
            self.unread[child] = False
            self.evaluated[child] = self.place, solve
        for child in children:
            self.feed(child)
        self._note_late()
        if self.values is None:
            return
        if nodes and children:
            self.values.solve(children, nodes, self.time[children[0]])
        else:
            for child in children:
                self.values.read(child, self.time[child])

    def admit(self) -> None:
        """Take the inputs that the level was given."""
        if not self.facts.scenario.inputs:
            self.fault("nothing to admit")
        self.admitted = True
        if self.values is not None:
            self.values.outside += 1

    def keep_row(self) -> None:
        """Record."""
        if self.recorded:
            self.fault("second record")
        self.recorded += 1
        self.record, self.late = self.spot, None

    def _note_late(self) -> None:
        if self.recorded and self.late is None:
            self.late = self.instruction

    # time

    def step(self, child: int, fraction: Fraction) -> None:
        """Move a child on."""
        if self.driven[child] and not self.fed[child]:
            ports = self.facts.inputs(child, but=self.part_fed.get(child, ()))
            listed = ", ".join(f"`{port}`" for port in ports[:4]) or "its texts"
            self.fault("unfed input", self.facts.name(child), ports[0] if ports else "", ports=listed)
        self.fed[child] = False
        self.part_fed.pop(child, None)
        self.part_unread.pop(child, None)
        before = self.time[child]
        # comparing fractions is slow, and most steps are whole
        self.time[child] += 1 if fraction is WHOLE else self._check_fraction(child, fraction)
        if child in self.facts.reactive:
            self._check_reactivity(child, before)
        if self.tries and not self.trying:
            self.fault("step outside try", self.facts.name(child))
        elif self.stops_early[child] and not self.trying:
            self._note_early_stop(child)
        if self.time[child] > self.latest:
            self.latest = self.time[child]
        self.unread[child] = self.shows[child]
        self.stepped[child] = self.spot
        self._note_late()

    def _check_reactivity(self, child: int, begin: Time) -> None:
        """Note inputs with other samples than they declare; the first sweep of an iteration guesses."""
        for index, kind in self.facts.reactive[child]:
            seen, end = self.seen_at.get((child, index)), self.time[child]
            if seen is None or self.guessing:
                continue
            drive = self.facts.wiring.drives[child][index]
            assert drive is not None
            late, early = kind == "reactive" and seen < end, kind == "delayed" and seen > begin
            if late or early:
                sim = self.facts.name(child)
                port = f"{sim}.{self.facts.model(child).inputs[index].name}"
                source = self.facts.path((drive.child, drive.port))
                self.fault(f"{kind} input", sim, port, source=source, time=seen, other=end if late else begin)

    def refuse_early_stops(self) -> None:
        """Note steps without a Try of what may stop inside them."""
        self.stops_early = [model.capabilities.stops_early for model in self.facts.wiring.models]

    def _note_early_stop(self, child: int) -> None:
        unable = next((finding.sim for finding in try_faults(self.facts, self.spot)), "")
        remedy = "Try((...,)) around the instructions of the step"
        if unable:
            remedy = (
                f"`{unable}` cannot roll back or change its step, so no Try can be made: early_return=False"
            )
        self.fault("early stop", self.facts.name(child), remedy=remedy)

    def _check_fraction(self, child: int, fraction: Fraction) -> Fraction:
        """Return a part of the step as a fraction, after a look at whether it can be made."""
        sim = self.facts.name(child)
        if not isinstance(fraction, (Fraction, int)):
            try:
                exact = Fraction(str(fraction))
            except ValueError:
                exact = WHOLE
            self.fault("inexact step", sim, given=fraction, exact=repr(exact))
            return exact
        if fraction <= 0:
            self.fault("no way forward", sim, time=fraction)
        elif fraction != 1 and not self.facts.can_step(child, fraction):
            inner = as_level(self.facts.model(child)) is not None
            self.fault("level's step" if inner else "fixed step", sim, time=fraction)
        return fraction

    def save(self, child: int) -> None:
        """Remember where a child stands."""
        if not self.facts.model(child).capabilities.rollback:
            self.fault("save without rollback", self.facts.name(child))
        self.saved[child] = self.time[child]
        whole = self._driven_inputs(child) if self.fed[child] else set[int]()
        self.saved_fed[child] = set(self.part_fed.get(child, whole))

    def restore(self, child: int) -> None:
        """Go back to where a child was saved."""
        if child not in self.saved:
            self.fault("restore without save", self.facts.name(child))
        self.time[child] = self.saved.get(child, self.time[child])
        self.unread[child] = False
        self.part_unread.pop(child, None)
        kept = self.part_fed[child] = set(self.saved_fed.get(child, ()))
        self.fed[child] = bool(kept) and self._driven_inputs(child) <= kept

    # bodies inside

    def follow_together(self, bodies: tuple[plan.Body, ...], place: Place) -> None:
        """Read bodies of which none may lean on another."""
        if not bodies:
            self.fault("empty body")
        if are_uniform(bodies):
            for number, body in enumerate(bodies, 1):
                self.place, self.instruction = (*place, number), body[0]
                self.follow_simple(body[0])  # type: ignore[arg-type]
            return
        owner = body_owners(bodies, place)
        self.note_all(find_races(bodies, place, owner, self.facts))
        start = latest = self.latest
        around = self.instruction
        for number, body in enumerate(bodies, 1):
            self.place, self.instruction, self.latest = place, around, start
            self.crowd.append((owner, number))
            self.follow(body, (*place, number), together=True)
            self.crowd.pop()
            latest = max(latest, self.latest)
        self.latest = latest

    def follow_times(self, n: int, body: plan.Body, place: Place) -> None:
        """Read a body that is done n times; most of many times are alike and are skipped."""
        if not isinstance(n, int) or n < 1:
            self.fault("no times", n=n)
            return
        moving = {i.sim for _, i in plan.walk(body) if isinstance(i, plan.Step)} if n > ROUNDS else set()
        children = [self.number[sim] for sim in moving if sim in self.number]
        for turn in range(min(n, ROUNDS)):
            before = [self.time[child] for child in children]
            self.follow(body, place)
            if turn == 1:
                for child, time in zip(children, before, strict=True):
                    self.time[child] += (n - ROUNDS) * (self.time[child] - time)
                    self.latest = max(self.latest, self.time[child])

    def take_turns(self, bodies: tuple[plan.Body, ...], place: Place) -> None:
        """Read bodies of which the one furthest behind goes next; what is wrong with one is read once."""
        if not bodies:
            self.fault("empty body")
        wrong = list(turn_faults(bodies, place))
        self.note_all(wrong)
        steps = [step for body in bodies for step in steps_in(body)]
        children = [self.number[step.sim] for step in steps if step.sim in self.number]
        parts = [step.fraction for step in steps]
        exact = all(isinstance(part, (Fraction, int)) and part > 0 for part in parts)
        if wrong or not exact or len(children) != len(bodies):
            for number, body in enumerate(bodies, 1):
                self.follow(body, (*place, number))
            for child in children:
                self.time[child] = self.latest = 1
            return
        for number in turn_order([self.time[child] for child in children], parts, 1):
            self.follow(bodies[number], (*place, number + 1))

    def follow_instant(self, instant: plan.Instant, place: Place) -> None:
        """Read what happens at one time: all react before any commits, and only what reacts is committed."""
        reacting: set[str] = set()
        committed = False
        for at, instruction in with_places(instant.body, place):
            self.place, self.instruction = at, instruction
            match instruction:
                case plan.React(sim):
                    self.look_up((sim,))
                    if committed:
                        self.fault("react after commit", sim)
                    reacting.add(sim)
                case plan.Commit(sims):
                    committed = True
                    self.look_up(sims)
                    for sim in sims:
                        if sim not in reacting:
                            self.fault("commit without react", sim)
                case plan.Solve() | plan.Record():
                    pass
                case _:
                    self.fault("not in an instant")

    def attempt(self, instruction: plan.Try, place: Place) -> None:
        """Read a body whose steps may be made shorter."""
        body = instruction.body
        self.note_all(try_faults(self.facts, self.spot, instruction.found, instruction.last))
        if instruction.last and self.look_up((instruction.last,)):
            self.note_all(last_step_faults(self.facts, instruction, place))
        if self.trying:
            self.fault("try in a try")
        elif len(place) > 1 and not (self.adapting and len(place) == 2):
            self.fault("try inside")
        elif self.tried:
            self.fault("second try")
        self.trying += 1
        self.tried += 1
        self.follow(body, place)
        self.trying -= 1

    def adapt(self, body: plan.Body, control: plan.Control, place: Place) -> None:
        """Read a body whose steps are as long as their error allows: as one step."""
        instants = any(isinstance(each, plan.Instant) for _, each in plan.walk(body))
        for child in range(len(self.time)):
            model, sim = self.facts.model(child), self.facts.name(child)
            if control.rejects and not model.capabilities.rollback:
                self.fault("try without rollback", sim, more="")
            if not self.facts.can_step_multiples(child, control.quantum):
                if as_level(model) is None:
                    self.fault("fixed step", sim, time=control.quantum)
                elif not (instants and accepts_any_step(model)):  # then levels step to any tick
                    self.fault("quantum", sim, time=control.quantum, fits=self.facts.quantum_advice(child))
        if len(place) > 1:
            self.fault("try inside")
        self.adapting = True
        self.follow(body, place)
        self.adapting = False

    def repeat(self, outer: plan.Repeat, place: Place) -> None:
        """Read a body that is repeated: once, and once again from where it went back to."""
        if not isinstance(outer.at_most, int) or outer.at_most < 1:
            self.fault("no repetitions", n=outer.at_most)
        if outer.until is not None and not outer.until > 0:
            self.fault("no tolerance", until=outer.until)
        wrong = list(repeat_faults(outer, place, {self.facts.name(child) for child in self.saved}))
        self.note_all(each for each in wrong if each.sim in self.number)
        for sweep in range(1 if wrong or outer.at_most == 1 else 2):
            self.guessing = sweep == 0
            self.follow(outer.body, place)
        self.guessing = False
        if self.values is not None and outer.until is not None:
            sims = {i.sim for _, i in plan.walk(outer.body) if isinstance(i, plan.Read)}
            self.values.accept_values([self.number[s] for s in sims if s in self.number], self.time)
