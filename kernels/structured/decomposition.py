"""Decomposition of dense weights to block low-rank factors: truncated SVDs, and preconditioned descent for BLAST.

Functions compute in float64 for numpy arrays, and on the device of torch tensors: in float64 for those of float64, else
in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...arguments import INTEGER, NUMBER, need, shown
from ...errors import ArgumentError, PlanError
from ...schemes_db.masks import refuse_masks
from ..arrays import module_of, zeros
from .block_low_rank import Blast
from .blocks import Array, contiguous
from .chain import FactorChain
from .pattern import chain_pattern, chain_reason
from .truncation import dropped_squares, factors_of_blocks, rank_blocks, truncated

STEPS = 300
"""Default number of descent steps for BLAST, as in the paper."""

DAMPING = 0.01
"""The damping of a step, relative to the relative residual."""

MOMENTUM, LARGEST_MOMENTUM = 0.5, 1.5
"""Extrapolation of a step from the last point, as a fraction of the last change: the initial and the maximum value."""

WINDOW = 10
"""Number of steps over which a tolerance of the descent is measured."""

OnStep = Callable[[int, float], None]
"""on_step(step, error): called after every step with the relative error."""


@dataclass(frozen=True)
class Decomposition:
    """Factors that approximate a weight, left-most first, and their relative error in the Frobenius norm."""

    structure: FactorChain
    factors: tuple[Array, ...]
    error: float


def decompose(
    weight: Array,
    structure: FactorChain,
    steps: int = STEPS,
    seed: int = 0,
    on_step: OnStep = lambda *_: None,
    tolerance: float = 0.0,
) -> Decomposition:
    """Approximate a weight (rows, cols) by factors: optimally for low-rank and Monarch matrices and their like.

    BLAST's descent ends after `steps` steps, or once WINDOW steps lower the error by less than the part `tolerance`
    of it.

    Raises:
        PlanError: the weight has another size, or contains NaN or infinity, or the structure is another list.
    """
    need(FactorChain, structure=structure)
    need(INTEGER, least=0, steps=steps, seed=seed)
    need(NUMBER, least=0, tolerance=tolerance)
    if not hasattr(weight, "shape") or not hasattr(weight, "dtype"):
        raise ArgumentError(f"weight must be an array of numpy or a torch tensor, not {shown(weight)}")
    refuse_masks(weight=weight)
    if tuple(weight.shape) != (structure.rows, structure.cols):
        raise PlanError(f"the weight is {tuple(weight.shape)}; {structure.name} is needed")
    wide: Array = weight.astype(np.float64) if isinstance(weight, np.ndarray) else weight
    if str(wide.dtype).removeprefix("torch.") != "float64":
        wide = wide.float()
    if not np.isfinite(float((wide * wide).sum())):
        raise PlanError("the weight holds NaN or infinity, or numbers too large to square; repair it first")
    if isinstance(structure, Blast):
        return _descend(wide, structure, steps, seed, on_step, tolerance)
    if not is_pair(structure):
        raise PlanError(f"{structure.name} is no pair of factors as Monarch's; lcma.kronecker.factorize takes any list")
    return _truncated(wide, structure)


def least_error(weight: Array, structure: FactorChain) -> float:
    """Return the least relative error of a weight by the factors of an `is_pair`, without the factors."""
    return _relative(dropped_squares(*_blocks(weight, structure)), weight)


def is_pair(structure: FactorChain) -> bool:
    """Return whether a matrix is a product of two chainable factors that is dense, as low-rank and Monarch matrices."""
    two = len(structure.patterns) == 2 and chain_reason(structure.patterns) is None
    return two and chain_pattern(structure.patterns).density == 1


def _truncated(weight: Array, structure: FactorChain) -> Decomposition:
    """Compute the truncated SVDs of all blocks at once."""
    u, v, dropped = truncated(*_blocks(weight, structure), shared=True)
    factors = zip(factors_of_blocks(u, v, *structure.patterns), structure.factor_shapes, strict=True)
    shaped = tuple(one.reshape(shape) for one, shape in factors)
    return Decomposition(structure, shaped, _relative(dropped, weight))


def _relative(lost: float, weight: Array) -> float:
    squares = float((weight * weight).sum())
    return (lost / squares) ** 0.5 if squares else 0.0


def _blocks(weight: Array, structure: FactorChain) -> tuple[Array, int]:
    """Return the blocks (count, q, p) of a weight (rows, cols) that have the rank of the structure, and this rank."""
    if structure.is_blocked:
        _, b, _, d = structure.patterns[0].sizes
        weight = weight.reshape(d, b, structure.cols).swapaxes(0, 1)
    return rank_blocks(weight.reshape(1, 1, structure.rows, structure.cols), *structure.patterns)


def _descend(
    weight: Array, structure: Blast, steps: int, seed: int, on_step: OnStep, tolerance: float
) -> Decomposition:
    """Alternating gradient steps with momentum, each preconditioned by the damped Gram matrix of the other factors.

    With A = U diag(s) V by blocks, a step on U[k] is -R B^T (B B^T + d I)^-1, B being the rows diag(S[:, k, l]) V[l]
    of all l concatenated; likewise for V[l]; the diagonals S[:, k, l] have the Gram matrix (U^T U) * (V V^T). The
    damping d is DAMPING times the relative residual, in units of the mean of the Gram matrix's diagonal; with d = 0 a
    step is the least-squares solution. A step starts at x + m (x - y) for the last points y and x; m grows while the
    error falls, and shrinks if it rises: then the step is dropped, and the next one starts at x. Momentum lets the
    scales of the three factors drift apart, in float32 beyond its range after some 60 steps; powers of two between
    them, which change no step, are evened out.

    Source: based on the preconditioned descent of Lee et al., "BLAST" (NeurIPS 2024); momentum and damping are ours.
    """
    b1, b2, p, q = structure.b1, structure.b2, structure.p, structure.q
    blocks = contiguous(weight.reshape(b2, q, b1, p).swapaxes(1, 2))  # (b2, b1, q, p)
    norm = float((blocks * blocks).sum()) ** 0.5
    if norm == 0:
        return Decomposition(structure, tuple(zeros(shape, weight) for shape in structure.factor_shapes), 0.0)
    if steps < 1:
        raise PlanError(f"steps must be at least 1, not {steps}")
    point = _start(weight, structure, seed)
    before, error, momentum = None, 1.0, MOMENTUM
    best, least = point, np.inf
    errors: list[float] = []
    for step in range(1, steps + 1):
        stalled = len(errors) > WINDOW and errors[-1] > (1 - tolerance) * errors[-1 - WINDOW]
        last = step == steps or (tolerance > 0 and stalled)
        damping = 1e-12 if last else DAMPING * min(1.0, error)
        trial = point
        if before is not None:
            trial = tuple(x + momentum * (x - y) for x, y in zip(point, before, strict=True))
        found, squares = _swept(blocks, trial, damping)
        reached = squares**0.5 / norm
        if not np.isfinite(reached) or (before is not None and reached > error):
            before, momentum = None, 0.3 * momentum
        else:
            scales = _even_scales(found)
            before, point = (tuple(x * c for x, c in zip(one, scales, strict=True)) for one in (point, found))
            error = reached
            momentum = min(LARGEST_MOMENTUM, 1.05 * momentum + 0.01)
        if error < least:
            best, least = point, error
        errors.append(error)
        on_step(step, error)
        if last:
            break
    return Decomposition(structure, tuple(map(contiguous, _balanced(*best))), least)


def _swept(
    blocks: Array, point: tuple[Array, Array, Array], damping: float
) -> tuple[tuple[Array, Array, Array], float]:
    """Return one step on U, then V, then S, and the squared residual; U (b2, q, r), S (r, b2, b1), V (b1, r, p)."""
    u, s, v = point
    flat = s.swapaxes(0, 1).swapaxes(1, 2)  # (b2, b1, r)
    right = flat[..., None] * v[None]  # (b2, b1, r, p): diag(S[:, k, l]) V[l]
    gram = (right @ right.swapaxes(-1, -2)).sum(1)  # (b2, r, r)
    target = (blocks @ right.swapaxes(-1, -2)).sum(1)  # (b2, q, r)
    u = _stepped(u, gram, target, damping)
    left = flat[:, :, None, :] * u[:, None]  # (b2, b1, q, r)
    gram = (left.swapaxes(-1, -2) @ left).sum(0)  # (b1, r, r)
    target = (blocks.swapaxes(-1, -2) @ left).sum(0)  # (b1, p, r)
    v = _stepped(v.swapaxes(1, 2), gram, target, damping).swapaxes(1, 2)
    grams = (u.swapaxes(1, 2) @ u)[:, None] * (v @ v.swapaxes(1, 2))[None]  # (b2, b1, r, r)
    half = u.swapaxes(1, 2)[:, None] @ blocks  # (b2, b1, r, p)
    wanted = (half * v[None]).sum(-1)  # (b2, b1, r)
    flat = _stepped(flat[:, :, None, :], grams, wanted[:, :, None, :], damping)[:, :, 0]
    residual = blocks - (flat[:, :, None, :] * u[:, None]) @ v[None]
    return (u, flat.swapaxes(1, 2).swapaxes(0, 1), v), float((residual * residual).sum())


def _even_scales(point: tuple[Array, Array, Array]) -> tuple[float, float, float]:
    """Return powers of two whose product is one and which bring the norms of U, S and V nearest to each other."""
    logs = [float(np.log2(float((x * x).sum()) or 1.0)) / 2 for x in point]
    mean = sum(logs) / 3
    first, second = (round(mean - one) for one in logs[:2])
    return 2.0**first, 2.0**second, 2.0 ** -(first + second)


def _balanced(u: Array, s: Array, v: Array) -> tuple[Array, Array, Array]:
    """Rescale the factors so that the parts of every rank have equal norms, which fits half precision."""
    norms = [((x * x).sum(axes)) ** 0.5 for x, axes in ((u, (0, 1)), (s, (1, 2)), (v, (0, 2)))]
    first, second, third = (x + (x == 0) for x in norms)
    mean = (norms[0] * norms[1] * norms[2]) ** (1 / 3)
    return u * (mean / first), s * (mean / second)[:, None, None], v * (mean / third)[:, None]


def _start(weight: Array, structure: Blast, seed: int) -> tuple[Array, Array, Array]:
    """Return small normal U (b2, q, r), S (r, b2, b1) uniform in (0, 1), and small normal V (b1, r, p)."""
    rng = np.random.default_rng(seed)
    (_, q, _), shape_s, (_, _, p) = structure.factor_shapes
    u = rng.standard_normal(structure.factor_shapes[0]) / q**0.5
    v = rng.standard_normal(structure.factor_shapes[2]) / p**0.5
    s = rng.uniform(0.0, 1.0, shape_s)
    if isinstance(weight, np.ndarray):
        return u, s, v
    import torch

    first, second, third = (torch.from_numpy(one).to(weight.device, weight.dtype) for one in (u, s, v))
    return first, second, third


def _stepped(x: Array, gram: Array, target: Array, damping: float) -> Array:
    """Return x - (x G - T) (G + d I)^-1 for x (..., m, r), G (..., r, r) and T (..., m, r)."""
    r = gram.shape[-1]
    diagonal = (gram * _eye(gram, r)).sum((-1, -2)) / r
    damped = gram + (damping * diagonal + 1e-12 * diagonal.max())[..., None, None] * _eye(gram, r)
    gradient = x @ gram - target
    solved = _solve_positive(damped, gradient.swapaxes(-1, -2)).swapaxes(-1, -2)
    return x - solved


def _solve_positive(matrix: Array, right: Array) -> Array:
    """The solution for positive definite matrices; of tensors by their Cholesky factors where rounding leaves them so.

    On an H200 256 systems of 800 unknowns took 8 ms by Cholesky and 27 ms by `solve`.
    """
    linalg = module_of(matrix).linalg
    if isinstance(matrix, np.ndarray):
        return linalg.solve(matrix, right)
    lower, failed = linalg.cholesky_ex(matrix)
    if failed.any():
        return linalg.solve(matrix, right)
    return linalg.solve_triangular(lower.mT, linalg.solve_triangular(lower, right, upper=False), upper=True)


def _eye(like: Array, size: int) -> Array:
    if isinstance(like, np.ndarray):
        return np.eye(size)
    import torch

    return torch.eye(size, dtype=like.dtype, device=like.device)
