"""Read a contract file: an Open Data Contract Standard document becomes a `Contract`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from esker.errors import Problem
from esker.project.contract.columns import column_name, is_known, read_columns
from esker.project.contract.model import Contract, ContractColumn, Reference, RowRule, Unique
from esker.project.contract.older import modernize
from esker.project.contract.options import Mistake, Options, misspelt
from esker.project.contract.rules import RuleReader
from esker.project.contract.standard import check_standard
from esker.project.declaration import parse_size
from esker.project.document import Document, KeyPath, read_document
from esker.project.layout import PartitionField, parse_partition_field, parse_sort_field
from esker.project.reserved import why_reserved
from esker.project.suggest import closest

_STATUSES = ("proposed", "draft", "active", "deprecated", "retired")


class UnreadableContract(ValueError):
    """A contract with mistakes, each with its place."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


def read_contract(path: Path, shown_as: str, table: str, wanted: str | None = None) -> Contract:
    """Return what a contract says of a table; `wanted` names it in the contract, if it has several.

    Raises InvalidYaml or UnreadableContract.
    """
    return contract_of(read_document(path, shown_as), table, wanted)


def contract_of(document: Document, table: str, wanted: str | None = None) -> Contract:
    """Return what a contract that was read as YAML says of a table, or raise UnreadableContract."""
    modernize(document)
    if problems := check_standard(document):
        raise UnreadableContract(problems)
    try:
        return _contract(document, table, wanted)
    except Mistake as mistake:
        raise UnreadableContract(
            [document.problem(mistake.path, mistake.message, mistake.remedy)]
        ) from mistake


def _contract(document: Document, table: str, wanted: str | None) -> Contract:
    path = _place(document, table, wanted)
    declared = document.at(path)
    columns = read_columns(document, path)
    if not columns:
        raise Mistake(path, "the table has no columns; write properties:")
    for index, column in enumerate(columns):
        if why := why_reserved(column.name):
            raise Mistake((*path, "properties", index, "name"), why)
    rules = RuleReader(document, path, columns)
    rules.read()
    _check_names(columns, rules)
    options = Options(document, path)
    keys = [each for each in declared["properties"] if each.get("primaryKey")]
    keys.sort(key=lambda each: each.get("primaryKeyPosition") or 0)
    data = document.data
    return Contract(
        file=document.file,
        id=str(data["id"]),
        version=str(data["version"]),
        status=_status(document),
        name=str(declared["name"]),
        columns=tuple(columns),
        key=tuple(column_name(each) for each in keys),
        partition_by=_partition_by(document, path, options),
        sort_by=_sort_by(document, path, options),
        format=_format(options),
        format_version=_format_version(options),
        properties=_properties(document, path, options),
        rules=tuple(rules.rules),
        audits=tuple(rules.audits),
        limits=options.limits(),
        notes=(*rules.notes, *_unread_types(declared["properties"], columns), *misspelt(document, path)),
    )


def _status(document: Document) -> str:
    """Return the contract's status. One that nobody knows might have been meant to hold rows back."""
    status = str(document.data.get("status") or "active").lower()
    if status not in _STATUSES:
        guess = closest(status, _STATUSES)
        raise Mistake(
            ("status",),
            f'"{status}" is none of {", ".join(_STATUSES)}' + (f'; did you mean "{guess}"?' if guess else ""),
        )
    return status


def _unread_types(declared: Sequence[dict[str, Any]], columns: Sequence[ContractColumn]) -> Iterator[str]:
    """Yield what is to be said of physical types that are not Spark's: the logical type is taken then."""
    types = {each.column.name.lower(): each.column.type for each in columns}
    for each in declared:
        physical, name = each.get("physicalType"), column_name(each)
        if physical is not None and name.lower() in types and not is_known(physical):
            yield f'{name}: physicalType "{physical}" is not known here, and {types[name.lower()]} is taken'


def _place(document: Document, table: str, wanted: str | None) -> KeyPath:
    """Return where a contract describes a table."""
    tables = document.at(("schema",)) or []
    if not tables:
        raise Mistake(("schema",), "the contract describes no table; write schema:")
    names = [{str(each.get("name")), str(each.get("physicalName") or each.get("name"))} for each in tables]
    if wanted is not None:
        for index, known in enumerate(names):
            if wanted in known:
                return "schema", index
        guess = closest(wanted, [name for known in names for name in known])
        hint = f'; did you mean "{guess}"?' if guess else ""
        raise Mistake(("schema",), f'the contract describes no table "{wanted}"{hint}')
    if len(tables) == 1:
        return "schema", 0
    for index, known in enumerate(names):
        if {table, table.rpartition(".")[2]} & known:
            return "schema", index
    listed = ", ".join(sorted(name for known in names for name in known))
    raise Mistake(
        ("schema",),
        f'the contract describes several tables ({listed}), none called "{table}"',
        "Name one in the project file: contract: file.odcs.yaml#table",
    )


def _check_names(columns: list[ContractColumn], rules: RuleReader) -> None:
    """Raise Mistake for a rule that names a column which the contract lacks."""
    known = {column.name.lower() for column in columns}
    for rule in rules.rules:
        names = rule.columns if isinstance(rule, Unique | Reference) else ()
        if isinstance(rule, RowRule) and rule.column is not None:
            names = (rule.column.split(".")[0] if rule.column.lower() not in known else rule.column,)
        for name in names:
            if name.lower() not in known:
                guess = closest(name, [column.name for column in columns])
                hint = f'; did you mean "{guess}"?' if guess else ""
                place = rules.place(rule.name)
                raise Mistake(place, f'rule "{rule.name}" names a column "{name}" that is not there{hint}')
    for audit in rules.audits:
        if audit.column is not None and audit.column.lower() not in known:
            place = rules.place(audit.name)
            raise Mistake(place, f'rule "{audit.name}" names a column "{audit.column}" that is not there')


def _partition_by(document: Document, path: KeyPath, options: Options) -> tuple[str, ...]:
    fields: list[tuple[int, str, KeyPath]] = []
    for index, each in enumerate(document.at((*path, "properties"))):
        if not each.get("partitioned"):
            continue
        place = (*path, "properties", index)
        own = Options(document, place)
        name, transform = column_name(each), own.text("partitionTransform")
        text = name
        if transform and transform != "identity":
            function, _, argument = transform.rstrip(") ").partition("(")
            text = f"{function}({argument + ', ' if argument else ''}{name})"
        fields.append((each.get("partitionKeyPosition") or 0, text, own.place("partitionTransform")))
    fields.sort(key=lambda field: field[0])
    texts = [(text, place) for _, text, place in fields]
    texts += [(text, options.place("partitionBy")) for text in options.texts("partitionBy")]
    for text, place in texts:
        _check_field(document, path, text, place, parse_partition_field)
    return tuple(text for text, _ in texts)


def _sort_by(document: Document, path: KeyPath, options: Options) -> tuple[str, ...]:
    fields = []
    for index, each in enumerate(document.at((*path, "properties"))):
        own = Options(document, (*path, "properties", index))
        if (position := own.whole("sortPosition")) is not None:
            direction = own.text("sortDirection")
            fields.append((position, f"{column_name(each)} {direction}" if direction else column_name(each)))
    fields.sort()
    texts = (*(text for _, text in fields), *options.texts("sortBy"))
    for text in texts:
        _check_field(document, path, text, options.place("sortBy"), parse_sort_field)
    return texts


def _check_field(document: Document, path: KeyPath, text: str, place: KeyPath, parse: Any) -> None:
    try:
        field = parse(text)
    except ValueError as error:
        raise Mistake(place, str(error)) from None
    known = {column_name(each).lower() for each in document.at((*path, "properties"))}
    if field.column.split(".")[0].lower() not in known:
        what = "partition" if isinstance(field, PartitionField) else "sort"
        raise Mistake(place, f'the {what} column "{field.column}" is not there')


def _format(options: Options) -> str | None:
    value = options.text("format")
    if value not in (None, "parquet", "avro", "orc"):
        raise Mistake(options.place("format"), f'format "{value}" is not known; write parquet, avro or orc')
    return value


def _format_version(options: Options) -> int | None:
    value = options.whole("formatVersion")
    if value not in (None, 2, 3):
        raise Mistake(options.place("formatVersion"), "formatVersion must be 2 or 3")
    return value


def _properties(document: Document, path: KeyPath, options: Options) -> dict[str, str]:
    """Return table properties: those that are named as such, and those with a word of their own."""
    found: dict[str, str] = {}
    kind = options.text("format") or "parquet"
    if compression := options.text("compression"):
        found[f"write.{kind}.compression-codec"] = compression
    if (size := options.get("targetFileSize")) is not None:
        try:
            found["write.target-file-size-bytes"] = str(int(parse_size(size)))
        except (TypeError, ValueError, OverflowError) as error:
            raise Mistake(options.place("targetFileSize"), str(error)) from None
    for index, each in enumerate(document.at((*path, "properties"))):
        if Options(document, (*path, "properties", index)).get("bloomFilter"):
            found[f"write.parquet.bloom-filter-enabled.column.{column_name(each)}"] = "true"
    for key, value in options.mapping("tableProperties").items():
        if not isinstance(value, str | int | float | bool):
            raise Mistake(options.place("tableProperties"), f'table property "{key}" must be text')
        found[key] = str(value).lower() if isinstance(value, bool) else str(value)
    return found
