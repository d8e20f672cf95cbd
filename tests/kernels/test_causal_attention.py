"""Exact causal attention against torch's own, forward and backward."""

from functools import partial

import pytest
import torch

from lcma.kernels.causal.candidates import stable_scheme_names
from lcma.kernels.torch.attention import causal_attention

from .gradients import drawn, same_gradients

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # torch's own rules of forward AD

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
    same_gradients(partial(causal_attention, enable_gqa=True, **choice), theirs, (q, k, v))


def test_gradients_with_bias_sinks_and_dropout():
    torch.manual_seed(1)
    q, k, v = drawn(1, 4, 6, 3), drawn(1, 2, 5, 3), drawn(1, 2, 5, 3)
    bias, sinks = drawn(4, 6, 5), drawn(4)

    def biased(q, k, v, bias, sinks):
        return causal_attention(q, k, v, bias, enable_gqa=True, sinks=sinks, scale=0.7, strategy="products")

    def dropped(q, k, v):
        torch.manual_seed(2)
        return causal_attention(q, k, v, dropout_p=0.3, enable_gqa=True, strategy="products")

    assert torch.autograd.gradcheck(biased, (q, k, v, bias, sinks), fast_mode=True)
    assert torch.autograd.gradcheck(dropped, (q, k, v), fast_mode=True)


def test_second_derivatives_and_transforms():
    q, k, v = drawn(1, 2, 4, 3), drawn(1, 1, 5, 3), drawn(1, 1, 5, 2)
    bias, sinks = drawn(4, 5), drawn(2)

    def biased(q, k, v, bias, sinks):
        return causal_attention(q, k, v, bias, enable_gqa=True, sinks=sinks, strategy="strips")

    def masked(q, k, v):
        return causal_attention(q, k, v, torch.ones(4, 5, dtype=torch.bool).tril(1), enable_gqa=True, strategy="strips")

    def theirs(q, k, v):
        scores = (q @ k.mT / 3**0.5).masked_fill(torch.ones(4, 5).triu(1).bool(), -torch.inf)
        return scores.softmax(-1) @ v

    def own(x):
        return causal_attention(x, x.sin(), x, strategy="strips")

    def ours(q, k, v):
        return causal_attention(q, k, v, enable_gqa=True, strategy="strips")

    assert torch.autograd.gradgradcheck(biased, (q, k, v, bias, sinks), fast_mode=True)
    assert torch.autograd.gradcheck(biased, (q, k, v, bias, sinks), fast_mode=True, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(masked, (q, k, v), fast_mode=True)
    assert torch.autograd.gradgradcheck(own, (drawn(5, 3),), fast_mode=True)
    plain = tuple(x.detach() for x in (q, k, v))
    torch.testing.assert_close(torch.func.jvp(ours, plain, plain), torch.func.jvp(theirs, plain, plain))
    jacobians = (torch.func.jacrev(product, (0, 1, 2))(*plain) for product in (ours, theirs))
    torch.testing.assert_close(*jacobians)
    torch.testing.assert_close(torch.vmap(ours)(*plain), theirs(*plain))


@pytest.mark.parametrize("choice", ["products", "strips"])
def test_compiled_whole(choice):
    torch.manual_seed(6)
    q, k, v = drawn(1, 2, 9, 4), drawn(1, 1, 7, 4), drawn(1, 1, 7, 3)
    sinks, bias = drawn(2), drawn(9, 7)

    def ours(q, k, v, bias, sinks):
        return causal_attention(q, k, v, bias, enable_gqa=True, sinks=sinks, strategy=choice)

    torch._dynamo.reset()
    same_gradients(torch.compile(ours, fullgraph=True, backend="aot_eager"), ours, (q, k, v, bias, sinks))


def test_sinks_are_a_key_without_a_value():
    torch.manual_seed(3)
    q, k, v = (drawn(2, 3, 9, 4, grad=False) for _ in range(3))
    sinks = drawn(3, grad=False)
    scores = (q @ k.mT / 2).masked_fill(torch.ones(9, 9).triu(1).bool(), -torch.inf)
    extended = torch.cat([scores, sinks[:, None, None].expand(2, 3, 9, 1)], -1).softmax(-1)
    output, weights = causal_attention(q, k, v, sinks=sinks, need_weights=True)
    torch.testing.assert_close(weights, extended[..., :-1])
    torch.testing.assert_close(output, extended[..., :-1] @ v)


def test_a_row_that_sees_nothing_is_zero():
    q, k, v = (drawn(1, 1, 4, 2) for _ in range(3))
    seen = torch.ones(4, 4, dtype=torch.bool)
    seen[2] = False
    out = causal_attention(q, k, v, seen)
    assert (out[0, 0, 2] == 0).all()
    assert all(torch.isfinite(x).all() for x in torch.autograd.grad(out.sum(), (q, k, v)))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_precisions_and_autocast(dtype):
    torch.manual_seed(4)
    q, k, v = (drawn(1, 2, 65, 16, dtype=dtype, grad=False) for _ in range(3))
    out = causal_attention(q, k, v, strategy="products")
    assert out.dtype == dtype
    truth = sdpa(q.double(), k.double(), v.double(), is_causal=True)
    assert (out.double() - truth).norm() / truth.norm() < {torch.float32: 1e-6, torch.float16: 1e-3}.get(dtype, 1e-2)
    with torch.autocast("cpu", torch.bfloat16):
        assert causal_attention(q.float(), k.float(), v.float(), strategy="products").dtype == torch.bfloat16


@pytest.mark.slow
def test_errors_stay_within_twice_the_standard_algorithms():
    worst: dict[str, float] = {}
    for seed in range(10):
        torch.manual_seed(seed)
        q, k, v = (torch.randn(1, 1, 256, 128) for _ in range(3))
        truth = sdpa(q.double(), k.double(), v.double(), is_causal=True)
        future = torch.ones(256, 256).triu(1).bool()
        plain = (q / 128**0.5 @ k.mT).masked_fill(future, -torch.inf).softmax(-1) @ v
        ours = {name: causal_attention(q, k, v, scheme=name) for name in stable_scheme_names()}
        for choice, got in {"standard": plain, **ours}.items():
            worst[choice] = max(worst.get(choice, 0.0), float((got - truth).norm() / truth.norm()))
    assert max(worst[choice] for choice in ("standard", *stable_scheme_names())) <= 2 * worst["standard"]
    assert stable_scheme_names()
