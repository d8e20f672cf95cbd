"""Projections in any direction and bases that meet a border: exact, as many products lost or shared as is counted."""

import numpy as np
import pytest

from lcma import certify
from lcma.schemes_db import Scheme, Target
from lcma.schemes_db.algebra import naive
from lcma.schemes_db.constructions import change_of_basis, project
from lcma.schemes_db.resolve import resolve
from lcma.search import find
from lcma.search.format_moves.borders import align_basis_with_border
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


def scrambled(name: str) -> Scheme:
    """A kept scheme modulo 2 in a basis that has few unit matrices."""
    scheme = resolve(name)[0].over_z2()
    u, v, w = (factor.dense.reshape(-1, factor.rows, factor.cols) & 1 for factor in scheme.factors)
    p, q, r = (np.tri(size, dtype=np.int64) for size in scheme.target.shape)
    back = [np.rint(np.linalg.inv(basis)).astype(np.int64) for basis in (p, q, r)]
    moved = ((p.T @ u @ back[1].T) & 1, (q.T @ v @ back[2].T) & 1, (back[0] @ w @ r) & 1)
    return Scheme.from_arrays(scheme.target, *moved, scheme.ring)


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
    pool, target = [scrambled("2x3x4"), resolve("2x3x4")[0].over_z2()], Target.general(3, 3, 5)
    starts = starts_for(pool, target, np.random.default_rng(2))
    digests = [start.digest for start in starts]
    assert len(digests) == len(set(digests)) > len(pool)
    for start in starts:
        certify(start)
        assert (start.target, start.rank) == (target, 20 + 45 - 24)
    assert starts_for([pool[0]], pool[0].target, np.random.default_rng(2)) == [pool[0]]
    ternary = starts_for([resolve("2x3x4")[0]], target, np.random.default_rng(2))
    assert [(one.ternary, one.ring.name) for one in ternary] == [(True, "Z")]
