"""Levels of structured schemes as the GPU works them, on tensors of the processor: the sums by plain torch."""

from dataclasses import replace

import pytest
import torch

from lcma.errors import CatalogError
from lcma.kernels import Request, executor_for
from lcma.kernels.causal import cuda
from lcma.kernels.causal.candidates import TriangularSource, scheme_names
from lcma.kernels.causal.naive import plain, triangular
from lcma.kernels.cuda import level as cuda_level
from lcma.kernels.cuda import triangular_products
from lcma.kernels.request import structures_of
from lcma.schemes_db.resolve import resolve
from lcma.schemes_db.symmetry import SIDES, Triangle

from ..refusal import refuses, refuses_with


def level_of(name, triangle):
    return cuda_level.cuda_level(TriangularSource(name, triangle).program)


def product(level, a, b):
    """The product of two matrices, in memory full of NaN."""
    out = torch.full((1, a.shape[0], b.shape[1]), float("nan"), dtype=a.dtype)
    level.run(a[None], b[None], out)
    return out[0]


FEW = "2x2x2-tri-left-r6", "3x3x3-tri-left-r17", "eca-stage1", "eca-stage2", cuda.TWO_LEVELS
"""Schemes of every structure; one of two levels."""


@pytest.mark.parametrize("side", ["out", "left", "right"])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("names", [FEW, pytest.param(None, id="others", marks=pytest.mark.slow)])
def test_every_method_ignores_entries_outside_the_triangle(side, upper, names):
    generator = torch.Generator().manual_seed(1)
    for choice in names or {*scheme_names()} - {*FEW}:
        level = level_of(choice, Triangle(side, upper))
        m, k, n = (8 * parts for parts in level.target.shape)
        a, b = (torch.randint(-9, 10, size, generator=generator).double() for size in ((m, k), (k, n)))
        wanted = plain(a, b, Triangle(side, upper))
        for x in {"left": [a], "right": [b]}.get(side, []):
            x[triangular(torch.ones_like(x), upper) == 0] = 77.0
        assert torch.equal(product(level, a, b), wanted)


@pytest.mark.parametrize("choice", [cuda.SCHEME, cuda.TWO_LEVELS])
@pytest.mark.parametrize("upper", [False, True])
def test_triangles_are_cut_into_squares_of_every_size(monkeypatch, choice, upper):
    monkeypatch.setattr(triangular_products, "DIAGONAL", 3)
    level = level_of(choice, Triangle("out", upper))
    generator = torch.Generator().manual_seed(2)
    for block in (12, 7):  # halved twice, and not at all
        (m, k, n), size = level.target.shape, block
        a, b = (torch.randint(-9, 10, (rows * size, 2 * k), generator=generator).double() for rows in (m, n))
        assert torch.equal(product(level, a, b.mT), triangular(a @ b.mT, upper))


def test_long_float32_sums_go_in_pieces_where_a_factor_is_triangular(monkeypatch):
    pieces = []
    multiply = triangular_products._in_pieces

    def seen(x, y, z, longest):
        pieces.append(-(-x.shape[2] // longest))
        multiply(x, y, z, longest)

    monkeypatch.setattr(triangular_products, "LONGEST", 4)
    monkeypatch.setattr(triangular_products, "_in_pieces", seen)
    for side, dtype, cut in (("left", torch.float32, 4), ("left", torch.float64, 999), ("out", torch.float32, 999)):
        level = level_of(cuda.SCHEME, Triangle(side))
        a = torch.randint(-9, 10, (40, 40)).to(dtype)
        wanted = plain(a, a, Triangle(side))
        pieces.clear()
        assert torch.equal(product(level, a, a), wanted)
        inner = level.blocks(40, 40, 40, a.element_size())[1]  # whole segments of memory
        assert max(pieces) == -(-inner // cut)


def test_two_levels_are_one_with_a_finer_grid():
    one, two = (level_of(choice, Triangle("out")) for choice in ("eca-stage1", "eca-stage1/strassen"))
    assert two.target.shape == tuple(2 * size for size in one.target.shape)
    a, b = (torch.randint(-9, 10, size).double() for size in ((10, 13), (13, 10)))  # no multiple of the grid: padded
    assert torch.equal(product(two, a, b), (a @ b).tril())
    refuses_with(CatalogError, "no scheme 'nothing'", level_of, "eca-stage1/nothing", Triangle("out"))
    refuses("need a program on a grid 3x3x3", level_of, "eca-stage1/laderman", Triangle("out"))


@pytest.mark.parametrize("side", ["out", "left"])
def test_the_sums_of_b_are_made_once_for_half_products_too(side):
    level = level_of(cuda.SCHEME, Triangle(side))
    generator = torch.Generator().manual_seed(3)
    a, b = (torch.randint(-9, 10, (2, 40, 40), generator=generator).double() for _ in range(2))
    prepared = level.prepare(b[:1])
    out = torch.full((2, 40, 40), float("nan"), dtype=torch.float64)
    level.run(a, replace(prepared, b=torch.full_like(b[:1], float("nan"))), out)
    assert torch.equal(out, plain(a, b[:1], Triangle(side)))


@pytest.mark.parametrize("side", SIDES)
def test_a_scheme_that_is_passed_runs_as_its_name_does(side):
    """A right factor is run as the left one of the transposed product, which has another program."""
    request = Request(24, 24, 24, "float64", device="cuda", structures=structures_of(Triangle(side, True)))
    a, b = (torch.randint(-9, 10, (24, 24)).double() for _ in range(2))
    wanted = plain(a, b, Triangle(side, True))
    for scheme in ("eca-stage1", resolve("eca-stage1")[0]):
        assert torch.equal(executor_for(request, scheme, strategy="scheme").run(a, b), wanted)


def test_what_memory_does_not_hold_is_computed_by_strips(monkeypatch):
    tried = []

    def run(level, a, b, out):
        tried.append(level.target.shape)
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(cuda_level.CudaLevel, "run", run)
    q, k = torch.randn(2, 64, 32), torch.randn(2, 64, 32)
    request = Request(64, 32, 64, "float32", (2,), (2,), "cuda", structures=structures_of(Triangle("out")))
    with pytest.warns(UserWarning, match="too little memory for the sums of a scheme"):
        result = executor_for(request, cuda.TWO_LEVELS).run(q, k.mT)
    assert set(tried) == {(8, 8, 8)}
    torch.testing.assert_close(result, (q @ k.mT).tril())
