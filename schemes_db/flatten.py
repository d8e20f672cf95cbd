"""Two levels of a program flattened to one, so that the sums of both are computed in one pass over the data."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

from ..errors import PlanError
from .grids import Kind
from .program import Lin, Load, Op, Product, ProductKind, Program, Store, Terms

Parts = list[int | None]
"""The ids of the parts of a value in row-major order; None for the absent parts of a triangle."""

_NO_HALVES: Mapping[ProductKind, Program] = {}


def flatten(outer: Program, inner: Program, halves: Mapping[ProductKind, Program] = _NO_HALVES) -> Program:
    """Return the one-level program of `outer` with full products computed by `inner` and half products by `halves`.

    The program of a half product is for the triangle that its kind names, on the grid of `inner`, and
    may have half products itself: a divided half block is a triangle of blocks. The grid of the
    result is that of `outer` with every block divided by that of `inner`; products are in the order (outer, inner).

    Raises:
        PlanError: a program is nested already or does not compute its products, a half product has no program, or a
            grid does not fit.
    """
    shape = inner.target.shape
    for program in (outer, inner, *halves.values()):
        if program.inner:
            raise PlanError("only one-level programs flatten")
    outer.check_inner({ProductKind.FULL: inner, **halves})
    for kind in dict.fromkeys(op.kind for op in outer.products if op.kind.half):
        if kind not in halves or halves[kind].target.shape != shape:
            raise PlanError(f"{kind} products of {outer.target} need a program on a grid {'x'.join(map(str, shape))}")
    target = outer.target.cut(*shape)
    grids = {"A": target.a, "B": target.b}
    shapes = {"A": shape[:2], "B": shape[1:]}
    fresh = count()
    parts: dict[int, Parts] = {}
    ops: list[Op] = []

    def summed(terms: Terms, position: int) -> Terms:
        return tuple((coefficient, part) for coefficient, src in terms if (part := parts[src][position]) is not None)

    for op in outer.ops:
        if isinstance(op, Load):
            rows, cols = shapes[op.operand]
            places = [(op.block[0] * rows + i, op.block[1] * cols + j) for i in range(rows) for j in range(cols)]
            there = [grids[op.operand][i][j] is not Kind.ABSENT for i, j in places]
            parts[op.dst] = [next(fresh) if present else None for present in there]
            ops += [
                Load(dst, op.operand, place)
                for dst, place in zip(parts[op.dst], places, strict=True)
                if dst is not None
            ]
        elif isinstance(op, Lin):
            sums = [summed(op.terms, i) for i in range(len(parts[op.terms[0][1]]))]
            parts[op.dst] = [next(fresh) if terms else None for terms in sums]
            ops += [Lin(dst, terms) for dst, terms in zip(parts[op.dst], sums, strict=True) if dst is not None]
        elif isinstance(op, Product):
            program = halves[op.kind] if op.kind.half else inner
            parts[op.dst], inlined = _inlined(program, parts[op.left], parts[op.right], fresh)
            ops += inlined
        else:
            (i, j), rows, cols = op.block, shape[0], shape[2]
            ops += [
                Store((i * rows + p, j * cols + q), summed(op.terms, p * cols + q))
                for p in range(rows)
                for q in range(cols)
                if target.c[i * rows + p][j * cols + q] is not Kind.ABSENT
            ]
    return Program(target, outer.ring, tuple(ops))


def _inlined(inner: Program, left: Parts, right: Parts, fresh: count[int]) -> tuple[Parts, list[Op]]:
    """Return the ops of `inner` on the given sub-blocks, and the ids of its blocks of C in row-major order."""
    ids: dict[int, int] = {}
    stored: dict[tuple[int, int], int] = {}
    ops: list[Op] = []
    for op in inner.ops:
        if isinstance(op, Load):
            parts, cols = (left, inner.target.k) if op.operand == "A" else (right, inner.target.n)
            part = parts[op.block[0] * cols + op.block[1]]
            if part is None:
                raise PlanError(f"the inner program reads block {op.block} of {op.operand}, which is not there")
            ids[op.dst] = part
        elif isinstance(op, Product):
            ids[op.dst] = next(fresh)
            ops.append(Product(ids[op.dst], ids[op.left], ids[op.right], op.kind))
        else:
            dst = next(fresh)
            ops.append(Lin(dst, tuple((coefficient, ids[src]) for coefficient, src in op.terms)))
            if isinstance(op, Lin):
                ids[op.dst] = dst
            else:
                stored[op.block] = dst
    cells = [(p, q) for p in range(inner.target.m) for q in range(inner.target.n)]
    if missing := [(p, q) for p, q in cells if inner.target.c[p][q] is not Kind.ABSENT and (p, q) not in stored]:
        raise PlanError(f"the inner program never stores block {missing[0]}")
    return [stored.get(cell) for cell in cells], ops
