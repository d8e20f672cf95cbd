"""Two levels of a program written as one, so that the sums of both are made in one pass over the data."""

from __future__ import annotations

from itertools import count

from ...errors import PlanError
from ...schemes_db.program import Lin, Load, Op, Product, ProductKind, Program, Store, Terms


def flatten(outer: Program, inner: Program) -> Program:
    """The one-level program of `outer` whose products are all worked by `inner`.

    Its grid is the tensor product of the two, with products in the order (outer, inner).

    Raises:
        PlanError: a program is nested already, or has half blocks or half products.
    """
    for program in (outer, inner):
        if program.inner or any(op.kind is not ProductKind.FULL for op in program.products):
            raise PlanError("only one-level programs without half products flatten")
    if not inner.target.is_general:
        raise PlanError(f"products of {outer.target} cannot be worked by {inner.target}: they are general")
    shapes = {"A": (inner.target.m, inner.target.k), "B": (inner.target.k, inner.target.n)}
    fresh = count()
    parts: dict[int, list[int]] = {}
    ops: list[Op] = []

    def summed(terms: Terms, position: int) -> Terms:
        return tuple((coefficient, parts[src][position]) for coefficient, src in terms)

    for op in outer.ops:
        if isinstance(op, Load):
            rows, cols = shapes[op.operand]
            places = [(op.block[0] * rows + i, op.block[1] * cols + j) for i in range(rows) for j in range(cols)]
            parts[op.dst] = [next(fresh) for _ in places]
            ops += [Load(dst, op.operand, place) for dst, place in zip(parts[op.dst], places, strict=True)]
        elif isinstance(op, Lin):
            size = len(parts[op.terms[0][1]])
            parts[op.dst] = [next(fresh) for _ in range(size)]
            ops += [Lin(dst, summed(op.terms, i)) for i, dst in enumerate(parts[op.dst])]
        elif isinstance(op, Product):
            parts[op.dst], inlined = _inlined(inner, parts[op.left], parts[op.right], fresh)
            ops += inlined
        else:
            (i, j), rows, cols = op.block, inner.target.m, inner.target.n
            ops += [
                Store((i * rows + p, j * cols + q), summed(op.terms, p * cols + q))
                for p in range(rows)
                for q in range(cols)
            ]
    return Program(outer.target.tensor(inner.target), outer.ring, tuple(ops))


def _inlined(inner: Program, left: list[int], right: list[int], fresh: count[int]) -> tuple[list[int], list[Op]]:
    """The ops of `inner` on the given sub-blocks, and the ids of its blocks of C in row-major order."""
    ids: dict[int, int] = {}
    stored: dict[tuple[int, int], int] = {}
    ops: list[Op] = []
    for op in inner.ops:
        if isinstance(op, Load):
            parts, cols = (left, inner.target.k) if op.operand == "A" else (right, inner.target.n)
            ids[op.dst] = parts[op.block[0] * cols + op.block[1]]
        elif isinstance(op, Product):
            ids[op.dst] = next(fresh)
            ops.append(Product(ids[op.dst], ids[op.left], ids[op.right]))
        else:
            dst = next(fresh)
            ops.append(Lin(dst, tuple((coefficient, ids[src]) for coefficient, src in op.terms)))
            if isinstance(op, Lin):
                ids[op.dst] = dst
            else:
                stored[op.block] = dst
    blocks = [(p, q) for p in range(inner.target.m) for q in range(inner.target.n)]
    if missing := [block for block in blocks if block not in stored]:
        raise PlanError(f"the inner program never stores block {missing[0]}")
    return [stored[block] for block in blocks], ops
