"""Run in a process of its own (test_scaled_half.py does): the kernels of scaled float16, compiled for sm_90."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from lcma.kernels.cuda import scaled_half
from lcma.kernels.cuda.scaled_half_kernel import check, fold_sums, guarded_gemm, half_gemm
from lcma.kernels.cuda.split import LOST, MOST_SHIFT, TOP
from lcma.kernels.cuda.split_kernel import split_halves

SHARED = 232448
"""Bytes of shared memory that a block of an H200 may have."""


def compiled(kernel, constants, pointers, options, blocks=(), aligned=False):
    types = {name: "constexpr" if name in constants else "i32" for name in kernel.arg_names}
    types |= pointers | {name: f"tensordesc<fp16[{rows}, {cols}]>" for name, (rows, cols) in dict(blocks).items()}
    place = kernel.arg_names.index
    attributes = {(place(name),): [["tt.divisibility", 16]] for name in types if aligned and name not in constants}
    source = ASTSource(kernel, types, {(place(name),): value for name, value in constants.items()}, attributes)
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)


def used(made, folder):
    """Registers and bytes of stack of a thread."""
    tool, path = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump", folder / "kernel.cubin"
    path.write_bytes(made.asm["cubin"])
    report = subprocess.run([tool, "-res-usage", path], capture_output=True, text=True, check=True).stdout
    return [int(re.search(rf"{name}:(\d+)", report).group(1)) for name in ("REG", "STACK")]


def tiled(tile):
    options = {"num_warps": tile.warps, "num_stages": tile.stages}
    return {"GROUP": scaled_half.GROUP, "M": tile.m, "N": tile.n, "K": tile.k}, options


@pytest.mark.parametrize("described", [False, True])
@pytest.mark.parametrize("col_step", ["i32", 1])
def test_the_product_fits_the_registers_and_the_shared_memory(described, col_step, tmp_path):
    tile = scaled_half.TILE
    constants, options = tiled(tile)
    constants["DESCRIBED"] = described
    pointers = {"row_shifts": "*i32", "col_shifts": "*i32"}
    pointers["c"] = f"tensordesc<fp32[{tile.m}, {tile.n // 4}]>" if described else "*fp32"
    if col_step == 1:
        constants["c_col"] = 1
    blocks = {"a": (tile.m, tile.k), "b": (tile.k, tile.n)}
    made = compiled(half_gemm, constants, pointers, options, blocks)
    registers, stack = used(made, tmp_path)
    assert registers <= 255
    assert stack == 0
    assert made.metadata.shared <= SHARED
    assert "wgmma" in made.asm["ptx"]


@pytest.mark.parametrize("steps", [("a_col", "b_row", "c_col"), ("a_row", "b_row", "c_row")])
def test_the_product_behind_the_check_needs_no_stack(steps, tmp_path):
    """B stored by columns, and the transposed product: the right factor is read along k."""
    constants, options = tiled(scaled_half.PLAIN_TILE)
    constants |= dict.fromkeys(steps, 1)
    pointers = {"flag": "*i32"} | dict.fromkeys("abc", "*fp32")
    made = compiled(guarded_gemm, constants, pointers, options, aligned=True)
    assert used(made, tmp_path)[1] == 0
    assert made.metadata.shared <= SHARED
    assert "wgmma" in made.asm["ptx"]


@pytest.mark.parametrize("axis", [0, 1])
def test_scaling_needs_no_stack(axis, tmp_path):
    pointers = {"x": "*fp32", "largest": "*i32", "shifts": "*i32", "high": "*fp16", "low": "*fp16", "across": "*fp32"}
    pointers |= {"along_shifts": "*fp32", "sums": "*fp32"}
    constants = {"AXIS": axis, "SHIFTED": False, "LOW": False, "TOP": TOP, "MOST": MOST_SHIFT}
    constants |= dict(zip("MN", scaled_half.BLOCKS[axis], strict=True))
    assert used(compiled(split_halves, constants, pointers, {"num_warps": scaled_half.WARPS}), tmp_path)[1] == 0


def test_the_check_needs_no_stack(tmp_path):
    partial = dict.fromkeys(("across", "weights", "parts", "sums"), "*fp32")
    folded = dict(zip(("ROWS", "SIZE"), scaled_half.FOLDED, strict=True))
    pointers = dict.fromkeys(("sums_a", "sums_b", "weights_a", "weights_b"), "*fp32")
    pointers |= {"a": "*fp16", "b": "*fp16", "flag": "*i32"}
    constants = {"LOST": LOST, "ROUNDING": scaled_half.ROUNDING}
    constants |= {name: getattr(scaled_half, name) for name in ("LINES", "ALONG", "SIZE")}
    for kernel, types, given in ((fold_sums, partial, folded), (check, pointers, constants)):
        assert used(compiled(kernel, given, types, {"num_warps": 4}), tmp_path)[1] == 0
