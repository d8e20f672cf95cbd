"""The part that all generated kernels share; its text is included at the beginning of each.

A kernel applies a linear map to blocks of matrices, row by row. `sweep` computes one segment of one
row: it is emitted as straight-line LLVM code on vectors as wide as the processor's registers, in
which the sums stay in registers and every result is stored once, as soon as it is computed. Plain
loops would leave the vectoriser to prove that dozens of pointers do not overlap, which it does not attempt.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

LOWER = 2
UPPER = 3
ELEMENTS = {
    "float32": (ir.FloatType(), 4),
    "float64": (ir.DoubleType(), 8),
    "int32": (ir.IntType(32), 4),
    "int64": (ir.IntType(64), 8),
    "bfloat16": (ir.IntType(16), 2),
}

Body = Callable[["Arithmetic", Callable[[int], Any], Callable[[int, Any], None]], None]


class Arithmetic:
    """Emits sums of multiples of one element type, a scalar or a vector of `lanes`.

    bfloat16 is computed in float32, of which it is the upper 16 bits.
    """

    def __init__(self, builder: Any, dtype: str, lanes: int) -> None:
        self.builder, self.lanes = builder, lanes
        self.half = dtype == "bfloat16"
        self.stored = self._wide(ELEMENTS[dtype][0])
        self.type = self._wide(ir.FloatType()) if self.half else self.stored
        self.bits = 32 if dtype == "int32" else 64
        self.floating = not dtype.startswith("int")

    def _wide(self, element: Any) -> Any:
        return ir.VectorType(element, self.lanes) if self.lanes > 1 else element

    def _fill(self, kind: Any, value: float) -> Any:
        return ir.Constant(kind, [value] * self.lanes if self.lanes > 1 else value)

    def constant(self, value: float) -> Any:
        if not self.floating:
            half = 1 << (self.bits - 1)
            value = (int(value) + half) % (2 * half) - half
        return self._fill(self.type, value)

    def widened(self, value: Any) -> Any:
        """Convert a loaded value to the type of the arithmetic."""
        if not self.half:
            return value
        bits = self._wide(ir.IntType(32))
        shifted = self.builder.shl(self.builder.zext(value, bits), self._fill(bits, 16))
        return self.builder.bitcast(shifted, self.type)

    def narrowed(self, value: Any) -> Any:
        """Convert a value to the stored type: bfloat16 is rounded to nearest, ties to even; NaN stays NaN."""
        if not self.half:
            return value
        builder, bits = self.builder, self._wide(ir.IntType(32))
        raw = builder.bitcast(value, bits)
        odd = builder.and_(builder.lshr(raw, self._fill(bits, 16)), self._fill(bits, 1))
        rounded = builder.add(raw, builder.add(odd, self._fill(bits, 0x7FFF)))
        quiet = builder.or_(raw, self._fill(bits, 0x400000))
        kept = builder.select(builder.fcmp_unordered("uno", value, value), quiet, rounded)
        return builder.trunc(builder.lshr(kept, self._fill(bits, 16)), self.stored)

    def scaled(self, coefficient: float, value: Any) -> Any:
        if coefficient == 1:
            return value
        if self.floating:
            return self.builder.fmul(self.constant(coefficient), value, flags=("contract",))
        return self.builder.mul(self.constant(coefficient), value)

    def lin(self, *terms: tuple[float, Any]) -> Any:
        """Emit the sum of coefficient times value; a term with coefficient 1 is first, which saves a negation."""
        ordered = sorted(terms, key=lambda term: term[0] != 1)
        total = self.scaled(*ordered[0])
        for coefficient, value in ordered[1:]:
            minus = coefficient == -1
            addend = value if minus else self.scaled(coefficient, value)
            if self.floating:
                operation = self.builder.fsub if minus else self.builder.fadd
                total = operation(total, addend, flags=("contract",))
            else:
                total = (self.builder.sub if minus else self.builder.add)(total, addend)
        return total


def _emit_loop(
    builder: Any,
    pointers: tuple[list[Any], list[Any]],
    span: tuple[Any, Any],
    dtype: str,
    lanes: int,
    body: Body,
    streaming: bool,
) -> None:
    """Emit a loop over elements span[0] <= i < span[1] in steps of `lanes` that loads, combines and stores."""
    sources, targets = pointers
    element, size = ELEMENTS[dtype]
    index_type = ir.IntType(64)
    with cgutils.for_range_slice(builder, span[0], span[1], ir.Constant(index_type, lanes), index_type) as (index, _):
        arithmetic = Arithmetic(builder, dtype, lanes)

        def at(pointer: Any) -> Any:
            place = builder.gep(builder.inttoptr(pointer, element.as_pointer()), [index], source_etype=element)
            return builder.bitcast(place, arithmetic.stored.as_pointer())

        def load(source: int) -> Any:
            return arithmetic.widened(builder.load(at(sources[source]), typ=arithmetic.stored, align=size))

        def store(target: int, value: Any) -> None:
            align = lanes * size if streaming else size
            made = builder.store(arithmetic.narrowed(value), at(targets[target]), align=align)
            if streaming:
                made.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))

        body(arithmetic, load, store)


def straight_line(dtype: str, sources: int, targets: int, vector_bytes: int, body: Body) -> Any:
    """Return the intrinsic sweep(table, count, streaming) of a straight-line body.

    `table` holds the addresses of the sources, then those of the targets; `count` elements from
    these addresses are computed. `streaming` != 0 requests stores that bypass the caches, for which every
    target address must be a multiple of `vector_bytes`.
    """
    lanes = vector_bytes // ELEMENTS[dtype][1]

    @intrinsic
    def sweep(typing_context, table, count, streaming):
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            index_type = ir.IntType(64)
            array = context.make_array(signature.args[0])(context, builder, args[0])
            places = [
                builder.gep(array.data, [ir.Constant(index_type, i)], source_etype=index_type)
                for i in range(sources + targets)
            ]
            pointers = [builder.load(place, typ=index_type) for place in places]
            split = pointers[:sources], pointers[sources:]
            zero = ir.Constant(index_type, 0)
            whole = builder.and_(args[1], ir.Constant(index_type, -lanes))
            with builder.if_else(builder.icmp_signed("!=", args[2], zero)) as (stream, plain):
                with stream:
                    _emit_loop(builder, split, (zero, whole), dtype, lanes, body, True)
                with plain:
                    _emit_loop(builder, split, (zero, whole), dtype, lanes, body, False)
            _emit_loop(builder, split, (whole, args[1]), dtype, 1, body, False)
            return context.get_dummy_value()

        return types.void(table, types.int64, types.int64), codegen

    return sweep


def _clear(typing_context: Any, address: Any, count: Any) -> Any:
    """Zero `count` bytes starting at an address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = builder.inttoptr(args[0], ir.IntType(8).as_pointer())
        cgutils.memset(builder, place, args[1], 0)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


def _settle(typing_context: Any) -> Any:
    """Make the stores that bypassed the caches visible to other threads."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), codegen


clear: Any = intrinsic(_clear)
settle: Any = intrinsic(_settle)
sweep: Any = None
"""Set by the generated part."""

SIZE = 0
"""Bytes of an element; set by the generated part."""

PARTS = 1
"""Number of real components of an element: 2 for complex ones; set by the generated part."""

VECTOR_BYTES = 0
"""Bytes of a vector register; set by the generated part."""


def rows(addresses, strides, shapes, inputs, spare, cuts, streaming, first, last):
    """Compute block rows first <= row < last.

    For every block, `inputs` sources and then the targets, the arrays give the address, the row stride in
    bytes, and (kind, rows, columns); a block of kind LOWER has columns 0 <= c <= row only, UPPER
    columns c >= row. Elements outside of a source are read from spare[0], a row of zeros, and elements
    outside of a target are written to spare[1], a row that nobody reads; the missing triangle of a
    target inside its bounds is zeroed. `cuts` are the columns where some block ends, increasing,
    the last one the width of the blocks.
    """
    blocks = len(addresses)
    table = np.empty(blocks, np.int64)
    edges = np.empty(len(cuts) + 2, np.int64)
    triangles = False
    for block in range(blocks):
        triangles |= shapes[block, 0] >= LOWER
    for row in range(first, last):
        count = 0
        for cut in cuts:
            edges[count] = cut
            count += 1
        if triangles:
            for edge in range(row, row + 2):
                place = count
                while place > 0 and edges[place - 1] > edge:
                    edges[place] = edges[place - 1]
                    place -= 1
                edges[place] = edge
                count += 1
        start = 0
        for position in range(count):
            stop = min(edges[position], cuts[-1])
            if stop <= start:
                continue
            together = 0
            for block in range(blocks):
                kind = shapes[block, 0]
                inside = row < shapes[block, 1] and stop <= shapes[block, 2]
                if triangles:
                    inside = inside and (kind != LOWER or stop <= row + 1) and (kind != UPPER or start >= row)
                address = spare[0] if block < inputs else spare[1]
                if inside:
                    address = addresses[block] + row * strides[block] + start * SIZE
                table[block] = address
                together |= address if block >= inputs else 0
            sweep(table, (stop - start) * PARTS, streaming if together % VECTOR_BYTES == 0 else 0)
            start = stop
        if triangles:
            for block in range(inputs, blocks):
                line = addresses[block] + row * strides[block]
                if row < shapes[block, 1]:
                    if shapes[block, 0] == LOWER and row + 1 < shapes[block, 2]:
                        clear(line + (row + 1) * SIZE, (shapes[block, 2] - row - 1) * SIZE)
                    elif shapes[block, 0] == UPPER:
                        clear(line, min(row, shapes[block, 2]) * SIZE)
    settle()
