"""Triangular products of tensors: values, derivatives of every mode and order, and what a GPU runs, on a processor."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from torch.library import opcheck
from torch.utils.flop_counter import FlopCounterMode

from lcma.kernels.cuda import requests
from lcma.kernels.cuda.requests import request_of
from lcma.kernels.torch import triangular
from lcma.kernels.triangular import causal_pv, causal_qk, syrk, trmm
from lcma.schemes_db.symmetry import Triangle

from .gradients import drawn, same_gradients

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # torch's own rules of forward AD

gradcheck = partial(torch.autograd.gradcheck, fast_mode=True)
gradgradcheck = partial(torch.autograd.gradgradcheck, fast_mode=True)

HEADS = [(1, 1, 4, 4, 3), (2, 1, 4, 4, 2), (2, 1, 5, 4, 2), (1, 1, 4, 5, 2)]
"""Heads, heads that share, rows, columns, width."""


@pytest.fixture(autouse=True)
def _one_thread():
    """Thousands of tiny products: threads would cost more than they do."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


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


def plain_qk(q, k):
    wide = k if k.ndim < 3 else k.repeat_interleave(q.shape[-3] // k.shape[-3], -3)
    return (q @ wide.mT).tril()


def plain_pv(p, v):
    wide = v if v.ndim < 3 else v.repeat_interleave(p.shape[-3] // v.shape[-3], -3)
    return p.tril() @ wide


def plain_trmm(a, b, side, lower, transposed, unit):
    factor = a.tril() if lower else a.triu()
    if unit:
        factor = factor - torch.diag(factor.diagonal()) + torch.eye(len(a), dtype=a.dtype)
    factor = factor.mT if transposed else factor
    return factor @ b if side == "left" else b @ factor


@pytest.mark.parametrize("sizes", HEADS)
def test_every_derivative_of_qk_and_pv(on_either, sizes):
    heads, shared, rows, cols, width = sizes
    q, k, p, v = (
        drawn(heads, rows, width),
        drawn(shared, cols, width),
        drawn(heads, rows, cols),
        drawn(shared, cols, width),
    )
    for product, operands in ((causal_qk, (q, k)), (causal_pv, (p, v))):
        one = partial(product, strategy="strips")
        assert gradcheck(one, operands, check_forward_ad=True, check_batched_grad=on_either == "cpu")
        assert gradgradcheck(one, operands, fast_mode=True, check_fwd_over_rev=True)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("unit", [False, True])
def test_every_derivative_of_trmm(on_either, side, unit):
    a, b = drawn(4, 4), drawn(4, 3) if side == "left" else drawn(3, 4)
    for lower in (False, True):
        for transposed in (False, True):
            options = {"side": side, "lower": lower, "transposed": transposed, "unit": unit}
            ours = partial(trmm, strategy="strips", **options)
            same_gradients(ours, partial(plain_trmm, **options), (a, b))
            assert gradcheck(ours, (a, b), check_forward_ad=True)
            assert gradgradcheck(ours, (a, b), fast_mode=True)


@pytest.mark.parametrize("lower", [False, True])
def test_every_derivative_of_syrk(on_either, lower):
    a = drawn(2, 4, 3)
    for transposed in (False, True):
        ours = partial(syrk, lower=lower, transposed=transposed, strategy="strips")
        assert gradcheck(ours, (a,), check_forward_ad=True)
        assert gradgradcheck(ours, (a,), fast_mode=True, check_fwd_over_rev=True)


@pytest.mark.parametrize("choice", [{}, {"strategy": "strips"}, {"scheme": "2x2x2-tri-left-r6"}], ids=str)
def test_gradients_on_a_processor_by_each_strategy(choice):
    q, k, p = drawn(2, 33, 8), drawn(1, 33, 8), drawn(2, 33, 33)
    same_gradients(partial(causal_qk, **choice), plain_qk, (q, k))
    same_gradients(partial(causal_pv, **choice), plain_pv, (p, k))


@pytest.mark.parametrize(
    "choice", [{"strategy": "strips"}, {"scheme": "eca-stage1"}, {"scheme": "4x4x4-tri-out-r34"}], ids=str
)
def test_gradients_on_a_gpu_by_each_strategy(of_gpu, choice):
    for heads, shared, rows, cols, width in (
        (4, 2, 32, 32, 8),
        (1, 1, 600, 600, 12),
        (1, 1, 16, 24, 4),
        (2, 1, 24, 16, 4),
    ):
        q, k, p = drawn(heads, rows, width), drawn(shared, cols, width), drawn(heads, rows, cols)
        same_gradients(partial(causal_qk, **choice), plain_qk, (q, k))
        same_gradients(partial(causal_pv, **choice), plain_pv, (p, k))
    a, b = drawn(32, 32), drawn(32, 8)
    for transposed in (False, True):
        options = {"lower": True, "transposed": transposed, "unit": transposed}
        for side, other in (("left", b), ("right", b.detach().mT.clone().requires_grad_())):
            same_gradients(
                partial(trmm, side=side, **options, **choice), partial(plain_trmm, side=side, **options), (a, other)
            )
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


def test_complex_operands_have_conjugate_gradients():
    q, k, a = (drawn(5, 5, dtype=torch.complex128) for _ in range(3))
    same_gradients(causal_qk, lambda x, y: (x @ y.mT).tril(), (q, k))
    same_gradients(causal_pv, lambda x, y: x.tril() @ y, (q, k))
    same_gradients(syrk, lambda x: (x @ x.mT).tril(), (a,))
    assert gradcheck(partial(trmm, side="right", transposed=True), (a, k), check_forward_ad=True)


def test_transforms_of_torch_func():
    q, k = drawn(5, 3, grad=False), drawn(4, 3, grad=False)

    def ours(x):
        return causal_qk(x, k).sin().sum()

    def theirs(x):
        return plain_qk(x, k).sin().sum()

    func = torch.func
    torch.testing.assert_close(func.jvp(ours, (q,), (q,)), func.jvp(theirs, (q,), (q,)))
    for outer in (func.jacfwd, func.jacrev):
        for inner in (func.jacfwd, func.jacrev):
            torch.testing.assert_close(outer(inner(ours))(q), outer(inner(theirs))(q))
    many, wide = drawn(2, 5, 3, grad=False), drawn(4, 3, 2, grad=False)
    mapped = torch.vmap(causal_qk, in_dims=(0, 2))(many, wide)
    torch.testing.assert_close(mapped, torch.vmap(plain_qk, in_dims=(0, 2))(many, wide))
    shared = torch.vmap(causal_qk, in_dims=(0, None))(many, drawn(3, 4, 3, grad=False))
    assert shared.shape == (2, 3, 5, 4)


def test_compiled_whole():
    heads, shared, rows, cols, width = HEADS[2]
    q, k, v = drawn(heads, rows, width), drawn(shared, cols, width), drawn(shared, cols, width)

    def both(q, k, v):
        return causal_pv(causal_qk(q, k, strategy="strips").sin(), v, strategy="strips")

    torch._dynamo.reset()
    same_gradients(torch.compile(both, fullgraph=True, backend="aot_eager"), both, (q, k, v))


def test_the_operator_is_sound():
    a, b = drawn(2, 4, 4), drawn(4, 3)
    for side, operands in (("left", (a, b)), ("right", (drawn(2, 3, 4), a)), ("out", (a, drawn(4, 4)))):
        some = {} if side == "left" else {"test_utils": ("test_schema", "test_faketensor")}
        opcheck(torch.ops.lcma.triangular_mm.default, (*operands, side, False, False, None, True), **some)
    with FlopCounterMode(display=False) as counter:
        triangular.triangular_mm(a.detach(), b.detach(), Triangle("left"))
    assert counter.get_total_flops() == 2 * (2 * 10 * 3)


def test_integers_and_halves():
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
