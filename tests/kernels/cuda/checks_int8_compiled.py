"""Run in a process of its own by test_triton_kernels.py: the kernels of int8 compiled for sm_90 and older."""

import re

import pytest

from lcma.kernels.codegen.triton_text import BY_COLUMNS, BY_ROWS, NUMBERS, combine_kernel
from lcma.kernels.codegen.triton_tiles import tile_of
from lcma.kernels.cuda.int8 import GROUP, SMALL_TILE, TILE
from lcma.kernels.cuda.int8_kernel import multiply_int8
from lcma.kernels.cuda.int8_operands import COPY


@pytest.mark.parametrize(("tile", "capability"), [(TILE, 90), (SMALL_TILE, 90), (SMALL_TILE, 89), (SMALL_TILE, 80)])
def test_the_product_fits(fitted, tile, capability):
    constants = {"GROUP": GROUP, "M": tile.m, "N": tile.n, "K": tile.k, "c_col": 1}
    pointers = {"a": "*i8", "b": "*i8", "c": "*i32"}
    aligned = (*pointers, "k", "a_slab", "a_stride", "b_slab", "b_stride", "c_slab", "c_row")
    launch = tile.warps, tile.stages
    made = fitted(multiply_int8, pointers, constants, *launch, aligned=aligned, capability=capability)
    assert re.search(r"(?:wgmma\.mma_async|mma\.sync)\S*\.s32\.s8\.s8", made.asm["ptx"])


@pytest.mark.parametrize("turned", [False, True])
def test_copies_are_integers_without_spills(fitted, turned):
    """Of A, and of a B stored by rows to columns."""
    tile = tile_of(COPY.map, 1, turned)
    kernel = combine_kernel(COPY.work(False, False, tile.ahead))
    order = {"MATRIX": BY_ROWS, "SLABS": BY_COLUMNS if turned else BY_ROWS}
    constants = {"ROWS": tile.rows, "COLS": tile.cols, "VECTOR": 16, **order}
    types = {"matrix": "*i8", "stack": "*i8", **dict.fromkeys(NUMBERS, "i64")}
    made = fitted(kernel, types, constants, tile.warps, aligned=("matrix", "stack"))
    assert ".f32" not in made.asm["ptx"]
