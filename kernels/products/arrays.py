"""Products of numpy arrays: from operands to result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ...errors import PlanError
from ..arrays import Array, Matrix
from ..cpu.threads import blas_limit, thread_count
from ..learning import allowed
from ..out import check_out
from ..planning.cache import plan_cache
from ..plans.decisions import (
    AUTO,
    PREDICT,
    is_single,
    learning_executor,
    learns,
    plan_and_executor,
    replan_with_less_memory,
)
from ..request import DTYPES, Request, matmul_shape

if TYPE_CHECKING:
    from ..codegen.certified import SchemeLike


FLOATS = frozenset(np.dtype(name) for name in ("float32", "float64", "complex64", "complex128"))

SMALL = 1 << 28
"""m k n below which `auto` calls the library without planning: planning and calling would cost the gain.

At 200 Gflop/s such a product takes less than 2.7 ms.
"""


class IsNumpys:
    """The cache entry of operands for which the plan of `auto` is numpy's own product. See `LearningExecutor`."""

    threads = 0
    lent = 0

    def lend(self) -> None:
        """See `LearningExecutor`: nothing is lent, so that changes of what is known are noticed."""

    def left_to(self, library: str) -> bool:
        return True

    def repeats(self) -> IsNumpys:
        return self

    def again(self, a: Matrix, b: Matrix) -> Matrix:
        return cast(Matrix, np.matmul(a, b))


IS_NUMPYS = IsNumpys()


def key_of(a: Matrix, b: Matrix) -> tuple[object, ...]:
    """Return the key under which the plan cache has what multiplies arrays like these; `matmul` makes it, too.

    It has no number of threads, which takes longer to find than all else: see `repeated`.
    """
    return a.shape, b.shape, a.strides, b.strides, a.dtype


def repeated(a: Matrix, b: Matrix, out: Matrix | None, limited: bool) -> Matrix | None:
    """Compute a b without building a request, if the class of these matrices is decided or tried; else return None.

    After a large product all of Python's code has left the processor's caches: a request, its lesson and its checks
    take 100 to 200 us then, 2 to 4% of a product of 1500 x 1500. `limited`: only numpy's product is sure to be within
    the caller's limits. A scheme notices a change of BLAS's threads at once; one of LCMA_NUM_THREADS, or of the
    processors that this process may use, is noticed by the next call that is timed.

    Raises:
        PlanError: `out` is not for this result.
    """
    known = plan_cache.get(key_of(a, b))
    if known is None:
        return None
    if out is not None or limited:
        if not known.left_to("numpy"):
            return None
        if out is not None:
            check_out(out, (a.shape[0], b.shape[1]), a.dtype)
        return cast(Matrix, np.matmul(a, b, out=out))
    leader = known.repeats()
    if leader is None:
        return known.again(a, b) if known.place == thread_count() and allowed() else None
    if leader.threads and leader.threads > blas_limit():
        return None
    known.lend()
    try:
        return cast(Matrix, leader.again(a, b))
    except MemoryError:
        return None  # the caller builds the request, whose lesson then runs the library's product


def request_for(a: Array, b: Array, **fields: Any) -> Request:
    """Return the request of two arrays, or of two tensors of a GPU in torch's present precision.

    Raises:
        PlanError: the operands do not multiply, see `Request.of`.
    """
    if isinstance(a, np.ndarray):
        return Request.of(a, b, **fields)
    from ..cuda.dtypes import precision_of
    from ..cuda.requests import request_of

    return request_of(a, b, precision_of(a), **fields)


def multiply(
    a: Matrix,
    b: Matrix,
    scheme: SchemeLike | Sequence[Any] = AUTO,
    levels: int | None = None,
    out: Matrix | None = None,
    *,
    strategy: str | None = None,
    effort: str = PREDICT,
    **limits: Any,
) -> Matrix:
    """See `lcma.matmul`, for arrays; `limits` are `max_error`, `max_workspace` and `max_abs`."""
    automatic = isinstance(scheme, str) and scheme == AUTO and levels is None and strategy is None
    unlimited = all(limit is None for limit in limits.values())
    if automatic and unlimited and not _has_plans(a, b):
        return _by_numpy(a, b, out)
    request = Request.of(a, b, out, **limits)
    classical = levels == 0 or (not is_single(scheme) and isinstance(scheme, Sequence) and not scheme)
    if classical and strategy is None:
        if request.max_abs is None:
            return np.matmul(a, b, out=out)
        scheme, levels, strategy = AUTO, None, "vendor"
    if isinstance(scheme, str) and scheme == AUTO and (joined := _joined_rows(a, b, out)) is not None:
        # All matrices of a share b: their rows are joined to one product.
        other = b.reshape(b.shape[-2:])
        product = multiply(joined, other, scheme, levels, strategy=strategy, effort=effort, **limits)
        return product.reshape(*a.shape[:-1], b.shape[-1])
    if automatic and unlimited and effort == PREDICT and learns(request):
        learning = learning_executor(request, wait=False)
        if learning is None:
            return _by_numpy(a, b, out)
        if a.dtype in FLOATS and a.ndim == b.ndim == 2:
            plan_cache.put(key_of(a, b), learning)
        return cast(Matrix, learning.run(a, b, out))
    plan, executor = plan_and_executor(request, scheme, levels, strategy, effort)
    if automatic and unlimited and a.ndim == b.ndim == 2:
        from ..dense.cpu import NumpyProduct

        if isinstance(executor, NumpyProduct):  # of the matrices in place: later calls need no executor
            plan_cache.put(key_of(a, b), IS_NUMPYS)
    while True:
        try:
            return cast(Matrix, executor.run(a, b, out))
        except MemoryError:  # an `out` that overlaps a or b is written last: both are still unmodified
            plan, executor = replan_with_less_memory(request, scheme, levels, strategy, plan)


def _has_plans(a: Matrix, b: Matrix) -> bool:
    """Return whether these are matrices of one dtype that the planner supports; numpy multiplies all others."""
    known = a.dtype.isnative and a.dtype.name in DTYPES
    return known and a.dtype == b.dtype and a.ndim > 1 and b.ndim > 1


def _by_numpy(a: Matrix, b: Matrix, out: Matrix | None) -> Matrix:
    """Compute numpy's own product, by its rules for vectors, mixed dtypes and small integers.

    Raises:
        PlanError: numpy refuses the operands, or `check_out` the result.
    """
    try:
        if out is not None:
            check_out(out, matmul_shape(a.shape, b.shape), np.matmul.resolve_dtypes((a.dtype, b.dtype, None))[-1])
        return cast(Matrix, np.matmul(a, b, out=out))
    except (TypeError, ValueError) as error:
        shapes = f"{a.dtype} of shape {a.shape} and {b.dtype} of shape {b.shape}"
        raise PlanError(f"numpy can't multiply {shapes}: {str(error).splitlines()[0]}") from None


def _joined_rows(a: Matrix, b: Matrix, out: Matrix | None) -> Matrix | None:
    """Return the rows of all matrices of a as one matrix if they share one b; None if not, or if it would copy."""
    shared = a.ndim > 2 and out is None and b.size and all(size == 1 for size in b.shape[:-2]) and b.ndim <= a.ndim
    return a.reshape(-1, a.shape[-1]) if shared and a.flags.c_contiguous and a.size else None
