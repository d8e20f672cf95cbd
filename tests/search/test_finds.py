"""Searches find what they are for, by every method: its rank, ring and provenance, certified."""

from lcma.schemes_db import parse_target
from lcma.schemes_db.resolve import resolve
from lcma.verify import certify

from .searches import searched, searches


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
