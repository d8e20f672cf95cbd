"""Run in a process of its own by test_triton_kernels.py: the kernel of a stack compiled for sm_90, without a GPU."""

import pytest

from lcma.kernels.cuda.stack import GROUP, TILE
from lcma.kernels.cuda.stack_kernel import stack_gemm
from lcma.kernels.cuda.tiles import SIDES


@pytest.mark.parametrize(
    ("dtype", "side", "of_a", "of_b"),
    [
        ("bf16", "", False, False),
        ("fp16", "out", False, True),
        ("bf16", "left", False, False),
        ("bf16", "left", True, False),
    ],
)
def test_a_tile_fits_the_registers_and_the_shared_memory(fitted, dtype, side, of_a, of_b):
    constants = {"SIDE": SIDES.index(side), "UPPER": False, "UNIT": False, "A_T": of_a, "B_T": of_b, "GROUP": GROUP}
    constants |= {"FLAT": side in ("", "out"), "M": TILE.m, "N": TILE.n, "K": TILE.k}
    blocks = {
        "a": f"{TILE.k}, {TILE.m}" if of_a else f"{TILE.m}, {TILE.k}",
        "b": f"{TILE.n}, {TILE.k}" if of_b else f"{TILE.k}, {TILE.n}",
        "c": f"{TILE.m}, {TILE.n}",
    }
    types = {name: f"tensordesc<{dtype}[{block}]>" for name, block in blocks.items()} | {"tiles": "*i32"}
    ptx = fitted(stack_gemm, types, constants, TILE.warps, TILE.stages, spills=64).asm["ptx"]
    assert "wgmma" in ptx
    assert "cp.async.bulk.tensor" in ptx
