"""JSON in table properties: one way to write it, and one way to read what any version of Esker wrote.

A document names the version of its format; one without a version, as Esker wrote it at first, has version 1.
A list has version 1, too: a later format of it must be an object that names its version. A newer version
or an unknown field ends the run: this Esker would drop what it does not know with its next commit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from esker.errors import LedgerTooNew, LedgerUnreadable

VERSION = 1
"""Of everything that this Esker writes. Higher as soon as an older Esker would misunderstand any of it."""
_VERSION = "version"
_Kind = TypeVar("_Kind")


class _UnknownField(Exception):
    def __init__(self, name: str) -> None:
        self.name = name


def as_text(value: Any) -> str:
    """Return a value as short JSON, equal for equal values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def as_document(fields: Mapping[str, Any]) -> str:
    """Return the text of a property that holds these fields."""
    return as_text({_VERSION: VERSION, **fields})


def read_property(properties: Mapping[str, str], name: str, build: Callable[[Any], _Kind]) -> _Kind | None:
    """Return what `build` makes of a property's JSON without its version; None if it is not set.

    Raises LedgerTooNew for a newer version or an unknown field, and LedgerUnreadable for everything else
    that `build` cannot use.
    """
    text = properties.get(name)
    if text is None:
        return None
    try:
        document = json.loads(text)
        if isinstance(document, dict):
            version = document.pop(_VERSION, 1)
            if version > VERSION:
                raise LedgerTooNew(name, f"It has version {version}, this Esker knows {VERSION}")
        return build(document)
    except _UnknownField as unknown:
        why = f'It has the field "{unknown.name}", which this Esker does not know'
        raise LedgerTooNew(name, why) from None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise LedgerUnreadable(name, text) from error


def check_fields(document: Mapping[str, Any], known: Collection[str]) -> None:
    """Let `read_property` raise LedgerTooNew if a document, or a part of one, has an unknown field."""
    unknown = document.keys() - set(known)
    if unknown:
        raise _UnknownField(min(unknown))
