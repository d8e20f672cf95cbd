"""Run in a process of its own (test_tensors.py does): the kernel of a factor compiled for sm_90, without a GPU."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from lcma.kernels.cuda.split import GROUP, MOST_SHIFT, TOP
from lcma.kernels.cuda.split_kernel import split_gemm
from lcma.kernels.structured.outer_kernel import sum_outer
from lcma.kernels.structured.pattern import Pattern
from lcma.kernels.structured.scalar import gather_tile, pair_tile, words_of
from lcma.kernels.structured.scalar_kernel import gather_factor, multiply_pair
from lcma.kernels.structured.split import SMALL, SPLIT_TILE, UNSCALE_TILE
from lcma.kernels.structured.split_kernel import split_gathered, unscale_scattered
from lcma.kernels.structured.tensors import kernel_of
from lcma.kernels.structured.tiles import TILES, tile_choices, tile_of
from lcma.kernels.structured.transposition import TILES as TRANSPOSED_TILES
from lcma.kernels.structured.transposition_kernel import transpose_words

POINTERS = {
    "bfloat16": "*bf16",
    "float16": "*fp16",
    "tf32": "*fp32",
    "tf32x3": "*fp32",
    "float32": "*fp32",
    "float64": "*fp64",
}
FEW_SPILLS = 64
"""Bytes of a thread's stack that may be used."""


def compiled(dtype, first, tile, d):
    """The kernel as it is launched on aligned operands, batch-first or batch-last."""
    kernel = kernel_of(tile)
    constants = {"PRECISION": dtype if dtype in ("tf32", "tf32x3") else "ieee", "DOUBLE": dtype == "float64", "D": d}
    constants |= {"N": tile.n, "P": tile.p, "Q": tile.q, "J": tile.j}
    constants |= {"x_feature": 1, "y_feature": 1} if first else {"x_batch": 1, "y_batch": 1}
    types = {name: "constexpr" if name in constants else "i32" for name in kernel.arg_names}
    types |= dict.fromkeys(("x", "weights", "y"), POINTERS[dtype])
    place = kernel.arg_names.index
    aligned = {(place(name),): [["tt.divisibility", 16]] for name in kernel.arg_names if name not in constants}
    source = ASTSource(kernel, types, {(place(name),): value for name, value in constants.items()}, aligned)
    options = {"num_warps": tile.warps, "num_stages": tile.stages}
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)


def resources(made, folder):
    """Registers of a thread and bytes of its stack."""
    tool, path = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump", folder / "kernel.cubin"
    path.write_bytes(made.asm["cubin"])
    report = subprocess.run([tool, "-res-usage", path], capture_output=True, text=True, check=True).stdout
    return tuple(int(re.search(rf"{name}:(\d+)", report).group(1)) for name in ("REG", "STACK"))


CASES = [
    pytest.param(dtype, d, choice, first, id=f"{dtype}-d{d}-tile{choice}-{'first' if first else 'last'}")
    for dtype in TILES
    for d in (1, 2, 6, 16)
    for choice in range(tile_choices(dtype))
    for first in ((True, False) if choice == 0 else (True,))
] + [pytest.param("float16", 6, choice, False, id=f"float16-d6-tile{choice}-last") for choice in (3, 4, 5)]


@pytest.mark.parametrize(("dtype", "d", "choice", "first"), CASES)
def test_a_tile_fits_the_registers_and_the_shared_memory(dtype, d, choice, first, tmp_path):
    tile = tile_of(dtype, Pattern(1, 128, 128, d), choice)
    made = compiled(dtype, first, tile, d)
    registers, stack = resources(made, tmp_path)
    ptx = made.asm["ptx"]
    vectors = sum(ptx.count(f"ld.global.v{count}") for count in (2, 4))
    print(
        dtype,
        d,
        tile,
        first,
        "reg",
        registers,
        "stack",
        stack,
        "shared",
        made.metadata.shared,
        "v",
        vectors,
        "async",
        ptx.count("cp.async.c"),
        "wgmma",
        ptx.count("wgmma.mma_async"),
        "mma",
        ptx.count("mma.sync"),
    )
    assert registers <= 255
    assert stack <= FEW_SPILLS
    assert made.metadata.shared <= 232448
    if dtype in ("bfloat16", "float16", "tf32", "tf32x3"):
        assert "mma" in ptx
    if dtype == "float32":
        assert "mma" not in ptx  # strict: scalar units, or it would round to tf32


@pytest.mark.parametrize("d", [2, 6, 16])
@pytest.mark.parametrize("dtype", ["float32", "tf32", "float16", "float64"])
def test_the_kernel_of_gradients_fits(dtype, d, tmp_path):
    diagonals, double = 2 if d == 2 else 4, dtype == "float64"
    constants = {"PRECISION": "tf32" if dtype == "tf32" else "ieee", "DOUBLE": double, "D": d, "J": diagonals}
    constants |= {
        "N": 32 if dtype == "float16" else 16,
        "P": 32 if double else 64,
        "Q": 32 if double else 64,
        "grad_feature": 1,
        "x_feature": 1,
    }
    types = {name: "constexpr" if name in constants else "i32" for name in sum_outer.arg_names}
    types |= {"grad": POINTERS[dtype], "x": POINTERS[dtype], "sums": "*fp64" if double else "*fp32"}
    place = sum_outer.arg_names.index
    aligned = {(place(name),): [["tt.divisibility", 16]] for name in sum_outer.arg_names if name not in constants}
    source = ASTSource(sum_outer, types, {(place(name),): value for name, value in constants.items()}, aligned)
    options = {"num_warps": 8, "num_stages": 2}
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
    registers, stack = resources(made, tmp_path)
    print(dtype, d, "reg", registers, "stack", stack, "shared", made.metadata.shared)
    assert registers <= 255
    assert stack <= FEW_SPILLS
    assert made.metadata.shared <= 232448


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("pattern", [Pattern(1, 2, 2, 2048), Pattern(256, 16, 16, 1), Pattern(1, 16, 16, 256)], ids=str)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
def test_the_kernel_that_gathers_fits(dtype, pattern, first, tmp_path):
    parts, tile = 2 if "complex" in dtype else 1, gather_tile(pattern, first, words_of(dtype))
    double = dtype in ("float64", "complex128")
    constants = {"D": pattern.d, "DOUBLE": double, "PARTS": parts, "N": tile.n, "P": tile.p, "J": tile.j}
    if parts == 1:
        constants |= {"x_feature": 1, "y_feature": 1} if first else {"x_batch": 1, "y_batch": 1}
    types = {name: "constexpr" if name in constants else "i32" for name in gather_factor.arg_names}
    pointer = "*fp64" if double else POINTERS.get(dtype, "*fp32")
    types |= dict.fromkeys(("x", "weights", "y"), pointer)
    place = gather_factor.arg_names.index
    aligned = {(place(name),): [["tt.divisibility", 16]] for name in gather_factor.arg_names if name not in constants}
    source = ASTSource(gather_factor, types, {(place(name),): value for name, value in constants.items()}, aligned)
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4, "num_stages": 3})
    registers, stack = resources(made, tmp_path)
    print(dtype, pattern, tile, "reg", registers, "stack", stack, "shared", made.metadata.shared)
    assert registers <= 255
    assert stack == 0
    assert made.metadata.shared <= 232448


PAIRS = [
    (Pattern(1, 16, 16, 256), Pattern(16, 16, 16, 16)),
    (Pattern(256, 16, 16, 16), Pattern(4096, 16, 16, 1)),
    (Pattern(1, 2, 2, 2048), Pattern(2, 2, 2, 1024)),
]


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("pair", PAIRS, ids=str)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_the_kernel_of_pairs_fits(dtype, pair, first, tmp_path):
    parts, tile = 2 if "complex" in dtype else 1, pair_tile(pair, first, words_of(dtype))
    double = dtype in ("float64", "complex128")
    constants = {"D": pair[1].d, "DOUBLE": double, "PARTS": parts}
    constants |= {"N": tile.n, "Q": tile.q, "P": tile.p, "J": tile.j}
    if parts == 1:
        constants |= {"x_feature": 1, "y_feature": 1} if first else {"x_batch": 1, "y_batch": 1}
    types = {name: "constexpr" if name in constants else "i32" for name in multiply_pair.arg_names}
    pointer = "*fp64" if double else POINTERS.get(dtype, "*fp32")
    types |= dict.fromkeys(("x", "first", "second", "y"), pointer)
    place = multiply_pair.arg_names.index
    aligned = {(place(name),): [["tt.divisibility", 16]] for name in multiply_pair.arg_names if name not in constants}
    source = ASTSource(multiply_pair, types, {(place(name),): value for name, value in constants.items()}, aligned)
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 8, "num_stages": 3})
    registers, stack = resources(made, tmp_path)
    print(dtype, pair, tile, "reg", registers, "stack", stack, "shared", made.metadata.shared)
    assert registers <= 255
    assert stack == 0
    assert made.metadata.shared <= 232448


def test_the_smaller_product_of_halves_fits(tmp_path):
    constants = {"GROUP": GROUP, "SCALED": False, "M": SMALL.m, "N": SMALL.n, "K": SMALL.k}
    types = {name: "constexpr" if name in constants else "i32" for name in split_gemm.arg_names}
    types |= {"row_shifts": "*fp32", "col_shifts": "*fp32", "c": "*fp32"}
    types |= {"a": f"tensordesc<fp16[{SMALL.m}, {SMALL.k}]>", "b": f"tensordesc<fp16[{SMALL.k}, {SMALL.n}]>"}
    place = split_gemm.arg_names.index
    source = ASTSource(split_gemm, types, {(place(name),): value for name, value in constants.items()})
    options = {"num_warps": SMALL.warps, "num_stages": SMALL.stages}
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
    registers, stack = resources(made, tmp_path)
    print("reg", registers, "stack", stack, "shared", made.metadata.shared)
    assert registers <= 255
    assert stack == 0
    assert made.metadata.shared <= 232448


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("kernel", [split_gathered, unscale_scattered])
def test_the_kernels_around_halves_spill_nothing_and_move_whole_vectors(kernel, first, tmp_path):
    before = kernel is split_gathered
    features, columns, warps = SPLIT_TILE if before else UNSCALE_TILE
    constants = {"D": 6, "F": features, "N": columns, ("x_" if before else "y_") + ("feature" if first else "batch"): 1}
    if before:
        constants |= {"TOP": TOP, "MOST": MOST_SHIFT, "parts": 1}
    types = {name: "constexpr" if name in constants else "i32" for name in kernel.arg_names}
    pointers = {"x": "*fp32", "y": "*fp32", "product": "*fp32", "high": "*fp16", "low": "*fp16"}
    pointers |= {"largest": "*i32", "shifts": "*i32", "row_shifts": "*i32"}
    types |= {name: kind for name, kind in pointers.items() if name in types}
    place = kernel.arg_names.index
    aligned = {(place(name),): [["tt.divisibility", 16]] for name in types if name not in constants}
    source = ASTSource(kernel, types, {(place(name),): value for name, value in constants.items()}, aligned)
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps, "num_stages": 1})
    registers, stack = resources(made, tmp_path)
    ptx = made.asm["ptx"]
    print(kernel, "reg", registers, "stack", stack, "shared", made.metadata.shared)
    assert registers <= 128
    assert stack == 0
    for access in ("ld", "st"):
        assert re.search(rf"{access}\.global\.v[248]", ptx), access


@pytest.mark.parametrize("order", ["natural", "gathers", "scatters"])
@pytest.mark.parametrize("size", TRANSPOSED_TILES)
def test_the_transposition_spills_nothing_and_moves_whole_vectors(size, order, tmp_path):
    height, width, warps = TRANSPOSED_TILES[size]
    words = -(-size // 8)
    constants = {"R": height, "C": width, "W": words, "D": 1 if order == "natural" else 6}
    constants |= {"GATHERS": order == "gathers", "SCATTERS": order == "scatters"}
    types = {name: "constexpr" if name in constants else "i32" for name in transpose_words.arg_names}
    types |= dict.fromkeys(("source", "target"), f"*i{8 * size // words}")
    place = transpose_words.arg_names.index
    aligned = {(place(name),): [["tt.divisibility", 16]] for name in types if name not in constants}
    source = ASTSource(transpose_words, types, {(place(name),): value for name, value in constants.items()}, aligned)
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps, "num_stages": 1})
    registers, stack = resources(made, tmp_path)
    ptx = made.asm["ptx"]
    print(size, "reg", registers, "stack", stack, "shared", made.metadata.shared)
    assert registers <= 128
    assert stack == 0
    if size < 16:  # the exchange that makes both sides contiguous; 16 bytes are a thread's whole access
        assert made.metadata.shared >= height * width * size
    for access in ("ld", "st"):
        assert re.search(rf"{access}\.global\.v[248]", ptx), access
