"""What a user should know of a whole tree of levels before it runs: where order is lost, what is slow.

In:  a PlanTree
Out: notes for its plan
"""

from __future__ import annotations

from collections.abc import Iterator
from math import copysign

from hocket.coupling.feedthrough import Feedthrough
from hocket.coupling.power_accounts import SELF_KEPT, Account, WiredBond
from hocket.coupling.wiring import controlled_drives
from hocket.model.extrapolators import BalanceCorrection
from hocket.model.protocols import Model
from hocket.model.units import conversion, product_factor
from hocket.plan import Adapt, Save, Try, adapts, walk
from hocket.plan.plan import Note, NoteKind
from hocket.planning.tree import Leaves, PlanTree, cold_order, needs_past, window_obstacles
from hocket.simulators.energy_projection import CLOSE, linear_faults
from hocket.simulators.state_space import StateSpace
from hocket.simulators.wrappers.balanced import Balanced
from hocket.simulators.wrappers.emulation import emulation_layers
from hocket.simulators.wrappers.feedthrough_probe import Reacting
from hocket.simulators.wrappers.replay import Replay


def tree_notes(root: PlanTree, leaves: Leaves) -> Iterator[Note]:
    """Yield all notes."""
    for kind, texts in (
        (NoteKind.ORDER, start_notes(root, leaves)),
        (NoteKind.ORDER, degree_notes(root)),
        (NoteKind.ROLLBACK, replay_notes(root, leaves)),
        (NoteKind.EMULATION, emulation_notes(leaves)),
        (NoteKind.BOND, sign_notes(root)),
        (NoteKind.STEP_CONTROL, energy_control_notes(root)),
        (NoteKind.STEP_CONTROL, blind_control_notes(root)),
        (NoteKind.STEP_CONTROL, nested_control_notes(root)),
        (NoteKind.STEP_CONTROL, richardson_notes(root)),
    ):
        yield from (Note(text, kind) for text in texts)


def nested_control_notes(root: PlanTree, around: str | None = None) -> Iterator[str]:
    """Yield levels with step control inside others with step control (Arnold et al. 2011)."""
    own = adapts(root.plan.step)
    if own and around is not None:
        outer = f"`{around}`" if around else "the outermost level"
        yield (
            f"step control inside step control: the error that {outer} estimates contains the one that "
            f"`{root.path}` allows itself; let its tolerance be a tenth of the other"
        )
    for level in root.inner.values():
        yield from nested_control_notes(level, root.path if own else around)


def richardson_notes(root: PlanTree) -> Iterator[str]:
    """Yield levels where two half steps estimate an error across direct feedthrough on both sides."""
    for level in root.levels():
        controls = [each.control for _, each in walk(level.plan.step) if isinstance(each, Adapt)]
        if any(control.estimate == "richardson" for control in controls):
            for loop in Feedthrough(level.wiring).loops[:1]:
                graph = Feedthrough(level.wiring)
                names = " -> ".join(f"`{graph.name(node)}`" for node in loop)
                yield (
                    f"the error by two half steps is not reliable: {names} react to each other at once "
                    '(Arnold 2013); `estimate = "defect"` does not depend on that'
                )


def start_notes(root: PlanTree, leaves: Leaves) -> tuple[str, ...]:
    """Return what the user must know about the order at the start."""
    capped = {
        level.path: min(cold_order(each) for each in level.wiring.extrapolators if needs_past(each))
        for level in root.levels()
        if any(map(needs_past, level.wiring.extrapolators))
    }
    cold = [level for level in root.levels() if level.path in capped and level.composite.start == "cold"]
    fixed = window_obstacles(leaves)
    if cold:
        names = ", ".join(f"`{level.path}`" if level.path else "the outermost level" for level in cold)
        order = min(capped[level.path] for level in cold)
        return (f"the order is capped at {order}: {names} starts cold, without a past for its extrapolators",)
    if capped and fixed:
        more = f" and {len(fixed) - 1} more" if len(fixed) > 1 else ""
        order = min(capped.values())
        return (f"the order is capped at {order}: `{fixed[0]}`{more} cannot roll back, so the start is cold",)
    return ()


def degree_notes(root: PlanTree) -> Iterator[str]:
    """Yield the simulators that do not follow the polynomials they are given, and what that costs."""
    for level in root.levels():
        for child, model in enumerate(level.wiring.models):
            honoured = model.capabilities.input_degree
            given = max(
                (d.extrapolation.degree for d in level.wiring.drives[child] if d and d.extrapolation),
                default=0,
            )
            if honoured is not None and honoured < given:
                name = level.name(child)
                yield f"`{name}` follows inputs to degree {honoured}: its order is at most {honoured + 1}"


def replay_notes(root: PlanTree, leaves: Leaves) -> Iterator[str]:
    """Yield the simulators that roll back by making all their steps again, where a plan rolls back at all."""
    instructions = (each for level in root.levels() for _, each in walk(level.plan.step))
    if any(isinstance(each, (Save, Try, Adapt)) for each in instructions):
        for name, model in zip(leaves.wiring.names, leaves.wiring.models, strict=True):
            if any(isinstance(layer, Replay) for layer in emulation_layers(model)):
                yield f"`{name}` rolls back by replaying from the start: a run of n steps costs n^2/2"


def emulation_notes(leaves: Leaves) -> Iterator[str]:
    """Yield the capabilities that simulators lack by themselves, how they get them, and at what price."""
    for name, model in zip(leaves.wiring.names, leaves.wiring.models, strict=True):
        for layer in emulation_layers(model):
            told = isinstance(layer, Replay) or (isinstance(layer, Reacting) and not layer.probed)
            if not told:
                yield f"`{name}` has {layer.emulation}: {layer.price}"


def sign_notes(root: PlanTree) -> Iterator[str]:
    """Yield bonds whose power does not fit the stored energies that are declared at their ends."""
    for level in root.levels():
        for joint in level.wiring.bonds:
            told = next(_energy_misfits(level, joint), None)
            if told is not None:
                yield f"the bond {_bond_label(level, joint)} and the energy of {told}"


def _bond_label(level: PlanTree, joint: WiredBond) -> str:
    return f"`{level.path}.{joint.name}`" if level.path else f"`{joint.name}`"


def _energy_misfits(level: PlanTree, joint: WiredBond) -> Iterator[str]:
    for account, sign in ((joint.given, -1.0), (joint.taken, 1.0)):
        model, side = _bond_end(level.wiring.models[account.child], joint, account, sign)
        if not isinstance(model, StateSpace) or model.energy is None or side is None:
            continue
        for fault in linear_faults(model, [side], CLOSE):
            wrong = "counts with the wrong sign" if fault.opposite else "is not what is stored"
            yield f"`{level.name(account.child)}` do not fit: what is gained {wrong}; look at {fault.hint}"


def _bond_end(
    model: Model, joint: WiredBond, account: Account, sign: float
) -> tuple[Model, tuple[str, str, float] | None]:
    """Return the model at an end of a bond; output, input and sign of the power into it, where known."""
    if isinstance(model, Balanced):
        kept = model.outputs[account.output].name
        sides = [each for each in model.bonds if f"{each.input}_work" == kept]
        return model.model, (sides[0].output, sides[0].input, float(sides[0].sign)) if sides else None
    if account.input == SELF_KEPT:
        return model, None
    output, entry = model.outputs[account.output], model.inputs[account.input]
    try:
        _, watts = conversion(joint.unit, "W"), product_factor(output.unit, entry.unit, "W")
    except ValueError:
        return model, None
    return model, (output.name, entry.name, sign * copysign(watts, account.factor))


def energy_control_notes(root: PlanTree) -> Iterator[str]:
    """Yield bonds that mislead a step control by energy."""
    for level in root.levels():
        controls = [each.control for _, each in walk(level.plan.step) if isinstance(each, Adapt)]
        if not any(control.estimate == "energy" for control in controls):
            continue
        for joint in level.wiring.bonds:
            name = _bond_label(level, joint)
            giver = level.wiring.models[joint.given.child]
            if isinstance(giver, Balanced) and giver.form == "energy":
                yield f"{name} is balanced by energy and gains nothing: step control is blind to it"
            elif any(_is_corrected(level, account) for account in (joint.given, joint.taken)):
                yield (
                    f"the correction of {name} hands on what the last step missed, however short the next "
                    "one is: step control by energy may find none short enough"
                )


def blind_control_notes(root: PlanTree) -> Iterator[str]:
    """Yield levels whose step control sees no output, or only such as are declared discrete."""
    for level in root.levels():
        controls = [each.control for _, each in walk(level.plan.step) if isinstance(each, Adapt)]
        if not any(control.estimate != "energy" for control in controls):
            continue
        name = f"of `{level.path}` " if level.path else ""
        seen = controlled_drives(level.wiring)
        if not seen:
            yield (
                f"the step control {name}sees no output: none that is continuous drives another, and steps "
                "grow to the longest"
            )
        elif all(level.wiring.models[drive.child].outputs[drive.port].discrete for drive in seen):
            yield (
                f"the step control {name}takes reals as continuous that are declared discrete: no other "
                "output drives one"
            )


def _is_corrected(level: PlanTree, account: Account) -> bool:
    drive = None if account.input == SELF_KEPT else level.wiring.drives[account.child][account.input]
    return drive is not None and isinstance(drive.extrapolation, BalanceCorrection)
