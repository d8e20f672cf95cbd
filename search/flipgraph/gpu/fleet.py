"""Fleets of walkers on GPUs, or of their twins on the processor: launches, selection, sampling, checkpoints."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ....errors import PlanError
from ....schemes_db import Provenance, Scheme
from ....schemes_db.factor import IntArray
from ...runs.distinct import DistinctPool
from ...runs.snapshot import Arrays, Checkpointed
from ...seeds import splitmix, splitmix_range
from ...terms.orbits import OrbitTerms, ReversibleTerms, SymmetricTerms
from ...terms.packed import MAX_TERMS
from ...terms.words import WORD_BITS, is_wide
from ...turn_fleet import Goal, TurnFleet
from ..policy import LONGEST, Policy, Selection
from .device import chosen_gpus
from .kernel import STEPS, numbers_of, thresholds_of
from .layout import GpuWalk, WalkerLayout, gpu_walk
from .memory import KEPT, Array, GpuMemory, HostMemory
from .packing import pack, ranks_of, unpack

ELITE = 2048
"""Maximum number of the best walkers that a selection copies from."""

LOOKED_AT = 256
"""Maximum number of walkers at the rank wanted that are unpacked after a launch: one takes about a millisecond."""

PLUS_AFTER = 600
"""Steps after which a walker makes a plus, to leave the known schemes."""

WIDENING_STEPS = 10 * PLUS_AFTER + PLUS_AFTER // 2
"""Steps of a launch that widens a pool: it ends between two pluses, as right after one no walker is at its rank."""

_SELECTION = 1 << 40
"""First index of the random states of the host, beyond those of walkers."""


def slots_for(starts: Sequence[Scheme], spare: int, falling: bool, walk: GpuWalk) -> int:
    """Return the slots of walkers from some schemes with `spare` more terms; `falling`: none for naive starts."""
    largest = max(scheme.rank for scheme in starts)
    if walk.kind is OrbitTerms:
        return (largest + 2) // 3 + spare // 3 + 2
    if issubclass(walk.kind, SymmetricTerms):
        # A plus without a free slot is not made. With 48 slots, not 64, a block of 6x6x6 with the shift is a warp.
        held = max(walk.kind.from_scheme(scheme, walk.swaps).words.shape[1] for scheme in starts)
        return held + (min(spare // 3, 2) + 8 if walk.kind is ReversibleTerms else min(spare // 2, 4) + 4)
    if is_wide(starts[0].target):  # a kernel compiles for 15 s: formats of similar ranks share it
        return min(-(-(largest + spare) // WORD_BITS) * WORD_BITS, MAX_TERMS)
    # The rank of a naive scheme falls before a plus is useful: it needs slots for its own terms only.
    return largest if falling and largest >= len(starts[0].target.terms) else largest + spare


def from_many_roots(walkers: IntArray, roots: IntArray) -> IntArray:
    """Reorder the walkers: one of each root first, then a second of each, and so on."""
    order = np.argsort(roots[walkers], kind="stable")
    by_root = roots[walkers][order]
    turn = np.arange(len(walkers)) - np.searchsorted(by_root, by_root)
    return walkers[order[np.lexsort((order, turn))]]


class Fleet(TurnFleet, Checkpointed):
    """Walkers from some schemes of one target, which minimise a score: the rank, or rank and cost.

    Walker w starts at scheme w modulo their number; a restart uses one of them by the walker's own
    draw. The walks of a fleet depend on its starts, policy, seed, number of walkers and the steps of
    its launches only, and are the same on a GPU and on the processor.

    Attributes:
        layout: memory layout of a scheme.
        score: (walkers,) lowest score of each since its start.
        roots: (walkers,) walker that each descends from through selections.
        flips, launches, seconds: totals; seconds are those of launches, without compilation.

    Args:
        starts: schemes of one target, over Z2 or a ring that reduces modulo 2, or ternary ones.
        walkers: number of walkers; None for the most that are resident on the GPUs at once.
        walk: the name of a walk of `layout.WALKS`, also with swaps.
        room: number of slots beyond the terms of the largest start.
        device: "cuda" for the current GPU, "cuda:0,1" for some, "cuda:all" for all, "cpu" for the twin.

    Raises:
        PlanError: the starts do not fit, there is no GPU, or numba-cuda is absent or unfit.
    """

    STATE = ("_sent", "roots", "flips", "launches", "_draws")

    def __init__(
        self,
        starts: Sequence[Scheme],
        policy: Policy | None = None,
        *,
        seed: int = 0,
        walkers: int | None = None,
        walk: str = "flip",
        room: int | None = None,
        device: str = "cuda",
    ) -> None:
        if not starts:
            raise PlanError("a fleet needs a scheme to start from")
        if walkers is not None and walkers < 1:
            raise PlanError("a fleet needs at least 1 walker")
        self.policy = (policy or Policy()).checked()
        kind = gpu_walk(walk)
        slots = slots_for(starts, self.policy.margin if room is None else room, room is None, kind)
        self.layout = WalkerLayout.fitting(starts[0].target, slots, kind, self.policy.orbits == "whole")
        if self.policy.cost == "full" and not self.layout.halves.any():
            raise PlanError(f"{starts[0].target} has no half blocks: there are no full products to count")
        self._starts = np.stack([pack(self.layout, scheme) for scheme in starts])
        self._seed, self._draws = seed, 0
        self._parts: Sequence[HostMemory] = self._places(device, walkers)
        self._ends = np.cumsum([part.walkers for part in self._parts])
        super().__init__(starts[0].target, int(self._ends[-1]))
        for part, end in zip(self._parts, self._ends.tolist(), strict=True):
            draws = splitmix_range(seed, end - part.walkers, part.walkers)
            part.allocate(draws, self.layout.halves, thresholds_of(self.policy))
        self._sent = np.full(self.walkers, -1, dtype=np.int32)
        self._goals = np.zeros(self.walkers, dtype=np.int32)
        self._fill_pool(np.zeros((0, self.layout.form.words), dtype=np.uint32))
        self.rewind(np.arange(self.walkers))
        self._run(0, 0)
        self.score = self._gather("score")

    def _places(self, device: str, walkers: int | None) -> Sequence[HostMemory]:
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
        """Resources of the kernel on each GPU: registers, local and shared bytes, blocks on a multiprocessor."""
        return [part.resources for part in self._parts if isinstance(part, GpuMemory)]

    def _launch(self, steps: int, goal: Goal) -> None:
        """Advance every walker; selection follows if the policy requires it after this launch.

        Raises:
            DeviceLostError: a GPU stopped responding.
        """
        self._run(steps, goal)
        self.score = self._gather("score")
        self.flips += int(self._gather("flips").sum(dtype=np.int64))
        every = self.policy.selection.every
        if every and (self.launches + 1) % every == 0:
            self.select()

    def _run(self, steps: int, goal: Goal) -> None:
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
        """Set the pool of states that a walker can be sent to: the starts, then `elite`."""
        self._elite = elite
        room = max(ELITE if self.policy.selection.every else 0, len(elite))
        pool = np.zeros((len(self._starts) + room, elite.shape[1]), dtype=np.uint32)
        pool[: len(self._starts)] = self._starts
        pool[len(self._starts) :][: len(elite)] = elite
        for part in self._parts:
            part.put("pool", pool.ravel())

    def send(self, walkers: IntArray, entries: IntArray) -> None:
        """Restart these walkers at the next launch from entries of the pool: the starts, then the elite."""
        self._sent[walkers] = entries

    def enter(self, schemes: Sequence[Scheme]) -> IntArray:
        """Replace the elite of the pool by these schemes and return their entries; earlier entries become invalid.

        Raises:
            PlanError: a scheme does not fit.
        """
        self._fill_pool(np.stack([pack(self.layout, scheme) for scheme in schemes]))
        return len(self._starts) + np.arange(len(schemes))

    def widen(
        self,
        pool: DistinctPool,
        goal: int,
        count: int,
        *,
        seconds: float = math.inf,
        launches: int | None = None,
        provenance: Provenance | None = None,
        on_find: Callable[[Scheme], None] = lambda scheme: None,
    ) -> None:
        """Fill a pool up to `count` by walks from its members that return to their rank through higher ranks.

        The walks end after `seconds` or `launches`. The members are schemes of rank `goal` of this fleet's target.
        `on_find` is called with every new one, unchecked. The policy is restored afterwards; the walkers stay
        where the walks ended.
        """
        if not len(pool) or len(pool) >= count:
            return
        policy, begin = self.policy, time.perf_counter()
        self.policy = replace(policy, selection=Selection(), plus_after=PLUS_AFTER, restart_after=LONGEST)
        walkers = np.arange(self.walkers)
        members = self.enter(pool.schemes)
        self.send(walkers, members[walkers % len(members)])
        try:
            launched = 0
            while len(pool) < count and time.perf_counter() - begin < seconds and launched != launches:
                self.launch(WIDENING_STEPS)
                launched += 1
                back = np.flatnonzero(self.ranks() <= goal)
                for walker in back[np.linspace(0, len(back) - 1, min(LOOKED_AT, len(back))).astype(np.int64)].tolist():
                    if len(pool) >= count or time.perf_counter() - begin >= seconds:
                        break
                    scheme = self.scheme(walker, current=True, provenance=provenance)
                    if pool.add(scheme):
                        on_find(scheme)
        finally:
            self.policy = policy

    def rewind(self, walkers: IntArray) -> None:
        """Restart these walkers at the next launch from their first starts."""
        self.send(walkers, walkers % len(self._starts))
        self.roots[walkers] = walkers

    def select(self) -> None:
        """Replace the worst walkers by copies of random members of the best; ties are broken at random."""
        self._draws += 1
        selection, rng = self.policy.selection, np.random.default_rng(splitmix(self._seed, _SELECTION + self._draws))
        order = np.lexsort((rng.random(self.walkers), self.score))
        elite, losers, entries = list[IntArray](), list[IntArray](), list[IntArray]()
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

    def found(self, goal: int) -> IntArray:
        """Return the walkers whose score is at most `goal`, in order."""
        return np.flatnonzero(self.score <= goal)

    def ranks(self) -> IntArray:
        """Return (walkers,): the current rank of each; `score` is the lowest since its start."""
        return ranks_of(self.layout, self._gather("state").reshape(self.walkers, -1))

    def scheme(self, walker: int, *, current: bool = False, provenance: Provenance | None = None) -> Scheme:
        part = int(np.searchsorted(self._ends, walker, side="right"))
        place = walker - (int(self._ends[part - 1]) if part else 0)
        state = self._parts[part].row("state" if current else "best", place)
        return unpack(self.layout, state, provenance)

    @property
    def steps(self) -> IntArray:
        """(walkers,): total steps of each."""
        return self._gather("counters")[:, STEPS]

    def first_start(self, walker: int) -> Scheme:
        """Return the scheme that `rewind` sends a walker to."""
        return unpack(self.layout, self._starts[walker % len(self._starts)])

    def to_arrays(self) -> Arrays:
        """Return the state as arrays, for a checkpoint between launches."""
        return super().to_arrays() | {name: self._gather(name) for name in KEPT} | {"elite": self._elite}

    def take_arrays(self, arrays: Arrays) -> None:
        if arrays["score"].shape != (self.walkers,) or arrays["best"].size != self.walkers * self.layout.form.words:
            raise PlanError(f"the checkpoint is of another fleet than this one of {self.walkers} walkers")
        for name in KEPT:
            wide = self.layout.form.words if name in ("state", "best") else 1
            for part, piece in zip(self._parts, np.split(arrays[name], self._ends[:-1] * wide), strict=True):
                part.put(name, piece)
        self._fill_pool(arrays["elite"].astype(np.uint32))
        super().take_arrays(arrays)
        self.score = arrays["score"].astype(np.int32)
