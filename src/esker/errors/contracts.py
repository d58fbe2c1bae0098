"""Contracts and columns: exit status 3."""

from __future__ import annotations

from collections.abc import Sequence

from esker.errors.root import EskerError


class ContractError(EskerError):
    """The data is not what was declared. Nothing was published."""

    code = "ESK-CONTRACT-000"
    exit_status = 3


class BadRows(ContractError):
    """Rows cannot be read as the table's columns. Nothing was published."""

    code = "ESK-CONTRACT-001"

    def __init__(self, pipeline: str, count: int, read: int, examples: Sequence[str]) -> None:
        self.pipeline, self.count, self.read = pipeline, count, read
        super().__init__(
            f'pipeline "{pipeline}": {count} of {read} rows do not fit the columns',
            reason="For example: " + "; ".join(examples) + ". The batch was not published.",
            remedy="Correct them, or what esker.yml says of them: types (columns:), or how files are written "
            "(source: delimiter, quote, multi_line, encoding). To load the others: bad_rows: quarantine",
        )


class RulesBroken(ContractError):
    """More rows break a rule of the contract than it lets a run end well with. Nothing was published."""

    code = "ESK-CONTRACT-010"

    def __init__(self, pipeline: str, rule: str, count: int, read: int, most: str) -> None:
        super().__init__(
            f'pipeline "{pipeline}": {count:,} of {read:,} rows break the rule "{rule}"',
            reason=f"The contract's failAbove: says at most {most}. The batch was not published.",
            remedy="Correct the source. If the rule is wrong, change the contract.",
        )


class UnknownReference(ContractError):
    """A rule of the contract refers to a table or a column that is not there. Nothing was loaded."""

    code = "ESK-CONTRACT-011"

    def __init__(self, place: str, rule: str, why: str) -> None:
        super().__init__(
            f'{place}: rule "{rule}" cannot be checked: {why}',
            reason="Rows would pass although nobody has looked.",
            remedy="Load the other table first, as esker run without a name does, or correct the contract.",
        )


class InvalidRule(ContractError):
    """A rule of the contract is no SQL, or none for these columns. Nothing was loaded."""

    code = "ESK-CONTRACT-012"

    def __init__(
        self,
        place: str,
        rule: str,
        why: str,
        what: str = "A rule is a SQL condition on the columns of a row, in the words of Spark.",
    ) -> None:
        super().__init__(
            f'{place}: rule "{rule}" cannot be checked: {why}',
            reason=what,
            remedy="Correct the rule in the contract, then: esker plan",
        )


class RuleEngineFailed(ContractError):
    """Another engine could not check its rule. Nothing was published."""

    code = "ESK-CONTRACT-013"

    def __init__(self, rule: str, engine: str, why: str) -> None:
        super().__init__(
            f'rule "{rule}": the engine "{engine}" failed',
            reason=why,
            remedy="Look at what the contract says below implementation:, and at the package of the engine.",
        )


class TypeConflict(ContractError):
    """A column's type in the source, or as declared, cannot become its type in the table without loss."""

    code = "ESK-CONTRACT-002"

    def __init__(self, table: str, conflicts: Sequence[str], who: str = "the source sends") -> None:
        super().__init__(
            f'table "{table}": {who} other types',
            reason="; ".join(conflicts) + ".",
            remedy="Convert in the source, or load into a new table."
            if who == "the source sends"
            else "Write the table's type where it is declared, or load into a new table.",
        )


class ColumnsFrozen(ContractError):
    """The source sends columns that the table lacks, and `evolution: freeze` forbids adding them."""

    code = "ESK-CONTRACT-003"

    def __init__(self, table: str, columns: Sequence[str]) -> None:
        super().__init__(
            f'table "{table}" lacks columns that the source sends: ' + ", ".join(columns),
            reason="The pipeline says evolution: freeze.",
            remedy="Allow it (evolution: evolve), or remove the columns from the source.",
        )


class NoColumns(ContractError):
    """Nothing tells the columns of a table that is to be created."""

    code = "ESK-CONTRACT-004"

    def __init__(self, pipeline: str, table: str) -> None:
        super().__init__(
            f'pipeline "{pipeline}": no columns for new table "{table}"',
            reason="What the source sends holds no values to infer columns from, or cannot be read.",
            remedy="Look at them: esker peek. Is format: right? Or declare columns: {name: type, …}.",
        )


class ReservedName(ContractError):
    """A source sends a column whose name belongs to Esker or to Iceberg."""

    code = "ESK-CONTRACT-006"

    def __init__(
        self, table: str, column: str, why: str, remedy: str = "Rename the column in the source."
    ) -> None:
        super().__init__(
            f'the source of table "{table}" sends a column "{column}"',
            reason=f"{why[0].upper()}{why[1:]}.",
            remedy=remedy,
        )


class ChangeNotApplied(ContractError):
    """A declared change of the table needs a person's word: it drops columns, or `evolution` is `freeze`."""

    code = "ESK-CONTRACT-005"

    def __init__(self, pipeline: str, changes: Sequence[str]) -> None:
        super().__init__(
            f'pipeline "{pipeline}" waits for a change of its table',
            reason="; ".join(changes) + ". That is done only when somebody says so.",
            remedy=f"Look at it and apply it: esker plan {pipeline} --apply",
        )


class UnsuitableKey(ContractError):
    """A column that `key`, `order_by` or `deleted_column` names is not there, or cannot serve as such."""

    code = "ESK-CONTRACT-007"

    def __init__(self, table: str, role: str, column: str, why: str, fitting: Sequence[str]) -> None:
        super().__init__(
            f'column "{column}" cannot be {role} of table "{table}": {why}',
            reason="Rows are compared by exact values: texts, whole numbers, decimals, dates and times.",
            remedy=f"Name one of: {', '.join(fitting) or 'none would do'}.",
        )


class UnsuitableData(ContractError):
    """Rows that a program handed over cannot be understood."""

    code = "ESK-CONTRACT-008"

    def __init__(self, why: str) -> None:
        super().__init__(
            "the rows that were handed over cannot be read",
            reason=why,
            remedy="Hand over a Spark DataFrame, an Arrow table, or dictionaries whose values have one type "
            "per column.",
        )


class NoMoment(ContractError):
    """Rows for a history do not tell when they became valid. Nothing was changed."""

    code = "ESK-CONTRACT-009"

    def __init__(self, pipeline: str) -> None:
        super().__init__(
            f'nothing tells when the rows for pipeline "{pipeline}" became valid',
            reason="Versions begin at the moment that order_by names, or up to which the source was read; "
            "rows that are handed over have no such moment, and a clock would tell another one in every run.",
            remedy="Name the column that tells it, with order_by.",
        )
