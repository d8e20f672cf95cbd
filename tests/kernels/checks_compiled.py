"""Run in processes of their own by test_triton_kernels.py: what products launch, compiled without a GPU, a family each.

Launches are recorded on tensors without data, for the GPU of ARCH. All kernels fit the registers and the shared memory.
The compiler's own report must show that values stay in registers and that accesses are as wide as they can be: what
makes a combination as fast as a copy.
"""

import os
import re
from functools import partial
from importlib import import_module
from unittest.mock import patch

import numpy as np
import pytest
import torch
from triton.runtime.driver import driver
from triton.runtime.jit import KernelInterface

from lcma.kernels.block_low_rank import Blast, LowRank, Monarch
from lcma.kernels.codegen.modules import load
from lcma.kernels.cuda import float16_pairs as pairs
from lcma.kernels.cuda import fp8, int8, scaled_half, stack, triangular
from lcma.kernels.cuda.float16_pairs_level import pairs_by_level
from lcma.kernels.cuda.level import cuda_level
from lcma.kernels.cuda.naive import combine
from lcma.kernels.cuda.precompile import kernels_of
from lcma.kernels.cuda.precompile_worker import OfflineDriver
from lcma.kernels.exact.level import corners
from lcma.kernels.exact.schemes import ExactMap
from lcma.kernels.exact.tensors import FUSED, VENDOR, BitTensorLeaf, DigitTensorLeaf, TensorSums, pack
from lcma.kernels.precision import arithmetic_of
from lcma.kernels.ring import ExactRing
from lcma.kernels.structured import decode, mixing, split, transposition
from lcma.kernels.structured.pattern import Pattern
from lcma.kernels.structured.tiles import INPUT_PRECISIONS, TILES, multiply_small, multiply_tiled, tile_choices, tile_of
from lcma.schemes_db.symmetry import Triangle

from .cases import table
from .gpu import blank, program, resources

ARCH = int(os.environ.get("ARCH", "90"))
SHARED = {80: 166912, 89: 101376, 90: 232448}[ARCH]
"""Bytes of shared memory that a block may have."""

ASKED = table(__file__, "kernels")
"""What is asked of kernels by their names, of every one by that of "all"."""


def square(dtype="float32", size=1024, count=1):
    return blank(count, size, size, dtype=dtype)


def by_columns(x):
    return x.mT.contiguous().mT


def case(label, call, **asked):
    """What a call launches, and what is asked of it."""
    return label, call, asked


def combination(levels, side, dtype, size=4096, turned=False):
    """The sums of one side of a product of matrices of this size, whose stack is stored by columns if it is turned."""
    level = cuda_level(program(*levels))
    sums = {"A": level.left, "B": level.right, "C": level.merge}[side]
    block, linear = -(-size // level.target.shape[0]), sums.form.map
    slabs = linear.sources if side == "C" else len(linear.results)
    stored = blank(slabs, 1, block, block, dtype=dtype)
    return lambda: combine(sums, square(dtype, size), by_columns(stored) if turned else stored)


TWO, THREE = ("strassen",) * 2, ("strassen",) * 3


def of_combinations():
    for dtype, width in (("bfloat16", "v2.b32"), ("float32", "v4.b32"), ("float64", "v2.b64")):
        for side, early in zip("ABC", (16, 0, 25 + 13), strict=True):
            # 4 elements a thread in one access; 16-byte ones where an element has 4 bytes or more. With 168 registers,
            # as with 160, three programs of four warps run on a multiprocessor at once. No load of a split waits behind
            # a store; a merge has half of its loads on their way before it stores.
            sources, results = (16, 49) if side != "C" else (49, 16)
            more = {"least": {rf"ld\.global\.{width}": sources, rf"st\.global\.{width}": results}, "registers": 168}
            more["before_stores"] = early if dtype == "bfloat16" else 0
            yield case(f"two levels {side} {dtype}", combination(TWO, side, dtype), **more)
            # The code is that of two levels, so that it compiles in a second: straight-line code takes ten times that.
            loads, stores = (64, 49) if side != "C" else (49, 64)
            counts = {r"ld\.global": loads, r"st\.global": stores}
            yield case(f"three levels {side} {dtype}", combination(THREE, side, dtype), counts=counts)
    once = {r"ld\.global": 4, r"st\.global": 7, "atom": 0, r"red\.": 0}
    yield case("each block once", combination(("strassen",), "A", "float32"), counts=once)
    for side in "AC":
        yield case(f"narrow {side}", combination(("laderman",), side, "bfloat16", 999), registers=200)
    through = combination(TWO, "B", "float32", turned=True)
    yield case("transposed stack", through, registers=160, wanted=[r"ld\.shared"])


A, B, C = (1001, 1003), (1003, 999), (1001, 999)
"""Sizes that divide into nothing."""


def of_pairs():
    yield case("pairs", lambda: pairs.pairs_product(blank(*A), blank(*B), blank(*C)))
    for axis, x in enumerate((blank(*A), blank(*B))):
        exponents = partial(blank, dtype="int32")
        along, shifts, weights = exponents(x.shape[1 - axis]), exponents(x.shape[axis]), blank(x.shape[1 - axis])
        yield case(f"shifted {axis}", partial(pairs.pairs_of, x, axis, along))
        yield case(f"sums along {axis}", partial(pairs.line_sums_of, x, axis, along))
        yield case(f"weighted sums {axis}", partial(pairs.line_sums_of, x, axis, shifts, (weights, weights)))
    yield case("pairs by level", lambda: pairs_by_level(program(*TWO)).run(*(square(size=4096)[0] for _ in "abc")))


def of_scaled_halves():
    def scaled(a, b, out):
        left, right = scaled_half.scaled_rows(a), scaled_half.unpacked(scaled_half.packed(b), *b.shape)
        scaled_half.multiply_scaled(left, right, out)
        pairs.loses(left, right, scaled_half.ROUNDING)

    yield case("described", lambda: scaled(blank(*A), blank(1003, 1024), blank(1001, 1024)))
    yield case("by rows", lambda: scaled(blank(*A), blank(*B), blank(*C)))
    yield case("by columns", lambda: scaled(blank(*A), blank(*B), by_columns(blank(*C))))
    # B stored by columns, and the transposed product: the right factor is read along k.
    flag, (a, b, c) = blank(1, dtype="int32"), (square()[0] for _ in "abc")
    for right in (by_columns(b), b):
        yield case(f"guarded {right.stride()}", partial(scaled_half.multiply_plain, flag, a, right, c))


def of_8_bits():
    if ARCH == 90:
        yield case("quantised rows", lambda: fp8.quantised_rows(blank(1024, 1024, dtype="bfloat16")))
        yield case("quantised blocks", lambda: fp8.packed_columns(blank(1024, 1024, dtype="bfloat16")))
    a, c = square("int8")[0], square("int32")[0]
    for tile in (int8.TILE, int8.SMALL_TILE)[ARCH < 90 :]:
        yield case(f"int8 {tile.m} x {tile.n}", partial(int8.launch_int8, a, a, c, tile))
    # Copies of A, and of a B stored by rows to columns.
    for label, into in (("rows", a), ("columns", a.mT)):
        yield case(f"int8 copy to {label}", partial(int8._copy, blank(*A, dtype="int8"), into), absent=[r"\.f32"])


def of_exact_products():
    words = partial(blank, dtype="int64")
    for method in (FUSED, VENDOR):
        leaf = BitTensorLeaf((1024, 1024, 1024), method)
        yield case(f"bits {method}", partial(leaf.run, words(1024, 16), words(1024, 16), words(1024, 16)))
    yield case("pack bytes", lambda: pack(blank(1000, 1000, dtype="uint8")))
    for modulus in (1021, 8388593, (1 << 31) - 1, (1 << 61) - 1):
        ring = ExactRing(modulus)
        leaf = DigitTensorLeaf((1000, 1000, 1000), ring, (ring.magnitude(1 << 63),) * 2)
        yield case(f"digits {modulus}", partial(leaf.run, *(words(1000, 1000) for _ in "abc")))
    sums = ExactMap(np.array([0, 2]), np.array([0, 1]), np.array([1, 1]))
    source, target = (words(1024, 16), corners(2, 1, 512, 0)), (words(512, 16), corners(1, 1, 512, 0))
    yield case("sums", lambda: TensorSums().combine(0, sums, source, target, (512, 16), 1))


def of_stacks_and_triangles():
    a, b, c = (square("bfloat16", 4096, 4) for _ in "abc")
    halves = [square("float16", 4096, 4) for _ in "abc"]
    yield case("stack", lambda: stack.multiply_stack(a, b, c))
    for left, right, side, out in (
        (halves[0], by_columns(halves[1]), "out", halves[2]),
        (a, b, "left", c),
        (by_columns(a), b, "left", c),
    ):
        label = f"stack {side} {left.dtype} {left.stride()}"
        yield case(label, partial(triangular.on_tiles, left, right, Triangle(side), out))
    # As they are launched on aligned matrices stored by rows. Strict float32: scalar units, or it would round to tf32.
    for name, tile in triangular.TILES.items():
        dtype = arithmetic_of(name).dtype
        more = {"wanted": ["wgmma"] * (name in ("bfloat16", "float16", "tf32"))}
        more["absent"] = ["mma"] * (name == "float32")
        for side in ("out", "left"):
            call = partial(triangular.multiply, square(dtype), square(dtype), Triangle(side), tile=tile)
            yield case(f"triangle {name} {side}", call, **more)


COLUMNS = 1024


def ordered(rows, first, dtype):
    """A matrix of COLUMNS columns, batch-first or batch-last."""
    return blank(COLUMNS, rows, dtype=dtype).mT if first else blank(rows, COLUMNS, dtype=dtype)


def of_tiles():
    """Every tile, and the first one with every d and order."""
    cases = [(name, choice, 6, True) for name in TILES for choice in range(1, tile_choices(name))]
    every = ((1, True), (2, True), (16, True), (6, True), (6, False))
    cases += [(name, 0, *one) for name in TILES for one in every]
    for name, choice, d, first in cases:
        pattern, dtype = Pattern(1, 128, 128, d), arithmetic_of(name).dtype
        x, out = (ordered(128 * d, first, dtype) for _ in "xy")
        more = {"wanted": ["mma"] * (name in ("bfloat16", "float16", *INPUT_PRECISIONS))}
        more["absent"] = ["mma"] * (name == "float32")  # strict: scalar units, or it would round to tf32
        weights, tile = blank(1, d, 128, 128, dtype=dtype), tile_of(name, pattern, choice)
        call = partial(multiply_tiled, weights, pattern, x, out, name, tile)
        yield case(f"{name} d{d} tile{choice} first {first}", call, **more)


SCALAR = Pattern(1, 2, 2, 2048), Pattern(256, 16, 16, 1), Pattern(1, 16, 16, 256)


def of_small_blocks():
    """Every size of a number batch-first; the smallest and the largest batch-last, too."""
    orders = [(dtype, True) for dtype in ("float16", "float32", "float64", "complex64", "complex128")]
    for dtype, first in (*orders, ("float16", False), ("complex128", False)):
        for pattern in SCALAR:
            x, out = ordered(pattern.cols, first, dtype), ordered(pattern.rows, first, dtype)
            call = partial(multiply_small, blank(*pattern.parameter_shape, dtype=dtype), pattern, x, out)
            yield case(f"{pattern} {dtype} first {first}", call)


def of_moves():
    """The smaller product of halves, the kernels around it, and transpositions."""
    pattern = Pattern(1, 64, 64, 6)
    assert split.split_tile(pattern) == split.SMALL
    for first in (True, False):
        x, out = ordered(pattern.cols, first, "float32"), ordered(pattern.rows, first, "float32")
        factor = split.split_factor(blank(1, 6, 64, 64), pattern)
        yield case(f"split first {first}", partial(split.multiply_split, factor, pattern, x, out))
    for dtype in ("int16", "int32", "int64", "complex128"):
        x, size = blank(1536, 1536, dtype=dtype), getattr(torch, dtype).itemsize
        height, width, _ = transposition.TILES[size]
        # The exchange that makes both sides contiguous; 16 bytes are a thread's whole access.
        shared = height * width * size if size < 16 else 0
        for order, of in (("natural", (1, 1)), ("gathers", (16, 6)), ("scatters", (16, 6, True))):
            yield case(f"{size} bytes, {order}", partial(transposition.transpose, x, x, *of), shared=shared)


def of_mixing_and_decode():
    half = partial(blank, dtype="bfloat16")
    for side in (4, 16, 64):
        blast = Blast(1024, 1024, side, side, 128)
        scales, inner = half(*blast.factor_shapes[1]), half(128 * side, COLUMNS)
        yield case(f"mixing b{side}", partial(mixing.mix, blast, scales, inner, half(128 * side, COLUMNS)))
    for structure in (LowRank(11008, 4096, 1488), Monarch(11008, 4096, 16, 16, 96), Blast(11008, 4096, 16, 16, 1488)):
        for n in (1, 2):  # columns of bfloat16, batch-first, as one launch on an H200
            warps = decode.launch_of(structure, n, 132, decode.DECODE_TILE)[2]["num_warps"]
            more = {"counts": {r"atom\.global\.gpu\.acq_rel": 1}}
            # A program that is not resident would be waited for.
            more["registers"] = decode.REGISTERS // (32 * warps * decode.DECODE_TILE.programs)
            factors = [half(*shape) for shape in structure.factor_shapes]
            call = partial(decode.multiply_few, structure, factors, half(n, 4096).mT, half(n, 11008).mT)
            yield case(f"decode {structure.kind} n{n}", call, **more)


PRODUCTS = of_pairs, of_scaled_halves, of_8_bits, of_exact_products, of_stacks_and_triangles
STRUCTURED = of_tiles, of_small_blocks, of_moves, of_mixing_and_decode
FAMILIES = {"combinations": [of_combinations], "products": PRODUCTS, "structured": STRUCTURED, "int8": [of_8_bits]}


def cases():
    """Each kernel that the calls of a family launch, once, and what is asked of it."""
    driver.set_active(OfflineDriver("cuda", ARCH, 32))
    known = set()
    warmed = patch.object(KernelInterface, "__getitem__", lambda kernel, grid: partial(kernel.warmup, grid=grid))
    with warmed, patch.object(decode, "programs_of", lambda device: 132):
        for family in os.environ.get("FAMILY", "").split():
            for of in FAMILIES[family]:
                for label, call, asked in of():
                    torch.backends.cuda.matmul.allow_tf32 = label.startswith("triangle tf32")
                    kernels = set(kernels_of([call]))
                    assert kernels, label
                    for kernel in kernels - known:
                        wanted = ASKED["all"] | ASKED.get(kernel.name, {}) | asked
                        yield pytest.param(kernel, wanted, id=f"{label}: {kernel.name}")
                    known |= kernels


@pytest.mark.parametrize(("kernel", "asked"), list(cases()))
def test_a_kernel_fits(tmp_path, kernel, asked):
    module = load(kernel.text) if kernel.generated else import_module(kernel.module)
    made = getattr(module, kernel.name).preload(kernel.asked)
    report, code = resources(made.asm["cubin"], tmp_path), made.asm["ptx"]
    for what, most in (("REG", asked["registers"]), ("STACK", asked["spills"])):
        assert int(re.search(rf"{what}:(\d+)", report).group(1)) <= most, what
    assert asked["shared"] <= made.metadata.shared <= SHARED

    def counted(patterns):
        return {pattern: len(re.findall(pattern, code)) for pattern in patterns}

    assert all(counted(asked["wanted"]).values()), counted(asked["wanted"])
    assert not any(counted(asked["absent"]).values()), counted(asked["absent"])
    assert counted(asked["counts"]) == asked["counts"]
    assert all(counted([pattern])[pattern] >= least for pattern, least in asked["least"].items())
    if asked["before_stores"]:
        assert re.findall(r"(ld|st)\.global", code).index("st") >= asked["before_stores"]
