"""Lines of Python for other programs."""

from __future__ import annotations

import re

_ONE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def expression(text: str) -> str:
    """Return code for a text in which `${NAME}` stands for the value of a variable."""
    if found := _ONE.fullmatch(text):
        return f'os.environ["{found[1]}"]'
    return f"os.path.expandvars({text!r})"


def code(*lines: str | None) -> str:
    """Return lines as a file, those that are None left out."""
    return "\n".join(line for line in lines if line is not None) + "\n"
