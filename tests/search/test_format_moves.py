"""Moves from format to format: all exact; projections lose, and bases that meet a border share, what is counted."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcma import certify
from lcma.schemes_db import Scheme, parse_target
from lcma.schemes_db.constructions import change_of_basis, project
from lcma.search import pack_start, walk_policy
from lcma.search.format_moves.borders import align_basis_with_border
from lcma.search.format_moves.corners import change_format, starts_for
from lcma.search.format_moves.projections import _projected, directions, projections

from .searches import SEARCHES, searched
from .starts import scheme, walked


def mod2(name: str) -> Scheme:
    return scheme(name).over_z2()


def scrambled(name: str) -> Scheme:
    """A kept scheme modulo 2 in a basis that has few unit matrices."""
    kept = scheme(name)
    return change_of_basis(kept, *(np.tri(size, dtype=np.int64) for size in kept.target.shape)).over_z2()


@pytest.mark.parametrize("name", ["strassen", "laderman", "2x3x4", "3x4x5"])
@pytest.mark.parametrize("axis", "mkn")
def test_every_direction_loses_what_is_counted(name, axis):
    scheme = mod2(name)
    functionals, vectors, lost = directions(scheme, axis)
    length = scheme.target.shape["mkn".index(axis)]
    assert len(set(zip(functionals.tolist(), vectors.tolist(), strict=True))) == 2 ** (length - 1) * (2**length - 1)
    for one in np.random.default_rng(0).permutation(len(lost))[:12]:
        found = _projected(scheme, axis, int(functionals[one]), int(vectors[one]))
        certify(found)
        assert found.rank == scheme.rank - lost[one]
        assert found.provenance.parents == (scheme.digest,)


@pytest.mark.parametrize(
    ("name", "axis", "count", "slack"),
    [*(("3x4x5", axis, 40, 1) for axis in "mkn"), ("5x5x10-r180", "n", 12, 7)],  # the last has too many directions
)
def test_the_best_come_first_and_beat_single_blocks(name, axis, count, slack):
    scheme = mod2(name)
    found = projections(scheme, axis, count, np.random.default_rng(0), slack=slack)
    ranks = [one.rank for one in found]
    length = scheme.target.shape["mkn".index(axis)]
    lost = directions(scheme, axis)[2]
    assert ranks == sorted(ranks)
    assert ranks[0] < ranks[-1] <= ranks[0] + slack
    assert scheme.rank - lost.max() == ranks[0] <= min(project(scheme, axis, index).rank for index in range(length))
    assert ranks.count(ranks[0]) == min((lost == lost.max()).sum(), count)
    for one in (found[0], found[-1]):
        certify(one)


@pytest.mark.parametrize("axis", "mkn")
def test_the_ranks_are_those_of_any_basis(axis):
    before, after = (np.bincount(directions(one, axis)[2]) for one in (mod2("2x3x4"), scrambled("2x3x4")))
    assert before.tolist() == after.tolist()


def test_a_search_from_a_larger_format_begins_at_its_best_projection():
    assert min(one.rank for one in projections(mod2("3x4x5"), "n", 1, np.random.default_rng(0))) > 38
    found = searched(SEARCHES["single"]["a start of another format"])
    assert found.best.rank == 38
    certify(found.best)
    assert found.finds[0].origin.provenance.relation.startswith("projection along n")


def test_many_walkers_begin_in_several_of_the_best_directions():
    for name, target, highest in (("6x6x6-r153", "5x6x6", 140), ("3x4x5", "3x3x4", 35)):
        starts = starts_for([mod2(name)], parse_target(target), np.random.default_rng(0))
        assert 1 < len(starts) == len({start.digest for start in starts})
        assert {start.target.name for start in starts} == {target}
        assert max(start.rank for start in starts) <= highest
        certify(starts[0])


def test_an_axis_of_many_blocks_takes_no_memory_for_its_directions():
    (found,) = projections(mod2("naive:2x1x32"), "n", 1, np.random.default_rng(0))
    assert (found.target.name, found.rank) == ("2x1x31", 62)
    certify(found)


def products_at_border(scheme: Scheme, axis: str) -> int:
    """Return the number of products that share a factor with the naive border along an axis."""
    factor = scheme.factors[{"m": 1, "k": 2, "n": 0}[axis]]
    return int((np.bincount(factor.product, minlength=scheme.rank) == 1).sum())


@pytest.mark.parametrize("name", ["laderman", "2x3x4", "3x4x5"])
@pytest.mark.parametrize("axis", "mkn")
def test_a_scheme_that_meets_its_border_is_a_scheme(name, axis):
    scheme = scrambled(name)
    certify(scheme)
    found = align_basis_with_border(scheme, axis, np.random.default_rng(1))
    certify(found)
    assert (found.target, found.rank) == (scheme.target, scheme.rank)
    assert products_at_border(found, axis) > products_at_border(scheme, axis)


def test_detours_lead_to_other_bases():
    scheme = scrambled("3x4x5")
    found = [align_basis_with_border(scheme, "k", np.random.default_rng(seed), 6.0) for seed in range(4)]
    for one in found:
        certify(one)
    assert len({one.digest for one in found}) > 1
    best = align_basis_with_border(scheme, "k", np.random.default_rng(0))
    assert max(products_at_border(one, "k") for one in found) <= products_at_border(best, "k")


def test_starts_meet_their_border_and_are_all_different():
    pool, target = [scrambled("2x3x4"), mod2("2x3x4")], parse_target("3x3x5")
    starts = starts_for(pool, target, np.random.default_rng(2))
    assert len({start.digest for start in starts}) == len(starts) > len(pool)
    for start in starts:
        certify(start)
        assert (start.target, start.rank) == (target, 20 + 45 - 24)
    assert starts_for([pool[0]], pool[0].target, np.random.default_rng(2)) == [pool[0]]
    ternary = starts_for([scheme("2x3x4")], target, np.random.default_rng(2))
    assert [(one.ternary, one.ring.name) for one in ternary] == [(True, "Z")]


FORMATS = st.tuples(*[st.integers(1, 4)] * 3).map("{0[0]}x{0[1]}x{0[2]}".format)


@given(st.sampled_from(["flip", "flip-zt"]), FORMATS, FORMATS, st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_pools_are_carried_to_any_format(walk, name, wanted, seed):
    pool = [walked(name, 0, 3000, walk, one, walk_policy(walk)) for one in (seed, seed + 1)]
    for place, moved in enumerate(change_format(pool, parse_target(wanted))):
        assert moved.terms.target.name == wanted
        assert moved.sources[0] == place
        assert (moved.relation == "") == (name == wanted)
        assert ("merge" in moved.relation) == (len(moved.sources) == 2)
        certify(moved.terms.to_scheme())


@pytest.mark.parametrize("walk", ["flip", "flip-zt"])
@pytest.mark.parametrize(
    ("wanted", "rank", "sources"), [("4x4x4", 56, (0, 1)), ("3x3x3", 27 - 8 + 7, (0,)), ("2x2x1", 4, (0,))]
)
def test_an_axis_that_doubles_is_merged_and_others_are_extended(walk, wanted, rank, sources):
    pool = [pack_start(walk, parse_target("2x2x2"), scheme(name)) for name in ("strassen", "winograd")]
    moved = change_format(pool, parse_target(wanted))[0]
    assert (moved.terms.rank, moved.sources) == (rank, sources)
    certify(moved.terms.to_scheme())
