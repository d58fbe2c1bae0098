"""How far a consumer has been told of a table's changes.

The offset stands in the state database, and as a tag on the log (`consumer_tags.py`): the tag keeps every
engine from expiring what was not delivered yet, and tells where to go on when the database is lost. It is set
behind the database's entry, so that it protects too much rather than too little.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from esker.errors import ConsumerFenced
from esker.ledger.leases import Lease
from esker.ledger.state import State, deliveries, moment_of, offsets, text_of

if TYPE_CHECKING:
    from esker.engine.iceberg.metadata import SnapshotId


@dataclass(frozen=True)
class Offset:
    """The last changeset that a consumer has been told."""

    table: str
    """The table's uuid: another one of its name has other changesets."""
    changeset: int
    """0 before the first. Of a table without a change log, the snapshot's sequence number."""
    run: str | None
    """The run that published it, where the log says so: a restored log may have others of that number."""
    snapshot: SnapshotId | None
    """The snapshot of the log that ends with it."""
    sequence: int
    inputs: Mapping[str, SnapshotId | None] = field(default_factory=dict)
    """Of each enrichment, the snapshot of the other table that it has been told; None of an empty one."""
    beside: int = 0
    """What the other tables added to versions: less would make messages look old."""
    published: int | None = None
    """Of a table without a change log, Esker's last changeset that it has been told; None if nobody knows."""

    is_start: bool = False
    """Who is told from now on begins behind it, and nothing was sent yet."""

    @property
    def is_beginning(self) -> bool:
        """Nothing has been told."""
        return self.changeset == 0 and self.snapshot is None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Offset:
        return cls(**document)


@dataclass(frozen=True)
class LastDelivery:
    """How a consumer's last delivery ended."""

    result: Mapping[str, Any]
    ended_at: datetime


def stored_offset(state: State, project: str, consumer: str) -> Offset | None:
    """Return a consumer's offset; None when nothing is known of it."""
    with state.begin() as connection:
        return offset_in(connection, project, consumer)


def offset_in(connection: sa.Connection, project: str, consumer: str) -> Offset | None:
    """Do what `stored_offset` does, as a part of a transaction."""
    query = sa.select(offsets.c.offset).where(offsets.c.project == project, offsets.c.consumer == consumer)
    text = connection.execute(query).scalar()
    return None if text is None else Offset.from_json(json.loads(text))


def store_offset(
    state: State, project: str, consumer: str, lease: Lease, before: Offset | None, offset: Offset
) -> None:
    """Keep a consumer's offset in the place of the one before.

    Raises ConsumerFenced when another one stands there by now, or somebody else holds the lease.
    """
    stored_at = state.now()
    with state.begin() as connection:
        put_offset(connection, project, consumer, lease, before, offset, stored_at)


def put_offset(
    connection: sa.Connection,
    project: str,
    consumer: str,
    lease: Lease,
    before: Offset | None,
    offset: Offset,
    stored_at: datetime,
) -> None:
    """Do what `store_offset` does, as a part of a transaction."""
    key = (offsets.c.project == project) & (offsets.c.consumer == consumer)
    values = {"offset": json.dumps(offset.as_json()), "stored_at": text_of(stored_at)}
    if not lease.is_held(connection):
        raise ConsumerFenced(consumer)
    text = connection.execute(sa.select(offsets.c.offset).where(key)).scalar()
    if (None if text is None else Offset.from_json(json.loads(text))) != before:
        raise ConsumerFenced(consumer)
    if text is None:
        try:
            connection.execute(offsets.insert().values(project=project, consumer=consumer, **values))
        except IntegrityError:
            raise ConsumerFenced(consumer) from None
        return
    unchanged = key & (offsets.c.offset == text)
    if connection.execute(offsets.update().where(unchanged).values(**values)).rowcount == 0:
        raise ConsumerFenced(consumer)


def forget_offset(state: State, project: str, consumer: str) -> bool:
    """Forget how far a consumer is, and how its last delivery ended; tell whether an offset was known."""
    with state.begin() as connection:
        last = (deliveries.c.project == project) & (deliveries.c.consumer == consumer)
        connection.execute(deliveries.delete().where(last))
        return drop_offset(connection, project, consumer)


def drop_offset(connection: sa.Connection, project: str, consumer: str) -> bool:
    """Forget how far a consumer is, as a part of a transaction; tell whether an offset was known."""
    key = (offsets.c.project == project) & (offsets.c.consumer == consumer)
    return connection.execute(offsets.delete().where(key)).rowcount > 0


def record_delivery(state: State, project: str, consumer: str, result: Mapping[str, Any]) -> None:
    """Keep how a consumer's last delivery ended, for `esker status`."""
    key = (deliveries.c.project == project) & (deliveries.c.consumer == consumer)
    now = text_of(state.now())
    with state.begin() as connection:
        connection.execute(deliveries.delete().where(key))
        connection.execute(
            deliveries.insert().values(
                project=project, consumer=consumer, result=json.dumps(result), ended_at=now
            )
        )


def last_delivery(state: State, project: str, consumer: str) -> LastDelivery | None:
    """Return how a consumer's last delivery ended; None before the first."""
    query = sa.select(deliveries).where(deliveries.c.project == project, deliveries.c.consumer == consumer)
    with state.begin() as connection:
        row = connection.execute(query).one_or_none()
    return None if row is None else LastDelivery(json.loads(row.result), moment_of(row.ended_at))
