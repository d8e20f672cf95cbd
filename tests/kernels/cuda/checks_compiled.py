"""Run in a process of its own (test_kernels.py does): kernels compiled for sm_90, without a GPU.

The compiler's own report must show that values stay in registers and that accesses are as wide as
they can be: what makes a combination as fast as a copy.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import lcma
from lcma.kernels.codegen.triton_modules import combine_kernel
from lcma.kernels.codegen.triton_text import BY_COLUMNS, BY_ROWS, NUMBERS
from lcma.kernels.codegen.triton_tiles import tile_of
from lcma.kernels.cuda.level import cuda_level
from lcma.kernels.dense.arrangements import arrangements, levels_of

POINTERS = {"bfloat16": "*bf16", "float32": "*fp32", "float64": "*fp64"}
SIZES = {"bfloat16": 2, "float32": 4, "float64": 8}


def compiled(levels, side, dtype, transposed=False, aligned=True):
    """Registers, bytes of spills, and the PTX of a kernel as it is launched on matrices of one alignment."""
    level = cuda_level(arrangements(levels_of([lcma.resolve(name)[0] for name in levels], 1))[0][1])
    combination = {"A": level.left, "B": level.right, "C": level.merge}[side]
    tile = tile_of(combination.map, SIZES[dtype], transposed)
    kernel = combine_kernel(combination.work(False, dtype == "float64", tile.ahead))
    vector = 16 // SIZES[dtype] if aligned else 1
    order = {"MATRIX": BY_ROWS, "SLABS": BY_COLUMNS if transposed else BY_ROWS}
    constants = {"ROWS": tile.rows, "COLS": tile.cols, "VECTOR": vector, **order}
    types = dict.fromkeys(NUMBERS, "i64") | {"matrix": POINTERS[dtype], "stack": POINTERS[dtype]}
    types = {name: types.get(name, "constexpr") for name in kernel.arg_names}
    place = kernel.arg_names.index
    known = {(place(name),): [["tt.divisibility", 16]] for name in ("matrix", "stack")}
    source = ASTSource(kernel, types, {(place(name),): value for name, value in constants.items()}, known)
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": tile.warps})
    return *_resources(made.asm["cubin"]), made.asm["ptx"]


def _resources(cubin):
    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    path = Path(lcma.home.cache_folder()) / "kernel.cubin"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(cubin)
    report = subprocess.run([tool, "-res-usage", path], capture_output=True, text=True, check=True).stdout
    registers, stack = (int(re.search(rf"{name}:(\d+)", report).group(1)) for name in ("REG", "STACK"))
    return registers, stack


@pytest.mark.parametrize("dtype", list(POINTERS))
@pytest.mark.parametrize("side", ["A", "B", "C"])
def test_two_levels_stay_in_registers(side, dtype):
    registers, spilled, ptx = compiled(("strassen", "strassen"), side, dtype)
    assert registers <= 168  # as with 160, three programs of four warps run on a multiprocessor at once
    assert spilled == 0
    # 4 elements a thread in one access; 16-byte ones where an element has 4 bytes or more.
    width = {"bfloat16": "v2.b32", "float32": "v4.b32", "float64": "v2.b64"}[dtype]
    sources, results = (16, 49) if side != "C" else (49, 16)
    assert len(re.findall(rf"ld\.global\.{width}", ptx)) >= sources
    assert len(re.findall(rf"st\.global\.{width}", ptx)) >= results


def test_every_block_is_read_once_and_every_result_written_once():
    _, _, ptx = compiled(("strassen",), "A", "float32")
    assert (len(re.findall(r"ld\.global", ptx)), len(re.findall(r"st\.global", ptx))) == (4, 7)
    assert "atom" not in ptx
    assert "red." not in ptx


@pytest.mark.parametrize("side", ["A", "C"])
def test_narrow_accesses_stay_in_registers(side):
    registers, spilled, _ = compiled(("laderman",), side, "bfloat16", aligned=False)
    assert registers <= 200
    assert spilled == 0


def test_a_transposed_stack_goes_through_shared_memory():
    registers, spilled, ptx = compiled(("strassen", "strassen"), "B", "float32", transposed=True)
    assert registers <= 160
    assert spilled == 0
    assert "ld.shared" in ptx


@pytest.mark.parametrize("dtype", list(POINTERS))
@pytest.mark.parametrize("side", ["A", "B", "C"])
def test_three_levels_are_a_loop_and_stay_in_registers(side, dtype):
    """The code is that of two levels, so that it compiles in a second; straight-line code takes ten times as long."""
    registers, spilled, ptx = compiled(("strassen",) * 3, side, dtype)
    assert registers <= 255
    assert spilled == 0
    loads, stores = (len(re.findall(rf"{kind}\.global", ptx)) for kind in ("ld", "st"))
    assert (loads, stores) == ((49, 64) if side == "C" else (64, 49))


@pytest.mark.parametrize("side", ["A", "C"])
def test_loads_are_under_way_before_the_first_store(side):
    """No load of a split waits behind a store; a merge has half of its loads on their way before it stores."""
    _, _, ptx = compiled(("strassen", "strassen"), side, "bfloat16")
    order = re.findall(r"(ld|st)\.global", ptx)
    assert order.index("st") >= (16 if side == "A" else 25 + 13)
