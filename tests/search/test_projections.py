"""Projections in any direction: exact, as many products lost as counted, never worse than those of single blocks."""

import numpy as np
import pytest

from lcma import certify
from lcma.schemes_db import Target
from lcma.schemes_db.algebra import naive
from lcma.schemes_db.constructions import change_of_basis, project
from lcma.schemes_db.resolve import resolve
from lcma.search import find
from lcma.search.format_moves.corners import starts_for
from lcma.search.format_moves.projections import _projected, directions, projections


@pytest.mark.parametrize("name", ["strassen", "laderman", "2x3x4", "3x4x5"])
@pytest.mark.parametrize("axis", "mkn")
def test_every_direction_loses_what_is_counted(name, axis):
    scheme = resolve(name)[0].over_z2()
    functionals, vectors, lost = directions(scheme, axis)
    length = scheme.target.shape["mkn".index(axis)]
    assert len(set(zip(functionals.tolist(), vectors.tolist(), strict=True))) == 2 ** (length - 1) * (2**length - 1)
    for one in np.random.default_rng(0).permutation(len(lost))[:12]:
        found = _projected(scheme, axis, int(functionals[one]), int(vectors[one]))
        certify(found)
        assert found.rank == scheme.rank - lost[one]
        assert found.provenance.parents == (scheme.digest,)


@pytest.mark.parametrize("axis", "mkn")
def test_the_best_come_first_and_beat_single_blocks(axis):
    scheme = resolve("3x4x5")[0].over_z2()
    found = projections(scheme, axis, 40, np.random.default_rng(0), slack=1)
    ranks = [one.rank for one in found]
    length = scheme.target.shape["mkn".index(axis)]
    assert ranks == sorted(ranks)
    assert ranks[-1] <= ranks[0] + 1
    assert ranks[0] <= min(project(scheme, axis, index).rank for index in range(length))
    lost = directions(scheme, axis)[2]
    assert ranks[0] == scheme.rank - lost.max()
    assert ranks.count(ranks[0]) == (lost == lost.max()).sum()


def test_of_a_long_axis_the_directions_that_lose_products_are_counted():
    scheme = resolve("5x5x10-r180")[0].over_z2()
    lost = directions(scheme, "n")[2]
    found = projections(scheme, "n", 12, np.random.default_rng(0), slack=7)
    ranks = [one.rank for one in found]
    assert ranks == sorted(ranks)
    assert scheme.rank - lost.max() == ranks[0] <= min(project(scheme, "n", index).rank for index in range(10))
    assert ranks[0] < ranks[-1] <= ranks[0] + 7
    for one in (found[0], found[-1]):
        certify(one)


@pytest.mark.parametrize("axis", "mkn")
def test_the_ranks_are_those_of_any_basis(axis):
    scheme = resolve("2x3x4")[0]
    moved = change_of_basis(scheme, *(np.tri(size, dtype=np.int64) for size in scheme.target.shape))
    before, after = (np.bincount(directions(one.over_z2(), axis)[2]) for one in (scheme, moved))
    assert before.tolist() == after.tolist()


def test_a_search_from_a_larger_format_begins_at_its_best_projection():
    large = resolve("3x4x5")[0]
    assert min(one.rank for one in projections(large.over_z2(), "n", 1, np.random.default_rng(0))) > 38
    found = find("3x4x4", rank=38, ring="Z2", start=large, seed=1, seconds=60)
    assert found.best.rank == 38
    certify(found.best)
    assert found.finds[0].origin.provenance.relation.startswith("projection along n")


def test_many_walkers_begin_in_several_of_the_best_directions():
    large = resolve("6x6x6-r153")[0].over_z2()
    starts = starts_for([large], Target.general(5, 6, 6), np.random.default_rng(0))
    assert 1 < len(starts) == len({start.digest for start in starts})
    assert {start.rank for start in starts} == {140}
    small = Target.general(3, 3, 4)
    twice = starts_for([resolve("3x4x5")[0].over_z2()], small, np.random.default_rng(0))
    assert {start.target for start in twice} == {small}
    assert max(start.rank for start in twice) < len(small.terms)
    for start in (starts[0], twice[0]):
        certify(start)


def test_an_axis_of_many_blocks_takes_no_memory_for_its_directions():
    scheme = naive(Target.general(2, 1, 32)).over_z2()
    (found,) = projections(scheme, "n", 1, np.random.default_rng(0))
    assert (found.target, found.rank) == (Target.general(2, 1, 31), 62)
    certify(found)
