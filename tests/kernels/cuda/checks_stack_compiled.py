"""Run in a process of its own (test_stack.py does): the kernel of a stack compiled for sm_90, without a GPU."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from lcma.kernels.cuda.stack import GROUP, TILE
from lcma.kernels.cuda.stack_kernel import stack_gemm
from lcma.kernels.cuda.tiles import SIDES

SHARED = 232448
"""Bytes of shared memory that a block of an H200 may have."""


def compiled(dtype, side, of_a, of_b):
    constants = {
        "SIDE": SIDES.index(side),
        "UPPER": False,
        "UNIT": False,
        "A_T": of_a,
        "B_T": of_b,
        "GROUP": GROUP,
        "FLAT": side in ("", "out"),
        "M": TILE.m,
        "N": TILE.n,
        "K": TILE.k,
    }
    blocks = {
        "a": (TILE.k, TILE.m) if of_a else (TILE.m, TILE.k),
        "b": (TILE.n, TILE.k) if of_b else (TILE.k, TILE.n),
        "c": (TILE.m, TILE.n),
    }
    types = {name: "constexpr" if name in constants else "i32" for name in stack_gemm.arg_names}
    types |= {name: f"tensordesc<{dtype}[{block[0]}, {block[1]}]>" for name, block in blocks.items()}
    types["tiles"] = "*i32"
    place = stack_gemm.arg_names.index
    source = ASTSource(stack_gemm, types, {(place(name),): value for name, value in constants.items()})
    options = {"num_warps": TILE.warps, "num_stages": TILE.stages}
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)


@pytest.mark.parametrize(
    ("dtype", "side", "of_a", "of_b"),
    [
        ("bf16", "", False, False),
        ("fp16", "out", False, True),
        ("bf16", "left", False, False),
        ("bf16", "left", True, False),
    ],
)
def test_a_tile_fits_the_registers_and_the_shared_memory(dtype, side, of_a, of_b, tmp_path):
    made = compiled(dtype, side, of_a, of_b)
    tool, path = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump", tmp_path / "kernel.cubin"
    path.write_bytes(made.asm["cubin"])
    report = subprocess.run([tool, "-res-usage", path], capture_output=True, text=True, check=True).stdout
    registers, stack = (int(re.search(rf"{name}:(\d+)", report).group(1)) for name in ("REG", "STACK"))
    assert registers <= 255
    assert stack <= 64
    assert made.metadata.shared <= SHARED
    assert "wgmma" in made.asm["ptx"]
    assert "cp.async.bulk.tensor" in made.asm["ptx"]
