"""Searches find what they are for, by every method, and the same seed gives the same finds as ever, bit for bit.

The record, `golden_finds.json`, changes only where a walk is meant to walk otherwise: then
`python -m lcma.tests.search.test_finds` writes it anew.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from lcma.schemes_db import parse_target
from lcma.schemes_db.resolve import resolve
from lcma.verify import certify

from .searches import SEARCHES, searched, searches


@searches("finds", "slow")
def test_a_search_finds_what_the_table_says(settings):
    wanted, given = settings["found"], {name: value for name, value in settings.items() if name != "found"}
    result = searched(given)
    first, best = result.finds[0], result.best
    assert best.rank <= wanted.get("rank", given.get("rank")) < len(result.target.terms)
    assert certify(best).target == best.target.name == parse_target(given["target"]).name
    assert first.certificate == certify(first.scheme)
    assert wanted.get("ring", best.ring.name) == best.ring.name
    assert wanted.get("relation", best.provenance.relation) == best.provenance.relation
    assert wanted.get("denominator", max(best.denominators)) == max(best.denominators)
    assert wanted.get("origin", first.origin.ring.name) == first.origin.ring.name
    if "parents" in wanted:
        assert best.provenance.parents == tuple(resolve(name)[0].digest for name in wanted["parents"])


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
