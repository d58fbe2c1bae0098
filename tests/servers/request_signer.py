"""A server that signs requests to S3 for clients without keys, as some REST catalogs do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.deliver.targets.fault_server import Answer, Asked, FaultServer, running_fault_server


@contextmanager
def running_signer(key: str, secret: str) -> Iterator[FaultServer]:
    """Start a signer with these keys. What it was asked for is recorded."""

    def script(asked: Asked) -> Answer:
        return Answer(200, json.dumps(_signed(json.loads(asked.body), key, secret)).encode())

    with running_fault_server() as server:
        server.script = script
        yield server


class _Auth(S3SigV4Auth):  # type: ignore[misc]
    """Signs what the client says of its body, which does not come here."""

    def payload(self, request: Any) -> str:
        return str(request.context["payload"])


def _signed(asked: dict[str, Any], key: str, secret: str) -> dict[str, Any]:
    given = {name.lower(): values[0] for name, values in asked["headers"].items()}
    parts = urlsplit(asked["uri"])
    request = AWSRequest(
        method=asked["method"],
        url=f"{parts.scheme}://{parts.netloc}{parts.path}",
        params=dict(parse_qsl(parts.query, keep_blank_values=True)),
        headers={name: value for name, value in given.items() if name.startswith("x-amz-")},
    )
    request.context["payload"] = given.get("x-amz-content-sha256", "UNSIGNED-PAYLOAD")
    _Auth(Credentials(key, secret), "s3", asked["region"]).add_auth(request)
    return {"uri": asked["uri"], "headers": {name: [value] for name, value in request.headers.items()}}
