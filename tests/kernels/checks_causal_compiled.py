"""Run in a process of its own (test_causal_triton.py does): the triangular kernel compiled for sm_90, without a GPU."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from lcma.kernels.cuda.tiles import SIDES
from lcma.kernels.cuda.triangular import TILES
from lcma.kernels.cuda.triangular_kernel import triangular_gemm

POINTERS = {"bfloat16": "*bf16", "float16": "*fp16", "tf32": "*fp32", "float32": "*fp32", "float64": "*fp64"}
FEW_SPILLS = 64
"""Bytes of a thread's stack that may be used."""


def compiled(dtype, side, upper):
    """The kernel as it is launched on aligned matrices stored by rows."""
    tile, kernel = TILES[dtype], triangular_gemm
    constants = {
        "heads": 1,
        "SIDE": SIDES.index(side),
        "UPPER": upper,
        "UNIT": False,
        "EXACT": True,
        "PRECISION": "tf32" if dtype == "tf32" else "ieee",
        "DOUBLE": dtype == "float64",
        "M": tile.m,
        "N": tile.n,
        "K": tile.k,
        "a_col": 1,
        "b_col": 1,
        "c_col": 1,
    }
    types = {name: "constexpr" if name in constants else "i32" for name in kernel.arg_names}
    types |= dict.fromkeys(("a", "b", "c"), POINTERS[dtype]) | {"tiles": "*i32"}
    place = kernel.arg_names.index
    aligned = {(place(name),): [["tt.divisibility", 16]] for name in kernel.arg_names if name not in constants}
    source = ASTSource(kernel, types, {(place(name),): value for name, value in constants.items()}, aligned)
    options = {"num_warps": tile.warps, "num_stages": tile.stages}
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)


@pytest.mark.parametrize("side", ["out", "left"])
@pytest.mark.parametrize("dtype", TILES)
def test_a_tile_fits_the_registers_and_uses_the_tensor_units(dtype, side, tmp_path):
    made = compiled(dtype, side, upper=False)
    tool, path = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump", tmp_path / "kernel.cubin"
    path.write_bytes(made.asm["cubin"])
    report = subprocess.run([tool, "-res-usage", path], capture_output=True, text=True, check=True).stdout
    registers, stack = (int(re.search(rf"{name}:(\d+)", report).group(1)) for name in ("REG", "STACK"))
    assert registers <= 255
    assert stack <= FEW_SPILLS
    if dtype in ("bfloat16", "float16", "tf32"):
        assert "wgmma" in made.asm["ptx"]
    if dtype == "float32":
        assert "mma" not in made.asm["ptx"]  # strict: scalar units, or it would round to tf32
