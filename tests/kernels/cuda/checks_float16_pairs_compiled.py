"""Run in a process of its own by test_triton_kernels.py: the kernels of halves compiled for sm_90, without a GPU."""

import pytest

from lcma.kernels.codegen.triton_text import BY_ROWS, NUMBERS, combine_kernel
from lcma.kernels.cuda.float16_pairs import BLOCK, GROUP, LONG, LOST, MOST_SHIFT, ROUNDING, TILE, TOP
from lcma.kernels.cuda.float16_pairs_kernel import (
    largest_bits,
    line_sums,
    pairs_gemm,
    split_pairs,
    verdict,
)
from lcma.kernels.cuda.float16_pairs_level import pairs_level
from lcma.kernels.dense.given import given
from lcma.schemes_db.resolve import resolve

SHIFTS = {"row_shifts": "*i32", "col_shifts": "*i32"}


@pytest.mark.parametrize("scaled", [False, True])
def test_the_product_fits_the_registers_and_the_shared_memory(scaled, fitted):
    constants = {"GROUP": GROUP, "SCALED": scaled, "M": TILE.m, "N": TILE.n, "K": TILE.k}
    blocks = {"a": f"tensordesc<fp16[{TILE.m}, {TILE.k}]>", "b": f"tensordesc<fp16[{TILE.k}, {TILE.n}]>"}
    pointers = blocks | {"row_shifts": "*i32", "col_shifts": "*i32", "c": "*fp32"}
    assert "wgmma" in fitted(pairs_gemm, pointers, constants, TILE.warps, TILE.stages).asm["ptx"]


@pytest.mark.parametrize("shifted", [False, True])
def test_splitting_needs_no_stack(shifted, fitted):
    pointers = {"x": "*fp32", "largest": "*i32", "shifts": "*i32", "high": "*fp16", "low": "*fp16", "across": "*fp32"}
    pointers["along_shifts"] = "*i32"
    pointers["sums"] = "*fp32"
    constants = {"AXIS": 0, "SHIFTED": shifted, "LOW": True, "TOP": TOP, "MOST": MOST_SHIFT}
    constants |= {"M": BLOCK[0], "N": BLOCK[1]}
    fitted(split_pairs, pointers, constants, 4)


@pytest.mark.parametrize("block", [(4, 512), (128, 16)])
def test_sums_along_lines_need_no_stack(block, fitted):
    constants = {"LINES": block[0], "ALONG": block[1]}
    largest = {"x": "*fp32", "along_shifts": "*i32", "largest": "*i32"}
    level = dict.fromkeys(("x", "weights", "block_weights", "plain", "weighted", "by_blocks"), "*fp32")
    level["shifts"] = "*i32"
    sums = level | {"x": "*fp16", "shifts": "*fp16"}
    for kernel, pointers, more in (
        (largest_bits, largest, {"SHIFTED": False}),
        (largest_bits, largest, {"SHIFTED": True}),
        (line_sums, sums, {"SHIFTED": 0, "WEIGHTS": 1}),
        (line_sums, level, {"SHIFTED": 2, "WEIGHTS": 0}),
        (line_sums, level, {"SHIFTED": 1, "WEIGHTS": 2}),
    ):
        fitted(kernel, pointers, constants | more, 4)


def test_the_verdict_needs_no_stack(fitted):
    constants = {"LOST": LOST, "ROUNDING": ROUNDING, "SIZE": LONG}
    pointers = {"found": "*i32"}
    for side in "ab":
        pointers |= {f"sums_{side}": "*fp32", f"weighted_{side}": "*fp32", f"largest_{side}": "*i32"}
    fitted(verdict, pointers, constants, 8)


def test_sums_are_split_without_spills(fitted):
    level = pairs_level(given([resolve("strassen")[0]] * 2)[0].program)
    constants = {"ROWS": 1, "COLS": 1024, "VECTOR": 4, "MATRIX": BY_ROWS, "SLABS": BY_ROWS}
    numbers = dict.fromkeys(NUMBERS, "i64")
    for combination, stored in ((level.left, "*fp16"), (level.merge, "*fp32")):
        kernel = combine_kernel(combination.work(False, False))
        pointers = {"matrix": "*fp32", "stack": stored, **SHIFTS, **numbers}
        fitted(kernel, pointers, constants, 8)
