"""Run in a process of its own (test_tensors.py does): the kernel of a factor compiled for sm_90, without a GPU."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from lcma.kernels.kronecker.tensors import TILES
from lcma.kernels.kronecker.tiled_kernel import multiply_factor

POINTERS = {"bfloat16": "*bf16", "float16": "*fp16", "tf32": "*fp32", "float32": "*fp32", "float64": "*fp64"}
FEW_SPILLS = 64
"""Bytes of a thread's stack that may be used."""


def compiled(dtype, first):
    """The kernel as it is launched on aligned operands, batch-first or batch-last."""
    tile, kernel = TILES[dtype], multiply_factor
    constants = {"PRECISION": "tf32" if dtype == "tf32" else "ieee", "DOUBLE": dtype == "float64"}
    constants |= {"N": tile.n, "P": tile.p, "Q": tile.q, "J": tile.j}
    constants |= {"x_feature": 1, "y_feature": 1} if first else {"x_batch": 1, "y_batch": 1}
    types = {name: "constexpr" if name in constants else "i32" for name in kernel.arg_names}
    types |= dict.fromkeys(("x", "weights", "y"), POINTERS[dtype])
    place = kernel.arg_names.index
    aligned = {(place(name),): [["tt.divisibility", 16]] for name in kernel.arg_names if name not in constants}
    source = ASTSource(kernel, types, {(place(name),): value for name, value in constants.items()}, aligned)
    options = {"num_warps": tile.warps, "num_stages": tile.stages}
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("dtype", TILES)
def test_a_tile_fits_the_registers_and_the_shared_memory(dtype, first, tmp_path):
    made = compiled(dtype, first)
    tool, path = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump", tmp_path / "kernel.cubin"
    path.write_bytes(made.asm["cubin"])
    report = subprocess.run([tool, "-res-usage", path], capture_output=True, text=True, check=True).stdout
    registers, stack = (int(re.search(rf"{name}:(\d+)", report).group(1)) for name in ("REG", "STACK"))
    print(dtype, first, registers, stack, made.metadata.shared)
    assert registers <= 255
    assert stack <= FEW_SPILLS
    assert made.metadata.shared <= 232448
    if dtype in ("bfloat16", "float16", "tf32"):
        assert "mma" in made.asm["ptx"]
    if dtype == "float32":
        assert "mma" not in made.asm["ptx"]  # strict: scalar units, or it would round to tf32
