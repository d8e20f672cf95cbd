"""The same seed gives the same finds as ever, bit for bit, on a processor; `python test_golden_finds.py` records anew.

The record, `golden_finds.json`, changes only where a walk is meant to walk otherwise.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from lcma.search import LadderPlan, find

RECORD = Path(__file__).with_name("golden_finds.json")

SEARCHES: dict[str, dict[str, Any]] = {
    "modulo 2": {"target": "3x3x3", "rank": 23, "ring": "Z2", "seed": 5, "count": 10},
    "over Z": {"target": "3x3x3", "rank": 23, "ring": "Z", "seed": 3, "count": 4},
    "over Q": {"target": "2x3x3", "rank": 15, "ring": "Q", "seed": 2},
    "ternary": {"target": "3x3x3", "rank": 23, "ring": "ZT", "seed": 1, "count": 2},
    "modulo 3": {"target": "2x2x3", "rank": 11, "ring": "Z3", "seed": 4, "count": 2},
    "improvements": {"target": "3x3x4", "ring": "Z2", "rounds": 3, "walks": 3, "steps": 30_000, "seed": 9},
    "cyclic": {"target": "3x3x3", "rank": 23, "walk": "flip-c3", "seed": 7, "walks": 4, "steps": 20_000, "count": 3},
    "cyclic 5": {"target": "5x5x5", "ring": "Z2", "rounds": 2, "walks": 2, "steps": 200_000, "seed": 1},
    "reversible": {"target": "4x4x4", "walk": "flip-c3z2", "ring": "Z2", "rounds": 3, "steps": 100_000, "seed": 2},
    "half bias": {"target": "3x3x3:tri-out", "rank": 17, "ring": "Z2", "seed": 1, "policy": {"full": 9}},
    "sparse": {"target": "3x3x3", "ring": "Z2", "rounds": 3, "steps": 50_000, "policy": {"nonzeros": 4}, "seed": 3},
    "objective": {"target": "3x3x3", "rank": 23, "ring": "Z2", "objective": "nonzeros", "rounds": 20, "steps": 50_000},
    "ladder": {
        "target": "3x3x3",
        "rank": 23,
        "ring": "Z",
        "seed": 1,
        "ladder": ("2x3x3:15",),
        "steps": 50_000,
        "plan": LadderPlan(passed=3),
    },
}


def outcome(name: str) -> dict[str, Any]:
    """Return the finds of a search: digests in order, and the last states of its walks."""
    result = find(**SEARCHES[name])
    return {
        "finds": [[found.scheme.digest, found.origin.digest] for found in result.finds],
        "unlifted": [lost.origin.digest for lost in result.unlifted],
        "steps": [step.origin.digest for step in result.steps],
        "ranks": {str(rank): count for rank, count in sorted(result.ranks.items())},
        "rounds": result.rounds,
        "flips": result.flips,
    }


LONGER = "modulo 3", "cyclic", "reversible"
"""Searches whose walkers take seconds to compile; they run in the slow suite."""


@pytest.mark.parametrize("name", [pytest.param(x, marks=pytest.mark.slow) if x in LONGER else x for x in SEARCHES])
def test_finds_are_those_on_record(name):
    assert outcome(name) == json.loads(RECORD.read_text())[name]


if __name__ == "__main__":
    RECORD.write_text(json.dumps({name: outcome(name) for name in SEARCHES}, indent=1) + "\n")
