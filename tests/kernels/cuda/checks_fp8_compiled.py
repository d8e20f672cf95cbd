"""Run in a process of its own (test_fp8.py does): the kernels in e4m3 compiled for sm_90, without a GPU."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from lcma.kernels.cuda.fp8 import GROUP, ROWS, TILE
from lcma.kernels.cuda.fp8_kernel import quantise, scaled_gemm
from lcma.kernels.cuda.fp8_naive import BLOCK

SHARED = 232448
"""Bytes of shared memory that a block of an H200 may have."""


def compiled(kernel, constants, pointers, options, capability=90, aligned=()):
    """The kernel for sm_90; strides in `aligned` are multiples of 16, as a launch would find."""
    types = {name: "constexpr" if name in constants else "i32" for name in kernel.arg_names}
    place = kernel.arg_names.index
    known = [name for name, kind in pointers.items() if kind.startswith("*")]
    hints = {(place(name),): [["tt.divisibility", 16]] for name in (*known, *aligned)}
    source = ASTSource(
        kernel, types | pointers, {(place(name),): value for name, value in constants.items()}, attrs=hints
    )
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)


def used(made, folder):
    """Registers and bytes of stack of a thread."""
    tool, path = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump", folder / "kernel.cubin"
    path.write_bytes(made.asm["cubin"])
    report = subprocess.run([tool, "-res-usage", path], capture_output=True, text=True, check=True).stdout
    return [int(re.search(rf"{name}:(\d+)", report).group(1)) for name in ("REG", "STACK")]


@pytest.mark.parametrize("dtype", ["bf16", "fp16", "fp32"])
@pytest.mark.parametrize("blocks", [False, True])
def test_quantising_needs_no_stack(dtype, blocks, tmp_path):
    constants = {"BLOCKS": blocks, "LINES": BLOCK if blocks else ROWS, "ALONG": BLOCK, "along_step": 1}
    pointers = {"x": f"*{dtype}", "bits": "*fp8e4nv", "scales": "*fp32"}
    made = compiled(quantise, constants, pointers, {"num_warps": 8 if blocks else 4}, aligned=("line_step", "pitch"))
    assert used(made, tmp_path)[1] == 0
    assert "cvt.rn.satfinite.e4m3x2.f32" in made.asm["ptx"]
    assert "div.rn.f32" in made.asm["ptx"]


def test_the_product_of_quantised_operands_fits(tmp_path):
    constants = {"GROUP": GROUP, "M": TILE.m, "N": TILE.n, "K": TILE.k, "c_col": 1}
    pointers = {"a_scales": "*fp32", "b_scales": "*fp32", "c": "*bf16"}
    types = {"a": f"tensordesc<fp8e4nv[{TILE.m}, {TILE.k}]>", "b": f"tensordesc<fp8e4nv[{TILE.n}, {TILE.k}]>"}
    options = {"num_warps": TILE.warps, "num_stages": TILE.stages}
    kernel = scaled_gemm
    signature = {name: "constexpr" if name in constants else "i32" for name in kernel.arg_names} | pointers | types
    place = kernel.arg_names.index
    source = ASTSource(kernel, signature, {(place(name),): value for name, value in constants.items()})
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
    registers, stack = used(made, tmp_path)
    assert registers <= 255
    assert stack == 0
    assert made.metadata.shared <= SHARED
    assert re.search(r"wgmma\.mma_async\S*\.f32\.e4m3\.e4m3", made.asm["ptx"])
