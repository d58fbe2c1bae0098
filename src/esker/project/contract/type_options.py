"""What `logicalTypeOptions` say of a value: bounds, lengths, patterns, formats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from esker.project.contract.options import Mistake
from esker.project.contract.value import sql_value
from esker.project.document import KeyPath
from esker.project.types import literal

_FORMATS = {
    # Written so that Java neither goes back nor asks what a space is: that took twice as long.
    "email": r"^[^@ \t-\r]++@[^@ \t-\r.]++\.[^@ \t-\r]+$",
    "uuid": r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$",
    "uri": r"^[A-Za-z][A-Za-z0-9+.-]*:\S+$",
    "hostname": r"^[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?$",
    "ipv4": r"^((25[0-5]|2[0-4]\d|1?\d?\d)(\.|$)){4}$",
    "ipv6": r"^[0-9a-fA-F:]{2,39}(%\w+)?$",
}
_TIME = r"^([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?$"
_NOT_A_PATTERN = ("byte", "binary", "password")
"""Formats of texts that say how they are shown, not what they are."""
_COMPARED = (
    ("minimum", ">=", "is less than"),
    ("maximum", "<=", "is more than"),
    ("exclusiveMinimum", ">", "is not more than"),
    ("exclusiveMaximum", "<", "is not less than"),
)
_COUNTED = (
    ("minLength", "char_length", ">=", "is shorter than {} characters"),
    ("maxLength", "char_length", "<=", "is longer than {} characters"),
    ("minItems", "size", ">=", "has fewer than {} items"),
    ("maxItems", "size", "<=", "has more than {} items"),
)

Test = tuple[str, str, str]
"""An option, the condition that it means for `{value}`, and what is wrong otherwise."""


def option_tests(kind: str | None, options: Mapping[str, Any]) -> Iterator[Test]:
    """Yield what the options of a logical type mean."""
    for option, sign, why in _COMPARED:
        if option in options:
            bound = options[option]
            yield option, f"{{value}} {sign} {sql_value(bound, kind)}", f"{why} {bound}"
    if "multipleOf" in options:
        # As decimals: 19.99 is no multiple of 0.01 among doubles.
        divisor = f"CAST('{options['multipleOf']}' AS DECIMAL(38,18))"
        condition = f"TRY_CAST({{value}} AS DECIMAL(38,18)) % {divisor} = 0"
        yield "multipleOf", condition, f"is no multiple of {options['multipleOf']}"
    for option, function, sign, why in _COUNTED:
        if option in options:
            number = int(options[option])
            condition = f"{function}({{value}}) {sign} {number}"
            if function == "char_length":
                # Bytes need not be counted: a character has one to four of them.
                sure = number if sign == "<=" else 4 * number
                condition = f"(octet_length({{value}}) {sign} {sure} OR {condition})"
            yield option, condition, why.format(number)
    if options.get("uniqueItems"):
        yield "uniqueItems", "size(array_distinct({value})) = size({value})", "has an item twice"
    if "pattern" in options:
        yield "pattern", *matches(options["pattern"])
    if kind == "time" and "format" not in options:
        # Stored as text: Spark has no columns of type time.
        yield "time", f"{{value}} RLIKE {literal(_TIME)}", "is no time of day"
    if kind == "string" and options.get("format") in _FORMATS:
        wanted = options["format"]
        yield "format", f"{{value}} RLIKE {literal(_FORMATS[wanted])}", f"is no {wanted}"


def matches(pattern: Any) -> tuple[str, str]:
    """Return the condition that `{value}` matches a pattern, and what is wrong otherwise."""
    return f"{{value}} RLIKE {literal(str(pattern))}", f"does not match {pattern}"


def unchecked_format(kind: str | None, options: Mapping[str, Any]) -> str | None:
    """Return a format of texts that nobody checks, if one is named."""
    wanted = options.get("format")
    is_text = kind in ("string", "time")
    is_checked = not is_text or wanted is None or wanted in (*_FORMATS, *_NOT_A_PATTERN)
    return None if is_checked else str(wanted)


def check_bounds(place: KeyPath, options: Mapping[str, Any]) -> None:
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


def _above(one: Any, other: Any) -> bool:
    try:
        return bool(one > other)
    except TypeError:
        return str(one) > str(other)
