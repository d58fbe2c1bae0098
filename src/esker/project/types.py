"""Column types, as users write them and as Spark understands them.

Spark's names are used (`bigint`, `decimal(12,2)`, `array<string>`, `struct<a: int>`), because the
data runs on Spark. Parsing needs no Spark: `esker check` answers without a JVM.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

_ALIASES = {
    "bool": "boolean",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "text": "string",
    "varchar": "string",
    "bytes": "binary",
    "timestamptz": "timestamp",
    "timestamp_ltz": "timestamp",
}
_PLAIN = (
    "boolean int bigint float double string binary date timestamp timestamp_ntz".split()  # noqa: SIM905
)
_JSON_NAMES = {"int": "integer", "bigint": "long"}
_FROM_JSON = {"integer": "int", "long": "bigint", "byte": "int", "short": "int"}
_PLAIN_NAME = re.compile(r"[^\W\d]\w*")
_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)*`)|('(?:[^'\\]|\\.)*')|([^\W\d]\w*)|(\d+)|([<>(),:]))", re.DOTALL)


class TypeSyntaxError(ValueError):
    """A type was written in a way that cannot be read."""


class TooManyDigits(TypeSyntaxError):
    """A decimal with more digits than Iceberg has."""


@dataclass(frozen=True)
class Plain:
    """A type without parts, such as `bigint`."""

    name: str
    """As Spark knows it."""
    stored: str | None = field(default=None, compare=False)
    """What Iceberg stores, where Spark has no such type: `uuid` for texts, `fixed(16)` for bytes."""

    def __str__(self) -> str:
        return self.stored or self.name

    def as_json(self) -> Any:
        return _JSON_NAMES.get(self.name, self.name)


@dataclass(frozen=True)
class Decimal:
    """An exact number with `precision` digits, `scale` of them after the point."""

    precision: int
    scale: int

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"

    def as_json(self) -> Any:
        return str(self)


@dataclass(frozen=True)
class Array:
    """A list of values of one type."""

    element: Type
    element_required: bool = False
    """No element may be without a value."""

    def __str__(self) -> str:
        return f"array<{self.element}{_not_null(self.element_required)}>"

    def as_json(self) -> Any:
        return {"type": "array", "elementType": self.element.as_json(), "containsNull": True}


@dataclass(frozen=True)
class Map:
    """Values by key."""

    key: Type
    value: Type
    value_required: bool = False
    """No entry may be without a value; a key always has one."""

    def __str__(self) -> str:
        return f"map<{self.key},{self.value}{_not_null(self.value_required)}>"

    def as_json(self) -> Any:
        return {
            "type": "map",
            "keyType": self.key.as_json(),
            "valueType": self.value.as_json(),
            "valueContainsNull": True,
        }


@dataclass(frozen=True)
class Column:
    """A column of a table, or a field of a struct."""

    name: str
    type: Type
    required: bool = False
    doc: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": self.type.as_json(),
            "nullable": not self.required,
            "metadata": {"comment": self.doc} if self.doc else {},
        }

    def ddl(self) -> str:
        """Return the column as it stands in CREATE TABLE."""
        return f"{quoted(self.name)} {ddl(self.type, is_whole=True)}{_said(self)}"


@dataclass(frozen=True)
class Struct:
    """Named fields."""

    fields: tuple[Column, ...]

    def __str__(self) -> str:
        fields = (f"{_shown(f.name)}:{f.type}{_not_null(f.required)}" for f in self.fields)
        return f"struct<{','.join(fields)}>"

    def as_json(self) -> Any:
        return {"type": "struct", "fields": [field.as_json() for field in self.fields]}


Type = Plain | Decimal | Array | Map | Struct


def quoted(name: str) -> str:
    """Return a name as a quoted SQL identifier."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """Return a text as a SQL string literal."""
    # Spark's parser reads \\' inside a string literal; a backslash must be doubled first.
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def as_text(kind: Type) -> Type:
    """Return a type of the same shape, with texts in the place of all plain values."""
    match kind:
        case Struct(fields):
            return Struct(columns_as_text(fields))
        case Array(element):
            return Array(as_text(element))
        case Map(key, value):
            return Map(as_text(key), as_text(value))
    return Plain("string")


def columns_as_text(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """Return columns with texts in the place of all plain values; none is required."""
    return tuple(Column(column.name, as_text(column.type)) for column in columns)


def _not_null(is_required: bool) -> str:
    return " NOT NULL" if is_required else ""


def _said(field: Column) -> str:
    """Return what is said of a field beyond its type."""
    return _not_null(field.required) + (f" COMMENT {literal(field.doc)}" if field.doc else "")


def _shown(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else quoted(name)


def ddl(kind: Type, *, is_whole: bool = False) -> str:
    """Return a type as Spark's SQL knows it, with every field name quoted.

    With `is_whole` also what Spark casts to no value: what is required inside, and types that only Iceberg
    has. All that `parse_type` knows of a type stands there then, docs of fields included.
    """
    match kind:
        case Array(element, required):
            return f"array<{ddl(element, is_whole=is_whole)}{_not_null(required and is_whole)}>"
        case Map(key, value, required):
            inner = ddl(value, is_whole=is_whole) + _not_null(required and is_whole)
            return f"map<{ddl(key, is_whole=is_whole)}, {inner}>"
        case Struct(fields):
            parts = (
                f"{quoted(f.name)}: {ddl(f.type, is_whole=is_whole)}{_said(f) if is_whole else ''}"
                for f in fields
            )
            return f"struct<{', '.join(parts)}>"
        case Plain(name) if not is_whole:
            return name
        case _:
            return str(kind)


def stored_types(kind: Type) -> tuple[str, ...]:
    """Return the types inside a type that Iceberg has and Spark has not."""
    match kind:
        case Plain(stored=str(stored)):
            return (stored,)
        case Array(element):
            return stored_types(element)
        case Map(key, value):
            return (*stored_types(key), *stored_types(value))
        case Struct(fields):
            return tuple(stored for field in fields for stored in stored_types(field.type))
    return ()


def has_required(kind: Type) -> bool:
    """Tell whether something inside a type is required. Keys of maps are not looked into."""
    match kind:
        case Struct(fields):
            return any(field.required or has_required(field.type) for field in fields)
        case Array(inner, required) | Map(_, inner, required):
            return required or has_required(inner)
    return False


def parse_type(text: str) -> Type:
    """Read a type such as `struct<id: bigint, tags: array<string>>`."""
    return _Parser(text).whole()


def columns_from_json(schema: dict[str, Any]) -> tuple[Column, ...]:
    """Read the columns of a Spark schema given as Spark's own JSON value."""
    return tuple(
        Column(
            name=field["name"],
            type=_type_from_json(field["type"]),
            required=not field["nullable"],
            doc=(field.get("metadata") or {}).get("comment"),
        )
        for field in schema["fields"]
    )


def columns_as_json(columns: tuple[Column, ...]) -> dict[str, Any]:
    """Return columns as the JSON value that Spark's `StructType.fromJson` reads."""
    return {"type": "struct", "fields": [column.as_json() for column in columns]}


def _type_from_json(value: Any) -> Type:
    if isinstance(value, str):
        if decimal := re.fullmatch(r"decimal\((\d+),(\d+)\)", value):
            return Decimal(int(decimal[1]), int(decimal[2]))
        if value.startswith(("char(", "varchar(")):
            return Plain("string")
        return Plain(_FROM_JSON.get(value, value))
    match value["type"]:
        case "array":
            return Array(_type_from_json(value["elementType"]))
        case "map":
            return Map(_type_from_json(value["keyType"]), _type_from_json(value["valueType"]))
        case "struct":
            return Struct(columns_from_json(value))
        case "udt":
            return _type_from_json(value["sqlType"])
    raise TypeSyntaxError(f"type {value} has no counterpart in Iceberg")


class _Parser:
    """Recursive descent over the tokens of one type."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = []
        at = 0
        while text[at:].strip():
            token = _TOKEN.match(text, at)
            if token is None:
                raise TypeSyntaxError(f'unexpected "{text[at:].strip()[0]}" in type "{text}"')
            self.tokens.append(token[0].strip())
            at = token.end()
        self.at = 0

    def whole(self) -> Type:
        kind = self.type()
        if self.at < len(self.tokens):
            raise TypeSyntaxError(f'unexpected "{self.tokens[self.at]}" in type "{self.text}"')
        return kind

    def next(self, expected: str | None = None) -> str:
        token = self.tokens[self.at] if self.at < len(self.tokens) else ""
        if not token or (expected is not None and token != expected):
            found = f'found "{token}"' if token else "the type ends too early"
            wanted = f'expected "{expected}", ' if expected else ""
            raise TypeSyntaxError(f'in type "{self.text}": {wanted}{found}')
        self.at += 1
        return token

    def take(self, token: str) -> bool:
        found = self.at < len(self.tokens) and self.tokens[self.at] == token
        self.at += found
        return found

    def type(self) -> Type:
        word = self.next().lower()
        name = _ALIASES.get(word, word)
        match name:
            case "decimal" | "numeric" | "dec":
                return self.decimal()
            case "array" | "list":
                self.next("<")
                element, required = self.type(), self.not_null()
                self.next(">")
                return Array(element, required)
            case "map":
                self.next("<")
                key = self.type()
                self.next(",")
                value, required = self.type(), self.not_null()
                self.next(">")
                return Map(key, value, required)
            case "struct":
                return self.struct()
            case "uuid":
                return Plain("string", "uuid")
            case "fixed":
                self.next("(")
                length = self.number()
                self.next(")")
                return Plain("binary", f"fixed({length})")
            case "time":
                raise TypeSyntaxError(
                    "Spark reads and writes no columns of type time; write string, in a contract with "
                    "logicalType: time or a pattern, or bigint for microseconds since midnight"
                )
            case "string" if self.take("("):
                self.next()
                self.next(")")
                return Plain("string")
            case _ if name in _PLAIN:
                return Plain(name)
        known = ", ".join([*_PLAIN, "uuid", "fixed(n)", "decimal(p,s)", "array<…>", "map<…>", "struct<…>"])
        raise TypeSyntaxError(f'unknown type "{word}"; known are {known}')

    def decimal(self) -> Decimal:
        if not self.take("("):
            return Decimal(10, 0)
        precision = self.number()
        scale = self.number() if self.take(",") else 0
        self.next(")")
        if not (1 <= precision <= 38 and 0 <= scale <= precision):
            raise TooManyDigits(f"decimal({precision},{scale}): at most 38 digits, scale within")
        return Decimal(precision, scale)

    def number(self) -> int:
        token = self.next()
        if not token.isdigit():
            raise TypeSyntaxError(f'in type "{self.text}": expected a number, found "{token}"')
        return int(token)

    def struct(self) -> Struct:
        self.next("<")
        fields: list[Column] = []
        while True:
            name = self.field_name()
            if any(field.name.lower() == name.lower() for field in fields):
                raise TypeSyntaxError(f'in type "{self.text}": field "{name}" stands there twice')
            self.next(":")
            kind = self.type()
            fields.append(Column(name, kind, self.not_null(), self.comment()))
            if not self.take(","):
                break
        self.next(">")
        return Struct(tuple(fields))

    def not_null(self) -> bool:
        words = [token.upper() for token in self.tokens[self.at : self.at + 2]]
        found = words == ["NOT", "NULL"]
        self.at += 2 * found
        return found

    def comment(self) -> str | None:
        if self.at >= len(self.tokens) or self.tokens[self.at].upper() != "COMMENT":
            return None
        self.at += 1
        token = self.next()
        if not token.startswith("'"):
            raise TypeSyntaxError(f'in type "{self.text}": expected a text in quotes, found "{token}"')
        return re.sub(r"\\(.)", r"\1", token[1:-1], flags=re.DOTALL)

    def field_name(self) -> str:
        token = self.next()
        if token.startswith("`") and len(token) > 2:
            return token[1:-1].replace("``", "`")
        if not _PLAIN_NAME.fullmatch(token):
            raise TypeSyntaxError(f'in type "{self.text}": expected a field name, found "{token}"')
        return token
