"""The table of best known ranks, the recipes of compositions, and what both say of the 680 formats."""

import hashlib
from functools import cache, partial
from importlib import resources
from itertools import combinations_with_replacement

import numpy as np
import pytest

import lcma
from lcma.schemes_db import Z, composition
from lcma.schemes_db.algebra import naive
from lcma.schemes_db.catalog import Catalog
from lcma.schemes_db.closure import Closure, find_recipes, over
from lcma.schemes_db.composed_ranks import BOARD_SIDE, composed_ranks
from lcma.schemes_db.composition import best_composition, ranks_up_to
from lcma.schemes_db.ranks import best_known, board
from lcma.schemes_db.recipes import Recipe, in_order, render, shipped_recipes
from lcma.schemes_db.scheme import Scheme
from lcma.schemes_db.shipped import shipped, shipped_names

RECIPES_OF = "1d17058971991150"
TABLE_DIGEST = "28155ccb8ba790dc76be447bfd68963704dd514a5129130cb376504303cb8038"
"""The table of 2 July 2026: what is said to be below it refers to this one."""


def data(name):
    return (resources.files("lcma.schemes_db") / "data" / name).read_bytes()


@pytest.fixture
def composed(monkeypatch):
    """composed(shape, ring): a best composition and, as a function, its scheme; what several share is built once."""
    monkeypatch.setattr(composition, "build", cache(composition.build))
    with Catalog.in_memory() as catalog:
        ranks = cache(catalog.best_ranks)

        @cache
        def named(ring, name):
            scheme = catalog.find(name)[0]
            return scheme.over_z2() if ring == "Z2" and scheme.ring == Z else scheme

        names = {ring: partial(named, ring) for ring in ("Z", "ZT", "Z2", "Q")}  # `build` remembers by the function

        def compose(shape, ring):
            part = best_composition(shape, ranks(ring), ring)
            over_ring = lcma.parse_ring("Z" if ring == "ZT" else ring)
            return part, partial(composition.build, part, shape, names[ring], over_ring)

        yield compose


def test_the_table_of_best_known_ranks_is_that_of_2_july_2026():
    assert hashlib.sha256(data("ranks_general.csv")).hexdigest() == TABLE_DIGEST
    assert board() == tuple(combinations_with_replacement(range(2, 17), 3))
    assert len(board()) == 680
    for shape in board():
        known = best_known(lcma.Target.general(*shape), Z)
        assert known.date == "2026-07-02"
        assert known.rank <= best_known(lcma.Target.general(*shape), Z, ternary=True).rank <= np.prod(shape)


def test_recipes_are_found_again_after_each_find():
    """`lcma compose --all --out schemes_db/data/recipes.csv` found them from schemes of these names."""
    names = "\n".join(sorted(shipped_names()))
    assert hashlib.sha256(names.encode()).hexdigest()[:16] == RECIPES_OF


def test_recipes_are_those_of_the_shipped_schemes():
    known = shipped_recipes()
    assert render(known).encode() == data("recipes.csv")
    assert {one.ring for one in known} <= {"Z", "ZT", "Z2"}
    for one in known:
        scheme = over(shipped(one.outer).scheme, "Z2" if one.ring == "Z2" else "Z")
        assert (scheme.rank, scheme.target.shape) == (one.rank, one.blocks)
        assert Recipe.of(one.outer, scheme, one.sizes, one.groups).parts == one.parts
        assert scheme.ternary or one.ring != "ZT"


@pytest.mark.parametrize(("shape", "ring"), [
    ((4, 14, 14), "Z"), ((14, 9, 9), "Z"), ((12, 15, 14), "Z"),
    ((11, 11, 11), "ZT"), ((8, 9, 9), "Z2"), ((15, 15, 16), "Z2"),
])  # fmt: skip
def test_compositions_of_the_board_are_valid(composed, shape, ring):
    part, build = composed(shape, ring)
    scheme = build()
    assert (scheme.target.shape, scheme.rank) == (shape, part.rank)
    assert scheme.ternary or ring == "Z"
    assert lcma.check(scheme).ok


VANISHING = {("ZT", (5, 10, 13)), ("ZT", (5, 11, 11)), ("ZT", (11, 11, 15)), ("ZT", (11, 11, 16)), ("Q", (9, 11, 15))}
"""Compositions with one product less than their ranks add up to: its factor is zero in padded blocks."""


@pytest.mark.slow
@pytest.mark.parametrize("ring", ["Z", "ZT", "Z2", "Q"])
def test_all_680_compositions_are_exact(composed, ring):
    """Over Q those that have fewer products than over Z."""
    for shape in board():
        part, build = composed(shape, ring)
        if ring == "Q" and part.rank == composed(shape, "Z")[0].rank:
            continue
        scheme = build()
        assert scheme.target.shape == shape
        # Modulo 2 the factors of other products become zero, too.
        assert scheme.rank == part.rank - ((ring, shape) in VANISHING) or (ring == "Z2" and scheme.rank < part.rank)
        assert scheme.ternary or ring in ("Z", "Q")
        assert lcma.check(scheme).ok


def test_the_closure_of_a_few_schemes_is_a_fixed_point():
    schemes = {name: shipped(name).scheme for name in ("strassen", "2x3x3-r15", "3x3x3-r23-additions", "2x2x4-r14")}
    closure = Closure(schemes, "Z")
    found = closure.run()
    kept = {in_order(scheme.target.shape): scheme.rank for scheme in schemes.values()}
    assert np.array_equal(composed_ranks(kept, BOARD_SIDE, recipes=found), closure.ranks)
    assert closure.run() == found
    assert {"n", "m", "k"} >= {group.axis for one in found for group in one.groups} != set()
    # A pair of products with a common factor saves one product of 2x2x2 twice: 3x3x3 over 1x2x2 blocks.
    assert closure.ranks[3, 6, 6] < min(23 * 4, 15 * 6)
    for missing in found:
        others = [one for one in found if one is not missing]
        assert composed_ranks(kept, BOARD_SIDE, recipes=others)[missing.shape] > closure.ranks[missing.shape]


def test_a_scheme_that_loses_products_modulo_2_has_no_recipe_there(strassen):
    u, v, w = (factor.dense for factor in strassen.factors)
    more = Scheme.from_arrays(
        strassen.target,
        *(np.concatenate([x, c * x[:1], d * x[:1]]) for x, c, d in ((u, 2, 2), (v, 1, 1), (w, 1, -1))),
        Z,
    )
    assert lcma.check(more).ok
    assert over(more, "Z2") is None
    assert over(more, "ZT") is None
    assert over(more, "Z") is more
    assert over(strassen, "Z2").ring.name == "Z2"
    assert over(shipped("2x2x2-tri-left-r6").scheme, "Z") is None


def test_a_better_scheme_of_the_user_lowers_what_is_composed_of_it():
    with Catalog.in_memory() as catalog:
        kept = {shape: rank for shape, (rank, _) in catalog.best_ranks("Z").items()}
    before = ranks_up_to(16, kept)
    after = ranks_up_to(16, {**kept, (3, 5, 6): 68})
    assert before[3, 5, 6] == 69
    assert (after <= before).all()
    assert after[12, 12, 15] <= before[12, 12, 15]
    assert (after < before).sum() > 50


def test_a_recipe_needs_its_scheme_and_a_naive_one_has_none():
    assert find_recipes({"naive": naive(lcma.Target.general(2, 2, 2))}) == []
    kept = {(2, 2, 2): 7}
    assert composed_ranks(kept, BOARD_SIDE)[3, 6, 14] == composed_ranks(kept, BOARD_SIDE, recipes=())[3, 6, 14]
