"""C = A B by a proven scheme."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from ..errors import PlanError
from ..schemes_db.certificate import Certificate
from ..schemes_db.scheme import Scheme
from .request import Request

if TYPE_CHECKING:
    from .strategy import Executor, Plan

Matrix = npt.NDArray[Any]
SchemeLike = str | Scheme | tuple[Scheme, Certificate | None]
"""A catalogue name, a scheme, or a scheme with the certificate that came with it."""

KEPT_PLANS = 256

_lock = threading.Lock()
_certified: dict[str, Certificate] = {}
_executors: OrderedDict[Any, tuple[Plan, Executor]] = OrderedDict()


def matmul(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    scheme: SchemeLike | Sequence[Any] = "strassen",
    levels: int = 1,
    out: Matrix | None = None,
) -> Matrix:
    """The product of a (..., M, K) and b (..., K, N) by a proven scheme, recursed `levels` times.

    `scheme` is a name of the catalogue, a scheme, a pair (scheme, certificate), or a list with an
    entry for every level, of which each may again be a list: the scheme for the half products and
    that for the full ones. A scheme without a fitting certificate is proven first. Sizes need not
    be multiples of the grid; leading sizes broadcast as in numpy. `levels=0` is numpy's product.
    Where the scheme's target calls a part of a or b absent it is never read (it may hold NaN), and
    what the target does not want of C comes out as zero.

    dtypes float32, float64 and int64 (exact modulo 2^64); both operands the same.

    Raises:
        PlanError: the operands do not fit each other or the scheme, or the scheme holds over Z2 only.
        VerificationError: the scheme does not compute its target.
    """
    a, b = np.asarray(a), np.asarray(b)
    request = Request.of(a, b, out)
    if _nothing_to_do(scheme, levels):
        return np.matmul(a, b, out=out)
    return executor_for(request, scheme, levels).run(a, b, out)


def executor_for(request: Request, scheme: SchemeLike | Sequence[Any] = "strassen", levels: int = 1) -> Executor:
    """The executor that `matmul` uses for such a request; the last 256 are kept.

    Raises:
        PlanError, VerificationError: as `matmul`.
    """
    return _planned(request, scheme, levels)[1]


def plan_for(request: Request, scheme: SchemeLike | Sequence[Any] = "strassen", levels: int = 1) -> Plan:
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
    scheme, certificate = (scheme, None) if isinstance(scheme, Scheme) else scheme
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


def _planned(request: Request, scheme: SchemeLike | Sequence[Any], levels: int) -> tuple[Plan, Executor]:
    from .decide import plan

    entries = _entries(scheme)
    digests = (
        entries.digest
        if isinstance(entries, Scheme)
        else tuple(tuple(one.digest for one in entry) for entry in entries)
    )
    key = (request, digests, levels)
    with _lock:
        if key in _executors:
            _executors.move_to_end(key)
            return _executors[key]
    chosen = plan(request, entries, levels)
    planned = chosen, chosen.build()
    with _lock:
        _executors[key] = planned
        while len(_executors) > KEPT_PLANS:
            _executors.popitem(last=False)
    return planned


def _entries(scheme: SchemeLike | Sequence[Any]) -> Scheme | list[tuple[Scheme, ...]]:
    """The proven schemes: one for all levels, or those of every level."""
    if _is_one(scheme):
        return certified(cast(SchemeLike, scheme))
    entries = cast(Sequence[Any], scheme)
    return [(certified(entry),) if _is_one(entry) else tuple(map(certified, entry)) for entry in entries]


def _is_one(scheme: object) -> bool:
    pair = isinstance(scheme, tuple) and len(scheme) == 2 and isinstance(scheme[1], Certificate | None)
    return isinstance(scheme, str | Scheme) or pair


def _nothing_to_do(scheme: object, levels: int) -> bool:
    return levels == 0 or (not _is_one(scheme) and isinstance(scheme, Sequence) and not scheme)
