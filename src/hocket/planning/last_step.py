"""The one simulator of a level that cannot roll back: it steps when the others know where the step ends.

In:  the step of a level, as its orchestrator wrote it, and the simulators that may end it early
Out: the same step, in which the one without rollback comes behind them; or why that is not possible

It is the second master algorithm of Broman et al. 2013 (Hafner 2021, section 3.3.2). Inputs are fitted where
they were, and nothing that the one puts out is used earlier than before: no value changes by the other order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from hocket.coupling.wiring import Wiring
from hocket.plan import Body, Feed, Instruction, Read, Solve, Step, Together, walk


class NotLastError(Exception):
    """The one without rollback cannot step last; the reason is its text."""


def step_last(body: Body, last: str, stoppers: Collection[str], wiring: Wiring) -> Body:
    """Return the body with the step of `last` behind those of all that may end it early.

    Raises NotLastError where that would change values, or where its steps are parts of other instructions.
    """
    body = _look_early(body, wiring)
    places = [at for at, each in enumerate(body) if _steps(each, last)]
    ends = [at for at, each in enumerate(body) for sim in stoppers if _steps(each, sim)]
    if len(places) != 1:
        raise NotLastError("makes more than one step in a macro step")
    place, end = places[0], max(ends, default=-1)
    if end < place:
        return body
    step, left = _take_out(body[place], last)
    between = [*([left] if left is not None else []), *body[place + 1 : end + 1]]
    reads: list[Instruction] = []
    kept: list[Instruction] = []
    for instruction in between:
        user = next(_users(instruction, last, wiring), "")
        if user:
            raise NotLastError(f"steps before `{user}`, which takes what it puts out in the same step")
        if any(isinstance(each, Read) and each.sim == last for _, each in walk((instruction,))):
            read, rest = _take_out(instruction, last)
            reads.append(read)
            kept += [] if rest is None else [rest]
        else:
            kept.append(instruction)
    return (*body[:place], *kept, step, *reads, *body[end + 1 :])


def _steps(instruction: Instruction, sim: str) -> bool:
    return any(isinstance(each, Step) and each.sim == sim for _, each in walk((instruction,)))


def _take_out(instruction: Instruction, sim: str) -> tuple[Instruction, Instruction | None]:
    """Return the part of an instruction that is about a simulator, and the rest of it, if there is any."""
    if isinstance(instruction, (Step, Read)):
        return instruction, None
    if isinstance(instruction, Together) and all(
        len(inner) == 1 and isinstance(inner[0], (Step, Read)) for inner in instruction.bodies
    ):
        own = [inner for inner in instruction.bodies for each in inner if _names(each, sim)]
        others = tuple(inner for inner in instruction.bodies if inner not in own)
        rest = replace(instruction, bodies=others) if len(others) > 1 else others[0][0] if others else None
        return own[0][0], rest
    raise NotLastError("takes turns with others within a macro step")


def _names(instruction: Instruction, sim: str) -> bool:
    return isinstance(instruction, (Step, Read)) and instruction.sim == sim


def _users(instruction: Instruction, last: str, wiring: Wiring) -> Iterator[str]:
    """Yield who takes samples in an instruction that the step of `last` has made, or that it takes itself."""
    number = wiring.numbers()
    for _, each in walk((instruction,)):
        sims = (each.sim,) if isinstance(each, Feed) else each.sims if isinstance(each, Solve) else ()
        for sim in sims:
            child = number[sim]
            sources = {drive.child for drive in wiring.drives[child] if drive is not None}
            sources |= {drive.child for drive in wiring.texts_of.get(child, ())}
            if sim == last or number[last] in sources:
                yield sim


def _look_early(body: Body, wiring: Wiring) -> Body:
    """Return the body in which detectors look as soon as what they watch has its value of this step."""
    made = list(body)
    for child in sorted(range(len(wiring.names)), key=wiring.names.__getitem__, reverse=True):
        drive = wiring.drives[child][0] if wiring.models[child].capabilities.observes else None
        look = [
            each for each in made if isinstance(each, (Feed, Step, Read)) and each.sim == wiring.names[child]
        ]
        if drive is None or drive.child < 0 or len(look) != 3:
            continue
        source = wiring.names[drive.child]
        rest = [each for each in made if each not in look]
        read = [at for at, each in enumerate(rest) if _reads(each, source)]
        at = 1 + max(read, default=-1)
        made = [*rest[:at], *look, *rest[at:]] if read else made
    return tuple(made)


def _reads(instruction: Instruction, sim: str) -> bool:
    return any(
        (isinstance(each, Read) and each.sim == sim) or (isinstance(each, Solve) and sim in each.sims)
        for _, each in walk((instruction,))
    )
