"""Linear models of black boxes, from nothing but start, step and output.

In:  a model, where it stands (time, inputs, perhaps a live simulator), the step of its level
Out: a stand-in with the fit in one number, or the reason why there is none

Each input is pushed for one step, a little and ten times as much, up and down. What differs from the
undisturbed run are the Markov parameters of the model, if the four agree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from hocket.analysis.linear_models import IdentifiedModel, PeriodicModel
from hocket.analysis.pulse_responses import (
    ROUNDING,
    SILENT,
    BlackBoxBench,
    LiftedBench,
    OperatingPoint,
    PulseResponses,
    RefusedError,
    choose_responses,
    informative_steps,
    relative_error,
    responses_agree,
)
from hocket.errors import HocketError
from hocket.model.clock import format_duration
from hocket.model.protocols import Array, Model, described_variables
from hocket.simulators.fmu.recipe import Fmu

GAP = 2.0
"""A singular value so many times the next one may be the last that tells of a state; a test decides."""
PHASES = 20
"""Steps after which pulse responses may repeat."""
MOST = 24
"""States of a realisation at the most: with more, 64 samples fit themselves and tell nothing."""


@dataclass(frozen=True, eq=False)
class HankelSpectrum:
    """The Hankel matrices of Markov parameters M_k = C F^k G, taken apart.

    Juang and Pappa (1985), equations 12 to 24. Rows and columns are scaled to one beforehand, so that
    units do not decide about the order.
    """

    U: Array
    singular: Array
    Vt: Array
    moved: Array
    """The Hankel matrix that begins with M_1."""
    rows: Array
    columns: Array

    @staticmethod
    def of(markov: Array) -> HankelSpectrum:
        """Return the spectrum of parameters of shape (count, outputs, inputs)."""
        count, p, q = markov.shape
        rows = _nonzero_scale(np.abs(markov).max(axis=(0, 2), initial=0.0))
        columns = _nonzero_scale(np.abs(markov / rows[:, None]).max(axis=(0, 1), initial=0.0))
        scaled = markov / rows[:, None] / columns
        width = min(count - count // 2, 2 * MOST)
        height = count - width
        now, later = (
            np.array([[scaled[i + j + ahead] for j in range(width)] for i in range(height)])
            .transpose(0, 2, 1, 3)
            .reshape(height * p, width * q)
            for ahead in (0, 1)
        )
        U, singular, Vt = np.linalg.svd(now, full_matrices=False)
        return HankelSpectrum(U, singular, Vt, later, rows, columns)

    def orders(self, noise: float) -> list[int]:
        """Return the orders worth a try: where singular values fall by a gap, or sink in the noise."""
        values = self.singular
        if not len(values) or values[0] == 0.0:
            return [0]
        floor = max(noise, 4 * np.finfo(float).eps) * values[0]
        top = min(int((values > floor).sum()), MOST)
        gaps = [n for n in range(1, top) if values[n - 1] > GAP * values[n]]
        return [*gaps, top]

    def realisation(self, n: int) -> tuple[Array, Array, Array]:
        """Return F, G, C of this order."""
        p, q = len(self.rows), len(self.columns)
        root = np.sqrt(self.singular[:n])
        U, Vt = self.U[:, :n], self.Vt[:n]
        F = (U.T @ self.moved @ Vt.T) / root[:, None] / root
        G = (root[:, None] * Vt)[:, :q] * self.columns
        C = (U * root)[:p] * self.rows[:, None]
        return F, G, C


def _nonzero_scale(sizes: Array) -> Array:
    return np.where(sizes > 0.0, sizes, 1.0)


def simulate_pushes(F: Array, G: Array, C: Array, D: Array, pushes: Sequence[Array]) -> Array:
    """Return the rows y over the steps under pushes of shape (powers, inputs), from rest.

    Each row is under the push of the coming step; the last one under none.
    """
    x = np.zeros(len(F))
    rows = []
    for push in pushes:
        rows.append(C @ x + sum(d @ c for d, c in zip(D, push, strict=True)))
        x = F @ x
        for Gamma, c in zip(G, push, strict=True):
            x = x + Gamma @ c
    return np.array([*rows, C @ x])


STEPS = 64
"""Steps after a pulse: enough for 24 states, and cheap."""
ALONE = 512
"""Steps of a model without inputs: all there is to see of it."""
LATER = 3
"""Steps after which a multistep method has its past."""
PUSHES = 1e-3, 1e-2
"""The size of pulses, in units of the input: what is linear is so over a decade."""
LESS = 1.0, 0.01
"""The same pushes again, smaller, for what is too curved."""
LINEAR = 0.02
"""How far the four responses may differ: a smooth model is off by about the size of the push, 1 %, a jump
by as much as it answers at all."""
POOR = 0.02
"""A fit above this is refused: rho is about as wrong as the fit, so that its distance from 1 would mean
nothing for most couplings."""
GROWTH = 1e4
"""Where answers have grown so far, the rest of them tells of one mode only."""
MILD = 30.0
"""The same for answers that do not scale: they may have left what is linear only in the end."""
RUNAWAY = 1e8
"""The same for the undisturbed run: the rest of it is rounding."""
STILL = 1e-6
"""Of a jump: what moves less than this before it stands still."""
SLOW = 1e-9
"""Modes nearer to standing still than this are constants in the undisturbed run."""

Pairs: TypeAlias = list[tuple[int, int]]
"""What is pushed: power of time, number of the input."""
Test: TypeAlias = tuple[list[Array], Array]
"""Pushes, one for each step, and the answers to them."""


@dataclass(frozen=True)
class Identification:
    """A stand-in and its fit, or why there is none."""

    stand_in: IdentifiedModel | PeriodicModel | None
    fit: float
    """The relative error of the predicted response to a test signal, of the output where it is largest."""
    refused: str = ""
    notes: tuple[str, ...] = ()
    again: bool = False
    """Whether it may be linear a few steps later."""
    jumps: bool = False
    """Whether it stands still and jumps: it may be linear over several steps."""
    mute: bool = False
    """Whether its pulse responses are zero: it may switch later."""


class NonlinearResponseError(RefusedError):
    """It answers in proportion, but not as a linear model would."""


class JumpError(RefusedError):
    """It stands still, then jumps: at an event, or where a fixed step inside ends."""


def identify(place: OperatingPoint) -> Identification:
    """Return a linear model of a black box, for the step of its level.

    Some begin otherwise than they go on (a multistep method without a past): they are tried later again.
    """
    handles_them = bool(described_variables(place.model))  # an FMU does, within its steps
    if place.model.capabilities.events and not handles_them:
        why = "it announces events: what happens at instants is not seen in its steps"
        return Identification(None, math.nan, why)
    found = _try_identify(place, 0)
    if found.again:
        later = _try_identify(place, LATER)
        if later.stand_in is not None:
            note = f"identified after its first {LATER} steps, which differ from the others"
            return replace(later, notes=(*later.notes, note))
    if found.again or found.jumps:
        periodic = _try_identify(place, 0, by_period=True)
        if periodic.stand_in is not None or _internal_step(place.model):
            return periodic
    return found


def identify_bench(place: OperatingPoint, bench: BlackBoxBench) -> Identification:
    """Return the linear map of one step of a bench, from pulse responses."""
    try:
        return _PulseExperiment(place, bench).result()
    except RefusedError as refusal:
        return Identification(None, math.nan, str(refusal))


def _try_identify(place: OperatingPoint, later: int, by_period: bool = False) -> Identification:
    bench: BlackBoxBench | None = None
    try:
        bench = BlackBoxBench(place, later)
        return _identify_period(place, bench) if by_period else _PulseExperiment(place, bench).result()
    except RefusedError as refusal:
        again, jumps = isinstance(refusal, NonlinearResponseError), isinstance(refusal, JumpError)
        return Identification(None, math.nan, str(refusal), again=again, jumps=jumps)
    except Exception as error:  # somebody else's code
        why = error.faults[0].what if isinstance(error, HocketError) else f"{type(error).__name__}: {error}"
        return Identification(None, math.nan, f"it failed when it was tried: {why}")
    finally:
        if bench is not None:
            bench.restore_simulator()


def _identify_period(place: OperatingPoint, bench: BlackBoxBench) -> Identification:
    """Return a linear model over the period after which responses repeat: fixed steps inside do that."""
    declared = _internal_step(place.model)
    inside = f"fixed internal steps of {declared:g} s" if declared else "fixed internal steps"
    phases = 0 if place.sloped else _find_period(place, bench)
    if not phases:
        if declared:
            what = f"it makes {inside}, and steps of {format_duration(place.h)} do not meet them again soon"
            raise RefusedError(f"{what}: macro steps that are multiples of them can be judged")
        raise RefusedError("its pulse responses do not repeat")
    lifted = replace(place, u=np.tile(place.u, phases))
    found = _PulseExperiment(lifted, LiftedBench(bench, phases)).result()
    span = format_duration(phases * place.h)
    when = f"over {phases} steps ({span}), after which its responses repeat"
    note = f"identified {when}: it makes {inside}"
    return replace(found, notes=(*found.notes, note))


def _internal_step(model: Model) -> float | None:
    return model.interface_used.fixed_step if isinstance(model, Fmu) and not model.exchange else None


def _find_period(place: OperatingPoint, bench: BlackBoxBench) -> int:
    """Return after how many steps a pulse has the same response again, more than one; 0: not soon."""
    chance = np.random.default_rng(7)
    push, count = bench.still.copy(), 2 * MOST
    scales = _input_scales(place.model, place.u)
    for number, port in enumerate(place.model.inputs):
        if port.type == "real":
            push[0, number] = PUSHES[1] * scales[number] * chance.uniform(0.5, 1.0)
    free = bench.run([bench.still] * (count + 2 * PHASES))

    def response(at: int) -> Array:
        pushes = [bench.still] * (count + 2 * PHASES)
        pushes[at] = push
        change: Array = (bench.run(pushes) - free)[at + 1 : at + count]
        return change

    found = np.array([response(at) for at in range(2 * PHASES)])
    largest = np.abs(found).max(axis=(0, 1))
    found = found[:, :, largest > SILENT * np.abs(free).max(axis=0)]
    bound = 1e-6 * np.abs(found).max(axis=(0, 1), initial=0.0)
    for phases in range(2, PHASES + 1 if found.size else 0):
        if (np.abs(found[phases:] - found[:-phases]) <= bound).all():
            return phases
    return 0


@dataclass
class _Realisation:
    """A realisation that is tried."""

    F: Array
    G: Array
    C: Array
    D: Array
    w: Array
    """How the state changes in the first step of the undisturbed run."""
    singular: Array


class _PulseExperiment:
    """One black box: runs, what they tell, and the model made of it."""

    def __init__(self, place: OperatingPoint, bench: BlackBoxBench | LiftedBench):
        self.place, self.model, self.bench = place, place.model, bench
        self.inputs, self.outputs = self.model.inputs * bench.phases, self.model.outputs * bench.phases
        inputs = list(enumerate(self.inputs))
        reals = [(j, port.held) for j, port in inputs if port.type == "real"]
        # a real that changes at events is held over a step
        self.pairs: Pairs = [(k, j) for k in range(place.powers) for j, held in reals if k == 0 or not held]
        left_out = [f"`{port.name}`" for _, port in inputs if port.type != "real"]
        self.notes = (
            [f"inputs that are not real, no pulse response: {', '.join(left_out)}"] if left_out else []
        )
        self.mute = False
        self.units = np.tile(_input_scales(self.model, place.u[: len(self.model.inputs)]), bench.phases)
        self.steps = max(STEPS // bench.phases, STEPS // 4) if self.pairs else ALONE // 2
        free = self._check_real_outputs(self.bench.run([self.bench.still] * (2 * self.steps)))
        self.steps, longest = informative_steps(free - free[0], self.steps, RUNAWAY), len(free) - 1
        self.free = free if 2 * self.steps == longest else free[: self.steps + 1]
        """Under constant inputs: twice as long as what is learnt from, unless it grows too far."""
        self.scale = np.abs(self.free).max(axis=0)
        """Per row: the size of its values."""

    def result(self) -> Identification:
        """Return the model with the best fit that the singular values allow."""
        pulses = self._measure_responses() if self.pairs else None
        self._check_jumps(pulses)
        moving = self._free_motion(pulses)
        best, fit = self._best_realisation(pulses, moving if moving.any() else None)
        if fit > POOR and pulses and moving.any():
            alone, without = self._best_realisation(pulses, None)
            if without <= POOR:
                best, fit = alone, without
                self.notes.append("its free motion is not linear and is left out of the identified model")
        if fit > POOR:
            self._refuse_fit(fit, bool(pulses))
        return Identification(self._build_stand_in(best), fit, notes=tuple(self.notes), mute=self.mute)

    def _free_motion(self, pulses: PulseResponses | None) -> Array:
        """Return the changes from step to step under constant inputs; nothing where it is rounding."""
        moving = np.diff(self.free, axis=0)
        still = np.abs(moving).max(axis=0) <= ROUNDING * self.scale
        if pulses is not None:
            answers = np.abs(pulses.markov).max(axis=(0, 1)) * pulses.size
            still |= np.abs(moving).max(axis=0) <= SILENT * answers
        moving[:, still] = 0.0
        return moving

    def _check_jumps(self, pulses: PulseResponses | None) -> None:
        """Refuse outputs that stand still, then jump, without pulse response; note what is mute.

        A delay would look the same, but responds.
        """
        count = len(self.outputs)
        mute = np.ones(count, dtype=bool)
        if pulses is not None:
            mute = np.abs(pulses.markov).max(axis=(0, 1))[:count] == 0.0
        change = np.abs(np.diff(self.free[:, :count], axis=0))
        for number in np.flatnonzero(mute):
            at = int(change[:, number].argmax())
            if at >= LATER and change[:at, number].max() < STILL * change[at, number]:
                when = float(self.bench.t + (at + 1) * self.place.h)
                raise JumpError(f"`{self.outputs[number].name}` jumps by itself, at {when:.6g} s")
        if pulses is not None and count and mute.all():
            sizes = " and ".join(f"{size:g}" for size in PUSHES)
            self.mute = True
            self.notes.append(f"no response to pulses of {sizes} at its inputs")

    def _refuse_fit(self, fit: float, pushed: bool) -> None:
        steps = self.steps if pushed else len(self.free) - 1
        what = "its pulse responses are not those" if pushed else "its free motion is not that"
        residual = f"is {100.0 * fit:.0f} %" if fit < 1.0 else "exceeds 100 %"
        span = f"over {float(steps * self.place.h):.3g} s"
        why = f"{what} of a linear model: the fit residual {residual} {span}"
        raise NonlinearResponseError(why) if pushed else RefusedError(why)

    def _check_real_outputs(self, rows: Array) -> Array:
        """Refuse numbers that are not reals and jump."""
        for number, port in enumerate(self.outputs):
            if port.type != "real" and np.any(rows[:, number] != rows[0, number]):
                raise RefusedError(f"`{port.name}` is not a real and jumps, which no linear model does")
        return rows

    def _push(self, size: float, power: int, index: int) -> Array:
        push = self.bench.still.copy()
        push[power, index] = size * self.units[index] / float(self.place.h) ** power
        return push

    def _measure_responses(self) -> PulseResponses:
        """Return the answers to one push of each input; refuse them if they do not scale.

        What is only too curved for its inputs is tried again with less, and must answer about as before.
        """
        refusal, before = "", None
        for part in LESS:
            sizes = PUSHES[0] * part, PUSHES[1] * part
            whole = self._pulse_responses(sizes)
            same = before is None or responses_agree(whole.mean(axis=(0, 1)), before)
            for growth in (GROWTH, MILD):
                steps = informative_steps(np.abs(whole).max(axis=(0, 1, 2)), self.steps, growth)
                answers = whole[:, :, :, : steps + 1]
                top = np.abs(answers).max(axis=(0, 1, 2, 3))
                top = np.where(top > 0.0, top, 1.0)
                spread = (np.ptp(answers, axis=(0, 1)).max(axis=1) / top).T
                if same and spread.max(initial=0.0) <= LINEAR:
                    self.steps = steps
                    return choose_responses(answers, top, sizes)
                refusal = refusal or self._nonlinearity_reason(spread, sizes)
            before = whole[1].mean(axis=0)
        raise RefusedError(refusal)

    def _pulse_responses(self, sizes: tuple[float, float]) -> Array:
        """Return the answers to pushes of two sizes, up and down, per unit of push."""
        rest = [self.bench.still] * (self.steps - 1)
        answers = np.zeros((2, 2, len(self.pairs), self.steps + 1, self.free.shape[1]))
        for number, (power, index) in enumerate(self.pairs):
            for which, size in enumerate(sizes):
                for side, sign in enumerate((1.0, -1.0)):
                    rows = self.bench.run([sign * self._push(size, power, index), *rest])
                    change = self._check_real_outputs(rows) - self.free[: len(rows)]
                    change[:, np.abs(change).max(axis=0) <= ROUNDING * self.scale] = 0.0
                    answers[which, side, number] = sign * change / size
        if not self.model.capabilities.reevaluates:
            for number, (_, index) in enumerate(self.pairs):
                # what is shown before a step belongs to the step before
                answers[:, :, number, 0, : self.width * (1 + index // len(self.model.inputs))] = 0.0
        return answers

    @property
    def width(self) -> int:
        """The numbers of a row that belong to one step."""
        return int(self.free.shape[1]) // self.bench.phases

    def _nonlinearity_reason(self, spread: Array, sizes: tuple[float, float]) -> str:
        row, number = divmod(int(spread.argmax()), len(self.pairs))
        index = self.pairs[number][1]
        output, entry = self.outputs[row % len(self.outputs)], self.inputs[index]
        pushes = " and ".join(f"{size * self.units[index]:g}" for size in sizes)
        response = f"the pulse response of `{output.name}` to `{entry.name}` is not linear"
        return f"{response}: for pulses of {pushes}, up and down, it differs by {100.0 * spread.max():.0f} %"

    def _test_response(self, size: float, seed: int) -> Test:
        """Return a signal that has not been used before, and the answers to it."""
        chance = np.random.default_rng(seed)
        signal = []
        for _ in range(self.steps):
            pushes = (chance.uniform(-1.0, 1.0) * self._push(size, *pair) for pair in self.pairs)
            signal.append(sum(pushes, self.bench.still))
        rows = self._check_real_outputs(self.bench.run(signal)) - self.free[: self.steps + 1]
        if not self.model.capabilities.reevaluates:
            rows[0, : self.width] = 0.0
        return signal, rows

    def _best_realisation(
        self, pulses: PulseResponses | None, moving: Array | None
    ) -> tuple[_Realisation, float]:
        """Return the realisation of the lowest order that predicts about as well as any, and its fit.

        The order is chosen by one signal, the fit is told by another; so with the two parts of a free run.
        """
        columns = [] if pulses is None else list(pulses.markov[:, 1:])
        if moving is not None:
            columns.append(moving[: self.steps])
        spectrum = HankelSpectrum.of(np.stack(columns, axis=2)) if columns else None
        noise = ROUNDING if pulses is None else pulses.noise
        orders = dict.fromkeys(spectrum.orders(noise)) if spectrum else [0]
        tried = [self._realisation_of_order(spectrum, n, pulses, moving) for n in orders]
        first, second = [self._test_response(pulses.size, seed) if pulses else None for seed in (1985, 2026)]
        fits = [self._fit_residual(candidate, first, 3 * self.steps // 2, moving) for candidate in tried]
        good = max(3.0 * min(fits), 3.0 * noise)
        best = next(candidate for candidate, fit in zip(tried, fits, strict=True) if fit <= good)
        return best, self._fit_residual(best, second, 2 * self.steps, moving)

    def _realisation_of_order(
        self, spectrum: HankelSpectrum | None, n: int, pulses: PulseResponses | None, moving: Array | None
    ) -> _Realisation:
        count, powers, size = self.free.shape[1], self.place.powers, len(self.place.u)
        F, C, singular = np.zeros((n, n)), np.zeros((count, n)), np.zeros(0)
        G, D = np.zeros((powers, n, size)), np.zeros((powers, count, size))
        columns = np.zeros((n, len(self.pairs)))
        if spectrum is not None:
            (F, columns, C), singular = spectrum.realisation(n), spectrum.singular
        for number, (power, index) in enumerate(self.pairs if pulses else ()):
            per_push = self.units[index] / float(self.place.h) ** power
            G[power, :, index] = columns[:, number] / per_push
            D[power, :, index] = pulses.markov[number, 0] / per_push  # type: ignore[union-attr]
        return _Realisation(F, G, C, D, np.zeros(n) if moving is None else columns[:, -1], singular)

    def _fit_residual(
        self, tried: _Realisation, test: Test | None, length: int, moving: Array | None
    ) -> float:
        """Return the relative error of predicted answers, and of the predicted motion if there is one."""
        fit = 0.0
        if test is not None:
            predicted = simulate_pushes(tried.F, tried.G, tried.C, tried.D, test[0])
            fit = relative_error(predicted, test[1], self.scale)
        if moving is not None:
            moved = self.free[: length + 1] - self.free[0]
            fit = max(fit, relative_error(_predicted_motion(tried, len(moved)), moved, self.scale))
        return fit

    def _build_stand_in(self, best: _Realisation) -> IdentifiedModel | PeriodicModel:
        """Return the model with the state and the constants that repeat the undisturbed run.

        w = (F - I) x0 + G u + rate and y0 = C x0 + D u + shift: what no x0 explains is constant.
        """
        u, still = self.place.u, np.eye(len(best.F))
        wanted = best.w - best.G[0] @ u
        x0 = _least_squares(best.F - still, wanted, SLOW)
        rate = wanted - (best.F - still) @ x0
        shift = self.free[0] - best.C @ x0 - best.D[0] @ u
        if self.bench.later:
            x0 = self._initial_state(best, best.G[0] @ u + rate, best.D[0] @ u + shift)
        h, matrices = self.place.h, (best.F, best.G, best.C, best.D)
        if self.bench.phases > 1:
            return self._periodic_stand_in(best, x0, rate, shift)
        return IdentifiedModel(self.model, h, *matrices, x0, rate, shift, best.singular)

    def _periodic_stand_in(self, best: _Realisation, x0: Array, rate: Array, shift: Array) -> PeriodicModel:
        phases, n, powers = self.bench.phases, len(best.F), len(best.G)
        m, p = len(self.model.inputs), self.width
        G = best.G.reshape(powers, n, phases, m).transpose(2, 0, 1, 3)
        D = best.D.reshape(powers, phases, p, phases, m).transpose(1, 3, 0, 2, 4)
        C, shift = best.C.reshape(phases, p, n), shift.reshape(phases, p)
        return PeriodicModel(self.model, self.place.h, best.F, G, C, D, x0, rate, shift)

    def _initial_state(self, best: _Realisation, pushed: Array, shown: Array) -> Array:
        """Return the state from which the model does as the original did from its very start."""
        self.bench.restore_simulator()
        first = BlackBoxBench(self.place)
        measured = first.run([first.still] * (self.bench.later + 2 * len(best.F)))
        power, forced = np.eye(len(best.F)), np.zeros(len(best.F))
        left, right, size = [], [], np.where(self.scale > 0.0, self.scale, 1.0)
        for y in measured:
            left.append(best.C @ power / size[:, np.newaxis])
            right.append((y - shown - best.C @ forced) / size)
            power, forced = best.F @ power, best.F @ forced + pushed
        return _least_squares(np.concatenate(left), np.concatenate(right))


def _least_squares(matrix: Array, right: Array, least: float = 0.0) -> Array:
    """Return the smallest solution; singular values below `least`, or far below the largest, are zero."""
    if not matrix.size:
        return np.zeros(matrix.shape[1])
    largest = float(np.linalg.norm(matrix, 2))
    if largest <= least:
        return np.zeros(matrix.shape[1])
    return np.asarray(np.linalg.lstsq(matrix, right, rcond=max(SLOW, least / largest))[0])


def _predicted_motion(tried: _Realisation, count: int) -> Array:
    """Return the sums of C F^i w, i < k, for each k."""
    rows, w = [np.zeros(len(tried.C))], tried.w
    with np.errstate(all="ignore"):  # a poor model may run away
        for _ in range(count - 1):
            rows.append(rows[-1] + tried.C @ w)
            w = tried.F @ w
    return np.array(rows)


def _input_scales(model: Model, u: Array) -> Array:
    """Return the size of each input: its value, its nominal value, or one."""
    known = described_variables(model)
    nominal = [(port.name in known and known[port.name].nominal) or 1.0 for port in model.inputs]
    return np.maximum(np.abs(u), np.abs(nominal)) if len(u) else np.zeros(0)
