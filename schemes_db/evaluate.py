"""Plain evaluation of a program on blocks: the slow truth that compiled code is held to."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arguments import need
from ..errors import PlanError
from .grids import Kind
from .operands import array_of
from .program import Coefficient, Lin, Load, Product, ProductKind, Program

Matrix = npt.NDArray[Any]


def triangle(matrix: Matrix, kind: Kind) -> Matrix:
    """The part of a block that its kind says is there; the rest is zero."""
    if kind is Kind.LOWER:
        return np.tril(matrix)
    if kind is Kind.UPPER:
        return np.triu(matrix)
    return matrix if kind is Kind.FULL else np.zeros_like(matrix)


def evaluate(program: Program, a: Matrix, b: Matrix) -> Matrix:
    """C of a program on matrices whose sizes the whole nest of grids divides.

    `a` is (M, K) and `b` (K, N), of any dtype that adds and multiplies, object included. Parts that the target
    calls absent are never read, nor is the unused triangle of a half block; in C they come out zero.

    Raises:
        PlanError: a size is not a multiple of the grid.
    """
    need(Program, program=program)
    a, b = array_of("a", a), array_of("b", b)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise PlanError(f"a must be (M, K) and b (K, N), not {a.shape} and {b.shape}")
    target = program.target
    for label, matrix, grid in (("A", a, (target.m, target.k)), ("B", b, (target.k, target.n))):
        if any(size % parts for size, parts in zip(matrix.shape, grid, strict=True)):
            raise PlanError(f"{label} is {matrix.shape[0]} x {matrix.shape[1]}, not a multiple of the grid of {target}")
    inner = dict(program.inner)
    sides = {"A": (a, target.a, (target.m, target.k)), "B": (b, target.b, (target.k, target.n))}
    rows, cols = a.shape[0] // target.m, b.shape[1] // target.n
    out = np.zeros((a.shape[0], b.shape[1]), dtype=np.result_type(a, b))
    values: dict[int, Matrix] = {}
    for op in program.ops:
        if isinstance(op, Load):
            matrix, kinds, grid = sides[op.operand]
            values[op.dst] = triangle(_block(matrix, op.block, grid), kinds[op.block[0]][op.block[1]])
        elif isinstance(op, Lin):
            values[op.dst] = _combined(op.terms, values)
        elif isinstance(op, Product):
            values[op.dst] = _multiplied(values[op.left], values[op.right], op.kind, inner.get(op.kind))
        else:
            i, j = op.block
            total = triangle(_combined(op.terms, values), target.c[i][j])
            out[i * rows : (i + 1) * rows, j * cols : (j + 1) * cols] = total
    return out


def _block(matrix: Matrix, block: tuple[int, int], grid: tuple[int, int]) -> Matrix:
    (i, j), rows, cols = block, matrix.shape[0] // grid[0], matrix.shape[1] // grid[1]
    return matrix[i * rows : (i + 1) * rows, j * cols : (j + 1) * cols]


def _combined(terms: tuple[tuple[Coefficient, int], ...], values: dict[int, Matrix]) -> Matrix:
    total: Matrix | None = None
    for coefficient, src in terms:
        value = values[src]
        if isinstance(coefficient, Fraction) and value.dtype.kind == "f":
            term = value * value.dtype.type(float(coefficient))
        elif isinstance(coefficient, Fraction) and value.dtype.kind != "O":
            raise PlanError(
                f"coefficient {coefficient} is not an integer: an exact {value.dtype} product is not possible"
            )
        else:
            term = value if coefficient == 1 else value * coefficient
        total = term if total is None else total + term
    if total is None:
        raise PlanError("a sum without terms")
    return total


def _multiplied(left: Matrix, right: Matrix, kind: ProductKind, inner: Program | None) -> Matrix:
    part = Kind.UPPER if kind.of_upper else Kind.LOWER
    if kind.side == "left":
        left = triangle(left, part)
    if kind.side == "right":
        right = triangle(right, part)
    product = evaluate(inner, left, right) if inner else left @ right
    return triangle(product, part) if kind.side == "out" else product
