"""Run in a process of its own by test_triton_kernels.py: kernels of products compiled without a GPU.

For sm_90, int8 for older ones too. All fit the registers and the shared memory as they are launched.
"""

import re

import pytest

from lcma.kernels.codegen.triton_text import BY_COLUMNS, BY_ROWS, NUMBERS, combine_kernel
from lcma.kernels.codegen.triton_tiles import tile_of
from lcma.kernels.cuda import float16_pairs as pairs
from lcma.kernels.cuda import float16_pairs_kernel as pairs_kernel
from lcma.kernels.cuda import fp8, fp8_kernel, int8, scaled_half, stack, triangular
from lcma.kernels.cuda import scaled_half_kernel as half_kernel
from lcma.kernels.cuda.float16_pairs_level import pairs_by_level
from lcma.kernels.cuda.fp8_naive import BLOCK
from lcma.kernels.cuda.int8 import COPY
from lcma.kernels.cuda.int8_kernel import multiply_int8
from lcma.kernels.cuda.stack_kernel import stack_gemm
from lcma.kernels.cuda.tiles import SIDES
from lcma.kernels.cuda.triangular_kernel import triangular_gemm
from lcma.kernels.dense.given import given
from lcma.schemes_db.resolve import resolve

POINTERS = {"bfloat16": "*bf16", "float16": "*fp16", "tf32": "*fp32", "float32": "*fp32", "float64": "*fp64"}
FEW_SPILLS = {"spills": 64}
"""Bytes of a thread's stack that may be used."""

SHIFTS = {"row_shifts": "*i32", "col_shifts": "*i32"}
SPLIT = dict.fromkeys(("largest", "shifts", "along_shifts"), "*i32") | dict.fromkeys(("x", "across", "sums"), "*fp32")
SPLIT |= {"high": "*fp16", "low": "*fp16"}
LIMITS = {"TOP": pairs.TOP, "MOST": pairs.MOST_SHIFT}


def case(label, kernel, types, constants, launch, wanted=(), absent=(), **options):
    """A kernel with its arguments' types and constants, the warps (and stages), and patterns of its code."""
    launch = launch if isinstance(launch, tuple) else (launch,)
    return pytest.param(kernel, types, constants, launch, wanted, absent, options, id=label)


def tiled(tile, **constants):
    """A tile's constants, and its warps and stages."""
    return constants | {"M": tile.m, "N": tile.n, "K": tile.k}, (tile.warps, tile.stages)


def blocks(dtype, **sizes):
    return {name: f"tensordesc<{dtype}[{rows}, {cols}]>" for name, (rows, cols) in sizes.items()}


def of_pairs():
    tile = pairs.TILE
    for scaled in (False, True):
        types = blocks("fp16", a=(tile.m, tile.k), b=(tile.k, tile.n)) | SHIFTS | {"c": "*fp32"}
        constants = tiled(tile, GROUP=pairs.GROUP, SCALED=scaled)
        yield case(f"pairs, scaled {scaled}", pairs_kernel.pairs_gemm, types, *constants, ["wgmma"])
        constants = {"AXIS": 0, "SHIFTED": scaled, "LOW": True, **LIMITS, **dict(zip("MN", pairs.BLOCK, strict=True))}
        yield case(f"split, shifted {scaled}", pairs_kernel.split_pairs, SPLIT, constants, 4)
    largest = {"x": "*fp32", "along_shifts": "*i32", "largest": "*i32"}
    level = dict.fromkeys(("x", "weights", "block_weights", "plain", "weighted", "by_blocks"), "*fp32")
    level["shifts"] = "*i32"
    for lines, along in ((4, 512), (128, 16)):
        for kernel, types, more in (
            (pairs_kernel.largest_bits, largest, {"SHIFTED": False}),
            (pairs_kernel.largest_bits, largest, {"SHIFTED": True}),
            (pairs_kernel.line_sums, level | {"x": "*fp16", "shifts": "*fp16"}, {"SHIFTED": 0, "WEIGHTS": 1}),
            (pairs_kernel.line_sums, level, {"SHIFTED": 2, "WEIGHTS": 0}),
            (pairs_kernel.line_sums, level, {"SHIFTED": 1, "WEIGHTS": 2}),
        ):
            label = f"{kernel.__name__} of {lines} x {along}, {more}"
            yield case(label, kernel, types, {"LINES": lines, "ALONG": along, **more}, 4)
    types = {"found": "*i32"}
    for side in "ab":
        types |= {f"sums_{side}": "*fp32", f"weighted_{side}": "*fp32", f"largest_{side}": "*i32"}
    constants = {"LOST": pairs.LOST, "ROUNDING": pairs.ROUNDING, "SIZE": pairs.LONG}
    yield case("verdict", pairs_kernel.verdict, types, constants, 8)
    split_level = pairs_by_level(given([resolve("strassen")[0]] * 2)[0].program).level
    constants = {"ROWS": 1, "COLS": 1024, "VECTOR": 4, "MATRIX": BY_ROWS, "SLABS": BY_ROWS}
    for combination, stored in ((split_level.left, "*fp16"), (split_level.merge, "*fp32")):
        types = {"matrix": "*fp32", "stack": stored, **SHIFTS, **dict.fromkeys(NUMBERS, "i64")}
        yield case(f"combine to {stored}", combine_kernel(combination.work(False, False)), types, constants, 8)


def of_scaled_halves():
    tile = scaled_half.TILE
    for described, step in ((False, {}), (False, {"c_col": 1}), (True, {}), (True, {"c_col": 1})):
        constants, launch = tiled(tile, GROUP=scaled_half.GROUP, DESCRIBED=described, **step)
        types = blocks("fp16", a=(tile.m, tile.k), b=(tile.k, tile.n)) | SHIFTS
        types |= blocks("fp32", c=(tile.m, tile.n // 4)) if described else {"c": "*fp32"}
        yield case(f"halves, described {described} {step}", half_kernel.half_gemm, types, constants, launch, ["wgmma"])
    types = {"flag": "*i32"} | dict.fromkeys("abc", "*fp32")
    # B stored by columns, and the transposed product: the right factor is read along k.
    for steps in (("a_col", "b_row", "c_col"), ("a_row", "b_row", "c_row")):
        constants, launch = tiled(scaled_half.PLAIN_TILE, GROUP=scaled_half.GROUP, **dict.fromkeys(steps, 1))
        yield case(f"guarded {steps}", half_kernel.guarded_gemm, types, constants, launch, ["wgmma"], aligned="all")
    for axis, block in enumerate(scaled_half.BLOCKS):
        constants = {"AXIS": axis, "SHIFTED": False, "LOW": False, **LIMITS, **dict(zip("MN", block, strict=True))}
        types = SPLIT | {"along_shifts": "*fp32"}
        yield case(f"scaling of axis {axis}", pairs_kernel.split_pairs, types, constants, scaled_half.WARPS)
    partial = dict.fromkeys(("across", "weights", "parts", "sums"), "*fp32")
    folded = dict(zip(("ROWS", "SIZE"), scaled_half.FOLDED, strict=True))
    yield case("fold_sums", half_kernel.fold_sums, partial, folded, 4)
    types = dict.fromkeys(("sums_a", "sums_b", "weights_a", "weights_b"), "*fp32")
    types |= {"a": "*fp16", "b": "*fp16", "flag": "*i32"}
    constants = {name: getattr(scaled_half, name) for name in ("LOST", "ROUNDING", "LINES", "ALONG", "SIZE")}
    yield case("check", half_kernel.check, types, constants, 4)


def of_8_bits():
    code = ["cvt.rn.satfinite.e4m3x2.f32", "div.rn.f32"]
    for dtype in ("bf16",):
        for shared, lines, warps in ((False, fp8.ROWS, 4), (True, BLOCK, 8)):
            constants = {"BLOCKS": shared, "LINES": lines, "ALONG": BLOCK, "along_step": 1}
            types = {"x": f"*{dtype}", "bits": "*fp8e4nv", "scales": "*fp32"}
            aligned = (*types, "line_step", "pitch")
            label = f"quantise {dtype}, blocks {shared}"
            yield case(label, fp8_kernel.quantise, types, constants, warps, code, aligned=aligned)
    types = {"a": "*i8", "b": "*i8", "c": "*i32"}
    aligned = (*types, "k", "a_stride", "b_stride", "c_row")
    code = [r"(?:wgmma\.mma_async|mma\.sync)\S*\.s32\.s8\.s8"]
    for tile, capability in ((int8.TILE, 90), (int8.SMALL_TILE, 90), (int8.SMALL_TILE, 89), (int8.SMALL_TILE, 80)):
        constants, more = (
            tiled(tile, GROUP=int8.GROUP, PARITY=False, c_col=1),
            {"aligned": aligned, "capability": capability},
        )
        yield case(f"int8 {tile.m} x {tile.n}, sm_{capability}", multiply_int8, types, *constants, code, **more)
    for order in (BY_ROWS, BY_COLUMNS):  # of A, and of a B stored by rows to columns
        tile = tile_of(COPY.map, 1, order == BY_COLUMNS)
        constants = {"ROWS": tile.rows, "COLS": tile.cols, "VECTOR": 16, "MATRIX": BY_ROWS, "SLABS": order}
        types = {"matrix": "*i8", "stack": "*i8", **dict.fromkeys(NUMBERS, "i64")}
        kernel = combine_kernel(COPY.work(False, False, tile.ahead))
        aligned = {"aligned": ("matrix", "stack")}
        yield case(f"int8 copy, order {order}", kernel, types, constants, tile.warps, absent=[r"\.f32"], **aligned)


def of_stacks_and_triangles():
    tile = stack.TILE
    for dtype, side, of_a, of_b in (
        ("bf16", "", False, False),
        ("fp16", "out", False, True),
        ("bf16", "left", False, False),
        ("bf16", "left", True, False),
    ):
        order = {"A_T": of_a, "B_T": of_b, "FLAT": side in ("", "out"), "GROUP": stack.GROUP}
        constants, launch = tiled(tile, SIDE=SIDES.index(side), UPPER=False, **order)
        a, b = (
            (sizes[::-1] if turned else sizes) for sizes, turned in (((tile.m, tile.k), of_a), ((tile.k, tile.n), of_b))
        )
        types = blocks(dtype, a=a, b=b, c=(tile.m, tile.n)) | {"tiles": "*i32"}
        code = ["wgmma", r"cp\.async\.bulk\.tensor"]
        yield case(f"stack {dtype} {side} {of_a} {of_b}", stack_gemm, types, constants, launch, code, **FEW_SPILLS)
    # As they are launched on aligned matrices stored by rows. Strict float32: scalar units, or it would round to tf32.
    for dtype, tile in triangular.TILES.items():
        for side in ("out", "left"):
            constants, launch = tiled(tile, heads=1, SIDE=SIDES.index(side), UPPER=False, EXACT=True)
            constants |= {"PRECISION": "tf32" if dtype == "tf32" else "ieee", "DOUBLE": dtype == "float64"}
            constants |= {"a_col": 1, "b_col": 1, "c_col": 1}
            types = dict.fromkeys("abc", POINTERS[dtype]) | {"tiles": "*i32"}
            code = ["wgmma"] * (dtype in ("bfloat16", "float16", "tf32")), ["mma"] * (dtype == "float32")
            more = {"aligned": "all", **FEW_SPILLS}
            yield case(f"triangle {dtype} {side}", triangular_gemm, types, constants, launch, *code, **more)


CASES = [*of_pairs(), *of_scaled_halves(), *of_8_bits(), *of_stacks_and_triangles()]


@pytest.mark.parametrize(("kernel", "types", "constants", "launch", "wanted", "absent", "options"), CASES)
def test_a_kernel_fits_without_spills(fitted, kernel, types, constants, launch, wanted, absent, options):
    ptx = fitted(kernel, types, constants, *launch, **options).asm["ptx"]
    assert [pattern for pattern in wanted if not re.search(pattern, ptx)] == []
    assert [pattern for pattern in absent if re.search(pattern, ptx)] == []
