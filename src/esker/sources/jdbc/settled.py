"""Up to which value of a cursor no running transaction of PostgreSQL can add a row any more.

A value is given while a transaction runs (by a sequence, by `now()`), and its row is seen when that commits:
rows with higher values may be seen before. So the highest value is looked up first, and then which
transactions are running. When they have all ended, every row up to that value is there: transactions that
begin later get higher values. The rows are read under a snapshot that is taken after that.

Transactions are known by their virtual ids, from the locks that everybody may see: those that have written
nothing yet have no other, and may have their value already. Neither the ids in the rows (`xmin`) nor
those of a snapshot tell as much: a transaction that got its id earlier may get its value later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic, sleep

from esker.engine.jdbc import Connection, DatabaseColumn
from esker.errors import CursorUnsuitable
from esker.ledger.cursor_marks import PREPARED, CursorMark, thinned
from esker.project.sources import JdbcSource
from esker.sources.jdbc.database import Relation, unsuitable

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
_PREPARED = f"SELECT '{PREPARED}' || transaction FROM pg_prepared_xacts WHERE database = current_database()"


@dataclass(frozen=True)
class Settled:
    """Up to where a cursor can be read."""

    top: str | None
    """The highest value that is known to be complete; None where none is."""
    waits: str = ""
    """What rows beyond it wait for, in words; empty where nothing is beyond it."""


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
    if why := _why_blind(connection, relation, source):
        if source.lag is not None:
            return None
        raise _blind(source, column, why)
    top = relation.highest(column)
    if top is None:
        return Settled(None)
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
    return Settled(newest.top if newest is not None else None, waits)


def is_unique(relation: Relation, source: JdbcSource, column: DatabaseColumn) -> bool:
    """Tell whether PostgreSQL lets no two rows have the same value in a column."""
    if source.table is None:
        return False
    name, table = _text(column.name), _text(relation.dialect.table(source.table))
    # An index of a table is none of the tables that inherit from it, unless they are its partitions.
    found = relation.connection.rows(
        "SELECT 1 FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid "
        "JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] "
        f"WHERE i.indrelid = to_regclass({table}) AND a.attname = {name} AND i.indisunique AND i.indisvalid "
        "AND i.indnkeyatts = 1 AND i.indpred IS NULL AND (c.relkind = 'p' OR NOT EXISTS "
        "(SELECT 1 FROM pg_inherits h WHERE h.inhparent = c.oid)) LIMIT 1"
    )
    return bool(found)


def _why_blind(connection: Connection, relation: Relation, source: JdbcSource) -> str | None:
    [[is_replica]] = connection.rows("SELECT pg_is_in_recovery()")
    if is_replica == "t":
        return "This server is a replica, which does not see the transactions of its primary."
    if all(is_own != "t" for _, _, is_own in connection.rows(_RUNNING)):
        return "The server does not list its transactions in pg_locks."
    if source.table is None:
        return None
    table = f"to_regclass({_text(relation.dialect.table(source.table))})"
    if connection.rows(f"SELECT 1 FROM pg_subscription_rel WHERE srrelid = {table}"):
        return "Its rows come by logical replication, long after they got their values."
    if connection.rows(f"SELECT 1 FROM pg_class WHERE oid = {table} AND relkind = 'f'"):
        return "It is a foreign table: the transactions that add its rows run on another server."
    return None


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


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
