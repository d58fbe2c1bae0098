"""One entry of the project file that stands for many pipelines: one for each table of a database.

Which tables there are is known when the database is asked, not before. Until then a family is checked with a
table that stands for all: what is wrong for every table is told with the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from esker.errors import Problem, TableUnsuitable
from esker.project.contract.lay import lay_contracts
from esker.project.contract.model import Contract
from esker.project.document import Document, KeyPath
from esker.project.explain import explain
from esker.project.modes import KEYED
from esker.project.pipelines import Pipeline
from esker.project.sources.jdbc import written
from esker.project.transform import lay_transforms

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_FIXED = {"catalog": (), "overrides": (), "source": ("type", "url", "tables", "exclude", "table", "query")}
"""Keys that no override may change: what a family is, and where its tables come from and go to."""
_FOR_EACH = ("table", "contract", "transform")
"""Keys in which `{table}` stands for a table's name."""
_LONGEST = 63
_HASH = 8
_UNKNOWN_KEY = "primary key of the table"


@dataclass(frozen=True)
class SourceTable:
    """A table of a database, as the database tells it."""

    schema: str
    name: str
    key: tuple[str, ...] = ()
    """The columns of its primary key."""

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True)
class Member:
    """The pipeline of one table."""

    name: str
    table: SourceTable
    pipeline: Pipeline
    contract: Contract | None = None


class _One(BaseModel):
    pipelines: dict[str, Pipeline]


@dataclass(frozen=True)
class Family:
    """What the project file says of many tables."""

    name: str
    tables: tuple[str, ...]
    """Patterns of the tables that belong to it."""
    exclude: tuple[str, ...]
    overrides: tuple[str, ...]
    """Names or patterns of tables for which something else is said."""
    template: str
    """The table that each is loaded into, with `{table}` in it."""
    entry: Document = field(repr=False)
    folder: Path
    stand_ins: tuple[Pipeline, ...] = ()
    """A pipeline for a table that nothing is known of, and one for each override."""

    @property
    def base(self) -> Pipeline:
        """What it says of tables without overrides."""
        return self.stand_ins[0]

    def holds(self, table: SourceTable, default_schema: str) -> bool:
        """Tell whether a table belongs to it."""
        if any(_is_named(pattern, table) for pattern in self.exclude):
            return False
        return any(_is_within(pattern, table, default_schema) for pattern in self.tables)

    def unmatched(self, tables: Sequence[SourceTable], default_schema: str) -> Iterator[str]:
        """Yield what is written in the file and matches none of these tables.

        A pattern may match nothing where it leaves out or overrides; a name there that does is a mistake.
        """
        for pattern in self.tables:
            if not any(_is_within(pattern, table, default_schema) for table in tables):
                yield pattern
        for name in (*self.exclude, *self.overrides):
            if not _is_pattern(name) and not any(_is_named(name, table) for table in tables):
                yield name

    def name_of(self, table: SourceTable) -> str:
        """Return the name of a table's pipeline: it tells apart what the table that it loads into does."""
        values, template = _values(table), self._template_of(table)
        used = [values[key] for key in ("schema", "table") if f"{{{key}}}" in template]
        name = ".".join([self.name, *(used or [_plain(template.rpartition(".")[2])])])
        if len(name) <= _LONGEST:
            return name
        digest = sha256(str(table).encode()).hexdigest()[:_HASH]
        return f"{name[: _LONGEST - _HASH - 1]}_{digest}"

    def _template_of(self, table: SourceTable) -> str:
        said = [self.entry.at(("overrides", key)) for key in self.overrides if _is_named(key, table)]
        return next((str(each["table"]) for each in reversed(said) if each.get("table")), self.template)

    def target_of(self, table: SourceTable) -> str:
        """Return what a table is loaded into, also where it cannot be."""
        return str(self.said_of(self.name, table).at(("pipelines", self.name, "table")))

    def member(self, table: SourceTable) -> Member:
        """Return the pipeline of a table, or raise TableUnsuitable."""
        name = self.name_of(table)
        said = self.said_of(name, table)
        contracts, problems = lay_contracts(said, self.folder)
        problems += lay_transforms(said, self.folder)
        entry = said.at(("pipelines", name))
        if entry.get("mode") in KEYED and "key" not in entry:
            if table.key:
                entry["key"] = list(table.key)
            else:
                why = f"mode {entry['mode']} needs a key, and the table has no primary key"
                problems.append(said.problem(("pipelines", name, "mode"), why))
                raise TableUnsuitable(name, str(table), problems)
        try:
            found = _One.model_validate(said.data)
        except ValidationError as error:
            problems += explain(error, said, _One)
        if problems:
            raise TableUnsuitable(name, str(table), problems)
        return Member(name, table, found.pipelines[name], contracts.get(name))

    def said_of(self, name: str, table: SourceTable, overrides: Sequence[str] | None = None) -> Document:
        """Return what the file says of one table, as if that stood there by itself.

        Without `overrides` those count that are for it.
        """
        if overrides is None:
            overrides = [key for key in self.overrides if _is_named(key, table)]
        place: KeyPath = ("pipelines", name)
        said = Document(self.entry.file, {"pipelines": {name: deepcopy(self.entry.data)}})
        said.marks = {(*place, *path): mark for path, mark in self.entry.marks.items()}
        for key in overrides:
            said.overlay(place, (*place, "overrides", key))
            _take_away(said, place, said.at((*place, "overrides", key)))
        entry = said.at(place)
        del entry["overrides"]
        for key in ("tables", "exclude"):
            entry["source"].pop(key, None)
        entry["source"]["table"] = written(table.schema, table.name)
        values = _values(table)
        for key in _FOR_EACH:
            if isinstance(entry.get(key), str):
                entry[key] = _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), entry[key])
        return said


def find_families(document: Document, folder: Path) -> tuple[dict[str, Family], list[Problem]]:
    """Return the families of a project file, and what is wrong with them.

    In the document each becomes the pipeline of a table that stands for all.
    """
    families: dict[str, Family] = {}
    problems: list[Problem] = []
    pipelines = document.at(("pipelines",))
    for name, entry in list(pipelines.items()) if isinstance(pipelines, dict) else ():
        if not _is_family(entry):
            continue
        place: KeyPath = ("pipelines", name)
        mistakes = list(_mistakes(document, place, entry))
        problems += mistakes
        if mistakes:
            del pipelines[name]
            continue
        source = entry["source"]
        entry["overrides"] = entry.get("overrides") or {}
        tables = source["tables"]
        marks = {path[2:]: mark for path, mark in document.marks.items() if path[:2] == place}
        family = Family(
            name=name,
            tables=(tables,) if isinstance(tables, str) else tuple(tables),
            exclude=tuple(source.get("exclude") or ()),
            overrides=tuple(entry["overrides"]),
            template=entry["table"],
            entry=Document(document.file, entry, marks),
            folder=folder,
        )
        families[name] = family
        pipelines[name] = _stand_in(family, name, ()).at(place)
        document.marks[*place, "source", "table"] = document.marks.get(
            (*place, "source", "tables"), document.marks[place]
        )
    return families, problems


def with_stand_ins(
    families: Mapping[str, Family], bases: Mapping[str, Pipeline]
) -> tuple[dict[str, Family], list[Problem]]:
    """Return families with what they say of their tables, once that has been checked."""
    problems: list[Problem] = []
    found = {}
    for name, family in families.items():
        stand_ins = [bases[name]] if name in bases else []
        for override in family.overrides:
            said = _stand_in(family, name, [override])
            try:
                stand_ins.append(_One.model_validate(said.data).pipelines[name])
            except ValidationError as error:
                problems += explain(error, said, _One)
        found[name] = replace(family, stand_ins=tuple(stand_ins))
    return found, problems


def _stand_in(family: Family, name: str, overrides: Sequence[str]) -> Document:
    said = family.said_of(name, SourceTable("schema", "table"), overrides)
    entry = said.at(("pipelines", name))
    # For messages: where all of them come from.
    entry["source"]["table"] = ", ".join(family.tables)
    # These may be others for each table; a contract tells the rest.
    for key in ("contract", "transform"):
        entry.pop(key, None)
    if entry.get("mode") in KEYED:
        entry.setdefault("key", [_UNKNOWN_KEY])
    return said


def _is_family(entry: Any) -> bool:
    source = entry.get("source") if isinstance(entry, dict) else None
    return isinstance(source, dict) and source.get("type") == "jdbc" and "tables" in source


def _mistakes(document: Document, place: KeyPath, entry: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what is wrong with the keys that only families have."""
    source = entry["source"]
    for key, is_needed in (("tables", True), ("exclude", False)):
        given = source.get(key)
        texts = [given] if key == "tables" and isinstance(given, str) else given
        if given is None and not is_needed:
            continue
        if not isinstance(texts, list) or not texts or not all(isinstance(t, str) and t for t in texts):
            yield document.problem(
                (*place, "source", key), "expected tables: `public.*`, `public.orders`, or a list of them"
            )
    for key in ("table", "query"):
        if source.get(key) is not None:
            yield document.problem((*place, "source", key), f"write tables: or {key}:, one of them")
    yield from _template_mistakes(document, place, entry)
    overrides = entry.get("overrides") or {}
    if not isinstance(overrides, dict) or not all(isinstance(each, dict) for each in overrides.values()):
        yield document.problem(
            (*place, "overrides"), "expected tables with what is other there: {orders: {mode: append}}"
        )
        return
    for name, override in overrides.items():
        for key, inner in _FIXED.items():
            below = override.get(key)
            wrong = [k for k in inner if isinstance(below, dict) and k in below] if inner else [key]
            for each in wrong if key in override else ():
                yield document.problem(
                    (*place, "overrides", name, key, *((each,) if inner else ())),
                    f"{each}: is the same for all tables",
                )


def _template_mistakes(document: Document, place: KeyPath, entry: Mapping[str, Any]) -> Iterator[Problem]:
    template = entry.get("table")
    if not isinstance(template, str) or "{table}" not in template:
        yield document.problem(
            (*place, "table"),
            "each table needs one of its own: write `raw.{table}` or `raw.{schema}_{table}`",
        )
        return
    for key in ("table", "contract"):  # a transform may be SQL, with braces of its own
        for unknown in set(_PLACEHOLDER.findall(str(entry.get(key)))) - {"table", "schema"}:
            yield document.problem(
                (*place, key), f'"{{{unknown}}}" is not known here; {{table}} and {{schema}} are'
            )


def _take_away(said: Document, place: KeyPath, override: Mapping[str, Any]) -> None:
    """Remove the keys that an override has without a value: as if they did not stand there."""
    for key, value in override.items():
        if value is None:
            said.at(place).pop(key, None)
        elif isinstance(value, dict) and isinstance(said.at((*place, key)), dict):
            _take_away(said, (*place, key), value)


def _values(table: SourceTable) -> dict[str, str]:
    return {"table": _plain(table.name), "schema": _plain(table.schema)}


def _plain(name: str) -> str:
    """Return a name that is one everywhere: small letters, digits and _."""
    plain = re.sub(r"[^a-z0-9_]", "_", name.lower())
    return f"_{plain}" if plain[:1].isdigit() else plain


def _is_pattern(text: str) -> bool:
    return any(sign in text for sign in "*?[")


def _is_named(pattern: str, table: SourceTable) -> bool:
    """Tell whether a pattern is for a table; without a schema it is for tables of all schemas."""
    names = [table.name, str(table)] if "." in pattern else [table.name]
    return _matches(pattern, names)


def _is_within(pattern: str, table: SourceTable, default_schema: str) -> bool:
    """Tell the same of a pattern that, without a schema, is for the database's own."""
    if "." in pattern:
        return _matches(pattern, [str(table)])
    return table.schema == default_schema and _matches(pattern, [table.name])


def _matches(pattern: str, names: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for name in names)
