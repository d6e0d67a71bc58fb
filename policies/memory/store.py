"""The file behind every memory: items, pictures, full text and vectors, by user, in one SQLite.

SQLite's own file is the whole of it: no server and no extension. A write is on the disk when it
returns (write-ahead log, synchronous=FULL). A user's rows can be told from another's everywhere,
also in the full-text index, of which each has one of his own: nothing that one user said has any
influence on what another finds.

`items` is what is remembered. All else (words, vectors, facts, notes) is derived from it, in the
order in which items came, and can be made again; `derived` says how far each has come.
"""

from __future__ import annotations

import hashlib
import json
import operator
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench_tasks.errors import BenchError, UsageError
from bench_tasks.probes.stream import Item, Picture

__all__ = ["AMONG", "FORMAT_VERSION", "Store"]

FORMAT_VERSION = 1
APPLICATION_ID = 0x62744D65
"""How a file says that it is a memory of ours ("btMe")."""

SCHEMA = """
CREATE TABLE users (user INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, epoch INTEGER NOT NULL);
CREATE TABLE items (
  n INTEGER PRIMARY KEY AUTOINCREMENT, user INTEGER NOT NULL, id TEXT NOT NULL,
  stamp_ns INTEGER NOT NULL, session TEXT NOT NULL, speaker TEXT NOT NULL, text TEXT NOT NULL,
  about TEXT, hash BLOB, picture TEXT, UNIQUE (user, id));
CREATE INDEX items_of_user ON items (user);
CREATE INDEX shown ON items (user, session, speaker, stamp_ns) WHERE picture IS NOT NULL;
CREATE TABLE pictures (
  p INTEGER PRIMARY KEY, user INTEGER NOT NULL, hash BLOB NOT NULL, data BLOB NOT NULL,
  UNIQUE (user, hash));
CREATE TABLE derived (
  user INTEGER NOT NULL, name TEXT NOT NULL, upto INTEGER NOT NULL, PRIMARY KEY (user, name))
  WITHOUT ROWID;
CREATE TABLE vectors (n INTEGER PRIMARY KEY, user INTEGER NOT NULL, vector BLOB NOT NULL);
CREATE INDEX vectors_of_user ON vectors (user);
CREATE TABLE facts (
  f INTEGER PRIMARY KEY, user INTEGER NOT NULL, relation TEXT NOT NULL, subject TEXT NOT NULL,
  value TEXT NOT NULL, speaker TEXT NOT NULL, item TEXT NOT NULL, beside TEXT NOT NULL,
  ends INTEGER NOT NULL, from_ns INTEGER NOT NULL, until_ns INTEGER NOT NULL,
  rank INTEGER NOT NULL);
CREATE INDEX facts_by_subject ON facts (user, subject, relation, from_ns);
CREATE INDEX facts_that_hold ON facts (user, subject, relation, until_ns);
CREATE INDEX facts_by_value ON facts (user, value, relation);
CREATE INDEX facts_by_item ON facts (user, item);
CREATE TABLE sources (
  user INTEGER NOT NULL, speaker TEXT NOT NULL, confirmed INTEGER NOT NULL,
  contradicted INTEGER NOT NULL, PRIMARY KEY (user, speaker)) WITHOUT ROWID;
CREATE TABLE states (
  user INTEGER NOT NULL, name TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (user, name));
CREATE TABLE notes (
  user INTEGER NOT NULL, key TEXT NOT NULL, stamp_ns INTEGER NOT NULL, body TEXT NOT NULL,
  PRIMARY KEY (user, key)) WITHOUT ROWID;
"""
COLUMNS = "i.id, i.stamp_ns, i.session, i.speaker, i.text, i.about, i.picture, p.data"
FROM_ITEMS = "FROM items i LEFT JOIN pictures p ON p.user = i.user AND p.hash = i.hash"
AMONG = "(SELECT value FROM json_each(?))"
"""Those of a JSON list, however many: SQLite takes a limited number of values one by one."""
BUSY_S = 10.0
"""How long another process may keep the file to itself before that is an error."""


class Store:
    """What one user's robot has kept in a file. Several processes may have it open at once."""

    def __init__(self, path: str | Path | None, user: str) -> None:
        """Open or make the file; None keeps it in this process alone, and loses it with it.

        UsageError when it is no memory, or of a newer format.
        """
        self.path = "" if path is None else str(path)
        self.user_name = _text("user", user)
        if not user:
            raise UsageError("the user of a memory must have a name, got ''")
        self._lock = threading.RLock()
        try:
            self.db = sqlite3.connect(
                self.path or ":memory:", timeout=BUSY_S, isolation_level=None,
                check_same_thread=False,
            )  # fmt: skip
            self._open()
        except (sqlite3.Error, ValueError) as error:
            self.close()
            raise UsageError(f"cannot open memory {self.path!r}: {error}") from None
        except UsageError:
            self.close()
            raise

    def _open(self) -> None:
        db = self.db
        kind = db.execute("PRAGMA application_id").fetchone()[0]
        empty = not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if not empty and kind != APPLICATION_ID:
            raise UsageError(f"{self.path} is an SQLite file of something else, not a memory")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA secure_delete = ON")
        db.execute("PRAGMA temp_store = MEMORY")
        db.execute("PRAGMA cache_size = -16000")
        with self.writing():  # Whoever comes second waits here, and finds it made.
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version == 0:
                for statement in SCHEMA.split(";"):
                    db.execute(statement)
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                db.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
            elif version != FORMAT_VERSION:
                raise UsageError(
                    f"{self.path} is a memory of format {version}; this reads {FORMAT_VERSION}"
                )
            db.execute("INSERT OR IGNORE INTO users (name, epoch) VALUES (?, 0)", (self.user_name,))
        self.user = self.one("SELECT user FROM users WHERE name = ?", self.user_name)
        self.words = f"words_{self.user}"

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, for this thread alone; errors of the file are one line."""
        with self._lock:
            try:
                yield self.db
            except sqlite3.Error as error:
                raise BenchError(f"memory {self.path or 'in this process'}: {error}") from None

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: on the disk when this is left, or not at all. May be nested."""
        with self.reading() as db:
            if db.in_transaction:
                yield db
                return
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise

    @contextmanager
    def still(self) -> Iterator[sqlite3.Connection]:
        """A moment in which nothing changes, by whomever. May be nested."""
        with self.reading() as db:
            if db.in_transaction:
                yield db
                return
            db.execute("BEGIN")
            try:
                yield db
            finally:
                db.execute("COMMIT")

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """All that a statement gives."""
        with self.reading() as db:
            return db.execute(statement, values).fetchall()

    def one(self, statement: str, *values: Any) -> Any:
        """The first value of the first row, or None."""
        found = self.rows(statement, *values)
        return found[0][0] if found else None

    # Items

    def add(self, item: Item) -> bool:
        """Keep an item; False when this very item is kept already.

        UsageError when another one has its id, or a field of it is malformed.
        """
        values, data = _row(item)
        with self.writing() as db:
            known = self.items("AND i.id = ?", item.id)
            if known:
                if known[0] == item:
                    return False
                raise UsageError(f"another item {item.id!r} is remembered already")
            if data is not None:
                db.execute(
                    "INSERT OR IGNORE INTO pictures (user, hash, data) VALUES (?, ?, ?)",
                    (self.user, values[6], data),
                )
            db.execute(
                "INSERT INTO items (user, id, stamp_ns, session, speaker, text, about, hash,"
                " picture) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (self.user, *values),
            )
        return True

    def items(self, where: str = "", *values: Any) -> list[Item]:
        """This user's items, in the order in which they came, or as `where` says."""
        order = "" if "ORDER" in where else "ORDER BY i.n"
        sql = f"SELECT {COLUMNS} {FROM_ITEMS} WHERE i.user = ? {where} {order}"
        return [_item(row) for row in self.rows(sql, self.user, *values)]

    def numbered(self, numbers: Iterable[int]) -> list[Item]:
        """The items with these numbers, in this order."""
        wanted = list(numbers)
        sql = f"SELECT i.n, {COLUMNS} {FROM_ITEMS} WHERE i.user = ? AND i.n IN {AMONG}"
        found = {row[0]: _item(row[1:]) for row in self.rows(sql, self.user, json.dumps(wanted))}
        return [found[n] for n in wanted if n in found]

    def by_id(self, ids: Iterable[str]) -> list[Item]:
        """The items with these ids, in this order; those that are not kept are left out."""
        wanted = list(ids)
        found = {one.id: one for one in self.items(f"AND i.id IN {AMONG}", json.dumps(wanted))}
        return [found[one] for one in wanted if one in found]

    def epoch(self) -> int:
        """Counts how often items were forgotten."""
        return self.one("SELECT epoch FROM users WHERE user = ?", self.user)

    # What is derived

    def missing(self, name: str, most: int) -> list[tuple[int, Item]]:
        """The first items (with their numbers) not yet taken into what is derived."""
        upto = self.one(
            "SELECT upto FROM derived WHERE user = ? AND name = ?", self.user, name
        ) or 0  # fmt: skip
        sql = f"SELECT i.n, {COLUMNS} {FROM_ITEMS} WHERE i.user = ? AND i.n > ?"
        sql += " ORDER BY i.n LIMIT ?"
        return [(row[0], _item(row[1:])) for row in self.rows(sql, self.user, upto, most)]

    def taken(self, name: str, upto: int) -> None:
        """Note that all items to this number have been taken into what is derived."""
        with self.writing() as db:
            db.execute("INSERT OR REPLACE INTO derived VALUES (?, ?, ?)", (self.user, name, upto))

    def state(self, name: str) -> bytes | None:
        """What `keep_state` kept, if anything was."""
        sql = "SELECT body FROM states WHERE user = ? AND name = ?"
        return self.one(sql, self.user, name)

    def keep_state(self, name: str, body: bytes) -> None:
        """Keep something derived of all items, in a transaction."""
        with self.writing() as db:
            db.execute("INSERT OR REPLACE INTO states VALUES (?, ?, ?)", (self.user, name, body))

    # Forgetting

    def forget(self, ids: Iterable[str] | None) -> int:
        """Delete items, or all, with all that was derived of any. Call `scrub` after."""
        with self.writing() as db:
            mine = {
                row[1]: row
                for row in db.execute("SELECT n, id FROM items WHERE user = ?", (self.user,))
            }
            gone = list(mine.values()) if ids is None else [
                mine[one] for one in dict.fromkeys(ids) if one in mine
            ]  # fmt: skip
            if not gone:
                return 0
            db.executemany("DELETE FROM items WHERE n = ?", [(n,) for n, _ in gone])
            db.executemany("DELETE FROM vectors WHERE n = ?", [(n,) for n, _ in gone])
            # What may rest on several items is made again from those that are left.
            for table in ("facts", "sources", "notes", "states", "derived"):
                kept = "AND name <> 'vectors'" if table == "derived" else ""
                db.execute(f"DELETE FROM {table} WHERE user = ? {kept}", (self.user,))
            # Entries deleted from a full-text index stay in it until it is merged; a new one has
            # never had them.
            db.execute(f"DROP TABLE IF EXISTS {self.words}")
            db.execute(
                "DELETE FROM pictures WHERE user = ? AND hash NOT IN"
                " (SELECT hash FROM items WHERE user = ? AND hash NOT NULL)",
                (self.user, self.user),
            )
            db.execute("UPDATE users SET epoch = epoch + 1 WHERE user = ?", (self.user,))
        return len(gone)

    def scrub(self) -> None:
        """Empty the write-ahead log, which holds pages as they were; the file has none of them.

        BenchError when another process reads an old state for too long.
        """
        end = time.monotonic() + BUSY_S
        while self.path and self.one("PRAGMA wal_checkpoint(TRUNCATE)"):
            if time.monotonic() > end:
                raise BenchError(
                    f"memory {self.path}: forgotten, but another process that reads it keeps the "
                    "log; forget again when it has ended"
                )
            time.sleep(0.05)

    def size_bytes(self) -> int:
        """Of the file, with all its users, without the log that is taken into it now and then."""
        return self.one("PRAGMA page_count") * self.one("PRAGMA page_size")

    def close(self) -> None:
        """Let go of the file."""
        if hasattr(self, "db"):
            self.db.close()


def _text(what: str, value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{what} must be text, got {value!r}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{what} must be text that UTF-8 can hold, got {value!r}") from None
    return value


def _row(item: Item) -> tuple[tuple[Any, ...], bytes | None]:
    """The columns of an item behind `user`, and its picture's data. UsageError when malformed."""
    if not isinstance(item, Item):
        raise UsageError(f"a memory observes items, got {item!r}")
    if not _text("the id of an item", item.id):
        raise UsageError("the id of an item must not be ''")
    for name in ("session", "speaker", "text"):
        _text(f"{name} of item {item.id!r}", getattr(item, name))
    if item.about is not None:
        _text(f"about of item {item.id!r}", item.about)
    try:
        stamp = operator.index(item.stamp_ns)
    except TypeError:
        stamp = 2**63
    if not -(2**63) <= stamp < 2**63:
        raise UsageError(
            f"stamp_ns of item {item.id!r} must be whole ns in 64 bits, got {item.stamp_ns!r}"
        )
    head = (item.id, stamp, item.session, item.speaker, item.text, item.about)
    shown = item.picture
    if shown is None:
        return (*head, None, None), None
    if not isinstance(shown, Picture) or not isinstance(shown.data, bytes):
        raise UsageError(f"picture of item {item.id!r} must be a Picture of encoded bytes")
    for name in ("name", "format", "caption"):
        _text(f"{name} of the picture of item {item.id!r}", getattr(shown, name))
    told = json.dumps([shown.name, shown.format, shown.caption], ensure_ascii=False)
    return (*head, hashlib.sha256(shown.data).digest(), told), shown.data


def _item(row: tuple[Any, ...]) -> Item:
    *head, about, told, data = row
    picture = None
    if told is not None:
        name, form, caption = json.loads(told)
        picture = Picture(name, data, form, caption)
    return Item(*head, picture=picture, about=about)
