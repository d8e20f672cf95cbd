"""Names that mean something else, and what a target means."""

import numpy as np
import pytest

import lcma
from lcma.schemes_db.catalog import Catalog
from lcma.schemes_db.constructions import change_of_basis
from lcma.schemes_db.formats import lcma_json

MEANINGS = ["3x3x3", "4x4x4:47", "2x2x2:tri-out", "5x5x5:anything", "mask:F", "cde7058114b1", "facade"]


@pytest.fixture
def sheared(home):
    """A scheme for 2x2x3 of rank 12, which no shipped one is."""
    scheme = lcma.resolve("naive:2x2x3")[0].replace(name="")
    return change_of_basis(scheme, [[1, 1], [0, 1]], np.eye(2, dtype=int), np.eye(3, dtype=int))


@pytest.mark.parametrize("name", MEANINGS)
def test_a_name_that_means_something_else_is_refused_on_the_way_in(name, sheared, run, tmp_path):
    plain, named = tmp_path / "plain.json", tmp_path / "named.json"
    plain.write_text(lcma_json.render(sheared))
    named.write_text(lcma_json.render(sheared.replace(name=name)))
    for arguments in (("add", plain, "--name", name), ("add", plain, named)):
        run.refused(3, name, *arguments)
    assert run("list", "--where", "origin=user", "--json")[1] == "[]\n"
    assert run("add", plain, "--name", "mine")[0] == 0
    assert run("rename", "mine", name)[0] == 3
    assert run("add", plain, "--name", name)[0] == 3  # as an alias
    assert run("verify", named)[0] == 0
    with pytest.raises(lcma.CatalogError, match="means"), Catalog.open() as catalog:
        catalog.alias(name, sheared.digest)


def test_a_file_that_is_called_like_a_target_gets_a_name_of_its_own(sheared, run, tmp_path):
    path = tmp_path / "3x3x3.json"
    path.write_text(lcma_json.render(sheared))
    assert f"added 3x3x3-{sheared.digest[:12]} " in run.ok("add", path)
    assert lcma.resolve("3x3x3")[0].target.name == "3x3x3"


def test_names_in_the_file_of_the_catalogue_do_not_take_meanings_away(sheared, run):
    strassen = lcma.resolve("strassen")[0].digest[:12]
    with Catalog.open() as catalog:
        catalog.add(sheared, lcma.certify(sheared))
        for name in ("2x2x2", strassen):  # as another program, or an earlier version, writes them
            catalog._connection.execute("UPDATE schemes SET name = ? WHERE digest = ?", (name, sheared.digest))
            assert catalog.find(strassen)[0].name == "strassen"
            assert lcma.resolve(name, catalog)[0].rank == 7


def test_a_target_means_a_shipped_scheme(sheared, run):
    """The user's own of the same rank, with fewer additions, is found by its name, and used where no shipped one is."""
    shipped = lcma.resolve("2x2x2")[0]
    assert shipped.name == "strassen"
    with Catalog.open() as catalog:
        # Other programs may write a row of fewer additions; a find of ours may have them, too.
        mine = lcma.resolve("winograd")[0].replace(name="mine")
        moved = change_of_basis(mine, [[1, 0], [1, 1]], np.eye(2, dtype=int), np.eye(2, dtype=int))
        catalog.add(moved.replace(name="mine"), lcma.certify(moved))
        catalog._connection.execute("UPDATE schemes SET additions = 1 WHERE name = 'mine'")
        catalog.add(sheared, lcma.certify(sheared))
        for target in ("2x2x2", "2x2x2:7"):
            assert lcma.resolve(target, catalog)[0] == shipped
        assert lcma.resolve("mine", catalog)[0].digest == moved.digest
        assert lcma.resolve("2x2x3:12", catalog)[0].digest == sheared.digest
        assert lcma.resolve("2x2x3", catalog)[0].rank == 11
