"""A product by somebody else's method, in the place of a plan and of its executor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....kernels import Candidate, Request
from ....kernels.prepared_operand import PreparedOperand

Array = Any
"""A numpy array or a torch tensor."""

Factors = Sequence[Array]


def is_contiguous(x: Array) -> bool:
    """Return whether an array is stored by rows without gaps."""
    return bool(x.flags.c_contiguous if isinstance(x, np.ndarray) else x.is_contiguous())


def empty(like: Array, shape: tuple[int, ...]) -> Array:
    """Allocate contiguous memory of the same dtype."""
    return np.empty(shape, like.dtype) if isinstance(like, np.ndarray) else like.new_empty(shape)


def batched_product(left: Array, right: Array, out: Array) -> None:
    """Compute out = left right, a batch of products."""
    if isinstance(out, np.ndarray):
        np.matmul(left, right, out=out)
        return
    import torch

    torch.bmm(left, right, out=out)


@dataclass(frozen=True)
class Baseline:
    """A method that is named, timed and weighed as a plan is, and whose seconds nobody predicts.

    `multiply(factors, x, out)` computes out (rows, n) = W x for x (cols, n), from the result of `rewrite(factors)`. Of
    a triangular product A takes the place of the factors.
    `workspace` is an upper bound of the bytes of a run, the rewritten factors included.
    """

    request: Request
    name: str
    multiply: Callable[[Factors, Array, Array], None]
    workspace: int
    rewrite: Callable[[Factors], Factors] = lambda factors: factors
    seconds: None = None

    @property
    def candidate(self) -> Candidate:
        """The family and the name, as a plan has them."""
        return Candidate(self.request.family, self.name)

    def build(self) -> Baseline:
        """Return what runs: itself."""
        return self

    def prepare(self, a: Factors) -> PreparedOperand:
        """Return the factors in the method's format, to pass to `run` instead of them."""
        return PreparedOperand(a, self.rewrite(a), 0)

    def run(self, a: Factors | PreparedOperand, b: Array, out: Array) -> Array:
        """Compute W x in `out` (rows, n) for x (cols, n)."""
        factors = a.sums if isinstance(a, PreparedOperand) else self.rewrite(a)
        self.multiply(factors, b, out)
        return out
