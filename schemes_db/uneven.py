"""Products of block matrices whose blocks have unequal sizes, by a scheme for the blocks and one for every product.

Source: C.-E. Drevet, M. N. Islam, E. Schost, "Optimization techniques for small matrix multiplication" (2011).
"""

from __future__ import annotations

from functools import reduce
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

from ..errors import TargetError
from .algebra import refuse_large
from .constructions import FACTOR_AXES, need_general, wider, without_zeros
from .factor import Factor, IntArray
from .provenance import constructed
from .scheme import MAX_RANK, Scheme
from .target import Target

if TYPE_CHECKING:
    from collections.abc import Sequence

Shape = tuple[int, int, int]
Sizes = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""The size of every block along m, k and n."""


def product_shapes(outer: Scheme, sizes: Sizes) -> list[Shape]:
    """Return the shape of every product of a scheme for blocks of these sizes, smaller ones padded with zeros.

    The sum of blocks that is a factor of a product has as many nonzero rows as its largest block, and of the product
    itself only the rows of the largest block of C that takes it are needed; likewise for columns. So the length of a
    product along an axis is the smaller one of two such maxima: those of the two matrices that have this axis.

    Raises:
        TargetError: the scheme is not for a full product, or has other numbers of blocks.
    """
    need_general(outer)
    if tuple(map(len, sizes)) != outer.target.shape or any(size < 1 for axis in sizes for size in axis):
        raise TargetError(f"blocks of sizes {sizes} are not those of {outer.target}: give one of 1 or more a block")
    lengths = np.full((outer.rank, 3), np.iinfo(np.int64).max)
    for factor, axes in zip(outer.factors, FACTOR_AXES, strict=True):
        places = np.divmod(factor.indices, factor.cols)
        for axis, place in zip(axes, places, strict=True):
            largest = np.zeros(outer.rank, dtype=np.int64)
            np.maximum.at(largest, factor.product, np.array(sizes[axis])[place])
            lengths[:, axis] = np.minimum(lengths[:, axis], largest)
    return [(m, k, n) for m, k, n in lengths.tolist()]


def uneven_product(outer: Scheme, sizes: Sizes, inner: Sequence[Scheme]) -> Scheme:
    """Return the scheme of the product of matrices in blocks of these sizes along m, k and n.

    `outer` multiplies the blocks, each of its products is computed by a scheme of `inner` with its shape
    (`product_shapes`); several with one shape take turns. The rank is the sum of theirs, less the products that have a
    zero factor. With blocks of equal sizes this is the tensor product.

    Raises:
        TargetError: a scheme is not for a full product, `sizes` do not fit, no inner scheme has the shape of a product,
            schemes over rings of different characteristics, or too large a result.
    """
    target, shapes = Target.general(*map(sum, sizes)), product_shapes(outer, sizes)
    for scheme in inner:
        need_general(scheme)
        if scheme.ring.characteristic != outer.ring.characteristic:
            raise TargetError(f"schemes over {outer.ring} and {scheme.ring} have no product")
    turns = {shape: cycle([one for one in inner if one.target.shape == shape]) for shape in shapes}
    chosen = [next(turns[shape], None) for shape in shapes]
    parts = [scheme for scheme in chosen if scheme is not None]
    if len(parts) < len(shapes):
        missing = "x".join(map(str, shapes[chosen.index(None)]))
        raise TargetError(
            f"a product of {outer.target} with blocks of sizes {sizes} is {missing}: give a scheme for it"
        )
    if sum(scheme.rank for scheme in parts) > MAX_RANK:
        raise TargetError(f"the product would have a rank beyond {MAX_RANK}")
    whole = [
        reduce(Factor.stacked, [_product(factor, r, one.factors[f], sizes[x], sizes[y]) for r, one in enumerate(parts)])
        for f, (factor, (x, y)) in enumerate(zip(outer.factors, FACTOR_AXES, strict=True))
    ]
    u, v, w = without_zeros(whole)
    ring = reduce(wider, [scheme.ring for scheme in parts], outer.ring)
    used = {scheme.digest: scheme for scheme in inner if scheme in parts}
    origin = constructed(
        "uneven",
        "product of blocks of unequal sizes",
        *((one.digest, one.provenance) for one in (outer, *used.values())),
        **{name: ",".join(map(str, axis)) for name, axis in zip("mkn", sizes, strict=True)},
    )
    return Scheme(target, u, v, w, ring, "", origin)


def _product(outer: Factor, r: int, inner: Factor, heights: Sequence[int], widths: Sequence[int]) -> Factor:
    """Return one factor of product `r` of the outer scheme, whose blocks the inner scheme multiplies."""
    mine = slice(int(outer.indptr[r]), int(outer.indptr[r + 1]))
    indices, values = outer.indices[mine], outer.values[mine]
    one = Factor.from_triplets(1, outer.rows, outer.cols, 0 * indices, indices, values, outer.denominator)
    refuse_large(one, inner)
    padded = one.tensor(inner.placed(max(heights), max(widths)))
    return padded.restricted(_lines(heights), _lines(widths))


def _lines(sizes: Sequence[int]) -> IntArray:
    """Return the row (or column) of the whole matrix for each row of the padded blocks, -1 for padding."""
    lines = np.full((len(sizes), max(sizes)), -1, dtype=np.int64)
    inside = np.arange(max(sizes)) < np.array(sizes)[:, None]
    lines[inside] = np.arange(sum(sizes))
    return lines.ravel()
