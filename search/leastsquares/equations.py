"""The equations of a scheme as a least-squares problem, for batches of real factors: residual, gradient, normal matrix.

A scheme of rank R is sum_r u_r (x) v_r (x) w_r = T, T the tensor of its target. The normal matrix J^T J of these
equations needs no J: its blocks are products of the Gram matrices U U^T, V V^T, W W^T and of entries of the factors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...schemes_db import Target
from .arrays import Arrays, FloatArray


class Equations:
    """The equations of a target and a rank.

    A batch of factors is x (B, size): the flattened factors (R, a), (R, b), (R, c) of the three modes in increasing
    order of their dimensions a <= b <= c, whatever their order in the target; see `factors`.

    Attributes:
        shape: (m, k, n) of the target.
        dims: (a, b, c).
        reduced: R (a + b), the order of the matrix that `direction` factors.
    """

    def __init__(self, target: Target, rank: int, arrays: Arrays) -> None:
        tensor = np.zeros((target.m * target.k, target.k * target.n, target.m * target.n))
        tensor[tuple(target.terms.T)] = target.term_values
        self._modes = sorted(range(3), key=lambda mode: tensor.shape[mode])
        self.rank, self.arrays, self.shape = rank, arrays, target.shape
        self.dims = tuple(tensor.shape[mode] for mode in self._modes)
        a, b, c = self.dims
        self.reduced, self.size = rank * (a + b), rank * (a + b + c)
        self._tensor = arrays.put(tensor.transpose(self._modes).reshape(a * b, c))
        self._products, self._rows = arrays.put(np.arange(rank)), arrays.put(np.arange(self.reduced))
        self._owner = arrays.put(np.concatenate([np.repeat(np.arange(rank), dim) for dim in (a, b)]))

    def split(self, x: Any) -> tuple[Any, Any, Any]:
        """Return the three factors of x: (B, R, a), (B, R, b), (B, R, c)."""
        a, b, c = self.dims
        first = self.rank * a
        parts = (x[:, :first], x[:, first : self.reduced], x[:, self.reduced :])
        return tuple(part.reshape(-1, self.rank, dim) for part, dim in zip(parts, (a, b, c), strict=True))

    def join(self, *factors: Any) -> Any:
        return self.arrays.xp.concatenate([factor.reshape(len(factor), -1) for factor in factors], 1)

    def factors(self, x: Any) -> list[FloatArray]:
        """Return U, V and W (R, blocks) of one x (size,), in the order of the target."""
        parts = [part[0] for part in self.split(x[None])]
        return [parts[self._modes.index(mode)] for mode in range(3)]

    def flat(self, factors: list[FloatArray]) -> FloatArray:
        """Return the x (size,) of U, V and W (R, blocks); inverts `factors`."""
        return np.concatenate([factors[mode].reshape(-1) for mode in self._modes])

    def residual(self, x: Any) -> Any:
        """Return sum_r u_r (x) v_r (x) w_r - T, (B, a b, c)."""
        u, v, w = self.split(x)
        return self._pairs(u, v).swapaxes(1, 2) @ w - self._tensor

    def _pairs(self, u: Any, v: Any) -> Any:
        """Return u_r (x) v_r, (B, R, a b)."""
        return (u[:, :, :, None] * v[:, :, None, :]).reshape(len(u), self.rank, -1)

    def gradient(self, x: Any, residual: Any) -> Any:
        """Return J^T residual, (B, size): half the gradient of the sum of squares."""
        u, v, w = self.split(x)
        a, b, _ = self.dims
        last = (residual @ w.swapaxes(1, 2)).reshape(len(x), a, b, self.rank)
        of_u = (last * v.swapaxes(1, 2)[:, None]).sum(2).swapaxes(1, 2)
        of_v = (last * u.swapaxes(1, 2)[:, :, None]).sum(1).swapaxes(1, 2)
        return self.join(of_u, of_v, self._pairs(u, v) @ residual)

    def normal(self, x: Any) -> Any:
        """Return J^T J, (B, size, size)."""
        factors = self.split(x)
        grams = [f @ f.swapaxes(1, 2) for f in factors]
        rows = []
        for i, (f, dim) in enumerate(zip(factors, self.dims, strict=True)):
            row = []
            for j, (g, other) in enumerate(zip(factors, self.dims, strict=True)):
                if i == j:
                    block = self._diagonal(grams[(i + 1) % 3] * grams[(i + 2) % 3], dim)
                else:
                    weighted = grams[3 - i - j][:, :, None, :] * f.swapaxes(1, 2)[:, None]  # r p s
                    block = weighted[..., None] * g[:, :, None, None, :]
                row.append(block.reshape(len(x), self.rank * dim, self.rank * other))
            rows.append(self.arrays.xp.concatenate(row, 2))
        return self.arrays.xp.concatenate(rows, 1)

    def _diagonal(self, gram: Any, dim: int) -> Any:
        """Return gram (x) I_dim, (B, R, dim, R, dim)."""
        one = self.arrays.put(np.eye(dim))
        return gram[:, :, None, :, None] * one[:, None, :]

    def direction(self, x: Any, gradient: Any, damping: Any) -> tuple[Any, Any]:
        """Solve (J^T J + D) d = -gradient for the Levenberg-Marquardt step d.

        The largest factor is eliminated first: its block of J^T J is P (x) I_c with P = (U U^T) * (V V^T), and the
        Schur complement for the others is (W W^T) * (C - K P^-1 K^T), each entry by the two products that it is of,
        where K is R (a + b) x R. So a matrix of order R (a + b) is factored instead of one of order R (a + b + c).

        Args:
            x: (B, size).
            gradient: (B, size).
            damping: (B, size), the diagonal D; of W the largest of each product applies.

        Returns:
            d (B, size), and (B,) booleans, False where the matrix is not positive definite.
        """
        xp, rank = self.arrays.xp, self.rank
        (u, v, w), (a, b, c) = self.split(x), self.dims
        batch = len(x)
        gram_u, gram_v, gram_w = (f @ f.swapaxes(1, 2) for f in (u, v, w))
        inner = gram_u * gram_v
        inner[:, self._products, self._products] += xp.amax(self.split(damping)[2], 2)
        inverse = xp.linalg.inv(inner)
        left_u = (gram_v[:, :, None] * u.swapaxes(1, 2)[:, None]).reshape(batch, rank * a, rank)
        left_v = (gram_u[:, :, None] * v.swapaxes(1, 2)[:, None]).reshape(batch, rank * b, rank)
        left = xp.concatenate((left_u, left_v), 1)  # K
        full = -((left @ inverse) @ left.swapaxes(1, 2))
        cross = (v.swapaxes(1, 2)[:, None, :, :, None] * u[:, :, None, None, :]).reshape(batch, rank * b, rank * a)
        first = rank * a
        full[:, :first, :first] += self._diagonal(gram_v, a).reshape(batch, first, first)
        full[:, first:, first:] += self._diagonal(gram_u, b).reshape(batch, rank * b, rank * b)
        full[:, first:, :first] += cross
        full[:, :first, first:] += cross.swapaxes(1, 2)
        owner = self._owner
        full *= gram_w[:, owner][:, :, owner]
        full[:, self._rows, self._rows] += damping[:, : self.reduced]
        of_w = gradient[:, self.reduced :].reshape(batch, rank, c)
        share = w @ (inverse @ of_w).swapaxes(1, 2)
        head, solved = self.arrays.solve(full, (left * share[:, owner]).sum(2) - gradient[:, : self.reduced])
        moved = left * head[:, :, None]
        sums = moved[:, :first].reshape(batch, rank, a, rank).sum(2) + moved[:, first:].reshape(
            batch, rank, b, rank
        ).sum(2)
        tail = inverse @ (-of_w - sums.swapaxes(1, 2) @ w)
        return xp.concatenate((head, tail.reshape(batch, -1)), 1), solved
