"""Addresses of servers, as they stand in a project file."""

from __future__ import annotations

from urllib.parse import urlsplit


def web_address(text: str, instead: str) -> str:
    """Return an address without a slash at its end, or raise ValueError.

    `instead` names the keys that credentials belong to.
    """
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("the address must begin with http:// or https://, and name a host")
    if parts.username or parts.password:
        raise ValueError(f"the address holds credentials; write them as {instead} ${{NAME}}")
    return text.rstrip("/")
