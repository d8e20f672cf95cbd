"""Levels below the first: a scheme that does not compute the products above it is refused, on every path."""

import re
from functools import cache

import numpy as np
import pytest

import lcma
from lcma.errors import PlanError
from lcma.kernels.causal.candidates import TriangularSource
from lcma.kernels.exact.schemes import restored_chain
from lcma.kernels.ring import exact_ring
from lcma.schemes_db import ProductKind
from lcma.schemes_db.flatten import flatten
from lcma.schemes_db.grids import present_entries
from lcma.schemes_db.shipped import shipped, shipped_names
from lcma.schemes_db.symmetry import Triangle

from ..refusal import refuses

MOST = 36
"""Rank of the largest schemes: proofs and programs of larger ones take seconds."""

OTHERS = (
    "naive:1x1x1",
    "naive:2x2x2:gram",
    "naive:2x2x2:tri-left:upper",
    "naive:2x2x2:tri-right",
    "naive:2x2x2:tri-out:upper",
    "naive:2x3x2:tri-out",
)


@cache
def names():
    """A scheme of every target: of the general ones, which are alike, the five least; of the others all."""
    first = {}
    for name in shipped_names():
        scheme = shipped(name).scheme
        if scheme.rank <= MOST and not scheme.gaussian:
            first.setdefault(scheme.target.name, name)
    general = [name for target, name in first.items() if ":" not in target]
    return [*general[:5], *(name for target, name in first.items() if ":" in target), *OTHERS]


@cache
def pair(number):
    """Two of these schemes; reading them takes longer than collecting all tests."""
    known = names()
    chosen = np.random.default_rng(20).integers(len(known), size=(number + 1, 2))[number]
    return "/".join(known[i] for i in chosen)


def refused_or_right(wanted, product):
    """Whether the product is right; False if it is refused."""
    try:
        found = np.asarray(product())
    except PlanError:
        return False
    assert np.linalg.norm(found - wanted) <= 1e-10 * np.linalg.norm(wanted)
    return True


def triangular_products(text, convert):
    rng = np.random.default_rng(21)
    q, k, v = (rng.standard_normal((48, 36)) for _ in range(3))
    p = rng.standard_normal((48, 48))
    cq, ck, cv, cp, ct = map(convert, (q, k, v, p, v.T.copy()))
    yield np.tril(q @ k.T), lambda: lcma.causal_qk(cq, ck, scheme=text)
    yield np.tril(p) @ v, lambda: lcma.causal_pv(cp, cv, scheme=text)
    yield v.T @ np.tril(p).T, lambda: lcma.trmm(cp, ct, "right", transposed=True, scheme=text)
    yield np.tril(q @ q.T), lambda: lcma.syrk(cq, scheme=text)


def by_levels(text):
    rng = np.random.default_rng(22)
    outer, _, inner = text.partition("/")
    target = lcma.resolve(outer)[0].target
    a = rng.integers(-9, 9, (60, 60)).astype(float)
    b = a.T.copy() if target.shared else rng.integers(-9, 9, (60, 60)).astype(float)
    has_a, has_b, wanted = (present_entries(np.array(kinds), 60, 60) for kinds in (target.a, target.b, target.c))
    product = wanted * ((has_a * a) @ (has_b * b))
    a, b = np.where(has_a, a, np.nan), np.where(has_b, b, np.nan)
    return target, a, b, product, [outer, inner]


@pytest.mark.parametrize(
    ("of", "number"), [*(("arrays", number) for number in range(12)), *(("tensors", number) for number in range(3))]
)
def test_any_pair_of_schemes_is_refused_or_right(of, number):
    convert, text = np.asarray if of == "arrays" else pytest.importorskip("torch").from_numpy, pair(number)
    for wanted, product in triangular_products(text, convert):
        refused_or_right(wanted, product)
    target, a, b, wanted, levels = by_levels(text)
    refused_or_right(wanted, lambda: lcma.matmul(convert(a), convert(b), levels))
    if target.is_general:
        exact = [convert(x.astype(np.int64)) for x in (a, b)]
        refused_or_right(wanted, lambda: lcma.matmul(*exact, levels, ring="Z"))


def test_the_pairs_have_both_outcomes():
    found = [refused_or_right(*case) for i in range(8) for case in triangular_products(pair(i), np.asarray)]
    assert {*found} == {True, False}


@pytest.mark.parametrize("inner", ["eca-stage1", "eca-stage2", "4x4x4-band1-r34", "naive:2x2x2:gram"])
def test_a_level_for_other_products_is_refused_by_name(inner):
    target = lcma.resolve(inner)[0].target
    q = np.ones((8, 8))
    calls = [
        lambda: lcma.causal_qk(q, q, scheme=f"eca-stage1/{inner}"),
        lambda: lcma.causal_pv(q, q, scheme=f"eca-stage1/{inner}"),
        lambda: lcma.trmm(q, q, scheme=f"eca-stage1/{inner}"),
        lambda: lcma.syrk(q, scheme=f"eca-stage1/{inner}"),
        lambda: TriangularSource(f"eca-stage1/{inner}", Triangle("out")).program,  # of every device
        lambda: flatten(*(lcma.program_of(lcma.resolve(name)[0]) for name in ("strassen", inner))),
    ]
    for call in calls:
        refuses(f"^{re.escape(str(target))} does not compute the full products of ", call)


def test_attention_by_a_scheme_over_a_mask_is_refused():
    torch = pytest.importorskip("torch")
    q = torch.ones(1, 8, 8)
    with pytest.raises(PlanError, match=r"^4x4x4:band\(1\) does not compute the full products"):
        lcma.causal_attention(q, q, q, scheme="4x4x4-tri-out-r34/4x4x4-band1-r34")


def test_a_level_that_would_compute_nothing_is_refused():
    q = np.ones((16, 16))
    mixed = ("strassen", "eca-stage1")
    refuses("level 2 has no scheme for the full products of 2x2x2", lcma.matmul, q, q, ["strassen", "eca-stage1"])
    with pytest.raises(PlanError, match="level 3 has no scheme for the full products of 2x2x2"):
        lcma.matmul(q, q, ["strassen", mixed, "eca-stage1"])


def test_half_products_may_be_computed_by_general_schemes_and_by_those_of_their_triangle_alone():
    outer = lcma.program_of(lcma.resolve("eca-stage1")[0])
    for name, fits in (("strassen", True), ("eca-stage1", True), ("eca-stage2", False), ("naive:2x2x2:gram", False)):
        inner = {ProductKind.HALF_OUT: lcma.program_of(lcma.resolve(name)[0])}
        if fits:
            assert dict(outer.nested(inner).inner) == inner
        else:
            refuses(r"does not compute the half-out products of .* or for tri-out$", outer.nested, inner)


STRUCTURED = ("eca-stage1", "eca-stage2", "4x4x4-band1-r34", "naive:2x2x2:gram")


@pytest.mark.parametrize("name", STRUCTURED)
def test_prepared_operands_and_layers_multiply_by_schemes_for_general_matrices_alone(name):
    refuses(r"general matrices|its own transpose", lcma.Prepared, np.ones((16, 16)), 16, name)
    torch = pytest.importorskip("torch")
    refuses(r"a layer multiplies general matrices$", lcma.FastLinear.from_linear, torch.nn.Linear(16, 16), scheme=name)


def test_a_scheme_for_a_matrix_and_its_transpose_multiplies_nothing_else():
    """The product of A and A^T by six products of numbers: of other operands the scheme computes something else."""
    a, b = np.arange(4.0).reshape(2, 2), np.ones((2, 2))
    calls = [
        lambda x, y: lcma.matmul(x, y, "naive:2x2x2:gram"),
        lambda x, y: lcma.matmul(x, y, ["naive:2x2x2:gram", "strassen"]),
        lambda x, y: lcma.masked_matmul(x, y, ["L0", "FL"], scheme="naive:2x2x2:gram"),
    ]
    for call in calls:
        refuses(r"its own transpose; call lcma.syrk|not for this mask", call, a, b)
    np.testing.assert_array_equal(lcma.syrk(a, scheme="naive:2x2x2:gram"), np.tril(a @ a.T))


def test_a_stored_chain_of_exact_levels_is_of_schemes_for_general_products():
    ring = exact_ring("Z")
    strassen, other = (f"{shipped(name).scheme.digest}@mkn" for name in ("strassen", "eca-stage1"))
    assert restored_chain(f"{strassen}/{strassen}", ring).label == "2x2x2:7 2x2x2:7"
    assert restored_chain(other, ring) is restored_chain(f"{strassen}/{other}", ring) is None
