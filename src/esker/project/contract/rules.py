"""The rules of a contract: options of types, `quality`, `relationships`, and columns that must be unique."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, cast

from esker.project.contract.columns import column_name
from esker.project.contract.model import (
    OPERATORS,
    Audit,
    Bound,
    PluggedIn,
    Reference,
    RowRule,
    Rule,
    Severity,
    Unique,
)
from esker.project.contract.options import Mistake, Options
from esker.project.document import Document, KeyPath
from esker.project.types import quoted

ENGINE = "esker"
"""The engine of custom rules that are SQL conditions on a row, or audits."""

_SEVERITIES: dict[str, Severity] = {
    "error": "error",
    "warning": "warning",
    "warn": "warning",
    "info": "warning",
}
_BUILT_IN = ("malformed", "type", "required", "rows_read", "rows_bad")
_FORMATS = {
    "email": r"^[^@\s]+@[^@\s]+\.[^@\s]+$",
    "uuid": r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$",
    "uri": r"^[A-Za-z][A-Za-z0-9+.-]*:\S+$",
    "hostname": r"^[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?$",
    "ipv4": r"^((25[0-5]|2[0-4]\d|1?\d?\d)(\.|$)){4}$",
    "ipv6": r"^[0-9a-fA-F:]{2,39}(%\w+)?$",
}


class RuleReader:
    """Reads the rules of one table of a contract."""

    def __init__(self, document: Document, table: KeyPath) -> None:
        self.document, self.table = document, table
        self.rules: list[Rule] = []
        self.audits: list[Audit] = []
        self.notes: list[str] = []

    def read(self) -> None:
        """Read all rules, or raise Mistake."""
        declared = self.document.at(self.table)
        for index, each in enumerate(declared.get("properties") or ()):
            self._of_property((*self.table, "properties", index), each, column_name(each), _Plain())
        keys = [each for each in declared.get("properties") or () if each.get("primaryKey")]
        if keys:
            keys.sort(key=lambda each: each.get("primaryKeyPosition") or 0)
            self._add(self.table, Unique("primary_key", tuple(column_name(each) for each in keys)))
        for index, each in enumerate(declared.get("relationships") or ()):
            self._relationship((*self.table, "relationships", index), each, None)
        for index, each in enumerate(declared.get("quality") or ()):
            self._quality((*self.table, "quality", index), each, None, _Plain())
        self._freshness()

    def _add(self, path: KeyPath, rule: Rule | Audit) -> None:
        if rule.name in _BUILT_IN:
            raise Mistake(path, f'"{rule.name}" is the name of a check that every row goes through')
        if any(rule.name == other.name for other in (*self.rules, *self.audits)):
            raise Mistake(path, f'two rules are called "{rule.name}"', "Give one of them another name:")
        if isinstance(rule, Audit):
            self.audits.append(rule)
        else:
            self.rules.append(rule)

    def _of_property(self, path: KeyPath, declared: dict[str, Any], name: str, around: _Around) -> None:
        """Read the rules of a property and of what is inside it."""
        options = declared.get("logicalTypeOptions") or {}
        self._options(path, declared, options, name, around)
        if declared.get("enum") is not None:
            values = [each["value"] for each in declared["enum"]]
            self._one_of(path, (*path, "enum"), name, around, f"{name}.enum", values)
        is_top = isinstance(around, _Plain)
        if declared.get("required") and not is_top:
            # The table itself refuses rows that lack a required column; inside others nobody does.
            self._row(
                path, f"{name}.required", name, around, "{value} IS NOT NULL", "has no value", sees_null=True
            )
        if declared.get("unique") and not declared.get("primaryKey"):
            if not is_top:
                raise Mistake((*path, "unique"), "only a column of its own can be unique")
            limits = Options(self.document, path).limits()
            self._add(path, Unique(f"{name}.unique", (name,), limits=limits))
        for index, each in enumerate(declared.get("relationships") or ()):
            self._relationship((*path, "relationships", index), each, name if is_top else None)
        for index, each in enumerate(declared.get("quality") or ()):
            self._quality((*path, "quality", index), each, name, around)
        for index, each in enumerate(declared.get("properties") or ()):
            inner = (
                _Field(around, column_name(each)) if not is_top else _Field(_Column(name), column_name(each))
            )
            self._of_property((*path, "properties", index), each, f"{name}.{column_name(each)}", inner)
        if isinstance(declared.get("items"), dict):
            outer = _Column(name) if is_top else around
            self._of_property((*path, "items"), declared["items"], f"{name}.element", _Element(outer))

    def _options(
        self, path: KeyPath, declared: dict[str, Any], options: dict[str, Any], name: str, around: _Around
    ) -> None:
        place = (*path, "logicalTypeOptions")
        kind = declared.get("logicalType")
        _check_bounds(place, options)

        def literal(option: str) -> str:
            return _literal(options[option], kind)

        def row(option: str, condition: str, why: str) -> None:
            self._row((*place, option), f"{name}.{option}", name, around, condition, why)

        for option, sign, why in (
            ("minimum", ">=", "is less than"),
            ("maximum", "<=", "is more than"),
            ("exclusiveMinimum", ">", "is not more than"),
            ("exclusiveMaximum", "<", "is not less than"),
        ):
            if option in options:
                row(option, f"{{value}} {sign} {literal(option)}", f"{why} {options[option]}")
        if "multipleOf" in options:
            # As decimals: 19.99 is no multiple of 0.01 among doubles.
            divisor = f"CAST('{options['multipleOf']}' AS DECIMAL(38,18))"
            row(
                "multipleOf",
                f"TRY_CAST({{value}} AS DECIMAL(38,18)) % {divisor} = 0",
                f"is no multiple of {options['multipleOf']}",
            )
        for option, function, sign, why in (
            ("minLength", "char_length", ">=", "is shorter than {} characters"),
            ("maxLength", "char_length", "<=", "is longer than {} characters"),
            ("minItems", "size", ">=", "has fewer than {} items"),
            ("maxItems", "size", "<=", "has more than {} items"),
        ):
            if option in options:
                row(
                    option,
                    f"{function}({{value}}) {sign} {int(options[option])}",
                    why.format(options[option]),
                )
        if options.get("uniqueItems"):
            row("uniqueItems", "size(array_distinct({value})) = size({value})", "has an item twice")
        if "pattern" in options:
            row(
                "pattern",
                f"{{value}} RLIKE {_text(str(options['pattern']))}",
                f"does not match {options['pattern']}",
            )
        wanted = options.get("format")
        if kind == "string" and wanted in _FORMATS:
            row("format", f"{{value}} RLIKE {_text(_FORMATS[wanted])}", f"is no {wanted}")
        elif kind == "string" and wanted not in (None, "byte", "binary", "password"):
            self.notes.append(f'{name}: format "{wanted}" is not checked')

    def _one_of(
        self,
        path: KeyPath,
        place: KeyPath,
        name: str,
        around: _Around,
        rule: str,
        values: list[Any],
        **facts: Any,
    ) -> None:
        if not values:
            raise Mistake(place, "no value at all is allowed here")
        shown = ", ".join(str(value) for value in values[:10]) + (", …" if len(values) > 10 else "")
        literals = ", ".join(_literal(value) for value in values)
        self._row(place, rule, name, around, f"{{value}} IN ({literals})", f"is none of {shown}", **facts)

    def _row(
        self,
        path: KeyPath,
        rule: str,
        name: str,
        around: _Around,
        condition: str,
        why: str,
        *,
        sees_null: bool = False,
        **facts: Any,
    ) -> None:
        outer = _Column(name) if isinstance(around, _Plain) else around
        mark = self.document.mark(path)
        self._add(
            path,
            RowRule(
                name=rule,
                condition=outer.every(lambda value: condition.replace("{value}", value), sees_null),
                why=why,
                column=name,
                shown=outer.shown,
                file=self.document.file,
                line=mark.line if mark else None,
                **({"limits": Options(self.document, self._property_of(path)).limits()} | facts),
            ),
        )

    def _property_of(self, path: KeyPath) -> KeyPath:
        """Return the property, or the rule, that a place belongs to."""
        for length in range(len(path), 0, -1):
            if isinstance(path[length - 1], int):
                return path[:length]
        return path

    def _quality(self, path: KeyPath, declared: dict[str, Any], name: str | None, around: _Around) -> None:
        kind = declared.get("type") or ("library" if "metric" in declared or "rule" in declared else "text")
        label = declared.get("name") or declared.get("id")
        match kind:
            case "text":
                self.notes.append(f"{label or name or 'a rule'} is text: nobody checks it")
            case "library":
                self._library(path, declared, label, name, around)
            case "sql":
                self._sql(path, declared, label, name)
            case "custom":
                self._custom(path, declared, label, name, around)

    def _library(
        self, path: KeyPath, declared: dict[str, Any], label: str | None, name: str | None, around: _Around
    ) -> None:
        metric = declared.get("metric") or declared.get("rule")
        bound = self._bound(path, declared)
        rule = label or ".".join(part for part in (name, str(metric)) if part)
        given = declared.get("arguments") or {}
        if metric == "rowCount":
            mark = self.document.mark(path)
            line = mark.line if mark else None
            self._add(path, Audit(rule, "row_count", bound, severity=_severity(path, declared), line=line))
            return
        # A share of bad rows that is allowed is a matter of the batch; if none is, of each row.
        facts: dict[str, Any] = {
            "severity": _severity(path, declared),
            "bound": None if bound.admits_none else bound,
            "limits": Options(self.document, path).limits(),
        }
        if metric == "duplicateValues":
            columns = tuple(given.get("properties") or ([name] if name else ()))
            if not columns:
                raise Mistake(path, "duplicateValues of a table needs arguments: {properties: […]}")
            self._add(path, Unique(rule, columns, **facts))
            return
        if name is None:
            raise Mistake(path, f"{metric} belongs to a property, not to the table")
        match metric:
            case "nullValues":
                self._row(
                    path, rule, name, around, "{value} IS NOT NULL", "has no value", sees_null=True, **facts
                )
            case "missingValues":
                missing = [value for value in given.get("missingValues") or ["", None] if value is not None]
                literals = ", ".join(_literal(value) for value in missing)
                test = (
                    f"{{value}} IS NOT NULL AND {{value}} NOT IN ({literals})"
                    if missing
                    else "{value} IS NOT NULL"
                )
                self._row(path, rule, name, around, test, "counts as missing", sees_null=True, **facts)
            case "invalidValues":
                if "validValues" in given:
                    place = (*path, "arguments", "validValues")
                    self._one_of(path, place, name, around, rule, list(given["validValues"]), **facts)
                elif "pattern" in given:
                    condition = f"{{value}} RLIKE {_text(str(given['pattern']))}"
                    self._row(
                        path, rule, name, around, condition, f"does not match {given['pattern']}", **facts
                    )
                else:
                    raise Mistake(path, "invalidValues needs arguments: {validValues: […]} or {pattern: …}")
            case _:
                raise Mistake((*path, "metric"), f'metric "{metric}" is not known')

    def _sql(self, path: KeyPath, declared: dict[str, Any], label: str | None, name: str | None) -> None:
        query = str(declared["query"])
        for word in ("${object}", "{object}", "${table}", "{table}"):
            query = query.replace(word, "{table}")
        for word in ("${property}", "{property}", "${column}", "{column}"):
            query = query.replace(word, quoted(name) if name else word)
        mark = self.document.mark((*path, "query"))
        self._add(
            path,
            Audit(
                label or ".".join(part for part in (name, "sql") if part),
                "sql",
                self._bound(path, declared),
                query=query,
                severity=_severity(path, declared),
                line=mark.line if mark else None,
            ),
        )

    def _custom(
        self, path: KeyPath, declared: dict[str, Any], label: str | None, name: str | None, around: _Around
    ) -> None:
        given = declared["implementation"]
        severity = _severity(path, declared)
        limits = Options(self.document, path).limits()
        if declared["engine"].lower() != ENGINE:
            rule = label or ".".join(part for part in (name, declared["engine"]) if part)
            self._add(path, PluggedIn(rule, declared["engine"], given, name, severity, limits))
            return
        place = (*path, "implementation")
        if isinstance(given, dict) and "rowCountChange" in given:
            self._row_count_change((*place, "rowCountChange"), given["rowCountChange"], label, severity)
            return
        condition = given if isinstance(given, str) else given.get("condition")
        if not isinstance(condition, str) or not condition.strip():
            raise Mistake(
                place, "write a SQL condition that holds for good rows, or {condition: …, reason: …}"
            )
        reason = given.get("reason") if isinstance(given, dict) else None
        mark = self.document.mark(place)
        self._add(
            path,
            RowRule(
                name=label or ".".join(part for part in (name, "condition") if part),
                condition=condition,
                why=str(reason or declared.get("description") or f"breaks {condition}"),
                column=name,
                shown=(_Column(name) if isinstance(around, _Plain) else around).shown if name else None,
                severity=severity,
                limits=limits,
                file=self.document.file,
                line=mark.line if mark else None,
            ),
        )

    def _row_count_change(self, path: KeyPath, given: Any, label: str | None, severity: Severity) -> None:
        against = given.get("against", "previous") if isinstance(given, dict) else None
        if against not in ("previous", "weekday"):
            raise Mistake(path, "write {against: previous | weekday, mustBeBetween: [-10, 50]}, in percent")
        bound = self._bound(path, given)
        self._add(
            path,
            Audit(
                label or f"row_count_change.{against}",
                "row_count_change",
                Bound(bound.operator, bound.value),
                against=cast(Literal["previous", "weekday"], against),
                severity=severity,
            ),
        )

    def _bound(self, path: KeyPath, declared: dict[str, Any]) -> Bound:
        operator = next((name for name in OPERATORS if name in declared), None)
        if operator is None:
            raise Mistake(path, "one operator is needed, such as mustBe or mustBeLessThan")
        value = declared[operator]
        if operator.endswith("Between") and value[0] > value[1]:
            raise Mistake((*path, operator), "the smaller number comes first")
        unit = str(declared.get("unit") or "rows").lower()
        return Bound(operator, value, is_percent=unit in ("percent", "%"))

    def _relationship(self, path: KeyPath, declared: dict[str, Any], name: str | None) -> None:
        start = [name] if name else _listed(declared.get("from"))
        targets = [each.rsplit(".", 1) for each in _listed(declared.get("to"))]
        if not start or any(len(target) != 2 for target in targets) or len(start) != len(targets):
            raise Mistake(path, "write to: table.column, and from: a column of this table")
        tables = {target[0] for target in targets}
        if len(tables) > 1:
            raise Mistake((*path, "to"), "all columns must be of one table")
        columns = (name,) if name else tuple(each.rsplit(".", 1)[-1] for each in start)
        self._add(
            path,
            Reference(
                declared.get("id") or f"{'+'.join(columns)}.reference",
                columns,
                tables.pop(),
                tuple(target[1] for target in targets),
                limits=Options(self.document, path).limits(),
            ),
        )

    def _freshness(self) -> None:
        """Read how old the newest row may be, from the service level agreements."""
        table = self.document.at(self.table)
        names = {str(table.get("name")), str(table.get("physicalName"))}
        units = {
            "d": 1440,
            "day": 1440,
            "days": 1440,
            "h": 60,
            "hour": 60,
            "hours": 60,
            "m": 1,
            "min": 1,
            "minute": 1,
            "minutes": 1,
            "y": 525_600,
            "year": 525_600,
            "years": 525_600,
        }
        for index, each in enumerate(self.document.at(("slaProperties",)) or ()):
            if each.get("property") not in ("latency", "freshness", "ly", "fr"):
                continue
            path = ("slaProperties", index)
            element = str(each.get("element") or self.document.data.get("slaDefaultElement") or "")
            owner, _, column = element.rpartition(".")
            if owner and owner not in names:
                continue
            if not column:
                raise Mistake(path, "name the column with the moments: element: table.column")
            unit = units.get(str(each.get("unit") or "d").lower())
            if unit is None or isinstance(each["value"], bool) or not isinstance(each["value"], int | float):
                raise Mistake(path, "write value: as a number, and unit: as d, h or min")
            mark = self.document.mark(path)
            self._add(
                path,
                Audit(
                    f"{column}.freshness",
                    "freshness",
                    Bound("mustBeLessOrEqualTo", each["value"] * unit),
                    column=column,
                    line=mark.line if mark else None,
                ),
            )


def _check_bounds(place: KeyPath, options: dict[str, Any]) -> None:
    """Raise Mistake for bounds that no value can keep to."""
    for low, high in (
        ("minimum", "maximum"),
        ("minLength", "maxLength"),
        ("minItems", "maxItems"),
        ("minProperties", "maxProperties"),
    ):
        if low in options and high in options and _above(options[low], options[high]):
            raise Mistake((*place, low), f"{low} is more than {high}: no value can be both")
    for low, high in (
        ("exclusiveMinimum", "maximum"),
        ("minimum", "exclusiveMaximum"),
        ("exclusiveMinimum", "exclusiveMaximum"),
    ):
        if low in options and high in options and not _above(options[high], options[low]):
            raise Mistake((*place, low), f"{low} is not less than {high}: no value can be both")


class _Around:
    """Where a value stands: how a condition on it becomes one on the row."""

    shown: str
    """SQL for what is shown of it: the value, or the list that it stands in."""

    def every(self, test: Callable[[str], str], sees_null: bool) -> str:
        raise NotImplementedError


class _Plain(_Around):
    """The table itself."""


class _Column(_Around):
    """A column of the table."""

    def __init__(self, name: str) -> None:
        self.shown = quoted(name)

    def every(self, test: Callable[[str], str], sees_null: bool) -> str:
        return test(self.shown)


class _Field(_Around):
    """A field of a struct; a struct that is missing breaks no rule on its fields."""

    def __init__(self, struct: _Around, name: str) -> None:
        self.struct, self.name = struct, name
        self.shown = struct.shown if _depth(struct) else f"{struct.shown}.{quoted(name)}"

    def every(self, test: Callable[[str], str], sees_null: bool) -> str:
        def inside(value: str) -> str:
            found = test(f"{value}.{quoted(self.name)}")
            return f"({value} IS NULL OR ({found}))" if sees_null else found

        return self.struct.every(inside, sees_null)


class _Element(_Around):
    """The elements of a list."""

    def __init__(self, array: _Around) -> None:
        self.array, self.shown = array, array.shown
        self.variable = f"e{1 + _depth(array)}"

    def every(self, test: Callable[[str], str], sees_null: bool) -> str:
        inner = f"coalesce({test(self.variable)}, true)"
        return self.array.every(lambda value: f"forall({value}, {self.variable} -> {inner})", sees_null=False)


def _depth(around: _Around) -> int:
    if isinstance(around, _Element):
        return 1 + _depth(around.array)
    return _depth(around.struct) if isinstance(around, _Field) else 0


def _severity(path: KeyPath, declared: dict[str, Any]) -> Severity:
    text = str(declared.get("severity") or "error").lower()
    if text not in _SEVERITIES:
        raise Mistake((*path, "severity"), f'severity "{text}" is not known; write error or warning')
    return _SEVERITIES[text]


def _listed(value: Any) -> list[str]:
    return [] if value is None else [value] if isinstance(value, str) else list(value)


def _above(one: Any, other: Any) -> bool:
    try:
        return bool(one > other)
    except TypeError:
        return str(one) > str(other)


def _text(value: str) -> str:
    """Return a text as a literal of Spark's SQL."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _literal(value: Any, kind: Any = None) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if kind in ("date", "timestamp"):
        return f"{kind.upper()} {_text(str(value))}"
    return _text(str(value))
