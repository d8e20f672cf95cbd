"""Run in a process of its own (test_fused.py does): fused kernels compiled for sm_90, without a GPU."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from lcma.kernels.codegen.fused_text import Fused
from lcma.kernels.codegen.triton_modules import fused_kernel
from lcma.kernels.cuda.flat_program import flat_program
from lcma.kernels.cuda.fused import GROUP, FusedProducts
from lcma.kernels.dense.arrangements import arrangements, levels_of
from lcma.schemes_db.resolve import resolve

SHARED = 232448
"""Bytes of shared memory that a block of an H200 may have."""

SCALARS = 192
"""Bytes of a thread's stack for numbers of the schedule of cut groups; an accumulator that spills takes 256."""


def compiled(products, dtype, placed, split):
    tile = products.tile
    kernel = fused_kernel(Fused(products.order, products.blocks, placed, split))
    constants = {"GROUP": GROUP, "M": tile.m, "N": tile.n, "K": tile.k}
    types = {name: "constexpr" if name in constants else "i32" for name in kernel.arg_names}
    for name, (high, wide) in {"a": (tile.m, tile.k), "b": (tile.k, tile.n), "c": (tile.m, tile.n)}.items():
        types[name] = f"tensordesc<{dtype}[1, {high}, {wide}]>"
    types |= {"saved": "*fp32", "flags": "*i32"}
    source = ASTSource(kernel, types, {(kernel.arg_names.index(name),): value for name, value in constants.items()})
    options = {"num_warps": tile.warps, "num_stages": tile.stages}
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)


@pytest.mark.parametrize(
    ("name", "dtype", "placed", "split"),
    [
        ("strassen", "bf16", True, False),
        ("strassen", "fp16", False, False),
        ("strassen", "bf16", True, True),
        ("winograd", "bf16", True, False),
    ],
)
def test_accumulators_stay_in_registers(name, dtype, placed, split, tmp_path):
    program = arrangements(levels_of([resolve(name)[0]], 1))[0][1]
    made = compiled(FusedProducts(flat_program(program)), dtype, placed, split)
    tool, path = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump", tmp_path / "kernel.cubin"
    path.write_bytes(made.asm["cubin"])
    report = subprocess.run([tool, "-res-usage", path], capture_output=True, text=True, check=True).stdout
    assert int(re.search(r"STACK:(\d+)", report).group(1)) <= (SCALARS if split else 0)
    assert made.metadata.shared <= SHARED
    assert "wgmma" in made.asm["ptx"]
    assert "cp.async.bulk.tensor" in made.asm["ptx"]
