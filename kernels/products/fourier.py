"""The discrete Fourier transform as a product of Kronecker-sparse factors and a permutation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...arguments import INTEGER, need
from ...errors import PlanError
from ...schemes_db.display import line
from ...schemes_db.masks import refuse_masks
from ..arrays import Matrix
from ..factored import BATCH_FIRST
from ..structured.matrix import FactoredMatrix
from ..structured.pattern import Pattern
from .factored import matmul

RADIX = 16
"""Maximum radix of the factorization of sizes: larger blocks need fewer passes over memory."""


@dataclass(frozen=True, eq=False)
class FourierTransform:
    """F = K1 ... KL P with F[k, n] = exp(-2 pi i k n / size); P x = x[order]."""

    matrix: FactoredMatrix
    order: npt.NDArray[np.int64]

    def __repr__(self) -> str:
        return line(self._title)

    def _repr_html_(self) -> str:
        """The factors as a table, for a notebook."""
        return self.matrix.structure.as_table(self._title)

    @property
    def _title(self) -> str:
        factors = "".join(map(str, self.matrix.patterns))
        return f"Fourier transform of {len(self.order)} points, {self.matrix.dtype}: {factors} and a permutation"

    def apply(self, x: Matrix, layout: str = BATCH_FIRST) -> Matrix:
        """Compute the transforms of x (..., size), or of the columns of x (size, batch) with layout "bsl".

        Raises:
            PlanError: x is not complex of the transform's dtype, or has another size.
        """
        refuse_masks(x=x)
        x = np.asarray(x)
        size, axis = len(self.order), -1 if layout == BATCH_FIRST else 0
        if x.ndim < 1 or x.shape[axis] != size:
            raise PlanError(f"the transform is of {size} points in layout {layout}, not of an x of shape {x.shape}")
        return matmul(self.matrix, np.ascontiguousarray(np.take(x, self.order, axis)), layout)


def dft(size: int, dtype: str = "complex64", radix: int = RADIX) -> FourierTransform:
    """Return the transform of a size whose prime factors are at most `radix`, by decimation in time.

    A size r M is split as F_(r M) = K (I_r (x) F_M) P with K of the pattern (1, r, r, M), and so on.

    Raises:
        PlanError: the size has a larger prime factor, or the dtype is not complex.

    Source: Cooley, Tukey, "An algorithm for the machine calculation of complex Fourier series" (1965).
    """
    need(INTEGER, size=size, radix=radix)
    need(str, dtype=dtype)
    if dtype not in ("complex64", "complex128"):
        raise PlanError(f"a Fourier transform is complex64 or complex128, not {dtype}")
    radices = _radices(size, radix)
    patterns, factors, a = [], [], 1
    for r in radices:
        d = size // (a * r)
        k, s, j = np.arange(r)[:, None], np.arange(r)[None, :], np.arange(d)[:, None, None]
        turns = (s * (k * d + j)) % (r * d)  # exact: angles from large products would lose digits
        block = np.exp(-2j * np.pi * turns / (r * d)).astype(dtype)
        patterns.append(Pattern(a, r, r, d))
        factors.append(np.broadcast_to(block, (a, d, r, r)))
        a *= r
    digits = np.arange(size).reshape(radices[::-1])
    order = np.ascontiguousarray(digits.transpose(range(digits.ndim)[::-1])).reshape(-1)
    return FourierTransform(FactoredMatrix.of(patterns, factors), order)


def _radices(size: int, most: int) -> list[int]:
    """Return factors of a size of at most `most`, by greedy division."""
    if size < 2 or most < 2:
        raise PlanError(f"a transform has at least 2 points and a radix of at least 2, not {size} and {most}")
    rest, steps = size, []
    while rest > 1:
        step = next((r for r in range(min(most, rest), 1, -1) if rest % r == 0), None)
        if step is None:
            smooth = 2 ** max(1, round(math.log2(size)))
            raise PlanError(f"{size} has a prime factor above the radix {most}; pad to {smooth}, or raise the radix")
        steps.append(step)
        rest //= step
    return steps
