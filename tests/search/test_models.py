"""CP-SAT: the Brent equations of tiny targets, and schemes put together from products."""

import time

import pytest

from lcma.schemes_db import parse_target
from lcma.schemes_db.constructions import direct_sum
from lcma.schemes_db.costs import full_and_half
from lcma.search import recombine, solve
from lcma.verify import certify

from .starts import scheme


@pytest.mark.parametrize("ring", ["Z2", "ZT"])
def test_vectors_need_all_their_products(ring):
    found = solve(parse_target("1x2x2"), 4, ring=ring)
    assert (found.word, found.scheme.rank) == ("found", 4)
    assert found.certificate == certify(found.scheme)


@pytest.mark.parametrize(
    ("name", "rank", "options"),
    [
        *(("1x2x2", 3, {"ring": ring, "ordered": ordered}) for ring in ("Z2", "ZT") for ordered in (False, True)),
        ("2x2x1:tri-left", 2, {"ordered": True}),  # absent blocks have no equations
        pytest.param("2x2x2", 6, {"ring": "Z2", "seconds": 300, "ordered": True}, marks=pytest.mark.slow),
    ],
)
def test_fewer_products_are_proven_too_few(name, rank, options):
    none = solve(parse_target(name), rank, **options)
    assert (none.word, none.scheme) == ("infeasible", None)


def test_strassens_rank_is_found_modulo_2_and_the_same_each_time():
    first, second = (solve(parse_target("2x2x2"), 7, ring="Z2", seed=1) for _ in range(2))
    assert (first.word, first.scheme.ring.name) == ("found", "Z2")
    assert first.scheme == second.scheme


def test_the_cheapest_of_a_pool_is_proven(strassen):
    pool = [scheme("naive:2x2x2"), strassen]
    result = recombine(pool)
    assert result.optimal
    assert result.scheme == strassen
    assert not result.cheaper
    assert result.products == 8 + 7 - 0
    assert result.scheme.provenance.parents == tuple(one.digest for one in pool)


def test_parts_of_two_schemes_make_a_cheaper_one(strassen):
    """Two direct sums with Strassen in one half and naive products in the other: both good halves are in the pool."""
    plain = scheme("naive:2x2x2")
    pool = [direct_sum(strassen, plain, "n"), direct_sum(plain, strassen, "n")]
    result = recombine(pool)
    assert result.cheaper
    assert result.optimal
    assert result.scheme.rank == 14


@pytest.mark.parametrize("target", ["2x2x2:tri-out", "2x2x2:tri-left:upper"])
def test_half_products_weigh_half(target):
    plain = scheme(f"naive:{target}")
    assert full_and_half(recombine([plain]).scheme) == full_and_half(plain)
    assert full_and_half(plain)[1] > 0


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
