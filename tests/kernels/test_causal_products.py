"""The triangular products against their definition: every choice, odd sizes, garbage, layouts, GQA."""

import numpy as np
import pytest

import lcma
from lcma.kernels.causal.candidates import scheme_program
from lcma.kernels.causal.naive import triangular
from lcma.kernels.cpu.level import Level
from lcma.kernels.cpu.partition import CpuMethod
from lcma.kernels.cpu.triangular_products import has_nonzero_outside_triangle
from lcma.kernels.triangular import causal_pv, causal_qk, masked_matmul, syrk, trmm
from lcma.schemes_db.symmetry import Triangle

GROUPED = CpuMethod(grouped=True)
CHOICES = (
    {},
    {"strategy": "vendor"},
    {"strategy": "strips"},
    {"scheme": "eca-stage1"},
    {"scheme": "4x4x4-tri-out-r34"},
)


def drawn(rng, *shape):
    return rng.integers(-5, 6, shape).astype(float)


@pytest.mark.parametrize("choice", CHOICES, ids=str)
@pytest.mark.parametrize(
    "sizes", [(7, 7, 3), (300, 300, 33), (3, 3, 5), (20, 12, 4), (12, 20, 1), (0, 0, 3), (5, 5, 0)]
)
def test_qk_and_pv_with_shared_heads_and_garbage(choice, sizes):
    rng, (rows, cols, width) = np.random.default_rng(0), sizes
    q, k = drawn(rng, 2, 6, rows, width), drawn(rng, 2, 3, cols, width)
    wide = np.repeat(k, 2, axis=1)
    scores = causal_qk(q, k, **choice)
    wanted = np.tril(q @ wide.swapaxes(-1, -2))
    np.testing.assert_array_equal(scores, wanted)
    spoiled = np.where(np.tri(rows, cols) > 0, wanted, np.nan)
    for _ in range(2):  # a second run must not meet what the first one left behind
        np.testing.assert_array_equal(causal_pv(spoiled, k, **choice), wanted @ wide)


@pytest.mark.parametrize("choice", CHOICES, ids=str)
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
def test_trmm(choice, side, lower, transposed):
    rng = np.random.default_rng(1)
    for size, other in ((1, 4), (37, 20)):
        for unit in (False, True):
            full = drawn(rng, size, size)
            there = triangular(np.ones_like(full), not lower) > 0
            factor, garbage = (np.where(there, full, other_half) for other_half in (0, np.nan))
            if unit:
                np.fill_diagonal(factor, 1)
                np.fill_diagonal(garbage, np.nan)
            factor = factor.T if transposed else factor
            b = drawn(rng, size, other) if side == "left" else drawn(rng, other, size)
            wanted = factor @ b if side == "left" else b @ factor
            np.testing.assert_array_equal(trmm(garbage, b, side, lower, transposed, unit, **choice), wanted)


@pytest.mark.parametrize("choice", CHOICES, ids=str)
@pytest.mark.parametrize("lower", [False, True])
def test_syrk(choice, lower):
    rng = np.random.default_rng(2)
    for rows, cols in ((1, 4), (37, 20), (64, 64)):
        a = drawn(rng, rows, cols)
        np.testing.assert_array_equal(syrk(a, lower, **choice), triangular(a @ a.T, not lower))
        np.testing.assert_array_equal(syrk(a, lower, True, **choice), triangular(a.T @ a, not lower))


def test_products_are_grouped_and_a_gram_product_makes_its_sums_once():
    triangle = Triangle("out", shared=True)
    program = scheme_program(lcma.resolve("eca-stage1")[0], triangle)
    names = [stage.name for stage in Level(program, (64, 64, 64), "float64", (False, True, False), GROUPED).stages()]
    assert names[0] == "sums of A"
    assert "sums of B" not in names
    # ECA's h1..h4 are all of S1: one product with a four times longer inner dimension, in its place.
    program = scheme_program(lcma.resolve("eca-stage1")[0], Triangle("out"))
    store = Level(program, (64, 64, 64), "float64", (False,) * 3, GROUPED).store
    assert len(store.grouped.groups) == 28
    assert sorted(store.grouped.alone.values()) == [(0, 0), (3, 3)]
    assert len(store._buffered) == 14  # of 34: the rest stand in C or in another's registers


@pytest.mark.parametrize("shape", [(700, 650), (4, 5), (1, 1), (300, 200)])
def test_masks(shape):
    rng = np.random.default_rng(5)
    a, b = drawn(rng, 2, 700, 30), drawn(rng, 30, 650)
    mask = rng.random(shape) < 0.3
    mask[0] = False  # a row that sees nothing
    blocks = np.kron(mask, np.ones((-(-700 // shape[0]), -(-650 // shape[1]))))[:700, :650]
    np.testing.assert_array_equal(masked_matmul(a, b, mask), (a @ b) * blocks)


def test_a_mask_in_letters_by_hand_and_by_a_scheme_and_strays_are_seen():
    rng, letters = np.random.default_rng(6), ["L000", "FL00", "FFL0", "FFFL"]
    a, b = drawn(rng, 40, 9), drawn(rng, 9, 40)
    for scheme in (None, "eca-stage1"):
        np.testing.assert_array_equal(masked_matmul(a, b, letters, scheme=scheme), np.tril(a @ b))
    assert not masked_matmul(a[:6], b[:, :4], ["00L", "000", "000"]).any()  # of the last column no element is there
    clean = np.tril(np.ones((200, 200)))
    assert not has_nonzero_outside_triangle(clean, False)
    for place, value in (((3, 199), np.nan), ((10, 11), 1e-300)):
        spoiled = clean.copy()
        spoiled[place] = value
        assert has_nonzero_outside_triangle(spoiled, False)
        assert has_nonzero_outside_triangle(spoiled.T, True)
