"""Tensors with gradients, and the comparison of two products by their values and gradients."""

import torch


def drawn(*shape, dtype=torch.float64, grad=True):
    return torch.randn(*shape, dtype=dtype, requires_grad=grad)


def same_gradients(ours, theirs, operands):
    """Compare two products of the operands, as values and by the gradients of a weighted sum."""
    first, second = ours(*operands), theirs(*operands)
    torch.testing.assert_close(first, second)
    weights = torch.randn_like(second)
    torch.testing.assert_close(
        torch.autograd.grad(first, operands, weights), torch.autograd.grad(second, operands, weights)
    )
