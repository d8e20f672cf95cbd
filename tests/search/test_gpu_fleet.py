"""Fleets: packing, selection, checkpoints, ladders, runs; a GPU played by the twin, and lost."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import lcma
from lcma.errors import PlanError
from lcma.schemes_db import Z2, parse_target
from lcma.schemes_db.algebra import rotate
from lcma.schemes_db.costs import full_and_half
from lcma.schemes_db.resolve import resolve
from lcma.search import LadderPlan, find, pack_start
from lcma.search.flipgraph.gpu import device as gpu_device
from lcma.search.flipgraph.gpu import memory
from lcma.search.flipgraph.gpu.device import DeviceLostError
from lcma.search.flipgraph.gpu.fleet import Fleet
from lcma.search.flipgraph.gpu.kernel import twin
from lcma.search.flipgraph.gpu.layout import WALKS, WalkerLayout
from lcma.search.flipgraph.gpu.packing import pack, ranks_of, unpack
from lcma.search.flipgraph.gpu.session import CudaSession
from lcma.search.flipgraph.gpu.widen import from_many_roots, widened
from lcma.search.flipgraph.policy import Policy, Selection
from lcma.search.format_moves.corners import bordered, cut
from lcma.search.runs.distinct import DistinctPool
from lcma.verify import certify

from ..refusal import refuses, refuses_with

POLICY = Policy(plus_after=300, selection=Selection(2, 0.25, 0.5))


def naive(name: str, walk: str = "flip") -> lcma.Scheme:
    return pack_start(walk, parse_target(name)).to_scheme()


@pytest.mark.parametrize(
    ("name", "walk"),
    [
        ("strassen", "flip"),
        ("winograd", "flip-zt"),
        ("strassen*laderman", "flip"),
        ("strassen*laderman", "flip-zt"),
        ("naive:8x8x8", "flip"),
        ("naive:2x5x8", "flip-zt"),
        ("naive:4x4x4", "flip-c3"),
        ("strassen*naive:1x17x1", "flip"),
    ],
)
def test_a_state_holds_the_scheme(name, walk):
    scheme = naive("4x4x4", walk) if walk == "flip-c3" else resolve(name)[0]
    layout = WalkerLayout.fitting(scheme.target, scheme.rank, WALKS[walk])
    state = pack(layout, scheme)
    assert state.shape == (layout.form.words,)
    assert ranks_of(layout, np.stack([state, 0 * state])).tolist() == [scheme.rank, 0]
    expected = scheme if walk == "flip-zt" or scheme.ring is Z2 else scheme.over_z2()
    assert unpack(layout, state).digest == expected.digest


@pytest.mark.parametrize("name", ["4x4x4:tri-left", "3x3x3:tri-out", "4x4x4:band(1)"])
def test_absent_blocks_take_no_bits(name):
    scheme = naive(name)
    layout = WalkerLayout.fitting(scheme.target, scheme.rank)
    assert layout.form.parts == -(-max(int((kinds != 0).sum()) for kinds in scheme.target.kind_arrays) // 16)
    assert unpack(layout, pack(layout, scheme)).digest == scheme.digest


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: WalkerLayout.fitting(parse_target("9x9x2"), 100, WALKS["flip-zt"]), "packs at most 64"),
        (lambda: WalkerLayout.fitting(parse_target("8x8x8"), 513), "holds 2 to 512"),
        (lambda: Fleet([], device="cpu"), "needs a scheme"),
        (lambda: Fleet([naive("2x2x2")], Policy(cost="full"), device="cpu"), "no half blocks"),
        (lambda: Fleet([resolve("strassen")[0].over_z2()], walk="flip-zt", device="cpu"), "other than -1, 0 and 1"),
        (lambda: Fleet([naive("2x2x2")], device="tpu"), "not known"),
        (lambda: CudaSession("flip-z3", [], Policy(), seed=0, walkers=1), "does not run on a GPU"),
        (lambda: session_of(policy=Policy(full=3)), "take flip-half"),
        (lambda: session_of(policy=Policy(nonzeros=2)), "bounds no nonzeros"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_reason(call, message):
    refuses(message, call)


def test_no_gpu_is_one_clear_line(monkeypatch):
    monkeypatch.setattr(
        gpu_device, "cuda_module", lambda: SimpleNamespace(is_available=lambda: False, gpus=[]), raising=True
    )
    refuses("no NVIDIA GPU is here", Fleet, [naive("2x2x2")])


def test_a_fleet_finds_selects_and_goes_on_from_a_checkpoint():
    start = naive("3x3x3")
    fleet = Fleet([start], POLICY, seed=3, walkers=8, device="cpu")
    while not len(winners := fleet.found(23)):
        fleet.launch(4000, 23)
    for walker in winners.tolist():
        found = fleet.scheme(walker)
        assert found.rank == 23
        assert certify(found).target == start.target.name
    saved = fleet.to_arrays()
    for _ in range(4):
        fleet.launch(1000)
    again = Fleet([start], POLICY, seed=3, walkers=8, device="cpu")
    again.take_arrays(saved)
    for _ in range(4):
        again.launch(1000)
    for name, array in fleet.to_arrays().items():
        np.testing.assert_array_equal(array, again.to_arrays()[name], err_msg=name)
    refuses("another fleet", Fleet([start], POLICY, walkers=4, device="cpu").take_arrays, saved)


def test_selection_copies_the_best_over_the_worst():
    fleet = Fleet([naive("3x3x3")], replace(POLICY, selection=Selection(0, 0.5, 0.25)), seed=1, walkers=8, device="cpu")
    while len(set(fleet.score.tolist())) < 2:
        fleet.launch(2000)
    low = fleet.score.min()
    before = (fleet.score == low).sum()
    fleet.policy = replace(fleet.policy, selection=Selection(0, 0.5, 0.125))
    fleet.select()
    fleet.launch(0)
    assert (fleet.score == low).sum() > before
    for walker in range(8):
        certify(fleet.scheme(walker, current=True))


@pytest.mark.parametrize(
    ("small", "large"), [("2x2x2", "3x2x4"), ("3x3x3:tri-left", "4x4x5:tri-left"), ("2x3x2:tri-out", "3x3x3:tri-out")]
)
def test_a_border_and_its_cut_are_exact(small, large):
    grown = bordered(naive(small), parse_target(large))
    certify(grown)
    assert grown.rank == len(parse_target(large).terms)
    back = cut(grown, parse_target(small))
    certify(back)
    assert back.digest == naive(small).digest
    refuses("no corner", bordered, naive(large), parse_target(small))


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

        def __init__(self, form, cost):
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

    monkeypatch.setattr(memory, "cuda_module", lambda: cuda)
    monkeypatch.setattr(memory, "compiled_kernel", Kernel)
    monkeypatch.setattr(memory, "driver_errors", lambda: (FakeError,))
    monkeypatch.setattr(gpu_device, "cuda_module", lambda: cuda)
    monkeypatch.setattr(gpu_device, "gpus", lambda: (0, 1))
    return state


def test_two_gpus_walk_as_the_twin_does(two_gpus):
    start = naive("3x3x3")
    fleet = Fleet([start], POLICY, seed=2, walkers=7, device="cuda:all")
    first = Fleet([start], POLICY, seed=2, walkers=4, device="cpu")
    for one in (fleet, first):
        one.launch(600)
    np.testing.assert_array_equal(fleet.score[:4], first.score)
    np.testing.assert_array_equal(fleet.ranks()[:4], first.ranks())
    assert fleet.scheme(3).digest == first.scheme(3).digest
    assert two_gpus.launches == 2 + 2 * 2
    assert fleet.resources[1]["local_bytes"] == 0
    # 16 blocks by shared memory and a kilobyte each for the system, were they not 32 at most.
    form = fleet.layout.form
    assert fleet.resources[0]["blocks_per_multiprocessor"] == min(233472 // (4 * form.fast * 32 + 1024), 25)
    certify(fleet.scheme(6, current=True))


def test_a_lost_gpu_is_one_line_and_the_checkpoint_remains(two_gpus):
    start = naive("3x3x3")
    fleet = Fleet([start], POLICY, seed=2, walkers=6)
    fleet.launch(500)
    saved = fleet.to_arrays()
    two_gpus.lost = True
    refuses_with(DeviceLostError, r"GPU 0 does not answer any more: FakeError: unspecified.*resume", fleet.launch, 500)
    two_gpus.lost = False
    again = Fleet([start], POLICY, seed=2, walkers=6)
    again.take_arrays(saved)
    again.launch(500)
    np.testing.assert_array_equal(again.to_arrays()["best"].reshape(6, -1).any(axis=1), True)


def test_walkers_fill_the_gpus_by_default(two_gpus):
    for device, number in (("cuda:all", 2), ("cuda:1,0", 2), ("cuda", 1), ("cuda:1", 1)):
        fleet = Fleet([naive("3x3x3")], POLICY, device=device)
        blocks = fleet.resources[0]["blocks_per_multiprocessor"]
        assert fleet.walkers == number * 32 * blocks
    for device, message in (("cuda:2", "no GPU 2"), ("cuda:", "not known"), ("cuda:0,x", "not known")):
        refuses(message, Fleet, [naive("3x3x3")], POLICY, device=device)


def session_of(walk="flip", name="3x3x3", walkers=6, seed=4, policy=None):
    start = pack_start(walk, parse_target(name))
    policy = policy or Policy(plus_after=300)
    return CudaSession(walk, [start], policy, seed=seed, walkers=walkers, device="cpu")


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
    session = session_of("flip-half", "3x3x3:tri-left", policy=Policy(cost="full", chance=0.15))
    session.advance(np.full(6, 17), 200_000, None)
    assert session.ranks.tolist() == [17] * 6
    assert [terms.rank for terms in session.terms(np.arange(6))] == [17] * 6
    policy = Policy(cost="full", chance=0.15, full=9, rank_weight=23, cost_weight=31)
    bounded = session_of("flip-half", "3x3x3:tri-left", policy=policy)
    bounded.advance(np.array([18, 18, 18, 17, 17, 17]), 4000, None)
    for reached, terms in zip(bounded.ranks.tolist(), bounded.terms(np.arange(6)), strict=True):
        full = full_and_half(terms.to_scheme())[0]
        assert (reached <= 17) == (23 * terms.rank + 31 * full <= 23 * 17 + 31 * 9)
    refuses("keeps no products", session_of, policy=Policy(keep=2))


@pytest.mark.slow
def test_a_run_drives_100_000_walkers():
    target = "2x2x2"
    result = find(target, rank=7, ring="Z2", device="twin", walks=100_000, steps=40, count=3, rounds=40, seed=1)
    assert len(result.finds) >= 1
    assert sum(result.ranks.values()) == 100_000
    assert result.rounds <= 40
    again = find(target, rank=7, ring="Z2", device="twin", walks=100_000, steps=40, count=3, rounds=40, seed=1)
    assert [one.digest for one in again.schemes] == [one.digest for one in result.schemes]


def test_a_pool_has_members_that_no_change_of_basis_makes_one():
    laderman, strassen = resolve("laderman")[0], resolve("strassen")[0]
    pool = DistinctPool([laderman])
    assert not pool.add(laderman)
    assert not pool.add(rotate(laderman))
    assert pool.add(strassen)
    assert len(pool) == 2


def test_finds_of_many_roots_come_first():
    roots = np.array([0, 0, 0, 3, 3, 5])
    assert from_many_roots(np.array([0, 1, 2, 4, 5]), roots).tolist() == [0, 4, 5, 1, 2]
    fleet = Fleet([naive("3x3x3")], replace(POLICY, selection=Selection(0, 0.5, 0.25)), walkers=8, device="cpu")
    fleet.launch(200)
    fleet.select()
    assert len(set(fleet.roots.tolist())) < 8
    fleet.rewind(np.arange(8))
    assert fleet.roots.tolist() == list(range(8))


def test_walks_from_a_find_widen_a_pool():
    fleet = Fleet([naive("3x3x3")], POLICY, seed=3, walkers=8, device="cpu")
    told = []
    while not len(winners := fleet.found(25)):
        fleet.launch(500, 25)
    pool = DistinctPool([fleet.scheme(int(winners[0]))])
    widened(fleet, pool, 25, 3, seconds=20, on_find=lambda scheme: told.append(scheme.digest))
    assert len(pool) == len(told) + 1 == 3
    assert fleet.policy == POLICY
    for scheme in pool.schemes:
        assert scheme.rank <= 25
        certify(scheme)


def test_islands_never_mix():
    policy = replace(POLICY, selection=Selection(1, 0.5, 0.25, islands=3))
    fleet = Fleet([naive("3x3x3")], policy, seed=2, walkers=24, device="cpu")
    for _ in range(12):
        fleet.launch(400)
    assert (fleet.roots % 3 == np.arange(24) % 3).all()
    assert len(set(fleet.roots.tolist())) < 24
    alone = Fleet(
        [naive("3x3x3")], replace(policy, selection=Selection(1, 0.5, 0.25)), seed=2, walkers=24, device="cpu"
    )
    for _ in range(12):
        alone.launch(400)
    assert (alone.roots % 3 != np.arange(24) % 3).any()
    with pytest.raises(PlanError, match="at least 1 island"):
        Fleet([naive("3x3x3")], Policy(selection=Selection(1, 0.5, 0.5, islands=0)), walkers=4, device="cpu")


def test_stages_that_find_nothing_go_back_by_one():
    seen = []
    result = find(
        "3x3x3",
        rank=18,  # the rank over Z2 is 19 at least
        ring="Z2",
        ladder=("2x3x3:15",),
        device="twin",
        walks=8,
        steps=4000,
        rounds=60,
        plan=LadderPlan(passed=1, linger=1, leave=4, tries=2),
        on_event=lambda progress: seen.append(str(progress.target)),
    )
    turns = [name for name, before in zip(seen, ["", *seen[:-1]], strict=True) if name != before]
    assert turns == ["2x3x3", "3x3x3"] * 3
    assert not result.finds
    assert len({step.origin.digest for step in result.steps}) > 1
