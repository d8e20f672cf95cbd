"""Run in a process of its own by test_triton_kernels.py: the kernels of scaled float16, compiled for sm_90."""

import pytest

from lcma.kernels.cuda import scaled_half
from lcma.kernels.cuda.float16_pairs import LOST, MOST_SHIFT, TOP
from lcma.kernels.cuda.float16_pairs_kernel import split_pairs
from lcma.kernels.cuda.scaled_half_kernel import check, fold_sums, guarded_gemm, half_gemm

SHARED = 232448
"""Bytes of shared memory that a block of an H200 may have."""


def tiled(tile):
    options = {"num_warps": tile.warps, "num_stages": tile.stages}
    return {"GROUP": scaled_half.GROUP, "M": tile.m, "N": tile.n, "K": tile.k}, options


@pytest.mark.parametrize("described", [False, True])
@pytest.mark.parametrize("col_step", ["i32", 1])
def test_the_product_fits_the_registers_and_the_shared_memory(described, col_step, compile_kernel):
    tile = scaled_half.TILE
    constants, options = tiled(tile)
    constants["DESCRIBED"] = described
    pointers = {"row_shifts": "*i32", "col_shifts": "*i32"}
    pointers["c"] = f"tensordesc<fp32[{tile.m}, {tile.n // 4}]>" if described else "*fp32"
    if col_step == 1:
        constants["c_col"] = 1
    pointers |= {"a": f"tensordesc<fp16[{tile.m}, {tile.k}]>", "b": f"tensordesc<fp16[{tile.k}, {tile.n}]>"}
    made, registers, stack = compile_kernel(half_gemm, pointers, constants, options)
    assert registers <= 255
    assert stack == 0
    assert made.metadata.shared <= SHARED
    assert "wgmma" in made.asm["ptx"]


@pytest.mark.parametrize("steps", [("a_col", "b_row", "c_col"), ("a_row", "b_row", "c_row")])
def test_the_product_behind_the_check_needs_no_stack(steps, compile_kernel):
    """B stored by columns, and the transposed product: the right factor is read along k."""
    constants, options = tiled(scaled_half.PLAIN_TILE)
    constants |= dict.fromkeys(steps, 1)
    pointers = {"flag": "*i32"} | dict.fromkeys("abc", "*fp32")
    made, _, stack = compile_kernel(guarded_gemm, pointers, constants, options, "all")
    assert stack == 0
    assert made.metadata.shared <= SHARED
    assert "wgmma" in made.asm["ptx"]


@pytest.mark.parametrize("axis", [0, 1])
def test_scaling_needs_no_stack(axis, compile_kernel):
    pointers = {"x": "*fp32", "largest": "*i32", "shifts": "*i32", "high": "*fp16", "low": "*fp16", "across": "*fp32"}
    pointers |= {"along_shifts": "*fp32", "sums": "*fp32"}
    constants = {"AXIS": axis, "SHIFTED": False, "LOW": False, "TOP": TOP, "MOST": MOST_SHIFT}
    constants |= dict(zip("MN", scaled_half.BLOCKS[axis], strict=True))
    assert compile_kernel(split_pairs, pointers, constants, {"num_warps": scaled_half.WARPS})[2] == 0


def test_the_check_needs_no_stack(compile_kernel):
    partial = dict.fromkeys(("across", "weights", "parts", "sums"), "*fp32")
    folded = dict(zip(("ROWS", "SIZE"), scaled_half.FOLDED, strict=True))
    pointers = dict.fromkeys(("sums_a", "sums_b", "weights_a", "weights_b"), "*fp32")
    pointers |= {"a": "*fp16", "b": "*fp16", "flag": "*i32"}
    constants = {"LOST": LOST, "ROUNDING": scaled_half.ROUNDING}
    constants |= {name: getattr(scaled_half, name) for name in ("LINES", "ALONG", "SIZE")}
    for kernel, types, given in ((fold_sums, partial, folded), (check, pointers, constants)):
        assert compile_kernel(kernel, types, given, {"num_warps": 4})[2] == 0
