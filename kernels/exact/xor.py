"""Sums of rows over GF(2), in registers: every term is read once and the sum is written once."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from .bits import LINE_WORDS

_I64 = ir.IntType(64)

LINE_BYTES = 8 * LINE_WORDS
"""Alignment of rows that are written past the caches."""


def _xor_rows(typing_context: Any, table: Any, terms: Any, target: Any, words: Any, streaming: Any) -> Any:
    """words of `target` = the sum of the rows whose addresses stand in table[:terms]; `terms` may be 0.

    With streaming != 0 it is written past the caches; then `target` is a multiple of 64 and `words` of 8.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        addresses = builder.ptrtoint(array.data, _I64)
        _, count, target_value, words_value, streaming_value = args
        zero = ir.Constant(_I64, 0)
        stream = builder.icmp_signed("!=", streaming_value, zero)
        start = zero
        places = addresses, count, target_value
        for lanes in (32, 8):
            whole = builder.sub(words_value, builder.srem(builder.sub(words_value, start), ir.Constant(_I64, lanes)))
            _sum_stretch(builder, places, (start, whole), lanes, stream)
            start = whole
        # What is left is the end of eight words, of which some are summed again; of fewer words they are one by one.
        several = builder.icmp_signed("<=", ir.Constant(_I64, 8), words_value)
        rest = builder.icmp_signed("<", start, words_value)
        with builder.if_then(rest), builder.if_else(several) as (overlapping, single):
            with overlapping:
                before = builder.sub(words_value, ir.Constant(_I64, 8))
                _sum_stretch(builder, places, (before, words_value), 8, None)
            with single:
                _sum_stretch(builder, places, (start, words_value), 1, None)
        return context.get_dummy_value()

    return types.void(table, types.int64, types.int64, types.int64, types.int64), codegen


def _sum_stretch(builder: Any, places: Any, bounds: Any, lanes: int, stream: Any) -> None:
    """Words bounds[0] <= w < bounds[1], `lanes` at a time."""
    addresses, count, target = places
    kind = ir.VectorType(_I64, lanes) if lanes > 1 else _I64
    nothing = ir.Constant(kind, [0] * lanes if lanes > 1 else 0)
    zero, one = ir.Constant(_I64, 0), ir.Constant(_I64, 1)
    before = builder.block
    loop, term, stored, done = (builder.append_basic_block(name) for name in ("words", "term", "sum", "end"))
    builder.cbranch(builder.icmp_signed("<", bounds[0], bounds[1]), loop, done)
    builder.position_at_end(loop)
    word = builder.phi(_I64)
    word.add_incoming(bounds[0], before)
    offset = builder.mul(word, ir.Constant(_I64, 8))
    builder.cbranch(builder.icmp_signed("<", zero, count), term, stored)
    builder.position_at_end(term)
    index, total = builder.phi(_I64), builder.phi(kind)
    index.add_incoming(zero, loop)
    total.add_incoming(nothing, loop)
    place = builder.add(addresses, builder.mul(index, ir.Constant(_I64, 8)))
    source = builder.load(builder.inttoptr(place, _I64.as_pointer()), typ=_I64)
    value = builder.load(builder.inttoptr(builder.add(source, offset), kind.as_pointer()), typ=kind, align=8)
    added, following = builder.xor(total, value), builder.add(index, one)
    index.add_incoming(following, term)
    total.add_incoming(added, term)
    builder.cbranch(builder.icmp_signed("<", following, count), term, stored)
    builder.position_at_end(stored)
    result = builder.phi(kind)
    result.add_incoming(nothing, loop)
    result.add_incoming(added, term)
    at = builder.inttoptr(builder.add(target, offset), kind.as_pointer())
    if stream is None:
        builder.store(result, at, align=8)
    else:
        with builder.if_else(stream) as (past, plain):
            with past:
                written = builder.store(result, at, align=LINE_BYTES)
                written.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))
            with plain:
                builder.store(result, at, align=8)
    after = builder.add(word, ir.Constant(_I64, lanes))
    word.add_incoming(after, builder.block)
    builder.cbranch(builder.icmp_signed("<", after, bounds[1]), loop, done)
    builder.position_at_end(done)


def _settle(typing_context: Any) -> Any:
    """Make what was written past the caches visible to other threads."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), codegen


xor_rows: Any = intrinsic(_xor_rows)
settle: Any = intrinsic(_settle)
