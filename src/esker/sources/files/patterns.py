"""Patterns of paths: `*`, `?` and `[…]` within a name, `**` for any number of folders."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

_MAGIC = re.compile(r"[*?\[]")


def is_pattern(text: str) -> bool:
    """Tell whether a text may match several names."""
    return _MAGIC.search(text) is not None


def fixed_part(pattern: str) -> str:
    """Return the folder above the first wildcard; for a path without any, the folder that it is in."""
    fixed = []
    *folders, _ = pattern.split("/")
    for part in folders:
        if is_pattern(part):
            break
        fixed.append(part)
    return "/".join(fixed) or ("/" if pattern.startswith("/") else "")


def reaches_below(pattern: str) -> bool:
    """Tell whether a pattern matches in folders below its fixed part."""
    *folders, name = pattern.split("/")
    return name == "**" or any(is_pattern(part) for part in folders)


def matches(path: str, pattern: str) -> bool:
    """Tell whether a path matches a pattern."""
    return _match(path.split("/"), pattern.split("/"))


def is_hidden(path: str) -> bool:
    """Tell whether a name in a path begins with `_` or `.`: Spark leaves such files out without a word."""
    return any(part.startswith(("_", ".")) and part not in (".", "..") for part in path.split("/"))


def _match(names: Sequence[str], parts: Sequence[str]) -> bool:
    for index, part in enumerate(parts):
        if part == "**":
            rest = parts[index + 1 :]
            # As on a disk: two stars at the end are everything below.
            return not rest or any(_match(names[at:], rest) for at in range(index, len(names)))
        if index >= len(names) or not fnmatchcase(names[index], part):
            return False
    return len(names) == len(parts)
