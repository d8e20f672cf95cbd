"""The profile to plan by: the stored one, or a first estimate made on the spot."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from ..machine import keep_profile, machine_profile
from ..profile import Profile
from ..request import Request

_ESTIMATES: dict[tuple[str, str], Profile] = {}


def profile_for(request: Request) -> Profile:
    """This machine's profile with rates of the request's dtype.

    Where nothing was measured yet (or the file is damaged) a second is spent on a first estimate,
    which is kept: `lcma doctor --profile` measures better.
    """
    known = machine_profile()
    if known.rates(request.dtype) is not None:
        return known
    if (known.id, request.dtype) not in _ESTIMATES:
        from .measure import measure

        found = measure((request.dtype,), quick=True)
        if known.source == "measured":
            found = replace(known, gemm=known.gemm + found.gemm)
        with contextlib.suppress(OSError):  # a home that cannot be written costs a measurement a process
            keep_profile(found)
        _ESTIMATES[known.id, request.dtype] = found
        _ESTIMATES[found.id, request.dtype] = found
    return _ESTIMATES[known.id, request.dtype]
