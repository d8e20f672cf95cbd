"""From a scheme to its program: the combinations written out, shared pairs computed once."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from heapq import heappop, heappush

from ..arguments import need
from ..errors import PlanError
from .costs import product_kinds
from .factor import Factor
from .gaussian import simplest
from .program import Coefficient, Lin, Load, Op, Product, Program, Store, Terms
from .scheme import Scheme

Sum = dict[int, Coefficient]
Pair = tuple[int, int, int, int]
"""Values i < j and coprime integers p > 0 and q: the sum p i + q j."""


def program_of(scheme: Scheme, cse: bool = True) -> Program:
    """The program of a scheme: loads, left sums, right sums, products, stores.

    With `cse`, pairs of terms that occur in several sums of one kind, up to a common factor, are
    computed once (greedy: the most frequent pair first).

    Raises:
        PlanError: a coefficient is not real.
    """
    need(Scheme, scheme=scheme)
    need(bool, cse=cse)
    if scheme.gaussian:
        raise PlanError(f"{scheme!r} has coefficients that are not real: it has no program")
    _, k, n = scheme.target.shape
    used_a, used_b = (sorted(set(factor.indices.tolist())) for factor in (scheme.u, scheme.v))
    ops: list[Op] = [Load(i, "A", divmod(block, k)) for i, block in enumerate(used_a)]
    ops += [Load(len(used_a) + i, "B", divmod(block, n)) for i, block in enumerate(used_b)]
    fresh = len(ops)
    sides = []
    for factor, used, first in ((scheme.u, used_a, 0), (scheme.v, used_b, len(used_a))):
        ids = {block: first + i for i, block in enumerate(used)}
        sums = [{ids[block]: value for block, value in _terms(factor, r)} for r in range(scheme.rank)]
        side, lins, fresh = _materialised(sums, fresh, cse)
        ops += lins
        sides.append(side)
    kinds = product_kinds(scheme)
    ops += [Product(fresh + r, sides[0][r], sides[1][r], kinds[r]) for r in range(scheme.rank)]
    by_block: dict[int, Sum] = {}
    for r in range(scheme.rank):
        for block, value in _terms(scheme.w, r):
            by_block.setdefault(block, {})[fresh + r] = value
    blocks = sorted(by_block)
    sums, lins, _ = _shared([by_block[block] for block in blocks], fresh + scheme.rank, cse)
    ops += lins
    ops += [Store(divmod(block, n), _sorted_terms(total)) for block, total in zip(blocks, sums, strict=True)]
    return Program(scheme.target, scheme.ring, tuple(ops))


def _terms(factor: Factor, r: int) -> list[tuple[int, Coefficient]]:
    if factor.denominator == 1:
        return list(factor.terms(r))
    return [(block, simplest(value)) for block, value in factor.coefficients(r)]  # type: ignore[misc]  # all real


def _sorted_terms(total: Sum) -> Terms:
    return tuple((coefficient, src) for src, coefficient in sorted(total.items()))


def _materialised(sums: list[Sum], fresh: int, cse: bool) -> tuple[list[int], list[Op], int]:
    """A value id for every sum, the ops that set them and the next free id; a sum of one plain term is that term."""
    sums, ops, fresh = _shared(sums, fresh, cse)
    ids: list[int] = []
    made: dict[Terms, int] = {}
    for total in sums:
        terms = _sorted_terms(total)
        if len(terms) == 1 and terms[0][0] == 1:
            ids.append(terms[0][1])
            continue
        if terms not in made:
            made[terms] = fresh
            ops.append(Lin(fresh, terms))
            fresh += 1
        ids.append(made[terms])
    return ids, ops, fresh


def _pair(total: Sum, i: int, j: int) -> Pair:
    """The pair with coprime integers of which two terms of a sum are a multiple: sharing it brings in no fractions."""
    return (i, j, *_coprime(total[i], total[j]))


@lru_cache(maxsize=1024)
def _coprime(first: Coefficient, second: Coefficient) -> tuple[int, int]:
    """Coprime integers p > 0 and q in the ratio of two numbers. Memoized: sums have few different coefficients."""
    x, y = first.numerator * second.denominator, second.numerator * first.denominator
    content = math.gcd(x, y) if x > 0 else -math.gcd(x, y)
    return x // content, y // content


def _shared(sums: list[Sum], fresh: int, cse: bool) -> tuple[list[Sum], list[Op], int]:
    """The sums with every pair that at least two of them share replaced by a value of its own."""
    sums = [dict(total) for total in sums]
    ops: list[Op] = []
    if not cse:
        return sums, ops, fresh
    holders: dict[Pair, set[int]] = {}
    # A pair that several sums contain is queued once, with the number of these sums. Later that number can only fall:
    # a pair that is taken from the queue with a number that is too large goes back with the right one. Of equally
    # frequent pairs the one with the lowest ids comes first, so that the choice does not depend on insertion order.
    queue: list[tuple[int, Pair]] = []

    def pairs(row: int, ids: Iterable[int]) -> Iterable[Pair]:
        """The pairs of two terms of a row, one of them one of these."""
        total, done = sums[row], set[int]()
        for one in ids:
            done.add(one)
            yield from (_pair(total, min(one, other), max(one, other)) for other in total if other not in done)

    def add(new: Iterable[tuple[int, Pair]]) -> None:
        """Store the rows of pairs that no row had before, and queue the pairs that several rows have."""
        added: dict[Pair, set[int]] = {}
        for row, pair in new:
            added.setdefault(pair, set()).add(row)
        holders.update(added)
        for pair, rows in added.items():
            if len(rows) > 1:
                heappush(queue, (-len(rows), pair))

    add((row, pair) for row in range(len(sums)) for pair in pairs(row, tuple(sums[row])))
    while queue:
        times, best = heappop(queue)
        rows = sorted(holders[best])
        if len(rows) < -times:
            if len(rows) > 1:
                heappush(queue, (-len(rows), best))
            continue
        i, j, p, q = best
        for row in rows:
            for pair in pairs(row, (i, j)):
                holders[pair].discard(row)
            total = sums[row]
            scale = Fraction(total[i], p)
            total[fresh] = scale.numerator if scale.denominator == 1 else scale
            del total[i], total[j]
        add((row, pair) for row in rows for pair in pairs(row, (fresh,)))
        ops.append(Lin(fresh, ((p, i), (q, j))))
        fresh += 1
    return sums, ops, fresh
