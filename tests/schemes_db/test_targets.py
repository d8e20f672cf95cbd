"""Targets: their names and symmetries, and those that are no plain product: any bilinear map given term by term."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lcma
from lcma.errors import SchemeFormatError
from lcma.schemes_db import Program, parse_ring
from lcma.schemes_db.algebra import reverse, rotate, transpose
from lcma.schemes_db.formats import parse_bytes, render
from lcma.schemes_db.target import Target
from lcma.verify import check_program, check_traced

from ..refusal import refuses_with
from ..reports import reading_of
from .archives import json_with, npz_with

NAMES = [
    *("2x2x2", "3x4x5", "1x1x1", "4x4x4:tri-out", "4x4x4:tri-left", "3x3x2:tri-left:upper", "2x3x3:tri-right"),
    *("4x2x4:tri-out:upper", "2x2x2:blocks(F./FF,FF/FF,L./FL)", "3x3x3:tri-left:upper+tri-right"),
    *("3x3x3:tri-left:upper+tri-right:upper+tri-out:upper", "4x4x4:tri-left+band(1)"),
]


@pytest.mark.parametrize("name", [*NAMES, "3x2x3:gram:upper", "3x3x3:tri-left:upper+gram"])
def test_the_name_of_a_target_reads_back_as_the_target(name):
    target = lcma.parse_target(name)
    assert target.name == name
    assert lcma.parse_target(target.name) == target


@pytest.mark.parametrize("name", NAMES)
def test_three_rotations_and_two_transpositions_or_reversals_are_the_identity(name):
    target = lcma.parse_target(name)
    assert target.rotated().rotated().rotated() == target
    assert target.transposed().transposed() == target
    assert target.reversed().reversed() == target


def test_terms_are_the_matrix_product():
    target = lcma.parse_target("2x3x4")
    rng = np.random.default_rng(0)
    a, b = rng.integers(-9, 9, (2, 3)), rng.integers(-9, 9, (3, 4))
    c = np.zeros(8, dtype=np.int64)
    for p, q, s in target.terms:
        c[s] += a.ravel()[p] * b.ravel()[q]
    assert (c.reshape(2, 4) == a @ b).all()


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))
def test_the_tensor_product_of_general_targets_is_general(m, k, n, p, q, r):
    assert Target.general(m, k, n).tensor(Target.general(p, q, r)) == Target.general(m * p, k * q, n * r)


METHODS = ("exact", "randomized", "symbolic")
COMPLEX = [(0, 0, 0, 1), (1, 1, 0, -1), (0, 1, 1, 1), (1, 0, 1, 1)]
"""The product of two complex numbers."""


def three_products(sign=1):
    """Gauss's three products: k1 = b0 (a0 + a1), k2 = a0 (b1 - b0), k3 = a1 (b0 + b1)."""
    target = Target.of_terms(COMPLEX)
    factors = [[[1, 1], [1, 0], [0, 1]], [[1, 0], [-1, 1], [1, 1]], [[1, 1], [0, 1], [-sign, 0]]]
    shapes = ((target.m, target.k), (target.k, target.n), (target.m, target.n))
    dense = [np.zeros((3, *shape), dtype=int) for shape in shapes]
    for array, rows in zip(dense, factors, strict=True):
        array.reshape(3, -1)[:, :2] = rows
    return lcma.Scheme.from_arrays(target, *dense)


def test_a_map_has_a_name_that_holds_all_of_it():
    target = Target.of_terms(COMPLEX)
    assert lcma.parse_target(target.name) == target
    assert target.name.endswith(":terms(1.1.1,1.2.2,2.1.2,2.2.1*-1)")
    assert str(target) != target.name
    assert str(target).count("terms(4 #") == 1
    assert (target.equations, target.is_general, target.is_product, target.block_recursive) == (8, False, False, False)
    for turned in (target.transposed(), target.rotated(), target.reversed()):
        assert lcma.parse_target(turned.name) == turned
    assert target.transposed().transposed() == target.reversed().reversed() == target
    assert target.rotated().rotated().rotated() == target


def test_the_terms_of_a_matrix_product_make_the_same_equations():
    general = lcma.parse_target("2x3x2")
    same = Target.of_terms([(*term, 1) for term in general.terms.tolist()], general.shape)
    assert same != general
    assert same.terms.tolist() == general.terms.tolist()
    naive = lcma.naive(general)
    assert lcma.certify(naive.replace(target=same), METHODS).target == same.name
    for move in (rotate, transpose, reverse):
        moved = move(naive.replace(target=same))
        assert lcma.certify(moved, METHODS).rank == 12
        assert moved.target.terms.tolist() == move(naive).target.terms.tolist()


@pytest.mark.parametrize("ring", ["Z", "Z2", "Z3", "Z5"])
def test_three_products_for_complex_numbers_are_proven_by_all_methods(ring):
    chosen = parse_ring(ring)

    def over(scheme):
        p = chosen.characteristic
        return lcma.Scheme(scheme.target, *scheme.reduced_mod(p), chosen) if p else scheme

    good, bad = over(three_products()), over(three_products(sign=-1))
    assert lcma.certify(good, METHODS).rank == 3
    verdicts = {method: lcma.check(bad, method) for method in METHODS}
    assert {outcome.ok for outcome in verdicts.values()} == {ring == "Z2"}  # 1 = -1 there
    if ring != "Z2":
        assert str(verdicts["exact"].first) == str(verdicts["symbolic"].first)
        assert verdicts["exact"].wrong == verdicts["symbolic"].wrong == 2


@pytest.mark.parametrize("format_", ["lcma-json", "lcma-npz", "equations", "exp"])
def test_schemes_of_a_map_stand_alone_in_their_files(format_):
    scheme = three_products()
    reading = reading_of(render(scheme, format_))
    assert reading.scheme.digest == scheme.digest
    assert lcma.certify(reading.scheme, METHODS)


def test_programs_and_callables_for_a_map_are_proven():
    program = lcma.program_of(three_products())
    assert check_program(program).ok
    assert check_program(Program.from_json(json.loads(json.dumps(program.to_json())))).ok
    assert not check_program(lcma.program_of(three_products(sign=-1))).ok
    for options in ({"dtype": "int64"}, {"dtype": "float64"}, {"modulus": 101}):
        assert check_traced(lambda a, b: lcma.evaluate(program, a, b), program.target, **options).ok
        assert not check_traced(np.matmul, program.target, **options).ok


@pytest.mark.parametrize("shape", ["", "2x2x2:"])
def test_tensor_files_are_read(tmp_path, shape):
    rows = np.array(COMPLEX)
    np.save(tmp_path / "coo.npy", rows.astype(np.int8))
    dense = np.zeros((2, 2, 2), dtype=np.int64)
    dense[tuple(rows[:, :3].T)] = rows[:, 3]
    np.save(tmp_path / "dense.npy", dense)
    (tmp_path / "t.json").write_text(json.dumps(rows.tolist()))
    (tmp_path / "t.txt").write_text("# re, then im\n0 0 0\n1,1,0,-1\n0 1 1 # im\n1 0 1 1\n")
    wanted = Target.of_terms(COMPLEX, (2, 2, 2) if shape else None)
    for name in ("coo.npy", "dense.npy", "t.json", "t.txt"):
        assert lcma.parse_target(f"{shape}tensor({tmp_path / name})") == wanted, name


@pytest.mark.parametrize("form", ["mask({})", "tensor({})"])
def test_no_scheme_file_opens_another_file(tmp_path, form):
    secret = tmp_path / "secret"
    secret.write_text("11\n11\n" if "mask" in form else "0 0 0\n")
    name = f"2x2x2:{form.format(secret)}"
    assert lcma.parse_target(name)
    program = {**lcma.program_of(lcma.resolve("strassen")[0]).to_json(), "target": name}
    texts = json_with(target=name), f"# target: {name}\nm1 = a11*b11\nc11 = m1", f"# target: {name}\na11*b11*c11"
    for content in (*map(str.encode, texts), npz_with(target=np.array(name))):
        refuses_with(SchemeFormatError, r"names a (mask|tensor) file", parse_bytes, content)
    refuses_with(lcma.LcmaError, r"names a (mask|tensor) file", Program.from_json, program)
