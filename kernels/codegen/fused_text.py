"""The text of a Triton module that computes the products of a group and adds them to blocks of C without storing them.

A group is the tiles of all products, and of all blocks of C, at one position (x, z) of the blocks. The kernel is
persistent; tiles of the operands are loaded by the tensor memory accelerator.

Source: FalconGEMM (arXiv 2605.06057), Algorithm 2, Split-Group Parallelism and Cache-Aware Scheduling; the order of the
products is `accumulator_order`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from .accumulators import Accumulation, AccumulatorOrder
from .maps import Block


@dataclass(frozen=True)
class Fused:
    """The specification of a fused kernel: the products in order, and the positions of the blocks of C.

    `placed`: C is written in place, which requires whole tiles; else its blocks are written as slabs of a stack.
    `split`: groups are divided between two programs, to balance the load.
    """

    order: AccumulatorOrder
    blocks: tuple[Block, ...]
    placed: bool
    split: bool


_HEAD = '''\
"""{products} products into {blocks} blocks, at most {peak} accumulators, {place}, groups {groups}."""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["items", "rounds", "programs"])
def fused(
    a,
    b,
    c,
    saved,
    flags,
    items,
    height,
    inner,
    width,
    rounds,
    programs,
    GROUP: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
):
    program = tl.program_id(0)
    down, across = tl.cdiv(height, M), tl.cdiv(width, N)
    places = down * across
'''

_WHOLE = """\
    for group in tl.range(program, items * places, programs):
"""

_SPLIT = """\
    # Rounds of whole groups, in which all programs work the same product at the same time; the rest is dealt out
    # evenly by products. The beginning of a group that the next program ends comes before this program's whole groups,
    # the end of one that the program before began comes last: nobody waits long, and only for a lower number.
    units = (items * places - rounds * programs) * {products}
    begin = program * units // programs
    end = (program + 1) * units // programs
    heads = (end % {products} > 0).to(tl.int32)
    tails = (begin % {products} > 0).to(tl.int32)
    fulls = end // {products} - tl.cdiv(begin, {products})
    own = saved + (program.to(tl.int64) * {peak}) * (M * N) + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    for turn in tl.range(0, rounds + heads + fulls + tails):
        late = turn - rounds
        group = rounds * programs + tl.cdiv(begin, {products}) + late - heads
        first = 0
        last = {products}
        if late < 0:
            group = program + turn * programs
        elif late < heads:
            group = rounds * programs + end // {products}
            last = end % {products}
        elif late == heads + fulls:
            group = rounds * programs + begin // {products}
            first = begin % {products}
            while tl.atomic_add(flags + program - 1, 0, sem="acquire") == 0:
                pass
"""

_PLACE = """\
        item, place = group // places, group % places
        top = place // (GROUP * across) * GROUP
        high = tl.minimum(down - top, GROUP)
        row = (top + place % (GROUP * across) % high) * M
        col = place % (GROUP * across) // high * N
"""


def fused_text(work: Fused) -> str:
    """Return a self-contained module with one kernel, `fused`.

    `a`, `b` and `c` are tensor descriptors of stacks, with tiles (1, M, K), (1, K, N) and (1, M, N): (items products,
    height, inner) and (items products, inner, width), item by item in the order of the program, and C, (items, rows,
    cols), or its blocks (items blocks, height, width). `saved`: accumulators of the divided groups, float32,
    (programs, peak, M, N); `flags`: a zero for every program. Divided groups need (items places) >= `programs`.
    """
    count, peak = len(work.order.steps), work.order.peak
    text = _HEAD.format(
        products=count,
        blocks=len(work.blocks),
        peak=peak,
        place="in their place" if work.placed else "as slabs",
        groups="cut" if work.split else "whole",
    )
    text += _SPLIT.format(products=count, peak=peak) if work.split else _WHOLE
    text += _PLACE
    if work.split:
        # All accumulators are initialized first, as later assignments are inside conditions.
        text += "".join(f"        c{i} = tl.zeros((M, N), tl.float32)\n" for i in range(len(work.blocks)))
    for position, step in enumerate(work.order.steps):
        text += "".join(f"        {line}\n" for line in _lines(work, position, step))
    if work.split:
        text += f"        if last < {count}:\n            tl.debug_barrier()\n"
        text += '            tl.atomic_xchg(flags + program, 1, sem="release")\n'
    return text


def _lines(work: Fused, position: int, step: Accumulation) -> Iterator[str]:
    count = len(work.order.steps)
    weights = dict(step.column)
    pivot, weight = step.pivot, weights[step.pivot]
    others = [(block, factor) for block, factor in step.column if block != pivot]
    if work.split and step.live:
        yield f"if first == {position}:"
        for place, block in enumerate(step.live):
            yield f"    c{block} = tl.load(own + ({place} - {work.order.peak}) * (M * N))"
        yield f"if last == {position}:"
        for place, block in enumerate(step.live):
            yield f"    tl.store(own + {place} * (M * N), c{block})"
    if step.begins:
        yield f"c{pivot} = tl.zeros((M, N), tl.float32)"
    else:
        for block, factor in others:
            yield f"c{block} = {_plus(f'c{block}', -factor / weight, f'c{pivot}')}"
        if weight != 1:
            yield f"c{pivot} = {_times(1 / weight, f'c{pivot}')}"
    stop = "inner"
    if work.split:
        yield f"stop = tl.where((first <= {position}) & (last > {position}), inner, 0)"
        stop = "stop"
    slab = f"item * {count} + {step.product}"
    yield f"for k in range(0, {stop}, K):"
    yield f"    x = a.load([{slab}, row, k]).reshape(M, K)"
    yield f"    y = b.load([{slab}, k, col]).reshape(K, N)"
    yield f"    c{pivot} = tl.dot(x, y, c{pivot})"
    if step.begins:
        for block, factor in others:
            fresh = block in step.begins
            yield f"c{block} = {_times(factor, f'c{pivot}') if fresh else _plus(f'c{block}', factor, f'c{pivot}')}"
        if weight != 1:
            yield f"c{pivot} = {_times(weight, f'c{pivot}')}"
    else:
        if weight != 1:
            yield f"c{pivot} = {_times(weight, f'c{pivot}')}"
        for block, factor in others:
            yield f"c{block} = {_plus(f'c{block}', factor / weight, f'c{pivot}')}"
    if not step.finishes:
        return
    indent = ""
    if work.split:
        yield f"if (first <= {position}) & (last > {position}):"
        indent = "    "
    for block in step.finishes:
        if work.placed:
            down, across = work.blocks[block]
            corner = f"item, {down} * height + row, {across} * width + col"
        else:
            corner = f"item * {len(work.blocks)} + {block}, row, col"
        yield f"{indent}c.store([{corner}], c{block}.to(c.dtype).reshape(1, M, N))"


def _times(factor: Fraction, value: str) -> str:
    if abs(factor) == 1:
        return value if factor == 1 else f"-{value}"
    return f"{float(factor)!r} * {value}"


def _plus(total: str, factor: Fraction, value: str) -> str:
    return f"{total} {'-' if factor < 0 else '+'} {_times(abs(factor), value)}"
