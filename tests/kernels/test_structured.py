"""Triangular and masked products: nothing leaks from what is absent, and what is not wanted is zero."""

from itertools import pairwise

import numpy as np
import pytest

from lcma.kernels import BlockMask, Dense, Pool, Request, Structure, Triangular, plan_for
from lcma.kernels.causal.block_masks import kinds_of
from lcma.kernels.cpu import strips
from lcma.kernels.cpu.strips import leaf_strips, worked_fraction
from lcma.kernels.cpu.triangular_products import HalfProduct
from lcma.kernels.cpu.workspace import Arena
from lcma.kernels.ranges import ranges
from lcma.kernels.request import structures_of
from lcma.kernels.structure import DENSE
from lcma.schemes_db import ProductKind, parse_target
from lcma.schemes_db.symmetry import SIDES, Triangle

from ..refusal import refuses

FORMS = [f"2x2x2:tri-{side}{upper}" for side in ("left", "right", "out") for upper in ("", ":upper")]


@pytest.fixture
def run(build_with):
    """run(scheme, levels, a, b, out=None, strategy=None): the product through a pool full of NaN."""

    def product(scheme, levels, a, b, out=None, strategy=None):
        pool = Pool(poison=True)
        chosen = plan_for(Request.of(a, b, out), scheme, levels, strategy=strategy)
        result = build_with(chosen, pool).run(a, b, out)
        assert pool.high_water == chosen.workspace
        return result

    return product


@pytest.mark.parametrize("strategy", ["scheme:batched", "scheme:loop"])
@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize("name", FORMS)
def test_triangles(run, classical, draw, poisoned, holds, name, levels, strategy):
    scheme = classical(name)
    for size in (1, 2, 7, 37):
        square, wide, tall = (size, size), (size, 23), (23, size)
        side = name.split("-")[1].split(":")[0]
        shape_a, shape_b = {"left": (square, wide), "right": (tall, square), "out": (wide, tall)}[side]
        a, b = poisoned(scheme.target, draw(shape_a, "float64"), draw(shape_b, "float64"))
        out = np.full((shape_a[0], shape_b[1]), np.nan)
        holds(run(scheme, levels, a, b, out, strategy), scheme.target, a, b)


MASK = "3x2x3:blocks(F./FF/.F,F.F/FFF,F../FL./.FF)"


@pytest.mark.parametrize("strategy", ["scheme:batched", "scheme:tasks", "scheme:loop"])
@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize("sizes", [(9, 8, 9), (6, 5, 6), (1, 1, 1), (2, 7, 2), (20, 3, 20)])
def test_a_mask_with_absent_blocks(run, strassen, classical, draw, poisoned, holds, sizes, levels, strategy):
    target = parse_target(MASK)
    schemes = [classical(target), strassen][:levels]
    a, b = poisoned(target, draw(sizes[:2], "int64"), draw(sizes[1:], "int64"))
    holds(run(schemes, levels, a, b, strategy=strategy), target, a, b)


def test_half_products_recurse_with_their_own_scheme(run, strassen, classical, draw, poisoned, holds):
    scheme = classical("2x2x2:tri-left")
    schemes = [scheme, (scheme, strassen), (scheme, strassen)]
    chosen = plan_for(Request(45, 45, 30, "float64"), schemes)
    inner = dict(chosen.candidate.program.inner)
    assert inner[ProductKind.HALF_LEFT].target == scheme.target
    assert inner[ProductKind.FULL].target.is_general
    a, b = poisoned(scheme.target, draw((45, 45), "float64"), draw((45, 30), "float64"))
    holds(run(schemes, 1, a, b), scheme.target, a, b)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("kind", [kind for kind in ProductKind if kind.half])
def test_half_products_at_the_bottom(monkeypatch, draw, kind, shared):
    monkeypatch.setattr(strips, "STRIP", 5)
    size = 33
    part = np.triu if kind.of_upper else np.tril
    a, b = draw((size, size), "int64"), draw((size, size), "int64")
    a, b = (part(a) if kind.side == "left" else a), (part(b) if kind.side == "right" else b)
    out = np.zeros((size, size), np.int64)
    triangle, count = Triangle(kind.side, kind.of_upper), leaf_strips(size)
    kept = part if kind.side == "out" else np.asarray
    for base in (None, 4):  # of these only a wanted triangle is halved
        leaf = HalfProduct(triangle, (size, size, size), "int64", count, base, clean=False, shared=shared)
        leaf.run(a, b, out, Arena(np.empty(0, np.uint8)), 2)
        np.testing.assert_array_equal(kept(out), kept(a @ b))
        out[...] = 0
    assert 0.5 < worked_fraction(size, count) < 0.7


def test_strips_cover_every_size():
    for size in (1, 255, 511, 512, 1000, 10_000):
        bounds = list(ranges(size, leaf_strips(size)))
        assert bounds[0][0] == 0
        assert bounds[-1][1] == size
        assert all(first[1] == second[0] for first, second in pairwise(bounds))


def mask(*rows: str) -> BlockMask:
    return BlockMask.of(kinds_of(rows))


STRUCTURES = [Dense(), Triangular(), Triangular(True), mask("L..", "FL.", "FFL"), mask("U.F", ".F.", "F.U")]


@pytest.mark.parametrize("structure", STRUCTURES, ids=lambda one: one.name)
def test_naive_keeps_ones_alone_and_keeps_them_again(structure):
    assert isinstance(structure, Structure)
    ones = np.ones((600, 600))
    kept = structure.naive(ones)
    assert set(np.unique(kept)) <= {0.0, 1.0}
    np.testing.assert_array_equal(structure.naive(kept), kept)
    assert structure.reason(600, 600) is None


def test_naive_keeps_triangles_and_blocks_whatever_stands_outside():
    rng = np.random.default_rng(0)
    matrices = rng.standard_normal((2, 5, 5))
    spoiled = np.where(np.tri(5) > 0, matrices, np.nan)
    np.testing.assert_array_equal(Triangular().naive(spoiled), np.tril(matrices))
    np.testing.assert_array_equal(Triangular(True).naive(spoiled.swapaxes(1, 2)), np.triu(matrices.swapaxes(1, 2)))
    ones = np.ones((7, 5), np.int64)
    kept = mask("F.", ".F").naive(ones)
    expected = np.zeros((7, 5), np.int64)
    expected[:4, :3] = expected[4:, 3:] = 1
    np.testing.assert_array_equal(kept, expected)
    assert kept.dtype == np.int64
    assert mask("FL").name != mask("LF").name
    assert mask("FL") == mask("FL")
    assert mask("F", "L").name != mask("FL").name


@pytest.mark.parametrize(("structure", "sizes", "message"), [
    (Triangular(), (4, 5), "is triangular and must be square, but it is 4 x 5"),
    (mask("FFF"), (4, 2), "a mask of 1 x 3 blocks, which does not fit 4 x 2"),
    (mask("L.", "FL"), (4, 6), "a triangular block in its mask, which must be square, but it is 2 x 3"),
    (mask("L.", "FL"), (7, 8), "which must be square, but it is 3 x 4"),
])  # fmt: skip
def test_sizes_that_do_not_fit_are_refused_with_the_matrix_that_is_meant(structure, sizes, message):
    assert message in structure.reason(*sizes)
    refuses(f"^the product .*{message}", Request, sizes[0], 3, sizes[1], structures=(DENSE, DENSE, structure))


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_the_triangle_of_a_request(side, upper, shared):
    if shared and side != "out":
        pytest.skip("only a result is that of a matrix with its own transpose")
    triangle = Triangle(side, upper, shared)
    request = Request(8, 8, 8, structures=structures_of(triangle))
    assert request.shared == shared
    assert request.triangle == triangle
    assert not request.is_dense
    assert request.mask is None
    assert str(triangle) in str(request)


def test_a_dense_request_has_no_triangle_and_no_mask():
    request = Request(8, 8, 8)
    assert request.is_dense
    assert request.triangle is request.mask is None
    only = mask("F.", ".F")
    assert Request(8, 8, 8, structures=(DENSE, DENSE, only)).mask == only
    assert Request(8, 8, 8, structures=(only, DENSE, DENSE)).mask is None
