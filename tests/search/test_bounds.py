"""Bounds on what is found, and the settings that runs take where users give none."""

import csv
from dataclasses import replace
from importlib import resources

import numpy as np
import pytest

from lcma.schemes_db import Target, parse_target
from lcma.schemes_db.costs import full_and_half
from lcma.schemes_db.resolve import resolve
from lcma.search import (
    PackedTerms,
    Policy,
    RunConfig,
    TernaryTerms,
    common_products,
    find,
    kept_first,
    resume,
    walk_names,
    walk_policy,
)
from lcma.search.runs.bounds import broken
from lcma.search.runs.plan import setting_for


def scheme(name):
    return resolve(name)[0]


def test_a_find_has_no_more_full_products_than_asked_for():
    target = "3x3x3:tri-out"
    config = RunConfig(target, 17, "Z2", policy={"full": 9})
    assert config.walk == "flip-half"
    assert config.target_policy == replace(walk_policy("flip-half"), full=9)
    found = find(target, rank=17, ring="Z2", seed=1, policy={"full": 9}, steps=200_000, seconds=30).best
    assert full_and_half(found)[0] <= 9
    naive = PackedTerms.naive(parse_target(target)).to_scheme()
    assert broken(naive, Policy(full=8)) == "9 products are full, more than 8"
    # The rank of the start is no find by itself where it has too many full products.
    assert RunConfig(target, naive.rank, "Z2", policy={"full": 8}).start_rank == naive.rank


def test_nonzeros_are_bounded_in_the_lift_too():
    found = find("3x3x3", rank=24, policy={"nonzeros": 3}, seconds=30)
    for one in (found.best, found.finds[0].origin):
        assert max(int(np.diff(factor.indptr).max()) for factor in one.factors) <= 3
    dense = scheme("winograd")
    assert broken(dense, Policy(nonzeros=3)) == "a factor has 4 nonzeros, more than 3"
    assert not broken(dense, Policy(nonzeros=4))


@pytest.mark.parametrize("ring", ["Z2", "ZT"])
def test_fixed_products_are_in_every_find_and_after_a_resume(ring, tmp_path):
    start = TernaryTerms.naive(parse_target("2x2x4")).to_scheme()
    ordered = kept_first(start, [4, 2])
    limits = {"rank": 15, "ring": ring, "start": ordered, "policy": {"keep": 2}, "steps": 100_000}
    result = find("2x2x4", **limits, rounds=1, out=tmp_path / "run")
    again = resume(tmp_path / "run", rounds=3, count=1000)
    kept = ordered.over_z2() if ring == "Z2" else ordered
    assert len(again.finds) > len(result.finds) > 0
    for found in again.schemes:
        assert len(common_products(kept, found)) >= 2
        assert {0, 1} <= set(common_products(kept, found))
    whole = find("2x2x4", **limits, rounds=3, count=1000)
    assert [one.digest for one in whole.schemes] == [one.digest for one in again.schemes]


def test_products_are_the_same_up_to_sign():
    strassen = scheme("strassen")
    u, v, w = (factor.dense.copy() for factor in strassen.factors)
    u[2], w[2] = -u[2], -w[2]
    turned = type(strassen).from_arrays(strassen.target, u[::-1], v[::-1], w[::-1])
    assert common_products(strassen, turned) == list(range(7))
    w[0] = -w[0]
    assert common_products(strassen, type(strassen).from_arrays(strassen.target, u, v, w)) == list(range(1, 7))
    assert kept_first(strassen, [3, 1]).digest == strassen.digest
    assert np.array_equal(kept_first(strassen, [3, 1]).u.dense[:2], strassen.u.dense[[3, 1]])


def test_settings_by_target_and_walk():
    text = (resources.files("lcma.search") / "data" / "settings.csv").read_text()
    rows = list(csv.DictReader(text.splitlines()))
    assert len({(row["target"], row["walk"]) for row in rows}) == len(rows) > 0
    for row in rows:
        target = parse_target(row["target"])
        assert row["walk"] in walk_names()
        assert list(target.shape) == sorted(target.shape)
        shapes = {target.shape, target.shape[::-1]} if target.is_general else {target.shape}
        for shape in shapes:
            known = setting_for(Target.general(*shape) if target.is_general else target, row["walk"])
            assert (known.walkers, known.steps) == (int(row["walks"]), int(row["steps"]))
            assert known.policy.plus_after == int(row["plus_after"])
    config = RunConfig("3x3x3", 23, "Z2")
    own = setting_for(config.final_target, "flip")
    assert (config.walks, config.steps, config.target_policy) == (own.walkers, own.steps, own.policy)
    assert RunConfig("3x3x3", 23, "Z2", policy={"margin": 4}).target_policy == replace(config.target_policy, margin=4)
    assert RunConfig("3x3x3", 23, "Z2", walks=3, steps=7, policy=Policy()).target_policy == Policy()
    assert setting_for(parse_target("8x8x8"), "flip").policy == walk_policy("flip")
