"""Fleets: packing, selection, checkpoints, ladders, runs; a GPU played by the twin, and lost."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from lcma.schemes_db import Z2
from lcma.schemes_db.algebra import rotate
from lcma.schemes_db.costs import full_and_half
from lcma.schemes_db.resolve import resolve
from lcma.search.flipgraph.gpu import device as gpu_device
from lcma.search.flipgraph.gpu import memory
from lcma.search.flipgraph.gpu.device import DeviceLostError
from lcma.search.flipgraph.gpu.fleet import Fleet, from_many_roots
from lcma.search.flipgraph.gpu.kernel import twin
from lcma.search.flipgraph.gpu.layout import WALKS, WalkerLayout
from lcma.search.flipgraph.gpu.packing import pack, ranks_of, unpack
from lcma.search.flipgraph.gpu.session import CudaSession
from lcma.search.flipgraph.policy import Policy, Selection
from lcma.search.flipgraph.walkers import Walks
from lcma.search.runs.distinct import DistinctPool
from lcma.verify import certify

from ..refusal import refuses, refuses_with
from .searches import SEARCHES, searched
from .starts import fleet_of, naive, naive_terms

POLICY, STATES = Policy(plus_after=300, selection=Selection(2, 0.25, 0.5)), SEARCHES["states"]
POLICY_OF_SESSIONS, SOME = Policy(plus_after=300), Selection(0, 0.5, 0.25)


def fleet(**options):
    return fleet_of(**{"policy": POLICY, **options})


@pytest.mark.parametrize(("walk", "name"), [(walk, name) for walk, names in STATES.items() for name in names])
def test_a_state_holds_the_scheme_and_absent_blocks_take_no_bits(walk, name):
    scheme = naive("4x4x4", walk) if walk == "flip-c3" else resolve(name)[0]
    layout = WalkerLayout.fitting(scheme.target, scheme.rank, WALKS[walk])
    present = max(int((kinds != 0).sum()) for kinds in scheme.target.kind_arrays)
    assert layout.form.parts == min(-(-present // 16), 4)
    state = pack(layout, scheme)
    assert state.shape == (layout.form.words,)
    assert ranks_of(layout, np.stack([state, 0 * state])).tolist() == [scheme.rank, 0]
    expected = scheme if walk == "flip-zt" or scheme.ring is Z2 else scheme.over_z2()
    assert unpack(layout, state).digest == expected.digest


def test_no_gpu_is_one_clear_line(monkeypatch):
    monkeypatch.setattr(gpu_device, "cuda_module", lambda: SimpleNamespace(is_available=lambda: False, gpus=[]))
    refuses("no NVIDIA GPU is here", Fleet, [naive("2x2x2")])


def test_a_fleet_finds_selects_and_goes_on_from_a_checkpoint():
    one, again = fleet(), fleet()
    while not len(winners := one.found(23)):
        one.launch(4000, 23)
    for walker in winners.tolist():
        found = one.scheme(walker)
        assert found.rank == 23
        assert certify(found).target == "3x3x3"
    saved = one.to_arrays()
    again.take_arrays(saved)
    for each in (one, again):
        for _ in range(4):
            each.launch(1000)
    for name, array in one.to_arrays().items():
        np.testing.assert_array_equal(array, again.to_arrays()[name], err_msg=name)
    refuses("another fleet", fleet(walkers=4, seed=0).take_arrays, saved)


def test_selection_copies_the_best_over_the_worst():
    walks = fleet(policy=replace(POLICY, selection=SOME), seed=1)
    while len(set(walks.score.tolist())) < 2:
        walks.launch(2000)
    low = walks.score.min()
    before = (walks.score == low).sum()
    walks.policy = replace(walks.policy, selection=Selection(0, 0.5, 0.125))
    walks.select()
    walks.launch(0)
    assert (walks.score == low).sum() > before
    for walker in range(8):
        certify(walks.scheme(walker, current=True))


class FakeArray:
    """An array on a GPU that is played."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array.copy()
        self.shape, self.dtype = array.shape, array.dtype

    def copy_to_device(self, array: np.ndarray) -> None:
        self.array[...] = array

    def copy_to_host(self) -> np.ndarray:
        return self.array.copy()

    def __getitem__(self, part: slice) -> FakeArray:
        return FakeArray(self.array[part])


class FakeError(Exception):
    """The error that the driver of a fake GPU raises."""


@pytest.fixture
def two_gpus(monkeypatch):
    """Two GPUs played by the twin; `lost` makes the next launch fail."""
    state = SimpleNamespace(lost=False, launches=0)
    chip = SimpleNamespace(
        MAX_SHARED_MEMORY_PER_MULTIPROCESSOR=233472, MAX_REGISTERS_PER_MULTIPROCESSOR=65536, MULTIPROCESSOR_COUNT=1
    )
    cuda = SimpleNamespace(
        gpus=[nullcontext(), nullcontext()],
        to_device=FakeArray,
        synchronize=lambda: None,
        get_current_device=lambda: chip,
        current_context=lambda: SimpleNamespace(device=SimpleNamespace(id=0)),
    )

    class Kernel:
        overloads = {"": SimpleNamespace(regs_per_thread=74, local_mem_per_thread=0)}  # noqa: RUF012

        def __init__(self, form, cost, bounds):
            self.form, self.run = form, twin(form, cost)

        def __getitem__(self, launch):
            blocks, threads, _, shared = launch
            assert (threads, shared) == (self.form.threads, 4 * self.form.fast * self.form.threads)

            def start(walkers, *arguments):
                if state.lost:
                    raise FakeError("unspecified launch failure\nand more")
                assert (blocks - 1) * threads < walkers <= blocks * threads
                state.launches += 1
                *arrays, steps = arguments
                fast = np.zeros(self.form.fast * threads, dtype=np.uint32)
                self.run(fast, walkers, tuple(one.array for one in arrays), steps)

            return start

    for module in (memory, gpu_device):
        monkeypatch.setattr(module, "cuda_module", lambda: cuda)
    monkeypatch.setattr(memory, "compiled_kernel", Kernel)
    monkeypatch.setattr(memory, "driver_errors", lambda: (FakeError,))
    monkeypatch.setattr(gpu_device, "gpus", lambda: (0, 1))
    return state


def test_two_gpus_walk_as_the_twin_does(two_gpus):
    both, first = fleet(seed=2, walkers=7, device="cuda:all"), fleet(seed=2, walkers=4)
    for one in (both, first):
        one.launch(600)
    np.testing.assert_array_equal(both.score[:4], first.score)
    np.testing.assert_array_equal(both.ranks()[:4], first.ranks())
    assert both.scheme(3).digest == first.scheme(3).digest
    assert two_gpus.launches == 2 + 2 * 2
    assert both.resources[1]["local_bytes"] == 0
    # 16 blocks by shared memory and a kilobyte each for the system, were they not 32 at most.
    form, chip = both.layout.form, memory.cuda_module().get_current_device()
    assert memory.bounds_of(form, chip) is None
    assert memory.bounds_of(fleet_of("4x5x5", walkers=2).layout.form, chip) == (32, 5)
    assert both.resources[0]["blocks_per_multiprocessor"] == min(233472 // (4 * form.fast * 32 + 1024), 25)
    certify(both.scheme(6, current=True))


def test_a_lost_gpu_is_one_line_and_the_checkpoint_remains(two_gpus):
    one, again = (fleet(seed=2, walkers=6, device="cuda") for _ in range(2))
    one.launch(500)
    saved = one.to_arrays()
    two_gpus.lost = True
    refuses_with(DeviceLostError, r"GPU 0 does not answer any more: FakeError: unspecified.*resume", one.launch, 500)
    two_gpus.lost = False
    again.take_arrays(saved)
    again.launch(500)
    np.testing.assert_array_equal(again.to_arrays()["best"].reshape(6, -1).any(axis=1), True)


@pytest.mark.parametrize(("device", "number"), [("cuda:all", 2), ("cuda:1,0", 2), ("cuda", 1), ("cuda:1", 1)])
def test_walkers_fill_the_gpus_by_default(two_gpus, device, number):
    walks = fleet(walkers=None, device=device)
    assert walks.walkers == number * 32 * walks.resources[0]["blocks_per_multiprocessor"]


@pytest.mark.parametrize(("device", "message"), [("2", "no GPU 2"), ("", "not known"), ("0,x", "not known")])
def test_other_gpus_are_refused(two_gpus, device, message):
    refuses(message, fleet, device=f"cuda:{device}")


def session_of(walk="flip", name="3x3x3", policy=POLICY_OF_SESSIONS):
    return CudaSession(Walks(walk, [naive_terms(name, walk)], policy, 4, 0, 6), "cpu")


def test_a_session_speaks_vectors():
    session, other = session_of(), session_of()
    goals = np.array([26, 25, 25, 24, 0, 0])
    for _ in range(10):
        session.advance(goals, 3000, None)
    assert (session.ranks[:4] >= goals[:4]).all()
    assert session.ranks[0] == 26
    assert session.steps(np.array([0]))[0] < 30_000
    found = session.terms(np.array([1]))[0]
    assert found.rank == session.ranks[1]
    session.rewind(np.array([0]))
    assert (session.ranks[0], session.lowest[0]) == (27, 26)
    assert session.terms(np.array([0]))[0].rank == 27
    other.take_arrays(session.to_arrays())
    for one in (session, other):
        one.advance(np.zeros(6, dtype=np.int64), 1000, None)
    assert session.ranks.tolist() == other.ranks.tolist()
    assert session.flips == other.flips
    every = np.arange(6)
    pairs = zip(session.terms(every), other.terms(every), strict=True)
    assert all(np.array_equal(one.words, two.words) for one, two in pairs)
    for terms in session.terms(every):
        certify(terms.to_scheme())


def test_scores_of_a_biased_walk_are_ranks():
    biased = Policy(cost="full", chance=0.15)
    session = session_of("flip-half", "3x3x3:tri-left", biased)
    session.advance(np.full(6, 17), 200_000, None)
    assert session.ranks.tolist() == [17] * 6
    assert [terms.rank for terms in session.terms(np.arange(6))] == [17] * 6
    bounded = session_of("flip-half", "3x3x3:tri-left", replace(biased, full=9, rank_weight=23, cost_weight=31))
    bounded.advance(np.array([18, 18, 18, 17, 17, 17]), 4000, None)
    for reached, terms in zip(bounded.ranks.tolist(), bounded.terms(np.arange(6)), strict=True):
        full = full_and_half(terms.to_scheme())[0]
        assert (reached <= 17) == (23 * terms.rank + 31 * full <= 23 * 17 + 31 * 9)


@pytest.mark.slow
def test_a_run_drives_100_000_walkers():
    result, again = (searched(SEARCHES["single"]["walkers"]) for _ in range(2))
    assert len(result.finds) >= 1
    assert sum(result.ranks.values()) == 100_000
    assert result.rounds <= 40
    assert [one.digest for one in again.schemes] == [one.digest for one in result.schemes]


def test_a_pool_has_members_that_no_change_of_basis_makes_one(strassen):
    laderman = resolve("laderman")[0]
    pool = DistinctPool([laderman])
    assert [pool.add(one) for one in (laderman, rotate(laderman), strassen)] == [False, False, True]
    assert len(pool) == 2


def test_finds_of_many_roots_come_first():
    roots = np.array([0, 0, 0, 3, 3, 5])
    assert from_many_roots(np.array([0, 1, 2, 4, 5]), roots).tolist() == [0, 4, 5, 1, 2]
    walks = fleet(policy=replace(POLICY, selection=SOME), seed=0)
    walks.launch(200)
    walks.select()
    assert len(set(walks.roots.tolist())) < 8
    walks.rewind(np.arange(8))
    assert walks.roots.tolist() == list(range(8))


def test_walks_from_a_find_widen_a_pool():
    walks, told = fleet(), []
    while not len(winners := walks.found(25)):
        walks.launch(500, 25)
    pool = DistinctPool([walks.scheme(int(winners[0]))])
    walks.widen(pool, 25, 3, seconds=20, on_find=lambda scheme: told.append(scheme.digest))
    assert len(pool) == len(told) + 1 == 3
    assert walks.policy == POLICY
    for scheme in pool.schemes:
        assert scheme.rank <= 25
        certify(scheme)


def test_islands_never_mix():
    def roots(islands):
        """The first starts of walkers, which selections copied."""
        selection = Selection(1, 0.5, 0.25, islands=islands)
        walks = fleet(policy=replace(POLICY, selection=selection), seed=2, walkers=24)
        for _ in range(12):
            walks.launch(400)
        return walks.roots

    assert (roots(3) % 3 == np.arange(24) % 3).all()
    assert len(set(roots(3).tolist())) < 24
    assert (roots(1) % 3 != np.arange(24) % 3).any()


def test_stages_that_find_nothing_go_back_by_one():
    seen = []
    result = searched(SEARCHES["single"]["stages in vain"], on_event=lambda progress: seen.append(str(progress.target)))
    turns = [name for name, before in zip(seen, ["", *seen[:-1]], strict=True) if name != before]
    assert turns == ["2x3x3", "3x3x3"] * 3
    assert not result.finds
    assert len({step.origin.digest for step in result.steps}) > 1
