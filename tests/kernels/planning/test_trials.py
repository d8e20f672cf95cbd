"""Learning in use on a simulated machine: the decision function, and the queue of classes for shadow calls."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from lcma.kernels import shadow
from lcma.kernels.planning.trials.trial import (
    AGAIN,
    DRIFTED,
    MOST_COUNTED,
    REGRET_PART,
    REGRET_SECONDS,
    admit,
    begun,
    choose,
    decided_by,
    fail,
    issue,
    observe,
    widen,
)


@dataclass
class Machine:
    """Contenders of known mean seconds, of which those from `late` on are compiled after some calls.

    Times scatter by `noise`; the first call after another contender takes `cold` times as long; one call in
    a hundred is `disturbed` times as long.
    """

    seconds: list[float]
    vendors: int = 1
    late: int = 5
    noise: float = 0.02
    cold: float = 1.3
    disturbed: float = 3.0
    seed: int = 0
    total: float = 0.0
    calls: int = 0
    ran: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.trial = begun(self.vendors)

    def call(self) -> int:
        if self.calls == self.late:
            self.trial = admit(self.trial, len(self.seconds), complete=True)
        contender = choose(self.trial)
        change = bool(self.ran) and self.ran[-1] != contender
        self.trial, counted = issue(self.trial, contender)
        took = self.seconds[contender] * self.random.gauss(1.0, self.noise) * (self.cold if change else 1.0)
        took *= self.disturbed if self.random.random() < 0.01 else 1.0
        self.trial = observe(self.trial, contender, took, counted)
        self.total += took
        self.calls += 1
        self.ran.append(contender)
        return contender

    def run(self, calls: int) -> Machine:
        for _ in range(calls):
            self.call()
        return self


def test_the_fastest_contender_is_found_within_two_duels_and_stays():
    machine = Machine([10e-3, 9.3e-3, 12e-3, 8.9e-3]).run(10_000)
    assert machine.trial.leader == 3
    assert machine.ran[200:].count(3) > 0.97 * 9800
    assert machine.total < 10_000 * 9.1e-3 * 1.05
    machine = Machine([10e-3, 9.85e-3, 9.8e-3], noise=0.03, disturbed=1.0)
    while not machine.trial.decided:
        machine.call()
    assert machine.calls < 6 * MOST_COUNTED * 2


@pytest.mark.parametrize("slow", [1.02, 1.1, 1.5, 5.0, 50.0])
@pytest.mark.parametrize("each", [1e-3, 50e-3, 3.0])
def test_slower_contenders_cost_a_bounded_part(slow, each):
    machine = Machine([each, slow * each, slow * each], cold=1.0, noise=0.001, disturbed=1.0).run(60)
    first_calls = 2 * 2 * (slow * each - each)  # two contenders, two calls each before their budget is looked at
    assert machine.total * (1 - REGRET_PART) <= 60 * each * 1.001 + REGRET_SECONDS + first_calls
    assert machine.run(3000).trial.leader == 0


@settings(max_examples=25, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@example(
    [4.985760275421377, 4.728421074238037, 4.985760275421377, 4.0], 0.08809043305096784, 0.026505255103499464, 4460
)
@given(
    st.lists(st.floats(0.3, 5.0), min_size=1, max_size=4),
    st.floats(1e-4, 2.0),
    st.floats(0.0, 0.1),
    st.integers(0, 2**20),
)
def test_regret_is_bounded_and_nobody_starves(ratios, each, noise, seed):
    machine = Machine([each, *(each * ratio for ratio in ratios)], noise=noise, seed=seed, cold=1.0, disturbed=1.0)
    # Four contenders of five times the time lose 4 x 3 calls x 4 times it, 1.5% of 3,200 calls.
    calls = 4000
    machine.run(calls)
    fastest = min(machine.seconds)
    # Whoever is 5% faster than all others is found in spite of the noise; within 2% any of them may lead.
    assert machine.seconds[machine.trial.leader] <= max(1.02, 1 + 3 * noise) * fastest or machine.seconds[0] * 0.98 <= (
        fastest * (1 + noise)
    )
    assert set(range(len(machine.seconds))) <= set(machine.ran)
    # Every contender may lose two calls before its budget is looked at.
    losses = 2 * sum(max(0.0, seconds - each) for seconds in machine.seconds)
    assert machine.total <= calls * each * (1 + 1.5 * REGRET_PART + 4 * noise) + REGRET_SECONDS + losses


@pytest.mark.parametrize("seed", range(5))
def test_a_tie_goes_to_the_vendor(seed):
    machine = Machine([10e-3, 10e-3], seed=seed, disturbed=1.0).run(700)
    assert machine.trial.decided
    assert machine.trial.leader == 0


def led_by_a_scheme(seconds, noise=0.05, classes=40):
    """Return the part of simulated classes that a scheme leads after 600 calls, one in a hundred of them disturbed."""
    machines = (Machine([10e-3 * one for one in seconds], noise=noise, cold=1.0, seed=seed) for seed in range(classes))
    return sum(machine.run(600).trial.leader > 0 for machine in machines) / classes


def test_schemes_lead_after_the_faster_library_and_rarely_by_chance():
    assert led_by_a_scheme([1.0, 1.02, 1.02, 1.03]) <= 0.05
    assert led_by_a_scheme([1.0, 1.0, 1.0, 1.0]) <= 0.15
    assert led_by_a_scheme([1.0, 0.95]) >= 0.85
    machine = Machine([10e-3, 7e-3, 6e-3], vendors=2, late=400).run(200)
    assert machine.trial.leader == 1
    assert not machine.trial.decided
    assert machine.run(500).trial.leader == 2


@pytest.mark.parametrize("seed", range(8))
def test_what_lost_a_tie_is_not_chosen_by_its_record(seed):
    machine = Machine([10e-3, 9.9e-3], noise=0.05, cold=1.0, seed=seed).run(600)
    seconds = machine.trial.seconds()
    assert min(seconds, key=seconds.__getitem__) == machine.trial.leader
    assert decided_by(1, (seconds[0], seconds[1])).leader == machine.trial.leader


@pytest.mark.parametrize("seed", range(5))
def test_short_calls_are_compared_after_the_background_has_ended(seed):
    """While contenders are loaded, a call of microseconds takes up to five times as long by chance."""
    chance = random.Random(seed)
    trial = begun(1)
    for number in range(3000):
        if number in (20, 500):
            trial = admit(trial, 3, complete=number == 500)
        contender = choose(trial)
        trial, counted = issue(trial, contender)
        assert number >= 500 or contender == 0
        took = (70e-6, 35e-6, 90e-6)[contender] * chance.choice((1.0, 3.0, 5.0) if number < 500 else (1.0, 1.0, 1.5))
        trial = observe(trial, contender, took, counted)
        assert number < 600 or trial.leader == 1


@pytest.mark.parametrize("wrong", [(8e-3, 4e-3), (4e-3, 8e-3)])
def test_poisoned_wisdom_is_mended_within_a_thousand_calls(wrong):
    truth = [10e-3, 14e-3] if wrong[1] < wrong[0] else [10e-3, 7e-3]
    machine = Machine(truth, late=-1)
    machine.trial = decided_by(1, wrong)
    wanted = 0 if truth[0] < truth[1] else 1
    assert machine.trial.leader != wanted
    assert machine.run(1000).trial.leader == wanted


def test_a_change_of_load_is_noticed_within_sixty_calls_and_by_no_single_reading():
    machine = Machine([10e-3, 8e-3], late=2).run(300)
    assert machine.trial.decided
    assert machine.trial.leader == 1
    machine.seconds = [10e-3, 20e-3]  # the scheme's memory traffic meets another process's
    machine.run(60)
    assert machine.trial.leader == 0
    assert DRIFTED < 60 < AGAIN < 1000
    trial = decided_by(1, (10e-3, 8e-3))
    once = observe(trial, 1, 20e-3, True, 10 * DRIFTED)
    assert once.decided
    assert not observe(once, 1, 20e-3, True, 10 * DRIFTED).decided


def test_later_comparisons_are_rarer_and_with_the_nearest_scheme_and_the_vendor():
    machine = Machine([10e-3, 11e-3], late=1, disturbed=1.0).run(20_000)
    assert machine.trial.looks == 5  # the first comparison, and after 800, 1600, 3200 and 6400 calls
    machine.seconds = [10e-3, 7e-3]
    while machine.trial.leader == 0:
        machine.call()
    assert machine.trial.looks == 0
    assert machine.calls < 33_000
    machine = Machine([10e-3, 8e-3, 8.5e-3, 9.5e-3], noise=0.005, disturbed=1.0).run(400)
    assert machine.trial.leader == 1
    assert set(machine.run(700).ran[-700:]) == {0, 1, 2}
    machine.seconds = [10e-3, 9.9e-3, 8.5e-3, 7e-3]  # the nearest takes the lead, and is compared with all others
    assert machine.run(2500).trial.leader == 3


@pytest.mark.parametrize("noise", [0.005, 0.02, 0.05])
def test_schemes_as_fast_as_the_leader_keep_few_calls_busy(noise):
    """Each later comparison with eight of them replaced the leader by chance; up to half of the calls were timed."""
    machine = Machine([2.75e-3, 2.3e-3, 2.35e-3, 2.31e-3, 2.4e-3, 2.32e-3, 2.33e-3, 2.5e-3, 2.31e-3], noise=noise)
    busy = [not machine.trial.decided for _ in range(10_000) if machine.call() is not None]
    assert sum(busy[1500:]) < 0.05 * 8500
    assert machine.trial.looks >= 2
    assert machine.seconds[machine.trial.leader] <= 2.33e-3


def test_a_contender_that_fails_is_never_chosen_again_and_a_leader_hands_over():
    machine = Machine([10e-3, 5e-3], late=1).run(3)
    machine.trial = fail(machine.trial, 1)
    machine.ran.clear()
    assert set(machine.run(50).ran) == {0}
    assert machine.trial.decided
    assert fail(machine.trial, 0) == machine.trial
    machine = Machine([10e-3, 5e-3], late=1).run(100)
    assert machine.trial.leader == 1
    machine.trial = fail(machine.trial, 1)
    assert choose(machine.trial) == 0
    assert machine.run(10).trial.median == pytest.approx(10e-3, rel=0.1)


@pytest.mark.parametrize("reading", [0.0, -1.0, float("nan"), float("inf")])
def test_a_clock_that_jumps_is_ignored(reading):
    machine = Machine([10e-3, 5e-3], late=1).run(4)
    assert observe(machine.trial, 0, reading, True) == machine.trial


@pytest.mark.parametrize("later", [[6e-3], [9e-3], [9e-3, 7e-3]])
def test_a_second_round_is_fought_among_the_leader_and_new_contenders(later):
    machine = Machine([10e-3, 8e-3, 11e-3], noise=0.005, disturbed=1.0).run(400)
    assert machine.trial.leader == 1
    machine.trial = widen(machine.trial)
    assert machine.trial.seconds() == pytest.approx({0: 10e-3, 1: 8e-3, 2: 11e-3}, rel=0.03)  # what was shown stays
    machine.run(40)
    assert set(machine.ran[-40:]) == {1}
    machine.seconds += later
    machine.trial = admit(machine.trial, len(machine.seconds), complete=True)
    machine.run(400)
    assert machine.trial.decided
    assert machine.seconds[machine.trial.leader] == min(machine.seconds)
    assert machine.trial.median == pytest.approx(min(machine.seconds), rel=0.03)
    assert 2 not in machine.ran[440:]  # what has lost stays beaten; the vendor is compared with the winner once more
    assert (0 in machine.ran[440:]) == (machine.trial.leader > 2)
    assert machine.trial.seconds() == pytest.approx(dict(enumerate(machine.seconds)), rel=0.05)


def test_the_queue_has_the_latest_classes_that_were_met_twice_and_not_settled():
    queue = shadow.ShadowQueue()
    assert [queue.meet(one) for one in "abab"] == [False, False, True, True]
    assert queue.meet("c", shadow.LEAST_MET)
    assert queue.waiting() == ["c", "b", "a"]
    queue.meet("a")
    assert queue.waiting() == ["a", "c", "b"]
    queue = shadow.ShadowQueue()
    queue.meet("a", 5)
    queue.settle("a")
    queue.settle("never met")
    assert not queue.meet("a", 5)
    assert queue.waiting() == []
    assert queue.known() == ["a"]
    queue = shadow.ShadowQueue()
    queue.meet("a", shadow.LEAST_MET)
    queue.forget("a")
    assert queue.known() == []
    assert not queue.meet("a")
    assert queue.meet("a", shadow.LEAST_MET)
    queue = shadow.ShadowQueue()
    for number in range(3 * shadow.MOST_MET):
        queue.meet(number, shadow.LEAST_MET)
    assert queue.waiting() == list(range(3 * shadow.MOST_MET - 1, 2 * shadow.MOST_MET - 1, -1))


@pytest.mark.parametrize("each", [0.001, 0.1, 1.9])
def test_shadow_calls_of_a_simulated_process_take_their_part_and_no_more(each):
    """Work without end: calls run whenever they may, all the time that the process is idle."""
    now = spent = 0.0
    while now < 4000.0:
        now += shadow.IDLE_SECONDS
        if not shadow.may_start(spent, now):
            continue
        while shadow.may_go_on(spent, now):
            spent, now = spent + each, now + each
    assert spent <= shadow.SHADOW_PART * now + shadow.SHADOW_SECONDS + each
    assert spent >= shadow.SHADOW_PART * now + shadow.SHADOW_SECONDS - shadow.SITTING - 1.0


def test_a_process_is_idle_without_products_and_other_work():
    seconds, part, is_idle = shadow.IDLE_SECONDS, shadow.IDLE_PART, shadow.is_idle
    assert is_idle(False, 0.0, seconds)
    assert is_idle(False, 10.0 * part, 10.0)
    assert not is_idle(True, 0.0, 10.0)
    assert not is_idle(False, 0.0, seconds / 2)
    assert not is_idle(False, 11.0 * part, 10.0)
