"""Eigensystem realisation: the matrices behind the answers to pulses.

In:  Markov parameters
Out: F, G and C of the orders that their singular values offer; what such matrices answer

Source: J. N. Juang, R. S. Pappa, An eigensystem realization algorithm for modal parameter identification and
model reduction, Journal of Guidance, Control and Dynamics 8 (1985).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hocket.model import Array

GAP = 2.0
"""A singular value so many times the next one may be the last that tells of a state; a test decides."""
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
