"""A SQL statement as Spark's own parser understands it: what kind it is, and which tables it is about.

A statement that writes rows is also taken apart here: its rows become a frame, as they would be after it,
and nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, MapType

from esker.engine.compat import CALL, column_of, frame_of, procedure_of, value_of_argument
from esker.engine.failures import SQL_MISTAKES
from esker.engine.session import Engine
from esker.engine.sql_parser import parts_of, sql_parser
from esker.project.types import quoted

Name = tuple[str, ...]

ROW_WRITES = ("InsertIntoStatement", "UpdateTable", "DeleteFromTable", "MergeIntoTable")
"""Kinds of statements that write rows, and whose rows `Writes` finds."""
_OTHER_WRITES = ("OverwriteByExpression", "OverwritePartitionsDynamic", "AppendData")
_TARGETS = ("UnresolvedIdentifier", "UnresolvedTable", "UnresolvedTableOrView")
_COMPUTED = "PlanWithUnresolvedIdentifier"
"""Spark's node for `IDENTIFIER(…)`, whose name is computed when the statement runs."""

FILE, POSITION = "_esker_file", "_esker_pos"
"""Columns of a statement's rows: where the row lies that one stands for; null for a new one."""
_ACTION = "_esker_action"


@dataclass(frozen=True)
class Parsed:
    """One statement, parsed and not analysed: names may name nothing."""

    kind: str
    """The name of Spark's node for it: `UpdateTable`, `Project`…"""
    targets: tuple[Name, ...]
    """The tables that it would change or describe; not those that it only reads."""
    inner_writes: tuple[str, ...]
    """Kinds of writes that stand inside another statement."""
    is_computed: bool
    """What it would change is named by `IDENTIFIER(…)`, so that `targets` and others do not have it."""
    procedure: Name | None
    branch: str | None
    """The branch that it would create or replace."""
    keys: tuple[str, ...]
    """Properties or settings that it sets."""
    namespace: Name | None
    """The namespace that it would drop."""
    plan: Any
    """Spark's node; only for this package."""
    engine: Engine = field(repr=False)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The texts among the arguments of a procedure. What is not written out is computed, as Spark does it
        when it calls: it may be what an earlier statement made. Raises Spark's AnalysisException."""
        found = (_value(self.engine, argument) for argument in _each(self.plan.args()))
        return tuple(value for value in found if isinstance(value, str))

    @cached_property
    def named(self) -> tuple[Name, ...]:
        """The tables that a procedure's arguments name; some may be words of another meaning."""
        found: list[Name] = []
        for text in filter(None, self.texts):
            with suppress(*SQL_MISTAKES):  # a condition, say
                found.append(parts_of(self.engine.spark, text))
        return tuple(found)

    @property
    def is_overwrite(self) -> bool:
        """It would put rows in the place of others."""
        return self.kind in _OTHER_WRITES or (self.kind == "InsertIntoStatement" and self.plan.overwrite())


def parse(engine: Engine, text: str) -> Parsed:
    """Parse one statement. Raises Spark's ParseException."""
    plan = sql_parser(engine.spark).parsePlan(text)
    kind = _kind(plan)
    is_computed = _is_computed(engine, plan)
    return Parsed(
        kind=kind,
        targets=tuple(dict.fromkeys(_targets(plan))),
        inner_writes=tuple(
            _kind(node) for node in _nodes(plan) if node is not plan and _kind(node) in _WRITES
        ),
        is_computed=is_computed,
        procedure=_name(procedure_of(plan)) if kind == CALL and not is_computed else None,
        branch=str(plan.branch()) if kind == "CreateOrReplaceBranch" else None,
        keys=tuple(_keys(plan, kind)),
        namespace=_dropped_namespace(plan) if kind == "DropNamespace" and not is_computed else None,
        plan=plan,
        engine=engine,
    )


_WRITES = (*ROW_WRITES, *_OTHER_WRITES)


@dataclass(frozen=True)
class Target:
    """The table that a statement writes to, as the statement may see it."""

    table: str
    """Its quoted name."""
    columns: tuple[tuple[str, DataType], ...]
    """The columns that it may write."""
    key: tuple[str, ...]
    """Empty where nothing but its place names a row."""
    live: str | None = None
    """A condition on the rows that are there for the statement."""


@dataclass(frozen=True)
class Writes:
    """The rows that a statement writes."""

    frame: DataFrame
    """The table's columns, and `mark`, which is true for rows that are to be deleted.

    For a table without a key also FILE and POSITION.
    """
    moved: DataFrame | None
    """Rows whose key would become another one; None when no key is assigned."""
    ambiguous: DataFrame | None
    """Rows that several rows of a MERGE's source match; None when that cannot be."""


class RowsOf:
    """Takes a statement that writes rows apart."""

    def __init__(self, engine: Engine, statement: Parsed, target: Target, mark: str) -> None:
        self._spark = engine.spark
        self._plan, self._target, self._mark = statement.plan, target, mark
        self._names = {name.lower(): name for name, _ in target.columns}
        self._is_key_assigned = False
        self._alias = _alias_of(statement)
        self._kind = statement.kind

    def writes(self) -> Writes:
        """Return the rows. Raises Spark's AnalysisException, or LookupError for an unknown column."""
        match self._kind:
            case "InsertIntoStatement":
                return Writes(self._inserted(), None, None)
            case "DeleteFromTable":
                hit = self._rows().filter(self._column(self._plan.condition()))
                return Writes(self._shown(hit, {}, is_delete=True), None, None)
            case "UpdateTable":
                return self._updated()
        return self._merged()

    def _inserted(self) -> DataFrame:
        plan = self._plan
        rows = self._frame(plan.query())
        named = [str(name) for name in _each(plan.userSpecifiedCols())]
        if plan.byName():
            named = rows.columns
        elif not named:
            named = [name for name, _ in self._target.columns][: len(rows.columns)]
        if len(named) != len(rows.columns):
            raise LookupError(
                f"it names {len(named)} columns and gives {len(rows.columns)} values"
                if _each(plan.userSpecifiedCols())
                else f"it gives {len(rows.columns)} values, and the table has {len(named)} columns"
            )
        given = {}
        renamed = rows.toDF(*(f"_esker_v{index}" for index in range(len(named))))
        for index, name in enumerate(named):
            given[self._known((name,))[0]] = F.col(f"_esker_v{index}")
        empty = {name: F.lit(None) for name, _ in self._target.columns}
        return self._select(renamed, {**empty, **given}, is_delete=False, place=_nowhere())

    def _updated(self) -> Writes:
        hit = self._rows()
        condition = self._plan.condition()
        if condition.isDefined():
            hit = hit.filter(self._column(condition.get()))
        changed = self._assigned(_each(self._plan.assignments()), lambda name: F.col(quoted(name)))
        different = F.lit(False)
        for name, value in changed.items():
            kind = dict(self._target.columns)[name]
            same = F.col(quoted(name)).eqNullSafe(value.cast(kind))
            different = different | (F.lit(True) if _has_map(kind) else ~same)
        hit = hit.filter(different)
        rows = self._shown(hit, changed, is_delete=False)
        moved = None
        if self._is_key_assigned:
            moved = hit.filter(
                reduce(
                    lambda left, right: left | right,
                    (
                        ~F.col(quoted(name)).eqNullSafe(changed.get(name, F.col(quoted(name))))
                        for name in self._keys
                    ),
                )
            )
        return Writes(rows, moved, None)

    def _merged(self) -> Writes:
        plan = self._plan
        rows = self._rows()
        own = {name: f"_esker_t{index}" for index, (name, _) in enumerate(self._target.columns)}
        target = rows.select(
            "*",
            F.col("_file").alias(FILE),
            F.col("_pos").alias(POSITION),
            *(F.col(quoted(name)).alias(alias) for name, alias in own.items()),
        )
        source = self._frame(plan.sourceTable())
        sent = {name.lower(): f"_esker_s{index}" for index, name in enumerate(source.columns)}
        source = source.select("*", *(source[name].alias(sent[name.lower()]) for name in source.columns))
        on = self._column(plan.mergeCondition())
        parts: list[DataFrame] = []
        moved = ambiguous = None

        def old(name: str) -> Column:
            return F.col(own[name])

        def from_source(name: str) -> Column | None:
            return F.col(sent[name.lower()]) if name.lower() in sent else None

        if matched := _each(plan.matchedActions()):
            acting = self._acting(target.join(source, on, "inner"), matched)
            if any(_kind(action) != "DeleteAction" for action in matched):
                ambiguous = acting.groupBy(FILE, POSITION).count().filter("count > 1")
            parts += self._performed(acting, matched, old, from_source)
            if self._is_key_assigned:
                moved = self._moved(acting, matched, old, from_source)
        if missing := _each(plan.notMatchedActions()):
            acting = self._acting(source.join(rows, on, "left_anti"), missing)
            parts += self._performed(acting, missing, lambda name: F.lit(None), from_source)
        if surplus := _each(plan.notMatchedBySourceActions()):
            acting = self._acting(target.join(source, on, "left_anti"), surplus)
            parts += self._performed(acting, surplus, old, lambda name: None)
        return Writes(reduce(DataFrame.unionByName, parts), moved, ambiguous)

    def _acting(self, rows: DataFrame, actions: Sequence[Any]) -> DataFrame:
        """Return the rows for which one of the actions is done, with its number: the first that holds."""
        chosen: Any = F
        for number, action in enumerate(actions):
            condition = action.condition()
            holds = self._column(condition.get()) if condition.isDefined() else F.lit(True)
            chosen = chosen.when(holds, F.lit(number))
        return rows.withColumn(_ACTION, chosen).filter(F.col(_ACTION).isNotNull())

    def _values(self, action: Any, old: Any, from_source: Any) -> dict[str, Column]:
        match _kind(action):
            case "UpdateStarAction" | "InsertStarAction":
                self._is_key_assigned |= _kind(action) == "UpdateStarAction" and bool(self._keys)
                found = {name: from_source(name) for name, _ in self._target.columns}
                return {name: value for name, value in found.items() if value is not None}
            case "DeleteAction":
                return {}
        return self._assigned(_each(action.assignments()), old)

    def _performed(
        self, acting: DataFrame, actions: Sequence[Any], old: Any, from_source: Any
    ) -> list[DataFrame]:
        parts = []
        for number, action in enumerate(actions):
            values = self._values(action, old, from_source)
            whole = {name: values.get(name, old(name)) for name, _ in self._target.columns}
            mine = acting.filter(F.col(_ACTION) == number)
            place = _place(FILE, POSITION) if FILE in acting.columns else _nowhere()
            is_delete = _kind(action) == "DeleteAction"
            parts.append(self._select(mine, whole, is_delete=is_delete, place=place))
        return parts

    def _moved(self, acting: DataFrame, actions: Sequence[Any], old: Any, from_source: Any) -> DataFrame:
        differs = F.lit(False)
        for number, action in enumerate(actions):
            values = self._values(action, old, from_source)
            for name in self._keys:
                if name in values:
                    other = ~old(name).eqNullSafe(values[name])
                    differs = differs | ((F.col(_ACTION) == number) & other)
        return acting.filter(differs)

    @property
    def _keys(self) -> list[str]:
        return [self._names[name.lower()] for name in self._target.key]

    def _rows(self) -> DataFrame:
        """Return the table's rows, under the names by which the statement knows them."""
        rows = self._spark.read.table(self._target.table)
        if self._alias is not None:
            rows = rows.alias(self._alias)
        return rows.filter(self._target.live) if self._target.live else rows

    def _assigned(self, assignments: Sequence[Any], old: Any) -> dict[str, Column]:
        values: dict[str, Column] = {}
        for assignment in assignments:
            name, *inner = self._known(_name(assignment.key().nameParts()))
            value = self._column(assignment.value())
            if inner:
                value = values.get(name, old(name)).withField(".".join(quoted(part) for part in inner), value)
            values[name] = value
            self._is_key_assigned |= name in self._keys
        return values

    def _known(self, parts: Name) -> Name:
        """Return the column of the table that a statement names, with what stands inside it."""
        for start in range(len(parts)):
            qualifier = tuple(part.lower() for part in parts[:start])
            if parts[start].lower() in self._names and self._is_qualifier(qualifier):
                return self._names[parts[start].lower()], *parts[start + 1 :]
        raise LookupError(f'it writes to "{".".join(parts)}", which is no column that can be written')

    def _is_qualifier(self, parts: Name) -> bool:
        if self._alias is not None:
            return parts in ((), (self._alias.lower(),))
        named = tuple(part.strip("`").lower() for part in self._target.table.split("`.`"))
        return parts == named[len(named) - len(parts) :] if parts else True

    def _shown(self, rows: DataFrame, values: dict[str, Column], *, is_delete: bool) -> DataFrame:
        whole = {name: values.get(name, F.col(quoted(name))) for name, _ in self._target.columns}
        return self._select(rows, whole, is_delete=is_delete, place=_place("_file", "_pos"))

    def _select(
        self, rows: DataFrame, values: dict[str, Column], *, is_delete: bool, place: list[Column]
    ) -> DataFrame:
        if self._target.key:
            place = []
        elif is_delete:
            # Their place is all that counts: what they hold is not even read.
            values = {name: F.lit(None) for name in values}
        return rows.select(
            *(values[name].cast(kind).alias(name) for name, kind in self._target.columns),
            F.lit(is_delete).alias(self._mark),
            *place,
        )

    def _frame(self, plan: Any) -> DataFrame:
        return frame_of(self._spark, plan)

    def _column(self, expression: Any) -> Column:
        return column_of(self._spark, expression)


def _place(file: str, position: str) -> list[Column]:
    return [F.col(file).alias(FILE), F.col(position).alias(POSITION)]


def _nowhere() -> list[Column]:
    return [F.lit(None).cast("string").alias(FILE), F.lit(None).cast("bigint").alias(POSITION)]


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _each(sequence: Any) -> list[Any]:
    return [sequence.apply(index) for index in range(sequence.size())]


def _name(parts: Any) -> Name:
    return tuple(str(part) for part in _each(parts))


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for child in _each(plan.children()):
        yield from _nodes(child)


def _targets(plan: Any) -> Iterator[Name]:
    for node in _nodes(plan):
        kind = _kind(node)
        if kind in _TARGETS:
            yield _identifier(node)
        elif kind in ("UpdateTable", "DeleteFromTable", "MergeIntoTable"):
            target = node.targetTable() if kind == "MergeIntoTable" else node.table()
            yield from (
                _identifier(inner) for inner in _nodes(target) if _kind(inner) == "UnresolvedRelation"
            )
        elif kind in _WRITES:
            yield from (
                _identifier(inner) for inner in _nodes(node.table()) if _kind(inner) == "UnresolvedRelation"
            )
    if _kind(plan) in _ICEBERGS_OWN:
        yield _name(plan.table())


_ICEBERGS_OWN = (
    *("AddPartitionField", "DropPartitionField", "ReplacePartitionField"),
    *("SetWriteDistributionAndOrdering", "SetIdentifierFields", "DropIdentifierFields"),
    *("CreateOrReplaceBranch", "CreateOrReplaceTag", "DropBranch", "DropTag"),
)
"""Statements of Iceberg's extension, which name their table as plain texts."""


def _identifier(node: Any) -> Name:
    if _kind(node) == "UnresolvedIdentifier":
        return _name(node.nameParts())
    return _name(node.multipartIdentifier())


def _is_computed(engine: Engine, plan: Any) -> bool:
    """Tell whether the name of what a statement changes is computed. What it reads may have such names."""
    jvm: Any = engine.spark.sparkContext._jvm
    command = jvm.java.lang.Class.forName("org.apache.spark.sql.catalyst.plans.logical.Command")
    if _kind(plan) == _COMPUTED:
        return True
    for node in _nodes(plan):
        if _kind(node) == _COMPUTED and _each(node.children()):
            return True  # an INSERT, or a table that is made of a query
        if _kind(node) in _WRITES:
            target = node.targetTable() if _kind(node) == "MergeIntoTable" else node.table()
            if any(_kind(inner) == _COMPUTED for inner in _nodes(target)):
                return True
        elif command.isInstance(node) and any(_kind(child) == _COMPUTED for child in _each(node.children())):
            return True
    return False


def _value(engine: Engine, argument: Any) -> Any:
    value = value_of_argument(argument)
    if _kind(value) == "Literal":
        return str(value.value()) if str(value.dataType().simpleString()).startswith("string") else None
    row = engine.spark.range(1).select(column_of(engine.spark, value)).first()
    return row[0] if row is not None else None


def _keys(plan: Any, kind: str) -> Iterator[str]:
    if kind == "SetTableProperties":
        yield from (str(key) for key in _each(plan.properties().keys().toSeq()))
    elif kind == "UnsetTableProperties":
        yield from (str(key) for key in _each(plan.propertyKeys()))
    elif kind == "SetCommand" and plan.kv().isDefined() and plan.kv().get()._2().isDefined():
        yield str(plan.kv().get()._1())


def _dropped_namespace(plan: Any) -> Name | None:
    return _name(plan.namespace().multipartIdentifier()) if plan.cascade() else None


def _alias_of(statement: Parsed) -> str | None:
    plan = statement.plan
    if statement.kind == "InsertIntoStatement":
        return None
    target = plan.targetTable() if statement.kind == "MergeIntoTable" else plan.table()
    return str(target.alias()) if _kind(target) == "SubqueryAlias" else None


def _has_map(kind: DataType) -> bool:
    return isinstance(kind, MapType) or "map<" in kind.simpleString()
