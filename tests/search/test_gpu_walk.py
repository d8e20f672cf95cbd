"""The walk of the GPU: its twin on the processor against the reference, step for step, and exact."""

import pytest

import lcma
from lcma.search import Policy
from lcma.search.flipgraph.gpu.fleet import slots_for
from lcma.search.flipgraph.gpu.layout import WALKS, WalkerLayout
from lcma.search.flipgraph.gpu.packing import bits_of
from lcma.search.seeds import splitmix
from lcma.verify import certify

from .gpu_reference import GpuReferenceWalk, ReversibleReferenceWalk
from .searches import searches
from .starts import fleet_of, naive, walked


def follow(name: str, walk: str, policy: Policy, steps: int, start: lcma.Scheme | None = None) -> GpuReferenceWalk:
    """Walker 1 of a fleet beside the reference, compared after every launch of a few steps, then of many."""
    start = start or naive(name, walk)
    fleet = fleet_of(start, walk=walk, policy=policy, walkers=2, seed=5)
    reference = ReversibleReferenceWalk if "z2" in walk else GpuReferenceWalk
    walker = reference(fleet.layout, start, policy, splitmix(5, 1), index=1)
    words = fleet.layout.form.words
    for launch in [1] * 5 + [20] * 5 + [steps // 4] * 4:
        fleet.launch(launch)
        walker.advance(launch)
        arrays = fleet.to_arrays()
        state = arrays["state"][words:]
        assert int(arrays["draws"][1]) == walker.rng
        plus, minus, signs = bits_of(fleet.layout, state)
        terms = walker.scheme_terms()[:-1]
        assert [[(int(p), int(m)) for p, m in zip(plus[f], minus[f], strict=True)] for f in range(3)] == [
            [term[1 + f] for term in terms] for f in range(3)
        ]
        assert signs.tolist() == [term[-1] for term in terms]
        assert int(fleet.score[1]) == walker.lowest
        certify(fleet.scheme(1))
        certify(fleet.scheme(1, current=True))
    counters = arrays["counters"][1].tolist()
    assert counters[4:7] == [walker.steps, walker.pluses, walker.restarts]
    assert walker.flips > steps // 40
    # 80 terms fill every slot of their form: no plus fits, the walk starts anew instead
    assert walker.restarts > 0 if name == "4x4x5" else walker.pluses > 0
    return walker


@searches("gpu", "gpu-slow")
def test_twin_follows_the_reference(settings):
    follow(settings["target"], settings["walk"], Policy(**settings["policy"]), settings["steps"])


@pytest.mark.slow
def test_orbits_that_are_their_own_reversal_walk_as_the_reference_does():
    start = walked("4x4x4", 0, 5000, "flip-c3z2", 0, Policy(plus_after=300, margin=7)).to_scheme()
    layout = fleet_of(start, walk="flip-c3z2").layout
    reference = ReversibleReferenceWalk(layout, start, Policy(), 1)
    assert {reference.weight(slot) for slot in reference.live} == {3, 6}
    follow("4x4x4", "flip-c3z2", Policy(plus_after=60, margin=12), 1200, start)


@pytest.mark.parametrize("margin", [12, 24, 60])
def test_a_block_of_reversible_walkers_on_6x6x6_is_a_warp(margin):
    start = naive("6x6x6", "flip-c3z2")
    slots = slots_for([start], margin, True, WALKS["flip-c3z2"])
    assert slots == 48
    assert WalkerLayout.fitting(start.target, slots, WALKS["flip-c3z2"]).form.threads == 32
