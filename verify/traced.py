"""Check of a callable (a, b) -> c on random matrices whose arithmetic is exact.

A scheme's proof does not show that the code generated from it computes the same. Integers that wrap
around modulo 2^64, residues modulo a prime, and small integers in floating point are free of
rounding, so one wrong entry proves a fault.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arguments import INTEGER, NUMBER, need
from ..errors import LcmaError
from ..schemes_db import Kind, Proof, Target
from ..schemes_db.grids import Kinds, present_entries
from .outcome import Outcome
from .primes import fresh_generator
from .randomized import DEFAULT_ERROR_LOG2

Matrix = npt.NDArray[Any]
Sizes = tuple[int, int, int]

FLOAT_RANGE = 8
"""Floating-point entries are integers from -8 to 8: sums of thousands of products are exact in float32."""

INTEGER_BITS = {"int32": 32, "int64": 64}
FLOATS = ("float32", "float64")


def check_traced(
    call: Callable[[Matrix, Matrix], Matrix],
    target: Target,
    *,
    sizes: Sizes | None = None,
    dtype: str = "int64",
    modulus: int = 0,
    garbage: bool = True,
    zero_outside: bool = False,
    error_log2: float = DEFAULT_ERROR_LOG2,
    seed: int | None = None,
) -> Outcome:
    """Check whether `call(a, b)` is A B with the structure of a target, for matrices of sizes (M, K, N).

    Blocks have the sizes that `matmul` uses: the size over the grid, rounded up. Integers cover the
    range of their type and wrap around; with `modulus`, entries are residues and the result is compared
    modulo it; floating-point entries are small integers and the result must round to the right one.
    Absent blocks of the target and unused triangles contain garbage (NaN in floating point), or zeros
    without `garbage`; in C they are ignored, or must be zero with `zero_outside`.

    The error probability holds for a callable that is bilinear with integer coefficients; for any
    other one the check is a test and no proof.

    Raises:
        LcmaError: another dtype, a modulus that is not for it, or half blocks that would not be square.
    """
    need(Callable, call=call)
    need(Target, target=target)
    need(tuple | list | None, sizes=sizes)
    need(str, dtype=dtype)
    need(INTEGER, least=0, modulus=modulus)
    need(NUMBER, error_log2=error_log2)
    need(INTEGER | None, least=0, seed=seed)
    start = time.perf_counter()
    if dtype not in (known := (*INTEGER_BITS, *FLOATS, "object")):
        raise LcmaError(f"dtype {dtype!r} is not traced; choose one of {', '.join(known)}")
    values = _Values(np.dtype(dtype), modulus)
    if sizes is not None and len(sizes) != 3:
        raise LcmaError(f"sizes are three numbers (M, K, N), not {len(sizes)}")
    m, k, n = sizes or _default_sizes(target)
    need(INTEGER, least=0, M=m, K=k, N=n)
    masks = [present(grid, (rows, cols)) for grid, rows, cols in ((target.a, m, k), (target.b, k, n), (target.c, m, n))]
    generator = fresh_generator(seed)
    rounds = math.ceil(error_log2 / values.per_round)
    for i in range(rounds):
        a, b = (values.draw(mask.shape, generator) for mask in masks[:2])
        truth = _truth(values, target, np.where(masks[0], a, 0), np.where(masks[1], b, 0))
        for matrix, mask in zip((a, b), masks, strict=False):
            matrix[~mask] = values.garbage(int((~mask).sum()), generator) if garbage else 0
        result = np.asarray(call(a, b))
        if result.shape != truth.shape:
            return _failure(target, start, f"C is {result.shape}, wanted {truth.shape}")
        wrong = values.differ(result, np.where(masks[2], truth, 0)) & (masks[2] | zero_outside)
        if wrong.any():
            row, col = (int(index) for index in np.argwhere(wrong)[0])
            wanted = truth[row, col] if masks[2][row, col] else 0
            where = f"round {i + 1} ({m}x{k}x{n}, {dtype})"
            return _failure(
                target,
                start,
                f"{int(wrong.sum())} of {wrong.size} entries of C are wrong in {where}; "
                f"C[{row + 1},{col + 1}] is {result[row, col]}, wanted {wanted}",
            )
    proof = Proof("traced", primes=(modulus,) if modulus else (), rounds=rounds, error_log2=rounds * values.per_round)
    return Outcome("traced", proof, target.equations, time.perf_counter() - start)


def present(grid: Kinds, shape: tuple[int, int]) -> npt.NDArray[np.bool_]:
    """Return the mask of the entries of a matrix (rows, cols) in full blocks or stored triangles of a grid of kinds.

    Raises:
        LcmaError: a half block that is not square.
    """
    kinds = np.array(grid)
    height, width = (max(1, -(-size // parts)) for size, parts in zip(shape, kinds.shape, strict=True))
    if height != width and np.isin(kinds, (Kind.LOWER, Kind.UPPER)).any():
        raise LcmaError(f"half blocks must be square, not {height} x {width}; choose other sizes")
    return present_entries(kinds, *shape)


def _truth(values: _Values, target: Target, a: Matrix, b: Matrix) -> Matrix:
    """Return the target's value for two matrices: their product, or the sum over the terms of their blocks."""
    if target.is_product:
        return values.product(a, b)
    sides = [-(-size // parts) for size, parts in zip((*a.shape, b.shape[1]), target.shape, strict=True)]
    m, k, n = (side * parts for side, parts in zip(sides, target.shape, strict=True))
    wide_a, wide_b = np.zeros((m, k), dtype=a.dtype), np.zeros((k, n), dtype=b.dtype)
    wide_a[: a.shape[0], : a.shape[1]], wide_b[: b.shape[0], : b.shape[1]] = a, b
    blocks = [
        matrix.reshape(rows, matrix.shape[0] // rows, cols, -1).swapaxes(1, 2).reshape(rows * cols, -1, width)
        for matrix, rows, cols, width in (
            (wide_a, target.m, target.k, sides[1]),
            (wide_b, target.k, target.n, sides[2]),
        )
    ]
    kind = np.dtype(object) if values.modulus else wide_a.dtype
    total = np.zeros((target.m * target.n, sides[0], sides[2]), dtype=kind)
    for (p, q, s), coefficient in zip(target.terms.tolist(), target.term_values.tolist(), strict=True):
        total[s] += values.product(blocks[0][p], blocks[1][q]) * (
            coefficient if values.modulus else kind.type(coefficient)
        )
    whole = total.reshape(target.m, target.n, *total.shape[1:]).swapaxes(1, 2).reshape(m, n)
    return whole[: a.shape[0], : b.shape[1]]


def _default_sizes(target: Target) -> Sizes:
    """Return sizes with blocks of 2 x 3 and 3 x 4 (every transposition is detected), or square ones if any is half."""
    halves = any(kind.half for grid in (target.a, target.b, target.c) for row in grid for kind in row)
    sides = (3, 3, 3) if halves else (2, 3, 4)
    return target.m * sides[0], target.k * sides[1], target.n * sides[2]


def _failure(target: Target, start: float, reason: str) -> Outcome:
    return Outcome("traced", None, target.equations, time.perf_counter() - start, wrong=None, reason=reason)


@dataclass(frozen=True)
class _Values:
    """Random entries of a dtype, and the comparison of its results."""

    dtype: np.dtype[Any]
    modulus: int

    def __post_init__(self) -> None:
        if self.dtype == object and not self.modulus:
            raise LcmaError("object matrices are traced modulo a prime; give one")
        if self.modulus and (self.dtype.kind == "f" or not 2 <= self.modulus < 1 << 31):
            raise LcmaError("a modulus is a prime below 2^31, for integer matrices")

    @property
    def per_round(self) -> float:
        """log2 of the probability that a nonzero bilinear form vanishes on one round (Schwartz-Zippel).

        Modulo 2^w the lowest set bit of the coefficients leaves a form over Z2: at most 3/4.
        """
        if self.modulus:
            return math.log2(1 - (1 - 1 / self.modulus) ** 2)
        if self.dtype.kind == "f":
            return math.log2(2 / (2 * FLOAT_RANGE + 1))
        return math.log2(3 / 4)

    def draw(self, shape: tuple[int, ...], generator: np.random.Generator) -> Matrix:
        if self.modulus:
            return generator.integers(0, self.modulus, shape).astype(self.dtype)
        if self.dtype.kind == "f":
            return generator.integers(-FLOAT_RANGE, FLOAT_RANGE + 1, shape).astype(self.dtype)
        info = np.iinfo(self.dtype)
        return generator.integers(info.min, info.max, shape, dtype=self.dtype, endpoint=True)

    def garbage(self, count: int, generator: np.random.Generator) -> Matrix:
        if self.dtype.kind == "f":
            return np.full(count, np.nan, dtype=self.dtype)
        return self.draw((count,), generator)

    def product(self, a: Matrix, b: Matrix) -> Matrix:
        """Return the classical product; integers wrap around."""
        if not self.modulus:
            return a @ b
        return np.asarray(a.astype(object) @ b.astype(object) % self.modulus)

    def differ(self, got: Matrix, wanted: Matrix) -> npt.NDArray[np.bool_]:
        """Return the mask of differing entries; a NaN differs from every number."""
        if self.modulus:
            return np.asarray((got.astype(object) - wanted) % self.modulus != 0)
        if self.dtype.kind == "f":
            return np.asarray(~(np.abs(got - wanted) < 0.5))
        return np.asarray(got != wanted)
