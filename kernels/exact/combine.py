"""Linear combinations of blocks: every block row is read from memory once, whatever the number of sums."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from ...jit import njit
from .bits import LINE_WORDS

_I32, _I64 = ir.IntType(32), ir.IntType(64)

LINE_BYTES = 8 * LINE_WORDS
"""Alignment of rows that are stored past the caches."""

LINES = 4
"""Cache lines of a sum held in registers at once."""


class _Xor:
    """Sums of words over GF(2)."""

    element, bytes, zero = _I64, 8, 0

    def added(self, builder: Any, total: Any, value: Any, index: Any) -> Any:
        return builder.xor(total, value)

    def finished(self, builder: Any, total: Any) -> Any:
        return total


class _Multiples:
    """Sums of multiples of floats, reduced to x - modulus * rint(x * inverse); both are 0 without reduction."""

    zero = 0.0

    def __init__(self, element: Any, values: Any, modulus: Any, inverse: Any) -> None:
        self.element, self.bytes = element, 8 if element == ir.DoubleType() else 4
        self._values, self._modulus, self._inverse = values, modulus, inverse

    def added(self, builder: Any, total: Any, value: Any, index: Any) -> Any:
        place = builder.add(self._values, builder.mul(index, ir.Constant(_I64, self.bytes)))
        factor = builder.load(builder.inttoptr(place, self.element.as_pointer()), typ=self.element)
        return builder.fadd(total, builder.fmul(value, broadcast(builder, factor, value.type)))

    def finished(self, builder: Any, total: Any) -> Any:
        kind = total.type
        lanes = kind.count if isinstance(kind, ir.VectorType) else 0
        name = "llvm.rint." + (f"v{lanes}" if lanes else "") + f"f{8 * self.bytes}"
        rint = builder.module.globals.get(name) or ir.Function(builder.module, ir.FunctionType(kind, [kind]), name)
        quotient = builder.call(rint, [builder.fmul(total, broadcast(builder, self._inverse, kind))])
        return builder.fsub(total, builder.fmul(quotient, broadcast(builder, self._modulus, kind)))


def broadcast(builder: Any, value: Any, kind: Any) -> Any:
    """Return the value broadcast to all lanes of a vector type, or unchanged for a scalar type."""
    if not isinstance(kind, ir.VectorType):
        return value
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(_I32, 0))
    places = ir.Constant(ir.VectorType(_I32, kind.count), [0] * kind.count)
    return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), places)


def _sum_rows(builder: Any, places: Any, length: Any, streaming: Any, arithmetic: Any) -> None:
    """Emit the sum of elements 0 <= j < length of a row; `places`: addresses of the table, its length, the target."""
    line = LINE_BYTES // arithmetic.bytes
    start = ir.Constant(_I64, 0)
    stream = builder.icmp_signed("!=", streaming, start)
    for lanes in (LINES * line, line):
        whole = builder.sub(length, builder.srem(builder.sub(length, start), ir.Constant(_I64, lanes)))
        _sum_stretch(builder, places, (start, whole), lanes, stream, arithmetic)
        start = whole
    # The rest is one last line ending at the end, partly summed again; a row shorter than a line is summed one by one.
    several = builder.icmp_signed("<=", ir.Constant(_I64, line), length)
    rest = builder.icmp_signed("<", start, length)
    with builder.if_then(rest), builder.if_else(several) as (overlapping, single):
        with overlapping:
            before = builder.sub(length, ir.Constant(_I64, line))
            _sum_stretch(builder, places, (before, length), line, None, arithmetic)
        with single:
            _sum_stretch(builder, places, (start, length), 1, None, arithmetic)


def _sum_stretch(builder: Any, places: Any, bounds: Any, lanes: int, stream: Any, arithmetic: Any) -> None:
    """Emit the sum of elements bounds[0] <= j < bounds[1], `lanes` at a time, kept in registers."""
    addresses, count, target = places
    element, size = arithmetic.element, arithmetic.bytes
    kind = ir.VectorType(element, lanes) if lanes > 1 else element
    nothing = ir.Constant(kind, [arithmetic.zero] * lanes if lanes > 1 else arithmetic.zero)
    total = cgutils.alloca_once(builder, kind)
    with cgutils.for_range_slice(builder, bounds[0], bounds[1], ir.Constant(_I64, lanes)) as (first, _):
        offset = builder.mul(first, ir.Constant(_I64, size))
        builder.store(nothing, total)
        with cgutils.for_range(builder, count, intp=_I64) as terms:
            place = builder.add(addresses, builder.mul(terms.index, ir.Constant(_I64, 8)))
            source = builder.add(builder.load(builder.inttoptr(place, _I64.as_pointer()), typ=_I64), offset)
            value = builder.load(builder.inttoptr(source, kind.as_pointer()), typ=kind, align=size)
            builder.store(arithmetic.added(builder, builder.load(total, typ=kind), value, terms.index), total)
        result = arithmetic.finished(builder, builder.load(total, typ=kind))
        at = builder.inttoptr(builder.add(target, offset), kind.as_pointer())
        if stream is None:
            builder.store(result, at, align=size)
        else:
            with builder.if_else(stream) as (past, plain):
                with past:
                    written = builder.store(result, at, align=LINE_BYTES)
                    written.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(_I32, 1)]))
                with plain:
                    builder.store(result, at, align=size)


def _address(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    return builder.ptrtoint(context.make_array(kind)(context, builder, array).data, _I64)


def _sum_rows_of(
    typing_context: Any,
    table: Any,
    values: Any,
    first: Any,
    terms: Any,
    modulus: Any,
    target: Any,
    length: Any,
    streaming: Any,
) -> Any:
    """Set `length` elements of `target` to the sum of the rows at the addresses table[:terms]; `terms` may be 0.

    Of floats it is the sum of multiples by values[first:first + terms], reduced with a modulus to the residue of least
    magnitude, as by `reduce_rows`; of words (values of uint64, not read) their XOR. With streaming != 0 stores
    bypass the caches; then `target` and the bytes of the row must be multiples of 64.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        addresses = _address(context, builder, signature.args[0], args[0])
        element = context.get_value_type(signature.args[1].dtype)
        arithmetic: Any = _Xor()
        if element != _I64:
            size = 8 if element == ir.DoubleType() else 4
            start = builder.mul(args[2], ir.Constant(_I64, size))
            factors = builder.add(_address(context, builder, signature.args[1], args[1]), start)
            zero, one = ir.Constant(element, 0.0), ir.Constant(element, 1.0)
            held = builder.fcmp_ordered("!=", args[4], zero)
            inverse = builder.select(held, builder.fdiv(one, args[4]), zero)
            arithmetic = _Multiples(element, factors, args[4], inverse)
        _sum_rows(builder, (addresses, args[3], args[5]), args[6], args[7], arithmetic)
        return context.get_dummy_value()

    integer = types.int64
    return types.void(table, values, integer, integer, values.dtype, integer, integer, integer), codegen


def _settle(typing_context: Any) -> Any:
    """Make stores that bypassed the caches visible to other threads."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), codegen


sum_rows: Any = intrinsic(_sum_rows_of)
settle: Any = intrinsic(_settle)


STREAMED = 1 << 24
"""Bytes of sums from which they bypass the caches: they would be evicted before they are read."""

STRIP = 64
"""Rows of a block are added together up to so many elements, with addresses computed for all at once. Longer strips of
16 blocks exceed the first-level cache. Measured on one core of an AMD EPYC, GF(2): sums of 4x4x4:47 at 4096 take 0.6
times as long as row by row.
"""


@njit(nogil=True)
def sum_blocks(source, froms, target, tos, block, starts, places, values, modulus, first, last):
    """Compute rows first <= i < last of the blocks of target (rows, cols), of block[0] rows and block[1] elements.

    The block that begins at the row and column tos[s] is the sum, as of `sum_rows`, of those of source that begin
    at froms[places[p]], starts[s] <= p < starts[s + 1]: of words over GF(2), or of multiples of integer-valued floats.
    Blocks are cut at the edges of target, and must be inside source.
    """
    rows, cols = target.shape
    table = np.empty(len(froms), np.int64)
    aligned = past_caches(target, block[1])
    strip = max(1, STRIP // block[1])
    for begin in range(first, last, strip):
        for s in range(len(starts) - 1):
            row, column = tos[s, 0] + begin, tos[s, 1]
            if row >= rows or column >= cols:
                continue
            terms = starts[s + 1] - starts[s]
            for t in range(terms):
                top, left = froms[places[starts[s] + t]]
                table[t] = source.ctypes.data + (top + begin) * source.strides[0] + source.itemsize * left
            address = target.ctypes.data + row * target.strides[0] + target.itemsize * column
            length = min(block[1], cols - column)
            streaming = aligned and target.itemsize * length % LINE_BYTES == 0
            # Addresses, because counting the references of a slice waits for pending stores that bypass the caches.
            for _ in range(min(strip, last - begin, rows - row)):
                sum_rows(table, values, starts[s], terms, modulus, address, length, streaming)
                address += target.strides[0]
                for t in range(terms):
                    table[t] += source.strides[0]
    settle()


@njit(nogil=True)
def past_caches(matrix, width):
    """Return whether blocks with rows of so many entries bypass the caches: they are large and of whole cache lines."""
    aligned = matrix.ctypes.data % LINE_BYTES == 0 and matrix.itemsize * width % LINE_BYTES == 0
    for stride in matrix.strides[:-1]:
        aligned &= stride % LINE_BYTES == 0
    return aligned and matrix.itemsize * matrix.size >= STREAMED


@njit(nogil=True)
def add_reduced(product, modulus, out, first, last):
    """Compute out += product, reduced, in rows first <= i < last."""
    inverse = 1.0 / modulus
    for i in range(first, last):
        target, source = out[i], product[i]
        for j in range(len(target)):
            total = target[j] + source[j]
            target[j] = total - modulus * np.rint(total * inverse)


@njit(nogil=True)
def reduce_rows(matrix, modulus, first, last):
    """Reduce rows first <= i < last of integers to residues of magnitude at most modulus / 2 + 2, in place.

    With |x| + modulus at most 2^53 (2^24 in float32) modulus * q and the difference are integers in that range, so
    exact, and the error of x / modulus is at most 2 / modulus.
    """
    inverse = 1.0 / modulus
    for i in range(first, last):
        row = matrix[i]
        for j in range(len(row)):
            row[j] -= modulus * np.rint(row[j] * inverse)
