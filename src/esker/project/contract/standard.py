"""Check a contract file against the Open Data Contract Standard, each mistake with its line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from esker.errors import Problem
from esker.project.contract.older import is_old
from esker.project.document import Document, KeyPath
from esker.project.suggest import closest

_READ = ("apiVersion", "kind", "id", "version", "status", "schema", "slaProperties", "slaDefaultElement")
"""What is looked at in contracts of an older version."""
VERSIONS = ("v3.0.0", "v3.0.1", "v3.0.2", "v3.1.0", "v3.2.0")


def check_standard(document: Document) -> list[Problem]:
    """Return what the standard does not allow. Its own JSON Schema decides."""
    if not document.data:
        return [Problem("the file is empty", file=document.file, line=1, column=1)]
    version = document.data.get("apiVersion")
    if version not in VERSIONS:
        known = f"Esker reads {VERSIONS[0]} to {VERSIONS[-1]}"
        if version is None:
            return [document.problem(("apiVersion",), f'key "apiVersion" is missing; {known}')]
        return [
            document.problem(("apiVersion",), f'version "{version}" of the standard is not known; {known}')
        ]
    errors = _leaves(_validator().iter_errors(document.data))
    if is_old(document):
        # The schema is that of the newest version, which knows other keys of teams, prices and the like.
        errors = (error for error in errors if not error.absolute_path or error.absolute_path[0] in _READ)
    found = (_problem(document, error) for error in errors)
    told = (each for each in found if each is not None)
    return list({(each.line, each.column, each.message): each for each in told}.values())


@cache
def _validator() -> Any:
    from jsonschema import Draft201909Validator  # noqa: PLC0415  # only projects with contracts wait for it

    text = (files("open_data_contract_standard") / "schema.json").read_text(encoding="utf-8")
    return Draft201909Validator(json.loads(text))


def _leaves(errors: Iterator[Any]) -> Iterator[Any]:
    """Yield the errors that say most: of alternatives, those of the one that came furthest."""
    for error in errors:
        if error.validator in ("oneOf", "anyOf") and error.context:
            deepest = max(len(inner.absolute_path) for inner in error.context)
            if deepest > len(error.absolute_path):
                yield from _leaves(iter([e for e in error.context if len(e.absolute_path) == deepest]))
                continue
        yield error


def _problem(document: Document, error: Any) -> Problem | None:
    """Return a mistake in words; None for what only follows from another one."""
    path: KeyPath = tuple(error.absolute_path)
    if _OPTIONS in path:
        options = path[: path.index(_OPTIONS) + 1]
        if "logicalType" not in _at(document, options[:-1]):
            # The schema would take them for those of its last type, whichever that is.
            return document.problem(options, "which options there are depends on logicalType:; write it, too")
    match error.validator:
        case "unevaluatedProperties" | "additionalProperties":
            names = [name for name in _named(error.message) if isinstance(error.instance, dict)]
            known = _known_keys(path)
            # A key whose value is wrong counts as not understood, too.
            inner = _INNER.get(str(error.instance.get("logicalType"))) if names else None
            unknown = [name for name in names if name in error.instance and name not in (*known, inner)]
            if not unknown:
                return None
            guess = closest(unknown[0], known)
            hint = f'did you mean "{guess}"?' if guess else "the standard knows no such key here"
            return document.problem((*path, unknown[0]), f'unknown key "{unknown[0]}"; {hint}')
        case "required":
            missing = next(iter(_named(error.message)), "")
            if missing == "map" and "logicalType" not in error.instance:
                return None  # the schema takes a property without a logical type for a map
            return document.problem(path, f'key "{missing}" is missing')
        case "enum":
            known = [str(value) for value in error.validator_value]
            guess = closest(str(error.instance), known)
            hint = f'did you mean "{guess}"?' if guess else "known are " + ", ".join(known)
            return document.problem(path, f'"{error.instance}" is not known here; {hint}')
        case "oneOf" if "mustBe" in json.dumps(error.validator_value):
            return document.problem(path, "one operator is needed, such as mustBe or mustBeLessThan")
        case "anyOf" | "oneOf" if path[-1:] == ("to",):
            return document.problem(path, "write to: table.column")
        case "type":
            kinds = error.validator_value
            wanted = " or ".join([kinds] if isinstance(kinds, str) else kinds)
            return document.problem(
                path, f"expected {_ARTICLES.get(wanted, wanted)}, found {_shown(error.instance)}"
            )
    return document.problem(path, error.message)


def _at(document: Document, path: KeyPath) -> Any:
    found: Any = document.data
    for part in path:
        found = found[part]
    return found


_OPTIONS = "logicalTypeOptions"
_INNER = {"object": "properties", "array": "items", "map": "map"}
"""Where a type says what its parts are."""
_ARTICLES = {
    "array": "a list",
    "object": "keys and values",
    "string": "text",
    "boolean": "true or false",
    "number": "a number",
    "integer": "a whole number",
}


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "keys and values"
    return "a list" if isinstance(value, list) else f'"{value}"'


def _named(message: str) -> list[str]:
    return [part for index, part in enumerate(message.split("'")) if index % 2]


@cache
def _known_keys(path: KeyPath) -> list[str]:
    """Return the keys that the standard knows at a place."""
    schema = _validator().schema
    definitions = schema["$defs"]
    if not path:
        return list(schema["properties"])
    last = next((part for part in reversed(path) if isinstance(part, str)), "")
    if last == _OPTIONS:
        return sorted(set(_options(schema)))
    kinds = {
        "schema": ("SchemaObject", "SchemaElement"),
        "properties": ("SchemaProperty", "SchemaBaseProperty", "SchemaElement"),
        "items": ("SchemaItemProperty", "SchemaBaseProperty", "SchemaElement"),
        "quality": (
            "DataQuality",
            "DataQualityLibrary",
            "DataQualitySql",
            "DataQualityCustom",
            "DataQualityOperators",
        ),
        "customProperties": ("CustomProperty",),
        "slaProperties": ("ServiceLevelAgreementProperty",),
        "relationships": ("RelationshipBase",),
    }.get(last, ())
    return sorted({key for kind in kinds for key in _keys(definitions.get(kind, {}))})


def _keys(definition: dict[str, Any]) -> Iterator[str]:
    yield from definition.get("properties", {})
    for alternative in definition.get("oneOf", ()):
        yield from alternative.get("properties", {})


def _options(schema: Any) -> Iterator[str]:
    """Yield the options of all logical types, wherever the standard names them."""
    if isinstance(schema, dict):
        yield from schema.get(_OPTIONS, {}).get("properties", {})
        for inner in schema.values():
            yield from _options(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _options(inner)
