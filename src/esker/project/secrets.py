"""Values from the environment, and the promise that secrets never leave the process as text.

`${NAME}` and `${NAME:-default}` are replaced in every text of the project file; `$$` is a dollar sign.
As in a shell, the default is taken when the variable is unset or empty. A secret must come from a
variable: a password that stands in the file as text, or as a default, is refused.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, quote_plus

from dotenv import dotenv_values
from pydantic import BaseModel, BeforeValidator, Field, SecretStr

_VARIABLE = re.compile(r"\$(?:(\$)|\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\})")
_TELLING_NAME = re.compile(r"PASS|SECRET|TOKEN|CREDENTIAL|(?:^|_)KEY", re.IGNORECASE)
_SHORTEST_MASKED = 4
_MOST_PASSING = 128
"""So many secrets that are soon replaced are kept in mind."""
_known_secrets: set[str] = set()
_passing_secrets: OrderedDict[str, set[str]] = OrderedDict()
"""Secrets that are soon replaced, newest last, each with all that it may look like."""
_passing = threading.RLock()  # also what a signal interrupts may be asking
_written: dict[str, str] = {}
"""Texts with the values of variables, and how they stand in the project file."""


class FromEnvironment(str):
    """A text that holds the value of at least one variable."""

    __slots__ = ()


class MissingVariables(Exception):
    """Variables that a text names and the environment lacks."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = list(names)
        super().__init__(", ".join(self.names))


def environment(folder: Path) -> Mapping[str, str]:
    """Return the process environment, with `.env` of the folder below it."""
    stored = {key: value for key, value in dotenv_values(folder / ".env").items() if value is not None}
    return {**stored, **os.environ}


def resolve(text: str, variables: Mapping[str, str]) -> str:
    """Replace the variables of a text, or raise MissingVariables with all that are unset."""
    missing: list[str] = []
    used = False

    def value(match: re.Match[str]) -> str:
        nonlocal used
        dollar, name, default = match.groups()
        if dollar:
            return "$"
        found = variables.get(name)
        if not found and default is not None:
            return str(default)
        if found is None:
            missing.append(name)
            return ""
        used = True
        if _TELLING_NAME.search(name):
            remember_secret(found)
        return found

    resolved = _VARIABLE.sub(value, text)
    if missing:
        raise MissingVariables(missing)
    if used:
        _written[resolved] = text
    return FromEnvironment(resolved) if used else resolved


def as_written(secret: str, variable: str) -> str:
    """Return a secret as it stands in the project file, each `${NAME}` by a pattern for `{}`, its name.

    For what is handed to others: no value of a variable is in it, nor a default.
    """

    def named(match: re.Match[str]) -> str:
        dollar, name, _ = match.groups()
        return "$" if dollar else variable.format(name)

    return _VARIABLE.sub(named, _written[secret])


def names_in(text: str) -> list[str]:
    """Return the variables that a text was written with; none for one that stands in the project file."""
    return [name for dollar, name, _ in _VARIABLE.findall(_written.get(text, "")) if not dollar]


def remember_secret(value: str) -> None:
    """Mask this value from now on in everything that is shown or logged."""
    _known_secrets.update(_looks_of(value))


def remember_passing_secret(value: str) -> None:
    """Mask a value that is valid for some time only, such as a key that a catalog has handed out.

    The newest ones are masked: who works for months meets any number of them.
    """
    with _passing:
        _passing_secrets[value] = _passing_secrets.pop(value, set()) or _looks_of(value)
        while len(_passing_secrets) > _MOST_PASSING:
            _passing_secrets.popitem(last=False)


def _looks_of(value: str) -> set[str]:
    """Return a secret as it may stand in a text; nothing of one that is too short to be masked."""
    if len(value) < _SHORTEST_MASKED:
        return set()
    # Also as it looks inside JSON, a Python value or an address.
    inner = {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]}
    return {value, quote(value, safe=""), quote_plus(value)} | inner


def remember_secrets_of(value: Any) -> None:
    """Mask the secrets of a declaration from now on: another process may have made it."""
    match value:
        case SecretStr():
            remember_secret(value.get_secret_value())
        case BaseModel():
            for name in type(value).model_fields:
                remember_secrets_of(getattr(value, name))
        case dict():
            for inner in value.values():
                remember_secrets_of(inner)


def redact(text: str) -> str:
    """Return a text with every known secret masked."""
    with _passing:
        known = _known_secrets.union(*_passing_secrets.values())
    for secret in sorted(known, key=len, reverse=True):
        text = text.replace(secret, "********")
    return text


def masked(value: Any) -> Any:
    """Return a JSON value with every known secret masked in its texts; numbers stay as they are."""
    match value:
        case str():
            return redact(value)
        case dict():
            return {masked(key): masked(inner) for key, inner in value.items()}
        case list() | tuple():
            return [masked(inner) for inner in value]
    return value


def only_from_environment(value: Any) -> Any:
    """Return a secret and mask it from now on; raise ValueError if it stands in the file as text."""
    if isinstance(value, str):
        if not isinstance(value, FromEnvironment):
            raise ValueError("a secret stands here as text; write ${NAME} and set NAME in .env")
        remember_secret(value)
    return value


Secret = Annotated[
    SecretStr,
    BeforeValidator(only_from_environment),
    Field(description="From the environment or .env: ${NAME}."),
]
"""A value that is never printed and never stands in the project file."""
