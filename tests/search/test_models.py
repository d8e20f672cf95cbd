"""CP-SAT: the Brent equations of tiny targets, and schemes put together from products."""

import time

import numpy as np
import pytest

import lcma
from lcma.schemes_db import Scheme, parse_target
from lcma.schemes_db.costs import full_and_half
from lcma.search import recombine, solve
from lcma.search.cpsat.recombine import distinct_products
from lcma.verify import certify


@pytest.mark.parametrize("ring", ["Z2", "ZT"])
def test_vectors_need_all_their_products(ring):
    target = parse_target("1x2x2")
    found = solve(target, 4, ring=ring)
    assert found.word == "found"
    assert found.scheme.rank == 4
    assert found.certificate == certify(found.scheme)
    for ordered in (False, True):
        none = solve(target, 3, ring=ring, ordered=ordered)
        assert (none.word, none.scheme) == ("infeasible", None)


def test_strassens_rank_is_found_modulo_2_and_the_same_each_time():
    first, second = (solve(parse_target("2x2x2"), 7, ring="Z2", seed=1) for _ in range(2))
    assert first.word == "found"
    assert first.scheme == second.scheme
    assert first.scheme.ring.name == "Z2"


@pytest.mark.slow
def test_six_products_are_too_few_modulo_2():
    assert solve(parse_target("2x2x2"), 6, ring="Z2", seconds=300, ordered=True).word == "infeasible"


def test_absent_blocks_have_no_equations():
    found = solve(parse_target("2x2x1:tri-left"), 3, seconds=20)
    assert found.word == "found"
    assert solve(parse_target("2x2x1:tri-left"), 2, ordered=True).word == "infeasible"


def test_no_time_is_no_answer():
    assert solve(parse_target("2x2x2"), 7, seconds=1e-6).word == "unknown"


def test_the_cheapest_of_a_pool_is_proven():
    pool = [lcma.resolve(name)[0] for name in ("naive:2x2x2", "strassen")]
    result = recombine(pool)
    assert result.optimal
    assert result.scheme == pool[1]
    assert not result.cheaper
    assert result.products == 8 + 7 - 0
    assert result.scheme.provenance.parents == tuple(scheme.digest for scheme in pool)


def test_parts_of_two_schemes_make_a_cheaper_one(strassen):
    """Two direct sums with Strassen in one half and naive products in the other: both good halves are in the pool."""
    target = parse_target("2x2x4")
    naive = lcma.resolve("naive:2x2x2")[0]

    def side_by_side(left, right):
        arrays = []
        for a, b, cols in zip(left.factors, right.factors, (0, 2, 2), strict=True):
            x, y = a.dense, b.dense
            if cols:
                x, y = np.pad(x, ((0, 0), (0, 0), (0, 2))), np.pad(y, ((0, 0), (0, 0), (2, 0)))
            arrays.append(np.concatenate([x, y]))
        return Scheme.from_arrays(target, *arrays)

    pool = [side_by_side(strassen, naive), side_by_side(naive, strassen)]
    for scheme in pool:
        certify(scheme)
    result = recombine(pool)
    assert result.cheaper
    assert result.optimal
    assert result.scheme.rank == 14


@pytest.mark.parametrize("target", ["2x2x2:tri-out", "2x2x2:tri-left:upper"])
def test_half_products_weigh_half(target):
    scheme = lcma.resolve(f"naive:{target}")[0]
    result = recombine([scheme])
    assert full_and_half(result.scheme) == full_and_half(scheme)
    assert full_and_half(scheme)[1] > 0


def test_a_product_of_several_schemes_counts_once(strassen):
    assert len(distinct_products([strassen, strassen])) == 7


def test_an_interruption_ends_the_solver_and_is_not_reported_as_its_limit():
    ticks = []

    def interrupt(text):
        ticks.append(text)
        if len(ticks) == 2:
            raise KeyboardInterrupt

    begin = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        solve(parse_target("2x3x3"), 14, seconds=600, on_tick=interrupt)
    assert time.perf_counter() - begin < 30, "600 s were allowed"
    assert "best solution none" in ticks[-1]
