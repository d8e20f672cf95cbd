"""Proofs of schemes: what they say, and that every fault of a shipped scheme is found by all of them alike."""

import dataclasses
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import lcma
from lcma.errors import VerificationError
from lcma.schemes_db import ProductKind, Q, costs
from lcma.schemes_db.formats import lcma_json, render
from lcma.schemes_db.ring import is_prime
from lcma.schemes_db.scheme import Scheme
from lcma.schemes_db.shipped import shipped, shipped_names
from lcma.verify import METHODS, check, exact, randomized
from lcma.verify.exact import check_exact, magnitude_bound
from lcma.verify.expansion import term_count
from lcma.verify.nearest import nearest
from lcma.verify.primes import fresh_generator, primes_below, random_prime
from lcma.verify.randomized import check_randomized, first_wrong, refuted

from ..refusal import refuses_with
from ..reports import report_of
from .faults_of_schemes import changed, faults, single_changes, wrong_equations

pytestmark = pytest.mark.usefixtures("one_thread")


def test_the_first_wrong_equation_is_named(strassen):
    bad = changed(strassen, 0, 2, 1, 1)
    outcome = check_exact(bad)
    first = outcome.first
    u, v, w = (factor.dense for factor in bad.factors)
    got = sum(int(u[r][first.a]) * int(v[r][first.b]) * int(w[r][first.c]) for r in range(7))
    assert got == first.got != first.wanted
    assert str(first) == "coefficient of A[1,2] B[1,2] in C[1,2] is 1, wanted 0"
    assert f"{outcome.wrong} of 64 equations fail" in outcome.explain()
    refuses_with(VerificationError, r"A\[1,2\] B\[1,2\] in C\[1,2\] is 1, wanted 0", lcma.certify, bad)


def test_what_holds_mod_2_only_is_said(strassen):
    doubled = changed(strassen, 0, 0, 0, 2)
    outcome = check_exact(doubled)
    assert not outcome.ok
    assert outcome.holds_mod_2
    assert outcome.explain().endswith("it holds mod 2")
    assert check_exact(doubled.over_z2()).ok
    assert not check_exact(changed(strassen, 0, 0, 0, 1)).holds_mod_2


def test_rational_schemes_are_cleared_of_denominators(strassen):
    u, v, w = (factor.dense for factor in strassen.factors)
    good = Scheme.from_arrays(strassen.target, u * 3, v, w * 2, Q, denominators=(3, 1, 2))
    assert check_exact(good).explain() == check_randomized(good).explain() == "valid"
    bad = Scheme.from_arrays(strassen.target, u, v, w, Q, denominators=(3, 1, 1))
    assert (check_exact(bad).wrong, check_exact(bad).first.got) == (8, Fraction(1, 3))
    assert not check_randomized(bad).ok


# The last error is a multiple of the first prime that the modular check takes.
@pytest.mark.parametrize(("scale", "error"), [(1 << 18, 1), (1 << 40, 1), (1 << 61, 1), (1 << 40, 2097143)])
def test_large_coefficients_are_exact(strassen, scale, error):
    u, v, w = (factor.dense for factor in strassen.factors)
    good = Scheme.from_arrays(strassen.target, u * scale, v, w * scale, Q, denominators=(scale, 1, scale))
    outcome = check_exact(good)
    assert outcome.ok
    assert not outcome.proof.primes  # the scale cancels: the primitive products are small
    bad = changed(good, 2, 3, 0, error)
    assert check_exact(bad).wrong == np.count_nonzero(wrong_equations(bad)) > 0
    assert not check_randomized(bad).ok


def test_groups_of_blocks_do_not_change_the_verdict(monkeypatch):
    scheme = lcma.resolve("strassen*laderman")[0]
    monkeypatch.setattr(exact, "GROUP_ENTRIES", 1)
    assert check_exact(scheme).ok
    bad = changed(scheme, 2, 50, 7, 1)
    assert check_exact(bad).wrong == np.count_nonzero(wrong_equations(bad))


@pytest.mark.parametrize("name", ["eca-stage1", "eca-stage2"])
def test_all_2560_equations_of_both_stages_hold_and_24_full_and_10_half_are_counted(name):
    proof = check_exact(lcma.resolve(name)[0]).proof
    assert (proof.equations, proof.full, proof.half) == (2560, 24, 10)


def test_a_half_that_is_none_would_be_caught_by_garbage(monkeypatch):
    scheme = lcma.resolve("eca-stage1")[0]
    kinds = list(costs.product_kinds(scheme))
    kinds[0] = ProductKind.HALF_OUT
    monkeypatch.setattr(randomized, "product_kinds", lambda _: tuple(kinds))
    assert not check_randomized(scheme).ok
    monkeypatch.setattr(randomized, "product_kinds", lambda _: (ProductKind.FULL,) * 34)
    assert check_randomized(scheme).ok


def test_the_stated_error_probability_is_reached_by_primes_that_a_seed_repeats(strassen):
    for scheme, rounds in ((strassen, 4), (strassen.over_z2(), 241)):
        proof = check_randomized(scheme).proof
        assert proof.error_log2 <= -100
        assert proof.rounds == rounds
    assert check_randomized(strassen, error_log2=-20).proof.rounds == 1
    assert check_randomized(strassen, seed=5).proof == check_randomized(strassen, seed=5).proof


def test_certificates_are_checked_again(strassen):
    certificate = lcma.certify(strassen, ("exact", "randomized"))
    assert certificate.methods == ("exact", "randomized")
    assert certificate.digest == strassen.digest
    assert lcma.recheck(strassen, certificate).methods == certificate.methods
    assert lcma.schemes_db.Certificate.from_json(certificate.to_json()) == certificate


def test_the_bound_on_sums_is_of_magnitudes(strassen):
    u, v, w = (factor.dense for factor in strassen.factors)
    assert magnitude_bound(strassen) == 7 + 1  # a sum of seven products, and the value wanted
    assert magnitude_bound(Scheme.from_arrays(strassen.target, -3 * u, -v, w)) == 3 * 7 + 1


def test_primes():
    sieve = [n for n in range(2, 2000) if all(n % d for d in range(2, int(n**0.5) + 1))]
    assert list(primes_below(2000)) == sieve[::-1]
    assert not any(is_prime(n) for n in (0, 1, 25326001, 3215031751, 2147483649))
    assert is_prime(2147483647)
    assert all(1 << 30 <= (p := random_prime(fresh_generator(1))) < 1 << 31 and is_prime(p) for _ in range(5))


def some_changed(scheme, seed):
    """Twenty schemes with one changed coefficient each."""
    changes = list(single_changes(scheme))
    return [changed(scheme, *changes[i]) for i in np.random.default_rng(seed).choice(len(changes), 20, replace=False)]


def test_what_is_refuted_by_one_value_is_wrong_and_no_right_scheme_is(representative):
    scheme = shipped(representative).scheme
    assert not any(refuted(scheme, seed) for seed in range(5))
    assert all(map(refuted, some_changed(scheme, 17))) or scheme.ring.characteristic


@pytest.mark.parametrize("name", ["strassen", "eca-stage1", "laderman"])
def test_a_wrong_equation_is_found_without_all_of_them(name):
    scheme = lcma.resolve(name)[0]
    assert first_wrong(scheme) is None
    for wrong in some_changed(scheme, 3):
        found = first_wrong(wrong)
        assert (found.ok, found.wrong, found.first) == (False, None, check_exact(wrong).first)


def test_a_long_wrong_file_is_refuted_by_one_equation(monkeypatch, strassen):
    monkeypatch.setattr("lcma.verify.report.is_long", lambda scheme: True)
    report = report_of(render(changed(strassen, 0, 0, 0, -1), "lcma-json"))
    assert not report.ok
    assert report.headline().startswith("FAIL 2x2x2 rank 7 over Z: coefficient of A[")


def test_a_recheck_draws_its_own_primes(strassen, tmp_path, run):
    primes = (1073741827, 1073741831, 1073741833, 1073741839)
    more = np.zeros((3, 1, 2, 2), dtype=np.int64)
    more[:, 0, 0, 0] = primes[0] * primes[1], primes[2] * primes[3], 1
    parts = zip((factor.dense for factor in strassen.factors), more, strict=True)
    wrong = Scheme.from_arrays(strassen.target, *(np.concatenate(pair) for pair in parts))
    # What was accepted when the rounds were modulo the primes of the file: each of them divides the additional term.
    right = lcma.certify(strassen, ("randomized",))
    error = randomized._error_per_round(wrong) * len(primes)
    proof = dataclasses.replace(right.proofs[0], primes=primes, rounds=len(primes), error_log2=error, full=8)
    forged = dataclasses.replace(right, digest=wrong.digest, rank=8, proofs=(proof,))
    refuses_with(VerificationError, "not valid", lcma.recheck, wrong, forged)
    path = tmp_path / "forged.json"
    path.write_text(lcma_json.render(wrong, forged))
    assert run.said(1, "verify", "--recheck", path).startswith("FAIL 2x2x2 rank 8")


PAPERS = ["strassen", "winograd", "laderman", "eca-stage1", "eca-stage2"]

MOST_FAULTS = 100
"""Faults of a scheme that are tried: all of up to some five products, 14,000 of all schemes together."""

BY_EVERY_METHOD = 1
"""Of them by every method: the symbolic proof of a scheme of 137 products takes 0.7 s."""

MOST_EXPANDED = 20_000
"""Terms of a scheme up to which its faults are tried by the symbolic proof, which takes seconds for each of more."""


def assert_rejected(made, *methods):
    for fault in made:
        bad = fault()
        for method in methods:
            assert not check(bad, method).ok, (method, bad.digest)


@pytest.mark.parametrize("name", ["strassen", "winograd"])
def test_every_fault_of_a_small_scheme_is_rejected(name):
    assert_rejected(faults(shipped(name).scheme), "exact")


def test_some_faults_of_each_kind_are_rejected(representative):
    scheme = shipped(representative).scheme
    every, rng = list(faults(scheme)), np.random.default_rng(11)
    of_kind = {kind: [fault for fault in every if fault.func.__name__ == kind] for kind in ("changed", "swapped")}
    for some in of_kind.values():
        assert_rejected((some[i] for i in rng.choice(len(some), min(len(some), 8 + 800 // scheme.rank))), "exact")
    assert_rejected((fault for fault in every if fault.func.__name__ == "transposed"), "exact")
    assert_rejected((of_kind["changed"][i] for i in rng.choice(len(of_kind["changed"]), 8)), "randomized")


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPERS)
def test_every_fault_is_rejected_and_every_fifth_by_every_method(name):
    every = list(faults(shipped(name).scheme))
    assert_rejected(every, "exact")
    assert_rejected(every[::5], *METHODS)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in shipped_names() if name not in PAPERS])
def test_faults_are_rejected_and_some_by_every_method(name):
    scheme, rng = shipped(name).scheme, np.random.default_rng(5)
    every = list(faults(scheme))
    assert_rejected((every[i] for i in rng.permutation(len(every))[:MOST_FAULTS]), "exact")
    expanded = term_count(scheme) <= MOST_EXPANDED
    methods = [method for method in METHODS if method != "symbolic" or expanded]
    assert_rejected((every[i] for i in rng.choice(len(every), BY_EVERY_METHOD, replace=False)), *methods)


@pytest.mark.parametrize(("name", "transposed"), [("strassen", 3), ("eca-stage1", 2)])
def test_the_faults_are_counted(name, transposed):
    scheme = shipped(name).scheme
    counts = Counter(fault.func.__name__ for fault in faults(scheme))
    places = sum(np.count_nonzero(kinds) for kinds in scheme.target.kind_arrays)
    assert (counts["changed"], counts["transposed"]) == (2 * scheme.rank * places, transposed)
    assert scheme.rank < counts["swapped"] <= 3 * (scheme.rank - 1)
    assert changed(scheme, 0, 0, 0, 0) == scheme


@pytest.mark.parametrize("seed", range(8))
def test_one_changed_coefficient_is_named(seed):
    rng = np.random.default_rng(seed)
    scheme = lcma.resolve(("strassen", "laderman", "eca-stage2")[seed % 3])[0]
    slot = int(rng.integers(3))
    dense = scheme.factors[slot].dense
    r, i, j = rng.choice(np.argwhere(dense)).tolist()
    found = nearest(changed(scheme, slot, r, i * dense.shape[2] + j, 2))
    block, old = f"{'abc'[slot]}{i + 1}{j + 1}", dense[r, i, j]
    assert found == f"one coefficient from right: product {r + 1}, {block} should be {old}, not {old + 2}"


def test_over_z2_and_q_and_where_two_are_wrong(strassen):
    residues = changed(strassen.over_z2(), 1, 3, 0, 1)
    assert nearest(residues) == "one coefficient from right: product 4, b11 should be 1, not 0"
    halves = Scheme.from_arrays(strassen.target, *(f.dense for f in strassen.factors), Q, denominators=(2, 1, 1))
    assert nearest(halves) == ""
    assert nearest(changed(changed(strassen, 0, 0, 0, 1), 2, 6, 0, 1)) == ""
    assert nearest(strassen) == ""
