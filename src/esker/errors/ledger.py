"""What Esker remembers beside the tables."""

from __future__ import annotations

from esker.errors.root import EskerError


class StateError(EskerError):
    """The state database (run history, leases) cannot be used."""

    code = "ESK-STATE-001"
    exit_status = 4

    def __init__(self, url: str, why: str) -> None:
        super().__init__(
            f'state database "{url}" cannot be used',
            reason=why,
            remedy="Check its address and rights. It holds history and leases only: a lost one may be "
            "replaced by an empty one without harm to the tables.",
        )


class StateTooNew(EskerError):
    """The state database was written by a newer Esker."""

    code = "ESK-STATE-002"
    exit_status = 2

    def __init__(self, url: str, found: int, known: int) -> None:
        super().__init__(
            f'state database "{url}" has version {found}, this Esker knows {known}',
            reason="A newer Esker has upgraded it.",
            remedy="Install that version of Esker here too.",
        )


class LedgerError(EskerError):
    """What the table remembers does not fit what it holds. Nothing was changed."""

    code = "ESK-LEDGER-000"
    exit_status = 5


class LedgerMissing(LedgerError):
    """Snapshots of this pipeline are in the table, but its ledger entry is gone."""

    code = "ESK-LEDGER-001"

    def __init__(self, pipeline: str, table: str, snapshot: int) -> None:
        super().__init__(
            f'table "{table}" holds data of pipeline "{pipeline}" but not its ledger',
            reason=f"Snapshot {snapshot} was written by this pipeline, and the table property "
            f"esker.ledger.{pipeline} has been removed. Starting anew would load everything twice.",
            remedy="Set the property again to the value in an earlier metadata file of the table.",
        )


class LedgerForeign(LedgerError):
    """The ledger entry belongs to another project or another kind of source."""

    code = "ESK-LEDGER-002"

    def __init__(self, pipeline: str, table: str, what: str, theirs: str, ours: str) -> None:
        super().__init__(
            f'the ledger of pipeline "{pipeline}" in table "{table}" belongs to {what} "{theirs}"',
            reason=f'This is {what} "{ours}". Its position means nothing here.',
            remedy="Give this pipeline another name or another table.",
        )


class TableRewound(LedgerError):
    """Somebody rolled the table back or replaced it since Esker's last publish."""

    code = "ESK-LEDGER-003"

    def __init__(self, table: str, snapshot: int, current: int | None) -> None:
        self.table, self.snapshot, self.current = table, snapshot, current
        super().__init__(
            f'table "{table}" no longer descends from snapshot {snapshot}',
            reason="Somebody else rolled it back, replaced or restored it: the current snapshot is "
            f"{current}, and what Esker loaded last is not in it.",
            remedy=f"To have the rows back, make snapshot {snapshot} current again (procedure "
            "set_current_snapshot, by any engine).\n"
            f"To go on with the table as it is: esker adopt {table}. What is gone is not loaded again.",
        )


class LoadedFilesDamaged(LedgerError):
    """The record of loaded files lacks batches that the ledger counts on."""

    code = "ESK-LEDGER-004"

    def __init__(self, table: str, batch: str) -> None:
        super().__init__(
            f'table "{table}" does not know batch {batch}',
            reason="The ledger says that this batch was published, but its files are not recorded: "
            "rows were removed, or the table was replaced. Which files were loaded is unknown.",
            remedy=f"If it was repaired, finish that: esker fsck {table} --repair\n"
            f'Else bring "{table}" back to the snapshot that holds the batch.',
        )


class LedgerUnreadable(LedgerError):
    """A table property of Esker's cannot be read: it was edited, or a newer Esker wrote it."""

    code = "ESK-LEDGER-006"

    def __init__(self, name: str, text: str) -> None:
        super().__init__(
            f'table property "{name}" cannot be read',
            reason=f"It reads: {text[:200]}",
            remedy="Use the Esker that wrote it, or bring back the value from an earlier metadata file.",
        )


class LedgerTooNew(LedgerError):
    """A table property of Esker's was written by a newer Esker: this one does not know all that it says."""

    code = "ESK-LEDGER-012"

    def __init__(self, name: str, why: str) -> None:
        super().__init__(
            f'table property "{name}" was written by a newer Esker',
            reason=f"{why}. Going on would lose what it says.",
            remedy="Install that version of Esker here too.",
        )


class LedgerTooLarge(LedgerError):
    """A ledger entry is larger than catalogs can keep."""

    code = "ESK-LEDGER-005"

    def __init__(self, pipeline: str, size: int, limit: int) -> None:
        super().__init__(
            f'the ledger entry of pipeline "{pipeline}" has {size} bytes, {limit} are allowed',
            reason="Some catalogs cut longer table properties without an error.",
            remedy="Report this: a position must stay small.",
        )


class LogGap(LedgerError):
    """A changeset that the change log lacks is no longer to be had."""

    code = "ESK-LEDGER-007"

    def __init__(self, log: str, have: int, next_one: int) -> None:
        super().__init__(
            f'change log "{log}" ends at changeset {have}, and the next one to be had is {next_one}',
            reason="Somebody removed what was on its way, or restored an older copy of the change log.",
            remedy="Consumers must read the table anew. Restore the change log, or drop it together with "
            "the table's properties esker.log and esker.outbox to begin another.",
        )


class LogAhead(LedgerError):
    """The change log is ahead of its table: the table went back to an older copy."""

    code = "ESK-LEDGER-010"

    def __init__(self, log: str, logged: int, table: str, head: int) -> None:
        super().__init__(
            f'change log "{log}" holds changeset {logged}, and table "{table}" is at {head}',
            reason="The table, or the catalog that holds it, was restored from an older copy. Numbers that "
            "consumers have seen would be given to other changes.",
            remedy="Restore the change log to the same point in time, or number on behind it, with a gap: "
            f"esker fsck {table} --repair\nConsumers must read the table anew.",
        )


class ChangesDiverged(LedgerError):
    """A table's changes do not continue those that were read: it, or its change log, was restored."""

    code = "ESK-LEDGER-011"

    def __init__(self, table: str, changeset: int | None, why: str) -> None:
        self.table, self.changeset = table, changeset
        read = f"changeset {changeset}, which was read" if changeset is not None else "those that were read"
        super().__init__(
            f'the changes of table "{table}" do not continue {read}',
            reason=why,
            remedy="Read the whole table once, and the changes after that.",
        )


class SideTableForeign(LedgerError):
    """A change log or quarantine is not the one that the table knows: dropped, made anew or rolled back."""

    code = "ESK-LEDGER-008"

    def __init__(self, side: str) -> None:
        super().__init__(
            f'table "{side}" is not the one that was written before',
            reason="It was dropped and made anew, restored, or rolled back by somebody else.",
            remedy="Make the former one current again (register or restore it); consumers that have read "
            "from another one must read the table anew.",
        )


class SideTableLost(LedgerError):
    """Rows on their way to a change log or quarantine could not be appended."""

    code = "ESK-LEDGER-009"

    def __init__(self, side: str, why: str) -> None:
        super().__init__(
            f'table "{side}" could not be written',
            reason=f"{why}. The batch itself is published; what is owed stays in the table's outbox.",
            remedy="The next run appends it. If it happens again, look at the table's store and rights.",
        )
