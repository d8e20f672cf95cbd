"""The analytic cost of one level of a scheme on given sizes, calibrated by a machine's profile.

Source: FalconGEMM (arXiv:2605.06057), Table II and Eq. 8 to 10. Every stage takes the longer of its
arithmetic and its traffic. Beyond the paper: blocks are those of the padded sizes, the rate of the
products is that of their own size, a sum that is a block as it stands is neither read nor written,
and the products of a level may be a level themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..codegen.maps import MAX_TARGETS
from ..dtypes import dtype_of
from ..planning.profile import Profile

TILE = 16
"""Rows and columns that a library's innermost kernel works at once."""


@dataclass(frozen=True)
class Figures:
    """What a scheme <m,k,n;R> costs a level; numbers, or arrays with an entry a scheme.

    `nnz` are the nonzeros of U, V and W; `made` how many left and right sums are not a block as it
    stands; `growth` its stability factor.
    """

    m: Any
    k: Any
    n: Any
    rank: Any
    nnz: tuple[Any, Any, Any]
    made: tuple[Any, Any]
    growth: Any

    def packed(self) -> np.ndarray:
        """All figures as rows of one array, in the order of the fields."""
        return np.array([self.m, self.k, self.n, self.rank, *self.nnz, *self.made, self.growth], dtype=float)

    @classmethod
    def unpacked(cls, rows: np.ndarray) -> Figures:
        """The inverse of `packed`."""
        m, k, n, rank, nu, nv, nw, made_a, made_b, growth = rows
        return cls(m, k, n, rank, (nu, nv, nw), (made_a, made_b), growth)

    @classmethod
    def stacked(cls, several: Sequence[Figures]) -> Figures:
        """The figures of several schemes as arrays."""
        return cls.unpacked(np.stack([figures.packed() for figures in several], axis=1))

    def __getitem__(self, place: Any) -> Figures:
        return Figures.unpacked(self.packed()[:, place])

    def block(self, m: Any, k: Any, n: Any) -> tuple[Any, Any, Any]:
        """The sizes of the blocks of a padded product."""
        # Exact: a quotient of whole numbers this small never rounds to a whole one. Faster than `//`.
        return np.ceil(m / self.m), np.ceil(k / self.k), np.ceil(n / self.n)


@dataclass(frozen=True)
class Row:
    """A row of Table II: arithmetic operations, bytes, and seconds of what takes longer."""

    stage: str
    flops: Any
    bytes: Any
    seconds: Any

    @property
    def intensity(self) -> Any:
        """Operations a byte."""
        return self.flops / self.bytes


def gemm_row(profile: Profile, dtype: str, m: Any, k: Any, n: Any, mode: str = "whole", count: Any = 1) -> Row:
    """`count` plain products m x k x n by the library."""
    kind = dtype_of(dtype)
    flops = 2.0 * kind.parts**2 * count * m * k * n
    moved = count * (m * k + k * n + m * n) * float(kind.numpy.itemsize)
    rates = profile.rates(dtype, mode)
    seconds = flops * _tiled(m, n) / rates.at(m, k, n) if rates is not None else np.nan * flops
    return Row("GEMM", flops, moved, seconds)


def gemm_seconds(profile: Profile, dtype: str, m: Any, k: Any, n: Any, count: Any) -> tuple[Any, Any]:
    """Seconds of `count` plain products by the library, one after the other ("whole") and as tasks."""
    worked = 2.0 * dtype_of(dtype).parts ** 2 * count * m * k * n * _tiled(m, n)
    whole, tasks = profile.rates(dtype), profile.rates(dtype, "tasks")
    if whole is None or tasks is None:
        return np.nan * worked, np.nan * worked
    alone, together = whole.both(tasks, m, k, n)
    return worked / alone, worked / together


def _tiled(m: Any, n: Any) -> Any:
    """What the libraries work for a product: whole tiles of registers. What reaches over the edge is lost."""
    return np.ceil(m / TILE) * np.ceil(n / TILE) * TILE**2 / np.maximum(m * n, 1)


def combine_rows(profile: Profile, dtype: str, figures: Figures, m: Any, k: Any, n: Any) -> tuple[Row, Row, Row]:
    """Combine A, Combine B and Combine H of one level on m x k x n."""
    kind = dtype_of(dtype)
    item = float(kind.numpy.itemsize)
    bm, bk, bn = figures.block(m, k, n)

    def row(stage: str, additions: Any, reads: Any, writes: Any, block: Any) -> Row:
        flops = 1.0 * kind.parts * additions * block
        moved = item * (reads * np.ceil(writes / MAX_TARGETS) + writes) * block
        return Row(stage, flops, moved, _longer(profile, flops, moved))

    (nu, nv, nw), (made_a, made_b) = figures.nnz, figures.made
    gm, gk, gn, rank = figures.m, figures.k, figures.n, figures.rank
    return (
        row("Combine A", nu - rank, gm * gk, made_a, bm * bk),
        row("Combine B", nv - rank, gk * gn, made_b, bk * bn),
        row("Combine H", nw - gm * gn, rank, gm * gn, bm * bn),
    )


def _longer(profile: Profile, flops: Any, moved: Any) -> Any:
    bandwidth = profile.combine_rate or profile.bandwidth
    memory = moved / bandwidth if bandwidth else np.nan * moved
    return np.maximum(memory, flops / profile.add_rate) if profile.add_rate else memory


@dataclass(frozen=True)
class Verdict:
    """An inequality of the paper with its two sides: arithmetic intensity and operations a byte of the machine."""

    name: str
    left: float
    right: float

    @property
    def holds(self) -> bool:
        return self.left > self.right

    def __str__(self) -> str:
        return f"{self.name}: {self.left:.1f} {'>' if self.holds else '<='} {self.right:.1f} flop/element"


def _balance(profile: Profile, dtype: str, m: int, k: int, n: int) -> float | None:
    """FLOPS_x / beta, with beta in elements per second."""
    rate, bandwidth = profile.gemm_rate(dtype, m, k, n), profile.bandwidth or profile.combine_rate
    if rate is None or bandwidth is None:
        return None
    return rate / (bandwidth / dtype_of(dtype).numpy.itemsize)


def compute_bound(profile: Profile, dtype: str, m: int, k: int, n: int) -> Verdict | None:
    """Eq. 8: where it does not hold the plain product is bound by memory, and no scheme can gain."""
    balance = _balance(profile, dtype, m, k, n)
    if balance is None:
        return None
    return Verdict("Eq. 8", 2.0 * m * n * k / max(m * k + n * k + m * n, 1), balance)


def worth_it(
    profile: Profile, dtype: str, figures: Figures, m: int, k: int, n: int, fused: bool = False
) -> Verdict | None:
    """Eq. 9: saved operations against added traffic; `fused` is Eq. 10, where the products are never written."""
    balance = _balance(profile, dtype, m, k, n)
    if balance is None:
        return None
    gm, gk, gn, rank = (int(x) for x in (figures.m, figures.k, figures.n, figures.rank))
    saved = 2.0 * m * n * k * (1 - rank / (gm * gk * gn))
    moved = m * k * (1 + rank / (gm * gk)) + n * k * (1 + rank / (gk * gn))
    moved += m * n * (1 if fused else 1 + rank / (gm * gn))
    return Verdict("Eq. 10" if fused else "Eq. 9", saved / max(moved, 1), balance)
