"""Up to which value of a cursor no running transaction of PostgreSQL can add a row any more.

A value is given while a transaction runs (by a sequence, by `now()`), and its row is seen when that commits:
rows with higher values may be seen before. So the highest value is looked up first, and then which
transactions are running. When they have all ended, every row up to that value is there: transactions that
begin later get higher values. The rows are read under a snapshot that is taken after that.

They do not where a value lies ahead of the clock, nor beyond what was there before the table was emptied or
the database set back: of a time, nothing ahead of the clock counts, and of earlier runs nothing above today.

Transactions are known by their virtual ids, from the locks that everybody may see: those that have written
nothing yet have no other, and may have their value already. Neither the ids in the rows (`xmin`) nor
those of a snapshot tell as much: a transaction that got its id earlier may get its value later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic, sleep

from esker.engine.jdbc import Connection, DatabaseColumn
from esker.errors import CursorUnsuitable
from esker.ledger.cursor_marks import PREPARED, CursorMark, thinned
from esker.project.sources import JdbcSource
from esker.sources.jdbc.cursor import earlier, moment_of
from esker.sources.jdbc.database import Relation, check_end, unsuitable

_PATIENCE = 3.0
"""Seconds that transactions are waited for: most end within milliseconds."""
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 0.5
_TOLD = 5

# Vacuum's own workers have no user and add no rows. Esker's readers only read.
_RUNNING = """
SELECT l.virtualtransaction, l.pid, l.pid = pg_backend_pid() FROM pg_locks l
LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'virtualxid' AND l.mode = 'ExclusiveLock' AND l.granted
AND (l.pid = pg_backend_pid() OR a.pid IS NULL OR (a.datname = current_database()
AND a.usesysid IS NOT NULL AND coalesce(a.application_name, '') <> 'esker'))
"""
# What a table's rows may lie in, or come through: whatever inherits from it, and what it inherits from.
_FAMILY = """
WITH RECURSIVE below AS (SELECT CAST({table} AS oid) AS oid
UNION SELECT h.inhrelid FROM pg_inherits h JOIN below b ON h.inhparent = b.oid),
above AS (SELECT CAST({table} AS oid) AS oid
UNION SELECT h.inhparent FROM pg_inherits h JOIN above a ON h.inhrelid = a.oid)
"""
_REPLICATED = "EXISTS (SELECT 1 FROM pg_subscription_rel{within})"
_FOREIGN = "EXISTS (SELECT 1 FROM pg_class WHERE relkind = 'f'{within})"
_PREPARED = f"SELECT '{PREPARED}' || transaction FROM pg_prepared_xacts WHERE database = current_database()"


@dataclass(frozen=True)
class Settled:
    """Up to where a cursor can be read."""

    top: str | None
    """The highest value that is known to be complete; None where none is."""
    waits: str = ""
    """What rows beyond it wait for, in words; empty where nothing is beyond it."""
    is_ahead: bool = False
    """The highest value of all lies ahead of the database's clock, and counts for nothing."""
    sees_transactions: bool = True
    """The server shows the transactions that add the rows; where it does not, `lag` has to tell as well."""


def settle(
    relation: Relation,
    source: JdbcSource,
    column: DatabaseColumn,
    marks: Sequence[CursorMark],
    keep: Callable[[Sequence[CursorMark]], None],
    *,
    is_patient: bool,
) -> Settled | None:
    """Return up to where a cursor can be read; None where `lag` alone has to tell.

    `relation` holds no snapshot: what is committed meanwhile can be seen by it. `marks` are those of earlier
    runs, and `keep` gets those for later ones.

    Raises CursorUnsuitable where the server does not show the transactions that add the rows.
    """
    connection = relation.connection
    why = _why_blind(connection, relation, source)
    if why and source.lag is None:
        raise _blind(source, column, why)
    highest = relation.highest(column)
    if highest is None:
        return None if why else Settled(None)
    check_end(source, column, highest)
    top, is_ahead = _by_the_clock(relation, column, highest)
    if why:
        return Settled(top, is_ahead=True, sees_transactions=False) if is_ahead else None
    # The table was emptied, exchanged or set back since then: values up to there are given again.
    below = relation.not_above(column, [mark.top for mark in marks], top)
    marks = [mark for mark, is_below in zip(marks, below, strict=True) if is_below]
    # A transaction's time is that of the message that begins it, a moment before it can be seen.
    sleep(_FIRST_PAUSE)
    running, prepared = _look(connection)
    looked = [mark.looked(frozenset(running), prepared) for mark in marks]
    looked.append(CursorMark(top, frozenset(running) | prepared))
    begun, pause = monotonic(), _FIRST_PAUSE
    while is_patient and not looked[-1].is_settled and monotonic() - begun < _PATIENCE:
        sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
        running, prepared = _look(connection)
        looked = [mark.looked(frozenset(running), prepared) for mark in looked]
    keep(thinned(looked))
    newest = next((mark for mark in reversed(looked) if mark.is_settled), None)
    waits = "" if newest is looked[-1] else _told(looked[-1].waits, running)
    return Settled(newest.top if newest is not None else None, waits, is_ahead)


def bounded_by_clock(relation: Relation, column: DatabaseColumn) -> Settled | None:
    """Return up to where a cursor of times can be read in a database whose transactions nobody sees.

    None where the clock says nothing and `lag` alone tells: no value lies ahead of it, or they are no times.
    """
    highest = relation.highest(column) if relation.dialect.is_time(column) else None
    moment = moment_of(highest) if highest is not None else None
    if highest is None or moment is None:
        return None
    # Times without a zone may be those of any place: 14 hours ahead of UTC, or 12 behind.
    ahead = moment - relation.now()
    if ahead <= timedelta(hours=14):
        return None
    return Settled(earlier(highest, ahead + timedelta(hours=12)), is_ahead=True, sees_transactions=False)


def kept_for(relation: Relation, source: JdbcSource, column: DatabaseColumn) -> str:
    """Return what marks are of: this table, as long as it is neither emptied nor exchanged."""
    found: list[tuple[str | None, ...]] = []
    if source.table is not None:
        found = relation.connection.rows(
            f"SELECT oid, relfilenode FROM pg_class WHERE oid = {_class_of(relation, source.table)}"
        )
    return " ".join([source.fingerprint, column.type, *(str(part) for row in found for part in row)])


def check_same_server(relation: Relation, source: JdbcSource, column: DatabaseColumn) -> None:
    """Raise CursorUnsuitable where rows are read from a replica, after transactions were seen elsewhere."""
    if _is_replica(relation.connection):
        raise unsuitable(
            source,
            column.name,
            "The address leads to several servers: transactions were looked at on one, and the rows would be "
            "read from another, a replica, which may be behind.",
            "Add targetServerType=primary to the address, or write lag:.",
        )


def is_unique(relation: Relation, source: JdbcSource, column: DatabaseColumn) -> bool:
    """Tell whether PostgreSQL lets no two rows have the same value in a column."""
    if source.table is None:
        return False
    name, table = _text(column.name), _class_of(relation, source.table)
    # An index of a table is none of the tables that inherit from it, unless they are its partitions.
    found = relation.connection.rows(
        "SELECT 1 FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid "
        "JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] "
        f"WHERE i.indrelid = {table} AND a.attname = {name} AND i.indisunique AND i.indisvalid "
        "AND i.indnkeyatts = 1 AND i.indpred IS NULL AND (c.relkind = 'p' OR NOT EXISTS "
        "(SELECT 1 FROM pg_inherits h WHERE h.inhparent = c.oid)) LIMIT 1"
    )
    return bool(found)


def _why_blind(connection: Connection, relation: Relation, source: JdbcSource) -> str | None:
    if _is_replica(connection):
        return "This server is a replica, which does not see the transactions of its primary."
    if all(is_own != "t" for _, _, is_own in connection.rows(_RUNNING)):
        return "The server does not list its transactions in pg_locks."
    kind = "v"  # a query is like a view: what it reads of is not known
    if source.table is not None:
        table = _class_of(relation, source.table)
        kinds = connection.rows(f"SELECT relkind FROM pg_class WHERE oid = {table}")
        kind = str(kinds[0][0]) if kinds else ""
    if kind == "m":
        return (
            "It is a materialized view: its rows come when it is refreshed, long after they got their values."
        )
    if kind == "v":
        [[is_replicated, is_foreign]] = connection.rows(
            f"SELECT {_REPLICATED.format(within='')}, {_FOREIGN.format(within='')}"
        )
        some = "The database has {}, and nothing tells whether a view or a query reads them."
        if is_replicated == "t":
            return some.format("tables that are filled by logical replication")
        return some.format("foreign tables") if is_foreign == "t" else None
    if not kind:
        return None  # there is no such table, as the next question says
    replicated = _REPLICATED.format(
        within=" WHERE srrelid IN (SELECT oid FROM below UNION SELECT oid FROM above)"
    )
    foreign = _FOREIGN.format(within=" AND oid IN (SELECT oid FROM below)")
    [[is_replicated, is_foreign]] = connection.rows(
        f"{_FAMILY.format(table=table)} SELECT {replicated}, {foreign}"
    )
    if is_replicated == "t":
        return "Its rows come by logical replication, long after they got their values."
    if is_foreign == "t":
        it = "It" if kind == "f" else "A part of it"
        return f"{it} is a foreign table: the transactions that add its rows run on another server."
    return None


def _is_replica(connection: Connection) -> bool:
    return connection.rows("SELECT pg_is_in_recovery()")[0][0] == "t"


def _by_the_clock(relation: Relation, column: DatabaseColumn, top: str) -> tuple[str, bool]:
    """Return the highest value; where it is a time that lies ahead of the clock, one that no transaction
    gets any more that begins later. And which of them it is."""
    if not relation.dialect.is_time(column):
        return top, False
    kind, has_zone = column.type, column.type == "timestamptz"
    now = "clock_timestamp()" if has_zone else "(clock_timestamp() AT TIME ZONE 'UTC')"
    # Times without a zone may be those of any place: 14 hours ahead of UTC, or 12 behind.
    latest = now if has_zone else f"{now} + interval '14 hours'"
    least = now if has_zone else f"{now} - interval '12 hours'"
    value, latest, least = (f"CAST({each} AS {kind})" for each in (_text(top), latest, least))
    [[found]] = relation.connection.rows(
        f"SELECT CAST(CASE WHEN {value} > {latest} THEN {least} END AS text)"
    )
    return (found, True) if found is not None else (top, False)


def _look(connection: Connection) -> tuple[dict[str, str], frozenset[str]]:
    """Return the sessions' running transactions with their processes, and after that the prepared ones."""
    running = {str(name): str(pid) for name, pid, is_own in connection.rows(_RUNNING) if is_own != "t"}
    return running, frozenset(str(name) for [name] in connection.rows(_PREPARED))


def _blind(source: JdbcSource, column: DatabaseColumn, why: str) -> CursorUnsuitable:
    return unsuitable(
        source,
        column.name,
        f"{why} A row that is committed late would be lost.",
        "Write lag: with a time (or a number) longer than any transaction takes, or read from the primary.",
    )


def _told(waits: frozenset[str], running: dict[str, str]) -> str:
    processes = [f"pid {running[name]}" for name in sorted(waits & running.keys())]
    names = [*processes, *sorted(waits - running.keys())]
    more = f" and {len(names) - _TOLD} more" if len(names) > _TOLD else ""
    return f"{', '.join(names[:_TOLD])}{more}"


def _class_of(relation: Relation, table: str) -> str:
    return f"to_regclass({_text(relation.dialect.table(table))})"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
