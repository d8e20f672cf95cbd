"""Run with TRITON_INTERPRET=1 by test_triton_kernels.py: kernels and executors on CPU tensors.

New tensors hold NaN until they are written, and results lie in the middle of a canvas whose border
must stay as it was: the interpreter itself says nothing of reads and writes out of bounds.
"""

from dataclasses import replace
from functools import partial

import pytest
import torch

import lcma
from lcma.kernels import Candidate, Profile, Request
from lcma.kernels.codegen.maps import maps_of
from lcma.kernels.codegen.triton_text import Combine, Direction
from lcma.kernels.cuda import naive
from lcma.kernels.cuda.combine import Combination, merge_of
from lcma.kernels.cuda.flat_program import flat_program
from lcma.kernels.cuda.level import CudaMethod, cuda_level
from lcma.kernels.cuda.requests import request_of
from lcma.kernels.dense.arrangements import GivenProgram
from lcma.kernels.planning.cache import plan_cache
from lcma.kernels.planning.profile import GemmRate
from lcma.kernels.plans import families
from lcma.kernels.torch import dispatch
from lcma.kernels.torch.recipe import ProductRecipe
from lcma.schemes_db import Kind

from ...refusal import refuses
from ..canvases import CANARY, close, drawn, written
from ..cases import each
from ..gpu import SCHEME, gpu_machine, program

# Relative, in the Frobenius norm, of products of one or two levels.
LIMITS = {torch.float64: 1e-13, torch.float32: 1e-5, torch.bfloat16: 0.05, torch.float16: 0.01}
NONE = Profile("none", "test")
READ = {"names": lambda text: tuple(text.split("/")), "dtype": lambda name: getattr(torch, name)}


@pytest.fixture(autouse=True)
def _poisoned(monkeypatch):
    """Fresh memory is NaN."""
    plain = torch.Tensor.new_empty
    monkeypatch.setattr(torch.Tensor, "new_empty", lambda *a, **k: plain(*a, **k).fill_(float("nan")))


def built(nest, request, method="batched"):
    """The executor of a program by one method."""
    candidate = Candidate("dense", "scheme", GivenProgram("nest", nest), (("method", method),))
    return SCHEME.build(candidate, request, gpu_machine(NONE))


@each("names, dtype, order", __file__, "maps", **READ)
def test_maps(names, dtype, order):
    """Both splits and the merge against the naive map, where blocks reach over the edge."""
    torch.manual_seed(0)
    whole = flat_program(program(*names))
    maps, (m, k, n) = whole.maps, whole.program.target.shape
    sides = ((whole.left, maps.left_blocks, (m, k)), (whole.right, maps.right_blocks, (k, n)))
    # Terms are added in another order than in the naive map, and the interpreter rounds bfloat16 its own way.
    tolerance = {torch.float64: 1e-13, torch.float32: 1e-5, torch.bfloat16: 2**-6, torch.float16: 2**-9}[dtype]
    for linear, blocks, grid in sides:
        height, width = 5, 6
        matrix = drawn((1, height * grid[0] - 3, width * grid[1] - 2), dtype, order)
        split = partial(Combination(Combine(linear, Direction.TO_STACK, blocks)).run, matrix)
        stack = written(split, (1, len(linear.results), height, width), dtype)
        cut = naive.blocks_of(naive.padded(matrix[0], height, width, grid), grid)
        expected = torch.stack(naive.apply_map(linear, [cut[block] for block in blocks]))
        torch.testing.assert_close(stack[0], expected, rtol=tolerance, atol=tolerance)
    stack = drawn((1, whole.rank, 5, 6), dtype)
    merge = Combination(Combine(whole.merge, Direction.FROM_STACK, maps.stored))
    out = written(lambda out: merge.run(out, stack), (1, 5 * m - 4, 6 * n - 5), dtype, order)
    merged = dict(zip(maps.stored, naive.apply_map(whole.merge, list(stack[0])), strict=True))
    rows = [torch.cat([merged[i, j] for j in range(n)], 1) for i in range(m)]
    expected = torch.cat(rows)[: 5 * m - 4, : 6 * n - 5]
    torch.testing.assert_close(out[0], expected, rtol=8 * tolerance, atol=8 * tolerance)


@each("names, dtype, turns, tolerance", __file__, "loops", **READ)
def test_loops_over_a_level_compute_what_straight_line_code_does(names, dtype, turns, tolerance):
    """Blocks reach over the edge; where the order is the same an infinity meets no coefficient of zero."""
    torch.manual_seed(3)
    level = cuda_level(program(*names))
    m, k, n = level.target.shape
    for combination, (rows, cols) in ((level.left, (m, k)), (level.right, (k, n)), (level.merge, (m, n))):
        assert len(combination.form.nest.coefficients) == turns
        straight = Combination(replace(combination.form, nest=None))
        matrix = drawn((1, 2 * rows - 1, 3 * cols - 2), dtype)
        stack = drawn((1, level.flat.rank, 2, 3), dtype)
        if not tolerance:
            matrix[0, 3, 4] = stack[0, 5, 0, 1] = float("inf")
        results = []
        for one in (combination, straight):
            results.append((matrix.clone(), stack.clone()))
            one.run(*results[-1])
        torch.testing.assert_close(*results, rtol=tolerance, atol=tolerance, equal_nan=True)


def test_the_other_triangle_of_a_half_block_is_not_read_and_comes_out_zero():
    maps = maps_of(program("strassen"))
    kinds = tuple(Kind.LOWER if i == j else Kind.FULL for i, j in maps.left_blocks)
    matrix = drawn((1, 10, 10), torch.float64)
    clean = matrix.clone()
    for at in (0, 5):
        part = slice(at, at + 5)
        matrix[0, part, part] += torch.full((5, 5), float("nan"), dtype=torch.float64).triu(1)
        clean[0, part, part] = clean[0, part, part].tril()
    stacks = [torch.full((1, 7, 5, 5), float("nan"), dtype=torch.float64) for _ in range(2)]
    Combination(Combine(maps.left, Direction.TO_STACK, maps.left_blocks, kinds)).run(matrix, stacks[0])
    Combination(Combine(maps.left, Direction.TO_STACK, maps.left_blocks)).run(clean, stacks[1])
    torch.testing.assert_close(*stacks)
    out = torch.full((1, 10, 10), CANARY, dtype=torch.float64)
    grid = ((Kind.UPPER, Kind.FULL), (Kind.ABSENT, Kind.UPPER))
    there = [i for i, block in enumerate(maps.stored) if block != (1, 0)]
    merge = replace(maps.merge, results=tuple(maps.merge.results[i] for i in there))
    merge_of(merge, tuple(maps.stored[i] for i in there), grid).run(out, stacks[1])
    for i, whole in zip(there, naive.apply_map(merge, list(stacks[1][0])), strict=True):
        row, col = maps.stored[i]
        wanted = whole.triu() if row == col else whole
        torch.testing.assert_close(out[0, 5 * row : 5 * row + 5, 5 * col : 5 * col + 5], wanted)
    assert (out[0, 5:, :5] == 0).all()


@each("method, names, dtype", __file__, "products", **READ)
def test_products(method, names, dtype):
    """Any size and storage order; `out` with borders; the same bits again; with B packed; in pieces."""
    torch.manual_seed(1)
    nest = program(*names)
    for (m, k, n), order in (((1, 1, 1), "rows"), ((5, 31, 3), "columns"), ((11, 7, 5), "scattered")):
        a, b = drawn((m, k), dtype, order), drawn((k, n), dtype, order)
        executor = built(nest, request_of(a, b), method)
        result = executor.run(a, b)
        assert close(result, a.double() @ b.double(), LIMITS[dtype])
        prepared = partial(executor.run, a, executor.prepare(b))
        assert torch.equal(written(prepared, (m, n), dtype, order), result)
        for _ in range(2):  # the second is repeated
            assert torch.equal(executor.again(a, b), result)
    a, b = drawn((37, 5), dtype), drawn((5, 9), dtype)
    request = request_of(a, b)
    most = 2 * built(nest, request, method).workspace // 3
    smaller = built(nest, replace(request, max_workspace=most), method)
    assert smaller.core.pieces > 1
    assert close(smaller.run(a, b), a.double() @ b.double(), LIMITS[dtype])


@pytest.mark.parametrize(
    ("method", "m", "dtype", "k"), [("batched", 5, torch.float64, 284), ("stack", 250, torch.float16, 1136)]
)
def test_products_whose_inner_blocks_are_padded_to_lines(method, m, dtype, k):
    """The grid divides k, and its halves are a segment short of whole lines."""
    torch.manual_seed(3)
    a, b = drawn((m, k), dtype), drawn((k, 9), dtype, "columns")
    level = cuda_level(program("strassen"), CudaMethod(method))
    prepared = level.prepare(b.unsqueeze(0))
    assert prepared.sums.shape == level.prepared_shape(k, 9, a.element_size())
    assert prepared.sums.shape[2] > k // 2
    for right in (b.unsqueeze(0), prepared):
        out = written(partial(level.run, a.unsqueeze(0), right), (1, m, 9), dtype)
        assert close(out[0], a.double() @ b.double(), LIMITS[dtype])


@each("method, of_a, of_b", __file__, "batches")
def test_batches(method, of_a, of_b):
    torch.manual_seed(2)
    a, b = drawn((*of_a, 5, 7), torch.float64), drawn((*of_b, 7, 3), torch.float64)
    request = request_of(a, b)
    result = built(program("strassen"), request, method).run(a, b)
    torch.testing.assert_close(result, a @ b)
    pieces = built(program("strassen"), replace(request, max_workspace=40 * 7 * 64), method)
    torch.testing.assert_close(pieces.run(a, b), a @ b)


def test_repetitions_are_for_the_same_strides_and_addresses_and_run_in_pieces_without_memory(monkeypatch):
    executor = built(program("strassen"), Request(8, 8, 8, "float64"))
    a, b = drawn((8, 8), torch.float64), drawn((8, 8), torch.float64)
    executor.again(a, b)
    assert executor._repeated(a, b) is not None
    moved = drawn((8, 9), torch.float64).flatten()[1:65].view(8, 8)
    for left, right in ((a.mT, b), (a, b.mT), (moved, b)):
        assert executor._repeated(left, right) is None
        torch.testing.assert_close(executor.again(left, right), left @ right)
    a, b = drawn((64, 32), torch.float64), drawn((32, 32), torch.float64)
    executor = built(program("strassen"), request_of(a, b))
    wanted = executor.again(a, b)

    def scarce(*_):
        raise torch.OutOfMemoryError("none left")

    monkeypatch.setattr(executor, "_repeated", scarce)
    assert torch.equal(executor.again(a, b), wanted)


def test_blocks_that_are_not_wanted_come_out_as_zeros():
    nest = lcma.program_of(lcma.naive(lcma.parse_target("3x3x3:band(1)")))
    a, b = drawn((10, 8), torch.float64), drawn((8, 11), torch.float64)
    result = built(nest, Request(10, 8, 11, "float64")).run(a, b)
    expected = a @ b
    expected[:4, 8:] = 0
    expected[8:, :4] = 0
    torch.testing.assert_close(result, expected)


def test_less_memory_than_thought(monkeypatch):
    a, b = drawn((64, 32), torch.float64), drawn((32, 32), torch.float64)
    executor = built(program("strassen"), request_of(a, b))
    core = cuda_level(program("strassen"))
    plain, calls = core._piece, []

    def scarce(left, *rest):
        calls.append(left.shape[1])
        if left.shape[1] > 20:
            raise torch.OutOfMemoryError("none left")
        plain(left, *rest)

    monkeypatch.setattr(core, "_piece", scarce)
    with pytest.warns(UserWarning, match="has too little memory"):
        result = executor.run(a, b)
    torch.testing.assert_close(result, a @ b)
    assert calls[:2] == [64, 32]
    monkeypatch.setattr(core, "_piece", lambda *_: (_ for _ in ()).throw(torch.OutOfMemoryError("none")))
    with pytest.warns(UserWarning, match="has too little memory"), pytest.raises(lcma.PlanError, match="does not fit"):
        executor.run(a, b)


SPEEDS = {"whole": 1e6, "batched 7": 1e12}
RATES = tuple(GemmRate("float32", size, size, size, SPEEDS[mode], mode) for size in (8, 64) for mode in SPEEDS)
GOOD = Profile("pretended", "none", (("multiprocessors", "1"),), RATES, 1e15, 1e15, source="measured")
"""It makes every scheme look good."""


@pytest.fixture
def pretended(monkeypatch):
    """A list of one profile: that of the GPU."""
    profiles = [NONE]
    monkeypatch.setattr(families, "machine_for", lambda request, measure=True: gpu_machine(profiles[0]))
    plan_cache.clear()
    yield profiles
    plan_cache.clear()


def test_dispatch(pretended, dispatched):
    a, b = drawn((3, 4, 16), torch.float32), drawn((16, 12), torch.float32)
    for text in ("auto", "strassen", "strassen/strassen@scheme:batched", "strassen?"):
        torch.testing.assert_close(dispatched(text, a, b), a @ b, rtol=1e-3, atol=1e-4)
    whole = a.flatten(0, 1)
    given = ProductRecipe.parse("strassen?")
    for recipe in (ProductRecipe(), given):
        assert isinstance(dispatch.recipe_executor(recipe, whole, b), dispatch.VendorExecutor)
    plan_cache.clear()
    pretended[0] = GOOD
    assert not isinstance(dispatch.recipe_executor(given, whole, b), dispatch.VendorExecutor)
    recipe, stack = dispatch.pack(ProductRecipe(), b, 12)
    assert recipe.where_faster
    assert recipe.levels
    result = dispatch.run(recipe, a, b * float("nan"), packed=stack)  # the sums stand for b
    torch.testing.assert_close(result, a @ b, rtol=1e-3, atol=1e-4)
    refuses("rows", dispatch.pack, ProductRecipe(), b, 0)
