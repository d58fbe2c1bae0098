"""A search index for tests: documents with versions in a file of SQLite, for several processes at once.

Documents with the title `refused` are refused. While there is a file `down` beside it, it does not answer.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from esker.deliver.targets.target import Index, Message, Refused, Sender, Target
from esker.errors import IndexGone, TargetUnavailable

_TABLES = """
    create table if not exists documents (
        shelf text, id text, version int, body text, primary key (shelf, id));
    create table if not exists shelves (name text primary key);
    create table if not exists alias (name text primary key, shelf text);
    create table if not exists sent (shelf text, id text, version int, changeset int, op text, body text);
"""


@dataclass(frozen=True)
class Shelf(Index):
    """Shelves in one file, and an alias that leads to one of them."""

    path: Path
    name: str | None = None
    keeps_versions: bool = True
    forgets: bool = False
    """What is deleted is gone, and its version with it: search servers forget it after a while."""

    def open(self) -> Sender:
        return ShelfSender(self)

    def describe(self) -> str:
        return "the shelf"

    def begin(self) -> None:
        with self.connected() as connection:
            connection.execute("insert or ignore into alias values ('works', 'first')")

    def remove(self) -> None:
        """Do what somebody does who deletes the index and the alias."""
        with self.connected() as connection:
            connection.execute("delete from alias")
            connection.execute("delete from documents")

    def make(self, name: str) -> None:
        with self.connected() as connection:
            connection.execute("insert or ignore into shelves values (?)", (name,))

    def into(self, name: str) -> Shelf:
        return replace(self, name=name)

    def count(self) -> int:
        return len(self.documents())

    def switch(self, name: str) -> str | None:
        before = self.alias
        with self.connected() as connection:
            connection.execute("insert or replace into alias values ('works', ?)", (name,))
        return before

    @property
    def alias(self) -> str:
        with self.connected() as connection:
            found = connection.execute("select shelf from alias where name = 'works'").fetchone()
        return found[0] if found else "first"

    @property
    def is_there(self) -> bool:
        with self.connected() as connection:
            return bool(connection.execute("select 1 from alias").fetchone())

    def documents(self) -> dict[str, Any]:
        """Return the bodies of what can be found, by id."""
        query = "select id, body from documents where shelf = ? and body is not null"
        name = self.name or self.alias
        with self.connected() as connection:
            rows = connection.execute(query, (name,)).fetchall()
        return {id_: json.loads(body) for id_, body in rows}

    def versions(self) -> dict[str, int]:
        name = self.name or self.alias
        with self.connected() as connection:
            query = "select id, version from documents where shelf = ?"
            return dict(connection.execute(query, (name,)).fetchall())

    def sent(self) -> list[tuple[str, int, str]]:
        """Return id, changeset and operation of all messages, in the order in which they came."""
        with self.connected() as connection:
            return connection.execute("select id, changeset, op from sent order by rowid").fetchall()

    @contextmanager
    def connected(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=60)) as connection, connection:
            connection.executescript(_TABLES)
            connection.execute("begin immediate")
            yield connection


@dataclass(frozen=True)
class Heap(Target):
    """A shelf that is no index: all is sent to the same place, and what comes last counts."""

    shelf: Shelf

    def open(self) -> Sender:
        return self.shelf.open()

    def describe(self) -> str:
        return "the heap"


class ShelfSender(Sender):
    def __init__(self, shelf: Shelf) -> None:
        self._shelf, self._name = shelf, shelf.name or shelf.alias
        if shelf.name is None and not shelf.is_there:
            raise IndexGone(shelf.describe(), "The alias leads nowhere.")

    def send(self, messages: Sequence[Message]) -> list[Refused]:
        if self._shelf.path.with_name("down").exists():
            raise TargetUnavailable(self._shelf.describe(), "it is down", 3)
        refused = [
            m for m in messages if m.body is not None and str(m.body.get("title")).lower() == "refused"
        ]
        with self._shelf.connected() as connection:
            for message in messages:
                body = None if message.op == "delete" else json.dumps(message.body)
                values = (self._name, message.id, message.version, body)
                fact = (self._name, message.id, message.version, message.changeset, message.op, body)
                connection.execute("insert into sent values (?, ?, ?, ?, ?, ?)", fact)
                if message not in refused:
                    newer = "where excluded.version > version" if self._shelf.keeps_versions else ""
                    connection.execute(
                        "insert into documents values (?, ?, ?, ?) on conflict do update set "
                        f"version = excluded.version, body = excluded.body {newer}",
                        values,
                    )
            if self._shelf.forgets:
                connection.execute("delete from documents where body is null")
        return [Refused(message, "its title is refused") for message in refused]
