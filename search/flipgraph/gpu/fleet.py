"""Many walkers on the GPUs at hand, or their twins on the processor: launched, selected, sampled, kept."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ....errors import PlanError
from ....schemes_db import Provenance, Scheme
from ...seeds import splitmix, splitmix_range
from ..policy import Policy
from .device import chosen_gpus
from .kernel import STEPS
from .layout import Layout
from .memory import KEPT, Array, GpuMemory, HostMemory, Memory
from .numbers import numbers_of, thresholds_of
from .packing import orbits_in_pairs, pack_all, ranks_of, unpack

Places = npt.NDArray[np.int64]

ELITE = 2048
"""Members of the best that a selection copies from."""

_SELECTION = 1 << 40
"""Draws of the host start at this index, where no walker's are."""


def slots_for(starts: Sequence[Scheme], spare: int, falling: bool, symmetric: bool, reversible: bool) -> int:
    """The slots that walkers from some schemes need to take `spare` terms more; `falling`: none before they fell."""
    largest = max(scheme.rank for scheme in starts)
    if reversible:
        # Mostly a slot for six terms; a plus that finds no slot is not taken. With 48 slots, not 64, a block of
        # 6x6x6 is a whole warp.
        return max(orbits_in_pairs(scheme) for scheme in starts) + min(spare // 3, 2) + 8
    if symmetric:
        return (largest + 2) // 3 + spare // 3 + 2
    # A naive scheme falls before a plus is of use: it needs room for its own terms only.
    return largest if falling and largest >= len(starts[0].target.terms) else largest + spare


class Fleet:
    """Walkers from some schemes of one target, which bring a score down: the rank, or rank and cost.

    Walker w starts at scheme w modulo their number; a restart takes one of them by the walker's own
    draw. The course of a fleet depends on its starts, policy, seed, number of walkers and the steps of
    its launches only, and is the same on a GPU and on the processor.

    Attributes:
        layout: how a scheme lies in memory.
        score: (walkers,) the lowest score of each since its start.
        roots: (walkers,) the walker that each descends from through selections.
        flips, launches, seconds: in all; seconds are those of launches, compilation left out.

    Args:
        symmetric, reversible: walks on schemes that a cyclic shift of the matrices keeps, and a reversal of rows and
            columns too.
        starts: schemes of one target, over Z2 or any ring with a meaning modulo 2, or ternary ones.
        walkers: how many; as many as the GPUs hold at once if None.
        room: terms more than the largest start has that walkers must be able to hold.
        device: "cuda" for the current GPU, "cuda:0,1" for some, "cuda:all" for all, "cpu" for the twin.

    Raises:
        PlanError: the starts do not fit, no GPU is there, or numba-cuda is absent or unfit.
    """

    def __init__(
        self,
        starts: Sequence[Scheme],
        policy: Policy | None = None,
        *,
        seed: int = 0,
        walkers: int | None = None,
        ternary: bool = False,
        symmetric: bool = False,
        reversible: bool = False,
        room: int | None = None,
        device: str = "cuda",
    ) -> None:
        if not starts:
            raise PlanError("a fleet needs a scheme to start from")
        if walkers is not None and walkers < 1:
            raise PlanError("a fleet needs at least 1 walker")
        self.policy = (policy or Policy()).checked()
        self.layout = Layout.fitting(
            starts[0].target,
            slots_for(starts, self.policy.margin if room is None else room, room is None, symmetric, reversible),
            ternary=ternary,
            symmetric=symmetric or reversible,
            reversible=reversible,
            whole=self.policy.orbits == "whole",
        )
        if self.policy.cost == "full" and not self.layout.halves.any():
            raise PlanError(f"{starts[0].target} has no half blocks: there are no full products to count")
        self._starts = pack_all(self.layout, starts)
        self._start_ranks = np.array([scheme.rank for scheme in starts], dtype=np.int64)
        self._seed, self._draws = seed, 0
        self._parts: list[Memory] = self._places(device, walkers)
        self._ends = np.cumsum([part.walkers for part in self._parts])
        self.walkers = int(self._ends[-1])
        first = 0
        for part in self._parts:
            part.allocate(splitmix_range(seed, first, part.walkers), self.layout.halves, thresholds_of(self.policy))
            first += part.walkers
        self.flips, self.launches, self.seconds = 0, 0, 0.0
        self._sent = np.full(self.walkers, -1, dtype=np.int32)
        self.roots = np.arange(self.walkers)
        self._goals = np.zeros(self.walkers, dtype=np.int32)
        self._fill_pool(np.zeros((0, self.layout.form.words), dtype=np.uint32))
        self.rewind(np.arange(self.walkers))
        self._launch(0, 0)
        self.score = self._gather("score")

    def _places(self, device: str, walkers: int | None) -> list[Memory]:
        form, cost = self.layout.form, self.policy.cost
        if device == "cpu":
            return [HostMemory(form, cost, walkers or 4)]
        numbers = chosen_gpus(device)
        shares: list[int | None] = [None] * len(numbers)
        if walkers is not None:
            numbers = numbers[:walkers]
            shares = [len(range(n, walkers, len(numbers))) for n in range(len(numbers))]
        return [GpuMemory(form, cost, share, gpu) for gpu, share in zip(numbers, shares, strict=False)]

    @property
    def resources(self) -> list[dict[str, int]]:
        """Of each GPU: registers, local and shared bytes, blocks on a multiprocessor."""
        return [part.resources for part in self._parts if isinstance(part, GpuMemory)]

    def launch(self, steps: int, goal: int | npt.NDArray[np.int32] = 0) -> float:
        """Carry every walker on for so many steps, or to a score of `goal` (one for all, or one each); in seconds.

        Selection follows where the policy asks for it after this launch.

        Raises:
            DeviceLostError: a GPU stopped answering.
        """
        begin = time.perf_counter()
        self._launch(steps, goal)
        self.score = self._gather("score")
        self.flips += int(self._gather("flips").sum(dtype=np.int64))
        self.launches += 1
        selection = self.policy.selection
        if selection.every and self.launches % selection.every == 0:
            self.select()
        seconds = time.perf_counter() - begin
        self.seconds += seconds
        return seconds

    def _launch(self, steps: int, goal: int | npt.NDArray[np.int32]) -> None:
        numbers = numbers_of(self.policy, len(self._starts))
        goals = np.broadcast_to(np.asarray(goal, dtype=np.int32), self.walkers)
        if (goals != self._goals).any():
            self._goals = goals
            for part, piece in zip(self._parts, np.split(goals, self._ends[:-1]), strict=True):
                part.put("goals", piece)
        if (self._sent >= 0).any():
            for part, origin in zip(self._parts, np.split(self._sent, self._ends[:-1]), strict=True):
                part.put("origin", origin)
            self._sent[:] = -1
        for part in self._parts:
            part.start(numbers, steps)
        for part in self._parts:
            part.finish()

    def _gather(self, name: str) -> Array:
        return np.concatenate([part.get(name) for part in self._parts])

    def _fill_pool(self, elite: npt.NDArray[np.uint32]) -> None:
        """Set what a walker can be sent to: the starts, and behind them `elite`."""
        self._elite = elite
        room = max(ELITE if self.policy.selection.every else 0, len(elite))
        pool = np.zeros((len(self._starts) + room, elite.shape[1]), dtype=np.uint32)
        pool[: len(self._starts)] = self._starts
        pool[len(self._starts) :][: len(elite)] = elite
        for part in self._parts:
            part.put("pool", pool.ravel())

    def send(self, walkers: npt.NDArray[np.int64], entries: npt.NDArray[np.int64]) -> None:
        """At the next launch these walkers start anew, from entries of the pool: the starts, then the elite."""
        self._sent[walkers] = entries

    def send_to(
        self, walkers: npt.NDArray[np.int64], states: npt.NDArray[np.uint32], entries: npt.NDArray[np.int64]
    ) -> None:
        """At the next launch walker `walkers[i]` starts anew from `states[entries[i]]`, a packed scheme."""
        others = np.setdiff1d(np.flatnonzero(self._sent >= len(self._starts)), walkers)
        kept, places = np.unique(self._sent[others] - len(self._starts), return_inverse=True)
        self._fill_pool(np.concatenate([self._elite[kept], states]))
        self.send(others, len(self._starts) + places)
        self.send(walkers, len(self._starts) + len(kept) + entries)
        self.roots[walkers] = walkers

    def waiting(self, walker: int) -> npt.NDArray[np.uint32] | None:
        """The packed scheme that a walker is to start from at the next launch, or None where it walks on."""
        entry = int(self._sent[walker])
        if entry < 0:
            return None
        return self._starts[entry] if entry < len(self._starts) else self._elite[entry - len(self._starts)]

    def enter(self, schemes: Sequence[Scheme]) -> npt.NDArray[np.int64]:
        """The entries under which walkers can be sent to these schemes; those of earlier ones hold no longer.

        Raises:
            PlanError: one does not fit.
        """
        self._fill_pool(pack_all(self.layout, schemes))
        return len(self._starts) + np.arange(len(schemes))

    def rewind(self, walkers: npt.NDArray[np.int64]) -> None:
        """At the next launch these walkers start anew, as they did first."""
        self.send(walkers, walkers % len(self._starts))
        self.roots[walkers] = walkers

    def select(self) -> None:
        """The worst walkers become copies of random members of the best; ties are broken by chance."""
        selection, rng = self.policy.selection, self._host_draws()
        order = np.lexsort((rng.random(self.walkers), self.score))
        elite, losers, entries = list[Places](), list[Places](), list[Places]()
        for island in range(selection.islands):
            own = order[order % selection.islands == island]
            worst, best = (round(share * len(own)) for share in (selection.worst, selection.best))
            if worst and best:
                members = rng.permutation(own[:best])[: max(ELITE // selection.islands, 1)]
                entries.append(sum(len(one) for one in elite) + rng.integers(len(members), size=worst))
                elite.append(members)
                losers.append(own[::-1][:worst])
        if not elite:
            return
        members, chosen, sent = np.concatenate(elite), np.concatenate(entries), np.concatenate(losers)
        self._fill_pool(self._gather("best").reshape(-1, self.layout.form.words)[members])
        self.send(sent, len(self._starts) + chosen)
        self.roots[sent] = self.roots[members[chosen]]

    def _host_draws(self) -> np.random.Generator:
        self._draws += 1
        return np.random.default_rng(splitmix(self._seed, _SELECTION + self._draws))

    def found(self, goal: int) -> npt.NDArray[np.int64]:
        """The walkers whose score is at most `goal`, in order."""
        return np.flatnonzero(self.score <= goal)

    def ranks(self) -> npt.NDArray[np.int64]:
        """(walkers,): the rank at which each stands; its score is the lowest of them since its start."""
        return ranks_of(self.layout, self._gather("state").reshape(self.walkers, -1))

    def scheme(self, walker: int, *, current: bool = False, provenance: Provenance | None = None) -> Scheme:
        """The scheme at a walker's score, or the one it stands at; nothing is checked here."""
        part = int(np.searchsorted(self._ends, walker, side="right"))
        place = walker - (int(self._ends[part - 1]) if part else 0)
        state = self._parts[part].row("state" if current else "best", place)
        return unpack(self.layout, state, provenance)

    def histogram(self) -> dict[int, int]:
        """Of each score how many walkers have it as their lowest."""
        return dict(sorted(Counter(self.score.tolist()).items()))

    @property
    def steps(self) -> npt.NDArray[np.int64]:
        """(walkers,): the steps of each in all."""
        return self._gather("counters")[:, STEPS]

    def start_ranks(self, walkers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The ranks of the schemes that some walkers started from first."""
        return self._start_ranks[walkers % len(self._start_ranks)]

    @property
    def flips_per_second(self) -> float:
        return self.flips / self.seconds if self.seconds else 0.0

    def to_arrays(self) -> dict[str, Array]:
        """The state as arrays, for a checkpoint between launches."""
        arrays = {name: self._gather(name) for name in KEPT}
        numbers = np.array([self.flips, self.launches, self._draws], dtype=np.int64)
        return {
            **arrays,
            "sent": self._sent.copy(),
            "elite": self._elite,
            "roots": self.roots.copy(),
            "numbers": numbers,
        }

    def take_arrays(self, arrays: dict[str, Array]) -> None:
        """Put back a state that `to_arrays` gave.

        Raises:
            PlanError: it is of another fleet.
        """
        if arrays["score"].shape != (self.walkers,) or arrays["best"].size != self.walkers * self.layout.form.words:
            raise PlanError(f"the checkpoint is of another fleet than this one of {self.walkers} walkers")
        for name in KEPT:
            wide = self.layout.form.words if name in ("state", "best") else 1
            for part, piece in zip(self._parts, np.split(arrays[name], self._ends[:-1] * wide), strict=True):
                part.put(name, piece)
        self._fill_pool(arrays["elite"].astype(np.uint32))
        self._sent = arrays["sent"].astype(np.int32)
        self.roots = arrays["roots"].astype(np.int64)
        self.flips, self.launches, self._draws = (int(x) for x in arrays["numbers"].tolist())
        self.score = arrays["score"].astype(np.int32)
