"""The old store: each version of a record is an object in S3, and DynamoDB knows which one is the newest."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from dynamodb import DynamoDB
from pyarrow.fs import S3FileSystem

_BY_TIME = "by-time"
_RECORD = {"S": "record"}
"""All entries have it: the part of the second index within which they are ordered."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Entry:
    """What the index knows of a record."""

    id: str
    version: int
    changed: int
    """When, in milliseconds since 1970."""
    key: str | None
    """Where its newest version lies; None for a record that was deleted."""

    @property
    def changed_at(self) -> datetime:
        return _EPOCH + timedelta(milliseconds=self.changed)


@dataclass(frozen=True)
class Mark:
    """What tells whether anything was written to the store: every write raises a version."""

    records: int
    versions: int
    newest: int


@dataclass(frozen=True)
class VersionedStore:
    """Records by id."""

    dynamodb: DynamoDB
    s3: S3FileSystem
    bucket: str
    index: str
    page: int = 25
    """Entries that are asked for at a time."""

    @classmethod
    def connect(cls, endpoint: str, bucket: str, index: str) -> VersionedStore:
        """Open the store, with the credentials of the environment."""
        key, secret = os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
        region = os.environ.get("AWS_REGION", "eu-west-1")
        parts = urlsplit(endpoint)
        s3 = S3FileSystem(
            access_key=key,
            secret_key=secret,
            region=region,
            scheme=parts.scheme,
            endpoint_override=parts.netloc,
            allow_bucket_creation=True,
        )
        return cls(DynamoDB(endpoint, region, key, secret), s3, bucket, index)

    def create(self) -> None:
        """Make bucket and index."""
        self.s3.create_dir(self.bucket)
        key = {"AttributeName": "kind", "KeyType": "HASH"}, {"AttributeName": "changed", "KeyType": "RANGE"}
        self.dynamodb.call(
            "CreateTable",
            TableName=self.index,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[
                {"AttributeName": name, "AttributeType": kind}
                for name, kind in (("id", "S"), ("kind", "S"), ("changed", "N"))
            ],
            GlobalSecondaryIndexes=[
                {"IndexName": _BY_TIME, "KeySchema": key, "Projection": {"ProjectionType": "ALL"}}
            ],
        )

    def put(self, id: str, record: dict[str, Any], at: datetime) -> None:
        """Write a new version of a record: first the object, then the index that names it."""
        version = self._next_version(id)
        key = f"{id}/{version}.json"
        with self.s3.open_output_stream(f"{self.bucket}/{key}") as stream:
            stream.write(json.dumps(record).encode())
        self._name(id, version, at, {"location": {"S": key}})

    def delete(self, id: str, at: datetime) -> None:
        """Mark a record as deleted."""
        self._name(id, self._next_version(id), at, {"deleted": {"BOOL": True}})

    def changed(self, since: int) -> Iterator[list[Entry]]:
        """Yield entries that changed at or after a moment, oldest first, some at a time."""
        return self._pages(
            "Query",
            IndexName=_BY_TIME,
            KeyConditionExpression="kind = :kind AND changed >= :since",
            ExpressionAttributeValues={":kind": _RECORD, ":since": {"N": str(since)}},
        )

    def entries(self) -> Iterator[list[Entry]]:
        """Yield all entries, some at a time, in no order."""
        return self._pages("Scan", ConsistentRead=True)

    def entry(self, id: str) -> Entry | None:
        found = self.dynamodb.call(
            "GetItem", TableName=self.index, Key={"id": {"S": id}}, ConsistentRead=True
        )
        return _entry(found["Item"]) if "Item" in found else None

    def read(self, entry: Entry) -> dict[str, Any]:
        """Return a record as a row. Of one that was changed meanwhile, the newest version."""
        row: dict[str, Any] = {"id": entry.id, "version": entry.version, "changed_at": entry.changed_at}
        if entry.key is None:
            return {**row, "deleted": True}
        try:
            with self.s3.open_input_stream(f"{self.bucket}/{entry.key}") as stream:
                return {**row, **json.loads(stream.read()), "deleted": False}
        except FileNotFoundError:
            # Old versions are tidied away; what has no newer one is lost, and that must be told.
            newest = self.entry(entry.id)
            if newest is None or newest.version == entry.version:
                raise
            return self.read(newest)

    def mark(self) -> Mark:
        """Return how the store stands."""
        records = versions = newest = 0
        for page in self.entries():
            for entry in page:
                records, versions = records + 1, versions + entry.version
                newest = max(newest, entry.changed)
        return Mark(records, versions, newest)

    def close(self) -> None:
        self.dynamodb.close()

    def _next_version(self, id: str) -> int:
        before = self.entry(id)
        return before.version + 1 if before is not None else 1

    def _name(self, id: str, version: int, at: datetime, what: dict[str, Any]) -> None:
        changed = (at - _EPOCH) // timedelta(milliseconds=1)
        item = {"id": {"S": id}, "version": {"N": str(version)}, "changed": {"N": str(changed)}, **what}
        self.dynamodb.call(
            "PutItem",
            TableName=self.index,
            Item={**item, "kind": _RECORD},
            # Two writers at a time: the second one is told.
            ConditionExpression="attribute_not_exists(id) OR version < :version",
            ExpressionAttributeValues={":version": {"N": str(version)}},
        )

    def _pages(self, action: str, **asked: Any) -> Iterator[list[Entry]]:
        while True:
            answer = self.dynamodb.call(action, TableName=self.index, Limit=self.page, **asked)
            if answer["Items"]:
                yield [_entry(item) for item in answer["Items"]]
            if "LastEvaluatedKey" not in answer:
                return
            asked["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def _entry(item: dict[str, Any]) -> Entry:
    key = None if item.get("deleted", {}).get("BOOL") else item["location"]["S"]
    return Entry(item["id"]["S"], int(item["version"]["N"]), int(item["changed"]["N"]), key)
