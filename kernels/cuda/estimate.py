"""The shipped profile of one NVIDIA H200, and profiles of GPUs that were not measured, or not completely.

The H200's is used for plans if no GPU is present or none was measured, and scaled by what is known of others. Its rates
are this project's own measurements on one card at its 700 W: medians of steady runs on random numbers for cubes, and
for rectangles the seconds of 1919 plans for 160 products (21 November 2026) minus those of the sums.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from ..planning.profile import ESTIMATED, GemmRate, Profile, published
from .cost_model import MULTIPROCESSORS, CudaCostModel

NAME = "nvidia-h200"

HERTZ, BYTES = 1.98e9, 4.8e12
"""The clock of the shipped NVIDIA H200 and its memory's bandwidth, as the device reports them: not as measured."""


def h200() -> Profile:
    """Return the profile: torch 2.11, CUDA 13.0, one card."""
    return published()[NAME]


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


def completed(profile: Profile) -> Profile:
    """Return a published profile that has but one rate a dtype with the rates of all sizes and of stacks.

    Those of the NVIDIA H200 are scaled: the best rate of full waves of tiles becomes the published one, waves are those
    of the multiprocessors, and sums and the memory traffic beside products go by the bandwidth. What a product takes
    longer on the H200 than its waves is latency, which is the same elsewhere. Other profiles are returned as they are.
    """
    base = h200()
    known = {row.dtype: row.rate for row in profile.gemm}
    if len(known) < len(profile.gemm) or MULTIPROCESSORS not in dict(profile.versions):
        return profile
    source, target = CudaCostModel(base), CudaCostModel(profile)
    rows = [row for row in base.gemm if row.dtype in known]
    best = {dtype: max(_rate_of_waves(row, source) for row in rows if row.dtype == dtype) for dtype in known}
    scaled = tuple(replace(row, rate=_scaled(row, source, target, best[row.dtype], known[row.dtype])) for row in rows)
    wider = (profile.bandwidth or 0.0) / (base.bandwidth or 1.0)
    notes = f"{profile.notes} Sizes and stacks: scaled from the rates of {base.hardware}."
    sums = (base.combine_rate or 0.0) * wider
    return replace(profile, gemm=scaled, combine_rate=sums, call_overhead=base.call_overhead, notes=notes)


def _rate_of_waves(row: GemmRate, model: CudaCostModel) -> float:
    """Return the flops per second of full waves of tiles that a measured product implies."""
    products, work, busy = _multiplying(row, model)
    return work / busy / float(model.part(*products))


def _scaled(row: GemmRate, source: CudaCostModel, target: CudaCostModel, best: float, rate: float) -> float:
    """Return the rate of a measured product on a GPU whose full waves reach `rate` where they reach `best` here."""
    products, work, busy = _multiplying(row, source)
    latency = busy - work / (best * float(source.part(*products)))
    busy = work / (rate * float(target.part(*products)))
    return work / (busy + latency + float(target.beside(*products[:-1])))


def _multiplying(row: GemmRate, model: CudaCostModel) -> tuple[tuple[str, int, int, int, int, str], float, float]:
    """Return a row's products as arguments of `part`, the flops of all, and the seconds in which they multiply."""
    kind, _, number = row.mode.partition(" ")
    products = row.dtype, row.m, row.k, row.n, int(number or 1), kind
    work = 2.0 * math.prod(products[1:-1])
    seconds = work / row.rate
    return products, work, seconds - min(float(model.beside(*products[:-1])), seconds / 2)
