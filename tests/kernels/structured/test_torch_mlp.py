"""The feed-forward block of Kronecker-sparse layers against the same block of dense ones."""

import pytest
import torch
from torch.nn import functional

import lcma

from ...refusal import refuses

UP, DOWN = [(1, 12, 3, 2), (3, 2, 2, 1)], [(3, 2, 4, 1), (1, 6, 12, 2)]
"""24 x 6 and 6 x 24."""


def dense(layer):
    return torch.from_numpy(layer.matrix().dense())


@pytest.mark.parametrize("layout", ["bsf", "bsl"])
@pytest.mark.parametrize(("norm", "residual", "bias"), [(True, True, True), (False, False, False)])
def test_values_and_gradients_are_those_of_dense_layers(layout, norm, residual, bias):
    block = lcma.KSFeedForward(UP, DOWN, bias, layout, dtype=torch.float64, norm=norm, residual=residual)
    if norm:
        torch.nn.init.normal_(block.norm.weight)
        torch.nn.init.normal_(block.norm.bias)
    x = torch.randn(2, 5, 6, dtype=torch.float64)
    given = (x if layout == "bsf" else x.movedim(-1, 0).contiguous()).requires_grad_()
    y = block(given)
    ask = torch.randn(2, 5, 6, dtype=torch.float64)
    (grad,) = torch.autograd.grad(y, given, ask if layout == "bsf" else ask.movedim(-1, 0))
    plain = x.clone().requires_grad_()
    hidden = block.norm(plain) if norm else plain
    hidden = functional.gelu(functional.linear(hidden, dense(block.up), block.up.bias))
    truth = functional.linear(hidden, dense(block.down), block.down.bias)
    truth = truth + plain if residual else truth
    (wanted,) = torch.autograd.grad(truth, plain, ask)
    assert y.is_contiguous()
    torch.testing.assert_close(y if layout == "bsf" else y.movedim(0, -1), truth)
    torch.testing.assert_close(grad if layout == "bsf" else grad.movedim(0, -1), wanted)


def test_the_hidden_features_keep_the_batch_last(monkeypatch):
    seen = []
    gelu = functional.gelu
    monkeypatch.setattr(
        functional, "gelu", lambda x, **options: seen.append((x.shape, x.stride())) or gelu(x, **options)
    )
    for layout, shape in (("bsf", (10, 6)), ("bsl", (6, 10))):
        lcma.KSFeedForward(UP, DOWN, layout=layout)(torch.randn(shape))
    assert seen == [((24, 10), (10, 1))] * 2


def test_halves_are_normed_in_float32():
    first, last = (lcma.KSFeedForward(UP, DOWN, layout=layout).bfloat16() for layout in ("bsf", "bsl"))
    last.load_state_dict(first.state_dict())
    x = 100 + torch.randn(10, 6).bfloat16()
    torch.testing.assert_close(first(x), last(x.T.contiguous()).T, rtol=2e-2, atol=2e-2)


def test_inputs_of_another_layout_are_refused():
    refuses("inputs of layout bsf", lcma.KSFeedForward(UP, DOWN), torch.randn(6, 5))
