"""Tell an API who asks. Tokens are fetched when they are needed, and anew when they no longer count."""

from __future__ import annotations

import json
import threading
import time
from base64 import b64encode
from collections.abc import Generator

import httpx2

from esker.engine.web import PASSING
from esker.errors import SourceRefused
from esker.project.secrets import redact, remember_secret
from esker.project.sources.http import ApiKeyAuth, Auth, BasicAuth, BearerAuth, ClientCredentialsAuth
from esker.sources.web import Malformed

_EARLY = 30.0
"""Seconds before its end from which a token is no longer used: it must last until the answer is here."""
_SHOWN = 200

_Flow = Generator[httpx2.Request, httpx2.Response, None]


def credentials(auth: Auth | None) -> httpx2.Auth | None:
    """Return what puts credentials into requests."""
    match auth:
        case BearerAuth():
            return _Header("Authorization", f"Bearer {auth.token.get_secret_value()}")
        case ApiKeyAuth(location="header"):
            return _Header(auth.name, auth.api_key.get_secret_value())
        case ApiKeyAuth():
            return _Parameter(auth.name, auth.api_key.get_secret_value())
        case BasicAuth():
            login = f"{auth.username}:{auth.password.get_secret_value()}"
            remember_secret(b64encode(login.encode()).decode())  # as a server may quote it
            return httpx2.BasicAuth(auth.username, auth.password.get_secret_value())
        case ClientCredentialsAuth():
            return ClientCredentials(auth)
    return None


class _Header(httpx2.Auth):
    """A value in a header."""

    def __init__(self, name: str, value: str) -> None:
        self._name, self._value = name, value

    def auth_flow(self, request: httpx2.Request) -> _Flow:
        request.headers[self._name] = self._value
        yield request


class _Parameter(httpx2.Auth):
    """A value in the query. It is put there last, so that no address in a message holds it."""

    def __init__(self, name: str, value: str) -> None:
        self._name, self._value = name, value

    def auth_flow(self, request: httpx2.Request) -> _Flow:
        request.url = request.url.copy_set_param(self._name, self._value)
        yield request


class ClientCredentials(httpx2.Auth):
    """OAuth 2 client credentials. All threads share one token."""

    requires_response_body = True

    def __init__(self, auth: ClientCredentialsAuth) -> None:
        self._auth = auth
        self._lock = threading.Lock()
        self._token = ""
        self._until = 0.0

    def auth_flow(self, request: httpx2.Request) -> _Flow:
        token = yield from self._current(refused="")
        request.headers["Authorization"] = f"Bearer {token}"
        answer = yield request
        if answer.status_code == httpx2.codes.UNAUTHORIZED:
            token = yield from self._current(refused=token)
            request.headers["Authorization"] = f"Bearer {token}"
            yield request

    def _current(self, refused: str) -> Generator[httpx2.Request, httpx2.Response, str]:
        """Return a token that is not the refused one. While one thread fetches it, the others wait."""
        with self._lock:
            if self._token == refused or time.monotonic() >= self._until:
                self._keep((yield self._question()))
            return self._token

    def _question(self) -> httpx2.Request:
        asked = {"grant_type": "client_credentials", **self._auth.access_token_request_data}
        name, secret = self._auth.client_id, self._auth.client_secret.get_secret_value()
        if self._auth.credentials_in == "body":
            asked |= {"client_id": name, "client_secret": secret}
        request = httpx2.Request(
            "POST", self._auth.access_token_url, data=asked, headers={"Accept": "application/json"}
        )
        if self._auth.credentials_in == "header":
            request = next(httpx2.BasicAuth(name, secret).auth_flow(request))
        return request

    def _keep(self, answer: httpx2.Response) -> None:
        url = self._auth.access_token_url
        if answer.status_code in PASSING:
            answer.raise_for_status()  # the question that needs the token is asked again
        if not answer.is_success:
            told = f"It answers {answer.status_code} {answer.reason_phrase}. {answer.text[:_SHOWN]}".strip()
            raise SourceRefused(url, redact(told), "See whether client_id and client_secret are right.")
        try:
            found = json.loads(answer.content)
            token, lasts = found["access_token"], found.get("expires_in")
            seconds = float(lasts if lasts is not None else self._lasts())
        except (ValueError, TypeError, KeyError, AttributeError):
            raise Malformed(f"{url} gives no token.") from None  # the answer may hold half of one
        if not isinstance(token, str) or not token:
            raise Malformed(f"{url} gives no token.")
        remember_secret(token)
        self._token = token
        # Of a token that lasts for seconds, some of them must be left.
        self._until = time.monotonic() + max(seconds - _EARLY, seconds / 2)

    def _lasts(self) -> float:
        return self._auth.default_token_expiration.total_seconds()
