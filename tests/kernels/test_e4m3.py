"""Rounding to e4m3 by the definition of its values, and the reference product in numpy."""

import numpy as np
import pytest

from lcma.kernels.cuda.fp8_naive import FLOOR, fp8_product, quantise_blocks, quantise_rows
from lcma.kernels.e4m3 import LARGEST, decode, encode

pytest.importorskip("torch")

EVERY = np.arange(256, dtype=np.uint8)


def by_definition(codes):
    """The values of codes by their bits, sign, exponent and mantissa; NaN where all bits but the sign are set."""
    exponent, mantissa = (codes >> 3) & 15, codes & 7
    values = np.where(exponent == 0, mantissa * 2.0**-9, (8 + mantissa) * 2.0 ** (exponent - 10.0))
    return np.where(codes & 0x7F == 0x7F, np.nan, values * np.where(codes & 0x80, -1.0, 1.0)).astype(np.float32)


def nearest(values):
    """The codes whose values are nearest, of two that are equally near the even one."""
    known = by_definition(EVERY[:0x7F]).astype(np.float64)
    far = np.abs(known - np.minimum(np.abs(values.astype(np.float64)), LARGEST)[:, None])
    least = far.min(1, keepdims=True)
    codes = np.argmin(np.where(far == least, EVERY[:0x7F] & 1, 2), 1)
    return (codes | np.where(np.signbit(values), 0x80, 0)).astype(np.uint8)


def test_every_value_is_that_of_its_bits():
    values = by_definition(EVERY.astype(int))
    np.testing.assert_array_equal(decode(EVERY), values)
    numbers = ~np.isnan(values)
    assert numbers.sum() == 254
    np.testing.assert_array_equal(encode(values[numbers]), EVERY[numbers])


def test_ties_and_their_neighbours_are_rounded_to_the_nearest():
    values = np.sort(decode(EVERY[:0x7F]))
    ties = ((values[1:].astype(np.float64) + values[:-1]) / 2).astype(np.float32)
    near = np.concatenate([ties, np.nextafter(ties, np.float32(np.inf)), np.nextafter(ties, np.float32(0))])
    near = np.concatenate([near, -near])
    np.testing.assert_array_equal(encode(near), nearest(near))


def test_random_bits_of_float32_are_rounded_to_the_nearest():
    rng = np.random.default_rng(0)
    words = rng.integers(0, 1 << 32, 20_000, dtype=np.uint32).view(np.float32)
    spread = (rng.standard_normal(20_000) * np.exp2(rng.uniform(-12, 10, 20_000))).astype(np.float32)
    for values in (words[np.isfinite(words)], spread):
        np.testing.assert_array_equal(encode(values), nearest(values))


def test_values_beyond_the_largest_are_cut_and_nan_stays():
    values = np.array([np.inf, -np.inf, 1e9, 464.0, 465.0, np.nan], np.float32)
    np.testing.assert_array_equal(decode(encode(values)), np.float32([448, -448, 448, 448, 448, np.nan]))


def test_scales_of_rows_and_of_blocks():
    a = np.zeros((2, 130), np.float32)
    a[0, 5], a[0, 129], a[1, 128] = -896.0, 2.0**-130, 7.0
    bits, scales = quantise_rows(a)
    np.testing.assert_array_equal(scales, np.float32([[2.0, FLOOR / LARGEST], [1.0, 7.0 / 448]]))
    assert decode(bits)[0, 5] == -448
    assert decode(bits)[1, 128] == 448
    _, scales = quantise_blocks(a.T)
    np.testing.assert_array_equal(scales, np.float32([[2.0], [7.0 / 448]]))


@pytest.mark.parametrize("sizes", [(5, 300, 7), (1, 128, 128), (3, 1, 200)])
def test_the_product_is_near_that_of_the_operands(sizes):
    m, k, n = sizes
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((k, n)).astype(np.float32)
    a[0] *= 1e20  # each row has scales of its own
    wide = np.abs(a).astype(np.float64) @ np.abs(b)
    # Two roundings of a relative error of 2^-4 each.
    assert (np.abs(fp8_product(a, b) - a.astype(np.float64) @ b) <= 2.0**-3 * 1.1 * wide).all()


def test_only_what_depends_on_a_non_finite_entry_is_not_finite():
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((5, 200)).astype(np.float32), rng.standard_normal((200, 9)).astype(np.float32)
    for matrix, place in ((a, (2, 3)), (b, (150, 7))):
        matrix[place] = 0.0  # not the largest of its block, so that scales stay as they are
    clean = fp8_product(a, b)
    a[2, 3], b[150, 7] = np.inf, np.nan
    found = fp8_product(a, b)
    touched = np.zeros(found.shape, bool)
    touched[2], touched[:, 7] = True, True
    np.testing.assert_array_equal(np.isfinite(found), ~touched)
    np.testing.assert_array_equal(found[~touched], clean[~touched])


def test_zeros_give_zeros():
    assert (fp8_product(np.zeros((3, 130), np.float32), np.ones((130, 4), np.float32)) == 0).all()
