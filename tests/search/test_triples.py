"""Schemes from Strassen triples of inner products: identities, spans against plain twins, signs, runs."""

from itertools import product

import numpy as np
import pytest

from lcma.schemes_db import Z, parse_target
from lcma.search.triples import gpu
from lcma.search.triples.annealer import COOLING, Annealer, TripleFleet, _entries
from lcma.search.triples.arrangement import TWO_PRODUCTS, Arrangement, independent_rows, scheme_of, seventh_product
from lcma.search.triples.dual import dual_space, fill_dual
from lcma.search.triples.kernel import ROUNDING, anneal, candidates, choose, draw_candidates, lighten, put_in, take_out
from lcma.search.triples.span import NONE, InnerProducts, gain, lacking, randomize, total, work_space
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
    """Yield random inner products with some triples."""
    rng = np.array([12345], dtype=np.uint64)
    rows, cols, variants = (np.zeros(count, dtype=dtype) for dtype in (np.uint64, np.uint64, np.int64))
    products = InnerProducts(rows, cols, variants, p, n)
    for number in range(40):
        randomize(rng, products)
        for third, (i, j) in enumerate(((0, 1), (1, 2), (3, 4))):  # random vectors hardly ever are triples
            row, col = total(rows[i], rows[j], True), total(cols[i], cols[j], False)
            if row and col and number >> third & 1:
                rows[6 + third], cols[6 + third] = row, col
                variants[[i, j, 6 + third]] = np.roll((2, 1, 0), third)
        yield products


def at(these, i):
    """The vectors and the variant of inner product i."""
    return tuple(array[i] for array in these[:3])


def dimension_of(plain):
    return len(independent_rows(plain.forms(plain.triples())))


def plain_of(products, but=None):
    """The plain twin, without one of the inner products."""
    kept = [i for i in range(len(products.rows)) if i != but]
    rows, cols = _entries(products.rows, products.p), _entries(products.cols, products.n)
    return Arrangement(rows[kept], cols[kept], products.variants[kept])


def forms_in_places(span, products):
    """The matrix of the forms that are in places, and the places."""
    plain, count = plain_of(products), len(products.rows)
    placed = [form for form in range(count + span.counts[0]) if span.places[form] >= 0]
    members = [(form, form) if form < count else span.triples[:2, form - count] for form in placed]
    return np.array([np.outer(plain.rows[i], plain.cols[j]).ravel() for i, j in members]), span.places[placed]


@pytest.mark.parametrize(("p", "n"), [(3, 4), (7, 11), (16, 16)])
def test_products_come_and_go_as_in_the_plain_twin(p, n):
    span, dual, among, rng = work_space(p, n, 9), dual_space(p * n), candidates(), np.array([5], dtype=np.uint64)
    found, gains = set(), set()
    for number, products in enumerate(arrangements(p, n, 9)):
        index = fill_dual(span, products, dual)
        for i in (number % 9, (number + 4) % 9):
            found.add(span.counts[0])
            assert span.counts[0] == len(plain_of(products).triples())
            assert p * n - lacking(span) == dimension_of(plain_of(products))
            index += take_out(span, products, dual, i)
            less = p * n - lacking(span)
            assert less == dimension_of(plain_of(products, i))
            draw_candidates(rng, among, products, i, span)
            drawn = np.flatnonzero(among.marks != NONE).tolist()
            new = [at(among, c) for c in drawn]
            assert new[0] == at(products, i)
            assert len(set(new)) == len(new)
            assert not {at(products, j) for j in range(9) if j != i} & set(new[1:])
            for c in drawn:
                products.rows[i], products.cols[i], products.variants[i] = at(among, c)
                gains.add(rise := gain(span, products, *at(among, c)))
                assert less + rise == dimension_of(plain_of(products))
            index += put_in(span, products, dual, i, among, drawn[-1])
        forms, places = forms_in_places(span, products)
        assert np.allclose((forms @ dual.functionals)[:, places], np.eye(len(places)), atol=1e-6)
        assert np.isclose(-np.linalg.slogdet(dual.functionals)[1], index, atol=1e-6)
    assert len(found) > 1
    assert gains >= {1, 2}


def test_choices_follow_their_energies():
    among, rng = candidates(), np.array([3], dtype=np.uint64)
    among.energies[:] = np.inf
    among.energies[[0, 1, 5]] = 5, 5.5, 5 + np.log(3)
    counts = np.bincount([choose(rng, among) for _ in range(20_000)], minlength=6)[[0, 1, 5]]
    weights = np.array([1, np.exp(-0.5), 1 / 3])
    assert counts.sum() == 20_000
    assert np.abs(counts / 20_000 - weights / weights.sum()).max() < 0.015


def test_inner_products_are_annealed_until_the_scheme_is_integral():
    p, n, count = 7, 8, 31
    products = InnerProducts(*np.zeros((2, count), dtype=np.uint64), np.zeros(count, dtype=np.int64), p, n)
    span, dual, rng = work_space(p, n, count), dual_space(p * n), np.array([1], dtype=np.uint64)
    randomize(rng, products)
    assert dimension_of(plain_of(products)) < p * n
    work = rng, products, span, candidates(), dual
    _, lacks, index = anneal(*work, 0, 800_000, 900_000, COOLING)
    assert lacks == 0
    assert abs(index) < ROUNDING
    forms, _ = forms_in_places(span, products)
    assert np.isclose(abs(np.linalg.det(forms)), 1)
    weight = np.abs(dual.functionals).sum()
    lighten(*work, 20_000, 0.1)
    assert np.abs(dual.functionals).sum() < 0.7 * weight
    scheme = scheme_of(plain_of(products))
    assert scheme.ring == Z
    certify(scheme)


class OneChain:
    """Stands for the chains of a GPU: one, by the twin."""

    def __init__(self, gpu, p, n, count, seed):
        self.chain = Annealer(parse_target(f"2x{p}x{n}"), p * n + count, *seed)
        self.work = self.chain._work()
        randomize(*self.work[:2])

    def advance(self, steps, length, cooling):
        made, lacks, index = anneal(*self.work, 0, steps, length, cooling)
        vectors = [array[None] for array in (self.chain._rows, self.chain._cols, self.chain._variants)]
        numbers = [np.array([number]) for number in (0, made, lacks, index)]
        self.chains = gpu.Chains(*vectors, *numbers)

    taken = gpu.OnGpu.taken


def test_what_arrives_on_a_gpu_becomes_schemes(monkeypatch):
    monkeypatch.setattr(gpu, "OnGpu", OneChain)
    monkeypatch.setattr("lcma.search.triples.annealer.one_gpu", int)
    fleet = TripleFleet(parse_target("2x3x3"), 15, seed=1, walkers=2, device="0", descends=False)
    fleet.GPU_STEPS = 50_000
    ((number, scheme),) = fleet.find(0, None)
    assert (number, scheme.rank, scheme.ring) == (0, 15, Z)
    certify(scheme)
    assert fleet._chains.chains.made[0] == -1  # it begins anew
    resumed = TripleFleet(parse_target("2x3x3"), 15, seed=1, walkers=2, device="0")
    resumed.take_arrays(fleet.to_arrays())
    assert (resumed._least, resumed._begun) == (18, 1)


def test_an_annealer_continues_from_its_state():
    one, other = (Annealer(parse_target("2x3x3"), 15, seed=seed, index=index) for seed, index in ((4, 1), (0, 0)))
    one.advance(1000)
    other.take_arrays(one.to_arrays())
    first, second = ([scheme.digest for scheme in annealer.advance(60_000)] for annealer in (one, other))
    assert first == second
    assert first
