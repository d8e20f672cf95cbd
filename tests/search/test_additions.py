"""Fewer additions: the lines compute the matrix, the transpose is right, the programs are the schemes."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import lcma
from lcma.schemes_db import Q, Scheme, additions_table
from lcma.schemes_db.costs import additions as plain_additions
from lcma.schemes_db.costs import full_and_half
from lcma.schemes_db.program import Program
from lcma.schemes_db.straightline import program_of
from lcma.search import fewer_additions, find, polished
from lcma.search.basis.shears import shear_table
from lcma.search.slp.anneal import _cooled
from lcma.search.slp.anneal_kernel import flip_into, shear_into
from lcma.search.slp.linear_maps import PairedMap, TernaryMap
from lcma.search.terms.ternary import TernaryTerms
from lcma.search.terms.ternary_words import packed, unpacked
from lcma.verify import certify, check_program
from lcma.verify.program import scheme_of

from .plain_terms import holds

matrices = st.tuples(st.integers(1, 7), st.integers(1, 6)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(-3, 3))
)


def matrix_of(lines):
    """The matrix that lines compute, by multiplying out."""
    values = list(np.eye(lines.inputs, dtype=np.int64))
    for line in lines.lines:
        values.append(sum(coefficient * values[source] for coefficient, source in line))
    zero = np.zeros(lines.inputs, dtype=np.int64)
    return np.array([coefficient * values[v] if v >= 0 else zero for coefficient, v in lines.outputs])


@given(matrices, st.integers(0, 100))
@settings(max_examples=20, deadline=None)
def test_lines_compute_the_matrix_and_their_transpose_the_transposed_one(matrix, seed):
    for kind, rows in ((PairedMap, matrix), (TernaryMap, np.sign(matrix))):
        one = kind(rows, seed, 0)
        one.improve(5)
        lines = one.lines()
        assert np.array_equal(matrix_of(lines), rows)
        assert lines.additions == one.additions <= np.maximum((rows != 0).sum(axis=1) - 1, 0).sum()
        assert np.array_equal(matrix_of(lines.transposed()), rows.T)


def test_tellegens_count():
    matrix = lcma.resolve("laderman")[0].u.dense.reshape(23, -1)
    for kind in (PairedMap, TernaryMap):
        one = kind(matrix, 1, 0)
        one.improve(20)
        assert one.lines().transposed().additions == one.additions + 23 - 9


def test_cancellation_saves_a_line():
    """a+b+c+d, then each of it less one input: pairs alone take 3 + 2 for any of them."""
    matrix = np.array([[1, 1, 1, 1], [0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]])
    growing, pairing = TernaryMap(matrix, 0, 0), PairedMap(matrix, 0, 0)
    for one in (growing, pairing):
        one.improve(50)
    assert growing.additions == 3 + 4 - 1
    assert growing.additions < pairing.additions


def test_runs_add_up_to_the_same():
    matrix = lcma.resolve("laderman")[0].v.dense.reshape(23, -1)
    whole, parts = (TernaryMap(matrix, 4, 2) for _ in range(2))
    whole.improve(30)
    for part in (10, 20):
        parts.improve(part)
    assert whole.lines() == parts.lines()


@pytest.mark.parametrize(
    ("name", "most"),
    [("winograd", 15), ("strassen", 18), ("laderman", 62), ("eca-stage1", 200), ("winograd*winograd", 165)],
)
def test_programs_are_the_schemes(name, most):
    scheme = lcma.resolve(name)[0]
    result = fewer_additions(scheme, runs=100)
    assert result.count <= min(most, program_of(scheme).additions)
    assert result.before == plain_additions(scheme)
    assert scheme_of(result.program) == scheme
    assert check_program(result.program).ok
    assert result.program == fewer_additions(scheme, runs=100).program


def test_denominators_move_to_the_stores(strassen):
    u, v, w = (factor.dense for factor in strassen.factors)
    scheme = Scheme.from_arrays(strassen.target, 2 * u, v, w, Q, denominators=(2, 1, 1))
    certify(scheme)
    assert scheme_of(fewer_additions(scheme, runs=20).program) == scheme


@pytest.mark.slow
def test_walks_keep_the_scheme_and_lower_the_additions():
    dense = max((one for one in find("3x3x3", rank=23, seed=2, count=8).schemes if one.ternary), key=plain_additions)
    before = fewer_additions(dense, runs=100)
    after = polished(dense, rounds=2, seed=3)
    assert after.rank == 23
    assert after.provenance.parents == (dense.digest,)
    certify(after)
    assert fewer_additions(after, runs=100).count < before.count
    assert after == polished(dense, rounds=2, seed=3, jobs=2)


@pytest.mark.parametrize("name", ["eca-stage1", "eca-stage2"])
def test_walks_never_make_a_half_product_full(name):
    scheme = lcma.resolve(name)[0]
    for state in range(1, 5):
        after = _cooled(TernaryTerms.from_scheme(scheme), state, 1_000).to_scheme()
        certify(after)
        assert full_and_half(after)[0] <= full_and_half(scheme)[0]


@pytest.mark.parametrize(
    "name", ["naive:3x3x3", "laderman", "eca-stage1", "naive:4x4x4:tri-left", "naive:3x3x3:tri-right:upper"]
)
def test_flips_and_shears_of_ternary_terms_keep_the_tensor(name):
    scheme = lcma.resolve(name)[0]
    x, done = packed(TernaryTerms.from_scheme(scheme)), 0
    rng, table = np.array([99], dtype=np.uint64), shear_table(scheme.target)
    for count in range(400):
        new = x.copy()
        changed = flip_into(x, new, rng) if count % 4 else shear_into(x, new, table, rng)
        if changed < 0:
            assert np.array_equal(x, new)
            continue
        assert holds(unpacked(scheme.target, new))
        done += 1
        if np.bitwise_count(new).sum() < 2 * np.bitwise_count(x).sum():
            x = new
    assert done > 20


def test_all_formats_are_compared_with_the_tables(home, tmp_path, run, monkeypatch):
    """Six of them: a shipped program, recipes, one without a table; tests/schemes_db compares all."""
    formats = {"2x2x2", "2x2x3", "2x2x4", "3x3x3", "4x4x4", "2x4x9"}
    six = [row for row in additions_table.fewest_additions() if row.target.name in formats]
    assert {row.target.name for row in six} == formats
    monkeypatch.setattr(additions_table, "fewest_additions", lambda: six)
    rows = {row["format"]: row for row in run.json("additions", "--all", "--out", tmp_path / "programs")}
    facts = ("format", "rank", "additions", "table", "difference", "program")
    assert rows["2x2x2"] == dict(zip(facts, ("2x2x2", 7, 15, 15, 0, "winograd"), strict=True))
    written = Program.from_json(json.loads((tmp_path / "programs" / "2x2x4-r14-composed.json").read_text()))
    assert written.additions == rows["2x2x4"]["additions"] == 26
    assert "formats with a count in the tables are at or below it" in run.ok("additions", "--all")
    (tmp_path / "file").write_text("")
    code, _, err = run("additions", "--all", "--out", tmp_path / "file")
    assert (code != 0, "can't be made" in err) == (True, True)
