"""Run in a process of its own by test_triton_kernels.py: kernels of products compiled for sm_90, without a GPU.

In e4m3, in scaled float16, of stacks and of triangles.
"""

import re

import pytest

from lcma.kernels.cuda import fp8, scaled_half, stack
from lcma.kernels.cuda.float16_pairs import LOST, MOST_SHIFT, TOP
from lcma.kernels.cuda.float16_pairs_kernel import split_pairs
from lcma.kernels.cuda.fp8_kernel import quantise, scaled_gemm
from lcma.kernels.cuda.fp8_naive import BLOCK
from lcma.kernels.cuda.scaled_half_kernel import check, fold_sums, guarded_gemm, half_gemm
from lcma.kernels.cuda.stack_kernel import stack_gemm
from lcma.kernels.cuda.tiles import SIDES
from lcma.kernels.cuda.triangular import TILES
from lcma.kernels.cuda.triangular_kernel import triangular_gemm

POINTERS = {"bfloat16": "*bf16", "float16": "*fp16", "tf32": "*fp32", "float32": "*fp32", "float64": "*fp64"}
FEW_SPILLS = 64
"""Bytes of a thread's stack that may be used."""


def tiled(tile, **constants):
    """A tile's constants, and its warps and stages."""
    return constants | {"M": tile.m, "N": tile.n, "K": tile.k}, (tile.warps, tile.stages)


@pytest.mark.parametrize("dtype", ["bf16", "fp16", "fp32"])
@pytest.mark.parametrize("blocks", [False, True])
def test_quantising_needs_no_stack(fitted, dtype, blocks):
    constants = {"BLOCKS": blocks, "LINES": BLOCK if blocks else fp8.ROWS, "ALONG": BLOCK, "along_step": 1}
    pointers = {"x": f"*{dtype}", "bits": "*fp8e4nv", "scales": "*fp32"}
    aligned = (*pointers, "line_step", "pitch")
    ptx = fitted(quantise, pointers, constants, 8 if blocks else 4, aligned=aligned).asm["ptx"]
    assert "cvt.rn.satfinite.e4m3x2.f32" in ptx
    assert "div.rn.f32" in ptx


def test_the_product_of_quantised_operands_fits(fitted):
    tile = fp8.TILE
    constants, launch = tiled(tile, GROUP=fp8.GROUP, c_col=1)
    types = {"a_scales": "*fp32", "b_scales": "*fp32", "c": "*bf16"}
    types |= {"a": f"tensordesc<fp8e4nv[{tile.m}, {tile.k}]>", "b": f"tensordesc<fp8e4nv[{tile.n}, {tile.k}]>"}
    made = fitted(scaled_gemm, types, constants, *launch)
    assert re.search(r"wgmma\.mma_async\S*\.f32\.e4m3\.e4m3", made.asm["ptx"])


@pytest.mark.parametrize("described", [False, True])
@pytest.mark.parametrize("col_step", ["i32", 1])
def test_the_product_of_scaled_halves_fits(described, col_step, fitted):
    tile = scaled_half.TILE
    constants, launch = tiled(tile, GROUP=scaled_half.GROUP, DESCRIBED=described)
    pointers = {"row_shifts": "*i32", "col_shifts": "*i32"}
    pointers["c"] = f"tensordesc<fp32[{tile.m}, {tile.n // 4}]>" if described else "*fp32"
    if col_step == 1:
        constants["c_col"] = 1
    pointers |= {"a": f"tensordesc<fp16[{tile.m}, {tile.k}]>", "b": f"tensordesc<fp16[{tile.k}, {tile.n}]>"}
    assert "wgmma" in fitted(half_gemm, pointers, constants, *launch).asm["ptx"]


@pytest.mark.parametrize("steps", [("a_col", "b_row", "c_col"), ("a_row", "b_row", "c_row")])
def test_the_product_behind_the_check_needs_no_stack(steps, fitted):
    """B stored by columns, and the transposed product: the right factor is read along k."""
    constants, launch = tiled(scaled_half.PLAIN_TILE, GROUP=scaled_half.GROUP)
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


@pytest.mark.parametrize(
    ("dtype", "side", "of_a", "of_b"),
    [
        ("bf16", "", False, False),
        ("fp16", "out", False, True),
        ("bf16", "left", False, False),
        ("bf16", "left", True, False),
    ],
)
def test_a_tile_of_a_stack_fits(fitted, dtype, side, of_a, of_b):
    tile, order = stack.TILE, {"A_T": of_a, "B_T": of_b, "FLAT": side in ("", "out"), "GROUP": stack.GROUP}
    constants, launch = tiled(tile, SIDE=SIDES.index(side), UPPER=False, UNIT=False, **order)
    blocks = {
        "a": f"{tile.k}, {tile.m}" if of_a else f"{tile.m}, {tile.k}",
        "b": f"{tile.n}, {tile.k}" if of_b else f"{tile.k}, {tile.n}",
        "c": f"{tile.m}, {tile.n}",
    }
    types = {name: f"tensordesc<{dtype}[{block}]>" for name, block in blocks.items()} | {"tiles": "*i32"}
    ptx = fitted(stack_gemm, types, constants, *launch, spills=FEW_SPILLS).asm["ptx"]
    assert "wgmma" in ptx
    assert "cp.async.bulk.tensor" in ptx


@pytest.mark.parametrize("side", ["out", "left"])
@pytest.mark.parametrize("dtype", TILES)
def test_a_tile_of_a_triangle_fits_and_uses_the_tensor_units(fitted, dtype, side):
    """As it is launched on aligned matrices stored by rows."""
    constants, launch = tiled(TILES[dtype], heads=1, SIDE=SIDES.index(side), UPPER=False, UNIT=False, EXACT=True)
    constants |= {"PRECISION": "tf32" if dtype == "tf32" else "ieee", "DOUBLE": dtype == "float64"}
    constants |= {"a_col": 1, "b_col": 1, "c_col": 1}
    types = dict.fromkeys(("a", "b", "c"), POINTERS[dtype]) | {"tiles": "*i32"}
    made = fitted(triangular_gemm, types, constants, *launch, spills=FEW_SPILLS, aligned="all")
    if dtype in ("bfloat16", "float16", "tf32"):
        assert "wgmma" in made.asm["ptx"]
    if dtype == "float32":
        assert "mma" not in made.asm["ptx"]  # strict: scalar units, or it would round to tf32
