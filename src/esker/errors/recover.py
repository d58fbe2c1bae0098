"""Damaged tables and their repair."""

from __future__ import annotations

from collections.abc import Sequence

from esker.errors.root import SHOWN_PARTS, EskerError, Outcome


class RecoverError(EskerError):
    """A table is damaged, or could not be repaired. Nothing was changed."""

    code = "ESK-RECOVER-000"


class MetadataDamaged(RecoverError):
    """The metadata file that the catalog points to is missing or broken: no engine can load the table."""

    code = "ESK-RECOVER-001"

    def __init__(self, table: str, file: str, why: str) -> None:
        self.table, self.file = table, file
        super().__init__(
            f'the metadata file of table "{table}" is damaged',
            reason=f"{file}: {why}. Nothing was read or changed.",
            remedy=f"See what is left: esker fsck {table}\n"
            f"Go back to the newest metadata file that is whole: esker fsck {table} --repair",
        )


class NothingToRestore(RecoverError):
    """No earlier metadata file of a table can be used."""

    code = "ESK-RECOVER-002"

    def __init__(self, table: str, file: str, passed_over: Sequence[str]) -> None:
        tried = "; ".join(passed_over[:SHOWN_PARTS]) or "there is none beside it"
        super().__init__(
            f'table "{table}" has no earlier metadata file to go back to',
            reason=f"The catalog points to {file}. Earlier ones: {tried}.",
            remedy="Restore the file from the store's older versions or a backup, under the same name.",
        )


class RepairRefused(RecoverError):
    """The catalog has no way to point a table to another metadata file."""

    code = "ESK-RECOVER-003"

    def __init__(self, table: str, why: str, instead: str) -> None:
        super().__init__(f'table "{table}" cannot be repaired from here', reason=why, remedy=instead)


class RepairOutdated(RecoverError):
    """Somebody committed to the table since it was looked at. Nothing was changed."""

    code = "ESK-RECOVER-004"
    exit_status = 5
    outcome = Outcome.RETRY

    def __init__(self, table: str) -> None:
        super().__init__(
            f'table "{table}" has moved on since it was looked at',
            reason="The catalog points to another metadata file by now. What somebody else committed is "
            "never overwritten.",
            remedy=f"Look again: esker fsck {table}",
        )
