"""Rules that contradict each other: no value, or no number of rows, can keep to all of them.

Only what is sure is told. A pattern that Python does not know as Java does is left alone.
"""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from esker.project.contract.meaning import can_be, is_own, is_text, is_whole, meaning
from esker.project.contract.model import Bound
from esker.project.contract.options import Mistake
from esker.project.document import KeyPath
from esker.project.types import Type

_SHOWN = 5
_OF_JAVA = re.compile(r"&&|\[[^\]]*\[|\\[vZ]")
"""Java combines classes, `[A-Z&&[^IO]]`; for Python these are characters like others. For Java `\\v` is a
class, and a line end may follow `\\Z`."""
_Test = tuple[str, Callable[[Any], bool]]
"""A rule in words, and whether a value keeps to it."""


@dataclass(frozen=True)
class ValueSet:
    """The values that a column may have, by one of its rules."""

    place: KeyPath
    name: str
    values: Sequence[Any]


def check_values(
    logical: str | None, kind: Type | None, options: Mapping[str, Any], sets: Sequence[ValueSet]
) -> None:
    """Raise Mistake for sets of which no value keeps to the column's type, its options and the other sets.

    Of a column whose type is not the logical type's own, only the sets are compared: what its values mean
    is up to those who chose the type.
    """
    tests = [*_of_type(logical, kind), *_of_options(kind, options)] if is_own(logical, kind) else []
    for one in sets:
        left = [value for value in one.values if value is not None]
        for told, fits in tests:
            kept = [value for value in left if fits(value)]
            if left and not kept:
                shown = ", ".join(map(str, left[:_SHOWN])) + (", …" if len(left) > _SHOWN else "")
                raise Mistake(one.place, f"{told} leaves none of {shown}: no value can keep to all rules")
            left = kept
        allowed = {meaning(value, kind) for value in one.values if value is not None}
        tests.append((one.name, partial(_is_among, allowed, kind)))


def _is_among(allowed: set[Hashable], kind: Type | None, value: Any) -> bool:
    found = meaning(value, kind)
    return found is None or None in allowed or found in allowed


def _of_type(logical: str | None, kind: Type | None) -> Iterator[_Test]:
    yield f"logicalType {logical}", lambda value: can_be(value, kind)


def _of_options(kind: Type | None, options: Mapping[str, Any]) -> Iterator[_Test]:
    for option, is_kept in (
        ("minimum", lambda value, bound: value >= bound),
        ("maximum", lambda value, bound: value <= bound),
        ("exclusiveMinimum", lambda value, bound: value > bound),
        ("exclusiveMaximum", lambda value, bound: value < bound),
    ):
        if option in options:
            yield _told(options, option), partial(_compared, kind, is_kept, options[option])
    if "minLength" in options:
        yield _told(options, "minLength"), _of_text(lambda text: len(text) >= options["minLength"])
    if "maxLength" in options:
        yield _told(options, "maxLength"), _of_text(lambda text: len(text) <= options["maxLength"])
    if (pattern := _compiled(options.get("pattern"))) is not None:
        yield _told(options, "pattern"), _of_text(lambda text: pattern.search(text) is not None)


def _told(options: Mapping[str, Any], option: str) -> str:
    return f"{option} {options[option]}"


def _compared(kind: Type | None, is_kept: Callable[[Any, Any], bool], bound: Any, value: Any) -> bool:
    # Spark compares times of day as the texts that they are.
    one, other = (value, bound) if is_text(kind) else (meaning(value, kind), meaning(bound, kind))
    return one is None or other is None or type(one) is not type(other) or is_kept(one, other)


def _of_text(test: Callable[[str], bool]) -> Callable[[Any], bool]:
    """Return a test that every value passes which is no text: how it would be written as one is not sure."""
    return lambda value: not isinstance(value, str) or test(value)


def _compiled(pattern: Any) -> re.Pattern[str] | None:
    """Return a pattern that means the same to Python and to Java, else None."""
    if not isinstance(pattern, str) or _OF_JAVA.search(pattern):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return re.compile(pattern, re.ASCII)
    except (re.error, Warning, ValueError, OverflowError, RecursionError):
        return None


def check_bounds(place: KeyPath, kind: Type | None, options: Mapping[str, Any]) -> None:
    """Raise Mistake for bounds that no value can keep to."""
    for low, high in (
        ("minimum", "maximum"),
        ("minLength", "maxLength"),
        ("minItems", "maxItems"),
        ("minProperties", "maxProperties"),
    ):
        if low in options and high in options and _is_above(kind, options[low], options[high]):
            raise Mistake((*place, low), f"{low} is more than {high}: no value can be both")
    for low, high in (
        ("exclusiveMinimum", "maximum"),
        ("minimum", "exclusiveMaximum"),
        ("exclusiveMinimum", "exclusiveMaximum"),
    ):
        if low in options and high in options and _is_above(kind, options[low], options[high], or_same=True):
            raise Mistake((*place, low), f"{low} is not less than {high}: no value can be both")


def _is_above(kind: Type | None, one: Any, other: Any, *, or_same: bool = False) -> bool:
    if isinstance(one, str) and not is_text(kind):
        one, other = meaning(one, kind), meaning(other, kind)
    if one is None or other is None or isinstance(one, str) is not isinstance(other, str):
        return False
    return bool(one > other or (or_same and one == other))


def check_whole(place: KeyPath, kind: Type | None, options: Mapping[str, Any]) -> None:
    """Raise Mistake for bounds between which no whole number lies."""
    if not is_whole(kind):
        return
    lows = [math.ceil(options["minimum"])] if "minimum" in options else []
    highs = [math.floor(options["maximum"])] if "maximum" in options else []
    if "exclusiveMinimum" in options:
        lows.append(math.floor(options["exclusiveMinimum"]) + 1)
    if "exclusiveMaximum" in options:
        highs.append(math.ceil(options["exclusiveMaximum"]) - 1)
    if lows and highs and max(lows) > min(highs):
        raise Mistake(place, "no whole number lies between these bounds")


class Counts:
    """The bounds of numbers of rows, by what is counted."""

    def __init__(self) -> None:
        self._bounds: dict[str, list[Bound]] = {}

    def add(self, path: KeyPath, of: str, metric: str, arguments: Any, bound: Bound) -> None:
        """Take note of a bound, or raise Mistake when no number keeps to it and to those before it."""
        counted = json.dumps([of, metric, arguments, bound.is_percent], default=str, sort_keys=True)
        bounds = self._bounds.setdefault(counted, [])
        bounds.append(bound)
        if _is_possible(bounds, whole=not bound.is_percent):
            return
        told = " and ".join(str(each) for each in bounds)
        what = "number of rows" if not bound.is_percent else "share of rows"
        raise Mistake(path, f"{metric} {told}: no {what} can be that")


def _is_possible(bounds: Sequence[Bound], *, whole: bool) -> bool:
    """Tell whether a number keeps to all bounds: a whole one of rows, or a share in percent."""
    edges = [0.0] if whole else [0.0, 100.0]
    for bound in bounds:
        values = bound.value if isinstance(bound.value, list) else [bound.value]
        edges += [float(value) for value in values if isinstance(value, int | float)]
    # Bounds change what they say at their own numbers only: what lies there, and right beside, is enough.
    step = 1 if whole else 1e-6
    tried = {near for edge in edges for near in (edge - step, edge, edge + step)}
    if whole:
        tried = {float(round_(number)) for number in tried for round_ in (math.floor, math.ceil)}
    fitting = (n for n in tried if n >= 0 and (whole or n <= 100))
    plain = [Bound(each.operator, each.value) for each in bounds]
    return any(all(bound.admits(number) for bound in plain) for number in fitting)
