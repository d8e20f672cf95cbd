"""Compositions of schemes that are invariant under reversal: invariant, exact, of the ranks of their parts."""

import pytest

from lcma import certify
from lcma.schemes_db import Target
from lcma.schemes_db.algebra import naive
from lcma.schemes_db.resolve import resolve
from lcma.search import Policy, make_walker
from lcma.search.flipgraph.walkers import pack_start
from lcma.search.format_moves.symmetric import NAIVE_SIZE, is_invariant, nested_sum, symmetric_starts
from lcma.search.terms.pairs import PairTerms


def strassen():
    """A scheme modulo 2 that is invariant."""
    return resolve("strassen")[0].over_z2()


def plain(shape):
    return PairTerms.naive(Target.general(*shape)).to_scheme()


@pytest.mark.parametrize("axis", ["m", "k", "n"])
def test_a_nested_sum_is_invariant_and_exact(axis):
    inner = [2, 2, 2]
    inner["mkn".index(axis)] = 3
    whole = nested_sum(strassen(), plain(inner), axis)
    assert sorted(whole.target.shape) == [2, 2, 5]
    assert whole.rank == 7 + 12
    assert certify(whole).digest == whole.digest
    assert is_invariant(whole)


def test_small_formats_start_from_the_naive_scheme():
    (start,) = symmetric_starts((4, 5, 5), lambda shape: [])
    assert start.rank == 100 <= NAIVE_SIZE
    assert is_invariant(start)


@pytest.mark.parametrize("shape", [(5, 6, 6), (7, 5, 6)])
def test_large_formats_start_from_compositions_of_stored_schemes(shape):
    asked = set()

    def stored(wanted):
        asked.add(wanted)
        return [strassen()] if wanted == (2, 2, 2) else []

    starts = symmetric_starts(shape, stored)
    m, k, n = shape
    assert all(start.target.shape == shape and is_invariant(start) for start in starts)
    assert all(start.rank < m * k * n for start in starts)
    certify(starts[0])
    assert tuple(sorted(shape)) in asked
    assert (2, 2, 2) in asked


def test_only_invariant_schemes_are_used():
    walker = make_walker("flip", pack_start("flip", Target.general(2, 2, 3)), 1, 0, Policy())
    walker.advance(11, 1_000_000)
    scheme = walker.terms().to_scheme()
    assert not is_invariant(scheme)
    assert not is_invariant(naive(Target.general(2, 2, 2)))
    starts = symmetric_starts((5, 6, 6), lambda shape: [scheme] if shape == (2, 2, 3) else [])
    assert starts[0].rank == 180
