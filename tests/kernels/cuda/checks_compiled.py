"""Run in a process of its own by test_triton_kernels.py: kernels compiled for sm_90, without a GPU.

The compiler's own report must show that values stay in registers and that accesses are as wide as
they can be: what makes a combination as fast as a copy.
"""

import re

import pytest

from lcma.kernels.codegen.triton_text import BY_COLUMNS, BY_ROWS, NUMBERS, combine_kernel
from lcma.kernels.codegen.triton_tiles import tile_of
from lcma.kernels.cuda.level import cuda_level

from ..gpu import program

POINTERS = {"bfloat16": "*bf16", "float32": "*fp32", "float64": "*fp64"}
SIZES = {"bfloat16": 2, "float32": 4, "float64": 8}


@pytest.fixture
def compiled(fitted):
    """The PTX of a kernel, which spills nothing, as it is launched on matrices of one alignment."""

    def of(levels, side, dtype, registers=255, transposed=False, aligned=True):
        level = cuda_level(program(*levels))
        combination = {"A": level.left, "B": level.right, "C": level.merge}[side]
        tile = tile_of(combination.map, SIZES[dtype], transposed)
        kernel = combine_kernel(combination.work(False, dtype == "float64", tile.ahead))
        vector = 16 // SIZES[dtype] if aligned else 1
        order = {"MATRIX": BY_ROWS, "SLABS": BY_COLUMNS if transposed else BY_ROWS}
        constants = {"ROWS": tile.rows, "COLS": tile.cols, "VECTOR": vector, **order}
        types = dict.fromkeys(NUMBERS, "i64") | dict.fromkeys(("matrix", "stack"), POINTERS[dtype])
        given = kernel, types, constants, tile.warps
        return fitted(*given, registers=registers, aligned=("matrix", "stack")).asm["ptx"]

    return of


@pytest.mark.parametrize("dtype", list(POINTERS))
@pytest.mark.parametrize("side", ["A", "B", "C"])
def test_two_levels_stay_in_registers(compiled, side, dtype):
    # With 168 registers, as with 160, three programs of four warps run on a multiprocessor at once.
    ptx = compiled(("strassen", "strassen"), side, dtype, 168)
    # 4 elements a thread in one access; 16-byte ones where an element has 4 bytes or more.
    width = {"bfloat16": "v2.b32", "float32": "v4.b32", "float64": "v2.b64"}[dtype]
    sources, results = (16, 49) if side != "C" else (49, 16)
    assert len(re.findall(rf"ld\.global\.{width}", ptx)) >= sources
    assert len(re.findall(rf"st\.global\.{width}", ptx)) >= results


def test_every_block_is_read_once_and_every_result_written_once(compiled):
    ptx = compiled(("strassen",), "A", "float32")
    assert (len(re.findall(r"ld\.global", ptx)), len(re.findall(r"st\.global", ptx))) == (4, 7)
    assert "atom" not in ptx
    assert "red." not in ptx


@pytest.mark.parametrize("side", ["A", "C"])
def test_narrow_accesses_stay_in_registers(compiled, side):
    compiled(("laderman",), side, "bfloat16", 200, aligned=False)


def test_a_transposed_stack_goes_through_shared_memory(compiled):
    assert "ld.shared" in compiled(("strassen", "strassen"), "B", "float32", 160, transposed=True)


@pytest.mark.parametrize("dtype", list(POINTERS))
@pytest.mark.parametrize("side", ["A", "B", "C"])
def test_three_levels_are_a_loop_and_stay_in_registers(compiled, side, dtype):
    """The code is that of two levels, so that it compiles in a second; straight-line code takes ten times as long."""
    ptx = compiled(("strassen",) * 3, side, dtype)
    loads, stores = (len(re.findall(rf"{kind}\.global", ptx)) for kind in ("ld", "st"))
    assert (loads, stores) == ((49, 64) if side == "C" else (64, 49))


@pytest.mark.parametrize("side", ["A", "C"])
def test_loads_are_under_way_before_the_first_store(compiled, side):
    """No load of a split waits behind a store; a merge has half of its loads on their way before it stores."""
    order = re.findall(r"(ld|st)\.global", compiled(("strassen", "strassen"), side, "bfloat16"))
    assert order.index("st") >= (16 if side == "A" else 25 + 13)
