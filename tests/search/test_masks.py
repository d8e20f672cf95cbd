"""Searches for block masks: what four masks of attention save, certified over Z."""

from __future__ import annotations

import pytest

import lcma
from lcma.schemes_db import Z
from lcma.search import find

MASKS = {
    "tridiagonal": ("FF../FFF./.FFF/..FF", 34),
    "prefix of 2": ("FF../FF../FFF./FFFF", 38),
    "band of 3": ("F.../FF../FFF./.FFF", 32),
    "as BigBird": ("FFFF/FFF./FFFF/F.FF", 48),
}


@pytest.mark.parametrize("name", MASKS)
def test_a_mask_is_worked_with_fewer_products_than_blocks(name):
    rows, rank = MASKS[name]
    whole = "/".join(["FFFF"] * 4)
    result = find(f"4x4x4:blocks({whole},{whole},{rows})", rank=rank, seed=0, steps=200_000, rounds=40)
    assert result.best.rank <= rank < len(result.target.terms)
    assert result.best.ring is Z
    assert lcma.check(result.best).ok
