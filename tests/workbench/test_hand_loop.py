"""The comparison after a decision, with a clock that counts."""

import itertools

import pytest

from lcma.workbench.bench import hand_loop
from lcma.workbench.bench.contest import CpuClock, paired_interval


class Clock(CpuClock):
    """Seconds of two calls by turns of a table, in blocks of ten."""

    def __init__(self, seconds):
        super().__init__(10, lambda: None)
        self.times = {name: itertools.cycle(some) for name, some in seconds.items()}

    def seconds(self, call):
        return next(self.times[call()])


def compared(seconds):
    return hand_loop.compared({name: (lambda name=name: name) for name in seconds}, Clock(seconds))


def test_what_scatters_little_is_compared_in_as_few_blocks_as_are_asked_for():
    vendor, ours = compared({"vendor": [0.02], "ours": [0.0201, 0.0199]})
    assert len(vendor.seconds) == len(ours.seconds) == hand_loop.DECIDED_BLOCKS


def test_what_scatters_is_compared_until_the_interval_is_narrow():
    scattered = [0.01 * (1 + 0.002 * (i % 21)) for i in range(0, 16 * 21, 16)]
    vendor, ours = compared({"vendor": [0.01], "ours": scattered})
    assert len(ours.seconds) > hand_loop.DECIDED_BLOCKS
    low, high = paired_interval(vendor, ours)
    assert high - low <= hand_loop.NARROW


@pytest.mark.parametrize("seconds", [0.5, 5.0])
def test_long_calls_are_not_compared_for_longer_than_a_minute_or_the_least_blocks(seconds):
    vendor, _ = compared({"vendor": [seconds], "ours": [seconds, 2 * seconds, seconds / 2]})
    assert len(vendor.seconds) == hand_loop.DECIDED_BLOCKS
