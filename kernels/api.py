"""C = A B, by the scheme that the machine's profile favours or by one that is named."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from ..errors import PlanError
from ..schemes_db.certificate import Certificate
from ..schemes_db.scheme import Scheme
from .request import DTYPES, Request

if TYPE_CHECKING:
    from .planning.strategy import Executor, Plan

Matrix = npt.NDArray[Any]
SchemeLike = str | Scheme | tuple[Scheme, Certificate | None]
"""A catalogue name, a scheme, or a scheme with the certificate that came with it; "auto" for the planner's choice."""

AUTO = "auto"

KEPT_PLANS = 256

SMALL = 1 << 28
"""m k n below which `auto` is the library's own product at once: planning and calling would cost what is to be won.

At 200 Gflop/s such a product takes less than 2.7 ms.
"""

_FLOATS = frozenset(np.dtype(name) for name in ("float32", "float64", "complex64", "complex128"))

_lock = threading.Lock()
_certified: dict[str, Certificate] = {}
_executors: OrderedDict[Any, tuple[Plan, Executor]] = OrderedDict()
_plain: set[tuple[int, int, int, Any, int]] = set()
"""Sizes, dtype and threads for which the plan of `auto` is numpy's own product."""


def matmul(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    scheme: SchemeLike | Sequence[Any] = AUTO,
    levels: int | None = None,
    out: Matrix | None = None,
    *,
    max_error: float | None = None,
    max_workspace: int | None = None,
    largest: int | None = None,
) -> Matrix:
    """The product of a (..., M, K) and b (..., K, N).

    `scheme="auto"` takes what should be fastest here, which may be the library's own product: always
    for small matrices. Else `scheme` is a name of the catalogue, a scheme, a pair (scheme,
    certificate), or a list with an entry for every level, of which each may again be a list: the
    scheme for the half products and that for the full ones; one scheme is recursed `levels` times
    (default 1; 0 is numpy's product). A scheme without a fitting certificate is proven first. Sizes
    need not be multiples of the grid; leading sizes broadcast as in numpy. Where the scheme's target
    calls a part of a or b absent it is never read (it may hold NaN), and what the target does not
    want of C comes out as zero.

    `max_workspace` bounds the bytes taken beside a, b and C; `max_error` the a-priori error of an
    element relative to K max|A| max|B|.

    dtypes float32, float64, complex64, complex128, int32 and int64 (exact modulo 2^32 and 2^64);
    both operands the same. `largest` states the largest magnitude of their entries, for integers: it
    is checked, and C cannot overflow then. A scheme multiplies int8 only where it is stated, into
    int32, and only where no sum of blocks leaves int8; "auto" is the classical product then. What else
    numpy multiplies (vectors, mixed dtypes, float16, bool, other integers, other byte orders) "auto"
    leaves to `np.matmul`, with its rules for the result.

    A product by a scheme adds and subtracts blocks before it multiplies: where an operand holds an
    infinity, elements of C that the classical product makes infinite may come out as NaN, and
    elements may be infinite or NaN that it makes finite; `finite` tells.

    Raises:
        PlanError: the operands do not fit each other or the scheme, the scheme holds over Z2 only,
            nothing keeps to the limits, or an entry is larger than was stated.
        VerificationError: the scheme does not compute its target.
    """
    if (
        type(a) is np.ndarray
        and type(b) is np.ndarray
        and isinstance(scheme, str)
        and scheme == AUTO
        and levels is None
    ):
        # What is below must not cost microseconds: it is paid by every small product.
        shape_a, shape_b = a.shape, b.shape
        if (
            len(shape_a) == 2 == len(shape_b)
            and shape_a[1] == shape_b[0]
            and (
                shape_a[0] * shape_a[1] * shape_b[1] < SMALL
                or (_plain and (*shape_a, shape_b[1], a.dtype, _thread_count()) in _plain)
            )
            and a.dtype == b.dtype
            and a.dtype in _FLOATS
            and largest is None
            and (
                out is None
                or (
                    type(out) is np.ndarray
                    and out.dtype == a.dtype
                    and out.shape == (shape_a[0], shape_b[1])
                    and out.flags.writeable
                )
            )
        ):
            return np.matmul(a, b, out) if out is not None else np.matmul(a, b)
    elif hasattr(b, "__lcma_prepared__"):
        return cast(Matrix, cast(Any, b).multiply(np.asarray(a), out))
    if (torch := sys.modules.get("torch")) is not None and (torch.is_tensor(a) or torch.is_tensor(b)):
        from .torch import ops

        if largest is not None:
            raise PlanError("largest is for arrays; multiply tensor.numpy()")
        of_tensors = cast(Any, ops.matmul)  # the signature here is that of arrays
        return cast(Matrix, of_tensors(a, b, scheme, levels, out, max_error=max_error, max_workspace=max_workspace))
    a, b = np.asarray(a), np.asarray(b)
    automatic = isinstance(scheme, str) and scheme == AUTO and levels is None
    if automatic and max_error is None and max_workspace is None and largest is None and not _has_plans(a, b):
        return _by_numpy(a, b, out)
    request = Request.of(a, b, out, max_error=max_error, max_workspace=max_workspace, largest=largest)
    if _nothing_to_do(scheme, levels):
        if largest is None:
            return np.matmul(a, b, out=out)
        scheme, levels = [], None
    planned = _planned(request, scheme, levels)
    free = isinstance(scheme, str) and scheme == AUTO and max_error is None and max_workspace is None
    if free and _is_numpys(planned[0], a, b):
        if len(_plain) >= KEPT_PLANS:
            _plain.clear()
        _plain.add((*request.shape, a.dtype, _thread_count()))
    while True:
        try:
            return planned[1].run(a, b, out)
        except MemoryError:  # an `out` that overlaps a or b is written last: both are still whole
            planned = _leaner(request, scheme, levels, planned[0])


def _has_plans(a: Matrix, b: Matrix) -> bool:
    """Whether these are matrices of one dtype that the planner knows; what else numpy multiplies, numpy does."""
    known = a.dtype.isnative and a.dtype.name in DTYPES
    return known and a.dtype == b.dtype and a.ndim > 1 and b.ndim > 1


def _by_numpy(a: Matrix, b: Matrix, out: Matrix | None) -> Matrix:
    """numpy's own product, by its rules for vectors, mixed dtypes and small integers.

    Raises:
        PlanError: numpy refuses it.
    """
    try:
        return cast(Matrix, np.matmul(a, b, out=out))
    except (TypeError, ValueError) as error:
        shapes = f"{a.dtype} of shape {a.shape} and {b.dtype} of shape {b.shape}"
        raise PlanError(f"numpy can't multiply {shapes}: {str(error).splitlines()[0]}") from None


def _thread_count() -> int:
    from .cpu.threads import thread_count

    return thread_count()


def _is_numpys(plan: Plan, a: Matrix, b: Matrix) -> bool:
    """Whether a plan is numpy's product of two matrices as they are: then later ones need no executor around it."""
    from .cpu.blas import NUMPY
    from .cpu.library import library_for

    plain = plan.candidate.strategy == "gemm" and not plan.workspace and a.dtype in _FLOATS
    return plain and a.ndim == b.ndim == 2 and library_for(plan.request) is NUMPY


def finite(*matrices: npt.ArrayLike) -> bool:
    """Whether no element is infinite or NaN: then a product by a scheme has no NaN that the classical one has not.

    Overflow apart: sums of blocks may exceed the largest number where the product itself does not.
    """
    return all(bool(np.isfinite(matrix).all()) for matrix in matrices)


def prepare(
    shapes: Iterable[tuple[int, int, int]], dtype: str = "float32", scheme: SchemeLike | Sequence[Any] = AUTO
) -> list[Plan]:
    """Plan and compile products of these sizes (M, K, N) ahead, so that the first call does not; gives the plans.

    Raises:
        PlanError, VerificationError: as `matmul`.
    """
    return [plan_for(Request(m, k, n, dtype), scheme) for m, k, n in shapes]


def executor_for(request: Request, scheme: SchemeLike | Sequence[Any] = AUTO, levels: int | None = None) -> Executor:
    """The executor that `matmul` uses for such a request; the last 256 are kept.

    Raises:
        PlanError, VerificationError: as `matmul`.
    """
    return _planned(request, scheme, levels)[1]


def plan_for(request: Request, scheme: SchemeLike | Sequence[Any] = AUTO, levels: int | None = None) -> Plan:
    """The plan that `matmul` uses for such a request.

    Raises:
        PlanError, VerificationError: as `matmul`.
    """
    return _planned(request, scheme, levels)[0]


def certified(scheme: SchemeLike) -> Scheme:
    """The scheme itself, proven: by the certificate it came with, or now (once a digest).

    Raises:
        PlanError: it holds over Z2 only, or has coefficients that are not real.
        VerificationError: it does not compute its target.
    """
    from ..verify import certify

    if isinstance(scheme, str):
        from ..schemes_db.library import resolve

        scheme = resolve(scheme)
    scheme, certificate = scheme if isinstance(scheme, tuple) and len(scheme) == 2 else (scheme, None)
    if not isinstance(scheme, Scheme):
        kind = type(scheme).__name__
        raise PlanError(f"a scheme is a name, a Scheme, (Scheme, Certificate) or a list of these by level, not {kind}")
    if not scheme.target.is_product:
        raise PlanError(f"{scheme.target} is no product of matrices: no kernel is made of it")
    if scheme.ring.characteristic:
        raise PlanError(f"{scheme.name or scheme.target} holds over {scheme.ring} only; lift it to Z first")
    # Asked of the scheme in hand: its digest forgets units, so a real scheme may share it.
    if scheme.gaussian:
        raise PlanError(f"{scheme.name or scheme.target} has coefficients that are not real; no kernel is made of it")
    if certificate is None or certificate.digest != scheme.digest:
        certificate = _certified.get(scheme.digest) or certify(scheme)
    with _lock:
        _certified[scheme.digest] = certificate
    return scheme


def _leaner(
    request: Request, scheme: SchemeLike | Sequence[Any], levels: int | None, failed: Plan
) -> tuple[Plan, Executor]:
    """What is taken from now on for a request whose plan ran out of memory; `refused` says so.

    Raises:
        PlanError: the plan needed no memory of its own, or no scheme that was named does with less.
    """
    from .cpu.workspace import shared_pool

    shared_pool.trim()
    needed = failed.workspace
    if not needed:
        raise PlanError(f"out of memory: {request} has no room for its result") from None
    reason = str(failed.candidate), f"out of memory: its {needed} bytes of workspace could not be had"
    plan, _ = _planned(replace(request, max_workspace=needed // 2), scheme, levels)
    plan = replace(plan, request=request, refused=(reason, *plan.refused))
    automatic = isinstance(scheme, str) and scheme == AUTO
    return _keep(_key(request, None if automatic else _entries(scheme), levels), (plan, plan.build()))


def _planned(request: Request, scheme: SchemeLike | Sequence[Any], levels: int | None) -> tuple[Plan, Executor]:
    automatic = isinstance(scheme, str) and scheme == AUTO
    if automatic and levels is not None:
        raise PlanError('levels is for a scheme that is named; leave it out with scheme="auto"')
    entries = None if automatic else _entries(scheme)
    key = _key(request, entries, levels)
    with _lock:
        if key in _executors:
            _executors.move_to_end(key)
            return _executors[key]
    chosen = _chosen(request, entries, 1 if levels is None else levels)
    planned = chosen, chosen.build()
    return _keep(key, planned)


def _key(request: Request, entries: Scheme | list[tuple[Scheme, ...]] | None, levels: int | None) -> Any:
    from .cpu.threads import thread_count

    if entries is None:
        digests: Any = AUTO
    elif isinstance(entries, Scheme):
        digests = entries.digest
    else:
        digests = tuple(tuple(one.digest for one in entry) for entry in entries)
    return request, digests, levels, thread_count()


def _keep(key: Any, planned: tuple[Plan, Executor]) -> tuple[Plan, Executor]:
    with _lock:
        _executors[key] = planned
        while len(_executors) > KEPT_PLANS:
            _executors.popitem(last=False)
    return planned


def _chosen(request: Request, entries: Scheme | list[tuple[Scheme, ...]] | None, levels: int) -> Plan:
    from .cpu.machine import machine_profile
    from .dense.auto import decide, plain_plan
    from .planning.planner import plan

    if entries is not None:
        profile = machine_profile()
        return plan(request, entries, levels, profile) if entries else plain_plan(request, profile)
    from .cpu.estimate import profile_for
    from .cpu.threads import thread_count

    return decide(request, profile_for(request), thread_count()).plan


def _entries(scheme: SchemeLike | Sequence[Any]) -> Scheme | list[tuple[Scheme, ...]]:
    """The proven schemes: one for all levels, or those of every level."""
    if _is_one(scheme) or not isinstance(scheme, Sequence):
        return certified(cast(SchemeLike, scheme))
    entries = cast(Sequence[Any], scheme)
    return [
        (certified(entry),) if _is_one(entry) or not isinstance(entry, Sequence) else tuple(map(certified, entry))
        for entry in entries
    ]


def _is_one(scheme: object) -> bool:
    pair = isinstance(scheme, tuple) and len(scheme) == 2 and isinstance(scheme[1], Certificate | None)
    return isinstance(scheme, str | Scheme) or pair


def _nothing_to_do(scheme: object, levels: int | None) -> bool:
    return levels == 0 or (not _is_one(scheme) and isinstance(scheme, Sequence) and not scheme)
