"""Contracts of v3.0 of the standard, put into the words of the versions after it.

From v3.1 on a library rule names a `metric`, and exclusive bounds are numbers. What was written before is
turned into that here, so that everything else knows one standard only.
"""

from __future__ import annotations

from datetime import date
from typing import Any

from esker.project.contract.model import OPERATORS
from esker.project.document import Document, KeyPath

_METRICS = {
    "rowCount": "rowCount",
    "countCheck": "rowCount",
    "duplicateCount": "duplicateValues",
    "uniqueCheck": "duplicateValues",
    "nullCheck": "nullValues",
    "validValues": "invalidValues",
}
"""By a rule of v3.0, as the standard's text and examples have them, the metric that measures the same."""


def is_old(document: Document) -> bool:
    """Tell whether a contract is written in the words of v3.0."""
    return str(document.data.get("apiVersion")).startswith("v3.0.")


def modernize(document: Document) -> None:
    """Put a contract into the words of today. A rule that has no such words becomes text."""
    document.data = _with_texts(document.data)
    if is_old(document):
        if document.data.get("status") == "current":
            document.data["status"] = "active"
        _modernize(document, ("schema",))


def _with_texts(value: Any) -> Any:
    """Return a value with its dates as texts: YAML makes dates of them, the standard knows none."""
    if isinstance(value, dict):
        return {key: _with_texts(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_texts(inner) for inner in value]
    return value.isoformat() if isinstance(value, date) else value


def _modernize(document: Document, path: KeyPath) -> None:
    """Put all that stands below a place into the words of today."""
    inside = document.at(path)
    if isinstance(inside, list):
        for index, each in enumerate(inside):
            if path[-1] == "quality" and isinstance(each, dict):
                document.put((*path, index), _rule(document, (*path, index), each))
            else:
                _modernize(document, (*path, index))
    elif isinstance(inside, dict):
        if path[-1] == "logicalTypeOptions":
            _make_numbers(inside)
        for key in inside:
            if key != "customProperties":
                _modernize(document, (*path, key))


def _make_numbers(options: dict[str, Any]) -> None:
    """Make numbers of `exclusiveMaximum: true`, which says that `maximum` is not allowed itself."""
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(options.get(exclusive), bool) and options.pop(exclusive) and bound in options:
            options[exclusive] = options.pop(bound)


def _rule(document: Document, path: KeyPath, declared: dict[str, Any]) -> dict[str, Any]:
    """Return a library rule with its metric; one that has none as text, which is told to be unchecked."""
    name = declared.get("rule")
    if "metric" in declared or not isinstance(name, str) or declared.get("type", "library") != "library":
        return declared
    metric = _METRICS.get(name, name)
    has_operator = any(operator in declared for operator in OPERATORS)
    if metric not in _METRICS.values():
        return _text(document, path, f'rule "{name}", which is not known here,')
    if metric == "rowCount" and not has_operator:
        return _text(document, path, f'rule "{name}", which says no number,')
    found = {key: value for key, value in declared.items() if key not in ("rule", "validValues")}
    given = found.get("arguments") or {}
    if "validValues" in declared and isinstance(given, dict):
        found["arguments"] = {"validValues": declared["validValues"], **given}
    # A list of what is valid, or that nothing may be missing, is all that v3.0 says of these.
    return {**found, "metric": metric, **({} if has_operator else {"mustBe": 0})}


def _text(document: Document, path: KeyPath, name: str) -> dict[str, Any]:
    mark = document.mark(path)
    return {"type": "text", "name": f"line {mark.line}: {name}" if mark else name}
