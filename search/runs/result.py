"""Result of a search, its progress while it runs, and its finds as lines of JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from ...errors import SchemeFormatError
from ...schemes_db import Certificate, Ring, Scheme, Target
from ...schemes_db.display import line
from ...schemes_db.formats import lcma_json
from ...schemes_db.formats.strict_json import loads, need
from ...verify import certify


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
class Record:
    """A find, or a scheme over Z2 or Z3 that did not lift, with its round and walk.

    `stage` counts the formats of the run from 0; finds of all but the last are steps of a ladder.
    """

    round: int
    walk: int
    found: Find | Unlifted
    stage: int = 0

    def to_line(self) -> str:
        """Return the record as one line, certificates included."""
        found = self.found
        data: dict[str, Any] = {"round": self.round, "walk": self.walk, "stage": self.stage}
        if isinstance(found, Find):
            data["scheme"] = lcma_json.to_json(found.scheme, found.certificate)
            if found.origin.digest != found.scheme.digest:
                data["origin"] = lcma_json.to_json(found.origin, found.origin_certificate)
        else:
            data["origin"] = lcma_json.to_json(found.origin)
            data["reason"] = found.reason
        return json.dumps(data) + "\n"

    @classmethod
    def from_line(cls, line: str) -> Record:
        """Invert `to_line`; the schemes are certified again.

        Raises:
            SchemeFormatError: the line is no record.
            VerificationError: a scheme in it is not valid.
        """
        data = loads(line)
        if not isinstance(data, dict):
            raise SchemeFormatError("a record must be a JSON object")
        number, walk, stage = (need(data, key, int, "the record") for key in ("round", "walk", "stage"))
        if "scheme" not in data:
            origin = _scheme(need(data, "origin", dict, "the record"))
            certify(origin)
            return cls(number, walk, Unlifted(origin, need(data, "reason", str, "the record")), stage)
        scheme = _scheme(data["scheme"])
        origin = _scheme(data["origin"]) if "origin" in data else scheme
        certificate = certify(scheme)
        own = certificate if origin is scheme else certify(origin)
        return cls(number, walk, Find(scheme, certificate, origin, own), stage)


def _scheme(data: object) -> Scheme:
    return lcma_json.parse(json.dumps(data))[0].scheme


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
    def kept(self) -> tuple[Find, ...]:
        """The finds, or the nearest scheme if there are none."""
        return (*self.finds, *((self.nearest,) if isinstance(self.nearest, Find) else ()))

    @property
    def lineage(self) -> tuple[Find, ...]:
        """Steps that finds were derived from, smallest formats first."""
        needed = {parent for found in self.kept for parent in found.origin.provenance.parents}
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
