"""The rules of a contract: options of types, `quality`, `relationships`, and columns that must be unique."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Any, Literal, cast

from esker.project.contract.arguments import Arguments, plain_values
from esker.project.contract.columns import column_name
from esker.project.contract.contradictions import (
    Counts,
    ValueSet,
    check_bounds,
    check_values,
    check_whole,
)
from esker.project.contract.model import (
    OPERATORS,
    Audit,
    Bound,
    ColumnTest,
    ContractColumn,
    PluggedIn,
    Reference,
    RowRule,
    Rule,
    Severity,
    Unique,
)
from esker.project.contract.options import Mistake, Options
from esker.project.contract.severity import Severities, parse_severity
from esker.project.contract.type_options import (
    check_numbers,
    field_tests,
    matches,
    option_tests,
    unchecked_options,
)
from esker.project.contract.value import ColumnValue, Value, is_number, sql_value
from esker.project.document import Document, KeyPath
from esker.project.types import Array, Map, Struct, Type, quoted

ENGINE = "esker"
"""The engine of custom rules that are SQL conditions on a row, or audits."""

_THERE = "{value} IS NOT NULL"
_BUILT_IN = ("malformed", "type", "required", "rows_read", "rows_bad")


class RuleReader:
    """Reads the rules of one table of a contract."""

    def __init__(self, document: Document, table: KeyPath, columns: Sequence[ContractColumn]) -> None:
        self.document, self.table = document, table
        self._types = {each.name.lower(): each.column.type for each in columns}
        self.rules: list[Rule] = []
        self.audits: list[Audit] = []
        self.notes: list[str] = []
        self._places: dict[str, KeyPath] = {}
        self._counts = Counts()

    def place(self, name: str) -> KeyPath:
        """Return where a rule stands."""
        return self._places[name]

    def read(self) -> None:
        """Read all rules, or raise Mistake."""
        declared = self.document.at(self.table)
        for index, each in enumerate(declared.get("properties") or ()):
            name = column_name(each)
            kind = self._types.get(name.lower())
            self._of_property((*self.table, "properties", index), each, ColumnValue(name), kind)
        keys = [each for each in declared.get("properties") or () if each.get("primaryKey")]
        if keys:
            keys.sort(key=lambda each: each.get("primaryKeyPosition") or 0)
            self._add(self.table, Unique("primary_key", tuple(column_name(each) for each in keys)))
        for index, each in enumerate(declared.get("relationships") or ()):
            self._relationship((*self.table, "relationships", index), each, None)
        for index, each in enumerate(declared.get("quality") or ()):
            self._quality((*self.table, "quality", index), each, None)
        self._freshness()

    def _add(self, path: KeyPath, rule: Rule | Audit) -> None:
        if rule.name in _BUILT_IN:
            raise Mistake(path, f'"{rule.name}" is the name of a check that every row goes through')
        taken = {other.name for other in (*self.rules, *self.audits)}
        if rule.name in taken:
            if _label(self.document.at(path)) is not None:
                raise Mistake(path, f'two rules are called "{rule.name}"', "Give one of them another name:")
            # Nobody gave it a name: it takes its turn.
            others = (f"{rule.name}.{number}" for number in count(2))
            rule = replace(rule, name=next(name for name in others if name not in taken))
        self._places[rule.name] = path
        if isinstance(rule, Audit):
            self.audits.append(rule)
        else:
            self.rules.append(rule)

    def _of_property(self, path: KeyPath, declared: dict[str, Any], value: Value, kind: Type | None) -> None:
        """Read the rules of a property and of what is inside it."""
        is_column = isinstance(value, ColumnValue)
        severities = Severities(self.document, path)
        self._options(path, declared, value, kind, severities)
        if declared.get("enum") is not None:
            values = plain_values((*path, "enum"), [each["value"] for each in declared["enum"]])
            severity = severities.of("enum")
            self._one_of((*path, "enum"), f"{value.name}.enum", value, values, severity=severity)
        if declared.get("unique") and not declared.get("primaryKey"):
            if not is_column:
                raise Mistake((*path, "unique"), "only a column of its own can be unique")
            limits, severity = Options(self.document, path).limits(), severities.of("unique")
            self._add(path, Unique(f"{value.name}.unique", (value.name,), severity, limits))
        severities.check()
        self._check_values(path, declared, kind, severities)
        for index, each in enumerate(declared.get("relationships") or ()):
            self._relationship((*path, "relationships", index), each, value.name if is_column else None)
        for index, each in enumerate(declared.get("quality") or ()):
            self._quality((*path, "quality", index), each, value)
        for index, each in enumerate(declared.get("properties") or ()):
            name = column_name(each)
            self._of_property((*path, "properties", index), each, value.field(name), _field_type(kind, name))
        if isinstance(declared.get("items"), dict):
            element = kind.element if isinstance(kind, Array) else None
            self._of_property((*path, "items"), declared["items"], value.element(), element)
        of_key, of_value = (kind.key, kind.value) if isinstance(kind, Map) else (None, None)
        for part, inside, of_part in (("key", value.key(), of_key), ("value", value.value(), of_value)):
            inner = (declared.get("map") or {}).get(part)
            if isinstance(inner, dict):
                self._of_property((*path, "map", part), inner, inside, of_part)

    def _options(
        self,
        path: KeyPath,
        declared: dict[str, Any],
        value: Value,
        kind: Type | None,
        severities: Severities,
    ) -> None:
        place, logical = (*path, "logicalTypeOptions"), declared.get("logicalType")
        options = declared.get("logicalTypeOptions") or {}
        check_numbers(place, options)
        check_bounds(place, kind, options)
        fields = [column_name(each) for each in declared.get("properties") or ()]
        for missing in (name for name in options.get("required") or () if fields and name not in fields):
            raise Mistake((*place, "required"), f'there is no field "{missing}"')
        tests = (*option_tests(logical, kind, options), *field_tests(options, fields))
        for option, condition, why, known in tests:
            name, severity = f"{value.name}.{option}", severities.of(option)
            self._row((*place, option), name, value, condition, why, known, severity=severity)
        for unchecked in unchecked_options(logical, kind, options, fields):
            self.notes.append(f"{value.name}: {unchecked} is not checked")

    def _check_values(
        self, path: KeyPath, declared: dict[str, Any], kind: Type | None, severities: Severities
    ) -> None:
        """Raise Mistake when no value keeps to all rules of a property. Warnings may say what they like."""
        sets: list[ValueSet] = []
        if declared.get("enum") is not None and severities.of("enum") == "error":
            values = [each["value"] for each in declared["enum"]]
            sets.append(ValueSet((*path, "enum"), "enum", values))
        for index, each in enumerate(declared.get("quality") or ()):
            place = (*path, "quality", index)
            given = Arguments(place, each)
            if each.get("metric") != "invalidValues" or "validValues" not in given:
                continue
            if _severity(place, each) == "error" and self._bound(place, each).admits_none:
                values = given.values("validValues")
                sets.append(ValueSet(given.place("validValues"), _label(each) or "invalidValues", values))
        options = declared.get("logicalTypeOptions") or {}
        strict = {name: value for name, value in options.items() if severities.of(name) == "error"}
        check_whole((*path, "logicalTypeOptions"), kind, strict)
        check_values(declared.get("logicalType"), kind, strict, sets)

    def _one_of(self, path: KeyPath, rule: str, value: Value, values: list[Any], **facts: Any) -> None:
        if not values:
            raise Mistake(path, "no value at all is allowed here")
        shown = ", ".join(str(each) for each in values[:10]) + (", …" if len(values) > 10 else "")
        literals = ", ".join(sql_value(each) for each in values)
        condition, known = f"{{value}} IN ({literals})", ColumnTest("one_of", tuple(values))
        self._row(path, rule, value, condition, f"is none of {shown}", known, **facts)

    def _row(
        self,
        path: KeyPath,
        rule: str,
        value: Value,
        condition: str,
        why: str,
        test: ColumnTest | None,
        *,
        sees_null: bool = False,
        **facts: Any,
    ) -> None:
        """Add a rule: a condition on `{value}`, and the same as a value if it can be said so."""
        self._add(
            path,
            RowRule(
                name=rule,
                condition=value.every(lambda text: condition.replace("{value}", text), sees_null),
                why=why,
                column=value.name,
                shown=value.shown,
                file=self.document.file,
                line=self._line(path),
                test=test if isinstance(value, ColumnValue) else None,
                **({"limits": Options(self.document, self._property_of(path)).limits()} | facts),
            ),
        )

    def _line(self, path: KeyPath) -> int | None:
        mark = self.document.mark(path)
        return mark.line if mark else None

    def _property_of(self, path: KeyPath) -> KeyPath:
        """Return the property, or the rule, that a place belongs to."""
        for length in range(len(path), 0, -1):
            if isinstance(path[length - 1], int):
                return path[:length]
        return path

    def _quality(self, path: KeyPath, declared: dict[str, Any], value: Value | None) -> None:
        """Read a rule below `quality`: of a value, or of the table."""
        kind = declared.get("type") or ("library" if "metric" in declared or "rule" in declared else "text")
        match kind:
            case "text":
                named = _label(declared) or (value.name if value else "a rule")
                self.notes.append(f"{named} is text: nobody checks it")
            case "library":
                self._library(path, declared, value)
            case "sql":
                self._sql(path, declared, value)
            case "custom":
                self._custom(path, declared, value)

    def _library(self, path: KeyPath, declared: dict[str, Any], value: Value | None) -> None:
        metric = declared.get("metric") or declared.get("rule")
        bound = self._bound(path, declared)
        rule = _named(declared, value, str(metric))
        given = Arguments(path, declared)
        severity = _severity(path, declared)
        if severity == "error":
            self._counts.add(path, value.name if value else "", str(metric), given.said, bound)
        if metric == "rowCount":
            file, line = self.document.file, self._line(path)
            self._add(path, Audit(rule, "row_count", bound, severity=severity, file=file, line=line))
            return
        # A share of bad rows that is allowed is a matter of the batch; if none is, of each row.
        facts: dict[str, Any] = {
            "severity": severity,
            "bound": None if bound.admits_none else bound,
            "limits": Options(self.document, path).limits(),
        }
        if metric == "duplicateValues":
            columns = given.texts("properties") or ((value.name,) if value else ())
            if not columns:
                raise Mistake(path, "duplicateValues of a table needs arguments: {properties: […]}")
            self._add(path, Unique(rule, columns, **facts))
            return
        if value is None:
            raise Mistake(path, f"{metric} belongs to a property, not to the table")
        match metric:
            case "nullValues":
                known = ColumnTest("there")
                self._row(path, rule, value, _THERE, "has no value", known, sees_null=True, **facts)
            case "missingValues":
                missing = given.values("missingValues") if "missingValues" in given else [""]
                literals = ", ".join(sql_value(each) for each in missing)
                test = f"{_THERE} AND {{value}} NOT IN ({literals})" if missing else _THERE
                known = ColumnTest("not_missing", tuple(missing))
                self._row(path, rule, value, test, "counts as missing", known, sees_null=True, **facts)
            case "invalidValues" if "validValues" in given:
                values = given.values("validValues")
                self._one_of(given.place("validValues"), rule, value, values, **facts)
            case "invalidValues" if "pattern" in given:
                self._row(path, rule, value, *matches(given.text("pattern")), **facts)
            case "invalidValues":
                raise Mistake(path, "invalidValues needs arguments: {validValues: […]} or {pattern: …}")
            case _:
                raise Mistake((*path, "metric"), f'metric "{metric}" is not known')

    def _sql(self, path: KeyPath, declared: dict[str, Any], value: Value | None) -> None:
        query = str(declared["query"])
        for word in ("${object}", "{object}", "${table}", "{table}"):
            query = query.replace(word, "{table}")
        for word in ("${property}", "{property}", "${column}", "{column}"):
            query = query.replace(word, quoted(value.name) if value else word)
        self._add(
            path,
            Audit(
                _named(declared, value, "sql"),
                "sql",
                self._bound(path, declared, may_be_text=True),
                query=query,
                severity=_severity(path, declared),
                file=self.document.file,
                line=self._line((*path, "query")),
            ),
        )

    def _custom(self, path: KeyPath, declared: dict[str, Any], value: Value | None) -> None:
        given = declared["implementation"]
        severity = _severity(path, declared)
        limits = Options(self.document, path).limits()
        name = value.name if value else None
        if declared["engine"].lower() != ENGINE:
            rule = _named(declared, value, declared["engine"])
            self._add(path, PluggedIn(rule, declared["engine"], given, name, severity, limits))
            return
        place = (*path, "implementation")
        if isinstance(given, dict) and "rowCountChange" in given:
            change = given["rowCountChange"]
            self._row_count_change((*place, "rowCountChange"), change, _label(declared), severity)
            return
        condition = given if isinstance(given, str) else given.get("condition")
        if not isinstance(condition, str) or not condition.strip():
            raise Mistake(
                place, "write a SQL condition that holds for good rows, or {condition: …, reason: …}"
            )
        reason = given.get("reason") if isinstance(given, dict) else None
        self._add(
            path,
            RowRule(
                name=_named(declared, value, "condition"),
                condition=condition,
                why=str(reason or declared.get("description") or f"breaks {condition}"),
                column=name,
                shown=value.shown if value else None,
                severity=severity,
                limits=limits,
                file=self.document.file,
                line=self._line(place),
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
                file=self.document.file,
                line=self._line(path),
            ),
        )

    def _bound(self, path: KeyPath, declared: dict[str, Any], *, may_be_text: bool = False) -> Bound:
        operator = next((name for name in OPERATORS if name in declared), None)
        if operator is None:
            raise Mistake(path, "one operator is needed, such as mustBe or mustBeLessThan")
        value, place = declared[operator], (*path, operator)
        if operator.endswith("Between"):
            if not isinstance(value, list) or len(value) != 2 or not all(is_number(each) for each in value):
                raise Mistake(place, "two numbers are needed")
            if value[0] > value[1]:
                raise Mistake(place, "the smaller number comes first")
        elif not is_number(value) and not (may_be_text and isinstance(value, str | bool)):
            raise Mistake(place, "a number is needed")
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
                severity=Severities(self.document, path).only(),
                limits=Options(self.document, path).limits(),
                line=self._line(path),
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
            if unit is None or not is_number(each["value"]):
                raise Mistake(path, "write value: as a number, and unit: as d, h or min")
            self._add(
                path,
                Audit(
                    f"{column}.freshness",
                    "freshness",
                    Bound("mustBeLessOrEqualTo", each["value"] * unit),
                    column=column,
                    file=self.document.file,
                    line=self._line(path),
                ),
            )


def _field_type(kind: Type | None, name: str) -> Type | None:
    """Return the type of a field of a struct."""
    fields = kind.fields if isinstance(kind, Struct) else ()
    return next((each.type for each in fields if each.name.lower() == name.lower()), None)


def _label(declared: Any) -> str | None:
    """Return what a rule is called in the contract, if it is called anything."""
    return (declared.get("name") or declared.get("id")) if isinstance(declared, dict) else None


def _named(declared: dict[str, Any], value: Value | None, otherwise: str) -> str:
    """Return the name of a rule: its own, or one made of what it is about and what it does."""
    return _label(declared) or (f"{value.name}.{otherwise}" if value else otherwise)


def _severity(path: KeyPath, declared: dict[str, Any]) -> Severity:
    return parse_severity((*path, "severity"), declared.get("severity") or "error")


def _listed(value: Any) -> list[str]:
    return [] if value is None else [value] if isinstance(value, str) else list(value)
