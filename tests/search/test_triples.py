"""Schemes from Strassen triples of inner products: identities, spans against plain twins, signs, runs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import lcma
from lcma.errors import PlanError
from lcma.schemes_db import Target, Z
from lcma.schemes_db.ring import Z2
from lcma.search import find, resume
from lcma.search.triples.annealer import Annealer, _entries, _words, sides, usual_rank
from lcma.search.triples.arrangement import Arrangement, independent_rows
from lcma.search.triples.construct import scheme_of
from lcma.search.triples.forms import seventh_product, two_products
from lcma.search.triples.signs import ParityEquations, signed
from lcma.verify import certify

SIGNS = list(product((1, -1), repeat=2))


def strassen_arrangement(s=-1, u=1):
    """The three inner products of Strassen's scheme: rows and columns e1, e2 and their combinations."""
    rows, cols = np.array([[1, 0], [0, 1], [1, s]]), np.array([[1, 0], [0, 1], [1, u]])
    return Arrangement(rows, cols, np.array([2, 1, 0]))


@pytest.mark.parametrize("variant", range(3))
def test_two_products_are_an_inner_product(variant):
    forms = sum(np.outer(left, right) for left, right in two_products(variant))
    assert np.array_equal(forms, np.eye(2))


@pytest.mark.parametrize(("s", "u"), SIGNS)
def test_the_seventh_product_completes_a_triple(s, u):
    seventh = seventh_product(s, u)

    def placed(left, right, first, second):
        """The bilinear form of (left of r1 A + of r2 A)(right of B c1 + of B c2) as a 4 x 4 matrix."""
        lefts = np.concatenate([np.multiply(f, left) for f in first])
        rights = np.concatenate([np.multiply(f, right) for f in second])
        return np.outer(lefts, rights)

    (one, _), (two, _), (_, three) = two_products(2), two_products(1), two_products(0)
    own = np.outer([*seventh.left1, *seventh.left2], [*seventh.right1, *seventh.right2])
    total = seventh.own * own + seventh.first * placed(*one, (1, 0), (1, 0))
    total += seventh.second * placed(*two, (0, 1), (0, 1)) + seventh.third * placed(*three, (1, s), (1, u))
    wanted = np.zeros((4, 4), dtype=int)
    wanted[0, 2] = wanted[1, 3] = 1  # the inner product of r1 A and B c2
    assert np.array_equal(total, wanted)


@pytest.mark.parametrize(("s", "u"), SIGNS)
def test_a_triple_is_a_scheme_of_rank_seven(s, u):
    scheme = scheme_of(strassen_arrangement(s, u))
    assert (scheme.rank, scheme.ring, scheme.ternary) == (7, Z, True)
    certify(scheme)


def test_a_triple_modulo_2_is_a_scheme_over_z2():
    plain = strassen_arrangement(1, 1)
    scheme = scheme_of(Arrangement(plain.rows, plain.cols, plain.variants, modulo_2=True))
    assert (scheme.rank, scheme.ring) == (7, Z2)
    certify(scheme)


def test_inner_products_without_enough_triples_are_no_scheme():
    plain = strassen_arrangement()
    with pytest.raises(PlanError, match="span 3 of 4"):
        scheme_of(Arrangement(plain.rows, plain.cols, np.array([2, 2, 0])))


@pytest.mark.parametrize("modulo_2", [True, False])
def test_the_kernel_counts_as_the_plain_twin(modulo_2):
    from lcma.search.triples.kernel import TABLE, added, dimension, randomize

    p, n, count = 3, 4, 9
    state = np.array([12345], dtype=np.uint64)
    rows, cols = np.zeros(count, dtype=np.uint64), np.zeros(count, dtype=np.uint64)
    variants, table, pivots = np.zeros(count, dtype=np.int64), np.zeros(TABLE, dtype=np.uint64), np.zeros(64, np.uint64)
    found = set()
    for _ in range(40):
        randomize(state, rows, cols, variants, p, n, modulo_2)
        for third, (i, j) in enumerate(((0, 1), (1, 2), (3, 4))):  # random vectors hardly ever are triples
            row = added(rows[i], rows[j], np.uint64(8), True, modulo_2)
            col = added(cols[i], cols[j], np.uint64(16), False, modulo_2)
            if row != np.uint64(0xFFFFFFFFFFFFFFFF) and col != np.uint64(0xFFFFFFFFFFFFFFFF):
                rows[6 + third], cols[6 + third] = row, col
                variants[[i, j, 6 + third]] = np.roll((2, 1, 0), third)
        plain = Arrangement(_entries(rows, p, 8), _entries(cols, n, 16), variants.copy(), modulo_2)
        triples = plain.triples()
        found.add(len(triples))
        expected = len(independent_rows(plain.forms(triples)))
        assert dimension(rows, cols, variants, p, n, modulo_2, table, pivots) == expected
    assert len(found) > 2


def test_vectors_and_words_are_inverse():
    rng = np.random.default_rng(0)
    entries = rng.integers(-1, 2, (50, 6))
    entries = entries[entries.any(axis=1)]
    again = _entries(_words(entries, 8), 6, 8)
    first = again[np.arange(len(again)), (again != 0).argmax(axis=1)]
    assert (first == 1).all()
    assert all(np.array_equal(x, y) or np.array_equal(x, -y) for x, y in zip(again, entries, strict=True))


def test_signs_of_a_triple_are_found():
    plain = strassen_arrangement(1, 1)
    again = signed(Arrangement(plain.rows, plain.cols, plain.variants, modulo_2=True), seed=3)
    assert not again.modulo_2
    assert len(again.triples()) == 1
    assert np.array_equal(np.abs(again.rows), plain.rows)


def test_contradicting_equations_are_refused_and_leave_no_trace():
    equations = ParityEquations()
    assert equations.add([0b110, 0b1000])
    assert not equations.add([0b10000, 0b111])  # x1 + x2 is 0 already
    assert equations.add([0b10001, 0b10])
    assert equations.solution() == {1: 0, 2: 0, 3: 0, 4: 1}


def test_an_annealer_continues_from_its_state():
    target = Target.general(2, 3, 3)
    one = Annealer(target, 15, True, seed=4, index=1)
    one.advance(1000)
    other = Annealer(target, 15, True, seed=0, index=0)
    other.take_arrays(one.to_arrays())
    first, second = ([scheme.digest for scheme in annealer.advance(60_000)] for annealer in (one, other))
    assert first == second
    assert first


@pytest.mark.parametrize(("name", "rank"), [("2x3x3", 15), ("3x2x4", 20), ("4x4x2", 26), ("2x4x7", 45)])
def test_a_search_finds_the_best_known_rank(name, rank):
    result = find(name, rank=rank, method="triples", seed=1, seconds=60)
    assert result.best.rank == rank
    assert (result.best.target.name, result.best.ring) == (name, Z)
    assert result.finds[0].certificate == certify(result.best)
    assert result.best.provenance.relation == "annealing of Strassen triples"


def test_a_search_without_a_rank_descends():
    result = find("2x3x3", method="triples", ring="Z2", seed=1, rounds=2, steps=50_000)
    assert result.best.rank == 15
    assert result.best.ring == Z2


def test_a_run_resumes_and_its_finds_do_not_depend_on_the_threads(tmp_path):
    settings = {"method": "triples", "rank": 26, "seed": 2, "walks": 2, "steps": 20_000, "count": 100}
    whole = find("2x4x4", **settings, rounds=6, out=tmp_path / "whole")
    find("2x4x4", **settings, rounds=3, out=tmp_path / "run")
    again = resume(tmp_path / "run", rounds=6, jobs=2)
    assert len(whole.finds) > 1
    assert [one.digest for one in again.schemes] == [one.digest for one in whole.schemes]


@pytest.mark.parametrize(
    ("target", "settings", "message"),
    [
        ("3x3x3", {}, "a side of 2"),
        ("2x2x2:tri-left", {}, "a side of 2"),
        ("1x2x3", {}, "no smaller one"),
        ("2x9x9", {}, "up to 8"),
        ("2x4x17", {}, "up to 16"),
        ("2x3x3", {"rank": 11}, "ask for 12 or more"),
        ("2x3x3", {"ring": "Z3"}, "over Z or Z2"),
        ("2x3x3", {"device": "cuda"}, "on this CPU"),
        ("2x3x3", {"walk": "flip-c3"}, "neither walks nor starts"),
        ("2x3x3", {"policy": {"nonzeros": 3}}, "neither walks nor starts"),
        ("2x3x3", {"start": "2x3x3-r15"}, "neither walks nor starts"),
    ],
)
def test_a_search_says_what_it_can_not_do(target, settings, message):
    if "start" in settings:
        settings = {"start": lcma.resolve(settings["start"])[0]}
    with pytest.raises(PlanError, match=message):
        find(target, **{"rank": 14, "seconds": 1.0, "method": "triples", **settings})


def test_an_annealer_refuses_the_rank_of_the_naive_scheme():
    with pytest.raises(PlanError, match="rank 18 already"):
        Annealer(Target.general(2, 3, 3), 18, True, seed=0, index=0)


def test_sides_and_usual_ranks():
    assert sides(Target.general(5, 2, 3)) == (3, 5)
    ranks = [usual_rank(Target.general(2, p, n)) for p, n in ((2, 2), (2, 3), (3, 3), (4, 4), (8, 8))]
    assert ranks == [7, 11, 15, 26, 100]


def test_a_dry_run_says_what_a_round_is(home, capsys):
    from lcma.workbench.cli import main

    assert main(["search", "2x3x3", "--by", "triples", "--rank", "14", "--dry-run"]) == 0
    shown = capsys.readouterr()
    assert "4 annealings of 250000 steps a round" in shown.out
    assert not shown.err
