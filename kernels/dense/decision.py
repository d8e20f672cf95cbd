"""What `auto` would run on a GPU, which need not be here, and why."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import PlanError
from ...schemes_db.scheme import Scheme
from ..cpu.machine import read_profile
from ..cuda.h200 import NAME, h200
from ..cuda.machine import device_profile, device_reason
from ..planning.profile import Profile
from ..planning.strategy import Plan
from ..request import Request
from .cuda import HALF_MARGIN, INSTANT, MARGIN, NARROW, NARROW_MARGIN, Ladder, choose, estimated, vendor_plan

LISTED = 8
"""Schemes that are listed beside the chosen one."""


@dataclass(frozen=True)
class GpuDecision:
    """The plan of `auto`, that of the vendor's product, and what else was estimated, the fastest first."""

    profile: Profile
    plan: Plan
    plain: Plan
    schemes: tuple[Scheme, ...]
    considered: tuple[tuple[float, Ladder], ...]

    @property
    def gain(self) -> float:
        """How many times as fast as the vendor's product the plan is predicted to be."""
        if not self.plan.seconds or not self.plain.seconds:
            return math.nan
        return self.plain.seconds / self.plan.seconds

    @property
    def label(self) -> str:
        """The schemes by level."""
        return label_of(self.schemes)

    @property
    def reason(self) -> str:
        """Why this plan, in words."""
        if self.schemes:
            return f"predicted to take {1 / self.gain:.3f} of the time of the vendor's product"
        seconds = self.plain.seconds
        if seconds is None or self.profile.combine_rate is None:
            return f"the profile {self.profile.id} has no rates of {self.plan.request.dtype} products or of sums"
        if seconds < INSTANT:
            return f"the vendor's product takes less than {1e6 * INSTANT:.0f} us: launches alone would eat the gain"
        narrow = f"{1 - NARROW_MARGIN:.0%} where blocks are narrower than {NARROW}"
        half = f"{1 - HALF_MARGIN:.0%} in half precision"
        return f"no scheme is predicted to gain {1 - MARGIN:.0%} on the vendor's product ({narrow}, {half})"

    def terms(self) -> list[dict[str, Any]]:
        """The stages of the vendor's product, and of the plan where it is another."""
        ways = [("GEMM", self.plain)] + ([(self.label, self.plan)] if self.schemes else [])
        return [
            {
                "way": name,
                "stage": stage.name,
                "flops": float(stage.flops),
                "bytes": float(stage.bytes),
                "intensity": stage.flops / stage.bytes if stage.bytes else 0.0,
                "seconds": stage.seconds,
            }
            for name, found in ways
            for stage in found.stages
        ]


def label_of(schemes: tuple[Scheme, ...]) -> str:
    """Formats and ranks by level, outermost first."""
    return " / ".join(f"{scheme.target}:{scheme.rank}" for scheme in schemes) or "GEMM"


def gpu_decision(request: Request, profile: Profile) -> GpuDecision:
    """What `auto` does with a request on the GPU of a profile.

    Raises:
        PlanError: nothing fits the request's limits.
    """
    chosen, schemes = choose(request, profile)
    plain = vendor_plan(request, profile)
    known = plain.seconds is not None and profile.combine_rate is not None
    considered = estimated(request, profile)[:LISTED] if known else []
    return GpuDecision(profile, chosen, plain, schemes, tuple(considered))


def gpu_profile(name: str | None) -> Profile:
    """The profile in a file, or "nvidia-h200"; by default that of the GPU here, or the H200's where none is.

    Raises:
        PlanError: there is no such file, or the GPU here was not measured.
        SchemeFormatError: the file is no profile.
    """
    if name == NAME or (name is None and device_reason() is not None):
        return h200()
    if name is None:
        measured = device_profile(0)
        if measured is None:
            raise PlanError("the GPU here was not measured: run lcma doctor --profile --device cuda, or give --profile")
        return measured
    try:
        return read_profile(Path(name))
    except OSError as error:
        raise PlanError(f"profile {name}: {error.strerror or error}; name a file, or {NAME}") from None
