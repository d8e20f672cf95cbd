"""Merge, extend and project keep schemes exact."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcma import certify
from lcma.errors import PlanError
from lcma.schemes_db import parse_target
from lcma.schemes_db.resolve import resolve
from lcma.search import format_move_names, make_walker, register_format_move
from lcma.search.flipgraph.walkers import pack_start, walk_policy
from lcma.search.format_moves.meta_moves import extend, merge, project
from lcma.search.format_moves.registry import MOVES, change_format
from lcma.search.terms.packed import PackedTerms
from lcma.search.terms.ternary import TernaryTerms

SHAPES = st.tuples(*[st.integers(1, 4)] * 3)


def named(shape):
    return parse_target("x".join(map(str, shape)))


def walked(walk, shape, seed):
    walker = make_walker(walk, pack_start(walk, named(shape)), seed, 0, walk_policy(walk))
    walker.advance(0, 3000)
    return walker.terms()


@given(st.sampled_from(["flip", "flip-zt"]), SHAPES, st.sampled_from("mkn"), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_extending_adds_a_naive_border(walk, shape, axis, seed):
    terms = walked(walk, shape, seed)
    longer = extend(terms, axis)
    grown = list(shape)
    grown["mkn".index(axis)] += 1
    assert longer.target == named(grown)
    assert longer.rank == terms.rank + len(longer.target.terms) - len(terms.target.terms)
    certify(longer.to_scheme())


@given(st.sampled_from(["flip", "flip-zt"]), SHAPES, st.sampled_from("mkn"), st.integers(1, 3), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_merging_adds_ranks(walk, shape, axis, size, seed):
    other = list(shape)
    other["mkn".index(axis)] = size
    left, right = walked(walk, shape, seed), walked(walk, other, seed + 1)
    whole = merge(left, right, axis)
    assert whole.rank == left.rank + right.rank
    assert whole.target.shape["mkn".index(axis)] == shape["mkn".index(axis)] + size
    certify(whole.to_scheme())


@given(st.sampled_from(["flip", "flip-zt"]), SHAPES, st.sampled_from("mkn"), st.integers(0, 99), st.integers(0, 3))
@settings(max_examples=30, deadline=None)
def test_projecting_keeps_the_smaller_product(walk, shape, axis, seed, index):
    size = shape["mkn".index(axis)]
    terms = walked(walk, shape, seed)
    if size < 2 or index >= size:
        with pytest.raises(PlanError, match="can't lose"):
            project(terms, axis, index)
        return
    shorter = project(terms, axis, index)
    assert shorter.rank <= terms.rank
    assert shorter.target.shape["mkn".index(axis)] == size - 1
    certify(shorter.to_scheme())


def test_an_extension_projected_again_is_the_scheme():
    terms = walked("flip-zt", (2, 3, 2), 1)
    for axis, last in zip("mkn", (2, 3, 2), strict=True):
        assert project(extend(terms, axis), axis, last).to_scheme() == terms.to_scheme()


def test_what_does_not_fit_is_refused():
    small = PackedTerms.naive(named((2, 2, 2)))
    with pytest.raises(PlanError, match="axis 'x'"):
        extend(small, "x")
    with pytest.raises(PlanError, match="can't be merged"):
        merge(small, PackedTerms.naive(named((2, 3, 3))), "n")
    with pytest.raises(PlanError, match="can't be merged"):
        merge(small, TernaryTerms.naive(named((2, 2, 2))), "n")
    with pytest.raises(PlanError, match="can't be merged"):
        extend(PackedTerms.naive(parse_target("3x3x3:tri-left")), "n")
    with pytest.raises(PlanError, match="at most 8x8"):
        extend(PackedTerms.naive(named((8, 8, 1))), "k")
    with pytest.raises(PlanError, match="at most 8x8"):
        extend(TernaryTerms.naive(named((8, 8, 1))), "k")


@given(st.sampled_from(["flip", "flip-zt"]), SHAPES, SHAPES, st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_pools_are_carried_to_any_format(walk, shape, wanted, seed):
    pool = [walked(walk, shape, seed), walked(walk, shape, seed + 1)]
    for place, moved in enumerate(change_format(pool, named(wanted))):
        assert moved.terms.target == named(wanted)
        assert moved.sources[0] == place
        assert (moved.relation == "") == (shape == wanted)
        assert ("merge" in moved.relation) == (len(moved.sources) == 2)
        certify(moved.terms.to_scheme())


@pytest.mark.parametrize("walk", ["flip", "flip-zt"])
def test_moves_between_formats_have_names_and_an_order(walk):
    pool = [pack_start(walk, named((2, 2, 2)), resolve(name)[0]) for name in ("strassen", "winograd")]
    aim = named((4, 4, 4))
    by_rank = {moves: change_format(pool, aim, moves)[0] for moves in (("product",), ("merge", "extend"), ("extend",))}
    assert [moved.terms.rank for moved in by_rank.values()] == [49, 56, 64 - 8 + 7]
    assert [moved.sources for moved in by_rank.values()] == [(0, 1), (0, 1), (0,)]
    for moved in by_rank.values():
        certify(moved.terms.to_scheme())
    assert set(MOVES) < set(format_move_names())
    with pytest.raises(PlanError, match="none of the moves project, product leads from 2x2x2 to 2x2x3"):
        change_format(pool, named((2, 2, 3)), ("project", "product"))
    with pytest.raises(PlanError, match="choose one of merge, extend, project, product"):
        change_format(pool, aim, ("jump",))
    with pytest.raises(PlanError, match="registered already"):
        register_format_move("merge", None)
