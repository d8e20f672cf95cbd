"""Run in processes of their own by test_triton_kernels.py: Triton's kernels compiled without a GPU, a family each.

For sm_90, int8 for older ones too. All fit the registers and the shared memory as they are launched. The compiler's own
report must show that values stay in registers and that accesses are as wide as they can be: what makes a combination
as fast as a copy.
"""

import os
import re

import pytest

from lcma.kernels.block_low_rank import Blast, LowRank, Monarch
from lcma.kernels.codegen.triton_text import BY_COLUMNS, BY_ROWS, NUMBERS, combine_kernel
from lcma.kernels.codegen.triton_tiles import tile_of as tile_of_map
from lcma.kernels.cuda import float16_pairs as pairs
from lcma.kernels.cuda import float16_pairs_kernel as pairs_kernel
from lcma.kernels.cuda import fp8, fp8_kernel, int8, scaled_half, stack, triangular
from lcma.kernels.cuda import scaled_half_kernel as half_kernel
from lcma.kernels.cuda.float16_pairs_level import pairs_by_level
from lcma.kernels.cuda.fp8_naive import BLOCK
from lcma.kernels.cuda.int8_kernel import multiply_int8
from lcma.kernels.cuda.level import cuda_level
from lcma.kernels.cuda.stack_kernel import stack_gemm
from lcma.kernels.cuda.tiles import SIDES
from lcma.kernels.cuda.triangular_kernel import triangular_gemm
from lcma.kernels.exact import tensor_sums, triton_bits, triton_digits
from lcma.kernels.structured import decode, scalar, split, split_kernel, transposition
from lcma.kernels.structured.decode_kernel import multiply_few_columns
from lcma.kernels.structured.mixing_kernel import mix_blocks
from lcma.kernels.structured.pattern import Pattern
from lcma.kernels.structured.scalar_kernel import gather_factor, multiply_pair
from lcma.kernels.structured.tiled_kernel import multiply_factor
from lcma.kernels.structured.tiles import INPUT_PRECISIONS, TILES, tile_choices, tile_of
from lcma.kernels.structured.transposition_kernel import transpose_words

from .gpu import program

POINTERS = {"bfloat16": "*bf16", "float16": "*fp16", "float64": "*fp64", "complex128": "*fp64"}
"""Those of other arithmetics are of float32."""

FEW_SPILLS = {"spills": 64}
"""Bytes of a thread's stack that may be used."""

ASKED = {"wanted": list, "absent": list, "counts": dict, "least": dict, "shared": int, "before_stores": int}
"""What is asked of a kernel's code and memory, and the type of each."""

WHOLE_VECTORS = {"registers": 128, "wanted": [rf"{access}\.global\.v[248]" for access in ("ld", "st")]}

SHIFTS = {"row_shifts": "*i32", "col_shifts": "*i32"}
SPLIT = dict.fromkeys(("largest", "shifts", "along_shifts"), "*i32") | dict.fromkeys(("x", "across", "sums"), "*fp32")
SPLIT |= {"high": "*fp16", "low": "*fp16"}
LIMITS = {"TOP": pairs.TOP, "MOST": pairs.MOST_SHIFT}


def case(label, kernel, types, constants, launch, **wanted):
    """A kernel with its arguments' types and constants, the warps (and stages), and what is asked of its code.

    `wanted` and `absent` are patterns of it, `counts` and `least` their exact and least numbers, `before_stores` the
    loads before the first store, `shared` the least bytes of shared memory; the others are limits of `fitted`.
    """
    launch = launch if isinstance(launch, tuple) else (launch,)
    return pytest.param(kernel, types, constants, launch, wanted, id=label)


def tiled(tile, **constants):
    """A tile's constants, and its warps and stages."""
    return constants | {"M": tile.m, "N": tile.n, "K": tile.k}, (tile.warps, tile.stages)


def blocks(dtype, **sizes):
    return {name: f"tensordesc<{dtype}[{rows}, {cols}]>" for name, (rows, cols) in sizes.items()}


def combination(levels, side, dtype, transposed=False, aligned=True):
    """The kernel of sums as it is launched on matrices of one alignment, its types, constants and warps."""
    size, level = {"bfloat16": 2, "float32": 4, "float64": 8}[dtype], cuda_level(program(*levels))
    sums = {"A": level.left, "B": level.right, "C": level.merge}[side]
    tile = tile_of_map(sums.map, size, transposed)
    order = {"MATRIX": BY_ROWS, "SLABS": BY_COLUMNS if transposed else BY_ROWS}
    constants = {"ROWS": tile.rows, "COLS": tile.cols, "VECTOR": 16 // size if aligned else 1, **order}
    types = dict.fromkeys(NUMBERS, "i64") | dict.fromkeys(("matrix", "stack"), POINTERS.get(dtype, "*fp32"))
    return combine_kernel(sums.work(False, dtype == "float64", tile.ahead)), types, constants, tile.warps


MATRICES = {"aligned": ("matrix", "stack")}
TWO, THREE = ("strassen",) * 2, ("strassen",) * 3


def of_combinations():
    for dtype, width in (("bfloat16", "v2.b32"), ("float32", "v4.b32"), ("float64", "v2.b64")):
        for side in "ABC":
            # 4 elements a thread in one access; 16-byte ones where an element has 4 bytes or more. With 168 registers,
            # as with 160, three programs of four warps run on a multiprocessor at once.
            sources, results = (16, 49) if side != "C" else (49, 16)
            least = {rf"ld\.global\.{width}": sources, rf"st\.global\.{width}": results}
            of_two = combination(TWO, side, dtype)
            yield case(f"two levels {side} {dtype}", *of_two, **MATRICES, registers=168, least=least)
            # The code is that of two levels, so that it compiles in a second: straight-line code takes ten times that.
            loads, stores = (64, 49) if side != "C" else (49, 64)
            counts = {r"ld\.global": loads, r"st\.global": stores}
            yield case(f"three levels {side} {dtype}", *combination(THREE, side, dtype), **MATRICES, counts=counts)
    once = {r"ld\.global": 4, r"st\.global": 7, "atom": 0, r"red\.": 0}
    yield case("each block once", *combination(("strassen",), "A", "float32"), **MATRICES, counts=once)
    for side in "AC":
        narrow = combination(("laderman",), side, "bfloat16", aligned=False)
        yield case(f"narrow {side}", *narrow, **MATRICES, registers=200)
    through = combination(TWO, "B", "float32", transposed=True)
    yield case("transposed stack", *through, **MATRICES, registers=160, wanted=[r"ld\.shared"])
    # No load of a split waits behind a store; a merge has half of its loads on their way before it stores.
    for side, loads in (("A", 16), ("C", 25 + 13)):
        yield case(f"loads first {side}", *combination(TWO, side, "bfloat16"), **MATRICES, before_stores=loads)


def of_pairs():
    tile = pairs.TILE
    for scaled in (False, True):
        types = blocks("fp16", a=(tile.m, tile.k), b=(tile.k, tile.n)) | SHIFTS | {"c": "*fp32"}
        constants = tiled(tile, GROUP=pairs.GROUP, SCALED=scaled)
        yield case(f"pairs, scaled {scaled}", pairs_kernel.pairs_gemm, types, *constants, wanted=["wgmma"])
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
    split_level = pairs_by_level(program(*TWO)).level
    constants = {"ROWS": 1, "COLS": 1024, "VECTOR": 4, "MATRIX": BY_ROWS, "SLABS": BY_ROWS}
    for sums, stored in ((split_level.left, "*fp16"), (split_level.merge, "*fp32")):
        types = {"matrix": "*fp32", "stack": stored, **SHIFTS, **dict.fromkeys(NUMBERS, "i64")}
        yield case(f"combine to {stored}", combine_kernel(sums.work(False, False)), types, constants, 8)


def of_scaled_halves():
    tile = scaled_half.TILE
    for described, step in ((False, {}), (False, {"c_col": 1}), (True, {}), (True, {"c_col": 1})):
        constants, launch = tiled(tile, GROUP=scaled_half.GROUP, DESCRIBED=described, **step)
        types = blocks("fp16", a=(tile.m, tile.k), b=(tile.k, tile.n)) | SHIFTS
        types |= blocks("fp32", c=(tile.m, tile.n // 4)) if described else {"c": "*fp32"}
        label = f"halves, described {described} {step}"
        yield case(label, half_kernel.half_gemm, types, constants, launch, wanted=["wgmma"])
    types = {"flag": "*i32"} | dict.fromkeys("abc", "*fp32")
    # B stored by columns, and the transposed product: the right factor is read along k.
    for steps in (("a_col", "b_row", "c_col"), ("a_row", "b_row", "c_row")):
        constants, launch = tiled(scaled_half.PLAIN_TILE, GROUP=scaled_half.GROUP, **dict.fromkeys(steps, 1))
        more = {"wanted": ["wgmma"], "aligned": "all"}
        yield case(f"guarded {steps}", half_kernel.guarded_gemm, types, constants, launch, **more)
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
    for shared, lines, warps in ((False, fp8.ROWS, 4), (True, BLOCK, 8)):
        constants = {"BLOCKS": shared, "LINES": lines, "ALONG": BLOCK, "along_step": 1}
        types = {"x": "*bf16", "bits": "*fp8e4nv", "scales": "*fp32"}
        more = {"wanted": code, "aligned": (*types, "line_step", "pitch")}
        yield case(f"quantise, blocks {shared}", fp8_kernel.quantise, types, constants, warps, **more)
    types = {"a": "*i8", "b": "*i8", "c": "*i32"}
    more = {"aligned": (*types, "k", "a_stride", "b_stride", "c_row")}
    more["wanted"] = [r"(?:wgmma\.mma_async|mma\.sync)\S*\.s32\.s8\.s8"]
    for tile, capability in ((int8.TILE, 90), (int8.SMALL_TILE, 90), (int8.SMALL_TILE, 89), (int8.SMALL_TILE, 80)):
        constants, label = tiled(tile, GROUP=int8.GROUP, PARITY=False, c_col=1), f"int8 {tile.m} x {tile.n}"
        yield case(f"{label}, sm_{capability}", multiply_int8, types, *constants, **more, capability=capability)
    for order in (BY_ROWS, BY_COLUMNS):  # of A, and of a B stored by rows to columns
        tile = tile_of_map(int8.COPY.map, 1, order == BY_COLUMNS)
        constants = {"ROWS": tile.rows, "COLS": tile.cols, "VECTOR": 16, "MATRIX": BY_ROWS, "SLABS": order}
        types = {"matrix": "*i8", "stack": "*i8", **dict.fromkeys(NUMBERS, "i64")}
        kernel = combine_kernel(int8.COPY.work(False, False, tile.ahead))
        label = f"int8 copy, order {order}"
        yield case(label, kernel, types, constants, tile.warps, absent=[r"\.f32"], **MATRICES)


def of_exact_products():
    everything = {"aligned": "all", **FEW_SPILLS}
    constants = tiled(int8.TILE, GROUP=int8.GROUP, PARITY=True, c_col=1)
    types = {"a": "*i8", "b": "*i8", "c": "*i32"}
    yield case("parity", multiply_int8, types, *constants, wanted=["wgmma"], **everything)
    for kind in ("*i32", "*u8"):
        types = {"values": kind, "out": "*i32"}
        yield case(f"pack {kind}", triton_bits.pack_parity, types, {"R": 16, "W": 4}, 4, **everything)
    for turned in (False, True):
        types, constants = {"words": "*i32", "out": "*i8"}, {"TURN": turned, "R": 32, "W": 4}
        yield case(f"unpack, turned {turned}", triton_bits.unpack_bits, types, constants, 4, **everything)
    for digits, kind in ((2, "i32"), (3, "i32"), (3, "i64"), (8, "i64")):
        types, constants = {"x": "*i64", "out": "*i8", "modulus": kind}, {"DIGITS": digits, "REVERSED": True}
        constants |= {"R": 32, "C": 64}
        yield case(f"split {digits} {kind}", triton_digits.split_digits, types, constants, 4, **everything)
        types = {"sums": "*i32", "out": "*i64", "modulus": kind}
        constants = {"ADD": False, "TERMS": 2 * digits - 1, "R": 16, "C": 64}
        yield case(f"join {digits} {kind}", triton_digits.join_digits, types, constants, 4, **everything)
    types = dict.fromkeys(("starts", "source_rows", "source_cols", "target_rows", "target_cols"), "*i64")
    types |= {"source": "*i32", "target": "*i32"}
    constants = {"R": tensor_sums.HEIGHT, "W": tensor_sums.WIDTH}
    yield case("sums", triton_bits.sum_blocks, types, constants, 4, **everything)


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
        more = {"wanted": ["wgmma", r"cp\.async\.bulk\.tensor"], **FEW_SPILLS}
        yield case(f"stack {dtype} {side} {of_a} {of_b}", stack_gemm, types, constants, launch, **more)
    # As they are launched on aligned matrices stored by rows. Strict float32: scalar units, or it would round to tf32.
    for dtype, tile in triangular.TILES.items():
        for side in ("out", "left"):
            constants, launch = tiled(tile, heads=1, SIDE=SIDES.index(side), UPPER=False, EXACT=True)
            constants |= {"PRECISION": "tf32" if dtype == "tf32" else "ieee", "DOUBLE": dtype == "float64"}
            constants |= {"a_col": 1, "b_col": 1, "c_col": 1}
            types = dict.fromkeys("abc", POINTERS.get(dtype, "*fp32")) | {"tiles": "*i32"}
            more = {"wanted": ["wgmma"] * (dtype in ("bfloat16", "float16", "tf32")), "aligned": "all", **FEW_SPILLS}
            more["absent"] = ["mma"] * (dtype == "float32")
            yield case(f"triangle {dtype} {side}", triangular_gemm, types, constants, launch, **more)


def ordered(first, *names):
    """Batch-first or batch-last operands: the step that is 1."""
    return {f"{name}_{'feature' if first else 'batch'}": 1 for name in names}


def of_tiles():
    """Every tile, the first one with every d and order, and those of float16 batch-last."""
    cases = [(dtype, choice, 6, True) for dtype in TILES for choice in range(1, tile_choices(dtype))]
    every = ((1, True), (2, True), (16, True), (6, True), (6, False))
    cases += [(dtype, 0, *one) for dtype in TILES for one in every]
    cases += [("float16", choice, 6, False) for choice in (3, 4, 5)]
    for dtype, choice, d, first in cases:
        tile = tile_of(dtype, Pattern(1, 128, 128, d), choice)
        constants = {"PRECISION": INPUT_PRECISIONS.get(dtype, "ieee"), "DOUBLE": dtype == "float64", "D": d}
        constants |= {"N": tile.n, "P": tile.p, "Q": tile.q, "J": tile.j, **ordered(first, "x", "y")}
        types = dict.fromkeys(("x", "weights", "y"), POINTERS.get(dtype, "*fp32"))
        more = {"wanted": ["mma"] * (dtype in ("bfloat16", "float16", *INPUT_PRECISIONS)), **FEW_SPILLS}
        more["absent"] = ["mma"] * (dtype == "float32")  # strict: scalar units, or it would round to tf32
        label, launch = f"{dtype} d{d} tile{choice} first {first}", (tile.warps, tile.stages)
        yield case(label, multiply_factor, types, constants, launch, **more, aligned="all")


SCALAR = [
    *((one,) for one in (Pattern(1, 2, 2, 2048), Pattern(256, 16, 16, 1), Pattern(1, 16, 16, 256))),
    (Pattern(1, 16, 16, 256), Pattern(16, 16, 16, 16)),
    (Pattern(256, 16, 16, 16), Pattern(4096, 16, 16, 1)),
    (Pattern(1, 2, 2, 2048), Pattern(2, 2, 2, 1024)),
]
"""Single factors, which are gathered, and pairs that one kernel multiplies."""


def of_small_blocks():
    """Every size of a number batch-first; the smallest and the largest batch-last, too."""
    orders = [(dtype, True) for dtype in ("float16", "float32", "float64", "complex64", "complex128")]
    for dtype, first in (*orders, ("float16", False), ("complex128", False)):
        for patterns in SCALAR:
            parts, single, last = 2 if "complex" in dtype else 1, len(patterns) == 1, patterns[-1]
            words = scalar.words_of(dtype)
            tile = scalar.gather_tile(last, first, words) if single else scalar.pair_tile(patterns, first, words)
            double = dtype in ("float64", "complex128")
            constants = {"D": last.d, "DOUBLE": double, "PARTS": parts, "N": tile.n, "P": tile.p, "J": tile.j}
            constants |= {} if single else {"Q": tile.q}
            constants |= ordered(first, "x", "y") if parts == 1 else {}
            pointers = "x", *(("weights",) if single else ("first", "second")), "y"
            types = dict.fromkeys(pointers, POINTERS.get(dtype, "*fp32"))
            kernel, warps = (gather_factor, 4) if single else (multiply_pair, 8)
            label = f"{''.join(map(str, patterns))} {dtype} first {first}"
            yield case(label, kernel, types, constants, warps, aligned="all")


def of_moves():
    """The smaller product of halves, the kernels around it, and transpositions."""
    tile = split.SMALL
    types = {"row_shifts": "*fp32", "col_shifts": "*fp32", "c": "*fp32"}
    types |= blocks("fp16", a=(tile.m, tile.k), b=(tile.k, tile.n))
    yield case("small halves", pairs_kernel.pairs_gemm, types, *tiled(tile, GROUP=pairs.GROUP, SCALED=False))
    pointers = {"x": "*fp32", "y": "*fp32", "product": "*fp32", "high": "*fp16", "low": "*fp16"}
    pointers |= {"largest": "*i32", "shifts": "*i32", "row_shifts": "*i32"}
    for kernel, sizes, side, more in (
        (split_kernel.split_gathered, split.SPLIT_TILE, "x", LIMITS | {"parts": 1}),
        (split_kernel.unscale_scattered, split.UNSCALE_TILE, "y", {}),
    ):
        for first in (True, False):
            features, columns, warps = sizes
            constants = {"D": 6, "F": features, "N": columns, **ordered(first, side), **more}
            types = {name: kind for name, kind in pointers.items() if name in kernel.arg_names}
            label = f"{kernel.__name__} first {first}"
            yield case(label, kernel, types, constants, (warps, 1), aligned="all", **WHOLE_VECTORS)
    for size, (height, width, warps) in transposition.TILES.items():
        for order in ("natural", "gathers", "scatters"):
            words = -(-size // 8)
            constants = {"R": height, "C": width, "W": words, "D": 1 if order == "natural" else 6}
            constants |= {"GATHERS": order == "gathers", "SCATTERS": order == "scatters"}
            types = dict.fromkeys(("source", "target"), f"*i{8 * size // words}")
            # The exchange that makes both sides contiguous; 16 bytes are a thread's whole access.
            more = {"shared": height * width * size if size < 16 else 0, "aligned": "all", **WHOLE_VECTORS}
            yield case(f"{size} bytes, {order}", transpose_words, types, constants, (warps, 1), **more)


def of_mixing_and_decode():
    types = dict.fromkeys(("inner", "scales", "mixed"), "*bf16")
    for side in (4, 16, 64):
        constants = {"B1": side, "B2": side, "K": max(16, side), "M": max(16, side), "N": 256, "R": 4}
        more = {"wanted": [r"mma\.sync|wgmma"], "aligned": "all", **FEW_SPILLS}
        yield case(f"mixing b{side}", mix_blocks, types, constants, (4, 3), **more)
    for structure in (LowRank(11008, 4096, 1488), Monarch(11008, 4096, 16, 16, 96), Blast(11008, 4096, 16, 16, 1488)):
        for n in (1, 4, 16):  # columns of bfloat16, as one launch on an H200
            _, fixed, options = decode.launch_of(structure, n, True, 132, decode.DECODE_TILE)
            numbers = {name: sizes for name, sizes in fixed.items() if isinstance(sizes, tuple)}
            numbers |= {"x_strides": (1, 2), "y_strides": (2, 1, 2)}
            ones = {(name, i): 1 for name, sizes in numbers.items() for i, size in enumerate(sizes) if size == 1}
            types = dict.fromkeys(("v", "scales", "u", "x", "z", "y"), "*bf16") | {"counter": "*i32"}
            types |= {name: ("i32",) * len(sizes) for name, sizes in numbers.items()}
            constants = {name: value for name, value in fixed.items() if name not in numbers}
            constants |= {**ones, "n": n, "FIRST": True, "LAST": True}
            # A program that is not resident would be waited for.
            resident = decode.MOST_DOT_PROGRAMS if n == 16 else decode.DECODE_TILE.programs
            warps, more = options["num_warps"], {"counts": {r"atom\.global\.gpu\.acq_rel": 1}, "aligned": "all"}
            more["registers"] = decode.REGISTERS // (32 * warps * resident)
            more["wanted"] = [r"ld\.global\.L1::evict_first\S*\.v4|cp\.async\.cg\.\S+ .*0x10"]
            label = f"decode {structure.kind} n{n}"
            yield case(label, multiply_few_columns, types, constants, (warps, 3), **more, **FEW_SPILLS)


PRODUCTS = of_pairs, of_scaled_halves, of_8_bits, of_exact_products, of_stacks_and_triangles
STRUCTURED = of_tiles, of_small_blocks, of_moves, of_mixing_and_decode
FAMILIES = {"combinations": [of_combinations], "products": PRODUCTS, "structured": STRUCTURED}
CASES = [one for family in os.environ.get("FAMILY", "").split() or FAMILIES for of in FAMILIES[family] for one in of()]


@pytest.mark.parametrize(("kernel", "types", "constants", "launch", "wanted"), CASES)
def test_a_kernel_fits(fitted, kernel, types, constants, launch, wanted):
    asked = {name: wanted.get(name, kind()) for name, kind in ASKED.items()}
    limits = {name: limit for name, limit in wanted.items() if name not in ASKED}
    made = fitted(kernel, types, constants, *launch, **limits)
    code = made.asm["ptx"]

    def counted(patterns):
        return {pattern: len(re.findall(pattern, code)) for pattern in patterns}

    assert all(counted(asked["wanted"]).values()), counted(asked["wanted"])
    assert not any(counted(asked["absent"]).values()), counted(asked["absent"])
    assert counted(asked["counts"]) == asked["counts"]
    assert all(counted([pattern])[pattern] >= least for pattern, least in asked["least"].items())
    assert made.metadata.shared >= asked["shared"]
    if asked["before_stores"]:
        assert re.findall(r"(ld|st)\.global", code).index("st") >= asked["before_stores"]
