"""Schemes with one fault each, and which equations are wrong by one plain sum of products."""

from functools import partial
from itertools import product

import numpy as np

from lcma.schemes_db.factor import Factor


def with_factor(scheme, slot, dense):
    return scheme.replace(**{"uvw"[slot]: Factor.from_dense(dense, scheme.factors[slot].denominator)})


def changed(scheme, slot, r, index, by):
    """The scheme with a numerator of product r changed, that of the block `index` of a factor."""
    dense = scheme.factors[slot].dense.copy()
    dense.reshape(scheme.rank, scheme.factors[slot].blocks, -1)[r, index, 0] += by
    return with_factor(scheme, slot, dense)


def swapped(scheme, slot, r):
    """The scheme with row r of a factor and the next one in each other's place."""
    dense = scheme.factors[slot].dense.copy()
    dense[[r, r + 1]] = dense[[r + 1, r]]
    return with_factor(scheme, slot, dense)


def transposed(scheme, slot):
    """The scheme with one factor indexed the other way."""
    return with_factor(scheme, slot, np.swapaxes(scheme.factors[slot].dense, 1, 2))


def single_changes(scheme):
    """(slot, product, block, by): one coefficient up or down by a unit, at every place that the target has."""
    for slot, kinds in enumerate(scheme.target.kind_arrays):
        yield from product([slot], range(scheme.rank), np.flatnonzero(kinds).tolist(), (-1, 1))


def faults(scheme):
    """Every single change, swap of two different rows, and transposed factor of the same blocks, made when called."""
    yield from (partial(changed, scheme, *change) for change in single_changes(scheme))
    for slot, factor in enumerate(scheme.factors):
        different = (factor.dense[1:] != factor.dense[:-1]).reshape(scheme.rank - 1, -1).any(axis=1)
        yield from (partial(swapped, scheme, slot, r) for r in np.flatnonzero(different).tolist())
    for slot, kinds in enumerate(scheme.target.kind_arrays):
        if kinds.shape[0] == kinds.shape[1] and ((kinds == 0) == (kinds == 0).T).all():
            yield partial(transposed, scheme, slot)


def numerators(factor):
    """The numerators of a factor as an array (R, blocks), or (R, blocks, 2), of integers of any size."""
    rows = np.zeros((factor.rank, factor.blocks, *factor.values.shape[1:]), dtype=object)
    rows[factor.product, factor.indices] = factor.values
    return rows


def wrong_equations(scheme):
    """Which equations (A, B, C) do not hold: the twin of the grouped checks, over any ring."""
    parts = [numerators(factor).reshape(scheme.rank, factor.blocks, -1) for factor in scheme.factors]
    u, v, w = ((part[..., 0], part[..., 1] if part.shape[2] == 2 else 0 * part[..., 0]) for part in parts)

    def times(x, y, how):
        """The product of Gaussian numbers."""
        (a, b), (c, d) = x, y
        return np.einsum(how, a, c) - np.einsum(how, b, d), np.einsum(how, a, d) + np.einsum(how, b, c)

    real, imag = times(times(u, v, "rp,rq->rpq"), w, "rpq,rs->pqs")
    real[tuple(scheme.target.terms.T)] -= int(np.prod(scheme.denominators, dtype=object))
    characteristic = scheme.ring.characteristic
    return ((real % characteristic if characteristic else real) != 0) | (imag != 0)
