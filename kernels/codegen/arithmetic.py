"""LLVM code for sums of multiples, of one element type and vector width."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

ELEMENTS = {
    "float32": (ir.FloatType(), 4),
    "float64": (ir.DoubleType(), 8),
    "int8": (ir.IntType(8), 1),
    "int32": (ir.IntType(32), 4),
    "int64": (ir.IntType(64), 8),
    "bfloat16": (ir.IntType(16), 2),
}
"""LLVM's type of a component, and its bytes."""


class VectorArithmetic:
    """Emits sums of multiples of one element type, a scalar or a vector of `lanes`.

    bfloat16 is computed in float32, of which it is the upper 16 bits.
    """

    def __init__(self, builder: Any, dtype: str, lanes: int) -> None:
        self.builder, self.lanes = builder, lanes
        self.half = dtype == "bfloat16"
        self.stored = self._wide(ELEMENTS[dtype][0])
        self.type = self._wide(ir.FloatType()) if self.half else self.stored
        self.bits = 8 * ELEMENTS[dtype][1]
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
