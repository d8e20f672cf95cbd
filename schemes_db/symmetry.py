"""One scheme, all triangular products: the symmetries of tr(A B D) carry the triangle from role to role."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import PlanError
from .grids import full_grid, triangular_grid

if TYPE_CHECKING:  # requests name triangles, and the first product of a process needs no schemes
    from .scheme import Scheme
    from .target import Target

SIDES = ("left", "right", "out")


@dataclass(frozen=True)
class Triangle:
    """The place of a product's triangle: the operand on one `side`, or `out`, and which triangle.

    `shared`: B is A^T, and one triangle of the product is wanted.
    """

    side: str
    upper: bool = False
    shared: bool = False

    def target(self, m: int, k: int, n: int) -> Target:
        """The target of this product on a grid."""
        from .target import Target

        grids = [full_grid(m, k), full_grid(k, n), full_grid(m, n)]
        place = SIDES.index(self.side)
        grids[place] = triangular_grid(len(grids[place]), self.upper)
        return Target(m, k, n, grids[0], grids[1], grids[2], shared=self.shared)

    def __str__(self) -> str:
        return f"{'gram' if self.shared else f'tri-{self.side}'}{':upper' if self.upper else ''}"


ATTENTION_PRODUCTS = {
    "QK": Triangle("out"),
    "PV": Triangle("left"),
    "dV": Triangle("left", upper=True),
    "dP": Triangle("out"),
    "dQ": Triangle("left"),
    "dK": Triangle("left", upper=True),
}
"""The six products of causal attention: S = Q K^T, O = P V, dV = P^T dO, dP = dO V^T, dQ = dS K, dK = dS^T Q."""


def orbit(scheme: Scheme) -> list[Scheme]:
    """The scheme and all that rotation, transposition and reversal make of it: at most 12, the shortest way first.

    Source: these generate the symmetries of the trilinear form tr(A B D) that act on the three roles
    and on the order of the indices; ECA, section 2.3, uses them for the backward pass.
    """
    from .algebra import reverse, rotate, transpose

    found = [scheme]
    seen = {_fingerprint(scheme)}
    for known in found:  # grows while it is walked: a breadth-first search
        for step in (rotate, transpose, reverse):
            made = step(known)
            if (mark := _fingerprint(made)) not in seen:
                seen.add(mark)
                found.append(made)
    return found


def _fingerprint(scheme: Scheme) -> tuple[object, ...]:
    return (scheme.target, *(factor.dense.tobytes() for factor in scheme.factors))


def derive(scheme: Scheme, target: Target) -> Scheme:
    """A scheme for `target` from one of the same orbit, with the same number of full and half products.

    Raises:
        PlanError: the target is not in the orbit of the scheme's, or the scheme is exact for scalars
            only, so that no recursion or block product may use it.
    """
    if not scheme.target.block_recursive:
        raise PlanError(f"{scheme.target} is exact for scalars only: its blocks are no matrices of their own")
    for made in orbit(scheme):
        if made.target == target:
            return made
    raise PlanError(f"no rotation, transposition or reversal turns {scheme.target} into {target}")


def attention_schemes(scheme: Scheme) -> dict[str, Scheme]:
    """The schemes of all six products of causal attention from one for any triangular product.

    Raises:
        PlanError: the scheme is for no triangular product.
    """
    m, k, n = scheme.target.shape
    if not m == k == n:
        raise PlanError(f"{scheme.target} has no square grid: the six products need one of the same size each")
    return {name: derive(scheme, triangle.target(m, k, n)) for name, triangle in ATTENTION_PRODUCTS.items()}


def triangle_of(target: Target) -> Triangle | None:
    """The triangle that a target has, or None where it is not a triangular product."""
    for side in ("out",) if target.shared else SIDES:
        grid = (target.a, target.b, target.c)[SIDES.index(side)]
        for upper in (False, True):
            found = Triangle(side, upper, target.shared)
            if len(grid) == len(grid[0]) and found.target(*target.shape) == target:
                return found
    return None
