"""Precisions: arithmetics, other than that of their dtype, in which products of float operands may be computed.

A request names the dtype of its operands and one precision or none. The two have one name together, by which profiles,
wisdom, tables of rates and the command line know them: "tf32" is float32 in tf32, "fp8" bfloat16 in fp8.
"""

from __future__ import annotations

from typing import Any, NamedTuple

TF32 = "tf32"
"""The vendor's products round float32 operands to 11 bits."""

ACCURATE = "fp32-accurate"
"""Float32 by sums of three products of tf32 or of float16 halves: errors of 2^-22."""

FP8 = "fp8"
"""Operands are rounded to e4m3 with block scales."""


class Arithmetic(NamedTuple):
    """The dtype that stores operands, and the precision of their products (None: that of the dtype)."""

    dtype: str
    precision: str | None = None

    @property
    def name(self) -> str:
        """The name of both together."""
        return self.dtype if self.precision is None else NAMES[self]


NAMES = {
    Arithmetic("float32", TF32): "tf32",
    Arithmetic("float32", ACCURATE): "fp32-accurate",
    Arithmetic("bfloat16", FP8): "fp8",
}
"""The names of all arithmetics with a precision."""

FORMER_NAMES = {"tf32x3": "fp32-accurate"}
"""Names that stored rows, wisdom and callers may have, and the present ones."""

_ARITHMETICS = {name: arithmetic for arithmetic, name in NAMES.items()}


def arithmetic_of(name: str) -> Arithmetic:
    """Return the arithmetic of a name; a name that is none of a precision is a dtype."""
    return _ARITHMETICS.get(FORMER_NAMES.get(name, name)) or Arithmetic(name)


def fields_of(name: str) -> dict[str, Any]:
    """Return the dtype and the precision of an arithmetic, as keyword arguments of a request."""
    return arithmetic_of(name)._asdict()


UNITS = {TF32: 2.0**-11, ACCURATE: 2.0**-22}
"""Unit roundoffs by precision. That of fp8 is not bounded a priori: bounds are those of the dtype's own products."""
