"""Several uncertain simulators: bounds of the structured singular value mu (Doyle, 1982).

In:  M, which maps the disturbances of all blocks to what they see
Out: how large a change of each block must be before I - M Delta becomes singular, from both sides

Delta is block diagonal, Delta = diag(I (x) Delta_i): a simulator that steps several times per period changes
in the same way each time. 1 / mu is the smallest norm of such a Delta. From above mu is bounded by scaling
(D and D^-1 around M, which commute with every Delta), from below by a Delta that is found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from hocket.analysis.disturbance_transfer import Complex, Transfer, UncertainBlock
from hocket.analysis.exact_solution import block_diagonal
from hocket.model.protocols import Array

POWERS = (2, 8, 32)
"""The norms, more and more like the largest singular value, that scaling makes small one after the other."""
STEPS = 60


@dataclass(frozen=True, eq=False)
class Scaling:
    """A matrix per block, as large as the block steps often; it mixes its steps with each other."""

    blocks: tuple[UncertainBlock, ...]
    parts: tuple[Complex, ...]

    def scale_matrix(self, M: Array | Complex) -> Complex:
        """Return M between the scaling and its inverse."""
        return _scale_both_sides(self.parts, M, self._inverses(), self.blocks)

    def scale_transfer(self, transfer: Transfer) -> Transfer:
        """Return the same for all z."""
        B = _scale_columns(transfer.B, self._inverses(), self.blocks)
        C = _scale_rows(self.parts, transfer.C, self.blocks)
        return Transfer(transfer.Phi, B, C, self.scale_matrix(transfer.D))

    def _inverses(self) -> list[Complex]:
        return [np.asarray(np.linalg.inv(part), dtype=complex) for part in self.parts]


def identity_scaling(blocks: Sequence[UncertainBlock]) -> Scaling:
    """Return the scaling that changes nothing."""
    return Scaling(tuple(blocks), tuple(np.eye(block.times, dtype=complex) for block in blocks))


def _scale_rows(parts: Sequence[Complex], M: Array | Complex, blocks: Sequence[UncertainBlock]) -> Complex:
    """Return (part (x) I) M, block by block: what is seen is scaled."""
    found = np.empty(M.shape, dtype=complex)
    for part, (block, rows, _) in zip(parts, block_slices(blocks), strict=True):
        found[rows] = (part @ M[rows].reshape(block.times, -1)).reshape(M[rows].shape)
    return found


def _scale_columns(M: Array | Complex, parts: Sequence[Complex], blocks: Sequence[UncertainBlock]) -> Complex:
    """Return M (part (x) I), block by block: disturbances are scaled."""
    found = np.empty(M.shape, dtype=complex)
    for part, (block, _, columns) in zip(parts, block_slices(blocks), strict=True):
        own = M[:, columns].reshape(len(M), block.times, block.moves)
        found[:, columns] = np.einsum("rkm,kl->rlm", own, part).reshape(len(M), -1)
    return found


def _scale_both_sides(
    left: Sequence[Complex], M: Array | Complex, right: Sequence[Complex], blocks: Sequence[UncertainBlock]
) -> Complex:
    return _scale_columns(_scale_rows(left, M, blocks), right, blocks)


def mu_upper_bound(
    M: Complex, start: Scaling, powers: Sequence[int] = POWERS, enough: float = 0.0
) -> tuple[float, Scaling]:
    """Return an upper bound of mu and the scaling that shows it; a bound that is enough ends the search.

    Descent along the gradient of Schatten norms, which are smooth where singular values meet.
    """
    around, parts, blocks = start.scale_matrix(M), list(start.parts), start.blocks
    best, scaling = _spectral_norm(around), start
    for power in powers:
        if best <= enough:  # or M is zero
            break
        around, parts = _descend_gradient(around, parts, blocks, power)
        bound = _spectral_norm(around)
        if bound < best:
            best, scaling = bound, Scaling(blocks, tuple(parts))
    return best, scaling


def _descend_gradient(
    around: Complex, parts: list[Complex], blocks: Sequence[UncertainBlock], power: int
) -> tuple[Complex, list[Complex]]:
    eta = 1.0
    value, gradient = _schatten_gradient(around, blocks, power)
    for _ in range(STEPS):
        factors, inverses = _scaling_factors(gradient, eta)
        trial = _scale_both_sides(factors, around, inverses, blocks)
        found, slope = _schatten_gradient(trial, blocks, power)
        if found >= value:
            eta *= 0.5
            if eta < 1e-3:
                break
            continue
        settled = value - found < 1e-6
        parts = [factor @ part for factor, part in zip(factors, parts, strict=True)]
        around, value, gradient, eta = trial, found, slope, 1.6 * eta
        if settled:
            break
    return around, parts


def _spectral_norm(M: Complex) -> float:
    return float(np.linalg.norm(M, 2))


def _schatten_gradient(
    M: Complex, blocks: Sequence[UncertainBlock], power: int
) -> tuple[float, list[Complex]]:
    """Return the logarithm of a Schatten norm and its gradient for factors exp(E) before the scaling."""
    U, s, Vh = np.linalg.svd(M, full_matrices=False)
    relative = (s / s[0]) ** (2 * power)
    weights = relative / relative.sum()
    gradient = []
    for block, rows, columns in block_slices(blocks):
        u = (U[rows] * np.sqrt(weights)).reshape(block.times, -1)
        v = (Vh.conj().T[columns] * np.sqrt(weights)).reshape(block.times, -1)
        gradient.append(u @ u.conj().T - v @ v.conj().T)
    return float(np.log(s[0]) + np.log(relative.sum()) / (2 * power)), gradient


def _scaling_factors(gradient: Sequence[Complex], eta: float) -> tuple[list[Complex], list[Complex]]:
    """Return the exponentials of a step down the gradient, and their inverses."""
    factors, inverses = [], []
    for slope in gradient:
        values, vectors = np.linalg.eigh(slope)
        lengths = np.exp(-2.0 * eta * values)
        factors.append((vectors * lengths) @ vectors.conj().T)
        inverses.append((vectors / lengths) @ vectors.conj().T)
    return factors, inverses


def block_slices(blocks: Sequence[UncertainBlock]) -> Iterator[tuple[UncertainBlock, slice, slice]]:
    """Yield each block with its rows and its columns in M."""
    row = column = 0
    for block in blocks:
        rows, columns = block.sees * block.times, block.moves * block.times
        yield block, slice(row, row + rows), slice(column, column + columns)
        row, column = row + rows, column + columns


def assemble_delta(parts: Sequence[Complex], blocks: Sequence[UncertainBlock]) -> Complex:
    """Return Delta from the change of each block."""
    sized = zip(parts, blocks, strict=True)
    found: Complex = block_diagonal([np.kron(np.eye(block.times), part) for part, block in sized])
    return found


def destabilising_changes(
    M: Complex, blocks: Sequence[UncertainBlock], tries: int = 6, enough: float = 0.0
) -> tuple[Complex, ...]:
    """Return changes, one per block, that make I - M Delta singular: the smallest found from several starts,
    or the first that is small enough.

    Each start climbs with rho(Delta M): the unit blocks that raise it most to first order are known (Packard,
    Fan & Doyle, 1988, the power method; here for repeated blocks too), and as much of them is taken as helps.
    """
    rng = np.random.default_rng(1)
    best = unbounded_changes(blocks)
    for number in range(tries):
        start = _random_unit_blocks(blocks, rng) if number else _initial_unit_blocks(M, blocks)
        parts = _climb_to_singularity(M, blocks, start)
        if largest_block_norm(parts) < largest_block_norm(best):
            best = parts
        if largest_block_norm(best) <= enough:
            break
    return best


def unbounded_changes(blocks: Sequence[UncertainBlock]) -> tuple[Complex, ...]:
    """Return changes larger than any."""
    return tuple(np.full((block.moves, block.sees), np.inf, dtype=complex) for block in blocks)


def largest_block_norm(parts: Sequence[Complex]) -> float:
    """Return the largest norm of a block."""
    norms = (np.linalg.norm(part, 2) if np.isfinite(part).all() else np.inf for part in parts if part.size)
    return float(max(norms, default=np.inf))


def _random_unit_blocks(blocks: Sequence[UncertainBlock], rng: np.random.Generator) -> list[Complex]:
    shapes = [(block.moves, block.sees) for block in blocks]
    return [_nearest_unit_block(rng.normal(size=shape) + 1j * rng.normal(size=shape)) for shape in shapes]


def _initial_unit_blocks(M: Complex, blocks: Sequence[UncertainBlock]) -> list[Complex]:
    """Return unit blocks that lead what M amplifies most back into itself."""
    U, _, Vh = np.linalg.svd(M, full_matrices=False)
    return _steepest_unit_blocks(blocks, Vh[0].conj(), U[:, 0])


def _steepest_unit_blocks(blocks: Sequence[UncertainBlock], w: Complex, q: Complex) -> list[Complex]:
    return [
        _nearest_unit_block(w[columns].reshape(block.times, -1).T @ q[rows].reshape(block.times, -1).conj())
        for block, rows, columns in block_slices(blocks)
    ]


def _nearest_unit_block(part: Complex) -> Complex:
    """Return the matrix of norm one that has the largest product with this one."""
    if not part.size or not np.any(part):
        return np.asarray(part)
    U, s, Vh = np.linalg.svd(part, full_matrices=False)
    rank = int((s > 1e-10 * s[0]).sum())
    return np.asarray(U[:, :rank] @ Vh[:rank])


def _climb_to_singularity(
    M: Complex, blocks: Sequence[UncertainBlock], parts: list[Complex]
) -> tuple[Complex, ...]:
    value, w, q = _dominant_mode(M, blocks, parts)
    for _ in range(STEPS):
        if value == 0.0:
            break
        direction = _steepest_unit_blocks(blocks, w, q)
        for share in (1.0, 0.5, 0.2, 0.05, 0.01):
            trial = [part + share * (to - part) for part, to in zip(parts, direction, strict=True)]
            found = _dominant_mode(M, blocks, trial)
            if abs(found[0]) > abs(value) * (1.0 + 1e-9):
                break
        else:
            break
        settled = abs(found[0]) < abs(value) * (1.0 + 1e-7)
        parts, (value, w, q) = trial, found
        if settled:
            break
    return tuple(part / value if value else np.full(part.shape, np.inf, dtype=complex) for part in parts)


def _dominant_mode(
    M: Complex, blocks: Sequence[UncertainBlock], parts: Sequence[Complex]
) -> tuple[complex, Complex, Complex]:
    """Return the largest eigenvalue of Delta M; the gradient for Delta is w q*."""
    solution: tuple[Complex, Complex, Complex] = scipy.linalg.eig(  # type: ignore[assignment]
        assemble_delta(parts, blocks) @ M, left=True, right=True
    )
    values, left, right = solution
    first = int(np.argmax(np.abs(values)))
    value, y, x = complex(values[first]), left[:, first], right[:, first]
    if value == 0.0:
        return value, y, M @ x
    inner = np.vdot(y, x)
    return value, y * (value / abs(value) / np.conj(inner) if inner else 1.0), M @ x
