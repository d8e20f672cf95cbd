"""The catalogue on a disk that is full or read-only, and rows that other programs changed."""

import json
import resource
import shutil
import sqlite3
import subprocess
import sys

import pytest

import lcma
from lcma.schemes_db.catalog import Catalog
from lcma.schemes_db.catalog_file import _copied
from lcma.schemes_db.formats import lcma_json
from lcma.schemes_db.shipped import shipped_names


def _no_file_grows():
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


RUN = """
import contextlib, io, json, sys
from lcma.workbench.cli import main

done = []
for line in sys.argv[1:]:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        done.append((main(line.split()), out.getvalue(), err.getvalue()))
print(json.dumps(done))
"""


def _on_a_full_disk(*lines):
    """Run commands that can write no byte to any file, as where the disk is full: exit code, stdout, stderr of each."""
    done = subprocess.run([sys.executable, "-c", RUN, *lines], stdout=subprocess.PIPE, preexec_fn=_no_file_grows)
    return json.loads(done.stdout)


@pytest.fixture
def mine(home):
    """The digest of a scheme of the user's, named mine."""
    scheme = lcma.resolve("naive:2x2x9")[0].replace(name="mine")
    with Catalog.open() as catalog:
        catalog.add(scheme, lcma.certify(scheme))
    return scheme.digest


def test_a_full_disk_hides_no_scheme(mine):
    reading = ("list --where origin=user --json", "show mine")
    listed, shown, *refused = _on_a_full_disk(*reading, "compose 2x2x10 --add", "rename mine yours", "remove mine")
    assert [row["digest"] for row in json.loads(listed[1])] == [mine]
    assert shown[0] == 0
    assert len(refused) == 3
    for code, out, err in refused:
        assert (code, out, err.count("\n")) == (3, "", 1)
        assert "can't be written" in err
    with Catalog.open() as catalog:
        assert [entry.name for entry in catalog.entries(origin="user")] == ["mine"]


def _unwritable(path):
    raise sqlite3.OperationalError("attempt to write a readonly database")


def test_a_read_only_disk_hides_nothing_that_stands_in_the_log(home, mine, tmp_path, monkeypatch):
    late = lcma.resolve("naive:2x2x11")[0].replace(name="late")
    catalog = Catalog.open()
    catalog.add(late, lcma.certify(late))
    other = tmp_path / "other" / "data"
    other.mkdir(parents=True)
    for name in ("catalog.db", "catalog.db-wal"):  # as a process that was killed leaves them
        shutil.copy(home / "data" / name, other)
    catalog.close()
    assert (other / "catalog.db-wal").stat().st_size
    monkeypatch.setenv("LCMA_HOME", str(other.parent))
    with monkeypatch.context() as patch:
        patch.setattr("lcma.schemes_db.catalog.connect", _unwritable)
        patch.setattr("lcma.schemes_db.catalog_file._copied", _only_of_a_copy(other))
        with Catalog.open() as copy:
            assert copy.path is None
            assert {entry.name for entry in copy.entries(origin="user")} == {"mine", "late"}
            with pytest.raises(lcma.CatalogError, match="readonly database"):
                copy.rename("late", "later")


def _only_of_a_copy(folder):
    """`_copied`, which fails in the folder as where no file can be created beside the log."""

    def copied(path, how):
        if path.parent == folder:
            raise sqlite3.OperationalError("unable to open database file")
        return _copied(path, how)

    return copied


def test_what_can_not_be_read_is_said(empty_home, run):
    (empty_home / "data" / "catalog.db").mkdir(parents=True)
    run.refused(3, str(empty_home / "data" / "catalog.db"), "list", "--where", "origin=user")


@pytest.mark.parametrize("change", ["{}", "not JSON", "[" * 100_000, None], ids=["empty", "text", "deep", "other"])
def test_a_damaged_row_of_a_shipped_scheme_is_written_again(home, mine, run, change):
    digest = lcma.resolve("strassen")[0].digest
    with Catalog.open() as catalog:
        document = change or lcma_json.render(*catalog.find("winograd"))
        catalog._connection.execute("UPDATE schemes SET document = ? WHERE digest = ?", (document, digest))
    code, out, err = run("show", digest[:12])
    assert (code, err) == (0, "")
    assert "# name: strassen" in out
    with Catalog.open() as catalog:
        assert catalog.find(digest)[0].name == "strassen"
        assert {entry.name for entry in catalog.entries()} == {*shipped_names(), "mine"}


def test_a_row_of_deep_json_is_marked(home, mine, run):
    with Catalog.open() as catalog:
        catalog._connection.execute("UPDATE schemes SET document = ? WHERE digest = ?", ("[" * 100_000, mine))
    for command in ("show", "export", "run"):
        run.refused(1, "nested too deep", command, mine[:12], *("a.npy", "b.npy")[: 2 * (command == "run")])


def _change(digest, *, claimed, whole):
    """Negate a coefficient in the document of a row; then state the new digest in its certificate, and everywhere."""
    with Catalog.open() as catalog:
        found, certificate = catalog.find(digest)
        data = lcma_json.to_json(found, certificate)
        product = data["products"][0]["u"]
        (place, value), *_ = product.items()
        product[place] = -value
        wrong = lcma_json.parse(json.dumps(data))[0].scheme.digest
        if claimed:
            data["certificate"]["digest"] = wrong
        row = (wrong if whole else digest, json.dumps(data), digest)
        catalog._connection.execute("UPDATE schemes SET digest = ?, document = ? WHERE digest = ?", row)
    return wrong if whole else digest


@pytest.mark.parametrize(("claimed", "whole"), [(False, False), (True, False), (True, True)])
@pytest.mark.usefixtures("few_pages")
def test_a_row_whose_data_changed_is_marked(home, mine, run, tmp_path, claimed, whole):
    assert run("compose", "2x2x10", "--add")[0] == 0
    digest = _change(mine, claimed=claimed, whole=whole)
    for command in ("show", "export"):
        run.refused(1, "is not valid" if whole else "is damaged", command, digest[:12])
    assert f"row {digest[:12]} is damaged" in run.said(1, "export", "--all", "--out", tmp_path / "all")
    (path,) = (tmp_path / "all").iterdir()
    assert run("verify", path)[0] == 0
    assert f"row {digest[:12]} is damaged" in run.said(1, "site", tmp_path / "site")
    assert f"row {digest[:12]} is damaged" in (tmp_path / "site" / "index.html").read_text()
    assert not list((tmp_path / "site" / "schemes").glob(f"*{digest[:12]}*"))
    assert run("remove", digest[:12])[0] == 0
    assert run("export", "--all", "--out", tmp_path / "again")[0] == 0
