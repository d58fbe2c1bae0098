"""What versions of Spark do differently stands in one folder, with the same functions for each."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import esker
from esker.engine.compat import spark35

NEWER = re.compile(
    r"\.(toArrow|mergeInto|try_cast|addArtifact|transpose|lateralJoin|asTable|metadataColumn|try_parse_json|try_variant_get)\(|arrow_udf|versionAsOf"
)


def test_newer_interfaces_are_used_in_compat_only() -> None:
    """Who adds a version of Spark looks there, and does not search through all."""
    package = Path(esker.__file__).parent
    users = {
        str(path.parent.relative_to(package))
        for path in package.rglob("*.py")
        if NEWER.search(path.read_text())
    }
    assert users == {"engine/compat"}


def test_each_version_has_the_same_functions() -> None:
    """One that is missing would be noticed on the other platform only."""
    folder = Path(esker.__file__).parent / "engine" / "compat"

    def functions(name: str) -> dict[str, str]:
        tree = ast.parse((folder / name).read_text())
        found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name[0] != "_"]
        return {node.name: ast.unparse(node.args) for node in found}

    assert functions("spark35.py") == functions("spark4.py")


def test_a_number_beyond_all_decimals_is_rounded() -> None:
    """Python's decimals raise an error of their own for it."""
    is_rounded = spark35._rounded()
    assert is_rounded('{"v": 1e9999999999999999999}')
    assert is_rounded('{"v": 0.1234567890123456789}')
    assert not is_rounded('{"v": 0.5}')
