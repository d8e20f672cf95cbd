"""Rounding errors of a scheme: the published bound, and measurements.

Not part of any proof: a scheme with a large factor is as exact as any other in exact arithmetic.
Source: Ballard, Benson, Druinsky, Lipshitz, Schwartz, "Improving the numerical stability of fast
matrix multiplication" (2016), section 3: prefactor Q, stability factor E, and
|C' - C| <= (K / k^L + Q L) (K / k^L) E^L |A| |B| u + O(u^2) in the max norm after L levels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import LcmaError
from ..schemes_db import Program, Scheme
from ..schemes_db.costs import growth_and_roundings, growth_factor, product_kinds
from ..schemes_db.evaluate import evaluate
from ..schemes_db.straightline import program_of
from .primes import fresh_generator
from .traced import present

Matrix = npt.NDArray[Any]

UNIT_ROUNDOFF = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11}
"""Half the distance from 1 to the next number, by dtype."""

DEFAULT_LEAF = 8
"""Side of the blocks that are multiplied classically in a measurement."""

MAX_WORK = 1 << 30
"""Maximum number of multiplications of the reference product of a measurement."""


@dataclass(frozen=True)
class Measurement:
    """Largest errors of some draws in one dtype, on uniform matrices in [-1, 1].

    `error` and `classical` are max |C' - C| / (max |A| max |B|) of the scheme and of the classical
    product in the same dtype; `frobenius` is the scheme's relative Frobenius error; `bound` is the a
    priori bound on `error`.
    """

    dtype: str
    shape: tuple[int, int, int]
    levels: int
    error: float
    classical: float
    frobenius: float
    bound: float


def prefactor(scheme: Scheme) -> int:
    """Return Q: the maximum number of roundings of a term of an output on one level, without those of its product."""
    return growth_and_roundings(program_of(scheme, cse=False))[1]


def error_bound(scheme: Scheme, k: int, levels: int = 1, dtype: str = "float64") -> float:
    """Return the first-order bound on max |C' - C| / (max |A| max |B|) for inner size k, after some levels.

    Raises:
        LcmaError: another dtype, or a scheme whose coefficients are not real.
    """
    _check(scheme, dtype)
    leaf = math.ceil(k / scheme.target.k**levels)
    bound = (leaf + prefactor(scheme) * levels) * leaf * growth_factor(scheme) ** levels * UNIT_ROUNDOFF[dtype]
    return float(bound)


def measure(
    scheme: Scheme,
    dtype: str = "float32",
    levels: int = 1,
    leaf: int = DEFAULT_LEAF,
    call: Callable[[Matrix, Matrix], Matrix] | None = None,
    draws: int = 3,
    seed: int = 0,
) -> Measurement:
    """Measure the error of a scheme on random matrices, evaluated by `call(a, b)` if given.

    Matrix sizes are `leaf` times the grid's sizes to the power of `levels`; the reference product is
    computed in extended precision.

    Raises:
        LcmaError: another dtype, a scheme over Z/p or Q(i), or too large a product.
    """
    _check(scheme, dtype)
    target = scheme.target
    shape = tuple(leaf * size**levels for size in target.shape)
    if math.prod(shape) > MAX_WORK:
        raise LcmaError(f"a measurement with {'x'.join(map(str, shape))} matrices is too large; take fewer levels")
    m, k, n = shape
    run = call or _evaluation(_nested(scheme, levels))
    here = [present(grid, (r, c)) for grid, r, c in ((target.a, m, k), (target.b, k, n), (target.c, m, n))]
    generator = fresh_generator(seed)
    error = classical = frobenius = 0.0
    for _ in range(draws):
        a, b = (np.where(mask, generator.uniform(-1, 1, mask.shape), 0).astype(dtype) for mask in here[:2])
        truth = np.where(here[2], a.astype(np.longdouble) @ b.astype(np.longdouble), 0)
        scale = float(np.abs(a).max() * np.abs(b).max()) or 1.0
        wrong, plain = (
            np.where(here[2], c.astype(np.longdouble) - truth, 0) for c in (np.asarray(run(a, b)), _plain(a, b))
        )
        error = max(error, float(np.abs(wrong).max()) / scale)
        classical = max(classical, float(np.abs(plain).max()) / scale)
        frobenius = max(frobenius, float(np.sqrt((wrong**2).sum() / ((truth**2).sum() or 1))))
    bound = error_bound(scheme, k, levels, dtype)
    return Measurement(dtype, (m, k, n), levels, error, classical, frobenius, bound)


def _check(scheme: Scheme, dtype: str) -> None:
    if dtype not in UNIT_ROUNDOFF:
        raise LcmaError(f"dtype {dtype!r} has no error analysis here; choose one of {', '.join(UNIT_ROUNDOFF)}")
    if scheme.ring.characteristic or scheme.gaussian:
        raise LcmaError(f"{scheme!r} has no product of real matrices to measure")


def _nested(scheme: Scheme, levels: int) -> Program:
    """Return the scheme nested in its full products; halves are computed whole on the last level."""
    program = flat = program_of(scheme, cse=False)
    if not scheme.target.is_general:
        if levels > 1:
            raise LcmaError(f"{scheme!r} is measured on one level: its halves recurse by other schemes")
        return program
    full = product_kinds(scheme)[0]
    for _ in range(levels - 1):
        program = flat.nested({full: program})
    return program


def _evaluation(program: Program) -> Callable[[Matrix, Matrix], Matrix]:
    return lambda a, b: evaluate(program, a, b)


def _plain(a: Matrix, b: Matrix) -> Matrix:
    return np.asarray(a @ b)
