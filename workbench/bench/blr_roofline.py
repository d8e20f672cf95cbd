"""The roofline model of the paper's Table 2, with the cache: seconds of a layer in the papers' form on a device.

Source: Abillama et al., "Memory-Efficient Acceleration of Block Low-Rank Foundation Models on Resource Constrained
GPUs", section 3 and Table 2.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...kernels.structured.block_low_rank import BlockLowRank, LowRank


@dataclass(frozen=True)
class Roof:
    """Flops per second, bytes per second of memory, and bytes of the last cache."""

    flops: float
    bandwidth: float
    cache: int = 0


A40 = Roof(149.7e12, 696e9, 6 << 20)
"""NVIDIA A40: bfloat16 on tensor cores, memory and L2, from its data sheet."""


def dense_seconds(rows: int, cols: int, n: int, item: int, roof: Roof) -> float:
    """Return the seconds of X W^T for a dense weight."""
    moved = item * (n * cols + cols * rows + n * rows)
    return max(2.0 * n * rows * cols / roof.flops, moved / roof.bandwidth)


def structured_seconds(
    structure: BlockLowRank, n: int, item: int, roof: Roof, permuted: bool = True, in_cache: bool = True
) -> float:
    """Return the seconds of a structured product: operands are read once, intermediate results written and read.

    With `permuted` Monarch's and BLAST's intermediate results are also copied to another order, as in the papers'
    baselines. With `in_cache` results that fit the cache cause no traffic.
    """
    moved = n * structure.cols + structure.parameters + n * structure.rows
    passes = 4 if permuted and not isinstance(structure, LowRank) else 2
    for elements in structure.intermediates():
        if not in_cache or elements * n * item > roof.cache:
            moved += passes * elements * n
    return max(structure.flops(n) / roof.flops, item * moved / roof.bandwidth)
