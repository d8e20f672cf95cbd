"""Bases that meet a border: the scheme stays one, the border shares more of its factors, and bases differ."""

import numpy as np
import pytest

from lcma import certify
from lcma.schemes_db import Scheme, Target
from lcma.schemes_db.resolve import resolve
from lcma.search.format_moves.borders import align_basis_with_border
from lcma.search.format_moves.corners import starts_for


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
