"""Run in a process of its own by test_triton_kernels.py: the Triton kernels compiled for sm_90, without a GPU."""

import pytest

from lcma.kernels.cuda.int8 import GROUP, TILE
from lcma.kernels.cuda.int8_kernel import multiply_int8
from lcma.kernels.exact.tensor_sums import HEIGHT, WIDTH
from lcma.kernels.exact.triton_bits import pack_parity, sum_blocks, unpack_bits
from lcma.kernels.exact.triton_digits import join_digits, split_digits

FEW_SPILLS = 64
"""Bytes of a thread's stack that may be used."""

INDEX = dict.fromkeys(("starts", "source_rows", "source_cols", "target_rows", "target_cols"), "*i64")
CASES = {
    "product": (
        multiply_int8,
        {"a": "*i8", "b": "*i8", "c": "*i32"},
        {"M": TILE.m, "N": TILE.n, "K": TILE.k, "GROUP": GROUP, "PARITY": True, "c_col": 1},
        (TILE.warps, TILE.stages),
    ),
    "pack": (pack_parity, {"values": "*i32", "out": "*i32"}, {"R": 16, "W": 4}, (4,)),
    "pack-bytes": (pack_parity, {"values": "*u8", "out": "*i32"}, {"R": 16, "W": 4}, (4,)),
    "unpack": (unpack_bits, {"words": "*i32", "out": "*i8"}, {"TURN": False, "R": 32, "W": 4}, (4,)),
    "unpack-turned": (unpack_bits, {"words": "*i32", "out": "*i8"}, {"TURN": True, "R": 32, "W": 4}, (4,)),
}
for digits, kind in ((2, "i32"), (3, "i32"), (3, "i64"), (8, "i64")):
    CASES[f"split-{digits}-{kind}"] = (
        split_digits,
        {"x": "*i64", "out": "*i8", "modulus": kind},
        {"DIGITS": digits, "REVERSED": True, "R": 32, "C": 64},
        (4,),
    )
    CASES[f"join-{digits}-{kind}"] = (
        join_digits,
        {"sums": "*i32", "out": "*i64", "modulus": kind},
        {"ADD": False, "TERMS": 2 * digits - 1, "R": 16, "C": 64},
        (4,),
    )
CASES["sums"] = (sum_blocks, {"source": "*i32", "target": "*i32", **INDEX}, {"R": HEIGHT, "W": WIDTH}, (4,))


@pytest.mark.parametrize("name", CASES)
def test_a_kernel_fits_the_registers_and_the_shared_memory(fitted, name):
    *kernel, launch = CASES[name]
    made = fitted(*kernel, *launch, spills=FEW_SPILLS, aligned="all")
    if name == "product":
        assert "wgmma" in made.asm["ptx"]
