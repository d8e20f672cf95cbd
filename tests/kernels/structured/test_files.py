"""Factored matrices in .npz and .safetensors files."""

import numpy as np
import pytest

from lcma import kronecker
from lcma.errors import PlanError, SchemeFormatError
from lcma.kernels.block_low_rank import LowRank
from lcma.kernels.kronecker import FactoredMatrix
from lcma.kernels.structured.matrix import is_operand_file

from ...refusal import refuses, refuses_with
from ..cases import each


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_what_is_saved_is_loaded(tmp_path, suffix, structure):
    path = tmp_path / f"k{suffix}"
    for dtype in ("float16", "float32", "float64", "complex64"):
        matrix = FactoredMatrix.random(structure, dtype=dtype)
        kronecker.save(path, matrix)
        found = kronecker.load(path)
        assert (found.structure, found.dtype) == (structure, dtype)
        for mine, other in zip(matrix.factors, found.factors, strict=True):
            np.testing.assert_array_equal(mine, other)
    assert is_operand_file(path)
    assert not is_operand_file(tmp_path / "none.npz")


def test_bfloat16_is_drawn_and_stored_as_its_bits(tmp_path):
    drawn = FactoredMatrix.random(kronecker.Pattern(1, 2, 2, 2), dtype="bfloat16")
    rounded = FactoredMatrix.random(kronecker.Pattern(1, 2, 2, 2)).astype("bfloat16")
    np.testing.assert_array_equal(drawn.factors[0], rounded.factors[0])
    bits = np.arange(8, dtype=np.uint16).reshape(1, 2, 2, 2)
    matrix = FactoredMatrix(kronecker.KroneckerSparse((kronecker.Pattern(1, 2, 2, 2),)), (bits,), "bfloat16")
    kronecker.save(tmp_path / "k.safetensors", matrix)
    found = kronecker.load(tmp_path / "k.safetensors")
    assert found.dtype == "bfloat16"
    np.testing.assert_array_equal(found.factors[0], bits)
    refuses("holds no bfloat16", kronecker.save, tmp_path / "k.npz", matrix)
    with pytest.raises(PlanError, match="holds no complex128"):
        kronecker.save(tmp_path / "k.safetensors", FactoredMatrix.random(kronecker.dense(2, 2), dtype="complex128"))
    refuses("must end in", kronecker.save, tmp_path / "k.bin", matrix)


def array(value):
    """The array of a list, or zeros of a shape and dtype."""
    if not isinstance(value, str):
        return np.array(value)
    shape, _, dtype = value.partition(":")
    return np.zeros(tuple(map(int, shape.split("x"))), dtype)


@each("arrays, message", __file__, "files")
def test_files_that_hold_none_name_what_is_wrong(tmp_path, arrays, message):
    path = tmp_path / "bad.npz"
    np.savez(path, **{name: array(value) for name, value in arrays.items()})
    with pytest.raises(SchemeFormatError, match=message) as caught:
        kronecker.load(path)
    assert str(path) in str(caught.value)


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "k.npz"
    kronecker.save(path, FactoredMatrix.random(kronecker.dense(8, 8)))
    content = path.read_bytes()
    for cut in (0, 10, len(content) // 2, len(content) - 4):
        path.write_bytes(content[:cut])
        with pytest.raises(SchemeFormatError):
            kronecker.load(path)
    other = tmp_path / "k.safetensors"
    for structure in (kronecker.dense(8, 8), LowRank(8, 8, 2)):
        kronecker.save(other, FactoredMatrix.random(structure))
        other.write_bytes(other.read_bytes()[:-8])
        refuses_with(SchemeFormatError, "file does not hold them", kronecker.load, other)
    refuses_with(SchemeFormatError, "can't be read", kronecker.load, tmp_path / "missing.npz")
    refuses_with(SchemeFormatError, "can't be read", kronecker.load, tmp_path / "missing")


@pytest.mark.parametrize("compressed", [False, True])
def test_changed_bytes_never_raise_anything_else(tmp_path, compressed):
    """Flipped bytes, and the flag of encryption: the matrix is read, or one line says why not."""
    matrix = FactoredMatrix.random(kronecker.monarch(16, 16, 4))
    path, rng = tmp_path / "k.npz", np.random.default_rng(0)
    write = np.savez_compressed if compressed else np.savez
    patterns = np.array([one.sizes for one in matrix.patterns])
    write(path, patterns=patterns, **{f"factor{i}": weights for i, weights in enumerate(matrix.factors, 1)})
    content = path.read_bytes()
    seen = set()
    for _ in range(300):
        changed = bytearray(content)
        for place in rng.integers(0, len(content), rng.integers(1, 4)):
            changed[place] = rng.integers(0, 256)
        path.write_bytes(changed)
        try:
            is_operand_file(path)
            kronecker.load(path)
        except SchemeFormatError as error:
            seen.add(str(error))
    assert len(seen) > 5
    locked = bytearray(content)
    for start, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = locked.find(start)
        while place >= 0:
            locked[place + flags] |= 1
            place = locked.find(start, place + 1)
    path.write_bytes(locked)
    refuses_with(SchemeFormatError, "encrypted", kronecker.load, path)
