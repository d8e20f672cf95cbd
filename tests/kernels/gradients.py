"""Tensors with gradients, products' derivatives of every mode, and two products compared by values and gradients."""

import torch


def drawn(*shape, dtype=torch.float64, grad=True):
    return torch.randn(*shape, dtype=dtype, requires_grad=grad)


def every_derivative(product, operands, **options):
    """Check the first derivatives in both modes, and the second ones; `options` are those of the first."""
    assert torch.autograd.gradcheck(product, operands, fast_mode=True, check_forward_ad=True, **options)
    assert torch.autograd.gradgradcheck(product, operands, fast_mode=True, check_fwd_over_rev=True)


def same_hessians(ours, theirs, x):
    """Compare the second derivatives of two functions of x to a number, by torch.func in every mode."""
    for outer in (torch.func.jacfwd, torch.func.jacrev):
        for inner in (torch.func.jacfwd, torch.func.jacrev):
            torch.testing.assert_close(outer(inner(ours))(x), outer(inner(theirs))(x))


def compiles(product, *operands):
    """Check that a product is one graph, with the values and gradients of its eager run."""
    torch._dynamo.reset()
    same_gradients(torch.compile(product, fullgraph=True, backend="aot_eager"), product, operands)


def same_gradients(ours, theirs, operands):
    """Compare two products of the operands, as values and by the gradients of a weighted sum."""
    first, second = ours(*operands), theirs(*operands)
    torch.testing.assert_close(first, second)
    weights = torch.randn_like(second)
    torch.testing.assert_close(
        torch.autograd.grad(first, operands, weights), torch.autograd.grad(second, operands, weights)
    )
