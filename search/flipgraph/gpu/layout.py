"""Memory layout of a walker: words of two 16-bit halves, sets of slots, and the part in shared memory ("near").

A value (one factor of one term) has `planes` 16-bit parts. Plane 0 is a fingerprint: the scans of a step
read only this plane, and compare whole values for the selected partner only. The part of slot s of a factor
is in word (s >> 5) * 16 + (s & 15) of the plane, in its upper half if s & 16; so one 32-bit set of slots
corresponds to 16 consecutive words. An empty slot has value 0 in all factors.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ....errors import PlanError
from ....schemes_db import Kind, Target
from ....schemes_db.factor import IntArray
from ...terms.involution import Swaps, held_entries
from ...terms.orbits import OrbitTerms, PairTerms, ReversibleTerms, SymmetricTerms
from ...terms.packed import MAX_TERMS, PackedTerms, SchemeTerms
from ...terms.ternary import TernaryTerms
from ...terms.words import WORD_BITS, is_wide
from ..policy import WHOLE_REFUSED
from ..walkers import PAIRS, walk_kind

Words = npt.NDArray[np.uint32]

MAX_CUBES = 32
"""Maximum number of cubes of a symmetric walker."""

BLOCK_BYTES = 48 * 1024
"""Shared memory of a block of threads that needs no opt-in from the driver."""

NEAR_WORDS = 900
"""Maximum number of words of a walker in shared memory; a larger one stores only its fingerprints there."""

PRIME = 0x9E3779B1
"""2^32 over the golden ratio, made odd: the multiplier of the hashes of values and bits."""

HASH = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio: the fingerprint of a matrix and its reversal is 16 bits of the lesser one's product."""


def bit_print(bit: int) -> int:
    """Return the summand, modulo 2, of a set bit above the 15th in the fingerprint."""
    return (bit * PRIME >> 11) & 0xFFFF


class GpuWalk(NamedTuple):
    """A walk that runs on a GPU.

    Attributes:
        kind: the terms of its schemes: modulo 2, over {-1, 0, 1}, or orbits of a group modulo 2.
        cost: of a term beside the rank, one of `policy.COSTS`.
        swaps: those of another involution than reversal.
    """

    kind: type[SchemeTerms] | type[SymmetricTerms] = PackedTerms
    cost: str = ""
    swaps: Swaps | None = None


WALKS = {
    "flip": GpuWalk(),
    "flip-half": GpuWalk(cost="full"),
    "flip-zt": GpuWalk(TernaryTerms),
    "flip-c3": GpuWalk(OrbitTerms),
    "flip-c3z2": GpuWalk(ReversibleTerms),
    PAIRS: GpuWalk(PairTerms),
}
"""The walks that run on a GPU, by name."""


def gpu_walk(name: str) -> GpuWalk:
    """Return a walk by its name, with the swaps after a colon, see `walkers.walk_kind`.

    Raises:
        PlanError: the walk does not run on GPUs.
    """
    kind, swaps = walk_kind(name)
    if kind not in WALKS:
        raise PlanError(f"walk {name!r} does not run on a GPU; choose one of {', '.join(WALKS)}, or --device cpu")
    return WALKS[kind]._replace(swaps=swaps)


@dataclass(frozen=True)
class Form:
    """The memory format of a walker for any target: everything that the kernels depend on.

    `width` is the number of words of a factor in one plane, a multiple of 8, and `parts` the number of
    16-bit parts of the bits of a factor. `symmetric`: a slot is an orbit under the cyclic shift. `half` is 0 except
    for orbits under an involution: there bit i and bit half + i of a factor are entries that it exchanges, or one that
    it leaves, and plane 0 is a hash that a matrix and its image share; with `whole` orbits never become smaller ones.
    """

    width: int
    parts: int
    ternary: bool = False
    symmetric: bool = False
    half: int = 0
    whole: bool = False

    @property
    def weights(self) -> tuple[int, int]:
        """Numbers of terms of an orbit that is its own reversal, and of one that is not."""
        terms = 3 if self.symmetric else 1
        return terms, 2 * terms

    @property
    def planes(self) -> int:
        """Number of 16-bit parts of a value: bits, over {-1, 0, 1} separate for 1 and -1, and a hash with `half`."""
        return (2 if self.ternary else 1) * self.parts + (self.half > 0)

    @property
    def wide(self) -> bool:
        """True if a value needs more than 32 bits."""
        return self.parts > 2

    @property
    def masks(self) -> int:
        """Number of words of a set of slots."""
        return -(-self.width // 16)

    @property
    def slots(self) -> int:
        """Number of slots; their ids range up to 32 `masks`, with gaps where the width is no multiple of 16."""
        return 2 * self.width

    @cached_property
    def slot_ids(self) -> IntArray:
        """Ids of the slots."""
        numbers = np.arange(32 * self.masks)
        return numbers[(numbers >> 5) * 16 + (numbers & 15) < self.width]

    @property
    def rows(self) -> IntArray:
        """Words of the slots within a factor of a plane."""
        return (self.slot_ids >> 5) * 16 + (self.slot_ids & 15)

    @property
    def plane(self) -> int:
        """Number of words of a plane."""
        return 3 * self.width

    @property
    def far(self) -> int:
        """Number of 16-bit parts of a value that stay in global memory."""
        return self.planes - self.near

    @property
    def stride(self) -> int:
        """Words between rows of far parts: the parts of a term are in one or two sectors of 32 bytes."""
        return -(-3 * self.far // 4) * 4

    @cached_property
    def places(self) -> IntArray:
        """(planes, 3, width): indices of the words in a state. Near planes come first, by factor.

        The far parts of a row are contiguous.
        """
        p, f, row = np.ogrid[: self.planes, :3, : self.width]
        near = p * self.plane + f * self.width + row
        far = self.near * self.plane + row * self.stride + f * self.far + (p - self.near)
        return np.where(p < self.near, near, far)

    @property
    def signs(self) -> int:
        """Index of the signs of the terms in a state: one bit a slot."""
        return self.near * self.plane + self.width * self.stride

    @property
    def cubes(self) -> int:
        """Index of the cubes of a symmetric walker in a state: two words each."""
        return self.signs + (self.masks if self.ternary else 0)

    @property
    def words(self) -> int:
        """Number of words of a state in global memory: whole sectors."""
        return -(-(self.cubes + (2 * MAX_CUBES if self.symmetric else 0)) // 8) * 8

    @property
    def near(self) -> int:
        """Number of planes in shared memory; the others stay in global memory."""
        return self.planes if self._fast(self.planes) <= NEAR_WORDS else 1

    @property
    def fast(self) -> int:
        """Number of words of shared memory of a walker: near planes, active sets, signs."""
        return self._fast(self.near)

    def _fast(self, near: int) -> int:
        return near * self.plane + (4 if self.ternary else 3) * self.masks

    @property
    def threads(self) -> int:
        """Threads of a block: a warp if it fits, else part of one, as memory is then the limit, not compute."""
        return next((count for count in (32, 16) if 4 * self.fast * count <= BLOCK_BYTES), 8)


@dataclass(frozen=True)
class WalkerLayout:
    """Memory layout of the terms of a target in a walker."""

    target: Target
    form: Form
    walk: GpuWalk

    @classmethod
    def fitting(cls, target: Target, slots: int, walk: GpuWalk = WALKS["flip"], whole: bool = False) -> WalkerLayout:
        """Return a layout for `slots` terms, or orbits in a symmetric walk; with `whole` none becomes its own reversal.

        Raises:
            PlanError: a factor has more blocks than fit, `slots` is not from 2 to 512, or the walk does not fit.
        """
        bits = max(int((kinds != Kind.ABSENT).sum()) for kinds in target.kind_arrays)
        if is_wide(target) and target.is_general and walk == WALKS["flip"]:
            bits = WORD_BITS
        if bits > WORD_BITS:
            raise PlanError(f"{target} has a factor of {bits} blocks; this walk packs at most {WORD_BITS} on a GPU")
        if not 2 <= slots <= MAX_TERMS:
            raise PlanError(f"{slots} terms of {target} do not fit: a GPU walk holds 2 to {MAX_TERMS}")
        kind = walk.kind
        involution = kind.fitting(target, walk.swaps) if issubclass(kind, SymmetricTerms) else None
        if whole and not involution:
            raise PlanError(WHOLE_REFUSED)
        # Whole bytes: formats share kernels, and the number of parts is the same.
        half = -(-held_entries(target, involution) // 8) * 8 if involution else 0
        parts, shifted = -(-max(bits, 2 * half) // 16), kind in (OrbitTerms, ReversibleTerms)
        form = Form(-(-slots // 16) * 8, parts, kind is TernaryTerms, shifted, half, whole)
        return cls(target, form, walk)

    @cached_property
    def places(self) -> tuple[IntArray, ...]:
        """Flat indices of the block of each bit, for each factor: half blocks first, without absent ones."""
        order = (Kind.LOWER, Kind.UPPER, Kind.FULL)
        grids = self.target.kind_arrays
        return tuple(np.concatenate([np.flatnonzero(kinds == kind) for kind in order]) for kinds in grids)

    @cached_property
    def halves(self) -> npt.NDArray[np.uint64]:
        """(6,): masks of the lower and of the upper half blocks of each factor.

        Raises:
            PlanError: a factor has more half blocks than a fingerprint has bits.
        """
        masks = []
        for kinds in self.target.kind_arrays:
            lower, upper = (int((kinds == kind).sum()) for kind in (Kind.LOWER, Kind.UPPER))
            if lower + upper > 16:
                raise PlanError(f"{self.target} has a factor of {lower + upper} half blocks; a GPU walk knows 16")
            masks += [(1 << lower) - 1, ((1 << upper) - 1) << lower]
        return np.array(masks, dtype=np.uint64)
