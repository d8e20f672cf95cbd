"""Triangular and masked products: nothing leaks from what is absent, and what is not wanted is zero."""

from itertools import pairwise

import numpy as np
import pytest

from lcma.kernels import Pool, Request, plan_for
from lcma.kernels.cpu import strips
from lcma.kernels.cpu.strips import leaf_strips, worked_fraction
from lcma.kernels.cpu.triangular_products import HalfProduct
from lcma.kernels.cpu.workspace import Arena
from lcma.kernels.ranges import ranges
from lcma.schemes_db import ProductKind, parse_target
from lcma.schemes_db.symmetry import Triangle

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
