"""Fit rows to the columns of a table, strictly, in one pass.

Nothing becomes null silently: a value that cannot be read as its column's type, a missing required
value, a record that cannot be parsed and a broken rule of the contract each leave a reason in words in
the column BAD.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from esker.contracts.evolution import find
from esker.contracts.rules import GOOD, SHOWN_CHARACTERS, RowRules
from esker.engine.compat import try_cast
from esker.project.reserved import is_own
from esker.project.types import (
    Array,
    Column,
    Decimal,
    Map,
    Plain,
    Struct,
    Type,
    as_text,
    columns_from_json,
    ddl,
    has_required,
    quoted,
    stored_types,
)

BAD = "_esker_bad"
"""Column of a fitted frame, null for a good row: `rules` that it breaks, `reason` in words, and `payload`,
the row as the source sent it."""
_RAW = "_esker_raw"
_MALFORMED, _UNFIT, _LACKING = "_esker_malformed_why", "_esker_unfit_why", "_esker_lacking_why"
_UUID = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"


def _always() -> Expression:
    """Return what is always true, and nothing that Spark's optimizer knows to be so.

    It would put the conditions of all columns into every filter on BAD, each as often as it is named: with
    many columns of nested types that took minutes.
    """
    return F.monotonically_increasing_id() >= 0


_FLOATING = {"float": (6, 1.17549435e-38), "double": (15, 2.2250738585072014e-308)}
"""How many digits always come back, and the least number with all its digits."""


@dataclass(frozen=True)
class Beside:
    """Columns that a source's frame may have beside its own."""

    malformed: str
    """Why a record could not be parsed."""
    record: str
    """That record."""


@dataclass(frozen=True)
class Checked:
    """Rows that have been looked at. What is wrong is put into words later, where it is asked for."""

    rows: DataFrame
    """The wanted columns and those to keep; where a row can be bad also the bits of the rules, and what
    `told` needs."""
    names: tuple[str, ...]
    rules: RowRules
    told_by: Callable[[], tuple[Expression, Expression]] | None
    """Builds reason and payload of a bad row, which is work; None where no row can be bad."""

    @property
    def can_be_bad(self) -> bool:
        return self.told_by is not None

    def all_told(self) -> DataFrame:
        """Return the rows with BAD and the bits of the rules where a row can be bad."""
        return self.told(self.rows)

    def told(self, rows: DataFrame) -> DataFrame:
        """Return some of `rows` with BAD, and without what is needed only to tell."""
        if self.told_by is None:
            return rows
        reason, payload = self.told_by()
        why = F.struct(
            # Null where nothing is told: Arrow takes no struct that is null and has a field that never is.
            F.when(self.rules.is_rejected(), self.rules.names().cast("array<string>")).alias("rules"),
            reason.alias("reason"),
            payload.alias("payload"),
        )
        return rows.select(*self.names, *self.rules.columns, F.when(self.rules.is_rejected(), why).alias(BAD))


def check(
    frame: DataFrame,
    columns: tuple[Column, ...],
    rules: RowRules,
    beside: Beside,
    arrival: tuple[str, ...],
    keep: tuple[str, ...] = (),
) -> Checked:
    """Fit the frame's rows to these columns, and find those that break `rules`, or that do not fit.

    Columns of `arrival`, which tell what row came first, and of `keep` are carried along.
    """
    keep = (*keep, *arrival)
    sent = columns_from_json(frame.schema.jsonValue())
    fitted: list[Expression] = []
    unfit: list[Expression] = []
    lacking: list[Expression] = []
    # Columns that hold what was sent. What others were sent is carried beside them, to be told of bad rows.
    as_sent: dict[str, str] = {}
    for column in columns:
        incoming = find(sent, column.name)
        if incoming is None:
            value = F.lit(None).cast(ddl(column.type))
        else:
            given = F.col(quoted(incoming.name))
            value, reason = _fitted(given, incoming.type, column.type, column.name)
            if value is given:
                as_sent[incoming.name] = column.name
            unfit += [reason] if reason is not None else []
        if column.required:
            lacking.append(F.when(value.isNull(), _missing(column.name)))
        fitted.append(value.alias(column.name))
    names = (*(quoted(column.name) for column in columns), *keep)
    inside = [_lacking(F.col(quoted(column.name)), column.type, column.name) for column in columns]
    inner = [reason for reason in inside if reason is not None]
    is_parsed = find(sent, beside.malformed) is not None
    if not (unfit or lacking or inner or is_parsed) and rules.is_empty:
        return Checked(frame.select(*fitted, *keep), names, rules, None)
    malformed = F.col(beside.malformed) if is_parsed else F.lit(None).cast("string")
    told = {
        _MALFORMED: malformed,
        _UNFIT: F.coalesce(*unfit) if unfit else F.lit(None).cast("string"),
        _LACKING: F.coalesce(*lacking) if lacking else F.lit(None).cast("string"),
    }
    raw = [column for column in sent if not is_own(column.name)]
    places = {c.name: as_sent.get(c.name, f"{_RAW}{index}") for index, c in enumerate(raw)}
    raw_columns = [F.col(quoted(c.name)).alias(places[c.name]) for c in raw if c.name not in as_sent]
    record = F.col(beside.record) if find(sent, beside.record) else F.lit(None).cast("string")
    first = frame.select(
        *fitted,
        *keep,
        *(F.when(_always(), reason).alias(name) for name, reason in told.items()),
        *raw_columns,
        record.alias(_RAW),
    )
    if inner:
        # On values that are fitted already: looked for while they are, each depth would double the work.
        first = first.withColumn(_LACKING, F.coalesce(_LACKING, *inner))
    if rules.related:
        # Only rows that are good otherwise stand in each other's way.
        first = first.withColumn(GOOD, rules.is_good([F.col(name).isNull() for name in told]))
    for related in rules.related:
        first = related.mark(first, arrival)
    # A record that cannot be parsed, or a value that cannot be read, is lacking too: that is no news.
    bits = rules.broken(
        [
            f"{_MALFORMED} IS NOT NULL",
            f"{_MALFORMED} IS NULL AND {_UNFIT} IS NOT NULL",
            f"coalesce({_MALFORMED}, {_UNFIT}) IS NULL AND {_LACKING} IS NOT NULL",
        ]
    )
    # Looked at by filters and counts, and computed once.
    second = first.select(
        "*", *(F.when(_always(), bit).alias(name) for bit, name in zip(bits, rules.columns, strict=True))
    )

    def told_by() -> tuple[Expression, Expression]:
        reasons = F.concat_ws("; ", F.coalesce(*told), *rules.reasons())
        sent_as = payload((c.name, F.col(quoted(places[c.name])), c.type) for c in raw)
        return F.nullif(reasons, F.lit("")), F.coalesce(F.col(_RAW), sent_as)

    return Checked(second, names, rules, told_by)


def payload(values: Iterable[tuple[str, Expression, Type]], *, nulls: bool = True) -> Expression:
    """Return values by name as a JSON object, all of them as texts: JSON knows neither moments nor decimals.

    Bytes stand there in base 64. Without `nulls`, what has no value is left out.
    """
    texts = [
        (F.base64(value) if kind == Plain("binary") else value.cast(ddl(as_text(kind)))).alias(name)
        for name, value, kind in values
    ]
    if not texts:
        return F.lit(None).cast("string")
    return F.to_json(F.struct(*texts), {"ignoreNullFields": str(not nulls).lower()})


def _fitted(value: Expression, sent: Type, wanted: Type, path: str) -> tuple[Expression, Expression | None]:
    """Return a value as another type, and the reason when it is none; no reason where it always fits."""
    if _is_same(sent, wanted):
        return value, None
    match sent, wanted:
        case Plain(), Plain(stored=str(stored)):
            return _storable(value, sent, wanted, stored, path)
        case Plain("string"), Plain() | Decimal():
            return _parsed(value, wanted, path)
        case Struct(), Struct(fields):
            inner, reasons = [], []
            for field in fields:
                have = find(sent.fields, field.name)
                if have is None:
                    part: Expression = F.lit(None).cast(ddl(field.type))
                else:
                    part, reason = _fitted(
                        value.getField(have.name), have.type, field.type, f"{path}.{field.name}"
                    )
                    reasons += [reason] if reason is not None else []
                inner.append(part.alias(field.name))
            return F.when(value.isNotNull(), F.struct(*inner)), F.coalesce(*reasons) if reasons else None
        case Array(have_element), Array(want_element):
            each = F.transform(value, lambda item: _fitted(item, have_element, want_element, path)[0])
            return each, _first_reason(value, have_element, want_element, path)
        case Map(have_key, have_value), Map(want_key, want_value):
            each = F.transform_values(value, lambda _, item: _fitted(item, have_value, want_value, path)[0])
            each = F.transform_keys(each, lambda key, _: _fitted(key, have_key, want_key, path)[0])
            return each, _either(
                _first_reason(F.map_keys(value), have_key, want_key, path),
                _first_reason(F.map_values(value), have_value, want_value, path),
            )
    return value.cast(ddl(wanted)), None


def _is_same(sent: Type, wanted: Type) -> bool:
    """Tell whether values are passed on as they are."""
    # Docs and requirements of the table make no other values. But a field that the source never leaves
    # empty is one that Arrow takes in no struct that is null.
    alike = sent == wanted or (ddl(sent) == ddl(wanted) and not has_required(sent))
    return alike and not stored_types(wanted)


def _lacking(value: Expression, kind: Type, path: str) -> Expression | None:
    """Return the reason when something required inside a value is missing; None where nothing is required."""
    if not has_required(kind):
        return None
    match kind:
        case Struct(fields):
            found: Expression | None = None
            for field in fields:
                part, name = value.getField(field.name), f"{path}.{field.name}"
                if field.required:
                    found = _either(found, F.when(value.isNotNull() & part.isNull(), _missing(name)))
                found = _either(found, _lacking(part, field.type, name))
            return found
        case Array(element, required):
            return _first_lacking(value, element, path, f"{path}.element" if required else None)
        case Map(_, inner, required):
            return _first_lacking(F.map_values(value), inner, path, f"{path}.value" if required else None)
    return None


def _first_lacking(values: Expression, kind: Type, path: str, required: str | None) -> Expression | None:
    """Return the reason of the first of several values that lacks something; `required` names them if none
    may be missing itself."""
    found = None
    if required is not None:
        found = F.when(F.exists(values, lambda item: item.isNull()), _missing(required))
    if has_required(kind):
        reasons = F.transform(values, lambda item: _known(_lacking(item, kind, path)))
        found = _either(found, F.get(F.filter(reasons, lambda reason: reason.isNotNull()), F.lit(0)))
    return found


def _missing(name: str) -> Expression:
    return F.lit(f'column "{name}" is required and has no value')


def _storable(
    value: Expression, sent: Plain, wanted: Plain, stored: str, path: str
) -> tuple[Expression, Expression]:
    """Return a value as Iceberg can store it in a type that Spark has not, and the reason when it cannot."""
    if stored == "uuid":
        # As it comes back from the table, so that the same value has the same row hash.
        text = F.when(F.trim(value) != "", _small_letters(F.trim(value)))
        return text, F.when(~text.rlike(_UUID), _no(text, wanted, path))
    found = value.cast(ddl(wanted))
    length = int(stored.removeprefix("fixed(").rstrip(")"))
    shown = value if sent == Plain("string") else F.hex(value)
    return found, F.when(F.octet_length(found) != length, _no(shown, wanted, path))


def _no(given: Expression, kind: Type, path: str) -> Expression:
    return F.concat(
        F.lit(f'column "{path}": "'), F.substring(given, 1, SHOWN_CHARACTERS), F.lit(f'" is no {kind}')
    )


def _first_reason(values: Expression, sent: Type, wanted: Type, path: str) -> Expression | None:
    """Return the reason of the first value of a list that does not fit."""
    if _always_fits(sent, wanted):
        return None
    reasons = F.transform(values, lambda item: _known(_reason(item, sent, wanted, path)))
    return F.get(F.filter(reasons, lambda reason: reason.isNotNull()), F.lit(0))


def _reason(value: Expression, sent: Type, wanted: Type, path: str) -> Expression | None:
    """Return the reason of `_fitted` without the value: to build both at each depth doubled the work."""
    match sent, wanted:
        case Struct(have), Struct(fields):
            found: Expression | None = None
            for field in fields:
                mine = find(have, field.name)
                if mine is not None and not _always_fits(mine.type, field.type):
                    part = value.getField(mine.name)
                    found = _either(found, _reason(part, mine.type, field.type, f"{path}.{field.name}"))
            return found
        case Array(have_element), Array(want_element):
            return _first_reason(value, have_element, want_element, path)
        case Map(have_key, have_value), Map(want_key, want_value):
            return _either(
                _first_reason(F.map_keys(value), have_key, want_key, path),
                _first_reason(F.map_values(value), have_value, want_value, path),
            )
    return _fitted(value, sent, wanted, path)[1]


def _always_fits(sent: Type, wanted: Type) -> bool:
    """Tell whether `_fitted` has no reason for these types.

    By the types alone: to build its expressions only to learn that took seconds.
    """
    if _is_same(sent, wanted):
        return True
    match sent, wanted:
        case (Plain(), Plain(stored=str())) | (Plain("string"), Plain() | Decimal()):
            return False
        case Struct(have), Struct(fields):
            pairs = ((find(have, field.name), field) for field in fields)
            return all(mine is None or _always_fits(mine.type, field.type) for mine, field in pairs)
        case Array(have_element), Array(want_element):
            return _always_fits(have_element, want_element)
        case Map(have_key, have_value), Map(want_key, want_value):
            return _always_fits(have_key, want_key) and _always_fits(have_value, want_value)
    return True


def _known(reason: Expression | None) -> Expression:
    return F.lit(None).cast("string") if reason is None else reason


def _either(one: Expression | None, other: Expression | None) -> Expression | None:
    if one is None or other is None:
        return other if one is None else one
    return F.coalesce(one, other)


def _parsed(text: Expression, kind: Plain | Decimal, path: str) -> tuple[Expression, Expression]:
    """Return a text as a type, and the reason when it is none."""
    given = F.when(F.trim(text) != "", text)
    value = try_cast(given, ddl(kind))
    lost = value.isNull()
    if isinstance(kind, Decimal):
        # A cast rounds silently.
        lost = lost | (_digits(given) != _digits(value.cast("string")))
    elif kind == Plain("date"):
        # A cast drops a time of day silently.
        lost = lost | ~F.trim(given).rlike(r"^[+-]?\d{1,7}-\d{1,2}-\d{1,2}$")
    elif kind in (Plain("timestamp"), Plain("timestamp_ntz")):
        # A cast takes 12:30 for today, drops a zone that the type has no room for, and cuts digits.
        zone = r"(\s*(Z|[+-]\d.*|[A-Za-z].*))?" if kind == Plain("timestamp") else ""
        time = rf"[T ]\d{{1,2}}:\d{{1,2}}(:\d{{1,2}}(\.\d{{1,6}}0*)?)?{zone}"
        lost = lost | ~F.trim(given).rlike(rf"^[+-]?\d{{4,6}}-\d{{1,2}}-\d{{1,2}}({time})?$")
    elif isinstance(kind, Plain) and kind.name in _FLOATING:
        lost = lost | _is_rounded(given, value, *_FLOATING[kind.name])
        # Java reads 1d and 1f as numbers.
        lost = lost | F.trim(given).rlike(r"\d[dDfF]$")
    return value, F.when(given.isNotNull() & F.coalesce(lost, F.lit(True)), _no(given, kind, path))


def _is_rounded(given: Expression, value: Expression, sure: int, least: float) -> Expression:
    """Tell whether a floating number is another than the text says.

    A number with few digits always comes back as it was written: 0.1 is no loss, though no double is
    exactly that. One with more digits must come back digit by digit. Infinity and zero are right only if
    they are written so, and next to zero digits are lost whatever their number.
    """
    is_doubtful = (F.length(given) > sure) | (F.abs(value) < least) | (F.abs(value) == float("inf"))
    is_number = given.rlike(r"\d")
    return is_doubtful & is_number & (_digits(given) != _digits(value.cast("string")))


def _digits(number: Expression) -> Expression:
    """Return the digits of a number written as text, without zeros at either end, point and exponent."""
    plain = F.translate(F.substring_index(_small_letters(number), "e", 1), "+-. \t", "")
    return F.btrim(plain, F.lit("0"))


def _small_letters(text: Expression) -> Expression:
    """Return a text with its letters from A to Z as small ones.

    With the first `lower` of a process Spark makes a table of all characters that there are, which takes it
    a second or more.
    """
    return F.translate(text, ascii_uppercase, ascii_lowercase)
