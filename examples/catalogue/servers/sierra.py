"""The library's catalogue as an API like Sierra's: tokens, ranges of updatedDate, offsets, deletes."""

from __future__ import annotations

import json
import secrets
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from examples.catalogue.servers.serving import Answer, Request

_CLIENT = "esker"


@dataclass
class Sierra:
    """What Sierra holds: bibs, each with its items, holdings and orders.

    A record without a `bib` is one of which only something that belongs to it is known so far.
    """

    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    broken: set[str] = field(default_factory=set)
    """Records that the API fails on."""
    _tokens: set[str] = field(default_factory=set)

    def put(self, id: str, changed: datetime, **parts: Any) -> None:
        """Add a record, or change the one with this id: `bib`, `items`, `holdings`, `orders`."""
        self.records[id] = {"id": id, "updatedDate": stamp(changed), "deleted": False, **parts}

    def delete(self, id: str, changed: datetime) -> None:
        self.records[id] = {"id": id, "updatedDate": stamp(changed), "deleted": True}

    def answer(self, request: Request) -> Answer:
        if request.path == "/v6/token" and request.is_post:
            return _json(*self._token(request.headers))
        if request.headers.get("Authorization", "").removeprefix("Bearer ") not in self._tokens:
            return _json(401, {"code": 123, "name": "Unauthorized"})
        if request.path == "/v6/bibs":
            return _json(*self._bibs(request.query))
        return _json(404, {"code": 107, "name": "Record not found"})

    def _token(self, headers: Mapping[str, str]) -> tuple[int, Any]:
        given = headers.get("Authorization", "").removeprefix("Basic ")
        if b64decode(given).decode() != f"{_CLIENT}:{self.secret}":
            return 401, {"error": "invalid_client"}
        token = secrets.token_urlsafe(16)
        self._tokens.add(token)
        return 200, {"access_token": token, "token_type": "bearer", "expires_in": 3600}

    def _bibs(self, query: Mapping[str, str]) -> tuple[int, Any]:
        since, until = (datetime.fromisoformat(text) for text in query["updatedDate"].strip("[]").split(","))
        found = [
            record
            for record in sorted(self.records.values(), key=lambda each: each["id"])
            if since <= datetime.fromisoformat(record["updatedDate"]) <= until
        ]
        if any(record["id"] in self.broken for record in found):
            return 500, {"code": 109, "name": "Internal server error"}
        offset, limit = int(query["offset"]), int(query["limit"])
        shown = found[offset : offset + limit]
        if not shown:
            return 404, {"code": 107, "name": "Record not found"}  # its way to say that there are none
        return 200, {"total": len(found), "start": offset, "entries": shown}


def stamp(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _json(status: int, body: Any) -> Answer:
    return status, "application/json", json.dumps(body, ensure_ascii=False).encode()
