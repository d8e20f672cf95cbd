"""Predicted seconds of stages, where the machine's figures are known."""

from __future__ import annotations

from dataclasses import replace

from ..planning.profile import Profile
from ..planning.strategy import Stage


def timed(stages: list[Stage], dtype: str, profile: Profile, mode: str = "whole", looped: bool = False) -> list[Stage]:
    """The stages with seconds: products by the measured GEMM rate of the mode, sums by the measured combine rate.

    `looped` sums go through ordinary stores into buffers of their own: they are taken at the rate of
    a plain copy.
    """
    moving = profile.bandwidth if looped else profile.combine_rate

    def seconds(stage: Stage) -> float | None:
        if stage.product is None:
            return None if moving is None else stage.bytes / moving
        rate = profile.gemm_rate(dtype, *stage.product, mode=mode)
        return None if rate is None else stage.flops / rate

    return [replace(stage, seconds=seconds(stage)) for stage in stages]
