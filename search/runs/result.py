"""Result of a search, and its progress while it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...schemes_db import Certificate, Ring, Scheme, Target
from ...schemes_db.display import line


@dataclass(frozen=True)
class Find:
    """A certified scheme and its certified origin over Z2 or Z3, found by a walk; the same scheme if it was not lifted.

    The scheme is a lift of the origin, or of a neighbour a few flips and changes of basis away.
    """

    scheme: Scheme
    certificate: Certificate
    origin: Scheme
    origin_certificate: Certificate

    def __repr__(self) -> str:
        return line(f"find {self.scheme.label}")


@dataclass(frozen=True)
class Unlifted:
    """A certified scheme over Z2 or Z3 that could not be lifted, and the reason."""

    origin: Scheme
    reason: str

    def __repr__(self) -> str:
        return line(f"{self.origin.label}, not lifted: {self.reason}")


@dataclass(frozen=True)
class Progress:
    """Progress of a search after a round: `rank` is the lowest that any walk has reached for `target`.

    `target` is the current format, on a ladder a smaller one at first; `gathered` is the number of stored
    schemes of each rank; `flips_per_second` is the rate of the last seconds; `wanted` is the rank wanted
    for the current format, `left` the seconds left.
    """

    target: Target
    round: int
    flips: int
    seconds: float
    rank: int
    seconds_since_gain: float
    finds: int
    gathered: dict[int, int] = field(default_factory=dict)
    flips_per_second: float = 0.0
    wanted: int | None = None
    left: float | None = None

    def __repr__(self) -> str:
        return line(f"progress {self.line}")

    @property
    def line(self) -> str:
        gathered = " ".join(f"{rank}:{count}" for rank, count in list(self.gathered.items())[:6])
        rate = self.flips_per_second
        flips = f"{rate / 1e9:.2f} G flips/s" if rate >= 1e9 else f"{rate / 1e6:.1f} M flips/s"
        parts = [
            f"{self.target}: best rank {self.rank}{f', {self.wanted} wanted' if self.wanted else ''}",
            f"round {self.round}",
            *([flips] if self.flips else []),
            f"last gain {self.seconds_since_gain:.0f} s ago",
            *([f"gathered {gathered}"] if gathered else []),
            f"{self.finds} found",
            *([f"{max(self.left, 0):.0f} s left"] if self.left is not None else []),
        ]
        return ", ".join(parts)


@dataclass(frozen=True)
class Result:
    """The outcome of a search.

    `finds` are in the order of rounds and walks; `steps` are the schemes of smaller formats that a
    ladder continued from. `ranks` is the number of walks with each lowest rank. The same seed, walks,
    steps and rounds give the same finds. If there are none, `nearest` is the lowest scheme that the walks
    for the target reached, if it is below their start. `objective` is what finds improve.
    """

    target: Target
    ring: Ring
    seed: int
    finds: tuple[Find, ...]
    unlifted: tuple[Unlifted, ...]
    ranks: dict[int, int]
    rounds: int
    flips: int
    seconds: float
    interrupted: bool
    steps: tuple[Find, ...] = ()
    nearest: Find | Unlifted | None = None
    objective: str = "rank"

    def __repr__(self) -> str:
        found = f"{len(self.finds)} found, best {self.best.label}" if self.best else "nothing found"
        return line(f"search of {self.target} over {self.ring}: {found}, {self.rounds} rounds, {self.seconds:.1f} s")

    @property
    def lineage(self) -> tuple[Find, ...]:
        """Steps that finds were derived from, smallest formats first."""
        near = (self.nearest,) if isinstance(self.nearest, Find) else ()
        needed = {parent for found in (*self.finds, *near) for parent in found.origin.provenance.parents}
        kept = []
        for step in reversed(self.steps):
            if step.origin.digest in needed:
                needed |= set(step.origin.provenance.parents)
                kept.append(step)
        return tuple(reversed(kept))

    @property
    def schemes(self) -> tuple[Scheme, ...]:
        return tuple(find.scheme for find in self.finds)

    @property
    def best(self) -> Scheme | None:
        """First find of the lowest rank, or None."""
        return min(self.schemes, key=lambda scheme: scheme.rank, default=None)

    @property
    def flips_per_second(self) -> float:
        return self.flips / self.seconds if self.seconds else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the statistics as JSON values, without the schemes."""
        return {
            "target": self.target.name,
            "ring": self.ring.name,
            "seed": self.seed,
            "rounds": self.rounds,
            "finds": len(self.finds),
            "unlifted": len(self.unlifted),
            "flips": self.flips,
            "seconds": self.seconds,
            "flips_per_second": self.flips_per_second,
            "interrupted": self.interrupted,
            "ranks": {str(rank): count for rank, count in sorted(self.ranks.items())},
        }
