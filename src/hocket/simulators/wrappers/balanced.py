"""Power-balanced coupling: a model takes in the power that both sides agree on.

In:  a Model, its power bonds, and how its input or its state follows from the agreed power
Out: a Model like it for any engine
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, TypeAlias

from hocket.errors import Fault, ScenarioError, raise_faults, suggest_nearest
from hocket.model.arguments import choice_faults, is_number, is_positive, is_whole, set_fields
from hocket.model.bonds import Balance
from hocket.model.ports import Port
from hocket.model.protocols import Capabilities, Model, Simulator, declared_energy, period_of, step_of
from hocket.simulators.energy_projection import Projected, linear_faults
from hocket.simulators.ode import Ode
from hocket.simulators.power_balance import InversionBalance, PartnerView, Seat, SubsteppedBalance
from hocket.simulators.state_space import StateSpace
from hocket.simulators.wrappers.emulation import ModelWrapper, check_wrapped

Agreed: TypeAlias = Literal["product", "linear"]


@dataclass(frozen=True, slots=True)
class PartnerBond:
    """Another bond of a partner: sign * output * input, as the partner has them, is the power into it.

    `name` begins the inputs that tell them here, and what the one at the far end stores.
    """

    name: str
    sign: float
    units: tuple[str, str]
    """Of the output and the input."""
    bonds: int
    """Of the one at the far end."""

    @property
    def ports(self) -> tuple[Port, ...]:
        """The inputs: output, input, and what the one at the far end stores."""
        output, entry = self.units
        return (
            Port(f"{self.name}_output", output),
            Port(f"{self.name}_input", entry),
            Port(f"{self.name}_share", "J", start=-1.0, held=True),
        )


@dataclass(frozen=True, slots=True)
class BondSide:
    """One power bond as a simulator sees it: sign * output * input is the power into it, in watts.

    A spring that puts out f = -c s and is given v: -1; a mass that is given f and puts out v: +1. Where
    units do not multiply to watts, `sign` has their factor too.
    """

    output: str
    input: str
    sign: float = 1.0
    scale: float | None = None
    """What `eps` is a part of, in the output's unit; None: the largest output so far."""
    eps: float | None = None
    """None: that of the model."""
    beyond: tuple[PartnerBond, ...] = ()
    """The other bonds of the partner: how much it may give here depends on them."""
    settles: bool = False
    """Whether the partner tells what it booked, so that what only one of them booked is settled later."""

    @property
    def ports(self) -> tuple[Port, ...]:
        """The inputs that tell of the partner's bonds."""
        booked = (Port(f"{self.input}_booked", "J"),) if self.settles else ()
        return (*(port for each in self.beyond for port in each.ports), *booked)


@dataclass(frozen=True)
class Balanced(ModelWrapper):
    """A model that keeps the power agreed on its bonds (Moshagen 2021, section 2; theory, section 5).

    The agreed power is the product of the two signals as they are extrapolated. Both sides know both: one
    they are given, the other is what they told. They agree where they step together (Jacobi). `power`:
    "product", or "linear", its first two powers of time (the paper's, with twice the phase error).

    `form="inversion"`: the input becomes u + d (P - p) / (d^2 + eps^2), with u as extrapolated, p(u) the
    power that u would make, d = dp/du, and `eps` a part of the side's `scale`. It holds at every instant
    inside `Ode` and `StateSpace` (an exact one is then integrated to 1e-9). Any other simulator makes
    `substeps` steps in place of one, each with the input held at its value in the middle.

    `form="energy"`: for `Ode` and `StateSpace` that declare their `energy`: a step under the inputs as
    extrapolated, after which the state is moved along the gradient of its energy to where the agreed work
    leads.

    `linked` adds the ports that a bond connects: `<output>_told`, from that output with the extrapolation
    of the partner's input, so that what was told is known at all levels and in iterations; for the energy
    form an output `share`, the energy that it stores, and `<input>_share`, from the partner's (below zero:
    not told, and not limited), and the ports of what is `beyond`. With them no simulator gives more than it
    has. An output `<input>_work` tells the energy that came in through each bond; where a side
    `settles`, `<input>_booked` comes from the partner's. Without `linked`, what was told is the output and
    its slope as last read, else through the last two outputs; inputs then count to their slopes, and a level
    with `Polynomial(1)` must start cold.
    """

    model: Model
    bonds: tuple[BondSide, ...]
    form: Balance = "inversion"
    eps: float = 0.05
    substeps: int = 8
    power: Agreed = "product"
    linked: bool = False
    whole: float | None = None
    """The step in s for which energies are agreed, where the model makes shorter ones."""

    def __post_init__(self) -> None:
        check_wrapped(self.model, "Balanced", "balanced")
        set_fields(self, bonds=_check_sides(self.bonds))
        raise_faults([*self._option_faults(), *self._port_faults(), *self._model_faults()])

    @cached_property
    def added_ports(self) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        """The inputs and the outputs that only its bonds want."""
        if not self.linked:
            return (), ()
        units = {port.name: port.unit for port in self.model.outputs}
        told = {side.output: units[side.output] for side in self.bonds}
        inputs = [Port(f"{name}_told", unit) for name, unit in told.items()]
        outputs = [Port(f"{side.input}_work", "J") for side in self.bonds]
        if self._has_shares:
            # below zero: not told
            inputs += [Port(f"{side.input}_share", "J", start=-1.0, held=True) for side in self.bonds]
            inputs += [port for side in self.bonds for port in side.ports]
            outputs = [Port("share", "J", held=True), *outputs]
        return tuple(inputs), tuple(outputs)

    @cached_property
    def inputs(self) -> tuple[Port, ...]:
        """Those of the model inside, and where linked what was told, the partners' shares and other bonds."""
        return (*self.model.inputs, *self.added_ports[0])

    @cached_property
    def outputs(self) -> tuple[Port, ...]:
        """Those of the model inside, and where linked its share and what each bond did to it."""
        return (*self.model.outputs, *self.added_ports[1])

    @property
    def bookkeeping(self) -> frozenset[str]:
        """The names of the ports that only its bonds want."""
        return frozenset(port.name for ports in self.added_ports for port in ports)

    @property
    def _has_shares(self) -> bool:
        return self.linked and self.form == "energy"

    @property
    def _is_integrated(self) -> bool:
        """Whether hocket integrates the model itself."""
        return isinstance(self.model, (Ode, StateSpace))

    @property
    def step(self) -> Fraction | None:
        """The micro step of the model inside."""
        return step_of(self.model)

    @property
    def energy(self) -> Any:
        """The stored energy that the model inside declares, if it does."""
        return declared_energy(self.model)

    @property
    def capabilities(self) -> Capabilities:
        # micro steps only where they show the law
        micro = self.model.capabilities.micro and self._is_integrated and self.form == "inversion"
        return replace(self.model.capabilities, input_degree=None, micro=micro, resumes=False)

    def open(self) -> Simulator:
        if self.form == "energy":
            return Projected(self)
        return InversionBalance(self) if self._is_integrated else SubsteppedBalance(self)

    @cached_property
    def seats(self) -> tuple[Seat, ...]:
        """The sides by the numbers of their ports."""
        outputs = [port.name for port in self.model.outputs]
        inputs = [port.name for port in self.inputs]
        return tuple(
            Seat(
                outputs.index(side.output),
                inputs.index(side.input),
                float(side.sign),
                self.eps if side.eps is None else side.eps,
                side.scale,
                inputs.index(f"{side.output}_told") if self.linked else None,
                inputs.index(f"{side.input}_share") if self._has_shares else None,
                side.input in self.model.outputs[outputs.index(side.output)].feedthrough,
                f"{side.output}` and `{side.input}",
                self._views(side, inputs) if self._has_shares else (),
                inputs.index(f"{side.input}_booked") if self._has_shares and side.settles else None,
            )
            for side in self.bonds
        )

    @staticmethod
    def _views(side: BondSide, inputs: list[str]) -> tuple[PartnerView, ...]:
        """Return the other bonds of a partner by the numbers of inputs."""
        found = []
        for each in side.beyond:
            output, entry, share = (inputs.index(port.name) for port in each.ports)
            found.append(PartnerView(output, entry, share, float(each.sign), each.bonds))
        return tuple(found)

    def _option_faults(self) -> Iterator[Fault]:
        yield from choice_faults("form", self.form, ("inversion", "energy"), "Balanced")
        yield from choice_faults("power", self.power, ("product", "linear"), "Balanced")
        if not is_positive(self.eps):
            yield Fault(f"`eps` is {self.eps!r}", "Balanced", "a number above zero, such as 0.05")
        if not is_whole(self.substeps, 1):
            yield Fault(f"`substeps` is {self.substeps!r}", "Balanced", "a whole number above zero")
        for side in self.bonds:
            if not is_number(side.sign) or side.sign == 0:
                what = f"the sign of `{side.output}` and `{side.input}` is {side.sign!r}"
                yield Fault(what, "Balanced", "+1 or -1")
            for role, number in (("scale", side.scale), ("eps", side.eps)):
                if number is not None and not is_positive(number):
                    what = f"the {role} of `{side.output}` and `{side.input}` is {number!r}"
                    yield Fault(what, "Balanced", "a number above zero")

    def _port_faults(self) -> Iterator[Fault]:
        roles = {"output": self.model.outputs, "input": self.model.inputs}
        known = {role: {port.name: port for port in ports} for role, ports in roles.items()}
        for role, ports in known.items():
            for name in (getattr(side, role) for side in self.bonds):
                if name not in ports:
                    yield Fault(f"there is no {role} `{name}`", "Balanced", "", suggest_nearest(name, ports))
                elif ports[name].discrete:
                    what = f"the {role} `{name}` jumps from value to value: it carries no power"
                    yield Fault(what, "Balanced", "a real that is not held")
        given = [side.input for side in self.bonds]
        for name in sorted({name for name in given if given.count(name) > 1}):
            yield Fault(f"the input `{name}` is in two bonds", "Balanced", "one bond per input")
        if all(side.output in known["output"] for side in self.bonds):
            for role, added in zip(("input", "output"), self.added_ports, strict=True):
                for name in sorted(known[role].keys() & {port.name for port in added}):
                    yield Fault(f"the {role} `{name}` has a name that bonds use", "Balanced", "another name")

    def _model_faults(self) -> Iterator[Fault]:
        model: Any = self.model
        if period_of(model) is not None:
            what = "a model with a period of its own cannot be balanced: its partner steps at other times"
            yield Fault(what, "Balanced", "a model in the step of its level")
        if self._is_integrated and not model.x0:
            yield Fault("a model without a state stores nothing to balance", "Balanced", "a model with `x0`")
        kind = type(model).__name__
        if self.form == "energy" and not self._is_integrated:
            own = f"the state of this `{kind}` is not hocket's to move"
            what = f"balance by energy moves the state, and {own}"
            expected = "a `StateSpace` or an `Ode` with `energy`: stored energy that is told is not enough"
            yield Fault(what, "Balanced", expected, '`balance = "inversion"`, which needs neither')
        elif self.form == "energy" and self.energy is None:
            what = f"balance by energy needs the stored energy of this `{kind}`, which declares none"
            expected = "`energy`, in joules: a matrix Q with W = x'Qx/2 of a `StateSpace`, W(x) of an `Ode`"
            hint = 'declare `energy`; or `balance = "inversion"`, which needs none'
            yield Fault(what, "Balanced", expected, hint)
        elif self.form == "energy" and isinstance(model, StateSpace):
            sides = [(side.output, side.input, float(side.sign)) for side in self.bonds]
            yield from linear_faults(model, sides)
        divided = self.form == "inversion" and self.substeps > 1 and not self._is_integrated
        if divided and not model.capabilities.variable_step:
            what = f"the step of this `{kind}` cannot be divided by {self.substeps}, as inversion wants it"
            expected = "a model whose steps may be of any length, or one that hocket integrates itself"
            hint = "the extrapolation `balance-correction` without balance: `substeps=1` would do no better"
            yield Fault(what, "Balanced", expected, hint)


def _check_sides(bonds: Any) -> tuple[BondSide, ...]:
    listed: Sequence[Any] = [bonds] if isinstance(bonds, BondSide) else list(bonds)
    if not listed:
        raise ScenarioError("there are no bonds", "Balanced", 'such as `[BondSide("f", "v", -1)]`')
    for side in listed:
        if not isinstance(side, BondSide):
            such_as = 'such as `BondSide("f", "v", -1)`'
            raise ScenarioError(f"`{side!r:.60}` is not a bond", "Balanced", such_as)
    return tuple(listed)
