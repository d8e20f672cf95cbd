"""The catalogue: certified schemes, their lineage and measurements, in one SQLite file."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from ..errors import CatalogError, DamagedRowError, UnknownSchemeError, VerifyOnlyError, did_you_mean
from ..home import data_folder
from .catalog_file import connect, copy_in_memory, transaction
from .catalog_rows import ENTRY_COLUMNS, entry_of_row, scheme_of_row, shipped_row
from .certificate import Certificate
from .display import line
from .formats import lcma_json
from .invariants import invariants
from .migrations import migrate
from .names import checked_new_name, is_start_of_digest
from .pareto import POLICIES, CatalogueRow, entry_of, now
from .run_record import COLUMNS, RunRecord
from .scheme import Scheme
from .shipped import shipped, shipped_names, shipped_stamp
from .target import parse_target


class Catalog:
    """An open catalogue. Use as a context manager; several processes may write to one file.

    Raises:
        CatalogError: the file is of a newer lcma, or is no catalogue.
    """

    def __init__(
        self, connection: sqlite3.Connection | None = None, path: Path | None = None, reason: str = ""
    ) -> None:
        if not isinstance(connection, sqlite3.Connection):
            raise CatalogError("a catalogue is opened by Catalog.open(), Catalog.open(path) or Catalog.in_memory()")
        self._connection = connection
        self.path = path
        self._reason = reason
        self._connection.execute("PRAGMA foreign_keys = ON")
        self._sync_shipped()

    def __repr__(self) -> str:
        return line(f"catalogue {self.path or 'in memory'}")

    def _rows(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query.

        Raises:
            CatalogError: the file is damaged.
        """
        try:
            return self._connection.execute(query, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise self._damaged(error) from None

    def _damaged(self, error: Exception) -> CatalogError:
        return CatalogError(
            f"the catalogue {self.path} can't be read ({error}); move it away to start a new one, and add your "
            "schemes again from an export"
        )

    @classmethod
    def open(cls, path: Path | None = None) -> Catalog:
        """The catalogue at `path`, made if missing; by default the user's own.

        Where the file cannot be written, as on a disk that is full or read-only, a copy in memory is read. Where
        the user's folder cannot be written and has no catalogue, there are the shipped schemes only. In both cases
        the `path` of the catalogue is None.

        Raises:
            CatalogError: the file can't be read.
        """
        chosen = path or data_folder() / "catalog.db"
        try:
            try:
                chosen.parent.mkdir(parents=True, exist_ok=True)
                return cls(connect(chosen), chosen)
            except (sqlite3.OperationalError, OSError) as error:
                reason = str(getattr(error, "strerror", None) or error)
                if (copy := copy_in_memory(chosen)) is not None:
                    return cls(copy, None, reason)
        except sqlite3.DatabaseError as error:
            raise CatalogError(
                f"{chosen} can't be opened as a catalogue ({error}); move it away to start a new one"
            ) from None
        except OSError as error:
            raise CatalogError(f"{chosen} can't be read: {error.strerror}") from None
        if path is None:
            return cls.in_memory(reason)
        raise CatalogError(f"{chosen} can't be opened: {reason}")

    @classmethod
    def in_memory(cls, reason: str = "") -> Catalog:
        """A catalogue of the shipped schemes that vanishes when closed."""
        connection = sqlite3.connect(":memory:", isolation_level=None)
        migrate(connection)
        return cls(connection, None, reason)

    def __enter__(self) -> Catalog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; the catalogue is of no use afterwards."""
        self._connection.close()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction.

        Raises:
            CatalogError: the file can't be written.
        """
        self.refuse_copy()
        try:
            with transaction(self._connection) as connection:
                yield connection
        except sqlite3.OperationalError as error:
            raise CatalogError(f"{self.path} can't be written: {error}") from None
        except sqlite3.DatabaseError as error:
            raise self._damaged(error) from None

    def refuse_copy(self) -> None:
        """Raise an error where the catalogue is a copy in memory, to which nothing can be added.

        Raises:
            CatalogError: it is; the message says why.
        """
        if self.path is None:
            why = f" ({self._reason})" if self._reason else ""
            raise CatalogError(f"the catalogue in {data_folder()} can't be written{why}; set LCMA_HOME to one that can")

    def _sync_shipped(self, anew: bool = False) -> None:
        """Replace the shipped rows where the package data have changed; a user's rows are never touched."""
        row = self._connection.execute("SELECT value FROM meta WHERE key = 'shipped'").fetchone()
        if row and row[0] == shipped_stamp() and not anew:
            return
        with transaction(self._connection) as connection:
            connection.execute("DELETE FROM schemes WHERE origin = 'shipped'")
            for row in filter(None, map(shipped_row, shipped_names())):
                self._insert(connection, *row)
            connection.execute("DELETE FROM aliases WHERE digest NOT IN (SELECT digest FROM schemes)")
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('shipped', ?)", (shipped_stamp(),))

    def as_good(self, scheme: Scheme) -> CatalogueRow | None:
        """A listed scheme of the same target and ring that a scheme adds nothing to, or None.

        It has no higher rank, no more products (full + half / 2), no more nonzeros, and is ternary if the scheme is.
        """
        mine = entry_of(scheme, "user", 0)
        wanted = (mine.rank, mine.products, mine.nonzeros, not mine.ternary)
        for row in sorted(self.entries(mine.target, mine.ring, mine.rank), key=lambda row: row.digest != mine.digest):
            if all(
                x <= y for x, y in zip((row.rank, row.products, row.nonzeros, not row.ternary), wanted, strict=True)
            ):
                return row
        return None

    def add(self, scheme: Scheme, certificate: Certificate, overwrite: str = "never", *, listed: bool = True) -> bool:
        """Keep a certified scheme with its lineage; False if it is not kept because it was there already.

        With `overwrite="improved"` the user's schemes of a target and ring stay on their Pareto
        frontier of products (rank; full + half / 2), additions and growth factor: a scheme that
        another is at least as good as in all of these is not stored, and the schemes that it dominates
        are removed. With "distinct" the same is done only among schemes that are not distinguished up to
        symmetry (see `alike`), and additions after sharing count, too. A new scheme that is not `listed` is found by
        its digest only, as what another one was made from.

        Raises:
            CatalogError: the certificate is of another scheme, or the catalogue cannot be written.
        """
        if (certificate.digest, certificate.ring) != (scheme.digest, scheme.ring.name):
            raise CatalogError(f"the certificate is not of {scheme!r}; certify this scheme first")
        if scheme.large:
            raise VerifyOnlyError(f"{scheme!r} has coefficients beyond int64 and is not kept")
        if overwrite not in POLICIES:
            raise CatalogError(f"overwrite must be {', '.join(POLICIES[:-1])} or {POLICIES[-1]}, not {overwrite!r}")
        self.refuse_copy()
        self._check_name(scheme.name, scheme.digest)
        if overwrite == "never" and self._stored(scheme):
            return False  # no writer waits for it
        # Outside of the transaction: a long computation must not block other writers.
        mine, document = entry_of(scheme, "user"), lcma_json.render(scheme, certificate)
        alike = {entry.digest for entry in self.alike(scheme)} if overwrite == "distinct" else None
        with self._writing() as connection:
            if overwrite != "never" and not self._make_room(connection, mine, alike, scheme.provenance.parents):
                return False
            return self._insert(connection, mine, scheme, document, listed)

    def _stored(self, scheme: Scheme) -> bool:
        """Return whether there is nothing to write of a scheme: it is listed, and so are all its parents as such."""
        relation = scheme.provenance.relation
        return bool(self._rows("SELECT 1 FROM schemes WHERE digest = ? AND superseded = 0", (scheme.digest,))) and set(
            self.parents(scheme.digest)
        ) >= {(parent, relation) for parent in scheme.provenance.parents}

    def _check_name(self, name: str, digest: str) -> None:
        """Refuse a name that means another scheme already."""
        checked_new_name(name)
        owner = self.named(name)
        if owner and owner != digest:
            whose = "a shipped scheme's" if name in shipped_names() else f"that of {owner[:12]}"
            raise CatalogError(f"the name {name!r} is {whose}; choose another one with --name")

    def named(self, name: str) -> str | None:
        """The digest of the scheme that has a name, as its own or as an alias; None where there is none or several."""
        if not name:
            return None
        if name in shipped_names():
            return shipped(name).scheme.digest
        rows = self._rows(
            "SELECT digest FROM schemes WHERE name = ? UNION SELECT digest FROM aliases WHERE name = ?", (name, name)
        )
        return str(rows[0][0]) if len(rows) == 1 else None

    def alias(self, name: str, digest: str) -> None:
        """Give a kept scheme one more name.

        Raises:
            CatalogError: the name is another scheme's, or there is no such scheme.
        """
        entry = self._entry_of(digest)
        self._check_name(name, entry.digest)
        with self._writing() as connection:
            connection.execute("INSERT OR IGNORE INTO aliases VALUES (?, ?)", (name, entry.digest))

    def rename(self, key: str, name: str) -> CatalogueRow:
        """Give a user's scheme, or an alias of any scheme, another name; the old one is forgotten.

        Raises:
            CatalogError: it is a shipped scheme, the name is another scheme's, or there is no such scheme.
        """
        checked_new_name(name)
        if self._is_alias(key):
            entry = dataclasses.replace(self._entry_of(self._found(key)[0]), name=name)
            self._check_name(name, entry.digest)
            with self._writing() as connection:
                connection.execute("DELETE FROM aliases WHERE name = ?", (key,))
                connection.execute("INSERT OR IGNORE INTO aliases VALUES (?, ?)", (name, entry.digest))
            return entry
        scheme, certificate = self.find(key)
        entry = self._own(scheme.digest, "renamed")
        self._check_name(name, entry.digest)
        with self._writing() as connection:
            connection.execute("DELETE FROM aliases WHERE name = ?", (name,))
            document = lcma_json.render(scheme.replace(name=name), certificate)
            connection.execute(
                "UPDATE schemes SET name = ?, document = ? WHERE digest = ?", (name, document, entry.digest)
            )
        return dataclasses.replace(entry, name=name)

    def remove(self, key: str) -> CatalogueRow:
        """Take a user's scheme, or an alias of any scheme, out of the catalogue; what it was made from stays noted.

        Raises:
            CatalogError: it is a shipped scheme, or there is no such scheme.
        """
        if self._is_alias(key):
            entry = self._entry_of(self._found(key)[0])
            with self._writing() as connection:
                connection.execute("DELETE FROM aliases WHERE name = ?", (key,))
            return dataclasses.replace(entry, name=key)
        entry = self._own(self._found(key)[0], "removed")
        with self._writing() as connection:
            connection.execute("DELETE FROM aliases WHERE digest = ?", (entry.digest,))
            connection.execute("DELETE FROM schemes WHERE digest = ?", (entry.digest,))
        return entry

    def aliases(self, digest: str) -> list[str]:
        """The other names of a scheme."""
        return [str(row[0]) for row in self._rows("SELECT name FROM aliases WHERE digest = ? ORDER BY name", (digest,))]

    def _is_alias(self, name: str) -> bool:
        return bool(self._rows("SELECT 1 FROM aliases WHERE name = ?", (name,)))

    def _entry_of(self, digest: str) -> CatalogueRow:
        rows = self._rows(f"SELECT {', '.join(ENTRY_COLUMNS)} FROM schemes WHERE digest = ?", (digest,))
        if not rows:
            raise UnknownSchemeError(f"no scheme {digest[:12]} in the catalogue")
        return entry_of_row(rows[0])

    def _own(self, digest: str, what: str) -> CatalogueRow:
        """The row of a user's scheme."""
        entry = self._entry_of(digest)
        if entry.origin != "user":
            raise CatalogError(f"{entry.name or digest[:12]} comes with lcma and can't be {what}")
        return entry

    def _make_room(
        self, connection: sqlite3.Connection, mine: CatalogueRow, alike: set[str] | None, parents: Sequence[str]
    ) -> bool:
        """Remove the user's schemes that a new one dominates; False where a stored one (of `alike`) dominates it."""
        rivals = [
            entry
            for entry in self.entries(mine.target, mine.ring)
            if entry.digest != mine.digest and (alike is None or entry.digest in alike)
        ]

        def dominates(first: CatalogueRow, second: CatalogueRow) -> bool:
            pair = (first.merits, second.merits) if alike is None else (first.figures, second.figures)
            return all(x <= y for x, y in zip(*pair, strict=True))

        if any(dominates(rival, mine) for rival in rivals):
            return False
        for rival in rivals:
            if rival.origin != "user" or not dominates(mine, rival):
                continue
            # What others were made from, or has a name that somebody gave it, is still found; no list shows it.
            used = connection.execute(
                "SELECT 1 FROM lineage WHERE parent = ? UNION SELECT 1 FROM aliases WHERE digest = ?",
                (rival.digest, rival.digest),
            ).fetchone()
            if used or rival.name or rival.digest in parents:
                connection.execute("UPDATE schemes SET superseded = 1 WHERE digest = ?", (rival.digest,))
            else:
                connection.execute("DELETE FROM schemes WHERE digest = ?", (rival.digest,))
        return True

    def alike(self, scheme: Scheme) -> list[CatalogueRow]:
        """The kept schemes of a scheme's target, ring and rank with its invariants: perhaps it in another basis.

        The invariants of stored schemes are computed when they are first needed. Nothing is known
        of schemes that are not real.
        """
        rivals = [
            entry
            for entry in self.entries(scheme.target.name, scheme.ring.name, scheme.rank)
            if entry.rank == scheme.rank and entry.digest != scheme.digest
        ]
        if not rivals or scheme.gaussian:
            return []
        wanted = invariants(scheme).digest
        return [entry for entry in rivals if self._invariants_of(entry.digest) == wanted]

    def _invariants_of(self, digest: str) -> str:
        row = self._connection.execute("SELECT invariants FROM schemes WHERE digest = ?", (digest,)).fetchone()
        if row is None:  # another process has deleted it meanwhile
            return ""
        if row[0] is not None:
            return str(row[0])
        found = invariants(self.find(digest)[0]).digest
        with contextlib.suppress(CatalogError), self._writing() as connection:  # it may be read-only
            connection.execute("UPDATE schemes SET invariants = ? WHERE digest = ?", (found, digest))
        return found

    def _insert(
        self, connection: sqlite3.Connection, entry: CatalogueRow, scheme: Scheme, document: str, listed: bool = True
    ) -> bool:
        row = (*(getattr(entry, column) for column in ENTRY_COLUMNS), *scheme.target.shape, document)
        cursor = connection.execute(
            f"INSERT OR IGNORE INTO schemes ({', '.join(ENTRY_COLUMNS)}, m, k, n, document) "
            f"VALUES ({', '.join('?' * len(row))})",
            row,
        )
        if listed or cursor.rowcount == 1:
            connection.execute("UPDATE schemes SET superseded = ? WHERE digest = ?", (not listed, entry.digest))
        connection.executemany(
            "INSERT OR IGNORE INTO lineage VALUES (?, ?, ?)",
            [(scheme.digest, parent, scheme.provenance.relation) for parent in scheme.provenance.parents],
        )
        return cursor.rowcount == 1

    def entries(
        self, target: str | None = None, ring: str | None = None, max_rank: int | None = None, origin: str | None = None
    ) -> list[CatalogueRow]:
        """The rows that pass all given filters, by size of the grid, target, ring, rank and additions."""
        wheres, values = ["superseded = 0"], []
        for condition, value in (
            ("target = ?", target),
            ("ring = ?", ring),
            ("rank <= ?", max_rank),
            ("origin = ?", origin),
        ):
            if value is not None:
                wheres.append(condition)
                values.append(value)
        rows = self._rows(
            f"SELECT {', '.join(ENTRY_COLUMNS)} FROM schemes WHERE {' AND '.join(wheres)} "
            "ORDER BY m * k * n, m, k, n, target, ring, rank, full_products, additions, digest",
            values,
        )
        return [entry_of_row(row) for row in rows]

    def best_ranks(self, ring: str = "Q") -> dict[tuple[int, int, int], tuple[int, str]]:
        """For general targets over a ring or Z ("ZT": ternary ones), by increasing sizes: the lowest rank and the start
        of its digest. Of schemes of one rank a shipped one comes first.
        """
        best: dict[tuple[int, int, int], tuple[int, str]] = {}
        for entry in sorted(self.entries(), key=lambda entry: entry.origin != "shipped"):
            target = parse_target(entry.target)
            if not target.is_general or entry.ring not in ("Z", ring) or (ring == "ZT" and not entry.ternary):
                continue
            m, k, n = sorted(target.shape)
            if (m, k, n) not in best or entry.rank < best[m, k, n][0]:
                best[m, k, n] = (entry.rank, entry.digest[:16])
        return best

    def find(self, key: str) -> tuple[Scheme, Certificate]:
        """The scheme with that name, or whose digest starts with `key` (six characters or more).

        Raises:
            CatalogError: there is none, or several.
            DamagedRowError: its row is damaged. Rows of shipped schemes are written again.
        """
        digest, document = self._found(key)
        try:
            return scheme_of_row(digest, document)
        except DamagedRowError:
            if self._entry_of(digest).origin != "shipped":
                raise
        self._rebuild()
        return scheme_of_row(*self._found(key))

    def _rebuild(self) -> None:
        """Write the shipped rows again, one of which is damaged."""
        try:
            self._sync_shipped(anew=True)
        except sqlite3.OperationalError as error:
            raise CatalogError(f"{self.path} has a damaged row, and can't be written: {error}") from None

    def _found(self, key: str) -> tuple[str, str]:
        """The digest and the document of the one row that a name or the start of a digest means."""
        rows: list[tuple[Any, ...]] = []
        if is_start_of_digest(key):  # before names: other programs write rows, too
            rows = self._rows(
                "SELECT digest, document FROM schemes WHERE substr(digest, 1, ?) = ? LIMIT 2", (len(key), key)
            )
        if not rows:
            rows = self._rows("SELECT digest, document FROM schemes WHERE name = ? LIMIT 2", (key,))
        if not rows:
            rows = self._rows(
                "SELECT digest, document FROM schemes WHERE digest = (SELECT digest FROM aliases WHERE name = ?)",
                (key,),
            )
        if not rows:
            names = "SELECT name FROM schemes UNION SELECT name FROM aliases UNION SELECT target FROM schemes"
            hint = did_you_mean(key, [name for (name,) in self._rows(names)]) or "; `lcma list` shows what there is"
            raise UnknownSchemeError(f"no scheme {key[:60]!r} in the catalogue{hint}")
        if len(rows) > 1:
            raise UnknownSchemeError(f"{key!r} means several schemes; give more of the digest: {rows[0][0][:12]}")
        return str(rows[0][0]), str(rows[0][1])

    def parents(self, digest: str) -> list[tuple[str, str]]:
        """(digest, relation) of the schemes that a scheme was made from."""
        rows = self._rows("SELECT parent, relation FROM lineage WHERE child = ? ORDER BY parent", (digest,))
        return [(parent, relation) for parent, relation in rows]

    def children(self, digest: str) -> list[tuple[str, str]]:
        """(digest, relation) of the schemes that were made from a scheme."""
        rows = self._rows("SELECT child, relation FROM lineage WHERE parent = ? ORDER BY child", (digest,))
        return [(child, relation) for child, relation in rows]

    def measure(self, digest: str, what: str, value: float, unit: str, machine: str, detail: dict[str, object]) -> None:
        """Keep one measured figure of a scheme."""
        with self._writing() as connection:
            connection.execute(
                "INSERT INTO measurements (digest, what, value, unit, machine, detail, taken) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (digest, what, value, unit, machine, json.dumps(detail, sort_keys=True), now()),
            )

    def record_run(self, run: RunRecord) -> None:
        """Keep what a search did, whether it found something or not; without a time, it started now.

        Raises:
            CatalogError: the catalogue can't be written.
        """
        run = run if run.started else dataclasses.replace(run, started=now())
        values = [getattr(run, name) for name in COLUMNS]
        with self._writing() as connection:
            places = ", ".join("?" * len(values))
            connection.execute(f"INSERT INTO runs ({', '.join(COLUMNS)}) VALUES ({places})", values)

    def runs(self) -> list[RunRecord]:
        """The searches that were recorded, oldest first."""
        rows = self._rows(f"SELECT {', '.join(COLUMNS)} FROM runs ORDER BY id")
        return [RunRecord(**dict(zip(COLUMNS, row, strict=True))) for row in rows]

    def measurements(self, digest: str) -> list[dict[str, object]]:
        """The measured figures of a scheme, oldest first."""
        keys = ("what", "value", "unit", "machine", "detail", "taken")
        rows = self._rows(f"SELECT {', '.join(keys)} FROM measurements WHERE digest = ? ORDER BY id", (digest,))
        return [{**dict(zip(keys, row, strict=True)), "detail": json.loads(row[4])} for row in rows]
