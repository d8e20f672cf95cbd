"""Schemes from Strassen triples of inner products: identities, spans against plain twins, signs, runs."""

from itertools import product

import numpy as np
import pytest

from lcma.schemes_db import Z, parse_target
from lcma.search.triples import kernel
from lcma.search.triples.annealer import Annealer, _entries
from lcma.search.triples.arrangement import TWO_PRODUCTS, Arrangement, independent_rows, scheme_of, seventh_product
from lcma.search.triples.kernel import anneal, candidates, choose, draw_candidates
from lcma.search.triples.span import InnerProducts, gain, randomize, span_without, total, work_space
from lcma.verify import certify

SIGNS = list(product((1, -1), repeat=2))


@pytest.mark.parametrize(("s", "u"), SIGNS)
def test_the_seventh_product_completes_a_triple(s, u):
    lefts, rights, weights = seventh_product(s, u)

    def placed(left, right, first, second):
        """The bilinear form of (left of r1 A + of r2 A)(right of B c1 + of B c2) as a 4 x 4 matrix."""
        return np.outer(np.outer(first, left), np.outer(second, right))

    (one, _), (two, _), (_, three) = TWO_PRODUCTS[2], TWO_PRODUCTS[1], TWO_PRODUCTS[0]
    total = weights[0] * np.outer(lefts, rights) + weights[1] * placed(*one, (1, 0), (1, 0))
    total += weights[2] * placed(*two, (0, 1), (0, 1)) + weights[3] * placed(*three, (1, s), (1, u))
    wanted = np.zeros((4, 4), dtype=int)
    wanted[0, 2] = wanted[1, 3] = 1  # the inner product of r1 A and B c2
    assert np.array_equal(total, wanted)


@pytest.mark.parametrize(("s", "u"), SIGNS)
def test_a_triple_is_a_scheme_of_rank_seven(s, u):
    """The three inner products of Strassen's scheme: rows and columns e1, e2 and their combinations."""
    rows, cols = (np.array([[1, 0], [0, 1], [1, last]]) for last in (s, u))
    scheme = scheme_of(Arrangement(rows, cols, np.array([2, 1, 0])))
    assert (scheme.rank, scheme.ring, scheme.ternary) == (7, Z, True)
    certify(scheme)


def arrangements(p, n, count):
    """Yield random arrangements with some triples, as `InnerProducts` and as the plain twin."""
    rng = np.array([12345], dtype=np.uint64)
    rows, cols, variants = (np.zeros(count, dtype=dtype) for dtype in (np.uint64, np.uint64, np.int64))
    vertices = InnerProducts(rows, cols, variants, p, n)
    for number in range(40):
        randomize(rng, vertices)
        for third, (i, j) in enumerate(((0, 1), (1, 2), (3, 4))):  # random vectors hardly ever are triples
            row, col = total(rows[i], rows[j], True), total(cols[i], cols[j], False)
            if row and col and number >> third & 1:
                rows[6 + third], cols[6 + third] = row, col
                variants[[i, j, 6 + third]] = np.roll((2, 1, 0), third)
        yield vertices, Arrangement(_entries(rows, p), _entries(cols, n), variants.copy())


def dimension_of(plain):
    return len(independent_rows(plain.forms(plain.triples())))


@pytest.mark.parametrize(("p", "n"), [(3, 4), (7, 11), (16, 16)])
def test_the_kernel_counts_as_the_plain_twin(p, n):
    span, found, gains = work_space(p, n), set(), set()
    for number, (vertices, plain) in enumerate(arrangements(p, n, 9)):
        found.add(len(plain.triples()))
        assert span_without(span, vertices, -1) == dimension_of(plain)
        i = number % 9
        others = [j for j in range(9) if j != i]
        less = dimension_of(Arrangement(plain.rows[others], plain.cols[others], plain.variants[others]))
        assert span_without(span, vertices, i) == less
        for _ in range(2):  # the space stays as it is
            rise = gain(span, vertices, i, vertices.rows[i], vertices.cols[i], vertices.variants[i])
            assert less + rise == dimension_of(plain)
        gains.add(rise)
    assert len(found) > 1
    assert len(gains) > 1


def test_candidates_are_distinct_and_new():
    span, among, rng = work_space(3, 4), candidates(), np.array([7], dtype=np.uint64)
    for vertices, _ in arrangements(3, 4, 9):
        span_without(span, vertices, 4)
        drawn = draw_candidates(rng, vertices, 4, span, among)
        there = {(vertices.rows[i], vertices.cols[i], vertices.variants[i]) for i in range(9) if i != 4}
        new = [(among.rows[c], among.cols[c], among.variants[c]) for c in range(drawn)]
        assert new[0] == (vertices.rows[4], vertices.cols[4], vertices.variants[4])
        assert len(set(new)) == drawn > 1
        assert not there & set(new[1:])


def test_choices_follow_their_weights():
    among, rng = candidates(), np.array([3], dtype=np.uint64)
    among.scores[:3] = 5, 4, 5 - 2 * np.log(3)
    counts = np.bincount([choose(rng, among, 3, 2.0) for _ in range(20_000)])
    weights = np.array([1, np.exp(-0.5), 1 / 3])
    assert np.abs(counts / 20_000 - weights / weights.sum()).max() < 0.015


def test_determinant_and_inverse_of_the_forms():
    square = np.random.default_rng(0).integers(-2, 3, (12, 12)).astype(float)
    assert np.isclose(kernel.eliminate(square.copy(), False), np.linalg.slogdet(square)[1])
    assert kernel.eliminate(np.ones((3, 3)), False) == np.inf
    unimodular = np.tril(square, -1) + np.eye(12)
    shuffled = unimodular[np.random.default_rng(1).permutation(12)]
    assert np.isclose(kernel.log_inverse(shuffled.copy()), np.log(np.abs(np.linalg.inv(shuffled)).sum()))
    assert kernel.log_inverse(square.copy()) == kernel.log_inverse(np.ones((3, 3))) == np.inf
    for vertices, plain in arrangements(2, 2, 9):
        forms = plain.forms(plain.triples())
        chosen = independent_rows(forms)
        expected = np.linalg.slogdet(forms[chosen])[1] if len(chosen) == 4 else np.inf
        assert np.isclose(kernel.energy(vertices, work_space(2, 2), np.zeros((4, 4)), False), expected)


def test_inner_products_are_replaced_until_the_scheme_is_integral():
    p, n, count = 7, 8, 32
    words = np.zeros((2, count), dtype=np.uint64)
    vertices = InnerProducts(words[0], words[1], np.zeros(count, dtype=np.int64), p, n)
    span, among, matrix, rng = work_space(p, n), candidates(), np.zeros((p * n, p * n)), np.array([1], dtype=np.uint64)
    before = []
    for _ in range(8):
        randomize(rng, vertices)
        while anneal(rng, vertices, span, among, 50_000, 1000, 100_000, 0.14, 0.06)[1] < p * n:
            pass
        before.append(kernel.energy(vertices, span, matrix, False))
        _, index = kernel.lower(rng, vertices, span, among, matrix, False, 20_000, 0.5, 0.5)
        assert span_without(span, vertices, -1) == p * n
        assert np.isclose(kernel.energy(vertices, span, matrix, False), index, atol=1e-6)
        if index < 0.5 < before[-1]:
            break
    else:
        pytest.fail(f"no determinant became 1: {before}")
    large = kernel.energy(vertices, span, matrix, True)
    assert kernel.lower(rng, vertices, span, among, matrix, True, 20_000, 0.1, 0.0)[1] < large - 0.5
    assert span_without(span, vertices, -1) == p * n
    scheme = scheme_of(Arrangement(_entries(words[0], p), _entries(words[1], n), vertices.variants.copy()))
    assert scheme.ring == Z
    certify(scheme)


@pytest.mark.parametrize("many", [100, 1])
def test_an_annealer_continues_from_its_state(many, monkeypatch):
    monkeypatch.setattr("lcma.search.triples.annealer.MANY_ENTRIES", many)
    one, other = (Annealer(parse_target("2x3x3"), 15, seed=seed, index=index) for seed, index in ((4, 1), (0, 0)))
    one.advance(1000)
    other.take_arrays(one.to_arrays())
    first, second = ([scheme.digest for scheme in annealer.advance(60_000)] for annealer in (one, other))
    assert first == second
    assert first
