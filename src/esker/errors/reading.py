"""Reading without Spark."""

from __future__ import annotations

from esker.errors.project import ProjectError


class NotWithoutSpark(ProjectError):
    """A table cannot be read in this process; with Spark it can. Nothing was read."""

    code = "ESK-READ-001"
    is_for_spark = True

    def __init__(self, what: str, why: str) -> None:
        super().__init__(
            f"{what} cannot be read without Spark",
            reason=why[0].upper() + why[1:] + ".",
            remedy="Read it with Spark (pip install 'esker[spark]'): project.table(…), or .to_spark() of "
            "what was asked for.",
        )


class ReaderNotInstalled(NotWithoutSpark):
    """A package that reads tables in this process is not installed."""

    code = "ESK-READ-002"

    def __init__(self, package: str, install: str) -> None:
        ProjectError.__init__(
            self,
            f"reading without Spark needs the package {package}",
            reason=f"The package {package} is not installed.",
            remedy=f"Install it: pip install '{install}'",
        )


class NotWrittenWithoutSpark(NotWithoutSpark):
    """A table cannot be changed in this process; with Spark it can. Nothing was sent or changed."""

    code = "ESK-READ-008"

    def __init__(self, table: str, why: str) -> None:
        ProjectError.__init__(
            self,
            f'table "{table}" cannot be changed without Spark',
            reason=why[0].upper() + why[1:] + ". A delivery tags how far it is.",
            remedy="Deliver with Spark: pip install 'esker[spark]'",
        )


class ChangesMissing(ProjectError):
    """Changes were asked for that never got into the change log. They are in the table itself."""

    code = "ESK-READ-003"

    def __init__(self, table: str, first: int, last: int, why: str) -> None:
        self.first, self.last = first, last
        lacking = f"changesets {first} to {last}" if last > first else f"changeset {first}"
        super().__init__(
            f'{lacking} of table "{table}" cannot be read',
            reason=why,
            remedy=f"Ask for the changes up to {first - 1} or since {last}, and read the table anew in "
            "between: it holds the outcome.",
        )


class TaskNotOpened(ProjectError):
    """A task came from another process, and must be told which project it belongs to."""

    code = "ESK-READ-004"

    def __init__(self, table: str, number: int) -> None:
        super().__init__(
            f'task {number} of table "{table}" belongs to no project here',
            reason="A task travels without the keys of catalogs and stores.",
            remedy="Hand it to the project first: project.reindex_task(task).to_arrow()",
        )


class ScanInvalid(ProjectError):
    """A column, a filter or a time range does not fit the table that is read. Nothing was read."""

    code = "ESK-READ-007"

    def __init__(self, table: str, why: str, instead: str) -> None:
        super().__init__(f'table "{table}" cannot be read in this way', reason=why, remedy=instead)
