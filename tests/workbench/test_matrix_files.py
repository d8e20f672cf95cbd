"""Operands and products in .npy and .safetensors files."""

import json

import numpy as np
import pytest

from lcma.errors import PlanError
from lcma.kernels import safetensors
from lcma.kernels.bfloat16 import bfloat16_bits, float32_of
from lcma.workbench.matrix_files import read_operand, write_product

from ..refusal import refuses


def test_tensors_come_back_as_they_were_written(tmp_path):
    rng = np.random.default_rng(0)
    tensors = {
        "half": ("F16", rng.standard_normal((3, 5)).astype(np.float16)),
        "bits": ("BF16", bfloat16_bits(rng.standard_normal((2, 3, 5)))),
        "complex": ("C64", rng.standard_normal((4, 2)).astype(np.complex64)),
        "bytes": ("I8", rng.integers(-9, 9, (7, 3)).astype(np.int8)),
        "wide": ("F64", rng.standard_normal((3, 3))),
        "none": ("F32", np.empty((0, 4), np.float32)),
    }
    path = tmp_path / "all.safetensors"
    path.write_bytes(safetensors.pack(tensors))
    found = safetensors.entries(path)
    assert list(found) == list(tensors)
    for name, (kind, matrix) in tensors.items():
        assert found[name].kind == kind
        np.testing.assert_array_equal(safetensors.read(path, found[name]), matrix)
    assert read_operand(f"{path}:bits").dtype == "bfloat16"
    assert read_operand(f"{path}:wide").matrix.dtype == np.float64


def test_a_file_written_by_hand_is_read(tmp_path):
    """The example of the format's description, with metadata and a header that is not padded."""
    tensor = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
    header = json.dumps({"__metadata__": {"by": "hand"}, "x": tensor}).encode()
    path = tmp_path / "x.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + np.arange(6, dtype="<f4").tobytes())
    operand = read_operand(str(path))
    assert (operand.dtype, operand.matrix.tolist()) == ("float32", [[0, 1, 2], [3, 4, 5]])


def test_bfloat16_is_rounded_to_the_nearest():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    numbers = (rng.standard_normal(10_000) * 10.0 ** rng.integers(-38, 38, 10_000)).astype(np.float32)
    numbers = np.append(
        numbers, np.array([0, -0.0, np.inf, -np.inf, 3.4e38, 1e-45, 1.00390625, 1.01171875], np.float32)
    )
    wanted = torch.from_numpy(numbers).bfloat16().view(torch.int16).numpy().view(np.uint16)
    np.testing.assert_array_equal(bfloat16_bits(numbers), wanted)
    low = np.array([0x7F800001, 0xFFFFFFFF], np.uint32).view(np.float32)  # NaNs that rounding could turn into others
    assert np.isnan(float32_of(bfloat16_bits(low))).all()


def test_products_are_written_whole(tmp_path):
    matrix = np.arange(6, dtype=np.float32).reshape(2, 3)
    for name in ("c.npy", "c.npy", "c.safetensors", "c.safetensors", "d.safetensors:mine"):
        assert write_product(str(tmp_path / name), matrix, "float32").startswith("written: ")
        found = read_operand(str(tmp_path / name))
        assert (found.dtype, found.matrix.tolist()) == ("float32", matrix.tolist())
    refuses("holds C and would lose it", write_product, f"{tmp_path / 'c.safetensors'}:other", matrix, "float32")
    assert read_operand(f"{tmp_path / 'c.safetensors'}:C").matrix.tolist() == matrix.tolist()
    bits = bfloat16_bits(matrix)
    assert "as float32" in write_product(str(tmp_path / "b.npy"), bits, "bfloat16")
    assert np.load(tmp_path / "b.npy").tolist() == matrix.tolist()
    write_product(str(tmp_path / "b.safetensors"), bits, "bfloat16")
    assert read_operand(str(tmp_path / "b.safetensors")).matrix.tolist() == bits.tolist()
    with pytest.raises(PlanError, match="no complex128; write a"):
        write_product(str(tmp_path / "z.safetensors"), matrix.astype(complex), "complex128")
    assert not (tmp_path / "z.safetensors").exists()


def test_numbers_of_the_other_byte_order_are_read(tmp_path):
    np.save(tmp_path / "big.npy", np.arange(4, dtype=">f4").reshape(2, 2))
    operand = read_operand(str(tmp_path / "big.npy"))
    assert (operand.dtype, operand.matrix.dtype.isnative) == ("float32", True)
    assert operand.matrix.tolist() == [[0, 1], [2, 3]]


def test_operands_of_products_in_8_bits_are_bfloat16(tmp_path):
    rng = np.random.default_rng(3)
    np.save(tmp_path / "a.npy", rng.standard_normal((4, 6)).astype(np.float32))
    found, plain = (read_operand(str(tmp_path / "a.npy")).converted(dtype) for dtype in ("fp8", "bfloat16"))
    assert (found.arithmetic, found.dtype) == ("fp8", "bfloat16")
    np.testing.assert_array_equal(found.matrix, plain.matrix)
    np.testing.assert_array_equal(found.widened(), plain.widened())
    write_product(str(tmp_path / "c.safetensors"), found.matrix, found.dtype)
    assert read_operand(str(tmp_path / "c.safetensors")).dtype == "bfloat16"
