"""The public products: a request, its plan, and the executor that runs it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from ..errors import PlanError
from ..schemes_db.certificate import Certificate
from ..schemes_db.scheme import Scheme
from .codegen.certified import SchemeLike, certified
from .planning.cache import plan_cache
from .request import Request

if TYPE_CHECKING:
    from .planning.machine import Machine
    from .planning.planner import Decision
    from .planning.strategy import Executor, Plan

Matrix = npt.NDArray[Any]

AUTO = "auto"

SMALL = 1 << 28
"""m k n below which `auto` is the library's own product at once: planning and calling would cost what there is to gain.

At 200 Gflop/s such a product takes less than 2.7 ms.
"""

_FLOATS = frozenset(np.dtype(name) for name in ("float32", "float64", "complex64", "complex128"))

_VENDOR = object()
"""The cache's entry of sizes, dtype and threads for which the plan of `auto` is numpy's own product."""


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
    effort: str = "predict",
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

    `strategy` names the only strategy to take ("vendor", "scheme"). `effort="measure"` times the best
    candidates for this request once and stores the winner (see `lcma tune`); "predict" trusts the profile.

    `max_workspace` bounds the bytes taken beside a, b and C; `max_error` the a-priori error of an
    element relative to K max|A| max|B|.

    dtypes float32, float64, complex64, complex128, int32 and int64 (exact modulo 2^32 and 2^64);
    both operands the same. `max_abs` states the largest magnitude of their entries, for integers: it
    is checked, and C cannot overflow then. int8 is multiplied only where it is stated, into int32, and
    by a scheme only where no sum of blocks leaves int8; "auto" is the classical product then.

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
        and strategy is None
        and effort == "predict"
    ):
        # What is below must not cost microseconds: it is paid by every small product.
        shape_a, shape_b = a.shape, b.shape
        if (
            len(shape_a) == 2 == len(shape_b)
            and shape_a[1] == shape_b[0]
            and (
                shape_a[0] * shape_a[1] * shape_b[1] < SMALL
                or plan_cache.get((*shape_a, shape_b[1], a.dtype, _thread_count())) is _VENDOR
            )
            and a.dtype == b.dtype
            and a.dtype in _FLOATS
            and max_abs is None
            and (out is None or (type(out) is np.ndarray and out.dtype == a.dtype))
        ):
            return np.matmul(a, b, out) if out is not None else np.matmul(a, b)
    elif hasattr(b, "__lcma_prepared__"):
        return cast(Matrix, cast(Any, b).multiply(np.asarray(a), out))
    if (torch := sys.modules.get("torch")) is not None and (torch.is_tensor(a) or torch.is_tensor(b)):
        from .torch import ops

        if max_abs is not None:
            raise PlanError("max_abs is for arrays; multiply tensor.numpy()")
        of_tensors = cast(Any, ops.matmul)  # the signature here is that of arrays
        return cast(Matrix, of_tensors(a, b, scheme, levels, out, max_error=max_error, max_workspace=max_workspace))
    a, b = np.asarray(a), np.asarray(b)
    request = Request.of(a, b, out, max_error=max_error, max_workspace=max_workspace, max_abs=max_abs)
    if _is_classical(scheme, levels) and strategy is None:
        if max_abs is None:
            return np.matmul(a, b, out=out)
        scheme, levels, strategy = AUTO, None, "vendor"
    if (joined := _joined_rows(a, b, out)) is not None:
        # All matrices of a share b: their rows are one product.
        limits = {"max_error": max_error, "max_workspace": max_workspace, "max_abs": max_abs}
        other = b.reshape(b.shape[-2:])
        product = matmul(joined, other, scheme, levels, strategy=strategy, effort=effort, **cast(Any, limits))
        return product.reshape(*a.shape[:-1], b.shape[-1])
    plan, executor = _planned(request, scheme, levels, strategy, effort)
    free = isinstance(scheme, str) and scheme == AUTO and max_error is None and max_workspace is None
    if free and strategy is None and _is_numpys(plan, a, b):
        plan_cache.put((*request.shape, a.dtype, _thread_count()), _VENDOR)
    while True:
        try:
            return cast(Matrix, executor.run(a, b, out))
        except MemoryError:  # an `out` that overlaps a or b is written last: both are still whole
            plan, executor = _replan_with_less_memory(request, scheme, levels, strategy, plan)


def _joined_rows(a: Matrix, b: Matrix, out: Matrix | None) -> Matrix | None:
    """The rows of all matrices of a as one matrix, where they share one b; None where they do not, or it would copy."""
    shared = a.ndim > 2 and out is None and b.size and all(size == 1 for size in b.shape[:-2]) and b.ndim <= a.ndim
    return a.reshape(-1, a.shape[-1]) if shared and a.flags.c_contiguous and a.size else None


def _thread_count() -> int:
    from .cpu.threads import thread_count

    return thread_count()


def _is_numpys(plan: Plan, a: Matrix, b: Matrix) -> bool:
    """Whether a plan is numpy's product of two matrices as they are: then later ones need no executor around it."""
    from .cpu.blas import NUMPY
    from .cpu.library import library_for

    plain = plan.candidate.strategy == "vendor" and not plan.workspace and a.dtype in _FLOATS
    return plain and a.ndim == b.ndim == 2 and library_for(plan.request, plan.machine.profile) is NUMPY


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
    return [_planned(Request(m, k, n, dtype), scheme)[0] for m, k, n in shapes]


def decision_for(
    request: Request,
    scheme: SchemeLike | Sequence[Any] = AUTO,
    levels: int | None = None,
    *,
    strategy: str | None = None,
    where_faster: bool = False,
    effort: str = "predict",
    machine: Machine | None = None,
) -> Decision:
    """How a request would be run, and why. `strategy`, `scheme` and `levels` are as in `matmul`.

    With `where_faster` a scheme that is named gives way to the baseline where it is not predicted to be
    faster. `machine` stands for the one that the request would run on.

    Raises:
        PlanError, VerificationError: as `matmul`.
    """
    from .families import machine_for, strategies
    from .planning.planner import decide, decide_among

    if effort not in ("predict", "measure"):
        raise PlanError(f'effort must be "predict" or "measure", not {effort!r}')
    automatic = isinstance(scheme, str) and scheme == AUTO
    machine = machine_for(request, measure=automatic) if machine is None else machine
    known = strategies(request.device)
    if automatic:
        if levels is not None:
            raise PlanError('levels is for a scheme that is named; leave it out with scheme="auto"')
        if effort == "measure" and strategy is None and not (machine.wisdom and machine.wisdom.near(request)):
            from .tuning import tune

            tune(request, machine=machine)
            machine = machine_for(request)
        return decide(request, machine, known, strategy)
    sources = _sources(request, scheme, 1 if levels is None else levels)
    return decide_among(request, machine, known, sources, strategy, where_faster=where_faster)


def plan_for(
    request: Request,
    scheme: SchemeLike | Sequence[Any] = AUTO,
    levels: int | None = None,
    *,
    strategy: str | None = None,
    where_faster: bool = False,
    machine: Machine | None = None,
) -> Plan:
    """The plan that `matmul` uses for such a request; `machine` stands for the one that it would run on.

    Raises:
        PlanError, VerificationError: as `matmul`.
    """
    if machine is not None:
        return decision_for(request, scheme, levels, strategy=strategy, where_faster=where_faster, machine=machine).plan
    near = class_request(request)
    key = _key(near, scheme, levels, strategy, where_faster)
    decision = plan_cache.get(key)
    if decision is None:
        found = decision_for(near, scheme, levels, strategy=strategy, where_faster=where_faster)
        decision = plan_cache.put(key, found)
    plan: Plan = decision.plan
    try:
        return plan.for_request(request)
    except PlanError:  # the request is of the class and yet cannot be run like it: its own sizes decide
        return decision_for(request, scheme, levels, strategy=strategy, where_faster=where_faster).plan


def executor_for(
    request: Request,
    scheme: SchemeLike | Sequence[Any] = AUTO,
    levels: int | None = None,
    *,
    strategy: str | None = None,
) -> Executor:
    """The executor that `matmul` uses for such a request.

    Raises:
        PlanError, VerificationError: as `matmul`.
    """
    return _planned(request, scheme, levels, strategy)[1]


def class_request(request: Request) -> Request:
    """The request whose plan serves this one: on a GPU m is rounded up to six binary digits, so that a new number of
    rows needs no new plan; on a processor the request itself."""
    if request.device == "cpu" or not request.is_dense:
        return request
    step = 1 << max(request.m.bit_length() - 6, 0)
    return replace(request, m=-(-request.m // step) * step)


def _planned(
    request: Request,
    scheme: SchemeLike | Sequence[Any] = AUTO,
    levels: int | None = None,
    strategy: str | None = None,
    effort: str = "predict",
) -> tuple[Plan, Executor]:
    """The plan of a request and its executor, from the cache where they are there."""
    key = ("executor", effort, *_key(request, scheme, levels, strategy, False))
    found = plan_cache.get(key)
    if found is None:
        if effort == "predict":
            plan = plan_for(request, scheme, levels, strategy=strategy)
        else:
            plan = decision_for(request, scheme, levels, strategy=strategy, effort=effort).plan
        found = plan_cache.put(key, (plan, plan.build()))
    return cast("tuple[Plan, Executor]", found)


def _key(request: Request, scheme: Any, levels: int | None, strategy: str | None, where_faster: bool) -> Any:
    if isinstance(scheme, str) and scheme == AUTO:
        digests: Any = AUTO
    elif _is_one(scheme):
        digests = certified(scheme).digest
    else:
        digests = tuple(
            (certified(entry).digest,) if _is_one(entry) else tuple(certified(one).digest for one in entry)
            for entry in _entries(scheme)
        )
    threads = _thread_count() if request.device == "cpu" else _device_index()
    return request, digests, levels, strategy, where_faster, threads


def _device_index() -> int:
    torch = sys.modules.get("torch")
    return torch.cuda.current_device() if torch is not None and torch.cuda.is_available() else -1


def _sources(request: Request, scheme: SchemeLike | Sequence[Any], levels: int) -> list[Any]:
    """The programs of proven schemes: one for all levels, or those of every level."""
    if request.triangle is not None:
        from .causal.candidates import named_sources

        return named_sources(scheme, request.triangle)
    if request.mask is not None:
        from .causal.masks import MaskScheme

        proven = certified(cast(SchemeLike, scheme))
        return [MaskScheme(proven.name or proven.digest, proven.target, proven)]
    from .dense.given import given

    if _is_one(scheme):
        return list(given(certified(cast(SchemeLike, scheme)), levels))
    entries = [(certified(entry),) if _is_one(entry) else tuple(map(certified, entry)) for entry in _entries(scheme)]
    return list(given(entries, levels))


def _entries(scheme: object) -> Sequence[Any]:
    if not isinstance(scheme, Sequence) or isinstance(scheme, str | bytes):
        raise PlanError(
            f"scheme must be a name, a scheme, a pair (scheme, certificate), or a list of these, not {scheme!r}"
        )
    return scheme


def _replan_with_less_memory(
    request: Request, scheme: SchemeLike | Sequence[Any], levels: int | None, strategy: str | None, failed: Plan
) -> tuple[Plan, Executor]:
    """What runs from now on in place of a plan that ran out of memory.

    Raises:
        PlanError: the plan needed no memory of its own, or no scheme that was named does with less.
    """
    from .cpu.workspace import shared_pool

    shared_pool.trim()
    if not failed.workspace:
        raise PlanError(f"out of memory: {request} has no room for its result") from None
    limited = replace(request, max_workspace=failed.workspace // 2)
    found = decision_for(limited, scheme, levels, strategy=strategy)
    plan = replace(found.plan, request=request)
    key = _key(request, scheme, levels, strategy, False)
    plan_cache.put(key, replace(found, request=request, plan=plan))
    return plan_cache.put(("executor", "predict", *key), (plan, plan.build()))


def _is_one(scheme: object) -> bool:
    pair = isinstance(scheme, tuple) and len(scheme) == 2 and isinstance(scheme[1], Certificate | None)
    return isinstance(scheme, str | Scheme) or pair


def _is_classical(scheme: object, levels: int | None) -> bool:
    return levels == 0 or (not _is_one(scheme) and isinstance(scheme, Sequence) and not scheme)
