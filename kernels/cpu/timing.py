"""Predicted seconds of stages, where the machine's figures are known."""

from __future__ import annotations

from dataclasses import replace

from ..profile import Profile
from ..strategy import Stage


def timed(stages: list[Stage], dtype: str, profile: Profile) -> list[Stage]:
    """The stages with seconds: products by the measured GEMM rate, sums by the measured combine rate."""
    return [replace(stage, seconds=_seconds(stage, dtype, profile)) for stage in stages]


def _seconds(stage: Stage, dtype: str, profile: Profile) -> float | None:
    if stage.product is None:
        return None if profile.combine_rate is None else stage.bytes / profile.combine_rate
    rate = profile.gemm_rate(dtype, *stage.product)
    return None if rate is None else stage.flops / rate
