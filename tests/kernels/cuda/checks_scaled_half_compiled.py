"""Run in a process of its own by test_triton_kernels.py: the kernels of scaled float16, compiled for sm_90."""

import pytest

from lcma.kernels.cuda import scaled_half
from lcma.kernels.cuda.float16_pairs import LOST, MOST_SHIFT, TOP
from lcma.kernels.cuda.float16_pairs_kernel import split_pairs
from lcma.kernels.cuda.scaled_half_kernel import check, fold_sums, guarded_gemm, half_gemm


def tiled(tile):
    return {"GROUP": scaled_half.GROUP, "M": tile.m, "N": tile.n, "K": tile.k}, (tile.warps, tile.stages)


@pytest.mark.parametrize("described", [False, True])
@pytest.mark.parametrize("col_step", ["i32", 1])
def test_the_product_fits_the_registers_and_the_shared_memory(described, col_step, fitted):
    tile = scaled_half.TILE
    constants, launch = tiled(tile)
    constants["DESCRIBED"] = described
    pointers = {"row_shifts": "*i32", "col_shifts": "*i32"}
    pointers["c"] = f"tensordesc<fp32[{tile.m}, {tile.n // 4}]>" if described else "*fp32"
    if col_step == 1:
        constants["c_col"] = 1
    pointers |= {"a": f"tensordesc<fp16[{tile.m}, {tile.k}]>", "b": f"tensordesc<fp16[{tile.k}, {tile.n}]>"}
    assert "wgmma" in fitted(half_gemm, pointers, constants, *launch).asm["ptx"]


@pytest.mark.parametrize("steps", [("a_col", "b_row", "c_col"), ("a_row", "b_row", "c_row")])
def test_the_product_behind_the_check_needs_no_stack(steps, fitted):
    """B stored by columns, and the transposed product: the right factor is read along k."""
    constants, launch = tiled(scaled_half.PLAIN_TILE)
    constants |= dict.fromkeys(steps, 1)
    pointers = {"flag": "*i32"} | dict.fromkeys("abc", "*fp32")
    assert "wgmma" in fitted(guarded_gemm, pointers, constants, *launch, aligned="all").asm["ptx"]


@pytest.mark.parametrize("axis", [0, 1])
def test_scaling_needs_no_stack(axis, fitted):
    pointers = {"x": "*fp32", "largest": "*i32", "shifts": "*i32", "high": "*fp16", "low": "*fp16", "across": "*fp32"}
    pointers |= {"along_shifts": "*fp32", "sums": "*fp32"}
    constants = {"AXIS": axis, "SHIFTED": False, "LOW": False, "TOP": TOP, "MOST": MOST_SHIFT}
    constants |= dict(zip("MN", scaled_half.BLOCKS[axis], strict=True))
    fitted(split_pairs, pointers, constants, scaled_half.WARPS)


def test_the_check_needs_no_stack(fitted):
    partial = dict.fromkeys(("across", "weights", "parts", "sums"), "*fp32")
    folded = dict(zip(("ROWS", "SIZE"), scaled_half.FOLDED, strict=True))
    pointers = dict.fromkeys(("sums_a", "sums_b", "weights_a", "weights_b"), "*fp32")
    pointers |= {"a": "*fp16", "b": "*fp16", "flag": "*i32"}
    constants = {"LOST": LOST, "ROUNDING": scaled_half.ROUNDING}
    constants |= {name: getattr(scaled_half, name) for name in ("LINES", "ALONG", "SIZE")}
    for kernel, types, given in ((fold_sums, partial, folded), (check, pointers, constants)):
        fitted(kernel, types, given, 4)
