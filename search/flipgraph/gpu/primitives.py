"""Primitives that differ between the processor and the GPU: the decorator, and two operations of one instruction.

The rest of the walk is one source, compiled for either. Types in it are explicit: numba promotes uint32
arithmetic to uint64, so every result that must remain a word is wrapped.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np

from ....jit import named
from .layout import Form

U32, U64, I32 = np.uint32, np.uint64, np.int32


class KernelParts(SimpleNamespace):
    """The compiled functions that a kernel calls: each is an attribute with the function's own name, set by `jit`.

    Attributes:
        popcount: returns the number of set bits of a uint32.
        differs: compares the halves of a word with two values, given their negatives; returns 1 in each half that
            differs.
        form: the memory format of a walker.
        kind_of_cost: one of `policy.COSTS`.
    """

    def __init__(self, form: Form, kind_of_cost: str, compiler: Callable[..., Any]) -> None:
        super().__init__(form=form, kind_of_cost=kind_of_cost)
        self._compiled = compiler

    def jit(self, function: Callable[..., Any]) -> Any:
        """Compile a function, and store it as the attribute with its name; a decorator."""
        name = function.__name__
        setattr(self, name, self._compiled(function))
        return getattr(self, name)


def processor(form: Form, kind_of_cost: str) -> KernelParts:
    """Return the primitives of the processor, compiled by njit: the twin of the GPU."""

    def compiler(function: Callable[..., Any]) -> Any:
        compiled: Any = numba.njit
        function = named(function, f"{form} {kind_of_cost}")  # which of all that the closures may become this is
        # Called by compiled code alone: without wrappers for Python and C it compiles in 0.65 to 0.77 of the time.
        return compiled(function, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)

    parts = KernelParts(form, kind_of_cost, compiler)

    @parts.jit
    def popcount(word):
        word = U32(word - ((word >> U32(1)) & U32(0x55555555)))
        word = U32((word & U32(0x33333333)) + ((word >> U32(2)) & U32(0x33333333)))
        word = U32(U32(word + (word >> U32(4))) & U32(0x0F0F0F0F))
        return U32(U32(word * U32(0x01010101)) >> U32(24))

    @parts.jit
    def differs(word, negative):
        low = (word + negative) & U32(0xFFFF)
        high = ((word >> U32(16)) + (negative >> U32(16))) & U32(0xFFFF)
        return U32(U32(low != U32(0)) | (U32(high != U32(0)) << U32(16)))

    return parts


def gpu(form: Form, kind_of_cost: str) -> KernelParts:
    """Return the primitives of the GPU, compiled by numba.cuda; `differs` is two PTX and one machine instruction."""
    from .device import cuda_module

    cuda = cuda_module()
    from llvmlite import ir
    from numba.cuda.extending import intrinsic

    types = cuda.types
    parts = KernelParts(form, kind_of_cost, cuda.jit(device=True, forceinline=True))

    @intrinsic
    def differs(typingctx, word, negative):
        def codegen(context, builder, signature, args):
            word_type = ir.IntType(32)
            text = "{ .reg .b32 sum; add.u16x2 sum, $1, $2; min.u16x2 $0, sum, $3; }"
            asm = ir.InlineAsm(ir.FunctionType(word_type, [word_type] * 3), text, "=r,r,r,r", side_effect=False)
            return builder.call(asm, [*args, ir.Constant(word_type, 0x00010001)])

        return types.uint32(types.uint32, types.uint32), codegen

    @parts.jit
    def popcount(word):
        return U32(cuda.popc(word))

    parts.differs = differs
    return parts
