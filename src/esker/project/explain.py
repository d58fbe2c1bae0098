"""Turn what the models refuse into problems that a person can act on."""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from esker.errors import Problem
from esker.project.declaration import MistakeAt
from esker.project.document import Document, KeyPath
from esker.project.suggest import closest


def explain(error: ValidationError, document: Document, root: type[BaseModel]) -> list[Problem]:
    """Return one problem per mistake, each pointing into the document."""
    problems = [_problem(detail, document, root) for detail in error.errors(include_url=False)]
    # A mistake in defaults: shows up in every pipeline, always with the same place in the file.
    return list({(found.line, found.column, found.message): found for found in reversed(problems)}.values())


def _problem(detail: ErrorDetails, document: Document, root: type[BaseModel]) -> Problem:
    path = _existing(detail["loc"], document)
    kind, context = detail["type"], detail.get("ctx") or {}
    last = str(detail["loc"][-1]) if detail["loc"] else ""
    match kind:
        case "extra_forbidden":
            known = _keys_at(root, detail["loc"][:-1])
            guess = closest(last, known)
            hint = f'did you mean "{guess}"?' if guess else "known keys: " + ", ".join(sorted(known))
            return document.problem(path, f'unknown key "{last}"; {hint}')
        case "missing":
            return document.problem(path, f'key "{last}" is missing')
        case "literal_error":
            wanted = str(context.get("expected", ""))
            words = [word.strip(" '") for word in wanted.replace(" or ", ",").split(",")]
            guess = closest(str(detail["input"]), words)
            hint = f'did you mean "{guess}"?' if guess else f"expected {wanted}"
            return document.problem(path, f'"{detail["input"]}" is not known here; {hint}')
        case "union_tag_invalid":
            guess = closest(str(context["tag"]), _words(context["expected_tags"]))
            hint = f'did you mean "{guess}"?' if guess else f"known: {context['expected_tags']}"
            return document.problem((*path, "type"), f'unknown type "{context["tag"]}"; {hint}')
        case "union_tag_not_found":
            return document.problem(path, 'key "type" is missing')
        case "string_pattern_mismatch":
            return document.problem(path, f'"{detail["input"]}" {_pattern_in_words(context["pattern"])}')
        case "value_error":
            mistake = context["error"]
            below = mistake.path if isinstance(mistake, MistakeAt) else ()
            return document.problem((*path, *below), str(mistake))
        case "string_type":
            return document.problem(path, f"expected text, found {_shown(detail['input'])}")
        case "dict_type" | "model_type" | "model_attributes_type":
            return document.problem(path, f"expected keys and values, found {_shown(detail['input'])}")
        case "list_type":
            return document.problem(path, f"expected a list, found {_shown(detail['input'])}")
        case _:
            return document.problem(path, detail["msg"][0].lower() + detail["msg"][1:])


def _existing(loc: Iterable[str | int], document: Document) -> KeyPath:
    """Return the part of an error's location that stands in the document.

    Names of union members and missing keys are in the location but not in the file.
    """
    path: KeyPath = ()
    for part in loc:
        inside = document.at(path)
        is_key = isinstance(inside, dict) and part in inside
        if is_key or (isinstance(inside, list) and isinstance(part, int)):
            path = (*path, part)
    return path


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "keys and values"
    if isinstance(value, list):
        return "a list"
    return f'"{value}"'


def _words(tags: str) -> list[str]:
    return [tag.strip(" '") for tag in tags.split(",")]


def _pattern_in_words(pattern: str) -> str:
    if pattern.startswith("^[a-z]"):
        return "is no name: lower-case letters, digits and _ only, beginning with a letter"
    if pattern.startswith("^[1-9][0-9]*[mg"):
        return "is no amount of memory; write 512m or 4g"
    if r"(\." in pattern:
        return "is no table name; write namespace.table with letters, digits and _"
    return f"does not match {pattern}"


def _keys_at(root: type[BaseModel], loc: Iterable[str | int]) -> list[str]:
    """Return the keys that the models know at a location."""
    candidates: list[Any] = [root]
    for part in loc:
        candidates = [inner for kind in candidates for inner in _inside(kind, part)]
    return sorted(
        {
            name
            for kind in candidates
            if isinstance(kind, type) and issubclass(kind, BaseModel)
            for name in _fields(kind)
        }
    )


def _fields(kind: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return a model's fields by the keys that users write."""
    return {field.alias or name: field for name, field in kind.model_fields.items()}


def _inside(kind: Any, part: str | int) -> list[Any]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        if (field := _fields(kind).get(str(part))) is not None:
            return _alternatives(field.annotation)
        tag = kind.model_fields.get("type")
        is_tag = tag is not None and get_origin(tag.annotation) is Literal
        return [kind] if is_tag and tag is not None and part in get_args(tag.annotation) else []
    if get_origin(kind) is dict:
        return _alternatives(get_args(kind)[1])
    if get_origin(kind) is list:
        return _alternatives(get_args(kind)[0])
    return []


def _alternatives(annotation: Any) -> list[Any]:
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        return [inner for arg in get_args(annotation) for inner in _alternatives(arg)]
    if hasattr(annotation, "__metadata__"):
        return _alternatives(get_args(annotation)[0])
    return [annotation]
