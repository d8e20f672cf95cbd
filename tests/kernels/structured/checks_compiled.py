"""Run in a process of its own by test_triton_kernels.py: the Triton kernels compiled for sm_90, without a GPU."""

import re
from typing import Any

import pytest

from lcma.kernels.block_low_rank import Blast, LowRank, Monarch
from lcma.kernels.cuda.float16_pairs import GROUP, MOST_SHIFT, TOP
from lcma.kernels.cuda.float16_pairs_kernel import pairs_gemm
from lcma.kernels.structured.block_low_rank import BlockLowRank
from lcma.kernels.structured.decode import DECODE_TILE, MOST_DOT_PROGRAMS, REGISTERS, launch_of
from lcma.kernels.structured.decode_kernel import multiply_few_columns
from lcma.kernels.structured.mixing_kernel import mix_blocks
from lcma.kernels.structured.pattern import Pattern
from lcma.kernels.structured.scalar import gather_tile, pair_tile, words_of
from lcma.kernels.structured.scalar_kernel import gather_factor, multiply_pair
from lcma.kernels.structured.split import SMALL, SPLIT_TILE, UNSCALE_TILE
from lcma.kernels.structured.split_kernel import split_gathered, unscale_scattered
from lcma.kernels.structured.tiled_kernel import multiply_factor
from lcma.kernels.structured.tiles import INPUT_PRECISIONS, TILES, tile_choices, tile_of
from lcma.kernels.structured.transposition import TILES as TRANSPOSED_TILES
from lcma.kernels.structured.transposition_kernel import transpose_words

POINTERS = {
    "bfloat16": "*bf16",
    "float16": "*fp16",
    "tf32": "*fp32",
    "fp32-accurate": "*fp32",
    "float32": "*fp32",
    "float64": "*fp64",
}
FEW_SPILLS = 64
"""Bytes of a thread's stack that may be used."""


def sides(first, *names):
    """Batch-first or batch-last operands: the step that is 1."""
    return {f"{name}_{'feature' if first else 'batch'}": 1 for name in names}


CASES = [
    pytest.param(dtype, d, choice, first, id=f"{dtype}-d{d}-tile{choice}-{'first' if first else 'last'}")
    for dtype in TILES
    for choice in range(tile_choices(dtype))
    for d in ((1, 2, 6, 16) if choice == 0 else (6,))
    for first in ((True, False) if d == 6 and choice == 0 else (True,))
] + [pytest.param("float16", 6, choice, False, id=f"float16-d6-tile{choice}-last") for choice in (3, 4, 5)]
"""Every tile, and the first one with every d and order."""


@pytest.mark.parametrize(("dtype", "d", "choice", "first"), CASES)
def test_a_tile_fits_the_registers_and_the_shared_memory(fitted, dtype, d, choice, first):
    tile = tile_of(dtype, Pattern(1, 128, 128, d), choice)
    constants = {"PRECISION": INPUT_PRECISIONS.get(dtype, "ieee"), "DOUBLE": dtype == "float64", "D": d}
    constants |= {"N": tile.n, "P": tile.p, "Q": tile.q, "J": tile.j, **sides(first, "x", "y")}
    types = dict.fromkeys(("x", "weights", "y"), POINTERS[dtype])
    ptx = fitted(multiply_factor, types, constants, tile.warps, tile.stages, spills=FEW_SPILLS, aligned="all").asm[
        "ptx"
    ]
    if dtype in ("bfloat16", "float16", *INPUT_PRECISIONS):
        assert "mma" in ptx
    if dtype == "float32":
        assert "mma" not in ptx  # strict: scalar units, or it would round to tf32


ORDERS = [(dtype, True) for dtype in ("float16", "float32", "float64", "complex64", "complex128")]
ORDERS += [("float16", False), ("complex128", False)]
"""Every size of a number batch-first; the smallest and the largest batch-last, too."""


FACTORS = [
    *((one,) for one in (Pattern(1, 2, 2, 2048), Pattern(256, 16, 16, 1), Pattern(1, 16, 16, 256))),
    (Pattern(1, 16, 16, 256), Pattern(16, 16, 16, 16)),
    (Pattern(256, 16, 16, 16), Pattern(4096, 16, 16, 1)),
    (Pattern(1, 2, 2, 2048), Pattern(2, 2, 2, 1024)),
]
"""Single factors, which are gathered, and pairs that one kernel multiplies."""


@pytest.mark.parametrize(("dtype", "first"), ORDERS)
@pytest.mark.parametrize("patterns", FACTORS, ids=lambda some: "".join(map(str, some)))
def test_the_kernels_of_small_blocks_fit(fitted, dtype, patterns, first):
    parts, single, last = 2 if "complex" in dtype else 1, len(patterns) == 1, patterns[-1]
    tile = gather_tile(last, first, words_of(dtype)) if single else pair_tile(patterns, first, words_of(dtype))
    double = dtype in ("float64", "complex128")
    constants = {"D": last.d, "DOUBLE": double, "PARTS": parts, "N": tile.n, "P": tile.p, "J": tile.j}
    constants |= {} if single else {"Q": tile.q}
    constants |= sides(first, "x", "y") if parts == 1 else {}
    pointers = "x", *(("weights",) if single else ("first", "second")), "y"
    types = dict.fromkeys(pointers, "*fp64" if double else POINTERS.get(dtype, "*fp32"))
    kernel, warps = (gather_factor, 4) if single else (multiply_pair, 8)
    fitted(kernel, types, constants, warps, aligned="all")


def test_the_smaller_product_of_halves_fits(fitted):
    constants = {"GROUP": GROUP, "SCALED": False, "M": SMALL.m, "N": SMALL.n, "K": SMALL.k}
    types = {"row_shifts": "*fp32", "col_shifts": "*fp32", "c": "*fp32"}
    types |= {"a": f"tensordesc<fp16[{SMALL.m}, {SMALL.k}]>", "b": f"tensordesc<fp16[{SMALL.k}, {SMALL.n}]>"}
    fitted(pairs_gemm, types, constants, SMALL.warps, SMALL.stages)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("kernel", [split_gathered, unscale_scattered])
def test_the_kernels_around_halves_spill_nothing_and_move_whole_vectors(fitted, kernel, first):
    before = kernel is split_gathered
    features, columns, warps = SPLIT_TILE if before else UNSCALE_TILE
    constants = {"D": 6, "F": features, "N": columns, **sides(first, "x" if before else "y")}
    if before:
        constants |= {"TOP": TOP, "MOST": MOST_SHIFT, "parts": 1}
    pointers = {"x": "*fp32", "y": "*fp32", "product": "*fp32", "high": "*fp16", "low": "*fp16"}
    pointers |= {"largest": "*i32", "shifts": "*i32", "row_shifts": "*i32"}
    types = {name: kind for name, kind in pointers.items() if name in kernel.arg_names}
    ptx = fitted(kernel, types, constants, warps, 1, registers=128, aligned="all").asm["ptx"]
    for access in ("ld", "st"):
        assert re.search(rf"{access}\.global\.v[248]", ptx), access


@pytest.mark.parametrize("order", ["natural", "gathers", "scatters"])
@pytest.mark.parametrize("size", TRANSPOSED_TILES)
def test_the_transposition_spills_nothing_and_moves_whole_vectors(fitted, size, order):
    height, width, warps = TRANSPOSED_TILES[size]
    words = -(-size // 8)
    constants = {"R": height, "C": width, "W": words, "D": 1 if order == "natural" else 6}
    constants |= {"GATHERS": order == "gathers", "SCATTERS": order == "scatters"}
    types = dict.fromkeys(("source", "target"), f"*i{8 * size // words}")
    made = fitted(transpose_words, types, constants, warps, 1, registers=128, aligned="all")
    if size < 16:  # the exchange that makes both sides contiguous; 16 bytes are a thread's whole access
        assert made.metadata.shared >= height * width * size
    for access in ("ld", "st"):
        assert re.search(rf"{access}\.global\.v[248]", made.asm["ptx"]), access


KERNELS = {
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
    _, fixed, options = launch_of(structure, n, True, 132, DECODE_TILE)
    numbers = {name: sizes for name, sizes in fixed.items() if isinstance(sizes, tuple)}
    numbers |= {"x_strides": (1, 2), "y_strides": (2, 1, 2)}
    ones = {(name, i): 1 for name, sizes in numbers.items() for i, size in enumerate(sizes) if size == 1}
    types = dict.fromkeys(("v", "scales", "u", "x", "z", "y"), "*bf16") | {"counter": "*i32"}
    types |= {name: ("i32",) * len(sizes) for name, sizes in numbers.items()}
    constants = {name: value for name, value in fixed.items() if name not in numbers}
    constants |= {**ones, "n": n, "FIRST": True, "LAST": True}
    return multiply_few_columns, types, constants, (options["num_warps"], 3)


DECODED = [LowRank(11008, 4096, 1488), Monarch(11008, 4096, 16, 16, 96), Blast(11008, 4096, 16, 16, 1488)]
KERNELS |= {f"decode-{one.kind}-n{n}": decode_case(one, n) for one in DECODED for n in (1, 4, 16)}


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_fits_the_registers_and_the_shared_memory(fitted, name):
    kernel, types, constants, (warps, stages) = KERNELS[name]
    most = 255
    if name.startswith("decode"):  # a program that is not resident would be waited for
        resident = MOST_DOT_PROGRAMS if name.endswith("n16") else DECODE_TILE.programs
        most = REGISTERS // (32 * warps * resident)
    made = fitted(kernel, types, constants, warps, stages, spills=FEW_SPILLS, registers=most, aligned="all")
    if name.startswith("mixing"):
        assert "mma.sync" in made.asm["ptx"] or "wgmma" in made.asm["ptx"]
    if name.startswith("decode"):
        assert made.asm["ptx"].count("atom.global.gpu.acq_rel") == 1
        assert re.search(r"ld\.global\.L1::evict_first\S*\.v4|cp\.async\.cg\.\S+ .*0x10", made.asm["ptx"])
