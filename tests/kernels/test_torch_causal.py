"""Triangular and masked products of tensors, and attention: values, derivatives of every mode and order, levels."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch.library import opcheck
from torch.utils.flop_counter import FlopCounterMode

import lcma
from lcma.kernels import Request, executor_for
from lcma.kernels.causal import cuda, naive
from lcma.kernels.causal.block_masks import kinds_of
from lcma.kernels.causal.candidates import TriangularSource, scheme_names, stable_scheme_names
from lcma.kernels.causal.naive import plain
from lcma.kernels.cuda import level as cuda_level
from lcma.kernels.cuda import requests, triangular_products
from lcma.kernels.cuda.requests import request_of
from lcma.kernels.request import structures_of
from lcma.kernels.torch import masked, triangular
from lcma.kernels.triangular import causal_pv, causal_qk, masked_matmul, syrk, trmm
from lcma.schemes_db.symmetry import SIDES, Triangle, derive

from ..refusal import refuses, refuses_with
from .cases import present
from .gradients import compiles, drawn, every_derivative, same_gradients, same_hessians

pytestmark = [
    pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated"),  # torch's own rules of forward AD
    pytest.mark.usefixtures("one_thread"),
]

HEADS = [(1, 1, 4, 4, 3), (2, 1, 4, 4, 2), (2, 1, 5, 4, 2), (1, 1, 4, 5, 2)]
"""Heads, heads that share, rows, columns, width."""


@pytest.fixture
def of_gpu(monkeypatch):
    """Run on CPU tensors what a GPU runs, strips and schemes, with their sums by plain torch."""
    monkeypatch.setitem(triangular.PRODUCTS, "cpu", triangular.PRODUCTS["cuda"])
    monkeypatch.setattr(requests, "request_of", lambda *a, **k: replace(request_of(*a, **k), device="cuda"))


@pytest.fixture(params=["cpu", "gpu"])
def on_either(request):
    """The same test on what a processor runs and on what a GPU runs."""
    if request.param == "gpu":
        request.getfixturevalue("of_gpu")
    return request.param


def integers(*shape):
    return torch.randint(-9, 10, shape).double()


def repeated(x, like):
    """The matrices of x, each for all heads that share it."""
    return x if x.ndim < 3 else x.repeat_interleave(like.shape[-3] // x.shape[-3], -3)


def plain_qk(q, k):
    return (q @ repeated(k, q).mT).tril()


def plain_pv(p, v):
    return p.tril() @ repeated(v, p)


def plain_trmm(a, b, side, lower, transposed, unit):
    factor = a.tril() if lower else a.triu()
    if unit:
        factor = factor - torch.diag(factor.diagonal()) + torch.eye(len(a), dtype=a.dtype)
    factor = factor.mT if transposed else factor
    return factor @ b if side == "left" else b @ factor


@pytest.mark.parametrize("sizes", HEADS)
def test_every_derivative_of_qk_and_pv(on_either, sizes):
    heads, shared, rows, cols, width = sizes
    q, p, k = drawn(heads, rows, width), drawn(heads, rows, cols), drawn(shared, cols, width)
    for product, left in ((causal_qk, q), (causal_pv, p)):
        every_derivative(partial(product, strategy="strips"), (left, k), check_batched_grad=on_either == "cpu")


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("unit", [False, True])
def test_every_derivative_of_trmm(on_either, side, unit):
    a, b = drawn(4, 4), drawn(4, 3) if side == "left" else drawn(3, 4)
    for lower in (False, True):
        for transposed in (False, True):
            options = {"side": side, "lower": lower, "transposed": transposed, "unit": unit}
            ours = partial(trmm, strategy="strips", **options)
            same_gradients(ours, partial(plain_trmm, **options), (a, b))
            every_derivative(ours, (a, b))


@pytest.mark.parametrize("lower", [False, True])
def test_every_derivative_of_syrk(on_either, lower):
    for transposed in (False, True):
        every_derivative(partial(syrk, lower=lower, transposed=transposed, strategy="strips"), (drawn(2, 4, 3),))


SCHEMES = "eca-stage1", "4x4x4-tri-out-r34", "2x2x2-tri-left-r6"


@pytest.mark.parametrize("choice", [{}, {"strategy": "strips"}, *({"scheme": name} for name in SCHEMES)], ids=str)
def test_gradients_by_each_strategy(on_either, choice):
    if on_either == "gpu" and not choice:
        return  # its kernel needs one
    several = (4, 2, 32, 32, 8), (1, 1, 600, 600, 12), (1, 1, 16, 24, 4), (2, 1, 24, 16, 4)
    for heads, shared, rows, cols, width in several:
        q, k, p = drawn(heads, rows, width), drawn(shared, cols, width), drawn(heads, rows, cols)
        same_gradients(partial(causal_qk, **choice), plain_qk, (q, k))
        same_gradients(partial(causal_pv, **choice), plain_pv, (p, k))
    a, b = drawn(32, 32), drawn(32, 8)
    for transposed in (False, True):
        for side, other in (("left", b), ("right", drawn(8, 32))):
            options = {"side": side, "lower": True, "transposed": transposed, "unit": transposed}
            same_gradients(partial(trmm, **options, **choice), partial(plain_trmm, **options), (a, other))
    same_gradients(partial(syrk, **choice), lambda x: (x @ x.mT).tril(), (b,))


def test_what_is_outside_a_triangle_is_not_used_and_has_no_gradient(on_either):
    outside = torch.ones(6, 6, dtype=torch.bool).triu(1)
    a = drawn(6, 6, grad=False).masked_fill(outside, torch.nan).requires_grad_()
    b = drawn(6, 4)
    for product in (causal_pv, trmm):
        first, second = torch.autograd.grad(product(a, b).square().sum(), (a, b), create_graph=True)
        assert (first[outside] == 0).all()
        twice = torch.autograd.grad(first.square().sum() + second.square().sum(), (a, b))
        assert (twice[0][outside] == 0).all()
        assert all(torch.isfinite(x).all() for x in (first, second, *twice))
    wide = drawn(6, 9, grad=False)
    wide[:, 6:] = torch.nan
    (gradient,) = torch.autograd.grad(causal_pv(wide.requires_grad_(), drawn(9, 2)).sum(), wide)
    assert (gradient[:, 6:] == 0).all()


def test_complex_operands_integers_and_halves():
    q, k, a = (drawn(5, 5, dtype=torch.complex128) for _ in range(3))
    same_gradients(causal_qk, lambda x, y: (x @ y.mT).tril(), (q, k))
    same_gradients(causal_pv, lambda x, y: x.tril() @ y, (q, k))
    same_gradients(syrk, lambda x: (x @ x.mT).tril(), (a,))
    every_derivative(partial(trmm, side="right", transposed=True), (a, k))
    a = torch.randint(-9, 9, (6, 6))
    assert torch.equal(trmm(a, a), a.tril() @ a)
    for dtype in (torch.float16, torch.bfloat16):
        q, k = drawn(8, 5, dtype=dtype), drawn(6, 5, dtype=dtype)
        product = causal_qk(q, k)
        assert product.dtype == dtype
        torch.testing.assert_close(product, (q.float() @ k.float().mT).tril().to(dtype))
        (gradient,) = torch.autograd.grad(product.sum(), q)
        wanted = torch.ones(8, 6).tril() @ k.float()
        torch.testing.assert_close(gradient, wanted.to(dtype))


def test_transforms_of_torch_func_and_one_graph():
    q, k = drawn(5, 3, grad=False), drawn(4, 3, grad=False)

    def ours(x):
        return causal_qk(x, k).sin().sum()

    def theirs(x):
        return plain_qk(x, k).sin().sum()

    torch.testing.assert_close(*(torch.func.jvp(one, (q,), (q,)) for one in (ours, theirs)))
    same_hessians(ours, theirs, q)
    many, wide = drawn(2, 5, 3, grad=False), drawn(4, 3, 2, grad=False)
    mapped = torch.vmap(causal_qk, in_dims=(0, 2))(many, wide)
    torch.testing.assert_close(mapped, torch.vmap(plain_qk, in_dims=(0, 2))(many, wide))
    shared = torch.vmap(causal_qk, in_dims=(0, None))(many, drawn(3, 4, 3, grad=False))
    assert shared.shape == (2, 3, 5, 4)

    def both(q, k, v):
        return causal_pv(causal_qk(q, k, strategy="strips").sin(), v, strategy="strips")

    compiles(both, drawn(2, 5, 2), drawn(1, 4, 2), drawn(1, 4, 2))


def test_the_operators_are_sound_and_compile():
    a, b = drawn(2, 4, 4), drawn(4, 3)
    for side, operands in (("left", (a, b)), ("right", (drawn(2, 3, 4), a)), ("out", (a, drawn(4, 4)))):
        some = {} if side == "left" else {"test_utils": ("test_schema", "test_faketensor")}
        opcheck(torch.ops.lcma.triangular_mm.default, (*operands, side, False, False, None, True), **some)
    with FlopCounterMode(display=False) as counter:
        triangular.triangular_mm(a.detach(), b.detach(), Triangle("left"))
    assert counter.get_total_flops() == 2 * (2 * 10 * 3)
    a, b, mask = drawn(8, 3), drawn(3, 8), torch.ones(2, 2, dtype=torch.bool).tril()
    opcheck(torch.ops.lcma.masked_mm.default, (a, b, mask.to(torch.int8), "out"))
    left = drawn(8, 8), drawn(8, 2), mask.to(torch.int8), "left"
    opcheck(torch.ops.lcma.masked_mm.default, left, test_utils=("test_schema", "test_faketensor"))
    compiles(lambda x, y: masked_matmul(x, y, mask).sin(), a, b)


sdpa = torch.nn.functional.scaled_dot_product_attention


@pytest.mark.parametrize("choice", [{"strategy": "products"}, {"scheme": "eca-stage1"}], ids=str)
@pytest.mark.parametrize("sizes", [
    (4, 2, 33, 33, 8), (2, 2, 7, 11, 5), pytest.param((2, 1, 11, 7, 5), marks=pytest.mark.slow),
    pytest.param((1, 1, 1, 1, 1), marks=pytest.mark.slow), (3, 3, 600, 600, 16),
])  # fmt: skip
def test_like_torch_forward_and_backward(choice, sizes):
    heads, shared, rows, cols, width = sizes
    q, k, v = drawn(2, heads, rows, width), drawn(2, shared, cols, width), drawn(2, shared, cols, width)
    theirs = partial(sdpa, is_causal=True, enable_gqa=True)
    same_gradients(partial(lcma.causal_attention, enable_gqa=True, **choice), theirs, (q, k, v))


def test_derivatives_of_attention_with_bias_sinks_and_dropout():
    q, k, v = drawn(1, 4, 6, 3), drawn(1, 2, 5, 3), drawn(1, 2, 5, 3)
    products, ours = (partial(lcma.causal_attention, enable_gqa=True, strategy=one) for one in ("products", "strips"))

    def dropped(q, k, v):
        torch.manual_seed(2)
        return products(q, k, v, dropout_p=0.3)

    def biased(attention, q, k, v, bias, sinks):
        return attention(q, k, v, bias, sinks=sinks)

    scaled = partial(biased, partial(products, scale=0.7))
    assert torch.autograd.gradcheck(scaled, (q, k, v, drawn(4, 6, 5), drawn(4)), fast_mode=True)
    assert torch.autograd.gradcheck(dropped, (q, k, v), fast_mode=True)
    q, k, v = drawn(1, 2, 4, 3), drawn(1, 1, 5, 3), drawn(1, 1, 5, 2)

    def theirs(q, k, v):
        scores = (q @ k.mT / 3**0.5).masked_fill(torch.ones(4, 5).triu(1).bool(), -torch.inf)
        return scores.softmax(-1) @ v

    every_derivative(partial(biased, ours), (q, k, v, drawn(4, 5), drawn(2)))
    every_derivative(partial(ours, attn_mask=torch.ones(4, 5, dtype=torch.bool).tril(1)), (q, k, v))
    every_derivative(lambda x: ours(x, x.sin(), x), (drawn(5, 3),))
    plain = tuple(x.detach() for x in (q, k, v))
    torch.testing.assert_close(torch.func.jvp(ours, plain, plain), torch.func.jvp(theirs, plain, plain))
    jacobians = (torch.func.jacrev(product, (0, 1, 2))(*plain) for product in (ours, theirs))
    torch.testing.assert_close(*jacobians)
    torch.testing.assert_close(torch.vmap(ours)(*plain), theirs(*plain))


@pytest.mark.parametrize("choice", ["products", "strips"])
def test_attention_is_compiled_whole(choice):
    def ours(q, k, v, bias, sinks):
        return lcma.causal_attention(q, k, v, bias, enable_gqa=True, sinks=sinks, strategy=choice)

    compiles(ours, drawn(1, 2, 9, 4), drawn(1, 1, 7, 4), drawn(1, 1, 7, 3), drawn(9, 7), drawn(2))


def test_sinks_are_a_key_without_a_value_and_a_row_that_sees_nothing_is_zero():
    q, k, v = (drawn(2, 3, 9, 4, grad=False) for _ in range(3))
    sinks = drawn(3, grad=False)
    scores = (q @ k.mT / 2).masked_fill(torch.ones(9, 9).triu(1).bool(), -torch.inf)
    extended = torch.cat([scores, sinks[:, None, None].expand(2, 3, 9, 1)], -1).softmax(-1)
    output, weights = lcma.causal_attention(q, k, v, sinks=sinks, need_weights=True)
    torch.testing.assert_close(weights, extended[..., :-1])
    torch.testing.assert_close(output, extended[..., :-1] @ v)
    q, k, v = (drawn(1, 1, 4, 2) for _ in range(3))
    seen = torch.ones(4, 4, dtype=torch.bool)
    seen[2] = False
    out = lcma.causal_attention(q, k, v, seen)
    assert (out[0, 0, 2] == 0).all()
    assert all(torch.isfinite(x).all() for x in torch.autograd.grad(out.sum(), (q, k, v)))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_precisions_and_autocast(dtype):
    q, k, v = (drawn(1, 2, 65, 16, dtype=dtype, grad=False) for _ in range(3))
    out = lcma.causal_attention(q, k, v, strategy="products")
    assert out.dtype == dtype
    truth = sdpa(q.double(), k.double(), v.double(), is_causal=True)
    assert (out.double() - truth).norm() / truth.norm() < {torch.float32: 1e-6, torch.float16: 1e-3}.get(dtype, 1e-2)
    with torch.autocast("cpu", torch.bfloat16):
        assert lcma.causal_attention(q.float(), k.float(), v.float(), strategy="products").dtype == torch.bfloat16


@pytest.mark.slow
def test_errors_stay_within_twice_the_standard_algorithms():
    worst: dict[str, float] = {}
    for seed in range(10):
        torch.manual_seed(seed)
        q, k, v = (torch.randn(1, 1, 256, 128) for _ in range(3))
        truth = sdpa(q.double(), k.double(), v.double(), is_causal=True)
        future = torch.ones(256, 256).triu(1).bool()
        plain = (q / 128**0.5 @ k.mT).masked_fill(future, -torch.inf).softmax(-1) @ v
        ours = {name: lcma.causal_attention(q, k, v, scheme=name) for name in stable_scheme_names()}
        for choice, got in {"standard": plain, **ours}.items():
            worst[choice] = max(worst.get(choice, 0.0), float((got - truth).norm() / truth.norm()))
    assert max(worst[choice] for choice in ("standard", *stable_scheme_names())) <= 2 * worst["standard"]
    assert stable_scheme_names()


def level_of(name, triangle):
    return cuda_level.cuda_level(TriangularSource(name, triangle).program)


def run_level(level, a, b):
    """The product of two matrices by a level, in memory full of NaN."""
    out = torch.full((1, a.shape[0], b.shape[1]), float("nan"), dtype=a.dtype)
    level.run(a[None], b[None], out)
    return out[0]


FEW = "2x2x2-tri-left-r6", "3x3x3-tri-left-r17", "eca-stage1", "eca-stage2", cuda.TWO_LEVELS
"""Schemes of every structure; one of two levels."""


@pytest.mark.parametrize("side", ["out", "left", "right"])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("names", [FEW, pytest.param(None, id="others", marks=pytest.mark.slow)])
def test_every_method_ignores_entries_outside_the_triangle(side, upper, names):
    for choice in names or {*scheme_names()} - {*FEW}:
        level = level_of(choice, Triangle(side, upper))
        m, k, n = (8 * parts for parts in level.target.shape)
        a, b = integers(m, k), integers(k, n)
        wanted = plain(a, b, Triangle(side, upper))
        for x in {"left": [a], "right": [b]}.get(side, []):
            x[naive.triangular(torch.ones_like(x), upper) == 0] = 77.0
        assert torch.equal(run_level(level, a, b), wanted)


@pytest.mark.parametrize("choice", [cuda.SCHEME, cuda.TWO_LEVELS])
@pytest.mark.parametrize("upper", [False, True])
def test_triangles_are_cut_into_squares_of_every_size(monkeypatch, choice, upper):
    monkeypatch.setattr(triangular_products, "DIAGONAL", 3)
    level = level_of(choice, Triangle("out", upper))
    m, k, n = level.target.shape
    for block in (12, 7):  # halved twice, and not at all
        a, b = integers(m * block, 2 * k), integers(n * block, 2 * k)
        assert torch.equal(run_level(level, a, b.mT), naive.triangular(a @ b.mT, upper))


def test_levels_have_finer_grids_and_long_sums_in_pieces(monkeypatch):
    pieces = []
    multiply = triangular_products._in_pieces

    def seen(x, y, z, longest):
        pieces.append(-(-x.shape[2] // longest))
        multiply(x, y, z, longest)

    monkeypatch.setattr(triangular_products, "LONGEST", 4)
    monkeypatch.setattr(triangular_products, "_in_pieces", seen)
    for side, dtype, cut in (("left", torch.float32, 4), ("left", torch.float64, 999), ("out", torch.float32, 999)):
        level = level_of(cuda.SCHEME, Triangle(side))
        a = integers(40, 40).to(dtype)
        wanted = plain(a, a, Triangle(side))
        pieces.clear()
        assert torch.equal(run_level(level, a, a), wanted)
        inner = level.blocks(40, 40, 40, a.element_size())[1]  # whole segments of memory
        assert max(pieces) == -(-inner // cut)
    one, two = (level_of(choice, Triangle("out")) for choice in ("eca-stage1", "eca-stage1/strassen"))
    assert two.target.shape == tuple(2 * size for size in one.target.shape)
    a, b = integers(10, 13), integers(13, 10)  # no multiple of the grid: padded
    assert torch.equal(run_level(two, a, b), (a @ b).tril())
    refuses_with(lcma.CatalogError, "no scheme 'nothing'", level_of, "eca-stage1/nothing", Triangle("out"))
    refuses("half-out products .* need a program on a grid 3x3x3", level_of, "eca-stage1/laderman", Triangle("out"))


@pytest.mark.parametrize("side", ["out", "left"])
def test_the_sums_of_b_are_made_once_for_half_products_too(side):
    level = level_of(cuda.SCHEME, Triangle(side))
    a, b = integers(2, 40, 40), integers(2, 40, 40)
    prepared = level.prepare(b[:1])
    out = torch.full((2, 40, 40), float("nan"), dtype=torch.float64)
    level.run(a, replace(prepared, b=torch.full_like(b[:1], float("nan"))), out)
    assert torch.equal(out, plain(a, b[:1], Triangle(side)))


@pytest.mark.parametrize("side", SIDES)
def test_a_scheme_that_is_passed_runs_as_its_name_does(side):
    """A right factor is run as the left one of the transposed product, which has another program."""
    request = Request(24, 24, 24, "float64", device="cuda", structures=structures_of(Triangle(side, True)))
    a, b = integers(24, 24), integers(24, 24)
    wanted = plain(a, b, Triangle(side, True))
    for scheme in ("eca-stage1", lcma.resolve("eca-stage1")[0]):
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


def masks(rows, cols):
    """Masks of a matrix and what is inside: blocks, half blocks, elements."""
    rng = np.random.default_rng(0)
    blocks, elements = rng.random((3, 2)) < 0.5, rng.random((rows, cols)) < 0.3
    blocks[1] = False  # rows without anything wanted
    squares = [["L000", "FL00", "FFL0", "FFFL"], ["FU", "0U"]] if rows == cols else []
    yield from ((mask, present(kinds_of(mask), (rows, cols))) for mask in (blocks, *squares))
    yield elements, elements


@pytest.mark.parametrize(
    ("tile", "shape"), [(4, (16, 5, 16)), (4, (11, 4, 7)), (256, (16, 5, 16)), (256, (520, 3, 300))]
)
def test_runs_by_torch_are_the_masked_products(monkeypatch, tile, shape):
    monkeypatch.setattr(masked, "TILE", tile)
    m, k, n = shape
    a, b, g = drawn(2, m, k, grad=False), drawn(k, n, grad=False), drawn(2, m, n, grad=False)
    for mask, inside in masks(m, n):
        inside = torch.from_numpy(inside)
        kinds = kinds_of(mask)
        wanted = (a @ b) * inside
        torch.testing.assert_close(masked.by_runs(a, b, kinds, "out"), wanted)
        torch.testing.assert_close(masked_matmul(a, b, mask), wanted)
        spoiled = g.masked_fill(~inside, torch.nan)
        torch.testing.assert_close(masked.by_runs(spoiled, b.mT, kinds, "left"), (g * inside) @ b.mT)


@pytest.mark.parametrize("mask", [["L0", "FL"], ["FU", "0L"], np.tri(8, k=-1, dtype=bool)], ids=["L", "FU", "elements"])
def test_every_derivative_of_a_masked_product(mask):
    operands, product = (drawn(2, 8, 3), drawn(3, 8)), partial(masked_matmul, mask=mask)
    every_derivative(product, operands)


def test_masks_by_a_scheme_and_of_other_squares():
    # Six products for the lower triangle of a product on a grid of two.
    scheme = derive(lcma.resolve("2x2x2-tri-left-r6")[0], Triangle("out").target(2, 2, 2))
    product = partial(masked_matmul, mask=["L0", "FL"], scheme=scheme)
    assert torch.autograd.gradcheck(product, (drawn(2, 8, 3), drawn(3, 8)), fast_mode=True)
    a, b = drawn(8, 3, grad=False), drawn(3, 8, grad=False)
    for given in (scheme, (scheme, lcma.certify(scheme))):
        torch.testing.assert_close(masked_matmul(a, b, ["L0", "FL"], scheme=given), (a @ b).tril())
    a, b = drawn(6, 3, grad=False), drawn(3, 4, grad=False)
    assert not masked.by_runs(a, b, kinds_of(["00L", "000", "000"]), "out").any()
    a, b = torch.ones(8, 3), torch.ones(3, 8)
    refuses("must be square", masked.by_runs, a, b, kinds_of(["LF"]), "out")
    refuses("vmap", torch.vmap(masked_matmul, (None, None, 0)), a, b, torch.ones(5, 2, 2, dtype=torch.bool))


def test_complex_gradients_and_a_mask_that_is_a_tensor():
    a, b = drawn(8, 3, dtype=torch.complex128), drawn(3, 8, dtype=torch.complex128)
    mask = torch.ones(4, 4, dtype=torch.bool).triu()
    wide = mask.repeat_interleave(2, 0).repeat_interleave(2, 1)
    for product in (masked_matmul, lambda x, y, m: torch.vmap(masked_matmul, (0, None, None))(x[None], y, m)[0]):
        same_gradients(lambda x, y, product=product: product(x, y, mask), lambda x, y: (x @ y) * wide, (a, b))
