"""Bit matrices: order of bits, conversions, parts, files."""

import numpy as np
import pytest

import lcma
from lcma.errors import SchemeFormatError

from ...refusal import refuses, refuses_with

BitMatrix = lcma.BitMatrix

SHAPES = [(0, 0), (1, 1), (3, 64), (64, 65), (130, 200), (2, 5, 70), (0, 7), (7, 0)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int64])
def test_arrays_round_trip(shape, dtype):
    array = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    matrix = BitMatrix.from_array(array)
    assert matrix.shape == shape
    assert np.array_equal(matrix.to_array(dtype), array)
    assert np.array_equal(matrix.T.to_array(dtype), array.swapaxes(-1, -2))


def test_bits_are_in_the_order_of_packbits_little():
    array = np.zeros((1, 70), np.uint8)
    array[0, [0, 9, 69]] = 1
    words = BitMatrix.from_array(array).words
    assert words.tolist() == [[1 | 1 << 9, 1 << 5]]
    packed = np.packbits(array, axis=1, bitorder="little")
    assert words.astype("<u8").view(np.uint8)[0, : packed.shape[1]].tolist() == packed[0].tolist()


@pytest.mark.parametrize(
    ("start", "stop"), [(0, 200), (0, 64), (64, 200), (64, 128), (3, 3), (5, 70), (63, 65), (70, 199)]
)
def test_slices_are_those_of_the_array(start, stop):
    matrix = BitMatrix.random(20, 200, seed=1)
    assert np.array_equal(matrix[3:17:2, start:stop].to_array(), matrix.to_array()[3:17:2, start:stop])
    assert np.array_equal(matrix[..., start:stop].to_array(), matrix.to_array()[..., start:stop])


def test_other_steps_and_batches_are_sliced():
    matrix = BitMatrix.random(3, 20, 100, seed=2)
    assert np.array_equal(matrix[1].to_array(), matrix.to_array()[1])
    assert np.array_equal(matrix[:, ::-1, 90:2:-3].to_array(), matrix.to_array()[:, ::-1, 90:2:-3])


def test_sums_and_equality():
    a, b = BitMatrix.random(9, 77, seed=3), BitMatrix.random(9, 77, seed=4)
    assert np.array_equal((a ^ b).to_array(), a.to_array() ^ b.to_array())
    assert a ^ b ^ b == a
    assert a != b
    assert a != BitMatrix.zeros(9, 78)


def test_files_round_trip(tmp_path):
    matrix = BitMatrix.random(4, 11, 130, seed=5)
    matrix.save(tmp_path / "a.npz")
    assert BitMatrix.load(tmp_path / "a.npz") == matrix


def test_files_that_are_none_are_refused(tmp_path):
    (tmp_path / "a.npz").write_bytes(b"not an archive")
    np.savez(tmp_path / "b.npz", words=np.zeros((2, 2), np.uint64))
    np.savez(tmp_path / "c.npz", words=np.ones((2, 1), np.uint64), cols=0, bitorder="little")
    for name in "abc":
        refuses_with(SchemeFormatError, "is not a bit matrix", BitMatrix.load, tmp_path / f"{name}.npz")
    refuses_with(SchemeFormatError, "can't be read", BitMatrix.load, tmp_path / "none.npz")


@pytest.mark.parametrize(("make", "reason"), [
    (lambda: BitMatrix.zeros(2, 3) ^ BitMatrix.zeros(3, 3), "sizes differ"),
    (lambda: BitMatrix.zeros(2, 3) @ BitMatrix.zeros(2, 3), "inner sizes differ"),
    (lambda: BitMatrix.zeros(2, 3)[0], "by slices"),
])  # fmt: skip
def test_matrices_that_do_not_fit_are_refused(make, reason):
    refuses(reason, make)
