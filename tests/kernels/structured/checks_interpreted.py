"""Run with TRITON_INTERPRET=1 by test_triton_kernels.py: the Triton kernels on tensors of a processor.

Sizes are no multiples of a tile, fresh memory is NaN, and results lie in the middle of a canvas whose border must
stay as it was.
"""

import itertools
from functools import partial

import pytest
import torch
import triton
import triton.language as tl

from lcma.kernels import Layout, decision_for
from lcma.kernels.block_low_rank import Blast, LowRank
from lcma.kernels.factored import factored_request
from lcma.kernels.kronecker import FactoredMatrix, KroneckerSparse, Pattern, dft
from lcma.kernels.precision import arithmetic_of
from lcma.kernels.structured import cuda_costs
from lcma.kernels.structured.decode_kernel import wait_for_all
from lcma.kernels.structured.mixing import mix
from lcma.kernels.structured.split import multiply_split, split_factor
from lcma.kernels.structured.tiles import FactorTile, multiply_tiled
from lcma.kernels.structured.transposition import transpose
from lcma.kernels.structured.views import PERMUTED

from ...refusal import refuses
from ..canvases import CANARY, written
from ..cases import PATTERNS, STRUCTURE, each
from .products import LAYOUTS, check_product

TILES = [FactorTile(16, 16, 16, j, 4, 2) for j in (1, 2, 4)]
LIMITS = {"float64": 1e-13, "float32": 1e-6, "fp32-accurate": 1e-6, "tf32": 1e-6, "float16": 2e-3}


def as_read(tensor, dtype):
    """The numbers that are multiplied: of tf32 the nearest of eleven digits, which the interpreter does not change."""
    if dtype != "tf32":
        return tensor
    mantissa, exponent = torch.frexp(tensor)
    return torch.ldexp(mantissa.sign() * torch.floor(mantissa.abs() * 2**11 + 0.5) / 2**11, exponent)


def check_strides(multiply, full, x, limit, read=lambda x: x):
    """multiply(x, out) writes full @ x and nothing else, both batch-first and batch-last; `read`: what is multiplied.

    The limit is that of the error of a column relative to it.
    """
    truth = full @ read(x).to(full.dtype)
    for given, order in itertools.product((x, x.T.contiguous().T), ("rows", "columns")):
        found = written(partial(multiply, given), truth.shape, x.dtype, order).to(full.dtype)
        assert ((found - truth).norm(dim=0) <= limit * truth.norm(dim=0)).all()


def fitted_tiles(*patterns):
    """Every pattern with the tiles as they fit it, each once."""
    fitted = dict.fromkeys((pattern, tile.fitted(pattern)) for pattern in patterns for tile in TILES)
    return [pytest.param(pattern, tile, id=f"{pattern}-j{tile.j}") for pattern, tile in fitted]


@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize(
    ("pattern", "tile"), fitted_tiles(Pattern(2, 17, 19, 3), Pattern(1, 16, 32, 8), Pattern(3, 5, 4, 1))
)
def test_any_strides_are_read_and_only_the_result_is_written(dtype, pattern, tile):
    kind = getattr(torch, arithmetic_of(dtype).dtype)
    weights = torch.randn(pattern.parameter_shape, dtype=torch.float64).to(kind)
    full = torch.from_numpy(FactoredMatrix.of(pattern, as_read(weights, dtype).double().numpy()).dense())
    x = torch.randn(pattern.cols, 21, dtype=torch.float64).to(kind)
    multiply = partial(multiply_tiled, weights, pattern, arithmetic=dtype, tile=tile)
    check_strides(multiply, full, x, LIMITS[dtype], lambda x: as_read(x, dtype))


@pytest.mark.parametrize("dtype", ["float32", "float16", "complex128"])
@each("patterns", __file__, "small_blocks", **PATTERNS)
def test_small_blocks_are_multiplied_from_any_strides(dtype, patterns):
    limit = {"float32": 1e-6, "float16": 2e-3, "complex128": 1e-13}[dtype]
    for n, layouts in itertools.product((1, 37), itertools.product(LAYOUTS, LAYOUTS)):
        check_product(KroneckerSparse(patterns), n, "gather", dtype, layouts, "cuda", limit)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_factors_of_transforms_are_gathered(dtype):
    plan = check_product(dft(24, radix=4).matrix.structure, 5, "gather", dtype, device="cuda")
    assert (plan.seconds is None) == (dtype not in cuda_costs.GATHER_SHARES)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize(("n", "blocks", "inner", "d"), [(1, 1, 1, 1), (7, 26, 1, 5), (65, 1, 11, 3), (128, 2, 4, 8)])
def test_bits_are_transposed_whatever_the_dtype(dtype, n, blocks, inner, d):
    kind, features = getattr(torch, dtype), blocks * inner * d
    source = torch.randn(n, features + 3, dtype=torch.complex128 if "complex" in dtype else torch.float64).to(kind)
    canvas = torch.full((features + 2, n + 5), CANARY, dtype=kind)
    wanted = canvas.clone()
    PERMUTED.gather(source[:, 2:-1].mT, wanted[1:-1, 3:-2], blocks, inner, d)
    transpose(source[:, 2:-1], canvas[1:-1, 3:-2], inner, d)
    assert torch.equal(canvas, wanted)
    assert d > 1 or torch.equal(canvas[1:-1, 3:-2], source[:, 2:-1].mT)
    back = torch.full((n + 2, features + 5), CANARY, dtype=kind)
    wanted = back.clone()
    PERMUTED.scatter(canvas[1:-1, 3:-2], wanted[1:-1, 3:-2].mT, blocks, inner, d)
    transpose(canvas[1:-1, 3:-2], back[1:-1, 3:-2], inner, d, scatters=True)
    assert torch.equal(back, wanted)
    assert torch.equal(back[1:-1, 3:-2], source[:, 2:-1])


@pytest.mark.parametrize("pattern", [Pattern(2, 17, 19, 3), Pattern(1, 70, 5, 2), Pattern(3, 5, 4, 1)], ids=str)
def test_halves_are_as_exact_as_float32_from_any_strides(pattern):
    weights = torch.randn(pattern.parameter_shape)
    factor = split_factor(weights, pattern)
    n, full = 21, torch.from_numpy(FactoredMatrix.of(pattern, weights.double().numpy()).dense())
    x = torch.randn(pattern.cols, n) * torch.exp2(torch.linspace(-80, 80, n).round())
    check_strides(partial(multiply_split, factor, pattern), full, x, 4e-7)


def test_a_chain_is_multiplied_by_halves():
    structure = KroneckerSparse((Pattern(1, 6, 4, 2), Pattern(8, 1, 5, 1)))
    check_product(structure, 9, "split", "float32", LAYOUTS[1:] * 2, "cuda", limit=4e-7, precision="fp32-accurate")


@each("strategy, patterns, dtype", __file__, "short_chains", **PATTERNS)
def test_chains_are_multiplied_in_every_layout(strategy, patterns, dtype):
    structure = KroneckerSparse(patterns)
    for first, last in itertools.product(LAYOUTS, LAYOUTS):
        ends = ((first, patterns[-1]), (last, patterns[0]))
        if strategy == "transposed" and not any(one is Layout.COLUMNS and pattern.d > 1 for one, pattern in ends):
            request = factored_request(structure, 11, dtype, device="cuda", layouts=(first, last))
            refuses("nothing is to be transposed", decision_for, request, strategy=strategy)
            continue
        check_product(structure, 11, strategy, dtype, (first, last), "cuda")


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@each("strategy, structure", __file__, "products", **STRUCTURE)
def test_only_the_result_is_written_and_it_is_the_product(strategy, structure, dtype):
    if dtype == "float32" and strategy == "tiled" and not isinstance(structure, LowRank):
        return
    for n in (1, 2) if strategy == "decode" else (1, 21, 130):
        check_product(structure, n, strategy, dtype, LAYOUTS[1:] * 2, "cuda", limit={"float32": 1e-6}.get(dtype))


def test_the_mixture_is_that_of_the_vendor_for_any_tile():
    structure = Blast(24, 36, 3, 4, 7)
    factors = [torch.from_numpy(w).half() for w in FactoredMatrix.random(structure).factors]
    inner = torch.randn(21, 40).half()[:, :37]
    wanted = factors[1].float() @ inner.reshape(7, 3, 37).float()
    for tile in ((16, 1), (16, 4), (64, 3)):
        mixed = torch.full((28, 40), torch.nan, dtype=torch.float16)[:, :37]
        mix(structure, factors[1], inner, mixed, tile)
        torch.testing.assert_close(mixed.reshape(7, 4, 37).float(), wanted, atol=3e-3, rtol=3e-3)


@triton.jit
def pass_once(counter, passed, programs):
    wait_for_all(counter, programs)
    tl.store(passed, 1)


def test_the_last_to_come_passes_the_barrier_and_leaves_the_counter_ready_for_the_next():
    counter, programs = torch.tensor([0], dtype=torch.int32), 528
    for flipped in (-(1 << 31), 0, -(1 << 31)):
        passed = torch.zeros(1, dtype=torch.int32)
        counter += programs - 1
        pass_once[(1,)](counter, passed, programs)
        assert passed.item() == 1
        assert counter.item() == flipped
