"""Run in a process of its own by test_triton_kernels.py: the kernels in e4m3 compiled for sm_90, without a GPU."""

import re

import pytest

from lcma.kernels.cuda.fp8 import GROUP, ROWS, TILE
from lcma.kernels.cuda.fp8_kernel import quantise, scaled_gemm
from lcma.kernels.cuda.fp8_naive import BLOCK


@pytest.mark.parametrize("dtype", ["bf16", "fp16", "fp32"])
@pytest.mark.parametrize("blocks", [False, True])
def test_quantising_needs_no_stack(fitted, dtype, blocks):
    constants = {"BLOCKS": blocks, "LINES": BLOCK if blocks else ROWS, "ALONG": BLOCK, "along_step": 1}
    pointers = {"x": f"*{dtype}", "bits": "*fp8e4nv", "scales": "*fp32"}
    aligned = (*pointers, "line_step", "pitch")
    ptx = fitted(quantise, pointers, constants, 8 if blocks else 4, aligned=aligned).asm["ptx"]
    assert "cvt.rn.satfinite.e4m3x2.f32" in ptx
    assert "div.rn.f32" in ptx


def test_the_product_of_quantised_operands_fits(fitted):
    constants = {"GROUP": GROUP, "M": TILE.m, "N": TILE.n, "K": TILE.k, "c_col": 1}
    types = {"a_scales": "*fp32", "b_scales": "*fp32", "c": "*bf16"}
    types |= {"a": f"tensordesc<fp8e4nv[{TILE.m}, {TILE.k}]>", "b": f"tensordesc<fp8e4nv[{TILE.n}, {TILE.k}]>"}
    made = fitted(scaled_gemm, types, constants, TILE.warps, TILE.stages)
    assert re.search(r"wgmma\.mma_async\S*\.f32\.e4m3\.e4m3", made.asm["ptx"])
