"""Run in a process of its own (test_int8.py does): the kernels of int8 compiled for sm_90 and older, without a GPU."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from lcma.kernels.codegen.triton_modules import combine_kernel
from lcma.kernels.codegen.triton_text import BY_COLUMNS, BY_ROWS, NUMBERS
from lcma.kernels.codegen.triton_tiles import tile_of
from lcma.kernels.cuda.int8 import GROUP, SMALL_TILE, TILE
from lcma.kernels.cuda.int8_kernel import multiply_int8
from lcma.kernels.cuda.int8_operands import COPY

SHARED = {80: 166912, 89: 101376, 90: 232448}
"""Bytes of shared memory that a block may have, by capability."""


def compiled(kernel, constants, pointers, options, capability=90, aligned=()):
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


@pytest.mark.parametrize(("tile", "capability"), [(TILE, 90), (SMALL_TILE, 90), (SMALL_TILE, 89), (SMALL_TILE, 80)])
def test_the_product_fits(tile, capability, tmp_path):
    constants = {"GROUP": GROUP, "M": tile.m, "N": tile.n, "K": tile.k, "c_col": 1}
    pointers = {"a": "*i8", "b": "*i8", "c": "*i32"}
    aligned = ("k", "a_slab", "a_stride", "b_slab", "b_stride", "c_slab", "c_row")
    options = {"num_warps": tile.warps, "num_stages": tile.stages}
    made = compiled(multiply_int8, constants, pointers, options, capability, aligned)
    registers, stack = used(made, tmp_path)
    assert registers <= 255
    assert stack == 0
    assert made.metadata.shared <= SHARED[capability]
    assert re.search(r"(?:wgmma\.mma_async|mma\.sync)\S*\.s32\.s8\.s8", made.asm["ptx"])


@pytest.mark.parametrize("turned", [False, True])
def test_copies_are_integers_without_spills(turned, tmp_path):
    """Of A, and of a B stored by rows to columns."""
    tile = tile_of(COPY.map, 1, turned)
    kernel = combine_kernel(COPY.work(False, False, tile.ahead))
    order = {"MATRIX": BY_ROWS, "SLABS": BY_COLUMNS if turned else BY_ROWS}
    constants = {"ROWS": tile.rows, "COLS": tile.cols, "VECTOR": 16, **order}
    types = {"matrix": "*i8", "stack": "*i8", **dict.fromkeys(NUMBERS, "i64")}
    made = compiled(kernel, constants, types, {"num_warps": tile.warps})
    registers, stack = used(made, tmp_path)
    assert (registers <= 255, stack) == (True, 0)
    assert ".f32" not in made.asm["ptx"]
