import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lcma
from lcma.schemes_db import ProductKind, Q, costs
from lcma.schemes_db.program import Lin, Load, Product, Program, Store
from lcma.schemes_db.scheme import Scheme
from lcma.schemes_db.straightline import program_of

from ..refusal import refuses

NAMES = ["strassen", "winograd", "laderman", "naive:2x3x1", "strassen*strassen", "eca-stage1", "eca-stage2"]


def truth(target, a, b):
    """The product with the structure that the target gives A, B and C (one entry a block, or square halves)."""
    stem = target.name.partition(":")[2]
    if stem.startswith("tri-left"):
        a = np.tril(a)
    product = a @ b
    return np.tril(product) if stem.startswith("tri-out") else product


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("cse", [False, True])
def test_a_program_computes_its_target_exactly(name, cse):
    scheme = lcma.resolve(name)[0]
    program = program_of(scheme, cse=cse)
    m, k, n = scheme.target.shape
    rng = np.random.default_rng(3)
    a, b = rng.integers(-99, 99, (3 * m, 3 * k)), rng.integers(-99, 99, (3 * k, 3 * n))
    assert (lcma.evaluate(program, a, b) == truth(scheme.target, a, b)).all()


@pytest.mark.parametrize("name", NAMES)
def test_sharing_never_costs_additions(name):
    scheme = lcma.resolve(name)[0]
    assert program_of(scheme, cse=False).additions == costs.additions(scheme)
    assert program_of(scheme).additions <= costs.additions(scheme)
    assert name != "winograd" or program_of(scheme).additions == 15


@pytest.mark.parametrize("name", NAMES)
def test_a_program_reads_back_from_its_json(name):
    program = program_of(lcma.resolve(name)[0])
    again = Program.from_json(json.loads(json.dumps(program.to_json())))
    assert again == program
    assert again.digest == program.digest


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_sharing_keeps_what_a_random_scheme_computes(seed):
    rng = np.random.default_rng(seed)
    target = lcma.parse_target("2x3x2")
    arrays = [rng.integers(-2, 3, (6, *kinds.shape)) for kinds in target.kind_arrays]
    for factor in arrays:  # neither a product of nothing nor, below, a result of nothing
        factor[~factor.any((1, 2)), 0, 0] = 1
    arrays[2][0] += ~arrays[2].any(0)
    scheme = Scheme.from_arrays(target, *arrays)
    a, b = rng.integers(-9, 9, (2, 3)), rng.integers(-9, 9, (3, 2))
    plain, shared = (lcma.evaluate(program_of(scheme, cse=cse), a, b) for cse in (False, True))
    products = np.einsum("rij,ij->r", arrays[0], a) * np.einsum("rij,ij->r", arrays[1], b)
    assert (plain == np.einsum("r,rij->ij", products, arrays[2])).all()
    assert (shared == plain).all()


def test_garbage_in_the_unused_triangle_is_never_read():
    program = program_of(lcma.resolve("eca-stage2")[0])
    rng = np.random.default_rng(4)
    a, b = np.tril(rng.standard_normal((8, 8))), rng.standard_normal((8, 8))
    dirty = a + np.triu(np.full((8, 8), np.nan), 1)
    assert np.isfinite(lcma.evaluate(program, dirty, b)).all()
    assert np.allclose(lcma.evaluate(program, dirty, b), a @ b)


def test_nesting_recurses_by_kind_of_product():
    outer, inner = program_of(lcma.resolve("eca-stage1")[0]), program_of(lcma.resolve("strassen")[0])
    nested = outer.nested({ProductKind.FULL: inner, ProductKind.HALF_OUT: outer})
    assert nested.levels == 2
    rng = np.random.default_rng(5)
    a, b = rng.integers(-9, 9, (16, 16)), rng.integers(-9, 9, (16, 16))
    assert (lcma.evaluate(nested, a, b) == np.tril(a @ b)).all()
    assert Program.from_json(nested.to_json()) == nested


def test_fractions_run_in_floats_and_are_refused_in_integers(strassen):
    u, v, w = (factor.dense for factor in strassen.factors)
    halved = Scheme.from_arrays(strassen.target, u, v, w, Q, denominators=(2, 1, 1))
    program = program_of(halved)
    a = np.arange(4.0).reshape(2, 2)
    assert np.allclose(lcma.evaluate(program, a, a), a @ a / 2)
    exact = np.array([[Fraction(1), Fraction(2)], [Fraction(3), Fraction(4)]], dtype=object)
    assert (lcma.evaluate(program, exact, exact) == exact @ exact / 2).all()
    refuses("not an integer", lcma.evaluate, program, a.astype(np.int64), a.astype(np.int64))


def test_live_ranges_count_computed_values(strassen):
    target = lcma.parse_target("1x1x1")
    ops = (Load(0, "A", (0, 0)), Load(1, "B", (0, 0)), Lin(2, ((2, 0),)), Product(3, 2, 1), Store((0, 0), ((1, 3),)))
    program = Program(target, strassen.ring, ops)
    assert program.live_ranges == {2: (2, 3), 3: (3, 4)}
    assert program.peak_live_tiles == 2
    assert program.rank == 1
