"""DynamoDB's own protocol: signed requests with JSON. A program that has boto3 needs none of this.

It is not used here because it wants another python-dateutil than the tests of this repository.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import httpx2

_ATTEMPTS = 4
_SHOWN = 400
_PASSING = ("ProvisionedThroughputExceeded", "ThrottlingException", "RequestLimitExceeded")


class DynamoDBRefused(Exception):
    """DynamoDB does not do what it is asked for."""


@dataclass(frozen=True)
class DynamoDB:
    """One DynamoDB. Threads may share it."""

    endpoint: str
    region: str
    key: str
    secret: str = field(repr=False)
    _client: httpx2.Client = field(default_factory=lambda: httpx2.Client(timeout=30), repr=False)

    def call(self, action: str, **body: Any) -> dict[str, Any]:
        """Do something; what may pass is tried again, ever later. Raises DynamoDBRefused."""
        content = json.dumps(body).encode()
        told = ""
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(0.1 * 2**attempt)
            headers = self._headers(action, content, datetime.now(UTC))
            try:
                answer = self._client.post(self.endpoint, content=content, headers=headers)
            except httpx2.TransportError as error:
                told = str(error)
                continue
            if answer.status_code == httpx2.codes.OK:
                found: dict[str, Any] = answer.json()
                return found
            told = f"{answer.status_code}: {answer.text[:_SHOWN]}"
            if answer.status_code < 500 and not any(name in answer.text for name in _PASSING):
                break
        raise DynamoDBRefused(f"{action}: {told}")

    def close(self) -> None:
        self._client.close()

    def _headers(self, action: str, content: bytes, now: datetime) -> dict[str, str]:
        """Return the headers of a request, with its signature (AWS Signature Version 4)."""
        signed = {
            "content-type": "application/x-amz-json-1.0",
            "host": urlsplit(self.endpoint).netloc,
            "x-amz-date": f"{now:%Y%m%dT%H%M%SZ}",
            "x-amz-target": f"DynamoDB_20120810.{action}",
        }
        names = ";".join(signed)
        lines = "".join(f"{name}:{value}\n" for name, value in signed.items())
        request = f"POST\n/\n\n{lines}\n{names}\n{hashlib.sha256(content).hexdigest()}"
        scope = f"{now:%Y%m%d}/{self.region}/dynamodb/aws4_request"
        digest = hashlib.sha256(request.encode()).hexdigest()
        text = f"AWS4-HMAC-SHA256\n{signed['x-amz-date']}\n{scope}\n{digest}"
        signature = _hmac(signing_key(self.secret, scope), text).hex()
        credential = f"AWS4-HMAC-SHA256 Credential={self.key}/{scope}"
        authorization = f"{credential}, SignedHeaders={names}, Signature={signature}"
        return {**signed, "authorization": authorization}


def signing_key(secret: str, scope: str) -> bytes:
    """Return the key that signs requests of a day, a region and a service."""
    found = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        found = _hmac(found, part)
    return found


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
