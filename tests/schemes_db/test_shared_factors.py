"""Products that share a factor, computed side by side, and products of blocks of unequal sizes."""

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import lcma
from lcma.schemes_db import Z2, Q, Z
from lcma.schemes_db.algebra import naive, permute, tensor
from lcma.schemes_db.constructions import change_of_basis, direct_sum
from lcma.schemes_db.reproduce import reproduced
from lcma.schemes_db.scheme import Scheme
from lcma.schemes_db.shared_factors import Group, best_groups, classes, parse_groups
from lcma.schemes_db.uneven import inner_products, product_shapes, uneven_product

NAMES = ("3x3x3-r23-additions", "2x2x4-r14", "3x4x8-r75", "4x4x5-r63", "naive:2x2x3")


def named(name):
    return lcma.resolve(name)[0]


def full(shape):
    return naive(lcma.Target.general(*shape))


def scaled(scheme, rng):
    """The scheme with the factors of every product times -3 to 3 and divided by them in another factor, over Q."""
    numbers = rng.choice([-3, -2, -1, 1, 2, 3], size=(2, scheme.rank))
    u, v, w = (factor.dense for factor in scheme.factors)
    u, v = u * numbers[0][:, None, None], v * numbers[1][:, None, None]
    w = w * (36 // (numbers[0] * numbers[1]))[:, None, None]
    return Scheme.from_arrays(scheme.target, u, v, w, Q, denominators=(1, 1, 36))


def drawn_groups(scheme, rng):
    """Some of the scheme's products with a factor in common, each product in one group at most."""
    found, used = [], set()
    for group in rng.permutation(np.array(classes(scheme), dtype=object)).tolist():
        free = [number for number in group[1] if number not in used]
        chosen = rng.permutation(free)[: rng.integers(len(free) + 1)].tolist()
        if chosen:
            found.append(Group(group[0], tuple(chosen)))
            used.update(chosen)
    return tuple(found)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(NAMES), st.sampled_from(["Z", "Q", "Z2"]))
def test_random_groups_of_random_schemes_make_valid_schemes(seed, name, ring):
    """Scalars of products are undone in another factor, and modulo 2 the sums of a group cancel as they should."""
    rng = np.random.default_rng(seed)
    plain = named(name)
    outer = {"Z": plain, "Q": scaled(plain, rng), "Z2": plain.over_z2()}[ring]
    assert classes(outer) == classes(plain) or ring == "Z2"
    groups = drawn_groups(outer, rng)
    sizes = tuple(tuple(rng.integers(1, 4, size=count).tolist()) for count in outer.target.shape)
    shapes = {one.shape for one in inner_products(outer, sizes, groups)}
    inner = [naive(lcma.Target.general(*shape), Z2 if ring == "Z2" else Z) for shape in shapes]
    made = uneven_product(outer, sizes, inner, groups)
    assert made.ring == outer.ring
    assert made.target.shape == tuple(map(sum, sizes))
    assert made.rank <= sum(np.prod(one.shape) for one in inner_products(outer, sizes, groups))
    assert lcma.check(made).ok


def test_a_common_factor_saves_products_of_wider_blocks():
    outer = named("3x3x3-r23-additions")
    groups = best_groups([group for group in classes(outer) if group.axis == "m"], lambda axis, count: count - 1)
    assert [group.axis for group in groups] == ["m"] * 3
    inner = [full((1, 2, 2)), named("strassen")]
    made = uneven_product(outer, ((1, 1, 1), (2, 2, 2), (2, 2, 2)), inner, groups)
    assert (made.target.name, made.rank) == ("3x6x6", 23 * 4 - 3)
    assert lcma.check(made).ok


def test_products_of_a_sum_of_schemes_in_one_group_make_the_product_of_the_sum():
    outer = full((1, 1, 3))
    made = uneven_product(outer, ((2,), (2,), (2, 2, 2)), [full((2, 2, 6))], [Group("n", (0, 1, 2))])
    assert made.digest == full((2, 2, 6)).digest


def test_no_groups_make_the_tensor_product_and_the_steps_make_it_again(strassen):
    outer = named("2x2x4-r14")
    groups = tuple(group for group in classes(outer) if group.axis == "n")
    made = uneven_product(outer, ((2, 2), (2, 2), (2, 2, 2, 2)), [named("2x2x4-r14")], groups)
    assert made.rank == 7 * 14 == tensor(outer, strassen).rank
    assert parse_groups(made.provenance.steps[-1].value("groups")) == groups
    assert reproduced(made, lambda digest: outer, None).digest == made.digest


def exhaustive(found, gain):
    """The largest total gain, by trying all assignments of products to classes."""
    numbers = sorted({number for group in found for number in group.products})
    options = [[place for place, group in enumerate(found) if number in group.products] for number in numbers]
    return max(
        sum(gain(group.axis, chosen.count(place)) for place, group in enumerate(found) if chosen.count(place) > 1)
        for chosen in product(*options)
    )


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_the_best_groups_have_the_largest_gain(data):
    axes = {axis: data.draw(st.permutations(range(8))) for axis in "mkn"}
    cuts = {axis: sorted(data.draw(st.sets(st.integers(1, 7), max_size=5))) for axis in "mkn"}
    found = []
    for axis, numbers in axes.items():
        parts = np.split(np.array(numbers), cuts[axis])
        found += [Group(axis, tuple(sorted(part.tolist()))) for part in parts if len(part) > 1]
    savings = {axis: data.draw(st.integers(0, 5)) for axis in "mkn"}

    def gain(axis, count):
        return savings[axis] * (count - 1)

    chosen = best_groups(found, gain)
    used = [number for group in chosen for number in group.products]
    assert len(used) == len(set(used))
    for group in chosen:
        assert any(set(group.products) <= set(other.products) and other.axis == group.axis for other in found)
    reached = sum(gain(group.axis, len(group.products)) for group in chosen)
    assert reached == (exhaustive(found, gain) if found else 0)


def test_another_basis_has_the_same_groups():
    outer = named("3x3x3-r23-additions")
    one, shear = np.eye(3, dtype=int), np.array([[1, 1, 0], [0, 1, 0], [0, -1, 1]])
    assert classes(change_of_basis(outer, shear, one, shear)) == classes(outer)


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


def test_products_that_lose_a_factor_are_left_out(strassen):
    # One product has A12 + A21, of 2 x 1 and 1 x 2 blocks: the last block of the padded sum is zero.
    outer = change_of_basis(strassen, [[0, 1], [1, 0]], np.eye(2, dtype=int), np.eye(2, dtype=int))
    assert [1, 2] in [factor.tolist() for factor in map(np.flatnonzero, outer.u.dense.reshape(7, 4))]
    sizes = ((2, 1), (2, 1), (1, 1))
    shapes = product_shapes(outer, sizes)
    made = uneven_product(outer, sizes, [full(shape) for shape in set(shapes)])
    assert made.rank == sum(np.prod(shape) for shape in shapes) - 1
    assert lcma.check(made).ok
