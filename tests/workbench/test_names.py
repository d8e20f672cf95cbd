"""Names, aliases and files of the catalogue: what a user types is found, and nothing in it reaches a terminal raw."""

import json
import sqlite3

import numpy as np
import pytest

import lcma
from lcma.errors import CatalogError, SchemeFormatError
from lcma.schemes_db.catalog import Catalog
from lcma.schemes_db.constructions import change_of_basis
from lcma.schemes_db.formats import lcma_json, render
from lcma.schemes_db.names import checked_name, file_stem, is_start_of_digest, tidy_name, visible

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def other(tmp_path):
    """A scheme of 2x2x2 that does not come with lcma, as a file without a name in it."""
    scheme = change_of_basis(lcma.resolve("strassen")[0], [[1, 1], [0, 1]], [[1, 0], [2, 1]], np.eye(2, dtype=int))
    path = tmp_path / "other.exp"
    path.write_bytes(render(scheme, "exp"))
    return path


@pytest.mark.parametrize(
    "name", ["\x1b[31mred", "two\nlines", "a" * 5000, "tab\there", "-option", " edge ", "bell\x07", ""]
)
def test_names_that_no_terminal_should_see_are_refused(run, other, name):
    code, _, err = run("add", other, "--keep-both", "--name", name)
    if name:
        assert code == 65
        assert err.count("\n") == 1
        assert err.isprintable() or err[:-1].isprintable()
        with pytest.raises(SchemeFormatError):
            checked_name(name)
    assert checked_name("[/x] is text") == "[/x] is text"


def test_a_row_with_control_characters_from_elsewhere_is_shown_escaped(run, other, home):
    assert run("add", other, "--keep-both", "--name", "plain")[0] == 0
    with sqlite3.connect(home / "data" / "catalog.db") as connection:
        connection.execute("UPDATE schemes SET name = ? WHERE name = 'plain'", ("\x1b]0;x\x07\nname",))
    connection.close()
    for arguments in (("list",), ("list", "--csv")):
        out = run.ok(*arguments)
        assert "\x1b" not in out
        assert "\\x1b]0;x\\x07\\nname" in out


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


def test_a_digest_has_64_digits_and_its_start_six_at_least():
    assert [is_start_of_digest(text) for text in ("a" * 5, "a" * 6, "a" * 64, "a" * 65)] == [False, True, True, False]


def test_the_digest_stands_once_in_the_name_of_a_file(run, tmp_path, other):
    assert run("add", other, "--keep-both", "--name", "n" * 120)[0] == 0
    folder = tmp_path / "out"
    assert run("export", "--all", "--out", folder)[0] == 0
    (first,) = folder.iterdir()
    assert len(first.name) < 200
    digest = lcma.load(first)[0].digest
    assert file_stem(f"x-{digest[:12]}", digest) == f"x-{digest[:12]}"
    assert run("rename", "n" * 120, first.stem)[0] == 0
    assert run("export", "--all", "--out", tmp_path / "again")[0] == 0
    (second,) = (tmp_path / "again").iterdir()
    assert second.name.count(digest[:12]) == 1
    assert tidy_name("a/../b\n") == "a/../b_"
    assert file_stem("../../etc", digest) == f"_.._etc-{digest[:12]}"
    assert visible("\u202eabc") == "\\u202eabc"


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
    strassen = lcma.resolve("naive:2x2x2")[0]
    with Catalog.open() as catalog:
        catalog.add(parent.replace(name="parent"), certificate)
        child = lcma.resolve("winograd")[0]
        better = change_of_basis(child, np.eye(2, dtype=int), np.eye(2, dtype=int), [[1, 0], [1, 1]])
        better = better.replace(provenance=lcma.Provenance("composition", parents=(parent.digest,), relation="x"))
        catalog.add(better, lcma.certify(better), overwrite="improved")
        assert catalog.find("parent")[0].digest == parent.digest
        assert strassen.rank == 8


def test_a_catalogue_damaged_in_the_middle_is_one_line(run, other, home):
    assert run("add", other, "--keep-both")[0] == 0
    path = home / "data" / "catalog.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    raw = bytearray(path.read_bytes())
    for at in range(8192, len(raw) - 4096, 4096):
        raw[at : at + 4096] = b"\xa5" * 4096
    path.write_bytes(raw)
    for arguments in (("list",), ("show", "3x3x3"), ("add", other), ("export", "--all", "--out", home / "x")):
        run.refused(3, "move it away", *arguments)


def test_a_file_of_finds_is_read(run, tmp_path):
    scheme, certificate = lcma.resolve("laderman")
    lines = tmp_path / "finds.jsonl"
    record = {"round": 1, "walk": 2, "stage": 0, "scheme": lcma_json.to_json(scheme, certificate)}
    lines.write_text(f"{json.dumps(record)}\n{json.dumps(record)}\n")
    assert run.ok("verify", lines).count("OK 3x3x3 rank 23") == 2
    lines.write_text(f"{json.dumps(record)}\n{json.dumps({'round': 1})}\n")
    run.refused(65, ":2: an object without a scheme in it", "verify", lines)


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
