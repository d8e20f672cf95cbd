"""Run in a process of its own by test_triton_kernels.py: the triangular kernel compiled for sm_90, without a GPU."""

import pytest

from lcma.kernels.cuda.tiles import SIDES
from lcma.kernels.cuda.triangular import TILES
from lcma.kernels.cuda.triangular_kernel import triangular_gemm

POINTERS = {"bfloat16": "*bf16", "float16": "*fp16", "tf32": "*fp32", "float32": "*fp32", "float64": "*fp64"}
FEW_SPILLS = 64
"""Bytes of a thread's stack that may be used."""


@pytest.mark.parametrize("side", ["out", "left"])
@pytest.mark.parametrize("dtype", TILES)
def test_a_tile_fits_the_registers_and_uses_the_tensor_units(fitted, dtype, side):
    """As it is launched on aligned matrices stored by rows."""
    tile = TILES[dtype]
    constants = {"heads": 1, "SIDE": SIDES.index(side), "UPPER": False, "UNIT": False, "EXACT": True}
    constants |= {"PRECISION": "tf32" if dtype == "tf32" else "ieee", "DOUBLE": dtype == "float64"}
    constants |= {"M": tile.m, "N": tile.n, "K": tile.k, "a_col": 1, "b_col": 1, "c_col": 1}
    types = dict.fromkeys(("a", "b", "c"), POINTERS[dtype]) | {"tiles": "*i32"}
    made = fitted(triangular_gemm, types, constants, tile.warps, tile.stages, spills=FEW_SPILLS, aligned="all")
    if dtype in ("bfloat16", "float16", "tf32"):
        assert "wgmma" in made.asm["ptx"]
    if dtype == "float32":
        assert "mma" not in made.asm["ptx"]  # strict: scalar units, or it would round to tf32
