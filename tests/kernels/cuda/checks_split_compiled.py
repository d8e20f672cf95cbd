"""Run in a process of its own (test_split.py does): the kernels of halves compiled for sm_90, without a GPU."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from lcma.kernels.codegen.triton_modules import combine_kernel
from lcma.kernels.codegen.triton_text import BY_ROWS, NUMBERS
from lcma.kernels.cuda.split import BLOCK, GROUP, LONG, LOST, MOST_SHIFT, ROUNDING, TILE, TOP
from lcma.kernels.cuda.split_kernel import (
    block_sums,
    largest_bits,
    level_sums,
    split_gemm,
    split_halves,
    verdict,
    weighted_sums,
)
from lcma.kernels.cuda.split_level import split_level
from lcma.kernels.dense.given import given
from lcma.schemes_db.resolve import resolve

SHIFTS = {"row_shifts": "*i32", "col_shifts": "*i32"}

SHARED = 232448
"""Bytes of shared memory that a block of an H200 may have."""


def compiled(kernel, constants, pointers, blocks, options):
    types = {name: "constexpr" if name in constants else "i32" for name in kernel.arg_names}
    types |= pointers | {name: f"tensordesc<fp16[{rows}, {cols}]>" for name, (rows, cols) in blocks.items()}
    place = kernel.arg_names.index
    source = ASTSource(kernel, types, {(place(name),): value for name, value in constants.items()})
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)


def used(made, folder):
    """Registers and bytes of stack of a thread."""
    tool, path = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump", folder / "kernel.cubin"
    path.write_bytes(made.asm["cubin"])
    report = subprocess.run([tool, "-res-usage", path], capture_output=True, text=True, check=True).stdout
    return [int(re.search(rf"{name}:(\d+)", report).group(1)) for name in ("REG", "STACK")]


@pytest.mark.parametrize("scaled", [False, True])
def test_the_product_fits_the_registers_and_the_shared_memory(scaled, tmp_path):
    constants = {"GROUP": GROUP, "SCALED": scaled, "M": TILE.m, "N": TILE.n, "K": TILE.k}
    blocks = {"a": (TILE.m, TILE.k), "b": (TILE.k, TILE.n)}
    pointers = {"row_shifts": "*i32", "col_shifts": "*i32", "c": "*fp32"}
    options = {"num_warps": TILE.warps, "num_stages": TILE.stages}
    made = compiled(split_gemm, constants, pointers, blocks, options)
    registers, stack = used(made, tmp_path)
    assert registers <= 255
    assert stack == 0
    assert made.metadata.shared <= SHARED
    assert "wgmma" in made.asm["ptx"]


@pytest.mark.parametrize("shifted", [False, True])
def test_splitting_needs_no_stack(shifted, tmp_path):
    pointers = {"x": "*fp32", "largest": "*i32", "shifts": "*i32", "high": "*fp16", "low": "*fp16", "across": "*fp32"}
    pointers["along_shifts"] = "*i32"
    pointers["sums"] = "*fp32"
    constants = {"AXIS": 0, "SHIFTED": shifted, "LOW": True, "TOP": TOP, "MOST": MOST_SHIFT}
    constants |= {"M": BLOCK[0], "N": BLOCK[1]}
    made = compiled(split_halves, constants, pointers, {}, {"num_warps": 4})
    assert used(made, tmp_path)[1] == 0


@pytest.mark.parametrize("block", [(4, 512), (128, 16)])
def test_sums_along_lines_need_no_stack(block, tmp_path):
    constants = {"LINES": block[0], "ALONG": block[1]}
    largest = {"x": "*fp32", "along_shifts": "*i32", "largest": "*i32"}
    sums = {"x": "*fp16", "weights": "*fp32", "plain": "*fp32", "weighted": "*fp32"}
    blocks = {"x": "*fp32", "shifts": "*i32", "sums": "*fp32"}
    level = dict.fromkeys(("x", "weights", "block_weights", "plain", "weighted", "by_blocks"), "*fp32")
    level["shifts"] = "*i32"
    for kernel, pointers, more in (
        (largest_bits, largest, {"SHIFTED": False}),
        (largest_bits, largest, {"SHIFTED": True}),
        (weighted_sums, sums, {}),
        (block_sums, blocks, {}),
        (level_sums, level, {}),
    ):
        made = compiled(kernel, constants | more, pointers, {}, {"num_warps": 4})
        assert used(made, tmp_path)[1] == 0


def test_the_verdict_needs_no_stack(tmp_path):
    constants = {"LOST": LOST, "ROUNDING": ROUNDING, "SIZE": LONG}
    pointers = {"found": "*i32"}
    for side in "ab":
        pointers |= {f"sums_{side}": "*fp32", f"weighted_{side}": "*fp32", f"largest_{side}": "*i32"}
    made = compiled(verdict, constants, pointers, {}, {"num_warps": 8})
    assert used(made, tmp_path)[1] == 0


def test_sums_are_split_without_spills(tmp_path):
    level = split_level(given([resolve("strassen")[0]] * 2)[0].program)
    constants = {"ROWS": 1, "COLS": 1024, "VECTOR": 4, "MATRIX": BY_ROWS, "SLABS": BY_ROWS}
    numbers = dict.fromkeys(NUMBERS, "i64")
    for combination, stored in ((level.left, "*fp16"), (level.merge, "*fp32")):
        kernel = combine_kernel(combination.work(False, False))
        pointers = {"matrix": "*fp32", "stack": stored, **SHIFTS, **numbers}
        made = compiled(kernel, constants, pointers, {}, {"num_warps": 8})
        assert used(made, tmp_path)[1] == 0
