"""How bad it is to break a rule. The standard has a word for it below `quality` only; elsewhere a custom
property says it: of all rules of a column, or of each by its name."""

from __future__ import annotations

from typing import Any

from esker.project.contract.model import Severity
from esker.project.contract.options import Mistake, Options
from esker.project.document import Document, KeyPath
from esker.project.suggest import closest

_KNOWN: dict[str, Severity] = {
    "error": "error",
    "warning": "warning",
    "warn": "warning",
    "info": "warning",
}
_ALWAYS_ERRORS = {
    "type": "a value of another type cannot be stored",
    "required": "the table stores no row without a required value",
    "primaryKey": "rows are told apart by it",
}


class Severities:
    """What `severity` among the custom properties of a place says of its rules."""

    def __init__(self, document: Document, path: KeyPath) -> None:
        options = Options(document, path)
        self._place, self._said = options.place("severity"), options.get("severity")
        self._declared = document.at(path)
        self._asked: set[str] = set()
        """The rules that there are."""

    def of(self, rule: str) -> Severity:
        """Return the severity of a rule of the column: `minimum`, `pattern`, `unique`."""
        self._asked.add(rule)
        said = self._said.get(rule) if isinstance(self._said, dict) else self._said
        return "error" if said is None else parse_severity(self._place, said)

    def only(self) -> Severity:
        """Return the severity of what is one rule by itself."""
        if isinstance(self._said, dict):
            raise Mistake(self._place, "write error or warning: this is one rule")
        return self.of("")

    def check(self) -> None:
        """Raise Mistake for a severity that is of no rule, or of one that must be an error."""
        if self._said is None:
            return
        if not isinstance(self._said, dict):
            if not self._asked:
                why = f"; {_ALWAYS_ERRORS['primaryKey']}" if self._declared.get("primaryKey") else ""
                raise Mistake(self._place, f"the column has no rule that can be a warning{why}")
            return
        for rule in self._said:
            if rule in self._asked:
                continue
            if rule in _ALWAYS_ERRORS or (rule == "unique" and self._declared.get("primaryKey")):
                why = _ALWAYS_ERRORS.get(rule, _ALWAYS_ERRORS["primaryKey"])
                raise Mistake(self._place, f"{rule} is always an error: {why}")
            guess = closest(rule, sorted(self._asked))
            hint = f'; did you mean "{guess}"?' if guess else "; those of quality: have their own severity"
            raise Mistake(self._place, f'the column has no rule "{rule}"{hint}')


def parse_severity(place: KeyPath, said: Any) -> Severity:
    """Return a severity from its word, or raise Mistake."""
    text = str(said).lower()
    if text not in _KNOWN:
        raise Mistake(place, f'severity "{text}" is not known; write error or warning')
    return _KNOWN[text]
