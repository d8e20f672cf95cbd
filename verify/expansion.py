"""Brent equations of sparse schemes: every product is expanded, and only terms that occur are checked.

For one block of A the terms u v w of all products that use it are added up in a table of the B
and C blocks that occur with it. <64,64,64:117649> has 6.9e10 equations, but 1.1e9 terms and tables
of half a million entries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..schemes_db import Scheme
from ..schemes_db.factor import Factor, IntArray, integer_array

FloatArray = npt.NDArray[np.float64]

Image = tuple[int, int]
"""(p, root): residues modulo p with i at a square root of -1; (0, 0): the integers themselves."""

Parts = list[IntArray]
"""The numerators of U, V and W in the order of their nonzeros, in one image."""

Residuals = tuple[IntArray, IntArray, IntArray, FloatArray]
"""Block indices of A, B and C, each increasing, and the residuals of their equations, 0 where they hold."""

TERM_COST = 150
"""Cost of one expanded term, in multiplications of a dense matrix product (measured: 15 ns and 0.1 ns)."""

MODULAR_ROWS = 1 << 12
"""Number of products of two residues below 2^20 whose sum is below 2^53."""

_BATCH_TERMS = 1 << 21


def term_count(scheme: Scheme) -> int:
    """Return the number of terms u v w of all products."""
    left, right, outputs = (np.diff(factor.indptr) for factor in scheme.factors)
    return int((left * right * outputs).sum())


def is_sparse(scheme: Scheme) -> bool:
    """Return whether expansion is cheaper than dense matrix products over all B and C blocks."""
    return TERM_COST * term_count(scheme) < scheme.u.nnz * scheme.v.blocks * scheme.w.blocks


@dataclass(frozen=True, eq=False)
class Numerators:
    """Integer numerators of U, V and W in the order of their nonzeros.

    `one` is the common denominator, the numerator of 1. A factor beyond int64 is of Python integers (dtype object).
    """

    u: IntArray
    v: IntArray
    w: IntArray
    one: int

    @property
    def parts(self) -> tuple[IntArray, IntArray, IntArray]:
        return self.u, self.v, self.w

    def images(self, modulus: int, root: int) -> Parts:
        """Return the three factors in one image."""
        return [image(part, modulus, root) for part in self.parts]


def numerators_of(scheme: Scheme) -> Numerators:
    """Return small integer numerators of a scheme: of its primitive form if it has fractions, else its own.

    Large common denominators mostly come from scales that cancel within a product.
    """
    if scheme.gaussian or scheme.ring.characteristic or scheme.denominators == (1, 1, 1):
        du, dv, dw = scheme.denominators
        return Numerators(scheme.u.values, scheme.v.values, scheme.w.values, du * dv * dw)
    form = scheme.primitive
    # A product with an empty factor contributes nothing, whatever its other factors are.
    return Numerators(form.u.values, form.v.values, integer_array(form.w_values), form.denominator)


def right_sides(one: int, coefficients: IntArray, modulus: int) -> IntArray:
    """Return the sums that the numerators of terms with these coefficients must have, in one image."""
    return one % modulus * (coefficients % modulus) % modulus if modulus else one * coefficients


def image(values: IntArray, modulus: int, root: int) -> IntArray:
    """Map numerators to residues of least absolute value, with i at a root of -1; integers are unchanged."""
    if not modulus:
        return values
    residues = (values % modulus).astype(np.int64, copy=False)
    return symmetric(residues[:, 0] + residues[:, 1] * root if residues.ndim == 2 else residues, modulus)


def symmetric(values: IntArray, modulus: int) -> IntArray:
    """Return the residues of least absolute value."""
    half = modulus // 2
    return (values + half) % modulus - half


def gathered(factor: Factor, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Return the positions in `factor.indices` of the nonzeros of products `rows`, and the index in `rows` of each."""
    starts = factor.indptr[rows]
    counts = factor.indptr[rows + 1] - starts
    ends = np.cumsum(counts)
    shift = np.repeat(starts - ends + counts, counts)
    return np.arange(len(shift)) + shift, np.repeat(np.arange(len(rows)), counts)


def sums(
    scheme: Scheme, a: IntArray, entries: IntArray, wanted: IntArray, images: tuple[Image, ...], values: list[Parts]
) -> tuple[IntArray, IntArray, list[FloatArray]]:
    """Return the B and C blocks that occur with one A block, and the sums (1, b, c) of their equations in each image.

    `entries` are the positions of the block's coefficients in U, `wanted` its terms in the target.
    """
    u, v, w = scheme.factors
    rows = u.product[entries]
    (at_v, of_v), (at_w, of_w) = gathered(v, rows), gathered(w, rows)
    b, to_b = _occurring(v.indices[at_v], wanted[:, 1], v.blocks)
    c, to_c = _occurring(w.indices[at_w], wanted[:, 2], w.blocks)
    keys_b, keys_c = to_b[v.indices[at_v]] * len(c), to_c[w.indices[at_w]]
    first_w = np.searchsorted(of_w, np.arange(len(rows) + 1))
    counts = np.diff(first_w)
    pairs = []
    for (modulus, _), (in_u, in_v, _) in zip(images, values, strict=True):
        products = in_u[entries][of_v] * in_v[at_v]
        pairs.append(symmetric(products, modulus) if modulus else products)
    outputs = [in_w[at_w] for _, _, in_w in values]
    tables = [np.zeros(len(b) * len(c)) for _ in images]
    for part in _batches(of_v, counts, any(modulus for modulus, _ in images)):
        # Each (u, v) pair is multiplied by all w of its product, at the same positions in all images.
        times = counts[of_v[part]]
        ends = np.cumsum(times)
        meets = np.arange(ends[-1] if len(ends) else 0)
        meets += np.repeat(first_w[of_v[part]] - ends + times, times)
        keys = np.repeat(keys_b[part], times) + keys_c[meets]
        for at, (modulus, _) in enumerate(images):
            weights = np.repeat(pairs[at][part], times) * outputs[at][meets]
            tables[at] += np.bincount(keys, weights, len(tables[at]))
            if modulus:
                tables[at] %= modulus
    return b, c, [table.reshape(1, len(b), len(c)) for table in tables]


def _occurring(found: IntArray, wanted: IntArray, blocks: int) -> tuple[IntArray, IntArray]:
    """Return the blocks that occur in a sum or in the target, increasing, and the position of each block among them."""
    seen = np.zeros(blocks, dtype=bool)
    seen[found] = seen[wanted] = True
    occurring = np.flatnonzero(seen)
    places = np.empty(blocks, dtype=np.int64)
    places[occurring] = np.arange(len(occurring))
    return occurring, places


def _batches(of_v: IntArray, times: IntArray, modular: bool) -> Iterator[slice]:
    """Yield slices of the (u, v) pairs with bounded memory, and few enough products that residue sums are exact."""
    ends = np.cumsum(times[of_v])
    start = 0
    while start < len(of_v):
        stop = int(np.searchsorted(ends, (ends[start - 1] if start else 0) + _BATCH_TERMS))
        if modular:
            stop = min(stop, int(np.searchsorted(of_v, of_v[start] + MODULAR_ROWS)))
        stop = max(stop, start + 1)
        yield slice(start, stop)
        start = stop
