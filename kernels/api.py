"""The public products: a request, its plan, and the executor that runs it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
from numpy import matmul as numpy_matmul
from numpy import ndarray

from ..arguments import INTEGER, NUMBER, need, shown
from ..errors import PlanError
from ..schemes_db.masks import refuse_masks
from ..schemes_db.operands import array_of
from .arrays import Matrix
from .out import check_out
from .planning.cache import plan_cache
from .plans.decisions import AUTO, PREDICT, plan_and_executor, plan_for
from .products.arrays import SMALL, multiply, repeated, request_for
from .request import Request
from .ring import ExactRing

if TYPE_CHECKING:
    from .codegen.certified import SchemeLike
    from .planning.strategy import Plan


FLOAT32, FLOAT64, COMPLEX64, COMPLEX128 = map(np.dtype, ("float32", "float64", "complex64", "complex128"))


def matmul(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    scheme: SchemeLike | Sequence[Any] = AUTO,
    levels: int | None = None,
    out: Matrix | None = None,
    *,
    max_error: float | None = None,
    max_workspace: int | None = None,
    max_abs: int | None = None,
    strategy: str | None = None,
    effort: str = PREDICT,
    ring: str | ExactRing | None = None,
    out_dtype: str | None = None,
    precision: str | None = None,
    learn: bool = True,
) -> Matrix:
    """Compute the product of a (..., M, K) and b (..., K, N).

    `scheme="auto"` runs the library's own product, always for small matrices, until calls of the same sizes have
    shown that a scheme is faster: calls are timed, candidates are compiled meanwhile in another process and
    alternate with the library, and the winner is stored for later processes. Results of alternating calls differ by
    rounding. `learn=False`, or LCMA_LEARN=0 in the environment, uses what is known and tries nothing.

    Else `scheme` is a name of the catalogue, a scheme, a pair (scheme, certificate), or a list with an entry for every
    level, of which each may again be a list: the scheme for the half products and that for the full ones; one scheme
    is recursed `levels` times (default 1; 0 is numpy's product). Every scheme is proven once per process. Sizes
    need not be multiples of the grid; leading sizes broadcast as in numpy. Absent parts of a or b, by the
    scheme's target, are never read (they may contain NaN), and unwanted parts of C are zero.

    `strategy` names the only strategy to use ("vendor", "scheme"). `effort="measure"` times the best
    candidates for this request once and stores the winner (see `lcma tune`); "predict" uses the profile.

    `out` is an array (for tensors a tensor) of exactly the shape, dtype and device of the result; nothing is converted
    or broadcast. It may overlap a and b. A tensor without memory of its own is resized, as by torch.matmul.

    `max_workspace` bounds the bytes allocated besides a, b and C; `max_error` the a-priori error of an
    element relative to K max|A| max|B|.

    dtypes float32, float64, complex64, complex128, int32 and int64 (exact modulo 2^32 and 2^64);
    both operands the same. `max_abs` states the largest magnitude of their entries, for integers: it
    is checked, and C cannot overflow then. A scheme multiplies int8 only if it is stated, into
    int32, and only if no sum of blocks overflows int8; "auto" is the classical product then. int8 tensors on a GPU
    need it. For all else
    that numpy multiplies (vectors, mixed dtypes, float16, bool, other integers) "auto" calls `np.matmul`, with its
    rules for the result. Operands of another byte order are converted to the machine's.

    `ring` requests an exact product: "Z2" (of `lcma.BitMatrix`, or of arrays of bool and integers, taken modulo
    2), "GF(p)" or "Z/n" with a modulus up to 2^62 (any entries; the result is int64, 0 <= c < n), or "Z". Over Z the
    result is int64, and refused if it could overflow; `out_dtype="int128"` returns two words of int64 in a last
    axis, the lower first, and "object" Python integers. Schemes valid only modulo 2 run only here.

    `precision` is for tensors: "fp32-accurate" multiplies float32 on a GPU by three products of float16 halves, about
    as accurately as in float32, if that is predicted to be faster; "fp8" bfloat16 in 8 bits (e4m3) with a
    scale for each 128 elements of a row of a and each 128 x 128 block of b: errors of some percent, no gradient.

    A product by a scheme adds and subtracts blocks before it multiplies: if an operand contains an
    infinity, elements of C that are infinite in the classical product may be NaN, and finite
    elements may be infinite or NaN; check with `finite`.

    Raises:
        PlanError: the operands do not fit each other, the scheme or `out`, the scheme is valid over Z2 only,
            no candidate meets the limits, or an entry exceeds the stated `max_abs`.
        VerificationError: the scheme does not compute its target.
    """
    if learn is not True:
        need(bool, learn=learn)
    if not learn:
        from .learning import paused

        with paused():
            options: Any = {"max_error": max_error, "max_workspace": max_workspace, "max_abs": max_abs, "ring": ring}
            options |= {"strategy": strategy, "effort": effort, "out_dtype": out_dtype, "precision": precision}
            return matmul(a, b, scheme, levels, out, **options)
    # The fast path of small products: every comparison here costs each of them.
    if type(a) is ndarray and type(b) is ndarray and scheme is AUTO and ring is None and out_dtype is None:
        plain = levels is None and strategy is None and max_abs is None and precision is None and effort is PREDICT
        dtype = a.dtype
        if plain and (dtype is FLOAT32 or dtype is FLOAT64 or dtype is COMPLEX64 or dtype is COMPLEX128):
            if out is None and a.size * b.size < SMALL:  # M K^2 N, so that M K N is smaller, too
                try:
                    return numpy_matmul(a, b)
                except (TypeError, ValueError):
                    pass  # the operands do not fit: reported below, as for any product
            elif dtype is b.dtype and a.ndim == 2 == b.ndim and a.shape[1] == b.shape[0]:
                if a.size * b.shape[1] < SMALL:
                    if out is not None:
                        check_out(out, (a.shape[0], b.shape[1]), dtype)
                    return numpy_matmul(a, b, out)
                bounded = max_error is not None or max_workspace is not None
                # The processor's caches have forgotten Python's code and objects: the fewer are touched, the better.
                known = plan_cache.entries.get((a.shape, b.shape, a.strides, b.strides, dtype))
                if known is not None and known.lent > 0 and out is None and not bounded:
                    known.lent -= 1
                    return numpy_matmul(a, b)
                if (product := repeated(a, b, out, bounded)) is not None:
                    return product
    elif scheme is AUTO and (torch := sys.modules.get("torch")) is not None and type(a) is type(b) is torch.Tensor:
        unlimited = max_error is None and max_workspace is None and max_abs is None
        plain = levels is None and strategy is None and precision is None and ring is None and out_dtype is None
        if plain and unlimited and out is None and effort is PREDICT:
            from .torch import ops

            return cast(Matrix, cast(Any, ops.automatic)(a, b))
    given = (levels, max_error, max_workspace, max_abs, strategy, ring, out_dtype, precision)
    if effort is not PREDICT or any(one is not None for one in given):  # the checks take microseconds
        _check_options(levels, max_error, max_workspace, max_abs, strategy)
        need(str, effort=effort)
        need(str | ExactRing | None, ring=ring)
        need(str | None, out_dtype=out_dtype, precision=precision)
    refuse_masks(a=a, b=b)
    if ring is not None:
        from .products.exact import exact_matmul

        if precision is not None:
            raise PlanError("precision is for tensors; an exact product has no error; leave it out")
        if max_error is not None:
            raise PlanError("max_error is for real numbers: an exact product has no error; leave it out")
        limited: Any = {"max_workspace": max_workspace, "max_abs": max_abs, "out_dtype": out_dtype}
        return cast(Matrix, exact_matmul(a, b, ring, scheme, levels, out, strategy=strategy, effort=effort, **limited))
    if out_dtype is not None:
        raise PlanError('out_dtype is for exact products; give ring="Z", or leave it out')
    if hasattr(b, "__lcma_prepared__"):
        return cast(Matrix, cast(Any, b).multiply(array_of("a", a), out))
    limits: Any = {"max_error": max_error, "max_workspace": max_workspace, "max_abs": max_abs}
    if (torch := sys.modules.get("torch")) is not None and (torch.is_tensor(a) or torch.is_tensor(b)):
        from .torch import ops

        of_tensors = cast(Any, ops.matmul)  # the signature here is that of arrays
        return cast(Matrix, of_tensors(a, b, scheme, levels, out, strategy=strategy, precision=precision, **limits))
    if precision is not None:
        raise PlanError("precision is for tensors; leave it out for arrays")
    a, b = array_of("a", a), array_of("b", b)
    return multiply(a, b, scheme, levels, out, strategy=strategy, effort=effort, **limits)


def plan(
    a: Any,
    b: Any,
    scheme: SchemeLike | Sequence[Any] = AUTO,
    levels: int | None = None,
    *,
    max_error: float | None = None,
    max_workspace: int | None = None,
    max_abs: int | None = None,
    strategy: str | None = None,
) -> Plan:
    """Return the plan by which a (..., M, K) and b (..., K, N), arrays or tensors of a GPU, are multiplied now.

    The plan stays what it is, whatever is learned later: `plan.run(a, b, out=None)` multiplies any operands of these
    shapes, dtypes and layouts by it, and `print(plan)` names the candidate. Arguments are those of `matmul`.

    Raises:
        PlanError, VerificationError: as `matmul`, or tensors of a CPU are given.
    """
    _check_options(levels, max_error, max_workspace, max_abs, strategy)
    refuse_masks(a=a, b=b)
    limits: Any = {"max_error": max_error, "max_workspace": max_workspace, "max_abs": max_abs}
    if (torch := sys.modules.get("torch")) is not None and (torch.is_tensor(a) or torch.is_tensor(b)):
        if not (torch.is_tensor(a) and torch.is_tensor(b) and a.is_cuda):
            raise PlanError("plans run arrays, or tensors of a GPU; pass x.numpy() of CPU tensors")
    else:
        a, b = array_of("a", a), array_of("b", b)
    return plan_for(request_for(a, b, **limits), scheme, levels, strategy=strategy)


def _check_options(levels: Any, max_error: Any, max_workspace: Any, max_abs: Any, strategy: Any) -> None:
    need(INTEGER | None, levels=levels, max_workspace=max_workspace, max_abs=max_abs)
    need(NUMBER | None, max_error=max_error)
    need(str | None, strategy=strategy)


def finite(*matrices: npt.ArrayLike) -> bool:
    """Return whether all elements are finite: then a product by a scheme has no NaN that the classical one has not.

    Except by overflow: sums of blocks may exceed the largest number where the product itself does not.
    """
    arrays = [array_of("matrix", matrix) for matrix in matrices]
    return all(bool(np.isfinite(array).all()) for array in arrays if array.dtype.kind in "fc")


def prepare(
    shapes: Iterable[tuple[int, int, int]], dtype: str = "float32", scheme: SchemeLike | Sequence[Any] = AUTO
) -> list[Plan]:
    """Plan and compile products of these sizes (M, K, N) before the first call; return the plans.

    Raises:
        PlanError, VerificationError: as `matmul`.
    """
    need(str, dtype=dtype)
    need(Iterable, shapes=shapes)
    sizes = list(shapes)
    for triple in sizes:
        if not isinstance(triple, tuple | list) or len(triple) != 3:
            raise PlanError(
                f"shapes are triples of sizes (M, K, N), not {shown(triple)}: prepare([(1024, 1024, 1024)])"
            )
        need(INTEGER, least=0, **dict(zip("MKN", triple, strict=True)))
    return [plan_and_executor(Request(m, k, n, dtype), scheme)[0] for m, k, n in sizes]
