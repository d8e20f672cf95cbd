"""The cache of plans: bounded, and emptied by what plans rest on, other processes' changes included."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from lcma.kernels import Profile
from lcma.kernels.dense import pool  # noqa: F401  # it watches the catalogue
from lcma.kernels.planning import cache
from lcma.kernels.planning.cache import PlanCache, plan_cache
from lcma.kernels.planning.profiles import keep_profile, stored_profile
from lcma.kernels.planning.wisdom import TimedCandidate, WisdomRecord, keep_record
from lcma.schemes_db.catalog import Catalog

RECORD = WisdomRecord("class", (1, 2, 3, 1), "2026-01-01", (TimedCandidate("dense", "vendor", "", (), 1.0, None),))


@pytest.fixture
def clock(monkeypatch):
    """clock(seconds): so much later."""
    now = [1000.0]
    monkeypatch.setattr(cache, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(plan_cache, "_checked", 0.0)

    def later(seconds: float) -> None:
        now[0] += seconds

    return later


def test_the_least_recently_used_entry_beyond_the_bound_is_dropped():
    kept = PlanCache(most=3)
    for size in range(5):
        kept.put(size, str(size))
    assert [kept.get(size) for size in range(5)] == [None, None, "2", "3", "4"]
    kept.get(2)
    kept.put(5, "5")
    assert (kept.get(2), kept.get(3)) == ("2", None)
    assert len(kept) == 3


def test_a_changed_stamp_empties_it_within_a_second(clock):
    kept, stamp = PlanCache(), [1]
    kept.watch(lambda: stamp[0])
    kept.get("first look")
    kept.put("plan", "old")
    clock(2)
    assert kept.get("plan") == "old"
    stamp[0] = 2
    assert kept.get("plan") == "old"  # a look at files costs more than a lookup: not at every one
    clock(cache.CHECK_SECONDS + 0.01)
    assert kept.get("plan") is None


@pytest.mark.parametrize("change", ["profile", "wisdom"])
def test_what_this_process_stores_empties_it_at_once(home, change):
    plan_cache.put("plan", "old")
    if change == "profile":
        keep_profile(Profile("mine", "test", source="measured"))
    else:
        keep_record("mine", RECORD)
    assert plan_cache.get("plan") is None


OTHERS = {
    "profile": """
from lcma.kernels import Profile
from lcma.kernels.planning.profiles import keep_profile
keep_profile(Profile("theirs", "test", source="measured"))
""",
    "catalogue": """
import lcma
scheme = lcma.rotate(lcma.resolve("2x2x3")[0])
both = lcma.tensor(scheme, scheme)
with lcma.Catalog.open() as catalog:
    catalog.add(both, lcma.certify(both))
""",
}


@pytest.mark.parametrize("change", OTHERS)
def test_what_another_process_stores_empties_it_within_a_second(home, clock, change):
    with Catalog.open() as catalog:  # there is one, from a use before
        assert list(catalog.entries())
    plan_cache.get("a look")
    clock(2)
    plan_cache.get("a look at what is there now")
    plan_cache.put("plan", "old")
    clock(2)
    assert plan_cache.get("plan") == "old"
    assert stored_profile("theirs") is None
    subprocess.run([sys.executable, "-c", OTHERS[change]], check=True, env={**os.environ, "LCMA_HOME": str(home)})
    clock(cache.CHECK_SECONDS + 0.01)
    assert plan_cache.get("plan") is None
    assert (stored_profile("theirs") is not None) == (change == "profile")
