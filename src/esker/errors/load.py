"""Staging and publishing: exit status 5."""

from __future__ import annotations

from collections.abc import Sequence

from esker.errors.root import EskerError, Outcome, Tripped


class LoadError(EskerError):
    """A batch could not be published."""

    code = "ESK-LOAD-000"
    exit_status = 5


class Fenced(LoadError):
    """Another run of the same pipeline published first. This run ends."""

    code = "ESK-LOAD-001"

    def __init__(self, pipeline: str, table: str, run: str, landed: str) -> None:
        self.pipeline, self.table, self.run, self.landed = pipeline, table, run, landed
        super().__init__(
            f'pipeline "{pipeline}" was fenced off table "{table}" by run {run}',
            reason=f"Two runs of this pipeline were active. This run's batch landed: {landed}.",
            remedy="Nothing is lost or doubled; the next run goes on. Find out who started the second one.",
        )


class PublishConflict(LoadError):
    """The table kept changing: every attempt to publish found it moved."""

    code = "ESK-LOAD-002"
    outcome = Outcome.RETRY

    def __init__(self, table: str, attempts: int, last: str) -> None:
        super().__init__(
            f'table "{table}" could not be published to in {attempts} attempts',
            reason=f"The last attempt ended with: {last}. The batch was not in the table when last looked.",
            remedy="Run again: the run reads the ledger first. If it happens often, find out what else "
            "writes to the table.",
        )


class PublishUnknown(LoadError):
    """Whether the batch landed could not be found out, because the catalog no longer answers."""

    code = "ESK-LOAD-003"
    outcome = Outcome.UNKNOWN

    def __init__(self, table: str, last: str) -> None:
        super().__init__(
            f'the outcome of publishing to table "{table}" is not known',
            reason=f"The catalog stopped answering: {last}.",
            remedy="Run again when the catalog is back: the run reads the ledger first and repeats nothing.",
        )


class SchemaMoved(LoadError):
    """Somebody changed the table's columns while a batch was staged. Nothing was published."""

    code = "ESK-LOAD-004"
    outcome = Outcome.RETRY

    def __init__(self, table: str) -> None:
        super().__init__(
            f'the columns of table "{table}" changed while a batch was staged',
            reason="The batch was written for other columns, and was not published.",
            remedy="Run again: the batch is staged anew for the present columns.",
        )


class TableMoved(LoadError):
    """The table changed again and again while a statement ran. Nothing was changed by it."""

    code = "ESK-LOAD-020"
    outcome = Outcome.RETRY

    def __init__(self, pipeline: str) -> None:
        super().__init__(
            f'the table of pipeline "{pipeline}" changed while the statement ran',
            reason="The rows that a statement writes are only right on the snapshot they were found on. "
            "It was tried anew several times, and each time somebody else was faster.",
            remedy="Run it again when fewer runs are active.",
        )


class RowsLost(LoadError):
    """Executors ended with rows of the batch on their disks, again and again. Nothing was published."""

    code = "ESK-LOAD-021"
    outcome = Outcome.RETRY

    def __init__(self) -> None:
        super().__init__(
            "executors that held rows of the batch have ended",
            reason="Their rows cannot be read again one by one: a source may return them in another order. "
            "Esker reads the whole batch again up to twice, and executors ended each time.",
            remedy="Run again. If it happens often, find out why the cluster ends executors (memory, spot "
            "machines), or load smaller batches.",
        )


class PartitionColumnDropped(LoadError):
    """A table is partitioned by a column that it no longer has: Spark cannot write into it."""

    code = "ESK-LOAD-024"

    def __init__(self, table: str, field: str) -> None:
        super().__init__(
            f'Spark cannot write into table "{table}"',
            reason=f'The column of its partition field "{field}" was dropped. A table that was created in '
            "format version 1 keeps the field, and Iceberg's Spark writer fails on it.",
            remedy="Small batches of modes with a key are written without Spark (lane: small). For others "
            "create the table again, with CREATE TABLE … AS SELECT in any engine, and adopt it: esker adopt.",
        )


class PartitionsMixed(LoadError):
    """Files of an earlier partitioning hold rows of several partitions, and the format cannot delete some."""

    code = "ESK-LOAD-008"

    def __init__(self, table: str) -> None:
        super().__init__(
            f'table "{table}" holds files of an earlier partitioning',
            reason="They contain rows of partitions that the batch replaces, and rows of others. A table of "
            "format version 1 cannot delete some rows of a file.",
            remedy=f"Upgrade the table (ALTER TABLE {table} SET TBLPROPERTIES ('format-version' = '2')), or "
            "rewrite its files with the present partitioning: CALL system.rewrite_data_files(table => …, "
            "options => map('rewrite-all', 'true')).",
        )


class Held(LoadError):
    """A guard was tripped: the batch waits for a person. Nothing was changed."""

    code = "ESK-LOAD-007"
    exit_status = 6

    def __init__(
        self, pipeline: str, table: str, tripped: Sequence[Tripped], branch: str | None = None
    ) -> None:
        self.tripped = tuple(tripped)
        look = f"Look at the source with `esker peek {pipeline}`."
        if branch is not None:
            look = f"Look at the table as it would be: SELECT * FROM {table} VERSION AS OF '{branch}'."
        super().__init__(
            f'pipeline "{pipeline}" holds a batch for table "{table}": '
            + "; ".join(each.message for each in tripped),
            reason="The pipeline's guard: or its contract says what may not happen unseen ("
            + ", ".join(each.guard for each in tripped)
            + ").",
            remedy=f"{look} If the batch is right: esker approve {pipeline}. If not: esker reject {pipeline} "
            "leaves the table as it is and goes on.",
        )


class PipelineBusy(LoadError):
    """A run of the pipeline is active; nothing can be decided about it now."""

    code = "ESK-LOAD-009"
    outcome = Outcome.RETRY

    def __init__(self, pipeline: str, holder: str) -> None:
        super().__init__(
            f'pipeline "{pipeline}" is running',
            reason=f"Another run is active: {holder}.",
            remedy="Try again when it has ended.",
        )


class OutboxFull(LoadError):
    """The change log has not been written for so long that no further batch may be published."""

    code = "ESK-LOAD-005"
    outcome = Outcome.RETRY

    def __init__(self, table: str, waiting: int) -> None:
        super().__init__(
            f'{waiting} changesets of table "{table}" wait to be written to its change log',
            reason="The change log could not be written; nothing was read or published by this run.",
            remedy="Find out why with `esker doctor`; the next run writes what waits, then goes on.",
        )
