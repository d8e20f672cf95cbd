"""Products of block matrices whose blocks may have unequal sizes, by a scheme for the blocks and one for every product.

Products that share a factor may be computed side by side, as one product of a wider format (`shared_factors`).

Source: C.-E. Drevet, M. N. Islam, E. Schost, "Optimization techniques for small matrix multiplication" (2011).
"""

from __future__ import annotations

from functools import reduce
from itertools import cycle
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..errors import TargetError
from .constructions import AXES, FACTOR_AXES, need_general, wider, without_zeros
from .factor import COEFFICIENT_LIMIT, Factor, IntArray, refuse_large
from .provenance import constructed
from .scheme import MAX_RANK, Scheme
from .shared_factors import COMMON, Group, check_groups, scalar
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


class InnerProduct(NamedTuple):
    """Products of the outer scheme that one inner scheme computes: a group, or one product with the axis "".

    `lengths` are those of the products along the axis, of which `shape` has the sum.
    """

    axis: str
    products: tuple[int, ...]
    lengths: tuple[int, ...]
    shape: Shape

    def segment(self, place: int, inner: Factor, axes: tuple[int, int]) -> Factor:
        """The rows or columns of a factor of the inner scheme that belong to one of the products."""
        if not self.axis or AXES.index(self.axis) not in axes:
            return inner
        start = sum(self.lengths[:place])
        kept = np.full(sum(self.lengths), -1, dtype=np.int64)
        kept[start : start + self.lengths[place]] = np.arange(self.lengths[place])
        if axes[0] == AXES.index(self.axis):
            return inner.restricted(kept, np.arange(inner.cols))
        return inner.restricted(np.arange(inner.rows), kept)


def inner_products(outer: Scheme, sizes: Sizes, groups: Sequence[Group] = ()) -> list[InnerProduct]:
    """Return the products that inner schemes compute, in the order of the first product of each.

    Raises:
        TargetError: see `product_shapes` and `check_groups`.
    """
    shapes = product_shapes(outer, sizes)
    check_groups(outer, groups)
    grouped = {number for group in groups for number in group.products}
    found = [InnerProduct("", (r,), (), shape) for r, shape in enumerate(shapes) if r not in grouped]
    for axis, products in groups:
        place = AXES.index(axis)
        lengths = tuple(shapes[r][place] for r in products)
        sides = zip(*(shapes[r] for r in products), strict=True)
        m, k, n = (sum(lengths) if i == place else max(side) for i, side in enumerate(sides))
        found.append(InnerProduct(axis, products, lengths, (m, k, n)))
    return sorted(found, key=lambda one: one.products)


def uneven_product(outer: Scheme, sizes: Sizes, inner: Sequence[Scheme], groups: Sequence[Group] = ()) -> Scheme:
    """Return the scheme of the product of matrices in blocks of these sizes along m, k and n.

    `outer` multiplies the blocks; each of its products, and each group of products that share a factor, is computed by
    a scheme of `inner` with its shape (`inner_products`); several with one shape take turns. The rank is the sum of
    theirs, less the products that have a zero factor. With blocks of equal sizes and no groups this is the tensor
    product.

    Raises:
        TargetError: a scheme is not for a full product, `sizes` or `groups` do not fit, no inner scheme has the shape
            of a product, schemes over rings of different characteristics, or too large a result.
    """
    target, products = Target.general(*map(sum, sizes)), inner_products(outer, sizes, groups)
    for scheme in inner:
        need_general(scheme)
        if scheme.ring.characteristic != outer.ring.characteristic:
            raise TargetError(f"schemes over {outer.ring} and {scheme.ring} have no product")
    turns = {one.shape: cycle([x for x in inner if x.target.shape == one.shape]) for one in products}
    parts = []
    for one in products:
        part = next(turns[one.shape], None)
        if part is None:
            missing = "x".join(map(str, one.shape))
            raise TargetError(
                f"a product of {outer.target} with blocks of sizes {sizes} is {missing}: give a scheme for it"
            )
        parts.append(part)
    if sum(scheme.rank for scheme in parts) > MAX_RANK:
        raise TargetError(f"the product would have a rank beyond {MAX_RANK}")
    u, v, w = without_zeros([_factor(outer, f, sizes, products, parts) for f in range(3)])
    ring = reduce(wider, [scheme.ring for scheme in parts], outer.ring)
    used = {scheme.digest: scheme for scheme in inner if scheme in parts}
    values = {name: ",".join(map(str, axis)) for name, axis in zip(AXES, sizes, strict=True)}
    if groups:
        values["groups"] = ";".join(map(str, groups))
    origin = constructed(
        "uneven",
        "product with shared factors" if groups else "product of blocks of unequal sizes",
        *((one.digest, one.provenance) for one in (outer, *used.values())),
        **values,
    )
    return Scheme(target, u, v, w, ring, "", origin)


def _factor(outer: Scheme, f: int, sizes: Sizes, products: Sequence[InnerProduct], parts: Sequence[Scheme]) -> Factor:
    """Return one factor of the product with blocks of unequal sizes."""
    axes = FACTOR_AXES[f]
    pieces: list[tuple[int, Factor]] = []
    start = 0
    for one, scheme in zip(products, parts, strict=True):
        for place, r in enumerate(one.products):
            common = COMMON[one.axis] if one.axis else -1
            row = _row(outer, f, r, common)
            if f != common or place == 0:
                piece = _product(row, one.segment(place, scheme.factors[f], axes), sizes[axes[0]], sizes[axes[1]])
                pieces.append((start, piece))
        start += scheme.rank
    return _summed(pieces, start)


def _row(outer: Scheme, f: int, r: int, common: int) -> Factor:
    """Return factor `f` of product `r`; of a group, the primitive common factor, whose scalar the next factor has."""
    factor = outer.factors[f]
    part = slice(int(factor.indptr[r]), int(factor.indptr[r + 1]))
    indices, values, denominator = factor.indices[part], factor.values[part], factor.denominator
    if f == common:
        values, denominator = values // scalar(outer, f, r), 1
    elif common >= 0 and f == (common + 1) % 3:
        values, denominator = values * scalar(outer, common, r), denominator * outer.factors[common].denominator
    return Factor.from_triplets(1, factor.rows, factor.cols, 0 * indices, indices, values, denominator)


def _product(outer: Factor, inner: Factor, heights: Sequence[int], widths: Sequence[int]) -> Factor:
    """Return one factor of one product of the outer scheme, whose blocks the inner scheme multiplies."""
    refuse_large(outer, inner)
    padded = outer.tensor(inner.placed(max(heights), max(widths)))
    return padded.restricted(_lines(heights), _lines(widths))


def _summed(pieces: Sequence[tuple[int, Factor]], rank: int) -> Factor:
    """Return the sum of factors on one grid, each with the number of its first product.

    Raises:
        TargetError: coefficients beyond 2^62.
    """
    grid = pieces[0][1]
    denominator = int(np.lcm.reduce([piece.denominator for _, piece in pieces]))
    gaussian = any(piece.gaussian for _, piece in pieces)
    values = []
    for _, piece in pieces:
        scaled = piece.values * (denominator // piece.denominator)
        values.append(np.stack([scaled, 0 * scaled], axis=1) if gaussian and scaled.ndim == 1 else scaled)
    keys = np.concatenate([(piece.product + start) * grid.blocks + piece.indices for start, piece in pieces])
    places, where = np.unique(keys, return_inverse=True)
    terms = np.concatenate(values)
    if int(np.abs(terms).max(initial=0)) * int(np.bincount(where).max(initial=0)) >= COEFFICIENT_LIMIT:
        raise TargetError("the product has coefficients beyond 2^62")
    total = np.zeros((len(places), *terms.shape[1:]), dtype=np.int64)
    np.add.at(total, where, terms)
    products, indices = np.divmod(places, grid.blocks)
    return Factor.from_triplets(rank, grid.rows, grid.cols, products, indices, total, denominator)


def _lines(sizes: Sequence[int]) -> IntArray:
    """Return the row (or column) of the whole matrix for each row of the padded blocks, -1 for padding."""
    lines = np.full((len(sizes), max(sizes)), -1, dtype=np.int64)
    inside = np.arange(max(sizes)) < np.array(sizes)[:, None]
    lines[inside] = np.arange(sum(sizes))
    return lines.ravel()
