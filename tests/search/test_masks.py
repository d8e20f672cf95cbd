"""Searches for block masks: what four masks of attention save, certified over Z."""

import numpy as np
import pytest

from lcma.schemes_db import Z, parse_target
from lcma.schemes_db.algebra import naive
from lcma.schemes_db.resolve import resolve
from lcma.search import RunConfig, find, score_of
from lcma.search.format_moves.corners import restricted
from lcma.search.starts import mask_start
from lcma.verify import certify


@pytest.mark.parametrize("seed", range(12))
def test_a_general_scheme_restricted_to_random_blocks_is_exact(seed):
    rng = np.random.default_rng(seed)
    size = 4
    whole = ["4x4x4-r47-mod2", "4x4x4-r49"][seed % 2]
    grids = ["/".join("".join(rng.choice(list("FFFLU."), size)) for _ in range(size)) for _ in range(3)]
    full = "/".join(["F" * size] * size)
    for grid in (f"{full},{full},{grids[2]}", ",".join(grids)):
        target = parse_target(f"4x4x4:blocks({grid})")
        if not len(target.terms):
            continue
        found = restricted(resolve(whole)[0], target)
        assert certify(found).rank == found.rank <= resolve(whole)[0].rank


def test_a_mask_starts_from_the_better_of_its_blocks_and_the_full_product(home):
    rows = "/".join(["FFFFF"] * 4 + ["FFFF."])
    whole = "/".join(["FFFFF"] * 5)
    target = parse_target(f"5x5x5:blocks({whole},{whole},{rows})")
    start = mask_start(target, Z)
    assert start is not None
    assert start.rank <= 93 < naive(target).rank
    assert (
        mask_start(parse_target("4x4x4:blocks(FFFF/FFFF/FFFF/FFFF,FFFF/FFFF/FFFF/FFFF,F.../.F../..F./...F)"), Z) is None
    )
    assert mask_start(parse_target("5x5x5"), Z) is None


HALVES = "4x4x4:blocks(FFFF/FFFF/FFFF/FFFF,FFFF/FFFF/FFFF/FFFF,.FFF/FUFF/FLUU/.F.F)"


def test_walks_on_a_mask_start_from_the_restricted_scheme_and_from_naive(home):
    target = parse_target(HALVES)
    start = mask_start(target, Z)
    config = RunConfig(HALVES, ring="Z2", rounds=1, start=start, naive_too=True)
    assert [terms.rank for terms in config.starts] == [start.rank, naive(target).rank]


@pytest.mark.parametrize("device", ["cpu", pytest.param("twin", marks=pytest.mark.slow)])
def test_finds_of_a_mask_with_halves_cost_ever_less_than_both_starts(home, device):
    target = parse_target(HALVES)
    start = mask_start(target, Z)
    least = min(score_of("cost", start), score_of("cost", naive(target)))
    result = find(
        HALVES, ring="Z2", seed=0, steps=20_000, walks=8, rounds=30, start=start, naive_too=True,
        objective="cost", device=device,
    )  # fmt: skip
    scores = [score_of("cost", found.scheme) for found in result.finds]
    assert scores
    assert scores == sorted(set(scores), reverse=True)
    assert scores[0] < least
    for found in result.finds:
        assert certify(found.scheme).rank == found.scheme.rank
        assert start.digest in found.scheme.provenance.parents or found.scheme.provenance.parents == ()
