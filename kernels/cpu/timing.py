"""Predicted seconds of stages with known operations and bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ..dtypes import dtype_of
from ..planning.cost_model import seconds_or_none
from ..planning.machine import Machine
from ..planning.strategy import Stage


def priced(stages: Sequence[Stage], dtype: str, machine: Machine, mode: str = "whole") -> list[Stage]:
    """Return the stages with seconds by the machine's cost model; None if it has no rate."""

    def seconds(stage: Stage) -> float | None:
        if stage.product is None:
            found = machine.costs.combine(stage.bytes, stage.flops)
        else:
            if dtype == "int8":
                return None  # products by float32 in chunks: not measured
            full = 2.0 * dtype_of(dtype).parts ** 2 * math.prod(stage.product)
            found = machine.costs.gemm(dtype, *stage.product, count=stage.flops / full if full else 0, mode=mode)
        return seconds_or_none(found)

    return [replace(stage, seconds=seconds(stage)) for stage in stages]
