"""Up to where PostgreSQL's cursors can be read: values ahead of the clock, marks of earlier times, and tables
whose transactions run elsewhere. Asked without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg
import pytest

from esker.engine.jdbc import DatabaseColumn
from esker.errors import CursorUnsuitable
from esker.ledger.cursor_marks import CursorMark
from esker.project.sources import JdbcSource
from esker.sources.jdbc.database import Relation
from esker.sources.jdbc.settled import Settled, check_same_server, kept_for, settle
from tests.servers.postgres import Database

ID = DatabaseColumn("id", "int8", True)


def source_of(**settings: Any) -> JdbcSource:
    settings = {"table": "orders", "cursor": "id", **settings}
    return JdbcSource.model_validate({"type": "jdbc", "url": "jdbc:postgresql://host/shop", **settings})


class Answers:
    """A connection that says the same to every question."""

    def __init__(self, answer: str) -> None:
        self._answer = answer

    def rows(self, sql: str) -> list[tuple[str | None, ...]]:
        return [(self._answer,)]


class Asked:
    """A connection that returns texts, as the driver's does."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._connection = connection

    def rows(self, sql: str) -> list[tuple[str | None, ...]]:
        found = self._connection.execute(sql.encode()).fetchall()
        return [tuple(_text(value) for value in row) for row in found]


def _text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "t" if value else "f"
    return str(value) if value is not None else None


def relation_of(source: JdbcSource, connection: Any) -> Relation:
    relation = Relation(None, source, is_moving=True)  # type: ignore[arg-type]
    relation._connection = connection
    return relation


class Shop:
    """A database whose transactions are looked at."""

    def __init__(self, database: Database, stack: ExitStack) -> None:
        self._database = database
        self._own = stack.enter_context(database.connect())
        self.kept: list[CursorMark] = []

    def sql(self, statement: str) -> None:
        self._own.execute(statement.encode())

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._database.connect() as connection:
            connection.execute("BEGIN")
            yield

    def relation(self, source: JdbcSource) -> Relation:
        return relation_of(source, Asked(self._own))

    def settle(
        self, marks: Sequence[CursorMark], column: DatabaseColumn = ID, **settings: Any
    ) -> Settled | None:
        """Look once, and keep the marks."""
        source = source_of(**{"cursor": column.name, **settings})
        keep = self.kept.extend
        self.kept.clear()
        return settle(self.relation(source), source, column, marks, keep, is_patient=False)


@pytest.fixture
def shop(database: Database) -> Iterator[Shop]:
    with ExitStack() as stack:
        yield Shop(database, stack)


@pytest.mark.server
@pytest.mark.parametrize(
    ("kind", "now"),
    [
        ("timestamptz", "now()"),
        ("timestamp", "now() AT TIME ZONE 'UTC' + interval '13 hours'"),
        ("date", "now()"),
    ],
)
def test_times_ahead_of_the_clock_count_for_nothing(shop: Shop, kind: str, now: str) -> None:
    """Transactions that begin later get lower ones. Without a zone a time may be that of any place."""
    column = DatabaseColumn("at", kind, True)
    shop.sql(f"CREATE TABLE orders (at {kind})")
    shop.sql(f"INSERT INTO orders VALUES ({now})")
    seen = shop.settle([], column)
    assert seen is not None
    assert not seen.is_ahead
    relation = shop.relation(source_of(cursor="at"))
    assert seen.top == relation.highest(column)
    shop.sql("INSERT INTO orders VALUES ('2099-01-01')")
    seen = shop.settle([CursorMark("2099-01-01", frozenset())], column)
    assert seen is not None
    assert seen.top is not None
    assert seen.is_ahead
    assert "2099" not in str(shop.kept)
    clock = "clock_timestamp()"
    if kind != "timestamptz":
        clock += " AT TIME ZONE 'Etc/GMT+12'"  # the last place where a day ends
    [[is_past]] = relation.connection.rows(f"SELECT CAST('{seen.top}' AS {kind}) <= {clock}")
    assert is_past == "t"
    with shop.transaction():
        later = shop.settle(list(shop.kept), column)
    assert later is not None
    assert later.top == seen.top
    assert later.waits


@pytest.mark.server
def test_marks_above_what_is_there_are_dropped(shop: Shop) -> None:
    """The table was emptied, or the database set back: such values are given once more."""
    shop.sql("CREATE TABLE orders (id bigint)")
    shop.sql("INSERT INTO orders VALUES (9), (10)")
    settled = CursorMark("9", frozenset())
    with shop.transaction():
        seen = shop.settle([settled, CursorMark("11", frozenset()), CursorMark("1000", frozenset())])
        assert seen is not None
        assert (seen.top, [mark.top for mark in shop.kept]) == ("9", ["9", "10"])
        seen = shop.settle([CursorMark("11", frozenset())])
        assert seen is not None
        assert seen.top is None


@pytest.mark.server
def test_marks_are_of_one_table(shop: Shop) -> None:
    """One that was emptied, or exchanged under its name, gives its values anew."""
    source = source_of()
    shop.sql("CREATE TABLE orders (id bigserial)")
    found = [kept_for(shop.relation(source), source, ID)]
    shop.sql("INSERT INTO orders VALUES (1)")
    assert kept_for(shop.relation(source), source, ID) == found[0]
    for statement in (
        "TRUNCATE orders RESTART IDENTITY",
        "DROP TABLE orders; CREATE TABLE orders (id bigint)",
    ):
        shop.sql(statement)
        found.append(kept_for(shop.relation(source), source, ID))
    found.append(kept_for(shop.relation(source), source, DatabaseColumn("id", "uuid", True)))
    assert len(set(found)) == 4


@pytest.mark.server
def test_values_without_end_are_no_marks(shop: Shop) -> None:
    """Once such a row is gone, its mark would hide all transactions."""
    shop.sql("CREATE TABLE orders (at timestamptz)")
    shop.sql("INSERT INTO orders VALUES ('infinity')")
    with pytest.raises(CursorUnsuitable, match="cannot be read"):
        shop.settle([], DatabaseColumn("at", "timestamptz", True))
    assert shop.kept == []


def far(name: str) -> str:
    return f"{name} SERVER other OPTIONS (table_name 'x')"


@pytest.mark.server
@pytest.mark.parametrize(
    ("statements", "settings", "why"),
    [
        ([], {"table": "parts"}, None),
        ([], {"table": None, "query": "SELECT * FROM parts"}, None),
        (["CREATE VIEW seen AS SELECT * FROM parts"], {"table": "seen"}, None),
        (
            [f"CREATE FOREIGN TABLE {far('one PARTITION OF parts DEFAULT')}"],
            {"table": "parts"},
            "A part of it",
        ),
        ([f"CREATE FOREIGN TABLE {far('one () INHERITS (grown)')}"], {"table": "grown"}, "A part of it"),
        ([f"CREATE FOREIGN TABLE {far('one (id bigint)')}"], {"table": "one"}, "It is a foreign table"),
        ([f"CREATE FOREIGN TABLE {far('one (id bigint)')}"], {"table": "grown"}, None),
        (
            [f"CREATE FOREIGN TABLE {far('one (id bigint)')}", "CREATE VIEW seen AS SELECT * FROM one"],
            {"table": "seen"},
            "has foreign tables",
        ),
        (
            [f"CREATE FOREIGN TABLE {far('one (id bigint)')}"],
            {"table": None, "query": "SELECT * FROM grown"},
            "has foreign tables",
        ),
        (["CREATE MATERIALIZED VIEW kept AS SELECT 1::bigint AS id"], {"table": "kept"}, "materialized view"),
    ],
)
def test_rows_whose_transactions_run_elsewhere(
    shop: Shop, statements: list[str], settings: dict[str, Any], why: str | None
) -> None:
    """Also where they are a part of a table, or where nothing tells what a query reads."""
    shop.sql("CREATE TABLE parts (id bigint) PARTITION BY LIST (id)")
    shop.sql("CREATE TABLE grown (id bigint)")
    shop.sql("CREATE FOREIGN DATA WRAPPER nothing; CREATE SERVER other FOREIGN DATA WRAPPER nothing")
    for statement in statements:
        shop.sql(statement)
    if why is None:
        shop.settle([], **settings)
        return
    with pytest.raises(CursorUnsuitable) as caught:
        shop.settle([], **settings)
    assert why in caught.value.reason


@pytest.mark.server
def test_a_part_that_is_replicated(shop: Shop, database: Database) -> None:
    """A subscription names the tables that it fills: those above and below them are filled as well."""
    shop.sql("CREATE TABLE parts (id bigint) PARTITION BY LIST (id)")
    shop.sql("CREATE TABLE one PARTITION OF parts FOR VALUES IN (1) PARTITION BY LIST (id)")
    shop.sql("CREATE TABLE least PARTITION OF one DEFAULT; CREATE TABLE grown (id bigint)")
    oid = "SELECT oid FROM pg_class WHERE relname = 'one'"
    shop.sql(f"INSERT INTO pg_subscription_rel (srsubid, srrelid, srsubstate) SELECT 1, ({oid}), 'r'")
    for table in ("parts", "one", "least"):
        with pytest.raises(CursorUnsuitable) as caught:
            shop.settle([], table=table)
        assert "logical replication" in caught.value.reason
    shop.settle([], table="grown")
    with pytest.raises(CursorUnsuitable) as caught:
        shop.settle([], table=None, query="SELECT * FROM grown")
    assert "filled by logical replication" in caught.value.reason


def test_rows_from_another_server_than_the_transactions() -> None:
    """An address may name several: the replica may lack what the primary's transactions have added."""
    source = source_of()
    check_same_server(relation_of(source, Answers("f")), source, ID)
    with pytest.raises(CursorUnsuitable) as caught:
        check_same_server(relation_of(source, Answers("t")), source, ID)
    assert "several servers" in caught.value.reason
