"""Products of blocks of unequal sizes."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import lcma
from lcma.schemes_db.algebra import naive, permute, tensor
from lcma.schemes_db.constructions import change_of_basis, direct_sum
from lcma.schemes_db.uneven import product_shapes, uneven_product


def full(shape):
    return naive(lcma.Target.general(*shape))


def padded_shapes(outer, sizes):
    """The shapes of products by definition: of random blocks padded with zeros, the part that is needed."""
    rng = np.random.default_rng(0)
    m, k, n = (max(axis) for axis in sizes)

    def block(heights, widths, i, j, rows, cols):
        whole = np.zeros((rows, cols))
        whole[: heights[i], : widths[j]] = rng.uniform(1, 2, (heights[i], widths[j]))
        return whole

    u, v, w = (factor.dense for factor in outer.factors)
    found = []
    for r in range(outer.rank):
        a = sum(np.abs(u[r, i, j]) * block(sizes[0], sizes[1], i, j, m, k) for i, j in np.ndindex(u.shape[1:]))
        b = sum(np.abs(v[r, i, j]) * block(sizes[1], sizes[2], i, j, k, n) for i, j in np.ndindex(v.shape[1:]))
        c = sum(np.abs(w[r, i, j]) * block(sizes[0], sizes[2], i, j, m, n) for i, j in np.ndindex(w.shape[1:]))
        rows = np.flatnonzero(a.any(axis=1) & c.any(axis=1))
        middle = np.flatnonzero(a.any(axis=0) & b.any(axis=1))
        cols = np.flatnonzero(b.any(axis=0) & c.any(axis=0))
        found.append((len(rows), len(middle), len(cols)))
    return found


SIZES = st.integers(1, 4)


@settings(max_examples=30, deadline=None)
@given(st.data(), st.sampled_from(["strassen", "winograd", "2x2x3-r11", "naive:2x1x3"]))
def test_products_of_unequal_blocks_are_valid_and_as_small_as_they_can_be(data, name):
    outer = lcma.resolve(name)[0]
    sizes = tuple(tuple(data.draw(SIZES) for _ in range(count)) for count in outer.target.shape)
    shapes = product_shapes(outer, sizes)
    assert shapes == padded_shapes(outer, sizes)
    made = uneven_product(outer, sizes, [full(shape) for shape in set(shapes)])
    assert made.target.shape == tuple(map(sum, sizes))
    assert made.rank <= sum(np.prod(shape) for shape in shapes)
    assert lcma.check(made).ok


def test_equal_blocks_make_the_tensor_product(strassen):
    laderman = lcma.resolve("laderman")[0]
    for outer, inner in ((strassen, laderman), (laderman, full((2, 1, 3)))):
        blocks = zip(inner.target.shape, outer.target.shape, strict=True)
        sizes = tuple((size,) * count for size, count in blocks)
        assert uneven_product(outer, sizes, [inner]).digest == tensor(outer, inner).digest


def test_the_naive_scheme_of_two_blocks_makes_the_direct_sum(strassen):
    other = lcma.resolve("2x2x3-r11")[0]
    made = uneven_product(full((1, 1, 2)), ((2,), (2,), (2, 3)), [other, strassen])
    assert made.digest == direct_sum(strassen, other, "n").digest


def test_schemes_of_one_shape_take_turns(strassen):
    first, second = strassen, permute(strassen, "nkm")
    made = uneven_product(full((1, 1, 3)), ((2,), (2,), (2, 2, 2)), [first, second])
    expected = direct_sum(direct_sum(first, second, "n"), first, "n")
    assert made.digest == expected.digest
    assert lcma.check(made).ok


def test_strassen_needs_smaller_products_of_padded_blocks(strassen):
    shapes = product_shapes(strassen, ((4, 3), (4, 3), (4, 3)))
    assert sorted(map(sorted, shapes)) == [[3, 3, 4]] * 3 + [[3, 4, 4]] * 3 + [[4, 4, 4]]


def test_products_that_lose_a_factor_are_left_out(strassen):
    # One product has A12 + A21, of 2 x 1 and 1 x 2 blocks: the last block of the padded sum is zero.
    outer = change_of_basis(strassen, [[0, 1], [1, 0]], np.eye(2, dtype=int), np.eye(2, dtype=int))
    assert [1, 2] in [factor.tolist() for factor in map(np.flatnonzero, outer.u.dense.reshape(7, 4))]
    sizes = ((2, 1), (2, 1), (1, 1))
    shapes = product_shapes(outer, sizes)
    made = uneven_product(outer, sizes, [full(shape) for shape in set(shapes)])
    assert made.rank == sum(np.prod(shape) for shape in shapes) - 1
    assert lcma.check(made).ok
