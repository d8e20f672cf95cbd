"""Names, aliases and files of the catalogue: what a user types is found, and nothing in it reaches a terminal raw."""

import numpy as np
import pytest

import lcma
from lcma.errors import CatalogError
from lcma.schemes_db.catalog import Catalog
from lcma.schemes_db.constructions import change_of_basis
from lcma.schemes_db.formats import lcma_json, render

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def other(tmp_path):
    """A scheme of 2x2x2 that does not come with lcma, as a file without a name in it."""
    scheme = change_of_basis(lcma.resolve("strassen")[0], [[1, 1], [0, 1]], [[1, 0], [2, 1]], np.eye(2, dtype=int))
    path = tmp_path / "other.exp"
    path.write_bytes(render(scheme, "exp"))
    return path


@pytest.mark.parametrize("name", ["\x1b[31mred", "two\nlines", "a" * 5000, "tab\t", "-option", " edge ", "bell\x07"])
def test_names_that_no_terminal_should_see_are_refused(run, other, name):
    code, _, err = run("add", other, "--keep-both", "--name", name)
    assert (code, err.count("\n"), err[:-1].isprintable()) == (65, 1, True)


def test_files_with_odd_names_are_added_listed_and_exported(run, tmp_path, other):
    odd = tmp_path / "new\nline\x1b[2J.exp"
    odd.write_bytes(other.read_bytes())
    run.ok("verify", odd, "-q", "--json")
    out = run.ok("add", odd, "--keep-both")
    assert out.count("\n") == 1
    assert "\x1b" not in out
    broken = tmp_path / "bro\nken.exp"
    broken.write_text("m1 = (a11)(b11")
    run.refused(65, "", "verify", broken)
    folder = tmp_path / "out"
    assert run("export", "--all", "--out", folder)[0] == 0
    (written,) = folder.iterdir()
    assert written.name.isascii()


def test_aliases_of_shipped_schemes_survive_new_package_data(home, monkeypatch):
    with Catalog.open() as catalog:
        catalog.alias("favourite", lcma.resolve("laderman")[0].digest)
    monkeypatch.setattr("lcma.schemes_db.catalog.shipped_stamp", lambda: "another")
    with Catalog.open() as catalog:
        assert catalog.find("favourite")[0].rank == 23
        with pytest.raises(CatalogError, match="shipped"):
            catalog.alias("strassen", lcma.resolve("laderman")[0].digest)


def test_what_a_scheme_was_made_from_survives_a_better_one(home, other):
    parent, certificate = lcma.load(other)
    with Catalog.open() as catalog:
        catalog.add(parent.replace(name="parent"), certificate)
        child = lcma.resolve("winograd")[0]
        better = change_of_basis(child, np.eye(2, dtype=int), np.eye(2, dtype=int), [[1, 0], [1, 1]])
        better = better.replace(provenance=lcma.Provenance("composition", parents=(parent.digest,), relation="x"))
        catalog.add(better, lcma.certify(better), overwrite="improved")
        assert catalog.find("parent")[0].digest == parent.digest


MEANINGS = ["3x3x3", "4x4x4:47", "2x2x2:tri-out", "5x5x5:anything", "mask:F", "cde7058114b1", "facade", "auto", "a/b"]


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


def test_names_in_the_file_of_the_catalogue_do_not_take_meanings_away(sheared):
    strassen = lcma.resolve("strassen")[0].digest[:12]
    with Catalog.open() as catalog:
        catalog.add(sheared, lcma.certify(sheared))
        for name in ("2x2x2", strassen):  # as another program, or an earlier version, writes them
            catalog._connection.execute("UPDATE schemes SET name = ? WHERE digest = ?", (name, sheared.digest))
            assert catalog.find(strassen)[0].name == "strassen"
            assert lcma.resolve(name, catalog)[0].rank == 7


def test_a_target_means_a_shipped_scheme(sheared):
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
