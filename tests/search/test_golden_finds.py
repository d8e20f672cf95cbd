"""The same seed gives the same finds as ever, bit for bit, on a processor.

The record, `golden_finds.json`, changes only where a walk is meant to walk otherwise: then
`python -m lcma.tests.search.test_golden_finds` writes it anew.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from .searches import SEARCHES, searched

RECORD, GOLDEN = Path(__file__).with_name("golden_finds.json"), SEARCHES["golden"]


def outcome(name: str) -> dict[str, Any]:
    """Return the finds of a search: digests in order, and the last states of its walks."""
    result = searched(GOLDEN[name])
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


@pytest.mark.parametrize("name", [pytest.param(x, marks=pytest.mark.slow) if x in LONGER else x for x in GOLDEN])
def test_finds_are_those_on_record(name):
    assert outcome(name) == json.loads(RECORD.read_text())[name]


if __name__ == "__main__":
    RECORD.write_text(json.dumps({name: outcome(name) for name in GOLDEN}, indent=1) + "\n")
