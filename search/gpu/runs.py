"""A GPU as the device of a run: the walks of `lcma search --device cuda`."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor

import numpy as np

from ...errors import PlanError
from ..packed import PackedTerms
from ..policy import Policy
from ..snapshot import Arrays
from ..ternary import TernaryTerms
from ..walker import Terms
from .fleet import Fleet
from .rules import Rules

WALKS = ("flip", "flip-zt", "flip-c3")
"""The kinds of walk that a GPU knows."""


class RunFleet:
    """The walks of a run, all on the GPUs at hand (`device` "cpu": their twins); see `search.fleet.Fleet`.

    A walk that restarts by itself goes back to the start that the fleet was made from.

    Raises:
        PlanError: no GPU is there, the walk or its policy is not known to GPUs, or the start does not fit.
    """

    def __init__(
        self,
        walk: str,
        starts: Sequence[Terms],
        seed: int,
        first: int,
        walks: int,
        policy: Policy,
        device: str = "cuda",
    ) -> None:
        if walk not in WALKS:
            raise PlanError(f"walk {walk!r} does not run on a GPU; choose one of {', '.join(WALKS)}, or --device cpu")
        if policy.guarded or policy.keep:
            raise PlanError("a GPU walk knows no bounds on its flips: take --device cpu")
        self._ternary = walk == "flip-zt"
        rules = Rules(policy.plus_after, policy.margin, min(policy.restart_after, 1 << 30))
        schemes = [terms.to_scheme() for terms in starts]
        self._fleet = Fleet(
            schemes,
            rules,
            seed=seed + (first << 32),
            walkers=walks,
            ternary=self._ternary,
            symmetric=walk == "flip-c3",
            device=device,
        )
        self._waiting: dict[int, Terms | None] = {}
        self._ranks = self._fleet.score.copy()
        self._lowest = self._ranks.copy()
        self._steps = np.zeros(walks, dtype=np.int64)

    def __len__(self) -> int:
        return self._fleet.walkers

    @property
    def ranks(self) -> list[int]:
        return self._ranks.tolist()

    @property
    def lowest(self) -> list[int]:
        return self._lowest.tolist()

    @property
    def flips(self) -> int:
        return self._fleet.flips

    def advance(self, goals: Sequence[int], steps: int, executor: Executor | None) -> None:
        """One round; a GPU has no use for the executor.

        Raises:
            DeviceLostError: a GPU stopped answering; the run's last checkpoint is what remains.
        """
        self._send_waiting()
        self._fleet.launch(steps, np.asarray(goals, dtype=np.int32))
        self._ranks = self._fleet.score.copy()
        self._lowest = np.minimum(self._lowest, self._ranks)
        self._steps = self._fleet.steps

    def _send_waiting(self) -> None:
        back = [walk for walk, terms in self._waiting.items() if terms is None]
        sent = {walk: terms for walk, terms in self._waiting.items() if terms is not None}
        self._fleet.rewind(np.array(back, dtype=np.int64))
        if sent:
            walks = np.array(list(sent), dtype=np.int64)
            self._fleet.send_to(walks, [terms.to_scheme() for terms in sent.values()])
        self._waiting.clear()

    def terms(self, walk: int) -> Terms:
        if waiting := self._waiting.get(walk):
            return waiting
        scheme = self._fleet.scheme(walk)
        return TernaryTerms.from_scheme(scheme) if self._ternary else PackedTerms.from_scheme(scheme)

    def steps(self, walk: int) -> int:
        return int(self._steps[walk])

    def rewind(self, walk: int) -> None:
        self._waiting[walk] = None
        self._ranks[walk] = self._fleet.start_rank(walk)

    def send(self, walk: int, terms: Terms) -> None:
        self._waiting[walk] = terms
        self._ranks[walk] = terms.rank

    def to_arrays(self) -> Arrays:
        self._send_waiting()
        return {**self._fleet.to_arrays(), "ranks": self._ranks, "lowest": self._lowest}

    def take_arrays(self, arrays: Arrays) -> None:
        self._fleet.take_arrays(arrays)
        self._waiting.clear()
        self._ranks, self._lowest = arrays["ranks"].astype(np.int32), arrays["lowest"].astype(np.int32)
        self._steps = self._fleet.steps


def gpu_fleet(walk: str, starts: Sequence[Terms], seed: int, first: int, walks: int, policy: Policy) -> RunFleet:
    """Walks `first` to `first + walks - 1` of a run, on the GPUs at hand.

    Raises:
        PlanError: see `RunFleet`.
    """
    return RunFleet(walk, starts, seed, first, walks, policy)
