"""The profile of a GPU that was never measured: a shipped one of the nearest GPU, scaled by what the device reports."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..planning.profile import ESTIMATED, Profile
from ..planning.profiles import published
from .cost_model import MULTIPROCESSORS
from .h200 import h200

HERTZ, BYTES = 1.98e9, 4.8e12
"""The clock of the shipped NVIDIA H200 and its memory's bandwidth, as the device reports them: not as measured."""


def device_profile(name: str, properties: Any) -> Profile:
    """Return the shipped profile of a GPU of this name, else an estimate from its properties as torch reports them.

    Rates of products are scaled by multiprocessors and clock, those of sums by the memory's clock and width. Products
    in float64 are assumed as fast as on the shipped GPU by multiprocessor, which is wrong for those of graphics cards:
    an estimate orders candidates, and is scaled to what calls take.
    """
    for shipped in published().values():
        if shipped.hardware == name and dict(shipped.versions).get(MULTIPROCESSORS):
            return shipped
    base = h200()
    units = properties.multi_processor_count
    clock = getattr(properties, "clock_rate", 0) * 1e3 or HERTZ
    moved = getattr(properties, "memory_clock_rate", 0) * 1e3 * 2 * getattr(properties, "memory_bus_width", 0) / 8
    faster = units / int(dict(base.versions)[MULTIPROCESSORS]) * clock / HERTZ
    wider = moved / BYTES if moved else faster
    versions = {**dict(base.versions), MULTIPROCESSORS: str(units)}
    return replace(
        base,
        hardware=name,
        versions=tuple(versions.items()),
        gemm=tuple(replace(row, rate=row.rate * faster) for row in base.gemm),
        combine_rate=(base.combine_rate or 0.0) * wider,
        bandwidth=(base.bandwidth or 0.0) * wider,
        source=ESTIMATED,
        notes=f"estimated from the rates of {base.hardware}; lcma doctor --profile --device cuda measures",
    )
