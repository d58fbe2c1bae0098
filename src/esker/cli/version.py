"""`esker version`: which versions are here."""

from __future__ import annotations

from esker.cli.options import JsonOption


def version(as_json: JsonOption = False) -> None:
    """Print the versions of Esker and of what it runs on."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    from esker.cli.output import print_json, say

    found = {}
    for package in ("esker", "pyspark", "pyarrow"):
        try:
            found[package] = installed(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    if as_json:
        print_json(found)
        return
    for name, number in found.items():
        say(f"{name} {number}")
