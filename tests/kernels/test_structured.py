"""Triangular and masked products: nothing leaks from what is absent; levels that compute other products are refused."""

import re
from functools import cache
from itertools import pairwise, product

import numpy as np
import pytest

import lcma
from lcma.kernels import BlockMask, Dense, Pool, Request, Structure, Triangular, plan_for
from lcma.kernels.causal.block_masks import kinds_of
from lcma.kernels.causal.candidates import TriangularSource
from lcma.kernels.cpu import triangular_products as half_products
from lcma.kernels.cpu.triangular_products import HalfProduct, leaf_strips, worked_fraction
from lcma.kernels.cpu.workspace import Arena
from lcma.kernels.exact.schemes import restored_chain
from lcma.kernels.ranges import ranges
from lcma.kernels.request import structures_of
from lcma.kernels.ring import exact_ring
from lcma.kernels.structure import DENSE
from lcma.schemes_db import ProductKind, parse_target
from lcma.schemes_db.flatten import flatten
from lcma.schemes_db.grids import present_entries
from lcma.schemes_db.shipped import shipped, shipped_names
from lcma.schemes_db.symmetry import SIDES, Triangle

from ..refusal import refuses

FORMS = [f"2x2x2:tri-{side}{upper}" for side in ("left", "right", "out") for upper in ("", ":upper")]


@pytest.fixture
def run(build_with):
    """run(scheme, levels, a, b, out=None, strategy=None): the product through a pool full of NaN."""

    def of(scheme, levels, a, b, out=None, strategy=None):
        pool = Pool(poison=True)
        chosen = plan_for(Request.of(a, b, out), scheme, levels, strategy=strategy)
        result = build_with(chosen, pool).run(a, b, out)
        assert pool.high_water == chosen.workspace
        return result

    return of


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
    monkeypatch.setattr(half_products, "STRIP", 5)
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


TRIANGLES = [Triangle(side, upper) for side, upper in product(SIDES, (False, True))]
TRIANGLES += [Triangle("out", upper, True) for upper in (False, True)]


@pytest.mark.parametrize("triangle", TRIANGLES, ids=str)
def test_the_triangle_of_a_request(triangle):
    request = Request(8, 8, 8, structures=structures_of(triangle))
    assert (request.triangle, request.shared) == (triangle, triangle.shared)
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


MOST = 36
"""Rank of the largest schemes: proofs and programs of larger ones take seconds."""

OTHERS = (
    "naive:1x1x1",
    "naive:2x2x2:gram",
    "naive:2x2x2:tri-left:upper",
    "naive:2x2x2:tri-right",
    "naive:2x2x2:tri-out:upper",
    "naive:2x3x2:tri-out",
)


@cache
def names():
    """A scheme of every target: of the general ones, which are alike, the five least; of the others all."""
    first = {}
    for name in shipped_names():
        scheme = shipped(name).scheme
        if scheme.rank <= MOST and not scheme.gaussian:
            first.setdefault(scheme.target.name, name)
    general = [name for target, name in first.items() if ":" not in target]
    return [*general[:5], *(name for target, name in first.items() if ":" in target), *OTHERS]


@cache
def pair(number):
    """Two of these schemes; reading them takes longer than collecting all tests."""
    known = names()
    chosen = np.random.default_rng(20).integers(len(known), size=(number + 1, 2))[number]
    return "/".join(known[i] for i in chosen)


def refused_or_right(wanted, multiply):
    """Whether the product is right; False if it is refused."""
    try:
        found = np.asarray(multiply())
    except lcma.PlanError:
        return False
    assert np.linalg.norm(found - wanted) <= 1e-10 * np.linalg.norm(wanted)
    return True


def triangular_products(text, convert):
    rng = np.random.default_rng(21)
    q, k, v = (rng.standard_normal((48, 36)) for _ in range(3))
    p = rng.standard_normal((48, 48))
    cq, ck, cv, cp, ct = map(convert, (q, k, v, p, v.T.copy()))
    yield np.tril(q @ k.T), lambda: lcma.causal_qk(cq, ck, scheme=text)
    yield np.tril(p) @ v, lambda: lcma.causal_pv(cp, cv, scheme=text)
    yield v.T @ np.tril(p).T, lambda: lcma.trmm(cp, ct, "right", transposed=True, scheme=text)
    yield np.tril(q @ q.T), lambda: lcma.syrk(cq, scheme=text)


def by_levels(text):
    rng = np.random.default_rng(22)
    outer, _, inner = text.partition("/")
    target = lcma.resolve(outer)[0].target
    a = rng.integers(-9, 9, (60, 60)).astype(float)
    b = a.T.copy() if target.shared else rng.integers(-9, 9, (60, 60)).astype(float)
    has_a, has_b, wanted = (present_entries(np.array(kinds), 60, 60) for kinds in (target.a, target.b, target.c))
    wanted = wanted * ((has_a * a) @ (has_b * b))
    return target, np.where(has_a, a, np.nan), np.where(has_b, b, np.nan), wanted, [outer, inner]


@pytest.mark.parametrize(
    ("of", "number"), [*(("arrays", number) for number in range(12)), *(("tensors", number) for number in range(3))]
)
def test_any_pair_of_schemes_is_refused_or_right(of, number):
    convert, text = np.asarray if of == "arrays" else pytest.importorskip("torch").from_numpy, pair(number)
    for case in triangular_products(text, convert):
        refused_or_right(*case)
    target, a, b, wanted, levels = by_levels(text)
    refused_or_right(wanted, lambda: lcma.matmul(convert(a), convert(b), levels))
    if target.is_general:
        exact = [convert(x.astype(np.int64)) for x in (a, b)]
        refused_or_right(wanted, lambda: lcma.matmul(*exact, levels, ring="Z"))


def test_the_pairs_have_both_outcomes():
    found = [refused_or_right(*case) for i in range(8) for case in triangular_products(pair(i), np.asarray)]
    assert {*found} == {True, False}


OF_OTHERS = ("eca-stage1", "eca-stage2", "4x4x4-band1-r34", "naive:2x2x2:gram")
"""Schemes of other products than those of general matrices."""


@pytest.mark.parametrize("inner", OF_OTHERS)
def test_a_level_for_other_products_is_refused_by_name(inner):
    target = lcma.resolve(inner)[0].target
    q = np.ones((8, 8))
    calls = [
        lambda: lcma.causal_qk(q, q, scheme=f"eca-stage1/{inner}"),
        lambda: lcma.causal_pv(q, q, scheme=f"eca-stage1/{inner}"),
        lambda: lcma.trmm(q, q, scheme=f"eca-stage1/{inner}"),
        lambda: lcma.syrk(q, scheme=f"eca-stage1/{inner}"),
        lambda: TriangularSource(f"eca-stage1/{inner}", Triangle("out")).program,  # of every device
        lambda: flatten(*(lcma.program_of(lcma.resolve(name)[0]) for name in ("strassen", inner))),
    ]
    for call in calls:
        refuses(f"^{re.escape(str(target))} does not compute the full products of ", call)


def test_levels_of_halves_grams_and_stored_chains():
    outer = lcma.program_of(lcma.resolve("eca-stage1")[0])
    for name in ("strassen", "eca-stage1"):
        inner = {ProductKind.HALF_OUT: lcma.program_of(lcma.resolve(name)[0])}
        assert dict(outer.nested(inner).inner) == inner
    for name in ("eca-stage2", "naive:2x2x2:gram"):
        inner = {ProductKind.HALF_OUT: lcma.program_of(lcma.resolve(name)[0])}
        refuses(r"does not compute the half-out products of .* or for tri-out$", outer.nested, inner)
    a = np.arange(4.0).reshape(2, 2)
    np.testing.assert_array_equal(lcma.syrk(a, scheme="naive:2x2x2:gram"), np.tril(a @ a.T))
    ring = exact_ring("Z")
    strassen, other = (f"{shipped(name).scheme.digest}@mkn" for name in ("strassen", "eca-stage1"))
    assert restored_chain(f"{strassen}/{strassen}", ring).label == "2x2x2:7 2x2x2:7"
    assert restored_chain(other, ring) is restored_chain(f"{strassen}/{other}", ring) is None


@pytest.mark.parametrize("name", OF_OTHERS)
def test_layers_multiply_by_schemes_for_general_matrices_alone(name):
    torch = pytest.importorskip("torch")
    refuses(r"a layer multiplies general matrices$", lcma.FastLinear.from_linear, torch.nn.Linear(16, 16), scheme=name)
