"""What `logicalTypeOptions` say of a value: bounds, lengths, patterns, formats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from esker.project.contract.meaning import is_text
from esker.project.contract.model import ColumnTest
from esker.project.contract.options import Mistake
from esker.project.contract.value import is_number, sql_value
from esker.project.document import KeyPath
from esker.project.types import Decimal, Type, literal, quoted

_HEX = "[0-9a-fA-F]{1,4}"
_BYTE = r"(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_IPV4 = rf"({_BYTE}\.){{3}}{_BYTE}"
_IPV6 = "|".join(
    (
        # Eight groups, or fewer with a gap; the last two may be written as an IPv4 address (RFC 4291, 2.2).
        rf"({_HEX}:){{7}}{_HEX}",
        rf"({_HEX}:){{6}}{_IPV4}",
        *(rf"({_HEX}:){{1,{left}}}(:{_HEX}){{1,{7 - left}}}" for left in range(1, 7)),
        *(rf"({_HEX}:){{1,{left}}}(:{_HEX}){{0,{5 - left}}}:{_IPV4}" for left in range(1, 6)),
        rf"({_HEX}:){{1,7}}:",
        rf":((:{_HEX}){{1,7}}|:)",
        rf":(:{_HEX}){{0,5}}:{_IPV4}",
    )
)
_LABEL = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_FORMATS = {
    # They end with \z: for Java a line end may follow $.
    # Written so that Java neither goes back nor asks what a space is: that took twice as long.
    "email": r"^[^@ \t-\r]++@[^@ \t-\r.]++\.[^@ \t-\r]+\z",
    "uuid": r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\z",
    "uri": r"^[A-Za-z][A-Za-z0-9+.-]*:\S+\z",
    "hostname": rf"^(?=.{{1,253}}\z){_LABEL}(\.{_LABEL})*\z",
    "ipv4": rf"^{_IPV4}\z",
    "ipv6": rf"^({_IPV6})(%\w+)?\z",
}
_WHOLE = {
    "i8": (-(2**7), 2**7 - 1),
    "i16": (-(2**15), 2**15 - 1),
    "u8": (0, 2**8 - 1),
    "u16": (0, 2**16 - 1),
    "u32": (0, 2**32 - 1),
    "u64": (0, 2**64 - 1),
    "u128": (0, 2**128 - 1),
}
"""Formats of whole numbers that columns may be wider than."""
_TIME = r"^([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?\z"
_NOT_A_PATTERN = ("byte", "binary", "password")
"""Formats of texts that say how they are shown, not what they are."""
_COMPARED = (
    ("minimum", ">=", "is less than"),
    ("maximum", "<=", "is more than"),
    ("exclusiveMinimum", ">", "is not more than"),
    ("exclusiveMaximum", "<", "is not less than"),
)
_NUMBER = ("DECIMAL(38,18)", "DOUBLE")
_READ_AS = {"integer": _NUMBER, "number": _NUMBER, "date": ("DATE",), "timestamp": ("TIMESTAMP",)}
"""What a text of a logical type is read as: exactly, or at least nearly."""
_COUNTED = (
    ("minLength", "char_length", ">=", "is shorter than {} characters"),
    ("maxLength", "char_length", "<=", "is longer than {} characters"),
    ("minItems", "size", ">=", "has fewer than {} items"),
    ("maxItems", "size", "<=", "has more than {} items"),
)

_WHOLES = (*(option for option, *_ in _COUNTED), "minProperties", "maxProperties", "dimensions")

_LINEAR = {"email": r"^[^@ \t-\r]+@[^@ \t-\r.]+\.[^@ \t-\r]+\z"}
"""Formats whose pattern says by `++` that Java need not go back, without it: the same texts match."""

Test = tuple[str, str, str, ColumnTest | None]
"""An option, the condition that it means for `{value}`, what is wrong otherwise, and the condition as a
value."""


def option_tests(kind: str | None, stored: Type | None, options: Mapping[str, Any]) -> Iterator[Test]:
    """Yield what the options of a logical type mean for a column of the type that is `stored`."""
    for option, sign, why in _COMPARED:
        if option in options:
            bound = options[option]
            test = f"{sign} {sql_value(bound, kind)}"
            tries = [f"TRY_CAST({{value}} AS {each}) {test}" for each in _READ_AS.get(kind or "", ())]
            is_read = tries and is_text(stored)
            condition = _read(tries) if is_read else f"{{value}} {test}"
            known = None if is_read else ColumnTest("bound", (sign, bound), kind)
            yield option, condition, f"{why} {bound}", known
    if "multipleOf" in options:
        # As decimals: 19.99 is no multiple of 0.01 among doubles.
        divisor = f"CAST('{options['multipleOf']}' AS DECIMAL(38,18))"
        condition = f"TRY_CAST({{value}} AS DECIMAL(38,18)) % {divisor} = 0"
        why = f"is no multiple of {options['multipleOf']}"
        yield "multipleOf", _read([condition]) if is_text(stored) else condition, why, None
    for option, function, sign, why in _COUNTED:
        if option in options:
            number = int(options[option])
            condition = f"{function}({{value}}) {sign} {number}"
            known = None
            if function == "char_length":
                # Bytes need not be counted: a character has one to four of them.
                sure = number if sign == "<=" else 4 * number
                condition = f"(octet_length({{value}}) {sign} {sure} OR {condition})"
                known = ColumnTest("length", (sign, number))
            yield option, condition, why.format(number), known
    if options.get("uniqueItems"):
        yield "uniqueItems", "size(array_distinct({value})) = size({value})", "has an item twice", None
    if "pattern" in options:
        yield "pattern", *matches(options["pattern"])
    if "dimensions" in options:
        number = int(options["dimensions"])
        yield "dimensions", f"size({{value}}) = {number}", f"has not {number} dimensions", None
    if kind == "integer" and options.get("format") in _WHOLE and not is_text(stored):
        low, high = _WHOLE[options["format"]]
        # No column holds more than 38 digits, and none but a decimal more than 63 bits.
        most, suffix = (10**38 - 1, "BD") if isinstance(stored, Decimal) else (2**63 - 1, "L")
        high = min(high, most)
        condition = f"{{value}} BETWEEN {low}{suffix} AND {high}{suffix}"
        yield "format", condition, f"is no {options['format']}", ColumnTest("between", (low, high))
    if kind == "time" and "format" not in options:
        # Stored as text: Spark has no columns of type time.
        known = ColumnTest("pattern", _TIME)
        yield "time", f"{{value}} RLIKE {literal(_TIME)}", "is no time of day", known
    if kind == "string" and options.get("format") in _FORMATS:
        wanted = options["format"]
        known = ColumnTest("pattern", _LINEAR.get(wanted, _FORMATS[wanted]))
        yield "format", f"{{value}} RLIKE {literal(_FORMATS[wanted])}", f"is no {wanted}", known


def _read(tries: Sequence[str]) -> str:
    """Return the condition that the first of these holds that a text can be read for.

    A text that none can be read for breaks the rule. Compared as it is, it would end the job.
    """
    return f"coalesce({', '.join(tries)}, {{value}} IS NULL)"


def field_tests(options: Mapping[str, Any], fields: Sequence[str]) -> Iterator[Test]:
    """Yield what the options of an object with these fields mean."""
    if not fields:
        return
    there = " + ".join(f"int({{value}}.{quoted(name)} IS NOT NULL)" for name in fields)
    for option, sign, why in (
        ("minProperties", ">=", "has fewer than {} fields"),
        ("maxProperties", "<=", "has more than {} fields"),
    ):
        if option in options:
            number = int(options[option])
            yield option, f"{{value}} IS NULL OR {there} {sign} {number}", why.format(number), None
    if names := [str(name) for name in options.get("required") or ()]:
        lacks_none = " AND ".join(f"{{value}}.{quoted(name)} IS NOT NULL" for name in names)
        why = f"lacks one of {', '.join(names)}"
        yield "required", f"{{value}} IS NULL OR ({lacks_none})", why, None


def matches(pattern: Any) -> tuple[str, str, ColumnTest]:
    """Return the condition that `{value}` matches a pattern, what is wrong otherwise, and it as a value."""
    text = str(pattern)
    return f"{{value}} RLIKE {literal(text)}", f"does not match {pattern}", ColumnTest("pattern", text)


def unchecked_options(
    kind: str | None, stored: Type | None, options: Mapping[str, Any], fields: Sequence[str]
) -> Iterator[str]:
    """Yield the options that nobody checks, in words."""
    wanted = options.get("format")
    if kind == "integer" and wanted in _WHOLE and is_text(stored):
        yield f'format "{wanted}" of a text'
    if kind in ("string", "time") and wanted not in (None, *_FORMATS, *_NOT_A_PATTERN):
        yield f'format "{wanted}"'
    if options.get("defaultTimezone") not in (None, "UTC", "Etc/UTC", "GMT", "Z"):
        yield f'defaultTimezone "{options["defaultTimezone"]}"'
    if not fields:
        yield from (each for each in ("minProperties", "maxProperties", "required") if each in options)


def check_numbers(place: KeyPath, options: Mapping[str, Any]) -> None:
    """Raise Mistake for numbers that SQL has no word for, or that nothing can be divided by."""
    for option in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", *_WHOLES):
        value = options.get(option)
        if isinstance(value, int | float) and not is_number(value):
            raise Mistake((*place, option), f"{option} must be a finite number of at most 38 digits")
    if "multipleOf" in options and not 1e-18 <= options["multipleOf"] < 1e20:
        raise Mistake((*place, "multipleOf"), "multipleOf must be at least 1e-18, and less than 1e20")
