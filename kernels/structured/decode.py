"""Products of block low-rank matrices with few columns: one launch that reads every weight once.

Its programs meet at a barrier between two stages: it has a counter, and memory by which the stages hand over.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..arrays import torch
from ..cuda.launch import Repeated
from ..cuda.stack import programs_of
from ..measured import measured
from ..planning.strategy import Parameters
from .block_low_rank import Blast, BlockLowRank, Monarch
from .blocks import Factors, Tensor
from .pattern import Pattern
from .tiles import power_above, strides_of

MOST_COLUMNS = 2
"""Maximum number of columns of the kernel: with four `strided` was faster (docs/benchmarks/removed.md)."""

REGISTERS = 65536
"""Registers of a multiprocessor: all programs of a joined launch must be resident."""

APART = 32
"""Distance of the counters of barriers in int32: a cache line each."""

SLOTS = 4096
"""Maximum number of counters of a device."""

PRICES = measured("structured.decode")


@dataclass(frozen=True)
class DecodeTile:
    """Launch parameters: programs per multiprocessor, warps per program, weights per tile, and prefetched items.

    Before a program waits for the others, it prefetches the weights of its first `ahead` items of the second stage.
    """

    programs: int = 4
    warps: int = 4
    weights: int = 4096
    ahead: int = 2

    @property
    def parameters(self) -> Parameters:
        """The parameters of a candidate, sorted by name."""
        return tuple((name, getattr(self, name)) for name in ("ahead", "programs", "warps", "weights"))


DECODE_TILE = DecodeTile()

DECODE_TILES = (
    DECODE_TILE,
    DecodeTile(8, 4, 2048),
    DecodeTile(2, 8, 8192),
    DecodeTile(4, 4, 4096, 0),
    DecodeTile(2, 4, 4096),
    DecodeTile(1, 8, 4096),
)
"""Tiles that `lcma tune` measures: another number of programs per multiprocessor hides other memory latencies, and
fewer ones wait less for each other, which decides where the weights take about 1 MB."""


def multiply_few(
    structure: BlockLowRank, factors: Factors, x: Tensor, out: Tensor, tile: DecodeTile = DECODE_TILE
) -> None:
    """Compute out (rows, n) = W x for x (cols, n) of n <= MOST_COLUMNS columns, any strides, in one launch.

    For CPU tensors, whose programs the interpreter runs sequentially, each stage is a launch.
    """
    n, last = x.shape[1], structure.patterns[0]
    launches = _launches(structure, n, x.dtype, x.device, (strides_of(x), strides_of(out)), tile)
    size = last.blocks * n * last.c
    handed, counter = barrier_memory(x, size) if len(launches) == 1 else (x.new_empty(size),) * 2
    for launch in launches:
        launch(factors[-1], factors[1], factors[0], x, handed, out, counter)


@lru_cache(maxsize=1024)
def _launches(
    structure: BlockLowRank, n: int, dtype: Any, device: Any, strides: Any, tile: DecodeTile
) -> list[Repeated]:
    """Return the launches of `multiply_few` by the strides of X and the result: one of both stages, or one a stage."""
    from .decode_kernel import multiply_few_columns

    last, (x_strides, (row, col)) = structure.patterns[0], strides
    programs, fixed, options = launch_of(structure, n, programs_of(device), tile)
    interleaved = isinstance(structure, Monarch) and structure.interleaved
    block, row = (row, last.blocks * row) if interleaved else (last.b * row, row)
    fixed |= {"n": n, "programs": programs, "x_strides": x_strides, "y_strides": (block, row, col)}
    options["launch_cooperative_grid"] = joined = programs > 1 and device.type != "cpu"
    tensors = "v", "scales", "u", "x", "z", "y", "counter"
    return [
        Repeated(multiply_few_columns, (programs,), tensors, FIRST=first, LAST=second, **fixed, **options)
        for first, second in (((True, True),) if joined else ((True, False), (False, True)))
    ]


def launch_of(
    structure: BlockLowRank, n: int, processors: int, tile: DecodeTile
) -> tuple[int, dict[str, Any], dict[str, Any]]:
    """Return the total programs, the sizes and constants, and the compiler's options of a launch for n columns.

    It is for a GPU of so many multiprocessors.
    """
    first, last = structure.patterns[-1], structure.patterns[0]
    programs, mixing = tile.programs * processors, isinstance(structure, Blast)
    if mixing:
        b1, b2, rows1 = first.blocks, last.blocks, 1
        inner1 = inner_tile(first.c, tile.weights // power_above(b1))
    else:
        (b1, b2), (rows1, inner1) = (1, 1), few_tile(first, programs, tile.weights)
    rows2, inner2 = few_tile(last, programs, tile.weights)
    block, minor, group = (structure.rank, n * last.c, last.blocks) if isinstance(structure, Monarch) else (0, 0, 1)
    fixed: dict[str, Any] = {"first": (first.blocks, first.b, first.c), "second": (last.blocks, last.b, last.c)}
    fixed |= {"z_strides": (block, minor, last.c)}
    fixed |= {"GROUP": group, "MIX": mixing, "N": power_above(n), "AHEAD": tile.ahead}
    fixed |= {"B1": b1, "B2": b2, "L": power_above(b1), "M": power_above(b2)}
    fixed |= {"ROWS1": rows1, "K1": inner1, "ROWS2": rows2, "K2": inner2}
    most = min(255, REGISTERS // (32 * tile.warps * tile.programs) // 8 * 8)
    return programs, fixed, {"num_warps": tile.warps, "maxnreg": most}


def few_tile(factor: Pattern, programs: int, weights: int) -> tuple[int, int]:
    """Return the rows and inner elements of a tile of about `weights` elements.

    The programs take items of so many rows in rounds; a round costs the reads of its rows and as long as
    `PRICES.round` more weights.
    """

    def weights_read(rows: int) -> int:
        items = factor.blocks * -(-factor.b // rows)
        return -(-items // programs) * (PRICES.round + rows * factor.c)

    rows = min((rows for rows in (8, 4, 2, 1) if rows <= weights // 16), key=weights_read)
    return rows, inner_tile(factor.c, weights // rows)


def inner_tile(k: int, most: int) -> int:
    """Return the power of two of at least 16 that covers k, or `most` if that is smaller."""
    return max(16, min(most, power_above(k)))


_lock = threading.Lock()
_slabs: dict[Any, Tensor] = {}
_taken: dict[Any, dict[Any, int]] = {}
_of_stream: dict[tuple[Any, int, Any], tuple[Tensor, Tensor]] = {}


def barrier_memory(like: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Return memory of at least `size` elements of a tensor's dtype, and a zeroed int32, for the stages of one launch.

    No other launch uses them at the same time: those of one stream share them, since each is done before the next one
    begins, and a launch captured by a CUDA graph has its own, since graphs may run concurrently. The barrier restores
    the low bits of the counter; after SLOTS counters a graph zeroes new ones itself, with one more launch.
    """
    device = like.device
    if device.type == "meta":
        return like.new_empty(size), torch.empty(1, dtype=torch.int32, device=device)
    capturing = torch.cuda.is_current_stream_capturing()
    stream = torch._C._cuda_getCurrentRawStream(device.index)  # of torch.cuda.current_stream, in a tenth of its time
    key = device, stream, like.dtype
    if not capturing and (known := _of_stream.get(key)) is not None and known[0].numel() >= size:
        return known
    found = like.new_empty(size), _counter(device, stream, capturing)
    if not capturing:
        _of_stream[key] = found
    return found


def _counter(device: Any, stream: int, capturing: bool) -> Tensor:
    """Return the counter of a stream, or a new one for a captured launch."""
    with _lock:
        if device not in _slabs:
            if capturing:
                return torch.zeros(1, dtype=torch.int32, device=device)
            _slabs[device] = torch.zeros(SLOTS * APART, dtype=torch.int32, device=device)
            torch.cuda.synchronize(device)
            _taken[device] = {}
        taken = _taken[device]
        key = ("captured", len(taken)) if capturing else stream
        if key not in taken:
            if len(taken) >= SLOTS:
                return torch.zeros(1, dtype=torch.int32, device=device)
            taken[key] = len(taken)
        place = taken[key] * APART
        return _slabs[device][place : place + 1]
