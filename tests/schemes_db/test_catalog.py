import dataclasses
import json
import signal
import sqlite3

import numpy as np
import pytest

import lcma
from lcma.errors import CatalogError
from lcma.schemes_db import catalog as module
from lcma.schemes_db import migrations
from lcma.schemes_db.constructions import change_of_basis
from lcma.schemes_db.formats import lcma_json
from lcma.schemes_db.migrations import STEPS
from lcma.schemes_db.run_record import RunRecord
from lcma.schemes_db.shipped import kept_program, shared_additions, shipped, shipped_names, shipped_text
from lcma.verify.program import scheme_of

from ..refusal import refuses_with
from .load_catalogue import loaded, lost_and_doubled, started


@pytest.fixture
def catalog(tmp_path):
    with lcma.Catalog.open(tmp_path / "c.db") as opened:
        yield opened


def product(name):
    scheme = lcma.resolve(name)[0]
    return scheme, lcma.certify(scheme)


def test_shipped_schemes_are_there_and_proven_again(catalog):
    assert sorted(entry.name for entry in catalog.entries(origin="shipped")) == list(shipped_names())
    assert list(shared_additions()) == list(shipped_names())
    for name in shipped_names():
        scheme, certificate = catalog.find(name)
        assert lcma.recheck(scheme, certificate).digest == certificate.digest


def test_a_shipped_file_is_what_its_scheme_renders_to():
    for name in shipped_names():
        reading = shipped(name)
        assert reading.certificate is not None, name
        assert shipped_text(name) == lcma_json.render(reading.scheme, reading.certificate), name
        assert reading.scheme.name == name
        assert reading.scheme.provenance.steps, name


def test_add_find_and_lineage(catalog):
    scheme, certificate = product("strassen*laderman")
    assert catalog.add(scheme, certificate)
    assert not catalog.add(scheme, certificate)
    found, kept = catalog.find(scheme.digest[:8])
    assert (found, kept) == (scheme, certificate)
    assert {parent for parent, _ in catalog.parents(scheme.digest)} == set(scheme.provenance.parents)
    (entry,) = [entry for entry in catalog.entries(target="6x6x6") if entry.origin == "user"]
    assert (entry.rank, entry.ternary) == (161, True)
    assert [entry.name for entry in catalog.entries(ring="Q")] == ["3x3x6-r40"]
    assert [entry.rank for entry in catalog.entries(target="2x2x2", max_rank=10)] == [7, 7]


def test_a_certificate_of_another_scheme_is_refused(catalog, strassen):
    refuses_with(CatalogError, "not of", catalog.add, strassen, lcma.certify(lcma.resolve("winograd")[0]))


def test_measurements_are_kept(catalog, strassen):
    catalog.measure(strassen.digest, "ratio", 1.1, "x", "here", {"size": 4096})
    (row,) = catalog.measurements(strassen.digest)
    assert (row["value"], row["detail"]) == (1.1, {"size": 4096})


def test_users_rows_survive_a_change_of_the_package_data(tmp_path, monkeypatch):
    path = tmp_path / "c.db"
    with lcma.Catalog.open(path) as catalog:
        catalog.add(*product("naive:2x2x2"))
    monkeypatch.setattr(module, "shipped_stamp", lambda: "another")
    monkeypatch.setattr(module, "shipped_names", lambda: ("strassen",))
    with lcma.Catalog.open(path) as catalog:
        assert [entry.name for entry in catalog.entries()] == ["strassen", "naive:2x2x2"]


def test_a_newer_catalogue_is_refused_and_not_touched(tmp_path):
    path = tmp_path / "c.db"
    lcma.Catalog.open(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {len(STEPS) + 1}")
    connection.close()
    refuses_with(CatalogError, "newer lcma", lcma.Catalog.open, path)


def test_a_file_that_is_no_catalogue_is_refused(tmp_path):
    path = tmp_path / "c.db"
    path.write_bytes(b"this is not a database" * 100)
    refuses_with(CatalogError, "can't be opened as a catalogue", lcma.Catalog.open, path)
    assert path.read_bytes().startswith(b"this is not")
    refuses_with(CatalogError, "can't be read: Is a directory", lcma.Catalog.open, tmp_path)


def test_where_the_home_can_not_be_written_shipped_schemes_are_served(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LCMA_HOME", str(tmp_path / "file" / "home"))
    with lcma.Catalog.open() as catalog:
        assert len(catalog.entries()) == len(shipped_names())
        refuses_with(CatalogError, "set LCMA_HOME", catalog.add, *product("naive:2x2x2"))


def killed_and_spared(path, count):
    """Two processes add `count` schemes each, the first is killed half way: what each was told is kept."""
    victim, other = started(path, 4, count, 0, (0, 1))
    told = [victim.stdout.readline() for _ in range(count // 2)]
    victim.kill()
    told += [line for line in victim.stdout if line.endswith("]\n")]
    victim.communicate()
    spared = other.communicate()[0].splitlines()
    assert (victim.returncode, other.returncode) == (-signal.SIGKILL, 0)
    return ([json.loads(line)[0] for line in lines] for lines in (told, spared))


@pytest.mark.parametrize("count", [40, pytest.param(500, marks=pytest.mark.slow)])
def test_a_writer_that_is_killed_loses_nothing_that_was_reported_as_stored(tmp_path, count):
    path = tmp_path / "c.db"
    told, spared = killed_and_spared(path, count)
    assert count // 2 <= len(told) < count
    assert len(spared) == count
    with lcma.Catalog.open(path) as catalog:
        assert catalog._connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        kept = {entry.digest for entry in catalog.entries(origin="user")}
        assert kept >= {*told, *spared}
        assert len(kept) <= len(told) + len(spared) + 1  # one may be kept that nobody was told of
        for digest in (told[0], told[-1], spared[-1]):
            scheme, certificate = catalog.find(digest)
            assert lcma.recheck(scheme, certificate).digest == digest


def test_finds_that_come_twice_at_once_are_stored_once(tmp_path):
    # The times that writes take are measured by hand, on a machine that does nothing else: see the script.
    path = tmp_path / "c.db"
    _, offered, fresh = loaded(path, processes=4, rate=100, seconds=1)
    assert (len(offered), len(set(offered)), len(fresh)) == (100, 50, 50)
    assert lost_and_doubled(path, offered, fresh) == (0, 0)
    assert lost_and_doubled(path, [*offered, "0" * 64], [*fresh, fresh[0]]) == (1, 1)


def test_a_scheme_that_is_derived_twice_has_both_parents(catalog):
    found, certificate = product("naive:2x2x3")

    def by(*parents):
        return found.replace(provenance=dataclasses.replace(found.provenance, parents=parents, relation="flip walk"))

    assert catalog.add(by("a" * 64), certificate)
    assert not catalog.add(by("a" * 64), certificate)
    assert not catalog.add(by("b" * 64), certificate)
    assert catalog.parents(found.digest) == [("a" * 64, "flip walk"), ("b" * 64, "flip walk")]


def test_distinct_stores_one_of_those_with_equal_invariants(catalog, strassen):
    one, shear, steep = [[1, 0], [0, 1]], [[1, 1], [0, 1]], [[1, 5], [0, 1]]
    naive, certificate = product("naive:2x2x3")
    moved, steeper = (change_of_basis(naive, matrix, one, np.eye(3, dtype=int)) for matrix in (shear, steep))
    assert catalog.alike(moved) == [entry for entry in catalog.entries("2x2x3") if entry.rank == 12]
    assert catalog.add(steeper, lcma.certify(steeper), overwrite="distinct")
    assert [entry.digest for entry in catalog.alike(moved)] == [steeper.digest]
    assert catalog.add(moved, lcma.certify(moved), overwrite="distinct")  # better: the steeper one goes
    assert not catalog.add(steeper, lcma.certify(steeper), overwrite="distinct")
    assert catalog.add(steeper, lcma.certify(steeper))
    assert catalog.add(naive, certificate, overwrite="distinct")
    assert [entry.digest for entry in catalog.entries("2x2x3") if entry.rank == 12] == [naive.digest]
    # A shipped scheme is never dropped, and one that is not told apart from it must be better in something.
    assert {entry.name for entry in catalog.alike(strassen)} == {"winograd"}
    worse = change_of_basis(strassen, [[1, 2], [0, 1]], one, [[1, 2], [0, 1]])
    assert not catalog.add(worse, lcma.certify(worse), overwrite="distinct")
    rows = catalog._connection.execute("SELECT name FROM schemes WHERE invariants IS NOT NULL").fetchall()
    assert {"strassen", "winograd"} <= {name for (name,) in rows}


@pytest.mark.parametrize(("name", "message"), [
    ("nothing", "no scheme 'nothing'"), ("abcdef0123", "no scheme"), ("7x7x7", "no scheme for 7x7x7"),
    ("4x4x4:46", "no scheme for 4x4x4 of rank 46"), ("twin", "several"),
])  # fmt: skip
def test_what_is_not_there_or_not_unique_is_said(home, name, message):
    with lcma.Catalog.open() as catalog:
        for twin in map(product, ("naive:2x2x2", "naive:2x2x3")):
            catalog.add(*twin)
            catalog._connection.execute("UPDATE schemes SET name = 'twin' WHERE digest = ?", (twin[0].digest,))
        for find in (lcma.resolve, catalog.find):
            refuses_with(CatalogError, message if find is lcma.resolve else "no scheme|several", find, name)


def test_improved_keeps_the_pareto_frontier(catalog, strassen):
    one, shear = [[1, 0], [0, 1]], [[1, 2], [0, 1]]
    worse = change_of_basis(strassen, shear, one, shear)
    assert not catalog.add(worse, lcma.certify(worse), overwrite="improved")
    naive, certificate = product("naive:2x3x2")
    skewed = change_of_basis(naive, shear, [[1, 0, 0], [0, 1, 0], [0, 1, 1]], one)
    assert catalog.add(skewed, lcma.certify(skewed), overwrite="improved")
    assert catalog.add(naive, certificate, overwrite="improved")
    assert [entry.digest for entry in catalog.entries(target="2x3x2")] == [naive.digest]
    assert catalog.add(skewed, lcma.certify(skewed))
    assert not catalog.add(naive, certificate, overwrite="improved")
    refuses_with(CatalogError, "never, improved or distinct", catalog.add, naive, certificate, overwrite="always")


def test_children_and_best_ranks(catalog, strassen):
    scheme, certificate = product("strassen*strassen")
    catalog.add(scheme, certificate)
    assert catalog.children(strassen.digest) == [(scheme.digest, "tensor product")]
    assert catalog.best_ranks()[4, 4, 4][0] == 49
    assert catalog.best_ranks()[2, 2, 2][0] == 7
    assert (4, 4, 4) in catalog.best_ranks()
    assert all(entry[1] in {e.digest[:16] for e in catalog.entries()} for entry in catalog.best_ranks().values())


def test_runs_are_recorded(catalog):
    given = RunRecord(command="lcma search 2x2x2", target="2x2x2", ring="Z", seed=1, rounds=3, finds=2, route="own")
    catalog.record_run(given)
    (run,) = catalog.runs()
    assert run.started
    assert dataclasses.replace(run, started="") == given
    assert run.version == lcma.__version__


def test_a_catalogue_of_the_first_schema_is_migrated(tmp_path, monkeypatch, strassen):
    path = tmp_path / "old.db"
    connection = sqlite3.connect(path, isolation_level=None)
    monkeypatch.setattr(migrations, "STEPS", STEPS[:1])
    migrations.migrate(connection)
    connection.execute(
        "INSERT INTO measurements (digest, what, value, unit, machine, detail, taken) "
        "VALUES (?, 'x', 1.0, '', '', '{}', '')",
        (strassen.digest,),
    )
    connection.close()
    monkeypatch.undo()
    with lcma.Catalog.open(path) as catalog:
        assert len(catalog.measurements(strassen.digest)) == 1
        assert catalog.runs() == []
        assert catalog._connection.execute("PRAGMA user_version").fetchone()[0] == len(STEPS)


@pytest.mark.parametrize("largest", [50, pytest.param(1000, marks=pytest.mark.slow)])
def test_shipped_programs_compute_their_schemes_with_fewer_additions(largest):
    assert kept_program("5x5x5-r93-additions").additions == 321
    kept = {name: program for name in shipped_names() if (program := kept_program(name)) and program.rank <= largest}
    assert len(kept) > 10
    for name, program in kept.items():
        scheme = shipped(name).scheme
        assert lcma.check_program(program).ok
        assert scheme_of(program) == scheme
        assert program.additions < lcma.program_of(scheme).additions
