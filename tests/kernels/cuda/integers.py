"""Operands of int8, and their products in int32."""

import torch


def drawn(*shape, most):
    """Entries at the ends of the range for the most part: there overflows show."""
    generator = torch.Generator().manual_seed(sum(shape))
    values = torch.randint(-most, most + 1, shape, generator=generator)
    return torch.where(torch.rand(shape, generator=generator) < 0.7, values.sign() * most, values).to(torch.int8)


def exactly(a, b):
    return (a.long() @ b.long()).to(torch.int32)
