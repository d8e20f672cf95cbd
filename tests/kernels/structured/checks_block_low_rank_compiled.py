"""Run in a process of its own by test_triton_kernels.py: the Triton kernels compiled for sm_90, without a GPU."""

import re
from typing import Any

import pytest

from lcma.kernels.block_low_rank import Blast, LowRank, Monarch
from lcma.kernels.structured.block_low_rank import BlockLowRank
from lcma.kernels.structured.decode import DECODE_TILE, MOST_DOT_PROGRAMS, REGISTERS, launch_of
from lcma.kernels.structured.decode_kernel import multiply_few_columns
from lcma.kernels.structured.handover import HANDOVER_TILE
from lcma.kernels.structured.handover_kernel import mix_blocks, multiply_and_place

FEW_SPILLS = 64
"""Bytes of a thread's stack that may be used."""

N, C, P = HANDOVER_TILE
CASES = {
    f"handover-r{rank}": (
        multiply_and_place,
        {"x": f"tensordesc<bf16[{N}, 1, {P}]>", "v": f"tensordesc<bf16[1, {C}, {P}]>", "z": "*bf16"},
        {"B1": 16, "RANK": rank, "N": N, "C": C, "P": P},
        (8, 3),
    )
    for rank in (64, 96)
}
CASES |= {
    f"mixing-b{side}": (
        mix_blocks,
        dict.fromkeys(("inner", "scales", "mixed"), "*bf16"),
        {"B1": side, "B2": side, "K": max(16, side), "M": max(16, side), "N": 256, "R": 4},
        (4, 3),
    )
    for side in (4, 16, 64)
}


def decode_case(structure: BlockLowRank, n: int) -> tuple[Any, ...]:
    """The kernel of few columns as one launch on an H200 of bfloat16 operands."""
    launch = launch_of(structure, n, True, 132, DECODE_TILE)
    numbers = launch.numbers | {"x_strides": (1, 2), "y_strides": (2, 1, 2)}
    ones = {(name, i): 1 for name, sizes in numbers.items() for i, size in enumerate(sizes) if size == 1}
    types = dict.fromkeys(("v", "scales", "u", "x", "z", "y"), "*bf16") | {"counter": "*i32"}
    types |= {name: ("i32",) * len(sizes) for name, sizes in numbers.items()}
    constants = {**launch.constants, **ones, "n": n, "FIRST": True, "LAST": True}
    return multiply_few_columns, types, constants, (launch.options["num_warps"], 3)


DECODED = [LowRank(11008, 4096, 1488), Monarch(11008, 4096, 16, 16, 96), Blast(11008, 4096, 16, 16, 1488)]
CASES |= {f"decode-{one.kind}-n{n}": decode_case(one, n) for one in DECODED for n in (1, 4, 16)}


@pytest.mark.parametrize("name", CASES)
def test_a_kernel_fits_the_registers_and_the_shared_memory(fitted, name):
    kernel, types, constants, (warps, stages) = CASES[name]
    most = 255
    if name.startswith("decode"):  # a program that is not resident would be waited for
        resident = MOST_DOT_PROGRAMS if name.endswith("n16") else DECODE_TILE.programs
        most = REGISTERS // (32 * warps * resident)
    made = fitted(kernel, types, constants, warps, stages, spills=FEW_SPILLS, registers=most, aligned="all")
    if name.startswith("handover"):
        assert "wgmma" in made.asm["ptx"]
    if name.startswith("mixing"):
        assert "mma.sync" in made.asm["ptx"] or "wgmma" in made.asm["ptx"]
    if name.startswith("decode"):
        assert made.asm["ptx"].count("atom.global.gpu.acq_rel") == 1
        assert re.search(r"ld\.global\.L1::evict_first\S*\.v4|cp\.async\.cg\.\S+ .*0x10", made.asm["ptx"])
