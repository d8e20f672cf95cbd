"""Moves from format to format keep schemes exact."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcma import certify
from lcma.schemes_db import parse_target
from lcma.schemes_db.resolve import resolve
from lcma.search import make_walker
from lcma.search.flipgraph.walkers import pack_start, walk_policy
from lcma.search.format_moves.change import change_format

SHAPES = st.tuples(*[st.integers(1, 4)] * 3)


def named(shape):
    return parse_target("x".join(map(str, shape)))


def walked(walk, shape, seed):
    walker = make_walker(walk, pack_start(walk, named(shape)), seed, 0, walk_policy(walk))
    walker.advance(0, 3000)
    return walker.terms()


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
def test_an_axis_that_doubles_is_merged_and_others_are_extended(walk):
    pool = [pack_start(walk, named((2, 2, 2)), resolve(name)[0]) for name in ("strassen", "winograd")]
    for wanted, rank, sources in (((4, 4, 4), 56, (0, 1)), ((3, 3, 3), 27 - 8 + 7, (0,)), ((2, 2, 1), 4, (0,))):
        moved = change_format(pool, named(wanted))[0]
        assert (moved.terms.rank, moved.sources) == (rank, sources)
        certify(moved.terms.to_scheme())
