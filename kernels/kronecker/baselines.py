"""The products that are measured against: permuted batched GEMM, einsum, and sparse formats.

Each is written with operations of torch, or of numpy where torch is not installed; on a processor they are
`StagedCore`s whose first operand are the factors.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..cpu.blas import as_tensor, backends
from ..cpu.workspace import Arena
from ..dtypes import dtype_of
from ..planning.strategy import Stage
from .pattern import Pattern

Array = Any

BMM, EINSUM, CSR = "bmm", "einsum", "csr"


def by_bmm(weights: Array, pattern: Pattern, x: Array, first: bool) -> Array:
    """K x for x (cols, n): blocks are copied together, multiplied by one batched GEMM, and copied back.

    `first`: x is stored batch-first, and so is the result.
    Source: Algorithm 1 of Gonon, Zheng, Carrivain, Le (ICML 2025), as in Monarch's code.
    """
    a, b, c, d = pattern.sizes
    n = x.shape[1]
    blocks = weights.reshape(a * d, b, c)
    if first:
        packed = _permuted(x.T.reshape(n, a, c, d), (1, 3, 0, 2)).reshape(a * d, n, c)
        product = packed @ blocks.swapaxes(1, 2)
        return _permuted(product.reshape(a, d, n, b), (2, 0, 3, 1)).reshape(n, pattern.rows).T
    packed = _permuted(x.reshape(a, c, d, n), (0, 2, 1, 3)).reshape(a * d, c, n)
    product = blocks @ packed
    return _permuted(product.reshape(a, d, b, n), (0, 2, 1, 3)).reshape(pattern.rows, n)


def by_einsum(weights: Array, pattern: Pattern, x: Array, first: bool) -> Array:
    """K x for x (cols, n) as one tensor contraction."""
    a, _, c, d = pattern.sizes
    n = x.shape[1]
    if first:
        product = _einsum("niqj,ijpq->nipj", x.T.reshape(n, a, c, d), weights)
        return product.reshape(n, pattern.rows).T
    return _einsum("ijpq,iqjn->ipjn", weights, x.reshape(a, c, d, n)).reshape(pattern.rows, n)


def by_csr(weights: Array, pattern: Pattern, x: Array, first: bool) -> Array:
    """K x for a torch tensor x (cols, n) by K in compressed sparse rows."""
    import torch

    a, b, c, d = pattern.sizes
    i, j, q = (torch.arange(size, device=x.device) for size in (a, d, c))
    cols = (i[:, None, None] * c + q) * d + j[None, :, None]  # (a, d, c), the same for every p
    cols = cols[:, None].expand(a, b, d, c).reshape(-1)
    starts = torch.arange(0, pattern.nonzeros + 1, c, device=x.device)
    values = weights.swapaxes(1, 2).reshape(-1)
    size = pattern.rows, pattern.cols
    with warnings.catch_warnings():  # that torch's sparse formats are in beta state
        warnings.simplefilter("ignore")
        return torch.sparse_csr_tensor(starts, cols, values, size, check_invariants=False) @ x


def _permuted(x: Array, axes: tuple[int, ...]) -> Array:
    """A copy with axes in another order."""
    return np.ascontiguousarray(x.transpose(axes)) if isinstance(x, np.ndarray) else x.permute(axes).contiguous()


def _einsum(text: str, x: Array, y: Array) -> Array:
    if isinstance(x, np.ndarray):
        return np.einsum(text, x, y, optimize=True)
    import torch

    return torch.einsum(text, x, y)


PRODUCTS = {BMM: by_bmm, EINSUM: by_einsum, CSR: by_csr}
"""The baselines by name: product(weights, pattern, x, first)."""


def has_torch(dtype: str) -> bool:
    """Whether torch is installed and multiplies this dtype."""
    return any(backend.name == "torch" and backend.supports(dtype) for backend in backends())


@dataclass(frozen=True)
class BaselineProduct:
    """K1 ... KL X factor by factor by one of the baselines; a `StagedCore`."""

    patterns: tuple[Pattern, ...]
    batch: int
    dtype: str
    first: bool
    last: bool
    kind: str

    @property
    def _itemsize(self) -> int:
        return dtype_of(self.dtype).numpy.itemsize

    def workspace(self, threads: int) -> int:
        """See `Core.workspace`: the library's own memory, which does not come from the arena."""
        return 0

    def compile(self) -> None:
        """See `StagedCore.compile`: there is no code to compile."""

    def stages(self, times: int = 1, prepared: bool = False) -> list[Stage]:
        """See `StagedCore.stages`: the permutations, which einsum does within the library, and the products."""
        item, found = self._itemsize, []
        flop = 2 * dtype_of(self.dtype).parts ** 2
        for pattern in reversed(self.patterns):
            elements = (pattern.rows + pattern.cols) * self.batch
            blocks = pattern.a * pattern.d
            name = f"{blocks} blocks {pattern.b}x{pattern.c}"
            flops = times * flop * pattern.nonzeros * self.batch
            moved = times * (elements + pattern.nonzeros) * item
            found.append(Stage(name, flops, moved, product=(pattern.b, pattern.c, self.batch)))
            if pattern.d > 1 or pattern.a > 1:
                found.append(Stage("permutations", 0, 2 * times * elements * item))
        return found

    def run(self, a: Any, b: Array, out: Array, arena: Arena, threads: int) -> None:
        """See `Core.run`."""
        x, target = b, out
        if has_torch(self.dtype):
            a = [as_tensor(weights, self.dtype) for weights in a]
            x, target = as_tensor(b, self.dtype), as_tensor(out, self.dtype)
        product = PRODUCTS[self.kind]
        for weights, pattern in zip(reversed(a), reversed(self.patterns), strict=True):
            x = product(weights, pattern, x, self.first)
        target[...] = x
