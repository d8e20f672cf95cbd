"""Bit operations on uint64 words for compiled code: count, first bit, k-th bit, random draws."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import extending
from numba.core import types

from ...jit import named, njit

intrinsic: Any = extending.intrinsic
overload: Any = extending.overload

SEARCH = Path(__file__).parents[1]
"""Folder whose sources are all in the cache stamp: compiled functions of a search call each other across folders."""

ONE = np.uint64(1)
_BYTES = np.uint64(0x0101010101010101)
_TOPS = np.uint64(0x8080808080808080)
_TWOS = np.uint64(0x3333333333333333)
_ODDS = np.uint64(0x5555555555555555)
_NIBBLES = np.uint64(0x0F0F0F0F0F0F0F0F)
_BYTE = np.uint64(0xFF)
_U1, _U2, _U4, _U7, _U8, _U32, _U56 = (np.uint64(n) for n in (1, 2, 4, 7, 8, 32, 56))
_UNIT = 1 << 30
_A, _B, _C = (np.uint64(n) for n in (13, 7, 17))


def compiled(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """`njit` without reference counting, for functions that allocate no array: counting costs more than a flip.

    With `internal`, or `forceinline`, only compiled code may call the function: it has no wrapper for Python. With
    wrappers of all that a walk calls its compilation takes a tenth longer.
    """
    if options.pop("internal", False) or options.get("forceinline"):
        options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return njit(function, stamped=SEARCH, _nrt=False, **options) if function else functools.partial(compiled, **options)


def _instruction(build: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Return a decorator: in compiled code the function of a word is what `build(builder, word)` makes."""

    def decorate(function: Callable[[np.uint64], np.uint64]) -> Callable[[np.uint64], np.uint64]:
        @intrinsic
        def instruction(typingctx: Any, word: Any) -> Any:
            return types.uint64(types.uint64), lambda context, builder, signature, args: build(builder, args[0])

        @overload(function)
        def _compiled(word):  # numba compares the signatures, annotations too
            return named(lambda word: instruction(word), function.__name__)

        return function

    return decorate


def _passed_through(builder: Any, word: Any) -> Any:
    from llvmlite import ir

    word_type = ir.IntType(64)
    return builder.asm(ir.FunctionType(word_type, [word_type]), "", "=r,0", [word], False)


def _trailing_zeros(builder: Any, word: Any) -> Any:
    from llvmlite import ir

    return builder.cttz(word, ir.Constant(ir.IntType(1), 0))


@intrinsic
def _scalar(typingctx: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.function.attributes.add("noimplicitfloat")
        return context.get_dummy_value()

    return types.void(), codegen


@_instruction(_passed_through)
def opaque(word: np.uint64) -> np.uint64:
    """Return the same word, opaque to the compiler, so that it does not replace a mask by a branch."""
    return word


def scalar_code() -> None:
    """Disable vector code in the calling function: a vector load after a word store stalls for 50 ns."""


@overload(scalar_code)
def _scalar_code():
    return lambda: _scalar()


@_instruction(lambda builder, word: builder.ctpop(word))
def popcount(word: np.uint64) -> np.uint64:
    """Return the number of set bits."""
    return np.uint64(int(word).bit_count())


@_instruction(_trailing_zeros)
def first_bit(word: np.uint64) -> np.uint64:
    """Return the index of the lowest set bit; 64 for the empty word."""
    return np.uint64((int(word) & -int(word)).bit_length() - 1 if word else 64)


@_instruction(lambda builder, word: builder.bitreverse(word))
def reverse_bits(word: np.uint64) -> np.uint64:
    """Return the word with its bits in reverse order."""
    return np.uint64(int(f"{int(word):064b}"[::-1], 2))


@compiled
def _select_portable(word: np.uint64, k: np.uint64) -> np.uint64:
    """Return the k-th set bit by byte sums, then at most seven steps inside the byte (Vigna, broadword select)."""
    sums = word - ((word >> _U1) & _ODDS)
    sums = (sums & _TWOS) + ((sums >> _U2) & _TWOS)
    sums = ((sums + (sums >> _U4)) & _NIBBLES) * _BYTES
    before = (((k * _BYTES | _TOPS) - sums) & _TOPS) >> _U7
    place = ((before * _BYTES) >> _U56) * _U8
    rest = (word >> place) & _BYTE
    for _ in range(k - (((sums << _U8) >> place) & _BYTE)):
        rest &= rest - ONE
    return place + first_bit(rest)


@intrinsic
def _select(typingctx: Any, word: Any, k: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        from llvmlite import ir

        _, cpu, features = context.codegen().magic_tuple()
        # Bit deposit (pdep) is one fast instruction with BMI2, except on the first two Zens, which run it as microcode.
        if "+bmi2" not in features.split(",") or cpu in ("znver1", "znver2"):
            return context.compile_internal(builder, _select_portable.py_func, signature, args)
        word_type = ir.IntType(64)
        deposit = builder.module.globals.get("llvm.x86.bmi.pdep.64") or ir.Function(
            builder.module, ir.FunctionType(word_type, [word_type, word_type]), "llvm.x86.bmi.pdep.64"
        )
        return _trailing_zeros(
            builder, builder.call(deposit, [builder.shl(ir.Constant(word_type, 1), args[1]), args[0]])
        )

    return types.uint64(types.uint64, types.uint64), codegen


def select_bit(word: np.uint64, k: np.uint64) -> np.uint64:
    """Return the index of the k-th set bit, counted from 0; the word must have more than k."""
    rest = int(word)
    for _ in range(int(k)):
        rest &= rest - 1
    return np.uint64((rest & -rest).bit_length() - 1)


@overload(select_bit)
def _select_bit(word, k):
    return lambda word, k: _select(word, k)


@compiled
def next_draw(state: np.uint64) -> np.uint64:
    """Return the next state of xorshift64, which is also the draw (Marsaglia 2003, shifts 13, 7, 17)."""
    state ^= state << _A
    state ^= state >> _B
    state ^= state << _C
    return state


@compiled
def below(rng: npt.NDArray[np.uint64], limit: int) -> int:
    """Advance the state rng[0] and return a random number in [0, limit)."""
    rng[0] = next_draw(rng[0])
    return np.int64(((rng[0] >> _U32) * np.uint64(limit)) >> _U32)  # type: ignore[return-value]  # compiled, it is one


@compiled
def accepted(growth: int, heat: float, rng: npt.NDArray[np.uint64]) -> bool:
    """Return whether a move that raises the cost by `growth` is accepted at a temperature, by the Metropolis rule."""
    return growth <= 0 or below(rng, _UNIT) < _UNIT * math.exp(-growth / heat)
