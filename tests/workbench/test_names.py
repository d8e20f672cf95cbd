"""Names, aliases and files of the catalogue: what a user types is found, and nothing in it reaches a terminal raw."""

import json
import sqlite3

import numpy as np
import pytest

import lcma
from lcma.errors import CatalogError, SchemeFormatError
from lcma.schemes_db.catalog import Catalog
from lcma.schemes_db.constructions import change_of_basis
from lcma.schemes_db.formats import lcma_json, render, written
from lcma.schemes_db.names import checked_name, file_stem, is_start_of_digest, tidy_name, visible

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def other(tmp_path):
    """A scheme of 2x2x2 that does not come with lcma, as a file without a name in it."""
    scheme = change_of_basis(lcma.resolve("strassen")[0], [[1, 1], [0, 1]], [[1, 0], [2, 1]], np.eye(2, dtype=int))
    path = tmp_path / "other.exp"
    path.write_bytes(render(scheme, "exp"))
    return path


def test_a_name_that_begins_as_a_target_is_found(run, other):
    assert run("add", other, "--name", "2x2x2-mine", "--keep-both")[0] == 0
    assert "# name: 2x2x2-mine" in run.ok("show", "2x2x2-mine")
    assert run("show", "2x2x2")[0] == 0
    assert run("show", "2x2x9-mine")[0] == 2


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


def test_markup_in_a_name_is_shown_as_it_is(run, other):
    assert run("add", other, "--keep-both", "--name", "[/x][bold]b")[0] == 0
    assert "[/x][bold]b" in run.ok("list")


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


def test_six_digits_of_a_digest_are_enough(run):
    digest = lcma.resolve("laderman")[0].digest
    assert "# name: laderman" in run("show", digest[:6])[1]
    assert run("show", digest[:5])[0] == 2
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


def test_a_shipped_name_can_not_be_taken(run, other, tmp_path):
    run.refused(
        3, "is a shipped scheme's; choose another one with --name", "add", other, "--keep-both", "--name", "strassen"
    )
    strassen = tmp_path / "strassen.exp"
    strassen.write_bytes(other.read_bytes())
    out = run.ok("add", strassen, "--keep-both")
    digest = lcma.load(other)[0].digest
    assert f"added strassen-{digest[:12]} " in out
    assert lcma.resolve("strassen")[0].digest != digest


def test_own_schemes_are_renamed_and_removed(run, other):
    assert run("add", other, "--keep-both", "--name", "mine")[0] == 0
    assert "is now yours" in run.ok("rename", "mine", "yours")
    assert run("show", "mine")[0] == 2
    assert "# name: yours" in run("show", "yours")[1]
    assert run("rename", "yours", "laderman")[0] == 3
    assert run("remove", "yours")[0] == 0
    assert run("show", "yours")[0] == 2


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


def test_what_lcma_writes_it_reads(run, tmp_path):
    scheme, certificate = lcma.resolve("laderman")
    shown = tmp_path / "shown.json"
    shown.write_text(run("show", "laderman", "--json")[1])
    lines = tmp_path / "finds.jsonl"
    record = {"round": 1, "walk": 2, "stage": 0, "scheme": lcma_json.to_json(scheme, certificate)}
    lines.write_text(f"{json.dumps(record)}\n{json.dumps(record)}\n")
    for path, count in ((shown, 1), (lines, 2)):
        assert run.ok("verify", path).count("OK 3x3x3 rank 23") == count
    assert run("verify", "--recheck", shown)[0] == 0
    assert run("add", shown)[0] == 0
    lines.write_text(f"{json.dumps(record)}\n{json.dumps({'round': 1})}\n")
    run.refused(65, ":2: an object without a scheme in it", "verify", lines)


STRASSEN_MOD_2 = "\n".join(
    line.replace("c22 = m1 - m2", "c22 = m1 + m2") for line in (
        "m1 = (a11 + a22)(b11 + b22)", "m2 = (a21 + a22)(b11)", "m3 = (a11)(b12 - b22)", "m4 = (a22)(b21 - b11)",
        "m5 = (a11 + a12)(b22)", "m6 = (a21 - a11)(b11 + b12)", "m7 = (a12 - a22)(b21 + b22)",
        "c11 = m1 + m4 - m5 + m7", "c12 = m3 + m5", "c21 = m2 + m4", "c22 = m1 - m2 + m3 + m6"))  # fmt: skip


def test_a_declared_ring_binds(run, tmp_path):
    declared, silent = tmp_path / "declared.txt", tmp_path / "silent.txt"
    declared.write_text(f"# ring: Z\n{STRASSEN_MOD_2}\n")
    silent.write_text(f"{STRASSEN_MOD_2}\n")
    assert run.said(1, "verify", "-q", declared).startswith("FAIL 2x2x2 rank 7 over Z: ")
    assert run.ok("verify", "-q", silent).startswith("OK 2x2x2 rank 7 over Z2 only")
    assert run("add", declared)[0] == 1
    over_z2 = tmp_path / "z2.txt"
    over_z2.write_text(f"# ring: Z2\n{STRASSEN_MOD_2}\n")
    assert run("verify", "-q", over_z2)[:2] == (0, "")
    scheme, certificate = lcma.resolve("strassen")
    data = json.loads(lcma_json.render(scheme, certificate))
    data["products"][0]["w"]["1,1"] = -1
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps(data))
    assert run("verify", "-q", wrong)[0] == 1


def test_an_alias_is_renamed_and_removed_while_its_scheme_stays(run, tmp_path):
    path = tmp_path / "s.txt"
    path.write_text(written.equations(lcma.resolve("strassen")[0].replace(name="")))
    assert "there already as strassen; first is now a name of it, too" in run.ok("add", path, "--name", "first")
    assert run("same", "first", "strassen")[0] == 0
    assert run("rename", "first", "second")[0] == 0
    assert run("show", "first")[0] != 0
    assert run("show", "second")[0] == 0
    assert run.ok("remove", "second") == "removed the name second <2x2x2:7 over Z>; the scheme stays\n"
    assert run("show", "strassen")[0] == 0
    assert run("rename", "second", "third")[0] != 0
    assert run("add", path, "--name", "second")[0] == 0
    assert run("rename", "second", "laderman")[0] == 3


def test_a_composition_is_a_name(run):
    assert "rank: 49" in run.ok("show", "strassen*2x2x2")
